"""A computed table: rows in an order of their own, such as pairs of vertices or edges."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from brimful.documents import is_database
from brimful.errors import InputError, NotFoundError, UsageError
from brimful.ids import column_ids, row_ids
from brimful.io.output import stream_batches, stream_table, write_result
from brimful.memory import require_runs
from brimful.options.checks import rows_wanted
from brimful.options.described import EXPORT, described
from brimful.packages import _native, numpy, pyarrow
from brimful.tabular import Tabular
from brimful.wording import counted, shortened, unknown

if TYPE_CHECKING:
    from brimful.resources import Resources
    from brimful.tables.edge_table import EdgeTable


class Rows(Tabular):
    """The rows that an algorithm returned, where a vertex may be in any number of rows.

    Iteration yields tuples, in batches of 65,536 rows, so a loop takes a few MB, whatever the size.
    `polars.DataFrame(rows)`, DuckDB and pyarrow read the columns through `__arrow_c_stream__`.
    `stats` has the fields of `brimful run --json`.

    >>> import brimful as bf, pyarrow as pa
    >>> table = pa.table({"source": [0, 1, 2], "target": [1, 2, 3]})
    >>> with bf.Graph.from_arrow(table) as graph:
    ...     rows = bf.similarity(graph, k=1)
    >>> rows.columns, len(rows), list(rows)[0], rows.stats["algorithm"]
    (['source', 'target', 'score'], 4, (0, 2, 0.5), 'similarity')
    """

    def __init__(self, native: _native.Rows, *, inputs: Sequence[str] = ()) -> None:
        """Wrap native rows of some input files; called by the algorithms, not by users."""
        self._native, self._inputs = native, inputs
        self._output: str | None = None

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self._native.columns

    @property
    def stats(self) -> dict[str, Any]:
        """Fields of `brimful run --json`: counts, seconds, bytes, peak memory, and `rows`."""
        return {**self._native.stats, "output": self._output}

    @described({}, "corrupt", "io")
    def top(self, n: int = 10) -> list[tuple[Any, ...]]:
        """Return the rows with the largest values in the last column.

        Args:
            n: Number of rows.

        Returns:
            Tuples, largest value first, ties in the order of rows.

        Raises:
            UsageError: `n` is negative or not a whole number.

        >>> import brimful as bf, pyarrow as pa
        >>> table = pa.table({"source": [0, 1, 2], "target": [1, 2, 3]})
        >>> with bf.Graph.from_arrow(table) as graph:
        ...     bf.similarity(graph, measure="common_neighbors").top(1)
        [(0, 2, 1.0)]
        """
        count = rows_wanted(n, len(self))
        return [row_ids(row) for rows in self._native.top(count) for row in rows]

    @described({}, "corrupt", "io")
    def to_arrow(self) -> pyarrow.Table:
        """Return the columns as a `pyarrow.Table`, a copy in memory.

        Returns:
            The columns of `columns`.

        >>> import brimful as bf, pyarrow as pa
        >>> table = pa.table({"source": [0, 1], "target": [1, 2]})
        >>> with bf.Graph.from_arrow(table) as graph:
        ...     bf.similarity(graph).to_arrow().to_pydict()
        {'source': [0, 2], 'target': [2, 0], 'score': [1.0, 1.0]}
        """
        return stream_table(self._native)

    @described({}, "corrupt", "io")
    def to_numpy(self, column: str) -> numpy.ndarray[Any, Any]:
        """Return one column as a NumPy array, a copy.

        Args:
            column: One of `columns`.

        Returns:
            An array with an entry for each row; of two dimensions if the values are lists.

        Raises:
            UsageError: There is no such column.

        >>> import brimful as bf, pyarrow as pa
        >>> table = pa.table({"source": [0, 1], "target": [1, 2]})
        >>> with bf.Graph.from_arrow(table) as graph:
        ...     bf.similarity(graph).to_numpy("score").tolist()
        [1.0, 1.0]
        """
        if column not in self.columns:
            raise UsageError(unknown("column", shortened(column), self.columns))
        import pyarrow as pa

        values = self.to_arrow()[column].combine_chunks()
        if pa.types.is_fixed_size_list(values.type):
            lists: numpy.ndarray[Any, Any] = values.flatten().to_numpy(zero_copy_only=False)
            return lists.reshape(-1, values.type.list_size)
        array: numpy.ndarray[Any, Any] = values.to_numpy(zero_copy_only=False)
        return array

    @described(EXPORT, "corrupt", "io")
    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the columns to a file, streamed, whole or not at all.

        Args:
            path: File to write: .parquet, .csv or .arrow.

        Raises:
            UsageError: The suffix is unknown, or the file exists and `overwrite` is false.

        >>> import brimful as bf, os, pathlib, pyarrow as pa, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "similar.csv")
        >>> table = pa.table({"source": [0, 1], "target": [1, 2]})
        >>> with bf.Graph.from_arrow(table) as graph:
        ...     bf.similarity(graph).write(path)
        >>> pathlib.Path(path).read_text().split()
        ['source,target,score', '0,2,1.0', '2,0,1.0']
        """
        name = self._output_path(path)
        refuse_documents(name)
        write_result(self._native, name, overwrite=overwrite)
        self._output = name

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._native)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Iterate over the rows, streamed."""
        for batch in stream_batches(self._native):
            yield from zip(*map(column_ids, batch.columns), strict=True)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the Arrow stream capsule of the columns; may be called any number of times."""
        return self._native.__arrow_c_stream__(requested_schema)

    def _shown_columns(self) -> list[str]:
        return self.columns

    def _stream(self) -> Iterator[tuple[Any, ...]]:
        return iter(self)

    def _headline(self) -> str:
        stats = self._native.stats
        return (
            f"brimful.Rows {stats['algorithm']}: {counted(len(self), 'row')}, "
            f"{stats['seconds']:.3g} s"
        )


def refuse_documents(path: str) -> None:
    """Refuse documents as the output of rows.

    Raises:
        UsageError: The path is the URL of a database.
    """
    if is_database(path):
        raise UsageError(
            "documents take a value for each vertex, and the result is a table of rows; name a "
            ".parquet, .csv or .arrow file"
        )


def computed_rows(
    graph: _native.Graph,
    wanted: Mapping[str, Any],
    resources: Resources,
) -> _native.Rows:
    """Run an algorithm whose result is rows: a request of `catalog.algorithm_request`.

    Raises:
        UsageError, NotFoundError, InputError, BudgetError, CorruptError, StoreIoError: As `run`.
    """
    from brimful import _native

    _require_pairs(graph, wanted, resources)
    with (
        _at_pair(wanted["pairs"], graph),
        _open_pairs(wanted["pairs"], graph, resources) as pairs,
    ):
        if pairs is None:
            return _native.run_rows(graph, dict(wanted), pairs=None, resources=resources)
        return _native.run_rows(
            graph,
            dict(wanted),
            pairs=pairs.native_pairs(),
            resources=resources.beside(pairs.reserve_bytes).leaving(pairs.reserve_bytes),
        )


def _require_pairs(graph: _native.Graph, wanted: Mapping[str, Any], resources: Resources) -> None:
    """Refuse a budget that a run over a file of pairs does not fit, before pyarrow is loaded.

    Raises:
        BudgetError: The message names the smallest budget that works.
    """
    if not isinstance(wanted["pairs"], str) or not resources.process_budget:
        return
    from brimful.tables.pairs import reserve_of_pairs

    resources = resources.leaving(reserve_of_pairs(wanted["pairs"]))
    require_runs(graph, [dict(wanted)], resources, "to compare neighbors")


@contextmanager
def _at_pair(pairs: object, graph: _native.Graph) -> Iterator[None]:
    """Name the row of a pair with a vertex that the graph lacks, and no options of imports."""
    try:
        yield
    except InputError as error:
        if pairs is None:
            raise
        from brimful.tables.pairs import with_row, without_options

        if isinstance(error, NotFoundError):
            raise with_row(error, pairs, graph) from None
        raise without_options(error) from None


def _open_pairs(
    pairs: object, graph: _native.Graph, resources: Resources
) -> AbstractContextManager[EdgeTable | None]:
    if pairs is None:
        return nullcontext()
    from brimful.tables.pairs import open_pairs

    resources.shrink_arrow_pools()
    return open_pairs(pairs, graph)
