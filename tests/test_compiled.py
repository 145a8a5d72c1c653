"""Programs compiled by Numba give the answers of interpreted ones, on the disk path."""

from __future__ import annotations

import math
import re
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from networkx import MultiDiGraph, single_source_dijkstra_path_length

import brimful as bf
from brimful.kernels.numba_errors import explained
from brimful.kernels.unassigned import unassigned
from compiled_programs import (
    Distances,
    Flow,
    Greatest,
    Least,
    Ranks,
    Reached,
    Widest,
    random_graph,
)
from nightly import rows_with_nightly

#: An array that a method reads.
TABLE = np.array([1.0, 2.0])


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> bf.Graph:
    return random_graph(tmp_path_factory.mktemp("compiled"))


PROGRAMS = rows_with_nightly(
    [(Ranks(), False), (Distances(7), True), (Least(), False)],
    [(Distances(7), False), (Widest(7), True), (Greatest(), False), (Flow(), True)],
)


@pytest.mark.parametrize(("program", "weighted"), PROGRAMS, ids=lambda it: type(it).__name__)
def test_a_compiled_program_answers_as_an_interpreted_one(
    graph: bf.Graph, program: bf.Program, weighted: bool
) -> None:
    compiled = bf.run(graph, program, on="shards", weighted=weighted)
    interpreted = bf.run(graph, program, on="store", weighted=weighted)
    assert compiled.stats["variant"] == "compiled"
    assert interpreted.stats["variant"] == "interpreted"
    assert dict(bf.run(graph, program, compile="auto", weighted=weighted)) == dict(compiled)
    ours, theirs = dict(compiled), dict(interpreted)
    assert list(ours) == list(theirs)
    if isinstance(program, Ranks):
        assert list(ours.values()) == pytest.approx(list(theirs.values()), abs=1e-7)
    else:
        assert ours == theirs
        assert {type(value) for value in ours.values()} <= {
            type(value) for value in theirs.values()
        }


def test_bits_travel(tmp_path: Path) -> None:
    table = pa.table({"source": [0, 1, 2, 5], "target": [1, 2, 0, 1]})
    with bf.Graph.from_arrow(table, path=str(tmp_path / "g.brimful")) as graph:
        found = dict(bf.run(graph, Reached(), compile="numba"))
        assert found == dict(bf.run(graph, Reached()))
    assert found == {0: 0b100111, 1: 0b100111, 2: 0b100111, 5: 0b100000}


@pytest.mark.parametrize("way", [{"compile": "numba"}, {"compile": "numpy"}, {"store": "bytes"}])
def test_bits_that_all_have_travel(tmp_path: Path, way: dict[str, Any]) -> None:
    class Common(bf.Program):
        """The bits that a vertex has in common with all from which it can be reached."""

        delivery, combiner = "combined", "and"

        def initial_state(self, vertex: Any) -> Any:
            return 0b1111 ^ (1 << vertex.id)

        def signal(self, source: Any, target: Any, weight: float) -> Any:
            return source.state

        def collect(self, vertex: Any, signals: Any) -> Any:
            return vertex.state & signals[0]

    table = pa.table({"source": [0, 1, 2], "target": [1, 2, 3]})
    with bf.Graph.from_arrow(table, path=str(tmp_path / "g.brimful")) as graph:
        assert dict(bf.run(graph, Common(), **way)) == {0: 0b1110, 1: 0b1100, 2: 0b1000, 3: 0}


def test_distances_are_those_of_networkx(graph: bf.Graph) -> None:
    with bf.Graph.open(graph.path) as opened:
        multi: MultiDiGraph = MultiDiGraph()
        edges = opened.to_arrow()
        multi.add_weighted_edges_from(
            zip(*(edges[name].to_pylist() for name in ("source", "target", "weight")), strict=True)
        )
        expected = single_source_dijkstra_path_length(multi, 7)
        found = bf.run(opened, Distances(7), compile="numba", weighted=True)
    assert {v: d for v, d in found.items() if not math.isinf(d)} == pytest.approx(expected)


def test_results_are_the_same_bits_at_any_number_of_threads(divided: Path) -> None:
    options: dict[str, Any] = {"compile": "numba", "max_supersteps": 9}
    with bf.Graph.open(divided) as graph:
        one = bf.run(graph, Ranks(), threads=1, budget="2G", **options)
        for threads in (2, 3):
            other = bf.run(graph, Ranks(), threads=threads, budget="64M", **options)
            assert one.to_arrow().equals(other.to_arrow())


def test_the_asynchronous_mode_finds_the_same_distances(graph: bf.Graph) -> None:
    found = bf.run(graph, Distances(7), compile="numba", mode="async")
    assert dict(found) == dict(bf.run(graph, Distances(7), compile="numba"))
    with pytest.raises(bf.UsageError, match='combiner "sum" needs supersteps'):
        bf.run(graph, Ranks(), compile="numba", mode="async")


def test_a_run_goes_on_from_its_checkpoint(graph: bf.Graph, tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "compile": "numba",
        "checkpoint_every": 2,
        "checkpoint_dir": str(tmp_path / "c"),
    }
    bf.run(graph, Ranks(), max_supersteps=6, **options)
    resumed = bf.run(graph, Ranks(), max_supersteps=20, resume=True, **options)
    assert resumed.stats["resumed_from"] == 6
    whole = bf.run(graph, Ranks(), compile="numba", max_supersteps=20)
    assert resumed.to_arrow().equals(whole.to_arrow())


def test_a_run_that_converges_removes_its_checkpoints(graph: bf.Graph, tmp_path: Path) -> None:
    folder = tmp_path / "c"
    saved: dict[str, Any] = {"checkpoint_every": 1, "checkpoint_dir": str(folder)}
    for store in (None, "bytes"):
        bf.run(graph, Distances(7), compile="numba", store=store, max_supersteps=2, **saved)
        assert folder.exists()
        bf.run(graph, Distances(7), compile="numba", store=store, resume=True, **saved)
        assert not folder.exists()


def test_a_program_that_does_not_end_is_stopped(graph: bf.Graph, tmp_path: Path) -> None:
    class Swings(Ranks):
        def collect(self, vertex: Any, signals: Any) -> Any:
            return -vertex.state

    table = pa.table({"source": [0, 1], "target": [1, 0]})
    with bf.Graph.from_arrow(table, path=str(tmp_path / "g.brimful")) as small:
        swung = bf.run(small, Swings(), compile="numba")
    assert (swung.stats["supersteps"], swung.stats["converged"]) == (10_000, False)


def refused(graph: bf.Graph, program: Any, match: str, **options: Any) -> None:
    """Check that a program is refused before the run."""
    with pytest.raises(bf.UsageError, match=match):
        bf.run(graph, program, compile="numba", **options)


def test_what_cannot_be_compiled_is_refused_with_the_reason(graph: bf.Graph) -> None:
    class NoCombiner(Distances):
        combiner = None  # type: ignore[assignment]

    class Each(Distances):
        delivery = "each"  # type: ignore[assignment]

    class Target(Distances):
        def signal(self, source: Any, target: Any, weight: float) -> Any:
            return source.state + target

    class Squared(Distances):
        def signal(self, source: Any, target: Any, weight: float) -> Any:
            return source.state + weight * weight

    class Swapped(Distances):
        def signal(self, source: Any, target: Any, weight: float) -> Any:
            return min(weight, source.state)

    class Private(Distances):
        def signal(self, source: Any, target: Any, weight: float) -> Any:
            __far = source.state
            return __far + weight

    class Dicts(Distances):
        def initial_state(self, vertex: Any) -> Any:
            return {"distance": 1.0}

    class Words(Distances):
        def initial_state(self, vertex: Any) -> Any:
            return "far"

    class Scores(Distances):
        def collect_score(self, vertex: Any, signals: Any) -> float:
            return 1.0

    class Own(Ranks):
        def initial_state(self, vertex: Any) -> Any:
            return float(vertex.id)

    class Sometimes(Ranks):
        def signal(self, source: Any, target: Any, weight: float) -> Any:
            return source.state if source.state > 1 else None

    class Mask(Distances):
        combiner = "and"  # type: ignore[assignment]

        def initial_state(self, vertex: Any) -> Any:
            return vertex.id * 0.5

        def signal(self, source: Any, target: Any, weight: float) -> Any:
            return source.state

        def collect(self, vertex: Any, signals: Any) -> Any:
            return vertex.state

    class Lambda(Distances):
        signal = lambda self, source, target, weight: source.state + weight  # noqa: E731

    class Static(Distances):
        @staticmethod
        def signal(source: Any, target: Any, weight: float) -> Any:  # type: ignore[override]
            return source.state + weight

    class Default(Distances):
        def signal(self, source: Any, target: Any, weight: float, factor: int = 1) -> Any:
            return source.state + weight

    class Short(Distances):
        def collect(self, vertex: Any) -> Any:  # type: ignore[override]
            return vertex.state

    for program in (Lambda, Static, Default, Short):
        for way in ("numba", "numpy"):
            with pytest.raises(
                bf.UsageError, match=r"is not a plain method|does not take|has the parameters"
            ):
                bf.run(graph, program(1), compile=way)  # type: ignore[call-overload]
    for program in (Lambda, Static, Default):
        found = bf.run(graph, program(1), compile="auto")
        assert found.to_arrow().equals(bf.run(graph, Distances(1), compile="never").to_arrow())
        assert "why" in found.stats
    refused(graph, NoCombiner(1), r"NoCombiner has .* no combine\(\)")
    refused(graph, Each(1), 'needs delivery "combined"')
    refused(graph, Target(1), "reads target")
    refused(graph, Squared(1), "may use weight only in what it returns")
    refused(graph, Swapped(1), "may use weight only in what it returns")
    refused(graph, Private(1), "signal .* uses __far, which Python renames in a class")
    refused(graph, Dicts(1), r"initial_state \(.*test_compiled.py, line \d+\)")
    refused(graph, Words(1), "returns a text in place of a number")
    refused(graph, Scores(1), 'with combiner "min" does not call Scores.collect_score')
    refused(graph, Sometimes(), 'may return None, which combiner "sum" does not allow')
    refused(graph, Mask(1), 'has the combiner "and", and its signals are floats')
    with pytest.raises(bf.UsageError, match="its signals are floats"):
        bf.run(graph, Mask(1), compile="numpy")
    refused(graph, Own(), r"Numba cannot compile initial_state .*'id'")
    refused(
        graph,
        Ranks(),
        "reads vertex.degree, which compiled code does not have in weighted runs",
        weighted=True,
    )
    with pytest.raises(bf.UsageError, match="compile must be auto, numba, numpy or never"):
        bf.run(graph, Ranks(), compile="llvm")  # type: ignore[call-overload]
    with pytest.raises(bf.UsageError, match="on must be shards or store"):
        bf.run(graph, Ranks(), on="disk")  # type: ignore[call-overload]


def test_variables_are_assigned_before_they_are_read() -> None:
    def chosen(far: int) -> int:
        if far > 1:
            near = 5
        elif far < 0:
            raise ValueError
        else:
            near = 1
        while True:
            if near > 3:
                found = near
                break
            near += 1
        return found + sum([one for one in range(3)])

    def sometimes(far: int) -> int:
        if far > 1:
            near = 5
        return near

    def looped(far: int) -> int:
        for at in range(far):
            far += at
        return at

    def continued(far: int) -> int:
        while far > 1:
            if far == 4:
                near = 4
                continue
            far -= near
            near = 2
        return far

    def deleted(far: int) -> int:
        if far:
            del far
        return far

    assert unassigned(chosen.__code__) is None
    for method, name, line in (
        (sometimes, "near", 3),
        (looped, "at", 3),
        (continued, "near", 5),
        (deleted, "far", 3),
    ):
        code = method.__code__
        assert unassigned(code) == (name, code.co_firstlineno + line)


def test_an_error_of_numba_without_a_text_has_its_type() -> None:
    assert explained(NotImplementedError(), explained.__code__)[0] == ": NotImplementedError"


def test_a_refusal_has_method_line_and_reason_in_two_sentences(graph: bf.Graph) -> None:
    class Joins(Distances):
        def collect(self, vertex: Any, signals: Any) -> Any:
            return vertex.state + "far"

    with pytest.raises(bf.UsageError) as raised:
        bf.run(graph, Joins(1), compile="numba")
    assert type(raised.value.__cause__).__module__ == "numba.core.errors"
    line = Joins.collect.__code__.co_firstlineno
    first, second = str(raised.value).split(". ")
    assert first.startswith(f"Numba cannot compile collect ({__file__}, line {line}) at line ")
    assert f"at line {line + 1}: " in first and "signature add(float64, " in first
    assert second == 'Change the method, or pass compile="never".'
    with pytest.raises(bf.UsageError) as raised:
        bf.run(graph, type("Each", (Distances,), {"delivery": "each"})(1), compile="numba")
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_attributes_of_the_program_are_numbers_of_python_and_numpy(graph: bf.Graph) -> None:
    class Helped(Distances):
        def initial_state(self, vertex: Any) -> Any:
            return self.first(vertex.id)

        def first(self, id: int) -> float:
            return 0.0 if id == self.source else np.inf

    class Counting(Distances):
        calls = 0

        def collect(self, vertex: Any, signals: Any) -> Any:
            self.calls += 1
            return min(vertex.state, signals[0])

    class Sometimes(Distances):
        def collect(self, vertex: Any, signals: Any) -> Any:
            return None if signals[0] < 0 else signals[0]

    expected = dict(bf.run(graph, Distances(1)))
    for source in (np.int64(1), np.float64(1), np.bool_(True)):
        assert dict(bf.run(graph, Distances(source), compile="numba")) == expected
    for source in (np.int32(1), "1"):
        refused(graph, Distances(source), r"line \d+: self.source is not an int, .*\. Make it one")
    refused(graph, Helped(1), r"self.first is not an int, .*, or, if it is a method, a function")
    refused(graph, Counting(1), r"the method assigns self.calls, .*\. Keep the value in the state")
    refused(graph, Sometimes(1), "returns float64 or None in place of a number")


def test_options_that_need_calls_exclude_compiled_code(graph: bf.Graph) -> None:
    calls: list[dict[str, Any]] = [{"serializer": "pickle"}, {"trace": [7]}]
    for options in calls:
        given = next(iter(options))
        refused(graph, Distances(7), f"{given}= is for interpreted programs", **options)
        found: Any = bf.run(graph, Distances(7), compile="auto", **options)
        assert found.stats["why"] == f"the run has {given}="
    with pytest.raises(bf.UsageError, match='cache= needs a store; leave it or on="shards" out'):
        bf.run(graph, Distances(7), on="shards", cache="lru:9")  # type: ignore[call-overload]


STORES: list[dict[str, Any]] = [
    {"on": "store"},
    {"store": "bytes", "lists": "disk", "threads": 2},
    {"store": "file:", "cache": "lru:50", "partitioner": "hash"},
    {"store": "rocksdb:"},
]


@pytest.mark.parametrize("place", STORES, ids=lambda it: it.get("store", "memory"))
@pytest.mark.parametrize(("program", "weighted"), PROGRAMS, ids=lambda it: type(it).__name__)
def test_compiled_programs_run_on_stores(
    graph: bf.Graph,
    program: bf.Program,
    weighted: bool,
    place: dict[str, Any],
    tmp_path: Path,
) -> None:
    store = place.get("store", "memory")
    on_store = {**place, "store": store + str(tmp_path)} if store.endswith(":") else place
    found = bf.run(graph, program, compile="auto", weighted=weighted, **on_store)
    shards = bf.run(graph, program, on="shards", weighted=weighted)
    assert found.stats["variant"] == "compiled"
    assert found.stats["store"] == on_store.get("store", "memory")
    assert found.stats["supersteps"] == shards.stats["supersteps"]
    if program.combiner == "sum":
        assert list(found.values()) == pytest.approx(list(shards.values()), abs=1e-9)
    else:
        assert dict(found) == dict(shards)


def test_stores_need_no_supersteps_for_compiled_programs(graph: bf.Graph) -> None:
    on_shards = dict(bf.run(graph, Distances(7), compile="numba", weighted=True))
    for scheduler in ("latency", "throughput"):
        options: dict[str, Any] = {"mode": "async", "scheduler": scheduler, "store": "bytes"}
        found = bf.run(graph, Distances(7), compile="numba", weighted=True, **options)
        assert dict(found) == on_shards, scheduler


@pytest.mark.parametrize("program", [Ranks(), Distances(7)], ids=lambda it: type(it).__name__)
def test_a_compiled_run_on_a_store_goes_on_from_its_checkpoint(
    graph: bf.Graph, tmp_path: Path, program: bf.Program
) -> None:
    options: dict[str, Any] = {"compile": "numba", "store": f"file:{tmp_path}"}
    saving = {"checkpoint_every": 2, "checkpoint_dir": str(tmp_path / "c")}
    bf.run(graph, program, max_supersteps=4, **saving, **options)
    resumed = bf.run(graph, program, max_supersteps=20, resume=True, **saving, **options)
    assert resumed.stats["resumed_from"] == 4
    whole = bf.run(graph, program, max_supersteps=20, **options)
    # Threads add the signals of a store in any order.
    assert dict(resumed) == pytest.approx(dict(whole), rel=1e-12)


def test_an_exception_of_compiled_code_on_a_store_ends_the_run(graph: bf.Graph) -> None:
    class Divides(Distances):
        def collect(self, vertex: Any, signals: Any) -> Any:
            return 1 // int(vertex.state - vertex.state)

    with pytest.raises(bf.ProgramError, match=r"failed to collect at vertex .* superstep"):
        bf.run(graph, Divides(7), compile="numba", store="bytes")


def test_what_cannot_be_compiled_is_interpreted_with_the_reason(
    graph: bf.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Plain(bf.Program):
        def initial_state(self, vertex: Any) -> Any:
            return 1

        def signal(self, source: Any, target: Any, weight: float) -> Any:
            return None

        def collect(self, vertex: Any, signals: Any) -> Any:
            return vertex.state

    class Computes(bf.Pregel):
        def initial_value(self, vertex: Any) -> Any:
            return 1

        def compute(self, vertex: Any, messages: Any) -> None:
            vertex.vote_to_halt()

    for program, why in (
        (Plain(), "Plain has no combiner"),
        (Computes(), "Computes has no combine()"),
    ):
        found = bf.run(graph, program, compile="auto")
        assert found.stats["variant"] == "interpreted" and why in found.stats["why"]
        assert why in repr(found)
        assert bf.run(graph, program, compile="auto", on="store").stats["why"] == found.stats["why"]
        with pytest.raises(bf.UsageError, match=f"{re.escape(why)}.*, or pass on="):
            bf.run(graph, program, compile="auto", on="shards")
    monkeypatch.setitem(sys.modules, "numba", None)
    found = bf.run(graph, Distances(7), compile="auto")
    assert found.stats["why"] == "Numba is not installed"
    assert bf.run(graph, Distances(7)).stats["why"] == 'the run has no compile="auto"'


def test_without_numba_the_error_has_the_command(
    graph: bf.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    refused(graph, Ranks(), r'Numba is not installed. .*pip install "brimful\[numba\]"')


def test_names_are_no_numbers(tmp_path: Path) -> None:
    table = pa.table({"source": ["a"], "target": ["b"]})
    with bf.Graph.from_arrow(table, path=str(tmp_path / "g.brimful")) as graph:
        refused(graph, Least(), "because ids are strings")


@pytest.mark.parametrize("store", [None, "memory", "bytes"])
def test_an_exception_in_compiled_code_is_that_of_the_method(
    graph: bf.Graph, store: str | None
) -> None:
    class Divides(Distances):
        def collect(self, vertex: Any, signals: Any) -> Any:
            far = signals[0] > 1.5
            return vertex.state // 0 if far else min(vertex.state, signals[0])

    class First(Distances):
        def initial_state(self, vertex: Any) -> Any:
            return 1 // (vertex.id - self.source) + 0.5

    class Fits(Distances):
        state_type = np.dtype([("length", "f8"), ("calls", "i1")])

        def initial_state(self, vertex: Any) -> Any:
            return (0.0 if vertex.id == self.source else math.inf), 127

        def signal(self, source: Any, target: Any, weight: float) -> Any:
            return source.state.length + weight

        def collect(self, vertex: Any, signals: Any) -> Any:
            return min(vertex.state.length, signals[0]), vertex.state.calls + 1

    class Signals(Distances):
        def signal(self, source: Any, target: Any, weight: float) -> Any:
            return 1 // (source.state - source.state) + weight

    class Looks(Distances):
        def collect(self, vertex: Any, signals: Any) -> Any:
            return TABLE[int(signals[0]) * self.source // 7 * 10**9]

    known = dict(bf.run(graph, Distances(7)))
    for program, kind, text in (
        (Divides(7), ZeroDivisionError, "failed to collect at vertex"),
        (First(7), ZeroDivisionError, "failed to make the first state at vertex 7: "),
        (Fits(7), OverflowError, "the field calls holds -128 to 127, not 128"),
        (Signals(7), ZeroDivisionError, "failed to signal at vertex"),
        (Looks(7), IndexError, "failed to collect at vertex .* IndexError: index 1000000000 is"),
    ):
        with pytest.raises(bf.ProgramError, match=text) as raised:
            bf.run(graph, program, compile="numba", store=store)
        error = raised.value
        assert type(error.__cause__) is kind
        assert error.vertex in known
        if not isinstance(program, First):
            assert error.superstep is not None and error.state is not None
        if not isinstance(program, Fits):
            *_, frame = traceback.extract_tb(error.__cause__.__traceback__)
            assert frame.filename == __file__ and "//" in str(frame.line)
