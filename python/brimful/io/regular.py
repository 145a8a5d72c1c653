"""Files that are read from any place, or replaced as a whole: regular ones."""

from __future__ import annotations

import os

from brimful.errors import InputError


def is_special(path: str) -> bool:
    """Return whether `path` is a pipe, a device or a socket."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def refuse_special(path: str, what: str) -> None:
    """Refuse a pipe or a device as `what`; to open it would wait for the writer of a pipe.

    Raises:
        InputError: It is one.
    """
    if is_special(path):
        raise InputError(
            f"{path} is not a regular file, and {what} needs random access; write it to a file "
            "first"
        )
