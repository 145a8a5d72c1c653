"""Forecasts against what is then measured, each run in a process of its own."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import brimful as bf
from brimful.catalog import algorithms
from brimful.io.sampling import sizes_of_inputs
from brimful.options.imports import import_options
from command import BRIMFUL, INPUT, USAGE, brimful, refuse, succeed

MIB = 1 << 20
#: How far memory and disk may be from the forecast.
SHARE = 0.25
#: Bandwidths that nobody has to measure.
MACHINE = ["--disk-bandwidth", 2, "--memory-bandwidth", 30]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of 16.8 M edges whose states are larger than the smallest budget."""
    path = tmp_path_factory.mktemp("plan") / "rmat20.brimful"
    succeed("generate", "rmat", path, "--scale", 20, "--edge-factor", 16, "--quiet")
    return path


def near(forecast: float, measured: float) -> bool:
    """Return whether a figure is within a quarter of what was measured."""
    return abs(forecast - measured) <= SHARE * measured


def plan(*arguments: object) -> dict[str, Any]:
    """Return the figures of `brimful plan --json`, of a machine with given bandwidths."""
    return succeed("plan", *arguments, *MACHINE, "--json", "--quiet").figures


def run(*arguments: object) -> dict[str, Any]:
    """Return the figures of `brimful run --json`."""
    return succeed("run", *arguments, "--json", "--quiet").figures


def linked(graph: Path, folder: Path) -> Path:
    """Return a graph of the same files, to which an index may be added."""
    copy = folder / "g.brimful"
    copy.mkdir()
    for file in graph.iterdir():
        (copy / file.name).symlink_to(file)
    return copy


def connected(graph: Path) -> int:
    """Return how many vertices have edges."""
    info = succeed("info", graph, "--json").figures
    return int(info["vertices"] - info["isolated"])


PAGERANK = ["--tolerance", 0, "--max-supersteps", 2]


def with_nightly(some: Sequence[object], more: Sequence[object]) -> list[Any]:
    """Return parameters, of which `more` are of `make nightly`."""
    return [*some, *(pytest.param(one, marks=pytest.mark.nightly) for one in more)]


@pytest.mark.parametrize("budget", with_nightly(["64M", "200M"], ["63M", "70M", "80M", "100M"]))
@pytest.mark.parametrize("precision", with_nightly(["f64"], ["f32"]))
def test_memory_and_disk_of_a_run(graph: Path, budget: str, precision: str) -> None:
    options = [*PAGERANK, "--precision", precision, "--budget", budget]
    forecast = plan(graph, "pagerank", *options)
    measured = run("pagerank", graph, *options)
    assert forecast["fits"] is True
    assert (forecast["supersteps"], forecast["supersteps_guessed"]) == (2, False)
    assert near(forecast["peak_memory_bytes"], measured["peak_rss_bytes"]), (forecast, measured)
    if measured["scratch_bytes"] == 0:
        assert forecast["disk_bytes"] == 0
    else:
        assert near(forecast["disk_bytes"], measured["scratch_bytes"]), (forecast, measured)


def test_states_go_to_disk_where_the_forecast_says_so(graph: Path) -> None:
    states = connected(graph) * 8
    small = plan(graph, "pagerank", *PAGERANK, "--budget", "64M")
    large = plan(graph, "pagerank", *PAGERANK, "--budget", "200M")
    assert small["scratch_bytes"] >= 2 * states and large["scratch_bytes"] == 0
    measured = run("pagerank", graph, *PAGERANK, "--budget", "64M")
    # States are written once at the start and in every superstep.
    assert measured["bytes_written_by"]["states"] == 3 * states


def test_bytes_moved_in_a_superstep(graph: Path) -> None:
    for budget in ("64M", "80M"):
        forecast = plan(graph, "pagerank", *PAGERANK, "--budget", budget)
        two = run("pagerank", graph, *PAGERANK, "--budget", budget)
        one = run("pagerank", graph, "--tolerance", 0, "--max-supersteps", 1, "--budget", budget)
        read = two["bytes_read"] - one["bytes_read"]
        written = two["bytes_written"] - one["bytes_written"]
        assert read > 0 and written > 0
        assert near(forecast["read_bytes_per_superstep"], read), (budget, forecast, read)
        assert near(forecast["written_bytes_per_superstep"], written), (budget, forecast, written)
    forecast = plan(graph, "pagerank", *PAGERANK, "--budget", "200M")
    assert forecast["read_bytes_per_superstep"] == 0
    measured = run("pagerank", graph, *PAGERANK, "--budget", "200M")
    assert near(forecast["read_once_bytes"], measured["bytes_read_by"]["edges"])


@pytest.mark.nightly
@pytest.mark.parametrize(
    "arguments",
    [
        ["bfs", "--source", 1],
        ["sssp", "--source", 1],
        ["pagerank", "--param", "method=delta", "--max-supersteps", 2],
        ["pagerank", "--mode", "async", "--max-supersteps", 2],
        ["degrees", "--param", "direction=both"],
        # No superstep at all.
        ["degrees"],
        ["bfs", "--source", 1, "--max-supersteps", 0],
    ],
    ids=lambda arguments: "-".join(str(word) for word in arguments),
)
@pytest.mark.parametrize("budget", ["72M", "200M"])
def test_memory_and_disk_of_algorithms(graph: Path, arguments: list[object], budget: str) -> None:
    algorithm, *options = arguments
    forecast = plan(graph, algorithm, *options, "--budget", budget)
    measured = run(algorithm, graph, *options, "--budget", budget)
    assert near(forecast["peak_memory_bytes"], measured["peak_rss_bytes"]), (forecast, measured)
    disk, scratch = forecast["disk_bytes"], measured["scratch_bytes"]
    assert near(disk, scratch) if scratch else disk == 0


@pytest.fixture(scope="module")
def smaller(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of 4.2 M edges."""
    path = tmp_path_factory.mktemp("plan") / "rmat18.brimful"
    succeed("generate", "rmat", path, "--scale", 18, "--index", "in,reverse", "--quiet")
    return path


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        ("pagerank", ["--store", "memory", "--budget", "300M"]),
        ("pagerank", ["--store", "bytes", "--budget", "150M"]),
        ("pagerank", ["--store", "bytes", "--serializer", "compact", "--budget", "1G"]),
        ("pagerank", ["--store", "file", "--budget", "150M"]),
        ("degrees", ["--store", "file", "--budget", "200M"]),
        ("hits", ["--store", "bytes", "--budget", "300M"]),
        ("connected_components", ["--store", "memory", "--budget", "1G"]),
        ("pagerank", ["--store", "bytes", "--cache", "score:50000", "--budget", "300M"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value[1:]),
)
def test_stores(smaller: Path, tmp_path: Path, algorithm: str, options: list[str]) -> None:
    in_folder = {"file": f"file:{tmp_path / 'store'}"}
    options = [*(in_folder.get(word, word) for word in options), "--max-supersteps", "2"]
    forecast = plan(smaller, algorithm, *options)
    measured = run(algorithm, smaller, *options)
    assert near(forecast["peak_memory_bytes"], measured["peak_rss_bytes"]), (forecast, measured)
    disk = measured["scratch_bytes"] + (measured["store_figures"] or {}).get("disk_bytes", 0)
    assert near(forecast["disk_bytes"], disk) if disk else forecast["disk_bytes"] == 0
    for figure in ("seconds", "read_once_bytes", "read_bytes_per_superstep"):
        assert forecast[figure] is None
    text = succeed("plan", smaller, algorithm, *options, *MACHINE).out
    assert "a superstep over all edges reads" not in text


def test_a_store_for_a_graph_of_any_size() -> None:
    for vertices, edges in [(5, 2**44), (2**40, 2**44), (1, 0)]:
        sizes = ["--vertices", vertices, "--edges", edges, "--budget", "100M"]
        forecast = plan("pagerank", *sizes, "--store", "bytes")
        assert forecast["fits"] == (edges == 0)
        assert forecast["minimum_budget_bytes"] > 8 * edges
        # What tells of pages on disk does not fit; so many runs of a sort take a moment.
        assert plan("pagerank", *sizes, "--store", "file:x")["fits"] == (edges == 0)


def test_an_index_that_is_not_walked_is_not_foreseen(graph: Path, tmp_path: Path) -> None:
    copy = linked(graph, tmp_path)
    succeed("index", copy, "reverse", "--quiet")
    # Strong components walk one of two indexes in each superstep.
    for supersteps in (1, 3, 10):
        limits = ["--max-supersteps", supersteps, "--budget", "200M"]
        forecast, measured = plan(copy, "scc", *limits), run("scc", copy, *limits)
        assert near(forecast["peak_memory_bytes"], measured["peak_rss_bytes"]), (
            supersteps,
            measured,
        )
        if supersteps == 1:
            assert near(forecast["read_once_bytes"], measured["bytes_read_by"]["edges"])


def test_weights_and_an_undirected_graph(tmp_path: Path) -> None:
    weighted, both = tmp_path / "w.brimful", tmp_path / "u.brimful"
    succeed("generate", "rmat", weighted, "--scale", 19, "--weights", "hash", "--quiet")
    options = ["--source", 1, "--weighted", "--budget", "90M"]
    forecast, measured = plan(weighted, "sssp", *options), run("sssp", weighted, *options)
    assert near(forecast["peak_memory_bytes"], measured["peak_rss_bytes"]), (forecast, measured)
    ignored = plan(weighted, "sssp", "--source", 1, "--budget", "300M")
    heeded = plan(weighted, "sssp", "--source", 1, "--weighted", "--budget", "300M")
    assert 0 < ignored["read_once_bytes"] < heeded["read_once_bytes"]
    # An undirected graph is its own reverse: nothing is to be built.
    succeed("generate", "rmat", both, "--scale", 18, "--undirected", "--quiet")
    for limits in ([], ["--max-supersteps", 2]):
        options = ["--budget", "100M", *limits]
        forecast, measured = plan(both, "kcore", *options), run("kcore", both, *options)
        assert measured["variant"] == ("rounds" if limits else "peeling")
        assert forecast["index_bytes"] == 0 == measured["index_seconds"]
        assert near(forecast["peak_memory_bytes"], measured["peak_rss_bytes"]), (forecast, measured)


def test_a_uniform_graph_that_is_not_built(tmp_path: Path) -> None:
    graph = tmp_path / "er.brimful"
    size = ["--vertices", 500_000, "--edges", 8_000_000]
    figures = succeed("generate", "erdos-renyi", graph, *size, "--json", "--quiet").figures
    limits = ["--budget", "200M"]
    forecast = plan("bfs", *size, *limits)
    assert near(forecast["imported"]["graph_bytes"], figures["bytes_on_disk"])
    measured = run("bfs", graph, "--source", 1, *limits)
    assert near(forecast["peak_memory_bytes"], measured["peak_rss_bytes"]), (forecast, measured)


def test_union_find_where_it_fits(graph: Path) -> None:
    forecast = plan(graph, "connected_components", "--budget", "200M")
    measured = run("connected_components", graph, "--budget", "200M")
    assert measured["variant"] == "union_find" and forecast["supersteps"] == 1
    assert near(forecast["peak_memory_bytes"], measured["peak_rss_bytes"])
    assert forecast["disk_bytes"] == measured["scratch_bytes"] == 0
    # Where it does not, labels are propagated along both indexes, one of which must be built.
    small = plan(graph, "connected_components", "--budget", "64M")
    assert small["fits"] is False and small["index_bytes"] > 0
    needed = f"{-(-small['minimum_budget_bytes'] // MIB)}M"
    sentence = refuse(4, "run", "connected_components", graph, "--budget", "64M", "--quiet")
    assert f"the smallest that works is {needed}" in sentence


@pytest.mark.nightly
@pytest.mark.parametrize("algorithm", ["label_propagation", "scc", "hits", "kcore", "triangles"])
def test_memory_and_disk_with_an_index_to_be_built(
    graph: Path, tmp_path: Path, algorithm: str
) -> None:
    # Strong components walk one index after the other: both, if they are let.
    limits = [] if algorithm in ("triangles", "scc") else ["--max-supersteps", 2]
    copy = linked(graph, tmp_path)
    options = [*limits, "--budget", "200M"]
    if algorithm == "scc":
        # A search in memory walks the forward index alone.
        options += ["--param", "method=coloring"]
    forecast = plan(copy, algorithm, *options)
    before = succeed("info", copy, "--json").figures
    measured = run(algorithm, copy, *options)
    after = succeed("info", copy, "--json").figures
    assert near(forecast["peak_memory_bytes"], measured["peak_rss_bytes"]), (forecast, measured)
    built = after["bytes_on_disk"] - before["bytes_on_disk"]
    if algorithm == "triangles":
        assert forecast["disk_bytes"] == forecast["index_bytes"] == built == 0
        assert forecast["seconds"] is None
    else:
        assert near(forecast["index_bytes"], built)
        assert near(forecast["disk_bytes"], built + measured["scratch_bytes"])


@pytest.mark.parametrize("budget", ["64M", "100M"])
def test_a_graph_that_is_not_built(graph: Path, budget: str) -> None:
    sizes = ["--vertices", f"{connected(graph)}", "--edges", "16.777216e6"]
    forecast = plan("pagerank", *sizes, *PAGERANK, "--budget", budget)
    measured = run("pagerank", graph, *PAGERANK, "--budget", budget)
    assert near(forecast["peak_memory_bytes"], measured["peak_rss_bytes"]), (forecast, measured)
    disk, scratch = forecast["disk_bytes"], measured["scratch_bytes"]
    assert near(disk, scratch) if scratch else disk == 0
    on_disk = succeed("info", graph, "--json").figures["bytes_on_disk"]
    assert near(forecast["imported"]["graph_bytes"], on_disk)
    told = plan(graph, "pagerank", *PAGERANK, "--budget", budget)
    assert near(forecast["minimum_budget_bytes"], told["minimum_budget_bytes"])
    assert told["imported"] is None


_IMPORTS = [("txt", "120M"), ("parquet", "200M")]
_MORE_IMPORTS = [
    ("u32", "120M"),
    ("u32", "400M"),
    ("txt", "1G"),
    ("txt.gz", "1G"),
    ("csv", "1G"),
    ("parquet", "1G"),
    ("mtx", "200M"),
]


@pytest.mark.parametrize("kind_and_budget", with_nightly(_IMPORTS, _MORE_IMPORTS), ids="-".join)
def test_an_import(graph: Path, tmp_path: Path, kind_and_budget: tuple[str, str]) -> None:
    kind, budget = kind_and_budget
    edges = tmp_path / f"edges.{kind}"
    options = {"mtx": ["--renumber"], "u32": ["--lossy"], "csv": ["--lossy"]}
    succeed("export", graph, edges, *options.get(kind, []), "--quiet")
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
    smaller: Path, tmp_path: Path, options: list[str], budget: str
) -> None:
    edges, out = tmp_path / "edges.txt", tmp_path / "again.brimful"
    succeed("export", smaller, edges, "--quiet")
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
        # A name that tells nothing: the first line does.
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
    # A line that is no edge tells nothing, unless such lines are left out.
    assert sizes_of_inputs(paths, import_options()) is None
    found = sizes_of_inputs(paths, import_options(on_error="skip", vertices=20))
    assert found is not None and (found.sizes.vertices, found.sizes.edges) == (20, 4)
    assert sizes_of_inputs([*paths, "-"], import_options()) is None
    # A delimiter makes a table of a text whose name tells nothing.
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
    # Nor is there one of an input that is broken: the import says what is wrong.
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(lines)[:100_000])
    sentence = refuse(3, "import", tmp_path / "cut.txt.gz", tmp_path / "b.brimful", "--quiet")
    assert "cut.txt.gz" in sentence
    # What is refused at once is not announced before.
    sentence = refuse(3, "import", tmp_path / "a.txt", tmp_path / "b.brimful")
    assert "forecast" not in sentence


def test_an_import_tells_what_it_expects_and_how_that_held(graph: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0 1\n1 2\n")
    # Nothing is said of what takes a moment.
    outcome = succeed("import", tmp_path / "a.txt", tmp_path / "small.brimful", "--json")
    assert "forecast" not in outcome.err
    succeed("export", graph, tmp_path / "a.u32", "--lossy", "--quiet")
    outcome = succeed("import", tmp_path / "a.u32", tmp_path / "g.brimful", "--json")
    first, *_, last = outcome.err.strip().split("\n")
    assert first.startswith("brimful: forecast: peak memory ")
    assert last.startswith("brimful: measured peak memory ")
    assert outcome.figures["forecast"]["graph_bytes"] > 0


def test_the_minimum_is_the_one_that_a_run_names(rmat: Path) -> None:
    forecast = plan(rmat, "pagerank", "--budget", "1M")
    assert forecast["fits"] is False
    assert forecast["budget_bytes"] == MIB
    needed = forecast["minimum_budget_bytes"]
    succeed("run", "pagerank", rmat, "--budget", needed, "--quiet")
    refuse(4, "run", "pagerank", rmat, "--budget", needed - MIB, "--quiet")
    outcome = succeed("plan", rmat, "pagerank", "--budget", "1M", *MACHINE)
    assert f"the smallest that works is {-(-needed // MIB)}M, and the" in outcome.out


def test_a_run_tells_what_it_expects_and_how_that_held(
    graph: Path, rmat: Path, tmp_path: Path
) -> None:
    outcome = succeed("run", "pagerank", graph, "--json")
    assert len(outcome.out.strip().split("\n")) == 1
    lines = outcome.err.strip().split("\n")
    assert lines[0].startswith("brimful: forecast: peak memory ")
    assert lines[-1].startswith("brimful: measured peak memory ")
    figures = outcome.figures
    assert figures["forecast"]["peak_memory_bytes"] > 0
    assert figures["forecast"]["threads"] == figures["threads"]
    quiet = succeed("run", "pagerank", rmat, "--json", "--quiet")
    assert quiet.err == ""
    # Nothing is said of what takes a moment, and little of the budget.
    assert "forecast" not in succeed("run", "pagerank", rmat, "--json").err
    folder = tmp_path / "checkpoints"
    saving = ["connected_components", rmat, "--checkpoint-every", 1, "--checkpoint-dir", folder]
    outcome = succeed("run", *saving, "--json", "--budget", "100M")
    forecast = outcome.figures["forecast"]
    assert near(forecast["peak_memory_bytes"], outcome.figures["peak_rss_bytes"]), outcome.figures
    saving = ["pagerank", graph, "--checkpoint-every", 10, "--checkpoint-dir", folder]
    assert "besides checkpoints" in succeed("run", *saving).err.split("\n")[0]
    on_disk = ["--store", f"file:{tmp_path / 'store'}", "--max-supersteps", 1]
    outcome = succeed("run", "pagerank", rmat, "--json", *on_disk)
    assert outcome.err.startswith("brimful: forecast: peak memory ")
    assert "disk" in outcome.err.strip().split("\n")[-1]


def test_another_machine_in_pages(tmp_path: Path) -> None:
    web = ["--vertices", "11.5e9", "--edges", "128e9", "pagerank", "--budget", "64G"]
    slow = plan(*web)
    quick = succeed(
        "plan", *web, "--disk-bandwidth", 20, "--memory-bandwidth", 300, "--json", "--quiet"
    ).figures
    assert slow["fits"] and quick["fits"]
    assert slow["peak_memory_bytes"] <= 64 << 30
    assert slow["scratch_bytes"] >= 11_500_000_000 * 8
    # Ten times the bandwidths, a tenth of the time.
    assert quick["seconds"] == pytest.approx(slow["seconds"] / 10)
    assert slow["seconds"] > slow["read_bytes_per_superstep"] / 2e9
    assert slow["imported"]["graph_bytes"] > 128e9
    assert slow["imported"]["seconds"] > 0
    text = succeed("plan", *web, *MACHINE).out
    assert "11,500,000,000 vertices and 128,000,000,000 edges" in text
    assert "about" in text and "2 GB/s" in text


def test_bandwidths_are_measured_where_none_is_given(rmat: Path) -> None:
    figures = succeed("plan", rmat, "bfs", "--json", "--quiet").figures
    assert 0.1 < figures["memory_bandwidth"] < 10_000
    assert 0.001 < figures["disk_bandwidth"] < 1_000
    assert figures["seconds"] > 0


def test_measuring_bandwidths_keeps_the_budget() -> None:
    sizes = ["--vertices", "1e6", "--edges", "1e7", "--threads", "64", "--budget", "100M"]
    command = [*BRIMFUL, "plan", "pagerank", *sizes, "--quiet"]
    alone = (
        f"import resource, subprocess; subprocess.run({command}, check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", alone], capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) << 10 <= 100 * MIB


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (
            ["pagerang", "--vertices", 5, "--edges", 6],
            "did you mean",
        ),
        (["pagerank"], "--vertices"),
        (["pagerank", "--vertices", 5], "--edges"),
        (["pagerank", "--vertices", "-5", "--edges", 6], "whole number"),
        (["pagerank", "--vertices", "5.5", "--edges", 6], "whole number"),
        (["pagerank", "--vertices", "1e30", "--edges", 6], "17,592,186,044,416"),
        (["pagerank", "--vertices", 0, "--edges", 6], "need vertices"),
        (["pagerank", "--vertices", 5, "--edges", 6, "--disk-bandwidth", 0], "above 0"),
        (
            ["pagerank", "--vertices", 5, "--edges", 6, "--memory-bandwidth", "nan"],
            "number from",
        ),
        (["pagerank", "--vertices", 5, "--edges", 6, "--bytes-per-edge", -1], "bytes"),
        (["pagerank", "--vertices", 5, "--edges", 6, "--store", "bites"], "no store"),
        (["triangles", "--vertices", 5, "--edges", 6, "--store", "bytes"], "--store"),
        (["pagerank", "--vertices", 5, "--edges", 6, "--param", "damping=2"], "damping"),
        (["bfs", "--vertices", 5, "--edges", 6, "--weighted"], "weighted"),
        (["a", "b", "pagerank"], "one graph"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[object], part: str) -> None:
    assert part in refuse(USAGE, "plan", *arguments, "--quiet")


def test_a_graph_has_its_own_sizes(rmat: Path) -> None:
    assert "--vertices" in refuse(USAGE, "plan", rmat, "pagerank", "--vertices", 5, "--quiet")
    assert "weights" in refuse(USAGE, "plan", rmat, "sssp", "--weighted", "--quiet")
    assert brimful("plan", rmat.parent / "missing.brimful", "pagerank", "--quiet").code == 3


def test_the_order_of_a_run_works_too(rmat: Path) -> None:
    limits = ("--budget", "1G")
    assert plan("degrees", rmat, *limits) == plan(rmat, "degrees", *limits)


def test_a_plan_names_the_budget_that_holds_the_vertex_data(rmat: Path) -> None:
    options = ["sssp", rmat, "--source", 1]
    least = plan(*options, "--budget", "1G")["minimum_budget_bytes"]
    enough = plan(*options, "--budget", least)["in_memory_budget_bytes"]
    assert least < enough
    text = succeed("plan", *options, *MACHINE, "--budget", least).out
    assert f"a budget of {enough >> 20}M holds them" in text
    assert (
        f"a budget of {enough >> 20}M holds them" in succeed("run", *options, "--budget", least).err
    )
    assert "holds them" not in succeed("plan", *options, *MACHINE, "--budget", "1G").out
    # Runs within both budgets: with the second nothing of the vertices is in scratch.
    written = [
        succeed("run", *options, "--budget", budget, "--json", "--quiet").figures["bytes_written"]
        for budget in (least, enough + (2 << 20))
    ]
    assert written[0] > 0 and written[1] == 0


def test_a_plan_needs_the_sources_of_its_run(rmat: Path) -> None:
    without, some = plan(rmat, "bfs"), plan(rmat, "bfs", "--source", 1, "--source", 2)
    assert without["supersteps"] == some["supersteps"]
    for source, code, part in ((1 << 40, INPUT, "has no vertex"), ("one", USAGE, "an integer in")):
        refused = refuse(code, "plan", rmat, "bfs", "--source", source, *MACHINE, "--quiet")
        assert part in refused
        assert refused == refuse(code, "run", "bfs", rmat, "--source", source, "--quiet")
    assert plan("bfs", "--vertices", 5, "--edges", 6, "--source", "any")["fits"]


def test_python_says_what_the_command_line_says(rmat: Path) -> None:
    with bf.Graph.open(rmat) as graph:
        here = bf.plan(
            graph, "sssp", budget="50M", disk_bandwidth=2, memory_bandwidth=30, max_supersteps=3
        )
        assert here.fits and here.supersteps == 3 and here.supersteps_guessed
        result = bf.sssp(graph, source=1, budget="50M", max_supersteps=3)
        assert result.stats["forecast"]["scratch_bytes"] == here.scratch_bytes
        with pytest.raises(bf.UsageError, match="do not apply to a graph that exists"):
            bf.plan(graph, "bfs", vertices=3)
        machine: Any = {"disk_bandwidth": 2, "memory_bandwidth": 30}
        without, some = (bf.plan(graph, "bfs", source=of, **machine) for of in (None, [1, 2]))
        assert without.supersteps == some.supersteps
        for of in (1 << 40, "one", [1, 1 << 40]):
            with pytest.raises(bf.NotFoundError) as refused:
                bf.plan(graph, "bfs", source=of, **machine)
            with pytest.raises(bf.NotFoundError, match=re.escape(str(refused.value))):
                bf.bfs(graph, of)
        with pytest.raises(bf.UsageError, match="kcore takes no source"):
            bf.plan(graph, "kcore", source=1)
        with pytest.raises(TypeError, match=r"plan\(\) got .* 'sorce'; did you mean 'source'"):
            bf.plan(graph, "bfs", sorce=1)  # type: ignore[call-arg]
    assert bf.plan(None, "bfs", vertices=5, edges=6, source="any", **machine).imported is not None
    unbuilt = bf.plan(
        None,
        "kcore",
        vertices=1e6,
        edges=2e7,
        index="in,reverse",
        memory_bandwidth=30,
        disk_bandwidth=1,
    )
    assert unbuilt.imported is not None and unbuilt.index_bytes == 0
    without = bf.plan(None, "kcore", vertices=1e6, edges=2e7, memory_bandwidth=30, disk_bandwidth=1)
    assert without.imported is not None and without.index_bytes > 0
    assert without.imported.graph_bytes < unbuilt.imported.graph_bytes
    with pytest.raises(bf.UsageError, match="numbers of vertices"):
        bf.plan(None, "bfs")


def test_json_has_every_figure(rmat: Path) -> None:
    figures = plan(rmat, "pagerank", "--budget", "100M")
    expected = {"graph", *bf.Forecast.__dataclass_fields__}
    assert set(figures) == expected
    assert json.loads(json.dumps(figures)) == figures


#: A graph that is not built, and its vertices.
UNBUILT = ["--vertices", "1e9", "--edges", "32e9", "--budget", "64G"]
VERTICES = 10**9


def test_workers_of_a_cluster_divide_work_and_exchange_all_signals() -> None:
    alone = plan("pagerank", *UNBUILT)
    assert alone["workers"] is alone["received_bytes_per_superstep"] is alone["network"] is None
    seconds = []
    for workers in (1, 4, 64):
        divided = plan("pagerank", *UNBUILT, "--cluster", workers, "--network", 100)
        assert (divided["workers"], divided["network"]) == (workers, 100)
        others = 8 * VERTICES * (workers - 1) / workers
        # A part is of whole intervals.
        for figure in ("sent_bytes_per_superstep", "received_bytes_per_superstep"):
            assert abs(divided[figure] - others) <= 8 * 65536 * workers, (workers, divided)
        # Each holds all signals, and the states of its own vertices.
        assert divided["peak_memory_bytes"] >= 8 * VERTICES * (1 + 1 / workers)
        assert divided["minimum_budget_bytes"] >= 8 * VERTICES
        seconds.append(divided["seconds_per_superstep"])
    assert alone["seconds_per_superstep"] < seconds[0] < 1.1 * alone["seconds_per_superstep"] + 1
    assert seconds[0] > seconds[1] > seconds[2] > seconds[0] / 64


def test_a_slow_network_takes_its_time() -> None:
    fast, slow = (
        plan("pagerank", *UNBUILT, "--cluster", 4, "--network", gigabits)["seconds_per_superstep"]
        for gigabits in (100, 10)
    )
    # 6 GB to each of four workers, at 1.25 GB/s instead of 12.5.
    assert abs((slow - fast) - 6 * (1 / 1.25 - 1 / 12.5)) < 0.01
    usual = plan("pagerank", *UNBUILT, "--cluster", 4)
    assert (usual["seconds_per_superstep"], usual["network"]) == (slow, 10)
    text = succeed("plan", "pagerank", *UNBUILT, *MACHINE, "--cluster", 4).out
    assert "for each of 4 workers" in text and "and a network of 10 Gbit/s" in text


def test_workers_of_one_machine_share_its_cores(graph: Path) -> None:
    options = ["--threads", 1, "--budget", "1G"]
    plans = [
        plan(graph, "pagerank", *options, "--cluster", f"local:{count}") for count in (1, 2, 64)
    ]
    assert all(one["network"] is None for one in plans)
    cores = os.cpu_count() or 1
    one, two, many = (plan["seconds_per_superstep"] for plan in plans)
    if cores < 64:
        assert many > two, "more workers than cores only wait for one another"
    assert one > 0
    figures = bf.plan(graph, "pagerank", cluster="local:2", threads=1, budget="1G")
    assert figures.received_bytes_per_superstep == plans[1]["received_bytes_per_superstep"]


def test_every_algorithm_of_a_cluster_has_its_forecast(graph: Path) -> None:
    for name, info in algorithms().items():
        if "cluster" in info["takes"]:
            options = ["--source", 1] if "source" in info["takes"] else []
            figures = plan(graph, name, *options, "--budget", "1G", "--cluster", 2)
            assert figures["received_bytes_per_superstep"] > 0, name


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["pagerank", "--cluster", "0"], "cluster must be a number of workers from 1 to 1,000"),
        (["pagerank", "--cluster", "auto"], "or local:N, not auto"),
        (["pagerank", "--cluster", "2", "--network", "0"], "network must be a number of Gbit/s"),
        (["triangles", "--cluster", "2"], "triangles does not run on a cluster"),
        (["pagerank", "--cluster", "2", "--mode", "async"], "needs synchronous supersteps"),
        (["pagerank", "--cluster", "2", "--store", "memory"], "leave --store or --cluster out"),
    ],
)
def test_clusters_that_there_cannot_be(options: list[str], sentence: str) -> None:
    assert sentence in refuse(USAGE, "plan", *options, *UNBUILT)
