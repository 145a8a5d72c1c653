"""Messages and values with fields in Pregel programs, compiled and interpreted."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import brimful as bf
from nightly import rows_with_nightly, with_nightly


class Routes(bf.Pregel):
    """Shortest paths from a vertex, each with the vertex before; of equal paths the least one."""

    value_type = np.dtype([("distance", "f8"), ("via", "i8"), ("id", "i8")])
    message_type = np.dtype([("distance", "f8"), ("via", "i8")])

    def __init__(self, source: int) -> None:
        self.source = source

    def initial_value(self, vertex: Any) -> Any:
        return (0.0 if vertex.id == self.source else math.inf), -1, vertex.id

    def combine(self, left: Any, right: Any) -> Any:
        return min(left, right)

    def compute(self, vertex: Any, messages: Any) -> None:
        own = vertex.value
        if vertex.superstep == 0:
            if own.distance == 0:
                for target, weight in vertex.edges:
                    vertex.send(target, (own.distance + weight, own.id))
        else:
            for distance, via in messages:
                if distance < own.distance:
                    vertex.value = distance, via, own.id
                    for target, weight in vertex.edges:
                        vertex.send(target, (distance + weight, own.id))
        vertex.vote_to_halt()


class Means(bf.Pregel):
    """Means of values of neighbors: sums and counts, in a program whose vertices do not halt."""

    message_type = np.dtype([("total", "f8"), ("count", "u4")])

    def __init__(self, supersteps: int = 6) -> None:
        self.supersteps = supersteps

    def initial_value(self, vertex: Any) -> Any:
        return float(vertex.degree)

    def combine(self, left: Any, right: Any) -> Any:
        return left.total + right.total, left.count + right.count

    def compute(self, vertex: Any, messages: Any) -> None:
        if messages:
            vertex.value = messages[0].total / messages[0].count
        if vertex.superstep < self.supersteps:
            vertex.send_to_all((vertex.value, 1))
        else:
            vertex.vote_to_halt()


class Extremes(bf.Pregel):
    """The least and the greatest id from which a vertex can be reached, and the calls."""

    value_type = np.dtype([("least", "i4"), ("greatest", "i4"), ("calls", "u1")])
    message_type = np.dtype([("least", "i4"), ("greatest", "i4")])
    aggregators: ClassVar = {"changes": bf.Aggregator("sum", 0, persistent=True)}

    def initial_value(self, vertex: Any) -> Any:
        return vertex.id, vertex.id, 0

    def combine(self, left: Any, right: Any) -> Any:
        return min(left.least, right.least), max(left.greatest, right.greatest)

    def compute(self, vertex: Any, messages: Any) -> None:
        least = min([vertex.value.least, *(one.least for one in messages)])
        greatest = max([vertex.value.greatest, *(one.greatest for one in messages)])
        changes = least != vertex.value.least or greatest != vertex.value.greatest
        vertex.value = least, greatest, vertex.value.calls + 1
        if vertex.superstep > 0:
            vertex.aggregate("changes", int(changes))
        if vertex.superstep == 0 or changes:
            vertex.send_to_all((least, greatest))
        vertex.vote_to_halt()


class Losses(bf.Pregel):
    """Products along edges in single precision, capacities, and a flag."""

    message_type = np.dtype([("share", "f4"), ("room", "f4"), ("is_far", "b1")])
    value_type = np.dtype([("share", "f4"), ("room", "f8"), ("is_far", "b1")])

    def initial_value(self, vertex: Any) -> Any:
        return 1 / 3, math.inf, False

    def combine(self, left: Any, right: Any) -> Any:
        return max(left.share, right.share), max(left.room, right.room), left.is_far | right.is_far

    def compute(self, vertex: Any, messages: Any) -> None:
        for one in messages:
            vertex.value = one.share, one.room, one.is_far or vertex.superstep > 2
        if vertex.superstep < 4:
            share, room, is_far = vertex.value
            for target, weight in vertex.edges:
                vertex.send(target, (share * weight, min(room, weight), is_far))
        vertex.vote_to_halt()


class Spread(Routes):
    """Shortest paths whose master ends the run, and whose aggregate all vertices see."""

    aggregators: ClassVar = {"reached": bf.Aggregator("sum", 0)}

    def master_compute(self, master: Any) -> None:
        if master.superstep == 4:
            master.halt()

    def compute(self, vertex: Any, messages: Any) -> None:
        own = vertex.value
        if vertex.superstep == 0:
            if own.distance == 0:
                vertex.send_to_all((1.0, own.id))
        elif messages and math.isinf(own.distance):
            vertex.aggregate("reached", 1)
            vertex.value = messages[0].distance + vertex.aggregated("reached"), 7, own.id
            vertex.send_to_all((own.distance, own.id))
        vertex.vote_to_halt()


class Wide(bf.Pregel):
    """Sums of five numbers, which take the largest size of messages."""

    message_type = np.dtype([(name, "f8") for name in "abcde"])
    value_type = np.dtype([(name, "f8") for name in "abcd"])

    def initial_value(self, vertex: Any) -> Any:
        return 1.0, 2.0, 3.0, 4.0

    def combine(self, left: Any, right: Any) -> Any:
        return (
            *(left.a + right.a, left.b + right.b),
            *(left.c + right.c, left.d + right.d, left.e + right.e),
        )

    def compute(self, vertex: Any, messages: Any) -> None:
        a, b, c, d = vertex.value
        if vertex.superstep < 3:
            vertex.send_to_all((a, b, c, d, 1.0))
        vertex.vote_to_halt()
        if messages:
            got = messages[-1]
            vertex.value = got.a / got.e, got.b / 2, got.c - 1, got.d


class Shares(bf.Pregel):
    """Sums of numbers, whose vertices keep two."""

    value_type = np.dtype([("share", "f8"), ("calls", "i2")])

    def initial_value(self, vertex: Any) -> Any:
        return 1.0, 0

    def combine(self, left: Any, right: Any) -> Any:
        return left + right

    def compute(self, vertex: Any, messages: Any) -> None:
        vertex.value = 0.5 + sum(messages), vertex.value.calls + 1
        if vertex.superstep < 5:
            vertex.send_to_all(vertex.value.share / max(vertex.degree, 1))
        else:
            vertex.vote_to_halt()


class Paths(bf.Pregel):
    """Shortest paths by messages that are numbers, and how often they became shorter."""

    value_type = np.dtype([("distance", "f4"), ("times", "u1")])

    def initial_value(self, vertex: Any) -> Any:
        return (0.0 if vertex.id == 3 else math.inf), 0

    def combine(self, left: Any, right: Any) -> Any:
        return min(left, right)

    def compute(self, vertex: Any, messages: Any) -> None:
        least = min(messages, default=vertex.value.distance)
        if least < vertex.value.distance or (vertex.superstep == 0 and least == 0):
            vertex.value = least, vertex.value.times + 1
            for target, weight in vertex.edges:
                vertex.send(target, vertex.value.distance + weight)
        vertex.vote_to_halt()


PROGRAMS: list[tuple[bf.Pregel, bool]] = [
    (Routes(3), True),
    (Extremes(), False),
    (Paths(), True),
]
OTHERS: list[tuple[bf.Pregel, bool]] = [
    (Routes(3), False),
    (Means(), False),
    (Spread(3), False),
    (Shares(), False),
    (Losses(), True),
    (Wide(), False),
]


def named(chosen: tuple[bf.Pregel, bool]) -> str:
    return f"{type(chosen[0]).__name__}-{chosen[1]}"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A random graph with weights; some of its vertices have no edges."""
    random = np.random.default_rng(2)
    arcs = {name: random.integers(0, 300, 900) for name in ("source", "target")}
    table = pa.table({**arcs, "weight": random.integers(1, 5, 900) * 0.25})
    path = tmp_path_factory.mktemp("structured") / "g.brimful"
    with bf.Graph.from_arrow(table, weight="weight", path=str(path), vertices=310) as graph:
        yield graph


def rows(found: Any) -> dict[int, Any]:
    """Return values as tuples of numbers, where sums in another order are equal."""
    return {
        vertex: pytest.approx(tuple(value) if isinstance(value, tuple) else value, rel=1e-12)
        for vertex, value in found.items()
    }


@pytest.mark.parametrize("chosen", with_nightly(PROGRAMS, OTHERS), ids=named)
def test_a_compiled_program_answers_as_an_interpreted_one(
    graph: bf.Graph, chosen: tuple[bf.Pregel, bool], tmp_path: Path
) -> None:
    program, weighted = chosen
    called = bf.run(graph, program, weighted=weighted, compile="never")
    assert called.stats["supersteps"] > 2
    for store in (None, "memory", "bytes", f"file:{tmp_path}/vertices"):
        compiled = bf.run(graph, program, weighted=weighted, compile="numba", store=store)
        assert compiled.stats["variant"] == "compiled"
        assert compiled.stats["supersteps"] == called.stats["supersteps"]
        assert compiled.stats.get("aggregates") == called.stats.get("aggregates")
        assert rows(compiled) == dict(called)
        assert compiled.to_arrow().column_names == called.to_arrow().column_names


@pytest.mark.parametrize(
    "program", with_nightly([Extremes()], [Routes(3), Means()]), ids=lambda it: type(it).__name__
)
def test_results_have_the_same_bits_at_any_budget_and_number_of_threads(
    divided: Path, program: bf.Pregel
) -> None:
    ways: list[dict[str, Any]] = [{"threads": 1}, {"threads": 3}, {"threads": 2, "budget": "128M"}]
    with bf.Graph.open(divided) as graph:
        tables = [bf.run(graph, program, compile="numba", **way).to_arrow() for way in ways]
    assert all(table.equals(tables[0]) for table in tables)


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("chosen", with_nightly([(Routes(3), True)], [(Means(), False)]), ids=named)
def test_a_run_goes_on_from_its_checkpoint(
    graph: bf.Graph,
    chosen: tuple[bf.Pregel, bool],
    on_disk: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program, weighted = chosen
    store = f"file:{tmp_path}/vertices" if on_disk else None
    for way in ("numba", "never"):
        options: Any = {"compile": way, "store": store, "weighted": weighted}
        whole = bf.run(graph, program, **options)
        options |= {"checkpoint_dir": str(tmp_path / way), "checkpoint_every": 1}
        bf.run(graph, program, max_supersteps=3, **options)
        first, (second, _) = type(program).message_type.descr
        with monkeypatch.context() as changed, pytest.raises(bf.BrimfulError) as raised:
            changed.setattr(type(program), "message_type", np.dtype([first, (second, "i4")]))
            bf.run(graph, program, resume=True, **options)
        assert "attribute message_type was" in str(raised.value)
        resumed = bf.run(graph, program, resume=True, **options)
        assert resumed.stats["resumed_from"] is not None
        assert resumed.stats["supersteps"] == whole.stats["supersteps"]
        assert rows(resumed) == dict(whole)


class Averages(Means):
    """Means whose values have a field, for changes of the graph."""

    mutates = True
    value_type = np.dtype([("mean", "f8")])

    def initial_value(self, vertex: Any) -> Any:
        return (0.0,)

    def compute(self, vertex: Any, messages: Any) -> None:
        if vertex.superstep == 0:
            vertex.send(1000, (2.0, 1))
            vertex.request_add_vertex(1001, (5.0,))
        elif messages:
            vertex.value = (messages[0].total / messages[0].count,)
        vertex.vote_to_halt()


@pytest.mark.parametrize("store", ["memory", "bytes"])
def test_programs_that_change_the_graph_have_fields(graph: bf.Graph, store: str) -> None:
    found = bf.run(graph, Averages(), store=store)
    assert (found[0], found[1000], found[1001]) == ((0.0,), (2.0,), (5.0,))


def test_interpreted_programs_without_combine_receive_all_messages(graph: bf.Graph) -> None:
    class Listed(bf.Pregel):
        message_type = np.dtype([("share", "f4"), ("id", "i8")])

        def initial_value(self, vertex: Any) -> Any:
            return None

        def compute(self, vertex: Any, messages: Any) -> None:
            vertex.value = sorted((one.share, one.id) for one in messages)
            if vertex.superstep == 0:
                vertex.send_to_all((0.1, vertex.id))
            vertex.vote_to_halt()

    found = bf.run(graph, Listed(), compile="never", store="memory")
    share = float(np.float32(0.1))
    assert len(found) == 310
    assert any(len(value) > 1 for value in found.values())
    assert {one for value in found.values() for one, _ in value} == {share}
    with pytest.raises(bf.UsageError, match=r"Listed has no combine\(\)"):
        bf.run(graph, Listed(), compile="numba")


def failing(graph: bf.Graph, compile: str, **own: Any) -> Exception:
    """Return the error of `Extremes` with other methods or attributes."""
    with pytest.raises(bf.BrimfulError) as raised:
        bf.run(graph, type("Failing", (Extremes,), own)(), compile=compile)
    return raised.value


@pytest.mark.parametrize(
    ("name", "way"),
    rows_with_nightly(
        [("compute", "never"), ("sends", "never"), ("sends", "numba"), ("replaces", "never")],
        [("compute", "numba")],
    ),
)
def test_a_value_that_its_field_cannot_hold_ends_the_run(
    graph: bf.Graph, name: str, way: str
) -> None:
    def compute(self: Any, vertex: Any, messages: Any) -> None:
        vertex.value = vertex.value.least, 1 << 40, 0
        vertex.vote_to_halt()

    def sends(self: Any, vertex: Any, messages: Any) -> None:
        if vertex.superstep == 0:
            vertex.send_to_all((1, 1 << 31))
        vertex.vote_to_halt()

    def replaces(self: Any, vertex: Any, messages: Any) -> None:
        vertex.value = vertex.value._replace(greatest=1 << 40)
        vertex.vote_to_halt()

    method = {"compute": compute, "sends": sends, "replaces": replaces}[name]
    error = failing(graph, way, compute=method)
    assert isinstance(error, bf.ProgramError)
    assert "the field greatest holds -2147483648 to 2147483647, not" in str(error)
    assert isinstance(error.__cause__, OverflowError)


@pytest.mark.parametrize("store", [None, "memory"])
def test_an_exception_of_combine_ends_the_run(graph: bf.Graph, store: str | None) -> None:
    class Divides(Extremes):
        def combine(self, left: Any, right: Any) -> Any:
            return 1 // (left.least - left.least), 1

    with pytest.raises(bf.ProgramError, match="combine of Divides raised an exception in compiled"):
        bf.run(graph, Divides(), compile="numba", store=store)
    with pytest.raises(bf.ProgramError) as raised:
        bf.run(graph, Divides(), compile="never", store="memory")
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def wrong(graph: bf.Graph, match: str, base: type[bf.Pregel] = Routes, **own: Any) -> None:
    """Check that a program with some methods is refused before its run, and why."""
    options = own.pop("options", {})
    program = type("Wrong", (base,), own)(3)
    with pytest.raises(bf.UsageError, match=match):
        bf.run(graph, program, compile="numba", **options)


def test_code_without_the_fields_is_refused_with_line_and_reason(graph: bf.Graph) -> None:
    def sends_two(self: Any, vertex: Any, messages: Any) -> None:
        vertex.vote_to_halt()
        vertex.send_to_all((1.0, 2, 3))

    def sends_floats(self: Any, vertex: Any, messages: Any) -> None:
        vertex.vote_to_halt()
        vertex.send_to_all((1.0, 2.5))

    def sets_a_number(self: Any, vertex: Any, messages: Any) -> None:
        vertex.vote_to_halt()
        vertex.value = 7

    def adds(self: Any, vertex: Any, messages: Any) -> None:
        vertex.vote_to_halt()
        vertex.value += (1,)

    def weighs_an_integer(self: Any, vertex: Any, messages: Any) -> None:
        vertex.vote_to_halt()
        for target, weight in vertex.edges:
            vertex.send(target, (1.0, 3 + weight))

    def weighs_a_name(self: Any, vertex: Any, messages: Any) -> None:
        vertex.vote_to_halt()
        for target, weight in vertex.edges:
            vertex.send(target, (1.0 - weight, 3))

    def line(method: Any, offset: int) -> str:
        return rf"line {method.__code__.co_firstlineno + offset}\)"

    def sums(self: Any, left: Any, right: Any) -> Any:
        return left.distance + right.distance

    def reads_text(self: Any, left: Any, right: Any) -> Any:
        return left if left.name < right.name else right

    for method, offset, reason in (
        (sends_two, 2, r" sends .* in place of 2 values \(distance, via\)"),
        (sends_floats, 2, " sends float64 for via, which has the type int64"),
        (sets_a_number, 2, r" sets .* in place of 3 values \(distance, via, id\)"),
        (adds, 2, " changes vertex.value by an operator, and the value has fields"),
        (weighs_an_integer, 3, " computes the field via with weight, which is a float"),
        (weighs_a_name, 2, " uses weight in another way .* for a field of the tuple"),
    ):
        wrong(graph, line(method, offset) + reason, compute=method)
    wrong(graph, line(sums, 0) + r" returns float64 in place of 2 values", combine=sums)
    wrong(graph, r"Numba cannot compile combine .*name", combine=reads_text)
    wrong(graph, r"initial_value .* returns .* in place of 1 value", value_type=[("one", "f8")])
    wrong(graph, "message_type must be a structured type", message_type="f8")
    wrong(graph, "the field name of message_type has the type", message_type=[("name", "U4")])
    wrong(graph, "messages with fields need supersteps", options={"mode": "async"})
    with pytest.raises(bf.UsageError, match="values are records cannot be kept"):
        bf.run(graph, Routes(3), store="bytes", keep=True)


def test_a_message_has_at_most_63_bytes(graph: bf.Graph) -> None:
    class Large(bf.Pregel):
        message_type = np.dtype([(f"power{at}", "f8") for at in range(8)])

        def initial_value(self, vertex: Any) -> Any:
            return 0

        def combine(self, left: Any, right: Any) -> Any:
            return max(left, right)

        def compute(self, vertex: Any, messages: Any) -> None:
            vertex.send_to_all((1, 2, 3, 4, 5, 6, 7, 8))
            vertex.vote_to_halt()

    with pytest.raises(bf.UsageError, match=r"a message has 72 bytes, but .* at most 64"):
        bf.run(graph, Large(), compile="numba")


@pytest.mark.parametrize("way", ["never", "numba"])
def test_an_error_has_the_value_as_a_record(graph: bf.Graph, way: Any) -> None:
    class Divides(bf.Pregel):
        value_type = np.dtype([("share", "f8"), ("calls", "i8")])

        def initial_value(self, vertex: Any) -> Any:
            return 0.5, 0

        def combine(self, left: Any, right: Any) -> Any:
            return max(left, right)

        def compute(self, vertex: Any, messages: Any) -> None:
            vertex.value = 0.5, 1 // vertex.value.calls
            vertex.vote_to_halt()

    with pytest.raises(bf.ProgramError, match=r"state Value\(share=0.5, calls=0\)$") as raised:
        bf.run(graph, Divides(), compile=way)
    assert raised.value.state == (0.5, 0)
    assert type(raised.value.__cause__) is ZeroDivisionError
