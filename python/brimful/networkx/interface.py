"""The interface that NetworkX loads: conversions, functions by name, and refusals."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import networkx as nx

from brimful.errors import BrimfulError
from brimful.graph import Graph
from brimful.networkx.convert import converted, sole_attribute
from brimful.networkx.function import Function
from brimful.networkx.info import FUNCTIONS
from brimful.networkx.operand import Operand, operand, viewed_by
from brimful.networkx.views import view


class Backend:
    """The entry point `brimful` of the group `networkx.backends`."""

    def __getattr__(self, name: str) -> Function:
        """Return a function of the backend; its module loads when first used.

        Raises:
            AttributeError: The backend has no such function.
        """
        if name not in FUNCTIONS:
            raise AttributeError(f"the backend brimful has no function '{name}'")
        function: Function = getattr(
            import_module(f"brimful.networkx.functions.{FUNCTIONS[name]}"), name
        )
        return function

    @staticmethod
    def convert_from_nx(
        graph: Any,
        *,
        edge_attrs: dict[Any, Any] | None = None,
        node_attrs: dict[Any, Any] | None = None,
        preserve_edge_attrs: bool = False,
        preserve_node_attrs: bool = False,
        preserve_graph_attrs: bool = False,
        name: str | None = None,
        graph_name: str | None = None,
    ) -> Operand:
        """Import a NetworkX graph within `networkx.config.backends.brimful.budget`.

        A view of a graph of brimful is that graph.

        Raises:
            NotImplementedError: The call needs attributes that brimful does not hold.
        """
        if (viewed := viewed_by(graph)) is not None:
            return viewed
        if (node_attrs or preserve_node_attrs) and any(data for _, data in graph.nodes(data=True)):
            raise NotImplementedError("brimful holds no attributes of nodes")
        attributes = sole_attribute(graph) if preserve_edge_attrs else edge_attrs or {}
        try:
            return converted(graph, attributes, nx.config.backends.brimful.budget)
        except (BrimfulError, OSError, MemoryError):
            _let_retry(graph)
            raise

    @staticmethod
    def convert_to_nx(answer: Any) -> Any:
        """Return a graph of the backend as a view of NetworkX's classes; other answers stay."""
        return view(operand(answer)) if isinstance(answer, Graph | Operand) else answer

    def can_run(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
        """Return whether a function takes these arguments, or the reason why not."""
        function: Function = getattr(self, name)
        call = inspect.signature(function).bind(*args, **kwargs)
        call.apply_defaults()
        for refusal in function.refusals:
            if reason := refusal(call.arguments):
                return reason
        return True

    def should_run(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
        """Return whether converting a NetworkX graph pays for this call, or why not."""
        function: Function = getattr(self, name)
        graph = inspect.signature(function).bind(*args, **kwargs).arguments["G"]
        least = nx.config.backends.brimful.least_edges
        cache = getattr(graph, "__networkx_cache__", None) or {}
        if viewed_by(graph) is not None:
            return "the graph is a view of brimful's, for code that looks edges up"
        if cache.get("backends", {}).get("brimful"):
            return True
        if function.reads != "often":
            return "a conversion takes longer than this function in NetworkX"
        if graph.number_of_edges() < least:
            return f"the graph has fewer than {least} edges (networkx.config.backends.brimful)"
        return True


def _let_retry(graph: Any) -> None:
    """Let NetworkX convert a graph again, although this conversion fails.

    It would refuse the graph from now on, by a note in the dictionary of its conversions, which it
    has at hand: the graph gets a copy. Another budget, or a free disk, may be all that it needs.
    """
    conversions = (getattr(graph, "__networkx_cache__", None) or {}).get("backends", {})
    if "brimful" in conversions:
        conversions["brimful"] = conversions["brimful"].copy()


BACKEND = Backend()
