"""Ready-made collections larger than memory: counter, set, Bloom filter, map, lists.

Batches are NumPy arrays; keys are partitioned before they touch the disk, so that random input is
not random I/O. Keys are integers from 0 to 2**64 - 1. A counter, set or filter refuses text, as a
hash of 64 bits would sometimes take two texts for one: `Map` takes text and compares it in full.

A question (`contains_many`, `count_many`) reads each page of a structure about once for as many
keys as an eighth of the budget holds with their answers, 8 million in 1 GiB: where the structure is
larger than memory, ask for as many at a time.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import (
    Callable,
    ItemsView,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    ValuesView,
)
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from brimful import _native
from brimful.collection import CHUNK, CHUNK_BYTES, Collection, chunks, ids, one_id, unsigned, whole
from brimful.described import COLLECTION, described
from brimful.errors import NotFoundError, UsageError
from brimful.sizes import Budget, parse_budget

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


Answer = TypeVar("Answer", np.uint64, np.bool_)


class _Taking(Protocol):
    @property
    def taken(self) -> int: ...


class _Asked(Protocol):
    @property
    def question_len(self) -> int: ...


@contextmanager
def _whole_chunks(native: _Taking, count: int, what: str = "keys") -> Iterator[None]:
    """Let an error within say how many of `count` things were taken."""
    before = native.taken
    try:
        yield
    except BaseException as error:
        error.add_note(f"{native.taken - before} of {count} {what} were added, the others were not")
        raise


def _answers(
    native: _Asked, ask: Callable[[object], bytearray], keys: ArrayLike, dtype: type[Answer]
) -> NDArray[Answer]:
    """Return what `ask` says of each of `keys`, asked for as many at once as the budget allows."""
    array = unsigned(keys, "keys")
    answers = np.empty(len(array), dtype)
    done = 0
    for question in chunks(array, native.question_len):
        answers[done : done + len(question)] = np.frombuffer(ask(question), dtype)
        done += len(question)
    return answers


def _key(key: Any) -> int:
    if isinstance(key, (str, bytes)):
        raise UsageError(
            f"a key must be an integer, not {type(key).__name__}; use a Map for text and bytes"
        )
    return whole(key, "a key")


class FrequencyCounter(Collection[_native.FrequencyCounter]):
    """How often each 64-bit key occurred; exact, and larger than memory.

    >>> import brimful as bf, tempfile
    >>> with bf.FrequencyCounter(tempfile.mkdtemp() + "/x", budget="64M") as counter:
    ...     counter.add_many([3, 1, 3])
    ...     counter[3], counter.count_many([1, 2, 3]).tolist(), counter.top(1), len(counter)
    ...     counter.path.endswith("/x"), counter.closed
    (2, [1, 0, 2], [(3, 2)], 2)
    (True, False)
    """

    @described(COLLECTION, "usage", "budget", "corrupt", "io")
    def __init__(self, path: str | os.PathLike[str], *, budget: Budget = None) -> None:
        """Open the counter at `path`, or make it."""
        native = _native.FrequencyCounter.open(os.fspath(path), parse_budget(budget))
        super().__init__(native, path)

    @described(COLLECTION, "closed", "corrupt", "io")
    def add_many(self, keys: ArrayLike) -> None:
        """Count each of `keys` once more.

        262,144 keys at a time are counted all or not at all: an error, or Ctrl-C, comes with a note
        of how many were. After an I/O error the collection refuses use until it is opened again,
        and is then as it was at the last `sync`.

        Raises:
            UsageError: A key is not an integer from 0 to 2**64 - 1.

        >>> import brimful as bf, tempfile
        >>> with bf.FrequencyCounter(tempfile.mkdtemp() + "/x") as counter:
        ...     counter.add_many([3, 1, 3])
        ...     counter[3]
        2
        """
        array = unsigned(keys, "keys")
        with _whole_chunks(self.native, len(array)):
            for chunk in chunks(array):
                self.native.add_many(chunk)

    @described(COLLECTION, "closed", "corrupt", "io")
    def add(self, key: int) -> None:
        """Count a key once more; `add_many` is much faster.

        Raises:
            UsageError: The key is not an integer from 0 to 2**64 - 1.

        >>> import brimful as bf, tempfile
        >>> with bf.FrequencyCounter(tempfile.mkdtemp() + "/x") as counter:
        ...     counter.add_many([3, 1, 3])
        ...     counter.add(1)
        ...     counter[1]
        2
        """
        self.native.add_many(np.array([_key(key)], np.uint64))

    def __getitem__(self, key: int) -> int:
        """Return how often a key occurred."""
        return self.native.count(_key(key))

    @described(COLLECTION, "closed", "corrupt", "io")
    def count_many(self, keys: ArrayLike) -> NDArray[np.uint64]:
        """Return how often each of `keys` occurred.

        Returns:
            uint64[len(keys)].

        Raises:
            UsageError: A key is not an integer from 0 to 2**64 - 1.

        >>> import brimful as bf, tempfile
        >>> with bf.FrequencyCounter(tempfile.mkdtemp() + "/x") as counter:
        ...     counter.add_many([3, 1, 3])
        ...     counter.count_many([1, 2, 3]).tolist()
        [1, 0, 2]
        """
        return _answers(self.native, self.native.count_many, keys, np.uint64)

    @described(COLLECTION, "closed", "corrupt", "io")
    def top(self, count: int) -> list[tuple[int, int]]:
        """Return the most frequent keys with their counts; one sequential pass.

        Args:
            count: Number of keys.

        Returns:
            Pairs `(key, count)`, most frequent first.

        Raises:
            UsageError: `count` is negative.

        >>> import brimful as bf, tempfile
        >>> with bf.FrequencyCounter(tempfile.mkdtemp() + "/x") as counter:
        ...     counter.add_many([3, 1, 3])
        ...     counter.top(1)
        [(3, 2)]
        """
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
    ...     members.path.endswith("/x"), members.closed
    (True, [True, False], 2)
    (True, False)
    """

    @described(COLLECTION, "usage", "budget", "corrupt", "io")
    def __init__(self, path: str | os.PathLike[str], *, budget: Budget = None) -> None:
        """Open the set at `path`, or make it."""
        super().__init__(_native.MembershipSet.open(os.fspath(path), parse_budget(budget)), path)

    @described(COLLECTION, "closed", "corrupt", "io")
    def add_many(self, keys: ArrayLike) -> None:
        """Add keys.

        262,144 keys at a time are added all or not at all: an error, or Ctrl-C, comes with a note
        of how many were. After an I/O error the collection refuses use until it is opened again,
        and is then as it was at the last `sync`.

        Raises:
            UsageError: A key is not an integer from 0 to 2**64 - 1.

        >>> import brimful as bf, tempfile
        >>> with bf.MembershipSet(tempfile.mkdtemp() + "/x") as members:
        ...     members.add_many([3, 1, 3])
        ...     len(members)
        2
        """
        array = unsigned(keys, "keys")
        with _whole_chunks(self.native, len(array)):
            for chunk in chunks(array):
                self.native.add_many(chunk)

    @described(COLLECTION, "closed", "corrupt", "io")
    def add(self, key: int) -> None:
        """Add a key; `add_many` is much faster.

        Raises:
            UsageError: The key is not an integer from 0 to 2**64 - 1.

        >>> import brimful as bf, tempfile
        >>> with bf.MembershipSet(tempfile.mkdtemp() + "/x") as members:
        ...     members.add_many([3, 1, 3])
        ...     members.add(7)
        ...     7 in members
        True
        """
        self.native.add_many(np.array([_key(key)], np.uint64))

    @described(COLLECTION, "closed", "corrupt", "io")
    def contains_many(self, keys: ArrayLike) -> NDArray[np.bool_]:
        """Return which of `keys` are in the set.

        Returns:
            bool[len(keys)].

        Raises:
            UsageError: A key is not an integer from 0 to 2**64 - 1.

        >>> import brimful as bf, tempfile
        >>> with bf.MembershipSet(tempfile.mkdtemp() + "/x") as members:
        ...     members.add_many([3, 1, 3])
        ...     members.contains_many([1, 2]).tolist()
        [True, False]
        """
        return _answers(self.native, self.native.contains_many, keys, np.bool_)

    @described(COLLECTION, "closed", "corrupt", "io")
    def discard(self, key: int) -> bool:
        """Remove a key.

        Returns:
            Whether the key was in the set.

        Raises:
            UsageError: The key is not an integer from 0 to 2**64 - 1.

        >>> import brimful as bf, tempfile
        >>> with bf.MembershipSet(tempfile.mkdtemp() + "/x") as members:
        ...     members.add_many([3, 1, 3])
        ...     members.discard(1), members.discard(1)
        (True, False)
        """
        return self.native.remove(_key(key))

    def __contains__(self, key: object) -> bool:
        """Return whether `key` is in the set."""
        return self.native.contains(_key(key))

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self.native)


class BloomFilter(Collection[_native.BloomFilter]):
    """A set of 64-bit keys in a few bits each, which may say yes to a key that was never added.

    >>> import brimful as bf, tempfile
    >>> folder = tempfile.mkdtemp() + "/x"
    >>> with bf.BloomFilter(folder, 10_000, 0.01, budget="64M") as maybe:
    ...     maybe.add_many(range(10_000))
    ...     bool(maybe.contains_many(range(10_000)).all()), 5 in maybe
    ...     maybe.bytes, maybe.path == folder, maybe.closed
    (True, True)
    (16384, True, False)
    """

    @described(COLLECTION, "usage", "budget", "corrupt", "io")
    def __init__(
        self,
        path: str | os.PathLike[str],
        keys: int,
        false_positives: float = 0.01,
        *,
        budget: Budget = None,
    ) -> None:
        """Open the filter at `path`, or make it.

        Args:
            keys: Number of keys that will be added.
            false_positives: Share of other keys that are found then.
        """
        keys = whole(keys, "the number of keys of a Bloom filter", least=1)
        native = _native.BloomFilter.open(
            os.fspath(path), keys, false_positives, parse_budget(budget)
        )
        super().__init__(native, path)

    @property
    def bytes(self) -> int:
        """Size of the bits."""
        return self.native.bytes

    @described(COLLECTION, "closed", "corrupt", "io")
    def add_many(self, keys: ArrayLike) -> None:
        """Add keys.

        262,144 keys at a time are added all or not at all: an error, or Ctrl-C, comes with a note
        of how many were. After an I/O error the collection refuses use until it is opened again,
        and is then as it was at the last `sync`.

        Raises:
            UsageError: A key is not an integer from 0 to 2**64 - 1.

        >>> import brimful as bf, tempfile
        >>> with bf.BloomFilter(tempfile.mkdtemp() + "/x", 100) as maybe:
        ...     maybe.add_many([3, 1, 3])
        ...     3 in maybe
        True
        """
        array = unsigned(keys, "keys")
        with _whole_chunks(self.native, len(array)):
            for chunk in chunks(array):
                self.native.add_many(chunk)

    @described(COLLECTION, "closed", "corrupt", "io")
    def add(self, key: int) -> None:
        """Add a key; `add_many` is much faster.

        Raises:
            UsageError: The key is not an integer from 0 to 2**64 - 1.

        >>> import brimful as bf, tempfile
        >>> with bf.BloomFilter(tempfile.mkdtemp() + "/x", 100) as maybe:
        ...     maybe.add_many([3, 1, 3])
        ...     maybe.add(7)
        ...     7 in maybe
        True
        """
        self.native.add_many(np.array([_key(key)], np.uint64))

    @described(COLLECTION, "closed", "corrupt", "io")
    def contains_many(self, keys: ArrayLike) -> NDArray[np.bool_]:
        """Return for each of `keys` whether it may have been added.

        Returns:
            bool[len(keys)]; True for every key that was added.

        Raises:
            UsageError: A key is not an integer from 0 to 2**64 - 1.

        >>> import brimful as bf, tempfile
        >>> with bf.BloomFilter(tempfile.mkdtemp() + "/x", 100) as maybe:
        ...     maybe.add_many([3, 1, 3])
        ...     maybe.contains_many([1, 3]).tolist()
        [True, True]
        """
        return _answers(self.native, self.native.contains_many, keys, np.bool_)

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
    raise UsageError(f"keys and values of a map must be bytes or text, not {type(value).__name__}")


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
    the budget, in the order in which keys were added; a change of the map during iteration may be
    seen or not.

    >>> import brimful as bf, tempfile
    >>> with bf.Map(tempfile.mkdtemp() + "/x", budget="64M") as words:
    ...     words["one"] = b"1"
    ...     words.chain("one", b"uno")
    ...     words["one"], words.get_all("one"), "two" in words, len(words), dict(words)
    ...     words.path.endswith("/x"), words.closed
    (b'1', [b'1', b'uno'], False, 1, {b'one': b'1'})
    (True, False)
    """

    @described(COLLECTION, "usage", "budget", "corrupt", "io")
    def __init__(self, path: str | os.PathLike[str], *, budget: Budget = None) -> None:
        """Open the map at `path`, or make it."""
        super().__init__(_native.DiskMap.open(os.fspath(path), parse_budget(budget)), path)
        #: The keys that `popitem` removes next.
        self._leaving: Iterator[bytes] = iter(())

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
        return self.native.get_many([_text_or_bytes(key) for key in keys])

    @described(COLLECTION, "closed", "corrupt", "io")
    def update(  # type: ignore[override]
        self,
        pairs: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = (),
        /,
        **more: bytes | str,
    ) -> None:
        """Make each value the only one of its key; of a key that occurs twice the last value stays.

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

    def __contains__(self, key: object) -> bool:
        """Return whether `key` has a value."""
        return self.native.get(_text_or_bytes(key)) is not None

    def __len__(self) -> int:
        """Return the number of keys."""
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
        return _Items(self)

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
        return _Values(self)

    def _stream(self) -> Iterator[tuple[bytes, bytes]]:
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
        while len(self):
            for key in self._leaving:
                if (value := self.native.get(key)) is not None:
                    del self[key]
                    return key, value
            self._leaving = iter(self)
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
    ...     neighbours.path.endswith("/x"), neighbours.closed
    ([1, 2], [])
    (True, False)
    """

    @described(COLLECTION, "usage", "budget", "corrupt", "io")
    def __init__(self, path: str | os.PathLike[str], count: int, *, budget: Budget = None) -> None:
        """Open the lists at `path`, or make them.

        Args:
            count: Number of lists, empty at first.
        """
        count = whole(count, "the number of lists", least=1, most=2**32)
        native = _native.DiskLists.open(os.fspath(path), count, parse_budget(budget))
        super().__init__(native, path)

    @described(COLLECTION, "closed", "corrupt", "io")
    def append_many(self, lists: ArrayLike, items: ArrayLike) -> None:
        """Append `items[i]` to list `lists[i]`.

        The items of a list come in ascending runs: those that memory held together are one run.
        262,144 items at a time are appended all or not at all: an error, or Ctrl-C, comes with a
        note of how many were.

        Args:
            lists: Numbers of lists.
            items: Items, as many as `lists`.

        Raises:
            UsageError: A number is not an integer from 0 to 2**32 - 1, or the lengths differ.

        >>> import brimful as bf, tempfile
        >>> with bf.Lists(tempfile.mkdtemp() + "/x", 3) as lists:
        ...     lists.append_many([0, 2, 0], [2, 0, 1])
        ...     lists.append_many([1], [7])
        ...     lists[1].tolist()
        [7]
        """
        targets, values = (self._of_32_bits(numbers) for numbers in (lists, items))
        if len(targets) != len(values):
            raise UsageError(
                f"lists and items must have one length, not {len(targets)} and {len(values)}"
            )
        with _whole_chunks(self.native, len(targets), "items"):
            for start in range(0, len(targets), CHUNK):
                both = (array[start : start + CHUNK] for array in (targets, values))
                self.native.append_many(*(np.ascontiguousarray(a, np.uint32) for a in both))

    @staticmethod
    def _of_32_bits(numbers: ArrayLike) -> NDArray[Any]:
        array = unsigned(numbers, "lists and items")
        if len(array) and int(array.max()) >= 2**32:
            raise UsageError(
                f"lists and items must be integers from 0 to 2**32 - 1, not {int(array.max())}"
            )
        return array

    def __getitem__(self, index: int) -> NDArray[np.uint32]:
        """Return the items of a list: uint32[n].

        A list may be longer than the budget: its items go into the result at once.

        Raises:
            RecordIdError: There is no such list.
        """
        return np.frombuffer(self.native.get(one_id(index, len(self))), "<u4")

    def __iter__(self) -> Iterator[NDArray[np.uint32]]:
        """Yield the items of every list."""
        return (self[index] for index in range(len(self)))

    @described(COLLECTION, "closed", "corrupt", "io")
    def get_many(self, lists: ArrayLike) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """Return the items of many lists.

        Args:
            lists: Numbers of lists.

        Returns:
            `(counts, items)`: uint64[len(lists)], and all items, list after list, as
            uint32[sum(counts)].

        Raises:
            RecordIdError: There is no such list.

        >>> import brimful as bf, tempfile
        >>> with bf.Lists(tempfile.mkdtemp() + "/x", 3) as lists:
        ...     lists.append_many([0, 2, 0], [2, 0, 1])
        ...     counts, items = lists.get_many([2, 0])
        ...     counts.tolist(), items.tolist()
        ([1, 2], [0, 1, 2])
        """
        counts, items = self.native.get_many(ids(lists, len(self)))
        return np.frombuffer(counts, np.uint64), np.frombuffer(items, np.uint32)

    def __len__(self) -> int:
        """Return the number of lists."""
        return len(self.native)
