"""The common part of all collections: opening, closing, refusing use after closing."""

from __future__ import annotations

import itertools
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, Self, TypeVar, cast

from brimful.errors import RecordIdError, UsageError
from brimful.io.formats import refuse_folder_in_graph
from brimful.io.regular import folder_around
from brimful.options.checks import given_path, whole
from brimful.options.described import COLLECTION, described
from brimful.wording import counted, did_you_mean, shortened

if TYPE_CHECKING:
    from types import TracebackType

    import numpy as np
    from numpy.typing import ArrayLike, NDArray


class _Native(Protocol):
    def sync(self) -> None: ...
    def verify(self) -> int: ...


N = TypeVar("N", bound=_Native)
T = TypeVar("T")

#: Bytes that go to the native side at once; their copy is outside the budget. Ctrl-C takes effect
#: between two such calls.
CHUNK_BYTES = 2 << 20
#: The same limit as a number of 64-bit integers.
CHUNK = CHUNK_BYTES // 8


def folder_of(path: str | os.PathLike[str]) -> str:
    """Return the folder of a collection to open or to make.

    Raises:
        UsageError: The folder is a graph directory, or inside one.
        StoreIoError: There is no folder around it.
    """
    folder = given_path(path)
    refuse_folder_in_graph(folder)
    folder_around(folder, "create")
    return folder


class Collection(ABC, Generic[N]):
    """A collection in a folder of its own: a context manager that syncs on leaving.

    Changes that were not synced when the process ends are lost as a whole: the collection is then
    as it was at the last `sync`.
    """

    #: The noun for the items that `len` counts.
    _noun = "key"

    def __init__(self, native: N, path: str | os.PathLike[str]) -> None:
        """Wrap a native collection."""
        self.__native: N | None = native
        self._path = given_path(path)

    @property
    def path(self) -> str:
        """Folder of the collection."""
        return self._path

    @property
    def native(self) -> N:
        """The native collection.

        Raises:
            UsageError: The collection is closed.
        """
        if self.__native is None:
            raise UsageError(f"{self._path} is closed; open it again")
        return self.__native

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self.__native is None

    @described(COLLECTION, "closed", "corrupt", "io")
    def sync(self) -> None:
        """Make all changes so far durable: all of them, or none if this fails.

        >>> import brimful as bf, tempfile
        >>> with bf.Box(tempfile.mkdtemp() + "/x", "i8") as box:
        ...     first = box.extend([1, 2, 3])
        ...     box.sync()
        """
        self.native.sync()

    @described(COLLECTION, "closed", "io")
    def verify(self) -> int:
        """Read the whole collection and compare it with its checksums.

        Unwritten changes are not checked. The collection must not change during the call.

        Returns:
            The number of bytes read.

        Raises:
            CorruptError: The collection is damaged; the message names the offset in its file.

        >>> import brimful as bf, tempfile
        >>> with bf.Box(tempfile.mkdtemp() + "/x", "i8") as box:
        ...     first = box.extend([1, 2, 3])
        ...     box.sync()
        ...     box.verify() > 0
        True
        """
        return self.native.verify()

    @described(COLLECTION, "corrupt", "io")
    def close(self) -> None:
        """Sync and release the memory; a second call does nothing.

        >>> import brimful as bf, tempfile
        >>> box = bf.Box(tempfile.mkdtemp() + "/x", "i8")
        >>> box.close()
        >>> box.closed
        True
        """
        if self.__native is not None:
            try:
                self.__native.sync()
            finally:
                self.__native = None

    def __enter__(self) -> Self:
        """Return the collection."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it; after an exception changes that were not synced are dropped."""
        if kind is None:
            self.close()
        else:
            self.__native = None

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of items."""

    def __repr__(self) -> str:
        """Return path and length."""
        length = "closed" if self.closed else counted(len(self), self._noun)
        return f"{type(self).__name__}({self._path!r}): {length}"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be copied or pickled: two objects cannot share one folder."""
        raise UsageError(
            f"a {type(self).__name__} cannot be copied or pickled, because its records lie in the "
            f"folder {self._path}; close it, copy the folder, and open the copy"
        )


def several(values: Iterable[T], noun: str) -> Iterable[T]:
    """Return values as they are: any iterable but text and bytes, whose elements are not records.

    Raises:
        UsageError: They are something else.
    """
    is_one = isinstance(values, (str, bytes, bytearray, memoryview))
    # An array without dimensions is an Iterable that cannot be iterated over.
    is_one = is_one or getattr(values, "ndim", None) == 0
    if is_one or not isinstance(values, Iterable):
        raise UsageError(f"{noun} must be a sequence such as a list, not {shortened(values)}")
    return values


def integers(numbers: ArrayLike, noun: str) -> NDArray[Any]:
    """Return integers as an array of one dimension and of their own dtype.

    Raises:
        UsageError: One of `numbers` is not an integer.
    """
    import numpy as np

    is_array = hasattr(numbers, "dtype")
    is_listed = isinstance(numbers, (list, tuple))
    kinds = set(map(type, cast("Sequence[Any]", numbers))) if is_listed else set()
    # NumPy would convert a True among integers to 1.
    if not kinds.isdisjoint({bool, np.bool_}):
        raise UsageError(f"{noun} must be integers, not truth values")
    try:
        array = np.asarray(numbers).reshape(-1)
        if array.dtype.kind == "f" and not is_array:
            # NumPy makes rounded floats of integers if some are 2**63 or more.
            exact = np.asarray(numbers, object).reshape(-1)
            array = exact if all(isinstance(each, (int, np.integer)) for each in exact) else array
    except (OverflowError, ValueError) as error:
        raise UsageError(f"{noun} must be 64-bit integers: {error}") from None
    if array.size == 0:
        return np.empty(0, np.uint64)
    if array.dtype.kind in "iu":
        return array
    hint = "; use a Map for text and bytes" if array.dtype.kind in "USO" else ""
    if array.dtype.kind != "O":
        raise UsageError(f"{noun} must be integers, not {array.dtype}{hint}")
    for number in array:
        if not isinstance(number, (int, np.integer)) or isinstance(number, bool):
            raise UsageError(f"{noun} must be integers, not {type(number).__name__}{hint}")
    if is_array:
        raise UsageError(
            f"{noun} must be integers, not objects; convert them with astype('uint64')"
        )
    if all(-(2**63) <= number < 2**63 for number in array):
        return array.astype(np.int64)
    for number in array:
        if not 0 <= number < 2**64:
            raise UsageError(
                f"{noun} must be integers from 0 to 2**64 - 1, not {_shown_integer(int(number))}"
            )
    return array.astype(np.uint64)


def _shown_integer(number: int) -> str:
    return str(number) if abs(number) < 10**30 else f"one of {number.bit_length()} bits"


def unsigned(numbers: ArrayLike, noun: str) -> NDArray[Any]:
    """Return `integers`, none of which is negative.

    Raises:
        UsageError: One of `numbers` is not an integer from 0 to 2**64 - 1.
    """
    array = integers(numbers, noun)
    if array.dtype.kind == "i" and int(array.min()) < 0:
        raise UsageError(f"{noun} must be integers from 0 to 2**64 - 1, not {int(array.min())}")
    return array


def uint64(numbers: ArrayLike, noun: str) -> NDArray[np.uint64]:
    """Return `unsigned` as a contiguous array of 64 bits."""
    import numpy as np

    return np.ascontiguousarray(unsigned(numbers, noun), dtype=np.uint64)


def chunks(array: NDArray[Any], step: int = CHUNK) -> Iterator[NDArray[np.uint64]]:
    """Yield an array from `unsigned` as contiguous arrays of 64 bits, one copied at a time."""
    import numpy as np

    for start in range(0, len(array), step):
        yield np.ascontiguousarray(array[start : start + step], dtype=np.uint64)


def record_ids(numbers: ArrayLike, length: int) -> NDArray[np.uint64]:
    """Return record ids, counted from the end where they are negative.

    Raises:
        RecordIdError: One of them is not an id.
    """
    import numpy as np

    array = integers(numbers, "ids")
    if array.dtype.kind == "i" and int(array.min()) < 0:
        if int(array.min()) < -length:
            raise RecordIdError(f"there is no record {int(array.min())}; the length is {length}")
        signed = array.astype(np.int64)
        array = np.where(signed < 0, signed + length, signed)
    return np.ascontiguousarray(array, dtype=np.uint64)


def one_id(number: Any, length: int) -> int:
    """Return a record id, counted from the end if it is negative.

    Raises:
        RecordIdError: There is no such record.
    """
    index = whole(number, "a record id", least=-sys.maxsize, most=sys.maxsize)
    position = index + length if index < 0 else index
    if not 0 <= position < length:
        raise RecordIdError(f"there is no record {index}; the length is {length}")
    return position


def batches(order: object, length: int, step: int) -> list[range | NDArray[np.uint64]]:
    """Return the batches of `process`: an order is a name, a range, ranges, or ids.

    A batch is read while the one before it changes, so that no record may be in two batches.

    Raises:
        UsageError: The order is unknown, or a record occurs twice.
        RecordIdError: A range, or a negative id, names no records.
    """
    if order is None or (isinstance(order, str) and order == "ascending"):
        return [range(start, min(start + step, length)) for start in range(0, length, step)]
    if isinstance(order, str):
        if order != "descending":
            hint = did_you_mean(order, ["ascending", "descending"])
            raise UsageError(
                "order must be 'ascending', 'descending', ranges or ids, not "
                f"'{shortened(order)}'{hint}"
            )
        return batches(None, length, step)[::-1]
    if isinstance(order, range):
        order = [order]
    listed: Any = order
    if not hasattr(order, "dtype"):  # A list of the numbers of an array would take more memory.
        listed = list(several(cast("Iterable[Any]", order), "order"))
        if listed and all(isinstance(part, range) for part in listed):
            return _batches_of_ranges(listed, length, step)
    ids = record_ids(listed, length)
    _refuse_repeated(ids)
    return [ids[start : start + step] for start in range(0, len(ids), step)]


def _batches_of_ranges(
    ranges: Sequence[range], length: int, step: int
) -> list[range | NDArray[np.uint64]]:
    if any(part.step != 1 for part in ranges):
        raise UsageError("a range of ids must have step 1; pass the ids themselves instead")
    ascending = sorted((part for part in ranges if part), key=lambda part: part.start)
    for part in ascending:
        if part.start < 0 or part.stop > length:
            id = part.start if not 0 <= part.start < length else length
            raise RecordIdError(f"there is no record {id}; the length is {length}")
    for part, after in itertools.pairwise(ascending):
        if after.start < part.stop:
            raise _repeated(after.start)
    return [
        range(start, min(start + step, part.stop))
        for part in ranges
        for start in range(part.start, part.stop, step)
    ]


def _refuse_repeated(ids: NDArray[np.uint64]) -> None:
    if bool((ids[1:] > ids[:-1]).all()):
        return
    import numpy as np

    ascending = np.sort(ids)
    repeated = ascending[1:][ascending[1:] == ascending[:-1]]
    if len(repeated):
        raise _repeated(int(repeated[0]))


def _repeated(id: int) -> UsageError:
    return UsageError(f"the order has the record {id} more than once; name each record once")


@contextmanager
def whole_chunks(taken: Callable[[], int], count: int | None, noun: str = "keys") -> Iterator[None]:
    """Add to an error the number of items that were added before it; `taken` counts all."""
    before = taken()
    try:
        yield
    except BaseException as error:
        added = taken() - before
        error.add_note(
            f"{noun} added before the error: {added}"
            if count is None
            else f"{added} of {count} {noun} were added, the rest were not"
        )
        raise
