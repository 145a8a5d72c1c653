"""Sizes that the first lines of an input tell, in formats that have such lines."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from brimful.formats import split_suffix

#: Longer comments are not read through.
_MOST_LINES = 1 << 14
#: Characters of the longest line of properties.
_LONGEST_LINE = 1 << 13
#: A line of a Java properties file that is no comment.
_PROPERTY = re.compile(r"\s*([^#!\s][^=:]*)[=:](.*)")
#: What is read of a key `graph.NAME.rest`.
_GRAPHALYTICS = (
    "meta.vertices",
    "meta.edges",
    "directed",
    "edge-properties.names",
    "sssp.weight-property",
)
_JLG = re.compile(rb"\s*\d+,\s*\d+,\s*[ud]\s*,")


@dataclass(frozen=True)
class Header:
    """What a header says: ids from 0 to `vertices` or below, edges, direction and weights."""

    vertices: int
    edges: int
    undirected: bool
    weighted: bool


def format_of(lines: Iterator[bytes]) -> str:
    """Return the format of an input whose name does not tell, as its reader settles it."""
    line = next((line for line in itertools.islice(lines, _MOST_LINES) if line.strip()), b"")
    word = line.split(maxsplit=1)[0] if line else b""
    if word.lower() == b"%%matrixmarket":
        return "mtx"
    if word in (b"c", b"p"):
        return "gr"
    return "jlg" if _JLG.match(line) else "edgelist"


def read_header(path: str, name: str, lines: Iterator[bytes]) -> Header | None:
    """Return what the first `lines` of an input of format `name` say; None: nothing.

    What lies beside the files of Graphalytics and WebGraph is read.

    Raises:
        OSError: A file cannot be read.
        ValueError: The lines are not what the format demands, as the import will say.
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


def _mtx(lines: Iterator[bytes]) -> Header:
    words = next(lines, b"").lower().split()
    rows, _, entries = map(int, _first_line(lines, b"%").split())
    return Header(rows + 1, entries, b"symmetric" in words, b"pattern" not in words)


def _metis(lines: Iterator[bytes]) -> Header:
    vertices, edges, *rest = _first_line(lines, b"%").split()
    return Header(int(vertices) + 1, int(edges), True, bool(rest) and rest[0].endswith(b"1"))


def _gr(lines: Iterator[bytes]) -> Header:
    begin, kind, vertices, edges = _first_line(lines, b"c").split()
    if begin != b"p":
        raise ValueError("no p line")
    is_dimacs = kind == b"sp"
    return Header(int(vertices) + 1, int(edges), not is_dimacs, is_dimacs)


def _jlg(lines: Iterator[bytes]) -> Header:
    vertices, edges, direction, *_ = next(lines, b"").split(b",")
    return Header(int(vertices) + 1, int(edges), direction.strip() == b"u", False)


def _graphalytics(path: str) -> Header | None:
    properties = _properties(split_suffix(path)[0] + ".properties")
    # Keys are `graph.NAME.rest`, and a name may have points.
    said = {
        rest: value
        for key, value in properties.items()
        for rest in _GRAPHALYTICS
        if key.endswith(f".{rest}")
    }
    if "meta.vertices" not in said or "meta.edges" not in said:
        return None
    names = [name.strip() for name in said.get("edge-properties.names", "").split(",")]
    weighted = said.get("sssp.weight-property", "weight") in names
    # Ids are any numbers; what vertices say bounds only how many there are.
    vertices, edges = int(said["meta.vertices"]), int(said["meta.edges"])
    return Header(vertices, edges, said.get("directed") == "false", weighted)


def _webgraph(path: str) -> Header:
    properties = _properties(split_suffix(path)[0] + ".properties")
    return Header(int(properties["nodes"]), int(properties["arcs"]), False, False)


def _first_line(lines: Iterator[bytes], comment: bytes) -> bytes:
    """Return the first line that is neither blank nor a comment; empty if there is none."""
    few = itertools.islice(lines, _MOST_LINES)
    return next((line for line in few if line.strip() and not line.startswith(comment)), b"")


def _properties(path: str) -> dict[str, str]:
    """Return keys and values; none if there is no such file."""
    if not os.path.isfile(path):
        return {}
    with open(path, encoding="utf-8") as file:
        lines = itertools.islice(iter(lambda: file.readline(_LONGEST_LINE), ""), _MOST_LINES)
        found = (_PROPERTY.match(line) for line in lines)
        return {pair[1].strip(): pair[2].strip() for pair in found if pair}
