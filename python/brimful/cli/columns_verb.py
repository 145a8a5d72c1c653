"""`brimful columns GRAPH [TABLE]`: add columns to the vertices of a graph, list or write them."""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict

from brimful.cli import options as shared
from brimful.cli.progress import ProgressLine
from brimful.errors import UsageError
from brimful.io.output import check_output, refuse_input, write_table
from brimful.options.imports import ColumnVerbOptions
from brimful.options.table import ResourceOptions


def add_to(verbs: shared.Verbs) -> None:
    """Add the verb."""
    parser = shared.add_verb(
        verbs,
        "columns",
        "Keep the columns of a table with the vertices of a graph.",
        act,
        more="Without a table, list the columns of the graph, or write them to a file. Vertices "
        "that the table lacks get nulls.",
        examples=(
            "brimful columns web.brimful pages.parquet --on url",
            "brimful columns web.brimful -o pages.csv",
        ),
    )
    parser.add_argument("graph", metavar="GRAPH", help="a graph directory or an input file")
    parser.add_argument(
        "table",
        metavar="TABLE",
        nargs="?",
        help="a .parquet, .csv, .tsv or .arrow file; needs DuckDB (pip install 'brimful[duckdb]')",
    )
    shared.add_options(parser, ColumnVerbOptions)
    parser.add_argument(
        *("-o", "--output"),
        metavar="OUT",
        help="write the vertices with their columns to a .parquet, .csv or .arrow file",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace OUT if it exists")
    shared.add_options(parser, ResourceOptions)
    shared.add_reporting(parser)


def act(options: argparse.Namespace) -> None:
    """Add the columns if there is a table, then print those of the graph."""
    from brimful import _native
    from brimful.tables.columns import (
        add_vertex_columns,
        footers_bytes,
        rows_bytes,
        schema_of,
        vertex_rows,
    )
    from brimful.tables.connection import JOIN_BYTES
    from brimful.tables.edge_columns import edge_columns
    from brimful.tables.edge_table import ARROW_RESERVE_BYTES, shrink_arrow_pools

    chosen = shared.chosen(options, ColumnVerbOptions)
    if options.table is None and chosen != shared.chosen(argparse.Namespace(), ColumnVerbOptions):
        raise UsageError("--on, --unmatched and --replace apply to a table; name one")
    if options.output is not None:
        refuse_input([options.output], options.graph, options.table)
        check_output(options.output, overwrite=options.overwrite)
    with ProgressLine(quiet=options.quiet) as progress:
        given = shared.resources(options, progress)
        if options.table is not None:
            given.require(JOIN_BYTES, "for a join")
        elif not os.path.isdir(options.graph):
            # Before the import, which may need less.
            given.require(ARROW_RESERVE_BYTES, "to read columns")
        graph = shared.open_named_graph(options, given, progress)
        if options.table is None:
            more = footers_bytes(graph) if options.output is None else rows_bytes(graph, None)
            given.require(ARROW_RESERVE_BYTES + more, "to read columns")
        shrink_arrow_pools()
        figures: dict[str, object] = {}
        if options.table is not None:
            tally = add_vertex_columns(
                graph,
                options.table,
                chosen["on"],
                given,
                unmatched=chosen["unmatched"],
                replace=chosen["replace"],
            )
            graph = _native.Graph.open(graph.path)
            figures = asdict(tally)
            for sentence in tally.sentences(options.table, "the graph"):
                progress.warn(sentence)
        if options.output is not None:
            write_table(lambda: vertex_rows(graph), options.output, overwrite=options.overwrite)
    columns = {field.name: str(field.type) for field in schema_of(graph)}
    of_edges = {field.name: str(field.type) for field in edge_columns(graph)}
    peak = _native.peak_rss_bytes()
    if options.json:
        shared.print_json(
            {"columns": columns, "edge_columns": of_edges}
            | figures
            | {"peak_rss_bytes": peak, "budget_bytes": given.budget}
        )
    elif not options.quiet:
        for about, kinds in (("vertices", columns), ("edges", of_edges)):
            listed = ", ".join(f"{name} ({kind})" for name, kind in kinds.items())
            shared.show(f"{options.graph} has columns of {about}: {listed or 'none'}")
        if options.table is not None:
            shared.show(f"  {shared.peak_memory(peak, given.budget)}")
