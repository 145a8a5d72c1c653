"""Runs an algorithm of the registry; each function of the Python API calls this module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from brimful.catalog import algorithm_request, algorithms
from brimful.io.source import input_files
from brimful.opening import GraphLike, as_graph
from brimful.options.runs import AlgorithmOptions, CheckpointOptions
from brimful.options.table import checked, picked
from brimful.packages import _native
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
    run = _prepared(graph, algorithm, params, options)
    return computed(*run, picked(CheckpointOptions, options))


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
    run = _prepared(graph, algorithm, params, _checked(algorithm, given))
    return Rows(computed_rows(*run), inputs=input_files(run[0]))


def _checked(algorithm: str, options: AlgorithmOptions) -> AlgorithmOptions:
    parameters = [str(info["name"]) for info in algorithms()[algorithm]["parameters"]]
    return checked(AlgorithmOptions, options, algorithm, parameters)


def _prepared(
    graph: GraphLike, algorithm: str, params: Mapping[str, object], options: AlgorithmOptions
) -> tuple[_native.Graph, dict[str, Any], Resources]:
    """Return the graph, the request and the resources of a run, from options that were checked."""
    request = algorithm_request(algorithm, params, options)
    resources = Resources.of(options)
    opened = as_graph(graph, resources)
    return opened.native, request, resources.on(opened)
