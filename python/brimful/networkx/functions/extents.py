"""Greatest distances: of each node, and of the whole graph."""

from __future__ import annotations

from typing import Any

import networkx as nx

from brimful import algorithms, searches
from brimful._native import MAX_SOURCES
from brimful.networkx.answers import count_groups
from brimful.networkx.function import function
from brimful.networkx.operand import Operand, operand
from brimful.networkx.views import view


@function(reads="often")
def eccentricity(G: Any, v: Any = None, sp: Any = None, weight: Any = None) -> Any:
    """Return the greatest distance from a node, or from each of several; 64 searches at a time."""
    graph = operand(G)
    if sp is not None or len(graph) == 0 or graph.weighted(weight):
        return nx.eccentricity.orig_func(view(graph), v, sp, weight)
    extents = {}
    nodes = list(graph.nodes_in(v))
    for start in range(0, len(nodes), MAX_SOURCES):
        sources = [graph.vertex(node) for node in nodes[start : start + MAX_SOURCES]]
        rows = searches.eccentricity(graph.graph, sources)
        for vertex, farthest, reached in rows:
            if reached + 1 < len(graph):
                raise _disconnected(graph)
            extents[graph.node(vertex)] = farthest
    if v in graph:
        return extents[v]
    return {node: extents[node] for node in nodes}


@function(reads="often")
def diameter(G: Any, e: Any = None, usebounds: bool = False, weight: Any = None) -> Any:
    """Return the greatest distance of any two nodes, by iFUB."""
    graph = operand(G)
    if e is not None or len(graph) == 0 or graph.weighted(weight):
        return nx.diameter.orig_func(view(graph), e, usebounds, weight)
    find = algorithms.scc if graph.is_directed() else algorithms.connected_components
    if count_groups(find(graph.graph)) > 1:
        raise _disconnected(graph)
    ((_, _, distance),) = searches.diameter(graph.graph)
    return distance


def _disconnected(graph: Operand) -> nx.NetworkXError:
    kind = "digraph is not strongly" if graph.is_directed() else "graph is not"
    return nx.NetworkXError(f"Found infinite path length because the {kind} connected")
