"""`cluster`: workers on this machine beside one process, and the forecast beside each."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.command import Command, Record, brimful
from bench.session import EDGE_FACTOR, Series, Session
from bench.table import MIB, Table, figure, megabytes_per_second, ratio, target

#: Threads of the one process; each worker has one.
_THREADS = 2
_WORKERS = (1, 2, 3, 4)
_BUDGET = ("--budget", "2G")
_PROGRAMS = {
    "pagerank": ("--tolerance", "0", "--max-supersteps", "10"),
    "bfs": ("--source", "0"),
}
#: Files of an import.
_FILES = 4
#: Beside Spark, which takes long for a superstep; and the heap of Spark.
_SHORT = ("--tolerance", "0", "--max-supersteps", "5")
_SPARK_MEMORY = "8g"
#: Bytes of a part, and turns, of the exchange alone.
_PART, _TURNS = 20_000_000, 50


def tables(session: Session) -> Iterator[Table]:
    """Yield a table of each program, one of imports, and one of the exchange alone."""
    scale = session.scale or session.size.medium_scale
    graph = session.rmat(scale)
    for program, options in _PROGRAMS.items():
        yield _runs(session, graph, f"RMAT-{scale}", program, options)
    yield _imports(session, graph, f"RMAT-{scale}")
    yield _exchange(session)
    yield _beside_spark(session)


def _runs(
    session: Session, graph: Path, name: str, program: str, options: tuple[str, ...]
) -> Table:
    places: list[tuple[str, ...]] = [("--threads", str(_THREADS))]
    places += [("--cluster", f"local:{count}", "--threads", "1") for count in _WORKERS]
    words = [(*options, *_BUDGET, *place) for place in places]
    runs = [brimful("run", program, graph, *given) for given in words]
    plans = [brimful("plan", graph, program, *given) for given in words]
    # A forecast measures the machine as it is beside each run.
    pairs: list[Command] = [one for pair in zip(plans, runs, strict=True) for one in pair]
    series = session.measure(*pairs)
    table = Table(
        f"cluster: {program} of {name} in one process, and by workers of one thread",
        "f64",
        (
            "where",
            "s/superstep, median (best)",
            "speed of one process",
            "s after the start",
            "forecast, s (off)",
            "MB taken in a superstep and worker (forecast)",
            "s waiting, most",
            "s to the first superstep",
            "peak of a worker, MiB (brimful's own foreseen)",
        ),
    )
    base = series[1].median(_superstep)
    for index, place in enumerate(places):
        plan, run = series[2 * index : 2 * index + 2]
        measured = run.median(_superstep)
        table.row(
            " ".join(place),
            figure(run, _superstep, 3),
            ratio(base, measured),
            figure(run, _after_start),
            _beside(plan.median(_foreseen_after_start), run.median(_after_start)),
            "-"
            if index == 0
            else f"{_number(run.median(_taken))} "
            f"({_number(plan.median(lambda one: one['received_bytes_per_superstep'] / 1e6))})",
            "-" if index == 0 else figure(run, _waiting),
            "-"
            if index == 0
            else f"{figure(run, _start)} {target(session.size, run.median(_start), 12, ' s')}",
            _peak(plan, run),
        )
    table.ran(*series)
    table.notes += [
        f"the load of the machine before the table was {os.getloadavg()[0]:.1f}; the commands run "
        "in turn",
        f"R-MAT with {EDGE_FACTOR} edges for each id; off: the forecast beyond the measured time",
    ]
    return table


def _imports(session: Session, graph: Path, name: str) -> Table:
    files = [session.folder / f"{name}-{number}.parquet" for number in range(_FILES)]
    if not all(file.exists() for file in files):
        _write(graph, files)
    out = session.folder / "imported.brimful"
    places: list[tuple[str, ...]] = [("--threads", str(_THREADS))]
    places += [("--cluster", f"local:{count}") for count in (1, 2)]
    words = [(*_BUDGET, *place) for place in places]
    series = session.measure(
        *(brimful("import", *files, out, *given, fresh=out) for given in words)
    )
    table = Table(
        f"cluster: import of {name} from {_FILES} Parquet files, by one process and by tasks",
        "32-bit ids; no floating point",
        (
            "where",
            "s, median (best)",
            "s to sort and to write shards",
            "MB from tasks that read and rank",
        ),
    )
    for place, one in zip(places, series, strict=True):
        divided = place[0] == "--cluster"
        taken = one.median(_taken_in) if divided else None
        table.row(
            " ".join(place),
            figure(one, "seconds"),
            figure(one, _sorting),
            "-" if taken is None else _number(taken),
        )
    table.ran(*series)
    table.notes.append("seconds without the start of Ray; the driver has all threads")
    return table


def _write(graph: Path, files: list[Path]) -> None:
    """Divide the edges of a graph among Parquet files."""
    import pyarrow.parquet as pq

    import brimful as bf

    with bf.Graph.open(graph) as opened:
        edges = opened.to_arrow().select(["source", "target"])
    each = -(-edges.num_rows // len(files))
    for number, file in enumerate(files):
        pq.write_table(edges.slice(number * each, each), file)


def _sorting(record: Record) -> float:
    return float(record["phases"]["sort"] + record["phases"]["write shards"])


def _taken_in(record: Record) -> float:
    figures = record["cluster"]
    return float((figures["bytes_received"] + figures["ranking"]["bytes_received"]) / 1e6)


def _exchange(session: Session) -> Table:
    series = session.measure(Command("bench.actors", (str(_PART), str(_TURNS))))[0]
    table = Table(
        "cluster: the exchange between two workers alone",
        "bytes",
        ("through", "MB/s that each takes in, median (best)", "target"),
    )
    speed = megabytes_per_second(_PART * _TURNS, "seconds")
    table.row(
        "shared memory (one node)",
        figure(series, speed, 0, more_is_better=True),
        target(session.size, series.median(speed), 500, " MB/s", at_least=True),
    )
    table.ran(series)
    table.notes.append(f"{_TURNS} turns of {_PART / 1e6:.0f} MB from each to the other at a time")
    return table


def _beside_spark(session: Session) -> Table:
    scale = session.size.small_scale
    graph, edges = session.rmat(scale), session.text(scale)
    words = ("run", "pagerank", graph, *_SHORT, *_BUDGET)
    steps, memory = _SHORT[-1], _SPARK_MEMORY
    series = session.measure(
        brimful(*words, "--threads", str(_THREADS)),
        brimful(*words, "--cluster", "local:2", "--threads", "1"),
        Command("bench.spark", (str(edges), steps, memory)),
    )
    table = Table(
        f"cluster: PageRank of RMAT-{scale} beside GraphX of Spark",
        f"f64; {_THREADS} threads each",
        ("where", "s/superstep, median (best)", "s to load", "times as fast as GraphX"),
    )
    spark = series[2].median("seconds")
    for name, one in zip(("--threads 2", "--cluster local:2", "GraphX"), series, strict=True):
        field: Any = "seconds" if name == "GraphX" else _superstep
        loaded = figure(one, "load_seconds") if name == "GraphX" else "-"
        table.row(name, figure(one, field, 3), loaded, ratio(spark, one.median(field)))
    table.ran(*series)
    table.notes.append(
        f"GraphX: supersteps without loading, one process with a heap of {memory}, from an edge "
        "list; brimful: a graph directory in 2G"
    )
    return table


def _superstep(record: Record) -> float:
    return float(record["superstep_median"])


def _after_start(record: Record) -> float:
    return sum(map(float, record["phases"].values()))


def _foreseen_after_start(record: Record) -> float:
    return float(record["seconds"]) - float(record["start_seconds"] or 0)


def _workers(record: Record, field: str) -> list[float]:
    return [float(worker[field]) for worker in record["cluster"]["workers"]]


def _taken(record: Record) -> float:
    # Vertices signal before the first superstep, too.
    return max(_workers(record, "bytes_received")) / (int(record["supersteps"]) + 1) / 1e6


def _waiting(record: Record) -> float:
    return max(_workers(record, "wait_seconds"))


def _start(record: Record) -> float:
    return float(record["cluster"]["start_seconds"])


def _peak(plan: Series, run: Series) -> str:
    if run.gap is not None or plan.gap is not None:
        return "-"
    divided = run.records[0]["cluster"] is not None
    peaks = run.values(
        lambda one: max(_workers(one, "peak_rss_bytes")) if divided else one["peak_rss_bytes"]
    )
    foreseen = plan.values("peak_memory_bytes")
    return f"{max(peaks) / MIB:.0f} ({statistics.median(foreseen) / MIB:.0f})"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _beside(foreseen: float | None, measured: float | None) -> str:
    if foreseen is None or measured is None:
        return "-"
    return f"{foreseen:.3f} ({foreseen / measured - 1:+.0%})"
