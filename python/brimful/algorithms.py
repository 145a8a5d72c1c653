"""The algorithms of the Python API; each returns a `Result` with a value for every vertex."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from brimful import checks
from brimful.catalog import asked
from brimful.choices import Layout, Lists, Mode, Precision
from brimful.graph import GraphLike, as_graph
from brimful.ingest import Resources
from brimful.reporting import reported
from brimful.result import Result
from brimful.sizes import Budget, checkpoint_interval, parse_budget

if TYPE_CHECKING:
    from brimful.reporting import Progress


class Checkpoints(TypedDict, total=False):
    """Where a run can be gone on from.

    `checkpoint_every` 5 makes a checkpoint after every fifth superstep, "30s" after the first one
    that ends 30 seconds after the last, in the folder `checkpoint_dir` (default: beside the graph,
    `NAME.ALGORITHM.checkpoints`). `resume` goes on from the last complete one, which must be of
    the same graph, algorithm and parameters, and ends with the bits of a run that nothing stopped;
    only limits, `budget` and `threads` may differ, but in `mode` "async" another division into
    blocks, which the budget decides, is refused. Without one it starts from the beginning and says
    so (logger `brimful`; `stats["resumed_from"]`). A run that converges removes its checkpoints,
    one that a limit ends (of `label_propagation` 10 supersteps by default) keeps them.
    `connected_components` with checkpoints propagates labels in place of union-find. With a
    `store` too; where `mode` is "async" it has no supersteps there, and checkpoints come by the
    second.
    """

    checkpoint_every: int | str | None
    checkpoint_dir: str | os.PathLike[str] | None
    resume: bool


class Options(Checkpoints, total=False):
    """Checkpoints, or vertices as records in a store in place of edges that stream from shards.

    `store`: "memory" (live objects), "bytes" (records in memory) or "file:PATH" (records in a
    folder of the run within PATH, which is removed after it).
    `serializer`: how records are written, "native" (the default), "compact" or "generic",
    each also with "+lz4", "+zstd" or "+zlib". `cache`: "lru:N" or "score:N", N vertices kept live.
    `lists`: "memory" or "disk", where vertices that are to signal and signals that are to be
    collected wait. With `mode` "async" there are no supersteps. What the store did is in
    `stats["store_figures"]`, what the cache did in `stats["cache"]`. The answers are the same.
    """

    store: str | None
    serializer: str | None
    cache: str | None
    lists: Lists | None


def pagerank(
    graph: GraphLike,
    *,
    damping: float = 0.85,
    tolerance: float = 1e-6,
    max_supersteps: int | None = None,
    variant: Literal["normalized", "unnormalized"] = "normalized",
    source: int | str | None = None,
    method: Literal["power", "delta"] | None = None,
    precision: Precision = "f64",
    weighted: bool = False,
    mode: Mode = "sync",
    layout: Layout = "shards",
    threads: int | None = None,
    budget: Budget = None,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Result:
    """Rank vertices by the edges that lead to them (Page, Brin, Motwani, Winograd 1999).

    `variant` "normalized" sums to 1, spreads the rank of sinks over all vertices and stops at an
    L1 change <= `tolerance`. "unnormalized" is Signal/Collect's: 1 - damping + damping * sum, no
    sink term, and the change is divided by the number of vertices. `tolerance` 0 never stops
    early: exactly `max_supersteps` updates, by default 100. `precision` "f32" narrows the signals
    in memory. `weighted` splits a rank by edge weights.

    `source`, a vertex id, personalises: rank begins, and the rank of sinks goes on, at that vertex
    only (NetworkX's `personalization={source: 1}`); normalized only. `method` "delta" signals
    increments, and only those above a threshold that `tolerance` gives: scores that are wrong by
    at most what "power" allows at the same tolerance, mostly with fewer signals; `damping` < 1.

    `mode` "async" lets vertices hear signals within the same sweep over the edges (Gauss-Seidel),
    those with the most change first: the same limit, not the same bits. `stats["edge_visits"]` says
    what that took: about as many edge visits on web and road graphs, up to twice as many on R-MAT
    graphs, where "sync" converges in a dozen supersteps.

    `budget` (bytes or "500M"; default: the graph's) limits brimful's own memory; the result of
    "sync" is the same bits at any budget and thread count.
    `layout` says how edges lie on disk during the run: "shards", or for comparison a list of
    in-neighbours for each vertex, apart from its state ("decoupled") or in one record with it
    ("coupled"), made in scratch space first (Koduru, Gupta, Neamtiu 2015); the same bits again.
    `options` are checkpoints to resume from, see `Checkpoints`, or a store that keeps vertices in
    place of shards: `store="bytes"`, see `Options`. There sums differ by the order in which they
    are added; "async" has no supersteps there, and so takes no `max_supersteps` and chooses the
    `method` "delta" (else "power"), which it says (logger `brimful`).

    Returns a `Result` with column `pagerank`, float64[n_vertices]. One pass over the edges per
    superstep ("power").

    Raises:
        UsageError: a parameter out of range, or `source` with "unnormalized".
        InputError: `weighted`, and weights that cannot be shared: negative ones, those of a vertex
            that add up to infinity, or sums of vertices that lie too far apart for `precision`.
        NotFoundError: the graph has no vertex `source`.
        BudgetError: before the work, naming the smallest budget that works.
        CorruptError, StoreIoError: as their names say.

    >>> import brimful as bf, pyarrow as pa
    >>> ring = pa.table({"source": [0, 1, 2, 3], "target": [1, 2, 3, 0]})
    >>> with bf.Graph.from_arrow(ring) as graph:
    ...     bf.pagerank(graph)[3]
    0.25
    """
    return _run(
        graph,
        "pagerank",
        {"damping": damping, "variant": variant} | ({"method": method} if method else {}),
        _Common(max_supersteps, threads, budget, progress),
        source=source,
        precision=precision,
        mode=mode,
        tolerance=tolerance,
        weighted=weighted,
        layout=layout,
        options=options,
    )


def hits(
    graph: GraphLike,
    *,
    values: Literal["authority", "hub"] = "authority",
    tolerance: float = 1e-8,
    max_supersteps: int = 200,
    weighted: bool = False,
    layout: Layout = "shards",
    threads: int | None = None,
    budget: Budget = None,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Result:
    """Find hubs and authorities (Kleinberg 1999): good hubs lead to good authorities.

    With A the matrix of arcs, counted with multiplicity or (`weighted`) by their weights, which
    must not be negative: the limits of a = A.T @ h and h = A @ a, each divided by its sum after
    every step, from h = 1 / n_vertices. Supersteps make authorities and hubs in turn; stops when
    those that a superstep reads differ from the ones before by at most `tolerance` in L1, 0 never
    stops early. Where the largest singular value of A has several vectors, that nearest to the
    start is the limit (NetworkX gives any). Without edges all scores are 0.
    `budget`, `layout` and `options` as in `pagerank`.

    Returns a `Result` with column `authority` or `hub`, as `values` says, float64[n_vertices] of
    sum 1.

    Raises:
        UsageError: a parameter out of range; `weighted`, and there are no weights or negative ones.
        BudgetError: before the work, naming the smallest budget that works.
        CorruptError, StoreIoError: as their names say.

    >>> import brimful as bf, pyarrow as pa
    >>> with bf.Graph.from_arrow(pa.table({"source": [0, 1], "target": [2, 2]})) as graph:
    ...     bf.hits(graph)[2], bf.hits(graph, values="hub")[0]
    (1.0, 0.5)
    """
    common = _Common(max_supersteps, threads, budget, progress)
    params: dict[str, object] = {"values": values}
    return _run(
        graph,
        "hits",
        params,
        common,
        tolerance=tolerance,
        weighted=weighted,
        layout=layout,
        options=options,
    )


def connected_components(
    graph: GraphLike,
    *,
    method: Literal["auto", "union_find", "propagation"] = "auto",
    max_supersteps: int | None = None,
    mode: Mode = "sync",
    layout: Layout = "shards",
    threads: int | None = None,
    budget: Budget = None,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Result:
    """Label vertices by weakly connected component: the smallest vertex id in it.

    Direction is ignored. `method` "union_find" goes over the edges once, with arrays in memory;
    "propagation" works in any budget: it runs until no label changes, or for `max_supersteps`;
    "auto" is union-find where it fits. `mode` "async" spreads labels within a sweep over the edges.
    `budget`, `layout` and `options` as in `pagerank`.

    Returns a `Result` with column `component`, of the type of `vertex`.

    Raises:
        BudgetError: before the work, naming the smallest budget that works.
        CorruptError, StoreIoError: as their names say.
    """
    common = _Common(max_supersteps, threads, budget, progress)
    return _run(
        graph,
        "connected_components",
        {"method": method},
        common,
        mode=mode,
        layout=layout,
        options=options,
    )


def scc(
    graph: GraphLike,
    *,
    method: Literal["auto", "search", "coloring"] = "auto",
    max_supersteps: int | None = None,
    layout: Layout = "shards",
    threads: int | None = None,
    budget: Budget = None,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Result:
    """Label vertices by strongly connected component: the smallest vertex id in it.

    Two vertices are in one component if each reaches the other along edges. `method` "search" is
    one depth-first search with the edges in memory, "coloring" works at any budget; "auto"
    searches if the edges fit and nothing asks for supersteps. Of an undirected graph "auto" finds
    the connected components, which are the same.
    `budget`, `layout` and `options` as in `pagerank`.

    Returns a `Result` with column `component`, of the type of `vertex`; null for vertices that a
    run which `max_supersteps` ended did not get to.

    Raises:
        BudgetError: before the work, naming the smallest budget that works.
        CorruptError, StoreIoError: as their names say.

    >>> import brimful as bf, pyarrow as pa
    >>> with bf.Graph.from_arrow(pa.table({"source": [1, 2, 2], "target": [2, 1, 3]})) as graph:
    ...     bf.scc(graph).to_arrow()["component"].to_pylist()
    [1, 1, 3]
    """
    return _run(
        graph,
        "scc",
        {"method": method},
        _Common(max_supersteps, threads, budget, progress),
        layout=layout,
        options=options,
    )


def kcore(
    graph: GraphLike,
    *,
    max_supersteps: int | None = None,
    layout: Layout = "shards",
    threads: int | None = None,
    budget: Budget = None,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Result:
    """Compute core numbers: the largest k such that a vertex is in the k-core.

    The k-core is the greatest set of vertices each of which has k neighbours within it. Direction
    is ignored, parallel arcs count each, so that opposite arcs count twice in a directed graph;
    self-loops do not count. `budget`, `layout` and `options` as in `pagerank`.

    Returns a `Result` with column `core`, int64[n_vertices]; null for vertices that a run which
    `max_supersteps` ended did not get to.

    Raises:
        BudgetError: before the work, naming the smallest budget that works.
        CorruptError, StoreIoError: as their names say.

    >>> import brimful as bf, pyarrow as pa
    >>> table = pa.table({"source": [0, 1, 2, 2], "target": [1, 2, 0, 3]})
    >>> with bf.Graph.from_arrow(table) as graph:
    ...     bf.kcore(graph).to_arrow()["core"].to_pylist()
    [2, 2, 2, 1]
    """
    return _run(
        graph,
        "kcore",
        {},
        _Common(max_supersteps, threads, budget, progress),
        layout=layout,
        options=options,
    )


def bfs(
    graph: GraphLike,
    source: int | str,
    *,
    values: Literal["distance", "parent"] = "distance",
    max_supersteps: int | None = None,
    mode: Mode = "sync",
    layout: Layout = "shards",
    threads: int | None = None,
    budget: Budget = None,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Result:
    """Search breadth-first along edges from `source`, a vertex id.

    `values` "distance": column `distance`, int64, edges from the source. "parent": column
    `parent`, of the type of `vertex`: of the vertices one edge nearer with an edge to this one
    that with the smallest id; the source is its own parent. Null where no path leads.
    `max_supersteps` is also the largest distance looked at, but in `mode` "async" (for distances
    only): there levels are not waited for, and are corrected. `budget`, `layout` and `options` as
    in `pagerank`.

    Returns a `Result`.

    Raises:
        NotFoundError: the graph has no vertex `source`.
        UsageError: "parent", and ids from both ends of 64 bits; before the work.
        BudgetError: before the work, naming the smallest budget that works.
        CorruptError, StoreIoError: as their names say.

    >>> import brimful as bf, pyarrow as pa
    >>> with bf.Graph.from_arrow(pa.table({"source": [5, 7], "target": [7, 9]})) as graph:
    ...     bf.bfs(graph, 7).to_arrow()["distance"].to_pylist()
    [None, 0, 1]
    """
    common = _Common(max_supersteps, threads, budget, progress)
    return _run(
        graph,
        "bfs",
        {"values": values},
        common,
        source=source,
        mode=mode,
        layout=layout,
        options=options,
    )


def sssp(
    graph: GraphLike,
    source: int | str,
    *,
    weighted: bool = False,
    max_supersteps: int | None = None,
    mode: Mode = "sync",
    layout: Layout = "shards",
    threads: int | None = None,
    budget: Budget = None,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Result:
    """Find shortest paths along edges from `source`, a vertex id.

    `weighted`: the length of a path is the sum of its weights, which must not be negative; else
    its number of edges. Runs until no distance shrinks, or for `max_supersteps`. A run that goes
    on for long, as on roads, ends in order (Dijkstra) where the edges fit `budget` in memory: one
    superstep more, and the same bits; `max_supersteps` keeps it in supersteps. `mode` "async"
    spreads distances within a sweep over the edges until then. `budget`, `layout` and `options` as
    in `pagerank`.

    Returns a `Result` with column `distance`, float64[n_vertices], null where no path leads.

    Raises:
        NotFoundError: the graph has no vertex `source`.
        UsageError: `weighted`, and there are no weights; before the work.
        InputError: `weighted`, and there are negative weights; before the work.
        BudgetError: before the work, naming the smallest budget that works.
        CorruptError, StoreIoError: as their names say.
    """
    common = _Common(max_supersteps, threads, budget, progress)
    return _run(
        graph,
        "sssp",
        {},
        common,
        source=source,
        mode=mode,
        layout=layout,
        weighted=weighted,
        options=options,
    )


def count_paths(
    graph: GraphLike,
    source: int | str,
    *,
    length: int | None = None,
    layout: Layout = "shards",
    threads: int | None = None,
    budget: Budget = None,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Result:
    """Count shortest paths from `source`, a vertex id, or with `length` walks of so many edges.

    Parallel edges make paths of their own. `budget`, `layout` and `options` as in `pagerank`.

    Returns a `Result` with column `paths`, uint64[n_vertices], 0 where no path leads.

    Raises:
        NotFoundError: the graph has no vertex `source`.
        ProgramError: a vertex has more than 2**64 - 2 paths.
        BudgetError: before the work, naming the smallest budget that works.
        CorruptError, StoreIoError: as their names say.
    """
    params: dict[str, object] = {} if length is None else {"length": length}
    return _run(
        graph,
        "count_paths",
        params,
        _Common(None, threads, budget, progress),
        source=source,
        layout=layout,
        options=options,
    )


def degrees(
    graph: GraphLike,
    *,
    direction: Literal["out", "in", "both"] = "out",
    layout: Layout = "shards",
    threads: int | None = None,
    budget: Budget = None,
    progress: Progress | None = None,
    **options: Unpack[Options],
) -> Result:
    """Count arcs that leave (`direction` "out"), reach ("in") or do either ("both").

    Parallel arcs count each. `budget`, `layout` and `options` as in `pagerank`.

    Returns a `Result` with column `degree`, int64[n_vertices].

    Raises:
        BudgetError: before the work, naming the smallest budget that works.
        CorruptError, StoreIoError: as their names say.
    """
    common = _Common(None, threads, budget, progress)
    return _run(graph, "degrees", {"direction": direction}, common, layout=layout, options=options)


def label_propagation(
    graph: GraphLike,
    *,
    max_supersteps: int = 10,
    threads: int | None = None,
    budget: Budget = None,
    progress: Progress | None = None,
    **options: Unpack[Checkpoints],
) -> Result:
    """Find communities: for `max_supersteps` everybody takes its neighbours' most frequent label.

    Labels begin as vertex ids; the smallest wins a tie; without neighbours a vertex keeps its own
    (LDBC Graphalytics' CDLP). Direction is ignored, but a neighbour joined both ways counts twice.
    Stops early where no label changes. `budget` and checkpoints (`options`) as in `pagerank`.

    Returns a `Result` with column `label`, of the type of `vertex`.

    Raises:
        BudgetError: naming the smallest budget that works.
        CorruptError, StoreIoError: as their names say.
    """
    common = _Common(max_supersteps, threads, budget, progress)
    return _run(graph, "label_propagation", {}, common, options=options)


def color(
    graph: GraphLike,
    *,
    threads: int | None = None,
    budget: Budget = None,
    progress: Progress | None = None,
    **options: Unpack[Checkpoints],
) -> Result:
    """Colour vertices so that no edge joins two of the same colour: first-fit in a fixed order.

    The order is descending by the bit length of the degree (arcs in either direction, self-loops
    left out), then by splitmix64(vertex - smallest vertex), for strings of the place among them
    (largest-log-degree-first: Hasenplaugh, Kaler, Schardl, Leiserson 2014). Each vertex takes the
    least colour that no neighbour before it has. `budget` and checkpoints (`options`) as in
    `pagerank`.

    Returns a `Result` with column `color`, uint64[n_vertices], from 0 on.

    Raises:
        BudgetError: naming the smallest budget that works.
        CorruptError, StoreIoError: as their names say.

    >>> import brimful as bf, pyarrow as pa
    >>> with bf.Graph.from_arrow(pa.table({"source": [0, 0, 0], "target": [1, 2, 3]})) as star:
    ...     bf.color(star).to_arrow()["color"].to_pylist()
    [0, 1, 1, 1]
    """
    common = _Common(None, threads, budget, progress)
    return _run(graph, "color", {}, common, options=options)


def clustering(
    graph: GraphLike,
    *,
    threads: int | None = None,
    budget: Budget = None,
    progress: Progress | None = None,
) -> Result:
    """Find local clustering coefficients: how many pairs of neighbours are joined.

    Neighbours are those in either direction, each once; the coefficient is the number of arcs
    among them divided by that of ordered pairs, 0 with fewer than two (LDBC Graphalytics' LCC).
    Self-loops and parallel arcs count nothing. The neighbours must fit `budget`: 4 bytes an arc.

    Returns a `Result` with column `coefficient`, float64[n_vertices].

    Raises:
        BudgetError: before the work, naming the smallest budget that works.
        CorruptError, StoreIoError: as their names say.
    """
    return _run(graph, "clustering", {}, _Common(None, threads, budget, progress))


def triangles(
    graph: GraphLike,
    *,
    threads: int | None = None,
    budget: Budget = None,
    progress: Progress | None = None,
) -> Result:
    """Count the triangles that each vertex is part of, whatever the direction of edges.

    Self-loops and parallel arcs count nothing. The neighbours must fit `budget`: 4 bytes an arc.

    Returns a `Result` with column `triangles`, int64[n_vertices].

    Raises:
        BudgetError: before the work, naming the smallest budget that works.
        CorruptError, StoreIoError: as their names say.
    """
    return _run(graph, "triangles", {}, _Common(None, threads, budget, progress))


@dataclass(frozen=True)
class _Common:
    """What every algorithm takes."""

    max_supersteps: int | None
    threads: int | None
    budget: Budget
    progress: Progress | None


def _run(
    graph: GraphLike,
    algorithm: str,
    params: dict[str, object],
    common: _Common,
    *,
    source: int | str | None = None,
    precision: Precision = "f64",
    mode: Mode = "sync",
    tolerance: float | None = None,
    weighted: bool = False,
    layout: Layout = "shards",
    options: Mapping[str, Any] | None = None,
) -> Result:
    from brimful import _native

    options = options or {}
    if unknown := options.keys() - Options.__annotations__.keys():
        what = f"{algorithm}() got an unexpected keyword argument {min(unknown)!r}"
        raise TypeError(what)
    wanted = asked(
        algorithm,
        params,
        source=source,
        precision=precision,
        mode=mode,
        tolerance=tolerance,
        max_supersteps=common.max_supersteps,
        weighted=weighted,
        layout=layout,
        **{name: options.get(name) for name in ("store", "serializer", "cache", "lists")},
    )
    folder = checks.path(options.get("checkpoint_dir"), "checkpoint_dir")
    resume = checks.flag(options.get("resume", False), "resume")
    every = checkpoint_interval(options.get("checkpoint_every"))
    budget = parse_budget(common.budget)
    with reported(common.progress) as report:
        given = Resources(common.threads, budget, progress=report)
        opened = as_graph(graph, given)
        result = _native.run(
            opened.native,
            wanted,
            checkpoint_every=every,
            checkpoint_dir=folder,
            resume=resume,
            threads=given.threads,
            budget=opened.budget if budget is None else budget,
            process_budget=given.process_budget,
            reserve_bytes=0,
            progress=given.progress,
        )
    result.discard_checkpoints()
    return Result(result)
