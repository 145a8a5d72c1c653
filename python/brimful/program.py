"""Programs of your own in plain Python, on vertices in a store."""

from __future__ import annotations

import heapq
import math
import operator
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from brimful.errors import UsageError
from brimful.io.output import write_table
from brimful.options.described import EXPORT, described
from brimful.per_vertex import PerVertex, vertex_id
from brimful.wording import counted, shortened

if TYPE_CHECKING:
    import numpy
    import pyarrow

    from brimful import _native
    from brimful.pregel.aggregators import Aggregator
    from brimful.record import Record

#: Rows that come from the native side at once.
_BATCH = 1 << 12


class Vertex(Protocol):
    """A vertex as the methods of a program receive it; it cannot be changed.

    >>> import brimful as bf, pyarrow as pa
    >>> class Seen(bf.Program):
    ...     def initial_state(self, vertex):
    ...         return [vertex.id, vertex.degree, vertex.superstep, vertex.signalled]
    ...     def signal(self, source, target, weight):
    ...         return None
    ...     def collect(self, vertex, signals):
    ...         return vertex.state
    >>> with bf.Graph.from_arrow(pa.table({"source": ["a"], "target": ["b"]})) as graph:
    ...     bf.run(graph, Seen())["a"]
    ['a', 1, None, None]
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
        """Its state when it last signalled; None before that, and outside `signal_score`."""
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

    #: How signals to one vertex become one: `collect` then receives a list of that one signal,
    #: also with delivery "latest". None: by `combine`, or not at all. A compiled program needs
    #: one: "sum" with delivery "latest" (a vertex collects the latest signals of all its edges),
    #: "min", "max" and "or" (of bits) with delivery "combined".
    combiner: ClassVar[Literal["sum", "min", "max", "or"] | None] = None

    #: The fields of a state of several numbers, a structured type of NumPy such as
    #: `numpy.dtype([("rank", "f8"), ("seen", "u4")])`. Methods then return a tuple of all fields
    #: for a state, and read `vertex.state.rank`; the result has a column for each field. None: a
    #: state is any object, in compiled programs one number.
    state_type: ClassVar[numpy.dtype[Any] | None] = None

    #: Values over all vertices whose state a superstep changes, by name; see `aggregate`. In the
    #: next superstep `collect` reads them as `self.aggregated.NAME`; `stats["aggregates"]` has the
    #: last ones.
    aggregators: ClassVar[Mapping[str, Aggregator]] = {}

    #: The values of `aggregators` after the superstep before, during a run.
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
        """Return how urgently a vertex should signal; it does if this exceeds `signal_threshold`.

        Args:
            vertex: The vertex; `vertex.signalled` is its state when it last signalled.

        Returns:
            A number. By default 1 if the state changed since the vertex last signalled, else 0. The
            asynchronous mode with the scheduler "throughput" lets the highest scores signal first.

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
        return float(vertex.state != vertex.signalled)

    def collect_score(self, vertex: Vertex, signals: list[Any]) -> float:
        """Return how urgently a vertex should collect; it does if this exceeds `collect_threshold`.

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

    def combine(self, left: Any, right: Any) -> Any:
        """Return one signal for two to the same vertex, in any order; for `delivery` "combined".

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


#: The functions of the named combiners.
_COMBINERS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": operator.add,
    "min": min,
    "max": max,
    "or": operator.or_,
}


def combiner_of(program: Program) -> Callable[[Any, Any], Any]:
    """Return the function of a named combiner.

    Raises:
        UsageError: No combiner has that name.
    """
    if program.combiner not in _COMBINERS:
        raise UsageError(
            f"there is no combiner {shortened(program.combiner)}; choose {', '.join(_COMBINERS)} "
            "or None"
        )
    return _COMBINERS[program.combiner]


class States(PerVertex[Any]):
    """The states that a run ended with: a mapping from every vertex to its state.

    Columns are `vertex` and `state`, of the type that Arrow finds for all states, or a column for
    each field where the program has `state_type`. `stats` has mode,
    supersteps, seconds, signals, the figures of store and cache, and why the program was not
    compiled.

    >>> import brimful as bf, pyarrow as pa
    >>> class Degree(bf.Program):
    ...     def initial_state(self, vertex):
    ...         return vertex.degree
    ...     def signal(self, source, target, weight):
    ...         return None
    ...     def collect(self, vertex, signals):
    ...         return vertex.state
    >>> with bf.Graph.from_arrow(pa.table({"source": [1, 1], "target": [2, 3]})) as graph:
    ...     states = bf.run(graph, Degree())
    >>> dict(states), states.top(1), states.column, states.stats["mode"], states.trace
    ({1: 2, 2: 0, 3: 0}, [(1, 2)], 'state', 'sync', None)
    """

    def __init__(
        self,
        native: _native.States,
        why: str,
        *,
        is_pregel: bool = False,
        trace: Callable[[], pyarrow.Table] | None = None,
        record: Record | None = None,
        aggregates: Mapping[str, Any] | None = None,
    ) -> None:
        """Wrap the native states; called by `run`, which gives the reason for interpretation.

        A state of Pregel begins with the value.
        """
        self._native, self._why = native, why
        self._is_pregel, self._trace = is_pregel, trace
        self._record, self._aggregates = record, aggregates

    @property
    def trace(self) -> pyarrow.Table | None:
        """The calls for the vertices of `trace=`, a table; None without.

        Columns are `superstep`, `vertex`, `call` (the method), `received` (signals or messages),
        `before` and `after` (states), `sent` (target and signal) and `score`; objects are texts.
        """
        return None if self._trace is None else self._trace()

    @property
    def column(self) -> str:
        """Name of the value column."""
        return "state"

    @property
    def stats(self) -> dict[str, Any]:
        """Mode, supersteps, seconds, signals, and the figures of store and cache.

        `variant` is "interpreted", and `why` tells why the program was not compiled.
        """
        more = {} if self._aggregates is None else {"aggregates": dict(self._aggregates)}
        return {**self._native.stats, "variant": "interpreted", "why": self._why, **more}

    @described({})
    def top(self, n: int = 10, *, key: Callable[[Any], Any] | None = None) -> list[tuple[Any, Any]]:
        """Return the largest states; None is left out.

        Args:
            n: Number of rows.
            key: Function of a state whose result is compared; None: the state itself, or its first
                field.

        Returns:
            Pairs `(vertex, state)`, largest first, ties by vertex id.

        Raises:
            UsageError: Two states cannot be compared.

        >>> import brimful as bf, pyarrow as pa
        >>> class Degree(bf.Program):
        ...     def initial_state(self, vertex):
        ...         return vertex.degree
        ...     def signal(self, source, target, weight):
        ...         return None
        ...     def collect(self, vertex, signals):
        ...         return vertex.state
        >>> with bf.Graph.from_arrow(pa.table({"source": [1, 1], "target": [2, 3]})) as graph:
        ...     bf.run(graph, Degree()).top(1)
        [(1, 2)]
        """
        ranked = (pair for pair in self.items() if pair[1] is not None)
        measure = key or (lambda state: state if self._record is None else state[0])
        try:
            return heapq.nlargest(operator.index(n), ranked, key=lambda pair: measure(pair[1]))
        except TypeError as error:
            raise UsageError(
                f"the states cannot be compared: {error}; pass key= to top()"
            ) from error

    @described({})
    def to_arrow(self) -> pyarrow.Table:
        """Return all columns as a `pyarrow.Table`, a copy in memory.

        Returns:
            The columns `vertex` and `state`, or `vertex` and one for each field of a state.

        Raises:
            UsageError: Arrow has no type for all states.

        >>> import brimful as bf, pyarrow as pa
        >>> class Degree(bf.Program):
        ...     def initial_state(self, vertex):
        ...         return vertex.degree
        ...     def signal(self, source, target, weight):
        ...         return None
        ...     def collect(self, vertex, signals):
        ...         return vertex.state
        >>> with bf.Graph.from_arrow(pa.table({"source": [1, 1], "target": [2, 3]})) as graph:
        ...     bf.run(graph, Degree()).to_arrow().to_pydict()
        {'vertex': [1, 2, 3], 'state': [2, 0, 0]}
        """
        import pyarrow as pa

        ids = pa.RecordBatchReader.from_stream(self._native.vertex_stream()).schema.field("vertex")
        try:
            parts = [
                pa.table({"vertex": pa.array(vertices, ids.type), **self._columns(states)})
                for vertices, states in self._batches()
            ]
            return pa.concat_tables(parts or [ids.empty_table()], promote_options="permissive")
        except (pa.ArrowException, TypeError, OverflowError) as error:
            raise UsageError(
                f"the states do not fit one Arrow column: {' '.join(str(error).split())}; "
                "read them with items()"
            ) from None

    def _columns(self, states: Sequence[Any]) -> dict[str, Any]:
        return {self.column: states} if self._record is None else self._record.columns(states)

    @described(EXPORT, "io")
    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write both columns to a file, whole or not at all.

        Memory: that of `to_arrow`. Lists and records go to Parquet and Arrow only.

        Args:
            path: File to write: .parquet, .csv or .arrow.

        Raises:
            UsageError: The suffix is unknown, the format cannot hold the states, or the file exists
                and `overwrite` is false.

        >>> import brimful as bf, os, pathlib, pyarrow as pa, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "states.csv")
        >>> class Degree(bf.Program):
        ...     def initial_state(self, vertex):
        ...         return vertex.degree
        ...     def signal(self, source, target, weight):
        ...         return None
        ...     def collect(self, vertex, signals):
        ...         return vertex.state
        >>> with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        ...     bf.run(graph, Degree()).write(path)
        >>> pathlib.Path(path).read_text().split()
        ['vertex,state', '1,1', '2,0']
        """
        write_table(self.to_arrow, os.fspath(path), overwrite=overwrite)

    def __len__(self) -> int:
        """Return the number of vertices."""
        return len(self._native)

    def __getitem__(self, vertex: int | str) -> Any:
        """Return the state of a vertex.

        Raises:
            NotFoundError: The graph has no such vertex (also a `KeyError`).
        """
        return self._value(self._native.state(vertex_id(vertex)))

    def _value(self, state: Any) -> Any:
        return state[0] if self._is_pregel else state

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the Arrow stream capsule of `to_arrow`."""
        stream: object = self.to_arrow().__arrow_c_stream__(requested_schema)
        return stream

    def _batches(self) -> Iterator[tuple[Sequence[Any], Sequence[Any]]]:
        for start in range(0, len(self), _BATCH):
            rows = self._native.rows(start, _BATCH)
            yield [vertex for vertex, _ in rows], [self._value(state) for _, state in rows]

    def _headline(self) -> str:
        return (
            f"brimful.States: {counted(len(self), 'vertex')}, "
            f"{counted(self.stats['signals'], 'signal')}; "
            f"interpreted: {self._why}"
        )


def thresholds_of(program: Program) -> tuple[float, float]:
    """Return the signal and the collect threshold of a program.

    Raises:
        UsageError: One is not a number.
    """
    found = (program.signal_threshold, program.collect_threshold)
    for name, value in zip(("signal_threshold", "collect_threshold"), found, strict=True):
        if not isinstance(value, (int, float)) or math.isnan(value):
            raise UsageError(f"{name} must be a number, not {shortened(value)}")
    return float(found[0]), float(found[1])
