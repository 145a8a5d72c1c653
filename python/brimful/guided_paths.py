"""A shortest path by A* (Hart, Nilsson, Raphael 1968): straight lines bound the rest of a path.

Edges of the vertices between source and target are looked up, and of few others. Invariant: an edge
that is shorter than the straight line between its ends is an error where it is looked up.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from brimful.errors import InputError
from brimful.wording import shortened

if TYPE_CHECKING:
    from brimful.graph import Graph

#: The share of rounding in lengths and straight lines.
_ROUNDING = 1e-9


def walked_back(
    begin: Any, end: Any, before: Callable[[Any], Iterable[Any]], most: int
) -> list[Any] | None:
    """Return the path from `begin` to `end` with the fewest edges; `before` gives predecessors.

    None if more than `most` vertices would be known.
    """
    followed: dict[Any, Any] = {end: None}
    waiting = [end]
    for vertex in waiting:
        if vertex == begin:
            break
        for one in before(vertex):
            if one not in followed:
                if len(followed) == most:
                    return None
                followed[one] = vertex
                waiting.append(one)
    path: list[Any] = [begin]
    while path[-1] != end:
        path.append(followed[path[-1]])
    return path


def guided_path(
    graph: Graph, begin: Any, end: Any, coordinates: Mapping[Any, Sequence[float]], most: int
) -> list[Any] | None:
    """Return a shortest path; empty if there is none.

    None if a weight is negative, or if more than `most` vertices would be known.

    Raises:
        InputError: A vertex has no coordinates, or an edge is shorter than the line of its ends.
    """
    places = _Places(coordinates)
    lengths: dict[Any, float] = {begin: 0.0}
    before: dict[Any, list[Any]] = {}
    done: set[Any] = set()
    waiting = [(places.distance(begin, end), 0, begin)]
    count, shortest = 0, math.inf
    while waiting:
        bound, _, vertex = heapq.heappop(waiting)
        if bound > shortest:
            break
        if vertex in done:
            continue
        done.add(vertex)
        if len(lengths) + graph.degree(vertex) > most:
            return None
        length = lengths[vertex]
        if vertex == end:
            shortest = length
        for other, weight in zip(*graph.neighbors(vertex, weights=True), strict=True):
            line = places.distance(vertex, other)
            if weight < 0:
                return None
            if weight < line * (1 - _ROUNDING):
                raise InputError(
                    f"the edge from {shortened(vertex)} to {shortened(other)} has the weight "
                    f"{weight:g}, less than the straight line of length {line:g}; leave "
                    "coordinates out, or give them in the unit of the weights"
                )
            further, earlier = length + weight, lengths.get(other, math.inf)
            if further < earlier:
                lengths[other], before[other] = further, [vertex]
                done.discard(other)
                count += 1
                rest = places.distance(other, end) * (1 - _ROUNDING)
                heapq.heappush(waiting, (further + rest, count, other))
            elif further == earlier and other != begin:
                before[other].append(vertex)
    if shortest == math.inf:
        return []
    return walked_back(begin, end, lambda vertex: sorted(set(before[vertex])), most)


class _Places:
    """The coordinates of vertices."""

    def __init__(self, coordinates: Mapping[Any, Sequence[float]]) -> None:
        self._coordinates = coordinates

    def distance(self, one: Any, other: Any) -> float:
        """Return the length of the straight line between two vertices."""
        first, second = self._of(one), self._of(other)
        try:
            distance = math.dist(first, second)
        except (TypeError, ValueError):
            distance = math.nan
        if not math.isfinite(distance):
            raise InputError(
                f"the coordinates of {shortened(one)} and {shortened(other)} have no distance; "
                "give each vertex the same number of finite numbers"
            )
        return distance

    def _of(self, vertex: Any) -> Sequence[float]:
        try:
            return self._coordinates[vertex]
        except LookupError:
            raise InputError(f"coordinates has no vertex {shortened(vertex)}; add it") from None
