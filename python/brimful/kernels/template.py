"""Kernels of programs that signal and collect: the calls of the unchanged methods."""

from __future__ import annotations

import math
from importlib import import_module
from typing import TYPE_CHECKING

from brimful.kernels.fields import fitting, loaded, made_of, stored
from brimful.kernels.frame import Body, contributions
from brimful.kernels.inference import Methods
from brimful.kernels.machine_code import internal
from brimful.kernels.numbers import Numbers, bits, silence_of
from brimful.kernels.slots import Slot

if TYPE_CHECKING:
    from brimful.record import Record

_BEGIN = """
new = begun(self, integers, vertices, at)
progress.error = NO_SIGNAL
sent = sending(self, new, vertices, at, silent != at)
progress.error = FAILED
signals[at] = sent
store(states, at, new)
progress.due += 1.0
"""

_LATER = """
new, score = gone_on(self, vertices, states, sums, bits, at)
progress.error = NO_SIGNAL
sent = sending(self, new, vertices, at, {signals} and silent != at)
progress.error = FAILED
signals[at] = sent
end(self, vertices, states, bits, now_floats, now_integers, at, new)
progress.score += score
if score > threshold:
    progress.due += 1.0
"""

_HELPERS = """
def begun(self, integers, vertices, at):
    vertex = vertices[at]
    degree = int64(vertex.degree)
    return made(initial_state(self, First({first})))


def gone_on(self, vertices, states, sums, bits, at):
    degree = int64(vertices[at].degree)
    old = load(states[at])
    new = old
    if bits[at] != {nothing}:
        new = made(collect(self, {vertex}, (turned(sums[at]),)))
    return new, {score}


def end(self, vertices, states, bits, floats, integers, at, new):
    if bits[at] != {nothing}:
        if {contributes}:
            degree = int64(vertices[at].degree)
            old = load(states[at])
            if is_new(new, old):
                contribute(floats, integers, aggregate(self, {vertex}, new))
        if {measures}:
            {measure}
        store(states, at, new)


def sending(self, state, vertices, at, may_signal):
    return signal_of(self, state, int64(vertices[at].degree)) if may_signal else silence


def signal_of(self, state, degree):
    if {has_no_edges}:
        return silence
    value = signal(self, {source}, 0, 1.0)
    if value is None:
        return silence
    return turned(signal_type(plain(value)))


def made(value):
    return {made}


def load(state):
    return {load}


def store(states, at, new):
    {store}


def is_new(new, old):
    return {is_new}


def distance(new, old):
    return {distance}


def distance_of_float64(new, old):
    if new == old or (new != new and old != old):
        return 0.0
    change = abs(new - old)
    return change if change == change else inf


def distance_of_int64(new, old):
    # A difference of 64 bits may need the bit of the sign.
    return float64(uint64(max(new, old)) - uint64(min(new, old)))


def distance_of_bool(new, old):
    return float64(new != old)
"""

#: Whether two numbers differ; NaN equals NaN.
_IS_NEW = "({1} != {0} and ({1} == {1} or {0} == {0}))"


def _of_record(record: Record | None, kind: str) -> dict[str, str]:
    """Return the expressions of the template that concern states, numbers of a kind or records."""
    if record is None:
        return {
            "made": "state_type(value)",
            "load": "state",
            "store": "states[at] = new",
            "is_new": _IS_NEW.format("old", "new"),
            "distance": f"distance_of_{kind}(new, old)",
        }
    return {
        "made": f"State({made_of(record)})",
        "load": f"State({loaded(record, 'state')})",
        "store": "\n    ".join(["record = states[at]", *stored(record, "new")]),
        "is_new": " or ".join(
            _IS_NEW.format(f"old[{at}]", f"new[{at}]") for at in range(len(record.fields))
        ),
        # 0.0 lets `max` have two arguments in any case.
        "distance": "max(0.0, "
        + ", ".join(
            f"distance_of_{field.kind}(new[{at}], old[{at}])"
            for at, field in enumerate(record.fields)
        )
        + ")",
    }


def body_of(methods: Methods, numbers: Numbers, change: Slot | None, *, threshold: float) -> Body:
    """Return the parts of the kernel of a program; `change` measures changes of states."""
    nb = import_module("numba")
    combiner, record = methods.combiner, methods.record
    is_sum = combiner == "sum"
    degree = ", degree" * methods.has_degrees
    later = f"Later({{}}{degree})"
    has_score = "signal_score" in methods.functions
    collect = _LATER.format(signals="True" if is_sum else "score > threshold")
    of_states = _of_record(record, numbers.state)
    helpers = _HELPERS.format(
        first="integers[0] + int64(vertex.external), " * (not is_sum) + f"None, None{degree}",
        vertex=later.format("old"),
        score=f"signal_score(self, Scored(new{degree}, old))"
        if has_score
        else "float64(is_new(new, old))",
        nothing=bits(silence_of(combiner, numbers.signal)),
        contributes=bool(methods.slots),
        measures=change is not None,
        measure="pass"
        if change is None
        else contributions((change,))[0].format("distance(new, load(states[at]))"),
        source=later.format("state"),
        # The engine calls the kernel for every vertex, but only vertices with edges may signal.
        has_no_edges="degree == 0" if is_sum and methods.has_degrees else "False",
        **of_states,
    )
    given = "given" if len(methods.slots) == 1 else "given[{}]"
    calls = [call.format(given.format(at)) for at, call in enumerate(contributions(methods.slots))]
    names = {
        "First": methods.shown.first,
        "Later": methods.shown.later,
        "Scored": methods.shown.scored,
        "state_type": getattr(nb, numbers.state) if record is None else record.padded(),
        "State": None if record is None else record.type,
        "threshold": threshold,
        "inf": math.inf,
        "uint64": nb.uint64,
        "fitting": internal(fitting, inline=True),
    }
    words = 1 if record is None else record.padded().itemsize // 8
    has_padding = record is not None
    return Body(
        begin=_BEGIN,
        later=collect,
        contribute="\n".join(calls),
        helpers=helpers,
        names=names,
        words=words,
        has_padding=has_padding,
        all_act=True,
    )
