"""Compiled programs that combine by least, greatest or bits may read the degrees of vertices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import brimful as bf
from nightly import with_nightly

#: Ways to run a program by a kernel.
WAYS: list[dict[str, Any]] = [
    {"on": "shards"},
    {"on": "shards", "budget": "16M", "threads": 2},
    {"on": "shards", "mode": "async"},
    {"store": "bytes", "compile": "numba"},
]


class Longest(bf.Program):
    """The largest sum of degrees on a path of three arcs, cut off by the state itself."""

    delivery, combiner = "combined", "max"

    def initial_state(self, vertex: Any) -> Any:
        return vertex.degree * 1000 + vertex.id % 7

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return source.state - 100 * source.degree

    def collect(self, vertex: Any, signals: Any) -> Any:
        return np.maximum(vertex.state, signals[0] - vertex.degree)


class Cheapest(bf.Program):
    """Lengths of paths on which an arc costs the degree of its source."""

    delivery, combiner = "combined", "min"
    state_type = np.dtype([("length", "f8"), ("degree", "u4")])

    def initial_state(self, vertex: Any) -> Any:
        return np.where(vertex.id == 7, 0.0, np.inf)[()], vertex.degree

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return source.state.length + source.degree

    def collect(self, vertex: Any, signals: Any) -> Any:
        return np.minimum(vertex.state.length, signals[0]), vertex.degree


class Costs(bf.Pregel):
    """Lengths of such paths; vertices without arcs get minus their id."""

    def initial_value(self, vertex: Any) -> float:
        return -vertex.id * 1.0 if vertex.degree == 0 else np.inf

    def combine(self, left: float, right: float) -> float:
        return min(left, right)

    def compute(self, vertex: Any, messages: Any) -> None:
        least = min([vertex.value, *messages])
        if vertex.superstep == 0 and vertex.id == 7:
            least = 0.0
        if vertex.superstep == 0 or least < vertex.value:
            vertex.value = least
            vertex.send_to_all(least + vertex.degree)
        vertex.vote_to_halt()


class Divides(Costs):
    """As `Costs`, with a message that vertices without arcs cannot compute."""

    def compute(self, vertex: Any, messages: Any) -> None:
        least = min([vertex.value, *messages])
        if vertex.superstep == 0 or least < vertex.value:
            vertex.value = least
            for target, _ in vertex.edges:
                vertex.send(target, vertex.id / vertex.degree if vertex.superstep == 0 else least)
        vertex.vote_to_halt()


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> bf.Graph:
    """Return 2,000 vertices with ids that are not internal ids; some have no arcs at all."""
    random = np.random.default_rng(11)
    source, target = random.integers(-9, 1900, 6000), random.integers(-9, 1990, 6000)
    path = str(tmp_path_factory.mktemp("degrees") / "g.brimful")
    table = pa.table({"source": source, "target": target})
    return bf.Graph.from_arrow(table, path=path, self_loops="drop")


@pytest.mark.parametrize("program", with_nightly([Cheapest(), Divides()], [Longest(), Costs()]))
def test_degrees_are_those_of_calls(graph: bf.Graph, program: Any) -> None:
    expected = dict(bf.run(graph, program))
    assert len({str(state) for state in expected.values()}) > 3
    ways = list(WAYS)
    if isinstance(program, bf.Program):
        ways += [{"on": "shards", "compile": "numpy"}, {"store": "bytes", "compile": "numpy"}]
    for way in ways:
        assert dict(bf.run(graph, program, **way)) == expected, way


def test_isolated_vertices_have_degree_zero(tmp_path: Path) -> None:
    table = pa.table({"source": [3, 9], "target": [4, 9]})
    with bf.Graph.from_arrow(table, path=str(tmp_path / "g.brimful"), self_loops="drop") as graph:
        for program in (Longest(), Cheapest(), Costs()):
            expected = dict(bf.run(graph, program))
            assert len(expected) == 3
            for way in WAYS:
                assert dict(bf.run(graph, program, **way)) == expected


def test_degrees_are_refused_with_weights() -> None:
    table = pa.table({"source": [3], "target": [4], "weight": [2.0]})
    expected = r"(signal|initial_state|compute|initial_value) \(.*, line \d+\) reads vertex.degree"
    with bf.Graph.from_arrow(table, weight="weight") as graph:
        for program in (Longest(), Costs()):
            with pytest.raises(bf.UsageError, match=expected):
                bf.run(graph, program, on="shards", weighted=True)
