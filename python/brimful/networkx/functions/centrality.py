"""Centralities by power iteration, and betweenness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import networkx as nx

from brimful import centralities
from brimful.networkx.function import converged, function, given
from brimful.networkx.operand import operand
from brimful.options import checks


@function(given("nstart", "brimful starts from equal entries"), reads="often")
def eigenvector_centrality(
    G: Any,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: Mapping[Any, float] | None = None,
    weight: str | None = None,
) -> Mapping[Any, float]:
    """Return the eigenvector centrality of each node."""
    graph = operand(G)
    if len(graph) == 0:
        raise nx.NetworkXPointlessConcept("cannot compute centrality for the null graph")
    if max_iter < 1:
        raise nx.PowerIterationFailedConvergence(max_iter)
    entries = centralities.eigenvector(
        graph.graph,
        tolerance=tol,
        # The change of a superstep is known in the next.
        max_supersteps=max_iter + 1,
        weighted=graph.weighted(weight),
    )
    return graph.values(converged(entries, max_iter))


def _alone(call: Mapping[str, Any]) -> str | None:
    return None if checks.is_real(call["beta"]) else "brimful takes one beta for all nodes"


@function(_alone, given("nstart", "brimful starts from 0"), reads="often")
def katz_centrality(
    G: Any,
    alpha: float = 0.1,
    beta: float = 1.0,
    max_iter: int = 1000,
    tol: float = 1.0e-6,
    nstart: Mapping[Any, float] | None = None,
    normalized: bool = True,
    weight: str | None = None,
) -> Mapping[Any, float]:
    """Return the Katz centrality of each node."""
    graph = operand(G)
    if len(graph) == 0:
        return {}
    if max_iter < 1:
        raise nx.PowerIterationFailedConvergence(max_iter)
    entries = centralities.katz(
        graph.graph,
        alpha=alpha,
        beta=beta,
        variant="normalized" if normalized else "unnormalized",
        tolerance=tol,
        max_supersteps=max_iter,
        weighted=graph.weighted(weight),
    )
    return graph.values(converged(entries, max_iter))


def _parallel(call: Mapping[str, Any]) -> str | None:
    return "parallel edges are paths of their own in brimful" if call["G"].is_multigraph() else None


@function(
    _parallel,
    given("k", "brimful chooses other nodes by chance"),
    given("weight", "every edge has the length 1 in brimful"),
    lambda call: "brimful leaves the ends of paths out" if call["endpoints"] else None,
    reads="often",
)
def betweenness_centrality(
    G: Any,
    k: int | None = None,
    normalized: bool = True,
    weight: str | None = None,
    endpoints: bool = False,
    seed: Any = None,
) -> Mapping[Any, float]:
    """Return the betweenness centrality of each node."""
    graph = operand(G)
    if len(graph) == 0:
        return {}
    variant: Literal["normalized", "unnormalized"]
    variant = "normalized" if normalized else "unnormalized"
    return graph.values(centralities.betweenness(graph.graph, variant=variant))
