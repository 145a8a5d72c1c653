"""Aggregators: values that all vertices of a superstep contribute to."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from brimful.errors import UsageError
from brimful.wording import did_you_mean

_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": operator.add,
    "min": min,
    "max": max,
    "and": lambda left, right: left and right,
    "or": lambda left, right: left or right,
}


@dataclass(frozen=True)
class Aggregator:
    """A value that all vertices of a superstep contribute to, and that all see in the next one.

    Args:
        function: "sum", "min", "max", "and", "or", or a function of two values; associative and
            commutative.
        initial: The value without contributions.
        persistent: False: every superstep begins with `initial`; true: it adds to the last value.

    Raises:
        UsageError: There is no such function.

    >>> import brimful as bf
    >>> bf.Aggregator("sum", 0).combine(3, 4)
    7
    """

    function: Literal["sum", "min", "max", "and", "or"] | Callable[[Any, Any], Any]
    initial: Any
    persistent: bool = False

    def __post_init__(self) -> None:
        """Check the function."""
        if not callable(self.function) and self.function not in _FUNCTIONS:
            raise UsageError(
                f"there is no aggregator '{self.function}'; use {', '.join(_FUNCTIONS)} or a "
                "function of two values"
            )

    @property
    def combine(self) -> Callable[[Any, Any], Any]:
        """The function of two values."""
        return self.function if callable(self.function) else _FUNCTIONS[self.function]


class Aggregated:
    """The values of the aggregators, of the last superstep and of this one."""

    def __init__(self, aggregators: Mapping[str, Aggregator]) -> None:
        """Begin with the initial values."""
        self._aggregators = aggregators
        self._last = {name: one.initial for name, one in aggregators.items()}
        self._now = dict(self._last)

    def _known(self, name: str) -> str:
        if name not in self._aggregators:
            raise UsageError(
                f"the program has no aggregator '{name}'; name it in `aggregators`"
                + did_you_mean(name, list(self._aggregators))
            )
        return name

    def add(self, name: str, value: Any) -> None:
        """Contribute a value in this superstep."""
        self._now[name] = self._aggregators[self._known(name)].combine(self._now[name], value)

    def last(self, name: str) -> Any:
        """Return the value of the last superstep, or as it was set."""
        return self._last[self._known(name)]

    def set(self, name: str, value: Any) -> None:
        """Set the value that this superstep sees."""
        self._last[self._known(name)] = value
        if self._aggregators[name].persistent:
            self._now[name] = value

    def saved(self) -> list[dict[str, Any]]:
        """Return the values of the last superstep, and of this one."""
        return [self._last, self._now]

    def restore(self, saved: list[dict[str, Any]]) -> None:
        """Take the values that `saved` returned."""
        self._last, self._now = ({**values} for values in saved)

    def end_superstep(self) -> None:
        """Show what was contributed."""
        self._last = dict(self._now)
        for name, one in self._aggregators.items():
            if not one.persistent:
                self._now[name] = one.initial
