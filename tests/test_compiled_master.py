"""The master and the worker context of compiled Pregel programs act as in interpreted ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import brimful as bf
from nightly import rows_with_nightly


class Watched(bf.Pregel):
    """Notes what the master sees."""

    def __init__(self, last: int = 12) -> None:
        self.last = last
        self._seen: list[Any] = []

    def note(self, master: bf.Master) -> None:
        """Keep the number of the superstep, and the values of aggregators."""
        values = [master.aggregated(name) for name in self.aggregators]
        self._seen.append((master.superstep, master.vertices, *values))


class Ranks(Watched):
    """PageRank until the change is small; the mass of vertices without edges is shared."""

    aggregators: ClassVar = {
        "dangling": bf.Aggregator("sum", 0.0),
        "change": bf.Aggregator("max", 0.0),
        "calls": bf.Aggregator("sum", 5, persistent=True),
        "greatest": bf.Aggregator("max", -1.0, persistent=True),
    }

    def initial_value(self, vertex: Any) -> Any:
        return 1.0

    def combine(self, left: Any, right: Any) -> Any:
        return left + right

    def master_compute(self, master: bf.Master) -> None:
        self.note(master)
        master.set_aggregated("dangling", master.aggregated("dangling") / master.vertices)
        if master.superstep == 3:
            # Less than vertices have contributed, and than the initial value.
            master.set_aggregated("greatest", -3.0)
            master.set_aggregated("calls", 0)
        if master.superstep > 1 and master.aggregated("change") < 0.01:
            master.halt()

    def compute(self, vertex: Any, messages: Any) -> None:
        vertex.aggregate("calls", 1)
        if vertex.superstep > 0:
            before = vertex.value
            vertex.value = 0.15 + 0.85 * (sum(messages) + vertex.aggregated("dangling"))
            vertex.aggregate("change", abs(vertex.value - before))
            vertex.aggregate("greatest", vertex.value - vertex.aggregated("greatest"))
        if vertex.degree == 0:
            vertex.aggregate("dangling", vertex.value)
        else:
            vertex.send_to_all(vertex.value / vertex.degree)


class Near(Watched):
    """Vertices within a length that the master raises; the messages of the others are lost."""

    aggregators: ClassVar = {
        "bound": bf.Aggregator("min", 9.0),
        "reached": bf.Aggregator("sum", 0, persistent=True),
        "any": bf.Aggregator("or", False),
    }

    def initial_value(self, vertex: Any) -> Any:
        return 0.0 if vertex.id == 3 else math.inf

    def combine(self, left: Any, right: Any) -> Any:
        return min(left, right)

    def master_compute(self, master: bf.Master) -> None:
        self.note(master)
        if master.superstep > 0:
            master.set_aggregated("bound", 2.5 * master.superstep)
        if master.superstep == self.last:
            master.halt()

    def compute(self, vertex: Any, messages: Any) -> None:
        found = min(messages, default=vertex.value)
        if vertex.superstep == 0:
            if found == 0.0:
                for target, weight in vertex.edges:
                    vertex.send(target, found + weight)
        elif found < vertex.value and found < vertex.aggregated("bound"):
            vertex.value = found
            vertex.aggregate("reached", 1)
            vertex.aggregate("any", found > 3.0)
            for target, weight in vertex.edges:
                vertex.send(target, found + weight)
        vertex.vote_to_halt()


class Counted(bf.WorkerContext):
    """Notes the calls of its hooks, and adds to aggregators in each."""

    def pre_application(self) -> None:
        self.calls, self.begun = ["pre_application"], 0
        self.aggregate("ever", 100)

    def pre_superstep(self) -> None:
        self.begun += 1
        self.calls.append(f"pre {self.superstep} {self.aggregated('now')}")
        self.aggregate("now", 10)

    def post_superstep(self) -> None:
        self.calls.append(f"post {self.superstep} {self.aggregated('ever')}")
        self.aggregate("now", self.begun)

    def post_application(self) -> None:
        self.calls.append("post_application")


class Tally(bf.Pregel):
    """Flows along weighted edges, under a context without a master."""

    aggregators: ClassVar = {
        "now": bf.Aggregator("sum", 1),
        "ever": bf.Aggregator("sum", 0, persistent=True),
    }

    def __init__(self) -> None:
        self._contexts: list[Any] = []

    def worker_context(self) -> Any:
        self._contexts.append(Counted())
        return self._contexts[-1]

    def initial_value(self, vertex: Any) -> Any:
        return 1.0

    def combine(self, left: Any, right: Any) -> Any:
        return left + right

    def compute(self, vertex: Any, messages: Any) -> None:
        vertex.aggregate("ever", 1)
        vertex.value += sum(messages) + vertex.aggregated("now")
        if vertex.superstep < 4:
            for target, weight in vertex.edges:
                vertex.send(target, 1.5 * weight)
        vertex.vote_to_halt()


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A random graph with self-loops, parallel edges, sinks and isolated vertices."""
    random = np.random.default_rng(4)
    table = pa.table(
        {
            "source": random.integers(0, 250, 700),
            "target": random.integers(0, 300, 700),
            "weight": random.integers(1, 9, 700) * 0.25,
        }
    )
    path = tmp_path_factory.mktemp("master") / "g.brimful"
    with bf.Graph.from_arrow(table, weight="weight", path=str(path), vertices=310) as graph:
        yield graph


PROGRAMS = rows_with_nightly([(Ranks, False), (Tally, True)], [(Near, True)])


def told(program: Any) -> Any:
    """Return what master or context has noted."""
    return [one.calls for one in program._contexts] if isinstance(program, Tally) else program._seen


def close(found: Any) -> Any:
    """Return what sums in another order may give."""
    if isinstance(found, (list, tuple)):
        return [close(one) for one in found]
    if isinstance(found, dict):
        return {key: close(one) for key, one in found.items()}
    return pytest.approx(found, rel=1e-12) if isinstance(found, float) else found


def listed(found: Any) -> Any:
    """Return tuples as lists."""
    return [listed(one) for one in found] if isinstance(found, (list, tuple)) else found


@pytest.mark.parametrize(("make", "weighted"), PROGRAMS)
def test_master_and_context_see_and_set_what_interpreted_ones_do(
    graph: bf.Graph, make: Callable[[], Any], weighted: bool
) -> None:
    for limit in (None, 1, 4):
        program = make()
        called = bf.run(graph, program, weighted=weighted, max_supersteps=limit)
        is_halted = called.stats["reason"] == "halted by the master"
        assert is_halted == (limit is None and make is not Tally)
        ways: list[dict[str, Any]] = [{"threads": 1}, {"threads": 3}, {"budget": "64M"}]
        ways += [{"store": "memory"}, {"store": "bytes", "lists": "disk"}]
        for way in ways:
            again = make()
            found = bf.run(
                graph, again, weighted=weighted, max_supersteps=limit, compile="numba", **way
            )
            assert found.stats["variant"] == "compiled"
            assert dict(found) == close(dict(called))
            assert found.stats["supersteps"] == called.stats["supersteps"]
            assert found.stats["reason"] == called.stats["reason"]
            assert found.stats["aggregates"] == close(called.stats["aggregates"])
            assert listed(told(again)) == close(told(program))


@pytest.mark.parametrize(("make", "weighted"), PROGRAMS)
@pytest.mark.parametrize("store", [None, "bytes"])
def test_a_resumed_run_has_what_master_and_context_left(
    graph: bf.Graph, make: Callable[[], Any], weighted: bool, store: str | None, tmp_path: Path
) -> None:
    options: Any = {"weighted": weighted, "compile": "numba", "store": store}
    whole = bf.run(graph, make(), **options)
    for last in (2, 4):
        saving = {"checkpoint_dir": str(tmp_path / str(last)), "checkpoint_every": 1}
        bf.run(graph, make(), max_supersteps=last, **options, **saving)
        again = make()
        resumed = bf.run(graph, again, resume=True, **options, **saving)
        assert resumed.stats["resumed_from"] == last - 1
        assert resumed.stats["supersteps"] == whole.stats["supersteps"]
        # Workers of a store add in the order in which messages arrive.
        same = close if store else lambda found: found
        assert resumed.stats["aggregates"] == same(whole.stats["aggregates"])
        assert dict(resumed) == same(dict(whole))
        if not isinstance(again, Tally):
            assert again._seen[0][0] == last


def test_results_have_the_same_bits_at_any_budget_and_number_of_threads(divided: Path) -> None:
    ways: list[dict[str, Any]] = [{"threads": 1}, {"threads": 3}, {"threads": 2, "budget": "64M"}]
    with bf.Graph.open(divided) as graph:
        found = [bf.run(graph, Ranks(), compile="numba", **way) for way in ways]
    assert all(one.to_arrow().equals(found[0].to_arrow()) for one in found)
    assert all(one.stats["aggregates"] == found[0].stats["aggregates"] for one in found)


class Last(Watched):
    """Sends once, along edges that may be none: then no vertex computes again."""

    def initial_value(self, vertex: Any) -> Any:
        return 1.0

    def combine(self, left: Any, right: Any) -> Any:
        return min(left, right)

    def master_compute(self, master: bf.Master) -> None:
        self.note(master)
        assert master.superstep < 3, "no vertex is left to compute"

    def compute(self, vertex: Any, messages: Any) -> None:
        for target, weight in vertex.edges:
            vertex.send(target, vertex.value + weight)
        vertex.vote_to_halt()


class LastSum(Last):
    """The same with sums."""

    def combine(self, left: Any, right: Any) -> Any:
        return left + right


@pytest.mark.parametrize(
    ("weighted", "kind"),
    rows_with_nightly([(False, Last), (True, LastSum)], [(True, Last), (False, LastSum)]),
)
def test_the_master_is_not_asked_for_a_superstep_without_computing_vertices(
    kind: type[Last], weighted: bool
) -> None:
    table = pa.table({"source": [1, 2], "target": [2, 3], "weight": [0.5, -0.5]})
    with bf.Graph.from_arrow(table, weight="weight", vertices=4) as chain:
        program = kind()
        called = bf.run(chain, program, weighted=weighted)
        assert program._seen == [(0, 4), (1, 4), (2, 4)]
        for store in (None, "memory", "bytes"):
            again = kind()
            found = bf.run(chain, again, weighted=weighted, compile="numba", store=store)
            assert again._seen == program._seen
            assert found.stats["supersteps"] == called.stats["supersteps"] == 3
            assert found.stats["reason"] == called.stats["reason"] == "converged: no vertex changed"


class Zeros(LastSum):
    """Sends sums of -0.0, which wake vertices as other sums do."""

    aggregators: ClassVar = {"calls": bf.Aggregator("sum", 0, persistent=True)}

    def compute(self, vertex: Any, messages: Any) -> None:
        vertex.aggregate("calls", 1)
        for target, weight in vertex.edges:
            vertex.send(target, -1.0 * weight)
        vertex.vote_to_halt()


def test_sums_of_negative_zeros_wake_vertices() -> None:
    table = pa.table({"source": [0, 1], "target": [1, 2], "weight": [0.0, 0.0]})
    with bf.Graph.from_arrow(table, weight="weight") as chain:
        for way in ({}, {"compile": "numba"}, {"compile": "numba", "store": "memory"}):
            program = Zeros()
            found = bf.run(chain, program, weighted=True, **way)  # type: ignore[call-overload]
            assert program._seen == [(0, 3, 0), (1, 3, 3), (2, 3, 5)]
            assert found.stats["supersteps"] == 3
            assert found.stats["aggregates"] == {"calls": 6}


def test_an_exception_of_the_master_is_that_of_an_interpreted_run(graph: bf.Graph) -> None:
    class Fails(Ranks):
        def master_compute(self, master: bf.Master) -> None:
            if master.superstep == self.last:
                raise KeyError("lost")

    for last in (0, 2):
        for way in ("never", "numba"):
            for store in (None, "bytes"):
                with pytest.raises(
                    bf.ProgramError,
                    match=f"^master_compute failed at superstep {last}: KeyError: 'lost'$",
                ) as raised:
                    bf.run(graph, Fails(last), compile=way, store=store)  # type: ignore[call-overload]
                assert raised.value.superstep == last
                assert isinstance(raised.value.__cause__, KeyError)


def test_an_exception_of_a_vertex_is_raised_with_what_the_master_set(graph: bf.Graph) -> None:
    class Divides(Ranks):
        def master_compute(self, master: bf.Master) -> None:
            master.set_aggregated("calls", 3 - master.superstep)

        def compute(self, vertex: Any, messages: Any) -> None:
            vertex.value = 1.0 / vertex.aggregated("calls")

    with pytest.raises(bf.ProgramError, match=r"ZeroDivisionError.*; superstep 3, state 1\.0"):
        bf.run(graph, Divides(), compile="numba")


def test_what_compiled_code_cannot_follow_is_refused(graph: bf.Graph) -> None:
    class Switches(Ranks):
        def master_compute(self, master: bf.Master) -> None:
            master.set_compute("compute")

    class Begins(Near):
        def compute(self, vertex: Any, messages: Any) -> None:
            vertex.value = vertex.aggregated("bound")
            vertex.vote_to_halt()

    class Large(Ranks):
        def master_compute(self, master: bf.Master) -> None:
            master.set_aggregated("calls", 0.5)

    class Halts(Ranks):
        def master_compute(self, master: bf.Master) -> None:
            master.halt()

    class Changes(Ranks):
        def master_compute(self, master: bf.Master) -> None:
            self.last += 1

        def compute(self, vertex: Any, messages: Any) -> None:
            vertex.value = self.last

    for program, match in (
        (Switches(), r"master_compute \(.*line \d+\) calls set_compute, and compiled code has one"),
        (
            Begins(),
            r"compute \(.*line \d+\) reads aggregators in superstep 0, .* \"min\" cannot if it has",
        ),
    ):
        with pytest.raises(bf.UsageError, match=match):
            bf.run(graph, program, compile="numba")
        assert bf.run(graph, program, compile="auto", max_supersteps=2).stats["why"]
    for program, match in (
        (Large(), r"aggregator calls is 0\.5 before superstep 0.*an integer of 64 bits"),
        (Halts(), "halts the run before superstep 0"),
        (Changes(), r"self\.last changes before superstep 0"),
    ):
        with pytest.raises(bf.ProgramError, match=match):
            bf.run(graph, program, compile="numba")
    with pytest.raises(bf.UsageError, match=r"master_compute and worker_context need supersteps"):
        bf.run(graph, Near(), weighted=True, compile="numba", mode="async")
    with pytest.raises(bf.UsageError, match=r"compiled code calls in one process only"):
        bf.run(graph, Near(), weighted=True, compile="numba", cluster="auto")
