"""Programs of your own in plain Python, on vertices in a store."""

from __future__ import annotations

import heapq
import operator
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from brimful import checks
from brimful.bags import serializer_of
from brimful.catalog import MODES, check_store
from brimful.choices import Lists, Mode
from brimful.errors import UsageError
from brimful.identity import dependencies
from brimful.output import native_batches, write_table
from brimful.per_vertex import PerVertex, vertex_id
from brimful.reporting import shows_progress
from brimful.sizes import Budget, checkpoint_interval, parse_budget, parse_count
from brimful.wording import shortened

if TYPE_CHECKING:
    import pyarrow

    from brimful import _native
    from brimful.bags import Serializer
    from brimful.graph import GraphLike
    from brimful.reporting import Progress

#: Rows that come from the native side at once.
_BATCH = 1 << 12


class Vertex(Protocol):
    """A vertex as a program sees it; it cannot be changed."""

    @property
    def id(self) -> Any:
        """The id, an integer or a string."""
        ...

    @property
    def state(self) -> Any:
        """A copy of its state; None while the first one is made."""
        ...

    @property
    def degree(self) -> int:
        """The number of outgoing arcs."""
        ...


class Program(ABC):
    """What a vertex does (Signal/Collect: Stutz, Bernstein, Cohen 2010).

    A vertex whose state changed since it last signalled signals along its outgoing arcs; one for
    which signals wait collects them into a new state. The run ends when neither is left. Methods
    are pure: they change neither the program nor what they are given, and are called from several
    threads in turn.
    """

    #: What becomes of signals: "each" is collected once; "combined": those to one vertex are made
    #: one by `combine`; "latest": a vertex collects the latest of each edge every time.
    delivery: ClassVar[Literal["each", "combined", "latest"]] = "each"

    @abstractmethod
    def initial_state(self, vertex: Vertex) -> Any:
        """Return the first state."""

    @abstractmethod
    def signal(self, source: Vertex, target: Any, weight: float) -> Any:
        """Return what goes along an arc to the vertex with id `target`; None for nothing."""

    @abstractmethod
    def collect(self, vertex: Vertex, signals: list[Any]) -> Any:
        """Return the new state."""

    def combine(self, left: Any, right: Any) -> Any:
        """Return one signal for two to the same vertex, in any order."""
        raise NotImplementedError(f"{type(self).__name__} combines signals, but has no combine()")


class States(PerVertex[Any]):
    """The states that a run ended with: a mapping from every vertex to its state.

    Columns are `vertex` and `state`, of the type that Arrow finds for all states.

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
    >>> dict(states), states.top(1), states.to_arrow().column_names
    ({1: 2, 2: 0, 3: 0}, [(1, 2)], ['vertex', 'state'])
    """

    def __init__(self, native: _native.States, loads: Callable[[bytes], Any]) -> None:
        """Wrap what the native side has; made by `run`."""
        self._native, self._loads = native, loads

    @property
    def column(self) -> str:
        """The name of the value column."""
        return "state"

    @property
    def stats(self) -> dict[str, Any]:
        """Mode, supersteps, seconds, signals, and what store and cache did."""
        return self._native.stats

    def top(self, n: int = 10, *, key: Callable[[Any], Any] | None = None) -> list[tuple[Any, Any]]:
        """Return the `n` largest states as `(vertex, state)`, largest first, ties by vertex id.

        `key` makes of a state what is compared, default: the state. Those that are None are left
        out.

        Raises:
            UsageError: two states cannot be compared.
        """
        ranked = (pair for pair in self.items() if pair[1] is not None)
        measure = key or (lambda state: state)
        try:
            return heapq.nlargest(operator.index(n), ranked, key=lambda pair: measure(pair[1]))
        except TypeError as error:
            raise UsageError(f"these states have no order: {error}; give top() a key=") from error

    def to_arrow(self) -> pyarrow.Table:
        """Return a `pyarrow.Table` of both columns, a copy in memory.

        Raises:
            UsageError: Arrow has no type that all states are of.
        """
        import pyarrow as pa

        ids = pa.RecordBatchReader.from_stream(self._native.vertex_stream())
        vertices = pa.Table.from_batches(native_batches(ids), ids.schema)["vertex"]
        try:
            parts = [pa.table({self.column: values}) for _, values in self._batches()]
            states = pa.concat_tables(parts, promote_options="permissive")[self.column]
        except (pa.ArrowException, TypeError, OverflowError) as error:
            raise UsageError(
                f"these states make no Arrow column: {' '.join(str(error).split())}; "
                "take them from items()"
            ) from None
        return pa.table({"vertex": vertices, self.column: states})

    def write(self, path: str, *, overwrite: bool = False) -> None:
        """Write both columns to a .parquet, .csv or .arrow file, whole or not at all.

        Memory: that of `to_arrow`. Lists and records go to Parquet and Arrow only.

        Raises:
            UsageError: an unknown suffix, states that the format cannot hold, or the file exists
                and `overwrite` is false.
            StoreIoError: it cannot be written.
        """
        write_table(self.to_arrow, path, overwrite=overwrite)

    def __len__(self) -> int:
        """Return the number of vertices."""
        return len(self._native)

    def __getitem__(self, vertex: int | str) -> Any:
        """Return the state of a vertex.

        Raises:
            NotFoundError: the graph has no such vertex (also a `KeyError`).
        """
        return self._loads(self._native.state(vertex_id(vertex)))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the Arrow stream capsule of `to_arrow`."""
        stream: object = self.to_arrow().__arrow_c_stream__(requested_schema)
        return stream

    def _batches(self) -> Iterator[tuple[Sequence[Any], Sequence[Any]]]:
        for start in range(0, len(self), _BATCH):
            rows = self._native.rows(start, _BATCH)
            yield [vertex for vertex, _ in rows], [self._loads(state) for _, state in rows]

    def _headline(self) -> str:
        return f"brimful.States: {len(self):,} vertices, {self.stats['signals']:,} signals"


@shows_progress
def run(
    graph: GraphLike,
    program: Program,
    *,
    mode: Mode = "sync",
    max_supersteps: int | None = None,
    weighted: bool = False,
    serializer: Literal["json", "str", "bytes", "pickle"] | Serializer = "json",
    store: str = "memory",
    cache: str | None = None,
    lists: Lists | None = None,
    checkpoint_every: int | str | None = None,
    checkpoint_dir: str | os.PathLike[str] | None = None,
    resume: bool = False,
    threads: int | None = None,
    budget: Budget = None,
    progress: Progress | None = None,
) -> States:
    """Run a program written in Python on the vertices of a graph.

    States and signals are any objects that `serializer` writes: between two calls they are its
    bytes. "json" (default; tuples come back as lists, keys of a dict as strings), "str", "bytes",
    "pickle", or anything with `dumps` and `loads`. **Pickle runs code from what it reads**: it is
    used only when named, for stores that you trust. `store`, `cache` and `lists` as in `Stores`;
    `mode` "async" has no supersteps, nor `max_supersteps`. `weighted`: `signal` gets the weights of
    arcs, else 1.

    Checkpoints as in `Checkpoints`: of whole vertices, by supersteps, or by seconds where `mode` is
    "async". A resumed run must have the same graph, class, `serializer`, `weighted` and `mode`, the
    same code of the methods of the class, and the same values of all attributes of class and
    instance but those whose names begin with an underscore: states may not depend on these. What
    methods call outside of the class is not compared.

    Every method is called under the interpreter's lock, some microseconds each: for graphs of some
    million arcs; the algorithms of this package are compiled. The ids and states of all vertices
    come back in memory, within `budget`.

    Raises:
        ProgramError: a method raised, or an object cannot be written; `vertex` says where, and
            `__cause__` is the exception.
        UsageError: an unknown store, cache or serializer; weights that there are not.
        BudgetError: naming a budget that works.

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
    from brimful.ingest import Resources

    if not isinstance(program, Program):
        raise UsageError(
            f"a program is an instance of a class derived from brimful.Program, not "
            f"{shortened(program)}"
        )
    name, dumps, loads = serializer_of(serializer)
    limit = parse_budget(budget)
    given = Resources(threads, limit, progress=progress)
    url = checks.text(store, "store")
    check_store(url)
    opened = as_graph(graph, given)
    states = _native.run_program(
        opened.native,
        program,
        delivery=program.delivery,
        dumps=_checked(name, dumps),
        loads=loads,
        mode=checks.word(mode, "mode", MODES),
        max_supersteps=parse_count(max_supersteps, "max_supersteps"),
        weighted=checks.flag(weighted, "weighted"),
        store={
            "url": url,
            "serializer": None,
            "cache": checks.text(cache, "cache"),
            "lists": checks.text(lists, "lists"),
        },
        checkpoint_every=checkpoint_interval(checkpoint_every),
        checkpoint_dir=checks.path(checkpoint_dir, "checkpoint_dir"),
        resume=checks.flag(resume, "resume"),
        identity=_identity(program, name, whole=checkpoint_every is not None or resume),
        threads=given.threads,
        budget=opened.budget if limit is None else limit,
        process_budget=given.process_budget,
        progress=given.progress,
    )
    return States(states, loads)


def _identity(program: Program, serializer: str, *, whole: bool) -> list[tuple[str, str]]:
    """Return names and values of all that states depend on beside the graph, the class first.

    Unless it is wanted as a whole, for checkpoints, the class is all.
    """
    kind = type(program)
    name = ("program", f"{kind.__module__}.{kind.__qualname__}")
    if not whole:
        return [name]
    return [
        name,
        ("serializer", serializer),
        ("delivery", program.delivery),
        *dependencies(program, Program),
    ]


def _checked(name: str, dumps: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """Return `dumps` with errors that name the type of what it cannot write."""

    def write(value: Any) -> bytes:
        try:
            return dumps(value)
        except Exception as error:
            raise TypeError(
                f"the serializer {name} cannot write {type(value).__name__} ({error}); return "
                "something else, or choose another serializer"
            ) from error

    return write
