"""The frame of kernels that Numba compiles: the code around the calls of a program's methods.

Invariant: the kernel calls the methods with the same values as an interpreted run. Together with
the function of C in `machine_code`, which catches its exceptions, it follows `docs/kernel-abi.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from textwrap import indent
from types import FunctionType
from typing import Any, NamedTuple

from brimful.kernels.inference import Typed
from brimful.kernels.interface import CONTEXT, EDGES, FAILED, INITIAL, MERGE, NO_SIGNAL, VERTEX
from brimful.kernels.machine_code import Compiled, internal
from brimful.kernels.numbers import Numbers, silence_of
from brimful.kernels.slots import SLOTS, SUM_FLOAT, Slot

#: The kernel, which may raise an exception, and the function that is called at its end. Parts in
#: braces depend on the program.
FRAME = """
def kernel(c, progress):
    progress.failed, progress.error, progress.acted = 0, FAILED, {acted}
    progress.due = progress.score = 0.0
    count = int64(c.count)
    floats = carray(address(c.parameters), ({parameters} + 1,), float64)
    integers = carray(address(c.parameters), ({parameters} + 1,), int64)
    vertices = carray(address(c.vertices), (count,), vertex_type)
    states = carray(address(c.states), (count,), state_type)
    words = carray(address(c.states), (count * {words},), int64)
    # The initial call has no sums, and does not read them.
    sums = carray(address(c.sums), (count,), signal_type)
    bits = carray(address(c.sums), (count,), int64)
    signals = carray(address(c.signals), (count,), signal_type)
    signal_words = carray(address(c.signals), (count * {signal_words},), int64)
    before_floats = carray(address(c.aggregate), ({slots},), float64)
    before_integers = carray(address(c.aggregate), ({slots},), int64)
    now_floats = carray(address(c.partial), ({slots},), float64)
    now_integers = carray(address(c.partial), ({slots},), int64)
    # The engine may have asked before for the signal of the first vertex, which has no edges.
    silent, superstep = int64(c.failed), int64(c.superstep)
    self = Parameters({values})
    if c.call == {initial}:
        {clear}
        for at in range(count):
            progress.failed = at
            {begin}
    {combining}
    else:
        for at in range(count):
            progress.failed = at
            {later}


def finish(c, progress, has_failed):
    # Written once: a sum in the memory of the engine would be loaded and stored for every vertex.
    c.score += progress.score
    if progress.acted:
        carray(address(c.partial), (1,), int64)[0] = {due_rule}
        carray(address(c.partial), (2,), float64)[1] += progress.due
    if not has_failed:
        return 0
    c.failed = progress.failed
    return progress.error


def contribute(floats, integers, given):
    {contribute}


def aggregated(floats, integers):
    return {aggregated}


def turned(number):
    return {turned}


{helpers}
"""


#: The calls for signals that the kernel combines.
_COMBINING = """
elif c.call == {edges}:
    sources = carray(address(c.sources), (count,), uint32)
    targets = carray(address(c.targets), (count,), uint32)
    weights = carray(address(c.weights), (count,), float64)
    sent = carray(address(c.source_signals), (count,), signal_type)
    for at in range(count):
        progress.failed = at
        weight = weights[at] if c.weights != 0 else 1.0
        pass_along(self, sent, int64(sources[at]), weight, sums, int64(targets[at]))
elif c.call == {merge}:
    sent = carray(address(c.source_signals), (count,), signal_type)
    for at in range(count):
        progress.failed = at
        meet(self, sums, at, sent)
"""

#: The progress of a kernel: the vertex at work, the status if it raises an exception, whether any
#: vertex acted, and sums of vertices.
_PROGRESS = "failed:i8 error:i8 acted:b1 due:f8 score:f8"

#: The name of the source code, as errors of Numba show it.
_FILE = "<kernel>"


class Body(NamedTuple):
    """The parts of a kernel that depend on the kind of its program."""

    #: Statements about a vertex: in its first call, and in later ones.
    begin: str
    later: str
    #: Statements that add `given` to aggregators.
    contribute: str
    #: The functions that these parts call.
    helpers: str
    #: The names that all of them use, besides those of the frame.
    names: dict[str, Any]
    words: int
    #: True if a state has bytes that no field covers.
    has_padding: bool
    #: True if all vertices of a batch act; else `later` sets `acted`.
    all_act: bool
    #: Words of a signal that the kernel combines; 0: it is a number, and the engine combines it.
    signal_words: int = 0


def _merge_of(slot: Slot) -> tuple[str, str, str]:
    """Return the merge function of a slot, the place of the slot, and the type of its value."""
    words, number = ("floats", "float64") if slot.kind == "float64" else ("integers", "int64")
    return f"{slot.function}_of_{number}", f"{words}, integers, {slot.word}", number


def contributions(slots: tuple[Slot, ...]) -> list[str]:
    """Return the call that merges a value in braces, for each aggregator."""
    calls = []
    for slot in slots:
        function, where, number = _merge_of(slot)
        calls.append(f"merge({function}, {where}, {slot.rule}, {slot.overflow}, {number}({{}}))")
    return calls


def _aggregated(slots: tuple[Slot, ...]) -> str:
    """Return the expression of the values of aggregators."""
    seen = []
    for at, slot in enumerate(slots):
        function, where, _ = _merge_of(slot)
        value = f"seen({function}, {where}, {slot.overflow}, initial_{at})"
        if slot.is_whole:
            value = f"whole({where}, initial_{at})"
        seen.append(f"{value} == 1" if slot.kind == "bool" else value)
    return f"Aggregates({', '.join(seen)})"


#: Functions that merge two values. They return whether 64 bits hold the result, and the result.
def _sum_of_int64(left: Any, right: Any) -> Any:
    total = left + right
    return (left ^ total) & (right ^ total) >= 0, total


def _sum_of_float64(left: Any, right: Any) -> Any:
    return True, left + right


def _least(left: Any, right: Any) -> Any:
    return True, right if right < left else left


def _greatest(left: Any, right: Any) -> Any:
    return True, right if right > left else left


_MERGES = {
    "sum_of_int64": _sum_of_int64,
    "sum_of_float64": _sum_of_float64,
    **dict.fromkeys(("min_of_int64", "min_of_float64", "and_of_int64"), _least),
    **dict.fromkeys(("max_of_int64", "max_of_float64", "or_of_int64"), _greatest),
}


def _merge(
    function: Any, values: Any, rules: Any, word: Any, rule: Any, overflow: Any, given: Any
) -> None:
    """Merge a value into the slot at a word."""
    if rules[word] == 0:
        rules[word], values[word + 1] = rule, given
    elif rules[word] == rule:
        fits, merged = function(values[word + 1], given)
        rules[word], values[word + 1] = rule if fits else overflow, merged


def _seen(function: Any, values: Any, rules: Any, word: Any, overflow: Any, initial: Any) -> Any:
    """Return the value of the slot at a word, merged with the initial value of the aggregator."""
    if rules[word] == 0:
        return initial
    fits, merged = function(initial, values[word + 1])
    if rules[word] == overflow or not fits:
        raise OverflowError
    return merged


def _whole(values: Any, rules: Any, word: Any, initial: Any) -> Any:
    """Return the value of the slot at a word, which has the initial value merged already."""
    return initial if rules[word] == 0 else values[word + 1]


def source_of(
    parameters: Mapping[str, str], slots: tuple[Slot, ...], combiner: str, body: Body
) -> str:
    """Return the source code of a kernel; `parameters` are their types by name."""
    forms = {"float64": "floats[{}]", "int64": "integers[{}]", "bool": "integers[{}] != 0"}
    values = [forms[kind].format(at) for at, kind in enumerate(parameters.values(), 1)]
    if slots:
        values.append("aggregated(before_floats, before_integers)")
    return FRAME.format(
        initial=INITIAL,
        parameters=len(parameters),
        words=body.words,
        slots=2 * SLOTS,
        due_rule=SUM_FLOAT,
        signal_words=max(body.signal_words, 1),
        combining=indent(
            _COMBINING.format(edges=EDGES, merge=MERGE) if body.signal_words else "", 4 * " "
        ).strip(),
        acted=body.all_act,
        values="".join(f"{value}, " for value in values),
        # Equal states have equal bytes in checkpoints.
        clear="words[:] = 0" if body.has_padding else "pass",
        begin=indent(body.begin, 12 * " ").strip(),
        later=indent(body.later, 12 * " ").strip(),
        contribute=indent(body.contribute, 4 * " ").strip() or "pass",
        aggregated=_aggregated(slots),
        # -0.0 would be no signal.
        turned={"and": "~number", "sum": "number + 0.0"}.get(combiner, "number"),
        helpers=body.helpers,
    )


def compile_kernel(
    source: str, body: Body, typed: Typed, numbers: Numbers, combiner: str
) -> Compiled:
    """Compile a kernel with Numba."""
    import numpy as np

    nb: Any = import_module("numba")

    def record(fields: str) -> Any:
        return np.dtype([tuple(field.split(":")) for field in fields.split()], align=True)

    address, plain = _intrinsics(nb)
    # Numba counts references to arrays that functions pass on, unless they are one function.
    inlined = partial(internal, inline=True)
    names = {
        "__name__": __name__,
        **typed.functions,
        "FAILED": FAILED,
        "NO_SIGNAL": NO_SIGNAL,
        "Parameters": typed.parameters,
        "address": address,
        "plain": plain,
        "carray": nb.carray,
        "int64": nb.int64,
        "float64": nb.float64,
        "float32": nb.float32,
        "boolean": nb.boolean,
        "vertex_type": record(VERTEX),
        "Aggregates": typed.aggregates,
        **{f"initial_{at}": slot.initial for at, slot in enumerate(typed.slots)},
        "merge": inlined(_merge),
        "seen": inlined(_seen),
        "whole": inlined(_whole),
        **{name: inlined(merge) for name, merge in _MERGES.items()},
        "uint32": nb.uint32,
        "signal_type": getattr(nb, numbers.signal, None),
        "silence": silence_of(combiner, numbers.signal),
        **body.names,
    }
    exec(compile(source, _FILE, "exec"), names)
    for name, one in list(names.items()):
        if isinstance(one, FunctionType) and one.__code__.co_filename == _FILE:
            names[name] = inlined(one)
    kernel, finish = (names[name].py_func for name in ("kernel", "finish"))
    return Compiled(kernel, finish, record(CONTEXT), record(_PROGRESS))


def _intrinsics(nb: Any) -> tuple[Any, Any]:
    """Return `address(number)`, a pointer, and `plain(value)`, a value that is not optional."""
    pointer_type = import_module("numba.core.cgutils").voidptr_t

    @nb.extending.intrinsic  # type: ignore[untyped-decorator]
    def address(context: Any, number: Any) -> Any:
        def to_pointer(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], pointer_type)

        return nb.types.voidptr(number), to_pointer

    @nb.extending.intrinsic  # type: ignore[untyped-decorator]
    def plain(context: Any, value: Any) -> Any:
        number = value.type if isinstance(value, nb.types.Optional) else value

        def to_number(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return target.cast(builder, arguments[0], signature.args[0], number)

        return number(value), to_number

    return address, plain
