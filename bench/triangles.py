"""`triangles`: counts of triangles beside GAP's method and NetworKit, all with two threads.

Run as a module (`PAIRS THREADS`) it prints the figures of `examples/ordered_count.rs`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from bench import examples
from bench.command import Command, brimful, reference
from bench.session import Session
from bench.table import Table, figure, ratio

_THREADS = "2"


def tables(session: Session) -> Iterator[Table]:
    """Yield one table: brimful on an imported graph, the others on lists in memory."""
    examples.build("brimful-algos", "ordered_count")
    scale = session.size.small_scale
    graph, pairs = session.imported(scale), str(session.pairs(scale))
    options = ("--budget", "4G", "--threads", _THREADS)
    series = session.measure(
        brimful("run", "triangles", graph, *options),
        brimful("run", "clustering", graph, *options),
        Command("bench.triangles", (pairs, _THREADS)),
        reference("edge_triangles", pairs, _THREADS),
        reference("local_clustering", pairs, _THREADS),
    )
    names = (
        "brimful triangles",
        "brimful clustering",
        "GAP's OrderedCount, by hand",
        "NetworKit TriangleEdgeScore",
        "NetworKit LocalClusteringCoefficient, turbo",
    )
    table = Table(
        f"triangles: RMAT-{scale}, seconds in all",
        "exact",
        ("program", "s, median (best)", "to brimful triangles"),
    )
    ours = series[0].median("seconds")
    for name, one in zip(names, series, strict=True):
        table.row(name, figure(one, "seconds"), ratio(one.median("seconds"), ours))
    table.notes.append("seconds of brimful include reading the graph; those of others do not")
    table.ran(*series)
    yield table


def main() -> int:
    """Run the Rust program."""
    return examples.run("ordered_count", *sys.argv[1:])


if __name__ == "__main__":
    raise SystemExit(main())
