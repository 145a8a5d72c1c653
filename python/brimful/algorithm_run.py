"""Runs an algorithm of the registry; each function of the Python API calls this module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from brimful.catalog import algorithm_request, algorithms
from brimful.io.source import input_files
from brimful.opening import GraphLike, as_graph
from brimful.options.runs import AlgorithmOptions, CheckpointOptions
from brimful.options.table import WorkOptions, checked, picked
from brimful.reporting import shows_progress
from brimful.resources import Resources
from brimful.result import Result, computed
from brimful.rows import Rows, computed_rows


@shows_progress
def run_algorithm(
    graph: GraphLike,
    algorithm: str,
    params: Mapping[str, object],
    /,
    **given: Unpack[AlgorithmOptions],
) -> Result:
    """Run an algorithm with its own parameters and shared options.

    Raises:
        UsageError: The algorithm does not take one of the options.
    """
    options = _checked(algorithm, given)
    request = algorithm_request(algorithm, params, options)
    resources = Resources(**picked(WorkOptions, options))
    opened = as_graph(graph, resources)
    checkpoints = picked(CheckpointOptions, options)
    return computed(opened.native, request, resources.on(opened), checkpoints)


@shows_progress
def run_rows(
    graph: GraphLike,
    algorithm: str,
    params: Mapping[str, object],
    /,
    **given: Unpack[AlgorithmOptions],
) -> Rows:
    """Run an algorithm whose result is a table of rows, with its parameters and shared options.

    Raises:
        UsageError: The algorithm does not take one of the options.
    """
    options = _checked(algorithm, given)
    request = algorithm_request(algorithm, params, options)
    resources = Resources(**picked(WorkOptions, options))
    opened = as_graph(graph, resources)
    rows = computed_rows(opened.native, request, resources.on(opened))
    return Rows(rows, inputs=input_files(opened.native))


def _checked(algorithm: str, options: AlgorithmOptions) -> AlgorithmOptions:
    parameters = [str(info["name"]) for info in algorithms()[algorithm]["parameters"]]
    return checked(AlgorithmOptions, options, algorithm, parameters)
