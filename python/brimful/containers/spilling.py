"""A cache larger than memory: a `dict` whose oldest values are on disk."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import ItemsView, Iterable, Iterator, Mapping, MutableMapping, ValuesView
from itertools import islice
from typing import Any, NoReturn, Self, TypeVar

import numpy as np

from brimful import _native
from brimful.containers.bags import Bag, Serializer
from brimful.errors import UsageError
from brimful.options.checks import given_path, whole
from brimful.options.described import COLLECTION, described
from brimful.sizes import Budget
from brimful.streamed import StreamedItems, StreamedValues
from brimful.wording import counted, shortened

K = TypeVar("K")
V = TypeVar("V")


class SpillingDict(dict[K, V]):
    """A `dict` that keeps `limit` values as live objects and the rest in a `Bag`.

    A hit runs no Python code: it costs 8 to 35 ns more than in a plain `dict`, because Python looks
    for `__getitem__` in any subclass. The oldest values are spilled first, regardless of their use;
    a spilled value that is read becomes the youngest. Assign values to change them: a change in
    place may be lost. `len`, `in` and iteration count spilled keys too. All keys stay in memory; an
    iteration lists them first, in 8 bytes each, so that reads during it change nothing. As with a
    `dict`, a key that is added or removed ends it with a `RuntimeError`. It is a cache: it begins
    empty, and its folder is removed with it, or by `close` and at the end of a `with`. `copy` and
    `|` make a cache with a folder of its own; it cannot be pickled or copied deeply. Threads may
    share it as they share a `dict`.

    >>> import brimful as bf
    >>> cache = bf.SpillingDict(limit=2, budget="64M")
    >>> for number in range(5):
    ...     cache[number] = str(number)
    >>> len(cache), cache.live, cache[0], 9 in cache, type(cache.bag).__name__
    (5, 2, '0', False, 'Bag')
    """

    @described(COLLECTION, "budget", "io")
    def __init__(
        self,
        limit: int,
        *,
        serializer: str | Serializer = "pickle",
        folder: str | os.PathLike[str] | None = None,
        budget: Budget = "64M",
    ) -> None:
        """Make an empty cache.

        Args:
            limit: Number of values that stay live.
            serializer: How spilled values become bytes: "pickle", "json", "str", "bytes", or an
                object with `dumps` and `loads`.
            folder: Folder in which the cache makes its own; None: the folder of temporary files.

        Raises:
            UsageError: The limit is below 1, the folder no path, or the serializer unknown.
        """
        super().__init__()
        self._limit = whole(limit, "the limit of a cache", least=1)
        self._made_with = (serializer, folder, budget)
        parent = tempfile.gettempdir() if folder is None else given_path(folder, "folder")
        self._folder = _native.TemporaryFolder(parent, ".brimful-cache-")
        self._bag: Bag | None = Bag(
            os.path.join(self._folder.path, "bag"), serializer=serializer, budget=budget
        )
        self._spilled: dict[K, int] = {}
        #: By key: the record on disk that still equals the live value.
        self._clean: dict[K, int] = {}
        self._unused: list[int] = []
        #: Held while keys move between the parts: threads run during reads and writes of the bag.
        self._lock = threading.RLock()
        #: Number of additions and removals of keys.
        self._changes = 0

    @property
    def bag(self) -> Bag:
        """The bag of the spilled values.

        Raises:
            UsageError: The cache is closed.
        """
        if self._bag is None:
            raise UsageError("the cache is closed; make another one")
        return self._bag

    @property
    def live(self) -> int:
        """Number of live values."""
        return super().__len__()

    def __repr__(self) -> str:
        """Return limit and length."""
        if self._bag is None:
            return f"SpillingDict(limit={self._limit}): closed"
        return (
            f"SpillingDict(limit={self._limit}): {counted(len(self), 'key')}, "
            f"{self.live:,} of them live"
        )

    def __setitem__(self, key: K, value: V) -> None:
        """Store a value."""
        with self._lock:
            bag = self.bag  # Refuses a closed cache.
            record = self._spilled.pop(key, None)
            if record is None:
                record = self._clean.pop(key, None)
            if record is not None:
                self._unused.append(record)
            elif not super().__contains__(key):
                self._changes += 1
            super().__setitem__(key, value)
            if super().__len__() > self._limit:
                self._spill(bag)

    def __missing__(self, key: K) -> V:
        """Fetch a spilled value."""
        with self._lock:
            bag = self.bag
            if super().__contains__(key):  # Another thread fetched it.
                return super().__getitem__(key)
            record = self._spilled.get(key)
            if record is None:
                raise KeyError(key)
            value: V = bag[record]
            store = super().__setitem__
            # Ctrl-C takes effect after a call, so that no key is lost.
            del self._spilled[key]
            self._clean[key] = record
            store(key, value)
            if super().__len__() > self._limit:
                self._spill(bag)
            return value

    def _spill(self, bag: Bag) -> None:
        """Spill the oldest values, some in advance; on failure none are moved.

        Raises:
            UsageError: The serializer cannot write a value.
        """
        excess = super().__len__() - self._limit
        count = min(excess + min(self._limit // 64, 1024), super().__len__() - 1)
        iterator = super().__iter__()
        keys = [next(iterator) for _ in range(count)]
        dirty = [key for key in keys if key not in self._clean]
        kept = max(len(self._unused) - len(dirty), 0)
        records = self._unused[kept:]
        written: K | None = None

        def values() -> Iterator[V]:
            nonlocal written
            for written in dirty:
                yield super(SpillingDict, self).__getitem__(written)

        stream, first = values(), len(bag)
        try:
            bag.store_batch(np.array(records, np.uint64), islice(stream, len(records)))
            bag.extend(stream)
        except BaseException as error:
            # The records that were appended are of no key.
            self._unused += range(first, len(bag))
            if not isinstance(error, UsageError):
                raise
            raise UsageError(
                f"the value of the key {shortened(written)} cannot be spilled: {error}; remove it, "
                "or assign another value"
            ) from error.__cause__
        records += range(first, first + len(dirty) - len(records))
        del self._unused[kept:]
        self._clean.update(zip(dirty, records, strict=True))
        remove = super().__delitem__
        for key in keys:
            record = self._clean.pop(key)
            # Ctrl-C takes effect after a call, so that no key stays in both parts.
            self._spilled[key] = record
            remove(key)

    def __delitem__(self, key: K) -> None:
        """Remove a key."""
        with self._lock:
            records = [place.pop(key) for place in (self._spilled, self._clean) if key in place]
            self._unused += records
            if super().__contains__(key):
                super().__delitem__(key)
            elif not records:
                raise KeyError(key)
            self._changes += 1

    @described(COLLECTION, "closed", "corrupt", "io")
    def get(self, key: K, default: Any = None) -> Any:
        """Return the value of a key, or `default`.

        Returns:
            The value or `default`.

        >>> import brimful as bf
        >>> cache = bf.SpillingDict(limit=2)
        >>> cache.update(zip("abc", range(3)))
        >>> cache.get("a"), cache.get("z", 9)
        (0, 9)
        """
        try:
            return self[key]
        except KeyError:
            return default

    def __contains__(self, key: object) -> bool:
        """Return whether the cache has `key`, live or spilled."""
        if super().__contains__(key) or key in self._spilled:
            return True
        with self._lock:  # Another thread may have fetched it between the two questions.
            return super().__contains__(key) or key in self._spilled

    def __len__(self) -> int:
        """Return the number of keys, live and spilled."""
        with self._lock:
            return super().__len__() + len(self._spilled)

    def __iter__(self) -> Iterator[K]:
        """Yield all keys: those that are live at the beginning, then the spilled ones.

        Raises:
            RuntimeError: A key was added or removed during the iteration.
        """
        # Reads move keys between the two parts; all keys are in memory in any case.
        with self._lock:
            changes = self._changes
            keys = [*super().__iter__(), *self._spilled]
        for key in keys:
            yield key
            if self._changes != changes:
                raise RuntimeError("keys of the cache were added or removed during iteration")

    def __reversed__(self) -> Iterator[K]:
        """Yield all keys in reverse order."""
        return reversed(list(self))

    def _stream(self) -> Iterator[tuple[K, V]]:
        """Yield keys with their values, and move no value."""
        for key in self:
            with self._lock:
                if super().__contains__(key):
                    value = super().__getitem__(key)
                elif (record := self._spilled.get(key)) is not None:
                    value = self.bag[record]
                else:  # Another thread removed it, which ends the iteration.
                    continue
            yield key, value

    # The C methods of `dict` would see live values only.
    keys = MutableMapping.keys  # type: ignore[assignment]
    update = MutableMapping.update
    __hash__ = None

    @described(COLLECTION, "closed", "corrupt", "io")
    def items(self) -> ItemsView[K, V]:  # type: ignore[override]
        """Return a view of all keys with their values; spilled values stay where they are.

        Returns:
            A view that streams the pairs.

        >>> import brimful as bf
        >>> cache = bf.SpillingDict(limit=2)
        >>> cache.update(zip("abc", range(3)))
        >>> sorted(cache.items())
        [('a', 0), ('b', 1), ('c', 2)]
        """
        return StreamedItems(self)

    @described(COLLECTION, "closed", "corrupt", "io")
    def values(self) -> ValuesView[V]:  # type: ignore[override]
        """Return a view of all values; spilled values stay where they are.

        Returns:
            A view that streams the values.

        >>> import brimful as bf
        >>> cache = bf.SpillingDict(limit=2)
        >>> cache.update(zip("abc", range(3)))
        >>> sorted(cache.values())
        [0, 1, 2]
        """
        return StreamedValues(self)

    @described(COLLECTION, "closed", "corrupt", "io")
    def setdefault(self, key: K, default: Any = None) -> Any:
        """Return the value of a key; a key that is missing gets the value `default`.

        Args:
            default: Stored and returned if there is no such key.

        Returns:
            The value.

        >>> import brimful as bf
        >>> cache = bf.SpillingDict(limit=2)
        >>> cache.update(zip("abc", range(3)))
        >>> cache.setdefault("a", 7), cache.setdefault("z", 9)
        (0, 9)
        """
        with self._lock:
            return MutableMapping.setdefault(self, key, default)

    @described(COLLECTION, "closed", "corrupt", "io")
    def pop(self, key: K, *default: Any) -> Any:
        """Remove a key and return its value.

        Args:
            default: Returned if there is no such key.

        Returns:
            The value or `default`.

        Raises:
            KeyError: There is no such key, and no default.

        >>> import brimful as bf
        >>> cache = bf.SpillingDict(limit=2)
        >>> cache.update(zip("abc", range(3)))
        >>> cache.pop("a"), cache.pop("a", None), len(cache)
        (0, None, 2)
        """
        with self._lock:
            try:
                value = self[key]
            except KeyError:
                if default:
                    return default[0]
                raise
            del self[key]
            return value

    @described(COLLECTION, "closed", "corrupt", "io")
    def popitem(self) -> tuple[K, V]:
        """Remove the youngest live key, or else a spilled one.

        Returns:
            The key and its value.

        Raises:
            KeyError: The cache is empty.

        >>> import brimful as bf
        >>> cache = bf.SpillingDict(limit=2)
        >>> cache.update(zip("abc", range(3)))
        >>> cache.popitem()
        ('c', 2)
        """
        with self._lock:
            for keys in (super().__reversed__(), reversed(self._spilled)):
                for key in keys:
                    return key, self.pop(key)
        raise KeyError("the cache is empty")

    @described(COLLECTION)
    def clear(self) -> None:
        """Remove all keys.

        Raises:
            UsageError: The cache is closed.

        >>> import brimful as bf
        >>> cache = bf.SpillingDict(limit=2)
        >>> cache.update(zip("abc", range(3)))
        >>> cache.clear()
        >>> len(cache)
        0
        """
        with self._lock:
            _ = self.bag  # Refuses a closed cache.
            for place in (self._spilled, self._clean):
                self._unused += place.values()
                place.clear()
            super().clear()
            self._changes += 1

    @described(COLLECTION, "closed", "corrupt", "io")
    def copy(self) -> SpillingDict[K, V]:
        """Return a cache with the same keys and values and a folder of its own.

        Returns:
            The copy.

        >>> import brimful as bf
        >>> cache = bf.SpillingDict(limit=2)
        >>> cache.update(zip("abc", range(3)))
        >>> other = cache.copy()
        >>> other["a"] = 7
        >>> cache["a"], other["a"]
        (0, 7)
        """
        serializer, folder, budget = self._made_with
        other: SpillingDict[K, V] = SpillingDict(
            self._limit, serializer=serializer, folder=folder, budget=budget
        )
        # Spilled values first, so that the values that are live here stay live in the copy.
        with self._lock:
            for key, record in self._spilled.items():
                other[key] = self.bag[record]
            for key, value in super().items():
                other[key] = value
        return other

    __copy__ = copy

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be pickled or copied deeply."""
        raise UsageError(
            "a SpillingDict cannot be pickled or copied deeply, because it may be larger than "
            "memory; copy() makes another one, dict() a plain dict"
        )

    @classmethod
    def fromkeys(cls, iterable: Iterable[Any], value: Any = None, /) -> NoReturn:
        """Refuse to make a cache, which would have no limit.

        Args:
            iterable: Not used.
            value: Not used.

        Raises:
            UsageError: Always; update a `SpillingDict(limit)` instead.

        >>> import brimful as bf
        >>> bf.SpillingDict.fromkeys("abc")
        Traceback (most recent call last):
        brimful.errors.UsageError: ...
        """
        raise UsageError(
            "SpillingDict.fromkeys does not know the limit; update a SpillingDict(limit) instead"
        )

    def __or__(self, other: object) -> Any:
        """Return a new cache with the items of both; `other` wins."""
        if not isinstance(other, Mapping):
            return NotImplemented
        both = self.copy()
        both.update(other)
        return both

    def __ror__(self, other: object) -> Any:
        """Return a new cache with the items of both; this one wins."""
        if not isinstance(other, Mapping):
            return NotImplemented
        both = self.copy()
        for key, value in other.items():
            if key not in self:
                both[key] = value
        return both

    def __ior__(self, other: Any) -> Self:  # type: ignore[override,misc]
        """Store all items of `other`."""
        self.update(other)
        return self

    def __eq__(self, other: object) -> bool:
        """Return whether `other` is a mapping with the same items."""
        if not isinstance(other, Mapping):
            return NotImplemented
        if len(self) != len(other):
            return False
        return all(key in other and other[key] == value for key, value in self.items())

    def __ne__(self, other: object) -> bool:
        """Return whether `other` differs."""
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    @described(COLLECTION, "io")
    def close(self) -> None:
        """Drop all values and remove the folder; a second call does nothing.

        >>> import brimful as bf
        >>> cache = bf.SpillingDict(limit=2)
        >>> cache.update(zip("abc", range(3)))
        >>> cache.close()
        >>> len(cache)
        0
        """
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        """Drop all values and remove the folder."""
        if self._bag is not None:
            self._bag.__exit__(KeyboardInterrupt, None, None)
            self._bag = None
            super().clear()
            self._spilled.clear()
            self._clean.clear()
            self._changes += 1
            self._folder.close()

    def __enter__(self) -> Self:
        """Return the cache."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the cache."""
        self.close()

    def __del__(self) -> None:
        """Remove the folder, without the lock: at a fork another thread may have held it."""
        if getattr(self, "_bag", None) is not None:
            self._drop()
