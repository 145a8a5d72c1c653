"""Views of graphs of brimful, and answers that NetworkX reads like its own."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import brimful as bf
from networkx_graphs import KINDS, made, near, no_warning_of_the_cache, plain

__all__ = ["no_warning_of_the_cache"]  # The fixture.


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
                with pytest.raises(
                    nx.NetworkXError, match="a view of a brimful graph keeps its attributes"
                ):
                    change(attributes)
        part = view.subgraph([4, 6, 8])
        assert nx.utils.graphs_equal(part.copy(), oracle.subgraph([4, 6, 8]).copy())


@pytest.mark.parametrize("name", [int, str])
@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiDiGraph])
def test_a_view_has_in_edges(kind: type[Any], name: Callable[[int], Any]) -> None:
    oracle = nx.relabel_nodes(made(kind, weighted=True), {node: name(node) for node in range(60)})
    with bf.Graph.from_networkx(oracle) as graph:
        view, copied = graph.as_networkx(), graph.to_networkx()
        assert plain(iter(view.in_edges(data=True))) == plain(iter(copied.in_edges(data=True)))
        assert dict(view.pred.items()) == dict(copied.pred.items())
        turned = view.reverse(copy=False)
        assert plain(iter(turned.edges)) == plain(iter(copied.reverse().edges))
        assert nx.utils.graphs_equal(turned.copy(), copied.reverse())


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


def test_other_functions_run_on_a_view_where_a_fallback_is_allowed() -> None:
    oracle = made(nx.Graph)
    with bf.Graph.from_networkx(oracle) as graph:
        with pytest.raises(NotImplementedError):
            nx.betweenness_centrality(graph)
        with nx.config(fallback_to_nx=True):
            assert nx.betweenness_centrality(graph) == near(nx.betweenness_centrality(oracle))
            assert nx.diameter(nx.ego_graph(graph, 4)) == nx.diameter(nx.ego_graph(oracle, 4))
