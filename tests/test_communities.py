"""Communities of high modularity: against igraph's, NetworkX's measure, and themselves."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from pathlib import Path

import igraph
import networkx as nx
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brimful as bf
from command import BUDGET, INPUT, USAGE, refuse, succeed
from nightly import with_nightly
from strategies import Case, cases, graph_of, values

METHODS: list[Callable[..., bf.Result]] = [bf.louvain, bf.leiden]
#: Files of shared/data, with the options of their import.
GRAPHS = {
    "wiki-Vote.txt.gz": ["--undirected"],
    "email-enron.jlg": [],
    "astro-ph.graph.gz": [],
    "soc-Slashdot0902.txt.gz": ["--undirected"],
}


def groups(labels: dict[int, int]) -> list[set[int]]:
    """Return the sets of vertices of one label each."""
    found: dict[int, set[int]] = {}
    for vertex, label in labels.items():
        found.setdefault(label, set()).add(vertex)
    return list(found.values())


def undirected(case: Case, weights: list[float] | None = None) -> nx.MultiGraph:
    """Return a graph with an edge of its own for each edge, whatever its direction."""
    graph = nx.MultiGraph()
    graph.add_nodes_from(case.vertices)
    for (source, target), weight in zip(
        case.edges, weights or [1.0] * len(case.edges), strict=True
    ):
        graph.add_edge(source, target, weight=weight)
    return graph


@pytest.mark.parametrize("method", METHODS)
@given(case=cases(), data=st.data(), resolution=st.sampled_from([0.5, 1.0, 2.0]))
def test_no_vertex_gains_by_moving(
    method: Callable[..., bf.Result], case: Case, data: st.DataObject, resolution: float
) -> None:
    size = len(case.edges)
    drawn = st.lists(st.integers(1, 9), min_size=size, max_size=size)
    weights = [float(weight) for weight in data.draw(drawn, label="weights")]
    theirs = undirected(case, weights)
    with case.graph(weights) as graph:
        weighted = bool(size)
        result = method(graph, weighted=weighted, resolution=resolution, tolerance=0)
        one = method(graph, weighted=weighted, resolution=resolution, tolerance=0, levels=1)
        again = method(graph, weighted=weighted, resolution=resolution, tolerance=0, iterations=1)
    labels = values(result)
    measured = {g: bf.modularity(result, weighted=weighted, resolution=g) for g in (0.5, 1.0, 3.0)}
    conductances = values(bf.conductance(result, weighted=weighted))
    assert list(labels) == case.vertices
    for group in groups(labels):
        assert labels[min(group)] == min(group)
        assert nx.is_connected(theirs.subgraph(group)) or method is bf.louvain
    if not size:
        assert all(vertex == label for vertex, label in labels.items())
        return

    def modularity(labels: dict[int, int]) -> float:
        return float(nx.community.modularity(theirs, groups(labels), resolution=resolution))

    for factor, found in measured.items():
        wanted = nx.community.modularity(theirs, groups(labels), resolution=factor)
        assert found == pytest.approx(wanted, abs=1e-12)
    simple = nx.Graph()
    simple.add_nodes_from(theirs)
    for source, target, weight in theirs.edges(data="weight"):
        before = simple.get_edge_data(source, target, {"weight": 0.0})["weight"]
        simple.add_edge(source, target, weight=before + weight)
    for group in groups(labels):
        outside = set(simple) - group
        volumes = [nx.volume(simple, part, weight="weight") for part in (group, outside)]
        wanted = nx.conductance(simple, group, weight="weight") if min(volumes) else None
        (share,) = {conductances[vertex] for vertex in group}
        assert share == (None if wanted is None else pytest.approx(wanted))
    reached, first = modularity(labels), modularity(values(one))
    assert reached >= modularity(values(again)) - 1e-12
    assert modularity(values(again)) >= first - 1e-12
    # At the end of a level no single vertex of it can do better elsewhere.
    for vertex in case.vertices:
        for other in {values(one)[near] for near in theirs[vertex]}:
            assert modularity(values(one) | {vertex: other}) <= first + 1e-9


@pytest.fixture(
    scope="module",
    params=with_nightly(list(GRAPHS)[:1], list(GRAPHS)[1:]),
)
def real(
    request: pytest.FixtureRequest, data: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    path = tmp_path_factory.mktemp("communities") / "g.brimful"
    succeed("import", data / request.param, path, *GRAPHS[request.param], "--quiet")
    return path


def test_modularity_is_as_great_as_igraph_s(real: Path) -> None:
    with bf.Graph.open(real) as graph:
        table = graph.to_arrow()
        edges = zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True)
        number = {vertex: at for at, vertex in enumerate(graph)}
        theirs = igraph.Graph(
            n=len(number), edges=[(number[source], number[target]) for source, target in edges]
        )

        def reached(result: bf.Result) -> float:
            members = [number[label] for label in values(result).values()]
            return float(theirs.modularity(members))

        usual = {"multilevel": 0.0, "leiden": 0.0}
        for method in usual:
            found = []
            for seed in range(5):
                # Its order of vertices is drawn by chance.
                igraph.set_random_number_generator(random.Random(seed))
                options = {"objective_function": "modularity"} if method == "leiden" else {}
                found.append(getattr(theirs, f"community_{method}")(**options).modularity)
            usual[method] = statistics.median(found)
        assert reached(bf.louvain(graph)) >= 0.99 * usual["multilevel"]
        leiden = bf.leiden(graph)
        assert reached(leiden) >= 0.99 * max(usual.values())
        members = igraph.VertexClustering(theirs, [number[x] for x in values(leiden).values()])
        # Numbers without members are empty graphs.
        assert all(part.is_connected() for part in members.subgraphs() if part.vcount())


@pytest.mark.parametrize("method", ["louvain", "leiden"])
def test_any_budget_and_number_of_threads_gives_the_same_bytes(
    real: Path, tmp_path: Path, method: str
) -> None:
    found = []
    for number, options in enumerate(
        [["--budget", "1G", "--threads", 1], ["--threads", 2, "--budget", "80M"]]
    ):
        out = tmp_path / f"{method}-{number}.csv"
        figures = succeed("run", method, real, *options, "-o", out, "--quiet", "--json").figures
        assert figures["variant"] == method
        found.append(out.read_bytes())
    assert found[0] == found[1]


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_text("u v w\n0 1 2.5\n1 2 -1\n2 0 1\n")
    graph = tmp_path / "g.brimful"
    succeed("import", tmp_path / "e.txt", graph, "--quiet")
    for method in ("louvain", "leiden"):
        for code, options, says in [
            (USAGE, ["--resolution", "-1"], "resolution must be at least 0, not -1"),
            (USAGE, ["--max-supersteps", 3], "--max-supersteps does not apply"),
            (USAGE, ["--store", "bytes"], "--store does not apply"),
            (INPUT, ["--weighted"], "the smallest is -1"),
            (BUDGET, ["--budget", "20M"], "the smallest that works is"),
            (USAGE, ["--levels", 1, "--iterations", 2], "levels applies to a single iteration"),
        ]:
            assert says in refuse(code, "run", method, graph, *options, "--quiet")


def test_a_partition_has_a_value_for_every_vertex() -> None:
    with graph_of([(0, 1), (2, 3)]) as graph:
        distances = bf.bfs(graph, 0)
        for measure in (bf.modularity, bf.conductance):
            with pytest.raises(bf.UsageError, match="but distance has nulls"):
                measure(distances)
            with pytest.raises(bf.UsageError, match="partition must be the result of a run"):
                measure({0: 1})  # type: ignore[arg-type]
            with pytest.raises(bf.UsageError, match="has no edge weights"):
                measure(bf.degrees(graph), weighted=True)
        with pytest.raises(bf.UsageError, match="resolution must be at least 0"):
            bf.modularity(bf.degrees(graph), resolution=-1)
        assert bf.modularity(bf.connected_components(graph)) == 0.5
    with graph_of([], vertices=3) as graph:
        assert bf.modularity(bf.connected_components(graph)) == 0.0


@pytest.mark.parametrize(
    ("method", "hierarchy"),
    [(bf.louvain, bf.louvain_hierarchy), (bf.leiden, bf.leiden_hierarchy)],
)
def test_columns_of_a_hierarchy_are_the_results_of_its_levels(
    method: Callable[..., bf.Result], hierarchy: Callable[..., bf.Rows], tmp_path: Path
) -> None:
    path = tmp_path / "r.brimful"
    succeed("generate", "rmat", path, "--scale", 11, "--edge-factor", 4, "--quiet")
    with bf.Graph.open(path) as graph:
        found = hierarchy(graph, resolution=1.5)
        assert len(found.columns) > 3 and len(found) == len(graph)
        levels = range(1, len(found.columns))
        assert found.columns == ["vertex", *(f"level_{level}" for level in levels)]
        table = found.to_arrow()
        for level in levels:
            single = method(graph, resolution=1.5, levels=level).to_arrow()
            assert table["vertex"].equals(single["vertex"])
            assert table[f"level_{level}"].equals(single["label"]), level
        with pytest.raises(bf.BudgetError) as caught:
            hierarchy(graph, resolution=1.5, budget="1M", threads=1)
        least = caught.value.needed_bytes
        assert hierarchy(graph, resolution=1.5, budget=least, threads=1).to_arrow() == table
    with bf.Graph.from_arrow(pa.table({"source": [3], "target": [3]}), vertices=5) as loop:
        assert hierarchy(loop).to_arrow().to_pydict() == {
            "vertex": [0, 1, 2, 3, 4],
            "level_1": [0, 1, 2, 3, 4],
        }


def test_levels_are_those_of_the_hierarchy() -> None:
    """A ring of triangles, which join in pairs at the second level."""
    edges = [
        edge
        for first in range(0, 90, 3)
        for edge in [
            (first, first + 1),
            (first + 1, first + 2),
            (first + 2, first),
            (first + 2, (first + 3) % 90),
        ]
    ]
    with graph_of(edges, undirected=True) as graph:
        for method in METHODS:
            assert values(method(graph, levels=0)) == {vertex: vertex for vertex in range(90)}
            fine, coarse = values(method(graph, levels=1)), values(method(graph))
            assert len(set(coarse.values())) < len(set(fine.values()))
            parts = {(fine[vertex], coarse[vertex]) for vertex in range(90)}
            assert len(parts) == len(set(fine.values())) or method is bf.leiden
