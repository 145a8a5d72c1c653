"""CSV files read block by block, for results and for pairs of vertices.

Invariant: a batch is a few MiB. Quotes are as in RFC 4180: a field whose quotes are broken is
refused with its line. An empty field without quotes is null, every other one a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from brimful.errors import InputError
from brimful.io.reader_errors import reader_errors
from brimful.tables.text_faults import refuse_fault_in

if TYPE_CHECKING:
    import pyarrow

#: Bytes of CSV that are parsed at once, and the most of a record.
_BLOCK_BYTES = 1 << 20


class CsvFile:
    """A CSV file with a header."""

    def __init__(self, path: str, types: dict[str, Any], delimiter: str = ",") -> None:
        """Read the header; `types` are those of the columns, by default strings."""
        import pyarrow as pa

        self._path, self._delimiter = path, delimiter
        self._grammar = _Grammar(delimiter.encode())
        header, rows = self._read_header()
        self._start, self._lines = len(header), header.count(b"\n")
        if not header.strip():
            raise InputError(f"{path}:1: expected the names of the columns, found an empty line")
        self._names = self._parsed(header, None, {}).schema.names
        self._types = dict.fromkeys(self._names, pa.string()) | types
        self.schema = pa.schema([(name, self._types[name]) for name in self._names])
        fields = zip(self._names, self._grammar.fields(rows), strict=False)
        #: Columns whose first value is in quotes.
        self.quoted = {name for name, field in fields if field.startswith(b'"')}

    def largest_bytes(self, columns: Sequence[str]) -> int:
        """Return 0: a block is small."""
        return 0

    def batches(self, columns: Sequence[str], vertex: Any = None) -> Iterator[Any]:
        """Yield the rows of each block; for no columns, those of the first."""
        import pyarrow as pa

        types = {name: self._types[name] for name in columns or self._names[:1]}
        with open(self._path, "rb") as raw:
            raw.seek(self._start)
            lines = self._lines
            for block in self._blocks(raw, lines):
                with reader_errors(self._path, lines):
                    try:
                        table = self._parsed(block, self._names, types)
                    except pa.ArrowInvalid:
                        kinds = {name: str(kind) for name, kind in types.items()}
                        refuse_fault_in(
                            self._path, block, self._delimiter, lines, self._names, kinds
                        )
                        raise
                lines += block.count(b"\n")
                yield from (
                    table.select(list(columns)).to_batches()
                    if columns
                    else [pa.RecordBatch.from_struct_array(pa.nulls(table.num_rows, pa.struct([])))]
                )

    def _read_header(self) -> tuple[bytes, bytes]:
        """Return the first record, whose names may have line ends within quotes, and text after it.

        Raises:
            InputError: It is longer than a block, or a field in quotes is broken.
        """
        with open(self._path, "rb") as raw:
            text = raw.read(_BLOCK_BYTES)
        if header := self._grammar.first_record(text):
            return header, text[len(header) :]
        is_whole = len(text) < _BLOCK_BYTES
        self._grammar.end_of_records(self._path, text, 0, is_last=is_whole)
        if not is_whole:
            raise self._too_long(0)
        return text, b""

    def _too_long(self, lines: int) -> InputError:
        return InputError(
            f"{self._path}:{lines + 1}: a record of more than {_BLOCK_BYTES:,} bytes begins here; "
            "close its quotes, or shorten it"
        )

    def _blocks(self, raw: Any, lines: int) -> Iterator[bytes]:
        """Yield blocks of whole records, which come after some `lines`.

        Raises:
            InputError: A record is longer than a block, or a field in quotes is broken.
        """
        begun = b""
        while read := raw.read(_BLOCK_BYTES):
            begun += read
            end = self._grammar.end_of_records(self._path, begun, lines)
            if end == 0 and len(begun) > _BLOCK_BYTES:
                raise self._too_long(lines)
            if end:
                yield begun[:end]
                lines += begun.count(b"\n", 0, end)
                begun = begun[end:]
        if begun:
            self._grammar.end_of_records(self._path, begun, lines, is_last=True)
            yield begun

    def _parsed(
        self, block: bytes, names: Sequence[str] | None, types: dict[str, Any]
    ) -> pyarrow.Table:
        """Return lines as a table of the columns in `types`; `names` None: the header is here."""
        import pyarrow as pa
        from pyarrow import csv

        return csv.read_csv(
            pa.BufferReader(block),
            read_options=csv.ReadOptions(
                use_threads=False, block_size=max(len(block), 1), column_names=names
            ),
            parse_options=csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=types,
                include_columns=list(types),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )


class _Grammar:
    """The fields and records of text with some delimiter."""

    def __init__(self, delimiter: bytes) -> None:
        """Compile the patterns."""
        self._delimiter = delimiter
        plain = b"[^%b\r\n]" % re.escape(delimiter)
        field = rb'(?>"(?:[^"]++|"")*+"|(?!")%b++|)' % plain
        before = b"(?:%b%b)*+" % (field, re.escape(delimiter))
        record = rb"%b%b(?:\r\n?|\n)" % (before, field)
        self._record, self._records = re.compile(record), re.compile(rb"(?:%b)*+" % record)
        self._before = re.compile(before)
        self._field = re.compile(field)
        #: A field that may go on after the text.
        self._begun = re.compile(rb'"(?:[^"]++|"")*+"?|' + field)

    def first_record(self, text: bytes) -> bytes:
        """Return the first record with its line end; nothing if it is not whole."""
        match = self._record.match(text)
        return match[0] if match else b""

    def fields(self, text: bytes) -> Iterator[bytes]:
        """Yield the fields of the first record, with their quotes."""
        start, end = 0, -1
        while end < start <= len(text):
            end = _matched(self._field, text, start)
            yield text[start:end]
            start = end + text.startswith(self._delimiter, end)

    def end_of_records(self, path: str, text: bytes, lines: int, *, is_last: bool = False) -> int:
        """Return the end of the last whole record in a text after some lines; 0: there is none.

        Line ends within quotes are part of a value.

        Raises:
            InputError: A field in quotes is broken: pyarrow would join the text after it to it.
        """
        if b'"' not in text:
            return text.rfind(b"\n") + 1
        end = _matched(self._records, text, 0)
        field = _matched(self._before, text, end)
        if not (self._field if is_last else self._begun).fullmatch(text, field):
            line = lines + text.count(b"\n", 0, field) + 1
            raise InputError(
                f"{path}:{line}: a field in quotes is not closed, or text follows its end; double "
                "the quotes within it"
            )
        return end


def _matched(pattern: re.Pattern[bytes], text: bytes, start: int) -> int:
    """Return the end of the match of a pattern that matches everywhere."""
    match = pattern.match(text, start)
    assert match is not None, "the pattern matches no text, too"
    return match.end()
