"""Derives graphs from the edges of another graph: filtered, reversed, contracted.

Edges stream from one graph into the import of the other; vertices follow them as rows without a
target, so that those without edges stay. Invariant: vertices and edges are in memory in batches
only, except ids that the caller supplied.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from brimful.errors import BrimfulError, BudgetError, InputError, UsageError
from brimful.ids import VertexId, own_id
from brimful.io.hidden import whole_graph
from brimful.io.ingest import import_table
from brimful.io.output import native_batches
from brimful.io.reader_errors import stream_reader
from brimful.memory import smallest_error, too_small
from brimful.options.imports import ImportOptions, PolicyOptions, import_options
from brimful.options.table import picked
from brimful.reporting import warn
from brimful.resources import Resources
from brimful.tables.columns import (
    EDGES,
    VERTICES,
    footer_bytes,
    place_hint,
    schema_of,
    vertex_rows,
    write_columns,
)
from brimful.tables.connection import (
    JOIN_RESERVE_BYTES,
    MIN_JOIN_BYTES,
    connected,
    join_errors,
    rows_of,
)
from brimful.tables.edge_columns import (
    edge_columns,
    edge_rows,
    staged_edges,
    write_sorted,
)
from brimful.tables.edge_table import (
    ARROW_RESERVE_BYTES,
    EdgeTable,
    PickedColumns,
    table_of,
)
from brimful.tables.expressions import Condition
from brimful.tables.joining import plain_type
from brimful.tables.text_rows import sql_name
from brimful.wording import counted

if TYPE_CHECKING:
    import pyarrow

    from brimful import _native
    from brimful.graph import Graph

#: Rows of a batch of joined edges.
_BATCH_ROWS = 65_536
#: Divisor of the budget beyond the smallest one; joins take the quotient.
_JOINED_SHARE = 4
#: An upper bound of the smallest budget of an import with joins: a base, and more per thread.
_LEAST_BYTES = 384 << 20, 64 << 20

#: Memory of the parts of pyarrow that evaluate conditions, once they are loaded.
_CONDITION_BYTES = 64 << 20

#: Memory of an edge by which a neighborhood is found.
_REACHED_BYTES = 80

#: A function that yields all vertices with the named columns, from the first in each call.
Vertices = Callable[[Sequence[str]], Iterator[Any]]


@dataclass(frozen=True)
class Derivation:
    """The steps of a derivation, in order: each field applies to the outcome of the one before.

    Attributes:
        ids: Vertices to keep, an Arrow array; None: all.
        vertices: Condition on the vertices to keep, with the edges between them.
        edges: Condition on the edges to keep; vertices stay.
        reverse: Reverse the edges. undirected: Remove directions.
        contract: A table with the column `vertex` and one of labels, which become the vertices.
    """

    ids: Any = None
    vertices: str | Any = None
    edges: str | Any = None
    reverse: bool = False
    undirected: bool = False
    contract: Any = None


def derive(
    graph: _native.Graph,
    out: str,
    wanted: Derivation,
    options: ImportOptions,
    resources: Resources,
) -> dict[str, Any]:
    """Make the graph `out` of another one; return the figures of its import.

    Columns stay, but for `contract`, and those of edges where edges are merged. `options` has
    policies and indexes.

    Raises:
        UsageError: A condition is invalid or names an unknown column; `out` exists.
        InputError: No vertex is left, or `contract` has no labels.
        MissingPackageError: Vertices are left out or contracted, and DuckDB is not installed.
        BudgetError, CorruptError, StoreIoError: As an import.
    """
    from brimful import _native

    parts = wanted.ids is not None or wanted.vertices is not None
    # Merged edges lose their columns.
    merges = wanted.contract is not None or options["duplicates"] != "keep"
    keeps_columns = not merges and graph.table_path(EDGES) is not None
    joins = wanted.contract is not None or parts or keeps_columns
    tests = wanted.vertices is not None or wanted.edges is not None
    require_budget(options, resources, joins=joins, tests=tests)
    vertices = _kept_vertices(graph, wanted)
    columns = [] if merges else edge_columns(graph).names
    edges = _edges(graph, wanted.edges, columns)
    if next(vertices([]), None) is None:
        raise InputError(
            f"no vertex is left of {graph.path}, whose ids are "
            f"{'strings' if graph.id_type == 'string' else 'integers'}; check ids and conditions"
        )
    given, memory, reserve = _shares(resources, joins=joins, tests=tests)
    resources.shrink_arrow_pools()
    ends = ["target", "source"] if wanted.reverse else ["source", "target"]
    labels = _id_batches(vertices, edges.schema.field(0).type)
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(whole_graph(out))
        if wanted.contract is not None:
            opened = _contracted(edges, vertices, wanted.contract, memory, resources)
            edges, labels = stack.enter_context(opened)
        elif parts:
            edges = stack.enter_context(_between(edges, vertices, graph, memory, resources))
        staged = os.path.join(os.path.dirname(place), "edges.parquet")
        if columns:
            loops = options["self_loops"] == "keep"
            _stage(edges, ends, columns, graph, staged, memory, resources, loops=loops)
            edges, ends = staged_edges(staged, graph), ["source", "target"]
        table = _edge_table(graph.path, edges, labels, ends, reserve)
        undirected = wanted.undirected or not graph.directed
        chosen: Any = {**options, "undirected": undirected}
        with table:
            figures = import_table(table, place, chosen, given)
        made = _native.Graph.open(place)
        if columns:
            with _native.NewTable(made, EDGES) as new:
                os.rename(staged, new.path)
                new.publish(footer_bytes(new.path))
        names = schema_of(graph).names
        if names and wanted.contract is None:
            with _native.NewTable(made, VERTICES) as new:
                schema = schema_of(graph)
                rows = (batch.select(names) for batch in vertices(names))
                write_columns(new, schema, rows, made.vertices)
                new.publish(footer_bytes(new.path))
        figures["bytes_on_disk"] = _native.Graph.open(place).bytes_on_disk
    figures["peak_rss_bytes"] = _native.peak_rss_bytes()
    figures["vertex_columns"] = None
    return figures


def within(
    graph: Graph, vertices: Sequence[VertexId], hops: int, resources: Resources
) -> pyarrow.Array:
    """Return the vertices within some hops of others, and these, in memory.

    Raises:
        NotFoundError: The graph has no such vertex.
        BudgetError: The budget does not hold the edges of the vertices of one distance.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for vertex in vertices:
        graph.degree(vertex)
    kind = vertex_rows(graph.native).schema.field(0).type
    own = [own_id(vertex, texts=pa.types.is_string(kind)) for vertex in vertices]
    vertices_within = latest = pc.unique(pa.array(own, kind))
    for _ in range(hops):
        bytes_ = _REACHED_BYTES * pc.sum(graph.degrees_many(latest)).as_py()
        needed, limit = max(bytes_, resources.taken_bytes(bytes_)), resources.budget_bytes()
        if needed > limit:
            raise too_small(limit, needed, "for the edges of the neighborhood")
        reached = pc.unique(graph.neighbors_many(latest)["target"].combine_chunks().cast(kind))
        latest = reached.filter(pc.invert(pc.is_in(reached, value_set=vertices_within)))
        if len(latest) == 0:
            break
        vertices_within = pa.concat_arrays([vertices_within, latest])
    return vertices_within


def listed(table: Any, condition: Any) -> pyarrow.Array:
    """Return the vertices of a result or a table that meet a condition on its columns, in memory.

    Raises:
        UsageError: There is no column `vertex`, or the condition does not fit the columns.
        InputError: The columns of the table cannot be columns of Arrow.
    """
    import pyarrow as pa

    if not hasattr(table, "__arrow_c_stream__"):
        raise UsageError(
            "table must be a result or a table with the column vertex and __arrow_c_stream__, not "
            f"{type(table).__name__}"
        )
    reader = stream_reader(table, "the table")
    if "vertex" not in reader.schema.names:
        columns = ", ".join(reader.schema.names) or "none"
        raise UsageError(f"table needs the column vertex; found the columns {columns}")
    test = None if condition is None else Condition(condition, reader.schema)
    kept = (batch if test is None else test.rows(batch) for batch in native_batches(reader))
    kind = plain_type(reader.schema.field("vertex").type)
    return pa.chunked_array([rows["vertex"].cast(kind) for rows in kept], kind).combine_chunks()


def derive_options(**options: Any) -> ImportOptions:
    """Return the options of the import of a derived graph."""
    return import_options(**picked(PolicyOptions, options), index=options["index"])


def require_budget(
    options: ImportOptions, resources: Resources, *, joins: bool, tests: bool
) -> None:
    """Refuse a budget that the import will not fit, before pyarrow and DuckDB are loaded."""
    from brimful import _native

    given, memory, reserve = _shares(resources, joins=joins, tests=tests)
    try:
        _native.require_import_budget(
            "parquet",
            [],
            weights="input",
            **picked(PolicyOptions, options),
            **given.limits(),
            reserve_bytes=reserve,
        )
    except BudgetError as error:
        if resources.process_budget:
            raise
        # The import has the budget without the memory of joins.
        named = error.needed_bytes + memory
        raise smallest_error(resources.budget_bytes(), named, "to derive a graph") from None


def _shares(resources: Resources, *, joins: bool, tests: bool) -> tuple[Resources, int, int]:
    """Return the resources of the import, the memory of joins, and the reserve of both.

    `tests`: rows are tested by conditions.
    """
    if not joins:
        return resources, 0, ARROW_RESERVE_BYTES + (_CONDITION_BYTES if tests else 0)
    limit = resources.budget_bytes()
    # Within the smallest budget joins take the least memory, so that the budget that an error names
    # does work.
    common, of_thread = _LEAST_BYTES
    least = common + of_thread * (resources.threads or os.cpu_count() or 1)
    memory = MIN_JOIN_BYTES + max(0, limit - least) // _JOINED_SHARE
    if not resources.process_budget:
        return dataclasses.replace(resources, budget=max(1, limit - memory)), memory, 0
    return resources, memory, JOIN_RESERVE_BYTES + memory - MIN_JOIN_BYTES


def _kept_vertices(graph: _native.Graph, wanted: Derivation) -> Vertices:
    """Return a function that yields the vertices that stay, ascending, with named columns."""
    import pyarrow as pa

    schema = vertex_rows(graph).schema
    condition = None
    if wanted.vertices is not None:
        condition = Condition(
            wanted.vertices, schema, lambda column: place_hint(graph, column, VERTICES)
        )
    ids = None if wanted.ids is None else _sorted_ids(wanted.ids, schema.field(0).type)

    def batches(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        needed = set(names) | (set() if condition is None else condition.columns)
        read = [name for name in schema.names[1:] if name in needed]
        for batch in native_batches(vertex_rows(graph, read)):
            rows = batch if ids is None else _those_in(batch, ids)
            if condition is not None:
                rows = condition.rows(rows)
            if rows.num_rows:
                yield rows.select(["vertex", *names])

    return batches


def _sorted_ids(ids: pyarrow.Array, kind: pyarrow.DataType) -> pyarrow.Array:
    """Return distinct ids, ascending, in the type of the vertices.

    Raises:
        UsageError: The ids are of another type.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    try:
        if not _is_of(ids.type, kind) and len(ids):
            raise pa.ArrowInvalid(f"they are {ids.type}")
        distinct = pc.unique(ids.cast(kind).drop_null())
    except pa.ArrowException as error:
        raise UsageError(f"the ids are not vertices of type {kind}: {error}") from None
    return distinct.take(pc.sort_indices(distinct))


def _is_of(found: pyarrow.DataType, kind: pyarrow.DataType) -> bool:
    """Return whether vertices of the type `found` are those of a graph; a cast would guess."""
    import pyarrow as pa

    plain = plain_type(found)
    fits = pa.types.is_string if pa.types.is_string(kind) else pa.types.is_integer
    return bool(fits(plain))


def _those_in(batch: pyarrow.RecordBatch, ids: pyarrow.Array) -> pyarrow.RecordBatch:
    """Return the rows whose vertices are in the sorted `ids`; compares ids in their range only."""
    import pyarrow.compute as pc

    vertices = batch.column(0)
    ends = vertices[0].as_py(), vertices[len(vertices) - 1].as_py()
    first = bisect.bisect_left(ids, ends[0], key=lambda id_: id_.as_py())
    last = bisect.bisect_right(ids, ends[1], key=lambda id_: id_.as_py())
    return batch.filter(pc.is_in(vertices, value_set=ids.slice(first, last - first)))


def _edges(
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


def _stage(
    edges: pyarrow.RecordBatchReader,
    ends: Sequence[str],
    columns: Sequence[str],
    graph: _native.Graph,
    path: str,
    memory: int,
    resources: Resources,
    *,
    loops: bool,
) -> None:
    """Write edges with their columns, sorted, to the file that will be the table of the graph."""
    failures = list[BrimfulError]()
    own = [f"{end} AS {name}" for end, name in zip(ends, ("source", "target"), strict=True)]
    own += ["weight"] if graph.weighted else []
    chosen = ", ".join([*own, *map(sql_name, columns)])
    without = "" if loops else " WHERE source <> target"
    with connected(memory, resources) as connection:
        connection.register("edges", _noted(edges, failures))
        with _source_errors(graph.path, failures):
            query = f"SELECT * FROM (SELECT {chosen} FROM edges){without}"
            write_sorted(connection, query, graph, columns, edges.schema, graph.path, path)


def _id_batches(vertices: Vertices, kind: pyarrow.DataType) -> pyarrow.RecordBatchReader:
    """Return a reader of the vertices that stay."""
    import pyarrow as pa

    schema = pa.schema([pa.field("vertex", kind, nullable=False)])
    return pa.RecordBatchReader.from_batches(schema, vertices([]))


@contextlib.contextmanager
def _between(
    edges: pyarrow.RecordBatchReader,
    vertices: Vertices,
    graph: _native.Graph,
    memory: int,
    resources: Resources,
) -> Iterator[pyarrow.RecordBatchReader]:
    """Yield a reader of the edges whose ends both stay."""
    kind, failures = edges.schema.field(0).type, list[BrimfulError]()
    with connected(memory, resources) as connection:
        connection.register("edges", _noted(edges, failures))
        connection.register("vertices", _noted(_id_batches(vertices, kind), failures))
        with _source_errors(graph.path, failures):
            connection.execute("CREATE TEMP TABLE kept AS FROM vertices")
        query = (
            "SELECT edges.* FROM edges SEMI JOIN kept AS a ON source = a.vertex "
            "SEMI JOIN kept AS b ON target = b.vertex"
        )
        with rows_of(connection, query, graph.path, _BATCH_ROWS) as rows:
            yield _joined(rows, graph.path, failures)


@contextlib.contextmanager
def _contracted(
    edges: pyarrow.RecordBatchReader,
    vertices: Vertices,
    contract: Any,
    memory: int,
    resources: Resources,
) -> Iterator[tuple[pyarrow.RecordBatchReader, pyarrow.RecordBatchReader]]:
    """Yield readers of the edges between labels, and of the labels of vertices that stay.

    Afterwards, warn of vertices without a label, which are left out with their edges.
    """
    import pyarrow as pa

    labeled = pa.RecordBatchReader.from_stream(contract)
    names = labeled.schema.names
    if len(names) < 2 or names[0] != "vertex":
        raise UsageError(
            "labels must be a result, or a table with the column vertex and a column of labels; "
            f"found the columns {', '.join(names) or 'none'}"
        )
    label = labeled.schema.field(1)
    if not (pa.types.is_integer(label.type) or pa.types.is_string(plain_type(label.type))):
        raise UsageError(
            f"the labels {label.name} have the type {label.type}, and vertices are integers or "
            "strings; convert the column"
        )
    failures, name = list[BrimfulError](), "the labels"
    kind, found = edges.schema.field(0).type, labeled.schema.field(0).type
    if not _is_of(found, kind):
        raise UsageError(
            f"the vertices of the labels have the type {found}, and those of the graph {kind}; "
            "convert the column vertex of the labels"
        )
    rows = Counter[str]()
    edges, ids = (
        _tallied(edges, rows, "edge"),
        _tallied(_id_batches(vertices, kind), rows, "vertex"),
    )
    with connected(memory, resources) as connection, connection.cursor() as listed:
        connection.register("edges", _noted(edges, failures))
        connection.register("vertices", _noted(ids, failures))
        connection.register("labeled", labeled)
        with _source_errors(name, failures):
            connection.execute(
                f"CREATE TABLE labels AS SELECT vertex, {sql_name(label.name)} AS label FROM "
                "labeled SEMI JOIN vertices USING (vertex) "
                f"WHERE {sql_name(label.name)} IS NOT NULL"
            )
            twice = connection.execute(
                "SELECT vertex FROM labels GROUP BY vertex HAVING count(*) > 1 LIMIT 1"
            ).fetchall()
            ((labels,),) = connection.execute("SELECT count(*) FROM labels").fetchall()
        if twice:
            raise InputError(f"the labels have vertex {twice[0][0]} more than once")
        if not labels:
            raise InputError("no vertex has a label; check the ids of the labels")
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
            between = _tallied(_joined(joined, name, failures), rows, "edge between labels")
            yield between, _joined(names_left, name, failures)
    if without := rows["vertex"] - labels:
        lost = rows["edge"] - rows["edge between labels"]
        warn(
            f"left out: {counted(without, 'vertex')} without a label, and {counted(lost, 'edge')} "
            "from or to them"
        )


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


def _joined(
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


def _noted(
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


def _edge_table(
    name: str,
    edges: pyarrow.RecordBatchReader,
    vertices: pyarrow.RecordBatchReader,
    ends: Sequence[str],
    reserve: int,
) -> EdgeTable:
    """Return edges, and then vertices as rows without a target, as an edge table."""
    import pyarrow as pa

    kind = edges.schema.field(0).type
    fields = [pa.field("source", kind), pa.field("target", kind)]
    weighted = "weight" in edges.schema.names
    if weighted:
        fields.append(pa.field("weight", pa.float64()))
    schema = pa.schema(fields)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in native_batches(edges):
            arrays = [batch.column(end) for end in ends]
            if weighted:
                arrays.append(batch.column("weight"))
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        for batch in native_batches(vertices):
            nulls = [pa.nulls(batch.num_rows, field.type) for field in fields[1:]]
            yield pa.RecordBatch.from_arrays([batch.column(0), *nulls], schema=schema)

    columns = PickedColumns("source", "target", "weight" if weighted else None)
    table = table_of(name, columns, schema, batches(), reserve_bytes=reserve)
    table.vertex_rows = True
    return table
