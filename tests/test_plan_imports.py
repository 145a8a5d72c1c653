"""Forecasts of imports, and the parts of the inputs that they read."""

from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from brimful.io.sampling import sizes_of_inputs
from brimful.options.imports import import_options
from command import refuse, succeed
from nightly import with_nightly
from plans import near

_IMPORTS = [("txt", "120M")]
_MORE_IMPORTS = [
    ("parquet", "200M"),
    ("u32", "120M"),
    ("u32", "400M"),
    ("txt", "1G"),
    ("txt.gz", "1G"),
    ("csv", "1G"),
    ("parquet", "1G"),
    ("mtx", "200M"),
]


@pytest.mark.parametrize("kind_and_budget", with_nightly(_IMPORTS, _MORE_IMPORTS), ids="-".join)
def test_an_import(rmat20: Path, tmp_path: Path, kind_and_budget: tuple[str, str]) -> None:
    kind, budget = kind_and_budget
    edges = tmp_path / f"edges.{kind}"
    options = {"mtx": ["--renumber"], "u32": ["--lossy"], "csv": ["--lossy"]}
    succeed("export", rmat20, edges, *options.get(kind, []), "--quiet")
    out = tmp_path / "again.brimful"
    measured = succeed("import", edges, out, "--budget", budget, "--json", "--quiet").figures
    forecast = measured["forecast"]
    assert near(forecast["peak_memory_bytes"], measured["peak_rss_bytes"]), measured
    assert near(forecast["disk_bytes"], measured["scratch_bytes"] + measured["bytes_on_disk"])


@pytest.mark.nightly
@pytest.mark.parametrize(
    "options",
    [
        ["--self-loops", "drop"],
        ["--duplicates", "drop"],
        ["--duplicates", "min", "--undirected"],
        ["--duplicates", "sum"],
        ["--weights", "hash", "--duplicates", "min", "--index", "in,reverse"],
    ],
    ids="-".join,
)
@pytest.mark.parametrize("budget", ["120M", "1G"])
def test_an_import_that_leaves_out(
    rmat18: Path, tmp_path: Path, options: list[str], budget: str
) -> None:
    edges, out = tmp_path / "edges.txt", tmp_path / "again.brimful"
    succeed("export", rmat18, edges, "--quiet")
    words = ["import", edges, out, *options, "--budget", budget, "--json", "--quiet"]
    measured = succeed(*words).figures
    forecast = measured["forecast"]
    assert near(forecast["peak_memory_bytes"], measured["peak_rss_bytes"]), measured
    assert near(forecast["disk_bytes"], measured["scratch_bytes"] + measured["bytes_on_disk"])


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "a.mtx",
            "%%MatrixMarket matrix coordinate real symmetric\n% x\n4 4 3\n",
            (5, 3, True, True),
        ),
        (
            "a.mtx",
            "%%MatrixMarket matrix coordinate pattern general\n4 4 3\n",
            (5, 3, False, False),
        ),
        ("a.metis", "% x\n4 3 001\n", (5, 3, True, True)),
        ("a.metis", "4 3\n2\n1 3\n", (5, 3, True, False)),
        ("a.gr", "c x\np sp 4 3\na 1 2 5\n", (5, 3, False, True)),
        ("a.gr", "p tw 4 3\n1 2\n", (5, 3, True, False)),
        ("a.jlg", "4,3,d,graph\n1,2\n", (5, 3, False, False)),
        # The name shows no format, but the first line does.
        (
            "a.txt",
            "%%MatrixMarket matrix coordinate pattern symmetric\n4 4 3\n",
            (5, 3, True, False),
        ),
        ("a.txt", "\np sp 4 3\na 1 2 5\n", (5, 3, False, True)),
        ("a.txt", "4,3,u,graph\n1,2\n", (5, 3, True, False)),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_headers(
    tmp_path: Path, name: str, text: str, expected: tuple[int, int, bool, bool], *, compressed: bool
) -> None:
    # What is compressed is known by how it begins.
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) if compressed else text.encode())
    found = sizes_of_inputs([str(tmp_path / name)], import_options())
    assert found is not None
    sizes = found.sizes
    assert (sizes.vertices, sizes.edges, sizes.undirected, found.weighted) == expected
    (tmp_path / name).write_text("x\n")
    assert sizes_of_inputs([str(tmp_path / name)], import_options()) is None
    cut = bytearray(gzip.compress(bytes(range(256)) * 99))
    cut[20:40] = bytes(20)
    (tmp_path / name).write_bytes(cut)
    assert sizes_of_inputs([str(tmp_path / name)], import_options()) is None


def test_what_comes_through_a_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "a.mtx"
    os.mkfifo(pipe)
    text = b"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n"
    writer = threading.Thread(target=lambda: pipe.write_bytes(text))
    writer.start()
    outcome = succeed("import", pipe, tmp_path / "g.brimful", "--json")
    writer.join()
    assert outcome.figures["edges"] == 1 and outcome.figures["forecast"] is None


def test_lists_and_what_lies_beside_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.adj").write_text("4\n1 2 3\n\n3\n0\n")
    (tmp_path / "a.adjlist").write_text("#made by NetworkX\n10 11 12\n11\n12 10\n")
    (tmp_path / "b.v").write_text("7\n9\n")
    (tmp_path / "b.e").write_text("7 9\n")
    properties = "graph.b.meta.vertices = 2\ngraph.b.meta.edges = 1\ngraph.b.directed = false\n"
    (tmp_path / "b.properties").write_text(properties)
    counted = {"a.adj": 5, "a.adjlist": 3, "b.v": 1, "b.e": 1}
    for name, edges in counted.items():
        found = sizes_of_inputs([str(tmp_path / name)], import_options())
        assert found is not None and abs(found.sizes.edges - edges) <= edges // 3, name
        assert found.sizes.undirected == name.startswith("b") and not found.weighted
    # Only the property that is the weight makes a graph weighted.
    for names, weighted in [("time", False), ("time, weight", True)]:
        said = f"{properties}graph.b.edge-properties.names : {names}\n"
        (tmp_path / "b.properties").write_text(said)
        found = sizes_of_inputs([str(tmp_path / "b.v")], import_options())
        assert found is not None and found.weighted == weighted
    # Pairs are counted by their length, which that of a compressed file is not, whatever its name.
    (tmp_path / "pairs.bin").write_bytes(gzip.compress(bytes(800)))
    assert sizes_of_inputs([str(tmp_path / "pairs.bin")], import_options(format="u32pairs")) is None


def test_what_a_list_declares_is_foreseen(tmp_path: Path) -> None:
    graph, edges = tmp_path / "g.brimful", tmp_path / "edges.txt"
    options = ["--vertices", 3000, "--edges", 9000, "--undirected", "--weights", "hash"]
    succeed("generate", "erdos-renyi", graph, *options, "--quiet")
    succeed("export", graph, edges, "--quiet")
    with pa.CompressedOutputStream(str(tmp_path / "edges.txt.zst"), "zstd") as packed:
        packed.write(edges.read_bytes())
    for path in (edges, tmp_path / "edges.txt.zst"):
        found = sizes_of_inputs([str(path)], import_options())
        assert found is not None and found.weighted and found.sizes.undirected, path
        assert found.sizes.edges == 9000 and 2990 <= found.sizes.vertices <= 3000


def test_several_inputs_are_foreseen_together(tmp_path: Path) -> None:
    for name, text in [("a.csv", "1,2\n3,4\n"), ("b.csv", "5,9\n"), ("c.csv", "6,x\n8,9\n")]:
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in ("a.csv", "b.csv", "c.csv")]
    found = sizes_of_inputs(paths[:2], import_options())
    assert found is not None and (found.sizes.vertices, found.sizes.edges) == (1, 3)
    # With a line that is not an edge there is no forecast, unless such lines are left out.
    assert sizes_of_inputs(paths, import_options()) is None
    found = sizes_of_inputs(paths, import_options(on_error="skip", vertices=20))
    assert found is not None and (found.sizes.vertices, found.sizes.edges) == (20, 4)
    assert sizes_of_inputs([*paths, "-"], import_options()) is None
    # A delimiter makes a table of a text whose name shows no format.
    (tmp_path / "d.txt").write_text("1;2\n1;9\n3;4\n5;6\n7;8\n")
    columns = import_options(delimiter=";")
    found = sizes_of_inputs([str(tmp_path / "d.txt")], columns)
    assert found is not None and (found.sizes.vertices, found.sizes.edges) == (10, 5)


def test_an_import_that_cannot_be_foreseen_says_so(tmp_path: Path) -> None:
    out = tmp_path / "g.brimful"
    lines = b"".join(b"%d %d\n" % (n, n * 7919 % 1_000_003) for n in range(1_000_000))
    outcome = succeed("import", "-", out, "--json", "--threads", 1, stdin=lines)
    assert outcome.figures["forecast"] is None
    assert outcome.err.startswith("brimful: no forecast")
    # A broken input has no forecast either: the import reports the fault.
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(lines)[:100_000])
    sentence = refuse(3, "import", tmp_path / "cut.txt.gz", tmp_path / "b.brimful", "--quiet")
    assert "cut.txt.gz" in sentence
    # What is refused at once is not announced before.
    sentence = refuse(3, "import", tmp_path / "a.txt", tmp_path / "b.brimful")
    assert "forecast" not in sentence


def test_an_import_tells_what_it_expects_and_how_that_held(rmat20: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0 1\n1 2\n")
    # A short import prints no forecast.
    outcome = succeed("import", tmp_path / "a.txt", tmp_path / "small.brimful", "--json")
    assert "forecast" not in outcome.err
    succeed("export", rmat20, tmp_path / "a.u32", "--lossy", "--quiet")
    outcome = succeed("import", tmp_path / "a.u32", tmp_path / "g.brimful", "--json")
    first, *_, last = outcome.err.strip().split("\n")
    assert first.startswith("brimful: forecast: peak memory ")
    assert last.startswith("brimful: measured peak memory ")
    assert outcome.figures["forecast"]["graph_bytes"] > 0
