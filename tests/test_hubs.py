"""Stores and a vertex of very many edges: budgets that errors name work, under a hard limit."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cgroup import hard_limit
from command import BUDGET, DONE, brimful, succeed
from nightly import rows_with_nightly

MIB = 1 << 20
#: Edges of the hub.
DEGREE = 1_200_000


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ring whose vertex 0 has edges to all others."""
    return wheel(tmp_path_factory.mktemp("hub"), outwards=True)


@pytest.fixture(scope="module")
def sink(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ring whose vertex 0 has edges from all others."""
    return wheel(tmp_path_factory.mktemp("sink"), outwards=False)


def wheel(folder: Path, *, outwards: bool) -> Path:
    """Make a ring whose vertex 0 has an edge to, or from, every other."""
    others = np.arange(1, DEGREE, dtype=np.uint32)
    ring = np.stack([others - 1, others], axis=1)
    ends = (np.zeros_like(others), others)
    spokes = np.stack(ends if outwards else ends[::-1], axis=1)
    np.concatenate([ring, spokes]).tofile(folder / "edges.u32")
    graph = folder / "hub.brimful"
    succeed("import", folder / "edges.u32", graph, "--index", "in,reverse", "--quiet")
    return graph


def at_named_budgets(graph: Path, first: int, *arguments: object) -> None:
    """Run at `first` MiB, and if that is refused at the budget named, each a hard limit."""
    limit_mib = first
    for _ in range(2):
        with hard_limit(limit_mib * MIB) as enter:
            outcome = brimful(
                "run", *arguments, "--budget", f"{limit_mib}M", "--quiet", before=enter
            )
        if outcome.code == DONE:
            return
        assert outcome.code == BUDGET, outcome.err
        match = re.search(r"smallest that works is (\d+)M", outcome.err)
        assert match is not None, outcome.err
        limit_mib = int(match[1])
    raise AssertionError(f"the budget that was named is refused: {outcome.err}")


SHORT = ["--max-supersteps", 2, "--tolerance", 0]


@pytest.mark.slow
@pytest.mark.parametrize(("store", "first"), rows_with_nightly([("bytes", 90)], [("memory", 44)]))
def test_a_hub_fits_the_budget_that_is_named(hub: Path, store: str, first: int) -> None:
    at_named_budgets(hub, first, "pagerank", hub, "--store", store, *SHORT)


@pytest.mark.slow
@pytest.mark.parametrize("store", ["memory", "bytes"])
def test_a_star_fits_the_budget_that_is_named(tmp_path: Path, store: str) -> None:
    """Vertices without edges of their own take more than their edges."""
    leaves = np.arange(1, 300_001, dtype=np.uint32)
    np.stack([np.zeros_like(leaves), leaves], axis=1).tofile(tmp_path / "edges.u32")
    graph = tmp_path / "star.brimful"
    succeed("import", tmp_path / "edges.u32", graph, "--quiet")
    at_named_budgets(graph, 44, "pagerank", graph, "--store", store, *SHORT)


@pytest.mark.nightly
@pytest.mark.parametrize("first", [60, 300, 450])
@pytest.mark.parametrize("store", ["memory", "bytes"])
def test_a_sink_fits_the_budget_that_is_named(sink: Path, store: str, first: int) -> None:
    at_named_budgets(sink, first, "pagerank", sink, "--store", store, *SHORT)


@pytest.mark.nightly
@pytest.mark.parametrize("algorithm", ["pagerank", "connected_components"])
def test_a_hub_on_disk_fits_the_budget_that_is_named(
    hub: Path, tmp_path: Path, algorithm: str
) -> None:
    store = f"file:{tmp_path / 'store'}"
    at_named_budgets(hub, 60, algorithm, hub, "--store", store, "--max-supersteps", 2)


@pytest.fixture(scope="module", params=["sparse", "dense", "weighted"])
def drawn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random graph, with few or many edges for each vertex, or with weights."""
    folder = tmp_path_factory.mktemp("drawn")
    rng = np.random.default_rng(1)
    vertices, edges = {"sparse": (200_000, 1_500_000), "dense": (2_000, 1_500_000)}.get(
        request.param, (100_000, 600_000)
    )
    table = {name: rng.integers(0, vertices, edges) for name in ("source", "target")}
    if request.param == "weighted":
        table["weight"] = rng.random(edges)
    pq.write_table(pa.table(table), folder / "edges.parquet")
    graph = folder / "drawn.brimful"
    succeed("import", folder / "edges.parquet", graph, "--index", "in,reverse", "--quiet")
    return graph


@pytest.mark.nightly
@pytest.mark.parametrize("cache", [None, "lru:1000"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("store", ["memory", "bytes", "file", "kv"])
@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        ("pagerank", SHORT),
        ("hits", ["--max-supersteps", 2]),
        ("sssp", ["--source", 1, "--max-supersteps", 4]),
        ("degrees", []),
    ],
)
def test_the_budget_that_a_store_names_works(
    drawn: Path,
    tmp_path: Path,
    algorithm: str,
    options: list[object],
    store: str,
    threads: int,
    cache: str | None,
) -> None:
    url = store if store in ("memory", "bytes") else f"{store}:{tmp_path / 'store'}"
    more = [] if cache is None else ["--cache", cache]
    for first in (44, 60, 90):
        at_named_budgets(
            drawn, first, algorithm, drawn, *options, "--store", url, "--threads", threads, *more
        )


@pytest.mark.nightly
def test_a_report_that_draws_a_hub_fits_the_budget_that_is_named(hub: Path, tmp_path: Path) -> None:
    at_named_budgets(hub, 100, "degrees", hub, "--report", tmp_path / "report.html")
