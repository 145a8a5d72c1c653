"""Files that are read from any place, or replaced as a whole: regular ones, and their folders."""

from __future__ import annotations

import os

from brimful.errors import InputError, StoreIoError


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
