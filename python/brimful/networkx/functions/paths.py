"""Shortest paths: edges in a breadth-first tree, or a walk back along weights that add up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import networkx as nx

from brimful import algorithms
from brimful.networkx.answers import Reader
from brimful.networkx.function import function, require_node, require_sources
from brimful.networkx.functions.distances import distances, towards
from brimful.networkx.operand import Operand, operand
from brimful.result import Result

#: A result, and the function that turns a vertex and its value into the path to it; None: no path.
_Routes = tuple[Result, Reader]


def _routes(
    graph: Operand,
    sources: Iterable[Any],
    weight: Any,
    cutoff: float | None,
    lengths: tuple[Result, Reader] | None = None,
) -> _Routes:
    """Return paths from the nearest source; `lengths` are those of `distances`, if known."""
    if graph.weighted(weight):
        return _back_along(graph, sources, *(lengths or distances(graph, sources, weight, cutoff)))
    return _tree(graph, sources, math.inf if cutoff is None else cutoff)


def _tree(graph: Operand, sources: Iterable[Any], cutoff: float) -> _Routes:
    """Return the paths of a breadth-first tree."""
    steps = None if cutoff > len(graph) else max(0, math.floor(cutoff))
    vertices = [graph.vertex(source) for source in sources]
    parents = algorithms.bfs(graph.graph, vertices, values="parent", max_supersteps=steps)

    def path(vertex: Any, parent: Any) -> list[Any] | None:
        if parent is None:
            return None
        steps = [vertex]
        while parent != steps[-1]:
            steps.append(parent)
            parent = parents[parent]
        return [graph.node(step) for step in reversed(steps)]

    return parents, path


def _back_along(graph: Operand, sources: Iterable[Any], lengths: Result, read: Reader) -> _Routes:
    """Return the paths of edges whose weights make up the distances.

    Edges of weight 0 may form cycles, so a walk never visits a vertex twice.
    """
    starts = {graph.vertex(source) for source in sources}

    def path(vertex: Any, length: Any) -> list[Any] | None:
        if read(vertex, length) is None:
            return None
        steps, seen = [vertex], {vertex}
        ways = [_ways_back(graph, lengths, vertex)]
        while steps[-1] not in starts:
            before = next((one for one in ways[-1] if one not in seen), None)
            if before is None:
                steps.pop()
                ways.pop()
            else:
                seen.add(before)
                steps.append(before)
                ways.append(_ways_back(graph, lengths, before))
        return [graph.node(step) for step in reversed(steps)]

    return lengths, path


def _ways_back(graph: Operand, lengths: Result, vertex: Any) -> Iterator[Any]:
    """Yield the vertices from which an edge completes the distance of a vertex."""
    length = lengths[vertex]
    edges = zip(*graph.graph.in_neighbors(vertex, weights=True), strict=True)
    for before, weight in edges:
        earlier: Any = lengths[before]
        if earlier is not None and earlier + weight == length:
            yield before


def _path(graph: Operand, sources: Iterable[Any], target: Any, weight: Any) -> list[Any] | None:
    """Return one path from the nearest source; None: none leads to the target."""
    if target not in graph:
        return None
    result, read = _routes(graph, sources, weight, None)
    vertex = graph.vertex(target)
    path: list[Any] | None = read(vertex, result[vertex])
    return path


@function()
def single_source_shortest_path(
    G: Any, source: Any, cutoff: float | None = None
) -> Mapping[Any, list[Any]]:
    """Return a path of the fewest edges from a node to each that it reaches."""
    graph = operand(G)
    require_node(graph, source, f"Source {source} not in G")
    most = None if cutoff is None or math.isinf(cutoff) else math.ceil(cutoff)
    return graph.values(*_routes(graph, [source], None, most))


@function()
def multi_source_dijkstra(
    G: Any, sources: Any, target: Any = None, cutoff: float | None = None, weight: Any = "weight"
) -> tuple[Any, Any]:
    """Return distances from the nearest source and paths from there, to all nodes or to one."""
    graph = operand(G)
    require_sources(graph, sources)
    if target in sources:
        return 0, [target]
    return _lengths_and_paths(graph, sources, target, cutoff, weight, f"No path to {target}.")


@function()
def single_source_bellman_ford(
    G: Any, source: Any, target: Any = None, weight: Any = "weight"
) -> tuple[Any, Any]:
    """Return distances and paths from a node, to all or to one; weights are not negative."""
    graph = operand(G)
    require_node(graph, source, f"Node {source} is not found in the graph")
    if source == target:
        return 0, [source]
    message = f"Node {target} not reachable from {source}"
    return _lengths_and_paths(graph, [source], target, None, weight, message)


def _lengths_and_paths(
    graph: Operand, sources: Any, target: Any, cutoff: float | None, weight: Any, message: str
) -> tuple[Any, Any]:
    result, read = distances(graph, sources, weight, cutoff)
    routes, path = _routes(graph, sources, weight, cutoff, (result, read))
    if target is None:
        return graph.values(result, read), graph.values(routes, path)
    if target in graph:
        vertex = graph.vertex(target)
        length = read(vertex, result[vertex])
        if length is not None:
            return length, path(vertex, routes[vertex])
    raise nx.NetworkXNoPath(message)


@function(towards)
def shortest_path(
    G: Any, source: Any = None, target: Any = None, weight: Any = None, method: str = "dijkstra"
) -> Any:
    """Return a shortest path between two nodes, or those from or to one, or between all."""
    if method not in ("dijkstra", "bellman-ford"):
        raise ValueError(f"method not supported: {method}")
    graph = operand(G)
    if source is None and target is None:
        # Lazy: the run for a node begins when the caller asks for the node.
        return ((node, graph.values(*_routes(graph, [node], weight, None))) for node in graph)
    for end, node in (("Source", source), ("Target", target)):
        if node is not None:
            require_node(graph, node, f"{end} {node} is not in G")
    if source is None:
        return _paths_to(graph, target, weight)
    if target is None:
        return graph.values(*_routes(graph, [source], weight, None))
    path = _path(graph, [source], target, weight)
    if path is None:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.")
    return path


def _paths_to(graph: Operand, target: Any, weight: Any) -> Mapping[Any, list[Any]]:
    result, path = _routes(graph, [target], weight, None)

    def backwards(vertex: Any, value: Any) -> list[Any] | None:
        nodes = path(vertex, value)
        return None if nodes is None else nodes[::-1]

    return graph.values(result, backwards)
