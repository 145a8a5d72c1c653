"""Temporary folders and unfinished files, removed by their owner or by the next start.

Each is locked while its owner lives: that tells one in use from one left behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from brimful.errors import UsageError

#: How every file of a graph begins.
_MAGIC = b"BRIMFUL\n"
_LOCK = ".brimful-temporary"
#: The locks of folders that this process made, or the one it was forked from, by path.
_held: dict[str, _Held] = {}


class _Held(NamedTuple):
    """The lock of a folder, and the process that made the folder."""

    lock: int
    owner: int


def make_folder(prefix: str, parent: str | os.PathLike[str] | None = None) -> str:
    """Make a folder in `parent` (None: the system's for temporary files) for `remove_folder`.

    Folders of that prefix whose owners were killed are removed first.
    """
    parent = tempfile.gettempdir() if parent is None else os.fspath(parent)
    ours = re.compile(re.escape(prefix) + r"[a-z0-9_]{8}")
    entries = [entry for entry in os.scandir(parent) if ours.fullmatch(entry.name)]
    _sweep(
        (entry for entry in entries if entry.is_dir(follow_symlinks=False)),
        lambda path: os.path.join(path, _LOCK),
        _remove_tree,
    )
    folder = tempfile.mkdtemp(prefix=prefix, dir=parent)
    # Under its name only once it is locked: a sweep passes over a folder without a lock.
    name = os.path.join(folder, _LOCK)
    lock = os.open(name + ".new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.rename(name + ".new", name)
    _held[folder] = _Held(lock, os.getpid())
    return folder


def remove_folder(folder: str) -> None:
    """Remove a folder of `make_folder` with all that is in it; may be repeated.

    A forked child only lets go of it: the folder is its parent's.
    """
    held = _held.pop(folder, None)
    if held is None or held.owner == os.getpid():
        _remove_tree(folder)
    if held is not None:
        os.close(held.lock)


def refuse_in_graph(path: str) -> None:
    """Refuse an output inside a graph directory, whose files it could replace or change.

    Raises:
        UsageError: The path lies inside a graph.
    """
    folder = os.path.dirname(os.path.realpath(path))
    pointer = os.path.join(folder, "current")
    # Opening a pipe would wait for its writer.
    if not os.path.isfile(pointer):
        return
    with contextlib.suppress(OSError), open(pointer, "rb") as file:
        if file.read(len(_MAGIC)) == _MAGIC:
            raise UsageError(
                f"{path} is inside the graph directory {folder}; name a file elsewhere"
            )


def partial_name(path: str) -> str:
    """Return a new hidden name of the unfinished output `path`, in the native side's style."""
    return f"{_partial_prefix(path)}{os.getpid()}-{secrets.token_hex(8)}"


@contextlib.contextmanager
def partial_file(path: str) -> Iterator[str]:
    """Give a new, locked file of the hidden name; it is removed unless it was renamed.

    Raises:
        OSError: The folder cannot be made.
    """
    partial, owner = partial_name(path), os.getpid()
    with open(partial, "xb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield partial
        finally:
            # A forked child leaves the file to its parent.
            if os.getpid() == owner:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(partial)


def sweep_partials(path: str) -> None:
    """Remove what killed processes left of the output `path`.

    Raises:
        OSError: Its folder cannot be read, or a file not be removed.
    """
    folder, prefix = os.path.split(_partial_prefix(path))
    entries = [entry for entry in os.scandir(folder or ".") if entry.name.startswith(prefix)]
    _sweep(
        (entry for entry in entries if entry.is_file(follow_symlinks=False)),
        lambda path: path,
        os.unlink,
    )


def _partial_prefix(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.partial-")


def _remove_tree(folder: str) -> None:
    """Remove a folder, its lock last: if that ends early, the next sweep continues."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            elif entry.name != _LOCK:
                os.unlink(entry.path)
    shutil.rmtree(folder, ignore_errors=True)


def _sweep(
    entries: Iterable[os.DirEntry[str]],
    lock_of: Callable[[str], str],
    remove: Callable[[str], object],
) -> None:
    """Remove the `entries` whose locks are free; those of other users are left."""
    for entry in entries:
        try:
            if entry.stat(follow_symlinks=False).st_uid == os.geteuid():
                with open(lock_of(entry.path), "rb", opener=_open_unfollowed) as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    remove(entry.path)
        except (BlockingIOError, FileNotFoundError, PermissionError):
            continue


def _open_unfollowed(path: str, flags: int) -> int:
    """Open for `open`; neither waits for the other end of a pipe nor follows a link."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW)
