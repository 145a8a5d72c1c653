"""The k shortest paths between two vertices that visit no vertex twice (Yen 1971).

Paths are found backwards, from the target to the source. One run computes the distances from the
source. They are exact bounds of the rest of a path, so that a search (A*; Hart, Nilsson, Raphael
1968) looks up the in-edges of few vertices besides those of the path.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brimful.graph import Graph
    from brimful.result import Result

#: A length and its path.
Found = tuple[float, list[Any]]


def shortest_simple_paths(
    graph: Graph, distances: Result, begin: Any, end: Any, *, weighted: bool
) -> Iterator[Found]:
    """Yield lengths and paths, the shortest first; of paths of one length in no certain order.

    `distances` are those from `begin`: of `bfs`, or of `sssp` with weights.
    """
    search = _Search(graph, distances, begin, weighted)
    found: list[list[Any]] = []
    waiting: list[tuple[float, int, list[Any]]] = []
    known: set[tuple[Any, ...]] = set()

    def offer(prefix: list[Any], banned: set[Any]) -> None:
        path = search.extended(prefix, banned)
        if path is not None and tuple(path) not in known:
            known.add(tuple(path))
            # The number breaks ties, so that the heap never compares vertices.
            heapq.heappush(waiting, (search.length(path), len(known), path))

    offer([end], set())
    while waiting:
        length, _, path = heapq.heappop(waiting)
        yield length, path[::-1]
        found.append(path)
        for size in range(1, len(path)):
            prefix = path[:size]
            offer(prefix, {other[size] for other in found if other[:size] == prefix})


class _Search:
    """Searches backwards in a graph, with the in-edges that were looked up before."""

    def __init__(self, graph: Graph, distances: Result, begin: Any, weighted: bool) -> None:
        self._graph, self._distances, self._begin = graph, distances, begin
        self._weighted = weighted
        self._edges: dict[Any, dict[Any, float]] = {}
        self._bounds: dict[Any, float | None] = {}

    def length(self, path: list[Any]) -> float:
        """Return the length of a backward path."""
        return sum(self._before(one)[other] for one, other in pairwise(path))

    def extended(self, prefix: list[Any], banned: set[Any]) -> list[Any] | None:
        """Return the shortest path that begins with `prefix` and goes on to none of `banned`."""
        last, closed = prefix[-1], set(prefix[:-1])
        if last == self._begin and len(prefix) == 1:
            return None if banned else prefix
        before: dict[Any, Any] = {}
        best: dict[Any, float] = {last: 0}
        bound = self._bound(last)
        waiting = [] if bound is None else [(bound, 0, 0.0, last)]
        count = 0
        while waiting:
            _, _, length, vertex = heapq.heappop(waiting)
            if vertex in closed:
                continue
            closed.add(vertex)
            if vertex == self._begin:
                path = [vertex]
                while path[-1] != last:
                    path.append(before[path[-1]])
                return prefix + path[-2::-1]
            for other, weight in self._before(vertex).items():
                bound = self._bound(other)
                further = length + weight
                is_out = other in closed or (vertex == last and other in banned)
                if bound is None or is_out or further >= best.get(other, float("inf")):
                    continue
                best[other], before[other] = further, vertex
                count += 1
                heapq.heappush(waiting, (further + bound, count, further, other))
        return None

    def _bound(self, vertex: Any) -> float | None:
        """Return the distance from `begin`; None if no path leads to the vertex."""
        if vertex not in self._bounds:
            value: Any = self._distances[vertex]
            self._bounds[vertex] = value
        return self._bounds[vertex]

    def _before(self, vertex: Any) -> dict[Any, float]:
        """Return the sources of the edges to a vertex, with the least weight of each."""
        known = self._edges.get(vertex)
        if known is not None:
            return known
        edges: dict[Any, float] = {}
        if self._weighted:
            sources, weights = self._graph.in_neighbors(vertex, weights=True)
            for source, weight in zip(sources, weights, strict=True):
                edges[source] = min(weight, edges.get(source, weight))
        else:
            edges = dict.fromkeys(self._graph.in_neighbors(vertex), 1)
        edges.pop(vertex, None)
        self._edges[vertex] = edges
        return edges
