"""Estimates the size of the graph of an input from a sample of its files.

The native side samples text and pairs, this module Parquet, whose number of edges is exact. The
number of vertices is bounded by the largest id seen and by the density of real graphs. Other inputs
are not sampled.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from brimful.errors import BrimfulError
from brimful.io.formats import input_format
from brimful.io.inputs import shared_format
from brimful.io.remote import is_remote
from brimful.options.imports import EdgeColumns, ImportOptions, PolicyOptions, columns_of
from brimful.options.runs import MAX_COUNTED
from brimful.options.table import picked
from brimful.planning import Sizes
from brimful.tables.parquet import open_parquet

#: Edges per vertex if ids give no estimate; most real graphs have more.
_EDGES_PER_VERTEX = 16
#: Exceptions that sampling a broken table may raise.
_UNREADABLE = (OSError, LookupError, MemoryError, ValueError, BrimfulError)


@dataclass(frozen=True)
class Sample:
    """Edges of an input, the largest id that was seen, and whether there are weights.

    `reserve_bytes` is the memory that its reader sets aside.
    """

    edges: int
    largest: int
    weighted: bool
    undirected: bool = False
    reserve_bytes: int = 0


@dataclass(frozen=True)
class Found:
    """The sizes of the graph of inputs, whether it has weights, and the reserve of the readers."""

    sizes: Sizes
    weighted: bool
    reserve_bytes: int


def sizes_of_inputs(paths: list[str], options: ImportOptions) -> Found | None:
    """Return the sizes of the graph of `paths`; None: not known."""
    if (
        options["ids"] == "string"
        or len({input_format(path, options["format"]) for path in paths}) != 1
    ):
        return None
    # A pipe can be read only once.
    if any(path == "-" or is_remote(path) or not os.path.isfile(path) for path in paths):
        return None
    name = shared_format(paths, options)
    if name in ("graphml", "gexf"):
        return None
    seen = _sampled(paths, name, options)
    if seen is None:
        return None
    vertices = seen.largest + 1
    if options["vertices"] is not None:
        vertices = max(vertices, options["vertices"])
    elif vertices > 2 * seen.edges:
        vertices = seen.edges // _EDGES_PER_VERTEX
    if not 0 < seen.edges <= MAX_COUNTED or vertices > MAX_COUNTED:
        return None
    sizes = Sizes(
        vertices=max(vertices, 1),
        edges=seen.edges,
        undirected=seen.undirected if options["undirected"] is None else options["undirected"],
        reverse="reverse" in options["index"],
        spooled=name != "u32pairs",
        hashes_weights=options["weights"] == "hash",
        **picked(PolicyOptions, options),
    )
    return Found(sizes, seen.weighted, seen.reserve_bytes)


def _sampled(paths: list[str], name: str, options: ImportOptions) -> Sample | None:
    from brimful import _native

    if name == "parquet":
        return _tables(paths, columns_of(options), is_decided=options["undirected"] is not None)
    seen = _native.probe(
        paths,
        format=name,
        columns=columns_of(options),
        undirected=options["undirected"],
        on_error=options["on_error"],
    )
    return None if seen is None else Sample(*seen)


def _tables(paths: list[str], wanted: EdgeColumns, *, is_decided: bool) -> Sample | None:
    """Return the sample of all Parquet files together; None if one is broken or has no estimate."""
    try:
        samples = [_parquet(path, wanted, is_decided=is_decided) for path in paths]
    except _UNREADABLE:
        # The import will report the error.
        return None
    estimates = [one for one in samples if one is not None]
    if len(estimates) < len(samples):
        return None
    return Sample(
        edges=sum(one.edges for one in estimates),
        largest=max(one.largest for one in estimates),
        weighted=any(one.weighted for one in estimates),
        undirected=any(one.undirected for one in estimates),
        reserve_bytes=max(one.reserve_bytes for one in estimates),
    )


def _parquet(path: str, wanted: EdgeColumns, *, is_decided: bool) -> Sample | None:
    """Read the number of rows and the ranges of the columns from the footer."""
    import pyarrow.parquet as pq

    with open_parquet(path, wanted, is_decided=is_decided) as table:
        ends, weighted = (table.source, table.target), table.weight is not None
        undirected, reserve_bytes = bool(table.undirected), table.reserve_bytes
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
    if largest < 0:
        return None
    return Sample(metadata.num_rows, largest, weighted, undirected, reserve_bytes)
