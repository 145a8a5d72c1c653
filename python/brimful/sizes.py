"""Memory sizes and counts as users write them.

Units are binary: `500M` is 500 * 2**20 bytes. `auto` is None: the native side then takes three
quarters of the cgroup limit or of available memory.
"""

from __future__ import annotations

import operator
import re
from typing import SupportsIndex

from brimful.errors import UsageError
from brimful.options.checks import MOST, whole
from brimful.wording import counted, shortened

_SIZE = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?)\s*(?P<unit>[kmgtp]?)(ib|b)?", re.IGNORECASE)
_UNITS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}

#: The longest text of a size, in characters.
_LONGEST_SIZE = 40
#: The type of `budget=`.
Budget = int | str | None


def parse_budget(budget: Budget) -> int | None:
    """Return a budget in bytes, or None for `auto`.

    Accepts None, "auto", a number of bytes, or a number with a binary unit: "500M", "1.5G",
    "64KiB".

    Raises:
        UsageError: `budget` is anything else, zero, or negative.
    """
    if budget is None:
        return None
    if isinstance(budget, str):
        if budget.strip().lower() == "auto":
            return None
        match = _SIZE.fullmatch(budget.strip())
        if match is None or len(budget) > _LONGEST_SIZE:
            raise UsageError(
                f"'{shortened(budget)}' is not a memory size; write bytes or binary units such as "
                "500M or 1G, or auto"
            )
        exponent = _UNITS[match["unit"].lower()]
        if "." in match["number"]:
            byte_count = int(float(match["number"]) * 1024**exponent)
        else:
            byte_count = int(match["number"]) * 1024**exponent
    elif isinstance(budget, SupportsIndex) and not isinstance(budget, bool):
        byte_count = operator.index(budget)
    else:
        raise UsageError(
            "budget must be a number of bytes, a size such as '500M', or None, not "
            f"{shortened(budget)}"
        )
    if not 1 <= byte_count <= MOST:
        raise UsageError(
            f"the budget {shortened(budget)} is out of range; write a size such as 500M"
        )
    return byte_count


def checkpoint_interval(every: int | str | None) -> str | None:
    """Return the interval of checkpoints, supersteps or "30s", as text, or None.

    Raises:
        UsageError: `every` is neither a whole number nor a string.
    """
    if every is None or isinstance(every, str):
        return None if every is None else shortened(every)
    return str(whole(every, "checkpoint_every", 1))


def format_bytes(byte_count: int | float) -> str:
    """Return a size with two or three digits and a binary unit: `588M`, `1.2G`, `12 bytes`."""
    if byte_count < 1024:
        return counted(int(byte_count), "byte")
    value = float(byte_count)
    for unit in "KMGT":
        value /= 1024
        if value < 1024 or unit == "T":
            return f"{value:.1f}{unit}" if value < 10 else f"{value:.0f}{unit}"
    raise AssertionError("the loop returns at its last unit")
