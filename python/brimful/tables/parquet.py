"""Parquet files as edge tables that stream their row groups page by page.

Invariant: the bytes of the largest pages are in `reserve_bytes`, before anything is read.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from brimful.errors import InputError, UsageError
from brimful.io.reader_errors import reader_errors
from brimful.io.remote import is_remote, open_file
from brimful.options.imports import EdgeColumns
from brimful.tables.directions import LOOKED_AT_ROWS, checked, decided, direction_column
from brimful.tables.edge_table import (
    ARROW_RESERVE_BYTES,
    EdgeTable,
    cast_batches,
    edge_schema,
    pick_columns,
    table_of,
)
from brimful.tables.parquet_pages import (
    Page,
    footer_chunks,
    longest_string,
    pages_of,
)

_BATCH_ROWS = 65_536
#: Rows of a batch with string ids, which a few bytes of a file may repeat from its dictionary: with
#: two columns of the longest ids, 64 KiB each, a batch takes 16 MiB.
_BATCH_NAMES = 128
#: Bytes of long string ids of one column that a batch may have.
_BATCH_BYTES = 8 << 20
_BUFFER_BYTES = 1 << 20
#: Pages that are read in full; of each further column chunk, only the first pages are read.
_MOST_PAGES = 1 << 17
#: Bytes that are read to name the format of a file that is not Parquet.
_LOOKED_AT_BYTES = 4096
#: Dictionaries up to this size hold no long strings.
_SMALL_DICTIONARY_BYTES = 64 << 10
#: Column chunks up to this size are covered by the reserve whatever their pages are.
_SMALL_CHUNK_BYTES = 4 << 20


def open_parquet(
    path: str,
    wanted: EdgeColumns,
    ids: str = "auto",
    stopped: threading.Event | None = None,
    *,
    directed: bool = True,
) -> EdgeTable:
    """Open a Parquet file as an edge table that streams its row groups page by page.

    `reserve_bytes` grows with the largest page of the columns, so that a file whose pages cannot
    fit is refused before any work. `stopped` ends a read from a store. With `directed`, every edge
    keeps its written direction.

    Raises:
        UsageError: The file has edges of both kinds.
        InputError: Not Parquet, missing columns, columns that are not integers.
        StoreIoError: The file cannot be read.
    """
    import pyarrow as pa

    from brimful import _native

    resources = contextlib.ExitStack()
    with contextlib.ExitStack() as on_error:
        on_error.push(resources)
        with reader_errors(path):
            if path == "-":
                raise UsageError("Parquet cannot be read from standard input; give a file")
            # A native file, which pyarrow reads without calls into Python.
            raw = resources.enter_context(
                open_file(path, stopped) if is_remote(path) else pa.OSFile(os.fsencode(path), "rb")
            )
            try:
                file = open_pages(raw)
            except pa.ArrowInvalid:
                with open_file(path) if is_remote(path) else pa.OSFile(path, "rb") as again:
                    foreign = _native.foreign_format(path, again.read(_LOOKED_AT_BYTES))
                raise InputError(
                    f"{path}: {foreign}"
                    if foreign and not foreign.startswith("this is Parquet")
                    else f"{path} is not a Parquet file or is cut off; write it again"
                ) from None
            schema = file.schema_arrow
            columns = pick_columns(path, schema.names, wanted)
            chosen = [columns.source, columns.target]
            if columns.weight is not None:
                chosen.append(columns.weight)
            target_schema = edge_schema(path, schema, columns)
            direction = None if directed else direction_column(schema, columns)
            if direction is not None:
                chosen.append(direction)
                file = open_pages(raw, file.metadata, [direction])
            chunks = chunks_of(file.metadata)
            needs = page_needs(chunks, raw, chosen, every_page=not is_remote(path))
            undirected = None
            if direction is not None:
                undirected = decided(path, direction, _first_values(file, raw, direction))
                if undirected is None:
                    chosen.remove(direction)
            has_strings = any(pa.types.is_string(item.type) for item in target_schema)
            batches = _batches(file, raw, chosen, needs, has_strings=has_strings)
            if direction is not None and undirected is not None:
                batches = checked(path, direction, undirected, batches)
        table = table_of(
            path,
            columns,
            target_schema,
            cast_batches(batches, target_schema),
            ids=ids,
            reserve_bytes=ARROW_RESERVE_BYTES + needs.page_bytes,
        )
        table.resources, table.undirected = resources, undirected
        on_error.pop_all()
        return table


def open_pages(raw: Any, metadata: Any = None, dictionaries: Sequence[str] = ()) -> Any:
    """Return a `pyarrow.parquet.ParquetFile` that reads one page after the other.

    Columns in `dictionaries` are read as such: their strings are not repeated.
    """
    import pyarrow.parquet as pq

    return pq.ParquetFile(
        raw,
        metadata=metadata,
        read_dictionary=list(dictionaries),
        pre_buffer=False,
        buffer_size=_BUFFER_BYTES,
        memory_map=False,
    )


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


def _first_values(file: Any, raw: Any, column: str) -> list[Any]:
    """Return the values of a column in the first rows."""
    raw.seek(0)
    values: list[Any] = []
    for batch in file.iter_batches(batch_size=LOOKED_AT_ROWS, columns=[column], use_threads=False):
        values += batch.column(0).to_pylist()
        if len(values) >= LOOKED_AT_ROWS:
            break
    return values[:LOOKED_AT_ROWS]


def _batches(
    file: Any, raw: Any, chosen: list[str], needs: PageNeeds, *, has_strings: bool
) -> Iterator[Any]:
    """Yield batches so small that their values take few bytes; `has_strings`: ids are strings.

    Dictionaries are read here, after the check of the budget.
    """
    rows, value_bytes = _BATCH_ROWS, max(needs.value_bytes, 1)
    if has_strings:
        longest = (longest_string(raw, chunk, page) for chunk, page in needs.dictionaries)
        value_bytes = max([value_bytes, *longest])
        rows = _BATCH_NAMES
    rows = max(1, min(rows, _BATCH_BYTES // value_bytes))
    raw.seek(0)
    yield from file.iter_batches(batch_size=rows, columns=chosen, use_threads=False)
