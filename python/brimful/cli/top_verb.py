"""`brimful top RESULT`: the vertices or rows with the largest values of a saved result."""

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
    from brimful.tables.result_rows import largest, open_table

    table = open_table(options.result)
    columns = table.schema.names
    if columns[0] == "vertex":
        # Later columns were joined.
        columns = columns[:2]
    rows = largest(table, options.result, columns, options.n)
    if options.json:
        shared.print_json({"column": columns[-1], "columns": columns, "rows": rows})
    else:
        shared.show_rows(columns, rows)
