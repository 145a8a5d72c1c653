"""Graphs derived from a graph in the Python API: filtered, reversed, contracted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack, cast

import brimful
from brimful.errors import UsageError
from brimful.ids import VertexId
from brimful.importing import made
from brimful.neighbors import id_array
from brimful.options.checks import whole
from brimful.options.derivations import DERIVED, DerivedOptions, MergedOptions, conditions
from brimful.options.described import LOOK_UP, described
from brimful.options.imports import PolicyOptions, SelfLoops
from brimful.options.table import checked, picked
from brimful.reporting import shows_progress
from brimful.resources import Resources

#: Errors that every derivation may raise, by their names in `ERRORS`.
_ERRORS = ("usage", "closed graph", "budget", "corrupt", "io")


class Derivations:
    """Graphs made from a `Graph`, streamed; ids, weights, direction and columns stay.

    The new graph is in a temporary directory, or at `path`, where it appears complete or not at
    all. Vertices without an edge stay too.
    """

    def _derived(
        self, chosen: Mapping[str, Any], policies: Mapping[str, Any], **wanted: Any
    ) -> brimful.Graph:
        from brimful.tables.derived import Derivation, derive, derive_options

        graph = cast("brimful.Graph", self)
        resources = Resources.of(chosen).on(graph)
        options = derive_options(**policies, index=chosen["index"])
        native, derivation = graph.native, Derivation(**wanted)
        return made(
            type(graph),
            lambda place: derive(native, place, derivation, options, resources),
            chosen["path"],
            resources.budget,
        )

    @shows_progress
    @described(DERIVED, *_ERRORS)
    def filter(
        self,
        *,
        vertices: object | None = None,
        edges: object | None = None,
        table: object | None = None,
        **options: Unpack[DerivedOptions],
    ) -> brimful.Graph:
        """Make a graph of the vertices and the edges that meet conditions.

        A condition has the syntax of Python: `== != < <= > >=`, `in (1, 2)`, `is None`, `+ - * /`,
        `and`, `or`, `not`, and `column('a name')` for a name that is not an identifier. A string
        that is compared with a date is read as a date. A null meets only `is None`.

        Args:
            table: A result, or a table with the column `vertex` and others: any object with
                `__arrow_c_stream__`. Only its vertices are kept, and `vertices` is a condition on
                its columns instead of those of the graph. The ids that are kept are in memory.

        Returns:
            The graph.

        Raises:
            MissingPackageError: `vertices` or `table` is given and DuckDB is not installed.
            InputError: No vertex is left.

        >>> import brimful as bf, pyarrow as pa
        >>> years = pa.table({"vertex": [0, 1, 2], "year": [2019, 2020, 2021]})
        >>> edges = pa.table({"source": [0, 1, 2], "target": [1, 2, 1], "weight": [1, 2, 3]})
        >>> with bf.Graph.from_arrow(edges, vertex_columns=years) as graph:
        ...     with graph.filter(vertices="year >= 2020", edges="weight > 2") as recent:
        ...         list(recent), recent.neighbors(2), recent.vertex_columns.names
        ([1, 2], [1], ['year'])
        >>> with bf.Graph.from_arrow(edges) as graph:
        ...     ranks = bf.pagerank(graph)
        ...     with graph.filter(table=ranks, vertices="pagerank > 0.2") as central:
        ...         list(central)
        [1, 2]
        """
        from brimful.tables.derived_vertices import listed

        chosen = checked(DerivedOptions, options, "filter", ("vertices", "edges", "table"))
        wanted = conditions(vertices=vertices, edges=edges)
        if table is not None:
            wanted |= {"ids": listed(table, wanted["vertices"]), "vertices": None}
        return self._derived(chosen, {}, **wanted)

    @shows_progress
    @described(DERIVED | {"vertices": LOOK_UP["vertices"]}, *_ERRORS)
    def subgraph(self, vertices: object, **options: Unpack[DerivedOptions]) -> brimful.Graph:
        """Make a graph of some vertices and the edges between them.

        Ids that the graph lacks are left out, as in NetworkX. The ids are in memory.

        Returns:
            The graph.

        Raises:
            MissingPackageError: DuckDB is not installed.
            InputError: No vertex is left.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [0, 1], "target": [1, 2]})) as graph:
        ...     with graph.subgraph([0, 1]) as part:
        ...         list(part), part.edges
        ([0, 1], 1)
        """
        chosen = checked(DerivedOptions, options, "subgraph", ("vertices",))
        texts = cast("brimful.Graph", self).native.id_type == "string"
        return self._derived(chosen, {}, ids=id_array(vertices, texts=texts))

    @shows_progress
    @described(DERIVED | LOOK_UP, "vertex", *_ERRORS)
    def ego(
        self, vertex: VertexId, hops: int = 1, **options: Unpack[DerivedOptions]
    ) -> brimful.Graph:
        """Make a graph of the vertices that a vertex reaches in some hops, and of their edges.

        The ids of these vertices are in memory.

        Args:
            hops: The most edges on a path from `vertex`.

        Returns:
            The graph.

        Raises:
            MissingPackageError: DuckDB is not installed.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [0, 1, 2], "target": [1, 2, 3]})) as graph:
        ...     with graph.ego(0, 2) as near:
        ...         list(near)
        [0, 1, 2]
        """
        from brimful.tables.derived import derive_options, require_budget
        from brimful.tables.derived_vertices import within

        chosen = checked(DerivedOptions, options, "ego", ("vertex", "hops"))
        count = whole(hops, "hops")
        graph = cast("brimful.Graph", self)
        resources = Resources.of(chosen).on(graph)
        # The budget is refused before the neighborhood is read.
        require_budget(derive_options(index=chosen["index"]), resources, joins=True, tests=False)
        ids = within(graph, [vertex], count, resources)
        return self._derived(chosen, {}, ids=ids)

    @shows_progress
    @described(DERIVED, *_ERRORS)
    def reverse(self, **options: Unpack[DerivedOptions]) -> brimful.Graph:
        """Make a graph of the reversed edges.

        Returns:
            The graph.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [0], "target": [1]})) as graph:
        ...     with graph.reverse() as turned:
        ...         turned.neighbors(1)
        [0]
        """
        return self._derived(checked(DerivedOptions, options, "reverse"), {}, reverse=True)

    @shows_progress
    @described(DERIVED, *_ERRORS)
    def undirected(self, **options: Unpack[MergedOptions]) -> brimful.Graph:
        """Make a graph whose edges have no direction.

        Edges that lead both ways become two parallel ones, unless `duplicates` says otherwise.

        Returns:
            The graph.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [0, 1], "target": [1, 0]})) as graph:
        ...     with graph.undirected(duplicates="drop") as plain:
        ...         plain.edges, plain.neighbors(1)
        (1, [0])
        """
        chosen = checked(MergedOptions, options, "undirected")
        return self._derived(chosen, picked(PolicyOptions, chosen), undirected=True)

    @shows_progress
    @described(DERIVED, *_ERRORS)
    def contract(
        self,
        labels: object,
        *,
        self_loops: SelfLoops = "keep",
        **options: Unpack[DerivedOptions],
    ) -> brimful.Graph:
        """Make a graph of labels, such as communities: vertices with the same label become one.

        Parallel edges become one edge, whose weight is the sum of their weights; without weights,
        their number. Edges within a label are self-loops. Vertices without a label are left out
        with their edges; a warning reports their number. Columns of vertices are not copied.

        Args:
            labels: A result of this graph, or a table with the column `vertex` and one of integers
                or strings: any object with `__arrow_c_stream__`.
            self_loops: "keep" (default) edges within a label, or "drop" them.

        Returns:
            The graph.

        Raises:
            MissingPackageError: DuckDB is not installed.
            InputError: A vertex has two labels, or none has one.

        >>> import brimful as bf, pyarrow as pa
        >>> table = pa.table({"source": [0, 1, 2, 3], "target": [1, 0, 3, 1]})
        >>> parts = pa.table({"vertex": [0, 1, 2, 3], "part": ["a", "a", "b", "b"]})
        >>> with bf.Graph.from_arrow(table) as graph, graph.contract(parts) as small:
        ...     list(small), small.neighbors("a", weights=True), small.neighbors("b", weights=True)
        (['a', 'b'], (['a'], [2.0]), (['a', 'b'], [1.0, 1.0]))
        """
        chosen = checked(DerivedOptions, options, "contract", ("labels", "self_loops"))
        if not hasattr(labels, "__arrow_c_stream__"):
            raise UsageError(
                "labels must be a result or a table with __arrow_c_stream__, not "
                f"{type(labels).__name__}"
            )
        policies = {"duplicates": "sum", "self_loops": self_loops}
        return self._derived(chosen, policies, contract=labels)
