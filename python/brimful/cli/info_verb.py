"""`brimful info GRAPH`: the properties of a graph directory."""

from __future__ import annotations

import argparse

from brimful.cli import options as shared
from brimful.cli.progress import ProgressLine
from brimful.sizes import format_bytes

BAR_WIDTH = 40
"""Characters of the longest bar of a histogram."""


def add_to(verbs: shared.Verbs) -> None:
    """Add the verb."""
    parser = shared.add_verb(
        verbs,
        "info",
        "Show counts, order, indexes and sizes.",
        act,
        examples=(
            "brimful info web.brimful",
            "brimful info web.brimful --json",
        ),
    )
    parser.add_argument("graph", metavar="GRAPH", help="a graph directory or an input file")
    shared.add_reporting(parser)


def act(options: argparse.Namespace) -> None:
    """Print the properties of the graph."""
    with ProgressLine(quiet=options.quiet) as progress:
        graph = shared.open_named_graph(options, shared.resources(options, progress), progress)
        figures = graph.info()
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
        if key == "shard_histogram" and isinstance(value, dict):
            lines.append(f"{indent}shards by arcs")
            lines += histogram(value, indent + "  ")
        elif isinstance(value, dict):
            lines.append(f"{indent}{name}")
            lines += describe(value, indent + "  ")
        else:
            lines.append(f"{indent}{name:<20} {_text(key, value)}")
    return lines


def histogram(counts: dict[str, int], indent: str) -> list[str]:
    """Return a bar for each range of sizes: `counts` maps 2^k to how many are below 2^(k + 1)."""
    most = max(counts.values(), default=1)
    lines = []
    for least, count in counts.items():
        bar = "#" * max(1, round(count * BAR_WIDTH / most))
        lines.append(f"{indent}{int(least):>13,} +  {bar} {count:,}")
    return lines


def _text(key: str, value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        if "bytes" in key.split("_"):
            return f"{value:,} ({format_bytes(value)})"
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(_text(key, item) for item in value) or "none"
    return str(value)
