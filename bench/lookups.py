"""`lookups`: neighbors and degrees of single vertices and of many, beside SciPy's rows in memory.

Run as a module (`GRAPH`) it measures in its own process and prints JSON. Seconds are of the
processor, the process's own: the page cache is warm, and other work does not count.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterator

from bench.command import Command
from bench.session import Session
from bench.table import Table, figure, target

_CALLS = 20_000
_BATCH_VERTICES = 100_000

_ROWS = [
    ("neighbors", "neighbors(v), calls/s", 20_000.0),
    ("neighbors_scipy", "the same: a row of a SciPy CSR array as a list, calls/s", None),
    ("in_neighbors", "in_neighbors(v), calls/s", 20_000.0),
    ("degree", "degree(v), calls/s", 20_000.0),
    ("in_degree", "in_degree(v), calls/s", 20_000.0),
    ("has_edge", "has_edge(u, v), calls/s", 20_000.0),
    ("many", "neighbors_many, edges/s", 2e6),
    ("many_scipy", "the same: rows of a SciPy CSR array by a list of ids, edges/s", None),
    ("many_in", 'neighbors_many(direction="in"), edges/s', 2e6),
]


def tables(session: Session) -> Iterator[Table]:
    """Yield a table of look-ups, and one of conversions to SciPy."""
    scale = session.size.small_scale
    graph = session.rmat(scale)
    (series,) = session.measure(Command("bench.lookups", (str(graph),)))
    table = Table(
        f"lookups: RMAT-{scale}, in the page cache", "exact", ("what", "median (best)", "target")
    )
    for name, label, bound in _ROWS:
        value = series.median(name)
        goal = "-" if bound is None else target(session.size, value, bound, at_least=True)
        table.row(label, figure(series, name, 0, more_is_better=True), goal)
    table.notes.append(
        f"{_CALLS:,} single calls, a batch of {_BATCH_VERTICES:,} vertices, all chosen at random; "
        "seconds of the processor"
    )
    table.ran(series)
    yield table
    conversion = Table(
        f"lookups: RMAT-{scale} as a SciPy CSR array",
        "exact",
        ("way", "s, median (best)", "target"),
    )
    conversion.row(
        "to_scipy", figure(series, "to_scipy"), target(session.size, series.median("to_scipy"), 3)
    )
    conversion.row("by hand: to_arrow, ids as indices, tocsr", figure(series, "by_hand"), "-")
    conversion.ran(series)
    yield conversion


def _per_second(work: Callable[[], int]) -> float:
    """Return the units that `work` reports, per second of the processor."""
    started = time.process_time()
    done = work()
    return done / (time.process_time() - started)


def main(path: str) -> None:
    """Measure look-ups in the graph at `path`; print JSON."""
    import numpy as np
    import scipy.sparse as sp

    import brimful as bf

    chance = random.Random(7)
    record: dict[str, float] = {}
    with bf.Graph.open(path) as graph:
        started = time.process_time()
        matrix, ids = graph.to_scipy()
        record["to_scipy"] = time.process_time() - started
        started = time.process_time()
        edges = graph.to_arrow()
        source, to = edges["source"].to_numpy(), edges["target"].to_numpy()
        size = int(max(source.max(), to.max())) + 1
        sp.coo_array((np.ones(len(edges)), (source, to)), shape=(size, size)).tocsr()
        record["by_hand"] = time.process_time() - started
        del edges, source, to
        vertices = [int(vertex) for vertex in chance.choices(ids, k=_CALLS)]
        targets = [int(vertex) for vertex in chance.choices(ids, k=_CALLS)]
        many = np.array(chance.choices(ids, k=_BATCH_VERTICES))
        rows = {int(vertex): row for row, vertex in enumerate(ids)}
        graph.in_neighbors(vertices[0])

        def each(ask: Callable[[int], object]) -> int:
            for vertex in vertices:
                ask(vertex)
            return _CALLS

        def row(vertex: int) -> list[int]:
            at = rows[vertex]
            columns = matrix.indices[matrix.indptr[at] : matrix.indptr[at + 1]]
            found: list[int] = ids[columns].tolist()
            return found

        pairs = dict(zip(vertices, targets, strict=True))
        at = np.searchsorted(ids, many)
        for _ in range(2):  # The first round warms what is kept.
            record |= {
                "neighbors": _per_second(lambda: each(graph.neighbors)),
                "neighbors_scipy": _per_second(lambda: each(row)),
                "in_neighbors": _per_second(lambda: each(graph.in_neighbors)),
                "degree": _per_second(lambda: each(graph.degree)),
                "in_degree": _per_second(lambda: each(graph.in_degree)),
                "has_edge": _per_second(lambda: each(lambda v: graph.has_edge(v, pairs[v]))),
                "many": _per_second(lambda: len(graph.neighbors_many(many))),
                "many_scipy": _per_second(lambda: matrix[at].nnz),
                "many_in": _per_second(lambda: len(graph.neighbors_many(many, direction="in"))),
            }
    print(json.dumps(record))


if __name__ == "__main__":
    main(*sys.argv[1:])
