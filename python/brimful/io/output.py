"""Writes results and graphs to files; a file appears complete or not at all.

Bytes go to a hidden name in the same folder, are synced and renamed. A failure leaves nothing.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from brimful import errors
from brimful.documents import is_database
from brimful.errors import BrimfulError, StoreIoError, UsageError
from brimful.io.formats import (
    ExportFormat,
    export_compression,
    output_files,
    refuse_in_graph,
    refuse_standard_output,
    result_format,
)
from brimful.io.regular import folder_around, is_special, writing_to
from brimful.io.remote import refuse_remote_output
from brimful.options.checks import flag
from brimful.tables.arrow import parts_of
from brimful.tables.edge_table import ARROW_RESERVE_BYTES

if TYPE_CHECKING:
    from brimful import _native
    from brimful.documents.results import Written
    from brimful.resources import Resources

#: A function that adds columns of edges, given by name, to the rows of an export of a graph.
WithColumns = Callable[["_native.Graph", Sequence[str], object], object]

#: A group of rows ends with the part of a batch that brings it to this many rows or bytes.
_GROUP_ROWS = 1 << 18
_GROUP_BYTES = 8 << 20
#: Bytes of a part.
_PART_BYTES = 2 << 20


@dataclass(frozen=True)
class Exported:
    """The outcome of an export: the number of edges, and names of the parts that the file lacks."""

    edges: int
    lost: tuple[str, ...] = ()

    def warnings(self, path: str) -> list[str]:
        """Return the sentences about the lost parts."""
        return [f"{path} does not hold {' and '.join(self.lost)}"] if self.lost else []


def check_output(path: str, *, overwrite: bool) -> None:
    """Refuse an output that could not be written, before the work whose result it holds.

    Raises:
        UsageError: The file exists and `overwrite` is false, is a directory, a pipe or a device, or
            lies in a graph, or the path is `-`; or as `documents.results.check_destination`.
        StoreIoError: Its folder is missing or cannot be written, or a server did not answer.
    """
    if is_database(path):
        from brimful.documents.results import check_destination

        check_destination(path, overwrite=overwrite)
        return
    from brimful import _native

    refuse_remote_output(path)
    refuse_standard_output(path)
    if os.path.isdir(path):
        raise UsageError(f"{path} is a directory; name a file in it")
    if is_special(path):
        raise UsageError(f"{path} is a pipe or a device, not a file; name another path")
    refuse_in_graph(path)
    if not flag(overwrite, "overwrite") and os.path.lexists(path):
        raise UsageError(f"{path} already exists; remove it, or give --overwrite")
    folder_around(path, "write")
    _native.PartialFile(path, overwrite=overwrite).close()


def refuse_input(outputs: Sequence[str], *inputs: object) -> None:
    """Refuse outputs that would replace a file which the work reads, with --overwrite too.

    An input that is no path, such as a table in memory, is in no file.

    Raises:
        UsageError: An output is one of the inputs.
    """
    files = [one for one in inputs if isinstance(one, (str, os.PathLike)) and os.path.exists(one)]
    for path, one in itertools.product(filter(os.path.exists, outputs), files):
        if os.path.samefile(path, one):
            raise UsageError(f"the output {path} would replace an input; name another file")


def reserve_of_result(path: str | None) -> int:
    """Return the bytes that writing a result to `path`, if any, takes besides brimful's own memory.

    Raises:
        UsageError: An unknown suffix.
    """
    if path is None or (not is_database(path) and result_format(path) == "csv"):
        return 0
    return ARROW_RESERVE_BYTES


def write_result(
    result: _native.Result | _native.Rows, path: str, *, overwrite: bool
) -> Written | None:
    """Write the columns of a result to a .parquet, .csv or .arrow file.

    Parquet and Arrow are written batch by batch through pyarrow, CSV natively. The URL of documents
    names their field; the function then returns the changes that it made.

    Raises:
        UsageError: An unknown suffix, or the file exists and `overwrite` is false.
        InputError: Documents cannot hold the values.
        StoreIoError: The file cannot be written; nothing is left.
    """
    if is_database(path):
        from brimful.documents.results import write_documents

        batches = stream_batches(result)
        return write_documents(batches, path, overwrite=overwrite)
    refuse_standard_output(path)
    format_name = result_format(path)
    check_output(path, overwrite=overwrite)
    if format_name == "csv":
        result.write_csv(path, overwrite=overwrite)
        return None
    with new_file(path, overwrite=overwrite) as partial:
        write_arrow(result, partial, format_name)
    return None


def write_table(table: Callable[[], Any], path: str, *, overwrite: bool) -> None:
    """Write the Arrow table, or the reader of batches, that `table` returns to a file.

    The format is that of the suffix: .parquet, .csv or .arrow.

    Raises:
        UsageError: An unknown suffix, a column that the format cannot hold, or the file exists and
            `overwrite` is false.
        StoreIoError: The file cannot be written; nothing is left.
    """
    import pyarrow as pa

    refuse_standard_output(path)
    format_name = result_format(path)
    check_output(path, overwrite=overwrite)
    whole = table()
    try:
        with new_file(path, overwrite=overwrite) as partial:
            if format_name == "csv":
                _write_csv(whole, partial)
            else:
                write_arrow(whole, partial, format_name)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"{format_name} cannot hold these columns: {reason}") from None


def _write_csv(whole: Any, path: str) -> None:
    from pyarrow import csv

    # Arrow would quote all names of columns; results have `vertex,state`.
    with open(path, "wb") as file:
        file.write(",".join(map(_csv_name, whole.schema.names)).encode() + b"\n")
        options = csv.WriteOptions(include_header=False)
        with csv.CSVWriter(file, whole.schema, write_options=options) as writer:
            for batch in whole if hasattr(whole, "read_next_batch") else whole.to_batches():
                writer.write_batch(batch)


def _csv_name(name: str) -> str:
    """Return the name of a column, in quotes where RFC 4180 requires them."""
    return '"' + name.replace('"', '""') + '"' if re.search('[,"\r\n]', name) else name


def write_graph(
    open_graph: Callable[[], _native.Graph],
    path: str,
    format_name: ExportFormat,
    resources: Resources,
    options: Mapping[str, Any],
    with_columns: WithColumns,
) -> Exported:
    """Write the graph that `open_graph` returns to `path`, with checked `ExportOptions`.

    The output is checked before the graph is opened, which may import it. `with_columns` is
    `tables.edge_columns.declared_rows`.

    Raises:
        UsageError: The format cannot hold the graph (the sentence names one that can) and `lossy`
            is false, or the output exists and `overwrite` is false.
        StoreIoError: The file cannot be written; nothing is left.
    """
    compression = export_compression(path, format_name)
    renumber, overwrite = options["renumber"], options["overwrite"]
    if renumber and format_name not in ("mtx", "metis"):
        raise UsageError(
            f"--renumber applies to mtx and metis only; leave it out for {format_name}"
        )
    columns = options["columns"]
    if columns is not None and format_name not in ("parquet", "arrow"):
        raise UsageError(
            f"--columns applies to parquet and arrow only; leave it out for {format_name}"
        )
    for output in output_files(path, format_name):
        check_output(output, overwrite=overwrite)
    graph = open_graph()
    if format_name in ("parquet", "arrow"):
        # Refuses a budget that is too small before pyarrow is loaded.
        resources = resources.beside(ARROW_RESERVE_BYTES).leaving(ARROW_RESERVE_BYTES)
        stream = graph.edge_stream(declared=True, resources=resources)
        resources.shrink_arrow_pools()
        written: object = stream
        if columns is not None:
            written = with_columns(graph, columns, stream)
        with new_file(path, overwrite=overwrite) as partial:
            write_arrow(written, partial, format_name)
        return Exported(graph.edges)
    edges, lost = graph.export_text(
        path,
        format=format_name,
        compression=compression,
        renumber=renumber,
        lossy=options["lossy"],
        overwrite=overwrite,
        resources=resources,
    )
    return Exported(edges, tuple(lost))


def write_arrow(stream: object, path: str, format_name: str) -> None:
    """Write an Arrow stream to `path` as "parquet" or "arrow", in groups of bounded size."""
    import pyarrow as pa

    # A Python reader raises its own errors; exporting it as a stream would keep only their text.
    if isinstance(stream, pa.RecordBatchReader):
        source = stream
    else:
        source = pa.RecordBatchReader.from_stream(stream)
    schema, batches = source.schema, native_batches(source)
    if format_name == "parquet":
        # Ids and scores rarely repeat, so a dictionary would cost memory and gain nothing.
        write_parquet(schema, batches, path, use_dictionary=False)
        return
    with pa.OSFile(os.fsencode(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for group in _grouped(batches):
            for batch in group:
                writer.write_batch(batch)


def write_parquet(schema: Any, batches: Iterator[Any], path: str, **settings: Any) -> int:
    """Write batches to a Parquet file in row groups of bounded size; return their rows.

    `settings` are those of `pyarrow.parquet.ParquetWriter`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = 0
    with (
        pa.OSFile(os.fsencode(path), "wb") as sink,
        pq.ParquetWriter(sink, schema, **settings) as writer,
    ):
        for group in _grouped(batches):
            table = pa.Table.from_batches(group, schema)
            writer.write_table(table, max(table.num_rows, 1))
            rows += table.num_rows
    return rows


def _grouped(batches: Iterator[Any]) -> Iterator[list[Any]]:
    """Yield lists of batches that make a row group each: few rows, and few bytes of ids."""
    group: list[Any] = []
    rows = size = 0
    for batch in itertools.chain.from_iterable(map(_parts, batches)):
        group.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
            yield group
            group, rows, size = [], 0, 0
    if group:
        yield group


def _parts(batch: Any) -> Iterator[Any]:
    """Yield a batch, in parts of few bytes if it is larger than a group and its rows are alike."""
    if batch.nbytes <= _GROUP_BYTES:
        # Parts need `pyarrow.compute`, which takes 8 MiB.
        return iter([batch])
    parts = -(-batch.nbytes // _PART_BYTES)
    return parts_of(batch, -(-batch.num_rows // parts))


def stream_batches(stream: Any) -> Iterator[Any]:
    """Return the batches of an object of the native side with `__arrow_c_stream__`."""
    import pyarrow as pa

    return native_batches(pa.RecordBatchReader.from_stream(stream))


def stream_table(stream: Any) -> Any:
    """Return an object of the native side with `__arrow_c_stream__` as a table in memory."""
    import pyarrow as pa

    source = pa.RecordBatchReader.from_stream(stream)
    return pa.Table.from_batches(native_batches(source), source.schema)


def native_batches(source: Any) -> Iterator[Any]:
    """Yield the batches of a native stream; raise its errors as brimful's.

    An Arrow stream carries only the text of an error: the native side writes `NAME: sentence`,
    NAME being a class of `brimful.errors`.
    """
    import pyarrow as pa

    try:
        yield from source
    except BrimfulError:
        raise
    except (pa.ArrowException, OSError) as error:
        text = " ".join(str(error).split()).removeprefix("External error: ")
        name, colon, sentence = text.partition(": ")
        kind = getattr(errors, name, None) if colon else None
        if isinstance(kind, type) and issubclass(kind, BrimfulError):
            raise kind(sentence) from None
        raise StoreIoError(f"reading the results failed: {text}") from None


@contextlib.contextmanager
def new_file(path: str, *, overwrite: bool) -> Iterator[str]:
    """Yield a hidden name next to `path`; on success the file is synced and renamed, else removed.

    Raises:
        UsageError: `path` has appeared since then and `overwrite` is false.
        StoreIoError: The system refused; BrimfulErrors of the block pass through.
    """
    from brimful import _native

    with _native.PartialFile(path, overwrite=overwrite) as partial:
        with writing_to(path):
            yield partial.path
        partial.publish()
