"""The work between the supersteps of a compiled Pregel program, for the native side.

The native side passes the words of the aggregate: first the contributions of the vertices, then the
values that vertices see in the next superstep.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np

from brimful.containers.bags import serializer_of
from brimful.errors import ProgramError
from brimful.extra_state import extra_state
from brimful.kernels.aggregates import read
from brimful.kernels.methods import NotCompilable, overrides, place
from brimful.kernels.numbers import bits
from brimful.kernels.slots import SLOTS, Slot
from brimful.pregel.program import Pregel
from brimful.pregel.steps import PregelSteps
from brimful.serializing import checked_dumps
from brimful.wording import shortened

#: Types of aggregates, as errors name them.
_NOUNS = {"int64": "an integer of 64 bits", "float64": "a float", "bool": "a truth value"}
#: Choices of the master that compiled code cannot follow.
_SWITCHES = {"set_compute": "compute", "set_combine": "combine"}


def has_steps(program: Pregel) -> bool:
    """Return whether a program has a master, or a context of the worker."""
    return any(overrides(program, name) for name in ("master_compute", "worker_context"))


def check_master(program: Pregel) -> None:
    """Refuse a master that makes choices which compiled code cannot follow.

    Raises:
        NotCompilable: It does.
    """
    method = type(program).master_compute
    if not isinstance(method, FunctionType):
        return
    for name, kept in _SWITCHES.items():
        if name in method.__code__.co_names:
            raise NotCompilable(
                f"{place('master_compute', method)} calls {name}, and compiled code has one {kept}",
                "Let the methods read an aggregator that the master sets",
            )


class KernelSteps:
    """The work between the supersteps of one run."""

    def __init__(
        self, program: Pregel, vertices: int, slots: tuple[Slot, ...], parameters: tuple[str, ...]
    ) -> None:
        """Begin a run on so many vertices; compiled code has the values of `parameters`.

        Raises:
            UsageError: The program has no proper aggregators or context.
        """
        self._program, self._slots = program, slots
        self._steps = PregelSteps(program, vertices)
        self._parameters = {name: repr(getattr(program, name)) for name in parameters}

    def begin(self) -> list[int]:
        """Act before superstep 0, and return the values that vertices see.

        Raises:
            ProgramError: A method raised an exception, or the master halts.
        """
        words = self._begun(0)
        if words is None:
            raise ProgramError(
                "master_compute halts the run before superstep 0, which compiled code always "
                'computes; pass compile="never"'
            )
        return words

    def next_superstep(self, number: int, words: list[int]) -> list[int] | None:
        """End a superstep, and begin the next; return the values that vertices see.

        None: the master ends the run.

        Raises:
            ProgramError: A method raised an exception, or a value has changed that compiled code
                has fixed.
        """
        self._contribute(words)
        return self._begun(number)

    def end(self, words: list[int]) -> dict[str, Any]:
        """Act after the last superstep, and return the values of aggregators.

        Raises:
            ProgramError: A method raised an exception.
        """
        self._contribute(words)
        self._steps.end()
        return self._steps.values()

    def save(self) -> str:
        """Return the data of a checkpoint, before a superstep ends.

        Raises:
            UsageError: A value cannot be written.
        """
        text: str = self._saving()[0]()
        return text

    def restore(self, text: str) -> None:
        """Continue from a checkpoint, whose superstep has not ended yet."""
        self._saving()[1](text)

    def _saving(self) -> Any:
        name, dumps, loads = serializer_of("json")
        return extra_state(self._steps, checked_dumps(name, dumps), loads)

    def _contribute(self, words: list[int]) -> None:
        """Merge the contributions of vertices in the superstep that ends.

        Raises:
            ProgramError: A sum exceeds 64 bits.
        """
        memory = np.array(words, np.uint64)
        # In a superstep without acting vertices, the words are those that they would have seen.
        acted = self._slots if memory[0] else ()
        try:
            contributed = {
                slot.name: read(slot, memory.ctypes.data) for slot in acted if memory[slot.word]
            }
        except OverflowError as error:
            raise ProgramError(str(error)) from error
        self._steps.aggregated.merge([contributed])

    def _begun(self, number: int) -> list[int] | None:
        if not self._steps.next_superstep(number):
            return None
        for name, value in self._parameters.items():
            if repr(getattr(self._program, name, None)) != value:
                raise self._refused(
                    number,
                    f"self.{name} changes before superstep {number}, and compiled code has read "
                    "it; let the master set an aggregator",
                )
        # The rule of the first slot stays 0: no vertex has acted in this superstep.
        words = [0] * (2 * SLOTS)
        for slot, value in zip(self._slots, self._steps.values().values(), strict=True):
            number_of = _number(slot, value)
            if number_of is None:
                raise self._refused(
                    number,
                    f"the aggregator {slot.name} is {shortened(value)} before superstep {number}, "
                    f"and compiled code reads {_NOUNS[slot.kind]}; choose an initial value of "
                    'another type, or pass compile="never"',
                )
            words[slot.word : slot.word + 2] = slot.rule, bits(number_of) & (1 << 64) - 1
        return words

    def _refused(self, number: int, message: str) -> ProgramError:
        error = ProgramError(message)
        error.superstep = number
        return error


def _number(slot: Slot, value: Any) -> float | int | None:
    """Return the value of an aggregator as compiled code has it; None if it has no such value."""
    if slot.kind == "bool":
        return int(value) if isinstance(value, bool | np.bool_) else None
    if isinstance(value, int | np.integer) and int(value) >> 63 in (0, -1):
        return int(value) if slot.kind == "int64" else float(value)
    if isinstance(value, float | np.floating) and slot.kind == "float64":
        return float(value)
    return None
