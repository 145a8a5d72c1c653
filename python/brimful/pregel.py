"""Pregel: vertex programs that compute in supersteps and send messages to vertices they name."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from brimful.errors import ProgramError, UsageError
from brimful.program import Program
from brimful.wording import did_you_mean, shortened

if TYPE_CHECKING:
    from brimful.program import Vertex

_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": operator.add,
    "min": min,
    "max": max,
    "and": lambda left, right: left and right,
    "or": lambda left, right: left or right,
}


@dataclass(frozen=True)
class Aggregator:
    """A value that all vertices of a superstep contribute to, and that all see in the next one.

    Args:
        function: "sum", "min", "max", "and", "or", or a function of two values; associative and
            commutative.
        initial: The value without contributions.
        persistent: False: every superstep begins with `initial`; true: it adds to the last value.

    Raises:
        UsageError: There is no such function.

    >>> import brimful as bf
    >>> bf.Aggregator("sum", 0).combine(3, 4)
    7
    """

    function: Literal["sum", "min", "max", "and", "or"] | Callable[[Any, Any], Any]
    initial: Any
    persistent: bool = False

    def __post_init__(self) -> None:
        """Check the function."""
        if not callable(self.function) and self.function not in _FUNCTIONS:
            raise UsageError(
                f"there is no aggregator '{self.function}'; use {', '.join(_FUNCTIONS)} or a "
                "function of two values"
            )

    @property
    def combine(self) -> Callable[[Any, Any], Any]:
        """The function of two values."""
        return self.function if callable(self.function) else _FUNCTIONS[self.function]


class PregelVertex:
    """A vertex, as `Pregel.compute` receives it.

    >>> import brimful as bf, pyarrow as pa
    >>> class Facts(bf.Pregel):
    ...     def initial_value(self, vertex):
    ...         return None
    ...     def compute(self, vertex, messages):
    ...         vertex.value = [vertex.id, vertex.degree, vertex.edges, vertex.superstep]
    ...         vertex.vote_to_halt()
    >>> with bf.Graph.from_arrow(pa.table({"source": ["a"], "target": ["b"]})) as graph:
    ...     bf.run(graph, Facts())["a"]
    ['a', 1, [('b', 1.0)], 0]
    """

    __slots__ = ("_halted", "_messages", "_seen", "_values", "superstep", "value")

    #: The value of the vertex. Assign a new one; do not change it in place.
    value: Any
    #: The number of the superstep, from 0.
    superstep: int

    def __init__(self, seen: Vertex, superstep: int, values: _Aggregated) -> None:
        """Wrap a vertex for one call of `compute`."""
        self._seen = seen
        self.superstep = superstep
        self.value = seen.state[0]
        self._halted = False
        self._messages: list[list[Any]] = []
        self._values = values

    @property
    def id(self) -> Any:
        """Id of the vertex, an integer or a string."""
        return self._seen.id

    @property
    def degree(self) -> int:
        """Number of out-edges."""
        return self._seen.degree

    @property
    def edges(self) -> list[tuple[Any, float]]:
        """Pairs of target and weight of the out-edges; the weight is 1 unless `weighted`."""
        edges: list[tuple[Any, float]] = self._seen.edges  # type: ignore[attr-defined]
        return edges

    def send(self, target: Any, message: Any) -> None:
        """Send a message to a vertex, which receives it in the next superstep.

        Args:
            target: Id of any vertex of the graph; another id ends the run as a `ProgramError`.
            message: Any object.

        Raises:
            TypeError: The target is None.

        >>> import brimful as bf, pyarrow as pa
        >>> class Far(bf.Pregel):
        ...     def initial_value(self, vertex):
        ...         return 0
        ...     def compute(self, vertex, messages):
        ...         if vertex.id == 2 and vertex.superstep == 0:
        ...             vertex.send(1, 7)
        ...         vertex.value = sum(messages)
        ...         vertex.vote_to_halt()
        >>> with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        ...     dict(bf.run(graph, Far()))
        {1: 7, 2: 0}
        """
        if target is None:
            raise TypeError("target must be the id of a vertex, not None")
        self._messages.append([target, message])

    def send_to_all(self, message: Any) -> None:
        """Send a message along every out-edge.

        Args:
            message: Any object.

        >>> import brimful as bf, pyarrow as pa
        >>> class Near(bf.Pregel):
        ...     def initial_value(self, vertex):
        ...         return 0
        ...     def compute(self, vertex, messages):
        ...         if vertex.superstep == 0:
        ...             vertex.send_to_all(7)
        ...         vertex.value = sum(messages)
        ...         vertex.vote_to_halt()
        >>> with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        ...     dict(bf.run(graph, Near()))
        {1: 0, 2: 7}
        """
        self._messages.append([None, message])

    def vote_to_halt(self) -> None:
        """Do not compute again before a message arrives.

        >>> import brimful as bf, pyarrow as pa
        >>> class Once(bf.Pregel):
        ...     def initial_value(self, vertex):
        ...         return 0
        ...     def compute(self, vertex, messages):
        ...         vertex.value += 1
        ...         vertex.vote_to_halt()
        >>> with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        ...     dict(bf.run(graph, Once()))
        {1: 1, 2: 1}
        """
        self._halted = True

    def aggregate(self, name: str, value: Any) -> None:
        """Contribute a value to an aggregator.

        Args:
            name: The name of the aggregator.
            value: Any value that its function combines.

        Raises:
            UsageError: The program has no such aggregator.

        >>> import brimful as bf, pyarrow as pa
        >>> class Edges(bf.Pregel):
        ...     aggregators = {"edges": bf.Aggregator("sum", 0)}
        ...     def initial_value(self, vertex):
        ...         return None
        ...     def compute(self, vertex, messages):
        ...         if vertex.superstep == 1:
        ...             vertex.value = vertex.aggregated("edges")
        ...             vertex.vote_to_halt()
        ...         vertex.aggregate("edges", vertex.degree)
        >>> with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        ...     dict(bf.run(graph, Edges()))
        {1: 1, 2: 1}
        """
        self._values.add(name, value)

    def aggregated(self, name: str) -> Any:
        """Return the value of an aggregator after the superstep before, or as the master set it.

        Args:
            name: The name of the aggregator.

        Returns:
            The value.

        Raises:
            UsageError: The program has no such aggregator.

        >>> import brimful as bf, pyarrow as pa
        >>> class Edges(bf.Pregel):
        ...     aggregators = {"edges": bf.Aggregator("sum", 0)}
        ...     def initial_value(self, vertex):
        ...         return None
        ...     def compute(self, vertex, messages):
        ...         if vertex.superstep == 1:
        ...             vertex.value = vertex.aggregated("edges")
        ...             vertex.vote_to_halt()
        ...         vertex.aggregate("edges", vertex.degree)
        >>> with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        ...     dict(bf.run(graph, Edges()))
        {1: 1, 2: 1}
        """
        return self._values.last(name)


class Master:
    """What `Pregel.master_compute` sees and decides before a superstep.

    >>> import brimful as bf, pyarrow as pa
    >>> class Rounds(bf.Pregel):
    ...     def initial_value(self, vertex):
    ...         return 0
    ...     def master_compute(self, master):
    ...         if master.superstep == 3:
    ...             master.halt()
    ...     def compute(self, vertex, messages):
    ...         vertex.value = vertex.superstep
    >>> with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
    ...     dict(bf.run(graph, Rounds()))
    {1: 2, 2: 2}
    """

    __slots__ = ("_values", "is_halted", "superstep", "vertices")

    #: The number of the superstep that begins, from 0.
    superstep: int
    #: Number of vertices of the graph.
    vertices: int
    #: True after `halt`.
    is_halted: bool

    def __init__(self, superstep: int, vertices: int, values: _Aggregated) -> None:
        """Begin a superstep."""
        self.superstep, self.vertices, self.is_halted = superstep, vertices, False
        self._values = values

    def aggregated(self, name: str) -> Any:
        """Return the value of an aggregator after the superstep before.

        Args:
            name: The name of the aggregator.

        Returns:
            The value; `initial` before the first superstep.

        Raises:
            UsageError: The program has no such aggregator.

        >>> import brimful as bf, pyarrow as pa
        >>> class Halved(bf.Pregel):
        ...     aggregators = {"share": bf.Aggregator("sum", 8.0)}
        ...     def initial_value(self, vertex):
        ...         return None
        ...     def master_compute(self, master):
        ...         master.set_aggregated("share", master.aggregated("share") / master.vertices)
        ...         if master.superstep == 1:
        ...             master.halt()
        ...     def compute(self, vertex, messages):
        ...         vertex.value = vertex.aggregated("share")
        >>> with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        ...     dict(bf.run(graph, Halved()))
        {1: 4.0, 2: 4.0}
        """
        return self._values.last(name)

    def set_aggregated(self, name: str, value: Any) -> None:
        """Set the value that all vertices see in this superstep.

        Args:
            name: The name of the aggregator.
            value: Any value.

        Raises:
            UsageError: The program has no such aggregator.

        >>> import brimful as bf, pyarrow as pa
        >>> class Halved(bf.Pregel):
        ...     aggregators = {"share": bf.Aggregator("sum", 8.0)}
        ...     def initial_value(self, vertex):
        ...         return None
        ...     def master_compute(self, master):
        ...         master.set_aggregated("share", master.aggregated("share") / master.vertices)
        ...         if master.superstep == 1:
        ...             master.halt()
        ...     def compute(self, vertex, messages):
        ...         vertex.value = vertex.aggregated("share")
        >>> with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        ...     dict(bf.run(graph, Halved()))
        {1: 4.0, 2: 4.0}
        """
        self._values.set(name, value)

    def halt(self) -> None:
        """End the run before this superstep.

        >>> import brimful as bf, pyarrow as pa
        >>> class Halved(bf.Pregel):
        ...     aggregators = {"share": bf.Aggregator("sum", 8.0)}
        ...     def initial_value(self, vertex):
        ...         return None
        ...     def master_compute(self, master):
        ...         master.set_aggregated("share", master.aggregated("share") / master.vertices)
        ...         if master.superstep == 1:
        ...             master.halt()
        ...     def compute(self, vertex, messages):
        ...         vertex.value = vertex.aggregated("share")
        >>> with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        ...     dict(bf.run(graph, Halved()))
        {1: 4.0, 2: 4.0}
        """
        self.is_halted = True


class Pregel(ABC):
    """The base class of Pregel programs (Malewicz et al. 2010; Apache Giraph).

    In each superstep `compute` runs for every vertex that has not voted to halt or that received
    messages; messages arrive in the next superstep. The run ends when all vertices have halted and
    no message is on its way, or when the master halts it. `bf.run` takes the program; there is no
    asynchronous mode, and no checkpoint of a program with aggregators or a master. Rules of
    `Program` hold: methods change neither the program nor messages and values in place.

    >>> import brimful as bf, pyarrow as pa
    >>> class Distances(bf.Pregel):
    ...     def initial_value(self, vertex):
    ...         return 0.0 if vertex.id == 1 else None
    ...     def combine(self, left, right):
    ...         return min(left, right)
    ...     def compute(self, vertex, messages):
    ...         found = min(messages, default=vertex.value)
    ...         shorter = found is not None and (vertex.value is None or found < vertex.value)
    ...         if shorter or (vertex.superstep == 0 and found is not None):
    ...             vertex.value = found
    ...             for target, weight in vertex.edges:
    ...                 vertex.send(target, found + weight)
    ...         vertex.vote_to_halt()
    >>> arcs = {"source": [1, 1, 2], "target": [2, 3, 3], "weight": [1.0, 3.0, 1.0]}
    >>> with bf.Graph.from_arrow(pa.table(arcs), weight="weight") as graph:
    ...     dict(bf.run(graph, Distances(), weighted=True))
    {1: 0.0, 2: 1.0, 3: 2.0}
    """

    #: The aggregators by name.
    aggregators: ClassVar[Mapping[str, Aggregator]] = {}

    @abstractmethod
    def initial_value(self, vertex: Vertex) -> Any:
        """Return the value of a vertex before the first superstep.

        Args:
            vertex: The vertex, with `id` and `degree`.

        Returns:
            Any object that the serializer of the store can write.

        Raises:
            Exception: Any exception ends the run as a `ProgramError` that names the vertex.

        >>> import brimful as bf, pyarrow as pa
        >>> class Degrees(bf.Pregel):
        ...     def initial_value(self, vertex):
        ...         return vertex.degree
        ...     def compute(self, vertex, messages):
        ...         vertex.vote_to_halt()
        >>> with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        ...     dict(bf.run(graph, Degrees()))
        {1: 1, 2: 0}
        """

    @abstractmethod
    def compute(self, vertex: PregelVertex, messages: list[Any]) -> None:
        """Compute one vertex in one superstep.

        Args:
            vertex: The vertex; its value may be assigned.
            messages: The messages that were sent to it in the superstep before: one if the program
                combines them.

        Raises:
            Exception: Any exception ends the run as a `ProgramError` that names the vertex.

        >>> import brimful as bf, pyarrow as pa
        >>> class Indegrees(bf.Pregel):
        ...     def initial_value(self, vertex):
        ...         return 0
        ...     def compute(self, vertex, messages):
        ...         vertex.value = len(messages)
        ...         if vertex.superstep == 0:
        ...             vertex.send_to_all(1)
        ...         else:
        ...             vertex.vote_to_halt()
        >>> with bf.Graph.from_arrow(pa.table({"source": [1, 2], "target": [3, 3]})) as graph:
        ...     dict(bf.run(graph, Indegrees()))
        {1: 0, 2: 0, 3: 2}
        """

    def combine(self, left: Any, right: Any) -> Any:
        """Return one message for two to the same vertex; defining it makes the program combine.

        Args:
            left: A message.
            right: A message.

        Returns:
            The message that stands for both, in whatever order they come.

        Raises:
            NotImplementedError: The class does not define the method.

        >>> import brimful as bf, pyarrow as pa
        >>> class Sums(bf.Pregel):
        ...     def initial_value(self, vertex):
        ...         return 0
        ...     def combine(self, left, right):
        ...         return left + right
        ...     def compute(self, vertex, messages):
        ...         vertex.value = messages
        ...         if vertex.superstep == 0:
        ...             vertex.send_to_all(vertex.id)
        ...         vertex.vote_to_halt()
        >>> with bf.Graph.from_arrow(pa.table({"source": [1, 2], "target": [3, 3]})) as graph:
        ...     bf.run(graph, Sums())[3]
        [3]
        """
        raise NotImplementedError(f"{type(self).__name__} has no combine()")

    def master_compute(self, master: Master) -> None:  # noqa: B027 - it need not be defined.
        """See the aggregators before each superstep, set them, and halt the run if it is done.

        Args:
            master: The superstep that begins.

        Raises:
            Exception: Any exception ends the run as a `ProgramError`.

        >>> import brimful as bf, pyarrow as pa
        >>> class Total(bf.Pregel):
        ...     aggregators = {"edges": bf.Aggregator("sum", 0)}
        ...     def initial_value(self, vertex):
        ...         return None
        ...     def master_compute(self, master):
        ...         if master.superstep == 2:
        ...             master.halt()
        ...     def compute(self, vertex, messages):
        ...         vertex.value = vertex.aggregated("edges")
        ...         vertex.aggregate("edges", vertex.degree)
        >>> with bf.Graph.from_arrow(pa.table({"source": [1, 2], "target": [2, 3]})) as graph:
        ...     dict(bf.run(graph, Total()))
        {1: 2, 2: 2, 3: 2}
        """


class _Aggregated:
    """The values of the aggregators, of the last superstep and of this one."""

    def __init__(self, aggregators: Mapping[str, Aggregator]) -> None:
        self._aggregators = aggregators
        self._last = {name: one.initial for name, one in aggregators.items()}
        self._now = dict(self._last)

    def _known(self, name: str) -> str:
        if name not in self._aggregators:
            raise UsageError(
                f"the program has no aggregator '{name}'; name it in `aggregators`"
                + did_you_mean(name, list(self._aggregators))
            )
        return name

    def add(self, name: str, value: Any) -> None:
        self._now[name] = self._aggregators[self._known(name)].combine(self._now[name], value)

    def last(self, name: str) -> Any:
        return self._last[self._known(name)]

    def set(self, name: str, value: Any) -> None:
        self._last[self._known(name)] = value
        if self._aggregators[name].persistent:
            self._now[name] = value

    def end_superstep(self) -> None:
        self._last = dict(self._now)
        for name, one in self._aggregators.items():
            if not one.persistent:
                self._now[name] = one.initial


class PregelAdapter(Program):
    """A Pregel program as a vertex program, whose states are `[value, is_halted, messages]`."""

    def __init__(self, program: Pregel, vertices: int) -> None:
        """Wrap a program for one run on so many vertices."""
        if not isinstance(program.aggregators, Mapping) or not all(
            isinstance(one, Aggregator) for one in program.aggregators.values()
        ):
            raise UsageError(
                "aggregators must be a dict of names and Aggregators, not "
                f"{shortened(program.aggregators)}"
            )
        self.program = program
        self.vertices = vertices
        combines = type(program).combine is not Pregel.combine
        self.delivery = "combined" if combines else "each"  # type: ignore[misc]
        #: The exception of `master_compute`, and its superstep.
        self.failed: tuple[int, Exception] | None = None
        self._values = _Aggregated(program.aggregators)
        self._superstep = 0
        self._is_first = True

    def check(self, mode: str, *, saving: bool) -> None:
        """Check the options of the run.

        Raises:
            UsageError: `mode` is "async", or the run makes checkpoints of values that are not in
                them.
        """
        if mode != "sync":
            raise UsageError("Pregel counts supersteps; leave out mode='async'")
        has_master = type(self.program).master_compute is not Pregel.master_compute
        if saving and (has_master or self.program.aggregators):
            raise UsageError(
                "checkpoints hold vertices, and neither aggregators nor the master; leave out "
                "checkpoint_every= and resume="
            )

    def check_master(self) -> None:
        """Raise the error of a master that ended the run.

        Raises:
            ProgramError: `master_compute` raised an exception.
        """
        if self.failed is not None:
            superstep, error = self.failed
            raised = ProgramError(
                f"master_compute failed before superstep {superstep}: "
                f"{type(error).__name__}: {error}"
            )
            raised.superstep = superstep
            raise raised from error

    def next_superstep(self, number: int) -> bool:
        """Begin a superstep; return whether the run goes on."""
        if not self._is_first:
            self._values.end_superstep()
        self._is_first, self._superstep = False, number
        master = Master(number, self.vertices, self._values)
        try:
            self.program.master_compute(master)
        except Exception as error:  # noqa: BLE001 - `check_master` raises it after the run.
            self.failed = (number, error)
            return False
        return not master.is_halted

    def initial_state(self, vertex: Vertex) -> list[Any]:
        """Return value, vote and messages before the first superstep."""
        return [self.program.initial_value(vertex), False, []]

    def signal(self, source: Vertex, target: Any, weight: float) -> Any:
        """Vertices choose the targets of their messages."""
        raise NotImplementedError

    def combine(self, left: Any, right: Any) -> Any:
        """Combine two messages."""
        return self.program.combine(left, right)

    def collect(self, vertex: Vertex, signals: list[Any]) -> list[Any]:
        """Compute a vertex."""
        computed = PregelVertex(vertex, self._superstep, self._values)
        self.program.compute(computed, signals)
        return [computed.value, computed._halted, computed._messages]
