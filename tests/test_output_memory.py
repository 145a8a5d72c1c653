"""Results, exports and `--top` in a hard memory limit equal to the budget, however long ids are."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from brimful.io.output import write_table
from brimful.tables import parquet_pages
from cgroup import hard_limit
from command import BUDGET, DONE, brimful, smallest, succeed
from nightly import rows_with_nightly, with_nightly

MIB = 1 << 20

pytestmark = pytest.mark.slow


def named_graph(folder: Path, length: int, vertices: int) -> Path:
    """Make a ring of `vertices` vertices whose ids have `length` bytes."""
    text, out = folder / f"{length}.txt", folder / f"{length}.brimful"
    with text.open("w") as file:
        for number in range(vertices):
            ends = (number * 7919 % vertices, (number + 1) * 7919 % vertices)
            # Front coding finds nothing in common.
            file.write("\t".join(f"{end:08d}".ljust(length, "x")[::-1] for end in ends) + "\n")
    succeed("import", text, out, "--ids", "string", "--no-header", "--quiet")
    text.unlink()
    return out


def within(limit_mib: int, *arguments: object) -> None:
    """Run a command with a budget, and a hard limit, of so many MiB."""
    with hard_limit(limit_mib * MIB) as enter:
        words = [*arguments, "--budget", f"{limit_mib}M", "--json", "--quiet"]
        figures = succeed(*words, before=enter).figures
    assert figures["peak_rss_bytes"] <= limit_mib * MIB


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("long")


@pytest.mark.parametrize(
    ("length", "vertices"),
    rows_with_nightly([(200, 140_000)], [(200, 280_000), (400, 250_000), (10_000, 8_000)]),
)
def test_long_ids_are_written_in_little_memory(folder: Path, length: int, vertices: int) -> None:
    graph = named_graph(folder, length, vertices)
    for suffix in ("parquet", "arrow"):
        out = folder / f"out.{suffix}"
        within(160, "run", "connected_components", graph, "-o", out, "--overwrite")
        within(160, "run", "degrees", graph, "-o", out, "--overwrite")
        within(164, "export", graph, out, "--overwrite")
    groups = pq.ParquetFile(folder / "out.parquet").metadata
    sizes = [groups.row_group(at).total_byte_size for at in range(groups.num_row_groups)]
    assert groups.num_rows == vertices and max(sizes) <= 20 * MIB
    with pa.ipc.open_file(folder / "out.arrow") as batches:
        assert (
            max(batches.get_batch(at).nbytes for at in range(batches.num_record_batches)) < 4 * MIB
        )
    within(80, "run", "connected_components", graph, "-o", folder / "out.csv", "--overwrite")
    parent = ("--source", "00000000".ljust(length, "x")[::-1], "--param", "values=parent")
    within(80, "run", "bfs", graph, *parent, "-o", folder / "parents.csv", "--overwrite")
    within(100, "export", graph, folder / "out.txt", "--overwrite")


def test_a_budget_too_small_for_tables_is_refused_before_pyarrow_is_loaded(tmp_path: Path) -> None:
    graph = tmp_path / "g.brimful"
    succeed("generate", "rmat", graph, "--scale", 10, "--edge-factor", 4, "--quiet")
    out = tmp_path / "out.parquet"
    for words in (["export", graph, out], ["run", "degrees", graph, "-o", out]):
        with hard_limit(36 * MIB) as enter:
            outcome = brimful(*words, "--budget", "36M", "--quiet", before=enter)
        assert outcome.code == BUDGET, outcome.err
        named = re.search(r"smallest that works is (\d+)M", outcome.err)
        assert named is not None, outcome.err
        with hard_limit(int(named[1]) * MIB) as enter:
            succeed(*words, "--budget", f"{named[1]}M", "--quiet", "--overwrite", before=enter)
        out.unlink()


@pytest.mark.nightly
def test_millions_of_top_rows_take_little_memory(tmp_path: Path) -> None:
    graph = tmp_path / "g.brimful"
    succeed("generate", "rmat", graph, "--scale", 20, "--edge-factor", 2, "--quiet")
    within(80, "run", "degrees", graph, "--top", 4_000_000)


@pytest.fixture(scope="module")
def mixed(folder: Path) -> Path:
    """A graph of hubs whose ids have from 10 bytes to 10 kB."""
    rng = random.Random(5)
    names = []
    for number in range(8000):
        length = 10 if number % 4 == 0 else 10_000 if number % 50 == 1 else rng.randint(100, 10_000)
        word = f"{number:08d}"[::-1] + f"{rng.getrandbits(64):x}"
        names.append((word * (length // len(word) + 1))[: max(length, 10)])
    text, out = folder / "mixed.txt", folder / "mixed.brimful"
    with text.open("w") as file:
        for hub in (0, 1, 2, 51):
            file.writelines(f"{names[hub]}\t{name}\n" for name in rng.sample(names, 1500))
        ring = range(len(names))
        file.writelines(f"{names[at]}\t{names[(at * 7919 + 1) % len(names)]}\n" for at in ring)
    words = ["--ids", "string", "--no-header", "--index", "in,reverse", "--quiet"]
    succeed("import", text, out, *words)
    text.unlink()
    return out


@pytest.mark.parametrize(
    "algorithm", with_nightly(["scc", "bfs"], ["connected_components", "pagerank"])
)
def test_long_names_fit_60_mib_or_are_refused_at_once(
    folder: Path, mixed: Path, algorithm: str
) -> None:
    words = ["run", algorithm, mixed, "--quiet"]
    if algorithm == "bfs":
        top = succeed("run", "degrees", mixed, "--top", 1, "--quiet").out
        hub = top.splitlines()[-1].split("\t")[0]
        words += ["--param", "values=parent", "--source", hub]
    csv, parquet = (["-o", folder / f"{algorithm}.{suffix}"] for suffix in ("csv", "parquet"))
    for rest in (["--top", 1000], csv):
        with hard_limit(60 * MIB) as enter:
            succeed(*words, *rest, "--budget", "60M", before=enter)
    with hard_limit(60 * MIB) as enter:
        outcome = brimful(*words, *parquet, "--budget", "60M", before=enter)
    assert outcome.code == BUDGET, outcome.err
    named = re.search(r"smallest that works is (\d+)M", outcome.err)
    assert named is not None, outcome.err
    with hard_limit(int(named[1]) * MIB) as enter:
        succeed(*words, *parquet, "--budget", f"{named[1]}M", before=enter)


@pytest.mark.nightly
@pytest.mark.parametrize("suffix", ["parquet", "csv", "arrow"])
def test_long_columns_of_edges_keep_to_the_budget(tmp_path: Path, suffix: str) -> None:
    rows = 20_000
    # A few bytes of a Parquet file repeat the text, which takes 400 MB in all.
    texts = pa.array(["long" * 5_000]).take(pa.array([0] * rows))
    ends = {"source": range(rows), "target": [row * 7 % rows for row in range(rows)]}
    table = pa.table({name: list(ids) for name, ids in ends.items()} | {"text": texts})
    path, graph, out = (tmp_path / f"e.{kind}" for kind in (suffix, "brimful", "out.parquet"))
    write_table(lambda: table, str(path), overwrite=False)
    words = ["import", path, graph, "--edge-columns", "text", "--quiet"]
    for mib, code in ((328, BUDGET), (1000, DONE)):
        with hard_limit(mib * MIB) as enter:
            outcome = brimful(*words, "--budget", f"{mib}M", before=enter)
        assert outcome.code == code, outcome.err
    words = ["export", graph, out, "--columns", "text"]
    within(int(smallest(*words).removesuffix("M")), *words)
    groups = pq.ParquetFile(out).metadata
    largest = max(groups.row_group(at).num_rows for at in range(groups.num_row_groups))
    assert largest * 20_000 <= 20 * MIB
    assert pq.read_table(out, columns=["text"]).num_rows == rows


def test_a_record_batch_of_a_table_to_join_counts_against_the_budget(tmp_path: Path) -> None:
    graph, table = tmp_path / "g.brimful", tmp_path / "t.arrow"
    succeed("generate", "chain", graph, "--vertices", 10_000, "--quiet")
    # 200 MB in all.
    texts = pa.array(["long" * 5_000]).take(pa.array([0] * 10_000))
    rows = pa.table({"vertex": list(range(10_000)), "text": texts})
    with pa.ipc.new_file(table, rows.schema) as writer:
        writer.write_table(rows)
    for words in (["columns", graph, table], ["run", "degrees", graph, "--join", table]):
        if words[0] == "run":
            words += ["-o", tmp_path / "out.parquet"]
        with hard_limit(500 * MIB) as enter:
            outcome = brimful(*words, "--budget", "500M", "--quiet", before=enter)
        assert outcome.code == BUDGET, outcome.err
        assert "smallest that works" in outcome.err


def test_long_columns_of_vertices_are_written_in_little_memory(tmp_path: Path) -> None:
    graph, table = tmp_path / "g.brimful", tmp_path / "t.parquet"
    succeed("generate", "chain", graph, "--vertices", 20_000, "--quiet")
    texts = pa.array(["long" * 5_000]).take(pa.array([0] * 20_000))
    rows = pa.table({"vertex": list(range(20_000)), "text": texts})
    write_table(lambda: rows, str(table), overwrite=False)
    succeed("columns", graph, table, "--quiet")
    for suffix in ("parquet", "csv", "arrow"):
        words = ["columns", graph, "-o", tmp_path / f"out.{suffix}", "--quiet"]
        least = smallest(*words)
        with hard_limit(int(least.removesuffix("M")) * MIB) as enter:
            succeed(*words, "--budget", least, before=enter)


def test_the_budget_named_for_rows_of_long_texts_is_enough(tmp_path: Path) -> None:
    graph, table = tmp_path / "g.brimful", tmp_path / "t.parquet"
    succeed("generate", "chain", graph, "--vertices", 4_000, "--quiet")
    texts = [f"{row} " * 1_000 for row in range(4_000)]
    pq.write_table(pa.table({"vertex": list(range(4_000)), "text": texts}), table)
    succeed("columns", graph, table, "--quiet")
    out = tmp_path / "out.parquet"
    for words in (["columns", graph], ["run", "degrees", graph, "--with", "text"]):
        words += ["-o", out, "--overwrite"]
        within(int(smallest(*words).removesuffix("M")), *words)


@pytest.mark.parametrize("names", [None, ["ids", "c7"], []])
def test_needs_of_columns_are_known_without_pyarrow(
    tmp_path: Path, names: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first row groups suffice.
    monkeypatch.setattr(parquet_pages, "_READ_BYTES", 1 << 10)
    path = tmp_path / "wide.parquet"
    numbers = {f"c{at}": range(at, at + 40) for at in range(100)}
    rows = {"ids": [{"own": at, "all": [at]} for at in range(40)], **numbers}
    pq.write_table(pa.table(rows), path, row_group_size=20)
    group = pq.read_metadata(path).row_group(0)
    chunks = [group.column(at) for at in range(group.num_columns)]
    chosen = [one for one in chunks if names is None or one.path_in_schema.split(".")[0] in names]
    needs = parquet_pages.known_group_needs(str(path), names)
    assert needs is not None
    assert needs.footer_bytes == int.from_bytes(path.read_bytes()[-8:-4], "little")
    assert needs.columns == len(chosen)
    assert needs.group_bytes == sum(one.total_uncompressed_size for one in chosen)


def test_a_report_on_a_graph_with_columns_counts_their_reader(tmp_path: Path) -> None:
    graph, table = tmp_path / "g.brimful", tmp_path / "t.csv"
    succeed("generate", "chain", graph, "--vertices", 100, "--quiet")
    words = ["info", graph, "--html", tmp_path / "out.html"]
    before = int(smallest(*words).removesuffix("M"))
    table.write_text("vertex,year\n1,2000\n")
    succeed("columns", graph, table, "--quiet")
    assert int(smallest(*words).removesuffix("M")) >= before + 8
