"""Numbers of walks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import networkx as nx

from brimful import algorithms
from brimful.networkx.function import function
from brimful.networkx.operand import operand


@function(reads="often")
def number_of_walks(G: Any, walk_length: int) -> dict[Any, Mapping[Any, int]]:
    """Return the number of walks of this many edges between any two nodes; a run for each."""
    graph = operand(G)
    if walk_length < 0:
        raise ValueError(f"`walk_length` cannot be negative: {walk_length}")
    if len(graph) == 0:
        raise nx.NetworkXError("Graph has no nodes or edges")
    return {
        node: graph.values(
            algorithms.count_paths(graph.graph, [graph.vertex(node)], length=walk_length)
        )
        for node in graph
    }
