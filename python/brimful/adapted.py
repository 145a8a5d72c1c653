"""Programs as stores run them: with named combiners, records as states, and aggregates."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import reduce
from types import FunctionType
from typing import Any

from brimful.errors import UsageError
from brimful.kernels.numbers import record as tuple_type
from brimful.pregel.aggregators import Aggregated, Aggregator, checked_aggregators
from brimful.pregel.part import ALONE, Part
from brimful.program import Program, Vertex, combiner_of
from brimful.record import Record
from brimful.wording import shortened

#: The methods that may read aggregates: in compiled code a vertex signals at the end of a
#: superstep, before the values over all vertices are known.
_READERS = ("collect", "aggregate")


def aggregators_of(program: Program, mode: str) -> Mapping[str, Aggregator]:
    """Return the aggregators of a program, checked for a run.

    Raises:
        UsageError: `aggregators` is not such a mapping, the run has no supersteps, or a method
            reads aggregates that cannot.
    """
    aggregators = checked_aggregators(program.aggregators)
    if not aggregators:
        return aggregators
    if mode == "async":
        raise UsageError("aggregators need supersteps; leave out mode='async'")
    for name in ("initial_state", "signal", "signal_score", "collect_score", "combine"):
        method = getattr(type(program), name)
        if isinstance(method, FunctionType) and "aggregated" in method.__code__.co_names:
            raise UsageError(
                f"{name} reads self.aggregated, and only {' and '.join(_READERS)} can; pass the "
                "value on in the state"
            )
    if type(program).aggregate is Program.aggregate:
        raise UsageError(f"{type(program).__name__} has aggregators, but no aggregate()")
    return aggregators


class Totals:
    """The values of the aggregators of one run on a store; `program` reads them."""

    #: No master decides whether a superstep begins.
    decides = False

    def __init__(
        self, program: Program, aggregators: Mapping[str, Aggregator], part: Part = ALONE
    ) -> None:
        """Begin with the initial values; `program` is a copy for this run, or a part of it."""
        self._program, self._names = program, list(aggregators)
        self._is_divided = part.is_divided
        self._aggregated = Aggregated(aggregators, is_divided=part.is_divided)
        self._type: Any = tuple_type("Aggregates", tuple(self._names))
        self._is_first = True
        self._show()

    def _show(self) -> None:
        self._program.aggregated = self._type(*map(self._aggregated.last, self._names))

    def add(self, returned: Any) -> None:
        """Add the contribution of a vertex.

        Raises:
            ValueError: There is not one value for each aggregator.
        """
        values = (returned,) if len(self._names) == 1 else returned
        if not isinstance(values, tuple) or len(values) != len(self._names):
            raise ValueError(
                f"aggregate returned {shortened(returned)}, not a tuple of one value for each of "
                f"{', '.join(self._names)}"
            )
        for name, value in zip(self._names, values, strict=True):
            self._aggregated.add(name, value)

    def next_superstep(self, number: int) -> bool:
        """Show the values of the last superstep; the run continues."""
        if not self._is_first:
            self.end()
        self._is_first = False
        return True

    def contribution(self) -> dict[str, Any]:
        """End a superstep of one of several processes; return its contribution to aggregators."""
        return self._aggregated.contribution()

    def merge(self, contributions: Sequence[Mapping[str, Any]]) -> None:
        """Show the aggregators of all processes."""
        self._aggregated.merge(contributions)
        self._aggregated.end_superstep()
        self._show()

    def decide(self, number: int) -> None:
        """Decide nothing: programs with aggregators have no master."""

    def follow(self, number: int, decision: None) -> bool:
        """Begin a superstep; the run continues."""
        return True

    def end(self) -> None:
        """End a superstep, unless all processes have ended it together."""
        if not self._is_divided:
            self._aggregated.end_superstep()
            self._show()

    def values(self) -> dict[str, Any]:
        """Return the values of the last superstep."""
        return self._aggregated.values()

    def saved(self) -> list[dict[str, Any]]:
        """Return the values of the aggregators for a checkpoint, before a superstep ends."""
        return self._aggregated.saved()

    def restore(self, saved: list[dict[str, Any]]) -> None:
        """Continue from a checkpoint, whose superstep has not ended yet."""
        self._aggregated.restore(saved)
        self._is_first = False


def _differ(old: Any, new: Any) -> bool:
    """Return whether two states differ; NaN, which differs from itself, equals NaN."""
    return bool(new != old and (new == new or old == old))


def totals_of(program: Program, mode: str, part: Part = ALONE) -> tuple[Program, Totals | None]:
    """Return a program for one run or a part of it, and its aggregates if it has some.

    Raises:
        UsageError: As `aggregators_of`.
    """
    aggregators = aggregators_of(program, mode)
    if not aggregators:
        return program, None
    own = copy.copy(program)
    return own, Totals(own, aggregators, part)


class Adapted(Program):
    """A program as stores run it, vertex by vertex.

    A named combiner makes one signal of all before `collect`, states become records, and the
    changes of states are aggregated.
    """

    def __init__(self, program: Program, record: Record | None, totals: Totals | None) -> None:
        """Wrap a program with the record of its states and with its aggregators, if it has them."""
        self._program, self._record, self._totals = program, record, totals
        self._combine = None if program.combiner is None else combiner_of(program)
        # Binding the program's methods saves a call per edge; the definitions below only satisfy
        # the abstract base class.
        methods = ["signal", "initial_state"] if record is None else ["signal"]
        for name in ("delivery", "signal_threshold", "collect_threshold", *methods):
            setattr(self, name, getattr(program, name))

    def initial_state(self, vertex: Vertex) -> Any:
        """Return the first state as a record."""
        state = self._program.initial_state(vertex)
        return state if self._record is None else self._record.of(state, "initial_state")

    def signal(self, source: Vertex, target: Any, weight: float) -> Any:
        """Delegate to the program."""
        return self._program.signal(source, target, weight)

    def combine(self, left: Any, right: Any) -> Any:
        """Combine two signals."""
        combine = self._combine or self._program.combine
        return combine(left, right)

    def collect(self, vertex: Vertex, signals: list[Any]) -> Any:
        """Let the program collect, and aggregate the change."""
        new = self._program.collect(vertex, self._received(signals))
        if self._record is None and self._totals is None:
            return new
        old = vertex.state
        if self._record is not None and new is not old:
            new = self._record.of(new, "collect")
        if self._totals is not None and _differ(old, new):
            self._totals.add(self._program.aggregate(vertex, new))
        return new

    def _create(self, id: Any) -> Any:
        state = self._program.create(id)
        has_fields = self._record is not None and state is not None
        return self._record.of(state, "create") if has_fields else state  # type: ignore[union-attr]

    def _received(self, signals: list[Any]) -> list[Any]:
        return signals if self._combine is None else [reduce(self._combine, signals)]

    def _signal_score(self, vertex: Vertex) -> float:
        return self._program.signal_score(vertex)

    def _cache_score(self, vertex: Vertex) -> float:
        return self._program.cache_score(vertex)

    def _collect_score(self, vertex: Vertex, signals: list[Any]) -> float:
        return self._program.collect_score(vertex, self._received(signals))


def adapted(program: Program, record: Record | None, totals: Totals | None) -> Program:
    """Return a program as stores run it: itself, if it needs no adapter.

    The adapter has the optional methods that the class defines: the native side calls no others.
    """
    if program.combiner is None and record is None and totals is None:
        return program
    methods = {
        name: getattr(Adapted, f"_{name}")
        for name in ("signal_score", "collect_score", "cache_score", "create")
        if getattr(type(program), name) is not getattr(Program, name)
    }
    kind: type[Adapted] = type("Adapted", (Adapted,), methods) if methods else Adapted
    return kind(program, record, totals)
