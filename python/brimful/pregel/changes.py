"""Requests to change the graph, and their resolution before the next superstep.

Vertices request changes of any vertex; before the next superstep each vertex with requests is
resolved, in the order of Apache Giraph: edges are removed, then the vertex; it is added, or created
by a message to it or an edge from it; then edges are added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, SupportsIndex

from brimful.errors import UsageError
from brimful.ids import vertex_id
from brimful.options import checks
from brimful.wording import shortened

#: Pairs of target and value.
Edges = list[tuple[Any, Any]]

#: An outbox has None for all edges, so that no vertex is None.
UNNAMED = "name a vertex by its id, not None"

#: Kinds of signals to a vertex, as they travel.
MESSAGE, REMOVE_EDGES, REMOVE_VERTEX, ADD_VERTEX, ADD_EDGE = range(5)


@dataclass
class VertexData:
    """A vertex outside `compute`: its value and its edges.

    Attributes:
        value: The value.
        edges: Pairs of target and value.

    >>> import brimful as bf
    >>> bf.VertexData(7, [("b", 1.0)]).edges
    [('b', 1.0)]
    """

    value: Any
    edges: Edges = field(default_factory=list)


@dataclass
class VertexChanges:
    """The requests for one vertex.

    Attributes:
        removed_edges: Targets of edges to remove.
        is_removed: Whether the vertex is to be removed.
        added: Vertices to add, with value and edges.
        added_edges: Pairs of target and value of edges to add.
        has_messages: Whether messages wait for the vertex.

    >>> import brimful as bf
    >>> bf.VertexChanges(is_removed=True).added
    []
    """

    removed_edges: list[Any] = field(default_factory=list)
    is_removed: bool = False
    added: list[VertexData] = field(default_factory=list)
    added_edges: Edges = field(default_factory=list)
    has_messages: bool = False


@dataclass(frozen=True)
class NewVertex:
    """A vertex that is created, as the method that gives it a state receives it."""

    id: Any
    state: Any = None
    degree: int = 0
    signalled: Any = None
    has_signalled: bool = False
    superstep: int | None = None


def resolved(
    vertex: VertexData | None, changes: VertexChanges, make: Callable[[], VertexData | None]
) -> VertexData | None:
    """Return a vertex as the requests for it leave it; `make` creates a vertex for an edge."""
    if vertex is not None:
        for target in changes.removed_edges:
            vertex.edges = without(vertex.edges, target)
    if changes.is_removed:
        vertex = None
    if vertex is None and changes.added:
        vertex = changes.added[0]
    elif vertex is None and (changes.has_messages or changes.added_edges):
        vertex = make()
    if vertex is not None:
        vertex.edges = vertex.edges + changes.added_edges
    return vertex


def changes_of(signals: Iterable[tuple[int, Any]]) -> VertexChanges:
    """Return the requests among the signals to a vertex."""
    changes = VertexChanges()
    for kind, payload in signals:
        if kind == MESSAGE:
            changes.has_messages = True
        elif kind == REMOVE_EDGES:
            changes.removed_edges.append(payload)
        elif kind == REMOVE_VERTEX:
            changes.is_removed = True
        elif kind == ADD_VERTEX:
            value, edges = payload
            changes.added.append(VertexData(value, pairs(edges)))
        else:
            target, value = payload
            changes.added_edges.append((target, value))
    return changes


def pairs(edges: Iterable[Iterable[Any]]) -> Edges:
    """Return edges as pairs: a serializer may have made lists of them."""
    return [(target, value) for target, value in edges]


def named(vertex: Any) -> Any:
    """Return the id of a vertex that a program names.

    Raises:
        UsageError: It is None.
    """
    if vertex is None:
        raise UsageError(UNNAMED)
    return vertex


def named_pairs(edges: Any) -> Edges:
    """Return the edges that a program makes as pairs of target and value.

    Raises:
        UsageError: An edge is not such a pair, or its target is None.
    """
    return [(named(target), value) for target, value in _checked_pairs(edges, "value")]


def weighted_pairs(edges: Any) -> list[tuple[int | str, float]]:
    """Return the edges of a kept vertex: pairs of target and weight.

    Raises:
        UsageError: An edge is not such a pair, or its weight is not finite.
    """
    weighted = []
    for target, weight in _checked_pairs(edges, "number"):
        try:
            if isinstance(weight, str | bytes):
                raise TypeError
            number = float(weight)
        except (TypeError, ValueError, OverflowError):
            raise _no_edge((target, weight), "number") from None
        if not math.isfinite(number):
            raise UsageError(f"the weight of an edge must be finite, not {weight}")
        nearest = checks.rounded(weight) if isinstance(weight, SupportsIndex) else None
        if nearest is not None:
            raise UsageError(
                f"the weight of an edge is a float of 64 bits, and the nearest to {weight} is "
                f"{nearest}; pass that"
            )
        weighted.append((vertex_id(target), number))
    return weighted


def _checked_pairs(edges: Any, value: str) -> Iterator[tuple[Any, Any]]:
    if isinstance(edges, str | bytes) or not isinstance(edges, Iterable):
        raise UsageError(f"edges must be pairs of a target and a {value}, not {shortened(edges)}")
    for edge in edges:
        try:
            if isinstance(edge, str | bytes):
                raise TypeError
            target, own = edge
        except (TypeError, ValueError):
            raise _no_edge(edge, value) from None
        yield target, own


def _no_edge(edge: object, value: str) -> UsageError:
    return UsageError(f"an edge is a pair of a target and a {value}, not {shortened(edge)}")


def without(edges: Edges, target: Any) -> Edges:
    """Return the edges that lead elsewhere."""
    return [edge for edge in edges if edge[0] != target]


def addressed(outbox: list[Any], edges: Edges) -> list[Any]:
    """Return an outbox whose messages to all `edges`, with the target None, name each target."""
    named: list[Any] = []
    for target, message in zip(outbox[::2], outbox[1::2], strict=True):
        for one in [target] if target is not None else [to for to, _ in edges]:
            named += (one, message)
    return named
