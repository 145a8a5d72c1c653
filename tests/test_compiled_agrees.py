"""Compiled and interpreted programs agree on supersteps, aggregates, changes, and failures."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import brimful as bf
from nightly import rows_with_nightly, with_nightly

COUNTED: dict[str, Any] = {"calls": bf.Aggregator("sum", 0), "most": bf.Aggregator("max", -1.0)}


class Sums(bf.Pregel):
    """The base of programs that add messages."""

    def initial_value(self, vertex: Any) -> Any:
        return 0.0

    def combine(self, left: Any, right: Any) -> Any:
        return left + right

    def compute(self, vertex: Any, messages: Any) -> None:
        vertex.vote_to_halt()


class Sends(Sums):
    """Sends along edges for some supersteps, and halts in each."""

    aggregators: ClassVar = COUNTED

    def compute(self, vertex: Any, messages: Any) -> None:
        vertex.aggregate("calls", 1)
        vertex.aggregate("most", vertex.value)
        vertex.value += sum(messages)
        if vertex.superstep < 4:
            for target, weight in vertex.edges:
                vertex.send(target, (vertex.value + 1.0) * weight)
        vertex.vote_to_halt()


class SendsToAll(Sends):
    """The same by one call."""

    def compute(self, vertex: Any, messages: Any) -> None:
        vertex.aggregate("calls", 1)
        vertex.aggregate("most", vertex.value)
        vertex.value += sum(messages)
        if vertex.superstep < 4:
            vertex.send_to_all(vertex.value + 1.0)
        vertex.vote_to_halt()


class Stays(Sends):
    """Stays awake for some supersteps, and sends before that."""

    def compute(self, vertex: Any, messages: Any) -> None:
        vertex.aggregate("calls", 1)
        vertex.value += sum(messages)
        if vertex.superstep < 2:
            for target, weight in vertex.edges:
                vertex.send(target, 1.0 * weight)
        if vertex.superstep > 2:
            vertex.vote_to_halt()


class Least(bf.Pregel):
    """The least id from which a vertex can be reached."""

    aggregators: ClassVar = {"changes": bf.Aggregator("sum", 0)}

    def initial_value(self, vertex: Any) -> Any:
        return vertex.id

    def combine(self, left: Any, right: Any) -> Any:
        return min(left, right)

    def compute(self, vertex: Any, messages: Any) -> None:
        if vertex.superstep == 0:
            vertex.send_to_all(vertex.value)
        elif min(messages) < vertex.value:
            vertex.value = min(messages)
            vertex.aggregate("changes", 1)
            vertex.send_to_all(vertex.value)
        vertex.vote_to_halt()


class Reciprocal(Least):
    """Sends what vertices without edges cannot compute."""

    aggregators: ClassVar = {}

    def initial_value(self, vertex: Any) -> Any:
        return 1.0 if vertex.id in (1, 2, 3) else 0.0

    def compute(self, vertex: Any, messages: Any) -> None:
        if vertex.superstep < 2:
            for target, _ in vertex.edges:
                vertex.send(target, 1 / vertex.value)
        vertex.value = min([vertex.value, *messages]) - 1.0 * vertex.superstep
        vertex.vote_to_halt()


class ReciprocalSum(Sums):
    """The same in a sum, which counts its degree."""

    def initial_value(self, vertex: Any) -> Any:
        return float(vertex.degree)

    def compute(self, vertex: Any, messages: Any) -> None:
        if vertex.superstep < 2:
            for target, _ in vertex.edges:
                vertex.send(target, 1 / vertex.value)
        vertex.vote_to_halt()


class ReciprocalFlow(ReciprocalSum):
    """The same with weights, where the degree is unknown."""

    def initial_value(self, vertex: Any) -> Any:
        return 0.0

    def compute(self, vertex: Any, messages: Any) -> None:
        vertex.value += sum(messages)
        if vertex.superstep < 4:
            for target, weight in vertex.edges:
                vertex.send(target, 1 / (1.0 - vertex.value) * weight)
        vertex.vote_to_halt()


#: Code for weighted edges is compiled for itself, which takes seconds.
WEIGHTED = [False, pytest.param(True, marks=pytest.mark.nightly)]

#: Paths that end, a circle, and vertices without edges.
GRAPHS: dict[str, tuple[list[int], list[int]]] = {
    "path": ([1, 2, 3], [2, 3, 4]),
    "star": ([1, 1, 1], [2, 3, 4]),
    "circle": ([1, 2, 3], [2, 3, 1]),
    "both": ([1, 2, 3, 3], [2, 3, 1, 4]),
}
PLACES: list[dict[str, Any]] = [{}, {"store": "bytes"}, {"threads": 1, "budget": "64M"}]


def graph_of(shape: str, vertices: int | None = None) -> bf.Graph:
    source, target = GRAPHS[shape]
    arcs = pa.table({"source": source, "target": target, "weight": [1.0] * len(source)})
    if vertices is None:
        return bf.Graph.from_arrow(arcs, weight="weight")
    return bf.Graph.from_arrow(arcs, weight="weight", vertices=vertices)


def check(graph: bf.Graph, program: Any, **options: Any) -> bf.Result:
    """Check that both ways give one answer, on shards and in a store."""
    called = bf.run(graph, program, compile="never", **options)
    for place in PLACES:
        compiled = bf.run(graph, program, compile="numba", **place, **options)
        assert dict(compiled) == pytest.approx(dict(called), nan_ok=True)
        for name in ("supersteps", "aggregates"):
            assert compiled.stats.get(name) == called.stats.get(name), name
    return compiled


@pytest.mark.parametrize("vertices", [None, 7])
@pytest.mark.parametrize("weighted", WEIGHTED)
@pytest.mark.parametrize("shape", GRAPHS)
@pytest.mark.parametrize("program", with_nightly([Sums, Sends, Stays], [SendsToAll, Least]))
def test_supersteps_are_those_in_which_a_vertex_computes(
    program: Any, shape: str, weighted: bool, vertices: int | None
) -> None:
    with graph_of(shape, vertices) as graph:
        check(graph, program(), weighted=weighted)


def test_a_run_without_messages_has_one_superstep() -> None:
    with graph_of("path") as graph:
        for options in ({}, {"max_supersteps": 1}):
            found = check(graph, Sums(), **options)
            assert (found.stats["supersteps"], found.stats["converged"]) == (1, True)


def test_a_superstep_in_which_no_vertex_computes_is_not_counted() -> None:
    # In superstep 1 the leaves compute, and send along no edge.
    with graph_of("star") as graph:
        found = check(graph, Sends(), weighted=True)
    assert found.stats["supersteps"] == 2
    assert found.stats["aggregates"] == {"calls": 3, "most": 0.0}


class Strength(Sums):
    """The sum of the weights of the in-edges, as messages."""

    def compute(self, vertex: Any, messages: Any) -> None:
        vertex.value += sum(messages)
        if vertex.superstep == 0:
            for target, weight in vertex.edges:
                vertex.send(target, weight)
        vertex.vote_to_halt()


class Lightest(bf.Program):
    """The least weight of the in-edges, as signals."""

    delivery, combiner = "combined", "min"

    def initial_state(self, vertex: Any) -> Any:
        return 100.0

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return weight

    def collect(self, vertex: Any, signals: Any) -> Any:
        return np.minimum(vertex.state, signals[0])


@pytest.mark.parametrize("weighted", with_nightly([True], [False]))
@pytest.mark.parametrize("program", [Strength, Lightest])
def test_messages_and_signals_may_be_the_weights(program: Any, weighted: bool) -> None:
    arcs = {"source": [1, 2, 3, 2], "target": [2, 3, 4, 4], "weight": [0.5, -0.0, 3.0, 2.5]}
    with bf.Graph.from_arrow(pa.table(arcs), weight="weight") as graph:
        found = check(graph, program(), weighted=weighted)
        if program is Lightest:
            arrays = bf.run(graph, program(), compile="numpy", weighted=weighted)
            assert dict(arrays) == dict(found)
            for one in (arrays, found):
                assert weighted is (math.copysign(1.0, one[3]) < 0)


class Negated(Least):
    """The sum of negative messages, one of which is 0.0."""

    def compute(self, vertex: Any, messages: Any) -> None:
        vertex.value = sum(-message for message in messages)
        if vertex.superstep == 0:
            vertex.send_to_all(vertex.id - 1.0)
        vertex.vote_to_halt()


def test_a_sum_of_messages_begins_with_zero() -> None:
    with graph_of("path") as graph:
        found = check(graph, Negated())
    assert [math.copysign(1.0, number) for number in found.values()] == [1.0, 1.0, -1.0, -1.0]


class Opposites(bf.Program):
    """Sums of the negative states of sources, which may be -0.0."""

    delivery, combiner = "latest", "sum"

    def initial_state(self, vertex: Any) -> Any:
        return 0.0

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return -source.state

    def collect(self, vertex: Any, signals: Any) -> Any:
        return 1.0 + signals[0]


class OppositeMessages(Sums):
    """The same with messages, and the number of them."""

    def compute(self, vertex: Any, messages: Any) -> None:
        vertex.value += len(messages) + 1.0
        if vertex.superstep == 0:
            vertex.send_to_all(-0.0 * vertex.value)
        vertex.vote_to_halt()


class Products(Opposites):
    """The same with the weights of edges, which the engine multiplies."""

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return source.state * weight


def test_a_negative_zero_of_a_weight_is_a_signal_of_a_sum() -> None:
    table = pa.table({"source": [1], "target": [2], "weight": [-2.0]})
    with bf.Graph.from_arrow(table) as graph:
        for store in (None, "bytes"):
            ran = bf.run(graph, Products(), compile="numba", weighted=True, store=store)
            assert dict(ran) == {1: 0.0, 2: 1.0}


@pytest.mark.parametrize(
    ("program", "ways"), [(Opposites(), ("numba", "numpy")), (OppositeMessages(), ("numba",))]
)
def test_a_negative_zero_is_a_signal_of_a_sum(program: Any, ways: tuple[str, ...]) -> None:
    with graph_of("path") as graph:
        found = dict(bf.run(graph, program, compile="never", max_supersteps=2))
        assert found[1] < found[2]
        for way in ways:
            for store in (None, "bytes"):
                options: dict[str, Any] = {"compile": way, "store": store, "max_supersteps": 2}
                assert dict(bf.run(graph, program, **options)) == found


@pytest.mark.parametrize(
    ("program", "weighted"),
    rows_with_nightly(
        [(Reciprocal, False), (ReciprocalFlow, True)],
        [(Reciprocal, True), (ReciprocalSum, False), (ReciprocalFlow, False)],
    ),
)
def test_vertices_without_edges_compute_no_message(program: Any, weighted: bool) -> None:
    with graph_of("star", 7) as graph:
        check(graph, program(), weighted=weighted)


@pytest.mark.parametrize("weighted", WEIGHTED)
@pytest.mark.parametrize("program", with_nightly([Reciprocal], [ReciprocalSum]))
def test_a_message_that_has_an_edge_fails_alike(program: Any, weighted: bool) -> None:
    class Fails(program):  # type: ignore[misc]
        def initial_value(self, vertex: Any) -> Any:
            return 0.0

    with graph_of("circle") as graph:
        errors = []
        for way in ("never", "numba"):
            with pytest.raises(bf.ProgramError, match="ZeroDivisionError") as raised:
                bf.run(graph, Fails(), compile=way, weighted=weighted)
            assert isinstance(raised.value.__cause__, ZeroDivisionError)
            errors.append((raised.value.superstep, raised.value.state))
        assert errors[0] == errors[1]


class Divides(Sums):
    """Divides by zero before the superstep decides a test."""

    def compute(self, vertex: Any, messages: Any) -> None:
        if not (vertex.superstep == 0 or vertex.superstep > 0):
            vertex.value = 9.0
        if 1 // vertex.value > 5 or vertex.superstep == 0:
            vertex.value += 1.0
        vertex.vote_to_halt()


def test_what_stands_before_the_superstep_in_a_test_is_evaluated() -> None:
    with graph_of("path") as graph:
        for way in ("never", "numba"):
            with pytest.raises(bf.ProgramError, match=r"ZeroDivisionError.*superstep 0"):
                bf.run(graph, Divides(), compile=way)  # type: ignore[call-overload]


def test_a_signal_that_fails_names_its_superstep() -> None:
    class Falls(bf.Program):
        delivery, combiner = "combined", "max"

        def initial_state(self, vertex: Any) -> Any:
            return 2

        def signal(self, source: Any, target: Any, weight: float) -> Any:
            return 6 // source.state

        def collect(self, vertex: Any, signals: Any) -> Any:
            return vertex.state - 1

    with graph_of("circle") as graph:
        for way in ("never", "numba"):
            with pytest.raises(bf.ProgramError, match=r"failed to signal .*ZeroDivision") as raised:
                bf.run(graph, Falls(), compile=way)  # type: ignore[call-overload]
            assert (raised.value.superstep, raised.value.state) == (2, 0)


class Quotients(bf.Program):
    """Signals that vertices without edges cannot compute, and none from 2 on."""

    delivery, combiner = "combined", "min"
    aggregators: ClassVar = {
        "changes": bf.Aggregator("sum", 0),
        "all": bf.Aggregator("sum", 0, persistent=True),
    }

    def initial_state(self, vertex: Any) -> Any:
        return 5.0 if vertex.id < 4 else 0.0

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return None if 10 / source.state > 2 else source.state - 1

    def collect(self, vertex: Any, signals: Any) -> Any:
        return min(vertex.state, signals[0])

    def aggregate(self, vertex: Any, new: Any) -> Any:
        return 1, 1


@pytest.mark.parametrize("shape", GRAPHS)
def test_vertices_without_edges_compute_no_signal(shape: str) -> None:
    with graph_of(shape, 7) as graph:
        check(graph, Quotients())


def test_a_superstep_of_vertices_without_a_signal_counts() -> None:
    with graph_of("circle") as graph:
        found = check(graph, Quotients())
    assert found.stats["supersteps"] == 2
    assert found.stats["aggregates"] == {"changes": 0, "all": 3}


def test_vertices_without_edges_have_a_first_state() -> None:
    class First(Quotients):
        def initial_state(self, vertex: Any) -> Any:
            return 1 / vertex.id

    class Value(Least):
        def initial_value(self, vertex: Any) -> Any:
            return 1 // vertex.id

    with graph_of("path", 7) as graph:
        for program in (First(), Value()):
            for way in ("never", "numba"):
                text = "failed to make the first state at vertex 0: ZeroDivisionError"
                with pytest.raises(bf.ProgramError, match=text) as raised:
                    bf.run(graph, program, compile=way)  # type: ignore[call-overload]
                assert raised.value.vertex == 0


class Becomes(bf.Program):
    """Collects a number that may equal the present state."""

    delivery, combiner = "combined", "max"
    aggregators: ClassVar = {"changes": bf.Aggregator("sum", 0, persistent=True)}
    #: The first state, and the state that is collected.
    states: ClassVar[tuple[Any, Any]]

    def initial_state(self, vertex: Any) -> Any:
        return self.first

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return 3

    def collect(self, vertex: Any, signals: Any) -> Any:
        return self.second

    def aggregate(self, vertex: Any, new: Any) -> Any:
        return 1

    def __init__(self, first: Any, second: Any) -> None:
        self.first, self.second = first, second


@pytest.mark.parametrize(
    ("first", "second", "changes"),
    rows_with_nightly(
        # A float of 64 bits rounds the last integer.
        [(True, 1, 0), (0.0, -0.0, 0), (0.0, math.nan, 3), (2**53, 2.0**53, 0)],
        [(3, 3.0, 0), (math.nan, math.nan, 0), (3, 4.0, 3)],
    ),
)
@pytest.mark.parametrize("store", ["memory", "bytes"])
def test_numbers_that_are_equal_are_no_change(
    first: Any, second: Any, changes: int, store: str
) -> None:
    with graph_of("circle") as graph:
        program = Becomes(first, second)
        for way in ("never", "numba"):
            found = bf.run(graph, program, compile=way, store=store, max_supersteps=5)  # type: ignore[call-overload]
            assert found.stats["supersteps"] == (2 if changes else 1)
            assert found.stats["aggregates"] == {"changes": changes}


def test_an_interpreted_integer_equals_the_same_float_only() -> None:
    with graph_of("circle") as graph:
        found = bf.run(graph, Becomes(2**53 + 1, 2.0**53), max_supersteps=5)
    assert found.stats["aggregates"] == {"changes": 3}


def test_arrays_of_nan_are_no_change() -> None:
    class Unknown(Becomes):
        def signal(self, source: Any, target: Any, weight: float) -> Any:
            return source.state * 0.0

        def collect(self, vertex: Any, signals: Any) -> Any:
            return vertex.state * math.nan

    with graph_of("circle") as graph:
        found = bf.run(graph, Unknown(math.nan, math.nan), compile="numpy", max_supersteps=5)
    assert (found.stats["supersteps"], found.stats["aggregates"]) == (1, {"changes": 0})


def test_an_interpreted_pregel_program_has_its_aggregates() -> None:
    class Told(Sends):
        def master_compute(self, master: Any) -> None:
            if master.superstep == 2:
                master.set_aggregated("most", 7.0)
                master.halt()

    with graph_of("circle") as graph:
        assert bf.run(graph, Told()).stats["aggregates"] == {"calls": 3, "most": 7.0}
        assert "aggregates" not in bf.run(graph, Sums()).stats


PROGRAM = """
import math, re
import brimful as bf
TABLE, NAME = {{1: 2.0}}, "abc"
class Thing:
    number = 1
THING = Thing()
def twice(number):
    return 2 * number
class Refused(bf.Program):
    delivery, combiner = "combined", "min"
    name, items = "abc", [1.0]
    def initial_state(self, vertex):
        return 1.0
    def signal(self, source, target, weight):
        return source.state
    def helped(self, number):
        return number
    def collect(self, vertex, signals):
        x = vertex.state
        {body}
        return x
class Vertices(bf.Pregel):
    name, items = "abc", [1.0]
    def initial_value(self, vertex):
        return 1.0
    def combine(self, left, right):
        return min(left, right)
    def helped(self, number):
        return number
    def compute(self, vertex, messages):
        vertex.vote_to_halt()
        x = vertex.value
        {body}
        vertex.value = x
"""
#: Statements, and parts of the reason.
REFUSED = [
    ("x = 'abc'.format(1)", "Unknown attribute 'format'"),
    ("x = '%f' % x", "mod"),
    ("x = len(f'{x:.3f}')", "f-strings"),
    ("x = {1, 'a'}", "build_set|KeyError|cannot be determined"),
    ("d = {'a': 1.0, 2: 'x'}", "setitem"),
    ("x = sum(y for y in range(3))", "yield|closure"),
    ("import random", "IMPORT_NAME"),
    ("x = re.compile('a').groups", "module re"),
    ("x = math.nothing(x)", "'math' has no attribute 'nothing'"),
    ("x = twice(x)", "the global twice is a function"),
    ("x = twice(*[1.0])", "the global twice is a function"),
    ("x = twice(**{'number': 1.0})", "DICT_MERGE"),
    ("x = TABLE[1]", "the global TABLE is a dict"),
    ("x = THING.number", "the global THING is a Thing"),
    ("x = unknown", "name 'unknown' is not defined"),
    ("x = eval('1.0')", "the global eval is a builtin"),
    ("x = 1.0 if x > 1 else 'a'", "Cannot unify"),
    ("x = x + 'a'", "add"),
    ("x = x + (1 << 70)", "too large"),
    ("x = (1.0, 'a')[int(x)]", "getitem"),
    ("a, b = x", "unpack"),
    ("x = self.name", "self.name is not an int, a float"),
    ("x = self.items[0]", "self.items is not an int"),
    ("x = self.helped(x)", "self.helped is not an int"),
    ("self.count = x", "assigns self.count"),
    ("x = getattr(self, 'name')", "getattr"),
    ("print(x, sep='-')", "print"),
    ("x = int.from_bytes(b'a', 'big')", "from_bytes"),
    ("for y in (1.0, 'a'): x = 2.0", "getiter"),
    ("x = far if x > 1 else (far := 2.0)", "may read far before it is assigned"),
    ("raise ValueError", "returns None|raises an exception"),
    ("x = vertex.nothing", "nothing"),
    ("x = (lambda y: y + NAME)(x)", "lambda|add"),
]


@pytest.mark.parametrize("name", with_nightly(["Vertices"], ["Refused"]))
@pytest.mark.parametrize(("body", "reason"), REFUSED, ids=[body for body, _ in REFUSED])
@pytest.mark.filterwarnings("ignore::Warning")
def test_a_refusal_has_method_line_and_reason(
    name: str, body: str, reason: str, tmp_path: Path
) -> None:
    file = tmp_path / "refused.py"
    text = PROGRAM.format(body=body)
    file.write_text(text)
    names: dict[str, Any] = {"__name__": "refused"}
    exec(compile(text, str(file), "exec"), names)
    at = [line for line, one in enumerate(text.splitlines(), 1) if one.strip() == body]
    method, line = ("collect", at[0]) if name == "Refused" else ("compute", at[-1])
    with graph_of("path") as graph, pytest.raises(bf.UsageError, match=reason) as raised:
        bf.run(graph, names[name](), compile="numba")
    message = str(raised.value)
    assert "\n" not in message and message.count(". ") == 1 and message.endswith(".")
    assert f"{method} ({file}, line " in message
    # Some reasons are about the whole method, or about the use of a variable.
    is_exact = re.search(f"line {line}[:)]", message) or "getattr" in message
    assert is_exact or reason.partition("|")[0] in ("build_set", "returns None")
