"""Parquet files as edge tables that stream their row groups page by page.

Invariant: the bytes of the largest pages are in `reserve_bytes`, before anything is read.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from brimful.errors import InputError, UsageError
from brimful.io.reader_errors import reader_errors
from brimful.io.remote import is_remote, open_file
from brimful.options.imports import EdgeColumns
from brimful.tables.directions import LOOKED_AT_ROWS, decided, direction_column, of_one_kind
from brimful.tables.edge_table import (
    ARROW_RESERVE_BYTES,
    EdgeTable,
    PickColumns,
    cast_batches,
    edge_schema,
    pick_columns,
    table_of,
)
from brimful.tables.parquet_pages import (
    PageNeeds,
    chunks_of,
    longest_string,
    page_needs,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_BATCH_ROWS = 65_536
#: Rows of a batch with string ids, which a few bytes of a file may repeat from its dictionary: with
#: two columns of the longest ids, 64 KiB each, a batch takes 16 MiB.
_BATCH_NAMES = 128
#: Bytes of long string ids of one column that a batch may have.
_BATCH_BYTES = 8 << 20
_BUFFER_BYTES = 1 << 20
#: Bytes that are read to name the format of a file that is not Parquet.
_LOOKED_AT_BYTES = 4096


def open_parquet(
    path: str,
    wanted: EdgeColumns,
    ids: str = "auto",
    stopped: threading.Event | None = None,
    *,
    is_decided: bool = True,
    pick: PickColumns = pick_columns,
) -> EdgeTable:
    """Open a Parquet file as an edge table that streams its row groups page by page.

    `reserve_bytes` grows with the largest page of the columns, so that a file whose pages cannot
    fit is refused before any work. `stopped` ends a read from a store. With `is_decided`, the user
    has chosen the direction.

    Raises:
        UsageError: The file has edges of both kinds.
        InputError: Not Parquet, missing columns, columns that are not integers.
        StoreIoError: The file cannot be read.
    """
    import pyarrow as pa

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
                raise _no_parquet(path) from None
            schema = file.schema_arrow
            columns = pick(path, schema.names, wanted)
            chosen = [columns.source, columns.target]
            if columns.weight is not None:
                chosen.append(columns.weight)
            target_schema = edge_schema(path, schema, columns)
            direction = None if is_decided else direction_column(schema, columns)
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
                batches = of_one_kind(path, direction, undirected, batches)
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


def _no_parquet(path: str) -> InputError:
    """Return the error about a file that is not Parquet, with its format if that is known."""
    import pyarrow as pa

    from brimful import _native

    with open_file(path) if is_remote(path) else pa.OSFile(os.fsencode(path), "rb") as file:
        foreign = _native.foreign_format(path, file.read(_LOOKED_AT_BYTES))
    if foreign and not foreign.startswith("this is Parquet"):
        return InputError(f"{path}: {foreign}")
    return InputError(f"{path} is not a Parquet file or is cut off; write it again")


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


def parquet_schema(path: str) -> pa.Schema:
    """Return the columns of a Parquet file as they were written, as `written_schema`."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        return written_schema(file)


def written_schema(file: pq.ParquetFile) -> pa.Schema:
    """Return the columns of a file as they were written: Parquet itself knows no seconds.

    Like other writers, pyarrow keeps the Arrow schema under the key below. A program that changes
    columns may keep that of others.
    """
    import base64

    import pyarrow as pa

    schema = file.schema_arrow
    if noted := (file.metadata.metadata or {}).get(b"ARROW:schema"):
        written = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(noted)))
        schema = written if written.names == schema.names else schema
    # Other metadata, of Parquet and pandas, is dropped: it is not the user's.
    return schema.remove_metadata()


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
