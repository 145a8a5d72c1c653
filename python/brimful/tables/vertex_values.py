"""A column of vertices in memory: a mapping from ids for look-ups in programs of the user.

Invariant: ids ascend, so that a look-up is a search in an array of Arrow; nothing becomes a
Python object before a look-up returns it.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from brimful.errors import NotFoundError
from brimful.tables.columns import vertex_rows

if TYPE_CHECKING:
    from brimful import _native


class VertexValues(Mapping[int | str, Any]):
    """The values of a column by vertex id, in memory; None for nulls."""

    def __init__(self, graph: _native.Graph, column: str) -> None:
        """Read a column.

        Raises:
            UsageError: The graph has no such column.
        """
        table = vertex_rows(graph, [column]).read_all().combine_chunks()
        self._ids, self._values = (
            array.chunk(0) if array.num_chunks else array.combine_chunks()
            for array in (table.column(0), table.column(1))
        )
        self._has_texts = graph.id_type == "string"

    def __getitem__(self, vertex: int | str) -> Any:
        """Return the value of a vertex.

        Raises:
            NotFoundError: The graph has no such vertex (also a `KeyError`).
        """
        is_id = isinstance(vertex, str) if self._has_texts else hasattr(vertex, "__index__")
        if is_id:
            at = bisect.bisect_left(self._ids, vertex, key=lambda id_: id_.as_py())
            if at < len(self._ids) and self._ids[at].as_py() == vertex:
                return self._values[at].as_py()
        raise NotFoundError(f"there is no vertex {vertex}")

    def __len__(self) -> int:
        """Return the number of vertices."""
        return len(self._ids)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the vertices in ascending order."""
        return (id_.as_py() for id_ in self._ids)
