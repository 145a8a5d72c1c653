"""Completes docstrings and signatures, so that shared parameters are described once.

A docstring has its own `Args`, `Returns` and `Raises`; `described` adds missing entries, in the
order of the signature, and keeps existing ones. Options are described in their tables, and the
signature lists them instead of `**options: Unpack[Table]`. This module describes the other
parameters and errors.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from brimful.options.table import Option, WorkOptions, options_of, texts

_F = TypeVar("_F", bound=Callable[..., Any])

_WIDTH = 92
_SECTIONS = ("Attributes:", "Args:", "Returns:", "Yields:", "Raises:")
#: Sections whose entries have names.
_NAMED = ("Attributes:", "Args:", "Raises:")

#: Parameters of exports.
EXPORT = texts(WorkOptions) | {
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
    "budget": 'Memory for brimful\'s own use, in bytes or as "64M"; None: an eighth of the '
    "automatic budget that open collections have not claimed.",
    "id": "Id of a record; negative ids count from the end.",
    "ids": "Ids of records.",
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

#: Errors that every run may raise, by their names in `ERRORS`.
RUN_ERRORS = ("usage", "graph", "budget", "corrupt", "io")

#: Errors that many calls raise: class and reason, by a name of their own.
ERRORS = {
    "usage": ("UsageError", "An argument is unknown or out of range."),
    "budget": (
        "BudgetError",
        "The budget is too small; the message names the smallest budget that works. Raised before "
        "any work, except in runs on a store.",
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
    "other": ("InputError", "The folder holds another collection."),
    "closed graph": ("UsageError", "The graph is closed."),
    "record": ("RecordIdError", "There is no record with this id."),
}


def described(table: Mapping[str, str], *errors: str) -> Callable[[_F], _F]:
    """Return a decorator that completes the docstring and the signature of a function.

    Args:
        table: Descriptions of parameters by name: one of the tables of this module, or of options.
        errors: Names in `ERRORS` of further exceptions of the function.

    Returns:
        The decorator; it changes only the output of `help` and `inspect.signature`.
    """

    def complete(function: _F) -> _F:
        if options := options_taken(function):
            function.__signature__ = _expanded(function, options)  # type: ignore[attr-defined]
        # `python -OO` removes docstrings.
        if function.__doc__ is not None:
            sentences = {**{name: option.text for name, option in options.items()}, **table}
            function.__doc__ = completed(function, sentences, errors)
        return function

    return complete


def options_taken(function: Callable[..., Any]) -> dict[str, Option]:
    """Return the options of `**options: Unpack[Table]`; none without."""
    for parameter in inspect.signature(function).parameters.values():
        unpacked = str(parameter.annotation)
        if parameter.kind is parameter.VAR_KEYWORD and unpacked.startswith("Unpack["):
            return options_of(getattr(function, "__globals__", {})[unpacked[7:-1]])
    return {}


def _expanded(function: Callable[..., Any], options: Mapping[str, Option]) -> inspect.Signature:
    """Return the signature of a function with its options as keywords."""
    signature = inspect.signature(function)
    *named, _ = signature.parameters.values()
    keywords = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=option.default,
            annotation=option.type,
        )
        for option in options.values()
    ]
    return signature.replace(parameters=[*named, *keywords])


def completed(
    function: Callable[..., Any], table: Mapping[str, str], errors: tuple[str, ...]
) -> str:
    """Return the docstring of `function` with all parameters and errors."""
    before, sections, after = sections_of(inspect.cleandoc(function.__doc__ or ""))
    own = dict(sections.get("Args:", []))
    sentences = {**table, **own}
    sections["Args:"] = [
        (name, sentences[name]) for name in parameters_of(function) if name in sentences
    ]
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
    """Return the names of the parameters of a function."""
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]


def sections_of(text: str) -> tuple[str, dict[str, list[tuple[str, str]]], str]:
    """Return the text before the sections of a docstring, their entries, and the rest."""
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
