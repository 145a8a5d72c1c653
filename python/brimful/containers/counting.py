"""Sets and counters of integers, larger than memory.

Batches are NumPy arrays; keys are partitioned before they touch the disk, so that random input is
not random I/O. Keys are integers from 0 to 2**64 - 1. A counter, set or filter refuses text,
because 64-bit hashes of different texts can be equal: `Map` takes text and compares it in full. A
look-up (`contains_many`, `count_many`) reads each page about once for all keys that, with their
answers, fit an eighth of the budget: 8 million in 1 GiB. For a structure larger than memory, look
up that many keys at a time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np

from brimful import _native
from brimful.containers.collection import (
    Collection,
    chunks,
    folder_of,
    unsigned,
    whole_chunks,
)
from brimful.errors import UsageError
from brimful.options.checks import is_real, whole
from brimful.options.described import COLLECTION, described
from brimful.packages import numpy
from brimful.sizes import Budget, parse_budget
from brimful.wording import shortened

Answer = TypeVar("Answer", np.uint64, np.bool_)


class _Asked(Protocol):
    @property
    def question_len(self) -> int: ...


class _Adding(Protocol):
    @property
    def taken(self) -> int: ...

    def add_many(self, keys: object) -> None: ...


def _answers(
    native: _Asked,
    ask: Callable[[object], bytearray],
    keys: numpy.typing.ArrayLike,
    dtype: type[Answer],
) -> numpy.typing.NDArray[Answer]:
    """Return the answers of `ask` for `keys`, in batches as large as the budget allows."""
    array = unsigned(keys, "keys")
    answers = np.empty(len(array), dtype)
    done = 0
    for question in chunks(array, native.question_len):
        answers[done : done + len(question)] = np.frombuffer(ask(question), dtype)
        done += len(question)
    return answers


def _add(native: _Adding, keys: numpy.typing.ArrayLike) -> None:
    """Add keys, a whole chunk at a time."""
    array = unsigned(keys, "keys")
    with whole_chunks(lambda: native.taken, len(array)):
        for chunk in chunks(array):
            native.add_many(chunk)


def _key(key: Any) -> int:
    if isinstance(key, (str, bytes)):
        raise UsageError(
            f"a key must be an integer, not {type(key).__name__}; use a Map for text and bytes"
        )
    return whole(key, "a key", most=2**64 - 1)


class FrequencyCounter(Collection[_native.FrequencyCounter]):
    """Exact counts of 64-bit keys, larger than memory.

    >>> import brimful as bf, tempfile
    >>> with bf.FrequencyCounter(tempfile.mkdtemp() + "/x", budget="64M") as counter:
    ...     counter.add_many([3, 1, 3])
    ...     counter[3], counter.count_many([1, 2, 3]).tolist(), counter.top(1), len(counter)
    ...     counter.path.endswith("/x"), counter.closed
    (2, [1, 0, 2], [(3, 2)], 2)
    (True, False)
    """

    @described(COLLECTION, "usage", "other", "budget", "corrupt", "io")
    def __init__(self, path: str | os.PathLike[str], *, budget: Budget = None) -> None:
        """Open the counter at `path`, or make it."""
        native = _native.FrequencyCounter.open(folder_of(path), parse_budget(budget))
        super().__init__(native, path)

    @described(COLLECTION, "closed", "corrupt", "io")
    def add_many(self, keys: numpy.typing.ArrayLike) -> None:
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
        _add(self.native, keys)

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
        """Return the number of times that a key occurred."""
        return self.native.count(_key(key))

    # Without this, a loop would take positions for keys, and never end.
    __iter__ = None

    def __contains__(self, key: object) -> bool:
        """Return whether a key occurred."""
        return self.native.count(_key(key)) > 0

    @described(COLLECTION, "closed", "corrupt", "io")
    def count_many(self, keys: numpy.typing.ArrayLike) -> numpy.typing.NDArray[np.uint64]:
        """Return the number of times that each of `keys` occurred.

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

    @described(COLLECTION, "usage", "other", "budget", "corrupt", "io")
    def __init__(self, path: str | os.PathLike[str], *, budget: Budget = None) -> None:
        """Open the set at `path`, or make it."""
        super().__init__(_native.MembershipSet.open(folder_of(path), parse_budget(budget)), path)

    @described(COLLECTION, "closed", "corrupt", "io")
    def add_many(self, keys: numpy.typing.ArrayLike) -> None:
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
        _add(self.native, keys)

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
    def contains_many(self, keys: numpy.typing.ArrayLike) -> numpy.typing.NDArray[np.bool_]:
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
    """An approximate set of 64-bit keys in a few bits each, with false positives.

    >>> import brimful as bf, tempfile
    >>> folder = tempfile.mkdtemp() + "/x"
    >>> with bf.BloomFilter(folder, 10_000, 0.01, budget="64M") as maybe:
    ...     maybe.add_many(range(10_000))
    ...     bool(maybe.contains_many(range(10_000)).all()), 5 in maybe
    ...     maybe.bytes, maybe.path == folder, maybe.closed
    (True, True)
    (16384, True, False)
    """

    @described(COLLECTION, "usage", "other", "budget", "corrupt", "io")
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
            false_positives: Share of other keys that are then reported as present, at least 1e-5.
        """
        keys = whole(keys, "the number of keys of a Bloom filter", least=1)
        if not is_real(false_positives):
            raise UsageError(
                "the share of false positives of a Bloom filter must be a number, not "
                f"{shortened(false_positives)}"
            )
        native = _native.BloomFilter.open(
            folder_of(path), keys, false_positives, parse_budget(budget)
        )
        super().__init__(native, path)

    @property
    def bytes(self) -> int:
        """Size of the bits."""
        return self.native.bytes

    @described(COLLECTION, "closed", "corrupt", "io")
    def add_many(self, keys: numpy.typing.ArrayLike) -> None:
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
        _add(self.native, keys)

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
    def contains_many(self, keys: numpy.typing.ArrayLike) -> numpy.typing.NDArray[np.bool_]:
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
