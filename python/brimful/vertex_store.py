"""Vertices kept in a folder between runs, to read, to change, and to run programs on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Literal, Unpack

import brimful
from brimful.catalog import program_store
from brimful.containers.bags import serializer_of
from brimful.errors import NotFoundError, UsageError
from brimful.ids import VertexId, vertex_id
from brimful.io.redaction import redacted_word
from brimful.options.checks import word
from brimful.options.described import described
from brimful.options.runs import RUN, ProgramOptions, StoreOptions
from brimful.options.table import ResourceOptions, WorkOptions, checked
from brimful.packages import _native, bags, opening
from brimful.pregel.changes import weighted_pairs
from brimful.pregel.program import Pregel
from brimful.program import Program, Vertex
from brimful.program_checks import check_program
from brimful.reporting import shows_progress
from brimful.running import Start, Storage, interpreted
from brimful.serializing import checked_dumps
from brimful.states import States
from brimful.stores.kept import check_new, check_outside, describe_store
from brimful.wording import counted

#: Why a program is interpreted.
_WHY = "the vertices are in a store"

#: Options of `brimful.run` that a run on kept vertices does not have.
_OF_RUN = ("compile", "keep", "on", "serializer", "store", "trace")

#: Serializers that run no code from the bytes they read.
_SAFE = ("json", "str", "bytes")

_STORE = RUN | {
    "url": 'The folder of the store: "file:PATH" or "kv:PATH"; "file:P1,P2" for several disks; or '
    'the URL of a database: one in a folder, such as "rocksdb:PATH", or a server with the option '
    "`folder=PATH`.",
    "vertex": "Id of the vertex.",
    "source": "Id of the vertex that the edge leaves.",
    "target": "Id of the vertex that the edge reaches; it need not exist yet.",
    "edges": "Pairs of target and weight.",
}


class _Given(Program):
    """Gives every vertex its state in a mapping; without one, the state None. None signals."""

    signal_threshold = math.inf

    def __init__(self, states: Mapping[Any, Any] | brimful.Result | None) -> None:
        self._states = states

    def initial_state(self, vertex: Vertex) -> Any:
        """Return the state."""
        return None if self._states is None else self._states[vertex.id]

    def signal(self, source: Vertex, target: Any, weight: float) -> None:
        """Send no signal."""

    def collect(self, vertex: Vertex, signals: list[Any]) -> Any:
        """Collect nothing."""
        return vertex.state


class VertexStore(States):
    """The vertices of a graph with their edges, kept in a folder.

    A mapping from vertices to the states that the last program left, whose states, vertices and
    edges can be changed. Programs run on the vertices in place: nothing is loaded, and memory stays
    within `budget`. Ids are those of the graph, whose directory must be kept. The folder has its
    own copy of the edges; changing it does not change the graph. One process uses a store at a
    time. Changes are durable after `sync`, `close` and a run.

    After a crash during a run or a change, states are inconsistent: a "file" store refuses to be
    read until a `run` from initial states has ended, and a store in a database must be made again.

    Made by `create` or `open`, or by `brimful.run(..., keep=True)`. It is a context manager.

    >>> import brimful as bf, os, pyarrow as pa, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> path = os.path.join(folder, "chain.brimful")
    >>> bf.Graph.from_arrow(pa.table({"source": [1, 2], "target": [2, 3]}), path=path).close()
    >>> class Hops(bf.Program):
    ...     delivery, combiner = "combined", "min"
    ...     def initial_state(self, vertex):
    ...         return 0 if vertex.id == 1 else None
    ...     def signal(self, source, target, weight):
    ...         return None if source.state is None else source.state + 1
    ...     def collect(self, vertex, signals):
    ...         return min(signals if vertex.state is None else [vertex.state, *signals])
    >>> with bf.VertexStore.create(f"file:{folder}/vertices", path) as store:
    ...     dict(store.run(Hops()))
    ...     store.add_edge(1, 3)
    ...     dict(store.run(Hops(), start="kept")), store.edges(1)
    ...     store.column, store.stats["signals"], store.trace
    {1: 0, 2: 1, 3: 2}
    ({1: 0, 2: 1, 3: 1}, [(2, 1.0), (3, 1.0)])
    ('state', 2, None)
    """

    def __init__(
        self,
        graph: brimful.Graph,
        native: _native.KeptVertexStore,
        properties: tuple[str, str | bags.Serializer, bool, int | None],
    ) -> None:
        """Wrap a native store; use `create` or `open`. `properties` has URL, serializer, weights.

        The last property is the budget.
        """
        self._graph, self._kept = graph, native
        self._url, self._serializer, self._weighted, self._budget = properties
        self._stats: dict[str, Any] = {}
        # Not a native result, but it has all methods that a mapping of states calls.
        super().__init__(native, _WHY)  # type: ignore[arg-type]

    @classmethod
    @shows_progress
    @described(_STORE, "usage", "graph", "budget", "corrupt", "io")
    def create(
        cls,
        url: str,
        graph: opening.GraphLike,
        *,
        states: Mapping[Any, Any] | brimful.Result | None = None,
        weighted: bool = False,
        serializer: Literal["json", "str", "bytes", "pickle"] | bags.Serializer = "json",
        **options: Unpack[WorkOptions],
    ) -> VertexStore:
        """Load the vertices of a graph into a new store.

        With the result of an algorithm as `states`, programs continue from it: with `start="kept"`
        every vertex signals its value once, and then only changes are computed.

        Args:
            url: URL of the new store.
            graph: A `Graph` in a directory that stays, or its path.
            states: The states by vertex, such as a `Result`; None: every state is None.
            weighted: Keep the weights of the edges; else they are 1.
            serializer: How states become bytes; as in `brimful.run`.

        Returns:
            The store.

        Raises:
            UsageError: There is a store already, or other files are in its folder.
            ProgramError: `states` lacks a vertex, or the serializer cannot write a state.

        >>> import brimful as bf, os, pyarrow as pa, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> path = os.path.join(folder, "pair.brimful")
        >>> bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]}), path=path).close()
        >>> with bf.VertexStore.create(f"kv:{folder}/vertices", path) as store:
        ...     dict(store), store.edges(1)
        ({1: None, 2: None}, [(2, 1.0)])
        """
        from brimful.opening import as_graph
        from brimful.resources import Resources

        check_new(url)
        others = ("url", "graph", "states", "weighted", "serializer")
        work = checked(WorkOptions, options, "create", others)
        chosen = checked(ProgramOptions, {"weighted": weighted, **options})
        opened = as_graph(graph, Resources.of(work))
        keep(opened, url, states, serializer, chosen)
        return cls.open(url, serializer=serializer, budget=options.get("budget"))

    @classmethod
    @described(_STORE, "usage", "graph", "budget", "corrupt", "io")
    def open(
        cls,
        url: str,
        *,
        serializer: Literal["json", "str", "bytes", "pickle"] | bags.Serializer | None = None,
        **options: Unpack[ResourceOptions],
    ) -> VertexStore:
        """Open the vertices that a run left.

        Args:
            url: URL of the store.
            serializer: How states became bytes; None: the one named in the store, if it is "json",
                "str" or "bytes". Name any other: pickle, for example, runs code from the bytes.

        Returns:
            The store.

        Raises:
            NotFoundError: There is no store at `url`, or its graph is gone.
            UsageError: The graph has changed, the vertices were not loaded to the end, or a process
                was killed whose database may have damaged its files.

        >>> import brimful as bf, os, pyarrow as pa, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> path = os.path.join(folder, "pair.brimful")
        >>> bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]}), path=path).close()
        >>> bf.VertexStore.create(f"file:{folder}/vertices", path).close()
        >>> with bf.VertexStore.open(f"file:{folder}/vertices") as store:
        ...     len(store), 2 in store
        (2, True)
        """
        from brimful import _native
        from brimful.graph import Graph
        from brimful.resources import Resources

        check_outside(url)
        stored = describe_store(url)
        if stored is None:
            raise NotFoundError(f"there is no store of vertices at {redacted_word(url)}")
        if stored["is_loading"]:
            raise UsageError(
                f"the loading of the store at {redacted_word(url)} did not finish; make the store "
                "again with VertexStore.create or brimful.run(..., keep=True)"
            )
        if serializer is None and stored["serializer"] not in _SAFE:
            raise UsageError(
                f"the states in {redacted_word(url)} were written by the serializer "
                f"{stored['serializer']}; name it with serializer="
            )
        chosen = checked(ResourceOptions, options, "open", ("url", "serializer"))
        chosen_serializer = stored["serializer"] if serializer is None else serializer
        name, dumps, loads = serializer_of(chosen_serializer)
        graph = Graph.open(stored["graph"], budget=chosen["budget"])
        native = _native.KeptVertexStore.open(
            graph.native,
            program_store(url, checked(StoreOptions, {}), keeps=True),
            checked_dumps(name, dumps),
            loads,
            name,
            stored["weights"] == "true",
            Resources.of(chosen).on(graph),
        )
        return cls(
            graph, native, (url, chosen_serializer, stored["weights"] == "true", graph.budget)
        )

    @shows_progress
    @described(_STORE, "budget", "corrupt", "io")
    def run(
        self,
        program: Program | Pregel,
        *,
        start: Start = "initial",
        **options: Unpack[ProgramOptions],
    ) -> States:
        """Run a program on the vertices in place.

        With `start` "kept" the vertices continue from their states. Only vertices signal whose
        state or edges have changed since they last signalled, and vertices collect whose incoming
        edges were removed. A monotone program (shortest paths, components) cannot undo the effect
        of a removed edge; use "initial" after a removal.

        The state of a vertex of `Pregel` is its value, and the edges that the program changes are
        those of the store; the value of an edge must be a number. With "kept" a vertex computes in
        superstep 0 if its value or edges have changed since it voted to halt, or if an edge to it
        was removed. Aggregators, master and worker context begin anew, and messages that a limit
        left are dropped.

        Args:
            program: An instance of a class derived from `Program` or `Pregel`.
            start: "initial": every vertex gets its first state, and `initial_state` or
                `initial_value` sees the last one as `vertex.state`; "kept": vertices keep their
                states.

        Returns:
            The states, until the vertices change again; the store has them too.

        Raises:
            ProgramError: As `brimful.run`.
            UsageError: `start` is unknown; `weighted` is not that of the store; or, for "kept", the
                last run did not finish.

        >>> import brimful as bf, os, pyarrow as pa, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> path = os.path.join(folder, "pair.brimful")
        >>> bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]}), path=path).close()
        >>> class Degree(bf.Program):
        ...     def initial_state(self, vertex):
        ...         return vertex.degree
        ...     def signal(self, source, target, weight):
        ...         return None
        ...     def collect(self, vertex, signals):
        ...         return vertex.state
        >>> with bf.VertexStore.create(f"file:{folder}/vertices", path) as store:
        ...     dict(store.run(Degree()))
        {1: 1, 2: 0}
        """
        word(start, "start", ("initial", "kept"))
        check_program(program)
        if refused := [name for name in _OF_RUN if name in options]:
            raise UsageError(
                "a program on kept vertices is interpreted, in their store and with its "
                f"serializer; leave {refused[0]}= out"
            )
        if options.setdefault("weighted", self._weighted) != self._weighted:
            kind = "with" if self._weighted else "without"
            raise UsageError(f"the store was made {kind} weights; leave weighted= out")
        if options.get("budget") is None:
            options["budget"] = self._budget
        chosen = checked(ProgramOptions, options, "run", ("start",))
        storage = Storage(self._serializer, self._url, start)
        states = interpreted(self._graph, program, storage, [], chosen, _WHY)
        self._stats = states.stats
        return states

    @property
    def stats(self) -> dict[str, Any]:
        """Figures of the last run since the store was opened, as those of `States`."""
        return dict(self._stats)

    @described(_STORE, "vertex", "corrupt", "io")
    def edges(self, vertex: VertexId) -> list[tuple[Any, float]]:
        """Return the edges that leave a vertex.

        Returns:
            Pairs of target and weight.

        >>> import brimful as bf, os, pyarrow as pa, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> path = os.path.join(folder, "pair.brimful")
        >>> bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]}), path=path).close()
        >>> with bf.VertexStore.create(f"file:{folder}/vertices", path) as store:
        ...     store.edges(1)
        [(2, 1.0)]
        """
        return self._kept.edges(vertex_id(vertex))

    def __setitem__(self, vertex: VertexId, state: Any) -> None:
        """Replace the state of a vertex.

        Raises:
            NotFoundError: The store has no such vertex (also a `KeyError`).
            TypeError: The serializer cannot write the state.
        """
        self._kept.set_state(vertex_id(vertex), state)

    @described(_STORE, "corrupt", "io")
    def add_vertex(
        self, vertex: VertexId, state: Any = None, edges: Iterable[tuple[Any, float]] = ()
    ) -> None:
        """Add a vertex.

        Sources of edges that lead to it already signal to it when they change, or in a run with
        `start` "initial".

        Args:
            vertex: Id of the vertex, of the kind of the others.
            state: Its state.

        Raises:
            UsageError: The store has the vertex, or its id is of another type than the others.

        >>> import brimful as bf, os, pyarrow as pa, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> path = os.path.join(folder, "pair.brimful")
        >>> bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]}), path=path).close()
        >>> with bf.VertexStore.create(f"file:{folder}/vertices", path) as store:
        ...     store.add_vertex(3, "new", [(1, 0.5)])
        ...     store[3], store.edges(3)
        ('new', [(1, 0.5)])
        """
        if not self._kept.add_vertex(vertex_id(vertex), state, weighted_pairs(edges)):
            raise UsageError(f"the store has the vertex {vertex} already; assign its state")

    @described(_STORE, "vertex", "corrupt", "io")
    def remove_vertex(self, vertex: VertexId) -> None:
        """Remove a vertex with the edges that leave it; signals along edges to it are dropped.

        >>> import brimful as bf, os, pyarrow as pa, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> path = os.path.join(folder, "pair.brimful")
        >>> bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]}), path=path).close()
        >>> with bf.VertexStore.create(f"file:{folder}/vertices", path) as store:
        ...     store.remove_vertex(1)
        ...     list(store)
        [2]
        """
        self._kept.remove_vertex(vertex_id(vertex))

    @described(_STORE, "vertex", "corrupt", "io")
    def add_edge(self, source: VertexId, target: VertexId, weight: float = 1.0) -> None:
        """Add an edge; the next run with `start` "kept" lets its source signal.

        Args:
            weight: Weight of the edge.

        >>> import brimful as bf, os, pyarrow as pa, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> path = os.path.join(folder, "pair.brimful")
        >>> bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]}), path=path).close()
        >>> with bf.VertexStore.create(f"file:{folder}/vertices", path) as store:
        ...     store.add_edge(2, 1, 0.5)
        ...     store.edges(2)
        [(1, 0.5)]
        """
        self.add_edges(source, [(target, weight)])

    @described(_STORE, "vertex", "corrupt", "io")
    def add_edges(self, source: VertexId, edges: Iterable[tuple[Any, float]]) -> None:
        """Add edges that leave one vertex; its record is written once.

        >>> import brimful as bf, os, pyarrow as pa, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> path = os.path.join(folder, "pair.brimful")
        >>> bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]}), path=path).close()
        >>> with bf.VertexStore.create(f"file:{folder}/vertices", path) as store:
        ...     store.add_edges(2, [(1, 0.5), (2, 0.25)])
        ...     store.edges(2)
        [(1, 0.5), (2, 0.25)]
        """
        self._kept.add_edges(vertex_id(source), weighted_pairs(edges))

    @described(_STORE, "vertex", "corrupt", "io")
    def remove_edges(self, source: VertexId, target: VertexId) -> int:
        """Remove all edges from one vertex to another.

        Args:
            target: Id of the vertex that the edges reach.

        Returns:
            The number of edges that are gone.

        >>> import brimful as bf, os, pyarrow as pa, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> path = os.path.join(folder, "pair.brimful")
        >>> bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]}), path=path).close()
        >>> with bf.VertexStore.create(f"file:{folder}/vertices", path) as store:
        ...     store.remove_edges(1, 2), store.edges(1)
        (1, [])
        """
        return self._kept.remove_edges(vertex_id(source), vertex_id(target))

    @described(_STORE, "corrupt", "io")
    def sync(self) -> None:
        """Make all changes durable.

        >>> import brimful as bf, os, pyarrow as pa, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> path = os.path.join(folder, "pair.brimful")
        >>> bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]}), path=path).close()
        >>> with bf.VertexStore.create(f"file:{folder}/vertices", path) as store:
        ...     store[1] = "changed"
        ...     store.sync()
        """
        self._kept.sync()

    @described(_STORE, "corrupt", "io")
    def close(self) -> None:
        """Make all changes durable, and close the store and its graph; a second call does nothing.

        States of earlier runs on the store cannot be read afterwards.

        >>> import brimful as bf, os, pyarrow as pa, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> path = os.path.join(folder, "pair.brimful")
        >>> bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]}), path=path).close()
        >>> bf.VertexStore.create(f"file:{folder}/vertices", path).close()
        """
        self._kept.close()
        self._graph.close()

    def __enter__(self) -> VertexStore:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the store."""
        self.close()

    def __repr__(self) -> str:
        """Return the shape and the first rows."""
        if self._graph._native is None:
            return f"<brimful.VertexStore {redacted_word(self._url)} (closed)>"
        return super().__repr__()

    def _headline(self) -> str:
        return f"brimful.VertexStore {redacted_word(self._url)}: {counted(len(self), 'vertex')}"


def keep(
    graph: brimful.Graph,
    url: str,
    states: Mapping[Any, Any] | brimful.Result | None,
    serializer: str | bags.Serializer,
    chosen: Mapping[str, Any],
) -> None:
    """Load the vertices of a graph into a new store, with states and options that were checked.

    Raises:
        UsageError, ProgramError, BudgetError: As `create`.
    """
    storage = Storage(serializer, url, "initial")
    interpreted(graph, _Given(states), storage, [], chosen, _WHY)
