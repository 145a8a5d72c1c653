"""Vertices that are read from the disks that have them, within the budget."""

import contextlib
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import brimful as bf
from cgroup import hard_limit
from kept_vertices import Hops, graph_at


def test_vertices_lie_on_several_disks(tmp_path: Path) -> None:
    graph = graph_at(tmp_path)
    folders = [tmp_path / "one", tmp_path / "two"]
    url = f"file:{folders[0]},{folders[1]}"
    with bf.VertexStore.create(url, graph) as store:
        assert dict(store.run(Hops())) == {0: 0, 1: 1, 2: 2, 3: 3, 4: 1}
    parts = [sorted(part.name for part in folder.glob("partition-*")) for folder in folders]
    assert parts == [["partition-0000"], ["partition-0001"]]
    with bf.VertexStore.open(url) as store:
        assert dict(store) == {0: 0, 1: 1, 2: 2, 3: 3, 4: 1}
    # No vertex is missing in silence.
    for part in (f"file:{folders[0]}", f"file:{folders[1]},{folders[0]}"):
        with pytest.raises(bf.BrimfulError, match=r"is missing; name all folders|no store of vert"):
            bf.VertexStore.open(part)
    assert not (folders[0] / "partition-0001").exists()
    # A run that keeps nothing uses both, and leaves nothing.
    other = f"file:{tmp_path}/three,{tmp_path}/four"
    assert dict(bf.run(graph, Hops(), store=other))[3] == 3
    assert bf.pagerank(graph, store=other)[3] == pytest.approx(bf.pagerank(graph)[3])
    assert not (tmp_path / "three").exists() and not (tmp_path / "four").exists()


def test_folders_of_others_are_refused_and_stay(tmp_path: Path) -> None:
    graph = graph_at(tmp_path)
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    url = f"file:{one},{two}"

    def refused(other: str, reason: str) -> None:
        with pytest.raises(bf.BrimfulError, match=reason):
            bf.run(graph, Hops(), store=other, keep=True)
        assert len(list(two.glob("partition-*"))) == 1

    with bf.VertexStore.create(url, graph) as store:
        expected = dict(store.run(Hops()))
        refused(f"file:{three},{two}", "this process has it open already")
    # As the first folder of a store, as a further one, and of a store that is loaded.
    refused(f"file:{two}", "two has other files, such as")
    refused(f"file:{three},{two}", "two has other files, such as")
    with bf.VertexStore.create(f"file:{three},{tmp_path}/four", graph) as store:
        store.run(Hops())
    refused(f"file:{three},{two}", "two is not a folder of the store in .*three; name all")
    # Other folders stay, whatever their names.
    mine = tmp_path / "mine"
    (mine / "partition-old").mkdir(parents=True)
    with pytest.raises(bf.BrimfulError, match="other files, such as partition-old"):
        bf.run(graph, Hops(), store=f"file:{mine}", keep=True)
    assert (mine / "partition-old").is_dir()
    with bf.VertexStore.open(url) as store:
        assert dict(store) == expected


@pytest.mark.parametrize("partitioner", ["range", "hash"])
def test_states_of_a_run_are_read_from_the_disk_that_has_them(
    partitioner: str, tmp_path: Path
) -> None:
    # The hubs come first, so that ranges of equal work and of equal edges differ.
    targets = [target for hub in range(1, 40) for target in range(hub, 1000, 7 * hub)]
    sources = [hub for hub in range(1, 40) for _ in range(hub, 1000, 7 * hub)]
    path = [*range(1000)]
    edges = pa.table({"source": [*sources, *path[:-1]], "target": [*targets, *path[1:]]})
    with bf.Graph.from_arrow(edges) as graph:
        expected = dict(bf.run(graph, Hops(), store="memory"))
        url = f"file:{tmp_path}/one,{tmp_path}/two,{tmp_path}/three"
        states = bf.run(graph, Hops(), store=url, partitioner=partitioner)
        assert len(expected) == 1000
        assert dict(states) == expected
        assert all(states[id] == expected[id] for id in range(0, 1000, 97))


@pytest.mark.parametrize("scheme", ["file", "kv"])
def test_states_of_a_run_on_disk_are_read_from_its_files(scheme: str, tmp_path: Path) -> None:
    graph = graph_at(tmp_path)
    states = bf.run(graph, Hops(), store=f"{scheme}:{tmp_path}/vertices")
    # The files have no names any more.
    assert not (tmp_path / "vertices").exists()
    assert dict(states) == {0: 0, 1: 1, 2: 2, 3: 3, 4: 1}
    assert len(states) == 5 and states[3] == 3 and states.top(1) == [(3, 3)]


def test_scattered_ids_of_many_vertices_are_read_in_blocks(tmp_path: Path) -> None:
    class Sends(bf.Program):
        """The sum of the ids of sources."""

        delivery, combiner = "combined", "sum"

        def initial_state(self, vertex: Any) -> Any:
            return vertex.id % 1000

        def signal(self, source: Any, target: Any, weight: float) -> Any:
            return source.id % 1000 + target % 1000

        def collect(self, vertex: Any, signals: Any) -> Any:
            return signals[0] + vertex.id % 7

    # All ids take 118 blocks of 512, and this budget has places for fewer than 80.
    count, budget = 60_000, "40M"
    ids = np.random.default_rng(5).permutation(np.arange(count) * 1_000_003)
    table = pa.table({"source": ids, "target": np.roll(ids, 12_345)})
    with bf.Graph.from_arrow(table, path=str(tmp_path / "g.brimful")) as graph:
        states = bf.run(
            graph, Sends(), store=f"file:{tmp_path}/vertices", max_supersteps=1, budget=budget
        )
        assert dict(states) == dict(bf.run(graph, Sends(), max_supersteps=1))


_READER = r"""
    import re, sys
    from pathlib import Path
    import brimful as bf

    url, budget = sys.argv[1:]
    with bf.VertexStore.open(url, budget=int(budget)) as store:
        ids = [vertex for vertex, _ in zip(store, range(3))]
        peak = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
        print(*ids, int(peak[1]) << 10)
"""


@pytest.mark.nightly
def test_vertices_in_order_are_read_within_the_budget(tmp_path: Path) -> None:
    def read(count: int, limit: int | None) -> int:
        """Return the peak of a process that reads the first vertices of a store."""
        folder = tmp_path / str(count)
        path, url = str(folder / "ring.brimful"), f"file:{folder}/vertices"
        folder.mkdir()
        # The ids are not consecutive, and their order is not that of ranks.
        ids = np.random.default_rng(5).permutation(np.arange(count) * 1_000_003)
        table = pa.table({"source": ids, "target": np.roll(ids, 1)})
        bf.Graph.from_arrow(table, path=path).close()
        bf.VertexStore.create(url, path).close()
        command = [sys.executable, "-c", textwrap.dedent(_READER), url, str(budget)]
        with contextlib.ExitStack() as stack:
            enter = stack.enter_context(hard_limit(limit)) if limit else None
            done = subprocess.run(command, capture_output=True, text=True, preexec_fn=enter)
        assert done.returncode == 0, done.stderr
        *first, peak = map(int, done.stdout.split())
        assert first == [0, 1_000_003, 2_000_006]
        return peak

    budget = 8 << 20
    base = read(10, None)
    # Rank and id of a vertex alone take 16 bytes.
    assert read(500_000, base + budget) <= base + budget
