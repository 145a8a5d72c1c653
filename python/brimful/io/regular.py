"""Regular files and their folders: refusals of other kinds, errors of writing, durability."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from brimful.errors import BrimfulError, InputError, StoreIoError


def is_special(path: str) -> bool:
    """Return whether `path` is a pipe, a device or a socket."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def refuse_special(path: str, use: str) -> None:
    """Refuse a pipe or a device for a use: the opening of a pipe would wait for its writer.

    Raises:
        InputError: The path is a pipe, a device or a socket.
    """
    if is_special(path):
        raise InputError(
            f"{path} is not a regular file, and {use} needs random access; write it to a file first"
        )


def folder_around(path: str, use: str) -> str:
    """Return the folder of a file or folder to "write" or to "create".

    Raises:
        StoreIoError: There is no such folder.
    """
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise StoreIoError(f"cannot {use} {path}: there is no folder {folder}; create it first", 2)
    return folder


@contextlib.contextmanager
def writing_to(path: str) -> Iterator[None]:
    """Turn errors of the system while `path` is written into a `StoreIoError`."""
    try:
        yield
    except BrimfulError:
        raise
    except OSError as error:
        reason = error.strerror or " ".join(str(error).split())
        raise StoreIoError(f"cannot write {path}: {reason}", error.errno) from None


def sync_folder(folder: str) -> None:
    """Make the entries of a folder durable.

    Raises:
        OSError: The system refuses.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
