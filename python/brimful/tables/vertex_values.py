"""A column of vertices on disk: a mapping from ids for look-ups in programs of the user.

Invariant: ids ascend, so that a look-up is a search. They are in a file without a name, and the
system maps the pages that look-ups touch. A value becomes a Python object only when a look-up
returns it.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from brimful.errors import NotFoundError
from brimful.ids import VertexId, column_ids, own_id
from brimful.io.remote_graph import location_of, open_location
from brimful.tables.columns import vertex_rows
from brimful.tables.spilled import spilled

if TYPE_CHECKING:
    from brimful import _native


class VertexValues(Mapping[int | str, Any]):
    """The values of a column by vertex id; None for nulls.

    >>> import brimful as bf, pyarrow as pa
    >>> people = pa.table({"vertex": [1, 2], "name": ["ann", None]})
    >>> edges = pa.table({"source": [1], "target": [2]})
    >>> with bf.Graph.from_arrow(edges, vertex_columns=people) as graph:
    ...     names = graph.vertex_values("name")
    >>> names[1], dict(names), names.get(9, "nobody")
    ('ann', {1: 'ann', 2: None}, 'nobody')
    """

    def __init__(self, graph: _native.Graph, column: str) -> None:
        """Write a column and its ids to the file.

        Raises:
            UsageError: The graph has no such column.
            StoreIoError: The folder for temporary files is full, or cannot be written.
        """
        reader = vertex_rows(graph, [column])
        rows = spilled(reader.schema, (batch for batch in reader if batch.num_rows))
        self._location, self._column = location_of(graph.path), column
        self._parts = [rows.get_batch(at).columns for at in range(rows.num_record_batches)]
        #: The first id of each part.
        self._firsts = [ids[0].as_py() for ids, _ in self._parts]
        self._has_texts = graph.id_type == "string"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path or URL of the graph, from which another process reads the column."""
        return _reopened, (self._location, self._column)

    def __getitem__(self, vertex: VertexId) -> Any:
        """Return the value of a vertex.

        Raises:
            NotFoundError: The graph has no such vertex (also a `KeyError`).
        """
        own: Any = own_id(vertex, texts=self._has_texts)
        part = bisect.bisect_right(self._firsts, own) - 1
        if part >= 0:
            ids, values = self._parts[part]
            at = bisect.bisect_left(ids, own, key=lambda id_: id_.as_py())
            if at < len(ids) and ids[at].as_py() == own:
                return values[at].as_py()
        raise NotFoundError(f"there is no vertex {vertex}")

    def __len__(self) -> int:
        """Return the number of vertices."""
        return sum(len(ids) for ids, _ in self._parts)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the vertices in ascending order."""
        return chain.from_iterable(column_ids(ids) for ids, _ in self._parts)


def _reopened(location: str, column: str) -> VertexValues:
    return VertexValues(open_location(location), column)
