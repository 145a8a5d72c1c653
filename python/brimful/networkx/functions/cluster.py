"""Triangles and clustering coefficients."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import networkx as nx

from brimful import algorithms
from brimful.graph import Graph
from brimful.networkx.function import directed, function, given
from brimful.networkx.operand import Operand, operand
from brimful.result import Result

DIRECTED = directed("brimful counts triangles whatever the direction of their edges")
WEIGHTED = given("weight", "brimful counts triangles, and not their weights")


def _of_nodes(graph: Operand, nodes: Any, run: Callable[[Graph], Result]) -> Any:
    """Return the values of all nodes, of one, or of several."""
    answer = graph.values(run(graph.graph)) if len(graph) else {}
    if nodes is None:
        return answer
    if nodes in graph:
        return answer[nodes]
    return {node: answer[node] for node in graph.nodes_in(nodes)}


def _refuse_multigraph(graph: Operand) -> None:
    if graph.is_multigraph():
        raise nx.NetworkXNotImplemented("not implemented for multigraph type")


@function(reads="often")
def triangles(G: Any, nodes: Any = None) -> Any:
    """Return the number of triangles that a node is in."""
    graph = operand(G)
    if nodes is not None:
        _refuse_multigraph(graph)
    return _of_nodes(graph, nodes, algorithms.triangles)


@function(DIRECTED, WEIGHTED, reads="often")
def clustering(G: Any, nodes: Any = None, weight: Any = None) -> Any:
    """Return the share of the pairs of neighbors of a node that are joined."""
    graph = operand(G)
    _refuse_multigraph(graph)
    return _of_nodes(graph, nodes, algorithms.clustering)


@function(DIRECTED, reads="often")
def transitivity(G: Any) -> float:
    """Return the share of the pairs of edges with a common node that are in a triangle."""
    graph = operand(G)
    _refuse_multigraph(graph)
    if len(graph) == 0:
        return 0
    counts: Iterable[Any] = algorithms.triangles(graph.graph).values()
    corners = 2 * sum(counts)
    if corners == 0:
        return 0
    loops = graph.loops()
    arcs: Iterable[tuple[Any, Any]] = algorithms.degrees(graph.graph).items()
    degrees = (count - loops[vertex] for vertex, count in arcs)
    share: float = corners / sum(degree * (degree - 1) for degree in degrees)
    return share
