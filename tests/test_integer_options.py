"""Truth values are not integers: every public function refuses one where it takes an integer."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import brimful as bf

#: Options that every function with the keyword takes, tested with one.
SHARED = {"threads", "budget", "checkpoint_every", "workers", "max_supersteps"}
#: Objects that brimful makes, and errors.
MADE = {"Comparison", "Forecast", "Graph.__init__", "Master", "ProgramError", "BudgetError"}
MADE |= {"StoreIoError", "WorkerLostError"}


def takes_integer(kind: Any) -> bool:
    """Return whether a type is an integer, or a choice that has one."""
    parts = typing.get_args(kind)
    is_choice = typing.get_origin(kind) in (typing.Union, types.UnionType)
    return kind is int or (is_choice and any(map(takes_integer, parts)))


def functions() -> Iterator[tuple[str, Any]]:
    """Yield the public functions and methods, and the constructors of public classes."""
    for name in bf.__all__:
        value = getattr(bf, name)
        if not inspect.isclass(value):
            if callable(value):
                yield name, value
            continue
        for method, member in inspect.getmembers(value, inspect.isroutine):
            if method == "__init__" or not method.startswith("_"):
                yield f"{name}.{method}", member


def integer_arguments() -> set[str]:
    """Return `function(argument)` for every argument that is an integer, shared options once."""
    found = set()
    for name, function in functions():
        if name in MADE or name.partition(".")[0] in MADE:
            continue
        for argument, kind in typing.get_type_hints(function).items():
            parts = typing.get_args(kind)
            if argument == "return":
                continue
            if typing.get_origin(kind) is typing.Unpack:
                table = typing.get_type_hints(parts[0])
                some = {one for one, its in table.items() if takes_integer(its)}
                found |= {one if one in SHARED else f"{name}({one})" for one in some}
            elif takes_integer(kind):
                found.add(argument if argument in SHARED else f"{name}({argument})")
    return found


class Things:
    """One object of every kind whose methods take integers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.table = pa.table({"source": [0, 1, 2], "target": [1, 2, 0]})
        self.graph = bf.Graph.from_arrow(self.table, path=folder / "g.brimful")
        self.result = bf.degrees(self.graph)
        self.result.write(folder / "r.parquet")
        self.saved = bf.SavedResult(folder / "r.parquet")
        self.rows = bf.random_walks(self.graph, length=2)
        self.store = bf.VertexStore.create(f"file:{folder}/kept", self.graph)
        self.states = bf.run(self.graph, Still())
        self.box = bf.Box(folder / "box", dtype=np.int64)
        self.box.extend(np.arange(3))
        self.bag: bf.Bag[str] = bf.Bag(folder / "bag", serializer="str")
        self.bag.append("a")
        self.counter = bf.FrequencyCounter(folder / "counter")


class Still(bf.Program):
    """Keeps the state True."""

    def initial_state(self, vertex: bf.Vertex) -> Any:
        return True

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> None:
        return None

    def collect(self, vertex: bf.Vertex, signals: list[Any]) -> Any:
        return vertex.state


#: A call for each integer argument.
CALLS: dict[str, Callable[[Things], object]] = {
    "Bag.append_to(id)": lambda at: at.bag.append_to(True, "b"),
    "Bag.fetch(id)": lambda at: at.bag.fetch(True),
    "Bag.fetch_range(start)": lambda at: at.bag.fetch_range(True, 0),
    "Bag.fetch_range(count)": lambda at: at.bag.fetch_range(0, True),
    "Bag.remove(id)": lambda at: at.bag.remove(True),
    "Bag.store(id)": lambda at: at.bag.store(True, "b"),
    "BloomFilter.__init__(keys)": lambda at: bf.BloomFilter(at.folder / "bloom", True),
    "BloomFilter.add(key)": lambda at: bf.BloomFilter(at.folder / "filter", 10).add(True),
    "Box.fetch(id)": lambda at: at.box.fetch(True),
    "Box.fetch_range(start)": lambda at: at.box.fetch_range(True, 1),
    "Box.fetch_range(count)": lambda at: at.box.fetch_range(0, True),
    "Box.resize(length)": lambda at: at.box.resize(True),
    "Box.store(id)": lambda at: at.box.store(True, 1),
    "Box.store_range(start)": lambda at: at.box.store_range(True, [1]),
    "FrequencyCounter.add(key)": lambda at: at.counter.add(True),
    "FrequencyCounter.top(count)": lambda at: at.counter.top(True),
    "Graph.degree(vertex)": lambda at: at.graph.degree(True),
    "Graph.ego(hops)": lambda at: at.graph.ego(0, True),
    "Graph.ego(vertex)": lambda at: at.graph.ego(True),
    "Graph.in_degree(vertex)": lambda at: at.graph.in_degree(True),
    "Graph.in_neighbors(vertex)": lambda at: at.graph.in_neighbors(True),
    "Graph.neighbors(vertex)": lambda at: at.graph.neighbors(True),
    "Graph.out_degree(vertex)": lambda at: at.graph.out_degree(True),
    "Graph.report(around)": lambda at: at.graph.report(around=True),
    "Graph.shortest_path(source)": lambda at: at.graph.shortest_path(True, 0),
    "Graph.shortest_path(target)": lambda at: at.graph.shortest_path(0, True),
    "Graph.shortest_paths(k)": lambda at: at.graph.shortest_paths(0, 1, k=True),
    "Graph.shortest_paths(source)": lambda at: at.graph.shortest_paths(True, 0),
    "Graph.shortest_paths(target)": lambda at: at.graph.shortest_paths(0, True),
    "Lists.__init__(count)": lambda at: bf.Lists(at.folder / "lists", True),
    "MembershipSet.add(key)": lambda at: bf.MembershipSet(at.folder / "set").add(True),
    "MembershipSet.discard(key)": lambda at: bf.MembershipSet(at.folder / "set2").discard(True),
    "Records.get(vertex)": lambda at: at.saved.get(True),
    "Records.report(around)": lambda at: at.result.report(graph=at.graph, around=True),
    "Records.top(n)": lambda at: at.result.top(True),
    "Result.get(vertex)": lambda at: at.result.get(True),
    "Result.report(around)": lambda at: at.result.report(graph=at.graph, around=True),
    "Result.top(n)": lambda at: at.result.top(True),
    "Rows.top(n)": lambda at: at.rows.top(True),
    "SavedResult.get(vertex)": lambda at: at.saved.get(True),
    "SavedResult.report(around)": lambda at: at.saved.report(graph=at.graph, around=True),
    "SavedResult.top(n)": lambda at: at.saved.top(True),
    "SpillingDict.__init__(limit)": lambda at: bf.SpillingDict(True, folder=at.folder),
    "States.get(vertex)": lambda at: at.states.get(True),
    "States.report(around)": lambda at: at.states.report(graph=at.graph, around=True),
    "States.top(n)": lambda at: at.states.top(True),
    "VertexStore.add_edge(source)": lambda at: at.store.add_edge(True, 0),
    "VertexStore.add_edge(target)": lambda at: at.store.add_edge(0, True),
    "VertexStore.add_edges(source)": lambda at: at.store.add_edges(True, []),
    "VertexStore.add_vertex(vertex)": lambda at: at.store.add_vertex(True),
    "VertexStore.edges(vertex)": lambda at: at.store.edges(True),
    "VertexStore.get(vertex)": lambda at: at.store.get(True),
    "VertexStore.remove_edges(source)": lambda at: at.store.remove_edges(True, 0),
    "VertexStore.remove_edges(target)": lambda at: at.store.remove_edges(0, True),
    "VertexStore.remove_vertex(vertex)": lambda at: at.store.remove_vertex(True),
    "VertexStore.report(around)": lambda at: at.store.report(graph=at.graph, around=True),
    "VertexStore.top(n)": lambda at: at.store.top(True),
    "betweenness(samples)": lambda at: bf.betweenness(at.graph, samples=True),
    "bfs(source)": lambda at: bf.bfs(at.graph, source=True),
    "budget": lambda at: bf.pagerank(at.graph, budget=True),
    "checkpoint_every": lambda at: bf.pagerank(at.graph, checkpoint_every=True),
    "compare(top)": lambda at: bf.compare(at.result, at.result, top=True),
    "count_paths(length)": lambda at: bf.count_paths(at.graph, source=0, length=True),
    "count_paths(source)": lambda at: bf.count_paths(at.graph, source=True),
    "diameter(source)": lambda at: bf.diameter(at.graph, source=True),
    "distances(source)": lambda at: bf.distances(at.graph, source=True),
    "eccentricity(source)": lambda at: bf.eccentricity(at.graph, source=True),
    "edge_betweenness(samples)": lambda at: bf.edge_betweenness(at.graph, samples=True),
    "fastrp(dimensions)": lambda at: bf.fastrp(at.graph, dimensions=True),
    "fastrp(seed)": lambda at: bf.fastrp(at.graph, seed=True),
    "leiden(iterations)": lambda at: bf.leiden(at.graph, iterations=True),
    "leiden(levels)": lambda at: bf.leiden(at.graph, levels=True),
    "louvain(iterations)": lambda at: bf.louvain(at.graph, iterations=True),
    "louvain(levels)": lambda at: bf.louvain(at.graph, levels=True),
    "max_supersteps": lambda at: bf.pagerank(at.graph, max_supersteps=True),
    "pagerank(source)": lambda at: bf.pagerank(at.graph, source=True),
    "plan(cluster)": lambda at: bf.plan(at.graph, "pagerank", cluster=True),
    "plan(source)": lambda at: bf.plan(at.graph, "bfs", source=True),
    "random_walks(length)": lambda at: bf.random_walks(at.graph, length=True),
    "random_walks(seed)": lambda at: bf.random_walks(at.graph, seed=True),
    "random_walks(walks)": lambda at: bf.random_walks(at.graph, walks=True),
    "read(source)": lambda at: bf.read(at.table, source=True),
    "read(target)": lambda at: bf.read(at.table, target=True),
    "read(vertices)": lambda at: bf.read(at.table, vertices=True),
    "read(weight)": lambda at: bf.read(at.table, weight=True),
    "similarity(k)": lambda at: bf.similarity(at.graph, k=True),
    "sssp(source)": lambda at: bf.sssp(at.graph, source=True),
    "threads": lambda at: bf.pagerank(at.graph, threads=True),
    "workers": lambda at: bf.pagerank(at.graph, cluster="local:2", workers=True),
}
for _maker in ("from_arrow", "from_pandas", "from_polars"):
    for _option in ("source", "target", "vertices", "weight"):
        CALLS[f"Graph.{_maker}({_option})"] = lambda at, maker=_maker, option=_option: getattr(
            bf.Graph, maker
        )(at.table, **{option: True})


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> Things:
    return Things(tmp_path_factory.mktemp("integers"))


def test_every_integer_argument_has_a_call() -> None:
    assert integer_arguments() == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_a_truth_value_is_no_integer(things: Things, name: str) -> None:
    if name.endswith(".get(vertex)"):
        assert CALLS[name](things) is None
        return
    # As of any other id of a wrong type, there is no such vertex.
    refusals = bf.UsageError, bf.NotFoundError, TypeError
    with pytest.raises(refusals, match=r"not True|not a truth value|not bool|no vertex True"):
        CALLS[name](things)
