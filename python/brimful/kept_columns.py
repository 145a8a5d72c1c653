"""The columns of a graph's vertices and edges in the Python API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Unpack, cast

from brimful.options.checks import column_names
from brimful.options.described import described
from brimful.options.imports import AddedColumnsOptions
from brimful.options.table import checked, texts
from brimful.packages import _native, edge_values, pyarrow
from brimful.reporting import shows_progress, warn
from brimful.resources import Resources

if TYPE_CHECKING:
    from brimful.graph import Graph


class KeptColumns:
    """Columns of the vertices and the edges of a `Graph`."""

    @property
    def native(self) -> _native.Graph:
        """The native graph."""
        raise NotImplementedError

    def _open_again(self) -> None:
        """Open the graph in its present state on disk."""
        raise NotImplementedError

    @property
    def vertex_columns(self) -> pyarrow.Schema:
        """Names and types of the columns kept with the vertices, a `pyarrow.Schema`.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [0], "target": [1]})) as graph:
        ...     graph.vertex_columns.names
        []
        """
        from brimful.tables.columns import schema_of

        return schema_of(self.native)

    @property
    def edge_columns(self) -> pyarrow.Schema:
        """Names and types of the columns kept with the edges, a `pyarrow.Schema`.

        >>> import brimful as bf, pyarrow as pa
        >>> trades = pa.table({"source": [0], "target": [1], "year": [2020]})
        >>> with bf.Graph.from_arrow(trades, edge_columns="year") as graph:
        ...     graph.edge_columns.names
        ['year']
        """
        from brimful.tables.edge_columns import edge_columns

        return edge_columns(self.native)

    @described({}, "closed graph", "io")
    def edge_rows(self, columns: str | Sequence[str] | None = None) -> pyarrow.RecordBatchReader:
        """Return the edges with their columns, streamed in batches of 65,536 rows.

        Where the graph has columns of edges, edges are sorted by source and target; else they are
        those of `to_arrow`. The source of an undirected edge is its smaller end.

        Args:
            columns: Names of columns, a sequence or "amount,year"; None: all.

        Returns:
            A `pyarrow.RecordBatchReader` with the columns `source`, `target`, `weight` if there are
            weights, and the named ones.

        Raises:
            UsageError: The graph has no such column.
            NotFoundError: Another process has replaced the columns since the graph was opened.
            CorruptError: A page fails its checksum, when it is read.

        >>> import brimful as bf, pyarrow as pa
        >>> trades = pa.table({"source": [1, 0], "target": [0, 1], "year": [2021, 2020]})
        >>> with bf.Graph.from_arrow(trades, edge_columns=["year"]) as graph:
        ...     graph.edge_rows().read_all().to_pylist()
        [{'source': 0, 'target': 1, 'year': 2020}, {'source': 1, 'target': 0, 'year': 2021}]
        """
        from brimful.tables.edge_columns import edge_rows

        return _with_graph(edge_rows(self.native, column_names(columns)), self)

    @described({}, "closed graph", "io")
    def vertex_rows(self, columns: str | Sequence[str] | None = None) -> pyarrow.RecordBatchReader:
        """Return the vertices with their columns, streamed in batches of 65,536 rows.

        polars, DuckDB and pyarrow read it as it is; `read_all` makes a table in memory.

        Args:
            columns: Names of columns, a sequence or "age,name"; None: all.

        Returns:
            A `pyarrow.RecordBatchReader` with the column `vertex` and the named ones, by ascending
            vertex.

        Raises:
            UsageError: The graph has no such column.
            NotFoundError: Another process has replaced the columns since the graph was opened.
            CorruptError: A page fails its checksum, when it is read.

        >>> import brimful as bf, pyarrow as pa
        >>> people = pa.table({"id": [1, 0], "age": [41, 35]})
        >>> edges = pa.table({"source": [0, 1], "target": [1, 2]})
        >>> with bf.Graph.from_arrow(edges, vertex_columns=people, on="id") as graph:
        ...     graph.vertex_rows().read_all().to_pylist()[1:]
        [{'vertex': 1, 'age': 41}, {'vertex': 2, 'age': None}]
        """
        from brimful.tables.columns import vertex_rows

        return _with_graph(vertex_rows(self.native, column_names(columns)), self)

    @described({}, "closed graph", "io")
    def vertex_values(self, column: str) -> Mapping[Any, Any]:
        """Return a column as a mapping from vertices to values, for programs in Python.

        In another process, as on a cluster, the column is read from the graph again.

        Memory: the pages that look-ups touch of a memory-mapped file in the folder for temporary
            files; the system reclaims these pages when memory is short. A look-up takes a few
            microseconds.

        Args:
            column: Name of the column.

        Returns:
            A mapping that cannot be changed; None for nulls.

        Raises:
            UsageError: The graph has no such column.
            CorruptError: A page fails its checksum.
            StoreIoError: The folder for temporary files is full, or cannot be written.

        >>> import brimful as bf, pyarrow as pa
        >>> cities = pa.table({"vertex": [0, 2], "city": ["Rome", "Oslo"]})
        >>> edges = pa.table({"source": [0, 1], "target": [1, 2]})
        >>> with bf.Graph.from_arrow(edges, vertex_columns=cities) as graph:
        ...     city = graph.vertex_values("city")
        >>> city[2], city[1], len(city)
        ('Oslo', None, 3)
        """
        from brimful.tables.vertex_values import VertexValues

        return VertexValues(self.native, column)

    @described({}, "closed graph", "io")
    def edge_values(self, column: str) -> edge_values.EdgeValues:
        """Return the values of a column of edges by their ends, for programs in Python.

        `values[source.id, target]` in `signal` is the value of the edge; with `[..., weight]` it is
        that of the edge of this weight. `values.all(source, target)` has those of all edges between
        two vertices. In another process, as on a cluster, the column is read from the graph again.

        Memory: about 8 MiB and 0.5 bytes an edge. The column is in the folder for temporary files.
            A look-up takes some 10 microseconds.

        Args:
            column: Name of the column.

        Returns:
            An object with `values[source, target]`, `all` and `len`; None for nulls.

        Raises:
            UsageError: The graph keeps no such column with its edges.
            CorruptError: A page fails its checksum.

        >>> import brimful as bf, pyarrow as pa
        >>> trades = pa.table({"source": [0, 1], "target": [1, 2], "year": [2020, 2021]})
        >>> class Latest(bf.Program):
        ...     delivery, combiner = "combined", "max"
        ...     def __init__(self, years):
        ...         self.years = years
        ...     def initial_state(self, vertex):
        ...         return 0
        ...     def signal(self, source, target, weight):
        ...         return max(source.state, self.years[source.id, target])
        ...     def collect(self, vertex, signals):
        ...         return max(vertex.state, signals[0])
        ...     def signal_score(self, vertex):
        ...         return vertex.state != vertex.signalled
        >>> with bf.Graph.from_arrow(trades, edge_columns="year") as graph:
        ...     dict(bf.run(graph, Latest(graph.edge_values("year"))))
        {0: 0, 1: 2020, 2: 2021}
        """
        from brimful.tables.edge_values import EdgeValues

        return EdgeValues(self.native, column)

    @shows_progress
    @described(texts(AddedColumnsOptions), "closed graph", "budget", "io")
    def add_vertex_columns(
        self, table: object, **options: Unpack[AddedColumnsOptions]
    ) -> dict[str, int]:
        """Keep the columns of a table with the vertices; they stay in the graph directory.

        Vertices that the table lacks get nulls. Types stay: a column whose type would change is
        refused; categories become their values. DuckDB joins, on disk where the budget is too
        small. On failure the graph is as it was.

        Args:
            table: The path of a .parquet, .csv, .tsv or .arrow file, or an object with
                `__arrow_c_stream__`: a data frame, an Arrow table or a relation of DuckDB.

        Returns:
            The numbers `vertices_without_row` and `rows_without_vertex`.

        Raises:
            MissingPackageError: DuckDB is not installed.
            NotFoundError: There is no table at the path.
            UsageError: The table lacks the column `on`, its ids are of another type than vertices,
                or the graph has a column of this name and `replace` is false.
            InputError: An id occurs twice (the message names the rows), the table cannot be read,
                or a row has no vertex and `unmatched` is "fail".

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [0, 1], "target": [1, 2]})) as graph:
        ...     graph.add_vertex_columns(pa.table({"id": [1, 0], "age": [41, 35]}), on="id")
        ...     graph.vertex_columns.names
        {'vertices_without_row': 1, 'rows_without_vertex': 0}
        ['age']
        """
        from brimful.tables.columns import add_vertex_columns
        from brimful.tables.joining import table_name

        chosen = checked(AddedColumnsOptions, options, "add_vertex_columns")
        given = Resources.of(chosen).on(cast("Graph", self))
        tally = add_vertex_columns(
            self.native,
            table,
            chosen["on"],
            given,
            unmatched=chosen["unmatched"],
            replace=chosen["replace"],
        )
        self._open_again()
        warn(*tally.sentences(table_name(table), "the graph"))
        return asdict(tally)


def _with_graph(reader: pyarrow.RecordBatchReader, graph: KeptColumns) -> pyarrow.RecordBatchReader:
    """Return a reader that keeps a graph, whose directory may be temporary, until it ends."""
    import pyarrow as pa

    def batches(graph: KeptColumns) -> Iterator[pyarrow.RecordBatch]:
        yield from reader

    return pa.RecordBatchReader.from_batches(reader.schema, batches(graph))
