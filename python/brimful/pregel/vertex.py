"""The vertex that `compute` receives: its value, edges, messages and requests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import brimful
from brimful.errors import UsageError
from brimful.pregel.aggregators import Aggregated
from brimful.pregel.changes import (
    ADD_EDGE,
    ADD_VERTEX,
    MESSAGE,
    REMOVE_EDGES,
    REMOVE_VERTEX,
    UNNAMED,
    Edges,
    named,
    named_pairs,
    without,
)


@dataclass
class Shared:
    """State shared by all vertices of a run."""

    aggregated: Aggregated
    #: True if vertices may request changes of the graph.
    mutates: bool
    context: brimful.WorkerContext | None
    superstep: int = 0


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

    __slots__ = (
        "_edges",
        "_halted",
        "_memory",
        "_mutates",
        "_outbox",
        "_seen",
        "_shared",
        "context",
        "superstep",
        "value",
    )

    #: The value of the vertex. Assign a new one; do not change it in place.
    value: Any
    #: The number of the superstep, from 0; without supersteps, the number of earlier calls for this
    #: vertex.
    superstep: int
    #: The context of the worker, if the program has one.
    context: brimful.WorkerContext | None

    def __init__(
        self, seen: brimful.Vertex, value: Any, edges: Edges | None, shared: Shared
    ) -> None:
        """Wrap a vertex for one call of `compute`; without `edges` it has those of the graph."""
        self._seen, self._edges, self._shared = seen, edges, shared
        self.value, self.superstep, self.context = value, shared.superstep, shared.context
        self._halted, self._mutates = False, shared.mutates
        # Objects that the vertex keeps in addition to its value.
        self._memory: list[Any] = []
        # Targets, each followed by its message.
        self._outbox: list[Any] = []

    @property
    def id(self) -> Any:
        """Id of the vertex, an integer or a string."""
        return self._seen.id

    @property
    def degree(self) -> int:
        """Number of out-edges."""
        return self._seen.degree if self._edges is None else len(self._edges)

    @property
    def edges(self) -> list[tuple[Any, Any]]:
        """Pairs of target and value of the out-edges, in a copy.

        The value is the weight (1 unless `weighted`) until the program sets another. `add_edge`,
        `set_edge_value` and `remove_edges` change the edges; a change of the list is lost.
        """
        if self._edges is not None:
            return list(self._edges)
        edges: list[tuple[Any, Any]] = self._seen.edges  # type: ignore[attr-defined]
        return edges

    def send(self, target: Any, message: Any) -> None:
        """Send a message to a vertex, which receives it in the next superstep.

        Args:
            target: Id of any vertex of the graph; another id ends the run as a `ProgramError`.
            message: Any object.

        Raises:
            UsageError: The target is None.

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
            raise UsageError(UNNAMED)
        # Inlined: another call for every message would double the cost.
        self._outbox += (target, [MESSAGE, message] if self._mutates else message)

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
        # If requests travel too, each signal names its kind.
        signal = [MESSAGE, message] if self._mutates else message
        # None stands for all edges of the graph, whose targets the native side knows. A vertex
        # without edges has nothing to send.
        if self._edges is None:
            targets = [None] if self._seen.degree else []
        else:
            targets = [target for target, _ in self._edges]
        for target in targets:
            self._outbox += (target, signal)

    def vote_to_halt(self) -> None:
        """Halt until a message arrives.

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

    def add_edge(self, target: Any, value: Any = 1.0) -> None:
        """Add an out-edge at once.

        Args:
            target: Id of the target.
            value: Value of the edge.

        Raises:
            UsageError: The target is None.

        >>> import brimful as bf, pyarrow as pa
        >>> class Loops(bf.Pregel):
        ...     def initial_value(self, vertex):
        ...         return None
        ...     def compute(self, vertex, messages):
        ...         vertex.add_edge(vertex.id)
        ...         vertex.value = vertex.edges
        ...         vertex.vote_to_halt()
        >>> with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        ...     dict(bf.run(graph, Loops()))
        {1: [(2, 1.0), (1, 1.0)], 2: [(2, 1.0)]}
        """
        self._edges = [*self.edges, (named(target), value)]

    def remove_edges(self, target: Any) -> None:
        """Remove the out-edges to a target at once.

        Args:
            target: Id of the target; without an edge to it nothing changes.

        Raises:
            UsageError: The target is None.

        >>> import brimful as bf, pyarrow as pa
        >>> class Fewer(bf.Pregel):
        ...     def initial_value(self, vertex):
        ...         return None
        ...     def compute(self, vertex, messages):
        ...         vertex.remove_edges(2)
        ...         vertex.value = vertex.degree
        ...         vertex.vote_to_halt()
        >>> with bf.Graph.from_arrow(pa.table({"source": [1, 1], "target": [2, 3]})) as graph:
        ...     dict(bf.run(graph, Fewer()))
        {1: 1, 2: 0, 3: 0}
        """
        self._edges = without(self.edges, named(target))

    def set_edge_value(self, target: Any, value: Any) -> None:
        """Set the value of the out-edges to a target at once.

        Args:
            target: Id of the target; without an edge to it nothing changes.
            value: The new value.

        Raises:
            UsageError: The target is None.

        >>> import brimful as bf, pyarrow as pa
        >>> class Marked(bf.Pregel):
        ...     def initial_value(self, vertex):
        ...         return None
        ...     def compute(self, vertex, messages):
        ...         vertex.set_edge_value(2, "seen")
        ...         vertex.value = vertex.edges
        ...         vertex.vote_to_halt()
        >>> with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        ...     dict(bf.run(graph, Marked()))
        {1: [(2, 'seen')], 2: []}
        """
        target = named(target)
        self._edges = [(one, value if one == target else old) for one, old in self.edges]

    def request_add_vertex(self, id: Any, value: Any = None, edges: Iterable[Any] = ()) -> None:
        """Request a new vertex, which exists from the next superstep on.

        Args:
            id: Id of the vertex, of the type of the graph's ids.
            value: Its value.
            edges: Pairs of target and value.

        Raises:
            UsageError: The program does not say that it `mutates`, an id is None, or an edge is not
                a pair.

        >>> import brimful as bf, pyarrow as pa
        >>> class More(bf.Pregel):
        ...     mutates = True
        ...     def initial_value(self, vertex):
        ...         return 0
        ...     def compute(self, vertex, messages):
        ...         if vertex.id == 1 and vertex.superstep == 0:
        ...             vertex.request_add_vertex(9, 5)
        ...         vertex.vote_to_halt()
        >>> with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        ...     dict(bf.run(graph, More()))
        {1: 0, 2: 0, 9: 5}
        """
        self._request(id, ADD_VERTEX, [value, [list(edge) for edge in named_pairs(edges)]])

    def request_remove_vertex(self, id: Any) -> None:
        """Request the removal of a vertex and its out-edges from the next superstep on.

        Args:
            id: Id of the vertex. Edges that lead to it stay.

        Raises:
            UsageError: The program does not say that it `mutates`, or an id is None.

        >>> import brimful as bf, pyarrow as pa
        >>> class Less(bf.Pregel):
        ...     mutates = True
        ...     def initial_value(self, vertex):
        ...         return 0
        ...     def compute(self, vertex, messages):
        ...         if vertex.superstep == 0:
        ...             vertex.request_remove_vertex(2)
        ...         vertex.vote_to_halt()
        >>> with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        ...     dict(bf.run(graph, Less()))
        {1: 0}
        """
        self._request(id, REMOVE_VERTEX, None)

    def request_add_edge(self, source: Any, target: Any, value: Any = 1.0) -> None:
        """Request a new edge, which exists from the next superstep on.

        Args:
            source: Id of the source, which is created if it does not exist.
            target: Id of the target.
            value: Value of the edge.

        Raises:
            UsageError: The program does not say that it `mutates`, or an id is None.

        >>> import brimful as bf, pyarrow as pa
        >>> class Reversed(bf.Pregel):
        ...     mutates = True
        ...     def initial_value(self, vertex):
        ...         return None
        ...     def compute(self, vertex, messages):
        ...         if vertex.superstep == 0:
        ...             for target, value in vertex.edges:
        ...                 vertex.request_remove_edges(vertex.id, target)
        ...                 vertex.request_add_edge(target, vertex.id, value)
        ...         else:
        ...             vertex.value = vertex.edges
        ...             vertex.vote_to_halt()
        >>> with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        ...     dict(bf.run(graph, Reversed()))
        {1: [], 2: [(1, 1.0)]}
        """
        self._request(source, ADD_EDGE, [named(target), value])

    def request_remove_edges(self, source: Any, target: Any) -> None:
        """Request the removal of all edges from a source to a target from the next superstep on.

        Args:
            source: Id of the source.
            target: Id of the target.

        Raises:
            UsageError: The program does not say that it `mutates`, or an id is None.

        >>> import brimful as bf, pyarrow as pa
        >>> class Cut(bf.Pregel):
        ...     mutates = True
        ...     def initial_value(self, vertex):
        ...         return None
        ...     def compute(self, vertex, messages):
        ...         if vertex.superstep == 0:
        ...             vertex.request_remove_edges(1, 2)
        ...         else:
        ...             vertex.vote_to_halt()
        ...         vertex.value = vertex.degree
        >>> with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        ...     dict(bf.run(graph, Cut()))
        {1: 0, 2: 0}
        """
        self._request(source, REMOVE_EDGES, named(target))

    def _request(self, vertex: Any, kind: int, payload: Any) -> None:
        if not self._mutates:
            raise UsageError(
                "the program requests a change of the graph; set mutates = True in its class"
            )
        self._outbox += (named(vertex), [kind, payload])

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
        self._shared.aggregated.add(name, value)

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
        return self._shared.aggregated.last(name)
