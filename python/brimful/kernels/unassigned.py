"""Variables of a method that may be read before they are assigned.

Python raises an exception then. Compiled code would read a number that nobody has written.
"""

from __future__ import annotations

import dis
import re
from collections.abc import Iterator
from types import CodeType

_ACTIONS = re.compile("LOAD|STORE|DELETE")
#: Instructions after which the next one does not follow.
_ENDS = ("RETURN_", "RAISE_", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD")


def unassigned(code: CodeType) -> tuple[str, int | None] | None:
    """Return the first variable that may have no value where it is read, and the line.

    None: all have one. A loop may have no passes; handlers of exceptions are not looked at.
    """
    instructions = list(dis.get_instructions(code))
    places = {one.offset: at for at, one in enumerate(instructions)}
    #: The variables that are assigned on all paths to an instruction.
    known: dict[int, frozenset[str]] = {}
    paths = [(0, frozenset(code.co_varnames[: code.co_argcount]))]
    while paths:
        at, assigned = paths.pop()
        if at in known and known[at] <= assigned:
            continue
        known[at] = assigned = assigned & known.get(at, assigned)
        one = instructions[at]
        for action, name in _actions(one):
            if action != "LOAD":
                assigned = assigned | {name} if action == "STORE" else assigned - {name}
        if one.opcode in dis.hasjrel or one.opcode in dis.hasjabs:
            paths.append((places[one.argval], assigned))
        if not one.opname.startswith(_ENDS):
            paths.append((at + 1, assigned))
    for at, assigned in sorted(known.items()):
        one = instructions[at]
        for action, name in _actions(one):
            if action == "LOAD" and name not in assigned:
                return name, one.positions.lineno if one.positions else None
            assigned |= {name}
    return None


def _actions(one: dis.Instruction) -> Iterator[tuple[str, str]]:
    """Yield what an instruction does to local variables: "LOAD", "STORE" or "DELETE", and names."""
    # The other instruction keeps the variable of a comprehension, which may have no value.
    if "_FAST" in one.opname and one.opname != "LOAD_FAST_AND_CLEAR":
        names = one.argval if isinstance(one.argval, tuple) else (one.argval,)
        yield from zip(_ACTIONS.findall(one.opname), names, strict=True)
