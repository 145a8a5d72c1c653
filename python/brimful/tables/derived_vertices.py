"""The vertices of derived graphs: those within some hops, in a table, and those that stay.

Invariant: vertices are in memory in batches only, except ids that the caller supplied.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from brimful.errors import UsageError
from brimful.ids import VertexId, naming, own_id
from brimful.io.output import native_batches
from brimful.io.reader_errors import stream_reader
from brimful.memory import too_small
from brimful.resources import Resources
from brimful.tables.columns import VERTICES, place_hint, vertex_rows
from brimful.tables.expressions import Condition
from brimful.tables.joining import plain_type

if TYPE_CHECKING:
    import pyarrow

    from brimful import _native
    from brimful.graph import Graph

#: Memory of an edge by which a neighborhood is found.
_REACHED_BYTES = 80

#: A function that yields all vertices with the named columns, from the first in each call.
Vertices = Callable[[Sequence[str]], Iterator[Any]]


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
            raise too_small(resources, needed, "for the edges of the neighborhood")
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


def kept_vertices(graph: _native.Graph, ids: pyarrow.Array | None, condition: Any) -> Vertices:
    """Return a function that yields the vertices that stay, ascending, with named columns.

    Those that stay are among `ids` and meet `condition`; None restricts nothing.

    Raises:
        UsageError: The ids have the type of other vertices, or the condition is wrong.
    """
    import pyarrow as pa

    schema = vertex_rows(graph).schema
    test = None
    if condition is not None:
        test = Condition(condition, schema, lambda column: place_hint(graph, column, VERTICES))
    among = None if ids is None else _sorted_ids(ids, schema.field(0).type)

    def batches(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        needed = set(names) | (set() if test is None else test.columns)
        read = [name for name in schema.names[1:] if name in needed]
        for batch in native_batches(vertex_rows(graph, read)):
            rows = batch if among is None else _those_in(batch, among)
            if test is not None:
                rows = test.rows(rows)
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
        if not are_ids_of(ids.type, kind) and len(ids):
            raise pa.ArrowInvalid(f"they are {ids.type}")
        distinct = pc.unique(ids.cast(kind).drop_null())
    except pa.ArrowException as error:
        remedy = conversion("them", ids.type, kind)
        raise UsageError(f"the ids are not vertices of type {kind}: {error}; {remedy}") from None
    return distinct.take(pc.sort_indices(distinct))


def are_ids_of(found: pyarrow.DataType, kind: pyarrow.DataType) -> bool:
    """Return whether vertices of the type `found` are those of a graph; a cast would guess."""
    import pyarrow as pa

    plain = plain_type(found)
    fits = pa.types.is_string if pa.types.is_string(kind) else pa.types.is_integer
    return bool(fits(plain))


def conversion(vertices: str, found: pyarrow.DataType, kind: pyarrow.DataType) -> str:
    """Return how `vertices` of the type `found` become those of a graph, for errors."""
    import pyarrow as pa

    is_named = pa.types.is_string(kind) and pa.types.is_list(plain_type(found))
    return naming("vertex") if is_named else f"convert {vertices}"


def _those_in(batch: pyarrow.RecordBatch, ids: pyarrow.Array) -> pyarrow.RecordBatch:
    """Return the rows whose vertices are in the sorted `ids`; compares ids in their range only."""
    import pyarrow.compute as pc

    vertices = batch.column(0)
    ends = vertices[0].as_py(), vertices[len(vertices) - 1].as_py()
    first = bisect.bisect_left(ids, ends[0], key=lambda id_: id_.as_py())
    last = bisect.bisect_right(ids, ends[1], key=lambda id_: id_.as_py())
    return batch.filter(pc.is_in(vertices, value_set=ids.slice(first, last - first)))


def id_batches(vertices: Vertices, kind: pyarrow.DataType) -> pyarrow.RecordBatchReader:
    """Return a reader of the vertices that stay."""
    import pyarrow as pa

    schema = pa.schema([pa.field("vertex", kind, nullable=False)])
    return pa.RecordBatchReader.from_batches(schema, vertices([]))
