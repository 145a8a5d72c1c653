"""The vertex of programs whose values or messages have fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import brimful
from brimful.pregel.changes import Edges
from brimful.pregel.vertex import PregelVertex, Shared

if TYPE_CHECKING:
    from brimful.record import Record


class StructuredVertex(PregelVertex):
    """A vertex whose value and messages become named tuples, with values that fit the fields."""

    __slots__ = ("_message", "_record", "_value")

    def __init__(
        self,
        seen: brimful.Vertex,
        value: Any,
        edges: Edges | None,
        shared: Shared,
        records: tuple[Record | None, Record | None],
    ) -> None:
        """Wrap a vertex for one call; `records` are those of values and of messages."""
        self._record, self._message = records
        super().__init__(seen, value, edges, shared)

    @property
    def value(self) -> Any:
        """The value of the vertex."""
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        record = self._record
        self._value = value if record is None else record.of(value, "compute", "set")

    def send(self, target: Any, message: Any) -> None:
        """Send a message to a vertex."""
        super().send(target, self._fitting(message))

    def send_to_all(self, message: Any) -> None:
        """Send a message along every out-edge."""
        super().send_to_all(self._fitting(message))

    def request_add_vertex(self, id: Any, value: Any = None, edges: Iterable[Any] = ()) -> None:
        """Request a new vertex, which exists from the next superstep on."""
        if self._record is not None:
            value = list(self._record.of(value, "compute", "requested"))
        super().request_add_vertex(id, value, edges)

    def _fitting(self, message: Any) -> Any:
        # Messages travel as lists, which every serializer preserves.
        record = self._message
        return message if record is None else list(record.of(message, "compute", "sent"))
