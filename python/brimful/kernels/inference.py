"""The types of the numbers of a program, as Numba infers them from its methods."""

from __future__ import annotations

from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

from brimful.kernels.computing import Computing
from brimful.kernels.fields import fitting, made_of, tuple_of
from brimful.kernels.machine_code import internal
from brimful.kernels.methods import NotCompilable, place
from brimful.kernels.numba_errors import explained, noun
from brimful.kernels.numbers import KINDS, Numbers, kind_of, named_tuple_type, shown
from brimful.kernels.slots import Slot, aggregates_type
from brimful.kernels.translating import CHECKED_RECEIVED, MADE_MESSAGE, MADE_VALUE
from brimful.kernels.unassigned import unassigned
from brimful.wording import counted

if TYPE_CHECKING:
    from brimful.record import Record


class Typed:
    """Functions of a program for Numba, and the first argument that they receive."""

    def __init__(
        self,
        methods: dict[str, FunctionType],
        parameters: dict[str, float | int],
        slots: tuple[Slot, ...],
    ) -> None:
        """Take the functions by name, the numbers that they read, and the aggregators."""
        numba: Any = import_module("numba")
        self._numba, self._methods, self.slots = numba, methods, slots
        self.parameters = named_tuple_type(
            "Parameters", (*parameters, *(["aggregated"] if slots else []))
        )
        self.aggregates = aggregates_type(slots)
        self.functions = {
            name: internal(method, checks_bounds=True) for name, method in methods.items()
        }
        for name, method in methods.items():
            self._check_variables(name, method)
        numbers = (KINDS[kind_of(value)](value) for value in parameters.values())
        seen = [one.shown(one.initial) for one in slots]
        values = [*numbers, *([self.aggregates(*seen)] if slots else [])]
        self._self = numba.typeof(self.parameters(*values))

    def _check_variables(self, name: str, method: FunctionType) -> None:
        """Refuse a method that may read a variable without a value.

        Raises:
            NotCompilable: It may.
        """
        if found := unassigned(method.__code__):
            variable, line = found
            raise NotCompilable(
                f"{self._where(name, line)} may read {variable} before it is assigned, which "
                "compiled code cannot detect",
                f"Assign {variable} on every path before it is read",
            )

    def _record(self, kind: Any, fields: tuple[Any, ...]) -> Any:
        """Return the type of a named tuple."""
        return self._numba.types.BaseTuple.from_types(fields, kind)

    def _check_values(
        self, returned: Any, kinds: list[tuple[str, str]], where: str, verb: str = "return"
    ) -> None:
        """Check that a method at a place returns a tuple of values of some names and kinds.

        Raises:
            NotCompilable: The method returns, sets or sends something else.
        """
        types = self._numba.types
        names = ", ".join(one for one, _ in kinds)
        if not isinstance(returned, types.BaseTuple) or len(returned) != len(kinds):
            raise NotCompilable(
                f"{where} {verb}s {noun(returned)} in place of {counted(len(kinds), 'value')} "
                f"({names})",
                f"{verb.capitalize()} a tuple of them in each case",
            )
        fits = {
            "float64": types.Float | types.Integer | types.Boolean,
            "int64": types.Integer | types.Boolean,
            "bool": types.Boolean,
        }
        for value, (one, kind) in zip(returned, kinds, strict=True):
            if not isinstance(value, fits[kind]):
                raise NotCompilable(
                    f"{where} {verb}s {noun(types.unliteral(value))} for {one}, which has the type "
                    f"{kind}",
                    "Convert the value",
                )

    def _where(self, name: str, line: int | None = None) -> str:
        """Return a method with its file and a line; None: its first line."""
        return place(name, self._methods[name], line)

    def _number(self, name: str, *arguments: Any) -> Any:
        """Return int64 or float64, as a method returns integers or floats.

        Raises:
            NotCompilable: Numba cannot type the method, or it returns something else.
        """
        returned = self._returned(name, *arguments)
        if name == "signal" and isinstance(returned, self._numba.types.Optional):
            returned = returned.type
        is_state = name in ("initial_state", "collect")
        remedy = ", or give the program the fields of its state" * is_state
        return self._kind(returned, f"{self._where(name)} returns", f"Return a number{remedy}")

    def _kind(self, returned: Any, doing: str, remedy: str) -> Any:
        """Return int64 or float64 for the type of an integer or a float.

        Raises:
            NotCompilable: The type is another one.
        """
        nb, returned = self._numba, self._numba.types.unliteral(returned)
        if isinstance(returned, nb.types.Float):
            return nb.float64
        if isinstance(returned, nb.types.Integer | nb.types.Boolean):
            return nb.int64
        raise NotCompilable(f"{doing} {noun(returned)} in place of a number", remedy)

    def numbers(self) -> Numbers:
        """Find the types of states and signals."""
        raise NotImplementedError

    def _returned(self, name: str, *arguments: Any) -> Any:
        """Return the type that Numba infers for the value of a method.

        Raises:
            NotCompilable: Numba cannot type the method.
        """
        function = self.functions[name]
        try:
            function.compile((self._self, *arguments))
        except NotCompilable:
            raise
        except Exception as error:
            # Code that Numba does not know raises errors of many kinds, KeyError among them.
            reason, remedy = explained(error, self._methods[name].__code__)
            raise NotCompilable(
                f"Numba cannot compile {self._where(name)}{reason}", remedy
            ) from error
        return function.overloads[(self._self, *arguments)].signature.return_type


class Methods(Typed):
    """The methods of a program that signals and collects."""

    def __init__(
        self,
        methods: dict[str, FunctionType],
        parameters: dict[str, float | int],
        record_of_states: Record | None,
        slots: tuple[Slot, ...],
        *,
        along: str,
        combiner: str,
        has_degrees: bool,
    ) -> None:
        """Take the parts of a program; `has_degrees`: its methods know degrees."""
        super().__init__(methods, parameters, slots)
        self.record, self.combiner, self._along = record_of_states, combiner, along
        self._is_sum, self.has_degrees = combiner == "sum", has_degrees
        # In sums, vertices without edges share one state, so that ids are not read.
        self.shown = shown(has_ids=not self._is_sum, has_degrees=has_degrees)

    def numbers(self) -> Numbers:
        """Find the types of states and signals.

        Raises:
            NotCompilable: Numba cannot type a method, or it returns something else than numbers.
        """
        nb, none = self._numba, self._numba.none
        degree = (nb.int64,) * self.has_degrees
        first = (nb.int64,) * (not self._is_sum) + (none, none, *degree)
        state = self._state("initial_state", self._record(self.shown.first, first))
        for _ in range(2):
            later = self._record(self.shown.later, (state, *degree))
            signal = self._signal(later)
            if self._along != "unchanged" or self._is_sum:
                signal = nb.float64
            collected = self._state("collect", later, nb.types.UniTuple(signal, 1))
            if collected == state or state == nb.float64:
                break
            state = collected
        if "signal_score" in self._methods:
            self._number("signal_score", self._record(self.shown.scored, (state, *degree, state)))
        if self.slots:
            self._check_contributions(later, state)
        return Numbers("record" if self.record else str(state), str(signal))

    def _signal(self, later: Any) -> Any:
        """Return the type of a signal.

        Raises:
            NotCompilable: A source of sums may have no signal: on a store its last one would stay.
        """
        nb = self._numba
        arguments = later, nb.int64, nb.float64
        if self._is_sum and isinstance(self._returned("signal", *arguments), nb.types.Optional):
            raise NotCompilable(
                f'{self._where("signal")} may return None, which combiner "sum" does not allow',
                "Return 0.0 where there is no signal",
            )
        return self._number("signal", *arguments)

    def _state(self, name: str, *arguments: Any) -> Any:
        """Return the type of the state that a method returns.

        Raises:
            NotCompilable: Numba cannot type the method, or it does not return fields of a state.
        """
        if self.record is None:
            return self._number(name, *arguments)
        kinds = [(field.name, field.kind) for field in self.record.fields]
        self._check_values(self._returned(name, *arguments), kinds, self._where(name))
        return tuple_of(self.record)

    def _check_contributions(self, later: Any, state: Any) -> None:
        returned = self._returned("aggregate", later, state)
        kinds = [(slot.name, slot.kind) for slot in self.slots]
        if len(kinds) == 1:
            returned = self._numba.types.UniTuple(returned, 1)
        self._check_values(returned, kinds, self._where("aggregate"))


class ComputeTypes(Typed):
    """The functions of a Pregel program, as `computing` makes them."""

    def __init__(
        self,
        computing: Computing,
        parameters: dict[str, float | int],
        slots: tuple[Slot, ...],
        *,
        has_degrees: bool,
    ) -> None:
        """Take the parts of a program; `has_degrees`: its functions know degrees."""
        self._numba = import_module("numba")
        self.computing, self.has_degrees = computing, has_degrees
        super().__init__(self._with_helpers(computing.functions), parameters, slots)
        degree = ("degree",) * has_degrees
        self.first = named_tuple_type("Vertex", ("id",) * (not computing.is_full) + degree)
        self.later = named_tuple_type("Vertex", ("superstep", *degree))

    def _with_helpers(self, functions: dict[str, FunctionType]) -> dict[str, FunctionType]:
        """Return functions that know those which make values and messages with fields."""
        value, sent = self.computing.value, self.computing.sent
        helpers: dict[str, Any] = {}
        if value is not None:
            helpers[MADE_VALUE] = self._making(value, "set")
        if sent is not None:
            helpers[MADE_MESSAGE] = self._making(sent, "send")
            helpers[CHECKED_RECEIVED] = internal(_checked_received)
        if not helpers:
            return functions
        known = dict(functions)
        for name in ("first", "later"):
            one = functions[name]
            names = {**one.__globals__, **helpers}
            known[name] = FunctionType(one.__code__, names, one.__name__, one.__defaults__)
        return known

    def _making(self, made: Record, verb: str) -> Any:
        """Return a function that makes a record of a tuple on a line of `compute`.

        For Numba it is a name; each call is checked by the types of its arguments.
        """
        nb, kinds = self._numba, [(field.name, field.kind) for field in made.fields]
        method = self.computing.functions["first"]

        def of_fields(value: Any, line: Any) -> Any:
            raise NotImplementedError

        names = {
            "Record": made.type,
            "fitting": internal(fitting),
            **{name: getattr(nb, name) for name in ("int64", "float64", "float32", "boolean")},
        }
        # Numba compares the signature with that of `typed`, annotations included.
        head = "def make(value: Any, line: Any) -> Any:"
        exec(f"{head}\n    return Record({made_of(made)})", names)

        def typed(value: Any, line: Any) -> Any:
            where = place("compute", method, getattr(line, "literal_value", None))
            self._check_values(value, kinds, where, verb)
            return names["make"]

        nb.extending.overload(of_fields, prefer_literal=True)(typed)
        return of_fields

    def numbers(self) -> Numbers:
        """Find the types of values and messages.

        Raises:
            NotCompilable: Numba cannot type a method, or it gives the vertex something else than
                numbers.
        """
        nb, of_values, of_messages = self._numba, self.computing.value, self.computing.message
        first = self._record(self.first, (nb.int64,) * len(self.first._fields))
        later = self._record(self.later, (nb.int64,) * len(self.later._fields))
        if of_values is None:
            state = self._number("initial_value", first)
        else:
            self._check_fields("initial_value", of_values, first)
            state = tuple_of(of_values)
        is_float = self.computing.along != "unchanged" or self.computing.combiner == "sum"
        message = nb.float64 if is_float else nb.int64
        if of_messages is not None:
            message = tuple_of(of_messages)
            self._check_fields("combine", of_messages, message, message)
        while True:
            before = state, message
            for name, vertex in (("first", first), ("later", later)):
                kinds = self._results(name, vertex, state, nb.boolean, message)
                # A float in one of them makes all of them floats; fields have fixed types.
                state, message = (
                    nb.float64 if nb.float64 in pair else pair[1]
                    for pair in zip((state, message), kinds, strict=True)
                )
            if before == (state, message):
                return Numbers(
                    str(state) if of_values is None else "record",
                    str(message) if of_messages is None else "record",
                )

    def _check_fields(self, name: str, made: Record, *arguments: Any) -> None:
        """Check that a method returns the fields of a record.

        Raises:
            NotCompilable: It does not.
        """
        kinds = [(field.name, field.kind) for field in made.fields]
        self._check_values(self._returned(name, *arguments), kinds, self._where(name))

    def _results(self, name: str, *arguments: Any) -> tuple[Any, Any]:
        """Return the types of the value and of the message after a call.

        Raises:
            NotCompilable: One of them, or a contribution to an aggregator, is neither a number nor
                a record.
        """
        returned, where = self._returned(name, *arguments), self._where(name)
        if not isinstance(returned, self._numba.types.BaseTuple):
            raise NotCompilable(f"{where} raises an exception in each call", "Change the method")
        value, _, message, _, *contributed = returned
        kinds = [(slot.name, slot.kind) for slot in self.slots]
        self._check_values(self._numba.types.Tuple(contributed[1::2]), kinds, where)
        if self.computing.value is None:
            remedy = "Set a number, or give the program the fields of its value_type"
            value = self._kind(value, f"{where} sets the value to", remedy)
        elif value != tuple_of(self.computing.value):
            raise NotCompilable(
                f"{where} sets the value to {noun(value)} in place of its fields",
                "Assign a tuple of all fields to the value alone",
            )
        if self.computing.message is None:
            remedy = "Send a number, or give the program the fields of its message_type"
            message = self._kind(message, f"{where} sends", remedy)
        return value, message

    def _where(self, name: str, line: int | None = None) -> str:
        shown = "compute" if name in ("first", "later") else name
        return place(shown, self._methods[name], line)


def _checked_received(received: Any, has_message: Any) -> Any:
    """Return the received message."""
    if not has_message:
        raise IndexError
    return received
