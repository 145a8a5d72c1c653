"""Pregel programs that change the graph, and code between supersteps."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import brimful as bf

STORES = ["memory", "bytes", "file"]


def graph_of(sources: list[Any], targets: list[Any]) -> bf.Graph:
    return bf.Graph.from_arrow(pa.table({"source": sources, "target": targets}))


def url(store: str, folder: Path) -> str:
    return f"file:{folder / 'vertices'}" if store == "file" else store


class Halting(bf.Pregel):
    """Acts in the first superstep; the values are [degree, messages] of the last computed one."""

    mutates = True

    def initial_value(self, vertex: Any) -> Any:
        return None

    def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
        if vertex.superstep == 0:
            self.act(vertex)
        vertex.value = [vertex.degree, sorted(messages)]
        if vertex.superstep == 1:
            vertex.vote_to_halt()

    def act(self, vertex: bf.PregelVertex) -> None:
        raise NotImplementedError


@pytest.mark.parametrize("store", STORES)
def test_requests_are_resolved_in_giraphs_order(tmp_path: Path, store: str) -> None:
    class Changes(Halting):
        def act(self, vertex: bf.PregelVertex) -> None:
            if vertex.id == "a":
                # The vertex is removed before one with its id is added, and gets the edge last.
                vertex.request_add_edge("b", "z")
                vertex.request_add_vertex("b", 7, [("x", 1.0), ("y", 1.0)])
                vertex.request_remove_vertex("b")
                vertex.request_remove_edges("c", "a")
                vertex.request_remove_vertex("d")
                vertex.request_add_vertex("a", "nobody sees this")
                vertex.send("new", 5)
                vertex.send("b", 6)

    with graph_of(["a", "b", "c", "c", "d"], ["b", "c", "a", "b", "a"]) as graph:
        found = bf.run(graph, Changes(), store=url(store, tmp_path))
        assert dict(found) == {
            "a": [1, []],
            "b": [3, [6]],
            "c": [1, []],
            "new": [0, [5]],
        }
        assert list(found) == ["a", "b", "c", "new"] and len(found) == 4
        assert "d" not in found and found["new"] == [0, [5]]
        with pytest.raises(bf.NotFoundError, match='no vertex "d"'):
            found["d"]


class Sleeps(bf.Pregel):
    """The values are the supersteps in which a vertex computed, and the last degree."""

    mutates = True

    def initial_value(self, vertex: Any) -> Any:
        return [[], 0]

    def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
        vertex.value = [[*vertex.value[0], vertex.superstep], vertex.degree]
        if vertex.id == 1 and vertex.superstep == 1:
            vertex.request_add_edge(2, 7)
            vertex.request_add_vertex(2, [[], 0])
            vertex.request_remove_edges(3, 1)
            vertex.request_add_edge(4, 7)
            vertex.send(4, "wake")
            vertex.request_remove_vertex(5)
            vertex.request_add_vertex(5, [[], 0])
            vertex.request_add_vertex(9, [[], 0])
        elif vertex.id == 1 and vertex.superstep == 3:
            vertex.send(2, "wake")
        if vertex.id != 1 or vertex.superstep == 3:
            vertex.vote_to_halt()


@pytest.mark.parametrize("store", STORES)
def test_requests_alone_wake_no_vertex_but_new_ones(tmp_path: Path, store: str) -> None:
    with graph_of([1, 2, 3, 4, 5], [2, 1, 1, 1, 1]) as graph:
        found = bf.run(graph, Sleeps(), store=url(store, tmp_path))
    assert dict(found) == {
        **{1: [[0, 1, 2, 3], 1], 2: [[0, 4], 2], 3: [[0], 1], 4: [[0, 2], 2]},
        **{5: [[2], 0], 9: [[2], 0]},
    }


def test_another_object_of_a_resolver_is_a_new_vertex() -> None:
    class Replaces(Sleeps):
        def resolve(self, id: Any, vertex: Any, changes: bf.VertexChanges) -> Any:
            if id == 3:
                return bf.VertexData(vertex.value, [(4, 1.0), (5, 1.0)])
            return super().resolve(id, vertex, changes)

    with graph_of([1, 2, 3, 4, 5], [2, 1, 1, 1, 1]) as graph:
        assert bf.run(graph, Replaces())[3] == [[0, 2], 2]


@pytest.mark.parametrize("store", STORES)
def test_requests_wake_no_vertex_without_supersteps(tmp_path: Path, store: str) -> None:
    class Wakes(Sleeps):
        def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
            vertex.value = [[*vertex.value[0], vertex.superstep], vertex.degree]
            if vertex.id == 1 and vertex.superstep == 0:
                vertex.request_add_edge(2, 7)
                vertex.request_remove_edges(3, 1)
                vertex.send(4, "pass on")
            elif "pass on" in messages and vertex.id < 9:
                vertex.send(vertex.id + 1, "pass on")
            elif "pass on" in messages:
                vertex.send(2, "wake")
            vertex.vote_to_halt()

    with graph_of([1, 2, 3, 4], [2, 1, 1, 1]) as graph:
        found = bf.run(graph, Wakes(), mode="async", store=url(store, tmp_path), threads=1)
    assert found[2] == [[0, 1], 2] and found[3] == [[0], 1]


@pytest.mark.parametrize("ids", [[5, -3, 40], ["m", "a", "z"]])
def test_created_vertices_come_in_the_order_of_ids(ids: list[Any]) -> None:
    class Creates(Halting):
        def act(self, vertex: bf.PregelVertex) -> None:
            if vertex.id == 1 or vertex.id == "k":
                for one in ids:
                    vertex.send(one, one)

    first, second = (1, 7) if isinstance(ids[0], int) else ("k", "p")
    with graph_of([first], [second]) as graph:
        found = bf.run(graph, Creates())
        assert list(found) == sorted([first, second, *ids])
        assert all(found[one] == [0, [one]] for one in ids)


class Grows(bf.Pregel):
    """Each last vertex adds another, up to 50; odd ones go."""

    mutates = True

    def initial_value(self, vertex: Any) -> Any:
        return 0

    def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
        vertex.value = sum(messages, vertex.value)
        if vertex.superstep == vertex.id and vertex.id < 50:
            vertex.add_edge(vertex.id + 1)
            vertex.send_to_all(1)
            if vertex.id % 2:
                vertex.request_remove_vertex(vertex.id)
        vertex.vote_to_halt()


def test_a_chain_grows_and_shrinks() -> None:
    with graph_of([0], [0]) as graph:
        found = bf.run(graph, Grows())
    assert dict(found) == dict.fromkeys(range(0, 51, 2), 1)
    assert found.to_arrow()["vertex"].to_pylist() == list(range(0, 51, 2))


@pytest.mark.parametrize("last", [1, 2, 7, 30])
@pytest.mark.parametrize("store", STORES)
def test_a_checkpoint_holds_created_and_removed_vertices(
    tmp_path: Path, store: str, last: int
) -> None:
    given: dict[str, Any] = {
        "store": url(store, tmp_path),
        "checkpoint_dir": tmp_path / "checkpoints",
        "checkpoint_every": 1,
    }
    with graph_of([0], [0]) as graph:
        whole = dict(bf.run(graph, Grows()))
        stopped = bf.run(graph, Grows(), max_supersteps=last, **given)
        assert len(stopped) < len(whole)
        rest = bf.run(graph, Grows(), resume=True, **given)
        assert (rest.stats["resumed_from"], dict(rest)) == (last, whole)


@pytest.mark.parametrize("fields", [None, [("length", "f4")]])
def test_a_graph_without_vertices_is_an_empty_table(fields: Any) -> None:
    class Gone(bf.Pregel):
        mutates, value_type = True, fields

        def initial_value(self, vertex: bf.Vertex) -> Any:
            return (0.0,)

        def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
            vertex.request_remove_vertex(vertex.id)

    with graph_of([1], [2]) as graph:
        table = bf.run(graph, Gone()).to_arrow()
    assert table.num_rows == 0
    assert table.schema.field("vertex").type == pa.int64()
    assert table.column_names == ["vertex", "state" if fields is None else "length"]


@pytest.mark.parametrize("store", STORES)
def test_edges_change_at_once_and_stay_changed(tmp_path: Path, store: str) -> None:
    class Edges(bf.Pregel):
        def initial_value(self, vertex: Any) -> Any:
            return 0

        def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
            if vertex.superstep == 0:
                vertex.remove_edges(2)
                vertex.set_edge_value(3, 4.5)
                vertex.add_edge(1, 9.0)
                vertex.send_to_all(vertex.id)
            else:
                vertex.value = [sorted(messages), [list(edge) for edge in vertex.edges]]
                vertex.vote_to_halt()

    with graph_of([1, 1], [2, 3]) as graph:
        assert dict(bf.run(graph, Edges(), store=url(store, tmp_path))) == {
            1: [[1, 2, 3], [[3, 4.5], [1, 9.0]]],
            2: [[], [[1, 9.0]]],
            3: [[1], [[1, 9.0]]],
        }


def test_messages_are_combined_in_a_program_that_mutates() -> None:
    class Sums(Halting):
        def combine(self, left: int, right: int) -> int:
            return left + right

        def act(self, vertex: bf.PregelVertex) -> None:
            vertex.send(9, 2)

    with graph_of([1, 2], [2, 3]) as graph:
        assert bf.run(graph, Sums())[9] == [0, [6]]


def test_the_worker_context_surrounds_supersteps_and_the_master_comes_between() -> None:
    calls: list[str] = []

    class Context(bf.WorkerContext):
        def pre_application(self) -> None:
            calls.append("pre_application")

        def pre_superstep(self) -> None:
            calls.append(f"pre {self.superstep} {self.aggregated('computed')}")

        def post_superstep(self) -> None:
            self.aggregate("computed", 100)
            calls.append(f"post {self.superstep}")

        def post_application(self) -> None:
            calls.append(f"post_application {self.aggregated('computed')}")

    class Program(bf.Pregel):
        aggregators: ClassVar[dict[str, bf.Aggregator]] = {"computed": bf.Aggregator("sum", 0)}

        def worker_context(self) -> bf.WorkerContext:
            return Context()

        def initial_value(self, vertex: Any) -> Any:
            return None

        def master_compute(self, master: bf.Master) -> None:
            calls.append(f"master {master.superstep}")

        def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
            assert isinstance(vertex.context, Context)
            vertex.aggregate("computed", 1)
            if vertex.superstep == 1:
                vertex.vote_to_halt()

    with graph_of([1], [2]) as graph:
        bf.run(graph, Program())
    assert calls == [
        *["pre_application", "master 0", "pre 0 0", "post 0"],
        *["master 1", "pre 1 102", "post 1", "post_application 102"],
    ]


def test_the_master_switches_computation_and_combiner() -> None:
    class Switching(bf.Pregel):
        def initial_value(self, vertex: Any) -> Any:
            return []

        def combine(self, left: int, right: int) -> int:
            return left + right

        def largest(self, left: int, right: int) -> int:
            return max(left, right)

        def master_compute(self, master: bf.Master) -> None:
            if master.superstep == 1:
                master.set_combine("largest")
            if master.superstep == 2:
                master.set_combine(None)
            if master.superstep == 3:
                master.set_compute("finish")

        def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
            vertex.value = [*vertex.value, sorted(messages)]
            vertex.send_to_all(vertex.id)

        def finish(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
            vertex.value = [*vertex.value, sorted(messages), "finished"]
            vertex.vote_to_halt()

    with graph_of([1, 2, 3], [4, 4, 4]) as graph:
        assert bf.run(graph, Switching())[4] == [[], [6], [3], [1, 2, 3], "finished"]


def test_a_trace_shows_messages_and_values() -> None:
    class Sums(bf.Pregel):
        def initial_value(self, vertex: Any) -> Any:
            return 0

        def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
            vertex.value += sum(messages)
            if vertex.superstep == 0:
                vertex.send_to_all(3)
                vertex.send(1, 4)
            vertex.vote_to_halt()

    with graph_of([1, 2], [2, 3]) as graph:
        trace = bf.run(graph, Sums(), trace=[2]).trace
        assert trace is not None
        columns = ["superstep", "call", "received", "before", "after", "sent"]
        rows = [tuple(row.values()) for row in trace.select(columns).to_pylist()]
        assert rows == [
            (None, "initial_state", None, None, "0", None),
            (0, "collect", [], "0", "0", ["all: 3", "1: 4"]),
            (1, "collect", ["3"], "0", "3", []),
        ]


def test_mistakes_are_named() -> None:
    class Silent(bf.Pregel):
        def initial_value(self, vertex: Any) -> Any:
            return None

        def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
            vertex.vote_to_halt()

    class Unsaid(Silent):
        def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
            vertex.request_remove_vertex(1)

    class OfOtherType(Silent):
        mutates = True

        def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
            vertex.send("one", 1)

    class Context(bf.WorkerContext):
        def post_superstep(self) -> None:
            raise ValueError("no more")

    class Failing(Silent):
        def worker_context(self) -> bf.WorkerContext:
            return Context()

    class Switching(Silent):
        def master_compute(self, master: bf.Master) -> None:
            master.set_compute("missing")

    class Combining(Silent):
        def master_compute(self, master: bf.Master) -> None:
            master.set_combine("compute")

    with graph_of([1], [2]) as graph:
        for program, message in (
            (Unsaid(), "set mutates = True"),
            (OfOtherType(), 'ids of this graph have the type int64, and "one" has another'),
            (Failing(), "post_superstep failed at superstep 0: ValueError: no more"),
            (Switching(), "Switching has no method 'missing'"),
            (Combining(), "Combining does not define combine"),
        ):
            with pytest.raises(bf.ProgramError, match=message):
                bf.run(graph, program)


@pytest.mark.parametrize(
    ("request_of", "match"),
    [
        (lambda vertex: vertex.request_add_edge(2, None), "by its id, not None"),
        (lambda vertex: vertex.request_remove_edges(2, None), "by its id, not None"),
        (lambda vertex: vertex.request_add_vertex(7, 0, [(None, 1.0)]), "by its id, not None"),
        (
            lambda vertex: vertex.request_add_vertex(7, 0, [(1, 2, 3)]),
            r"an edge is a pair of a target and a value, not \(1, 2, 3\)",
        ),
        (lambda vertex: vertex.request_add_vertex(7, 0, ["ab"]), "an edge is a pair"),
        (lambda vertex: vertex.request_add_vertex(7, 0, 3), "edges must be pairs .*, not 3"),
    ],
)
def test_an_edge_to_no_vertex_is_refused_at_the_request(request_of: Any, match: str) -> None:
    class Wrong(Halting):
        def act(self, vertex: bf.PregelVertex) -> None:
            if vertex.id == 1:
                request_of(vertex)

    # At the vertex that requests it, in the superstep of the request.
    with graph_of([1], [2]) as graph, pytest.raises(bf.ProgramError, match=match) as raised:
        bf.run(graph, Wrong())
    assert (raised.value.vertex, raised.value.superstep) == (1, 0)
    assert isinstance(raised.value.__cause__, bf.UsageError)


@pytest.mark.parametrize(("edge", "match"), [((None, 1.0), "not None"), ((3,), "a pair")])
def test_an_edge_to_no_vertex_is_refused_in_a_resolver(edge: Any, match: str) -> None:
    class Wrong(Halting):
        def act(self, vertex: bf.PregelVertex) -> None:
            vertex.request_add_vertex(7)

        def resolve(self, id: Any, vertex: Any, changes: bf.VertexChanges) -> Any:
            return bf.VertexData(0, [edge])

    failed = f"failed to resolve changes at vertex 7: UsageError: .*{match}"
    with graph_of([1], [2]) as graph, pytest.raises(bf.ProgramError, match=failed):
        bf.run(graph, Wrong())


@pytest.mark.parametrize("store", STORES)
def test_changes_without_supersteps(tmp_path: Path, store: str) -> None:
    class Growth(bf.Pregel):
        """A path that grows to 20 vertices, whose ends leave the first vertex out."""

        mutates = True

        def initial_value(self, vertex: Any) -> list[Any]:
            return []

        def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
            if vertex.superstep == 0 and vertex.id == 1:
                vertex.request_add_edge(2, 3)
                vertex.send(3, "grow")
            if "grow" in messages and vertex.id < 20:
                vertex.request_add_edge(vertex.id, vertex.id + 1)
                vertex.send(vertex.id + 1, "grow")
            elif "grow" in messages:
                vertex.request_remove_vertex(1)
            vertex.value = [*vertex.value, *messages]
            vertex.vote_to_halt()

    with graph_of([1], [2]) as graph:
        found = bf.run(graph, Growth(), mode="async", store=url(store, tmp_path))
        assert dict(found) == {2: []} | {vertex: ["grow"] for vertex in range(3, 21)}


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_resolver_of_its_own_decides(tmp_path: Path, store: str, mode: Any) -> None:
    """It sees conflicting requests together, and creates vertices or leaves messages out."""

    class Decides(bf.Pregel):
        mutates = True
        seen: ClassVar[list[Any]] = []

        def initial_value(self, vertex: Any) -> Any:
            return []

        def resolve(self, id: Any, vertex: Any, changes: bf.VertexChanges) -> Any:
            values = sorted(one.value for one in changes.added)
            self.seen.append((id, vertex is not None, values, changes.is_removed))
            if id == "ignored":
                assert changes.has_messages
                return None
            if id == "kept":
                # The removal is refused, and each target has one edge at most.
                edges = {**dict(vertex.edges), **dict(changes.added_edges)}
                return bf.VertexData(vertex.value, sorted(edges.items()))
            if id == "twice":
                return bf.VertexData(values)
            if id == "failing":
                raise LookupError("nobody is there")
            return super().resolve(id, vertex, changes)

        def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
            if vertex.superstep == 0 and vertex.id in ("a", "b"):
                vertex.request_add_vertex("twice", vertex.id)
                vertex.request_add_edge("kept", "a", 3.0)
                vertex.request_remove_vertex("kept")
                vertex.send("ignored", 1)
                vertex.send("created", 2)
            vertex.value = [*vertex.value, *messages, vertex.degree]
            vertex.vote_to_halt()

    class Fails(Decides):
        def compute(self, vertex: bf.PregelVertex, messages: list[Any]) -> None:
            vertex.send("failing", 1)
            vertex.vote_to_halt()

    with graph_of(["a", "b", "kept"], ["b", "kept", "b"]) as graph:
        found = dict(bf.run(graph, Decides(), store=url(store, tmp_path), mode=mode))
        if mode == "sync":
            assert found == {
                "a": [1],
                "b": [1],
                "created": [2, 2, 0],
                "kept": [1, 2],
                "twice": ["a", "b", 0],
            }
            assert sorted(Decides.seen) == [
                ("created", False, [], False),
                ("ignored", False, [], False),
                ("kept", True, [], True),
                ("twice", False, ["a", "b"], False),
            ]
        assert set(found) == {"a", "b", "created", "kept", "twice"}
        failed = "failed to resolve changes at vertex failing: LookupError: nobody is there"
        with pytest.raises(bf.ProgramError, match=failed):
            bf.run(graph, Fails(), store=url(store, tmp_path), mode=mode)
