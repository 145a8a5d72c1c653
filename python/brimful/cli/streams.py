"""Makes the standard streams safe if they are closed, full, or of another encoding."""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import NoReturn

from brimful.errors import StoreIoError

_ERRORS = "brimful"


def prepare() -> None:
    r"""Make the standard streams fit for any text, however this process was started.

    Closed descriptors are opened on the null device. Otherwise a file opened later could reuse the
    number of a closed descriptor, and receive the output for the terminal. Writing to a closed
    standard output fails, and messages for a closed standard error are dropped. A closed
    `sys.stdin` stays None. Characters that an encoding lacks are written as `\xe9`, and names of
    files that are not UTF-8 as bytes.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # The system gives out the lowest free descriptor, which is this one.
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or _wrapped(_Closed(1, "w", closefd=False))
    sys.stderr = sys.stderr or _null()
    codecs.register_error(_ERRORS, _escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ERRORS)


def end_output() -> None:
    """Close standard output; the unwritten rest is dropped."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.stdout = _null()


class _Closed(io.FileIO):
    """A standard output that was closed when the process started."""

    def write(self, data: object, /) -> NoReturn:
        """Refuse the data."""
        raise StoreIoError("standard output is closed; send it to a file or to /dev/null")


def _null() -> io.TextIOWrapper:
    """Return a stream to the null device, open until the process ends."""
    return _wrapped(io.FileIO(os.open(os.devnull, os.O_WRONLY), "w"))


def _wrapped(raw: io.FileIO) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8")


def _escaped(error: UnicodeError) -> tuple[str | bytes, int]:
    """Escape the characters that an encoding lacks (a handler of `codecs`)."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    characters = error.object[error.start : error.end]
    if all(0xDC80 <= ord(one) <= 0xDCFF for one in characters):
        return bytes(ord(one) - 0xDC00 for one in characters), error.end
    return codecs.backslashreplace_errors(error)
