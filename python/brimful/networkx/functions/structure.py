"""Edges and nodes that hold components together, and trusses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx

from brimful import algorithms, structures
from brimful.networkx.function import function, require_node
from brimful.networkx.operand import operand
from brimful.networkx.views import view

#: The truss number of an edge in no triangle.
_NO_TRIANGLE = 2


@function()
def bridges(G: Any, root: Any = None) -> Iterator[tuple[Any, Any]]:
    """Yield the bridges of the graph, or of the root's component."""
    graph = operand(G)
    if root is not None:
        require_node(graph, root, f"Root node {root} is not in graph")
    if len(graph) == 0:
        return iter(())
    ends_of_bridges: Iterator[Any] = iter(structures.bridges(graph.graph))
    if root is not None:
        components = algorithms.connected_components(graph.graph)
        own = components[graph.vertex(root)]
        ends_of_bridges = (ends for ends in ends_of_bridges if components[ends[0]] == own)
    return ((graph.node(one), graph.node(other)) for one, other in ends_of_bridges)


@function()
def has_bridges(G: Any, root: Any = None) -> bool:
    """Return whether the graph has a bridge."""
    return next(bridges(G, root), None) is not None


@function(reads="often")
def local_bridges(
    G: Any, with_span: bool = True, weight: str | None = None
) -> Iterator[tuple[Any, ...]]:
    """Yield the edges in no triangle, and the length of the path around each."""
    graph = operand(G)
    if len(graph) == 0:
        return iter(())
    seen = view(graph, dispatched=False)
    bridge_rows = (
        ends
        for one, other, truss in structures.ktruss(graph.graph)
        if truss == _NO_TRIANGLE
        # To NetworkX a node with a self-loop is a common neighbor of both ends of its edges.
        for ends in [(graph.node(one), graph.node(other))]
        if not any(seen.has_edge(end, end) for end in ends)
    )
    if with_span is not True:
        return bridge_rows
    return ((*ends, _way_around(seen, ends, weight)) for ends in bridge_rows)


def _way_around(G: Any, ends: tuple[Any, Any], weight: str | None) -> float:
    """Return the length of a shortest path between the ends of an edge without that edge."""

    def length(one: Any, other: Any, attributes: dict[str, Any]) -> Any:
        if one in ends and other in ends:
            return None
        return 1 if weight is None else attributes.get(weight, 1)

    try:
        around: float = nx.dijkstra_path_length.orig_func(G, *ends, weight=length)
    except nx.NetworkXNoPath:
        return float("inf")
    return around


@function()
def articulation_points(G: Any) -> Iterator[Any]:
    """Yield the nodes whose removal splits a component."""
    graph = operand(G)
    if len(graph) == 0:
        return iter(())
    result = structures.articulation_points(graph.graph)
    return iter(graph.nodes_with(result, lambda vertex, member: member or None))


@function(reads="often")
def k_truss(G: Any, k: int) -> Any:
    """Return the subgraph whose edges are each in k - 2 triangles of it, without other nodes."""
    graph = operand(G)
    if len(graph) == 0:
        return nx.Graph()
    if graph.number_of_loops():
        raise nx.NetworkXNotImplemented(
            "Input graph has self loops which is not permitted; "
            "Consider using G.remove_edges_from(nx.selfloop_edges(G))."
        )
    kept = (
        (graph.node(one), graph.node(other))
        for one, other, truss in structures.ktruss(graph.graph)
        if truss >= k
    )
    return view(graph).edge_subgraph(kept).copy()
