"""The `Graph` of the Python API: a graph directory."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Unpack

from brimful.catalog import algorithms
from brimful.derivations import Derivations
from brimful.errors import NotFoundError, UsageError
from brimful.graph_queries import GraphQueries, small_figure
from brimful.ids import column_ids, vertex_id
from brimful.importing import Imports
from brimful.io.formats import export_format, output_files
from brimful.io.output import refuse_input, stream_batches, write_graph
from brimful.io.remote_graph import location_of, open_location
from brimful.io.source import input_files
from brimful.kept_columns import KeptColumns
from brimful.neighbors import Neighbors
from brimful.options.checks import given_path
from brimful.options.described import EXPORT, described
from brimful.options.exports import ExportOptions
from brimful.options.imports import IMPORT
from brimful.options.table import checked
from brimful.packages import _native, reporting
from brimful.reporting import shows_progress, warn
from brimful.resources import Resources
from brimful.sizes import Budget, format_bytes, parse_budget
from brimful.tables.convert_out import Conversions
from brimful.wording import counted, did_you_mean, html_text

if TYPE_CHECKING:
    from types import TracebackType


class Graph(Imports, Neighbors, KeptColumns, Derivations, Conversions, GraphQueries):
    """A graph in a `.brimful` directory; its edges stay on disk.

    Made by `brimful.read`, `Graph.open` or one of `Graph.from_*`; `to_*` copy it into memory.
    Iteration yields the vertices in ascending order. As a context manager it is closed on leaving,
    which removes the directory if it was temporary. A graph that is kept can be pickled: its path
    or URL is pickled.

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

        Raises:
            UsageError: `native` is a path.
        """
        if isinstance(native, str | os.PathLike):
            raise UsageError(
                f"a Graph is not made from a path: open a graph with Graph.open({str(native)!r}), "
                "or import edges with brimful.read"
            )
        self._native: _native.Graph | None = native
        self._path = native.path
        # The working directory may be another one when the graph is pickled.
        self._location = location_of(native.path)
        self._budget = budget
        self._remove = weakref.finalize(self, temporary.close) if temporary is not None else None

    @classmethod
    @described(IMPORT, "io")
    def open(cls, path: str | os.PathLike[str], *, budget: Budget = None) -> Graph:
        """Open the graph directory at `path`.

        Only the manifest and headers are read; `verify` checks every byte. A graph in an object
        store is copied to this machine first, and the copy is kept.

        Args:
            path: Graph directory, or the URL of one, such as `s3://bucket/web.brimful`.

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
        return cls(open_location(given_path(path)), budget=parse_budget(budget))

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

    def _open_again(self) -> None:
        from brimful import _native

        self._native = _native.Graph.open(self.native.path)

    @described({}, "closed graph")
    def info(self) -> dict[str, Any]:
        """Return the properties that `brimful info` shows.

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
    def verify(self, *, progress: reporting.Progress | None = None) -> dict[str, Any]:
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
        progress: reporting.Progress | None = None,
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

        name = given_path(path)
        chosen = checked(ExportOptions, options, "export", ("budget", "progress"))
        format_name = export_format(name, chosen["format"])
        refuse_input(output_files(name, format_name), *input_files(self.native))
        exported = write_graph(
            lambda: self.native,
            name,
            format_name,
            Resources(None, parse_budget(budget), progress=progress),
            chosen,
            declared_rows,
        )
        warn(*exported.warnings(name))
        return exported.edges

    def close(self) -> None:
        """Close the files, and remove the directory if it was temporary; may be repeated.

        >>> import brimful as bf, pyarrow as pa
        >>> graph = bf.Graph.from_arrow(pa.table({"source": [0], "target": [2]}))
        >>> graph.close()
        >>> graph
        <brimful.Graph ... (closed)>
        """
        self._native = self._lookup = None
        if self._remove is not None:
            self._remove()

    if not TYPE_CHECKING:  # A type checker would take any attribute for one of a graph.

        def __getattr__(self, name: str) -> Any:
            """Name the function that a missing attribute is taken for.

            Raises:
                AttributeError: Always.
            """
            hint = ""
            if not name.startswith("_"):
                is_function = name in algorithms() or name in ("run", "plan")
                remedy = f"; that is brimful.{name}(graph, ...)"
                hint = remedy if is_function else did_you_mean(name, dir(type(self)))
            raise AttributeError(f"'Graph' object has no attribute '{name}'{hint}")

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
        """Pickle by path or URL: the copy opens the graph again, which must still exist.

        Raises:
            UsageError: The directory is temporary, or the graph is closed.
        """
        if self.is_temporary:
            raise UsageError(
                f"{self!r} cannot be pickled or copied, because its directory is temporary; make "
                "the graph with path= to keep the directory"
            )
        if self._native is None:
            raise UsageError(f"the graph {self._path} is closed; open it again")
        return _reopen, (self._location, self._budget)

    def __len__(self) -> int:
        """Return the number of vertices."""
        return self.vertices

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the vertices in ascending order, streamed."""
        for batch in stream_batches(self.native.vertex_stream()):
            yield from column_ids(batch.column(0))

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
            return f"<p>{html_text(repr(self))}</p>"
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
        caption = f"<caption>{html_text(self._path)}</caption>"
        return f"<table>{caption}<tbody>{cells}</tbody></table>{small_figure(self)}"


def _reopen(path: str, budget: int | None) -> Graph:
    """Open a graph that was pickled."""
    return Graph.open(path, budget=budget)
