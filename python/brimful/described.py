"""Completes docstrings: parameters and errors that many functions share are described once, here.

A docstring has its own `Args`, `Returns` and `Raises`; `described` adds what it lacks, in the order
of the signature. What a docstring says itself stays.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

_WIDTH = 92
_SECTIONS = ("Attributes:", "Args:", "Returns:", "Yields:", "Raises:")
#: Sections whose entries have names.
_NAMED = ("Attributes:", "Args:", "Raises:")

#: Parameters of every function that does long work.
_WORK = {
    "threads": "Number of compute threads; None: all cores.",
    "budget": 'Memory for brimful\'s own use, in bytes or as "500M"; None: the default of the '
    "graph, or else three quarters of the available memory.",
    "progress": "True shows a line on standard error. A function is called about ten times a "
    "second with the phase, the units done, the units in all (0: unknown) and the seconds.",
}

#: Parameters of runs.
RUN = _WORK | {
    "graph": "A `Graph`, or the path of a graph directory or of an input file.",
    "source": "Id of the vertex to begin with, or several in a sequence: distances are those from "
    "the nearest. Order and repeats do not matter.",
    "weighted": "Use the weights of the edges.",
    "max_supersteps": "Stop after this many supersteps; None: no limit.",
    "mode": '"sync" runs in supersteps; "async" receives signals within the same sweep over the '
    "edges.",
    "precision": 'Width of a signal in memory: "f64" or "f32".',
    "checkpoint_every": 'Make a checkpoint after every so many supersteps, or with "30s" after the '
    "first superstep that ends 30 seconds after the last checkpoint; None: no checkpoints.",
    "checkpoint_dir": "Folder of the checkpoints; None: `NAME.ALGORITHM.checkpoints` beside the "
    "graph.",
    "resume": "Continue from the last complete checkpoint; without one, start from the beginning. "
    "It must be of the same graph, algorithm and parameters; limits, `budget` and `threads` may "
    "differ.",
    "store": "Keep vertices as records in a store in place of edges that stream from shards: "
    '"memory" (live objects), "bytes" (records in memory) or "file:PATH" (records in a folder '
    "within PATH, which is removed after the run); None: shards.",
    "serializer": 'How a store writes records: "native", "compact" or "generic", each also with '
    '"+lz4", "+zstd" or "+zlib".',
    "cache": 'Vertices that stay live over a store: "lru:N" or "score:N".',
    "lists": 'Where waiting vertices and signals of a store lie: "memory" or "disk".',
    "scheduler": 'Order of the vertices of a store in `mode` "async": "latency" (default) collects '
    'and signals at once, "throughput" collects all signals that wait, then signals.',
}

#: Parameters of imports.
IMPORT = _WORK | {
    "path": "Graph directory to make and to keep, `NAME.brimful`; None: a temporary directory, "
    "which `close` removes.",
    "undirected": "Whether edges have no direction; None: as the input implies.",
    "vertices": "Declare the ids 0 to `vertices` - 1, with edges or without.",
    "on_error": '"fail" ends the import at the first row that is no edge; "skip" leaves such rows '
    "out and logs their number.",
    "weights": '"input", or "hash": whole numbers from 1 to 100 that depend on the two ids only, '
    "the same in both directions.",
    "self_loops": '"keep", or "drop" edges from a vertex to itself.',
    "duplicates": 'What remains of edges with the same ends: "keep" all, "drop" all but one, '
    '"sum" their weights (without weights: their number), or keep the "min" weight.',
    "ids": '"int", "string", or "auto": the type of the columns decides; in text, most of the '
    "first 65,536 lines.",
    "index": 'Indexes to build: "in", or "in,reverse".',
    "budget": 'Memory for brimful\'s own use, in bytes or as "500M", also the default of '
    "algorithms on the graph; None: three quarters of the available memory.",
    "source": "Column of source ids, by name or by number from 1; None: the column that is beyond "
    "doubt (docs/formats.md).",
    "target": "Column of target ids, likewise.",
    "weight": "Column of weights, likewise; None: the column with a known name such as weight.",
    "ignore_extra": "Take the first two columns where nothing else decides.",
}

#: Parameters of exports.
EXPORT = _WORK | {
    "path": "File to write.",
    "overwrite": "Replace the file if it exists.",
}

#: Parameters of look-ups.
LOOK_UP = {
    "vertex": "Id of the vertex, an integer or a string.",
    "weights": "Also return the weights.",
    "direction": '"out" for edges that leave, "in" for edges that reach a vertex.',
    "vertices": "Integers or strings: a list, a NumPy or Arrow array, or a column of a data frame.",
}

#: Parameters of collections.
COLLECTION = {
    "path": "Folder of the collection; made if it does not exist.",
    "budget": 'Memory for brimful\'s own use, in bytes or as "64M"; None: three quarters of the '
    "available memory.",
    "id": "Id of a record; negative ids count from the end.",
    "ids": "Ids of records.",
    "ids_": "Ids of records.",
    "start": "The first id.",
    "count": "Number of records.",
    "record": "The record.",
    "records": "The records.",
    "value": "The value.",
    "values": "The values.",
    "key": "The key.",
    "keys": "The keys: integers from 0 to 2**64 - 1, best as a NumPy array.",
    "default": "Returned if there is no such key.",
}

#: What every run may raise, by the names of `ERRORS`.
RUN_ERRORS = ("usage", "graph", "budget", "corrupt", "io")

#: Errors that many calls raise: class and reason, by a name of their own.
ERRORS = {
    "usage": ("UsageError", "An argument is unknown or out of range."),
    "budget": (
        "BudgetError",
        "The budget is too small; raised before any work, and naming the smallest budget that "
        "works.",
    ),
    "corrupt": (
        "CorruptError",
        "Bytes on disk fail their checksum; the message names file and offset.",
    ),
    "io": (
        "StoreIoError",
        "The operating system refuses to open, read or write; `errno` is its number.",
    ),
    "vertex": ("NotFoundError", "The graph has no such vertex (also a `KeyError`)."),
    "graph": ("NotFoundError", "There is no graph or input file at the path."),
    "closed": ("UsageError", "The collection is closed."),
    "closed graph": ("UsageError", "The graph is closed."),
    "record": ("RecordIdError", "There is no record with this id."),
}


def described(table: Mapping[str, str], *errors: str) -> Callable[[_F], _F]:
    """Return a decorator that completes the docstring of a function.

    Args:
        table: Descriptions of parameters by name, one of the tables of this module.
        errors: Names in `ERRORS` of what the function may raise beside its own `Raises`.

    Returns:
        The decorator; it changes nothing but the docstring.
    """

    def complete(function: _F) -> _F:
        # None under `python -OO`.
        if function.__doc__ is not None:
            function.__doc__ = completed(function, table, errors)
        return function

    return complete


def completed(
    function: Callable[..., Any], table: Mapping[str, str], errors: tuple[str, ...]
) -> str:
    """Return the docstring of `function` with all parameters and errors."""
    before, sections, after = sections_of(inspect.cleandoc(function.__doc__ or ""))
    own = dict(sections.get("Args:", []))
    known = {**table, **own}
    sections["Args:"] = [(name, known[name]) for name in parameters_of(function) if name in known]
    raised = dict(sections.get("Raises:", []))
    for name in errors:
        kind, reason = ERRORS[name]
        own_reason = raised.get(kind)
        raised[kind] = reason if own_reason is None else f"{own_reason} {reason}"
    sections["Raises:"] = list(raised.items())
    parts = [before]
    for title in _SECTIONS:
        if entries := sections.get(title):
            parts.append("\n".join([title, *(_entry(name, text) for name, text in entries)]))
    return "\n\n".join(part for part in [*parts, after] if part) + "\n"


def parameters_of(function: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters of a function, with those of `**options: Unpack[...]`."""
    names: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        unpacked = str(parameter.annotation)
        if parameter.kind is parameter.VAR_KEYWORD and unpacked.startswith("Unpack["):
            fields = getattr(inspect.unwrap(function), "__globals__", {})[unpacked[7:-1]]
            names += fields.__annotations__
        elif parameter.name not in ("self", "cls"):
            names.append(parameter.name)
    return names


def sections_of(text: str) -> tuple[str, dict[str, list[tuple[str, str]]], str]:
    """Return what a docstring says before its sections, the entries of each, and what follows."""
    before: list[str] = []
    after: list[str] = []
    sections: dict[str, list[tuple[str, str]]] = {}
    title = None
    for line in text.split("\n"):
        if line in _SECTIONS:
            title = line
            sections[title] = []
        elif after or line.startswith(">>>") or (title and line and not line.startswith(" ")):
            after.append(line)
        elif title is None:
            before.append(line)
        elif line.startswith("    ") and not line.startswith("     "):
            name, colon, rest = line.strip().partition(": ")
            named = title in _NAMED and bool(colon)
            sections[title].append((name, rest) if named else ("", line.strip()))
        elif line.strip():
            name, rest = sections[title][-1]
            sections[title][-1] = (name, f"{rest} {line.strip()}")
    return "\n".join(before).strip(), sections, "\n".join(after).strip()


def _entry(name: str, text: str) -> str:
    """Return an entry of a section, wrapped."""
    return textwrap.fill(
        f"{name}: {text}" if name else text,
        _WIDTH,
        initial_indent="    ",
        subsequent_indent="        " if name else "    ",
        break_on_hyphens=False,
        break_long_words=False,
    )
