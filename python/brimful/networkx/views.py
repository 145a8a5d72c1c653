"""A graph on disk as a NetworkX graph: a view whose adjacency reads edges on demand.

It is a graph of one of NetworkX's own classes, frozen, as `networkx.subgraph_view` makes them:
mappings take the place of its dictionaries. NetworkX's own code runs on it, with the views `nodes`,
`edges`, `adj` and `degree`. Only the caches of the look-ups are kept. Each call makes attributes
again, which therefore refuse changes: these would be lost.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping
from functools import cached_property, partial
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import networkx as nx

from brimful.ids import column_ids
from brimful.networkx.operand import Operand
from brimful.streamed import StreamedItems

if TYPE_CHECKING:
    from brimful.neighbors import Direction

#: Nodes whose edges are read at once in an iteration over all nodes.
_NODES_AT_ONCE = 4_096
_Value = TypeVar("_Value")
_CLASSES = {
    (False, False): nx.Graph,
    (True, False): nx.DiGraph,
    (False, True): nx.MultiGraph,
    (True, True): nx.MultiDiGraph,
}


def view(operand: Operand, *, dispatched: bool = True) -> Any:
    """Return a graph as one of NetworkX.

    `dispatched` says whether NetworkX's functions run in brimful, where it has them, or look up
    edges themselves, which is better for those that read few.
    """
    made = _CLASSES[operand.is_directed(), operand.is_multigraph()]()
    made.__brimful__ = operand
    made.graph.update(operand.attributes)
    if dispatched:
        made.__networkx_backend__ = operand.__networkx_backend__
    made.__networkx_cache__ = None
    made._node = _Nodes(operand)
    made._adj = _Adjacency(operand, "out")
    if operand.is_directed():
        made._pred = _Adjacency(operand, "in")

    made.number_of_edges = partial(_number_of_edges, made)
    return nx.freeze(made)


def _number_of_edges(graph: Any, u: Any = None, v: Any = None) -> int:
    """Return the number of edges of a view, or of those between two nodes."""
    if u is not None:
        count: int = type(graph).number_of_edges(graph, u, v)
        return count
    return graph.__brimful__.graph.edges if len(graph) else 0


class _Attributes(dict[Any, Any]):
    """The attributes of a node or an edge, which cannot be changed; a copy is a plain `dict`."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise nx.NetworkXError(
            "a view of a brimful graph keeps its attributes; copy() makes a graph in memory whose "
            "attributes can be changed"
        )

    __setitem__ = __delitem__ = __ior__ = _refuse
    update = setdefault = pop = popitem = clear = _refuse

    def __reduce__(self) -> tuple[type[dict[Any, Any]], tuple[dict[Any, Any]]]:
        return dict, (dict(self),)


class _OfNodes(Mapping[Any, _Value]):
    """A mapping whose keys are the nodes."""

    def __init__(self, operand: Operand) -> None:
        self._operand = operand

    def __contains__(self, node: object) -> bool:
        return node in self._operand

    def __iter__(self) -> Iterator[Any]:
        return iter(self._operand)

    def __len__(self) -> int:
        return len(self._operand)


class _Nodes(_OfNodes[dict[str, Any]]):
    """The nodes, which have no attributes."""

    def __getitem__(self, node: Any) -> dict[str, Any]:
        self._operand.vertex(node)
        return _Attributes()


class _Adjacency(_OfNodes["_Neighbors"]):
    """The neighbors of each node, in one direction."""

    def __init__(self, operand: Operand, direction: Direction) -> None:
        super().__init__(operand)
        self._direction = direction

    def __getitem__(self, node: Any) -> _Neighbors:
        return _Neighbors(self._operand, self._direction, self._operand.vertex(node))

    def items(self) -> ItemsView[Any, _Neighbors]:
        """Return a view of nodes and neighbors that reads many at once."""
        return StreamedItems(self)

    def _stream(self) -> Iterator[tuple[Any, _Neighbors]]:
        """Yield nodes and neighbors, the edges of many nodes read at once."""
        operand = self._operand
        ends = ("source", "target") if self._direction == "out" else ("target", "source")
        nodes = iter(operand)
        while some := list(islice(nodes, _NODES_AT_ONCE)):
            # Not before: a graph without nodes was not imported.
            graph = operand.graph
            vertices = [operand.vertex(node) for node in some]
            table = graph.neighbors_many(
                vertices, direction=self._direction, weights=graph.weighted
            )
            columns = table.select([*ends, *table.column_names[2:]]).columns
            rows = zip(*map(column_ids, columns), strict=True)
            edges = {vertex: list(own) for vertex, own in groupby(rows, key=lambda row: row[0])}
            for node, vertex in zip(some, vertices, strict=True):
                own = edges.get(vertex, [])
                neighbors = _Neighbors(operand, self._direction, vertex)
                neighbors.lists = ([row[1] for row in own], [row[2:] for row in own])
                yield node, neighbors


class _Neighbors(Mapping[Any, dict[Any, Any]]):
    """The neighbors of a vertex, with the attributes of the edges; read when first needed."""

    def __init__(self, operand: Operand, direction: Direction, vertex: Any) -> None:
        self._operand = operand
        self._direction = direction
        self._vertex = vertex

    @cached_property
    def lists(self) -> tuple[list[Any], list[tuple[float, ...]]]:
        """The vertices at the other ends, and the weight of each edge, if it has one."""
        graph = self._operand.graph
        look_up = graph.neighbors if self._direction == "out" else graph.in_neighbors
        if not graph.weighted:
            vertices = look_up(self._vertex)
            return vertices, [()] * len(vertices)
        vertices, weights = look_up(self._vertex, weights=True)
        return vertices, [(weight,) for weight in weights]

    @cached_property
    def _edges(self) -> dict[Any, dict[Any, Any]]:
        """The attributes of edges by neighbor; in a multigraph by key."""
        lists: dict[Any, dict[Any, Any]] = {}
        node, multigraph = self._operand.node, self._operand.is_multigraph()
        for vertex, weights in zip(*self.lists, strict=True):
            if multigraph:
                parallel = lists.setdefault(node(vertex), {})
                parallel[len(parallel)] = self._attributes(weights)
            else:
                lists[node(vertex)] = self._attributes(weights)
        return lists

    def _attributes(self, weights: tuple[float, ...]) -> dict[Any, Any]:
        if not weights:
            return _Attributes()
        weight = int(weights[0]) if self._operand.whole else weights[0]
        return _Attributes({self._operand.weight: weight})

    def __getitem__(self, node: Any) -> dict[Any, Any]:
        return self._edges[node]

    def __contains__(self, node: object) -> bool:
        if node not in self._operand:
            return False
        ends = self._vertex, self._operand.vertex(node)
        return self._operand.graph.has_edge(*(ends if self._direction == "out" else ends[::-1]))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._edges)

    def __len__(self) -> int:
        if self._operand.is_multigraph():
            return len(set(self.lists[0]))
        if "lists" in self.__dict__:
            return len(self.lists[0])
        graph = self._operand.graph
        degree = graph.out_degree if self._direction == "out" else graph.in_degree
        return degree(self._vertex)
