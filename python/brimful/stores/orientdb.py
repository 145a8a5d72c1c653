"""Vertices in OrientDB: `orientdb://USER:PASSWORD@HOST:PORT/DATABASE/CLASS`, through its REST API.

A record is a document of the class: `k` is the partition and the key in hexadecimal digits, with a
unique index, and `r` the record in base 64. An index takes no long keys: `k` has the checksum of
such a key, and `x` the key itself.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from brimful.stores.base import Opening, Store
from brimful.stores.orient import FORM, DuplicateError, Orient

#: Documents that a scan reads at once.
_PAGE = 512
#: Documents that one statement removes, so few that the server answers in time.
_REMOVED_AT_ONCE = 10_000
#: Bytes of the longest key that is indexed itself; longer ones are indexed by checksum.
_LONGEST = 1000


class OrientStore(Store):
    """A partition of vertices in a class of documents."""

    form: ClassVar[str] = FORM
    library_bytes: ClassVar[int] = 4 << 20

    def __init__(self, opening: Opening) -> None:
        """Connect to the server, and create the class and its index."""
        self._server = Orient(opening)
        self._server.check()
        name = self._class = self._server.name
        self._prefix = f"p{opening.partition:04d}-"
        self._end = self._prefix[:-1] + "."
        for statement in (
            f"CREATE CLASS {name} IF NOT EXISTS",
            f"CREATE PROPERTY {name}.k IF NOT EXISTS STRING",
            f"CREATE PROPERTY {name}.x IF NOT EXISTS STRING",
            f"CREATE PROPERTY {name}.r IF NOT EXISTS STRING",
            f"CREATE INDEX {name}.k IF NOT EXISTS UNIQUE",
        ):
            self._server.query(statement)

    def _key(self, key: bytes) -> str:
        digits = key.hex() if len(key) <= _LONGEST else "x" + hashlib.sha256(key).hexdigest()
        return self._prefix + digits

    def load(self, batch: Sequence[tuple[bytes, bytes]]) -> int:
        """Add records whose keys are new; see `Store.load`."""
        first: dict[bytes, bytes] = {}
        for key, record in batch:
            first.setdefault(key, record)
        there = self._record_ids(list(first))
        new = [
            {"type": "c", "record": self._document(key, record)}
            for key, record in first.items()
            if self._key(key) not in there
        ]
        if new:
            # Duplicates are those of an attempt that took effect, but whose answer was lost.
            with contextlib.suppress(DuplicateError):
                self._server.change(new)
        return len(batch) - len(new)

    def _record_ids(self, keys: Sequence[bytes]) -> dict[str, str]:
        """Return the record ids of the documents that exist, by `k`."""
        rows = self._server.query(
            f"SELECT k, @rid AS id FROM {self._class} WHERE k IN :keys",
            keys=[self._key(key) for key in keys],
        )
        return {row["k"]: row["id"] for row in rows}

    def _document(self, key: bytes, record: bytes) -> dict[str, Any]:
        return {
            "@class": self._class,
            "k": self._key(key),
            "x": _long(key),
            "r": base64.b64encode(record).decode(),
        }

    def get_many(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Return the record of each key; see `Store.get_many`."""
        rows = self._server.query(
            f"SELECT k, r FROM {self._class} WHERE k IN :keys",
            keys=[self._key(key) for key in keys],
        )
        records = {row["k"]: base64.b64decode(row["r"]) for row in rows}
        return [records.get(self._key(key)) for key in keys]

    def put_many(self, keys: Sequence[bytes], records: Sequence[bytes]) -> None:
        """Add or replace records; see `Store.put_many`."""
        try:
            self._put(keys, records)
        except DuplicateError:
            # An attempt whose answer was lost has created the documents.
            self._put(keys, records)

    def _put(self, keys: Sequence[bytes], records: Sequence[bytes]) -> None:
        there = self._record_ids(keys)
        operations = []
        for key, record in zip(keys, records, strict=True):
            document = self._document(key, record)
            if id := there.get(document["k"]):
                # The version -1 replaces any version.
                document |= {"@rid": id, "@version": -1}
            operations.append({"type": "u" if id else "c", "record": document})
        if operations:
            self._server.change(operations)

    def remove_many(self, keys: Sequence[bytes]) -> None:
        """Remove records; see `Store.remove_many`."""
        self._server.query(
            f"DELETE FROM {self._class} WHERE k IN :keys", keys=[self._key(key) for key in keys]
        )

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield every record in the order of keys; see `Store.scan`."""
        last, row_count = self._prefix[:-1], _PAGE
        while row_count == _PAGE:
            rows = self._server.query(
                f"SELECT k, x, r FROM {self._class} WHERE k > :last AND k < :end "
                f"ORDER BY k LIMIT {_PAGE}",
                last=last,
                end=self._end,
            )
            for row in rows:
                digits = row.get("x") or row["k"][len(self._prefix) :]
                yield bytes.fromhex(digits), base64.b64decode(row["r"])
            row_count = len(rows)
            last = rows[-1]["k"] if rows else last

    def count(self) -> int:
        """Return the number of records."""
        rows = self._server.query(
            f"SELECT count(*) AS n FROM {self._class} WHERE k >= :first AND k < :end",
            first=self._prefix,
            end=self._end,
        )
        return int(rows[0]["n"])

    def clear(self) -> None:
        """Remove all records of the partition."""
        removed = _REMOVED_AT_ONCE
        while removed == _REMOVED_AT_ONCE:
            rows = self._server.query(
                f"DELETE FROM {self._class} WHERE k >= :first AND k < :end LIMIT {removed}",
                first=self._prefix,
                end=self._end,
            )
            removed = int(rows[0]["count"])

    def close(self) -> None:
        """Close the connection."""
        self._server.close()


def _long(key: bytes) -> str:
    return key.hex() if len(key) > _LONGEST else ""
