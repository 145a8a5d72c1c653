"""Adapts Pregel programs to vertex programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from brimful.errors import ProgramError, UsageError
from brimful.pregel.aggregators import Aggregated, checked_aggregators
from brimful.pregel.changes import MESSAGE, Edges, VertexChanges, VertexData, changes_of, pairs
from brimful.pregel.master import Master, WorkerContext
from brimful.pregel.part import ALONE, Part
from brimful.pregel.program import Pregel
from brimful.pregel.vertex import PregelVertex, Shared
from brimful.program import Program, Vertex
from brimful.wording import shortened


class _Several(list[Any]):
    """Messages of a superstep that does not combine them, in the place of a combined message."""


class PregelAdapter(Program):
    """A Pregel program as a vertex program.

    A state is `[value, is_halted, outbox, edges]`; edges are None as long as they are those of the
    graph. Without supersteps the number of calls follows. The state of a vertex that does not exist
    is None.
    """

    def __init__(
        self, program: Pregel, vertices: int, part: Part = ALONE, *, mode: str = "sync"
    ) -> None:
        """Wrap a program for one run on so many vertices, or for a part of the run.

        Raises:
            UsageError: The program has no proper aggregators or context, or acts between supersteps
                and `mode` is "async".
        """
        aggregators = checked_aggregators(program.aggregators)
        self.program = program
        self._is_async = mode != "sync"
        self._combines = _defines(program, "combine")
        # Requests travel with the messages and must not be combined with them.
        self.delivery = "combined" if self._combines and not program.mutates else "each"  # type: ignore[misc]
        context = program.worker_context() if part.computes else None
        if context is not None and not isinstance(context, WorkerContext):
            raise UsageError(
                f"worker_context must return a WorkerContext, not {shortened(context)}"
            )
        aggregated = Aggregated(aggregators, is_divided=part.is_divided)
        self._shared = Shared(aggregated, bool(program.mutates), context)
        if context is not None:
            context._values = self._shared.aggregated
        self._master = Master(program, vertices, self._shared.aggregated, combines=self._combines)
        self._compute: Callable[[PregelVertex, list[Any]], None] = program.compute
        # Messages travel once the next superstep has begun, but the combiner of the superstep that
        # sent them applies.
        self._combine = self._next_combine = program.combine if self._combines else None
        #: True if a message creates the vertex that it does not find.
        self.creates = self._shared.mutates
        self._is_first, self._is_open = True, False
        #: The method between supersteps that raised an exception, and the exception.
        self.failed: tuple[str, Exception] | None = None
        if self._is_async and (self.has_extra_state or context is not None):
            raise UsageError(
                "aggregators, master_compute and worker_context need supersteps; leave out "
                "mode='async'"
            )

    @property
    def has_extra_state(self) -> bool:
        """True if a checkpoint holds more than vertices."""
        has_context = self._shared.context is not None
        return bool(self.program.aggregators) or has_context or self.decides

    @property
    def decides(self) -> bool:
        """True if a master decides whether, and how, the next superstep begins."""
        return _defines(self.program, "master_compute")

    def saved(self) -> dict[str, Any]:
        """Return the contents of a checkpoint besides the vertices, before a superstep ends."""
        context = self._shared.context
        return {
            "aggregated": self._shared.aggregated.saved(),
            "compute": self._master.compute,
            "combine": self._master.combine,
            "context": {} if context is None else context._saved(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue from a checkpoint, whose superstep has not ended yet."""
        self._shared.aggregated.restore(saved["aggregated"])
        master, context = self._master, self._shared.context
        master.compute, master.combine = saved["compute"], saved["combine"]
        self._next_combine = self._method(master.combine)
        if context is not None:
            vars(context).update(saved["context"])
        self._is_first, self._is_open = False, True

    def next_superstep(self, number: int) -> bool:
        """End the last superstep and begin another; return whether the run continues."""
        is_ready = self._start() if self._is_first else self._end_superstep()
        return is_ready and self._let_master_compute(number) and self._begin(number)

    def _start(self) -> bool:
        """Act before the first superstep, once; return whether that succeeded."""
        if not self._is_first:
            return True
        self._is_first = False
        context = self._shared.context
        return context is None or self._between("pre_application", context)

    def _let_master_compute(self, number: int) -> bool:
        self._master.superstep = self._shared.superstep = number
        return self._between("master_compute", self.program, self._master)

    def _begin(self, number: int) -> bool:
        """Begin a superstep as the master decided; return whether the run continues."""
        context = self._shared.context
        if self._master.is_halted:
            return False
        self._compute = getattr(self.program, self._master.compute)
        self._combine = self._next_combine
        self._next_combine = self._method(self._master.combine)
        if context is not None:
            context.superstep = number
            if not self._between("pre_superstep", context):
                return False
        self._is_open = True
        return True

    def contribution(self) -> dict[str, Any]:
        """End a superstep of one of several processes; return its contributions to aggregators.

        Raises:
            ProgramError: A method between supersteps raised an exception.
        """
        self._is_open = False
        context = self._shared.context
        if context is not None:
            self._between("post_superstep", context)
        self.check_failure()
        return self._shared.aggregated.contribution()

    def merge(self, contributions: Sequence[Mapping[str, Any]]) -> None:
        """Show the aggregators of all processes."""
        self._shared.aggregated.merge(contributions)
        self._shared.aggregated.end_superstep()

    def decide(self, number: int) -> dict[str, Any]:
        """Let the master compute for all processes; return its decision.

        Raises:
            ProgramError: A method between supersteps raised an exception.
        """
        if self._start():
            self._let_master_compute(number)
        self.check_failure()
        master = self._master
        return {
            "is_halted": master.is_halted,
            "compute": master.compute,
            "combine": master.combine,
            "aggregated": self._shared.aggregated.saved(),
        }

    def follow(self, number: int, decision: Mapping[str, Any] | None) -> bool:
        """Begin a superstep as the master of all processes decided; return whether there is one.

        Raises:
            ProgramError: A method between supersteps raised an exception.
        """
        if decision is not None:
            master = self._master
            master.is_halted = decision["is_halted"]
            master.compute, master.combine = decision["compute"], decision["combine"]
            self._shared.aggregated.restore(decision["aggregated"])
        self._master.superstep = self._shared.superstep = number
        goes_on = self._start() and self._begin(number)
        self.check_failure()
        return goes_on

    def _method(self, name: str | None) -> Any:
        return None if name is None else getattr(self.program, name)

    def end(self) -> None:
        """Act after the last superstep.

        Raises:
            ProgramError: A method between supersteps raised an exception, here or before.
        """
        context = self._shared.context
        if self.failed is None and self._end_superstep() and context is not None:
            self._between("post_application", context)
        self.check_failure()

    def values(self) -> dict[str, Any]:
        """Return the values of aggregators after the last superstep."""
        return self._shared.aggregated.values()

    def check_failure(self) -> None:
        """Check that no method between supersteps has failed.

        Raises:
            ProgramError: One raised an exception.
        """
        if self.failed is not None:
            name, error = self.failed
            raised = ProgramError(
                f"{name} failed at superstep {self._shared.superstep}: "
                f"{type(error).__name__}: {error}"
            )
            raised.superstep = self._shared.superstep
            raise raised from error

    def _end_superstep(self) -> bool:
        """End the current superstep, if there is one; return whether that succeeded."""
        if not self._is_open:
            return True
        self._is_open = False
        context = self._shared.context
        went_well = context is None or self._between("post_superstep", context)
        self._shared.aggregated.end_superstep()
        return went_well

    def _between(self, name: str, owner: object, *arguments: object) -> bool:
        """Call a method between supersteps; return whether it succeeded."""
        try:
            getattr(owner, name)(*arguments)
        except Exception as error:  # noqa: BLE001 - `end` raises it after the run.
            self.failed = (name, error)
            return False
        return True

    def initial_state(self, vertex: Vertex) -> list[Any]:
        """Return the state before the first superstep."""
        state = [self.program.initial_value(vertex), False, [], None]
        return [*state, 0] if self._is_async else state

    def signal(self, source: Vertex, target: Any, weight: float) -> Any:
        """Vertices choose the targets of their messages."""
        raise NotImplementedError

    def combine(self, left: Any, right: Any) -> Any:
        """Combine two messages, or keep both."""
        if self._combine is not None:
            return self._combine(left, right)
        both = (one if isinstance(one, _Several) else [one] for one in (left, right))
        return _Several(message for one in both for message in one)

    def collect(self, vertex: Vertex, signals: list[Any]) -> list[Any] | None:
        """Resolve the requests for a vertex, and compute it."""
        state = vertex.state
        value, _, outbox, edges = (None, False, [], None) if state is None else state[:4]
        edges = None if edges is None else pairs(edges)
        messages = signals
        if self._shared.mutates:
            messages = [payload for kind, payload in signals if kind == MESSAGE]
            if state is None or len(messages) < len(signals):
                found = self._resolved(vertex, value, edges, changes_of(signals))
                if found is None:
                    return None
                value, edges = found.value, found.edges
            if self._combine is not None and len(messages) > 1:
                messages = [reduce(self._combine, messages)]
        elif signals and isinstance(signals[0], _Several):
            messages = list(signals[0])
        computed = PregelVertex(vertex, value, edges, self._shared)
        if self._is_async:
            # A vertex that a request creates has missed the first call.
            computed.superstep = 1 if state is None else state[4]
            # A vertex may compute again before it sends.
            computed._outbox += outbox
        self._compute(computed, messages)
        # Lists, not tuples: every serializer preserves lists.
        own = None if computed._edges is None else [list(edge) for edge in computed._edges]
        new = [computed.value, computed._halted, computed._outbox, own]
        return [*new, computed.superstep + 1] if self._is_async else new

    def _resolved(
        self, vertex: Vertex, value: Any, edges: Edges | None, changes: VertexChanges
    ) -> VertexData | None:
        data = None
        if vertex.state is not None:
            own = vertex.edges if edges is None else edges  # type: ignore[attr-defined]
            data = VertexData(value, list(own))
        return self.program.resolve(vertex.id, data, changes)


def _defines(program: Pregel, method: str) -> bool:
    return getattr(type(program), method) is not getattr(Pregel, method)
