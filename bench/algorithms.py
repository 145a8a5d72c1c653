"""`algorithms`: algorithms within a hard limit, beside SciPy and igraph in memory.

Run as a module (`GRAPH SOURCE ROUNDS`) it prints the figures of the example `loaded` of
brimful-algos: searches of a graph that has been read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import examples
from bench.command import ROOT, Command, brimful, reference
from bench.errors import NotMeasured
from bench.session import Session
from bench.table import GIB, MIB, Table, figure, peak, target

_UNITS = {"M": MIB, "G": GIB}
#: Seconds of a search of the large graph once it has been read.
_LOADED = 0.4


@dataclass(frozen=True)
class _Case:
    """One row: a graph, an algorithm, a memory, and the target in seconds in all."""

    graph: Callable[[Session], Path]
    name: str
    algorithm: str
    options: tuple[str, ...]
    budget: str
    hard: bool
    bound: float | None

    def command(self, session: Session) -> Command:
        graph = self.graph(session)
        source = ("--source", _source(graph)) if self.algorithm in ("bfs", "sssp") else ()
        limit_bytes = int(self.budget[:-1]) * _UNITS[self.budget[-1]] if self.hard else None
        return brimful(
            *("run", self.algorithm, graph, *source, *self.options, "--budget", self.budget),
            limit_bytes=limit_bytes,
            cold=(graph,) if self.hard else (),
        )


def _source(graph: Path) -> str:
    """Return the vertex with most outgoing arcs, the first of them."""
    import brimful as bf

    with bf.Graph.open(str(graph)) as opened:
        ((vertex, _),) = bf.degrees(opened).top(1)
    return str(vertex)


def _large(session: Session) -> Path:
    return session.imported(session.size.large_scale)


def _medium(session: Session) -> Path:
    return session.imported(session.size.medium_scale)


def _small(session: Session) -> Path:
    return session.rmat(session.size.small_scale)


def _weighted(session: Session) -> Path:
    scale = session.size.large_scale
    out = session.folder / f"rmat-{scale}-weighted.brimful"
    options = ("--format", "u32pairs", "--index", "in", "--weights", "hash")
    return session.made(out, "import", session.pairs(scale), out, *options)


def _real(session: Session, file: str, name: str, *options: str) -> Path:
    data = Path(os.environ.get("BRIMFUL_TEST_DATA", ROOT / ".." / "shared" / "data"))
    if not (data / file).is_file():
        raise NotMeasured(f"{data / file} is not there")
    out = session.folder / f"{name}.brimful"
    return session.made(out, "import", data / file, out, *options)


def _roads(session: Session) -> Path:
    return _real(session, "NE.gr.xz", "NE", "--weights", "hash")


def _web(session: Session) -> Path:
    return _real(session, "cnr-2000.graph-txt.gz", "cnr-2000")


def _chain(session: Session) -> Path:
    vertices = 2_000_000 if session.size.has_targets else 20_000
    out = session.folder / f"chain-{vertices}.brimful"
    return session.made(out, "generate", "chain", out, "--vertices", str(vertices))


def _lognormal(session: Session) -> Path:
    vertices = str(session.size.lognormal_vertices)
    out = session.folder / "lognormal-paths.brimful"
    return session.made(out, "generate", "lognormal", out, "--vertices", vertices)


_CASES = [
    _Case(_large, "large", "connected_components", (), "1G", True, 2.5),
    _Case(_large, "large", "connected_components", (), "4G", False, 1.2),
    _Case(_large, "large", "bfs", (), "1G", True, 1.5),
    _Case(_large, "large", "bfs", (), "4G", False, None),
    _Case(_weighted, "large, weights 1 to 100", "sssp", ("--weighted",), "1G", True, 10),
    _Case(_medium, "medium", "sssp", (), "4G", False, 1.0),
    _Case(_medium, "medium", "bfs", (), "4G", False, None),
    _Case(_medium, "medium", "label_propagation", ("--max-supersteps", "10"), "500M", True, None),
    _Case(_medium, "medium", "label_propagation", ("--max-supersteps", "10"), "1G", True, 5),
    _Case(_medium, "medium", "kcore", (), "1G", False, 3),
    _Case(_small, "small", "color", (), "1G", False, 3),
    _Case(_small, "small", "color", (), "96M", True, 60),
    _Case(_medium, "medium", "clustering", (), "500M", True, None),
    _Case(_roads, "NE", "bfs", (), "128M", True, 2),
    _Case(_roads, "NE", "sssp", (), "128M", True, 3),
    _Case(_roads, "NE, weights 1 to 100", "sssp", ("--weighted",), "1G", False, 1.5),
    _Case(_roads, "NE, weights 1 to 100", "sssp", ("--weighted",), "128M", True, 3),
    _Case(
        _roads, "NE, weights, async", "sssp", ("--weighted", "--mode", "async"), "1G", False, None
    ),
    _Case(_roads, "NE", "scc", (), "1G", False, None),
    _Case(_web, "cnr-2000", "scc", (), "1G", False, 0.3),
    _Case(_chain, "chain", "bfs", (), "128M", True, 4),
    _Case(_lognormal, "log-normal", "sssp", (), "500M", True, 3),
    _Case(_lognormal, "log-normal", "sssp", (), "200M", True, None),
]


def tables(session: Session) -> Iterator[Table]:
    """Yield one table, of seconds from the first byte read to the last superstep."""
    size = session.size
    sizes = {
        "large": f"RMAT-{size.large_scale}",
        "medium": f"RMAT-{size.medium_scale}",
        "small": f"RMAT-{size.small_scale}",
    }
    real = _has_real(session)
    cases = [case for case in _CASES if real or case.graph not in (_roads, _web)]
    pairs = session.pairs(size.medium_scale)
    vertices = str(1 << size.medium_scale)
    references = [
        reference("csr_bfs", str(pairs), vertices, _source(_medium(session))),
        reference("csr_components", str(pairs), vertices),
    ]
    references.append(reference("coreness", str(pairs)))
    if real:
        roads = _roads(session)
        references.append(reference("dijkstra", str(roads), _source(roads)))
        references.append(reference("strong", str(_web(session))))
    large = _large(session)
    again = Command("bench.algorithms", (str(large), _source(large), "7"))
    examples.build("brimful-algos", "loaded")
    measured = session.measure(*(case.command(session) for case in cases), again, *references)
    series, loaded, others = (
        measured[: len(cases)],
        measured[len(cases)],
        measured[len(cases) + 1 :],
    )
    table = Table(
        "algorithms: seconds in all",
        "exact",
        (
            "graph",
            "algorithm",
            "memory",
            "s, median (best)",
            "target",
            "supersteps (sparse)",
            "peak / budget, MiB",
        ),
    )
    for case, one in zip(cases, series, strict=True):
        kind, _, rest = case.name.partition(",")
        steps, sparse = one.median("supersteps"), one.median("sparse_supersteps")
        table.row(
            sizes.get(kind, kind) + (f",{rest}" if rest else ""),
            case.algorithm,
            case.budget + (", hard limit" if case.hard else ", to spare"),
            figure(one, "seconds"),
            "-" if case.bound is None else target(size, one.median("seconds"), case.bound, " s"),
            "-" if steps is None or sparse is None else f"{steps:,.0f} ({sparse:,.0f})",
            peak(one),
        )
    seconds = loaded.median("seconds")
    table.row(
        sizes["large"],
        "bfs, all read before",
        "4G, to spare",
        figure(loaded, "seconds"),
        "-" if seconds is None else target(size, seconds, _LOADED, " s"),
        "-",
        "-",
    )
    graphs = (*[sizes["medium"]] * 3, "NE, weights 1 to 100", "cnr-2000")
    names = (
        "SciPy BFS order",
        "SciPy components",
        "igraph core numbers",
        "SciPy Dijkstra",
        "SciPy strong components",
    )
    # Without the real graphs, the last two references were not measured.
    for graph, name, one in zip(graphs[: len(others)], names[: len(others)], others, strict=True):
        row = (graph, name, "all in memory", figure(one, "seconds"), "-", "-", "-")
        table.row(*row)
    table.ran(*series, loaded, *others)
    yield table


def _has_real(session: Session) -> bool:
    try:
        _roads(session), _web(session)
    except NotMeasured:
        return False
    return True


def main() -> int:
    """Search in memory, by the Rust program."""
    graph, source, rounds = sys.argv[1:]
    return examples.run("loaded", graph, 4 * GIB, source, rounds)


if __name__ == "__main__":
    raise SystemExit(main())
