"""`import`: binary pairs to a graph under a hard limit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.command import Record, brimful, reference
from bench.session import Series, Session, rmat_edges
from bench.table import GIB, Table, figure, peak, ratio, target

_SAMPLE_KEYS = 32 << 20


def tables(session: Session) -> Iterator[Table]:
    """Yield the table of the large RMAT graph."""
    scale = session.size.large_scale
    edges = rmat_edges(scale)
    data = session.pairs(scale)
    out = session.folder / "imported.brimful"
    command = brimful(
        "import",
        data,
        out,
        "--format",
        "u32pairs",
        "--index",
        "in",
        "--budget",
        "1G",
        limit_bytes=GIB,
        cold=(data,),
        fresh=out,
    )
    sample = min(edges, _SAMPLE_KEYS)
    ours, read, sort = session.measure(
        command,
        reference("read", data, limit_bytes=GIB, cold=(data,)),
        reference("sort", data, str(sample)),
    )
    table = Table(
        f"import: RMAT-{scale} ({edges:,} edges) from u32pairs in 1 GiB",
        "32-bit ids; no floating point",
        ("what", "median (best)", "target", "ratio: ours / this", "peak / budget, MiB"),
    )
    seconds = ours.median("wall_seconds")
    table.row(
        "brimful import, s",
        figure(ours, "wall_seconds"),
        target(session.size, seconds, 10, " s"),
        "1",
        peak(ours),
    )
    shard_cell, shard_bytes = _shards(session, ours, out)
    table.row(
        "shards, bytes/edge",
        shard_cell,
        target(session.size, shard_bytes, 1.8),
        "-",
        "-",
    )
    table.row(
        "reference: read the input once, s",
        figure(read, "seconds"),
        "-",
        ratio(seconds, read.median("seconds")),
        "-",
    )

    def scaled(record: Record) -> float:
        return float(record["seconds"] * edges / record["keys"])

    table.row(
        "reference: sort the edges, s",
        figure(sort, scaled),
        "-",
        ratio(seconds, sort.median(scaled)),
        "-",
    )
    table.ran(ours, read, sort)
    table.notes += [
        "seconds of the whole process, from its start to its end",
        f"sorting: np.sort, 1 thread, of the first {sample:,} pairs as uint64 keys (target, "
        f"source) in memory, times {edges / sample:g} for the whole (linear: flatters the sort)",
    ]
    table.notes += _phases(ours)
    yield table


def _shards(session: Session, ours: Series, out: Path) -> tuple[str, float | None]:
    """Return the bytes per edge of the `in` index of the last import: cell and value."""
    if ours.gap is not None:
        return "-", None
    (info,) = session.measure(brimful("info", out))

    def bytes_per_edge(record: Record) -> float:
        index = record["indexes"]["in"]
        return float(index["bytes"] / index["arcs"])

    return figure(info, bytes_per_edge, 3), info.median(bytes_per_edge)


def _phases(ours: Series) -> list[str]:
    if ours.gap is not None:
        return []
    phases = ours.records[-1]["phases"]
    return ["phases of the last run: " + ", ".join(f"{k} {v:.2f} s" for k, v in phases.items())]
