"""Converts graphs of NetworkX, SciPy and igraph to edge tables.

These packages are not imported: only methods of the objects are called. Edges are converted batch
by batch; the object itself stays in the caller's memory. Invariant: vertices, parallel edges,
self-loops, weights and direction are preserved, or an error names the part that cannot be.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, SupportsIndex

from brimful.errors import InputError, UsageError
from brimful.ids import id_of_name, text_id
from brimful.options import checks
from brimful.packages import pyarrow
from brimful.tables.edge_table import EdgeTable, open_batches

_BATCH_ROWS = 65_536
#: Every integer below is a float.
_EXACT = 2**53
#: Attributes that only objects of these packages have, which are not imported.
_NETWORKX = ("nodes", "edges", "degree", "is_directed")
_IGRAPH = ("vcount", "get_edgelist", "vs", "es")
_SCIPY = ("tocoo", "dtype")


@dataclass(frozen=True)
class ObjectEdges:
    """The edges of an object in memory, and the properties that an edge table lacks.

    `isolated` are ids of vertices that exist without an edge; `vertices` declares 0..vertices-1.
    """

    table: EdgeTable
    undirected: bool
    isolated: Sequence[int] | Sequence[str] = ()
    vertices: int | None = None


def of(source: Any, weight: str | None, undirected: bool | None) -> ObjectEdges | None:
    """Return the edges of an object of NetworkX, igraph or SciPy; None if it is of another type.

    `weight` names the edge attribute of weights, by default `weight`. `undirected` None takes the
    direction of the object; a matrix is directed.

    Raises:
        UsageError: `weight` is given for a matrix.
        InputError: As `from_networkx`, `from_igraph` and `from_scipy`.
    """
    if all(hasattr(source, name) for name in _NETWORKX):
        edges = from_networkx(source, weight or "weight")
    elif all(hasattr(source, name) for name in _IGRAPH):
        edges = from_igraph(source, weight or "weight", "vertex")
    elif all(hasattr(source, name) for name in _SCIPY):
        if weight is not None:
            raise UsageError(
                "the values of a matrix are its weights, which have no name; leave weight= out"
            )
        return from_scipy(source, bool(undirected), None)
    else:
        return None
    return edges if undirected is None else replace(edges, undirected=undirected)


def from_networkx(graph: Any, weight: str | None) -> ObjectEdges:
    """Return the edges of a NetworkX graph; `weight` names the edge attribute; None: no weights.

    Raises:
        UsageError: `graph` is not a NetworkX graph.
        InputError: A node cannot be an id, or a weight is not a number.
    """
    if not all(hasattr(graph, name) for name in _NETWORKX):
        raise UsageError(
            f"expected a NetworkX graph of one of its four kinds, found {type(graph).__name__}"
        )
    name = "the NetworkX graph"
    id_type = _id_type(graph.nodes, name, "nodes")
    own = _reader(id_type, name)
    weighted = weight is not None and any(
        value is not None for _, _, value in graph.edges(data=weight, default=None)
    )
    edges = graph.edges(data=weight, default=1.0) if weighted else graph.edges(data=False)
    return ObjectEdges(
        _table(name, id_type, edges, weighted),
        not graph.is_directed(),
        isolated=[own(node) for node, degree in graph.degree if degree == 0],
    )


def from_pairs(
    name: str,
    edges: Iterable[Sequence[Any]],
    *,
    weighted: bool,
    undirected: bool,
    vertices: int,
) -> ObjectEdges:
    """Return edges between the vertices 0..vertices-1: `(source, target)` or with a weight."""
    return ObjectEdges(
        _table(name, "int64", edges, weighted), undirected=undirected, vertices=vertices
    )


def from_igraph(graph: Any, weight: str | None, vertex: str | None) -> ObjectEdges:
    """Return the edges of an igraph graph.

    `weight` names the edge attribute; `vertex` the vertex attribute that holds integer ids, in
    whose absence ids are igraph's own indexes, 0..n-1.

    Raises:
        UsageError: `graph` is not an igraph graph.
        InputError: A value cannot be an id or occurs twice, or a weight is not a number.
    """
    if not all(hasattr(graph, name) for name in _IGRAPH):
        raise UsageError(f"expected an igraph.Graph, found {type(graph).__name__}")
    name = "the igraph graph"
    count: int = graph.vcount()
    pairs: list[tuple[int, int]] = graph.get_edgelist()
    ids: Sequence[Any] = range(count)
    id_type = "int64"
    isolated: list[Any] = []
    if vertex is not None and vertex in graph.vs.attributes():
        ids = graph.vs[vertex]
        id_type = _id_type(ids, name, f"vertex attributes '{vertex}'")
        if len(set(ids)) != count:
            raise InputError(
                f"{name} has vertices with the same '{vertex}'; make the ids distinct, or pass "
                "vertex=None to take igraph's own indexes"
            )
        own = _reader(id_type, name)
        isolated = [own(ids[at]) for at, degree in enumerate(graph.degree()) if degree == 0]
    weighted = weight is not None and weight in graph.es.attributes()
    ends = ((ids[source], ids[target]) for source, target in pairs)
    edges: Iterable[Sequence[Any]] = ends
    if weighted:
        values = (1.0 if value is None else value for value in graph.es[weight])
        edges = ((*pair, value) for pair, value in zip(ends, values, strict=True))
    return ObjectEdges(
        _table(name, id_type, edges, weighted),
        not graph.is_directed(),
        isolated=isolated,
        vertices=count if isinstance(ids, range) else None,
    )


def from_scipy(matrix: Any, undirected: bool, weighted: bool | None) -> ObjectEdges:
    """Return the stored entries of a sparse matrix: entry (i, j) is the edge i -> j.

    Raises:
        UsageError: `matrix` is not sparse.
        InputError: The matrix is not square, not of real numbers, or not symmetric as it should be.
    """
    if not all(hasattr(matrix, name) for name in _SCIPY):
        raise UsageError(
            f"expected a sparse matrix, found {type(matrix).__name__}; pass one of scipy.sparse, "
            "for example scipy.sparse.csr_array(dense)"
        )
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        shape = " x ".join(map(str, matrix.shape))
        raise InputError(
            f"the matrix is {shape}; a graph needs a square matrix with a row for each vertex"
        )
    if matrix.dtype.kind not in "biuf":
        raise InputError(f"the matrix has type {matrix.dtype}, and weights must be real numbers")
    if weighted is None:
        weighted = matrix.dtype.kind != "b"
    if undirected:
        rows = matrix.tocsr()
        if (rows != rows.T.tocsr()).nnz:
            raise InputError(
                "the matrix is not symmetric, so its entries are arcs; leave undirected=True out, "
                "or make it symmetric"
            )
    return ObjectEdges(
        _open("the matrix", "int64", _entries(matrix.tocoo(), undirected, weighted), weighted),
        undirected,
        vertices=matrix.shape[0],
    )


def _entries(matrix: Any, undirected: bool, weighted: bool) -> Iterator[list[Any]]:
    """Yield the columns of batches of entries; of a symmetric matrix the upper triangle."""
    import pyarrow as pa

    for start in range(0, matrix.nnz, _BATCH_ROWS):
        part = slice(start, start + _BATCH_ROWS)
        rows, columns = matrix.row[part], matrix.col[part]
        values = matrix.data[part]
        if undirected:
            upper = rows <= columns
            rows, columns, values = rows[upper], columns[upper], values[upper]
        arrays = [pa.array(rows.astype("int64")), pa.array(columns.astype("int64"))]
        if weighted:
            floats = values.astype("float64")
            if values.dtype.kind in "iu":
                for at in (abs(floats) >= _EXACT).nonzero()[0]:
                    _check_exact("the matrix", (rows[at], columns[at], values[at]))
            arrays.append(pa.array(floats))
        yield arrays


def _id_type(ids: Iterable[Any], name: str, noun: str) -> str:
    """Return the type of ids: `int64`, `uint64` where an id needs it, `string`, or `object`.

    The ids of type `object` are not all integers and not all strings; names stand for them.

    Raises:
        InputError: Integers do not fit one of the two types, or a string is the name of an object
            or not in UTF-8.
    """
    low, high = 0, 0
    kinds = set()
    for value in ids:
        if isinstance(value, str):
            kinds.add("string")
            try:
                named = id_of_name(value)
            except UnicodeEncodeError:
                raise InputError(
                    f"{name} has {noun} such as {value[:40]!r}, which is not valid UTF-8; relabel "
                    "the vertices"
                ) from None
            if named is not value:
                raise InputError(
                    f"{name} has {noun} such as {value[:40]!r}, which is the name of the vertex "
                    f"{named!r}; give other ids"
                )
        elif isinstance(value, SupportsIndex) and not isinstance(value, bool):
            kinds.add("integer")
            number = operator.index(value)
            low, high = min(low, number), max(high, number)
        else:
            return "object"
    if low < -(2**63) or high >= 2**64 or (low < 0 and high >= 2**63):
        raise InputError(
            f"{name} has {noun} from {low} to {high}; the ids of a graph must all fit int64 or all "
            "fit uint64: relabel the vertices"
        )
    if len(kinds) == 2:
        return "object"
    if "string" in kinds:
        return "string"
    return "uint64" if high >= 2**63 else "int64"


def _reader(id_type: str, name: str) -> Callable[[Any], Any]:
    """Return the function that makes an `int` or `str` of an id.

    The function raises `InputError` if an object cannot be an id.
    """

    def object_name(value: Any) -> str:
        try:
            return text_id(value)
        except UsageError as error:
            raise InputError(f"{name}: {error}; relabel the vertices") from None

    if id_type == "object":
        return object_name
    return str if id_type == "string" else operator.index


def _arrow_type(id_type: str) -> pyarrow.DataType:
    import pyarrow as pa

    return pa.type_for_alias("string" if id_type == "object" else id_type)


def _table(name: str, id_type: str, edges: Iterable[Sequence[Any]], weighted: bool) -> EdgeTable:
    """Return a table of `(source, target)` or `(source, target, weight)` tuples."""
    own = _reader(id_type, name)

    def batches() -> Iterator[list[Any]]:
        import pyarrow as pa

        rows = iter(edges)
        while batch := list(itertools.islice(rows, _BATCH_ROWS)):
            columns = [[own(row[end]) for row in batch] for end in (0, 1)]
            arrays = [pa.array(column, _arrow_type(id_type)) for column in columns]
            if weighted:
                arrays.append(pa.array([_weight(name, row) for row in batch], pa.float64()))
            yield arrays

    return _open(name, id_type, batches(), weighted)


def _weight(name: str, edge: Sequence[Any]) -> float:
    """Return the weight of an edge.

    Raises:
        InputError: The weight is not a finite number.
    """
    try:
        weight = float(edge[2])
    except (TypeError, ValueError, OverflowError):
        weight = math.nan
    if not math.isfinite(weight):
        raise InputError(
            f"{name} has an edge from {edge[0]} to {edge[1]} of weight {str(edge[2])[:40]!r}; "
            "weights must be finite numbers"
        )
    if abs(weight) >= _EXACT:
        _check_exact(name, edge)
    return weight


def _check_exact(name: str, edge: Sequence[Any]) -> None:
    """Refuse an edge whose weight is an integer between two floats.

    Raises:
        InputError: The weight is such an integer.
    """
    nearest = checks.rounded(edge[2]) if isinstance(edge[2], SupportsIndex) else None
    if nearest is not None:
        raise InputError(
            f"{name} has an edge from {edge[0]} to {edge[1]} of weight {str(edge[2])[:40]}, and "
            f"the nearest float of 64 bits is {nearest}; make the weights floats to round them"
        )


def _open(name: str, id_type: str, batches: Iterator[list[Any]], weighted: bool) -> EdgeTable:
    import pyarrow as pa

    kind = _arrow_type(id_type)
    fields = [pa.field("source", kind), pa.field("target", kind)]
    if weighted:
        fields.append(pa.field("weight", pa.float64()))
    schema = pa.schema(fields)
    return open_batches(
        name,
        schema,
        (pa.RecordBatch.from_arrays(arrays, schema=schema) for arrays in batches),
    )
