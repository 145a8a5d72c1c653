"""A hard memory limit for a child process, and a cold page cache before it.

The limit is that of the tests (`tests/cgroup.py`); only its two outcomes are told differently here.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.errors import CommandFailed, NotMeasured


@contextlib.contextmanager
def hard_limit(limit_bytes: int | None) -> Iterator[Callable[[], None] | None]:
    """Give a `preexec_fn` that puts a child under `limit_bytes`; None for no limit.

    Raises:
        NotMeasured: no memory limit can be set on this machine.
        CommandFailed: the kernel had to kill a process of the group.
    """
    if limit_bytes is None:
        yield None
        return
    tests = str(Path(__file__).resolve().parent.parent / "tests")
    if tests not in sys.path:
        sys.path.append(tests)
    try:
        cgroup = importlib.import_module("cgroup")
        pytest = importlib.import_module("pytest")
    except ImportError as error:
        raise NotMeasured(f"hard limits need {error.name}; requirements/dev.txt has it") from None
    try:
        with cgroup.hard_limit(limit_bytes) as enter:
            yield enter
    except pytest.skip.Exception as reason:
        raise NotMeasured(str(reason).removeprefix("SKIPPED: ")) from None
    except AssertionError as reason:
        raise CommandFailed(str(reason)) from None


def drop_cache(path: Path) -> None:
    """Write a file, or the files of a folder, to disk and drop them from the page cache.

    Pages that some other process cached are charged to that process: without this, a command
    under a hard limit would read them for nothing.
    """
    if not hasattr(os, "posix_fadvise"):
        raise NotMeasured("this system cannot drop a file from its page cache")
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        if file.is_file():
            descriptor = os.open(file, os.O_RDONLY)
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
