"""Degree centralities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

from brimful import algorithms
from brimful.networkx.function import Function, function
from brimful.networkx.operand import operand


def _share(direction: Literal["out", "in", "both"]) -> Function:
    """Return the function that divides the number of edges of a node by that of other nodes."""

    @function()
    def centrality(G: Any) -> Mapping[Any, float]:
        graph = operand(G)
        if len(graph) <= 1:
            return dict.fromkeys(graph, 1)
        share = 1.0 / (len(graph) - 1.0)
        degrees = algorithms.degrees(
            graph.graph, direction=direction if graph.is_directed() else "out"
        )
        # An undirected self-loop is one arc, and has two ends.
        loops = Counter() if graph.is_directed() else graph.loops()
        return graph.values(degrees, lambda vertex, degree: (degree + loops[vertex]) * share)

    return centrality


degree_centrality = _share("both")
in_degree_centrality = _share("in")
out_degree_centrality = _share("out")
