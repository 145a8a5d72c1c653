"""Programs in plain Python, a graph for them, and URLs of stores."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa

import brimful as bf


class Distances(bf.Program):
    """Lengths of shortest paths from a vertex."""

    delivery = "combined"

    def __init__(self, source: int | str) -> None:
        self.source = source

    def initial_state(self, vertex: bf.Vertex) -> Any:
        return 0.0 if vertex.id == self.source else None

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> Any:
        return None if source.state is None else source.state + weight

    def combine(self, left: float, right: float) -> float:
        return min(left, right)

    def collect(self, vertex: bf.Vertex, signals: list[float]) -> float:
        return min([*signals, *([] if vertex.state is None else [vertex.state])])


class Ranks(bf.Program):
    """PageRank, unnormalized; a vertex remembers the latest signal of each neighbor."""

    delivery = "latest"

    def initial_state(self, vertex: bf.Vertex) -> float:
        return 1.0 - 0.85

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> float:
        return source.state / source.degree

    def collect(self, vertex: bf.Vertex, signals: list[float]) -> float:
        return (1.0 - 0.85) + 0.85 * sum(signals)


def made(ids: Any = int, **given: Any) -> bf.Graph:
    """Return a graph of 300 different weighted arcs among 60 vertices."""
    drawn = random.Random(3)
    pairs = sorted({(drawn.randrange(60), drawn.randrange(60)) for _ in range(300)})
    weights = [float(drawn.randrange(1, 9)) for _ in pairs]
    sources, targets = ([ids(id) for id in column] for column in zip(*pairs, strict=True))
    table = pa.table({"source": sources, "target": targets, "weight": weights})
    return bf.Graph.from_arrow(table, weight="weight", **given)


def url(store: str, folder: Path) -> str:
    return f"file:{folder / 'vertices'}" if store == "file" else store


class Constant(bf.Program):
    """States of one value."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def initial_state(self, vertex: bf.Vertex) -> Any:
        return self.state if vertex.id == 3 else None

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> Any:
        return None

    def collect(self, vertex: bf.Vertex, signals: list[Any]) -> Any:
        return vertex.state
