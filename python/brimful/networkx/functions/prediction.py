"""Scores of pairs of nodes by their common neighbors: in one run for all pairs that are given."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import networkx as nx

from brimful import similarities
from brimful.ids import own_id
from brimful.networkx.function import Function, borrowed, function, require_node
from brimful.networkx.operand import operand
from brimful.similarities import Measure
from brimful.tables.columns import vertex_rows


def _scores(measure: Measure, original: Any) -> Function:
    """Return the function that yields pairs with their scores.

    Without pairs, NetworkX's own code iterates over all pairs without an edge.
    """
    of_others = borrowed(original, reads="few")

    @function(reads="few")
    def scores(G: Any, ebunch: Iterable[Any] | None = None) -> Iterator[tuple[Any, Any, Any]]:
        if ebunch is None:
            others: Iterator[tuple[Any, Any, Any]] = of_others(G)
            return others
        import pyarrow as pa

        graph = operand(G)
        pairs = [(one, other) for one, other in ebunch]
        for pair in pairs:
            for node in pair:
                require_node(graph, node, f"Node {node} not in G.")
        if not pairs:
            return iter(())
        kind = vertex_rows(graph.graph.native, []).schema.field(0).type
        texts = pa.types.is_string(kind)
        ids = [[own_id(graph.vertex(node), texts=texts) for node in pair] for pair in pairs]
        table = pa.table(
            {
                name: pa.array([pair[end] for pair in ids], kind)
                for end, name in enumerate(("source", "target"))
            }
        )
        rows = similarities.similarity(graph.graph, measure=measure, pairs=table)
        return ((*pair, _finite(row[2])) for pair, row in zip(pairs, rows, strict=True))

    return scores


def _finite(score: float) -> float:
    """Return a finite score; otherwise raise the error of NetworkX, which divides by log(1)."""
    if math.isinf(score):
        raise ZeroDivisionError("float division by zero")
    return score


adamic_adar_index = _scores("adamic_adar", nx.adamic_adar_index)
jaccard_coefficient = _scores("jaccard", nx.jaccard_coefficient)
resource_allocation_index = _scores("resource_allocation", nx.resource_allocation_index)
