"""A vertex with some of its neighbors, and the edges among them."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from brimful.ids import VertexId, list_ids, own_id

if TYPE_CHECKING:
    from brimful.graph import Graph

#: The most neighbors that are drawn.
_MOST_DRAWN = 36
#: The edges of a neighbor with more edges than this are not read.
_MOST_EDGES = 10_000


def neighborhood(
    graph: Graph, vertex: VertexId
) -> tuple[Any, list[Any], list[tuple[Any, Any]], str]:
    """Return a vertex, the neighbors and edges to draw, and a note about those left out.

    If there are many neighbors, those with the most edges are drawn.

    Raises:
        NotFoundError: The graph has no such vertex.
    """
    own = own_id(vertex, texts=graph.native.id_type == "string")
    numbers = itertools.count()
    numbered = zip(_neighbors(graph, own), numbers, strict=False)
    most = heapq.nlargest(_MOST_DRAWN, numbered, key=lambda one: one[0][1])
    degrees = dict(sorted(pair for pair, _ in most))
    around, count = list(degrees), next(numbers)
    note = ""
    if count > len(around):
        note = f"{_MOST_DRAWN} of {count:,} neighbors, those with the most edges. "
    looked_at = [one for one in around if degrees[one] <= _MOST_EDGES]
    if len(looked_at) < len(around):
        note += f"Edges of neighbors with more than {_MOST_EDGES:,} are left out."
    links = [(own, one) for one in around]
    if looked_at:
        drawn = set(around)
        edges = graph.neighbors_many(looked_at)
        ends = zip(edges["source"].to_pylist(), edges["target"].to_pylist(), strict=True)
        links += sorted({pair for pair in ends if pair[1] in drawn and pair[0] != pair[1]})
    # Objects such as tuples need not be comparable; their names are.
    names = [own, *around]
    ids = dict(zip(names, list_ids([*names]), strict=True))
    shown = [(ids[one], ids[other]) for one, other in links]
    return ids[own], [ids[one] for one in around], shown, note.strip()


def _neighbors(graph: Graph, vertex: int | str) -> Iterator[tuple[Any, int]]:
    """Yield the other neighbors of a vertex, ascending, each once and with its number of edges."""
    import pyarrow.compute as pc

    latest = vertex
    for batch in graph.neighbors_many([vertex])["target"].chunks:
        ids = pc.unique(batch)
        for one, edges in zip(ids.to_pylist(), graph.degrees_many(ids).to_pylist(), strict=True):
            if one not in (vertex, latest):
                yield one, edges
            latest = one
