"""A graph that is open twice, or whose files are replaced or removed while it is open."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import brimful as bf
from strategies import values

RING = [(v, (v + 1) % 60) for v in range(60)]
# As many vertices and edges, so that files of the same lengths have the same tables.
TURNED = [((v + 1) % 60, v) for v in range(60)]
CHORDS = [(v, (v + 7) % 60) for v in range(60)]


def _write(path: Path, edges: list[tuple[int, int]]) -> Path:
    path.write_text("".join(f"{source} {target}\n" for source, target in edges))
    return path


def _import(folder: Path, edges: list[tuple[int, int]]) -> Path:
    path = folder / "g.brimful"
    shutil.rmtree(path, ignore_errors=True)
    ends = {"source": [source for source, _ in edges], "target": [target for _, target in edges]}
    bf.Graph.from_arrow(pa.table(ends), path=path).close()
    return path


def test_two_openings_share_an_index(tmp_path: Path) -> None:
    path = _import(tmp_path, CHORDS)
    with bf.Graph.open(path) as one, bf.Graph.open(path) as other:
        before = values(bf.scc(one, method="coloring"))
        assert one.in_neighbors(9) == [2]
        assert other.in_neighbors(9) == [2]
        assert values(bf.scc(other, method="coloring")) == before


def test_two_openings_may_build_an_index_at_once(tmp_path: Path) -> None:
    path = _import(tmp_path, CHORDS)
    found: list[list[Any]] = []
    with bf.Graph.open(path) as one, bf.Graph.open(path) as other:
        threads = [
            threading.Thread(target=lambda graph=graph: found.append(graph.in_neighbors(9)))
            for graph in (one, other, one, other)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [[2]] * 4


QUESTIONS: list[Callable[[bf.Graph], Any]] = [
    lambda graph: values(bf.bfs(graph, 0)),
    lambda graph: values(bf.sssp(graph, [0, 3], mode="async")),
    lambda graph: values(bf.pagerank(graph)),
    lambda graph: values(bf.scc(graph, method="coloring")),
    lambda graph: values(bf.kcore(graph)),
    lambda graph: values(bf.connected_components(graph, method="propagation")),
    lambda graph: values(bf.bfs(graph, 0, store="bytes")),
    lambda graph: graph.neighbors(5),
    lambda graph: graph.in_neighbors(5),
    lambda graph: graph.has_edge(5, 6),
    lambda graph: graph.degrees_many([1, 2], direction="in").to_pylist(),
    lambda graph: graph.verify()["arcs"],
    lambda graph: sorted(graph.to_networkx().edges),
]


@pytest.mark.parametrize("question", range(len(QUESTIONS)))
@pytest.mark.parametrize("others", [None, TURNED, CHORDS, RING[:30]], ids=str)
def test_an_open_graph_never_answers_for_another(
    tmp_path: Path, others: list[tuple[int, int]] | None, question: int
) -> None:
    """Open graphs continue or raise an error: they took the index of another graph as theirs."""
    with bf.Graph.open(_import(tmp_path, RING)) as graph:
        wanted = QUESTIONS[question](graph)
    path = _import(tmp_path, RING)
    with bf.Graph.open(path) as graph:
        shutil.rmtree(path)
        if others is not None:
            _import(tmp_path, others)
        try:
            assert QUESTIONS[question](graph) == wanted
        except bf.InputError as error:
            assert "was replaced or removed after it was opened; open it again" in str(error)
        if others is not None:
            with bf.Graph.open(path) as fresh:
                assert fresh.edges == len(others)
                assert fresh.verify()["arcs"] == len(others)


def test_a_file_that_changed_is_another_graph(tmp_path: Path) -> None:
    """The graph next to a file is swapped when the file changes; a graph read before is not."""
    path = _write(tmp_path / "e.txt", RING)
    with bf.read(path) as before:
        _write(path, [*TURNED, (0, 2)])
        with bf.read(path) as after:
            assert after.edges == 61
            with pytest.raises(bf.InputError, match="was replaced or removed after it was opened"):
                before.in_neighbors(5)
            assert after.in_neighbors(5) == [6]
            assert before.edges == 60
            assert values(bf.pagerank(after)) != pytest.approx(values(bf.pagerank(before)))


def test_the_same_graph_again_goes_on(tmp_path: Path) -> None:
    path = _import(tmp_path, RING)
    with bf.Graph.open(path) as graph:
        _import(tmp_path, RING)
        assert graph.neighbors(5) == [6] and graph.in_neighbors(5) == [4]
        assert bf.bfs(graph, 0)[59] == 59


def test_two_collections_in_one_process_say_so(tmp_path: Path) -> None:
    with (
        bf.Box(tmp_path / "box", "f8", budget="16M"),
        pytest.raises(bf.StoreIoError, match="this process has it open already"),
    ):
        bf.Box(tmp_path / "box", "f8", budget="16M")
