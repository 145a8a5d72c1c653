"""The algorithms of the Python API; each returns a `Result` with a value for every vertex."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Unpack

from brimful.algorithm_run import run_algorithm
from brimful.ids import Vertices
from brimful.opening import GraphLike
from brimful.options.described import RUN_ERRORS, described
from brimful.options.runs import (
    RUN,
    DividedOptions,
    Mode,
    Precision,
    RunOptions,
    source_shares,
)
from brimful.options.table import WorkOptions
from brimful.result import Result


@described(RUN, *RUN_ERRORS)
def pagerank(
    graph: GraphLike,
    *,
    damping: float = 0.85,
    tolerance: float = 1e-6,
    max_supersteps: int | None = None,
    variant: Literal["normalized", "unnormalized"] = "normalized",
    source: Vertices | Mapping[int | str, float] | None = None,
    method: Literal["power", "delta"] | None = None,
    precision: Precision = "f64",
    weighted: bool = False,
    mode: Mode = "sync",
    **options: Unpack[RunOptions],
) -> Result:
    """Rank vertices by the edges that lead to them (Page, Brin, Motwani, Winograd 1999).

    With `source`, rank begins at that vertex only, and the rank of sinks returns to it (NetworkX's
    `personalization={source: 1}`); several vertices share both evenly, or by the weights of a
    mapping. One superstep of "power" is one pass over the edges. The result of `mode` "sync" has
    the same bits at any budget and number of threads. `mode` "async" converges to the same values
    and visits the vertices with the largest change first; `stats["edge_visits"]` counts the edges
    visited: about as many as "sync" on web and road graphs, up to 2.3 times as many on R-MAT
    graphs. On a `store`, sums differ by the order of their terms; "async" has no supersteps there,
    so `max_supersteps` does not apply, and uses `method` "delta".

    Args:
        damping: Share of a rank that follows edges, from 0 to 1; below 1 for "delta".
        tolerance: Stop at an L1 change of at most this, divided by the number of vertices for
            "unnormalized"; 0 never stops early.
        max_supersteps: Stop after this many supersteps; None: 100.
        variant: "normalized" sums to 1 and spreads the rank of sinks over all vertices.
            "unnormalized" is Signal/Collect's 1 - damping + damping * sum, without a sink term.
        source: Id of the vertex to personalize for, or several in a sequence, or a mapping of
            several to their shares, which need not add up to 1; "normalized" only.
        method: "power" recomputes every rank; "delta" signals increments above a threshold that
            `tolerance` implies, usually with fewer signals and at most the same error; None:
            "power".
        weighted: Split a rank by the weights of the edges.

    Returns:
        A `Result` with the column `pagerank`: float64[n_vertices].

    Raises:
        UsageError: `source` is given with "unnormalized", a share is negative or no number, or all
            are 0.
        NotFoundError: The graph has no vertex `source`, or lacks one of several.
        InputError: `weighted`, and a weight is negative, or the weights of a vertex add up to
            infinity or lie too far apart for `precision`.

    >>> import brimful as bf, pyarrow as pa
    >>> ring = pa.table({"source": [0, 1, 2, 3], "target": [1, 2, 3, 0]})
    >>> with bf.Graph.from_arrow(ring) as graph:
    ...     bf.pagerank(graph)[3], bf.pagerank(graph, source={1: 3.0, 2: 1.0}, damping=0.0)[1]
    (0.25, 0.75)
    """
    if "source_weight" in options:
        raise TypeError(
            "pagerank() got an unexpected keyword argument 'source_weight'; give source= a mapping "
            "of vertices to their shares"
        )
    weights = source_shares(source) if isinstance(source, Mapping) else None
    return run_algorithm(
        graph,
        "pagerank",
        {"damping": damping, "variant": variant} | ({"method": method} if method else {}),
        tolerance=tolerance,
        max_supersteps=max_supersteps,
        source=list(source) if isinstance(source, Mapping) else source,
        source_weight=weights,
        precision=precision,
        weighted=weighted,
        mode=mode,
        **options,
    )


@described(RUN, *RUN_ERRORS)
def hits(
    graph: GraphLike,
    *,
    values: Literal["authority", "hub"] = "authority",
    tolerance: float = 1e-8,
    max_supersteps: int = 200,
    weighted: bool = False,
    **options: Unpack[RunOptions],
) -> Result:
    """Find hubs and authorities (Kleinberg 1999): good hubs lead to good authorities.

    Let A be the matrix of arcs. The scores are the limits of a = A.T @ h and h = A @ a, each
    divided by its sum after every step, starting from h = 1 / n_vertices. Supersteps compute
    authorities and hubs in turn. Where the largest singular value of A has several vectors, the one
    nearest to the start is the limit (NetworkX returns any). Without edges all scores are 0.

    Args:
        values: The score to return: "authority" or "hub".
        tolerance: Stop when the scores that a superstep reads differ by at most this in L1 from
            those of the previous superstep; 0 never stops early.
        max_supersteps: Stop after this many supersteps.
        weighted: Arcs count by their weights, which must not be negative, instead of once each.

    Returns:
        A `Result` with the column `authority` or `hub`: float64[n_vertices], of sum 1.

    Raises:
        InputError: `weighted`, and a weight is negative.

    >>> import brimful as bf, pyarrow as pa
    >>> with bf.Graph.from_arrow(pa.table({"source": [0, 1], "target": [2, 2]})) as graph:
    ...     bf.hits(graph)[2], bf.hits(graph, values="hub")[0]
    (1.0, 0.5)
    """
    return run_algorithm(
        graph,
        "hits",
        {"values": values},
        tolerance=tolerance,
        max_supersteps=max_supersteps,
        weighted=weighted,
        **options,
    )


@described(RUN, *RUN_ERRORS)
def connected_components(
    graph: GraphLike,
    *,
    method: Literal["auto", "union_find", "propagation"] = "auto",
    max_supersteps: int | None = None,
    mode: Mode = "sync",
    **options: Unpack[RunOptions],
) -> Result:
    """Label vertices by weakly connected component: the smallest vertex id in it.

    The direction of edges is ignored.

    Args:
        method: "union_find" passes over the edges once, with arrays in memory. "propagation" works
            within any budget and runs until no label changes. "auto" is union-find where it fits,
            and propagation with checkpoints or `max_supersteps`.

    Returns:
        A `Result` with the column `component`, of the type of `vertex`.

    >>> import brimful as bf, pyarrow as pa
    >>> with bf.Graph.from_arrow(pa.table({"source": [5, 7], "target": [6, 8]})) as graph:
    ...     dict(bf.connected_components(graph))
    {5: 5, 6: 5, 7: 7, 8: 7}
    """
    return run_algorithm(
        graph,
        "connected_components",
        {"method": method},
        max_supersteps=max_supersteps,
        mode=mode,
        **options,
    )


@described(RUN, *RUN_ERRORS)
def scc(
    graph: GraphLike,
    *,
    method: Literal["auto", "search", "coloring"] = "auto",
    max_supersteps: int | None = None,
    **options: Unpack[RunOptions],
) -> Result:
    """Label vertices by strongly connected component: the smallest vertex id in it.

    Two vertices are in one component if each reaches the other along edges.

    Args:
        method: "search" is one depth-first search with the edges in memory. "coloring" works in
            any budget. "auto" searches if the edges fit and no other argument needs supersteps; for
            an undirected graph it finds the connected components, which are the same.

    Returns:
        A `Result` with the column `component`, of the type of `vertex`; null for vertices that a
        run limited by `max_supersteps` did not reach.

    >>> import brimful as bf, pyarrow as pa
    >>> with bf.Graph.from_arrow(pa.table({"source": [1, 2, 2], "target": [2, 1, 3]})) as graph:
    ...     bf.scc(graph).to_arrow()["component"].to_pylist()
    [1, 1, 3]
    """
    return run_algorithm(graph, "scc", {"method": method}, max_supersteps=max_supersteps, **options)


@described(RUN, *RUN_ERRORS)
def kcore(
    graph: GraphLike,
    *,
    method: Literal["auto", "peeling", "rounds"] = "auto",
    max_supersteps: int | None = None,
    **options: Unpack[RunOptions],
) -> Result:
    """Compute core numbers: the largest k such that a vertex is in the k-core.

    The k-core is the largest set of vertices with k neighbors each within the set. Direction is
    ignored and each parallel arc counts, so opposite arcs of a directed graph count twice;
    self-loops do not count.

    Args:
        method: "peeling" removes one vertex after another, with the numbers of all vertices and a
            32nd of the edges, or more, in memory. "rounds" removes all of least degree at once, in
            any budget. "auto" peels if that memory suffices and no other argument needs
            supersteps.

    Returns:
        A `Result` with the column `core`: int64[n_vertices]; null for vertices that a run limited
        by `max_supersteps` did not reach.

    >>> import brimful as bf, pyarrow as pa
    >>> table = pa.table({"source": [0, 1, 2, 2], "target": [1, 2, 0, 3]})
    >>> with bf.Graph.from_arrow(table) as graph:
    ...     bf.kcore(graph).to_arrow()["core"].to_pylist()
    [2, 2, 2, 1]
    """
    return run_algorithm(
        graph, "kcore", {"method": method}, max_supersteps=max_supersteps, **options
    )


@described(RUN, *RUN_ERRORS)
def bfs(
    graph: GraphLike,
    source: Vertices,
    *,
    values: Literal["distance", "parent"] = "distance",
    max_supersteps: int | None = None,
    mode: Mode = "sync",
    **options: Unpack[RunOptions],
) -> Result:
    """Search breadth-first along edges from `source`.

    Args:
        values: "distance" counts edges from the nearest source. "parent" is the vertex with the
            smallest id among those one edge nearer with an edge to this vertex; a source is its
            own parent.
        max_supersteps: Stop after this many supersteps, which is also the largest distance in
            `mode` "sync"; None: no limit.
        mode: "sync" runs level by level; "async" (for distances only) does not wait for a level
            to end and corrects distances.

    Returns:
        A `Result` with the column `distance`, int64[n_vertices], or `parent`, of the type of
        `vertex`; null where no path leads.

    Raises:
        NotFoundError: The graph has no vertex `source`, or lacks one of several.
        UsageError: "parent", and ids reach from below 0 to 2**63 or beyond.

    >>> import brimful as bf, pyarrow as pa
    >>> with bf.Graph.from_arrow(pa.table({"source": [5, 7], "target": [7, 9]})) as graph:
    ...     bf.bfs(graph, 7).to_arrow()["distance"].to_pylist()
    [None, 0, 1]
    >>> with bf.Graph.from_arrow(pa.table({"source": [5, 7], "target": [7, 9]})) as graph:
    ...     bf.bfs(graph, [5, 9], values="parent").to_arrow()["parent"].to_pylist()
    [5, 5, 9]
    """
    return run_algorithm(
        graph,
        "bfs",
        {"values": values},
        source=source,
        max_supersteps=max_supersteps,
        mode=mode,
        **options,
    )


@described(RUN, *RUN_ERRORS)
def sssp(
    graph: GraphLike,
    source: Vertices,
    *,
    weighted: bool = False,
    max_supersteps: int | None = None,
    mode: Mode = "sync",
    **options: Unpack[RunOptions],
) -> Result:
    """Find shortest paths along edges from `source`.

    The run ends when no distance shrinks. A long run, for example on roads, continues in the order
    of distances (Dijkstra) if the edges fit `budget`: this is one more superstep, with the same
    bits. `max_supersteps` prevents it. Several sources are NetworkX's `multi_source_dijkstra`.

    Args:
        weighted: The length of a path is the sum of its weights, which must not be negative, in
            place of its number of edges. Sums may be up to 1.8e308 along shortest paths.

    Returns:
        A `Result` with the column `distance`: float64[n_vertices], null where no path leads.

    Raises:
        NotFoundError: The graph has no vertex `source`, or lacks one of several.
        UsageError: `weighted`, and the graph has no weights.
        InputError: `weighted`, and a weight is negative, or a distance is beyond the largest
            number.

    >>> import brimful as bf, pyarrow as pa
    >>> table = pa.table({"source": [5, 5, 7], "target": [7, 9, 9], "weight": [1.0, 5.0, 2.0]})
    >>> with bf.Graph.from_arrow(table) as graph:
    ...     bf.sssp(graph, 5, weighted=True)[9], bf.sssp(graph, 5)[9]
    (3.0, 1.0)
    """
    return run_algorithm(
        graph,
        "sssp",
        {},
        source=source,
        weighted=weighted,
        max_supersteps=max_supersteps,
        mode=mode,
        **options,
    )


@described(RUN, *RUN_ERRORS)
def count_paths(
    graph: GraphLike,
    source: Vertices,
    *,
    length: int | None = None,
    **options: Unpack[RunOptions],
) -> Result:
    """Count shortest paths from `source`, or walks of `length` edges.

    Parallel edges make separate paths. With several sources, shortest paths start at the
    nearest source, walks at any source.

    Args:
        length: Count walks of this many edges instead of shortest paths; None: shortest paths.

    Returns:
        A `Result` with the column `paths`: uint64[n_vertices], 0 where no path leads.

    Raises:
        NotFoundError: The graph has no vertex `source`, or lacks one of several.
        ProgramError: A vertex has more than 2**64 - 2 paths.

    >>> import brimful as bf, pyarrow as pa
    >>> table = pa.table({"source": [0, 0, 1, 2], "target": [1, 2, 3, 3]})
    >>> with bf.Graph.from_arrow(table) as graph:
    ...     bf.count_paths(graph, 0)[3], bf.count_paths(graph, 0, length=1)[3]
    (2, 0)
    """
    params = {} if length is None else {"length": length}
    return run_algorithm(graph, "count_paths", params, source=source, **options)


@described(RUN, *RUN_ERRORS)
def degrees(
    graph: GraphLike,
    *,
    direction: Literal["out", "in", "both"] = "out",
    **options: Unpack[RunOptions],
) -> Result:
    """Count the arcs of each vertex; each parallel arc counts.

    Args:
        direction: Arcs that leave ("out"), that reach ("in"), or both.

    Returns:
        A `Result` with the column `degree`: int64[n_vertices].

    >>> import brimful as bf, pyarrow as pa
    >>> with bf.Graph.from_arrow(pa.table({"source": [0, 0], "target": [1, 2]})) as graph:
    ...     bf.degrees(graph)[0], bf.degrees(graph, direction="in")[0]
    (2, 0)
    """
    return run_algorithm(graph, "degrees", {"direction": direction}, **options)


@described(RUN, *RUN_ERRORS)
def label_propagation(
    graph: GraphLike,
    *,
    max_supersteps: int = 10,
    **options: Unpack[DividedOptions],
) -> Result:
    """Find communities: each vertex takes the most frequent label of its neighbors.

    Labels begin as vertex ids; the smallest wins a tie; a vertex without neighbors keeps its own
    (LDBC Graphalytics' CDLP). Direction is ignored, but a neighbor joined both ways counts twice.
    The run stops early where no label changes.

    Args:
        max_supersteps: Number of rounds.

    Returns:
        A `Result` with the column `label`, of the type of `vertex`.

    >>> import brimful as bf, pyarrow as pa
    >>> table = pa.table({"source": [0, 1, 2], "target": [1, 2, 0]})
    >>> with bf.Graph.from_arrow(table, undirected=True) as graph:
    ...     bf.label_propagation(graph).to_arrow()["label"].to_pylist()
    [0, 0, 0]
    """
    return run_algorithm(graph, "label_propagation", {}, max_supersteps=max_supersteps, **options)


@described(RUN, *RUN_ERRORS)
def color(
    graph: GraphLike,
    **options: Unpack[DividedOptions],
) -> Result:
    """Color vertices so that no edge joins two of the same color: first-fit in a fixed order.

    The order is descending by the bit length of the degree (arcs in either direction, self-loops
    left out), then by splitmix64(vertex - smallest vertex), for strings of the rank among them
    (largest-log-degree-first: Hasenplaugh, Kaler, Schardl, Leiserson 2014). Each vertex takes the
    least color that no neighbor before it has.

    Returns:
        A `Result` with the column `color`: uint64[n_vertices], from 0 on.

    >>> import brimful as bf, pyarrow as pa
    >>> with bf.Graph.from_arrow(pa.table({"source": [0, 0, 0], "target": [1, 2, 3]})) as star:
    ...     bf.color(star).to_arrow()["color"].to_pylist()
    [0, 1, 1, 1]
    """
    return run_algorithm(graph, "color", {}, **options)


@described(RUN, *RUN_ERRORS)
def clustering(
    graph: GraphLike,
    **options: Unpack[WorkOptions],
) -> Result:
    """Compute local clustering coefficients: the share of pairs of neighbors that are joined.

    Neighbors are those in either direction, each once. The coefficient is the number of arcs
    among them divided by the number of ordered pairs, 0 with fewer than two neighbors (LDBC
    Graphalytics' LCC). Self-loops and parallel arcs do not count. The neighbors must fit `budget`:
    4 bytes an arc, 36 bytes a vertex, and one more byte a vertex for each thread.

    Returns:
        A `Result` with the column `coefficient`: float64[n_vertices].

    >>> import brimful as bf, pyarrow as pa
    >>> table = pa.table({"source": [0, 1, 2], "target": [1, 2, 0]})
    >>> with bf.Graph.from_arrow(table, undirected=True) as graph:
    ...     bf.clustering(graph)[0]
    1.0
    """
    return run_algorithm(graph, "clustering", {}, **options)


@described(RUN, *RUN_ERRORS)
def triangles(
    graph: GraphLike,
    **options: Unpack[WorkOptions],
) -> Result:
    """Count the triangles that contain each vertex, whatever the direction of the edges.

    Self-loops and parallel arcs do not count. The neighbors must fit `budget`: 4 bytes an arc, 36
    bytes a vertex, and one more byte a vertex for each thread.

    Returns:
        A `Result` with the column `triangles`: int64[n_vertices].

    >>> import brimful as bf, pyarrow as pa
    >>> with bf.Graph.from_arrow(pa.table({"source": [0, 1, 2], "target": [1, 2, 0]})) as graph:
    ...     bf.triangles(graph)[0]
    1
    """
    return run_algorithm(graph, "triangles", {}, **options)
