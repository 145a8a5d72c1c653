"""Programs as stores run them: with named combiners, records, aggregates and a tolerance."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from functools import reduce
from numbers import Integral, Real
from types import FunctionType
from typing import Any

from brimful.errors import UsageError
from brimful.kernels.numbers import named_tuple_type
from brimful.pregel.aggregators import Aggregated, Aggregator, checked_aggregators
from brimful.pregel.program import Pregel
from brimful.pregel.role import ALONE, Role
from brimful.program import Program, Vertex, combiner_of, differ
from brimful.record import Record
from brimful.wording import literal, shortened

#: The methods that may read aggregates: in compiled code a vertex signals at the end of a
#: superstep, before the values over all vertices are known.
_READERS = ("collect", "aggregate")

#: The aggregator that measures the largest change of a state; no other can have this name.
_CHANGE = "change of states"


def tolerance_of(program: Program | Pregel, chosen: Mapping[str, Any]) -> float | None:
    """Return the change of states at which a run with some options ends; None: it has none.

    Raises:
        UsageError: The tolerance is below 0, or the run or the program can have none.
    """
    tolerance: float | None = chosen.get("tolerance")
    if tolerance is None:
        return None
    if tolerance < 0:
        raise UsageError(f"tolerance must be at least 0, not {literal(tolerance)}")
    if isinstance(program, Pregel):
        raise UsageError(
            "a Pregel program ends when its vertices have halted or its master halts it; leave "
            "tolerance= out"
        )
    if program.mutates:
        raise UsageError("a program that changes the graph has no tolerance; leave tolerance= out")
    if chosen["mode"] == "async":
        raise UsageError('tolerance needs supersteps; leave mode="async" or tolerance= out')
    return tolerance or None


def aggregators_of(program: Program, mode: str) -> Mapping[str, Aggregator]:
    """Return the aggregators of a program, checked for a run.

    Raises:
        UsageError: `aggregators` is not such a mapping, there is no `aggregate` for it or only that
            method, the run has no supersteps, or a method reads aggregates that cannot.
    """
    aggregators = checked_aggregators(program.aggregators)
    has_method = type(program).aggregate is not Program.aggregate
    if not aggregators:
        if has_method:
            raise UsageError(
                f"{type(program).__name__} has aggregate(), but no aggregators; name the values "
                "in `aggregators`, or leave the method out"
            )
        return aggregators
    if mode == "async":
        raise UsageError("aggregators need supersteps; leave out mode='async'")
    for name in ("initial_state", "signal", "signal_score", "collect_score", "combine"):
        method = getattr(type(program), name)
        if isinstance(method, FunctionType) and "aggregated" in method.__code__.co_names:
            raise UsageError(
                f"{name} reads self.aggregated, but only {' and '.join(_READERS)} can; store the "
                "value in the state"
            )
    if not has_method:
        raise UsageError(
            f"{type(program).__name__} has aggregators, but no aggregate(); define the method, or "
            "remove the aggregators"
        )
    return aggregators


class Totals:
    """The values of the aggregators of one run on a store; `program` reads them.

    With a tolerance, one aggregator more measures the largest change of a state: the run ends after
    a superstep in which no state changed by more than this.
    """

    #: No master decides whether a superstep begins.
    decides = False

    def __init__(
        self,
        program: Program,
        aggregators: Mapping[str, Aggregator],
        tolerance: float | None,
        role: Role = ALONE,
    ) -> None:
        """Begin with the initial values; `program` is a copy for this run, or a part of it."""
        self._program, self._names, self._tolerance = program, list(aggregators), tolerance
        self._is_divided = role.is_divided
        #: True if the run has a tolerance: states are numbers.
        self.measures = tolerance is not None
        change = {_CHANGE: Aggregator("max", 0.0)} if self.measures else {}
        self._aggregated = Aggregated({**aggregators, **change}, is_divided=role.is_divided)
        self._type: Any = named_tuple_type("Aggregates", tuple(self._names))
        self._is_first = True
        self._show()

    def _show(self) -> None:
        self._program.aggregated = self._type(*map(self._aggregated.last, self._names))

    def change(self, vertex: Vertex, new: Any) -> None:
        """Measure the change of a state, and let the program aggregate it.

        Raises:
            TypeError: The run has a tolerance, and a state is not a number.
            ValueError: There is not one value for each aggregator.
        """
        if self.measures:
            self._aggregated.add(_CHANGE, _distance(vertex.state, new))
        if self._names and differ(vertex.state, new):
            self._add(self._program.aggregate(vertex, new))

    def _add(self, returned: Any) -> None:
        values = (returned,) if len(self._names) == 1 else returned
        if not isinstance(values, tuple) or len(values) != len(self._names):
            raise ValueError(
                f"aggregate returned {shortened(returned)}, not a tuple of one value for each of "
                f"{', '.join(self._names)}"
            )
        for name, value in zip(self._names, values, strict=True):
            self._aggregated.add(name, value)

    def next_superstep(self, number: int) -> bool:
        """Show the values of the last superstep; the run continues unless it has converged."""
        if self._is_first:
            self._is_first = False
            return True
        self.end()
        return not self._has_converged()

    def _has_converged(self) -> bool:
        return self._tolerance is not None and self._aggregated.last(_CHANGE) <= self._tolerance

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
        """Begin a superstep; the run continues unless it has converged."""
        # Before superstep 0 the largest change has its initial value, 0.
        return number == 0 or not self._has_converged()

    def end(self) -> None:
        """End a superstep, unless all processes have ended it together."""
        if not self._is_divided:
            self._aggregated.end_superstep()
            self._show()

    def values(self) -> dict[str, Any]:
        """Return the values of the last superstep."""
        return {name: self._aggregated.last(name) for name in self._names}

    def saved(self) -> list[dict[str, Any]]:
        """Return the values of the aggregators for a checkpoint, before a superstep ends."""
        return self._aggregated.saved()

    def restore(self, saved: list[dict[str, Any]]) -> None:
        """Continue from a checkpoint, whose superstep has not ended yet."""
        self._aggregated.restore(saved)
        self._is_first = False


def _distance(old: Any, new: Any) -> float:
    """Return the change of a state; of a record, the largest change of a field.

    Raises:
        TypeError: A state is not a number.
    """
    if isinstance(new, tuple) and hasattr(new, "_fields") and type(new) is type(old):
        return max(map(_distance, old, new))
    check_number(old)
    check_number(new)
    if not differ(old, new):
        return 0.0
    kind = int if isinstance(old, Integral) and isinstance(new, Integral) else float
    change = abs(kind(new) - kind(old))
    return math.inf if math.isnan(change) else change


def check_number(state: Any) -> None:
    """Refuse a state whose change cannot be measured.

    Raises:
        TypeError: The state is not a number.
    """
    if not isinstance(state, Real):
        raise TypeError(
            f"tolerance needs states that are numbers, and a state is {shortened(state)} of type "
            f"{type(state).__name__}; leave tolerance= out"
        )


def totals_of(
    program: Program, mode: str, tolerance: float | None, role: Role = ALONE
) -> tuple[Program, Totals | None]:
    """Return a program for one run or a part of it, and its aggregates or tolerance.

    Raises:
        UsageError: As `aggregators_of`.
    """
    aggregators = aggregators_of(program, mode)
    if not aggregators and tolerance is None:
        return program, None
    own = copy.copy(program)
    return own, Totals(own, aggregators, tolerance, role)


class Adapted(Program):
    """A program as stores run it, vertex by vertex.

    A named combiner makes one signal of all before `collect`, states become records, and the
    changes of states are aggregated and measured.
    """

    def __init__(self, program: Program, record: Record | None, totals: Totals | None) -> None:
        """Wrap a program with the record of its states and with its aggregators, if it has them."""
        self._program, self._record, self._totals = program, record, totals
        self._combine = None if program.combiner is None else combiner_of(program)
        # Binding the program's methods saves a call per edge; the definitions below only satisfy
        # the abstract base class.
        is_plain = record is None and not (totals and totals.measures)
        methods = ["signal", "initial_state"] if is_plain else ["signal"]
        for name in ("delivery", "signal_threshold", "collect_threshold", *methods):
            setattr(self, name, getattr(program, name))

    def initial_state(self, vertex: Vertex) -> Any:
        """Return the first state, as a record or as a number whose change can be measured."""
        state = self._program.initial_state(vertex)
        if self._record is not None:
            return self._record.of(state, "initial_state")
        check_number(state)
        return state

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
        if self._record is not None and new is not vertex.state:
            new = self._record.of(new, "collect")
        if self._totals is not None:
            self._totals.change(vertex, new)
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
