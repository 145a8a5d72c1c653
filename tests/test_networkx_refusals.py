"""Calls that the backend of NetworkX refuses, and errors of NetworkX itself."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import networkx as nx
import pytest

import brimful as bf
from networkx_graphs import made, no_warning_of_the_cache

__all__ = ["no_warning_of_the_cache"]  # The fixture.


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


REFUSED: list[tuple[Callable[[Any], Any], str]] = [
    (lambda G: nx.pagerank(G, nstart={4: 1}), "equal ranks"),
    (lambda G: nx.pagerank(G, dangling={4: 1}), "dangling"),
    (lambda G: nx.pagerank(G, personalization={4: 1, 6: -2}), "at least 0"),
    (lambda G: nx.pagerank(G, alpha=1.5), "alpha"),
    (lambda G: nx.pagerank(G, alpha=1, personalization={4: 1}), "starts from the personalization"),
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


def test_networkx_ranks_from_equal_ranks_if_alpha_is_1() -> None:
    oracle = nx.Graph([(0, 1)])
    oracle.add_node(2)
    with bf.Graph.from_networkx(oracle) as graph, nx.config(fallback_to_nx=True):
        ranks = nx.pagerank(graph, alpha=1, personalization={2: 1})
    assert ranks == pytest.approx(dict.fromkeys(oracle, 1 / 3))


def test_negative_weights_are_refused() -> None:
    oracle = nx.DiGraph()
    oracle.add_weighted_edges_from([(0, 1, -1.0), (1, 2, 1.0)])
    with bf.Graph.from_networkx(oracle) as graph:
        with pytest.raises(NotImplementedError):
            nx.single_source_bellman_ford_path_length(graph, 0)
        assert nx.has_path(graph, 0, 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda graph, **on: nx.shortest_path(graph, 0, 99, **on),
        lambda graph, **on: nx.shortest_path(graph, 77, 1, **on),
        lambda graph, **on: nx.has_path(graph, 0, 99, **on),
        lambda graph, **on: nx.number_of_walks(nx.Graph(), 2, **on),
        lambda graph, **on: nx.descendants(graph, 99, **on),
        lambda graph, **on: nx.descendants(nx.DiGraph(graph), 99, **on),
        lambda graph, **on: nx.triangles(graph, 99, **on),
        lambda graph, **on: nx.triangles(nx.Graph(), 5, **on),
        lambda graph, **on: nx.clustering(nx.Graph(), 5, **on),
        lambda graph, **on: nx.ego_graph(nx.Graph(), 5, undirected=True, **on),
        lambda graph, **on: nx.ego_graph(nx.MultiDiGraph(), 5, undirected=True, **on),
    ],
)
def test_errors_say_what_networkx_says(call: Any) -> None:
    texts = []
    for on in ({}, {"backend": "brimful"}):
        with pytest.raises(nx.NetworkXException) as raised:
            call(nx.path_graph(4), **on)
        texts.append((type(raised.value), str(raised.value)))
    assert texts[0] == texts[1]
