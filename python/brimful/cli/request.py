"""The request of a run: options that `run` and `plan` share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from brimful import catalog
from brimful.catalog import algorithms
from brimful.cli.arguments import integer, real
from brimful.errors import UsageError
from brimful.per_vertex import Vertices
from brimful.wording import shortened


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
    parser.add_argument(
        "--mode",
        choices=catalog.MODES,
        default="sync",
        help="sync (default), or async: signals are received within the same sweep over the edges",
    )
    stores = parser.add_argument_group(
        "stores", "Keep vertices as records in a store in place of edges that stream from shards."
    )
    stores.add_argument(
        "--store",
        metavar="URL",
        help="memory (live objects), bytes (records in memory) or file:PATH (records in a folder "
        "within PATH, removed after the run); --mode async has no supersteps there",
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
        help="keep N vertices live: those used last (lru), or those used most (score)",
    )
    stores.add_argument(
        "--lists",
        choices=catalog.LISTS,
        help="where waiting vertices and signals lie: in memory, and beyond it on disk (default), "
        "or on disk",
    )
    stores.add_argument(
        "--scheduler",
        choices=catalog.SCHEDULERS,
        help="order of vertices with --mode async: collect and signal at once (latency, default), "
        "or collect all signals that wait, then signal (throughput)",
    )
    parser.add_argument(
        "--max-supersteps", metavar="N", type=integer(0), help="stop after N supersteps"
    )
    parser.add_argument(
        "--tolerance",
        metavar="X",
        type=real(0),
        help="stop at a change of at most X; 0 never stops early",
    )
    parser.add_argument(
        "--source",
        metavar="ID",
        action="append",
        help="a vertex to begin with; given several times, all of them: distances are those from "
        "the nearest, and a personalised rank begins at each",
    )
    parser.add_argument("--weighted", action="store_true", help="use the weights of the edges")
    parser.add_argument("--precision", choices=catalog.PRECISIONS, default="f64")


def asked(options: argparse.Namespace, algorithm: str, source: Vertices | None) -> dict[str, Any]:
    """Return the request of the options, as the native module takes it.

    Raises:
        UsageError: There is no such algorithm, or a parameter is not `K=V`.
    """
    params: dict[str, object] = {}
    for text in options.param:
        name, value = _parameter(text)
        if name in params:
            raise UsageError(f"the parameter {name} is given twice; give it once")
        params[name] = value
    return catalog.asked(
        algorithm,
        params,
        source=source,
        precision=options.precision,
        mode=options.mode,
        tolerance=options.tolerance,
        max_supersteps=options.max_supersteps,
        weighted=options.weighted,
        store=options.store,
        serializer=options.serializer,
        cache=options.cache,
        lists=options.lists,
        scheduler=options.scheduler,
    )


def parameter_names() -> set[str]:
    """Return the names of the parameters of all algorithms."""
    return {one["name"] for info in algorithms().values() for one in info["parameters"]}


def parameters_as_options(words: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the words of a command line with `--damping 0.9` written as `--param damping=0.9`.

    `known` are the options of the verb; these and words that are no parameters stay unchanged.

    Raises:
        UsageError: A value is missing.
    """
    if not any(word.startswith("--") and _option(word) not in known for word in words):
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
        if not option.startswith("--") or option in known or name not in names:
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
    try:
        return name.strip(), float(value)
    except ValueError:
        return name.strip(), value.strip()
