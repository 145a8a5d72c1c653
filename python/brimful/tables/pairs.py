"""Tables of pairs of vertices, opened as edge tables: streamed, and never whole in memory."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from brimful.errors import NotFoundError, UsageError
from brimful.io.inputs import known_bytes
from brimful.io.reader_errors import reader_errors
from brimful.io.regular import refuse_special
from brimful.options.imports import columns_of, import_options
from brimful.tables.arrow import open_arrow
from brimful.tables.edge_table import ARROW_RESERVE_BYTES, EdgeTable, open_stream
from brimful.tables.parquet import open_parquet
from brimful.wording import rows_shown

if TYPE_CHECKING:
    from brimful import _native

_DELIMITERS = {"csv": ",", "tsv": "\t"}
_BLOCK_BYTES = 1 << 20
#: The sentence of the native module about a vertex that a graph lacks.
_LACKING = re.compile(r'the graph has no vertex "?(.+?)"?')


def open_pairs(pairs: object, graph: _native.Graph) -> EdgeTable:
    """Open the pairs of a run on `graph`: the path of a file, or an object with Arrow's stream.

    The columns of the two vertices are found by the rule of docs/formats.md.

    Raises:
        UsageError: The format is unknown, or the columns are in doubt.
        NotFoundError: There is no file at the path.
        InputError: The content is not of the format, or the columns hold no ids.
        StoreIoError: The file cannot be read.
    """
    ids = "string" if graph.id_type == "string" else "int"
    wanted = columns_of(import_options())
    if not isinstance(pairs, (str, os.PathLike)):
        return open_stream(pairs, wanted, name="the pairs", ids=ids)
    path = os.fspath(pairs)
    format_name = _format_of(path)
    if format_name == "parquet":
        return open_parquet(path, wanted, ids=ids)
    if format_name == "arrow":
        return open_arrow(path, wanted, ids=ids)
    table = open_stream(_text(path, _DELIMITERS[format_name]), wanted, name=path, ids=ids)
    table.reserve_bytes = ARROW_RESERVE_BYTES
    return table


def reserve_of_pairs(pairs: str) -> int:
    """Return the `reserve_bytes` of a file of pairs, before it is opened; pyarrow is not loaded.

    Raises:
        UsageError, NotFoundError: As `open_pairs`.
    """
    return ARROW_RESERVE_BYTES + known_bytes(pairs, _format_of(pairs), import_options())


def _format_of(path: str) -> str:
    """Return the format of a file of pairs.

    Raises:
        UsageError: The suffix is unknown.
        NotFoundError: There is no file at the path.
        InputError: It is a pipe or a device.
    """
    refuse_special(path, "a table of pairs")
    if not os.path.isfile(path):
        raise NotFoundError(f"there is no table of pairs at {path}; check the path")
    format_name = os.path.splitext(path.lower())[1].removeprefix(".")
    if format_name not in ("parquet", "arrow", *_DELIMITERS):
        raise UsageError(
            f"a table of pairs is .parquet, .csv, .tsv or .arrow, and {path} ends in none of them"
        )
    return format_name


def with_row(error: NotFoundError, pairs: object, graph: _native.Graph) -> NotFoundError:
    """Return an error of a run with the first row of the vertex that the graph lacks.

    The row of a stream is not known, because it cannot be read again.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    match = _LACKING.fullmatch(str(error))
    if match is None or hasattr(pairs, "read_next_batch"):
        return error
    before = 0
    with open_pairs(pairs, graph) as table:
        for batch in table.reader:
            ends = (batch.column(name).cast(pa.string()) for name in (table.source, table.target))
            rows = [at for end in ends if (at := pc.index(end, match[1]).as_py()) >= 0]
            if rows:
                row = rows_shown([before + min(rows) + 1], table.name)
                return NotFoundError(f"{error} ({row} of {table.name})")
            before += batch.num_rows
    return error


def _text(path: str, delimiter: str) -> Any:
    """Return a reader of the batches of a file of text with a header."""
    from pyarrow import csv

    with reader_errors(path):
        return csv.open_csv(
            path,
            read_options=csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
            parse_options=csv.ParseOptions(delimiter=delimiter),
        )
