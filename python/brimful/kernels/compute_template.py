"""Kernels of Pregel programs: the calls of the functions that `computing` makes of `compute`."""

from __future__ import annotations

from importlib import import_module
from textwrap import indent

import numpy as np

from brimful.kernels.computing import Computing
from brimful.kernels.frame import Body, contributions
from brimful.kernels.inference import ComputeTypes
from brimful.kernels.numbers import Numbers, bits, silence_of

_BEGIN = """
done = begun(self, integers, vertices, at)
acted = True
{check}
due += ended(vertices, states, signals, now_floats, now_integers, at, done)
"""

_LATER = """
signals[at] = silence
if computes(states, bits, at):
    done = gone_on(self, superstep, vertices, states, sums, bits, at)
    acted = True
    {check}
    goes_on = ended(vertices, states, signals, now_floats, now_integers, at, done)
    due += goes_on
    total += goes_on
"""

#: A message that cannot be computed fails the call, unless the vertex has no edges.
_CHECK = """if done[1] < 0 and silent != at:
    error = NO_SIGNAL
    raise ValueError
"""

#: `ended` returns 1 if another superstep follows because of the vertex, else 0.
_HELPERS = """
def begun(self, integers, vertices, at):
    vertex = vertices[at]
    degree = int64(vertex.degree)
    shown = First({first})
    return first(self, shown, value_type(initial_value(self, shown)), False, signal_type(0))


def computes(states, bits, at):
    return bits[at] != {nothing} or {is_awake}


def gone_on(self, superstep, vertices, states, sums, bits, at):
    degree = int64(vertices[at].degree)
    shown = Later({later})
    return later(self, shown, {value}, bits[at] != {nothing}, turned(sums[at]))


def ended(vertices, states, signals, floats, integers, at, done):
    degree = int64(vertices[at].degree)
    {store}
    contribute(floats, integers, done)
    sends = done[1] > 0 and {has_edges}
    signals[at] = turned(signal_type(done[2])) if sends else silence
    return 1.0 if {goes_on} else 0.0
"""


def _state_type(numbers: Numbers, computing: Computing) -> np.dtype:
    """Return the type of a state: the value, and whether the vertex has halted if that varies."""
    value = "f8" if numbers.state == "float64" else "i8"
    if computing.always_halts:
        return np.dtype([("state", value)])
    return np.dtype([("state", value), ("halted", "b1")], align=True)


def body_of(typed: ComputeTypes, numbers: Numbers) -> Body:
    """Return the parts of the kernel of a program."""
    nb = import_module("numba")
    computing = typed.computing
    kind = _state_type(numbers, computing)
    check = _CHECK if computing.message_may_fail else ""
    begin = _BEGIN.format(check=check)
    later = _LATER.format(check=indent(check, "    ").strip())
    shown = ["integers[0] + int64(vertex.external)"] * (not typed.is_sum)
    shown += ["degree"] * typed.has_degrees
    store = ["record = states[at]", 'record["state"] = done[0]']
    if not computing.always_halts:
        store.append('record["halted"] = done[3]')
    helpers = _HELPERS.format(
        first=", ".join(shown),
        nothing=bits(silence_of(computing.combiner, numbers.signal)),
        is_awake="False" if computing.always_halts else 'not states[at]["halted"]',
        later="superstep + 1" + ", degree" * typed.has_degrees,
        value='states[at]["state"]',
        store="\n    ".join(store),
        has_edges="degree > 0" if typed.is_sum and typed.has_degrees else "True",
        # With a master the engine adds senders, as it knows whether they have edges.
        goes_on="not done[3]" if computing.has_steps else "sends or not done[3]",
    )
    # A contribution follows the flag that tells whether there is one.
    contribute = "\n".join(
        f"if given[{4 + 2 * at}]:\n    {call.format(f'given[{5 + 2 * at}]')}"
        for at, call in enumerate(contributions(typed.slots))
    )
    names = {
        "First": typed.first,
        "Later": typed.later,
        "state_type": kind,
        "value_type": getattr(nb, numbers.state),
    }
    words = kind.itemsize // 8
    return Body(begin, later, contribute, helpers, names, words, words > 1, all_act=False)
