"""The example pairs: size-oblivious differs from in-memory by nine lines at most, and agrees."""

from __future__ import annotations

import ast
import difflib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from bench import infinimem

import brimful as bf

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
#: What the paper's Table 1 claims.
MAX_LINES = 9


def numbers(path: Path, count: int, most: int, seed: int) -> str:
    np.random.default_rng(seed).integers(0, most, count, dtype="u8").tofile(path)
    return str(path)


def run(name: str, *arguments: str) -> str:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    "name",
    ["frequency", "membership", "bloom", "mesh", "text_search", "pagerank", "components"],
)
def test_a_pair_differs_by_few_lines(name: str) -> None:
    before = (EXAMPLES / f"{name}_in_memory.py").read_text().splitlines()
    after = (EXAMPLES / f"{name}.py").read_text().splitlines()
    changes = [line for line in difflib.ndiff(before, after) if line[0] in "+-"]
    added, removed = (sum(line[0] == sign for line in changes) for sign in "+-")
    assert 1 <= max(added, removed) <= MAX_LINES, "\n".join(changes)


def test_without_arguments_an_example_prints_its_usage() -> None:
    programs = [path for path in EXAMPLES.glob("*.py") if "def main(" in path.read_text()]
    assert len(programs) >= 10
    for path in programs:
        done = subprocess.run(
            [sys.executable, path.name], cwd=EXAMPLES, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1 and done.stderr.startswith(f"usage: {path.name} "), done.stderr
        assert done.stderr.count("\n") == 1


def test_frequency(tmp_path: Path) -> None:
    path = numbers(tmp_path / "numbers", 300_000, 5000, 1)
    assert run("frequency.py", path) == run("frequency_in_memory.py", path)


def test_membership(tmp_path: Path) -> None:
    known, asked = (numbers(tmp_path / f"{seed}", 200_000, 400_000, seed) for seed in (1, 2))
    assert run("membership.py", known, asked) == run("membership_in_memory.py", known, asked)


def test_bloom(tmp_path: Path) -> None:
    known, asked = (numbers(tmp_path / f"{seed}", 200_000, 2**60, seed) for seed in (1, 2))
    for program in ("bloom.py", "bloom_in_memory.py"):
        assert int(run(program, known, asked)) < 200_000 * 0.013
    assert run("bloom.py", known, known).strip() == "200000"


def test_mesh(tmp_path: Path) -> None:
    arguments = (str(tmp_path / "mesh"), "20000", "7")
    assert run("mesh.py", *arguments) == run("mesh_in_memory.py", *arguments)


def test_text_search(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text(
        "".join(f"line {n} is {'näive' if n % 7 == 0 else 'plain'}\n" for n in range(20_000))
    )
    arguments = (str(path), "näive")
    assert run("text_search.py", *arguments) == run("text_search_in_memory.py", *arguments)


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[bf.Graph]:
    """An undirected graph without parallel edges, some of whose vertices have no edges."""
    random = np.random.default_rng(5)
    ends = np.unique(np.sort(random.integers(0, 700, (600, 2)), axis=1), axis=0)
    ends = ends[ends[:, 0] < ends[:, 1]]
    neighbors: list[list[int]] = [[] for _ in range(700)]
    for source, target in ends.tolist():
        neighbors[source].append(target)
        neighbors[target].append(source)
    lines = (" ".join(map(str, some)) + "\n" for some in neighbors)
    (tmp_path / "neighbors").write_text("".join(lines))
    table = {"source": ends[:, 0], "target": ends[:, 1]}
    with bf.Graph.from_arrow(pa.table(table), undirected=True) as graph:
        yield graph


def test_pagerank(graph: bf.Graph, tmp_path: Path) -> None:
    path = str(tmp_path / "neighbors")
    printed = run("pagerank.py", path, "12")
    assert printed == run("pagerank_in_memory.py", path, "12")
    ranks = bf.pagerank(graph, variant="unnormalized", tolerance=0, max_supersteps=12)
    expected = ranks.top(3)
    for (vertex, rank), (own, value) in zip(ast.literal_eval(printed), expected, strict=True):
        assert vertex == own and rank == pytest.approx(value, abs=1e-8)


def test_components(graph: bf.Graph, tmp_path: Path) -> None:
    path = str(tmp_path / "neighbors")
    printed = run("components.py", path)
    assert printed == run("components_in_memory.py", path)
    components = len(set(bf.connected_components(graph).values()))
    assert printed.split() == ["700", str(components + 700 - len(graph))]


@pytest.mark.parametrize("program", infinimem.PROGRAMS)
def test_programs_in_rust_differ_by_few_lines(program: str) -> None:
    before = infinimem.function(program, "in_memory")
    for representation in ("decoupled", "coupled"):
        after = infinimem.function(program, representation)
        assert 1 <= infinimem.differing(before, after) <= MAX_LINES
