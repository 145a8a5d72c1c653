"""`layout`: bytes per edge of real graphs, by the codec that the import chose."""

from __future__ import annotations

import gzip
import lzma
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.command import ROOT, brimful
from bench.errors import NotMeasured
from bench.session import Session
from bench.table import Table, figure, target


@dataclass(frozen=True)
class _Graph:
    """A file of the test data, how its edges are stored, and the target in bytes per arc."""

    name: str
    file: str
    undirected: bool
    bound: float


GRAPHS = (
    _Graph("cnr-2000 (web)", "cnr-2000.graph-txt.gz", False, 1.15),
    _Graph("soc-Slashdot0902", "soc-Slashdot0902.txt.gz", False, 1.8),
    _Graph("NE (roads)", "NE.gr.xz", True, 2.5),
)


def tables(session: Session) -> Iterator[Table]:
    """Yield one table; graphs that are not there are left out aloud."""
    data = Path(os.environ.get("BRIMFUL_TEST_DATA", ROOT.parent / "shared" / "data"))
    table = Table(
        "layout: bytes per arc of real graphs",
        "no floating point",
        ("graph", "bytes/arc of the index", "target", "bytes/arc on disk, all files", "order"),
    )
    for graph in GRAPHS:
        source = data / graph.file
        if not source.exists():
            raise NotMeasured(f"{source} is not there; set BRIMFUL_TEST_DATA")
        edges = session.folder / f"{graph.file}.edges"
        _write_edges(source, edges)
        out = session.folder / f"{graph.file}.brimful"
        options = ("--undirected",) if graph.undirected else ()
        (series,) = session.measure(brimful("import", edges, out, *options, fresh=out))
        (info,) = session.measure(brimful("info", out))
        table.row(
            graph.name,
            figure(series, "bytes_per_edge", 3),
            target(session.size, series.median("bytes_per_edge"), graph.bound),
            figure(info, lambda record: float(record["bytes_on_disk"] / record["arcs"]), 3),
            str(info.records[-1]["order"]),
        )
        table.ran(series)
    yield table


def _write_edges(source: Path, out: Path) -> None:
    """Write `source target` lines of a SNAP, PACE or adjacency file."""
    opener = lzma.open if source.suffix == ".xz" else gzip.open
    with opener(source, "rt") as lines, out.open("w") as edges:
        if source.name.endswith(".graph-txt.gz"):
            next(lines)
            for vertex, line in enumerate(lines):
                edges.writelines(f"{vertex} {neighbor}\n" for neighbor in line.split())
        else:
            edges.writelines(line for line in lines if line[0].isdigit())
