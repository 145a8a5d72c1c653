"""Searches and ranks that begin at several vertices: as NetworkX's, on every path."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest

import brimful as bf
from command import INPUT, USAGE, read_csv, refuse, succeed
from strategies import values

#: Ids of Wikipedia's voters, of which the first two reach many others.
SOURCES = [30, 3, 8297]


@pytest.fixture(scope="module")
def votes(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[bf.Graph]:
    path = tmp_path_factory.mktemp("votes") / "votes.brimful"
    succeed("import", data / "wiki-Vote.txt.gz", path, "--weights", "hash", "--quiet")
    with bf.Graph.open(path) as graph:
        yield graph


@pytest.fixture(scope="module")
def theirs(votes: bf.Graph) -> nx.DiGraph:
    return votes.to_networkx()


PATHS: list[dict[str, Any]] = [
    {},
    {"mode": "async"},
    {"store": "bytes"},
    {"store": "bytes", "mode": "async"},
]


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_distances_are_those_from_the_nearest(
    votes: bf.Graph, theirs: nx.DiGraph, path: dict[str, Any]
) -> None:
    levels = nx.multi_source_dijkstra_path_length(theirs, set(SOURCES), weight=lambda *_: 1)
    assert values(bf.bfs(votes, SOURCES, **path)) == {v: levels.get(v) for v in theirs}
    reach = nx.multi_source_dijkstra_path_length(theirs, set(SOURCES))
    found = values(bf.sssp(votes, SOURCES, weighted=True, **path))
    assert found == {v: reach.get(v) for v in theirs}


@pytest.mark.parametrize("path", [one for one in PATHS if "mode" not in one], ids=str)
def test_every_source_is_its_own_parent(
    votes: bf.Graph, theirs: nx.DiGraph, path: dict[str, Any]
) -> None:
    levels = nx.multi_source_dijkstra_path_length(theirs, set(SOURCES), weight=lambda *_: 1)
    wanted: dict[int, int | None] = dict.fromkeys(theirs)
    for parent, child in sorted(theirs.edges):
        if parent in levels and levels[child] == levels[parent] + 1 and wanted[child] is None:
            wanted[child] = parent
    wanted |= {source: source for source in SOURCES}
    assert values(bf.bfs(votes, SOURCES, values="parent", **path)) == wanted


@pytest.mark.parametrize("path", [*PATHS, {"method": "delta"}, {"precision": "f32"}], ids=str)
def test_a_personalized_rank_is_shared_evenly(
    votes: bf.Graph, theirs: nx.DiGraph, path: dict[str, Any]
) -> None:
    wanted = nx.pagerank(theirs, personalization=dict.fromkeys(SOURCES, 1), weight=None, tol=1e-12)
    found = values(bf.pagerank(votes, source=SOURCES, tolerance=1e-11, **path))
    assert found == pytest.approx(wanted, abs=1e-7 if "precision" in path else 1e-9)


def test_neither_order_nor_repeats_count(votes: bf.Graph) -> None:
    once = bf.pagerank(votes, source=SOURCES).to_arrow()
    again = [*SOURCES[::-1], SOURCES[0]]
    for same in (again, set(SOURCES), np.array(again), pa.array(again), iter(again), tuple(again)):
        assert bf.pagerank(votes, source=same).to_arrow() == once
    one = bf.bfs(votes, 3).to_arrow()
    for same in ([3], (3, 3), np.int64(3), np.array([3]), pa.scalar(3).as_py()):
        assert bf.bfs(votes, same).to_arrow() == one


def test_shortest_paths_are_counted_from_the_nearest() -> None:
    edges = pa.table({"source": [1, 2, 3, 4], "target": [3, 3, 4, 5]})
    with bf.Graph.from_arrow(edges) as graph:
        found = values(bf.count_paths(graph, [1, 2, 5]))
        assert found == {1: 1, 2: 1, 3: 2, 4: 2, 5: 1}
        walks = values(bf.count_paths(graph, [1, 2, 5], length=2))
        assert walks == {1: 0, 2: 0, 3: 0, 4: 2, 5: 0}


def test_sources_without_edges(tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_text("1 2\n2 3\n")
    with bf.read(tmp_path / "e.txt", vertices=6) as graph:
        assert values(bf.bfs(graph, [1, 5])) == {0: None, 1: 0, 2: 1, 3: 2, 4: None, 5: 0}
        parents = values(bf.bfs(graph, [1, 5], values="parent"))
        assert parents == {0: None, 1: 1, 2: 1, 3: 2, 4: None, 5: 5}
        theirs = graph.to_networkx()
        for sources in ([1, 5], [4, 5], [0, 3, 4]):
            personal = dict.fromkeys(sources, 1)
            wanted = nx.pagerank(theirs, personalization=personal, tol=1e-13, max_iter=1000)
            for path in ({}, {"method": "delta"}, {"store": "bytes"}):
                found = bf.pagerank(graph, source=sources, tolerance=1e-13, **path)
                assert values(found) == pytest.approx(wanted, abs=1e-11), (sources, path)


def test_names_are_sources_too(tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_text("ab b\nb c\nx y\n")
    with bf.read(tmp_path / "e.txt", ids="string", header=False) as graph:
        assert bf.bfs(graph, "ab")["c"] == 2
        assert values(bf.bfs(graph, ["b", "x"])) == {"ab": None, "b": 0, "c": 1, "x": 0, "y": 1}


def test_wrong_sources_are_refused(votes: bf.Graph) -> None:
    with pytest.raises(bf.NotFoundError, match="no vertex -7"):
        bf.bfs(votes, [3, -7, 30])
    with pytest.raises(bf.NotFoundError, match=r"no vertex 1\.5"):
        bf.bfs(votes, [3, 1.5])  # type: ignore[list-item]
    for empty in ([], (), np.array([], dtype=int)):
        with pytest.raises(bf.UsageError, match="at least one vertex"):
            bf.sssp(votes, empty)
        with pytest.raises(bf.UsageError, match="at least one vertex"):
            bf.pagerank(votes, source=empty)
    with pytest.raises(bf.UsageError, match="not a mapping"):
        bf.bfs(votes, {3: 0.5, 30: 0.5})  # type: ignore[arg-type]
    with pytest.raises(bf.UsageError, match="at most 65536 sources"):
        bf.bfs(votes, range(100_000))


@pytest.mark.parametrize("share", [None, math.nan, math.inf, "1", True])
def test_shares_that_are_no_numbers_are_refused(votes: bf.Graph, share: Any) -> None:
    refusal = f"the share of vertex 30 in source must be a number, not {share!r}"
    with pytest.raises(bf.UsageError, match=re.escape(refusal)):
        bf.pagerank(votes, source={3: 1.0, 30: share})
    with pytest.raises(bf.UsageError, match="vertex 3 in source"):
        bf.pagerank(votes, source={3: share, 30: share})
    with pytest.raises(bf.UsageError, match="source_weight must be a number"):
        bf.plan(votes, "pagerank", source=[3, 30], source_weight=[share, share])


def test_a_negative_share_is_named_by_its_vertex(votes: bf.Graph) -> None:
    refusal = r"the share of vertex 30 in source must be at least 0, not -0\.5"
    with pytest.raises(bf.UsageError, match=refusal):
        bf.pagerank(votes, source={3: 1.0, 30: -0.5})


def test_many_sources(votes: bf.Graph) -> None:
    everyone = list(votes)
    assert set(values(bf.bfs(votes, everyone)).values()) == {0}


def test_the_command_line_takes_several(votes: bf.Graph, tmp_path: Path) -> None:
    out, three = tmp_path / "out.csv", [word for one in SOURCES for word in ("--source", one)]
    succeed("run", "bfs", votes.path, *three, "-o", out, "--quiet")
    wanted = {v: d for v, d in values(bf.bfs(votes, SOURCES)).items() if d is not None}
    rows = (line for line in out.read_text().splitlines()[1:] if not line.endswith(","))
    assert {int(v): int(d) for v, d in (row.split(",") for row in rows)} == wanted
    sentence = refuse(INPUT, "run", "bfs", votes.path, *three, "--source", -5, "--quiet")
    assert "no vertex -5" in sentence
    sentence = refuse(USAGE, "run", "bfs", votes.path, *three, "--source", "x", "--quiet")
    assert "not 'x'" in sentence
    succeed("plan", votes.path, "bfs", *three, "--quiet")


def test_a_run_goes_on_from_the_same_set_of_sources(votes: bf.Graph, tmp_path: Path) -> None:
    run = ["run", "pagerank", votes.path, "--tolerance", 0, "--checkpoint-dir", tmp_path / "c"]
    three = [word for one in SOURCES for word in ("--source", one)]
    turned = [word for one in SOURCES[::-1] for word in ("--source", one)]
    made = ["--checkpoint-every", 2, "--max-supersteps", 4, "--quiet"]
    succeed(*run, *three, *made)
    sentence = refuse(USAGE, *run, *three[2:], "--resume", "--max-supersteps", 6, "--quiet")
    assert "source was 3, 30, 8297 there and is 3, 8297 here" in sentence
    out = tmp_path / "out.csv"
    more = ["--resume", "--max-supersteps", 6, "-o", out, "--json"]
    assert succeed(*run, *turned, "--source", 30, *more).figures["resumed_from"] == 4
    whole = bf.pagerank(votes, source=SOURCES, tolerance=0, max_supersteps=6)
    assert read_csv(out) == values(whole)


def test_weights_of_no_sources_are_refused(rmat: Path) -> None:
    sentence = refuse(USAGE, "run", "pagerank", rmat, "--source-weight", 5, "--quiet")
    assert "--source-weight needs the vertices of --source" in sentence
