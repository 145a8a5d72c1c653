"""The request of a run: options that `run` and `plan` share."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from brimful import catalog
from brimful.catalog import algorithms
from brimful.cli.options import add_options
from brimful.errors import UsageError
from brimful.ids import Vertices
from brimful.options.checks import number_of, whole_number
from brimful.options.runs import (
    AskedOptions,
    PlaceOptions,
    RequestOptions,
    StoreOptions,
)
from brimful.options.table import checked, picked
from brimful.wording import shortened

if TYPE_CHECKING:
    from brimful import _native


def add_request(parser: argparse.ArgumentParser) -> None:
    """Add the options of an algorithm."""
    parser.add_argument(
        "--param",
        metavar="K=V",
        action="append",
        default=[],
        help="a parameter of the algorithm, for example damping=0.85, also written --damping 0.85; "
        "'brimful algorithms' lists them",
    )
    add_options(parser, RequestOptions)
    stores = parser.add_argument_group(
        "stores",
        "Keep vertices, with their edges, as records in a store; no edges stream from shards.",
    )
    add_options(stores, PlaceOptions)
    add_options(stores, StoreOptions)


def run_request(
    options: argparse.Namespace,
    algorithm: str,
    source: Vertices | None = None,
    *,
    cluster: Mapping[str, object] | None = None,
    cluster_size: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Return the request of the options, as the native module takes it.

    `cluster` has the options of the cluster of a run; `cluster_size` the workers of a forecast.

    Raises:
        UsageError: There is no such algorithm, or a parameter is not `K=V`.
    """
    params: dict[str, object] = {}
    for text in options.param:
        name, value = _parameter(text)
        if name in params:
            raise UsageError(f"the parameter {name} is given twice; give it once")
        params[name] = value
    given = checked(AskedOptions, picked(AskedOptions, vars(options)) | {"source": source})
    return catalog.algorithm_request(algorithm, params, {**given, **(cluster or {})}, cluster_size)


def sources_of(options: argparse.Namespace, graph: _native.Graph) -> Vertices | None:
    """Return the source vertices, of the type of the graph's ids.

    Raises:
        UsageError: one is not an integer, and the graph has no other ids.
    """
    texts: list[str] | None = options.source
    return None if texts is None else [vertex_of(text, graph, "--source") for text in texts]


def vertex_of(text: str, graph: _native.Graph, name: str) -> int | str:
    """Return a vertex of the type of the graph's ids; `name` is the argument that has it.

    Raises:
        UsageError: it is not an integer, and the graph has no other ids.
    """
    if graph.id_type == "string":
        return text
    number = whole_number(text)
    if number is None:
        raise UsageError(
            f"{name} takes the id of a vertex, which is an integer in this graph, not "
            f"'{shortened(text)}'"
        )
    return number


def add_around(parser: argparse.ArgumentParser) -> None:
    """Add --around, of a report."""
    parser.add_argument(
        "--around",
        metavar="ID",
        action="append",
        default=[],
        help="a vertex whose neighborhood the report draws; may be given several times (default: "
        "the two vertices with the largest values; in a report about a graph, with the most "
        "out-edges)",
    )


def around_of(options: argparse.Namespace, graph: _native.Graph) -> list[int | str]:
    """Return the vertices whose neighborhoods are drawn.

    Raises:
        UsageError: A vertex id is not an integer, and the graph has no other ids.
        NotFoundError: The graph has no such vertex.
    """
    from brimful import _native

    vertices = [vertex_of(text, graph, "--around") for text in options.around]
    look_up = _native.Lookup(graph) if vertices else None
    for vertex in vertices:
        if look_up is not None:
            look_up.degree(vertex, "out")
    return vertices


def refuse_around(options: argparse.Namespace, flag: str) -> None:
    """Refuse --around without a report.

    Raises:
        UsageError: --around is given.
    """
    if options.around:
        raise UsageError(f"--around draws in a report; give {flag} FILE.html")


def parameter_names() -> set[str]:
    """Return the names of the parameters of all algorithms."""
    return {one["name"] for info in algorithms().values() for one in info["parameters"]}


def parameters_as_options(words: Sequence[str], options: Sequence[str]) -> list[str]:
    """Return the words of a command line with `--damping 0.9` written as `--param damping=0.9`.

    `options` are the options of the verb; these and words that are not parameters stay unchanged.

    Raises:
        UsageError: A value is missing.
    """
    if not any(word.startswith("--") and _option(word) not in options for word in words):
        return list(words)
    names = parameter_names()
    rewritten: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        option, equals, value = word.partition("=")
        name = option.removeprefix("--").replace("-", "_")
        if word == "--":
            return [*rewritten, word, *rest]
        if not option.startswith("--") or option in options or name not in names:
            rewritten.append(word)
            continue
        if not equals:
            if not rest or rest[0].startswith("--"):
                raise UsageError(f"{option} needs a value, as in '{option} VALUE'")
            value = rest.pop(0)
        rewritten += ["--param", f"{name}={value}"]
    return rewritten


def _option(word: str) -> str:
    return word.partition("=")[0]


def _parameter(text: str) -> tuple[str, object]:
    """Return name and value of `K=V`; a value is a number or a word.

    Raises:
        UsageError: There is no `=`.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise UsageError(
            f"--param must be NAME=VALUE, for example damping=0.85, not '{shortened(text)}'"
        )
    # An integer stays exact, because a message that refuses it shows it.
    whole = whole_number(value)
    if whole is not None:
        return name.strip(), whole
    number = number_of(value)
    return name.strip(), value.strip() if math.isnan(number) else number
