"""Vertices that stay in a store between runs."""

import contextlib
import math
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import brimful as bf
from cgroup import hard_limit
from command import USAGE, refuse, succeed


class Hops(bf.Program):
    """Hops from a vertex."""

    delivery, combiner = "combined", "min"

    def __init__(self, source: Any = 0) -> None:
        self.source = source

    def initial_state(self, vertex: bf.Vertex) -> int | None:
        return 0 if vertex.id == self.source else None

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> int | None:
        return None if source.state is None else source.state + int(weight)

    def collect(self, vertex: bf.Vertex, signals: list[int]) -> int:
        return min(signals if vertex.state is None else [vertex.state, *signals])


class InSum(bf.Program):
    """The sum of the latest signals of all edges that arrive."""

    delivery = "latest"

    def initial_state(self, vertex: bf.Vertex) -> list[float]:
        return [1.0]

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> float:
        return weight

    def collect(self, vertex: bf.Vertex, signals: list[float]) -> list[float]:
        return [sum(signals)]


class Before(bf.Program):
    """What every vertex had before."""

    def initial_state(self, vertex: bf.Vertex) -> Any:
        return ["was", vertex.state]

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> None:
        return None

    def collect(self, vertex: bf.Vertex, signals: list[Any]) -> Any:
        raise AssertionError("nobody signals")


EDGES = {"source": [0, 1, 2, 0], "target": [1, 2, 3, 4]}


def graph_at(path: Path, table: dict[str, list[Any]] = EDGES) -> str:
    place = str(path / "small.brimful")
    bf.Graph.from_arrow(pa.table(table), path=place).close()
    return place


@pytest.fixture(params=["file", "kv", "rocksdb", "berkeleydb"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param not in ("file", "kv"):
        pytest.importorskip("rocksdict" if request.param == "rocksdb" else "berkeleydb")
    return f"{request.param}:{tmp_path}/vertices"


def test_a_second_program_runs_without_loading(url: str, tmp_path: Path) -> None:
    graph = graph_at(tmp_path)
    first = bf.run(graph, Hops(), store=url, keep=True)
    assert dict(first) == {0: 0, 1: 1, 2: 2, 3: 3, 4: 1}
    with bf.VertexStore.open(url) as store:
        assert dict(store) == dict(first)
        assert len(store) == 5 and store[3] == 3 and 3 in store and 9 not in store
        second = store.run(Before())
        assert second[2] == ["was", 2]
        with pytest.raises(bf.UsageError, match="changed since this run"):
            first[2]
        assert store.stats["supersteps"] == second.stats["supersteps"]
        # The edges were not touched.
        assert dict(store.run(Hops(1))) == {0: None, 1: 0, 2: 1, 3: 2, 4: None}
    with bf.VertexStore.open(url) as store:
        assert store[3] == 2 and store.edges(0) == [(1, 1.0), (4, 1.0)]


def test_vertices_are_loaded_once(url: str, tmp_path: Path) -> None:
    graph = graph_at(tmp_path)
    bf.run(graph, Hops(), store=url, keep=True)
    with bf.VertexStore.open(url) as store:
        store.remove_edges(1, 2)
    # The edges are those of the store, not those of the graph.
    assert dict(bf.run(graph, Hops(), store=url, keep=True)) == {0: 0, 1: 1, 2: None, 3: None, 4: 1}


def test_a_run_goes_on_where_something_changed(url: str, tmp_path: Path) -> None:
    graph = graph_at(tmp_path)
    with bf.VertexStore.create(url, graph) as store:
        store.run(Hops())
        store.add_edges(4, [(3, 1.0)])
        store.add_vertex(7, None)
        store.add_edge(3, 7)
        states = store.run(Hops(), start="kept")
        assert dict(states) == {0: 0, 1: 1, 2: 2, 3: 2, 4: 1, 7: 3}
        # Of five vertices only those that changed, or received a change, signalled.
        assert states.stats["signals"] == 3
        assert store.run(Hops(), start="kept").stats["signals"] == 0
    with bf.VertexStore.open(url) as store:
        assert store[7] == 3 and list(store) == [0, 1, 2, 3, 4, 7]


def test_a_vertex_collects_again_when_an_edge_to_it_is_gone(url: str, tmp_path: Path) -> None:
    graph = graph_at(tmp_path, {"source": [0, 1, 2, 2], "target": [3, 3, 3, 3]})
    with bf.VertexStore.create(url, graph) as store:
        store.run(InSum())
        assert store[3] == [4.0]
        assert store.remove_edges(2, 3) == 2
        assert store.run(InSum(), start="kept")[3] == [2.0]
        store.remove_vertex(1)
        assert store.run(InSum(), start="kept")[3] == [1.0]
        assert list(store) == [0, 2, 3]
        with pytest.raises(bf.NotFoundError, match="the store has no vertex 1"):
            store[1]
        with pytest.raises(bf.NotFoundError):
            store.remove_vertex(1)
        with pytest.raises(bf.NotFoundError):
            store.edges(1)
        # It can come back.
        store.add_vertex(1, [0.0], [(3, 8.0)])
        assert store.run(InSum(), start="kept")[3] == [9.0]


def test_removals_are_known_after_the_store_was_closed(url: str, tmp_path: Path) -> None:
    graph = graph_at(tmp_path, {"source": [0, 1, 2, 0], "target": [3, 3, 3, 4]})
    with bf.VertexStore.create(url, graph) as store:
        store.run(InSum())
    with bf.VertexStore.open(url) as store:
        store.remove_edges(2, 3)
    with bf.VertexStore.open(url) as store:
        assert store[3] == [3.0]
    with bf.VertexStore.open(url) as store:
        store.remove_edges(0, 4)
        # A vertex that is gone has nothing to collect.
        store.remove_vertex(4)
        assert store.run(InSum(), start="kept")[3] == [2.0]
    with bf.VertexStore.open(url) as store:
        assert dict(store) == {0: [1.0], 1: [1.0], 2: [1.0], 3: [2.0]}


@pytest.mark.parametrize("delivery", ["combined", "each"])
def test_a_program_creates_ignores_or_refuses_vertices_that_do_not_exist(
    url: str, tmp_path: Path, delivery: str
) -> None:
    class Creating(Hops):
        def create(self, id: Any) -> int | None:
            if id == 66:
                raise LookupError("no such place")
            # None as a state of `Hops` would be no vertex.
            return 99 if id != 55 else None

    Creating.delivery = delivery
    if delivery == "each":
        Creating.combiner = None
    with bf.VertexStore.create(url, graph_at(tmp_path)) as store:
        before = dict(store.run(Creating()))
        for target in (44, 55):
            store.add_edge(0, target)
        states = store.run(Creating(), start="kept")
        assert dict(states) == before | {44: 1}
        assert states.stats["store_figures"]["signals_undelivered"] == 1
        store.remove_vertex(44)
        store.add_edge(0, 66)
        with pytest.raises(bf.ProgramError, match=r"to create at vertex 66: .*no such place"):
            store.run(Creating(), start="kept")
        # Without the method such signals are dropped.
        store.run(Hops())
        assert store.stats["store_figures"]["signals_undelivered"] == 2


@pytest.mark.parametrize("delivery", ["combined", "each", "latest"])
def test_no_vertex_is_created_without_a_signal(url: str, tmp_path: Path, delivery: str) -> None:
    class Creating(Hops):
        def create(self, id: Any) -> int:
            return 99

    Creating.delivery = delivery
    if delivery != "combined":
        Creating.combiner = None
    with bf.VertexStore.create(url, graph_at(tmp_path)) as store:
        before = dict(store.run(Creating()))
        # The vertex is to collect again, and is gone before it does.
        store.remove_edges(0, 4)
        store.remove_vertex(4)
        del before[4]
        assert dict(store.run(Creating(), start="kept")) == before


def test_changed_states_stay_and_signal(url: str, tmp_path: Path) -> None:
    graph = graph_at(tmp_path)
    with bf.VertexStore.create(url, graph) as store:
        assert store[0] is None
        store[0] = 5
        store.sync()
        assert dict(store.run(Hops(), start="kept")) == {0: 5, 1: 6, 2: 7, 3: 8, 4: 6}
        with pytest.raises(TypeError, match="JSON does not keep"):
            store[1] = {1: 2}
        with pytest.raises(bf.NotFoundError):
            store[9] = 1
        with pytest.raises(bf.UsageError, match="already"):
            store.add_vertex(1)


def test_edges_and_states_that_are_none_are_named(url: str, tmp_path: Path) -> None:
    with bf.VertexStore.create(url, graph_at(tmp_path)) as store:
        for edge in ((1, math.nan), (1, "heavy"), (1,), 1):
            with pytest.raises(bf.UsageError, match=r"weight of an edge|an edge is a pair"):
                store.add_edges(0, [edge])  # type: ignore[list-item]
        store[0] = [math.nan, "stays"]
        assert repr(store[0]) == "[nan, 'stays']"
        store.remove_vertex(1)
        with pytest.raises(bf.NotFoundError):
            store.remove_edges(1, 2)
    assert repr(store).endswith("(closed)>")
    assert "(closed)" in store._repr_html_()


def test_ids_may_be_strings(url: str, tmp_path: Path) -> None:
    graph = graph_at(tmp_path, {"source": ["a", "b"], "target": ["b", "c"]})
    with bf.VertexStore.create(url, graph) as store:
        store.add_vertex("bb", {"age": 5})
        assert list(store.items()) == [("a", None), ("b", None), ("bb", {"age": 5}), ("c", None)]
        with pytest.raises(TypeError, match="type string"):
            store.add_vertex(5)
    with bf.VertexStore.open(url) as store:
        assert store["bb"] == {"age": 5}


def test_weights_are_kept(url: str, tmp_path: Path) -> None:
    place = str(tmp_path / "weighted.brimful")
    bf.Graph.from_arrow(
        pa.table({"source": [0, 1], "target": [1, 2], "weight": [5.0, 2.0]}), path=place
    ).close()
    with bf.VertexStore.create(url, place, weighted=True) as store:
        assert dict(store.run(Hops())) == {0: 0, 1: 5, 2: 7}
        with pytest.raises(bf.UsageError, match="with weights"):
            store.run(Hops(), weighted=False)
    with pytest.raises(bf.UsageError, match="have weights true, and the run has false"):
        bf.run(place, Hops(), store=url, keep=True)


def test_a_store_whose_load_failed_is_made_again(url: str, tmp_path: Path) -> None:
    graph = graph_at(tmp_path)
    with pytest.raises(bf.BrimfulError, match="3"):
        bf.VertexStore.create(url, graph, states=dict.fromkeys([0, 1, 2, 4], 7))
    with pytest.raises(bf.UsageError, match="were not loaded to the end; make it again"):
        bf.VertexStore.open(url)
    with bf.VertexStore.create(url, graph, states=dict.fromkeys(range(5), 7)) as store:
        assert dict(store) == dict.fromkeys(range(5), 7)


def test_vertices_lie_on_several_disks(tmp_path: Path) -> None:
    graph = graph_at(tmp_path)
    folders = [tmp_path / "one", tmp_path / "two"]
    url = f"file:{folders[0]},{folders[1]}"
    with bf.VertexStore.create(url, graph) as store:
        assert dict(store.run(Hops())) == {0: 0, 1: 1, 2: 2, 3: 3, 4: 1}
    parts = [sorted(part.name for part in folder.glob("partition-*")) for folder in folders]
    assert parts == [["partition-0000"], ["partition-0001"]]
    with bf.VertexStore.open(url) as store:
        assert dict(store) == {0: 0, 1: 1, 2: 2, 3: 3, 4: 1}
    # No vertex is missing in silence.
    for part in (f"file:{folders[0]}", f"file:{folders[1]},{folders[0]}"):
        with pytest.raises(bf.BrimfulError, match=r"is missing; name all folders|no store of vert"):
            bf.VertexStore.open(part)
    assert not (folders[0] / "partition-0001").exists()
    # A run that keeps nothing uses both, and leaves nothing.
    other = f"file:{tmp_path}/three,{tmp_path}/four"
    assert dict(bf.run(graph, Hops(), store=other))[3] == 3
    assert bf.pagerank(graph, store=other)[3] == pytest.approx(bf.pagerank(graph)[3])
    assert not (tmp_path / "three").exists() and not (tmp_path / "four").exists()


@pytest.mark.parametrize("partitioner", ["range", "hash"])
def test_states_of_a_run_are_read_from_the_disk_that_has_them(
    partitioner: str, tmp_path: Path
) -> None:
    # The hubs come first, so that ranges of equal work and of equal edges differ.
    targets = [target for hub in range(1, 40) for target in range(hub, 1000, 7 * hub)]
    sources = [hub for hub in range(1, 40) for _ in range(hub, 1000, 7 * hub)]
    path = [*range(1000)]
    edges = pa.table({"source": [*sources, *path[:-1]], "target": [*targets, *path[1:]]})
    with bf.Graph.from_arrow(edges) as graph:
        expected = dict(bf.run(graph, Hops(), store="memory"))
        url = f"file:{tmp_path}/one,{tmp_path}/two,{tmp_path}/three"
        states = bf.run(graph, Hops(), store=url, partitioner=partitioner)
        assert len(expected) == 1000
        assert dict(states) == expected
        assert all(states[id] == expected[id] for id in range(0, 1000, 97))


@pytest.mark.parametrize("scheme", ["file", "kv"])
def test_states_of_a_run_on_disk_are_read_from_its_files(scheme: str, tmp_path: Path) -> None:
    graph = graph_at(tmp_path)
    states = bf.run(graph, Hops(), store=f"{scheme}:{tmp_path}/vertices")
    # The files have no names any more.
    assert not (tmp_path / "vertices").exists()
    assert dict(states) == {0: 0, 1: 1, 2: 2, 3: 3, 4: 1}
    assert len(states) == 5 and states[3] == 3 and states.top(1) == [(3, 3)]


def test_scattered_ids_of_many_vertices_are_read_in_blocks(tmp_path: Path) -> None:
    class Sends(bf.Program):
        """The sum of the ids of sources."""

        delivery, combiner = "combined", "sum"

        def initial_state(self, vertex: Any) -> Any:
            return vertex.id % 1000

        def signal(self, source: Any, target: Any, weight: float) -> Any:
            return source.id % 1000 + target % 1000

        def collect(self, vertex: Any, signals: Any) -> Any:
            return signals[0] + vertex.id % 7

    # All ids take 118 blocks of 512, and this budget has places for fewer than 80.
    count, budget = 60_000, "40M"
    ids = np.random.default_rng(5).permutation(np.arange(count) * 1_000_003)
    table = pa.table({"source": ids, "target": np.roll(ids, 12_345)})
    with bf.Graph.from_arrow(table, path=str(tmp_path / "g.brimful")) as graph:
        states = bf.run(
            graph, Sends(), store=f"file:{tmp_path}/vertices", max_supersteps=1, budget=budget
        )
        assert dict(states) == dict(bf.run(graph, Sends(), max_supersteps=1))


def test_mistakes_are_named(tmp_path: Path) -> None:
    graph, url = graph_at(tmp_path), f"file:{tmp_path}/vertices"
    with pytest.raises(bf.NotFoundError, match="no store of vertices"):
        bf.VertexStore.open(url)
    with pytest.raises(bf.UsageError, match="cannot be kept"):
        bf.run(graph, Hops(), store="bytes", keep=True)
    with pytest.raises(bf.UsageError, match="path="), bf.read(pa.table(EDGES)) as temporary:
        bf.run(temporary, Hops(), store=url, keep=True)
    with pytest.raises(bf.UsageError, match="no checkpoints"):
        bf.run(graph, Hops(), store=url, keep=True, checkpoint_every=1)
    with pytest.raises(bf.UsageError, match="by ranges"):
        bf.run(graph, Hops(), store=url, keep=True, partitioner="hash")
    with bf.VertexStore.create(url, graph) as store:
        with pytest.raises(bf.UsageError, match="there is a store"):
            bf.VertexStore.create(url, graph)
        with pytest.raises(bf.UsageError, match="start must be initial or kept, not again"):
            store.run(Hops(), start="again")  # type: ignore[arg-type]
    with pytest.raises(bf.UsageError, match="closed"):
        store[1]
    with pytest.raises(bf.UsageError, match="serializer json, and the run has pickle"):
        bf.run(graph, Hops(), store=url, keep=True, serializer="pickle")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(bf.UsageError, match=r"other files, such as mine\.txt"):
        bf.VertexStore.create(f"file:{tmp_path}/full", graph)
    assert (tmp_path / "full" / "mine.txt").read_text() == "mine"
    shutil.rmtree(graph)
    with pytest.raises(bf.NotFoundError):
        bf.VertexStore.open(url)


def test_a_store_of_another_graph_is_refused(tmp_path: Path) -> None:
    graph, url = graph_at(tmp_path), f"file:{tmp_path}/vertices"
    bf.VertexStore.create(url, graph).close()
    shutil.rmtree(graph)
    graph_at(tmp_path, {"source": [1], "target": [2]})
    with pytest.raises(bf.UsageError, match="an earlier state"):
        bf.VertexStore.open(url)


def test_a_serializer_that_runs_code_must_be_named(tmp_path: Path) -> None:
    graph, url = graph_at(tmp_path), f"file:{tmp_path}/vertices"
    with bf.VertexStore.create(url, graph, serializer="pickle") as store:
        store[1] = (1, 2)
    with pytest.raises(bf.UsageError, match="serializer pickle; name it"):
        bf.VertexStore.open(url)
    with bf.VertexStore.open(url, serializer="pickle") as store:
        assert store[1] == (1, 2)


def test_a_program_cannot_read_the_store_that_it_runs_on(tmp_path: Path) -> None:
    graph = graph_at(tmp_path)

    class Reads(Before):
        def initial_state(self, vertex: bf.Vertex) -> Any:
            return store[vertex.id]

    with bf.VertexStore.create(f"file:{tmp_path}/vertices", graph) as store:
        with pytest.raises(bf.ProgramError) as raised:
            store.run(Reads())
        assert "a run uses the vertices" in str(raised.value.__cause__)
        with pytest.raises(bf.UsageError, match="did not end"):
            store[1]
        # A run that begins anew mends it.
        assert store.run(Hops())[3] == 3


@pytest.mark.parametrize("moment", ["load", "first run", "run", "change"])
def test_a_kill_is_noticed(moment: str, url: str, tmp_path: Path) -> None:
    graph = graph_at(tmp_path)
    script = """
        import os, signal, sys
        import brimful as bf
        from test_vertex_store import Hops
        graph, url, moment = sys.argv[1:]
        class Dies(Hops):
            def initial_state(self, vertex):
                if moment == "load":
                    os.kill(os.getpid(), signal.SIGKILL)
                return super().initial_state(vertex)
            def collect(self, vertex, signals):
                return os.kill(os.getpid(), signal.SIGKILL)
        if moment in ("load", "first run"):
            bf.run(graph, Dies(), store=url, keep=True)
        store = bf.VertexStore.create(url, graph)
        if moment == "run":
            store.run(Dies())
        store[1] = 5
        os.kill(os.getpid(), signal.SIGKILL)
    """
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    killed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), graph, url, moment],
        cwd=Path(__file__).parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    if moment != "load":
        with pytest.raises(bf.UsageError, match=r"did not end|may be damaged"):
            dict(bf.VertexStore.open(url))
    if moment != "load" and not url.startswith("file"):
        # No database synced its files, so that they may be incomplete.
        with pytest.raises(bf.UsageError, match="may be damaged; remove the folder"):
            bf.run(graph, Hops(), store=url, keep=True)
        return
    expected = {0: 0, 1: 1, 2: 2, 3: 3, 4: 1}
    if moment != "load":
        with bf.VertexStore.open(url) as store:
            assert dict(store.run(Hops())) == expected
    assert dict(bf.run(graph, Hops(), store=url, keep=True)) == expected


def test_an_algorithm_leaves_its_vertices(url: str, tmp_path: Path) -> None:
    graph, out = graph_at(tmp_path), tmp_path / "hops.csv"
    run = ("run", "bfs", graph, "--source", 0, "--store", url, "--keep", "-o", out)
    outcome = succeed(*run, "--json", "--quiet", "--budget", "200M")
    assert outcome.figures["kept"] == url
    assert outcome.figures["peak_rss_bytes"] < 200 << 20
    with bf.VertexStore.open(url) as store:
        assert dict(store) == dict(bf.SavedResult(out)) == {0: 0, 1: 1, 2: 2, 3: 3, 4: 1}
        assert store.edges(0) == [(1, 1.0), (4, 1.0)]
        # All signal once, and nothing changes; then only the change has an effect.
        went_on = store.run(Hops(), start="kept")
        assert went_on.stats["superstep_frontier"] == [5]
        store.add_edge(4, 3)
        went_on = store.run(Hops(), start="kept")
        assert went_on[3] == 2 and went_on.stats["superstep_frontier"] == [1, 1]
    assert f"vertices: {url}2" in succeed(*run[:5], "--store", f"{url}2", "--keep").out


def test_values_of_any_type_stay(tmp_path: Path) -> None:
    names = {"source": ["a b", '"'], "target": ['"', "é"], "weight": [0.1, 2.5]}
    graph = graph_at(tmp_path, names)
    with bf.Graph.open(graph) as opened:
        for name, ran in {
            "sssp": bf.sssp(opened, source='"', weighted=True),
            "connected_components": bf.connected_components(opened),
            "pagerank": bf.pagerank(opened, store="bytes", weighted=True, threads=1),
        }.items():
            url = f"file:{tmp_path}/{name}"
            more = ("--source", '"') if name == "sssp" else ()
            weighted = () if name == "connected_components" else ("--weighted",)
            words = ("run", name, graph, *more, *weighted, "--threads", 1, "--store", url)
            succeed(*words, "--keep", "--quiet")
            with bf.VertexStore.open(url) as store:
                assert dict(store) == dict(ran), name
                assert store.edges('"') == [("é", 2.5 if weighted else 1.0)]


def test_vertices_that_cannot_stay_are_refused_before_the_run(tmp_path: Path) -> None:
    graph, url = graph_at(tmp_path), f"file:{tmp_path}/kept"
    run = ("run", "pagerank", graph, "--keep", "--quiet")
    assert "give --store file:PATH" in refuse(USAGE, *run)
    assert "cannot be kept" in refuse(USAGE, *run, "--store", "bytes")
    where = ("--where", "vertex > 1")
    assert "brimful derive" in refuse(USAGE, *run, "--store", url, *where)
    assert not (tmp_path / "kept").exists()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "letter.txt").touch()
    assert "such as letter.txt" in refuse(USAGE, *run, "--store", url)
    (tmp_path / "kept" / "letter.txt").unlink()
    succeed(*run, "--store", url)
    assert "there is a store at" in refuse(USAGE, *run, "--store", url)


def test_given_states_are_those_of_all_vertices(url: str, tmp_path: Path) -> None:
    graph = graph_at(tmp_path)
    states = {vertex: [vertex, "x"] for vertex in range(5)}
    with bf.VertexStore.create(url, graph, states=states) as store:
        assert dict(store) == states
    with pytest.raises(bf.ProgramError, match="vertex 4"):
        bf.VertexStore.create(f"{url}2", graph, states={0: 1, 1: 1, 2: 1, 3: 1})


_READER = r"""
    import re, sys
    from pathlib import Path
    import brimful as bf

    url, budget = sys.argv[1:]
    with bf.VertexStore.open(url, budget=int(budget)) as store:
        ids = [vertex for vertex, _ in zip(store, range(3))]
        peak = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
        print(*ids, int(peak[1]) << 10)
"""


@pytest.mark.slow
def test_vertices_in_order_are_read_within_the_budget(tmp_path: Path) -> None:
    def read(count: int, limit: int | None) -> int:
        """Return the peak of a process that reads the first vertices of a store."""
        folder = tmp_path / str(count)
        path, url = str(folder / "ring.brimful"), f"file:{folder}/vertices"
        folder.mkdir()
        # The ids are not consecutive, and their order is not that of ranks.
        ids = np.random.default_rng(5).permutation(np.arange(count) * 1_000_003)
        table = pa.table({"source": ids, "target": np.roll(ids, 1)})
        bf.Graph.from_arrow(table, path=path).close()
        bf.VertexStore.create(url, path).close()
        command = [sys.executable, "-c", textwrap.dedent(_READER), url, str(budget)]
        with contextlib.ExitStack() as stack:
            enter = stack.enter_context(hard_limit(limit)) if limit else None
            done = subprocess.run(command, capture_output=True, text=True, preexec_fn=enter)
        assert done.returncode == 0, done.stderr
        *first, peak = map(int, done.stdout.split())
        assert first == [0, 1_000_003, 2_000_006]
        return peak

    budget = 24 << 20
    base = read(10, None)
    # Rank and id of a vertex alone take 16 bytes.
    assert read(1_500_000, base + budget) <= base + budget


@pytest.mark.parametrize("scheme", ["file", "kv"])
def test_created_vertices_are_in_the_order_of_ids(tmp_path: Path, scheme: str) -> None:
    table = {"source": [10, 30, 50, 20], "target": [30, 50, 10, 40]}
    with bf.VertexStore.create(f"{scheme}:{tmp_path}/vertices", graph_at(tmp_path, table)) as store:
        for new in (45, -7, 99, 44, 5):
            store.add_vertex(new, new)
        store.remove_vertex(30)
        store.remove_vertex(44)
        expected = [-7, 5, 10, 20, 40, 45, 50, 99]
        assert list(store) == expected
        assert [vertex for vertex, _ in store.items()] == expected
        assert list(store._kept.rows(2, 4)) == [(10, None), (20, None), (40, None), (45, 45)]
        assert list(store._kept.rows(7, 9)) == [(99, 99)]
        assert not store._kept.rows(8, 1)
        # The files of the order have no names.
        assert not [name for name in os.listdir(tmp_path / "vertices") if name[0] == "."]


def test_a_store_is_opened_by_its_own_scheme(tmp_path: Path) -> None:
    graph, place = graph_at(tmp_path), f"{tmp_path}/vertices"
    expected = dict(bf.run(graph, Hops(), store=f"file:{place}", keep=True))
    for again in (
        lambda: bf.VertexStore.open(f"kv:{place}"),
        lambda: bf.run(graph, Hops(), store=f"kv:{place}", keep=True),
    ):
        with pytest.raises(bf.UsageError, match="have store file, and the run has kv"):
            again()
    with bf.VertexStore.open(f"file:{place}") as store:
        assert dict(store) == expected
        with pytest.raises(bf.UsageError, match="have store file, and the run has kv"):
            bf.run(graph, Hops(), store=f"kv:{place}", keep=True)
        assert dict(store) == expected


def test_a_graph_is_no_place_for_vertices(tmp_path: Path) -> None:
    graph = graph_at(tmp_path)
    before = sorted(os.listdir(graph))
    with pytest.raises(bf.UsageError, match="is a graph directory"):
        bf.run(graph, Hops(), store=f"file:{graph}", keep=True)
    with pytest.raises(bf.UsageError, match="inside the graph directory"):
        bf.run(graph, Hops(), store=f"file:{graph}/vertices", keep=True)
    with pytest.raises(bf.UsageError, match="is a graph directory"):
        bf.VertexStore.open(f"file:{graph}")
    assert sorted(os.listdir(graph)) == before
