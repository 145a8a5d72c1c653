"""Programs that signal, collect and request changes of the graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import brimful as bf

STORES = ["memory", "bytes", "file"]


def graph_of(sources: list[Any], targets: list[Any]) -> bf.Graph:
    return bf.Graph.from_arrow(pa.table({"source": sources, "target": targets}))


def url(store: str, folder: Path) -> str:
    return f"file:{folder / 'vertices'}" if store == "file" else store


class Hops(bf.Program):
    """The number of arcs from the least vertex; states are lists of numbers."""

    mutates = True

    def initial_state(self, vertex: Any) -> list[int]:
        return [0 if vertex.id == 1 else 99]

    def signal(self, source: Any, target: Any, weight: float) -> int | None:
        hops: int = source.state[0]
        return None if hops == 99 else hops + 1

    def collect(self, vertex: Any, signals: list[int]) -> list[int]:
        return [min(vertex.state[0], *signals)]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("delivery", ["each", "combined"])
def test_without_requests_a_program_gives_the_answer_of_one_that_does_not_change(
    tmp_path: Path, store: str, delivery: str
) -> None:
    class Changing(Hops):
        def combine(self, left: int, right: int) -> int:
            return min(left, right)

    class Still(Changing):
        mutates = False

    Changing.delivery = Still.delivery = delivery  # type: ignore[assignment]
    random = np.random.default_rng(5)
    with graph_of(random.integers(1, 90, 200).tolist(), random.integers(1, 90, 200).tolist()) as g:
        for options in ({}, {"max_supersteps": 2}, {"max_supersteps": 0}):
            found = bf.run(g, Changing(), store=url(store, tmp_path), **options)
            expected = bf.run(g, Still(), **options)
            assert dict(found) == dict(expected)
            assert found.stats["supersteps"] == expected.stats["supersteps"]
            assert found.stats["signals"] >= expected.stats["signals"]
        found = bf.run(g, Changing(), store=url(store, tmp_path), mode="async")
        assert dict(found) == dict(bf.run(g, Still(), mode="async"))


@pytest.mark.parametrize("store", STORES)
def test_requests_add_and_remove_vertices_and_edges(tmp_path: Path, store: str) -> None:
    class Changes(Hops):
        def collect(self, vertex: Any, signals: list[int]) -> list[int]:
            if vertex.id == 2 and vertex.state == [99]:
                vertex.request_add_edge(2, 7)
                vertex.request_add_edge(8, 1)
                vertex.request_add_vertex(9, [50], [(3, 1.0)])
                vertex.request_remove_vertex(4)
                vertex.request_remove_edges(1, 5)
            return super().collect(vertex, signals)

    # 7 and 8 are created: 7 by the signal along the new edge, 8 by its edge.
    with graph_of([1, 1, 6], [2, 5, 4]) as graph:
        found = bf.run(graph, Changes(), store=url(store, tmp_path))
        assert dict(found) == {
            **{1: [0], 2: [1], 3: [51], 5: [1], 6: [99], 7: [2], 8: [99]},
            9: [50],
        }


def test_a_vertex_signals_along_a_new_edge_once_and_again_when_it_changes() -> None:
    class Counts(bf.Program):
        mutates = True
        received: ClassVar[list[tuple[Any, int]]] = []

        def initial_state(self, vertex: Any) -> int:
            return 0

        def signal(self, source: Any, target: Any, weight: float) -> float:
            if source.id == 1 and source.superstep == 0:
                source.request_add_edge(2, 3, 2.5)
            return weight

        def collect(self, vertex: Any, signals: list[float]) -> int:
            self.received.append((vertex.id, vertex.superstep))
            return vertex.state

    with graph_of([1], [2]) as graph:
        assert dict(bf.run(graph, Counts())) == {1: 0, 2: 0, 3: 0}
    assert Counts.received == [(2, 0), (3, 1)]


@pytest.mark.parametrize(
    ("method", "supersteps", "received"),
    [
        *[("signal", 0, None), ("signal", 1, []), ("signal", 2, [1])],
        *[("collect", 1, None), ("collect", 2, []), ("collect", 3, [2])],
    ],
)
def test_requests_take_effect_with_the_next_signals(
    method: str, supersteps: int, received: list[int] | None
) -> None:
    class Asks(bf.Program):
        mutates = True

        def initial_state(self, vertex: Any) -> list[int]:
            return []

        def ask(self, vertex: Any, doing: str) -> None:
            if (doing, vertex.superstep) == (method, 0):
                vertex.request_add_edge(8, 9)

        def signal(self, source: Any, target: Any, weight: float) -> int:
            self.ask(source, "signal")
            superstep: int = source.superstep
            return superstep

        def collect(self, vertex: Any, signals: list[int]) -> list[int]:
            self.ask(vertex, "collect")
            return signals

    with graph_of([1], [2]) as graph:
        found = dict(bf.run(graph, Asks(), max_supersteps=supersteps))
    # The edge creates 8, and its first signal 9.
    created = {} if received is None else {8: []}
    assert found == {1: [], 2: found[2]} | created | ({9: received} if received else {})


def test_an_edge_creates_its_source_but_not_its_target() -> None:
    class Silent(Hops):
        def signal(self, source: Any, target: Any, weight: float) -> None:
            source.request_add_edge(8, 9)

        def create(self, id: Any) -> Any:
            return [-id]

    with graph_of([1], [2]) as graph:
        assert dict(bf.run(graph, Silent(), max_supersteps=2)) == {1: [0], 2: [99], 8: [-8]}


def test_scores_and_create_are_those_of_the_program() -> None:
    class Scored(Hops):
        signal_threshold = 0.5

        def initial_state(self, vertex: Any) -> list[int]:
            return [vertex.id]

        def signal(self, source: Any, target: Any, weight: float) -> int:
            source.request_add_edge(target, 20 + target)
            return 100

        def signal_score(self, vertex: Any) -> float:
            assert vertex.has_signalled == (vertex.signalled is not None)
            return float(vertex.signalled is None and vertex.id < 3)

        def collect_score(self, vertex: Any, signals: list[int]) -> float:
            return float(vertex.id != 4)

        def collect(self, vertex: Any, signals: list[int]) -> list[int]:
            return [*vertex.state, len(signals)]

        def create(self, id: Any) -> Any:
            return None if id == 25 else [-id]

    with graph_of([1, 2, 2], [3, 4, 5]) as graph:
        assert dict(bf.run(graph, Scored())) == {1: [1], 2: [2], 3: [3, 1], 4: [4], 5: [5, 1]}

    class Loud(Scored):
        def signal_score(self, vertex: Any) -> float:
            return float(not vertex.has_signalled and vertex.id < 6)

    with graph_of([1], [5]) as graph:
        # 5 has an edge to 25, whose creation is refused.
        assert dict(bf.run(graph, Loud())) == {1: [1], 5: [5, 1]}


@pytest.mark.parametrize("defines_score", [False, True])
@pytest.mark.parametrize("changes", [False, True])
def test_other_methods_see_the_last_signal_as_described(defines_score: bool, changes: bool) -> None:
    class Sees(Hops):
        mutates = changes
        seen: ClassVar[list[Any]] = []

        def collect(self, vertex: Any, signals: list[int]) -> list[int]:
            self.seen.append((vertex.signalled, vertex.has_signalled))
            return super().collect(vertex, signals)

    class Scores(Sees):
        def signal_score(self, vertex: Any) -> float:
            return super().signal_score(vertex)

    with graph_of([1, 2], [2, 1]) as graph:
        bf.run(graph, Scores() if defines_score else Sees(), max_supersteps=1)
    signalled = [99] if defines_score and not changes else None
    assert (signalled, defines_score or changes) in Sees.seen


def test_a_resolver_decides_about_conflicts() -> None:
    class Adds(Hops):
        conflicts: ClassVar[list[Any]] = []

        def signal(self, source: Any, target: Any, weight: float) -> None:
            source.request_add_vertex(9, [source.id])
            source.request_remove_vertex(3)

        def resolve(self, id: Any, vertex: Any, changes: Any) -> Any:
            self.conflicts.append((id, len(changes.added), changes.is_removed))
            if id == 3:
                return vertex
            return bf.VertexData([sum(one.value[0] for one in changes.added)])

    with graph_of([1, 2], [3, 3]) as graph:
        assert dict(bf.run(graph, Adds())) == {1: [0], 2: [99], 3: [99], 9: [3]}
    assert sorted(Adds.conflicts) == [(3, 0, True), (9, 2, False)]


def test_a_run_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    class Chain(Hops):
        def collect(self, vertex: Any, signals: list[int]) -> list[int]:
            if vertex.id < 8:
                vertex.request_add_edge(vertex.id, vertex.id + 1)
            return super().collect(vertex, signals)

    saved = {"checkpoint_every": 1, "checkpoint_dir": str(tmp_path / "c")}
    with graph_of([1], [2]) as graph:
        whole = dict(bf.run(graph, Chain()))
        assert whole == {n: [n - 1] for n in range(1, 9)}
        bf.run(graph, Chain(), max_supersteps=3, **saved)
        assert dict(bf.run(graph, Chain(), resume=True, **saved)) == whole


def test_an_exception_and_a_trace_show_the_state() -> None:
    class Fails(Hops):
        def collect(self, vertex: Any, signals: list[int]) -> list[int]:
            raise ValueError("no more")

    with graph_of([1], [2]) as graph:
        with pytest.raises(bf.ProgramError, match="ValueError: no more") as raised:
            bf.run(graph, Fails())
        assert (raised.value.vertex, raised.value.state) == (2, [99])
        traced = bf.run(graph, Hops(), trace=[1])
        assert set(traced.trace["after"].drop_null().to_pylist()) == {"[0]"}


def test_forms_that_cannot_change_the_graph_are_refused_before_the_run(tmp_path: Path) -> None:
    class Latest(Hops):
        delivery = "latest"

    class Fields(Hops):
        state_type = np.dtype([("hops", "i8")])

    class Aggregates(Hops):
        aggregators: ClassVar = {"changed": bf.Aggregator("sum", 0)}

    class Least(Hops):
        delivery, combiner = "combined", "min"

    with graph_of([1], [2]) as graph:
        for program, match, options in (
            (Latest(), 'mutates and delivery "latest"', {}),
            (Fields(), "mutates and state_type", {}),
            (Aggregates(), "mutates and aggregators", {}),
            (Hops(), 'serializer="str" writes one text', {"serializer": "str", "store": "bytes"}),
            (Least(), "Least changes the graph. Leave mutates out, or", {"on": "shards"}),
            (Least(), "Least changes the graph. Leave mutates out, or", {"compile": "numba"}),
            (Least(), "Least changes the graph. Leave mutates out, or", {"compile": "numpy"}),
            (Hops(), "changes the graph has no tolerance", {"tolerance": 0.1}),
            (Hops(), "not kept", {"store": f"file:{tmp_path}/kept", "keep": True}),
        ):
            with pytest.raises(bf.UsageError, match=match):
                bf.run(graph, program, **options)


def test_a_state_cannot_be_assigned() -> None:
    class Assigned(bf.Program):
        mutates = True

        def initial_state(self, vertex: Any) -> Any:
            return 0

        def signal(self, source: Any, target: Any, weight: float) -> Any:
            return 1

        def collect(self, vertex: Any, signals: list[Any]) -> Any:
            vertex.state = len(signals)
            return vertex.state

    graph = bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]}))
    with graph, pytest.raises(bf.ProgramError, match="AttributeError: property 'state'"):
        bf.run(graph, Assigned())
