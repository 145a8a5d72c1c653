"""Parquet files as edge tables that stream their row groups page by page.

Invariant: what the largest pages take is in `reserve_bytes`, before anything is read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from brimful.errors import InputError, UsageError
from brimful.reader_errors import reader_errors
from brimful.remote import is_remote, open_file
from brimful.tables import (
    ARROW_RESERVE_BYTES,
    EdgeColumns,
    EdgeTable,
    cast_batches,
    column_ids,
    edge_schema,
    guarded,
    pick_columns,
)

_BATCH_ROWS = 65_536
_BUFFER_BYTES = 1 << 20
#: Column chunks up to this size are covered by the reserve whatever their pages are.
_SMALL_CHUNK_BYTES = 4 << 20


def open_parquet(path: str, wanted: EdgeColumns, ids: str = "auto") -> EdgeTable:
    """Open a Parquet file as an edge table that streams its row groups page by page.

    `reserve_bytes` grows with the largest page of the columns, so that a file whose pages cannot
    fit is refused before any work.

    Raises:
        InputError: not Parquet, missing columns, columns that are no integers.
        StoreIoError: the file cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    resources = contextlib.ExitStack()
    with contextlib.ExitStack() as on_error:
        on_error.push(resources)
        with reader_errors(path):
            if path == "-":
                raise UsageError("Parquet cannot be read from standard input; give a file")
            # A native file: pyarrow reads it without calling back into Python.
            raw = resources.enter_context(
                open_file(path) if is_remote(path) else pa.OSFile(path, "rb")
            )
            try:
                file = pq.ParquetFile(
                    raw, pre_buffer=False, buffer_size=_BUFFER_BYTES, memory_map=False
                )
            except pa.ArrowInvalid:
                raise InputError(
                    f"{path} is not a Parquet file or is cut off; write it again"
                ) from None
            schema = file.schema_arrow
            columns = pick_columns(path, schema.names, wanted)
            assert columns.source is not None and columns.target is not None
            chosen = [columns.source, columns.target]
            if columns.weight is not None:
                chosen.append(columns.weight)
            target_schema = edge_schema(path, schema, columns)
            page_bytes = _largest_pages(file.metadata, raw, chosen)
            raw.seek(0)
            batches = file.iter_batches(batch_size=_BATCH_ROWS, columns=chosen, use_threads=False)
        table = EdgeTable(
            path,
            columns.source,
            columns.target,
            columns.weight,
            None,
            ARROW_RESERVE_BYTES + page_bytes,
            ids=column_ids(path, target_schema, ids),
        )
        table.reader = guarded(table, target_schema, cast_batches(batches, target_schema))
        table.resources = resources
        on_error.pop_all()
        return table


def _largest_pages(metadata: Any, raw: Any, chosen: Sequence[str]) -> int:
    """Return the bytes that decoding the largest pages of the chosen columns takes, beyond small.

    Row groups are streamed page by page, so a page is what must fit. Most writers cut pages at
    1 MiB, some at a whole column chunk.
    """
    largest: dict[str, int] = {}
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for index in range(row_group.num_columns):
            chunk = row_group.column(index)
            column = chunk.path_in_schema
            if column not in chosen:
                continue
            need = chunk.total_uncompressed_size + chunk.total_compressed_size
            if need > max(_SMALL_CHUNK_BYTES, largest.get(column, 0)):
                pages = _page_bytes(raw, chunk.data_page_offset)
                if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
                    pages += _page_bytes(raw, chunk.dictionary_page_offset)
                # A page is compressed, then decompressed, then decoded: twice both is a bound.
                need = min(need, pages) * 2
                largest[column] = max(largest.get(column, 0), need)
    return sum(need for need in largest.values() if need > _SMALL_CHUNK_BYTES)


def _page_bytes(raw: Any, offset: int) -> int:
    """Return compressed plus uncompressed size of the Parquet page at `offset`.

    A page begins with a Thrift compact struct whose first three fields are 32-bit integers: the
    kind, the uncompressed size and the compressed size (Parquet format, `PageHeader`). A header
    that reads otherwise counts as unbounded; the size of the chunk then decides.
    """
    raw.seek(offset)
    header = raw.read(32)
    position = 0
    values: list[int] = []
    for _ in range(3):
        # Field id one higher than the last, type i32.
        if position >= len(header) or header[position] != 0x15:
            return 1 << 62
        position += 1
        value = shift = 0
        while position < len(header):
            byte = header[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        values.append((value >> 1) ^ -(value & 1))
    return max(0, values[1]) + max(0, values[2])
