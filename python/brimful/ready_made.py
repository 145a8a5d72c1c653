"""Ready-made collections larger than memory: counter, set, Bloom filter, map, lists.

Batches are NumPy arrays; keys are partitioned before they touch the disk, so that random input is
not random I/O. Keys are integers from 0 to 2**64 - 1. Text is no key of a counter, set or filter,
as a hash of 64 bits would sometimes take two texts for one: `Map` takes text and compares it in
full.

A question (`contains_many`, `count_many`) reads each page of a structure about once, however many
keys it has: where the structure is larger than memory, ask for 8 million keys or more at a time.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import ItemsView, Iterable, Iterator, Mapping, MutableMapping, ValuesView
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from brimful import _native
from brimful.collection import CHUNK, CHUNK_BYTES, Collection, chunks, ids, one_id, unsigned, whole
from brimful.errors import NotFoundError, UsageError
from brimful.sizes import Budget, parse_budget

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


#: Keys asked for at once: a question reads a structure once, however many keys it has.
_QUESTION = 1 << 24


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
    if isinstance(key, (str, bytes)):
        raise UsageError(
            f"a key is an integer, not {type(key).__name__}; a Map takes text and bytes"
        )
    return whole(key, "a key")


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

        262,144 keys at a time are counted all or not at all: an error, or Ctrl-C, comes with a
        note of how many were. After an I/O error the counter is refused until it is opened again,
        and is then what it was at the last `sync`.
        """
        array = unsigned(keys, "keys")
        with _whole_chunks(self.native, len(array)):
            for chunk in chunks(array):
                self.native.add_many(chunk)

    def add(self, key: int) -> None:
        """Count `key` once more; `add_many` is much faster."""
        self.native.add_many(np.array([_key(key)], np.uint64))

    def __getitem__(self, key: int) -> int:
        """Return how often `key` occurred."""
        return self.native.count(_key(key))

    def count_many(self, keys: ArrayLike) -> NDArray[np.uint64]:
        """Return how often each of `keys` occurred: uint64[len(keys)]."""
        questions = chunks(unsigned(keys, "keys"), _QUESTION)
        found = [self.native.count_many(question) for question in questions]
        return np.frombuffer(b"".join(found), np.uint64)

    def top(self, count: int) -> list[tuple[int, int]]:
        """Return the `count` most frequent keys with their counts; one sequential pass."""
        return self.native.top(whole(count, "a number of keys", most=sys.maxsize))

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

        262,144 keys at a time are added all or not at all: an error, or Ctrl-C, comes with a
        note of how many were. After an I/O error everything is refused until it is opened again,
        and is then what it was at the last `sync`.
        """
        array = unsigned(keys, "keys")
        with _whole_chunks(self.native, len(array)):
            for chunk in chunks(array):
                self.native.add_many(chunk)

    def add(self, key: int) -> None:
        """Add one key; `add_many` is much faster."""
        self.native.add_many(np.array([_key(key)], np.uint64))

    def contains_many(self, keys: ArrayLike) -> NDArray[np.bool_]:
        """Return which of `keys` are in the set: bool[len(keys)]."""
        questions = chunks(unsigned(keys, "keys"), _QUESTION)
        found = [self.native.contains_many(question) for question in questions]
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
        keys = whole(keys, "the number of keys of a Bloom filter", least=1)
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

        262,144 keys at a time are added all or not at all: an error, or Ctrl-C, comes with a
        note of how many were. After an I/O error everything is refused until it is opened again,
        and is then what it was at the last `sync`.
        """
        array = unsigned(keys, "keys")
        with _whole_chunks(self.native, len(array)):
            for chunk in chunks(array):
                self.native.add_many(chunk)

    def add(self, key: int) -> None:
        """Add one key; `add_many` is much faster."""
        self.native.add_many(np.array([_key(key)], np.uint64))

    def contains_many(self, keys: ArrayLike) -> NDArray[np.bool_]:
        """Return for each of `keys` whether it may have been added: bool[len(keys)]."""
        questions = chunks(unsigned(keys, "keys"), _QUESTION)
        found = [self.native.contains_many(question) for question in questions]
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


class _Items(ItemsView[bytes, bytes]):
    """The keys of a map with their first values, streamed."""

    _mapping: Map

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return self._mapping._stream()


class _Values(ValuesView[bytes]):
    """The first values of a map, streamed."""

    _mapping: Map

    def __iter__(self) -> Iterator[bytes]:
        return (value for _, value in self._mapping._stream())


class Map(Collection[_native.DiskMap], MutableMapping[bytes, bytes]):
    """A map from bytes (or text, stored as UTF-8) to one or more values of bytes each.

    It is a `MutableMapping` of the first values. Keys, values and items are streamed in batches of
    the budget, in the order in which keys came; a change of the map while it is iterated over may
    be seen or not.

    >>> import brimful as bf, tempfile
    >>> with bf.Map(tempfile.mkdtemp() + "/x", budget="64M") as words:
    ...     words["one"] = b"1"
    ...     words.chain("one", b"uno")
    ...     words["one"], words.get_all("one"), "two" in words, len(words), dict(words)
    (b'1', [b'1', b'uno'], False, 1, {b'one': b'1'})
    """

    def __init__(self, path: str | os.PathLike[str], *, budget: Budget = None) -> None:
        """Open the map at `path`, or make it."""
        super().__init__(_native.DiskMap.open(os.fspath(path), parse_budget(budget)), path)
        #: The keys that `popitem` removes next.
        self._leaving: Iterator[bytes] = iter(())

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

    def update(  # type: ignore[override]
        self,
        pairs: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = (),
        /,
        **more: bytes | str,
    ) -> None:
        """Make each value the only one of its key; of a key that comes twice the last one stays."""
        for batch in _pairs_in_batches(pairs, more):
            self.native.insert_many(batch)

    def chain_many(self, pairs: Iterable[tuple[bytes | str, bytes | str]]) -> None:
        """Add each value to those of its key."""
        for batch in _pairs_in_batches(pairs, {}):
            self.native.chain_many(batch)

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

    def __iter__(self) -> Iterator[bytes]:
        """Yield all keys, reading them in batches."""
        return (key for key, _ in self._stream())

    def items(self) -> ItemsView[bytes, bytes]:
        """Return a view of the keys with their first values."""
        return _Items(self)

    def values(self) -> ValuesView[bytes]:
        """Return a view of the first values."""
        return _Values(self)

    def _stream(self) -> Iterator[tuple[bytes, bytes]]:
        start: int | None = 0
        while start is not None:
            pairs, start = self.native.items_from(start)
            yield from pairs

    def popitem(self) -> tuple[bytes, bytes]:
        """Remove a key with all its values; return it with its first value.

        Raises:
            KeyError: the map is empty.
        """
        while len(self):
            for key in self._leaving:
                if (value := self.native.get(key)) is not None:
                    del self[key]
                    return key, value
            self._leaving = iter(self)
        raise NotFoundError(f"{self._path} is empty")

    def clear(self) -> None:
        """Remove all keys."""
        for key in self:
            self.native.remove(key)

    def __eq__(self, other: object) -> bool:
        """Return whether `other` is a mapping of the same keys to the same first values."""
        if not isinstance(other, Mapping):
            return NotImplemented
        if self is other:
            return True
        if len(self) != len(other):
            return False
        try:
            return all(self.get(key) == _text_or_bytes(value) for key, value in other.items())
        except UsageError:
            return False

    __hash__ = None  # type: ignore[assignment]


def _pairs_in_batches(
    pairs: Mapping[Any, Any] | Iterable[tuple[Any, Any]], more: Mapping[str, Any]
) -> Iterator[list[tuple[bytes, bytes]]]:
    """Yield keys and values as bytes, in lists of some MiB."""
    listed = pairs.items() if isinstance(pairs, Mapping) else pairs
    batch: list[tuple[bytes, bytes]] = []
    size = 0
    for key, value in itertools.chain(listed, more.items()):
        batch.append((_text_or_bytes(key), _text_or_bytes(value)))
        # What the objects of a pair take beside their bytes.
        size += len(batch[-1][0]) + len(batch[-1][1]) + 128
        if size >= 2 * CHUNK_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


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
        count = whole(count, "the number of lists", least=1, most=2**32)
        native = _native.DiskLists.open(os.fspath(path), count, parse_budget(budget))
        super().__init__(native, path)

    def append_many(self, lists: ArrayLike, items: ArrayLike) -> None:
        """Append `items[i]` to list `lists[i]`.

        The items of a list come in ascending runs: those that memory held together are one run.

        262,144 items at a time are appended all or not at all: an error, or Ctrl-C, comes with a
        note of how many were.
        """
        targets, values = (self._of_32_bits(numbers) for numbers in (lists, items))
        if len(targets) != len(values):
            raise UsageError(f"{len(targets)} lists and {len(values)} items were given")
        with _whole_chunks(self.native, len(targets), "items"):
            for start in range(0, len(targets), CHUNK):
                both = (array[start : start + CHUNK] for array in (targets, values))
                self.native.append_many(*(np.ascontiguousarray(a, np.uint32) for a in both))

    @staticmethod
    def _of_32_bits(numbers: ArrayLike) -> NDArray[Any]:
        array = unsigned(numbers, "lists and items")
        if len(array) and int(array.max()) >= 2**32:
            raise UsageError(
                f"lists and items are integers from 0 to 2**32 - 1, not {int(array.max())}"
            )
        return array

    def __getitem__(self, index: int) -> NDArray[np.uint32]:
        """Return the items of a list: uint32[n].

        A list may be longer than the budget: its items go into the result at once.
        """
        return np.frombuffer(self.native.get(one_id(index, len(self))), "<u4")

    def __iter__(self) -> Iterator[NDArray[np.uint32]]:
        """Yield the items of every list."""
        return (self[index] for index in range(len(self)))

    def get_many(self, lists: ArrayLike) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """Return how many items each of `lists` has, and all items, list after list."""
        counts, items = self.native.get_many(ids(lists, len(self)))
        return np.frombuffer(counts, np.uint64), np.frombuffer(items, np.uint32)

    def __len__(self) -> int:
        """Return the number of lists."""
        return len(self.native)
