"""The cluster of all tests of this package, and graphs that several of them share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import brimful as bf
from cluster.nodes import arcs, no_worker_stays, three_nodes

if TYPE_CHECKING:
    from ray.cluster_utils import Cluster


@pytest.fixture(scope="package")
def cluster() -> Iterator[Cluster]:
    """Three nodes, to which this process is connected."""
    yield from three_nodes()


@pytest.fixture(autouse=True)
def _no_worker_of_another_test() -> None:
    no_worker_stays()


@pytest.fixture(scope="package")
def graph(divided: Path) -> bf.Graph:
    """A graph of four intervals, so that each of up to four workers has vertices."""
    return bf.Graph.open(divided)


@pytest.fixture(scope="package")
def weighted(tmp_path_factory: pytest.TempPathFactory) -> bf.Graph:
    """A small graph with weights, a hub and a chain."""
    path = tmp_path_factory.mktemp("graphs") / "g.brimful"
    return bf.Graph.from_arrow(arcs(400, 2400, 1), weight="weight", path=path)
