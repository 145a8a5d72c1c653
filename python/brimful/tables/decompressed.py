"""Files of text, decompressed if their first bytes show a compression, whatever their name."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import re
import zlib
from collections.abc import Iterator
from typing import IO, Any

from brimful.errors import BrimfulError, InputError, StoreIoError

#: The first bytes of compressed files, as the native module knows them.
_STARTS = {
    "gzip": re.compile(rb"\x1f\x8b\x08"),
    "xz": re.compile(rb"\xfd7zXZ\0"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
    "bzip2": re.compile(rb"BZh[1-9](?:1A|\x17r)"),
}
_START_BYTES = 6
_OPENERS: dict[str, Any] = {"gzip": gzip.open, "xz": lzma.open, "bzip2": bz2.open}


def compression(path: str) -> str | None:
    """Return the compression of a file: gzip, xz, zstd, bzip2; None: it has none.

    Raises:
        StoreIoError: The file cannot be read.
    """
    if not os.path.isfile(path):
        # The first bytes of a pipe would be lost.
        return None
    with _errors(path), open(path, "rb") as file:
        start = file.read(_START_BYTES)
    return next((name for name, first in _STARTS.items() if first.match(start)), None)


@contextlib.contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """Yield a file of text, decompressed.

    Raises:
        InputError: Its compression is truncated or damaged.
        StoreIoError: It cannot be read.
    """
    import pyarrow as pa

    kind = compression(path)
    with _errors(path):
        if kind == "zstd":
            with pa.input_stream(path, compression="zstd") as stream:
                yield stream
        else:
            with _OPENERS.get(kind or "", open)(path, "rb") as file:
                yield file


@contextlib.contextmanager
def _errors(path: str) -> Iterator[None]:
    try:
        yield
    except BrimfulError:
        raise
    except (EOFError, lzma.LZMAError, zlib.error) as error:
        raise InputError(f"{path} is truncated or damaged: {error}") from None
    except OSError as error:
        if error.errno is None:
            # Decompressors have no number for damage.
            raise InputError(f"{path} is truncated or damaged: {error}") from None
        raise StoreIoError(f"cannot read {path}: {error.strerror}", error.errno) from None
