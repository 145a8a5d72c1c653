"""The smallest budget that a refusal names: a run in it works, in one MiB less it does not.

Each run is under a hard limit equal to its budget, on a graph of names that has a hub and vertices
without edges, with and without the index that some algorithms have to build first.
"""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cgroup import hard_limit
from command import BUDGET, refuse, smallest, succeed
from nightly import with_nightly

MIB = 1 << 20
VERTICES = 60_000

#: Algorithms with few supersteps: this is about memory.
ALGORITHMS = {
    "pagerank": ["--max-supersteps", 2],
    "hits": ["--max-supersteps", 2],
    "eigenvector": ["--max-supersteps", 2],
    "katz": ["--max-supersteps", 2],
    "betweenness": ["--samples", 1],
    "edge_betweenness": ["--samples", 1],
    "closeness": ["--max-supersteps", 2],
    "harmonic": ["--max-supersteps", 2],
    "connected_components": [],
    "scc": ["--max-supersteps", 8],
    "kcore": ["--max-supersteps", 8],
    "bfs": ["--source", "hub"],
    "sssp": ["--source", "hub"],
    "count_paths": ["--source", "hub"],
    "degrees": ["--param", "direction=both"],
    "label_propagation": ["--max-supersteps", 2],
    "louvain": ["--levels", 1],
    "louvain_hierarchy": [],
    "leiden_hierarchy": [],
    "leiden": ["--levels", 1],
    "color": [],
    "maximal_independent_set": [],
    "bipartite": [],
    "spanning_forest": [],
    "bridges": [],
    "articulation_points": [],
    "similarity": ["--k", 1],
    "ktruss": [],
    "random_walks": ["--walks", 1, "--length", 3],
    "fastrp": ["--dimensions", 17, "--iteration-weights", "0,1"],
    "distances": ["--source", "hub"],
    "eccentricity": ["--source", "hub"],
    "diameter": ["--source", "hub"],
    "effective_diameter": [],
    "triangles": [],
    "clustering": [],
}
INDEXES, THREADS, OUTPUTS = ["in", "in,reverse"], [1, 2, 4], ["none", "csv", "parquet"]


# Without the reverse index a run may build it, which is the greater need.
@pytest.fixture(scope="module", params=with_nightly(INDEXES[:1], INDEXES[1:]))
def hub(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directed graph of names: most vertices lead to a hub, which leads to a third of them."""
    folder = tmp_path_factory.mktemp("smallest")
    with (folder / "hub.txt").open("w") as out:
        for at in range(VERTICES):
            out.write(f"vertex-{at} hub\n")
            if at % 3 == 0:
                out.write(f"hub vertex-{at}\n")
            if at % 5 == 0:
                out.write(f"vertex-{at} vertex-{at * 7 % VERTICES}\n")
        # Without their loops these have no edges.
        out.writelines(f"alone-{at} alone-{at}\n" for at in range(1000))
    graph = folder / "hub.brimful"
    options = ["--ids", "string", "--no-header", "--self-loops", "drop", "--index", request.param]
    succeed("import", folder / "hub.txt", graph, *options, "--quiet")
    return graph


def check(graph: Path, algorithm: str, threads: int, output: str) -> None:
    """Insist that the smallest budget is one: named twice, and enough."""
    fresh, result = graph.with_name("fresh.brimful"), graph.with_name(f"result.{output}")
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(graph, fresh)
    run = ["run", algorithm, fresh, *ALGORITHMS[algorithm], "--threads", threads]
    if output != "none":
        run += ["-o", result, "--overwrite"]
    named = smallest(*run)
    mib = int(named.removesuffix("M"))
    with hard_limit(mib * MIB) as enter:
        sentence = refuse(BUDGET, *run, "--budget", f"{mib - 1}M", "--quiet", before=enter)
    assert f"the smallest that works is {named}" in sentence
    with hard_limit(mib * MIB) as enter:
        done = succeed(*run, "--budget", named, "--json", "--quiet", before=enter)
    assert done.figures["peak_rss_bytes"] <= mib * MIB


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "algorithm"),
    # The nightly test below has them all; similarity takes a minute.
    [one for one in enumerate(ALGORITHMS) if one[0] % 2 == 0 and one[1] != "similarity"],
)
def test_a_named_budget_is_the_smallest(hub: Path, number: int, algorithm: str) -> None:
    # Over all algorithms every pair of threads and output occurs.
    check(hub, algorithm, THREADS[number % 3], OUTPUTS[number // 3 % 3])


@pytest.mark.nightly
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_named_budget_is_the_smallest(hub: Path, algorithm: str) -> None:
    for threads, output in itertools.product(THREADS, OUTPUTS):
        check(hub, algorithm, threads, output)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["pagerank", "hits", "label_propagation", "degrees"])
def test_plan_run_and_its_figures_name_the_same(hub: Path, algorithm: str) -> None:
    options = [*ALGORITHMS[algorithm], "--threads", 2]
    fresh = hub.with_name("plan.brimful")
    shutil.copytree(hub, fresh, dirs_exist_ok=True)
    named = smallest("run", algorithm, fresh, *options)
    planned = succeed(
        "plan", fresh, algorithm, *options, "--budget", "1G", "--json", "--quiet"
    ).figures
    assert planned["minimum_budget_bytes"] == int(named.removesuffix("M")) * MIB
    done = succeed("run", algorithm, fresh, *options, "--budget", "1G", "--json", "--quiet").figures
    assert done["forecast"]["minimum_budget_bytes"] == planned["minimum_budget_bytes"]


def test_the_budget_that_peeling_names_works(hub: Path) -> None:
    command = ["run", "kcore", hub, "--param", "method=peeling"]
    named = smallest(*command)
    with hard_limit(int(named.removesuffix("M")) * MIB) as enter:
        done = succeed(*command, "--budget", named, "--json", "--quiet", before=enter)
    assert done.figures["variant"] == "peeling"


def test_the_budget_that_info_names_for_plots_works(hub: Path) -> None:
    command = ["info", hub, "--plots"]
    named = smallest(*command)
    with hard_limit(int(named.removesuffix("M")) * MIB) as enter:
        succeed(*command, "--budget", named, "--quiet", before=enter)


def test_what_loads_other_packages_is_refused_before_it_loads_them(
    hub: Path, tmp_path: Path
) -> None:
    table = tmp_path / "ages.csv"
    table.write_text("id,age\nvertex-1,41\n")
    edges = tmp_path / "e.txt"
    edges.write_text("1 2 3\n")
    out = tmp_path / "out.brimful"
    for command in (
        ["derive", hub, out, "--reverse"],
        ["derive", hub, out, "--vertices", "age > 30"],
        ["columns", hub],
        ["columns", hub, table],
        ["run", "pagerank", hub, "--where", "age > 30"],
        ["run", "pagerank", hub, "--join", table, "-o", tmp_path / "r.parquet"],
        ["run", "pagerank", hub, "--with", "age", "-o", tmp_path / "r.parquet"],
        ["import", edges, out, "--weight", "3", "--vertex-columns", table],
        ["neighbors", hub, "hub"],
    ):
        budget = "20M" if command[0] == "neighbors" else "60M"
        with hard_limit(60 * MIB) as enter:
            refuse(BUDGET, *command, "--budget", budget, "--quiet", before=enter)


def works_in_the_budget_it_names(*command: object) -> None:
    """Insist that a command works under a hard limit equal to the smallest budget that it names."""
    named = smallest(*command)
    with hard_limit(int(named.removesuffix("M")) * MIB) as enter:
        succeed(*command, "--budget", named, "--quiet", before=enter)


def test_paths_past_a_hub(tmp_path: Path) -> None:
    table = tmp_path / "hub.txt"
    with table.open("w") as out:
        for at in range(1, 200_000):
            out.write(f"0 {at}\n{at} 200000\n")
        out.write("200000 200001\n")
    graph = tmp_path / "hub.brimful"
    succeed("import", table, graph, "--index", "in,reverse", "--quiet")
    works_in_the_budget_it_names("path", graph, 0, 200_001, "--k", 5)
    with hard_limit(24 * MIB) as enter:
        refuse(BUDGET, "path", graph, 0, 200_001, "--budget", "24M", "--quiet", before=enter)


def test_the_first_refusal_of_paths_names_a_budget_for_the_whole_graph(tmp_path: Path) -> None:
    # Only 0 -> 1 leads to the target; the search for another path tries all vertices behind it.
    table, vertices = tmp_path / "behind.txt", 100_000
    with table.open("w") as out:
        out.write("0 1\n")
        out.writelines(f"1 {at}\n{at} 1\n" for at in range(2, vertices))
    graph = tmp_path / "behind.brimful"
    succeed("import", table, graph, "--index", "in,reverse", "--quiet")
    command = ["path", graph, 0, 1, "--k", 3, "--quiet"]
    first = refuse(BUDGET, *command, "--budget", 1)
    few = named_in(first.partition(" for searches")[0])
    whole = int(first.partition("visits the whole graph needs ")[2].removesuffix("M"))
    second = refuse(BUDGET, *command, "--budget", f"{few}M")
    assert few < named_in(second) <= whole
    with hard_limit(whole * MIB) as enter:
        succeed(*command, "--budget", f"{whole}M", before=enter)


def test_many_rows_of_long_names_are_shown(tmp_path: Path) -> None:
    table = tmp_path / "names.txt"
    long = "x" * 9_000
    with table.open("w") as out:
        out.writelines(f"{long}{at} {long}{at * 7 % 1_000}\n" for at in range(1_000))
    graph = tmp_path / "names.brimful"
    succeed("import", table, graph, "--ids", "string", "--no-header", "--quiet")
    works_in_the_budget_it_names("run", "random_walks", graph, "--length", 3, "--top", 12_000)


def test_derivations_of_a_graph_with_edge_columns(tmp_path: Path) -> None:
    table = tmp_path / "edges.csv"
    with table.open("w") as out:
        out.write("source,target,year\n")
        out.writelines(f"{at},{at * 7 % 5_000},{at % 30}\n" for at in range(5_000))
    graph, made = tmp_path / "edges.brimful", tmp_path / "made.brimful"
    succeed("import", table, graph, "--edge-columns", "year", "--quiet")
    works_in_the_budget_it_names("derive", graph, made, "--reverse")
    plain = tmp_path / "plain.brimful"
    succeed("import", table, plain, "--ignore-extra", "--quiet")
    shutil.rmtree(made)
    works_in_the_budget_it_names("derive", plain, made, "--edges", "source > 7")


def named_in(sentence: str) -> int:
    """Return the smallest budget that a refusal names, in MiB."""
    return int(sentence.partition("the smallest that works is ")[2].removesuffix("M"))


def test_a_budget_of_the_interpreter_is_refused_before_packages_are_loaded(
    hub: Path, tmp_path: Path
) -> None:
    edges, ages, pairs = tmp_path / "e.txt", tmp_path / "ages.csv", tmp_path / "pairs.csv"
    edges.write_text("1 2\n2 3\n")
    ages.write_text("vertex,age\n1,41\n")
    pairs.write_text("source,target\nvertex-1,vertex-2\n")
    graph, page = tmp_path / "e.brimful", tmp_path / "page.html"
    succeed("import", edges, graph, "--vertex-columns", ages, "--quiet")
    for command in (
        ["run", "degrees", hub, "--report", page],
        ["run", "degrees", hub, "--join", ages, "-o", tmp_path / "r.csv"],
        ["run", "similarity", hub, "--pairs", pairs],
        ["info", graph],
        ["info", graph, "--plots"],
        ["info", graph, "--html", page],
    ):
        with hard_limit(20 * MIB) as enter:
            sentence = refuse(BUDGET, *command, "--budget", "20M", "--quiet", before=enter)
        named = named_in(sentence)
        if "--join" in command:
            continue
        with hard_limit(named * MIB) as enter:
            succeed(*command, "--budget", f"{named}M", "--quiet", before=enter)
        page.unlink(missing_ok=True)
    kept = ["run", "degrees", hub, "--store", f"file:{tmp_path / 'kept'}", "--keep"]
    with hard_limit(16 * MIB) as enter:
        refuse(BUDGET, *kept, "--quiet", before=enter)
    # The columns do not matter to the neighbors.
    named = named_in(refuse(BUDGET, "neighbors", graph, 1, "--budget", 1))
    assert named <= 48
    with hard_limit(named * MIB) as enter:
        succeed("neighbors", graph, 1, "--budget", f"{named}M", "--quiet", before=enter)


def test_the_first_budget_named_for_columns_is_enough(tmp_path: Path) -> None:
    rows = range(1000)
    trades, ages = tmp_path / "trades.parquet", tmp_path / "ages.csv"
    ends = {"source": list(rows), "target": [row * 7 % 1000 for row in rows]}
    pq.write_table(pa.table(ends | {"year": [2000 + row % 20 for row in rows]}), trades)
    ages.write_text("vertex,age\n" + "".join(f"{row},{row % 90}\n" for row in rows))
    of_edges, of_vertices = ["--edge-columns", "year"], ["--vertex-columns", ages]
    for number, options in enumerate((of_edges, of_vertices, of_edges + of_vertices)):
        command = ["import", trades, tmp_path / f"{number}.brimful", *options]
        # pyarrow would fit the second budget.
        for mib in (20, 160):
            with hard_limit(mib * MIB) as enter:
                sentence = refuse(BUDGET, *command, "--budget", f"{mib}M", "-q", before=enter)
            named = named_in(sentence)
            with hard_limit(named * MIB) as enter:
                succeed(*command, "--budget", f"{named}M", "-q", before=enter)
            shutil.rmtree(command[2])


@pytest.mark.nightly
@pytest.mark.parametrize("end", ["source", "target"])
def test_a_part_of_a_graph_with_a_hub(tmp_path: Path, end: str) -> None:
    graph, ages, edges = (tmp_path / name for name in ("g.brimful", "v.parquet", "e.parquet"))
    vertices = 3_000_000
    rng = np.random.default_rng(3)
    ends = {end: rng.integers(0, vertices, 8_000_000) for end in ("source", "target")}
    ends[end][rng.random(8_000_000) < 0.3] = 7
    values = {"weight": rng.random(8_000_000), "year": rng.integers(0, 30, 8_000_000)}
    pq.write_table(pa.table(ends | values), edges)
    table = {"vertex": np.arange(vertices), "age": rng.integers(0, 90, vertices)}
    pq.write_table(pa.table(table), ages)
    options = ["--weight", "weight", "--edge-columns", "year", "--vertex-columns", ages]
    succeed("import", edges, graph, *options, "--quiet")
    part = tmp_path / "part.brimful"
    works_in_the_budget_it_names("derive", graph, part, "--vertices", "age > 30")
