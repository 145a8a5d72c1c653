"""Forecasts of runs on a cluster."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import brimful as bf
from brimful.catalog import algorithms
from command import USAGE, refuse, succeed
from plans import MACHINE, plan

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


def test_workers_of_one_machine_share_its_cores(rmat20: Path) -> None:
    options = ["--threads", 1, "--budget", "1G"]
    plans = [
        plan(rmat20, "pagerank", *options, "--cluster", f"local:{count}") for count in (1, 2, 64)
    ]
    assert all(one["network"] is None for one in plans)
    cores = os.cpu_count() or 1
    one, two, many = (plan["seconds_per_superstep"] for plan in plans)
    if cores < 64:
        assert many > two, "more workers than cores only wait for one another"
    assert one > 0
    figures = bf.plan(rmat20, "pagerank", cluster="local:2", threads=1, budget="1G")
    assert figures.received_bytes_per_superstep == plans[1]["received_bytes_per_superstep"]


def test_every_algorithm_of_a_cluster_has_its_forecast(rmat20: Path) -> None:
    for name, info in algorithms().items():
        if "cluster" in info["takes"]:
            options = ["--source", 1] if "source" in info["takes"] else []
            figures = plan(rmat20, name, *options, "--budget", "1G", "--cluster", 2)
            assert figures["received_bytes_per_superstep"] > 0, name


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["pagerank", "--cluster", "0"], "cluster must be a number of workers from 1 to 1,000"),
        (["pagerank", "--cluster", "auto"], "or local:N, not auto"),
        (["pagerank", "--cluster", "2", "--network", "0"], "network must be a number of Gbit/s"),
        (
            ["pagerank", "--network", "25"],
            "--network is for a forecast of a cluster; add --cluster",
        ),
        (["triangles", "--cluster", "2"], "triangles does not run on a cluster"),
        (["pagerank", "--cluster", "2", "--mode", "async"], "needs synchronous supersteps"),
        (
            ["pagerank", "--cluster", "2", "--store", "memory"],
            "on shards on a cluster, not in a store",
        ),
    ],
)
def test_clusters_that_there_cannot_be(options: list[str], sentence: str) -> None:
    assert sentence in refuse(USAGE, "plan", *options, *UNBUILT)
