"""The states that a program of your own ends with."""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

from brimful.errors import UsageError
from brimful.ids import VertexId, vertex_id
from brimful.io.output import write_table
from brimful.options.checks import rows_wanted
from brimful.options.described import EXPORT, described
from brimful.packages import _native, pyarrow, record
from brimful.per_vertex import PerVertex
from brimful.wording import counted

#: Rows that come from the native side at once.
_BATCH = 1 << 12


class States(PerVertex[Any]):
    """The states that a run ended with: a mapping from every vertex to its state.

    Columns are `vertex` and `state`, of the type that Arrow finds for all states, or a column for
    each field where the program has `state_type` or `value_type`. `stats` has mode,
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
        has_one_more: bool = False,
        trace: Callable[[], pyarrow.Table] | None = None,
        record: record.Record | None = None,
        aggregates: Mapping[str, Any] | None = None,
        inputs: Sequence[str] = (),
    ) -> None:
        """Wrap the native states; called by `run`, which gives the reason for interpretation.

        A state of Pregel is a list that begins with the value. With one more superstep than the
        program has, the count of supersteps leaves it out.
        """
        self._native, self._why = native, why
        self._is_pregel, self._has_one_more, self._trace = is_pregel, has_one_more, trace
        self._record, self._aggregates, self._inputs = record, aggregates, inputs

    @property
    def trace(self) -> pyarrow.Table | None:
        """The calls for the vertices of `trace=`, a table; None without.

        Columns are `superstep`, `vertex`, `call` (the method), `received` (signals or messages),
        `before` and `after` (states), `sent` (target and signal) and `score`; objects are shown as
        strings.
        """
        return None if self._trace is None else self._trace()

    @property
    def column(self) -> str:
        """Name of the value column."""
        return "state"

    @property
    def stats(self) -> dict[str, Any]:
        """Mode, supersteps, seconds, signals, and the figures of store and cache.

        `variant` is "interpreted", and `why` gives the reason for interpretation.
        """
        more = {} if self._aggregates is None else {"aggregates": dict(self._aggregates)}
        stats = {**self._native.stats, "variant": "interpreted", "why": self._why, **more}
        if self._has_one_more:
            stats["supersteps"] = max(stats["supersteps"] - 1, 0)
        return stats

    @described({})
    def top(self, n: int = 10, *, key: Callable[[Any], Any] | None = None) -> list[tuple[Any, Any]]:
        """Return the largest states; None is left out, and NaN is less than other numbers.

        Args:
            n: Number of rows.
            key: Function of a state whose result is compared; None: the state itself, or its first
                field.

        Returns:
            Pairs `(vertex, state)`, largest first, ties by vertex id.

        Raises:
            UsageError: Two states cannot be compared, or `n` is negative or not a whole number.

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
        count = rows_wanted(n, len(self))
        measure = key or (lambda state: state if self._record is None else state[0])
        try:
            return heapq.nlargest(count, ranked, key=lambda pair: _ordered(measure(pair[1])))
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
            if not parts:
                return pa.table({"vertex": pa.array([], ids.type), **self._columns([])})
            return pa.concat_tables(parts, promote_options="permissive")
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
        write_table(self.to_arrow, self._output_path(path), overwrite=overwrite)

    def __len__(self) -> int:
        """Return the number of vertices."""
        return len(self._native)

    def __getitem__(self, vertex: VertexId) -> Any:
        """Return the state of a vertex.

        Raises:
            NotFoundError: The graph has no such vertex (also a `KeyError`).
        """
        return self._value(self._native.state(vertex_id(vertex)))

    def _value(self, state: Any) -> Any:
        if not self._is_pregel:
            return state
        return state[0] if self._record is None else self._record.made(state[0])

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


def _ordered(value: Any) -> tuple[bool, Any]:
    """Return a value with its place in an order: no comparison with NaN is true."""
    return (False, 0) if isinstance(value, Real) and value != value else (True, value)
