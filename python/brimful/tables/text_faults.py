"""The first fault of a CSV file that DuckDB refuses, with its line.

Invariant: a file is read once more only if it is refused. The sentences are brimful's, because
those of DuckDB name no line, and give the advice to change options of DuckDB.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Iterable, Iterator
from typing import IO

from brimful.errors import InputError
from brimful.options.checks import number_of, whole_number
from brimful.tables.graph_elements import opened
from brimful.wording import counted, shortened

#: Bytes of text that are read at once, and the most of a line.
_BLOCK_BYTES = 1 << 20
_LINE_BYTES = 8 << 20


def lines_of(path: str, file: IO[bytes]) -> Iterator[list[bytes]]:
    """Yield the lines of a file with their ends, some at a time.

    Raises:
        InputError: A line is too long.
    """
    begun = b""
    while block := file.read(_BLOCK_BYTES):
        # The last line may go on, and its CR may belong to the LF of the next block.
        *lines, begun = (begun + block).splitlines(keepends=True)
        yield lines
        if len(begun) > _LINE_BYTES:
            raise InputError(f"{path} has a line of more than {_LINE_BYTES >> 20} MiB")
    yield begun.splitlines(keepends=True)


def refuse_first_fault(path: str, delimiter: str, skipped: int, numbers: Collection[str]) -> None:
    """Refuse the first record that does not fit the header, which follows some `skipped` lines.

    `numbers` names columns of numbers. Without a fault nothing happens.

    Raises:
        InputError: Quotes are broken, a record has another number of fields than the header, or a
            number is beyond the range of its type.
    """
    with opened(path) as file:
        text = (line.decode("utf-8", "replace") for part in lines_of(path, file) for line in part)
        for _ in range(skipped):
            next(text)
        _refuse(path, text, delimiter, skipped, numbers)


def _refuse(
    path: str, text: Iterable[str], delimiter: str, skipped: int, numbers: Collection[str]
) -> None:
    records = csv.reader(text, delimiter=delimiter, strict=True)
    header: list[str] = []
    while True:
        # A record in quotes may have several lines; the first one is named.
        place = f"{path}:{skipped + records.line_num + 1}"
        try:
            record = next(records, None)
        except csv.Error:
            raise InputError(
                f"{place}: a field in quotes is not closed, or text follows its end; double the "
                "quotes within it"
            ) from None
        if record is None:
            return
        if not header:
            header = [name.strip() for name in record]
            continue
        if record and len(record) != len(header):
            raise InputError(
                f"{place}: expected {counted(len(header), 'field')} as in the header, found "
                f"{len(record):,}; correct the line"
            )
        for name, value in zip(header, record, strict=False):
            if name in numbers and (expected := _exceeded(value)):
                raise InputError(
                    f"{place}: expected {expected} in the column {name}, found "
                    f"{shortened(value)!r}; correct the line"
                )


def _exceeded(value: str) -> str | None:
    """Return the type whose range a number exceeds; None if a column of DuckDB holds it."""
    number = whole_number(value)
    if number is None:
        return "a float of 64 bits" if math.isinf(number_of(value)) else None
    return None if -(1 << 127) <= number < 1 << 127 else "an integer of 128 bits"
