"""`stores`: the thesis's graph in each store of vertices, caches, and the gain of asynchrony.

Run as a module (`GRAPH STORE SERIALIZER SUPERSTEPS`, `GRAPH THREADS`, or `queued SIGNALS MEBIBYTES
each|combined`) it prints the figures of the example `pagerank_stores`, `signals` or `queued` of
brimful-execution.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench import examples
from bench.command import Command, Record, brimful
from bench.session import Series, Session
from bench.table import MIB, Table, figure, peak, ratio, target

#: `bytes` is to be so many times smaller than live objects, and may take so many times as long.
_SMALLER, _LOAD, _PAGERANK = 2.5, 1.3, 1.5
_SUPERSTEPS = "3"
#: Name, store and serializer; the first two are by hand.
_STORES = (
    ("by hand, array and array of sums", "arrays", "-"),
    ("by hand, map and map of sums", "maps", "-"),
    ("memory", "memory", "-"),
    ("bytes, native", "bytes", "native"),
    ("bytes, compact", "bytes", "compact"),
    ("bytes, generic", "bytes", "generic"),
    ("bytes, compact+lz4", "bytes", "compact+lz4"),
    ("file, compact", "file", "compact"),
)
#: What runs without supersteps, and its options.
_ASYNCHRONOUS = (
    ("pagerank", ("--param", "method=delta", "--tolerance", "1e-3")),
    ("sssp", ("--source", "0", "--weighted")),
    ("connected_components", ("--param", "method=propagation")),
)
#: What runs with caches, and its options.
_CACHED = (
    ("pagerank", ("--max-supersteps", "5", "--tolerance", "0")),
    ("sssp", ("--source", "0")),
)
_POLICIES = ("lru", "score")
#: Sizes of caches, in percent of the vertices.
_PERCENT = (1, 10, 50, 100)
#: A cache is to save time where it serves more than this part of all loans.
_HIT_RATIO = 0.5
#: The hard limit of runs on vertices on disk, and the budget in it.
_LIMIT, _BUDGET = 500 * MIB, "450M"
#: The thesis's tables 4.3 and 4.4, for one million such vertices on its machine of 2011.
_THESIS = (
    "the thesis (2011, JVM): live objects 618 bytes a vertex, loaded in 15.7 s; serialized in "
    "memory 687 bytes, 19.1 s; Berkeley DB cached 752 bytes, 22.3 s, not cached 27.4 s"
)


def tables(session: Session) -> Iterator[Table]:
    """Yield tables of stores, caches, a hard limit, signals in both modes, and those that wait."""
    examples.build("brimful-algos", "pagerank_stores")
    examples.build("brimful-execution", "signals", "queued")
    vertices = session.size.lognormal_vertices
    graph = session.folder / "lognormal-stores.brimful"
    session.made(graph, "generate", "lognormal", graph, "--vertices", str(vertices))
    yield _stores(session, graph, vertices)
    for name, options in _CACHED:
        for store in ("bytes", "file"):
            yield _caches(session, graph, (vertices, store), (name, options))
    yield _limited(session, graph, vertices)
    yield _signals(session)
    yield _queued(session)


def _stores(session: Session, graph: Path, vertices: int) -> Table:
    table = Table(
        f"stores: {vertices:,} log-normal vertices, loaded and ranked",
        "f64; one thread; all stores have the same mean rank",
        ("store", "bytes/vertex", "load s", "load / memory", "superstep s", "/ memory", "target"),
    )
    commands = [
        Command("bench.stores", (str(graph), store, serializer, _SUPERSTEPS))
        for _, store, serializer in _STORES
    ]
    series = dict(zip((name for name, *_ in _STORES), session.measure(*commands), strict=True))
    live = series["memory"]
    for name, figures in series.items():
        size = figures.median(lambda record: record["bytes_per_vertex"] or 0)
        load, step = figures.median("load_seconds"), figures.median("superstep_seconds")
        goals = "-"
        own = [live.median(f) for f in ("bytes_per_vertex", "load_seconds", "superstep_seconds")]
        if name == "bytes, compact" and size and load and step and all(own):
            bytes_live, load_live, step_live = (value or 0.0 for value in own)
            goals = ", ".join(
                (
                    target(session.size, bytes_live / size, _SMALLER, "x smaller", at_least=True),
                    target(session.size, load / load_live, _LOAD, "x load"),
                    target(session.size, step / step_live, _PAGERANK, "x PageRank"),
                )
            )
        table.row(
            name,
            f"{size:.0f}" if size else "-",
            figure(figures, "load_seconds"),
            ratio(load, own[1]),
            figure(figures, "superstep_seconds"),
            ratio(step, own[2]),
            goals,
        )
        table.ran(figures)
    table.notes.append("file: bytes on disk, in a budget of 1 GiB; the others count memory")
    table.notes.append(_THESIS)
    return table


def _caches(
    session: Session,
    graph: Path,
    place: tuple[int, str],
    algorithm: tuple[str, tuple[str, ...]],
) -> Table:
    """Return a table of one algorithm with caches of all sizes, measured in turns."""
    (vertices, store), (name, options) = place, algorithm
    url = f"file:{session.folder / 'cached-vertices'}" if store == "file" else store
    words = ("run", name, str(graph), *options, "--store", url, "--threads", "1")
    sizes = [
        (f"{policy}:{max(1, vertices * percent // 100)}", percent)
        for policy in _POLICIES
        for percent in _PERCENT
    ]
    series = session.measure(
        brimful(*words), *(brimful(*words, "--cache", cache) for cache, _ in sizes)
    )
    table = Table(
        f"stores: {name} on {store}, {vertices:,} log-normal vertices, caches",
        "f64; one thread; native records",
        ("cache", "% of vertices", "hit ratio", "written", "load s", "run s", "/ none", "target"),
    )
    none = series[0].median(_whole)
    for (cache, percent), figures in zip((("none", 0), *sizes), series, strict=True):
        hits = figures.median(lambda record: (record["cache"] or {"hit_ratio": 0})["hit_ratio"])
        whole, goal = figures.median(_whole), "-"
        if hits and none and whole and hits > _HIT_RATIO:
            goal = target(session.size, none / whole, 1, "x faster", at_least=True)
        table.row(
            cache,
            f"{percent}",
            "-" if hits is None else f"{hits:.2f}",
            figure(figures, lambda record: (record["cache"] or {"written": 0})["written"], 0),
            figure(figures, lambda record: record["phases"]["load"]),
            figure(figures, lambda record: record["phases"]["supersteps"]),
            ratio(whole, none),
            goal,
        )
        table.ran(figures)
    table.notes.append("/ none: load and run together, divided by those without a cache")
    return table


def _whole(record: Record) -> float:
    return float(record["phases"]["load"] + record["phases"]["supersteps"])


def _limited(session: Session, graph: Path, vertices: int) -> Table:
    """Return a table of vertices on disk in a hard limit."""
    table = Table(
        f"stores: {vertices:,} log-normal vertices on file, hard limit {_LIMIT // MIB} MiB",
        "f64; two threads; compact records",
        ("algorithm", "supersteps", "seconds", "superstep s", "peak / budget, MiB", "disk, MiB"),
    )
    url = f"file:{session.folder / 'limited-vertices'}"
    common = ("--store", url, "--serializer", "compact", "--threads", "2", "--budget", _BUDGET)
    for name, options in _CACHED:
        words = ("run", name, str(graph), *options, *common)
        [series] = session.measure(brimful(*words, limit_bytes=_LIMIT))
        table.row(
            name,
            figure(series, "supersteps", 0),
            figure(series, "seconds"),
            figure(series, "superstep_median"),
            peak(series),
            figure(series, lambda record: record["store_figures"]["disk_bytes"] / MIB, 0),
        )
        table.ran(series)
    return table


def _signals(session: Session) -> Table:
    scale = session.size.medium_scale - 6
    graph = session.folder / f"rmat-{scale}-signals.brimful"
    made = ("--scale", str(scale), "--edge-factor", "16", "--weights", "hash")
    session.made(graph, "generate", "rmat", graph, *made)
    table = Table(
        f"stores: signals with and without supersteps, RMAT-{scale}, weights 1 to 100, `memory`",
        "f64; a ratio below 1 is fewer signals than in supersteps",
        ("algorithm", "threads", "in supersteps", "--mode async", "ratio", "target"),
    )
    for name, options in _ASYNCHRONOUS:
        words = ("run", name, str(graph), *options, "--store", "memory", "--threads", "2")
        modes = [brimful(*words, "--mode", mode) for mode in ("sync", "async")]
        sync, asynchronous = session.measure(*modes)
        _row(session, table, (name, "2"), (sync, "signals"), (asynchronous, "signals"))
        table.ran(sync, asynchronous)
    for threads in ("1", "2"):
        [series] = session.measure(Command("bench.stores", (str(graph), threads)))
        for name, mode in (("at once", "latency"), ("by score", "throughput")):
            row = (f"Signal/Collect's PageRank, {name}", threads)
            both = (series, "sync_signals"), (series, f"{mode}_signals")
            _row(session, table, row, *both, has_target=mode == "latency")
        table.ran(series)
    table.notes.append(
        "Signal/Collect's PageRank: a vertex keeps the latest signal of each source, and "
        "signals when its score has changed by more than 1e-5"
    )
    return table


def _queued(session: Session) -> Table:
    """Return a table of signals that wait in little memory."""
    signals = 10 * session.size.lognormal_vertices
    table = Table(
        f"stores: {signals:,} signals wait, in 32 MiB of a hard limit of 64 MiB",
        "64-bit signals to a third as many vertices; each is counted and added up",
        ("delivery", "queue s", "collect s", "spills", "spilled, MiB", "peak of the process, MiB"),
    )
    for delivery in ("each", "combined"):
        command = ("queued", str(signals), "32", delivery)
        [series] = session.measure(Command("bench.stores", command, limit_bytes=64 * MIB))
        table.row(
            delivery,
            figure(series, "queue_seconds"),
            figure(series, "collect_seconds"),
            figure(series, "spills", 0),
            figure(series, lambda record: record["spilled_bytes"] / MIB, 0),
            figure(series, lambda record: record["peak_rss_bytes"] / MIB, 0),
        )
        table.ran(series)
    return table


def _row(
    session: Session,
    table: Table,
    name: tuple[str, str],
    sync: tuple[Series, str],
    other: tuple[Series, str],
    *,
    has_target: bool = True,
) -> None:
    """Add a row of signals with supersteps and without."""
    before, after = (series.median(field) for series, field in (sync, other))
    goal = "-"
    if before and after and has_target:
        goal = target(session.size, before / after, 1, "x fewer", at_least=True)
    table.row(*name, figure(*sync, 0), figure(*other, 0), ratio(after, before), goal)


def main() -> int:
    """Measure one store, signals or a mailbox; the files of a store are removed."""
    if len(sys.argv) == 3:
        return examples.run("signals", *sys.argv[1:])
    if sys.argv[1] == "queued":
        return examples.run("queued", *sys.argv[2:])
    graph, store, serializer, supersteps = sys.argv[1:]
    folder = tempfile.mkdtemp(dir=Path(graph).parent)
    try:
        url = f"file:{folder}/vertices" if store == "file" else store
        return examples.run("pagerank_stores", graph, url, serializer, supersteps, 1)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    raise SystemExit(main())
