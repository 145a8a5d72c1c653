"""Options of runs on a Ray cluster: refusals, addresses, and the command line."""

from __future__ import annotations

import builtins
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import ray
from ray.cluster_utils import Cluster
from ray.experimental import tqdm_ray

import brimful as bf
from brimful.cluster import driver
from cluster.nodes import no_worker_stays
from command import BRIMFUL, BUDGET, DONE, INTERRUPTED, USAGE, assert_one_sentence, brimful
from nightly import with_nightly
from servers import free_port


@pytest.mark.nightly
def test_memory_that_workers_share_is_in_their_budgets(tmp_path: Path) -> None:
    graph, log = tmp_path / "ring.brimful", tmp_path / "log"
    assert brimful("generate", "ring", graph, "--vertices", 300_000, "--quiet").code == DONE
    words: list[object] = ["pagerank", graph, "--threads", 1, "--max-supersteps", 3, "--json"]
    foreseen = brimful("plan", *words, "--cluster", "local:2", "--budget", "300M").figures
    # Two slots with the signals of the larger part: all but two of five intervals.
    memory = foreseen["exchange_memory_bytes"]
    assert memory == 2 * foreseen["sent_bytes_per_superstep"] == 2 * 8 * (300_000 - (2 << 16))
    ranks = []
    for budget, expected in (("300M", memory), (foreseen["minimum_budget_bytes"], 0)):
        own: list[object] = ["--cluster", "local:2", "--budget", budget]
        plan = brimful("plan", *words, *own).figures
        assert plan["fits"] and plan["exchange_memory_bytes"] == expected
        run = brimful(
            "run", *words, *own, "--log", log, "-o", tmp_path / "ranks.csv", "--overwrite"
        )
        assert run.code == DONE, run.err
        workers = run.figures["cluster"]["workers"]
        assert [worker["exchange_memory_bytes"] for worker in workers] == [expected] * 2
        assert ("Ray's object store carries them" in log.read_text()) == (expected == 0)
        ranks.append((tmp_path / "ranks.csv").read_bytes())
    assert ranks[0] == ranks[1]
    assert brimful("plan", *words, "--cluster", "2").figures["exchange_memory_bytes"] == 0
    assert brimful("plan", *words).figures["exchange_memory_bytes"] is None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--cluster", "local:0"], "cluster must be local:N, auto, HOST:PORT or ray://HOST:PORT"),
        (["--cluster", "somewhere"], "cluster must be local:N"),
        (["--cluster", "locl:2"], "not locl:2; did you mean 'local:N'?"),
        (["--workers", "2"], "--workers counts the workers of a cluster; add --cluster"),
    ],
)
def test_options_that_a_cluster_does_not_take(
    rmat: Path, options: list[str], sentence: str
) -> None:
    outcome = brimful("run", "pagerank", rmat, *options)
    assert outcome.code == USAGE, outcome.err
    assert_one_sentence(outcome.err)
    assert sentence in outcome.err


def test_options_that_a_run_on_a_cluster_does_not_take(
    cluster: Cluster, graph: bf.Graph, tmp_path: Path
) -> None:
    with pytest.raises(bf.UsageError, match="needs synchronous supersteps"):
        bf.pagerank(graph, cluster="auto", mode="async")
    with pytest.raises(bf.UsageError, match="leave store= or cluster= out"):
        bf.pagerank(graph, cluster="auto", store="memory")
    with pytest.raises(bf.UsageError, match="in supersteps, not in seconds"):
        bf.pagerank(graph, cluster="auto", checkpoint_every="1s", checkpoint_dir=tmp_path / "c")
    with pytest.raises(bf.UsageError, match="the cluster has no room for 3 workers of 64 CPUs"):
        bf.pagerank(graph, cluster="auto", threads=64)


def test_an_address_where_no_cluster_is_is_refused_at_once(
    rmat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    begin = time.monotonic()
    outcome = brimful("run", "pagerank", rmat, "--cluster", address)
    assert outcome.code == USAGE and time.monotonic() - begin < 90
    assert_one_sentence(outcome.err)
    assert f"no connection to a Ray cluster at {address}" in outcome.err
    assert "Connection refused" in outcome.err
    # The client of Ray is a package more.
    monkeypatch.setattr(driver.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(bf.MissingPackageError, match=r"pip install 'ray\[client\]'"):
        driver._require_client(f"ray://{address}")


def test_another_cluster_than_that_of_ray_is_refused(cluster: Cluster, graph: bf.Graph) -> None:
    for address in ("127.0.0.1:1", "192.0.2.1:6379"):
        with pytest.raises(bf.UsageError, match=rf"connected to .*, not at {address}; use"):
            bf.pagerank(graph, cluster=address)


def test_a_connection_leaves_print_to_python(monkeypatch: pytest.MonkeyPatch) -> None:
    known = builtins.print
    monkeypatch.setattr(builtins, "print", known)
    monkeypatch.delenv("RAY_TQDM_PATCH_PRINT")
    monkeypatch.setattr(tqdm_ray, "_manager", None)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    # Ray does this when a process of a cluster prints.
    monkeypatch.setattr(ray, "init", lambda **_: tqdm_ray.instance())
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    with driver.connected("local:2"):
        assert builtins.print is known


@pytest.mark.nightly
def test_a_driver_outside_a_cluster(
    rmat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("grpc", reason="SKIPPED: the client of Ray needs grpcio")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    # In a process of its own, because this one may be connected to another cluster.
    script = tmp_path / "serve.py"
    script.write_text(
        "import ray, sys\n"
        "from ray.util.client.server.server import serve\n"
        "ray.init('local', num_cpus=4, include_dashboard=False)\n"
        "server = serve('127.0.0.1', int(sys.argv[1]))\n"
        "print('ready', flush=True)\n"
        "sys.stdin.read()\n"
    )
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, script, str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None and server.stdout.readline() == "ready\n"
        one = brimful("run", "pagerank", rmat, "-o", tmp_path / "one.csv")
        words = ("--cluster", f"ray://127.0.0.1:{port}", "--workers", 2, "--threads", 1)
        two = brimful("run", "pagerank", rmat, "-o", tmp_path / "two.csv", *words)
        assert (one.code, two.code) == (DONE, DONE), two.err
        assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    finally:
        server.communicate()


def test_an_algorithm_that_a_cluster_does_not_run(rmat: Path) -> None:
    outcome = brimful("run", "triangles", rmat, "--cluster", "local:2")
    assert outcome.code == USAGE
    assert "triangles does not run on a cluster; leave --cluster out" in outcome.err


def test_the_command_line_on_a_local_cluster(divided: Path, tmp_path: Path) -> None:
    here = brimful("run", "pagerank", divided, "-o", tmp_path / "one.csv", "--json")
    there = brimful(
        *("run", "pagerank", divided, "-o", tmp_path / "two.csv", "--json"),
        *("--cluster", "local:2", "--budget", "300M"),
    )
    assert (here.code, there.code) == (DONE, DONE), there.err
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    workers = there.figures["cluster"]["workers"]
    assert [worker["budget_bytes"] for worker in workers] == [300 << 20] * 2
    assert all(worker["bytes_sent"] > 0 for worker in workers)
    assert here.figures["cluster"] is None


@pytest.mark.nightly
def test_the_command_line_names_the_smallest_budget_of_a_worker(rmat: Path) -> None:
    small = brimful("run", "pagerank", rmat, "--cluster", "local:2", "--budget", "100K")
    assert small.code == BUDGET
    assert_one_sentence(small.err)
    least = bf.plan(rmat, "pagerank", cluster="local:2").minimum_budget_bytes
    assert f"the smallest that works is {least >> 20}M" in small.err


@pytest.mark.parametrize("number", with_nightly([signal.SIGINT], [signal.SIGKILL]))
def test_a_driver_that_ends_leaves_no_worker_and_its_run_can_be_resumed(
    divided: Path, tmp_path: Path, number: signal.Signals
) -> None:
    words: list[object] = ["run", "pagerank", divided, "--tolerance", 0, "--max-supersteps", 200]
    saving: list[object] = ["--checkpoint-dir", tmp_path / "c"]
    process = subprocess.Popen(
        [*BRIMFUL, *map(str, [*words, *saving, "--checkpoint-every", 20, "--cluster", "local:2"])],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # Ray alone may take a minute to start beside other work.
    deadline = time.monotonic() + 200
    try:
        while not (tmp_path / "c" / "current").exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(number)
        process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    if number == signal.SIGINT:
        assert process.returncode == INTERRUPTED
    no_worker_stays()
    resumed = brimful(*words, *saving, "--resume", "--json", "-o", tmp_path / "resumed.csv")
    assert resumed.code == DONE, resumed.err
    assert resumed.figures["resumed_from"] >= 20
    assert brimful(*words, "-o", tmp_path / "one.csv").code == DONE
    assert (tmp_path / "resumed.csv").read_bytes() == (tmp_path / "one.csv").read_bytes()
