"""Sizes of the pages of Parquet files, read from their headers.

A page begins with a Thrift compact struct (Parquet format, `PageHeader`); unneeded fields are
skipped. Invariant: only a dictionary is decompressed, and no size may exceed its column chunk.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

#: Bytes of a header that are read, one size after the other until it is whole: statistics of long
#: strings make some headers long.
_HEADER_BYTES = (64, 1 << 12, 1 << 20)
#: Field numbers of a page header.
_UNCOMPRESSED, _COMPRESSED = 2, 3
_KINDS = (5, 7, 8)
#: Codecs that Arrow names differently.
_CODECS = {"LZ4": "lz4_raw"}
_LENGTH = struct.Struct("<I")
#: Types of Thrift's compact protocol.
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_NUMBERS = (4, 5, 6)


@dataclass(frozen=True)
class Page:
    """A page: bytes of its header, compressed and uncompressed, and number of values."""

    header: int
    compressed: int
    uncompressed: int
    values: int


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
        header = _Struct(raw.read(length))
        try:
            fields, values = header.read_page()
        except IndexError:
            continue
        except _NoThriftError:
            break
        compressed, uncompressed = fields.get(_COMPRESSED, -1), fields.get(_UNCOMPRESSED, -1)
        if min(compressed, uncompressed, values) < 0:
            break
        return Page(header.at, compressed, uncompressed, values)
    raise ValueError(f"there is no page at byte {offset}")


class _NoThriftError(Exception):
    """A type that Thrift's compact protocol does not have."""


class _Struct:
    """A Thrift struct in the compact protocol, read from front to back.

    Its methods raise `IndexError` beyond the end of the bytes, and `_NoThriftError`.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def read_page(self) -> tuple[dict[int, int], int]:
        """Return the numbers of the page header by field, and how many values the page has."""
        fields, values = {}, 0
        for field, kind in self._fields():
            if kind in _NUMBERS:
                fields[field] = self._number()
            elif kind == _STRUCT and field in _KINDS:
                values = self._first_number()
            else:
                self._skip(kind)
        return fields, values

    def _first_number(self) -> int:
        """Return the first field of the struct here, or 0 if it is no number."""
        first = 0
        for field, kind in self._fields():
            if field == 1 and kind in _NUMBERS:
                first = self._number()
            else:
                self._skip(kind)
        return first

    def _fields(self) -> Iterator[tuple[int, int]]:
        last = 0
        while head := self._byte():
            last = last + (head >> 4) if head >> 4 else self._number()
            yield last, head & 15

    def _byte(self) -> int:
        byte = self._data[self.at]
        self.at += 1
        return byte

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def _number(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _skip(self, kind: int) -> None:
        if kind in (_TRUE, _FALSE):
            return
        if kind == _BYTE:
            self.at += 1
        elif kind in _NUMBERS:
            self._varint()
        elif kind == _DOUBLE:
            self.at += 8
        elif kind == _BINARY:
            # Two steps: `self.at += self._varint()` would lose the advance that `_varint` makes.
            length = self._varint()
            self.at += length
        elif kind in (_LIST, _SET):
            head = self._byte()
            count = self._varint() if head >> 4 == 15 else head >> 4
            self._skip_items(count, head & 15)
        elif kind == _MAP:
            count = self._varint()
            kinds = self._byte() if count else 0
            for _ in range(count):
                self._skip_items(1, kinds >> 4)
                self._skip_items(1, kinds & 15)
        elif kind == _STRUCT:
            for _, inner in self._fields():
                self._skip(inner)
        else:
            raise _NoThriftError(kind)

    def _skip_items(self, count: int, kind: int) -> None:
        """Skip items of a list, where a truth value takes a byte."""
        for _ in range(count):
            self._skip(_BYTE if kind in (_TRUE, _FALSE) else kind)
