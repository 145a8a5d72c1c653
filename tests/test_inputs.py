"""Inputs that are hard on memory: long lines, bombs, long names; budgets too small to begin with.

Whatever is read runs in a cgroup limited to the command's own budget.
"""

from __future__ import annotations

import gzip
import lzma
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import brimful as bf
from cgroup import hard_limit
from command import (
    BRIMFUL,
    BUDGET,
    INPUT,
    IO,
    USAGE,
    brimful,
    names_below,
    refuse,
    smallest,
    succeed,
    write_edges,
)
from nightly import rows_with_nightly, with_nightly

MIB = 1 << 20


def limited(budget: str, *arguments: object) -> dict[str, object]:
    """Run a command under a hard limit of its budget; return its figures."""
    with hard_limit(int(budget.removesuffix("M")) * MIB) as enter:
        return succeed(*arguments, "--budget", budget, "--json", before=enter).figures


def refused(code: int, budget: str, *arguments: object, limit: str | None = None) -> str:
    """Insist that a command is refused with `code`, under a hard limit; return the sentence."""
    with hard_limit(int((limit or budget).removesuffix("M")) * MIB) as enter:
        return refuse(code, *arguments, "--budget", budget, "--quiet", before=enter)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of texts of one line, or of no line but blank ones."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "digits.txt").write_bytes(b"7" * (100 * MIB))
    (folder / "blanks.txt").write_bytes(b" " * (100 * MIB))
    with (folder / "zeros.txt").open("wb") as file:
        file.truncate(1 << 30)
    with (folder / "ids.txt").open("wb") as file:
        for start in range(0, 4_000_000, 100_000):
            file.write(b" ".join(b"%d" % n for n in range(start, start + 100_000)) + b" ")
    with gzip.open(folder / "digits.txt.gz", "wb", 1) as packed:
        packed.write(b"7" * (100 * MIB))
    return folder


@pytest.mark.parametrize(
    ("name", "format_name"),
    [
        ("digits.txt", ""),
        ("zeros.txt", "edgelist"),
        ("ids.txt", "edgelist"),
        ("digits.txt.gz", ""),
        ("ids.txt", "adjacency"),
        ("ids.txt", "metis"),
        ("ids.txt", "mtx"),
        ("ids.txt", "dimacs"),
        ("ids.txt", "jlg"),
        ("digits.txt", "adjacency-ids"),
    ],
)
def test_a_line_without_an_end_is_refused_where_it_is(
    hostile: Path, tmp_path: Path, name: str, format_name: str
) -> None:
    path = hostile / name
    command: list[object] = ["import", path, tmp_path / "g.brimful"]
    command += ["--format", format_name] if format_name else []
    sentence = refused(INPUT, smallest(*command), *command)
    assert f"{path}:1:1: " in sentence
    assert names_below(tmp_path) == set()


def test_four_million_neighbors_on_a_line(hostile: Path, tmp_path: Path) -> None:
    command = ["import", hostile / "ids.txt", tmp_path / "g.brimful", "--format", "adjacency-ids"]
    assert limited(smallest(*command), *command)["edges"] == 3_999_999


@pytest.mark.parametrize("opened", [gzip.open, lzma.open])
def test_blank_lines_in_an_archive_are_looked_at_in_little_memory(
    tmp_path: Path, opened: Callable[..., gzip.GzipFile]
) -> None:
    path = tmp_path / f"blank.txt.{'gz' if opened is gzip.open else 'xz'}"
    with opened(path, "wb") as packed:
        packed.write(b"\n" * (10 * MIB))
    command = ["import", path, tmp_path / "g.brimful"]
    # There is no room for the lines of a sample as objects.
    refused(BUDGET, "30M", *command)
    assert "contains no edges" in refused(INPUT, smallest(*command), *command)


@pytest.mark.parametrize("preset", [6, 9])
def test_the_window_of_an_archive_is_in_the_budget(tmp_path: Path, preset: int) -> None:
    text = "".join(f"{n} {n * 7 % 100_000}\n" for n in range(100_000)).encode()
    path = tmp_path / "a.txt.xz"
    path.write_bytes(lzma.compress(text, preset=preset))
    command = ["import", path, tmp_path / "g.brimful"]
    budget = smallest(*command)
    assert limited(budget, *command)["edges"] == 100_000
    # The window of preset 9 has 64 MiB, that of preset 6 has 8.
    assert (int(budget.removesuffix("M")) > 150) == (preset == 9)


def test_the_sample_of_an_archive_counts_its_lines(tmp_path: Path) -> None:
    from brimful.io.sampling import sizes_of_inputs
    from brimful.options.imports import import_options

    lines = "".join(f"{n} {n * 7 % 100_000}\n" for n in range(100_000))
    (tmp_path / "a.txt").write_text(lines)
    with gzip.open(tmp_path / "a.txt.gz", "wt") as packed:
        packed.write(lines)
    for name in ("a.txt", "a.txt.gz"):
        found = sizes_of_inputs([str(tmp_path / name)], import_options())
        assert found is not None
        assert 90_000 < found.sizes.edges < 110_000, name


def repeated_names(path: Path, length: int, rows: int, *, dictionary: bool) -> Path:
    """Write rows of few different long names."""
    names = [chr(97 + n) * length for n in range(20)]
    ends = [[names[n % 20] for n in range(rows)], [names[(n * 7 + 3) % 20] for n in range(rows)]]
    table = pa.table(dict(zip(("source", "target"), ends, strict=True)))
    pq.write_table(table, path, use_dictionary=dictionary, compression="zstd")
    return path


@pytest.mark.parametrize(
    ("length", "rows", "dictionary"),
    rows_with_nightly([(10_000, 20_000, True)], [(60_000, 4000, False)]),
)
def test_long_names_in_parquet(tmp_path: Path, length: int, rows: int, dictionary: bool) -> None:
    path = repeated_names(tmp_path / "names.parquet", length, rows, dictionary=dictionary)
    assert path.stat().st_size < MIB
    command = ["import", path, tmp_path / "g.brimful"]
    # The pages that are not small count, and nothing is read before.
    sentence = refused(BUDGET, "64M", *command)
    budget = sentence.rsplit(" ", 1)[1]
    assert limited(budget, *command)["edges"] == rows


def test_a_name_too_long_in_parquet_is_refused(tmp_path: Path) -> None:
    path = repeated_names(tmp_path / "names.parquet", 600_000, 300, dictionary=True)
    command = ["import", path, tmp_path / "g.brimful"]
    refused(INPUT, refused(BUDGET, "64M", *command).rsplit(" ", 1)[1], *command)


def test_one_name_too_long_among_many_short_ones_in_parquet_is_refused(tmp_path: Path) -> None:
    # The average name is short; a batch that repeats the long one would take 1.3 GB a column.
    pool = pa.array([f"u{n}" for n in range(2000)] + ["x" * 10_000_000])
    rows = pa.array([2000 if n % 2 else n % 2001 for n in range(100_000)], pa.int32())
    ends = pa.DictionaryArray.from_arrays(rows, pool)
    path = tmp_path / "names.parquet"
    limit = {"dictionary_pagesize_limit": 64 * MIB}
    pq.write_table(pa.table({"source": ends, "target": ends}), path, **limit)
    command = ["import", path, tmp_path / "g.brimful"]
    sentence = refused(INPUT, refused(BUDGET, "64M", *command).rsplit(" ", 1)[1], *command)
    assert f'found "{"x" * 40}"...;' in sentence


def test_headers_of_pages_are_read(tmp_path: Path) -> None:
    from brimful.tables.parquet_pages import footer_chunks, page_at, pages_of

    path, names = tmp_path / "a.parquet", [f"vertex {n}" * 40 for n in range(20_000)]
    for settings in (
        {"use_dictionary": False, "data_page_version": "2.0", "write_page_checksum": True},
        {"use_dictionary": True, "compression": "gzip", "write_statistics": True},
    ):
        pq.write_table(pa.table({"a": names, "b": range(20_000)}), path, **settings)
        metadata = pq.read_metadata(path)
        with pa.OSFile(str(path), "rb") as raw:
            for column in range(2):
                chunk = metadata.row_group(0).column(column)
                pages = list(pages_of(raw, chunk))
                assert sum(p.header + p.compressed for p in pages) == chunk.total_compressed_size
                assert (
                    sum(p.header + p.uncompressed for p in pages) == chunk.total_uncompressed_size
                )
                values = pages[1:] if chunk.has_dictionary_page else pages
                assert sum(page.values for page in values) == 20_000
                own = (footer_chunks(raw) or [])[column]
                assert all(getattr(own, name) == getattr(chunk, name) for name in vars(own))
            with pytest.raises(ValueError, match="no page at byte 0"):
                page_at(raw, 0)
            with pytest.raises(ValueError, match="no page at byte"):
                page_at(raw, path.stat().st_size - 4)


@pytest.mark.parametrize("budget", with_nightly(["1", "24M"], ["4M", "16M"]))
def test_a_budget_far_too_small_is_refused_before_anything_is_loaded(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, rmat: Path, budget: str
) -> None:
    # The shared graph may have its index from another test.
    fresh = tmp_path_factory.mktemp("fresh") / "fresh.brimful"
    succeed("generate", "chain", fresh, "--vertices", 1000, "--quiet")
    table = pa.table({"source": range(1000), "target": range(1, 1001)})
    pq.write_table(table, tmp_path / "e.parquet")
    (tmp_path / "e.txt").write_text("1 2\n" * 1000)
    made = tmp_path / "g.brimful"
    for command in (
        ["import", tmp_path / "e.txt", made],
        ["import", tmp_path / "e.parquet", made],
        ["generate", "rmat", made, "--scale", 10],
        ["index", fresh, "reverse"],
        ["run", "pagerank", rmat],
        ["run", "pagerank", rmat, "-o", tmp_path / "o.parquet"],
        ["run", "pagerank", tmp_path / "e.txt"],
        ["export", rmat, tmp_path / "o.txt"],
    ):
        with hard_limit(24 * MIB) as enter:
            outcome = brimful(*command, "--budget", budget, before=enter)
        assert outcome.code == BUDGET, (command, outcome.err)
        assert "the smallest that works is" in outcome.err
    assert names_below(tmp_path) == {"e.parquet", "e.txt"}


def hubs(path: Path) -> Path:
    """Write a list with hubs, repeated edges and self-loops."""
    with path.open("w") as file:
        for n in range(300_000):
            file.write(f"{n % 7} {n}\n{n} {n * 7919 % 300_000}\n0 1\n")
    return path


def long_names(path: Path) -> Path:
    """Write a list of names of up to 2 kB."""
    with path.open("w") as file:
        for n in range(20_000):
            file.write(f"{'n' * (n % 2000)}{n} hub{n % 5}\n")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("threads", with_nightly([2], [1]))
def test_the_smallest_budget_named_works_at_once(tmp_path: Path, threads: int) -> None:
    text, names = hubs(tmp_path / "hubs.txt"), long_names(tmp_path / "names.txt")
    table = tmp_path / "hubs.parquet"
    wide = range(300_000)
    pq.write_table(pa.table({"source": wide, "target": [0] * 300_000, "weight": wide}), table)
    parts = [hubs(tmp_path / f"part{n}.txt") for n in range(3)]
    made = tmp_path / "g.brimful"
    both, sums = ["--index", "in,reverse"], ["--duplicates", "sum"]
    for command in (
        ["import", text, made, *both],
        ["import", text, made, *sums],
        ["import", text, made, "--undirected", "--weights", "hash"],
        ["import", text, made, "--vertices", 3_000_000],
        ["import", names, made, "--ids", "string", "--no-header"],
        ["import", *parts, made],
        ["import", table, made, *both],
        ["generate", "star", made, "--vertices", 1_000_000, *both],
        ["generate", "rmat", made, "--scale", 16, *sums],
    ):
        command += ["--threads", threads]
        budget = smallest(*command)
        limited(budget, *command)
        # An undirected graph is its own reverse.
        if not {"in,reverse", "--undirected"} & set(map(str, command)):
            index = ["index", made, "reverse", "--threads", threads]
            limited(smallest(*index), *index)
        subprocess.run(["rm", "-r", made], check=True)


@pytest.mark.parametrize(
    "command",
    [["generate", "rmat", "--scale", 40], ["generate", "star", "--vertices", 1 << 40]],
)
def test_a_graph_that_no_disk_holds_is_refused_first(tmp_path: Path, command: list[object]) -> None:
    verb, kind, *size = command
    sentence = refuse(IO, verb, kind, tmp_path / "g.brimful", *size, "--quiet", timeout=60)
    assert "more than is free" in sentence
    assert names_below(tmp_path) == set()


def test_verify_imports_a_file_within_a_budget(tmp_path: Path) -> None:
    edges = write_edges(tmp_path / "e.txt", [(1, 2)])
    refuse(BUDGET, "verify", edges, "--budget", "1M", "--quiet")
    succeed("verify", edges, "--budget", "200M", "--threads", 1, "--quiet")


def test_a_pipe_or_a_device_is_no_graph(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null")):
        sentence = refuse(INPUT, "run", "degrees", path, "--quiet", timeout=60)
        assert "brimful import - NAME.brimful" in sentence


def test_two_first_runs_at_once_share_one_import(tmp_path: Path) -> None:
    path = tmp_path / "fresh.txt"
    path.write_text("".join(f"{n} {n * 7919 % 500_009}\n" for n in range(500_000)))
    command = [*BRIMFUL, "run", "degrees", str(path), "--json"]
    runs = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = [(*run.communicate(timeout=120), run.returncode) for run in runs]
    assert [code for _, _, code in said] == [0, 0, 0], said
    assert sum("importing" in err.replace("that imports", "") for _, err, _ in said) == 1, said
    assert names_below(tmp_path) >= {"fresh.txt", "fresh.txt.brimful"}
    assert len(list(tmp_path.iterdir())) == 2


def test_a_forked_child_leaves_its_parents_graph(tmp_path: Path) -> None:
    program = """
import os, brimful as bf, pyarrow as pa
from brimful._native import PartialFile, TemporaryFolder
graph = bf.Graph.from_arrow(pa.table({{"source": [0, 1], "target": [1, 2]}}))
cache = bf.SpillingDict(limit=1, folder={out!r} + "-cache")
cache[0], cache[1] = "a", "b"
# An object that the child drops, one that it closes, and those that its end closes.
dropped = TemporaryFolder({out!r} + "-made", "run-")
closed = PartialFile({out!r} + "-closed", overwrite=False)
with PartialFile({out!r}, overwrite=False) as partial:
    ours = [partial.path, dropped.path, closed.path]
    child = os.fork()
    if child == 0:
        del graph, dropped
        closed.close()
        cache.close()
        raise SystemExit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert all(map(os.path.exists, ours)), "the child took it away"
    # Nor does a sweep of the next start: all are still locked.
    TemporaryFolder({out!r} + "-made", "run-").close()
    PartialFile({out!r} + "-closed", overwrite=False).close()
    assert all(map(os.path.exists, ours)), "they were swept"
assert not os.path.exists(partial.path)
del dropped
closed.close()
assert cache[0] == "a"
cache.close()
assert os.listdir(os.path.dirname({out!r})) == []
assert graph.neighbors(0) == [1], "the child took it away"
folder = os.path.dirname(graph.path)
graph.close()
assert not os.path.exists(folder)
"""
    program = program.format(out=str(tmp_path / "out"))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_sorting_keeps_its_budget_beside_the_numbers_themselves(tmp_path: Path) -> None:
    program = """
import brimful as bf, numpy as np
def kib(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))
batch = np.random.default_rng(1).integers(0, 2**63, 8_000_000, np.int64)
sum(len(part) for part in bf.sort([batch[:1000]], budget="64M"))
open("/proc/self/clear_refs", "w").write("5")
before, budget = kib("VmRSS"), 64
assert sum(len(part) for part in bf.sort((batch for _ in range(3)), budget="64M")) == 24_000_000
grown = (kib("VmHWM") - before) >> 10
assert grown < budget + 16, f"{grown} MiB where the budget was {budget}"
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["edges.parquet", "edges.arrow", "edges.graphml"])
def test_a_table_in_a_pipe_is_refused_before_it_is_opened(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    os.mkfifo(path)
    sentence = refuse(INPUT, "import", path, tmp_path / "g.brimful", "--quiet", timeout=60)
    assert "is not a regular file" in sentence


@pytest.mark.parametrize(
    "words",
    [
        ["top", "{pipe}"],
        ["compare", "{pipe}", "{pipe}"],
        ["derive", "{graph}", "{out}", "--contract", "{pipe}"],
        ["columns", "{graph}", "{pipe}", "--on", "id"],
        ["run", "degrees", "{graph}", "--join", "{pipe}", "--on", "id", "-o", "{out}.csv"],
        ["run", "similarity", "{graph}", "--pairs", "{pipe}"],
    ],
)
def test_a_result_or_a_table_in_a_pipe_is_refused_as_one(tmp_path: Path, words: list[str]) -> None:
    graph, pipe = tmp_path / "chain.brimful", tmp_path / "pipe.csv"
    succeed("generate", "chain", graph, "--vertices", 3, "--quiet")
    os.mkfifo(pipe)
    names = {"graph": graph, "pipe": pipe, "out": tmp_path / "out.brimful"}
    sentence = refuse(INPUT, *(word.format(**names) for word in words), timeout=60)
    assert "pipe.csv is not a regular file" in sentence


@pytest.mark.parametrize("words", [["run", "degrees", "{graph}", "-o"], ["export", "{graph}"]])
def test_an_output_does_not_replace_a_pipe(tmp_path: Path, words: list[str]) -> None:
    graph, pipe = tmp_path / "chain.brimful", tmp_path / "pipe.csv"
    succeed("generate", "chain", graph, "--vertices", 3, "--quiet")
    os.mkfifo(pipe)
    command = [word.format(graph=graph) for word in words]
    for end in ([], ["--overwrite"]):
        assert "is a pipe or a device, not a file" in refuse(USAGE, *command, pipe, *end, "--quiet")
    assert pipe.is_fifo()


def test_an_export_to_standard_output_is_refused(rmat: Path, tmp_path: Path) -> None:
    words = ("export", rmat, "-", "--format", "edgelist", "--quiet")
    assert "name a file instead of -" in refuse(USAGE, *words, cwd=tmp_path)
    assert not names_below(tmp_path)


def test_the_first_refusal_counts_the_record_batches_of_an_arrow_file(tmp_path: Path) -> None:
    table, out = tmp_path / "plain.arrow", tmp_path / "g.brimful"
    names = [f"{number:06d}".ljust(10_000, "x") for number in range(4000)]
    rows = pa.table({"source": names, "target": names[1:] + names[:1]})
    with pa.ipc.new_file(table, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=len(names))
    sentence = refuse(BUDGET, "import", table, out, "--budget", "32M", "--quiet")
    least = sentence.rsplit("smallest that works is ", 1)[1].rstrip(".\n")
    with hard_limit(int(least.removesuffix("M")) * MIB) as enter:
        succeed("import", table, out, "--budget", least, "--quiet", before=enter)


@pytest.mark.nightly
def test_the_first_refusal_counts_the_pages_of_a_parquet_file(tmp_path: Path) -> None:
    # A page of 16 MB for each column, and of 32 MB for one that is not read.
    rows = 2_000_000
    ends = {"source": range(rows), "target": range(rows)}
    table = pa.table({**ends, "label": [f"{n:012}" for n in range(rows)]})
    edges, result = tmp_path / "edges.parquet", tmp_path / "result.parquet"
    pages = {"use_dictionary": False, "compression": "none", "data_page_size": 1 << 30}
    pages |= {"write_batch_size": rows, "max_rows_per_page": rows}
    pq.write_table(table, edges, **pages)
    pq.write_table(table.select([0, 1]).rename_columns(["vertex", "level"]), result, **pages)
    columns = ["--source", "source", "--target", "target"]
    for command in (
        ["import", edges, tmp_path / "g.brimful", *columns],
        ["top", result],
        ["compare", result, result],
    ):
        # With 30M pyarrow is not loaded, with 120M it is.
        named = [refused(BUDGET, budget, *command).rsplit(" ", 1)[1] for budget in ("30M", "120M")]
        assert named[0] == named[1], named
        limited(named[0], *command)


def test_the_smallest_budget_does_not_follow_the_mapped_pages_of_libraries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from brimful import resources

    def least(resident_bytes: int) -> int:
        monkeypatch.setattr(resources, "resident_bytes", lambda: resident_bytes)
        with pytest.raises(bf.BudgetError) as refused:
            resources.Resources(budget=MIB, process_budget=True).require(152 * MIB, "")
        return refused.value.needed_bytes

    # The two small processes are on both sides of a multiple of 8 MiB.
    assert least(int(23.9 * MIB)) == least(int(24.1 * MIB)) == 192 * MIB
    assert least(64 * MIB) == 232 * MIB


def test_a_damaged_footer_is_read_or_left_to_pyarrow(tmp_path: Path) -> None:
    from brimful.tables.parquet_pages import known_page_bytes

    path, names = tmp_path / "a.parquet", []
    pq.write_table(pa.table({"source": [1, 2], "target": [2, 3]}), path)
    whole = path.read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for at in range(footer, len(whole)):
        for value in (0, 0x7F, 0x80, 0xFF, whole[at] ^ 1, whole[at] ^ 0x10):
            path.write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
            assert known_page_bytes(str(path), lambda found: names.append(found) or found) >= 0
    # Some of these are read.
    assert ["source", "target"] in names and len({*map(tuple, names)}) > 1
