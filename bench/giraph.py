"""`giraph`: the benchmark of GIRAPH-417, vertices as objects against vertices as bytes.

Run as a module (`LAYOUT VERTICES EDGES combined|each`) it prints the figures of the example
`giraph` of brimful-execution, or those of the same vertices as Python objects (LAYOUT `python`).
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench import examples
from bench.command import Command, Record
from bench.session import Series, Session
from bench.table import MIB, Table, figure, target

#: Bytes are to be so many times smaller than Python objects, and so many times faster to load.
_SMALLER, _FASTER = 8.0, 3.0
_LAYOUTS = ("objects", "native", "compact")
_NAMES = {
    "python": "Python objects",
    "boxed": "boxed, as the JVM has them",
    "objects": "live objects of Rust",
    "native": "bytes, native",
    "compact": "bytes, compact",
}
_SIZE = "bytes_per_vertex"
_COMBINERS = ("combined", "each")

#: The figures of each layout with a combiner, then without.
_ByLayout = dict[str, list[Series]]


def tables(session: Session) -> Iterator[Table]:
    """Yield a table of loading and one of supersteps for few and for many edges a vertex."""
    examples.build("brimful-execution", "giraph")
    vertices = session.size.lognormal_vertices
    for degree in (25, 250):
        # So many objects of Python would not fit: a tenth of them says as much of each.
        few = vertices if degree == 25 else vertices // 10
        python = session.measure(_command("python", few, degree, "combined"))[0]
        by_layout = {
            layout: session.measure(*(_command(layout, vertices, degree, c) for c in _COMBINERS))
            for layout in _LAYOUTS
        }
        by_layout["boxed"] = session.measure(_command("boxed", few, degree, "combined"))
        yield _loading(session, degree, python, by_layout)
        yield _supersteps(degree, by_layout)


def _command(layout: str, vertices: int, degree: int, combiner: str) -> Command:
    return Command("bench.giraph", (layout, str(vertices), str(degree), combiner))


def _load(record: Record) -> float:
    """Return the seconds to load a million vertices."""
    return float(record["load_seconds"] / record["vertices"] * 1e6)


def _times(base: float | None, value: float | None) -> float | None:
    return None if base is None or value is None else base / value


def _loading(session: Session, degree: int, python: Series, by_layout: _ByLayout) -> Table:
    table = Table(
        f"giraph: {session.size.lognormal_vertices:,} vertices with {degree} edges each, loading",
        "64-bit ids, 64-bit values, 32-bit floats on edges",
        ("layout", "bytes/vertex", "load s per M vertices", "x smaller", "x faster", "target"),
    )
    for layout, series in {"python": python, **{k: v[0] for k, v in by_layout.items()}}.items():
        smaller = _times(python.median(_SIZE), series.median(_SIZE))
        faster = _times(python.median(_load), series.median(_load))
        goal = "-"
        if layout in ("native", "compact"):
            goals = ((smaller, _SMALLER), (faster, _FASTER))
            goal = ", ".join(target(session.size, *of, "x", at_least=True) for of in goals)
        table.row(
            _NAMES[layout],
            figure(series, _SIZE, 0),
            figure(series, _load),
            "-" if smaller is None else f"{smaller:.1f}",
            "-" if faster is None else f"{faster:.1f}",
            goal,
        )
        table.ran(series)
    table.notes.append(
        "one thread; drawing the edges is part of loading, as in Giraph, but not for Python objects"
    )
    return table


def _supersteps(degree: int, by_layout: _ByLayout) -> Table:
    table = Table(
        f"giraph: {degree} edges each, PageRank",
        "f64 messages, serialized in all layouts; one thread",
        ("layout", "combiner", "superstep s", "peak MiB", "messages combined"),
    )
    for layout in _LAYOUTS:
        all_series = by_layout[layout]
        for combiner, series in zip(_COMBINERS, all_series, strict=True):
            table.row(
                _NAMES[layout],
                "on" if combiner == "combined" else "off",
                figure(series, "superstep_seconds"),
                figure(series, lambda record: record["peak_rss_bytes"] / MIB, 0),
                figure(series, lambda record: record["combined"] / record["messages"]),
            )
            table.ran(series)
    return table


def _python_objects(vertices: int, degree: int) -> dict[str, float]:
    """Make the vertices as objects: a value and a list of (target, value) each.

    The numbers are drawn beforehand, by NumPy, and the collector of cycles is off: what is timed
    is making objects.
    """
    import numpy as np

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    generator = np.random.default_rng(1)
    targets = generator.integers(0, vertices, (vertices, degree))
    values = generator.random((vertices, degree), np.float32)
    gc.disable()
    before, begin = resident(), time.perf_counter()
    made = {
        id: _Vertex(
            id, 1 / vertices, list(zip(targets[id].tolist(), values[id].tolist(), strict=True))
        )
        for id in range(vertices)
    }
    seconds = time.perf_counter() - begin
    return {
        "vertices": len(made),
        "load_seconds": seconds,
        "bytes_per_vertex": (resident() - before) / len(made),
    }


class _Vertex:
    """A vertex as a Python programmer would write it with memory in mind."""

    __slots__ = ("edges", "id", "value")

    def __init__(self, id: int, value: float, edges: list[tuple[int, float]]) -> None:
        self.id = id
        self.value = value
        self.edges = edges


def main() -> int:
    """Measure one layout."""
    layout, vertices, degree, combiner = sys.argv[1:]
    if layout == "python":
        print(json.dumps(_python_objects(int(vertices), int(degree))))
        return 0
    return examples.run("giraph", layout, vertices, degree, combiner)


if __name__ == "__main__":
    raise SystemExit(main())
