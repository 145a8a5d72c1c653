"""`brimful path GRAPH A B`: a shortest path, or several."""

from __future__ import annotations

import argparse
from typing import Any

from brimful.cli import options as shared
from brimful.cli.arguments import integer
from brimful.cli.progress import ProgressLine, logged_to
from brimful.cli.request import vertex_of
from brimful.options.table import ResourceOptions


def add_to(verbs: shared.Verbs) -> None:
    """Add the verb."""
    parser = shared.add_verb(
        verbs,
        "path",
        "Show a shortest path from one vertex to another, one vertex on each line.",
        act,
        examples=(
            "brimful path web.brimful 17 4711",
            "brimful path roads.brimful 17 4711 --weighted --json",
            "brimful path roads.brimful 17 4711 --weighted --k 3",
        ),
    )
    parser.add_argument("graph", metavar="GRAPH", help="a graph directory or an input file")
    parser.add_argument("a", metavar="A", help="the vertex where the path begins")
    parser.add_argument("b", metavar="B", help="the vertex where the path ends")
    parser.add_argument(
        "--weighted",
        action="store_true",
        help="measure a path by the sum of its weights; a directed graph needs its reverse index, "
        "which is built if missing, and kept",
    )
    parser.add_argument(
        "--k",
        metavar="N",
        type=integer(1),
        help="show the N shortest paths that visit no vertex twice, each with its length on a "
        "line; a directed graph needs its reverse index, which is built if missing, and kept",
    )
    shared.add_options(parser, ResourceOptions)
    shared.add_reporting(parser)


def act(options: argparse.Namespace) -> None:
    """Search, then print."""
    from brimful.graph import Graph
    from brimful.ids import shown_ids
    from brimful.paths import shortest_path, shortest_paths

    with ProgressLine(quiet=options.quiet) as progress, logged_to(progress):
        given = shared.resources(options, progress)
        native = shared.open_named_graph(options, given, progress)
        ends = vertex_of(options.a, native, "A"), vertex_of(options.b, native, "B")
        graph = Graph(native, budget=given.budget)
        if options.k is not None:
            found = shortest_paths(graph, *ends, options.k, options.weighted, given)
            paths = [(length, shown_ids(path, native.id_type)) for length, path in found]
        else:
            path = shortest_path(graph, *ends, options.weighted, given)
            path = None if path is None else shown_ids(path, native.id_type)
    if options.k is not None:
        _show(paths, ends, as_json=options.json)
    elif options.json:
        edges = None if path is None else len(path) - 1
        shared.print_json({"source": ends[0], "target": ends[1], "edges": edges, "path": path})
    elif path is None:
        shared.show(f"no path leads from {ends[0]} to {ends[1]}")
    else:
        shared.show_rows(("vertex",), ((vertex,) for vertex in path))


def _show(
    paths: list[tuple[float, list[Any]]], ends: tuple[int | str, int | str], *, as_json: bool
) -> None:
    """Print several paths."""
    if as_json:
        shown = [{"length": length, "path": path} for length, path in paths]
        shared.print_json({"source": ends[0], "target": ends[1], "paths": shown})
    elif paths:
        rows = ((length, " ".join(map(str, path))) for length, path in paths)
        shared.show_rows(("length", "path"), rows)
    else:
        shared.show(f"no path leads from {ends[0]} to {ends[1]}")
