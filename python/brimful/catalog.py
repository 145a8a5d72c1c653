"""The algorithms with their parameters, and the requests of runs.

The native registry is their only table: the command line, the Python functions, completion and
`brimful algorithms` read it here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from brimful.errors import UsageError
from brimful.options import checks
from brimful.options.clusters import ClusterOptions
from brimful.options.runs import PlaceOptions, RequestOptions, StoreOptions, store_url
from brimful.options.table import picked
from brimful.wording import did_you_mean, literal, shortened, unknown

#: The command that lists all algorithms.
LIST_COMMAND = "brimful algorithms"
#: The largest whole number of a parameter: all whole numbers up to it are exact floats.
_MOST_EXACT = 2**53 - 1


@cache
def algorithms() -> dict[str, dict[str, Any]]:
    """Return the properties of each algorithm, by name."""
    from brimful import _native

    return {str(info["name"]): info for info in _native.algorithms()}


def algorithm_request(
    algorithm: str,
    params: Mapping[str, object],
    options: Mapping[str, object],
    cluster_size: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Return the request of a run as the native module takes it, from options that were checked.

    `cluster_size` has the workers of a forecast for a cluster.

    Raises:
        UsageError: The algorithm, or one of its parameters, is unknown or of the wrong type.
    """
    if not isinstance(params, Mapping):
        raise UsageError(f"params must be a mapping of names to values, not {shortened(params)}")
    params = checked_parameters(algorithm, params)
    store = picked(PlaceOptions, options) | picked(StoreOptions, options)
    cluster = cluster_of(options)
    is_divided = cluster is not None or cluster_size is not None
    if is_divided and "cluster" not in algorithms()[algorithm]["takes"]:
        raise UsageError(f"{algorithm} does not run on a cluster; leave --cluster out")
    return {
        "algorithm": algorithm,
        "params": params,
        **picked(RequestOptions, options),
        "store": store_location(store.pop("store")) | store,
        "cluster": cluster,
        "communicator": None,
        "cluster_size": cluster_size,
    }


def cluster_of(options: Mapping[str, object]) -> dict[str, Any] | None:
    """Return the options of the cluster of a run; None: it runs in this process.

    Raises:
        UsageError: Workers are given without a cluster.
    """
    cluster = picked(ClusterOptions, options)
    if cluster.get("cluster") is not None:
        return cluster
    if cluster.get("workers") is not None:
        raise UsageError(
            "--workers counts the workers of a cluster; add --cluster, or leave it out"
        )
    return None


def store_location(url: str | None, *, keeps: bool = False) -> dict[str, Any]:
    """Return the URL of a store without its secrets, and the opener of a plug-in.

    `keeps`: the vertices are to stay, or have stayed.

    Raises:
        UsageError: There is no such store.
    """
    if url is None:
        return {"url": None, "opener": None}
    # The registry and its imports take 8 MB, which a run without a store need not pay.
    from brimful.stores.registry import opener

    plug_in = opener(url, keeps=keeps)
    return {"url": url if plug_in is None else plug_in.url, "opener": plug_in}


def program_store(
    url: str | None, options: Mapping[str, object], *, keeps: bool = False
) -> dict[str, Any]:
    """Return the store of a program in Python as the native module takes it; no URL: no store.

    `keeps`: its vertices are to stay, or have stayed.

    Raises:
        UsageError: There is no such store.
    """
    return {
        **store_location(store_url(url), keeps=keeps),
        "serializer": None,
        **picked(StoreOptions, options),
    }


def open_store(store: Mapping[str, Any]) -> AbstractContextManager[object]:
    """Return the context of a run on a store, whose records are removed on leaving it."""
    opener = store["opener"]
    return nullcontext() if opener is None else opener


def checked_parameters(algorithm: str, params: Mapping[str, object]) -> dict[str, object]:
    """Return parameters as the native module takes them, before any work.

    Raises:
        UsageError: The algorithm is unknown, or does not take one of the parameters; or a value is
            of the wrong type.
    """
    if not isinstance(algorithm, str) or algorithm not in algorithms():
        algorithm = shortened(algorithm)
        raise UsageError(unknown("algorithm", algorithm, algorithms(), LIST_COMMAND))
    parameters = {str(one["name"]): one for one in algorithms()[algorithm]["parameters"]}
    taken = {}
    for name, value in params.items():
        if not isinstance(name, str) or name not in parameters:
            name = shortened(name)
            hint = did_you_mean(name, parameters)
            others = f"known: {', '.join(parameters)}" if parameters else "it has no parameters"
            raise UsageError(f"{algorithm} has no parameter '{name}'{hint}; {others}")
        taken[name] = _checked_value(
            name, value, parameters[name]["type"], parameters[name]["choices"]
        )
    return taken


def _checked_value(name: str, value: object, kind: str, choices: list[str] | None) -> object:
    if choices is not None:
        return checks.word(value, name, choices)
    if kind == "numbers":
        return checks.numbers(value, name)
    number = float(value) if checks.is_real(value) else math.nan
    if kind == "number" and not math.isfinite(number):
        raise UsageError(f"{name} must be a number, not {literal(value)}")
    if kind == "count" and not (number.is_integer() and 0 <= number <= _MOST_EXACT):
        raise UsageError(f"{name} must be a whole number from 0 to 2^53 - 1, not {literal(value)}")
    return value
