"""Other people's answers to the same questions: NumPy, SciPy and NetworkX."""

from __future__ import annotations

from collections.abc import Iterable

import networkx as nx
import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import connected_components

Edge = tuple[int, int]


def arcs_of(edges: Iterable[Edge], *, undirected: bool) -> list[Edge]:
    """Return the stored arcs: an undirected edge both ways, its self-loop once."""
    arcs = list(edges)
    if undirected:
        arcs += [(target, source) for source, target in arcs if source != target]
    return arcs


def _matrix(arcs: list[Edge], ids: list[int]) -> sparse.csr_matrix:
    """Return the multiplicity matrix, rows targets, columns sources."""
    position = {vertex: index for index, vertex in enumerate(ids)}
    rows = [position[target] for _, target in arcs]
    columns = [position[source] for source, _ in arcs]
    # coo -> csr adds duplicates up
    return sparse.coo_matrix((np.ones(len(arcs)), (rows, columns)), (len(ids), len(ids))).tocsr()


def pagerank(
    edges: Iterable[Edge],
    supersteps: int,
    *,
    damping: float = 0.85,
    variant: str = "normalized",
    undirected: bool = False,
    declared: Iterable[int] = (),
) -> dict[int, float]:
    """Return exactly `supersteps` updates of PageRank by SciPy."""
    arcs = arcs_of(edges, undirected=undirected)
    ids = sorted({vertex for arc in arcs for vertex in arc} | set(declared))
    matrix = _matrix(arcs, ids)
    degrees = np.asarray(matrix.sum(axis=0)).ravel()
    inverse = np.divide(1.0, degrees, out=np.zeros_like(degrees), where=degrees > 0)
    n = len(ids)
    if variant == "normalized":
        state = np.full(n, 1 / n)
        for _ in range(supersteps):
            sinks = state[degrees == 0].sum()
            state = (1 - damping) / n + damping * (matrix @ (state * inverse) + sinks / n)
    else:
        state = np.full(n, 1 - damping)
        for _ in range(supersteps):
            state = (1 - damping) + damping * (matrix @ (state * inverse))
    return dict(zip(ids, state.tolist(), strict=True))


def networkx_pagerank(edges: Iterable[Edge], *, undirected: bool = False) -> dict[int, float]:
    """Return the converged PageRank of NetworkX on a multigraph."""
    graph = nx.MultiDiGraph()
    graph.add_edges_from(arcs_of(edges, undirected=undirected))
    return nx.pagerank(graph, alpha=0.85, tol=1e-14 / len(graph), max_iter=2000)


def components(edges: Iterable[Edge], declared: Iterable[int] = ()) -> dict[int, int]:
    """Return the smallest id of every vertex's weak component by SciPy."""
    arcs = list(edges)
    ids = sorted({vertex for arc in arcs for vertex in arc} | set(declared))
    _, labels = connected_components(_matrix(arcs, ids), directed=True, connection="weak")
    smallest: dict[int, int] = {}
    for vertex, label in zip(ids, labels.tolist(), strict=True):
        smallest.setdefault(label, vertex)
    return {vertex: smallest[label] for vertex, label in zip(ids, labels.tolist(), strict=True)}


def networkx_components(edges: Iterable[Edge]) -> dict[int, int]:
    """Return the smallest id of every vertex's weak component by NetworkX."""
    graph = nx.MultiDiGraph()
    graph.add_edges_from(edges)
    return {
        vertex: min(members)
        for members in nx.weakly_connected_components(graph)
        for vertex in members
    }


def assert_close(ours: dict[int, float], theirs: dict[int, float], relative: float) -> None:
    """Insist on the same vertices and values within a relative error."""
    assert list(ours) == sorted(theirs)
    mine = np.array(list(ours.values()))
    other = np.array([theirs[vertex] for vertex in ours])
    worst = np.max(np.abs(mine - other) / np.maximum(np.abs(other), 1e-300), initial=0.0)
    assert worst <= relative, f"relative error {worst:.3g}"
