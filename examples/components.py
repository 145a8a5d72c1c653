"""Count the connected components of a graph: a vertex takes the least label of its neighbors."""

import sys

import numpy as np

import brimful as bf


def main(path: str) -> None:
    """Read a file whose line n has the neighbors of vertex n; print how many components it has."""
    edges = bf.Bag(path + ".edges", serializer="str", budget="64M")
    with open(path, encoding="utf-8") as file:
        edges.extend(file)
    labels = bf.Box(path + ".labels", "u4", budget="64M")
    labels.extend(np.arange(len(edges), dtype="u4"))
    changed = True
    while changed:
        changed = False
        for vertex, line in enumerate(edges):
            neighbors = np.array(line.split(), "u4")
            least = labels[neighbors].min(initial=labels[vertex])
            if least < labels[vertex]:
                labels[vertex] = least
                changed = True
    print(len(edges), sum(int(label == vertex) for vertex, label in enumerate(labels)))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} PATH")
    main(*sys.argv[1:])
