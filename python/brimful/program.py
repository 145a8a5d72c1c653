"""Programs of your own in plain Python, on vertices in a store."""

from __future__ import annotations

import heapq
import json
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Unpack, overload

from brimful.catalog import opened, place
from brimful.containers.bags import serializer_of
from brimful.errors import UsageError
from brimful.identity import dependencies
from brimful.io.output import native_batches, write_table
from brimful.options.described import EXPORT, described
from brimful.options.runs import (
    RUN,
    CheckpointOptions,
    ProgramOptions,
    StepOptions,
    StoreOptions,
    store_url,
)
from brimful.options.table import WorkOptions, checked, picked
from brimful.per_vertex import PerVertex, vertex_id
from brimful.reporting import shows_progress
from brimful.wording import shortened

if TYPE_CHECKING:
    import pyarrow

    from brimful import _native
    from brimful.containers.bags import Serializer
    from brimful.graph import GraphLike
    from brimful.pregel import Pregel
    from brimful.result import Result

#: Rows that come from the native side at once.
_BATCH = 1 << 12


class Vertex(Protocol):
    """A vertex as the methods of a program receive it; it cannot be changed.

    >>> import brimful as bf, pyarrow as pa
    >>> class Seen(bf.Program):
    ...     def initial_state(self, vertex):
    ...         return [vertex.id, vertex.degree, vertex.state, vertex.signalled]
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
        """Its state; None while the first state is made. It must not be changed in place."""
        ...

    @property
    def signalled(self) -> Any:
        """Its state when it last signalled, for `signal_score`; None before, and elsewhere."""
        ...

    @property
    def degree(self) -> int:
        """Number of out-edges."""
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

    #: A vertex signals if its `signal_score` exceeds this.
    signal_threshold: ClassVar[float] = 0.01

    #: A vertex collects if its `collect_score` exceeds this; else the signals are dropped.
    collect_threshold: ClassVar[float] = 0.0

    @abstractmethod
    def initial_state(self, vertex: Vertex) -> Any:
        """Return the first state of a vertex.

        Args:
            vertex: The vertex; its state is None.

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
            signals: The signals: all that wait ("each", "combined"), or the latest of each edge
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
            return _combiner(self)(left, right)
        raise NotImplementedError(
            f"{type(self).__name__} has delivery 'combined', but no combine()"
        )


#: The combiners that have a name.
_COMBINERS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": operator.add,
    "min": min,
    "max": max,
    "or": operator.or_,
}


def _combiner(program: Program) -> Callable[[Any, Any], Any]:
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


class _Combining(Program):
    """A program with a named combiner, whose latest signals become one before `collect`."""

    def __init__(self, program: Program) -> None:
        """Wrap a program."""
        self._program, self._combine = program, _combiner(program)
        for name in ("delivery", "signal_threshold", "collect_threshold"):
            setattr(self, name, getattr(program, name))
        for name in ("initial_state", "signal", "signal_score"):
            setattr(self, name, getattr(program, name))

    def initial_state(self, vertex: Vertex) -> Any:
        """Stand for the method of the program."""
        return self._program.initial_state(vertex)

    def signal(self, source: Vertex, target: Any, weight: float) -> Any:
        """Stand for the method of the program."""
        return self._program.signal(source, target, weight)

    def combine(self, left: Any, right: Any) -> Any:
        """Combine two signals by the named combiner."""
        return self._combine(left, right)

    def collect(self, vertex: Vertex, signals: list[Any]) -> Any:
        """Let the program collect one signal."""
        return self._program.collect(vertex, [reduce(self._combine, signals)])

    def collect_score(self, vertex: Vertex, signals: list[Any]) -> float:
        """Let the program score one signal."""
        return self._program.collect_score(vertex, [reduce(self._combine, signals)])


class States(PerVertex[Any]):
    """The states that a run ended with: a mapping from every vertex to its state.

    Columns are `vertex` and `state`, of the type that Arrow finds for all states. `stats` has mode,
    supersteps, seconds, signals, and the figures of store and cache.

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
    >>> dict(states), states.top(1), states.column, states.stats["mode"]
    ({1: 2, 2: 0, 3: 0}, [(1, 2)], 'state', 'sync')
    """

    def __init__(self, native: _native.States, *, is_pregel: bool = False) -> None:
        """Wrap the native states; made by `run`. A state of Pregel begins with the value."""
        self._native, self._is_pregel = native, is_pregel

    @property
    def column(self) -> str:
        """Name of the value column."""
        return "state"

    @property
    def stats(self) -> dict[str, Any]:
        """Mode, supersteps, seconds, signals, and the figures of store and cache."""
        return self._native.stats

    @described({})
    def top(self, n: int = 10, *, key: Callable[[Any], Any] | None = None) -> list[tuple[Any, Any]]:
        """Return the largest states; those that are None are left out.

        Args:
            n: Number of rows.
            key: Function of a state whose result is compared; None: the state itself.

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
        measure = key or (lambda state: state)
        try:
            return heapq.nlargest(operator.index(n), ranked, key=lambda pair: measure(pair[1]))
        except TypeError as error:
            raise UsageError(
                f"the states cannot be compared: {error}; pass key= to top()"
            ) from error

    @described({})
    def to_arrow(self) -> pyarrow.Table:
        """Return both columns as a `pyarrow.Table`, a copy in memory.

        Returns:
            The columns `vertex` and `state`.

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

        ids = pa.RecordBatchReader.from_stream(self._native.vertex_stream())
        vertices = pa.Table.from_batches(native_batches(ids), ids.schema)["vertex"]
        try:
            parts = [pa.table({self.column: values}) for _, values in self._batches()]
            states = pa.concat_tables(parts, promote_options="permissive")[self.column]
        except (pa.ArrowException, TypeError, OverflowError) as error:
            raise UsageError(
                f"the states do not fit one Arrow column: {' '.join(str(error).split())}; "
                "read them with items()"
            ) from None
        return pa.table({"vertex": vertices, self.column: states})

    @described(EXPORT, "io")
    def write(self, path: str, *, overwrite: bool = False) -> None:
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
        write_table(self.to_arrow, path, overwrite=overwrite)

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
        return f"brimful.States: {len(self):,} vertices, {self.stats['signals']:,} signals"


@overload
def run(
    graph: GraphLike,
    program: Program | Pregel,
    *,
    serializer: Literal["json", "str", "bytes", "pickle"] | Serializer = ...,
    store: str = ...,
    compile: Literal["never"] = ...,
    **options: Unpack[ProgramOptions],
) -> States: ...
@overload
def run(
    graph: GraphLike,
    program: Program,
    *,
    serializer: Literal["json", "str", "bytes", "pickle"] | Serializer = ...,
    store: str = ...,
    compile: Literal["numba"],
    **options: Unpack[ProgramOptions],
) -> Result: ...
@shows_progress
@described(RUN, "graph", "corrupt", "io")
def run(
    graph: GraphLike,
    program: Program | Pregel,
    *,
    serializer: Literal["json", "str", "bytes", "pickle"] | Serializer = "json",
    store: str = "memory",
    compile: Literal["numba", "never"] = "never",
    **options: Unpack[ProgramOptions],
) -> States | Result:
    """Run a program written in Python on the vertices of a graph.

    One thread makes all calls, some million a second: for graphs of some ten million edges.
    `threads` is for the import of `graph`. The ids and states of all vertices come back in memory,
    within `budget`. With `compile` "numba" the methods run on the disk path instead: on all
    threads, nearly as fast as the algorithms of this package, and in any budget. The result is then
    a `Result` with the column `state`.

    Objects of the program are a part of `budget`: the run measures the memory of the process while
    it creates them. A `BudgetError` in the middle of a run names the stores that need less.

    Checkpoints hold whole vertices. A resumed run must have the same graph, class, `serializer`,
    `weighted` and `mode`, the same code of the methods of the class, and the same values of all
    attributes of class and instance except those whose names begin with an underscore: states may
    not depend on these. Functions outside the class are not compared.

    Args:
        program: An instance of a class derived from `Program` or `Pregel`.
        max_supersteps: Stop after this many supersteps; None: 10,000, with a warning. `mode`
            "async" has none.
        mode: "sync" runs in supersteps; "async" has no supersteps, and its checkpoints come by the
            second.
        weighted: `signal` receives the weights of edges, else 1.
        serializer: How states become bytes in a store, and in checkpoints: "json" (refuses tuples,
            and dicts whose keys are not strings), "str", "bytes", "pickle", or an object with
            `dumps` and `loads`. The store "memory" needs none. **Pickle runs code from the bytes it
            reads**: name it only for stores that you trust.
        store: Where vertices lie: "memory" (live objects, never serialized), "bytes" (records in
            memory), "file:PATH" or "kv:PATH" (records in a folder within PATH, which the run
            removes).
        compile: "never" interprets the methods; "numba" compiles them (`pip install
            "brimful[numba]"`). A compiled program has a `combiner`, states and signals of one
            number each, and a `signal` that uses the weight only as in `value + weight`, `value *
            weight`, `min(value, weight)` or `max(value, weight)`. It uses no store.

    Returns:
        The states, a mapping from vertices.

    Raises:
        ProgramError: A method raised an exception (`__cause__`), or the serializer cannot write an
            object; `vertex` is the vertex.
        UsageError: The store, cache or serializer is unknown; `weighted`, and the graph has no
            weights; or the program cannot be compiled.
        BudgetError: The budget is too small; the message names one that works.

    >>> import brimful as bf, pyarrow as pa
    >>> class Longest(bf.Program):
    ...     def initial_state(self, vertex):
    ...         return [vertex.id]
    ...     def signal(self, source, target, weight):
    ...         return source.state if target not in source.state else None
    ...     def collect(self, vertex, signals):
    ...         path = max(signals, key=len)
    ...         return [*path, vertex.id] if len(path) >= len(vertex.state) else vertex.state
    >>> with bf.Graph.from_arrow(pa.table({"source": [1, 2], "target": [2, 3]})) as graph:
    ...     bf.run(graph, Longest(), store="bytes")[3]
    [1, 2, 3]
    """
    from brimful import _native
    from brimful.graph import as_graph
    from brimful.io.ingest import Resources
    from brimful.pregel import Pregel, PregelAdapter

    if not isinstance(program, Program | Pregel):
        raise UsageError(
            "program must be an instance of a class derived from brimful.Program or "
            f"brimful.Pregel, not {shortened(program)}"
        )
    if compile not in ("numba", "never"):
        raise UsageError(f'compile must be "numba" or "never", not {shortened(compile)}')
    if compile == "numba":
        from brimful import compiled

        return compiled.run(graph, program, store, options)
    name, dumps, loads = serializer_of(serializer)
    chosen = checked(ProgramOptions, options, "run", ("serializer", "store"))
    where = place(store_url(store)) | {"serializer": None}
    resources = Resources(**picked(WorkOptions, chosen))
    known = as_graph(graph, resources)
    limits = vars(resources.on(known))
    # One thread makes all calls: only one at a time can have the interpreter.
    del limits["threads"]
    saving = chosen["checkpoint_every"] is not None or chosen["resume"]
    identity = identity_of(program, name, whole=saving)
    if isinstance(program, Pregel):
        called: Program = (adapter := PregelAdapter(program, known.vertices))
        adapter.check(chosen["mode"], saving=saving)
    else:
        called, adapter = program if program.combiner is None else _Combining(program), None
    with opened(where):
        states = _native.run_program(
            known.native,
            called,
            delivery=called.delivery,
            thresholds=thresholds_of(called),
            dumps=_checked(name, dumps),
            loads=loads,
            keeps_numbers=name in ("json", "pickle"),
            next_superstep=adapter.next_superstep if adapter else None,
            **picked(StepOptions, chosen),
            store=where | picked(StoreOptions, chosen),
            **picked(CheckpointOptions, chosen),
            identity=identity,
            **limits,
        )
    if adapter:
        adapter.check_master()
    return States(states, is_pregel=adapter is not None)


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


def identity_of(
    program: Program | Pregel, serializer: str, *, whole: bool
) -> list[tuple[str, str]]:
    """Return names and values of everything besides the graph that states depend on.

    The class is first; unless `whole`, for checkpoints, it is all.
    """
    kind = type(program)
    name = ("program", f"{kind.__module__}.{kind.__qualname__}")
    if not whole:
        return [name]
    from brimful.pregel import Pregel

    own = [name, ("serializer", serializer)]
    if isinstance(program, Pregel):
        return [*own, *dependencies(program, Pregel)]
    return [*own, ("delivery", program.delivery), *dependencies(program, Program)]


def _checked(name: str, dumps: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """Return `dumps` with errors that name the type of the object."""

    def write(value: Any) -> bytes:
        try:
            data = dumps(value)
        except Exception as error:
            raise TypeError(
                f"the serializer {name} cannot write {type(value).__name__} ({error}); return "
                "another type, or choose another serializer"
            ) from error
        # Lists instead of tuples would give other answers than live objects.
        if name == "json" and json.loads(data) != value:
            raise TypeError(
                f"JSON does not keep {shortened(value)}: tuples become lists, and keys of a dict "
                'become strings; return another type, or choose serializer="pickle"'
            )
        return data

    return write
