"""Programs that signal, collect and change the graph, as Pregel programs.

Superstep n of Pregel collects the signals of superstep n - 1, and signals for superstep n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import brimful
from brimful.adapted import adapted
from brimful.errors import UsageError
from brimful.pregel.changes import VertexChanges, VertexData
from brimful.pregel.program import Pregel
from brimful.pregel.vertex import PregelVertex
from brimful.program import Program, thresholds_of


class SignallingVertex:
    """A vertex, as the methods of a program that changes the graph receive it."""

    __slots__ = (
        "_state",
        "degree",
        "has_signalled",
        "id",
        "request_add_edge",
        "request_add_vertex",
        "request_remove_edges",
        "request_remove_vertex",
        "signalled",
        "superstep",
    )

    signalled: Any
    superstep: int | None
    request_add_vertex: Callable[..., None]
    request_remove_vertex: Callable[[Any], None]
    request_add_edge: Callable[..., None]
    request_remove_edges: Callable[[Any, Any], None]

    def __init__(self, vertex: PregelVertex) -> None:
        """Take over a vertex of Pregel, whose memory is the state when it last signalled."""
        self.id, self._state, self.degree = vertex.id, vertex.value, vertex.degree
        self.signalled, self.has_signalled = None, bool(vertex._memory)
        self.superstep = None
        for name in self.__slots__:
            if name.startswith("request_"):
                setattr(self, name, getattr(vertex, name))

    @property
    def state(self) -> Any:
        """The state, which methods return instead of assigning it."""
        return self._state


class Signalling(Pregel):
    """A program that signals and collects, as a Pregel program."""

    mutates = True

    def __init__(self, program: Program, mode: str) -> None:
        """Wrap a program for a run.

        Raises:
            UsageError: The program needs more than this form of it has.
        """
        _refuse_unsupported(program)
        self.program, self._has_supersteps = program, mode == "sync"
        self._called = adapted(program, None, None)
        self._thresholds = thresholds_of(program)
        #: The action of a call that raised an exception, and its vertex.
        self.failed: tuple[str, SignallingVertex] | None = None

    def initial_value(self, vertex: brimful.Vertex) -> Any:
        """Return the first state."""
        return self._called.initial_state(vertex)

    def compute(self, vertex: PregelVertex, messages: list[Any]) -> None:
        """Collect signals, and signal if the score exceeds its threshold."""
        seen, doing = SignallingVertex(vertex), "score"
        try:
            if messages:
                seen.superstep = vertex.superstep - 1 if self._has_supersteps else None
                if self._called.collect_score(seen, messages) > self._thresholds[1]:
                    doing = "collect"
                    seen._state = vertex.value = self._called.collect(seen, messages)
            else:
                seen.superstep = vertex.superstep if self._has_supersteps else None
            # As in other programs, the score belongs to the superstep of the collect before it.
            seen.signalled, doing = vertex._memory[0] if vertex._memory else None, "score"
            is_due = self._called.signal_score(seen) > self._thresholds[0]
            seen.superstep = vertex.superstep if self._has_supersteps else None
            seen.signalled, doing = None, "signal"
            if is_due:
                for target, weight in vertex.edges:
                    signal = self._called.signal(seen, target, weight)
                    if signal is not None:
                        vertex.send(target, signal)
                vertex._memory = [vertex.value]
        except Exception:
            self.failed = doing, seen
            raise
        vertex.vote_to_halt()

    def resolve(
        self, id: Any, vertex: VertexData | None, changes: VertexChanges
    ) -> VertexData | None:
        """Let the program resolve the requests; the vertex is new, and so decides to signal."""
        resolved = self.program.resolve(id, vertex, changes)
        return None if resolved is None else VertexData(resolved.value, resolved.edges)


class Combining(Signalling):
    """A program whose signals are combined."""

    def combine(self, left: Any, right: Any) -> Any:
        """Combine two signals."""
        return self._called.combine(left, right)


def pregel_of(program: Program | Pregel, mode: str) -> Pregel | None:
    """Return a program as Pregel runs it; None: it changes no graph, and runs as it is.

    Raises:
        UsageError: The program changes the graph, and uses something that such a program has not.
    """
    if isinstance(program, Pregel):
        return program
    if not program.mutates:
        return None
    return (Combining if program.delivery == "combined" else Signalling)(program, mode)


def _refuse_unsupported(program: Program) -> None:
    refused: Iterable[tuple[bool, str]] = (
        (program.delivery == "latest", 'delivery "latest"'),
        (program.state_type is not None, "state_type"),
        (bool(program.aggregators), "aggregators"),
    )
    for is_used, attribute in refused:
        if is_used:
            raise UsageError(
                f"{type(program).__name__} has mutates and {attribute}, which do not go together; "
                "leave one of them out, or write the program as a bf.Pregel"
            )
