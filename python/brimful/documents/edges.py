"""Documents as an edge table: a document is an edge, or a vertex with an array of targets.

Fields are named, never guessed. An array of targets makes an edge of each entry, an empty one a
vertex without edges. Invariant: every document becomes rows, or an error or a rejected row that
names its key.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from brimful.documents.collection import Documents
from brimful.documents.open_collection import open_collection
from brimful.errors import InputError, UsageError
from brimful.options import checks
from brimful.options.imports import EdgeColumns
from brimful.tables.edge_table import ARROW_RESERVE_BYTES, EdgeTable, guarded
from brimful.wording import cut

_BATCH_ROWS = 65_536
#: The most characters of string ids in a batch.
_BATCH_CHARACTERS = 4 << 20
_INTEGER = re.compile(r"-?[0-9]{1,19}")

#: The most documents that are read to find the type of ids.
_LOOKED_AT = 1000

#: Source, target and weight. A row without a target is a vertex; one without both is rejected.
_Row = tuple[Any, Any, Any]
_REJECTED: _Row = (None, None, None)


def open_documents(
    url: str,
    wanted: EdgeColumns,
    ids: str,
    on_error: str,
    skipped: list[str],
    stopped: threading.Event,
) -> EdgeTable:
    """Open the documents at `url` as an edge table; the first document decides the type of ids.

    With `on_error` "skip" the first error of a document that is not an edge goes to `skipped`.

    Raises:
        UsageError: Source or target are not named, or an option is for text.
        InputError: There are no documents.
        UsageError, StoreIoError: As `open_collection`.
    """
    import pyarrow as pa

    resources = contextlib.ExitStack()
    with contextlib.ExitStack() as on_failure:
        on_failure.push(resources)
        documents = resources.enter_context(open_collection(url, stopped))
        _check_columns(documents.name, wanted)
        fields = [field for field in (wanted.source, wanted.target, wanted.weight) if field]
        contents = documents.read(fields)
        first = next(contents, None)
        if first is None:
            raise InputError(
                f"{documents.name} has no documents; check the names of database and collection"
            )
        rows = _Rows(documents, fields, skipped if on_error == "skip" else None)
        contents, kind = rows.with_id_type(itertools.chain([first], contents), ids)
        id_type = pa.string() if kind == "string" else pa.int64()
        named = [pa.field(name, id_type) for name in fields[:2]]
        named += [pa.field(name, pa.float64()) for name in fields[2:]]
        schema = pa.schema(named)
        table = EdgeTable(
            documents.name,
            source=fields[0],
            target=fields[1],
            weight=wanted.weight,
            reader=None,
            reserve_bytes=ARROW_RESERVE_BYTES + documents.reserve_bytes,
            ignored=[],
            ids=kind,
            vertex_rows=True,
            resources=resources,
            stopped=stopped,
        )
        table.reader = guarded(table, schema, _batches(schema, rows.of(contents)))
        on_failure.pop_all()
        return table


def _check_columns(name: str, wanted: EdgeColumns) -> None:
    if wanted.source is None or wanted.target is None:
        raise UsageError(
            f"{name} holds documents, whose fields are not guessed; name them with --source and "
            "--target, and a weight with --weight"
        )
    if wanted.header is not None or wanted.delimiter is not None or wanted.ignore_extra:
        raise UsageError(
            f"--header, --no-header, --delimiter and --ignore-extra apply to text and tables, and "
            f"{name} holds documents; leave them out"
        )
    if len({wanted.source, wanted.target, wanted.weight}) < 3:
        raise UsageError("--source, --target and --weight must name different fields")


class _Rows:
    """Turns documents into rows."""

    def __init__(
        self, documents: Documents, fields: Sequence[str], skipped: list[str] | None
    ) -> None:
        self._documents, self._fields, self._skipped = documents, fields, skipped
        self._read: Callable[[Any], Any] = lambda value: None
        self._expected = ""

    def with_id_type(
        self, documents: Iterator[tuple[Any, list[Any]]], ids: str
    ) -> tuple[Iterator[tuple[Any, list[Any]]], str]:
        """Return the documents and the type of ids: that of `ids`, else of the first valid source.

        A document whose source is neither an integer nor a string is an error, or is skipped.
        """
        texts = self._documents.texts
        looked_at: list[tuple[Any, list[Any]]] = []
        kind = {"int": "int", "string": "string"}.get(ids)
        while kind is None:
            one = next(documents, None)
            if one is None or len(looked_at) == _LOOKED_AT:
                kind, looked_at = "int", looked_at + ([] if one is None else [one])
                break
            looked_at.append(one)
            source = one[1][0]
            if _integer_id(source) is not None:
                kind = "int"
            elif isinstance(source, texts):
                kind = "string"
            elif self._skipped is None:
                self._reject(one[0], self._fields[0], "an integer or a string as vertex id", source)
        lenient = ids != "auto"
        if kind == "int":
            self._read = _lenient_integer_id if lenient else _integer_id
            self._expected = "an integer of 64 bits as vertex id"
        else:
            self._read = lambda value: _string_id(value, texts, lenient)
            self._expected = "a string as vertex id"
        if not lenient:
            self._expected += ", as that of the first document"
        return itertools.chain(looked_at, documents), kind

    def of(self, documents: Iterable[tuple[Any, list[Any]]]) -> Iterator[_Row]:
        """Yield the rows of documents."""
        read = self._read
        for key, values in documents:
            source = read(values[0])
            if source is None:
                yield self._reject(key, self._fields[0], self._expected, values[0])
                continue
            target = values[1]
            if not isinstance(target, list):
                yield self._row(key, source, target, values[2] if len(values) > 2 else None)
            elif not target:
                yield source, None, None
            else:
                yield from self._listed(key, source, target, values[2:])

    def _listed(
        self, key: Any, source: Any, targets: list[Any], weights: list[Any]
    ) -> Iterator[_Row]:
        """Yield a row for each entry of an array of targets."""
        each: Iterable[Any] = itertools.repeat(None, len(targets))
        if weights:
            each = weights[0]
            if not isinstance(each, list) or len(each) != len(targets):
                expected = f"an array of {len(targets):,} weights, one for each target"
                yield self._reject(key, self._fields[2], expected, weights[0])
                return
        for target, weight in zip(targets, each, strict=True):
            yield self._row(key, source, target, weight)

    def _row(self, key: Any, source: Any, target: Any, weight: Any) -> _Row:
        id = self._read(target)
        if id is None:
            return self._reject(key, self._fields[1], self._expected, target)
        if len(self._fields) < 3:
            return source, id, None
        is_number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
        if not is_number or not math.isfinite(weight):
            return self._reject(key, self._fields[2], "a finite number as weight", weight)
        if isinstance(weight, int) and checks.rounded(weight) is not None:
            expected = "a weight that a float of 64 bits holds"
            return self._reject(key, self._fields[2], expected, weight)
        return source, id, float(weight)

    def _reject(self, key: Any, field: str, expected: str, value: Any) -> _Row:
        """Return the row that stands for a rejected document.

        Raises:
            InputError: Documents that are not edges end the import.
        """
        where = f"the document with {self._documents.key} {_quoted(key)}"
        fault = (
            f'has no field "{field}"'
            if value is None
            else f'has {_quoted(value)} in the field "{field}": expected {expected}'
        )
        if self._skipped is None:
            remedy = "correct the document, leave such documents out with --on-error skip" + (
                ", or take all ids as strings with --ids string" if "first" in expected else ""
            )
            raise InputError(f"{self._documents.name}: {where} {fault}; {remedy}")
        if not self._skipped:
            self._skipped.append(f"{where} {fault}")
        return _REJECTED


def _integer_id(value: Any) -> int | None:
    """Return a 64-bit integer, perhaps from a double of JavaScript; None for other values."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if -(2**63) <= value < 2**63 else None


def _lenient_integer_id(value: Any) -> int | None:
    """Return an integer, also one that is written as a string."""
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    return _integer_id(value)


def _string_id(value: Any, texts: tuple[type, ...], lenient: bool) -> str | None:
    """Return a string id; a `lenient` one may be an integer."""
    if isinstance(value, texts):
        return str(value)
    number = _integer_id(value) if lenient else None
    return None if number is None else str(number)


def _batches(schema: Any, rows: Iterator[_Row]) -> Iterator[Any]:
    """Yield rows as record batches of bounded size."""
    import pyarrow as pa

    strings = pa.types.is_string(schema.field(0).type)
    batch: list[_Row] = []
    characters = 0
    for row in rows:
        batch.append(row)
        if strings:
            characters += len(row[0] or "") + len(row[1] or "")
        if len(batch) == _BATCH_ROWS or characters > _BATCH_CHARACTERS:
            yield _batch(schema, batch)
            batch, characters = [], 0
    if batch:
        yield _batch(schema, batch)


def _batch(schema: Any, rows: list[_Row]) -> Any:
    import pyarrow as pa

    columns = list(zip(*rows, strict=True))[: len(schema)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _quoted(value: Any) -> str:
    return cut(f'"{value}"' if isinstance(value, str) else str(value), 40)
