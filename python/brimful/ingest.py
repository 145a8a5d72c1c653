"""Reading an input into a graph directory: one function over every input format.

The command line and the Python API call this with the same options, so that the two cannot
differ. It prints nothing.
"""

from __future__ import annotations

import glob
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from brimful import checks
from brimful.arrow_tables import open_arrow
from brimful.errors import InputError, StoreIoError, UsageError
from brimful.formats import COLUMN_FORMATS, TABLE_FORMATS, input_format
from brimful.parquet_tables import open_parquet
from brimful.redaction import redacted
from brimful.remote import Feed, check, expand, is_remote
from brimful.sizes import parse_count
from brimful.tables import (
    ARROW_RESERVE_BYTES,
    EdgeColumns,
    EdgeTable,
    chain_tables,
    open_stream,
    shrink_arrow_pools,
)
from brimful.wording import did_you_mean, printable, shortened, unknown

if TYPE_CHECKING:
    from brimful.reporting import Progress

#: In a process of so many bytes pyarrow can be loaded and a table be opened.
_LOADING_BYTES = 64 << 20
#: Indexes that this release builds.
INDEX_NAMES = ("in", "reverse")
#: Treatment of lines that are no edges.
ON_ERROR = ("fail", "skip")
#: Ignored columns that a summary lists.
_SHOWN_COLUMNS = 8
#: Sources of weights.
WEIGHTS = ("input", "hash")
#: Types of vertex ids.
IDS = ("auto", "int", "string")
#: Treatment of edges from a vertex to itself.
SELF_LOOPS = ("keep", "drop")
#: Treatment of edges with the same ends.
DUPLICATES = ("keep", "drop", "sum", "min")


@dataclass(frozen=True)
class ImportOptions:
    """How an input becomes a graph: everything that changes the graph's bytes.

    `undirected` None is what the format says. `vertices` declares the ids 0..vertices-1.
    `ids` is one out of `IDS`. `on_error` is `fail` or `skip`: what happens to lines that are no
    edges. `index` is a subset of `INDEX_NAMES`. `weights`, `self_loops` and `duplicates` are names
    out of `WEIGHTS`, `SELF_LOOPS` and `DUPLICATES`.
    """

    format: str | None = None
    columns: EdgeColumns = field(default_factory=EdgeColumns)
    undirected: bool | None = None
    vertices: int | None = None
    on_error: str = "fail"
    index: tuple[str, ...] = ("in",)
    weights: str = "input"
    self_loops: str = "keep"
    duplicates: str = "keep"
    ids: str = "auto"

    def __post_init__(self) -> None:
        """Refuse unknown names.

        Raises:
            UsageError: A name is unknown; the message lists the known ones.
        """
        for name, kept in (
            ("source", self.columns.source),
            ("target", self.columns.target),
            ("weight", self.columns.weight),
            ("format", self.format),
        ):
            checks.text(kept, name)
        if self.undirected is not None:
            checks.flag(self.undirected, "undirected")
        parse_count(self.vertices, "vertices")
        for option, name, known in (
            ("on-error", self.on_error, ON_ERROR),
            ("ids", self.ids, IDS),
            ("weights", self.weights, WEIGHTS),
            ("self-loops", self.self_loops, SELF_LOOPS),
            ("duplicates", self.duplicates, DUPLICATES),
        ):
            if name not in known:
                hint = did_you_mean(name, known) if isinstance(name, str) else ""
                raise UsageError(
                    f"{option} cannot be '{shortened(name)}'; choose one of: {', '.join(known)}"
                    + hint
                )

    def describe(self) -> dict[str, object]:
        """Return the options as JSON values, to compare with those of an earlier import."""
        return {
            "format": self.format,
            "source": self.columns.source,
            "target": self.columns.target,
            "weight": self.columns.weight,
            "header": self.columns.header,
            "delimiter": self.columns.delimiter,
            "ignore_extra": self.columns.ignore_extra,
            "undirected": self.undirected,
            "vertices": self.vertices,
            "on_error": self.on_error,
            "index": list(self.index),
            "weights": self.weights,
            "self_loops": self.self_loops,
            "duplicates": self.duplicates,
            "ids": self.ids,
        }


#: More threads are of no use, and each has its buffers.
MOST_THREADS = 1024


@dataclass(frozen=True)
class Resources:
    """The resources of a call: threads (None: all), budget in bytes (None: auto), progress.

    With `process_budget` the budget covers the whole process, as on the command line.
    """

    threads: int | None = None
    budget: int | None = None
    process_budget: bool = False
    progress: Progress | None = None

    def __post_init__(self) -> None:
        """Refuse a wrong number of threads.

        Raises:
            UsageError: `threads` is not a whole number from 1 to `MOST_THREADS`.
        """
        parse_count(self.threads, "threads", 1, MOST_THREADS)


def parse_indexes(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of indexes from `in,reverse` or a sequence, in a fixed order.

    Raises:
        UsageError: A name is unknown, or belongs to a later release.
    """
    listed = names.split(",") if isinstance(names, str) else names
    if not isinstance(listed, (list, tuple)) or not all(isinstance(one, str) for one in listed):
        raise UsageError(f"index must be names of indexes, not {shortened(names)}")
    cleaned = [name.strip() for name in listed if name.strip()]
    for name in cleaned:
        if name == "out":
            raise UsageError(
                "index 'out' belongs to a later release of brimful; this one builds: "
                + ", ".join(INDEX_NAMES)
            )
        if name not in INDEX_NAMES:
            raise UsageError(unknown("index", shortened(name), INDEX_NAMES))
    if not cleaned:
        raise UsageError(f"name at least one index of: {', '.join(INDEX_NAMES)}")
    return tuple(name for name in INDEX_NAMES if name in cleaned)


def import_paths(
    paths: Sequence[str],
    out: str,
    options: ImportOptions,
    resources: Resources,
    *,
    origin: str | None = None,
    replace: bool = False,
) -> dict[str, Any]:
    """Import files (`-`: standard input) into the new graph directory `out`.

    Returns the counts and figures of `import --json`. On any failure nothing is left at `out`; with
    `replace` the graph that was there stays. `origin` is kept in the manifest unchanged.

    Raises:
        UsageError: An option does not apply to the format.
        InputError: A file is missing or a directory, or its content is not of the format.
        BudgetError: The budget is too small.
        StoreIoError: The operating system refuses to read or write.
    """
    format_name = shared_format(paths, options)
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
        return _import_tables(list(paths), format_name, out, options, resources, origin, replace)
    if options.columns != EdgeColumns() and format_name not in COLUMN_FORMATS:
        raise UsageError(
            "--source, --target, --weight, --header, --delimiter and --ignore-extra apply to text "
            f"and tables, and the input is {_listed({format_name})}; leave them out, or name the "
            "format with --format"
        )
    from brimful import _native

    def read(paths: list[str], progress: Progress | None) -> dict[str, Any]:
        return _native.import_files(
            paths,
            out,
            format=format_name,
            columns=options.columns,
            undirected=options.undirected,
            vertices=options.vertices,
            ids=options.ids,
            on_error=options.on_error,
            index=list(options.index),
            weights=options.weights,
            self_loops=options.self_loops,
            duplicates=options.duplicates,
            threads=resources.threads,
            budget=resources.budget,
            process_budget=resources.process_budget,
            origin=origin,
            replace=replace,
            progress=progress,
        )

    if not remote:
        return read(list(paths), resources.progress)
    if resources.process_budget:
        shrink_arrow_pools()
    with Feed(paths, resources.progress) as feed:
        figures = read(feed.paths, feed.progress)
    for kind in _left_out(figures):
        kind["input"] = feed.renamed(kind["input"])
    return figures


def require_budget(format_name: str, options: ImportOptions, resources: Resources) -> None:
    """Refuse a budget that no import of this format fits, before the input or pyarrow is loaded.

    A table is refused here only where pyarrow itself does not fit: the size of its pages is known
    once it is open, and is checked then.

    Raises:
        BudgetError: The budget is too small; the message names the smallest that works.
    """
    from brimful import _native

    is_table = format_name in TABLE_FORMATS
    loads = resources.budget is None or resources.budget >= _LOADING_BYTES
    if is_table and (loads or not resources.process_budget):
        return
    _native.require_import_budget(
        format_name,
        weights=options.weights,
        self_loops=options.self_loops,
        duplicates=options.duplicates,
        threads=resources.threads,
        budget=resources.budget,
        process_budget=resources.process_budget,
        reserve_bytes=ARROW_RESERVE_BYTES if is_table else 0,
    )


def shared_format(paths: Sequence[str], options: ImportOptions) -> str:
    """Return the one format of the inputs of a graph.

    Raises:
        UsageError: They have several formats.
    """
    formats = {input_format(path, options.format) for path in paths}
    if options.columns.delimiter is not None and formats == {"auto"}:
        # A delimiter means columns that blanks do not end.
        formats = {"csv"}
    if len(formats) != 1:
        raise UsageError(
            f"the inputs have several formats ({_listed(formats)}), and a graph needs one; import "
            "them separately, or name the format with --format"
        )
    return formats.pop()


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
    with open_stream(stream, options.columns, name=name, ids=options.ids) as table:
        return import_table(table, out, options, resources)


def _import_tables(
    paths: list[str],
    format_name: str,
    out: str,
    options: ImportOptions,
    resources: Resources,
    origin: str | None,
    replace: bool,
) -> dict[str, Any]:
    require_budget(format_name, options, resources)
    if resources.process_budget:
        shrink_arrow_pools()

    stopped = threading.Event()

    def open_table(path: str) -> EdgeTable:
        if format_name == "arrow":
            return open_arrow(path, options.columns, ids=options.ids)
        return open_parquet(path, options.columns, ids=options.ids, stopped=stopped)

    opened = open_table(paths[0]) if len(paths) == 1 else chain_tables(paths, open_table)
    with opened as table:
        table.stopped = stopped
        return import_table(table, out, options, resources, origin=origin, replace=replace)


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

    figures = _native.import_stream(
        table,
        out,
        name=printable(table.name),
        source=table.source,
        target=table.target,
        weight=table.weight,
        ignored=table.ignored,
        undirected=options.undirected,
        vertices=options.vertices,
        ids=table.ids,
        isolated=list(isolated),  # type: ignore[arg-type]
        on_error=options.on_error,
        index=list(options.index),
        weights=options.weights,
        self_loops=options.self_loops,
        duplicates=options.duplicates,
        threads=resources.threads,
        budget=resources.budget,
        process_budget=resources.process_budget,
        reserve_bytes=table.reserve_bytes,
        origin=origin,
        replace=replace,
        progress=resources.progress,
    )
    for kind in _left_out(figures):
        kind["input"] = redacted(kind["input"])
    return figures


def left_out_sentences(figures: dict[str, Any]) -> list[str]:
    """Return a sentence for every reason for which an import left something out.

    These are lines that are no edges, and edges that a policy left out.
    """
    return [
        f"left out: {kind['reason']}, {kind['count']:,} times, first at {kind['input']}:"
        f"{kind['first_line']}: {kind['found']}"
        for kind in _left_out(figures)
    ]


def columns_sentence(columns: dict[str, Any] | None) -> str | None:
    """Return which columns were read, as a line of a summary; None where the format says."""
    if columns is None:
        return None
    parts = [f"source {columns['source']}", f"target {columns['target']}"]
    if columns["weight"] is not None:
        parts.append(f"weight {columns['weight']}")
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

    A path that exists is not a pattern, whatever characters it has.

    Raises:
        InputError: A pattern matches nothing.
    """
    found: list[str] = []
    for path in paths:
        if is_remote(path):
            found.extend(expand(path))
            continue
        if not is_pattern(path):
            found.append(path)
            continue
        matches = sorted(glob.glob(path, recursive=True))
        if not matches:
            raise InputError(f"no file matches {path}; check the pattern")
        found.extend(matches)
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
    if is_remote(path):
        check(path)
        return
    if os.path.isdir(path):
        raise InputError(f"{path} is a directory; name a file in it")
    if not os.path.exists(path):
        raise InputError(f"{path} does not exist; check the path")
