"""Joins the rows of a result to the columns of a table by DuckDB, on disk if needed.

Invariant: every vertex of the result is in the outcome once, in its order; rows of the table
without a vertex are counted.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from brimful.errors import InputError, NotFoundError, UsageError
from brimful.ids import naming
from brimful.io.output import write_table
from brimful.io.regular import refuse_special
from brimful.optional import load_pandas, require_installed
from brimful.options.checks import text
from brimful.tables.arrow import ipc_rows
from brimful.tables.arrow_messages import batch_bytes
from brimful.tables.connection import (
    MIN_JOIN_BYTES,
    DuckDbConnection,
    connected,
    join_errors,
    join_memory,
    rows_of,
)
from brimful.tables.parquet import parquet_schema
from brimful.tables.text_rows import TextRows, refuse_twice, sql_name, sql_path
from brimful.wording import counted, did_you_mean, rows_shown, shortened

if TYPE_CHECKING:
    import pyarrow

    from brimful.resources import Resources

#: Rows of a batch of the outcome; few, because rows may be long.
_BATCH_ROWS = 8192
#: The columns that tell whether a vertex has a row, and the id of a row without a vertex.
_MATCHED = "brimful matched"
_UNMATCHED = "brimful unmatched"


@dataclass
class JoinTally:
    """The counts of a join: vertices without a row in the table, and rows without a vertex."""

    vertices_without_row: int = 0
    rows_without_vertex: int = 0

    def sentences(self, table: str, of: str = "the result") -> list[str]:
        """Return the sentence about rows of `table` that were left out."""
        rows = self.rows_without_vertex
        if not rows:
            return []
        are = "is" if rows == 1 else "are"
        lacks = f"because {of} has no such {'vertex' if rows == 1 else 'vertices'}"
        return [f"{counted(rows, 'row')} of {table} {are} left out, {lacks}"]


#: The values of types of DuckDB, as messages name them.
_KINDS = {
    "VARCHAR": "strings",
    "DOUBLE": "floats",
    "FLOAT": "floats",
    "BOOLEAN": "truth values",
    **{
        f"{sign}{size}": "integers"
        for sign in ("", "U")
        for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
    },
}


class Columns(Protocol):
    """Columns that are joined to the rows of a result: of a table, or of the graph itself."""

    name: str

    def check(self, column: str | None, *, texts: bool) -> None:
        """Refuse columns that do not fit a result with this value column."""

    def reader(
        self, result: Any, resources: Resources, tally: JoinTally
    ) -> AbstractContextManager[pyarrow.RecordBatchReader]:
        """Yield a reader of the joined rows."""


class Join:
    """A table whose columns are joined to results, or to the vertices of a graph."""

    def __init__(
        self,
        table: object,
        on: str,
        columns: Sequence[str] | None = None,
        *,
        to: str = "the result",
    ) -> None:
        """Take a table: the path of a file, or any object with `__arrow_c_stream__`.

        `columns` names those to take; None: all. Errors say `to` for the rows that they join.

        Raises:
            MissingPackageError: DuckDB is not installed.
            UsageError: `table` is not a table, its format is unknown, or its name is not UTF-8.
            NotFoundError: There is no such file.
            InputError: It is a pipe or a device.
        """
        require_installed("duckdb", "a join")
        self._table, self._on, self._columns, self._to = table, on, columns, to
        #: The types of the columns, if the table itself declares them.
        self._types: pyarrow.Schema | None = None
        #: The names in the header, if the table is text.
        self._names: Sequence[str] = ()
        #: The rows of the table, if it is text.
        self._text: TextRows | None = None
        #: The least id of the table that has no vertex, once the joined rows are read.
        self._unmatched: pyarrow.Scalar | None = None
        self.name = table_name(table)
        if isinstance(table, (str, os.PathLike)):
            text(self.name, "the name of a table to join")
            refuse_special(self.name, "a table to join")
            if not os.path.isfile(self.name):
                raise NotFoundError(f"there is no table at {self.name}; check the path")
            suffix = os.path.splitext(self.name.lower())[1]
            if suffix not in (".parquet", ".csv", ".tsv", ".arrow", ".graphml", ".gexf"):
                raise UsageError(
                    f"a table to join is .parquet, .csv, .tsv or .arrow, and {self.name} ends in "
                    "none of them"
                )
        elif not hasattr(table, "__arrow_c_stream__"):
            raise UsageError(
                "the table to join must be a path or have __arrow_c_stream__, not "
                f"{type(table).__name__}"
            )

    def check(self, column: str | None, *, texts: bool) -> None:
        """Refuse a table that cannot be joined to a result with this value column.

        `column` None: not known yet. `texts`: vertices are strings.

        Raises:
            UsageError: The table lacks the column of ids, which is of another type than vertices,
                or has a column of the result.
            InputError: The table cannot be read.
        """
        with self._connected(MIN_JOIN_BYTES, None, texts=texts) as connection:
            self._check(connection, [] if column is None else [column], texts)

    @contextlib.contextmanager
    def reader(
        self, result: Any, resources: Resources, tally: JoinTally, *, keep_types: bool = False
    ) -> Iterator[pyarrow.RecordBatchReader]:
        """Yield a reader of the joined rows, in batches; `result` is an Arrow stream.

        `tally` is complete when the rows are read. With `keep_types` a column whose type a join
        would change is refused.

        Raises:
            UsageError, InputError: As `check`; or an id occurs twice, when its rows are read.
            BudgetError: The budget is too small.
            StoreIoError: The disk is full.
        """
        import pyarrow as pa

        beside_bytes = batch_bytes(self.name) if self._is_arrow() else 0
        memory = join_memory(resources, beside_bytes=beside_bytes)
        rows = pa.RecordBatchReader.from_stream(result)
        vertex, *own = rows.schema.names
        texts = pa.types.is_string(rows.schema.field(0).type)
        with self._connected(memory, resources, texts=texts) as connection:
            self._check(connection, own, texts)
            connection.register("result", rows)
            taken = f"added.* EXCLUDE ({sql_name(self._on)})"
            if self._columns is not None:
                taken = ", ".join(f"added.{sql_name(name)}" for name in self._columns)
            query = (
                f"SELECT result.*, {taken}, "
                f"CASE WHEN result.{sql_name(vertex)} IS NULL THEN added.{sql_name(self._on)} END "
                f"AS {sql_name(_UNMATCHED)}, "
                f"added.{sql_name(self._on)} IS NOT NULL AS {sql_name(_MATCHED)} FROM result "
                f"FULL JOIN added ON result.{sql_name(vertex)} = added.{sql_name(self._on)} "
                f"ORDER BY result.{sql_name(vertex)} NULLS LAST"
            )
            with rows_of(connection, query, self.name, _BATCH_ROWS) as joined:
                schema = pa.schema(list(joined.schema)[:-2])
                if keep_types and self._types is not None:
                    schema = kept_types(self.name, self._types, schema)
                with contextlib.closing(self._batches(joined, schema, tally)) as batches:
                    yield pa.RecordBatchReader.from_batches(schema, batches)

    def _batches(
        self, joined: Any, schema: pyarrow.Schema, tally: JoinTally
    ) -> Generator[Any, None, None]:
        import pyarrow.compute as pc

        load_pandas()
        last = None
        with self._errors():
            for batch in joined:
                is_present = batch.column(0).is_valid()
                matched = batch.column(batch.num_columns - 1)
                count = pc.sum(is_present).as_py() or 0
                tally.rows_without_vertex += batch.num_rows - count
                self._note_unmatched(batch.column(batch.num_columns - 2)[count:])
                rows = batch.slice(0, count)
                tally.vertices_without_row += count - (pc.sum(matched[:count]).as_py() or 0)
                ids = rows.column(0)
                same = pc.index(pc.equal(ids[1:], ids[:-1]), True).as_py() if count else -1
                if count and ids[0] == last:
                    same = 0
                if same >= 0:
                    self._refuse_twice(ids[same])
                last = ids[count - 1] if count else last
                if count:
                    yield rows.select(list(range(batch.num_columns - 2))).cast(schema)

    def _note_unmatched(self, ids: pyarrow.Array) -> None:
        import pyarrow.compute as pc

        least = pc.min(ids)
        last = self._unmatched
        if least.is_valid and (last is None or least.as_py() < last.as_py()):
            self._unmatched = least

    def refuse_unmatched(self, count: int) -> NoReturn:
        """Refuse the table for its rows without a vertex, and name one of them."""
        samples = self._unmatched
        such = (
            ""
            if samples is None
            else f", such as id {shortened(samples.as_py())}{self._rows_named(samples)}"
        )
        raise InputError(
            f"the graph has no vertex for {counted(count, 'row')} of {self.name}{such}; leave them "
            "out of the table, or give --unmatched skip"
        )

    def _refuse_twice(self, id_: pyarrow.Scalar) -> NoReturn:
        """Refuse an id that occurs twice."""
        raise InputError(
            f"the column {self._on} of {self.name} has {shortened(id_.as_py())} more than once"
            f"{self._rows_named(id_)}; join a table with one row for each vertex"
        )

    def _rows_named(self, id_: pyarrow.Scalar) -> str:
        """Return ` (rows 1 and 3)` of an id; nothing if the table cannot be read again."""
        rows = self._rows_of(id_)
        return f" ({rows_shown(rows, self.name)})" if rows else ""

    def _rows_of(self, id_: pyarrow.Scalar) -> list[int]:
        """Return the first two rows of an id, counted from 1; none if the table was a stream."""
        if hasattr(self._table, "read_next_batch"):
            return []
        value = id_.as_py()
        texts = isinstance(value, str)
        with self._connected(MIN_JOIN_BYTES, None, texts=texts) as connection, self._errors():
            connection.execute("SET preserve_insertion_order = true")
            rows = connection.execute(
                "SELECT row FROM (SELECT row_number() OVER () AS row, "
                f"{sql_name(self._on)} AS id FROM added) WHERE id = ? ORDER BY row LIMIT 2",
                [value],
            ).fetchall()
        return [row for (row,) in rows]

    @contextlib.contextmanager
    def _connected(
        self, memory: int, resources: Resources | None, *, texts: bool
    ) -> Iterator[DuckDbConnection]:
        """Yield a connection with a memory limit and the table as the view `added`.

        `texts`: the ids are strings.
        """
        with connected(memory, resources) as connection:
            with self._errors():
                if not isinstance(self._table, (str, os.PathLike)):
                    import pyarrow as pa

                    # Read as a stream, because DuckDB refuses a relation of another connection.
                    self._register(connection, pa.RecordBatchReader.from_stream(self._table))
                else:
                    self._view(connection, texts)
            yield connection

    def _is_arrow(self) -> bool:
        """Return whether the table is an Arrow file, whose record batches are read whole."""
        is_file = isinstance(self._table, (str, os.PathLike))
        return is_file and self.name.lower().endswith(".arrow")

    def _view(self, connection: DuckDbConnection, texts: bool) -> None:
        """Make the view `added` of a file."""
        suffix = os.path.splitext(self.name.lower())[1]
        if suffix in (".graphml", ".gexf"):
            from brimful.tables.graph_xml import GraphXml

            self._register(connection, GraphXml(self.name).nodes())
            return
        if self._is_arrow():
            self._register(connection, ipc_rows([self.name]))
            return
        if suffix == ".parquet":
            self._types = parquet_schema(self.name)
            self._check_names(self._types.names)
            connection.execute(
                f"CREATE VIEW added AS FROM read_parquet({sql_path(self.name)}, "
                "hive_partitioning=false)"
            )
            return
        ids = [self._on] if texts else []
        self._text = text_rows = TextRows(connection, [self.name], texts=ids)
        (self._names,) = text_rows.names
        text_rows.check(self._columns)
        connection.execute(f"CREATE VIEW added AS FROM {text_rows.function}")

    def _register(self, connection: DuckDbConnection, rows: pyarrow.RecordBatchReader) -> None:
        """Make the view `added` of the columns of a stream that are taken."""
        self._types = rows.schema
        self._check_names(rows.schema.names)
        connection.register("added", rows, self._taken())

    def _taken(self) -> list[str] | None:
        """Return the names of the columns that are taken, and of the ids; None: all."""
        return None if self._columns is None else [self._on, *self._columns]

    def _check_names(self, names: Sequence[str]) -> None:
        """Refuse a table whose columns have some names, of which one is missing or there twice."""
        if self._on not in names:
            hint = did_you_mean(self._on, names)
            raise UsageError(
                f"{self.name} has no column {self._on} (found: {', '.join(names)}){hint}; name "
                "the column of vertex ids with --on"
            )
        for name in self._columns or ():
            if name not in names or name == self._on:
                raise UsageError(
                    f"{self.name} has no column {name} to take (found: {', '.join(names)})"
                    + did_you_mean(name, names)
                )
        refuse_twice(self.name, self._names or names, self._taken())

    def _check(self, connection: DuckDbConnection, own: Sequence[str], texts: bool) -> None:
        with self._errors():
            described = connection.execute("DESCRIBE added").fetchall()
        kinds = {str(name): str(kind) for name, kind, *_ in described}
        if self._types is None:
            self._check_names(list(kinds))
        kind = kinds[self._on]
        is_list = kind.endswith("]")
        found = "lists or tuples" if is_list else _KINDS.get(kind, f"values of the type {kind}")
        expected = "strings" if texts else "integers"
        if found != expected:
            if self._text is not None and not texts:
                self._text.refuse_other_ids(self._on)
                # DuckDB takes a column without values for strings.
                query = f"SELECT 1 FROM added WHERE {sql_name(self._on)} IS NOT NULL LIMIT 1"
                if connection.execute(query).fetchone() is None:
                    raise UsageError(f"the column {self._on} of {self.name} has no vertex ids")
            remedy = naming(self._on) if texts and is_list else "convert the column"
            raise UsageError(
                f"the vertices of {self._to} are {expected}, and the column {self._on} of "
                f"{self.name} has {found}; {remedy}"
            )
        taken = {"vertex", *map(str.lower, own)}
        for name in kinds if self._columns is None else self._columns:
            if name != self._on and name.lower() in taken:
                raise UsageError(
                    f"both {self._to} and {self.name} have a column {name}; rename that of the "
                    "table"
                )

    def _errors(self) -> AbstractContextManager[None]:
        return join_errors(self.name)


def write_joined(
    result: Any, path: str, join: Columns, resources: Resources, *, overwrite: bool
) -> JoinTally:
    """Write a result with the columns of a table to a .parquet, .csv or .arrow file.

    Raises:
        UsageError, InputError, BudgetError, StoreIoError: As `Join.reader` and `write_table`.
    """
    tally = JoinTally()
    with join.reader(result, resources, tally) as reader:
        write_table(lambda: reader, path, overwrite=overwrite)
    return tally


def table_name(table: object) -> str:
    """Return the name of a table in messages: its path, or `the table`."""
    return os.fspath(table) if isinstance(table, (str, os.PathLike)) else "the table"


def kept_types(table: str, before: pyarrow.Schema, after: pyarrow.Schema) -> pyarrow.Schema:
    """Return the schema `after`, each column with the type that it had `before`.

    Categories become their values, and strings one kind of strings.

    Raises:
        InputError: A join would change a type, and with it values.
    """
    import pyarrow as pa

    fields = []
    for field in after:
        if field.name in before.names:
            was = plain_type(before.field(field.name).type)
            if not _holds(plain_type(field.type), was):
                raise InputError(
                    f"the column {field.name} of {table} has the type {was}, which a join would "
                    f"change to {field.type}; convert the column, or leave it out"
                )
            field = field.with_type(was)
        fields.append(field)
    return pa.schema(fields)


def _holds(kind: pyarrow.DataType, was: pyarrow.DataType) -> bool:
    """Return whether a column of the type `kind` that was of another type can be one again.

    DuckDB reads some times in seconds and milliseconds as those in microseconds. It may make lists
    of any length of those of a fixed length.
    """
    import pyarrow as pa

    if pa.types.is_time32(was) and pa.types.is_time64(kind):
        return True
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(was) and was.unit in ("s", "ms"):
        was = pa.timestamp(kind.unit, was.tz)
    if pa.types.is_fixed_size_list(was) and pa.types.is_list(kind):
        was = plain_type(pa.list_(was.value_type))
    return bool(_without_zone(kind) == _without_zone(was))


def _without_zone(kind: pyarrow.DataType) -> pyarrow.DataType:
    """Return the type with UTC for any time zone: the zone does not change the moment."""
    import pyarrow as pa

    is_zoned = pa.types.is_timestamp(kind) and kind.tz is not None
    return pa.timestamp(kind.unit, "UTC") if is_zoned else kind


def plain_type(kind: pyarrow.DataType) -> pyarrow.DataType:
    """Return the type of the values of a column, whatever their layout in memory."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(plain_type(kind.value_type))
    return kind
