"""Bad input gets one sentence, its exit code, and loses nothing: the list of the second issue."""

from __future__ import annotations

import gzip
import lzma
import os
import resource
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import brimful as bf
from command import (
    BUDGET,
    CORRUPT,
    DONE,
    INPUT,
    IO,
    USAGE,
    assert_one_sentence,
    brimful,
    names_below,
    refuse,
    succeed,
    write_edges,
)
from disks import small_disk


def refused_import(folder: Path, source: object, *options: object, code: int = INPUT) -> str:
    """Import `source` in vain; insist that the folder is as before; return the sentence."""
    before = names_below(folder)
    sentence = refuse(code, "import", source, folder / "g.brimful", "--quiet", *options)
    assert names_below(folder) == before
    return sentence


# ---- missing and empty inputs ----


@pytest.mark.parametrize("name", ["gone.txt", "gone.csv", "gone.parquet", "gone.u32"])
def test_missing_file(tmp_path: Path, name: str) -> None:
    assert name in refused_import(tmp_path, tmp_path / name)


@pytest.mark.parametrize("format_name", ["edgelist", "csv", "parquet", "u32pairs"])
def test_directory(tmp_path: Path, format_name: str) -> None:
    (tmp_path / "folder").mkdir()
    sentence = refused_import(tmp_path, tmp_path / "folder", "--format", format_name)
    assert "directory" in sentence


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.parquet", "a.u32"])
def test_empty_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    assert name in refused_import(tmp_path, tmp_path / name)


@pytest.mark.parametrize(
    ("name", "pack"), [("a.txt.gz", gzip.compress), ("a.txt.xz", lzma.compress)]
)
def test_compressed_nothing(tmp_path: Path, name: str, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / name).write_bytes(pack(b""))
    assert name in refused_import(tmp_path, tmp_path / name)


def test_empty_standard_input(tmp_path: Path) -> None:
    before = names_below(tmp_path)
    refuse(INPUT, "import", "-", tmp_path / "g.brimful", "--quiet", stdin=b"")
    assert names_below(tmp_path) == before


def test_only_comments(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("# nothing\n% to see\n\n   \n")
    assert "a.txt" in refused_import(tmp_path, tmp_path / "a.txt")


def test_only_a_header(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("source,target\n")
    assert "a.csv" in refused_import(tmp_path, tmp_path / "a.csv")
    pq.write_table(
        pa.table({"source": pa.array([], pa.int64()), "target": pa.array([], pa.int64())}),
        tmp_path / "a.parquet",
    )
    assert "a.parquet" in refused_import(tmp_path, tmp_path / "a.parquet")


# ---- text that is not an edge list ----


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("1 2\n3\n4 5\n", 2),
        ("1\n", 1),
        ("# head\n1 2\n2 b\n", 3),
        ("2 b\n", 1),
        ("1 2\n2 18446744073709551616\n", 2),
        ("-9223372036854775809 2\n", 1),
        ("1 2\n1.5 2\n", 2),
        ("u v w\n1 2 heavy\n", 2),
        ("u v w\n1 2 0.5\n2 3\n", 3),
        ("1 2\n\x002 3\n", 2),
        ("u v w\n1 2 3\n1 2 4 5 six\n", 3),
    ],
)
def test_lines_that_are_no_edges_are_named(tmp_path: Path, text: str, line: int) -> None:
    (tmp_path / "a.txt").write_text(text)
    sentence = refused_import(tmp_path, tmp_path / "a.txt")
    assert f"a.txt:{line}:" in sentence, sentence


def test_a_bad_line_far_into_a_large_file_is_named(tmp_path: Path) -> None:
    good = "".join(f"{number} {number + 1}\n" for number in range(600_000))
    (tmp_path / "a.txt").write_text(good + "x y\n" + good)
    assert "a.txt:600001:" in refused_import(tmp_path, tmp_path / "a.txt")


@pytest.mark.parametrize(
    "rows", ["1,b\n", "1,18446744073709551616\n", "1,\n", ",2\n", "1\n", "1,2,3\n", "1,2.5\n"]
)
def test_csv_rows_that_are_no_edges(tmp_path: Path, rows: str) -> None:
    (tmp_path / "a.csv").write_text("source,target\n7,8\n" + rows)
    assert "a.csv" in refused_import(tmp_path, tmp_path / "a.csv")


def test_csv_with_one_column(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("source\n1\n2\n")
    assert "source" in refused_import(tmp_path, tmp_path / "a.csv")


def test_csv_weights_that_are_no_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("source,target,weight\n1,2,heavy\n")
    assert "heavy" in refused_import(tmp_path, tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("source,target,weight\n1,2,\n")
    refused_import(tmp_path, tmp_path / "a.csv")


def test_pairs_that_are_cut_off(tmp_path: Path) -> None:
    (tmp_path / "a.u32").write_bytes(b"\x01\0\0\0\x02\0\0\0\x03\0\0")
    assert "a.u32" in refused_import(tmp_path, tmp_path / "a.u32")


# ---- broken compression ----


def noise_lines() -> bytes:
    """Text that compresses badly, so that a cut is in the middle of it."""
    number, lines = 1, []
    for _ in range(50_000):
        number = number * 6364136223846793005 % 2**63 + 1442695040888963407
        lines.append(f"{number >> 40} {number >> 24 & 0xFFFFFF}\n")
    return "".join(lines).encode()


@pytest.mark.parametrize("suffix", ["gz", "xz", "zst"])
@pytest.mark.parametrize("kind", ["txt", "csv"])
def test_truncated_compression(tmp_path: Path, suffix: str, kind: str) -> None:
    content = (b"source,target\n" if kind == "csv" else b"") + (
        noise_lines().replace(b" ", b",") if kind == "csv" else noise_lines()
    )
    whole = {
        "gz": gzip.compress(content),
        "xz": lzma.compress(content),
        "zst": pa.compress(content, codec="zstd", asbytes=True),
    }[suffix]
    name = f"a.{kind}.{suffix}"
    for cut in (len(whole) // 2, len(whole) - 5):
        (tmp_path / name).write_bytes(whole[:cut])
        assert name in refused_import(tmp_path, tmp_path / name)


def test_bytes_after_the_end_of_a_compressed_file_are_a_cause(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"1 2\n") + gzip.compress(b"2 3\n")[:5])
    sentence = refused_import(tmp_path, tmp_path / "a.txt.gz")
    assert "it was cut, or other bytes follow its end" in sentence


def test_other_separators_of_an_edge_list_are_named(tmp_path: Path) -> None:
    """The advice was to leave all lines out."""
    for text in ("1;2\n2;3\n", "a|b\n1|2\n"):
        (tmp_path / "a.txt").write_text(text)
        sentence = refuse(USAGE, "import", tmp_path / "a.txt", tmp_path / "g.brimful", "--quiet")
        assert f"give --delimiter '{text[1]}'" in sentence
        options = ("--delimiter", text[1], "--quiet")
        succeed("import", tmp_path / "a.txt", tmp_path / f"{text[0]}.brimful", *options)


def test_compression_with_a_flipped_bit(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(noise_lines()))
    whole[len(whole) // 2] ^= 0x10
    (tmp_path / "a.txt.gz").write_bytes(whole)
    assert "a.txt.gz" in refused_import(tmp_path, tmp_path / "a.txt.gz")


# ---- Parquet ----


def test_parquet_without_the_named_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "b": [2]}), tmp_path / "a.parquet")
    options = ["--source", "from", "--target", "b"]
    sentence = refused_import(tmp_path, tmp_path / "a.parquet", *options)
    assert "'from'" in sentence and "a, b" in sentence
    sentence = refused_import(tmp_path, tmp_path / "a.parquet", "--weight", "w")
    assert "'w'" in sentence


def test_parquet_with_nulls(tmp_path: Path) -> None:
    pq.write_table(pa.table({"source": [1, 2, None], "target": [2, 3, 4]}), tmp_path / "a.parquet")
    sentence = refused_import(tmp_path, tmp_path / "a.parquet")
    assert "null" in sentence and "source" in sentence and "3" in sentence
    pq.write_table(
        pa.table({"source": [1, 2], "target": [2, 3], "weight": [None, 1.0]}),
        tmp_path / "a.parquet",
    )
    assert "weight" in refused_import(tmp_path, tmp_path / "a.parquet")


@pytest.mark.parametrize("column", [[1.0, 2.0], [True, False], [b"1", b"2"]])
def test_parquet_columns_that_are_no_ids(tmp_path: Path, column: list[object]) -> None:
    pq.write_table(pa.table({"source": column, "target": [2, 3]}), tmp_path / "a.parquet")
    assert "'source'" in refused_import(tmp_path, tmp_path / "a.parquet")


def test_parquet_text_that_is_no_id(tmp_path: Path) -> None:
    pq.write_table(pa.table({"source": ["1", "x"], "target": ["2", "3"]}), tmp_path / "a.parquet")
    assert "row 2" in refused_import(tmp_path, tmp_path / "a.parquet", "--ids", "int")


def test_parquet_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("1 2\n2 3\n")
    assert "Parquet" in refused_import(tmp_path, tmp_path / "a.parquet")
    pq.write_table(pa.table({"source": [1, 2], "target": [2, 3]}), tmp_path / "b.parquet")
    content = (tmp_path / "b.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(content[:-20])
    refused_import(tmp_path, tmp_path / "b.parquet")


def test_a_parquet_page_that_cannot_fit_is_refused_before_work(tmp_path: Path) -> None:
    rows = 16_000_000
    ids = pa.array(range(rows), pa.int64())
    pq.write_table(
        pa.table({"source": ids, "target": ids}),
        tmp_path / "a.parquet",
        row_group_size=rows,
        data_page_size=1 << 30,
        max_rows_per_page=rows,
        use_dictionary=False,
        compression="none",
    )
    sentence = refused_import(tmp_path, tmp_path / "a.parquet", "--budget", "200M", code=BUDGET)
    assert "200M" in sentence


# ---- a disk that fills up, or refuses ----


@pytest.fixture
def noise_file(tmp_path: Path) -> Path:
    """An edge list of about 12 MB."""
    path = tmp_path / "noise.txt"
    path.write_bytes(noise_lines() * 15)
    return path


@pytest.mark.parametrize("name", ["current", "degrees", "lock"])
def test_a_pipe_in_place_of_a_file(tmp_path: Path, rmat: Path, name: str) -> None:
    graph = tmp_path / "g.brimful"
    shutil.copytree(rmat, graph)
    (graph / name).unlink(missing_ok=True)
    os.mkfifo(graph / name)
    commands = [["info", graph], ["verify", graph], ["run", "degrees", graph]]
    for words in [["index", graph, "reverse"]] if name == "lock" else commands:
        sentence = refuse(IO, *words, "--quiet", timeout=60)
        assert "not a regular file" in sentence or "No such device" in sentence, sentence
    # An output next to such a pipe does not wait for it either.
    place = graph / "log"
    outcome = brimful("info", rmat, "--log", place, timeout=60)
    assert outcome.code == (DONE if name == "current" else USAGE), outcome.err


def test_a_log_that_is_a_pipe_which_nobody_reads(tmp_path: Path, rmat: Path) -> None:
    os.mkfifo(tmp_path / "log")
    assert "cannot write" in refuse(IO, "info", rmat, "--log", tmp_path / "log", timeout=60)


def test_disk_full_in_the_middle_of_an_import(tmp_path: Path, noise_file: Path) -> None:
    with small_disk(tmp_path, "2m") as disk:
        sentence = refuse(IO, "import", noise_file, disk / "g.brimful", "--quiet")
        assert "full" in sentence or "space" in sentence
        assert names_below(disk) == set()


def test_disk_full_while_a_result_is_written(tmp_path: Path, rmat: Path) -> None:
    with small_disk(tmp_path, "16k") as disk:
        for name in ("r.csv", "r.parquet", "r.arrow"):
            refuse(IO, "run", "pagerank", rmat, "-o", disk / name, "--quiet")
            assert names_below(disk) == set()
        for name in ("e.txt", "e.csv", "e.parquet", "e.arrow", "e.u32"):
            refuse(IO, "export", rmat, disk / name, "--lossy", "--quiet")
            assert names_below(disk) == set()


def test_a_limit_on_the_size_of_files(tmp_path: Path, noise_file: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    before = names_below(tmp_path)
    refuse(IO, "import", noise_file, tmp_path / "g.brimful", "--quiet", before=limit)
    assert names_below(tmp_path) == before


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    source = write_edges(tmp_path / "a.txt", [(1, 2)])
    refuse(IO, "import", source, tmp_path / "no" / "g.brimful", "--quiet")
    assert names_below(tmp_path) == {"a.txt"}


# ---- outputs ----


def test_an_output_that_exists(tmp_path: Path, rmat: Path) -> None:
    source = write_edges(tmp_path / "a.txt", [(1, 2)])
    (tmp_path / "g.brimful").mkdir()
    (tmp_path / "g.brimful" / "mine").write_text("keep")
    before = names_below(tmp_path)
    assert "exists" in refuse(USAGE, "import", source, tmp_path / "g.brimful", "--quiet")
    refuse(USAGE, "generate", "ring", tmp_path / "g.brimful", "--vertices", 5, "--quiet")
    assert names_below(tmp_path) == before
    for name in ("r.csv", "r.parquet", "r.arrow"):
        (tmp_path / name).write_text("mine")
        assert "exists" in refuse(USAGE, "run", "pagerank", rmat, "-o", tmp_path / name, "--quiet")
        assert "exists" in refuse(USAGE, "export", rmat, tmp_path / name, "--quiet")
        assert (tmp_path / name).read_text() == "mine"
        succeed("run", "pagerank", rmat, "-o", tmp_path / name, "--overwrite", "--quiet")
        assert (tmp_path / name).read_bytes() != b"mine"
        assert not any("partial" in entry for entry in names_below(tmp_path))


def test_an_output_that_is_an_input(tmp_path: Path) -> None:
    """With --overwrite, too: the result would take the place of the data."""
    edges, ages, pairs = (tmp_path / name for name in ("e.csv", "ages.csv", "pairs.csv"))
    edges.write_text("source,target\n1,2\n2,3\n")
    ages.write_text("vertex,age\n1,7\n")
    pairs.write_text("source,target\n1,2\n")
    (tmp_path / "link.csv").symlink_to("e.csv")
    before = [path.read_text() for path in (edges, ages, pairs)]
    graph = tmp_path / "g.brimful"
    succeed("import", edges, graph, "--quiet")
    for words in (
        ("run", "pagerank", edges, "-o", edges),
        ("run", "pagerank", edges, "-o", tmp_path / "link.csv"),
        ("run", "pagerank", graph, "--join", ages, "-o", ages),
        ("run", "similarity", graph, "--pairs", pairs, "-o", pairs),
        ("export", edges, edges),
        ("columns", graph, ages, "--on", "vertex", "-o", ages),
    ):
        assert "would replace an input; name another" in refuse(USAGE, *words, "--overwrite")
    assert [path.read_text() for path in (edges, ages, pairs)] == before
    assert "make a graph of a graph with" in refuse(INPUT, "import", graph, tmp_path / "h.brimful")


def test_an_export_over_files_of_its_input(tmp_path: Path) -> None:
    """The files of a Graphalytics graph are all read, and all written."""
    lines = "1 2 7 0.5\n2 3 8 1.5\n"
    (tmp_path / "m.v").write_text("1\n2\n3\n")
    (tmp_path / "m.e").write_text(lines)
    (tmp_path / "m.properties").write_text(
        "graph.m.directed = true\ngraph.m.edge-properties.names = time, weight\n"
        "graph.m.edge-properties.types = int, real\n"
    )
    for graph, out in (("m.v", "m.properties"), ("m.e", "m.v"), ("m.v", "m.e")):
        words = "export", tmp_path / graph, tmp_path / out, "--overwrite"
        assert "would replace an input; name another" in refuse(USAGE, *words)
    assert (tmp_path / "m.e").read_text() == lines


def test_an_output_that_cannot_be_written(tmp_path: Path, rmat: Path) -> None:
    refuse(USAGE, "run", "pagerank", rmat, "-o", tmp_path / "r.txt", "--quiet")
    refuse(USAGE, "run", "pagerank", rmat, "-o", tmp_path, "--quiet")
    refuse(IO, "run", "pagerank", rmat, "-o", tmp_path / "no" / "r.csv", "--quiet")
    refuse(IO, "export", rmat, tmp_path / "no" / "r.csv", "--quiet")
    refuse(USAGE, "export", rmat, tmp_path / "r.unknown", "--quiet")
    for words in (("export", rmat, "-"), ("run", "degrees", rmat, "-o", "-")):
        assert "are not written to standard output; name a file" in refuse(USAGE, *words)
    assert names_below(tmp_path) == set()


def test_an_output_folder_that_is_read_only(tmp_path: Path, rmat: Path) -> None:
    with small_disk(tmp_path, "1m") as disk:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        source = write_edges(tmp_path / "a.txt", [(1, 2)])
        refuse(IO, "run", "pagerank", rmat, "-o", disk / "r.csv", "--quiet")
        for words in (("import", source), ("derive", rmat, "--reverse")):
            sentence = refuse(IO, *words, disk / "g.brimful", "--quiet")
            assert f"cannot create {disk / 'g.brimful'}: Read-only file system" in sentence
        refuse(IO, "export", rmat, disk / "e.txt", "--quiet")


# ---- damaged graphs ----


@pytest.fixture
def graph(tmp_path: Path, rmat: Path) -> Path:
    """A copy of a graph, to be damaged."""
    copy = tmp_path / "g.brimful"
    shutil.copytree(rmat, copy)
    return copy


def files_of(graph: Path) -> list[str]:
    """Return the relative names of a graph's files."""
    return sorted(path.relative_to(graph).as_posix() for path in graph.rglob("*") if path.is_file())


def refused_use(graph: Path, out: Path, codes: tuple[int, ...] = (CORRUPT, INPUT, IO)) -> str:
    """Insist that verify refuses a graph, and that a run refuses it or was not touched by it."""
    before = files_of(graph)
    checked = brimful("verify", graph, "--quiet")
    assert checked.code in codes, f"exit {checked.code}: {checked.err}"
    assert_one_sentence(checked.err)
    used = brimful("run", "pagerank", graph, "-o", out, "--max-supersteps", 2, "--quiet")
    if used.code != 0:
        assert used.code in codes, f"exit {used.code}: {used.err}"
        assert_one_sentence(used.err)
        assert not out.exists()
    out.unlink(missing_ok=True)
    assert files_of(graph) == before
    return checked.err


def test_every_missing_file_is_found(graph: Path, tmp_path: Path) -> None:
    for name in files_of(graph):
        content = (graph / name).read_bytes()
        (graph / name).unlink()
        refused_use(graph, tmp_path / "r.csv")
        (graph / name).write_bytes(content)
    succeed("verify", graph, "--quiet")


def test_every_truncated_file_is_found(graph: Path, tmp_path: Path) -> None:
    for name in files_of(graph):
        content = (graph / name).read_bytes()
        for length in {0, 1, len(content) // 2, len(content) - 1}:
            (graph / name).write_bytes(content[:length])
            refused_use(graph, tmp_path / "r.csv", (CORRUPT,))
        (graph / name).write_bytes(content)
    succeed("verify", graph, "--quiet")


def test_every_flipped_bit_is_found(graph: Path, tmp_path: Path) -> None:
    for name in files_of(graph):
        content = (graph / name).read_bytes()
        offsets = {0, 4, 9, 33, len(content) // 3, len(content) // 2, len(content) - 1}
        for offset in sorted(offset for offset in offsets if offset < len(content)):
            flipped = bytearray(content)
            flipped[offset] ^= 0x04
            (graph / name).write_bytes(flipped)
            assert refused_use(graph, tmp_path / "r.csv", (CORRUPT, INPUT)), (name, offset)
        (graph / name).write_bytes(content)
    succeed("verify", graph, "--quiet")


def test_a_flipped_bit_in_the_edges_stops_a_run_and_an_export(graph: Path, tmp_path: Path) -> None:
    largest = max(files_of(graph), key=lambda name: (graph / name).stat().st_size)
    content = bytearray((graph / largest).read_bytes())
    content[len(content) // 2] ^= 0x04
    (graph / largest).write_bytes(content)
    for arguments in (
        ["run", "pagerank", graph, "-o", tmp_path / "r.parquet"],
        ["run", "connected_components", graph],
        ["export", graph, tmp_path / "e.txt"],
        ["export", graph, tmp_path / "e.parquet"],
        ["verify", graph],
    ):
        sentence = refuse(CORRUPT, *arguments, "--quiet")
        assert os.path.basename(largest) in sentence
    assert names_below(tmp_path) == {"g.brimful"} | {
        f"g.brimful/{name}" for name in names_below(graph)
    }


def test_a_damaged_version_is_no_newer_version(graph: Path, tmp_path: Path) -> None:
    for name in files_of(graph):
        content = (graph / name).read_bytes()
        # Bytes 8 to 11 of every file are the format version (docs/format.md).
        (graph / name).write_bytes(content[:8] + b"\x02\0\0\0" + content[12:])
        sentence = refused_use(graph, tmp_path / "r.csv", (CORRUPT,))
        assert "checksum" in sentence and name in sentence and "newer" not in sentence
        (graph / name).write_bytes(content)


def test_what_is_no_graph(tmp_path: Path) -> None:
    (tmp_path / "empty.brimful").mkdir()
    for verb in (["info"], ["verify"], ["run", "pagerank"]):
        refuse(INPUT, *verb, tmp_path / "empty.brimful", "--quiet")
        refuse(INPUT, *verb, tmp_path / "gone.brimful", "--quiet")
    refuse(INPUT, "export", tmp_path / "gone.brimful", tmp_path / "e.txt", "--quiet")
    refuse(INPUT, "index", tmp_path / "gone.brimful", "in", "--quiet")
    assert names_below(tmp_path) == {"empty.brimful"}


# ---- budgets and parameters ----


def test_a_budget_of_one_byte(tmp_path: Path, rmat: Path) -> None:
    source = write_edges(tmp_path / "a.txt", [(1, 2)])
    before = names_below(tmp_path)
    for arguments in (
        ["import", source, tmp_path / "g.brimful"],
        ["generate", "ring", tmp_path / "g.brimful", "--vertices", 100],
        ["run", "pagerank", rmat, "-o", tmp_path / "r.csv"],
        ["run", "connected_components", rmat],
    ):
        sentence = refuse(BUDGET, *arguments, "--budget", 1, "--quiet")
        assert "smallest" in sentence
    assert names_below(tmp_path) == before


@pytest.mark.parametrize(
    "options",
    [
        ["--param", "damping=2"],
        ["--param", "damping=-0.1"],
        ["--param", "damping=nan"],
        ["--param", "damping=high"],
        ["--param", "damping"],
        ["--param", "frobnicate=1"],
        ["--param", "variant=other"],
        ["--tolerance", "-1"],
        ["--tolerance", "nan"],
        ["--weighted"],
    ],
)
def test_parameters_out_of_range(rmat: Path, options: list[str]) -> None:
    outcome = brimful("run", "pagerank", rmat, "--quiet", *options)
    assert outcome.code in (USAGE, INPUT), outcome.err
    assert_one_sentence(outcome.err)


@pytest.mark.parametrize("number", ["18446744073709551616", "-1", "2.5"])
def test_a_parameter_that_is_no_count_is_shown_as_given(rmat: Path, number: str) -> None:
    sentence = refuse(USAGE, "run", "random_walks", rmat, "--walks", number, "--quiet")
    assert f"walks must be a whole number from 0 to 2^53 - 1, not {number}" in sentence


def test_an_unknown_algorithm_names_the_known(rmat: Path) -> None:
    sentence = refuse(USAGE, "run", "pagerang", rmat)
    assert "did you mean 'pagerank'" in sentence and "brimful algorithms" in sentence


@pytest.mark.parametrize(
    "arguments",
    [
        ["rmat", "--vertices", 5],
        ["ring"],
        ["grid", "--rows", 5],
        ["chain", "--vertices", 5, "--torus"],
        ["rmat", "--scale", 0],
        ["rmat", "--scale", 200],
        ["lognormal", "--vertices", 100, "--sigma", "-1"],
        ["lognormal", "--vertices", 100, "--mu", "nan"],
    ],
)
def test_generators_refuse_what_cannot_be(tmp_path: Path, arguments: list[object]) -> None:
    kind, *options = arguments
    refuse(USAGE, "generate", kind, tmp_path / "g.brimful", *options, "--quiet")
    assert names_below(tmp_path) == set()


@pytest.mark.parametrize("text", ["1 2\n2 x\n", "1\n", "1 2 3 4 5\n", "# no edges\n"])
def test_an_automatic_import_names_the_owner_of_options(tmp_path: Path, text: str) -> None:
    path = tmp_path / "edges.txt"
    path.write_text(text)
    outcome = brimful("info", path, "--quiet")
    owner = f"'brimful import {path} NAME.brimful'"
    assert outcome.code in (USAGE, INPUT)
    assert outcome.err.strip().endswith(f"; these are options of {owner}")
    with pytest.raises(bf.BrimfulError, match=r"; these are options of brimful\.read$"):
        bf.pagerank(path)
    with pytest.raises(bf.BrimfulError) as caught:
        bf.read(path)
    assert "these are options" not in str(caught.value)


def test_a_file_with_the_name_of_a_graph_and_a_broken_link_are_named(tmp_path: Path) -> None:
    (tmp_path / "file.brimful").write_text("1 2\n")
    (tmp_path / "link.brimful").symlink_to(tmp_path / "nowhere")
    before = names_below(tmp_path)
    sentence = refuse(INPUT, "info", tmp_path / "file.brimful")
    assert "is a file, but .brimful is the suffix of a graph directory" in sentence
    sentence = refuse(INPUT, "info", tmp_path / "link.brimful")
    assert f"link.brimful is a link to {tmp_path}/nowhere, which does not exist" in sentence
    assert names_below(tmp_path) == before
