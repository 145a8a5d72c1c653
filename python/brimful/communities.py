"""Communities of high modularity in the Python API, and measures of a partition."""

from __future__ import annotations

from typing import Any, Unpack

from brimful.algorithm_run import run_algorithm, run_rows
from brimful.errors import UsageError
from brimful.opening import GraphLike
from brimful.options import checks
from brimful.options.described import RUN_ERRORS, described
from brimful.options.runs import RUN
from brimful.options.table import WorkOptions, checked
from brimful.reporting import shows_progress
from brimful.resources import Resources
from brimful.result import Result
from brimful.rows import Rows
from brimful.wording import literal, shortened


@described(RUN, *RUN_ERRORS)
def louvain(
    graph: GraphLike,
    *,
    resolution: float = 1.0,
    iterations: int | None = None,
    levels: int | None = None,
    tolerance: float = 1e-7,
    weighted: bool = False,
    **options: Unpack[WorkOptions],
) -> Result:
    """Find communities of high modularity, level by level (Blondel et al. 2008).

    Vertices move, one after another, to the community of a neighbor that adds the most to the
    modularity; then communities become the vertices of the next level. Direction is ignored, and
    parallel edges add up. The lists of neighbors are streamed from disk where they do not fit
    `budget`, which must hold 73 bytes a vertex. The result has the same bits at any budget and
    number of threads.

    Args:
        resolution: Above 1 there are more and smaller communities, below 1 fewer and larger ones.
        iterations: Number of passes up the hierarchy. Each starts from single vertices in the
            communities of the previous pass, and improves these. None: 2, or 1 with `levels`.
        levels: The communities of the hierarchy after this many levels; None: all.
        tolerance: A level ends when a sweep over its vertices adds at most this to the modularity.
        weighted: Edges count by their weights, which must not be negative, instead of once each.

    Returns:
        A `Result` with the column `label`, the smallest vertex of the community, of the type of
        `vertex`.

    Raises:
        InputError: `weighted`, and a weight is negative.

    >>> import brimful as bf, pyarrow as pa
    >>> pair = pa.table({"source": [0, 1, 2, 2, 3, 4, 5], "target": [1, 2, 0, 3, 4, 5, 3]})
    >>> with bf.Graph.from_arrow(pair, undirected=True) as graph:
    ...     bf.louvain(graph).to_arrow()["label"].to_pylist()
    [0, 0, 0, 3, 3, 3]
    """
    return run_algorithm(
        graph,
        "louvain",
        _choices(resolution, iterations, levels),
        tolerance=tolerance,
        weighted=weighted,
        **options,
    )


@described(RUN, *RUN_ERRORS)
def leiden(
    graph: GraphLike,
    *,
    resolution: float = 1.0,
    iterations: int | None = None,
    levels: int | None = None,
    tolerance: float = 1e-7,
    weighted: bool = False,
    **options: Unpack[WorkOptions],
) -> Result:
    """Find connected communities of high modularity (Traag, Waltman, van Eck 2019).

    As `louvain`, but communities are refined into connected parts before these become the vertices
    of the next level. `budget` must hold 90 bytes a vertex.

    Args:
        resolution: Above 1 there are more and smaller communities, below 1 fewer and larger ones.
        iterations: Number of passes up the hierarchy. Each starts from single vertices in the
            communities of the previous pass, and improves these. None: 2, or 1 with `levels`.
        levels: The communities of the hierarchy after this many levels; None: all.
        tolerance: A level ends when a sweep over its vertices adds at most this to the modularity.
        weighted: Edges count by their weights, which must not be negative, instead of once each.

    Returns:
        A `Result` with the column `label`, the smallest vertex of the community, of the type of
        `vertex`.

    Raises:
        InputError: `weighted`, and a weight is negative.

    >>> import brimful as bf, pyarrow as pa
    >>> pair = pa.table({"source": [0, 1, 2, 2, 3, 4, 5], "target": [1, 2, 0, 3, 4, 5, 3]})
    >>> with bf.Graph.from_arrow(pair, undirected=True) as graph:
    ...     bf.leiden(graph).to_arrow()["label"].to_pylist()
    [0, 0, 0, 3, 3, 3]
    """
    return run_algorithm(
        graph,
        "leiden",
        _choices(resolution, iterations, levels),
        tolerance=tolerance,
        weighted=weighted,
        **options,
    )


@described(RUN, *RUN_ERRORS)
def louvain_hierarchy(
    graph: GraphLike,
    *,
    resolution: float = 1.0,
    tolerance: float = 1e-7,
    weighted: bool = False,
    **options: Unpack[WorkOptions],
) -> Rows:
    """Find the communities of `louvain` after each level of one iteration, side by side.

    `budget` must hold 105 bytes a vertex.

    Args:
        resolution: Above 1 there are more and smaller communities, below 1 fewer and larger ones.
        tolerance: A level ends when a sweep over its vertices adds at most this to the modularity.
        weighted: Edges count by their weights, which must not be negative, instead of once each.

    Returns:
        `Rows` with the columns `vertex`, ascending, and `level_1`, `level_2`, ... of its type: the
        smallest vertex of the community. Column `level_k` is the result of `louvain` with
        `levels=k`. There are at most 32 columns; the last one is the final level.

    Raises:
        InputError: `weighted`, and a weight is negative.

    >>> import brimful as bf, pyarrow as pa
    >>> pair = pa.table({"source": [0, 1, 2, 2, 3, 4, 5], "target": [1, 2, 0, 3, 4, 5, 3]})
    >>> with bf.Graph.from_arrow(pair, undirected=True) as graph:
    ...     rows = bf.louvain_hierarchy(graph)
    >>> rows.columns[:2], rows.to_numpy("level_1").tolist()
    (['vertex', 'level_1'], [0, 0, 0, 3, 3, 3])
    """
    own = {"resolution": resolution}
    chosen: Any = {"tolerance": tolerance, "weighted": weighted, **options}
    return run_rows(graph, "louvain_hierarchy", own, **chosen)


@described(RUN, *RUN_ERRORS)
def leiden_hierarchy(
    graph: GraphLike,
    *,
    resolution: float = 1.0,
    tolerance: float = 1e-7,
    weighted: bool = False,
    **options: Unpack[WorkOptions],
) -> Rows:
    """Find the communities of `leiden` after each level of one iteration, side by side.

    `budget` must hold 122 bytes a vertex.

    Args:
        resolution: Above 1 there are more and smaller communities, below 1 fewer and larger ones.
        tolerance: A level ends when a sweep over its vertices adds at most this to the modularity.
        weighted: Edges count by their weights, which must not be negative, instead of once each.

    Returns:
        `Rows` as of `louvain_hierarchy`; the communities of each level are connected.

    Raises:
        InputError: `weighted`, and a weight is negative.

    >>> import brimful as bf, pyarrow as pa
    >>> pair = pa.table({"source": [0, 1, 2, 2, 3, 4, 5], "target": [1, 2, 0, 3, 4, 5, 3]})
    >>> with bf.Graph.from_arrow(pair, undirected=True) as graph:
    ...     bf.leiden_hierarchy(graph).to_numpy("level_1").tolist()
    [0, 0, 0, 3, 3, 3]
    """
    own = {"resolution": resolution}
    chosen: Any = {"tolerance": tolerance, "weighted": weighted, **options}
    return run_rows(graph, "leiden_hierarchy", own, **chosen)


def _choices(resolution: float, iterations: int | None, levels: int | None) -> dict[str, object]:
    given = {"resolution": resolution, "iterations": iterations, "levels": levels}
    return {name: value for name, value in given.items() if value is not None}


@shows_progress
@described(RUN, "budget", "corrupt", "io")
def modularity(
    partition: Result,
    *,
    resolution: float = 1.0,
    weighted: bool = False,
    **options: Unpack[WorkOptions],
) -> float:
    """Return the modularity of a partition: the weight within communities beyond that of chance.

    The sum over communities of inside / 2m - `resolution` * (strength / 2m) ** 2 (Newman and Girvan
    2004). Each edge has an arc in both directions. 2m is the weight of all arcs, inside the weight
    of the arcs within the community, and strength the weight of all arcs of its vertices. Direction
    is ignored.

    Args:
        partition: The result of a run; vertices of one value are a community.
        resolution: Factor of the term (strength / 2m) ** 2, the share of arcs expected by chance.
        weighted: Edges count by their weights, which must not be negative, instead of once each.

    Returns:
        The modularity, below 1; 0 without edges.

    Raises:
        UsageError: The partition is not a `Result`, or has vertices without a value.
        InputError: `weighted`, and a weight is negative.

    >>> import brimful as bf, pyarrow as pa
    >>> pair = pa.table({"source": [0, 1, 2, 2, 3, 4, 5], "target": [1, 2, 0, 3, 4, 5, 3]})
    >>> with bf.Graph.from_arrow(pair, undirected=True) as graph:
    ...     round(bf.modularity(bf.louvain(graph)), 4)
    0.3571
    """
    from brimful import _native

    factor = checks.real(resolution, "resolution")
    if factor is None or factor < 0:
        raise UsageError(f"resolution must be at least 0, not {literal(resolution)}")
    return _native.modularity(partition_of(partition), factor, **_work(weighted, options))


@shows_progress
@described(RUN, "budget", "corrupt", "io")
def conductance(
    partition: Result,
    *,
    weighted: bool = False,
    **options: Unpack[WorkOptions],
) -> Result:
    """Return for each vertex the conductance of its community: the share of arcs that leave it.

    The weight of the arcs that leave a community over that of all arcs of its vertices, or of all
    other vertices if that is less (Kannan, Vempala, Vetta 2004). Direction is ignored.

    Args:
        partition: The result of a run; vertices of one value are a community.
        weighted: Edges count by their weights, which must not be negative, instead of once each.

    Returns:
        A `Result` with the column `conductance`: float64[n_vertices], from 0 to 1; null for a
        community with no edges, or with all of them.

    Raises:
        UsageError: The partition is not a `Result`, or has vertices without a value.
        InputError: `weighted`, and a weight is negative.

    >>> import brimful as bf, pyarrow as pa
    >>> pair = pa.table({"source": [0, 1, 2, 2, 3, 4, 5], "target": [1, 2, 0, 3, 4, 5, 3]})
    >>> with bf.Graph.from_arrow(pair, undirected=True) as graph:
    ...     round(bf.conductance(bf.louvain(graph))[0], 4)
    0.1429
    """
    from brimful import _native

    return Result(_native.conductance(partition_of(partition), **_work(weighted, options)))


def partition_of(partition: Result) -> Any:
    """Return a partition as the native module takes it.

    Raises:
        UsageError: `partition` is not the result of a run.
    """
    if not isinstance(partition, Result):
        raise UsageError(f"partition must be the result of a run, not {shortened(partition)}")
    return partition.native


def _work(weighted: bool, options: WorkOptions) -> dict[str, Any]:
    chosen = checked(WorkOptions, options)
    resources = Resources.of(chosen)
    return {"weighted": checks.flag(weighted, "weighted"), "resources": resources}
