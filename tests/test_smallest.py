"""The smallest budget that a refusal names: a run in it works, in one MiB less it does not.

Each run is under a hard limit equal to its budget, on a graph of names that has a hub and vertices
without edges, with and without the index that some algorithms have to build first.
"""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import pytest

from cgroup import hard_limit
from command import BUDGET, refuse, smallest, succeed

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
@pytest.fixture(
    scope="module", params=[INDEXES[0], pytest.param(INDEXES[1], marks=pytest.mark.nightly)]
)
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
    # Similarity takes a minute on each graph; the nightly test below has it too.
    [one for one in enumerate(ALGORITHMS) if one[1] != "similarity"],
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
