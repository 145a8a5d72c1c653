"""`brimful export GRAPH OUT`: the edges as text, pairs, Parquet or Arrow."""

from __future__ import annotations

import argparse
import time
from typing import get_args

from brimful.cli import options as shared
from brimful.cli.progress import ProgressLine, format_seconds
from brimful.formats import ExportFormat, export_format
from brimful.output import check_output, new_file, write_arrow
from brimful.tables import ARROW_RESERVE_BYTES, shrink_arrow_pools


def add_to(verbs: shared.Verbs) -> None:
    """Add the verb."""
    parser = shared.add_verb(verbs, "export", "Write the edges of a graph to a file.", act)
    parser.add_argument("graph", metavar="GRAPH", help="a graph directory or an input file")
    parser.add_argument("out", metavar="OUT", help="the file to write")
    parser.add_argument(
        "--format", choices=get_args(ExportFormat), help="default: by the name of OUT"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace OUT if it exists")
    shared.add_budget(parser)
    shared.add_reporting(parser)


def act(options: argparse.Namespace) -> None:
    """Write the edges, an undirected one once; then say how many."""
    format_name = export_format(options.out, options.format)
    check_output(options.out, overwrite=options.overwrite)
    from brimful import _native

    began = time.monotonic()
    with ProgressLine(quiet=options.quiet) as progress:
        given = shared.resources(options, progress)
        graph = shared.open_named_graph(options, given, progress)
        with new_file(options.out, overwrite=options.overwrite) as partial:
            if format_name in ("parquet", "arrow"):
                shrink_arrow_pools()
                edges = write_arrow(
                    graph.edge_stream(
                        budget=given.budget,
                        process_budget=given.process_budget,
                        reserve_bytes=ARROW_RESERVE_BYTES,
                    ),
                    partial,
                    format_name,
                )
            else:
                edges = graph.export_text(
                    partial,
                    format=format_name,
                    overwrite=True,
                    budget=given.budget,
                    process_budget=given.process_budget,
                    progress=given.progress,
                )
    seconds = time.monotonic() - began
    figures = {
        "edges": edges,
        "format": format_name,
        "output": options.out,
        "seconds": seconds,
        "peak_rss_bytes": _native.peak_rss_bytes(),
        "budget_bytes": given.budget,
    }
    if options.json:
        shared.print_json(figures)
    elif not options.quiet:
        shared.show(
            f"{options.out}: {edges:,} edges as {format_name} in {format_seconds(seconds)}, "
            + shared.peak_memory(_native.peak_rss_bytes(), given.budget)
        )
