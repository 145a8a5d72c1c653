"""The interface of a store: a class of bulk operations on the records of one partition.

Invariant: one thread at a time calls an object, and no two objects share a partition.
"""

from __future__ import annotations

import abc
import contextlib
import shutil
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar
from urllib.parse import SplitResult, parse_qsl, urlsplit

from brimful.errors import StoreIoError, UsageError
from brimful.wording import did_you_mean, shortened

#: A failure counts as a full disk if less than this is free: databases report it in many ways.
_NO_ROOM_BYTES = 1 << 20


@dataclass(frozen=True)
class Opening:
    """The arguments for opening the store of one partition.

    Attributes:
        url: The URL as the user gave it, with its secrets.
        partition: Number of the partition, from 0 on.
        memory_bytes: Bytes of memory that the store may take for itself, caches included.
        folder: The folder for the files of the partition, if the store is in a folder; it may have
            files of an earlier run that were kept. brimful removes it after a run, unless the
            vertices are kept.
        stopped: Set when the user cancels the run; end all waiting then.

    >>> from brimful.stores import Opening
    >>> Opening("redis://host:6379/0?ttl=60", 2, 1 << 20).options
    {'ttl': '60'}
    """

    url: str
    partition: int
    memory_bytes: int
    folder: Path | None = None
    stopped: threading.Event = field(default_factory=threading.Event)

    @property
    def address(self) -> str:
        """The URL without its scheme and options."""
        return self.url.partition(":")[2].partition("?")[0]

    def known_options(self, *names: str) -> dict[str, str]:
        """Return the options after the question mark.

        Args:
            names: The names of the options that the store has.

        Returns:
            The values by name.

        Raises:
            UsageError: The URL has another option.

        >>> from brimful.stores import Opening
        >>> Opening("redis://host:6379/0?ttl=60", 2, 1 << 20).known_options("ttl", "retries")
        {'ttl': '60'}
        """
        options = self.options
        for name in options:
            if name not in names:
                known = f"known: {', '.join(names)}" if names else "it has none"
                raise UsageError(
                    f'{self.url.partition(":")[0]} has no option "{shortened(name)}"'
                    f"{did_you_mean(name, names)}; {known}"
                )
        return options

    @property
    def options(self) -> dict[str, str]:
        """The options after the question mark.

        Raises:
            UsageError: They are not pairs of the form name=value.
        """
        query = self.url.partition("?")[2]
        try:
            return dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
        except ValueError:
            options = query.split("&")
            number = 1 + next(at for at, option in enumerate(options) if "=" not in option)
            # The option is not shown: it may be a part of a secret.
            raise UsageError(
                "the options of a store URL are pairs name=value, joined by &; option "
                f"{number} of {len(options)} has no ="
            ) from None


class Store(abc.ABC):
    """Records by key in one partition of a store.

    Derive a class, define the methods, and name it in the entry-point group `brimful.stores` of
    your package (or call `register`); the name of the entry point is the scheme of its URLs. The
    constructor gets an `Opening`.

    Keys and records are `bytes` of any content; keys that differ in a byte are different keys. A
    store may keep the objects that it receives. brimful copies the objects that a store returns,
    which must be `bytes`. A batch has at most 1,024 records and, unless one record is larger, 512
    KiB.

    A batch need not be atomic: a method that raises may leave a part of its changes, because the
    run then ends and its vertices are not read again. Raise a class of `brimful.errors` for errors
    that the user can correct; any other exception becomes a `StoreIoError`.

    >>> import brimful as bf, pyarrow as pa
    >>> from brimful.stores import Opening, Store, register
    >>> class DictStore(Store):
    ...     form = "dict:"
    ...     def __init__(self, opening):
    ...         self.records = {}
    ...     def load(self, batch):
    ...         before = len(self.records)
    ...         for key, record in batch:
    ...             self.records.setdefault(key, record)
    ...         return before + len(batch) - len(self.records)
    ...     def get_many(self, keys):
    ...         return [self.records.get(key) for key in keys]
    ...     def put_many(self, keys, records):
    ...         self.records.update(zip(keys, records))
    ...     def remove_many(self, keys):
    ...         for key in keys:
    ...             self.records.pop(key, None)
    ...     def scan(self):
    ...         yield from list(self.records.items())
    ...     def count(self):
    ...         return len(self.records)
    ...     def clear(self):
    ...         self.records.clear()
    >>> store = DictStore(Opening("dict:", 0, 1 << 20))
    >>> store.load([(b"a", b"1"), (b"b", b"2"), (b"a", b"3")])
    1
    >>> store.put_many([b"b", b"c"], [b"20", b""])
    >>> store.remove_many([b"a", b"none"])
    >>> store.get_many([b"c", b"a", b"b"]), store.count(), sorted(store.scan())
    ([b'', None, b'20'], 2, [(b'b', b'20'), (b'c', b'')])
    >>> store.sync()
    >>> store.disk_bytes()
    0
    >>> store.clear()
    >>> store.close()
    >>> register("dict", DictStore)
    >>> with bf.Graph.from_arrow(pa.table({"source": [1, 2], "target": [2, 3]})) as graph:
    ...     bf.bfs(graph, source=1, store="dict:")[3]
    2
    """

    #: The form of its URLs, for messages: "mongodb://HOST/DATABASE/COLLECTION".
    form: ClassVar[str]
    #: True if the store keeps its files in a folder: its URLs are "scheme:PATH", and each partition
    #: of a run gets a folder of its own within PATH.
    in_folder: ClassVar[bool] = False
    #: Bytes of memory that the library of the store takes in a process, besides the `memory_bytes`
    #: of each partition. A budget of the command covers them.
    library_bytes: ClassVar[int] = 0

    @abc.abstractmethod
    def __init__(self, opening: Opening) -> None:
        """Open the partition, and create its missing parts."""

    @abc.abstractmethod
    def load(self, batch: Sequence[tuple[bytes, bytes]]) -> int:
        """Add records whose keys are new, the first of each key.

        Args:
            batch: Pairs of key and record.

        Returns:
            The number of pairs that were skipped because their key existed.
        """

    @abc.abstractmethod
    def get_many(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Read records.

        Args:
            keys: Keys, with or without a record.

        Returns:
            The record of each key, in the order of `keys`; None where there is none.
        """

    @abc.abstractmethod
    def put_many(self, keys: Sequence[bytes], records: Sequence[bytes]) -> None:
        """Add or replace records.

        Args:
            keys: Distinct keys, with or without a record.
            records: The record of each key.
        """

    @abc.abstractmethod
    def remove_many(self, keys: Sequence[bytes]) -> None:
        """Remove records.

        Args:
            keys: Keys; those without a record have no effect.
        """

    @abc.abstractmethod
    def scan(self) -> Iterable[tuple[bytes, bytes]]:
        """Read all records.

        Records that were yielded may be replaced by `put_many` before the scan goes on; they must
        not appear again.

        Returns:
            An iterable of every key with its record once, in any order.
        """

    @abc.abstractmethod
    def count(self) -> int:
        """Count the records.

        Returns:
            The number of records.
        """

    @abc.abstractmethod
    def clear(self) -> None:
        """Remove all records of the partition: the run is over."""

    def sync(self) -> None:
        """Make all changes so far as durable as the store can; by default do nothing."""
        return None

    def disk_bytes(self) -> int:
        """Measure the files of the partition.

        Returns:
            The bytes on disk; 0, the default, if the store does not know.
        """
        return 0

    def close(self) -> None:
        """Close connections and files; no method is called afterwards. By default do nothing."""
        return None


def split_url(url: str) -> SplitResult:
    """Return the parts of the URL of a server.

    Raises:
        UsageError: The URL has no such parts, as when its password has a character like `/`.
    """
    parts: SplitResult | None = None
    # The error of the library is left out: it may quote user and password.
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
    if parts is None or parts.fragment or "@" in parts.path:
        raise UsageError(
            f"the {url.partition(':')[0].lower()} URL cannot be read; write the special "
            "characters of its names and its password as percent-codes, such as / as %2F, @ as "
            "%40, # as %23 and [ as %5B"
        )
    return parts


def load_missing(store: Store, batch: Sequence[tuple[bytes, bytes]]) -> int:
    """Load a batch by `get_many` and `put_many`, for a store that cannot add only new keys."""
    first: dict[bytes, bytes] = {}
    for key, record in batch:
        first.setdefault(key, record)
    keys = list(first)
    new = [key for key, old in zip(keys, store.get_many(keys), strict=True) if old is None]
    store.put_many(new, [first[key] for key in new])
    return len(batch) - len(new)


def folder_error(path: Path, error: Exception) -> StoreIoError:
    """Return the error for a failure of the database at `path`, a file or folder."""
    is_full = shutil.disk_usage(path.parent).free < _NO_ROOM_BYTES
    reason = "the disk is full; free some space and start again" if is_full else error
    return StoreIoError(f"the database {path} failed: {reason}")
