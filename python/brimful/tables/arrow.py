"""Arrow IPC files and streams as edge tables, one record batch at a time.

A file is a stream between two magic words, so that one reader serves both (Arrow columnar format,
section "IPC File Format"). Only a file of Polars has its messages at the places that the footer
names. Invariant: the largest batch and all dictionaries are in `reserve_bytes`, before a batch is
read.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from brimful.errors import InputError, UsageError
from brimful.io.reader_errors import reader_errors
from brimful.io.remote import is_remote, open_file
from brimful.options.imports import EdgeColumns
from brimful.tables.directions import direction_column, read_directions
from brimful.tables.edge_table import (
    ARROW_RESERVE_BYTES,
    EdgeTable,
    cast_batches,
    edge_schema,
    pick_columns,
    plain_strings,
    table_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

_MAGIC = b"ARROW1"
#: The word that begins a message; older writers omit it.
_CONTINUATION = 0xFFFFFFFF
#: The most bytes of metadata; longer metadata is taken as damaged.
_METADATA_BYTES = 64 << 20
#: Batches up to this size are covered by the reserve.
_SMALL_BATCH_BYTES = 4 << 20
#: Bytes of rows for which the strings of a dictionary are expanded at once.
_DECODED_BYTES = 4 << 20
_DICTIONARY, _RECORDS = 2, 3


def load_pandas() -> None:
    """Load pandas, if it is installed, before pyarrow does so with the first array or scalar.

    pyarrow drops an interruption of the import, and the work would go on.
    """
    with contextlib.suppress(ImportError):
        import pandas  # noqa: F401


def open_arrow(
    path: str, wanted: EdgeColumns, ids: str = "auto", *, directed: bool = True
) -> EdgeTable:
    """Open an Arrow IPC file or stream as an edge table that streams its record batches.

    `reserve_bytes` grows with the largest batch, so that a file whose batches cannot fit is refused
    before any work. With `directed`, every edge keeps its written direction.

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
                open_file(path) if is_remote(path) else pa.OSFile(path, "rb")
            )
            start = start_of(path, raw)
            largest_bytes = memory_bytes(path, raw, start)
            reader, read_batches = _reader(raw, start)
            resources.enter_context(reader)
            columns = pick_columns(path, reader.schema.names, wanted)
            schema = edge_schema(path, reader.schema, columns)
            direction = None if directed else direction_column(reader.schema, columns)
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


def start_of(path: str, raw: Any) -> int:
    """Return the offset of the first message: after the magic word of a file, 0 in a stream.

    Raises:
        InputError: The file is cut off, or of another format.
    """
    head = raw.read(8)
    if not head.startswith(_MAGIC):
        if len(head) < 8 or struct.unpack("<I", head[:4])[0] != _CONTINUATION:
            raise InputError(f"{path} is not an Arrow IPC file or stream; write it again")
        return 0
    size = _size(raw)
    raw.seek(max(size - len(_MAGIC), 0))
    if raw.read(len(_MAGIC)) != _MAGIC or size < 2 * len(_MAGIC):
        raise InputError(f"{path} is an Arrow IPC file that was cut off; write it again")
    return 8


def _reader(raw: Any, start: int) -> tuple[Any, Iterator[Any]]:
    """Return pyarrow's reader of a file or stream, and its record batches."""
    import pyarrow as pa

    if _has_only_blocks(raw, start):
        file = pa.ipc.open_file(raw)
        return file, (file.get_batch(number) for number in range(file.num_record_batches))
    raw.seek(start)
    stream = pa.ipc.open_stream(raw)
    return stream, iter(stream)


def _has_only_blocks(raw: Any, start: int) -> bool:
    """Return whether no message follows the magic word of a file, so that the footer is needed."""
    raw.seek(start)
    return start > 0 and raw.read(4) != struct.pack("<I", _CONTINUATION)


def _blocks(raw: Any, size: int) -> Iterator[int]:
    """Yield the offsets of dictionaries and record batches in the footer (`format/File.fbs`).

    Raises:
        struct.error, IndexError: The footer is damaged.
    """
    end = size - 4 - len(_MAGIC)
    raw.seek(max(end, 0))
    length = struct.unpack("<i", raw.read(4))[0]
    if not 0 < length <= min(_METADATA_BYTES, end):
        raise IndexError(length)
    raw.seek(end - length)
    footer = raw.read(length)
    root = _u32(footer, 0)
    for field in (2, 3):
        if _at(footer, root, field):
            blocks = _table(footer, root, field)
            for number in range(_u32(footer, blocks)):
                offset: int = struct.unpack_from("<q", footer, blocks + 4 + 24 * number)[0]
                if not 0 < offset < size:
                    raise IndexError(offset)
                yield offset


def _size(raw: Any) -> int:
    raw.seek(0, os.SEEK_END)
    size: int = raw.tell()
    return size


def batch_bytes(path: str) -> int:
    """Return `memory_bytes` of a file on this machine; pyarrow need not be loaded.

    Raises:
        InputError: As `memory_bytes`, or the file is of another format.
    """
    with open(path, "rb") as raw:
        return memory_bytes(path, raw, start_of(path, raw))


def memory_bytes(path: str, raw: Any, position: int) -> int:
    """Return the bytes that the largest batch and all dictionaries take, beyond small ones.

    Raises:
        InputError: A message is damaged, or reaches beyond the end of the file.
    """
    size, largest, dictionaries = _size(raw), 0, 0

    def broken(found: str) -> InputError:
        return InputError(
            f"{path} is cut off or damaged at byte {position:,}: {found}; write it again"
        )

    blocks: Iterator[int] | None = None
    if _has_only_blocks(raw, position):
        try:
            blocks = iter(list(_blocks(raw, size)))
        except (struct.error, IndexError):
            raise broken("neither a message nor a footer") from None
        position = next(blocks, size)
    while position < size:
        raw.seek(position)
        prefix = raw.read(8)
        if len(prefix) < 8:
            raise broken("half the length of a message")
        mark, length = struct.unpack("<Ii", prefix)
        if mark != _CONTINUATION:
            raise broken("no message begins here")
        if length == 0:
            break
        if not 0 < length <= min(_METADATA_BYTES, size - position):
            raise broken(f"a message with {length:,} bytes of metadata")
        try:
            kind, body, decoded = _message(raw, raw.read(length), position + 8 + length)
        except (struct.error, IndexError):
            raise broken("metadata that contradicts itself") from None
        position += 8 + length
        if not 0 <= body <= size - position:
            raise broken(f"a message of {body:,} bytes")
        position = position + body if blocks is None else next(blocks, size)
        # Twice: reading may decompress a batch, and may then convert its columns.
        need = 2 * (body + decoded)
        if kind == _DICTIONARY:
            dictionaries += need
        elif kind == _RECORDS:
            largest = max(largest, need)
    need = largest + dictionaries
    return need if need > _SMALL_BATCH_BYTES else 0


def _message(raw: Any, metadata: bytes, body: int) -> tuple[int, int, int]:
    """Return the kind of a message, the bytes of its body, and those that decompressing gives.

    The metadata is a FlatBuffer (`format/Message.fbs`), of which four fields are read.

    Raises:
        struct.error, IndexError: The metadata is damaged.
    """
    message = _u32(metadata, 0)
    kind = _field(metadata, message, 1, "<B")
    length = _field(metadata, message, 3, "<q")
    batch = _table(metadata, message, 2)
    if kind == _DICTIONARY:
        batch = _table(metadata, batch, 1)
    if kind not in (_DICTIONARY, _RECORDS) or not _at(metadata, batch, 3):
        return kind, length, 0
    decoded = 0
    buffers = _table(metadata, batch, 2)
    for number in range(_u32(metadata, buffers)):
        offset, size = struct.unpack_from("<qq", metadata, buffers + 4 + 16 * number)
        if size >= 8:
            # A compressed buffer begins with its own length, -1 where it is not compressed.
            raw.seek(body + offset)
            decoded += max(struct.unpack("<q", raw.read(8))[0], 0)
    return kind, length, decoded


def _u32(data: bytes, at: int) -> int:
    value: int = struct.unpack_from("<I", data, at)[0]
    return value


def _at(data: bytes, table: int, field: int) -> int:
    """Return the position of a field in a FlatBuffer's table; 0 if the field is missing."""
    fields = table - struct.unpack_from("<i", data, table)[0]
    size = struct.unpack_from("<H", data, fields)[0]
    entry = 4 + 2 * field
    if entry >= size:
        return 0
    offset: int = struct.unpack_from("<H", data, fields + entry)[0]
    return table + offset if offset else 0


def _field(data: bytes, table: int, field: int, kind: str) -> int:
    """Return the number in a field; 0 if the field is missing."""
    at = _at(data, table, field)
    value: int = struct.unpack_from(kind, data, at)[0] if at else 0
    return value


def _table(data: bytes, table: int, field: int) -> int:
    """Return the position of the table or vector that a field refers to.

    Raises:
        IndexError: There is no such field.
    """
    at = _at(data, table, field)
    if not at:
        raise IndexError(field)
    return at + _u32(data, at)
