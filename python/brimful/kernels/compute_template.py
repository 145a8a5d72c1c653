"""Kernels of Pregel programs: the calls of the functions that `computing` makes of `compute`."""

from __future__ import annotations

from importlib import import_module
from textwrap import indent

from brimful.kernels.fields import (
    HALTED,
    NUMBA,
    PRESENT,
    fitting,
    kinds_of,
    loaded,
    made_of,
    stored,
    types_of,
)
from brimful.kernels.frame import Body, contributions
from brimful.kernels.inference import ComputeTypes
from brimful.kernels.machine_code import internal
from brimful.kernels.numbers import Numbers, bits, silence_of

_BEGIN = """
done = begun(self, integers, vertices, at)
progress.acted = True
{check}
progress.due += ended(
    vertices, states, signals, signal_words, now_floats, now_integers, at, done
)
"""

_LATER = """
silent_at(signals, signal_words, at)
if computes(states, sums, bits, at):
    done = gone_on(self, superstep, vertices, states, sums, bits, at)
    progress.acted = True
    {check}
    goes_on = ended(vertices, states, signals, signal_words, now_floats, now_integers, at, done)
    progress.due += goes_on
    progress.score += goes_on
"""

#: A message that cannot be computed fails the call, unless the vertex has no edges.
_CHECK = """if done[1] < 0 and silent != at:
    progress.error = NO_SIGNAL
    raise ValueError
"""

#: `ended` returns 1 if another superstep follows because of the vertex, else 0.
_HELPERS = """
def begun(self, integers, vertices, at):
    vertex = vertices[at]
    degree = int64(vertex.degree)
    shown = First({first})
    return first(self, shown, made_value(initial_value(self, shown)), False, no_message())


def computes(states, sums, bits, at):
    return has_message(sums, bits, at) or {is_awake}


def gone_on(self, superstep, vertices, states, sums, bits, at):
    degree = int64(vertices[at].degree)
    shown = Later({later})
    there = has_message(sums, bits, at)
    return later(self, shown, load_value(states[at]), there, load_message(sums[at]))


def ended(vertices, states, signals, signal_words, floats, integers, at, done):
    degree = int64(vertices[at].degree)
    {store}
    contribute(floats, integers, done)
    sends = done[1] > 0 and {has_edges}
    if sends:
        send(signals, at, done[2])
    else:
        silent_at(signals, signal_words, at)
    return 1.0 if {goes_on} else 0.0


def made_value(value):
    return {made_value}


def load_value(state):
    return {load_value}
"""

#: Messages that are numbers.
_NUMBERS = """
def no_message():
    return signal_type(0)


def has_message(sums, bits, at):
    return bits[at] != {nothing}


def load_message(message):
    return turned(message)


def silent_at(signals, signal_words, at):
    signals[at] = silence


def send(signals, at, message):
    signals[at] = turned(signal_type(message))
"""

#: Messages with fields, which the kernel combines. A message that is not there has only zeros.
_MESSAGES = """
def no_message():
    return Message({none})


def has_message(sums, bits, at):
    return sums[at]["{present}"]


def load_message(message):
    return Message({load})


def silent_at(signals, signal_words, at):
    for word in range({words} * at, {words} * at + {words}):
        signal_words[word] = 0


def send(signals, at, message):
    store_message(signals, at, message)


def store_message(messages, at, message):
    record = messages[at]
    {store}
    record["{present}"] = True


def made_message(value):
    return Message({made})


def pass_along(self, sent, at, weight, sums, target):
    if sent[at]["{present}"]:
        message = load_message(sent[at])
        combined(self, sums, target, made_message(({along},)))


def meet(self, sums, at, sent):
    if sent[at]["{present}"]:
        combined(self, sums, at, load_message(sent[at]))


def combined(self, sums, at, message):
    if sums[at]["{present}"]:
        message = made_message(combine(self, load_message(sums[at]), message))
    store_message(sums, at, message)
"""

#: The field of a message after an edge. Of equal numbers the first remains, as in Python.
_ALONG = {
    "unchanged": "message[{0}]",
    "plus": "message[{0}] + weight",
    "times": "message[{0}] * weight",
    "least": "(weight if weight < message[{0}] else message[{0}])",
    "greatest": "(weight if weight > message[{0}] else message[{0}])",
}


def body_of(typed: ComputeTypes, numbers: Numbers) -> Body:
    """Return the parts of the kernel of a program."""
    nb = import_module("numba")
    computing = typed.computing
    value, message, sent = computing.value, computing.message, computing.sent
    plain = [("state", "f8" if numbers.state == "float64" else "i8")]
    of_state = plain if value is None else kinds_of(value)
    if not computing.always_halts:
        of_state.append((HALTED, "b1"))
    kind, message_kind = types_of(of_state, sent)
    signal_words = 0 if message_kind is None else message_kind.itemsize // 8
    check = _CHECK if computing.message_may_fail else ""
    begin = _BEGIN.format(check=check)
    later = _LATER.format(check=indent(check, "    ").strip())
    # A contribution follows the flag that tells whether there is one.
    contribute = "\n".join(
        f"if given[{4 + 2 * at}]:\n    {call.format(f'given[{5 + 2 * at}]')}"
        for at, call in enumerate(contributions(typed.slots))
    )
    names = {
        "First": typed.first,
        "Later": typed.later,
        "state_type": kind,
        "value_type": getattr(nb, numbers.state, None),
        "Value": None if value is None else value.type,
        "Message": None if message is None else message.type,
        "fitting": internal(fitting, inline=True),
    }
    if message_kind is not None:
        names["signal_type"] = message_kind
    words = kind.itemsize // 8
    helpers = _vertex_functions(typed) + _message_functions(typed, numbers, signal_words)
    return Body(
        begin=begin,
        later=later,
        contribute=contribute,
        helpers=helpers,
        names=names,
        words=words,
        has_padding=words > 1,
        all_act=False,
        signal_words=signal_words,
    )


def _vertex_functions(typed: ComputeTypes) -> str:
    """Return the functions that handle a vertex."""
    computing, value = typed.computing, typed.computing.value
    shown = ["integers[0] + int64(vertex.external)"] * (not computing.is_full)
    shown += ["degree"] * typed.has_degrees
    store = ["record = states[at]"]
    store += ['record["state"] = done[0]'] if value is None else stored(value, "done[0]")
    if not computing.always_halts:
        store.append(f'record["{HALTED}"] = done[3]')
    return _HELPERS.format(
        first=", ".join(shown),
        is_awake="False" if computing.always_halts else f'not states[at]["{HALTED}"]',
        later="superstep + 1" + ", degree" * typed.has_degrees,
        store="\n    ".join(store),
        has_edges="degree > 0" if computing.is_full and typed.has_degrees else "True",
        # With a master the engine adds senders, because it knows whether they have edges.
        goes_on="not done[3]" if computing.has_steps else "sends or not done[3]",
        made_value="value_type(value)" if value is None else f"Value({made_of(value)})",
        load_value='state["state"]' if value is None else f"Value({loaded(value, 'state')})",
    )


def _message_functions(typed: ComputeTypes, numbers: Numbers, signal_words: int) -> str:
    """Return the functions that read and send messages."""
    computing = typed.computing
    message, sent = computing.message, computing.sent
    if message is None or sent is None:
        nothing = bits(silence_of(computing.combiner, numbers.signal))
        return _NUMBERS.format(nothing=nothing)
    return _MESSAGES.format(
        none=", ".join(f"{NUMBA[field.kind]}(0)" for field in message.fields),
        present=PRESENT,
        words=signal_words,
        load=loaded(sent, "message"),
        store="\n    ".join(stored(sent, "message")),
        made=made_of(message),
        along=", ".join(_ALONG[change].format(at) for at, change in enumerate(computing.changes)),
    )
