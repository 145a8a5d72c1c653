"""The columns of a graph's vertices, kept in its directory and read with its vertices.

The file has a row for each vertex, by ascending id, and no ids: other rows that come by ascending
id are read in step with it. Invariant: rows are never in memory as a whole; columns appear complete
or not at all.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from brimful.errors import CorruptError, InputError, NotFoundError, StoreIoError, UsageError
from brimful.io.output import native_batches, stream_batches, write_parquet
from brimful.io.regular import writing_to
from brimful.tables.joining import Join, JoinTally
from brimful.tables.parquet import written_schema
from brimful.tables.parquet_pages import GroupNeeds, known_group_needs
from brimful.wording import counted, did_you_mean

if TYPE_CHECKING:
    import pyarrow

    from brimful import _native
    from brimful.resources import Resources

#: The table of columns of vertices, as the native module names it.
VERTICES = "vertices"
#: The table of columns of edges.
EDGES = "edges"
#: Options of the Parquet writer of columns; pages get checksums.
WRITTEN: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
#: Batches in which a group of rows is read.
_BATCHES_OF_GROUP = 8
#: Bytes that a byte of a footer takes once it is parsed.
_FOOTER_SHARE = 16
#: Bytes that reading and writing a column take besides its values.
_COLUMN_BYTES = 24 << 10
#: Bytes that reading and writing a byte of a group of rows take: its pages, compressed and not,
#: the rows, and the same of the output.
_GROUP_SHARE = 8
#: Bytes of these that a reserve for pyarrow covers.
_USUAL_BYTES = 8 << 20
#: A Parquet file ends with the length of its footer and a magic word, of 4 bytes each.
_END_BYTES = 8


def footers_bytes(graph: _native.Graph) -> int:
    """Return the bytes that the names and types of all columns take; pyarrow need not be loaded."""
    needs = [_known_needs(graph, table, []) for table in (VERTICES, EDGES)]
    return sum(_FOOTER_SHARE * one.footer_bytes for one in needs if one is not None)


def rows_bytes(graph: _native.Graph, names: Sequence[str] | None, table: str = VERTICES) -> int:
    """Return the bytes of reading and writing columns beyond `ARROW_RESERVE_BYTES`.

    The columns are those with some names; None: all. pyarrow need not be loaded.
    """
    needs = _known_needs(graph, table, names)
    if needs is None:
        return 0
    values = _COLUMN_BYTES * needs.columns + _GROUP_SHARE * needs.group_bytes
    return footers_bytes(graph) + max(values - _USUAL_BYTES, 0)


def _known_needs(
    graph: _native.Graph, table: str, names: Sequence[str] | None
) -> GroupNeeds | None:
    """Measure columns of a table; None: there is no table, or reading it raises an error."""
    path = graph.table_path(table)
    try:
        return None if path is None else known_group_needs(path, names)
    except OSError:
        return None


def schema_of(graph: _native.Graph, table: str = VERTICES) -> pyarrow.Schema:
    """Return the names and types of the columns in a table of a graph; none without a table.

    Raises:
        NotFoundError: Another process has replaced the table.
    """
    import pyarrow as pa

    if graph.table_path(table) is None:
        return pa.schema([])
    with _open_table(graph, table) as file:
        return written_schema(file)


def column_figures(graph: _native.Graph, table: str = VERTICES) -> list[dict[str, Any]]:
    """Return `name`, `type` and `bytes` on disk of each column in a table of a graph.

    Raises:
        NotFoundError: Another process has replaced the table.
    """
    if graph.table_path(table) is None:
        return []
    with _open_table(graph, table) as file:
        footer = file.metadata
        groups = [footer.row_group(at) for at in range(footer.num_row_groups)]
        figures, first = [], 0
        for field in written_schema(file):
            end = first + _leaves(field.type)
            pages = [group.column(at) for group in groups for at in range(first, end)]
            size = sum(page.total_compressed_size for page in pages)
            figures.append({"name": field.name, "type": str(field.type), "bytes": size})
            first = end
        return figures


def _leaves(kind: pyarrow.DataType) -> int:
    """Return the number of Parquet columns that hold one column: several for a structure."""
    return sum(_leaves(kind.field(at).type) for at in range(kind.num_fields)) or 1


def place_hint(graph: _native.Graph, column: str, table: str) -> str:
    """Return the end of a sentence about a column that a table lacks: its place; empty: nowhere."""
    own = ["source", "target", *(["weight"] if graph.weighted else [])]
    of_edges, of_vertices = schema_of(graph, EDGES).names + own, schema_of(graph).names
    if column in (of_edges if table == VERTICES else of_vertices):
        return f"; it is a column of {EDGES if table == VERTICES else VERTICES}"
    taken = graph.info()["columns"]
    if taken is not None and column in taken["ignored"]:
        return "; the import ignored it, and --edge-columns of an import keeps it"
    return ""


def chosen_columns(
    graph: _native.Graph, names: Sequence[str] | None, table: str = VERTICES
) -> pyarrow.Schema:
    """Return the columns with some names, in their order; None: all.

    Raises:
        UsageError: The graph has no such column.
    """
    import pyarrow as pa

    schema = schema_of(graph, table)
    if names is None:
        return schema
    for name in names:
        if name not in schema.names:
            found = f"found: {', '.join(schema.names)}" if schema.names else "it has no columns"
            raise UsageError(
                f"{graph.path} has no column {name} of {table} ({found})"
                + (place_hint(graph, name, table) or did_you_mean(name, schema.names))
            )
    return pa.schema([schema.field(name) for name in names])


def column_batches(
    graph: _native.Graph, names: Sequence[str], table: str = VERTICES
) -> Iterator[pyarrow.RecordBatch]:
    """Yield batches of columns, in the order of the table's rows.

    Raises:
        CorruptError: A page fails its checksum.
        NotFoundError: Another process has replaced the table.
        StoreIoError: The file cannot be read.
    """
    import pyarrow as pa

    with _open_table(graph, table) as file:
        whole = written_schema(file)
        schema = pa.schema([whole.field(name) for name in names])
        # A group of rows has few bytes, of which a batch has a part.
        for group in range(file.num_row_groups):
            rows = max(-(-file.metadata.row_group(group).num_rows // _BATCHES_OF_GROUP), 1)
            for batch in file.iter_batches(rows, [group], list(names), use_threads=False):
                yield batch.select(list(names)).cast(schema)


@contextlib.contextmanager
def _open_table(graph: _native.Graph, table: str) -> Iterator[Any]:
    """Yield the open Parquet file of a table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = graph.table_path(table)
    assert path is not None, "the table exists"
    try:
        with pa.OSFile(os.fsencode(path), "rb") as raw:
            yield pq.ParquetFile(
                raw, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True
            )
    except FileNotFoundError:
        raise NotFoundError(
            f"the columns of {graph.path} have been replaced; open the graph again"
        ) from None
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        if isinstance(error, OSError) and error.errno is not None:
            raise StoreIoError(f"cannot read {path}: {error.strerror}", error.errno) from None
        raise CorruptError(
            f"{path} is corrupt: {reason}; restore it from a copy, or add the columns again"
        ) from None


def in_step(*streams: Iterator[pyarrow.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """Yield tuples of batches, one of each stream, that have the same rows.

    Raises:
        CorruptError: The streams have different numbers of rows.
    """
    held: list[Any] = [None] * len(streams)
    while True:
        for at, stream in enumerate(streams):
            while held[at] is None or held[at].num_rows == 0:
                held[at] = next(stream, None)
                if held[at] is None:
                    break
        ended = [batch is None for batch in held]
        if all(ended):
            return
        if any(ended):
            raise CorruptError(
                "the columns do not have one row for each vertex; add them to the graph again"
            )
        rows = min(batch.num_rows for batch in held)
        yield tuple(batch.slice(0, rows) for batch in held)
        held = [batch.slice(rows) for batch in held]


def vertex_batches(graph: _native.Graph) -> Iterator[pyarrow.RecordBatch]:
    """Yield batches of the column `vertex`, ascending."""
    return stream_batches(graph.vertex_stream())


def vertex_rows(
    graph: _native.Graph, names: Sequence[str] | None = None
) -> pyarrow.RecordBatchReader:
    """Return a reader of the vertices with the columns of some names; None: all.

    Raises:
        UsageError: The graph has no such column.
    """
    import pyarrow as pa

    columns = chosen_columns(graph, names)
    id_field = pa.RecordBatchReader.from_stream(graph.vertex_stream()).schema.field(0)
    schema = pa.schema([id_field, *columns])

    def batches() -> Iterator[pyarrow.RecordBatch]:
        if not columns.names:
            yield from vertex_batches(graph)
            return
        for ids, rows in in_step(vertex_batches(graph), column_batches(graph, columns.names)):
            yield pa.RecordBatch.from_arrays([*ids.columns, *rows.columns], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


class GraphColumns:
    """Columns of a graph's vertices instead of a `Join`: read in step, without a table."""

    def __init__(self, graph: _native.Graph, names: Sequence[str] | None) -> None:
        """Take columns by their names; None: all.

        Raises:
            UsageError: The graph has no such column.
        """
        self._graph = graph
        self._columns = chosen_columns(graph, names)
        self.name = graph.path

    def check(self, column: str | None, *, texts: bool) -> None:
        """Refuse a column with the name of the result's column; None: not known yet."""
        if column in self._columns.names:
            raise UsageError(
                f"both the result and {self.name} have a column {column}; leave it out"
            )

    @contextlib.contextmanager
    def reader(
        self, result: Any, resources: Resources, tally: JoinTally
    ) -> Iterator[pyarrow.RecordBatchReader]:
        """Yield a reader of the rows of a result of this graph, with the columns.

        Raises:
            UsageError: The result is not of this graph, or has a column of this name.
        """
        import pyarrow as pa

        rows = pa.RecordBatchReader.from_stream(result)
        for name in rows.schema.names[1:]:
            self.check(name, texts=False)
        schema = pa.schema([*rows.schema, *self._columns])
        names = self._columns.names

        def batches() -> Iterator[pyarrow.RecordBatch]:
            streams = [native_batches(rows), vertex_batches(self._graph)]
            if names:
                streams.append(column_batches(self._graph, names))
            for row, vertex, *columns in in_step(*streams):
                if not row.column(0).equals(vertex.column(0)):
                    raise UsageError(
                        f"the result does not belong to the graph {self.name}; pass its own graph"
                    )
                arrays = [*row.columns, *(array for batch in columns for array in batch.columns)]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)

        yield pa.RecordBatchReader.from_batches(schema, batches())


def add_vertex_columns(
    graph: _native.Graph,
    table: object,
    on: str,
    resources: Resources,
    *,
    unmatched: str = "skip",
    replace: bool = False,
) -> JoinTally:
    """Add the columns of a table to the vertices of a graph, joined by its column `on`.

    With `replace` they take the place of columns with the same names. With `unmatched` "fail" a row
    without a vertex is an error.

    Raises:
        MissingPackageError: DuckDB is not installed.
        UsageError: As `Join`; or the table has no other column, or one that the graph has; or the
            graph is at a URL.
        InputError: An id occurs twice, the table cannot be read, or a row has no vertex.
        BudgetError: The budget is too small.
        StoreIoError: The graph cannot be written to.
    """
    import pyarrow as pa

    from brimful import _native
    from brimful.io.remote_graph import url_of

    if (url := url_of(graph.path)) is not None:
        raise UsageError(
            f"{url} is read through a local copy, and only that copy would get the columns; add "
            "the columns to a graph on this machine, then copy that graph to the store"
        )
    join, tally = Join(table, on, to="the graph"), JoinTally()
    with _native.NewTable(graph, VERTICES) as new:
        latest = new.graph()
        before = schema_of(latest)
        with join.reader(latest.vertex_stream(), resources, tally, keep_types=True) as reader:
            added = reader.schema.remove(0)
            kept = [name for name in before.names if name not in added.names]
            _refuse_names(join.name, added.names, kept if replace else before.names, latest.path)
            schema = pa.schema([*(before.field(name) for name in kept), *added])

            def batches() -> Iterator[pyarrow.RecordBatch]:
                if not kept:
                    yield from (batch.select(added.names) for batch in reader)
                    return
                for own, row in in_step(column_batches(latest, kept), iter(reader)):
                    arrays = [*own.columns, *row.columns[1:]]
                    yield pa.RecordBatch.from_arrays(arrays, schema=schema)

            write_columns(new, schema, batches(), latest.vertices)
        if unmatched == "fail" and tally.rows_without_vertex:
            join.refuse_unmatched(tally.rows_without_vertex)
        new.publish(footer_bytes(new.path))
    return tally


def write_columns(
    new: _native.NewTable, schema: Any, batches: Iterator[Any], expected_rows: int
) -> None:
    """Write the file of a table, and check that it has as many rows as it should.

    Raises:
        InputError: The table has another number of rows, or a column of a type that Parquet lacks.
        StoreIoError: The file cannot be written.
    """
    refuse_unheld(schema)
    with writing_to(new.path):
        rows = write_parquet(schema, batches, new.path, **WRITTEN)
    if rows != expected_rows:
        raise InputError(
            f"expected {counted(expected_rows, 'row')} of columns, found {rows:,}; check the table"
        )


def refuse_unheld(schema: pyarrow.Schema) -> None:
    """Refuse columns of a type that a Parquet file cannot hold.

    Raises:
        InputError: There is one, such as a union.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    for field in schema:
        try:
            pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([field])).close()
        except pa.ArrowNotImplementedError:
            raise InputError(
                f"the column {field.name} has the type {field.type}, which a Parquet file cannot "
                "hold; convert the column, or leave it out"
            ) from None


def footer_bytes(path: str) -> int:
    """Return the length of the footer of a Parquet file, with the bytes after it."""
    import pyarrow as pa

    with pa.OSFile(os.fsencode(path), "rb") as file:
        file.seek(file.size() - _END_BYTES)
        return int.from_bytes(file.read(_END_BYTES)[:4], "little") + _END_BYTES


def _refuse_names(table: str, added: Sequence[str], taken: Sequence[str], path: str) -> None:
    """Refuse to add no column, or one that the graph has; SQL ignores the case of names."""
    if not added:
        raise UsageError(f"{table} has no column besides that of the ids; there is nothing to add")
    for name in added:
        if name in taken:
            raise UsageError(
                f"{path} has a column {name} of vertices; give --replace, or rename the "
                "column of the table"
            )
        for other in taken:
            if other.lower() == name.lower():
                raise UsageError(
                    f"{path} already has a column {other} of vertices, which differs from {name} "
                    "only in case; rename the column of the table"
                )
