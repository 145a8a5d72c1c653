"""`text`: an edge list as text, from the file to the finished graph."""

from __future__ import annotations

from collections.abc import Iterator

from bench.command import brimful, reference
from bench.session import Session, rmat_edges
from bench.table import Table, figure, megabytes_per_second, peak, ratio, target


def tables(session: Session) -> Iterator[Table]:
    """Yield the table of the medium RMAT graph."""
    scale = session.size.medium_scale
    data = session.text(scale)
    byte_count = data.stat().st_size
    out = session.folder / "text.brimful"
    ours, lines, pandas, arrow = session.measure(
        brimful(
            *("import", data, out, "--format", "edgelist", "--budget", "1G"),
            cold=(data,),
            fresh=out,
        ),
        *(reference(name, data, cold=(data,)) for name in ("lines", "pandas", "arrow")),
    )
    table = Table(
        f"text: RMAT-{scale} ({rmat_edges(scale):,} edges, {byte_count / 1e6:,.0f} MB) as an edge "
        "list",
        "integer ids; no floating point",
        ("what", "MB/s, median (best)", "target", "ratio: ours / this", "peak / budget, MiB"),
    )
    speed = megabytes_per_second(byte_count, "wall_seconds")
    ours_median = ours.median(speed)
    table.row(
        "brimful import",
        figure(ours, speed, 0, more_is_better=True),
        target(session.size, ours_median, 150, " MB/s", at_least=True),
        "1",
        peak(ours),
    )
    names = {
        "reference: wc -l": lines,
        "reference: pandas.read_csv into memory": pandas,
        "reference: pyarrow.csv into memory": arrow,
    }
    for name, series in names.items():
        its_speed = megabytes_per_second(byte_count, "seconds")
        table.row(
            name,
            figure(series, its_speed, 0, more_is_better=True),
            "-",
            ratio(ours_median, series.median(its_speed)),
            "-",
        )
    table.ran(ours, lines, pandas, arrow)
    table.notes += [
        "ratios are of MB/s: above 1 is better",
        "brimful: bytes of the file / seconds of the whole process, which ends with a finished "
        "graph on disk; the references end with a count or with columns in memory",
    ]
    yield table
