"""Sizes that the first lines of an input tell, in formats that have such lines."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from brimful.formats import split_suffix


@dataclass(frozen=True)
class Header:
    """What a header says: ids from 0 to `vertices` or below, edges, direction and weights."""

    vertices: int
    edges: int
    undirected: bool
    weighted: bool


def read_header(path: str, name: str, lines: Iterable[bytes]) -> Header | None:
    """Return what the first `lines` of an input of format `name` say; None: nothing.

    What lies beside the files of Graphalytics and WebGraph is read.

    Raises:
        OSError: a file cannot be read.
        ValueError: the lines are not what the format demands, as the import will say.
    """
    match name:
        case "mtx":
            return _mtx(lines)
        case "metis":
            return _metis(lines)
        case "dimacs" | "pace" | "gr":
            return _gr(lines)
        case "jlg":
            return _jlg(lines)
        case "graphalytics":
            return _graphalytics(path)
        case "webgraph":
            return _webgraph(path)
    return None


def _mtx(lines: Iterable[bytes]) -> Header:
    words: list[bytes] = []
    for line in lines:
        if line.startswith(b"%%"):
            words = line.lower().split()
        elif line.strip() and not line.startswith(b"%"):
            rows, _, entries = map(int, line.split())
            return Header(rows + 1, entries, b"symmetric" in words, b"pattern" not in words)
    raise ValueError("no size")


def _metis(lines: Iterable[bytes]) -> Header:
    line = next((line for line in lines if line.strip() and not line.startswith(b"%")), b"")
    vertices, edges, *rest = line.split()
    return Header(int(vertices) + 1, int(edges), True, bool(rest) and rest[0].endswith(b"1"))


def _gr(lines: Iterable[bytes]) -> Header:
    line = next((line for line in lines if line.startswith(b"p")), b"")
    _, kind, vertices, edges = line.split()
    is_dimacs = kind == b"sp"
    return Header(int(vertices) + 1, int(edges), not is_dimacs, is_dimacs)


def _jlg(lines: Iterable[bytes]) -> Header:
    vertices, edges, direction, *_ = next(iter(lines), b"").split(b",")
    return Header(int(vertices) + 1, int(edges), direction.strip() == b"u", False)


def _graphalytics(path: str) -> Header | None:
    properties = _properties(split_suffix(path)[0] + ".properties")
    said = {key.rsplit(".", 1)[-1]: value for key, value in properties.items()}
    if "vertices" not in said or "edges" not in said:
        return None
    weighted = any(key.endswith("edge-properties.names") for key in properties)
    # Ids are any numbers; what vertices say bounds only how many there are.
    undirected = said.get("directed") == "false"
    return Header(int(said["vertices"]), int(said["edges"]), undirected, weighted)


def _webgraph(path: str) -> Header:
    properties = _properties(split_suffix(path)[0] + ".properties")
    return Header(int(properties["nodes"]), int(properties["arcs"]), False, False)


def _properties(path: str) -> dict[str, str]:
    """Return keys and values; none if there is no such file."""
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        pairs = (line.split("=", 1) for line in file if "=" in line and line[0] not in "#!")
        return {key.strip(): value.strip() for key, value in pairs}
