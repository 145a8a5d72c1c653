"""Edge tables as Arrow streams: anything with `__arrow_c_stream__`, and several tables as one.

Files are opened as tables by `arrow` and `parquet`; text is read natively.

Invariant: a table is never whole in memory; batches are small, and `reserve_bytes` is the most that
the reader needs besides brimful's own memory. Errors of the reader are kept, because the Arrow
stream protocol carries only their text.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from brimful.errors import BrimfulError, InputError, UsageError
from brimful.io.reader_errors import reader_errors, stream_reader
from brimful.memory import ARROW_ADDRESS_BYTES, require_address_space
from brimful.options.imports import EdgeColumns
from brimful.tables.directions import direction_column, read_directions
from brimful.wording import printable

if TYPE_CHECKING:
    from types import TracebackType

    from brimful import _native

#: Bytes that a pyarrow reader or writer needs besides brimful's own memory.
ARROW_RESERVE_BYTES = 64 << 20
#: Bytes of these that its reader of Parquet takes, which reports of other graphs do not load.
PARQUET_BYTES = 12 << 20
#: The key under which an exported schema declares its graph.
_DECLARATION = b"brimful"


@dataclass
class EdgeTable:
    """A stream of edge batches, read once, with the names of its columns.

    Errors that end the stream are kept in `failure`. A context manager: leaving it closes the
    file, and raises the kept failure instead of the consumer's version.
    """

    name: str
    source: str
    target: str
    weight: str | None
    reader: Any  # pyarrow.RecordBatchReader
    reserve_bytes: int
    #: The names of the other columns, if the user chose from them.
    ignored: list[str] | None = None
    #: The tables of a chain that were opened so far, each with its name and number of rows.
    parts: list[tuple[str, int]] = field(default_factory=list)
    failure: BaseException | None = None
    #: The type of ids: `int` or `string`.
    ids: str = "int"
    #: True if a row without a target is a vertex.
    vertex_rows: bool = False
    #: Whether edges have no direction, if the table says so.
    undirected: bool | None = None
    #: Returns the line of the file for a row, if rows are not known by their numbers.
    line_of: Callable[[int], int] | None = None
    #: Refuses a graph that contradicts the declaration of the file, before the graph appears.
    check: Callable[[_native.Graph], None] | None = None
    resources: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    #: When set, ends a read from a store.
    stopped: threading.Event = field(default_factory=threading.Event)

    def stop(self) -> None:
        """End a read that another thread waits for; the native side calls it on Ctrl-C."""
        self.stopped.set()

    def native_pairs(self) -> dict[str, Any]:
        """Return the table as the native module takes pairs of vertices."""
        return {
            "stream": self,
            "name": printable(self.name),
            "source": self.source,
            "target": self.target,
            "ids": self.ids,
        }

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


@dataclass(frozen=True)
class PickedColumns:
    """The names of the columns that hold the edges of a table, and of the others.

    `ignored` is None if the input left no choice of columns.
    """

    source: str
    target: str
    weight: str | None
    ignored: list[str] | None = None


#: Chooses the columns of a table by its name and theirs; raises as `pick_columns`.
PickColumns = Callable[[str, Sequence[str], EdgeColumns], PickedColumns]


def pick_columns(name: str, present: Sequence[str], wanted: EdgeColumns) -> PickedColumns:
    """Return the columns that hold the edges of table `name`, by the rule of docs/formats.md.

    Raises:
        UsageError: The columns are ambiguous, a named one is missing, or an option applies to text.
        InputError: A column that is taken has the name of another.
    """
    from brimful import _native

    if wanted.header is not None or wanted.delimiter is not None:
        raise UsageError(
            f"--header, --no-header and --delimiter apply to text, and {name} is a table; leave "
            "them out"
        )
    source, target, weight = _native.pick_columns(name, list(present), wanted)
    taken = [present[at] for at in (source, target, weight) if at is not None]
    for column in taken:
        if list(present).count(column) > 1:
            raise InputError(f"{name} has more than one column '{column}'; rename one of them")
    return PickedColumns(
        present[source],
        present[target],
        None if weight is None else present[weight],
        [column for column in present if column not in taken],
    )


def chain_tables(paths: Sequence[str], open_table: Callable[[str], EdgeTable]) -> EdgeTable:
    """Return the tables at `paths` as one, opened one after the other; the first names the columns.

    All tables are opened once before any work, so that the reserve is that of the largest, and a
    file with other columns is refused.

    Raises:
        InputError: The columns of the tables differ, or as `open_table`.
    """
    import pyarrow as pa

    first, reserve, joined, ignored, undirected = None, 0, None, None, None
    for path in paths:
        if path == "-":
            raise UsageError("standard input must be the only table; import it by itself")
        with open_table(path) as table:
            ids, vertex_rows = table.ids, table.vertex_rows
            columns = (table.source, table.target, table.weight, table.reader.schema)
            own = table.reader.schema
            joined = own if joined is None else _common_schema(path, joined, paths[0], own)
            ignored = table.ignored if first is None else ignored
            if first is not None and bool(table.undirected) != bool(undirected):
                kinds = ["directed", "undirected"]
                raise InputError(
                    f"{path}: its edges are {kinds[bool(table.undirected)]} and those of "
                    f"{paths[0]} are {kinds[bool(undirected)]}; give --directed or "
                    "--undirected for all files, or import the files separately"
                )
            undirected = table.undirected if first is None else undirected
            reserve = max(reserve, table.reserve_bytes)
        if first is None:
            first = columns
        elif columns != first:
            raise InputError(
                f"the columns of {path} are not those of {paths[0]}; name them with --source, "
                "--target and --weight, or convert them to the same types"
            )
    assert first is not None
    source, target, weight, _ = first
    schema = joined
    # One name for all files: the native side counts their rows together.
    name = f"{paths[0]} and {len(paths) - 1} more"
    chained = EdgeTable(name, source, target, weight, None, reserve, ignored, ids=ids)
    chained.vertex_rows, chained.undirected = vertex_rows, undirected

    def batches() -> Iterator[Any]:
        for path in paths:
            with open_table(path) as table:
                rows = 0
                chained.parts.append((path, rows))
                for batch in table.reader:
                    rows += batch.num_rows
                    chained.parts[-1] = (path, rows)
                    yield batch

    chained.reader = pa.RecordBatchReader.from_batches(schema, _keeping_failure(chained, batches()))
    return chained


def table_from_stream(
    stream: object,
    wanted: EdgeColumns,
    *,
    name: str = "the table",
    ids: str = "auto",
    is_decided: bool = True,
    pick: PickColumns = pick_columns,
) -> EdgeTable:
    """Take anything with `__arrow_c_stream__` (polars, DuckDB, pandas, pyarrow) as an edge table.

    With `is_decided`, the user has chosen the direction, and a column of directions is not read.

    Raises:
        UsageError: `stream` has no such interface, or has edges of both kinds.
        InputError: Missing columns, or columns that are not ids or cannot be columns of Arrow.
    """
    if not hasattr(stream, "__arrow_c_stream__"):
        raise UsageError(
            f"{type(stream).__name__} has no __arrow_c_stream__; pass a table of pyarrow, polars, "
            "pandas >= 2.2 or DuckDB, or the path of a file"
            + "; collect() makes a table of it"
            * (type(stream).__name__ == "LazyFrame")
        )
    reader = stream_reader(stream, name)
    columns = pick(name, reader.schema.names, wanted)
    schema = edge_schema(name, reader.schema, columns)
    direction = None if is_decided else direction_column(reader.schema, columns)
    kept = schema.names + ([] if direction is None else [direction])
    with reader_errors(name):
        undirected, chosen = read_directions(
            name, direction, (batch.select(kept) for batch in reader)
        )
    table = table_of(name, columns, schema, cast_batches(chosen, schema), ids=ids)
    table.undirected = undirected
    return table


def open_batches(name: str, schema: Any, batches: Iterator[Any]) -> EdgeTable:
    """Take batches with the columns `source`, `target` and perhaps `weight` as an edge table."""
    weight = "weight" if "weight" in schema.names else None
    return table_of(name, PickedColumns("source", "target", weight), schema, batches)


def table_of(
    name: str,
    columns: PickedColumns,
    schema: Any,
    batches: Iterator[Any],
    *,
    ids: str = "auto",
    reserve_bytes: int = 0,
) -> EdgeTable:
    """Return an edge table of batches, whose schema has the columns of the edges.

    Raises:
        InputError: As `id_kind`.
    """
    ends = columns.source, columns.target, columns.weight
    table = EdgeTable(name, *ends, None, reserve_bytes, columns.ignored)
    table.ids = id_kind(name, schema, ids)
    table.reader = guarded(table, schema, batches)
    return table


def id_kind(name: str, schema: Any, ids: str) -> str:
    """Return `int` or `string`: from `ids`, by default from the types of the first two columns.

    Raises:
        InputError: One column is text and the other is not, and `ids` does not decide.
    """
    import pyarrow.types as kinds

    if ids != "auto":
        return ids
    text = [kinds.is_string(schema.field(at).type) for at in (0, 1)]
    if text[0] != text[1]:
        raise InputError(
            f"column '{schema.field(0).name}' of {name} has type {schema.field(0).type} and column "
            f"'{schema.field(1).name}' {schema.field(1).type}; choose one with --ids string or "
            "--ids int"
        )
    return "string" if text[0] else "int"


def shrink_arrow_pools(budget: int | None = None) -> None:
    """Limit pyarrow to one thread of each kind, because its buffers count against the budget.

    `budget` is that of the process, if its work has not begun.

    Raises:
        StoreIoError: A limit of the address space leaves too little to load pyarrow, which would
            end the process.
        BudgetError: The limit leaves too little for the budget besides pyarrow.
    """
    require_arrow_address_space(budget or 0)
    import pyarrow as pa

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def require_arrow_address_space(budget: int = 0) -> None:
    """Refuse a limit of the address space that leaves too little for pyarrow and the budget.

    Raises:
        StoreIoError, BudgetError: As `shrink_arrow_pools`.
    """
    if "pyarrow" not in sys.modules:
        require_address_space("pyarrow", ARROW_ADDRESS_BYTES, budget)


def edge_schema(name: str, schema: Any, columns: PickedColumns) -> Any:
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
                f"column '{column}' of {name} has type {kind}, and vertex ids must be integers or "
                "strings; convert it to int64, uint64 or string, or name another column"
            )
        fields.append(pa.field(column, kind))
    if columns.weight is not None:
        kind = schema.field(columns.weight).type
        if not (kinds.is_integer(kind) or kinds.is_floating(kind)):
            raise InputError(
                f"column '{columns.weight}' of {name} has type {kind}, and weights must be "
                "numbers; convert it to float64, or name another column"
            )
        # The native side knows no floats of 16 bits.
        fields.append(pa.field(columns.weight, pa.float32() if kinds.is_float16(kind) else kind))
    return pa.schema(fields, metadata=_declared(schema))


def _declared(schema: Any) -> dict[bytes, bytes] | None:
    """Return the declaration of an export in a schema, which the native side reads."""
    text = (schema.metadata or {}).get(_DECLARATION)
    return None if text is None else {_DECLARATION: text}


def _common_schema(path: str, schema: Any, first: str, other: Any) -> Any:
    """Return the schema of two tables that are parts of one graph, with both declarations.

    Raises:
        InputError: The tables declare graphs of different kinds, or only one declares a graph.
    """
    from brimful import _native

    texts = [_declared(one) for one in (schema, other)]
    if texts == [None, None]:
        return schema
    joined = None
    if texts[0] is not None and texts[1] is not None:
        joined = _native.join_declarations(*(text[_DECLARATION].decode() for text in texts))  # type: ignore[index]
    if joined is None:
        raise InputError(
            f"{path} and {first} do not declare parts of one graph (the key `brimful` of their "
            "schemas); import them separately"
        )
    return schema.with_metadata({_DECLARATION: joined.encode()})


def cast_batches(batches: Iterator[Any], schema: Any) -> Iterator[Any]:
    """Yield batches with exactly `schema`: dictionaries decoded, strings of one width."""
    import pyarrow as pa

    for batch in batches:
        if batch.schema.equals(schema):
            yield batch
            continue
        arrays = [plain_strings(batch.column(item.name)).cast(item.type) for item in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def plain_strings(column: Any) -> Any:
    """Return a column; a dictionary of string views, as Polars has it, becomes one of strings.

    Arrow has no kernels for such dictionaries.
    """
    import pyarrow as pa
    import pyarrow.types as kinds

    if not (kinds.is_dictionary(column.type) and kinds.is_string_view(column.type.value_type)):
        return column
    return pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(pa.string()))


def guarded(table: EdgeTable, schema: Any, batches: Iterator[Any]) -> Any:
    """Return a reader of `batches` that keeps its errors in `table.failure`."""
    import pyarrow as pa

    return pa.RecordBatchReader.from_batches(schema, _keeping_failure(table, batches))


def _keeping_failure(table: EdgeTable, batches: Iterator[Any]) -> Iterator[Any]:
    try:
        with reader_errors(table.name):
            yield from batches
    except (BrimfulError, KeyboardInterrupt) as error:
        table.failure = error
        raise
