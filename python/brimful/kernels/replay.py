"""The call that failed in compiled code, made again by the interpreter.

Compiled code tells no more than that a method raised an exception. The engine keeps the arguments
of the call for its vertex, so the method itself can show the exception and the line that raised it.
"""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from brimful.errors import ProgramError
from brimful.failed_calls import failed_call, program_error
from brimful.kernels.aggregates import read
from brimful.kernels.numbers import bits, silence_of
from brimful.kernels.slots import Slot, aggregates_type
from brimful.pregel.program import Pregel
from brimful.program import Program

if TYPE_CHECKING:
    from brimful.kernels.program import KernelWords
    from brimful.record import Record


#: The verb of an interpreted run for the first state.
_BEGINS = "make the first state"


class _Received(NamedTuple):
    """The arguments of the failed call: words, as the engine keeps them."""

    degree: int
    superstep: int
    state: list[int] | None
    sum: list[int] | None
    aggregate: list[int]


class _Vertex(SimpleNamespace):
    """A vertex as methods see it, whose messages and votes are dropped."""

    #: One edge stands for all: compiled code computes the message once.
    edges = ((None, 1.0),)
    signalled: Any = None
    has_signalled = False
    context = None
    #: The fields of values and of messages of Pregel programs, if they have some.
    value_record: Record | None = None
    message_record: Record | None = None

    @property
    def value(self) -> Any:
        """The state, as Pregel programs call it."""
        return self.state

    @value.setter
    def value(self, value: Any) -> None:
        record = self.value_record
        self.state = value if record is None else record.of(value, "compute", "set")

    def send(self, target: Any, message: Any) -> None:
        """Drop a message, if it fits its fields."""
        self.send_to_all(message)

    def send_to_all(self, message: Any) -> None:
        """Drop a message, if it fits its fields."""
        if self.message_record is not None:
            self.message_record.of(message, "compute", "sent")

    def vote_to_halt(self) -> None:
        """Drop the vote."""

    def aggregate(self, name: str, value: Any) -> None:
        """Drop a contribution."""

    def aggregated(self, name: str) -> Any:
        """Return the value of an aggregator."""
        return getattr(self.values, name)


def replayed(
    program: Program | Pregel, reading: KernelWords, id: int | str | None, words: tuple[Any, ...]
) -> ProgramError:
    """Return the error of a compiled call as that of the method.

    `id` is that of the vertex, and `words` are the arguments of the call. If the method raises
    nothing, the error says so.
    """
    received = _Received(*words)
    superstep = received.superstep
    if isinstance(program, Pregel) and received.state is not None:
        superstep += 1
    state = None if received.state is None else _state(reading, received.state)
    vertex = _Vertex(id=id, degree=received.degree, superstep=superstep, state=state)
    try:
        vertex.values = _aggregated(reading.slots, received.aggregate)
    except OverflowError as overflow:
        return ProgramError(str(overflow))
    name, where = type(program).__name__, f"at vertex {id}"
    message = (
        f"a method of {name} raised an exception in compiled code {where}, which its call without "
        'compilation does not raise; pass compile="never"'
    )
    if isinstance(program, Pregel):
        calls = _pregel_calls(program, reading, received, vertex)
    else:
        calls = _calls(program, reading, received, vertex)
    cause: Exception | None = None
    doing = ""
    try:
        for verb, call in calls:
            doing = verb
            call()
    except Exception as raised:  # noqa: BLE001 - methods raise anything.
        cause = raised
    if isinstance(program, Program) and doing == "signal" and received.state is not None:
        # Compiled code makes the signals of a superstep at the end of the one before.
        superstep += 1
    place = (None, None) if doing == _BEGINS else (superstep, vertex.state)
    return (
        program_error(message, id, *place)
        if cause is None
        else failed_call(doing, id, cause, *place)
    )


#: The verb and the call of a method.
_Calls = Iterator[tuple[str, Callable[[], Any]]]


def _calls(program: Program, reading: KernelWords, received: _Received, vertex: _Vertex) -> _Calls:
    """Yield the calls of a vertex, so that none comes after the one that failed."""
    program = copy.copy(program)
    if reading.slots:
        program.aggregated = vertex.values

    def become(values: Any, method: str) -> None:
        vertex.state = values if reading.record is None else reading.record.of(values, method)

    def collect() -> None:
        new = program.collect(vertex, [message])
        if reading.slots:
            program.aggregate(vertex, new)
        vertex.signalled, vertex.has_signalled = vertex.state, True
        become(new, "collect")

    if received.state is None:
        vertex.superstep = None
        yield _BEGINS, lambda: become(program.initial_state(vertex), "initial_state")
        vertex.superstep = received.superstep
    message = None if received.sum is None else _signal(reading, received.sum)
    if message is not None:
        yield "collect", collect
    if received.state is not None:
        yield "score", lambda: program.signal_score(vertex)
    # Before a signal fails, compiled code has stored no state.
    yield "signal", lambda: program.signal(vertex, None, 1.0)


def _pregel_calls(
    program: Pregel, reading: KernelWords, received: _Received, vertex: _Vertex
) -> _Calls:
    """Yield the calls of a vertex of Pregel."""

    def first() -> Any:
        value, record = program.initial_value(vertex), reading.record
        return value if record is None else record.of(value, "initial_value")

    if reading.message is not None:
        vertex.message_record = reading.message[1]
    if received.state is None:
        yield _BEGINS, lambda: setattr(vertex, "state", first())
    vertex.value_record = reading.record
    message = None if received.sum is None else _signal(reading, received.sum)
    messages = [] if message is None else [message]
    yield "compute", lambda: program.compute(vertex, messages)  # type: ignore[arg-type]


def _state(reading: KernelWords, words: list[int]) -> Any:
    """Return a state as methods see it."""
    if reading.record is not None:
        kind = reading.record.padded()
        # After the value of Pregel there may be more words.
        values = np.frombuffer(_bytes(words)[: kind.itemsize], kind)[0].tolist()
        return reading.record.shown(values)
    # After the value of Pregel there may be a word that tells whether the vertex has halted.
    return _number(reading.numbers.state, words[0])


def _signal(reading: KernelWords, words: list[int]) -> Any:
    """Return a combined signal; None if there was none."""
    if reading.message is not None:
        kind, record = reading.message
        *values, is_present = np.frombuffer(_bytes(words), kind)[0].tolist()
        return record.shown(values) if is_present else None
    number = _number(reading.numbers.signal, words[0])
    nothing = silence_of(reading.combiner, reading.numbers.signal)
    if bits(number) == bits(nothing):
        return None
    return ~int(number) if reading.combiner == "and" else number


def _bytes(words: list[int]) -> bytes:
    return struct.pack(f"={len(words)}Q", *words)


def _number(kind: str, word: int) -> float | int:
    form = "d" if kind == "float64" else "q"
    number: float | int
    (number,) = struct.unpack(f"={form}", struct.pack("=Q", word))
    return number


def _aggregated(slots: tuple[Slot, ...], words: list[int]) -> Any:
    """Return the aggregates as methods read them.

    Raises:
        OverflowError: A sum exceeds 64 bits.
    """
    memory = np.array(words, np.uint64)
    return aggregates_type(slots)(*[read(slot, memory.ctypes.data) for slot in slots])
