"""Aggregates in the memory of the engine: values are read from the slots, and merged into them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from brimful.kernels.slots import Slot


def array_at(address: int, count: int, kind: Any) -> Any:
    """Return the memory at an address as an array."""
    size = count * np.dtype(kind).itemsize
    return np.frombuffer((ctypes.c_byte * size).from_address(address), kind)


#: The functions of NumPy that merge values one after another.
_MERGES: dict[str, Any] = {
    "sum": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "or": np.maximum,
    "and": np.minimum,
}


def _word(slot: Slot, address: int) -> tuple[Any, Any]:
    """Return the rule and the value of a slot in the aggregate at an address, as arrays of one."""
    kind = "f8" if slot.kind == "float64" else "i8"
    at = address + 8 * slot.word
    return array_at(at, 1, np.int64), array_at(at + 8, 1, kind)


def read(slot: Slot, address: int) -> Any:
    """Return the value of an aggregator in the aggregate at an address.

    Raises:
        OverflowError: The value is a sum that 64 bits cannot hold.
    """
    rule, value = _word(slot, address)
    if rule[0] == 0:
        return slot.shown(slot.initial)
    if slot.is_whole and rule[0] != slot.overflow:
        return slot.shown(value[0].item())
    merged = None if slot.kind == "float64" else _exact(slot, [int(slot.initial), int(value[0])])
    if rule[0] == slot.overflow or (merged is not None and merged >> 63 not in (0, -1)):
        raise OverflowError(f"the aggregator {slot.name} has a sum beyond 64-bit integers")
    return _merged(slot, slot.initial, value) if merged is None else slot.shown(merged)


def add(slot: Slot, address: int, values: Any) -> None:
    """Merge values into an aggregator in the aggregate at an address, in their order."""
    rule, value = _word(slot, address)
    if rule[0] == slot.overflow:
        return
    kind = "f8" if slot.kind == "float64" else "i8"
    values = values.astype(kind)
    whole = values if rule[0] == 0 else np.concatenate([value, values])
    if slot.kind != "float64":
        merged = _exact(slot, whole.tolist())
        if merged >> 63 not in (0, -1):
            rule[0] = slot.overflow
            return
        value[0] = merged
    else:
        value[0] = _merged(slot, whole[0], whole[1:])
    rule[0] = slot.rule


def _exact(slot: Slot, values: list[int]) -> int:
    """Merge integers exactly, whatever the number of bits."""
    if slot.function == "sum":
        return sum(values)
    return max(values) if slot.function in ("max", "or") else min(values)


def _merged(slot: Slot, first: float, others: Any) -> float:
    """Merge floats one after another: NumPy's `reduce` would add them in another order."""
    return float(_MERGES[slot.function].accumulate(np.concatenate([[first], others]))[-1])
