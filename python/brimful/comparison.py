"""Two results side by side: where they differ, how far, and whether their order is the same.

Invariant: rows of both are in memory in batches only. The rank correlation needs all values; it is
left out where they do not fit the budget.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from brimful.errors import InputError, UsageError
from brimful.io.output import native_batches
from brimful.options.described import described
from brimful.saved import SavedResult
from brimful.sizes import Budget, parse_budget
from brimful.wording import shortened

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Floats are equal within this, relative to the larger one: sums of two paths may differ so far.
FLOAT_TOLERANCE = 1e-9
#: Bytes of a vertex while the rank correlation is computed: two values, their ranks and orders.
_RANKED_BYTES = 80


@dataclass(frozen=True)
class Comparison:
    """How two results differ.

    Attributes:
        columns: Names of both value columns.
        vertices: Number of vertices that both have.
        only_first: Number of vertices that only the first has.
        only_second: Number of vertices that only the second has.
        tolerance: Largest difference that counts as none, relative to the larger value.
        differing: Number of vertices whose values differ by more.
        largest_difference: Largest absolute difference of two numbers; None: no vertex has both.
        largest_relative: Largest difference relative to the larger value; None likewise.
        rank_correlation: Spearman's, of the values that both have, from -1 to 1; None: the values
            are no numbers, all equal, or more than the budget holds.
        differences: The vertices with the largest differences, each with both values. A value
            that one of the two lacks comes first.

    >>> import brimful as bf, pyarrow as pa
    >>> first = pa.table({"vertex": [1, 2, 3], "rank": [0.5, 0.3, 0.2]})
    >>> second = pa.table({"vertex": [1, 2, 3], "rank": [0.5, 0.2, 0.3]})
    >>> found = bf.compare(first, second)
    >>> found.equal, found.differing, found.rank_correlation
    (False, 2, 0.5)
    """

    columns: tuple[str, str]
    vertices: int
    only_first: int
    only_second: int
    tolerance: float
    differing: int
    largest_difference: float | None
    largest_relative: float | None
    rank_correlation: float | None
    differences: list[tuple[Any, Any, Any]]

    @property
    def equal(self) -> bool:
        """Whether the two have the same vertices, and no value differs: `compare(a, a).equal`."""
        return not (self.differing or self.only_first or self.only_second)


@described({}, "usage", "corrupt", "io")
def compare(
    first: object,
    second: object,
    *,
    tolerance: float | None = None,
    top: int = 10,
    budget: Budget = None,
) -> Comparison:
    """Compare two results, vertex by vertex.

    Args:
        first: A `Result`, the path of a saved one, or any table with `__arrow_c_stream__` whose
            columns are `vertex`, ascending, and a value.
        second: Another one.
        tolerance: Values are equal if they differ by at most this share of the larger one; None:
            1e-9 for floats, 0 for integers.
        top: Number of differences to return.
        budget: Memory for the rank correlation, 80 bytes a vertex, in bytes or as "500M"; None:
            three quarters of the available memory.

    Returns:
        A `Comparison`.

    Raises:
        InputError: A table has other columns, or its vertices do not ascend.
        UsageError: The vertices or values of the two cannot be compared.

    >>> import brimful as bf, pyarrow as pa
    >>> ring = pa.table({"source": [0, 1, 2], "target": [1, 2, 0]})
    >>> with bf.Graph.from_arrow(ring) as graph:
    ...     bf.compare(bf.pagerank(graph), bf.pagerank(graph, method="delta")).equal
    True
    """
    from brimful import _native

    given = parse_budget(budget)
    limit = _native.auto_budget_bytes() if given is None else given
    sides = _Side(first, "the first result"), _Side(second, "the second result")
    exact = all(side.kind == "integer" for side in sides)
    if tolerance is None:
        tolerance = 0.0 if exact else FLOAT_TOLERANCE
    if not tolerance >= 0:
        raise UsageError(f"tolerance must be at least 0, not {shortened(tolerance)}")
    tally = _tally(sides, float(tolerance), max(top, 0), limit // _RANKED_BYTES)
    for one, other in _matched(*sides):
        tally.add(one, other)
    return Comparison(
        columns=(sides[0].column, sides[1].column),
        vertices=tally.vertices,
        only_first=sides[0].rows - tally.vertices,
        only_second=sides[1].rows - tally.vertices,
        tolerance=float(tolerance),
        differing=tally.differing,
        largest_difference=tally.largest_difference,
        largest_relative=tally.largest_relative,
        rank_correlation=tally.rank_correlation(),
        differences=tally.differences,
    )


class _Rows(NamedTuple):
    """Some rows of a result: NumPy arrays of vertices and of values, and where there is a value."""

    vertices: NDArray[Any]
    values: NDArray[Any]
    present: NDArray[np.bool_]

    def at(self, chosen: Any) -> _Rows:
        return _Rows(*(column[chosen] for column in self))


class _Side:
    """The rows of one of the two results, read once, with those that wait for the other."""

    def __init__(self, given: object, name: str) -> None:
        import pyarrow as pa
        import pyarrow.types as kinds

        source: Any = SavedResult(given) if isinstance(given, (str, os.PathLike)) else given
        if not hasattr(source, "__arrow_c_stream__"):
            raise UsageError(
                f"{name} must be a result, a path or a table with __arrow_c_stream__, not "
                f"{type(given).__name__}"
            )
        self.name = f"{name} ({given})" if source is not given else name
        self._reader = pa.RecordBatchReader.from_stream(source)
        names = self._reader.schema.names
        if len(names) < 2 or names[0] != "vertex":
            raise InputError(f"{self.name} must begin with the columns vertex and a value")
        self.column = str(names[1])
        vertex, value = (self._reader.schema.field(at).type for at in (0, 1))
        self.has_integer_ids = kinds.is_integer(vertex)
        self.kind = "integer" if kinds.is_integer(value) else "text"
        if kinds.is_floating(value):
            self.kind = "float"
        self._batches = native_batches(self._reader)
        self._last: Any = None
        self.rows = 0
        self.waiting = self._next()

    def take(self, count: int) -> _Rows:
        """Return the first rows that wait; the others stay, or the next batch comes."""
        assert self.waiting is not None
        taken, rest = self.waiting.at(slice(count)), self.waiting.at(slice(count, None))
        self.waiting = rest if len(rest.vertices) else self._next()
        return taken

    def drop(self) -> None:
        """Read the rest, to count it."""
        while self.waiting is not None:
            self.waiting = self._next()

    def _next(self) -> _Rows | None:
        import numpy as np
        import pyarrow.compute as pc

        for batch in self._batches:
            if batch.num_rows == 0:
                continue
            ids, values = batch.column(0), batch.column(1)
            # Signed and unsigned integers have no common type in NumPy.
            vertices = ids.to_numpy(zero_copy_only=False)
            if vertices.dtype == np.uint64:
                vertices = vertices.astype(object)
            ends = vertices if self._last is None else np.concatenate([[self._last], vertices])
            if ids.null_count or not np.all(ends[1:] > ends[:-1]):
                raise InputError(f"{self.name} must have each vertex once, in ascending order")
            self._last = vertices[-1]
            self.rows += len(vertices)
            present = pc.is_valid(values).to_numpy(zero_copy_only=False)
            if self.kind != "text":
                values = pc.fill_null(values, 0)
            return _Rows(vertices, values.to_numpy(zero_copy_only=False), present)
        return None


def _matched(one: _Side, other: _Side) -> Iterator[tuple[_Rows, _Rows]]:
    """Yield rows of the vertices that both have, in the same order."""
    import numpy as np

    if one.has_integer_ids != other.has_integer_ids:
        raise UsageError(
            "the vertices of one result are integers and those of the other are strings; compare "
            "results of one graph"
        )
    while one.waiting is not None and other.waiting is not None:
        mine, theirs = one.waiting.vertices, other.waiting.vertices
        count = min(len(mine), len(theirs))
        if np.array_equal(mine[:count], theirs[:count]):
            yield one.take(count), other.take(count)
            continue
        last = min(mine[-1], theirs[-1])
        left = one.take(int(np.searchsorted(mine, last, side="right")))
        right = other.take(int(np.searchsorted(theirs, last, side="right")))
        _, first, second = np.intersect1d(
            left.vertices, right.vertices, assume_unique=True, return_indices=True
        )
        yield left.at(first), right.at(second)
    one.drop()
    other.drop()


def _tally(sides: tuple[_Side, _Side], tolerance: float, top: int, most: int) -> _Tally:
    kinds = {side.kind for side in sides}
    if kinds == {"text"}:
        return _Tally(tolerance, top)
    if "text" in kinds:
        raise UsageError(
            f"the values {sides[0].column} and {sides[1].column} cannot be compared: one column "
            "has numbers, the other has none"
        )
    return _NumberTally(tolerance, top, most)


class _Tally:
    """The differences of values that are equal or not."""

    def __init__(self, tolerance: float, top: int) -> None:
        self._tolerance, self._top = tolerance, top
        self.vertices = self.differing = 0
        self.largest_difference: float | None = None
        self.largest_relative: float | None = None
        #: The size of each difference that is kept, beside the difference.
        self._kept: list[tuple[float, tuple[Any, Any, Any]]] = []

    @property
    def differences(self) -> list[tuple[Any, Any, Any]]:
        """The largest differences."""
        return [row for _, row in self._kept]

    def add(self, one: _Rows, other: _Rows) -> None:
        """Take rows of the same vertices."""
        import numpy as np

        both = one.present & other.present
        sizes, differs = self._compared(one, other, both)
        lacking = one.present != other.present
        sizes[lacking] = np.inf
        differs |= lacking
        self.vertices += len(both)
        self.differing += int(np.count_nonzero(differs))
        (where,) = np.nonzero(differs)
        largest = where[np.argsort(-sizes[where], kind="stable")[: self._top]]
        self._kept += [(float(sizes[at]), self._row(one, other, int(at))) for at in largest]
        # Sorting is stable: of two that differ as much, the smaller vertex stays.
        self._kept.sort(key=lambda kept: -kept[0])
        del self._kept[self._top :]

    def rank_correlation(self) -> float | None:
        """Return Spearman's rank correlation, if there is one."""
        return None

    def _compared(self, one: _Rows, other: _Rows, both: Any) -> tuple[Any, Any]:
        """Return the size of each difference, and whether it counts."""
        import numpy as np

        differs = both & (one.values != other.values)
        return np.where(differs, np.inf, 0.0), differs

    @staticmethod
    def _row(one: _Rows, other: _Rows, at: int) -> tuple[Any, Any, Any]:
        values = [
            (rows.values[at].item() if hasattr(rows.values[at], "item") else rows.values[at])
            if rows.present[at]
            else None
            for rows in (one, other)
        ]
        vertex = one.vertices[at]
        return (vertex.item() if hasattr(vertex, "item") else vertex, *values)


class _NumberTally(_Tally):
    """The differences of numbers; keeps the values of at most `most` vertices for their ranks."""

    def __init__(self, tolerance: float, top: int, most: int) -> None:
        super().__init__(tolerance, top)
        self._most = most
        self._pairs: list[tuple[NDArray[Any], NDArray[Any]]] = []

    def _compared(self, one: _Rows, other: _Rows, both: Any) -> tuple[Any, Any]:
        import numpy as np

        first, second = one.values.astype(float), other.values.astype(float)
        with np.errstate(invalid="ignore"):
            sizes = np.where(first == second, 0.0, np.abs(first - second))
        sizes[np.isnan(first) & np.isnan(second)] = 0.0
        sizes[np.isnan(sizes)] = np.inf
        larger = np.maximum(np.abs(first), np.abs(second))
        larger[~np.isfinite(larger) | (larger == 0)] = 1.0
        relative = sizes / larger
        # Integers beyond 2^53 may differ though their floats do not.
        unequal = (one.values != other.values) & ~(np.isnan(first) & np.isnan(second))
        differs = both & unequal & ((relative > self._tolerance) | (self._tolerance == 0))
        if both.any():
            self.largest_difference = max(self.largest_difference or 0.0, sizes[both].max().item())
            self.largest_relative = max(self.largest_relative or 0.0, relative[both].max().item())
        if self.vertices + len(both) <= self._most:
            self._pairs.append((first[both], second[both]))
        else:
            self._pairs.clear()
            self._most = 0
        return sizes, differs

    def rank_correlation(self) -> float | None:
        """Return Spearman's rank correlation: Pearson's of the average ranks."""
        import numpy as np

        if not self._pairs:
            return None
        # The values go as their ranks come.
        first = _centred_ranks(np.concatenate([pair[0] for pair in self._pairs]))
        second = _centred_ranks(np.concatenate([pair[1] for pair in self._pairs]))
        spread = float(np.sqrt(np.dot(first, first) * np.dot(second, second)))
        return float(np.dot(first, second)) / spread if spread else None


def _centred_ranks(values: NDArray[Any]) -> NDArray[Any]:
    """Return the average rank of each value, less the average of all ranks."""
    import numpy as np

    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return np.asarray(ranks[inverse] - (len(values) + 1) / 2)
