"""The user's cache directory: graphs of inputs, copies of remote graphs, and compiled code."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable, Iterator

from brimful.errors import StoreIoError

#: Called with one sentence that the user should see.
Notify = Callable[[str], object]


def cache_directory() -> str:
    """Return the user's cache directory for graphs, created when missing.

    Raises:
        StoreIoError: The folder cannot be created.
    """
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(base, "brimful")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise StoreIoError(f"cannot create {folder}: {error.strerror}", error.errno) from None
    return folder


@contextlib.contextmanager
def locked(path: str, waiting: str, notify: Notify) -> Iterator[None]:
    """Lock a file, so that only one process at a time does the work for it.

    `waiting` is the sentence for the user while another process works.

    Raises:
        StoreIoError: The file cannot be locked.
    """
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            notify(waiting)
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            # Some network file systems lock only files that are open for writing, or none.
            if error.errno not in (errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP):
                raise StoreIoError(f"cannot lock {path}: {error.strerror}", error.errno) from None
        yield
