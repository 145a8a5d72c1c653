"""Sorting more integers than fit in memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from brimful import _native
from brimful.containers.collection import integers, several
from brimful.errors import UsageError
from brimful.options.checks import given_path
from brimful.options.described import described
from brimful.packages import numpy
from brimful.sizes import Budget, parse_budget

_SIGN = np.uint64(1 << 63)
#: Numbers handed over at once; a few such chunks wait for the sorter outside its budget.
_CHUNK = 1 << 17


@described({}, "budget", "io")
def sort(
    batches: Iterable[numpy.typing.ArrayLike],
    *,
    budget: Budget = None,
    folder: str | os.PathLike[str] | None = None,
) -> Iterator[numpy.typing.NDArray[Any]]:
    """Sort more integers than fit in memory.

    Reading begins with the first array that is requested. Numbers beyond the budget are in a file
    without a name.

    Args:
        batches: Arrays of integers, all of the dtype of the first that is not empty.
        budget: Memory for brimful's own use, in bytes or as "64M"; None: an eighth of the automatic
            budget that open collections have not claimed.
        folder: Folder of the nameless file; None: the folder of temporary files.

    Returns:
        An iterator over the integers of all batches in ascending order, in arrays of their dtype.

    Raises:
        UsageError: The budget or the folder is not valid; or, in the iteration, a batch has no
            integers, or another dtype than the first.

    >>> import brimful as bf, numpy as np
    >>> batches = (np.arange(n, -3, -1) for n in (3, 5))
    >>> np.concatenate(list(bf.sort(batches, budget="64M"))).tolist()
    [-2, -2, -1, -1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 5]
    """
    sorter = _native.Sorter(
        given_path(folder or tempfile.gettempdir(), "folder"), parse_budget(budget)
    )
    return _sorted(sorter, several(batches, "batches"))


def _sorted(
    sorter: _native.Sorter, batches: Iterable[numpy.typing.ArrayLike]
) -> Iterator[numpy.typing.NDArray[Any]]:
    dtype: np.dtype[Any] | None = None
    for batch in batches:
        array = integers(batch, "the numbers of a batch")
        if len(array) == 0:
            continue
        if dtype is None:
            dtype = array.dtype
        if array.dtype != dtype:
            raise UsageError(
                f"all batches must have dtype {dtype} of the first, and one has {array.dtype}"
            )
        for start in range(0, len(array), _CHUNK):
            sorter.add(_ordered(array[start : start + _CHUNK]))
    while (raw := sorter.next()) is not None:
        if dtype is not None and raw:
            numbers = np.frombuffer(raw, np.uint64)
            signed = dtype.kind == "i"
            values = (numbers ^ _SIGN).view(np.int64) if signed else numbers
            yield values.astype(dtype, copy=False)


def _ordered(array: numpy.typing.NDArray[Any]) -> numpy.typing.NDArray[np.uint64]:
    """Return numbers whose unsigned order is that of `array`."""
    if array.dtype.kind == "u":
        return np.ascontiguousarray(array, np.uint64)
    return np.ascontiguousarray(array, np.int64).view(np.uint64) ^ _SIGN
