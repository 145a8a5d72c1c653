"""The examples of programs in the guide give the answers of independent computations."""

from __future__ import annotations

import contextlib
import io
import itertools
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest

import brimful as bf
from run_document import blocks_of

GUIDE = Path(__file__).resolve().parent.parent / "docs" / "guide" / "program-examples.md"
#: An example is short.
MAX_LINES = 40


def blocks() -> list[str]:
    return [one.text for one in blocks_of(GUIDE.read_text()) if one.language == "python"]


@pytest.fixture(scope="module")
def guide() -> dict[str, Any]:
    """The names that the guide defines."""
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for block in blocks():
            exec(block, names)
    return names


def drawn(seed: int, count: int, most: int) -> list[tuple[int, int]]:
    """Return different arcs without self-loops."""
    random_ = random.Random(seed)
    arcs = {(random_.randrange(most), random_.randrange(most)) for _ in range(count)}
    return sorted((source, target) for source, target in arcs if source != target)


@contextlib.contextmanager
def graph_of(arcs: list[tuple[Any, Any]], **options: Any) -> Iterator[bf.Graph]:
    sources, targets = map(list, zip(*arcs, strict=True))
    with bf.Graph.from_arrow(pa.table({"source": sources, "target": targets}), **options) as graph:
        yield graph


def test_examples_are_short() -> None:
    assert len(blocks()) == 9
    assert max(block.count("\n") for block in blocks()) <= MAX_LINES


@pytest.mark.parametrize("store", ["memory", "bytes"])
def test_the_random_walk_solves_its_equations(guide: dict[str, Any], store: str) -> None:
    arcs, restart = drawn(1, 90, 40), 0.2
    ids = sorted({one for arc in arcs for one in arc})
    start = arcs[0][0]
    step = np.zeros((len(ids), len(ids)))
    for source, target in arcs:
        step[ids.index(target), ids.index(source)] += 1
    dead_ends = step.sum(axis=0) == 0
    assert dead_ends.any()
    step[ids.index(start), dead_ends] = 1
    step /= step.sum(axis=0)
    at_start = np.array([float(one == start) for one in ids])
    wanted = np.linalg.solve(np.eye(len(ids)) - (1 - restart) * step, restart * at_start)
    with graph_of(arcs) as graph:
        found = bf.run(graph, guide["Walk"](start, restart), store=store)
    assert list(found.values()) == pytest.approx(wanted.tolist(), abs=1e-10)


def test_labels_propagate_as_in_a_loop(guide: dict[str, Any]) -> None:
    arcs = [arc for arc in drawn(2, 200, 60) if arc[0] < arc[1]]
    neighbors: dict[int, list[int]] = {}
    for source, target in arcs:
        neighbors.setdefault(source, []).append(target)
        neighbors.setdefault(target, []).append(source)
    given = {one: (f"group {one % 7}", one % 3) for one in neighbors}
    labels = dict(given)
    for _ in range(6):
        counts = {one: Counter(labels[other] for other in neighbors[one]) for one in labels}
        labels = {
            one: min(label for label, count in of.items() if count == max(of.values()))
            for one, of in counts.items()
        }
    assert len(set(labels.values())) > 1
    with graph_of(arcs, undirected=True) as graph:
        program = guide["Communities"](given)
        assert dict(bf.run(graph, program, max_supersteps=6)) == labels


@pytest.mark.parametrize("store", ["memory", "bytes"])
def test_a_path_query_finds_what_trying_all_finds(guide: dict[str, Any], store: str) -> None:
    arcs, pattern = drawn(3, 120, 30), ["a", "b", "a", "c"]
    kinds = {one: "abc"[one % 3] for arc in arcs for one in arc}
    of_kind = ([one for one in kinds if kinds[one] == kind] for kind in pattern)
    known = set(arcs)
    wanted = sorted(
        list(path)
        for path in itertools.product(*of_kind)
        if all(arc in known for arc in itertools.pairwise(path))
    )
    assert wanted
    with graph_of(arcs) as graph:
        states = bf.run(graph, guide["Paths"](kinds, pattern), store=store)
        assert guide["found"](states, pattern) == wanted


def test_life_on_a_torus_is_that_of_rolled_arrays(guide: dict[str, Any]) -> None:
    rows, columns, generations = 9, 13, 20
    board = np.random.default_rng(4).random((rows, columns)) < 0.4
    program = guide["Life"](np.flatnonzero(board).tolist())
    for _ in range(generations):
        steps = [step for step in itertools.product((-1, 0, 1), repeat=2) if any(step)]
        around = sum(np.roll(board, step, (0, 1)).astype(int) for step in steps)
        board = (around == 3) | (board & (around == 2))
    assert board.any()
    with graph_of(list(guide["torus"](rows, columns))) as graph:
        cells = bf.run(graph, program, max_supersteps=generations)
    assert list(cells.values()) == board.ravel().tolist()


@pytest.mark.parametrize("seed", range(5))
def test_no_edge_can_be_added_to_a_matching(guide: dict[str, Any], seed: int) -> None:
    arcs = [(f"left {left}", f"right {right}") for left, right in drawn(seed, 120, 50)]
    with graph_of(arcs) as graph:
        partners = dict(bf.run(graph, guide["Matching"]()))
    matched = {(one, other) for one, other in partners.items() if other and one < other}
    assert len(matched) * 2 == sum(other is not None for other in partners.values())
    assert nx.is_maximal_matching(nx.Graph(arcs), matched)


def test_clusters_are_those_of_lloyds_algorithm(guide: dict[str, Any]) -> None:
    random_ = np.random.default_rng(6)
    points = random_.normal(size=(80, 2)) + random_.integers(0, 3, (80, 1)) * 4
    centers = points[:4]
    while True:
        nearest = np.linalg.norm(points[:, None] - centers, axis=2).argmin(axis=1)
        moved = np.array([points[nearest == one].mean(axis=0) for one in range(4)])
        if np.allclose(moved, centers, atol=1e-12):
            break
        centers = moved
    assert np.bincount(nearest).min() > 0
    with graph_of([(one, (one + 1) % 80) for one in range(80)]) as graph:
        program = guide["Clusters"](dict(enumerate(points)), points[:4])
        assert list(bf.run(graph, program).values()) == nearest.tolist()


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_temperatures_solve_laplaces_equation(guide: dict[str, Any], mode: Any) -> None:
    grid: nx.Graph[Any] = nx.convert_node_labels_to_integers(nx.grid_2d_graph(6, 6))
    fixed = {0: 100.0, 35: -20.0, 5: 7.0}
    laplace = nx.laplacian_matrix(grid, nodelist=range(36)).toarray().astype(float)
    wanted = np.zeros(36)
    for one, value in fixed.items():
        laplace[one] = np.eye(36)[one]
        wanted[one] = value
    wanted = np.linalg.solve(laplace, wanted)
    with graph_of(list(grid.edges), undirected=True) as graph:
        found = bf.run(graph, guide["Heat"](fixed), mode=mode)
    assert list(found.values()) == pytest.approx(wanted.tolist(), abs=1e-8)


@pytest.mark.parametrize("store", ["memory", "bytes"])
def test_ways_are_sums_of_powers(guide: dict[str, Any], store: str) -> None:
    arcs = [arc for arc in drawn(7, 150, 30) if arc[0] < arc[1]]
    ids = sorted({one for arc in arcs for one in arc})
    step = np.zeros((len(ids), len(ids)), dtype=np.int64)
    for source, target in arcs:
        step[ids.index(source), ids.index(target)] += 1
    ways = sum(np.linalg.matrix_power(step, length)[0] for length in range(len(ids)))
    with graph_of(arcs) as graph:
        found = bf.run(graph, guide["Ways"](ids[0]), store=store)
    assert [total for total, _ in found.values()] == ways.tolist()
