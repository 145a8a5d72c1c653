"""Aggregates of programs: the same values interpreted, compiled and in arrays."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest

import brimful as bf


class Levels(bf.Program):
    """Distance from vertex 7; the state also keeps the aggregates of the previous superstep."""

    delivery, combiner = "combined", "min"
    state_type = np.dtype([("level", "i8"), ("last", "i8"), ("reached", "i8"), ("any", "?")])
    aggregators: ClassVar[Any] = {
        "changed": bf.Aggregator("sum", 0),
        "reached": bf.Aggregator("sum", 1, persistent=True),
        "mass": bf.Aggregator("sum", 0.5),
        "least": bf.Aggregator("min", 10.0),
        "greatest": bf.Aggregator("max", -5, persistent=True),
        "any": bf.Aggregator("or", False),
        "all": bf.Aggregator("and", True, persistent=True),
    }

    def initial_state(self, vertex: Any) -> Any:
        return np.where(vertex.id == 7, 0, 1000)[()], -1, -1, False

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return np.where(source.state.level < 1000, source.state.level + 1, 2**62)[()]

    def collect(self, vertex: Any, signals: Any) -> Any:
        old, seen = vertex.state, self.aggregated
        is_less = signals[0] < old.level
        return (
            np.minimum(old.level, signals[0]),
            np.where(is_less, seen.changed, old.last)[()],
            np.where(is_less, seen.reached, old.reached)[()],
            np.where(is_less, seen.any, old.any)[()],
        )

    def aggregate(self, vertex: Any, new: Any) -> Any:
        level = new.level
        return 1, 1, level * 0.25, level * 2.5, level, level > 2, level < 4


class Gain(bf.Program):
    """PageRank; one aggregator, of floats."""

    delivery, combiner, signal_threshold = "latest", "sum", 1e-9
    aggregators: ClassVar[Any] = {"gain": bf.Aggregator("sum", 0.0, persistent=True)}

    def initial_state(self, vertex: Any) -> Any:
        return 0.15

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return source.state / source.degree

    def collect(self, vertex: Any, signals: Any) -> Any:
        return 0.15 + 0.85 * signals[0]

    def aggregate(self, vertex: Any, new: Any) -> Any:
        return new - vertex.state


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> bf.Graph:
    """Return 600 vertices, of which 7 reaches most."""
    random = np.random.default_rng(8)
    source, target = random.integers(0, 500, 1200), random.integers(0, 500, 1200)
    path = tmp_path_factory.mktemp("aggregates") / "g.brimful"
    table = pa.table({"source": source, "target": target})
    return bf.Graph.from_arrow(table, path=str(path))


WAYS: list[dict[str, Any]] = [
    {"on": "store"},
    {"on": "store", "store": "bytes"},
    {"on": "shards"},
    {"on": "shards", "compile": "never"},
]


COMPILED_ON_STORES: list[dict[str, Any]] = [
    {"store": "bytes", "compile": "numba"},
    {"store": "memory", "compile": "numpy"},
]


@pytest.mark.parametrize(
    "way",
    WAYS + COMPILED_ON_STORES,
    ids=["memory", "bytes", "compiled", "arrays", "compiled on bytes", "arrays on memory"],
)
def test_aggregates_are_those_of_a_breadth_first_search(
    graph: bf.Graph, way: dict[str, Any]
) -> None:
    edges = graph.to_arrow().to_pydict()
    of_networkx: nx.DiGraph = nx.DiGraph(zip(edges["source"], edges["target"], strict=True))
    levels = nx.single_source_shortest_path_length(of_networkx, 7)
    sizes = Counter(levels.values())
    found = bf.run(graph, Levels(), **way)
    assert {v: s.level for v, s in found.items() if s.level < 1000} == levels
    for vertex, state in found.items():
        level = levels.get(vertex, 0)
        if level > 0:
            # The superstep before changed the vertices of the level before.
            last = 0 if level == 1 else sizes[level - 1]
            reached = sum(sizes[before] for before in range(level))
            assert (state.last, state.reached, state.any) == (last, reached, level - 1 > 2)
    deepest = max(sizes)
    ended = bf.run(graph, Levels(), max_supersteps=deepest, **way).stats["aggregates"]
    assert ended == {
        "changed": sizes[deepest],
        "reached": len(levels),
        "mass": 0.5 + sizes[deepest] * deepest * 0.25,
        "least": min(10.0, deepest * 2.5),
        "greatest": deepest,
        "any": deepest > 2,
        "all": deepest < 4,
    }
    assert {type(value) for value in ended.values()} == {int, float, bool}
    # No vertex changes in the last superstep.
    assert found.stats["aggregates"] == ended | {
        "changed": 0,
        "mass": 0.5,
        "least": 10.0,
        "any": False,
    }


def test_sums_of_floats_agree(graph: bf.Graph) -> None:
    found = [bf.run(graph, Gain(), max_supersteps=9, **way) for way in WAYS]
    assert found[2].to_arrow().equals(found[3].to_arrow())
    assert found[2].stats["aggregates"] == found[3].stats["aggregates"]
    gain = found[2].stats["aggregates"]["gain"]
    grown = sum(found[2].values()) - 0.15 * len(found[2])
    assert gain == pytest.approx(grown, rel=1e-9)
    for one in found[:2]:
        assert one.stats["aggregates"]["gain"] == pytest.approx(gain, rel=1e-9)
        assert list(one.values()) == pytest.approx(list(found[2].values()), rel=1e-9)


def test_aggregates_are_the_same_bits_at_any_number_of_threads_and_budget(divided: Path) -> None:
    with bf.Graph.open(divided) as graph:
        one = bf.run(graph, Gain(), on="shards", threads=1, budget="2G", max_supersteps=6)
        for threads in (2, 3):
            other = bf.run(
                graph, Gain(), on="shards", threads=threads, budget="64M", max_supersteps=6
            )
            assert one.stats["aggregates"] == other.stats["aggregates"]
            assert one.to_arrow().equals(other.to_arrow())


@pytest.mark.parametrize("way", WAYS, ids=["memory", "bytes", "compiled", "arrays"])
def test_a_run_with_aggregates_resumes(
    graph: bf.Graph, tmp_path: Path, way: dict[str, Any]
) -> None:
    saved: dict[str, Any] = {
        "checkpoint_every": 1,
        "checkpoint_dir": str(tmp_path / "saved"),
        **way,
    }
    for program in (Levels(), Gain()):
        bf.run(graph, program, max_supersteps=3, **saved)
        resumed = bf.run(graph, program, max_supersteps=6, resume=True, **saved)
        assert resumed.stats["resumed_from"] == 3
        whole = bf.run(graph, program, max_supersteps=6, **way)
        # The vertices of a store may come in another order after a checkpoint.
        expected = whole.stats["aggregates"]
        assert resumed.stats["aggregates"] == pytest.approx(expected, rel=1e-12)
        assert resumed.to_arrow().equals(whole.to_arrow())


def test_a_sum_beyond_64_bits_is_an_error(tmp_path: Path) -> None:
    class Large(bf.Program):
        delivery, combiner = "combined", "max"
        aggregators: ClassVar[Any] = {"total": bf.Aggregator("sum", 0)}

        def initial_state(self, vertex: Any) -> Any:
            return vertex.id

        def signal(self, source: Any, target: Any, weight: float) -> Any:
            return source.state

        def collect(self, vertex: Any, signals: Any) -> Any:
            return np.maximum(vertex.state, signals[0])

        def aggregate(self, vertex: Any, new: Any) -> Any:
            return new + 2**62

    table = pa.table({"source": [9, 9, 9, 9], "target": [1, 2, 3, 4]})
    with bf.Graph.from_arrow(table, path=str(tmp_path / "g.brimful")) as small:
        for way in WAYS[2:]:
            with pytest.raises(bf.ProgramError, match="the aggregator total has a sum beyond"):
                bf.run(small, Large(), max_supersteps=1, **way)

    class Rises(Large):
        def collect(self, vertex: Any, signals: Any) -> Any:
            return vertex.state + 1

    back = pa.table({"source": [1, 2, 3], "target": [2, 3, 1]})
    says = r"^the aggregator total has a sum beyond"
    with bf.Graph.from_arrow(back) as circle, pytest.raises(bf.ProgramError, match=says):
        bf.run(circle, Rises(), max_supersteps=3, compile="numpy")
    table = pa.table({"source": [9], "target": [1]})
    with bf.Graph.from_arrow(table, path=str(tmp_path / "h.brimful")) as small:
        for way in WAYS[2:]:
            found = bf.run(small, Large(), max_supersteps=1, **way)
            assert found.stats["aggregates"] == {"total": 2**62 + 9}


def test_aggregators_without_a_place_are_refused(graph: bf.Graph) -> None:
    class Reads(Gain):
        def signal(self, source: Any, target: Any, weight: float) -> Any:
            return source.state * self.aggregated.gain

    class Own(Gain):
        aggregators: ClassVar[Any] = {"gain": bf.Aggregator(lambda left, right: left * right, 1.0)}

    class Words(Gain):
        aggregators: ClassVar[Any] = {"gain": bf.Aggregator("or", 0)}

    class Many(Gain):
        aggregators: ClassVar[Any] = {f"a{at}": bf.Aggregator("sum", 0) for at in range(8)}

    class Wrong(Gain):
        aggregators: ClassVar[Any] = {"gain": "sum"}

    class Floats(Gain):
        aggregators: ClassVar[Any] = {"gain": bf.Aggregator("sum", 0)}

    class Missing(bf.Program):
        delivery, combiner, aggregators = "combined", "min", Gain.aggregators

        def initial_state(self, vertex: Any) -> Any:
            return 1

        def signal(self, source: Any, target: Any, weight: float) -> Any:
            return 0

        def collect(self, vertex: Any, signals: Any) -> Any:
            return min(vertex.state, signals[0])

    class Nameless(Gain):
        aggregators: ClassVar[Any] = {}

    def refused(program: bf.Program, match: str, **options: Any) -> None:
        with pytest.raises(bf.UsageError, match=match):
            bf.run(graph, program, **options)

    for on in ("shards", "store"):
        refused(Reads(), "signal reads self.aggregated, but only collect and aggregate", on=on)
        refused(Wrong(), "aggregators must be a dict of names and Aggregators", on=on)
        refused(Levels(), "aggregators need supersteps", on=on, mode="async")
        refused(Missing(), "Missing has aggregators, but no aggregate", on=on)
        refused(Nameless(), r"Nameless has aggregate\(\), but no aggregators", on=on)
    refused(Own(), "the aggregator gain has a user-defined function", on="shards")
    refused(Words(), 'the aggregator gain is "or" and begins with 0', on="shards")
    refused(Many(), "at most 7 aggregators, but this one has 8", on="shards")
    refused(Floats(), "returns float64 for gain, which has the type int64", on="shards")
    refused(Floats(), "float64 for gain, which has the type int64", on="shards", compile="never")
    assert math.isfinite(bf.run(graph, Own(), max_supersteps=2).stats["aggregates"]["gain"])
