"""`brimful neighbors GRAPH VERTEX`: the edges of a vertex."""

from __future__ import annotations

import argparse

from brimful.cli import options as shared
from brimful.cli.progress import ProgressLine, logged_to
from brimful.cli.request import vertex_of
from brimful.options.table import ResourceOptions

#: Bytes of a neighbor and its weight as objects, besides those of the look-up.
_ENTRY_BYTES = 160


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
        help="edges that reach the vertex in place of those that leave it; a directed graph needs "
        "its reverse index, which is built if it is missing, and stays",
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
        graph = Graph(native, budget=given.budget)
        degree = graph.in_degree if options.direction == "in" else graph.degree
        given.require(_ENTRY_BYTES * degree(vertex), "to show the neighbors")
        look_up = graph.in_neighbors if options.direction == "in" else graph.neighbors
        if options.weights:
            neighbors, weights = look_up(vertex, weights=True)
        else:
            neighbors, weights = look_up(vertex), None
    if options.json:
        found = {"vertex": vertex, "direction": options.direction, "neighbors": neighbors}
        shared.print_json(found if weights is None else found | {"weights": weights})
    elif weights is None:
        shared.show_rows(("neighbor",), ((one,) for one in neighbors))
    else:
        shared.show_rows(("neighbor", "weight"), zip(neighbors, weights, strict=True))
