"""`--log`, and bytes by their content: the figures of a run add up."""

from __future__ import annotations

import json
import operator
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import brimful as bf
from command import (
    INPUT,
    IO,
    USAGE,
    assert_one_sentence,
    brimful,
    refuse,
    smallest,
    succeed,
    write_edges,
)
from nightly import with_nightly

CONTENTS = {
    "manifest",
    "ids",
    "degrees",
    "edges",
    "weights",
    "states",
    "signals",
    "lists",
    "records",
    "checkpoints",
    "working",
    "input",
}


def events(text: str) -> list[dict[str, Any]]:
    """Parse a log; insists on a time and a level in every line, and that supersteps ascend."""
    parsed = [json.loads(line) for line in text.splitlines()]
    times = {id(event): datetime.fromisoformat(event["timestamp"]) for event in parsed}
    # Other events may come from several threads.
    steps = [times[id(event)] for event in named(parsed, "superstep")]
    assert steps == sorted(steps)
    assert {event["level"] for event in parsed} <= {"INFO", "ERROR"}
    return parsed


def named(parsed: list[dict[str, Any]], message: str) -> list[dict[str, Any]]:
    return [event for event in parsed if event["message"] == message]


def assert_by_content(figures: dict[str, Any]) -> None:
    for name in ("bytes_read", "bytes_written", "bytes_found"):
        assert set(figures[f"{name}_by"]) == CONTENTS
        assert sum(figures[f"{name}_by"].values()) == figures[name]


@pytest.mark.parametrize("algorithm", ["pagerank", "bfs", "label_propagation"])
def test_the_log_of_a_run_adds_up(rmat: Path, tmp_path: Path, algorithm: str) -> None:
    log = tmp_path / "run.log"
    options = ["--source", 0] if algorithm == "bfs" else []
    arguments = ["run", algorithm, rmat, *options, "--json", "--quiet", "--log", log]
    figures = succeed(*arguments).figures
    parsed = events(log.read_text())
    assert [parsed[0]["message"], parsed[-1]["message"]] == ["start", "end"]
    assert parsed[0]["command"].startswith(f"brimful run {algorithm} ")
    assert parsed[0]["version"] == bf.__version__
    assert parsed[-1]["exit_code"] == 0 and parsed[-1]["peak_rss_bytes"] > 1 << 20
    steps = named(parsed, "superstep")
    assert [step["superstep"] for step in steps] == list(range(1, figures["supersteps"] + 1))
    assert sum(step["signals"] for step in steps) == figures["signals"]
    assert sum(step["edges"] for step in steps) == figures["edge_visits"]
    assert sum(step["seconds"] for step in steps) == pytest.approx(figures["superstep_total"])
    assert {step["traversal"] for step in steps} <= {"dense", "sparse", "gather"}
    assert Counter(step["traversal"] for step in steps) == figures["traversals"]
    assert steps[-1]["traversal"] == figures["last_traversal"]
    # What is read while preparing belongs to no superstep.
    assert sum(step["bytes_read"] for step in steps) <= figures["bytes_read"] > 0
    [run] = named(parsed, "run")
    assert (run["supersteps"], run["reason"]) == (figures["supersteps"], figures["reason"])
    phases = {event["phase"]: event["seconds"] for event in named(parsed, "phase")}
    # Building an index that was missing has phases of its own.
    assert {name: phases[name] for name in figures["phases"]} == pytest.approx(figures["phases"])
    read = {event["content"]: event["bytes_read"] for event in named(parsed, "traffic")}
    assert read.items() <= figures["bytes_read_by"].items()
    assert sum(read.values()) == figures["bytes_read"]


#: Lists of the figures, and the fields of events.
LISTED = ("seconds", "frontier", "signals", "edges", "bytes_read", "bytes_written")


@pytest.mark.parametrize("place", with_nightly([(), ("--store", "file")], [("--store", "bytes")]))
def test_the_frontier_of_a_search_is_its_layers(
    rmat: Path, tmp_path: Path, place: tuple[str, ...]
) -> None:
    log = tmp_path / "run.log"
    words = ("run", "bfs", rmat, "--source", 0, "--threads", 2, "--json", "--quiet", "--log", log)
    where = ("--store", f"file:{tmp_path}") if place[1:] == ("file",) else place
    figures = succeed(*words, *where).figures
    with bf.Graph.open(rmat) as graph:
        web = graph.to_networkx()
    layers = list(nx.bfs_layers(web, 0))
    assert figures["superstep_frontier"] == [len(layer) for layer in layers]
    assert figures["largest_frontier"] == max(map(len, layers))
    degrees = [sum(web.out_degree(vertex) for vertex in layer) for layer in layers]
    visits = figures["superstep_edges"]
    # Blocks of edges also hold those of other sources.
    assert all(map(operator.ge, visits, degrees)) and (not place or visits == degrees)
    steps = named(events(log.read_text()), "superstep")
    for name in LISTED:
        assert [step[name] for step in steps] == figures[f"superstep_{name}"], name


def test_the_frontier_of_the_other_traversals(rmat: Path, tmp_path: Path) -> None:
    with bf.Graph.open(rmat) as graph:
        degrees = nx.degree(graph.to_networkx())
        every, connected = len(degrees), sum(degree > 0 for _, degree in degrees)
        assert connected < every
        for store in (None, "bytes"):
            stats = bf.pagerank(graph, max_supersteps=3, tolerance=0, store=store).stats
            assert stats["superstep_frontier"] == 3 * [every]
        gathered = bf.label_propagation(graph, max_supersteps=2).stats
        assert gathered["superstep_frontier"] == 2 * [connected]
        # With checkpoints coloring has supersteps. Vertices that have a color do not gather again.
        saved = {"checkpoint_every": 100, "checkpoint_dir": tmp_path / "saved"}
        colored = bf.color(graph, budget="96M", **saved).stats["superstep_frontier"]
        assert colored[0] == connected and colored == sorted(colored, reverse=True)
        scanned = bf.connected_components(graph).stats
        assert (scanned["superstep_frontier"], scanned["largest_frontier"]) == ([None], None)
        swept = bf.connected_components(graph, method="propagation", mode="async").stats
        assert swept["superstep_frontier"][0] == connected


def test_a_resumed_run_lists_the_supersteps_before_it(rmat: Path, tmp_path: Path) -> None:
    saved = ("--checkpoint-every", 2, "--checkpoint-dir", tmp_path / "saved")
    run = ("run", "bfs", rmat, "--source", 0, "--json", "--quiet")
    for place in ((), ("--store", "bytes")):
        whole = succeed(*run, *place).figures
        succeed(*run, *place, *saved, "--max-supersteps", 2)
        resumed = succeed(*run, *place, *saved, "--resume").figures
        assert resumed["resumed_from"] == 2
        for name in ("frontier", "signals"):
            assert resumed[f"superstep_{name}"] == whole[f"superstep_{name}"], place


def test_programs_in_python_list_their_supersteps(rmat: Path, tmp_path: Path) -> None:
    class Levels(bf.Program):
        def initial_state(self, vertex: bf.Vertex) -> int:
            return 0 if vertex.id == 0 else 1 << 30

        def signal(self, source: bf.Vertex, target: Any, weight: float) -> int | None:
            return source.state + 1 if source.state < 1 << 30 else None

        def collect(self, vertex: bf.Vertex, signals: list[int]) -> int:
            return min(vertex.state, *signals)

    with bf.Graph.open(rmat) as graph:
        stats = bf.run(graph, Levels(), store=f"file:{tmp_path}").stats
        layers = list(nx.bfs_layers(graph.to_networkx(), 0))
        first = (len(graph), graph.arcs)
    # First all vertices are due; then those whose state changed.
    assert stats["superstep_frontier"][1:] == [len(layer) for layer in layers[1:]]
    assert (stats["superstep_frontier"][0], stats["superstep_edges"][0]) == first
    steps = stats["store_figures"]["supersteps"]
    assert [step["edges"] for step in steps] == stats["superstep_edges"]
    assert [step["signals"] for step in steps] == stats["superstep_signals"]
    # All pages of these records fit in memory.
    assert stats["superstep_bytes_written"] == len(steps) * [0]


def test_the_summary_has_the_largest_frontier(rmat: Path) -> None:
    words = ("run", "bfs", rmat, "--source", 0)
    figures = succeed(*words, "--json", "--quiet").figures
    shown = succeed(*words).out
    counts = (figures["largest_frontier"], figures["edge_visits"])
    assert "largest frontier: {:,} vertices; {:,} edges visited".format(*counts) in shown
    assert "frontier" not in succeed("run", "connected_components", rmat).out


def test_the_log_of_a_run_in_a_store_adds_up(rmat18: Path, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    store = ["--store", "bytes", "--lists", "disk", "--threads", 2]
    arguments = ["run", "pagerank", rmat18, *store, "--max-supersteps", 2, "--tolerance", 0]
    figures = succeed(*arguments, "--json", "--quiet", "--log", log).figures
    steps = named(events(log.read_text()), "superstep")
    assert [step["superstep"] for step in steps] == [1, 2]
    assert {step["traversal"] for step in steps} == {"store"}
    assert figures["traversals"] == {"store": 2} and figures["last_traversal"] == "store"
    assert sum(step["signals"] for step in steps) == figures["signals"]
    # Loading comes before them.
    written = sum(step["bytes_written"] for step in steps)
    assert 0 < written <= figures["bytes_written"]


def test_the_supersteps_of_a_store_add_up(rmat: Path, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    store = ["--store", "bytes", "--cache", "lru:1000", "--threads", 2]
    arguments = ["run", "pagerank", rmat, *store, "--max-supersteps", 4, "--tolerance", 0]
    figures = succeed(*arguments, "--json", "--quiet", "--log", log).figures
    steps, done = named(events(log.read_text()), "store superstep"), figures["store_figures"]
    names = set(done["supersteps"][0])
    assert [{name: step[name] for name in names} for step in steps] == done["supersteps"]
    assert [step["superstep"] for step in steps] == [1, 2, 3, 4]
    assert sum(step["signals"] for step in steps) == figures["signals"]
    assert sum(step["spills"] for step in steps) == done["spills"]
    # In each superstep every vertex signals and collects: the cached ones from the cache alone.
    for step in steps:
        assert step["cache_hits"] == 2 * 1000
        assert step["vertex_reads"] == step["cache_misses"] == 2 * (figures["vertices"] - 1000)
        assert 0 < step["vertex_writes"] <= figures["vertices"] - 1000
        assert figures["peak_rss_bytes"] / 4 < step["memory_bytes"] <= figures["peak_rss_bytes"]
    seconds = sum(step["signal_seconds"] + step["collect_seconds"] for step in steps)
    assert 0 < seconds <= figures["superstep_total"]


def test_supersteps_of_a_database_have_no_bytes(rmat: Path, tmp_path: Path) -> None:
    log, store = tmp_path / "run.log", ["--store", f"kv:{tmp_path / 'vertices'}", "--quiet"]
    figures = succeed("run", "connected_components", rmat, *store, "--json", "--log", log).figures
    for name in ("bytes_read", "bytes_written"):
        assert {step[name] for step in figures["store_figures"]["supersteps"]} == {None}
        assert figures[f"superstep_{name}"] == [None] * figures["supersteps"]
        for steps in ("store superstep", "superstep"):
            assert not any(name in step for step in named(events(log.read_text()), steps))
    with bf.Graph.open(rmat) as graph:
        page = bf.connected_components(graph, store=f"kv:{tmp_path / 'vertices'}").report().html
    assert "Seconds per superstep" in page and "Bytes per superstep" not in page


def test_bytes_of_a_run_by_what_they_are(rmat: Path) -> None:
    options = ["--max-supersteps", 3, "--tolerance", 0, "--json", "--quiet"]
    figures = succeed("run", "pagerank", rmat, *options).figures
    assert_by_content(figures)
    # All fits: every edge is read once and found twice more.
    packed = figures["bytes_read_by"]["edges"]
    assert figures["bytes_found_by"]["edges"] == 2 * packed > 0
    assert (figures["writes"], figures["write_seconds"]) == (0, 0)
    assert figures["reads"] > 0 and figures["read_seconds"] > 0
    assert figures["bytes_read_by"]["states"] == figures["bytes_written"] == 0


def test_weights_are_read_only_where_they_are_asked_for(tmp_path: Path) -> None:
    graph = tmp_path / "g.brimful"
    succeed("generate", "rmat", graph, "--scale", 10, "--weights", "hash", "--quiet")
    for place in (["--store", "bytes"], []):
        for weighted in ([], ["--weighted"]):
            words = ["run", "sssp", graph, "--source", 1, *place, *weighted, "--json", "--quiet"]
            figures = succeed(*words).figures
            assert (figures["bytes_read_by"]["weights"] > 0) == bool(weighted), (place, weighted)


def test_states_and_signals_on_disk_are_counted(tmp_path: Path) -> None:
    graph, vertices = tmp_path / "g.brimful", 4_000_000
    succeed("generate", "chain", graph, "--vertices", vertices, "--quiet")
    run = ["run", "pagerank", graph, "--max-supersteps", 2, "--tolerance", 0]
    figures = succeed(*run, "--budget", smallest(*run), "--json", "--quiet").figures
    assert_by_content(figures)
    # Both are written by the first turn and by each superstep, and read by each superstep.
    for content in ("states", "signals"):
        assert figures["bytes_written_by"][content] >= 3 * 8 * vertices
        assert figures["bytes_read_by"][content] >= 2 * 8 * vertices


def test_the_log_of_an_import_has_phases_and_spills(tmp_path: Path) -> None:
    log, graph = tmp_path / "g.log", tmp_path / "g.brimful"
    options = ["--scale", 19, "--edge-factor", 16, "--budget", "96M"]
    figures = succeed(
        "generate", "rmat", graph, *options, "--json", "--quiet", "--log", log
    ).figures
    assert_by_content(figures)
    parsed = events(log.read_text())
    spilled = sum(event["bytes"] for event in named(parsed, "spill"))
    assert 0 < spilled <= figures["bytes_written_by"]["working"]
    assert {event["phase"] for event in named(parsed, "phase")} == set(figures["phases"])
    assert figures["bytes_written_by"]["edges"] > figures["edges"]
    # A second command is appended.
    succeed("verify", graph, "--quiet", "--log", log)
    assert [event["message"] for event in events(log.read_text())].count("end") == 2


def test_a_log_says_how_a_command_failed(rmat: Path, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    sentence = refuse(INPUT, "run", "pagerank", tmp_path / "no.brimful", "--quiet", "--log", log)
    end = events(log.read_text())[-1]
    assert (end["message"], end["level"], end["exit_code"]) == ("end", "ERROR", INPUT)
    assert "brimful: " + end["error"] == sentence
    log.unlink()
    refuse(USAGE, "run", "sssp", rmat, "--quiet", "--log", log)
    assert events(log.read_text())[-1]["exit_code"] == USAGE


def test_a_log_goes_to_standard_error(rmat: Path) -> None:
    outcome = succeed("run", "bfs", rmat, "--source", 0, "--json", "--quiet", "--log", "-")
    assert outcome.figures["algorithm"] == "bfs"
    assert events(outcome.err)[-1]["message"] == "end"


def test_a_log_that_cannot_be_written_is_refused(rmat: Path, tmp_path: Path) -> None:
    outcome = brimful("info", rmat, "--log", tmp_path / "no" / "x.log")
    assert outcome.code == IO
    assert_one_sentence(outcome.err)
    assert f"x.log: there is no folder {tmp_path / 'no'}" in outcome.err and outcome.out == ""


def test_a_log_does_not_change_other_files(rmat: Path, tmp_path: Path) -> None:
    edges = write_edges(tmp_path / "e.txt", [(1, 2)])
    graph, result = tmp_path / "g.brimful", tmp_path / "r.csv"
    assert "not a log" in refuse(USAGE, "import", edges, graph, "--log", edges)
    assert "not a log" in refuse(USAGE, "run", "degrees", rmat, "--log", edges)
    assert edges.read_text() == "1 2\n" and not graph.exists()
    both = ["run", "degrees", rmat, "-o", result, "--log", result, "--overwrite"]
    assert "two files" in refuse(USAGE, *both)
    assert not result.exists()
    log = tmp_path / "x.log"
    for _ in range(2):
        succeed("info", rmat, "--log", log)
    assert log.read_text().count('"message":"end"') == 2
