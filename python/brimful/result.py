"""A computed result: one value per vertex, sorted by the user's vertex ids."""

from __future__ import annotations

import html
import operator
from typing import TYPE_CHECKING, Any, SupportsIndex

from brimful.errors import NotFoundError
from brimful.output import native_batches, write_result

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from brimful import _native

_SHOWN_ROWS = 10


class Result:
    """The values that an algorithm gave every vertex.

    Columns are `vertex` (the type of the ids: int64, uint64, string...) and `column`, the
    algorithm's value (`pagerank`: float64; `component`: the type of `vertex`). Every vertex occurs
    once. Conversions copy; `__arrow_c_stream__` streams batches, so `polars.DataFrame(result)` and
    DuckDB read it as it is.

    >>> import brimful as bf, pyarrow as pa
    >>> table = pa.table({"source": [0, 1, 2], "target": [1, 2, 0]})
    >>> with bf.Graph.from_arrow(table) as graph:
    ...     result = bf.connected_components(graph)
    >>> result[2], len(result), result.column
    (0, 3, 'component')
    """

    def __init__(self, native: _native.Result) -> None:
        """Wrap a native result; made by the algorithms, not by users."""
        self._native = native
        self._output: str | None = None

    @property
    def column(self) -> str:
        """The name of the value column."""
        return self._native.column

    @property
    def stats(self) -> dict[str, Any]:
        """What `brimful run --json` prints: counts, supersteps, seconds, bytes, peak memory."""
        return {**self._native.stats, "output": self._output}

    def top(self, n: int = 10) -> list[tuple[Any, Any]]:
        """Return the `n` largest values as `(vertex, value)`, largest first, ties by vertex id."""
        return self._native.top(max(0, operator.index(n)))

    def to_arrow(self) -> pyarrow.Table:
        """Return a `pyarrow.Table` of both columns, a copy in memory."""
        import pyarrow as pa

        source = pa.RecordBatchReader.from_stream(self._native)
        return pa.Table.from_batches(native_batches(source), source.schema)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a `pandas.DataFrame` of both columns; needs pandas."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Return a `polars.DataFrame` of both columns; needs polars."""
        import polars as pl

        return pl.DataFrame(self.to_arrow())

    def write(self, path: str, *, overwrite: bool = False) -> None:
        """Write both columns to a .parquet, .csv or .arrow file, streamed, whole or not at all.

        Raises:
            UsageError: an unknown suffix, or the file exists and `overwrite` is false.
            StoreIoError: it cannot be written.
        """
        write_result(self._native, path, overwrite=overwrite)
        self._output = path

    def __getitem__(self, vertex: int | str) -> float | int | str | None:
        """Return the value of a vertex.

        Raises:
            NotFoundError: the graph has no such vertex (also a `KeyError`).
        """
        return self._native.value(vertex_id(vertex))

    def __len__(self) -> int:
        """Return the number of vertices."""
        return len(self._native)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the Arrow stream capsule of both columns; may be called any number of times."""
        return self._native.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        """Return one line: algorithm, size, supersteps."""
        stats = self._native.stats
        return (
            f"<brimful.Result {stats['algorithm']}: {len(self):,} vertices, "
            f"{stats['supersteps']} supersteps, {stats['seconds']:.3g} s>"
        )

    def _repr_html_(self) -> str:
        """Return the first rows of `top` as an HTML table, for notebooks."""
        rows = "".join(
            f"<tr><td>{html.escape(str(vertex))}</td><td>{html.escape(str(value))}</td></tr>"
            for vertex, value in self.top(_SHOWN_ROWS)
        )
        return (
            f"<p>{html.escape(repr(self))}</p><table><thead><tr><th>vertex</th>"
            f"<th>{html.escape(self.column)}</th></tr></thead><tbody>{rows}</tbody></table>"
        )


def vertex_id(vertex: object) -> int | str:
    """Return a vertex id as an `int` of 64 bits, signed or not, or as a string.

    Raises:
        NotFoundError: it is neither, or wider: no graph has such a vertex.
    """
    if isinstance(vertex, str):
        return str(vertex)
    number = operator.index(vertex) if isinstance(vertex, SupportsIndex) else None
    if number is None or not -(2**63) <= number < 2**64:
        raise NotFoundError(
            f"there is no vertex {vertex!r}; vertex ids are 64-bit integers, or strings"
        )
    return number
