"""Small graphs drawn by chance, and the graphs of brimful made of them."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import pyarrow as pa
from hypothesis import strategies as st

import brimful as bf
from oracle import Edge, arcs_of

SIGNED = st.integers(-(2**63), 2**63 - 1)
UNSIGNED = st.integers(0, 2**64 - 1)
SMALL = st.integers(0, 12)


def graph_of(
    edges: list[Edge],
    *,
    undirected: bool = False,
    vertices: int | None = None,
    weights: list[float] | None = None,
) -> bf.Graph:
    """Return a temporary graph of the edges."""
    wide = any(vertex >= 2**63 for edge in edges for vertex in edge)
    kind = pa.uint64() if wide else pa.int64()
    columns = {
        "source": pa.array([source for source, _ in edges], kind),
        "target": pa.array([target for _, target in edges], kind),
    }
    if weights is not None:
        columns["weight"] = pa.array(weights, pa.float64())
    return bf.Graph.from_arrow(pa.table(columns), undirected=undirected, vertices=vertices)


def values(result: bf.Result) -> dict[int, float]:
    """Return a result as a dictionary, in its own order."""
    table = result.to_arrow()
    return dict(zip(table["vertex"].to_pylist(), table[result.column].to_pylist(), strict=True))


@st.composite
def graphs(draw: st.DrawFn) -> list[Edge]:
    """Draw multigraphs with self-loops over few vertices whose ids lie anywhere in 64 bits."""
    ids = draw(
        st.one_of(
            st.lists(SIGNED, min_size=1, max_size=12, unique=True),
            st.lists(UNSIGNED, min_size=1, max_size=12, unique=True),
            st.lists(SMALL, min_size=1, max_size=12, unique=True),
        )
    )
    vertex = st.sampled_from(ids)
    return draw(st.lists(st.tuples(vertex, vertex), min_size=1, max_size=40))


@dataclass(frozen=True)
class Case:
    """A graph: edges, perhaps none, and the vertices that exist without them."""

    edges: list[Edge]
    declared: int
    undirected: bool

    @property
    def arcs(self) -> list[Edge]:
        """What is stored."""
        return arcs_of(self.edges, undirected=self.undirected)

    @property
    def vertices(self) -> list[int]:
        """All vertices, ascending."""
        return sorted(
            {vertex for edge in self.edges for vertex in edge} | set(range(self.declared))
        )

    def graph(self, weights: list[float] | None = None) -> bf.Graph:
        """Return the graph of brimful."""
        return graph_of(
            self.edges,
            undirected=self.undirected,
            vertices=self.declared or None,
            weights=weights,
        )

    def networkx(self, weights: list[float] | None = None) -> nx.MultiDiGraph:
        """Return the graph of NetworkX."""
        graph = nx.MultiDiGraph()
        graph.add_nodes_from(self.vertices)
        for (source, target), weight in zip(
            self.edges, weights or [1.0] * len(self.edges), strict=True
        ):
            graph.add_edge(source, target, weight=weight)
            if self.undirected and source != target:
                graph.add_edge(target, source, weight=weight)
        return graph


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw graphs of at least one vertex: wide ids, or isolated vertices, or no edge at all."""
    undirected = draw(st.booleans())
    if draw(st.booleans()):
        return Case(draw(graphs()), 0, undirected)
    vertex = st.integers(0, draw(st.integers(0, 15)))
    edges = draw(st.lists(st.tuples(vertex, vertex), max_size=40))
    return Case(edges, draw(st.integers(1, 16)), undirected)


def source_of(case: Case, data: st.DataObject) -> int:
    return data.draw(st.sampled_from(case.vertices), label="source")


def sources_of(case: Case, data: st.DataObject) -> list[int]:
    some = st.lists(st.sampled_from(case.vertices), min_size=1, max_size=4)
    return data.draw(some, label="sources")
