"""Calls that a type checker refuses: options are literals, and have names.

mypy reports an ignored error that is none.
"""

import brimful as bf


def wrong(graph: bf.Graph) -> None:
    bf.pagerank(graph, variant="normalised")  # type: ignore
    bf.pagerank(graph, mode="asynchronous")  # type: ignore
    bf.pagerank(graph, precision="f16")  # type: ignore
    bf.pagerank(graph, method="powers")  # type: ignore
    bf.pagerank(graph, lists="ram")  # type: ignore
    bf.pagerank(graph, scheduler="fifo")  # type: ignore
    bf.clustering(graph, store="bytes")  # type: ignore
    bf.kcore(graph, thread=2)  # type: ignore
    bf.plan(graph, "bfs", mode="asynchronous")  # type: ignore
    bf.plan(graph, "bfs", verticse=3)  # type: ignore
    bf.hits(graph, values="hubs")  # type: ignore
    bf.degrees(graph, direction="outward")  # type: ignore
    bf.bfs(graph, 1, values="parents")  # type: ignore
    graph.neighbors_many([1], direction="both")  # type: ignore
    bf.read("x", duplicates="merge")  # type: ignore
    bf.read("x", on_error="ignore")  # type: ignore
    bf.read("x", format="edge-list")  # type: ignore
    bf.read("x", idz="int")  # type: ignore
    bf.Graph.from_arrow(graph, header=True)  # type: ignore
    graph.neighbors(1, weights=True).append(2)  # type: ignore
