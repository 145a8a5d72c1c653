"""PageRank and HITS with weights of every size: exact, or refused; never wrong."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import brimful as bf
from command import INPUT, refuse
from strategies import graph_of, values

Weighted = tuple[int, int, float]
DAMPING = Fraction(0.85)
STEPS = 12


def _graph(edges: list[Weighted]) -> bf.Graph:
    return graph_of([edge[:2] for edge in edges], weights=[weight for *_, weight in edges])


def _exact(edges: list[Weighted]) -> dict[int, float]:
    """Return the normalized scores after `STEPS` power steps, worked out in fractions."""
    ids = sorted({end for edge in edges for end in edge[:2]})
    out = dict.fromkeys(ids, Fraction(0))
    for source, _, weight in edges:
        out[source] += Fraction(weight)
    count = len(ids)
    scores = dict.fromkeys(ids, Fraction(1, count))
    for _ in range(STEPS):
        sinks = sum(score for vertex, score in scores.items() if out[vertex] == 0)
        new = dict.fromkeys(ids, (1 - DAMPING) / count + DAMPING * sinks / count)
        for source, target, weight in edges:
            if weight:
                new[target] += DAMPING * scores[source] * Fraction(weight) / out[source]
        # Fractions would grow without end.
        scores = {vertex: Fraction(round(score * 2**200), 2**200) for vertex, score in new.items()}
    return {vertex: float(score) for vertex, score in scores.items()}


# At most three sizes in a graph; weights too far apart are refused.
SIZES = [5e-324, 1e-320, 2.2e-308, 1e-300, 1e-40, 0.3, 1.0, 7.0, 1e30, 1e300, 8.9e307, 1.7e308]


@st.composite
def _edges(draw: st.DrawFn) -> list[Weighted]:
    sizes = draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=3))
    weight = st.sampled_from([0.0, *sizes])
    vertex = st.integers(0, 6)
    return draw(st.lists(st.tuples(vertex, vertex, weight), min_size=1, max_size=14))


@given(
    edges=_edges(),
    precision=st.sampled_from(["f64", "f32"]),
    method=st.sampled_from(["power", "delta"]),
)
@example(edges=[(0, 1, 1e-320), (1, 0, 5e-324), (0, 2, 5e-324)], precision="f64", method="power")
@example(edges=[(0, 1, 1.7e308), (1, 0, 8.9e307)], precision="f64", method="delta")
@example(edges=[(0, 1, 1e308), (0, 2, 1e308), (1, 0, 1.0)], precision="f64", method="power")
def test_scores_are_exact_or_refused(edges: list[Weighted], precision: str, method: str) -> None:
    out: dict[int, Fraction] = {}
    for source, _, weight in edges:
        out[source] = out.get(source, Fraction(0)) + Fraction(weight)
    positive = [total for total in out.values() if total]
    apart = max(positive) / min(positive) if positive else 1
    with _graph(edges) as graph:
        limits = {"tolerance": 0.0, "max_supersteps": STEPS} if method == "power" else {}
        if method == "delta":
            limits = {"tolerance": 1e-13, "max_supersteps": 10_000}
        try:
            result = bf.pagerank(graph, weighted=True, precision=precision, method=method, **limits)
        except bf.InputError:
            too_large = max(positive) > Fraction(1.7e308)
            usual = precision == "f64" and apart < 2**1800
            assert too_large or not usual
            return
        scores = values(result)
    assert abs(sum(scores.values()) - 1) < 1e-6
    if method == "power":
        expected = _exact(edges)
        accuracy = 1e-12 if precision == "f64" else 1e-5
        assert scores == pytest.approx(expected, rel=accuracy, abs=1e-15)


@pytest.mark.parametrize("weight", [5e-324, 2.0**-1000, 2.0**1000])
def test_equal_weights_of_any_size_give_the_bits_of_ones(weight: float) -> None:
    ends = [(0, 1), (0, 2), (1, 2), (2, 0), (3, 0), (3, 4)]
    found = []
    for each in (1.0, weight):
        with _graph([(*end, each) for end in ends]) as graph:
            found.append(
                [values(bf.pagerank(graph, weighted=True)), values(bf.hits(graph, weighted=True))]
            )
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "options", [{}, {"method": "delta"}, {"precision": "f32"}, {"store": "bytes"}]
)
def test_weights_that_cannot_be_ranked_are_refused(options: dict[str, str]) -> None:
    for edges, what in [
        ([(0, 1, -3.0), (0, 2, 4.0)], "at least 0; the edge from 0 to 1 has -3, and the smallest"),
        ([(7, 1, 1.7e308), (7, 2, 1.7e308)], "leave vertex 7 add up to more than"),
        ([(0, 1, 5e-324), (1, 0, 1.7e308)], "too far apart"),
    ]:
        with _graph(edges) as graph, pytest.raises(bf.InputError, match=what):
            bf.pagerank(graph, weighted=True, **options)  # type: ignore[arg-type]


def test_the_command_refuses_negative_weights(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text("source,target,weight\n1,2,-3\n1,3,4\n2,1,1\n")
    for algorithm in ("pagerank", "hits"):
        assert "at least 0" in refuse(INPUT, "run", algorithm, path, "--weighted", "--quiet")
    assert "at least 0" in refuse(
        INPUT, "run", "sssp", path, "--weighted", "--source", 1, "--quiet"
    )


def test_weights_of_zero_make_a_sink() -> None:
    with _graph([(0, 1, 0.0), (1, 0, 1.0)]) as graph:
        scores = values(bf.pagerank(graph, weighted=True, tolerance=0.0, max_supersteps=STEPS))
    assert scores == pytest.approx(_exact([(0, 1, 0.0), (1, 0, 1.0)]), rel=1e-12)


SCALED = {
    "louvain": lambda graph: bf.louvain(graph, weighted=True),
    "leiden": lambda graph: bf.leiden(graph, weighted=True),
    "leiden_hierarchy": lambda graph: bf.leiden_hierarchy(graph, weighted=True),
    "random_walks": lambda graph: bf.random_walks(graph, weighted=True, walks=3, length=5),
    "node2vec": lambda graph: bf.random_walks(graph, weighted=True, length=5, p=0.5, q=2.0),
    "conductance": lambda graph: bf.conductance(bf.louvain(graph), weighted=True),
}


@pytest.mark.parametrize("undirected", [False, True])
def test_only_ratios_of_weights_matter(undirected: bool) -> None:
    edges = [(a, b, d["weight"]) for a, b, d in nx.karate_club_graph().edges(data=True)]
    pairs, weights = [edge[:2] for edge in edges], [edge[2] for edge in edges]

    def found(scale: float) -> dict[str, object]:
        scaled = [weight * scale for weight in weights]
        with graph_of(pairs, weights=scaled, undirected=undirected) as graph:
            tables = {name: run(graph).to_arrow() for name, run in SCALED.items()}
            return {**tables, "modularity": bf.modularity(bf.louvain(graph), weighted=True)}

    expected = found(1.0)
    for scale in (2.0**1020, 2.0**-1070):
        assert found(scale) == expected


def test_eigenvectors_do_not_depend_on_the_size_of_weights() -> None:
    edges = [(a, b, d["weight"]) for a, b, d in nx.karate_club_graph().edges(data=True)]

    def found(scale: float) -> dict[int, float]:
        scaled = [edge[2] * scale for edge in edges]
        with graph_of([edge[:2] for edge in edges], weights=scaled, undirected=True) as graph:
            ranks = bf.eigenvector(graph, weighted=True, tolerance=1e-12, max_supersteps=1000)
            return dict(ranks)

    expected = found(1.0)
    for scale in (2.0**-20, 2.0**-900, 2.0**520, 2.0**1000):
        assert found(scale) == pytest.approx(expected, abs=1e-6)
    with pytest.raises(bf.InputError, match="too small for eigenvector; multiply all weights"):
        found(2.0**-1070)
