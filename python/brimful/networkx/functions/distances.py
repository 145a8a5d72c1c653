"""Lengths of shortest paths, in edges or in weights, and the nodes within reach."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from typing import Any

import networkx as nx

from brimful import algorithms
from brimful.networkx.answers import Reader
from brimful.networkx.function import directed, function, require_node, require_sources
from brimful.networkx.operand import Operand, operand
from brimful.result import Result

#: Refuses directed graphs: runs follow edges from source to target, never against the direction.
BACKWARDS = directed("brimful searches a directed graph along its edges only")


def towards(call: Mapping[str, Any]) -> str | None:
    """Refuse the shortest paths from all nodes of a directed graph to one."""
    return BACKWARDS(call) if call["source"] is None and call["target"] is not None else None


def distances(
    graph: Operand, sources: Iterable[Any], weight: Any, cutoff: float | None
) -> tuple[Result, Reader]:
    """Return the distances of vertices from the nearest source, and their reader for NetworkX.

    A distance counts edges, or adds up weights if edges have `weight`. The reader returns None for
    a distance beyond the cutoff.

    Raises:
        NotImplementedError: A weight is negative.
    """
    vertices = [graph.vertex(source) for source in sources]
    most = math.inf if cutoff is None else cutoff
    weighted = graph.weighted(weight)
    if weighted:
        result = algorithms.sssp(graph.graph, vertices, weighted=True)
    else:
        steps = None if most > len(graph) else max(0, math.floor(most))
        result = algorithms.bfs(graph.graph, vertices, max_supersteps=steps)
    whole = weighted and graph.whole
    starts = set(vertices)

    def read(vertex: Any, distance: Any) -> Any:
        # NetworkX counts a source as within any cutoff, even a negative one.
        if distance is None or (distance > most and vertex not in starts):
            return None
        return int(distance) if whole else distance

    return result, read


def distance(graph: Operand, source: Any, target: Any, weight: Any) -> Any:
    """Return the distance of one node from another; None: no path leads there."""
    result, read = distances(graph, [source], weight, None)
    vertex = graph.vertex(target)
    return read(vertex, result[vertex])


@function()
def single_source_shortest_path_length(
    G: Any, source: Any, cutoff: float | None = None
) -> Mapping[Any, int]:
    """Return the number of edges from a node to each that it reaches."""
    graph = operand(G)
    require_node(graph, source, f"Source {source} is not in G")
    # NetworkX rounds a fractional cutoff up, and returns the source whatever the cutoff is.
    most = None if cutoff is None or math.isinf(cutoff) else math.ceil(cutoff)
    result, read = distances(graph, [source], None, most)
    return graph.values(result, read)


@function(BACKWARDS)
def single_target_shortest_path_length(
    G: Any, target: Any, cutoff: float | None = None
) -> Mapping[Any, int]:
    """Return the number of edges to a node from each that reaches it."""
    require_node(operand(G), target, f"Target {target} is not in G")
    lengths: Mapping[Any, int] = single_source_shortest_path_length(G, target, cutoff)
    return lengths


@function()
def multi_source_dijkstra_path_length(
    G: Any, sources: Any, cutoff: float | None = None, weight: Any = "weight"
) -> Mapping[Any, Any]:
    """Return the distance of each node from the nearest source."""
    graph = operand(G)
    require_sources(graph, sources)
    result, read = distances(graph, sources, weight, cutoff)
    return graph.values(result, read)


@function()
def single_source_bellman_ford_path_length(
    G: Any, source: Any, weight: Any = "weight"
) -> Mapping[Any, Any]:
    """Return the distance of each node from a source; weights are not negative."""
    graph = operand(G)
    require_node(graph, source, f"Node {source} is not found in the graph")
    return graph.values(*distances(graph, [source], weight, None))


@function()
def dijkstra_path_length(G: Any, source: Any, target: Any, weight: Any = "weight") -> Any:
    """Return the distance of one node from another."""
    graph = operand(G)
    require_node(graph, source, f"Node {source} not found in graph")
    if source == target:
        return 0
    length = distance(graph, source, target, weight) if target in graph else None
    if length is None:
        raise nx.NetworkXNoPath(f"Node {target} not reachable from {source}")
    return length


#: Without negative weights, both algorithms return the same lengths.
bellman_ford_path_length = dijkstra_path_length


@function()
def has_path(G: Any, source: Any, target: Any) -> bool:
    """Return whether a path leads from one node to another."""
    graph = operand(G)
    for end, node in (("Source", source), ("Target", target)):
        require_node(graph, node, f"{end} {node} is not in G")
    return distance(graph, source, target, None) is not None


@function()
def descendants(G: Any, source: Any) -> Set[Any]:
    """Return the nodes that a node reaches, without itself."""
    graph = operand(G)
    if source not in graph:
        kind = "digraph" if G.is_directed() else "graph"
        raise nx.NetworkXError(f"The node {source} is not in the {kind}.")
    result, read = distances(graph, [source], None, None)
    return graph.nodes_with(result, lambda vertex, distance: read(vertex, distance) or None)
