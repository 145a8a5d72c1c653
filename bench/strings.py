"""`strings`: an edge list whose ids are strings, under a hard limit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.command import brimful, reference
from bench.session import Session
from bench.table import Table, figure, megabytes_per_second, peak, ratio, target

_NAME_BYTES = 20
_LIMIT_BYTES = 500 << 20
#: Edges and different names, by the size that the user chose.
_SIZES = {"full": (64 << 20, 4 << 20), "small": (1 << 18, 1 << 14)}
_ROWS = 1 << 20


def tables(session: Session) -> Iterator[Table]:
    """Yield the table of one graph of names drawn at random."""
    edges, names = _SIZES["small" if session.size.name == "small" else "full"]
    data = session.folder / f"strings-{edges}-{names}.txt"
    _make(data, edges, names)
    byte_count = data.stat().st_size
    out = session.folder / "strings.brimful"
    ours, lines = session.measure(
        brimful(
            *("import", data, out, "--ids", "string", "--budget", "500M"),
            limit_bytes=_LIMIT_BYTES,
            cold=(data,),
            fresh=out,
        ),
        reference("lines", data, cold=(data,)),
    )
    table = Table(
        f"strings: {edges:,} edges over {names:,} names of {_NAME_BYTES} bytes "
        f"({byte_count / 1e6:,.0f} MB) in 500 MiB",
        "string ids; no floating point",
        ("what", "MB/s, median (best)", "target", "ratio: ours / this", "peak / budget, MiB"),
    )
    speed = megabytes_per_second(byte_count, "wall_seconds")
    ours_median = ours.median(speed)
    table.row(
        "brimful import --ids string",
        figure(ours, speed, 0, more_is_better=True),
        target(session.size, ours_median, 60, " MB/s", at_least=True),
        "1",
        peak(ours),
    )
    its_speed = megabytes_per_second(byte_count, "seconds")
    table.row(
        "reference: wc -l",
        figure(lines, its_speed, 0, more_is_better=True),
        "-",
        ratio(ours_median, lines.median(its_speed)),
        "-",
    )
    table.ran(ours, lines)
    table.notes.append(
        "bytes of the file / seconds of the whole process, which ends with a finished graph on disk"
    )
    if ours.gap is None:
        phases = ours.records[-1]["phases"]
        listed = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in phases.items())
        table.notes.append(f"phases of the last run: {listed}")
    yield table


def _make(path: Path, edges: int, names: int) -> None:
    """Write `name<TAB>name` lines, both drawn at random, unless they are there."""
    if path.exists():
        return
    random = np.random.default_rng(0)
    # An odd factor: different numbers give different names.
    numbers = np.arange(names, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    digits = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
    table = np.empty((names, _NAME_BYTES), dtype=np.uint8)
    table[:, :4] = np.frombuffer(b"user", dtype=np.uint8)
    for place in range(16):
        table[:, 4 + place] = digits[(numbers >> np.uint64(60 - 4 * place)) & np.uint64(15)]
    partial = path.with_suffix(".partial")
    with open(partial, "wb") as file:
        for start in range(0, edges, _ROWS):
            rows = min(_ROWS, edges - start)
            lines = np.empty((rows, 2 * _NAME_BYTES + 2), dtype=np.uint8)
            lines[:, :_NAME_BYTES] = table[random.integers(0, names, rows)]
            lines[:, _NAME_BYTES] = ord("\t")
            lines[:, _NAME_BYTES + 1 : -1] = table[random.integers(0, names, rows)]
            lines[:, -1] = ord("\n")
            file.write(lines.tobytes())
    partial.rename(path)
