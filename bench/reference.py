"""What brimful is measured against: each program is a process of its own and prints JSON.

Run as `python -m bench.reference NAME ...`. The seconds leave out start-up, imports and building.
"""

from __future__ import annotations

import json
import mmap
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_READ_BYTES = 4 << 20
_PRODUCTS = 10


def read(path: str) -> dict[str, float]:
    """Read a file once from front to back by plain reads of 4 MiB into one buffer."""
    buffer = mmap.mmap(-1, _READ_BYTES)
    total = 0
    started = time.perf_counter()
    with open(path, "rb", buffering=0) as file:
        while count := file.readinto(buffer):
            total += count
    return {"seconds": time.perf_counter() - started, "bytes": total}


def write(path: str, byte_count: str) -> dict[str, float]:
    """Write a new file by plain writes of 4 MiB and sync it; removes it again."""
    block = os.urandom(_READ_BYTES)
    try:
        started = time.perf_counter()
        with open(path, "wb", buffering=0) as file:
            for _ in range(int(byte_count) // _READ_BYTES):
                file.write(block)
            os.fsync(file.fileno())
        seconds = time.perf_counter() - started
    finally:
        Path(path).unlink(missing_ok=True)
    return {"seconds": seconds, "bytes": int(byte_count) // _READ_BYTES * _READ_BYTES}


def bandwidth(byte_count: str, threads: str) -> dict[str, float]:
    """Sum an array of float64 that no cache holds, each thread its part; best of ten passes."""
    import numpy as np

    array = np.ones(int(byte_count) // 8)
    parts = np.array_split(array, int(threads))
    best = float("inf")
    with ThreadPoolExecutor(len(parts)) as pool:
        for _ in range(10):
            started = time.perf_counter()
            list(pool.map(np.add.reduce, parts))
            best = min(best, time.perf_counter() - started)
    return {"seconds": best, "bytes": array.nbytes}


def sort(path: str, limit: str) -> dict[str, float]:
    """Sort the first `limit` pairs of a `u32pairs` file as uint64 keys: target, then source."""
    keys = _keys(path, int(limit))
    started = time.perf_counter()
    keys.sort()
    return {"seconds": time.perf_counter() - started, "keys": keys.size}


def spmv(path: str, vertices: str, precision: str) -> dict[str, float]:
    """Multiply the transposed CSR matrix of a `u32pairs` file, duplicates kept, ten times by x."""
    import numpy as np
    import scipy.sparse

    count = int(vertices)
    dtype = np.float32 if precision == "f32" else np.float64
    keys = _keys(path, None)
    keys.sort()
    in_degrees = np.bincount((keys >> np.uint64(32)).astype(np.int64), minlength=count)
    starts = np.concatenate([[0], np.cumsum(in_degrees)]).astype(np.int32)
    sources = keys.astype(np.uint32).view(np.int32)
    del keys
    ones = np.ones(len(sources), dtype)
    matrix = scipy.sparse.csr_array((ones, sources, starts), shape=(count, count))
    vector = np.full(count, 1 / count, dtype)
    seconds = []
    for _ in range(_PRODUCTS):
        started = time.perf_counter()
        product = matrix @ vector
        seconds.append(time.perf_counter() - started)
        assert product.dtype == dtype
    return {
        "superstep_median": statistics.median(seconds),
        "edges": matrix.nnz,
    }


def csr_bfs(path: str, vertices: str, source: str) -> dict[str, float]:
    """Search breadth-first from one vertex in a CSR matrix of a `u32pairs` file."""
    from scipy.sparse import csgraph

    matrix = _matrix(path, int(vertices))
    started = time.perf_counter()
    order = csgraph.breadth_first_order(matrix, int(source), return_predecessors=False)
    return {"seconds": time.perf_counter() - started, "reached": len(order)}


def csr_components(path: str, vertices: str) -> dict[str, float]:
    """Find the weak components of a CSR matrix of a `u32pairs` file."""
    from scipy.sparse import csgraph

    matrix = _matrix(path, int(vertices))
    started = time.perf_counter()
    count, _ = csgraph.connected_components(matrix, directed=False)
    return {"seconds": time.perf_counter() - started, "components": int(count)}


def dijkstra(graph: str, source: str) -> dict[str, float]:
    """Find the distances from one vertex by SciPy, along the weights of a graph of brimful's."""
    from scipy.sparse import csgraph

    import brimful as bf

    with bf.Graph.open(graph) as opened:
        matrix, ids = opened.to_scipy()
    index = ids.tolist().index(int(source))
    started = time.perf_counter()
    csgraph.dijkstra(matrix, indices=index)
    return {"seconds": time.perf_counter() - started}


def strong(graph: str) -> dict[str, float]:
    """Find strongly connected components by SciPy, of a graph of brimful's."""
    from scipy.sparse import csgraph

    import brimful as bf

    with bf.Graph.open(graph) as opened:
        matrix, _ = opened.to_scipy()
    started = time.perf_counter()
    csgraph.connected_components(matrix, directed=True, connection="strong")
    return {"seconds": time.perf_counter() - started}


def coreness(path: str) -> dict[str, float]:
    """Find the core numbers of a `u32pairs` file, without direction, by igraph."""
    import igraph
    import numpy as np

    graph = igraph.Graph(edges=np.fromfile(path, "<u4").reshape(-1, 2).astype(np.int64))
    started = time.perf_counter()
    greatest = max(graph.coreness())
    return {"seconds": time.perf_counter() - started, "greatest": greatest}


def edge_triangles(path: str, threads: str) -> dict[str, float]:
    """Count the triangles of each edge of a `u32pairs` file, without direction, by NetworKit."""
    import networkit

    graph = _networkit_graph(path, int(threads))
    graph.indexEdges()
    started = time.perf_counter()
    score = networkit.sparsification.TriangleEdgeScore(graph).run()
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "triangles": sum(score.scores()) // 3}


def local_clustering(path: str, threads: str) -> dict[str, float]:
    """Find the clustering coefficients of a `u32pairs` file, without direction, by NetworKit."""
    import networkit

    graph = _networkit_graph(path, int(threads))
    algorithm = networkit.centrality.LocalClusteringCoefficient(graph, True)
    started = time.perf_counter()
    algorithm.run()
    return {"seconds": time.perf_counter() - started}


def lines(path: str) -> dict[str, float]:
    """Count the lines of a file with `wc -l`."""
    program = shutil.which("wc")
    if program is None:
        raise ImportError("wc is not installed")
    started = time.perf_counter()
    subprocess.run(
        [program, "-l", path], check=True, stdout=subprocess.DEVNULL, env={"LC_ALL": "C"}
    )
    return {"seconds": time.perf_counter() - started}


def pandas(path: str) -> dict[str, float]:
    """Read an edge list with one line of comment into a pandas data frame."""
    import pandas as pd

    started = time.perf_counter()
    frame = pd.read_csv(path, sep="\t", skiprows=1, names=["source", "target"])
    return {"seconds": time.perf_counter() - started, "edges": len(frame)}


def arrow(path: str) -> dict[str, float]:
    """Read an edge list with one line of comment into an Arrow table, on all cores."""
    from pyarrow import csv

    started = time.perf_counter()
    table = csv.read_csv(
        path,
        read_options=csv.ReadOptions(skip_rows=1, column_names=["source", "target"]),
        parse_options=csv.ParseOptions(delimiter="\t"),
    )
    return {"seconds": time.perf_counter() - started, "edges": table.num_rows}


def _matrix(path: str, count: int):  # type: ignore[no-untyped-def]  # SciPy is optional here
    import numpy as np
    import scipy.sparse

    pairs = np.fromfile(path, "<u4").reshape(-1, 2).astype(np.int32)
    ones = np.ones(len(pairs), np.int8)
    return scipy.sparse.csr_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(count, count))


def _networkit_graph(path: str, threads: int):  # type: ignore[no-untyped-def]  # optional
    import networkit
    import numpy as np

    networkit.setNumberOfThreads(threads)
    pairs = np.fromfile(path, "<u4").reshape(-1, 2).astype(np.uint64)
    keys = np.unique(pairs.max(1) << np.uint64(32) | pairs.min(1))
    ends = (keys >> np.uint64(32)).astype(np.int64), keys.astype(np.uint32).astype(np.int64)
    edges = tuple(column[ends[0] != ends[1]] for column in ends)
    return networkit.GraphFromCoo(edges, n=int(pairs.max()) + 1, directed=False)


def _keys(path: str, limit: int | None):  # type: ignore[no-untyped-def]  # NumPy is optional here
    import numpy as np

    pairs = np.fromfile(path, "<u4", -1 if limit is None else 2 * limit).reshape(-1, 2)
    return pairs[:, 1].astype(np.uint64) << np.uint64(32) | pairs[:, 0]


_PROGRAMS: dict[str, Callable[..., dict[str, float]]] = {
    program.__name__: program
    for program in (
        read,
        write,
        bandwidth,
        sort,
        spmv,
        csr_bfs,
        csr_components,
        dijkstra,
        strong,
        coreness,
        edge_triangles,
        local_clustering,
        lines,
        pandas,
        arrow,
    )
}


def main() -> None:
    """Run one program and print its record, or that something is not installed."""
    name, *arguments = sys.argv[1:]
    try:
        record: dict[str, float | str] = {**_PROGRAMS[name](*arguments)}
    except ImportError as error:
        missing = f"{error.name} is not installed" if error.name else str(error)
        record = {"not_measured": missing}
    print(json.dumps(record))


if __name__ == "__main__":
    main()
