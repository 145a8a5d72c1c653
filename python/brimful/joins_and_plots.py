"""Joins, plots and reports of the values of a run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import brimful
from brimful.errors import UsageError
from brimful.ids import Vertices, several_ids
from brimful.kept_columns import KeptColumns
from brimful.optional import require
from brimful.options.checks import column_names
from brimful.options.described import EXPORT, described
from brimful.packages import duckdb, matplotlib, pyarrow
from brimful.reporting import warn
from brimful.resources import Resources
from brimful.sizes import Budget, parse_budget
from brimful.wording import html_text

if TYPE_CHECKING:
    from brimful.per_vertex import PerVertex
    from brimful.tables.joining import Columns

#: Parameters of joins.
_JOIN = {
    "table": "The path of a .parquet, .csv, .tsv or .arrow file, or an object with "
    "`__arrow_c_stream__`: a data frame, an Arrow table or a relation of DuckDB. The graph of the "
    "result for the columns that are kept with its vertices; that takes no DuckDB.",
    "on": "The column of `table` that holds vertex ids, each once; ignored with a graph.",
    "columns": 'Names of the columns to take, a sequence or "age,name"; None: all.',
    "budget": 'Memory of the join, in bytes or as "500M"; None: three quarters of the available '
    "memory.",
}
#: The most rows whose distribution a notebook draws; reading them takes a moment.
_DRAWN_ROWS = 1_000_000


class JoinsAndPlots:
    """Joins, plots and reports of a `PerVertex`."""

    def _mapping(self) -> PerVertex[Any]:
        return cast("PerVertex[Any]", self)

    @described({}, "corrupt", "io")
    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> Any:
        """Return both columns as a relation of DuckDB, which streams them at each query.

        Args:
            connection: The connection of the relation; None: DuckDB's default connection.

        Returns:
            A `duckdb.DuckDBPyRelation` with the columns `vertex` and the name in `column`.

        Raises:
            MissingPackageError: DuckDB is not installed.

        >>> import brimful as bf, duckdb, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [0, 0], "target": [1, 2]})) as graph:
        ...     degrees = bf.degrees(graph)
        >>> with duckdb.connect() as connection:
        ...     degrees.to_duckdb(connection).aggregate("sum(degree)").fetchall()
        [(2,)]
        """
        package = require("duckdb", "to_duckdb")
        return (package if connection is None else connection).from_arrow(self)

    @described({}, "corrupt", "io")
    def report(
        self, *, graph: brimful.Graph | None = None, around: Vertices = ()
    ) -> brimful.Report:
        """Return a report with figures of the run and of the values, which a notebook shows.

        The report has seconds, bytes, frontier and edges per superstep, shares of the time, the
        distribution of the values, and the largest values. `brimful run --report` adds memory over
        time.

        Args:
            graph: The graph, for drawings of neighborhoods; None: no drawings.
            around: A vertex whose neighborhood is drawn, or several; none: the two with the largest
                values.

        Returns:
            A `Report`; its `write` makes a file that needs no network.

        Raises:
            MissingPackageError: Matplotlib or Jinja is not installed: `brimful[report]`.
            NotFoundError: The graph has no vertex of `around` (also a `KeyError`).

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [0, 0], "target": [1, 2]})) as graph:
        ...     "Distribution of pagerank" in bf.pagerank(graph).report(graph=graph).html
        True
        """
        from brimful.report.html import of_result

        return of_result(self._mapping(), graph=graph, around=several_ids(around, "around"))

    @described({}, "corrupt", "io")
    def plot(self, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """Draw the distribution of the values.

        Args:
            ax: Axes to draw on; None: new ones of `matplotlib.pyplot`.

        Returns:
            The `matplotlib.axes.Axes`.

        Raises:
            MissingPackageError: Matplotlib is not installed: `brimful[report]`.
            UsageError: The values are not numbers, or no vertex has one.

        >>> import brimful as bf, pyarrow as pa
        >>> from matplotlib.figure import Figure
        >>> with bf.Graph.from_arrow(pa.table({"source": [0, 0], "target": [1, 2]})) as graph:
        ...     bf.degrees(graph).plot(Figure().subplots()).get_xlabel()
        'degree'
        """
        from brimful.report import facts, figures

        distribution = facts.distribution(self._mapping())
        if distribution is None:
            raise UsageError(f"the column {self._mapping().column} has no numbers to draw")
        return figures.plot_distribution(figures.axes(ax), distribution, self._mapping().column)

    @described(_JOIN, "corrupt", "io")
    def join(
        self,
        table: object,
        *,
        on: str = "vertex",
        columns: str | Sequence[str] | None = None,
        budget: Budget = None,
    ) -> pyarrow.Table:
        """Return the rows with the columns of another table, a copy in memory.

        Every vertex is in it once, with nulls where the table has no row. Rows of the table without
        a vertex are left out, and counted on the logger `brimful`. DuckDB joins, on disk where
        `budget` is too small.

        Returns:
            A `pyarrow.Table` with the columns of the result and those of `table` but `on`, by
            ascending vertex.

        Raises:
            MissingPackageError: DuckDB is not installed.
            NotFoundError: There is no file at the path.
            UsageError: The table has no column `on`, its type is not that of the vertices, or it
                has a column of the result.
            InputError: An id occurs twice, or the table cannot be read.
            BudgetError: The budget is too small.

        >>> import brimful as bf, pyarrow as pa
        >>> names = pa.table({"id": [1, 0, 7], "name": ["bob", "ann", "zoe"]})
        >>> with bf.Graph.from_arrow(pa.table({"source": [0, 0], "target": [1, 2]})) as graph:
        ...     bf.degrees(graph).join(names, on="id").to_pylist()[1:]
        [{'vertex': 1, 'degree': 0, 'name': 'bob'}, {'vertex': 2, 'degree': 0, 'name': None}]
        """
        from brimful.tables.joining import JoinTally

        wanted, tally = _columns(table, on, columns), JoinTally()
        with wanted.reader(self, Resources(budget=parse_budget(budget)), tally) as reader:
            joined = reader.read_all()
        warn(*tally.sentences(wanted.name))
        return joined

    @described(_JOIN | EXPORT, "corrupt", "io")
    def write_joined(
        self,
        path: str | os.PathLike[str],
        table: object,
        *,
        on: str = "vertex",
        columns: str | Sequence[str] | None = None,
        overwrite: bool = False,
        budget: Budget = None,
    ) -> None:
        """Write the table of `join` to a file, streamed, whole or not at all.

        Args:
            path: File to write: .parquet, .csv or .arrow.

        Raises:
            MissingPackageError: DuckDB is not installed.
            NotFoundError: There is no table at the path.
            UsageError: As `join`, the suffix is unknown, or the file exists and `overwrite` is
                false.
            InputError: An id occurs twice, or the table cannot be read.
            BudgetError: The budget is too small.

        >>> import brimful as bf, os, pathlib, pyarrow as pa, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "vertex_list.csv")
        >>> names = pa.table({"id": [1, 0], "name": ["bob", "ann"]})
        >>> with bf.Graph.from_arrow(pa.table({"source": [0], "target": [1]})) as graph:
        ...     bf.degrees(graph).write_joined(path, names, on="id")
        >>> pathlib.Path(path).read_text().split()
        ['vertex,degree,name', '0,1,"ann"', '1,0,"bob"']
        """
        from brimful.tables.joining import write_joined

        wanted, resources = _columns(table, on, columns), Resources(budget=parse_budget(budget))
        name = self._mapping()._output_path(path, table)
        tally = write_joined(self, name, wanted, resources, overwrite=overwrite)
        warn(*tally.sentences(wanted.name))

    def _small_figure(self) -> str:
        from brimful.report import facts, figures

        rows = self._mapping()
        distribution = facts.distribution(rows) if len(rows) <= _DRAWN_ROWS else None
        if distribution is None:
            return ""
        return figures.small(
            f"Distribution of {html_text(rows.column)}",
            lambda ax, colors: figures.plot_distribution(ax, distribution, rows.column, colors),
        )


def _columns(table: object, on: str, names: str | Sequence[str] | None) -> Columns:
    """Return the columns to join: of a table, or of the vertices of a graph."""
    from brimful.tables.columns import GraphColumns
    from brimful.tables.joining import Join

    chosen = column_names(names)
    if isinstance(table, KeptColumns):
        return GraphColumns(table.native, chosen)
    return Join(table, on, chosen)
