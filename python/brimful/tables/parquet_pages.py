"""Sizes of the column chunks and pages of Parquet files, read from their footers and headers.

Both are Thrift structs (Parquet format, `FileMetaData` and `PageHeader`). Nothing here needs
pyarrow but the dictionaries. Invariant: only a dictionary is decompressed, and no size may exceed
its column chunk.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from brimful.tables.thrift import NoThriftError, ThriftReader

#: A file ends with the footer, its length and a magic word.
_MAGIC = b"PAR1"
_END = struct.Struct("<I4s")
#: The longest footer that is read without pyarrow, of some thousand column chunks. As objects of
#: Python it takes up to 80 times its bytes, where there is least memory.
_FOOTER_BYTES = 128 << 10
#: The largest size or offset in a file.
_MOST = 1 << 62
#: Bytes of a header that are read, one size after the other until it is whole: statistics of long
#: strings make some headers long.
_HEADER_BYTES = (64, 1 << 12, 1 << 20)
#: Fields of a page header: the sizes, and the structs that begin with the number of values.
_UNCOMPRESSED, _COMPRESSED = 2, 3
_KINDS = (5, 7, 8)
#: Codecs that Arrow names differently.
_CODECS = {"LZ4": "lz4_raw"}
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class Page:
    """A page: bytes of its header, compressed and uncompressed, and number of values."""

    header: int
    compressed: int
    uncompressed: int
    values: int


@dataclass(frozen=True)
class FooterChunk:
    """A column chunk, read from a footer, with the names that pyarrow gives its figures."""

    path_in_schema: str
    data_page_offset: int
    dictionary_page_offset: int | None
    total_compressed_size: int
    total_uncompressed_size: int

    @property
    def has_dictionary_page(self) -> bool:
        """Whether the chunk begins with a dictionary."""
        return self.dictionary_page_offset is not None


def footer_chunks(raw: Any) -> list[FooterChunk] | None:
    """Return the column chunks of an open file, without pyarrow.

    None if the footer is long, encrypted or damaged; pyarrow then raises the error.
    """
    size = raw.seek(0, os.SEEK_END)
    raw.seek(max(size - _END.size, 0))
    end = raw.read(_END.size)
    if len(end) < _END.size:
        return None
    length, magic = _END.unpack(end)
    if magic != _MAGIC or length > min(_FOOTER_BYTES, size - _END.size):
        return None
    raw.seek(size - _END.size - length)
    try:
        footer = ThriftReader(raw.read(length)).struct()
        return [_chunk(column[3]) for group in footer[4] for column in group[1]]
    except (IndexError, KeyError, TypeError, AttributeError, UnicodeDecodeError, NoThriftError):
        return None


def _chunk(fields: dict[int, Any]) -> FooterChunk:
    """Return a column chunk from the fields of its `ColumnMetaData`.

    Raises:
        KeyError, TypeError, AttributeError, UnicodeDecodeError: The fields are damaged.
    """
    return FooterChunk(
        path_in_schema=".".join(part.decode() for part in fields[3]),
        data_page_offset=_size(fields[9]),
        dictionary_page_offset=_size(fields[11]) if 11 in fields else None,
        total_compressed_size=_size(fields[7]),
        total_uncompressed_size=_size(fields[6]),
    )


def _size(value: Any) -> int:
    """Return a size or an offset.

    Raises:
        TypeError: `value` is not an integer, or out of range.
    """
    if type(value) is not int or not 0 <= value < _MOST:
        raise TypeError(value)
    return value


def pages_of(raw: Any, chunk: Any) -> Iterator[Page]:
    """Yield the pages of a column chunk of the open file `raw`.

    Raises:
        ValueError: A header is damaged.
    """
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
        start = min(start, chunk.dictionary_page_offset)
    end = start + chunk.total_compressed_size
    while start < end:
        page = page_at(raw, start)
        yield page
        start += page.header + page.compressed


def longest_string(raw: Any, chunk: Any, page: Page) -> int:
    """Return the bytes of the longest string of a dictionary, the first page of a column chunk.

    0 if it holds no strings, and the size of the page if it cannot be read; the reader of the rows
    then raises the error.
    """
    import pyarrow as pa

    if chunk.physical_type != "BYTE_ARRAY":
        return 0
    if (
        page.compressed > chunk.total_compressed_size
        or page.uncompressed > chunk.total_uncompressed_size
    ):
        return page.uncompressed
    raw.seek(chunk.dictionary_page_offset + page.header)
    data = raw.read(page.compressed)
    codec = _CODECS.get(chunk.compression, chunk.compression.lower())
    try:
        if codec != "uncompressed":
            data = pa.Codec(codec).decompress(data, page.uncompressed)
        longest = at = 0
        while at < page.uncompressed:
            (length,) = _LENGTH.unpack_from(data, at)
            longest = max(longest, length)
            at += _LENGTH.size + length
    except (OSError, ValueError, struct.error):
        return page.uncompressed
    return longest


def page_at(raw: Any, offset: int) -> Page:
    """Return the page at `offset`.

    Raises:
        ValueError: Its header is damaged.
    """
    for length in _HEADER_BYTES:
        raw.seek(offset)
        reader = ThriftReader(raw.read(length))
        try:
            header = reader.struct()
            kind = next((header[field] for field in _KINDS if field in header), {1: 0})
            sizes = (header[_COMPRESSED], header[_UNCOMPRESSED], kind[1])
            return Page(reader.at, *map(_size, sizes))
        except IndexError:
            continue
        except (KeyError, TypeError, NoThriftError):
            break
    raise ValueError(f"there is no page at byte {offset}")
