"""Edges and nodes that hold components together, and trusses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx

from brimful import algorithms, structures
from brimful.networkx.function import function, require_node
from brimful.networkx.operand import operand
from brimful.networkx.views import view


@function()
def bridges(G: Any, root: Any = None) -> Iterator[tuple[Any, Any]]:
    """Yield the bridges of the graph, or of the root's component."""
    graph = operand(G)
    if root is not None:
        require_node(graph, root, f"Root node {root} is not in graph")
    if len(graph) == 0:
        return iter(())
    found: Iterator[Any] = iter(structures.bridges(graph.graph))
    if root is not None:
        components = algorithms.connected_components(graph.graph)
        own = components[graph.vertex(root)]
        found = (ends for ends in found if components[ends[0]] == own)
    return ((graph.node(one), graph.node(other)) for one, other in found)


@function()
def has_bridges(G: Any, root: Any = None) -> bool:
    """Return whether the graph has a bridge."""
    return next(bridges(G, root), None) is not None


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
