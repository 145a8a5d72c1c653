"""The files of a saved result, read batch by batch: Parquet and Arrow IPC.

Invariant: a batch is a few MiB, whatever a row takes, and nothing is read ahead. `reserve_bytes` is
the memory that the largest page, record batch or dictionary of a file needs in addition. The
datasets of pyarrow keep neither promise: they read a whole CSV file ahead.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from brimful.errors import InputError
from brimful.io.reader_errors import reader_errors
from brimful.tables.arrow import parts_of
from brimful.tables.arrow_messages import batch_bytes
from brimful.tables.edge_table import ARROW_RESERVE_BYTES, cast_batches
from brimful.tables.joining import plain_type
from brimful.tables.parquet import open_pages
from brimful.tables.parquet_pages import chunks_of, longest_string, page_needs

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet

#: Bytes that pyarrow and its readers take to read results in small batches.
READ_BYTES = ARROW_RESERVE_BYTES + (24 << 20)
#: Bytes of pages and record batches that `READ_BYTES` covers.
_USUAL_BYTES = 16 << 20
#: The most rows of a batch.
BATCH_ROWS = 65_536
#: Bytes of the rows of a batch.
_BATCH_BYTES = 2 << 20


def beyond_usual(largest_bytes: int) -> int:
    """Return the bytes of pages and record batches that `READ_BYTES` does not cover."""
    return max(largest_bytes - _USUAL_BYTES, 0)


class ResultFile(Protocol):
    """A file of a result."""

    schema: pyarrow.Schema

    def largest_bytes(self, columns: Sequence[str]) -> int:
        """Return the bytes of the largest pages or record batches of these columns."""

    def batches(self, columns: Sequence[str], vertex: Any = None) -> Iterator[Any]:
        """Yield batches of these columns; with a `vertex` those that may have it suffice."""


class ResultTable:
    """The rows of the files of a result, one file after the other.

    Attributes:
        path: The file, or the folder of the files.
        schema: The names and types of the columns, those of the first file: categories are their
            values.
    """

    def __init__(
        self, path: str, files: Sequence[str], open_file: Callable[[str], ResultFile]
    ) -> None:
        """Open the files.

        Raises:
            InputError: A file cannot be read, or lacks a column of the first.
            StoreIoError: The system cannot read a file.
        """
        self.path = path
        import pyarrow as pa

        with reader_errors(path):
            self._files = [open_file(file) for file in files]
        schema = self._files[0].schema
        self.schema = pa.schema([field.with_type(_sortable(field.type)) for field in schema])
        for name, file in zip(files, self._files, strict=True):
            twice = [one for one, count in Counter(file.schema.names).items() if count > 1]
            if twice:
                raise InputError(f"{name} has more than one column {twice[0]}; rename one")
            if lacking := set(self.schema.names) - set(file.schema.names):
                raise InputError(
                    f"{name} has no column {min(lacking)}, which {files[0]} has; keep files of one "
                    "result in a folder"
                )

    def reserve_bytes(self, columns: Sequence[str]) -> int:
        """Return the bytes of reading these columns beyond `READ_BYTES`."""
        with reader_errors(self.path):
            return beyond_usual(max(file.largest_bytes(columns) for file in self._files))

    def batches(self, columns: Sequence[str] | None = None, vertex: Any = None) -> Iterator[Any]:
        """Yield the rows in batches, of some columns; None: of all.

        With a `vertex`, an Arrow scalar, batches without it may be left out.

        Raises:
            InputError: A file is damaged.
            StoreIoError: The system cannot read it.
        """
        import pyarrow as pa

        names = self.schema.names if columns is None else columns
        schema = pa.schema([self.schema.field(name) for name in names])
        with reader_errors(self.path):
            for file in self._files:
                yield from cast_batches(file.batches(names, vertex), schema)


def _sortable(kind: pyarrow.DataType) -> pyarrow.DataType:
    """Return a type of the same values that Arrow compares: others, such as Polars, write more."""
    import pyarrow as pa

    return pa.float32() if pa.types.is_float16(kind) else plain_type(kind)


class ParquetRows:
    """A Parquet file, read page by page."""

    def __init__(self, path: str) -> None:
        """Read the footer."""
        import pyarrow.parquet as pq

        self._path = path
        with open(path, "rb") as raw:
            footer = pq.ParquetFile(raw)
            self._metadata, self.schema = footer.metadata, footer.schema_arrow
        self._rows: dict[tuple[str, ...], int] = {}

    def largest_bytes(self, columns: Sequence[str]) -> int:
        """Return the bytes of the largest pages."""
        import pyarrow as pa

        with pa.OSFile(os.fsencode(self._path), "rb") as raw:
            return page_needs(chunks_of(self._metadata), raw, self._leaves(columns)).page_bytes

    def batches(self, columns: Sequence[str], vertex: Any = None) -> Iterator[Any]:
        """Yield the batches of the row groups whose statistics allow for the vertex."""
        import pyarrow as pa

        with pa.OSFile(os.fsencode(self._path), "rb") as raw:
            rows = self._batch_rows(raw, tuple(columns))
            file = open_pages(raw, self._metadata)
            groups = [
                at
                for at in range(self._metadata.num_row_groups)
                if vertex is None or self._may_have(at, vertex)
            ]
            yield from file.iter_batches(rows, groups, list(columns), use_threads=False)

    def _may_have(self, group: int, vertex: Any) -> bool:
        """Return whether a row group may have a vertex in its first column."""
        statistics = self._metadata.row_group(group).column(0).statistics
        has_bounds = statistics is not None and statistics.has_min_max
        return not has_bounds or bool(statistics.min <= vertex.as_py() <= statistics.max)

    def _batch_rows(self, raw: Any, columns: tuple[str, ...]) -> int:
        """Return the number of rows of a batch of few bytes."""
        if columns not in self._rows:
            self._rows[columns] = self._measured_rows(raw, columns)
        return self._rows[columns]

    def _measured_rows(self, raw: Any, columns: Sequence[str]) -> int:
        leaves = self._leaves(columns)
        needs = page_needs(chunks_of(self._metadata), raw, leaves, small_dictionary_bytes=0)
        # A few bytes of indexes may repeat the longest string of a dictionary.
        longest = (longest_string(raw, chunk, page) for chunk, page in needs.dictionaries)
        value_bytes = max(needs.value_bytes, *longest, 8)
        # A row may have a list of values.
        groups = [self._metadata.row_group(at) for at in range(self._metadata.num_row_groups)]
        values = max(
            (
                -(-group.column(at).num_values // max(group.num_rows, 1))
                for group in groups
                for at in range(group.num_columns)
                if group.column(at).path_in_schema in leaves
            ),
            default=1,
        )
        return max(min(BATCH_ROWS, _BATCH_BYTES // (value_bytes * max(values, 1))), 1)

    def _leaves(self, columns: Sequence[str]) -> list[str]:
        """Return the paths of the column chunks of some columns, several for a nested one."""
        paths = [self._metadata.schema.column(at).path for at in range(self._metadata.num_columns)]
        return [
            path
            for path in paths
            if any(path == name or path.startswith(f"{name}.") for name in columns)
        ]


class ArrowResult:
    """An Arrow IPC file, read record batch by record batch."""

    def __init__(self, path: str) -> None:
        """Read the footer."""
        import pyarrow as pa

        self._path = path
        with pa.OSFile(os.fsencode(path), "rb") as raw, pa.ipc.open_file(raw) as file:
            self.schema = file.schema

    def largest_bytes(self, columns: Sequence[str]) -> int:
        """Return the bytes of the largest record batch, and of the dictionaries."""
        return batch_bytes(self._path)

    def batches(self, columns: Sequence[str], vertex: Any = None) -> Iterator[Any]:
        """Yield parts of the record batches."""
        import pyarrow as pa

        with pa.OSFile(os.fsencode(self._path), "rb") as raw, pa.ipc.open_file(raw) as file:
            for at in range(file.num_record_batches):
                whole = file.get_batch(at).select(list(columns))
                row_bytes = max(whole.nbytes // max(whole.num_rows, 1), 1)
                yield from parts_of(whole, max(min(BATCH_ROWS, _BATCH_BYTES // row_bytes), 1))
