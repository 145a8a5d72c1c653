"""A NetworkX graph as a graph of brimful in a temporary directory.

Node number n is vertex n. One attribute of the edges becomes their weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from brimful.graph import Graph
from brimful.importing import from_object
from brimful.networkx.operand import Converted
from brimful.options.imports import ObjectOptions
from brimful.options.table import checked
from brimful.sizes import Budget
from brimful.tables import convert_in

#: Sums of integers up to this are exact in 64-bit floats.
_MOST_EXACT = 2**53


def converted(graph: Any, attributes: Mapping[Any, Any], budget: Budget) -> Converted:
    """Import a NetworkX graph; `attributes` has the edge attribute of weights, and its default.

    Raises:
        NotImplementedError: Several attributes are asked for, or weights that brimful cannot hold.
        BudgetError, StoreIoError: As `brimful.Graph.from_networkx`.
    """
    if len(attributes) > 1:
        raise NotImplementedError("brimful holds one attribute of edges, the weights")
    weight, default = next(iter(attributes.items()), (None, None))
    kinds = _kinds(graph, weight, default) if weight is not None else set()
    made = Converted(graph, weight, whole=kinds <= {int})
    if made.names:
        edges = convert_in.from_pairs(
            "the NetworkX graph",
            _edges(graph, made.numbers, weight if kinds else None, default),
            weighted=bool(kinds),
            undirected=not made.is_directed(),
            vertices=len(made.names),
        )
        made.imported = from_object(
            Graph, edges, checked(ObjectOptions, {"budget": budget}, "convert")
        )
    return made


def sole_attribute(graph: Any) -> dict[Any, Any]:
    """Return the edge attribute of a graph, if there is one, with a default that no edge needs.

    Raises:
        NotImplementedError: There are several, or some edges lack it, or edges have keys.
    """
    if graph.is_multigraph() and any(key != 0 for _, _, key in graph.edges(keys=True)):
        raise NotImplementedError("brimful holds no keys of parallel edges")
    names = {tuple(data) for _, _, data in graph.edges(data=True)}
    if len(names) > 1 or any(len(name) > 1 for name in names):
        raise NotImplementedError("brimful holds one attribute, and all edges have it or none")
    return {name: 1 for own in names for name in own}


def _edges(
    graph: Any, numbers: Mapping[Any, int], weight: Any, default: Any
) -> Iterator[tuple[Any, ...]]:
    """Yield the edges by the numbers of their ends, with weights if there is an attribute."""
    if weight is None:
        return ((numbers[source], numbers[target]) for source, target in graph.edges())
    edges = graph.edges(data=True)
    return ((numbers[u], numbers[v], data.get(weight, default)) for u, v, data in edges)


def _is_exact(weight: Any) -> bool:
    """Return whether a weight is a finite 64-bit float, without rounding."""
    if isinstance(weight, np.integer):
        weight = int(weight)  # NumPy would compare it as a float.
    try:
        exact: bool = float(weight) == weight and math.isfinite(weight)
    except OverflowError:  # An integer beyond all floats.
        return False
    return exact


def _kinds(graph: Any, weight: Any, default: Any) -> set[type]:
    """Return the types of the weights, `int` and `float`; none if no edge has the attribute.

    Raises:
        NotImplementedError: A weight is no finite 64-bit float, or sums of weights are not exact.
    """
    kinds: set[type] = set()
    total = 0
    for source, target, data in graph.edges(data=True):
        if weight not in data:
            continue
        value = data[weight]
        kind = int if isinstance(value, int | np.integer) else float
        if not isinstance(value, int | float | np.integer | np.floating) or not _is_exact(value):
            raise NotImplementedError(
                f"the edge from {source} to {target} has the {weight} {value!r}, and weights of "
                "brimful are finite 64-bit floats"
            )
        kinds.add(kind)
        total += abs(int(value))
    if kinds and not isinstance(default, int):
        kinds.add(float)
    if kinds == {int} and total + graph.number_of_edges() > _MOST_EXACT:
        raise NotImplementedError("sums of these weights are beyond 2**53 and would not be exact")
    return kinds
