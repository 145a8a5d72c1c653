"""Structures of graphs in the Python API: sides, orders, sets, forests, blocks and trusses."""

from __future__ import annotations

from typing import Literal, Unpack

from brimful.algorithm_run import run_algorithm, run_rows
from brimful.opening import GraphLike
from brimful.options.described import RUN_ERRORS, described
from brimful.options.runs import RUN, DividedOptions, Mode, RunOptions
from brimful.options.table import WorkOptions
from brimful.result import Result
from brimful.rows import Rows


@described(RUN, *RUN_ERRORS)
def bipartite(
    graph: GraphLike,
    *,
    method: Literal["auto", "union_find", "propagation"] = "auto",
    max_supersteps: int | None = None,
    mode: Mode = "sync",
    **options: Unpack[RunOptions],
) -> Result:
    """Divide vertices into two sides such that every edge joins both.

    The smallest vertex of each component is on side 0. Direction is ignored. A component with an
    odd cycle, such as a self-loop, has no such sides.

    Args:
        method: "union_find" reads the edges once, with arrays of the vertices in memory.
            "propagation" works within any budget. "auto" chooses "union_find" if the arrays fit and
            no other argument needs supersteps.

    Returns:
        A `Result` with the column `side`: int64[n_vertices], 0 or 1; null in a component with an
        odd cycle.

    >>> import brimful as bf, pyarrow as pa
    >>> table = pa.table({"source": [1, 2, 5, 6, 7], "target": [2, 3, 6, 7, 5]})
    >>> with bf.Graph.from_arrow(table) as graph:
    ...     bf.bipartite(graph).to_arrow()["side"].to_pylist()
    [0, 1, 0, None, None, None]
    """
    params = {"method": method}
    return run_algorithm(
        graph, "bipartite", params, max_supersteps=max_supersteps, mode=mode, **options
    )


@described(RUN, *RUN_ERRORS)
def maximal_independent_set(
    graph: GraphLike,
    **options: Unpack[DividedOptions],
) -> Result:
    """Choose a maximal set of vertices without edges between them.

    They are the vertices of color 0 of `color`: the greedy set in its fixed order (Blelloch,
    Fineman, Shun 2012). Direction and self-loops do not matter.

    Returns:
        A `Result` with the column `member`: int64[n_vertices], 1 for a member, else 0.

    >>> import brimful as bf, pyarrow as pa
    >>> with bf.Graph.from_arrow(pa.table({"source": [0, 0, 0], "target": [1, 2, 3]})) as star:
    ...     bf.maximal_independent_set(star).to_arrow()["member"].to_pylist()
    [1, 0, 0, 0]
    """
    return run_algorithm(graph, "maximal_independent_set", {}, **options)


@described(RUN, *RUN_ERRORS)
def topological_order(
    graph: GraphLike,
    *,
    max_supersteps: int | None = None,
    **options: Unpack[RunOptions],
) -> Result:
    """Compute levels of a graph without cycles: the length of the longest path to each vertex.

    Every edge leads to a greater level, so ascending levels are a topological order (Kahn 1962).

    Returns:
        A `Result` with the column `level`: int64[n_vertices], 0 without incoming edges; null for
        vertices that a run limited by `max_supersteps` did not reach.

    Raises:
        InputError: The graph has a cycle, or a self-loop.

    >>> import brimful as bf, pyarrow as pa
    >>> table = pa.table({"source": [1, 1, 2], "target": [2, 3, 3]})
    >>> with bf.Graph.from_arrow(table) as graph:
    ...     dict(bf.topological_order(graph))
    {1: 0, 2: 1, 3: 2}
    """
    return run_algorithm(graph, "topological_order", {}, max_supersteps=max_supersteps, **options)


@described(RUN, *RUN_ERRORS)
def spanning_forest(
    graph: GraphLike,
    *,
    weighted: bool = False,
    **options: Unpack[WorkOptions],
) -> Result:
    """Find a minimum spanning forest (Kruskal 1956): the parent of each vertex in it.

    The edges to parents join every connected component with the least sum of weights. Direction is
    ignored. `budget` must hold 28 bytes a vertex; edges are sorted on disk where they do not fit.

    Args:
        weighted: Edges count by their weights, which may be negative, instead of 1 each.

    Returns:
        A `Result` with the column `parent`, of the type of `vertex`; a root is its own parent.

    >>> import brimful as bf, pyarrow as pa
    >>> table = pa.table({"source": [0, 1, 2], "target": [1, 2, 0], "weight": [1.0, 5.0, 2.0]})
    >>> with bf.Graph.from_arrow(table) as graph:
    ...     forest = dict(bf.spanning_forest(graph, weighted=True))
    >>> sorted(tuple(sorted(edge)) for edge in forest.items() if len(set(edge)) == 2)
    [(0, 1), (0, 2)]
    """
    return run_algorithm(graph, "spanning_forest", {}, weighted=weighted, **options)


@described(RUN, *RUN_ERRORS)
def bridges(graph: GraphLike, **options: Unpack[WorkOptions]) -> Rows:
    """Find the bridges: the edges whose removal splits a component (Tarjan, Vishkin 1985).

    Direction and self-loops are ignored. Parallel edges are not bridges, and neither are two
    opposite arcs. `budget` must hold 29 bytes a vertex; edges are streamed.

    Returns:
        `Rows` with the columns `source` and `target`, the smaller id first, ascending.

    >>> import brimful as bf, pyarrow as pa
    >>> table = pa.table({"source": [0, 1, 2, 2, 4], "target": [1, 2, 0, 3, 3]})
    >>> with bf.Graph.from_arrow(table) as graph:
    ...     list(bf.bridges(graph))
    [(2, 3), (3, 4)]
    """
    return run_rows(graph, "bridges", {}, **options)


@described(RUN, *RUN_ERRORS)
def articulation_points(graph: GraphLike, **options: Unpack[WorkOptions]) -> Result:
    """Find the articulation points: the vertices whose removal splits a component.

    Direction is ignored (Tarjan, Vishkin 1985). `budget` must hold 29 bytes a vertex; edges are
    streamed.

    Returns:
        A `Result` with the column `member`: int64[n_vertices], 1 for an articulation point, else 0.

    >>> import brimful as bf, pyarrow as pa
    >>> table = pa.table({"source": [0, 1, 2, 2, 4], "target": [1, 2, 0, 3, 3]})
    >>> with bf.Graph.from_arrow(table) as graph:
    ...     bf.articulation_points(graph).to_arrow()["member"].to_pylist()
    [0, 0, 1, 1, 0]
    """
    return run_algorithm(graph, "articulation_points", {}, **options)


@described(RUN, *RUN_ERRORS)
def ktruss(graph: GraphLike, **options: Unpack[WorkOptions]) -> Rows:
    """Compute the truss number of every edge (Cohen 2008; Wang, Cheng 2012).

    The greatest k such that the edge is part of a subgraph whose edges are each in at least k - 2
    triangles of it. The edges of numbers from k on are NetworkX's `k_truss(graph, k)`. Direction,
    parallel edges and self-loops are ignored. `budget` must hold 16 bytes a vertex and 36 an edge.

    Returns:
        `Rows` with the columns `source` and `target`, the smaller id first, ascending, and `truss`
        (int64), at least 2.

    >>> import brimful as bf, pyarrow as pa
    >>> table = pa.table({"source": [0, 1, 2, 2], "target": [1, 2, 0, 3]})
    >>> with bf.Graph.from_arrow(table) as graph:
    ...     list(bf.ktruss(graph))
    [(0, 1, 3), (0, 2, 3), (1, 2, 3), (2, 3, 2)]
    """
    return run_rows(graph, "ktruss", {}, **options)
