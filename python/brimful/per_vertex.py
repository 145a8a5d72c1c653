"""A value for every vertex: a mapping that reads its rows in batches.

Invariant: vertices ascend, by number or by the bytes of strings, and rows are never in memory as a
whole unless the caller keeps them.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import ItemsView, Iterator, KeysView, Sequence, ValuesView
from itertools import chain
from typing import Any, Generic, TypeVar, cast

from brimful.errors import NotFoundError
from brimful.ids import VertexId
from brimful.joins_and_plots import JoinsAndPlots
from brimful.options.described import described
from brimful.packages import numpy
from brimful.streamed import StreamedItems, StreamedValues
from brimful.tabular import Tabular

V = TypeVar("V")
D = TypeVar("D")


class PerVertex(JoinsAndPlots, Tabular, Generic[V]):
    """A value for every vertex: a mapping from vertices to values that cannot be changed.

    Iteration yields the vertices in ascending order; `in`, `get`, `keys`, `values`, `items` and
    `dict` are as in a `dict`. Rows are read in batches of 65,536, so a loop takes a few MB,
    whatever the size. `==` compares identity. To compare values, use `dict(result)`, or
    `result.to_arrow()` with `equals`.

    It is not registered as a `collections.abc.Mapping`: polars takes those for a table of columns.
    `polars.DataFrame(result)`, DuckDB and pyarrow read both columns through `__arrow_c_stream__`.
    `pandas.DataFrame(result)` has both columns without names and types; `to_pandas` has them.
    """

    @property
    @abstractmethod
    def column(self) -> str:
        """Name of the value column."""

    @property
    @abstractmethod
    def stats(self) -> dict[str, Any]:
        """Figures of the run."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of vertices."""

    @abstractmethod
    def __getitem__(self, vertex: VertexId) -> V:
        """Return the value of a vertex.

        Raises:
            NotFoundError: The graph has no such vertex (also a `KeyError`).
        """

    @abstractmethod
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the Arrow stream capsule of both columns; may be called any number of times."""

    @abstractmethod
    def top(self, n: int = 10) -> list[tuple[Any, V]]:
        """Return the `n` largest values as `(vertex, value)`, largest first, ties by vertex id."""

    @abstractmethod
    def _batches(self) -> Iterator[tuple[Sequence[Any], Sequence[V]]]:
        """Yield vertices and values, ascending."""

    @abstractmethod
    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write both columns to a file."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> numpy.ndarray[Any, Any]:
        """Return the rows as objects[n_vertices, 2]; `to_arrow` takes a tenth of the memory."""
        import numpy as np

        rows = np.empty((len(self), 2), dtype=object)
        start = 0
        for vertices, values in self._batches():
            rows[start : start + len(vertices), 0] = vertices
            for at, value in enumerate(values, start):
                rows[at, 1] = value
            start += len(vertices)
        return rows if dtype is None else rows.astype(dtype)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the vertices in ascending order."""
        return chain.from_iterable(vertices for vertices, _ in self._batches())

    # As in a `Mapping`; without this, `reversed` would take positions for vertices.
    __reversed__ = None

    def __contains__(self, vertex: object) -> bool:
        """Return whether there is a vertex with this id."""
        try:
            self[cast(VertexId, vertex)]
        except NotFoundError:
            return False
        return True

    @described({}, "corrupt", "io")
    def get(self, vertex: VertexId, default: D | None = None) -> V | D | None:
        """Return the value of a vertex, or `default` if there is no such vertex.

        Args:
            vertex: Id of the vertex.
            default: Returned if the graph has no such vertex.

        Returns:
            The value or `default`.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [0], "target": [1]})) as graph:
        ...     bf.degrees(graph).get(0), bf.degrees(graph).get(9, "nobody")
        (1, 'nobody')
        """
        try:
            return self[vertex]
        except NotFoundError:
            return default

    @described({}, "corrupt", "io")
    def keys(self) -> KeysView[Any]:
        """Return a view of the vertices in ascending order.

        Returns:
            A view that streams the vertices.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [3], "target": [1]})) as graph:
        ...     list(bf.degrees(graph).keys())
        [1, 3]
        """
        return KeysView(cast(Any, self))

    @described({}, "corrupt", "io")
    def values(self) -> ValuesView[V]:
        """Return a view of the values, in the order of vertices.

        Returns:
            A view that streams the values.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [3], "target": [1]})) as graph:
        ...     list(bf.degrees(graph).values())
        [0, 1]
        """
        return StreamedValues(cast(Any, self))

    @described({}, "corrupt", "io")
    def items(self) -> ItemsView[Any, V]:
        """Return a view of pairs of vertices and values, in the order of vertices.

        Returns:
            A view that streams the pairs.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [3], "target": [1]})) as graph:
        ...     list(bf.degrees(graph).items())
        [(1, 0), (3, 1)]
        """
        return StreamedItems(cast(Any, self))

    def _shown_columns(self) -> tuple[str, str]:
        return "vertex", self.column

    def _stream(self) -> Iterator[tuple[Any, V]]:
        for vertices, values in self._batches():
            yield from zip(vertices, values, strict=True)
