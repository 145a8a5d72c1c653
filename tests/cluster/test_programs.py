"""Interpreted programs on a Ray cluster: the states of one process."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import brimful as bf
from brimful.stores import Opening, Store, register
from brimful.stores.base import load_missing
from cluster.nodes import arcs, both, kill, no_worker_stays, workers
from cluster.test_algorithms import Hops, Means
from nightly import rows_with_nightly, with_nightly
from test_structured_messages import Routes

NAMES = ["amber", "birch", "cedar", "dune", "ember", "fern", "grove", "heath", "iris", "jade"]


pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(scope="module")
def graph(weighted: bf.Graph) -> bf.Graph:
    """The graph of all tests of this file, unless they name another."""
    return weighted


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> bf.Graph:
    """A graph whose ids are strings."""
    found = arcs(len(NAMES), 14, 3).to_pydict()
    columns = {name: [NAMES[one] for one in found[name]] for name in ("source", "target")}
    path = tmp_path_factory.mktemp("graphs") / "named.brimful"
    return bf.Graph.from_arrow(pa.table(columns), path=path)


class Ranks(bf.Program):
    """PageRank from the latest signals of all edges, a sum of floats."""

    delivery = "latest"
    signal_threshold = 1e-4

    def initial_state(self, vertex):  # type: ignore[no-untyped-def]
        return 0.15

    def signal(self, source, target, weight):  # type: ignore[no-untyped-def]
        return source.state / source.degree

    def collect(self, vertex, signals):  # type: ignore[no-untyped-def]
        return 0.15 + 0.85 * sum(signals)

    def signal_score(self, vertex):  # type: ignore[no-untyped-def]
        return 1.0 if vertex.signalled is None else abs(vertex.state - vertex.signalled)


@pytest.mark.parametrize("end", with_nightly([{"tolerance": 1e-3}], [{"max_supersteps": 15}]))
def test_ranks_have_the_same_bits(graph: bf.Graph, end: dict[str, Any]) -> None:
    states = both(graph, Ranks(), 3, **end)
    assert states.stats["variant"] == "interpreted"
    assert all(one["bytes_sent"] > 0 for one in states.stats["cluster"]["workers"])


class Trails(bf.Program):
    """States that depend on the order of signals; messages are objects."""

    def initial_state(self, vertex):  # type: ignore[no-untyped-def]
        return (vertex.id, 0)

    def signal(self, source, target, weight):  # type: ignore[no-untyped-def]
        return (source.state[1], weight) if source.state[1] < 10**9 else None

    def collect(self, vertex, signals):  # type: ignore[no-untyped-def]
        kept = vertex.state[1]
        for number, weight in signals:
            kept = (kept * 31 + number + int(weight)) % (10**9 + 7)
        return (vertex.state[0], kept)


@pytest.mark.parametrize(
    "store", with_nightly(["file:{}"], ["memory", "bytes", "kv:{}", "rocksdb:{}", "berkeleydb:{}"])
)
def test_signals_arrive_in_the_order_of_one_process(
    graph: bf.Graph, store: str, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"weighted": True, "max_supersteps": 5}
    place = store.format(tmp_path)
    if store.startswith("berkeleydb"):
        pytest.importorskip("berkeleydb", reason="SKIPPED: berkeleydb is not installed")
    states = both(graph, Trails(), 3, lists="disk", store=place, **options)
    assert dict(states) == dict(bf.run(graph, Trails(), **options))


class Paths(bf.Pregel):
    """Shortest paths with a combiner, aggregators of both kinds and a master that halts."""

    aggregators: ClassVar = {
        "changed": bf.Aggregator("sum", 0),
        "reached": bf.Aggregator("sum", 1, persistent=True),
        "largest": bf.Aggregator(max, 0.0),
        "bound": bf.Aggregator("min", 10**9, persistent=True),
    }

    def __init__(self, source: Any) -> None:
        self.source = source

    def initial_value(self, vertex):  # type: ignore[no-untyped-def]
        return None

    def combine(self, left, right):  # type: ignore[no-untyped-def]
        return min(left, right)

    def master_compute(self, master):  # type: ignore[no-untyped-def]
        if master.superstep > 1 and master.aggregated("changed") == 0:
            master.halt()
        master.set_aggregated("bound", master.superstep)

    def compute(self, vertex, messages):  # type: ignore[no-untyped-def]
        if vertex.superstep == 0 and vertex.id == self.source:
            messages = [0.0]
        best = min(messages, default=None)
        if best is not None and (vertex.value is None or best < vertex.value):
            assert vertex.aggregated("bound") == vertex.superstep
            if vertex.value is None:
                vertex.aggregate("reached", 1)
            vertex.aggregate("changed", 1)
            vertex.aggregate("largest", best)
            vertex.value = best
            for target, weight in vertex.edges:
                vertex.send(target, best + weight)
        # Stays awake: only the master ends the run.


@pytest.mark.parametrize("store", with_nightly(["file"], ["memory"]))
def test_shortest_paths_in_pregel(graph: bf.Graph, store: str, tmp_path: Path) -> None:
    place = f"file:{tmp_path}" if store == "file" else store
    states = both(graph, Paths(5), 2, weighted=True, store=place)
    expected = bf.sssp(graph, 5, weighted=True)
    assert {vertex: states[vertex] for vertex in states} == dict(expected)
    assert not list(tmp_path.iterdir()), "workers remove their vertices"


class Components(bf.Program):
    """The least vertex from which each one is reached; an aggregate counts the changes."""

    combiner = "min"
    delivery = "combined"
    aggregators: ClassVar = {"changes": bf.Aggregator("sum", 0)}

    def initial_state(self, vertex):  # type: ignore[no-untyped-def]
        return vertex.id

    def signal(self, source, target, weight):  # type: ignore[no-untyped-def]
        return source.state

    def collect(self, vertex, signals):  # type: ignore[no-untyped-def]
        return np.minimum(vertex.state, signals[0])

    def aggregate(self, vertex, new):  # type: ignore[no-untyped-def]
        return 1


@pytest.mark.parametrize(
    ("program", "compiled", "store"),
    rows_with_nightly(
        [(Components(), "numpy", "rocksdb:{}")],
        [
            (Components(), "numba", "bytes"),
            (Means(), "numba", "file:{}"),
            (Means(), "numba", "memory"),
            (Components(), "numba", "kv:{}"),
        ],
    ),
)
def test_compiled_programs_on_stores(
    graph: bf.Graph, program: Any, compiled: Any, store: str, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"compile": compiled, "store": store.format(tmp_path)}
    here = bf.run(graph, program, **options)
    there = bf.run(graph, program, cluster="auto", workers=3, threads=2, **options)
    assert there.to_arrow() == here.to_arrow()
    told = ("variant", "supersteps", "reason", "signals", "edge_visits", "aggregates")
    for name in (*told, "superstep_frontier", "superstep_signals"):
        assert there.stats[name] == here.stats[name], name
    assert there.stats["store"] == here.stats["store"]
    assert len(there.stats["cluster"]["workers"]) == 3
    assert not list(tmp_path.iterdir()), "workers remove their vertices"


class Rows(Store):
    """Vertices in a table of SQLite, which all processes of this machine see."""

    form = "rows:FILE"

    def __init__(self, opening: Opening) -> None:
        self._rows = sqlite3.connect(
            opening.address, timeout=60, isolation_level=None, check_same_thread=False
        )
        self._own = opening.partition
        self._rows.execute("CREATE TABLE IF NOT EXISTS t (p, k, r, PRIMARY KEY (p, k))")

    def load(self, batch: Sequence[tuple[bytes, bytes]]) -> int:
        return load_missing(self, batch)

    def get_many(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        select = "SELECT r FROM t WHERE p = ? AND k = ?"
        rows = [self._rows.execute(select, (self._own, key)).fetchone() for key in keys]
        return [row and row[0] for row in rows]

    def put_many(self, keys: Sequence[bytes], records: Sequence[bytes]) -> None:
        rows = [(self._own, key, record) for key, record in zip(keys, records, strict=True)]
        self._rows.execute("BEGIN IMMEDIATE")
        self._rows.executemany("INSERT OR REPLACE INTO t VALUES (?, ?, ?)", rows)
        self._rows.execute("COMMIT")

    def remove_many(self, keys: Sequence[bytes]) -> None:
        rows = [(self._own, key) for key in keys]
        self._rows.executemany("DELETE FROM t WHERE p = ? AND k = ?", rows)

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        yield from self._rows.execute(
            "SELECT k, r FROM t WHERE p = ? ORDER BY k", (self._own,)
        ).fetchall()

    def count(self) -> int:
        found = self._rows.execute("SELECT count(*) FROM t WHERE p = ?", (self._own,))
        return int(found.fetchone()[0])

    def clear(self) -> None:
        self._rows.execute("DELETE FROM t WHERE p = ?", (self._own,))

    def close(self) -> None:
        self._rows.close()


def rows_left(path: Path) -> int:
    with contextlib.closing(sqlite3.connect(path)) as rows:
        return int(rows.execute("SELECT count(*) FROM t").fetchone()[0])


def test_vertices_in_a_database(graph: bf.Graph, tmp_path: Path) -> None:
    register("rows", Rows)
    table = tmp_path / "t.sqlite"
    place = f"rows:{table}"
    both(graph, Trails(), 3, store=place, serializer="pickle", max_supersteps=3)
    there = bf.run(graph, Components(), compile="numpy", store=place, cluster="auto", workers=2)
    assert there.to_arrow() == bf.run(graph, Components(), compile="numpy").to_arrow()
    assert rows_left(table) == 0


def test_values_and_messages_with_fields(graph: bf.Graph) -> None:
    called = both(graph, Routes(3), weighted=True)
    assert called.to_arrow().column_names == ["vertex", "distance", "via", "id"]
    compiled = bf.run(
        graph, Routes(3), weighted=True, compile="numba", store="bytes", cluster="auto", workers=2
    )
    assert compiled.stats["variant"] == "compiled"
    assert dict(compiled) == dict(called)


@pytest.mark.nightly
def test_a_lost_worker_leaves_nothing_in_a_database(graph: bf.Graph, tmp_path: Path) -> None:
    register("rows", Rows)
    table = tmp_path / "t.sqlite"
    states, killed = run_with_a_kill(graph, store=f"rows:{table}")
    assert len(killed) == 1 and rows_left(table) == 0
    assert dict(states) == dict(bf.run(graph, Slow(5), weighted=True))


def test_vertices_that_another_run_left_in_a_database_stay(graph: bf.Graph, tmp_path: Path) -> None:
    register("rows", Rows)
    table = tmp_path / "t.sqlite"
    Rows(Opening(f"rows:{table}", 1, 1 << 20)).put_many([b"key"], [b"record"])
    with pytest.raises(bf.UsageError, match="has 1 vertex of another run; remove it"):
        bf.run(graph, Ranks(), cluster="auto", workers=2, store=f"rows:{table}")
    assert rows_left(table) == 1


class Phases(bf.Pregel):
    """The master chooses compute and combiner; a context counts on each worker."""

    aggregators: ClassVar = {"computed": bf.Aggregator("sum", 0), "seen": bf.Aggregator("max", 0)}

    def worker_context(self):  # type: ignore[no-untyped-def]
        return Counter()

    def initial_value(self, vertex):  # type: ignore[no-untyped-def]
        return []

    def combine(self, left, right):  # type: ignore[no-untyped-def]
        return left + right

    def largest(self, left, right):  # type: ignore[no-untyped-def]
        return max(left, right)

    def master_compute(self, master):  # type: ignore[no-untyped-def]
        if master.superstep == 2:
            master.set_combine("largest")
        if master.superstep == 3:
            master.set_compute("finish")
        if master.superstep == 4:
            master.set_combine(None)

    def compute(self, vertex, messages):  # type: ignore[no-untyped-def]
        vertex.context.computed += 1
        vertex.value = [*vertex.value, sorted(messages)]
        vertex.send_to_all(vertex.superstep + int(vertex.degree))

    def finish(self, vertex, messages):  # type: ignore[no-untyped-def]
        vertex.value = [*vertex.value, vertex.aggregated("computed"), sorted(messages)]
        if vertex.superstep < 6:
            vertex.send_to_all(1)
        else:
            vertex.vote_to_halt()


class Counter(bf.WorkerContext):
    """Counts the vertices that its worker computes."""

    def pre_application(self):  # type: ignore[no-untyped-def]
        self.started = True

    def pre_superstep(self):  # type: ignore[no-untyped-def]
        assert self.started
        self.computed = 0

    def post_superstep(self):  # type: ignore[no-untyped-def]
        self.aggregate("computed", self.computed)


def test_the_master_of_one_worker_decides_for_all(graph: bf.Graph) -> None:
    both(graph, Phases(), 3)
    assert both(graph, Phases(), 2, max_supersteps=2).stats["aggregates"]["computed"] > 0


class Named(bf.Pregel):
    """Collects names, and creates vertices with new ones."""

    mutates = True

    def initial_value(self, vertex):  # type: ignore[no-untyped-def]
        return ""

    def compute(self, vertex, messages):  # type: ignore[no-untyped-def]
        vertex.value = ",".join([vertex.value, *messages])
        if vertex.superstep == 0:
            vertex.send(f"{vertex.id[0]}-new", vertex.id)
            vertex.send("aaa", vertex.id)
        if vertex.superstep == 1:
            vertex.send_to_all(vertex.id)
        if vertex.superstep > 1:
            vertex.vote_to_halt()


def test_ids_that_are_strings(named: bf.Graph) -> None:
    states = both(named, Named(), 3)
    assert states["aaa"] == "," + ",".join(sorted(NAMES, key=states["aaa"].split(",").index))
    assert list(states)[:2] == ["a-new", "aaa"]


@dataclass
class Parcel:
    """A message of a class of this module, which workers cannot import."""

    weight: float


class Parcels(bf.Program):
    """Signals and states are objects of own classes."""

    def initial_state(self, vertex):  # type: ignore[no-untyped-def]
        return Parcel(float(vertex.degree))

    def signal(self, source, target, weight):  # type: ignore[no-untyped-def]
        return Parcel(source.state.weight / 2)

    def collect(self, vertex, signals):  # type: ignore[no-untyped-def]
        assert all(isinstance(one, Parcel) for one in signals)
        return Parcel(max(one.weight for one in signals))


@pytest.mark.nightly
def test_objects_of_any_class_travel(graph: bf.Graph) -> None:
    both(graph, Parcels(), 2, max_supersteps=3)


class Totals(bf.Program):
    """Aggregates of a program, which collect reads."""

    combiner = "sum"
    aggregators: ClassVar = {
        "sum": bf.Aggregator("sum", 5),
        "top": bf.Aggregator("max", 0, persistent=True),
    }

    def initial_state(self, vertex):  # type: ignore[no-untyped-def]
        return 1

    def signal(self, source, target, weight):  # type: ignore[no-untyped-def]
        return source.state

    def collect(self, vertex, signals):  # type: ignore[no-untyped-def]
        return (signals[0] + self.aggregated.sum) % 1009

    def aggregate(self, vertex, new):  # type: ignore[no-untyped-def]
        return new - vertex.state, new


@pytest.mark.nightly
def test_aggregates_of_a_program(graph: bf.Graph) -> None:
    states = both(graph, Totals(), 3, max_supersteps=6)
    assert set(states.stats["aggregates"]) == {"sum", "top"}


@pytest.mark.nightly
def test_a_run_without_work(graph: bf.Graph) -> None:
    class Nothing(bf.Pregel):
        def initial_value(self, vertex):  # type: ignore[no-untyped-def]
            return vertex.degree

        def compute(self, vertex, messages):  # type: ignore[no-untyped-def]
            vertex.vote_to_halt()

    both(graph, Nothing(), 1)


class Fails(bf.Pregel):
    """Raises an exception in the method that is named, at the third superstep."""

    def __init__(self, where: str) -> None:
        self.where = where

    def initial_value(self, vertex):  # type: ignore[no-untyped-def]
        return 0

    def master_compute(self, master):  # type: ignore[no-untyped-def]
        if self.where == "master" and master.superstep == 2:
            raise ValueError("no more ink")

    def compute(self, vertex, messages):  # type: ignore[no-untyped-def]
        if vertex.superstep == 2 and vertex.id == 390:
            if self.where == "compute":
                raise ValueError("no more ink")
            if self.where == "message":
                vertex.send(0, threading.Lock())
            if self.where == "target":
                vertex.send(10**6, 1)
        vertex.value = vertex.superstep


@pytest.mark.parametrize(
    ("where", "sentence"),
    rows_with_nightly(
        [("compute", "the program failed to compute at vertex 390: ValueError: no more ink")],
        [
            ("target", "1000000"),
            ("master", "master_compute failed at superstep 2: ValueError: no more ink"),
            ("message", "an object of type lock cannot be sent to another worker"),
        ],
    ),
)
def test_an_error_of_a_worker_is_raised_in_the_caller(
    graph: bf.Graph, where: str, sentence: str
) -> None:
    with pytest.raises(bf.ProgramError) as raised:
        bf.run(graph, Fails(where), cluster="auto", workers=2)
    assert sentence in str(raised.value)
    if where == "compute":
        error = raised.value
        assert (error.vertex, error.superstep, error.state) == (390, 2, 1)
        assert isinstance(error.__cause__, ValueError)
        assert any("on worker" in note for note in error.__notes__)


def test_errors_of_all_workers_are_one_error(
    graph: bf.Graph, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Fails(bf.Pregel):
        def initial_value(self, vertex):  # type: ignore[no-untyped-def]
            return 0

        def compute(self, vertex, messages):  # type: ignore[no-untyped-def]
            raise ValueError("no ink at all")

    # The logger of Ray prints by itself the errors of tasks whose results nobody reads.
    monkeypatch.setattr(logging.getLogger("ray"), "propagate", True)
    with pytest.raises(bf.ProgramError, match="no ink at all"):
        bf.run(graph, Fails(), cluster="auto", workers=2)
    # Ray reports them when it next handles a result.
    bf.degrees(graph, cluster="auto", workers=2)
    assert "Unhandled error" not in caplog.text


def test_a_budget_that_is_too_small_is_named(graph: bf.Graph) -> None:
    with pytest.raises(bf.BudgetError) as raised:
        bf.run(graph, Ranks(), cluster="auto", workers=2, budget=1 << 20)
    least = raised.value.needed_bytes
    assert least > 1 << 20
    both(graph, Ranks(), 2, budget=2 * least, max_supersteps=3)


@pytest.mark.nightly
@pytest.mark.parametrize("store", ["memory", "bytes", "file:{}"])
def test_a_budget_that_is_named_for_a_compiled_program_works(
    rmat: Path, store: str, tmp_path: Path
) -> None:
    def run(budget: int) -> dict[Any, Any]:
        chosen: dict[str, Any] = {"compile": "numba", "store": store.format(tmp_path)}
        place: dict[str, Any] = {"cluster": "auto", "workers": 2, "threads": 1, "budget": budget}
        return dict(bf.run(bf.Graph.open(rmat), Hops(), **chosen, **place))

    with pytest.raises(bf.BudgetError) as raised:
        run(1 << 20)
    assert run(raised.value.needed_bytes) == run(1 << 30)


class Slow(Paths):
    """Takes some seconds."""

    def compute(self, vertex, messages):  # type: ignore[no-untyped-def]
        if vertex.superstep == 3 and vertex.id == 1:
            time.sleep(1.5)
        super().compute(vertex, messages)


def run_with_a_kill(graph: bf.Graph, **options: Any) -> tuple[bf.States, list[int]]:
    """Run a program on two workers, one of which is killed."""
    killed: list[int] = []

    def kill_one(phase: str, *_: object) -> None:
        if phase == "superstep 4" and not killed:
            killed.append(workers()[0])
            kill(killed[0])

    no_worker_stays()
    place = {"cluster": "auto", "workers": 2, "progress": kill_one}
    states = bf.run(graph, Slow(5), weighted=True, **place, **options)  # type: ignore[call-overload]
    assert len(states.stats["cluster"]["restarts"]) == 1
    return states, killed


def test_a_run_that_loses_a_worker_begins_again(graph: bf.Graph) -> None:
    states, killed = run_with_a_kill(graph)
    assert killed and dict(states) == dict(bf.run(graph, Slow(5), weighted=True))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"mode": "async"}, 'leave mode="async" or cluster= out'),
        ({"store": "file:{}", "keep": True}, "keep no vertices; leave keep= or cluster= out"),
        ({"trace": [1]}, "has no trace; leave trace= or cluster= out"),
        ({"checkpoint_every": 2, "checkpoint_dir": "{}"}, "leave checkpoint_every= and resume="),
        ({"partitioner": "hash"}, "leave partitioner= or cluster= out"),
        ({"compile": "numba", "store": "bytes", "mode": "async"}, "needs supersteps on a cluster"),
        ({"compile": "numba", "store": "bytes", "partitioner": "hash"}, "leave partitioner="),
    ],
)
def test_options_that_programs_do_not_take_on_a_cluster(
    graph: bf.Graph, tmp_path: Path, options: dict[str, Any], sentence: str
) -> None:
    given = {
        name: value.format(tmp_path / "x") if isinstance(value, str) else value
        for name, value in options.items()
    }
    program = Hops() if "compile" in options else Ranks()
    with pytest.raises(bf.UsageError) as raised:
        bf.run(graph, program, cluster="auto", workers=2, **given)
    assert sentence in str(raised.value)


def test_a_combined_program_and_one_that_cannot_be_sent(graph: bf.Graph) -> None:
    both(graph, Hops())
    program = Hops()
    program.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(bf.UsageError, match="Hops cannot be sent to the workers of a cluster"):
        bf.run(graph, program, cluster="auto", workers=2)
