"""`by_hand`: PageRank by the public trait of programs beside a loop written for it alone, in Rust.

Run as a module (`GRAPH SUPERSTEPS ROUNDS`) it prints the figures of `examples/by_hand.rs`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from bench import examples
from bench.command import Command
from bench.session import Session
from bench.table import GIB, Table, figure, target

#: The trait may cost so much of the time of the loop by hand.
_MOST = 1.03


def tables(session: Session) -> Iterator[Table]:
    """Yield one table: both, in turns within one process, and their ratio."""
    examples.build("brimful-algos", "by_hand")
    table = Table(
        "by_hand: PageRank by the public trait and by hand, seconds per superstep",
        "f64; both find the same scores",
        ("graph", "by the trait", "by hand", "ratio", "target"),
    )
    for scale in (session.size.large_scale, session.size.medium_scale):
        graph = str(session.rmat(scale))
        series = session.measure(Command("bench.by_hand", (graph, "10", "3")))[0]
        seconds = (figure(series, f"by_{way}_seconds", 3) for way in ("trait", "hand"))
        median = series.median("ratio")
        goal = "-" if median is None else target(session.size, median, _MOST)
        table.row(f"RMAT-{scale}", *seconds, figure(series, "ratio", 3), goal)
        table.ran(series)
    table.notes.append("in memory; the loop by hand has no progress, no cancellation and no budget")
    yield table


def main() -> int:
    """Run the Rust program."""
    graph, supersteps, rounds = sys.argv[1:]
    return examples.run("by_hand", graph, 4 * GIB, supersteps, rounds)


if __name__ == "__main__":
    raise SystemExit(main())
