"""The columns of a graph's edges: a table of the edges, sorted by their ends, in its directory.

The packed edges do not keep their rows of the input, so the table also has the ends and the weight
of each edge. Invariant: it has one row for each edge of the graph.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from brimful.errors import InputError, UsageError
from brimful.io.formats import input_format
from brimful.io.output import native_batches, write_parquet
from brimful.io.regular import writing_to
from brimful.io.remote import is_remote
from brimful.resources import Resources
from brimful.tables.arrow import ipc_rows, ipc_schema
from brimful.tables.arrow_messages import batch_bytes
from brimful.tables.columns import (
    EDGES,
    VERTICES,
    WRITTEN,
    chosen_columns,
    column_batches,
    column_figures,
    footer_bytes,
    refuse_unheld,
    schema_of,
)
from brimful.tables.connection import DuckDbConnection, connected, join_errors, join_memory, rows_of
from brimful.tables.convert_out import edge_stream
from brimful.tables.graph_xml import GraphXml
from brimful.tables.joining import kept_types
from brimful.tables.parquet import parquet_schema
from brimful.tables.result_files import ParquetRows, beyond_usual
from brimful.tables.text_rows import TextRows, refuse_twice, sql_name, sql_path
from brimful.wording import counted, did_you_mean, shortened

if TYPE_CHECKING:
    import pyarrow

    from brimful import _native

#: The columns that every edge has.
ENDS = ("source", "target", "weight")
#: Formats of files that are read a second time for their columns.
_FORMATS = ("parquet", "arrow", "csv", "tsv", "graphml", "gexf")
#: Rows of a batch; few, because rows may be long.
_BATCH_ROWS = 2048


def edge_columns(graph: _native.Graph) -> pyarrow.Schema:
    """Return names and types of the columns that are kept with the edges."""
    import pyarrow as pa

    return pa.schema([field for field in schema_of(graph, EDGES) if field.name not in ENDS])


def has_columns(graph: _native.Graph) -> bool:
    """Return whether columns are kept with the vertices or the edges; pyarrow is not loaded."""
    return any(graph.table_path(table) is not None for table in (VERTICES, EDGES))


def kept_columns(graph: _native.Graph) -> dict[str, list[dict[str, Any]]]:
    """Return name, type and bytes of the columns kept with the vertices, and with the edges."""
    of_edges = [one for one in column_figures(graph, EDGES) if one["name"] not in ENDS]
    return {"vertex_columns": column_figures(graph), "edge_columns": of_edges}


def edge_rows(
    graph: _native.Graph, names: Sequence[str] | None = None
) -> pyarrow.RecordBatchReader:
    """Return a reader of the edges with the columns of some names; None: all.

    Edges are sorted by source and target where the graph has columns of edges, else in no order.

    Raises:
        UsageError: The graph has no such column.
    """
    import pyarrow as pa

    reader = pa.RecordBatchReader.from_stream(edge_stream(graph))
    chosen = edge_columns(graph).names if names is None else list(names)
    own = reader.schema.names
    columns = chosen_columns(graph, [name for name in chosen if name not in own], EDGES)
    if graph.table_path(EDGES) is None:
        return pa.RecordBatchReader.from_batches(reader.schema, native_batches(reader))
    schema = pa.schema([*reader.schema, *columns])
    batches = (batch.cast(schema) for batch in column_batches(graph, schema.names, EDGES))
    return pa.RecordBatchReader.from_batches(schema, batches)


def declared_rows(
    graph: _native.Graph, names: Sequence[str], stream: object
) -> pyarrow.RecordBatchReader:
    """Return a reader of the rows of an export, `stream`, with columns of the edges.

    Rows without a target, which are vertices without edges, come last and have no columns.

    Raises:
        UsageError: The graph has no such column.
    """
    import pyarrow as pa

    declared = pa.RecordBatchReader.from_stream(stream)
    edges = edge_rows(graph, names)
    added = [edges.schema.field(name) for name in names]
    schema = pa.schema([*declared.schema, *added], declared.schema.metadata)

    def batches() -> Iterator[Any]:
        for batch in edges:
            yield batch.select(schema.names).cast(schema)
        for batch in native_batches(declared):
            vertices = batch.filter(batch.column("target").is_null())
            nulls = [pa.nulls(vertices.num_rows, field.type) for field in added]
            yield pa.RecordBatch.from_arrays([*vertices.columns, *nulls], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def check_edge_columns(inputs: object, names: Sequence[str], options: Mapping[str, Any]) -> None:
    """Refuse inputs whose columns cannot be kept with edges, before any work.

    Raises:
        UsageError: An input cannot be read again or is of another format, or edges would be merged
            or get other weights.
    """
    if options["duplicates"] != "keep":
        raise UsageError(
            "edges that are merged have no columns of their own; leave --duplicates or "
            "--edge-columns out"
        )
    if options["weights"] != "input":
        raise UsageError(
            "--weights hash and --edge-columns cannot be combined; leave one of them out"
        )
    if isinstance(inputs, list):
        for path in inputs:
            is_local_file = not is_remote(path) and os.path.isfile(path)
            if not is_local_file or input_format(path, options.get("format")) not in _FORMATS:
                raise UsageError(
                    f"columns of edges are read from .parquet, .arrow, .csv, .tsv, .graphml and "
                    f".gexf files, but {path} is not such a file; convert it, or leave "
                    "--edge-columns out"
                )
    elif not hasattr(inputs, "__arrow_c_stream__") or hasattr(inputs, "read_next_batch"):
        raise UsageError(
            "columns of edges need an input that can be read twice, such as a table or a file, not "
            f"{type(inputs).__name__}"
        )
    for name in names:
        # SQL ignores the case of names.
        if name.lower() in ENDS:
            raise UsageError(f"a column of edges cannot be named {name}; rename it")


def add_edge_columns(
    graph: _native.Graph,
    inputs: object,
    names: Sequence[str],
    columns: Mapping[str, Any],
    options: Mapping[str, Any],
    resources: Resources,
) -> None:
    """Keep columns of the input with the edges of a new graph that was made of it.

    `columns` are those that the import took.

    Raises:
        UsageError: The input has no such column.
        InputError: The input cannot be read again, or has other edges than the graph.
        BudgetError, StoreIoError: The table cannot be sorted or written.
    """
    from brimful import _native

    name = inputs[0] if isinstance(inputs, list) else "the table"
    ends = [columns[end] for end in ENDS if columns[end] is not None]
    beside_bytes = _largest_bytes(inputs, [*ends, *names], options)
    memory = join_memory(resources, beside_bytes=beside_bytes)
    with (
        _native.NewTable(graph, EDGES) as new,
        connected(memory, resources) as connection,
    ):
        with join_errors(name):
            types, present = _view(connection, inputs, columns, names, options)
        for column in [*ends, *names]:
            if column not in present:
                raise UsageError(
                    f"{name} has no column {column} (found: {', '.join(present)})"
                    + did_you_mean(column, present)
                )
        kind = {"string": "VARCHAR", "uint64": "UBIGINT"}.get(graph.id_type, "BIGINT")
        taken = [
            f"TRY_CAST({sql_name(column)} AS {'DOUBLE' if end == 'weight' else kind}) AS {end}"
            for end, column in zip(ENDS, ends, strict=False)
        ]
        # Rows that the import left out or dropped have no columns.
        more = " AND source <> target" if options["self_loops"] == "drop" else ""
        more += " AND isfinite(weight)" if columns["weight"] is not None else ""
        query = (
            f"SELECT * FROM (SELECT {', '.join([*taken, *map(sql_name, names)])} FROM input) "
            f"WHERE source IS NOT NULL AND target IS NOT NULL{more}"
        )
        try:
            rows = write_sorted(
                connection, query, graph, names, types, name, new.path, directed=graph.directed
            )
        except InputError:
            if isinstance(inputs, list) and types is not None:
                _refuse_other_type(inputs, options.get("format"), types)
            raise
        if rows != graph.edges:
            raise InputError(
                f"{name} gives {counted(rows, 'edge')} with columns, and the graph has "
                f"{graph.edges:,}; remove rows that are not edges, or leave --edge-columns out"
            )
        with join_errors(name):
            _check_edges(connection, graph, name, new.path)
        new.publish(footer_bytes(new.path))


def _check_edges(connection: DuckDbConnection, graph: _native.Graph, name: str, path: str) -> None:
    """Refuse a table of columns whose edges are not those of the graph, by a sum of hashes.

    Raises:
        InputError: An edge has another end or another weight.
    """
    import pyarrow as pa

    edges = pa.RecordBatchReader.from_stream(edge_stream(graph))
    weight = ", weight" if "weight" in edges.schema.names else ""
    connection.register("edges", edges)
    sums = [
        connection.execute(
            f"SELECT sum(hash(source, target{weight})::HUGEINT) FROM {rows}"
        ).fetchone()
        for rows in ("edges", f"read_parquet({sql_path(path)}, hive_partitioning=false)")
    ]
    if sums[0] != sums[1]:
        raise InputError(
            f"{name} gives other ids or weights when it is read again for its columns; write each "
            "id in the same way, without quotes, or leave --edge-columns out"
        )


def write_sorted(
    connection: DuckDbConnection,
    query: str,
    graph: _native.Graph,
    names: Sequence[str],
    types: pyarrow.Schema | None,
    name: str,
    path: str,
    *,
    directed: bool,
) -> int:
    """Write the rows of a query sorted by all columns; return their number.

    The source of an edge that is not `directed` is its smaller end, as in an edge stream. `types`
    are those of the columns before, if they are known.
    """
    import pyarrow as pa

    ends = pa.RecordBatchReader.from_stream(edge_stream(graph)).schema
    if not directed:
        smaller_first = "least(source, target) AS source, greatest(source, target) AS target"
        query = f"SELECT * REPLACE ({smaller_first}) FROM ({query})"
    ordered = f"{query} ORDER BY ALL"
    with join_errors(name), rows_of(connection, ordered, name, _BATCH_ROWS) as reader:
        values = pa.schema([reader.schema.field(column) for column in names])
        schema = pa.schema([*ends, *(values if types is None else kept_types(name, types, values))])
        refuse_unheld(schema)
        batches = (batch.cast(schema) for batch in reader)
        with writing_to(path):
            return write_parquet(schema, batches, path, **WRITTEN)


def staged_edges(path: str, graph: _native.Graph) -> pyarrow.RecordBatchReader:
    """Return a reader of the ends and weights of edges that `write_sorted` wrote."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.RecordBatchReader.from_stream(edge_stream(graph)).schema

    def batches() -> Iterator[Any]:
        with pa.OSFile(os.fsencode(path), "rb") as raw:
            file = pq.ParquetFile(raw, pre_buffer=False, buffer_size=1 << 20)
            for batch in file.iter_batches(_BATCH_ROWS, columns=schema.names, use_threads=False):
                yield batch.select(schema.names).cast(schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _view(
    connection: DuckDbConnection,
    inputs: Any,
    columns: Mapping[str, Any],
    names: Sequence[str],
    options: Mapping[str, Any],
) -> tuple[pyarrow.Schema | None, list[str]]:
    """Make the view `input`; return the types of its columns, None for text, and their names.

    Raises:
        UsageError: A later file lacks a column of some `names`, text has no header, or a column has
            the name of another.
        InputError: An input cannot be read.
    """
    import pyarrow as pa

    used = [*names, *(columns[end] for end in ENDS if columns[end] is not None)]

    if not isinstance(inputs, list):
        reader = pa.RecordBatchReader.from_stream(inputs)
        refuse_twice("the table", reader.schema.names, used)
        connection.register("input", reader, used)
        return reader.schema, reader.schema.names
    kind = input_format(inputs[0], options.get("format"))
    if kind in ("graphml", "gexf"):
        reader = GraphXml(inputs[0]).edges(columns["weight"])
        connection.register("input", reader, used)
        return reader.schema, reader.schema.names
    if kind in ("parquet", "arrow"):
        read_schema = parquet_schema if kind == "parquet" else ipc_schema
        schemas = [read_schema(path) for path in inputs]
        _refuse_other_columns(inputs, [schema.names for schema in schemas], names, used)
        present = schemas[0].names
        taken = pa.schema(
            [schemas[0].field(name) for name in dict.fromkeys(used) if name in present]
        )
        if kind == "parquet":
            connection.register("input", _parquet_rows(inputs, taken))
        else:
            connection.register("input", ipc_rows(inputs, taken.names))
        return taken, present
    if not columns["header"]:
        raise UsageError(
            "--edge-columns needs a header, but the input is read without one; add a header, or "
            "give --header"
        )
    ends = [column for column in used if column not in names]
    text = TextRows(connection, inputs, columns["delimiter"], ends)
    _refuse_other_columns(inputs, text.names, names, used)
    text.check(names)
    connection.execute(f"CREATE VIEW input AS FROM {text.function}")
    described = [str(row[0]) for row in connection.execute("DESCRIBE input").fetchall()]
    # Other names are those that DuckDB gave.
    return None, [name for name in described if name.strip() in text.names[0]]


def _refuse_other_type(
    paths: Sequence[str], format_name: str | None, types: pyarrow.Schema
) -> None:
    """Refuse the first value of a later file that is not of the type of its column in the first.

    Raises:
        InputError: There is such a value.
    """
    is_parquet = input_format(paths[0], format_name) == "parquet"
    for path, field in itertools.product(paths[1:], types):
        before = 0
        batches = (
            ParquetRows(path).batches([field.name])
            if is_parquet
            else ipc_rows([path], [field.name])
        )
        for batch in batches:
            values = batch.column(0)
            for at in range(len(values)) if not _fits(values, field.type) else ():
                if not _fits(values.slice(at, 1), field.type):
                    raise InputError(
                        f"{path}: row {before + at + 1:,}, column {field.name}: expected a value "
                        f"of the type {field.type} as in {paths[0]}, found "
                        f"{shortened(values[at].as_py())} of the type {values.type}; convert the "
                        "column, or import the files separately"
                    )
            before += len(values)


def _largest_bytes(inputs: Any, columns: Sequence[str], options: Mapping[str, Any]) -> int:
    """Return the bytes of the largest page or record batch of the inputs, beyond small ones."""
    if not isinstance(inputs, list):
        return 0
    kind = input_format(inputs[0], options.get("format"))
    if kind not in ("parquet", "arrow"):
        return 0
    sizes = (
        batch_bytes(path) if kind == "arrow" else ParquetRows(path).largest_bytes(columns)
        for path in inputs
    )
    return beyond_usual(max(sizes))


def _parquet_rows(paths: Sequence[str], schema: pyarrow.Schema) -> pyarrow.RecordBatchReader:
    """Return a reader of columns of Parquet files, in batches of few bytes."""
    import pyarrow as pa

    rows = (
        batch.select(schema.names).cast(schema)
        for path in paths
        for batch in ParquetRows(path).batches(schema.names)
    )
    return pa.RecordBatchReader.from_batches(schema, rows)


def _fits(values: Any, kind: pyarrow.DataType) -> bool:
    import pyarrow as pa

    try:
        values.cast(kind)
    except pa.ArrowException:
        return False
    return True


def _refuse_other_columns(
    paths: Sequence[str], found: Sequence[list[str]], names: Sequence[str], used: Sequence[str]
) -> None:
    """Refuse files whose columns, `found`, have a name in common, or lack one of the first file.

    The columns are those of the first file; a later one would get nulls.

    Raises:
        UsageError: A name occurs twice, or a file lacks one.
    """
    for path, here in zip(paths, found, strict=True):
        refuse_twice(path, here, used)
        for name in names:
            if name in found[0] and name not in here:
                raise UsageError(
                    f"{path} has no column {name}, which {paths[0]} has; import the files "
                    "separately, or leave the column out"
                )
