"""`layouts`: the same runs over shards, decoupled and coupled records: InfiniMem's Table 3."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.command import Command, brimful
from bench.session import Series, Session
from bench.table import Table, figure, ratio

_LAYOUTS = ("shards", "decoupled", "coupled")
_BUDGET = "300M"
_ALGORITHMS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("pagerank", ("--tolerance", "0", "--max-supersteps", "10")),
    ("connected_components", ("--param", "method=propagation")),
    ("bfs", ("--source", "0")),
    ("sssp", ("--source", "0")),
)


def tables(session: Session) -> Iterator[Table]:
    """Yield one table: seconds and bytes of each layout, and the ratios of the paper."""
    scale, vertices = session.size.medium_scale, session.size.lognormal_vertices
    graphs = {f"RMAT-{scale}": session.rmat(scale), "log-normal": _lognormal(session, vertices)}
    table = Table(
        "layouts: the same result from shards, decoupled and coupled records",
        "float64; all layouts give the same bits",
        (
            "graph",
            "algorithm",
            *(f"{layout}: s, median (best)" for layout in _LAYOUTS),
            *(f"{layout}: MB read / written" for layout in _LAYOUTS),
            "coupled / decoupled, s",
            "decoupled / shards, s",
        ),
    )
    for name, graph in graphs.items():
        for algorithm, options in _ALGORITHMS:
            all_series = session.measure(
                *(_command(algorithm, graph, options, layout) for layout in _LAYOUTS)
            )
            shards, decoupled, coupled = (series.median("seconds") for series in all_series)
            table.row(
                name,
                algorithm,
                *(figure(series, "seconds") for series in all_series),
                *(_moved(series) for series in all_series),
                ratio(coupled, decoupled),
                ratio(decoupled, shards),
            )
            table.ran(*all_series)
    table.notes += [
        f"seconds without those that making the records takes (`index_seconds`); {_BUDGET} for the "
        "whole process, files in the page cache",
        "signals are in memory in all layouts; the paper's random reads of vertices, with their "
        "lists where they are coupled, do not occur",
    ]
    yield table


def _command(algorithm: str, graph: Path, options: tuple[str, ...], layout: str) -> Command:
    return brimful("run", algorithm, graph, *options, "--layout", layout, "--budget", _BUDGET)


def _lognormal(session: Session, vertices: int) -> Path:
    out = session.folder / "lognormal-layouts.brimful"
    return session.made(out, "generate", "lognormal", out, "--vertices", str(vertices))


def _moved(series: Series) -> str:
    if series.gap is not None:
        return "-"
    record = series.records[-1]
    return f"{record['bytes_read'] / 1e6:,.0f} / {record['bytes_written'] / 1e6:,.0f}"
