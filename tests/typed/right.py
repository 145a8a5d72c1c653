"""Calls that a type checker accepts."""

import brimful as bf


def right(graph: bf.Graph) -> None:
    bf.pagerank(graph, variant="unnormalized", mode="async", precision="f32")
    bf.hits(graph, values="hub")
    bf.pagerank(graph, source={1: 2.0, 3: 0.5})
    bf.degrees(graph, direction="both")
    bf.bfs(graph, 1, values="parent", store="bytes", lists="disk")
    bf.plan(graph, "bfs", source=[1, 2], scheduler="latency", budget="1G")
    ids: list[int] = graph.neighbors(1)
    ids, weights = graph.neighbors(1, weights=True)
    graph.neighbors_many(ids, direction="in")
    total: float = sum(weights)
    for vertex, value in bf.pagerank(graph).items():
        print(vertex, value, total)
