"""Edge tables as Arrow streams: CSV, Parquet, and anything with `__arrow_c_stream__`.

Invariant: a table is never whole in memory; batches are small, and `reserve_bytes` says what the
reader needs at most beside brimful's own memory. Errors of the reader are kept, because the Arrow
stream protocol carries only their text.
"""

from __future__ import annotations

import bz2
import contextlib
import csv
import io
import lzma
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

from brimful.errors import BrimfulError, InputError, StoreIoError, UsageError
from brimful.remote import is_remote, open_file
from brimful.remote import open_stream as open_remote

if TYPE_CHECKING:
    from types import TracebackType

#: What a pyarrow reader or writer needs beside brimful's own memory, in bytes.
ARROW_RESERVE_BYTES = 64 << 20

_BATCH_ROWS = 65_536
_CSV_BLOCK_BYTES = 1 << 20
_CSV_LINE_BYTES = 4 << 20
_PARQUET_BUFFER_BYTES = 1 << 20
#: Column chunks up to this size are covered by the reserve whatever their pages are.
_SMALL_CHUNK_BYTES = 4 << 20


@dataclass(frozen=True)
class EdgeColumns:
    """Which columns of a table are the edges; None means the default of `pick_columns`."""

    source: str | None = None
    target: str | None = None
    weight: str | None = None


@dataclass
class EdgeTable:
    """A stream of edge batches, read once, with the names of its columns.

    Errors that end the stream are kept in `failure`. A context manager: leaving it closes the
    file, and raises the kept failure in place of whatever the consumer of the stream made of it.
    """

    name: str
    source: str
    target: str
    weight: str | None
    reader: Any  # pyarrow.RecordBatchReader
    reserve_bytes: int
    #: Rows left out for their number of columns: how many; input, line and text of the first.
    malformed: tuple[int, str, int, str] = (0, "", 0, "")
    failure: BaseException | None = None
    #: What ids are: `int`, `string`, or `rows`: text of which the first rows decide.
    ids: str = "int"
    resources: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the PyCapsule of the stream; it can be taken once."""
        return self.reader.__arrow_c_stream__(requested_schema)

    def __enter__(self) -> EdgeTable:
        """Return self."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the file; raise the reader's own error if there was one."""
        self.resources.close()
        if error is not None and self.failure is not None:
            raise self.failure from None


def pick_columns(name: str, present: Sequence[str], wanted: EdgeColumns) -> EdgeColumns:
    """Return the columns that hold the edges of table `name`.

    Source and target: the named ones, else those called `source` and `target`, else the first
    two. Weight: the named one, else one called `weight`, else none.

    Raises:
        InputError: a named column is not there, is there twice, or there are fewer than two.
    """
    listed = ", ".join(present) if present else "none"

    def check(column: str) -> str:
        if column not in present:
            raise InputError(
                f"{name} has no column '{column}'; its columns are: {listed}; name others with "
                "--source, --target and --weight"
            )
        if list(present).count(column) > 1:
            raise InputError(f"{name} has more than one column '{column}'; rename one of them")
        return column

    if wanted.source is not None and wanted.target is not None:
        source, target = wanted.source, wanted.target
    elif wanted.source is not None or wanted.target is not None:
        missing = "target" if wanted.target is None else "source"
        source = wanted.source if wanted.source is not None else missing
        target = wanted.target if wanted.target is not None else missing
    elif "source" in present and "target" in present:
        source, target = "source", "target"
    elif len(present) >= 2:
        source, target = present[0], present[1]
    else:
        raise InputError(
            f"{name} needs two columns, source and target, and has: {listed}; expected one edge "
            "per row"
        )
    source, target = check(source), check(target)
    if source == target:
        raise InputError(f"{name}: source and target are both column '{source}'; name two columns")
    weight = wanted.weight
    if weight is None and "weight" in present and "weight" not in (source, target):
        weight = "weight"
    if weight is not None and check(weight) in (source, target):
        raise InputError(f"{name}: column '{weight}' is named as weight and as an end of the edge")
    return EdgeColumns(source, target, weight)


def open_csv(path: str, wanted: EdgeColumns, skip: bool = False, ids: str = "auto") -> EdgeTable:
    """Open a CSV file with a header line as an edge table; `-` is standard input.

    Ids are read as text and parsed by brimful, so that 64 bits stay exact; `ids` "string" takes
    the text as it is, "auto" lets the first rows decide. With `skip`, rows with too few or too many
    columns are left out and counted in `malformed`.

    Raises:
        InputError: no header, missing columns, or a broken compression.
        StoreIoError: the file cannot be read.
    """
    import pyarrow as pa

    name = "standard input" if path == "-" else path
    resources = contextlib.ExitStack()
    with contextlib.ExitStack() as on_error:
        on_error.push(resources)
        stream = _open_decompressed(path, resources)
        with _reader_errors(name):
            header = stream.readline()
        names = _parse_header(name, header)
        columns = pick_columns(name, names, wanted)
        assert columns.source is not None and columns.target is not None
        if (wanted.source is None) and _is_integer(columns.source) and _is_integer(columns.target):
            raise InputError(
                f"{name} begins with {columns.source},{columns.target} where a header line with "
                "the names of the columns was expected; add one, or use --format edgelist"
            )
        schema = pa.schema(
            [(columns.source, pa.string()), (columns.target, pa.string())]
            # Where a weight may be left out, it is brimful that tells which is none.
            + (
                []
                if columns.weight is None
                else [(columns.weight, pa.string() if skip else pa.float64())]
            )
        )
        table = EdgeTable(
            name, columns.source, columns.target, columns.weight, None, ARROW_RESERVE_BYTES
        )
        table.ids = "rows" if ids == "auto" else ids
        batches = _csv_batches(stream, table, names, schema, skip=skip)
        table.reader = _guarded(table, schema, batches)
        table.resources = resources
        on_error.pop_all()
        return table


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
        with _reader_errors(path):
            if path == "-":
                raise UsageError("Parquet cannot be read from standard input; give a file")
            # A native file: pyarrow reads it without calling back into Python.
            raw = resources.enter_context(
                open_file(path) if is_remote(path) else pa.OSFile(path, "rb")
            )
            try:
                file = pq.ParquetFile(
                    raw, pre_buffer=False, buffer_size=_PARQUET_BUFFER_BYTES, memory_map=False
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
            target_schema = _edge_schema(path, schema, columns)
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
            ids=_column_ids(path, target_schema, ids),
        )
        table.reader = _guarded(table, target_schema, _cast_batches(batches, target_schema))
        table.resources = resources
        on_error.pop_all()
        return table


def chain_tables(paths: Sequence[str], open_table: Callable[[str], EdgeTable]) -> EdgeTable:
    """Return the tables at `paths` as one, opened one after the other; the first names the columns.

    All are looked at before, so that the reserve is that of the largest and a file with other
    columns is refused before any work.

    Raises:
        InputError: the columns of the tables differ, or as `open_table`.
    """
    import pyarrow as pa

    first, reserve = None, 0
    for path in paths:
        if path == "-":
            raise UsageError("standard input is one table; import it by itself")
        with open_table(path) as table:
            ids = table.ids
            columns = (table.source, table.target, table.weight, table.reader.schema)
            reserve = max(reserve, table.reserve_bytes)
        if first is None:
            first = columns
        elif columns != first:
            raise InputError(
                f"the columns of {path} are not those of {paths[0]}; name them with --source, "
                "--target and --weight, or convert them to the same types"
            )
    assert first is not None
    source, target, weight, schema = first
    # The native side counts the rows of all of them.
    name = f"{paths[0]} and {len(paths) - 1} more"
    chained = EdgeTable(name, source, target, weight, None, reserve, ids=ids)

    def batches() -> Iterator[Any]:
        for path in paths:
            with open_table(path) as table:
                yield from table.reader
                if table.malformed[0]:
                    kept = chained.malformed if chained.malformed[0] else table.malformed
                    chained.malformed = (chained.malformed[0] + table.malformed[0], *kept[1:])

    chained.reader = pa.RecordBatchReader.from_batches(schema, _kept(chained, batches()))
    return chained


def open_stream(
    stream: object, wanted: EdgeColumns, *, name: str = "the table", ids: str = "auto"
) -> EdgeTable:
    """Take anything with `__arrow_c_stream__` (polars, DuckDB, pandas, pyarrow) as an edge table.

    Raises:
        UsageError: `stream` is no such thing.
        InputError: missing columns, or columns that are no integers.
    """
    if not hasattr(stream, "__arrow_c_stream__"):
        raise UsageError(
            f"{type(stream).__name__} has no __arrow_c_stream__; pass a table of pyarrow, polars, "
            "pandas >= 2.2 or DuckDB, or the path of a file"
        )
    import pyarrow as pa

    with _reader_errors(name):
        reader = pa.RecordBatchReader.from_stream(stream)
    columns = pick_columns(name, reader.schema.names, wanted)
    assert columns.source is not None and columns.target is not None
    schema = _edge_schema(name, reader.schema, columns)
    table = EdgeTable(name, columns.source, columns.target, columns.weight, None, 0)
    table.ids = _column_ids(name, schema, ids)

    def chosen() -> Iterator[Any]:
        for batch in reader:
            yield batch.select(schema.names)

    table.reader = _guarded(table, schema, _cast_batches(chosen(), schema))
    return table


def open_batches(name: str, schema: Any, batches: Iterator[Any]) -> EdgeTable:
    """Take batches with the columns `source`, `target` and perhaps `weight` as an edge table."""
    weight = "weight" if "weight" in schema.names else None
    table = EdgeTable(name, "source", "target", weight, None, 0)
    table.ids = _column_ids(name, schema, "auto")
    table.reader = _guarded(table, schema, batches)
    return table


def _column_ids(name: str, schema: Any, ids: str) -> str:
    """Return `int` or `string`: what `ids` says, by default the types of the first two columns.

    Raises:
        InputError: one is text and the other is not, and `ids` does not say how both are read.
    """
    import pyarrow.types as kinds

    if ids != "auto":
        return ids
    text = [kinds.is_string(schema.field(at).type) for at in (0, 1)]
    if text[0] != text[1]:
        raise InputError(
            f"column '{schema.field(0).name}' of {name} has type {schema.field(0).type} and column "
            f"'{schema.field(1).name}' {schema.field(1).type}; say with --ids string or --ids int "
            "how both are read"
        )
    return "string" if text[0] else "int"


def shrink_arrow_pools() -> None:
    """Keep pyarrow to one thread of each kind, where its buffers count against a budget."""
    import pyarrow as pa

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def _edge_schema(name: str, schema: Any, columns: EdgeColumns) -> Any:
    """Return the schema handed to the native side: ids integer or string, weight numeric."""
    import pyarrow as pa
    import pyarrow.types as kinds

    fields = []
    for column in (columns.source, columns.target):
        kind = schema.field(column).type
        if kinds.is_dictionary(kind):
            kind = kind.value_type
        if kinds.is_large_string(kind) or kinds.is_string_view(kind):
            kind = pa.string()
        if not (kinds.is_integer(kind) or kinds.is_string(kind)):
            raise InputError(
                f"column '{column}' of {name} has type {kind}, vertex ids are integers or strings; "
                "convert it to int64, uint64 or string, or name another column"
            )
        fields.append(pa.field(column, kind))
    if columns.weight is not None:
        kind = schema.field(columns.weight).type
        if not (kinds.is_integer(kind) or kinds.is_floating(kind)):
            raise InputError(
                f"column '{columns.weight}' of {name} has type {kind}, weights are numbers; "
                "convert it to float64, or name another column"
            )
        fields.append(pa.field(columns.weight, kind))
    return pa.schema(fields)


def _cast_batches(batches: Iterator[Any], schema: Any) -> Iterator[Any]:
    """Yield batches with exactly `schema`: dictionaries decoded, strings of one width."""
    import pyarrow as pa

    for batch in batches:
        if batch.schema.equals(schema):
            yield batch
            continue
        arrays = [batch.column(item.name).cast(item.type) for item in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _csv_batches(
    stream: io.BufferedReader, table: EdgeTable, names: list[str], schema: Any, *, skip: bool
) -> Iterator[Any]:
    """Yield the rows of a CSV body in batches of about `_CSV_BLOCK_BYTES` of text.

    Blocks are cut at line ends here and parsed one by one. pyarrow's own streaming reader reads
    ahead on a thread that calls back into Python, and that thread hangs the interpreter's exit
    when a stream is left unfinished.
    """
    import pyarrow as pa
    import pyarrow.csv as pacsv

    def leave_out(row: Any) -> str:
        count = table.malformed[0]
        if count == 0:
            table.malformed = (1, name, lines_before + row.number, row.text[:40])
        else:
            table.malformed = (count + 1, *table.malformed[1:])
        return "skip"

    name = table.name
    parsing = pacsv.ParseOptions(
        newlines_in_values=False, invalid_row_handler=leave_out if skip else None
    )
    converting = pacsv.ConvertOptions(
        column_types=schema,
        include_columns=schema.names,
        null_values=[""],
        strings_can_be_null=False,
    )
    # Line 1 of the file is the header.
    lines_before = 1
    rest = b""
    while True:
        block = stream.read(_CSV_BLOCK_BYTES)
        text = rest + block
        cut = text.rfind(b"\n") + 1 if block else len(text)
        rest = text[cut:]
        if len(rest) > _CSV_LINE_BYTES:
            raise InputError(
                f"{name} has a line longer than {_CSV_LINE_BYTES:,} bytes after line "
                f"{lines_before}; expected one edge per line"
            )
        if text[:cut].strip():
            reading = pacsv.ReadOptions(
                use_threads=False, block_size=2 * _CSV_LINE_BYTES, column_names=names
            )
            with _reader_errors(name, lines_before):
                try:
                    block_table = pacsv.read_csv(
                        pa.BufferReader(text[:cut]), reading, parsing, converting
                    )
                except pa.ArrowInvalid:
                    _require_utf8(name, lines_before, text[:cut])
                    raise
            yield from block_table.to_batches()
        lines_before += text.count(b"\n", 0, cut)
        if not block:
            return


def _require_utf8(name: str, lines_before: int, text: bytes) -> None:
    """Refuse text that is not UTF-8, with the place of the first byte that is not.

    Raises:
        InputError: it is not.
    """
    try:
        text.decode()
    except UnicodeDecodeError as error:
        line = lines_before + text.count(b"\n", 0, error.start) + 1
        column = error.start - text.rfind(b"\n", 0, error.start)
        raise InputError(
            f"{name}:{line}:{column}: expected UTF-8, found the byte "
            f"0x{text[error.start]:02x}; convert the file"
        ) from None


def _guarded(table: EdgeTable, schema: Any, batches: Iterator[Any]) -> Any:
    """Return a reader of `batches` that keeps what went wrong in `table.failure`."""
    import pyarrow as pa

    return pa.RecordBatchReader.from_batches(schema, _kept(table, batches))


def _kept(table: EdgeTable, batches: Iterator[Any]) -> Iterator[Any]:
    try:
        with _reader_errors(table.name):
            yield from batches
    except (BrimfulError, KeyboardInterrupt) as error:
        table.failure = error
        raise


@contextlib.contextmanager
def _reader_errors(name: str, lines_before: int = 0) -> Iterator[None]:
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
        if error.errno is None:  # not the system but pyarrow: a codec or a page
            raise InputError(
                f"{name} is truncated or damaged ({sentence.rstrip('.')}); copy or write it again"
            ) from None
        raise StoreIoError(
            f"cannot read {name}: {error.strerror or sentence}", error.errno
        ) from None


def _open_decompressed(path: str, resources: contextlib.ExitStack) -> io.BufferedReader:
    """Open a file or standard input, decompressed by the magic of its content."""
    import pyarrow as pa

    name = "standard input" if path == "-" else path
    with _reader_errors(name):
        raw: io.BufferedReader
        if path == "-":
            raw = io.BufferedReader(_Unclosed(sys.stdin.buffer))
        elif is_remote(path):
            stream = resources.enter_context(open_remote(path))
            raw = io.BufferedReader(stream, _CSV_BLOCK_BYTES)
        else:
            raw = resources.enter_context(open(path, "rb"))  # noqa: SIM115
        magic = raw.peek(6)[:6]
        if magic.startswith(b"\x1f\x8b"):
            codec = "gzip"
        elif magic.startswith(b"\x28\xb5\x2f\xfd"):
            codec = "zstd"
        elif magic.startswith(b"\xfd7zXZ\x00"):
            return io.BufferedReader(resources.enter_context(lzma.open(raw)))
        elif re.match(rb"BZh[1-9](1A|\x17r)", magic):
            return io.BufferedReader(resources.enter_context(bz2.open(raw)))
        else:
            return raw
        stream = resources.enter_context(pa.CompressedInputStream(raw, codec))
        return io.BufferedReader(stream, _CSV_BLOCK_BYTES)


class _Unclosed(io.RawIOBase):
    """Standard input as a raw stream that is left open when its reader is closed."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _parse_header(name: str, header: bytes) -> list[str]:
    """Return the column names of a CSV header line."""
    if not header:
        raise InputError(f"{name} is empty; expected a header line and one edge per line")
    with _reader_errors(name):
        text = header.decode("utf-8-sig").rstrip("\r\n")
    names = next(csv.reader([text]), [])
    return [column.strip() for column in names]


def _is_integer(text: str) -> bool:
    return re.fullmatch(r"[+-]?\d+", text) is not None


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
