"""Reading an input into a graph directory: one function over every input format.

The command line and the Python API call this with the same options, so that the two cannot
differ. It prints nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from brimful.errors import InputError, UsageError
from brimful.io.feed import Feed
from brimful.io.formats import (
    COLUMN_FORMATS,
    TABLE_FORMATS,
    UNDIVIDED_FORMATS,
)
from brimful.io.hidden import whole_graph
from brimful.io.inputs import check_input_file, known_bytes, listed_formats, shared_format
from brimful.io.redaction import redacted
from brimful.io.remote import is_remote
from brimful.io.summary import all_left_out
from brimful.memory import require_all
from brimful.options.imports import (
    EdgeOptions,
    ImportOptions,
    columns_of,
    import_options,
)
from brimful.options.table import picked
from brimful.resources import Resources
from brimful.tables.arrow import open_arrow
from brimful.tables.edge_table import (
    ARROW_RESERVE_BYTES,
    EdgeTable,
    chain_tables,
    table_from_stream,
)
from brimful.tables.parquet import open_parquet
from brimful.wording import printable

if TYPE_CHECKING:
    from brimful.cluster.importing import Decoding, Parsing, ReadChoices

#: Bytes that a process takes to load pyarrow and open a table.
_LOADING_BYTES = 64 << 20
#: The place of an error in a table, as the native module names it.
_ROW = re.compile(r": row (\d+), column ")


def import_paths(
    paths: Sequence[str],
    out: str,
    options: ImportOptions,
    resources: Resources,
    *,
    origin: str | None = None,
    replace: bool = False,
    cluster: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Import files (`-`: standard input) into the new graph directory `out`.

    Returns the counts and figures of `import --json`. On any failure nothing is left at `out`; with
    `replace` the graph that was there stays. `origin` is kept in the manifest unchanged. With a
    `cluster` its tasks read the files.

    Raises:
        UsageError: An option does not apply to the format.
        InputError: A file is missing or a directory, or its content is not of the format.
        BudgetError: The budget is too small.
        StoreIoError: The operating system refuses to read or write.
        WorkerLostError: A task of the cluster was lost too often.
    """
    format_name = shared_format(paths, options)
    if cluster is not None:
        _check_divided(paths, format_name)
    for path in paths:
        check_input_file(path)
    remote = any(is_remote(path) for path in paths)
    if format_name in ("graphalytics", "webgraph"):
        _check_folder(paths, format_name)
    if format_name in TABLE_FORMATS:
        with _decoding(paths, cluster, options, resources) as decoding:
            return _import_tables(
                list(paths),
                format_name,
                out,
                options,
                resources,
                origin=origin,
                replace=replace,
                decoding=decoding,
            )
    columns = columns_of(options)
    if columns != columns_of(import_options()) and format_name not in COLUMN_FORMATS:
        raise UsageError(
            "--source, --target, --weight, --header, --delimiter and --ignore-extra apply to text "
            f"and tables, and the input is {listed_formats({format_name})}; leave them out, or "
            "name the format with --format"
        )
    from brimful import _native

    def read(
        paths: list[str], resources: Resources, parsing: Parsing | None = None
    ) -> dict[str, Any]:
        return _native.import_files(
            paths,
            out,
            format=format_name,
            columns=columns,
            edges=picked(EdgeOptions, options),
            resources=resources,
            origin=origin,
            replace=replace,
            distributed=None if parsing is None else parsing.distributed,
        ) | {"duplicates_policy": options["duplicates"]}

    if cluster is not None:
        return _import_parsed(paths, cluster, format_name, options, resources, read)
    if not remote:
        return read(list(paths), resources)
    resources.shrink_arrow_pools()
    with Feed(paths, resources.progress) as feed:
        figures = read(feed.paths, dataclasses.replace(resources, progress=feed.progress))
    for kind in all_left_out(figures):
        kind["input"] = feed.renamed(kind["input"])
    return figures


def _check_folder(paths: Sequence[str], format_name: str) -> None:
    """Refuse inputs without a folder on this machine, which has further files of the format.

    Raises:
        UsageError: An input is remote, or standard input.
    """
    if any(is_remote(path) for path in paths):
        raise UsageError(
            f"{format_name} needs several files in one folder; copy them to this machine first"
        )
    if "-" in paths:
        raise UsageError(
            f"{format_name} needs several files in one folder, not standard input; name one of them"
        )


def _check_divided(paths: Sequence[str], format_name: str) -> None:
    """Refuse an input that tasks of a cluster do not read.

    Raises:
        UsageError: An input is standard input, or tasks do not read its format.
    """
    if "-" in paths:
        raise UsageError("a cluster reads files, not standard input; leave --cluster out")
    if format_name in UNDIVIDED_FORMATS:
        raise UsageError(
            f"a cluster reads text and Parquet, and the input is {listed_formats({format_name})}; "
            "leave --cluster out"
        )


def _import_parsed(
    paths: Sequence[str],
    cluster: Mapping[str, Any],
    format_name: str,
    options: ImportOptions,
    resources: Resources,
    read: Callable[[list[str], Resources, Parsing], dict[str, Any]],
) -> dict[str, Any]:
    """Import text that tasks of a cluster parse; `read` makes the graph of their messages."""
    from brimful.cluster.importing import Parsing

    choices = _choices(options, format_name)
    with Parsing(paths, choices, cluster, resources.budget) as parsing:
        own = parsing.importing(resources)
        figures = read(parsing.paths, own, parsing)
        return figures | {"cluster": parsing.figures()}


def _choices(options: ImportOptions, format_name: str) -> ReadChoices:
    """Return the options with which a task reads a file."""
    from brimful.cluster.importing import ReadChoices

    return ReadChoices(
        format=format_name,
        columns=columns_of(options),
        ids=options["ids"],
        undirected=options["undirected"],
        on_error=options["on_error"],
        self_loops=options["self_loops"],
        duplicates=options["duplicates"],
    )


def _decoding(
    paths: Sequence[str],
    cluster: Mapping[str, Any] | None,
    options: ImportOptions,
    resources: Resources,
) -> contextlib.AbstractContextManager[Decoding | None]:
    """Return the tasks of a cluster that decode Parquet files, as a context manager; or None."""
    if cluster is None:
        return contextlib.nullcontext()
    from brimful.cluster.importing import Decoding

    return Decoding(paths, _choices(options, "parquet"), cluster, resources.budget)


def require_budget(
    paths: Sequence[str],
    format_name: str,
    options: ImportOptions,
    resources: Resources,
    *,
    joins: int = 0,
) -> None:
    """Refuse a budget that no import of these files fits, before they or pyarrow are loaded.

    A table is refused here only if pyarrow itself does not fit, or DuckDB for `joins` of columns to
    the graph. The sizes of the pages of Parquet are checked once the table is open.

    Raises:
        BudgetError: The budget is too small; the message names the smallest that works.
    """
    from brimful.tables.connection import bytes_of_joins

    packages = bytes_of_joins(joins) if joins else _LOADING_BYTES

    def require_import() -> None:
        if format_name in TABLE_FORMATS and resources.has_room(packages):
            return
        _require_import(paths, format_name, options, resources)

    def require_join() -> None:
        if joins:
            resources.require(packages, "for a join")

    require_all(require_import, require_join)


def _require_import(
    paths: Sequence[str], format_name: str, options: ImportOptions, resources: Resources
) -> None:
    """Refuse a budget that is too small to read the files, before they or pyarrow are loaded."""
    from brimful import _native

    is_table = format_name in TABLE_FORMATS
    local = [path for path in paths if not is_remote(path)]
    page_bytes = max((known_bytes(path, format_name, options) for path in local), default=0)
    reserve_bytes = ARROW_RESERVE_BYTES + page_bytes if is_table else 0
    _native.require_import_budget(
        format_name,
        [] if is_table else local,
        edges=picked(EdgeOptions, options),
        resources=resources.beside(reserve_bytes).leaving(reserve_bytes),
    )


def import_arrow(
    stream: object,
    out: str,
    options: ImportOptions,
    resources: Resources,
    *,
    name: str = "the table",
) -> dict[str, Any]:
    """Import anything with `__arrow_c_stream__` into the new graph directory `out`.

    Returns and raises as `import_paths`.
    """
    decided = options["undirected"] is not None
    with table_from_stream(
        stream, columns_of(options), name=name, ids=options["ids"], is_decided=decided
    ) as table:
        return import_table(table, out, options, resources)


def _import_tables(
    paths: list[str],
    format_name: str,
    out: str,
    options: ImportOptions,
    resources: Resources,
    *,
    origin: str | None,
    replace: bool,
    decoding: Decoding | None,
) -> dict[str, Any]:
    if decoding is not None:
        resources = decoding.importing(resources)
    require_budget(paths, format_name, options, resources)
    resources.shrink_arrow_pools()

    columns, stopped = columns_of(options), threading.Event()
    decided = options["undirected"] is not None
    skipped: list[str] = []

    def open_table(path: str) -> EdgeTable:
        if format_name == "documents":
            from brimful.documents.edges import open_documents

            choice = options["ids"], options["on_error"]
            return open_documents(path, columns, *choice, skipped, stopped)
        if format_name == "arrow":
            return open_arrow(path, columns, ids=options["ids"], is_decided=decided)
        if format_name in ("graphml", "gexf"):
            from brimful.tables.graph_xml import GraphXml

            return GraphXml(path).table(columns, options["ids"], options["vertices"])
        return open_parquet(path, columns, options["ids"], stopped, is_decided=decided)

    if format_name in ("graphml", "gexf") and len(paths) > 1:
        raise UsageError(
            f"a graph in the format {format_name} is one file; import the files separately"
        )
    opened = open_table(paths[0]) if len(paths) == 1 else chain_tables(paths, open_table)
    with opened as table:
        table.stopped = stopped
        figures = import_table(
            table, out, options, resources, origin=origin, replace=replace, decoding=decoding
        )
    if decoding is not None:
        figures["cluster"] = decoding.figures()
    # The rejected row of a document is empty, so the sentence about the document takes its place.
    for kind in figures["rejections"]:
        kind["found"] = skipped[0] if skipped else kind["found"]
    return figures


def import_table(
    table: EdgeTable,
    out: str,
    options: ImportOptions,
    resources: Resources,
    *,
    origin: str | None = None,
    replace: bool = False,
    isolated: Sequence[int] | Sequence[str] = (),
    decoding: Decoding | None = None,
) -> dict[str, Any]:
    """Import an open edge table into the new graph directory `out`.

    `isolated` are ids of vertices that exist whether an edge names them or not; `decoding` are the
    tasks of a cluster that read the table. Returns and raises as `import_paths`.
    """
    from brimful import _native

    edges = picked(EdgeOptions, options) | {"ids": table.ids}
    if edges["undirected"] is None:
        edges["undirected"] = table.undirected
    with _place_of(table, out, replace) as place, _rows_as_lines(table):
        figures = _native.import_stream(
            table,
            place,
            name=printable(table.name),
            source=table.source,
            target=table.target,
            weight=table.weight,
            ignored=table.ignored,
            isolated=list(isolated),  # type: ignore[arg-type]
            vertex_rows=table.vertex_rows,
            edges=edges,
            resources=resources.beside(table.reserve_bytes).leaving(table.reserve_bytes),
            origin=origin,
            replace=replace and place == out,
            distributed=None if decoding is None else decoding.keep(table),
        )
    for kind in all_left_out(figures):
        kind["input"] = redacted(kind["input"])
        if table.line_of is not None:
            kind["first_line"] = table.line_of(kind["first_line"])
    return figures | {"duplicates_policy": options["duplicates"]}


@contextlib.contextmanager
def _place_of(table: EdgeTable, out: str, replace: bool) -> Iterator[str]:
    """Yield the place of the graph of a table: hidden, if a check precedes its appearance."""
    if table.check is None:
        yield out
        return
    from brimful import _native

    with whole_graph(out, replace=replace) as place:
        yield place
        table.check(_native.Graph.open(place))


@contextlib.contextmanager
def _rows_as_lines(table: EdgeTable) -> Iterator[None]:
    """Turn the row in an error about a table into the line, if the file has lines."""
    try:
        yield
    except InputError as error:
        match = _ROW.search(str(error))
        if table.line_of is None or match is None:
            raise
        line = table.line_of(int(match[1]))
        raise InputError(_ROW.sub(f": line {line}, column ", str(error), count=1)) from None
