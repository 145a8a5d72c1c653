"""Runs on a cluster beside those of one process, and the processes of Ray that tests start."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import brimful as bf

#: A mark in the environment of all processes that these tests start.
MARK = f"BRIMFUL_TESTS={os.getpid()}"
# Ray would replace the function `print` of the process that connects.
os.environ.update([MARK.split("="), ("RAY_TQDM_PATCH_PRINT", "0")])


def three_nodes() -> Iterator[Any]:
    """Connect this process to a cluster of three nodes on this machine, until the fixture ends."""
    import ray
    from ray.cluster_utils import Cluster

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


def processes(title: bytes) -> list[int]:
    """The ids of processes that these tests started, by the titles that Ray gives them."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if not (process / "cmdline").read_bytes().startswith(title):
                continue
            if MARK.encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


def workers() -> list[int]:
    """The ids of the processes of actors."""
    return processes(b"ray::Worker")


def kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


@contextlib.contextmanager
def meanwhile(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Work on another thread, until the block has ended and sets the event."""
    over = threading.Event()
    thread = threading.Thread(target=work, args=(over,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(10)
    assert not thread.is_alive()


def no_worker_stays(seconds: float = 60.0) -> None:
    begin = time.monotonic()
    while workers():
        assert time.monotonic() - begin < seconds, "a worker stays"
        time.sleep(0.05)


def arcs(vertices: int, count: int, seed: int) -> pa.Table:
    """Random arcs with whole weights, a hub and a chain."""
    state = seed
    pairs = []
    for _ in range(count):
        state = (state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % 2**64
        source, target = (state >> 33) % vertices, (state >> 13) % vertices
        pairs.append((source, 0 if target % 4 == 0 else target, 1.0 + state % 7))
    pairs += [(vertex, vertex + 1, 9.0) for vertex in range(vertices - 1)]
    sources, targets, weights = zip(*pairs, strict=True)
    return pa.table({"source": sources, "target": targets, "weight": weights})


def both(graph: bf.Graph, program: Any, workers: int = 2, **options: Any) -> bf.States:
    """Run a program in this process and on workers; return the second result if both are equal."""
    here = bf.run(graph, program, **options)
    there = bf.run(graph, program, cluster="auto", workers=workers, **options)
    assert isinstance(here, bf.States) and isinstance(there, bf.States)
    assert list(there.items()) == list(here.items())
    for name in ("supersteps", "reason", "signals", "superstep_frontier", "superstep_signals"):
        assert there.stats[name] == here.stats[name], name
    assert there.stats.get("aggregates") == here.stats.get("aggregates")
    figures = there.stats["cluster"]
    assert len(figures["workers"]) == workers and figures["restarts"] == []
    return there
