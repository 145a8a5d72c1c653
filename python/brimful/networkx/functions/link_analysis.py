"""PageRank, and hubs and authorities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import networkx as nx

from brimful import algorithms
from brimful.networkx.function import function, given
from brimful.networkx.operand import Operand, operand
from brimful.result import Result


def _personal(call: Mapping[str, Any]) -> str | None:
    """Refuse a personalization with negative values, or with too many."""
    from brimful._native import MAX_SOURCES

    values = [value for value in (call["personalization"] or {}).values() if value]
    if any(value < 0 for value in values):
        return "brimful takes values of at least 0 in a personalization"
    if len(values) > MAX_SOURCES:
        return f"brimful takes a personalization of up to {MAX_SOURCES} nodes"
    return None


def _damping(call: Mapping[str, Any]) -> str | None:
    return None if 0 <= call["alpha"] <= 1 else "alpha is from 0 to 1 in brimful"


def _start(call: Mapping[str, Any]) -> str | None:
    """Refuse ranks that depend on where they start: in NetworkX they start from equal ranks."""
    if call["alpha"] == 1 and call["personalization"] is not None:
        return "brimful starts from the personalization, on which ranks depend if alpha is 1"
    return None


def _scaled(call: Mapping[str, Any]) -> str | None:
    return None if call["normalized"] else "scores have the sum 1 in brimful"


@function(
    _damping,
    _personal,
    _start,
    given("nstart", "brimful starts from equal ranks"),
    given("dangling", "brimful gives the rank of dangling nodes to the personalization"),
    reads="often",
)
def pagerank(
    G: Any,
    alpha: float = 0.85,
    personalization: Mapping[Any, float] | None = None,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: Mapping[Any, float] | None = None,
    weight: str | None = "weight",
    dangling: Mapping[Any, float] | None = None,
) -> Mapping[Any, float]:
    """Return the PageRank of each node."""
    graph = operand(G)
    if len(graph) == 0:
        return {}
    if max_iter < 1:
        raise nx.PowerIterationFailedConvergence(max_iter)
    ranks = algorithms.pagerank(
        graph.graph,
        damping=alpha,
        source=None if personalization is None else _shares(graph, personalization),
        tolerance=tol * len(graph),
        max_supersteps=max_iter,
        weighted=graph.weighted(weight),
    )
    return graph.values(_converged(ranks, max_iter))


def _shares(graph: Operand, personalization: Mapping[Any, float]) -> dict[Any, float] | None:
    """Return the shares of vertices in a personalization; None if all shares are equal."""
    wanted = ((node, value) for node, value in personalization.items() if value)
    shares = {graph.vertex(node): value for node, value in wanted if node in graph}
    if not shares:
        raise ZeroDivisionError("the values of the personalization add up to 0")
    return None if len(shares) == len(graph) and len(set(shares.values())) == 1 else shares


@function(given("nstart", "brimful starts from equal scores"), _scaled, reads="often")
def hits(
    G: Any,
    max_iter: int = 100,
    tol: float = 1.0e-8,
    nstart: Mapping[Any, float] | None = None,
    normalized: bool = True,
) -> tuple[Mapping[Any, float], Mapping[Any, float]]:
    """Return the scores of each node as a hub and as an authority; edges count by `weight`."""
    graph = operand(G)
    if len(graph) == 0:
        return {}, {}
    if max_iter < 1:
        raise nx.PowerIterationFailedConvergence(max_iter)
    weighted = graph.weighted("weight")
    hubs, authorities = (
        graph.values(
            _converged(
                # NetworkX's step computes authorities and hubs; a superstep computes one of them.
                algorithms.hits(
                    graph.graph,
                    values=values,
                    tolerance=tol * len(graph),
                    max_supersteps=2 * max_iter,
                    weighted=weighted,
                ),
                max_iter,
            )
        )
        for values in ("hub", "authority")
    )
    return hubs, authorities


def _converged(result: Result, max_iter: int) -> Result:
    if not result.stats["converged"]:
        raise nx.PowerIterationFailedConvergence(max_iter)
    return result
