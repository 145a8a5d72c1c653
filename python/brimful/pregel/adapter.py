"""Adapts Pregel programs to vertex programs."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from brimful.errors import UsageError
from brimful.kernels.methods import overrides
from brimful.pregel.changes import (
    MESSAGE,
    Edges,
    VertexChanges,
    VertexData,
    addressed,
    changes_of,
    named_pairs,
    pairs,
    weighted_pairs,
)
from brimful.pregel.master import Master
from brimful.pregel.program import Pregel
from brimful.pregel.role import ALONE, Role
from brimful.pregel.steps import PregelSteps
from brimful.pregel.structured import StructuredVertex
from brimful.pregel.vertex import PregelVertex
from brimful.program import Program, Vertex
from brimful.record import message_record_of, record_of
from brimful.wording import shortened


class _Several(list[Any]):
    """Messages of a superstep that does not combine them, in the place of a combined message."""


class PregelAdapter(Program):
    """A Pregel program as a vertex program.

    A state is `[value, is_halted, outbox, edges]`; edges are None as long as they are those of the
    graph. Without supersteps the number of calls follows, and then the memory of a vertex, if it
    has some. The state of a vertex that does not exist is None. The native side takes the edges of
    kept vertices out of their states. Values and messages with fields are lists there, which every
    serializer preserves.
    """

    def __init__(
        self,
        program: Pregel,
        vertices: int,
        role: Role = ALONE,
        *,
        mode: str = "sync",
        keeps: bool = False,
    ) -> None:
        """Wrap a program for one run on so many vertices, or for a part of the run.

        Raises:
            UsageError: The program has no proper aggregators or context, or acts between supersteps
                and `mode` is "async".
        """
        self.program = program
        #: The fields of values, and those of messages, if they have some.
        self.record, self._message = record_of(program), message_record_of(program)
        self._is_async, self._keeps = mode != "sync", keeps
        #: The action of a call besides `compute` that raised an exception.
        self.failed: str | None = None
        combines = overrides(program, "combine")
        # Requests travel with the messages and must not be combined with them.
        self.delivery = "combined" if combines and not program.mutates else "each"  # type: ignore[misc]
        #: The work between supersteps.
        self.steps = PregelSteps(program, vertices, role, self._switch)
        self._shared = self.steps.shared
        self._compute: Callable[[PregelVertex, list[Any]], object] = program.compute
        # Messages travel once the next superstep has begun, but the combiner of the superstep that
        # sent them applies.
        self._combine = self._next_combine = program.combine if combines else None
        if self._is_async and (self.steps.has_extra_state or self._shared.context is not None):
            raise UsageError(
                "aggregators, master_compute and worker_context need supersteps; leave out "
                "mode='async'"
            )

    def _switch(self, master: Master) -> None:
        """Compute and combine as the master decided."""
        self._compute = getattr(self.program, master.compute)
        self._combine = self._next_combine
        self._next_combine = (
            None if master.combine is None else getattr(self.program, master.combine)
        )

    def initial_state(self, vertex: Vertex) -> list[Any]:
        """Return the state before the first superstep."""
        value = self.program.initial_value(vertex)
        if self.record is not None:
            value = list(self.record.of(value, "initial_value"))
        return self.kept_state(value, False)

    def kept_state(self, value: Any, is_halted: bool) -> list[Any]:
        """Return the state before the first superstep of a vertex that keeps its value."""
        state = [value, is_halted, [], None]
        return [*state, 0] if self._is_async else state

    def signal(self, source: Vertex, target: Any, weight: float) -> Any:
        """Vertices choose the targets of their messages."""
        raise NotImplementedError

    def combine(self, left: Any, right: Any) -> Any:
        """Combine two messages, or keep both."""
        if self._combine is not None:
            return self._combined(left, right)
        both = (one if isinstance(one, _Several) else [one] for one in (left, right))
        return _Several(message for one in both for message in one)

    def _combined(self, left: Any, right: Any) -> Any:
        assert self._combine is not None
        if self._message is not None:
            made = self._message.made
            return list(self._message.of(self._combine(made(left), made(right)), "combine"))
        combined = self._combine(left, right)
        # Messages may be None themselves.
        if combined is None and left is not None and right is not None:
            raise TypeError(
                f"{self._combine.__name__} returned None for {shortened(left)} and "
                f"{shortened(right)}; return the message that stands for both"
            )
        return combined

    def collect(self, vertex: Vertex, signals: list[Any]) -> list[Any] | None:
        """Resolve the requests for a vertex, and compute it; requests alone wake no vertex."""
        state = vertex.state
        value, is_halted, outbox, edges = (None, False, [], None) if state is None else state[:4]
        if self.record is not None and state is not None:
            value = self.record.made(value)
        edges = None if edges is None else pairs(edges)
        of_calls = 5 if self._is_async else 4
        memory = [] if state is None else state[of_calls:]
        messages, is_awake = signals, True
        if self._shared.mutates:
            messages = [payload for kind, payload in signals if kind == MESSAGE]
            if state is None or len(messages) < len(signals):
                changes = changes_of(signals)
                if changes.added_edges:
                    # The vertex signals along them.
                    memory = []
                resolved, is_new = self._resolved(vertex, value, edges, changes)
                if resolved is None:
                    return None
                is_awake = is_new or bool(messages) or not is_halted
                value = resolved.value
                edges = self._called("resolve changes", named_pairs, resolved.edges)
                if self.record is not None:
                    given = tuple(value) if isinstance(value, list) else value
                    value = self.record.of(given, "resolve")
            if self._combine is not None and len(messages) > 1:
                messages = [self._called("combine signals", reduce, self._combined, messages)]
        elif signals and isinstance(signals[0], _Several):
            messages = list(signals[0])
        if self._message is not None:
            messages = [self._message.made(message) for message in messages]
        if self.record is None and self._message is None:
            computed = PregelVertex(vertex, value, edges, self._shared)
        else:
            records = self.record, self._message
            computed = StructuredVertex(vertex, value, edges, self._shared, records)
        computed._memory = memory
        if self._is_async:
            # A vertex that a request creates has missed the first call.
            computed.superstep = 1 if state is None else state[4]
            # A vertex may compute again before it sends.
            computed._outbox += outbox
        if is_awake:
            self._computed(computed, messages)
        else:
            computed.vote_to_halt()
        new_edges = computed._edges
        own: list[Any] | None = None
        if new_edges is not None and self._keeps:
            own = weighted_pairs(new_edges)
            # The native side replaces the edges before it sends.
            kept: Edges = vertex.edges  # type: ignore[attr-defined]
            computed._outbox = addressed(computed._outbox, kept)
        elif new_edges is not None:
            # Lists, not tuples: every serializer preserves lists.
            own = [list(edge) for edge in new_edges]
        new_value = computed.value if self.record is None else list(computed.value)
        new = [new_value, computed._halted, computed._outbox, own]
        if self._is_async:
            new.append(computed.superstep + is_awake)
        return new + computed._memory

    def _computed(self, vertex: PregelVertex, messages: list[Any]) -> None:
        returned = self._compute(vertex, messages)
        if returned is not None:
            raise TypeError(
                f"compute returned {shortened(returned)}, which a run does not use; assign the new "
                "value to vertex.value, and return nothing"
            )

    def _resolved(
        self, vertex: Vertex, value: Any, edges: Edges | None, changes: VertexChanges
    ) -> tuple[VertexData | None, bool]:
        """Return a vertex as the requests for it leave it, and whether it is a new one."""
        data = None
        if vertex.state is not None:
            own = vertex.edges if edges is None else edges  # type: ignore[attr-defined]
            data = VertexData(value, list(own))
        resolved = self._called("resolve changes", self.program.resolve, vertex.id, data, changes)
        return resolved, resolved is not data

    def _called(self, doing: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception:
            self.failed = doing
            raise
