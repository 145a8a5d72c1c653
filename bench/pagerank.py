"""`pagerank`: seconds per superstep by budget, beside SciPy's sparse matrix times vector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.command import Command, brimful, reference
from bench.session import Series, Session, rmat_edges
from bench.table import GIB, MIB, Table, figure, peak, ratio, target

SUPERSTEPS = 10


@dataclass(frozen=True)
class _Case:
    """One row: a graph, a memory and a precision, with the target in seconds per superstep."""

    scale: int
    budget: str
    limit_bytes: int | None
    precision: str
    bound: float

    def command(self, session: Session) -> Command:
        graph = session.imported(self.scale)
        return pagerank(graph, self.budget, self.limit_bytes, "--precision", self.precision)

    def memory(self) -> str:
        return f"{self.budget}, {'to spare' if self.limit_bytes is None else 'hard limit'}"


def pagerank(graph: Path, budget: str, limit_bytes: int | None, *options: str) -> Command:
    """Return ten supersteps of PageRank; under a hard limit the graph starts uncached."""
    return brimful(
        "run",
        "pagerank",
        graph,
        *("--tolerance", "0", "--max-supersteps", str(SUPERSTEPS), "--budget", budget),
        *options,
        limit_bytes=limit_bytes,
        cold=() if limit_bytes is None else (graph,),
    )


def tables(session: Session) -> Iterator[Table]:
    """Yield one table: every memory and precision, and the reference."""
    large, medium = session.size.large_scale, session.size.medium_scale
    cases = [
        _Case(large, "1G", GIB, "f64", 0.24),
        _Case(large, "1G", GIB, "f32", 0.17),
        _Case(large, "300M", 300 * MIB, "f64", 0.90),
        _Case(large, "4G", None, "f64", 0.24),
        _Case(large, "4G", None, "f32", 0.17),
        _Case(medium, "4G", None, "f64", 0.060),
        _Case(medium, "4G", None, "f32", 0.042),
    ]
    pairs = session.pairs(medium)
    products = [
        reference("spmv", pairs, str(1 << medium), precision) for precision in ("f64", "f32")
    ]
    ours = [case.command(session) for case in cases]
    all_series = session.measure(*ours, *products)
    references = dict(zip(("f64", "f32"), all_series[len(cases) :], strict=True))
    table = Table(
        f"pagerank: seconds per superstep, {SUPERSTEPS} supersteps",
        "scores and sums f64; signals as each row says. SciPy's f32 has its sums in f32 too",
        (
            "graph",
            "memory",
            "precision",
            "s/superstep, median (best)",
            "target",
            "ns/edge",
            "ratio to SciPy, per edge",
            "peak / budget, MiB",
            "read, GiB",
        ),
    )
    for case, series in zip(cases, all_series[: len(cases)], strict=True):
        seconds = series.median("superstep_median")
        each = _nanoseconds(series, rmat_edges(case.scale))
        base = _nanoseconds(references[case.precision], rmat_edges(medium))
        read = series.median("bytes_read")
        table.row(
            f"RMAT-{case.scale}",
            case.memory(),
            case.precision,
            figure(series, "superstep_median", 3),
            target(session.size, seconds, case.bound, " s"),
            "-" if each is None else f"{each:.2f}",
            ratio(each, base),
            peak(series),
            "-" if read is None else f"{read / GIB:.2f}",
        )
    for precision, series in references.items():
        each = _nanoseconds(series, rmat_edges(medium))
        table.row(
            f"RMAT-{medium}",
            "SciPy CSR, in memory",
            precision,
            figure(series, "superstep_median", 3),
            "-",
            "-" if each is None else f"{each:.2f}",
            "1",
            "-",
            "-",
        )
    table.ran(*all_series)
    table.notes += [
        "a run's figure is the median of its supersteps; the table has the median and the best of "
        "the runs",
        "graphs imported from `u32pairs`: ids without an edge are not vertices",
        "reference: `A.T @ x` by scipy.sparse.csr_array, 1 thread, duplicates kept, building left "
        "out; it reads edges already in memory and does no vertex phase",
    ]
    yield table


def _nanoseconds(series: Series, edges: int) -> float | None:
    seconds = series.median("superstep_median")
    return None if seconds is None else seconds / edges * 1e9
