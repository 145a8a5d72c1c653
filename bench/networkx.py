"""`networkx`: functions on graphs of NetworkX, in NetworkX and with the backend brimful.

Run as a module (`NODES`) it measures in its own process and prints JSON. Seconds are of the clock.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

from bench.command import Command
from bench.session import Session
from bench.table import Table, figure

#: Edges of a node of the graph of Barabasi and Albert.
_EDGES = 10
_FUNCTIONS = (
    "pagerank",
    "hits",
    "core_number",
    "triangles",
    "clustering",
    "number_connected_components",
    "degree_centrality",
)


def tables(session: Session) -> Iterator[Table]:
    """Yield a table for each size of graph."""
    for nodes in (1_000, 10_000, 100_000) if session.size.has_targets else (1_000,):
        (series,) = session.measure(Command("bench.networkx", (str(nodes),)))
        table = Table(
            f"networkx: {nodes:,} nodes, {_EDGES} edges each",
            "f64",
            ("function", "NetworkX s", "import and run s", "run again s"),
        )
        for name in _FUNCTIONS:
            steps = (f"{name}, {step}" for step in ("networkx", "first", "again"))
            table.row(name, *(figure(series, step, 3) for step in steps))
        table.ran(series)
        yield table


def _seconds(name: str, graph: Any, backend: str) -> float:
    import networkx as nx

    started = time.perf_counter()
    getattr(nx, name)(graph, backend=backend)
    return time.perf_counter() - started


def main(nodes: str) -> None:
    """Measure the functions on a graph of this many nodes; print JSON."""
    import networkx as nx

    graph: Any = nx.barabasi_albert_graph(int(nodes), _EDGES, seed=1)
    nx.config.warnings_to_ignore.add("cache")
    record: dict[str, float] = {}
    for name in _FUNCTIONS:
        for backend in ("networkx", "brimful"):
            # What is imported when it is first used is not measured.
            _seconds(name, nx.path_graph(3), backend)
        record[f"{name}, networkx"] = _seconds(name, graph, "networkx")
        graph.__networkx_cache__.clear()
        for step in ("first", "again"):
            record[f"{name}, {step}"] = _seconds(name, graph, "brimful")
    print(json.dumps(record))


if __name__ == "__main__":
    main(*sys.argv[1:])
