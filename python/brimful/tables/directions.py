"""The column `Type` of edge tables, in which Gephi keeps the direction of edges.

Invariant: the rule is that of text (`records.rs`): the first rows decide, and a column of other
values says nothing. A later row of the other kind ends the import, because a row of a table cannot
be left out here and counted.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from brimful.errors import InputError, UsageError

if TYPE_CHECKING:
    from brimful.tables.edge_table import PickedColumns

_NAME = "type"
#: Rows that decide.
LOOKED_AT_ROWS = 64
_DIRECTED, _UNDIRECTED = "Directed", "Undirected"


def is_direction(name: str) -> bool:
    """Return whether a column of this name may say the direction of edges."""
    return name.strip().lower() == _NAME


def direction_column(schema: Any, columns: PickedColumns) -> str | None:
    """Return the column of text that may say the direction of edges, if there is one."""
    import pyarrow.types as kinds

    for item in schema:
        kind = item.type.value_type if kinds.is_dictionary(item.type) else item.type
        is_text = kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind)
        if is_text and is_direction(item.name):
            taken = item.name in (columns.source, columns.target, columns.weight)
            return None if taken or schema.names.count(item.name) > 1 else item.name
    return None


def read_directions(
    name: str, column: str | None, batches: Iterator[Any]
) -> tuple[bool | None, Iterator[Any]]:
    """Return whether the edges of a table are undirected, and its batches, checked as they come.

    None: the column says nothing, or there is none.

    Raises:
        UsageError: The first rows have edges of both kinds.
    """
    if column is None:
        return None, batches
    first: list[Any] = []
    values: list[Any] = []
    for batch in batches:
        first.append(batch)
        values += batch.column(column)[: LOOKED_AT_ROWS - len(values)].to_pylist()
        if len(values) == LOOKED_AT_ROWS:
            break
    batches = itertools.chain(first, batches)
    undirected = decided(name, column, values)
    if undirected is None:
        return None, batches
    return undirected, of_one_kind(name, column, undirected, batches)


def decided(name: str, column: str, values: list[Any]) -> bool | None:
    """Return whether the values of the first rows say that edges are undirected; None: nothing.

    Raises:
        UsageError: The rows have edges of both kinds.
    """
    words = {_word(value) for value in values}
    if not words or not words <= {_DIRECTED.lower(), _UNDIRECTED.lower()}:
        return None
    if len(words) == 2:
        raise UsageError(
            f"{name}: its column {column} has Directed and Undirected edges, but a graph has only "
            "one kind; give --directed to keep the written direction of every edge, --undirected "
            "to give none a direction, or import each kind separately"
        )
    return _UNDIRECTED.lower() in words


def of_one_kind(name: str, column: str, undirected: bool, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the batches; all rows must be of one kind.

    Raises:
        InputError: A row is not.
    """
    expected, row = _UNDIRECTED if undirected else _DIRECTED, 0
    for batch in batches:
        values = batch.column(column)
        for value in _distinct(values):
            if _word(value) != expected.lower():
                row += next(at for at, other in enumerate(values) if other.as_py() == value)
                raise InputError(
                    f"row {row + 1:,} of {name}: expected {expected} in its column {column}, as in "
                    "the first rows (--directed keeps the written direction of every edge), found "
                    f"{'nothing' if value is None else repr(value[:60])}"
                )
        row += batch.num_rows
        yield batch


def _distinct(values: Any) -> list[str | None]:
    """Return the values of a column of text, each once."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    if kinds.is_dictionary(values.type):
        places = pc.unique(values.indices).to_pylist()
        return [None if at is None else values.dictionary[at].as_py() for at in places]
    if kinds.is_string_view(values.type):
        # `unique` takes a missing one for an empty one.
        values = values.cast(pa.string())
    distinct: list[str | None] = pc.unique(values).to_pylist()
    return distinct


def _word(value: str | None) -> str | None:
    return None if value is None else value.strip().lower()
