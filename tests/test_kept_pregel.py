"""Programs of Pregel on vertices that stay in a store."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import brimful as bf
from kept_vertices import Before, Hops, graph_at, url

__all__ = ["url"]  # The fixture.


class Lengths(bf.Pregel):
    """Length of the shortest path from a vertex."""

    def __init__(self, source: Any = 0) -> None:
        self.source = source

    def initial_value(self, vertex: bf.Vertex) -> float | None:
        return 0.0 if vertex.id == self.source else None

    def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
        found = min(messages, default=vertex.value)
        is_shorter = vertex.value is None or found < vertex.value if found is not None else False
        if is_shorter or (vertex.superstep == 0 and found is not None):
            vertex.value = found
            for target, weight in vertex.edges:
                vertex.send(target, found + weight)
        vertex.vote_to_halt()


class Calls(bf.Pregel):
    """Counts the calls of `compute` for every vertex since the store was made."""

    def initial_value(self, vertex: bf.Vertex) -> Any:
        return {"before": vertex.state, "degree": vertex.degree, "calls": 0}

    def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
        vertex.value = {**vertex.value, "calls": vertex.value["calls"] + 1}
        vertex.vote_to_halt()


class Reversing(bf.Pregel):
    """Replaces every edge by one in the other direction, and removes vertex 2."""

    mutates = True

    def initial_value(self, vertex: bf.Vertex) -> Any:
        return None

    def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
        if vertex.superstep == 0:
            for target, value in vertex.edges:
                vertex.request_remove_edges(vertex.id, target)
                vertex.request_add_edge(target, vertex.id, value + 1)
            if vertex.id == 0:
                vertex.request_add_vertex(77, "new", [(0, 2.5)])
        elif vertex.superstep == 1 and vertex.id == 0:
            vertex.request_remove_vertex(2)
        else:
            vertex.vote_to_halt()


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_values_are_those_of_a_run_that_keeps_nothing(url: str, mode: Any, tmp_path: Path) -> None:
    graph = graph_at(tmp_path)
    plain = dict(bf.run(graph, Lengths(), mode=mode))
    kept = bf.run(graph, Lengths(), mode=mode, store=url, keep=True)
    assert dict(kept) == plain == {0: 0.0, 1: 1.0, 2: 2.0, 3: 3.0, 4: 1.0}
    assert kept.top(1) == [(3, 3.0)] and kept.to_arrow().column("state").to_pylist()[2] == 2.0
    with bf.VertexStore.open(url) as store:
        assert dict(store) == plain and len(store) == 5 and store[3] == 3.0
        # A program of another kind sees the values, and the other way round.
        assert dict(store.run(Before(), mode=mode))[3] == ["was", 3.0]
        assert store.run(Calls(), mode=mode)[3] == {"before": ["was", 3.0], "degree": 0, "calls": 1}
        assert dict(store.run(Hops(), mode=mode)) == {0: 0, 1: 1, 2: 2, 3: 3, 4: 1}
    # Nothing is loaded: the edges are those of the store.
    with bf.VertexStore.open(url) as store:
        store.remove_edges(0, 4)
    again = bf.run(graph, Lengths(), mode=mode, store=url, keep=True)
    assert dict(again) == {0: 0.0, 1: 1.0, 2: 2.0, 3: 3.0, 4: None}


def test_a_second_run_computes_where_something_changed(url: str, tmp_path: Path) -> None:
    with bf.VertexStore.create(url, graph_at(tmp_path)) as store:
        assert [state["calls"] for state in store.run(Calls()).values()] == [1] * 5
        assert store.run(Calls(), start="kept")[1]["calls"] == 1
        store.add_edge(0, 3)
        store[1] = {"calls": 10}
        store.add_vertex(9, {"calls": 20}, [(0, 1.0)])
        store.remove_edges(2, 3)
    with bf.VertexStore.open(url) as store:
        states = store.run(Calls(), start="kept")
        assert {vertex: state["calls"] for vertex, state in states.items()} == {
            0: 2,
            1: 11,
            2: 2,
            3: 2,
            4: 1,
            9: 21,
        }
        # Edges that were added are seen.
        assert store.run(Calls())[0]["degree"] == 3
        assert dict(store.run(Lengths(9))) == {0: 1.0, 1: 2.0, 2: 3.0, 3: 2.0, 4: 2.0, 9: 0.0}
        store.add_edge(9, 2, 0.5)
        assert store.run(Lengths(9), start="kept")[2] == 0.5


def test_a_run_that_a_limit_ended_goes_on(url: str, tmp_path: Path) -> None:
    class Counts(Calls):
        def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
            vertex.value = {"calls": vertex.value["calls"] + 1}
            if vertex.value["calls"] == 3:
                vertex.vote_to_halt()

    with bf.VertexStore.create(url, graph_at(tmp_path)) as store:
        assert store.run(Counts(), max_supersteps=1)[4] == {"calls": 1}
        assert store.run(Counts(), start="kept")[4] == {"calls": 3}
        assert store.stats["supersteps"] == 2
        # Who has messages to send has not halted.
        store.run(Lengths(), max_supersteps=1)
        assert store.run(Lengths(), start="kept")[3] == 3.0


def test_changes_of_the_graph_stay(url: str, tmp_path: Path) -> None:
    graph = graph_at(tmp_path)
    plain = bf.run(graph, Reversing())
    kept = bf.run(graph, Reversing(), store=url, keep=True)
    assert dict(kept) == dict(plain) == {0: None, 1: None, 3: None, 4: None, 77: "new"}
    with bf.VertexStore.open(url) as store:
        assert list(store) == [0, 1, 3, 4, 77]
        found = {vertex: store.edges(vertex) for vertex in store}
        assert found == {0: [], 1: [(0, 2.0)], 3: [(2, 2.0)], 4: [(0, 2.0)], 77: [(0, 2.5)]}
        with pytest.raises(bf.NotFoundError):
            store[2]
        assert store.run(Lengths(77))[0] == 2.5
    with bf.VertexStore.open(url) as store:
        assert store[77] == 0.0


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_messages_to_all_edges_leave_before_the_edges_change(
    url: str, mode: Any, tmp_path: Path
) -> None:
    class Leaves(bf.Pregel):
        def initial_value(self, vertex: bf.Vertex) -> int:
            return 0

        def compute(self, vertex: bf.PregelVertex, messages: list[int]) -> None:
            vertex.value += sum(messages)
            if vertex.superstep == 0 and vertex.id == 0:
                vertex.send_to_all(1)
                vertex.remove_edges(4)
                vertex.add_edge(3)
                vertex.send_to_all(10)
            vertex.vote_to_halt()

    graph = graph_at(tmp_path)
    kept = bf.run(graph, Leaves(), mode=mode, store=url, keep=True)
    plain = dict(bf.run(graph, Leaves(), mode=mode))
    assert dict(kept) == plain == {0: 0, 1: 11, 2: 0, 3: 10, 4: 1}
    with bf.VertexStore.open(url) as store:
        assert store.edges(0) == [(1, 1.0), (3, 1.0)]


def test_own_edges_are_kept_and_must_have_numbers(url: str, tmp_path: Path) -> None:
    class Sets(bf.Pregel):
        def __init__(self, value: Any) -> None:
            self.value = value

        def initial_value(self, vertex: bf.Vertex) -> Any:
            return None

        def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
            if vertex.superstep == 0:
                vertex.set_edge_value(2, self.value)
                vertex.add_edge(500, 1)
            elif vertex.superstep == 1:
                vertex.value = vertex.edges
                vertex.vote_to_halt()

    graph = graph_at(tmp_path)
    kept = bf.run(graph, Sets(7), store=url, keep=True, serializer="pickle")
    plain = bf.run(graph, Sets(7))
    assert dict(kept) == dict(plain) and kept[1] == [(2, 7), (500, 1)]
    with bf.VertexStore.open(url, serializer="pickle") as store:
        assert store.edges(1) == [(2, 7.0), (500, 1.0)]
        assert store.run(Sets(8))[1] == [(2, 8), (500, 1), (500, 1)]
        for wrong in ("7", None, float("nan"), 2**53 + 1):
            with pytest.raises(bf.ProgramError, match="edge") as raised:
                store.run(Sets(wrong))
            assert raised.value.vertex == 1
        # The values of a run that failed are those before the error.
        assert store.run(Calls())[1]["before"] is None
        assert store.edges(1)[0] == (2, 8.0)


def test_vertices_outlive_an_error_of_a_program(url: str, tmp_path: Path) -> None:
    class Fails(Calls):
        """Fails at one vertex, first or later."""

        def __init__(self, at: int, *, first: bool) -> None:
            self.at, self.first = at, first

        def initial_value(self, vertex: bf.Vertex) -> Any:
            if self.first and vertex.id == self.at:
                raise LookupError("no value")
            return super().initial_value(vertex)

        def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
            if vertex.id == self.at:
                raise LookupError("no value")
            super().compute(vertex, messages)

    with bf.VertexStore.create(url, graph_at(tmp_path)) as store:
        store.run(Lengths())
        # Lists, as states of a run are.
        for vertex in range(5):
            store[vertex] = [vertex, False, [], None]
        for at in range(5):
            with pytest.raises(bf.ProgramError, match="no value") as raised:
                store.run(Fails(at, first=True))
            assert raised.value.vertex == at
            with pytest.raises(bf.UsageError, match="did not finish"):
                store[at]
            before = {vertex: state["before"] for vertex, state in store.run(Calls()).items()}
            # Vertices that got a value have that, others the one before.
            for vertex, one in before.items():
                is_new = isinstance(one, dict)
                assert (one if not is_new else one["before"]) is not None, (vertex, one)
            for vertex in range(5):
                store[vertex] = [vertex, False, [], None]
        with pytest.raises(bf.ProgramError, match="no value"):
            store.run(Fails(3, first=False))
        found = store.run(Before())
        assert found[3] == ["was", {"before": [3, False, [], None], "degree": 0, "calls": 0}]
        assert store.edges(0) == [(1, 1.0), (4, 1.0)]


def test_ids_of_vertices_that_a_failed_run_created_are_known(url: str, tmp_path: Path) -> None:
    class Names(Reversing):
        def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
            if vertex.superstep == 2 and vertex.id == 0:
                raise LookupError("late")
            super().compute(vertex, messages)

    graph = graph_at(tmp_path)
    with pytest.raises(bf.ProgramError, match="late"):
        bf.run(graph, Names(), store=url, keep=True)
    assert 77 in bf.run(graph, Before(), store=url, keep=True)


@pytest.mark.parametrize("moment", ["initial_value", "compute"])
def test_a_kill_in_a_run_is_noticed(moment: str, url: str, tmp_path: Path) -> None:
    graph = graph_at(tmp_path)
    script = """
        import os, signal, sys
        import brimful as bf
        from test_kept_pregel import Lengths
        graph, url, moment = sys.argv[1:]
        class Dies(Lengths):
            def initial_value(self, vertex):
                if moment == "initial_value" and vertex.id == 3:
                    os.kill(os.getpid(), signal.SIGKILL)
                return super().initial_value(vertex)
            def compute(self, vertex, messages):
                if vertex.superstep == 1:
                    os.kill(os.getpid(), signal.SIGKILL)
                vertex.add_edge(vertex.id, 3.0)
                super().compute(vertex, messages)
        with bf.VertexStore.create(url, graph) as store:
            store.add_edge(4, 3, 0.5)
            for vertex in store:
                store[vertex] = [vertex, True, [], None]
            store.run(Dies())
    """
    _killed(script, graph, url, moment)
    with pytest.raises(bf.UsageError, match=r"did not finish"):
        dict(bf.VertexStore.open(url))
    if not url.startswith("file"):
        with pytest.raises(bf.UsageError, match=r"was killed, or the disk .* remove the folder"):
            bf.run(graph, Lengths(), store=url, keep=True)
        return
    states = bf.run(graph, Before(), store=url, keep=True)
    values: list[Any] = [state[1] for state in states.values()]
    if moment == "compute":
        assert values == [0.0, None, None, None, None]
    else:
        assert all(
            value in (None, 0.0, [vertex, True, [], None]) for vertex, value in enumerate(values)
        )
    found = bf.run(graph, Lengths(), store=url, keep=True)
    assert dict(found) == {0: 0.0, 1: 1.0, 2: 2.0, 3: 1.5, 4: 1.0}
    with bf.VertexStore.open(url) as store:
        assert (3, 0.5) in store.edges(4)


def _killed(script: str, *arguments: str) -> None:
    """Run a script that kills its process."""
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    killed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        cwd=Path(__file__).parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr


def test_ids_may_be_strings(url: str, tmp_path: Path) -> None:
    class Names(bf.Pregel):
        mutates = True

        def initial_value(self, vertex: bf.Vertex) -> Any:
            return "old"

        def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
            if vertex.superstep == 0 and vertex.id == "a":
                vertex.request_add_vertex("aa", "new", [("nowhere", 2)])
            vertex.vote_to_halt()

    graph = graph_at(tmp_path, {"source": ["a", "b"], "target": ["b", "c"]})
    bf.run(graph, Names(), store=url, keep=True)
    with bf.VertexStore.open(url) as store:
        assert list(store.items()) == [("a", "old"), ("aa", "new"), ("b", "old"), ("c", "old")]
        assert store.edges("aa") == [("nowhere", 2.0)]
        store["b"] = "changed"
        assert store.run(Names(), start="kept")["b"] == "changed"


def test_options_of_the_store_are_refused_with_the_remedy(url: str, tmp_path: Path) -> None:
    with bf.VertexStore.create(url, graph_at(tmp_path)) as store:
        for name in ("compile", "keep", "on", "serializer", "store", "trace"):
            with pytest.raises(bf.UsageError, match=f"in their store .*; leave {name}= out"):
                store.run(Lengths(), **{name: "numba"})  # type: ignore[misc]


def test_a_cache_and_many_vertices(tmp_path: Path) -> None:
    count = 5000
    ring = {"source": list(range(count)), "target": [(one + 1) % count for one in range(count)]}
    graph, place = graph_at(tmp_path, ring), f"file:{tmp_path}/vertices"

    class Sums(bf.Pregel):
        aggregators: ClassVar = {"all": bf.Aggregator("sum", 0)}

        def initial_value(self, vertex: bf.Vertex) -> int:
            return (vertex.state or 0) + 1

        def combine(self, left: int, right: int) -> int:
            return left + right

        def compute(self, vertex: bf.PregelVertex, messages: list[int]) -> None:
            vertex.value = vertex.value + sum(messages)
            vertex.aggregate("all", vertex.value)
            if vertex.superstep < 3:
                vertex.send_to_all(vertex.value)
            vertex.vote_to_halt()

    plain = bf.run(graph, Sums())
    kept = bf.run(graph, Sums(), store=place, keep=True, cache="lru:100", budget="80M")
    assert dict(kept) == dict(plain)
    assert kept.stats["aggregates"] == plain.stats["aggregates"] == {"all": 8 * count}
    with bf.VertexStore.open(place, budget="80M") as store:
        assert store.run(Sums(), cache="score:50")[17] == 9 * 8
        assert pa.table(store).num_rows == count
