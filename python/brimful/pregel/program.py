"""The base class of Pregel programs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import brimful
from brimful.pregel.aggregators import Aggregator
from brimful.pregel.changes import NewVertex, VertexChanges, VertexData, resolved
from brimful.pregel.master import Master, WorkerContext
from brimful.pregel.vertex import PregelVertex


class Pregel(ABC):
    """The base class of Pregel programs (Malewicz et al. 2010; Apache Giraph).

    In each superstep `compute` runs for every vertex that has not voted to halt or that received
    messages; messages arrive in the next superstep. The run ends when all vertices have halted and
    no message is in transit, or when the master halts it. `bf.run` takes the program.

    With `mode="async"` there is only the first superstep. After it, requests for a vertex are
    resolved and `compute` runs as soon as messages arrive, and `vertex.superstep` counts the calls
    for the vertex. Aggregators, master and worker context need supersteps.

    Rules of `Program` hold: methods change neither the program nor messages and values in place. A
    checkpoint holds the aggregators, the choices of the master, and the attributes of the worker
    context whose names do not begin with an underscore, as `serializer` writes them.

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

    Values and messages can have fields, compiled or not:

    >>> import numpy as np
    >>> class Weights(bf.Pregel):
    ...     value_type = message_type = np.dtype([("total", "f8"), ("edges", "u4")])
    ...     def initial_value(self, vertex):
    ...         return 0.0, 0
    ...     def combine(self, left, right):
    ...         return left.total + right.total, left.edges + right.edges
    ...     def compute(self, vertex, messages):
    ...         for message in messages:
    ...             vertex.value = message.total, message.edges
    ...         if vertex.superstep == 0:
    ...             for target, weight in vertex.edges:
    ...                 vertex.send(target, (weight, 1))
    ...         vertex.vote_to_halt()
    >>> with bf.Graph.from_arrow(pa.table(arcs), weight="weight") as graph:
    ...     bf.run(graph, Weights(), weighted=True)[3]
    Value(total=4.0, edges=2)
    """

    #: The aggregators by name.
    aggregators: ClassVar[Mapping[str, Aggregator]] = {}
    #: True if vertices request changes of the graph, or send messages to vertices that do not
    #: exist, which `resolve` then creates. Messages are then combined at their target only.
    mutates: ClassVar[bool] = False
    #: A structured type of NumPy, if a value has several fields. Methods then set a tuple of all
    #: fields, and read a named tuple.
    value_type: ClassVar[Any] = None
    #: A structured type of NumPy, if a message has several fields. Methods then send and return a
    #: tuple of all fields, and receive named tuples.
    message_type: ClassVar[Any] = None

    @abstractmethod
    def initial_value(self, vertex: brimful.Vertex) -> Any:
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
        """Combine two messages to one vertex; a program that defines this combines its messages.

        Args:
            left: A message.
            right: A message.

        Returns:
            The message that replaces both; their order is arbitrary, so that `combine` must be
            commutative and associative.

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

    def worker_context(self) -> WorkerContext | None:
        """Return the context of the worker of a run; None: there is none.

        Returns:
            A new instance of a class derived from `WorkerContext`.

        Raises:
            Exception: Any exception ends `bf.run` before the run.

        >>> import brimful as bf, pyarrow as pa
        >>> class Log(bf.WorkerContext):
        ...     def pre_application(self):
        ...         self.lines = []
        >>> class Logged(bf.Pregel):
        ...     def worker_context(self):
        ...         return Log()
        ...     def initial_value(self, vertex):
        ...         return None
        ...     def compute(self, vertex, messages):
        ...         vertex.context.lines.append(vertex.id)
        ...         vertex.value = len(vertex.context.lines)
        ...         vertex.vote_to_halt()
        >>> with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        ...     sorted(bf.run(graph, Logged()).values())
        [1, 2]
        """
        return None

    def resolve(
        self, id: Any, vertex: VertexData | None, changes: VertexChanges
    ) -> VertexData | None:
        """Return a vertex as the requests for it leave it; called before the next superstep.

        The default is that of Giraph: edges are removed, then the vertex; a vertex that does not
        exist is the first of those to add, or has the value of `initial_value` if a message to it
        or an edge from it is there; then edges are added. A vertex that exists is not added again.

        Args:
            id: Id of the vertex.
            vertex: The vertex; None if it does not exist.
            changes: The requests.

        Returns:
            The vertex; None if it does not exist. It then computes and receives nothing. The
            object `vertex` stays halted if it has halted and has no messages; another object is a
            new vertex, which computes.

        Raises:
            Exception: Any exception ends the run as a `ProgramError` that names the vertex.

        >>> import brimful as bf, pyarrow as pa
        >>> class Strict(bf.Pregel):
        ...     mutates = True
        ...     def initial_value(self, vertex):
        ...         return 0
        ...     def resolve(self, id, vertex, changes):
        ...         return vertex if vertex is None else super().resolve(id, vertex, changes)
        ...     def compute(self, vertex, messages):
        ...         if vertex.superstep == 0:
        ...             vertex.send(9, "to nobody")
        ...         vertex.vote_to_halt()
        >>> with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        ...     dict(bf.run(graph, Strict()))
        {1: 0, 2: 0}
        """
        return resolved(vertex, changes, lambda: VertexData(self.initial_value(NewVertex(id))))
