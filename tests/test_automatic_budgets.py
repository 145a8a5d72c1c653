"""Budgets that the user leaves open, under hard limits of the kernel."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from cgroup import hard_limit
from command import BUDGET, brimful, succeed

MIB = 1 << 20


def run_within(limit_mib: int, program: str, *arguments: object) -> str:
    """Run a program in Python under a hard limit, and return its standard output."""
    words = [sys.executable, "-c", program, *map(str, arguments)]
    with hard_limit(limit_mib * MIB) as enter:
        done = subprocess.run(words, preexec_fn=enter, stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0
    return done.stdout


def test_the_automatic_budget_leaves_out_memory_in_use() -> None:
    program = (
        "from brimful.memory import budget_bytes\n"
        f"held = b'x' * {150 * MIB}\n"
        "print(budget_bytes(None))"
    )
    budget = int(run_within(400, program))
    assert (400 - 200) * MIB * 7 // 8 < budget <= (400 - 150) * MIB * 7 // 8


@pytest.mark.parametrize("work", ["to build a graph", "to read a result"])
def test_a_refusal_says_that_the_budget_is_automatic(tmp_path: Path, work: str) -> None:
    graph, ranks = tmp_path / "ring.brimful", tmp_path / "ranks.parquet"
    words: tuple[object, ...] = ("generate", "ring", graph, "--vertices", 1000)
    if work == "to read a result":
        succeed(*words, "--quiet")
        succeed("run", "pagerank", graph, "-o", ranks, "--quiet")
        words = ("top", ranks)
    with hard_limit(64 * MIB) as enter:
        refused = brimful(*words, before=enter)
        of_given = brimful(*words, "--budget", "20M", before=enter)
    assert (refused.code, of_given.code) == (BUDGET, BUDGET)
    assert re.search(rf"the automatic memory budget of \d+M is too small {work}; the", refused.err)
    assert f"a memory budget of 20M is too small {work}" in of_given.err


BEGIN = "import sys, numpy as np, brimful as bf\nfolder = sys.argv[1]\n"
TOGETHER = {
    "boxes": (
        "boxes = [bf.Box(f'{folder}/{n}', 'f8') for n in range(3)]\n"
        "for start in range(0, 16_000_000, 1_000_000):\n"
        "    for box in boxes:\n"
        "        box.extend(np.arange(start, start + 1_000_000, dtype=float))\n"
        "print(sum(len(box) for box in boxes))\n",
        48_000_000,
    ),
    "bags": (
        "bags = [bf.Bag(f'{folder}/{n}', serializer='bytes') for n in range(2)]\n"
        "for _ in range(20):\n"
        "    for bag in bags:\n"
        "        bag.extend([bytes(1000)] * 10_000)\n"
        "print(sum(len(bag) for bag in bags))\n",
        400_000,
    ),
    "sorts": (
        "def batches(seed):\n"
        "    rng = np.random.default_rng(seed)\n"
        "    return (rng.integers(0, 1 << 60, 1 << 20) for _ in range(20))\n"
        "pairs = zip(bf.sort(batches(1)), bf.sort(batches(2)), strict=False)\n"
        "print(sum(len(one) + len(other) for one, other in pairs))\n",
        40 << 20,
    ),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_collections_and_sorts_share_the_automatic_budget(tmp_path: Path, name: str) -> None:
    program, result = TOGETHER[name]
    assert int(run_within(300, BEGIN + program, tmp_path)) == result


def test_a_run_leaves_room_for_open_collections(tmp_path: Path) -> None:
    program = (
        "from brimful.memory import budget_bytes\n"
        "alone = budget_bytes(None)\n"
        "with bf.Box(folder + '/a', 'f8'), bf.Box(folder + '/b', 'f8'):\n"
        "    beside = budget_bytes(None)\n"
        "print(beside / alone, budget_bytes(None) / alone)\n"
    )
    beside, after = map(float, run_within(300, BEGIN + program, tmp_path).split())
    assert beside == pytest.approx((7 / 8) ** 2, rel=0.02)
    assert after == pytest.approx(1, rel=0.02)


def table_of_edges(path: Path, vertices: int, edges: int) -> None:
    """Write edges in a random order to an Arrow file of large batches."""
    rng = np.random.default_rng(3)
    ends = {end: rng.integers(0, vertices, edges) for end in ("source", "target")}
    table = pa.table(ends | {"weight": rng.random(edges), "year": rng.integers(0, 30, edges)})
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=1_000_000)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("limit_mib", "options", "works"),
    [
        (200, "weight='weight'", False),
        (300, "weight='weight'", True),
        (300, "weight='weight', edge_columns=['year']", False),
        (600, "weight='weight', edge_columns=['year']", True),
    ],
)
def test_the_automatic_budget_in_python_leaves_room_for_packages(
    tmp_path: Path, limit_mib: int, options: str, works: bool
) -> None:
    edges = tmp_path / "edges.arrow"
    table_of_edges(edges, 3_000_000, 8_000_000)
    program = (
        "import sys, brimful as bf\n"
        "try:\n"
        f"    print(bf.read(sys.argv[1], {options}).edges)\n"
        "except bf.BudgetError as error:\n"
        "    print(error)\n"
    )
    printed = run_within(limit_mib, program, edges)
    assert ("8000000" if works else "the smallest that works is") in printed


def test_a_join_in_python_is_refused_before_packages_fill_the_limit(tmp_path: Path) -> None:
    table_of_edges(tmp_path / "edges.arrow", 10, 20)
    program = (
        "import sys, brimful as bf\n"
        "edges = sys.argv[1] + '/edges.arrow'\n"
        "try:\n"
        "    bf.read(edges, weight='weight', edge_columns=['year'])\n"
        "except bf.BudgetError as error:\n"
        "    print('refused', 'duckdb' in sys.modules)\n"
    )
    assert run_within(250, program, tmp_path) == "refused False\n"
    assert not (tmp_path / "edges.arrow.brimful").exists()
