"""The memory of this process: what is resident, and budgets in bytes."""

from __future__ import annotations

import os
import resource
from typing import Any

from brimful.errors import BudgetError
from brimful.sizes import format_bytes

#: Errors name budgets that are multiples of this.
_STEP_BYTES = 8 << 20


def resident_bytes() -> int:
    """Return the resident memory of this process, or its peak if the system does not report it."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if os.uname().sysname == "Darwin" else peak * 1024


def budget_bytes(budget: int | None, parts: int = 1) -> int:
    """Return a budget in bytes; None is the automatic one of this machine, divided by `parts`."""
    from brimful import _native

    return _native.auto_budget_bytes() // parts if budget is None else budget


def too_small(limit: int, needed: int, purpose: str) -> BudgetError:
    """Return the error of a budget that is less than `needed`.

    The memory of a process differs a little from start to start, so the budget that the error names
    is up to two steps of 8 MiB larger.
    """
    return smallest_error(limit, (needed // _STEP_BYTES + 2) * _STEP_BYTES, purpose)


def smallest_error(limit: int, named: int, purpose: str) -> BudgetError:
    """Return the error of a budget of `limit` bytes that names the smallest one."""
    return BudgetError(
        f"a memory budget of {format_bytes(limit)} is too small {purpose}; "
        f"the smallest that works is {named >> 20}M",
        named,
    )


def budget_beside_ray(budget: int) -> dict[str, Any]:
    """Return the memory limits of a process that runs Ray.

    The budget does not cover the whole process, as brimful cannot account for the memory of Ray.
    """
    return {"budget": budget, "process_budget": False}
