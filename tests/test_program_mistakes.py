"""Mistakes in the class of a program: they are refused or reported before the run."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import brimful as bf


class Largest(bf.Program):
    """The largest id that reaches a vertex."""

    delivery = "combined"

    def initial_state(self, vertex: Any) -> Any:
        return vertex.id

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return source.state

    def combine(self, left: Any, right: Any) -> Any:
        return max(left, right)

    def collect(self, vertex: Any, signals: list[Any]) -> Any:
        return max([vertex.state, *signals])


class Halting(bf.Pregel):
    """Vertices that keep their ids."""

    def initial_value(self, vertex: Any) -> Any:
        return vertex.id

    def compute(self, vertex: Any, messages: list[Any]) -> None:
        vertex.vote_to_halt()


@pytest.fixture
def graph() -> Iterator[bf.Graph]:
    """A triangle."""
    with bf.Graph.from_arrow(pa.table({"source": [1, 2, 3], "target": [2, 3, 1]})) as graph:
        yield graph


def refused(graph: bf.Graph, program: Any) -> str:
    """Return the message of a program that does not run."""
    with pytest.raises(bf.UsageError) as error:
        bf.run(graph, program)
    return str(error.value)


class Forgetful(Largest):
    def collect(self, vertex: Any, signals: list[Any]) -> Any:
        max([vertex.state, *signals])


class ForgetfulPregel(Halting):
    def combine(self, left: Any, right: Any) -> Any:
        if left < right:
            return


class Yielding(Largest):
    def signal(self, source: Any, target: Any, weight: float) -> Any:
        yield source.state


class YieldingPregel(Halting):
    def compute(self, vertex: Any, messages: list[Any]) -> Any:
        yield vertex.vote_to_halt()


class Waiting(Largest):
    async def initial_state(self, vertex: Any) -> Any:
        return vertex.id


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (Forgetful(), "always returns None; return a value"),
        (ForgetfulPregel(), "always returns None; return a value"),
        (Yielding(), "is a generator, which a run cannot use; replace yield by return"),
        (YieldingPregel(), "is a generator, which a run cannot use; replace yield by return"),
        (Waiting(), "is a coroutine, which a run cannot use; leave async out"),
    ],
)
def test_methods_without_a_value_are_refused(graph: bf.Graph, program: Any, said: str) -> None:
    kind = type(program)
    method = next(name for name in vars(kind) if not name.startswith("_"))
    sentence = refused(graph, program)
    assert sentence.startswith(f"{kind.__name__}.{method} ({__file__}, line "), sentence
    assert sentence.endswith(said), sentence


@pytest.mark.parametrize("mutates", [False, True])
def test_deliveries_and_combiners_are_checked_before_the_run(
    graph: bf.Graph, mutates: bool
) -> None:
    def said(**attributes: Any) -> str:
        return refused(graph, type("Wrong", (Largest,), {"mutates": mutates} | attributes)())

    assert said(delivery="combind") == (
        "Wrong.delivery must be each, combined or latest, not combind; did you mean 'combined'?"
    )
    assert said(combiner=max).endswith('such as "min"; rename the method to combine')
    assert said(combiner="mxa").endswith("not mxa; did you mean 'max'?")
    assert said(combine=bf.Program.combine) == (
        'Wrong has delivery "combined", but no combine(); define it, or set combiner'
    )


@pytest.mark.parametrize("mutates", [False, True])
def test_a_combine_of_messages_without_a_value_is_refused(mutates: bool) -> None:
    class Sending(Halting):
        def compute(self, vertex: Any, messages: list[Any]) -> None:
            vertex.send_to_all(vertex.id)
            vertex.vote_to_halt()

        def combine(self, left: Any, right: Any) -> Any:
            if left > 100:
                return left

    class Chosen(Sending):
        def master_compute(self, master: bf.Master) -> None:
            master.set_combine("forgotten")

        def combine(self, left: Any, right: Any) -> Any:
            return left

        def forgotten(self, left: Any, right: Any) -> None:
            min(left, right)

    class Nothing(Sending):
        """Messages of None, which stand for themselves."""

        def compute(self, vertex: Any, messages: list[Any]) -> None:
            if messages:
                vertex.value = messages
            else:
                vertex.send_to_all(None)
            vertex.vote_to_halt()

        def combine(self, left: Any, right: Any) -> Any:
            return left

    with bf.read(pa.table({"source": [2, 3], "target": [1, 1]})) as star:
        for kind, method in ((Sending, "combine"), (Chosen, "forgotten")):
            kind.mutates = mutates
            with pytest.raises(bf.ProgramError, match=f"{method} returned None for 2 and 3; ret"):
                bf.run(star, kind())
        Nothing.mutates = mutates
        assert bf.run(star, Nothing())[1] == [None]


@pytest.mark.parametrize("mutates", [False, True])
@pytest.mark.parametrize("store", ["memory", "bytes"])
def test_a_combine_of_signals_without_a_value_is_refused(store: str, mutates: bool) -> None:
    class Sometimes(Largest):
        def combine(self, left: Any, right: Any) -> Any:
            if left > 100:
                return left

    Sometimes.mutates = mutates
    with (
        bf.read(pa.table({"source": [2, 3], "target": [1, 1]})) as star,
        pytest.raises(bf.ProgramError, match=r"combine returned None for (two signals|2 and 3)"),
    ):
        bf.run(star, Sometimes(), store=store)


def test_methods_with_other_parameters_are_refused(graph: bf.Graph) -> None:
    class Short(Largest):
        def aggregate(self, vertex: Any) -> Any:
            return 1

    class Long(Halting):
        def master_compute(self, master: bf.Master, superstep: int) -> None:
            master.halt()

    assert refused(graph, Short()).endswith(
        "has the parameters (self, vertex), but is called with (self, vertex, new); change the "
        "parameters"
    )
    assert refused(graph, Long()).endswith(
        "but is called with (self, master); change the parameters"
    )


def test_methods_with_further_parameters_run(graph: bf.Graph) -> None:
    class Free(Largest):
        def __init__(self, least: int) -> None:
            self.least = least

        def signal(self, *arguments: Any) -> Any:
            return arguments[0].state

        def collect(self, vertex: Any, signals: list[Any], more: int = 0) -> Any:
            return max([vertex.state, self.least, *signals])

        @staticmethod
        def initial_state(vertex: Any) -> Any:
            return vertex.id

    assert dict(bf.run(graph, Free(7))) == {1: 7, 2: 7, 3: 7}


def test_methods_that_may_return_a_value_run(graph: bf.Graph) -> None:
    class Usual(Largest):
        def collect(self, vertex: Any, signals: list[Any]) -> Any:
            return max([vertex.state, *signals]) or None

        def signal_score(self, vertex: Any) -> float:
            raise ValueError("of the program")

    with pytest.raises(bf.ProgramError, match="of the program"):
        bf.run(graph, Usual())


def test_names_that_are_nearly_right_are_reported(
    graph: bf.Graph, caplog: pytest.LogCaptureFixture
) -> None:
    class Slips(Largest):
        delivry = "latest"
        greatest = 7

        def signal_scor(self, vertex: Any) -> float:
            return self.helper()

        def helper(self) -> float:
            return 0.0

    class SlipsOfPregel(Halting):
        aggregator: ClassVar = {"changed": bf.Aggregator("sum", 0)}

        combiner = "min"

        def mastr_compute(self, master: bf.Master) -> None:
            master.halt()

    with caplog.at_level(logging.WARNING, logger="brimful"):
        bf.run(graph, Slips())
        bf.run(graph, SlipsOfPregel())
    assert [record.getMessage() for record in caplog.records] == [
        "Slips.delivry has no meaning to a run; did you mean 'delivery'?",
        "Slips.signal_scor has no meaning to a run; did you mean 'signal_score'?",
        "SlipsOfPregel.aggregator has no meaning to a run; did you mean 'aggregators'?",
        "SlipsOfPregel.combiner is for a bf.Program, and has no meaning here",
        "SlipsOfPregel.mastr_compute has no meaning to a run; did you mean 'master_compute'?",
    ]


def test_other_objects_are_refused_with_a_remedy(graph: bf.Graph) -> None:
    assert refused(graph, Largest).endswith("; pass an instance, such as Largest()")
    assert refused(graph, "pagerank").endswith("; that algorithm is brimful.pagerank(graph)")
    assert refused(graph, "pagerang").endswith("not pagerang")


class Changing(Largest):
    """The largest id, as a program that may change the graph."""

    mutates = True


@pytest.mark.parametrize(
    ("method", "place"), [("collect", 2), ("signal", 1), ("signal_score", 2), ("collect_score", 2)]
)
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_failures_in_changing_graphs_are_those_of_other_programs(
    graph: bf.Graph, method: str, place: int, mode: Any
) -> None:
    def failing(self: Any, vertex: Any, *arguments: Any) -> Any:
        if vertex.id == place and vertex.superstep in (1, None):
            raise LookupError("lost")
        return getattr(Largest, method)(self, vertex, *arguments)

    def described(base: type) -> tuple[str, Any, Any, Any]:
        program = type("Failing", (base,), {method: failing, "delivery": "each"})()
        with pytest.raises(bf.ProgramError) as caught:
            bf.run(graph, program, mode=mode)
        error = caught.value
        assert isinstance(error.__cause__, LookupError)
        return str(error), error.vertex, error.superstep, error.state

    assert described(Changing) == described(Largest)


def test_failures_besides_compute_name_their_action(graph: bf.Graph) -> None:
    class Resolving(Halting):
        mutates = True

        def compute(self, vertex: Any, messages: list[Any]) -> None:
            vertex.request_add_edge(1, 3)
            vertex.send_to_all(1)
            vertex.vote_to_halt()

        def resolve(self, id: Any, vertex: Any, changes: Any) -> Any:
            raise LookupError("lost")

    class Creating(Changing):
        def collect(self, vertex: Any, signals: list[Any]) -> Any:
            vertex.request_add_edge(9, 3)
            return vertex.state

        def create(self, id: Any) -> Any:
            raise LookupError("lost")

    class Combining(Changing):
        def combine(self, left: Any, right: Any) -> Any:
            raise LookupError("lost")

    with pytest.raises(bf.ProgramError, match=r"to resolve changes at vertex 1: Lookup.*step 1"):
        bf.run(graph, Resolving())
    with pytest.raises(bf.ProgramError, match=r"to resolve changes at vertex 9: Lookup.*step 1"):
        bf.run(graph, Creating())
    with pytest.raises(bf.ProgramError, match="failed to combine signals at vertex 1: LookupError"):
        bf.run(bf.read(pa.table({"source": [2, 3], "target": [1, 1]})), Combining())
    with pytest.raises(bf.ProgramError, match=r"failed to collect at vertex 1: .*superstep 0"):
        bf.run(graph, type("Odd", (Changing,), {"collect": lambda *_: ...})(), store="bytes")


@pytest.mark.parametrize(
    ("base", "method", "mutates", "remedy"),
    [
        (Changing, "initial_state", True, "request changes in signal or collect"),
        (Changing, "initial_state", False, "set mutates = True in the class of the program"),
        (Halting, "initial_value", True, "request changes in compute"),
    ],
)
def test_requests_before_the_first_superstep_come_with_a_remedy(
    graph: bf.Graph, base: type, method: str, mutates: bool, remedy: str
) -> None:
    def first(self: object, vertex: Any) -> int:
        vertex.request_add_edge(1, 3)
        return 0

    program = type("Wrong", (base,), {method: first, "mutates": mutates})()
    with pytest.raises(bf.ProgramError, match=f"no attribute 'request_add_edge'; {remedy}$"):
        bf.run(graph, program)


@pytest.mark.parametrize(
    ("base", "statement", "remedy"),
    [
        (Largest, "vertex.request_add_edge(1, 3)", "set mutates = True in the class of the"),
        (Largest, "vertex.state = 3", "return the new state from collect"),
        (Changing, "vertex.state = 3", "return the new state from collect"),
        (Largest, "vertex.seen = 3", "a vertex keeps nothing but its state, which collect returns"),
        (Largest, "vertex.vote_to_halt()", "vote_to_halt is for a bf.Pregel"),
        (Largest, "vertex.value", "read vertex.state"),
        (Largest, "vertex.degre", "did you mean 'degree'?"),
        (Halting, "vertex.state = 3", "assign the new value to vertex.value"),
        (Halting, "vertex.state", "read vertex.value"),
        (Halting, "vertex.edges = []", "change edges by add_edge, remove_edges and set_edge_value"),
        (Halting, "vertex.value.real = 3", "assign the new value to vertex.value"),
        (Largest, "vertex.state.real = 3", "return the new state from collect"),
        (Halting, "vertex.seen = 3", "a vertex keeps nothing but its value and its edges"),
        (Halting, "vertex.signalled", "signalled is for a bf.Program"),
        (Halting, "vertex.send_to_al(1)", "did you mean 'send_to_all'?"),
    ],
)
def test_attributes_that_a_vertex_lacks_come_with_a_remedy(
    graph: bf.Graph, base: type, statement: str, remedy: str
) -> None:
    names: dict[str, Any] = {}
    exec(f"def wrong(self, vertex, received):\n    {statement}\n    return 1\n", names)
    method = "compute" if base is Halting else "collect"
    with pytest.raises(bf.ProgramError) as caught:
        bf.run(graph, type("Wrong", (base,), {method: names["wrong"]})())
    assert isinstance(caught.value.__cause__, AttributeError)
    assert f"; {remedy}" in str(caught.value)


def test_a_compute_that_returns_the_new_value_ends_the_run(graph: bf.Graph) -> None:
    class Returning(Halting):
        def compute(self, vertex: Any, messages: list[Any]) -> Any:
            vertex.vote_to_halt()
            return max([vertex.value, *messages])

    class Calling(Halting):
        def compute(self, vertex: Any, messages: list[Any]) -> Any:
            return vertex.vote_to_halt()

    said = r"compute at vertex 1: TypeError: compute returned 1, .*; assign the new value to vertex"
    with pytest.raises(bf.ProgramError, match=said):
        bf.run(graph, Returning())
    assert dict(bf.run(graph, Calling())) == {1: 1, 2: 2, 3: 3}


@pytest.mark.parametrize("store", ["memory", "bytes"])
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (lambda vertex, _: vertex.value.append(1), "compute changed the value in place; assign"),
        (lambda _, messages: messages[0].append(1), "compute changed a message in place; change"),
    ],
)
def test_changes_in_place_have_the_words_of_pregel(
    graph: bf.Graph, changes: Any, said: str, store: str
) -> None:
    class Changed(Halting):
        def initial_value(self, vertex: Any) -> Any:
            return [vertex.id]

        def compute(self, vertex: Any, messages: list[Any]) -> None:
            if vertex.superstep == 0:
                vertex.send_to_all(vertex.value)
            else:
                changes(vertex, messages)
            vertex.vote_to_halt()

    with pytest.raises(bf.ProgramError) as caught:
        bf.run(graph, Changed(), store=store)
    assert f"failed to compute at vertex 1: TypeError: {said}" in str(caught.value)
    assert str(caught.value.__cause__).startswith(said)


def test_other_attribute_errors_have_no_remedy(graph: bf.Graph) -> None:
    class Wrong(Largest):
        def collect(self, vertex: Any, signals: list[Any]) -> Any:
            return vertex.state.real.vote_to_halt

    with pytest.raises(bf.ProgramError) as caught:
        bf.run(graph, Wrong())
    assert str(caught.value).endswith("; superstep 0, state 1")


def test_an_attribute_that_the_master_lacks_gets_a_suggestion(graph: bf.Graph) -> None:
    class Wrong(Halting):
        def master_compute(self, master: bf.Master) -> None:
            master.hallt()  # type: ignore[attr-defined]

    with pytest.raises(bf.ProgramError, match=r"no attribute 'hallt'; did you mean 'halt'\?$"):
        bf.run(graph, Wrong())
