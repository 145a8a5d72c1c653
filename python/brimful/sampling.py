"""How large the graph of an input will be, from its length and a look at a few of its lines.

Of pairs and of Parquet the number of edges is exact, of formats that have a header it is what that
says; of other text it follows from the length of lines, and if it is compressed, from what its
first lines take. Vertices are as many as the largest id
that was seen allows, but no more than real graphs have. Other inputs are not looked at.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from brimful.errors import BrimfulError
from brimful.formats import input_format
from brimful.headers import format_of, read_header
from brimful.import_options import EdgeColumns, ImportOptions, PolicyOptions, columns_of
from brimful.options import picked
from brimful.parquet_tables import open_parquet
from brimful.planning import Sizes
from brimful.remote import is_remote
from brimful.run_options import MOST_COUNTED

_BLOCK_BYTES = 1 << 13
_BLOCKS = 32
#: What tells of the columns of text, as much as the reader looks at.
_BEGINNING_BYTES = 1 << 20
#: Of a compressed input so much is read.
_FIRST_BYTES = 4 << 20
_PAIR = struct.Struct("<II")
_LENGTH = struct.Struct("<I")
#: Edges of a vertex where ids do not tell: real graphs mostly have more.
_EDGES_PER_VERTEX = 16
#: How compressed text begins, and what reads it; Python reads no zstd.
_COMPRESSED: dict[bytes, Callable[[BinaryIO], Any] | None] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
    b"\x28\xb5\x2f\xfd": None,
}


#: What looking at a broken input fails with.
_UNREADABLE = (
    OSError,
    EOFError,
    LookupError,
    MemoryError,
    ValueError,
    lzma.LZMAError,
    zlib.error,
    BrimfulError,
)


@dataclass(frozen=True)
class Seen:
    """Edges of an input, the largest id that was seen, and whether there are weights.

    `reserve_bytes` is what its reader sets aside.
    """

    edges: int
    largest: int
    weighted: bool
    reserve_bytes: int = 0
    undirected: bool = False


@dataclass(frozen=True)
class Found:
    """The sizes of the graph of inputs, whether they have weights, and what readers set aside."""

    sizes: Sizes
    weighted: bool
    reserve_bytes: int


def sizes_of_inputs(paths: list[str], options: ImportOptions) -> Found | None:
    """Return the sizes of the graph of `paths`; None: not known."""
    formats = {input_format(path, options["format"]) for path in paths}
    if options["ids"] == "string" or len(formats) != 1:
        return None
    (name,) = formats
    edges, largest, weighted, undirected, reserve_bytes = 0, 0, False, False, 0
    wanted = columns_of(options)
    for path in paths:
        # What is read from a pipe is gone.
        if path == "-" or is_remote(path) or not os.path.isfile(path):
            return None
        try:
            seen = _look(path, name, wanted)
        except _UNREADABLE:
            # The import says what is wrong.
            return None
        if seen is None:
            return None
        edges += seen.edges
        largest = max(largest, seen.largest)
        weighted |= seen.weighted
        undirected |= seen.undirected
        reserve_bytes = max(reserve_bytes, seen.reserve_bytes)
    if name == "metis" and options["undirected"] is False:
        # Each entry of a list is an edge then.
        edges *= 2
    vertices = largest + 1
    if options["vertices"] is not None:
        vertices = max(vertices, options["vertices"])
    elif vertices > 2 * edges:
        vertices = edges // _EDGES_PER_VERTEX
    if not 0 < edges <= MOST_COUNTED or vertices > MOST_COUNTED:
        return None
    sizes = Sizes(
        vertices=max(vertices, 1),
        edges=edges,
        undirected=undirected if options["undirected"] is None else options["undirected"],
        reverse="reverse" in options["index"],
        spooled=name != "u32pairs",
        hashes_weights=options["weights"] == "hash",
        **picked(PolicyOptions, options),
    )
    return Found(sizes, weighted, reserve_bytes)


def _look(path: str, name: str, wanted: EdgeColumns) -> Seen | None:
    if name == "parquet":
        return _parquet(path, wanted)
    with open(path, "rb") as raw:
        start = raw.read(max(map(len, _COMPRESSED)))
    magic = next((magic for magic in _COMPRESSED if start.startswith(magic)), None)
    opened = None if magic is None else _COMPRESSED[magic]
    if name == "u32pairs":
        return None if magic is not None else _pairs(path)
    if magic is not None and opened is None:
        return None
    if name == "auto":
        with open(path, "rb") as raw, opened(raw) if opened else raw as stream:
            name = format_of(_read_lines(stream))
    if name in ("edgelist", "csv", "tsv"):
        return _table(path, name, opened, wanted)
    if name in ("adjacency", "adjacency-ids"):
        lines, length = _sampled(path) if opened is None else _first(path, opened)
        return _lists(lines, length, name)
    with open(path, "rb") as raw, opened(raw) if opened else raw as stream:
        header = read_header(path, name, _read_lines(stream))
    if header is None:
        return None
    return Seen(header.edges, header.vertices - 1, header.weighted, undirected=header.undirected)


def _read_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield lines, or what of them no line of a header exceeds."""
    return iter(lambda: stream.readline(_BLOCK_BYTES), b"")


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


def _sampled(path: str, skip: int = 0) -> tuple[Iterator[bytes], int]:
    """Return whole lines from all over a file but its first `skip` bytes, and its length."""
    return _lines(path, skip), os.path.getsize(path)


def _lines(path: str, skip: int) -> Iterator[bytes]:
    length = os.path.getsize(path)
    for block in _blocks(path):
        if len(block) == length:
            yield from _split(block[skip:])
        else:
            # The first and the last line of a block are cut.
            yield from _split(block[block.find(b"\n") + 1 : block.rfind(b"\n") + 1])


def _split(text: bytes) -> Iterator[bytes]:
    """Yield the lines of a text one at a time: all at once take many times its bytes."""
    return (line.rstrip(b"\n") for line in io.BytesIO(text))


def _first(
    path: str, opened: Callable[[BinaryIO], Any], skip: int = 0
) -> tuple[Iterator[bytes], int]:
    """Return the first lines of a compressed text, and its length as far as they reach.

    The first `skip` bytes are left out.
    """
    with open(path, "rb") as raw, opened(raw) as stream:
        text = stream.read(_FIRST_BYTES)[skip:]
        reached = raw.tell()
        raw.seek(-_LENGTH.size, os.SEEK_END)
        (low_bits,) = _LENGTH.unpack(raw.read())
    length = len(text) * os.path.getsize(path) // reached
    # At the end of gzip stands its length, but for multiples of 2^32, if it is in one part.
    if opened is gzip.open and length < 2 * low_bits < 4 * length < 2**32:
        length = low_bits
    return _split(text[: text.rfind(b"\n") + 1]), length


def _pairs(path: str) -> Seen:
    largest = 0
    for block in _blocks(path):
        whole = block[: len(block) // _PAIR.size * _PAIR.size]
        largest = max(largest, *(max(pair) for pair in _PAIR.iter_unpack(whole)), 0)
    return Seen(os.path.getsize(path) // _PAIR.size, largest, False)


def _table(
    path: str, name: str, opened: Callable[[BinaryIO], Any] | None, wanted: EdgeColumns
) -> Seen | None:
    """Count the edges of lines of columns; None: these are no edges with integer ids."""
    from brimful import _native

    with open(path, "rb") as raw, opened(raw) if opened else raw as stream:
        start = stream.read(_BEGINNING_BYTES)
    layout = _native.text_columns(start, len(start) < _BEGINNING_BYTES, name, wanted)
    if layout is None:
        return None
    delimiter, (source, target, weight), skip = layout
    separator = None if delimiter is None else delimiter.encode()
    lines, length = _sampled(path, skip) if opened is None else _first(path, opened, skip)
    taken, count, largest = 0, 0, 0
    for line in lines:
        text = line.rstrip(b"\r")
        fields = (text if separator else text.replace(b",", b" ")).split(separator)
        if fields in ([], [b""]) or fields[0].startswith((b"#", b"%")):
            continue
        ends = [fields[end] for end in (source, target) if end < len(fields)]
        if len(ends) < 2 or not all(map(bytes.isdigit, ends)):
            return None
        largest = max(largest, *map(int, ends))
        taken += len(line) + 1
        count += 1
    return Seen(length * count // taken, largest, weight is not None) if count else None


def _lists(lines: Iterator[bytes], length: int, name: str) -> Seen | None:
    """Count the neighbours in lists, each of which may begin with the id of its vertex."""
    has_ids = name == "adjacency-ids"
    taken, count, largest = 0, 0, 0
    for line in lines:
        taken += len(line) + 1
        if has_ids and line.lstrip().startswith(b"#"):
            continue
        # Of a long list as many ids are looked at as a block holds.
        seen = line[:_BLOCK_BYTES]
        ids = (seen if len(seen) == len(line) else seen[: _last_gap(seen)]).split()
        if (not ids and len(line) > len(seen)) or not all(map(bytes.isdigit, ids)):
            return None
        count += max(len(ids) * len(line) // max(len(seen), 1) - has_ids, 0)
        largest = max(largest, *map(int, ids), 0)
    return Seen(length * count // taken, largest, weighted=False) if count else None


def _last_gap(text: bytes) -> int:
    """Return where the last whole word of a cut text ends."""
    return max(text.rfind(b" "), text.rfind(b"\t"), text.rfind(b","), 0)


def _parquet(path: str, wanted: EdgeColumns) -> Seen | None:
    """Read the number of rows and the ranges of the columns from the footer."""
    import pyarrow.parquet as pq

    with open_parquet(path, wanted) as table:
        ends, weighted, reserve_bytes = (
            (table.source, table.target),
            table.weight is not None,
            table.reserve_bytes,
        )
    metadata, largest = pq.read_metadata(path), -1
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(index)
            if chunk.path_in_schema not in ends:
                continue
            statistics = chunk.statistics
            if statistics is None or not isinstance(statistics.max, int):
                return None
            largest = max(largest, statistics.max)
    return Seen(metadata.num_rows, largest, weighted, reserve_bytes) if largest >= 0 else None
