"""Forecasts of the command line, and their tolerance against measured figures."""

from __future__ import annotations

from typing import Any

from command import succeed

#: How far memory and disk may be from the forecast.
SHARE = 0.25
#: Given bandwidths, so that none are measured.
MACHINE = ["--disk-bandwidth", 2, "--memory-bandwidth", 30]


def near(forecast: float, measured: float) -> bool:
    """Return whether a figure is within a quarter of the measured one."""
    return abs(forecast - measured) <= SHARE * measured


def plan(*arguments: object) -> dict[str, Any]:
    """Return the figures of `brimful plan --json`, of a machine with given bandwidths."""
    return succeed("plan", *arguments, *MACHINE, "--json", "--quiet").figures


def run(*arguments: object) -> dict[str, Any]:
    """Return the figures of `brimful run --json`."""
    return succeed("run", *arguments, "--json", "--quiet").figures
