"""Result files of `-o` and `Result.write`, read in batches.

Invariant: rows are never in memory as a whole. The types of a CSV file are not guessed from its
first rows: one pass over the file finds them.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Container, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from brimful.catalog import algorithms
from brimful.errors import InputError, NotFoundError, UsageError
from brimful.io.formats import GRAPH_SUFFIX, RESULT_SUFFIXES, result_format
from brimful.io.regular import refuse_special
from brimful.tables.arrow_messages import batch_bytes
from brimful.tables.csv_file import CsvFile
from brimful.tables.parquet_pages import known_page_bytes
from brimful.tables.result_files import (
    ArrowResult,
    ParquetRows,
    ResultTable,
    beyond_usual,
)
from brimful.wording import shortened

if TYPE_CHECKING:
    import pyarrow

#: Copies of the rows of `largest` while they are joined with others and sorted.
COPIES = 8
#: Batches whose rows wait to be sorted, each of which may pin a part of the heap.
_WAITING = 16
#: Rows that are objects of Python at the same time.
_SHOWN_ROWS = 1024
#: The column of the positions of rows in the table.
_POSITION = "brimful position"
#: Columns of vertex ids.
_IDS = ("vertex", "source", "target")
#: The beginning of a text of digits that is not a number of a result.
_NO_NUMBER = "^-?0[0-9]"


def roles(names: Sequence[str]) -> tuple[list[str], str | None] | None:
    """Return the columns that name a row of a result, and its value column; None if no result.

    `vertex` comes first where each vertex has one value; columns after that are joined ones. Rows
    of an algorithm are named by all columns but the last, and pairs without a value by both.
    """
    if len(names) > 1 and names[0] == "vertex":
        return [names[0]], names[1]
    if list(names) not in [one["columns"] for one in algorithms().values() if one["rows"]]:
        return None
    if names[-1] == "target":
        return list(names), None
    return list(names[:-1]), names[-1]


def result_columns(names: Sequence[str]) -> list[str]:
    """Return the columns of a result without joined ones; none if it is not a result."""
    keys, value = roles(names) or ([], None)
    return keys if value is None else [*keys, value]


def open_rows(path: str) -> ResultTable:
    """Open a result that has a value for each vertex.

    Raises:
        NotFoundError, InputError, UsageError, StoreIoError: As `open_table`; or it has rows.
    """
    table = open_table(path)
    if table.schema.names[0] != "vertex":
        raise _no_result(path, table.schema.names)
    return table


def open_table(path: str) -> ResultTable:
    """Open a result of either kind, values of vertices or rows.

    It is a .parquet, .csv or .arrow file, or a folder of files of one of these formats.

    Raises:
        NotFoundError: There is nothing at `path`.
        InputError: The folder has no such files or several kinds, or the columns are not those of a
            result.
        UsageError: The suffix is none of these.
        StoreIoError: The file cannot be read.
    """
    files = _files(path)
    kind = result_format(files[0])
    if kind == "csv":
        quoted = set[str]().union(*(CsvFile(file, {}).quoted for file in files))
        types = _csv_types(ResultTable(path, files, lambda file: CsvFile(file, {})), quoted)
        table = ResultTable(path, files, lambda file: CsvFile(file, types))
    else:
        table = ResultTable(path, files, ArrowResult if kind == "arrow" else ParquetRows)
    if roles(table.schema.names) is None:
        raise _no_result(path, table.schema.names)
    return table


def known_result_bytes(path: str) -> int:
    """Return `ResultTable.reserve_bytes` of the columns of a result; pyarrow need not be loaded.

    A long footer of Parquet is not read, and its pages are not counted.

    Raises:
        NotFoundError, InputError, UsageError, StoreIoError: As `open_table`.
    """
    files = _files(path)
    kind = result_format(files[0])
    if kind == "csv":
        return 0
    if kind == "arrow":
        return beyond_usual(max(batch_bytes(file) for file in files))
    return beyond_usual(max(known_page_bytes(file, result_columns) for file in files))


def _no_result(path: str, names: Sequence[str]) -> InputError:
    return InputError(
        f"{path} is not a result: expected the column vertex and a column of values, found "
        f"{', '.join(names) or 'no column'}"
    )


def largest(
    table: ResultTable, columns: Sequence[str], count: int, room: int | None = None
) -> Iterator[tuple[Any, ...]]:
    """Yield some columns of the rows that have the largest values in the last of these.

    Rows without a value are left out; of equal ones the first come first. With `room` rows of so
    many bytes are kept, and `COPIES` of them are in memory while they are sorted; further rows take
    further passes over the table.

    Raises:
        UsageError: The values are lists.
    """
    import pyarrow as pa

    kind = table.schema.field(columns[-1]).type
    if pa.types.is_nested(kind) and not pa.types.is_struct(kind):
        raise UsageError(
            f"the lists in the column {columns[-1]} of {table.path} have no order, so the rows "
            "cannot be ranked; read them with another program"
        )
    return _largest_rows(table, columns, count, room)


def _largest_rows(
    table: ResultTable, columns: Sequence[str], count: int, room: int | None
) -> Iterator[tuple[Any, ...]]:
    after: tuple[Any, Any] | None = None
    while count > 0:
        largest, is_complete = _largest_after(table, columns, count, room, after)
        for batch in [] if largest is None else largest.to_batches(max_chunksize=_SHOWN_ROWS):
            yield from zip(*(column.to_pylist() for column in batch.columns[:-1]), strict=True)
        if largest is None or is_complete:
            return
        count -= largest.num_rows
        after = largest.column(columns[-1])[-1], largest.column(_POSITION)[-1]


def _largest_after(
    table: ResultTable,
    columns: Sequence[str],
    count: int,
    room: int | None,
    after: tuple[Any, Any] | None,
) -> tuple[pyarrow.Table | None, bool]:
    """Return the rows with the largest values after a value and the position of its row.

    Positions follow the columns. Also returns whether no row was left out for lack of `room`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    largest: Any = None
    is_complete, first = True, 0
    waiting: list[Any] = []
    column = columns[-1]

    def merge() -> None:
        nonlocal largest, is_complete, count
        merged = pa.Table.from_batches(waiting)
        waiting.clear()
        if largest is not None:
            merged = pa.concat_tables([largest, merged])
        # Sorting is stable: of equal values, the first stay.
        order = pc.sort_indices(merged, sort_keys=[(column, "descending")])[:count]
        largest = merged.take(order)
        while room is not None and largest.nbytes > room and largest.num_rows > 1:
            # From here on a row must be larger than the last one kept.
            count, is_complete = max(largest.num_rows * room // largest.nbytes, 1), False
            largest = merged.take(order[:count])
        del merged, order
        # Else the allocator keeps the freed copies, in pieces too small for later copies.
        pa.default_memory_pool().release_unused()

    for batch in table.batches(columns):
        positions = _numbers(first, batch.num_rows)
        first += batch.num_rows
        values = batch.column(column)
        wanted = pc.is_valid(values)
        if after is not None:
            ties = pc.and_(_same(values, after[0]), pc.greater(positions, after[1]))
            wanted = pc.and_(wanted, pc.or_(_larger(after[0], values), ties))
        if largest is not None and largest.num_rows == count:
            # A row that ties with the last one kept comes later, and is left out.
            wanted = pc.and_(wanted, _larger(values, largest.column(column)[-1]))
        found = batch.append_column(_POSITION, positions).filter(wanted)
        if found.num_rows:
            waiting.append(found)
        size = sum(rows.nbytes for rows in waiting)
        count_waiting = sum(rows.num_rows for rows in waiting)
        if count_waiting >= count or (
            room is not None and (size >= room or len(waiting) == _WAITING)
        ):
            merge()
    if waiting:
        merge()
    return largest, is_complete


def _numbers(first: int, count: int) -> pyarrow.Array:
    """Return consecutive numbers; `pyarrow.array` would load pandas."""
    import pyarrow as pa

    numbers = pa.py_buffer(array("q", range(first, first + count)))
    return pa.Array.from_buffers(pa.int64(), count, [None, numbers])


def _larger(values: Any, others: Any) -> Any:
    """Return whether values are larger than others, of which NaN is the smallest."""
    import pyarrow.compute as pc

    is_larger = pc.greater(values, others)
    if not _is_float(others):
        return is_larger
    return pc.or_(is_larger, pc.and_(pc.is_nan(others), pc.invert(pc.is_nan(values))))


def _same(values: Any, value: Any) -> Any:
    """Return whether values are equal to one, or NaN as that is."""
    import pyarrow.compute as pc

    same = pc.equal(values, value)
    return pc.or_(same, pc.and_(pc.is_nan(values), pc.is_nan(value))) if _is_float(value) else same


def _is_float(values: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_floating(values.type))


def _files(path: str) -> list[str]:
    """Return the files of a result, in the order of their names."""
    if not os.path.exists(path):
        raise NotFoundError(f"there is no result at {path}; check the path")
    if not os.path.isdir(path):
        refuse_special(path, "a result")
        return [path]
    if path.rstrip("/" + os.sep).endswith(GRAPH_SUFFIX):
        raise InputError(f"{path} is a graph, not a result; 'brimful run' writes one with -o")
    with os.scandir(path) as entries:
        names = sorted(entry.name for entry in entries if not entry.name.startswith((".", "_")))
    kinds = {os.path.splitext(name.lower())[1] for name in names}
    if len(kinds) != 1 or not kinds <= set(RESULT_SUFFIXES):
        raise InputError(
            f"{path} is not a result: expected files that all end in one of "
            f"{', '.join(RESULT_SUFFIXES)}, found {', '.join(names[:3]) or 'no file'}"
        )
    return [os.path.join(path, name) for name in names]


def _csv_types(table: ResultTable, quoted: Container[str]) -> dict[str, Any]:
    """Return the narrowest type of each column of texts that has all of its values.

    Columns in `quoted` are texts. Digits after a leading zero are a text: the label 007 is not the
    label 7. Vertices are integers if all have the canonical form of integers; in a result with a
    value for each vertex they are texts all the same if they ascend as texts, and not as numbers.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = [pa.int64(), pa.uint64(), pa.float64()]
    ascend = table.schema.names[0] == "vertex"
    kinds = {
        name: [] if name in quoted else numbers[: 2 if name in _IDS else 3]
        for name in table.schema.names
    }
    last: dict[Any, Any] = {}
    #: Types in which the vertices do not ascend.
    unordered = set()
    for batch in table.batches():
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            fitting = [(kind, _cast(column, kind)) for kind in kinds[name]]
            _refuse_beyond(table.path, batch, name, dict(fitting).get(pa.float64()))
            if pc.any(pc.match_substring_regex(column, _NO_NUMBER)).as_py():
                fitting = []
            if name in _IDS:
                fitting = [
                    (kind, ids if ids is not None and _are_written(ids, column) else None)
                    for kind, ids in fitting
                ]
            if name == "vertex" and ascend:
                orders = [*fitting, (pa.string(), column)]
                unordered |= {
                    kind for kind, ids in orders if ids is not None and not _ascend(ids, last, kind)
                }
            kinds[name] = [kind for kind, numbers in fitting if numbers is not None]
    for left in kinds.values():
        left.append(pa.string())
    if ascend:
        # Vertices that ascend in no order keep the type of their form.
        kinds["vertex"].sort(key=lambda kind: kind in unordered)
    return {name: left[0] for name, left in kinds.items()}


def _refuse_beyond(
    path: str, batch: pyarrow.RecordBatch, name: str, floats: pyarrow.Array | None
) -> None:
    """Refuse digits that became an infinite float, which `inf` in a result is."""
    import pyarrow.compute as pc

    if floats is None or not pc.any(infinite := pc.is_inf(floats)).as_py():
        return
    rows = batch.filter(infinite)
    at = pc.index(pc.match_substring_regex(rows[name], "[0-9]"), True).as_py()
    if at >= 0:
        raise InputError(
            f"{path} has {shortened(rows[name][at].as_py())} in the column {name} of "
            f"{batch.schema.names[0]} {shortened(rows[0][at].as_py())}, a number beyond the range "
            "of floats; correct it"
        )


def _cast(column: pyarrow.Array, kind: Any) -> pyarrow.Array | None:
    """Return a column of texts as numbers; None if one is not a number."""
    import pyarrow as pa

    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        return None


def _are_written(ids: Any, column: Any) -> bool:
    """Return whether the texts in `column` are the canonical form of the ids."""
    import pyarrow as pa

    return bool(ids.cast(pa.string()).equals(column))


def _ascend(ids: Any, last: dict[Any, Any], kind: Any) -> bool:
    """Return whether ids ascend, within the batch and after the batches before it."""
    import pyarrow.compute as pc

    if len(ids) == 0:
        return True
    ends = [last.get(kind), ids[0].as_py()]
    last[kind] = ids[-1].as_py()
    ascending = pc.all(pc.less(ids[:-1], ids[1:])).as_py() is not False
    follows = all(one is None or one < other for one, other in pairwise(ends))
    return bool(ascending and follows)
