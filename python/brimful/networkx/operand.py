"""A graph as the functions of the backend see it: edges in brimful, nodes as NetworkX names them.

An `Operand` is a `brimful.Graph`, whose vertex ids are the nodes; a `Converted` was made of a
NetworkX graph, whose node number n is vertex n.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Set
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import networkx as nx

from brimful.ids import column_ids
from brimful.io.output import stream_batches
from brimful.networkx.answers import Members, Reader, Values, groups, unchanged

if TYPE_CHECKING:
    from brimful.graph import Graph
    from brimful.result import Result


class Operand:
    """A `brimful.Graph`: answers read from results, so that none is in memory as a whole."""

    __networkx_backend__ = "brimful"
    #: The edge attribute that holds the weights.
    weight: Hashable | None = "weight"
    #: Whether NetworkX would see all weights as integers.
    whole = False
    #: Attributes of the graph itself.
    attributes: Mapping[Any, Any] = MappingProxyType({})

    def __init__(self, graph: Graph) -> None:
        """Take a graph."""
        self.graph = graph

    def is_directed(self) -> bool:
        """Return whether edges have a direction."""
        return self.graph.is_directed()

    def is_multigraph(self) -> bool:
        """Return whether the graph has parallel edges."""
        return self.graph.is_multigraph()

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.graph)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the nodes."""
        return iter(self.graph)

    def __contains__(self, node: object) -> bool:
        """Return whether there is such a node."""
        return node in self.graph

    def vertex(self, node: Any) -> Any:
        """Return the vertex of a node.

        Raises:
            KeyError: There is no such node.
        """
        if node not in self.graph:
            raise KeyError(node)
        return node

    def node(self, vertex: Any) -> Any:
        """Return the node of a vertex."""
        return vertex

    def values(self, result: Result, read: Reader = unchanged) -> Mapping[Any, Any]:
        """Return the values that `read` makes of a result, by node; None is left out."""
        return Values(result, read)

    def nodes_with(self, result: Result, read: Reader) -> Set[Any]:
        """Return the nodes for which `read` returns a value other than None."""
        return self.values(result, read).keys()

    def groups(self, result: Result) -> Iterator[Set[Any]]:
        """Yield the sets of nodes of one value each."""
        return groups(result)

    def group(self, result: Result, value: Any) -> Set[Any]:
        """Return the set of nodes of one value."""
        return Members.of(result, value)

    def nodes_in(self, nbunch: Any) -> Iterator[Any]:
        """Iterate over those of `nbunch` that are nodes, as NetworkX's `nbunch_iter` does.

        Raises:
            NetworkXError: `nbunch` is neither a node nor iterable.
        """
        if nbunch is None:
            return iter(self)
        if nbunch in self:
            return iter([nbunch])
        if not isinstance(nbunch, Iterable):
            raise nx.NetworkXError(f"Node {nbunch} is not in the graph.")
        return (node for node in nbunch if node in self)

    def number_of_loops(self) -> int:
        """Return the number of self-loops."""
        info = self.graph.info()
        return int(info["self_loops"]) - int(info["self_loops_dropped"])

    def loops(self) -> Counter[Any]:
        """Return the number of self-loops by vertex; one pass over the edges if there are any."""
        import pyarrow.compute as pc

        loop_counts: Counter[Any] = Counter()
        if self.number_of_loops():
            for batch in stream_batches(self.graph):
                loops = pc.equal(batch.column(0), batch.column(1))
                loop_counts.update(column_ids(batch.column(0).filter(loops)))
        return loop_counts

    def weighted(self, weight: Hashable | None) -> bool:
        """Return whether edges count by their weights for this edge attribute, not once each.

        Raises:
            NotImplementedError: A weight is negative.
        """
        if weight is None or weight != self.weight or not self.graph.weighted:
            return False
        if self.graph.info()["weight_min"] < 0:
            raise NotImplementedError("brimful takes weights of at least 0, and one is negative")
        return True


class Converted(Operand):
    """A NetworkX graph, imported: answers are the `dict` and `set` that NetworkX returns.

    The graph is in memory as NetworkX's objects, and so may be its answers.
    """

    #: The import; a graph without nodes has none.
    imported: Graph | None = None

    def __init__(self, source: Any, weight: Hashable | None, *, whole: bool) -> None:
        """Number the nodes of a NetworkX graph, and keep the properties that its edges lack.

        Args:
            source: The graph.
            weight: The edge attribute of weights; None: there are no weights.
            whole: Whether all weights are integers.
        """
        self.names = list(source)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.weight = weight
        self.whole = whole
        self.attributes = dict(source.graph)
        self._directed = bool(source.is_directed())
        self._multigraph = bool(source.is_multigraph())

    @property
    def graph(self) -> Graph:  # type: ignore[override]
        """The imported graph.

        Raises:
            RuntimeError: There are no nodes; the functions answer before they come here.
        """
        if self.imported is None:
            raise RuntimeError("a graph without nodes has no edges to read; please report this")
        return self.imported

    def is_directed(self) -> bool:
        """Return whether edges have a direction."""
        return self._directed

    def is_multigraph(self) -> bool:
        """Return whether parallel edges are possible."""
        return self._multigraph

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.names)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the nodes, in the order of the NetworkX graph."""
        return iter(self.names)

    def __contains__(self, node: object) -> bool:
        """Return whether there is such a node."""
        try:
            return node in self.numbers
        except TypeError:
            return False

    def vertex(self, node: Any) -> int:
        """Return the vertex of a node.

        Raises:
            KeyError: There is no such node.
        """
        return self.numbers[node]

    def node(self, vertex: int) -> Any:
        """Return the node of a vertex."""
        return self.names[vertex]

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """Be None in copies: NetworkX copies a graph with its cache of conversions."""
        return type(None), ()

    def values(self, result: Result, read: Reader = unchanged) -> dict[Any, Any]:
        """Return the values that `read` makes of a result, by node; None is left out."""
        answers = ((vertex, read(vertex, value)) for vertex, value in result.items())
        return {self.names[vertex]: value for vertex, value in answers if value is not None}

    def nodes_with(self, result: Result, read: Reader) -> set[Any]:
        """Return the nodes for which `read` returns a value, not None."""
        return set(self.values(result, read))

    def groups(self, result: Result) -> Iterator[set[Any]]:
        """Yield the sets of nodes of one value each."""
        groups: dict[Any, set[Any]] = {}
        for vertex, value in result.items():
            groups.setdefault(value, set()).add(self.names[vertex])
        return iter(groups.values())

    def group(self, result: Result, value: Any) -> set[Any]:
        """Return the set of nodes of one value."""
        return {self.names[vertex] for vertex, other in result.items() if other == value}


def operand(graph: Any) -> Operand:
    """Return a graph of the backend as an operand: a `brimful.Graph`, or a view of one.

    Raises:
        TypeError: The graph is another one, which NetworkX has not converted.
    """
    if isinstance(graph, Operand):
        return graph
    viewed = viewed_by(graph)
    if viewed is not None:
        return viewed
    if getattr(graph, "__networkx_backend__", None) != Operand.__networkx_backend__:
        raise TypeError(f"expected a graph of the backend brimful, found {type(graph).__name__}")
    return Operand(graph)


def viewed_by(graph: Any) -> Operand | None:
    """Return the graph that a NetworkX graph is a view of; None: it is none of brimful's."""
    viewed: Operand | None = getattr(graph, "__brimful__", None)
    return viewed
