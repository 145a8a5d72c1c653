"""NetworkX's functions on graphs of brimful: NetworkX itself is the oracle.

`networkx_suite.py` runs NetworkX's own tests; here is what these do not see: graphs of brimful
themselves, views of them, nodes of any kind, budgets, caches and refusals.
"""

from __future__ import annotations

import copy
import inspect
import logging
import operator
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Set
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow as pa
import pytest

import brimful as bf
from brimful import similarities
from brimful.networkx.info import FUNCTIONS, get_info
from brimful.networkx.interface import BACKEND

KINDS = [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]
#: Node objects that brimful has no ids for.
NAMES: list[Any] = ["a", 7, 2.5, ("x", 1), frozenset({3}), -1, "b", b"bytes"]


@pytest.fixture(autouse=True)
def no_warning_of_the_cache() -> Iterator[None]:
    """NetworkX warns whenever it uses a conversion again."""
    with nx.config(warnings_to_ignore={"cache"}):
        yield


def made(kind: type[Any], *, weighted: bool = False, loops: bool = True, seed: int = 1) -> Any:
    """A graph of integers with a hub, an isolated node, and two components or more."""
    chance = random.Random(seed)
    graph = kind()
    graph.add_nodes_from(range(0, 60, 2))
    edges = []
    for _ in range(70):
        ends = [chance.choice([4, *range(0, 50, 2)]) for _ in range(2)]
        edges.append((*ends, {"weight": chance.randrange(1, 9) / 4} if weighted else {}))
    # A view numbers parallel edges in the order of their weights.
    for source, target, data in sorted(edges, key=lambda edge: edge[2].get("weight", 1)):
        if loops or source != target:
            graph.add_edge(source, target, **data)
    return graph


def renamed(graph: Any) -> Any:
    """The graph with nodes of many kinds."""
    names = {node: (node, "node") if node % 3 else f"node {node}" for node in graph}
    return nx.relabel_nodes(graph, names)


def plain(answer: Any) -> Any:
    """An answer made of dictionaries, tuples and lists in a fixed order."""
    if isinstance(answer, Mapping):
        return {key: plain(answer[key]) for key in sorted(answer, key=repr)}
    if isinstance(answer, tuple):
        return tuple(plain(one) for one in answer)
    if isinstance(answer, Iterator):
        return sorted((plain(one) for one in answer), key=repr)
    return sorted(answer, key=repr) if isinstance(answer, Set) else answer


def near(answer: Any) -> Any:
    """What is equal to an answer within the tolerance of a sum."""
    if isinstance(answer, dict):
        return {key: near(value) for key, value in answer.items()}
    if isinstance(answer, tuple | list):
        return type(answer)(near(one) for one in answer)
    return pytest.approx(answer, rel=1e-9) if isinstance(answer, float) else answer


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


def test_attributes_that_brimful_does_not_hold_are_refused() -> None:
    graph = nx.path_graph(3)
    graph.add_node(0, color="red")
    with pytest.raises(NotImplementedError):
        nx.k_core(graph, backend="brimful")
    graph = nx.Graph([(0, 1, {"weight": 1, "color": "red"})])
    with pytest.raises(NotImplementedError):
        nx.k_core(graph, backend="brimful")
    with pytest.raises(NotImplementedError):
        nx.ego_graph(nx.MultiGraph([(0, 1), (0, 1)]), 0, backend="brimful")


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


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_view_is_the_graph(kind: type[Any], weighted: bool) -> None:
    oracle = made(kind, weighted=weighted)
    with bf.Graph.from_networkx(oracle) as graph:
        view = graph.as_networkx()
        assert nx.utils.graphs_equal(view.copy(), oracle)
        assert list(view) == sorted(oracle) and len(view) == len(oracle)
        assert view.number_of_edges() == view.size() == oracle.number_of_edges()
        assert view.number_of_edges(4, 6) == oracle.number_of_edges(4, 6)
        assert dict(view.degree) == dict(oracle.degree)
        assert dict(view.degree(weight="weight")) == near(dict(oracle.degree(weight="weight")))
        assert dict(view.adjacency()) == dict(oracle.adjacency())
        for node in oracle:
            assert sorted(view.neighbors(node)) == sorted(oracle.neighbors(node))
            assert len(view[node]) == len(oracle[node])
            assert all(
                view.has_edge(node, other) == oracle.has_edge(node, other) for other in oracle
            )
            if oracle.is_directed():
                assert set(view.predecessors(node)) == set(oracle.predecessors(node))
                assert view.in_degree(node) == oracle.in_degree(node)
        assert "nobody" not in view and not view.has_edge(4, "nobody") and [] not in view
        with pytest.raises(KeyError):
            view["nobody"]
        with pytest.raises(nx.NetworkXError, match="Frozen"):
            view.add_edge(4, 6)
        for attributes in (view.nodes[4], next(iter(view.edges(data=True)))[-1]):
            assert type(copy.deepcopy(attributes)) is dict
            for change in (
                lambda own: own.update(seen=True),
                lambda own: own.pop("weight", None),
                lambda own: operator.setitem(own, "seen", True),
            ):
                with pytest.raises(nx.NetworkXError, match="no attributes of your own"):
                    change(attributes)
        part = view.subgraph([4, 6, 8])
        assert nx.utils.graphs_equal(part.copy(), oracle.subgraph([4, 6, 8]).copy())


def test_a_view_of_a_kept_graph_is_pickled_by_its_path(tmp_path: Path) -> None:
    with bf.Graph.from_networkx(made(nx.DiGraph), path=tmp_path / "kept.brimful") as graph:
        view = graph.as_networkx()
        twin = pickle.loads(pickle.dumps(view))
        assert list(twin.edges) == list(view.edges)
        assert twin.number_of_edges() == view.number_of_edges()
        assert dict(nx.pagerank(twin)) == dict(nx.pagerank(view))


def test_answers_read_from_a_result() -> None:
    oracle = made(nx.DiGraph)
    with bf.Graph.from_networkx(oracle, budget="100M") as graph:
        ranks = nx.pagerank(graph)
        assert ranks.result.stats["budget_bytes"] == 100 << 20
        assert not isinstance(ranks, dict) and isinstance(ranks, Mapping)
        assert ranks.result.stats["algorithm"] == "pagerank"
        assert ranks.result.top(1)[0][1] == max(ranks.values())
        lengths = nx.single_source_shortest_path_length(graph, 4)
        expected = nx.single_source_shortest_path_length(oracle, 4)
        assert lengths == expected and len(lengths) == len(expected)
        assert 58 in graph and 58 not in lengths and lengths.get(58) is None
        assert 2 in lengths.values() and 99 not in lengths.values()
        with pytest.raises(KeyError):
            lengths[58]
        largest = max(nx.strongly_connected_components(graph), key=len)
        assert largest == max(nx.strongly_connected_components(oracle), key=len)
        assert 58 not in largest and "nobody" not in largest and largest & {58} == set()


def test_strings_are_nodes() -> None:
    oracle = nx.relabel_nodes(made(nx.Graph), str)
    with bf.Graph.from_networkx(oracle) as graph:
        assert plain(nx.connected_components(graph)) == plain(nx.connected_components(oracle))
        assert nx.node_connected_component(graph, "4") == nx.node_connected_component(oracle, "4")
        assert dict(nx.degree_centrality(graph)) == near(nx.degree_centrality(oracle))
        assert nx.utils.graphs_equal(graph.as_networkx().copy(), oracle)


def test_integer_weights_make_integer_distances() -> None:
    graph = nx.Graph()
    graph.add_weighted_edges_from([("a", "b", 2), ("b", "c", 3)])
    lengths = nx.single_source_dijkstra_path_length(graph, "a", backend="brimful")
    assert lengths == {"a": 0, "b": 2, "c": 5} and {type(one) for one in lengths.values()} == {int}
    graph["a"]["b"]["weight"] = 2.5
    graph.__networkx_cache__.clear()
    assert nx.dijkstra_path_length(graph, "a", "c", backend="brimful") == 5.5


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), "heavy", None, 2**60])
def test_weights_that_brimful_cannot_hold_are_refused(weight: Any) -> None:
    graph = nx.Graph()
    graph.add_edge(0, 1, weight=weight)
    with pytest.raises(NotImplementedError):
        nx.pagerank(graph, backend="brimful")
    assert nx.pagerank(graph, weight=None, backend="brimful") == {0: 0.5, 1: 0.5}


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


@pytest.mark.parametrize("budget", ["1Q", 1024])
def test_a_graph_is_converted_again_after_a_wrong_budget(budget: Any) -> None:
    graph = nx.path_graph(5)
    wrong = r"is not a memory size|is too small"
    for _ in range(2):
        with (
            nx.config.backends.brimful(budget=budget),
            pytest.raises(bf.BrimfulError, match=wrong),
        ):
            nx.pagerank(graph, backend="brimful")
    ranks = nx.pagerank(graph, backend="brimful")
    assert ranks == pytest.approx(nx.pagerank(graph), abs=1e-5)
    # Conversions that succeeded stay, when one with another attribute fails.
    before = dict(graph.__networkx_cache__["backends"]["brimful"])
    nx.set_edge_attributes(graph, 2.0, "cost")
    graph.__networkx_cache__["backends"] = {"brimful": dict(before)}
    with (
        nx.config.backends.brimful(budget=budget),
        pytest.raises(bf.BrimfulError, match=wrong),
    ):
        nx.pagerank(graph, weight="cost", backend="brimful")
    assert graph.__networkx_cache__["backends"]["brimful"] == before


def test_a_conversion_is_cached_and_keeps_the_budget() -> None:
    graph = made(nx.Graph, weighted=True)
    first = nx.pagerank(graph, backend="brimful")
    with (
        nx.config(warnings_to_ignore=set()),
        pytest.warns(UserWarning, match="saved to cache"),
    ):
        assert nx.pagerank(graph, backend="brimful") == first
    graph.add_edge(58, 4)
    assert nx.pagerank(graph, backend="brimful") != first
    graph.add_edge(56, 4)
    with nx.config.backends.brimful(budget=1), pytest.raises(bf.BudgetError):
        nx.connected_components(graph, backend="brimful")


def test_copies_of_a_graph_leave_its_conversion_behind() -> None:
    graph = made(nx.Graph)
    ranks = nx.pagerank(graph, backend="brimful")
    for twin in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph)):
        assert nx.utils.graphs_equal(twin, graph)
        assert nx.pagerank(twin, backend="brimful") == ranks


def test_priority_converts_graphs_for_which_it_pays(caplog: pytest.LogCaptureFixture) -> None:
    graph = made(nx.Graph)
    caplog.set_level(logging.DEBUG, logger="networkx")
    with nx.config.backend_priority(algos=["brimful"]):
        nx.triangles(graph)
        assert "fewer than 100000 edges" in caplog.text
        with nx.config.backends.brimful(least_edges=1):
            nx.number_connected_components(graph)
            assert "takes longer" in caplog.text
            assert "Using backend 'brimful'" not in caplog.text
            nx.triangles(graph)
            assert "Using backend 'brimful' for call to 'triangles'" in caplog.text
            nx.number_connected_components(graph)
            assert "Using cached converted graph" in caplog.text


REFUSED: list[tuple[Callable[[Any], Any], str]] = [
    (lambda G: nx.pagerank(G, nstart={4: 1}), "equal ranks"),
    (lambda G: nx.pagerank(G, dangling={4: 1}), "dangling"),
    (lambda G: nx.pagerank(G, personalization={4: 1, 6: -2}), "at least 0"),
    (lambda G: nx.pagerank(G, alpha=1.5), "alpha"),
    (lambda G: nx.hits(G, normalized=False), "sum 1"),
    (lambda G: nx.clustering(G), "direction"),
    (lambda G: nx.single_target_shortest_path_length(G, 4), "along its edges"),
    (lambda G: nx.shortest_path_length(G, target=4), "along its edges"),
    (lambda G: nx.shortest_path(G, target=4), "along its edges"),
    (lambda G: nx.dijkstra_path_length(G, 4, 6, weight=lambda u, v, d: 1), "not a function"),
    (lambda G: nx.average_shortest_path_length(G, method="floyd-warshall"), "matrix"),
]


@pytest.mark.parametrize(("call", "reason"), REFUSED)
def test_refusals_have_reasons(
    call: Callable[[Any], Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="networkx")
    with bf.Graph.from_networkx(made(nx.DiGraph)) as graph, pytest.raises(NotImplementedError):
        call(graph)
    assert reason in caplog.text


def test_negative_weights_are_refused() -> None:
    oracle = nx.DiGraph()
    oracle.add_weighted_edges_from([(0, 1, -1.0), (1, 2, 1.0)])
    with bf.Graph.from_networkx(oracle) as graph:
        with pytest.raises(NotImplementedError):
            nx.single_source_bellman_ford_path_length(graph, 0)
        assert nx.has_path(graph, 0, 2)


def test_other_functions_run_on_a_view_where_a_fallback_is_allowed() -> None:
    oracle = made(nx.Graph)
    with bf.Graph.from_networkx(oracle) as graph:
        with pytest.raises(NotImplementedError):
            nx.betweenness_centrality(graph)
        with nx.config(fallback_to_nx=True):
            assert nx.betweenness_centrality(graph) == near(nx.betweenness_centrality(oracle))
            assert nx.diameter(nx.ego_graph(graph, 4)) == nx.diameter(nx.ego_graph(oracle, 4))


def test_the_environment_sets_the_priority() -> None:
    code = (
        "import logging, networkx as nx\n"
        "logging.basicConfig(level=logging.DEBUG)\n"
        "with nx.config.backends.brimful(least_edges=1): nx.triangles(nx.karate_club_graph())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"NETWORKX_BACKEND_PRIORITY": "brimful"},
    )
    assert "Using backend 'brimful' for call to 'triangles'" in done.stderr


def test_the_list_of_functions_is_complete() -> None:
    for module in set(FUNCTIONS.values()):
        names = vars(import_module(f"brimful.networkx.functions.{module}")).items()
        own = {name for name, item in names if hasattr(item, "refusals") and name in vars(nx)}
        listed = {name for name, home in FUNCTIONS.items() if home == module}
        assert listed <= own and own - listed <= FUNCTIONS.keys(), module


def test_functions_have_the_parameters_of_networkx() -> None:
    for name in FUNCTIONS:
        original = nx.utils.backends._registered_algorithms[name].orig_func
        parameters = inspect.signature(original).parameters.values()
        own = inspect.signature(getattr(BACKEND, name)).parameters.values()
        assert [(p.name, p.default, p.kind) for p in own] == [
            (p.name, p.default, p.kind) for p in parameters
        ], name


def test_networkx_finds_the_backend() -> None:
    (backend,) = entry_points(group="networkx.backends", name="brimful")
    (info,) = entry_points(group="networkx.backend_info", name="brimful")
    assert backend.load() is BACKEND and info.load() is get_info
    assert "brimful" in (nx.pagerank.__doc__ or "")
    assert set(nx.config.backends.brimful) == {"budget", "least_edges"}
    with pytest.raises(AttributeError, match="no function 'greedy_color'"):
        BACKEND.greedy_color  # noqa: B018


def test_neither_package_loads_the_other() -> None:
    heavy = "'brimful._native', 'pyarrow', 'brimful.networkx.interface'"
    for code in (
        "import sys, brimful; brimful.Graph; assert 'networkx' not in sys.modules",
        f"import sys, networkx; print([name for name in ({heavy}) if name in sys.modules])",
    ):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout in ("", "[]\n")


@pytest.mark.parametrize(
    "call",
    [
        lambda graph, **on: nx.shortest_path(graph, 0, 99, **on),
        lambda graph, **on: nx.shortest_path(graph, 77, 1, **on),
        lambda graph, **on: nx.has_path(graph, 0, 99, **on),
        lambda graph, **on: nx.number_of_walks(nx.Graph(), 2, **on),
        lambda graph, **on: nx.descendants(graph, 99, **on),
        lambda graph, **on: nx.descendants(nx.DiGraph(graph), 99, **on),
    ],
)
def test_errors_say_what_networkx_says(call: Any) -> None:
    texts = []
    for on in ({}, {"backend": "brimful"}):
        with pytest.raises(nx.NetworkXException) as raised:
            call(nx.path_graph(4), **on)
        texts.append((type(raised.value), str(raised.value)))
    assert texts[0] == texts[1]
