"""Sizes of the column chunks and pages of Parquet files, read from their footers and headers.

Both are Thrift structs (Parquet format, `FileMetaData` and `PageHeader`). Nothing here needs
pyarrow but the dictionaries. Invariant: only a dictionary is decompressed, and no size may exceed
its column chunk.
"""

from __future__ import annotations

import itertools
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from brimful.tables.thrift import NoThriftError, ThriftReader

#: A file ends with the footer, its length and a magic word.
_MAGIC = b"PAR1"
_END = struct.Struct("<I4s")
#: The longest footer that is read without pyarrow, of some thousand column chunks. As objects of
#: Python it takes up to 80 times its bytes, where there is least memory.
_FOOTER_BYTES = 128 << 10
#: Bytes of a footer whose row groups are read one by one, which takes half a second.
_READ_BYTES = 1 << 20
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
#: Exceptions that a damaged footer raises.
_DAMAGE = (IndexError, KeyError, TypeError, AttributeError, UnicodeDecodeError, NoThriftError)
#: Pages that are read in full; of each further column chunk, only the first pages are read.
_MOST_PAGES = 1 << 17
#: Dictionaries up to this size hold no long strings.
_SMALL_DICTIONARY_BYTES = 64 << 10
#: Column chunks up to this size are covered by the reserve whatever their pages are.
_SMALL_CHUNK_BYTES = 4 << 20


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
    length = _footer_length(raw)
    if length is None or length > _FOOTER_BYTES:
        return None
    try:
        return [_chunk(column[3]) for column in _columns(ThriftReader(raw.read(length)))]
    except _DAMAGE:
        return None


def _footer_length(raw: Any) -> int | None:
    """Go to the footer of an open file, and return its bytes; None: the file has none."""
    size = raw.seek(0, os.SEEK_END)
    raw.seek(max(size - _END.size, 0))
    end = raw.read(_END.size)
    if len(end) < _END.size:
        return None
    length, magic = _END.unpack(end)
    if magic != _MAGIC or length > size - _END.size:
        return None
    raw.seek(size - _END.size - length)
    return int(length)


@dataclass(frozen=True)
class GroupNeeds:
    """Bytes of a footer, and of the chosen columns in a row group, with their number.

    `group_bytes` are uncompressed: the sum of the largest column chunks.
    """

    footer_bytes: int
    columns: int
    group_bytes: int


def known_group_needs(path: str, names: Sequence[str] | None) -> GroupNeeds | None:
    """Measure the columns with some names, None: all, of a file; pyarrow need not be loaded.

    A structure counts as several columns. Of a long footer, the first row groups are read. None if
    the footer is encrypted or damaged; pyarrow then raises the error.
    """
    with open(path, "rb") as raw:
        length = _footer_length(raw)
        if length is None:
            return None
        reader, largest = ThriftReader(raw.read(length)), dict[str, int]()
    chosen = None if names is None else set(names)
    try:
        for column in _columns(reader):
            name, size = column[3][3][0].decode(), _size(column[3][6])
            path_in_schema = b".".join(column[3][3]).decode()
            if reader.at > _READ_BYTES and path_in_schema in largest:
                break
            is_chosen = chosen is None or name in chosen
            largest[path_in_schema] = max(largest.get(path_in_schema, 0), size * is_chosen)
    except _DAMAGE:
        return None
    return GroupNeeds(length, sum(map(bool, largest.values())), sum(largest.values()))


def _columns(footer: ThriftReader) -> Iterator[Any]:
    """Yield the `ColumnChunk` of each column of each row group."""
    return footer.items(4, 1)


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


@dataclass(frozen=True)
class PageNeeds:
    """The bytes of decoding beyond small pages, and the average bytes of a value.

    Both are those of the largest pages. `dictionaries` are the pages that may hold a long string,
    which rows may repeat, each with its column chunk.
    """

    page_bytes: int
    value_bytes: int
    dictionaries: list[tuple[Any, Page]]


def chunks_of(metadata: Any) -> Iterator[Any]:
    """Yield the column chunks of a file, as pyarrow describes them."""
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for index in range(row_group.num_columns):
            yield row_group.column(index)


def known_page_bytes(path: str, chosen: Callable[[Sequence[str]], Sequence[str]]) -> int:
    """Return `PageNeeds.page_bytes` of a file on this machine; pyarrow need not be loaded.

    `chosen` picks the columns from their names. 0 if the footer cannot be read here.
    """
    with open(path, "rb") as raw:
        chunks = footer_chunks(raw)
        if chunks is None:
            return 0
        names = list(dict.fromkeys(chunk.path_in_schema for chunk in chunks))
        return page_needs(chunks, raw, chosen(names)).page_bytes


def page_needs(
    chunks: Iterable[Any],
    raw: Any,
    chosen: Sequence[str],
    *,
    every_page: bool = True,
    small_dictionary_bytes: int = _SMALL_DICTIONARY_BYTES,
) -> PageNeeds:
    """Measure the pages of the chosen columns; without `every_page` the first ones of each chunk.

    Dictionaries of more than `small_dictionary_bytes` are listed.

    Row groups are streamed page by page, so pages must fit. Most writers cut pages at 1 MiB, some
    only at the end of a column chunk or after a number of rows.
    """
    largest: dict[str, int] = {}
    value_bytes, looked_at = 0, 0
    dictionaries: list[tuple[Any, Page]] = []
    for chunk in chunks:
        column = chunk.path_in_schema
        if column not in chosen:
            continue
        whole = chunk.total_uncompressed_size + chunk.total_compressed_size
        pages = pages_of(raw, chunk)
        if not every_page or looked_at > _MOST_PAGES:
            # Only the dictionary and the first page of values.
            pages = itertools.islice(pages, 2)
        dictionary_bytes = values_bytes = 0
        try:
            for page in pages:
                looked_at += 1
                both = page.compressed + page.uncompressed
                is_first = dictionary_bytes == 0 and chunk.has_dictionary_page
                if is_first:
                    dictionary_bytes = both
                    if page.uncompressed > small_dictionary_bytes:
                        dictionaries.append((chunk, page))
                else:
                    values_bytes = max(values_bytes, both)
                value_bytes = max(value_bytes, page.uncompressed // max(page.values, 1))
        except (ValueError, OverflowError):
            # A damaged header: take the size of the whole chunk.
            values_bytes = whole
        # A page is compressed, then decompressed, then decoded: twice both is a bound.
        need = 2 * min(whole, dictionary_bytes + values_bytes)
        largest[column] = max(largest.get(column, 0), need)
    page_bytes = sum(need for need in largest.values() if need > _SMALL_CHUNK_BYTES)
    return PageNeeds(page_bytes, value_bytes, dictionaries)
