"""Components, cores, blocks, orders and colors against those of NetworkX.

The graphs are real ones, and small ones drawn by chance: they have multi-edges, self-loops,
isolated vertices, ids anywhere in 64 bits, one vertex, no edge, several components, either
direction.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import networkx as nx
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import brimful as bf
from command import succeed
from oracle import Edge
from strategies import Case, cases, graph_of, values


@given(case=cases())
def test_degrees(case: Case) -> None:
    leaving = Counter(source for source, _ in case.arcs)
    reaching = Counter(target for _, target in case.arcs)
    with case.graph() as graph:
        for direction, count in [("out", leaving), ("in", reaching), ("both", leaving + reaching)]:
            found = values(bf.degrees(graph, direction=direction))
            assert found == {vertex: count[vertex] for vertex in case.vertices}


@given(case=cases())
def test_strong_components(case: Case) -> None:
    groups = nx.strongly_connected_components(case.networkx())
    smallest = {vertex: min(group) for group in groups for vertex in group}
    with case.graph() as graph:
        for method in ("auto", "search", "coloring"):
            result = bf.scc(graph, method=method)
            assert values(result) == {vertex: smallest[vertex] for vertex in case.vertices}
            assert result.stats["converged"] is True


@pytest.mark.parametrize("step", [1, 99, 37])
def test_strong_components_of_pairs_in_a_row(step: int) -> None:
    """Pairs ascend, descend or are shuffled; self-loops do not stop peeling."""
    row = [place * step % 100 for place in range(100)]
    pairs = list(zip(row[::2], row[1::2], strict=True))
    back = [(other, one) for one, other in pairs]
    between = list(zip(row[1:-1:2], row[2::2], strict=True))
    tail = [edge for v in range(100, 300) for edge in ((v, v + 1), (v, v))]
    edges = [*pairs, *back, *((one, one) for one in row), *between, *tail]
    expected = {vertex: vertex for vertex in range(303)}
    expected |= {vertex: min(pair) for pair in pairs for vertex in pair}
    with graph_of(edges, vertices=303) as graph:
        for method in ("auto", "search", "coloring"):
            result = bf.scc(graph, method=method)
            assert values(result) == expected
            assert result.stats["supersteps"] < 500


def peeled(case: Case) -> dict[int, int]:
    """Return core numbers, removing one vertex of least degree at a time."""
    neighbors: dict[int, list[int]] = {vertex: [] for vertex in case.vertices}
    for source, target in case.edges:
        if source != target:
            neighbors[source].append(target)
            neighbors[target].append(source)
    left = {vertex: len(others) for vertex, others in neighbors.items()}
    cores, core = {}, 0
    while left:
        vertex = min(left, key=lambda vertex: left[vertex])
        core = max(core, left.pop(vertex))
        cores[vertex] = core
        for other in neighbors[vertex]:
            if other in left:
                left[other] -= 1
    return cores


@given(case=cases())
def test_core_numbers(case: Case) -> None:
    simple = {(min(edge), max(edge)) for edge in case.edges if edge[0] != edge[1]}
    theirs = nx.Graph(simple)
    theirs.add_nodes_from(case.vertices)
    with case.graph() as graph:
        for method in ("peeling", "rounds"):
            assert values(bf.kcore(graph, method=method)) == dict(sorted(peeled(case).items()))
    simplified = Case(sorted(simple), case.declared, undirected=True)
    assume(simplified.vertices == case.vertices)
    with simplified.graph() as graph:
        assert values(bf.kcore(graph)) == dict(sorted(nx.core_number(theirs).items()))


@given(case=cases())
def test_bipartite(case: Case) -> None:
    theirs = nx.Graph(case.networkx())
    sides: dict[int, int | None] = {}
    for component in nx.connected_components(theirs):
        part = theirs.subgraph(component)
        if not nx.is_bipartite(part):
            sides |= dict.fromkeys(component)
            continue
        colors = nx.bipartite.color(part)
        sides |= {vertex: int(colors[vertex] != colors[min(component)]) for vertex in component}
    with case.graph() as graph:
        for mode, store in [("sync", None), ("async", None), ("sync", "bytes")]:
            assert values(bf.bipartite(graph, mode=mode, store=store)) == dict(
                sorted(sides.items())
            )


@given(case=cases())
def test_topological_order(case: Case) -> None:
    theirs = case.networkx()
    with case.graph() as graph:
        if not nx.is_directed_acyclic_graph(theirs):
            with pytest.raises(bf.InputError, match="the graph has a cycle: vertex") as caught:
                bf.topological_order(graph)
            assert any(str(vertex) in str(caught.value) for vertex in case.vertices)
    # Of each pair of arcs one remains, and no cycle.
    falling = Case([edge for edge in case.edges if edge[0] < edge[1]], case.declared, False)
    if not falling.vertices:
        return
    arcs = nx.DiGraph(falling.networkx())
    levels: dict[int, int] = {}
    for vertex in nx.topological_sort(arcs):
        before = [levels[other] for other in arcs.predecessors(vertex)]
        levels[vertex] = 1 + max(before, default=-1)
    with falling.graph() as graph:
        assert values(bf.topological_order(graph)) == dict(sorted(levels.items()))


@given(case=cases(), data=st.data())
def test_spanning_forest(case: Case, data: st.DataObject) -> None:
    size = len(case.edges)
    drawn = st.lists(st.integers(-5, 9), min_size=size, max_size=size)
    weights = [float(weight) for weight in data.draw(drawn, label="weights")]
    theirs = nx.MultiGraph()
    theirs.add_nodes_from(case.vertices)
    lightest: dict[frozenset[int], float] = {}
    for edge, weight in zip(case.edges, weights, strict=True):
        theirs.add_edge(*edge, weight=weight)
        lightest[frozenset(edge)] = min(weight, lightest.get(frozenset(edge), math.inf))
    least = nx.minimum_spanning_tree(theirs).size(weight="weight")
    with case.graph(weights) as graph:
        for weighted in (False, True) if size else (False,):
            parents = values(bf.spanning_forest(graph, weighted=weighted))
            edges = [edge for edge in parents.items() if edge[0] != edge[1]]
            ours = nx.Graph(edges)
            ours.add_nodes_from(case.vertices)
            assert nx.is_forest(ours) and ours.number_of_edges() == len(edges)
            parts = map(frozenset, nx.connected_components(ours))
            assert set(parts) == set(map(frozenset, nx.connected_components(theirs)))
            if weighted:
                assert sum(lightest[frozenset(edge)] for edge in edges) == least


def undirected(case: Case) -> nx.MultiGraph:
    """Return a graph with an edge of its own for each edge, whatever its direction."""
    graph = nx.MultiGraph(case.edges)
    graph.add_nodes_from(case.vertices)
    return graph


@given(case=cases())
def test_bridges_and_articulation_points(case: Case) -> None:
    theirs = undirected(case)
    points = set(nx.articulation_points(nx.Graph(theirs)))
    # NetworkX ignores the edges that are parallel to one of a simple graph.
    known = {tuple(sorted(edge)) for edge in nx.bridges(nx.Graph(theirs))}
    single = {edge for edge in known if theirs.number_of_edges(*edge) == 1}
    with case.graph() as graph:
        assert list(bf.bridges(graph)) == sorted(single)
        found = values(bf.articulation_points(graph))
        assert found == {vertex: int(vertex in points) for vertex in case.vertices}


@given(case=cases())
def test_ktruss(case: Case) -> None:
    theirs = nx.Graph(case.edges)
    theirs.remove_edges_from(list(nx.selfloop_edges(theirs)))
    numbers: dict[Edge, int] = {}
    level = 2
    while (truss := nx.k_truss(theirs, level)).number_of_edges():
        numbers |= {(min(edge), max(edge)): level for edge in truss.edges}
        level += 1
    with case.graph() as graph:
        rows = list(bf.ktruss(graph))
    assert rows == sorted((*edge, number) for edge, number in numbers.items())


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["astro-ph.graph.gz", "wiki-Vote.txt.gz", "email-enron.jlg"])
def test_blocks_and_trusses_of_real_graphs(name: str, data: Path, tmp_path: Path) -> None:
    path = tmp_path / "g.brimful"
    succeed("import", data / name, path, "--undirected", "--quiet")
    with bf.Graph.open(path) as graph:
        graph.export(tmp_path / "edges.parquet")
        edges = pq.read_table(tmp_path / "edges.parquet")
        ends = zip(*(edges[name].to_pylist() for name in ("source", "target")), strict=True)
        theirs = nx.Graph([edge for edge in ends if edge[1] is not None])
        theirs.remove_edges_from(list(nx.selfloop_edges(theirs)))
        assert set(bf.bridges(graph)) == {tuple(sorted(edge)) for edge in nx.bridges(theirs)}
        points = bf.articulation_points(graph)
        assert {vertex for vertex, is_one in points.items() if is_one} == set(
            nx.articulation_points(theirs)
        )
        numbers = {(one, other): truss for one, other, truss in bf.ktruss(graph)}
    assert len(numbers) == theirs.number_of_edges()
    for level in (4, max(numbers.values())):
        truss = {edge for edge, number in numbers.items() if number >= level}
        assert truss == {tuple(sorted(edge)) for edge in nx.k_truss(theirs, level).edges}


def test_levels_before_a_cycle() -> None:
    with graph_of([(0, 1), (1, 2), (2, 1)]) as graph:
        limited = bf.topological_order(graph, max_supersteps=1)
        assert values(limited) == {0: 0, 1: None, 2: None}
        with pytest.raises(bf.InputError, match=r"vertex [12] is on one"):
            bf.topological_order(graph)
    with graph_of([(0, 1), (1, 2), (0, 2)]) as graph:
        assert values(bf.topological_order(graph, store="bytes")) == {0: 0, 1: 1, 2: 2}


@given(case=cases())
def test_maximal_independent_set(case: Case) -> None:
    with case.graph() as graph:
        members = values(bf.maximal_independent_set(graph))
        colors = values(bf.color(graph))
    assert members == {vertex: int(color == 0) for vertex, color in colors.items()}
    around: dict[int, set[int]] = {vertex: set() for vertex in case.vertices}
    for source, target in case.edges:
        around[source] |= {target} - {source}
        around[target] |= {source} - {target}
    for vertex, others in around.items():
        assert members[vertex] != any(members[other] for other in others)


def splitmix64(x: int) -> int:
    mask = 2**64 - 1
    z = (x + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
    return z ^ z >> 31


def first_fit(vertices: list[int], arcs: list[Edge]) -> dict[int, int]:
    """Return the colors that NetworkX gives in the order that `brimful.color` names."""
    arcs = [(source, target) for source, target in arcs if source != target]
    degrees = Counter(vertex for arc in arcs for vertex in arc)
    theirs = nx.Graph(arcs)
    theirs.add_nodes_from(vertices)

    def before(vertex: int) -> tuple[int, int]:
        return degrees[vertex].bit_length(), splitmix64(vertex - min(vertices))

    order = sorted(vertices, key=before, reverse=True)
    return dict(sorted(nx.greedy_color(theirs, strategy=lambda *_: order).items()))


@given(case=cases())
def test_coloring(case: Case) -> None:
    colors = first_fit(case.vertices, case.arcs)
    assert all(one == other or colors[one] != colors[other] for one, other in case.arcs)
    with case.graph() as graph:
        result = bf.color(graph)
        assert values(result) == colors
        assert result.stats["converged"] is True


def test_coloring_of_votes(votes: Path) -> None:
    with bf.Graph.open(votes) as graph:
        arcs = list(nx.DiGraph(graph.to_networkx()).edges)
        assert len(arcs) == graph.arcs
        assert values(bf.color(graph)) == first_fit(graph.vertex_ids().to_pylist(), arcs)


def test_no_edge() -> None:
    with graph_of([], vertices=3) as graph:
        assert values(bf.color(graph)) == {0: 0, 1: 0, 2: 0}
        assert values(bf.degrees(graph)) == {0: 0, 1: 0, 2: 0}
        assert values(bf.kcore(graph)) == {0: 0, 1: 0, 2: 0}
        assert values(bf.hits(graph)) == {0: 0.0, 1: 0.0, 2: 0.0}
        assert values(bf.scc(graph)) == {0: 0, 1: 1, 2: 2}
        assert values(bf.bfs(graph, 1)) == {0: None, 1: 0, 2: None}
        assert values(bf.sssp(graph, 1)) == {0: None, 1: 0.0, 2: None}
        assert values(bf.count_paths(graph, 1)) == {0: 0, 1: 1, 2: 0}
        for method in ("power", "delta"):
            level = dict.fromkeys(range(3), pytest.approx(1 / 3))
            assert values(bf.pagerank(graph, method=method)) == level
            found = values(bf.pagerank(graph, source=1, method=method))
            assert found == {0: 0.0, 1: 1.0, 2: 0.0}


def test_no_vertex() -> None:
    with pytest.raises(bf.InputError, match="contains no edges"):
        graph_of([])


def test_ids_at_both_ends_of_64_bits() -> None:
    low, high = -(2**63), 2**63 - 1
    with graph_of([(high, low), (low, 7), (7, high), (9, high)]) as graph:
        assert values(bf.bfs(graph, high)) == {low: 1, 7: 2, 9: None, high: 0}
        with pytest.raises(bf.UsageError, match="span all of them"):
            bf.bfs(graph, high, values="parent")
        assert values(bf.scc(graph)) == {low: low, 7: low, 9: 9, high: low}
        assert values(bf.connected_components(graph)) == dict.fromkeys([low, 7, 9, high], low)
    far = 9 * 10**18
    with graph_of([(-far, 5), (7, far), (8, 7)], vertices=3) as graph:
        labels = {-far: -far, 0: 0, 1: 1, 2: 2, 5: -far, 7: 7, 8: 7, far: 7}
        assert values(bf.connected_components(graph)) == labels


def test_votes_agree_with_networkx(votes: Path) -> None:
    with bf.Graph.open(votes) as graph:
        theirs = graph.to_networkx()
        groups = list(nx.strongly_connected_components(theirs))
        assert max(len(group) for group in groups) == 1300
        smallest = {vertex: min(group) for group in groups for vertex in group}
        assert values(bf.scc(graph)) == dict(sorted(smallest.items()))
        hubs, authorities = nx.hits(nx.DiGraph(theirs), tol=1e-14)
        for kind, expected in [("hub", hubs), ("authority", authorities)]:
            found = values(bf.hits(graph, values=kind, tolerance=1e-13))
            assert found == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_core_numbers_of_votes(votes: Path, tmp_path: Path, data: Path) -> None:
    graph = tmp_path / "simple.brimful"
    simple = ["--undirected", "--self-loops", "drop", "--duplicates", "drop"]
    succeed("import", data / "wiki-Vote.txt.gz", graph, *simple, "--quiet")
    with bf.Graph.open(votes) as given:
        theirs = nx.Graph(given.to_networkx().to_undirected())
    with bf.Graph.open(graph) as ours:
        assert values(bf.kcore(ours)) == dict(sorted(nx.core_number(theirs).items()))


@given(case=cases())
def test_clustering_and_triangles(case: Case) -> None:
    joined = {(one, other) for one, other in case.arcs if one != other}
    simple = nx.Graph(list(joined))
    simple.add_nodes_from(case.vertices)
    coefficients = {}
    for vertex in case.vertices:
        around = set(simple[vertex])
        arcs = sum(1 for one, other in joined if one in around and other in around)
        pairs = len(around) * (len(around) - 1)
        coefficients[vertex] = arcs / pairs if pairs else 0.0
    with case.graph() as graph:
        assert values(bf.clustering(graph)) == coefficients
        assert values(bf.triangles(graph)) == nx.triangles(simple)
