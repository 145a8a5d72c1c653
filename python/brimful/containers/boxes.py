"""`Box`: a disk-resident array of fixed-size records with a NumPy dtype."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from brimful import _native
from brimful.containers.collection import (
    CHUNK_BYTES,
    Collection,
    batches,
    folder_of,
    one_id,
    record_ids,
    whole_chunks,
)
from brimful.errors import UsageError
from brimful.options.checks import whole
from brimful.options.described import COLLECTION, described
from brimful.packages import numpy
from brimful.sizes import Budget, parse_budget
from brimful.wording import counted, shortened


class Box(Collection[_native.RecordBox]):
    """A disk-resident array of fixed-size records, in a memory budget.

    It is indexed like an array: `box[3]`, `box[2:5]`, `box[[7, 3]]` and `box[mask]` return records
    and can be assigned to.

    >>> import brimful as bf, tempfile
    >>> with bf.Box(tempfile.mkdtemp() + "/x", "f8", budget="64M") as box:
    ...     first = box.extend([1.5, 2.5, 3.5])
    ...     box[1] = 7
    ...     len(box), box[0].item(), box[1:].tolist(), box[[2, 0]].tolist()
    ...     box.dtype, box.file_bytes > 0, box.path.endswith("/x"), box.closed
    (3, 1.5, [7.0, 3.5], [3.5, 1.5])
    (dtype('float64'), True, True, False)
    """

    @described(COLLECTION, "usage", "budget", "corrupt", "io")
    def __init__(
        self, path: str | os.PathLike[str], dtype: numpy.typing.DTypeLike, *, budget: Budget = None
    ) -> None:
        """Open the box at `path`, or make it.

        Args:
            dtype: NumPy dtype of fixed size, structured ones included.

        Raises:
            InputError: The box was made with another dtype, or is another collection.
            StoreIoError: Another process has the box open.
        """
        try:
            self._dtype = np.dtype(dtype)
        except (TypeError, ValueError) as error:
            raise UsageError(f"{shortened(dtype)} is not a dtype of NumPy: {error}") from error
        if self._dtype.hasobject or self._dtype.itemsize == 0:
            raise UsageError(
                f"records of {self._dtype} have no fixed size; use brimful.Bag for objects"
            )
        if self._dtype.subdtype is not None:
            raise UsageError(
                f"a record cannot be an array, as in {self._dtype}; name it as a field, such as "
                f"[('values', '{self._dtype.base.str}', {self._dtype.shape})]"
            )
        try:
            described = repr(np.lib.format.dtype_to_descr(self._dtype))
        except ValueError:
            raise UsageError(
                "fields of records must be in the order of their offsets, without overlap, not "
                f"as in {self._dtype}"
            ) from None
        native = _native.RecordBox.open(
            folder_of(path), self._dtype.itemsize, described, parse_budget(budget)
        )
        super().__init__(native, path)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the records."""
        return self._dtype

    @property
    def file_bytes(self) -> int:
        """Size of the file."""
        return self.native.file_bytes()

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.native)

    def __repr__(self) -> str:
        """Return path, dtype and length."""
        length = "closed" if self.closed else counted(len(self), "record")
        return f"Box({self._path!r}, {self._dtype!r}): {length}"

    def _array(self, records: bytes | bytearray) -> numpy.typing.NDArray[Any]:
        return np.frombuffer(records, self._dtype)

    def _bytes(
        self, records: numpy.typing.ArrayLike, *, count: int | None = None
    ) -> numpy.typing.NDArray[np.uint8]:
        """Return records as bytes; they must be `count`, or one for all."""
        array = self._converted(records)
        if count is not None:
            if array.shape not in ((), (count,)):
                raise UsageError(
                    f"expected {counted(count, 'record')}, found an array of shape {array.shape}"
                )
            array = np.broadcast_to(array, (count,))
        elif array.ndim != 1:
            raise UsageError(f"records must be an array of one dimension, not {array.ndim}")
        flat: numpy.typing.NDArray[np.uint8] = (
            np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        )
        return flat

    def _converted(self, records: numpy.typing.ArrayLike) -> numpy.typing.NDArray[Any]:
        """Return records as this dtype; only the precision of a float may be lost."""
        if isinstance(records, Iterator):
            raise UsageError(
                f"records must be an array or a list, not {type(records).__name__}; "
                "numpy.fromiter makes an array"
            )
        try:
            return _cast(records, self._dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise UsageError(f"the records do not fit {self._dtype}: {error}") from None

    @described(COLLECTION, "record", "closed", "corrupt", "io")
    def fetch(self, id: int) -> Any:
        """Return one record, as `box[id]` does.

        Returns:
            A scalar of the dtype, or a tuple-like record of a structured one.

        >>> import brimful as bf, tempfile
        >>> with bf.Box(tempfile.mkdtemp() + "/x", "i8") as box:
        ...     first = box.extend([1, 2, 3])
        ...     box.fetch(1).item()
        2
        """
        return self[id]

    @described(COLLECTION, "record", "closed", "corrupt", "io")
    def fetch_range(self, start: int, count: int) -> numpy.typing.NDArray[Any]:
        """Return consecutive records.

        Returns:
            A new, writable array[count].

        >>> import brimful as bf, tempfile
        >>> with bf.Box(tempfile.mkdtemp() + "/x", "i8") as box:
        ...     first = box.extend([1, 2, 3])
        ...     box.fetch_range(1, 2).tolist()
        [2, 3]
        """
        start, count = whole(start, "an id"), whole(count, "a number of records")
        return self._array(self.native.fetch_range(start, count))

    @described(COLLECTION, "record", "closed", "corrupt", "io")
    def fetch_batch(self, ids: numpy.typing.ArrayLike) -> numpy.typing.NDArray[Any]:
        """Return the records with these ids, in their order.

        Returns:
            A new, writable array[len(ids)].

        >>> import brimful as bf, tempfile
        >>> with bf.Box(tempfile.mkdtemp() + "/x", "i8") as box:
        ...     first = box.extend([1, 2, 3])
        ...     box.fetch_batch([2, 0, 2]).tolist()
        [3, 1, 3]
        """
        return self._array(self.native.fetch_batch(record_ids(ids, len(self))))

    @described(COLLECTION, "record", "closed", "corrupt", "io")
    def store(self, id: int, record: Any) -> None:
        """Replace one record, as `box[id] = record` does.

        Raises:
            UsageError: The record would have to be changed to fit the dtype.

        >>> import brimful as bf, tempfile
        >>> with bf.Box(tempfile.mkdtemp() + "/x", "i8") as box:
        ...     first = box.extend([1, 2, 3])
        ...     box.store(1, 20)
        ...     box[1].item()
        20
        """
        self[id] = record

    @described(COLLECTION, "record", "closed", "corrupt", "io")
    def store_range(self, start: int, records: numpy.typing.ArrayLike) -> None:
        """Replace consecutive records from `start` on.

        Raises:
            UsageError: A record would have to be changed to fit the dtype.

        >>> import brimful as bf, tempfile
        >>> with bf.Box(tempfile.mkdtemp() + "/x", "i8") as box:
        ...     first = box.extend([1, 2, 3])
        ...     box.store_range(1, [20, 30])
        ...     box[:].tolist()
        [1, 20, 30]
        """
        self.native.store_range(whole(start, "an id"), self._bytes(records))

    @described(COLLECTION, "record", "closed", "corrupt", "io")
    def store_batch(self, ids: numpy.typing.ArrayLike, records: numpy.typing.ArrayLike) -> None:
        """Replace the records with these ids; if an id occurs twice, the last record wins.

        Args:
            records: One record for each id, or one for all.

        Raises:
            UsageError: A record would have to be changed to fit the dtype.

        >>> import brimful as bf, tempfile
        >>> with bf.Box(tempfile.mkdtemp() + "/x", "i8") as box:
        ...     first = box.extend([1, 2, 3])
        ...     box.store_batch([2, 0], [30, 10])
        ...     box[:].tolist()
        [10, 2, 30]
        """
        checked_ids = record_ids(ids, len(self))
        self.native.store_batch(checked_ids, self._bytes(records, count=len(checked_ids)))

    @described(COLLECTION, "closed", "corrupt", "io")
    def append(self, record: Any) -> int:
        """Append one record.

        Returns:
            Its id.

        Raises:
            UsageError: The record would have to be changed to fit the dtype.

        >>> import brimful as bf, tempfile
        >>> with bf.Box(tempfile.mkdtemp() + "/x", "i8") as box:
        ...     first = box.extend([1, 2, 3])
        ...     box.append(4), len(box)
        (3, 4)
        """
        return self.native.extend(self._bytes(_scalar(record, self._dtype), count=1))

    @described(COLLECTION, "closed", "corrupt", "io")
    def extend(self, records: numpy.typing.ArrayLike) -> int:
        """Append records.

        Args:
            records: An array of one dimension, or a list.

        Returns:
            The id of the first one.

        Raises:
            UsageError: A record would have to be changed to fit the dtype.

        >>> import brimful as bf, tempfile
        >>> with bf.Box(tempfile.mkdtemp() + "/x", "i8") as box:
        ...     first = box.extend([1, 2, 3])
        ...     box.extend([4, 5]), len(box)
        (3, 5)
        """
        # A list takes more memory than its array; an array is converted in chunks.
        array = records if isinstance(records, np.ndarray) else self._converted(records)
        first = len(self)
        if array.ndim != 1:
            raise UsageError(f"records must be an array of one dimension, not {array.ndim}")
        step = max(1, CHUNK_BYTES // self._dtype.itemsize)
        parts = [array[start : start + step] for start in range(0, len(array), step)]
        if len(parts) > 1 and array.dtype != self._dtype:
            # A record that does not fit is refused before any is appended.
            for part in parts:
                self._converted(part)
        with whole_chunks(lambda: len(self), len(array), "records"):
            for part in parts:
                self.native.extend(self._bytes(part))
        return first

    @described(COLLECTION, "closed", "corrupt", "io")
    def resize(self, length: int) -> None:
        """Make the box `length` records long; new records are zero.

        Args:
            length: Number of records.

        >>> import brimful as bf, tempfile
        >>> with bf.Box(tempfile.mkdtemp() + "/x", "i8") as box:
        ...     first = box.extend([1, 2, 3])
        ...     box.resize(5)
        ...     box[:].tolist()
        [1, 2, 3, 0, 0]
        """
        self.native.resize(whole(length, "the length of a box"))

    def __getitem__(self, key: Any) -> Any:
        """Return a record, or an array of those that a slice, a list of ids or a mask names."""
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1:
                return self.fetch_range(start, max(0, stop - start))
            return self.fetch_batch(np.arange(start, stop, step))
        if _names_several(key):
            return self.fetch_batch(self._positions(key))
        return self._array(self.native.fetch(one_id(key, len(self))))[0]

    def __setitem__(self, key: Any, records: Any) -> None:
        """Replace the records that `__getitem__` would return, by as many or by one for all."""
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            positions = range(start, stop, step)
            if step == 1:
                data = self._bytes(records, count=len(positions))
                self.native.store_range(start, data)
            else:
                self.store_batch(np.arange(start, stop, step), records)
        elif _names_several(key):
            self.store_batch(self._positions(key), records)
        else:
            data = self._bytes(_scalar(records, self._dtype), count=1)
            self.native.store_range(one_id(key, len(self)), data)

    def _positions(self, key: numpy.typing.ArrayLike) -> numpy.typing.ArrayLike:
        try:
            array = np.asarray(key)
        except ValueError as error:
            raise UsageError(f"ids must be a list of integers or a mask: {error}") from None
        if array.dtype == bool:
            if array.shape != (len(self),):
                raise UsageError(
                    f"a mask of {counted(len(self), 'record')} cannot have shape {array.shape}"
                )
            return np.flatnonzero(array)
        return key  # The array may be one of rounded floats.

    def __iter__(self) -> Iterator[Any]:
        """Yield all records, reading them in batches."""
        step = self.native.batch_len
        for start in range(0, len(self), step):
            yield from self.fetch_range(start, min(step, len(self) - start))

    def __contains__(self, record: object) -> bool:
        """Return whether some record equals `record`: one sequential pass."""
        wanted = self._held(record)
        if wanted is None:
            return False
        step = self.native.batch_len
        starts = range(0, len(self), step)
        return any(
            bool((self.fetch_range(start, min(step, len(self) - start)) == wanted).any())
            for start in starts
        )

    def _held(self, record: Any) -> numpy.typing.NDArray[Any] | None:
        """Return the record of this dtype that equals `record`; None: the box cannot hold it."""
        forms = [record]
        # True, 1 and 1.0 are equal, whichever of them the dtype takes.
        if isinstance(record, float) and record.is_integer():
            forms.append(int(record))
        if isinstance(record, (int, float, np.integer)) and record in (0, 1):
            forms += [int(record), bool(record)]
        for form in forms:
            try:
                return _scalar(form, self._dtype)
            except UsageError:
                continue
        return None

    @described(COLLECTION, "record", "closed", "corrupt", "io")
    def process(
        self,
        update: Callable[[numpy.typing.NDArray[Any]], object],
        order: str | range | Sequence[range] | numpy.typing.ArrayLike | None = None,
    ) -> None:
        """Stream the box through a function that changes batches in place.

        Batches are sized by the budget; the next one is read while `update` runs, and only changed
        records are written back.

        Args:
            update: Called with each batch, an array.
            order: "ascending", "descending", a range, ranges or ids, each record at most once;
                None: ascending.

        Raises:
            UsageError: The order is unknown, or has a record twice.

        >>> import brimful as bf, tempfile
        >>> with bf.Box(tempfile.mkdtemp() + "/x", "i8") as box:
        ...     first = box.extend([1, 2, 3])
        ...     box.process(lambda batch: batch.__imul__(10))
        ...     box[:].tolist()
        [10, 20, 30]
        """
        parts = batches(order, len(self), self.native.batch_len)
        with ThreadPoolExecutor(1, "brimful-read") as reader:
            coming = reader.submit(self._read, parts[0]) if parts else None
            for index, part in enumerate(parts):
                if coming is None:
                    break
                batch = coming.result()
                later = index + 1 < len(parts)
                coming = reader.submit(self._read, parts[index + 1]) if later else None
                before = batch.copy()
                update(batch)
                changed = np.flatnonzero(_rows(batch) != _rows(before))
                if len(changed) == 0:
                    continue
                if isinstance(part, range) and len(changed) == len(batch):
                    self.store_range(part.start, batch)
                elif isinstance(part, range):
                    self.store_batch(changed + part.start, batch[changed])
                else:
                    self.store_batch(part[changed], batch[changed])

    def _read(self, part: range | numpy.typing.NDArray[np.uint64]) -> numpy.typing.NDArray[Any]:
        if isinstance(part, range):
            return self.fetch_range(part.start, len(part))
        return self.fetch_batch(part)

    @described(COLLECTION, "closed", "corrupt", "io")
    def compact(self) -> None:
        """Release unused space of the file; syncs.

        >>> import brimful as bf, tempfile
        >>> with bf.Box(tempfile.mkdtemp() + "/x", "i8") as box:
        ...     first = box.extend([1, 2, 3])
        ...     box.resize(1)
        ...     box.compact()
        ...     len(box)
        1
        """
        self.native.compact()


def _names_several(key: Any) -> bool:
    """Return whether an index is a list of ids or a mask."""
    return isinstance(key, (list, tuple)) or (isinstance(key, np.ndarray) and key.ndim > 0)


def _rows(records: numpy.typing.NDArray[Any]) -> numpy.typing.NDArray[Any]:
    """Return records as bytes, which compare as such, NaNs included."""
    return records.view(np.dtype((np.void, records.dtype.itemsize)))


def _scalar(record: Any, dtype: np.dtype[Any]) -> numpy.typing.NDArray[Any]:
    """Return one record.

    Raises:
        UsageError: `record` is not one record, or is a string too long for `dtype`.
    """
    try:
        array = _cast(record, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"{record!r} does not fit {dtype}: {error}") from None
    if array.shape != ():
        raise UsageError(f"expected one record of {dtype}, found an array of shape {array.shape}")
    return array


def _cast(records: numpy.typing.ArrayLike, wanted: np.dtype[Any]) -> numpy.typing.NDArray[Any]:
    """Return records as `wanted`; only the precision of a float may be lost."""
    if wanted.names is not None:
        return _cast_fields(records, wanted)
    array = np.asarray(records)
    if array.dtype == wanted:
        return array
    if array.size == 0:
        return array.astype(wanted)
    if array.dtype.kind in "iu" and wanted.kind in "iu":
        bounds = np.iinfo(wanted)
        if int(array.min()) < bounds.min or int(array.max()) > bounds.max:
            raise ValueError(f"they reach from {array.min()} to {array.max()}")
        return array.astype(wanted)
    if array.dtype.kind == wanted.kind in "SU" and array.dtype.itemsize > wanted.itemsize:
        raise ValueError(f"their type {array.dtype} is wider")
    if array.dtype.kind == "O" and wanted.kind in "fc":
        array = _integers_as_floats(array)
    with np.errstate(over="ignore"):
        cast = array.astype(wanted, casting="same_kind")
    if wanted.kind in "fc":
        for given, found in ((array.real, cast.real), (array.imag, cast.imag)):
            if bool((np.isinf(found) & np.isfinite(given)).any()):
                raise ValueError(f"they reach beyond {np.finfo(wanted).max}")
    elif not _is_same(array, cast):
        raise ValueError(f"a conversion from {array.dtype} would change them")
    return cast


def _integers_as_floats(array: numpy.typing.NDArray[Any]) -> numpy.typing.NDArray[Any]:
    """Return objects as floats if they are integers, which may be longer than 64 bits."""
    is_whole = all(isinstance(each, int) for each in array.reshape(-1))
    return array.astype(np.float64) if is_whole else array


def _is_same(array: numpy.typing.NDArray[Any], cast: numpy.typing.NDArray[Any]) -> bool:
    """Return whether a cast to text, times, truth values or raw bytes left an array unchanged."""
    kind = cast.dtype.kind
    if kind in "SU":
        # As text without a limit of its length.
        return bool((array.astype(kind) == cast).all())
    if kind in "mM":
        same = cast.astype(array.dtype) == array
        if array.dtype.kind == kind:
            same |= np.isnat(array) & np.isnat(cast)
        return bool(same.all())
    return kind != "V" or array.dtype.itemsize <= cast.dtype.itemsize


def _cast_fields(
    records: numpy.typing.ArrayLike, wanted: np.dtype[Any]
) -> numpy.typing.NDArray[Any]:
    """Return records of named fields, each field as `_cast` would."""
    if getattr(records, "dtype", None) == wanted:
        return np.asarray(records)
    if isinstance(records, (np.ndarray, np.void)) and records.dtype.names is not None:
        given = np.asarray(records)
    else:
        # Objects first: a tuple's 1.5 would become 1, and text would be cut.
        loose = [(name, "O", wanted[name].shape) for name in wanted.names or ()]
        given = np.array(records, loose)
    if given.dtype.names != wanted.names:
        raise ValueError(f"their fields are {given.dtype.names}")
    array = np.zeros(given.shape, wanted)
    for name in wanted.names or ():
        column = given[name]
        kind = wanted[name]
        if kind.names is None and column.dtype.kind == "O":
            column = np.array(column.tolist())
        array[name] = _cast(column.tolist() if kind.names else column, kind.base)
    return array
