"""Forecasts against measured figures, each run in a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import brimful as bf
from command import BRIMFUL, INPUT, USAGE, brimful, refuse, succeed
from nightly import with_nightly
from plans import MACHINE, near, plan, run

MIB = 1 << 20


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


@pytest.mark.parametrize("budget", with_nightly(["64M", "200M"], ["63M", "70M", "80M", "100M"]))
@pytest.mark.parametrize("precision", with_nightly(["f64"], ["f32"]))
def test_memory_and_disk_of_a_run(rmat20: Path, budget: str, precision: str) -> None:
    options = [*PAGERANK, "--precision", precision, "--budget", budget]
    forecast = plan(rmat20, "pagerank", *options)
    measured = run("pagerank", rmat20, *options)
    assert forecast["fits"] is True
    assert (forecast["supersteps"], forecast["supersteps_guessed"]) == (2, False)
    assert near(forecast["peak_memory_bytes"], measured["peak_rss_bytes"]), (forecast, measured)
    if measured["scratch_bytes"] == 0:
        assert forecast["disk_bytes"] == 0
    else:
        assert near(forecast["disk_bytes"], measured["scratch_bytes"]), (forecast, measured)


def test_states_go_to_disk_where_the_forecast_says_so(rmat20: Path) -> None:
    states = connected(rmat20) * 8
    small = plan(rmat20, "pagerank", *PAGERANK, "--budget", "64M")
    large = plan(rmat20, "pagerank", *PAGERANK, "--budget", "200M")
    assert small["scratch_bytes"] >= 2 * states and large["scratch_bytes"] == 0
    measured = run("pagerank", rmat20, *PAGERANK, "--budget", "64M")
    # States are written once at the start and in every superstep.
    assert measured["bytes_written_by"]["states"] == 3 * states


def test_bytes_moved_in_a_superstep(rmat20: Path) -> None:
    for budget in ("64M", "80M"):
        forecast = plan(rmat20, "pagerank", *PAGERANK, "--budget", budget)
        two = run("pagerank", rmat20, *PAGERANK, "--budget", budget)
        one = run("pagerank", rmat20, "--tolerance", 0, "--max-supersteps", 1, "--budget", budget)
        read = two["bytes_read"] - one["bytes_read"]
        written = two["bytes_written"] - one["bytes_written"]
        assert read > 0 and written > 0
        assert near(forecast["read_bytes_per_superstep"], read), (budget, forecast, read)
        assert near(forecast["written_bytes_per_superstep"], written), (budget, forecast, written)
    forecast = plan(rmat20, "pagerank", *PAGERANK, "--budget", "200M")
    assert forecast["read_bytes_per_superstep"] == 0
    measured = run("pagerank", rmat20, *PAGERANK, "--budget", "200M")
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
        ["color"],
    ],
    ids=lambda arguments: "-".join(str(word) for word in arguments),
)
@pytest.mark.parametrize("budget", ["72M", "200M"])
def test_memory_and_disk_of_algorithms(rmat20: Path, arguments: list[object], budget: str) -> None:
    algorithm, *options = arguments
    forecast = plan(rmat20, algorithm, *options, "--budget", budget)
    measured = run(algorithm, rmat20, *options, "--budget", budget)
    assert near(forecast["peak_memory_bytes"], measured["peak_rss_bytes"]), (forecast, measured)
    disk, scratch = forecast["disk_bytes"], measured["scratch_bytes"]
    assert near(disk, scratch) if scratch else disk == 0


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
def test_stores(rmat18: Path, tmp_path: Path, algorithm: str, options: list[str]) -> None:
    in_folder = {"file": f"file:{tmp_path / 'store'}"}
    options = [*(in_folder.get(word, word) for word in options), "--max-supersteps", "2"]
    forecast = plan(rmat18, algorithm, *options)
    measured = run(algorithm, rmat18, *options)
    assert near(forecast["peak_memory_bytes"], measured["peak_rss_bytes"]), (forecast, measured)
    disk = measured["scratch_bytes"] + (measured["store_figures"] or {}).get("disk_bytes", 0)
    assert near(forecast["disk_bytes"], disk) if disk else forecast["disk_bytes"] == 0
    for figure in ("seconds", "read_once_bytes", "read_bytes_per_superstep"):
        assert forecast[figure] is None
    text = succeed("plan", rmat18, algorithm, *options, *MACHINE).out
    assert "a superstep over all edges reads" not in text


def test_a_store_for_a_graph_of_any_size() -> None:
    for vertices, edges in [(5, 2**44), (2**40, 2**44), (1, 0)]:
        sizes = ["--vertices", vertices, "--edges", edges, "--budget", "100M"]
        forecast = plan("pagerank", *sizes, "--store", "bytes")
        assert forecast["fits"] == (edges == 0)
        assert forecast["minimum_budget_bytes"] > 8 * edges
        # The table of pages on disk does not fit; so many runs of a sort take a moment.
        assert plan("pagerank", *sizes, "--store", "file:x")["fits"] == (edges == 0)


def test_an_index_that_is_not_walked_is_not_foreseen(rmat20: Path, tmp_path: Path) -> None:
    copy = linked(rmat20, tmp_path)
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


def test_the_time_of_coloring_is_foreseen_where_states_do_not_fit(rmat20: Path) -> None:
    least = plan(rmat20, "color", "--budget", "1M")["minimum_budget_bytes"]
    forecast = plan(rmat20, "color", "--budget", least)
    measured = run("color", rmat20, "--budget", least)
    assert near(forecast["peak_memory_bytes"], measured["peak_rss_bytes"]), (forecast, measured)
    assert near(forecast["disk_bytes"], measured["scratch_bytes"])
    assert forecast["seconds"] > 0 and forecast["supersteps"] == measured["supersteps"] == 1
    # Sixteen bytes an edge at most, in any budget: edges are sorted once.
    assert measured["bytes_written"] < 16 * 16_777_216


def test_unpacked_edges_of_roads_are_foreseen(data: Path, tmp_path: Path) -> None:
    roads = tmp_path / "ny.brimful"
    succeed("import", data / "NY.gr.xz", roads, "--quiet")
    options = ["closeness", "--budget", "1G", "--max-supersteps", 40]
    # One thread follows these edges, and memory of 30 GB/s is that of all threads.
    two, eight = (plan(roads, *options, "--threads", threads) for threads in (2, 8))
    assert eight["seconds_per_superstep"] > 2 * two["seconds_per_superstep"]
    forecast = plan(roads, *options)
    measured = run("closeness", roads, *options[1:])
    assert measured["traversals"]["unpacked"] > 20
    assert near(forecast["peak_memory_bytes"], measured["peak_rss_bytes"]), (forecast, measured)


def test_union_find_where_it_fits(rmat20: Path) -> None:
    forecast = plan(rmat20, "connected_components", "--budget", "200M")
    measured = run("connected_components", rmat20, "--budget", "200M")
    assert measured["variant"] == "union_find" and forecast["supersteps"] == 1
    assert near(forecast["peak_memory_bytes"], measured["peak_rss_bytes"])
    assert forecast["disk_bytes"] == measured["scratch_bytes"] == 0
    # Where it does not, labels are propagated along both indexes, one of which must be built.
    small = plan(rmat20, "connected_components", "--budget", "64M")
    assert small["fits"] is False and small["index_bytes"] > 0
    needed = f"{-(-small['minimum_budget_bytes'] // MIB)}M"
    sentence = refuse(4, "run", "connected_components", rmat20, "--budget", "64M", "--quiet")
    assert f"the smallest that works is {needed}" in sentence


@pytest.mark.nightly
@pytest.mark.parametrize("algorithm", ["label_propagation", "scc", "hits", "kcore", "triangles"])
def test_memory_and_disk_with_an_index_to_be_built(
    rmat20: Path, tmp_path: Path, algorithm: str
) -> None:
    # Strong components walk one index after the other: both, if they are let.
    limits = [] if algorithm in ("triangles", "scc") else ["--max-supersteps", 2]
    copy = linked(rmat20, tmp_path)
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
def test_a_graph_that_is_not_built(rmat20: Path, budget: str) -> None:
    sizes = ["--vertices", f"{connected(rmat20)}", "--edges", "16.777216e6"]
    forecast = plan("pagerank", *sizes, *PAGERANK, "--budget", budget)
    measured = run("pagerank", rmat20, *PAGERANK, "--budget", budget)
    assert near(forecast["peak_memory_bytes"], measured["peak_rss_bytes"]), (forecast, measured)
    disk, scratch = forecast["disk_bytes"], measured["scratch_bytes"]
    assert near(disk, scratch) if scratch else disk == 0
    on_disk = succeed("info", rmat20, "--json").figures["bytes_on_disk"]
    assert near(forecast["imported"]["graph_bytes"], on_disk)
    told = plan(rmat20, "pagerank", *PAGERANK, "--budget", budget)
    assert near(forecast["minimum_budget_bytes"], told["minimum_budget_bytes"])
    assert told["imported"] is None


def test_the_minimum_is_the_one_that_a_run_names(rmat: Path) -> None:
    forecast = plan(rmat, "pagerank", "--budget", "1M")
    assert forecast["fits"] is False
    assert forecast["budget_bytes"] == MIB
    needed = forecast["minimum_budget_bytes"]
    succeed("run", "pagerank", rmat, "--budget", needed, "--quiet")
    refuse(4, "run", "pagerank", rmat, "--budget", needed - MIB, "--quiet")
    outcome = succeed("plan", rmat, "pagerank", "--budget", "1M", *MACHINE)
    least = f"the smallest that works is {-(-needed // MIB)}M"
    assert f"{least}; the other figures assume that budget" in outcome.out


def test_a_run_tells_what_it_expects_and_how_that_held(
    rmat20: Path, rmat: Path, tmp_path: Path
) -> None:
    outcome = succeed("run", "pagerank", rmat20, "--json")
    assert len(outcome.out.strip().split("\n")) == 1
    lines = outcome.err.strip().split("\n")
    assert lines[0].startswith("brimful: forecast: peak memory ")
    assert lines[-1].startswith("brimful: measured peak memory ")
    figures = outcome.figures
    assert figures["forecast"]["peak_memory_bytes"] > 0
    assert figures["forecast"]["threads"] == figures["threads"]
    quiet = succeed("run", "pagerank", rmat, "--json", "--quiet")
    assert quiet.err == ""
    # Short runs that need little of the budget print no forecast.
    assert "forecast" not in succeed("run", "pagerank", rmat, "--json").err
    folder = tmp_path / "checkpoints"
    saving = ["connected_components", rmat, "--checkpoint-every", 1, "--checkpoint-dir", folder]
    outcome = succeed("run", *saving, "--json", "--budget", "100M")
    forecast = outcome.figures["forecast"]
    assert near(forecast["peak_memory_bytes"], outcome.figures["peak_rss_bytes"]), outcome.figures
    saving = ["pagerank", rmat20, "--checkpoint-every", 10, "--checkpoint-dir", folder]
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
        (["pagerank", "--vertices", 0, "--edges", 6], "--vertices must be above 0"),
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


def test_a_missing_algorithm_is_named(rmat: Path) -> None:
    for graph in (rmat, "gone.brimful"):
        assert "needs an algorithm after the graph" in refuse(USAGE, "plan", graph)
    assert "did you mean 'pagerank'" in refuse(USAGE, "plan", "pagerang")


def test_a_graph_has_its_own_sizes(rmat: Path) -> None:
    assert "--vertices" in refuse(USAGE, "plan", rmat, "pagerank", "--vertices", 5, "--quiet")
    assert "weights" in refuse(USAGE, "plan", rmat, "sssp", "--weighted", "--quiet")
    assert brimful("plan", rmat.parent / "missing.brimful", "pagerank", "--quiet").code == 3


def test_the_order_of_a_run_works_too(rmat: Path) -> None:
    limits = ("--budget", "1G")
    plans = [plan("degrees", rmat, *limits), plan(rmat, "degrees", *limits)]
    for figures in plans:
        # The memory of the process is a part of it.
        del figures["peak_memory_bytes"]
    assert plans[0] == plans[1]


def test_a_plan_names_the_budget_that_holds_the_vertex_data(rmat: Path) -> None:
    options = ["pagerank", rmat]
    least = plan(*options, "--budget", "1G")["minimum_budget_bytes"]
    enough = plan(*options, "--budget", least)["in_memory_budget_bytes"]
    assert least < enough
    text = succeed("plan", *options, *MACHINE, "--budget", least).out
    says = f"a budget of {enough >> 20}M would hold it"
    assert says in text
    assert says in succeed("run", *options, "--budget", least).err
    assert "would hold it" not in succeed("plan", *options, *MACHINE, "--budget", "1G").out
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
        with pytest.raises(bf.UsageError, match="source= does not apply to kcore"):
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
