"""Graphs of high diameter: traversal in order, and components of every kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse
from scipy.sparse import csgraph

import brimful as bf
from command import succeed

SIDE = 300


def _grid() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sources, targets and weights of a square of streets; the seed is fixed."""
    ids = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    sources = np.concatenate([ids[:, :-1].ravel(), ids[:-1, :].ravel()])
    targets = np.concatenate([ids[:, 1:].ravel(), ids[1:, :].ravel()])
    # Few streets are quick, so that the shortest paths have many edges and are found late.
    weights = np.random.default_rng(7).choice([0.1, 1.7, 50.3], len(sources))
    return sources, targets, weights


@pytest.fixture(scope="module")
def streets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[bf.Graph]:
    sources, targets, weights = _grid()
    table = pa.table({"source": sources, "target": targets, "weight": weights})
    path = tmp_path_factory.mktemp("roads") / "streets.brimful"
    with bf.Graph.from_arrow(table, path=path, weight="weight", undirected=True) as graph:
        yield graph


def _distances(result: bf.Result) -> np.ndarray:
    column = result.to_arrow()["distance"]
    return column.to_numpy()


def _expected() -> np.ndarray:
    sources, targets, weights = _grid()
    matrix = sparse.csr_matrix((weights, (sources, targets)), shape=(SIDE**2, SIDE**2))
    return csgraph.dijkstra(matrix, directed=False, indices=0)


def test_a_long_search_ends_in_order_with_the_bits_of_supersteps(streets: bf.Graph) -> None:
    supersteps = bf.sssp(streets, 0, weighted=True, max_supersteps=10**6)
    in_order = bf.sssp(streets, 0, weighted=True)
    np.testing.assert_allclose(_distances(in_order), _expected(), rtol=1e-12)
    assert _distances(in_order).tobytes() == _distances(supersteps).tobytes()
    assert in_order.stats["converged"] and supersteps.stats["converged"]
    assert in_order.stats["supersteps"] < supersteps.stats["supersteps"] / 2
    assert in_order.stats["edge_visits"] < supersteps.stats["edge_visits"] / 2
    traversals = in_order.stats["traversals"]
    assert (
        traversals["priority_queue"] == 1
        and sum(traversals.values()) == in_order.stats["supersteps"]
    )
    assert in_order.stats["last_traversal"] == "priority_queue"
    assert "priority_queue" not in supersteps.stats["traversals"]


@pytest.mark.parametrize("threads", [1, 3])
def test_the_mode_async_is_never_much_slower(streets: bf.Graph, threads: int) -> None:
    for weighted in (True, False):
        sync = bf.sssp(streets, 0, weighted=weighted, threads=threads)
        asynchronous = bf.sssp(streets, 0, weighted=weighted, mode="async", threads=threads)
        assert _distances(sync).tobytes() == _distances(asynchronous).tobytes()
        assert asynchronous.stats["edge_visits"] <= 2 * sync.stats["edge_visits"]


@pytest.mark.parametrize(
    "run",
    [
        lambda graph, mode: bf.pagerank(graph, source=SIDE, mode=mode),
        lambda graph, mode: bf.pagerank(graph, mode=mode),
        lambda graph, mode: bf.connected_components(graph, mode=mode),
    ],
    ids=["pagerank from one vertex", "pagerank", "components"],
)
def test_the_mode_async_visits_no_more_edges(
    streets: bf.Graph, run: Callable[[bf.Graph, str], bf.Result]
) -> None:
    sync, asynchronous = run(streets, "sync"), run(streets, "async")
    assert sync.stats["converged"] and asynchronous.stats["converged"]
    assert asynchronous.stats["edge_visits"] <= sync.stats["edge_visits"]
    np.testing.assert_allclose(list(asynchronous.values()), list(sync.values()), rtol=0, atol=1e-6)


@pytest.mark.nightly
def test_the_mode_async_visits_no_more_edges_in_the_smallest_budget(streets: bf.Graph) -> None:
    for weighted in (None, True, False):

        def run(mode: Any, budget: int, weighted: bool | None = weighted) -> bf.Result:
            if weighted is None:
                return bf.bfs(streets, 0, mode=mode, budget=budget)
            return bf.sssp(streets, 0, mode=mode, budget=budget, weighted=weighted)

        with pytest.raises(bf.BudgetError) as caught:
            run("sync", 1)
        for more in (0, 1 << 18, 1 << 20, 1 << 21):
            budget = caught.value.needed_bytes + more
            sync, asynchronous = run("sync", budget), run("async", budget)
            assert _distances(sync).tobytes() == _distances(asynchronous).tobytes()
            assert asynchronous.stats["edge_visits"] <= 2 * sync.stats["edge_visits"], more


def test_a_small_budget_gives_the_same_bits(streets: bf.Graph) -> None:
    wanted = _distances(bf.sssp(streets, 0, weighted=True)).tobytes()
    for mode in ("sync", "async"):
        with pytest.raises(bf.BudgetError) as caught:
            bf.sssp(streets, 0, weighted=True, mode=mode, budget=1)
        least = bf.sssp(streets, 0, weighted=True, mode=mode, budget=caught.value.needed_bytes)
        assert _distances(least).tobytes() == wanted, mode
    # The packed edges take no more memory than the buffers that would read them again.
    foreseen = bf.plan(streets, "sssp", weighted=True, budget=caught.value.needed_bytes)
    assert foreseen.read_once_bytes and foreseen.in_memory_budget_bytes > foreseen.budget_bytes


def test_a_wide_frontier_signals_in_order_where_edges_do_not_fit_unpacked(tmp_path: Path) -> None:
    width, length = 4000, 100
    ids = np.arange(width * length).reshape(width, length)
    sources = np.concatenate([ids[:, :-1].ravel(), ids[:-1, :].ravel()])
    targets = np.concatenate([ids[:, 1:].ravel(), ids[1:, :].ravel()])
    weights = np.random.default_rng(7).choice([0.1, 1.7, 50.3], len(sources))
    table = pa.table({"source": sources, "target": targets, "weight": weights})
    starts = ids[::8, 0].tolist()
    path = tmp_path / "wide.brimful"
    with bf.Graph.from_arrow(table, path=path, weight="weight", undirected=True) as graph:
        in_memory = bf.sssp(graph, starts, weighted=True)
        assert in_memory.stats["last_traversal"] == "priority_queue"
        with pytest.raises(bf.BudgetError) as caught:
            bf.sssp(graph, starts, weighted=True, budget=1)
        # The states are on disk in the first, and in memory in the second.
        for more in (8 << 20, 12 << 20):
            budget = caught.value.needed_bytes + more
            ordered = bf.sssp(graph, starts, weighted=True, budget=budget)
            assert _distances(ordered).tobytes() == _distances(in_memory).tobytes()
            assert ordered.stats["traversals"]["ordered"] > 20, ordered.stats["traversals"]


@pytest.mark.parametrize("column", ["distance", "parent", "component"])
def test_long_supersteps_visit_few_edges_where_all_fit_unpacked(
    streets: bf.Graph, column: str
) -> None:
    def run(budget: int | None) -> bf.Result:
        if column == "component":
            return bf.scc(streets, method="coloring", budget=budget)
        return bf.bfs(streets, 0, values=column, budget=budget)

    with pytest.raises(bf.BudgetError) as caught:
        run(1)
    unpacked, packed = run(None), run(caught.value.needed_bytes)
    assert unpacked.to_arrow()[column].equals(packed.to_arrow()[column])
    assert unpacked.stats["supersteps"] == packed.stats["supersteps"] > 100
    # Colors have wide frontiers, of which sparse supersteps visit few other edges.
    share = 0.6 if column == "component" else 1 / 3
    assert unpacked.stats["edge_visits"] < share * packed.stats["edge_visits"]


def test_a_plan_knows_that_streets_are_long(streets: bf.Graph) -> None:
    supersteps = bf.bfs(streets, 0).stats["supersteps"]
    forecast = bf.plan(streets, "bfs")
    assert supersteps / 2 < forecast.supersteps < 2 * supersteps
    assert forecast.passes > 5


def test_a_long_chain_is_no_slower_asynchronously(tmp_path: Path) -> None:
    path = tmp_path / "chain.brimful"
    succeed("generate", "chain", path, "--vertices", 50_000, "--quiet")
    visits = {}
    with bf.Graph.open(path) as graph:
        for mode in ("sync", "async"):
            result = bf.sssp(graph, 0, mode=mode)
            assert _distances(result).tolist() == list(range(50_000))
            visits[mode] = result.stats["edge_visits"]
    assert visits["async"] <= 2 * visits["sync"]


def _directed(seed: int, vertices: int, edges: int) -> tuple[np.ndarray, np.ndarray]:
    ends = np.random.default_rng(seed).integers(0, vertices, (2, edges))
    return ends[0], ends[1]


def _components(sources: np.ndarray, targets: np.ndarray, vertices: int) -> np.ndarray:
    """Return the smallest vertex of the strong component of each."""
    matrix = sparse.csr_matrix((np.ones(len(sources)), (sources, targets)), (vertices, vertices))
    _, labels = csgraph.connected_components(matrix, directed=True, connection="strong")
    least = np.full(labels.max() + 1, vertices)
    np.minimum.at(least, labels, np.arange(vertices))
    return least[labels]


@pytest.mark.parametrize("density", [0.4, 1.0, 1.3, 4.0])
def test_strong_components_by_either_method(density: float) -> None:
    vertices = 3000
    for seed in range(4):
        sources, targets = _directed(seed, vertices, int(vertices * density))
        table = pa.table({"source": sources, "target": targets})
        with bf.Graph.from_arrow(table, vertices=vertices) as graph:
            expected = _components(sources, targets, vertices).tolist()
            for method, variant in (
                ("auto", "search"),
                ("search", "search"),
                ("coloring", "strong"),
            ):
                result = bf.scc(graph, method=method)
                assert result.stats["variant"] == variant
                assert result.to_arrow()["component"].to_pylist() == expected, (seed, method)


def test_strong_components_of_an_undirected_graph_are_its_components(streets: bf.Graph) -> None:
    strong, weak = bf.scc(streets), bf.connected_components(streets)
    assert strong.stats["variant"] == weak.stats["variant"] == "union_find"
    assert strong.to_arrow() == weak.to_arrow()
    assert strong.stats["edge_visits"] <= streets.arcs
