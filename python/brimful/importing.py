"""Imports of tables and of graphs of other packages into new graphs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from typing import Any, Unpack, cast

import brimful
from brimful.building import build, column_sentences
from brimful.io.formats import GRAPH_SUFFIX, require_graph_suffix
from brimful.io.ingest import import_arrow, import_table
from brimful.io.summary import left_out_sentences
from brimful.options.checks import flag
from brimful.options.described import described
from brimful.options.imports import (
    IMPORT,
    ImportOptions,
    ObjectOptions,
    TableOptions,
    import_options,
)
from brimful.options.table import checked, picked
from brimful.packages import _native
from brimful.reporting import shows_progress, warn
from brimful.resources import Resources
from brimful.tables import convert_in


class Imports:
    """Constructors of a `Graph` from tables and from graphs of other packages."""

    @classmethod
    @shows_progress
    @described(IMPORT, "usage", "budget", "io")
    def from_arrow(
        cls,
        table: object,
        **options: Unpack[TableOptions],
    ) -> brimful.Graph:
        """Import a table with one edge per row: any object with `__arrow_c_stream__`.

        `info()["columns"]` names the columns taken. Memory: within `budget`, brimful's own; the
        table is next to it.

        Args:
            table: `pyarrow.Table`, `polars.DataFrame`, `pandas.DataFrame` (2.2 or newer), DuckDB
                relation or the like.

        Returns:
            The graph.

        Raises:
            InputError: A column is missing, contains nulls or is not a column of ids, or there are
                no edges.
            UsageError: `table` has no `__arrow_c_stream__`, its columns are in doubt, or `path`
                exists.

        >>> import brimful as bf, pyarrow as pa
        >>> table = pa.table({"to": [2, 3], "from": [1, 2], "weight": [1.0, 2.5]})
        >>> with bf.Graph.from_arrow(table) as graph:
        ...     graph.neighbors(2, weights=True), graph.info()["columns"]["source"]
        (([3], [2.5]), 'from')
        """
        chosen = checked(TableOptions, options, "from_arrow")
        return imported(
            cast("type[brimful.Graph]", cls),
            lambda *given: import_arrow(table, *given),
            chosen,
            table,
        )

    #: A `pandas.DataFrame` (2.2 or newer) and a `polars.DataFrame` have an Arrow stream.
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
    ) -> brimful.Graph:
        """Import a NetworkX graph of any of its four kinds.

        Nodes become vertices, including those without edges; direction, self-loops and parallel
        edges stay, other attributes are left out. Memory: within `budget`, brimful's own; edges are
        handed over in batches.

        Args:
            graph: Graph whose nodes are integers of 64 bits, strings, finite floats, or tuples and
                frozensets of these and None.
            weight: Edge attribute of weights; an edge without it counts 1, as in NetworkX. If no
                edge has it, or with None, there are no weights.

        Returns:
            The graph.

        Raises:
            InputError: A node cannot be an id, a weight is not a finite number, or
                there are no nodes.
            UsageError: `graph` is not a NetworkX graph, or `path` exists.

        >>> import brimful as bf, networkx as nx
        >>> with bf.Graph.from_networkx(nx.path_graph(3)) as graph:
        ...     graph.neighbors(1), graph.directed
        ([0, 2], False)
        """
        chosen = checked(ObjectOptions, options, "from_networkx")
        return from_object(
            cast("type[brimful.Graph]", cls), convert_in.from_networkx(graph, weight), chosen
        )

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
    ) -> brimful.Graph:
        """Import the stored entries of a square sparse matrix: entry (i, j) is the edge i -> j.

        Vertices are 0 to n-1 for a matrix of n rows. Stored zeros are edges; repeated entries of a
        `coo_array` are parallel edges. Memory: within `budget`, brimful's own, besides a copy of
        the matrix in coordinate form (16 to 24 bytes an entry).

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
        return from_object(
            cast("type[brimful.Graph]", cls),
            convert_in.from_scipy(
                matrix, undirected, None if weighted is None else flag(weighted, "weighted")
            ),
            chosen,
        )

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
    ) -> brimful.Graph:
        """Import an `igraph.Graph`, including its vertices without edges.

        Direction, self-loops and parallel edges stay. Memory: within `budget`, brimful's own,
        besides a list of the edges (about 120 bytes each).

        Args:
            graph: Graph of igraph.
            weight: Edge attribute of weights, where None counts 1. If there is none, or with None,
                there are no weights.
            vertex: Vertex attribute of ids, integers or strings, as `to_igraph` makes it. If there
                is none, or with None, ids are igraph's own, 0 to n-1.

        Returns:
            The graph.

        Raises:
            InputError: A value cannot be an id or occurs twice, or a weight is no
                finite number.
            UsageError: `graph` is not an igraph graph, or `path` exists.

        >>> import brimful as bf, igraph
        >>> with bf.Graph.from_igraph(igraph.Graph.Ring(4)) as graph:
        ...     graph.neighbors(0)
        [1, 3]
        """
        chosen = checked(ObjectOptions, options, "from_igraph")
        return from_object(
            cast("type[brimful.Graph]", cls), convert_in.from_igraph(graph, weight, vertex), chosen
        )


def from_object(
    kind: type[brimful.Graph], edges: convert_in.ObjectEdges, chosen: Mapping[str, Any]
) -> brimful.Graph:
    """Import the edges of a converted object, which knows its direction and vertices.

    `chosen` are options that were checked: `ObjectOptions`, or `ReadOptions`.

    Raises:
        InputError, BudgetError, StoreIoError: As `Graph.from_networkx`.
    """
    vertices = max(chosen.get("vertices") or 0, edges.vertices or 0) or None

    def work(*arguments: Any) -> dict[str, Any]:
        with edges.table as table:
            return import_table(table, *arguments, isolated=edges.isolated)

    return imported(kind, work, {**chosen, "undirected": edges.undirected, "vertices": vertices})


def imported(
    kind: type[brimful.Graph],
    work: Callable[[str, ImportOptions, Resources], dict[str, Any]],
    chosen: Mapping[str, Any],
    inputs: object = None,
) -> brimful.Graph:
    """Run an import of `inputs` and open its graph, an instance of `kind`."""
    wanted = import_options(**picked(ImportOptions, chosen))
    resources = Resources.of(chosen)

    def make(out: str) -> dict[str, Any]:
        return build(out, lambda place: work(place, wanted, resources), chosen, resources, inputs)

    return made(kind, make, chosen["path"], resources.budget)


def made(
    kind: type[brimful.Graph],
    work: Callable[[str], dict[str, Any]],
    path: str | os.PathLike[str] | None,
    budget: int | None,
) -> brimful.Graph:
    """Return the graph that `work` makes at a path, an instance of `kind`.

    Without a path the graph is in a temporary directory. A failure leaves no such directory.
    """
    from brimful import _native

    out, temporary = _new_place(path)
    done = False
    try:
        figures = work(out)
        warn(*left_out_sentences(figures), *column_sentences(figures))
        graph = kind(_native.Graph.open(out), budget=budget, temporary=temporary)
        done = True
    finally:
        if not done and temporary is not None:
            temporary.close()
    return graph


def _new_place(
    path: str | os.PathLike[str] | None,
) -> tuple[str, _native.TemporaryFolder | None]:
    """Return the path of a new graph, and the temporary directory around it if there is one."""
    from brimful import _native

    if path is not None:
        require_graph_suffix(os.fspath(path))
        return os.fspath(path), None
    temporary = _native.TemporaryFolder(tempfile.gettempdir(), ".brimful-graph-")
    return os.path.join(temporary.path, "graph" + GRAPH_SUFFIX), temporary
