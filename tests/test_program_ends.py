"""The end of programs: a tolerance, and states that are equal but differ in their bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import brimful as bf
from nightly import with_nightly

WAYS: list[dict[str, Any]] = [
    {},
    {"store": "bytes"},
    {"store": "file:PATH", "cache": "lru:20"},
    {"on": "shards", "compile": "numpy"},
    {"store": "bytes", "compile": "numpy"},
    {"on": "shards"},
    {"store": "bytes", "compile": "numba"},
]


class Ranks(bf.Program):
    """PageRank whose vertices signal until the run ends."""

    delivery, combiner = "latest", "sum"
    signal_threshold = -1.0

    def initial_state(self, vertex: Any) -> Any:
        return 0.15

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return source.state / source.degree

    def collect(self, vertex: Any, signals: list[Any]) -> Any:
        return 0.15 + 0.85 * signals[0]

    def signal_score(self, vertex: Any) -> Any:
        return 1.0 + 0.0 * vertex.state


class Both(Ranks):
    """The same with records, whose second field never changes."""

    state_type = np.dtype([("rank", "f8"), ("seen", "u4")])

    def initial_state(self, vertex: Any) -> Any:
        return 0.15, 3

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return source.state.rank / source.degree

    def collect(self, vertex: Any, signals: list[Any]) -> Any:
        return 0.15 + 0.85 * signals[0], vertex.state.seen

    def signal_score(self, vertex: Any) -> Any:
        return 1.0 + 0.0 * vertex.state.rank


class Shrinking(bf.Program):
    """Integers that approach the greatest one of 64 bits in steps of 8, 4, 2 and 1."""

    delivery, combiner = "combined", "max"
    signal_threshold = 0.5

    def initial_state(self, vertex: Any) -> Any:
        return (1 << 62) - 1 - 15

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return source.state

    def collect(self, vertex: Any, signals: list[Any]) -> Any:
        return vertex.state + ((1 << 62) - vertex.state) // 2


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[bf.Graph]:
    rng = np.random.default_rng(5)
    edges = pa.table({name: rng.integers(0, 60, 400) for name in ("source", "target")})
    with bf.Graph.from_arrow(
        edges, path=tmp_path_factory.mktemp("ends") / "g.brimful", threads=2
    ) as made:
        yield made


def prepared(way: dict[str, Any], folder: Path) -> dict[str, Any]:
    if {"on", "compile"} & way.keys() and way.get("compile") != "numpy":
        pytest.importorskip("numba")
    store = {"store": way["store"].replace("PATH", str(folder))} if "store" in way else {}
    return {**way, **store}


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("program", with_nightly([Both], [Ranks]))
def test_a_run_ends_when_no_state_changes_by_more_than_the_tolerance(
    graph: bf.Graph, tmp_path: Path, way: dict[str, Any], program: Any
) -> None:
    way = prepared(way, tmp_path)
    found = bf.run(graph, program(), tolerance=1e-3, max_supersteps=100, **way)
    assert found.stats["reason"] == "converged within the tolerance"
    last: int = found.stats["supersteps"]
    before = [
        bf.run(graph, program(), max_supersteps=last - back, **way).to_arrow()[1].to_numpy()
        for back in (0, 1, 2)
    ]
    assert found.to_arrow()[1].to_numpy() == pytest.approx(before[0], abs=1e-12)
    changes = [np.abs(after - one).max() for after, one in pairwise(before)]
    assert changes[0] <= 1e-3 < changes[1]
    stopped = bf.run(graph, program(), tolerance=0, max_supersteps=last + 3, **way)
    assert stopped.stats["supersteps"] == last + 3


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_changes_of_large_integers_are_exact(way: dict[str, Any], tmp_path: Path) -> None:
    way = prepared(way, tmp_path)
    with bf.Graph.from_arrow(pa.table({"source": [1, 2], "target": [2, 1]})) as pair:
        found = bf.run(pair, Shrinking(), tolerance=2, max_supersteps=9, **way)
    assert (found.stats["supersteps"], found[1]) == (3, (1 << 62) - 2)
    assert found.stats["reason"] == "converged within the tolerance"


class Once(bf.Program):
    """A state that becomes another one, and then stays."""

    signal_threshold = -1.0

    def __init__(self, first: Any, later: Any) -> None:
        self.first, self.later = first, later

    def initial_state(self, vertex: Any) -> Any:
        return self.first

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return 0

    def collect(self, vertex: Any, signals: list[Any]) -> Any:
        return self.later


@pytest.mark.parametrize("store", ["memory", "bytes"])
@pytest.mark.parametrize(
    ("first", "later", "supersteps"),
    [
        (math.inf, math.inf, 1),
        (math.nan, math.nan, 1),
        (1.0, 1.0009, 1),
        (1.0, math.nan, 2),
        (1.0, math.inf, 2),
        (False, True, 2),
        (np.uint8(1), np.uint8(0), 2),
        (1 << 70, 1 << 71, 2),
    ],
)
def test_changes_of_all_kinds_of_numbers(
    graph: bf.Graph, store: str, first: Any, later: Any, supersteps: int
) -> None:
    serializer: Any = "pickle" if store == "bytes" else "json"
    found = bf.run(graph, Once(first, later), tolerance=1e-3, store=store, serializer=serializer)
    assert found.stats["supersteps"] == supersteps
    assert found.stats["reason"] == "converged within the tolerance"


def test_a_tolerance_that_cannot_be_is_refused(graph: bf.Graph) -> None:
    class Halting(bf.Pregel):
        def initial_value(self, vertex: Any) -> Any:
            return 1

        def compute(self, vertex: Any, messages: list[Any]) -> None:
            vertex.vote_to_halt()

    with pytest.raises(bf.UsageError, match="tolerance must be at least 0, not -1"):
        bf.run(graph, Ranks(), tolerance=-1)
    for more in ({}, {"compile": "numpy"}):
        with pytest.raises(bf.UsageError, match="tolerance needs supersteps"):
            bf.run(graph, Ranks(), tolerance=0.1, mode="async", **more)
    with pytest.raises(bf.UsageError, match="a Pregel program ends when its vertices have halted"):
        bf.run(graph, Halting(), tolerance=0.1)
    for state in (None, "1", [1]):
        for first, later in ((state, 1), (1, state)):
            with pytest.raises(
                bf.ProgramError,
                match=f"needs states that are numbers, .* of type {type(state).__name__}",
            ) as raised:
                bf.run(graph, Once(first, later), tolerance=0.1)
            assert raised.value.vertex in graph


def test_a_resumed_run_has_the_same_tolerance(graph: bf.Graph, tmp_path: Path) -> None:
    whole = bf.run(graph, Ranks(), tolerance=1e-4)
    saved: dict[str, Any] = {"checkpoint_every": 1, "checkpoint_dir": tmp_path / "saved"}
    bf.run(graph, Ranks(), tolerance=1e-4, max_supersteps=3, **saved)
    with pytest.raises(bf.UsageError, match="tolerance"):
        bf.run(graph, Ranks(), tolerance=1e-3, resume=True, **saved)
    resumed = bf.run(graph, Ranks(), tolerance=1e-4, resume=True, **saved)
    assert resumed.stats["resumed_from"] == 3
    assert resumed.stats["supersteps"] == whole.stats["supersteps"]
    assert dict(resumed) == dict(whole)


def test_kept_vertices_converge(graph: bf.Graph, tmp_path: Path) -> None:
    class Plain(Ranks):
        combiner = None

        def collect(self, vertex: Any, signals: list[Any]) -> Any:
            return 0.15 + 0.85 * sum(signals)

    whole = bf.run(graph, Plain(), tolerance=1e-4)
    with bf.VertexStore.create(f"kv:{tmp_path / 'kept'}", graph) as kept:
        found = kept.run(Plain(), tolerance=1e-4)
        assert found.stats["reason"] == "converged within the tolerance"
        assert dict(found) == pytest.approx(dict(whole))


class Turning(bf.Program):
    """Equal states that are made anew in another order each time, and signalled if they differ."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def initial_state(self, vertex: Any) -> Any:
        return self.kind([(0, 1)])

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return 1

    def collect(self, vertex: Any, signals: list[Any]) -> Any:
        items = [("a", 1), ("b", 2), ("c", 3), ("d", 4)]
        return self.kind(items[:: -1 if (vertex.superstep or 0) % 2 else 1])


class Weak(dict[Any, Any]):
    """A dict of another type, which equals a dict."""


@pytest.mark.parametrize("store", ["memory", "bytes", "file:PATH", "kv:PATH"])
@pytest.mark.parametrize("kind", [dict, set, Weak])
def test_equal_states_are_no_change_whatever_their_bytes(
    graph: bf.Graph, tmp_path: Path, store: str, kind: Any
) -> None:
    url = store.replace("PATH", str(tmp_path))
    found = bf.run(graph, Turning(kind), store=url, serializer="pickle", max_supersteps=9)
    assert found.stats["reason"] == "converged: no vertex changed"
    assert found.stats["supersteps"] == 2


@pytest.mark.parametrize("store", ["memory", "bytes"])
def test_a_state_of_another_type_is_a_change(graph: bf.Graph, store: str) -> None:
    class Types(Turning):
        def collect(self, vertex: Any, signals: list[Any]) -> Any:
            return (dict, Weak)[(vertex.superstep or 0) % 2]({"a": 1})

    found = bf.run(graph, Types(dict), store=store, serializer="pickle", max_supersteps=9)
    assert found.stats["supersteps"] == 9


@pytest.mark.parametrize("nan", [math.nan, np.float32("nan")])
def test_nan_is_less_than_other_states(nan: Any) -> None:
    class Given(bf.Program):
        def initial_state(self, vertex: Any) -> Any:
            return {1: nan, 2: 2.0, 3: 9.0, 4: -math.inf, 5: nan, 6: None}[vertex.id]

        def signal(self, source: Any, target: Any, weight: float) -> Any:
            return None

        def collect(self, vertex: Any, signals: list[Any]) -> Any:
            return vertex.state

    links = pa.table({"source": [1, 2, 3], "target": [4, 5, 6]})
    with bf.Graph.from_arrow(links) as graph:
        states = bf.run(graph, Given())
    assert states.top(1) == [(3, 9.0)]
    assert [vertex for vertex, _ in states.top()] == [3, 2, 4, 1, 5]
    assert [vertex for vertex, _ in states.top(2, key=lambda state: -state)] == [4, 2]


def test_nan_is_less_than_other_numbers(tmp_path: Path) -> None:
    pytest.importorskip("numba", reason="SKIPPED: compiled programs need Numba")

    class Given(bf.Program):
        delivery, combiner = "combined", "max"

        def initial_state(self, vertex: Any) -> float:
            return math.nan if vertex.id == 1 else vertex.id * 1.0

        def signal(self, source: Any, target: Any, weight: float) -> float:
            return -math.inf

        def collect(self, vertex: Any, signals: list[float]) -> float:
            return float(vertex.state)

    with bf.Graph.from_arrow(pa.table({"source": [1, 2, 3], "target": [2, 3, 1]})) as graph:
        result = bf.run(graph, Given(), compile="numba", on="shards", max_supersteps=1)
        result.write(tmp_path / "numbers.parquet")
        shown = [result.top(3), bf.SavedResult(tmp_path / "numbers.parquet").top(3)]
    assert [[vertex for vertex, _ in rows] for rows in shown] == [[3, 2, 1]] * 2
