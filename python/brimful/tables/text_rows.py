"""CSV files as rows of DuckDB, read as docs/formats.md says: the dialect of RFC 4180.

Invariant: DuckDB is strict. Its other mode reads lines that end in several ways, but also drops
text after a closing quote, and columns beyond the header.
"""

from __future__ import annotations

import contextlib
import csv
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from brimful.errors import InputError, UsageError
from brimful.io.regular import writing_to
from brimful.tables.decompressed import compression, opened
from brimful.tables.text_faults import lines_of, refuse_first_fault
from brimful.wording import counted, shortened

if TYPE_CHECKING:
    from brimful.tables.connection import DuckDbConnection

#: Options of DuckDB. All rows decide the types of columns, and a date is written YYYY-MM-DD:
#: 01/02/2020 stays a string. The usual buffers, of 32 MB, leave no room for a join of the least
#: memory.
_OPTIONS = (
    "header=true, quote='\"', escape='\"', comment='', allow_quoted_nulls=false, "
    "hive_partitioning=false, dateformat='%Y-%m-%d', sample_size=-1, buffer_size=8388608"
)
_DELIMITERS = ",;\t|"
#: Conditions of SQL on numbers beyond the range of their type, floats read as texts. Arrow has no
#: BIGNUM.
_BEYOND = {
    "DOUBLE": "isinf({0}::DOUBLE) AND NOT regexp_matches({0}, '(?i)inf')",
    "BIGNUM": "{0} IS NOT NULL",
}
#: The beginnings of DuckDB's types for dates and times.
_TIMES = ("DATE", "TIME")
#: The type of a column of SQL that DuckDB takes for texts or times; null: its own. It reads some
#: words as times, drops digits beyond microseconds, and takes a first `inf` for a time or a text.
_CHANGED = """CASE
    WHEN bool_or(regexp_matches({0}, '(?i)inf')) AND count({0}) = count(*)
        FILTER (isinf(TRY_CAST({0} AS DOUBLE)) = regexp_matches({0}, '(?i)inf')) THEN 'DOUBLE'
    WHEN bool_or(regexp_matches({0}, '(?i)inf|epoch|\\.\\d{{6}}\\d*[1-9]')) THEN 'VARCHAR' END"""
#: The compressions that DuckDB knows, by the endings of names for which it takes each.
_DECOMPRESSED = {".gz": "gz", ".zst": "zst"}
#: The most bytes of comments before the header.
_COMMENT_BYTES = 1 << 20
#: Bytes of text that are read at once.
_BLOCK_BYTES = 1 << 20
#: A quote that opens a field, and a field within quotes; the delimiter may be any usual one.
_OPENING = re.compile(rb'(?:^|(?<=[,;\t|]))"')
_QUOTED = re.compile(_OPENING.pattern + rb'(?:[^"]|"")*+"')


class TextRows:
    """CSV files with a header, as a function of SQL.

    Attributes:
        function: The function that reads their rows, which `check` completes.
        names: The names in the header of each file, without space around them. DuckDB renames the
            second of two equal ones.
    """

    def __init__(
        self,
        connection: DuckDbConnection,
        paths: Sequence[str],
        delimiter: str | None = None,
        texts: Sequence[str] = (),
    ) -> None:
        """Take files; `texts` names columns of texts. `delimiter` None: DuckDB detects it.

        Raises:
            UsageError: The files have different numbers of comment lines before the header.
            InputError: The comments are too long, a line is, or files have different delimiters.
            StoreIoError: A file cannot be read, or a copy of a file cannot be written.
        """
        self._connection, self._paths = connection, paths
        starts = [_start(path) for path in paths]
        skipped = [_comment_lines(path, start) for path, start in zip(paths, starts, strict=True)]
        if len(set(skipped)) > 1:
            raise UsageError(
                f"{paths[0]} and other inputs have different numbers of lines before the header; "
                "remove the comments"
            )
        self._skipped = skipped[0]
        headers = [_lines(start)[self._skipped :] for start in starts]
        for path, header in zip(paths, headers, strict=True):
            if not header or not header[0].strip():
                raise InputError(
                    f"{path}:{self._skipped + 1}: expected the names of the columns, found an "
                    "empty line"
                )
        read = [
            _readable(path, os.path.join(connection.folder, f"{number}.csv"))
            for number, path in enumerate(paths)
        ]
        options = f"{_OPTIONS}, skip={self._skipped}"
        if delimiter is None:
            delimiter = self._detected(read[0], options, headers[0])
        self._delimiter = delimiter
        self.names = [_names(header, delimiter) for header in headers]
        for path, names in zip(paths, self.names, strict=True):
            if len(names) == 1 < len(self.names[0]):
                raise InputError(
                    f"{path}:{self._skipped + 1}: expected the delimiter "
                    f"{'tab' if delimiter == chr(9) else delimiter} in the header, as in "
                    f"{paths[0]}, found {shortened(names[0])!r}; write all inputs with one "
                    "delimiter"
                )
        options += f", sep={_sql_text(delimiter)}"
        if len(paths) > 1:
            options += ", union_by_name=true"
        self._arguments = f"[{', '.join(map(sql_path, read))}], {options}"
        present = [name for name in texts if name in self.names[0]]
        self._types = dict.fromkeys(present, "VARCHAR")
        self.function = self._reading(self._types)

    def _reading(self, types: Mapping[str, str]) -> str:
        """Return the function that reads the rows, some columns with given types."""
        if not types:
            return f"read_csv({self._arguments})"
        pairs = ", ".join(f"{_sql_text(name)}: '{kind}'" for name, kind in types.items())
        return f"read_csv({self._arguments}, types={{{pairs}}})"

    def _detected(self, path: str, options: str, header: Sequence[str]) -> str:
        """Return the delimiter of the first file."""
        query = f"SELECT Delimiter FROM sniff_csv({sql_path(path)}, {options})"
        found = []
        with contextlib.suppress(*_refusals()):
            # Records that differ from each other have none; `check` names the first of them.
            found = [row[0] for row in self._connection.execute(query).fetchall()]
        # If no delimiter splits all lines, DuckDB takes one that splits none.
        likely = [one for one in (*found, *_DELIMITERS) if header and one in header[0]]
        return str([*likely, *found, ","][0])

    def check(self, columns: Iterable[str] | None = None) -> None:
        """Read all rows once, and refuse the first that is broken.

        `columns` are those whose values are taken; None: all. The types of columns that DuckDB
        takes for others become theirs.

        Raises:
            InputError: A record does not fit the header, or a number is beyond its type's range.
        """
        taken = None if columns is None else set(columns)
        conditions: dict[str, str] = {}
        changes: dict[str, str] = {}
        types = dict(self._types)
        try:
            described = self._connection.execute(f"DESCRIBE FROM {self.function}").fetchall()
            for name, kind, *_ in described:
                if name in types or (taken is not None and name not in taken):
                    continue
                if kind in _BEYOND:
                    conditions[name] = _BEYOND[kind].format(sql_name(name))
                if kind == "VARCHAR" or kind.startswith(_TIMES):
                    changes[name] = _CHANGED.format(sql_name(name))
                if name in changes or kind == "DOUBLE":
                    types[name] = "VARCHAR"
            beyond = " OR ".join(conditions.values()) or "false"
            wanted = ", ".join([f"count(*) FILTER ({beyond})", *changes.values()])
            query = f"SELECT {wanted} FROM {self._reading(types)}"
            ((count, *changed),) = self._connection.execute(query).fetchall()
        except _refusals():
            self._refuse_fault(conditions)
            raise
        self._types |= {name: kind for name, kind in zip(changes, changed, strict=True) if kind}
        self.function = self._reading(self._types)
        if count:
            self._refuse_fault(conditions)
            raise InputError(
                f"{counted(count, 'row')} of {', '.join(self._paths)} have a number beyond the "
                f"range of its type in the columns {', '.join(conditions)}; correct them"
            )

    def refuse_other_ids(self, column: str) -> None:
        """Refuse the first value of a column that is not an integer id.

        Raises:
            InputError: There is one.
        """
        for path in self._paths:
            refuse_first_fault(path, self._delimiter, self._skipped, ids=[column])

    def _refuse_fault(self, numbers: Collection[str]) -> None:
        for path in self._paths:
            refuse_first_fault(path, self._delimiter, self._skipped, numbers)


def _refusals() -> tuple[type[Exception], ...]:
    """Return the errors of DuckDB about the text of a file."""
    import duckdb

    return duckdb.InvalidInputException, duckdb.ConversionException


def _lines(start: bytes) -> list[str]:
    return start.decode("utf-8", "replace").splitlines(keepends=True)


def _names(header: Sequence[str], delimiter: str) -> list[str]:
    fields = csv.reader(header, delimiter=delimiter, skipinitialspace=True)
    return [name.strip() for name in next(fields, [])]


def _start(path: str) -> bytes:
    """Return the start of a file, with its comments and its header."""
    with opened(path) as file:
        start = file.read(_COMMENT_BYTES)
    return start.removeprefix(b"\xef\xbb\xbf")


def _comment_lines(path: str, start: bytes) -> int:
    """Return the number of comments and blank lines before the header of a file."""
    for number, line in enumerate(start.splitlines()):
        if line and not line.startswith((b"#", b"%")):
            return number
    if len(start) == _COMMENT_BYTES:
        raise InputError(f"{path} has more than 1 MiB of comments before its header; remove them")
    return 0


def _readable(path: str, copy: str) -> str:
    """Return the path of a file, or of a copy.

    DuckDB can read neither lines that do not all end alike, nor some compressed files, nor those
    with another name.
    """
    if compression(path) == _DECOMPRESSED.get(os.path.splitext(path.lower())[1]):
        with opened(path) as file:
            if not _has_several_line_ends(file):
                return path
    with opened(path) as file, writing_to(copy), open(copy, "wb") as out:
        is_open = False
        for lines in lines_of(path, file):
            for line in lines:
                if b'"' in line:
                    is_open = _ends_in_quotes(line, is_open)
                out.write(line if is_open else line.rstrip(b"\r\n") + b"\n")
    return copy


def _has_several_line_ends(file: Any) -> bool:
    """Return whether LF, CRLF and CR are not all the same, within quotes too."""
    feeds = returns = pairs = 0
    last = b""
    while block := file.read(_BLOCK_BYTES):
        feeds += block.count(b"\n")
        returns += block.count(b"\r")
        pairs += block.count(b"\r\n") + (last == b"\r" and block[:1] == b"\n")
        last = block[-1:]
    return sum(count > 0 for count in (pairs, feeds - pairs, returns - pairs)) > 1


def _ends_in_quotes(line: bytes, is_open: bool) -> bool:
    """Return whether a line ends within quotes; `is_open`: it begins so."""
    rest = _QUOTED.sub(b"", b'"' + line if is_open else line)
    return _OPENING.search(rest) is not None


def refuse_twice(table: str, names: Iterable[str], used: Iterable[str] | None = None) -> None:
    """Refuse columns whose names differ in capital letters at most; SQL ignores the case of names.

    `used` names the columns that are taken; None: all.

    Raises:
        UsageError: A name occurs twice.
    """
    places: dict[str, list[str]] = {}
    for number, name in enumerate(names, 1):
        places.setdefault(name.lower(), []).append(f"{name} ({number})")
    for name in places if used is None else map(str.lower, used):
        # A column without a name gets one of DuckDB.
        if name and len(same := places.get(name, [])) > 1:
            raise UsageError(
                f"{table} has more than one column {name}, if case is ignored: "
                f"{', '.join(same)}; rename all but one"
            )


def sql_name(column: str) -> str:
    """Return the name of a column as an identifier of SQL."""
    return '"' + column.replace('"', '""') + '"'


def sql_path(path: str) -> str:
    """Return a path as a text of SQL that names this file alone: DuckDB expands patterns."""
    return _sql_text(re.sub(r"[*?\[]", r"[\g<0>]", path))


def _sql_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
