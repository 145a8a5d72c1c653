"""The files of a saved result, read batch by batch: Parquet, Arrow IPC or CSV.

Invariant: a batch is a few MiB, whatever a row takes, and nothing is read ahead. `reserve_bytes`
is what the largest page, record batch or dictionary of a file adds to that. The datasets of pyarrow
keep neither promise: they read a whole CSV file ahead.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from brimful.errors import InputError
from brimful.io.reader_errors import reader_errors
from brimful.tables.arrow import batch_bytes, parts_of
from brimful.tables.edge_table import ARROW_RESERVE_BYTES, cast_batches
from brimful.tables.parquet import chunks_of, open_pages, page_needs
from brimful.tables.parquet_pages import longest_string

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
#: Bytes of CSV that are parsed at once, and the most of a line.
_BLOCK_BYTES = 1 << 20
#: A field of CSV, the records at the start of a text, the fields that end there, and a field that
#: may go on.
_FIELD = re.compile(rb'(?>"(?:[^"]++|"")*+"|[^",\r\n][^,\r\n]*+|)')
_RECORDS = re.compile(rb"(?:(?:%b,)*+%b(?:\r\n?|\n))*+" % (_FIELD.pattern, _FIELD.pattern))
_FIELDS = re.compile(rb"(?:%b,)*+" % _FIELD.pattern)
_BEGUN = re.compile(rb'"(?:[^"]++|"")*+"?|' + _FIELD.pattern)


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
        schema: The names and types of the columns, those of the first file.
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
        with reader_errors(path):
            self._files = [open_file(file) for file in files]
        self.schema = self._files[0].schema
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


class ParquetResult:
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


class CsvResult:
    """A CSV file, parsed block by block: an empty field is null, every other one a value."""

    def __init__(self, path: str, types: dict[str, Any]) -> None:
        """Read the header; `types` are those of the columns, by default strings."""
        import pyarrow as pa

        self._path = path
        with open(path, "rb") as raw:
            header = raw.readline(_BLOCK_BYTES)
        _end_of_records(path, header, 0, is_last=True)
        self._names = _parsed(header, None, {}).schema.names
        self._types = dict.fromkeys(self._names, pa.string()) | types
        self.schema = pa.schema([(name, self._types[name]) for name in self._names])

    def largest_bytes(self, columns: Sequence[str]) -> int:
        """Return 0: a block is small."""
        return 0

    def batches(self, columns: Sequence[str], vertex: Any = None) -> Iterator[Any]:
        """Yield the rows of each block; for no columns, those of the first."""
        import pyarrow as pa

        types = {name: self._types[name] for name in columns or self._names[:1]}
        with open(self._path, "rb") as raw:
            lines = raw.readline(_BLOCK_BYTES).count(b"\n")
            for block in self._blocks(raw, lines):
                with reader_errors(self._path, lines):
                    table = _parsed(block, self._names, types)
                lines += block.count(b"\n")
                yield from (
                    table.select(list(columns)).to_batches()
                    if columns
                    else [pa.RecordBatch.from_struct_array(pa.nulls(table.num_rows, pa.struct([])))]
                )

    def _blocks(self, raw: Any, lines: int) -> Iterator[bytes]:
        """Yield blocks of whole records, which come after some `lines`.

        Raises:
            InputError: A record is longer than a block, or a field in quotes is broken.
        """
        begun = b""
        while read := raw.read(_BLOCK_BYTES):
            begun += read
            end = _end_of_records(self._path, begun, lines)
            if end == 0 and len(begun) > _BLOCK_BYTES:
                raise InputError(
                    f"{self._path}:{lines + 1}: a record of more than {_BLOCK_BYTES:,} bytes "
                    "begins here; a result has none"
                )
            if end:
                yield begun[:end]
                lines += begun.count(b"\n", 0, end)
                begun = begun[end:]
        if begun:
            _end_of_records(self._path, begun, lines, is_last=True)
            yield begun


def _end_of_records(path: str, text: bytes, lines: int, *, is_last: bool = False) -> int:
    """Return the end of the last whole record in a text after some lines; 0: there is none.

    Line ends within quotes are part of a value.

    Raises:
        InputError: A field in quotes is broken: pyarrow would join the text after it to the field.
    """
    if b'"' not in text:
        return text.rfind(b"\n") + 1
    end = _matched(_RECORDS, text, 0)
    field = _matched(_FIELDS, text, end)
    if not (_FIELD if is_last else _BEGUN).fullmatch(text, field):
        line = lines + text.count(b"\n", 0, field) + 1
        raise InputError(
            f"{path}:{line}: a field in quotes is not closed, or text follows its end; double the "
            "quotes within it"
        )
    return end


def _matched(pattern: re.Pattern[bytes], text: bytes, start: int) -> int:
    """Return the end of the match of a pattern that matches everywhere."""
    match = pattern.match(text, start)
    assert match is not None, "the pattern matches no text, too"
    return match.end()


def _parsed(block: bytes, names: Sequence[str] | None, types: dict[str, Any]) -> pyarrow.Table:
    """Return lines of CSV as a table of the columns in `types`; names None: the header is here."""
    import pyarrow as pa
    from pyarrow import csv

    return csv.read_csv(
        pa.BufferReader(block),
        read_options=csv.ReadOptions(
            use_threads=False, block_size=max(len(block), 1), column_names=names
        ),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
