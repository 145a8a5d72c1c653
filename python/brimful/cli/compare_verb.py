"""`brimful compare RESULT RESULT`: whether two saved results differ, where and how far."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from brimful.cli import options as shared
from brimful.cli.arguments import integer, real

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
        "their ranks. The exit code is 1 if they differ.",
        act,
        examples=(
            "brimful compare ranks.parquet ranks-before.parquet",
            "brimful compare ranks.parquet others.csv --tolerance 0.001 -n 20",
        ),
    )
    parser.add_argument("first", metavar="RESULT", help="a .parquet, .csv or .arrow file")
    parser.add_argument("second", metavar="RESULT", help="another one")
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
    parser.add_argument(
        "--budget",
        metavar="SIZE",
        help="memory for the correlation of ranks, 80 bytes a vertex (default: three quarters of "
        "the available memory)",
    )
    shared.add_reporting(parser)


def act(options: argparse.Namespace) -> int:
    """Compare, print, and return the exit code."""
    from brimful.comparison import compare

    found = compare(
        options.first,
        options.second,
        tolerance=options.tolerance,
        top=options.top,
        budget=options.budget,
    )
    if options.json:
        names = {"first": options.first, "second": options.second, "equal": found.equal}
        shared.print_json(names | asdict(found))
    elif not options.quiet:
        shared.show(summary(options.first, options.second, found))
        if found.differences:
            first, second = found.columns
            shared.show_rows(
                ("vertex", f"{first} (first)", f"{second} (second)"), found.differences
            )
    return 0 if found.equal else DIFFERENT


def summary(first: str, second: str, found: Comparison) -> str:
    """Return the lines that describe a comparison."""
    verdict = "are equal" if found.equal else "differ"
    beyond = f" by more than {found.tolerance:g} of the larger" if found.tolerance else ""
    lines = [
        f"{first} and {second} {verdict}",
        f"  {found.differing:,} of {found.vertices:,} values differ{beyond}",
    ]
    if found.only_first or found.only_second:
        lines.append(
            f"  vertices in one only: {found.only_first:,} in the first, "
            f"{found.only_second:,} in the second"
        )
    if found.largest_difference is not None:
        lines.append(
            f"  largest difference {found.largest_difference:.3g}, relative "
            f"{found.largest_relative:.3g}"
        )
        ranks = found.rank_correlation
        lines.append(f"  rank correlation {'unknown' if ranks is None else format(ranks, '.6g')}")
    return "\n".join(lines)
