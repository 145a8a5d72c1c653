"""Mistakes in the class of a program, found before its run.

Without these checks the run would end, with states that nobody meant: a generator or None instead
of a state, or a method that is never called.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from difflib import get_close_matches
from types import FunctionType

from brimful.catalog import algorithms
from brimful.errors import UsageError
from brimful.kernels.methods import place
from brimful.options.checks import word
from brimful.pregel.program import Pregel
from brimful.program import Program, combiner_of
from brimful.reporting import warn
from brimful.wording import shortened

#: Methods whose results a run uses; `initial_state` and `signal` may always return None.
_VALUED = ("collect", "combine", "aggregate", "signal_score", "collect_score", "cache_score")
_DELIVERIES = ("each", "combined", "latest")
#: Similarity of two names, from 0 to 1, from which one is taken for a slip of the other.
_SIMILAR = 0.85


def check_program(program: object) -> None:
    """Refuse an object that is not a program, and a class with a mistake; warn of likely slips.

    Raises:
        UsageError: It is something else, a Pregel program with `state_type`, a delivery or combiner
            is unknown or lacks `combine`, or a method is a generator or a coroutine, returns no
            value, or has other parameters than its calls.
    """
    if not isinstance(program, Program | Pregel):
        raise UsageError(
            "program must be an instance of a class derived from brimful.Program or "
            f"brimful.Pregel, not {shortened(program)}{_remedy(program)}"
        )
    name = type(program).__name__
    if isinstance(program, Pregel) and getattr(program, "state_type", None) is not None:
        raise UsageError(
            f"{name} has state_type, which applies to a bf.Program only; name the fields of its "
            "values in value_type"
        )
    if isinstance(program, Program):
        _check_delivery(program, name)
    base = Program if isinstance(program, Program) else Pregel
    for one, method in inspect.getmembers(type(program), inspect.isfunction):
        if hasattr(base, one) and method is not getattr(base, one):
            _check_method(f"{name}.{one}", method, is_valued=one in _VALUED)
            is_static = isinstance(inspect.getattr_static(program, one), staticmethod)
            if not one.startswith("_") and not is_static:
                _check_parameters(f"{name}.{one}", method, getattr(base, one))
    warn(*(f"{name}.{slip}" for slip in _slips(type(program), base)))


def _check_delivery(program: Program, name: str) -> None:
    """Refuse a delivery or a combiner that does not exist, and one without `combine`.

    Raises:
        UsageError: It is so.
    """
    word(program.delivery, f"{name}.delivery", _DELIVERIES)
    if callable(program.combiner):
        raise UsageError(
            f'{name}.combiner is a method, but must be the name of a combiner, such as "min"; '
            "rename the method to combine"
        )
    if program.combiner is not None:
        combiner_of(program)
    elif program.delivery == "combined" and type(program).combine is Program.combine:
        raise UsageError(
            f'{name} has delivery "combined", but no combine(); define it, or set combiner'
        )


def _remedy(given: object) -> str:
    """Return the end of the sentence that refuses an object."""
    if isinstance(given, type) and issubclass(given, Program | Pregel):
        return f"; pass an instance, such as {given.__name__}()"
    if isinstance(given, str) and given in algorithms():
        return f"; that algorithm is brimful.{given}(graph)"
    return ""


def _check_method(name: str, method: FunctionType, *, is_valued: bool) -> None:
    """Refuse a method whose calls give no value of use.

    Raises:
        UsageError: It is a generator or a coroutine, or returns no value.
    """
    where = place(name, method)
    if inspect.isgeneratorfunction(method):
        raise UsageError(f"{where} is a generator, which a run cannot use; replace yield by return")
    if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
        raise UsageError(f"{where} is a coroutine, which a run cannot use; leave async out")
    if is_valued and not _returns_value(method):
        raise UsageError(f"{where} always returns None; return a value")


def _check_parameters(name: str, method: FunctionType, of_base: FunctionType) -> None:
    """Refuse a method that cannot take the arguments of its calls, which have no names.

    Raises:
        UsageError: It is so.
    """
    wanted = list(inspect.signature(of_base).parameters)
    signature = inspect.signature(method, follow_wrapped=False)
    try:
        signature.bind(*wanted)
    except TypeError:
        found = [str(one.replace(annotation=one.empty)) for one in signature.parameters.values()]
        raise UsageError(
            f"{place(name, method)} has the parameters ({', '.join(found)}), but is called with "
            f"({', '.join(wanted)}); change the parameters"
        ) from None


def _returns_value(method: FunctionType) -> bool:
    """Return whether a function may return something else than None, or never returns."""
    before, found = None, []
    for one in dis.get_instructions(method):
        if one.opname == "RETURN_CONST":
            found.append(one.argval is not None)
        elif one.opname == "RETURN_VALUE":
            # A jump to the instruction, as of `a or None`, brings another value.
            is_none = before is not None and before.opname == "LOAD_CONST" and before.argval is None
            found.append(one.is_jump_target or not is_none)
        before = one
    return any(found) or not found


def _slips(kind: type, base: type) -> Iterator[str]:
    """Yield a sentence for each name in a class that is nearly one of `base`, or of the other."""
    other = Pregel if base is Program else Program
    for own in (vars(one) for one in kind.__mro__ if one not in base.__mro__):
        for name, value in own.items():
            if name.startswith("_") or hasattr(base, name):
                continue
            if hasattr(other, name) and name not in other.__abstractmethods__:
                yield f"{name} is for a bf.{other.__name__}, and has no meaning here"
                continue
            lacking = [
                known
                for known, default in vars(base).items()
                if known not in own
                and not known.startswith("_")
                and inspect.isfunction(default) == inspect.isfunction(value)
            ]
            for close in get_close_matches(name, lacking, n=1, cutoff=_SIMILAR):
                yield f"{name} has no meaning to a run; did you mean '{close}'?"
