"""`brimful index GRAPH in,reverse`: build the missing indexes of a graph."""

from __future__ import annotations

import argparse

from brimful.cli import options as shared
from brimful.cli.progress import ProgressLine
from brimful.options.imports import parse_indexes
from brimful.options.table import ResourceOptions


def add_to(verbs: shared.Verbs) -> None:
    """Add the verb."""
    parser = shared.add_verb(
        verbs,
        "index",
        "Build indexes of a graph.",
        act,
        examples=("brimful index web.brimful in,reverse --budget 500M",),
    )
    parser.add_argument("graph", metavar="GRAPH", help="a graph directory or an input file")
    parser.add_argument("names", metavar="NAMES", help="in,reverse or one of them")
    shared.add_options(parser, ResourceOptions)
    shared.add_reporting(parser)


def act(options: argparse.Namespace) -> None:
    """Build the missing indexes, then print all indexes."""
    from brimful import _native

    names = parse_indexes(options.names)
    with ProgressLine(quiet=options.quiet) as progress:
        given = shared.resources(options, progress)
        graph = shared.open_named_graph(options, given, progress)
        figures = graph.build_index(names, resources=given)
    peak = _native.peak_rss_bytes()
    if options.json:
        shared.print_json(figures | {"peak_rss_bytes": peak, "budget_bytes": given.budget})
    elif not options.quiet:
        shared.show(f"{options.graph} has indexes: {', '.join(graph.indexes)}")
        shared.show(f"  {shared.peak_memory(peak, given.budget)}")
