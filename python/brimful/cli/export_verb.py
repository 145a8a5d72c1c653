"""`brimful export GRAPH OUT`: the graph in a format that other programs read."""

from __future__ import annotations

import argparse
import time

from brimful.cli import options as shared
from brimful.cli.progress import ProgressLine, format_seconds
from brimful.io.formats import companions, export_format, input_format, output_files
from brimful.io.output import refuse_input, write_graph
from brimful.options.exports import ExportOptions
from brimful.options.table import ResourceOptions
from brimful.wording import counted


def add_to(verbs: shared.Verbs) -> None:
    """Add the verb."""
    parser = shared.add_verb(
        verbs,
        "export",
        "Write a graph to a file that import reads back as the same graph.",
        act,
        more="parquet and arrow hold every graph, edgelist every graph whose ids are words; the "
        "other formats refuse a graph that they cannot hold. An undirected edge is written once.",
        examples=(
            "brimful export web.brimful web.parquet",
            "brimful export web.brimful web.mtx --renumber",
        ),
    )
    parser.add_argument("graph", metavar="GRAPH", help="a graph directory or an input file")
    parser.add_argument(
        "out", metavar="OUT", help="the file to write; .gz, .xz and .zst compress text and pairs"
    )
    shared.add_options(parser, ExportOptions)
    shared.add_options(parser, ResourceOptions, "budget")
    shared.add_reporting(parser)


def act(options: argparse.Namespace) -> None:
    """Write the graph, then print the number of its edges."""
    chosen = shared.chosen(options, ExportOptions)
    format_name = export_format(options.out, chosen["format"])
    beside = companions(options.graph, input_format(options.graph))
    refuse_input(output_files(options.out, format_name), options.graph, *beside)
    from brimful import _native
    from brimful.tables.edge_columns import declared_rows

    began = time.monotonic()
    with ProgressLine(quiet=options.quiet) as progress:
        given = shared.resources(options, progress)
        exported = write_graph(
            lambda: shared.open_named_graph(options, given, progress),
            options.out,
            format_name,
            given,
            chosen,
            declared_rows,
        )
        for sentence in exported.warnings(options.out):
            progress.warn(sentence)
    seconds = time.monotonic() - began
    figures = {
        "edges": exported.edges,
        "lost": list(exported.lost),
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
            f"{options.out}: {counted(exported.edges, 'edge')} as {format_name} in "
            f"{format_seconds(seconds)}, "
            + shared.peak_memory(_native.peak_rss_bytes(), given.budget)
        )
