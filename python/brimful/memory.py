"""The memory of this process: its resident bytes, its limits, and budgets in bytes."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from brimful.errors import BudgetError, StoreIoError
from brimful.sizes import format_bytes

if TYPE_CHECKING:
    from brimful import _native
    from brimful.resources import Resources

#: Bytes of address space that pyarrow takes besides the budget: its libraries and threads.
ARROW_ADDRESS_BYTES = 288 << 20
#: The least memory of a process, as the native module counts it (interpreter and libraries).
PROCESS_BYTES = 30 << 20
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


def address_space() -> tuple[int, int] | None:
    """Return the limit of the address space (`ulimit -v`) and the rest of it; None: no limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:  # The system has no such file.
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return limit, limit - used


def require_address_space(library: str, needed: int, budget: int = 0) -> None:
    """Refuse a limit of the address space that leaves too little for a library and the budget.

    Beyond the limit an allocation fails, which ends the process.

    Raises:
        StoreIoError: The limit leaves less than the `needed` bytes of the library.
        BudgetError: The limit leaves too little for the budget besides the library.
    """
    space = address_space()
    if space is None:
        return
    limit, left = space
    leaves = (
        f"the address space limit of {format_bytes(limit)} leaves {format_bytes(left)}, but "
        f"{library} takes {format_bytes(needed)}"
    )
    if left < needed:
        raise StoreIoError(f"{leaves}; raise the limit with 'ulimit -v'")
    if left < needed + budget:
        raise BudgetError(
            f"{leaves} besides the budget of {format_bytes(budget)}; raise the limit with "
            "'ulimit -v', or lower --budget",
            budget,
        )


def budget_bytes(budget: int | None, parts: int = 1) -> int:
    """Return a budget in bytes; None is the automatic one of this machine, divided by `parts`."""
    from brimful import _native

    return _native.auto_budget_bytes() // parts if budget is None else budget


def too_small(resources: Resources, needed: int, purpose: str) -> BudgetError:
    """Return the error of a budget that is less than `needed`.

    Two starts of a process take slightly different memory, so the budget that the error names is up
    to two steps of 8 MiB larger.
    """
    return smallest_error(resources, (needed // _STEP_BYTES + 2) * _STEP_BYTES, purpose)


def smallest_error(resources: Resources, named: int, purpose: str) -> BudgetError:
    """Return the error of a budget that names the smallest one."""
    whose, limit = "the automatic" if resources.budget is None else "a", resources.budget_bytes()
    return BudgetError(
        f"{whose} memory budget of {format_bytes(limit)} is too small {purpose}; "
        f"the smallest that works is {named >> 20}M",
        named,
    )


def require_all(*checks: Callable[[], object]) -> None:
    """Make several checks of one budget.

    Raises:
        BudgetError: The one of the failed checks that names the largest budget.
    """
    failed = []
    for check in checks:
        try:
            check()
        except BudgetError as error:
            failed.append(error)
    if failed:
        raise max(failed, key=lambda error: error.needed_bytes)


def require_runs(
    graph: _native.Graph,
    requests: Sequence[dict[str, Any]],
    resources: Resources,
    purpose: str,
) -> None:
    """Refuse a budget that is too small for one of several runs, before the first.

    Raises:
        BudgetError: The message names the smallest budget that works for all of them.
    """
    from brimful import _native

    limit = resources.budget_bytes()
    least = max(
        _native.plan(graph, None, wanted, machine=None, resources=resources, checkpoints=False)[
            "minimum_budget_bytes"
        ]
        for wanted in requests
    )
    if limit < least:
        raise smallest_error(resources, least, purpose)
