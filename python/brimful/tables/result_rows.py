"""Result files of `-o` and `Result.write` as Arrow datasets, read in batches.

Invariant: rows are never in memory as a whole. The types of a CSV file are not guessed from its
first rows: one pass over the file finds them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from brimful.catalog import algorithms
from brimful.errors import InputError, NotFoundError
from brimful.io.formats import RESULT_SUFFIXES, result_format
from brimful.io.reader_errors import reader_errors

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

#: Rows of a batch.
_BATCH_ROWS = 65_536
#: Columns of vertex ids.
_IDS = ("vertex", "source", "target")
_READ_AHEAD = {"batch_readahead": 2, "fragment_readahead": 1, "use_threads": False}


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


def open_rows(path: str) -> pyarrow.dataset.Dataset:
    """Open a result that has a value for each vertex.

    Raises:
        NotFoundError, InputError, UsageError, StoreIoError: As `open_table`; or it has rows.
    """
    dataset = open_table(path)
    if dataset.schema.names[0] != "vertex":
        raise _no_result(path, dataset.schema.names)
    return dataset


def open_table(path: str) -> pyarrow.dataset.Dataset:
    """Open a result of either kind, values of vertices or rows.

    It is a .parquet, .csv or .arrow file, or a folder of files of one of these formats.

    Raises:
        NotFoundError: There is nothing at `path`.
        InputError: The folder has no such files or several kinds, or the columns are not those of a
            result.
        UsageError: The suffix is none of these.
        StoreIoError: The file cannot be read.
    """
    import pyarrow.dataset as ds

    files = _files(path)
    kind = result_format(files[0])
    with reader_errors(path):
        if kind == "csv":
            dataset = ds.dataset(files, format=_csv(_csv_types(path, files)))
        else:
            dataset = ds.dataset(files, format="ipc" if kind == "arrow" else kind)
    if roles(dataset.schema.names) is None:
        raise _no_result(path, dataset.schema.names)
    return dataset


def _no_result(path: str, names: Sequence[str]) -> InputError:
    return InputError(
        f"{path} is no result: expected the column vertex and a column of values, found "
        f"{', '.join(names) or 'no column'}"
    )


def largest(
    dataset: pyarrow.dataset.Dataset,
    path: str,
    columns: Sequence[str],
    count: int,
    hold: Callable[[int], None] = lambda size: None,
) -> Iterator[tuple[Any, ...]]:
    """Yield some columns of the rows that have the largest values in the last of these.

    Rows without a value are left out; of equal ones the first stay. `hold` is called with the bytes
    of all rows that may be kept, before they are, and may refuse them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kept, column = None, columns[-1]
    for batch in batches_of(dataset, path, columns=list(columns)):
        values = batch.column(column)
        wanted = pc.is_valid(values)
        if kept is not None and kept.num_rows == count:
            # A row that ties with the last one kept comes later, and is left out.
            wanted = pc.greater(values, kept.column(column)[-1]) if count else pc.is_null(wanted)
        found = pa.Table.from_batches([batch.filter(wanted)])
        if found.num_rows:
            hold(found.nbytes * count // found.num_rows)
        kept = found if kept is None else pa.concat_tables([kept, found])
        kept = kept.sort_by([(column, "descending")]).slice(0, count)
    for batch in [] if kept is None else kept.to_batches(max_chunksize=_BATCH_ROWS):
        yield from zip(*(one.to_pylist() for one in batch.columns), strict=True)


def batches_of(dataset: pyarrow.dataset.Dataset, path: str, **scan: Any) -> Iterator[Any]:
    """Yield the record batches of a dataset; errors name `path`."""
    with reader_errors(path):
        yield from dataset.to_batches(batch_size=_BATCH_ROWS, **_READ_AHEAD, **scan)


def _files(path: str) -> list[str]:
    """Return the files of a result, in the order of their names."""
    if not os.path.exists(path):
        raise NotFoundError(f"there is no result at {path}; check the path")
    if not os.path.isdir(path):
        return [path]
    with os.scandir(path) as entries:
        names = sorted(entry.name for entry in entries if not entry.name.startswith((".", "_")))
    kinds = {os.path.splitext(name.lower())[1] for name in names}
    if len(kinds) != 1 or not kinds <= set(RESULT_SUFFIXES):
        raise InputError(
            f"{path} is no result: expected files that all end in one of "
            f"{', '.join(RESULT_SUFFIXES)}, found {', '.join(names[:3]) or 'no file'}"
        )
    return [os.path.join(path, name) for name in names]


def _csv(types: dict[str, Any]) -> Any:
    """Return how a CSV file is read: an empty field is null, every other one a value."""
    import pyarrow.dataset as ds
    from pyarrow import csv

    return ds.CsvFileFormat(
        convert_options=csv.ConvertOptions(
            column_types=types,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
        read_options=csv.ReadOptions(block_size=1 << 20),
    )


def _csv_types(path: str, files: list[str]) -> dict[str, Any]:
    """Return the narrowest type of each column that has all of its values.

    Vertices are integers if all have the canonical form of integers; in a result with a value for
    each vertex they must also ascend as numbers.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    plain = ds.dataset(files, format=_csv({}))
    texts = dict.fromkeys(plain.schema.names, pa.string())
    numbers = [pa.int64(), pa.uint64(), pa.float64()]
    ascend = next(iter(texts), None) == "vertex"
    kinds = {name: numbers[: 2 if name in _IDS else 3] for name in texts}
    last: dict[Any, Any] = {}
    for batch in batches_of(ds.dataset(files, format=_csv(texts)), path):
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            fitting = [(kind, _cast(column, kind)) for kind in kinds[name]]
            if name in _IDS:
                fitting = [
                    (kind, ids if ids is not None and _are_written(ids, column) else None)
                    for kind, ids in fitting
                ]
            if name == "vertex" and ascend:
                fitting = [
                    (kind, ids if ids is not None and _ascend(ids, last, kind) else None)
                    for kind, ids in fitting
                ]
            kinds[name] = [kind for kind, numbers in fitting if numbers is not None]
    return {name: (left or [pa.string()])[0] for name, left in kinds.items()}


def _cast(column: pyarrow.Array, kind: Any) -> pyarrow.Array | None:
    """Return a column of texts as numbers; None if one is no such number."""
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
