"""The `Graph` of the Python API: a typed face on a graph directory."""

from __future__ import annotations

import html
import os
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from brimful.building import build, column_sentences
from brimful.derivations import Derivations
from brimful.errors import NotFoundError, UsageError
from brimful.io.formats import (
    GRAPH_SUFFIX,
    export_format,
    require_graph_suffix,
)
from brimful.io.ingest import (
    Resources,
    expand_globs,
    import_arrow,
    import_paths,
    import_table,
    is_pattern,
    left_out_sentences,
)
from brimful.io.output import native_batches, write_graph
from brimful.io.remote import is_remote
from brimful.io.source import open_graph
from brimful.kept_columns import KeptColumns
from brimful.looks import Looks, small_figure
from brimful.options.described import EXPORT, LOOK_UP, described
from brimful.options.exports import ExportOptions
from brimful.options.imports import (
    IMPORT,
    ImportOptions,
    ObjectOptions,
    ReadOptions,
    TableOptions,
    import_options,
)
from brimful.options.table import WorkOptions, checked, picked
from brimful.per_vertex import vertex_id
from brimful.reporting import shows_progress
from brimful.sizes import Budget, format_bytes, parse_budget
from brimful.tables import convert_in
from brimful.tables.convert_out import Conversions
from brimful.wording import counted

if TYPE_CHECKING:
    from types import TracebackType

    import pyarrow

    from brimful import _native
    from brimful.reporting import Progress

#: Which edges of a vertex.
Direction = Literal["out", "in"]


class Graph(KeptColumns, Derivations, Conversions, Looks):
    """A graph in a `.brimful` directory; its edges stay on disk.

    Made by `brimful.read`, `Graph.open` or one of `Graph.from_*`; `to_*` copy it into memory.
    Iteration yields the vertices in ascending order. As a context manager it is closed on leaving,
    which removes the directory if it was temporary. A graph that is kept can be pickled: its path
    is pickled.

    Look-ups (`neighbors`, `degree`, `has_edge`, `neighbors_many`, ...) read only the blocks of
    edges that they need and cache what they read last: at most 64 MiB for the graph, or the largest
    unit of edges or weights (about 4 MiB of edges) if that is more, and 14 MiB of strings. Threads
    may share a graph.

    >>> import brimful as bf, pyarrow as pa
    >>> table = pa.table({"source": [0, 0, 2], "target": [1, 2, 0]})
    >>> with bf.Graph.from_arrow(table, budget="200M") as graph:
    ...     graph.vertices, graph.edges, graph.arcs, list(graph), 3 in graph
    ...     graph.directed, graph.weighted, graph.budget >> 20, graph.path.endswith(".brimful")
    ...     graph.is_temporary
    (3, 3, 3, [0, 1, 2], False)
    (True, False, 200, True)
    True
    """

    def __init__(
        self,
        native: _native.Graph,
        *,
        budget: int | None = None,
        temporary: _native.TemporaryFolder | None = None,
    ) -> None:
        """Wrap a native graph; use `open`, `from_arrow` or `brimful.read`.

        Args:
            native: The native graph.
            budget: Default budget of algorithms on it, in bytes; None: auto.
            temporary: Directory that belongs to this object and is removed with it; None: nothing.
        """
        self._native: _native.Graph | None = native
        self._opened: _native.Lookup | None = None
        self._has_reverse = False
        self._path = native.path
        # The working directory may be another one when the graph is pickled.
        self._absolute_path = os.path.abspath(native.path)
        self._budget = budget
        self._remove = weakref.finalize(self, temporary.close) if temporary is not None else None

    @classmethod
    @described(IMPORT, "io")
    def open(cls, path: str | os.PathLike[str], *, budget: Budget = None) -> Graph:
        """Open the graph directory at `path`.

        Only the manifest and headers are read; `verify` checks every byte.

        Args:
            path: Graph directory.

        Returns:
            The graph.

        Raises:
            NotFoundError: There is no graph at `path`.
            InputError: The graph was written by a newer version.
            CorruptError: The manifest or a header is damaged.

        >>> import brimful as bf, os, pyarrow as pa, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "pair.brimful")
        >>> bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]}), path=path).close()
        >>> with bf.Graph.open(path) as graph:
        ...     graph.edges
        1
        """
        from brimful import _native

        return cls(_native.Graph.open(os.fspath(path)), budget=parse_budget(budget))

    @classmethod
    @shows_progress
    @described(IMPORT, "usage", "budget", "io")
    def from_arrow(
        cls,
        table: object,
        **options: Unpack[TableOptions],
    ) -> Graph:
        """Import a table with one edge per row: any object with `__arrow_c_stream__`.

        `info()["columns"]` names the columns taken. Memory: within `budget`, brimful's own; the
        table is beside it.

        Args:
            table: `pyarrow.Table`, `polars.DataFrame`, `pandas.DataFrame` (2.2 or newer), DuckDB
                relation or the like.

        Returns:
            The graph.

        Raises:
            InputError: A column is missing, contains nulls or is no column of ids, or there are no
                edges.
            UsageError: `table` has no `__arrow_c_stream__`, its columns are in doubt, or `path`
                exists.

        >>> import brimful as bf, pyarrow as pa
        >>> table = pa.table({"to": [2, 3], "from": [1, 2], "weight": [1.0, 2.5]})
        >>> with bf.Graph.from_arrow(table) as graph:
        ...     graph.neighbors(2, weights=True), graph.info()["columns"]["source"]
        (([3], [2.5]), 'from')
        """
        chosen = checked(TableOptions, options, "from_arrow")
        return _make(lambda *given: import_arrow(table, *given), chosen, table)

    #: A `pandas.DataFrame` (2.2 or newer) and a `polars.DataFrame` are tables like others.
    from_pandas = from_arrow
    from_polars = from_arrow

    @classmethod
    @shows_progress
    @described(IMPORT, "usage", "budget", "io")
    def from_networkx(
        cls,
        graph: object,
        *,
        weight: str | None = "weight",
        **options: Unpack[ObjectOptions],
    ) -> Graph:
        """Import a NetworkX graph of any of its four kinds.

        Nodes become vertices, also those without edges; direction, self-loops and multi-edges stay,
        other attributes are left out. Memory: within `budget`, brimful's own; edges are handed over
        in batches.

        Args:
            graph: Graph whose nodes are integers of 64 bits, or all strings.
            weight: Edge attribute of weights; an edge without it counts 1, as in NetworkX. If no
                edge has it, or with None, there are no weights.

        Returns:
            The graph.

        Raises:
            InputError: A node is neither integer nor string, a weight is no finite number, or there
                are no nodes.
            UsageError: `graph` is no NetworkX graph, or `path` exists.

        >>> import brimful as bf, networkx as nx
        >>> with bf.Graph.from_networkx(nx.path_graph(3)) as graph:
        ...     graph.neighbors(1), graph.directed
        ([0, 2], False)
        """
        chosen = checked(ObjectOptions, options, "from_networkx")
        return from_object(convert_in.from_networkx(graph, weight), chosen)

    @classmethod
    @shows_progress
    @described(IMPORT, "usage", "budget", "io")
    def from_scipy(
        cls,
        matrix: object,
        *,
        undirected: bool = False,
        weighted: bool | None = None,
        **options: Unpack[ObjectOptions],
    ) -> Graph:
        """Import the stored entries of a square sparse matrix: entry (i, j) is the edge i -> j.

        Vertices are 0 to n-1 for a matrix of n rows. Stored zeros are edges; repeated entries of a
        `coo_array` are multi-edges. Memory: within `budget`, brimful's own, beside a copy of the
        matrix in coordinate form (16 to 24 bytes an entry).

        Args:
            matrix: Sparse matrix or array of `scipy.sparse`.
            undirected: The matrix is symmetric; an entry and its mirror are one edge.
            weighted: Whether values are weights; None: unless they are of type bool.

        Returns:
            The graph.

        Raises:
            InputError: The matrix is not square, contains no real numbers, is not symmetric
                although `undirected`, or has no rows.
            UsageError: `matrix` is not sparse, or `path` exists.

        >>> import brimful as bf, scipy.sparse
        >>> with bf.Graph.from_scipy(scipy.sparse.csr_array([[0, 2], [0, 0]])) as graph:
        ...     graph.neighbors(0, weights=True)
        ([1], [2.0])
        """
        chosen = checked(ObjectOptions, options, "from_scipy")
        return from_object(convert_in.from_scipy(matrix, undirected, weighted), chosen)

    @classmethod
    @shows_progress
    @described(IMPORT, "usage", "budget", "io")
    def from_igraph(
        cls,
        graph: object,
        *,
        weight: str | None = "weight",
        vertex: str | None = "vertex",
        **options: Unpack[ObjectOptions],
    ) -> Graph:
        """Import an `igraph.Graph`, also its vertices without edges.

        Direction, self-loops and multi-edges stay. Memory: within `budget`, brimful's own, beside a
        list of the edges (about 120 bytes each).

        Args:
            graph: Graph of igraph.
            weight: Edge attribute of weights, where None counts 1. If there is none, or with None,
                there are no weights.
            vertex: Vertex attribute of ids, integers or strings, as `to_igraph` makes it. If there
                is none, or with None, ids are igraph's own, 0 to n-1.

        Returns:
            The graph.

        Raises:
            InputError: An id is neither integer nor string or occurs twice, or a weight is no
                finite number.
            UsageError: `graph` is no igraph graph, or `path` exists.

        >>> import brimful as bf, igraph
        >>> with bf.Graph.from_igraph(igraph.Graph.Ring(4)) as graph:
        ...     graph.neighbors(0)
        [1, 3]
        """
        chosen = checked(ObjectOptions, options, "from_igraph")
        return from_object(convert_in.from_igraph(graph, weight, vertex), chosen)

    @property
    def path(self) -> str:
        """Path of the graph directory."""
        return self._path

    @property
    def budget(self) -> int | None:
        """Default budget of algorithms on this graph, in bytes; None: auto."""
        return self._budget

    @property
    def vertices(self) -> int:
        """Number of vertices."""
        return self.native.vertices

    @property
    def edges(self) -> int:
        """Number of input edges; an undirected edge counts once."""
        return self.native.edges

    @property
    def arcs(self) -> int:
        """Number of stored arcs; an undirected edge has two, a self-loop one."""
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
    def is_temporary(self) -> bool:
        """Whether the directory is removed with this object."""
        return self._remove is not None

    @property
    def native(self) -> _native.Graph:
        """The native graph.

        Raises:
            UsageError: The graph is closed.
        """
        if self._native is None:
            raise UsageError(f"the graph {self._path} is closed; open it again")
        return self._native

    def _made(self, work: Callable[[str], dict[str, Any]], path: Any, budget: int | None) -> Graph:
        return _made(work, path, budget)

    def _open_again(self) -> None:
        from brimful import _native

        self._native = _native.Graph.open(self.native.path)

    @overload
    def neighbors(self, vertex: int | str, *, weights: Literal[False] = False) -> list[Any]: ...

    @overload
    def neighbors(
        self, vertex: int | str, *, weights: Literal[True]
    ) -> tuple[list[Any], list[float]]: ...

    @described(LOOK_UP, "vertex", "closed graph", "corrupt", "io")
    def neighbors(
        self, vertex: int | str, *, weights: bool = False
    ) -> list[Any] | tuple[list[Any], list[float]]:
        """Return the targets of the out-edges of a vertex, ascending, one entry per edge.

        Parallel edges have entries of their own, a self-loop has one. In an undirected graph these
        are all neighbours.

        Returns:
            The targets; with `weights` two lists of one length, targets and weights, where parallel
            edges
            are in the order of their weights.

        Raises:
            UsageError: `weights`, and the edges have none.

        >>> import brimful as bf, pyarrow as pa
        >>> table = pa.table({"source": [5, 5], "target": [9, 7], "weight": [1.5, 2.0]})
        >>> with bf.Graph.from_arrow(table) as graph:
        ...     graph.neighbors(5), graph.neighbors(5, weights=True)
        ([7, 9], ([7, 9], [2.0, 1.5]))
        """
        return self._lookups.neighbors(vertex_id(vertex), "out", weights)

    @overload
    def in_neighbors(self, vertex: int | str, *, weights: Literal[False] = False) -> list[Any]: ...

    @overload
    def in_neighbors(
        self, vertex: int | str, *, weights: Literal[True]
    ) -> tuple[list[Any], list[float]]: ...

    @described(LOOK_UP, "vertex", "closed graph", "corrupt", "io")
    def in_neighbors(
        self, vertex: int | str, *, weights: bool = False
    ) -> list[Any] | tuple[list[Any], list[float]]:
        """Return the sources of the edges that reach a vertex, ascending, one entry per edge.

        A directed graph needs its reverse index. The first call builds it if it is missing, within
        the graph's budget, and says so on the logger `brimful`; the index stays.

        Returns:
            The sources; with `weights` two lists of one length, sources and weights.

        Raises:
            UsageError: `weights`, and the edges have none.
            InputError: The index is missing, and the graph cannot be written to.
            BudgetError: The index does not fit the budget; the message names one that works.

        >>> import brimful as bf, pyarrow as pa
        >>> table = pa.table({"source": [5, 6], "target": [9, 9]})
        >>> with bf.Graph.from_arrow(table, index="in,reverse") as graph:
        ...     graph.in_neighbors(9), graph.in_neighbors(5)
        ([5, 6], [])
        """
        return self._indexed("in").neighbors(vertex_id(vertex), "in", weights)

    @described(LOOK_UP, "vertex", "closed graph", "corrupt", "io")
    def degree(self, vertex: int | str) -> int:
        """Return the number of out-edges of a vertex, as `out_degree`.

        NetworkX adds in-edges for a directed graph, and counts a self-loop twice.

        Returns:
            The degree.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [5, 5], "target": [9, 7]})) as graph:
        ...     graph.degree(5), graph.degree(9)
        (2, 0)
        """
        return self.out_degree(vertex)

    @described(LOOK_UP, "vertex", "closed graph", "corrupt", "io")
    def out_degree(self, vertex: int | str) -> int:
        """Return the number of out-edges of a vertex; a multi-edge counts each, a self-loop once.

        Returns:
            The degree.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [5, 5], "target": [9, 9]})) as graph:
        ...     graph.out_degree(5)
        2
        """
        return self._lookups.degree(vertex_id(vertex), "out")

    @described(LOOK_UP, "vertex", "closed graph", "corrupt", "io")
    def in_degree(self, vertex: int | str) -> int:
        """Return the number of edges that reach a vertex; multi-edges count each, self-loops once.

        The reverse index counts them, see `in_neighbors`.

        Returns:
            The degree.

        Raises:
            InputError: The index is missing, and the graph cannot be written to.
            BudgetError: The index does not fit the budget; the message names one that works.

        >>> import brimful as bf, pyarrow as pa
        >>> table = pa.table({"source": [5, 6], "target": [9, 9]})
        >>> with bf.Graph.from_arrow(table, index="in,reverse") as graph:
        ...     graph.in_degree(9)
        2
        """
        return self._indexed("in").degree(vertex_id(vertex), "in")

    @described(LOOK_UP, "closed graph", "corrupt", "io")
    def has_edge(self, source: object, target: object) -> bool:
        """Return whether an edge leads from `source` to `target`.

        Args:
            source: Id of a vertex.
            target: Id of a vertex.

        Returns:
            True if there is such an edge; False also if one of the two is no vertex.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [5], "target": [9]})) as graph:
        ...     graph.has_edge(5, 9), graph.has_edge(9, 5), graph.has_edge(5, "nobody")
        (True, False, False)
        """
        try:
            ends = vertex_id(source), vertex_id(target)
        except NotFoundError:
            return False
        return self._lookups.has_edge(*ends)

    @described(LOOK_UP, "closed graph", "corrupt", "io")
    def neighbors_many(
        self, vertices: object, *, direction: Direction = "out", weights: bool = False
    ) -> pyarrow.Table:
        """Return the edges of many vertices: far faster than one `neighbors` for each.

        With `direction` "in" a directed graph needs its reverse index, see `in_neighbors`. Memory:
        the table, 16 bytes an edge or 24, and 64 bytes for each of 262,144 edges, or of those of
        16,384 vertices if `direction` is "in".

        Returns:
            A `pyarrow.Table` with the columns `source`, `target` (of the type of the ids) and, with
            `weights`, `weight` (float64): for each of `vertices`, in the order given, its edges by
            ascending neighbour.

        Raises:
            NotFoundError: One of `vertices` is no vertex.
            UsageError: `vertices` are neither integers nor strings, or `weights`, and the edges
                have none.
            InputError: The index is missing, and the graph cannot be written to.
            BudgetError: The index does not fit the budget; the message names one that works.

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

    @described(LOOK_UP, "closed graph", "corrupt", "io")
    def degrees_many(self, vertices: object, *, direction: Direction = "out") -> pyarrow.Int64Array:
        """Return the degrees of many vertices, in the order given.

        `brimful.degrees` counts those of all vertices.

        Returns:
            A `pyarrow.Int64Array`: int64[len(vertices)].

        Raises:
            NotFoundError: One of `vertices` is no vertex.
            UsageError: `vertices` are neither integers nor strings.
            InputError: The index is missing, and the graph cannot be written to.
            BudgetError: The index does not fit the budget; the message names one that works.

        >>> import brimful as bf, pyarrow as pa
        >>> table = pa.table({"source": [0, 0, 2], "target": [2, 1, 0]})
        >>> with bf.Graph.from_arrow(table) as graph:
        ...     graph.degrees_many([2, 0, 1]).to_pylist()
        [1, 2, 0]
        """
        import pyarrow as pa

        degrees = self._indexed(direction).degrees(_many(vertices), direction)
        return pa.Array.from_buffers(pa.int64(), len(degrees) // 8, [None, pa.py_buffer(degrees)])

    @property
    def _lookups(self) -> _native.Lookup:
        """The native look-ups.

        Raises:
            UsageError: The graph is closed.
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

    @described({}, "closed graph")
    def info(self) -> dict[str, Any]:
        """Return what `brimful info` shows.

        Returns:
            Format version, counts, order, columns, indexes and sizes, by name. `columns` are those
            of the input; `vertex_columns` and `edge_columns`, kept with the graph, are lists of
            `name`, `type` and `bytes`.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [0], "target": [2]})) as graph:
        ...     graph.info()["vertices"], graph.info()["self_loops"]
        (2, 0)
        """
        from brimful.tables.edge_columns import kept_columns

        return self.native.info() | kept_columns(self.native)

    @shows_progress
    @described(IMPORT, "closed graph", "io")
    def verify(self, *, progress: Progress | None = None) -> dict[str, Any]:
        """Check every byte and structure; one pass over all files.

        Returns:
            The figures `files`, `bytes`, `arcs` and `seconds`.

        Raises:
            CorruptError: A file is damaged; the message names file, offset and remedy.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [0], "target": [2]})) as graph:
        ...     graph.verify()["arcs"]
        1
        """
        return self.native.verify(progress=progress)

    @shows_progress
    @described(EXPORT, "closed graph", "budget", "corrupt", "io")
    def export(
        self,
        path: str | os.PathLike[str],
        *,
        budget: Budget = None,
        progress: Progress | None = None,
        **options: Unpack[ExportOptions],
    ) -> int:
        """Write the graph to a file, as `brimful export` does.

        A file so written reads back as the same graph; on failure nothing is left. An undirected
        edge is written once. Memory: within `budget`, brimful's own.

        Returns:
            The number of edges written.

        Raises:
            UsageError: The format cannot hold the graph and `lossy` is false (the message names one
                that can), or the file exists and `overwrite` is false.

        >>> import brimful as bf, os, pyarrow as pa, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "edges.parquet")
        >>> with bf.Graph.from_arrow(pa.table({"source": [0], "target": [2]})) as graph:
        ...     graph.export(path)
        1
        """
        from brimful.tables.edge_columns import declared_rows

        name = os.fspath(path)
        chosen = checked(ExportOptions, options, "export", ("budget", "progress"))
        exported = write_graph(
            lambda: self.native,
            name,
            export_format(name, chosen["format"]),
            Resources(None, parse_budget(budget), progress=progress),
            chosen,
            declared_rows,
        )
        for sentence in exported.warnings(name):
            _warn(sentence)
        return exported.edges

    def close(self) -> None:
        """Let go of the files, and remove the directory if it was temporary; may be repeated.

        >>> import brimful as bf, pyarrow as pa
        >>> graph = bf.Graph.from_arrow(pa.table({"source": [0], "target": [2]}))
        >>> graph.close()
        >>> graph
        <brimful.Graph ... (closed)>
        """
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
        """Pickle by path: the copy opens the directory again, which must still exist.

        Raises:
            UsageError: The directory is temporary, or the graph is closed.
        """
        if self.is_temporary:
            raise UsageError(
                f"{self!r} cannot be pickled or copied, as its directory is removed with it; make "
                "it with path= to keep the directory"
            )
        if self._native is None:
            raise UsageError(f"the graph {self._path} is closed; open it again")
        return _reopen, (self._absolute_path, self._budget)

    def __len__(self) -> int:
        """Return the number of vertices."""
        return self.vertices

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the vertices in ascending order, streamed."""
        import pyarrow as pa

        for batch in native_batches(pa.RecordBatchReader.from_stream(self.native.vertex_stream())):
            yield from batch.column(0).to_pylist()

    def __bool__(self) -> bool:
        """Return True: a graph without vertices is a graph."""
        return True

    def __contains__(self, vertex: object) -> bool:
        """Return whether there is a vertex with this id."""
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
            f"<brimful.Graph {self._path}: {counted(self.vertices, 'vertex')}, "
            f"{counted(self.edges, 'edge')}, {direction}{weighted}>"
        )

    def _repr_html_(self) -> str:
        """Return the counts as an HTML table, for notebooks.

        A small figure of the degrees is below, if there are few edges and matplotlib.
        """
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
        caption = f"<caption>{html.escape(self._path)}</caption>"
        return f"<table>{caption}<tbody>{cells}</tbody></table>{small_figure(self)}"


@shows_progress
@described(IMPORT, "budget", "corrupt", "io")
def read(
    source_data: object,
    **options: Unpack[ReadOptions],
) -> Graph:
    r"""Open a graph, or make one from files, a table or an object of another package.

    Args:
        source_data: A graph directory (opened); an input file (imported beside itself as `<file
            name>.brimful` and kept; imported again when the file changed); a list of files of one
            graph; a pattern such as `part-*.txt`; a URL such as `s3://bucket/edges.txt.gz`; one
            of documents, such as `mongodb://host/database/collection`, whose fields `source` and
            `target` name; an object with `__arrow_c_stream__`; or a graph of NetworkX, igraph or
            SciPy, with the defaults of `from_networkx` and its like. All but the first two, and
            files with columns to keep, go to a temporary directory unless `path` is given.

    Returns:
        The graph. `Graph.info()` has the columns taken and counts the edges left out.

    Raises:
        NotFoundError: There is no graph or file at the path.
        InputError: The content is not of the format.
        UsageError: The columns are in doubt, an argument is unknown or out of range, or `path`
            exists.

    >>> import brimful as bf, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "edges.txt")
    >>> with open(path, "w") as file:
    ...     _ = file.write("1 2\n2 3\n3 3\n")
    >>> with bf.read(path, self_loops="drop", budget="200M") as graph:
    ...     graph.edges, graph.neighbors(1)
    (2, [2])
    """
    chosen = checked(ReadOptions, options, "read")
    if (
        isinstance(source_data, (str, os.PathLike))
        and chosen["path"] is None
        and chosen["vertex_columns"] is None
        and chosen["edge_columns"] is None
        and not is_pattern(source_data)
        and not is_remote(source_data)
    ):
        resources = Resources(**picked(WorkOptions, chosen))
        wanted = import_options(**picked(ImportOptions, chosen))
        native = open_graph(os.fspath(source_data), wanted, resources, _warn)
        return Graph(native, budget=resources.budget)
    if hasattr(source_data, "__arrow_c_stream__"):
        return _make(lambda *given: import_arrow(source_data, *given), chosen, source_data)
    weight = chosen["weight"]
    edges = convert_in.of(
        source_data, None if weight is None else str(weight), chosen["undirected"]
    )
    if edges is not None:
        return from_object(edges, chosen)
    if isinstance(source_data, (str, os.PathLike)):
        paths = [os.fspath(source_data)]
    elif isinstance(source_data, (list, tuple)) and all(
        isinstance(item, (str, os.PathLike)) for item in source_data
    ):
        paths = [os.fspath(item) for item in source_data]
    else:
        raise UsageError(
            "brimful.read takes a path, a list of paths, a table with __arrow_c_stream__, or a "
            f"graph of NetworkX, igraph or SciPy, not {type(source_data).__name__}"
        )
    if not paths:
        raise UsageError("the list of files is empty; name at least one")
    paths = expand_globs(paths)
    return _make(lambda *given: import_paths(paths, *given), chosen, paths)


def _reopen(path: str, budget: int | None) -> Graph:
    """Open a graph that was pickled."""
    return Graph.open(path, budget=budget)


def _many(vertices: object) -> memoryview | list[str]:
    """Return vertices as the native module takes them: 64-bit integers, or strings.

    Raises:
        UsageError: They are neither.
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
        raise UsageError(f"vertices must be all 64-bit integers or all strings: {reason}") from None
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
    raise UsageError(f"vertices must be 64-bit integers or strings, not {kind}")


#: The graph of an algorithm: a `Graph`, or the path of a graph directory or an input file.
GraphLike = Graph | str | os.PathLike[str]


def as_graph(graph: GraphLike, given: Resources) -> Graph:
    """Return a graph; one named by a path is opened, or imported first, as on the command line.

    Raises:
        UsageError: `graph` is neither a graph nor a path.
        NotFoundError, InputError, CorruptError, BudgetError, StoreIoError: As `read`.
    """
    if isinstance(graph, Graph):
        return graph
    if isinstance(graph, (str, os.PathLike)):
        return Graph(open_graph(os.fspath(graph), import_options(), given, _warn))
    raise UsageError(
        f"expected a brimful.Graph or a path, found {type(graph).__name__}; make a graph of it "
        "with brimful.read"
    )


def from_object(edges: convert_in.ObjectEdges, chosen: Mapping[str, Any]) -> Graph:
    """Import the edges of a converted object, which knows its direction and vertices.

    `chosen` are options that were checked: `ObjectOptions`, or `ReadOptions`.

    Raises:
        InputError, BudgetError, StoreIoError: As `Graph.from_networkx`.
    """
    vertices = max(chosen.get("vertices") or 0, edges.vertices or 0) or None

    def work(*given: Any) -> dict[str, Any]:
        with edges.table as table:
            return import_table(table, *given, isolated=edges.isolated)

    return _make(work, {**chosen, "undirected": edges.undirected, "vertices": vertices})


def _warn(sentence: str) -> None:
    """Tell the user of the library, through logging, that an input is imported."""
    import logging

    logging.getLogger("brimful").warning(sentence)


def _new_place(
    path: str | os.PathLike[str] | None,
) -> tuple[str, _native.TemporaryFolder | None]:
    """Return where to make a graph, and the temporary directory around it if there is one."""
    from brimful import _native

    if path is not None:
        require_graph_suffix(os.fspath(path))
        return os.fspath(path), None
    temporary = _native.TemporaryFolder(tempfile.gettempdir(), ".brimful-graph-")
    return os.path.join(temporary.path, "graph" + GRAPH_SUFFIX), temporary


def _make(
    work: Callable[[str, ImportOptions, Resources], dict[str, Any]],
    chosen: Mapping[str, Any],
    inputs: object = None,
) -> Graph:
    """Run an import of `inputs` and open its graph."""
    wanted = import_options(**picked(ImportOptions, chosen))
    resources = Resources(**picked(WorkOptions, chosen))

    def made(out: str) -> dict[str, Any]:
        return build(out, lambda place: work(place, wanted, resources), chosen, resources, inputs)

    return _made(made, chosen["path"], resources.budget)


def _made(
    work: Callable[[str], dict[str, Any]],
    path: str | os.PathLike[str] | None,
    budget: int | None,
) -> Graph:
    """Return the graph that `work` makes at a path; None: in a temporary directory.

    A failure leaves no temporary directory.
    """
    from brimful import _native

    out, temporary = _new_place(path)
    done = False
    try:
        figures = work(out)
        for sentence in [*left_out_sentences(figures), *column_sentences(figures)]:
            _warn(sentence)
        graph = Graph(_native.Graph.open(out), budget=budget, temporary=temporary)
        done = True
    finally:
        if not done and temporary is not None:
            temporary.close()
    return graph
