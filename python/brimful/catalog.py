"""The algorithms, their parameters, and the stores.

The native registry is the one table of them: the command line, the Python functions, completion and
`brimful algorithms` read it here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any, get_args

from brimful import checks
from brimful.choices import Lists, Mode, Precision, Scheduler
from brimful.errors import UsageError
from brimful.per_vertex import Vertices, vertex_ids
from brimful.sizes import MOST, parse_count
from brimful.wording import did_you_mean, either, shortened, unknown

MODES: tuple[str, ...] = get_args(Mode)
PRECISIONS: tuple[str, ...] = get_args(Precision)
LISTS: tuple[str, ...] = get_args(Lists)
SCHEDULERS: tuple[str, ...] = get_args(Scheduler)
#: Options of runs on stores.
STORE_OPTIONS = ("store", "serializer", "cache", "lists", "scheduler")


@cache
def algorithms() -> dict[str, dict[str, Any]]:
    """Return the properties of each algorithm, by name."""
    from brimful import _native

    return {str(info["name"]): info for info in _native.algorithms()}


def asked(
    algorithm: str,
    params: Mapping[str, object],
    *,
    source: Vertices | None = None,
    precision: str = "f64",
    mode: str = "sync",
    tolerance: float | None = None,
    max_supersteps: int | None = None,
    weighted: bool = False,
    store: str | None = None,
    serializer: str | None = None,
    cache: str | None = None,
    lists: str | None = None,
    scheduler: str | None = None,
) -> dict[str, Any]:
    """Return the request of a run as the native module takes it.

    Raises:
        UsageError: An argument is unknown or of the wrong type.
    """
    if not isinstance(params, Mapping):
        raise UsageError(f"params must be a mapping of names to values, not {shortened(params)}")
    check_parameters(algorithm, params)
    check_store(store)
    return {
        "algorithm": algorithm,
        "params": dict(params),
        "source": [] if source is None else vertex_ids(source),
        "precision": checks.word(precision, "precision", PRECISIONS),
        "mode": checks.word(mode, "mode", MODES),
        "tolerance": checks.real(tolerance, "tolerance"),
        "max_supersteps": parse_count(max_supersteps, "max_supersteps"),
        "weighted": checks.flag(weighted, "weighted"),
        "store": {
            "url": store,
            "serializer": checks.text(serializer, "serializer"),
            "cache": checks.text(cache, "cache"),
            "lists": checks.text(lists, "lists"),
            "scheduler": checks.text(scheduler, "scheduler"),
        },
    }


def check_parameters(algorithm: str, params: Mapping[str, object]) -> None:
    """Refuse an unknown algorithm, and parameters that it does not take, before any work.

    Raises:
        UsageError: A name is unknown, or a value is of the wrong type.
    """
    if not isinstance(algorithm, str) or algorithm not in algorithms():
        algorithm = shortened(algorithm)
        raise UsageError(unknown("algorithm", algorithm, algorithms()))
    known = {str(one["name"]): one for one in algorithms()[algorithm]["parameters"]}
    for name, value in params.items():
        if not isinstance(name, str) or name not in known:
            name = shortened(name)
            others = f"known: {', '.join(known)}" if known else "it has no parameters"
            raise UsageError(
                f"{algorithm} has no parameter '{shortened(name)}'{did_you_mean(name, known)}; "
                + others
            )
        _check_value(name, value, known[name]["type"], known[name]["choices"])


def _check_value(name: str, value: object, kind: str, choices: list[str] | None) -> None:
    if choices is not None:
        checks.word(value, name, choices)
        return
    number = float(value) if checks.is_real(value) else math.nan
    if kind == "number" and not math.isfinite(number):
        raise UsageError(f"{name} must be a number, not {shortened(value)}")
    if kind == "count" and not (number.is_integer() and 0 <= number <= MOST):
        raise UsageError(f"{name} must be a whole number of at least 0, not {shortened(value)}")


def check_store(url: str | None) -> None:
    """Refuse a store that does not exist.

    Raises:
        UsageError: There is no such store; the message lists the stores.
    """
    checks.text(url, "store")
    if url is None:
        return
    from brimful import _native

    forms = _native.stores()
    names = {form.partition(":")[0] for form in forms}
    name = url.partition(":")[0]
    if name not in names:
        raise UsageError(
            f'there is no store "{shortened(url)}"; use {either(forms)}' + did_you_mean(name, names)
        )
