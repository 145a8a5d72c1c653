"""Opens the graph at a path: a graph directory, here or in an object store, or an input file.

An input file is imported next to itself as `<file name>.brimful`, or into the user's cache
directory where its folder cannot be written. The manifest keeps the origin (size, modification
time, a hash of the first and last MiB, the options). If the origin has changed, the file is
imported again, replaces the graph, and the caller is told.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

from brimful.catalog import algorithms
from brimful.errors import (
    BrimfulError,
    InputError,
    NotFoundError,
    StoreIoError,
    UsageError,
)
from brimful.io.cache import Notify, cache_directory, locked
from brimful.io.formats import GRAPH_SUFFIX, RESULT_SUFFIXES, companions, input_format
from brimful.io.ingest import import_paths
from brimful.io.inputs import check_input_file
from brimful.io.remote import is_remote
from brimful.io.remote_graph import is_remote_graph, local_copy
from brimful.io.summary import ignored_sentences, left_out_sentences
from brimful.options.imports import ImportOptions
from brimful.resources import Resources
from brimful.tables.arrow import ipc_schema
from brimful.tables.parquet_pages import footer_chunks
from brimful.wording import did_you_mean

if TYPE_CHECKING:
    from brimful import _native

_HASHED_BYTES = 1 << 20
#: Value columns besides the default ones of algorithms: those of programs, and of `hits`.
_OTHER_VALUES = {"state", "hub"}


def open_graph(
    path: str, options: ImportOptions, resources: Resources, notify: Notify
) -> _native.Graph:
    """Open a graph directory, or import the input file at `path` first and keep the graph.

    Raises:
        NotFoundError: Nothing is at `path`.
        InputError: The path is a directory but no graph, or a file that cannot be imported.
        CorruptError: The graph is damaged.
        BudgetError: The budget is too small for the import.
        StoreIoError: The operating system refuses to read or write.
    """
    from brimful import _native

    if path == "-":
        raise UsageError(
            "a graph cannot come from standard input; import it first with "
            "'brimful import - NAME.brimful'"
        )
    if is_remote_graph(path):
        path = local_copy(path, resources.progress, notify)
    elif is_remote(path):
        raise UsageError(
            f"{path} must be imported first: 'brimful import {path} NAME.brimful' (a graph "
            f"directory at a URL has a name that ends in {GRAPH_SUFFIX})"
        )
    if os.path.isdir(path):
        return _native.Graph.open(path)
    if os.path.islink(path) and not os.path.exists(path):
        raise NotFoundError(
            f"{path} is a link to {os.readlink(path)}, which does not exist; check the link"
        )
    if not os.path.exists(path):
        raise NotFoundError(
            f"there is no graph or input file at {path}{_suggested_name(path)}; check the path, or "
            "make a graph with 'brimful import' or 'brimful generate'"
        )
    check_input_file(path)
    if not os.path.isfile(path):
        raise InputError(
            f"{path} is a pipe or a device, which cannot be read again; import it first with "
            f"'brimful import - NAME.brimful < {path}'"
        )
    if path.endswith(GRAPH_SUFFIX):
        raise InputError(
            f"{path} is a file, but {GRAPH_SUFFIX} is the suffix of a graph directory; unpack the "
            "file if it is an archive, or rename it if it holds edges"
        )
    return _open_kept(path, options, resources, notify)


def with_owner(error: UsageError | InputError, path: str, owner: str) -> UsageError | InputError:
    """Return an error of `open_graph`, which has the default options of an import.

    If it names options, the sentence ends with their `owner`.
    """
    sentence = str(error.args[0])
    # A command in the sentence is an owner already.
    if not os.path.isfile(path) or "--" not in sentence or "'brimful " in sentence:
        return error
    return type(error)(f"{sentence}; these are options of {owner}")


def fingerprint(path: str, options: ImportOptions) -> dict[str, object]:
    """Return the identity of an input file and its options, as JSON values.

    Reads at most 2 MiB. `automatic` distinguishes a graph that `open_graph` made, and may replace,
    from one that the user named.

    Raises:
        StoreIoError: The file cannot be read.
    """
    digest = hashlib.blake2b(digest_size=32)
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            digest.update(file.read(_HASHED_BYTES))
            if status.st_size > _HASHED_BYTES:
                file.seek(max(_HASHED_BYTES, status.st_size - _HASHED_BYTES))
                digest.update(file.read(_HASHED_BYTES))
    except OSError as error:
        raise StoreIoError(f"cannot read {path}: {error.strerror}", error.errno) from None
    beside = companions(os.path.abspath(path), input_format(path, options["format"]))
    return {
        "path": os.path.abspath(path),
        "size_bytes": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        "blake2b": digest.hexdigest(),
        "beside": {name: _size_and_time(name) for name in beside},
        "options": options,
        "automatic": True,
    }


def input_files(graph: _native.Graph) -> list[str]:
    """Return the files whose import `open_graph` keeps as this graph; none for any other graph."""
    origin = _parsed(graph.origin)
    return [origin["path"], *origin.get("beside", ())] if origin.get("automatic") else []


def _size_and_time(path: str) -> list[int]:
    status = os.stat(path)
    return [status.st_size, status.st_mtime_ns]


def _open_kept(
    path: str, options: ImportOptions, resources: Resources, notify: Notify
) -> _native.Graph:
    from brimful import _native

    wanted = fingerprint(path, options)
    folder = os.path.dirname(os.path.abspath(path))
    kept = os.path.join(os.path.dirname(path), os.path.basename(path) + GRAPH_SUFFIX)
    if not os.access(folder, os.W_OK | os.X_OK) and _difference(kept, wanted) is not None:
        name = hashlib.blake2b(os.path.abspath(path).encode(), digest_size=8).hexdigest()
        kept = os.path.join(cache_directory(), f"{os.path.basename(path)}-{name}{GRAPH_SUFFIX}")
    if _difference(kept, wanted) is not None:
        with locked(path, f"waiting for another process that imports {path}", notify):
            _import_kept(path, kept, wanted, options, resources, notify)
    return _native.Graph.open(kept)


def _import_kept(
    path: str,
    kept: str,
    wanted: dict[str, object],
    options: ImportOptions,
    resources: Resources,
    notify: Notify,
) -> None:
    """Import `path` as `kept`, unless another process has just done so."""
    difference = _difference(kept, wanted)
    if difference is None:
        return
    is_new = not os.path.lexists(kept)
    if not is_new:
        _refuse_columns(path, kept, difference)
    _refuse_result(path, options)
    notify(f"importing {path} " + (f"as {kept}" if is_new else f"again: {difference}"))
    origin = json.dumps(wanted, sort_keys=True)
    figures = import_paths([path], kept, options, resources, origin=origin, replace=not is_new)
    columns = figures["columns"]
    for sentence in [*left_out_sentences(figures), *ignored_sentences(columns, options)]:
        notify(sentence)


def _refuse_result(path: str, options: ImportOptions) -> None:
    """Refuse to take a result of brimful for edges, unless their columns are named.

    Raises:
        InputError: The file has the columns of a result.
    """
    named = [options[key] for key in ("format", "source", "target")]
    columns = [] if any(one is not None for one in named) else _columns_of(path)
    if _has_result(columns):
        raise InputError(
            f"{path} is a result with the columns {', '.join(columns)}, not a graph; "
            "'brimful top' and 'brimful compare' read it, and 'brimful import' with --source and "
            "--target takes two columns for edges"
        )


def _columns_of(path: str) -> list[str]:
    """Return the names of the columns of a file that may be a result."""
    kind = RESULT_SUFFIXES.get(os.path.splitext(path.lower())[1])
    # A file that cannot be read is reported by its import.
    with contextlib.suppress(BrimfulError, OSError), open(path, "rb") as file:
        if kind == "parquet":
            chunks = footer_chunks(file) or []
            return list(dict.fromkeys(chunk.path_in_schema for chunk in chunks))
        if kind == "arrow":
            return list(ipc_schema(path).names)
        if kind == "csv":
            return file.readline(_HASHED_BYTES).decode("utf-8", "replace").strip().split(",")
    return []


def _has_result(columns: list[str]) -> bool:
    known = [info["columns"] for info in algorithms().values()]
    if len(columns) > 1 and columns[0] == "vertex":
        values = {one[1] for one in known if one[0] == "vertex"}
        return columns[1] in values | _OTHER_VALUES
    # Pairs with a value are edges, too.
    return columns in [one for one in known if one[:2] != ["source", "target"]]


def _refuse_columns(path: str, kept: str, difference: str) -> None:
    """Refuse to import a file again, for a difference, if the graph would lose added columns.

    Raises:
        InputError: The graph has columns of vertices.
    """
    from brimful import _native

    if _native.Graph.open(kept).table_path("vertices") is not None:
        raise InputError(
            f"another import of {path} ({difference}) would lose the columns of {kept}; import it "
            f"by name ('brimful import {path} NAME.brimful --vertex-columns ...'), or remove {kept}"
        )


def _difference(kept: str, wanted: dict[str, object]) -> str | None:
    """Return the reason why the graph at `kept` cannot replace the input; None if it can.

    Raises:
        InputError: The graph of this name was not made by an automatic import, or is no graph.
        CorruptError: The graph of this name is damaged.
    """
    from brimful import _native

    if not os.path.lexists(kept):
        return "it was not imported before"
    try:
        origin = _parsed(_native.Graph.open(kept).origin)
    except NotFoundError:
        raise InputError(
            f"brimful keeps the import of {wanted['path']} as {kept}, which is something else; "
            "remove or rename that, or import the file by name ('brimful import "
            f"{wanted['path']} NAME.brimful')"
        ) from None
    difference = next(
        (
            sentence
            for key, sentence in (
                ("size_bytes", "its size has changed"),
                ("mtime_ns", "it was modified"),
                ("blake2b", "its content has changed"),
                ("beside", "a file that belongs to it has changed"),
                ("options", "the import options have changed"),
            )
            if origin.get(key) != wanted[key]
        ),
        None,
    )
    if difference is not None and not origin.get("automatic", False):
        raise InputError(
            f"{kept} was imported by name and is no longer the graph of the file next to it "
            f"({difference}); name {kept} itself as the graph, or remove it"
        )
    return difference


def _parsed(origin: str | None) -> dict[str, Any]:
    """Return the origin in a manifest; empty if `fingerprint` did not make it."""
    with contextlib.suppress(ValueError, RecursionError):
        parsed = json.loads(origin or "{}")
        if isinstance(parsed, dict):
            return parsed
    return {}


def _suggested_name(path: str) -> str:
    """Return `; did you mean 'web.brimful'?` if something of a similar name is next to `path`."""
    folder, name = os.path.split(path.rstrip(os.sep))
    with contextlib.suppress(OSError):
        return did_you_mean(name, [one for one in os.listdir(folder or ".") if one[0] != "."])
    return ""
