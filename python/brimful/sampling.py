"""How large the graph of an input will be, from its length and a look at a few of its lines.

Of pairs the number of edges is exact; of text it follows from the length of lines. Vertices are
as many as the largest id that was seen allows, but no more than real graphs have. Other inputs
are not looked at.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from brimful.formats import COMPRESSIONS, input_format
from brimful.ingest import ImportOptions
from brimful.planning import MOST_COUNTED, Sizes
from brimful.remote import is_remote

_BLOCK_BYTES = 1 << 13
_BLOCKS = 32
_PAIR = struct.Struct("<II")
#: Edges of a vertex where ids do not tell: real graphs mostly have more.
_EDGES_PER_VERTEX = 16


def sizes_of_inputs(paths: list[str], options: ImportOptions) -> tuple[Sizes, bool] | None:
    """Return the sizes of the graph of `paths` and whether it has weights; None: not known."""
    formats = {input_format(path, options.format) for path in paths}
    if options.ids == "string" or not formats <= {"u32pairs", "edgelist", "auto"}:
        return None
    edges, largest, weighted = 0, 0, False
    for path in paths:
        if path == "-" or is_remote(path) or path.endswith(COMPRESSIONS):
            return None
        try:
            seen = _pairs(path) if formats == {"u32pairs"} else _lines(path)
        except OSError:
            # The import says what is wrong.
            return None
        if seen is None:
            return None
        edges += seen[0]
        largest = max(largest, seen[1])
        weighted |= seen[2]
    vertices = largest + 1
    if options.vertices is not None:
        vertices = max(vertices, options.vertices)
    elif vertices > 2 * edges:
        vertices = edges // _EDGES_PER_VERTEX
    if not 0 < edges <= MOST_COUNTED or vertices > MOST_COUNTED:
        return None
    sizes = Sizes(
        vertices=max(vertices, 1),
        edges=edges,
        undirected=options.undirected is True,
        reverse="reverse" in options.index,
        spooled=formats != {"u32pairs"},
    )
    return sizes, weighted or options.weights == "hash" or options.duplicates == "sum"


def _blocks(path: str) -> Iterator[bytes]:
    """Yield blocks from all over a file, or the whole of a short one."""
    length = os.path.getsize(path)
    with open(path, "rb") as file:
        if length <= _BLOCKS * _BLOCK_BYTES:
            yield file.read()
            return
        for block in range(_BLOCKS):
            # In the middle of its share of the file.
            start = (length * (2 * block + 1) // _BLOCKS - _BLOCK_BYTES) // 2
            file.seek(start // _PAIR.size * _PAIR.size)
            yield file.read(_BLOCK_BYTES)


def _pairs(path: str) -> tuple[int, int, bool]:
    """Return edges, largest id seen, and that there are no weights."""
    largest = 0
    for block in _blocks(path):
        whole = block[: len(block) // _PAIR.size * _PAIR.size]
        largest = max(largest, *(max(pair) for pair in _PAIR.iter_unpack(whole)), 0)
    return os.path.getsize(path) // _PAIR.size, largest, False


def _lines(path: str) -> tuple[int, int, bool] | None:
    """Return edges, largest id seen and whether lines have weights; None: these are no edges."""
    length, taken, count, largest, weighted = os.path.getsize(path), 0, 0, 0, False
    for block in _blocks(path):
        lines = block.split(b"\n")
        # The first and the last are cut, unless the block is the whole file.
        for line in lines if len(block) == length else lines[1:-1]:
            fields = line.replace(b",", b" ").split()
            if not fields or fields[0][:1] in b"#%":
                continue
            if len(fields) < 2 or not (fields[0].isdigit() and fields[1].isdigit()):
                return None
            largest = max(largest, int(fields[0]), int(fields[1]))
            weighted |= len(fields) > 2
            taken += len(line) + 1
            count += 1
    return (length * count // taken, largest, weighted) if count else None
