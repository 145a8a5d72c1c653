"""Distances from many sources, eccentricities and diameters in the Python API."""

from __future__ import annotations

from typing import Literal, Unpack

from brimful.algorithm_run import run_rows
from brimful.ids import Vertices
from brimful.opening import GraphLike
from brimful.options.described import RUN_ERRORS, described
from brimful.options.runs import RUN
from brimful.options.table import WorkOptions
from brimful.rows import Rows


@described(RUN, *RUN_ERRORS)
def distances(graph: GraphLike, source: Vertices, **options: Unpack[WorkOptions]) -> Rows:
    """Compute the distances from each of several sources, in edges.

    Sixty-four searches share each superstep (Then et al. 2014). `budget` must hold 8 bytes a
    vertex; the states of searches, 136 bytes a vertex, are on disk where they do not fit.

    Args:
        source: Id of a vertex to begin with, or several in a sequence; each has its own distances.

    Returns:
        `Rows` with the columns `source`, `target` and `distance` (int64), ascending; a row for each
        vertex that a path leads to from the source, itself included.

    Raises:
        NotFoundError: The graph lacks one of the sources (also a `KeyError`).
        ProgramError: A distance has more than 65,534 edges.

    >>> import brimful as bf, pyarrow as pa
    >>> with bf.Graph.from_arrow(pa.table({"source": [0, 1], "target": [1, 2]})) as graph:
    ...     list(bf.distances(graph, [1, 0]))
    [(0, 0, 0), (0, 1, 1), (0, 2, 2), (1, 1, 0), (1, 2, 1)]
    """
    return run_rows(graph, "distances", {}, source=source, **options)


@described(RUN, *RUN_ERRORS)
def eccentricity(graph: GraphLike, source: Vertices, **options: Unpack[WorkOptions]) -> Rows:
    """Compute the greatest distance from each of several sources, and count the vertices reached.

    Sixty-four searches share each superstep (Then et al. 2014), with states of 136 bytes a vertex,
    on disk where they do not fit.

    Args:
        source: Id of a vertex to begin with, or several in a sequence.

    Returns:
        `Rows` with the columns `source`, `eccentricity` (int64), in edges, and `reached` (int64),
        the number of other vertices that paths lead to; by ascending source.

    Raises:
        NotFoundError: The graph lacks one of the sources (also a `KeyError`).
        ProgramError: A distance has more than 65,534 edges.

    >>> import brimful as bf, pyarrow as pa
    >>> with bf.Graph.from_arrow(pa.table({"source": [0, 1], "target": [1, 2]})) as graph:
    ...     list(bf.eccentricity(graph, [0, 2]))
    [(0, 2, 2), (2, 0, 0)]
    """
    return run_rows(graph, "eccentricity", {}, source=source, **options)


@described(RUN, *RUN_ERRORS)
def diameter(
    graph: GraphLike, source: Vertices | None = None, **options: Unpack[WorkOptions]
) -> Rows:
    """Find two vertices of a component at the greatest distance: exact, by iFUB.

    From a central vertex, the farthest vertices are searched first, until no remaining pair can be
    farther apart (Crescenzi et al. 2013). Most graphs take a few searches; the worst case is one
    for each vertex. `budget` must hold 12 bytes a vertex.

    Args:
        source: Id of a vertex of the component, strongly connected in a directed graph; None: that
            of the vertex with the most outgoing edges.

    Returns:
        `Rows` with one row, or none for an empty graph: `source`, `target` and `distance` (int64),
        the diameter in edges.

    Raises:
        NotFoundError: The graph has no such source (also a `KeyError`).
        ProgramError: A distance has more than 65,534 edges.

    >>> import brimful as bf, pyarrow as pa
    >>> table = pa.table({"source": [0, 1, 2, 7], "target": [1, 2, 3, 8]})
    >>> with bf.Graph.from_arrow(table, undirected=True) as graph:
    ...     [row[2] for row in bf.diameter(graph)], [row[2] for row in bf.diameter(graph, 8)]
    ([3], [1])
    """
    return run_rows(graph, "diameter", {}, source=source, **options)


@described(RUN, *RUN_ERRORS)
def effective_diameter(
    graph: GraphLike,
    *,
    quantile: float = 0.9,
    register_bits: Literal[6, 8, 10] = 6,
    **options: Unpack[WorkOptions],
) -> Rows:
    """Estimate the distance within which most pairs of vertices lie (HyperANF).

    Counts how many vertices are within each distance of each vertex, as `harmonic` does (Boldi,
    Rosa, Vigna 2011), and interpolates between two distances.

    Args:
        quantile: Share of all ordered pairs of different vertices with a path.
        register_bits: Logarithm of the bytes of a counter. The standard error of the number of
            vertices within a distance is 13 % for 6, 6.5 % for 8 and 3.3 % for 10.

    Returns:
        `Rows` with one row of float64: `quantile`, `distance`, and `pairs`, the estimated number of
        pairs.

    >>> import brimful as bf, pyarrow as pa
    >>> table = pa.table({"source": [0, 1, 2], "target": [1, 2, 3]})
    >>> with bf.Graph.from_arrow(table, undirected=True) as graph:
    ...     [(quantile, distance, pairs)] = bf.effective_diameter(graph, register_bits=10)
    >>> 2 < distance < 3, round(pairs)
    (True, 12)
    """
    own = {"quantile": quantile, "register_bits": register_bits}
    return run_rows(graph, "effective_diameter", own, **options)
