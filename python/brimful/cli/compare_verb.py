"""`brimful compare RESULT RESULT`: the differences of two saved results."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from brimful.cli import options as shared
from brimful.cli.arguments import integer, real
from brimful.cli.progress import ProgressLine
from brimful.options.table import ResourceOptions
from brimful.wording import counted

if TYPE_CHECKING:
    from brimful.comparison import Comparison

#: The exit code where the results differ.
DIFFERENT = 1


def add_to(verbs: shared.Verbs) -> None:
    """Add the verb."""
    parser = shared.add_verb(
        verbs,
        "compare",
        "Compare two results that 'run -o' wrote: the largest differences, and the correlation of "
        "their ranks.",
        act,
        more="Rows, such as pairs, are compared by all columns but the last. The exit code is 1 if "
        "they differ.",
        examples=(
            "brimful compare ranks.parquet ranks-before.parquet",
            "brimful compare ranks.parquet others.csv --tolerance 0.001 -n 20",
        ),
    )
    parser.add_argument("first", metavar="RESULT", help="a .parquet, .csv or .arrow file")
    parser.add_argument("second", metavar="RESULT", help="the second file, in one of these formats")
    parser.add_argument(
        "--tolerance",
        metavar="X",
        type=real(0),
        help="values are equal if they differ by at most this share of the larger one (default: "
        "1e-9 for floats, 0 for integers)",
    )
    parser.add_argument(
        *("-n", "--top"),
        metavar="N",
        type=integer(0),
        default=10,
        help="number of differences to print (default: 10)",
    )
    shared.add_options(parser, ResourceOptions)
    shared.add_reporting(parser)


def act(options: argparse.Namespace) -> int:
    """Compare, print, and return the exit code."""
    from brimful import _native
    from brimful.comparison import compared

    with ProgressLine(quiet=options.quiet) as progress:
        given = shared.resources(options, progress)
        comparison = compared(options.first, options.second, options.tolerance, options.top, given)
    if options.json:
        paths = {"first": options.first, "second": options.second, "equal": comparison.equal}
        memory = {"peak_rss_bytes": _native.peak_rss_bytes(), "budget_bytes": given.budget}
        shared.print_json(paths | asdict(comparison) | memory)
    elif not options.quiet:
        shared.show(summary(options.first, options.second, comparison))
        if comparison.differences and comparison.columns is not None:
            first, second = comparison.columns
            names = (*comparison.keys, f"{first} (first)", f"{second} (second)")
            shared.show_rows(names, comparison.differences)
    return 0 if comparison.equal else DIFFERENT


def summary(first: str, second: str, comparison: Comparison) -> str:
    """Return the lines that describe a comparison."""
    verdict = "are equal" if comparison.equal else "differ"
    beyond = f" by more than {comparison.tolerance:g} of the larger" if comparison.tolerance else ""
    lines = [f"{first} and {second} {verdict}"]
    if comparison.columns is not None:
        values = counted(comparison.vertices, "value")
        differ = "differs" if comparison.vertices == 1 else "differ"
        lines.append(f"  {comparison.differing:,} of {values} {differ}{beyond}")
        if comparison.columns[0] != comparison.columns[1]:
            columns = "{} of the first is compared with {} of the second".format(
                *comparison.columns
            )
            lines.append(f"  note: {columns}")
    if comparison.only_first or comparison.only_second:
        noun = "vertices" if comparison.keys == ("vertex",) else "rows"
        lines.append(
            f"  {noun} in one only: {comparison.only_first:,} in the first, "
            f"{comparison.only_second:,} in the second"
        )
    if comparison.largest_difference is not None:
        lines.append(
            f"  largest difference {comparison.largest_difference:.3g}, relative "
            f"{comparison.largest_relative:.3g}"
        )
        ranks = comparison.rank_correlation
        lines.append(f"  rank correlation {'unknown' if ranks is None else format(ranks, '.6g')}")
    return "\n".join(lines)
