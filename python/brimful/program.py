"""Programs of your own in plain Python, on vertices in a store."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Protocol

import brimful
from brimful.errors import UsageError
from brimful.options.checks import word
from brimful.packages import numpy
from brimful.pregel.changes import NewVertex, VertexChanges, VertexData, resolved
from brimful.wording import literal


class Vertex(Protocol):
    """A vertex as the methods of a program receive it; it cannot be changed.

    >>> import brimful as bf, pyarrow as pa
    >>> class Seen(bf.Program):
    ...     def initial_state(self, vertex):
    ...         signalled = [vertex.has_signalled, vertex.signalled]
    ...         return [vertex.id, vertex.degree, vertex.superstep, *signalled]
    ...     def signal(self, source, target, weight):
    ...         return None
    ...     def collect(self, vertex, signals):
    ...         return vertex.state
    >>> with bf.Graph.from_arrow(pa.table({"source": ["a"], "target": ["b"]})) as graph:
    ...     bf.run(graph, Seen())["a"]
    ['a', 1, None, False, None]
    """

    @property
    def id(self) -> Any:
        """Id of the vertex, an integer or a string."""
        ...

    @property
    def state(self) -> Any:
        """Its state, which must not be changed in place.

        In `initial_state` it is None, or the last state of a vertex of a `VertexStore`.
        """
        ...

    @property
    def signalled(self) -> Any:
        """Its state when it last signalled; None before that.

        Only `signal_score` may rely on it: elsewhere it is None, unless the class defines
        `signal_score` and does not set `mutates`.
        """
        ...

    @property
    def has_signalled(self) -> bool:
        """True if it has signalled.

        Only `signal_score` may rely on it: elsewhere it is False, unless the class defines
        `signal_score` or sets `mutates`.
        """
        ...

    @property
    def degree(self) -> int:
        """Number of out-edges."""
        ...

    @property
    def superstep(self) -> int | None:
        """The number of the superstep, from 0; None in `initial_state` and without supersteps."""
        ...


class Program(ABC):
    """The base class of vertex programs (Signal/Collect: Stutz, Bernstein, Cohen 2010).

    A vertex whose state changed since it last signalled signals along its out-edges; a vertex that
    received signals collects them into a new state. The run ends when no vertex has anything to do.
    Methods are pure: they change neither the program nor their arguments. States in the store
    "memory", and signals between two calls, are the objects themselves. A `collect` that changes
    one in place is a `ProgramError`; the first calls are checked, and samples of the later ones.

    >>> import brimful as bf, pyarrow as pa
    >>> class Largest(bf.Program):
    ...     delivery = "combined"
    ...     def initial_state(self, vertex):
    ...         return vertex.id
    ...     def signal(self, source, target, weight):
    ...         return source.state
    ...     def combine(self, left, right):
    ...         return max(left, right)
    ...     def collect(self, vertex, signals):
    ...         return max([vertex.state, *signals])
    >>> with bf.Graph.from_arrow(pa.table({"source": [9, 1], "target": [1, 2]})) as graph:
    ...     dict(bf.run(graph, Largest()))
    {1: 9, 2: 9, 9: 9}
    """

    #: How signals reach a vertex: "each" signal is collected once; "combined": `combine` merges
    #: those to one vertex; "latest": a vertex collects the latest signal of each edge every time.
    delivery: ClassVar[Literal["each", "combined", "latest"]] = "each"

    #: How signals to one vertex become one: `collect` then receives a list of that one signal, even
    #: with delivery "latest". None: by `combine`, or not at all. A compiled program needs one:
    #: "sum" with delivery "latest" (a vertex collects the latest signals of all its edges), "min",
    #: "max", "or" and "and" (of bits) with delivery "combined".
    combiner: ClassVar[Literal["sum", "min", "max", "or", "and"] | None] = None

    #: The fields of a state of several numbers, a structured type of NumPy such as
    #: `numpy.dtype([("rank", "f8"), ("seen", "u4")])`. Methods then return a tuple of all fields
    #: for a state, and read `vertex.state.rank`; the result has a column for each field. None: a
    #: state is any object, in compiled programs one number.
    state_type: ClassVar[numpy.dtype[Any] | None] = None

    #: True if methods request changes of the graph, by methods of `vertex` as those of
    #: `PregelVertex`: `request_add_vertex(id, state, edges)`, `request_remove_vertex(id)`,
    #: `request_add_edge(source, target, weight)` and `request_remove_edges(source, target)`.
    #: Requests of `signal` take effect before the vertices collect in the same superstep. Those of
    #: `collect` take effect in the next superstep, after the vertices have signalled there; they
    #: are lost if `max_supersteps` ends the run before. A vertex with a new edge signals again
    #: along all its edges. Such a program is interpreted, and its delivery is "each" or "combined".
    mutates: ClassVar[bool] = False

    #: Values over all vertices whose state a superstep changes, by name; see `aggregate`. In the
    #: next superstep `collect` reads them as `self.aggregated.NAME`; `stats["aggregates"]` has the
    #: last ones.
    aggregators: ClassVar[Mapping[str, brimful.Aggregator]] = {}

    #: The values of `aggregators` after the previous superstep, during a run.
    aggregated: Any = None

    #: A vertex signals if its `signal_score` exceeds this.
    signal_threshold: ClassVar[float] = 0.01

    #: A vertex collects if its `collect_score` exceeds this; else the signals are dropped.
    collect_threshold: ClassVar[float] = 0.0

    @abstractmethod
    def initial_state(self, vertex: Vertex) -> Any:
        """Return the first state of a vertex.

        Args:
            vertex: The vertex; its state is None, or that of the last run on a `VertexStore`.

        Returns:
            Any object that the serializer can write.

        Raises:
            Exception: Any exception ends the run as a `ProgramError` that names the vertex.

        >>> import brimful as bf, pyarrow as pa
        >>> class Ones(bf.Program):
        ...     def initial_state(self, vertex):
        ...         return 1
        ...     def signal(self, source, target, weight):
        ...         return None
        ...     def collect(self, vertex, signals):
        ...         return vertex.state
        >>> with bf.Graph.from_arrow(pa.table({"source": [7], "target": [8]})) as graph:
        ...     dict(bf.run(graph, Ones()))
        {7: 1, 8: 1}
        """

    @abstractmethod
    def signal(self, source: Vertex, target: Any, weight: float) -> Any:
        """Return the signal along one edge.

        Args:
            source: The vertex that signals.
            target: Id of the vertex that will collect.
            weight: Weight of the edge; 1 unless the run is `weighted`.

        Returns:
            Any object; None for no signal.

        Raises:
            Exception: Any exception ends the run as a `ProgramError` that names the vertex.

        >>> import brimful as bf, pyarrow as pa
        >>> class Received(bf.Program):
        ...     def initial_state(self, vertex):
        ...         return []
        ...     def signal(self, source, target, weight):
        ...         return [source.id, target, weight] if not source.state else None
        ...     def collect(self, vertex, signals):
        ...         return signals
        >>> table = pa.table({"source": [7], "target": [8], "weight": [0.5]})
        >>> with bf.Graph.from_arrow(table) as graph:
        ...     bf.run(graph, Received(), weighted=True)[8]
        [[7, 8, 0.5]]
        """

    @abstractmethod
    def collect(self, vertex: Vertex, signals: list[Any]) -> Any:
        """Return the new state of a vertex that received signals.

        Args:
            vertex: The vertex with its present state.
            signals: All waiting signals ("each", "combined"), or the latest of each edge
                ("latest").

        Returns:
            A new object; the vertex signals again if it differs from the present state.

        Raises:
            Exception: Any exception ends the run as a `ProgramError` that names the vertex.

        >>> import brimful as bf, pyarrow as pa
        >>> class Count(bf.Program):
        ...     def initial_state(self, vertex):
        ...         return 0
        ...     def signal(self, source, target, weight):
        ...         return 1
        ...     def collect(self, vertex, signals):
        ...         return len(signals)
        >>> with bf.Graph.from_arrow(pa.table({"source": [7, 6], "target": [8, 8]})) as graph:
        ...     bf.run(graph, Count())[8]
        2
        """

    def aggregate(self, vertex: Vertex, new: Any) -> Any:
        """Return the contributions of a vertex to `aggregators`.

        It is called when `collect` has changed the state of a vertex: `aggregators` see changes. A
        persistent sum of `new - vertex.state` therefore follows the sum of all states.

        Args:
            vertex: The vertex with its state before.
            new: Its new state.

        Returns:
            A value for each of `aggregators` in their order, in a tuple; the value alone if there
            is one.

        Raises:
            NotImplementedError: The class has `aggregators`, and does not define the method.
            Exception: Any exception ends the run as a `ProgramError` that names the vertex.

        >>> import brimful as bf, pyarrow as pa
        >>> class Largest(bf.Program):
        ...     delivery, combiner = "combined", "max"
        ...     aggregators = {"changed": bf.Aggregator("sum", 0, persistent=True)}
        ...     def initial_state(self, vertex):
        ...         return vertex.id
        ...     def signal(self, source, target, weight):
        ...         return source.state
        ...     def collect(self, vertex, signals):
        ...         return max(vertex.state, signals[0])
        ...     def aggregate(self, vertex, new):
        ...         return 1
        >>> with bf.Graph.from_arrow(pa.table({"source": [9, 1], "target": [1, 2]})) as graph:
        ...     bf.run(graph, Largest()).stats["aggregates"]
        {'changed': 2}
        """
        raise NotImplementedError(f"{type(self).__name__} has aggregators, but no aggregate()")

    def signal_score(self, vertex: Vertex) -> float:
        """Return the signal score of a vertex; it signals if this exceeds `signal_threshold`.

        Args:
            vertex: The vertex; `vertex.signalled` is its state when it last signalled.

        Returns:
            A number. By default 1 if the vertex has not signalled yet, or if its state changed
            since then, else 0; NaN equals NaN. The asynchronous mode with the scheduler
            "throughput" lets the highest scores signal first.

        Raises:
            Exception: Any exception ends the run as a `ProgramError` that names the vertex.

        >>> import brimful as bf, pyarrow as pa
        >>> class Ranks(bf.Program):
        ...     delivery, signal_threshold = "latest", 1e-3
        ...     def initial_state(self, vertex):
        ...         return 0.15
        ...     def signal(self, source, target, weight):
        ...         return source.state / source.degree
        ...     def collect(self, vertex, signals):
        ...         return 0.15 + 0.85 * sum(signals)
        ...     def signal_score(self, vertex):
        ...         return abs(vertex.state - (vertex.signalled or 0.0))
        >>> with bf.Graph.from_arrow(pa.table({"source": [7, 8], "target": [8, 7]})) as graph:
        ...     round(bf.run(graph, Ranks())[8], 2)
        0.99
        """
        return float(not vertex.has_signalled or differ(vertex.signalled, vertex.state))

    def collect_score(self, vertex: Vertex, signals: list[Any]) -> float:
        """Return the collect score of a vertex; it collects if this exceeds `collect_threshold`.

        Args:
            vertex: The vertex.
            signals: The signals that it would collect.

        Returns:
            A number; by default 1.

        Raises:
            Exception: Any exception ends the run as a `ProgramError` that names the vertex.

        >>> import brimful as bf, pyarrow as pa
        >>> class Loud(bf.Program):
        ...     def initial_state(self, vertex):
        ...         return vertex.id
        ...     def signal(self, source, target, weight):
        ...         return source.state
        ...     def collect_score(self, vertex, signals):
        ...         return max(signals) - 5
        ...     def collect(self, vertex, signals):
        ...         return max([vertex.state, *signals])
        >>> with bf.Graph.from_arrow(pa.table({"source": [4, 9], "target": [1, 2]})) as graph:
        ...     dict(bf.run(graph, Loud()))
        {1: 1, 2: 9, 4: 4, 9: 9}
        """
        return 1.0

    def cache_score(self, vertex: Vertex) -> float:
        """Return the priority of a vertex in the cache "score:N".

        It is called when a vertex enters the cache; the cache evicts those below the average.
        Without this method the cache keeps the vertices that are used most.

        Args:
            vertex: The vertex.

        Returns:
            A number.

        Raises:
            Exception: Any exception ends the run as a `ProgramError` that names the vertex.

        >>> import brimful as bf, pyarrow as pa
        >>> class Hubs(bf.Program):
        ...     def initial_state(self, vertex):
        ...         return 1
        ...     def signal(self, source, target, weight):
        ...         return source.state
        ...     def collect(self, vertex, signals):
        ...         return sum(signals)
        ...     def cache_score(self, vertex):
        ...         return vertex.degree
        >>> with bf.Graph.from_arrow(pa.table({"source": [7, 7], "target": [8, 9]})) as graph:
        ...     dict(bf.run(graph, Hubs(), store="bytes", cache="score:1", max_supersteps=1))
        {7: 1, 8: 1, 9: 1}
        """
        return 0.0

    def create(self, id: Any) -> Any:
        """Return the first state of a vertex that signals reach and that does not exist.

        The vertex is created without edges, and collects the signals. It is called for targets of
        edges that were added to a `VertexStore`, or whose vertices were removed: all edges of a
        graph have both vertices. Without this method such signals are dropped.

        Args:
            id: Id of the vertex.

        Returns:
            The state; None drops the signals. `stats["store_figures"]` counts those as
            `signals_undelivered`.

        Raises:
            Exception: Any exception ends the run as a `ProgramError` that names the vertex.

        >>> import brimful as bf, os, pyarrow as pa, tempfile
        >>> class Hops(bf.Program):
        ...     def initial_state(self, vertex):
        ...         return 0 if vertex.id == 1 else 99
        ...     def signal(self, source, target, weight):
        ...         return source.state + 1
        ...     def collect(self, vertex, signals):
        ...         return min(vertex.state, *signals)
        ...     def create(self, id):
        ...         return 99
        >>> folder = tempfile.mkdtemp()
        >>> path = os.path.join(folder, "pair.brimful")
        >>> bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]}), path=path).close()
        >>> with bf.VertexStore.create(f"file:{folder}/vertices", path) as store:
        ...     _ = store.run(Hops())
        ...     store.add_edge(2, 3)
        ...     dict(store.run(Hops(), start="kept"))
        {1: 0, 2: 1, 3: 2}
        """
        return None

    def resolve(
        self, id: Any, vertex: VertexData | None, changes: VertexChanges
    ) -> VertexData | None:
        """Return a vertex as the requests for it leave it, in a program that `mutates`.

        The default is that of `Pregel.resolve`. A vertex that a signal to it or an edge from it
        creates has the state of `create` if the class defines it, else of `initial_state`.

        Args:
            id: Id of the vertex.
            vertex: The vertex, whose value is its state; None if it does not exist.
            changes: The requests.

        Returns:
            The vertex; None if it does not exist. It then collects nothing.

        Raises:
            Exception: Any exception ends the run as a `ProgramError` that names the vertex.

        >>> import brimful as bf, pyarrow as pa
        >>> class Strict(bf.Program):
        ...     mutates = True
        ...     def initial_state(self, vertex):
        ...         return vertex.id
        ...     def signal(self, source, target, weight):
        ...         return source.state
        ...     def collect(self, vertex, signals):
        ...         vertex.request_add_edge(vertex.id, vertex.id + 1)
        ...         return vertex.state
        ...     def resolve(self, id, vertex, changes):
        ...         return None if id > 4 else super().resolve(id, vertex, changes)
        >>> with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        ...     dict(bf.run(graph, Strict()))
        {1: 1, 2: 2, 3: 3, 4: 4}
        """

        def make() -> VertexData | None:
            defines_create = type(self).create is not Program.create
            state = self.create(id) if defines_create else self.initial_state(NewVertex(id))
            return None if defines_create and state is None else VertexData(state)

        return resolved(vertex, changes, make)

    def combine(self, left: Any, right: Any) -> Any:
        """Combine two signals to one vertex, in any order, into one; for `delivery` "combined".

        Args:
            left: A signal.
            right: A signal.

        Returns:
            The signal that stands for both.

        Raises:
            NotImplementedError: `delivery` is "combined", and the class does not define the method.

        >>> import brimful as bf, pyarrow as pa
        >>> class Total(bf.Program):
        ...     delivery = "combined"
        ...     def initial_state(self, vertex):
        ...         return 0
        ...     def signal(self, source, target, weight):
        ...         return weight
        ...     def combine(self, left, right):
        ...         return left + right
        ...     def collect(self, vertex, signals):
        ...         return sum(signals)
        >>> with bf.Graph.from_arrow(pa.table({"source": [7, 6], "target": [8, 8]})) as graph:
        ...     bf.run(graph, Total())[8]
        2.0
        """
        if self.combiner is not None:
            return combiner_of(self)(left, right)
        raise NotImplementedError(
            f"{type(self).__name__} has delivery 'combined', but no combine()"
        )


def differ(old: Any, new: Any) -> bool:
    """Return whether two states, or fields of them, differ; NaN equals NaN."""
    if isinstance(new, tuple) and hasattr(new, "_fields") and type(new) is type(old):
        return any(
            one is not other and differ(one, other) for one, other in zip(old, new, strict=True)
        )
    # NaN differs from itself.
    return bool(new != old and (new == new or old == old))


#: The functions of the named combiners.
_COMBINERS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": operator.add,
    "min": min,
    "max": max,
    "or": operator.or_,
    "and": operator.and_,
}


def combiner_of(program: Program) -> Callable[[Any, Any], Any]:
    """Return the function of a named combiner.

    Raises:
        UsageError: No combiner has that name.
    """
    return _COMBINERS[word(program.combiner, "combiner", list(_COMBINERS))]


def thresholds_of(program: Program) -> tuple[float, float]:
    """Return the signal and the collect threshold of a program.

    Raises:
        UsageError: A threshold is not a number, or no float can hold it.
    """
    found = []
    for name in ("signal_threshold", "collect_threshold"):
        value = getattr(program, name)
        try:
            number = float(value) if isinstance(value, (int, float)) else math.nan
        except OverflowError as error:
            raise UsageError(f"{name} is an integer that no float can hold") from error
        if math.isnan(number):
            raise UsageError(f"{name} must be a number, not {literal(value)}")
        found.append(number)
    return found[0], found[1]
