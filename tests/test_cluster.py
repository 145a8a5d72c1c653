"""Runs on a Ray cluster: the bits of one process, whatever happens to the workers."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
import ray
from bench import actors
from ray.cluster_utils import Cluster

import brimful as bf
from brimful.cluster import driver, keeping
from brimful.cluster.exchange import Board, Mapped, PeerFailedError, Slots, Views
from brimful.cluster.worker import _opened
from clusters import kill, meanwhile, no_worker_stays, processes, workers
from command import BRIMFUL, BUDGET, DONE, INTERRUPTED, USAGE, assert_one_sentence, brimful
from edge_files import IMPORTS, broken_files, edges, imported, lines, text_files
from plans import with_nightly
from servers import free_port
from test_structured_messages import Extremes

#: Kills at random moments, and in a nightly run.
KILLS = 50 if os.environ.get("BRIMFUL_KILLS") == "all" else 1

#: Bandwidths that nobody has to measure.
bandwidths = {"disk_bandwidth": 2.0, "memory_bandwidth": 30.0}

#: Supersteps that take some seconds.
LONG = {"tolerance": 0.0, "max_supersteps": 150}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Three nodes on this machine, and this process connected to them."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    made = Cluster(
        initialize_head=True,
        connect=True,
        head_node_args={"num_cpus": 3, "object_store_memory": 200 << 20},
    )
    for _ in range(2):
        made.add_node(num_cpus=3, object_store_memory=200 << 20)
    made.wait_for_nodes()
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture(scope="module")
def graph(rmat: Path) -> bf.Graph:
    """A graph of 18 intervals or fewer, with hubs."""
    return bf.Graph.open(rmat)


@pytest.fixture(autouse=True)
def _no_worker_of_another_test() -> None:
    no_worker_stays()


def columns(result: bf.Result) -> dict[str, Any]:
    return result.to_arrow().to_pydict()


#: Algorithms whose runs are divided, by name; each gets the graph and options.
DIVIDED: dict[str, Callable[..., bf.Result]] = {
    "pagerank": bf.pagerank,
    "kcore": partial(bf.kcore, method="rounds"),
    "components": partial(bf.connected_components, method="propagation"),
    "delta": partial(bf.pagerank, method="delta", precision="f32"),
    "sssp": lambda graph, **options: bf.sssp(graph, first_source(graph), **options),
    "communities": bf.label_propagation,
}


def first_source(graph: bf.Graph) -> int:
    return int(graph.to_arrow()["source"][0].as_py())


@pytest.mark.parametrize("name", with_nightly(["pagerank"], list(DIVIDED)[1:]))
def test_any_number_of_workers_gives_the_same_bits(
    cluster: Cluster, graph: bf.Graph, name: str
) -> None:
    one = DIVIDED[name](graph)
    assert one.stats["cluster"] is None
    for count in (1, 3) if name == "pagerank" else (3,):
        many = DIVIDED[name](graph, cluster="auto", workers=count)
        assert columns(many) == columns(one), f"{name} with {count} workers"
        assert many.stats["supersteps"] == one.stats["supersteps"]
        figures = many.stats["cluster"]
        assert len(figures["workers"]) == count and figures["restarts"] == []
        assert all(one["supersteps"] == many.stats["supersteps"] for one in figures["workers"])
    assert len({one["node"] for one in figures["workers"]}) == 3, "they are spread over nodes"
    for worker in figures["workers"]:
        # The nodes are one machine, which has the driver too.
        assert 0 < worker["budget_bytes"] <= worker["memory_bytes"] / 4


@pytest.mark.parametrize("count", [pytest.param(2, marks=pytest.mark.nightly), 3])
def test_workers_exchange_the_bytes_of_the_plan(
    cluster: Cluster, graph: bf.Graph, count: int
) -> None:
    plan = bf.plan(graph, "pagerank", cluster=count, threads=1, **bandwidths)
    run = bf.pagerank(graph, cluster="auto", workers=count, tolerance=0.0, max_supersteps=5)
    sent, received = plan.sent_bytes_per_superstep, plan.received_bytes_per_superstep
    assert sent is not None and received is not None
    figures = run.stats["cluster"]["workers"]
    # Vertices also signal before the first superstep; after the last one the caller gets states.
    assert max(one["bytes_sent"] for one in figures) == 6 * sent + sent // (count - 1)
    most = max(one["bytes_received"] for one in figures)
    assert 6 * received <= most <= 1.05 * 6 * received
    smallest = {"threads": 1, "budget": plan.minimum_budget_bytes}
    least = bf.pagerank(graph, cluster="auto", workers=count, **smallest)
    assert columns(least) == columns(bf.pagerank(graph))


class Hops(bf.Program):
    """The least number of edges from vertex 0; signals are numbers."""

    combiner = "min"
    delivery = "combined"

    def initial_state(self, vertex):  # type: ignore[no-untyped-def]
        return 0.0 if vertex.id == 0 else float("inf")

    def signal(self, source, target, weight):  # type: ignore[no-untyped-def]
        return source.state + 1.0

    def collect(self, vertex, signals):  # type: ignore[no-untyped-def]
        return min(vertex.state, signals[0])


class Means(bf.Pregel):
    """Shares of the greatest in-degree: sums, an aggregator, vertices that stay awake."""

    aggregators: ClassVar = {"greatest": bf.Aggregator("max", 0.0)}

    def initial_value(self, vertex):  # type: ignore[no-untyped-def]
        return 0.0

    def combine(self, left, right):  # type: ignore[no-untyped-def]
        return left + right

    def compute(self, vertex, messages):  # type: ignore[no-untyped-def]
        if vertex.superstep == 0:
            vertex.send_to_all(1)
        elif vertex.superstep == 1:
            vertex.value = sum(messages)
            vertex.aggregate("greatest", vertex.value)
        else:
            vertex.value /= vertex.aggregated("greatest")
            vertex.vote_to_halt()


@pytest.mark.parametrize(
    "program", [Hops(), pytest.param(Means(), marks=pytest.mark.nightly), Extremes()]
)
def test_a_compiled_program_runs_on_a_cluster(
    cluster: Cluster, graph: bf.Graph, program: bf.Program | bf.Pregel
) -> None:
    one = bf.run(graph, program, compile="numba")
    many = bf.run(graph, program, compile="numba", cluster="auto", workers=2)
    assert columns(many) == columns(one)
    assert many.stats["supersteps"] == one.stats["supersteps"]
    assert many.stats["cluster"] is not None


@pytest.mark.parametrize("turn", range(KILLS))
def test_a_worker_that_is_killed_is_replaced(
    cluster: Cluster, graph: bf.Graph, tmp_path: Path, turn: int
) -> None:
    one = bf.pagerank(graph, **LONG)
    lottery = random.Random(turn)
    killed = threading.Event()

    def kill_one(over: threading.Event) -> None:
        while not (found := workers()):
            if over.wait(0.05):
                return
        over.wait(lottery.uniform(0.0, 3.0))
        kill(lottery.choice(workers() or found))
        killed.set()

    saving = {"checkpoint_every": 10, "checkpoint_dir": tmp_path / "c"} if turn % 2 else {}
    with meanwhile(kill_one):
        many = bf.pagerank(graph, cluster="auto", workers=3, **LONG, **saving)  # type: ignore[arg-type]
    assert killed.is_set()
    assert columns(many) == columns(one)
    # A worker that was killed after its last word is not missed.
    assert len(many.stats["cluster"]["restarts"]) <= 1


@pytest.mark.nightly
@pytest.mark.parametrize("turn", range(max(1, KILLS // 5)))
def test_a_node_that_is_removed_is_replaced_by_the_others(
    cluster: Cluster, graph: bf.Graph, caplog: pytest.LogCaptureFixture, turn: int
) -> None:
    moment = random.Random(turn).uniform(0.0, 3.0)
    one = bf.pagerank(graph, **LONG)
    node = cluster.add_node(num_cpus=3, object_store_memory=100 << 20)
    cluster.wait_for_nodes()

    def remove(over: threading.Event) -> None:
        while not workers():
            if over.wait(0.05):
                return
        over.wait(moment)
        cluster.remove_node(node, allow_graceful=False)

    with caplog.at_level(logging.WARNING, "brimful"), meanwhile(remove):
        many = bf.pagerank(graph, cluster="auto", workers=4, **LONG)
    assert columns(many) == columns(one)
    restarts = many.stats["cluster"]["restarts"]
    # Ray may try to start a worker on the lost node before it knows of the loss.
    assert len(restarts) <= driver.MAX_RESTARTS
    said = [record.message for record in caplog.records if "starts again" in record.message]
    assert len(said) == len(restarts)


def test_the_exchange_of_two_workers_can_be_measured(cluster: Cluster) -> None:
    figures = actors.main(1 << 20, 2)
    assert figures["bytes"] == 2 << 20 and figures["seconds"] > 0


def test_a_run_gives_up_after_some_losses(
    cluster: Cluster, graph: bf.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "MAX_RESTARTS", 1)

    def kill_all(over: threading.Event) -> None:
        while not over.wait(0.2):
            for worker in workers():
                kill(worker)

    refused = pytest.raises(bf.WorkerLostError, match="the run was started again 1 time")
    with meanwhile(kill_all), refused:
        bf.pagerank(graph, cluster="auto", workers=2, **LONG)


def test_an_error_of_a_worker_is_raised_with_its_place(
    cluster: Cluster, graph: bf.Graph, tmp_path: Path
) -> None:
    moved = tmp_path / "moved.brimful"
    other = bf.Graph.from_arrow(graph.to_arrow().slice(0, 100), path=moved)
    with pytest.raises(bf.InputError, match="the graph there is another one; on a cluster"):
        _opened(str(moved), "0" * 16)
    with pytest.raises(bf.NotFoundError, match="must be in a folder that all nodes share"):
        _opened(str(tmp_path / "absent.brimful"), other.native.fingerprint)


def test_a_board_keeps_a_message_for_all_its_readers_and_fails_for_all() -> None:
    board = Board()
    board.post(0, (memoryview(b"facts"), memoryview(b"signals")), readers=2)
    assert board.read(0, (0, 1)) == (b"facts", b"signals")
    assert board.read(0, (0,)) == (b"facts",)
    later = threading.Timer(0.1, board.fail)
    later.start()
    with pytest.raises(PeerFailedError):
        board.read(0, (0,))


def test_a_slot_keeps_the_part_of_a_turn_until_the_turn_after_next() -> None:
    slots, views = Slots(6), Views()
    first = views.read(slots.write(memoryview(b"first")))
    second = views.read(slots.write(memoryview(b"second")))
    assert (first, second) == (b"first", b"second") and first.readonly
    third = views.read(slots.write(memoryview(b"3")))
    assert (first, second, third) == (b"3irst", b"second", b"3")
    with pytest.raises(IndexError):
        slots.write(memoryview(b"7 bytes"))
    with pytest.raises(FileNotFoundError):
        views.read(Mapped("/proc/0/fd/0", 1))


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
    with pytest.raises(bf.UsageError, match="by the superstep"):
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


def test_the_command_line_on_a_local_cluster(rmat: Path, tmp_path: Path) -> None:
    here = brimful("run", "pagerank", rmat, "-o", tmp_path / "one.csv", "--json")
    there = brimful(
        *("run", "pagerank", rmat, "-o", tmp_path / "two.csv", "--json"),
        *("--cluster", "local:2", "--budget", "300M"),
    )
    assert (here.code, there.code) == (DONE, DONE), there.err
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    divided = there.figures["cluster"]["workers"]
    assert [worker["budget_bytes"] for worker in divided] == [300 << 20] * 2
    assert here.figures["cluster"] is None


@pytest.mark.nightly
def test_the_command_line_names_the_smallest_budget_of_a_worker(rmat: Path) -> None:
    small = brimful("run", "pagerank", rmat, "--cluster", "local:2", "--budget", "100K")
    assert small.code == BUDGET
    assert_one_sentence(small.err)
    least = bf.plan(rmat, "pagerank", cluster="local:2").minimum_budget_bytes
    assert f"the smallest that works is {least >> 20}M" in small.err


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.nightly)]
)
def test_a_driver_that_ends_leaves_no_worker_and_its_run_can_be_resumed(
    rmat: Path, tmp_path: Path, number: signal.Signals
) -> None:
    words: list[object] = ["run", "pagerank", rmat, "--tolerance", 0, "--max-supersteps", 400]
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


@pytest.mark.parametrize(
    ("make", "options"),
    # One of each kind of file every day, all of them in a nightly run.
    [
        pytest.param(*one, marks=[] if one in IMPORTS[1::3] else pytest.mark.nightly)
        for one in IMPORTS
    ],
)
def test_an_import_on_a_cluster_makes_the_bytes_of_one_process(
    cluster: Cluster, tmp_path: Path, make: Callable[[Path], list[Path]], options: dict[str, Any]
) -> None:
    (tmp_path / "in").mkdir()
    paths = make(tmp_path / "in")
    alone = imported(paths, tmp_path / "one.brimful", options, None)
    for count in (1, 3):
        out = tmp_path / f"{count}.brimful"
        assert imported(paths, out, options, {"cluster": "auto", "workers": count}) == alone


def test_the_first_error_of_an_import_on_a_cluster_is_that_of_one_process(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    paths, errors = broken_files(tmp_path / "in"), []
    options = {"source": 1, "target": 2, "weight": 3}
    for place in (None, {"cluster": "auto", "workers": 3}):
        with pytest.raises(bf.InputError) as error:
            imported(paths, tmp_path / "g.brimful", options, place)
        errors.append(str(error.value))
    assert errors[0] == errors[1] and "1.csv:3002:" in errors[0]
    # One kind of file refuses the ids of another.
    (tmp_path / "huge.csv").write_text(f"source,target\n{2**63},1\n")
    (tmp_path / "negative.csv").write_text("source,target\n-1,1\n")
    (tmp_path / "weighted.csv").write_text("source,target,weight\n1,1,1\n")
    huge = [tmp_path / "huge.csv", tmp_path / "negative.csv"]
    mixed = [tmp_path / "huge.csv", tmp_path / "weighted.csv"]
    for paths in (huge, mixed, [tmp_path / "empty.csv", *mixed]):
        paths[0].touch()
        for place in (None, {"cluster": "auto", "workers": 3}):
            with pytest.raises(bf.InputError) as error:
                imported(paths, tmp_path / "g.brimful", {}, place)
            errors.append(str(error.value))
        assert errors[-1] == errors[-2]
    assert not (tmp_path / "g.brimful").exists()


@pytest.mark.nightly
@pytest.mark.parametrize(("task", "first"), [(b"_kept_text", 0), (b"_numbered_ids", 10**12)])
def test_a_task_of_an_import_that_is_killed_is_repeated(
    cluster: Cluster, tmp_path: Path, task: bytes, first: int
) -> None:
    paths = []
    for number in range(12):
        paths.append(tmp_path / f"{number:02}.txt")
        pairs = [(first + s, t) for s, t in edges(number, 10_000, 20_000)]
        paths[-1].write_text(lines(pairs) * 3)
    alone = imported(paths, tmp_path / "one.brimful", {}, None)
    killed = threading.Event()

    def kill_one(over: threading.Event) -> None:
        while not killed.is_set() and not over.is_set():
            for one in processes(b"ray::" + task):
                kill(one)
                killed.set()

    with meanwhile(kill_one):
        many = imported(paths, tmp_path / "two.brimful", {}, {"cluster": "auto", "workers": 3})
    assert killed.is_set() and many == alone


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["v", ""])
def test_edges_on_a_node_that_is_removed_are_read_again(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    paths = []
    for number in range(12):
        paths.append(tmp_path / f"{number:02}.txt")
        pairs = [(name + str(s), name + str(t)) for s, t in edges(number, 30_000, 20_000)]
        paths[-1].write_text("source target\n" + lines(pairs))
    alone = imported(paths, tmp_path / "one.brimful", {}, None)
    node = cluster.add_node(num_cpus=3, object_store_memory=100 << 20)
    cluster.wait_for_nodes()
    removed = threading.Event()

    # The process of a task does not find this module, so its code is within a function.
    def slow_records(*arguments: Any) -> Iterator[Any]:
        time.sleep(1)
        yield from keeping._records(*arguments)

    def remove(over: threading.Event) -> None:
        while not processes(b"ray::slow_records"):
            if over.wait(0.05):
                return
        cluster.remove_node(node, allow_graceful=False)
        removed.set()

    monkeypatch.setattr(keeping, "_records", slow_records)
    with meanwhile(remove):
        many = imported(paths, tmp_path / "two.brimful", {}, {"cluster": "auto", "workers": 6})
    assert removed.is_set() and many == alone


def test_an_import_on_a_cluster_has_a_budget_and_reads_files(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    paths = text_files(tmp_path / "in")
    least = 1 << 20
    for _ in range(2):
        # First the import is refused, then perhaps a task.
        with contextlib.suppress(bf.BudgetError):
            bf.read(paths, cluster="auto", budget=least, path=tmp_path / "g.brimful").close()
            break
        with pytest.raises(bf.BudgetError) as error:
            bf.read(paths, cluster="auto", budget=least)
        least = error.value.needed_bytes
    assert (tmp_path / "g.brimful").is_dir()
    with pytest.raises(bf.UsageError, match="a cluster reads files; leave cluster= out"):
        bf.read(pa.table({"source": [1], "target": [2]}), cluster="auto")
    with pytest.raises(bf.UsageError, match="workers= counts the workers of a cluster"):
        bf.read(paths, workers=2)
    (tmp_path / "pairs.u32").write_bytes(b"")
    for words, sentence in (
        (["-"], "a cluster reads files, not standard input"),
        ([tmp_path / "pairs.u32"], "a cluster reads text and Parquet, and the input is u32pairs"),
    ):
        outcome = brimful("import", *words, tmp_path / "h.brimful", "--cluster", "local:2")
        assert outcome.code == USAGE and sentence in outcome.err


@pytest.mark.nightly
def test_the_command_line_imports_on_a_local_cluster(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    paths = text_files(tmp_path / "in")
    here = brimful("import", *paths, tmp_path / "one.brimful", "--json")
    there = brimful("import", *paths, tmp_path / "two.brimful", "--json", "--cluster", "local:2")
    assert (here.code, there.code) == (DONE, DONE), there.err
    one, two = ({f.name: f.read_bytes() for f in p.iterdir()} for p in tmp_path.glob("*.brimful"))
    assert one == two
    assert there.figures["cluster"]["files_at_once"] == 2
    assert there.figures["cluster"]["bytes_received"] > 0
