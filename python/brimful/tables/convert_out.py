"""A graph as objects of other packages, in memory.

Every conversion copies: this is for graphs, or parts, that fit. `as_networkx` alone is a view.
Invariant: the copy has vertices without edges, self-loops and direction. If the other package
cannot hold parallel edges or ids, the docstring names their replacement.
"""

from __future__ import annotations

from typing import Any

from brimful.errors import CorruptError
from brimful.ids import column_ids
from brimful.io.output import native_batches, stream_table
from brimful.optional import require
from brimful.options.described import described
from brimful.packages import _native, igraph, networkx, numpy, pandas, polars, pyarrow, scipy
from brimful.resources import Resources


class Conversions:
    """Conversions of a `Graph`; its `native` graph supplies the edges."""

    #: NetworkX dispatches calls of its functions to the backend of this name.
    __networkx_backend__ = "brimful"

    @property
    def native(self) -> _native.Graph:
        """The native graph."""
        raise NotImplementedError

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the Arrow stream capsule of the edges, an undirected one once; streams batches.

        So `polars.DataFrame(graph)`, pyarrow and DuckDB read a graph directly.
        """
        stream = edge_stream(self.native)
        return stream.__arrow_c_stream__(requested_schema)

    @described({}, "closed graph", "corrupt", "io")
    def vertex_ids(self) -> pyarrow.Array:
        """Return the ids of all vertices in ascending order.

        Memory: 8 bytes a vertex, or their strings, and twice that while they are assembled.

        Returns:
            A `pyarrow.Array`, a copy: integers or strings[n_vertices].

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [5], "target": [2]})) as graph:
        ...     graph.vertex_ids().to_pylist()
        [2, 5]
        """
        table = stream_table(self.native.vertex_stream())
        return table.column("vertex").combine_chunks()

    @described({}, "closed graph", "corrupt", "io")
    def to_arrow(self) -> pyarrow.Table:
        """Return the edges as a `pyarrow.Table`, a copy, in no promised order.

        Vertices without edges are not in it, see `vertex_ids`. Memory: 16 bytes an edge, 24 with
        weights.

        Returns:
            Columns `source` and `target` (integers of the input's type, or strings) and, with
            weights, `weight` (float64); an undirected edge is one row.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [5], "target": [2]})) as graph:
        ...     graph.to_arrow().to_pydict()
        {'source': [5], 'target': [2]}
        """
        import pyarrow as pa

        source = self._edge_reader()
        return pa.Table.from_batches(native_batches(source), source.schema)

    @described({}, "closed graph", "corrupt", "io")
    def to_pandas(self) -> pandas.DataFrame:
        """Return the table of `to_arrow` as a `pandas.DataFrame`; memory: twice its size.

        Returns:
            The edges.

        Raises:
            MissingPackageError: pandas is not installed.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [5], "target": [2]})) as graph:
        ...     graph.to_pandas().shape
        (1, 2)
        """
        require("pandas", "to_pandas")
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    @described({}, "closed graph", "corrupt", "io")
    def to_polars(self) -> polars.DataFrame:
        """Return the table of `to_arrow` as a `polars.DataFrame`.

        Returns:
            The edges.

        Raises:
            MissingPackageError: Polars is not installed.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [5], "target": [2]})) as graph:
        ...     graph.to_polars().rows()
        [(5, 2)]
        """
        frame: polars.DataFrame = require("polars", "to_polars").DataFrame(self.to_arrow())
        return frame

    @described({}, "closed graph")
    def is_directed(self) -> bool:
        """Return whether edges have a direction: `directed`, as NetworkX asks for it.

        Returns:
            True if they have.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [5], "target": [7]})) as graph:
        ...     graph.is_directed()
        True
        """
        return self.native.directed

    @described({}, "closed graph")
    def is_multigraph(self) -> bool:
        """Return whether there are parallel edges, as NetworkX asks for it.

        Returns:
            True if two edges lead from the same source to the same target.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [5, 5], "target": [7, 7]})) as graph:
        ...     graph.is_multigraph()
        True
        """
        info = self.native.info()
        return bool(info["duplicates"] > info["duplicates_dropped"])

    @described({}, "closed graph")
    def as_networkx(self) -> networkx.Graph:
        """Return a view of the graph as one of NetworkX, frozen: `nodes`, `edges`, `adj`, `degree`.

        Nothing is copied: edges are looked up when they are asked for. Weights are the edge
        attribute `weight`. NetworkX's functions take the view as well as the graph.

        Returns:
            A `Graph` or `DiGraph`, or their multigraph if there are parallel edges.

        Raises:
            MissingPackageError: NetworkX is not installed.

        >>> import brimful as bf, pyarrow as pa
        >>> graph = bf.Graph.from_arrow(pa.table({"source": [5, 5], "target": [7, 9]}))
        >>> view = graph.as_networkx()
        >>> list(view.successors(5)), view.degree(9), list(view.edges), view[5][7]
        ([7, 9], 1, [(5, 7), (5, 9)], {})
        """
        require("networkx", "as_networkx")
        from brimful.networkx.operand import operand
        from brimful.networkx.views import view

        return view(operand(self))

    @described({}, "closed graph", "corrupt", "io")
    def to_networkx(self) -> networkx.Graph:
        """Return a NetworkX graph; memory: some 500 bytes an edge, NetworkX's own.

        Returns:
            A `Graph` or `DiGraph`, or their multigraph if there are parallel edges. Nodes are the
            vertex ids; weights are the edge attribute `weight`.

        Raises:
            MissingPackageError: NetworkX is not installed.

        >>> import brimful as bf, pyarrow as pa
        >>> table = pa.table({"source": [5, 5], "target": [7, 9], "weight": [1.5, 2.0]})
        >>> with bf.Graph.from_arrow(table) as graph:
        ...     graph.to_networkx()[5][9]
        {'weight': 2.0}
        """
        module = require("networkx", "to_networkx")
        native = self.native
        kind = "Multi" if self.is_multigraph() else ""
        kind += "DiGraph" if native.directed else "Graph"
        graph: networkx.Graph = getattr(module, kind)()
        graph.add_nodes_from(column_ids(self.vertex_ids()))
        for batch in native_batches(self._edge_reader()):
            edges = zip(*map(column_ids, batch.columns), strict=True)
            if native.weighted:
                graph.add_weighted_edges_from(edges)
            else:
                graph.add_edges_from(edges)
        return graph

    @described({}, "closed graph", "corrupt", "io")
    def to_scipy(self) -> tuple[scipy.sparse.csr_array, numpy.ndarray[Any, Any]]:
        """Return the adjacency matrix and the vertex id of each row.

        A matrix has one entry for parallel edges: their sum. Undirected edges are in both
        triangles, a self-loop once. Indices are int32 where they suffice. Memory: the matrix, 12
        bytes an arc (16 from 2^31 arcs or vertices on), and 16 more a vertex while it is made.

        Returns:
            `(matrix, ids)`. The matrix is a `scipy.sparse.csr_array` of shape [n_vertices,
            n_vertices]: rows are sources, columns are targets. Its entries are float64 weights, or
            int64 numbers of edges without weights. `ids` is integers[n_vertices], ascending: row i
            is vertex `ids[i]`.

        Raises:
            MissingPackageError: SciPy is not installed.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [5, 5], "target": [7, 7]})) as graph:
        ...     matrix, ids = graph.to_scipy()
        >>> matrix.toarray().tolist(), ids.tolist()
        ([[0, 2], [0, 0]], [5, 7])
        """
        sparse = require("scipy.sparse", "to_scipy")
        import numpy as np

        native = self.native
        ids = self.vertex_ids().to_numpy(zero_copy_only=False)
        starts, columns, values, entries = native.matrix()
        width: Any = np.int32 if max(native.arcs, len(ids)) < 2**31 else np.int64
        if len(starts) < np.dtype(width).itemsize * (len(ids) + 1):
            raise CorruptError(
                f"the edges of {native.path} contradict its manifest; import it again"
            )
        matrix: scipy.sparse.csr_array = sparse.csr_array(
            (
                np.frombuffer(values, np.float64 if native.weighted else np.int64)[:entries],
                np.frombuffer(columns, width)[:entries],
                np.frombuffer(starts, width)[: len(ids) + 1],
            ),
            shape=(len(ids), len(ids)),
        )
        # In each row, columns ascend without repetition.
        matrix.has_canonical_format = True
        return matrix, ids

    @described({}, "closed graph", "corrupt", "io")
    def to_igraph(self) -> igraph.Graph:
        """Return an `igraph.Graph` with its parallel edges and self-loops.

        Memory: igraph's own, some 100 bytes an edge, and 32 an edge while it is made.

        Returns:
            A graph with vertices 0 to n-1, whose attribute `vertex` holds the ids in ascending
            order. Weights are the edge attribute `weight`.

        Raises:
            MissingPackageError: igraph is not installed.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [5], "target": [7]})) as graph:
        ...     made = graph.to_igraph()
        >>> made.vs["vertex"], made.get_edgelist()
        ([5, 7], [(0, 1)])
        """
        module = require("igraph", "to_igraph")
        import numpy as np

        native, ids = self.native, self.vertex_ids()
        table = stream_table(native.rank_stream())
        edges = np.empty((len(table), 2), dtype=np.int64)
        for end, name in enumerate(("source", "target")):
            edges[:, end] = table[name].to_numpy()
        made: igraph.Graph = module.Graph(
            n=len(ids),
            # igraph would convert an array to Python objects first; it reads a buffer directly.
            edges=edges.data,
            directed=native.directed,
            vertex_attrs={"vertex": column_ids(ids)},
            edge_attrs={"weight": table["weight"].to_pylist()} if native.weighted else {},
        )
        return made

    def _edge_reader(self) -> pyarrow.RecordBatchReader:
        import pyarrow as pa

        return pa.RecordBatchReader.from_stream(edge_stream(self.native))


def edge_stream(graph: _native.Graph) -> Any:
    """Return a stream of the edges of a graph for other packages, an undirected one once."""
    return graph.edge_stream(declared=False, resources=Resources())
