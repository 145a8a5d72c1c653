"""The edges of derived graphs: those that meet a condition, between vertices, or between labels.

Invariant: edges are in memory in batches only; DuckDB joins them to vertices and labels.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from brimful.errors import BrimfulError, InputError, UsageError
from brimful.io.reader_errors import stream_reader
from brimful.reporting import warn
from brimful.resources import Resources
from brimful.tables.columns import EDGES, place_hint
from brimful.tables.connection import DuckDbConnection, connected, join_errors, rows_of
from brimful.tables.derived_vertices import Vertices, are_ids_of, conversion, id_batches
from brimful.tables.edge_columns import edge_columns, edge_rows, write_sorted
from brimful.tables.expressions import Condition
from brimful.tables.joining import plain_type
from brimful.tables.text_rows import sql_name
from brimful.wording import counted

if TYPE_CHECKING:
    import pyarrow

    from brimful import _native

#: Rows of a batch of joined edges.
_BATCH_ROWS = 65_536
#: Makes joins hash the vertices on their right. DuckDB takes a stream for a single row, and would
#: hash the edges: all of a hub, which are in one part, must then be in memory at a time.
_HASHED_ON_THE_RIGHT = "SET disabled_optimizers = 'join_order,build_side_probe_side'"


def kept_edges(
    graph: _native.Graph, condition: Any, columns: Sequence[str]
) -> pyarrow.RecordBatchReader:
    """Return a reader of the edges that meet a condition, with columns; None: all edges."""
    import pyarrow as pa

    if condition is None:
        return edge_rows(graph, columns)
    whole = edge_rows(graph).schema
    test = Condition(condition, whole, lambda column: place_hint(graph, column, EDGES))
    needed = [name for name in whole.names if name in columns or name in test.columns]
    reader = edge_rows(graph, needed)
    batches = (rows for batch in reader if (rows := test.rows(batch)).num_rows)
    return pa.RecordBatchReader.from_batches(reader.schema, batches)


def write_staged(
    edges: pyarrow.RecordBatchReader,
    ends: Sequence[str],
    columns: Sequence[str],
    graph: _native.Graph,
    path: str,
    memory: int,
    resources: Resources,
    *,
    loops: bool,
    directed: bool,
) -> None:
    """Write edges with their columns, sorted, to the file that will be the table of the graph.

    `directed`: the edges of the derived graph have a direction.
    """
    failures = list[BrimfulError]()
    own = [f"{end} AS {name}" for end, name in zip(ends, ("source", "target"), strict=True)]
    own += ["weight"] if graph.weighted else []
    chosen = ", ".join([*own, *map(sql_name, columns)])
    without = "" if loops else " WHERE source <> target"
    with connected(memory, resources) as connection:
        connection.register("edges", _recorded(edges, failures))
        with _source_errors(graph.path, failures):
            query = f"SELECT * FROM (SELECT {chosen} FROM edges){without}"
            # A join before has replaced the types of `edges` by those of DuckDB.
            types = edge_columns(graph)
            write_sorted(
                connection, query, graph, columns, types, graph.path, path, directed=directed
            )


@contextlib.contextmanager
def between(
    edges: pyarrow.RecordBatchReader,
    vertices: Vertices,
    graph: _native.Graph,
    memory: int,
    resources: Resources,
) -> Iterator[pyarrow.RecordBatchReader]:
    """Yield a reader of the edges whose ends both stay."""
    kind, failures = edges.schema.field(0).type, list[BrimfulError]()
    with connected(memory, resources) as connection:
        connection.register("edges", _recorded(edges, failures))
        connection.register("vertices", _recorded(id_batches(vertices, kind), failures))
        with _source_errors(graph.path, failures):
            connection.execute("CREATE TEMP TABLE kept AS FROM vertices")
        connection.execute(_HASHED_ON_THE_RIGHT)
        query = (
            "SELECT edges.* FROM edges SEMI JOIN kept AS a ON source = a.vertex "
            "SEMI JOIN kept AS b ON target = b.vertex"
        )
        with rows_of(connection, query, graph.path, _BATCH_ROWS) as rows:
            yield _with_source_errors(rows, graph.path, failures)


@contextlib.contextmanager
def contracted(
    edges: pyarrow.RecordBatchReader,
    vertices: Vertices,
    contract: Any,
    memory: int,
    resources: Resources,
) -> Iterator[tuple[pyarrow.RecordBatchReader, pyarrow.RecordBatchReader]]:
    """Yield readers of the edges between labels, and of the labels of vertices that stay.

    Afterwards, warn of vertices without a label, which are left out with their edges.
    """
    kind, name = edges.schema.field(0).type, "the labels"
    labeled = stream_reader(contract, name)
    label = sql_name(_label_of(labeled.schema, kind))
    failures, rows = list[BrimfulError](), Counter[str]()
    edges = _tallied(edges, rows, "edge")
    ids = _tallied(id_batches(vertices, kind), rows, "vertex")
    with connected(memory, resources) as connection, connection.cursor() as listed:
        connection.register("edges", _recorded(edges, failures))
        connection.register("vertices", _recorded(ids, failures))
        connection.register("labeled", labeled)
        with _source_errors(name, failures):
            labels = _load_labels(connection, label)
        connection.execute(_HASHED_ON_THE_RIGHT)
        weight = ", weight" if "weight" in edges.schema.names else ""
        query = (
            f"SELECT a.label AS source, b.label AS target{weight} FROM edges "
            "JOIN labels AS a ON source = a.vertex JOIN labels AS b ON target = b.vertex"
        )
        left = "SELECT DISTINCT label FROM labels"
        with (
            rows_of(connection, query, name, _BATCH_ROWS) as joined,
            rows_of(listed, left, name, _BATCH_ROWS) as names_left,
        ):
            joined = _with_source_errors(joined, name, failures)
            between_labels = _tallied(joined, rows, "edge between labels")
            yield between_labels, _with_source_errors(names_left, name, failures)
    if without := rows["vertex"] - labels:
        lost = rows["edge"] - rows["edge between labels"]
        warn(
            f"left out: {counted(without, 'vertex')} without a label, and {counted(lost, 'edge')} "
            "from or to them"
        )


def _label_of(schema: pyarrow.Schema, kind: pyarrow.DataType) -> str:
    """Return the name of the column of labels in a table whose vertices are of the type `kind`.

    Raises:
        UsageError: The table has other columns, or columns of other types.
    """
    import pyarrow as pa

    names = schema.names
    if len(names) < 2 or names[0] != "vertex":
        raise UsageError(
            "labels must be a result, or a table with the column vertex and a column of labels; "
            f"found the columns {', '.join(names) or 'none'}"
        )
    label = schema.field(1)
    if not (pa.types.is_integer(label.type) or pa.types.is_string(plain_type(label.type))):
        raise UsageError(
            f"the labels {label.name} have the type {label.type}, and vertices are integers or "
            "strings; convert the column"
        )
    found = schema.field(0).type
    if not are_ids_of(found, kind):
        raise UsageError(
            f"the vertices of the labels have the type {found}, but the graph has vertices of type "
            f"{kind}; " + conversion("the column vertex of the labels", found, kind)
        )
    return str(label.name)


def _load_labels(connection: DuckDbConnection, label: str) -> int:
    """Make the table `labels` of a column of labels; return the number of its rows.

    Raises:
        InputError: A vertex has two labels, or none has one.
    """
    connection.execute(
        f"CREATE TABLE labels AS SELECT vertex, {label} AS label FROM "
        f"labeled SEMI JOIN vertices USING (vertex) WHERE {label} IS NOT NULL"
    )
    twice = connection.execute(
        "SELECT vertex FROM labels GROUP BY vertex HAVING count(*) > 1 LIMIT 1"
    ).fetchall()
    if twice:
        raise InputError(f"the labels have vertex {twice[0][0]} more than once")
    ((count,),) = connection.execute("SELECT count(*) FROM labels").fetchall()
    if not count:
        raise InputError("no vertex has a label; check the ids of the labels")
    return int(count)


def _tallied(
    reader: pyarrow.RecordBatchReader, rows: Counter[str], kind: str
) -> pyarrow.RecordBatchReader:
    """Return a reader that adds the number of rows of a kind to `rows`."""
    import pyarrow as pa

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            rows[kind] += batch.num_rows
            yield batch

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


def _with_source_errors(
    reader: pyarrow.RecordBatchReader, name: str, failures: list[BrimfulError]
) -> pyarrow.RecordBatchReader:
    """Return a reader that raises errors of sources, of which DuckDB passes on the text only."""
    import pyarrow as pa

    def batches() -> Iterator[pa.RecordBatch]:
        with _source_errors(name, failures):
            yield from reader

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


@contextlib.contextmanager
def _source_errors(name: str, failures: list[BrimfulError]) -> Iterator[None]:
    """Raise the recorded error of a source instead of DuckDB's version."""
    try:
        with join_errors(name):
            yield
    except BrimfulError:
        if failures:
            raise failures[0] from None
        raise


def _recorded(
    reader: pyarrow.RecordBatchReader, failures: list[BrimfulError]
) -> pyarrow.RecordBatchReader:
    """Return a source of DuckDB that records its own errors."""
    import pyarrow as pa

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from reader
        except BrimfulError as error:
            failures.append(error)
            raise

    return pa.RecordBatchReader.from_batches(reader.schema, batches())
