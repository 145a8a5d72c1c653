"""Opening a graph by its path, or making one from any input."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Unpack

from brimful.catalog import cluster_of
from brimful.errors import InputError, UsageError
from brimful.graph import Graph
from brimful.importing import from_object, imported
from brimful.io.ingest import import_arrow, import_paths
from brimful.io.inputs import expand_globs, is_pattern
from brimful.io.remote import is_remote
from brimful.io.remote_graph import is_remote_graph
from brimful.io.source import open_graph, with_owner
from brimful.options.described import described
from brimful.options.imports import (
    IMPORT,
    FormatOptions,
    ImportOptions,
    ReadOptions,
    TextOptions,
    import_options,
    vertex_column_options,
)
from brimful.options.table import checked, options_of, picked
from brimful.reporting import shows_progress, warn
from brimful.resources import Resources
from brimful.tables import convert_in

#: The graph of an algorithm: a `Graph`, or the path of a graph directory or an input file.
GraphLike = Graph | str | os.PathLike[str]

#: Options of `read` that say nothing about a graph of another package.
_OF_FILES = (
    *options_of(FormatOptions),
    *options_of(TextOptions),
    *("source", "target", "ignore_extra", "ids", "on_error", "edge_columns"),
)


def as_graph(graph: GraphLike, resources: Resources) -> Graph:
    """Return a graph; one named by a path is opened, or imported first, as on the command line.

    Raises:
        UsageError: `graph` is neither a graph nor a path.
        NotFoundError, InputError, CorruptError, BudgetError, StoreIoError: As `read`.
    """
    if isinstance(graph, Graph):
        return graph
    if isinstance(graph, (str, os.PathLike)):
        try:
            return Graph(open_graph(os.fspath(graph), import_options(), resources, warn))
        except (UsageError, InputError) as error:
            raise with_owner(error, os.fspath(graph), "brimful.read") from None
    raise UsageError(
        f"expected a brimful.Graph or a path, found {type(graph).__name__}; make a graph of it "
        "with brimful.read"
    )


@shows_progress
@described(IMPORT, "budget", "corrupt", "io")
def read(
    source_data: object,
    **options: Unpack[ReadOptions],
) -> Graph:
    r"""Open a graph, or make one from files, a table or an object of another package.

    Args:
        source_data: A graph directory, or its URL (opened); an input file (imported next to itself
            as `<file name>.brimful` and kept; imported again when the file changed); a list of
            files of one graph; a pattern such as `part-*.txt`; a URL such as
            `s3://bucket/edges.txt.gz`; one of documents, such as
            `mongodb://host/database/collection`, whose fields `source` and `target` name; an object
            with `__arrow_c_stream__`; or a graph of NetworkX, igraph or SciPy, with the defaults of
            `from_networkx` and its like. A graph directory is opened in place and a single local
            file is imported next to itself; other inputs, and files with columns to keep, go to a
            temporary directory unless `path` is given.

    Returns:
        The graph. `Graph.info()` has the columns taken and counts the edges left out.

    Raises:
        NotFoundError: There is no graph or file at the path.
        InputError: The content is not of the format.
        UsageError: The columns are in doubt, an argument is unknown, out of range or without effect
            on this `source_data`, or `path` exists.

    >>> import brimful as bf, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "edges.txt")
    >>> with open(path, "w") as file:
    ...     _ = file.write("1 2\n2 3\n3 3\n")
    >>> with bf.read(path, self_loops="drop", budget="200M") as graph:
    ...     graph.edges, graph.neighbors(1)
    (2, [2])
    """
    chosen = checked(ReadOptions, options, "read")
    cluster = cluster_of(chosen)
    vertex_column_options(chosen)
    if isinstance(source_data, (str, os.PathLike)) and _is_used_in_place(source_data, chosen):
        return _opened(os.fspath(source_data), chosen)
    is_path = isinstance(source_data, (str, os.PathLike, list, tuple))
    if cluster is not None and not is_path:
        raise UsageError("cluster= imports files; leave it out, or give paths of files")
    if hasattr(source_data, "__arrow_c_stream__"):
        return imported(
            Graph, lambda *given: import_arrow(source_data, *given), chosen, source_data
        )
    weight = chosen["weight"]
    edges = convert_in.of(
        source_data, None if weight is None else str(weight), chosen["undirected"]
    )
    if edges is not None:
        place = f"{edges.table.name} is neither a file nor a table"
        _refuse_given(_OF_FILES, chosen, place, "make a table of it")
        return from_object(Graph, edges, chosen)
    paths = expand_globs(_paths(source_data))
    return imported(
        Graph, lambda *given: import_paths(paths, *given, cluster=cluster), chosen, paths
    )


def _is_used_in_place(path: str | os.PathLike[str], chosen: Mapping[str, Any]) -> bool:
    """Return whether a path is a graph to open, or one file whose import is kept beside it."""
    named = ("path", "vertex_columns", "edge_columns", "cluster")
    return (
        all(chosen[name] is None for name in named)
        and not is_pattern(path)
        and (is_remote_graph(path) or not is_remote(path))
    )


def _opened(path: str, chosen: Mapping[str, Any]) -> Graph:
    """Open a graph, or import the file at a path and keep the graph.

    Raises:
        UsageError: Options of an import are given for a graph.
        NotFoundError, InputError, CorruptError, BudgetError, StoreIoError: As `read`.
    """
    resources = Resources.of(chosen)
    wanted = import_options(**picked(ImportOptions, chosen))
    native = open_graph(path, wanted, resources, warn)
    if not os.path.isfile(path):
        _refuse_given(
            options_of(ImportOptions),
            chosen,
            f"{path} is a graph, which options of an import do not change",
            "derive a graph of it with Graph.undirected, Graph.filter or their like",
        )
    return Graph(native, budget=resources.budget)


def _paths(source_data: object) -> list[str]:
    """Return the paths of the files of a graph: one, or those of a list.

    Raises:
        UsageError: `source_data` is something else, or an empty list.
    """
    listed = source_data if isinstance(source_data, (list, tuple)) else [source_data]
    if not listed:
        raise UsageError("the list of files is empty; name at least one")
    paths = [os.fspath(item) for item in listed if isinstance(item, (str, os.PathLike))]
    if len(paths) == len(listed):
        return paths
    of_others = " of other objects" if listed is source_data else ""
    remedy = 'pairs become a table by pandas.DataFrame(pairs, columns=["source", "target"])'
    if type(source_data).__name__ == "LazyFrame":
        remedy = "collect() makes a table of it"
    raise UsageError(
        "brimful.read takes a path, a list of paths, a table with __arrow_c_stream__, or a graph "
        f"of NetworkX, igraph or SciPy, not {type(source_data).__name__}{of_others}; {remedy}"
    )


def _refuse_given(
    names: Iterable[str], chosen: Mapping[str, Any], reason: str, remedy: str
) -> None:
    """Refuse options that have no effect, for a reason.

    Raises:
        UsageError: One of some names has another value than its default.
    """
    defaults: Mapping[str, Any] = {**checked(ReadOptions, {}, "read")}
    given = [f"{name}=" for name in names if chosen[name] != defaults[name]]
    if given:
        raise UsageError(f"{reason}; leave {', '.join(given)} out, or {remedy}")
