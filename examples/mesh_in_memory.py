"""Generate a mesh: each vertex is joined to up to 80 earlier ones, in both directions."""

import sys

import numpy as np
from lists_in_memory import Lists

STEP = 50_000


def main(path: str, count: str = "7500000", seed: str = "0") -> None:
    """Make `count` vertices; print the number of edges and the neighbors of vertex 0."""
    random = np.random.default_rng(int(seed))
    vertices = int(count)
    mesh = Lists(vertices)
    edges = 0
    for start in range(1, vertices, STEP):
        some = np.arange(start, min(start + STEP, vertices), dtype="u4")
        sources = np.repeat(some, random.integers(0, 80, len(some)))
        targets = (random.random(len(sources)) * sources).astype("u4")
        mesh.append_many(sources, targets)
        mesh.append_many(targets, sources)
        edges += len(sources)
    print(edges, sorted(mesh[0].tolist())[:10], len(mesh[vertices - 1]))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} PATH [COUNT] [SEED]")
    main(*sys.argv[1:])
