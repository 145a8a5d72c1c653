"""`programs`: programs in plain Python on stores beside the loop over dicts, Rust and the built-in.

Run as a module (`GRAPH PROGRAM DELIVERY STORE SUPERSTEPS`) it runs a program by the loop over
dicts, as one writes it with NetworkX, and on a store; then the same algorithm in Rust on that
store, and on shards. It checks the ranks, and prints all seconds as JSON.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
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
    latest: dict[Any, dict[Any, Any]] = {}
    for _ in range(supersteps):
        waiting: dict[Any, Any] = {}
        for vertex in due:
            for place, arc_target in enumerate(vertex.edges):
                signal = program.signal(vertex, arc_target, 1.0)
                if signal is None:
                    continue
                if program.delivery == "latest":
                    latest.setdefault(arc_target, {})[vertex.id, place] = signal
                    waiting[arc_target] = latest[arc_target].values()
                else:
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
    """Yield one table: seconds of the loop, of the stores, of Rust and of the built-in."""
    scale = session.size.medium_scale - 6
    graph = str(session.rmat(scale))
    table = Table(
        f"programs: PageRank in plain Python, RMAT-{scale}, {_SUPERSTEPS} supersteps",
        "f64; the loop and the program find the same ranks; seconds with loading",
        (
            "states and signals",
            "delivery",
            "store",
            "loop s",
            "program s",
            "ratio",
            "Rust s",
            "built-in s",
            "target",
        ),
    )
    for program in ("Ranks", "Pairs"):
        for delivery in ("each", "combined", "latest"):
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
                    figure(series, "rust_seconds", 3),
                    figure(series, "algorithm_seconds", 3),
                    goal,
                )
                table.ran(series)
    table.notes.append("the loop has no budget, checks nothing and keeps all in memory")
    table.notes.append("Rust: `bf.pagerank` on the same store; built-in: on shards")
    table.notes.append(
        "each, combined: a vertex whose state does not change sends nothing, and its share is "
        "missing from the next sums; with latest, ranks are those of Rust"
    )
    yield table


def main() -> int:
    """Run all ways; print their seconds."""
    path, name, delivery, store, supersteps = sys.argv[1:]
    program = {"Ranks": Ranks, "Pairs": Pairs}[name]()
    type(program).delivery = delivery  # type: ignore[assignment]
    most: dict[str, Any] = {"max_supersteps": int(supersteps)}
    algorithm: dict[str, Any] = {"variant": "unnormalized", "tolerance": 0, **most}
    with bf.Graph.open(path) as graph:
        table = graph.to_arrow()
        arcs = list(zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True))
        runs: dict[str, Callable[[], Any]] = {
            "loop_seconds": lambda: _loop(program, arcs, int(supersteps)),
            "seconds": lambda: bf.run(graph, program, store=store, serializer="pickle", **most),
            "rust_seconds": lambda: bf.pagerank(graph, store=store, **algorithm),
            "algorithm_seconds": lambda: bf.pagerank(graph, **algorithm),
        }
        seconds: dict[str, float] = {}
        ranks: dict[str, dict[Any, float]] = {}
        for key, run in runs.items():
            begin = time.perf_counter()
            states = run()
            seconds[key] = time.perf_counter() - begin
            ranks[key] = {id: _rank(states[id]) for id in states}
        wanted = ranks.pop("loop_seconds")
        checked = list(ranks) if delivery == "latest" else ["seconds"]
        for key, found in ((key, ranks[key]) for key in checked):
            # The loop has no vertices without edges.
            for id, rank in wanted.items():
                if not math.isclose(found[id], rank, rel_tol=1e-9):
                    raise SystemExit(f"{key}: vertex {id} has {found[id]}, and {rank} by the loop")
    print(json.dumps(seconds))
    return 0


def _rank(state: Any) -> float:
    """Return the rank of a state: a number, or a pair whose first part it is."""
    return float(state[0] if isinstance(state, tuple) else state)


if __name__ == "__main__":
    raise SystemExit(main())
