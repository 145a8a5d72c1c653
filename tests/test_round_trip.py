"""Export, then import: the same graph, or a refusal that names a format that holds it.

The same vertices, the same edges as often, the same direction and the same bits of every weight.
"""

from __future__ import annotations

import re
import struct
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brimful as bf

FORMATS = {
    "edgelist": "e.txt",
    "csv": "e.csv",
    "parquet": "e.parquet",
    "arrow": "e.arrow",
    "u32pairs": "e.u32",
    "mtx": "e.mtx",
    "metis": "e.metis",
    "graphalytics": "e.v",
}
COMPRESSED = ("edgelist", "csv", "u32pairs", "mtx", "metis")
COMPRESSIONS = ("", ".gz", ".xz", ".zst")


@dataclass(frozen=True)
class Facts:
    """A graph as it is compared."""

    vertices: frozenset[Any]
    edges: Counter[tuple[Any, ...]]
    directed: bool
    weighted: bool


def facts(graph: bf.Graph) -> Facts:
    columns = graph.to_arrow().to_pydict()
    ends = zip(columns["source"], columns["target"], strict=True)
    pairs = [pair if graph.directed else tuple(sorted(pair)) for pair in ends]
    bits = [struct.pack("<d", weight) for weight in columns.get("weight", [1.0] * len(pairs))]
    edges = Counter((*pair, weight) for pair, weight in zip(pairs, bits, strict=True))
    vertices = graph.vertex_ids().to_pylist()
    assert len(vertices) == len(set(vertices)) == graph.vertices
    return Facts(frozenset(vertices), edges, graph.directed, graph.weighted)


def written_and_read(graph: bf.Graph, name: str, compression: str = "") -> Facts | str:
    """Return the graph that comes back, or the sentence of the refusal."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / (FORMATS[name] + compression)
        try:
            assert graph.export(path) == graph.edges
        except bf.UsageError as error:
            assert list(Path(folder).iterdir()) == []
            return str(error)
        with bf.read([path]) as again:
            return facts(again)


def check(graph: bf.Graph, name: str, compression: str = "") -> None:
    expected, found = facts(graph), written_and_read(graph, name, compression)
    if isinstance(found, str):
        advice = re.findall(r"export as ([a-z, 0-9]+)", found)[-1]
        named = [other for other in FORMATS if other in advice]
        assert named and name not in named, found
        for other in named:
            assert written_and_read(graph, other) == expected, f"{other}, as advised: {found}"
        return
    assert found == expected, name


def ids() -> st.SearchStrategy[Any]:
    """Kinds of ids: a strategy for one id of each kind."""
    words = st.text(
        st.sampled_from([*"ab#%,;\t |\"'\n\r\\=", "0", "1", "-", "é", "\u2028", "𝄞", "\ufeff"]),
        max_size=4,
    )
    return st.sampled_from(
        [
            st.integers(0, 6),
            st.integers(1, 6),
            st.sampled_from([0, 5, 2**32 - 1, 2**32, 2**62, 2**63 - 1]),
            st.sampled_from([-(2**63), -7, -1, 0, 3]),
            st.sampled_from([0, 1, 2**63, 2**64 - 1]),
            st.sampled_from(["1", "02", "2", "-3", "10"]),
            st.sampled_from(["a", "b", "vertex", "#x", "x#", "null", "NaN"]),
            words,
        ]
    )


WEIGHTS = st.one_of(
    st.integers(1, 9).map(float),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 5e-324, 1.7976931348623157e308, 0.1]),
)


@st.composite
def graphs(draw: st.DrawFn) -> nx.MultiDiGraph:
    """A graph of NetworkX with at least a vertex; weights on all edges or on none."""
    vertex = draw(ids())
    made = draw(st.sampled_from([nx.MultiDiGraph, nx.MultiGraph]))()
    made.add_nodes_from(draw(st.lists(vertex, min_size=1, max_size=6)))
    edges = draw(st.lists(st.tuples(vertex, vertex), max_size=12))
    if draw(st.booleans()):
        edges += edges[:1]
    if draw(st.booleans()):
        made.add_weighted_edges_from((*edge, draw(WEIGHTS)) for edge in edges)
    else:
        made.add_edges_from(edges)
    return made


def try_every_format(made: nx.MultiDiGraph, compression: str) -> None:
    with bf.Graph.from_networkx(made) as graph:
        assert facts(graph).vertices == frozenset(made.nodes)
        for name in FORMATS:
            check(graph, name, compression if name in COMPRESSED else "")


@pytest.mark.parametrize("last", [2**63 - 1, 2**63, 2**64 - 1, -1])
def test_the_last_vertices_come_back(last: int) -> None:
    made = nx.MultiDiGraph()
    made.add_nodes_from([last - 1, last])
    try_every_format(made, "")


@given(graphs(), st.sampled_from(COMPRESSIONS))
def test_any_graph_comes_back(made: nx.MultiDiGraph, compression: str) -> None:
    try_every_format(made, compression)
