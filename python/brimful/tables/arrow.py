"""Arrow IPC files and streams as edge tables, one record batch at a time.

Invariant: the largest batch and all dictionaries are in `reserve_bytes`, before a batch is read.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from brimful.errors import UsageError
from brimful.io.reader_errors import reader_errors
from brimful.io.remote import is_remote, open_file
from brimful.options.imports import EdgeColumns
from brimful.tables.arrow_messages import has_only_blocks, memory_bytes, start_of
from brimful.tables.directions import direction_column, read_directions
from brimful.tables.edge_table import (
    ARROW_RESERVE_BYTES,
    EdgeTable,
    PickColumns,
    cast_batches,
    edge_schema,
    pick_columns,
    plain_strings,
    table_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

#: Bytes of rows for which the strings of a dictionary are expanded at once.
_DECODED_BYTES = 4 << 20


def open_arrow(
    path: str,
    wanted: EdgeColumns,
    ids: str = "auto",
    *,
    is_decided: bool = True,
    pick: PickColumns = pick_columns,
) -> EdgeTable:
    """Open an Arrow IPC file or stream as an edge table that streams its record batches.

    `reserve_bytes` grows with the largest batch, so that a file whose batches cannot fit is refused
    before any work. With `is_decided`, the user has chosen the direction.

    Raises:
        UsageError: The file has edges of both kinds.
        InputError: The file is not Arrow IPC or cut off, or columns are missing or no ids.
        StoreIoError: The file cannot be read.
    """
    import pyarrow as pa

    resources = contextlib.ExitStack()
    with contextlib.ExitStack() as on_error:
        on_error.push(resources)
        with reader_errors(path):
            if path == "-":
                raise UsageError("Arrow cannot be read from standard input; give a file")
            raw = resources.enter_context(
                open_file(path) if is_remote(path) else pa.OSFile(os.fsencode(path), "rb")
            )
            start = start_of(path, raw)
            largest_bytes = memory_bytes(path, raw, start)
            reader, read_batches = _reader(raw, start)
            resources.enter_context(reader)
            columns = pick(path, reader.schema.names, wanted)
            schema = edge_schema(path, reader.schema, columns)
            direction = None if is_decided else direction_column(reader.schema, columns)
            kept = schema.names + ([] if direction is None else [direction])
            rows = (
                part
                for batch in read_batches
                for part in parts_of(batch.select(kept), max(batch.num_rows, 1))
            )
            undirected, parts = read_directions(path, direction, rows)
        batches = cast_batches(parts, schema)
        reserve_bytes = ARROW_RESERVE_BYTES + largest_bytes
        table = table_of(path, columns, schema, batches, ids=ids, reserve_bytes=reserve_bytes)
        table.resources, table.undirected = resources, undirected
        on_error.pop_all()
        return table


def ipc_rows(paths: Sequence[str], names: Sequence[str] | None = None) -> pa.RecordBatchReader:
    """Return a reader of the rows of Arrow IPC files or streams, typed as those of the first.

    `names` are those of the columns to read; None: all.

    Raises:
        InputError: A file is not Arrow IPC, or cut off; or, when it is read, has other types.
        StoreIoError: It cannot be read.
    """
    import pyarrow as pa

    schema = ipc_schema(paths[0])
    if names is not None:
        schema = pa.schema([schema.field(name) for name in names])

    def batches() -> Iterator[Any]:
        for path in paths:
            with reader_errors(path), _open_ipc(path) as (_, read):
                for batch in read:
                    yield (batch if names is None else batch.select(names)).cast(schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def ipc_schema(path: str) -> pa.Schema:
    """Return the columns of an Arrow IPC file or stream.

    Raises:
        InputError: It is not Arrow IPC, or cut off.
        StoreIoError: It cannot be read.
    """
    with reader_errors(path), _open_ipc(path) as (schema, _):
        return schema


@contextlib.contextmanager
def _open_ipc(path: str) -> Iterator[tuple[pa.Schema, Iterator[Any]]]:
    """Yield the schema and the record batches of an Arrow IPC file or stream."""
    import pyarrow as pa

    with pa.OSFile(os.fsencode(path), "rb") as raw:
        reader, batches = _reader(raw, start_of(path, raw))
        with reader:
            yield reader.schema, batches


def parts_of(batch: Any, most: int) -> Iterator[Any]:
    """Yield a batch in parts of at most `most` rows, whose expanded strings are few bytes."""
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    longest = 0
    for column in map(plain_strings, batch.columns):
        if kinds.is_dictionary(column.type) and not kinds.is_integer(column.type.value_type):
            length = pc.max(pc.binary_length(column.dictionary)).as_py()
            longest = max(longest, length or 0)
    rows = min(most, max(_DECODED_BYTES // longest, 1) if longest else most)
    for first in range(0, batch.num_rows, rows):
        yield batch.slice(first, rows)


def _reader(raw: Any, start: int) -> tuple[Any, Iterator[Any]]:
    """Return pyarrow's reader of a file or stream, and its record batches."""
    import pyarrow as pa

    if has_only_blocks(raw, start):
        file = pa.ipc.open_file(raw)
        return file, (file.get_batch(number) for number in range(file.num_record_batches))
    raw.seek(start)
    stream = pa.ipc.open_stream(raw)
    return stream, iter(stream)
