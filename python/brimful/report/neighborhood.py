"""A vertex with some of its neighbors, and the edges among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brimful.graph import Graph

#: The most neighbors that are drawn.
_MOST_DRAWN = 36
#: The edges of a neighbor with more edges than this are not read.
_MOST_EDGES = 10_000


def neighborhood(graph: Graph, vertex: int | str) -> tuple[list[Any], list[tuple[Any, Any]], str]:
    """Return the neighbors of a vertex to draw, the edges, and a note about those left out.

    If there are many neighbors, those with the most edges are drawn.

    Raises:
        NotFoundError: The graph has no such vertex.
    """
    around = [one for one in dict.fromkeys(graph.neighbors(vertex)) if one != vertex]
    note = ""
    degrees = dict(zip(around, graph.degrees_many(around).to_pylist(), strict=True))
    if len(around) > _MOST_DRAWN:
        note = f"{_MOST_DRAWN} of {len(around):,} neighbors, those with the most edges. "
        around = sorted(around, key=lambda one: -degrees[one])[:_MOST_DRAWN]
        around.sort()
    looked_at = [one for one in around if degrees[one] <= _MOST_EDGES]
    if len(looked_at) < len(around):
        note += f"Edges of neighbors with more than {_MOST_EDGES:,} are left out."
    links = [(vertex, one) for one in around]
    if looked_at:
        drawn = set(around)
        found = graph.neighbors_many(looked_at)
        ends = zip(found["source"].to_pylist(), found["target"].to_pylist(), strict=True)
        links += sorted({pair for pair in ends if pair[1] in drawn and pair[0] != pair[1]})
    return around, links, note.strip()
