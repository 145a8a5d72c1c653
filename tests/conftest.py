"""Fixtures: the real graphs, and graphs that several tests share."""

from __future__ import annotations

import gc
import os
import signal
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import settings

from command import succeed

ROOT = Path(__file__).resolve().parent.parent

# Two threads for small matrices would mostly wait, and busily. Processes that tests start have as
# many as a user has.
with mock.patch.dict(os.environ, OPENBLAS_NUM_THREADS="1"):
    import_module("numpy")

# How many examples a property is tried with; `make nightly` chooses the second profile.
settings.register_profile("everyday", max_examples=15, deadline=None)
settings.register_profile("nightly", max_examples=1000, deadline=None)
settings.load_profile("everyday")

# A shell that starts the tests in the background ignores Ctrl-C for all processes that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Leave thousands of tests and their modules out of the garbage collections to come."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Divide tests by files, and run those of the package `cluster` in one process."""
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = str(super()._split_scope(nodeid))
            return "cluster" if Path(file).parent.name == "cluster" else file

    return ByFile(config, log)


def real_data() -> Path:
    """Return the folder of real graphs, from BRIMFUL_TEST_DATA or next to the repository."""
    given = os.environ.get("BRIMFUL_TEST_DATA")
    return Path(given) if given else ROOT.parent / "shared" / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real graphs; skips aloud where it is absent."""
    folder = real_data()
    if not folder.is_dir():
        pytest.skip(f"SKIPPED: no real graphs at {folder}; set BRIMFUL_TEST_DATA to their folder")
    return folder


def generated(factory: pytest.TempPathFactory, scale: int, *options: object) -> Path:
    """Return an R-MAT graph of 2^`scale` ids."""
    graph = factory.mktemp("rmat") / f"rmat{scale}.brimful"
    succeed("generate", "rmat", graph, "--scale", scale, *options, "--quiet")
    return graph


@pytest.fixture(scope="session")
def rmat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of 16,384 ids and 262,144 edges with hubs, sinks, multi-edges and self-loops."""
    return generated(tmp_path_factory, 14, "--edge-factor", 16)


@pytest.fixture(scope="session")
def rmat18(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of 4.2 M edges, with its reverse index."""
    return generated(tmp_path_factory, 18, "--index", "in,reverse")


@pytest.fixture(scope="session")
def rmat20(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of 16.8 M edges whose states are larger than the smallest budget."""
    return generated(tmp_path_factory, 20, "--edge-factor", 16)


@pytest.fixture(scope="session")
def divided(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of four intervals with hubs, which threads and workers divide among themselves."""
    import numpy as np
    import pyarrow as pa

    import brimful as bf

    lottery = np.random.default_rng(5)
    sources, ends = lottery.integers(0, 1 << 18, 400_000), lottery.integers(0, 1 << 18, 400_000)
    targets = np.where(ends % 2 == 0, ends, ends**3 >> 36)
    path = tmp_path_factory.mktemp("divided") / "divided.brimful"
    table = pa.table({"source": sources, "target": targets})
    with bf.Graph.from_arrow(table, path=path) as graph:
        assert len(set(sources) | set(targets)) > 3 << 16
        assert graph.edges == len(sources)
    return path


@pytest.fixture(scope="session")
def slashdot(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Slashdot, imported."""
    graph = tmp_path_factory.mktemp("slashdot") / "slashdot.brimful"
    succeed("import", data / "soc-Slashdot0902.txt.gz", graph, "--quiet")
    return graph


@pytest.fixture(scope="session")
def votes(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The votes of Wikipedia, imported."""
    graph = tmp_path_factory.mktemp("votes") / "votes.brimful"
    succeed("import", data / "wiki-Vote.txt.gz", graph, "--quiet")
    return graph
