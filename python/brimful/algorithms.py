"""The algorithms of the Python API; each returns a `Result` with a value for every vertex."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brimful.graph import Graph
from brimful.ingest import Resources
from brimful.result import Result
from brimful.sizes import Budget, parse_budget

if TYPE_CHECKING:
    from brimful.reporting import Progress


def pagerank(
    graph: Graph,
    *,
    damping: float = 0.85,
    tolerance: float = 1e-6,
    max_supersteps: int = 100,
    variant: str = "normalized",
    precision: str = "f64",
    weighted: bool = False,
    threads: int | None = None,
    budget: Budget = None,
    progress: Progress | None = None,
) -> Result:
    """Rank vertices by the edges that lead to them (Page, Brin, Motwani, Winograd 1999).

    `variant` "normalized" sums to 1, spreads the rank of sinks over all vertices and stops at an
    L1 change <= `tolerance`. "unnormalized" is Signal/Collect's: 1 - damping + damping * sum, no
    sink term, and the change is divided by the number of vertices. `tolerance` 0 never stops
    early: exactly `max_supersteps` updates. `precision` "f32" narrows the signals in memory.
    `weighted` splits a rank by edge weights. `budget` (bytes or "500M"; default: the graph's)
    limits brimful's own memory; the result is the same bits at any budget and thread count.

    Returns a `Result` with column `pagerank`, float64[n_vertices]. One pass over the edges per
    superstep.

    Raises:
        UsageError: a parameter out of range.
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
        {"damping": damping, "variant": variant},
        precision,
        tolerance,
        max_supersteps,
        weighted,
        threads,
        budget,
        progress,
    )


def connected_components(
    graph: Graph,
    *,
    max_supersteps: int | None = None,
    threads: int | None = None,
    budget: Budget = None,
    progress: Progress | None = None,
) -> Result:
    """Label vertices by weakly connected component: the smallest vertex id in it.

    Direction is ignored. Runs until no label changes, or for `max_supersteps`. `budget` as in
    `pagerank`.

    Returns a `Result` with column `component`, of the type of `vertex`.

    Raises:
        BudgetError: before the work, naming the smallest budget that works.
        CorruptError, StoreIoError: as their names say.
    """
    return _run(
        graph,
        "connected_components",
        {},
        "f64",
        None,
        max_supersteps,
        False,
        threads,
        budget,
        progress,
    )


def _run(
    graph: Graph,
    algorithm: str,
    params: dict[str, object],
    precision: str,
    tolerance: float | None,
    max_supersteps: int | None,
    weighted: bool,
    threads: int | None,
    budget: Budget,
    progress: Progress | None,
) -> Result:
    from brimful import _native

    given = Resources(
        threads, parse_budget(budget) if budget is not None else graph.budget, progress=progress
    )
    return Result(
        _native.run(
            graph.native,
            algorithm,
            params,
            precision=precision,
            tolerance=tolerance,
            max_supersteps=max_supersteps,
            weighted=weighted,
            threads=given.threads,
            budget=given.budget,
            process_budget=given.process_budget,
            reserve_bytes=0,
            progress=given.progress,
        )
    )
