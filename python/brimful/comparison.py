"""Compares two results: differing values, largest differences, and rank correlation.

Invariant: the rows of both are in memory in batches only, but the rank correlation needs all
values; it is left out if they do not fit the budget.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from brimful.errors import UsageError
from brimful.memory import too_small
from brimful.optional import load_pandas
from brimful.options.checks import real, whole
from brimful.options.described import described
from brimful.resources import Resources
from brimful.sizes import Budget, parse_budget
from brimful.tables.connection import LOADED_BYTES, join_memory
from brimful.tables.edge_table import ARROW_RESERVE_BYTES
from brimful.tables.result_files import READ_BYTES
from brimful.tables.result_rows import known_result_bytes
from brimful.tables.sides import Matched, Side, matched
from brimful.wording import literal

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Floats are equal within this tolerance, relative to the larger one: the sums of two equally
#: long paths may differ by rounding.
FLOAT_TOLERANCE = 1e-9
#: Bytes of the batches of both results while they are merged.
_MERGED_BYTES = 24 << 20
#: Bytes per row while the rank correlation is computed: two values, their ranks and orders.
_RANKED_BYTES = 80
#: Divisor of the budget: the rank correlation of tables of rows takes at most the quotient, and a
#: join the rest.
_RANKED_SHARE = 4


@dataclass(frozen=True)
class Comparison:
    """How two results differ.

    Attributes:
        keys: Names of the key columns: `vertex`, or all columns of `Rows` but the last.
        columns: Names of both value columns; None: rows are pairs without a value.
        vertices: Number of vertices, or of rows, that both have.
        only_first: Number of vertices or rows that only the first has.
        only_second: Number of vertices or rows that only the second has.
        tolerance: Largest difference that counts as equal, relative to the larger value.
        differing: Number of vertices or rows whose values differ by more.
        largest_difference: Largest absolute difference of two numbers; None: no row has both.
        largest_relative: Largest difference relative to the larger value; None: no row has both.
        rank_correlation: Spearman's, of the values that both have, from -1 to 1; None: the values
            are not numbers, all equal, or more than the budget holds.
        differences: The vertices, or the keys of the rows, with the largest differences, each with
            both values. A value that one of the two lacks comes first.

    >>> import brimful as bf, pyarrow as pa
    >>> first = pa.table({"vertex": [1, 2, 3], "rank": [0.5, 0.3, 0.2]})
    >>> second = pa.table({"vertex": [1, 2, 3], "rank": [0.5, 0.2, 0.3]})
    >>> found = bf.compare(first, second)
    >>> found.equal, found.differing, found.rank_correlation
    (False, 2, 0.5)
    """

    keys: tuple[str, ...]
    columns: tuple[str, str] | None
    vertices: int
    only_first: int
    only_second: int
    tolerance: float
    differing: int
    largest_difference: float | None
    largest_relative: float | None
    rank_correlation: float | None
    differences: list[tuple[Any, ...]]

    @property
    def equal(self) -> bool:
        """Whether both have the same rows, and no value differs: `compare(a, a).equal`."""
        return not (self.differing or self.only_first or self.only_second)


@described({}, "usage", "budget", "corrupt", "io")
def compare(
    first: object,
    second: object,
    *,
    tolerance: float | None = None,
    top: int = 10,
    budget: Budget = None,
) -> Comparison:
    """Compare two results, vertex by vertex, or row by row.

    `Rows` are compared by all columns but the last, in any order of rows; DuckDB joins them.

    Args:
        first: A `Result` or `Rows`, the path of a saved one, or any table with
            `__arrow_c_stream__` whose columns are `vertex`, ascending, and a value, or those of an
            algorithm that returns `Rows`.
        second: The other result, in any of these forms.
        tolerance: Values are equal if they differ by at most this share of the larger one; None:
            1e-9 for floats, 0 for integers.
        top: Number of differences to return.
        budget: Memory for the rank correlation, 80 bytes a row, and for joins of `Rows`, in bytes
            or as "500M"; None: three quarters of the available memory.

    Returns:
        A `Comparison`.

    Raises:
        InputError: A table has other columns, its vertices do not ascend, or two of its rows have
            the same key.
        UsageError: The vertices or values of the two cannot be compared, or `top` is negative.
        MissingPackageError: `Rows` are compared and DuckDB is not installed.

    >>> import brimful as bf, pyarrow as pa
    >>> ring = pa.table({"source": [0, 1, 2], "target": [1, 2, 0]})
    >>> with bf.Graph.from_arrow(ring) as graph:
    ...     bf.compare(bf.pagerank(graph), bf.pagerank(graph, method="delta")).equal
    True
    """
    resources = Resources(budget=parse_budget(budget))
    return compared(first, second, tolerance, top, resources)


def compared(
    first: object, second: object, tolerance: float | None, top: int, resources: Resources
) -> Comparison:
    """Compare as `compare`; on the command line the budget is that of the process."""
    joining = resources.beside(READ_BYTES + LOADED_BYTES)
    resources = resources.beside(READ_BYTES + _MERGED_BYTES)
    taken = resources.taken_bytes(READ_BYTES + _MERGED_BYTES)
    if resources.budget_bytes() < resources.taken_bytes(ARROW_RESERVE_BYTES):
        # Whether rows are merged or joined is known once both are open.
        paths = [os.fspath(one) for one in (first, second) if isinstance(one, (str, os.PathLike))]
        taken += sum(known_result_bytes(path) for path in paths)
        raise too_small(resources, taken, "to compare results")
    resources.shrink_arrow_pools()
    load_pandas()
    sides = Side(first, "the first result"), Side(second, "the second result")
    if resources.process_budget:
        taken += sum(side.reserve_bytes for side in sides)
    exact = all(side.kind == "integer" for side in sides)
    if tolerance is None:
        tolerance = 0.0 if exact else FLOAT_TOLERANCE
    checked = real(tolerance, "tolerance")
    if checked is None or checked < 0:
        raise UsageError(f"tolerance must be at least 0, not {literal(tolerance)}")
    tolerance = checked
    joins_rows = sides[0].keys != ["vertex"]
    if joins_rows:
        resources = joining
    ranked, joins = _shares(resources, taken, joins=joins_rows)
    rows = matched(*sides, joins, resources)
    tally = _tally(sides, float(tolerance), whole(top, "top", floats=True), ranked // _RANKED_BYTES)
    for one, other in rows:
        tally.add(one, other)
    columns = sides[0].column, sides[1].column
    return Comparison(
        keys=tuple(sides[0].keys),
        columns=None if columns[0] is None or columns[1] is None else (columns[0], columns[1]),
        vertices=tally.rows,
        only_first=sides[0].rows - tally.rows,
        only_second=sides[1].rows - tally.rows,
        tolerance=float(tolerance),
        differing=tally.differing,
        largest_difference=tally.largest_difference,
        largest_relative=tally.largest_relative,
        rank_correlation=tally.rank_correlation(),
        differences=tally.differences,
    )


def _shares(resources: Resources, taken: int, *, joins: bool) -> tuple[int, int]:
    """Return the memory of the rank correlation, and that of a join, beside the bytes `taken`.

    Raises:
        BudgetError: The budget is too small.
    """
    if joins:
        memory = join_memory(resources, 1 - 1 / _RANKED_SHARE)
        # The limit of DuckDB is a part of its share, so a third of it is less than the quotient.
        return memory // (_RANKED_SHARE - 1), memory
    limit = resources.budget_bytes()
    if limit < taken:
        raise too_small(resources, taken, "to compare results")
    return limit - taken, 0


def _tally(sides: tuple[Side, Side], tolerance: float, top: int, most: int) -> _Tally:
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
    """The differences of values that are either equal or different, such as texts."""

    def __init__(self, tolerance: float, top: int) -> None:
        self._tolerance, self._top = tolerance, top
        self.rows = self.differing = 0
        self.largest_difference: float | None = None
        self.largest_relative: float | None = None
        #: The kept differences, each after its size.
        self._kept: list[tuple[float, tuple[Any, ...]]] = []

    @property
    def differences(self) -> list[tuple[Any, ...]]:
        """The largest differences."""
        return [row for _, row in self._kept]

    def add(self, one: Matched, other: Matched) -> None:
        """Take rows with the same keys."""
        import numpy as np

        both = one.present & other.present
        sizes, differs = self._compared(one, other, both)
        lacking = one.present != other.present
        sizes[lacking] = np.inf
        differs |= lacking
        self.rows += len(both)
        self.differing += int(np.count_nonzero(differs))
        (where,) = np.nonzero(differs)
        largest = where[np.argsort(-sizes[where], kind="stable")[: self._top]]
        self._kept += [
            (float(sizes[at]), (*one.key(at), one.value(at), other.value(at)))
            for at in largest.tolist()
        ]
        # Sorting is stable: of equal differences, the one with the smaller key stays.
        self._kept.sort(key=lambda kept: -kept[0])
        del self._kept[self._top :]

    def rank_correlation(self) -> float | None:
        """Return Spearman's rank correlation, if there is one."""
        return None

    def _compared(self, one: Matched, other: Matched, both: Any) -> tuple[Any, Any]:
        """Return the size of each difference, and whether it counts."""
        import numpy as np

        differs = both & (one.values != other.values)
        return np.where(differs, np.inf, 0.0), differs


class _NumberTally(_Tally):
    """The differences of numbers; keeps the values of at most `most` rows for their ranks."""

    def __init__(self, tolerance: float, top: int, most: int) -> None:
        super().__init__(tolerance, top)
        self._most = most
        self._pairs: list[tuple[NDArray[Any], NDArray[Any]]] = []

    def _compared(self, one: Matched, other: Matched, both: Any) -> tuple[Any, Any]:
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
        if self.rows + len(both) <= self._most:
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
        # Each array of values is freed once its ranks are computed.
        first = _centered_ranks(np.concatenate([pair[0] for pair in self._pairs]))
        second = _centered_ranks(np.concatenate([pair[1] for pair in self._pairs]))
        spread = float(np.sqrt(np.dot(first, first) * np.dot(second, second)))
        return float(np.dot(first, second)) / spread if spread else None


def _centered_ranks(values: NDArray[Any]) -> NDArray[Any]:
    """Return the average rank of each value, less the average of all ranks."""
    import numpy as np

    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return np.asarray(ranks[inverse] - (len(values) + 1) / 2)
