"""The first fault of text that DuckDB or pyarrow refuses, with its line.

Invariant: text is read once more only if it is refused. The sentences are brimful's, because those
of DuckDB name no line, and give the advice to change options of DuckDB.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import IO, Any

from brimful.errors import InputError
from brimful.options.checks import number_of, whole_number
from brimful.tables.decompressed import opened
from brimful.wording import counted, printable, shortened

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


#: Returns the expected form of a field that has another; None: the field has it.
Fault = Callable[[str], str | None]


def refuse_first_fault(
    path: str,
    delimiter: str,
    skipped: int,
    numbers: Collection[str] = (),
    ids: Collection[str] = (),
) -> None:
    """Refuse the first record that does not fit the header, which follows some `skipped` lines.

    `numbers` names columns of numbers, and `ids` of integer ids. Without a fault nothing happens.

    Raises:
        InputError: Quotes are broken, a record has another number of fields than the header, a
            field is not UTF-8 or not an id, or a number is beyond the range of its type.
    """
    faults = dict.fromkeys(numbers, _exceeded) | dict.fromkeys(ids, _no_id)
    with opened(path) as file:
        text = (
            line.decode("utf-8", "surrogateescape")
            for part in lines_of(path, file)
            for line in part
        )
        for _ in range(skipped):
            next(text)
        records = csv.reader(text, delimiter=delimiter, strict=True)
        _refuse(path, records, skipped, faults, others=_no_text)


def refuse_fault_in(
    path: str,
    block: bytes,
    delimiter: str,
    skipped: int,
    header: Sequence[str],
    kinds: Mapping[str, str],
) -> None:
    """Refuse the first record of a block, which follows some `skipped` lines, that has a fault.

    `kinds` are the types of the columns that are read. Without a fault nothing happens.

    Raises:
        InputError: As `refuse_first_fault`, or a field is not of its type.
    """
    text = io.StringIO(block.decode("utf-8", "surrogateescape"), newline="")
    records = csv.reader(text, delimiter=delimiter, strict=True)
    faults = {name: _FAULTS[kind] for name, kind in kinds.items() if kind in _FAULTS}
    _refuse(path, records, skipped, faults, header)


def _refuse(
    path: str,
    records: Any,
    skipped: int,
    faults: Mapping[str, Fault],
    header: Sequence[str] = (),
    others: Fault = lambda value: None,
) -> None:
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
            if expected := faults.get(name, others)(value):
                raise InputError(
                    f"{place}: expected {expected} in the column {name}, found "
                    f"{shortened(value)!r}; correct the line"
                )


def _exceeded(value: str) -> str | None:
    """Return the type whose range a number exceeds; None if a column of DuckDB holds it."""
    number = whole_number(value)
    if number is None:
        is_beyond = math.isinf(number_of(value)) and not value.strip().strip("+-").isalpha()
        return "a float of 64 bits" if is_beyond else None
    return None if -(1 << 127) <= number < 1 << 127 else "an integer of 128 bits"


def _integer(least: int, most: int, expected: str) -> Fault:
    def fault(value: str) -> str | None:
        number = whole_number(value)
        is_one = not value or (number is not None and least <= number <= most)
        return None if is_one else expected

    return fault


def _no_text(value: str) -> str | None:
    return None if printable(value) == value else "text in UTF-8"


_no_id = _integer(-(1 << 63), (1 << 64) - 1, "an integer vertex id between -2^63 and 2^64-1")
_FAULTS: dict[str, Fault] = {
    "int64": _integer(-(1 << 63), (1 << 63) - 1, "an integer from -2^63 to 2^63-1"),
    "uint64": _integer(0, (1 << 64) - 1, "an integer from 0 to 2^64-1"),
    "string": _no_text,
}
