"""Documents of a MongoDB collection, read by one cursor in the order of `_id`."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from brimful.documents.collection import Documents, Updated
from brimful.errors import InputError, UsageError
from brimful.stores.base import Opening
from brimful.stores.mongodb import MongoConnection, driver

#: Documents in one answer of the server; an answer has at most 16 MB.
_BATCH = 1000


class MongoDocuments(Documents):
    """The documents of a collection."""

    key: ClassVar[str] = "_id"
    #: For an answer and its copy; documents are decoded one by one.
    reserve_bytes: ClassVar[int] = 48 << 20

    def __init__(self, opening: Opening) -> None:
        """Prepare a connection; the first call reaches the server."""
        super().__init__(opening.url)
        self._connection = MongoConnection(opening)
        self._call, self._collection = self._connection.call, self._connection.collection
        self._pymongo = driver()
        from bson import ObjectId

        self.texts = (str, ObjectId)
        self._object_id = ObjectId

    def read(self, fields: Sequence[str]) -> Iterator[tuple[Any, list[Any]]]:
        """Yield every document; see `Documents.read`."""
        import bson

        paths = [field.split(".") for field in fields]
        # A projection refuses two fields, one within the other.
        within = [
            one for one in fields if any(one.startswith(f"{other}.") for other in ("_id", *fields))
        ]
        shown = {field: 1 for field in fields if field not in within} | {"_id": 1}
        answers = _Answers(self._collection, shown, self._pymongo.errors)
        done, last = 0, None
        while True:
            batch, resumed = self._call(functools.partial(answers.next, done))
            documents = bson.decode_iter(batch)
            if resumed and next(documents, {}).get("_id") != last:
                raise InputError(
                    f"{self.name} changed while it was read, and the connection was lost; import "
                    "it again while nothing writes to it"
                )
            if not batch:
                return
            for document in documents:
                done, last = done + 1, document["_id"]
                yield last, [_at(document, path) for path in paths]

    def is_empty(self) -> bool:
        """Return whether there are no documents."""
        return self._call(lambda: self._collection.find_one({}, {"_id": 1})) is None

    def has_field(self, field: str) -> bool:
        """Return whether a document has the field."""
        wanted = {field: {"$exists": True}}
        return self._call(lambda: self._collection.find_one(wanted, {"_id": 1})) is not None

    def has_index(self, field: str) -> bool:
        """Return whether an index begins with the field."""
        indexes = self._call(self._collection.index_information)
        return any(index["key"][0][0] == field for index in indexes.values())

    def index_command(self, field: str) -> str:
        """Return a command that creates an index of the field."""
        return f'createIndex on "{field}"'

    def check_field(self, field: str) -> None:
        """Refuse a field that cannot be set; see `Documents.check_field`."""
        parts = field.split(".")
        if parts[0] == "_id" or any(not part or part.startswith("$") for part in parts):
            raise UsageError(
                f'a result cannot be written to the field "{field}"; name a field other than _id, '
                "without $ at its beginning"
            )

    def update(
        self, id_field: str, ids: Sequence[Any], field: str, values: Sequence[Any]
    ) -> Updated:
        """Set a field by ids; see `Documents.update`."""
        at = {form: index for index, id in enumerate(ids) for form in self.id_forms(id)}
        path = id_field.split(".")
        existing = self._call(
            lambda: [
                _at(document, path)
                for document in self._collection.find({id_field: {"$in": list(at)}}, {id_field: 1})
            ]
        )
        if any(isinstance(value, (list, Mapping)) for value in existing):
            raise self.several_ids(id_field)
        # The server also finds equal values of types that are no ids, such as decimals.
        existing = [one for one in existing if isinstance(one, (int, float, *self.texts))]
        existing = [one for one in existing if one in at]
        writes = [
            self._pymongo.UpdateMany({id_field: value}, {"$set": {field: values[at[value]]}})
            for value in set(existing)
        ]
        if writes:
            self._call(lambda: self._collection.bulk_write(writes, ordered=False))
        reached = {at[value] for value in existing}
        return Updated(len(existing), [id for index, id in enumerate(ids) if index not in reached])

    def id_forms(self, id: Any) -> list[Any]:
        """Return the values of a field that imports read as this id."""
        is_object_id = isinstance(id, str) and len(id) == 24 and self._object_id.is_valid(id)
        return [id, self._object_id(id)] if is_object_id else super().id_forms(id)

    def close(self) -> None:
        """Close the client."""
        self._connection.client.close()


def _at(document: Any, path: Sequence[str]) -> Any:
    """Return the value at a path; None where there is none, a list within an array."""
    for depth, part in enumerate(path):
        if isinstance(document, list):
            return [_at(one, path[depth:]) for one in document]
        if not isinstance(document, Mapping):
            return None
        document = document.get(part)
    return document


class _Answers:
    """The results of one query: batches of documents, as bytes, in the order of `_id`."""

    def __init__(self, collection: Any, shown: dict[str, int], errors: Any) -> None:
        self._collection, self._shown, self._errors = collection, shown, errors
        self._cursor: Iterator[bytes] | None = None

    def next(self, done: int) -> tuple[bytes, bool]:
        """Return the next batch, empty at the end.

        After a lost connection, the batch begins with the last of the `done` documents again, and
        the second value is True.
        """
        resumed = False
        if self._cursor is None:
            resumed = done > 0
            cursor = self._collection.find_raw_batches({}, self._shown, batch_size=_BATCH)
            self._cursor = iter(cursor.sort("_id", 1).skip(max(done - 1, 0)))
        try:
            return next(self._cursor, b""), resumed
        except self._errors.CursorNotFound as error:
            self._cursor = None
            raise self._errors.AutoReconnect(str(error)) from error
        except self._errors.PyMongoError:
            self._cursor = None
            raise
