"""Results as fields of documents: `mongodb://HOST/DATABASE/COLLECTION?field=rank&id=_id`.

Each vertex sets the field in the documents whose id field holds its id. Invariant: nothing else of
a document changes, no document is created, and vertices without a document are counted. Writing is
idempotent, so that an interrupted run can be repeated.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlunsplit

from brimful.documents.collection import Documents
from brimful.documents.open_collection import open_collection
from brimful.errors import InputError, UsageError
from brimful.stores.base import split_url
from brimful.wording import counted

#: Vertices of one batch.
_BATCH = 1000
#: The largest integer that databases hold: theirs have 64 bits with a sign.
_LARGEST = 2**63 - 1


@dataclass
class Written:
    """The changes that writing a result made.

    Attributes:
        name: The collection, without secrets.
        field: The field that was set.
        updated: Number of documents in which it was set.
        missing: Number of vertices without a document.
        first_missing: The first of these vertices.
    """

    name: str
    field: str
    updated: int = 0
    missing: int = 0
    first_missing: Any = None

    def warnings(self) -> list[str]:
        """Return the sentence about vertices without a document."""
        if not self.missing:
            return []
        return [
            f"left out: {counted(self.missing, 'vertex')} without a document in {self.name}, first "
            f"{self.first_missing}"
        ]

    def figures(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        return {
            "field": self.field,
            "updated": self.updated,
            "vertices_without_document": self.missing,
            "first_missing": self.first_missing,
        }


def check_destination(url: str, *, overwrite: bool) -> None:
    """Refuse documents that a result could not be written to, before the run.

    Raises:
        UsageError: The URL names no field or no such documents, the ids have no index, or documents
            have the field and `overwrite` is false.
        InputError, StoreIoError: As `open_collection`.
    """
    with _open_destination(url) as (documents, field, id_field):
        _check_fields(documents, field, id_field, overwrite=overwrite)


def write_documents(stream: Iterator[Any], url: str, *, overwrite: bool) -> Written:
    """Write record batches of vertices and values to the documents at `url`.

    Raises:
        UsageError, InputError, StoreIoError: As `check_destination`; documents that were written
            before keep their new value.
    """
    with _open_destination(url) as (documents, field, id_field):
        _check_fields(documents, field, id_field, overwrite=overwrite)
        written = Written(documents.name, field)
        for batch in stream:
            for first in range(0, batch.num_rows, _BATCH):
                rows = batch.slice(first, _BATCH)
                ids, values = rows.column(0).to_pylist(), rows.column(1).to_pylist()
                _check_range(documents, ids, values)
                done = documents.update(id_field, ids, field, values)
                written.updated += done.documents
                if done.missing and not written.missing:
                    written.first_missing = done.missing[0]
                written.missing += len(done.missing)
        return written


@contextlib.contextmanager
def _open_destination(url: str) -> Iterator[tuple[Documents, str, str]]:
    """Open the documents of a URL; yield them, the field and the id field.

    Raises:
        UsageError: The URL cannot be read, or has no option `field`.
    """
    parts = split_url(url)
    own = {name: value for name, value in parse_qsl(parts.query) if name in ("field", "id")}
    rest = [
        option
        for option in parts.query.split("&")
        if option.partition("=")[0] not in ("field", "id")
    ]
    with open_collection(urlunsplit(parts._replace(query="&".join(rest))), _never) as documents:
        if "field" not in own:
            raise UsageError(
                f"name the field for the result: {documents.name}?field=NAME, and with &id=NAME "
                f"the field of the vertex ids (default: {documents.key})"
            )
        yield documents, own["field"], own.get("id", documents.key)


#: Never set: results are written on the main thread, where an interrupt raises by itself.
_never = threading.Event()


def _check_fields(documents: Documents, field: str, id_field: str, *, overwrite: bool) -> None:
    documents.check_field(field)
    if field == id_field or id_field.startswith(f"{field}."):
        raise UsageError(
            f'the result cannot replace the ids in the field "{id_field}"; name another field'
        )
    if documents.is_empty():
        raise UsageError(
            f"{documents.name} has no documents; check the names of database and collection"
        )
    if not documents.has_index(id_field):
        raise UsageError(
            f'the field "{id_field}" of {documents.name} has no index, without which each vertex '
            f"would read all documents; create one with {documents.index_command(id_field)}"
        )
    if not overwrite and documents.has_field(field):
        raise UsageError(
            f'documents in {documents.name} have the field "{field}"; name another one, or give '
            "--overwrite"
        )


def _check_range(documents: Documents, ids: list[Any], values: list[Any]) -> None:
    for vertex, value in zip(ids, values, strict=True):
        for number in (vertex, value):
            if isinstance(number, int) and number > _LARGEST:
                raise InputError(
                    f"vertex {vertex} has the number {number}, which {documents.name} cannot hold: "
                    "its integers have 64 bits with a sign; write a file"
                )
