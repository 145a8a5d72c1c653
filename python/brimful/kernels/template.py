"""Kernels compiled by Numba: a template that calls the unchanged methods of a program.

Invariant: the kernel follows `docs/kernel-abi.md`, catches every exception, and calls the methods
with the same values as an interpreted run.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from brimful.kernels.inference import Methods
from brimful.kernels.interface import CONTEXT, INITIAL, VERTEX
from brimful.kernels.kept import Kept
from brimful.kernels.numbers import Numbers, bits, silence_of

#: The kernel.
TEMPLATE = """
def kernel(pointer):
    c = carray(pointer, (1,))[0]
    count = int64(c.count)
    floats = carray(address(c.parameters), ({parameters} + 1,), float64)
    integers = carray(address(c.parameters), ({parameters} + 1,), int64)
    self = Parameters({values})
    vertices = carray(address(c.vertices), (count,), vertex_type)
    states = carray(address(c.states), (count,), state_type)
    signals = carray(address(c.signals), (count,), signal_type)
    partial = carray(address(c.partial), (4,), float64)
    status, failed, due, total = 1, 0, 0.0, 0.0
    try:
        if c.call == {initial}:
            for at in range(count):
                failed = at
                vertex = vertices[at]
                degree = int64(vertex.degree)
                new = state_type(initial_state(self, First({first})))
                states[at] = new
                signals[at] = signal_of(self, new, degree)
            due = float64(count)
        else:
            sums = carray(address(c.sums), (count,), signal_type)
            bits = carray(address(c.sums), (count,), int64)
            for at in range(count):
                failed = at
                degree = int64(vertices[at].degree)
                old = states[at]
                new = old
                if bits[at] != {nothing}:
                    new = state_type(collect(self, {vertex}, (sums[at],)))
                    states[at] = new
                score = {score}
                total += score
                if score > threshold:
                    due += 1.0
                if {signals}:
                    signals[at] = signal_of(self, new, degree)
                else:
                    signals[at] = silence
        status = 0
    except Exception:
        c.failed = failed
    # Written once: a sum in memory would be loaded and stored for every vertex.
    c.score += total
    partial[0] += due
    return status


def signal_of(self, state, degree):
    if {has_no_edges}:
        return silence
    value = signal(self, {source}, 0, 1.0)
    if value is None:
        return silence
    return signal_type(plain(value))
"""


def source_of(
    parameters: dict[str, bool],
    numbers: Numbers,
    *,
    combiner: str,
    has_score: bool,
    is_weighted: bool,
) -> str:
    """Return the source code of the kernel; `parameters` tells which of them are floats."""
    is_sum = combiner == "sum"
    later = "Later({}, degree)" if is_sum else "Later({})"
    return TEMPLATE.format(
        initial=INITIAL,
        parameters=len(parameters),
        values="".join(
            f"{'floats' if is_float else 'integers'}[{at}], "
            for at, is_float in enumerate(parameters.values(), 1)
        ),
        first="None, degree, None"
        if is_sum
        else "integers[0] + int64(vertex.external), None, None",
        vertex=later.format("old"),
        source=later.format("state"),
        score="signal_score(self, Scored(new, degree, old))"
        if has_score
        else "float64(new != old)",
        signals="True" if is_sum else "score > threshold",
        # The engine calls for every vertex; signal() is for those with edges. Degrees are known
        # in sums only, where the run is not weighted.
        has_no_edges="degree == 0" if is_sum and not is_weighted else "False",
        nothing=bits(silence_of(combiner, numbers.signal)),
    )


def compile_kernel(
    source: str,
    methods: Methods,
    numbers: Numbers,
    kept: Kept | None,
    *,
    combiner: str,
    threshold: float,
) -> Any:
    """Return the C function of a kernel, from the disk if it is kept there."""
    import numpy as np

    nb: Any = import_module("numba")
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

    def record(fields: str) -> Any:
        return np.dtype([tuple(field.split(":")) for field in fields.split()], align=True)

    names = {
        "__name__": __name__,
        **methods.functions,
        "Parameters": methods.parameters,
        "First": methods.shown.first,
        "Later": methods.shown.later,
        "Scored": methods.shown.scored,
        "address": address,
        "plain": plain,
        "carray": nb.carray,
        "int64": nb.int64,
        "float64": nb.float64,
        "vertex_type": record(VERTEX),
        "state_type": getattr(nb, numbers.state),
        "signal_type": getattr(nb, numbers.signal),
        "silence": silence_of(combiner, numbers.signal),
        "threshold": threshold,
    }
    file = "<kernel>" if kept is None else kept.source_file(source)
    exec(compile(source, file, "exec"), names)
    names["signal_of"] = nb.njit(names["signal_of"])
    signature = nb.int32(nb.types.CPointer(nb.from_dtype(record(CONTEXT))))
    return nb.cfunc(signature, cache=kept is not None)(names["kernel"])
