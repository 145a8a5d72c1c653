"""Ready-made collections larger than memory: counter, set, Bloom filter, map, lists.

Batches are NumPy arrays; keys are partitioned before they touch the disk, so that random input is
not random I/O. Signed keys keep their 64 bits. Text is no key of a counter, set or filter, as a
hash of 64 bits would sometimes take two texts for one: `Map` takes text and compares it in full.

A question (`contains_many`, `count_many`) reads each page of a structure about once, however many
keys it has: where the structure is larger than memory, ask for 8 million keys or more at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from brimful import _native
from brimful.collection import CHUNK, Collection, uint64
from brimful.errors import NotFoundError, UsageError
from brimful.sizes import Budget, parse_budget

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


#: Keys asked for at once: a question reads a structure once, however many keys it has.
_QUESTION = 1 << 24


def _chunks(keys: NDArray[Any], step: int = CHUNK) -> Iterator[NDArray[Any]]:
    return (keys[start : start + step] for start in range(0, len(keys), step))


class _Taking(Protocol):
    @property
    def taken(self) -> int: ...


@contextmanager
def _whole_chunks(native: _Taking, count: int, what: str = "keys") -> Iterator[None]:
    """Let an error within say how many of `count` things were taken."""
    before = native.taken
    try:
        yield
    except BaseException as error:
        error.add_note(f"{native.taken - before} of {count} {what} were added, the others were not")
        raise


def _key(key: Any) -> int:
    try:
        number = int(key.__index__())
    except AttributeError:
        raise UsageError(
            f"a key is a 64-bit integer, not {key!r}; a Map takes text and bytes"
        ) from None
    if not -(2**63) <= number < 2**64:
        raise UsageError(f"a key is a 64-bit integer, {number} is longer")
    return number % 2**64


class FrequencyCounter(Collection[_native.FrequencyCounter]):
    """How often each 64-bit key occurred; exact, and larger than memory.

    >>> import brimful as bf, tempfile
    >>> with bf.FrequencyCounter(tempfile.mkdtemp() + "/x", budget="64M") as counter:
    ...     counter.add_many([3, 1, 3])
    ...     counter[3], counter.count_many([1, 2, 3]).tolist(), counter.top(1), len(counter)
    (2, [1, 0, 2], [(3, 2)], 2)
    """

    def __init__(self, path: str | os.PathLike[str], *, budget: Budget = None) -> None:
        """Open the counter at `path`, or make it."""
        native = _native.FrequencyCounter.open(os.fspath(path), parse_budget(budget))
        super().__init__(native, path)

    def add_many(self, keys: ArrayLike) -> None:
        """Count each of `keys` once more.

        4,194,304 keys at a time are counted all or not at all: an error, or Ctrl-C, comes with a
        note of how many were. After an I/O error the counter is refused until it is opened again,
        and is then what it was at the last `sync`.
        """
        array = uint64(keys, "keys")
        with _whole_chunks(self.native, len(array)):
            for chunk in _chunks(array):
                self.native.add_many(chunk)

    def add(self, key: int) -> None:
        """Count `key` once more; `add_many` is much faster."""
        self.native.add_many(np.array([_key(key)], np.uint64))

    def __getitem__(self, key: int) -> int:
        """Return how often `key` occurred."""
        return self.native.count(_key(key))

    def count_many(self, keys: ArrayLike) -> NDArray[np.uint64]:
        """Return how often each of `keys` occurred: uint64[len(keys)]."""
        chunks = _chunks(uint64(keys, "keys"), _QUESTION)
        found = [self.native.count_many(chunk) for chunk in chunks]
        return np.frombuffer(b"".join(found), np.uint64)

    def top(self, count: int) -> list[tuple[int, int]]:
        """Return the `count` most frequent keys with their counts; one sequential pass."""
        return self.native.top(count)

    def __len__(self) -> int:
        """Return the number of different keys."""
        return len(self.native)


class MembershipSet(Collection[_native.MembershipSet]):
    """An exact set of 64-bit keys, larger than memory.

    >>> import brimful as bf, tempfile
    >>> with bf.MembershipSet(tempfile.mkdtemp() + "/x", budget="64M") as members:
    ...     members.add_many([3, 1, 3])
    ...     3 in members, members.contains_many([1, 2]).tolist(), len(members)
    (True, [True, False], 2)
    """

    def __init__(self, path: str | os.PathLike[str], *, budget: Budget = None) -> None:
        """Open the set at `path`, or make it."""
        super().__init__(_native.MembershipSet.open(os.fspath(path), parse_budget(budget)), path)

    def add_many(self, keys: ArrayLike) -> None:
        """Add keys.

        4,194,304 keys at a time are added all or not at all: an error, or Ctrl-C, comes with a
        note of how many were. After an I/O error everything is refused until it is opened again,
        and is then what it was at the last `sync`.
        """
        array = uint64(keys, "keys")
        with _whole_chunks(self.native, len(array)):
            for chunk in _chunks(array):
                self.native.add_many(chunk)

    def add(self, key: int) -> None:
        """Add one key; `add_many` is much faster."""
        self.native.add_many(np.array([_key(key)], np.uint64))

    def contains_many(self, keys: ArrayLike) -> NDArray[np.bool_]:
        """Return which of `keys` are in the set: bool[len(keys)]."""
        chunks = _chunks(uint64(keys, "keys"), _QUESTION)
        found = [self.native.contains_many(chunk) for chunk in chunks]
        return np.frombuffer(b"".join(found), np.bool_)

    def discard(self, key: int) -> bool:
        """Remove a key; return whether it was there."""
        return self.native.remove(_key(key))

    def __contains__(self, key: object) -> bool:
        """Return whether `key` is in the set."""
        return self.native.contains(_key(key))

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self.native)


class BloomFilter(Collection[_native.BloomFilter]):
    """A set of 64-bit keys in a few bits each, which may say yes to a key that was never added.

    `keys` is how many will be added, `false_positives` how often another key is found then.

    >>> import brimful as bf, tempfile
    >>> folder = tempfile.mkdtemp() + "/x"
    >>> with bf.BloomFilter(folder, 10_000, 0.01, budget="64M") as maybe:
    ...     maybe.add_many(range(10_000))
    ...     bool(maybe.contains_many(range(10_000)).all()), 5 in maybe
    (True, True)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        keys: int,
        false_positives: float = 0.01,
        *,
        budget: Budget = None,
    ) -> None:
        """Open the filter at `path`, or make it."""
        if keys < 1:
            raise UsageError(f"a Bloom filter is for 1 key or more, not {keys}")
        native = _native.BloomFilter.open(
            os.fspath(path), keys, false_positives, parse_budget(budget)
        )
        super().__init__(native, path)

    @property
    def bytes(self) -> int:
        """The size of the bits."""
        return self.native.bytes

    def add_many(self, keys: ArrayLike) -> None:
        """Add keys.

        4,194,304 keys at a time are added all or not at all: an error, or Ctrl-C, comes with a
        note of how many were. After an I/O error everything is refused until it is opened again,
        and is then what it was at the last `sync`.
        """
        array = uint64(keys, "keys")
        with _whole_chunks(self.native, len(array)):
            for chunk in _chunks(array):
                self.native.add_many(chunk)

    def add(self, key: int) -> None:
        """Add one key; `add_many` is much faster."""
        self.native.add_many(np.array([_key(key)], np.uint64))

    def contains_many(self, keys: ArrayLike) -> NDArray[np.bool_]:
        """Return for each of `keys` whether it may have been added: bool[len(keys)]."""
        chunks = _chunks(uint64(keys, "keys"), _QUESTION)
        found = [self.native.contains_many(chunk) for chunk in chunks]
        return np.frombuffer(b"".join(found), np.bool_)

    def __contains__(self, key: object) -> bool:
        """Return whether `key` may have been added."""
        return self.native.contains(_key(key))

    def __len__(self) -> int:
        """Return the number of keys added, repeats included."""
        return self.native.added


def _text_or_bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    raise UsageError(f"keys and values of a map are bytes or text, not {type(value).__name__}")


class Map(Collection[_native.DiskMap]):
    """A map from bytes (or text, stored as UTF-8) to one or more values of bytes each.

    >>> import brimful as bf, tempfile
    >>> with bf.Map(tempfile.mkdtemp() + "/x", budget="64M") as words:
    ...     words["one"] = b"1"
    ...     words.chain("one", b"uno")
    ...     words["one"], words.get_all("one"), "two" in words, len(words)
    (b'1', [b'1', b'uno'], False, 1)
    """

    def __init__(self, path: str | os.PathLike[str], *, budget: Budget = None) -> None:
        """Open the map at `path`, or make it."""
        super().__init__(_native.DiskMap.open(os.fspath(path), parse_budget(budget)), path)

    def get(self, key: bytes | str, default: Any = None) -> Any:
        """Return the first value of `key`, or `default`."""
        value = self.native.get(_text_or_bytes(key))
        return default if value is None else value

    def get_all(self, key: bytes | str) -> list[bytes]:
        """Return all values of `key`, the oldest first."""
        return self.native.get_all(_text_or_bytes(key))

    def chain(self, key: bytes | str, value: bytes | str) -> None:
        """Add a value to those of `key`."""
        self.native.chain(_text_or_bytes(key), _text_or_bytes(value))

    def get_many(self, keys: Iterable[bytes | str]) -> list[bytes | None]:
        """Return the first value of each of `keys`, None where there is none."""
        return self.native.get_many([_text_or_bytes(key) for key in keys])

    def update(self, pairs: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> None:
        """Make each value the only one of its key; of a key that comes twice the last one stays."""
        self.native.insert_many(self._pairs(pairs))

    def chain_many(self, pairs: Iterable[tuple[bytes | str, bytes | str]]) -> None:
        """Add each value to those of its key."""
        self.native.chain_many(self._pairs(pairs))

    @staticmethod
    def _pairs(pairs: Any) -> list[tuple[bytes, bytes]]:
        listed = pairs.items() if isinstance(pairs, Mapping) else pairs
        return [(_text_or_bytes(key), _text_or_bytes(value)) for key, value in listed]

    def __getitem__(self, key: bytes | str) -> bytes:
        """Return the first value of `key`.

        Raises:
            NotFoundError: it has none.
        """
        value = self.native.get(_text_or_bytes(key))
        if value is None:
            raise NotFoundError(f"{self._path} has no key {key!r}")
        return value

    def __setitem__(self, key: bytes | str, value: bytes | str) -> None:
        """Make `value` the only value of `key`."""
        self.native.insert(_text_or_bytes(key), _text_or_bytes(value))

    def __delitem__(self, key: bytes | str) -> None:
        """Remove `key` with all its values."""
        if not self.native.remove(_text_or_bytes(key)):
            raise NotFoundError(f"{self._path} has no key {key!r}")

    def __contains__(self, key: object) -> bool:
        """Return whether `key` has a value."""
        return self.native.get(_text_or_bytes(key)) is not None

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self.native)


class Lists(Collection[_native.DiskLists]):
    """A fixed number of growing lists of 32-bit numbers: the neighbours of each vertex.

    >>> import brimful as bf, tempfile
    >>> with bf.Lists(tempfile.mkdtemp() + "/x", 3, budget="64M") as neighbours:
    ...     neighbours.append_many([0, 2, 0], [2, 0, 1])
    ...     neighbours[0].tolist(), neighbours[1].tolist()
    ([1, 2], [])
    """

    def __init__(self, path: str | os.PathLike[str], count: int, *, budget: Budget = None) -> None:
        """Open the lists at `path`, or make `count` empty ones."""
        if count < 1:
            raise UsageError(f"there is 1 list or more, not {count}")
        native = _native.DiskLists.open(os.fspath(path), count, parse_budget(budget))
        super().__init__(native, path)

    def append_many(self, lists: ArrayLike, items: ArrayLike) -> None:
        """Append `items[i]` to list `lists[i]`; sorted within what one question finds added.

        4,194,304 items at a time are appended all or not at all: an error, or Ctrl-C, comes with a
        note of how many were.
        """
        targets, values = (self._narrow(numbers) for numbers in (lists, items))
        if len(targets) != len(values):
            raise UsageError(f"{len(targets)} lists and {len(values)} items were given")
        with _whole_chunks(self.native, len(targets), "items"):
            for start in range(0, len(targets), CHUNK):
                chunk = slice(start, start + CHUNK)
                self.native.append_many(targets[chunk], values[chunk])

    @staticmethod
    def _narrow(numbers: ArrayLike) -> NDArray[np.uint32]:
        array = np.asarray(numbers)
        if array.dtype == np.uint32:
            return np.ascontiguousarray(array)
        wide = uint64(array, "lists and items")
        if len(wide) and int(wide.max()) >= 2**32:
            raise UsageError("lists and items are numbers of 32 bits, from 0 on")
        return wide.astype(np.uint32)

    def __getitem__(self, index: int) -> NDArray[np.uint32]:
        """Return the items of a list: uint32[n]."""
        return self.get_many([index])[1]

    def get_many(self, lists: ArrayLike) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """Return how many items each of `lists` has, and all items, list after list."""
        counts, items = self.native.get_many(uint64(lists, "lists"))
        return np.frombuffer(counts, np.uint64), np.frombuffer(items, np.uint32)

    def __len__(self) -> int:
        """Return the number of lists."""
        return len(self.native)
