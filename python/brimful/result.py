"""A computed result: one value per vertex, sorted by the user's vertex ids."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from brimful.catalog import algorithm_request, open_store
from brimful.ids import VertexId, column_ids, id_of_name, row_ids, vertex_id
from brimful.io.output import stream_batches, stream_table, write_result
from brimful.io.source import input_files
from brimful.options.checks import rows_wanted, word
from brimful.options.described import EXPORT, described
from brimful.options.runs import AskedOptions, CheckpointOptions
from brimful.options.table import checked
from brimful.packages import _native, pyarrow, record
from brimful.per_vertex import PerVertex
from brimful.reporting import warn
from brimful.wording import counted

if TYPE_CHECKING:
    from brimful.cluster.worker import Outcome, Work
    from brimful.graph import Graph
    from brimful.resources import Resources
    from brimful.stores.registry import Opener


class Result(PerVertex["float | int | str | None"]):
    """The values that an algorithm gave every vertex.

    Columns are `vertex` (the type of the ids: int64, uint64, string...) and `column`, the
    algorithm's value (`pagerank`: float64; `component`: the type of `vertex`). Every vertex occurs
    once. As a mapping it gives each vertex its value, None where the column is null. Conversions
    copy; `__arrow_c_stream__` streams batches, so `polars.DataFrame(result)` and DuckDB read it as
    it is. `stats` has the fields of `brimful run --json`: counts, supersteps, seconds, bytes, peak
    memory.

    >>> import brimful as bf, pyarrow as pa
    >>> table = pa.table({"source": [0, 1, 2], "target": [1, 2, 0]})
    >>> with bf.Graph.from_arrow(table) as graph:
    ...     result = bf.connected_components(graph)
    >>> result[2], len(result), result.column, result.stats["converged"]
    (0, 3, 'component', True)
    >>> dict(result), 3 in result, list(result)
    ({0: 0, 1: 0, 2: 0}, False, [0, 1, 2])
    """

    def __init__(
        self, native: _native.Result, *, keeps: object = None, inputs: Sequence[str] = ()
    ) -> None:
        """Wrap a native result of some input files; called by the algorithms, not by users."""
        self._native, self._keeps, self._inputs = native, keeps, inputs
        self._output: str | None = None
        self._documents: dict[str, Any] | None = None

    @property
    def native(self) -> _native.Result:
        """The native result."""
        return self._native

    @property
    def column(self) -> str:
        """Name of the value column."""
        return self._native.column

    @property
    def stats(self) -> dict[str, Any]:
        """Fields of `brimful run --json`: counts, supersteps, seconds, bytes, peak memory.

        `traversals` counts the supersteps by the kind of traversal: "dense" (all edges), "windows"
        (all, with the signals of a part of the vertices in memory at a time), "sparse" (those of
        vertices that signal), "ordered" (those of the nearest vertices that signal), "unpacked"
        (those that signal, unpacked in memory), "sweep" (all, asynchronously), "priority_queue"
        (vertex by vertex, in order), "gather" (lists of neighbors), "store", "scan" (all edges
        once), "search" (depth first) or "cluster" (divided among workers, each in its own way).
        `last_traversal` is that of the last superstep, None without one. The work of the first
        1,000 supersteps is in lists: `superstep_seconds`, `superstep_frontier` (the vertices that
        signal or gather; None without a frontier), `superstep_signals`, `superstep_edges` (visited,
        whether their sources signalled or not), `superstep_bytes_read` and
        `superstep_bytes_written`. `largest_frontier` is that of all supersteps. `documents` is None
        unless the result was written to a database: field, documents `updated`,
        `vertices_without_document` and the `first_missing`.
        """
        return {**self._native.stats, "output": self._output, "documents": self._documents}

    @described({}, "corrupt", "io")
    def top(self, n: int = 10) -> list[tuple[Any, Any]]:
        """Return the largest values; vertices without a value are left out.

        Args:
            n: Number of rows.

        Returns:
            Pairs `(vertex, value)`, largest first, ties by vertex id.

        Raises:
            UsageError: `n` is negative or not a whole number.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [0, 0], "target": [1, 2]})) as graph:
        ...     bf.degrees(graph).top(2)
        [(0, 2), (1, 0)]
        """
        count = rows_wanted(n, len(self))
        return [row_ids(row) for rows in self._native.top(count) for row in rows]

    @described({}, "corrupt", "io")
    def to_arrow(self) -> pyarrow.Table:
        """Return both columns as a `pyarrow.Table`, a copy in memory.

        Returns:
            The columns `vertex` and the name in `column`.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [0], "target": [1]})) as graph:
        ...     bf.degrees(graph).to_arrow().to_pydict()
        {'vertex': [0, 1], 'degree': [1, 0]}
        """
        return stream_table(self._columns())

    @described(EXPORT, "corrupt", "io")
    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write both columns to a file, streamed, whole or not at all, or values to documents.

        A URL `mongodb://HOST/DATABASE/COLLECTION?field=NAME&id=NAME` (or `orientdb://`) sets a
        field in the documents whose id field holds a vertex id. Vertices without a document are
        counted in `stats["documents"]`, and logged.

        Args:
            path: File to write: .parquet, .csv or .arrow; or the URL of documents.
            overwrite: Replace the file if it exists, or the field if documents have it.

        Raises:
            UsageError: The suffix is unknown, the file or the field exists and `overwrite` is
                false, or a server refuses the URL.
            InputError: Documents cannot hold the values.

        >>> import brimful as bf, os, pathlib, pyarrow as pa, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "degrees.csv")
        >>> with bf.Graph.from_arrow(pa.table({"source": [0], "target": [1]})) as graph:
        ...     bf.degrees(graph).write(path)
        >>> pathlib.Path(path).read_text().split()
        ['vertex,degree', '0,1', '1,0']
        """
        name = self._output_path(path)
        written = write_result(self._columns(), name, overwrite=overwrite)
        self._output = name if written is None else written.name
        self._documents = None if written is None else written.figures()
        if written is not None and written.missing:
            warn(*written.warnings())

    def __getitem__(self, vertex: VertexId) -> float | int | str | None:
        """Return the value of a vertex.

        Raises:
            NotFoundError: The graph has no such vertex (also a `KeyError`).
        """
        value: float | int | str | None = id_of_name(self._native.value(vertex_id(vertex)))
        return value

    def __len__(self) -> int:
        """Return the number of vertices."""
        return len(self._native)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the Arrow stream capsule of both columns; may be called any number of times."""
        stream: object = self._columns().__arrow_c_stream__(requested_schema)
        return stream

    def _columns(self) -> Any:
        """Return the object with the stream of all columns."""
        return self._native

    def _batches(self) -> Iterator[tuple[Sequence[Any], Sequence[Any]]]:

        for batch in stream_batches(self._native):
            yield column_ids(batch.column(0)), column_ids(batch.column(1))

    def _headline(self) -> str:
        stats = self._native.stats
        return (
            f"brimful.Result {stats['algorithm']}: {counted(len(self), 'vertex')}, "
            f"{counted(stats['supersteps'], 'superstep')}, {stats['seconds']:.3g} s"
        )


class Records(Result):
    """The states of a compiled program that have several fields: a column for each of them.

    As a mapping it gives each vertex its state, a named tuple.

    >>> import brimful as bf, numpy as np, pyarrow as pa
    >>> class Seen(bf.Program):
    ...     delivery, combiner = "combined", "max"
    ...     state_type = np.dtype([("greatest", "i8"), ("changes", "u4")])
    ...     def initial_state(self, vertex):
    ...         return vertex.id, 0
    ...     def signal(self, source, target, weight):
    ...         return source.state.greatest
    ...     def collect(self, vertex, signals):
    ...         if signals[0] <= vertex.state.greatest:
    ...             return vertex.state.greatest, vertex.state.changes
    ...         return signals[0], vertex.state.changes + 1
    >>> with bf.Graph.from_arrow(pa.table({"source": [9, 1], "target": [1, 2]})) as graph:
    ...     states = bf.run(graph, Seen(), on="shards")
    >>> states[1], states.to_arrow().column_names
    (State(greatest=9, changes=1), ['vertex', 'greatest', 'changes'])
    >>> states.column, states.stats["variant"]
    ('state', 'compiled')
    """

    def __init__(
        self,
        native: _native.Result,
        record: record.Record,
        *,
        keeps: object = None,
        inputs: Sequence[str] = (),
    ) -> None:
        """Wrap a native result of some input files; called by `run`, not by users."""
        super().__init__(native, keeps=keeps, inputs=inputs)
        self._record = record

    @property
    def column(self) -> str:
        """Name of the mapped value, which has the columns of `to_arrow`."""
        return "state"

    @described({}, "corrupt", "io")
    def top(self, n: int = 10, *, field: str | None = None) -> list[tuple[Any, Any]]:
        """Return the states with the largest values of a field.

        Args:
            n: Number of rows.
            field: Name of the field; None: the first one.

        Returns:
            Pairs `(vertex, state)`, largest first, ties by vertex id.

        Raises:
            UsageError: There is no such field, or `n` is negative or not a whole number.

        >>> import brimful as bf, numpy as np, pyarrow as pa
        >>> class Named(bf.Program):
        ...     delivery, combiner = "combined", "max"
        ...     state_type = np.dtype([("id", "i8"), ("less", "i8")])
        ...     def initial_state(self, vertex):
        ...         return vertex.id, -vertex.id
        ...     def signal(self, source, target, weight):
        ...         return source.state.id
        ...     def collect(self, vertex, signals):
        ...         return vertex.state.id, vertex.state.less
        >>> with bf.Graph.from_arrow(pa.table({"source": [9, 1], "target": [1, 2]})) as graph:
        ...     bf.run(graph, Named(), on="shards").top(1, field="less")
        [(1, State(id=1, less=-1))]
        """
        names = [named.name for named in self._record.fields]
        if field is not None:
            word(field, "field", names)
        count = rows_wanted(n, len(self))
        at = 0 if field is None else names.index(field)
        rows = (row for rows in self.native.top(count, at) for row in rows)
        return [(id_of_name(vertex), self[vertex]) for vertex, _ in rows]

    def __getitem__(self, vertex: VertexId) -> Any:
        """Return the state of a vertex.

        Raises:
            NotFoundError: The graph has no such vertex (also a `KeyError`).
        """
        return self._record.shown(self.native.values(vertex_id(vertex)))

    def _columns(self) -> Any:
        return StateColumns(self.native, self._record)

    def _batches(self) -> Iterator[tuple[Sequence[Any], Sequence[Any]]]:

        for batch in stream_batches(self._columns()):
            vertices, *fields = batch.columns
            fields = [field.to_pylist() for field in fields]
            yield (
                column_ids(vertices),
                [self._record.type(*values) for values in zip(*fields, strict=True)],
            )


class StateColumns:
    """The columns of a native result, in the types of the fields of states."""

    def __init__(self, native: _native.Result, record: record.Record) -> None:
        """Take the result, and the types."""
        self._native, self._record = native, record

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the Arrow stream capsule."""
        import pyarrow as pa

        source = pa.RecordBatchReader.from_stream(self._native)
        fields = [
            pa.field(field.name, self._record.arrow(field), False) for field in self._record.fields
        ]
        stream: object = source.cast(
            pa.schema([source.schema.field(0), *fields])
        ).__arrow_c_stream__(requested_schema)
        return stream

    def write_csv(self, path: str, *, overwrite: bool) -> None:
        """Write the columns."""
        self._native.write_csv(path, overwrite=overwrite)


def computed(
    graph: _native.Graph,
    request: Mapping[str, Any],
    resources: Resources,
    checkpoints: Mapping[str, Any] | None = None,
) -> Result:
    """Run an algorithm on a graph: a checked request of `catalog.algorithm_request`."""
    saving = checked(CheckpointOptions, {}) if checkpoints is None else checkpoints
    result = run_native(graph, request, saving, resources)
    result.discard_checkpoints()
    return Result(result, inputs=input_files(graph))


def computed_on(
    graph: Graph,
    algorithm: str,
    params: dict[str, object],
    resources: Resources,
    **options: Any,
) -> Result:
    """Run an algorithm on a graph with default options, except `options`.

    Raises:
        UsageError, BudgetError, CorruptError, StoreIoError: As `run`.
    """
    wanted = algorithm_request(algorithm, params, checked(AskedOptions, options))
    return computed(graph.native, wanted, resources.on(graph))


def run_native(
    graph: _native.Graph,
    request: Mapping[str, Any],
    checkpoints: Mapping[str, Any],
    resources: Resources,
) -> _native.Result:
    """Run an algorithm in this process or on a cluster, as its request specifies."""
    from brimful import _native

    if request["cluster"] is not None:
        # The number of workers does not matter here, and may not be known yet.
        cluster_size = {"workers": 1, "cores": None}
        _native.check_request({**request, "cluster_size": cluster_size}, checkpoints=checkpoints)
    work = partial(_run_process, {**request, "cluster": None})
    return run_divided(graph, work, request["cluster"], checkpoints, resources)


def run_divided(
    graph: _native.Graph,
    work: Work[Outcome],
    cluster: Mapping[str, Any] | None,
    checkpoints: Mapping[str, Any],
    resources: Resources,
    opener: Opener | None = None,
) -> Outcome:
    """Run work on a graph in this process, or divided among the workers of a cluster.

    `opener` is that of the store of the work, if it is a plug-in.
    """
    if cluster is None:
        return work(graph, None, checkpoints, resources)
    from brimful.cluster.driver import run

    return run(graph, work, cluster, checkpoints, resources, opener)


def _run_process(
    request: dict[str, Any],
    graph: _native.Graph,
    communicator: dict[str, Any] | None,
    checkpoints: Mapping[str, Any],
    resources: Resources,
) -> _native.Result:
    from brimful import _native

    with open_store(request["store"]):
        asked = {**request, "communicator": communicator}
        return _native.run(graph, asked, checkpoints=checkpoints, resources=resources)
