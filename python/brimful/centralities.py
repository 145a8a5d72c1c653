"""Centralities of the Python API besides PageRank and HITS; each returns a `Result`."""

from __future__ import annotations

from typing import Literal, Unpack

from brimful.algorithm_run import run_algorithm, run_rows
from brimful.opening import GraphLike
from brimful.options.described import RUN_ERRORS, described
from brimful.options.runs import RUN, DividedOptions, RunOptions
from brimful.options.table import WorkOptions
from brimful.result import Result
from brimful.rows import Rows


@described(RUN, *RUN_ERRORS)
def eigenvector(
    graph: GraphLike,
    *,
    tolerance: float = 1e-6,
    max_supersteps: int = 100,
    weighted: bool = False,
    **options: Unpack[RunOptions],
) -> Result:
    """Compute eigenvector centrality (Bonacich 1987): central vertices lead to central ones.

    Let A be the matrix of arcs. The result is the eigenvector of the largest eigenvalue of A.T,
    found by power iteration on A.T + I from equal entries, as in NetworkX. `stats["converged"]`
    says whether it converged.

    Args:
        tolerance: Stop at an L1 change per vertex of at most this; 0 never stops early.
        max_supersteps: Stop after this many supersteps.
        weighted: Arcs count by their weights, which must not be negative, instead of once each.

    Returns:
        A `Result` with the column `eigenvector`: float64[n_vertices], at least 0; the sum of the
        squares is 1.

    Raises:
        InputError: `weighted`, and a weight is negative, or the weights are too large for numbers.

    >>> import brimful as bf, pyarrow as pa
    >>> star = pa.table({"source": [0, 0, 0, 0], "target": [1, 2, 3, 4]})
    >>> with bf.Graph.from_arrow(star, undirected=True) as graph:
    ...     round(bf.eigenvector(graph, tolerance=1e-9)[0], 6)
    0.707107
    """
    return run_algorithm(
        graph,
        "eigenvector",
        {},
        tolerance=tolerance,
        max_supersteps=max_supersteps,
        weighted=weighted,
        **options,
    )


@described(RUN, *RUN_ERRORS)
def katz(
    graph: GraphLike,
    *,
    alpha: float = 0.1,
    beta: float = 1.0,
    variant: Literal["normalized", "unnormalized"] = "normalized",
    tolerance: float = 1e-6,
    max_supersteps: int = 1000,
    weighted: bool = False,
    **options: Unpack[RunOptions],
) -> Result:
    """Compute Katz centrality (Katz 1953): the sum over walks to a vertex of alpha^k for k edges.

    Let A be the matrix of arcs. The result is the solution of x = alpha * A.T @ x + beta, found by
    iteration from 0, as in NetworkX. It exists for `alpha` below 1 / the largest eigenvalue of A;
    `stats["converged"]` says whether the run converged.

    Args:
        alpha: Attenuation factor of an edge.
        beta: Value of a vertex without incoming edges.
        variant: "normalized" divides, so that the sum of the squares is 1; "unnormalized" does not.
        tolerance: Stop at an L1 change per vertex of at most this; 0 never stops early.
        max_supersteps: Stop after this many supersteps.
        weighted: Arcs count by their weights instead of once each.

    Returns:
        A `Result` with the column `katz`: float64[n_vertices].

    Raises:
        UsageError: `alpha` is so large that the values grow without bound.

    >>> import brimful as bf, pyarrow as pa
    >>> with bf.Graph.from_arrow(pa.table({"source": [0, 1], "target": [1, 2]})) as graph:
    ...     round(bf.katz(graph, variant="unnormalized")[2], 6)
    1.11
    """
    return run_algorithm(
        graph,
        "katz",
        {"alpha": alpha, "beta": beta, "variant": variant},
        tolerance=tolerance,
        max_supersteps=max_supersteps,
        weighted=weighted,
        **options,
    )


@described(RUN, *RUN_ERRORS)
def closeness(
    graph: GraphLike,
    *,
    register_bits: Literal[6, 8, 10] = 6,
    max_supersteps: int | None = None,
    **options: Unpack[DividedOptions],
) -> Result:
    """Estimate closeness centrality: how near a vertex is to those with a path to it.

    With r the number of other vertices that reach a vertex along edges, and s the sum of their
    distances: r / s * r / (n_vertices - 1), and 0 where none does (Wasserman and Faust 1994, as in
    NetworkX). The numbers within each distance are estimated for all vertices at once (HyperBall:
    Boldi and Vigna 2013), in one superstep for each distance. `bfs` gives exact distances from a
    few vertices.

    Args:
        register_bits: Logarithm of the bytes of a vertex's counter. The standard error of a number
            of vertices is 13 % for 6, 6.5 % for 8 and 3.3 % for 10.
        max_supersteps: Count paths of at most this many edges; None: all.

    Returns:
        A `Result` with the column `closeness`: float64[n_vertices].

    >>> import brimful as bf, pyarrow as pa
    >>> with bf.Graph.from_arrow(pa.table({"source": [0, 1], "target": [1, 2]})) as graph:
    ...     round(bf.closeness(graph, register_bits=10)[2], 2)
    0.67
    """
    return run_algorithm(
        graph,
        "closeness",
        {"register_bits": register_bits},
        max_supersteps=max_supersteps,
        **options,
    )


@described(RUN, *RUN_ERRORS)
def harmonic(
    graph: GraphLike,
    *,
    register_bits: Literal[6, 8, 10] = 6,
    max_supersteps: int | None = None,
    **options: Unpack[DividedOptions],
) -> Result:
    """Estimate harmonic centrality: the sum of 1 / distance over the vertices that reach a vertex.

    Distances are those along edges to the vertex (as in NetworkX). The numbers of vertices within
    each distance are estimated for all vertices at once (HyperBall: Boldi and Vigna 2013), in one
    superstep for each distance.

    Args:
        register_bits: Logarithm of the bytes of a vertex's counter. The standard error of a number
            of vertices is 13 % for 6, 6.5 % for 8 and 3.3 % for 10, and that of the
            sum is at most that.
        max_supersteps: Count paths of at most this many edges; None: all.

    Returns:
        A `Result` with the column `harmonic`: float64[n_vertices].

    >>> import brimful as bf, pyarrow as pa
    >>> with bf.Graph.from_arrow(pa.table({"source": [0, 1], "target": [1, 2]})) as graph:
    ...     round(bf.harmonic(graph, register_bits=10)[2], 2)
    1.5
    """
    return run_algorithm(
        graph,
        "harmonic",
        {"register_bits": register_bits},
        max_supersteps=max_supersteps,
        **options,
    )


@described(RUN, *RUN_ERRORS)
def betweenness(
    graph: GraphLike,
    *,
    samples: int | None = None,
    variant: Literal["normalized", "unnormalized"] = "normalized",
    **options: Unpack[WorkOptions],
) -> Result:
    """Compute betweenness centrality (Brandes 2001): the share of shortest paths through a vertex.

    The sum over pairs of other vertices of the share of their shortest paths along edges that pass
    through the vertex. Every edge has the length 1, and parallel edges make separate paths.
    Eight sources share a forward and a backward pass.

    Args:
        samples: Estimate from this many sources, chosen by a hash of their ids. With
            log(2 * n / p) / (2 * e**2) random sources, all n normalized values are within e
            of the exact ones with a probability of 1 - p. None: all vertices, exact.
        variant: "normalized" divides by the number of pairs of other vertices, as NetworkX;
            "unnormalized" does not, but counts a pair without direction once.

    Returns:
        A `Result` with the column `betweenness`: float64[n_vertices].

    >>> import brimful as bf, pyarrow as pa
    >>> path = pa.table({"source": [0, 1], "target": [1, 2]})
    >>> with bf.Graph.from_arrow(path, undirected=True) as graph:
    ...     bf.betweenness(graph).to_arrow()["betweenness"].to_pylist()
    [0.0, 1.0, 0.0]
    """
    return run_algorithm(
        graph,
        "betweenness",
        {"variant": variant} | ({} if samples is None else {"samples": samples}),
        **options,
    )


@described(RUN, *RUN_ERRORS)
def edge_betweenness(
    graph: GraphLike,
    *,
    samples: int | None = None,
    variant: Literal["normalized", "unnormalized"] = "normalized",
    **options: Unpack[WorkOptions],
) -> Rows:
    """Compute betweenness centrality of edges: the share of shortest paths along an edge.

    The sum over pairs of vertices of the share of their shortest paths that pass through the edge
    (Girvan and Newman 2002; Brandes 2008). Parallel edges make separate paths, and add up; a
    self-loop is on no shortest path. `budget` must hold 8 bytes an arc.

    Args:
        samples: Estimate from this many sources, as `betweenness`; None: all vertices, exact.
        variant: "normalized" divides by the number of pairs of vertices, as NetworkX;
            "unnormalized" does not, but counts a pair without direction once.

    Returns:
        `Rows` with the columns `source`, `target` and `betweenness` (float64), ascending; an edge
        without direction has the smaller id first.

    >>> import brimful as bf, pyarrow as pa
    >>> path = pa.table({"source": [0, 1], "target": [1, 2]})
    >>> with bf.Graph.from_arrow(path, undirected=True) as graph:
    ...     list(bf.edge_betweenness(graph, variant="unnormalized"))
    [(0, 1, 2.0), (1, 2, 2.0)]
    """
    own = {"variant": variant} | ({} if samples is None else {"samples": samples})
    return run_rows(graph, "edge_betweenness", own, **options)
