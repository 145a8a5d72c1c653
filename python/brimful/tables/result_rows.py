"""Result files as Arrow datasets: what `-o` and `Result.write` wrote, read in batches.

Invariant: rows are never in memory as a whole. The types of a CSV file are not guessed from its
first rows: one pass over the file finds them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from brimful.errors import InputError, NotFoundError
from brimful.io.formats import RESULT_SUFFIXES, result_format
from brimful.io.reader_errors import reader_errors

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

#: Rows of a batch; few batches and one file are read ahead.
_BATCH_ROWS = 65_536
_READ_AHEAD = {"batch_readahead": 2, "fragment_readahead": 1, "use_threads": False}


def open_rows(path: str) -> pyarrow.dataset.Dataset:
    """Open a result: a .parquet, .csv or .arrow file, or a folder of files of one of these formats.

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
    names = dataset.schema.names
    if len(names) < 2 or names[0] != "vertex":
        raise InputError(
            f"{path} is no result: expected the column vertex and a column of values, found "
            f"{', '.join(names) or 'no column'}"
        )
    return dataset


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

    Vertices are integers if all are written as one writes integers, and ascend as numbers.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    plain = ds.dataset(files, format=_csv({}))
    texts = dict.fromkeys(plain.schema.names, pa.string())
    numbers = [pa.int64(), pa.uint64(), pa.float64()]
    kinds = {name: numbers[: 2 if name == "vertex" else 3] for name in texts}
    last: dict[Any, Any] = {}
    for batch in batches_of(ds.dataset(files, format=_csv(texts)), path):
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            fitting = [(kind, _cast(column, kind)) for kind in kinds[name]]
            if name == "vertex":
                fitting = [
                    (kind, ids if ids is not None and _are_ids(ids, column, last, kind) else None)
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


def _are_ids(ids: Any, column: Any, last: dict[Any, Any], kind: Any) -> bool:
    """Return whether numbers ascend, also after those before, and are written as in `column`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(ids) == 0:
        return True
    ends = [last.get(kind), ids[0].as_py()]
    last[kind] = ids[-1].as_py()
    ascending = pc.all(pc.less(ids[:-1], ids[1:])).as_py() is not False
    follows = all(one is None or one < other for one, other in pairwise(ends))
    return bool(ascending and follows and ids.cast(pa.string()).equals(column))
