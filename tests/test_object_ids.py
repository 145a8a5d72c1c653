"""Ids that are Python objects: tuples, frozensets, None, floats, and integers beside strings."""

from __future__ import annotations

import json
import math
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import brimful as bf
from brimful.errors import InputError, NotFoundError, UsageError
from command import succeed

LEAVES = st.none() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=5) | st.booleans()
LEAVES |= st.floats(allow_nan=False, allow_infinity=False)
OBJECTS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=8,
)


def is_id(vertex: Any) -> bool:
    return vertex is not None and not isinstance(vertex, bool)


def grid(rows: int, columns: int) -> Any:
    return nx.grid_2d_graph(rows, columns)


@given(OBJECTS)
def test_names_give_back_equal_objects(vertex: Any) -> None:
    assume(is_id(vertex))
    assert bf.id_of_name(bf.id_name(vertex)) == vertex or str(vertex).startswith("json:")


@given(OBJECTS, OBJECTS)
def test_names_are_equal_as_objects_are(one: Any, other: Any) -> None:
    assume(is_id(one) and is_id(other))
    if one == other:
        assert bf.id_name(one) == bf.id_name(other)
    elif not isinstance(one, str) and not isinstance(other, str):
        assert bf.id_name(one) != bf.id_name(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((1,), (True,)),
        ((1,), (1.0,)),
        ((0,), (-0.0,)),
        ((2**63,), (float(2**63),)),
        ((np.int64(3), np.float64(0.5)), (3, 0.5)),
        (frozenset([3, 1, 2]), frozenset([2, 3, 1])),
    ],
)
def test_equal_objects_are_one_vertex(one: Any, other: Any) -> None:
    assert bf.id_name(one) == bf.id_name(other)


@pytest.mark.parametrize(
    "text",
    [
        "json:",
        "json:[0, 1]",
        "json:1.0",
        "json:true",
        'json:"a"',
        "json:01",
        'json:{"set":[2,1]}',
        'json:{"a":1}',
        "json:1e400",
        "json:[0",
    ],
)
def test_other_strings_are_strings(text: str) -> None:
    assert bf.id_of_name(text) == text


@pytest.mark.parametrize(
    "vertex",
    [None, True, math.nan, math.inf, object(), b"a", (1, [2]), {1}, 2**64 * 1.5j, 2**64, (2**64,)],
)
def test_other_objects_are_refused(vertex: Any) -> None:
    with pytest.raises(UsageError, match="cannot be the id of a vertex"):
        bf.id_name(vertex)
    with bf.Graph.from_networkx(grid(2, 2)) as graph:
        assert vertex not in graph
        with pytest.raises(NotFoundError):
            graph.neighbors(vertex)


def test_a_graph_of_tuples_looks_up_its_vertices() -> None:
    source = grid(3, 4)
    with bf.Graph.from_networkx(source) as graph:
        assert set(graph) == set(source)
        for node in source:
            assert set(graph.neighbors(node)) == set(source[node])
            assert graph.degree(node) == source.degree[node]
        assert (0, 1) in graph
        assert (9, 9) not in graph
        assert graph.has_edge((0, 0), (0, 1))
        assert "[0,1]" not in graph
        assert nx.utils.graphs_equal(graph.to_networkx(), source)
        assert graph.shortest_path((0, 0), (2, 3)) is not None
        path = graph.shortest_path((0, 0), (2, 3), weighted=False)
        assert nx.is_path(source, path)
        assert len(path) == 6
        [(length, shortest), *_] = graph.shortest_paths((0, 0), (2, 3), k=2)
        assert length == 5
        assert nx.is_path(source, shortest)
        table = graph.neighbors_many([(1, 1), (0, 0)])
        assert table["source"].to_pylist() == ["json:[1,1]"] * 4 + ["json:[0,0]"] * 2
        assert graph.degrees_many([(1, 1), (0, 0)]).to_pylist() == [4, 2]
        part = graph.subgraph([(0, 0), (0, 1)])
        assert sorted(part) == [(0, 0), (0, 1)]
        assert sorted(graph.to_igraph().vs["vertex"]) == sorted(source)


def test_look_ups_of_many_ids_take_ids_of_several_types() -> None:
    source = nx.Graph([(1, "a"), ("a", (1, 2)), (2.5, 1)])
    with bf.Graph.from_networkx(source) as graph:
        for ids in ([1, "a"], [2.5], ["a", (1, 2), 1], [(1, 2)]):
            degrees = [source.degree[node] for node in ids]
            for form in (ids, pd.Series(ids)):
                assert graph.degrees_many(form).to_pylist() == degrees
                assert graph.neighbors_many(form).num_rows == sum(degrees)
        with graph.subgraph([1, "a", 2.5]) as part:
            assert set(part) == {1, "a", 2.5}
    with (
        bf.Graph.from_networkx(nx.path_graph(3)) as graph,
        pytest.raises(bf.UsageError, match="all 64-bit integers or all strings; found int and str"),
    ):
        graph.degrees_many([1, "a"])


def test_results_have_the_objects_as_keys() -> None:
    source = grid(3, 4)
    with bf.Graph.from_networkx(source) as graph:
        result = bf.bfs(graph, [(0, 0)])
        assert dict(result) == nx.single_source_shortest_path_length(source, (0, 0))
        assert result[2, 3] == 5
        assert result.top(1) == [((2, 3), 5)]
        parents = bf.bfs(graph, [(0, 0)], values="parent")
        assert parents[0, 1] == (0, 0)
        assert set(bf.connected_components(graph).values()) == {(0, 0)}
        edges = [row[:2] for row in bf.bridges(graph)]
        assert edges == []
        pairs = [row[:2] for row in bf.similarity(graph, measure="common_neighbors")]
        assert ((0, 0), (1, 1)) in pairs
        assert result.to_arrow()["vertex"][0].as_py() == "json:[0,0]"


def test_saved_results_have_the_objects(tmp_path: Any) -> None:
    with bf.Graph.from_networkx(grid(2, 2)) as graph:
        result = bf.degrees(graph)
        for name in ("d.parquet", "d.csv"):
            result.write(tmp_path / name)
            saved = bf.SavedResult(tmp_path / name)
            assert dict(saved) == dict(result)
            assert saved[1, 1] == 2
            assert saved.top(1) == [((0, 0), 2)]


def test_integers_and_strings_stay_apart() -> None:
    source = nx.Graph([(1, "1"), ("1", (1,)), ((1,), frozenset([1])), (frozenset([1]), 0.5)])
    with bf.Graph.from_networkx(source) as graph:
        assert set(graph) == set(source)
        assert graph.neighbors(1) == ["1"]
        assert set(graph.neighbors("1")) == {1, (1,)}
        assert 2 not in graph
        assert graph.degrees_many([1, (1,)]).to_pylist() == [1, 2]
        assert bf.bfs(graph, 1)[0.5] == 4


def test_a_missing_object_is_shown_without_its_prefix() -> None:
    with bf.Graph.from_networkx(nx.path_graph(3)) as graph:
        assert (0, 1) not in graph
        with pytest.raises(NotFoundError, match=r"no vertex 1; its ids are integers, not floats"):
            graph.neighbors(1.0)
        with pytest.raises(NotFoundError, match=r"no vertex \[0,1\]; its ids are integers"):
            graph.neighbors((0, 1))


def test_strings_that_are_names_are_refused() -> None:
    with pytest.raises(InputError, match=r"the name of the vertex \(0, 1\)"):
        bf.Graph.from_networkx(nx.Graph([("json:[0,1]", "a")]))


def test_nodes_that_cannot_be_ids_are_refused() -> None:
    with pytest.raises(InputError, match="relabel the vertices"):
        bf.Graph.from_networkx(nx.Graph([(b"a", b"b")]))


def test_halves_of_characters_cannot_be_ids() -> None:
    half = "a\ud800"
    with pytest.raises(InputError, match=r"nodes such as 'a\\ud800', which is not valid UTF-8"):
        bf.Graph.from_networkx(nx.Graph([(half, "b")]))
    with bf.Graph.from_networkx(nx.Graph([("a", "é")])) as graph:
        for look_up in (graph.neighbors_many, graph.degrees_many, graph.subgraph):
            with pytest.raises(bf.UsageError, match=r"a\\ud800 \(str\) cannot be the id of a ver"):
                look_up(["é", half])


class Distance(bf.Program):
    """Hops from a vertex."""

    delivery, combiner = "combined", "min"

    def __init__(self, start: Any) -> None:
        self.start = start

    def initial_state(self, vertex: bf.Vertex) -> int | None:
        return 0 if vertex.id == self.start else None

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> int | None:
        assert isinstance(target, tuple)
        return None if source.state is None else source.state + 1

    def collect(self, vertex: bf.Vertex, signals: list[int]) -> int:
        return min(signals if vertex.state is None else [vertex.state, *signals])


class Flood(bf.Pregel):
    """The number of steps until a message to one neighbor after the other arrives."""

    def initial_value(self, vertex: bf.PregelVertex) -> Any:
        return None

    def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
        if vertex.superstep == 0 and vertex.id == (0, 0):
            vertex.value = [0, None]
        elif messages and vertex.value is None:
            vertex.value = [vertex.superstep, min(messages)]
        else:
            vertex.vote_to_halt()
            return
        for target, _ in vertex.edges:
            vertex.send(target, list(vertex.id))
        vertex.vote_to_halt()


@pytest.mark.parametrize("store", ["memory", "bytes", "file", "kv"])
def test_programs_see_the_objects(store: str, tmp_path: Any) -> None:
    source = grid(4, 4)
    where = store if store in ("memory", "bytes") else f"{store}:{tmp_path / 'v'}"
    with bf.Graph.from_networkx(source) as graph:
        states = bf.run(graph, Distance((0, 0)), on="store", store=where, trace=[(1, 1)])
        assert dict(states) == nx.single_source_shortest_path_length(source, (0, 0))
        assert states[3, 3] == 6
        assert set(states.trace["vertex"].to_pylist()) == {"json:[1,1]"}


@pytest.mark.parametrize("store", ["memory", "bytes"])
def test_messages_reach_objects(store: str) -> None:
    with bf.Graph.from_networkx(grid(4, 4)) as graph:
        values = dict(bf.run(graph, Flood(), store=store))
        hops = nx.single_source_shortest_path_length(grid(4, 4), (0, 0))
        assert {vertex: value[0] for vertex, value in values.items()} == hops


def test_messages_create_objects() -> None:
    class Grow(bf.Pregel):
        mutates = True

        def initial_value(self, vertex: bf.PregelVertex) -> int:
            return 0

        def compute(self, vertex: bf.PregelVertex, messages: list[int]) -> None:
            vertex.value += sum(messages)
            if vertex.superstep == 0 and vertex.id == (1, 1):
                vertex.send((7, "new"), 5)
                vertex.request_add_vertex((8, frozenset([1])), 3)
            vertex.vote_to_halt()

    with bf.Graph.from_networkx(grid(2, 2)) as graph:
        values = dict(bf.run(graph, Grow()))
        assert values[7, "new"] == 5
        assert values[8, frozenset([1])] == 3


def test_kept_vertices_have_the_objects(tmp_path: Any) -> None:
    source = grid(3, 3)
    path = tmp_path / "grid.brimful"
    bf.Graph.from_networkx(source, path=path).close()
    with bf.VertexStore.create(f"file:{tmp_path / 'v'}", path) as store:
        dict(store.run(Distance((0, 0))))
        store.add_edge((0, 0), (2, 2))
        assert ((2, 2), 1.0) in store.edges((0, 0))
        store.add_vertex((5, 5), 9, edges=[((0, 0), 1.0)])
        assert store[5, 5] == 9
    with bf.VertexStore.open(f"file:{tmp_path / 'v'}") as store:
        assert (5, 5) in store
        assert store[5, 5] == 9


def test_columns_are_read_by_objects(tmp_path: Any) -> None:
    source = grid(2, 2)
    nodes = sorted(source)
    columns = pa.table({"id": [bf.id_name(node) for node in nodes], "size": [1, 2, 3, 4]})
    path = tmp_path / "grid.brimful"
    with bf.Graph.from_networkx(source, path=path) as graph:
        graph.add_vertex_columns(columns, on="id")
    with bf.Graph.open(path) as graph:
        sizes = graph.vertex_values("size")
        assert [sizes[node] for node in nodes] == [1, 2, 3, 4]
        assert sorted(sizes) == nodes


def test_tables_of_tuples_need_their_names() -> None:
    remedy = r"; convert tuples to their names by frame\['vertex'\]\.map\(brimful\.id_name\)"
    frame = pd.DataFrame({"vertex": [(0, 0)], "size": [3]})
    with bf.Graph.from_networkx(grid(2, 2)) as graph:
        degrees = bf.degrees(graph)
        for call, says in (
            (lambda: degrees.join(frame), "of the result are strings, .* has lists or tuples"),
            (lambda: graph.add_vertex_columns(frame), "of the graph are strings, .* or tuples"),
            (lambda: graph.filter(table=frame), "the ids are not vertices of type string"),
            (lambda: graph.contract(frame), "the vertices of the labels have the type"),
        ):
            with pytest.raises(bf.UsageError, match=says + ".*" + remedy):
                call()
        frame["vertex"] = frame["vertex"].map(bf.id_name)
        assert degrees.join(frame)["size"].to_pylist() == [3, None, None, None]


def test_the_command_line_shows_and_takes_names(tmp_path: Any) -> None:
    path = tmp_path / "grid.brimful"
    bf.Graph.from_networkx(nx.Graph([((0, 0), (0, 1)), ((0, 1), 7)]), path=path).close()
    shown = succeed("neighbors", path, "json:[0,1]").out
    assert shown.split() == ["neighbor", "json:7", "json:[0,0]"]
    found = json.loads(succeed("path", path, "json:[0,0]", "json:7", "--json").out)
    assert found["path"] == ["json:[0,0]", "json:[0,1]", "json:7"]
    top = succeed("run", "degrees", path, "--top", "1", "-o", tmp_path / "d.csv").out
    assert "json:[0,1]\t2" in top


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_exports_give_back_the_graph(suffix: str, tmp_path: Any) -> None:
    source = grid(2, 3)
    target = tmp_path / f"grid.{suffix}"
    with bf.Graph.from_networkx(source) as graph:
        graph.export(target, lossy=suffix == "csv")
    with bf.read(str(target), undirected=True, path=tmp_path / "again.brimful") as again:
        assert set(again) == set(source)
        assert {frozenset(edge) for edge in again.to_networkx().edges} == {
            frozenset(edge) for edge in source.edges
        }


def test_the_view_of_networkx_has_the_objects() -> None:
    source = grid(3, 3)
    with bf.Graph.from_networkx(source) as graph:
        view = graph.as_networkx()
        assert set(view) == set(source)
        assert set(view[1, 1]) == set(source[1, 1])
        assert nx.node_connected_component(view, (0, 0)) == set(source)
        assert nx.shortest_path_length(view, (0, 0), (2, 2)) == 4
        assert {frozenset(part) for part in nx.connected_components(view)} == {frozenset(source)}


def test_many_floats_and_integers_beside_strings_are_looked_up() -> None:
    plain = nx.Graph([(0.5, 1.5), (1.5, 2), (2, "a")])
    with bf.Graph.from_networkx(plain) as graph:
        for ids in ([0.5, 1.5], [2, "a"], [2, 0.5], [2], np.array([0.5, 1.5]), pa.array([0.5])):
            own = [one.as_py() if isinstance(one, pa.Scalar) else one for one in ids]
            assert graph.degrees_many(ids).to_pylist() == [plain.degree(one) for one in own]
            edges = graph.neighbors_many(ids)
            sources, targets = (
                list(map(bf.id_of_name, edges[name].to_pylist())) for name in ("source", "target")
            )
            assert sorted(zip(sources, targets, strict=True), key=str) == sorted(
                ((one, other) for one in own for other in plain[one]), key=str
            )
            with graph.subgraph(ids) as part:
                assert set(part) == set(own)
                assert part.edges == plain.subgraph(own).number_of_edges()
        assert graph.shortest_path(0.5, "a") == [0.5, 1.5, 2, "a"]
        for wrong in ([None], [True], [b"a"]):
            with pytest.raises(UsageError, match="cannot be the id of a vertex"):
                graph.neighbors_many(wrong)


def test_walks_of_networkx_start_at_a_tuple() -> None:
    source = nx.Graph([((1,), 2), (1, 3)])
    with bf.Graph.from_networkx(source) as graph:
        walks = nx.number_of_walks(graph, 1)
        assert {node: dict(counts) for node, counts in walks.items()} == nx.number_of_walks(
            source, 1
        )


def test_predictions_of_networkx_take_pairs_of_objects() -> None:
    source = nx.Graph([((1,), 2), (2, "a"), ("a", 0.5), (0.5, 3), ((1,), 3)])
    pairs = [((1,), "a"), (2, 3), (3, 3)]
    with bf.Graph.from_networkx(source) as graph:
        for score in (nx.jaccard_coefficient, nx.adamic_adar_index, nx.resource_allocation_index):
            found, expected = list(score(graph, pairs)), list(score(source, pairs))
            assert [row[:2] for row in found] == pairs
            assert [row[2] for row in found] == pytest.approx([row[2] for row in expected])
