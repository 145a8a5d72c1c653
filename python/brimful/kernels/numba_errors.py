"""Errors of Numba's compiler, as a user of the package reads them: line, reason and remedy.

Numba names the line in the error, or in its text, or nowhere; its own files have lines, too.
"""

from __future__ import annotations

import dis
import re
import traceback
from types import CodeType
from typing import Any

_COLORS = re.compile(r"\x1b\[[0-9;]*m")
#: Lines around the reason.
_FRAMES = ("Failed in", "During:", "---", "File ")
#: A statement of the position, after the reason.
_POSITION = re.compile(r"\.? *Raised from .*$")
_UNTYPED = re.compile(
    r"Untyped global name '(\w+)': Cannot determine Numba type of <class '(?:\w+\.)*(\w+)'>"
)
_UNKNOWN = re.compile(r"Unknown attribute '(\w+)' of type Parameters\(")
_ASSIGNED = re.compile(r"(?:lowering|setattr:) \(?Parameters\(.*\)\.(\w+) = ")
#: Types of Numba, in words.
_WORDS = [
    (re.compile(r"Module\(<module '([\w.]+)'.*?>\)"), r"module \1"),
    (re.compile(r"of type Vertex\(.*\)"), "of the vertex, which has fewer fields here"),
]
#: Classes of types of Numba, in words.
_NOUNS = {
    "NoneType": "None",
    "UnicodeType": "a text",
    "List": "a list",
    "ListType": "a list",
    "Set": "a set",
    "DictType": "a dict",
    "Array": "an array",
}


def noun(kind: Any) -> str:
    """Return a type of Numba in the words of Python."""
    name = type(kind).__name__
    if name == "Optional":
        return f"{noun(kind.type)} or None"
    return f"a tuple of {len(kind)}" if name.endswith("Tuple") else _NOUNS.get(name, str(kind))


def explained(error: Exception, code: CodeType) -> tuple[str, str]:
    """Return the line and the reason of an error, and the remedy; `code` is the method's."""
    text = _COLORS.sub("", str(error))
    line = _line(error, text, code)
    remedy = "Change the method"
    if untyped := _UNTYPED.search(text):
        name, kind = untyped.groups()
        reason = f"the global {name} is a {kind}, which Numba does not know"
        if kind == "function":
            remedy = f"Decorate {name} with numba.njit"
    elif unknown := _UNKNOWN.search(text):
        reason = f"self.{unknown[1]} is not an int, a float, a bool or an int64 of NumPy"
        remedy = "Make it one, or, if it is a method, a function decorated with numba.njit"
    elif assigned := _ASSIGNED.search(text):
        reason = f"the method assigns self.{assigned[1]}, and it must not change the program"
        remedy = "Keep the value in the state, or in an aggregator"
    else:
        reason = _reason(error, text)
    return f"{f' at line {line}' if line else ''}: {reason}", remedy


def _reason(error: Exception, text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(_FRAMES)]
    # A signature is on a line of its own.
    has_signature = len(lines) > 1 and lines[1].startswith(">>>")
    reason = " ".join(lines[: 2 if has_signature else 1]).replace(": >>> ", " ")
    for pattern, words in _WORDS:
        reason = pattern.sub(words, reason)
    if isinstance(error, KeyError | AttributeError) or not reason:
        reason = f"{type(error).__name__}: {reason}".removesuffix(": ")
    # The message goes on with another sentence.
    return _POSITION.sub("", reason).rstrip(".").replace(". ", "; ")


def _line(error: Exception, text: str, code: CodeType) -> int | None:
    """Return the line of the method that an error is about; None if nothing tells."""
    where = getattr(error, "loc", None)
    if where is not None and where.line and where.filename == code.co_filename:
        return int(where.line)
    stated = re.search(re.escape(code.co_filename) + r"(?: \(|:)(\d+)", text)
    if stated:
        return int(stated[1])
    # An attribute that the error names, or the instruction at which the compiler failed.
    name = error.name if isinstance(error, AttributeError) else None
    for one in dis.get_instructions(code):
        if name is not None and one.argval == name and one.positions is not None:
            return one.positions.lineno
    first = code.co_firstlineno
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        for value in frame.f_locals.values():
            at = value.__dict__.get("loc") if type(value).__module__ == "numba.core.ir" else None
            if at is not None and at.filename == code.co_filename and at.line != first:
                return int(at.line)
    return None
