"""`memory`: the bandwidths of disk and memory, independent of brimful."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from bench.command import Record, reference
from bench.session import Session
from bench.table import Table, figure


def tables(session: Session) -> Iterator[Table]:
    """Yield one table of disk and one of memory bandwidth."""
    yield _disk(session)
    yield _memory(session)


def _gigabytes_per_second(record: Record) -> float:
    return float(record["bytes"] / record["seconds"] / 1e9)


def _disk(session: Session) -> Table:
    table = Table("memory: disk, sequential", "bytes", ("what", "GB/s, median (best)", "size, GB"))
    data = session.pairs(session.size.large_scale)
    output = session.folder / "written.tmp"
    cold, warm, written = session.measure(
        reference("read", data, cold=(data,)),
        reference("read", data),
        reference("write", output, str(session.size.buffer_bytes)),
    )
    names = {"read, cold": cold, "read, warm": warm, "write and fsync": written}
    for name, series in names.items():
        byte_count = series.median("bytes")
        table.row(
            name,
            figure(series, _gigabytes_per_second, more_is_better=True),
            "-" if byte_count is None else f"{byte_count / 1e9:.2f}",
        )
    table.ran(cold, warm, written)
    table.notes.append("plain reads and writes of 4 MiB, one at a time, one buffer")
    return table


def _memory(session: Session) -> Table:
    table = Table(
        "memory: reading memory", "float64", ("threads", "huge pages", "GB/s, median (best)")
    )
    cases = list(product((1, 2), (False, True)))
    all_series = session.measure(
        *(
            reference(
                "bandwidth",
                str(session.size.buffer_bytes),
                str(threads),
                environment={"NUMPY_MADVISE_HUGEPAGE": str(int(huge))},
            )
            for threads, huge in cases
        )
    )
    for (threads, huge), series in zip(cases, all_series, strict=True):
        cell = figure(series, _gigabytes_per_second, more_is_better=True)
        table.row(str(threads), "asked for" if huge else "not asked for", cell)
    table.ran(*all_series)
    table.notes += [
        f"np.add.reduce over {session.size.buffer_bytes >> 20} MiB, the best of ten passes in each "
        "repeat",
        "the kernel's setting (see above) decides whether asking makes a difference",
    ]
    return table
