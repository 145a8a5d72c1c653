"""Kernels of arrays: the methods of a program, called for a batch of vertices at a time.

Invariant: as in `template.py`, a method receives the values of an interpreted run, here of all
vertices of a batch that have something to do: fields of `vertex` and the one signal are arrays.
"""

from __future__ import annotations

import ctypes
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from brimful.kernels.interface import CONTEXT, INITIAL, VERTEX
from brimful.kernels.methods import Unfit, place
from brimful.kernels.numbers import Numbers, bits, shown, silence_of

if TYPE_CHECKING:
    from brimful.program import Program

_C_TYPES: dict[str, Any] = {"u4": ctypes.c_uint32, "u8": ctypes.c_uint64, "f8": ctypes.c_double}
_VERTEX_TYPE = np.dtype([tuple(field.split(":")) for field in VERTEX.split()], align=True)


class _Context(ctypes.Structure):
    _fields_ = tuple(
        (name, _C_TYPES[kind]) for name, kind in (field.split(":") for field in CONTEXT.split())
    )


def _array(address: int, count: int, kind: Any) -> Any:
    """Return the memory at an address as an array."""
    size = count * np.dtype(kind).itemsize
    return np.frombuffer((ctypes.c_byte * size).from_address(address), kind)


class ArrayKernel:
    """A kernel that calls methods with arrays; it lives as long as the engine may call it."""

    def __init__(
        self,
        program: Program,
        methods: dict[str, FunctionType],
        along: str,
        least_id: int,
        *,
        is_weighted: bool,
    ) -> None:
        """Take the methods of a program, and the id from which places of ids count.

        `along` is the engine's operation on a signal and a weight.

        Raises:
            Unfit: A method does not return numbers.
        """
        self._program, self._methods, self._least_id = program, methods, least_id
        self._is_sum = program.combiner == "sum"
        self._degrees_known = self._is_sum and not is_weighted
        self._shown = shown(is_sum=self._is_sum)
        self._threshold = float(program.signal_threshold)
        self.numbers = self._found_numbers(along)
        self._silence = silence_of(str(program.combiner), self.numbers.signal)
        self._nothing = bits(self._silence)
        #: The first exception of a method.
        self.raised: BaseException | None = None
        self._function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint64)(self._call)
        self.address = ctypes.cast(self._function, ctypes.c_void_p).value

    def _found_numbers(self, along: str) -> Numbers:
        """Return the types of states and signals, from calls with arrays of no vertices."""
        none, degrees = np.empty(0, np.int64), np.empty(0, np.int64)
        state = self._kind("initial_state", self._first(none, degrees))
        later = self._later(np.empty(0, state), degrees)
        signal = self._kind("signal", later, None, 1.0)
        if self._is_sum or along != "unchanged":
            signal = "float64"
        collected = self._kind("collect", later, [np.empty(0, signal)])
        return Numbers("float64" if "float64" in (state, collected) else state, signal)

    def _kind(self, name: str, *arguments: Any) -> str:
        where = place(name, self._methods[name])
        try:
            found = np.asarray(self._methods[name](self._program, *arguments)).dtype
        except Exception as error:
            raise Unfit(
                f"{where} does not take arrays: {type(error).__name__}: {error}",
                "Write it with functions of NumPy, such as numpy.minimum and numpy.where",
            ) from error
        if found.kind not in "biuf":
            raise Unfit(f"{where} returns {found}, and not numbers", "Return an array of numbers")
        return "float64" if found.kind == "f" else "int64"

    def _first(self, ids: Any, degrees: Any) -> Any:
        if self._is_sum:
            return self._shown.first(None, degrees, None)
        return self._shown.first(ids, None, None)

    def _later(self, states: Any, degrees: Any) -> Any:
        return self._shown.later(states, degrees) if self._is_sum else self._shown.later(states)

    def _call(self, address: int) -> int:
        try:
            with np.errstate(divide="raise"):
                self._work(_Context.from_address(address))
        except BaseException as error:  # noqa: BLE001 - `run` raises it after the run.
            self.raised = self.raised or error
            return 1
        return 0

    def _work(self, context: Any) -> None:
        count = context.count
        states = _array(context.states, count, self.numbers.state)
        signals = _array(context.signals, count, self.numbers.signal)
        vertices = _array(context.vertices, count, _VERTEX_TYPE)
        degrees = vertices["degree"].astype(np.int64) if self._is_sum else None
        partial = _array(context.partial, 1, np.float64)
        if context.call == INITIAL:
            ids = None if self._is_sum else vertices["external"].astype(np.int64) + self._least_id
            method = self._methods["initial_state"]
            states[:] = method(self._program, self._first(ids, degrees))
            partial[0] += count
            self._signal(signals, slice(None), states, degrees)
            return
        sums = _array(context.sums, count, self.numbers.signal)
        received = np.flatnonzero(sums.view(np.int64) != self._nothing)
        old = states[received]
        of_received = None if degrees is None else degrees[received]
        before = states.copy()
        states[received] = self._methods["collect"](
            self._program, self._later(old, of_received), [sums[received]]
        )
        if "signal_score" in self._methods:
            vertex = self._shown.scored(states, degrees, before)
            scores = self._methods["signal_score"](self._program, vertex)
        else:
            scores = (states != before).astype(np.float64)
        scores = np.broadcast_to(scores, count)
        due = np.flatnonzero(scores > self._threshold)
        context.score += scores.sum()
        partial[0] += len(due)
        if self._is_sum:
            self._signal(signals, slice(None), states, degrees)
        else:
            signals[:] = self._silence
            self._signal(signals, due, states, degrees)

    def _signal(self, signals: Any, due: Any, states: Any, degrees: Any) -> None:
        """Set the signals of some vertices of a batch."""
        if self._degrees_known:
            signals[:] = self._silence
            due = np.flatnonzero(degrees > 0)
        vertex = self._later(states[due], None if degrees is None else degrees[due])
        # Neither target nor weight is read; the engine applies the weight.
        found = self._methods["signal"](self._program, vertex, None, 1.0)
        signals[due] = self._silence if found is None else found
