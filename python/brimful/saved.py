"""A result that was written to a file, read back in batches."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, cast

from brimful.errors import NotFoundError
from brimful.ids import VertexId, column_ids, id_of_name, row_ids, vertex_id
from brimful.io.output import write_table
from brimful.options.checks import MOST, given_path, rows_wanted
from brimful.options.described import EXPORT, described
from brimful.packages import pyarrow
from brimful.per_vertex import PerVertex
from brimful.tables.result_rows import largest, open_rows
from brimful.wording import counted


class SavedResult(PerVertex[Any]):
    """A result in a file, as `Result.write` and `brimful run -o` make it, or in a folder of files.

    A mapping from vertices to values like `Result`; rows are read from the file in batches. A CSV
    file is read once for the types of its columns; a column of numbers has texts if its first value
    is in quotes. Further columns, such as those of `join`, are in `to_arrow`, `to_pandas` and
    `to_polars`. `stats` has only `output`, the path.

    >>> import brimful as bf, os, pyarrow as pa, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "degrees.parquet")
    >>> with bf.Graph.from_arrow(pa.table({"source": [0, 0], "target": [1, 2]})) as graph:
    ...     bf.degrees(graph).write(path)
    >>> saved = bf.SavedResult(path)
    >>> saved.top(1), saved[2], len(saved), saved.column, saved.stats["output"] == path
    ([(0, 2)], 0, 3, 'degree', True)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open a result.

        Args:
            path: A .parquet, .csv or .arrow file, or a folder of files of one of these formats.

        Raises:
            NotFoundError: There is nothing at `path`.
            InputError: The file holds no result, or cannot be read.
            UsageError: The suffix is unknown.
        """
        self._path = given_path(path)
        self._rows = open_rows(self._path)
        # The page of rows read last and the page after it, for look-ups in the order of the file.
        self._page: dict[Any, Any] = {}
        self._after: dict[Any, Any] = {}
        self._pages: Iterator[dict[Any, Any]] = iter(())

    @property
    def column(self) -> str:
        """Name of the value column: the second one."""
        return str(self._rows.schema.names[1])

    @property
    def stats(self) -> dict[str, Any]:
        """The path of the file, as `output`."""
        return {"output": self._path}

    @described({}, "io")
    def top(self, n: int = 10) -> list[tuple[Any, Any]]:
        """Return the largest values; vertices without a value are left out.

        Args:
            n: Number of rows.

        Returns:
            Pairs `(vertex, value)`, largest first, ties by vertex id.

        Raises:
            UsageError: `n` is negative or not a whole number.
            InputError: The file cannot be read.

        >>> import brimful as bf, os, pyarrow as pa, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "degrees.csv")
        >>> with bf.Graph.from_arrow(pa.table({"source": [0, 0], "target": [1, 2]})) as graph:
        ...     bf.degrees(graph).write(path)
        >>> bf.SavedResult(path).top(2)
        [(0, 2), (1, 0)]
        """
        count = rows_wanted(n, MOST)
        return cast(
            "list[tuple[Any, Any]]",
            [row_ids(row) for row in largest(self._rows, ["vertex", self.column], count)],
        )

    @described({}, "io")
    def to_arrow(self) -> pyarrow.Table:
        """Return all columns as a `pyarrow.Table`, a copy in memory.

        Returns:
            The columns of the file.

        Raises:
            InputError: The file cannot be read.

        >>> import brimful as bf, os, pyarrow as pa, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "degrees.arrow")
        >>> with bf.Graph.from_arrow(pa.table({"source": [0], "target": [1]})) as graph:
        ...     bf.degrees(graph).write(path)
        >>> bf.SavedResult(path).to_arrow().to_pydict()
        {'vertex': [0, 1], 'degree': [1, 0]}
        """
        import pyarrow as pa

        return pa.Table.from_batches(self._rows.batches(), self._rows.schema)

    @described(EXPORT, "io")
    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write all columns to another file, whole or not at all.

        Args:
            path: File to write: .parquet, .csv or .arrow.

        Raises:
            UsageError: The suffix is unknown, or the file exists and `overwrite` is false.

        >>> import brimful as bf, os, pathlib, pyarrow as pa, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> with bf.Graph.from_arrow(pa.table({"source": [0], "target": [1]})) as graph:
        ...     bf.degrees(graph).write(os.path.join(folder, "degrees.parquet"))
        >>> saved = bf.SavedResult(os.path.join(folder, "degrees.parquet"))
        >>> saved.write(os.path.join(folder, "degrees.csv"))
        >>> pathlib.Path(folder, "degrees.csv").read_text().split()
        ['vertex,degree', '0,1', '1,0']
        """
        write_table(self._reader, given_path(path), overwrite=overwrite)

    def __getitem__(self, vertex: VertexId) -> Any:
        """Return the value of a vertex.

        Raises:
            NotFoundError: The file has no such vertex (also a `KeyError`).
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        number = vertex_id(vertex)
        own = id_of_name(number)
        if own in self._page or self._turn_page(own):
            return self._page[own]
        try:
            wanted = pa.scalar(number, self._rows.schema.field(0).type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            wanted = None
        if wanted is not None:
            for batch in self._scan(wanted):
                at = pc.index(batch.column(0), wanted).as_py()
                if at >= 0:
                    return id_of_name(batch.column(1)[at].as_py())
        raise NotFoundError(f"{self._path} has no vertex {number}")

    def _turn_page(self, vertex: VertexId) -> bool:
        """If the next page begins with the vertex, turn to the page; return whether it does.

        `dict(saved)` looks vertices up in the order of the file, and reads it once.
        """
        if not self._after:
            self._pages = (dict(zip(*rows, strict=True)) for rows in self._batches() if rows[0])
            self._after = next(self._pages, {})
        if vertex != next(iter(self._after), None):
            return False
        self._page, self._after = self._after, next(self._pages, {})
        return True

    def __len__(self) -> int:
        """Return the number of vertices."""
        return sum(batch.num_rows for batch in self._rows.batches([]))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the Arrow stream capsule of all columns; may be called any number of times."""
        return self._reader().__arrow_c_stream__(requested_schema)

    def _reader(self) -> pyarrow.RecordBatchReader:
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self._rows.schema, self._rows.batches())

    def _scan(self, vertex: Any = None) -> Iterator[Any]:
        return self._rows.batches(["vertex", self.column], vertex)

    def _batches(self) -> Iterator[tuple[Sequence[Any], Sequence[Any]]]:
        for batch in self._scan():
            yield column_ids(batch.column(0)), column_ids(batch.column(1))

    def _headline(self) -> str:
        return f"brimful.SavedResult {self._path}: {counted(len(self), 'vertex')}"
