"""The same bits at any budget and thread count, and the same graph for the same seed."""

from __future__ import annotations

from pathlib import Path

import pytest

import brimful as bf
from command import names_below, succeed
from nightly import rows_with_nightly, with_nightly


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of 8.4 M edges, larger than the smaller budgets below."""
    graph = tmp_path_factory.mktemp("large") / "rmat19.brimful"
    succeed("generate", "rmat", graph, "--scale", 19, "--edge-factor", 16, "--seed", 7, "--quiet")
    return graph


def smallest_budget(graph: bf.Graph, algorithm: str) -> int:
    """Return the smallest budget that an algorithm accepts, as its own refusal names it."""
    with pytest.raises(bf.BudgetError) as refusal:
        compute(graph, algorithm, budget=1)
    assert refusal.value.needed_bytes > 1
    return refusal.value.needed_bytes


def compute(graph: bf.Graph, algorithm: str, **options: object) -> bf.Result:
    if algorithm == "pagerank":
        return bf.pagerank(graph, tolerance=0, max_supersteps=5, **options)  # type: ignore[arg-type]
    return bf.connected_components(graph, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("algorithm", "options"),
    rows_with_nightly(
        [("pagerank", {"precision": "f64"}), ("connected_components", {})],
        [("pagerank", {"precision": "f32"})],
    ),
)
def test_same_bits_at_any_budget_and_thread_count(
    large: Path, tmp_path: Path, algorithm: str, options: dict[str, str]
) -> None:
    with bf.Graph.open(large) as graph:
        smallest = smallest_budget(graph, algorithm)
        contents = {}
        for budget in (smallest, 2 * smallest, 4 << 30):
            for threads in (1, 2, 3, 4):
                if budget != smallest and threads == 3:
                    continue
                out = tmp_path / f"{budget}-{threads}.csv"
                try:
                    result = compute(graph, algorithm, budget=budget, threads=threads, **options)
                except bf.BudgetError as refusal:
                    # More threads may need more buffers, never another answer.
                    needed = refusal.needed_bytes
                    result = compute(graph, algorithm, budget=needed, threads=threads, **options)
                result.write(str(out))
                contents[budget, threads] = out.read_bytes()
    first, *others = contents.values()
    assert all(other == first for other in others)


@pytest.mark.parametrize("name", with_nightly(["r.parquet"], ["r.csv", "r.arrow"]))
def test_same_result_files_from_the_command_line(divided: Path, tmp_path: Path, name: str) -> None:
    contents = []
    for number, options in enumerate(
        (
            ["--threads", 1, "--budget", "150M"],
            ["--threads", 2, "--budget", "200M"],
            ["--threads", 4, "--budget", "1G"],
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        succeed("run", "pagerank", divided, "-o", folder / name, *options, "--quiet")
        contents.append((folder / name).read_bytes())
    assert contents[0] == contents[1] == contents[2]


@pytest.mark.parametrize(
    "kind",
    [
        ["rmat", "--scale", 14, "--edge-factor", 8],
        ["lognormal", "--vertices", 5000, "--mu", 2, "--sigma", 1],
        ["ring", "--vertices", 5000],
    ],
)
def test_same_seed_same_graph(tmp_path: Path, kind: list[object]) -> None:
    contents = []
    for number, options in enumerate(
        (["--threads", 1], ["--threads", 2], ["--threads", 4, "--budget", "110M"])
    ):
        graph = tmp_path / f"{number}.brimful"
        name, *parameters = kind
        succeed("generate", name, graph, *parameters, "--seed", 3, *options, "--quiet")
        contents.append(
            {
                n: (graph / n).read_bytes()
                for n in sorted(names_below(graph))
                if (graph / n).is_file()
            }
        )
    assert contents[0] == contents[1] == contents[2]


def test_another_seed_another_graph(tmp_path: Path) -> None:
    tops = []
    for seed in (0, 1):
        graph = tmp_path / f"{seed}.brimful"
        succeed("generate", "rmat", graph, "--scale", 10, "--seed", seed, "--quiet")
        with bf.Graph.open(graph) as opened:
            tops.append(bf.pagerank(opened).top(5))
    assert tops[0] != tops[1]
