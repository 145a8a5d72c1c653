"""What all collections share: opening, closing, refusing to be used when closed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar, cast

from brimful.errors import RecordIdError, UsageError

if TYPE_CHECKING:
    from types import TracebackType

    import numpy as np
    from numpy.typing import ArrayLike, NDArray


class _Native(Protocol):
    def sync(self) -> None: ...
    def verify(self) -> int: ...


N = TypeVar("N", bound=_Native)

#: Items that go to the native side at once: Ctrl-C is heard in between.
CHUNK = 1 << 22


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


def uint64(numbers: ArrayLike, what: str) -> NDArray[np.uint64]:
    """Return integers as a contiguous array of 64 bits; signed ones keep their bits.

    Raises:
        UsageError: they are no integers.
    """
    import numpy as np

    try:
        array = np.asarray(numbers)
    except (OverflowError, ValueError) as error:
        raise UsageError(f"{what} are 64-bit integers: {error}") from None
    if array.size == 0:
        return np.empty(0, np.uint64)
    if array.dtype.kind not in "iu":
        hint = "; a Map takes text and bytes" if array.dtype.kind in "USO" else ""
        raise UsageError(f"{what} are integers, not {array.dtype}{hint}")
    if array.dtype.kind == "i":
        array = array.astype(np.int64, copy=False).view(np.uint64)
    return np.ascontiguousarray(array.reshape(-1), dtype=np.uint64)


def ids(numbers: ArrayLike, length: int) -> NDArray[np.uint64]:
    """Return record ids, counted from the end where they are negative.

    Raises:
        RecordIdError: one of them is no id.
    """
    import numpy as np

    array = np.asarray(numbers)
    found = uint64(array, "ids")
    if array.dtype.kind == "i" and array.size and int(array.min()) < 0:
        signed = found.view(np.int64)
        found = np.where(signed < 0, signed + length, signed).view(np.uint64)
        if int(found.view(np.int64).min()) < 0:
            raise RecordIdError(f"there is no record {int(array.min())}: there are {length}")
    return found


def one_id(number: Any, length: int) -> int:
    """Return a record id, counted from the end if it is negative.

    Raises:
        RecordIdError: there is none.
    """
    try:
        index = number.__index__()
    except AttributeError:
        raise UsageError(f"a record id is an integer, not {number!r}") from None
    found = cast(int, index + length if index < 0 else index)
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
