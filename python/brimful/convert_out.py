"""A graph as objects of other packages, in memory.

Every conversion copies: this is for graphs, or parts, that fit. Invariant: vertices without edges,
self-loops and direction are in the copy; where the other side cannot hold multi-edges or ids, the
docstring says what it gets instead.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from brimful.errors import UsageError
from brimful.output import native_batches

if TYPE_CHECKING:
    import igraph
    import networkx
    import numpy
    import pandas
    import polars
    import pyarrow
    import scipy.sparse

    from brimful import _native


def require(package: str, purpose: str) -> Any:
    """Import a package that `purpose` needs and brimful does not.

    Raises:
        UsageError: it is not installed.
    """
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        top = package.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != top:
            raise
        raise UsageError(
            f"{purpose} needs {top}, which is not installed; install it with 'pip install {top}'"
        ) from None


class Conversions:
    """What `Graph` becomes outside; its `native` graph is where the edges come from."""

    @property
    def native(self) -> _native.Graph:
        """The native graph."""
        raise NotImplementedError

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the Arrow stream capsule of the edges, an undirected one once; streams batches.

        So `polars.DataFrame(graph)`, pyarrow and DuckDB read a graph as it is.
        """
        stream: Any = self._edge_stream()
        return stream.__arrow_c_stream__(requested_schema)

    def vertex_ids(self) -> pyarrow.Array:
        """Return the ids of all vertices, ascending: integers or strings[n_vertices], a copy.

        Memory: 8 bytes a vertex, or their strings, and while they are sorted 16 more.
        """
        import pyarrow as pa

        source = pa.RecordBatchReader.from_stream(self.native.vertex_stream())
        table = pa.Table.from_batches(native_batches(source), source.schema)
        ids = table.column("vertex").combine_chunks()
        return ids.sort()

    def to_arrow(self) -> pyarrow.Table:
        """Return a `pyarrow.Table` of the edges, a copy, in no promised order.

        Columns `source` and `target` (integers of the input's type) and, with weights, `weight`
        (float64); an undirected edge is one row. Vertices without edges are not in it: `vertex_ids`
        has them. Memory: 16 bytes an edge, 24 with weights.
        """
        import pyarrow as pa

        source = self._edge_reader()
        return pa.Table.from_batches(native_batches(source), source.schema)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the table of `to_arrow` as a `pandas.DataFrame`; memory: twice its size.

        Raises:
            UsageError: pandas is not installed.
        """
        require("pandas", "to_pandas")
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Return the table of `to_arrow` as a `polars.DataFrame`.

        Raises:
            UsageError: polars is not installed.
        """
        frame: polars.DataFrame = require("polars", "to_polars").DataFrame(self.to_arrow())
        return frame

    def to_networkx(self) -> networkx.Graph:
        """Return a NetworkX `Graph` or `DiGraph`, or their multigraph if there are multi-edges.

        Nodes are the vertex ids; weights are the edge attribute `weight`. Memory: some 500 bytes an
        edge, NetworkX's own.

        Raises:
            UsageError: networkx is not installed.

        >>> import brimful as bf, pyarrow as pa
        >>> table = pa.table({"source": [5, 5], "target": [7, 9], "weight": [1.5, 2.0]})
        >>> with bf.Graph.from_arrow(table) as graph:
        ...     graph.to_networkx()[5][9]
        {'weight': 2.0}
        """
        module = require("networkx", "to_networkx")
        native = self.native
        info = native.info()
        kind = "Multi" if info["duplicates"] > info["duplicates_dropped"] else ""
        kind += "DiGraph" if native.directed else "Graph"
        graph: networkx.Graph = getattr(module, kind)()
        graph.add_nodes_from(self.vertex_ids().to_pylist())
        for batch in native_batches(self._edge_reader()):
            edges = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            if native.weighted:
                graph.add_weighted_edges_from(edges)
            else:
                graph.add_edges_from(edges)
        return graph

    def to_scipy(self) -> tuple[scipy.sparse.csr_array, numpy.ndarray[Any, Any]]:
        """Return `(matrix, ids)`: the adjacency matrix and the vertex id of each row.

        `matrix` is a `scipy.sparse.csr_array` of shape [n_vertices, n_vertices], row source, column
        target; float64 weights, or int64 numbers of edges without weights. `ids` is
        integers[n_vertices], ascending: row i is vertex `ids[i]`. A matrix has one entry for
        multi-edges: their sum. Undirected edges are in both triangles, a self-loop once. Memory:
        while it is made about 60 bytes an arc; the matrix itself 12 to 16.

        Raises:
            UsageError: scipy is not installed.
        """
        sparse = require("scipy.sparse", "to_scipy")
        import numpy as np

        native = self.native
        import pyarrow.compute as pc

        names = self.vertex_ids()
        ids = names.to_numpy(zero_copy_only=False)
        rows: list[Any] = []
        columns: list[Any] = []
        values: list[Any] = []
        for batch in native_batches(self._edge_reader()):
            source, target = (
                (
                    pc.index_in(batch.column(end), value_set=names)
                    if ids.dtype == object
                    else np.searchsorted(ids, batch.column(end))
                )
                for end in (0, 1)
            )
            source, target = (np.asarray(places, dtype=np.int64) for places in (source, target))
            value = (
                batch.column(2).to_numpy()
                if native.weighted
                else np.ones(batch.num_rows, dtype=np.int64)
            )
            rows.append(source)
            columns.append(target)
            values.append(value)
            if not native.directed:
                other = source != target
                rows.append(target[other])
                columns.append(source[other])
                values.append(value[other])
        kind = np.float64 if native.weighted else np.int64
        joined = [
            np.concatenate([np.empty(0, dtype=dtype), *parts])
            for dtype, parts in ((kind, values), (np.int64, rows), (np.int64, columns))
        ]
        shape = (len(ids), len(ids))
        return sparse.coo_array((joined[0], (joined[1], joined[2])), shape=shape).tocsr(), ids

    def to_igraph(self) -> igraph.Graph:
        """Return an `igraph.Graph`; multi-edges and self-loops are kept.

        igraph numbers vertices 0..n-1: the vertex attribute `vertex` holds the ids, which ascend.
        Weights are the edge attribute `weight`. Memory: some 200 bytes an edge while it is made.

        Raises:
            UsageError: igraph is not installed.
        """
        module = require("igraph", "to_igraph")
        import pyarrow.compute as pc

        native, ids = self.native, self.vertex_ids()
        edges: list[tuple[int, int]] = []
        weights: list[float] = []
        for batch in native_batches(self._edge_reader()):
            ends = (pc.index_in(batch.column(end), value_set=ids).to_pylist() for end in (0, 1))
            edges.extend(zip(*ends, strict=True))
            if native.weighted:
                weights.extend(batch.column(2).to_pylist())
        made: igraph.Graph = module.Graph(
            n=len(ids),
            edges=edges,
            directed=native.directed,
            vertex_attrs={"vertex": ids.to_pylist()},
            edge_attrs={"weight": weights} if native.weighted else {},
        )
        return made

    def _edge_stream(self) -> object:
        return self.native.edge_stream(budget=None, process_budget=False, reserve_bytes=0)

    def _edge_reader(self) -> Any:
        import pyarrow as pa

        return pa.RecordBatchReader.from_stream(self._edge_stream())
