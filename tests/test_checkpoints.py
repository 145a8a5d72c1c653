"""Checkpoints: a killed run continues, and ends with the same bytes."""

from __future__ import annotations

import logging
import random
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest

import brimful as bf
from command import (
    BRIMFUL,
    INPUT,
    INTERRUPTED,
    IO,
    USAGE,
    brimful,
    names_below,
    refuse,
    succeed,
)


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of long ways, with weights: hundreds of supersteps."""
    graph = tmp_path_factory.mktemp("grid") / "grid.brimful"
    size = ["--rows", 120, "--columns", 90]
    succeed("generate", "grid", graph, *size, "--undirected", "--weights", "hash", "--quiet")
    return graph


#: How many checkpoints there are when a run is stopped.
_random = random.Random(1)


def newest(folder: Path) -> int:
    """Return the number of the newest checkpoint, 0 where there is none."""
    return max((int(path.name.split("-")[1]) for path in folder.glob("manifest-*[0-9]")), default=0)


def stop(
    arguments: list[object], folder: Path, number: signal.Signals, every: str = "1"
) -> tuple[int, str]:
    """Start a run with a checkpoint every superstep, end it by a signal once it has made some.

    Return its exit code and what it said.
    """
    options = ["--checkpoint-every", every, "--checkpoint-dir", folder, "--quiet"]
    process = subprocess.Popen(
        BRIMFUL + [str(argument) for argument in [*arguments, *options]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    enough, until = _random.randint(1, 2), time.monotonic() + 120
    # Older checkpoints are removed: the one of that number may come and go between two looks.
    # A manifest is there before `current` names it: until then it is not a checkpoint.
    while newest(folder) < enough or not (folder / "current").exists():
        assert process.poll() is None, f"finished before the signal: {process.communicate()}"
        assert time.monotonic() < until, "no checkpoint was made"
        time.sleep(0.001)
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    return process.returncode, err.strip()


@pytest.mark.parametrize(
    ("which", "algorithm", "options"),
    [
        ("rmat", "pagerank", ["--tolerance", 0, "--max-supersteps", 60]),
        ("rmat", "pagerank", ["--tolerance", 1e-12, "--mode", "async", "--precision", "f32"]),
        ("rmat", "label_propagation", ["--max-supersteps", 30]),
        ("rmat", "scc", []),
        ("grid", "sssp", ["--source", 0, "--weighted"]),
        ("grid", "connected_components", ["--param", "method=propagation"]),
        ("grid", "kcore", []),
        ("grid", "sssp", ["--source", 0, "--weighted", "--store", "memory"]),
        ("grid", "bfs", ["--source", 0, "--store", "bytes", "--serializer", "compact"]),
    ],
)
def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    which: str,
    algorithm: str,
    options: list[object],
) -> None:
    arguments = ["run", algorithm, request.getfixturevalue(which), *options, "--threads", 2]
    succeed(*arguments, "-o", tmp_path / "whole.csv", "--quiet")
    folder, out = tmp_path / "checkpoints", tmp_path / "resumed.csv"
    code, _ = stop([*arguments, "-o", out], folder, signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert not out.exists()
    more = ["-o", out, "--checkpoint-dir", folder, "--json"]
    resumed = succeed(*arguments[:-1], 1, *more, "--resume", "--budget", "200M")
    assert resumed.figures["resumed_from"] >= 1
    assert "resumes from superstep" in resumed.err
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    # Nobody needs them any more, unless the run can go on beyond its limit.
    assert folder.exists() == (not resumed.figures["converged"])


def test_a_run_without_supersteps_goes_on_in_a_store(grid: Path, tmp_path: Path) -> None:
    arguments = ["run", "sssp", grid, "--source", 0, "--weighted", "--threads", 2]
    succeed(*arguments, "-o", tmp_path / "whole.csv", "--quiet")
    folder, out = tmp_path / "checkpoints", tmp_path / "resumed.csv"
    arguments += ["--store", "bytes", "--mode", "async", "--checkpoint-dir", folder, "-o", out]
    assert "make checkpoints by time" in refuse(USAGE, *arguments, "--checkpoint-every", 1)
    code, _ = stop(arguments, folder, signal.SIGKILL, every="0.001s")
    assert code == -signal.SIGKILL
    assert not out.exists()
    resumed = succeed(*arguments, "--resume", "--json")
    assert resumed.figures["resumed_from"] >= 1
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_a_killed_run_can_be_killed_again(rmat: Path, tmp_path: Path) -> None:
    arguments: list[object] = ["run", "pagerank", rmat, "--tolerance", 0, "--max-supersteps", 40]
    succeed(*arguments, "-o", tmp_path / "whole.csv", "--quiet")
    folder = tmp_path / "checkpoints"
    stop(arguments, folder, signal.SIGKILL)
    # An unfinished file, as a killed process leaves it.
    (folder / "arrays-99").write_bytes(b"half")
    (folder / "current.tmp").write_bytes(b"half")
    for _ in range(2):
        present = newest(folder)
        options = ["--resume", "--checkpoint-every", "0.01s", "--checkpoint-dir", folder, "--quiet"]
        process = subprocess.Popen(
            BRIMFUL + [str(argument) for argument in [*arguments, *options]],
            stderr=subprocess.DEVNULL,
        )
        while process.poll() is None and newest(folder) <= present:
            time.sleep(0.001)
        process.kill()
        process.wait()
    more = ["--resume", "--checkpoint-every", 7, "--checkpoint-dir", folder]
    resumed = succeed(*arguments, *more, "-o", tmp_path / "resumed.csv", "--json")
    assert (tmp_path / "resumed.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert resumed.figures["supersteps"] == 40
    numbers = {int(name.split("-")[1]) for name in names_below(folder) if "-" in name}
    assert len(numbers) == 2 and 99 not in numbers


def test_an_interrupted_run_says_from_where_it_can_go_on(rmat: Path, tmp_path: Path) -> None:
    arguments: list[object] = ["run", "pagerank", rmat, "--tolerance", 0, "--max-supersteps", 9999]
    code, said = stop(arguments, tmp_path / "checkpoints", signal.SIGINT)
    assert code == INTERRUPTED
    start, _, superstep = said.rpartition(" ")
    assert start == (
        "brimful: interrupted; --resume (Python: resume=True) continues from superstep"
    )
    assert int(superstep) >= 1


def test_a_limit_can_be_raised(rmat: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.brimful"
    copy.mkdir()
    for name in names_below(rmat):
        (copy / name).write_bytes((rmat / name).read_bytes())
    limits = ["--tolerance", 0, "--max-supersteps"]
    succeed("run", "pagerank", rmat, *limits, 9, "-o", tmp_path / "whole.csv", "--quiet")
    succeed("run", "pagerank", copy, *limits, 4, "--checkpoint-every", 2, "--quiet")
    assert (tmp_path / "copy.pagerank.checkpoints").is_dir()
    arguments = ["run", "pagerank", copy, *limits, 9, "-o", tmp_path / "resumed.csv", "--resume"]
    assert succeed(*arguments, "--json").figures["resumed_from"] == 4
    assert (tmp_path / "resumed.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_the_case_of_giraph(tmp_path: Path) -> None:
    """Restart from the checkpoint of superstep 2 gives what the uninterrupted run gives."""
    edges = tmp_path / "edges.txt"
    edges.write_text("u v w\n1 2 1\n1 3 3\n2 3 1\n2 4 10\n3 4 2\n")
    graph, folder = tmp_path / "g.brimful", tmp_path / "checkpoints"
    succeed("import", edges, graph, "--quiet")
    arguments = ["run", "sssp", graph, "--source", 1, "--weighted", "--checkpoint-dir", folder]
    succeed(*arguments, "--checkpoint-every", 1, "--max-supersteps", 2, "--quiet")
    out = tmp_path / "distances.csv"
    outcome = succeed(*arguments, "--resume", "-o", out, "--json")
    assert outcome.figures["resumed_from"] == 2
    assert out.read_text() == "vertex,distance\n1,0.0\n2,1.0\n3,2.0\n4,4.0\n"


def test_another_run_does_not_go_on(rmat: Path, grid: Path, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    at = ["--checkpoint-dir", folder]
    made = [*at, "--checkpoint-every", 1, "--max-supersteps", 2, "--quiet"]
    succeed("run", "pagerank", grid, *made)
    resume = [*at, "--resume", "--quiet"]
    assert "another graph" in refuse(INPUT, "run", "pagerank", rmat, *resume)
    for algorithm, options, says in [
        ("hits", [], "algorithm was pagerank there and is hits here"),
        ("pagerank", ["--param", "damping=0.5"], "damping was 0.85 there and is 0.5 here"),
        ("pagerank", ["--param", "variant=unnormalized"], "variant was normalized"),
        ("pagerank", ["--param", "method=delta"], "method was power"),
        ("pagerank", ["--precision", "f32"], "precision was f64"),
        ("pagerank", ["--weighted"], "weighted was false"),
        ("pagerank", ["--mode", "async"], "mode was sync"),
        ("pagerank", ["--tolerance", 1e-3], "tolerance was 0.000001 there and is 0.001"),
        ("pagerank", ["--source", 3], "source was nothing there and is 3 here"),
        ("pagerank", ["--max-supersteps", 1], "superstep 2"),
    ]:
        assert says in refuse(USAGE, "run", algorithm, grid, *options, *resume)
    # The run that may go on still does.
    succeed("run", "pagerank", grid, *resume)


def test_a_run_says_when_there_is_nothing_to_resume(rmat: Path, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    at = ["--checkpoint-dir", folder]
    outcome = succeed("run", "pagerank", rmat, *at, "--resume", "--json", "--quiet")
    assert outcome.figures["resumed_from"] is None
    assert f"there is no checkpoint in {folder}" in outcome.err
    assert not folder.exists()


def test_wrong_usage(rmat: Path, tmp_path: Path) -> None:
    run = ["run", "pagerank", rmat, "--quiet"]
    assert "--checkpoint-every" in refuse(USAGE, *run, "--checkpoint-dir", tmp_path / "c")
    for every in ("0", "x", "-1", "1.5"):
        assert "supersteps" in refuse(USAGE, *run, f"--checkpoint-every={every}")
    for algorithm, options, says in [
        ("triangles", [], "--checkpoint-every does not apply"),
        ("clustering", [], "--checkpoint-every does not apply"),
        ("connected_components", ["--param", "method=union_find"], "union_find has no"),
    ]:
        arguments = ["run", algorithm, rmat, *options, "--quiet", "--checkpoint-every", 1]
        assert says in refuse(USAGE, *arguments)
    assert names_below(tmp_path) == set()


def test_a_full_disk_ends_the_run(rmat: Path, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    arguments = ["run", "pagerank", rmat, "--checkpoint-every", 1, "--checkpoint-dir", folder]
    error = refuse(IO, *arguments, "--quiet", before=limit)
    assert f"{folder}/arrays-1" in error
    # What it left is no obstacle.
    outcome = brimful(*arguments, "--resume", "--json", "--quiet")
    assert (outcome.code, outcome.figures["resumed_from"]) == (0, None)


def test_python_resumes(rmat: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "checkpoints"
    with bf.Graph.open(rmat, budget="200M") as graph:
        whole = bf.scc(graph, method="coloring")
        bf.scc(graph, max_supersteps=5, checkpoint_every=2, checkpoint_dir=folder)
        with caplog.at_level(logging.WARNING, "brimful"):
            resumed = bf.scc(graph, checkpoint_every="1s", checkpoint_dir=folder, resume=True)
        assert resumed.stats["resumed_from"] == 4
        assert resumed.stats["supersteps"] == whole.stats["supersteps"]
        assert resumed.stats["signals"] == whole.stats["signals"]
        assert caplog.messages == ["the run resumes from superstep 4"]
        assert resumed.to_arrow() == whole.to_arrow()
        assert not folder.exists()


def test_a_default_that_is_given_resumes_a_run_with_the_default(grid: Path, tmp_path: Path) -> None:
    given = ["run", "katz", grid, "--checkpoint-dir", tmp_path / "checkpoints", "--json"]
    succeed(*given, "--checkpoint-every", 1, "--max-supersteps", 2)
    resumed = succeed(*given, "--param", "beta=1", "--max-supersteps", 3, "--resume")
    assert resumed.figures["resumed_from"] == 2
