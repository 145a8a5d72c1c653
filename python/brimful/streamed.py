"""Views of a mapping that streams its pairs; the views of the library look up each key."""

from __future__ import annotations

import operator
from collections.abc import ItemsView, Iterator, ValuesView
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_VALUE = operator.itemgetter(1)


class StreamedItems(ItemsView[K, V]):
    """The pairs that `_stream` of the mapping yields."""

    _mapping: Any

    def __iter__(self) -> Iterator[tuple[K, V]]:
        """Iterate over the pairs."""
        pairs: Iterator[tuple[K, V]] = self._mapping._stream()
        return pairs


class StreamedValues(ValuesView[V]):
    """The values of the pairs that `_stream` of the mapping yields."""

    _mapping: Any

    def __iter__(self) -> Iterator[V]:
        """Iterate over the values."""
        return map(_VALUE, self._mapping._stream())

    def __contains__(self, value: object) -> bool:
        """Return whether a value is or equals this one."""
        return any(other is value or other == value for other in self)
