"""Conversions of graphs of NetworkX: ids, weights, the cache, the budget, the priority."""

from __future__ import annotations

import copy
import logging
import os
import pickle
import subprocess
import sys
from typing import Any

import networkx as nx
import numpy as np
import pytest

import brimful as bf
from networkx_graphs import made, near, no_warning_of_the_cache, plain

__all__ = ["no_warning_of_the_cache"]  # The fixture.


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


@pytest.mark.parametrize("weight", [2**53 + 1, np.int64(2**53 + 1), 10**400])
def test_integers_that_a_float_rounds_are_refused_beside_a_float(weight: Any) -> None:
    graph = nx.Graph([(0, 1, {"weight": 0.5}), (1, 2, {"weight": weight})])
    with pytest.raises(NotImplementedError):
        nx.pagerank(graph, backend="brimful")


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
