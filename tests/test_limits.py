"""Limits of the machine: memory, open files, full or read-only disks, other processes, signals.

What cannot work is refused in one sentence before or while it fails, and leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cgroup import hard_limit
from command import (
    BRIMFUL,
    BUDGET,
    DONE,
    INPUT,
    INTERRUPTED,
    IO,
    assert_one_sentence,
    brimful,
    names_below,
    refuse,
    smallest,
    succeed,
)
from nightly import with_nightly

MIB = 1 << 20
#: With few supersteps, as this is about memory. Triangles, quadratic in hubs, take minutes here and
#: are apart.
ALGORITHMS = {
    "pagerank": ["--max-supersteps", 2],
    "hits": ["--max-supersteps", 2],
    "eigenvector": ["--max-supersteps", 2],
    "katz": ["--max-supersteps", 2],
    "betweenness": ["--samples", 1],
    "closeness": ["--max-supersteps", 2],
    "harmonic": ["--max-supersteps", 2],
    "connected_components": [],
    "scc": ["--max-supersteps", 20],
    "kcore": ["--max-supersteps", 20],
    "bipartite": ["--max-supersteps", 4],
    "spanning_forest": [],
    "bridges": [],
    "articulation_points": [],
    "random_walks": ["--walks", 1, "--length", 4],
    "eccentricity": ["--source", 0],
    "bfs": ["--source", 0],
    "sssp": ["--source", 0],
    "count_paths": ["--source", 0],
    "degrees": [],
    "label_propagation": ["--max-supersteps", 2],
    "louvain": ["--levels", 1],
    "leiden": ["--levels", 1],
    "color": [],
}
#: One of each way to hold states every day; test_memory.py has PageRank, and test_smallest.py more
#: in little memory.
EVERYDAY = ["betweenness", "scc", "random_walks", "label_propagation", "color"]


def passes_within(limit_mib: int, most_mib: int, *arguments: object) -> int:
    """Run a command under a hard limit equal to its budget; return the limit in MiB that it took.

    Where it is refused, the budget that the sentence names, at most `most_mib`, must do.
    """
    with hard_limit(limit_mib * MIB) as enter:
        words = [*arguments, "--budget", f"{limit_mib}M", "--json", "--quiet"]
        outcome = brimful(*words, before=enter, timeout=3600)
    if outcome.code == DONE:
        assert outcome.figures["peak_rss_bytes"] <= limit_mib * MIB
        return limit_mib
    assert outcome.code == BUDGET, f"exit {outcome.code}: {outcome.err}{outcome.out}"
    assert_one_sentence(outcome.err)
    named = re.search(r"smallest that works is (\d+)M", outcome.err)
    assert named is not None and int(named[1]) > limit_mib, outcome.err
    assert int(named[1]) <= most_mib, outcome.err
    return passes_within(int(named[1]), int(named[1]), *arguments)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of 16.8 M edges: 128 MiB of pairs."""
    path = tmp_path_factory.mktemp("limits") / "rmat20.brimful"
    passes_within(128, 128, "generate", "rmat", path, "--scale", 20, "--edge-factor", 16)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    "algorithm",
    with_nightly(EVERYDAY, sorted(ALGORITHMS.keys() - set(EVERYDAY))),
)
def test_an_algorithm_keeps_a_small_limit(graph: Path, algorithm: str) -> None:
    passes_within(96, 1024, "run", algorithm, graph, *ALGORITHMS[algorithm])


@pytest.mark.nightly
def test_label_propagation_in_python_keeps_a_hard_limit(graph: Path, tmp_path: Path) -> None:
    """The lists of neighbors must not leave free memory. The interpreter is beside the budget."""
    succeed("index", graph, "reverse", "--quiet")
    tiny = tmp_path / "tiny.brimful"
    succeed("generate", "rmat", tiny, "--scale", 4, "--quiet")
    program = (
        "import brimful as bf, sys\n"
        "bf.label_propagation(sys.argv[1], budget=sys.argv[2], threads=2)\n"
        "print(bf._native.peak_rss_bytes())"
    )

    def peak(path: Path, budget_mib: int, limit_bytes: int) -> int:
        words = [sys.executable, "-c", program, str(path), f"{budget_mib}M"]
        with hard_limit(limit_bytes) as enter:
            ended = subprocess.run(words, check=True, preexec_fn=enter, stdout=subprocess.PIPE)
        return int(ended.stdout)

    interpreter = peak(tiny, 64, 1024 * MIB)
    assert interpreter < 80 * MIB
    peak(graph, 64, 64 * MIB + interpreter)
    peak(graph, 100, 100 * MIB + interpreter)


def test_calls_in_python_leave_no_memory_behind(tmp_path: Path) -> None:
    """The heaps of ended threads must not keep memory that earlier calls freed."""
    path = tmp_path / "rmat17.brimful"
    succeed("generate", "rmat", path, "--scale", 17, "--edge-factor", 16, "--quiet")
    program = (
        "import brimful as bf, re, sys\n"
        "graph = bf.Graph.open(sys.argv[1], budget='64M')\n"
        "for _ in range(6):\n"
        "    bf.kcore(graph, threads=2)\n"
        "    print(re.search(r'VmRSS:\\s+(\\d+)', open('/proc/self/status').read())[1])"
    )
    words = [sys.executable, "-W", "ignore", "-c", program, str(path)]
    ended = subprocess.run(words, check=True, capture_output=True, text=True)
    first, *later = (int(kib) << 10 for kib in ended.stdout.split())
    assert max(later) < first + 16 * MIB, ended.stdout


# test_memory.py has a larger graph every day.
@pytest.mark.nightly
@pytest.mark.parametrize("name", ["e.txt", "e.u32"])
def test_export_and_import_keep_a_small_limit(graph: Path, tmp_path: Path, name: str) -> None:
    lossy = ["--lossy"] if name.endswith((".u32", ".csv")) else []
    passes_within(96, 96, "export", graph, tmp_path / name, *lossy)
    again = tmp_path / "g.brimful"
    passes_within(96, 256, "import", tmp_path / name, again, "--index", "in,reverse")


@pytest.mark.slow
@pytest.mark.parametrize("lists", with_nightly(["disk"], ["memory"]))
@pytest.mark.parametrize("store", with_nightly(["bytes", "file"], ["memory"]))
def test_a_store_keeps_a_small_limit(tmp_path: Path, store: str, lists: str) -> None:
    graph = tmp_path / "rmat16.brimful"
    succeed("generate", "rmat", graph, "--scale", 16, "--edge-factor", 16, "--quiet")
    url = f"file:{tmp_path / 'vertices'}" if store == "file" else store
    options = ["--store", url, "--lists", lists, "--max-supersteps", 2]
    passes_within(96, 1024, "run", "pagerank", graph, *options)
    passes_within(96, 1024, "run", "sssp", graph, "--source", 0, "--store", url)


@pytest.mark.nightly
@pytest.mark.parametrize("algorithm", ["clustering", "triangles"])
def test_what_is_slow_keeps_a_small_limit(graph: Path, algorithm: str) -> None:
    passes_within(96, 1024, "run", algorithm, graph)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("limit_mib", "times"), [(96, 4), (96, 20), (128, 20), (256, 4), (256, 20), (1024, 4)]
)
def test_the_whole_matrix(tmp_path: Path, limit_mib: int, times: int) -> None:
    """Graphs so many times the limit, as pairs of 32-bit ids."""
    pairs, again = tmp_path / "edges.u32", tmp_path / "again.brimful"
    graph, scale = tmp_path / "g.brimful", 22
    edge_factor = limit_mib * MIB * times // 8 >> scale
    options = ["--scale", scale, "--edge-factor", edge_factor]
    passes_within(limit_mib, 256, "generate", "rmat", graph, *options)
    for algorithm, more in ALGORITHMS.items():
        passes_within(limit_mib, 1024, "run", algorithm, graph, *more)
    # Pairs cannot hold the vertices without edges.
    passes_within(limit_mib, 256, "export", graph, pairs, "--lossy")
    shutil.rmtree(graph)
    passes_within(limit_mib, 256, "import", pairs, again)
    passes_within(limit_mib, 256, "index", again, "reverse")
    with hard_limit(limit_mib * MIB) as enter:
        succeed("verify", again, "--quiet", before=enter, timeout=3600)
    short = ["--max-supersteps", 2, "--tolerance", 0]
    saved = ["--checkpoint-every", 1, "--checkpoint-dir", tmp_path / "checkpoints"]
    passes_within(limit_mib, 1024, "run", "pagerank", again, *short, *saved)


def few_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


def test_64_open_files_are_enough(rmat: Path, tmp_path: Path) -> None:
    lines = [f"{n} {n * 7 % 1000} {n % 5 + 1}\n" for n in range(1000)]
    for part in range(100):
        (tmp_path / f"part-{part:03}.txt").write_text("".join(lines[part * 10 : part * 10 + 10]))
    graph = tmp_path / "g.brimful"
    parts = tmp_path / "part-*.txt"
    options = ["--weight", 3, "--index", "in,reverse", "--quiet", "--json"]
    arguments = ["import", parts, graph, *options]
    assert succeed(*arguments, before=few_files).figures["edges"] == 1000
    for algorithm in ("pagerank", "scc", "label_propagation"):
        output = tmp_path / f"{algorithm}.parquet"
        options = ["--threads", 4, "--quiet", "-o", output]
        succeed("run", algorithm, rmat, *options, before=few_files)
        assert output.stat().st_size > 1000
    options = ["--weighted", "--threads", 4, "--quiet"]
    succeed("run", "sssp", graph, "--source", 1, *options, before=few_files)


def mount(*arguments: object) -> None:
    done = subprocess.run(
        ["mount", *(str(argument) for argument in arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"SKIPPED: nothing can be mounted here: {done.stderr.strip()}")


@contextlib.contextmanager
def small_disk(path: Path, size_mib: int) -> Iterator[Path]:
    """Give a folder with room for so many MiB; skips aloud where that takes more rights."""
    path.mkdir()
    mount("-t", "tmpfs", "-o", f"size={size_mib}m", "brimful-test", path)
    try:
        yield path
    finally:
        subprocess.run(["umount", path], check=True)


@contextlib.contextmanager
def read_only(path: Path) -> Iterator[None]:
    """Make a folder read-only, for root too; skips aloud where that takes more rights."""
    mount("--bind", path, path)
    try:
        mount("-o", "remount,bind,ro", path)
        yield
    finally:
        subprocess.run(["umount", path], check=True)


def test_a_full_disk_is_said_and_nothing_half_made_stays(rmat: Path, tmp_path: Path) -> None:
    text = tmp_path / "edges.txt"
    succeed("export", rmat, text, "--quiet")
    with small_disk(tmp_path / "disk", 1) as disk:
        for arguments in (
            ["import", text, disk / "g.brimful"],
            ["generate", "rmat", disk / "g.brimful", "--scale", 20],
            ["export", rmat, disk / "edges.txt"],
        ):
            sentence = refuse(IO, *arguments, "--quiet")
            assert str(disk) in sentence, sentence
            assert "space" in sentence or "make room" in sentence, sentence
            assert names_below(disk) == set()
        (disk / "full").write_bytes(bytes((1 << 20) - (64 << 10)))
        for name in ("r.csv", "r.parquet", "r.arrow"):
            sentence = refuse(IO, "run", "pagerank", rmat, "--quiet", "-o", disk / name)
            assert name in sentence and "space" in sentence, sentence
            assert names_below(disk) == {"full"}
        sentence = refuse(IO, "export", rmat, disk / "e.parquet", "--quiet")
        assert "e.parquet" in sentence and "space" in sentence, sentence
        assert names_below(disk) == {"full"}


def chain(folder: Path) -> tuple[Path, list[object]]:
    """A graph of 4 M vertices, and a run of it whose states go to disk."""
    graph = folder / "chain.brimful"
    succeed("generate", "chain", graph, "--vertices", 4_000_000, "--quiet")
    run = ["run", "pagerank", graph, "--max-supersteps", 2, "--tolerance", 0]
    return graph, [*run, "--budget", smallest(*run), "--json", "--quiet"]


def test_a_disk_without_room_is_said_by_a_store(rmat: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 2) as disk:
        store = f"kv:{disk / 'store'}"
        sentence = refuse(IO, "run", "pagerank", rmat, "--store", store, "--quiet")
        assert "the disk is full; free some space" in sentence
        assert names_below(disk) == set()


def test_a_disk_too_full_for_states_is_said_and_the_graph_stays(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 24) as disk:
        graph, run = chain(disk)
        before = names_below(disk)
        sentence = refuse(IO, *run)
        assert "space" in sentence, sentence
        assert names_below(disk) == before
        succeed("verify", graph, "--quiet")


def test_a_read_only_graph(tmp_path: Path) -> None:
    graph, run = chain(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with read_only(graph):
        # States next to a graph that cannot be written to go to the folder for temporary files.
        figures = succeed(*run, env={"TMPDIR": str(elsewhere)}).figures
        assert figures["bytes_written_by"]["states"] > 0
        assert names_below(elsewhere) == set()
        sentence = refuse(INPUT, "run", "scc", graph, "--quiet", "--param", "method=coloring")
        assert "brimful index" in sentence
        succeed("verify", graph, "--quiet")


def test_a_graph_is_run_by_two_processes(tmp_path: Path) -> None:
    graph = tmp_path / "g.brimful"
    succeed("generate", "rmat", graph, "--scale", 17, "--quiet")
    # Each needs the reverse index, which is not there: one builds it, the other waits.
    outcomes = {}

    def run(name: str) -> None:
        output = tmp_path / f"{name}.csv"
        outcomes[name] = brimful(
            *("run", "scc", graph, "--quiet", "-o", output), *("--param", "method=coloring")
        )

    threads = [threading.Thread(target=run, args=(name,)) for name in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [outcome.code for outcome in outcomes.values()] == [DONE] * 3, outcomes
    results = {(tmp_path / f"{name}.csv").read_bytes() for name in outcomes}
    assert len(results) == 1
    succeed("verify", graph, "--quiet")


def read_whole(path: Path) -> None:
    """Read a compressed text or a table to its end."""
    if path.suffix == ".gz":
        assert gzip.decompress(path.read_bytes()).endswith(b"\n")
    else:
        assert pq.read_table(path).num_rows == 1 << 16


@pytest.mark.parametrize("number", with_nightly([signal.SIGTERM], [signal.SIGINT]))
def test_a_signal_at_any_time_ends_in_one_sentence(tmp_path: Path, number: signal.Signals) -> None:
    choose = random.Random(number)
    graph = tmp_path / "g.brimful"
    succeed("generate", "rmat", graph, "--scale", 16, "--quiet")
    before = names_below(tmp_path)
    commands = (
        ["generate", "rmat", tmp_path / "new.brimful", "--scale", 21],
        ["run", "pagerank", graph, "--tolerance", 0, "-o", tmp_path / "r.parquet"],
        ["export", graph, tmp_path / "e.txt.gz"],
    )
    for command in commands:
        for _ in range(2):
            process = subprocess.Popen(
                [*BRIMFUL, *(str(argument) for argument in command), "--log", "-", "--quiet"],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            assert process.stderr is not None
            # The first line of the log: from here on signals are heard.
            assert '"start"' in process.stderr.readline()
            time.sleep(choose.uniform(0, 0.5))
            for _ in range(2):
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(number)
            _, err = process.communicate(timeout=60)
            assert "Traceback" not in err, err
            assert process.returncode in (DONE, INTERRUPTED), err
            assert process.returncode == INTERRUPTED or names_below(tmp_path) != before
            # The output is whole, if it was complete when the signal came, or not there.
            if command[0] == "generate" and (tmp_path / "new.brimful").exists():
                succeed("verify", tmp_path / "new.brimful", "--quiet")
                shutil.rmtree(tmp_path / "new.brimful")
            for name in names_below(tmp_path) & {"e.txt.gz", "r.parquet"}:
                read_whole(tmp_path / name)
                os.unlink(tmp_path / name)
            assert names_below(tmp_path) == before
    succeed("verify", graph, "--quiet")


def test_a_signal_while_modules_are_imported_ends_with_its_exit_code(tmp_path: Path) -> None:
    (tmp_path / "imports.py").write_text(
        "import sys\n"
        "from brimful.cli import app\n"
        "text = 'import os, signal; os.kill(os.getpid(), signal.SIGINT)'\n"
        "app.build_parser = lambda _: exec(text)\n"
        "sys.exit(app.main(['--version']))\n"
    )
    # Python decides how to end in another way for modules than for scripts.
    done = subprocess.run(
        [sys.executable, "-m", "imports"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (INTERRUPTED, "brimful: interrupted\n")


def test_what_a_killed_run_left_is_swept_by_the_next(tmp_path: Path, rmat: Path) -> None:
    for name in ("r.csv", "r.parquet"):
        (tmp_path / f".{name}.partial-0").write_bytes(b"half")
        succeed("run", "degrees", rmat, "--quiet", "-o", tmp_path / name)
    (tmp_path / ".e.txt.partial-0").write_bytes(b"half")
    succeed("export", rmat, tmp_path / "e.txt", "--quiet")
    assert names_below(tmp_path) == {"r.csv", "r.parquet", "e.txt"}


_TEMPORARY = """
import os, signal, sys
import numpy as np, pyarrow as pa
import brimful as bf

graph = bf.Graph.from_arrow(pa.table({"source": [0, 1], "target": [1, 2]}))
cache = bf.SpillingDict(limit=1, budget="64M")
cache[0], cache[1] = "a", "b"
assert len(cache) == 2 and graph.edges == 2
print(sorted(os.listdir(os.environ["TMPDIR"])))
if sys.argv[1] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_temporary_folders_of_a_killed_process_are_swept(tmp_path: Path) -> None:
    def run(how: str) -> tuple[int, str]:
        done = subprocess.run(
            [BRIMFUL[0], "-c", _TEMPORARY, how],
            capture_output=True,
            text=True,
            env=os.environ | {"TMPDIR": str(tmp_path)},
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    assert run("kill")[0] == -signal.SIGKILL
    left = {path.name for path in tmp_path.iterdir()}
    assert len(left) == 2
    code, out = run("end")
    assert code == 0, out
    assert not any(name in out for name in left)
    assert names_below(tmp_path) == set()
