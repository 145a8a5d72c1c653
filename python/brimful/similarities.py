"""Similarity of vertices in the Python API."""

from __future__ import annotations

from typing import Literal, Unpack

from brimful.algorithm_run import run_rows
from brimful.opening import GraphLike
from brimful.options.described import RUN_ERRORS, described
from brimful.options.runs import RUN
from brimful.options.table import WorkOptions
from brimful.rows import Rows

#: How common neighbors count.
Measure = Literal["jaccard", "adamic_adar", "common_neighbors", "overlap", "resource_allocation"]


@described(RUN, *RUN_ERRORS)
def similarity(
    graph: GraphLike,
    *,
    measure: Measure = "jaccard",
    pairs: object | None = None,
    k: int | None = None,
    **options: Unpack[WorkOptions],
) -> Rows:
    """Compute the similarity of pairs of vertices by their common neighbors, as in NetworkX.

    Scores the given `pairs`, or for each vertex the `k` others with the greatest scores above 0.
    Direction and parallel edges are ignored. Lists of neighbors are in memory where they fit
    `budget`, else on disk; pairs are streamed. Partners take time that grows with the squares of
    degrees.

    Args:
        measure: How common neighbors count: "jaccard" (their number over that of all neighbors
            of both), "adamic_adar" (each 1 / ln(degree)), "common_neighbors" (each 1), "overlap"
            (their number over the smaller number of neighbors), or "resource_allocation" (each
            1 / degree).
        k: Partners of each vertex, without `pairs`; None: 10.

    Returns:
        `Rows` with the columns `source`, `target` and `score` (float64): the pairs in their order,
        or by ascending `source` its partners, the most similar first.

    Raises:
        NotFoundError: The graph lacks a vertex of a pair, or there is no file of pairs.
        InputError: The pairs cannot be read.

    >>> import brimful as bf, pyarrow as pa
    >>> table = pa.table({"source": [0, 0, 1, 1], "target": [2, 3, 2, 3]})
    >>> pairs = pa.table({"source": [0, 0], "target": [1, 2]})
    >>> with bf.Graph.from_arrow(table) as graph:
    ...     list(bf.similarity(graph, pairs=pairs))
    ...     list(bf.similarity(graph, measure="adamic_adar", k=1))[0]
    [(0, 1, 1.0), (0, 2, 0.0)]
    (0, 1, 2.8853900817779268)
    """
    own = {"measure": measure} if k is None else {"measure": measure, "k": k}
    return run_rows(graph, "similarity", own, pairs=pairs, **options)
