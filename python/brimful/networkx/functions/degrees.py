"""Degree centralities, and nodes without edges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from brimful import algorithms
from brimful.networkx.function import Function, function
from brimful.networkx.operand import operand


def _share(direction: Literal["out", "in", "both"]) -> Function:
    """Return the function that divides the degree of a node by the number of other nodes."""

    @function()
    def centrality(G: Any) -> Mapping[Any, float]:
        graph = operand(G)
        if len(graph) <= 1:
            return dict.fromkeys(graph, 1)
        share = 1.0 / (len(graph) - 1.0)
        degrees = algorithms.degrees(
            graph.graph, direction=direction if graph.is_directed() else "out"
        )
        # An undirected self-loop is one arc, but counts twice in the degree of its node.
        loops = Counter() if graph.is_directed() else graph.loops()
        return graph.values(degrees, lambda vertex, degree: (degree + loops[vertex]) * share)

    return centrality


degree_centrality = _share("both")
in_degree_centrality = _share("in")
out_degree_centrality = _share("out")


@function()
def isolates(G: Any) -> Iterator[Any]:
    """Return an iterator over the nodes without edges."""
    graph = operand(G)
    if len(graph) == 0:
        return iter(())
    degrees = algorithms.degrees(graph.graph, direction="both")
    return (graph.node(vertex) for vertex, degree in degrees.items() if degree == 0)


@function()
def number_of_isolates(G: Any) -> int:
    """Return the number of nodes without edges."""
    return sum(1 for _ in isolates(G))


@function()
def is_empty(G: Any) -> bool:
    """Return whether there are no edges."""
    graph = operand(G)
    return len(graph) == 0 or graph.graph.edges == 0


@function()
def number_of_selfloops(G: Any) -> int:
    """Return the number of edges from a node to itself."""
    graph = operand(G)
    return graph.number_of_loops() if len(graph) else 0
