"""What is asked of an algorithm: options that `run` and `plan` share."""

from __future__ import annotations

import argparse
from typing import Any

from brimful.cli import options as shared
from brimful.errors import UsageError


def add_request(parser: argparse.ArgumentParser) -> None:
    """Add the options of an algorithm."""
    parser.add_argument(
        "--param",
        metavar="K=V",
        action="append",
        default=[],
        help="a parameter of the algorithm, for example damping=0.85",
    )
    parser.add_argument(
        "--mode",
        choices=["sync", "async"],
        default="sync",
        help="sync (default), or async: signals are heard within the same sweep over the edges",
    )
    parser.add_argument(
        "--layout",
        choices=["shards", "decoupled", "coupled"],
        default="shards",
        help="how edges lie on disk during the run: shards (default), lists by vertex apart from "
        "the states (decoupled) or with them (coupled); the result is the same",
    )
    stores = parser.add_argument_group(
        "stores", "Vertices as records in a store, in place of edges that stream from shards."
    )
    stores.add_argument(
        "--store",
        metavar="URL",
        help="memory (live objects), bytes (records in memory) or file:PATH (records in a folder "
        "of the run within PATH, removed after it); with --mode async there are no supersteps",
    )
    stores.add_argument(
        "--serializer",
        metavar="NAME",
        help="how records are written: native (default), compact or generic, each also with +lz4, "
        "+zstd or +zlib",
    )
    stores.add_argument(
        "--cache",
        metavar="lru:N|score:N",
        help="keep N vertices live: those used last, or those used most",
    )
    stores.add_argument(
        "--lists",
        choices=["memory", "disk"],
        help="where vertices that are to signal and signals that are to be collected wait: in "
        "memory and beyond it on disk (default), or on disk",
    )
    parser.add_argument("--max-supersteps", metavar="N", type=shared.not_negative)
    parser.add_argument("--tolerance", metavar="X", type=float, help="0: never stop early")
    parser.add_argument("--source", metavar="ID", help="the vertex to begin with")
    parser.add_argument("--weighted", action="store_true", help="use the weights of the edges")
    parser.add_argument("--precision", choices=["f64", "f32"], default="f64")


def asked(options: argparse.Namespace, algorithm: str, source: int | str | None) -> dict[str, Any]:
    """Return what the options ask of `algorithm`, as the native module takes it.

    Raises:
        UsageError: there is no such algorithm, or a parameter is no `K=V`.
    """
    from brimful import _native

    params = dict(_parameter(text) for text in options.param)
    known = [str(one["name"]) for one in _native.algorithms()]
    if algorithm not in known:
        raise UsageError(f"'{algorithm}' is not an algorithm; known: {', '.join(known)}")
    return {
        "algorithm": algorithm,
        "params": params,
        "source": source,
        "precision": options.precision,
        "mode": options.mode,
        "tolerance": options.tolerance,
        "max_supersteps": options.max_supersteps,
        "weighted": options.weighted,
        "layout": options.layout,
        "store": {
            "url": options.store,
            "serializer": options.serializer,
            "cache": options.cache,
            "lists": options.lists,
        },
    }


def _parameter(text: str) -> tuple[str, object]:
    """Return name and value of `K=V`; a value is an integer, a real number or a word.

    Raises:
        UsageError: there is no `=`.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise UsageError(f"--param takes NAME=VALUE, for example damping=0.85, not '{text}'")
    for kind in (int, float):
        try:
            return name.strip(), kind(value)
        except ValueError:
            continue
    return name.strip(), value.strip()
