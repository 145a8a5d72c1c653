"""Programs in plain Python on vertices in stores."""

from __future__ import annotations

import math
import os
import pickle
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import brimful as bf
from plain_programs import Distances, Ranks, made, url


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
        assert "was stopped after 10,000 supersteps, the default limit; set max" in caplog.text
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


def test_a_trace_has_the_ids_of_the_graph() -> None:
    """Those from 2**63 on raised an OverflowError."""
    table = pa.table({"source": pa.array([2**64 - 1], "uint64"), "target": [2]})
    with bf.Graph.from_arrow(table) as graph:
        trace = bf.run(graph, Stamped(), trace=[2**64 - 1]).trace
    assert trace is not None and trace.schema.names[:3] == ["superstep", "vertex", "call"]
    assert set(trace["vertex"].to_pylist()) == {2**64 - 1}


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
        with pytest.raises(bf.ProgramError, match="collect_score returned NaN, not a number"):
            bf.run(graph, lost(), mode=mode)
        named = type("Named", (Scored,), {"signal_score": lambda self, vertex: "high"})
        with pytest.raises(bf.ProgramError, match="signal_score returned 'high', not a number"):
            bf.run(graph, named(), mode=mode)
        with pytest.raises(bf.UsageError, match="signal_threshold must be a number, not 'a'"):
            bf.run(graph, type("Wrong", (Scored,), {"signal_threshold": "a"})(), mode=mode)
        with pytest.raises(bf.UsageError, match="collect_threshold is an integer that no float"):
            bf.run(graph, type("Wrong", (Scored,), {"collect_threshold": 10**400})(), mode=mode)


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
