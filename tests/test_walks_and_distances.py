"""Random walks, distances from many sources, eccentricities and diameters."""

from __future__ import annotations

from collections import Counter
from itertools import groupby, pairwise
from pathlib import Path

import networkx as nx
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brimful as bf
from command import INPUT, USAGE, refuse, succeed
from strategies import Case, cases, graph_of


def walks_of(rows: bf.Rows) -> list[list[int]]:
    """Return the vertices of each walk; rows must come walk by walk, step by step."""
    found = []
    for number, walk in groupby(rows, key=lambda row: row[0]):
        steps = list(walk)
        assert number == len(found)
        assert [step for _, step, _ in steps] == list(range(len(steps)))
        found.append([vertex for _, _, vertex in steps])
    return found


@given(case=cases(), p=st.sampled_from([1.0, 0.25, 4.0]), q=st.sampled_from([1.0, 0.5, 2.0]))
def test_walks_follow_edges_and_end_where_none_leads_on(case: Case, p: float, q: float) -> None:
    theirs = case.networkx()
    with case.graph() as graph:
        walks = walks_of(bf.random_walks(graph, walks=2, length=7, p=p, q=q))
        again = walks_of(bf.random_walks(graph, walks=2, length=7, p=p, q=q, threads=1))
    assert walks == again
    assert [walk[0] for walk in walks] == [vertex for vertex in case.vertices for _ in range(2)]
    for walk in walks:
        assert all(theirs.has_edge(*step) for step in pairwise(walk))
        assert len(walk) == 7 or theirs.out_degree(walk[-1]) == 0


def shares(rows: bf.Rows, before: tuple[int, ...]) -> dict[int, float]:
    """Return how often each vertex came after some vertices."""
    size = len(before)
    found = Counter(
        walk[at + size]
        for walk in walks_of(rows)
        for at in range(len(walk) - size)
        if tuple(walk[at : at + size]) == before
    )
    return {vertex: count / found.total() for vertex, count in found.items()}


def test_steps_are_taken_in_proportion() -> None:
    # From 1: to 0 twice, to 2 once, to 3 once; 0 and 2 are neighbors, 0 and 3 are not.
    edges = [(0, 1), (0, 1), (1, 2), (1, 3), (0, 2)]
    weights = [1.0, 2.0, 3.0, 6.0, 1.0]
    with graph_of(edges, undirected=True, weights=weights) as graph:
        plain = bf.random_walks(graph, walks=3000, length=10)
        assert shares(plain, (1,)) == pytest.approx({0: 0.5, 2: 0.25, 3: 0.25}, abs=0.02)
        weighted = bf.random_walks(graph, walks=3000, length=10, weighted=True)
        assert shares(weighted, (1,)) == pytest.approx({0: 0.25, 2: 0.25, 3: 0.5}, abs=0.02)
        second = bf.random_walks(graph, walks=3000, length=10, p=0.5, q=4.0)
        # Back to 0 on either edge: 2 * 2; to 2, a neighbor of 0: 1; to 3: 1 / 4.
        expected = {0: 4 / 5.25, 2: 1 / 5.25, 3: 0.25 / 5.25}
        assert shares(second, (0, 1)) == pytest.approx(expected, abs=0.02)
        both = bf.random_walks(graph, walks=3000, length=10, p=2.0, q=0.5, weighted=True)
        # 3 / 2, 3 and 6 * 2.
        expected = {0: 1.5 / 16.5, 2: 3 / 16.5, 3: 12 / 16.5}
        assert shares(both, (0, 1)) == pytest.approx(expected, abs=0.02)


def test_a_step_that_hardly_counts_is_taken_where_there_is_no_other() -> None:
    with graph_of([(0, 1), (1, 2)], undirected=True) as graph:
        walks = walks_of(bf.random_walks(graph, walks=50, length=5, p=1e12))
    # From 1 never back; at 2 there is nothing but back.
    assert {tuple(walk) for walk in walks if walk[0] == 0} == {(0, 1, 2, 1, 0)}


def test_another_seed_gives_other_walks(rmat: Path) -> None:
    first = bf.random_walks(rmat, walks=1, length=5).to_arrow()
    assert bf.random_walks(rmat, walks=1, length=5, seed=1).to_arrow() != first
    assert bf.random_walks(rmat, walks=1, length=5, threads=1, budget="16M").to_arrow() == first


def test_walks_are_refused_or_end(tmp_path: Path) -> None:
    graph = tmp_path / "g.brimful"
    succeed("generate", "ring", graph, "--vertices", 9, "--quiet")
    run = ["run", "random_walks", graph]
    assert "length must be from 1" in refuse(USAGE, *run, "--length", 0)
    assert "p must be above 0" in refuse(USAGE, *run, "--p", 0)
    assert "no edge weights" in refuse(USAGE, *run, "--weighted")
    with (
        graph_of([(0, 1)], weights=[-1.0]) as negative,
        pytest.raises(bf.InputError, match="weights of at least 0"),
    ):
        bf.random_walks(negative, weighted=True)
    with graph_of([(0, 1)], weights=[0.0]) as weightless:
        assert walks_of(bf.random_walks(weightless, walks=1, weighted=True)) == [[0], [1]]


@given(case=cases(), data=st.data())
def test_distances_and_eccentricities(case: Case, data: st.DataObject) -> None:
    theirs = case.networkx()
    some = st.lists(st.sampled_from(case.vertices), min_size=1, max_size=12)
    sources = data.draw(some, label="sources")
    expected = {
        source: dict(nx.single_source_shortest_path_length(theirs, source))
        for source in sorted(set(sources))
    }
    with case.graph() as graph:
        rows = list(bf.distances(graph, sources))
        far = list(bf.eccentricity(graph, sources))
    assert rows == [
        (source, target, levels[target])
        for source, levels in expected.items()
        for target in sorted(levels)
    ]
    assert far == [
        (source, max(levels.values()), len(levels) - 1) for source, levels in expected.items()
    ]


def test_more_sources_than_a_word_has_bits(rmat: Path) -> None:
    with bf.Graph.open(rmat) as graph:
        sources = [vertex for vertex in range(400) if vertex in graph][:150]
        found: dict[int, dict[int, int]] = {source: {} for source in sources}
        for source, target, distance in bf.distances(graph, sources):
            found[source][target] = distance
        for source in sources[::37]:
            levels = bf.bfs(graph, source)
            assert found[source] == {v: at for v, at in levels.items() if at is not None}
        for source, most, reached in bf.eccentricity(graph, sources):
            assert most == max(found[source].values()) and reached == len(found[source]) - 1


@given(case=cases(), data=st.data())
def test_diameters(case: Case, data: st.DataObject) -> None:
    theirs = case.networkx()
    source = data.draw(st.sampled_from(case.vertices), label="source")
    component = next(part for part in nx.strongly_connected_components(theirs) if source in part)
    lengths = dict(nx.all_pairs_shortest_path_length(theirs.subgraph(component)))
    with case.graph() as graph:
        ((one, other, distance),) = bf.diameter(graph, source)
        ((_, _, usual),) = bf.diameter(graph)
    assert distance == max(max(row.values()) for row in lengths.values())
    assert lengths[one][other] == distance
    diameters = {
        max(nx.eccentricity(theirs.subgraph(part)).values())
        for part in nx.strongly_connected_components(theirs)
    }
    assert usual in diameters


def within(quantile: float, lengths: Counter[int]) -> float:
    """Return the distance within which a share of the pairs of these distances lies."""
    left = quantile * lengths.total()
    for length in sorted(lengths):
        if left <= lengths[length]:
            return length - 1 + left / lengths[length]
        left -= lengths[length]
    return max(lengths, default=0)


@given(case=cases(), quantile=st.sampled_from([0.25, 0.9, 1.0]))
def test_effective_diameters(case: Case, quantile: float) -> None:
    rows = nx.all_pairs_shortest_path_length(case.networkx())
    lengths = Counter(length for _, row in rows for length in row.values() if length > 0)
    with case.graph() as graph:
        found = list(bf.effective_diameter(graph, quantile=quantile, register_bits=10))
    ((own, distance, pairs),) = found
    assert own == quantile and pairs == pytest.approx(lengths.total(), rel=0.2)
    # The counters of two vertices may be the same, and a small graph has few vertices.
    assert within(0.8 * quantile, lengths) <= distance + 0.05
    assert distance <= within(min(1, 1.2 * quantile), lengths) + 0.05


def test_the_effective_diameter_of_a_real_graph(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "g.brimful"
    succeed("import", data / "wiki-Vote.txt.gz", path, "--undirected", "--quiet")
    with bf.Graph.open(path) as graph:
        found = list(bf.effective_diameter(graph, register_bits=8))
        assert found == list(bf.effective_diameter(graph, register_bits=8, threads=1, budget="56M"))
        rows = bf.distances(graph, list(graph)[::20])
        lengths = Counter(row[2] for row in rows if row[2] > 0)
    assert found[0][1] == pytest.approx(within(0.9, lengths), abs=0.2)
    assert "from 0 to 1" in refuse(USAGE, "run", "effective_diameter", path, "--quantile", 2)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("wiki-Vote.txt.gz", ["--undirected"]),
        ("wiki-Vote.txt.gz", ["--index", "in,reverse"]),
        pytest.param("astro-ph.graph.gz", [], marks=pytest.mark.nightly),
    ],
)
def test_diameters_of_real_graphs(
    name: str, options: list[str], data: Path, tmp_path: Path
) -> None:
    import igraph

    path, edges = tmp_path / "g.brimful", tmp_path / "edges.csv"
    succeed("import", data / name, path, *options, "--quiet")
    with bf.Graph.open(path) as graph:
        ((one, other, distance),) = bf.diameter(graph)
        graph.export(edges, lossy=True)
        table = pyarrow.csv.read_csv(edges)
        theirs = igraph.Graph.TupleList(
            zip(*(column.to_pylist() for column in table.columns[:2]), strict=True),
            directed=graph.directed,
        )
        largest = theirs.connected_components(mode="strong").giant()
        assert distance == largest.diameter()
        assert dict(bf.bfs(graph, one))[other] == distance


def test_paths_that_are_too_long_are_refused(tmp_path: Path) -> None:
    graph = tmp_path / "chain.brimful"
    succeed("generate", "chain", graph, "--vertices", 66_000, "--quiet")
    with pytest.raises(bf.BrimfulError, match="more than 65534 edges"):
        bf.eccentricity(graph, 0)
    assert list(bf.eccentricity(graph, 1000)) == [(1000, 64_999, 64_999)]
    assert "source" in refuse(USAGE, "run", "distances", graph)
    assert "99999" in refuse(INPUT, "run", "diameter", graph, "--source", 99_999)
    assert "component of one source" in refuse(
        USAGE, "run", "diameter", graph, "--source", 1, "--source", 2
    )
