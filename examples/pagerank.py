"""Rank the vertices of an undirected graph: PageRank, 0.15 + 0.85 * the sum of shares."""

import heapq
import sys

import numpy as np

import brimful as bf


def main(path: str, supersteps: str = "10") -> None:
    """Read a file whose line n has the neighbors of vertex n; print the three highest ranks."""
    edges = bf.Bag(path + ".edges", serializer="str", budget="64M")
    with open(path, encoding="utf-8") as file:
        edges.extend(file)
    shares, others = (bf.Box(f"{path}.{name}", "f8", budget="64M") for name in ("even", "odd"))
    shares.resize(len(edges))
    others.resize(len(edges))
    for vertex, line in enumerate(edges):
        shares[vertex] = 0.15 / max(1, len(line.split()))
    for _ in range(int(supersteps)):
        for vertex, line in enumerate(edges):
            neighbors = np.array(line.split(), "u4")
            others[vertex] = (0.15 + 0.85 * shares[neighbors].sum()) / max(1, len(neighbors))
        shares, others = others, shares
    ranks = (share * max(1, len(line.split())) for share, line in zip(shares, edges, strict=True))
    top = heapq.nlargest(3, zip(ranks, range(len(edges)), strict=True))
    print([(vertex, round(float(rank), 9)) for rank, vertex in top])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} PATH [SUPERSTEPS]")
    main(*sys.argv[1:])
