"""States and signals of programs as objects: which ones stores keep, and their memory."""

from __future__ import annotations

import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import brimful as bf
from plain_programs import Constant, made, url


class Place:
    """A state of a class of one's own."""

    def __init__(self, name: str) -> None:
        self.name = name


@pytest.mark.parametrize("state", [(1, "a"), {1: "a"}, {1, 2}, b"a", 2**70, True, Place("a")])
def test_states_in_memory_are_the_objects_themselves(state: Any) -> None:
    with made() as graph:
        assert bf.run(graph, Constant(state), budget="64M")[3] is state


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({1, 2}, "json cannot write set"),
        ({"a": {1, 2}}, "json cannot write set"),
        ([(1, "\ud800")], r"JSON does not keep \(1, '"),
        ({1: 2}, "JSON does not keep {1: 2}"),
    ],
)
def test_states_that_a_store_cannot_keep_are_refused(state: Any, says: str) -> None:
    with made() as graph:
        with pytest.raises(bf.ProgramError, match=f"at vertex 3: .*{says}") as raised:
            bf.run(graph, Constant(state), store="bytes", budget="64M")
        assert raised.value.vertex == 3
        kept = bf.run(graph, Constant(state), store="bytes", serializer="pickle", budget="64M")
        assert kept[3] == state


class Texts:
    """A serializer that forgets to encode."""

    def dumps(self, value: object) -> str:
        return str(value)

    def loads(self, data: bytes) -> object:
        return json.loads(data)


class Buffers(Texts):
    """A serializer that returns a buffer."""

    def dumps(self, value: object) -> Any:
        return bytearray(json.dumps(value), "ascii")


@pytest.mark.parametrize(
    ("serializer", "says"),
    [
        (
            Texts(),
            r"the serializer Texts cannot write NoneType \(its dumps returned str, not bytes\)",
        ),
        ("bytes", r"the serializer bytes cannot write NoneType \(it writes only bytes\); return"),
    ],
)
def test_what_is_not_bytes_names_the_serializer(serializer: Any, says: str) -> None:
    given: dict[str, Any] = {"store": "bytes", "budget": "64M"}
    with made() as graph:
        with pytest.raises(bf.ProgramError, match=says):
            bf.run(graph, Constant(5), serializer=serializer, **given)
        assert bf.run(graph, Constant(5), serializer=Buffers(), **given)[3] == 5


@pytest.mark.parametrize(
    "state", [(), (1, "a"), (-(2**70),), [(None, (2.5,))], {"a": frozenset([1, (2,)])}]
)
@pytest.mark.parametrize("store", ["bytes", "file", "kv"])
def test_stores_keep_tuples_and_frozensets(store: str, state: Any, tmp_path: Path) -> None:
    place = store if store == "bytes" else f"{store}:{tmp_path / 's'}"
    with made() as graph:
        kept = bf.run(graph, Constant(state), store=place, budget="64M")[3]
        assert (kept, repr(kept)) == (state, repr(state))


class Paths(bf.Program):
    """Shortest paths as lists, by signals that are lists too."""

    def __init__(self, delivery: Any, *, in_place: str | None = None) -> None:
        self.delivery = delivery
        self.in_place = in_place

    def initial_state(self, vertex: bf.Vertex) -> list[int]:
        return [vertex.id] if vertex.id == 3 else []

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> Any:
        return source.state or None

    def combine(self, left: list[int], right: list[int]) -> list[int]:
        return min(left, right, key=lambda path: (len(path), path))

    def collect(self, vertex: bf.Vertex, signals: list[list[int]]) -> list[int]:
        best: list[int] = min(signals, key=lambda path: (len(path), path))
        if vertex.state and len(vertex.state) <= len(best) + 1:
            return vertex.state
        if self.in_place == "signal":
            best.append(vertex.id)
            return best
        if self.in_place == "state":
            vertex.state[:] = [*best, vertex.id]
            return vertex.state
        return [*best, vertex.id]


@pytest.mark.parametrize("store", ["memory", "bytes", "file"])
@pytest.mark.parametrize("delivery", ["each", "combined", "latest"])
def test_objects_give_the_same_answer_in_every_store(
    tmp_path: Path, store: str, delivery: str
) -> None:
    with made() as graph:
        wanted = bf.bfs(graph, 3)
        found = bf.run(graph, Paths(delivery), store=url(store, tmp_path), budget="64M")
        arcs = {(arc["source"], arc["target"]) for arc in graph.to_arrow().to_pylist()}
        for vertex, path in found.items():
            assert len(path) == (0 if wanted[vertex] is None else wanted[vertex] + 1)
            assert set(itertools.pairwise(path)) <= arcs
            assert path[-1:] == [vertex] * bool(path)


class Latest(bf.Program):
    """The latest signals of all edges, which are not JSON."""

    delivery = "latest"

    def initial_state(self, vertex: bf.Vertex) -> Any:
        return frozenset([(vertex.id,)])

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> Any:
        return source.id, source.state

    def collect(self, vertex: bf.Vertex, signals: list[Any]) -> Any:
        assert len(signals) == len({source for source, _ in signals})
        return vertex.state.union(*(state for _, state in signals))


def test_latest_signals_in_memory_are_the_objects_themselves(tmp_path: Path) -> None:
    given: dict[str, Any] = {"checkpoint_every": 1, "checkpoint_dir": tmp_path / "checkpoints"}
    with made() as graph:
        whole = dict(bf.run(graph, Latest()))
        assert whole == dict(bf.run(graph, Latest(), store="bytes", serializer="pickle"))
        bf.run(graph, Latest(), serializer="pickle", max_supersteps=2, **given)
        rest = bf.run(graph, Latest(), serializer="pickle", resume=True, **given)
        assert (rest.stats["resumed_from"], dict(rest)) == (2, whole)


@pytest.mark.parametrize("place", ["state", "signal"])
def test_a_change_in_place_is_refused(place: str) -> None:
    with made() as graph:
        name = "the state" if place == "state" else "a signal"
        with pytest.raises(bf.ProgramError, match=f"collect changed {name} in place"):
            bf.run(graph, Paths("each", in_place=place), budget="64M")


@pytest.mark.parametrize("store", ["memory", "bytes"])
def test_a_change_of_a_signal_in_combine_is_refused(store: str) -> None:
    class Extending(bf.Program):
        delivery = "combined"

        def initial_state(self, vertex: bf.Vertex) -> list[Any]:
            return [vertex.id]

        def signal(self, source: bf.Vertex, target: Any, weight: float) -> list[Any]:
            return source.state

        def combine(self, left: list[Any], right: list[Any]) -> list[Any]:
            # In memory the left one is the state of its source.
            left.extend(right)
            return left

        def collect(self, vertex: bf.Vertex, signals: list[Any]) -> list[Any]:
            return sorted({*vertex.state, *signals[0]})

    with (
        made() as graph,
        pytest.raises(bf.ProgramError, match="combine changed a signal in place; return a new"),
    ):
        bf.run(graph, Extending(), store=store)


class Hoards(Constant):
    """States of some kilobytes."""

    def initial_state(self, vertex: bf.Vertex) -> Any:
        return list(range(vertex.id, vertex.id + 400))


def test_objects_are_a_part_of_the_budget() -> None:
    pairs = pa.table({"source": range(30_000), "target": range(1, 30_001)})
    says = r'do not fit.*store="bytes" or "file:PATH"'
    with bf.Graph.from_arrow(pairs) as graph, pytest.raises(bf.BudgetError, match=says):
        bf.run(graph, Hoards(None), budget="256M")


class Pictures(Constant):
    """Few states of 200 kilobytes."""

    made = 0

    def initial_state(self, vertex: bf.Vertex) -> Any:
        type(self).made += 1
        return b"1" * 200_000


def test_few_large_objects_are_a_part_of_the_budget_too() -> None:
    pairs = pa.table({"source": range(1000), "target": range(1, 1001)})
    # The C library keeps the memory of freed blocks below one that is in use.
    blocks = [b"1" * 100_000 for _ in range(5000)]
    del blocks[:-1]
    with bf.Graph.from_arrow(pairs) as graph, pytest.raises(bf.BudgetError, match="do not fit"):
        bf.run(graph, Pictures(None), budget="20M")
    assert Pictures.made < 300, "memory is measured before objects fill it"


class Neighbors(bf.Program):
    """Sets of the sources of signals, which only pickle writes."""

    def initial_state(self, vertex: bf.Vertex) -> set[Any]:
        return set()

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> Any:
        return (source.id,) if not source.state else None

    def collect(self, vertex: bf.Vertex, signals: list[tuple[Any]]) -> set[Any]:
        return vertex.state | {source for (source,) in signals}


def test_numbers_of_numpy_are_kept_in_every_store(tmp_path: Path) -> None:
    class Counts(bf.Program):
        def initial_state(self, vertex: Any) -> Any:
            return np.where(vertex.id > 2, vertex.id * 3, 0)[()]

        def signal(self, source: Any, target: Any, weight: float) -> Any:
            return np.int64(1)

        def collect(self, vertex: Any, signals: Any) -> Any:
            return vertex.state + sum(signals)

    with bf.Graph.from_arrow(pa.table({"source": [1, 2, 3], "target": [2, 3, 4]})) as graph:
        for store in ("memory", "bytes", f"file:{tmp_path / 'vertices'}"):
            found = bf.run(graph, Counts(), store=store, compile="never", max_supersteps=1)
            assert dict(found) == {1: 0, 2: 1, 3: 10, 4: 13}


def test_serializers_of_ones_own() -> None:
    class Written:
        dumps = staticmethod(lambda value: repr(value).encode())
        loads = staticmethod(lambda data: eval(data, {"set": set}))

    with made() as graph:
        arcs = graph.to_arrow().to_pylist()
        wanted = {(arc["source"], arc["target"]) for arc in arcs}
        for serializer in ("pickle", Written()):
            found = bf.run(
                graph, Neighbors(), serializer=serializer, max_supersteps=1, budget="64M"
            )
            assert {(source, v) for v, sources in found.items() for source in sources} == wanted
        with pytest.raises(bf.UsageError, match="there is no serializer 'xml'"):
            bf.run(graph, Neighbors(), serializer="xml")


def test_a_serializer_with_the_name_of_a_built_in_one_is_used() -> None:
    class Json:
        @staticmethod
        def dumps(state: Any) -> bytes:
            return b"own" + pickle.dumps(state)

        @staticmethod
        def loads(written: bytes) -> Any:
            assert written.startswith(b"own")
            read.append(written)
            return pickle.loads(written[3:])

    Json.__name__ = "json"
    read: list[bytes] = []
    with made() as graph:
        assert bf.run(graph, Constant([1]), store="bytes", serializer=Json)[3] == [1]
    assert read
