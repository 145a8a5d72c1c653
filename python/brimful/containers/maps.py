"""A map from bytes to bytes, larger than memory."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import (
    ItemsView,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    ValuesView,
)
from typing import Any

from brimful import _native
from brimful.containers.collection import CHUNK_BYTES, Collection, folder_of, several
from brimful.errors import NotFoundError, UsageError
from brimful.options.described import COLLECTION, described
from brimful.sizes import Budget, parse_budget
from brimful.streamed import StreamedItems, StreamedValues
from brimful.wording import shortened


def _text_or_bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    raise UsageError(f"keys and values of a map must be bytes or text, not {type(value).__name__}")


class Map(Collection[_native.DiskMap], MutableMapping[bytes, bytes]):
    """A map from bytes (or text, stored as UTF-8) to one or more values of bytes each.

    It is a `MutableMapping` of the first values. Keys, values and items are streamed in batches
    that fit the budget, in insertion order; keys that one `update` or `chain_many` adds are in
    arbitrary order among themselves. As with a `dict`, a key that is added or removed ends an
    iteration with a `RuntimeError`; a changed value may be seen or not.

    >>> import brimful as bf, tempfile
    >>> with bf.Map(tempfile.mkdtemp() + "/x", budget="64M") as words:
    ...     words["one"] = b"1"
    ...     words.chain("one", b"uno")
    ...     words["one"], words.get_all("one"), "two" in words, len(words), dict(words)
    ...     words.path.endswith("/x"), words.closed
    (b'1', [b'1', b'uno'], False, 1, {b'one': b'1'})
    (True, False)
    """

    @described(COLLECTION, "usage", "other", "budget", "corrupt", "io")
    def __init__(self, path: str | os.PathLike[str], *, budget: Budget = None) -> None:
        """Open the map at `path`, or make it."""
        super().__init__(_native.DiskMap.open(folder_of(path), parse_budget(budget)), path)
        #: The keys that `popitem` removes next.
        self._leaving: Iterator[bytes] = iter(())
        #: Number of removals; with the length it shows whether an iteration has changed keys.
        self._removals = 0
        #: Held by `popitem`: one thread at a time runs the iterator.
        self._lock = threading.Lock()

    @described(COLLECTION, "closed", "corrupt", "io")
    def get(self, key: bytes | str, default: Any = None) -> Any:
        """Return the first value of a key, or `default`.

        Returns:
            The value or `default`.

        Raises:
            UsageError: A key or value is neither bytes nor text.

        >>> import brimful as bf, tempfile
        >>> with bf.Map(tempfile.mkdtemp() + "/x") as words:
        ...     words.update({"one": "1", "two": "2"})
        ...     words.get("one"), words.get("ten", "none")
        (b'1', 'none')
        """
        value = self.native.get(_text_or_bytes(key))
        return default if value is None else value

    @described(COLLECTION, "closed", "corrupt", "io")
    def get_all(self, key: bytes | str) -> list[bytes]:
        """Return all values of a key, the oldest first.

        Returns:
            The values; an empty list if there is no such key.

        Raises:
            UsageError: A key or value is neither bytes nor text.

        >>> import brimful as bf, tempfile
        >>> with bf.Map(tempfile.mkdtemp() + "/x") as words:
        ...     words.update({"one": "1", "two": "2"})
        ...     words.get_all("one"), words.get_all("ten")
        ([b'1'], [])
        """
        return self.native.get_all(_text_or_bytes(key))

    @described(COLLECTION, "closed", "corrupt", "io")
    def chain(self, key: bytes | str, value: bytes | str) -> None:
        """Add a value to those of a key.

        Raises:
            UsageError: A key or value is neither bytes nor text.

        >>> import brimful as bf, tempfile
        >>> with bf.Map(tempfile.mkdtemp() + "/x") as words:
        ...     words.update({"one": "1", "two": "2"})
        ...     words.chain("one", "uno")
        ...     words.get_all("one")
        [b'1', b'uno']
        """
        self.native.chain(_text_or_bytes(key), _text_or_bytes(value))

    @described(COLLECTION, "closed", "corrupt", "io")
    def get_many(self, keys: Iterable[bytes | str]) -> list[bytes | None]:
        """Return the first values of many keys.

        Args:
            keys: The keys, bytes or text.

        Returns:
            A value for each of `keys`, None where there is none.

        Raises:
            UsageError: A key or value is neither bytes nor text.

        >>> import brimful as bf, tempfile
        >>> with bf.Map(tempfile.mkdtemp() + "/x") as words:
        ...     words.update({"one": "1", "two": "2"})
        ...     words.get_many(["two", "ten"])
        [b'2', None]
        """
        return self.native.get_many([_text_or_bytes(key) for key in several(keys, "keys")])

    @described(COLLECTION, "closed", "corrupt", "io")
    def update(  # type: ignore[override]
        self,
        pairs: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = (),
        /,
        **more: bytes | str,
    ) -> None:
        """Make each value the only one of its key; if a key occurs twice, the last value wins.

        Args:
            pairs: A mapping, or pairs of keys and values.
            more: Keys and values as keywords.

        Raises:
            UsageError: A key or value is neither bytes nor text.

        >>> import brimful as bf, tempfile
        >>> with bf.Map(tempfile.mkdtemp() + "/x") as words:
        ...     words.update({"one": "1", "two": "2"})
        ...     words.update({"two": "zwei"}, ten="zehn")
        ...     dict(words)
        {b'one': b'1', b'two': b'zwei', b'ten': b'zehn'}
        """
        for batch in _pairs_in_batches(pairs, more):
            self.native.insert_many(batch)

    @described(COLLECTION, "closed", "corrupt", "io")
    def chain_many(self, pairs: Iterable[tuple[bytes | str, bytes | str]]) -> None:
        """Add each value to those of its key.

        Args:
            pairs: Pairs of keys and values.

        Raises:
            UsageError: A key or value is neither bytes nor text.

        >>> import brimful as bf, tempfile
        >>> with bf.Map(tempfile.mkdtemp() + "/x") as words:
        ...     words.update({"one": "1", "two": "2"})
        ...     words.chain_many([("one", "uno"), ("ten", "10")])
        ...     words.get_all("one"), len(words)
        ([b'1', b'uno'], 3)
        """
        for batch in _pairs_in_batches(pairs, {}):
            self.native.chain_many(batch)

    def __getitem__(self, key: bytes | str) -> bytes:
        """Return the first value of a key.

        Raises:
            NotFoundError: There is no such key (also a `KeyError`).
        """
        value = self.native.get(_text_or_bytes(key))
        if value is None:
            raise NotFoundError(f"{self._path} has no key {key!r}")
        return value

    def __setitem__(self, key: bytes | str, value: bytes | str) -> None:
        """Make `value` the only value of `key`."""
        self.native.insert(_text_or_bytes(key), _text_or_bytes(value))

    def __delitem__(self, key: bytes | str) -> None:
        """Remove a key with all its values.

        Raises:
            NotFoundError: There is no such key (also a `KeyError`).
        """
        if not self.native.remove(_text_or_bytes(key)):
            raise NotFoundError(f"{self._path} has no key {key!r}")
        self._removals += 1

    def __contains__(self, key: object) -> bool:
        """Return whether `key` has a value."""
        return self.native.get(_text_or_bytes(key)) is not None

    def __len__(self) -> int:
        """Return the number of keys. Keys with equal hashes count once."""
        return len(self.native)

    def __iter__(self) -> Iterator[bytes]:
        """Yield all keys, reading them in batches."""
        return (key for key, _ in self._stream())

    @described(COLLECTION, "closed", "corrupt", "io")
    def items(self) -> ItemsView[bytes, bytes]:
        """Return a view of the keys with their first values.

        Returns:
            A view that streams the pairs.

        >>> import brimful as bf, tempfile
        >>> with bf.Map(tempfile.mkdtemp() + "/x") as words:
        ...     words.update({"one": "1", "two": "2"})
        ...     list(words.items())
        [(b'one', b'1'), (b'two', b'2')]
        """
        return StreamedItems(self)

    @described(COLLECTION, "closed", "corrupt", "io")
    def values(self) -> ValuesView[bytes]:
        """Return a view of the first values.

        Returns:
            A view that streams the values.

        >>> import brimful as bf, tempfile
        >>> with bf.Map(tempfile.mkdtemp() + "/x") as words:
        ...     words.update({"one": "1", "two": "2"})
        ...     list(words.values())
        [b'1', b'2']
        """
        return StreamedValues(self)

    def _stream(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys with first values.

        Raises:
            RuntimeError: A key was added or removed during the iteration.
        """
        size, removals = len(self), self._removals
        for pair in self._changing():
            yield pair
            if len(self) != size or self._removals != removals:
                raise RuntimeError("keys of the map were added or removed during iteration")

    def _changing(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys with first values, even if keys are removed between two pairs."""
        start: int | None = 0
        while start is not None:
            pairs, start = self.native.items_from(start)
            yield from pairs

    @described(COLLECTION, "closed", "corrupt", "io")
    def popitem(self) -> tuple[bytes, bytes]:
        """Remove a key with all its values.

        Returns:
            The key with its first value.

        Raises:
            NotFoundError: The map is empty (also a `KeyError`).

        >>> import brimful as bf, tempfile
        >>> with bf.Map(tempfile.mkdtemp() + "/x") as words:
        ...     words.update({"one": "1", "two": "2"})
        ...     words.popitem(), len(words)
        ((b'one', b'1'), 1)
        """
        with self._lock:
            while len(self):
                for key in self._leaving:
                    value = self.native.get(key)
                    # Another thread may have removed it meanwhile.
                    if value is not None and self.native.remove(key):
                        self._removals += 1
                        return key, value
                self._leaving = (key for key, _ in self._changing())
        raise NotFoundError(f"{self._path} is empty")

    @described(COLLECTION, "closed", "corrupt", "io")
    def clear(self) -> None:
        """Remove all keys.

        >>> import brimful as bf, tempfile
        >>> with bf.Map(tempfile.mkdtemp() + "/x") as words:
        ...     words.update({"one": "1", "two": "2"})
        ...     words.clear()
        ...     len(words)
        0
        """
        for key, _ in self._changing():
            self._removals += self.native.remove(key)

    def __eq__(self, other: object) -> bool:
        """Return whether `other` is a mapping of the same keys to the same first values."""
        if not isinstance(other, Mapping):
            return NotImplemented
        if self is other:
            return True
        if len(self) > len(other):
            return False
        count = 0
        try:
            for key, value in other.items():
                if self.get(key) != _text_or_bytes(value):
                    return False
                count += 1
        except UsageError:
            return False
        # The length leaves out keys with the hash of another one.
        return count == sum(1 for _ in self)

    __hash__ = None  # type: ignore[assignment]


def _pairs_in_batches(
    pairs: Mapping[Any, Any] | Iterable[tuple[Any, Any]], more: Mapping[str, Any]
) -> Iterator[list[tuple[bytes, bytes]]]:
    """Yield keys and values as bytes, in lists of some MiB."""
    listed = pairs.items() if isinstance(pairs, Mapping) else several(pairs, "pairs")
    batch: list[tuple[bytes, bytes]] = []
    size = 0
    for pair in itertools.chain(listed, more.items()):
        try:
            key, value = pair
        except (TypeError, ValueError):
            raise UsageError(f"expected a pair of key and value, found {shortened(pair)}") from None
        batch.append((_text_or_bytes(key), _text_or_bytes(value)))
        # The Python objects of a pair take about 128 bytes besides its content.
        size += len(batch[-1][0]) + len(batch[-1][1]) + 128
        if size >= 2 * CHUNK_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
