"""Centralities against NetworkX, igraph and dense matrices.

The graphs are real ones, and small ones drawn by chance.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator
from pathlib import Path

import igraph
import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import brimful as bf
from nightly import with_nightly
from oracle import Edge
from strategies import Case, cases, graph_of, sources_of, values


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
        with pytest.raises(bf.UsageError, match="below 1 / the largest eigenvalue"):
            bf.katz(graph, alpha=50.0)
        with pytest.raises(
            bf.UsageError, match=r"with alpha 0\.1 and beta 1.*smaller alpha or beta"
        ):
            bf.katz(graph, beta=1e300)


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


@pytest.fixture(scope="module")
def votes(data: Path) -> Iterator[bf.Graph]:
    """The votes among the first users: exact values of all take long."""
    with gzip.open(data / "wiki-Vote.txt.gz", "rt") as lines:
        arcs = [tuple(map(int, line.split())) for line in lines if not line.startswith("#")]
    with graph_of([(one, other) for one, other in arcs if max(one, other) < 2500]) as graph:
        yield graph


def test_sampled_betweenness_is_near(votes: bf.Graph) -> None:
    theirs = igraph.Graph.from_networkx(nx.DiGraph(votes.to_networkx()))
    pairs = (votes.vertices - 1) * (votes.vertices - 2)
    found = values(bf.betweenness(votes, samples=512))
    for vertex, exact in zip(theirs.vs["_nx_name"], theirs.betweenness(), strict=True):
        assert abs(found[vertex] - exact / pairs) < 0.01
    with pytest.raises(bf.UsageError, match="samples must be at least 1"):
        bf.betweenness(votes, samples=0)


@settings(derandomize=True)
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


def test_large_counters_of_a_small_graph_take_little_memory() -> None:
    """Each thread had buffers for 65,536 vertices, of 1 KiB each."""
    with bf.Graph.from_arrow(pa.table({"source": [0, 1], "target": [1, 2]})) as graph:
        found = bf.harmonic(graph, register_bits=10, threads=16, budget="80M")
        assert dict(found) == pytest.approx({0: 0, 1: 1, 2: 1.5}, rel=0.1)


@pytest.mark.parametrize("bits", with_nightly([6], [8, 10]))
def test_balls_are_within_their_error(votes: bf.Graph, bits: int) -> None:
    theirs = nx.DiGraph(votes.to_networkx())
    some = [vertex for vertex in sorted(theirs) if theirs.in_degree(vertex)][::100]
    exact = nx.harmonic_centrality(theirs, nbunch=some)
    nearness = {vertex: nx.closeness_centrality(theirs, vertex) for vertex in some}
    found = bf.harmonic(votes, register_bits=bits)
    near = bf.closeness(votes, register_bits=bits)
    error = 1.04 / math.sqrt(2**bits)
    for result, wanted in [(found, exact), (near, nearness)]:
        errors = [result[vertex] / wanted[vertex] - 1 for vertex in some]
        assert math.sqrt(sum(one**2 for one in errors) / len(errors)) < 1.5 * error
        assert abs(sum(errors) / len(errors)) < 1.5 * error
    assert found.stats["supersteps"] > 3
    with pytest.raises(bf.UsageError, match="6, 8 or 10, not 7"):
        bf.harmonic(votes, register_bits=7)  # type: ignore[arg-type]


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
