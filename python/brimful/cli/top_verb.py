"""`brimful top RESULT`: the vertices or rows with the largest values of a saved result."""

from __future__ import annotations

import argparse

from brimful.cli import options as shared
from brimful.cli.arguments import integer
from brimful.cli.progress import ProgressLine
from brimful.memory import too_small
from brimful.options.table import ResourceOptions

#: The least bytes for rows while they are sorted.
_LEAST_ROOM_BYTES = 16 << 20


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
        *("-n", "--top"),
        metavar="N",
        type=integer(1),
        default=10,
        help="number of rows (default: 10)",
    )
    shared.add_options(parser, ResourceOptions, "budget")
    shared.add_reporting(parser)


def act(options: argparse.Namespace) -> None:
    """Read the file once, then print."""
    from brimful.tables.edge_table import shrink_arrow_pools
    from brimful.tables.result_files import READ_BYTES
    from brimful.tables.result_rows import (
        COPIES,
        known_result_bytes,
        largest,
        open_table,
        result_columns,
    )

    with ProgressLine(quiet=options.quiet) as progress:
        given = shared.resources(options, progress)
    index_bytes = known_result_bytes(options.result)
    given.require(READ_BYTES + index_bytes + _LEAST_ROOM_BYTES, "to read a result")
    taken = given.taken_bytes(READ_BYTES)
    shrink_arrow_pools()
    table = open_table(options.result)
    columns = result_columns(table.schema.names)
    taken += table.reserve_bytes(columns)
    room = given.budget_bytes() - taken
    if room < _LEAST_ROOM_BYTES:
        raise too_small(given, taken + _LEAST_ROOM_BYTES, f"to read {options.result}")
    rows = largest(table, columns, options.top, room // COPIES)
    if options.json:
        shared.print_json({"column": columns[-1], "columns": columns, "rows": rows})
    else:
        shared.show_rows(columns, rows)
