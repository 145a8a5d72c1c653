"""`curve`: seconds per superstep as the budget falls, each under a hard limit equal to it."""

from __future__ import annotations

from collections.abc import Iterator

from bench.pagerank import SUPERSTEPS, pagerank
from bench.session import Session
from bench.table import GIB, MIB, Table, figure, peak, ratio

_UNITS = {"M": MIB, "G": GIB}


def tables(session: Session) -> Iterator[Table]:
    """Yield one table, largest budget first."""
    scale = session.size.large_scale
    graph = session.imported(scale)
    budgets = session.size.curve
    all_series = session.measure(
        *(pagerank(graph, budget, _size_bytes(budget)) for budget in budgets)
    )
    table = Table(
        f"curve: PageRank on RMAT-{scale} as the budget falls, {SUPERSTEPS} supersteps",
        "f64",
        (
            "budget = hard limit",
            "s/superstep, median (best)",
            "ratio to the largest",
            "peak / budget, MiB",
            "read, GiB",
        ),
    )
    base = all_series[0].median("superstep_median")
    for budget, series in zip(budgets, all_series, strict=True):
        read = series.median("bytes_read")
        table.row(
            budget,
            figure(series, "superstep_median", 3),
            ratio(series.median("superstep_median"), base),
            peak(series),
            "-" if read is None else f"{read / GIB:.2f}",
        )
    table.ran(*all_series)
    yield table


def _size_bytes(text: str) -> int:
    return int(text[:-1]) * _UNITS[text[-1]]
