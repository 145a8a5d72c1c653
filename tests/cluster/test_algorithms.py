"""Runs on a Ray cluster: the bits of one process, whatever happens to the workers."""

from __future__ import annotations

import logging
import os
import random
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from bench import actors
from ray.cluster_utils import Cluster

import brimful as bf
from brimful.cluster import driver
from brimful.cluster.exchange import Board, Mapped, Slots, Views
from brimful.cluster.worker import _open_graph
from cluster.nodes import kill, meanwhile, workers
from nightly import with_nightly
from test_structured_messages import Extremes

#: Kills at random moments, and in a nightly run.
KILLS = 50 if os.environ.get("BRIMFUL_KILLS") == "all" else 1

#: Bandwidths that nobody has to measure.
bandwidths = {"disk_bandwidth": 2.0, "memory_bandwidth": 30.0}

#: Supersteps that take some seconds.
LONG = {"tolerance": 0.0, "max_supersteps": 80}


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
def test_workers_give_the_same_bits(cluster: Cluster, graph: bf.Graph, name: str) -> None:
    one = DIVIDED[name](graph)
    many = DIVIDED[name](graph, cluster="auto", workers=3)
    assert columns(many) == columns(one)
    # One process may take vertices in the order of their distances.
    assert name == "sssp" or many.stats["supersteps"] == one.stats["supersteps"]
    assert one.stats["cluster"] is None
    figures = many.stats["cluster"]
    assert len(figures["workers"]) == 3 and figures["restarts"] == []
    assert len({one["node"] for one in figures["workers"]}) == 3, "they are spread over nodes"
    for worker in figures["workers"]:
        assert worker["supersteps"] == many.stats["supersteps"]
        assert worker["bytes_sent"] > 0, "each worker has vertices"
        # The nodes are one machine, which has the driver too.
        assert 0 < worker["budget_bytes"] <= worker["memory_bytes"] / 4


@pytest.mark.parametrize("count", with_nightly([2], [3]))
def test_workers_exchange_the_bytes_of_the_plan(
    cluster: Cluster, graph: bf.Graph, count: int
) -> None:
    plan = bf.plan(graph, "pagerank", cluster=count, threads=1, **bandwidths)
    run = bf.pagerank(graph, cluster="auto", workers=count, tolerance=0.0, max_supersteps=5)
    sent, received = plan.sent_bytes_per_superstep, plan.received_bytes_per_superstep
    assert sent is not None and received is not None
    figures = run.stats["cluster"]["workers"]
    assert all(one["bytes_sent"] > 0 for one in figures)
    # Vertices also signal before the first superstep; after the last one the driver gets states.
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


@pytest.mark.parametrize("program", with_nightly([Hops()], [Means(), Extremes()]))
def test_a_compiled_program_runs_on_a_cluster(
    cluster: Cluster, graph: bf.Graph, program: bf.Program | bf.Pregel
) -> None:
    one = bf.run(graph, program, compile="numba")
    many = bf.run(graph, program, compile="numba", cluster="auto", workers=2)
    assert columns(many) == columns(one)
    assert many.stats["supersteps"] == one.stats["supersteps"]
    assert all(one["bytes_sent"] > 0 for one in many.stats["cluster"]["workers"])


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
        over.wait(lottery.uniform(0.0, 1.5))
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
    moment = random.Random(turn).uniform(0.0, 1.5)
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
    with pytest.raises(bf.InputError, match="is not the graph of the driver; on a cluster"):
        _open_graph(str(moved), "0" * 16)
    with pytest.raises(bf.NotFoundError, match="must be in a folder that all nodes share"):
        _open_graph(str(tmp_path / "absent.brimful"), other.native.fingerprint)


def test_a_board_keeps_a_message_for_all_its_readers_and_fails_for_all() -> None:
    board = Board()
    board.post(0, (memoryview(b"facts"), memoryview(b"signals")), readers=2)
    assert board.read(0, (0, 1)) == (b"facts", b"signals")
    assert board.read(0, (0,)) == (b"facts",)
    later = threading.Timer(0.1, board.fail)
    later.start()
    assert board.read(0, (0,)) is None


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
