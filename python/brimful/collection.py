"""What all collections share: opening, closing, refusing to be used when closed."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, Self, TypeVar, cast

from brimful.errors import RecordIdError, UsageError

if TYPE_CHECKING:
    from types import TracebackType

    import numpy as np
    from numpy.typing import ArrayLike, NDArray


class _Native(Protocol):
    def sync(self) -> None: ...
    def verify(self) -> int: ...


N = TypeVar("N", bound=_Native)

#: Bytes that go to the native side at once: what is copied beside the budget. Ctrl-C is heard in
#: between.
CHUNK_BYTES = 2 << 20
#: Numbers of 64 bits that do.
CHUNK = CHUNK_BYTES // 8


class Collection(Generic[N]):
    """A collection in a folder of its own: a context manager that makes it durable on leaving.

    What was not synced when the process ends is gone: the collection is then what it was at the
    last `sync`.
    """

    def __init__(self, native: N, path: str | os.PathLike[str]) -> None:
        """Wrap a native collection."""
        self.__native: N | None = native
        self._path = os.fspath(path)

    @property
    def path(self) -> str:
        """Where the collection is."""
        return self._path

    @property
    def native(self) -> N:
        """The native collection.

        Raises:
            UsageError: the collection is closed.
        """
        if self.__native is None:
            raise UsageError(f"{self._path} is closed; open it again")
        return self.__native

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self.__native is None

    def sync(self) -> None:
        """Make everything stored so far survive a crash: all of it, or nothing if this fails."""
        self.native.sync()

    def verify(self) -> int:
        """Read the whole collection and compare it with its checksums; return the bytes read.

        What was stored and not yet written is not looked at. Nothing must be changed meanwhile.

        Raises:
            CorruptError: it is damaged, naming the offset in its file.
        """
        return self.native.verify()

    def close(self) -> None:
        """Make everything durable and give the memory back; closing twice does nothing."""
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
        """Close it; after an exception what was not synced is dropped."""
        if kind is None:
            self.close()
        else:
            self.__native = None

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be copied or pickled: two objects cannot share one folder."""
        raise UsageError(
            f"a {type(self).__name__} cannot be copied or pickled: it is the folder {self._path}; "
            "close it, copy the folder, and open the copy"
        )


def integers(numbers: ArrayLike, what: str) -> NDArray[Any]:
    """Return integers as an array of one dimension and of their own dtype.

    Raises:
        UsageError: one of them is no integer.
    """
    import numpy as np

    is_listed = isinstance(numbers, (list, tuple))
    kinds = set(map(type, cast("Sequence[Any]", numbers))) if is_listed else set()
    # NumPy would take True for 1 where it stands beside integers.
    if not kinds.isdisjoint({bool, np.bool_}):
        raise UsageError(f"{what} are integers, not truth values")
    try:
        array = np.asarray(numbers).reshape(-1)
        if array.dtype.kind == "f" and kinds == {int}:
            # Some are beyond 2**63: NumPy would round them.
            array = np.asarray(numbers, object)
    except (OverflowError, ValueError) as error:
        raise UsageError(f"{what} are 64-bit integers: {error}") from None
    if array.size == 0:
        return np.empty(0, np.uint64)
    if array.dtype.kind in "iu":
        return array
    hint = "; a Map takes text and bytes" if array.dtype.kind in "USO" else ""
    if array.dtype.kind != "O":
        raise UsageError(f"{what} are integers, not {array.dtype}{hint}")
    for number in array:
        if not isinstance(number, int) or isinstance(number, bool):
            raise UsageError(f"{what} are integers, not {type(number).__name__}{hint}")
        if not 0 <= number < 2**64:
            raise UsageError(f"{what} are integers from 0 to 2**64 - 1, not {_short(number)}")
    if kinds == {int}:
        return array.astype(np.uint64)
    raise UsageError(f"{what} are integers, not objects; convert them with astype('uint64')")


def _short(number: int) -> str:
    return str(number) if abs(number) < 10**30 else f"one of {number.bit_length()} bits"


def unsigned(numbers: ArrayLike, what: str) -> NDArray[Any]:
    """Return `integers` of which none is negative.

    Raises:
        UsageError: one of them is no integer from 0 to 2**64 - 1.
    """
    array = integers(numbers, what)
    if array.dtype.kind == "i" and int(array.min()) < 0:
        raise UsageError(f"{what} are integers from 0 to 2**64 - 1, not {int(array.min())}")
    return array


def uint64(numbers: ArrayLike, what: str) -> NDArray[np.uint64]:
    """Return `unsigned` as a contiguous array of 64 bits."""
    import numpy as np

    return np.ascontiguousarray(unsigned(numbers, what), dtype=np.uint64)


def chunks(array: NDArray[Any], step: int = CHUNK) -> Iterator[NDArray[np.uint64]]:
    """Yield an array from `unsigned` as contiguous arrays of 64 bits, one copied at a time."""
    import numpy as np

    for start in range(0, len(array), step):
        yield np.ascontiguousarray(array[start : start + step], dtype=np.uint64)


def ids(numbers: ArrayLike, length: int) -> NDArray[np.uint64]:
    """Return record ids, counted from the end where they are negative.

    Raises:
        RecordIdError: one of them is no id.
    """
    import numpy as np

    array = integers(numbers, "ids")
    if array.dtype.kind == "i" and int(array.min()) < 0:
        if int(array.min()) < -length:
            raise RecordIdError(f"there is no record {int(array.min())}: there are {length}")
        signed = array.astype(np.int64)
        array = np.where(signed < 0, signed + length, signed)
    return np.ascontiguousarray(array, dtype=np.uint64)


def whole(number: Any, what: str, *, least: int = 0, most: int = 2**64 - 1) -> int:
    """Return a whole number from `least` to `most`.

    Raises:
        UsageError: it is none.
    """
    try:
        found = operator.index(number)
    except TypeError:
        raise UsageError(f"{what} is an integer, not {type(number).__name__}") from None
    if isinstance(number, bool):
        raise UsageError(f"{what} is an integer, not a truth value")
    if not least <= found <= most:
        bound = "2**64 - 1" if most == 2**64 - 1 else most
        raise UsageError(f"{what} is an integer from {least} to {bound}, not {_short(found)}")
    return found


def one_id(number: Any, length: int) -> int:
    """Return a record id, counted from the end if it is negative.

    Raises:
        RecordIdError: there is none.
    """
    index = whole(number, "a record id", least=-sys.maxsize, most=sys.maxsize)
    found = index + length if index < 0 else index
    if not 0 <= found < length:
        raise RecordIdError(f"there is no record {index}: there are {length}")
    return found


def batches(order: object, length: int, step: int) -> list[range | Sequence[int]]:
    """Return the batches of `process`: an order is a name, a range, ranges, or ids."""
    if order is None or order == "ascending":
        return [range(start, min(start + step, length)) for start in range(0, length, step)]
    if isinstance(order, str):
        if order != "descending":
            raise UsageError(f"an order is 'ascending', 'descending', ranges or ids, not '{order}'")
        return batches(None, length, step)[::-1]
    if isinstance(order, range):
        order = [order]
    listed = list(cast("Sequence[Any]", order))
    if listed and all(isinstance(part, range) for part in listed):
        if any(part.step != 1 for part in listed):
            raise UsageError("ranges of ids have step 1; give the ids themselves instead")
        return [
            range(start, min(start + step, part.stop))
            for part in listed
            for start in range(part.start, part.stop, step)
        ]
    return [listed[start : start + step] for start in range(0, len(listed), step)]
