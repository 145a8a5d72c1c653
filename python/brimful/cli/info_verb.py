"""`brimful info GRAPH`: the properties of a graph directory."""

from __future__ import annotations

import argparse

from brimful.cli import options as shared
from brimful.cli.log import command_of
from brimful.cli.progress import ProgressLine, logged_to
from brimful.cli.request import add_around, around_of, refuse_around
from brimful.options.table import ResourceOptions
from brimful.sizes import format_bytes

#: Titles of histograms by key; each counts values in ranges that begin at powers of two.
HISTOGRAMS = {
    "shard_histogram": "shards by arcs",
    "out_degrees": "vertices by out-degree",
    "in_degrees": "vertices by in-degree",
    "degrees": "vertices by degree",
    "component_sizes": "components by vertices",
}
#: Keys whose values are lists of columns.
COLUMNS = ("vertex_columns", "edge_columns")
BAR_WIDTH = 40
"""Characters of the longest bar of a histogram."""


def add_to(verbs: shared.Verbs) -> None:
    """Add the verb."""
    parser = shared.add_verb(
        verbs,
        "info",
        "Show the counts, order, indexes and sizes of a graph.",
        act,
        examples=(
            "brimful info web.brimful",
            "brimful info web.brimful --json",
            "brimful info web.brimful --plots --html web.html --around 17",
        ),
    )
    parser.add_argument("graph", metavar="GRAPH", help="a graph directory or an input file")
    parser.add_argument(
        "--plots",
        action="store_true",
        help="also show the distributions of degrees and component sizes, in a few passes over "
        "the edges",
    )
    parser.add_argument(
        "--html",
        metavar="FILE",
        help="write a report with figures of the graph; needs matplotlib and Jinja "
        "(pip install 'brimful[report]')",
    )
    add_around(parser)
    parser.add_argument("--overwrite", action="store_true", help="replace FILE if it exists")
    shared.add_options(parser, ResourceOptions)
    shared.add_reporting(parser)


def act(options: argparse.Namespace) -> None:
    """Print the properties of the graph, and the plots and reports that the options name."""
    from brimful.graph import Graph
    from brimful.tables.columns import footers_bytes
    from brimful.tables.edge_columns import has_columns
    from brimful.tables.edge_table import ARROW_RESERVE_BYTES, PARQUET_BYTES, shrink_arrow_pools

    if options.html is not None:
        from brimful.report.html import check_report

        check_report(options.html, overwrite=options.overwrite)
    else:
        refuse_around(options, "--html")
    with ProgressLine(quiet=options.quiet) as progress, logged_to(progress):
        given = shared.resources(options, progress)
        native = shared.open_named_graph(options, given, progress)
        around = around_of(options, native)
        graph = Graph(native)
        census, columns_bytes = None, footers_bytes(native)
        # The budget is checked before the figures of columns load pyarrow.
        if options.plots or options.html is not None:
            from brimful.graph_queries import census_of
            from brimful.report import html as report_html

            columns_bytes += PARQUET_BYTES if has_columns(native) else 0
            left = given.leaving(report_html.REPORT_RESERVE_BYTES + columns_bytes)
            census = census_of(graph, left)
        elif has_columns(native):
            given.require(ARROW_RESERVE_BYTES + columns_bytes, "to read columns")
        if has_columns(native):
            shrink_arrow_pools()
        figures = graph.info()
        if census is not None and options.plots:
            figures["census"] = census.figures()
        if census is not None and options.html is not None:
            made = report_html.of_graph(graph, census, around, command_of(options.words))
            made.write(options.html, overwrite=options.overwrite)
    if options.json:
        shared.print_json(figures)
    elif not options.quiet:
        shared.show(options.graph)
        for line in describe(figures, "  "):
            shared.show(line)


def describe(figures: dict[str, object], indent: str) -> list[str]:
    """Return `key  value` lines, nested objects indented below their key."""
    lines: list[str] = []
    for key, value in figures.items():
        name = key.replace("_", " ")
        if key in HISTOGRAMS and isinstance(value, dict):
            lines.append(f"{indent}{HISTOGRAMS[key]}")
            lines += histogram(value, indent + "  ")
        elif key in COLUMNS and isinstance(value, list) and value:
            lines.append(f"{indent}{name}")
            lines += [
                f"{indent}  {one['name']:<18} {one['type']}, {format_bytes(one['bytes'])}"
                for one in value
            ]
        elif isinstance(value, dict):
            lines.append(f"{indent}{name}")
            lines += describe(value, indent + "  ")
        else:
            lines.append(f"{indent}{name:<20} {_shown_value(key, value)}")
    return lines


def histogram(counts: dict[str, int], indent: str) -> list[str]:
    """Return a bar for each range of sizes; `counts` maps 2^k to the count below 2^(k + 1)."""
    most = max(counts.values(), default=1)
    lines = []
    for least, count in counts.items():
        bar = "#" * max(1, round(count * BAR_WIDTH / most))
        lines.append(f"{indent}{int(least):>13,} +  {bar} {count:,}")
    return lines


def _shown_value(key: str, value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        if "bytes" in key.split("_") and value >= 1024:
            return f"{value:,} ({format_bytes(value)})"
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(_shown_value(key, item) for item in value) or "none"
    return str(value)
