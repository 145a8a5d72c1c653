"""Vertices in MongoDB: `mongodb://HOST/DATABASE/COLLECTION?options`, through pymongo.

A record is a document: `_id` is the partition and the key in hexadecimal digits, `r` the record.
Options besides `retry_seconds` go to the driver. Invariant: every write is idempotent, so that it
can be repeated when the server does not answer.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar
from urllib.parse import urlsplit

from brimful.errors import InputError, MissingPackageError, StoreIoError, UsageError
from brimful.stores.base import Opening, Store
from brimful.stores.retry import Retries, retry_seconds

_FORM = "mongodb://HOST/DATABASE/COLLECTION"


def driver() -> Any:
    """Return the package pymongo.

    Raises:
        MissingPackageError: It is not installed.
    """
    try:
        import pymongo
        import pymongo.errors
    except ImportError as error:
        raise MissingPackageError(
            'a mongodb:// URL needs pymongo; install it with: pip install "brimful[mongodb]"'
        ) from error
    return pymongo


class Connection:
    """A client for a collection, with errors in brimful's terms."""

    def __init__(self, opening: Opening) -> None:
        """Connect; the first call reaches the server.

        Raises:
            UsageError: The URL does not name a database and a collection, or an option is unknown.
        """
        self._pymongo = driver()
        parts = urlsplit(opening.url)
        database, _, collection = parts.path.lstrip("/").partition("/")
        if not (parts.netloc and database and collection):
            raise UsageError(f"a mongodb URL has the form {_FORM}")
        seconds = retry_seconds(opening)
        options = [
            option
            for option in parts.query.split("&")
            if option and not option.startswith("retry_seconds=")
        ]
        given = {option.partition("=")[0].lower() for option in options}
        # By default the driver would wait half a minute in each attempt.
        options += [
            f"{name}=2000"
            for name in ("serverSelectionTimeoutMS", "connectTimeoutMS")
            if name.lower() not in given
        ]
        uri = f"{parts.scheme}://{parts.netloc}/{database}?{'&'.join(options)}"
        errors = self._pymongo.errors
        try:
            with warnings.catch_warnings():
                # The driver only warns of unknown options, and ignores them; here they are errors.
                warnings.simplefilter("error", UserWarning)
                self.client = self._pymongo.MongoClient(uri)
        except (errors.ConfigurationError, errors.InvalidURI, ValueError, UserWarning) as error:
            raise UsageError(f"the mongodb URL is not valid: {error}") from error
        self.server = parts.netloc.rpartition("@")[2]
        self.collection = self.client[database][collection]
        self._retries = Retries(
            self.server,
            (errors.AutoReconnect, errors.ServerSelectionTimeoutError, errors.NetworkTimeout),
            seconds,
            opening.stopped,
        )

    def call(self, work: Any) -> Any:
        """Return what `work` returns; repeat it while the server is away.

        Raises:
            UsageError: The server refused user or password.
            InputError: A record is larger than a document may be.
            StoreIoError: Any other error of the server.
        """
        errors = self._pymongo.errors
        try:
            return self._retries(work)
        except errors.DocumentTooLarge as error:
            raise InputError(
                "a vertex takes more than the 16 MB of a MongoDB document; use another store"
            ) from error
        except errors.OperationFailure as error:
            if error.code in (13, 18):
                raise UsageError(
                    f"the server {self.server} refused user or password: {_text(error)}"
                ) from error
            raise StoreIoError(f"the server {self.server} failed: {_text(error)}") from error
        except errors.PyMongoError as error:
            raise StoreIoError(f"the server {self.server} failed: {error}") from error


class MongoStore(Store):
    """A partition of vertices in a collection."""

    form: ClassVar[str] = _FORM

    def __init__(self, opening: Opening) -> None:
        """Connect to the server."""
        self._connection = Connection(opening)
        self._call, self._collection = self._connection.call, self._connection.collection
        self._pymongo = driver()
        self._prefix = f"p{opening.partition:04d}-"
        self._all = {"_id": {"$gte": self._prefix, "$lt": self._prefix[:-1] + "."}}

    def _id(self, key: bytes) -> str:
        return self._prefix + key.hex()

    def _in(self, keys: Sequence[bytes]) -> dict[str, Any]:
        return {"_id": {"$in": [self._id(key) for key in keys]}}

    def load(self, batch: Sequence[tuple[bytes, bytes]]) -> int:
        """Add records whose keys are new; see `Store.load`."""
        first: dict[str, bytes] = {}
        for key, record in batch:
            first.setdefault(self._id(key), record)
        there = self._call(
            lambda: [
                found["_id"]
                for found in self._collection.find({"_id": {"$in": list(first)}}, {"_id": 1})
            ]
        )
        new = [{"_id": id, "r": first[id]} for id in first.keys() - set(there)]
        if new:
            self._call(lambda: self._insert(new))
        return len(batch) - len(new)

    def _insert(self, documents: list[dict[str, Any]]) -> None:
        try:
            self._collection.insert_many(documents, ordered=False)
        except self._pymongo.errors.BulkWriteError as error:
            # Code 11000: an earlier attempt, whose answer was lost, has inserted the document.
            others = [one for one in error.details["writeErrors"] if one["code"] != 11000]
            if others:
                raise StoreIoError(
                    f"the server {self._connection.server} failed: {others[0]['errmsg']}"
                ) from error

    def get_many(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Return the record of each key; see `Store.get_many`."""
        found = self._call(
            lambda: {one["_id"]: one["r"] for one in self._collection.find(self._in(keys))}
        )
        return [found.get(self._id(key)) for key in keys]

    def put_many(self, keys: Sequence[bytes], records: Sequence[bytes]) -> None:
        """Add or replace records; see `Store.put_many`."""
        writes = [
            self._pymongo.ReplaceOne({"_id": self._id(key)}, {"r": record}, upsert=True)
            for key, record in zip(keys, records, strict=True)
        ]
        self._call(lambda: self._collection.bulk_write(writes, ordered=False))

    def remove_many(self, keys: Sequence[bytes]) -> None:
        """Remove records; see `Store.remove_many`."""
        self._call(lambda: self._collection.delete_many(self._in(keys)))

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield every record once; see `Store.scan`."""
        last = self._prefix[:-1]
        while True:
            after = {"_id": {"$gt": last, "$lt": self._prefix[:-1] + "."}}
            page = self._call(
                lambda after=after: list(self._collection.find(after).sort("_id", 1).limit(_PAGE))
            )
            for one in page:
                yield bytes.fromhex(one["_id"][len(self._prefix) :]), one["r"]
            if len(page) < _PAGE:
                return
            last = page[-1]["_id"]

    def count(self) -> int:
        """Return the number of records."""
        return int(self._call(lambda: self._collection.count_documents(self._all)))

    def clear(self) -> None:
        """Remove all records of the partition."""
        self._call(lambda: self._collection.delete_many(self._all))

    def close(self) -> None:
        """Close the client."""
        self._connection.client.close()


#: Documents that a scan reads at once.
_PAGE = 512


def _text(error: Any) -> str:
    details = error.details or {}
    return str(details.get("errmsg") or error)
