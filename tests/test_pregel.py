"""Pregel: messages to any vertex, votes, aggregators, the master, combiners, on every store."""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pytest

import brimful as bf
from brimful.pregel.aggregators import Aggregated

#: Giraph's example of shortest paths, and of PageRank with an undeclared vertex.
PATHS = ([1, 1, 2, 2, 3], [2, 3, 3, 4, 4], [1.0, 3.0, 1.0, 10.0, 2.0])
LINKS = ([1, 1, 1, 2, 4, 4, 5, 5], [4, 2, 3, 1, 3, 2, 2, 4])
STORES = ["memory", "bytes", "file"]


def graph_of(
    sources: list[Any], targets: list[Any], weights: list[float] | None = None
) -> bf.Graph:
    columns = {"source": sources, "target": targets}
    if weights is None:
        return bf.Graph.from_arrow(pa.table(columns))
    return bf.Graph.from_arrow(pa.table({**columns, "weight": weights}), weight="weight")


def url(store: str, folder: Path) -> str:
    return f"file:{folder / 'vertices'}" if store == "file" else store


class Distances(bf.Pregel):
    """Giraph's SimpleShortestPaths."""

    def __init__(self, source: int | str) -> None:
        self.source = source

    def initial_value(self, vertex: bf.Vertex) -> Any:
        return None

    def compute(self, vertex: bf.PregelVertex, messages: list[float]) -> None:
        if vertex.superstep == 0 and vertex.id == self.source:
            messages = [0.0]
        found = min(messages, default=math.inf)
        if found < (math.inf if vertex.value is None else vertex.value):
            vertex.value = found
            for target, weight in vertex.edges:
                vertex.send(target, found + weight)
        vertex.vote_to_halt()


class Combined(Distances):
    """The same with a combiner."""

    def combine(self, left: float, right: float) -> float:
        return min(left, right)

    def compute(self, vertex: bf.PregelVertex, messages: list[float]) -> None:
        assert len(messages) <= 1
        super().compute(vertex, messages)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("kind", [Distances, Combined])
def test_giraphs_shortest_paths(tmp_path: Path, store: str, kind: type[Distances]) -> None:
    with graph_of(*PATHS) as graph:
        found = bf.run(graph, kind(1), weighted=True, store=url(store, tmp_path))
        assert dict(found) == {1: 0.0, 2: 1.0, 3: 2.0, 4: 4.0}
        assert found.to_arrow()["state"].to_pylist() == [0.0, 1.0, 2.0, 4.0]
        assert found.top(1) == [(4, 4.0)]
    drawn = random.Random(5)
    arcs = [(str(drawn.randrange(80)), str(drawn.randrange(80))) for _ in range(400)]
    sources, targets = map(list, zip(*arcs, strict=True))
    weights = [float(drawn.randrange(1, 9)) for _ in arcs]
    with graph_of(sources, targets, weights) as graph:
        wanted = bf.sssp(graph, sources[0], weighted=True)
        given: dict[str, Any] = {"cache": "lru:10", "lists": "disk", "budget": "64M"}
        found = bf.run(graph, kind(sources[0]), weighted=True, store=url(store, tmp_path), **given)
        assert list(found.items()) == list(wanted.items())


class Ranks(bf.Pregel):
    """PageRank, normalized, with the mass of vertices without edges by an aggregator."""

    aggregators: ClassVar = {
        "dangling": bf.Aggregator("sum", 0.0),
        "seen": bf.Aggregator("max", -1, True),
    }

    def __init__(self, supersteps: int) -> None:
        self.supersteps = supersteps

    def initial_value(self, vertex: bf.Vertex) -> float:
        return 0.0

    def master_compute(self, master: bf.Master) -> None:
        if master.superstep > self.supersteps:
            master.halt()
        elif master.superstep > 0:
            assert master.aggregated("seen") == master.superstep - 1
            master.set_aggregated("dangling", master.aggregated("dangling") / master.vertices)

    def compute(self, vertex: bf.PregelVertex, messages: list[float]) -> None:
        if vertex.superstep == 0:
            vertex.value = 0.2
        else:
            vertex.value = 0.15 / 5 + 0.85 * (sum(messages) + vertex.aggregated("dangling"))
        if vertex.degree == 0:
            vertex.aggregate("dangling", vertex.value)
        else:
            vertex.send_to_all(vertex.value / vertex.degree)
        vertex.aggregate("seen", vertex.superstep)


@pytest.mark.parametrize("store", STORES)
def test_giraphs_pagerank_with_an_aggregator_and_a_master(tmp_path: Path, store: str) -> None:
    with graph_of(*LINKS) as graph:
        found = bf.run(graph, Ranks(50), store=url(store, tmp_path))
        wanted = [0.281591, 0.251465, 0.222630, 0.176468, 0.067847]
        assert list(found.values()) == pytest.approx(wanted, abs=2e-6)
        built_in = bf.pagerank(graph, tolerance=0, max_supersteps=50)
        assert list(found.values()) == pytest.approx(list(built_in.values()), rel=1e-12)
        assert found.stats["supersteps"] == 51
        assert found.stats["reason"] == "halted by the master"


class Ring(bf.Pregel):
    """Counts the supersteps in which a message came."""

    def __init__(self, supersteps: int) -> None:
        self.supersteps = supersteps

    def initial_value(self, vertex: bf.Vertex) -> int:
        return 0

    def compute(self, vertex: bf.PregelVertex, messages: list[int]) -> None:
        vertex.value += sum(messages)
        if vertex.superstep < self.supersteps:
            vertex.send_to_all(1)
        vertex.vote_to_halt()


def test_every_vertex_of_a_ring_signals_for_2000_supersteps() -> None:
    with graph_of(list(range(8)), [*range(1, 8), 0]) as graph:
        found = bf.run(graph, Ring(2000))
        assert set(found.values()) == {2000}
        assert found.stats["signals"] == 8 * 2000


class Awake(bf.Pregel):
    """Computes without messages until it halts; a message from far away wakes it."""

    def initial_value(self, vertex: bf.Vertex) -> list[int]:
        return []

    def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
        vertex.value = [*vertex.value, vertex.superstep]
        if vertex.id == 1 and vertex.superstep == 3:
            # There is no edge to it.
            vertex.send(9, "wake up")
        if vertex.superstep >= 2 and not messages:
            vertex.vote_to_halt()
        if messages:
            assert messages == ["wake up"]
        if vertex.superstep == 2 and vertex.id == 1:
            vertex._halted = False


@pytest.mark.parametrize("store", STORES)
def test_votes_and_messages_to_any_vertex(tmp_path: Path, store: str) -> None:
    with graph_of([1, 8], [2, 9]) as graph:
        found = bf.run(graph, Awake(), store=url(store, tmp_path))
        assert found[2] == found[8] == [0, 1, 2]
        assert found[1] == [0, 1, 2, 3]
        # Superstep 4 has a message, so that it votes in the next one.
        assert found[9] == [0, 1, 2, 4, 5]


def test_mistakes_are_named() -> None:
    class Lost(Ring):
        def compute(self, vertex: bf.PregelVertex, messages: list[int]) -> None:
            vertex.send(77, 1)

    class Masterless(Ring):
        def master_compute(self, master: bf.Master) -> None:
            if master.superstep == 1:
                raise ValueError("no more")

    class Unknown(Ring):
        aggregators: ClassVar = {"total": bf.Aggregator("sum", 0)}

        def compute(self, vertex: bf.PregelVertex, messages: list[int]) -> None:
            vertex.aggregate("totl", 1)

    class Fields(Ring):
        state_type = [("count", "i8")]  # noqa: RUF012

    with graph_of([1], [2]) as graph:
        sends = r"failed to send messages at vertex \d: .*the graph has no vertex 77.*superstep 0"
        with pytest.raises(bf.ProgramError, match=sends) as raised:
            bf.run(graph, Lost(1))
        assert raised.value.superstep == 0
        assert raised.value.vertex in (1, 2) and raised.value.state == 0
        with pytest.raises(bf.ProgramError, match="at superstep 1: ValueError: no more"):
            bf.run(graph, Masterless(5))
        misspelled = r"failed to compute at vertex .*no aggregator 'totl'.*did you mean 'total'"
        with pytest.raises(bf.ProgramError, match=misspelled):
            bf.run(graph, Unknown(1))
        for options in ({}, {"compile": "numba"}, {"on": "shards"}):
            with pytest.raises(
                bf.UsageError, match=r"Fields has state_type, which applies to a bf\.Program only"
            ):
                bf.run(graph, Fields(1), **options)
        with pytest.raises(bf.UsageError, match=r"derived from brimful\.Program or brimful.Pregel"):
            bf.run(graph, Ring)  # type: ignore[arg-type]
    with pytest.raises(bf.UsageError, match="there is no aggregator 'mean'; use sum, min"):
        bf.Aggregator("mean", 0)  # type: ignore[arg-type]


class Tallied(bf.WorkerContext):
    """Counts the calls of each superstep, and of the run."""

    def pre_application(self) -> None:
        self.all, self.begun = 0, 1

    def pre_superstep(self) -> None:
        # The order of vertices within a superstep may be another after a checkpoint.
        self.calls, self.before = 0, self.all

    def post_superstep(self) -> None:
        self.aggregate("calls", self.calls)


class Tally(bf.Pregel):
    """All contents of a checkpoint besides vertices affect the values that vertices compute."""

    aggregators: ClassVar = {
        "calls": bf.Aggregator("sum", 0),
        "ever": bf.Aggregator("sum", 0, persistent=True),
        "told": bf.Aggregator("max", 0, persistent=True),
    }

    def worker_context(self) -> bf.WorkerContext:
        return Tallied()

    def initial_value(self, vertex: bf.Vertex) -> list[int]:
        return []

    def master_compute(self, master: bf.Master) -> None:
        if master.superstep == 2:
            master.set_compute("counted")
            master.set_combine("least")
            master.set_aggregated("told", 7)
        if master.superstep == 9:
            master.halt()

    def combine(self, left: int, right: int) -> int:
        return max(left, right)

    def least(self, left: int, right: int) -> int:
        return min(left, right)

    def compute(self, vertex: bf.PregelVertex, messages: list[int]) -> None:
        vertex.send_to_all(vertex.id)
        self.counted(vertex, messages)

    def counted(self, vertex: bf.PregelVertex, messages: list[int]) -> None:
        context: Any = vertex.context
        context.calls += 1
        context.all += 1
        vertex.aggregate("ever", 1)
        seen = [vertex.aggregated(name) for name in ("calls", "ever", "told")]
        vertex.value = [*vertex.value, *seen, context.before, context.begun, *messages]
        if vertex.superstep >= 2:
            vertex.send_to_all(vertex.id + vertex.superstep)


@pytest.mark.parametrize("last", [1, 2, 3, 8])
@pytest.mark.parametrize("store", STORES)
def test_a_checkpoint_holds_aggregators_master_and_context(
    tmp_path: Path, store: str, last: int
) -> None:
    with graph_of([1, 2, 3, 3, 4], [3, 3, 4, 1, 2]) as graph:
        whole = dict(bf.run(graph, Tally()))
        given: dict[str, Any] = {
            "store": url(store, tmp_path),
            "checkpoint_dir": tmp_path / "checkpoints",
            "checkpoint_every": 1,
        }
        stopped = bf.run(graph, Tally(), max_supersteps=last, **given)
        assert len(stopped[1]) < len(whole[1])
        rest = bf.run(graph, Tally(), resume=True, **given)
        assert (rest.stats["resumed_from"], dict(rest)) == (last, whole)
        # The master ended the run, so the checkpoints are of no use.
        assert not (tmp_path / "checkpoints").exists()


class Reported(bf.WorkerContext):
    """Fails at the end of the run as long as the flag is set."""

    fails = True

    def post_application(self) -> None:
        if self.fails:
            raise OSError("no report can be written")


def test_a_failure_after_the_last_superstep_keeps_the_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Reporting(Distances):
        def worker_context(self) -> bf.WorkerContext:
            return Reported()

    given: dict[str, Any] = {
        "weighted": True,
        "checkpoint_dir": tmp_path / "c",
        "checkpoint_every": 1,
    }
    with graph_of(list(range(6)), list(range(1, 7)), [1.0] * 6) as graph:
        with pytest.raises(bf.ProgramError, match="no report can be written"):
            bf.run(graph, Reporting(0), **given)
        monkeypatch.setattr(Reported, "fails", False)
        found = bf.run(graph, Reporting(0), resume=True, **given)
        assert found.stats["resumed_from"] > 0
        assert dict(found) == {vertex: float(vertex) for vertex in range(7)}
    assert not (tmp_path / "c").exists()


def test_what_a_serializer_cannot_write_is_refused_before_the_run(tmp_path: Path) -> None:
    class Pairs(Tally):
        aggregators: ClassVar = {**Tally.aggregators, "pair": bf.Aggregator(max, (0, 0))}

    given: dict[str, Any] = {"checkpoint_dir": tmp_path / "c", "checkpoint_every": 1}
    with graph_of([1], [2]) as graph:
        with pytest.raises(bf.UsageError, match=r"cannot be in a checkpoint.*JSON does not keep"):
            bf.run(graph, Pairs(), **given)
        assert dict(bf.run(graph, Pairs(), serializer="pickle", **given))


def test_an_aggregate_that_the_serializer_cannot_write_ends_the_run(tmp_path: Path) -> None:
    class Sets(Tally):
        aggregators: ClassVar = {**Tally.aggregators, "set": bf.Aggregator(lambda _, new: new, 0)}

        def compute(self, vertex: bf.PregelVertex, messages: list[int]) -> None:
            super().compute(vertex, messages)
            vertex.aggregate("set", {vertex.id})

    with graph_of([1], [2]) as graph, pytest.raises(bf.UsageError) as raised:
        bf.run(graph, Sets(), checkpoint_dir=tmp_path / "c", checkpoint_every=1)
    assert "aggregators and worker context cannot be in a checkpoint: the serializer" in str(
        raised.value
    )


@pytest.mark.parametrize(
    ("value", "message", "says"),
    [
        ({1, 2}, 1, "json cannot write set"),
        ({"a": [{1, 2}]}, 1, "json cannot write set"),
        ({(1, 2): 3}, 1, "json cannot write dict"),
        ((1, "\ud800"), 1, r"JSON does not keep \(1, '"),
        (1, {1, 2}, "json cannot write set"),
        (1, {1: 2}, "JSON does not keep {1: 2}"),
    ],
)
def test_what_a_store_cannot_keep_is_named(
    tmp_path: Path, value: Any, message: Any, says: str
) -> None:
    class Keeps(bf.Pregel):
        def initial_value(self, vertex: bf.Vertex) -> Any:
            return value

        def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
            vertex.send_to_all(message)

    with graph_of([1], [2]) as graph:
        for serializer in ("str", "bytes"):
            with pytest.raises(bf.UsageError, match='use "json" or "pickle"'):
                bf.run(graph, Keeps(), serializer=serializer, max_supersteps=2)
        with pytest.raises(bf.ProgramError, match=says):
            bf.run(graph, Keeps(), store=f"file:{tmp_path / 's'}", max_supersteps=2)


class Least(bf.Pregel):
    """The least id from which a vertex can be reached, and the calls for the vertex."""

    def __init__(self, *, counts_calls: bool) -> None:
        self.counts_calls = counts_calls

    def initial_value(self, vertex: bf.Vertex) -> Any:
        return [math.inf, 0]

    def compute(self, vertex: bf.PregelVertex, messages: list[int]) -> None:
        least, calls = vertex.value
        assert calls > 0 or not messages
        assert vertex.superstep == calls or not self.counts_calls
        found = min([least, *messages]) if calls else vertex.id
        if found < least:
            vertex.send_to_all(found)
        vertex.value = [min(least, found), calls + 1]
        vertex.vote_to_halt()


class LeastOfAll(Least):
    """The same with a combiner."""

    def combine(self, left: int, right: int) -> int:
        return min(left, right)


@pytest.mark.parametrize("scheduler", ["latency", "throughput"])
@pytest.mark.parametrize("kind", [Least, LeastOfAll])
@pytest.mark.parametrize("store", STORES)
def test_without_supersteps(
    tmp_path: Path, store: str, kind: type[Least], scheduler: Literal["latency", "throughput"]
) -> None:
    draw = random.Random(7)
    ends = [[draw.randrange(300) for _ in range(700)] for _ in range(2)]
    with graph_of(*ends) as graph:
        expected = bf.run(graph, kind(counts_calls=False))
        program, where = kind(counts_calls=True), url(store, tmp_path)
        found = bf.run(graph, program, mode="async", store=where, scheduler=scheduler)
        assert all(found[vertex][0] == least for vertex, (least, _) in expected.items())
        assert len(found) == len(expected)
        assert found.stats["mode"] == "async"


def test_only_supersteps_have_aggregators_and_masters() -> None:
    class WithContext(Ring):
        def worker_context(self) -> bf.WorkerContext:
            return bf.WorkerContext()

    class WithMaster(Ring):
        def master_compute(self, master: bf.Master) -> None:
            master.halt()

    class WithAggregator(Ring):
        aggregators: ClassVar = {"total": bf.Aggregator("sum", 0)}

    with graph_of([1], [2]) as graph:
        for kind in (WithContext, WithMaster, WithAggregator):
            with pytest.raises(bf.UsageError, match="need supersteps; leave out mode='async'"):
                bf.run(graph, kind(1), mode="async")


def test_without_supersteps_a_program_without_end_ends(caplog: pytest.LogCaptureFixture) -> None:
    class Awake(bf.Pregel):
        def initial_value(self, vertex: bf.Vertex) -> int:
            return 0

        def compute(self, vertex: bf.PregelVertex, messages: list[int]) -> None:
            vertex.value += 1

    with graph_of([1], [2]) as graph:
        bf.run(graph, Awake(), mode="async")
    assert "the program was stopped after its vertices had collected 10,000 times" in caplog.text


def test_contributions_are_merged_in_the_order_of_processes() -> None:
    names = {"list": bf.Aggregator("sum", ["initial"]), "kept": bf.Aggregator("sum", 0, True)}
    parts = [Aggregated(names, is_divided=True) for _ in range(2)]
    for number, part in enumerate(parts):
        part.add("list", [number])
        part.add("list", [number + 10])
        part.add("kept", 1)
    contributions = [part.contribution() for part in parts]
    for part in parts:
        part.merge(contributions)
        part.end_superstep()
        assert part.last("list") == ["initial", 0, 10, 1, 11] and part.last("kept") == 2
        assert part.contribution() == {}


class Letters(bf.Pregel):
    """Sums of the lengths of long messages of three supersteps, and the last text received."""

    def initial_value(self, vertex: Any) -> Any:
        return [0, ""]

    def compute(self, vertex: bf.PregelVertex, messages: list[str]) -> None:
        length, last = vertex.value
        texts = sorted(messages)
        vertex.value = [length + sum(map(len, texts)), texts[-1][:8] if texts else last]
        if vertex.superstep < 3:
            vertex.send_to_all(f"{vertex.id * 7919 % 1000:03} {vertex.superstep} " + 2000 * "x")
        else:
            vertex.vote_to_halt()


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> bf.Graph:
    random = np.random.default_rng(8)
    source, target = random.integers(0, 3000, (2, 9000))
    path = str(tmp_path_factory.mktemp("letters") / "g.brimful")
    return bf.Graph.from_arrow(pa.table({"source": source, "target": target}), path=path)


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("store", ["bytes", "file"])
def test_messages_that_spill_arrive_as_others(
    letters: bf.Graph, tmp_path: Path, store: str, mode: Any
) -> None:
    options: dict[str, Any] = {"store": url(store, tmp_path), "mode": mode}
    large = bf.run(letters, Letters(), budget="1G", **options)
    small = bf.run(letters, Letters(), budget="24M", **options)
    assert large.stats["store_figures"]["spills"] == 0 < small.stats["store_figures"]["spills"]
    assert small.stats["signals"] > 3 * 8000
    if mode == "sync":
        assert dict(small) == dict(large) == dict(bf.run(letters, Letters()))
    else:
        assert sum(length for length, _ in small.values()) == small.stats["signals"] * 2006


@pytest.mark.parametrize("options", [{}, {"lists": "disk"}, {"mode": "async"}])
def test_the_budget_that_is_named_for_growing_records_works(
    letters: bf.Graph, options: dict[str, Any]
) -> None:
    with pytest.raises(bf.BudgetError, match=r"records of vertices .* by estimate") as refused:
        bf.run(letters, Letters(), store="bytes", budget="7M", **options)
    needed = refused.value.needed_bytes
    assert needed < 60 << 20
    assert len(bf.run(letters, Letters(), store="bytes", budget=needed, **options)) == len(letters)


@pytest.mark.parametrize("persistent", [False, True])
def test_functions_of_aggregators_may_change_their_left_value(persistent: bool) -> None:
    def counted(left: Counter[int], right: dict[int, int]) -> Counter[int]:
        left.update(right)
        return left

    class Histogram(bf.Pregel):
        aggregators: ClassVar = {"degrees": bf.Aggregator(counted, Counter(), persistent)}

        def initial_value(self, vertex: bf.Vertex) -> Any:
            return []

        def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
            vertex.value = [*vertex.value, dict(vertex.aggregated("degrees"))]
            vertex.aggregate("degrees", {vertex.degree: 1})
            if vertex.superstep == 2:
                vertex.vote_to_halt()

    once, twice = {0: 1, 1: 2}, {0: 2, 1: 4}
    with graph_of([1, 2], [2, 3]) as graph:
        for _ in range(2):
            seen = bf.run(graph, Histogram())
            expected = [{}, once, twice if persistent else once]
            assert dict(seen) == dict.fromkeys([1, 2, 3], expected)
            total = {0: 3, 1: 6} if persistent else once
            assert seen.stats["aggregates"] == {"degrees": total}


@pytest.mark.parametrize("store", STORES)
def test_a_run_whose_master_fails_keeps_its_checkpoints(tmp_path: Path, store: str) -> None:
    class Fails(Ranks):
        _has_ink = False

        def master_compute(self, master: bf.Master) -> None:
            if master.superstep == 4 and not self._has_ink:
                raise ValueError("no ink")
            super().master_compute(master)

    saving: dict[str, Any] = {"checkpoint_every": 1, "checkpoint_dir": tmp_path / "saved"}
    with graph_of(*LINKS) as graph:
        program = Fails(9)
        with pytest.raises(bf.ProgramError, match=r"master_compute failed at superstep 4.*no ink"):
            bf.run(graph, program, store=url(store, tmp_path), **saving)
        program._has_ink = True
        found = bf.run(graph, program, resume=True, **saving)
        assert found.stats["resumed_from"] in (3, 4)
        assert dict(found) == dict(bf.run(graph, Ranks(9)))
    assert not (tmp_path / "saved").exists()
