"""`lognormal`: the graph of the thesis, generated and ranked within 500 MiB."""

from __future__ import annotations

from collections.abc import Iterator

from bench.command import brimful
from bench.session import Series, Session
from bench.table import MIB, Table, figure, peak

_BUDGET = "500M"
_LIMIT_BYTES = 500 * MIB


def tables(session: Session) -> Iterator[Table]:
    """Yield one table of both commands, each under a hard limit equal to its budget."""
    vertices = session.size.lognormal_vertices
    graph = session.folder / "lognormal.brimful"
    (generated,) = session.measure(
        brimful(
            *("generate", "lognormal", graph, "--vertices", str(vertices), "--budget", _BUDGET),
            limit_bytes=_LIMIT_BYTES,
            fresh=graph,
        )
    )
    edges = generated.median("edges")
    table = Table(
        f"lognormal: {vertices:,} vertices, {'?' if edges is None else f'{edges:,.0f}'} edges, in "
        "500 MiB",
        "f64",
        (
            "what",
            "completes",
            "s, median (best)",
            "s/superstep",
            "supersteps",
            "peak / budget, MiB",
        ),
    )
    table.row(
        "generate",
        _completes(generated),
        figure(generated, "wall_seconds"),
        "-",
        "-",
        peak(generated),
    )
    table.ran(generated)
    if generated.gap is None:
        (ranked,) = session.measure(
            brimful(
                *("run", "pagerank", graph, "--budget", _BUDGET),
                limit_bytes=_LIMIT_BYTES,
                cold=(graph,),
            )
        )
        supersteps = ranked.median("supersteps")
        table.row(
            "run pagerank",
            _completes(ranked),
            figure(ranked, "wall_seconds"),
            "-" if ranked.gap else figure(ranked, "superstep_median", 3),
            "-" if supersteps is None else f"{supersteps:.0f}",
            peak(ranked),
        )
        table.ran(ranked)
    else:
        table.row("run pagerank", "-", "not run: there is no graph", "-", "-", "-")
    table.notes += [
        "target: both complete within 500 MB; no reference: no other program here does either",
        "seconds of the whole process; PageRank runs to its default tolerance",
    ]
    yield table


def _completes(series: Series) -> str:
    if series.gap is None:
        return "yes"
    return "NO" if series.failed else "-"
