"""Pregel programs compiled by Numba give the answers of interpreted ones."""

from __future__ import annotations

import functools
import importlib
import linecache
import math
import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import brimful as bf
from nightly import rows_with_nightly


class Ranks(bf.Pregel):
    """PageRank by a fixed number of supersteps."""

    def __init__(self, supersteps: int = 10) -> None:
        self.supersteps = supersteps

    def initial_value(self, vertex: Any) -> Any:
        return 1.0

    def combine(self, left: Any, right: Any) -> Any:
        return left + right

    def compute(self, vertex: Any, messages: Any) -> None:
        if vertex.superstep > 0:
            vertex.value = 0.15 + 0.85 * sum(messages)
        if vertex.superstep < self.supersteps:
            for target, _ in vertex.edges:
                vertex.send(target, vertex.value / vertex.degree)
        else:
            vertex.vote_to_halt()


class Distances(bf.Pregel):
    """Lengths of shortest paths from a vertex."""

    def __init__(self, source: int) -> None:
        self.source = source

    def initial_value(self, vertex: Any) -> Any:
        return 0.0 if vertex.id == self.source else math.inf

    def combine(self, left: Any, right: Any) -> Any:
        return min(left, right)

    def compute(self, vertex: Any, messages: Any) -> None:
        found = min(messages, default=vertex.value)
        if found < vertex.value or (vertex.superstep == 0 and not math.isinf(found)):
            vertex.value = found
            for target, weight in vertex.edges:
                vertex.send(target, found + weight)
        vertex.vote_to_halt()


class Greatest(bf.Pregel):
    """The greatest id from which a vertex can be reached."""

    def initial_value(self, vertex: Any) -> Any:
        return vertex.id

    def combine(self, left: Any, right: Any) -> Any:
        """Combine in any order."""
        return max(right, left)

    def compute(self, vertex: Any, messages: Any) -> None:
        vertex.vote_to_halt()
        if not vertex.superstep:
            vertex.send_to_all(vertex.value)
            return
        if messages and messages[0] > vertex.value:
            vertex.value = messages[0]
            vertex.send_to_all(vertex.value)


class Common(bf.Pregel):
    """The bits that a vertex has in common with all from which it can be reached."""

    def initial_value(self, vertex: Any) -> Any:
        return 255 ^ (1 << vertex.id % 8)

    def combine(self, left: Any, right: Any) -> Any:
        return left & right

    def compute(self, vertex: Any, messages: Any) -> None:
        before = vertex.value
        for message in messages:
            vertex.value &= message
        assert vertex.value == min([vertex.value, *(before & one for one in messages)])
        if vertex.superstep == 0 or vertex.value != before:
            vertex.send_to_all(vertex.value)
        vertex.vote_to_halt()


class Shares(bf.Pregel):
    """In-degrees as shares of the greatest: sums of integers, aggregators, an early return."""

    aggregators: ClassVar = {
        "most": bf.Aggregator("max", 0.0),
        "calls": bf.Aggregator("sum", 0, persistent=True),
        "any": bf.Aggregator("or", False),
    }

    def initial_value(self, vertex: Any) -> Any:
        return 0

    def combine(self, left: Any, right: Any) -> Any:
        return left + right

    def compute(self, vertex: Any, messages: Any) -> None:
        vertex.aggregate("calls", 1)
        if vertex.superstep == 0:
            vertex.send_to_all(1)
            return
        if vertex.superstep == 1:
            vertex.value = sum(2 * message for message in messages) + len(messages)
            vertex.aggregate("most", float(vertex.value))
            vertex.aggregate("any", vertex.value > 5)
        if vertex.superstep == 2:
            vertex.value = vertex.value / vertex.aggregated("most")
            if vertex.aggregated("any"):
                vertex.value += vertex.aggregated("calls")
            vertex.vote_to_halt()


class Losses(bf.Pregel):
    """Sums along edges of negative weight, where some vertices are silent."""

    def initial_value(self, vertex: Any) -> Any:
        return 1.0

    def combine(self, left: Any, right: Any) -> Any:
        return left + right

    def compute(self, vertex: Any, messages: Any) -> None:
        vertex.value += sum(messages)
        if vertex.superstep < 3 and vertex.value > 0:
            for target, weight in vertex.edges:
                vertex.send(target, vertex.value * weight)
        vertex.vote_to_halt()


PROGRAMS: list[tuple[bf.Pregel, bool]] = [
    (Ranks(), False),
    (Distances(3), True),
    (Common(), False),
]
OTHERS: list[tuple[bf.Pregel, bool]] = [
    (Distances(3), False),
    (Greatest(), False),
    (Shares(), False),
    (Losses(), True),
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A random graph, some of whose vertices have no edges, with weights of both signs."""
    random = np.random.default_rng(1)
    arcs = {name: random.integers(0, 300, 900) for name in ("source", "target")}
    weights = random.integers(1, 9, 900) * 0.25
    weights[:50] *= -1
    table = pa.table({**arcs, "weight": np.where(arcs["source"] < arcs["target"], weights, 1.0)})
    path = tmp_path_factory.mktemp("pregel") / "g.brimful"
    with bf.Graph.from_arrow(table, weight="weight", path=str(path), vertices=310) as graph:
        yield graph


def interpreted(graph: bf.Graph, program: bf.Pregel, **options: Any) -> dict[int, Any]:
    """Return the values that calls of the methods compute."""
    return dict(bf.run(graph, program, compile="never", **options))


def close(found: dict[int, Any]) -> Any:
    """Return values that sums in another order may have."""
    return pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize(
    ("program", "weighted"),
    rows_with_nightly(PROGRAMS, OTHERS),
    ids=[f"{type(program).__name__}-{weighted}" for program, weighted in PROGRAMS + OTHERS],
)
def test_a_compiled_program_answers_as_an_interpreted_one(
    graph: bf.Graph, program: bf.Pregel, weighted: bool
) -> None:
    limit = {"max_supersteps": 5} if isinstance(program, Distances) else {}
    called = bf.run(graph, program, weighted=weighted, **limit)
    for store in (None, "memory", "bytes"):
        compiled = bf.run(graph, program, weighted=weighted, compile="numba", store=store, **limit)
        assert compiled.stats["variant"] == "compiled"
        assert compiled.stats["supersteps"] == called.stats["supersteps"]
        assert dict(compiled) == close(dict(called))


@pytest.mark.parametrize(
    "program", [Ranks(), Distances(3), Shares()], ids=lambda it: str(it)[28:33]
)
def test_results_have_the_same_bits_at_any_budget_and_number_of_threads(
    divided: Path, program: bf.Pregel
) -> None:
    ways: list[dict[str, Any]] = [{"threads": 1}, {"threads": 3}, {"threads": 2, "budget": "64M"}]
    with bf.Graph.open(divided) as graph:
        tables = [bf.run(graph, program, compile="numba", **way).to_arrow() for way in ways]
    assert all(table.equals(tables[0]) for table in tables)


@pytest.mark.parametrize("program", [Ranks(), Greatest()])
def test_supersteps_are_limited_alike(graph: bf.Graph, program: bf.Pregel) -> None:
    with pytest.raises(bf.UsageError, match="max_supersteps=0 skips superstep 0"):
        bf.run(graph, program, max_supersteps=0, compile="numba")
    for limit in (1, 2, 4):
        compiled = bf.run(graph, program, max_supersteps=limit, compile="numba")
        assert compiled.stats["supersteps"] == limit
        assert dict(compiled) == close(interpreted(graph, program, max_supersteps=limit))
    assert (
        bf.run(graph, program, max_supersteps=0, compile="auto").stats["variant"] == "interpreted"
    )


@pytest.mark.parametrize("program", [Ranks(), Shares()])
def test_a_run_goes_on_from_its_checkpoint(
    graph: bf.Graph, program: bf.Pregel, tmp_path: Path
) -> None:
    whole = bf.run(graph, program, compile="numba")
    options: Any = {"checkpoint_dir": str(tmp_path), "checkpoint_every": 1, "compile": "numba"}
    bf.run(graph, program, max_supersteps=2, **options)
    resumed = bf.run(graph, program, resume=True, **options)
    assert resumed.stats["resumed_from"] == 1
    assert resumed.stats["supersteps"] == whole.stats["supersteps"]
    assert resumed.to_arrow().equals(whole.to_arrow())
    # Nobody needs them any more.
    assert not any(tmp_path.glob("*"))


def test_the_asynchronous_mode_finds_the_same_values(graph: bf.Graph) -> None:
    for program in (Greatest(), Common()):
        found = bf.run(graph, program, mode="async", compile="numba")
        assert dict(found) == interpreted(graph, program)


def test_a_sum_of_aggregates_beyond_64_bits_ends_the_run(graph: bf.Graph) -> None:
    class Large(Ranks):
        aggregators: ClassVar = {"large": bf.Aggregator("sum", 0)}

        def compute(self, vertex: Any, messages: Any) -> None:
            if vertex.superstep == 0:
                vertex.aggregate("large", 1 << 62)
            else:
                vertex.value = float(vertex.aggregated("large"))
                vertex.vote_to_halt()

    with pytest.raises(
        bf.ProgramError, match="the aggregator large has a sum beyond 64-bit integers"
    ):
        bf.run(graph, Large(), compile="numba")


def test_an_exception_of_compiled_code_ends_the_run(graph: bf.Graph) -> None:
    class Divides(Distances):
        def compute(self, vertex: Any, messages: Any) -> None:
            vertex.value = 1 // (vertex.superstep + int(vertex.id != 7)) + min(messages)
            vertex.vote_to_halt()

    class Needs(Distances):
        def compute(self, vertex: Any, messages: Any) -> None:
            vertex.value = min(messages)
            vertex.vote_to_halt()

    with pytest.raises(bf.UsageError, match=r"reads vertex\.id after superstep 0"):
        bf.run(graph, Divides(1), compile="numba")
    with pytest.raises(
        bf.ProgramError, match=r"failed to compute at vertex .* superstep 0"
    ) as raised:
        bf.run(graph, Needs(1), compile="numba")
    assert isinstance(raised.value.__cause__, ValueError)
    assert raised.value.state in (0.0, math.inf)


class Zeros(Ranks):
    """Counts messages whose sum is 0."""

    def compute(self, vertex: Any, messages: Any) -> None:
        if vertex.superstep > 0:
            vertex.value = float(len(messages))
        if vertex.superstep < 3:
            vertex.send_to_all(0)
        vertex.vote_to_halt()


@pytest.mark.parametrize("store", [None, "memory", "bytes"])
def test_messages_of_zero_are_sent(graph: bf.Graph, store: str | None) -> None:
    called = bf.run(graph, Zeros())
    compiled = bf.run(graph, Zeros(), compile="numba", store=store)
    assert dict(compiled) == dict(called)
    assert compiled.stats["supersteps"] == called.stats["supersteps"] == 4
    assert compiled.stats["reason"] == called.stats["reason"]


def refused(graph: bf.Graph, body: str, match: str, **options: Any) -> None:
    """Check that a program with some body of `compute` is not compiled, and why."""
    lines: dict[str, Any] = {}
    source = f"def compute(self, vertex, messages):\n{body}\n    vertex.vote_to_halt()\n"
    # `inspect` reads the source of functions from the lines of their file.
    file = f"<{abs(hash(body))}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    exec(compile(source, file, "exec"), lines)
    own = {"compute": lines["compute"], "_bound": 1.0, "large": 1 << 63}
    program = type("Refused", (Distances,), own)(1)
    with pytest.raises(bf.UsageError, match=match):
        bf.run(graph, program, compile="numba", **options)


@pytest.mark.parametrize(
    ("body", "match"),
    [
        ("    vertex.send(3, 1.0)", r"line 2\) calls vertex.send outside a loop over the edges"),
        ("    vertex.send_to_all(1)\n    vertex.send_to_all(2)", "several times in one call"),
        (
            "    for _ in range(3):\n        vertex.send_to_all(1)",
            "several times in one call",
        ),
        (
            "    for target, weight in vertex.edges:\n        vertex.send(target, 1 - weight)",
            "uses weight in another way than alone, message",
        ),
        (
            "    for target, weight in vertex.edges:\n"
            "        vertex.send(target, min(weight, vertex.value))",
            "uses weight in another way than alone, message",
        ),
        (
            "    for target, weight in vertex.edges:\n        vertex.send(target, target)",
            "reads target in a message",
        ),
        (
            "    for target, weight in vertex.edges:\n        vertex.value = weight",
            r"line 2\) does more with its edges",
        ),
        ("    vertex.value = len(vertex.edges)", "uses vertex.edges in a way"),
        ("    vertex.request_remove_vertex(3)", "uses vertex.request_remove_vertex"),
        ("    print(vertex)", "passes vertex on"),
        ("    print(messages)", "uses messages in a way"),
        ("    vertex.value = messages[1]", "uses messages in a way"),
        ("    vertex.value = (lambda: 1)()", "has a lambda"),
        ("    try:\n        pass\n    finally:\n        pass", "has try, with or match"),
        ("    if vertex.superstep > 2:\n        return", "does not vote to halt in each call"),
        ("    return 1", "returns a value"),
        ("    vertex.value = 'far'", "sets the value to a text"),
        (
            "    for i in range(3):\n        if vertex.value < 4:\n            break\n"
            "    else:\n        vertex.vote_to_halt()\n"
            "    if vertex.superstep > 1:\n        return",
            "does not vote to halt in each call",
        ),
        (
            "    w = 0.0\n    for t, w in vertex.edges:\n        vertex.send(t, vertex.value)\n"
            "    vertex.value += w",
            "uses w besides its loop over the edges",
        ),
        (
            "    x = 5\n    for t, w in vertex.edges:\n        vertex.send(t, (x := x + 1))",
            "assigns in a message",
        ),
        (
            "    if (big := vertex.value > 1.0) or vertex.superstep == 0:\n"
            "        vertex.value = 2.0 * big",
            r"line 2\) assigns in a test",
        ),
        ("    vertex.value = self._bound", "reads self._bound, which compiled code cannot access"),
        ("    vertex.value = float(self.large)", "large does not fit in a 64-bit integer"),
        ("    vertex.value = getattr(vertex, 'superstep')", "passes vertex on|calls getattr"),
        ("    vertex.value = min(messages, default=None)", "sets the value to int64 or None"),
        ("    vertex.aggregate('seen', 1)", "line 2.* uses the aggregator 'seen', which the pro"),
        (
            "    vertex.value = vertex.aggregated('seen')",
            "the aggregator 'seen', which the program",
        ),
        ("    vertex.send_to_all('far')", "sends|Numba cannot compile compute"),
    ],
)
def test_a_method_that_cannot_be_compiled_is_refused(
    graph: bf.Graph, body: str, match: str
) -> None:
    refused(graph, body, match)


def test_a_class_that_cannot_be_compiled_is_refused(graph: bf.Graph) -> None:
    class Switches(Distances):
        def master_compute(self, master: Any) -> None:
            master.set_combine("combine")

    class Changes(Distances):
        mutates = True

    class Longest(Distances):
        def combine(self, left: Any, right: Any) -> Any:
            return left if left > right else right

    class Alone(bf.Pregel):
        initial_value, compute = Distances.initial_value, Distances.compute
        source = 1

    def doubled(method: Any) -> Any:
        return functools.wraps(method)(lambda *arguments: 2 * method(*arguments))

    class Doubled(Distances):
        @doubled
        def combine(self, left: Any, right: Any) -> Any:
            return min(left, right)

    class Other(Distances):
        def __init__(self) -> None:
            super().__init__(1)
            self.compute = self.combine  # type: ignore[assignment]

    class Named(Distances):
        aggregators: ClassVar = {"a b": bf.Aggregator("sum", 0)}

    class Identified(Ranks):
        def initial_value(self, vertex: Any) -> Any:
            return float(vertex.id)

    class Counts(Distances):
        aggregators: ClassVar = {"calls": bf.Aggregator("sum", 0)}

        def compute(self, vertex: Any, messages: Any) -> None:
            vertex.aggregate("calls", 1)
            vertex.vote_to_halt()

    for program, match in (
        (Switches(1), r"master_compute .* calls set_combine, and compiled code has one combine"),
        (Changes(1), "Changes changes the graph"),
        (Longest(1), r"combine \(.*\) is not a known combiner"),
        (Alone(), r"Alone has no combine\(\)"),
        (Doubled(1), "is not a plain method|has a decorator|does not take"),
        (Other(), "Other.compute is an attribute of the instance"),
        (Named(1), "compiled code cannot use the name of the aggregator 'a b'"),
        (Identified(), r"initial_value \(.*, line \d+\) reads vertex.id in a program that adds"),
        (Counts(1), r"compute \(.*, line \d+\) contributes to aggregators in superstep 0"),
    ):
        with pytest.raises(bf.UsageError, match=match):
            bf.run(graph, program, compile="numba")
        if not isinstance(program, Other):
            assert bf.run(graph, program, compile="auto", max_supersteps=3).stats["why"]
    with pytest.raises(bf.UsageError, match="combine adds messages needs supersteps"):
        bf.run(graph, Ranks(), compile="numba", mode="async")
    with pytest.raises(bf.UsageError, match="cannot be called with arrays"):
        bf.run(graph, Ranks(), compile="numpy")


SHADOWED = """
import brimful as bf
def min(left, right):
    return left + right
class Sums(bf.Pregel):
    flag = True
    def initial_value(self, vertex):
# A comment at the left.
        return 1.0
    def combine(self, left, right):
        return COMBINED
    def compute(self, vertex, messages):
        if vertex.superstep == 0:
            vertex.send_to_all(3.0)
        elif self.flag is True:
            vertex.value = sum(messages) + len(messages)
        vertex.vote_to_halt()
"""


def test_names_mean_what_they_mean_in_their_module(
    graph: bf.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "shadowed_names.py"
    file.write_text(SHADOWED.replace("COMBINED", "left + right"))
    module = importlib.import_module("shadowed_names")
    program = module.Sums()
    try:
        compiled = bf.run(graph, program, compile="numba")
        assert dict(compiled) == interpreted(graph, program)
        file.write_text(file.read_text().replace("3.0", "4.0"))
        linecache.checkcache()
        with pytest.raises(
            bf.UsageError, match="differs from its source file, which may have changed"
        ):
            bf.run(graph, program, compile="numba")
        file.write_text(SHADOWED.replace("COMBINED", "min(left, right)"))
        with pytest.raises(bf.UsageError, match="is not a known combiner"):
            bf.run(graph, importlib.reload(module).Sums(), compile="numba")
    finally:
        sys.modules.pop("shadowed_names", None)
