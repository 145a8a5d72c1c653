"""Matches the rows of two results, by vertex or by the key columns.

Invariant: rows are in memory in batches only. Values of vertices ascend and are merged; tables of
rows are joined by DuckDB, on disk where its memory is too small.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from brimful.errors import InputError, UsageError
from brimful.io.output import native_batches
from brimful.io.reader_errors import stream_reader
from brimful.tables.connection import connected, join_errors, rows_of
from brimful.tables.result_rows import open_table, result_columns, roles
from brimful.tables.text_rows import sql_name

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from numpy.typing import NDArray

    from brimful.resources import Resources

#: Rows of a batch of a join.
_BATCH_ROWS = 8192


class Matched(NamedTuple):
    """Some rows of a result that the other one has too.

    Attributes:
        keys: The columns that name the rows, arrays of NumPy or Arrow.
        values: An array of values.
        present: Where there is a value.
    """

    keys: tuple[Any, ...]
    values: NDArray[Any]
    present: NDArray[np.bool_]

    def at(self, chosen: Any) -> Matched:
        """Return the chosen rows, whose keys are arrays of NumPy."""
        keys = tuple(column[chosen] for column in self.keys)
        return Matched(keys, self.values[chosen], self.present[chosen])

    def key(self, at: int) -> tuple[Any, ...]:
        """Return the name of a row: the vertex, or both ends of a pair."""
        return tuple(_plain(column[at]) for column in self.keys)

    def value(self, at: int) -> Any:
        """Return the value of a row; None without one."""
        return _plain(self.values[at]) if self.present[at] else None


class Side:
    """One of the two results, which is read once.

    Attributes:
        keys: Names of the columns that name a row: `vertex`, or those of a table of rows.
        column: Name of the value column; None: there is none.
        kind: "integer", "float" or "text" values.
        rows: Number of rows that were read.
    """

    def __init__(self, given: object, name: str) -> None:
        """Take a result, the path of one, or a table.

        Raises:
            UsageError: `given` is none of these.
            NotFoundError: There is nothing at the path.
            InputError: `given` lacks the columns of a result.
        """
        import pyarrow as pa
        import pyarrow.types as kinds

        if isinstance(given, (str, os.PathLike)):
            path = os.fspath(given)
            table = open_table(path)
            self.name, schema = f"{name} ({path})", table.schema
        elif hasattr(given, "__arrow_c_stream__"):
            self.name, table = name, None
            reader = stream_reader(given, name)
            schema = reader.schema
        else:
            raise UsageError(
                f"{name} must be a result, a path or a table with __arrow_c_stream__, not "
                f"{type(given).__name__}"
            )
        role_names = roles(schema.names)
        if role_names is None:
            raise InputError(
                f"{self.name} must begin with the columns vertex and a value, or have those of an "
                f"algorithm whose result is rows; found {', '.join(schema.names) or 'no column'}"
            )
        self.keys, self.column = role_names
        columns = result_columns(schema.names)
        self.schema = pa.schema([schema.field(name) for name in columns])
        self.batches: Iterator[Any]
        #: Bytes of the largest pages or record batches of a file.
        self.reserve_bytes = 0
        if table is None:
            self.batches = (batch.select(columns) for batch in native_batches(reader))
        else:
            self.batches = table.batches(columns)
            self.reserve_bytes = table.reserve_bytes(columns)
        self.kind = "text"
        if self.column is not None:
            value = self.schema.field(self.column).type
            if kinds.is_integer(value):
                self.kind = "integer"
            elif kinds.is_floating(value):
                self.kind = "float"
        self.rows = 0

    def has_integers(self, key: str) -> bool:
        """Return whether a column of the key has integers; else it has strings."""
        import pyarrow as pa

        return bool(pa.types.is_integer(self.schema.field(key).type))


def matched(one: Side, other: Side, memory: int, resources: Resources) -> Iterator[Any]:
    """Yield pairs of `Matched`, of the rows that both have, by ascending keys.

    `memory` is that of a join. At the end `rows` of both sides are all that they have.

    Raises:
        UsageError: The two are results of different kinds, or of different graphs.
        InputError: Vertices do not ascend, or a table has rows with one name.
        MissingPackageError: Tables of rows are compared and DuckDB is not installed.
    """
    if one.keys != other.keys:
        raise UsageError(
            f"one result has the key columns {', '.join(one.keys)}, the other "
            f"{', '.join(other.keys)}; compare results of the same algorithm"
        )
    for key in one.keys:
        if one.has_integers(key) != other.has_integers(key):
            raise UsageError(
                "the vertices of one result are integers and those of the other are strings; "
                "compare results of one graph"
            )
    if one.keys == ["vertex"]:
        return _merged(one, other)
    return _joined_rows(one, other, memory, resources)


class _Ascending:
    """The rows of a side by ascending vertex; `waiting` are the rows not matched yet."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._last: Any = None
        self.waiting = self._next()

    def take(self, count: int) -> Matched:
        """Return the first unmatched rows; keep the others, or read the next batch."""
        assert self.waiting is not None
        taken, rest = self.waiting.at(slice(count)), self.waiting.at(slice(count, None))
        self.waiting = rest if len(rest.values) else self._next()
        return taken

    def drop(self) -> None:
        """Read the remaining rows, so that they are counted."""
        while self.waiting is not None:
            self.waiting = self._next()

    def _next(self) -> Matched | None:
        import numpy as np

        side = self._side
        for batch in side.batches:
            if batch.num_rows == 0:
                continue
            # Signed and unsigned integers have no common type in NumPy.
            vertices = batch.column(0).to_numpy(zero_copy_only=False)
            if vertices.dtype == np.uint64:
                vertices = vertices.astype(object)
            ends = vertices if self._last is None else np.concatenate([[self._last], vertices])
            if batch.column(0).null_count or not np.all(ends[1:] > ends[:-1]):
                raise InputError(f"{side.name} must have each vertex once, in ascending order")
            self._last = vertices[-1]
            side.rows += len(vertices)
            return Matched((vertices,), *_values(batch.column(1), side.kind))
        return None


def _merged(first: Side, second: Side) -> Iterator[tuple[Matched, Matched]]:
    import numpy as np

    one, other = _Ascending(first), _Ascending(second)
    while one.waiting is not None and other.waiting is not None:
        mine, theirs = one.waiting.keys[0], other.waiting.keys[0]
        count = min(len(mine), len(theirs))
        if np.array_equal(mine[:count], theirs[:count]):
            yield one.take(count), other.take(count)
            continue
        last = min(mine[-1], theirs[-1])
        left = one.take(int(np.searchsorted(mine, last, side="right")))
        right = other.take(int(np.searchsorted(theirs, last, side="right")))
        _, here, there = np.intersect1d(
            left.keys[0], right.keys[0], assume_unique=True, return_indices=True
        )
        yield left.at(here), right.at(there)
    one.drop()
    other.drop()


def _joined_rows(
    one: Side, other: Side, memory: int, resources: Resources
) -> Iterator[tuple[Matched, Matched]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    sides, count = {"one": one, "other": other}, len(one.keys)
    keys = ", ".join(map(sql_name, one.keys))
    values = [
        "true" if side.column is None else f"{name}.{sql_name(side.column)}"
        for name, side in sides.items()
    ]
    conditions = [f"{name}.{sql_name(one.keys[0])} IS NOT NULL" for name in sides]
    query = (
        f"SELECT {keys}, {', '.join([*values, *conditions])} FROM one "
        f"FULL JOIN other USING ({keys}) ORDER BY {keys}"
    )
    last: list[Any] | None = None
    names = f"{one.name} or {other.name}"
    with connected(memory, resources) as connection, join_errors(names):
        for name, side in sides.items():
            reader = pa.RecordBatchReader.from_batches(side.schema, side.batches)
            connection.register(name, reader)
        with rows_of(connection, query, names, _BATCH_ROWS) as batches:
            for batch in batches:
                columns = batch.columns
                named, found = columns[:count], columns[count : count + 2]
                same = [pc.equal(column[1:], column[:-1]) for column in named]
                twice = same[0]
                for more in same[1:]:
                    twice = pc.and_(twice, more)
                begins = [column[0].as_py() for column in named]
                if begins == last or pc.any(twice).as_py():
                    raise InputError(
                        f"{names} has several rows with the same {', '.join(one.keys)}; compare "
                        "results in which each occurs once"
                    )
                last = [column[-1].as_py() for column in named]
                for side, is_known in zip(sides.values(), columns[count + 2 :], strict=True):
                    side.rows += is_known.true_count
                both = pc.and_(*columns[count + 2 :])
                shared = tuple(column.filter(both) for column in named)
                first, second = (
                    Matched(shared, *_values(column.filter(both), side.kind))
                    for column, side in zip(found, sides.values(), strict=True)
                )
                yield first, second


def _values(column: pyarrow.Array, kind: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return values as an array of NumPy, and a mask of the rows that have one."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    present = pc.is_valid(column).to_numpy(zero_copy_only=False)
    if pa.types.is_nested(column.type):
        # Lists of Python are equal as a whole, arrays of NumPy element by element.
        values = np.empty(len(column), object)
        for at, value in enumerate(column.to_pylist()):
            values[at] = value
        return values, present
    if kind != "text":
        column = pc.fill_null(column, 0)
    return column.to_numpy(zero_copy_only=False), present


def _plain(value: Any) -> Any:
    """Return a scalar of NumPy or Arrow as an object of Python."""
    if hasattr(value, "as_py"):
        value = value.as_py()
    return value.item() if hasattr(value, "item") else value
