"""A value for every vertex: a mapping that reads its rows in batches.

Invariant: vertices ascend, by number or by the bytes of strings, and rows are never in memory as a
whole unless the caller keeps them.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import (
    ItemsView,
    Iterator,
    KeysView,
    Sequence,
    ValuesView,
)
from itertools import chain, islice
from typing import Any, Generic, Never, TypeVar, cast

from brimful.errors import BrimfulError, NotFoundError, UsageError
from brimful.ids import VertexId
from brimful.optional import require
from brimful.options.described import described
from brimful.packages import numpy, pandas, polars, pyarrow
from brimful.shown import Shown
from brimful.wording import SHOWN_HTML_ROWS, SHOWN_ROWS, counted, escape_controls, html_text

V = TypeVar("V")
D = TypeVar("D")

#: Longer values are shortened when rows are shown.
_SHOWN_CHARACTERS = 60


class PerVertex(Shown, ABC, Generic[V]):
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

    @abstractmethod
    def to_arrow(self) -> pyarrow.Table:
        """Return a `pyarrow.Table` of both columns, a copy in memory."""

    @described({}, "corrupt", "io")
    def to_pandas(self) -> pandas.DataFrame:
        """Return both columns as a `pandas.DataFrame`, a copy.

        Returns:
            The columns `vertex` and the name in `column`.

        Raises:
            MissingPackageError: pandas is not installed.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [0], "target": [1]})) as graph:
        ...     bf.degrees(graph).to_pandas()["degree"].tolist()
        [1, 0]
        """
        require("pandas", "to_pandas")
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    @described({}, "corrupt", "io")
    def to_polars(self) -> polars.DataFrame:
        """Return both columns as a `polars.DataFrame`, a copy.

        Returns:
            The columns `vertex` and the name in `column`.

        Raises:
            MissingPackageError: Polars is not installed.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [0], "target": [1]})) as graph:
        ...     bf.degrees(graph).to_polars().rows()
        [(0, 1), (1, 0)]
        """
        frame: polars.DataFrame = require("polars", "to_polars").DataFrame(self.to_arrow())
        return frame

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
        return _Values(cast(Any, self))

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
        return _Items(cast(Any, self))

    def __copy__(self) -> PerVertex[V]:
        """Return the object itself, which cannot be changed."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> PerVertex[V]:
        """Return the object itself, which cannot be changed."""
        return self

    def __reduce__(self) -> Never:
        """Refuse to be pickled.

        Raises:
            UsageError: Always.
        """
        name = type(self).__name__
        raise UsageError(
            f"objects of {name} cannot be pickled, because their values may be larger than memory; "
            "pickle their to_arrow(), or write() them to a file"
        )

    @abstractmethod
    def _headline(self) -> str:
        """Return the first line of `repr`."""

    def __repr__(self) -> str:
        """Return the shape and the first rows, or why they cannot be read: debuggers call it."""
        try:
            return self._shown_rows()
        except BrimfulError as error:
            return f"<brimful.{type(self).__name__}: {error}>"

    def _shown_rows(self) -> str:
        rows = [("vertex", self.column)]
        rows += [(_cell(vertex), _cell(value)) for vertex, value in self._first(SHOWN_ROWS)]
        width = max(len(vertex) for vertex, _ in rows)
        lines = [f"  {vertex:>{width}}  {value}" for vertex, value in rows]
        more = ["  ..."] if len(self) > SHOWN_ROWS else []
        return "\n".join([f"<{self._headline()}>", *lines, *more])

    def _repr_html_(self) -> str:
        """Return the shape and the first rows as an HTML table, for notebooks.

        A small figure of the distribution is below, if there are few rows and matplotlib.
        """
        try:
            return self._html_rows()
        except BrimfulError:
            return f"<p>{html_text(repr(self))}</p>"

    def _html_rows(self) -> str:
        rows = "".join(
            f"<tr><td>{html_text(_cell(vertex))}</td><td>{html_text(_cell(value))}</td></tr>"
            for vertex, value in self._first(SHOWN_HTML_ROWS)
        )
        more = f"<p>{counted(len(self), 'row')}</p>" if len(self) > SHOWN_HTML_ROWS else ""
        return (
            f"<p>{html_text(self._headline())}</p><table><thead><tr><th>vertex</th>"
            f"<th>{html_text(self.column)}</th></tr></thead><tbody>{rows}</tbody></table>{more}"
            + self._small_figure()
        )

    def _first(self, count: int) -> Iterator[tuple[Any, V]]:
        return islice(iter(self.items()), count)


class _Items(ItemsView[Any, V]):
    """Pairs read in batches; the view of the standard library would look up each vertex."""

    _mapping: Any

    def __iter__(self) -> Iterator[tuple[Any, V]]:
        for vertices, values in self._mapping._batches():
            yield from zip(vertices, values, strict=True)


class _Values(ValuesView[V]):
    """Values read in batches."""

    _mapping: Any

    def __iter__(self) -> Iterator[V]:
        return chain.from_iterable(values for _, values in self._mapping._batches())

    def __contains__(self, value: object) -> bool:
        return any(other is value or other == value for other in self)


def _cell(value: object) -> str:
    """Return the text of an id or a value in a row that is shown."""
    text = escape_controls(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."
