"""Vertices in MongoDB: `mongodb://HOST/DATABASE/COLLECTION?options`, through pymongo.

A record is a document: `_id` is the partition and the key in hexadecimal digits, `r` the record.
Options besides `retry_seconds` go to the driver. Invariant: every write is idempotent, so that it
can be repeated when the server does not answer.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar
from urllib.parse import quote, unquote

from brimful.errors import InputError, MissingPackageError, StoreIoError, UsageError
from brimful.stores.base import Opening, Store, split_url
from brimful.stores.retry import Retries, retry_seconds
from brimful.wording import shortened

_FORM = "mongodb://HOST/DATABASE/COLLECTION"


def driver() -> Any:
    """Return the package pymongo.

    Raises:
        MissingPackageError: The package is not installed.
    """
    try:
        import pymongo
        import pymongo.errors
    except ImportError as error:
        raise MissingPackageError(
            'a mongodb:// URL needs pymongo; install it with: pip install "brimful[mongodb]"'
        ) from error
    return pymongo


class MongoConnection:
    """A client for a collection, with errors in brimful's terms."""

    def __init__(self, opening: Opening) -> None:
        """Connect; the first call reaches the server.

        Raises:
            UsageError: The URL does not name a database and a collection, or has an invalid option.
        """
        self._pymongo = driver()
        parts = split_url(opening.url)
        database, _, collection = map(unquote, parts.path.lstrip("/").partition("/"))
        if not (parts.netloc and database and collection):
            raise UsageError(f"a mongodb URL has the form {_FORM}")
        seconds = retry_seconds(opening)
        options = [
            option
            for option in parts.query.split("&")
            if option and not option.startswith("retry_seconds=")
        ]
        names = {option.partition("=")[0].lower() for option in options}
        # By default the driver would wait half a minute in each attempt.
        options += [
            f"{name}=2000"
            for name in ("serverSelectionTimeoutMS", "connectTimeoutMS")
            if name.lower() not in names
        ]
        uri = f"{parts.scheme}://{parts.netloc}/{quote(database)}?{'&'.join(options)}"
        errors = self._pymongo.errors
        try:
            with warnings.catch_warnings():
                # The driver only warns of unknown options, and ignores them; here they are errors.
                warnings.simplefilter("error", UserWarning)
                self.client = self._pymongo.MongoClient(uri)
        except (errors.PyMongoError, ValueError, UserWarning) as error:
            for option in options:
                _check_known(option)
            raise UsageError(f"the mongodb URL is not valid: {error}") from error
        try:
            self.collection = self.client[database][collection]
        except errors.InvalidName as error:
            self.client.close()
            raise UsageError(f"the mongodb URL is not valid: {error}") from error
        self.server = parts.netloc.rpartition("@")[2]
        self._retries = Retries(
            self.server,
            (
                errors.AutoReconnect,
                errors.ServerSelectionTimeoutError,
                errors.NetworkTimeout,
                # The server forgets a cursor after some idle minutes.
                errors.CursorNotFound,
            ),
            seconds,
            opening.stopped,
        )

    def call(self, work: Any) -> Any:
        """Return the result of `work`; repeat the call while the server is away.

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
                    f"the server {self.server} refused the user or the password: "
                    f"{_server_message(error)}; correct the URL"
                ) from error
            raise StoreIoError(
                f"the server {self.server} failed: {_server_message(error)}"
            ) from error
        except errors.PyMongoError as error:
            raise StoreIoError(f"the server {self.server} failed: {error}") from error


class MongoStore(Store):
    """A partition of vertices in a collection."""

    form: ClassVar[str] = _FORM
    library_bytes: ClassVar[int] = 16 << 20

    def __init__(self, opening: Opening) -> None:
        """Connect to the server."""
        self._connection = MongoConnection(opening)
        self._call, self._collection = self._connection.call, self._connection.collection
        self._pymongo = driver()
        self._prefix = f"p{opening.partition:04d}-"
        self._all = {"_id": {"$gte": self._prefix, "$lt": self._prefix[:-1] + "."}}
        #: Number of records, if only loads changed it since it was read.
        self._count: int | None = None

    def _id(self, key: bytes) -> str:
        return self._prefix + key.hex()

    def _in(self, keys: Sequence[bytes]) -> dict[str, Any]:
        return {"_id": {"$in": [self._id(key) for key in keys]}}

    def load(self, batch: Sequence[tuple[bytes, bytes]]) -> int:
        """Add records whose keys are new; see `Store.load`."""
        before, self._count = self.count() if self._count is None else self._count, None
        first: dict[str, bytes] = {}
        for key, record in batch:
            first.setdefault(self._id(key), record)
        documents = [{"_id": id, "r": record} for id, record in first.items()]
        attempts = 0

        def insert() -> int:
            nonlocal attempts
            attempts += 1
            return self._insert(documents)

        new = int(self._call(insert))
        if attempts > 1:
            # An attempt whose answer was lost may have inserted documents.
            new = self.count() - before
        self._count = before + new
        return len(batch) - new

    def _insert(self, documents: list[dict[str, Any]]) -> int:
        """Insert the documents whose id is new; return their number."""
        try:
            self._collection.insert_many(documents, ordered=False)
            return len(documents)
        except self._pymongo.errors.BulkWriteError as error:
            failed = error.details["writeErrors"]
            others = [one for one in failed if one["code"] != _EXISTS]
            if others:
                raise StoreIoError(
                    f"the server {self._connection.server} failed: {others[0]['errmsg']}"
                ) from error
            return len(documents) - len(failed)

    def get_many(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Return the record of each key; see `Store.get_many`."""
        records = self._call(
            lambda: {one["_id"]: one["r"] for one in self._collection.find(self._in(keys))}
        )
        return [records.get(self._id(key)) for key in keys]

    def put_many(self, keys: Sequence[bytes], records: Sequence[bytes]) -> None:
        """Add or replace records; see `Store.put_many`."""
        self._count = None
        writes = [
            self._pymongo.ReplaceOne({"_id": self._id(key)}, {"r": record}, upsert=True)
            for key, record in zip(keys, records, strict=True)
        ]
        self._call(lambda: self._collection.bulk_write(writes, ordered=False))

    def remove_many(self, keys: Sequence[bytes]) -> None:
        """Remove records; see `Store.remove_many`."""
        self._count = None
        self._call(lambda: self._collection.delete_many(self._in(keys)))

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield every record once; see `Store.scan`."""
        last, cursor = self._prefix[:-1], None

        def read() -> list[Any]:
            nonlocal cursor
            # A cursor does not survive an error; the next one begins after the last page.
            reading, cursor = cursor, None
            if reading is None:
                after = {"_id": {"$gt": last, "$lt": self._prefix[:-1] + "."}}
                reading = self._collection.find(after, batch_size=_PAGE).sort("_id", 1)
            page = list(islice(reading, _PAGE))
            cursor = reading
            return page

        while page := self._call(read):
            for one in page:
                yield bytes.fromhex(one["_id"][len(self._prefix) :]), one["r"]
            last = page[-1]["_id"]

    def count(self) -> int:
        """Return the number of records."""
        return int(self._call(lambda: self._collection.count_documents(self._all)))

    def clear(self) -> None:
        """Remove all records of the partition."""
        self._count = None
        self._call(lambda: self._collection.delete_many(self._all))

    def close(self) -> None:
        """Close the client."""
        self._connection.client.close()


#: Documents that a scan reads at once.
_PAGE = 512
#: The code of an error: there is a document of that id.
_EXISTS = 11000


def _check_known(option: str) -> None:
    """Refuse an option that the driver does not know; its own warning does not name the option.

    Raises:
        UsageError: There is no such option.
    """
    from pymongo import uri_parser

    name = option.partition("=")[0]
    with warnings.catch_warnings(record=True) as warned, contextlib.suppress(Exception):
        warnings.simplefilter("always")
        uri_parser.parse_uri(f"mongodb://host/?{option}", warn=True)
    if any("Unknown option" in str(one.message) for one in warned):
        raise UsageError(
            f'the mongodb URL is not valid: MongoDB has no option "{shortened(name)}"; correct '
            "its name, or leave it out"
        )


def _server_message(error: Any) -> str:
    details = error.details or {}
    return str(details.get("errmsg") or error)
