"""Vertices in RocksDB: `rocksdb:PATH`, through rocksdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from brimful.errors import MissingPackageError
from brimful.memory import require_address_space
from brimful.stores.base import Opening, Store, folder_error, load_missing

#: Bytes of address space that the library and its threads take while a database is opened.
_ADDRESS_BYTES = 160 << 20


class RocksStore(Store):
    """A partition of vertices in a database of its own."""

    form: ClassVar[str] = "rocksdb:PATH"
    in_folder: ClassVar[bool] = True
    library_bytes: ClassVar[int] = 24 << 20

    def __init__(self, opening: Opening) -> None:
        """Open the database; half of the memory is for its cache of blocks."""
        require_address_space("rocksdict", _ADDRESS_BYTES)
        try:
            import rocksdict
        except ImportError as error:
            raise MissingPackageError(
                'the store rocksdb needs rocksdict; install it with: pip install "brimful[rocksdb]"'
            ) from error
        if opening.folder is None:
            raise TypeError("rocksdb is a store in a folder")
        opening.known_options()
        memory = max(opening.memory_bytes, 1 << 20)
        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_max_open_files(64)
        options.set_write_buffer_size(memory // 4)
        options.set_max_write_buffer_number(2)
        # The usual 1 MiB for each file being written exceeds small shares.
        options.set_writable_file_max_buffer_size(64 << 10)
        blocks = rocksdict.BlockBasedOptions()
        blocks.set_block_cache(rocksdict.Cache(memory // 2))
        blocks.set_cache_index_and_filter_blocks(True)
        blocks.set_bloom_filter(10, False)
        options.set_block_based_table_factory(blocks)
        self._library, self._path = rocksdict, opening.folder / f"{opening.partition:04d}"
        self._has_failed = False
        opening.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._database = rocksdict.Rdict(str(self._path), options)
        except Exception as error:
            raise folder_error(self._path, error) from error

    def load(self, batch: Sequence[tuple[bytes, bytes]]) -> int:
        """Add records whose keys are new; see `Store.load`."""
        return load_missing(self, batch)

    def get_many(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Return the record of each key; see `Store.get_many`."""
        records: Any = self._database.get(list(keys))
        return list(records)

    def put_many(self, keys: Sequence[bytes], records: Sequence[bytes]) -> None:
        """Add or replace records; see `Store.put_many`."""
        writes = self._library.WriteBatch(raw_mode=True)
        for key, record in zip(keys, records, strict=True):
            writes.put(key, record)
        self._guard(lambda: self._database.write(writes))

    def remove_many(self, keys: Sequence[bytes]) -> None:
        """Remove records; see `Store.remove_many`."""
        writes = self._library.WriteBatch(raw_mode=True)
        for key in keys:
            writes.delete(key)
        self._guard(lambda: self._database.write(writes))

    def _guard(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:
            self._has_failed = True
            raise folder_error(self._path, error) from error

    def scan(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield every record of the moment; see `Store.scan`."""
        yield from self._database.items()

    def count(self) -> int:
        """Return the number of records."""
        return sum(1 for _ in self._database.keys())  # noqa: SIM118 - not a dict

    def clear(self) -> None:
        """Remove all records."""
        for key in list(self._database.keys()):
            self._database.delete(key)

    def sync(self) -> None:
        """Write changes in memory to disk."""
        self._guard(self._database.flush)

    def disk_bytes(self) -> int:
        """Return the bytes of its files."""
        total = 0
        for file in self._path.rglob("*"):
            # RocksDB removes files in the background.
            with suppress(FileNotFoundError):
                total += file.stat().st_size if file.is_file() else 0
        return total

    def close(self) -> None:
        """Close the database."""
        try:
            self._database.close()
        except Exception as error:
            # A database whose write failed, and raised the error, fails again.
            if not self._has_failed:
                raise folder_error(self._path, error) from error
