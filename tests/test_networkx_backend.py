"""NetworkX's functions on graphs of brimful: NetworkX itself is the oracle.

`networkx_suite.py` runs NetworkX's own tests; here is what these do not see: graphs of brimful
themselves, views of them, nodes of any kind, budgets, caches and refusals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import pyarrow as pa
import pytest

import brimful as bf
from brimful import similarities
from networkx_graphs import KINDS, made, near, no_warning_of_the_cache, plain

__all__ = ["no_warning_of_the_cache"]  # The fixture.

#: Node objects that brimful has no ids for.
NAMES: list[Any] = ["a", 7, 2.5, ("x", 1), frozenset({3}), -1, "b", b"bytes"]


def renamed(graph: Any) -> Any:
    """The graph with nodes of many kinds."""
    names = {node: (node, "node") if node % 3 else f"node {node}" for node in graph}
    return nx.relabel_nodes(graph, names)


#: Calls that all kinds of graphs answer.
CALLS: dict[str, Callable[..., Any]] = {
    "pagerank": lambda G, n, **o: nx.pagerank(G, tol=1e-12, max_iter=500, **o),
    "pagerank alone": lambda G, n, **o: nx.pagerank(
        G, personalization={n(4): 2, n(8): 2, n(6): 0}, weight=None, tol=1e-12, max_iter=500, **o
    ),
    "pagerank uneven": lambda G, n, **o: nx.pagerank(
        G, personalization={n(4): 2, n(8): 0.5, n(6): 0}, tol=1e-12, max_iter=500, **o
    ),
    "components": lambda G, n, **o: (
        nx.weakly_connected_components if G.is_directed() else nx.connected_components
    )(G, **o),
    "number": lambda G, n, **o: (
        nx.number_weakly_connected_components if G.is_directed() else nx.number_connected_components
    )(G, **o),
    "lengths": lambda G, n, **o: nx.single_source_shortest_path_length(G, n(4), **o),
    "near": lambda G, n, **o: nx.single_source_shortest_path_length(G, n(4), cutoff=1.5, **o),
    "dijkstra": lambda G, n, **o: nx.single_source_dijkstra_path_length(G, n(4), **o),
    "cut off": lambda G, n, **o: nx.multi_source_dijkstra_path_length(
        G, {n(4), n(6)}, cutoff=1.75, **o
    ),
    "sources alone": lambda G, n, **o: nx.multi_source_dijkstra_path_length(
        G, {n(4), n(6)}, cutoff=-1, **o
    ),
    "walks": lambda G, n, **o: nx.number_of_walks(G, 3, **o),
    "isolates": lambda G, n, **o: nx.isolates(G, **o),
    "number of isolates": lambda G, n, **o: nx.number_of_isolates(G, **o),
    "is_empty": lambda G, n, **o: nx.is_empty(G, **o),
    "self-loops": lambda G, n, **o: nx.number_of_selfloops(G, **o),
    "bellman_ford": lambda G, n, **o: nx.single_source_bellman_ford_path_length(G, n(4), **o),
    "length": lambda G, n, **o: nx.shortest_path_length(G, n(4), n(10), weight="weight", **o),
    "all lengths": lambda G, n, **o: nx.shortest_path_length(G, **o),
    "has_path": lambda G, n, **o: (
        nx.has_path(G, n(4), n(6), **o),
        nx.has_path(G, n(4), n(58), **o),
    ),
    "descendants": lambda G, n, **o: set(nx.descendants(G, n(4), **o)),
    "degree": lambda G, n, **o: nx.degree_centrality(G, **o),
    "at distance": lambda G, n, **o: nx.descendants_at_distance(G, n(4), 2, **o),
    "is_isolate": lambda G, n, **o: (nx.is_isolate(G, n(4), **o), nx.is_isolate(G, n(58), **o)),
    "some harmonic": lambda G, n, **o: nx.harmonic_centrality(G, sources=[n(4), n(6)], **o),
}
#: Calls that undirected graphs answer besides.
UNDIRECTED: dict[str, Callable[..., Any]] = {
    "component": lambda G, n, **o: set(nx.node_connected_component(G, n(4), **o)),
    "is_connected": lambda G, n, **o: nx.is_connected(G, **o),
    "triangles": lambda G, n, **o: nx.triangles(G, **o),
    "to": lambda G, n, **o: nx.single_target_shortest_path_length(G, n(4), **o),
    "closeness": lambda G, n, **o: nx.closeness_centrality(G, n(4), **o),
    "bridges": lambda G, n, **o: set(map(frozenset, nx.bridges(G, **o))),
    "some bridges": lambda G, n, **o: set(map(frozenset, nx.bridges(G, n(58), **o))),
    "has_bridges": lambda G, n, **o: nx.has_bridges(G, **o),
    "articulation": lambda G, n, **o: nx.articulation_points(G, **o),
}
#: Calls that undirected graphs without parallel edges answer besides.
SIMPLE: dict[str, Callable[..., Any]] = {
    "clustering": lambda G, n, **o: nx.clustering(G, **o),
    "some clustering": lambda G, n, **o: nx.clustering(G, [n(4), n(6), "nobody"], **o),
    "one triangle": lambda G, n, **o: nx.triangles(G, n(4), **o),
    "average": lambda G, n, **o: nx.average_clustering(G, count_zeros=False, **o),
    "transitivity": lambda G, n, **o: nx.transitivity(G, **o),
    "jaccard": lambda G, n, **o: nx.jaccard_coefficient(G, [(n(4), n(6)), (n(8), n(10))], **o),
    "adamic_adar": lambda G, n, **o: nx.adamic_adar_index(G, [(n(4), n(6))], **o),
    "allocation": lambda G, n, **o: nx.resource_allocation_index(G, [(n(4), n(6))], **o),
    "attachment": lambda G, n, **o: nx.preferential_attachment(G, [(n(4), n(6))], **o),
}
#: Calls that directed graphs answer besides.
DIRECTED: dict[str, Callable[..., Any]] = {
    "strong": lambda G, n, **o: nx.strongly_connected_components(G, **o),
    "strong number": lambda G, n, **o: nx.number_strongly_connected_components(G, **o),
    "is_strong": lambda G, n, **o: nx.is_strongly_connected(G, **o),
    "is_weak": lambda G, n, **o: nx.is_weakly_connected(G, **o),
    "in": lambda G, n, **o: nx.in_degree_centrality(G, **o),
    "out": lambda G, n, **o: nx.out_degree_centrality(G, **o),
}


def calls(graph: Any) -> dict[str, Callable[..., Any]]:
    """The calls that a graph answers."""
    if graph.is_directed():
        return CALLS | DIRECTED
    return CALLS | UNDIRECTED | ({} if graph.is_multigraph() else SIMPLE)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_of_brimful_answers_as_networkx_does(kind: type[Any], weighted: bool) -> None:
    oracle = made(kind, weighted=weighted)
    with bf.Graph.from_networkx(oracle) as graph:
        for name, call in calls(oracle).items():
            expected = plain(call(oracle, lambda node: node))
            for asked in (graph, graph.as_networkx()):
                assert plain(call(asked, lambda node: node)) == near(expected), name


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_of_networkx_answers_the_same(kind: type[Any], weighted: bool) -> None:
    oracle = renamed(made(kind, weighted=weighted))

    def name_of(node: int) -> Any:
        return (node, "node") if node % 3 else f"node {node}"

    for name, call in calls(oracle).items():
        expected = call(oracle, name_of)
        answer = call(oracle, name_of, backend="brimful")
        assert isinstance(expected, Iterator) or type(answer) is type(expected), name
        assert plain(answer) == near(plain(expected)), name


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_cores(kind: type[Any]) -> None:
    oracle = made(kind, weighted=True, loops=False)
    with bf.Graph.from_networkx(oracle) as graph:
        assert dict(nx.core_number(graph)) == nx.core_number(oracle)
        assert nx.core_number(oracle, backend="brimful") == nx.core_number(oracle)
        assert nx.utils.graphs_equal(nx.k_core(graph, 2), nx.k_core(oracle, 2))
    oracle.graph["name"] = "a name"
    assert nx.utils.graphs_equal(nx.k_core(oracle, backend="brimful"), nx.k_core(oracle))
    with bf.Graph.from_networkx(nx.Graph([(1, 1)])) as graph, pytest.raises(nx.NetworkXException):
        nx.core_number(graph)
    loops = pa.table({"source": [1, 1], "target": [1, 2]})
    with bf.Graph.from_arrow(loops, undirected=True, self_loops="drop") as graph:
        assert dict(nx.core_number(graph)) == {1: 1, 2: 1}


@pytest.mark.parametrize("weight", [None, "weight"])
def test_local_bridges(weight: str | None) -> None:
    oracle = made(nx.Graph, weighted=True)
    # A bridge, and a cycle without a triangle.
    oracle.add_edges_from([(0, 91), (91, 92), (92, 93), (93, 94), (94, 91)], weight=2)

    def spans(found: Any) -> dict[frozenset[Any], Any]:
        return {frozenset(row[:2]): row[2:] for row in found}

    with bf.Graph.from_networkx(oracle) as graph:
        for with_span in (True, False):
            ours = spans(nx.local_bridges(graph, with_span, weight))
            assert ours == spans(nx.local_bridges(oracle, with_span, weight))
            assert frozenset((0, 91)) in ours


def test_trusses() -> None:
    oracle = made(nx.Graph, weighted=True, loops=False)
    with bf.Graph.from_networkx(oracle) as graph:
        for k in (2, 3, 4):
            assert nx.utils.graphs_equal(nx.k_truss(graph, k), nx.k_truss(oracle, k))
    assert nx.utils.graphs_equal(nx.k_truss(oracle, 3, backend="brimful"), nx.k_truss(oracle, 3))
    with bf.Graph.from_networkx(nx.Graph([(1, 1)])) as graph, pytest.raises(nx.NetworkXException):
        nx.k_truss(graph, 3)


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_greatest_distances(kind: type[Any]) -> None:
    whole = made(kind, weighted=True)
    find = nx.strongly_connected_components if whole.is_directed() else nx.connected_components
    oracle = whole.subgraph(max(find(whole), key=len)).copy()
    some = sorted(oracle)[:3]
    with bf.Graph.from_networkx(oracle) as graph, bf.Graph.from_networkx(whole) as apart:
        for weight in (None, "weight"):
            assert nx.eccentricity(graph, weight=weight) == near(
                nx.eccentricity(oracle, weight=weight)
            )
            for measure in (nx.diameter, nx.radius, nx.periphery):
                assert plain(measure(graph, weight=weight)) == near(
                    plain(measure(oracle, weight=weight))
                )
        assert nx.eccentricity(graph, some) == nx.eccentricity(oracle, some)
        assert nx.eccentricity(graph, some[0]) == nx.eccentricity(oracle, some[0])
        assert nx.diameter(oracle, backend="brimful") == nx.diameter(oracle)
        for measure in (nx.diameter, nx.radius, nx.eccentricity):
            with pytest.raises(nx.NetworkXError, match="infinite path length"):
                measure(apart)


def test_scores_of_pairs_are_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = nx.karate_club_graph()
    pairs = [(0, 9), (33, 1), (0, 9), (5, 5)]
    runs: list[str] = []
    run = similarities.similarity

    def counted(graph: Any, **options: Any) -> Any:
        runs.append(options["measure"])
        return run(graph, **options)

    monkeypatch.setattr(similarities, "similarity", counted)
    with bf.Graph.from_networkx(oracle) as graph:
        for score in (nx.jaccard_coefficient, nx.adamic_adar_index, nx.resource_allocation_index):
            assert plain(score(graph, iter(pairs))) == near(plain(score(oracle, pairs)))
            assert plain(score(graph)) == near(plain(score(oracle)))
            assert list(score(graph, [])) == []
            with pytest.raises(nx.NodeNotFound, match="Node 99 not in G"):
                score(graph, [(0, 99)])
    assert runs == ["jaccard", "adamic_adar", "resource_allocation"]
    with bf.Graph.from_networkx(nx.path_graph(2)) as graph, pytest.raises(ZeroDivisionError):
        list(nx.adamic_adar_index(graph, [(0, 0)]))


def test_hits() -> None:
    oracle = made(nx.DiGraph, weighted=True)
    with bf.Graph.from_networkx(oracle) as graph:
        for answer, expected in zip(nx.hits(graph, max_iter=500), nx.hits(oracle), strict=True):
            assert dict(answer) == pytest.approx(expected, abs=1e-5)
        with pytest.raises(nx.PowerIterationFailedConvergence):
            nx.hits(graph, max_iter=1)


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("kind", KINDS)
def test_paths_are_shortest_paths(kind: type[Any], weight: str | None) -> None:
    oracle = made(kind, weighted=True)
    with bf.Graph.from_networkx(oracle) as graph:
        lengths = nx.shortest_path_length(oracle, 4, weight=weight)
        paths = nx.shortest_path(graph, 4, weight=weight)
        assert set(paths) == set(lengths)
        for target, length in lengths.items():
            for path in (paths[target], nx.shortest_path(graph, 4, target, weight)):
                assert path[0] == 4 and path[-1] == target
                assert nx.path_weight(oracle, path, weight or "hops") == length if weight else True
                assert len(path) - 1 == length or weight
        distances, routes = nx.single_source_dijkstra(graph, 4, weight="weight")
        assert plain(distances) == near(nx.single_source_dijkstra_path_length(oracle, 4))
        assert routes.keys() == distances.keys()
        with pytest.raises(nx.NetworkXNoPath):
            nx.shortest_path(graph, 4, 58, weight)
        with pytest.raises(nx.NodeNotFound):
            nx.shortest_path(graph, 4, "nobody", weight)


def test_paths_pass_cycles_of_weight_zero() -> None:
    edges = [(0, 1, 0), (1, 2, 0), (2, 1, 0), (1, 0, 0), (2, 3, 1), (3, 2, 0), (3, 4, 0)]
    oracle = nx.DiGraph()
    oracle.add_weighted_edges_from(edges)
    for source in oracle:
        paths = nx.single_source_dijkstra_path(oracle, source, backend="brimful")
        lengths = nx.single_source_dijkstra_path_length(oracle, source)
        assert set(paths) == set(lengths)
        for target, path in paths.items():
            assert nx.path_weight(oracle, path, "weight") == lengths[target]
            assert (path[0], path[-1]) == (source, target)


@pytest.mark.parametrize("kind", KINDS)
def test_graphs_without_edges_or_nodes(kind: type[Any]) -> None:
    alone = kind()
    alone.add_nodes_from(NAMES)
    empty = kind()
    for name, call in calls(alone).items():
        if name in ("pagerank", "components", "number", "degree", "all lengths", "in", "out"):
            for graph in (empty, alone):
                answers = call(graph, None), call(graph, None, backend="brimful")
                if isinstance(answers[0], Iterator):
                    answers = tuple(list(answer) for answer in answers)
                assert answers[1] == near(answers[0]), name
