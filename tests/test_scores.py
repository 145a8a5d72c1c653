"""The default scores: a program that calls them runs as one that does not define the methods."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

import brimful as bf


class Nones(bf.Program):
    """Every state is None."""

    mutates = False

    def initial_state(self, vertex: Any) -> Any:
        return None

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return source.id

    def collect(self, vertex: Any, signals: list[Any]) -> Any:
        return vertex.state


class Numbers(Nones):
    """States are NaN, then numbers that do not change."""

    def initial_state(self, vertex: Any) -> Any:
        return math.nan

    def collect(self, vertex: Any, signals: list[Any]) -> Any:
        return 3 if 2 in signals else math.nan


def calling(kind: type[bf.Program]) -> type[bf.Program]:
    """Return the class with methods that call the default scores."""

    def signal_score(self: Any, vertex: Any) -> float:
        assert vertex.has_signalled or vertex.signalled is None
        return float(kind.signal_score(self, vertex))

    def collect_score(self: Any, vertex: Any, signals: list[Any]) -> float:
        return float(kind.collect_score(self, vertex, signals))

    methods = {"signal_score": signal_score, "collect_score": collect_score}
    return type("Calling", (kind,), methods)


@pytest.mark.parametrize("kind", [Nones, Numbers])
@pytest.mark.parametrize("mutates", [False, True])
@pytest.mark.parametrize("options", [{}, {"store": "bytes"}, {"mode": "async"}])
def test_default_scores_are_the_same_in_python(
    kind: type[bf.Program], mutates: bool, options: dict[str, Any]
) -> None:
    class Own(kind):  # type: ignore[misc, valid-type]
        pass

    Own.mutates = mutates
    table = pa.table({"source": [1, 2, 3, 3], "target": [2, 3, 1, 2]})
    with bf.Graph.from_arrow(table) as graph:
        plain = bf.run(graph, Own(), **options)
        called = bf.run(graph, calling(Own)(), **options)
        assert str(dict(plain)) == str(dict(called))
        assert plain.stats["signals"] == called.stats["signals"] >= 4
        assert plain.stats["supersteps"] == called.stats["supersteps"] < 10
