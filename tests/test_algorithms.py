"""PageRank and components against other people's answers and known facts."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brimful as bf
from command import INPUT, USAGE, read_csv, refuse, succeed, write_edges
from nightly import with_nightly
from oracle import (
    Edge,
    assert_close,
    components,
    networkx_components,
    networkx_pagerank,
    pagerank,
)
from strategies import graph_of, graphs, values


@given(edges=graphs(), undirected=st.booleans())
def test_random_multigraphs(edges: list[Edge], undirected: bool) -> None:
    with graph_of(edges, undirected=undirected) as graph:
        assert graph.edges == len(edges)
        loops = sum(source == target for source, target in edges)
        assert graph.arcs == (2 * len(edges) - loops if undirected else len(edges))
        result = values(bf.pagerank(graph, tolerance=0, max_supersteps=15))
        assert_close(result, pagerank(edges, 15, undirected=undirected), 1e-9)
        plain = values(bf.pagerank(graph, tolerance=0, max_supersteps=15, variant="unnormalized"))
        expected = pagerank(edges, 15, undirected=undirected, variant="unnormalized")
        assert_close(plain, expected, 1e-9)
        converged = values(bf.pagerank(graph, tolerance=1e-14, max_supersteps=1000))
        assert_close(converged, networkx_pagerank(edges, undirected=undirected), 1e-9)
        labels = values(bf.connected_components(graph))
        assert labels == components(edges) == networkx_components(edges)


@given(
    edges=st.lists(
        st.tuples(st.integers(0, 400), st.integers(0, 400)), min_size=200, max_size=1500
    ),
    declared=st.integers(1, 500),
)
def test_larger_random_graphs_with_declared_vertices(edges: list[Edge], declared: int) -> None:
    with graph_of(edges, vertices=declared) as graph:
        result = values(bf.pagerank(graph, tolerance=0, max_supersteps=10))
        assert_close(result, pagerank(edges, 10, declared=range(declared)), 1e-9)
        plain = values(bf.pagerank(graph, tolerance=0, max_supersteps=10, variant="unnormalized"))
        expected = pagerank(edges, 10, declared=range(declared), variant="unnormalized")
        assert_close(plain, expected, 1e-9)
        assert values(bf.connected_components(graph)) == components(edges, range(declared))


@pytest.mark.parametrize("algorithm", ["pagerank", "connected_components"])
def test_slashdot_agrees_with_scipy(slashdot: Path, tmp_path: Path, algorithm: str) -> None:
    edges_file = tmp_path / "edges.csv"
    succeed("export", slashdot, edges_file, "--quiet")
    lines = edges_file.read_text().split("\n")[1:]
    edges = [(int(s), int(t)) for s, t in (line.split(",") for line in lines if line)]
    assert len(edges) == 948_464
    out = tmp_path / "out.csv"
    if algorithm == "pagerank":
        options = ["--tolerance", 0, "--max-supersteps", 20]
        succeed("run", "pagerank", slashdot, "-o", out, *options, "--quiet")
        assert_close(read_csv(out), pagerank(edges, 20), 1e-9)
    else:
        succeed("run", "connected_components", slashdot, "-o", out, "--quiet")
        assert read_csv(out) == components(edges)


@pytest.mark.parametrize("name", ["directed", "undirected"])
def test_graphalytics_examples(data: Path, tmp_path: Path, name: str) -> None:
    folder = data / "graphalytics-example"
    graph = tmp_path / "g.brimful"
    options = ["--undirected"] if name == "undirected" else []
    succeed("import", folder / f"example-{name}.e", graph, *options, "--quiet")
    expected = {
        kind: [
            line.split() for line in (folder / f"example-{name}-{kind}").read_text().splitlines()
        ]
        for kind in ("PR", "WCC")
    }
    ranks = tmp_path / "ranks.csv"
    fixed = ["--tolerance", 0, "--max-supersteps", 2]
    succeed("run", "pagerank", graph, "-o", ranks, *fixed, "--quiet")
    theirs = {int(vertex): float(value) for vertex, value in expected["PR"]}
    assert_close(read_csv(ranks), theirs, 1e-4)
    labels = tmp_path / "labels.csv"
    succeed("run", "connected_components", graph, "-o", labels, "--quiet")
    ours = read_csv(labels)
    groups: dict[str, set[int]] = {}
    for vertex, label in expected["WCC"]:
        groups.setdefault(label, set()).add(int(vertex))
    assert ours == {vertex: min(group) for group in groups.values() for vertex in group}


def rounded(result: bf.Result, digits: int) -> list[float]:
    return [round(value, digits) for value in values(result).values()]


def unnormalized(graph: bf.Graph) -> bf.Result:
    return bf.pagerank(graph, variant="unnormalized", tolerance=1e-12, max_supersteps=1000)


def test_unnormalized_facts_of_signal_collect() -> None:
    with graph_of([(i, (i + 1) % 5) for i in range(5)]) as cycle:
        assert rounded(unnormalized(cycle), 9) == [1.0] * 5
    with graph_of([(leaf, 0) for leaf in range(1, 5)]) as star:
        assert rounded(unnormalized(star), 9) == [0.66, 0.15, 0.15, 0.15, 0.15]
    with graph_of([(1, 2), (2, 3)], undirected=True) as path:
        assert rounded(unnormalized(path), 5) == [0.77027, 1.45946, 0.77027]


@pytest.mark.parametrize(
    "options", [["--rows", 2, "--columns", 2], ["--rows", 5, "--columns", 5, "--torus"]]
)
def test_grids_are_level(tmp_path: Path, options: list[object]) -> None:
    graph, out = tmp_path / "g.brimful", tmp_path / "out.csv"
    succeed("generate", "grid", graph, *options, "--quiet")
    succeed(
        "run", "pagerank", graph, "--param", "variant=unnormalized", "--tolerance", "1e-12",
        "--max-supersteps", 500, "-o", out, "--quiet",
    )  # fmt: skip
    assert all(abs(value - 1.0) < 1e-9 for value in read_csv(out).values())


def test_pagerank_of_giraph_with_an_undeclared_dangling_vertex() -> None:
    adjacency = {1: [4, 2, 3], 2: [1], 4: [3, 2], 5: [2, 4]}
    edges = [(source, target) for source, targets in adjacency.items() for target in targets]
    with graph_of(edges) as graph:
        result = values(bf.pagerank(graph, tolerance=0, max_supersteps=50))
    expected = [0.281591, 0.251465, 0.222630, 0.176468, 0.067847]
    # Printed by Giraph to six digits, from floats summed in another order.
    assert sorted(result.values(), reverse=True) == pytest.approx(expected, abs=3e-6)


def test_components_of_giraph() -> None:
    sets = [[1, 2, 3, 4, 5, 12, 13], [6, 7, 8, 10, 11], [9]]
    edges = [edge for members in sets for edge in itertools.pairwise(members)]
    with graph_of([*edges, (9, 9)], undirected=True) as graph:
        labels = values(bf.connected_components(graph))
    assert labels == {vertex: members[0] for members in sets for vertex in members}


def test_components_ignore_direction() -> None:
    with graph_of([(5, 1), (7, 1), (7, 9), (100, 101)]) as graph:
        result = bf.connected_components(graph)
        assert values(result) == {1: 1, 5: 1, 7: 1, 9: 1, 100: 100, 101: 100}
        assert result.stats["converged"] is True


def test_a_long_chain_is_one_component(tmp_path: Path) -> None:
    graph, out = tmp_path / "g.brimful", tmp_path / "out.csv"
    succeed("generate", "chain", graph, "--vertices", 3000, "--quiet")
    succeed("run", "connected_components", graph, "-o", out, "--quiet")
    assert set(read_csv(out).values()) == {0.0}


def test_a_single_vertex() -> None:
    with graph_of([(42, 42)]) as graph:
        assert values(bf.pagerank(graph)) == {42: pytest.approx(1.0, rel=1e-12)}
        assert values(bf.connected_components(graph)) == {42: 42}


def test_weighted_pagerank_follows_the_weights() -> None:
    table = pa.table(
        {"source": [0, 0, 1, 2], "target": [1, 2, 0, 0], "weight": [3.0, 1.0, 1.0, 1.0]}
    )
    with bf.Graph.from_arrow(table) as graph:
        assert graph.weighted
        weighted = values(bf.pagerank(graph, weighted=True, tolerance=1e-14, max_supersteps=1000))
        plain = values(bf.pagerank(graph, tolerance=1e-14, max_supersteps=1000))
    assert weighted[1] == pytest.approx(0.05 + 0.85 * 0.75 * weighted[0], rel=1e-9)
    assert plain[1] == pytest.approx(plain[2], rel=1e-12)


def test_supersteps_and_tolerance_are_exact() -> None:
    edges = [(0, 1), (1, 2), (2, 0), (0, 2)]
    with graph_of(edges) as graph:
        for count in (1, 2, 7):
            result = bf.pagerank(graph, tolerance=0, max_supersteps=count)
            assert result.stats["supersteps"] == count
            assert result.stats["converged"] is False
            assert_close(values(result), pagerank(edges, count), 1e-12)
        result = bf.pagerank(graph, tolerance=1e-3, max_supersteps=1000)
        steps = result.stats["supersteps"]
        assert result.stats["converged"] is True

        def change(superstep: int) -> float:
            before = pagerank(edges, superstep - 1)
            return sum(abs(value - before[v]) for v, value in pagerank(edges, superstep).items())

        assert change(steps) <= 1e-3 < change(steps - 1)


def test_f32_is_close_and_says_so(rmat: Path) -> None:
    with bf.Graph.open(rmat) as graph:
        wide = bf.pagerank(graph, tolerance=0, max_supersteps=20)
        narrow = bf.pagerank(graph, tolerance=0, max_supersteps=20, precision="f32")
    assert (wide.stats["precision"], narrow.stats["precision"]) == ("f64", "f32")
    assert_close(values(narrow), values(wide), 1e-5)
    assert values(narrow) != values(wide)


def test_ranks_sum_to_one(rmat: Path) -> None:
    with bf.Graph.open(rmat) as graph:
        assert sum(values(bf.pagerank(graph)).values()) == pytest.approx(1.0, rel=1e-9)


def test_damping(tmp_path: Path) -> None:
    edges = [(0, 1), (1, 2), (2, 0), (0, 2), (3, 0)]
    source, out = write_edges(tmp_path / "a.txt", edges), tmp_path / "out.csv"
    options = ["--tolerance", 0, "--max-supersteps", 9, "--param", "damping=0.5", "--quiet"]
    succeed("import", source, tmp_path / "g.brimful", "--quiet")
    succeed("run", "pagerank", tmp_path / "g.brimful", *options, "-o", out)
    assert_close(read_csv(out), pagerank(edges, 9, damping=0.5), 1e-12)


def test_order_and_isolated_vertices_of_a_generated_graph(rmat: Path) -> None:
    with bf.Graph.open(rmat) as graph:
        info = graph.info()
        assert info["order"] == "degree"
        assert info["isolated"] > 0
        result = bf.pagerank(graph, tolerance=0, max_supersteps=3)
        table = result.to_arrow()
        vertices, scores = table["vertex"].to_pylist(), table["pagerank"].to_pylist()
        assert vertices == list(range(graph.vertices))
        best = sorted(vertices, key=lambda vertex: (-scores[vertex], vertex))
        assert [vertex for vertex, _ in result.top(len(graph))] == best
        assert [result[vertex] for vertex in range(0, 16_384, 97)] == scores[::97]
        assert sum(graph.degree(vertex) == 0 for vertex in vertices[:2000]) > 0


def test_shortest_paths_of_giraph() -> None:
    edges, weights = [(1, 2), (1, 3), (2, 3), (2, 4), (3, 4)], [1.0, 3.0, 1.0, 10.0, 2.0]
    with graph_of(edges, weights=weights) as graph:
        assert values(bf.sssp(graph, 1, weighted=True)) == {1: 0.0, 2: 1.0, 3: 2.0, 4: 4.0}


def test_shortest_paths_of_the_thesis() -> None:
    with graph_of([(vertex, (vertex + 1) % 4) for vertex in range(4)]) as cycle:
        assert values(bf.sssp(cycle, 0)) == {0: 0.0, 1: 1.0, 2: 2.0, 3: 3.0}


@pytest.mark.parametrize("name", ["directed", "undirected"])
def test_searches_of_graphalytics(data: Path, tmp_path: Path, name: str) -> None:
    folder, graph = data / "graphalytics-example", tmp_path / "g.brimful"
    lines = (folder / f"example-{name}.properties").read_text().splitlines()
    settings = dict(line.split(" = ", 1) for line in lines if " = " in line)
    prefix = f"graph.example-{name}."

    def expected(kind: str) -> dict[int, str]:
        pairs = (folder / f"example-{name}-{kind}").read_text().splitlines()
        return {int(vertex): value for vertex, value in (pair.split() for pair in pairs)}

    succeed("import", folder / f"example-{name}.v", graph, "--quiet")
    with bf.Graph.open(graph) as ours:
        assert len(ours) == int(settings[prefix + "meta.vertices"])
        levels = values(bf.bfs(ours, int(settings[prefix + "bfs.source-vertex"])))
        unreachable = {
            vertex: 2**63 - 1 if level is None else level for vertex, level in levels.items()
        }
        assert unreachable == {vertex: int(level) for vertex, level in expected("BFS").items()}
        source = int(settings[prefix + "sssp.source-vertex"])
        distances = values(bf.sssp(ours, source, weighted=True))
        theirs = {vertex: float(value) for vertex, value in expected("SSSP").items()}
        assert {vertex for vertex, value in distances.items() if value is None} == {
            vertex for vertex, value in theirs.items() if value == float("inf")
        }
        assert_close(
            {vertex: value for vertex, value in distances.items() if value is not None},
            {vertex: value for vertex, value in theirs.items() if value != float("inf")},
            1e-4,
        )
        ranks = bf.pagerank(
            ours,
            damping=float(settings[prefix + "pr.damping-factor"]),
            tolerance=0,
            max_supersteps=int(settings[prefix + "pr.num-iterations"]),
        )
        theirs = {vertex: float(value) for vertex, value in expected("PR").items()}
        assert_close(values(ranks), theirs, 1e-4)
        iterations = int(settings[prefix + "cdlp.max-iterations"])
        labels = values(bf.label_propagation(ours, max_supersteps=iterations))
        assert labels == {vertex: int(label) for vertex, label in expected("CDLP").items()}
        theirs = {vertex: float(value) for vertex, value in expected("LCC").items()}
        assert_close(values(bf.clustering(ours)), theirs, 1e-4)
        names = values(bf.connected_components(ours))
        groups = expected("WCC")
        assert len({(names[vertex], groups[vertex]) for vertex in groups}) == len(
            set(groups.values())
        )


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    (folder / "edges.txt").write_text("u v w\n0 1 2.5\n1 2 -1\n2 0 1\n")
    succeed("import", folder / "edges.txt", folder / "g.brimful", "--quiet")
    return folder / "g.brimful"


@pytest.mark.parametrize(
    ("code", "arguments", "says"),
    [
        (
            USAGE,
            ["bfs"],
            "bfs needs a source vertex; name it with --source ID",
        ),
        (USAGE, ["sssp"], "sssp needs a source vertex"),
        (USAGE, ["count_paths"], "count_paths needs a source vertex"),
        (INPUT, ["bfs", "--source", 7], "7"),
        (INPUT, ["pagerank", "--source", -1], "-1"),
        (USAGE, ["kcore", "--source", 0], "--source does not apply to kcore; leave it out"),
        (USAGE, ["scc", "--tolerance", 0.1], "--tolerance does not apply to scc"),
        (USAGE, ["hits", "--precision", "f32"], "--precision does not apply to hits"),
        (USAGE, ["bfs", "--source", 0, "--weighted"], "--weighted does not apply to bfs; leave it"),
        (USAGE, ["degrees", "--param", "direction=up"], "direction must be out, in or both"),
        (USAGE, ["color", "--max-supersteps", 3], "--max-supersteps does not apply to color"),
        (USAGE, ["degrees", "--max-supersteps", 3], "--max-supersteps does not apply to degrees"),
        (USAGE, ["kcore", "--param", "k=3"], "kcore has no parameter"),
        (INPUT, ["sssp", "--source", 0, "--weighted"], "has -1, and the smallest is -1"),
        (INPUT, ["hits", "--weighted"], "the smallest is -1"),
        (INPUT, ["pagerank", "--weighted"], "the smallest is -1"),
        (
            USAGE,
            ["pagerank", "--source", 0, "--param", "variant=unnormalized"],
            "personalized PageRank is normalized",
        ),
        (
            USAGE,
            ["pagerank", "--param", "method=delta", "--param", "damping=1"],
            "below 1 for the method delta",
        ),
        (USAGE, ["pagerank", "--param", "method=guess"], "method must be power or delta"),
        (USAGE, ["pagerank", "--param", "damping=1.5"], "damping must be between 0 and 1"),
        (USAGE, ["pagerank", "--param", "damping=x"], "damping must be a number"),
        (USAGE, ["pagerank", "--param", "variant=best"], "must be normalized or unnormalized"),
        (USAGE, ["hits", "--param", "values=both"], "values must be authority or hub"),
        (USAGE, ["hits", "--source", 0], "--source does not apply to hits"),
        (USAGE, ["nothing"], "there is no algorithm"),
    ],
)
def test_what_an_algorithm_does_not_take(
    small: Path, code: int, arguments: list[object], says: str
) -> None:
    algorithm, *options = arguments
    assert says in refuse(code, "run", algorithm, small, *options, "--quiet")


def test_new_columns_on_the_command_line(small: Path, tmp_path: Path) -> None:
    for arguments, column in [
        (["kcore"], "core"),
        (["color"], "color"),
        (["scc"], "component"),
        (["hits"], "authority"),
        (["hits", "--param", "values=hub"], "hub"),
        (["pagerank", "--source", 2, "--param", "method=delta"], "pagerank"),
    ]:
        algorithm, *options = arguments
        out = tmp_path / f"{column}.csv"
        succeed("run", algorithm, small, *options, "-o", out, "--quiet")
        header, *rows = out.read_text().strip().split("\n")
        assert header == f"vertex,{column}" and len(rows) == 3


@pytest.mark.parametrize("scale", [1.0, 5e-324, 1e-320, 1e-300, 1e150, 1e300, 1e308])
def test_hits_of_any_weights_is_a_score(tmp_path: Path, scale: float) -> None:
    """Only the ratios of weights count; their sums overflowed, or vanished."""
    edges = [(0, 1, 1), (2, 1, 1), (2, 3, 1), (4, 3, 1), (0, 3, 1)]
    table = pa.table(
        {
            "source": [source for source, _, _ in edges],
            "target": [target for _, target, _ in edges],
            "weight": [scale * weight for _, _, weight in edges],
        }
    )
    for store in (None, "bytes"):
        for kind in ("authority", "hub"):
            with bf.Graph.from_arrow(table, weight="weight") as graph:
                plain = bf.hits(graph, values=kind)
                scores = bf.hits(graph, values=kind, weighted=True, store=store)
            for vertex in range(5):
                assert scores[vertex] == pytest.approx(plain[vertex], abs=1e-9), (kind, store)


def test_paths_too_long_for_a_number_are_refused(tmp_path: Path) -> None:
    """A vertex whose distance overflowed seemed to be out of reach, with exit 0."""
    table = pa.table({"source": [0, 1], "target": [1, 2], "weight": [1e308, 1e308]})
    with bf.Graph.from_arrow(table, weight="weight") as graph:
        says = (
            "distance of vertex 2 is more than .*: the edge from 1 adds 1e308; divide all weights"
        )
        for store in (None, "bytes"):
            with pytest.raises(bf.InputError, match=says):
                bf.sssp(graph, 0, weighted=True, store=store)
        assert bf.sssp(graph, 0)[2] == 2
        # Two such edges on no path do no harm.
        assert values(bf.sssp(graph, 1, weighted=True)) == {0: None, 1: 0.0, 2: 1e308}
    around = {"source": [0, 1, 0, 3], "target": [1, 2, 2, 0], "weight": [1e308, 1e308, 7.0, 1.0]}
    with bf.Graph.from_arrow(pa.table(around), weight="weight") as graph:
        assert values(bf.sssp(graph, 0, weighted=True)) == {0: 0.0, 1: 1e308, 2: 7.0, 3: None}
        assert bf.sssp(graph, 0, weighted=True, mode="async")[2] == 7.0
    half = table.set_column(2, "weight", pa.array([8e307, 8e307]))
    with bf.Graph.from_arrow(half, weight="weight") as graph:
        assert bf.sssp(graph, 0, weighted=True)[2] == 16e307


@pytest.mark.parametrize("undirected", with_nightly([False], [True]))
def test_kcore_peels_where_the_edges_fit_and_works_in_rounds_elsewhere(
    tmp_path: Path, undirected: bool
) -> None:
    path = tmp_path / "r.brimful"
    ways = ["--undirected"] if undirected else ["--index", "in,reverse"]
    succeed("generate", "rmat", path, "--scale", 17, "--edge-factor", 16, *ways, "--quiet")
    with bf.Graph.open(path) as graph:
        least = {}
        for method in ("auto", "peeling", "rounds"):
            with pytest.raises(bf.BudgetError) as caught:
                bf.kcore(graph, method=method, budget="1M")
            least[method] = caught.value.needed_bytes
        assert least["auto"] == min(least["peeling"], least["rounds"])
        peeled = bf.kcore(graph, method="peeling", budget=least["peeling"])
        assert peeled.stats["variant"] == "peeling" and peeled.stats["supersteps"] == 1
        in_rounds = bf.kcore(graph, method="rounds", budget=least["rounds"])
        assert in_rounds.stats["variant"] == "rounds" and in_rounds.stats["supersteps"] > 1
        assert peeled.to_arrow()["core"].equals(in_rounds.to_arrow()["core"])
        assert bf.kcore(graph, budget="4G").stats["variant"] == "peeling"
        with pytest.raises(bf.UsageError, match="no supersteps to limit"):
            bf.kcore(graph, method="peeling", max_supersteps=3)


@pytest.mark.parametrize(("scale", "edges"), [(17, 32), (18, 48)])
def test_scc_searches_where_the_edges_fit_and_colors_elsewhere(
    tmp_path: Path, scale: int, edges: int
) -> None:
    path = tmp_path / "r.brimful"
    size = ["--scale", scale, "--edge-factor", edges]
    succeed("generate", "rmat", path, *size, "--seed", 3, "--quiet")
    with bf.Graph.open(path) as graph:
        least = {}
        for method in ("auto", "search", "coloring"):
            with pytest.raises(bf.BudgetError) as caught:
                bf.scc(graph, method=method, budget="1M")
            least[method] = caught.value.needed_bytes
        # The smaller graph takes less memory for a search, the larger one for colors.
        assert (least["search"] < least["coloring"]) == (scale == 17)
        assert least["auto"] == min(least["search"], least["coloring"])
        plan = bf.plan(graph, "scc", budget="4G")
        assert plan.minimum_budget_bytes >= least["auto"]

        searched = bf.scc(graph, budget=least["search"])
        assert searched.stats["supersteps"] == 1
        if scale == 18:
            colored = bf.scc(graph, budget=least["search"] - 1)
            assert colored.stats["supersteps"] > 1
            assert searched.to_arrow()["component"].equals(colored.to_arrow()["component"])


def test_algorithms_of_a_fixed_number_of_supersteps_finish(rmat: Path) -> None:
    with bf.Graph.open(rmat) as graph:
        source = next(iter(graph))
        for found in (
            *(bf.degrees(graph, direction=direction) for direction in ("out", "in")),  # type: ignore[arg-type]
            bf.count_paths(graph, source=source, length=2),
        ):
            assert found.stats["reason"] == "finished"
        cut = bf.count_paths(graph, source=source, max_supersteps=1)
        assert cut.stats["reason"] == "reached the maximum number of supersteps"
