"""A column of edges on disk, for look-ups in programs of the user.

Invariant: rows ascend by source and target, so that a look-up is a search. They are in a file
without a name, and some batches are in memory as Python objects.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from brimful.errors import NotFoundError, UsageError
from brimful.ids import VertexId, own_id
from brimful.io.remote_graph import location_of, open_location
from brimful.tables.edge_columns import ENDS, edge_rows
from brimful.tables.spilled import spilled
from brimful.wording import counted, literal, shortened

if TYPE_CHECKING:
    import pyarrow

    from brimful import _native

#: Rows of a batch, and the batches in memory.
_ROWS, _CACHED = 256, 128


class EdgeValues:
    """The values of a column of edges by their ends: `values[source, target]`; None for nulls.

    `values[source, target, weight]` names one of several edges between two vertices by its weight.
    An edge of an undirected graph has both directions.

    >>> import brimful as bf, pyarrow as pa
    >>> trades = {"source": [1, 1], "target": [2, 2], "weight": [0.5, 1.5], "year": [2020, 2021]}
    >>> with bf.Graph.from_arrow(pa.table(trades), edge_columns="year") as graph:
    ...     years = graph.edge_values("year")
    >>> years[1, 2, 0.5], years.all(1, 2), years.all(2, 1), len(years)
    (2020, [2020, 2021], [], 2)
    """

    def __init__(self, graph: _native.Graph, column: str) -> None:
        """Sort a column out of the table of edges.

        Raises:
            UsageError: The graph keeps no such column with its edges.
            StoreIoError: The folder for temporary files is full, or cannot be written.
        """
        if column in ENDS:
            raise UsageError(f"{column} is not kept as a column; `signal` receives ends and weight")
        reader = edge_rows(graph, [column])
        self._location, self._column = location_of(graph.path), column
        self._has_texts, self._is_directed = graph.id_type == "string", graph.directed
        self._has_weights = "weight" in reader.schema.names
        #: The ends of the first edge of each batch.
        self._firsts: list[tuple[Any, Any]] = []
        self._edges = 0
        self._file = spilled(reader.schema, self._noted(reader))
        self._batch = functools.lru_cache(_CACHED)(self._read)

    def _noted(self, reader: pyarrow.RecordBatchReader) -> Iterator[pyarrow.RecordBatch]:
        """Yield the rows in small batches, and note the first edge of each."""
        for batch in reader:
            for start in range(0, batch.num_rows, _ROWS):
                part = batch.slice(start, _ROWS)
                self._firsts.append((part[0][0].as_py(), part[1][0].as_py()))
                yield part
            self._edges += batch.num_rows

    def _read(self, number: int) -> tuple[list[tuple[Any, Any]], list[float], list[Any]]:
        """Return ends, weights and values of the edges of a batch."""
        columns = [column.to_pylist() for column in self._file.get_batch(number)]
        weights = columns[2] if self._has_weights else [1.0] * len(columns[0])
        return list(zip(*columns[:2], strict=True)), weights, columns[-1]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path or URL of the graph, from which another process reads the column."""
        return _reopened, (self._location, self._column)

    def __len__(self) -> int:
        """Return the number of edges."""
        return self._edges

    def __getitem__(self, edge: tuple[Any, ...]) -> Any:
        """Return the value of an edge.

        Raises:
            NotFoundError: The graph has no such edge (also a `KeyError`).
            UsageError: `edge` is not a tuple of two ids, or of these and a weight; or several such
                edges have different values.
        """
        if not isinstance(edge, tuple) or len(edge) not in (2, 3):
            raise UsageError(
                "an edge is a tuple of source and target, or of these and a weight, not "
                f"{literal(edge)}"
            )
        found = self.all(*edge)
        if not found:
            raise NotFoundError(f"there is no edge {_ends_shown(edge)}")
        if any(value != found[0] for value in found):
            names_weight = "name the weight, too, or " * (self._has_weights and len(edge) == 2)
            raise UsageError(
                f"there are {counted(len(found), 'edge')} {_ends_shown(edge)}, with different "
                f"values; {names_weight}call all{tuple(edge)!r}, which returns them"
            )
        return found[0]

    def all(self, source: VertexId, target: VertexId, weight: float | None = None) -> list[Any]:
        """Return the values of all edges from one vertex to another, by ascending weight.

        Args:
            source: Id of the vertex that the edges leave.
            target: Id of the vertex that the edges reach.
            weight: Their weight; None: any.

        Returns:
            A list, empty if there is no edge.
        """
        try:
            source, target = (own_id(end, texts=self._has_texts) for end in (source, target))
        except NotFoundError:
            return []
        found = list(self._rows(source, target))
        if not self._is_directed and source != target:
            # Earlier versions wrote an undirected edge as the input had it.
            found += self._rows(target, source)
            found.sort(key=lambda row: row[0])
        return [value for own, value in found if weight is None or own == weight]

    def _rows(self, source: Any, target: Any) -> Iterator[tuple[float, Any]]:
        """Yield weight and value of each edge that is written with these ends."""
        ends = (source, target)
        first = max(bisect.bisect_left(self._firsts, ends) - 1, 0)
        for number in range(first, len(self._firsts)):
            all_ends, weights, values = self._batch(number)
            for row in range(bisect.bisect_left(all_ends, ends), len(all_ends)):
                if all_ends[row] != ends:
                    return
                yield weights[row], values[row]


def _ends_shown(edge: tuple[Any, ...]) -> str:
    source, target, *weight = edge
    ends = f"from {shortened(source)} to {shortened(target)}"
    return ends + (f" with the weight {weight[0]}" if weight else "")


def _reopened(location: str, column: str) -> EdgeValues:
    return EdgeValues(open_location(location), column)
