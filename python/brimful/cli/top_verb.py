"""`brimful top RESULT`: the largest values of a saved result."""

from __future__ import annotations

import argparse

from brimful.cli import options as shared
from brimful.cli.arguments import integer


def add_to(verbs: shared.Verbs) -> None:
    """Add the verb."""
    parser = shared.add_verb(
        verbs,
        "top",
        "Show the largest values of a result that 'run -o' wrote.",
        act,
        examples=("brimful top ranks.parquet", "brimful top ranks.csv -n 100 --json"),
    )
    parser.add_argument("result", metavar="RESULT", help="a .parquet, .csv or .arrow file")
    parser.add_argument(
        "-n", metavar="N", type=integer(1), default=10, help="number of rows (default: 10)"
    )
    shared.add_reporting(parser)


def act(options: argparse.Namespace) -> None:
    """Read the file once, then print."""
    from brimful.saved import SavedResult

    result = SavedResult(options.result)
    rows = result.top(options.n)
    if options.json:
        shared.print_json({"column": result.column, "rows": rows})
    else:
        shared.show_rows(("vertex", result.column), rows)
