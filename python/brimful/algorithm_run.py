"""The run of an algorithm of the registry, which each function of the Python API is a call of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from brimful.catalog import algorithms, asked
from brimful.graph import GraphLike, as_graph
from brimful.io.ingest import Resources
from brimful.options.runs import AlgorithmOptions, CheckpointOptions
from brimful.options.table import WorkOptions, checked, picked
from brimful.reporting import shows_progress
from brimful.result import Result, computed


@shows_progress
def run_algorithm(
    graph: GraphLike,
    algorithm: str,
    params: Mapping[str, object],
    **given: Unpack[AlgorithmOptions],
) -> Result:
    """Run an algorithm with parameters of its own and options that several take.

    Raises:
        UsageError: It does not take one of them.
    """
    own = [str(one["name"]) for one in algorithms()[algorithm]["parameters"]]
    options = checked(AlgorithmOptions, given, algorithm, own)
    wanted = asked(algorithm, params, options)
    resources = Resources(**picked(WorkOptions, options))
    known = as_graph(graph, resources)
    return computed(known.native, wanted, resources.on(known), picked(CheckpointOptions, options))
