"""Every algorithm against somebody else's, on small graphs drawn by chance and on real ones.

The graphs have multi-edges, self-loops, isolated vertices, ids anywhere in 64 bits, one vertex, no
edge, several components, either direction.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import igraph
import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import brimful as bf
from command import succeed
from oracle import Edge
from strategies import Case, cases, graph_of, values

few = settings(max_examples=60, deadline=None)


def source_of(case: Case, data: st.DataObject) -> int:
    return data.draw(st.sampled_from(case.vertices), label="source")


def sources_of(case: Case, data: st.DataObject) -> list[int]:
    some = st.lists(st.sampled_from(case.vertices), min_size=1, max_size=4)
    return data.draw(some, label="sources")


def levels_of(case: Case, sources: list[int]) -> dict[int, int]:
    ways = nx.multi_source_dijkstra_path_length(case.networkx(), set(sources), weight=lambda *_: 1)
    return dict(ways)


@few
@given(case=cases(), data=st.data())
def test_bfs(case: Case, data: st.DataObject) -> None:
    sources = sources_of(case, data)
    levels = levels_of(case, sources)
    with case.graph() as graph:
        assert values(bf.bfs(graph, sources)) == {v: levels.get(v) for v in case.vertices}
        parents = values(bf.bfs(graph, sources, values="parent"))
        limited = values(bf.bfs(graph, sources, max_supersteps=2))
    nearer: dict[int, int] = {source: source for source in sources}
    for parent, child in sorted(case.arcs):
        if parent in levels and levels[child] == levels[parent] + 1:
            nearer.setdefault(child, parent)
    assert parents == {vertex: nearer.get(vertex) for vertex in case.vertices}
    near = {vertex: level for vertex, level in levels.items() if level <= 2}
    assert limited == {vertex: near.get(vertex) for vertex in case.vertices}


@few
@given(case=cases(), data=st.data())
def test_sssp(case: Case, data: st.DataObject) -> None:
    sources = sources_of(case, data)
    size = len(case.edges)
    # Quarters add up without rounding.
    quarters = st.lists(st.integers(0, 40), min_size=size, max_size=size)
    weights = [number / 4 for number in data.draw(quarters, label="weights in quarters")]
    reach = nx.multi_source_dijkstra_path_length(case.networkx(weights), set(sources))
    hops = levels_of(case, sources)
    with case.graph(weights) as graph:
        assert values(bf.sssp(graph, sources)) == {v: hops.get(v) for v in case.vertices}
        if size:
            result = bf.sssp(graph, sources, weighted=True)
            assert values(result) == {v: reach.get(v) for v in case.vertices}


@few
@given(case=cases(), data=st.data(), length=st.integers(0, 5))
def test_count_paths(case: Case, data: st.DataObject, length: int) -> None:
    source = source_of(case, data)
    arcs = Counter(case.arcs)
    levels = nx.single_source_shortest_path_length(case.networkx(), source)
    shortest = Counter({source: 1})
    for vertex in sorted(levels, key=lambda vertex: levels[vertex]):
        for (parent, child), count in arcs.items():
            if parent == vertex and levels[child] == levels[vertex] + 1:
                shortest[child] += count * shortest[vertex]
    walks = Counter({source: 1})
    for _ in range(length):
        step: Counter[int] = Counter()
        for (parent, child), count in arcs.items():
            step[child] += count * walks[parent]
        walks = step
    with case.graph() as graph:
        found = values(bf.count_paths(graph, source))
        assert found == {vertex: shortest[vertex] for vertex in case.vertices}
        found = values(bf.count_paths(graph, source, length=length))
        assert found == {vertex: walks[vertex] for vertex in case.vertices}


def test_too_many_paths_are_an_error() -> None:
    with graph_of([(0, 0), (0, 0)]) as graph:
        assert values(bf.count_paths(graph, 0, length=63)) == {0: 2**63}
        with pytest.raises(bf.ProgramError, match="more than 2\\^64 - 2 paths"):
            bf.count_paths(graph, 0, length=64)


@few
@given(case=cases())
def test_degrees(case: Case) -> None:
    leaving = Counter(source for source, _ in case.arcs)
    reaching = Counter(target for _, target in case.arcs)
    with case.graph() as graph:
        for direction, count in [("out", leaving), ("in", reaching), ("both", leaving + reaching)]:
            found = values(bf.degrees(graph, direction=direction))
            assert found == {vertex: count[vertex] for vertex in case.vertices}


@few
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


@few
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


def dense_hits(matrix: np.ndarray, supersteps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return hubs and authorities after so many supersteps."""
    n = len(matrix)
    hubs, authorities = np.full(n, 1 / n), np.zeros(n)
    for superstep in range(supersteps):
        if superstep % 2 == 0:
            authorities = matrix.T @ hubs
            authorities /= authorities.sum() or 1.0
        else:
            hubs = matrix @ authorities
            hubs /= hubs.sum() or 1.0
    return hubs, authorities


@few
@given(case=cases(), supersteps=st.integers(1, 12), weighted=st.booleans())
def test_hits(case: Case, supersteps: int, weighted: bool) -> None:
    assume(case.edges or not weighted)
    weights = [1.0 + place % 7 for place in range(len(case.edges))]
    edges = case.networkx(weights if weighted else None)
    matrix = nx.to_numpy_array(edges, nodelist=case.vertices)
    hubs, authorities = dense_hits(matrix, supersteps)
    with case.graph(weights) as graph:
        for kind, expected in [("hub", hubs), ("authority", authorities)]:
            result = bf.hits(
                graph, values=kind, tolerance=0, max_supersteps=supersteps, weighted=weighted
            )
            if case.edges or supersteps > 1 or kind == "authority":
                assert list(values(result).values()) == pytest.approx(expected.tolist(), abs=1e-12)


def test_hits_stops_at_its_tolerance() -> None:
    edges = [(0, 1), (0, 2), (1, 2), (2, 0), (3, 2), (3, 1), (4, 3)]
    with graph_of(edges) as graph:
        result = bf.hits(graph, tolerance=1e-4)
    matrix = nx.to_numpy_array(nx.DiGraph(edges), nodelist=range(5))

    def moved(superstep: int) -> float:
        side = superstep % 2
        # Superstep s reads the scores of superstep s - 1.
        now, before = dense_hits(matrix, superstep - 1), dense_hits(matrix, superstep - 3)
        return float(np.abs(now[1 - side] - before[1 - side]).sum())

    steps = result.stats["supersteps"]
    assert result.stats["converged"] is True
    assert moved(steps) <= 1e-4 < moved(steps - 1)


@few
@given(case=cases())
def test_hits_of_networkx(case: Case) -> None:
    assume(case.edges)
    theirs = case.networkx()
    strengths = np.linalg.svd(nx.to_numpy_array(theirs), compute_uv=False)
    # NetworkX needs two singular values; where the greatest is not alone, it gives any vector.
    assume(len(strengths) > 1 and strengths[1] < 0.9 * strengths[0])
    hubs, authorities = nx.hits(theirs, max_iter=1000, tol=1e-14)
    with case.graph() as graph:
        for kind, expected in [("hub", hubs), ("authority", authorities)]:
            result = bf.hits(graph, values=kind, tolerance=1e-14, max_supersteps=2000)
            found = values(result)
            assert found == pytest.approx(expected, abs=1e-7)
            assert result.stats["converged"] is True
            assert result.column == kind


@few
@given(case=cases(), data=st.data(), method=st.sampled_from(["power", "delta"]))
def test_personalized_pagerank(case: Case, data: st.DataObject, method: str) -> None:
    sources = sources_of(case, data)
    personal = dict.fromkeys(sources, 1)
    theirs = nx.pagerank(
        case.networkx(), personalization=personal, tol=1e-14 / len(case.vertices), max_iter=2000
    )
    with case.graph() as graph:
        for tolerance in (1e-3, 1e-13):
            result = bf.pagerank(
                graph, source=sources, method=method, tolerance=tolerance, max_supersteps=2000
            )
            found = values(result)
            error = sum(abs(score - theirs[vertex]) for vertex, score in found.items())
            assert error <= tolerance * 0.85 / 0.15 + 1e-11
            assert sum(found.values()) == pytest.approx(1.0, rel=1e-12)


@few
@given(case=cases(), data=st.data(), method=st.sampled_from(["power", "delta"]))
def test_pagerank_personalized_by_shares(case: Case, data: st.DataObject, method: str) -> None:
    shares = st.dictionaries(st.sampled_from(case.vertices), st.integers(0, 5), min_size=1)
    personal = data.draw(shares, label="shares")
    assume(any(personal.values()))
    theirs = nx.pagerank(
        case.networkx(), personalization=personal, tol=1e-14 / len(case.vertices), max_iter=2000
    )
    halves = {vertex: share / 2 for vertex, share in personal.items()}
    with case.graph() as graph:
        for store in (None, "bytes"):
            result = bf.pagerank(
                graph,
                source=halves,
                method=method,
                tolerance=1e-13,
                max_supersteps=2000,
                store=store,
            )
            assert values(result) == pytest.approx(theirs, abs=1e-11)


@few
@given(case=cases(), data=st.data())
def test_eigenvector(case: Case, data: st.DataObject) -> None:
    size = len(case.edges)
    drawn = st.lists(st.integers(0, 9), min_size=size, max_size=size)
    weights = [float(weight) for weight in data.draw(drawn, label="weights")]
    with case.graph(weights) as graph:
        for weighted in (False, True) if size else (False,):
            edges = case.networkx(weights if weighted else None)
            matrix = nx.to_numpy_array(edges, nodelist=case.vertices).T
            entries = np.full(len(case.vertices), 1 / len(case.vertices))
            for supersteps in range(1, 6):
                entries = matrix @ entries + entries
                entries /= np.linalg.norm(entries)
                result = bf.eigenvector(
                    graph, tolerance=0, max_supersteps=supersteps, weighted=weighted
                )
                assert list(values(result).values()) == pytest.approx(entries.tolist(), abs=1e-12)


@few
@given(case=cases(), data=st.data())
def test_katz(case: Case, data: st.DataObject) -> None:
    matrix = nx.to_numpy_array(case.networkx(), nodelist=case.vertices)
    largest = max(abs(np.linalg.eigvals(matrix)))
    alpha = data.draw(st.floats(0.01, 0.9), label="alpha") / max(largest, 1.0)
    n = len(case.vertices)
    walks = np.linalg.solve(np.eye(n) - alpha * matrix.T, np.full(n, 2.5))
    with case.graph() as graph:
        for variant, whole in [("normalized", np.linalg.norm(walks)), ("unnormalized", 1.0)]:
            result = bf.katz(graph, alpha=alpha, beta=2.5, variant=variant, tolerance=1e-13)
            assert result.stats["converged"] is True
            found = list(values(result).values())
            assert found == pytest.approx((walks / whole).tolist(), rel=1e-6)


def test_katz_beyond_the_greatest_eigenvalue() -> None:
    with graph_of([(0, 1), (1, 0), (1, 2)], undirected=True) as graph:
        assert bf.katz(graph, alpha=0.6, max_supersteps=100).stats["converged"] is False
        with pytest.raises(bf.UsageError, match="below 1 / the greatest eigenvalue"):
            bf.katz(graph, alpha=50.0)


@few
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


@few
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


@few
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


@few
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


@few
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


@pytest.mark.parametrize(
    "name",
    [
        "astro-ph.graph.gz",
        pytest.param("wiki-Vote.txt.gz", marks=pytest.mark.nightly),
        pytest.param("email-enron.jlg", marks=pytest.mark.nightly),
    ],
)
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


@few
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


@few
@given(case=cases())
def test_betweenness(case: Case) -> None:
    edges = {tuple(sorted(edge)) if case.undirected else edge for edge in case.edges}
    simple = Case(sorted((edge[0], edge[1]) for edge in edges), case.declared, case.undirected)
    arcs = nx.DiGraph(simple.networkx())
    n = len(simple.vertices)
    with simple.graph() as graph:
        result = values(bf.betweenness(graph))
        whole = values(bf.betweenness(graph, variant="unnormalized"))
        some = values(bf.betweenness(graph, samples=n))
        sampled = values(bf.betweenness(graph, samples=1))
    assert result == pytest.approx(nx.betweenness_centrality(arcs), abs=1e-12)
    assert some == result
    assert all(value >= 0 for value in sampled.values())
    theirs = nx.betweenness_centrality(arcs, normalized=False)
    each = 2 if case.undirected else 1
    assert whole == pytest.approx({v: value / each for v, value in theirs.items()}, abs=1e-9)


@few
@given(case=cases())
def test_edge_betweenness(case: Case) -> None:
    edges = {tuple(sorted(edge)) if case.undirected else edge for edge in case.edges}
    simple = Case(sorted((edge[0], edge[1]) for edge in edges), case.declared, case.undirected)
    theirs = (nx.Graph if case.undirected else nx.DiGraph)(simple.networkx())

    def by_ends(found: dict[Edge, float]) -> dict[Edge, float]:
        ordered = {(min(e), max(e)) if case.undirected else e: at for e, at in found.items()}
        return {edge: value for edge, value in ordered.items() if edge[0] != edge[1]}

    with simple.graph() as graph:
        rows = list(bf.edge_betweenness(graph))
        whole = list(bf.edge_betweenness(graph, variant="unnormalized"))
        sampled = list(bf.edge_betweenness(graph, samples=len(case.vertices)))
    expected = by_ends(nx.edge_betweenness_centrality(theirs))
    assert {(a, b): value for a, b, value in rows} == pytest.approx(expected, abs=1e-12)
    assert [row[:2] for row in rows] == sorted(expected) and sampled == rows
    expected = by_ends(nx.edge_betweenness_centrality(theirs, normalized=False))
    assert {(a, b): value for a, b, value in whole} == pytest.approx(expected, abs=1e-9)


def test_edge_betweenness_of_parallel_edges_adds_up() -> None:
    # Of three paths from 0 to 2, two take the double edge.
    with graph_of([(0, 1), (0, 1), (1, 2), (0, 3), (3, 2), (2, 2)]) as graph:
        rows = list(bf.edge_betweenness(graph, variant="unnormalized"))
    expected = [(0, 1, 1 + 2 / 3), (0, 3, 1 + 1 / 3), (1, 2, 1 + 2 / 3), (3, 2, 1 + 1 / 3)]
    assert [row[:2] for row in rows] == [row[:2] for row in expected]
    assert [row[2] for row in rows] == pytest.approx([row[2] for row in expected])


def test_sampled_betweenness_is_near(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "g.brimful"
    succeed("import", data / "wiki-Vote.txt.gz", path, "--quiet")
    with bf.Graph.open(path) as graph:
        theirs = igraph.Graph.from_networkx(nx.DiGraph(graph.to_networkx()))
        pairs = (graph.vertices - 1) * (graph.vertices - 2)
        found = values(bf.betweenness(graph, samples=512))
        for vertex, exact in zip(theirs.vs["_nx_name"], theirs.betweenness(), strict=True):
            assert abs(found[vertex] - exact / pairs) < 0.01
        with pytest.raises(bf.UsageError, match="samples must be at least 1"):
            bf.betweenness(graph, samples=0)


@settings(few, derandomize=True)
@given(case=cases())
def test_closeness_and_harmonic(case: Case) -> None:
    """Small numbers of vertices are counted nearly exactly, unless two of them share a register.

    Ids decide that, so the cases are the same in every run.
    """
    plain = nx.DiGraph(case.networkx())
    near, inverse = nx.closeness_centrality(plain), nx.harmonic_centrality(plain)
    with case.graph() as graph:
        found, sums = values(bf.closeness(graph, register_bits=10)), values(bf.harmonic(graph))
    assert found == pytest.approx(near, rel=0.15)
    assert sums == pytest.approx(inverse, rel=0.8)


@pytest.mark.parametrize(
    "bits", [6, *(pytest.param(one, marks=pytest.mark.nightly) for one in (8, 10))]
)
def test_balls_are_within_their_error(data: Path, tmp_path: Path, bits: int) -> None:
    path = tmp_path / "g.brimful"
    succeed("import", data / "wiki-Vote.txt.gz", path, "--quiet")
    with bf.Graph.open(path) as graph:
        theirs = nx.DiGraph(graph.to_networkx())
        some = [vertex for vertex in sorted(theirs) if theirs.in_degree(vertex)][::200]
        exact = nx.harmonic_centrality(theirs, nbunch=some)
        nearness = {vertex: nx.closeness_centrality(theirs, vertex) for vertex in some}
        found = bf.harmonic(graph, register_bits=bits)
        near = bf.closeness(graph, register_bits=bits)
        error = 1.04 / math.sqrt(2**bits)
        for result, wanted in [(found, exact), (near, nearness)]:
            errors = [result[vertex] / wanted[vertex] - 1 for vertex in some]
            assert math.sqrt(sum(one**2 for one in errors) / len(errors)) < 1.5 * error
            assert abs(sum(errors) / len(errors)) < 1.5 * error
        assert found.stats["supersteps"] > 3
        with pytest.raises(bf.UsageError, match="6, 8 or 10, not 7"):
            bf.harmonic(graph, register_bits=7)  # type: ignore[arg-type]


@settings(max_examples=20, deadline=None)
@given(case=cases())
def test_pagerank_by_increments(case: Case) -> None:
    with case.graph() as graph:
        for variant, n in [("normalized", 1), ("unnormalized", len(case.vertices))]:
            exact = values(
                bf.pagerank(graph, variant=variant, tolerance=1e-15, max_supersteps=1000)
            )
            for tolerance in (1e-2, 1e-6):
                result = bf.pagerank(
                    graph, variant=variant, method="delta", tolerance=tolerance, max_supersteps=1000
                )
                error = sum(abs(value - exact[v]) for v, value in values(result).items())
                assert error <= n * (tolerance * 0.85 / 0.15 + 1e-12)
                assert result.stats["converged"] is True
                assert result.stats["variant"] == variant
            if variant == "normalized":
                # Without a tolerance they go on to the last bits.
                options = {"method": "delta", "tolerance": 0}
                result = bf.pagerank(graph, max_supersteps=400, **options)
                assert values(result) == pytest.approx(exact, abs=1e-13)
                for supersteps in (0, 1, 2):
                    result = bf.pagerank(graph, max_supersteps=supersteps, **options)
                    assert sum(values(result).values()) == pytest.approx(1.0, rel=1e-12)
                    assert result.stats["supersteps"] <= supersteps


def test_increments_follow_weights_and_may_be_narrow() -> None:
    edges = [(one, (one * step + 1) % 50) for one in range(50) for step in (3, 7, 11)]
    weights = [1.0 + place % 9 for place in range(len(edges))]
    with graph_of(edges, weights=weights) as graph:
        options = {"weighted": True, "tolerance": 1e-12, "max_supersteps": 1000}
        exact = values(bf.pagerank(graph, **options))
        wide = values(bf.pagerank(graph, method="delta", **options))
        narrow = values(bf.pagerank(graph, method="delta", precision="f32", **options))
    assert wide == pytest.approx(exact, abs=1e-12)
    assert narrow != wide and narrow == pytest.approx(exact, abs=1e-7)


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


@few
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
    with pytest.raises(bf.InputError, match="there is no edge"):
        graph_of([])


def test_ids_at_both_ends_of_64_bits() -> None:
    low, high = -(2**63), 2**63 - 1
    with graph_of([(high, low), (low, 7), (7, high), (9, high)]) as graph:
        assert values(bf.bfs(graph, high)) == {low: 1, 7: 2, 9: None, high: 0}
        with pytest.raises(bf.UsageError, match="take all 2\\^64"):
            bf.bfs(graph, high, values="parent")
        assert values(bf.scc(graph)) == {low: low, 7: low, 9: 9, high: low}
        assert values(bf.connected_components(graph)) == dict.fromkeys([low, 7, 9, high], low)
    far = 9 * 10**18
    with graph_of([(-far, 5), (7, far), (8, 7)], vertices=3) as graph:
        labels = {-far: -far, 0: 0, 1: 1, 2: 2, 5: -far, 7: 7, 8: 7, far: 7}
        assert values(bf.connected_components(graph)) == labels


@pytest.fixture(scope="module")
def votes(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    graph = tmp_path_factory.mktemp("votes") / "votes.brimful"
    succeed("import", data / "wiki-Vote.txt.gz", graph, "--quiet")
    return graph


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


def test_increments_signal_less_than_power_steps_of_the_same_accuracy(slashdot: Path) -> None:
    with bf.Graph.open(slashdot) as graph:
        exact = np.array(
            list(values(bf.pagerank(graph, tolerance=1e-14, max_supersteps=500)).values())
        )

        def run(tolerance: float, steps: int, method: str = "power") -> tuple[float, int]:
            result = bf.pagerank(graph, tolerance=tolerance, max_supersteps=steps, method=method)
            found = np.array(list(values(result).values()))
            return float(np.abs(found - exact).sum()), result.stats["signals"]

        error, signals = run(1e-2, 500, "delta")
        assert error <= 1e-2 * 0.85 / 0.15
        power_error, power_signals = run(0, math.ceil(signals / graph.arcs), "power")
    # As many signals by power steps leave a larger error.
    assert power_signals >= signals and error < power_error


@few
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
