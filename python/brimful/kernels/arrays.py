"""Kernels of arrays: the methods of a program, called for a batch of vertices at a time.

Invariant: as in `template.py`, a method receives the values of an interpreted run, here of all
vertices of a batch that have something to do: fields of `vertex` and the one signal are arrays.
"""

from __future__ import annotations

import copy
import ctypes
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from brimful.errors import ProgramError
from brimful.kernels.aggregates import add, array_at, read
from brimful.kernels.interface import CONTEXT, INITIAL, VERTEX
from brimful.kernels.methods import NotCompilable, place
from brimful.kernels.numbers import Numbers, bits, shown, silence_of
from brimful.kernels.slots import SUM_FLOAT, Slot, aggregates_type
from brimful.wording import counted, shortened

if TYPE_CHECKING:
    from brimful import _native
    from brimful.program import Program
    from brimful.record import Record

_C_TYPES: dict[str, Any] = {"u4": ctypes.c_uint32, "u8": ctypes.c_uint64, "f8": ctypes.c_double}
_VERTEX_TYPE = np.dtype([tuple(field.split(":")) for field in VERTEX.split()], align=True)


class _Context(ctypes.Structure):
    _fields_ = tuple(
        (name, _C_TYPES[kind]) for name, kind in (field.split(":") for field in CONTEXT.split())
    )


def _differ(old: Any, new: Any) -> Any:
    """Return which states differ, of numbers or of fields; NaN equals NaN."""
    if old.dtype.names is None:
        return (old != new) & ((old == old) | (new == new))
    return np.any([_differ(old[name], new[name]) for name in old.dtype.names], axis=0)


def _distances(old: Any, new: Any) -> Any:
    """Return the changes of states, of numbers or of the fields of records, as floats."""
    if old.dtype.names is not None:
        return np.max([_distances(old[name], new[name]) for name in old.dtype.names], axis=0)
    if old.dtype.kind in "iu":
        old, new = old.astype(np.int64), new.astype(np.int64)
        # A difference of 64 bits may need the bit of the sign.
        least, greatest = np.minimum(old, new).view("u8"), np.maximum(old, new).view("u8")
        return (greatest - least).astype(np.float64)
    with np.errstate(invalid="ignore"):
        change = np.abs(new.astype(np.float64) - old.astype(np.float64))
    return np.where(_differ(old, new), np.where(np.isnan(change), np.inf, change), 0.0)


class Failure(NamedTuple):
    """The exception of a method, and the block of vertices that the method was called with."""

    error: BaseException
    #: Empty: the values of aggregators cannot be read.
    method: str
    #: None: the first states had no superstep.
    superstep: int | None
    #: The internal ids of the vertices, and their states.
    vertices: Any
    states: Any

    def shown(self, graph: _native.Graph) -> ProgramError:
        """Return the error of the run."""
        from brimful import _native

        if not self.method:
            return ProgramError(str(self.error))
        ids = _native.Lookup(graph).ids(self.vertices.tolist())
        # Internal ids have another order.
        first, last = min(ids), max(ids)
        when = "" if self.superstep is None else f" at superstep {self.superstep}"
        where = f"for a block of {counted(len(ids), 'vertex')} from {first} to {last}"
        if first == last:
            where = f"at vertex {first}"
        error = ProgramError(
            f"{self.method} failed{when} {where}: {type(self.error).__name__}: "
            f"{self.error}".removesuffix(": "),
            first if first == last else None,
        )
        error.superstep, error.state = self.superstep, self.states
        error.__cause__ = self.error
        return error


class _Block:
    """One call of the kernel: its context, its vertices, and the method that it has come to."""

    def __init__(self, context: Any) -> None:
        """Begin with no method."""
        self.context = context
        self.vertices = array_at(context.vertices, context.count, _VERTEX_TYPE)
        self.method, self.states = "", None

    def failure(self, error: BaseException) -> Failure:
        """Return the failure of the method, with copies of data in the memory of the engine."""
        superstep: int | None = self.context.superstep
        if self.method == "initial_state":
            superstep = None
        elif self.method == "signal" and self.context.call != INITIAL:
            # The signals of a superstep are made at the end of the one before.
            superstep = self.context.superstep + 1
        vertices = self.vertices["id"].copy()
        return Failure(error, self.method, superstep, vertices, copy.deepcopy(self.states))


class ArrayKernel:
    """A kernel that calls methods with arrays; it lives as long as the engine may call it."""

    def __init__(
        self,
        program: Program,
        methods: dict[str, FunctionType],
        along: str,
        least_id: int,
        states_and_slots: tuple[Record | None, tuple[Slot, ...]],
        change: Slot | None,
        *,
        has_degrees: bool,
    ) -> None:
        """Take the methods of a program, and the least id, from which ids are counted.

        `along` is the engine's operation on a signal and a weight; then come the fields of states
        and the aggregators. `change` measures the changes of states.

        Raises:
            NotCompilable: A method does not return numbers.
        """
        self._record, self._slots = states_and_slots
        self._change = change
        # Calls set `aggregated`, so they use a copy: the user's object stays as it is. All calls
        # of a superstep set the same values.
        self._program = copy.copy(program) if self._slots else program
        self._methods, self._least_id = methods, least_id
        self._aggregates = aggregates_type(self._slots)
        self._state = None if self._record is None else self._record.padded()
        self._combiner = program.combiner
        self._is_sum = self._combiner == "sum"
        self._has_degrees = has_degrees
        self._shown = shown(has_ids=not self._is_sum, has_degrees=has_degrees)
        self._threshold = float(program.signal_threshold)
        self.numbers = self._found_numbers(along)
        self._silence = silence_of(str(program.combiner), self.numbers.signal)
        self._nothing = bits(self._silence)
        #: The first failure of a method.
        self.failure: Failure | None = None
        self._function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint64)(self._call)
        self.address = ctypes.cast(self._function, ctypes.c_void_p).value

    def _found_numbers(self, along: str) -> Numbers:
        """Return the types of states and signals, from calls with arrays of no vertices."""
        none, degrees = np.empty(0, np.int64), np.empty(0, np.int64)
        self._show([slot.shown(slot.initial) for slot in self._slots])
        numbers = self._found_values(none, degrees, along)
        states = self._loaded(np.empty(0, self._state or numbers.state))
        if self._slots:
            self._values(self._returned("aggregate", self._later(states, degrees), states))
        if "signal_score" in self._methods:
            scored = self._shown.scored(states, *self._degrees_of(degrees), states)
            self._returned("signal_score", scored)
        return numbers

    def _found_values(self, none: Any, degrees: Any, along: str) -> Numbers:
        if self._record is not None:
            self._check_fields("initial_state", self._first(none, degrees))
            later = self._later(self._loaded(np.empty(0, self._state)), degrees)
            signal = self._kind("signal", later, None, 1.0)
            if self._is_sum or along != "unchanged":
                signal = "float64"
            self._check_fields("collect", later, [np.empty(0, signal)])
            return Numbers("record", signal)
        state = self._kind("initial_state", self._first(none, degrees))
        later = self._later(np.empty(0, state), degrees)
        signal = self._kind("signal", later, None, 1.0)
        if self._is_sum or along != "unchanged":
            signal = "float64"
        collected = self._kind("collect", later, [np.empty(0, signal)])
        return Numbers("float64" if "float64" in (state, collected) else state, signal)

    def _check_fields(self, name: str, *arguments: Any) -> None:
        """Check that a method returns a tuple of arrays for the fields of states.

        Raises:
            NotCompilable: The method returns something else.
        """
        assert self._record is not None
        try:
            self._store(np.empty(0, self._state), self._returned(name, *arguments))
        except (TypeError, ValueError) as error:
            where = place(name, self._methods[name])
            raise NotCompilable(f"{where}: {error}", "Return a tuple of arrays") from error

    def _returned(self, name: str, *arguments: Any) -> Any:
        where = place(name, self._methods[name])
        try:
            return self._methods[name](self._program, *arguments)
        except Exception as error:
            raise NotCompilable(
                f"{where} does not take arrays: {type(error).__name__}: {str(error).rstrip('.')}",
                "Write it with functions of NumPy, such as numpy.minimum and numpy.where",
            ) from error

    def _kind(self, name: str, *arguments: Any) -> str:
        where = place(name, self._methods[name])
        dtype = np.asarray(self._returned(name, *arguments)).dtype
        if dtype.kind not in "biuf":
            raise NotCompilable(
                f"{where} returns values of the type {dtype} in place of numbers",
                "Return an array of numbers",
            )
        return "float64" if dtype.kind == "f" else "int64"

    def _loaded(self, states: Any) -> Any:
        """Return states as methods read them."""
        if self._record is None:
            return states
        return self._record.type(
            *[states[field.name].astype(field.kind) for field in self._record.fields]
        )

    def _store(self, states: Any, values: Any) -> None:
        """Set states to the values that a method returned."""
        if self._record is None:
            states[:] = values
        else:
            self._record.store(states, values)

    def _show(self, values: list[Any]) -> None:
        """Let methods read aggregates."""
        if self._slots:
            self._program.aggregated = self._aggregates(*values)

    def _first(self, ids: Any, degrees: Any) -> Any:
        known = () if self._is_sum else (ids,)
        return self._shown.first(*known, None, None, *self._degrees_of(degrees))

    def _later(self, states: Any, degrees: Any) -> Any:
        return self._shown.later(states, *self._degrees_of(degrees))

    def _degrees_of(self, degrees: Any) -> tuple[Any, ...]:
        """Return degrees, for methods that know them."""
        return (degrees,) if self._has_degrees else ()

    def _call(self, address: int) -> int:
        block = _Block(_Context.from_address(address))
        try:
            with np.errstate(divide="raise"):
                self._work(block)
        except BaseException as error:  # noqa: BLE001 - the run raises it at its end.
            self.failure = self.failure or block.failure(error)
            return 1
        return 0

    def _called(self, block: _Block, method: str, vertex: Any, *arguments: Any) -> Any:
        """Call a method with the vertices of a block."""
        block.method, block.states = method, vertex.state
        return self._methods[method](self._program, vertex, *arguments)

    def _work(self, block: _Block) -> None:
        context = block.context
        count = context.count
        states = array_at(context.states, count, self._state or self.numbers.state)
        signals = array_at(context.signals, count, self.numbers.signal)
        degrees = block.vertices["degree"].astype(np.int64) if self._has_degrees else None
        self._show([read(slot, context.aggregate) for slot in self._slots])
        rule, due_count = (
            array_at(context.partial, 1, np.int64),
            array_at(context.partial + 8, 1, "f8"),
        )
        rule[0] = SUM_FLOAT
        if context.call == INITIAL:
            externals = block.vertices["external"]
            ids = None if self._is_sum else externals.astype(np.int64) + self._least_id
            if self._state is not None:
                states.view(np.uint8)[:] = 0
            self._store(states, self._called(block, "initial_state", self._first(ids, degrees)))
            due_count[0] += count
            self._signal(block, signals, slice(None), states, degrees)
            return
        sums = array_at(context.sums, count, self.numbers.signal)
        received = np.flatnonzero(sums.view(np.int64) != self._nothing)
        old = states[received]
        of_received = None if degrees is None else degrees[received]
        before = states.copy()
        vertex = self._later(self._loaded(old), of_received)
        new = old.copy()
        collected = self._turned(sums[received])
        self._store(new, self._called(block, "collect", vertex, [collected]))
        states[received] = new
        if self._slots:
            self._contribute(block, old, new, of_received)
        if self._change is not None and len(received):
            add(self._change, context.partial, _distances(old, new))
        if "signal_score" in self._methods:
            known = self._loaded(states), *self._degrees_of(degrees)
            vertex = self._shown.scored(*known, self._loaded(before))
            scores = self._called(block, "signal_score", vertex)
        else:
            scores = _differ(before, states).astype(np.float64)
        scores = np.broadcast_to(scores, count)
        due = np.flatnonzero(scores > self._threshold)
        context.score += scores.sum()
        due_count[0] += len(due)
        if self._is_sum:
            self._signal(block, signals, slice(None), states, degrees)
        else:
            signals[:] = self._silence
            self._signal(block, signals, due, states, degrees)

    def _contribute(self, block: _Block, old: Any, new: Any, degrees: Any) -> None:
        """Add the contributions of vertices whose state changed, one after another."""
        at = np.flatnonzero(_differ(old, new))
        if not len(at):
            return
        vertex = self._later(self._loaded(old[at]), None if degrees is None else degrees[at])
        returned = self._called(block, "aggregate", vertex, self._loaded(new[at]))
        for slot, value in zip(self._slots, self._values(returned), strict=True):
            add(slot, block.context.partial, np.broadcast_to(value, len(at)))

    def _values(self, returned: Any) -> list[Any]:
        """Return an array for each aggregator, from the result of `aggregate`.

        Raises:
            NotCompilable: The result is something else.
        """
        values = (returned,) if len(self._slots) == 1 else returned
        where = place("aggregate", self._methods["aggregate"])
        if not isinstance(values, tuple) or len(values) != len(self._slots):
            names = ", ".join(slot.name for slot in self._slots)
            raise NotCompilable(
                f"{where} returns {shortened(returned)} in place of {len(self._slots)} arrays "
                f"({names})",
                "Return a tuple of them in each case",
            )
        arrays = [np.asarray(value) for value in values]
        for slot, value in zip(self._slots, arrays, strict=True):
            if not np.can_cast(value.dtype, slot.kind, "same_kind"):
                raise NotCompilable(
                    f"{where} returns {value.dtype} for {slot.name}, which has the type "
                    f"{slot.kind}",
                    "Convert the values",
                )
        return arrays

    def _turned(self, numbers: Any) -> Any:
        """Return signals as the engine combines them, or the reverse."""
        return ~numbers if self._combiner == "and" else numbers

    def _signal(self, block: _Block, signals: Any, due: Any, states: Any, degrees: Any) -> None:
        """Set the signals of some vertices of a batch."""
        if self._is_sum and self._has_degrees:
            signals[:] = self._silence
            due = np.flatnonzero(degrees > 0)
        vertex = self._later(self._loaded(states[due]), None if degrees is None else degrees[due])
        # Neither target nor weight is read; the engine applies the weight.
        returned = self._called(block, "signal", vertex, None, 1.0)
        if returned is None and self._is_sum:
            raise TypeError("signal returned None; return 0.0 where there is no signal")
        if returned is None:
            signals[due] = self._silence
        else:
            # In sums -0.0 would be no signal.
            sent = np.asarray(returned) + 0.0 if self._is_sum else returned
            signals[due] = self._turned(np.asarray(sent))
