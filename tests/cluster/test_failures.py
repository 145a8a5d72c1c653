"""Failures on a Ray cluster: the bytes of one process, or an error that names worker and cause."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray
from ray.cluster_utils import Cluster

import brimful as bf
from brimful.cluster import driver, keeping
from brimful.io.ingest import import_paths
from brimful.options.imports import import_options
from brimful.resources import Resources
from cluster.nodes import kill, meanwhile, processes, workers
from cluster.test_algorithms import LONG, columns
from edge_files import edges, imported, lines
from test_faulty_disk import ALWAYS, shim  # noqa: F401 - a fixture


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Four files of edges, with enough vertices for several intervals."""
    (tmp_path / "in").mkdir()
    for number in range(4):
        (tmp_path / "in" / f"{number}.txt").write_text(lines(edges(number, 60_000, 500_000)))
    return sorted((tmp_path / "in").iterdir())


def stop_for(seconds: float, found: int, over: threading.Event) -> None:
    os.kill(found, signal.SIGSTOP)
    try:
        over.wait(seconds)
    finally:
        os.kill(found, signal.SIGCONT)


@pytest.mark.nightly
def test_a_slow_worker_is_waited_for(cluster: Cluster, graph: bf.Graph) -> None:
    one = bf.pagerank(graph, **LONG)
    stopped = threading.Event()

    def stop_one(over: threading.Event) -> None:
        while not (found := workers()):
            if over.wait(0.05):
                return
        over.wait(1.0)
        stop_for(3.0, found[0], over)
        stopped.set()

    with meanwhile(stop_one):
        many = bf.pagerank(graph, cluster="auto", workers=2, **LONG)
    assert stopped.is_set()
    assert columns(many) == columns(one) and many.stats["cluster"]["restarts"] == []


@pytest.mark.nightly
def test_a_worker_that_is_killed_twice_is_replaced_twice(
    cluster: Cluster, graph: bf.Graph, tmp_path: Path
) -> None:
    one = bf.pagerank(graph, **LONG)

    def kill_two(over: threading.Event) -> None:
        seen: set[int] = set()
        for _ in range(2):
            # Both workers of an attempt; another one that is lost with it is no second loss.
            while len(new := set(workers()) - seen) < 2:
                if over.wait(0.05):
                    return
            over.wait(0.5)
            seen |= new
            kill(min(new))

    saving: dict[str, Any] = {"checkpoint_every": 10, "checkpoint_dir": tmp_path / "c"}
    with meanwhile(kill_two):
        many = bf.pagerank(graph, cluster="auto", workers=2, **LONG, **saving)
    assert columns(many) == columns(one)
    restarts = many.stats["cluster"]["restarts"]
    assert len(restarts) == 2 and all("was lost" in restart for restart in restarts)


def test_tasks_that_sort_are_repeated_and_waited_for(
    cluster: Cluster, files: list[Path], tmp_path: Path
) -> None:
    alone = imported(files, tmp_path / "one.brimful", {}, None)
    killed: list[int] = []
    stopped: list[int] = []

    def disturb(over: threading.Event) -> None:
        while not stopped and not over.wait(0.003):
            # A process that was killed stays in the list for a moment.
            for process in set(processes(b"ray::_segments")) - set(killed):
                if not killed:
                    kill(process)
                    killed.append(process)
                elif not stopped:
                    with contextlib.suppress(ProcessLookupError):  # Its task has ended.
                        stop_for(2.0, process, over)
                        stopped.append(process)

    with meanwhile(disturb):
        many = imported(files, tmp_path / "two.brimful", {}, {"cluster": "auto", "workers": 2})
    assert killed and stopped and many == alone


@pytest.mark.nightly
def test_tasks_that_rank_and_map_are_repeated(
    cluster: Cluster, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = imported(files, tmp_path / "one.brimful", {}, None)
    killed: set[bytes] = set()

    # The process of a task does not find this module, so its code is within a function.
    def slow_ranks(*arguments: Any) -> Iterator[Any]:
        time.sleep(1)
        yield from keeping._ranks(*arguments)

    def slow_records(*arguments: Any) -> Iterator[Any]:
        time.sleep(1)
        yield from keeping._records(*arguments)

    def kill_one_of_each(over: threading.Event) -> None:
        while not over.wait(0.05):
            for title in {b"ray::slow_ranks", b"ray::slow_records"} - killed:
                for found in processes(title)[:1]:
                    kill(found)
                    killed.add(title)

    monkeypatch.setattr(keeping, "_ranks", slow_ranks)
    monkeypatch.setattr(keeping, "_records", slow_records)
    with meanwhile(kill_one_of_each):
        many = imported(files, tmp_path / "two.brimful", {}, {"cluster": "auto", "workers": 2})
    assert len(killed) == 2 and many == alone


def own_bytes(title: bytes) -> int:
    """The most memory of its own that a process with this title has."""
    most = 0
    for found in processes(title):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{found}/status").read_text().partition("RssAnon:")[2].split()
            most = max(most, int(words[0]) << 10 if words else 0)
    return most


@pytest.mark.nightly
def test_tasks_that_sort_keep_their_budget(cluster: Cluster, tmp_path: Path) -> None:
    budget, place = 100 << 20, {"cluster": "auto", "workers": 2}
    lottery, large = np.random.default_rng(1), []
    for number in range(4):
        ends = {name: lottery.integers(0, 1 << 22, 6_000_000) for name in ("source", "target")}
        large.append(tmp_path / f"{number}.parquet")
        pq.write_table(pa.table(ends), large[-1], data_page_size=64 << 10)

    # Idle processes have Python, Ray, pyarrow and brimful in memory.
    pq.write_table(pa.table({"source": [1, 2], "target": [2, 3]}), tmp_path / "small.parquet")
    imported([tmp_path / "small.parquet"], tmp_path / "small.brimful", {}, place)
    least, most = own_bytes(b"ray::IDLE"), 0

    def watch(over: threading.Event) -> None:
        nonlocal most
        while not over.wait(0.02):
            most = max(most, own_bytes(b"ray::_segments"))

    given = [*map(str, large)], str(tmp_path / "large.brimful"), import_options()
    with meanwhile(watch):
        import_paths(*given, Resources(budget=budget), cluster=place)
    # The records of a part are 24 MB of 192.
    assert least < most <= least + budget
    alone = imported(large, tmp_path / "alone.brimful", {}, None)[0]
    there = (tmp_path / "large.brimful").rglob("*")
    assert {one.name: one.read_bytes() for one in there} == alone


def test_a_worker_of_another_version_is_refused(
    cluster: Cluster, graph: bf.Graph, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    version = bf.__version__
    monkeypatch.setattr(bf, "__version__", "0.0.1")
    remedy = "install the same version on all nodes"
    with pytest.raises(bf.UsageError, match=f"brimful {version} is .*, and 0.0.1 here; {remedy}"):
        bf.pagerank(graph, cluster="auto", workers=2)
    with pytest.raises(bf.UsageError, match=f"brimful {version} is .*, and 0.0.1 where .*{remedy}"):
        bf.read(files, cluster="auto", workers=2)


def outcome(script: str, *words: object, **env: str) -> str:
    """What a script prints, in a process of its own, whose workers have its environment."""
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, words)],
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


#: Runs and imports on a cluster whose workers have another brimful, in the folder argv[1].
OTHER = """
import ray, sys
import brimful as bf
ray.init("local", num_cpus=4, include_dashboard=False, log_to_driver=False,
         runtime_env={"env_vars": {"PYTHONPATH": sys.argv[1]}})
for work in (
    lambda: bf.pagerank(sys.argv[2], cluster="auto", workers=2),
    lambda: bf.read(sys.argv[3:], cluster="auto", workers=2),
):
    try:
        work()
    except bf.BrimfulError as error:
        print(type(error).__name__, error)
"""


@pytest.mark.nightly
def test_workers_with_an_old_package_are_refused(
    rmat: Path, files: list[Path], tmp_path: Path
) -> None:
    (tmp_path / "old" / "brimful").mkdir(parents=True)
    (tmp_path / "old" / "brimful" / "__init__.py").write_text('__version__ = "0.0.1"\n')
    said = outcome(OTHER, tmp_path / "old", rmat, *files).splitlines()
    assert len(said) == 2
    for sentence in said:
        assert sentence.startswith("UsageError ")
        assert "install the same version of brimful on all nodes" in sentence
        assert "No module named 'brimful.cluster'" in sentence


#: Imports the files argv[3:] into argv[2], by tasks with the environment argv[1].
IMPORT = """
import json, ray, sys
import brimful as bf
ray.init("local", num_cpus=4, include_dashboard=False, log_to_driver=False,
         runtime_env={"env_vars": json.loads(sys.argv[1])})
try:
    bf.read(sys.argv[3:], path=sys.argv[2], cluster="auto", workers=2)
except bf.BrimfulError as error:
    print(type(error).__name__, error.errno, error)
"""


@pytest.mark.nightly
def test_a_full_disk_of_a_task_is_named(
    files: list[Path],
    tmp_path: Path,
    shim: Path,  # noqa: F811
) -> None:
    (scratch := tmp_path / "scratch").mkdir()
    env = {"LD_PRELOAD": str(shim), "TMPDIR": str(scratch), "FAULTY_BELOW": str(scratch)}
    # Python tries the folder with a file of its own.
    env["FAULTY_FAIL"] = f"open 2 {ALWAYS} 28"
    said = outcome(IMPORT, json.dumps(env), tmp_path / "g.brimful", *files)
    assert said.startswith(f"StoreIoError 28 a task on {os.uname().nodename}: ")
    assert str(scratch) in said and "the disk is full" in said
    assert not (tmp_path / "g.brimful").exists()


#: Runs a program on the graph argv[1], in the folder argv[2] of each worker.
RUN = """
import sys
import brimful as bf
from cluster.test_algorithms import Hops
try:
    bf.run(bf.Graph.open(sys.argv[1]), Hops(), store="file:" + sys.argv[2], cluster="local:2")
except bf.BrimfulError as error:
    print(type(error).__name__, error.errno, error)
"""


@pytest.mark.nightly
def test_a_full_disk_of_a_worker_is_named(
    rmat: Path,
    tmp_path: Path,
    shim: Path,  # noqa: F811
) -> None:
    (folder := tmp_path / "store").mkdir()
    env = {"LD_PRELOAD": str(shim), "FAULTY_BELOW": str(folder)}
    env |= {"FAULTY_FAIL": f"open 6 {ALWAYS} 28", "PYTHONPATH": os.pathsep.join(sys.path)}
    said = outcome(RUN, rmat, folder, **env)
    assert said.startswith("StoreIoError 28 worker ")
    assert str(folder) in said and "the disk is full" in said


def test_an_object_store_without_room_ends_an_import(
    cluster: Cluster, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(value: object) -> None:
        raise ray.exceptions.OutOfDiskError("the disk of /tmp/ray is full")

    monkeypatch.setattr(ray, "put", refuse)
    with pytest.raises(bf.StoreIoError, match=r"has no room for the ranks of ids: .* is full"):
        imported(files, tmp_path / "g.brimful", {}, {"cluster": "auto", "workers": 2})
    assert not (tmp_path / "g.brimful").exists()


def test_a_ray_that_does_not_start_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(**options: object) -> None:
        raise Exception("The current node timed out during startup.")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", start)
    with (
        pytest.raises(bf.WorkerLostError, match=r"Ray did not start .* timed out during startup"),
        driver.connected("local:2"),
    ):
        pass


@pytest.mark.parametrize(
    ("later", "kind", "text"),
    [
        ([999], bf.WorkerLostError, "a node was lost while workers started"),
        ([999, 999], bf.UsageError, r"no room for 2 workers of 999 CPUs each, or does not start"),
    ],
)
def test_workers_that_do_not_start_are_not_waited_for_where_a_node_was_lost(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, later: list[int], kind: Any, text: str
) -> None:
    nodes = [[999, 999], later]
    monkeypatch.setattr(driver, "_cpus_of_nodes", lambda: nodes.pop(0) if nodes else later)
    monkeypatch.setattr(driver, "_PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(driver, "_START_SECONDS", 0.3)
    with pytest.raises(kind, match=text), driver.WorkerGroup(2, 999) as group:
        group.start()
