"""`Bag`: a disk-resident sequence of records of any length."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from brimful import _native
from brimful.collection import CHUNK_BYTES, Collection, batches, one_id, whole
from brimful.errors import CorruptError, RecordIdError, UsageError
from brimful.sizes import Budget, parse_budget

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


#: Records that go to the native side at once, if their bytes do.
_BATCH = 1 << 14


def _in_batches(records: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield records in lists of `_BATCH`, or fewer where they are long."""
    batch: list[bytes] = []
    size = 0
    for record in records:
        batch.append(record)
        size += len(record)
        if len(batch) == _BATCH or size >= CHUNK_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class Serializer(Protocol):
    """How objects become bytes: any module or object with `dumps` and `loads`."""

    def dumps(self, value: Any, /) -> bytes:
        """Return the bytes of an object."""
        ...

    def loads(self, data: bytes, /) -> Any:
        """Return the object of these bytes."""
        ...


class Bag(Collection[_native.RecordBag]):
    """A disk-resident sequence of records of any length, in a memory budget.

    `path` is a folder, made if it is not there. Records are `bytes`; with `serializer="str"` text,
    with "json" or "pickle" what those modules write, or anything with `dumps` and `loads`. A bag is
    opened with the serializer it was made with. A single record may be longer than the budget: it
    is written and fetched page by page. A batch (`fetch_batch`, a slice) refuses a record that
    takes more than a quarter of the budget. **Pickle runs code from the file**: it is used only
    when named, and only for files that you trust.

    >>> import brimful as bf, tempfile
    >>> with bf.Bag(tempfile.mkdtemp() + "/x", serializer="str", budget="64M") as bag:
    ...     first = bag.extend(["one", "two", "three"])
    ...     bag[1] = "a much longer record"
    ...     bag.append_to(0, " and more")
    ...     del bag[2]
    ...     len(bag), bag[0], list(bag), 2 in bag
    (3, 'one and more', ['one and more', 'a much longer record'], False)

    Raises:
        InputError: it was made with another serializer.
        StoreIoError: another process has it open, or the system refuses.
        CorruptError: it is damaged.
        BudgetError: the budget is too small.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        serializer: str | Serializer = "bytes",
        budget: Budget = None,
    ) -> None:
        """Open the bag at `path`, or make it."""
        self._name, self._dumps, self._loads = serializer_of(serializer)
        native = _native.RecordBag.open(os.fspath(path), self._name, parse_budget(budget))
        super().__init__(native, path)

    @property
    def serializer(self) -> str:
        """The name of the serializer."""
        return self._name

    @property
    def count(self) -> int:
        """The number of records that were not removed."""
        return self.native.count

    @property
    def file_bytes(self) -> int:
        """The size of the file."""
        return self.native.file_bytes()

    def __len__(self) -> int:
        """Return how many ids were given out; removed records keep theirs."""
        return len(self.native)

    def __repr__(self) -> str:
        """Return path, serializer and length."""
        length = "closed" if self.closed else f"{self.count} records"
        return f"Bag({self._path!r}, serializer={self._name!r}): {length}"

    def _value(self, id: int, record: bytes) -> Any:
        try:
            return self._loads(record)
        except UnicodeDecodeError as error:
            raise CorruptError(f"record {id} of {self._path} is no text: {error}") from None

    def fetch(self, id: int) -> Any:
        """Return one record, as `bag[id]` does."""
        return self[id]

    def fetch_range(self, start: int, count: int) -> list[Any]:
        """Return `count` records from `start` on; None for those that were removed."""
        start, count = whole(start, "an id"), whole(count, "a number of records")
        records = self.native.fetch_range(start, count)
        found = zip(itertools.count(start), records, strict=False)
        return [None if record is None else self._value(id, record) for id, record in found]

    def fetch_batch(self, ids: ArrayLike) -> list[Any]:
        """Return the records `ids`, in their order."""
        from brimful.collection import ids as as_ids

        found = as_ids(ids, len(self))
        records = self.native.fetch_batch(found)
        if self._name == "bytes":
            return list(records)
        pairs = zip(found.tolist(), records, strict=True)
        return [self._value(id, record) for id, record in pairs]

    def store(self, id: int, value: Any) -> None:
        """Replace one record, as `bag[id] = value` does; one that was removed is there again."""
        self.native.store(one_id(id, len(self)), self._dumps(value))

    def store_batch(self, ids: ArrayLike, values: Iterable[Any]) -> None:
        """Replace the records `ids`; of an id that occurs twice the last one stays."""
        from brimful.collection import ids as as_ids

        records = [self._dumps(value) for value in values]
        self.native.store_batch(as_ids(ids, len(self)), records)

    def append(self, value: Any) -> int:
        """Append one record; return its id."""
        return self.native.extend([self._dumps(value)])

    def extend(self, values: Iterable[Any]) -> int:
        """Append records, in batches; return the id of the first."""
        first = len(self)
        for batch in _in_batches(map(self._dumps, values)):
            self.native.extend(batch)
        return first

    def append_to(self, id: int, value: Any) -> None:
        """Add to the end of a record of bytes or text: amortised O(1)."""
        self._require_concatenation()
        self.native.append_to(one_id(id, len(self)), self._dumps(value))

    def append_to_batch(self, ids: ArrayLike, values: Iterable[Any]) -> None:
        """Add to the ends of the records `ids`, in their order."""
        from brimful.collection import ids as as_ids

        self._require_concatenation()
        records = [self._dumps(value) for value in values]
        self.native.append_to_batch(as_ids(ids, len(self)), records)

    def _require_concatenation(self) -> None:
        if self._name not in ("bytes", "str"):
            raise UsageError(f"records of '{self._name}' cannot be added to; store them anew")

    def remove(self, id: int) -> None:
        """Remove one record, as `del bag[id]` does; its id is not given out again."""
        self.native.remove(one_id(id, len(self)))

    def __getitem__(self, key: Any) -> Any:
        """Return a record, or a list of those that a slice or a list of ids names."""
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1:
                return self.fetch_range(start, max(0, stop - start))
            return self.fetch_batch(list(range(start, stop, step)))
        if hasattr(key, "__len__"):
            return self.fetch_batch(key)
        id = one_id(key, len(self))
        return self._value(id, self.native.fetch(id))

    def __setitem__(self, id: int, value: Any) -> None:
        """Replace one record."""
        self.store(id, value)

    def __delitem__(self, id: int) -> None:
        """Remove one record."""
        self.remove(id)

    def __iter__(self) -> Iterator[Any]:
        """Yield all records that were not removed, reading them in batches."""
        return (value for _, value in self.items())

    def items(self) -> Iterator[tuple[int, Any]]:
        """Yield id and value of all records that were not removed."""
        for id, record in self._records(range(len(self))):
            yield id, self._value(id, record)

    def _records(self, ids: range | Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """Yield id and bytes of those that are there; a range is read in batches."""
        if not isinstance(ids, range):
            for id in ids:
                if (record := self._or_none(id)) is not None:
                    yield id, record
            return
        start, step = ids.start, self.native.batch_len
        while start < ids.stop:
            records = self.native.fetch_next(start, min(step, ids.stop - start))
            yield from (
                (id, record)
                for id, record in zip(itertools.count(start), records, strict=False)
                if record is not None
            )
            start += len(records)

    def __contains__(self, id: object) -> bool:
        """Return whether there is a record with this id."""
        if not isinstance(id, int) or isinstance(id, bool):
            return False
        return 0 <= id < len(self) and self.native.contains(id)

    def process(
        self,
        update: Callable[[int, Any], Any],
        order: str | range | Sequence[range] | Sequence[int] | None = None,
    ) -> None:
        """Stream the bag through `update(id, value)`; what it returns is the new value.

        None keeps the old one. Only records whose bytes changed are written back. `order` is that
        of `Box.process`.
        """
        import numpy as np

        for part in batches(order, len(self), self.native.batch_len):
            changed: list[int] = []
            records: list[bytes] = []
            size = 0
            for id, record in self._records(part):
                value = update(id, self._value(id, record))
                if value is None or (new := self._dumps(value)) == record:
                    continue
                changed.append(id)
                records.append(new)
                size += len(new)
                if size >= CHUNK_BYTES:
                    self.native.store_batch(np.array(changed, np.uint64), records)
                    changed, records, size = [], [], 0
            if changed:
                self.native.store_batch(np.array(changed, np.uint64), records)

    def _or_none(self, id: int) -> bytes | None:
        try:
            return self.native.fetch(one_id(id, len(self)))
        except RecordIdError:
            if id in self or not 0 <= id < len(self):
                raise
            return None

    def compact(self) -> None:
        """Give unused space back; makes everything durable."""
        self.native.compact()


def serializer_of(
    serializer: str | Serializer,
) -> tuple[str, Callable[[Any], bytes], Callable[[bytes], Any]]:
    """Return name, `dumps` and `loads` of a serializer, given by name or as an object."""
    if serializer == "bytes":
        return "bytes", _require_bytes, bytes
    if serializer == "str":
        return "str", _encode_text, bytes.decode
    if serializer == "json":
        import json

        return "json", lambda value: json.dumps(value).encode(), json.loads
    if serializer == "pickle":
        import pickle

        return "pickle", lambda value: pickle.dumps(value, protocol=5), pickle.loads
    if isinstance(serializer, str):
        raise UsageError(
            f"there is no serializer '{serializer}'; there are bytes, str, json, pickle, and any "
            "object with dumps and loads"
        )
    if not (hasattr(serializer, "dumps") and hasattr(serializer, "loads")):
        raise UsageError(f"a serializer has dumps and loads, {serializer!r} has not")
    name = getattr(serializer, "__name__", type(serializer).__qualname__)
    return str(name), serializer.dumps, serializer.loads


def _require_bytes(value: Any) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise UsageError(
            f"a record is bytes, not {type(value).__name__}; open the bag with a serializer"
        )
    return bytes(value)


def _encode_text(value: Any) -> bytes:
    if not isinstance(value, str):
        raise UsageError(f"a record is text, not {type(value).__name__}")
    return value.encode()
