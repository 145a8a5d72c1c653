"""`brimful verify GRAPH`: every checksum and every structure, in one pass."""

from __future__ import annotations

import argparse

from brimful.cli import options as shared
from brimful.cli.progress import ProgressLine, format_seconds
from brimful.options.table import ResourceOptions
from brimful.sizes import format_bytes
from brimful.wording import counted


def add_to(verbs: shared.Verbs) -> None:
    """Add the verb."""
    parser = shared.add_verb(
        verbs,
        "verify",
        "Check every byte of a graph.",
        act,
        examples=("brimful verify web.brimful",),
    )
    parser.add_argument("graph", metavar="GRAPH", help="a graph directory or an input file")
    shared.add_options(parser, ResourceOptions)
    shared.add_reporting(parser)


def act(options: argparse.Namespace) -> None:
    """Verify, then print the figures."""
    with ProgressLine(quiet=options.quiet) as progress:
        given = shared.resources(options, progress)
        graph = shared.open_named_graph(options, given, progress)
        figures = graph.verify(progress=given.progress)
    if options.json:
        shared.print_json(figures)
    elif not options.quiet:
        shared.show(
            f"{options.graph} is sound: {counted(figures['files'], 'file')}, "
            f"{format_bytes(figures['bytes'])}, {counted(figures['arcs'], 'arc')} checked in "
            f"{format_seconds(figures['seconds'])}"
        )
