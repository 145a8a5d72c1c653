"""Programs that change the graph on a Ray cluster: the states of one process."""

from __future__ import annotations

import pytest

import brimful as bf
from cluster.nodes import both

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(scope="module")
def graph(weighted: bf.Graph) -> bf.Graph:
    """The graph of all tests of this file, unless they name another."""
    return weighted


class Growing(bf.Pregel):
    """Vertices that are created by messages and requests, edges that change, and removals."""

    mutates = True

    def initial_value(self, vertex):  # type: ignore[no-untyped-def]
        return [0]

    def compute(self, vertex, messages):  # type: ignore[no-untyped-def]
        vertex.value = [*vertex.value, *messages]
        number = vertex.id
        if vertex.superstep == 0 and number % 3 == 0:
            # Several workers name the same new vertices.
            vertex.send(1000 + number % 7, number)
            vertex.send(2000 + number // 90, -number)
        if vertex.superstep == 1 and number % 10 == 1:
            vertex.request_remove_vertex(number + 1)
            vertex.request_add_edge(number, 5000 + number, 2.0)
        if vertex.superstep == 2 and number >= 1000:
            vertex.request_add_edge(number, 3, 1.0)
            vertex.send(3000 + number % 2, number)
        if vertex.superstep in (3, 4):
            vertex.send_to_all(number)
        if vertex.superstep == 5 and number % 7 == 5:
            vertex.request_remove_vertex(number)
        if vertex.superstep >= 5:
            vertex.vote_to_halt()


def test_vertices_are_created_and_removed_as_in_one_process(graph: bf.Graph) -> None:
    states = both(graph, Growing(), 3, store="bytes")
    assert 1003 in states and 3000 in states and 5 not in states


class Extends(bf.Program):
    """Distances, with an edge from each vertex of an odd distance to a new vertex."""

    mutates = True

    def initial_state(self, vertex):  # type: ignore[no-untyped-def]
        return 0 if vertex.id == 3 else 99

    def signal(self, source, target, weight):  # type: ignore[no-untyped-def]
        return source.state + 1 if source.state < 9 else None

    def collect(self, vertex, signals):  # type: ignore[no-untyped-def]
        found = min(vertex.state, *signals)
        if found % 2 == 1 and found < vertex.state:
            vertex.request_add_edge(vertex.id, 1000 + vertex.id % 50)
        return found


def test_programs_that_signal_change_the_graph_as_in_one_process(graph: bf.Graph) -> None:
    states = both(graph, Extends(), 2, store="bytes")
    assert {state for vertex, state in states.items() if vertex >= 1000} > {2}
