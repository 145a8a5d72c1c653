"""Checkpoints of programs in plain Python: resumed runs, and refusals."""

from __future__ import annotations

import math
import threading
from collections import deque, namedtuple
from collections.abc import Callable
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa
import pytest

import brimful as bf
from brimful.identity import text_of
from nightly import with_nightly
from plain_programs import Distances, made


class Fragile(Distances):
    """Fails, as a machine does, after so many collects; its states do not depend on this."""

    def __init__(self, source: int, left: list[float]) -> None:
        super().__init__(source)
        self._left = left

    def collect(self, vertex: bf.Vertex, signals: list[float]) -> float:
        self._left[0] -= 1
        if self._left[0] <= 0:
            raise RuntimeError("a power cut")
        return super().collect(vertex, signals)


class Eager(bf.Program):
    """Counts signals; every vertex would signal whenever it is asked."""

    def initial_state(self, vertex: bf.Vertex) -> int:
        return 0

    def signal(self, source: bf.Vertex, target: int, weight: float) -> int:
        return 1

    def collect(self, vertex: bf.Vertex, signals: list[int]) -> int:
        return cast("int", vertex.state) + len(signals)

    def signal_score(self, vertex: bf.Vertex) -> float:
        return 1.0


@pytest.mark.parametrize("store", with_nightly(["kv"], ["memory", "bytes", "file"]))
def test_only_vertices_that_are_due_signal_in_a_resumed_run(store: str, tmp_path: Path) -> None:
    # More ids than a block of a checkpoint has; the first vertices collect once and then wait.
    count = 40_000
    chains = pa.table({"source": range(2 * count), "target": range(count, 3 * count)})
    given: dict[str, Any] = {"checkpoint_every": 1, "checkpoint_dir": tmp_path / "checkpoints"}
    with bf.Graph.from_arrow(chains) as graph:
        url = store if store in ("memory", "bytes") else f"{store}:{tmp_path / 'vertices'}"
        whole = bf.run(graph, Eager(), store=url)
        bf.run(graph, Eager(), store=url, max_supersteps=1, **given)
        rest = bf.run(graph, Eager(), store="memory", resume=True, threads=1, **given)
        assert rest.stats["resumed_from"] == 1
        assert dict(rest) == dict(whole)
        assert rest.stats["signals"] == whole.stats["signals"]


@pytest.mark.parametrize(("mode", "every"), [("sync", 1), ("async", "0.001s")])
@pytest.mark.parametrize("delivery", ["each", "combined", "latest"])
def test_a_program_goes_on_from_a_checkpoint(
    tmp_path: Path, mode: str, every: int | str, delivery: str
) -> None:
    # Long enough for a checkpoint by time.
    last = 200 if mode == "sync" else 20_000
    chain = pa.table({"source": range(last), "target": range(1, last + 1)})
    given: dict[str, Any] = {"mode": mode, "checkpoint_dir": tmp_path / "checkpoints", "threads": 2}

    class Mine(Fragile):
        pass

    Mine.delivery = delivery  # type: ignore[assignment]
    with bf.Graph.from_arrow(chain) as graph:
        with pytest.raises(bf.ProgramError, match="a power cut"):
            bf.run(graph, Mine(0, [last * 3 / 4]), checkpoint_every=every, **given)
        with pytest.raises(bf.UsageError, match="source was 0 there and is 1 here"):
            bf.run(graph, Mine(1, [math.inf]), resume=True, **given)
        with pytest.raises(bf.UsageError, match="serializer was json"):
            bf.run(graph, Mine(0, [math.inf]), resume=True, serializer="pickle", **given)
        # In another store, by another number of workers.
        given["threads"] = 1
        rest = bf.run(graph, Mine(0, [math.inf]), resume=True, store="bytes", **given)
        assert rest.stats["resumed_from"] >= 1
        # What was done before is not done again.
        assert rest.stats["store_figures"]["vertices_collected"] < last
        assert list(rest.values()) == [float(n) for n in range(last + 1)]
        if mode == "sync":
            whole = bf.run(graph, Mine(0, [math.inf]), mode=mode)
            figures = ("supersteps", "signals")
            assert [rest.stats[name] for name in figures] == [whole.stats[name] for name in figures]
        # Nobody needs them any more.
        assert not (tmp_path / "checkpoints").exists()


class Reach(bf.Program):
    """Counts steps of some length from some vertices."""

    step = 1

    def __init__(self, sources: Any, note: Any = None) -> None:
        self.sources = sources
        self._note = note

    def initial_state(self, vertex: bf.Vertex) -> int | None:
        return 0 if vertex.id in self.sources else None

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> int | None:
        return None if source.state is None else source.state + self.step

    def collect(self, vertex: bf.Vertex, signals: list[int]) -> int:
        return min(signals if vertex.state is None else [*signals, vertex.state])


class Kept(Reach):
    """Has every kind of member."""

    __slots__ = ("slot",)

    def __init__(self, slot: int) -> None:
        super().__init__([0])
        self.slot = slot

    @cached_property
    def lengths(self) -> dict[int, int]:
        return {0: self.slot}

    @staticmethod
    def least(signals: list[int]) -> int:
        return min(signals)


class Mixin:
    """No program by itself."""

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> int | None:
        return None


def named(*fields: str) -> Any:
    """Return a named tuple of ids."""
    return namedtuple("Pair", fields)(0, 1)


def mixed(signal: Any) -> bf.Program:
    """Return a program whose `signal` is that of another class."""
    mixin = type("Mixin", (), {"signal": signal})
    kind = type("Mixed", (mixin, Reach), {"__module__": __name__, "__qualname__": "Mixed"})
    return cast(bf.Program, kind([0]))


def extended(base: type[Reach]) -> bf.Program:
    """Return a program whose `collect` calls that of its base class."""

    class Extended(base):  # type: ignore[misc, valid-type]
        def collect(self, vertex: bf.Vertex, signals: list[int]) -> int:
            return cast("int", super().collect(vertex, signals))

    return cast(bf.Program, Extended([0]))


def changed(**members: object) -> type[Reach]:
    """Return a class of the same name with other members."""
    return type("Reach", (Reach,), {"__module__": __name__, "__qualname__": "Reach"} | members)


def test_a_checkpoint_of_another_program_is_not_gone_on_from(tmp_path: Path) -> None:
    def collect(self: Reach, vertex: bf.Vertex, signals: list[int]) -> int:
        return max(signals)

    def factor(times: int) -> Any:
        def signal(self: Reach, source: bf.Vertex, target: Any, weight: float) -> int | None:
            return None if source.state is None else source.state * times

        return signal

    def holding(times: int) -> bf.Program:
        def weigh(depth: int) -> int:
            return times if depth == 0 else weigh(depth - 1)

        program = Reach([0])
        program.weigh = weigh  # type: ignore[attr-defined]
        return program

    def cached(times: int) -> Any:
        return cache(lambda *given: times)

    same = {"signal": factor(2), "collect": collect}
    kept = Kept(1)
    assert kept.lengths == {0: 1}
    cases: list[tuple[bf.Program, bf.Program, str | None]] = [
        (Reach([0]), Reach([50, 51]), r"sources was list\[0\] there and is list\[50, 51\] here"),
        (Reach({"a", "b", 0}), Reach({"b", "a", 0, 1}), "sources was"),
        (Reach({0: [1, {2}]}), Reach({0: [1, {3}]}), "sources was"),
        (Reach(named("first", "last")), Reach(named("last", "first")), "sources was"),
        (Reach(named("first", "last")), Reach(named("first", "last")), None),
        (Reach(range(1)), Reach(range(2)), "sources was"),
        (Reach([0]), changed(step=10)([0]), "attribute step was 1 there and is 10 here"),
        (changed(mode=1)([0]), changed(mode=2)([0]), "attribute mode was 1 there"),
        (Reach([0]), changed(collect=collect)([0]), "code of methods was"),
        (changed(**same)([0]), changed(**same | {"signal": factor(3)})([0]), "code of methods was"),
        (changed(**same)([0]), changed(**same)([0]), None),
        (Kept(1), Kept(2), "attribute slot was 1 there and is 2 here"),
        (Kept(1), kept, None),
        (holding(1), holding(2), "attribute weigh was"),
        (holding(1), holding(1), None),
        (changed(weigh=cached(1))([0]), changed(weigh=cached(2))([0]), "code of methods was"),
        (changed(weigh=cached(1))([0]), changed(weigh=cached(1))([0]), None),
        (
            changed(weigh=staticmethod(cached(1)))([0]),
            changed(weigh=staticmethod(cached(2)))([0]),
            "code of methods was",
        ),
        (Reach({0: cached(1)}), Reach({0: cached(2)}), "sources was"),
        (mixed(Reach.signal), mixed(Mixin.signal), "code of methods was"),
        (extended(Reach), extended(changed(collect=collect)), "code of methods was"),
        (extended(Reach), extended(Reach), None),
        (Reach({"a", "b", 0}), Reach({0, "b", "a"}), None),
        (Reach(deque([0, {0, 8}])), Reach(deque([0, {8, 0}])), None),
        (Reach([0], threading.Lock()), Reach([0], "another note"), None),
    ]
    chain = pa.table({"source": range(60), "target": range(1, 61)})
    with bf.Graph.from_arrow(chain) as graph:
        for number, (before, after, says) in enumerate(cases):
            given: dict[str, Any] = {"checkpoint_dir": tmp_path / str(number), "threads": 1}
            stopped = bf.run(graph, before, checkpoint_every=1, max_supersteps=3, **given)
            assert stopped.stats["supersteps"] == 3
            if says is None:
                rest = bf.run(graph, after, resume=True, **given)
                assert rest.stats["resumed_from"] == 3
            else:
                with pytest.raises(bf.UsageError, match=says):
                    bf.run(graph, after, resume=True, **given)
        with pytest.raises(bf.UsageError, match=r"attribute 'sources'.*underscore"):
            bf.run(graph, Reach(threading.Lock()), checkpoint_every=1, **given)

        # The functions of aggregators are compared by their code.
        def counting(times: int) -> bf.Program:
            counts = {"n": bf.Aggregator(lambda left, right: left + times * right, 0)}
            return changed(aggregators=counts, aggregate=lambda self, vertex, new: 1)([0])

        given = {"checkpoint_dir": tmp_path / "counts"}
        bf.run(graph, counting(1), checkpoint_every=1, max_supersteps=3, **given)
        with pytest.raises(bf.UsageError, match="attribute aggregators was"):
            bf.run(graph, counting(2), resume=True, **given)
        assert bf.run(graph, counting(1), resume=True, **given).stats["resumed_from"] == 3
        # Nothing has to be compared.
        bf.run(graph, changed(lock=threading.Lock())([0]), max_supersteps=1)


class Holder:
    """An object of a user."""

    def __init__(self, **parts: Any) -> None:
        vars(self).update(parts)


def objects(ids: list[Any]) -> np.ndarray[Any, Any]:
    """Return an array of objects."""
    return np.array([*ids, None], dtype=object)


@pytest.mark.parametrize(
    "holding",
    [
        lambda ids: Holder(ids=ids, more={"ids": ids}),
        lambda ids: deque([ids]),
        lambda ids: partial(min, ids),
        lambda ids: partial(lambda one: one in ids),
        lambda ids: objects([ids]),
    ],
)
def test_objects_that_hold_equal_sets_are_equal(holding: Callable[[set[int]], object]) -> None:
    # As those of strings in two processes, these sets are in different orders.
    first, second = {0, 8}, {8, 0}
    assert list(first) != list(second)
    text = text_of(holding(first), "sources")
    assert text_of(holding(second), "sources") == text
    assert text_of(holding({0, 9}), "sources") != text


def test_objects_that_refer_to_one_another_are_compared() -> None:
    def ring(last: int) -> Holder:
        nodes = [Holder(number=number) for number in range(30)]
        for node in nodes:
            node.others = nodes  # type: ignore[attr-defined]
        nodes[-1].number = last  # type: ignore[attr-defined]
        return nodes[0]

    assert text_of(ring(1), "sources") == text_of(ring(1), "sources") != text_of(ring(2), "sources")
    shared: Any = [1]
    for _ in range(50):
        shared = [shared, Holder(left=shared, right=shared)]
    assert len(text_of(shared, "sources")) < 50
    for nested in (lambda inner: [inner], lambda inner: Holder(inner=inner)):
        deep: object = 1
        for _ in range(3000):
            deep = nested(deep)
        with pytest.raises(bf.UsageError, match=r"attribute 'sources' .*nested too deeply"):
            text_of(deep, "sources")


class Counted(bf.Pregel):
    """Counts its vertices in each superstep; the master notes when it acts."""

    aggregators: ClassVar = {"computed": bf.Aggregator("sum", 0)}

    def __init__(self) -> None:
        self.acted: list[int] = []

    def initial_value(self, vertex: Any) -> int:
        return 0

    def master_compute(self, master: Any) -> None:
        self.acted.append(master.superstep)

    def compute(self, vertex: Any, messages: list[Any]) -> None:
        vertex.aggregate("computed", 1)


def test_a_run_that_resumes_at_its_limit_ends_as_it_did(tmp_path: Path) -> None:
    given: dict[str, Any] = {"checkpoint_every": 1, "checkpoint_dir": tmp_path / "checkpoints"}
    first, again = Counted(), Counted()
    with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        whole = bf.run(graph, first, max_supersteps=3, compile="never", **given)
        rest = bf.run(graph, again, max_supersteps=3, compile="never", resume=True, **given)
    assert first.acted == [0, 1, 2] and again.acted == []
    assert rest.stats["aggregates"] == whole.stats["aggregates"] == {"computed": 2}
    assert rest.stats["reason"] == whole.stats["reason"]
    assert dict(rest) == dict(whole)


def test_wrong_checkpoints_are_refused(tmp_path: Path) -> None:
    with made() as graph:
        with pytest.raises(bf.UsageError, match="does nothing alone"):
            bf.run(graph, Distances(3), checkpoint_dir=tmp_path / "checkpoints")
        with pytest.raises(bf.UsageError, match="make checkpoints by time"):
            bf.run(
                graph,
                Distances(3),
                mode="async",
                checkpoint_every=5,
                checkpoint_dir=tmp_path / "checkpoints",
            )
        # The clock cannot hold that time, which never comes.
        never: dict[str, Any] = {"checkpoint_every": "1e19s", "checkpoint_dir": tmp_path / "never"}
        assert bf.run(graph, Distances(3), mode="async", **never)[3] == 0.0
