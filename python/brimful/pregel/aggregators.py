"""Aggregators: values that all vertices of a superstep contribute to."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from brimful.errors import UsageError
from brimful.options.checks import flag
from brimful.wording import did_you_mean, shortened

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
        """Check the function and the flag."""
        flag(self.persistent, "persistent")
        named = self.function
        if not callable(named) and not (isinstance(named, str) and named in _FUNCTIONS):
            raise UsageError(
                f"there is no aggregator '{shortened(named)}'; use {', '.join(_FUNCTIONS)} or a "
                f"function of two values{did_you_mean(str(named), _FUNCTIONS)}"
            )

    @property
    def combine(self) -> Callable[[Any, Any], Any]:
        """The function of two values."""
        return self.function if callable(self.function) else _FUNCTIONS[self.function]


def checked_aggregators(aggregators: Any) -> Mapping[str, Aggregator]:
    """Return the aggregators of a program.

    Raises:
        UsageError: They are something else.
    """
    if not isinstance(aggregators, Mapping) or not all(
        isinstance(one, Aggregator) for one in aggregators.values()
    ):
        raise UsageError(
            f"aggregators must be a dict of names and Aggregators, not {shortened(aggregators)}"
        )
    return aggregators


class Aggregated:
    """The values of the aggregators, of the last superstep and of this one.

    In one of several processes, the contributions of its vertices are separate until all merge.
    A function may change its left value in place: each superstep begins with copies.
    """

    def __init__(self, aggregators: Mapping[str, Aggregator], *, is_divided: bool = False) -> None:
        """Begin with the initial values; `is_divided`: several processes make the run."""
        self._aggregators = aggregators
        self._last = {name: copy.deepcopy(one.initial) for name, one in aggregators.items()}
        self._now = copy.deepcopy(self._last)
        self._own: dict[str, Any] | None = {} if is_divided else None

    def _known(self, name: str) -> str:
        if name not in self._aggregators:
            raise UsageError(
                f"the program has no aggregator '{name}'; name it in `aggregators`"
                + did_you_mean(name, list(self._aggregators))
            )
        return name

    def add(self, name: str, value: Any) -> None:
        """Contribute a value in this superstep."""
        combine = self._aggregators[self._known(name)].combine
        if self._own is None:
            self._now[name] = combine(self._now[name], value)
        elif name in self._own:
            self._own[name] = combine(self._own[name], value)
        else:
            self._own[name] = copy.deepcopy(value)

    def contribution(self) -> dict[str, Any]:
        """End the superstep; return the contributions of the vertices of this process."""
        own, self._own = self._own or {}, {}
        return own

    def merge(self, contributions: Iterable[Mapping[str, Any]]) -> None:
        """Add the contributions of all processes, in their order."""
        for contribution in contributions:
            for name, value in contribution.items():
                self._now[name] = self._aggregators[name].combine(self._now[name], value)

    def last(self, name: str) -> Any:
        """Return the value of the last superstep, or as it was set."""
        return self._last[self._known(name)]

    def values(self) -> dict[str, Any]:
        """Return all values of the last superstep, or as they were set."""
        return dict(self._last)

    def set(self, name: str, value: Any) -> None:
        """Set the value that this superstep sees."""
        self._last[self._known(name)] = value
        if self._aggregators[name].persistent:
            self._now[name] = copy.deepcopy(value)

    def saved(self) -> list[dict[str, Any]]:
        """Return the values of the last superstep, and of this one."""
        return [self._last, self._now]

    def restore(self, saved: list[dict[str, Any]]) -> None:
        """Take the values that `saved` returned."""
        self._last, self._now = ({**values} for values in saved)

    def end_superstep(self) -> None:
        """Make the contributions of the superstep visible."""
        self._last = dict(self._now)
        for name, one in self._aggregators.items():
            self._now[name] = copy.deepcopy(self._last[name] if one.persistent else one.initial)
