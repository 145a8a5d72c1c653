"""Vertices that stay in a store between runs."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import brimful as bf
from command import succeed
from kept_vertices import Before, Hops, InSum, graph_at, url

__all__ = ["url"]  # The fixture.


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
        calls: list[Callable[[int], Any]] = [
            store.__getitem__,
            store.edges,
            store.remove_vertex,
            lambda vertex: store.add_edge(vertex, 3),
            lambda vertex: store.remove_edges(vertex, 3),
            lambda vertex: store.__setitem__(vertex, [1.0]),
        ]
        # One was removed, the other was never there.
        for vertex in (1, 99):
            for call in calls:
                with pytest.raises(bf.NotFoundError, match=f"the store has no vertex {vertex}$"):
                    call(vertex)
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


def test_ids_may_be_strings(url: str, tmp_path: Path) -> None:
    graph = graph_at(tmp_path, {"source": ["a", "b"], "target": ["b", "c"]})
    with bf.VertexStore.create(url, graph) as store:
        store.add_vertex("bb", {"age": 5})
        assert list(store.items()) == [("a", None), ("b", None), ("bb", {"age": 5}), ("c", None)]
        with pytest.raises(bf.UsageError, match="type string"):
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


def test_given_states_are_those_of_all_vertices(url: str, tmp_path: Path) -> None:
    graph = graph_at(tmp_path)
    states = {vertex: [vertex, "x"] for vertex in range(5)}
    with bf.VertexStore.create(url, graph, states=states) as store:
        assert dict(store) == states
    with pytest.raises(bf.ProgramError, match="vertex 4"):
        bf.VertexStore.create(f"{url}2", graph, states={0: 1, 1: 1, 2: 1, 3: 1})


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
