"""Distributions of graphs and results, counted in batches.

Invariant: rows and edges are in memory in batches only. Memory grows with the number of distinct
values; component sizes that would exceed the budget are None.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from brimful.io.output import native_batches, stream_batches

if TYPE_CHECKING:
    from brimful.per_vertex import PerVertex

#: Rows of a table of top vertices.
TOP_ROWS = 15
#: More distinct values than this are shown in ranges.
_MOST_DISTINCT = 60
#: Number of ranges.
_RANGES = 40
#: The axis is logarithmic if the largest value is at least this many times the smallest.
_WIDE = 1000.0


@dataclass(frozen=True)
class Distribution:
    """How often values occur: bounds of ranges and the number of values in each.

    Attributes:
        edges: Bounds of the ranges, one more than `counts`; for single values the values.
        counts: Number of values in each range.
        single: `edges` are single values, as many as `counts`.
        logarithmic: The ranges grow by a factor.
        without: Number of vertices without a value, or whose value is not finite.
    """

    edges: list[float]
    counts: list[int]
    single: bool
    logarithmic: bool
    without: int


@dataclass(frozen=True)
class Census:
    """The counts of a graph.

    Attributes:
        degrees: How many vertices have each degree, by direction; without one for an undirected
            graph.
        components: How many components have each size; None: more than the budget can count.
        top: The vertices with the most outgoing edges, and their number.
    """

    degrees: dict[str, dict[int, int]]
    components: dict[int, int] | None
    top: list[tuple[Any, Any]]

    def figures(self) -> dict[str, Any]:
        """Return the counts that `info --plots` shows, by powers of two."""
        shown: dict[str, Any] = {name: in_powers(counts) for name, counts in self.degrees.items()}
        if self.components is not None:
            shown["components"] = sum(self.components.values())
            shown["largest_component"] = max(self.components, default=0)
            shown["component_sizes"] = in_powers(self.components)
        return shown


def in_powers(counts: Mapping[int, int]) -> dict[str, int]:
    """Return the counts of the values 0, 1, 2 to 3, 4 to 7 and so on, by the least of each."""
    totals: Counter[int] = Counter()
    for value, count in counts.items():
        totals[1 << value.bit_length() >> 1] += count
    return {str(least): totals[least] for least in sorted(totals)}


def degree_counts(result: PerVertex[Any]) -> dict[int, int]:
    """Return the number of vertices of each degree, ascending, from a result of `degrees`."""
    import numpy as np

    vertices: Counter[int] = Counter()
    for batch in stream_batches(result):
        degrees, counts = np.unique(batch.column(1).to_numpy(), return_counts=True)
        vertices.update(dict(zip(degrees.tolist(), counts.tolist(), strict=True)))
    return dict(sorted(vertices.items()))


def component_sizes(result: PerVertex[Any], max_bytes: int) -> dict[int, int] | None:
    """Return the number of components of each size; None if counting takes too much memory."""
    import pyarrow as pa

    def counted(table: Any) -> Any:
        return (
            table.group_by("label").aggregate([("size", "sum")]).rename_columns(["label", "size"])
        )

    waiting: list[Any] = []
    whole = None
    for batch in stream_batches(result):
        counts = batch.column(1).value_counts()
        waiting.append(pa.table({"label": counts.field("values"), "size": counts.field("counts")}))
        if sum(len(some) for some in waiting) > max(2 * len(whole or ()), 1 << 18):
            whole = counted(pa.concat_tables([*([whole] if whole else []), *waiting]))
            waiting = []
            # Counting holds the old table, the new one and a hash table.
            if 4 * whole.nbytes > max_bytes:
                return None
    if whole is not None or waiting:
        whole = counted(pa.concat_tables([*([whole] if whole else []), *waiting]))
    sizes = Counter() if whole is None else Counter(whole.column("size").to_pylist())
    return dict(sorted(sizes.items()))


def distribution(result: PerVertex[Any]) -> Distribution | None:
    """Return the distribution of the values; None if they are not numbers, or there are none.

    Reads the rows twice.
    """
    import numpy as np

    distinct: Counter[float] | None = Counter()
    least, most, positive, without = np.inf, -np.inf, True, 0
    for values, lacking in _numbers(result):
        without += lacking
        if len(values) == 0:
            continue
        least, most = min(least, values.min()), max(most, values.max())
        positive = positive and bool(values.min() > 0)
        if distinct is not None:
            distinct_values, counts = np.unique(values, return_counts=True)
            if len(distinct_values) > _MOST_DISTINCT:
                distinct = None
                continue
            distinct.update(dict(zip(distinct_values.tolist(), counts.tolist(), strict=True)))
            if len(distinct) > _MOST_DISTINCT:
                distinct = None
    if most < least:
        return None
    if distinct is not None:
        ordered = sorted(distinct.items())
        values_, counts_ = [one for one, _ in ordered], [count for _, count in ordered]
        return Distribution(values_, counts_, True, False, without)
    logarithmic = positive and most / least >= _WIDE
    edges = (np.geomspace if logarithmic else np.linspace)(least, most, _RANGES + 1)
    # Rounding may move the ends inwards.
    edges[0], edges[-1] = least, most
    totals = np.zeros(_RANGES, dtype=np.int64)
    for values, _ in _numbers(result):
        totals += np.histogram(values, edges)[0]
    return Distribution(edges.tolist(), totals.tolist(), False, logarithmic, without)


def _numbers(result: PerVertex[Any]) -> Iterator[tuple[Any, int]]:
    """Yield the finite values of each batch and the number of others; nothing unless numbers."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    reader = pa.RecordBatchReader.from_stream(result)
    kind = reader.schema.field(1).type
    if not (kinds.is_integer(kind) or kinds.is_floating(kind)):
        return
    for batch in native_batches(reader):
        values = pc.drop_null(batch.column(1)).to_numpy(zero_copy_only=False).astype(np.float64)
        finite = values[np.isfinite(values)]
        yield finite, batch.num_rows - len(finite)
