"""`brimful top RESULT`: the vertices or rows with the largest values of a saved result."""

from __future__ import annotations

import argparse

from brimful.cli import options as shared
from brimful.cli.arguments import integer
from brimful.cli.progress import ProgressLine
from brimful.memory import too_small
from brimful.options.table import ResourceOptions
from brimful.wording import counted

#: Copies of the kept rows while they are joined with others and sorted.
_COPIES = 5
#: So many rows are small, even if the file has fewer.
_FEW_ROWS = 10_000
#: Further memory of the rows in JSON, in copies.
_COPIES_OF_JSON = 24


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
    from brimful.tables.edge_table import ARROW_RESERVE_BYTES, shrink_arrow_pools
    from brimful.tables.result_rows import batches_of, largest, open_table

    with ProgressLine(quiet=options.quiet) as progress:
        given = shared.resources(options, progress)
    given.require(ARROW_RESERVE_BYTES, "to read a result")
    limit, taken = given.budget_bytes(), given.taken_bytes(ARROW_RESERVE_BYTES)
    shrink_arrow_pools()
    table = open_table(options.result)
    columns = table.schema.names
    if columns[0] == "vertex":
        # Later columns were joined.
        columns = columns[:2]
    count = options.top
    if count > _FEW_ROWS:
        seen = batches_of(table, options.result, columns=columns[:1])
        count = min(count, sum(batch.num_rows for batch in seen))
    # JSON has all rows as objects and as text at the same time.
    times = _COPIES + (_COPIES_OF_JSON if options.json else 0)

    def hold(size: int) -> None:
        if taken + times * size > limit:
            purpose = f"to show {counted(count, 'row')}"
            raise too_small(limit, taken + times * size, purpose)

    rows = largest(table, options.result, columns, count, hold)
    if options.json:
        shared.print_json({"column": columns[-1], "columns": columns, "rows": list(rows)})
    else:
        shared.show_rows(columns, rows)
