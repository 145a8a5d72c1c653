"""Markdown tables of figures."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.command import Record
from bench.session import Series, Size

MIB = 1 << 20
GIB = 1 << 30


@dataclass
class Table:
    """A title, rows of cells, commands and notes."""

    title: str
    precision: str
    columns: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def row(self, *cells: str) -> None:
        """Add a row; a cell may be any text."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{self.title}: {len(cells)} cells for {len(self.columns)} columns")
        self.rows.append([" ".join(cell.split()).replace("|", "\\|") for cell in cells])

    def ran(self, *all_series: Series) -> None:
        """List the commands of these series below the table."""
        for series in all_series:
            if str(series.command) not in self.commands:
                self.commands.append(str(series.command))

    def markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [f"## {self.title}", "", f"Precision: {self.precision}", ""]
        widths = [
            max(len(row[column]) for row in [list(self.columns), *self.rows])
            for column in range(len(self.columns))
        ]
        for row in (list(self.columns), ["-" * width for width in widths], *self.rows):
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            lines.append(f"| {' | '.join(cells)} |")
        if self.notes:
            lines += ["", *(f"- {note}" for note in self.notes)]
        if self.commands:
            lines += ["", "Commands:", *(f"- {command}" for command in self.commands)]
        return "\n".join(lines) + "\n"


def figure(
    series: Series,
    read: str | Callable[[Record], Any],
    digits: int = 2,
    *,
    unit: str = "",
    more_is_better: bool = False,
) -> str:
    """Return `median (best)` of the repeats, or why there is none."""
    values = series.values(read)
    if not values:
        return series.gap or "not measured"
    best = max(values) if more_is_better else min(values)
    return f"{statistics.median(values):.{digits}f} ({best:.{digits}f}){unit}"


def target(
    size: Size, value: float | None, bound: float, unit: str = "", *, at_least: bool = False
) -> str:
    """Return the target of the issue and whether the median meets it; `-` where it has no say."""
    if not size.has_targets:
        return "-"
    text = f"{'>=' if at_least else '<='} {bound:g}{unit}"
    if value is None:
        return text
    met = value >= bound if at_least else value <= bound
    return f"{text} {'met' if met else 'MISSED'}"


def ratio(value: float | None, base: float | None) -> str:
    """Return `value / base`, or `-` where one of them is missing."""
    return "-" if value is None or base is None else f"{value / base:.2f}"


def peak(series: Series) -> str:
    """Return the highest peak memory of the repeats beside the budget, in MiB."""
    values = series.values("peak_rss_bytes")
    if not values:
        return "-"
    budget = series.records[0].get("budget_bytes")
    return f"{max(values) / MIB:.0f} / {'-' if budget is None else f'{budget / MIB:.0f}'}"


def megabytes_per_second(byte_count: int, seconds_field: str) -> Callable[[Record], float]:
    """Return a reader of a record's throughput, in decimal MB/s."""
    return lambda record: byte_count / record[seconds_field] / 1e6
