"""The common base of the backend's functions: refused arguments, and functions of NetworkX."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, cast

import networkx as nx

from brimful.networkx.operand import operand
from brimful.networkx.views import view

#: A function that takes the arguments of a call by name, and returns a reason to refuse them.
Refusal = Callable[[Mapping[str, Any]], str | None]
#: How often NetworkX reads the edges for a function: those of few nodes, all about once, or all
#: often. Only the last takes longer than converting the graph.
Reads = Literal["few", "once", "often"]
#: Parameters that name an edge attribute of weights.
_WEIGHTS = ("weight", "distance")


class Function(Protocol):
    """A function of the backend, with the signature of NetworkX's function of its name."""

    #: Checks that refuse arguments the function does not take.
    refusals: tuple[Refusal, ...]
    #: How often NetworkX reads the edges for the function.
    reads: Reads

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on graphs of the backend."""


def function(*refusals: Refusal, reads: Reads = "once") -> Callable[[Callable[..., Any]], Function]:
    """Return a decorator that makes a function of the backend."""

    def make(run: Callable[..., Any]) -> Function:
        made = cast(Function, run)
        # Code that looks edges up calls a weight function itself.
        made.refusals = refusals if reads == "few" else (_weight_function, *refusals)
        made.reads = reads
        return made

    return make


def borrowed(original: Any, *refusals: Refusal, reads: Reads = "once") -> Function:
    """Return NetworkX's own function, run on a view of a graph of brimful.

    One that reads few edges looks them up. The others consist of functions that run in brimful.
    """

    @functools.wraps(original.orig_func)
    def run(G: Any, *args: Any, **kwargs: Any) -> Any:
        return original.orig_func(view(operand(G), dispatched=reads != "few"), *args, **kwargs)

    return function(*refusals, reads=reads)(run)


def given(parameter: str, reason: str) -> Refusal:
    """Return a refusal of an argument other than None."""
    return lambda call: None if call[parameter] is None else reason


def directed(reason: str) -> Refusal:
    """Return a refusal of a directed graph."""
    return lambda call: reason if call["G"].is_directed() else None


def _weight_function(call: Mapping[str, Any]) -> str | None:
    if any(callable(call.get(name)) for name in _WEIGHTS):
        return "a weight is an edge attribute, not a function"
    return None


def require_node(graph: Any, node: Any, message: str) -> None:
    """Refuse a node that the graph does not have.

    Raises:
        NodeNotFound: With the message.
    """
    if node not in graph:
        raise nx.NodeNotFound(message)


def require_sources(graph: Any, sources: Any) -> None:
    """Refuse an empty set of sources, and sources that the graph does not have.

    Raises:
        ValueError: There are none.
        NodeNotFound: The graph does not have one of them.
    """
    if not sources:
        raise ValueError("sources must not be empty")
    for source in sources:
        require_node(graph, source, f"Node {source} not found in graph")
