"""Files of text, decompressed if their first bytes show a compression, whatever their name."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import zlib
from collections.abc import Iterator
from typing import IO, Any

from brimful.errors import BrimfulError, InputError, StoreIoError

_OPENERS: dict[str | None, Any] = {"gz": gzip.open, "xz": lzma.open, "bz2": bz2.open}


def compression(path: str) -> str | None:
    """Return the compression of a file: gz, xz, zst, bz2; None: it has none.

    Raises:
        StoreIoError: The file cannot be read.
    """
    from brimful import _native

    # The first bytes of a pipe would be lost.
    return _native.compression(path) if os.path.isfile(path) else None


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
        if kind == "zst":
            with pa.input_stream(path, compression="zstd") as stream:
                yield stream
        else:
            with _OPENERS.get(kind, open)(path, "rb") as file:
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
