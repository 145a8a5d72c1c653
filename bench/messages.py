"""`messages`: programs of Pregel, by the microseconds that a message costs.

Run as a module (`GRAPH PROGRAM STORE`) it runs PageRank of some supersteps, checks it against the
algorithm of the package, and prints its seconds and messages as JSON.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator
from typing import Any

import brimful as bf
from bench.command import Command
from bench.session import Session
from bench.table import Table, figure, target

_SUPERSTEPS = 5
#: Microseconds that a message may cost.
_MOST = 1.0


class All(bf.Pregel):
    """PageRank, unnormalized; one message for all edges."""

    def initial_value(self, vertex: bf.Vertex) -> Any:
        """Return the rank without messages."""
        return 0.15

    def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
        """Sum up the shares, and send the own ones."""
        if vertex.superstep > 0:
            vertex.value = 0.15 + 0.85 * sum(messages)
        if vertex.superstep < _SUPERSTEPS and vertex.degree > 0:
            self.send(vertex, vertex.value / vertex.degree)
        else:
            vertex.vote_to_halt()

    def send(self, vertex: bf.PregelVertex, share: float) -> None:
        """Send a share along each edge."""
        vertex.send_to_all(share)


class Combined(All):
    """The same with a combiner."""

    def combine(self, left: Any, right: Any) -> Any:
        """Return the sum."""
        return left + right


class Each(All):
    """The same with a message for each edge, by the id of its target."""

    def send(self, vertex: bf.PregelVertex, share: float) -> None:
        """Send a share along each edge."""
        for id, _ in vertex.edges:
            vertex.send(id, share)


_PROGRAMS = {"to all": All, "to all, combined": Combined, "to each by its id": Each}


def tables(session: Session) -> Iterator[Table]:
    """Yield one table: seconds, and microseconds a message."""
    scale = session.size.medium_scale - 6
    graph = str(session.rmat(scale))
    table = Table(
        f"messages: PageRank in Pregel, RMAT-{scale}, {_SUPERSTEPS} supersteps",
        "f64; the ranks are those of the algorithm",
        ("messages", "store", "M messages", "seconds", "us a message", "target"),
    )
    for name in _PROGRAMS:
        for store in ("memory", "bytes"):
            [series] = session.measure(Command("bench.messages", (graph, name, store)))
            each = series.median(lambda record: record["seconds"] / record["messages"] * 1e6)
            table.row(
                name,
                store,
                figure(series, lambda record: record["messages"] / 1e6, 1),
                figure(series, "seconds", 2),
                "-" if each is None else f"{each:.2f}",
                "-" if each is None else target(session.size, each, _MOST),
            )
            table.ran(series)
    yield table


def main() -> int:
    """Run a program; print its seconds and messages."""
    path, name, store = sys.argv[1:]
    with bf.Graph.open(path) as graph:
        begin = time.perf_counter()
        states = bf.run(graph, _PROGRAMS[name](), store=store)
        seconds = time.perf_counter() - begin
        options: Any = {"variant": "unnormalized", "tolerance": 0, "max_supersteps": _SUPERSTEPS}
        ranks: dict[Any, Any] = dict(bf.pagerank(graph, **options))
        for id, rank in ranks.items():
            if not math.isclose(states[id], rank, rel_tol=1e-9):
                raise SystemExit(f"vertex {id} has {states[id]}, and {rank} by the algorithm")
    print(json.dumps({"seconds": seconds, "messages": states.stats["signals"]}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
