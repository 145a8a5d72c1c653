"""Vertices in Berkeley DB: `berkeleydb:PATH?deferred=1&cache=64M`, a B-tree for each partition.

With `deferred=1` (default) pages are written when the cache is full and at the end; with
`deferred=0` after every batch. `cache` is the size of the cache of pages of a partition, 0 for the
smallest one; default is the share of the budget. (*Making Signal/Collect Scale*, section 3.3.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from brimful.errors import BudgetError, MissingPackageError, UsageError
from brimful.sizes import parse_budget
from brimful.stores.base import Opening, Store, folder_error

#: The smallest cache that the library takes.
_LEAST_CACHE = 64 << 10
#: Pairs that a scan reads at once.
_PAGE = 256


class BerkeleyStore(Store):
    """A partition of vertices in a B-tree of its own."""

    form: ClassVar[str] = "berkeleydb:PATH"
    in_folder: ClassVar[bool] = True
    library_bytes: ClassVar[int] = 4 << 20

    def __init__(self, opening: Opening) -> None:
        """Open the B-tree."""
        try:
            from berkeleydb import db
        except ImportError as error:
            raise MissingPackageError(
                "the store berkeleydb needs the package berkeleydb, which is built with the "
                "headers of Berkeley DB; install them with: apt install libdb-dev, then "
                'pip install "brimful[berkeleydb]"'
            ) from error
        if opening.folder is None:
            raise TypeError("berkeleydb is a store in a folder")
        options = opening.known_options("deferred", "cache")
        deferred = options.get("deferred", "1")
        if deferred not in ("0", "1"):
            raise UsageError(f'deferred must be 0 or 1, not "{deferred}"')
        # The library adds a quarter to a cache below 500 MB.
        cache = opening.memory_bytes // 5 * 4
        if "cache" in options:
            size = options["cache"]
            cache = 0 if size == "0" else parse_budget(size) or cache
            if cache > opening.memory_bytes:
                raise BudgetError(
                    f"a cache of {cache:,} bytes exceeds the {opening.memory_bytes:,} bytes that "
                    "the budget leaves to a partition of the store; raise the budget, or make the "
                    "cache smaller",
                    cache,
                )
        self._errors, self._is_deferred = db.DBError, deferred == "1"
        self._no_sync, self._has_changed = db.DB_NOSYNC, False
        self._only_new, self._key_exists = db.DB_NOOVERWRITE, db.DBKeyExistError
        self._path = opening.folder / f"{opening.partition:04d}.bdb"
        opening.folder.mkdir(parents=True, exist_ok=True)
        # The cache: only an environment can remove changed pages from it.
        self._environment: Any = db.DBEnv()
        self._environment.set_cachesize(*divmod(max(cache, _LEAST_CACHE), 1 << 30))
        # One thread at a time calls a store: DB_THREAD would add a lock and a copy to each call.
        flags = db.DB_CREATE | db.DB_PRIVATE | db.DB_INIT_MPOOL
        self._guard(lambda: self._environment.open(str(opening.folder), flags))
        self._tree: Any = db.DB(self._environment)
        self._guard(
            lambda: self._tree.open(self._path.name, dbtype=db.DB_BTREE, flags=db.DB_CREATE)
        )

    def _guard(self, work: Any) -> Any:
        try:
            return work()
        except self._errors as error:
            raise folder_error(self._path, error) from error

    def load(self, batch: Sequence[tuple[bytes, bytes]]) -> int:
        """Add records whose keys are new; see `Store.load`."""
        self._has_changed = True
        skipped = int(self._guard(lambda: self._add(batch)))
        self._written()
        return skipped

    def _add(self, batch: Sequence[tuple[bytes, bytes]]) -> int:
        """Add records; return the number of keys that existed."""
        put, only_new, skipped = self._tree.put, self._only_new, 0
        for key, record in batch:
            try:
                put(key, record, None, only_new)
            except self._key_exists:
                skipped += 1
        return skipped

    def get_many(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Return the record of each key; see `Store.get_many`."""
        get = self._tree.get
        return self._guard(lambda: [get(key) for key in keys])  # type: ignore[no-any-return]

    def put_many(self, keys: Sequence[bytes], records: Sequence[bytes]) -> None:
        """Add or replace records; see `Store.put_many`."""
        put = self._tree.put

        def write() -> None:
            for key, record in zip(keys, records, strict=True):
                put(key, record)

        self._has_changed = True
        self._guard(write)
        self._written()

    def remove_many(self, keys: Sequence[bytes]) -> None:
        """Remove records; see `Store.remove_many`."""
        self._has_changed = True
        for key in keys:
            if self._guard(lambda key=key: self._tree.exists(key)):
                self._guard(lambda key=key: self._tree.delete(key))
        self._written()

    def _written(self) -> None:
        if not self._is_deferred:
            self.sync()

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield every record in the order of keys; see `Store.scan`."""
        page = self._guard(lambda: self._page(None))
        while page:
            yield from page
            page = self._guard(lambda last=page[-1][0]: self._page(last))

    def _page(self, last: bytes | None) -> list[tuple[bytes, bytes]]:
        """Return the next pairs after a key. No cursor stays open while records are written."""
        cursor = self._tree.cursor()
        try:
            pair = cursor.first() if last is None else cursor.set_range(last)
            if pair is not None and pair[0] == last:
                pair = cursor.next()
            page: list[tuple[bytes, bytes]] = []
            while pair is not None and len(page) < _PAGE:
                page.append(pair)
                pair = cursor.next()
            return page
        finally:
            cursor.close()

    def count(self) -> int:
        """Return the number of records."""
        return int(self._guard(lambda: self._tree.stat()["ndata"]))

    def clear(self) -> None:
        """Remove all records."""
        self._has_changed = True
        self._guard(self._tree.truncate)

    def sync(self) -> None:
        """Write the cache to disk."""
        self._guard(self._tree.sync)
        self._has_changed = False

    def disk_bytes(self) -> int:
        """Return the bytes of its file."""
        return self._path.stat().st_size if self._path.exists() else 0

    def close(self) -> None:
        """Close the B-tree, and remove one that changed since the last `sync`.

        Vertices that stay are synced before. Pages of others need no place on a disk that may be
        full, and are dropped with their file.
        """
        self._guard(lambda: self._tree.close(self._no_sync))
        if self._has_changed:
            self._guard(lambda: self._environment.dbremove(self._path.name))
        self._guard(self._environment.close)
