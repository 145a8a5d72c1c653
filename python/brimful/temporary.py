"""Temporary folders and unfinished files, removed by their owner or by the next start.

Each is locked while its owner lives: that tells one in use from one left behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator

_LOCK = ".brimful-temporary"
#: The locks of this process's folders, by path.
_held: dict[str, int] = {}


def make_folder(prefix: str, parent: str | os.PathLike[str] | None = None) -> str:
    """Make a folder in `parent` (None: the system's for temporary files) for `remove_folder`.

    Folders of that prefix whose owners were killed are removed first.
    """
    parent = tempfile.gettempdir() if parent is None else os.fspath(parent)
    ours = re.compile(re.escape(prefix) + r"[a-z0-9_]{8}")
    names = [entry.name for entry in os.scandir(parent) if ours.fullmatch(entry.name)]
    _sweep(
        (os.path.join(parent, name) for name in names),
        lambda path: os.path.join(path, _LOCK),
        lambda path: shutil.rmtree(path, ignore_errors=True),
    )
    folder = tempfile.mkdtemp(prefix=prefix, dir=parent)
    lock = os.open(os.path.join(folder, _LOCK), os.O_WRONLY | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    _held[folder] = lock
    return folder


def remove_folder(folder: str) -> None:
    """Remove a folder of `make_folder` with all that is in it; may be repeated."""
    shutil.rmtree(folder, ignore_errors=True)
    lock = _held.pop(folder, None)
    if lock is not None:
        os.close(lock)


def partial_name(path: str) -> str:
    """Return the hidden name of the unfinished output `path`, the same as the native side's."""
    return f"{_partial_prefix(path)}{os.getpid()}"


@contextlib.contextmanager
def partial_file(path: str) -> Iterator[str]:
    """Give a new, locked file of the hidden name; it is removed unless it was renamed.

    Raises:
        OSError: it cannot be made.
    """
    partial = partial_name(path)
    with open(partial, "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield partial
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(partial)


def sweep_partials(path: str) -> None:
    """Remove what killed processes left of the output `path`.

    Raises:
        OSError: its folder cannot be read, or a file not be removed.
    """
    folder, prefix = os.path.split(_partial_prefix(path))
    entries = [entry for entry in os.scandir(folder or ".") if entry.name.startswith(prefix)]
    _sweep((entry.path for entry in entries if entry.is_file()), lambda path: path, os.unlink)


def _partial_prefix(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.partial-")


def _sweep(
    paths: Iterable[str], lock_of: Callable[[str], str], remove: Callable[[str], object]
) -> None:
    """Remove those of `paths` whose locks nobody holds; what others own or removed is left."""
    for path in paths:
        try:
            with open(lock_of(path), "rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(path)
        except (BlockingIOError, FileNotFoundError, PermissionError):
            continue
