"""The `Graph` of the Python API: a typed face on a graph directory."""

from __future__ import annotations

import html
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, overload

from brimful import convert_in
from brimful.choices import Direction, Duplicates, Ids, OnError, SelfLoops, Weights
from brimful.convert_out import Conversions
from brimful.errors import NotFoundError, UsageError
from brimful.formats import (
    GRAPH_SUFFIX,
    ExportFormat,
    InputFormat,
    export_format,
    require_graph_suffix,
)
from brimful.ingest import (
    ImportOptions,
    Resources,
    expand_globs,
    import_arrow,
    import_paths,
    import_table,
    is_pattern,
    left_out_sentences,
    parse_indexes,
)
from brimful.output import native_batches, write_graph
from brimful.per_vertex import vertex_id
from brimful.remote import is_remote
from brimful.reporting import shows_progress
from brimful.sizes import Budget, format_bytes, parse_budget
from brimful.source import open_graph
from brimful.tables import EdgeColumns
from brimful.temporary import make_folder, remove_folder

if TYPE_CHECKING:
    from types import TracebackType

    import pyarrow

    from brimful import _native
    from brimful.reporting import Progress


class Graph(Conversions):
    """A graph in a `.brimful` directory; its edges stay on disk.

    `vertices`, `edges` and `arcs` are counts; iteration gives the vertices, ascending. Made by
    `brimful.read`, `Graph.open` or one of `Graph.from_*`; `to_*` copy it into memory. As a context
    manager it is closed on leaving, which removes the directory if it was temporary. A graph that
    is kept can be pickled: what is pickled is its path.

    Look-ups (`neighbors`, `degree`, `has_edge`, `neighbors_many`, ...) read only the blocks of
    edges that they need. They keep what they read last: at most 64 MiB for the graph, or the
    largest unit of edges or weights (about 4 MiB of edges) if that is more, and 14 MiB of strings.
    Threads may share a graph.

    >>> import brimful as bf, pyarrow as pa
    >>> table = pa.table({"source": [0, 0, 2], "target": [1, 2, 0]})
    >>> with bf.Graph.from_arrow(table) as graph:
    ...     graph.vertices, graph.edges, graph.neighbors(0), graph.degree(1), 3 in graph
    (3, 3, [1, 2], 0, False)
    """

    def __init__(
        self, native: _native.Graph, *, budget: int | None = None, temporary: str | None = None
    ) -> None:
        """Wrap a native graph; use `open`, `from_arrow` or `brimful.read`.

        `budget` (bytes, None: auto) is the default of algorithms run on it. `temporary` is a
        directory that belongs to this object and is removed with it.
        """
        self._native: _native.Graph | None = native
        self._opened: _native.Lookup | None = None
        self._has_reverse = False
        self._path = native.path
        # The working directory may be another one when the graph is pickled.
        self._absolute_path = os.path.abspath(native.path)
        self._budget = budget
        self._remove = (
            weakref.finalize(self, remove_folder, temporary) if temporary is not None else None
        )

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, budget: Budget = None) -> Graph:
        """Open the graph directory at `path`.

        Reads the manifest and headers; `verify` checks every byte.

        Raises:
            NotFoundError: there is none.
            InputError: it was written by a newer version.
            CorruptError: it is damaged.
        """
        from brimful import _native

        return cls(_native.Graph.open(os.fspath(path)), budget=parse_budget(budget))

    @classmethod
    @shows_progress
    def from_arrow(
        cls,
        table: object,
        *,
        source: str | int | None = None,
        target: str | int | None = None,
        weight: str | int | None = None,
        ignore_extra: bool = False,
        path: str | os.PathLike[str] | None = None,
        undirected: bool | None = None,
        vertices: int | None = None,
        on_error: OnError = "fail",
        weights: Weights = "input",
        self_loops: SelfLoops = "keep",
        duplicates: Duplicates = "keep",
        ids: Ids = "auto",
        index: str | Sequence[str] = ("in",),
        threads: int | None = None,
        budget: Budget = None,
        progress: Progress | None = None,
    ) -> Graph:
        """Import a table with one edge per row: anything with `__arrow_c_stream__`.

        `source` and `target` are the id columns (integers of any width, or strings), by name or by
        number from 1; default: the two that there are, or one known pair of names such as
        source and target. `weight` is a numeric column; default: one of a known name such as
        weight. `ignore_extra` takes the first two columns where nothing else tells. The columns
        taken are in `info()["columns"]`. `ids` "int" reads integers out of strings, "string"
        takes integers as strings. The graph is kept at `path`, or in a temporary directory that is
        removed on `close`. `vertices` declares the ids 0..vertices-1. `weights`, `self_loops`
        and `duplicates` as for `read`. Memory: within `budget`, brimful's own; the table's is the
        caller's.

        Raises:
            InputError: missing columns, nulls, columns that are no ids, no edges.
            UsageError: `table` has no `__arrow_c_stream__`, its columns are not beyond doubt, or
                `path` exists.
            BudgetError, StoreIoError: as their names say.
        """
        options = ImportOptions(
            columns=EdgeColumns(source, target, weight, ignore_extra=ignore_extra),
            undirected=undirected,
            vertices=vertices,
            on_error=on_error,
            index=parse_indexes(index),
            weights=weights,
            self_loops=self_loops,
            duplicates=duplicates,
            ids=ids,
        )
        resources = Resources(threads, parse_budget(budget), progress=progress)
        out, temporary = _new_place(path)
        return _make(
            lambda: import_arrow(table, out, options, resources), out, temporary, resources
        )

    #: A `pandas.DataFrame` (2.2 or newer) and a `polars.DataFrame` are tables like others.
    from_pandas = from_arrow
    from_polars = from_arrow

    @classmethod
    @shows_progress
    def from_networkx(
        cls,
        graph: object,
        *,
        weight: str | None = "weight",
        path: str | os.PathLike[str] | None = None,
        index: str | Sequence[str] = ("in",),
        threads: int | None = None,
        budget: Budget = None,
        progress: Progress | None = None,
    ) -> Graph:
        """Import a NetworkX graph of any of its four kinds.

        Nodes are integers of 64 bits, or all of them strings, and become the vertex ids, those
        without edges too; direction, self-loops and multi-edges stay. `weight` names the edge
        attribute of weights; an edge that lacks it counts 1, as in NetworkX; if no edge has it, or
        with None, there are no weights. Other attributes are left out.
        `path`, `index`, `budget` as for `from_arrow`. Memory: within `budget`, brimful's own; edges
        are handed over in batches.

        Raises:
            InputError: nodes that are neither, a weight that is no finite number, no node.
            UsageError: `graph` is no NetworkX graph, or `path` exists.
            BudgetError, StoreIoError: as their names say.
        """
        edges = convert_in.from_networkx(graph, weight)
        return _from_object(
            edges,
            path,
            ImportOptions(index=parse_indexes(index)),
            Resources(threads, parse_budget(budget), progress=progress),
        )

    @classmethod
    @shows_progress
    def from_scipy(
        cls,
        matrix: object,
        *,
        undirected: bool = False,
        weighted: bool | None = None,
        path: str | os.PathLike[str] | None = None,
        index: str | Sequence[str] = ("in",),
        threads: int | None = None,
        budget: Budget = None,
        progress: Progress | None = None,
    ) -> Graph:
        """Import the stored entries of a square sparse matrix: entry (i, j) is the edge i -> j.

        Vertices are 0..n-1 for a matrix of n rows. `weighted`: whether values are weights; default:
        unless they are of type bool. Stored zeros are edges; repeated entries of a `coo_array` are
        multi-edges. With `undirected` the matrix is symmetric and an entry and its mirror are one
        edge. `path`, `index`, `budget` as for `from_arrow`. Memory: within `budget`, brimful's own,
        beside a copy of the matrix in coordinate form (16 to 24 bytes an entry).

        Raises:
            InputError: not square, no real numbers, not symmetric though `undirected`, no vertex.
            UsageError: `matrix` is not sparse, or `path` exists.
            BudgetError, StoreIoError: as their names say.
        """
        edges = convert_in.from_scipy(matrix, undirected, weighted)
        return _from_object(
            edges,
            path,
            ImportOptions(index=parse_indexes(index)),
            Resources(threads, parse_budget(budget), progress=progress),
        )

    @classmethod
    @shows_progress
    def from_igraph(
        cls,
        graph: object,
        *,
        weight: str | None = "weight",
        vertex: str | None = "vertex",
        path: str | os.PathLike[str] | None = None,
        index: str | Sequence[str] = ("in",),
        threads: int | None = None,
        budget: Budget = None,
        progress: Progress | None = None,
    ) -> Graph:
        """Import an `igraph.Graph`, vertices without edges too.

        `vertex` names the vertex attribute that holds ids, integers or strings, as `to_igraph`
        makes it; if there is none, or with None, ids are igraph's own, 0..n-1. `weight` names the
        edge attribute of weights (None: 1); if there is none there are no weights. Direction,
        self-loops and multi-edges stay. `path`, `index`, `budget` as for `from_arrow`. Memory:
        within `budget`, brimful's own, beside a list of the edges (about 120 bytes each).

        Raises:
            InputError: ids that are neither or not distinct, a weight that is no finite number.
            UsageError: `graph` is no igraph graph, or `path` exists.
            BudgetError, StoreIoError: as their names say.
        """
        edges = convert_in.from_igraph(graph, weight, vertex)
        return _from_object(
            edges,
            path,
            ImportOptions(index=parse_indexes(index)),
            Resources(threads, parse_budget(budget), progress=progress),
        )

    @property
    def path(self) -> str:
        """Where the graph directory is."""
        return self._path

    @property
    def budget(self) -> int | None:
        """The default budget of algorithms on this graph, in bytes; None: auto."""
        return self._budget

    @property
    def vertices(self) -> int:
        """The number of vertices."""
        return self.native.vertices

    @property
    def edges(self) -> int:
        """The number of input edges; an undirected one counts once."""
        return self.native.edges

    @property
    def arcs(self) -> int:
        """The number of stored arcs; an undirected edge has two, a self-loop one."""
        return self.native.arcs

    @property
    def directed(self) -> bool:
        """Whether edges have a direction."""
        return self.native.directed

    @property
    def weighted(self) -> bool:
        """Whether edges carry weights."""
        return self.native.weighted

    @property
    def native(self) -> _native.Graph:
        """The native graph.

        Raises:
            UsageError: the graph is closed.
        """
        if self._native is None:
            raise UsageError(f"the graph {self._path} is closed; open it again")
        return self._native

    @overload
    def neighbors(self, vertex: int | str, *, weights: Literal[False] = False) -> list[Any]: ...

    @overload
    def neighbors(
        self, vertex: int | str, *, weights: Literal[True]
    ) -> tuple[list[Any], list[float]]: ...

    def neighbors(
        self, vertex: int | str, *, weights: bool = False
    ) -> list[Any] | tuple[list[Any], list[float]]:
        """Return the targets of the out-edges of `vertex`, ascending, one entry per edge.

        Parallel edges are entries of their own, a self-loop is one entry. In an undirected graph
        these are all neighbours. With `weights`: `(targets, weights)`, two lists of one length;
        parallel edges are in the order of their weights.

        Raises:
            NotFoundError: there is no such vertex (also a `KeyError`).
            UsageError: `weights`, and the edges have none.

        >>> import brimful as bf, pyarrow as pa
        >>> table = pa.table({"source": [5, 5], "target": [9, 7], "weight": [1.5, 2.0]})
        >>> with bf.Graph.from_arrow(table) as graph:
        ...     graph.neighbors(5), graph.neighbors(5, weights=True), graph.in_neighbors(7)
        ([7, 9], ([7, 9], [2.0, 1.5]), [5])
        """
        return self._lookups.neighbors(vertex_id(vertex), "out", weights)

    @overload
    def in_neighbors(self, vertex: int | str, *, weights: Literal[False] = False) -> list[Any]: ...

    @overload
    def in_neighbors(
        self, vertex: int | str, *, weights: Literal[True]
    ) -> tuple[list[Any], list[float]]: ...

    def in_neighbors(
        self, vertex: int | str, *, weights: bool = False
    ) -> list[Any] | tuple[list[Any], list[float]]:
        """Return the sources of the edges that reach `vertex`, as `neighbors` does targets.

        A directed graph needs its reverse index for that: if it is missing it is built by the first
        call, within the graph's budget, which the logger `brimful` reports, and it stays.

        Raises:
            NotFoundError, UsageError: as `neighbors`.
            InputError: the index is missing, and the graph cannot be written to.
            BudgetError: naming a budget in which the index can be built.
        """
        return self._indexed("in").neighbors(vertex_id(vertex), "in", weights)

    def degree(self, vertex: int | str) -> int:
        """Return the number of out-edges of `vertex`, as `out_degree`.

        NetworkX adds in-edges for a directed graph, and counts a self-loop twice.

        Raises:
            NotFoundError: there is no such vertex.
        """
        return self.out_degree(vertex)

    def out_degree(self, vertex: int | str) -> int:
        """Return the number of out-edges of `vertex`, multi-edges counted, a self-loop as one.

        Raises:
            NotFoundError: there is no such vertex.
        """
        return self._lookups.degree(vertex_id(vertex), "out")

    def in_degree(self, vertex: int | str) -> int:
        """Return the number of edges that reach `vertex`, multi-edges counted, a self-loop as one.

        They are counted in the reverse index: see `in_neighbors`.

        Raises:
            NotFoundError: there is no such vertex.
            InputError, BudgetError: as `in_neighbors`.
        """
        return self._indexed("in").degree(vertex_id(vertex), "in")

    def has_edge(self, source: object, target: object) -> bool:
        """Return whether an edge leads from `source` to `target`; False if one is no vertex."""
        try:
            ends = vertex_id(source), vertex_id(target)
        except NotFoundError:
            return False
        return self._lookups.has_edge(*ends)

    def neighbors_many(
        self, vertices: object, *, direction: Direction = "out", weights: bool = False
    ) -> pyarrow.Table:
        """Return the edges of many vertices: far faster than one `neighbors` for each.

        `vertices` are integers or strings: a list, a NumPy or Arrow array, a column of a data
        frame. The table has the columns `source`, `target` (of the type of the ids) and, with
        `weights`, `weight` (float64): for each of `vertices`, in the order given, its edges by
        ascending neighbour. With `direction` "in" they are those that reach it, which needs the
        reverse index: see `in_neighbors`. Memory: the table, 16 bytes an edge or 24, and 64 bytes
        for each of 262,144 edges, or of those of 16,384 vertices if `direction` is "in".

        Raises:
            NotFoundError: one of them is no vertex.
            UsageError: they are neither integers nor strings, or `weights`, and there are none.
            InputError, BudgetError: as `in_neighbors`.

        >>> import brimful as bf, pyarrow as pa
        >>> table = pa.table({"source": [0, 0, 2], "target": [2, 1, 0]})
        >>> with bf.Graph.from_arrow(table) as graph:
        ...     graph.neighbors_many([2, 0]).to_pydict()
        {'source': [2, 0, 0], 'target': [0, 1, 2]}
        """
        import pyarrow as pa

        lookup = self._indexed(direction)
        stream = lookup.neighbor_stream(_many(vertices), direction, weights)
        source = pa.RecordBatchReader.from_stream(stream)
        return pa.Table.from_batches(native_batches(source), source.schema)

    def degrees_many(self, vertices: object, *, direction: Direction = "out") -> pyarrow.Int64Array:
        """Return the degrees of many vertices, in the order given: int64[len(vertices)].

        `vertices` and `direction` as in `neighbors_many`; `brimful.degrees` counts those of all.

        Raises:
            NotFoundError, UsageError, InputError, BudgetError: as `neighbors_many`.
        """
        import pyarrow as pa

        degrees = self._indexed(direction).degrees(_many(vertices), direction)
        return pa.Array.from_buffers(pa.int64(), len(degrees) // 8, [None, pa.py_buffer(degrees)])

    @property
    def _lookups(self) -> _native.Lookup:
        """The native look-ups.

        Raises:
            UsageError: the graph is closed.
        """
        lookup = self._opened
        if lookup is None:
            from brimful import _native

            # Two threads may both make one: the later stays.
            lookup = self._opened = _native.Lookup(self.native)
        return lookup

    def _indexed(self, direction: str) -> _native.Lookup:
        """Return the look-ups, with the index that `direction` needs."""
        lookup = self._lookups
        if direction == "in" and not self._has_reverse:
            if "reverse" not in self.native.indexes:
                _warn(f"building the reverse index of {self._path}, which in-edges need; it stays")
                self.native.build_index(
                    ["reverse"],
                    threads=None,
                    budget=self._budget,
                    process_budget=False,
                    progress=None,
                )
            self._has_reverse = True
        return lookup

    def info(self) -> dict[str, Any]:
        """Return what `brimful info` shows: format version, counts, order, indexes, bytes."""
        return self.native.info()

    @shows_progress
    def verify(self, *, progress: Progress | None = None) -> dict[str, Any]:
        """Check every byte and structure; one pass over all files.

        Returns `{"files", "bytes", "arcs", "seconds"}`.

        Raises:
            CorruptError: naming the file, the offset and the remedy.
        """
        return self.native.verify(progress=progress)

    @shows_progress
    def export(
        self,
        path: str | os.PathLike[str],
        *,
        format: ExportFormat | None = None,
        renumber: bool = False,
        lossy: bool = False,
        overwrite: bool = False,
        budget: Budget = None,
        progress: Progress | None = None,
    ) -> int:
        """Write the graph to a file, as `brimful export` does; return the number of edges.

        `format`, by default from the name: `parquet` and `arrow` hold every graph; `edgelist` every
        one whose ids are words; `graphalytics`, `mtx`, `metis` and `csv`, `u32pairs` some. What is
        written so reads back as the same graph. `lossy` writes `csv` and `u32pairs` without what
        they have no place for, and logs what that is. `renumber`: `mtx` and `metis` number vertices
        1 to n; consecutive ids that begin elsewhere are written so. An undirected edge is written
        once. Memory: within `budget`, brimful's own.

        Raises:
            UsageError: the format cannot hold the graph (the sentence names one that can) and
                `lossy` is false, or the file exists and `overwrite` is false.
            BudgetError, StoreIoError: as their names say; nothing is left.
        """
        name = os.fspath(path)
        exported = write_graph(
            lambda: self.native,
            name,
            export_format(name, format),
            Resources(None, parse_budget(budget), progress=progress),
            renumber=renumber,
            overwrite=overwrite,
            lossy=lossy,
        )
        for sentence in exported.warnings(name):
            _warn(sentence)
        return exported.edges

    def close(self) -> None:
        """Let go of the files, and remove the directory if it was temporary; may be repeated."""
        self._native = self._opened = None
        if self._remove is not None:
            self._remove()

    def __enter__(self) -> Graph:
        """Return self."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def __reduce__(self) -> tuple[Callable[..., Graph], tuple[str, int | None]]:
        """Pickle by path: the copy opens the directory, which must be there, again.

        Raises:
            UsageError: the directory is temporary, or the graph is closed.
        """
        if self._remove is not None:
            raise UsageError(
                f"{self!r} cannot be pickled or copied, as its directory is removed with it; make "
                "it with path= to keep it"
            )
        if self._native is None:
            raise UsageError(f"the graph {self._path} is closed; open it again")
        return _reopen, (self._absolute_path, self._budget)

    def __len__(self) -> int:
        """Return the number of vertices."""
        return self.vertices

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the vertices, ascending; streamed."""
        import pyarrow as pa

        for batch in native_batches(pa.RecordBatchReader.from_stream(self.native.vertex_stream())):
            yield from batch.column(0).to_pylist()

    def __bool__(self) -> bool:
        """Return True: a graph without vertices is a graph."""
        return True

    def __contains__(self, vertex: object) -> bool:
        """Return whether there is a vertex of this id."""
        try:
            number = vertex_id(vertex)
        except NotFoundError:
            return False
        return self._lookups.contains(number)

    def __repr__(self) -> str:
        """Return one line: name, counts, direction."""
        if self._native is None:
            return f"<brimful.Graph {self._path} (closed)>"
        direction = "directed" if self.directed else "undirected"
        weighted = ", weighted" if self.weighted else ""
        return (
            f"<brimful.Graph {self._path}: {self.vertices:,} vertices, {self.edges:,} edges, "
            f"{direction}{weighted}>"
        )

    def _repr_html_(self) -> str:
        """Return the counts as an HTML table, for notebooks."""
        if self._native is None:
            return f"<p>{html.escape(repr(self))}</p>"
        rows = {
            "vertices": f"{self.vertices:,}",
            "edges": f"{self.edges:,}",
            "arcs": f"{self.arcs:,}",
            "directed": "yes" if self.directed else "no",
            "weighted": "yes" if self.weighted else "no",
        }
        bytes_on_disk = self.info().get("bytes_on_disk")
        if isinstance(bytes_on_disk, int):
            rows["on disk"] = format_bytes(bytes_on_disk)
        cells = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows.items())
        return f"<table><caption>{html.escape(self._path)}</caption><tbody>{cells}</tbody></table>"


@shows_progress
def read(
    source_data: object,
    *,
    budget: Budget = None,
    undirected: bool | None = None,
    format: InputFormat | None = None,
    source: str | int | None = None,
    target: str | int | None = None,
    weight: str | int | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    ignore_extra: bool = False,
    vertices: int | None = None,
    on_error: OnError = "fail",
    weights: Weights = "input",
    self_loops: SelfLoops = "keep",
    duplicates: Duplicates = "keep",
    ids: Ids = "auto",
    index: str | Sequence[str] = ("in",),
    path: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Graph:
    """Open a graph, or make one from files, a table or an object of another package.

    `source_data` is a graph directory (opened), an input file (imported beside itself as
    `<file name>.brimful` and kept; imported again when it changed), a list of files of one graph,
    a pattern such as `part-*.txt`, a URL such as `s3://bucket/edges.txt.gz`, anything with
    `__arrow_c_stream__`, or a graph of NetworkX, igraph or SciPy (with the defaults of
    `from_networkx` and its like). All but the first two go to a temporary directory that `close`
    removes.
    `path` names the graph directory to make and keep instead. `format` is one of
    `brimful.formats.InputFormat`, default by name, then by content. `source`, `target` and `weight`
    are columns of text and tables, by name or by number from 1; default: those that are beyond
    doubt (docs/formats.md), else UsageError. `header` says whether the first line of text names
    the columns, `delimiter` what separates them (a character, or "tab"), `ignore_extra` takes the
    first two columns where nothing else tells. The columns taken are in `Graph.info()["columns"]`.
    `ids` is `string` (ids are taken as they are), `int`, or `auto`: the
    type of the columns decides, of text whether most of the first 65,536 lines have an id that is
    no integer. `undirected` None is what the format says. `vertices` declares the ids
    0..vertices-1. `on_error="skip"` leaves out what is no edge and logs how often, and where first.
    `weights="hash"` replaces weights by whole numbers from 1 to 100 made of the two ids, the same
    in both directions. `self_loops` is `keep` or `drop`. `duplicates`, edges with the same ends, is
    `keep`, `drop` (all but one), `sum` (one edge with the sum of their weights; without weights
    each counts 1) or `min` (the one of least weight). What was dropped is in `Graph.info()`.
    `budget` limits brimful's own memory, in bytes or as "500M"; it is also the default of
    algorithms on the graph.

    Raises:
        NotFoundError: nothing is there.
        InputError: the content is not what it should be.
        CorruptError, BudgetError, StoreIoError, UsageError: as their names say.
    """
    options = ImportOptions(
        format=format,
        columns=EdgeColumns(source, target, weight, header, delimiter, ignore_extra),
        undirected=undirected,
        vertices=vertices,
        on_error=on_error,
        index=parse_indexes(index),
        weights=weights,
        self_loops=self_loops,
        duplicates=duplicates,
        ids=ids,
    )
    resources = Resources(threads, parse_budget(budget), progress=progress)
    if (
        isinstance(source_data, (str, os.PathLike))
        and path is None
        and not is_pattern(source_data)
        and not is_remote(source_data)
    ):
        return Graph(
            open_graph(os.fspath(source_data), options, resources, _warn), budget=resources.budget
        )
    if hasattr(source_data, "__arrow_c_stream__"):
        out, temporary = _new_place(path)
        return _make(
            lambda: import_arrow(source_data, out, options, resources), out, temporary, resources
        )
    edges = convert_in.of(source_data, None if weight is None else str(weight), undirected)
    if edges is not None:
        return _from_object(edges, path, options, resources)
    if isinstance(source_data, (str, os.PathLike)):
        paths = [os.fspath(source_data)]
    elif isinstance(source_data, (list, tuple)) and all(
        isinstance(item, (str, os.PathLike)) for item in source_data
    ):
        paths = [os.fspath(item) for item in source_data]
    else:
        raise UsageError(
            f"a graph is read from a path, a list of paths, a table with __arrow_c_stream__, or a "
            f"graph of NetworkX, igraph or SciPy, not from {type(source_data).__name__}"
        )
    if not paths:
        raise UsageError("the list of files is empty; name at least one")
    paths = expand_globs(paths)
    out, temporary = _new_place(path)
    return _make(lambda: import_paths(paths, out, options, resources), out, temporary, resources)


def _reopen(path: str, budget: int | None) -> Graph:
    """Open what was pickled."""
    return Graph.open(path, budget=budget)


def _many(vertices: object) -> memoryview | list[str]:
    """Return vertices as the native module takes them: 64-bit integers, or strings.

    Raises:
        UsageError: they are neither.
    """
    import pyarrow as pa

    try:
        array = (
            pa.chunked_array(vertices).combine_chunks()
            if hasattr(vertices, "__arrow_c_stream__")
            else pa.array(vertices)
        )
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(
            f"vertices are 64-bit integers, or strings, all of them: {reason}"
        ) from None
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    kind = array.type
    if pa.types.is_dictionary(kind):
        array, kind = array.dictionary_decode(), kind.value_type
    if len(array) == 0:
        return memoryview(b"").cast("q")
    if array.null_count:
        raise UsageError(f"one of the {len(array)} vertices is null; leave it out")
    if pa.types.is_integer(kind):
        signed = pa.types.is_signed_integer(kind)
        numbers = array.cast(pa.int64() if signed else pa.uint64())
        words = memoryview(numbers.buffers()[1]).cast("q" if signed else "Q")
        return words[numbers.offset : numbers.offset + len(numbers)]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        names: list[str] = array.to_pylist()
        return names
    raise UsageError(f"vertices are 64-bit integers, or strings, not {kind}")


#: What an algorithm takes: a graph, or the path of a graph directory or an input file.
GraphLike = Graph | str | os.PathLike[str]


def as_graph(graph: GraphLike, given: Resources) -> Graph:
    """Return a graph; one named by a path is opened, or imported first, as on the command line.

    Raises:
        UsageError: it is neither a graph nor a path.
        NotFoundError, InputError, CorruptError, BudgetError, StoreIoError: as `read`.
    """
    if isinstance(graph, Graph):
        return graph
    if isinstance(graph, (str, os.PathLike)):
        return Graph(open_graph(os.fspath(graph), ImportOptions(), given, _warn))
    raise UsageError(
        f"expected a brimful.Graph or a path, found {type(graph).__name__}; make a graph of it "
        "with brimful.read"
    )


def _from_object(
    edges: convert_in.ObjectEdges,
    path: str | os.PathLike[str] | None,
    options: ImportOptions,
    resources: Resources,
) -> Graph:
    """Import what a converter made of an object, which says direction and vertices."""
    vertices = max(options.vertices or 0, edges.vertices or 0) or None
    options = replace(options, undirected=edges.undirected, vertices=vertices)
    out, temporary = _new_place(path)

    def work() -> dict[str, Any]:
        with edges.table as table:
            return import_table(table, out, options, resources, isolated=edges.isolated)

    return _make(work, out, temporary, resources)


def _warn(sentence: str) -> None:
    """Tell the user of the library, through logging, that an input is imported."""
    import logging

    logging.getLogger("brimful").warning(sentence)


def _new_place(path: str | os.PathLike[str] | None) -> tuple[str, str | None]:
    """Return where to make a graph, and the temporary directory around it if there is one."""
    if path is not None:
        require_graph_suffix(os.fspath(path))
        return os.fspath(path), None
    temporary = make_folder("brimful-")
    return os.path.join(temporary, "graph" + GRAPH_SUFFIX), temporary


def _make(
    work: Callable[[], dict[str, Any]], out: str, temporary: str | None, resources: Resources
) -> Graph:
    """Run an import and open what it made; a failure leaves no temporary directory."""
    from brimful import _native

    done = False
    try:
        for sentence in left_out_sentences(work()):
            _warn(sentence)
        graph = Graph(_native.Graph.open(out), budget=resources.budget, temporary=temporary)
        done = True
    finally:
        if not done and temporary is not None:
            remove_folder(temporary)
    return graph
