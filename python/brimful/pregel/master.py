"""The master and the worker context, which compute between supersteps."""

from __future__ import annotations

from typing import Any

from brimful.errors import UsageError
from brimful.pregel.aggregators import Aggregated
from brimful.wording import shortened


class Master:
    """The view and the decisions of `Pregel.master_compute` before a superstep.

    On a cluster the first worker has the master, and all workers follow its decisions.

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

    __slots__ = (
        "_combines",
        "_program",
        "_values",
        "combine",
        "compute",
        "is_halted",
        "superstep",
        "vertices",
    )

    #: The number of the superstep that begins, from 0.
    superstep: int
    #: Number of vertices of the graph.
    vertices: int
    #: True after `halt`.
    is_halted: bool
    #: Names of the methods in use, which `set_compute` and `set_combine` change.
    compute: str
    combine: str | None

    def __init__(
        self, program: object, vertices: int, values: Aggregated, *, combines: bool
    ) -> None:
        """Begin a run on so many vertices."""
        self.superstep, self.vertices, self.is_halted = 0, vertices, False
        self.compute, self.combine = "compute", "combine" if combines else None
        self._program, self._values, self._combines = program, values, combines

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

    def set_compute(self, name: str) -> None:
        """Let another method compute from this superstep on.

        Args:
            name: Name of a method of the program, with the parameters of `compute`.

        Raises:
            UsageError: The program has no such method.

        >>> import brimful as bf, pyarrow as pa
        >>> class Phases(bf.Pregel):
        ...     def initial_value(self, vertex):
        ...         return []
        ...     def master_compute(self, master):
        ...         if master.superstep == 1:
        ...             master.set_compute("finish")
        ...     def compute(self, vertex, messages):
        ...         vertex.value = [*vertex.value, "begun"]
        ...     def finish(self, vertex, messages):
        ...         vertex.value = [*vertex.value, "finished"]
        ...         vertex.vote_to_halt()
        >>> with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        ...     bf.run(graph, Phases())[1]
        ['begun', 'finished']
        """
        self.compute = self._method(name)

    def set_combine(self, name: str | None) -> None:
        """Let another method combine the messages of this and later supersteps.

        Args:
            name: Name of a method of the program, with the parameters of `combine`; None: messages
                are not combined.

        Raises:
            UsageError: The program has no such method, or does not define `combine`.

        >>> import brimful as bf, pyarrow as pa
        >>> class Extremes(bf.Pregel):
        ...     def initial_value(self, vertex):
        ...         return []
        ...     def combine(self, left, right):
        ...         return min(left, right)
        ...     def largest(self, left, right):
        ...         return max(left, right)
        ...     def master_compute(self, master):
        ...         if master.superstep == 1:
        ...             master.set_combine("largest")
        ...     def compute(self, vertex, messages):
        ...         vertex.value = vertex.value + messages
        ...         if vertex.superstep < 2:
        ...             vertex.send_to_all(vertex.id)
        ...         else:
        ...             vertex.vote_to_halt()
        >>> with bf.Graph.from_arrow(pa.table({"source": [1, 2], "target": [3, 3]})) as graph:
        ...     bf.run(graph, Extremes())[3]
        [1, 2]
        """
        if not self._combines:
            raise UsageError(f"{type(self._program).__name__} does not define combine()")
        self.combine = None if name is None else self._method(name)

    def _method(self, name: str) -> str:
        if not (isinstance(name, str) and callable(getattr(type(self._program), name, None))):
            raise UsageError(f"{type(self._program).__name__} has no method {shortened(name)!r}")
        return name


class WorkerContext:
    """Hooks before and after a run and its supersteps; vertices see them as `context`.

    Derive from it, and return an instance from `Pregel.worker_context`. One worker computes all
    vertices; on a cluster each worker has its own context and computes a part of them. An exception
    ends the run as a `ProgramError`.

    >>> import brimful as bf, pyarrow as pa
    >>> class Counted(bf.WorkerContext):
    ...     def pre_superstep(self):
    ...         self.computed = 0
    ...     def post_superstep(self):
    ...         self.aggregate("most", self.computed)
    >>> class Counts(bf.Pregel):
    ...     aggregators = {"most": bf.Aggregator("max", 0)}
    ...     def worker_context(self):
    ...         return Counted()
    ...     def initial_value(self, vertex):
    ...         return None
    ...     def compute(self, vertex, messages):
    ...         vertex.context.computed += 1
    ...         vertex.value = vertex.aggregated("most")
    ...         if vertex.superstep == 1:
    ...             vertex.vote_to_halt()
    >>> with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
    ...     dict(bf.run(graph, Counts()))
    {1: 2, 2: 2}
    """

    #: The number of the superstep that begins or has ended, from 0.
    superstep: int = 0
    _values: Aggregated

    def _saved(self) -> dict[str, Any]:
        """Return the attributes for a checkpoint: all but those that begin with an underscore."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def pre_application(self) -> None:
        """Called before the first superstep.

        Raises:
            Exception: Any exception ends the run as a `ProgramError`.

        >>> import brimful as bf
        >>> bf.WorkerContext().pre_application()
        """

    def pre_superstep(self) -> None:
        """Called before the vertices of a superstep compute, and after `master_compute`.

        Raises:
            Exception: Any exception ends the run as a `ProgramError`.

        >>> import brimful as bf
        >>> bf.WorkerContext().pre_superstep()
        """

    def post_superstep(self) -> None:
        """Called after the vertices of a superstep; its contributions belong to that superstep.

        Raises:
            Exception: Any exception ends the run as a `ProgramError`.

        >>> import brimful as bf
        >>> bf.WorkerContext().post_superstep()
        """

    def post_application(self) -> None:
        """Called after the last superstep of a run that did not fail.

        Raises:
            Exception: Any exception ends the run as a `ProgramError`.

        >>> import brimful as bf
        >>> bf.WorkerContext().post_application()
        """

    def aggregate(self, name: str, value: Any) -> None:
        """Contribute a value to an aggregator, as `PregelVertex.aggregate` does.

        Args:
            name: The name of the aggregator.
            value: Any value that its function combines.

        Raises:
            UsageError: The program has no such aggregator.

        >>> import brimful as bf
        >>> class Ended(bf.WorkerContext):
        ...     def post_superstep(self):
        ...         self.aggregate("supersteps", 1)
        """
        self._values.add(name, value)

    def aggregated(self, name: str) -> Any:
        """Return the value of an aggregator, as `PregelVertex.aggregated` does.

        Args:
            name: The name of the aggregator.

        Returns:
            The value.

        Raises:
            UsageError: The program has no such aggregator.

        >>> import brimful as bf
        >>> class Told(bf.WorkerContext):
        ...     def pre_superstep(self):
        ...         self.seen = self.aggregated("supersteps")
        """
        return self._values.last(name)
