"""The budget against the kernel: the real command inside a cgroup limited to its own budget."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import pytest

from cgroup import hard_limit
from command import BUDGET, brimful, refuse, smallest, succeed
from nightly import with_nightly

MIB = 1 << 20
LIMIT = "96M"
#: Bytes of a graph that cannot be in memory as a whole within these limits.
LARGE = 64 * MIB
#: Where pyarrow reads or writes in the same process.
TABLE_LIMIT = "160M"


def limited(limit: str, *arguments: object) -> dict[str, object]:
    """Run a command under a hard limit equal to its budget; return its JSON figures."""
    limit_bytes = int(limit.removesuffix("M")) * MIB
    with hard_limit(limit_bytes) as enter:
        outcome = succeed(*arguments, "--budget", limit, "--json", before=enter)
    assert outcome.figures["peak_rss_bytes"] <= limit_bytes
    return outcome.figures


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of 42 M edges, more than the limits here leave besides the process; made in one."""
    graph = tmp_path_factory.mktemp("memory") / "rmat21.brimful"
    options = ["--scale", 21, "--edge-factor", 20]
    figures = limited(LIMIT, "generate", "rmat", graph, *options)
    assert figures["bytes_on_disk"] > LARGE
    return graph


@pytest.mark.slow
@pytest.mark.parametrize("name", with_nightly(["r.csv"], [None, "r.parquet", "r.arrow"]))
def test_pagerank_within_its_limit(large: Path, tmp_path: Path, name: str | None) -> None:
    options = [] if name is None else ["-o", tmp_path / name]
    steps = ["--tolerance", 0, "--max-supersteps", 3]
    limit = TABLE_LIMIT if name in ("r.parquet", "r.arrow") else LIMIT
    figures = limited(limit, "run", "pagerank", large, *steps, *options)
    assert figures["supersteps"] == 3
    assert name is None or (tmp_path / name).stat().st_size > 1000


@pytest.mark.nightly
def test_components_within_their_limit(large: Path) -> None:
    assert limited(LIMIT, "run", "connected_components", large)["converged"] is True


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    with_nightly(["u32"], ["parquet", "txt", "csv"]),
)
def test_export_and_import_within_their_limit(large: Path, tmp_path: Path, kind: str) -> None:
    out, again = tmp_path / f"e.{kind}", tmp_path / "again.brimful"
    limit = TABLE_LIMIT if kind == "parquet" else LIMIT
    # Isolated vertices have no place in pairs and CSV.
    lossy = ["--lossy"] if kind in ("u32", "csv") else []
    assert limited(limit, "export", large, out, *lossy)["edges"] == 20 << 21
    figures = limited(limit, "import", out, again)
    assert figures["edges"] == 20 << 21
    assert figures["bytes_on_disk"] > LARGE


@pytest.mark.nightly
def test_lognormal_and_undirected_within_their_limit(tmp_path: Path) -> None:
    options = ["--vertices", 300_000, "--undirected"]
    figures = limited(LIMIT, "generate", "lognormal", tmp_path / "g.brimful", *options)
    assert figures["bytes_on_disk"] > LARGE


# test_smallest.py has every algorithm, and test_inputs.py imports and generators, every day.
@pytest.mark.nightly
@pytest.mark.parametrize(
    "words", ["pagerank r.parquet", "pagerank r.arrow", "connected_components r.csv"]
)
def test_the_smallest_budget_named_works(large: Path, tmp_path: Path, words: str) -> None:
    algorithm, name = words.split()
    run = ["run", algorithm, large, "--max-supersteps", 2, "-o", tmp_path / name]
    limited(smallest(*run), *run)


@pytest.mark.nightly
def test_the_smallest_budget_named_for_an_import_works(tmp_path: Path) -> None:
    lines = "".join(f"{n} {n * 7919 % 500_009}\n" for n in range(1_000_000))
    (tmp_path / "a.txt").write_text(lines)
    (tmp_path / "a.csv").write_text("a,b\n" + lines.replace(" ", ","))
    for name in ("a.txt", "a.csv"):
        arguments = ["import", tmp_path / name, tmp_path / f"{name}.brimful"]
        budget = smallest(*arguments)
        assert int(budget.removesuffix("M")) <= 192
        assert limited(budget, *arguments)["edges"] == 1_000_000


@pytest.mark.nightly
def test_the_smallest_budget_named_for_a_generator_works(tmp_path: Path) -> None:
    arguments = ["generate", "rmat", tmp_path / "g.brimful", "--scale", 18]
    budget = smallest(*arguments)
    assert int(budget.removesuffix("M")) <= 128
    limited(budget, *arguments)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", with_nightly([["--duplicates", "sum"]], [[], ["--index", "in,reverse"]])
)
def test_one_edge_repeated_within_its_limit(tmp_path: Path, options: list[str]) -> None:
    pairs, bomb, parts = tmp_path / "a.u32", tmp_path / "a.txt.gz", 6
    with pairs.open("wb") as file:
        for _ in range(parts):
            file.write(struct.pack("<II", 5, 6) * (1 << 20))
    with gzip.open(bomb, "wb", 6) as packed:
        for _ in range(parts):
            packed.write(b"5 6\n" * (1 << 20))
    for number, path in enumerate((pairs, bomb)):
        arguments = ["import", path, tmp_path / f"{number}.brimful", *options]
        figures = limited(smallest(*arguments), *arguments)
        assert figures["duplicates"] == (parts << 20) - 1
        assert figures["bytes_on_disk"] < 4 << 20


def test_auto_reads_the_limit_of_the_cgroup(rmat: Path) -> None:
    with hard_limit(400 * MIB) as enter:
        outcome = brimful("run", "pagerank", rmat, "--json", before=enter)
    assert outcome.code == 0, outcome.err
    assert outcome.figures["budget_bytes"] == 300 * MIB


def test_one_byte_less_than_the_smallest_is_refused(rmat: Path) -> None:
    budget = int(smallest("run", "pagerank", rmat).removesuffix("M"))
    succeed("run", "pagerank", rmat, "--budget", f"{budget}M", "--quiet")
    refuse(BUDGET, "run", "pagerank", rmat, "--budget", f"{budget - 2}M", "--quiet")
