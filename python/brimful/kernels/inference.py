"""The types of the numbers of a program, as Numba infers them from its methods."""

from __future__ import annotations

import re
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

from brimful.kernels.methods import Unfit, place
from brimful.kernels.numbers import Numbers, record, shown
from brimful.kernels.slots import Slot, aggregates_type

if TYPE_CHECKING:
    from brimful.record import Record


#: Colors in messages of Numba.
_COLORS = re.compile(r"\x1b\[[0-9;]*m")
#: Numba's names of the types of fields.
_NUMBA = {"int64": "int64", "float64": "float64", "bool": "boolean"}


class Methods:
    """The methods of a program for Numba, and the arguments that they receive in compiled code."""

    def __init__(
        self,
        methods: dict[str, FunctionType],
        parameters: dict[str, float | int],
        record_of_states: Record | None,
        slots: tuple[Slot, ...],
        *,
        is_sum: bool,
    ) -> None:
        """Take the parts of a program; `is_sum` tells its combiner."""
        numba: Any = import_module("numba")
        self._numba, self._methods, self._is_sum = numba, methods, is_sum
        self.record, self.slots = record_of_states, slots
        self.parameters = record("Parameters", (*parameters, *(["aggregated"] if slots else [])))
        self.aggregates = aggregates_type(slots)
        self.shown = shown(is_sum=is_sum)
        self.functions = {name: numba.njit(method) for name, method in methods.items()}
        numbers = (float(v) if isinstance(v, float) else int(v) for v in parameters.values())
        seen = [bool(one.initial) if one.kind == "bool" else one.initial for one in slots]
        values = [*numbers, *([self.aggregates(*seen)] if slots else [])]
        self._self = numba.typeof(self.parameters(*values))

    def numbers(self, along: str) -> Numbers:
        """Find the types of states and signals.

        Raises:
            Unfit: Numba cannot type a method, or it returns something else than its numbers.
        """
        nb, none = self._numba, self._numba.none
        first = (none, nb.int64, none) if self._is_sum else (nb.int64, none, none)
        state = self._state("initial_state", self._record(self.shown.first, first))
        for _ in range(2):
            later = self._record(self.shown.later, (state, nb.int64) if self._is_sum else (state,))
            signal = self._number("signal", later, nb.int64, nb.float64)
            if along != "unchanged" or self._is_sum:
                signal = nb.float64
            collected = self._state("collect", later, nb.types.UniTuple(signal, 1))
            if collected == state or state == nb.float64:
                break
            state = collected
        if "signal_score" in self._methods:
            self._number("signal_score", self._record(self.shown.scored, (state, nb.int64, state)))
        if self.slots:
            self._check_contributions(later, state)
        return Numbers("record" if self.record else str(state), str(signal))

    def _record(self, kind: Any, fields: tuple[Any, ...]) -> Any:
        """Return the type of a named tuple."""
        return self._numba.types.BaseTuple.from_types(fields, kind)

    def _state(self, name: str, *arguments: Any) -> Any:
        """Return the type of the state that a method returns.

        Raises:
            Unfit: Numba cannot type the method, or it does not return the fields of a state.
        """
        if self.record is None:
            return self._number(name, *arguments)
        kinds = [(field.name, field.kind) for field in self.record.fields]
        self._check_values(name, self._returned(name, *arguments), kinds)
        return self._record(
            self.record.type,
            tuple(getattr(self._numba.types, _NUMBA[kind]) for _, kind in kinds),
        )

    def _check_contributions(self, later: Any, state: Any) -> None:
        found = self._returned("aggregate", later, state)
        kinds = [(slot.name, slot.kind) for slot in self.slots]
        if len(kinds) == 1:
            found = self._numba.types.UniTuple(found, 1)
        self._check_values("aggregate", found, kinds)

    def _check_values(self, name: str, found: Any, kinds: list[tuple[str, str]]) -> None:
        """Check that a method returns a tuple of values of some names and kinds.

        Raises:
            Unfit: It does not.
        """
        types, where = self._numba.types, place(name, self._methods[name])
        names = ", ".join(one for one, _ in kinds)
        if not isinstance(found, types.BaseTuple) or len(found) != len(kinds):
            raise Unfit(
                f"{where} returns {found}, and not a tuple of {len(kinds)}: {names}",
                "Return a tuple in all cases",
            )
        fits = {
            "float64": types.Float | types.Integer | types.Boolean,
            "int64": types.Integer | types.Boolean,
            "bool": types.Boolean,
        }
        for value, (one, kind) in zip(found, kinds, strict=True):
            if not isinstance(value, fits[kind]):
                raise Unfit(
                    f"{where} returns {value} for {one}, which is {kind}", "Convert the value"
                )

    def _number(self, name: str, *arguments: Any) -> Any:
        """Return int64 or float64, as a method returns integers or floats.

        Raises:
            Unfit: Numba cannot type the method, or it returns something else.
        """
        nb, found = self._numba, self._returned(name, *arguments)
        found = getattr(found, "type", found) if isinstance(found, nb.types.Optional) else found
        if isinstance(found, nb.types.Float):
            return nb.float64
        if isinstance(found, nb.types.Integer | nb.types.Boolean):
            return nb.int64
        is_state = name in ("initial_state", "collect")
        raise Unfit(
            f"{place(name, self._methods[name])} returns {found}, and not one number",
            "Return a number" + (", or give the program the fields of its state" * is_state),
        )

    def _returned(self, name: str, *arguments: Any) -> Any:
        """Return the type that Numba infers for the value of a method.

        Raises:
            Unfit: Numba cannot type the method.
        """
        nb, function = self._numba, self.functions[name]
        where = place(name, self._methods[name])
        try:
            function.compile((self._self, *arguments))
        except nb.core.errors.NumbaError as error:
            raise Unfit(
                f"Numba cannot compile {where}{_explained(error)}", "Change the method"
            ) from error
        return function.overloads[(self._self, *arguments)].signature.return_type


def _explained(error: Exception) -> str:
    """Return the line and the reason that an error of Numba states."""
    text = _COLORS.sub("", str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(("Failed in", "During:", "---"))]
    # A signature is on a line of its own.
    has_signature = len(lines) > 1 and lines[1].startswith(">>>")
    reason = " ".join(lines[: 2 if has_signature else 1]).replace(": >>> ", " ")
    where = getattr(error, "loc", None)
    line = f" at line {where.line}" if where is not None and where.line else ""
    return f"{line}: {reason.rstrip('.')}"
