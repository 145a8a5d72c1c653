"""Programs in plain Python on vertices in stores."""

from __future__ import annotations

import itertools
import math
import os
import pickle
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import brimful as bf


class Distances(bf.Program):
    """Lengths of shortest paths from a vertex."""

    delivery = "combined"

    def __init__(self, source: int | str) -> None:
        self.source = source

    def initial_state(self, vertex: bf.Vertex) -> Any:
        return 0.0 if vertex.id == self.source else None

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> Any:
        return None if source.state is None else source.state + weight

    def combine(self, left: float, right: float) -> float:
        return min(left, right)

    def collect(self, vertex: bf.Vertex, signals: list[float]) -> float:
        return min([*signals, *([] if vertex.state is None else [vertex.state])])


class Ranks(bf.Program):
    """PageRank, unnormalized; a vertex remembers the latest signal of each neighbor."""

    delivery = "latest"

    def initial_state(self, vertex: bf.Vertex) -> float:
        return 1.0 - 0.85

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> float:
        return source.state / source.degree

    def collect(self, vertex: bf.Vertex, signals: list[float]) -> float:
        return (1.0 - 0.85) + 0.85 * sum(signals)


def made(ids: Any = int, **given: Any) -> bf.Graph:
    """Return a graph of 300 different weighted arcs among 60 vertices."""
    drawn = random.Random(3)
    pairs = sorted({(drawn.randrange(60), drawn.randrange(60)) for _ in range(300)})
    weights = [float(drawn.randrange(1, 9)) for _ in pairs]
    sources, targets = ([ids(id) for id in column] for column in zip(*pairs, strict=True))
    table = pa.table({"source": sources, "target": targets, "weight": weights})
    return bf.Graph.from_arrow(table, weight="weight", **given)


def url(store: str, folder: Path) -> str:
    return f"file:{folder / 'vertices'}" if store == "file" else store


@pytest.mark.parametrize(
    ("mode", "scheduler"), [("sync", None), ("async", "latency"), ("async", "throughput")]
)
@pytest.mark.parametrize("store", ["memory", "bytes", "file"])
def test_shortest_paths_as_the_built_in_ones(
    tmp_path: Path, store: str, mode: str, scheduler: str | None
) -> None:
    for ids, source in ((int, 3), (str, "3")):
        with made(ids) as graph:
            wanted = bf.sssp(graph, source, weighted=True)
            found = bf.run(
                graph,
                Distances(source),
                weighted=True,
                mode=mode,
                scheduler=scheduler,
                store=f"file:{tmp_path / ids.__name__}" if store == "file" else store,
                cache="lru:10",
                threads=2,
                budget="64M",
            )
            pairs = zip(
                *(wanted.to_arrow()[name].to_pylist() for name in ("vertex", "distance")),
                strict=True,
            )
            assert list(found.items()) == list(pairs)
            assert len(found) == len(wanted)
            assert found[source] == 0.0
            assert found.stats["cache"]["misses"] > 0
            with pytest.raises(bf.NotFoundError):
                found[3 if ids is str else "3"]


def test_ranks_as_the_built_in_ones() -> None:
    with made(vertices=70) as graph:
        wanted = bf.pagerank(graph, variant="unnormalized", tolerance=0, max_supersteps=8)
        found = bf.run(graph, Ranks(), max_supersteps=8, store="bytes", lists="disk", budget="64M")
        assert found.stats["supersteps"] == 8
        for vertex, rank in found.items():
            assert math.isclose(rank, wanted[vertex], rel_tol=1e-9)


class Failing(Distances):
    """Raises at a vertex, in one of its methods."""

    def __init__(self, at: str) -> None:
        super().__init__(3)
        self.at = at

    def initial_state(self, vertex: bf.Vertex) -> Any:
        if self.at == "initial_state" and vertex.id == 3:
            raise ValueError("no state for it")
        return super().initial_state(vertex)

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> Any:
        if self.at == "signal" and source.id == 3:
            raise ValueError("nothing to say")
        return (
            {1, 2}
            if self.at == "set" and source.id == 3
            else super().signal(source, target, weight)
        )

    def collect(self, vertex: bf.Vertex, signals: list[float]) -> float:
        if self.at == "collect":
            raise ValueError("not collected")
        return super().collect(vertex, signals)


@pytest.mark.parametrize("store", ["memory", "bytes", "file"])
@pytest.mark.parametrize("at", ["initial_state", "signal", "collect"])
def test_what_a_method_raises_names_its_vertex(tmp_path: Path, store: str, at: str) -> None:
    with made() as graph, pytest.raises(bf.ProgramError) as raised:
        bf.run(graph, Failing(at), store=url(store, tmp_path), threads=2, budget="64M")
    error = raised.value
    assert error.exit_code == 7
    assert isinstance(error.__cause__, ValueError)
    assert str(error.__cause__) in str(error)
    assert error.vertex == 3 if at != "collect" else isinstance(error.vertex, int)
    assert f"at vertex {error.vertex}: " in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


class Constant(bf.Program):
    """States of one value."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def initial_state(self, vertex: bf.Vertex) -> Any:
        return self.state if vertex.id == 3 else None

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> Any:
        return None

    def collect(self, vertex: bf.Vertex, signals: list[Any]) -> Any:
        return vertex.state


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


class Blinking(bf.Program):
    """Never ends."""

    def initial_state(self, vertex: bf.Vertex) -> int:
        return 0

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> int:
        return 1 - source.state

    def collect(self, vertex: bf.Vertex, signals: list[int]) -> int:
        if self.__dict__.get("raises") == vertex.state:
            raise ValueError("on")
        return signals[0]


def test_a_program_that_oscillates_ends(caplog: pytest.LogCaptureFixture) -> None:
    with bf.Graph.from_arrow(pa.table({"source": [1], "target": [1]})) as graph:
        states = bf.run(graph, Blinking())
        assert states.stats["supersteps"] == 10_000
        assert "did not end within 10,000 supersteps, the default limit; set max" in caplog.text
        caplog.clear()
        assert bf.run(graph, Blinking(), max_supersteps=12_001)[1] == 1
        assert not caplog.text


def test_a_program_that_oscillates_without_supersteps_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with bf.Graph.from_arrow(pa.table({"source": [1], "target": [1]})) as graph:
        states = bf.run(graph, Blinking(), mode="async")
        assert states.stats["reason"] == "reached the maximum number of supersteps"
        assert "had collected 10,000 times on average" in caplog.text


class Stamped(bf.Program):
    """States are the supersteps in which vertices signalled or collected."""

    delivery = "combined"
    combiner = "max"

    def initial_state(self, vertex: bf.Vertex) -> list[int | None]:
        return [vertex.superstep]

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> int | None:
        return source.superstep

    def collect(self, vertex: bf.Vertex, signals: list[int]) -> list[int | None]:
        return [*vertex.state, signals[0], vertex.superstep]


def test_a_vertex_knows_the_superstep() -> None:
    with bf.Graph.from_arrow(pa.table({"source": [1, 2], "target": [2, 3]})) as graph:
        assert dict(bf.run(graph, Stamped())) == {
            1: [None],
            2: [None, 0, 0],
            3: [None, 0, 0, 1, 1],
        }


@pytest.mark.parametrize("combiner", [None, "sum"])
def test_scores_count_with_and_without_a_named_combiner(combiner: Any) -> None:
    class Silent(bf.Program):
        delivery = "latest"

        def initial_state(self, vertex: bf.Vertex) -> int:
            return 0

        def signal(self, source: bf.Vertex, target: Any, weight: float) -> int:
            return 1

        def collect(self, vertex: bf.Vertex, signals: list[int]) -> int:
            return vertex.state + signals[0]

        def signal_score(self, vertex: bf.Vertex) -> float:
            return float(vertex.id != 1)

        def collect_score(self, vertex: bf.Vertex, signals: list[int]) -> float:
            return float(vertex.id != 3)

    Silent.combiner = combiner
    with bf.Graph.from_arrow(pa.table({"source": [1, 2, 2], "target": [2, 3, 4]})) as graph:
        assert dict(bf.run(graph, Silent(), max_supersteps=1)) == {1: 0, 2: 0, 3: 0, 4: 1}


def test_a_trace_has_every_call_for_a_vertex() -> None:
    with bf.Graph.from_arrow(pa.table({"source": [1, 2], "target": [2, 3]})) as graph:
        states = bf.run(graph, Stamped(), trace=[2])
        assert dict(states) == dict(bf.run(graph, Stamped()))
        assert states.trace is not None
        assert states.trace.drop_columns(["vertex", "score"]).to_pylist() == [
            _call(None, "initial_state", None, None, "[None]", None),
            _call(0, "signal", None, "[None]", None, ["3: 0"]),
            _call(0, "collect", ["0"], "[None]", "[None, 0, 0]", None),
            _call(1, "signal", None, "[None, 0, 0]", None, ["3: 1"]),
        ]
        assert bf.run(graph, Stamped()).trace is None
        with pytest.raises(bf.NotFoundError, match="no vertex 9"):
            bf.run(graph, Stamped(), trace=[9])
        for wrong in (2, "2"):
            with pytest.raises(bf.UsageError, match="trace must be a sequence of ids, not 2"):
                bf.run(graph, Stamped(), trace=wrong)  # type: ignore[call-overload]
        with pytest.raises(bf.UsageError, match="trace= is for interpreted programs"):
            bf.run(graph, Stamped(), trace=[2], compile="numba")


def _call(
    superstep: int | None,
    call: str,
    received: list[str] | None,
    before: str | None,
    after: str | None,
    sent: list[str] | None,
) -> dict[str, Any]:
    return {
        "superstep": superstep,
        "call": call,
        "received": received,
        "before": before,
        "after": after,
        "sent": sent,
    }


def test_an_exception_tells_superstep_and_state() -> None:
    with bf.Graph.from_arrow(pa.table({"source": [1], "target": [1]})) as graph:
        program = Blinking()
        program.raises = 1  # type: ignore[attr-defined]
        with pytest.raises(bf.ProgramError, match="on; superstep 1, state 1") as raised:
            bf.run(graph, program)
        assert (raised.value.superstep, raised.value.state) == (1, 1)


class Scored(Ranks):
    """Signals only changes above a threshold."""

    signal_threshold = 1e-3

    def signal_score(self, vertex: bf.Vertex) -> float:
        return abs(vertex.state - (vertex.signalled or 0.0))


@pytest.mark.parametrize("store", ["memory", "bytes", "file"])
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_scores_decide_who_signals(tmp_path: Path, store: str, mode: Any) -> None:
    with made() as graph:
        wanted = bf.pagerank(graph, variant="unnormalized", tolerance=0, max_supersteps=100)
        few = bf.run(graph, Scored(), store=url(store, tmp_path), mode=mode, budget="64M")
        for vertex, rank in few.items():
            assert math.isclose(rank, float(wanted[vertex] or 0), abs_tol=3e-2)
        if mode == "sync":
            every = bf.run(graph, Ranks(), store="memory", max_supersteps=60)
            assert few.stats["signals"] < every.stats["signals"] / 2
        deaf = type("Deaf", (Scored,), {"collect_score": lambda self, vertex, signals: -1.0})
        assert set(bf.run(graph, deaf(), mode=mode).values()) == {1.0 - 0.85}
        lost = type("Lost", (Scored,), {"collect_score": lambda self, vertex, signals: math.nan})
        with pytest.raises(bf.ProgramError, match="a score must be a number"):
            bf.run(graph, lost(), mode=mode)
        with pytest.raises(bf.UsageError, match="signal_threshold must be a number, not 'a'"):
            bf.run(graph, type("Wrong", (Scored,), {"signal_threshold": "a"})(), mode=mode)


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


def test_an_interrupt_ends_a_run_of_slow_methods() -> None:
    calls = []

    class Slow(bf.Program):
        def initial_state(self, vertex: Any) -> Any:
            return 0

        def signal(self, source: Any, target: Any, weight: float) -> Any:
            return 1

        def collect(self, vertex: Any, signals: Any) -> Any:
            calls.append(vertex.id)
            time.sleep(0.1)
            return vertex.state + 1

    path = pa.table({"source": range(20), "target": range(1, 21)})
    with bf.Graph.from_arrow(path) as graph:
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            bf.run(graph, Slow(), compile="never", max_supersteps=3)
        timer.join()
    assert 0 < len(calls) < 15


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


def test_what_makes_no_sense_is_refused() -> None:
    with made() as graph:
        for options, says in (
            ({"store": "nowhere"}, "use memory, bytes, file:PATH, kv:PATH"),
            ({"mode": "later"}, "mode must be sync or async"),
            ({"mode": "async", "max_supersteps": 3}, "no supersteps to limit"),
            ({"cache": "mru:3"}, "write lru:N or score:N"),
            ({"scheduler": "latency"}, 'add mode="async"'),
            ({"mode": "async", "scheduler": "fifo"}, "scheduler must be latency or throughput"),
        ):
            with pytest.raises(bf.UsageError, match=says):
                bf.run(graph, Ranks(), **options)  # type: ignore[arg-type]
        with pytest.raises(bf.BudgetError, match="smallest that works"):
            bf.run(graph, Ranks(), budget=1)


class Favorites(bf.Program):
    """Signals of all vertices, some of which deserve the cache."""

    def __init__(self, favorites: set[int]) -> None:
        self.favorites = favorites

    def initial_state(self, vertex: bf.Vertex) -> int:
        return 0

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> int:
        return 1

    def collect(self, vertex: bf.Vertex, signals: list[int]) -> Any:
        return vertex.state + sum(signals)

    def cache_score(self, vertex: bf.Vertex) -> float:
        if vertex.id == 999:
            raise ValueError("no score for 999")
        return float(vertex.id in self.favorites)


def test_a_program_scores_the_vertices_of_a_cache() -> None:
    # All vertices of a ring act in every superstep.
    ring = pa.table({"source": list(range(200)), "target": [*range(1, 200), 0]})
    options: Any = {"store": "bytes", "cache": "score:20", "max_supersteps": 20}
    with bf.Graph.from_arrow(ring) as graph:
        some = bf.run(graph, Favorites(set(range(15))), **options)
        none = bf.run(graph, Favorites(set()), **options)
        assert dict(some) == dict(none) == dict.fromkeys(range(200), 20)
        # Each superstep lends a favorite twice.
        assert some.stats["cache"]["hits"] > 19 * 15 * 2 > none.stats["cache"]["hits"]
    with bf.Graph.from_arrow(pa.table({"source": [1], "target": [999]})) as graph:
        with pytest.raises(bf.ProgramError, match=r"cache score.*no score for 999") as raised:
            bf.run(graph, Favorites(set()), **options)
        assert raised.value.vertex == 999
