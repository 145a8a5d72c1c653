"""The k shortest paths between two vertices that visit no vertex twice (Yen 1971; Lawler 1972).

Paths are found backwards, from the target to the source. One run computes the distances from the
source. They are exact bounds of the rest of a path, so that a search (A*; Hart, Nilsson, Raphael
1968) looks up the in-edges of few vertices besides those of the path. Of the in-edges of a vertex a
search takes up the best few at a time. Invariant: the vertices that are known at a time fit the
budget.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from brimful.ids import column_ids
from brimful.memory import too_small
from brimful.tables.edge_table import ARROW_RESERVE_BYTES

if TYPE_CHECKING:
    from brimful.graph import Graph
    from brimful.resources import Resources
    from brimful.result import Result

#: A length and its path.
Found = tuple[float, list[Any]]
#: An in-edge: the length of the shortest path over it, its own, and its source.
_Edge = tuple[float, float, Any]

#: Bytes of the budget for searches that know few vertices.
_LEAST_BYTES = 4 << 20
#: In-edges of a vertex that are taken up at first; then twice as many.
_AT_FIRST = 64
#: Bytes of a vertex in each table of a search; kept edges take half. A quarter is for waste.
_KNOWN_BYTES = 320
#: In-edges of a vertex that are listed at once, and bytes of each; more are a table of pyarrow.
_LISTED, _LISTED_BYTES = 1 << 18, 104
_READ_BYTES = 32
#: Rows of the table that are objects at once.
_BATCH_ROWS = 1 << 14
#: The share of rounding in lengths.
_ROUNDING = 1e-12


def least_bytes(graph: Graph) -> int:
    """Return the bytes of the budget that searches need beside the distances."""
    longest = graph.native.longest_in_list
    names: int = 2 * graph.info().get("names", {}).get("longest_bytes", 0)
    if longest > _LISTED:
        return _LEAST_BYTES + ARROW_RESERVE_BYTES + (_READ_BYTES + names) * longest
    return _LEAST_BYTES + (_LISTED_BYTES + names) * longest


def most_known(resources: Resources) -> int:
    """Return the number of vertices that a search may know at a time."""
    left = resources.budget_bytes() - resources.taken_bytes(0)
    return max(_LEAST_BYTES, left) // _KNOWN_BYTES


def most_bytes(graph: Graph) -> int:
    """Return the bytes of a search that visits the whole graph."""
    # Two tables; hardly any vertex waits twice, because its path is hardly ever shortened.
    return _KNOWN_BYTES * (5 * graph.vertices // 2)


def in_edges(graph: Graph, vertex: Any, *, weighted: bool) -> Iterator[tuple[Any, float]]:
    """Yield the sources of the edges to a vertex, with their weights or 1."""
    if graph.in_degree(vertex) > _LISTED:
        many = graph.neighbors_many([vertex], direction="in", weights=weighted)
        for batch in many.to_batches(max_chunksize=_BATCH_ROWS):
            sources = column_ids(batch["source"])
            weights = batch["weight"].to_pylist() if weighted else [1] * len(sources)
            yield from zip(sources, weights, strict=True)
    elif weighted:
        yield from zip(*graph.in_neighbors(vertex, weights=True), strict=True)
    else:
        yield from ((source, 1) for source in graph.in_neighbors(vertex))


def shortest_simple_paths(
    graph: Graph,
    distances: Result,
    ends: tuple[Any, Any],
    k: int,
    resources: Resources,
    *,
    weighted: bool,
) -> Iterator[Found]:
    """Yield lengths and paths, the shortest first; paths of equal length in any order.

    `distances` are those from the first of the ends: of `bfs`, or of `sssp` with weights.

    Raises:
        BudgetError: The searches know more vertices than the budget holds; the message names a
            budget for the whole graph.
    """
    begin, end = ends
    search = _Search(graph, distances, begin, resources, weighted)
    shortest: list[list[Any]] = []
    # Paths as (length, number, path, lengths up to its vertices, size of the part that an earlier
    # path has too). Numbers break ties, so that vertices are never compared.
    first = search.extended([end], [0], set(), None)
    waiting = [] if first is None else [(first[1][-1], 0, *first, 1)]
    number = 0
    while waiting:
        length, _, path, lengths, common = waiting.pop(0)
        yield length, path[::-1]
        shortest.append(path)
        left = k - len(shortest)
        # Shorter common parts were searched when that earlier path was found.
        for size in range(common, len(path) if left else 0):
            prefix = path[:size]
            banned = {other[size] for other in shortest if other[:size] == prefix}
            most = waiting[left - 1][0] if len(waiting) >= left else None
            search.held = (len(shortest) + len(waiting)) * len(path)
            one = search.extended(prefix, lengths[:size], banned, most)
            if one is not None:
                number += 1
                insort(waiting, (one[1][-1], number, *one, size))
                del waiting[left:]


class _Search:
    """Searches backwards in a graph, with the best in-edges that were looked up before."""

    def __init__(
        self, graph: Graph, distances: Result, begin: Any, resources: Resources, weighted: bool
    ) -> None:
        self._graph, self._distances, self._begin = graph, distances, begin
        self._resources, self._weighted = resources, weighted
        self._taken = resources.taken_bytes(0)
        self._most = most_known(resources)
        self._nearest: dict[Any, list[_Edge]] = {}
        #: Vertices of the paths that were found and that wait.
        self.held = 0
        self._kept = 0

    def extended(
        self, prefix: list[Any], lengths: list[float], banned: set[Any], most: float | None
    ) -> tuple[list[Any], list[float]] | None:
        """Return the shortest path that begins with `prefix` and continues to none of `banned`.

        `lengths` are those up to the vertices of the prefix; they are returned with the path. None
        if there is no path, or none of a length up to `most`.

        Raises:
            BudgetError: The search knows more vertices than the budget holds.
        """
        last, closed = prefix[-1], set(prefix[:-1])
        if last == self._begin and len(prefix) == 1:
            return None if banned else (prefix, lengths)
        limit = float("inf") if most is None else most * (1 + _ROUNDING)
        before: dict[Any, Any] = {}
        best: dict[Any, float] = {last: lengths[-1]}
        # The length of a whole path, a number, the length up to a vertex, the vertex, and its
        # in-edges that were taken up before.
        waiting: list[tuple[float, int, float, Any, int]] = [(0, 0, lengths[-1], last, 0)]
        number = 0
        while waiting:
            bound, _, length, vertex, taken = heapq.heappop(waiting)
            if bound > limit:
                return None
            if taken == 0:
                if vertex in closed:
                    continue
                closed.add(vertex)
                if vertex == self._begin:
                    rest = [vertex]
                    while rest[-1] != last:
                        rest.append(before[rest[-1]])
                    rest = rest[-2::-1]
                    return prefix + rest, lengths + [best[one] for one in rest]
            self._check(len(best) + len(waiting))
            edges, wanted = self._edges(vertex, taken), max(taken, _AT_FIRST)
            for total, weight, other in edges:
                further = length + weight
                is_out = other in closed or (vertex == last and other in banned)
                if is_out or further >= best.get(other, float("inf")):
                    continue
                best[other], before[other] = further, vertex
                number += 1
                heapq.heappush(waiting, (length + total, number, further, other, 0))
            if len(edges) == wanted:
                number += 1
                beyond = length + edges[-1][0]
                heapq.heappush(waiting, (beyond, number, length, vertex, taken + wanted))
        return None

    def _check(self, count: int) -> None:
        """Check that the known vertices fit the budget; forget kept edges if they do not.

        Raises:
            BudgetError: The vertices do not fit even without the edges.
        """
        if count + self.held + self._kept <= self._most:
            return
        self._nearest.clear()
        self._kept = 0
        if count + self.held > self._most:
            most = most_bytes(self._graph) + _KNOWN_BYTES * 2 * self.held
            raise too_small(self._resources, self._taken + most, "to find this many paths")

    def _edges(self, vertex: Any, taken: int) -> list[_Edge]:
        """Return the best in-edges of a vertex after the best `taken`: 64, or as many again."""
        if taken == 0 and vertex in self._nearest:
            return self._nearest[vertex]
        wanted = taken + max(taken, _AT_FIRST)
        edges = heapq.nsmallest(wanted, self._bounded(vertex))[taken:]
        if taken == 0:
            self._nearest[vertex] = edges
            self._kept += len(edges) // 2 + 1
        return edges

    def _bounded(self, vertex: Any) -> Iterator[_Edge]:
        """Yield the in-edges that a path from the source can take."""
        for source, weight in in_edges(self._graph, vertex, weighted=self._weighted):
            bound: Any = self._distances[source]
            if bound is not None:
                yield bound + weight, weight, source
