"""Shortest paths between two vertices.

Two searches from both ends, or one that goes towards the target, look up the edges of few vertices.
A run of `bfs` or `sssp` finds the path if they know too many.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import brimful
from brimful.errors import BudgetError, UsageError
from brimful.ids import VertexId, id_of_name, list_ids, vertex_id
from brimful.memory import too_small
from brimful.options.checks import whole
from brimful.per_vertex import PerVertex
from brimful.resources import Resources
from brimful.result import computed_on

#: The memory of searches from both ends.
_SEARCHES_BYTES = 24 << 20

#: The most vertices that a guided search knows, and the memory of each; `sssp` is faster than more
#: look-ups.
_MOST_GUIDED = 1 << 17
_GUIDED_BYTES = 1 << 10


def shortest_path(
    graph: brimful.Graph,
    source: VertexId,
    target: VertexId,
    weighted: bool,
    resources: Resources,
    coordinates: Mapping[Any, Sequence[float]] | None = None,
) -> list[Any] | None:
    """Return a shortest path between two vertices, as `Graph.shortest_path` does."""
    from brimful import _native
    from brimful.guided_paths import guided_path

    begin, end = _ends(graph, source, target)
    given = resources.on(graph)
    if coordinates is None:
        look_ups = _native.Lookup(graph.native)
        has_room = given.has_room(_SEARCHES_BYTES)
        walk = look_ups.between(begin, end, weighted) if has_room else None
    elif not weighted:
        raise UsageError("coordinates apply to weighted paths; pass weighted=True")
    elif not isinstance(coordinates, (Mapping, PerVertex)):
        raise UsageError(
            "coordinates must be a mapping from vertices to places, such as {1: (0.0, 2.5)}, not "
            f"{type(coordinates).__name__}"
        )
    else:
        most = min(_MOST_GUIDED, given.budget_bytes() // _GUIDED_BYTES)
        walk = guided_path(graph, begin, end, coordinates, most)
    if walk is not None:
        return list_ids(walk) or None
    if weighted:
        return _weighted_path(graph, begin, end, resources)
    parents = computed_on(graph, "bfs", {"values": "parent"}, resources, source=[begin])
    path: list[Any] = [end]
    while path[-1] != begin:
        parent = parents[path[-1]]
        if parent is None:
            return None
        path.append(parent)
    return path[::-1]


def shortest_paths(
    graph: brimful.Graph,
    source: VertexId,
    target: VertexId,
    k: int,
    weighted: bool,
    resources: Resources,
) -> list[tuple[float, list[Any]]]:
    """Return the k shortest paths between two vertices, as `Graph.shortest_paths` does."""
    from brimful.simple_paths import least_bytes, most_bytes, shortest_simple_paths

    count = whole(k, "k", 1)
    begin, end = _ends(graph, source, target)
    algorithm = "sssp" if weighted else "bfs"
    options = {"source": [begin], "weighted": weighted}
    try:
        distances = computed_on(
            graph, algorithm, {}, resources.leaving(least_bytes(graph)), **options
        )
    except BudgetError as error:
        # The number of vertices that searches know turns out only as they go.
        most = error.needed_bytes + most_bytes(graph)
        raise BudgetError(
            f"{error} for searches that visit few vertices; a search that visits the whole graph "
            f"needs {-(-most >> 20)}M",
            error.needed_bytes,
        ) from None
    ends, given = (begin, end), resources.on(graph)
    return list(shortest_simple_paths(graph, distances, ends, count, given, weighted=weighted))


def _ends(graph: brimful.Graph, source: VertexId, target: VertexId) -> tuple[Any, Any]:
    """Return the ends of a path as the graph has them.

    Raises:
        NotFoundError: The graph lacks one of them.
    """
    ends = id_of_name(vertex_id(source)), id_of_name(vertex_id(target))
    for vertex in ends:
        graph.degree(vertex)
    return ends


def _weighted_path(
    graph: brimful.Graph, begin: int | str, end: int | str, resources: Resources
) -> list[Any] | None:
    """Walk back over edges whose weight is the difference of the distances of their ends.

    Raises:
        BudgetError: The shortest paths have more vertices than the budget holds.
    """
    from brimful.guided_paths import walked_back
    from brimful.simple_paths import in_edges, least_bytes, most_bytes, most_known

    given = resources.on(graph)
    taken, most = given.taken_bytes(0), most_known(given)
    leaving = resources.leaving(least_bytes(graph))
    distances = computed_on(graph, "sssp", {}, leaving, source=[begin], weighted=True)
    if distances[end] is None:
        return None

    def before(vertex: Any) -> Iterator[Any]:
        distance: Any = distances[vertex]
        for one, weight in in_edges(graph, vertex, weighted=True):
            earlier: Any = distances[one]
            if earlier is not None and earlier + weight == distance:
                yield one

    path = walked_back(begin, end, before, most)
    if path is None:
        needed = taken + most_bytes(graph)
        raise too_small(given, needed, "to choose one of the shortest paths")
    return path
