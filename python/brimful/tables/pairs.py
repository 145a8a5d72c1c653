"""Tables of pairs of vertices, opened as edge tables: streamed, and never whole in memory."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from brimful.errors import InputError, NotFoundError, UsageError
from brimful.io.inputs import known_bytes
from brimful.io.reader_errors import reader_errors
from brimful.io.regular import refuse_special
from brimful.options.checks import whole_number
from brimful.options.imports import EdgeColumns, columns_of, import_options
from brimful.tables.arrow import open_arrow
from brimful.tables.csv_file import CsvFile
from brimful.tables.edge_table import (
    ARROW_RESERVE_BYTES,
    EdgeTable,
    PickedColumns,
    pick_columns,
    table_from_stream,
    table_of,
)
from brimful.tables.parquet import open_parquet
from brimful.wording import rows_shown, shortened

if TYPE_CHECKING:
    from brimful import _native

#: Advice of the native module about the options of an import.
_ADVICE = (
    ", or leave such rows out with --on-error skip",
    " (text is taken as it is with --ids string)",
)
_DELIMITERS = {"csv": ",", "tsv": "\t"}


def open_pairs(pairs: object, graph: _native.Graph) -> EdgeTable:
    """Open the pairs of a run on `graph`: the path of a file, or an object with Arrow's stream.

    The columns of the two vertices are found by the rule of docs/formats.md.

    Raises:
        UsageError: The format is unknown, or the columns are in doubt.
        NotFoundError: There is no file at the path.
        InputError: The content is not of the format, or the columns hold no ids.
        StoreIoError: The file cannot be read.
    """
    name, format_name = "the pairs", None
    if isinstance(pairs, (str, os.PathLike)):
        name = os.fspath(pairs)
        format_name = _format_of(name)
    ids = "string" if graph.id_type == "string" else "int"
    wanted = columns_of(import_options())
    if format_name is None:
        return table_from_stream(pairs, wanted, name=name, ids=ids, pick=_pick_pair)
    if format_name == "parquet":
        return open_parquet(name, wanted, ids=ids, pick=_pick_pair)
    if format_name == "arrow":
        return open_arrow(name, wanted, ids=ids, pick=_pick_pair)
    return _open_text(name, _DELIMITERS[format_name], wanted, graph.id_type)


def _pick_pair(name: str, present: Sequence[str], wanted: EdgeColumns) -> PickedColumns:
    """Choose columns as `pick_columns`, whose advice is about options of an import."""
    try:
        return pick_columns(name, present, wanted)
    except UsageError:
        raise UsageError(
            f"expected two columns of vertices in {name}, or two with known names such as source "
            "and target"
        ) from None


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

    if error.vertex is None or hasattr(pairs, "read_next_batch"):
        return error
    before = 0
    with open_pairs(pairs, graph) as table:
        for batch in table.reader:
            ends = (batch.column(name).cast(pa.string()) for name in (table.source, table.target))
            rows = [at for end in ends if (at := pc.index(end, str(error.vertex)).as_py()) >= 0]
            if rows:
                row = rows_shown([before + min(rows) + 1], table.name)
                found = NotFoundError(f"{error} ({row} of {table.name})")
                found.vertex = error.vertex
                return found
            before += batch.num_rows
    return error


def without_options(error: InputError) -> InputError:
    """Return an error about a row of pairs without the options of an import, which runs lack."""
    sentence = str(error.args[0])
    for advice in _ADVICE:
        sentence = sentence.replace(advice, "")
    return type(error)(sentence)


def _open_text(path: str, delimiter: str, wanted: EdgeColumns, id_type: str) -> EdgeTable:
    """Open a file of text with a header.

    Its ids have the type of the graph's, so that 007 stays a text beside other texts.
    """
    import pyarrow as pa

    with reader_errors(path):
        names = CsvFile(path, {}, delimiter).schema.names
        if all(whole_number(name) is not None for name in names):
            raise InputError(
                f"the first line of {path} is not a header: {shortened(delimiter.join(names))}; "
                "add one such as source,target"
            )
        columns = dataclasses.replace(_pick_pair(path, names, wanted), weight=None)
        ends = [columns.source, columns.target]
        file = CsvFile(path, dict.fromkeys(ends, pa.type_for_alias(id_type)), delimiter)
    schema = pa.schema([file.schema.field(end) for end in ends])
    ids = "string" if id_type == "string" else "int"
    rows = file.batches(ends)
    return table_of(path, columns, schema, rows, ids=ids, reserve_bytes=ARROW_RESERVE_BYTES)
