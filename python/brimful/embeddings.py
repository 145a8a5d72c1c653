"""Embeddings of vertices in the Python API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from brimful.algorithm_run import run_rows
from brimful.opening import GraphLike
from brimful.options.described import RUN_ERRORS, described
from brimful.options.runs import RUN
from brimful.options.table import WorkOptions
from brimful.rows import Rows


@described(RUN, *RUN_ERRORS)
def fastrp(
    graph: GraphLike,
    *,
    dimensions: int = 128,
    iteration_weights: Sequence[float] = (0.0, 1.0, 1.0),
    normalization: float = 0.0,
    seed: int = 0,
    weighted: bool = False,
    **options: Unpack[WorkOptions],
) -> Rows:
    """Embed each vertex: similar neighborhoods get similar vectors (FastRP).

    A random vector of each vertex is averaged over its neighbors, as often as `iteration_weights`
    has entries; the embedding is the sum of these averages by their weights (Chen et al. 2019).
    Direction is ignored. An embedding depends on the graph, the parameters and `seed` alone: it is
    the same at any `budget` and number of threads.

    Args:
        dimensions: Length of an embedding, at most 4,096.
        iteration_weights: Weights of the neighbors at 1, 2, ... steps.
        normalization: The random vector of a vertex of degree d is multiplied by
            `(d / 2m) ** normalization`, where 2m is the sum of all degrees. Below 0, vertices with
            many edges count less.
        seed: A different seed gives different random vectors.
        weighted: Edges count by their weights, which must not be negative; so do degrees.

    Returns:
        `Rows` with the columns `vertex` and `embedding`: lists of `dimensions` float32 (in Arrow
        and Parquet of fixed size), by ascending vertex. Vertices without edges have zeros.

    Raises:
        InputError: `weighted`, and a weight is negative.

    >>> import brimful as bf, pyarrow as pa
    >>> table = pa.table({"source": [0, 0, 1, 1], "target": [2, 3, 2, 3]})
    >>> with bf.Graph.from_arrow(table) as graph:
    ...     rows = bf.fastrp(graph, dimensions=8)
    >>> numbers = rows.to_numpy("embedding")
    >>> numbers.shape, numbers.dtype.name, bool((numbers[0] == numbers[1]).all())
    ((4, 8), 'float32', True)
    """
    own = {
        "dimensions": dimensions,
        "iteration_weights": iteration_weights,
        "normalization": normalization,
        "seed": seed,
    }
    return run_rows(graph, "fastrp", own, weighted=weighted, **options)
