"""Random walks in the Python API."""

from __future__ import annotations

from typing import Unpack

from brimful.algorithm_run import run_rows
from brimful.opening import GraphLike
from brimful.options.described import RUN_ERRORS, described
from brimful.options.runs import RUN
from brimful.options.table import WorkOptions
from brimful.rows import Rows


@described(RUN, *RUN_ERRORS)
def random_walks(
    graph: GraphLike,
    *,
    walks: int = 10,
    length: int = 80,
    p: float = 1.0,
    q: float = 1.0,
    seed: int = 0,
    weighted: bool = False,
    **options: Unpack[WorkOptions],
) -> Rows:
    """Walk along edges from each vertex: uniformly, by weights, or as node2vec with `p` and `q`.

    A walk ends early at a vertex without out-edges. Walks depend only on the graph and `seed`: they
    are the same at any `budget` and number of threads. Lists of neighbors and walks are in memory
    where they fit, else on disk; `budget` must hold 16 bytes a vertex and,
    for each thread, 32 bytes for each out-edge of the largest hub.

    Args:
        walks: Walks from each vertex.
        length: Vertices of a walk, at most.
        p: The weight of a step back to the previous vertex is multiplied by 1 / p (Grover and
            Leskovec 2016).
        q: The weight of a step is multiplied by 1 / q if the previous vertex has no edge to its
            target.
        seed: Another seed gives other walks.
        weighted: Edges are taken in proportion to their weights, which must not be negative.

    Returns:
        `Rows` with the columns `walk` and `step` (int64), from 0 on, and `vertex`: walk by walk, by
        ascending first vertex.

    Raises:
        InputError: `weighted`, and a weight is negative.

    >>> import brimful as bf, pyarrow as pa
    >>> with bf.Graph.from_arrow(pa.table({"source": [5, 6], "target": [6, 7]})) as graph:
    ...     list(bf.random_walks(graph, walks=1))
    [(0, 0, 5), (0, 1, 6), (0, 2, 7), (1, 0, 6), (1, 1, 7), (2, 0, 7)]
    """
    own = {"walks": walks, "length": length, "p": p, "q": q, "seed": seed}
    return run_rows(graph, "random_walks", own, weighted=weighted, **options)
