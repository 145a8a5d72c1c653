"""Searches and counts of paths against NetworkX, on small graphs drawn by chance.

The graphs are those of `strategies.cases`.
"""

from __future__ import annotations

from collections import Counter

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brimful as bf
from strategies import Case, cases, graph_of, source_of, sources_of, values


def levels_of(case: Case, sources: list[int]) -> dict[int, int]:
    ways = nx.multi_source_dijkstra_path_length(case.networkx(), set(sources), weight=lambda *_: 1)
    return dict(ways)


@given(case=cases(), data=st.data())
def test_bfs(case: Case, data: st.DataObject) -> None:
    sources = sources_of(case, data)
    levels = levels_of(case, sources)
    with case.graph() as graph:
        assert values(bf.bfs(graph, sources)) == {v: levels.get(v) for v in case.vertices}
        parents = values(bf.bfs(graph, sources, values="parent"))
        limited = values(bf.bfs(graph, sources, max_supersteps=2))
    nearer: dict[int, int] = {source: source for source in sources}
    for parent, child in sorted(case.arcs):
        if parent in levels and levels[child] == levels[parent] + 1:
            nearer.setdefault(child, parent)
    assert parents == {vertex: nearer.get(vertex) for vertex in case.vertices}
    near = {vertex: level for vertex, level in levels.items() if level <= 2}
    assert limited == {vertex: near.get(vertex) for vertex in case.vertices}


@given(case=cases(), data=st.data())
def test_sssp(case: Case, data: st.DataObject) -> None:
    sources = sources_of(case, data)
    size = len(case.edges)
    # Quarters add up without rounding.
    quarters = st.lists(st.integers(0, 40), min_size=size, max_size=size)
    weights = [number / 4 for number in data.draw(quarters, label="weights in quarters")]
    reach = nx.multi_source_dijkstra_path_length(case.networkx(weights), set(sources))
    hops = levels_of(case, sources)
    with case.graph(weights) as graph:
        assert values(bf.sssp(graph, sources)) == {v: hops.get(v) for v in case.vertices}
        if size:
            result = bf.sssp(graph, sources, weighted=True)
            assert values(result) == {v: reach.get(v) for v in case.vertices}


@given(case=cases(), data=st.data(), length=st.integers(0, 5))
def test_count_paths(case: Case, data: st.DataObject, length: int) -> None:
    source = source_of(case, data)
    arcs = Counter(case.arcs)
    levels = nx.single_source_shortest_path_length(case.networkx(), source)
    shortest = Counter({source: 1})
    for vertex in sorted(levels, key=lambda vertex: levels[vertex]):
        for (parent, child), count in arcs.items():
            if parent == vertex and levels[child] == levels[vertex] + 1:
                shortest[child] += count * shortest[vertex]
    walks = Counter({source: 1})
    for _ in range(length):
        step: Counter[int] = Counter()
        for (parent, child), count in arcs.items():
            step[child] += count * walks[parent]
        walks = step
    with case.graph() as graph:
        found = values(bf.count_paths(graph, source))
        assert found == {vertex: shortest[vertex] for vertex in case.vertices}
        found = values(bf.count_paths(graph, source, length=length))
        assert found == {vertex: walks[vertex] for vertex in case.vertices}


def test_too_many_paths_are_an_error() -> None:
    with graph_of([(0, 0), (0, 0)]) as graph:
        assert values(bf.count_paths(graph, 0, length=63)) == {0: 2**63}
        with pytest.raises(bf.ProgramError, match="more than 2\\^64 - 2 paths"):
            bf.count_paths(graph, 0, length=64)
