"""States that stores keep as packed objects or as JSON: equal ones of the same types return."""

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brimful as bf


def is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(st.characters(codec=None)),
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(st.text(), parts, max_size=4),
    max_leaves=20,
)


#: Objects with a packed form.
PLAIN_OR_TUPLES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(),
    lambda parts: (
        st.lists(parts, max_size=3).map(tuple)
        | st.lists(parts, max_size=3)
        | st.lists(parts.filter(is_hashable), max_size=3).map(frozenset)
    ),
    max_leaves=12,
)


class Constant(bf.Program):
    """A state for each vertex, which stays."""

    def __init__(self, states: list[Any]) -> None:
        self.states = states

    def initial_state(self, vertex: bf.Vertex) -> Any:
        return self.states[vertex.id]

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> Any:
        return [source.state]

    def collect(self, vertex: bf.Vertex, signals: list[Any]) -> Any:
        return [vertex.state, signals[0]]


def after(states: list[Any]) -> list[Any]:
    """The states after a superstep on a ring, in `bytes`."""
    count = len(states)
    ring = pa.table({"source": range(count), "target": [(n + 1) % count for n in range(count)]})
    with bf.Graph.from_arrow(ring) as graph:
        ended = bf.run(graph, Constant(states), store="bytes", max_supersteps=1)
        return [ended[vertex] for vertex in range(count)]


@given(st.lists(PLAIN, min_size=1, max_size=8))
def test_states_are_those_that_json_returns(states: list[Any]) -> None:
    wanted = [[state, [states[at - 1]]] for at, state in enumerate(states)]
    # `repr` tells types, the order of keys, signs of zeros and NaN.
    assert repr(after(states)) == repr(json.loads(json.dumps(wanted)))


@given(st.lists(PLAIN_OR_TUPLES, min_size=1, max_size=8))
def test_tuples_and_frozensets_return(states: list[Any]) -> None:
    for (state, [signal]), at in zip(after(states), range(len(states)), strict=True):
        assert (state, signal) == (states[at], states[at - 1])
        assert type(state) is type(states[at])


def test_objects_without_a_packed_form_are_left_to_json() -> None:
    deep: list[Any] = []
    for _ in range(40):
        deep = [deep]
    states = [deep, [2**64], ["\ud800"], {"a": {"b": [math.inf, -0.0, True, None, "é"]}}]
    assert repr([state for state, _ in after(states)]) == repr(states)


def test_a_state_that_contains_itself_is_refused() -> None:
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(bf.ProgramError, match=r"at vertex 0: .*[Cc]ircular"):
        after([ring])
