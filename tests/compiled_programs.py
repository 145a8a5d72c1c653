"""Programs of numbers that Numba compiles, and a graph for them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

# A process that has imported Numba compiles by itself, and imports it once for all programs.
import numba  # noqa: F401
import numpy as np
import pyarrow as pa

import brimful as bf


class Ranks(bf.Program):
    """PageRank, unnormalized."""

    delivery = "latest"
    combiner = "sum"
    signal_threshold = 1e-9

    def __init__(self, damping: float = 0.85) -> None:
        self.damping = damping

    def initial_state(self, vertex: Any) -> Any:
        return 1 - self.damping

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return source.state / source.degree

    def collect(self, vertex: Any, signals: Any) -> Any:
        return 1 - self.damping + self.damping * signals[0]

    def signal_score(self, vertex: Any) -> Any:
        return abs(vertex.state - (vertex.signalled or 0.0))


class Distances(bf.Program):
    """Lengths of shortest paths from a vertex."""

    delivery = "combined"
    combiner = "min"

    def __init__(self, source: int) -> None:
        self.source = source

    def initial_state(self, vertex: Any) -> Any:
        return 0.0 if vertex.id == self.source else math.inf

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return None if math.isinf(source.state) else source.state + weight

    def collect(self, vertex: Any, signals: Any) -> Any:
        return min(vertex.state, *signals)


class Widest(bf.Program):
    """The greatest least weight of a path from a vertex."""

    delivery = "combined"
    combiner = "max"

    def __init__(self, source: int) -> None:
        self.source = source

    def initial_state(self, vertex: Any) -> Any:
        return math.inf if vertex.id == self.source else 0.0

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return min(source.state, weight)

    def collect(self, vertex: Any, signals: Any) -> Any:
        return max(vertex.state, signals[0])


class Least(bf.Program):
    """The least id from which a vertex can be reached."""

    delivery = "combined"
    combiner = "min"

    def initial_state(self, vertex: Any) -> Any:
        return vertex.id

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return source.state

    def collect(self, vertex: Any, signals: Any) -> Any:
        return min(vertex.state, signals[0])


class Greatest(Least):
    """The greatest such id."""

    combiner = "max"  # type: ignore[assignment]

    def collect(self, vertex: Any, signals: Any) -> Any:
        return max(vertex.state, signals[0])


class Reached(bf.Program):
    """The set of the first vertices from which a vertex can be reached, as bits."""

    delivery = "combined"
    combiner = "or"

    def initial_state(self, vertex: Any) -> Any:
        return 1 << vertex.id if vertex.id < 60 else 0

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return source.state

    def collect(self, vertex: Any, signals: Any) -> Any:
        return vertex.state | signals[0]


class Flow(bf.Program):
    """The sum of what the sources hold, by weight, once."""

    delivery = "latest"
    combiner = "sum"

    def initial_state(self, vertex: Any) -> Any:
        return 1.0

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return source.state * weight

    def collect(self, vertex: Any, signals: Any) -> Any:
        return 1.0


def random_graph(folder: Path) -> bf.Graph:
    """Return 600 vertices, some of them isolated, with self-loops and parallel edges."""
    random = np.random.default_rng(3)
    source, target = random.integers(-9, 500, 1500), random.integers(-9, 500, 1500)
    table = pa.table(
        {"source": source, "target": target, "weight": random.integers(1, 9, 1500) / 4}
    )
    edges = folder / "edges.csv"
    rows = zip(*(table[name].to_pylist() for name in table.column_names), strict=True)
    edges.write_text("source,target,weight\n" + "".join(f"{s},{t},{w}\n" for s, t, w in rows))
    return bf.read(str(edges))
