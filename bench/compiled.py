"""`compiled`: compiled programs in Python on shards and stores, and arrays, beside the algorithms.

Run as a module (`GRAPH PROGRAM BUDGET`) it runs all three on shards in turns, checks that they find
the same values, and prints their mean seconds per superstep as JSON. With a store as the fourth
argument it runs them there.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

import brimful as bf
from bench.command import Command
from bench.session import Series, Session
from bench.table import Table, figure, target

_SUPERSTEPS = 15
_TURNS = 3
#: A compiled program may take so many times as long as the algorithm.
_MOST = 1.3
_BUDGETS = ("2G", "300M")
_STORES = ("memory", "bytes")
#: Edges a second that a program with arrays passes on a store, in millions.
_LEAST_EDGES = 5


class Ranks(bf.Program):
    """PageRank, unnormalized."""

    delivery = "latest"
    combiner = "sum"

    def __init__(self, damping: float) -> None:
        """Take the damping factor."""
        self.damping = damping

    def initial_state(self, vertex: Any) -> Any:
        """Return the rank without signals."""
        return 1 - self.damping

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        """Return the share of an edge."""
        return source.state / source.degree

    def collect(self, vertex: Any, signals: Any) -> Any:
        """Return the new rank."""
        return 1 - self.damping + self.damping * signals[0]


class CountedRanks(Ranks):
    """The same with records as states, and two aggregates."""

    state_type = np.dtype([("rank", "f8"), ("collected", "u4")])
    aggregators: ClassVar[dict[str, bf.Aggregator]] = {
        "gain": bf.Aggregator("sum", 0.0, persistent=True),
        "changed": bf.Aggregator("sum", 0),
    }

    def initial_state(self, vertex: Any) -> Any:
        """Return the rank without signals."""
        return 1 - self.damping, 0

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        """Return the share of an edge."""
        return source.state.rank / source.degree

    def collect(self, vertex: Any, signals: Any) -> Any:
        """Return the new rank, and count."""
        rank = 1 - self.damping + self.damping * signals[0]
        return rank, vertex.state.collected + 1

    def aggregate(self, vertex: Any, new: Any) -> Any:
        """Return the change."""
        return new.rank - vertex.state.rank, 1


class Distances(bf.Program):
    """Lengths of shortest paths from a vertex."""

    delivery = "combined"
    combiner = "min"

    def __init__(self, source: int) -> None:
        """Take the vertex."""
        self.source = source

    def initial_state(self, vertex: Any) -> Any:
        """Return 0 at the source."""
        return 0.0 if vertex.id == self.source else math.inf

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        """Return the length of the path over an edge."""
        return source.state + weight

    def collect(self, vertex: Any, signals: Any) -> Any:
        """Return the least length."""
        return min(vertex.state, signals[0])


class Least(bf.Program):
    """The least id from which a vertex can be reached: of its component, on undirected graphs."""

    delivery = "combined"
    combiner = "min"

    def initial_state(self, vertex: Any) -> Any:
        """Return the id."""
        return vertex.id

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        """Return the label."""
        return source.state

    def collect(self, vertex: Any, signals: Any) -> Any:
        """Return the least label."""
        return min(vertex.state, signals[0])


class PregelRanks(bf.Pregel):
    """PageRank, unnormalized, as a Pregel program."""

    def __init__(self, damping: float, supersteps: int) -> None:
        """Take the damping factor and the last superstep."""
        self.damping, self.supersteps = damping, supersteps

    def initial_value(self, vertex: Any) -> Any:
        """Return the rank without messages."""
        return 1 - self.damping

    def combine(self, left: Any, right: Any) -> Any:
        """Return the sum."""
        return left + right

    def compute(self, vertex: Any, messages: Any) -> None:
        """Set the rank, and send the share of an edge."""
        if vertex.superstep > 0:
            vertex.value = 1 - self.damping + self.damping * sum(messages)
        if vertex.superstep == self.supersteps:
            vertex.vote_to_halt()
        elif vertex.degree > 0:
            vertex.send_to_all(vertex.value / vertex.degree)


class PregelDistances(bf.Pregel):
    """Lengths of shortest paths from a vertex, as a Pregel program."""

    def __init__(self, source: int) -> None:
        """Take the vertex."""
        self.source = source

    def initial_value(self, vertex: Any) -> Any:
        """Return 0 at the source."""
        return 0.0 if vertex.id == self.source else math.inf

    def combine(self, left: Any, right: Any) -> Any:
        """Return the least length."""
        return min(left, right)

    def compute(self, vertex: Any, messages: Any) -> None:
        """Set the length, and send it along the edges if it became less."""
        least = min(messages, default=vertex.value)
        if vertex.superstep == 0 or least < vertex.value:
            vertex.value = least
            for edge_target, weight in vertex.edges:
                vertex.send(edge_target, least + weight)
        vertex.vote_to_halt()


class ArrayDistances(Distances):
    """The same for arrays."""

    def initial_state(self, vertex: Any) -> Any:
        """Return 0 at the source."""
        return np.where(vertex.id == self.source, 0.0, np.inf)

    def collect(self, vertex: Any, signals: Any) -> Any:
        """Return the least length."""
        return np.minimum(vertex.state, signals[0])


class ArrayLeast(Least):
    """The same for arrays."""

    def collect(self, vertex: Any, signals: Any) -> Any:
        """Return the least label."""
        return np.minimum(vertex.state, signals[0])


def tables(session: Session) -> Iterator[Table]:
    """Yield one table: seconds per superstep of both, and their ratio."""
    scale = session.size.medium_scale
    table = Table(
        f"compiled: programs in Python on shards, RMAT-{scale}",
        "f64; mean seconds per superstep, in turns with the algorithm",
        (
            "program",
            "budget",
            "algorithm s",
            "compiled s",
            "ratio",
            "compilation s",
            "arrays s",
            "arrays M edges/s",
            "target",
        ),
    )
    graph = str(session.rmat(scale))
    for program in _PROGRAMS:
        for budget in _BUDGETS:
            [series] = session.measure(Command("bench.compiled", (graph, program, budget)))
            ratio = series.median(lambda record: record["seconds"] / record["algorithm_seconds"])
            table.row(
                program,
                budget,
                figure(series, "algorithm_seconds", 4),
                figure(series, "seconds", 4),
                "-" if ratio is None else f"{ratio:.2f}",
                figure(series, "compilation_seconds", 2),
                *_of_arrays(series, program),
                "-" if ratio is None else target(session.size, ratio, _MOST),
            )
            table.ran(series)
    table.notes.append(
        "components: the program labels along edges only, the algorithm in both directions; their "
        "values are not compared"
    )
    yield table
    yield _on_stores(session)


def _of_arrays(series: Series, program: str) -> tuple[str, str]:
    """Return the figures of the program with arrays, a form that Pregel programs do not have."""
    if program.startswith("pregel"):
        return "-", "-"
    return figure(series, "arrays_seconds", 4), figure(series, "million_edges", 1)


def _on_stores(session: Session) -> Table:
    """Return the table of programs whose vertices are in memory, live and as bytes."""
    scale = session.size.medium_scale - 4
    table = Table(
        f"compiled: programs in Python on stores, RMAT-{scale}",
        "f64; mean seconds per superstep, in turns with the algorithm on the same store",
        (
            "program",
            "store",
            "algorithm s",
            "compiled s",
            "ratio",
            "arrays s",
            "arrays M edges/s",
            "target",
        ),
    )
    graph = str(session.rmat(scale))
    for program in ("pagerank", "sssp"):
        for store in _STORES:
            command = Command("bench.compiled", (graph, program, _BUDGETS[0], store))
            [series] = session.measure(command)
            ratio = series.median(lambda record: record["seconds"] / record["algorithm_seconds"])
            rate = series.median(lambda record: record["million_edges"])
            table.row(
                program,
                store,
                figure(series, "algorithm_seconds", 4),
                figure(series, "seconds", 4),
                "-" if ratio is None else f"{ratio:.2f}",
                figure(series, "arrays_seconds", 4),
                figure(series, "million_edges", 1),
                "-" if rate is None else target(session.size, _LEAST_EDGES / rate, 1),
            )
            table.ran(series)
    return table


Run = Callable[[], bf.Result]
#: The algorithm, the compiled program, and the one with arrays, if there is one.
Runs = tuple[Run, Run, Run | None]


def _pagerank(graph: bf.Graph, options: dict[str, Any], program: type[Ranks] = Ranks) -> Runs:
    most = {"max_supersteps": _SUPERSTEPS, **options}
    return (
        lambda: bf.pagerank(graph, variant="unnormalized", tolerance=0, **most),
        lambda: bf.run(graph, program(0.85), compile="numba", **most),
        lambda: bf.run(graph, program(0.85), compile="numpy", **most),
    )


def _sssp(graph: bf.Graph, options: dict[str, Any]) -> Runs:
    [(source, _)] = bf.degrees(graph).top(1)
    return (
        lambda: bf.sssp(graph, source=source, **options),
        lambda: bf.run(graph, Distances(source), compile="numba", **options),
        lambda: bf.run(graph, ArrayDistances(source), compile="numpy", **options),
    )


def _components(graph: bf.Graph, options: dict[str, Any]) -> Runs:
    return (
        lambda: bf.connected_components(graph, method="propagation", **options),
        lambda: bf.run(graph, Least(), compile="numba", **options),
        lambda: bf.run(graph, ArrayLeast(), compile="numpy", **options),
    )


def _records(graph: bf.Graph, options: dict[str, Any]) -> Runs:
    return _pagerank(graph, options, CountedRanks)


def _pregel_pagerank(graph: bf.Graph, options: dict[str, Any]) -> Runs:
    most = {"max_supersteps": _SUPERSTEPS, **options}
    ranks = PregelRanks(0.85, _SUPERSTEPS)
    return (
        lambda: bf.pagerank(graph, variant="unnormalized", tolerance=0, **most),
        lambda: bf.run(graph, ranks, compile="numba", **options),
        None,
    )


def _pregel_sssp(graph: bf.Graph, options: dict[str, Any]) -> Runs:
    [(source, _)] = bf.degrees(graph).top(1)
    return (
        lambda: bf.sssp(graph, source=source, **options),
        lambda: bf.run(graph, PregelDistances(source), compile="numba", **options),
        None,
    )


_PROGRAMS = {
    "pregel pagerank": _pregel_pagerank,
    "pregel sssp": _pregel_sssp,
    "pagerank": _pagerank,
    "pagerank of records": _records,
    "sssp": _sssp,
    "components": _components,
}


def main() -> int:
    """Run all three in turns; print their seconds."""
    path, name, budget, *stores = sys.argv[1:]
    options = {"budget": budget, **({"store": stores[0]} if stores else {})}
    with bf.Graph.open(path) as graph:
        algorithm, compiled, arrays = _PROGRAMS[name](graph, options)
        begin = time.perf_counter()
        first = compiled()
        compilation = time.perf_counter() - begin - first.stats["seconds"]
        if name != "components":
            known, found = (
                run().to_arrow().column(1).fill_null(math.inf) for run in (algorithm, compiled)
            )
            if not all(map(math.isclose, known.to_pylist(), found.to_pylist())):
                raise SystemExit(f"{name}: the values differ")
            del known, found
        runs = {"algorithm_seconds": algorithm, "seconds": compiled}
        if arrays is not None:
            runs["arrays_seconds"] = arrays
        seconds: dict[str, list[float]] = {key: [] for key in runs}
        rates = []
        for _ in range(_TURNS):
            for key, run in runs.items():
                stats = run().stats
                seconds[key].append(statistics.mean(stats["superstep_seconds"]))
            # Of the arrays, which are last.
            rates.append(stats["signals"] / sum(stats["superstep_seconds"]) / 1e6)
    medians = {key: statistics.median(values) for key, values in seconds.items()}
    more = {"compilation_seconds": compilation}
    if "arrays_seconds" in medians:
        more["million_edges"] = statistics.median(rates)
    print(json.dumps({**medians, **more}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
