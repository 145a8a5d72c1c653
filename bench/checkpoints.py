"""`checkpoints`: the cost of a checkpoint every five supersteps, beside a run without."""

from __future__ import annotations

from collections.abc import Iterator

from bench.command import brimful
from bench.session import Session
from bench.table import GIB, Table, figure, ratio, target

_SUPERSTEPS, _EVERY = "100", "5"
#: The run with them may take so many times as long.
_MOST = 1.05


def tables(session: Session) -> Iterator[Table]:
    """Yield one table: PageRank with and without, in turns."""
    scale = session.size.large_scale
    graph, folder = session.imported(scale), session.folder / "checkpoints"
    run = ("run", "pagerank", graph, "--tolerance", "0", "--max-supersteps", _SUPERSTEPS)
    chosen = ("--checkpoint-every", _EVERY, "--checkpoint-dir", folder)
    table = Table(
        f"checkpoints: PageRank on RMAT-{scale}, {_SUPERSTEPS} supersteps, one every {_EVERY}",
        "scores and sums f64",
        ("signals", "s without", "s with", "ratio", "in checkpoints, s", "target"),
    )
    for precision in ("f64", "f32"):
        words = (*run, "--budget", "1G", "--precision", precision)
        plain, saving = session.measure(
            brimful(*words, limit_bytes=GIB),
            brimful(*words, *chosen, limit_bytes=GIB, fresh=folder),
        )
        seconds = plain.median("seconds"), saving.median("seconds")
        goal = "-"
        if seconds[0] and seconds[1]:
            goal = target(session.size, seconds[1] / seconds[0], _MOST)
        table.row(
            precision,
            figure(plain, "seconds"),
            figure(saving, "seconds"),
            ratio(seconds[1], seconds[0]),
            figure(saving, lambda record: record["phases"]["checkpoints"]),
            goal,
        )
        table.ran(plain, saving)
    table.notes.append("hard limit 1 GiB; seconds of the run, as it says them itself")
    yield table
