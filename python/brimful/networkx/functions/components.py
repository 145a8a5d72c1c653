"""Connected components: those of undirected graphs, and the weak and strong ones of directed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from typing import Any

import networkx as nx

from brimful import algorithms
from brimful.networkx.answers import count_groups
from brimful.networkx.function import Function, function
from brimful.networkx.operand import operand
from brimful.result import Result

_Find = Callable[..., Result]


def _yielding(find: _Find) -> Function:
    """Return the function that yields the components that `find` labels."""

    @function()
    def components(G: Any) -> Iterator[Set[Any]]:
        graph = operand(G)
        return graph.groups(find(graph.graph)) if len(graph) else iter(())

    return components


def _counting(find: _Find) -> Function:
    """Return the function that counts the components that `find` labels."""

    @function()
    def number(G: Any) -> int:
        graph = operand(G)
        return count_groups(find(graph.graph)) if len(graph) else 0

    return number


def _testing_one(find: _Find) -> Function:
    """Return the function that says whether there is one component."""

    @function()
    def is_one(G: Any) -> bool:
        graph = operand(G)
        if len(graph) == 0:
            raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
        return count_groups(find(graph.graph)) == 1

    return is_one


connected_components = _yielding(algorithms.connected_components)
weakly_connected_components = connected_components
strongly_connected_components = _yielding(algorithms.scc)
number_connected_components = _counting(algorithms.connected_components)
number_weakly_connected_components = number_connected_components
number_strongly_connected_components = _counting(algorithms.scc)
is_connected = _testing_one(algorithms.connected_components)
is_weakly_connected = is_connected
is_strongly_connected = _testing_one(algorithms.scc)


@function()
def node_connected_component(G: Any, n: Any) -> Set[Any]:
    """Return the nodes that are connected with a node.

    Raises:
        KeyError: There is no such node.
    """
    graph = operand(G)
    vertex = graph.vertex(n)
    components = algorithms.connected_components(graph.graph)
    return graph.group(components, components[vertex])
