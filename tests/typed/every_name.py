"""Uses every exported name; a name without a type is an `object`, which a type checker refuses."""

from collections.abc import Callable
from typing import ClassVar

import numpy as np

import brimful as bf


def analyze(graph: bf.Graph) -> list[bf.Result]:
    forecast: bf.Forecast = bf.plan(graph, "pagerank", budget="500M")
    assert forecast.fits, bf.__version__.upper()
    by_graph: list[Callable[[bf.Graph], bf.Result]] = [
        bf.articulation_points,
        bf.betweenness,
        bf.bipartite,
        bf.closeness,
        bf.clustering,
        bf.color,
        bf.connected_components,
        bf.degrees,
        bf.eigenvector,
        bf.harmonic,
        bf.hits,
        bf.katz,
        bf.kcore,
        bf.label_propagation,
        bf.leiden,
        bf.louvain,
        bf.maximal_independent_set,
        bf.pagerank,
        bf.scc,
        bf.spanning_forest,
        bf.topological_order,
        bf.triangles,
    ]
    tables: list[Callable[[bf.Graph], bf.Rows]] = [
        bf.bridges,
        bf.diameter,
        bf.edge_betweenness,
        bf.effective_diameter,
        bf.fastrp,
        bf.ktruss,
        bf.leiden_hierarchy,
        bf.louvain_hierarchy,
        bf.random_walks,
        bf.similarity,
    ]
    print(bf.distances(graph, 1).columns, bf.eccentricity(graph, [1]).columns)
    print([one(graph).columns for one in tables])
    by_source: list[Callable[[bf.Graph, int], bf.Result]] = [bf.bfs, bf.count_paths, bf.sssp]
    print(bf.modularity(bf.louvain(graph)), bf.conductance(bf.leiden(graph)).column)
    return [one(graph) for one in by_graph] + [one(graph, 7) for one in by_source]


def look(graph: bf.Graph, path: str) -> bf.Report:
    saved = bf.SavedResult(path)
    found: bf.Comparison = bf.compare(saved, bf.pagerank(graph), tolerance=0.1)
    way: list[object] | None = graph.shortest_path(1, 2, weighted=True, budget="1G")
    print(found.equal, way, saved.join(path, on="id").num_rows, saved.top(1))
    records: bf.Records = bf.run(graph, Degree(), on="shards")  # type: ignore[assignment]
    print(records.column)
    return graph.report(around=[1])


class Degree(bf.Program):
    def initial_state(self, vertex: bf.Vertex) -> int:
        return vertex.degree

    def signal(self, source: bf.Vertex, target: object, weight: float) -> None:
        return None

    def collect(self, vertex: bf.Vertex, signals: list[object]) -> object:
        return vertex.state


class Largest(bf.Pregel):
    aggregators: ClassVar = {"largest": bf.Aggregator("max", 0)}

    def initial_value(self, vertex: bf.Vertex) -> int:
        return vertex.degree

    def master_compute(self, master: bf.Master) -> None:
        master.halt()

    def worker_context(self) -> bf.WorkerContext:
        return bf.WorkerContext()

    def resolve(
        self, id: object, vertex: bf.VertexData | None, changes: bf.VertexChanges
    ) -> bf.VertexData | None:
        return super().resolve(id, vertex, changes)

    def compute(self, vertex: bf.PregelVertex, messages: list[int]) -> None:
        vertex.send_to_all(vertex.value)


def grow(store: bf.VertexStore) -> float:
    store.add_edge(1, 2, 0.5)
    return sum(weight for _, weight in store.edges(1))


def collect(states: bf.States) -> int:
    with bf.Box("box", "f8") as box, bf.Bag("bag") as bag, bf.Map("map") as words:
        box.extend(np.zeros(3))
        bag.append(b"one")
        words["one"] = b"1"
    with bf.FrequencyCounter("counter") as counter, bf.MembershipSet("set") as members:
        counter.add(1)
        members.add(1)
    with bf.BloomFilter("filter", 100) as maybe, bf.Lists("lists", 3) as lists:
        maybe.add(1)
        lists.append_many([0], [1])
    cache: bf.SpillingDict[str, int] = bf.SpillingDict(10)
    cache["one"] = 1
    names: list[int | str] = [bf.id_name(vertex) for vertex in states]
    assert [bf.id_of_name(name) for name in names] == list(states)
    return len(states) + sum(len(numbers) for numbers in bf.sort([[3, 1, 2]]))


def careful() -> bf.BrimfulError | None:
    try:
        with bf.read("edges.txt") as graph:
            analyze(graph)
            collect(bf.run(graph, Degree()))
    except bf.BudgetError as error:
        print(error.needed_bytes)
    except bf.WorkerLostError as error:
        print(error.errno)
    except bf.StoreIoError as error:
        print(error.errno)
    except bf.ProgramError as error:
        print(error.vertex)
    except (bf.RecordIdError, bf.NotFoundError, bf.MissingPackageError) as error:
        return error
    except (bf.InputError, bf.UsageError, bf.CorruptError) as error:
        return error
    return None
