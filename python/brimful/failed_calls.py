"""Errors of the methods of a program, in the words of its author.

Invariant: an error is described once, in the process that made the call.
"""

from __future__ import annotations

import dis
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from brimful import _native
from brimful.errors import ProgramError
from brimful.pregel.adapter import PregelAdapter
from brimful.pregel.master import Master, WorkerContext
from brimful.pregel.program import Pregel
from brimful.pregel.signalling import Signalling, SignallingVertex
from brimful.pregel.vertex import PregelVertex
from brimful.program import Program, Vertex
from brimful.wording import did_you_mean, shortened

#: Pregel's words about an object that `compute` changed, by its name in the native module.
_CHANGED = {
    "the state": "compute changed the value in place; assign a new object instead",
    "a signal": "compute changed a message in place; change a copy instead",
}
#: Remedies for assignments to a vertex of Pregel, by attribute.
_ASSIGNED = {
    "state": "assign the new value to vertex.value",
    "edges": "change edges by add_edge, remove_edges and set_edge_value",
    "degree": "change edges by add_edge and remove_edges",
}


def failed_call(
    doing: str, vertex: Any, cause: BaseException, superstep: int | None, state: Any
) -> ProgramError:
    """Return the error of a call that raised an exception while `doing` something."""
    text = f"{type(cause).__name__}: {cause}".removesuffix(": ")
    message = f"the program failed to {doing} at vertex {vertex}: {text}"
    error = program_error(message, vertex, superstep, state)
    error.__cause__ = cause
    return error


def program_error(message: str, vertex: Any, superstep: int | None, state: Any) -> ProgramError:
    """Return an error with superstep and state; both are None if there are none."""
    place = "" if superstep is None else f"; superstep {superstep}, state {shortened(state)}"
    error = ProgramError(f"{message}{place}", vertex)
    error.superstep, error.state = superstep, state
    return error


def in_own_words(error: ProgramError, program: Program | Pregel, adapter: Program) -> ProgramError:
    """Return the error of a run with the action of the method that failed, and with a remedy.

    The engine knows the methods of the `adapter` of a program.
    """
    cause = error.__cause__
    if cause is None:
        return error
    if isinstance(adapter, PregelAdapter):
        error = _pregel_error(error, cause, adapter)
    if isinstance(cause, AttributeError) and (remedy := _remedy(cause, program)):
        error.args = (f"{error.args[0]}; {remedy}", *error.args[1:])
    return error


def _pregel_error(
    error: ProgramError, cause: BaseException, adapter: PregelAdapter
) -> ProgramError:
    vertex, superstep, state = error.vertex, error.superstep, error.state
    if not isinstance(adapter.program, Signalling):
        if adapter.record is not None and isinstance(state, list):
            state = adapter.record.made(state)
            error = failed_call(error.doing or "compute", vertex, cause, superstep, state)
        if adapter.failed is None:
            return _of_change(error, cause)
        return failed_call(adapter.failed, vertex, cause, superstep, state)
    if adapter.program.failed is not None:
        doing, seen = adapter.program.failed
        return failed_call(doing, vertex, cause, seen.superstep, seen.state)
    if error.doing == "send messages":
        return failed_call("signal", vertex, cause, superstep, state)
    # Signals are collected in the next superstep of Pregel.
    before = None if superstep is None else max(superstep - 1, 0)
    if error.doing == "compute":
        return failed_call(adapter.failed or "collect", vertex, cause, before, state)
    return error


def _of_change(error: ProgramError, cause: BaseException) -> ProgramError:
    """Return the error of a call of `compute`, where a change in place has the words of Pregel."""
    changed: tuple[str, str] | None = getattr(cause, "changed", None)
    if changed is None or changed[0] != "collect":
        return error
    cause.args = (_CHANGED[changed[1]],)
    return failed_call("compute", error.vertex, cause, error.superstep, error.state)


def _remedy(cause: AttributeError, program: Program | Pregel) -> str | None:
    if (assigned := _assigned(cause.__traceback__)) is not None:
        # As of a field of a named tuple, or of an object that a vertex refers to.
        is_part = "Vertex'" not in str(cause) and str(cause) != "readonly attribute"
        if isinstance(program, Pregel):
            fallback = "a vertex keeps nothing but its value and its edges"
            return _ASSIGNED["state"] if is_part else _ASSIGNED.get(assigned, fallback)
        return (
            "return the new state from collect"
            if is_part or assigned in ("state", "value")
            else "a vertex keeps nothing but its state, which collect returns"
        )
    if isinstance(cause.obj, Master | WorkerContext):
        return _suggestion(str(cause.name), dir(cause.obj))
    if cause.name is None or not _is_vertex(cause.obj):
        return None
    own, other = (Vertex, PregelVertex) if isinstance(program, Program) else (PregelVertex, Vertex)
    if cause.name.startswith("request_") and hasattr(PregelVertex, cause.name):
        if not program.mutates:
            return "set mutates = True in the class of the program"
        return f"request changes in {'signal or collect' if own is Vertex else 'compute'}"
    if cause.name == "value":
        return "read vertex.state"
    if cause.name == "state":
        return "read vertex.value"
    if hasattr(other, cause.name):
        return f"{cause.name} is for a bf.{'Pregel' if own is Vertex else 'Program'}"
    return _suggestion(cause.name, vars(own) | own.__annotations__)


def _suggestion(name: str, names: Iterable[str]) -> str | None:
    known = [one for one in names if not one.startswith("_")]
    return did_you_mean(name, known).removeprefix("; ") or None


def _assigned(traceback: TracebackType | None) -> str | None:
    """Return the attribute whose assignment to a vertex raised an exception, if that did."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None or not any(map(_is_vertex, traceback.tb_frame.f_locals.values())):
        return None
    for one in dis.get_instructions(traceback.tb_frame.f_code):
        if one.offset == traceback.tb_lasti and one.opname == "STORE_ATTR":
            return str(one.argval)
    return None


def _is_vertex(one: object) -> bool:
    return isinstance(one, PregelVertex | SignallingVertex | _native.ProgramVertex)
