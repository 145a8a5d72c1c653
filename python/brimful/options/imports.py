"""The tables of options of imports, and the choice of columns and indexes."""

import os
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Annotated, Any, Literal, TypedDict, Unpack

from brimful.errors import UsageError
from brimful.io.formats import InputFormat
from brimful.options import checks
from brimful.options.clusters import ImportClusterOptions
from brimful.options.table import Option, WorkOptions, checked, picked, texts
from brimful.wording import shortened, unknown

#: Treatment of lines or rows that are not edges.
OnError = Literal["fail", "skip"]
#: Weights of the input, or computed from the two ids.
Weights = Literal["input", "hash"]
#: Treatment of self-loops.
SelfLoops = Literal["keep", "drop"]
#: Treatment of edges with the same ends.
Duplicates = Literal["keep", "drop", "sum", "min"]
#: How ids are read.
Ids = Literal["auto", "int", "string"]
#: Treatment of rows of a table of columns that have no vertex.
Unmatched = Literal["skip", "fail"]
#: A column, by name or by number from 1.
Column = str | int | None

#: Names of indexes.
INDEX_NAMES = ("in", "reverse")


def parse_indexes(names: str | Sequence[str], name: str = "index") -> list[str]:
    """Return the names of indexes from `in,reverse` or a sequence, in a fixed order.

    Raises:
        UsageError: A name is unknown.
    """
    listed = names.split(",") if isinstance(names, str) else names
    if not isinstance(listed, (list, tuple)) or not all(isinstance(one, str) for one in listed):
        raise UsageError(f"{name} must be names of indexes, not {shortened(names)}")
    cleaned = [one.strip() for one in listed if one.strip()]
    for one in cleaned:
        if one not in INDEX_NAMES:
            raise UsageError(unknown("index", shortened(one), INDEX_NAMES))
    if not cleaned:
        raise UsageError(f"name at least one index of: {', '.join(INDEX_NAMES)}")
    return [one for one in INDEX_NAMES if one in cleaned]


def _column(column: Any, name: str) -> str | None:
    is_number = isinstance(column, int) and not isinstance(column, bool)
    return checks.text(str(column) if is_number else column, name)


def _delimiter(delimiter: Any, name: str) -> str | None:
    text = checks.text(delimiter, name)
    if text in ("tab", "\\t"):
        return "\t"
    if text is not None and len(text) != 1:
        raise UsageError(f"{name} must be one character or 'tab', not {shortened(text)!r}")
    return text


class ReadingOptions(TypedDict, total=False):
    """How lines or rows become edges and vertices."""

    undirected: Annotated[
        bool | None,
        Option(
            "Whether edges have no direction; None: the direction of the input.",
            help="edges have no direction",
            opposite=("directed", "edges have a direction"),
        ),
    ]
    ids: Annotated[
        Ids,
        Option(
            '"int", "string", or "auto" (default): by the type of the columns or, in text, by the '
            "majority of the first 65,536 lines.",
            help="int: 64-bit integers; string: take all ids as strings (edgelist, adjacency-ids, "
            "csv, tsv, parquet, arrow); auto (default): by the first 65,536 lines, or by the type "
            "of the columns",
            default="auto",
        ),
    ]
    vertices: Annotated[
        int | None,
        Option(
            "Declare the ids 0 to `vertices` - 1, including vertices without edges.",
            help="declare the ids 0 to N-1, including vertices without edges",
        ),
    ]
    on_error: Annotated[
        OnError,
        Option(
            '"fail" (default) ends the import at the first line or row that is not an edge; "skip" '
            "leaves out, counts and reports such lines.",
            default="fail",
        ),
    ]
    weights: Annotated[
        Weights,
        Option(
            'Weights of the "input" (default), or "hash": whole numbers from 1 to 100, computed '
            "from the two ids and equal in both directions.",
            default="input",
        ),
    ]


class IndexOptions(TypedDict, total=False):
    """The indexes of a new graph."""

    index: Annotated[
        str | Sequence[str],
        Option(
            'Indexes to build: "in" (default), or "in,reverse".',
            metavar="NAMES",
            default="in",
            check=parse_indexes,
        ),
    ]


class PolicyOptions(TypedDict, total=False):
    """Edges that a new graph leaves out."""

    self_loops: Annotated[
        SelfLoops,
        Option(
            'Edges from a vertex to itself: "keep" (default) or "drop" them; their vertices stay, '
            "and the first one that is dropped is reported with its line (not for generated "
            "graphs).",
            default="keep",
        ),
    ]
    duplicates: Annotated[
        Duplicates,
        Option(
            'Edges with the same ends: "keep" all (default), "drop" all but the first, "sum" their '
            'weights (without weights: their number), or keep the one with the "min" weight; the '
            "first one that is left out is reported with its line (not for generated graphs), "
            "which costs 8 bytes an edge of scratch space.",
            default="keep",
        ),
    ]


class EdgeOptions(ReadingOptions, PolicyOptions, IndexOptions, total=False):
    """The edges and vertices of a new graph."""


class ColumnOptions(TypedDict, total=False):
    """The columns of the edges."""

    source: Annotated[
        Column,
        Option(
            "Column of source ids, by name or by number from 1; None: the column that the rules "
            "of docs/formats.md choose. For documents, the field.",
            help="column of source ids: its name, or its number from 1 (edgelist, csv, tsv, "
            "parquet, arrow; for documents, the field); default: two columns, or a known pair of "
            "names",
            metavar="COL",
            check=_column,
        ),
    ]
    target: Annotated[
        Column, Option("Column of target ids, as `source`.", metavar="COL", check=_column)
    ]
    weight: Annotated[
        Column,
        Option(
            "Column of weights, as `source`; None: the column with a known name such as weight.",
            metavar="COL",
            check=_column,
        ),
    ]
    ignore_extra: Annotated[
        bool,
        Option(
            "Take the first two columns if no other rule decides, and ignore the rest.",
            default=False,
        ),
    ]


class TextOptions(TypedDict, total=False):
    """The columns of text."""

    header: Annotated[
        bool | None,
        Option(
            "Whether the first line of text names the columns; None: by its content.",
            help="the first line of text names the columns",
            opposite=("no-header", "the first line of text is an edge"),
        ),
    ]
    delimiter: Annotated[
        str | None,
        Option(
            'Separator of csv columns: a character, or "tab"; None: the one of , ; tab and | that '
            "splits the first records evenly.",
            metavar="C",
            check=_delimiter,
        ),
    ]


class FormatOptions(TypedDict, total=False):
    """The format of files."""

    format: Annotated[
        InputFormat | None,
        Option(
            "Format of the input; None: by its name, then by its content.",
            # The import checks the format, because it depends on the names of the files.
            check=checks.text,
        ),
    ]


class ImportOptions(FormatOptions, TextOptions, ColumnOptions, EdgeOptions, total=False):
    """How an input becomes a graph: everything that changes the graph's bytes."""


def _table(table: Any, name: str) -> Any:
    is_path = isinstance(table, (str, os.PathLike))
    if table is None or is_path or hasattr(table, "__arrow_c_stream__"):
        return table
    raise UsageError(
        f"{name} must be the path of a table or an object with __arrow_c_stream__, not "
        f"{type(table).__name__}"
    )


class TableOfColumnsOptions(TypedDict, total=False):
    """How rows of a table become columns of vertices."""

    on: Annotated[
        str,
        Option(
            "The column of the table that holds vertex ids, each once.",
            metavar="COL",
            default="vertex",
        ),
    ]
    unmatched: Annotated[
        Unmatched,
        Option(
            'Rows of the table whose id is not a vertex: "skip" (default) leaves them out, counts '
            'and reports them; "fail" ends the work.',
            default="skip",
        ),
    ]


class ColumnVerbOptions(TableOfColumnsOptions, total=False):
    """How columns are added to a graph that exists."""

    replace: Annotated[
        bool,
        Option("Replace columns with the same names.", default=False),
    ]


class AddedColumnsOptions(ColumnVerbOptions, WorkOptions, total=False):
    """Options of adding columns to a graph."""


class VertexColumnOptions(TableOfColumnsOptions, total=False):
    """The columns of the vertices of a new graph."""

    vertex_columns: Annotated[
        object | None,
        Option(
            "A table whose columns are kept with the vertices: the path of a .parquet, .csv, .tsv "
            "or .arrow file, or an object with `__arrow_c_stream__`; None: no columns.",
            help="keep the columns of a .parquet, .csv, .tsv or .arrow file with the vertices; "
            "needs DuckDB (pip install 'brimful[duckdb]')",
            metavar="TABLE",
            check=_table,
        ),
    ]


def vertex_column_options(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the columns of vertices, of options that were checked.

    Raises:
        UsageError: An option applies to a table, and there is none.
    """
    wanted = picked(VertexColumnOptions, chosen)
    if wanted["vertex_columns"] is None and wanted != checked(VertexColumnOptions, {}):
        raise UsageError(
            "--on and --unmatched apply to the table of --vertex-columns; name one, or leave them "
            "out"
        )
    return wanted


class EdgeColumnOptions(TypedDict, total=False):
    """The columns of the edges of a new graph."""

    edge_columns: Annotated[
        str | Sequence[str] | None,
        Option(
            'Names of further columns of the input that are kept with the edges, such as "year,'
            'kind" or a sequence: of .parquet, .arrow, .csv or .tsv files with a header, or of a '
            "table; None: none.",
            help="keep these columns of a .parquet, .arrow, .csv or .tsv input with the edges, "
            "such as amount,year; needs DuckDB (pip install 'brimful[duckdb]')",
            metavar="NAMES",
            check=checks.column_names,
        ),
    ]


class NewPlaceOptions(WorkOptions, total=False):
    """The place and the resources of a new graph."""

    path: Annotated[
        str | os.PathLike[str] | None,
        Option(
            "Graph directory to make and to keep, `NAME.brimful`; None: a temporary directory, "
            "which `close` removes.",
            check=checks.path,
        ),
    ]


class NewGraphOptions(NewPlaceOptions, VertexColumnOptions, total=False):
    """Options of every import."""


class ReadOptions(
    ImportOptions, EdgeColumnOptions, NewGraphOptions, ImportClusterOptions, total=False
):
    """Options of `brimful.read`."""


class TableOptions(ColumnOptions, EdgeOptions, EdgeColumnOptions, NewGraphOptions, total=False):
    """Options of the import of a table in memory."""


class ObjectOptions(IndexOptions, NewGraphOptions, total=False):
    """Options of the import of a graph of another package."""


class EdgeColumns(SimpleNamespace):
    """The options that choose the columns of the edges, as attributes."""


def import_options(**options: Unpack[ImportOptions]) -> ImportOptions:
    """Return the checked options of an import, with defaults for those not given.

    Raises:
        UsageError: A value is unknown or of another type.
    """
    return checked(ImportOptions, options, "import_options")


def columns_of(options: ImportOptions) -> EdgeColumns:
    """Return the options that choose the columns of the edges."""
    return EdgeColumns(**picked(ColumnOptions, options), **picked(TextOptions, options))


#: Sentences for docstrings.
IMPORT = texts(ReadOptions) | {
    "budget": 'Memory for brimful\'s own use, in bytes or as "500M", also the default of '
    "algorithms on the graph; None: three quarters of the available memory."
}
