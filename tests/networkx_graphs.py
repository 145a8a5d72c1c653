"""Graphs of NetworkX, and its answers in a form that can be compared."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Set
from typing import Any

import networkx as nx
import pytest

KINDS = [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]


@pytest.fixture(autouse=True)
def no_warning_of_the_cache() -> Iterator[None]:
    """NetworkX warns whenever it uses a conversion again."""
    with nx.config(warnings_to_ignore={"cache"}):
        yield


def made(kind: type[Any], *, weighted: bool = False, loops: bool = True, seed: int = 1) -> Any:
    """A graph of integers with a hub, an isolated node, and two components or more."""
    chance = random.Random(seed)
    graph = kind()
    graph.add_nodes_from(range(0, 60, 2))
    edges = []
    for _ in range(70):
        ends = [chance.choice([4, *range(0, 50, 2)]) for _ in range(2)]
        edges.append((*ends, {"weight": chance.randrange(1, 9) / 4} if weighted else {}))
    # A view numbers parallel edges in the order of their weights.
    for source, target, data in sorted(edges, key=lambda edge: edge[2].get("weight", 1)):
        if loops or source != target:
            graph.add_edge(source, target, **data)
    return graph


def plain(answer: Any) -> Any:
    """An answer made of dictionaries, tuples and lists in a fixed order."""
    if isinstance(answer, Mapping):
        return {key: plain(answer[key]) for key in sorted(answer, key=repr)}
    if isinstance(answer, tuple):
        return tuple(plain(one) for one in answer)
    if isinstance(answer, Iterator):
        return sorted((plain(one) for one in answer), key=repr)
    return sorted(answer, key=repr) if isinstance(answer, Set) else answer


def near(answer: Any) -> Any:
    """What is equal to an answer within the tolerance of a sum."""
    if isinstance(answer, dict):
        return {key: near(value) for key, value in answer.items()}
    if isinstance(answer, tuple | list):
        return type(answer)(near(one) for one in answer)
    return pytest.approx(answer, rel=1e-9) if isinstance(answer, float) else answer
