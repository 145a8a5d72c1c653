"""Sentences about forecasts: before a run or an import, and compared with it afterwards."""

from __future__ import annotations

import math
from typing import Any

from brimful.sizes import format_bytes
from brimful.wording import counted

#: Forecasts of fewer bytes are compared without a percentage.
_MANY_BYTES = 1 << 20


#: A shorter run or import that takes a smaller share of the budget is not announced.
_SHORT_SECONDS = 1.0
_SMALL_SHARE = 0.5
#: Fewer vertices and edges are quick in any store; runs on a store have no forecast of time.
_FEW_RECORDS = 10_000
#: Bandwidths of a slow machine in GB/s; they decide whether a run is short before any is measured.
SLOW_MACHINE = {"memory_bandwidth": 5.0, "disk_bandwidth": 0.3}
#: Bytes per second that an import writes on such a machine.
_SLOW_IMPORT = 20e6


def is_small_run(figures: dict[str, Any], records: int) -> bool:
    """Return whether a run on `records` vertices and edges is short and needs little memory."""
    seconds = figures["seconds"]
    short = records < _FEW_RECORDS if seconds is None else seconds < _SHORT_SECONDS
    return short and _is_small(figures, figures["budget_bytes"])


def is_small_import(figures: dict[str, Any], budget_bytes: int) -> bool:
    """Return whether an import is short and needs little memory."""
    short = figures["disk_bytes"] / _SLOW_IMPORT < _SHORT_SECONDS
    return short and _is_small(figures, budget_bytes)


def _is_small(figures: dict[str, Any], budget_bytes: int) -> bool:
    return bool(figures["peak_memory_bytes"] < _SMALL_SHARE * budget_bytes)


def announced(figures: dict[str, Any]) -> str:
    """Return `forecast: peak memory 73M, 10M of disk, about 30 supersteps` before a run."""
    text = f"forecast: {_memory_and_disk(figures)}"
    supersteps = figures.get("supersteps")
    if supersteps:
        text += f", {number_of_supersteps(figures)}"
    outside = outside_memory(figures)
    return f"{text}; {outside}" if outside else text


def outside_memory(figures: dict[str, Any]) -> str:
    """Return `the data of the run does not fit ...`, or an empty string if they fit."""
    enough = figures.get("in_memory_budget_bytes", 0)
    if not figures.get("fits") or enough <= figures["budget_bytes"]:
        return ""
    return (
        "the data of the run does not fit in memory, which slows the run down; "
        f"a budget of {whole_mebibytes(enough)} would hold it"
    )


def whole_mebibytes(size: int) -> str:
    """Return a size rounded up to `111M`, so that it can be typed as a budget."""
    return f"{math.ceil(size / 2**20)}M"


def number_of_supersteps(figures: dict[str, Any]) -> str:
    """Return `about 30 supersteps`, or `30 supersteps` where that is certain."""
    supersteps = figures["supersteps"]
    about = "about " if figures["supersteps_guessed"] else ""
    return f"{about}{counted(supersteps, 'superstep')}"


def measured_and_forecast(figures: dict[str, Any], peak_memory: int | None, disk: int) -> str:
    """Return `measured peak memory 73M, forecast 72M (+1%), ...`."""
    parts = []
    if peak_memory is not None:
        parts.append(_beside("peak memory", peak_memory, figures["peak_memory_bytes"]))
    parts.append(_beside("disk", disk, figures["disk_bytes"]))
    return "measured " + ", ".join(parts)


def _memory_and_disk(figures: dict[str, Any]) -> str:
    disk = figures["disk_bytes"]
    return (
        f"peak memory {format_bytes(figures['peak_memory_bytes'])}, "
        f"{format_bytes(disk) if disk else 'no'} disk"
    )


def _beside(quantity: str, measured: int, forecast: int) -> str:
    text = f"{quantity} {format_bytes(measured)}, forecast {format_bytes(forecast)}"
    # File headers make up most of a few bytes, so a percentage would mislead.
    return text + (f" ({measured / forecast - 1:+.0%})" if forecast >= _MANY_BYTES else "")
