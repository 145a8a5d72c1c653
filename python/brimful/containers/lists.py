"""Growing lists of numbers, larger than memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from brimful import _native
from brimful.containers.collection import (
    CHUNK,
    Collection,
    folder_of,
    integers,
    one_id,
    record_ids,
    whole_chunks,
)
from brimful.errors import UsageError
from brimful.options.checks import whole
from brimful.options.described import COLLECTION, described
from brimful.packages import numpy
from brimful.sizes import Budget, parse_budget


class Lists(Collection[_native.DiskLists]):
    """A fixed number of growing lists of 32-bit numbers: the neighbors of each vertex.

    >>> import brimful as bf, tempfile
    >>> with bf.Lists(tempfile.mkdtemp() + "/x", 3, budget="64M") as neighbors:
    ...     neighbors.append_many([0, 2, 0], [2, 0, 1])
    ...     neighbors[0].tolist(), neighbors[1].tolist()
    ...     neighbors.path.endswith("/x"), neighbors.closed
    ([1, 2], [])
    (True, False)
    """

    _noun = "list"

    @described(COLLECTION, "usage", "other", "budget", "corrupt", "io")
    def __init__(self, path: str | os.PathLike[str], count: int, *, budget: Budget = None) -> None:
        """Open the lists at `path`, or make them.

        Args:
            count: Number of lists, empty at first.
        """
        count = whole(count, "the number of lists", least=1, most=2**32)
        native = _native.DiskLists.open(folder_of(path), count, parse_budget(budget))
        super().__init__(native, path)

    @described(COLLECTION, "closed", "corrupt", "io")
    def append_many(self, lists: numpy.typing.ArrayLike, items: numpy.typing.ArrayLike) -> None:
        """Append `items[i]` to list `lists[i]`.

        A list returns its items in ascending runs: items that were in memory together form one run.
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
                f"lists and items must have the same length, not {len(targets)} and {len(values)}"
            )
        with whole_chunks(lambda: self.native.taken, len(targets), "items"):
            for start in range(0, len(targets), CHUNK):
                both = (array[start : start + CHUNK] for array in (targets, values))
                self.native.append_many(*(np.ascontiguousarray(a, np.uint32) for a in both))

    @staticmethod
    def _of_32_bits(numbers: numpy.typing.ArrayLike) -> numpy.typing.NDArray[Any]:
        array = integers(numbers, "lists and items")
        for extreme in (int(array.min()), int(array.max())) if len(array) else ():
            if not 0 <= extreme < 2**32:
                raise UsageError(
                    f"lists and items must be integers from 0 to 2**32 - 1, not {extreme}"
                )
        return array

    def __getitem__(self, index: int) -> numpy.typing.NDArray[np.uint32]:
        """Return the items of a list: uint32[n].

        A list may be longer than the budget: its items go into the result at once.

        Raises:
            RecordIdError: There is no such list.
        """
        return np.frombuffer(self.native.get(one_id(index, len(self))), "<u4")

    def __iter__(self) -> Iterator[numpy.typing.NDArray[np.uint32]]:
        """Yield the items of every list."""
        return (self[index] for index in range(len(self)))

    @described(COLLECTION, "closed", "corrupt", "io")
    def get_many(
        self, lists: numpy.typing.ArrayLike
    ) -> tuple[numpy.typing.NDArray[np.uint64], numpy.typing.NDArray[np.uint32]]:
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
        counts, items = self.native.get_many(record_ids(lists, len(self)))
        return np.frombuffer(counts, np.uint64), np.frombuffer(items, np.uint32)

    def __len__(self) -> int:
        """Return the number of lists."""
        return len(self.native)
