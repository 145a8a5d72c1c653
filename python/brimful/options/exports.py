"""The table of options of exports."""

from collections.abc import Sequence
from typing import Annotated, TypedDict

from brimful.io.formats import ExportFormat
from brimful.options.checks import column_names
from brimful.options.table import Option


class ExportOptions(TypedDict, total=False):
    """How a graph is written to a file."""

    format: Annotated[
        ExportFormat | None,
        Option(
            "`parquet` and `arrow` hold every graph, `edgelist` every graph whose ids are words; "
            "`graphalytics`, `mtx`, `metis`, `csv` and `u32pairs` hold some. None: by the name of "
            "the file.",
            help="default: by the name of OUT",
        ),
    ]
    renumber: Annotated[
        bool,
        Option(
            "Write the ids of `mtx` and `metis` as 1 to n: consecutive ids that begin elsewhere, "
            "or strings in the order of their bytes.",
            help="mtx, metis: write consecutive ids, or strings in the order of their bytes, as 1 "
            "to n",
            default=False,
        ),
    ]
    lossy: Annotated[
        bool,
        Option(
            "Leave out the parts of the graph that `csv` and `u32pairs` cannot hold, and log this.",
            help="csv, u32pairs: leave out direction and vertices without edges (u32pairs: also "
            "weights), and report the loss",
            default=False,
        ),
    ]
    columns: Annotated[
        str | Sequence[str] | None,
        Option(
            'Names of edge columns to write too, as a sequence or as "amount,year" (`parquet` and '
            "`arrow` only). None: none.",
            help="parquet, arrow: write these columns of the edges too, such as amount,year",
            metavar="NAMES",
            check=column_names,
        ),
    ]
    overwrite: Annotated[bool, Option("Replace the file if it exists.", default=False)]
