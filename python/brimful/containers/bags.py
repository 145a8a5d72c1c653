"""`Bag`: a disk-resident sequence of records of any length."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import Any, Protocol

from brimful import _native
from brimful.containers.collection import (
    CHUNK_BYTES,
    Collection,
    batches,
    folder_of,
    one_id,
    record_ids,
    several,
    whole_chunks,
)
from brimful.errors import BrimfulError, CorruptError, RecordIdError, UsageError
from brimful.options.checks import whole
from brimful.options.described import COLLECTION, described
from brimful.packages import numpy
from brimful.sizes import Budget, parse_budget
from brimful.wording import counted, did_you_mean, shortened

#: The most records that go to the native side at once; their bytes are limited too.
_BATCH = 1 << 14
#: The names of serializers.
_NAMED = ("bytes", "str", "json", "pickle")


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

    A record may be longer than the budget: it is written and fetched page by page. A batch
    (`fetch_batch`, a slice) refuses a record that takes more than a quarter of the budget.

    >>> import brimful as bf, tempfile
    >>> with bf.Bag(tempfile.mkdtemp() + "/x", serializer="str", budget="64M") as bag:
    ...     first = bag.extend(["one", "two", "three"])
    ...     bag[1] = "a much longer record"
    ...     bag.append_to(0, " and more")
    ...     del bag[2]
    ...     len(bag), bag[0], list(bag), 2 in bag
    ...     bag.serializer, bag.count, bag.file_bytes > 0, bag.path.endswith("/x"), bag.closed
    (3, 'one and more', ['one and more', 'a much longer record'], False)
    ('str', 2, True, True, False)
    """

    @described(COLLECTION, "usage", "budget", "corrupt", "io")
    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        serializer: str | Serializer = "bytes",
        budget: Budget = None,
    ) -> None:
        """Open the bag at `path`, or make it.

        Args:
            serializer: How values become bytes: "bytes", "str", "json", "pickle", or an object with
                `dumps` and `loads`. A bag is opened with the serializer it was made with. **Pickle
                runs code from the file**: name it only for files that you trust. JSON turns tuples
                into lists, and the keys of a dict into strings.

        Raises:
            InputError: The bag was made with another serializer, or is another collection.
            StoreIoError: Another process has the bag open.
        """
        self._name, dumps, self._loads = serializer_of(serializer)
        self._dumps = _refusing(self._name, dumps)
        native = _native.RecordBag.open(folder_of(path), self._name, parse_budget(budget))
        super().__init__(native, path)

    @property
    def serializer(self) -> str:
        """Name of the serializer."""
        return self._name

    @property
    def count(self) -> int:
        """Number of records that were not removed."""
        return self.native.count

    @property
    def file_bytes(self) -> int:
        """Size of the file."""
        return self.native.file_bytes()

    def __len__(self) -> int:
        """Return the number of ids issued; removed records keep theirs."""
        return len(self.native)

    def __repr__(self) -> str:
        """Return path, serializer and length."""
        length = "closed" if self.closed else counted(self.count, "record")
        return f"Bag({self._path!r}, serializer={self._name!r}): {length}"

    def _value(self, id: int, record: bytes) -> Any:
        try:
            return self._loads(record)
        except UnicodeDecodeError as error:
            raise CorruptError(f"record {id} of {self._path} is not text: {error}") from None

    @described(COLLECTION, "record", "closed", "corrupt", "io")
    def fetch(self, id: int) -> Any:
        """Return one record, as `bag[id]` does.

        Returns:
            The value.

        >>> import brimful as bf, tempfile
        >>> with bf.Bag(tempfile.mkdtemp() + "/x", serializer="str") as bag:
        ...     first = bag.extend(["one", "two", "three"])
        ...     bag.fetch(1)
        'two'
        """
        return self[id]

    @described(COLLECTION, "record", "closed", "corrupt", "io")
    def fetch_range(self, start: int, count: int) -> list[Any]:
        """Return consecutive records.

        Returns:
            A list; None stands for a removed record.

        >>> import brimful as bf, tempfile
        >>> with bf.Bag(tempfile.mkdtemp() + "/x", serializer="str") as bag:
        ...     first = bag.extend(["one", "two", "three"])
        ...     del bag[1]
        ...     bag.fetch_range(0, 3)
        ['one', None, 'three']
        """
        start, count = whole(start, "an id"), whole(count, "a number of records")
        records = self.native.fetch_range(start, count)
        numbered = zip(itertools.count(start), records, strict=False)
        return [None if record is None else self._value(id, record) for id, record in numbered]

    @described(COLLECTION, "record", "closed", "corrupt", "io")
    def fetch_batch(self, ids: numpy.typing.ArrayLike) -> list[Any]:
        """Return the records with these ids, in their order.

        Returns:
            A list of values.

        >>> import brimful as bf, tempfile
        >>> with bf.Bag(tempfile.mkdtemp() + "/x", serializer="str") as bag:
        ...     first = bag.extend(["one", "two", "three"])
        ...     bag.fetch_batch([2, 0])
        ['three', 'one']
        """
        checked_ids = record_ids(ids, len(self))
        records = self.native.fetch_batch(checked_ids)
        if self._name == "bytes":
            return list(records)
        pairs = zip(checked_ids.tolist(), records, strict=True)
        return [self._value(id, record) for id, record in pairs]

    @described(COLLECTION, "record", "closed", "corrupt", "io")
    def store(self, id: int, value: Any) -> None:
        """Replace one record, as `bag[id] = value` does; a removed record exists again.

        Raises:
            UsageError: The serializer cannot write the value.

        >>> import brimful as bf, tempfile
        >>> with bf.Bag(tempfile.mkdtemp() + "/x", serializer="str") as bag:
        ...     first = bag.extend(["one", "two", "three"])
        ...     bag.store(1, "second")
        ...     bag[1]
        'second'
        """
        self.native.store(one_id(id, len(self)), self._dumps(value))

    @described(COLLECTION, "record", "closed", "corrupt", "io")
    def store_batch(self, ids: numpy.typing.ArrayLike, values: Iterable[Any]) -> None:
        """Replace the records with these ids; if an id occurs twice, the last value wins.

        Raises:
            UsageError: The serializer cannot write a value.

        >>> import brimful as bf, tempfile
        >>> with bf.Bag(tempfile.mkdtemp() + "/x", serializer="str") as bag:
        ...     first = bag.extend(["one", "two", "three"])
        ...     bag.store_batch([2, 0], ["3", "1"])
        ...     list(bag)
        ['1', 'two', '3']
        """
        records = [self._dumps(value) for value in several(values, "records")]
        self.native.store_batch(record_ids(ids, len(self)), records)

    @described(COLLECTION, "closed", "corrupt", "io")
    def append(self, value: Any) -> int:
        """Append one record.

        Returns:
            Its id.

        Raises:
            UsageError: The serializer cannot write the value.

        >>> import brimful as bf, tempfile
        >>> with bf.Bag(tempfile.mkdtemp() + "/x", serializer="str") as bag:
        ...     first = bag.extend(["one", "two", "three"])
        ...     bag.append("four")
        3
        """
        return self.native.extend([self._dumps(value)])

    @described(COLLECTION, "closed", "corrupt", "io")
    def extend(self, values: Iterable[Any]) -> int:
        """Append records, in batches.

        Returns:
            The id of the first one.

        Raises:
            UsageError: The serializer cannot write a value.

        >>> import brimful as bf, tempfile
        >>> with bf.Bag(tempfile.mkdtemp() + "/x", serializer="str") as bag:
        ...     first = bag.extend(["one", "two", "three"])
        ...     bag.extend(["four", "five"]), len(bag)
        (3, 5)
        """
        first = len(self)
        records = map(self._dumps, several(values, "records"))
        count = len(values) if isinstance(values, Sized) else None
        with whole_chunks(lambda: len(self), count, "records"):
            for batch in _in_batches(records):
                self.native.extend(batch)
        return first

    @described(COLLECTION, "record", "closed", "corrupt", "io")
    def append_to(self, id: int, value: Any) -> None:
        """Add to the end of a record of bytes or text: amortized O(1).

        Args:
            value: Bytes or text.

        Raises:
            UsageError: The serializer writes neither bytes nor text.

        >>> import brimful as bf, tempfile
        >>> with bf.Bag(tempfile.mkdtemp() + "/x", serializer="str") as bag:
        ...     first = bag.extend(["one", "two", "three"])
        ...     bag.append_to(0, " more")
        ...     bag[0]
        'one more'
        """
        self._require_concatenation()
        self.native.append_to(one_id(id, len(self)), self._dumps(value))

    @described(COLLECTION, "record", "closed", "corrupt", "io")
    def append_to_batch(self, ids: numpy.typing.ArrayLike, values: Iterable[Any]) -> None:
        """Add to the ends of the records with these ids, in their order.

        Raises:
            UsageError: The serializer writes neither bytes nor text.

        >>> import brimful as bf, tempfile
        >>> with bf.Bag(tempfile.mkdtemp() + "/x", serializer="str") as bag:
        ...     first = bag.extend(["one", "two", "three"])
        ...     bag.append_to_batch([0, 2], ["!", "?"])
        ...     list(bag)
        ['one!', 'two', 'three?']
        """
        self._require_concatenation()
        records = [self._dumps(value) for value in several(values, "records")]
        self.native.append_to_batch(record_ids(ids, len(self)), records)

    def _require_concatenation(self) -> None:
        if self._name not in ("bytes", "str"):
            raise UsageError(
                "append_to needs a bag of bytes or text, but the serializer of this bag is "
                f"'{self._name}'; store the whole record instead"
            )

    @described(COLLECTION, "record", "closed", "corrupt", "io")
    def remove(self, id: int) -> None:
        """Remove one record, as `del bag[id]` does; its id is not issued again.

        >>> import brimful as bf, tempfile
        >>> with bf.Bag(tempfile.mkdtemp() + "/x", serializer="str") as bag:
        ...     first = bag.extend(["one", "two", "three"])
        ...     bag.remove(1)
        ...     list(bag), len(bag)
        (['one', 'three'], 3)
        """
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

    @described(COLLECTION, "closed", "corrupt", "io")
    def items(self) -> Iterator[tuple[int, Any]]:
        """Yield the ids and values of all records that were not removed.

        Yields:
            Pairs `(id, value)`, by ascending id.

        >>> import brimful as bf, tempfile
        >>> with bf.Bag(tempfile.mkdtemp() + "/x", serializer="str") as bag:
        ...     first = bag.extend(["one", "two", "three"])
        ...     del bag[1]
        ...     list(bag.items())
        [(0, 'one'), (2, 'three')]
        """
        for id, record in self._records(range(len(self))):
            yield id, self._value(id, record)

    def _records(
        self, ids: range | numpy.typing.NDArray[numpy.uint64]
    ) -> Iterator[tuple[int, bytes]]:
        """Yield id and bytes of the records that exist; a range is read in batches."""
        if not isinstance(ids, range):
            for id in ids.tolist():
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

    @described(COLLECTION, "record", "closed", "corrupt", "io")
    def process(
        self,
        update: Callable[[int, Any], Any],
        order: str | range | Sequence[range] | Sequence[int] | None = None,
    ) -> None:
        """Stream the bag through a function that returns new values.

        Args:
            update: Called with the id and the value of each record; returns the new value, or None
                to keep the old one. Only records whose bytes changed are written back.
            order: "ascending", "descending", a range, ranges or ids, each record at most once;
                None: ascending.

        Raises:
            UsageError: The order is unknown, or has a record twice.

        >>> import brimful as bf, tempfile
        >>> with bf.Bag(tempfile.mkdtemp() + "/x", serializer="str") as bag:
        ...     first = bag.extend(["one", "two", "three"])
        ...     bag.process(lambda id, value: value.upper())
        ...     list(bag)
        ['ONE', 'TWO', 'THREE']
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

    @described(COLLECTION, "closed", "corrupt", "io")
    def compact(self) -> None:
        """Release unused space; syncs.

        >>> import brimful as bf, tempfile
        >>> with bf.Bag(tempfile.mkdtemp() + "/x", serializer="str") as bag:
        ...     first = bag.extend(["one", "two", "three"])
        ...     del bag[1]
        ...     bag.compact()
        ...     bag.count
        2
        """
        self.native.compact()


def serializer_of(
    serializer: str | Serializer,
) -> tuple[str, Callable[[Any], bytes], Callable[[bytes], Any]]:
    """Return name, `dumps` and `loads` of a serializer, given by name or as an object.

    Raises:
        UsageError: There is no such serializer.
    """
    if serializer == "bytes":
        return "bytes", _require_bytes, bytes
    if serializer == "str":
        return "str", _encode_text, bytes.decode
    if serializer == "json":
        import json

        return "json", lambda value: json.dumps(value, default=_json_number).encode(), json.loads
    if serializer == "pickle":
        import pickle

        return "pickle", lambda value: pickle.dumps(value, protocol=5), pickle.loads
    if isinstance(serializer, str):
        raise UsageError(
            f"there is no serializer '{shortened(serializer)}'; use {', '.join(_NAMED)}, or an "
            f"object with dumps and loads{did_you_mean(serializer, _NAMED)}"
        )
    if not (hasattr(serializer, "dumps") and hasattr(serializer, "loads")):
        raise UsageError(f"a serializer must have dumps and loads, and {serializer!r} does not")
    name = str(getattr(serializer, "__name__", type(serializer).__qualname__))
    # The module `pickle` writes what "pickle" does; others only share the name of a built-in one.
    if name in _NAMED and serializer is not sys.modules.get("pickle"):
        name = f"object {name}"
    return name, _returning_bytes(serializer.dumps), serializer.loads


def _returning_bytes(dumps: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """Return `dumps` of a user with an error if it returns anything but bytes."""

    def write(value: Any) -> bytes:
        data = dumps(value)
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"its dumps returned {type(data).__name__}, not bytes")
        return bytes(data)

    return write


def _refusing(name: str, dumps: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """Return `dumps` with an error of brimful for a value that it cannot write."""

    def write(value: Any) -> bytes:
        try:
            return dumps(value)
        except BrimfulError:
            raise
        except Exception as error:
            raise UsageError(
                f"the serializer {name} cannot write {type(value).__name__}: {error}; open the bag "
                "with another serializer"
            ) from error

    return write


def _json_number(value: Any) -> Any:
    """Return a number or truth value of NumPy as one of Python, for JSON.

    Raises:
        TypeError: The value is something else.
    """
    import numpy as np

    if isinstance(value, np.number | np.bool_):
        return value.item()
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _require_bytes(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError("it writes only bytes")
    return bytes(value)


def _encode_text(value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError("it writes only text")
    return value.encode()
