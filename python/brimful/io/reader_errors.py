"""Turns errors of reading a table into brimful's own.

Invariant: every error names the file, and no error of pyarrow or a codec reaches the caller.
"""

from __future__ import annotations

import contextlib
import lzma
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from brimful.errors import BrimfulError, InputError, StoreIoError
from brimful.io.remote import is_remote

if TYPE_CHECKING:
    import pyarrow


@contextlib.contextmanager
def reader_errors(name: str, lines_before: int = 0) -> Iterator[None]:
    """Turn the errors of pyarrow, zlib, lzma and the system into brimful's, naming the file.

    pyarrow counts the rows of a block from 1; `lines_before` makes them lines of the file.
    """
    import pyarrow as pa

    try:
        yield
    except BrimfulError:
        raise
    except (EOFError, lzma.LZMAError):
        raise InputError(
            f"{name} is truncated or its compression is broken; copy or download it again"
        ) from None
    except MemoryError as error:
        sentence = " ".join(str(error).split())
        raise StoreIoError(
            f"the system refused memory to read {name} ({sentence}); raise 'ulimit -v', or lower "
            "--budget"
        ) from None
    except (pa.ArrowException, UnicodeDecodeError) as error:
        sentence = re.sub(
            r"Row #(\d+)",
            lambda row: f"line {int(row[1]) + lines_before}",
            " ".join(str(error).split()),
        )
        raise InputError(f"{name} cannot be read: {sentence}") from None
    except FileNotFoundError:
        raise InputError(f"{name} does not exist; check the path") from None
    except IsADirectoryError:
        raise InputError(f"{name} is a directory; name a file in it") from None
    except OSError as error:
        sentence = " ".join(str(error).split())
        if error.errno is None and is_remote(name):
            raise StoreIoError(f"cannot read {name}: {sentence}") from None
        if error.errno is None:  # from pyarrow, not the system: a codec or a page
            raise InputError(
                f"{name} is truncated or damaged ({sentence.rstrip('.')}); copy or write it again"
            ) from None
        raise StoreIoError(
            f"cannot read {name}: {error.strerror or sentence}", error.errno
        ) from None


def stream_reader(table: Any, name: str) -> pyarrow.RecordBatchReader:
    """Return a reader of an object with `__arrow_c_stream__`, of any package.

    Raises:
        InputError: Its columns cannot be columns of Arrow.
        BrimfulError: It is an object of this package, whose stream raised the error.
    """
    import pyarrow as pa

    try:
        return pa.RecordBatchReader.from_stream(table)
    except BrimfulError:
        raise
    except (pa.ArrowException, TypeError, ValueError) as error:
        sentence = " ".join("; ".join(map(str, error.args)).split())
        raise InputError(
            f"{name} cannot be converted to an Arrow table ({sentence}); give each column a unique "
            "name and a single type that Arrow supports"
        ) from error
