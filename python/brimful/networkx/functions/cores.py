"""Core numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import networkx as nx

from brimful import algorithms
from brimful.networkx.function import function
from brimful.networkx.operand import operand


@function(reads="often")
def core_number(G: Any) -> Mapping[Any, int]:
    """Return the largest k such that a node is in the k-core."""
    graph = operand(G)
    if len(graph) == 0:
        return {}
    if graph.number_of_loops():
        raise nx.NetworkXNotImplemented(
            "Input graph has self loops which is not permitted; "
            "Consider using G.remove_edges_from(nx.selfloop_edges(G))."
        )
    return graph.values(algorithms.kcore(graph.graph))
