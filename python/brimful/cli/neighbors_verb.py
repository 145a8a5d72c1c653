"""`brimful neighbors GRAPH VERTEX`: the edges of a vertex."""

from __future__ import annotations

import argparse
from array import array
from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from brimful.cli import options as shared
from brimful.cli.progress import ProgressLine, logged_to
from brimful.cli.request import vertex_of
from brimful.io.output import native_batches
from brimful.options.table import ResourceOptions
from brimful.tables.edge_table import ARROW_RESERVE_BYTES, shrink_arrow_pools

if TYPE_CHECKING:
    from brimful import _native
    from brimful.graph import Graph
    from brimful.resources import Resources

#: Bytes of a neighbor and its weight as objects, besides those of the look-up.
_ENTRY_BYTES = 160
#: Bytes of each byte of an id: twice in UTF-8 while it is copied, and up to four in a string.
_ID_COPIES = 6
#: Bytes of an edge that is streamed, and of the batches of a stream.
_STREAMED_BYTES = 64
_BATCHES_BYTES = 16 << 20


def add_to(verbs: shared.Verbs) -> None:
    """Add the verb."""
    parser = shared.add_verb(
        verbs,
        "neighbors",
        "Show the neighbors of a vertex, in ascending order, one line for each edge.",
        act,
        examples=(
            "brimful neighbors web.brimful 17",
            "brimful neighbors roads.brimful 17 --in --weights",
        ),
    )
    parser.add_argument("graph", metavar="GRAPH", help="a graph directory or an input file")
    parser.add_argument("vertex", metavar="VERTEX", help="the id of a vertex")
    parser.add_argument(
        "--in",
        dest="direction",
        action="store_const",
        const="in",
        default="out",
        help="show the edges that reach the vertex instead of those that leave it; a directed "
        "graph needs its reverse index, which is built if missing, and kept",
    )
    parser.add_argument("--weights", action="store_true", help="show the weights of the edges")
    shared.add_options(parser, ResourceOptions, "budget")
    shared.add_reporting(parser)


def act(options: argparse.Namespace) -> None:
    """Look up, then print."""
    from brimful.graph import Graph

    with ProgressLine(quiet=options.quiet) as progress, logged_to(progress):
        given = shared.resources(options, progress)
        native = shared.open_named_graph(options, given, progress)
        vertex = vertex_of(options.vertex, native, "VERTEX")
        columns = _columns(Graph(native, budget=given.budget), vertex, options, given)
    if options.json:
        edges = {"vertex": vertex, "direction": options.direction}
        shared.print_json(edges | dict(zip(("neighbors", "weights"), columns, strict=False)))
    else:
        names = ("neighbor", "weight")[: len(columns)]
        shared.show_rows(names, zip(*columns, strict=True))


def _columns(
    graph: Graph, vertex: int | str, options: argparse.Namespace, given: Resources
) -> list[Iterator[Any]]:
    """Return the neighbors, and with --weights the weights: a list each, or read as they come.

    Raises:
        BudgetError: Neither fits the budget.
    """
    from brimful import _native
    from brimful.ids import shown_ids

    inward, weights = options.direction == "in", options.weights
    degree = (graph.in_degree if inward else graph.degree)(vertex)
    names = ["source" if inward else "target", *(["weight"] if weights else [])]
    longest = graph.native.info().get("names", {}).get("longest_bytes", 0)
    listed = (_ENTRY_BYTES + _ID_COPIES * longest) * degree
    streamed = ARROW_RESERVE_BYTES + _BATCHES_BYTES + len(names) * _STREAMED_BYTES * degree
    given.require(min(listed, streamed), "to show the neighbors")
    if not given.has_room(listed):
        shrink_arrow_pools()
        # `pyarrow.array` would load pandas.
        vertices = (
            [vertex] if isinstance(vertex, str) else array("q" if vertex < 0 else "Q", [vertex])
        )
        look_ups = _native.Lookup(graph.native)
        edges = look_ups.neighbor_stream(vertices, options.direction, weights)
        return [_column(edges, name) for name in names]
    look_up = graph.in_neighbors if inward else graph.neighbors
    ids, *numbers = look_up(vertex, weights=True) if weights else [look_up(vertex)]
    return [iter(one) for one in (shown_ids(ids, graph.native.id_type), *numbers)]


def _column(edges: _native.NeighborStream, name: str) -> Iterator[Any]:
    """Return a column of the edges; the first batch is read here, with any error."""
    import pyarrow as pa

    reader = pa.RecordBatchReader.from_stream(edges)
    batches = (batch.column(name).to_pylist() for batch in native_batches(reader))
    return chain.from_iterable(chain(list(islice(batches, 1)), batches))
