"""Results of NetworkX functions that read from a file: a mapping of values, and sets of nodes.

NetworkX returns dictionaries and sets; those of a graph larger than memory would not fit.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping, Set, ValuesView
from typing import TYPE_CHECKING, Any

from brimful.errors import NotFoundError
from brimful.ids import column_ids, id_of_name, text_id
from brimful.io.output import stream_batches
from brimful.streamed import StreamedItems, StreamedValues
from brimful.wording import counted

if TYPE_CHECKING:
    import pyarrow

    from brimful.result import Result

#: A function that turns a vertex and its value into an answer; None: the vertex has none.
Reader = Callable[[Any, Any], Any]


def unchanged(vertex: Any, value: Any) -> Any:
    """Return the value itself, of a result in which every vertex has one."""
    return value


class Values(Mapping[Any, Any]):
    """The return values of a function by vertex, in ascending order, computed from a result.

    Rows are read in batches. `result` has both columns, figures of the run, and files.
    """

    def __init__(self, result: Result, read: Reader = unchanged) -> None:
        """Take a result, and a function that turns a vertex and its value into an answer."""
        self.result = result
        self._read = read
        self._length: int | None = None

    def __getitem__(self, vertex: Any) -> Any:
        """Return the value of a vertex.

        Raises:
            NotFoundError: There is no such vertex, or it has no value (also a `KeyError`).
        """
        value = self._read(vertex, self.result[vertex])
        if value is None:
            raise NotFoundError(f"vertex {vertex} has no value")
        return value

    def __contains__(self, vertex: object) -> bool:
        """Return whether a vertex has a value."""
        try:
            self[vertex]
        except NotFoundError:
            return False
        return True

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the vertices that have a value."""
        return (vertex for vertex, _ in self._stream())

    def __len__(self) -> int:
        """Return the number of vertices that have a value; counted once, in a pass."""
        if self._length is None:
            whole = self._read is unchanged
            self._length = len(self.result) if whole else sum(1 for _ in self._stream())
        return self._length

    def items(self) -> ItemsView[Any, Any]:
        """Return a view of pairs of vertices and values, read in batches."""
        return StreamedItems(self)

    def values(self) -> ValuesView[Any]:
        """Return a view of the values, read in batches."""
        return StreamedValues(self)

    def __repr__(self) -> str:
        """Return the first rows."""
        return f"<brimful answer of {self.result!r}>"

    def _stream(self) -> Iterator[tuple[Any, Any]]:
        """Yield vertices and values, out of batches."""
        for vertex, stored in self.result.items():
            value = self._read(vertex, stored)
            if value is not None:
                yield vertex, value


class Members(Set[Any]):
    """The vertices that have one value in a result, in ascending order.

    `in` looks the vertex up in the result. Operators such as `|` make a `set`.
    """

    def __init__(self, result: Result, value: Any, vertices: pyarrow.Array) -> None:
        """Take a result, a value of it, and the vertices that have the value."""
        self._result = result
        self._value = value
        self._vertices = vertices

    @classmethod
    def of(cls, result: Result, value: Any) -> Members:
        """Return the vertices that have a value; one pass over the result."""
        import pyarrow as pa
        import pyarrow.compute as pc

        def having(vertices: pyarrow.Array, values: pyarrow.Array) -> pyarrow.Array:
            own = text_id(value) if pa.types.is_string(values.type) else value
            return vertices.filter(pc.equal(values, own))

        parts = [having(*batch.columns) for batch in batches(result)]
        return cls(result, value, pa.chunked_array(parts))

    @classmethod
    def _from_iterable(cls, items: Any) -> set[Any]:
        return set(items)

    def __contains__(self, vertex: object) -> bool:
        """Return whether a vertex has the value."""
        try:
            is_equal: bool = self._result[vertex] == self._value  # type: ignore[index]
        except NotFoundError:
            return False
        return is_equal

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the vertices, in batches."""
        for start in range(0, len(self._vertices), _BATCH):
            yield from column_ids(self._vertices.slice(start, _BATCH))

    def __len__(self) -> int:
        """Return the number of vertices."""
        return len(self._vertices)

    def __repr__(self) -> str:
        """Return the size."""
        return f"<{counted(len(self), 'vertex')}>"


#: Rows that iteration converts to Python objects at a time.
_BATCH = 65_536


def batches(result: Result) -> Iterator[pyarrow.RecordBatch]:
    """Yield the rows of a result as record batches of vertex and value."""
    return stream_batches(result)


def groups(result: Result) -> Iterator[Members]:
    """Yield the vertices of each value, ascending by value.

    Memory: both columns and the order of the rows, some 32 bytes a vertex.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    table = result.to_arrow()
    # The order is stable: vertices of one value stay in ascending order.
    order = pc.sort_indices(table, sort_keys=[(result.column, "ascending")])
    vertices, values = (table.column(at).take(order).combine_chunks() for at in (0, 1))
    del table, order
    runs = pc.run_end_encode(values, run_end_type=pa.int64())
    start = 0
    for end, value in zip(runs.run_ends, runs.values, strict=True):
        yield Members(result, id_of_name(value.as_py()), vertices.slice(start, end.as_py() - start))
        start = end.as_py()


def count_groups(result: Result) -> int:
    """Return the number of components; the value of each is its smallest vertex."""
    import pyarrow.compute as pc

    counts = (pc.sum(pc.equal(rows.column(0), rows.column(1))).as_py() for rows in batches(result))
    return sum(count or 0 for count in counts)
