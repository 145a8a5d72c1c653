"""Reading an input into a graph directory: one function over every input format.

The command line and the Python API call this with the same options, so that the two cannot
differ. It prints nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import glob
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from brimful.documents import is_database
from brimful.errors import InputError, StoreIoError, UsageError
from brimful.io.formats import (
    COLUMN_FORMATS,
    GRAPH_SUFFIX,
    TABLE_FORMATS,
    UNDIVIDED_FORMATS,
    input_format,
)
from brimful.io.hidden import whole_graph
from brimful.io.redaction import redacted
from brimful.io.remote import Feed, check, expand, is_remote
from brimful.memory import budget_bytes, require_all, resident_bytes, too_small
from brimful.options.imports import (
    EdgeOptions,
    ImportOptions,
    PolicyOptions,
    columns_of,
    import_options,
)
from brimful.options.table import picked
from brimful.tables.arrow import batch_bytes, open_arrow
from brimful.tables.directions import is_direction
from brimful.tables.edge_table import (
    ARROW_RESERVE_BYTES,
    EdgeTable,
    chain_tables,
    open_stream,
    shrink_arrow_pools,
)
from brimful.tables.parquet import known_page_bytes, open_parquet
from brimful.wording import counted, printable

if TYPE_CHECKING:
    from brimful.cluster.importing import Decoding, Parsing
    from brimful.graph import Graph
    from brimful.reporting import Progress

#: Bytes that a process takes to load pyarrow and open a table.
_LOADING_BYTES = 64 << 20
#: The place of an error in a table, as the native module names it.
_ROW = re.compile(r": row (\d+), column ")
#: The most ignored columns that a summary names.
_SHOWN_COLUMNS = 8


@dataclass(frozen=True)
class Resources:
    """The resources of a call: threads (None: all), budget in bytes (None: auto), progress.

    With `process_budget` the budget covers the whole process, as on the command line.
    """

    threads: int | None = None
    budget: int | None = None
    process_budget: bool = False
    progress: Progress | None = None

    def on(self, graph: Graph) -> Resources:
        """Return the resources for work on a graph, whose own budget is the default."""
        return self if self.budget is not None else dataclasses.replace(self, budget=graph.budget)

    def budget_bytes(self) -> int:
        """Return the budget in bytes."""
        return budget_bytes(self.budget)

    def taken_bytes(self, loaded_bytes: int) -> int:
        """Return the bytes of the budget that are taken once a package of `loaded_bytes` is loaded.

        They are none if the budget is for brimful's own use.
        """
        return resident_bytes() + loaded_bytes if self.process_budget else 0

    def require(self, more: int, purpose: str) -> None:
        """Refuse a budget without room for `more` bytes beside the process as it is.

        Raises:
            BudgetError: The message names the smallest budget that works.
        """
        if not self.has_room(more):
            raise too_small(self.budget_bytes(), self.taken_bytes(more), purpose)

    def has_room(self, more: int) -> bool:
        """Return whether the budget has room for `more` bytes beside the process as it is."""
        return self.taken_bytes(more) <= self.budget_bytes()

    def shrink_arrow_pools(self) -> None:
        """Shrink the pools of pyarrow, unless the budget is for brimful's own use.

        Raises:
            StoreIoError, BudgetError: A limit of the address space leaves too little.
        """
        if self.process_budget:
            shrink_arrow_pools(self.budget)

    def limits(self) -> dict[str, Any]:
        """Return all resources but the progress, as the native module takes them."""
        return {name: value for name, value in vars(self).items() if name != "progress"}


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
    if remote and format_name in ("graphalytics", "webgraph"):
        raise UsageError(
            f"{format_name} needs several files in one folder; copy them to this machine first"
        )
    if "-" in paths and format_name in ("graphalytics", "webgraph"):
        raise UsageError(
            f"{format_name} needs several files in one folder, not standard input; name one of them"
        )
    if format_name in TABLE_FORMATS:
        with _decoding(paths, cluster, options, resources) as decoding:
            return _import_tables(
                *(list(paths), format_name, out, options, resources, origin, replace, decoding)
            )
    columns = columns_of(options)
    if columns != columns_of(import_options()) and format_name not in COLUMN_FORMATS:
        raise UsageError(
            "--source, --target, --weight, --header, --delimiter and --ignore-extra apply to text "
            f"and tables, and the input is {_listed({format_name})}; leave them out, or name the "
            "format with --format"
        )
    from brimful import _native

    def read(paths: list[str], given: Resources, parsing: Parsing | None = None) -> dict[str, Any]:
        return _native.import_files(
            paths,
            out,
            format=format_name,
            columns=columns,
            **picked(EdgeOptions, options),
            **vars(given),
            origin=origin,
            replace=replace,
            parsed=None if parsing is None else (parsing.names, parsing),
        ) | {"duplicates_policy": options["duplicates"]}

    if cluster is not None:
        return _import_parsed(paths, cluster, format_name, options, resources, read)
    if not remote:
        return read(list(paths), resources)
    resources.shrink_arrow_pools()
    with Feed(paths, resources.progress) as feed:
        figures = read(feed.paths, dataclasses.replace(resources, progress=feed.progress))
    for kind in _left_out(figures):
        kind["input"] = feed.renamed(kind["input"])
    return figures


def _check_divided(paths: Sequence[str], format_name: str) -> None:
    """Refuse an input that tasks of a cluster do not read.

    Raises:
        UsageError: It is standard input, or its format is not divided.
    """
    if "-" in paths:
        raise UsageError("a cluster reads files, not standard input; leave --cluster out")
    if format_name in UNDIVIDED_FORMATS:
        raise UsageError(
            f"a cluster reads text and Parquet, and the input is {_listed({format_name})}; leave "
            "--cluster out"
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
    from brimful.cluster.importing import Parsing, TextChoices

    choices = TextChoices(
        format=format_name,
        columns=columns_of(options),
        ids=options["ids"],
        directed=options["undirected"] is False,
        on_error=options["on_error"],
        positions=options["self_loops"] == "drop" or options["duplicates"] != "keep",
    )
    with Parsing(paths, choices, cluster, resources.budget) as parsing:
        own = dataclasses.replace(resources, **parsing.limits())
        figures = read(parsing.paths, own, parsing)
        return figures | {"cluster": parsing.figures()}


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

    choices = columns_of(options), options["ids"], options["undirected"] is False
    return Decoding(paths, *choices, cluster, resources.budget)


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
    from brimful.tables.joining import bytes_of_joins

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
    known = max((known_bytes(path, format_name, options) for path in local), default=0)
    _native.require_import_budget(
        format_name,
        [] if is_table else local,
        weights=options["weights"],
        **picked(PolicyOptions, options),
        **resources.limits(),
        reserve_bytes=ARROW_RESERVE_BYTES + known if is_table else 0,
    )


def known_bytes(path: str, format_name: str, options: ImportOptions) -> int:
    """Return the part of `EdgeTable.reserve_bytes` that the file itself decides, without pyarrow.

    0 for text.
    """
    from brimful import _native

    if format_name == "arrow":
        return batch_bytes(path)
    if format_name != "parquet":
        return 0
    wanted = columns_of(options)

    def chosen(names: Sequence[str]) -> list[str]:
        places = _native.pick_columns(path, list(names), wanted)
        taken = [names[at] for at in places if at is not None]
        if options["undirected"] is not False:
            taken += [name for name in names if is_direction(name)][:1]
        return taken

    return known_page_bytes(path, chosen)


def shared_format(paths: Sequence[str], options: ImportOptions) -> str:
    """Return the one format of the inputs of a graph.

    Raises:
        UsageError: They have several formats.
        InputError: A table is no regular file.
    """
    formats = {input_format(path, options["format"]) for path in paths}
    if options["delimiter"] is not None and formats == {"auto"}:
        # A delimiter makes the input CSV: blanks do not separate its columns.
        formats = {"csv"}
    if len(formats) != 1:
        raise UsageError(
            f"the inputs have several formats ({_listed(formats)}), and a graph needs one; import "
            "them separately, or name the format with --format"
        )
    format_name = formats.pop()
    if format_name in TABLE_FORMATS:
        for path in paths:
            # To open a pipe waits for its writer, and a table is not read from its start.
            if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
                raise InputError(
                    f"{path} is no regular file, and {format_name} is read at several places; "
                    "write it to a file first"
                )
    return format_name


def _listed(formats: set[str]) -> str:
    shown = {"auto": "edgelist", "gr": "dimacs or pace"}
    return ", ".join(sorted(shown.get(name, name) for name in formats))


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
    directed = options["undirected"] is False
    with open_stream(
        stream, columns_of(options), name=name, ids=options["ids"], directed=directed
    ) as table:
        return import_table(table, out, options, resources)


def _import_tables(
    paths: list[str],
    format_name: str,
    out: str,
    options: ImportOptions,
    resources: Resources,
    origin: str | None,
    replace: bool,
    decoding: Decoding | None,
) -> dict[str, Any]:
    if decoding is not None:
        resources = dataclasses.replace(resources, **decoding.limits())
    require_budget(paths, format_name, options, resources)
    resources.shrink_arrow_pools()

    columns, stopped = columns_of(options), threading.Event()
    directed = options["undirected"] is False
    skipped: list[str] = []

    def open_table(path: str) -> EdgeTable:
        if format_name == "documents":
            from brimful.documents.edges import open_documents

            choice = options["ids"], options["on_error"]
            return open_documents(path, columns, *choice, skipped, stopped)
        if format_name == "arrow":
            return open_arrow(path, columns, ids=options["ids"], directed=directed)
        if format_name in ("graphml", "gexf"):
            from brimful.tables.graph_xml import GraphXml

            return GraphXml(path).table(columns, options["ids"], options["vertices"])
        table = open_parquet(path, columns, options["ids"], stopped, directed=directed)
        if decoding is None:
            return table
        table.stopped = stopped
        return decoding.take_over(table)

    if format_name in ("graphml", "gexf") and len(paths) > 1:
        raise UsageError(
            f"a graph in the format {format_name} is one file; import the files separately"
        )
    opened = open_table(paths[0]) if len(paths) == 1 else chain_tables(paths, open_table)
    with opened as table:
        table.stopped = stopped
        figures = import_table(table, out, options, resources, origin=origin, replace=replace)
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
) -> dict[str, Any]:
    """Import an open edge table into the new graph directory `out`.

    `isolated` are ids of vertices that exist whether an edge names them or not. Returns and raises
    as `import_paths`.
    """
    from brimful import _native

    edges = picked(EdgeOptions, options) | {"ids": table.ids}
    if edges["undirected"] is None:
        edges["undirected"] = table.undirected
    with _checked(table, out, replace) as place, _rows_as_lines(table):
        figures = _native.import_stream(
            table,
            place,
            name=printable(table.name),
            source=table.source,
            target=table.target,
            weight=table.weight,
            ignored=table.ignored,
            **edges,
            isolated=list(isolated),  # type: ignore[arg-type]
            vertex_rows=table.vertex_rows,
            **vars(resources),
            reserve_bytes=table.reserve_bytes,
            origin=origin,
            replace=replace and place == out,
        )
    for kind in _left_out(figures):
        kind["input"] = redacted(kind["input"])
        if table.line_of is not None:
            kind["first_line"] = table.line_of(kind["first_line"])
    return figures | {"duplicates_policy": options["duplicates"]}


@contextlib.contextmanager
def _checked(table: EdgeTable, out: str, replace: bool) -> Iterator[str]:
    """Yield where to make the graph of a table: hidden, if it is checked before it appears."""
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
        found = _ROW.search(str(error))
        if table.line_of is None or found is None:
            raise
        line = table.line_of(int(found[1]))
        raise InputError(_ROW.sub(f": line {line}, column ", str(error), count=1)) from None


def fate(reason: str, figures: Mapping[str, Any]) -> str:
    """Return the fate of edges in an import: `merged` into parallel ones, or `left out`."""
    merges = figures.get("duplicates_policy") in ("sum", "min")
    return "merged" if merges and reason.startswith("duplicate") else "left out"


def left_out_sentences(figures: dict[str, Any]) -> list[str]:
    """Return a sentence for every reason why an import left something out, or merged it.

    The reasons are lines that are no edges, and policies that left out or merged edges.
    """
    return [
        f"{fate(kind['reason'], figures)}: {kind['reason']}, {counted(kind['count'], 'time')}, "
        f"first{_place(kind)}: {kind['found']}"
        for kind in _left_out(figures)
    ]


def _place(kind: dict[str, Any]) -> str:
    # The edges of a graph have no lines.
    is_graph = kind["input"].endswith(GRAPH_SUFFIX)
    return "" if is_graph else f" at {kind['input']}:{kind['first_line']}"


def columns_sentence(columns: dict[str, Any] | None) -> str | None:
    """Return the line of a summary about the columns read; None if the format defines them."""
    if columns is None:
        return None
    parts = [f"source {columns['source']}", f"target {columns['target']}"]
    if columns["weight"] is not None:
        parts.append(f"weight {columns['weight']}")
    if "edge_columns" in columns:
        parts.append("kept with edges " + ", ".join(columns["edge_columns"]))
    ignored = columns["ignored"]
    if ignored:
        more = (
            f" and {len(ignored) - _SHOWN_COLUMNS:,} more" if len(ignored) > _SHOWN_COLUMNS else ""
        )
        parts.append("ignored " + ", ".join(ignored[:_SHOWN_COLUMNS]) + more)
    if columns["header"] is not None:
        parts.append("a header" if columns["header"] else "no header")
    if columns["delimiter"] is not None:
        parts.append(
            f"delimiter {'tab' if columns['delimiter'] == chr(9) else columns['delimiter']}"
        )
    return "columns: " + "; ".join(parts)


def _left_out(figures: dict[str, Any]) -> list[dict[str, Any]]:
    return [*figures["rejections"], *figures["left_out"]]


def is_pattern(path: str | os.PathLike[str]) -> bool:
    """Return whether `path` is a pattern (`*`, `?`, `[...]`) rather than something that exists."""
    name = os.fspath(path)
    return not is_remote(name) and glob.has_magic(name) and not os.path.lexists(name)


def expand_globs(paths: Sequence[str]) -> list[str]:
    """Return `paths` with patterns (`*`, `?`, `[...]`) replaced by the files they match, sorted.

    A path that exists is not a pattern, whatever characters it has. Beside files a pattern
    leaves out graph directories, such as those of earlier imports of these files.

    Raises:
        InputError: A pattern matches nothing.
    """
    found: list[str] = []
    for path in paths:
        if is_remote(path) and not is_database(path):
            found.extend(expand(path))
            continue
        if not is_pattern(path):
            found.append(path)
            continue
        matches = sorted(glob.glob(path, recursive=True))
        if not matches:
            raise InputError(f"no file matches {path}; check the pattern")
        files = [one for one in matches if not (one.endswith(GRAPH_SUFFIX) and os.path.isdir(one))]
        found.extend(files or matches)
    return found


def check_input_file(path: str) -> None:
    """Refuse an input that is missing or a directory, before anything is created.

    Raises:
        InputError: It is missing or a directory.
    """
    if path == "-":
        if sys.stdin is None:
            raise StoreIoError("standard input (-) is closed; pipe edges into it, or name a file")
        return
    if is_database(path):
        return
    if is_remote(path):
        check(path)
        return
    if os.path.isdir(path):
        raise InputError(f"{path} is a directory; name a file in it")
    if not os.path.exists(path):
        raise InputError(f"{path} does not exist; check the path")
