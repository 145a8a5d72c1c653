"""Derives graphs from the edges of another graph: filtered, reversed, contracted.

Edges stream from one graph into the import of the other; vertices follow them as rows without a
target, so that those without edges stay. Invariant: vertices and edges are in memory in batches
only, except ids that the caller supplied.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from brimful.errors import BudgetError, InputError
from brimful.io.hidden import whole_graph
from brimful.io.ingest import import_table
from brimful.io.output import native_batches
from brimful.memory import smallest_error
from brimful.options.imports import EdgeOptions, ImportOptions, PolicyOptions, import_options
from brimful.options.table import picked
from brimful.resources import Resources
from brimful.tables.columns import EDGES, VERTICES, footer_bytes, schema_of, write_columns
from brimful.tables.connection import JOIN_RESERVE_BYTES, MIN_JOIN_BYTES
from brimful.tables.derived_edges import between, contracted, kept_edges, write_staged
from brimful.tables.derived_vertices import Vertices, id_batches, kept_vertices
from brimful.tables.edge_columns import edge_columns, staged_edges
from brimful.tables.edge_table import ARROW_RESERVE_BYTES, EdgeTable, PickedColumns, table_of

if TYPE_CHECKING:
    import pyarrow

    from brimful import _native

#: Divisor of the budget beyond the smallest one; joins take the quotient.
_JOINED_SHARE = 4
#: An upper bound of the smallest budget of an import with joins: a base, and more per thread.
_LEAST_BYTES = 384 << 20, 64 << 20
#: Bytes that joins take besides the memory that DuckDB manages.
_PACKAGES_BYTES = JOIN_RESERVE_BYTES - MIN_JOIN_BYTES
#: Memory of the parts of pyarrow that evaluate conditions, once they are loaded.
_CONDITION_BYTES = 24 << 20


@dataclass(frozen=True)
class Derivation:
    """The steps of a derivation, in order: each field applies to the outcome of the one before.

    Attributes:
        ids: Vertices to keep, an Arrow array; None: all.
        vertices: Condition on the vertices to keep, with the edges between them.
        edges: Condition on the edges to keep; vertices stay.
        reverse: Reverse the edges.
        undirected: Remove directions.
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
    if joins:
        # Measured before pyarrow is loaded, so that the work below has the budget that is checked.
        resources = resources.beside(_PACKAGES_BYTES)
    require_budget(options, resources, joins=joins, tests=tests)
    vertices = kept_vertices(graph, wanted.ids, wanted.vertices)
    columns = [] if merges else edge_columns(graph).names
    edges = kept_edges(graph, wanted.edges, columns)
    if next(vertices([]), None) is None:
        raise InputError(
            f"no vertex of {graph.path} is left; check the conditions, and that the ids are "
            f"{'strings' if graph.id_type == 'string' else 'integers'}"
        )
    given, memory, reserve = _shares(resources, joins=joins, tests=tests)
    resources.shrink_arrow_pools()
    ends = ["target", "source"] if wanted.reverse else ["source", "target"]
    labels = id_batches(vertices, edges.schema.field(0).type)
    undirected = wanted.undirected or not graph.directed
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(whole_graph(out))
        if wanted.contract is not None:
            opened = contracted(edges, vertices, wanted.contract, memory, resources)
            edges, labels = stack.enter_context(opened)
        elif parts:
            edges = stack.enter_context(between(edges, vertices, graph, memory, resources))
        staged = os.path.join(os.path.dirname(place), "edges.parquet")
        if columns:
            policies = {"loops": options["self_loops"] == "keep", "directed": not undirected}
            write_staged(edges, ends, columns, graph, staged, memory, resources, **policies)
            edges, ends = staged_edges(staged, graph), ["source", "target"]
        table = _edge_table(graph.path, edges, labels, ends, reserve)
        chosen: Any = {**options, "undirected": undirected}
        with table:
            figures = import_table(table, place, chosen, given)
        if columns:
            with _native.NewTable(_native.Graph.open(place), EDGES) as new:
                os.rename(staged, new.path)
                new.publish(footer_bytes(new.path))
        if wanted.contract is None:
            _add_vertex_columns(_native.Graph.open(place), graph, vertices)
        figures["bytes_on_disk"] = _native.Graph.open(place).bytes_on_disk
    figures["peak_rss_bytes"] = _native.peak_rss_bytes()
    figures["vertex_columns"] = None
    return figures


def _add_vertex_columns(made: _native.Graph, graph: _native.Graph, vertices: Vertices) -> None:
    """Add the columns of the vertices of `graph` that were kept, if it has any."""
    from brimful import _native

    schema = schema_of(graph)
    if not schema.names:
        return
    with _native.NewTable(made, VERTICES) as new:
        rows = (batch.select(schema.names) for batch in vertices(schema.names))
        write_columns(new, schema, rows, made.vertices)
        new.publish(footer_bytes(new.path))


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
            edges=picked(EdgeOptions, options),
            resources=given.leaving(reserve),
        )
    except BudgetError as error:
        if resources.process_budget:
            raise
        # The import has the budget without the memory of joins.
        named = error.needed_bytes + memory
        raise smallest_error(resources, named, "to derive a graph") from None


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
    return resources, memory, _PACKAGES_BYTES + memory


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
