"""A hard memory limit for a child process, by cgroup v1 or v2, where this machine allows it."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

_ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Limit:
    """A cgroup with a memory limit."""

    folder: Path
    version: int

    def enter(self) -> None:
        """Move the calling process into the group: for `preexec_fn`."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def killed(self) -> bool:
        """Return whether the kernel killed a process of the group for its memory."""
        name = "memory.oom_control" if self.version == 1 else "memory.events"
        for line in (self.folder / name).read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == "oom_kill":
                return int(value) > 0
        return False


@contextlib.contextmanager
def hard_limit(limit_bytes: int) -> Iterator[Callable[[], None]]:
    """Give a `preexec_fn` that puts a child under `limit_bytes` without swap; skips aloud.

    On leaving, insists that the kernel had to kill nothing.
    """
    limit = _make(limit_bytes)
    try:
        yield limit.enter
        assert not limit.killed(), f"the kernel killed the command at {limit_bytes} bytes"
    finally:
        for _ in range(50):
            try:
                limit.folder.rmdir()
                break
            except OSError:
                time.sleep(0.1)


def _make(limit_bytes: int) -> Limit:
    name = f"brimful-test-{uuid.uuid4().hex[:12]}"
    reasons = []
    for version, parent in _parents():
        folder = parent / name
        try:
            folder.mkdir()
        except OSError as error:
            reasons.append(f"{parent}: {error.strerror}")
            continue
        try:
            if version == 1:
                (folder / "memory.limit_in_bytes").write_text(str(limit_bytes))
                with contextlib.suppress(OSError):
                    (folder / "memory.memsw.limit_in_bytes").write_text(str(limit_bytes))
            else:
                (folder / "memory.max").write_text(str(limit_bytes))
                with contextlib.suppress(OSError):
                    (folder / "memory.swap.max").write_text("0")
            return Limit(folder, version)
        except OSError as error:
            folder.rmdir()
            reasons.append(f"{folder}: {error.strerror}")
    pytest.skip(
        "SKIPPED: no cgroup memory limit can be set here, so the budget is not tested against the "
        "kernel (" + ("; ".join(reasons) or "no memory controller is mounted") + ")"
    )


def _parents() -> Iterator[tuple[int, Path]]:
    """Yield the groups below which a limit may be possible: (version, folder)."""
    own = Path("/proc/self/cgroup")
    if not own.exists():
        return
    for line in own.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            for folder in (_ROOT / "memory" / path.lstrip("/"), _ROOT / "memory"):
                if (folder / "memory.limit_in_bytes").exists():
                    yield 1, folder
        elif controllers == "":
            for folder in (_ROOT / path.lstrip("/"), _ROOT):
                control = folder / "cgroup.subtree_control"
                if control.exists() and "memory" in control.read_text().split():
                    yield 2, folder
