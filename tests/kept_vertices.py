"""Programs on kept vertices, a small graph, and URLs of stores."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import brimful as bf


class Hops(bf.Program):
    """Hops from a vertex."""

    delivery, combiner = "combined", "min"

    def __init__(self, source: Any = 0) -> None:
        self.source = source

    def initial_state(self, vertex: bf.Vertex) -> int | None:
        return 0 if vertex.id == self.source else None

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> int | None:
        return None if source.state is None else source.state + int(weight)

    def collect(self, vertex: bf.Vertex, signals: list[int]) -> int:
        return min(signals if vertex.state is None else [vertex.state, *signals])


class InSum(bf.Program):
    """The sum of the latest signals of all edges that arrive."""

    delivery = "latest"

    def initial_state(self, vertex: bf.Vertex) -> list[float]:
        return [1.0]

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> float:
        return weight

    def collect(self, vertex: bf.Vertex, signals: list[float]) -> list[float]:
        return [sum(signals)]


class Before(bf.Program):
    """What every vertex had before."""

    def initial_state(self, vertex: bf.Vertex) -> Any:
        return ["was", vertex.state]

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> None:
        return None

    def collect(self, vertex: bf.Vertex, signals: list[Any]) -> Any:
        raise AssertionError("nobody signals")


EDGES = {"source": [0, 1, 2, 0], "target": [1, 2, 3, 4]}


def graph_at(path: Path, table: dict[str, list[Any]] = EDGES) -> str:
    place = str(path / "small.brimful")
    bf.Graph.from_arrow(pa.table(table), path=place).close()
    return place


@pytest.fixture(params=["file", "kv", "rocksdb", "berkeleydb"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param not in ("file", "kv"):
        pytest.importorskip("rocksdict" if request.param == "rocksdb" else "berkeleydb")
    return f"{request.param}:{tmp_path}/vertices"
