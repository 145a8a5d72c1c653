"""Aggregators of a program on shards: the slots of the aggregate in which kernels keep them.

Invariant: slot 0 belongs to the package, and counts vertices that signal.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from typing import Any, NamedTuple

from brimful.kernels.methods import NotCompilable
from brimful.kernels.numbers import bits, named_tuple_type
from brimful.pregel.aggregators import Aggregator

#: Slots of the aggregate, as `docs/kernel-abi.md` describes them.
SLOTS = 8
#: The rule of each merge, for floats and for integers.
_RULES = {"sum": (1, 2), "min": (3, 4), "max": (5, 6), "or": (7, 7), "and": (8, 8)}
SUM_FLOAT, OVERFLOW, PERSISTENT = 1, 9, 16


class Slot(NamedTuple):
    """An aggregator, and its place in the aggregate."""

    name: str
    place: int
    function: str
    #: The type that methods see: "int64", "float64" or "bool".
    kind: str
    initial: float | int
    rule: int
    #: True if the aggregate that methods read holds whole values, which the steps of a Pregel
    #: program made of contributions and the initial value.
    is_whole: bool

    @property
    def word(self) -> int:
        """Place of the rule among the words of the aggregate; the value follows."""
        return 2 * self.place

    @property
    def overflow(self) -> int:
        """The rule of a sum that 64 bits cannot hold."""
        return OVERFLOW | self.rule & PERSISTENT

    def shown(self, number: float | int) -> float | int:
        """Return a number of this aggregator as methods see it."""
        return bool(number) if self.kind == "bool" else number

    def described(self) -> tuple[str, int, int, int]:
        """Return the slot as the native side takes it."""
        return self.name, self.rule, bits(self.initial) & (1 << 64) - 1, self.place


def slots_of(aggregators: Mapping[str, Aggregator], *, is_whole: bool = False) -> tuple[Slot, ...]:
    """Return the slots of some aggregators; `is_whole`: the program has steps.

    Raises:
        NotCompilable: An aggregator has no place on shards.
    """
    if len(aggregators) >= SLOTS:
        raise NotCompilable(
            f"a program on shards has at most {SLOTS - 1} aggregators, but this one has "
            f"{len(aggregators)}",
            "Leave some out",
        )
    slots = []
    for place, (name, one) in enumerate(aggregators.items(), 1):
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            raise NotCompilable(
                f"compiled code cannot use the name of the aggregator {name!r}",
                "Rename it like a variable, without a leading underscore",
            )
        if callable(one.function):
            raise NotCompilable(
                f"the aggregator {name} has a user-defined function, which a program on shards "
                "does not support",
                f"Choose one of {', '.join(_RULES)}",
            )
        is_logical = one.function in ("or", "and")
        allowed = bool if is_logical else int | float
        initial = one.initial
        if not isinstance(initial, allowed) or (
            type(initial) is int and initial >> 63 not in (0, -1)
        ):
            raise NotCompilable(
                f'the aggregator {name} is "{one.function}" and begins with {initial!r}',
                "Begin with True or False" if is_logical else "Begin with a number of 64 bits",
            )
        is_float = isinstance(initial, float)
        kind = "bool" if is_logical else "float64" if is_float else "int64"
        # Steps keep the values of persistent aggregators themselves.
        is_kept = one.persistent and not is_whole
        rule = _RULES[one.function][not is_float] | (PERSISTENT if is_kept else 0)
        number = initial if is_float else int(initial)
        slots.append(Slot(name, place, one.function, kind, number, rule, is_whole))
    return tuple(slots)


def change_slot(slots: tuple[Slot, ...]) -> Slot:
    """Return the slot after the others that measures the largest change of a state.

    Raises:
        NotCompilable: All slots are taken.
    """
    place = len(slots) + 1
    if place >= SLOTS:
        raise NotCompilable(
            f"a program on shards with a tolerance has at most {SLOTS - 2} aggregators, but this "
            f"one has {len(slots)}",
            "Leave some out",
        )
    return Slot("change of states", place, "max", "float64", 0.0, _RULES["max"][0], False)


def aggregates_type(slots: tuple[Slot, ...]) -> Any:
    """Return the class of `self.aggregated`."""
    return named_tuple_type("Aggregates", tuple(slot.name for slot in slots))
