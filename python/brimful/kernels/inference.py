"""The types of the numbers of a program, as Numba infers them from its methods."""

from __future__ import annotations

from importlib import import_module
from types import FunctionType
from typing import Any

from brimful.kernels.methods import Unfit, place
from brimful.kernels.numbers import Numbers, record, shown


class Methods:
    """The methods of a program for Numba, and what they receive in compiled code."""

    def __init__(
        self, methods: dict[str, FunctionType], parameters: dict[str, float | int], *, is_sum: bool
    ) -> None:
        """Take methods and parameters of a program; `is_sum` tells its combiner."""
        numba: Any = import_module("numba")
        self._numba, self._methods, self._is_sum = numba, methods, is_sum
        self.parameters = record("Parameters", tuple(parameters))
        self.shown = shown(is_sum=is_sum)
        self.functions = {name: numba.njit(method) for name, method in methods.items()}
        numbers = (float(v) if isinstance(v, float) else int(v) for v in parameters.values())
        self._self = numba.typeof(self.parameters(*numbers))

    def numbers(self, along: str) -> Numbers:
        """Find the types of states and signals.

        Raises:
            Unfit: Numba cannot type a method, or a value is not one number.
        """
        nb, none = self._numba, self._numba.none
        first = (none, nb.int64, none) if self._is_sum else (nb.int64, none, none)
        state = self._number("initial_state", self._record(self.shown.first, first))
        for _ in range(2):
            later = self._record(self.shown.later, (state, nb.int64) if self._is_sum else (state,))
            signal = self._number("signal", later, nb.int64, nb.float64)
            if along != "unchanged" or self._is_sum:
                signal = nb.float64
            collected = self._number("collect", later, nb.types.UniTuple(signal, 1))
            if collected == state or state == nb.float64:
                break
            state = collected
        if "signal_score" in self._methods:
            self._number("signal_score", self._record(self.shown.scored, (state, nb.int64, state)))
        return Numbers(str(state), str(signal))

    def _record(self, kind: Any, fields: tuple[Any, ...]) -> Any:
        """Return the type of a named tuple."""
        return self._numba.types.NamedTuple(fields, kind)

    def _number(self, name: str, *arguments: Any) -> Any:
        """Return int64 or float64, as a method returns integers or floats.

        Raises:
            Unfit: Numba cannot type the method, or it returns something else.
        """
        nb, function = self._numba, self.functions[name]
        where = place(name, self._methods[name])
        try:
            function.compile((self._self, *arguments))
        except nb.core.errors.NumbaError as error:
            raise Unfit(
                f"Numba cannot compile {where}{_explained(error)}", "Change the method"
            ) from error
        found = function.overloads[(self._self, *arguments)].signature.return_type
        found = getattr(found, "type", found) if isinstance(found, nb.types.Optional) else found
        if isinstance(found, nb.types.Float):
            return nb.float64
        if isinstance(found, nb.types.Integer | nb.types.Boolean):
            return nb.int64
        raise Unfit(
            f"{where} returns {found}, and a compiled program has states and signals of one number "
            "each",
            "Return a number",
        )


def _explained(error: Exception) -> str:
    """Return line and reason out of an error of Numba."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(("Failed in", "During:", "---"))]
    # A signature is on a line of its own.
    has_signature = len(lines) > 1 and lines[1].startswith(">>>")
    reason = " ".join(lines[: 2 if has_signature else 1]).replace(": >>> ", " ")
    where = getattr(error, "loc", None)
    line = f" at line {where.line}" if where is not None and where.line else ""
    return f"{line}: {reason.rstrip('.')}"
