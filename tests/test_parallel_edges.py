"""Programs that keep the latest signal of each edge, on multigraphs, against a plain model."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import brimful as bf

#: States and signals are numbers below this one: sums do not depend on their order.
PRIME = 10_007
SUPERSTEPS = 6


def signal(state: int, weight: float) -> int | None:
    """Return the signal of an edge: sometimes none, equally for all parallel edges."""
    value = (state * int(weight) + 17) % PRIME
    return value if value % 3 else None


class Latest(bf.Program):
    """A sum of the last signal of each edge."""

    delivery = "latest"

    def initial_state(self, vertex: Any) -> int:
        """Begin with a number of one's own."""
        return int(vertex.id) + 1

    def signal(self, vertex: Any, target: Any, weight: float) -> int | None:
        """Say something that depends on state and weight."""
        return signal(vertex.state, weight)

    def collect(self, vertex: Any, signals: list[int]) -> int:
        """Add up the last signals of all edges."""
        return (sum(signals) + int(vertex.id)) % PRIME


def model(edges: list[tuple[int, int, float]]) -> dict[int, int]:
    """Return the states after all supersteps, by a signal map with an entry for each edge."""
    out = defaultdict(list)
    for number, (source, target, weight) in enumerate(sorted(edges)):
        out[source].append((number, target, weight))
    vertices = {vertex for source, target, _ in edges for vertex in (source, target)}
    state = {vertex: vertex + 1 for vertex in vertices}
    signalled: dict[int, int] = {}
    latest: dict[int, dict[int, int]] = defaultdict(dict)
    for _ in range(SUPERSTEPS):
        mail = set()
        for vertex in vertices:
            if signalled.get(vertex) == state[vertex]:
                continue
            signalled[vertex] = state[vertex]
            for number, target, weight in out[vertex]:
                if (said := signal(state[vertex], weight)) is not None:
                    latest[target][number] = said
                    mail.add(target)
        for vertex in mail:
            state[vertex] = (sum(latest[vertex].values()) + vertex) % PRIME
    return state


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("store", ["memory", "bytes", "file"])
def test_each_parallel_edge_has_a_signal_of_its_own(tmp_path: Path, store: str, seed: int) -> None:
    drawn = random.Random(seed)
    edges = [
        (drawn.randrange(12), drawn.randrange(12), float(drawn.randrange(1, 9))) for _ in range(150)
    ]
    assert any(len(list(same)) > 2 for _, same in itertools.groupby(sorted(e[:2] for e in edges)))
    sources, targets, weights = zip(*edges, strict=True)
    table = pa.table({"source": sources, "target": targets, "weight": weights})
    url = f"file:{tmp_path}" if store == "file" else store
    with bf.Graph.from_arrow(table, weight="weight") as graph:
        found = bf.run(
            graph, Latest(), max_supersteps=SUPERSTEPS, weighted=True, store=url, threads=2
        )
        assert {vertex: found[vertex] for vertex in model(edges)} == model(edges)


def test_two_arcs_of_one_source_add_up() -> None:
    class Average(Latest):
        def initial_state(self, vertex: Any) -> float:
            return 1.0

        def signal(self, vertex: Any, target: Any, weight: float) -> float:
            return vertex.state * weight

        def collect(self, vertex: Any, signals: list[float]) -> float:
            return 4 + sum(signals)

    table = pa.table({"source": [1, 1], "target": [2, 2], "weight": [0.25, 0.5]})
    with bf.Graph.from_arrow(table, weight="weight") as graph:
        assert bf.run(graph, Average(), weighted=True)[2] == 4.75
