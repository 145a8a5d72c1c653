"""`forecasts`: the memory and disk that `plan` names, beside those of the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from bench.command import Record, brimful
from bench.session import EDGE_FACTOR, Session
from bench.table import MIB, Table

#: Times are not compared here: nothing has to be measured for them.
_MACHINE = ("--disk-bandwidth", "2", "--memory-bandwidth", "30")
_SUPERSTEPS = ("--max-supersteps", "2")
#: Vertices and edges of a uniform graph, for one of the R-MAT graph.
_UNIFORM = (3 / 4, 6)
_BUDGETS = {
    "forecasts: shards": ("64M", "80M", "200M", "1G"),
    "forecasts: stores": ("100M", "200M", "400M", "1G"),
}
_STORES = ("memory", "bytes", "bytes compact", "file")
_PROGRAMS = {
    "pagerank": _SUPERSTEPS,
    "bfs": ("--source", "0"),
    "connected_components": (),
    "degrees": (),
}


def tables(session: Session) -> Iterator[Table]:
    """Yield a table of runs on shards, and one of runs on stores."""
    large = session.size.medium_scale - 2
    small = large - 2
    graphs = {f"RMAT-{large}": session.rmat(large)}
    programs = [(program, *options) for program, options in _PROGRAMS.items()]
    yield _table(session, "forecasts: shards", graphs, ["shards"], programs)
    vertices, edges = int(_UNIFORM[0] * 2**small), int(_UNIFORM[1] * 2**small)
    uniform = session.folder / "uniform.brimful"
    words = ("--vertices", str(vertices), "--edges", str(edges), "--seed", "1")
    graphs = {
        f"RMAT-{small}": session.rmat(small),
        "uniform": session.made(uniform, "generate", "erdos-renyi", uniform, *words),
    }
    yield _table(session, "forecasts: stores", graphs, _STORES, programs)


def _table(
    session: Session,
    title: str,
    graphs: dict[str, Path],
    places: Sequence[str],
    programs: Sequence[tuple[str, ...]],
) -> Table:
    table = Table(
        title,
        "the program's own",
        ("graph", "states in", "program", "budget", "memory, MiB", "off", "disk, MiB", "off "),
    )
    for (name, graph), place in product(graphs.items(), places):
        for (program, *options), budget in product(programs, _BUDGETS[title]):
            words = [*options, *_choice(place, session.folder / "store"), "--budget", budget]
            planned = brimful("plan", graph, program, *words, *_MACHINE)
            (plan,) = session.measure(planned)
            row = (name, place, program, budget)
            if plan.gap or not plan.records[0]["fits"]:
                table.row(*row, plan.gap or "does not fit", "-", "-", "-")
                continue
            (run,) = session.measure(brimful("run", program, graph, *words))
            forecast = plan.records[0]
            table.row(
                *row,
                *_cells(forecast["peak_memory_bytes"], run.values("peak_rss_bytes"), run.gap),
                *_cells(forecast["disk_bytes"], run.values(_disk), run.gap),
            )
    table.notes += [
        "forecast -> measured, the repeat that is furthest from the forecast; off: how much more "
        "was foreseen than taken, where that was a MiB at least",
        f"two supersteps of PageRank, other programs to their end; R-MAT with {EDGE_FACTOR} edges "
        "for each id",
    ]
    return table


def _choice(place: str, folder: Path) -> tuple[str, ...]:
    if place == "shards":
        return ()
    store, *serializer = place.split()
    url = f"file:{folder}" if store == "file" else store
    return ("--store", url, *(("--serializer", *serializer) if serializer else ()))


def _disk(record: Record) -> float:
    return float(record["scratch_bytes"] + (record["store_figures"] or {}).get("disk_bytes", 0))


def _cells(forecast: float, measured: Sequence[float], gap: str | None) -> tuple[str, str]:
    if gap is not None:
        return gap, "-"
    value = max(measured, key=lambda one: abs(one - forecast))
    text = f"{forecast / MIB:.1f} -> {value / MIB:.1f}"
    return text, f"{forecast / value - 1:+.0%}" if value >= MIB else "-"
