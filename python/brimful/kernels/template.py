"""Kernels compiled by Numba: a template that calls the unchanged methods of a program.

Invariant: the kernel follows `docs/kernel-abi.md`, catches every exception, and calls the methods
with the same values as an interpreted run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from brimful.kernels.inference import Methods
from brimful.kernels.interface import CONTEXT, INITIAL, VERTEX
from brimful.kernels.kept import Kept
from brimful.kernels.numbers import Numbers, bits, silence_of
from brimful.kernels.slots import SLOTS, SUM_FLOAT, Slot

if TYPE_CHECKING:
    from brimful.record import Record

#: The kernel. Parts in braces depend on the program.
TEMPLATE = """
def kernel(pointer):
    c = carray(pointer, (1,))[0]
    count = int64(c.count)
    floats = carray(address(c.parameters), ({parameters} + 1,), float64)
    integers = carray(address(c.parameters), ({parameters} + 1,), int64)
    vertices = carray(address(c.vertices), (count,), vertex_type)
    states = carray(address(c.states), (count,), state_type)
    words = carray(address(c.states), (count * {words},), int64)
    signals = carray(address(c.signals), (count,), signal_type)
    before_floats = carray(address(c.aggregate), ({slots},), float64)
    before_integers = carray(address(c.aggregate), ({slots},), int64)
    now_floats = carray(address(c.partial), ({slots},), float64)
    now_integers = carray(address(c.partial), ({slots},), int64)
    status, failed, due, total = 1, 0, 0.0, 0.0
    try:
        self = Parameters({values})
        if c.call == {initial}:
            {clear}
            for at in range(count):
                failed = at
                vertex = vertices[at]
                degree = int64(vertex.degree)
                new = made(initial_state(self, First({first})))
                store(states, at, new)
                signals[at] = signal_of(self, new, degree)
            due = float64(count)
        else:
            sums = carray(address(c.sums), (count,), signal_type)
            bits = carray(address(c.sums), (count,), int64)
            for at in range(count):
                failed = at
                degree = int64(vertices[at].degree)
                old = load(states[at])
                new = old
                if bits[at] != {nothing}:
                    new = made(collect(self, {vertex}, (sums[at],)))
                    store(states, at, new)
                    if {contributes}:
                        if is_new(new, old):
                            contribute(now_floats, now_integers, aggregate(self, {vertex}, new))
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
    now_integers[0] = {due_rule}
    now_floats[1] += due
    return status


def signal_of(self, state, degree):
    if {has_no_edges}:
        return silence
    value = signal(self, {source}, 0, 1.0)
    if value is None:
        return silence
    return signal_type(plain(value))


def fitting(value, least, greatest):
    if value < least or value > greatest:
        raise OverflowError
    return value


def made(value):
    return {made}


def load(state):
    return {load}


def store(states, at, new):
    {store}


def is_new(new, old):
    return {is_new}


def contribute(floats, integers, given):
    {contribute}


def aggregated(floats, integers):
    return {aggregated}
"""


def _of_slots(slots: tuple[Slot, ...]) -> dict[str, str]:
    """Return the expressions of the template that concern aggregators."""
    merged, seen = [], []
    for at, slot in enumerate(slots):
        words, number = ("floats", "float64") if slot.kind == "float64" else ("integers", "int64")
        function = f"{slot.function}_of_{number}"
        given = "given" if len(slots) == 1 else f"given[{at}]"
        where = f"{words}, integers, {slot.word}"
        merged.append(
            f"merge({function}, {where}, {slot.rule}, {slot.overflow}, {number}({given}))"
        )
        value = f"seen({function}, {where}, {slot.overflow}, initial_{at})"
        seen.append(f"{value} == 1" if slot.kind == "bool" else value)
    return {
        "contributes": str(bool(slots)),
        "contribute": "\n    ".join(merged) or "pass",
        "aggregated": f"Aggregates({', '.join(seen)})",
    }


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


def _of_record(record: Record | None) -> dict[str, str]:
    """Return the expressions of the template that concern states."""
    if record is None:
        return {
            "made": "state_type(value)",
            "load": "state",
            "store": "states[at] = new",
            "is_new": "new != old",
            "clear": "",
        }
    made, load, store = [], [], ["record = states[at]"]
    for at, field in enumerate(record.fields):
        number = {"float64": "float64", "int64": "int64", "bool": "boolean"}[field.kind]
        value = f"{number}(value[{at}])"
        if field.code == "f4":
            value = f"float64(float32(value[{at}]))"
        elif field.kind == "int64" and field.code != "i8":
            value = f"fitting({value}, {field.least}, {field.greatest})"
        made.append(value)
        load.append(f'{number}(state["{field.name}"])')
        store.append(f'record["{field.name}"] = new[{at}]')
    return {
        "made": f"State({', '.join(made)})",
        "load": f"State({', '.join(load)})",
        "store": "\n    ".join(store),
        "is_new": " or ".join(f"new[{at}] != old[{at}]" for at in range(len(made))),
        # Clears the padding between fields, so that equal states have equal bytes in checkpoints.
        "clear": "words[:] = 0",
    }


def source_of(
    parameters: dict[str, bool],
    numbers: Numbers,
    record: Record | None,
    slots: tuple[Slot, ...],
    *,
    combiner: str,
    has_score: bool,
    is_weighted: bool,
) -> str:
    """Return the source code of the kernel; `parameters` tells which of them are floats."""
    is_sum = combiner == "sum"
    later = "Later({}, degree)" if is_sum else "Later({})"
    values = [
        f"{'floats' if is_float else 'integers'}[{at}]"
        for at, is_float in enumerate(parameters.values(), 1)
    ]
    if slots:
        values.append("aggregated(before_floats, before_integers)")
    vertex = later.format("old")
    return TEMPLATE.format(
        initial=INITIAL,
        parameters=len(parameters),
        words=1 if record is None else record.padded().itemsize // 8,
        slots=2 * SLOTS,
        due_rule=SUM_FLOAT,
        values="".join(f"{value}, " for value in values),
        first="None, degree, None"
        if is_sum
        else "integers[0] + int64(vertex.external), None, None",
        vertex=vertex,
        source=later.format("state"),
        score="signal_score(self, Scored(new, degree, old))"
        if has_score
        else "float64(is_new(new, old))",
        signals="True" if is_sum else "score > threshold",
        # The engine calls the kernel for every vertex, but only vertices with edges may signal.
        # Degrees are known only to sums without weights.
        has_no_edges="degree == 0" if is_sum and not is_weighted else "False",
        nothing=bits(silence_of(combiner, numbers.signal)),
        **_of_record(record),
        **_of_slots(slots),
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
        "float32": nb.float32,
        "boolean": nb.boolean,
        "vertex_type": record(VERTEX),
        "state_type": getattr(nb, numbers.state)
        if methods.record is None
        else methods.record.padded(),
        "State": None if methods.record is None else methods.record.type,
        "Aggregates": methods.aggregates,
        **{f"initial_{at}": slot.initial for at, slot in enumerate(methods.slots)},
        "merge": nb.njit(_merge),
        "seen": nb.njit(_seen),
        **{name: nb.njit(merge) for name, merge in _MERGES.items()},
        "signal_type": getattr(nb, numbers.signal),
        "silence": silence_of(combiner, numbers.signal),
        "threshold": threshold,
    }
    file = "<kernel>" if kept is None else kept.source_file(source)
    exec(compile(source, file, "exec"), names)
    helpers = "signal_of fitting made load store is_new contribute aggregated"
    for name in helpers.split():
        names[name] = nb.njit(names[name])
    signature = nb.int32(nb.types.CPointer(nb.from_dtype(record(CONTEXT))))
    return nb.cfunc(signature, cache=kept is not None)(names["kernel"])
