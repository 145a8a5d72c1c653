"""The neighbors and degrees of vertices, looked up in a graph on disk."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from brimful.errors import NotFoundError, UsageError
from brimful.ids import VertexId, list_ids, text_id, vertex_id
from brimful.io.output import stream_table
from brimful.options.checks import flag
from brimful.options.described import LOOK_UP, described
from brimful.packages import _native, pyarrow
from brimful.reporting import warn
from brimful.resources import Resources
from brimful.wording import counted, shortened

if TYPE_CHECKING:
    from brimful.graph import Graph

#: The edges of a vertex to look up.
Direction = Literal["out", "in"]


class Neighbors:
    """Look-ups of edges in a `Graph`, which reads only the blocks of edges that they need."""

    _lookup: _native.Lookup | None = None
    _has_reverse = False

    @overload
    def neighbors(self, vertex: VertexId, *, weights: Literal[False] = False) -> list[Any]: ...

    @overload
    def neighbors(
        self, vertex: VertexId, *, weights: Literal[True]
    ) -> tuple[list[Any], list[float]]: ...

    @described(LOOK_UP, "vertex", "closed graph", "corrupt", "io")
    def neighbors(
        self, vertex: VertexId, *, weights: bool = False
    ) -> list[Any] | tuple[list[Any], list[float]]:
        """Return the targets of the out-edges of a vertex, ascending, one entry per edge.

        Parallel edges have entries of their own, a self-loop has one. In an undirected graph these
        are all neighbors.

        Returns:
            The targets; with `weights` two lists of one length, targets and weights, where parallel
            edges are in the order of their weights.

        Raises:
            UsageError: `weights`, and the edges have none.

        >>> import brimful as bf, pyarrow as pa
        >>> table = pa.table({"source": [5, 5], "target": [9, 7], "weight": [1.5, 2.0]})
        >>> with bf.Graph.from_arrow(table) as graph:
        ...     graph.neighbors(5), graph.neighbors(5, weights=True)
        ([7, 9], ([7, 9], [2.0, 1.5]))
        """
        return self._listed(self._lookups, vertex, "out", weights)

    @overload
    def in_neighbors(self, vertex: VertexId, *, weights: Literal[False] = False) -> list[Any]: ...

    @overload
    def in_neighbors(
        self, vertex: VertexId, *, weights: Literal[True]
    ) -> tuple[list[Any], list[float]]: ...

    @described(LOOK_UP, "vertex", "closed graph", "corrupt", "io")
    def in_neighbors(
        self, vertex: VertexId, *, weights: bool = False
    ) -> list[Any] | tuple[list[Any], list[float]]:
        """Return the sources of the edges that reach a vertex, ascending, one entry per edge.

        A directed graph needs its reverse index. The first call builds it if it is missing, within
        the graph's budget, and reports this to the logger `brimful`; the index stays.

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
        return self._listed(self._indexed("in"), vertex, "in", weights)

    @described(LOOK_UP, "vertex", "closed graph", "corrupt", "io")
    def degree(self, vertex: VertexId) -> int:
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
    def out_degree(self, vertex: VertexId) -> int:
        """Return the number of out-edges of a vertex, parallel edges too; a self-loop counts once.

        Returns:
            The degree.

        >>> import brimful as bf, pyarrow as pa
        >>> with bf.Graph.from_arrow(pa.table({"source": [5, 5], "target": [9, 9]})) as graph:
        ...     graph.out_degree(5)
        2
        """
        return self._lookups.degree(vertex_id(vertex), "out")

    @described(LOOK_UP, "vertex", "closed graph", "corrupt", "io")
    def in_degree(self, vertex: VertexId) -> int:
        """Return the number of in-edges of a vertex, parallel edges too; a self-loop counts once.

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
            True if there is such an edge; False also if one of the two is not a vertex.

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
        the table, 16 bytes an edge or 24; 80 bytes for each of `vertices`; and 64 bytes for each of
        262,144 edges, or of those of 16,384 vertices if `direction` is "in".

        Returns:
            A `pyarrow.Table` with the columns `source`, `target` (of the type of the ids) and, with
            `weights`, `weight` (float64): for each of `vertices`, in the order given, its edges by
            ascending neighbor.

        Raises:
            NotFoundError: One of `vertices` is not a vertex.
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
        lookup = self._indexed(direction)
        ids = _many(vertices, texts=self._has_texts)
        stream = lookup.neighbor_stream(ids, direction, flag(weights, "weights"))
        return stream_table(stream)

    @described(LOOK_UP, "closed graph", "corrupt", "io")
    def degrees_many(self, vertices: object, *, direction: Direction = "out") -> pyarrow.Int64Array:
        """Return the degrees of many vertices, in the order given.

        `brimful.degrees` counts those of all vertices.

        Returns:
            A `pyarrow.Int64Array`: int64[len(vertices)].

        Raises:
            NotFoundError: One of `vertices` is not a vertex.
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

        ids = _many(vertices, texts=self._has_texts)
        degrees = self._indexed(direction).degrees(ids, direction)
        return pa.Array.from_buffers(pa.int64(), len(degrees) // 8, [None, pa.py_buffer(degrees)])

    def _listed(
        self, lookup: _native.Lookup, vertex: VertexId, direction: str, weights: bool
    ) -> list[Any] | tuple[list[Any], list[float]]:
        found = lookup.neighbors(vertex_id(vertex), direction, flag(weights, "weights"))
        if isinstance(found, tuple):
            return list_ids(found[0]), found[1]
        return list_ids(found)

    @property
    def _has_texts(self) -> bool:
        """Whether the ids are strings."""
        return cast("Graph", self).native.id_type == "string"

    @property
    def _lookups(self) -> _native.Lookup:
        """The native look-ups.

        Raises:
            UsageError: The graph is closed.
        """
        lookup = self._lookup
        if lookup is None:
            from brimful import _native

            # Two threads may both make a `Lookup`; the later one stays.
            lookup = self._lookup = _native.Lookup(cast("Graph", self).native)
        return lookup

    def _indexed(self, direction: str) -> _native.Lookup:
        """Return the look-ups, with the index that `direction` needs."""
        lookup = self._lookups
        if direction == "in" and not self._has_reverse:
            graph = cast("Graph", self)
            if "reverse" not in graph.native.indexes:
                if not graph.is_temporary:
                    name = graph.path
                    warn(f"building the reverse index of {name}, which in-edges need; it stays")
                resources = Resources(budget=graph.budget)
                graph.native.build_index(["reverse"], resources=resources)
            self._has_reverse = True
        return lookup


def id_array(vertices: Any, *, texts: bool) -> Any:
    """Return vertices as an Arrow array, of strings if the ids of the graph are (`texts`).

    Raises:
        UsageError: The vertices are neither all 64-bit integers nor all strings, or one id.
    """
    import pyarrow as pa

    from brimful.tables.joining import plain_type

    if isinstance(vertices, (str, bytes)):
        # Its letters would be the ids.
        raise UsageError(f"vertices must be a sequence of ids, not the text {shortened(vertices)}")
    is_stream = hasattr(vertices, "__arrow_c_stream__")
    if not is_stream and not hasattr(vertices, "__len__") and not isinstance(vertices, Iterable):
        raise UsageError(f"vertices must be a sequence of ids, not {shortened(vertices)}")
    given: Any = vertices
    try:
        if is_stream:
            array = pa.chunked_array(vertices).combine_chunks()
            if pa.types.is_struct(array.type):
                columns = ", ".join(field.name for field in array.type)
                raise UsageError(
                    f"vertices must be a sequence of ids, not a table of the columns {columns}; "
                    "pass one of them"
                )
            if not pa.types.is_list(array.type):  # Arrow makes lists of tuples.
                given = array
        else:
            given = vertices if hasattr(vertices, "__len__") else list(vertices)
            try:
                array = pa.array(given)
            except OverflowError:
                # By default Arrow converts integers to signed ones.
                array = pa.array(given, pa.uint64())
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, UsageError):
            raise
        if texts or any(isinstance(one, (tuple, frozenset)) for one in given):
            return _named(given)
        kinds = dict.fromkeys(type(one).__name__ for one in given)
        found = f"found {' and '.join(kinds)}" if len(kinds) > 1 else " ".join(str(error).split())
        raise UsageError(f"vertices must be all 64-bit integers or all strings; {found}") from None
    is_named = texts and len(array) and not pa.types.is_string(plain_type(array.type))
    return _named(given) if is_named or pa.types.is_list(array.type) else array


def _named(vertices: Any) -> Any:
    """Return an Arrow array of the names of vertices, some of which are tuples or frozensets."""
    import pyarrow as pa

    plain = vertices.to_pylist() if isinstance(vertices, pa.Array) else vertices
    return pa.array(map(text_id, plain), pa.string())


def _many(vertices: object, *, texts: bool) -> memoryview | list[str]:
    """Return vertices as the native module takes them: 64-bit integers, or strings.

    Raises:
        UsageError: The vertices are neither.
    """
    import pyarrow as pa

    array = id_array(vertices, texts=texts)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    kind = array.type
    if pa.types.is_dictionary(kind):
        array, kind = array.dictionary_decode(), kind.value_type
    if len(array) == 0:
        return memoryview(b"").cast("q")
    if array.null_count:
        raise UsageError(f"one of {counted(len(array), 'vertex')} is null; leave it out")
    if pa.types.is_integer(kind):
        signed = pa.types.is_signed_integer(kind)
        numbers = array.cast(pa.int64() if signed else pa.uint64())
        words = memoryview(numbers.buffers()[1]).cast("q" if signed else "Q")
        return words[numbers.offset : numbers.offset + len(numbers)]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        names: list[str] = array.to_pylist()
        return names
    raise UsageError(f"vertices must be 64-bit integers or strings, not {kind}")
