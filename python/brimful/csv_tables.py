"""CSV files, perhaps compressed, as edge tables.

Invariant: a block of text and its rows are all that is in memory, and no thread of pyarrow calls
back into Python.
"""

from __future__ import annotations

import bz2
import contextlib
import csv
import io
import lzma
import re
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

from brimful.errors import InputError
from brimful.reader_errors import reader_errors
from brimful.remote import is_remote
from brimful.remote import open_stream as open_remote
from brimful.tables import ARROW_RESERVE_BYTES, EdgeColumns, EdgeTable, guarded, pick_columns

_BLOCK_BYTES = 1 << 20
_LINE_BYTES = 4 << 20


def open_csv(path: str, wanted: EdgeColumns, skip: bool = False, ids: str = "auto") -> EdgeTable:
    """Open a CSV file with a header line as an edge table; `-` is standard input.

    Ids are read as text and parsed by brimful, so that 64 bits stay exact; `ids` "string" takes
    the text as it is, "auto" lets the first rows decide. With `skip`, rows with too few or too many
    columns are left out and counted in `malformed`.

    Raises:
        InputError: no header, missing columns, or a broken compression.
        StoreIoError: the file cannot be read.
    """
    import pyarrow as pa

    name = "standard input" if path == "-" else path
    resources = contextlib.ExitStack()
    with contextlib.ExitStack() as on_error:
        on_error.push(resources)
        stream = _open_decompressed(path, resources)
        with reader_errors(name):
            header = stream.readline()
        names = _parse_header(name, header)
        columns = pick_columns(name, names, wanted)
        assert columns.source is not None and columns.target is not None
        if (wanted.source is None) and _is_integer(columns.source) and _is_integer(columns.target):
            raise InputError(
                f"{name} begins with {columns.source},{columns.target} where a header line with "
                "the names of the columns was expected; add one, or use --format edgelist"
            )
        schema = pa.schema(
            [(columns.source, pa.string()), (columns.target, pa.string())]
            # Where a weight may be left out, it is brimful that tells which is none.
            + (
                []
                if columns.weight is None
                else [(columns.weight, pa.string() if skip else pa.float64())]
            )
        )
        table = EdgeTable(
            name, columns.source, columns.target, columns.weight, None, ARROW_RESERVE_BYTES
        )
        table.ids = "rows" if ids == "auto" else ids
        batches = _csv_batches(stream, table, names, schema, skip=skip)
        table.reader = guarded(table, schema, batches)
        table.resources = resources
        on_error.pop_all()
        return table


def _csv_batches(
    stream: io.BufferedReader, table: EdgeTable, names: list[str], schema: Any, *, skip: bool
) -> Iterator[Any]:
    """Yield the rows of a CSV body in batches of about `_BLOCK_BYTES` of text.

    Blocks are cut at line ends here and parsed one by one. pyarrow's own streaming reader reads
    ahead on a thread that calls back into Python, and that thread hangs the interpreter's exit
    when a stream is left unfinished.
    """
    import pyarrow as pa
    import pyarrow.csv as pacsv

    def leave_out(row: Any) -> str:
        count = table.malformed[0]
        if count == 0:
            table.malformed = (1, name, lines_before + row.number, row.text[:40])
        else:
            table.malformed = (count + 1, *table.malformed[1:])
        return "skip"

    name = table.name
    parsing = pacsv.ParseOptions(
        newlines_in_values=False, invalid_row_handler=leave_out if skip else None
    )
    converting = pacsv.ConvertOptions(
        column_types=schema,
        include_columns=schema.names,
        null_values=[""],
        strings_can_be_null=False,
    )
    # Line 1 of the file is the header.
    lines_before = 1
    rest = b""
    while True:
        block = stream.read(_BLOCK_BYTES)
        text = rest + block
        cut = text.rfind(b"\n") + 1 if block else len(text)
        rest = text[cut:]
        if len(rest) > _LINE_BYTES:
            raise InputError(
                f"{name} has a line longer than {_LINE_BYTES:,} bytes after line "
                f"{lines_before}; expected one edge per line"
            )
        if text[:cut].strip():
            reading = pacsv.ReadOptions(
                use_threads=False, block_size=2 * _LINE_BYTES, column_names=names
            )
            with reader_errors(name, lines_before):
                try:
                    block_table = pacsv.read_csv(
                        pa.BufferReader(text[:cut]), reading, parsing, converting
                    )
                except pa.ArrowInvalid:
                    _require_utf8(name, lines_before, text[:cut])
                    raise
            yield from block_table.to_batches()
        lines_before += text.count(b"\n", 0, cut)
        if not block:
            return


def _require_utf8(name: str, lines_before: int, text: bytes) -> None:
    """Refuse text that is not UTF-8, with the place of the first byte that is not.

    Raises:
        InputError: it is not.
    """
    try:
        text.decode()
    except UnicodeDecodeError as error:
        line = lines_before + text.count(b"\n", 0, error.start) + 1
        column = error.start - text.rfind(b"\n", 0, error.start)
        raise InputError(
            f"{name}:{line}:{column}: expected UTF-8, found the byte "
            f"0x{text[error.start]:02x}; convert the file"
        ) from None


def _open_decompressed(path: str, resources: contextlib.ExitStack) -> io.BufferedReader:
    """Open a file or standard input, decompressed by the magic of its content."""
    import pyarrow as pa

    name = "standard input" if path == "-" else path
    with reader_errors(name):
        raw: io.BufferedReader
        if path == "-":
            raw = io.BufferedReader(_Unclosed(sys.stdin.buffer))
        elif is_remote(path):
            stream = resources.enter_context(open_remote(path))
            raw = io.BufferedReader(stream, _BLOCK_BYTES)
        else:
            raw = resources.enter_context(open(path, "rb"))  # noqa: SIM115
        magic = raw.peek(6)[:6]
        if magic.startswith(b"\x1f\x8b"):
            codec = "gzip"
        elif magic.startswith(b"\x28\xb5\x2f\xfd"):
            codec = "zstd"
        elif magic.startswith(b"\xfd7zXZ\x00"):
            return io.BufferedReader(resources.enter_context(lzma.open(raw)))
        elif re.match(rb"BZh[1-9](1A|\x17r)", magic):
            return io.BufferedReader(resources.enter_context(bz2.open(raw)))
        else:
            return raw
        stream = resources.enter_context(pa.CompressedInputStream(raw, codec))
        return io.BufferedReader(stream, _BLOCK_BYTES)


class _Unclosed(io.RawIOBase):
    """Standard input as a raw stream that is left open when its reader is closed."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _parse_header(name: str, header: bytes) -> list[str]:
    """Return the column names of a CSV header line."""
    if not header:
        raise InputError(f"{name} is empty; expected a header line and one edge per line")
    with reader_errors(name):
        text = header.decode("utf-8-sig").rstrip("\r\n")
    names = next(csv.reader([text]), [])
    return [column.strip() for column in names]


def _is_integer(text: str) -> bool:
    return re.fullmatch(r"[+-]?\d+", text) is not None
