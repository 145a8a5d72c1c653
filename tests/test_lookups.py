"""Look-ups of vertices and edges: NetworkX is the oracle."""

from __future__ import annotations

import copy
import logging
import multiprocessing
import os
import pickle
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brimful as bf

KINDS = [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]


def made(kind: type[Any], *, names: bool, weighted: bool, seed: int = 3) -> Any:
    """A graph with a hub, self-loops, ids far apart, and isolated vertices."""
    chance = random.Random(seed)
    ids = [*range(-40, 40, 2), 2**40, -(2**62)]
    graph = kind()
    graph.add_nodes_from(ids)
    graph.add_node(10**6 + 1)
    for _ in range(300):
        ends = [chance.choice([*ids, *[7] * 10, 0]) for _ in range(2)]
        data = {"weight": chance.randrange(1, 9) / 4} if weighted else {}
        graph.add_edge(*ends, **data)
    if names:
        graph = nx.relabel_nodes(graph, {node: f"vertex {node} é" for node in graph})
    return graph


def lists(graph: Any, vertex: Any, *, weighted: bool) -> tuple[list[Any], list[Any]]:
    """Sorted `(neighbor, weight)` at the other ends of edges that leave, and that reach."""
    data = "weight" if weighted else None
    leaving = graph.out_edges if graph.is_directed() else graph.edges
    out = [(t, w) for _, t, w in leaving(vertex, data=data, default=1.0)]
    if not graph.is_directed():
        return sorted(out), sorted(out)
    return sorted(out), sorted((s, w) for s, _, w in graph.in_edges(vertex, data=data, default=1.0))


@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_networkx_agrees(kind: type[Any], weighted: bool, names: bool) -> None:
    oracle = made(kind, names=names, weighted=weighted)
    with bf.Graph.from_networkx(oracle) as graph:
        vertices = list(graph)
        assert vertices == sorted(oracle.nodes)
        rows: dict[str, list[tuple[Any, ...]]] = {"out": [], "in": []}
        for vertex in vertices:
            out, into = lists(oracle, vertex, weighted=weighted)
            assert graph.neighbors(vertex) == [other for other, _ in out]
            assert graph.in_neighbors(vertex) == [other for other, _ in into]
            assert graph.degree(vertex) == graph.out_degree(vertex) == len(out)
            assert graph.in_degree(vertex) == len(into)
            if weighted:
                ids, weights = graph.neighbors(vertex, weights=True)
                assert list(zip(ids, weights, strict=True)) == out
                ids, weights = graph.in_neighbors(vertex, weights=True)
                assert list(zip(ids, weights, strict=True)) == into
            rows["out"] += [(vertex, other, weight) for other, weight in out]
            rows["in"] += [(other, vertex, weight) for other, weight in into]
        for direction, expected in rows.items():
            table = graph.neighbors_many(vertices, direction=direction, weights=weighted)
            columns = 3 if weighted else 2
            assert list(zip(*table.to_pydict().values(), strict=True)) == [
                row[:columns] for row in expected
            ]
            assert table.schema.field("source").type == graph.vertex_ids().type
            degrees = graph.degrees_many(vertices, direction=direction)
            degree = graph.degree if direction == "out" else graph.in_degree
            assert degrees.to_pylist() == [degree(vertex) for vertex in vertices]
        for source in vertices[::3]:
            for target in vertices[::2]:
                assert graph.has_edge(source, target) == oracle.has_edge(source, target)


@given(
    pairs=st.lists(st.tuples(st.integers(-5, 30), st.integers(-5, 30)), min_size=1),
    asked=st.lists(st.integers(0, 10**6)),
    directed=st.booleans(),
)
def test_batches_are_the_single_calls(
    pairs: list[tuple[int, int]], asked: list[int], directed: bool
) -> None:
    sources, targets = zip(*pairs, strict=True)
    table = pa.table({"source": sources, "target": targets})
    with bf.Graph.from_arrow(table, undirected=not directed) as graph:
        vertices = list(graph)
        chosen = [vertices[number % len(vertices)] for number in asked]
        found = graph.neighbors_many(chosen)
        single = [(vertex, other) for vertex in chosen for other in graph.neighbors(vertex)]
        pairs_found = zip(*(column.to_pylist() for column in found.columns), strict=True)
        assert list(pairs_found) == single
        assert graph.degrees_many(chosen).to_pylist() == [graph.degree(v) for v in chosen]


@pytest.fixture
def ring(tmp_path: Path) -> Iterator[bf.Graph]:
    table = pa.table({"source": [0, 1, 2, 2], "target": [1, 2, 0, 3]})
    with bf.Graph.from_arrow(table, path=tmp_path / "ring.brimful") as graph:
        yield graph


def test_vertices_come_in_any_container(ring: bf.Graph) -> None:
    expected = {"source": [2, 2, 0], "target": [0, 3, 1]}
    for vertices in (
        [2, 0],
        (2, 0),
        range(2, -1, -2),
        np.array([2, 0], np.uint8),
        np.array([9, 2, 0])[1:],
        pa.array([2, 0], pa.int16()),
        pa.chunked_array([[2], [0]]),
        pa.array([7, 2, 0])[1:],
        pa.array([2, 0]).dictionary_encode(),
        pd.Series([2, 0]),
        pl.Series([2, 0]),
        pl.DataFrame({"v": [2, 0]})["v"],
    ):
        assert ring.neighbors_many(vertices).to_pydict() == expected, type(vertices)
        assert ring.degrees_many(vertices).to_pylist() == [2, 1]
    assert ring.neighbors_many([]).to_pydict() == {"source": [], "target": []}
    assert ring.degrees_many([]).to_pylist() == []
    assert ring.neighbors_many([3]).num_rows == 0
    for wrong in (5, None, [None], ["a", 1], [1.5], [[1]], [2**70], object()):
        with pytest.raises(bf.UsageError, match="vert"):
            ring.neighbors_many(wrong)
    for missing in ([0, 9], [-1], np.array([2**64 - 1], np.uint64), ["0"]):
        with pytest.raises(bf.NotFoundError, match="no vertex"):
            ring.neighbors_many(missing)
        with pytest.raises(bf.NotFoundError, match="no vertex"):
            ring.degrees_many(missing)


def test_the_letters_of_an_id_are_no_ids() -> None:
    table = pa.table({"source": ["a", "b", "ab"], "target": ["b", "a", "a"]})
    with bf.Graph.from_arrow(table) as graph:
        for call in (graph.neighbors_many, graph.degrees_many, graph.subgraph):
            for ids in ("ab", b"ab"):
                with pytest.raises(bf.UsageError, match=r"a sequence of ids, not the text b?'?ab"):
                    call(ids)


def test_what_is_no_sequence_of_ids_is_named(ring: bf.Graph) -> None:
    for wrong, says in (
        (5, "must be a sequence of ids, not 5"),
        (["a", 1], "must be all 64-bit integers or all strings; found str and int"),
        (bf.pagerank(ring), "not a table of the columns vertex, pagerank; pass one of them"),
    ):
        for call in (ring.neighbors_many, ring.degrees_many, ring.subgraph):
            with pytest.raises(bf.UsageError, match=says):
                call(wrong)


def test_what_is_not_there(ring: bf.Graph) -> None:
    for vertex in (4, -1, "0", None, 1.5, 2**70):
        assert not ring.has_edge(vertex, 0) and not ring.has_edge(0, vertex)
        for question in (ring.neighbors, ring.in_neighbors, ring.degree, ring.in_degree):
            with pytest.raises(KeyError):
                question(vertex)  # type: ignore[arg-type]
    with pytest.raises(bf.UsageError, match="no edge weights"):
        ring.neighbors(0, weights=True)
    with pytest.raises(bf.UsageError, match="no edge weights"):
        ring.neighbors_many([0], weights=True)
    with pytest.raises(bf.UsageError, match="direction"):
        ring.neighbors_many([0], direction="sideways")  # type: ignore[arg-type]
    ring.close()
    for question in (ring.neighbors, ring.in_neighbors, ring.degree):
        with pytest.raises(bf.UsageError, match="closed"):
            question(0)


def test_the_reverse_index_is_built_once_and_reported(
    ring: bf.Graph, caplog: pytest.LogCaptureFixture
) -> None:
    assert ring.native.indexes == ["in"]
    with caplog.at_level(logging.WARNING, logger="brimful"):
        assert ring.in_neighbors(0) == [2]
        assert ring.in_degree(3) == 1
    assert [record.message for record in caplog.records] == [
        f"building the reverse index of {ring.path}, which in-edges need; it stays"
    ]
    with bf.Graph.open(ring.path) as again:
        assert again.native.indexes == ["in", "reverse"]
    with bf.Graph.from_arrow(ring, undirected=True) as undirected:
        assert undirected.in_neighbors(0) == undirected.neighbors(0) == [1, 2]
        assert undirected.native.indexes == ["in", "reverse"]


def test_threads_share_a_graph(ring: bf.Graph) -> None:
    numbers = np.arange(200_000)
    edges = pa.table({"source": numbers * 7919 % 5003, "target": numbers % 5003})
    with bf.Graph.from_arrow(edges) as graph:
        wanted = {vertex: graph.neighbors(vertex) for vertex in range(0, 5003, 10)}
        graph.close()
    with bf.Graph.from_arrow(edges) as graph:
        wrong: list[int] = []

        def ask(first: int) -> None:
            for vertex in [*wanted][first:] + [*wanted][:first]:
                if graph.neighbors(vertex) != wanted[vertex]:
                    wrong.append(vertex)

        threads = [threading.Thread(target=ask, args=(first,)) for first in (0, 100, 200, 300)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []


def _neighbors(graph: bf.Graph) -> list[int]:
    found: list[int] = graph.neighbors(2)
    return found


def test_a_kept_graph_is_pickled_by_its_path(
    ring: bf.Graph, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with bf.Graph.open("ring.brimful", budget="100M") as relative:
        monkeypatch.chdir("/")
        again = pickle.loads(pickle.dumps(relative))
        assert (again.path, again.budget) == (str(tmp_path / "ring.brimful"), 100 << 20)
        assert again.neighbors(2) == [0, 3]
    for copied in (copy.copy(ring), copy.deepcopy(ring)):
        assert copied is not ring and copied.neighbors(2) == [0, 3]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(_neighbors, [ring]) == [[0, 3]]
    ring.close()
    with pytest.raises(bf.UsageError, match="closed"):
        pickle.dumps(ring)
    assert os.path.isdir(ring.path)


def test_values_of_a_relative_path_are_read_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    edges = pa.table({"source": [1], "target": [2], "year": [2020]})
    ages = pa.table({"vertex": [1, 2], "age": [5, 6]})
    bf.Graph.from_arrow(edges, path="g.brimful", vertex_columns=ages, edge_columns="year").close()
    with bf.Graph.open("g.brimful") as graph:
        values = graph.vertex_values("age"), graph.edge_values("year")
    monkeypatch.chdir("/")
    ages_again, years_again = pickle.loads(pickle.dumps(values))
    assert (dict(ages_again), years_again[1, 2]) == ({1: 5, 2: 6}, 2020)


def test_a_temporary_graph_is_not_pickled() -> None:
    with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        for refused in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(bf.UsageError, match=r"path= to keep the directory"):
                refused(graph)
