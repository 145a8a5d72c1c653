"""Quick looks at a graph: `neighbors` and `path`, and the same in Python."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import brimful as bf
from brimful import _native, guided_paths, paths
from brimful.resources import Resources
from command import INPUT, USAGE, refuse, succeed, write_edges
from strategies import Case, cases


@pytest.fixture(scope="module")
def roads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A weighted directed graph of strings, in which the short way has most edges."""
    path = tmp_path_factory.mktemp("roads") / "roads.csv"
    path.write_text(
        "source,target,weight\na,b,1\nb,c,0\nc,b,0\nc,d,1.5\na,d,9\na,d,8\nd,a,1\ne,a,1\n"
    )
    succeed("import", path, path.with_suffix(".brimful"), "--quiet")
    return path.with_suffix(".brimful")


def test_neighbors_are_printed(roads: Path) -> None:
    assert succeed("neighbors", roads, "a").out == "neighbor\nb\nd\nd\n"
    assert succeed("neighbors", roads, "a", "--weights").out == (
        "neighbor\tweight\nb\t1.0\nd\t8.0\nd\t9.0\n"
    )
    incoming = succeed("neighbors", roads, "a", "--in", "--json").figures
    assert incoming == {"vertex": "a", "direction": "in", "neighbors": ["d", "e"]}
    weights = succeed("neighbors", roads, "e", "--weights", "--json").figures
    assert weights["weights"] == [1.0]
    assert "no vertex" in refuse(INPUT, "neighbors", roads, "nobody")


def test_a_vertex_that_is_no_integer_is_refused(rmat: Path) -> None:
    assert "VERTEX takes the id of a vertex" in refuse(USAGE, "neighbors", rmat, "x")
    assert "B takes the id of a vertex" in refuse(USAGE, "path", rmat, 0, "x")


def test_paths_are_printed(roads: Path) -> None:
    assert succeed("path", roads, "a", "d").out == "vertex\na\nd\n"
    assert succeed("path", roads, "a", "d", "--weighted").out == "vertex\na\nb\nc\nd\n"
    assert succeed("path", roads, "a", "e").out == "no path leads from a to e\n"
    found = succeed("path", roads, "e", "d", "--json").figures
    assert found == {"source": "e", "target": "d", "edges": 2, "path": ["e", "a", "d"]}
    nowhere = succeed("path", roads, "a", "e", "--json", "--weighted").figures
    assert nowhere == {"source": "a", "target": "e", "edges": None, "path": None}
    for ends in (("a", "nobody"), ("nobody", "a")):
        assert "no vertex" in refuse(INPUT, "path", roads, *ends)


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_paths_are_as_short_as_those_of_networkx(undirected: bool, weighted: bool) -> None:
    random = np.random.default_rng(11)
    ends = random.integers(0, 60, (110, 2))
    weights = random.choice([0.0, 0.1, 0.25, 0.7, 3.0], len(ends))
    table = pa.table({"source": ends[:, 0], "target": ends[:, 1], "weight": weights})
    edges: Any = nx.MultiGraph() if undirected else nx.MultiDiGraph()
    for (source, target), weight in zip(ends.tolist(), weights.tolist(), strict=True):
        edges.add_edge(source, target, weight=weight)
    with bf.Graph.from_arrow(table, undirected=undirected) as graph:
        for source, target in [(v, w) for v in list(graph)[:8] for w in list(graph)[::5]]:
            path = graph.shortest_path(source, target, weighted=weighted)
            if path is None:
                assert not nx.has_path(edges, source, target)
                continue
            assert (path[0], path[-1]) == (source, target) and len(set(path)) == len(path)
            key = "weight" if weighted else None
            best = nx.shortest_path_length(edges, source, target, weight=key)
            assert all(graph.has_edge(*pair) for pair in itertools.pairwise(path))
            own = sum(
                min(one["weight"] for one in edges[a][b].values()) if weighted else 1
                for a, b in itertools.pairwise(path)
            )
            assert own == pytest.approx(best)


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_shortest_paths_are_those_of_networkx(undirected: bool, weighted: bool) -> None:
    random = np.random.default_rng(5)
    ends = random.integers(0, 14, (34, 2))
    weights = random.choice([0.0, 0.25, 0.5, 3.0], len(ends))
    table = pa.table({"source": ends[:, 0], "target": ends[:, 1], "weight": weights})
    edges: Any = nx.Graph() if undirected else nx.DiGraph()
    for (source, target), weight in zip(ends.tolist(), weights.tolist(), strict=True):
        known = edges.get_edge_data(source, target, {"weight": weight})["weight"]
        edges.add_edge(source, target, weight=min(weight, known))
    key = "weight" if weighted else None
    with bf.Graph.from_arrow(table, undirected=undirected) as graph:
        for source, target in itertools.product(list(graph)[::2], list(graph)[::4]):
            found = graph.shortest_paths(source, target, 12, weighted=weighted)
            try:
                theirs = nx.shortest_simple_paths(edges, source, target, weight=key)
                best = [
                    nx.path_weight(edges, path, "weight") if weighted else len(path) - 1
                    for path in itertools.islice(theirs, 12)
                ]
            except nx.NetworkXNoPath:
                best = []
            assert [length for length, _ in found] == best
            assert len({tuple(path) for _, path in found}) == len(found)
            for length, path in found:
                assert (path[0], path[-1]) == (source, target) and len(set(path)) == len(path)
                assert length == (
                    nx.path_weight(edges, path, "weight") if weighted else len(path) - 1
                )


def test_several_paths_on_the_command_line(tmp_path: Path) -> None:
    roads = write_edges(tmp_path / "roads.txt", [(1, 2), (2, 4), (1, 3), (3, 4), (1, 4)])
    shown = succeed("path", roads, 1, 4, "--k", 9, "--quiet").out.splitlines()
    assert shown[:2] == ["length\tpath", "1\t1 4"]
    assert set(shown[2:]) == {"2\t1 2 4", "2\t1 3 4"}
    found = succeed("path", roads, 1, 4, "--k", 1, "--json", "--quiet").figures
    assert found == {"source": 1, "target": 4, "paths": [{"length": 1, "path": [1, 4]}]}
    assert succeed("path", roads, 4, 1, "--k", 2, "--quiet").out == "no path leads from 4 to 1\n"
    assert "from 1 to" in refuse(USAGE, "path", roads, 1, 4, "--k", 0)


@given(case=cases(), data=st.data())
def test_searches_from_both_ends_find_the_path_of_one_search(
    case: Case, data: st.DataObject
) -> None:
    # `bfs` refuses parents of ids that take all 64 bits.
    assume(max(case.vertices) - min(case.vertices) < 2**64 - 1)
    ends = st.sampled_from(case.vertices)
    pairs = data.draw(st.lists(st.tuples(ends, ends), min_size=1, max_size=9), label="pairs")
    with case.graph() as graph:
        parents = {source: bf.bfs(graph, source, values="parent") for source, _ in pairs}
        # It leaves the reverse index.
        bf.kcore(graph)
        look_up = _native.Lookup(graph.native)
        for source, target in pairs:
            path = [target]
            while path[-1] not in (source, None):
                path.append(parents[source][path[-1]])
            expected = [] if path[-1] is None else path[::-1]
            assert look_up.between(source, target, weighted=False) == expected
            assert graph.shortest_path(source, target) == (expected or None)


@given(case=cases(), data=st.data())
def test_weighted_searches_from_both_ends_find_the_path_of_one_search(
    case: Case, data: st.DataObject
) -> None:
    count = len(case.edges)
    weights = data.draw(
        st.lists(st.integers(0, 3).map(float), min_size=count, max_size=count), label="weights"
    )
    ends = st.sampled_from(case.vertices)
    pairs = data.draw(st.lists(st.tuples(ends, ends), min_size=1, max_size=9), label="pairs")
    with case.graph(weights) as graph:
        bf.kcore(graph)
        look_up = _native.Lookup(graph.native)
        for source, target in pairs:
            found = look_up.between(source, target, weighted=True)
            # A graph without edges has no weights.
            if case.edges:
                expected = paths._weighted_path(graph, source, target, Resources())
                assert found == (expected or [])
                assert graph.shortest_path(source, target, weighted=True) == expected


@given(case=cases(), data=st.data())
def test_rounded_weights_give_a_shortest_path(case: Case, data: st.DataObject) -> None:
    """The sums of the two searches are rounded otherwise than those of one."""
    count = len(case.edges)
    tenths = st.integers(0, 9).map(lambda tenth: tenth / 10)
    weights = data.draw(st.lists(tenths, min_size=count, max_size=count), label="weights")
    ends = st.sampled_from(case.vertices)
    pairs = data.draw(st.lists(st.tuples(ends, ends), min_size=1, max_size=9), label="pairs")
    assume(count > 0)
    with case.graph(weights) as graph:
        bf.kcore(graph)
        for source, target in pairs:
            path = _native.Lookup(graph.native).between(source, target, weighted=True)
            expected = bf.sssp(graph, source, weighted=True)[target]
            assert path is not None and bool(path) == (expected is not None)
            if expected is not None:
                assert length(graph, path) == pytest.approx(expected)


def test_sums_of_weights_that_overflow_are_left_to_a_run() -> None:
    table = pa.table({"source": [0, 1], "target": [1, 2], "weight": [1e308, 1e308]})
    with bf.Graph.from_arrow(table, undirected=True) as graph:
        assert _native.Lookup(graph.native).between(0, 2, weighted=True) is None
        with pytest.raises(bf.InputError, match="the largest 64-bit float"):
            graph.shortest_path(0, 2, weighted=True)


def grid(side: int, most: int = 1) -> pa.Table:
    """A grid of `side` times `side` vertices, with whole weights from 1 to `most`."""
    rng = np.random.default_rng(5)
    at = np.arange(side * side).reshape(side, side)
    ends = [(at[:, :-1], at[:, 1:]), (at[:-1], at[1:])]
    source, target = (np.concatenate([pair[end].ravel() for pair in ends]) for end in (0, 1))
    weight = rng.integers(1, most, len(source), endpoint=True) / 1.0
    return pa.table({"source": source, "target": target, "weight": weight})


def test_weighted_paths_of_a_grid() -> None:
    side = 200
    with bf.Graph.from_arrow(grid(side, 99), undirected=True) as graph:
        look_up = _native.Lookup(graph.native)
        distances = bf.sssp(graph, 0, weighted=True)
        for vertex in (0, 1, side + 1, 3 * side + 4, 8):
            path = look_up.between(0, vertex, weighted=True)
            assert path is not None
            assert path == paths._weighted_path(graph, 0, vertex, Resources())
            assert length(graph, path) == distances[vertex]
        # Too far apart for look-ups, which would take longer than a run.
        far = side * side - 1
        assert look_up.between(0, far, weighted=True) is None
        path = graph.shortest_path(0, far, weighted=True)
        assert path is not None and length(graph, path) == distances[far]


def test_many_shortest_paths_keep_to_the_budget() -> None:
    # All paths to the opposite corner that do not turn back are shortest.
    with bf.Graph.from_arrow(grid(150), undirected=True) as graph:
        far = 150 * 150 - 1
        assert _native.Lookup(graph.native).between(0, far, weighted=True) is None
        with pytest.raises(bf.BudgetError, match="to choose one of the shortest paths") as raised:
            graph.shortest_path(0, far, weighted=True, budget="6M")
        path = graph.shortest_path(0, far, weighted=True, budget=raised.value.needed_bytes)
        assert path is not None and len(path) == 2 * 150 - 1


class Asked(dict[int, tuple[float, float]]):
    """Coordinates that note the vertices asked for."""

    def __init__(self, places: dict[int, tuple[float, float]]) -> None:
        super().__init__(places)
        self.vertices: set[int] = set()

    def __getitem__(self, vertex: int) -> tuple[float, float]:
        self.vertices.add(vertex)
        return super().__getitem__(vertex)


@pytest.mark.parametrize("undirected", [False, True])
def test_coordinates_guide_a_search_to_the_same_path(undirected: bool) -> None:
    side, rng = 40, np.random.default_rng(6)
    at = np.arange(side * side).reshape(side, side)
    ends = [(at[:, :-1], at[:, 1:]), (at[:-1], at[1:]), (at[:, 1:], at[:, :-1]), (at, at)]
    source, target = (np.concatenate([pair[end].ravel() for pair in ends]) for end in (0, 1))
    # Many paths of one length.
    weight = rng.choice([1.0, 1.0, 1.25, 2.0], len(source))
    table = pa.table({"source": source, "target": target, "weight": weight})
    places = {vertex: divmod(vertex, side) for vertex in range(side * side)}
    with bf.Graph.from_arrow(table, undirected=undirected) as graph:
        graph.in_neighbors(0)
        for _ in range(20):
            begin, end = (int(one) for one in rng.integers(0, side * side, 2))
            path = graph.shortest_path(begin, end, weighted=True, coordinates=places)
            assert path == graph.shortest_path(begin, end, weighted=True), (begin, end)
        near = Asked(places)
        assert graph.shortest_path(0, 5, weighted=True, coordinates=near)
        assert len(near.vertices) < side * side / 10
        assert graph.shortest_path(7, 7, weighted=True, coordinates=places) == [7]
        for wrong, sentence in (
            ({**places, 1: (5.0, 5.0)}, "less than the straight line"),
            ({0: (0.0, 0.0), 5: (0.0, 5.0)}, "coordinates has no vertex"),
            ({**places, 1: (1.0,)}, "have no distance"),
            ({**places, 1: (0.0, np.nan)}, "have no distance"),
            ({**places, 1: "ab"}, "have no distance"),
        ):
            with pytest.raises(bf.InputError, match=sentence):
                graph.shortest_path(0, 5, weighted=True, coordinates=wrong)
        for other in (pa.table({"vertex": [0], "x": [0.5]}), [(0.0, 0.0)]):
            with pytest.raises(bf.UsageError, match="coordinates must be a mapping"):
                graph.shortest_path(0, 5, weighted=True, coordinates=other)  # type: ignore[arg-type]
        with pytest.raises(bf.UsageError, match="pass weighted=True"):
            graph.shortest_path(0, 5, coordinates=places)


def test_a_guided_search_ends_where_no_path_leads_and_leaves_long_ones_to_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    places = {vertex: (vertex, 0.0) for vertex in range(100)}
    ends = {"source": [*range(98), 99], "target": [*range(1, 99), 98]}
    with bf.Graph.from_arrow(pa.table({**ends, "weight": [1.0] * 99})) as graph:
        chain = list(range(99))
        assert graph.shortest_path(0, 99, weighted=True, coordinates=places) is None
        assert graph.shortest_path(0, 98, weighted=True, coordinates=places) == chain
        assert guided_paths.guided_path(graph, 0, 98, places, 98) is None
        monkeypatch.setattr(paths, "_MOST_GUIDED", 98)
        graph.in_neighbors(0)
        assert graph.shortest_path(0, 98, weighted=True, coordinates=places) == chain
    with bf.Graph.from_arrow(pa.table(ends)) as graph, pytest.raises(bf.UsageError, match="weight"):
        graph.shortest_path(0, 98, weighted=True, coordinates=places)


def test_a_guided_search_keeps_to_the_budget_of_the_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most: list[int] = []

    def noted(*given: Any) -> list[Any]:
        most.append(given[-1])
        return []

    monkeypatch.setattr(guided_paths, "guided_path", noted)
    edges = {"source": [0], "target": [1], "weight": [1.0]}
    bf.Graph.from_arrow(pa.table(edges), path=tmp_path / "g.brimful").close()
    with bf.Graph.open(tmp_path / "g.brimful", budget="20M") as graph:
        graph.shortest_path(0, 1, weighted=True, coordinates={})
        graph.shortest_path(0, 1, weighted=True, coordinates={}, budget="10M")
    assert most == [20 << 10, 10 << 10]


def length(graph: bf.Graph, path: list[Any]) -> float:
    """Return the weight of a path, over the lightest of parallel edges."""
    total = 0.0
    for one, next_one in itertools.pairwise(path):
        edges = zip(*graph.neighbors(one, weights=True), strict=True)
        total += min(weight for other, weight in edges if other == next_one)
    return total


def test_a_path_between_many_vertices_is_left_to_one_search() -> None:
    leaves = 300_000
    hubs = np.repeat([0, leaves + 1], leaves)
    ends = np.concatenate([np.arange(1, leaves + 1), np.arange(leaves + 2, 2 * leaves + 2)])
    table = pa.table({"source": hubs, "target": ends, "weight": np.ones(2 * leaves)})
    with bf.Graph.from_arrow(table, undirected=True) as graph:
        for weighted in (False, True):
            assert _native.Lookup(graph.native).between(1, leaves + 2, weighted=weighted) is None
        assert graph.shortest_path(1, leaves + 2) is None
        assert graph.shortest_path(1, 2) == [1, 0, 2]


def test_a_path_needs_weights_to_be_weighted(rmat: Path) -> None:
    assert "weights" in refuse(USAGE, "path", rmat, 0, 1, "--weighted")


def test_a_path_stays_within_the_budget(tmp_path: Path) -> None:
    # A graph of its own: with a reverse index, which other tests build, no run is needed.
    rmat = tmp_path / "rmat.brimful"
    succeed("generate", "rmat", rmat, "--scale", 12, "--edge-factor", 16, "--quiet")
    with bf.Graph.open(rmat) as graph:
        far = max((level or 0, vertex) for vertex, level in bf.bfs(graph, 0).items())
        path = graph.shortest_path(0, far[1], budget="100M", threads=1)
        with pytest.raises(bf.BudgetError):
            graph.shortest_path(0, far[1], budget=1)
    assert path is not None and len(path) == far[0] + 1
    told = json.loads(succeed("path", os.fspath(rmat), 0, far[1], "--json", "--budget", "200M").out)
    assert told["path"] == path
