"""`programs`: programs in plain Python on stores beside the plain loop over dicts.

Run as a module (`GRAPH PROGRAM DELIVERY STORE SUPERSTEPS`) it runs a program by the loop over dicts
and on a store, in turns, checks that both find the same states, and prints their seconds as JSON.
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

_SUPERSTEPS = "10"
#: A store may take so many times as long as the loop over dicts.
_MOST = 2.0


class Ranks(bf.Program):
    """PageRank, unnormalized, by numbers."""

    def initial_state(self, vertex: bf.Vertex) -> Any:
        """Return the rank without signals."""
        return 0.15

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> Any:
        """Return the share of an edge."""
        return source.state / source.degree

    def combine(self, left: Any, right: Any) -> Any:
        """Return the sum."""
        return left + right

    def collect(self, vertex: bf.Vertex, signals: list[Any]) -> Any:
        """Return the new rank."""
        return 0.15 + 0.85 * sum(signals)


class Pairs(Ranks):
    """The same by tuples, which no store keeps as numbers."""

    def initial_state(self, vertex: bf.Vertex) -> Any:
        """Return rank and id."""
        return 0.15, vertex.id

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> Any:
        """Return the share of an edge, and the target."""
        return source.state[0] / source.degree, target

    def combine(self, left: Any, right: Any) -> Any:
        """Return the sum, and the target."""
        return left[0] + right[0], left[1]

    def collect(self, vertex: bf.Vertex, signals: list[Any]) -> Any:
        """Return the new rank and the id."""
        return 0.15 + 0.85 * sum(share for share, _ in signals), vertex.id


class _Vertex:
    __slots__ = ("degree", "edges", "id", "signalled", "state")

    def __init__(self, id: Any) -> None:
        self.id, self.degree, self.state, self.signalled = id, 0, None, None
        self.edges: list[Any] = []


def _loop(program: Any, arcs: list[tuple[Any, Any]], supersteps: int) -> dict[Any, Any]:
    """Run a program over dicts; return the state of every vertex."""
    vertices: dict[Any, Any] = {}
    for source, arc_target in arcs:
        for id in (source, arc_target):
            if id not in vertices:
                vertices[id] = _Vertex(id)
        vertices[source].edges.append(arc_target)
    for vertex in vertices.values():
        vertex.degree = len(vertex.edges)
        vertex.state = program.initial_state(vertex)
    due = list(vertices.values())
    for _ in range(supersteps):
        waiting: dict[Any, list[Any]] = {}
        for vertex in due:
            for arc_target in vertex.edges:
                signal = program.signal(vertex, arc_target, 1.0)
                if signal is not None:
                    waiting.setdefault(arc_target, []).append(signal)
            vertex.signalled = vertex.state
        due = []
        for id, signals in waiting.items():
            vertex = vertices[id]
            vertex.state = program.collect(vertex, signals)
            if vertex.state != vertex.signalled:
                due.append(vertex)
    return {id: vertex.state for id, vertex in vertices.items()}


def tables(session: Session) -> Iterator[Table]:
    """Yield one table: seconds of the loop and of the stores, and their ratio."""
    scale = session.size.medium_scale - 6
    graph = str(session.rmat(scale))
    table = Table(
        f"programs: PageRank in plain Python, RMAT-{scale}, {_SUPERSTEPS} supersteps",
        "f64; both find the same ranks",
        ("states and signals", "delivery", "store", "loop s", "brimful s", "ratio", "target"),
    )
    for program in ("Ranks", "Pairs"):
        for delivery in ("each", "combined"):
            for store in ("memory", "bytes"):
                words = (graph, program, delivery, store, _SUPERSTEPS)
                [series] = session.measure(Command("bench.programs", words))
                median = series.median(lambda record: record["seconds"] / record["loop_seconds"])
                goal = "-"
                if median is not None and store == "memory":
                    goal = target(session.size, median, _MOST)
                table.row(
                    "numbers" if program == "Ranks" else "tuples",
                    delivery,
                    store,
                    figure(series, "loop_seconds", 2),
                    figure(series, "seconds", 2),
                    "-" if median is None else f"{median:.2f}",
                    goal,
                )
                table.ran(series)
    table.notes.append("the loop has no budget, checks nothing and keeps all in memory")
    yield table


def main() -> int:
    """Run both ways; print their seconds."""
    path, name, delivery, store, supersteps = sys.argv[1:]
    program = {"Ranks": Ranks, "Pairs": Pairs}[name]()
    type(program).delivery = delivery  # type: ignore[assignment]
    with bf.Graph.open(path) as graph:
        table = graph.to_arrow()
        arcs = list(zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True))
        begin = time.perf_counter()
        wanted = _loop(program, arcs, int(supersteps))
        loop_seconds = time.perf_counter() - begin
        begin = time.perf_counter()
        states = bf.run(
            graph, program, store=store, serializer="pickle", max_supersteps=int(supersteps)
        )
        seconds = time.perf_counter() - begin
        for id, state in wanted.items():
            ranks = (states[id], state) if name == "Ranks" else (states[id][0], state[0])
            if not math.isclose(*ranks, rel_tol=1e-9):
                raise SystemExit(f"vertex {id} has {ranks[0]}, and {ranks[1]} by the loop")
    print(json.dumps({"seconds": seconds, "loop_seconds": loop_seconds}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
