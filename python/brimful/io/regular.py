"""Files that are read from any place, or replaced as a whole: regular ones."""

from __future__ import annotations

import os

from brimful.errors import InputError


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
