"""States and messages of several numbers: the fields of a structured type of NumPy.

Invariant: a field has the same value however a program runs. Methods read Python's `int`, `float`
and `bool`, and values that a field cannot hold are errors; floats are rounded to their type.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from brimful.errors import UsageError
from brimful.kernels.numbers import named_tuple_type
from brimful.pregel.program import Pregel
from brimful.wording import shortened

if TYPE_CHECKING:
    from brimful.program import Program

#: Types of fields: the type that methods see, and the letter of the module `struct`.
_KINDS = {
    "f8": ("float64", "d"),
    "f4": ("float64", "f"),
    "i8": ("int64", "q"),
    "i4": ("int64", "i"),
    "i2": ("int64", "h"),
    "i1": ("int64", "b"),
    "u4": ("int64", "I"),
    "u2": ("int64", "H"),
    "u1": ("int64", "B"),
    "b1": ("bool", "?"),
}

#: Numbers of words of 64 bits that a state in a compiled program may have.
STATE_WORDS = range(1, 9)


class Field(NamedTuple):
    """A field of a state or a message."""

    name: str
    #: Its type, such as "u4", and the type that methods see: "int64", "float64" or "bool".
    code: str
    kind: str
    #: The range of an integer field.
    least: int
    greatest: int


class Record:
    """The fields of the states, or of the messages, of a program."""

    def __init__(self, dtype: Any, attribute: str = "state_type", name: str = "State") -> None:
        """Take a structured type of NumPy, which an attribute of the program has.

        `name` is that of the class of named tuples.

        Raises:
            UsageError: `dtype` is something else, or a field has a name or a type that is not
                supported.
        """
        import numpy as np

        self._names = attribute, name
        try:
            kinds = np.dtype(dtype)
        except (TypeError, ValueError) as error:
            raise UsageError(f"{attribute} must be a structured type of NumPy: {error}") from error
        if not kinds.names:
            raise UsageError(
                f"{attribute} must be a structured type of NumPy, such as "
                f'numpy.dtype([("rank", "f8"), ("seen", "u4")]), not {shortened(dtype)}'
            )
        if "vertex" in kinds.names and attribute != "message_type":
            raise UsageError(
                f"{attribute} has a field vertex, the name of the id column of the result; choose "
                "another name"
            )
        #: The fields, in their order.
        self.fields = tuple(_field(one, kinds[one], attribute) for one in kinds.names)
        try:
            #: The class of states or messages, as methods see them.
            self.type: Any = named_tuple_type(name, kinds.names)
        except ValueError as error:
            raise UsageError(f"{attribute} has an invalid field name: {error}") from error
        self._fits = [_fitting(field) for field in self.fields]
        self._bytes = struct.Struct("<" + "".join(_KINDS[field.code][1] for field in self.fields))

    def of(self, values: Any, method: str, verb: str = "returned") -> Any:
        """Return the state made of the fields that a method returned, set or sent.

        Raises:
            TypeError, ValueError, OverflowError: A value does not fit its field.
        """
        if not isinstance(values, tuple) or len(values) != len(self.fields):
            names = ", ".join(field.name for field in self.fields)
            raise ValueError(
                f"{method} {verb} {shortened(values)}, not a tuple of all fields: {names}"
            )
        return self.type(*[fit(value) for fit, value in zip(self._fits, values, strict=True)])

    def of_types(self, kinds: Sequence[tuple[str, str]]) -> Record:
        """Return a record with other types of fields, and the same class of named tuples."""
        other = Record(list(kinds), *self._names)
        other.type = self.type
        return other

    def made(self, values: Sequence[Any]) -> Any:
        """Return the named tuple of values that fit their fields."""
        return self.type._make(values)

    def shown(self, values: Sequence[Any]) -> Any:
        """Return the state of numbers that compiled code wrote."""
        whole = zip(self.fields, values, strict=True)
        return self.type(*[bool(one) if field.kind == "bool" else one for field, one in whole])

    def store(self, states: Any, values: Any) -> None:
        """Set records of NumPy to the arrays that a method returned for the fields.

        Raises:
            TypeError, ValueError, OverflowError: The arrays do not fit the fields.
        """
        import numpy as np

        if not isinstance(values, tuple) or len(values) != len(self.fields):
            names = ", ".join(field.name for field in self.fields)
            raise ValueError(f"it returned {shortened(values)}, not a tuple of {names}")
        for field, value in zip(self.fields, values, strict=True):
            given = np.asarray(value)
            if not np.can_cast(given.dtype, field.kind, "same_kind"):
                raise TypeError(f"the field {field.name} is {field.kind}, not {given.dtype}")
            is_out = (given < field.least) | (given > field.greatest)
            if field.kind == "int64" and is_out.any():
                raise OverflowError(
                    f"the field {field.name} holds {field.least} to {field.greatest}, not "
                    f"{given[is_out][0] if given.ndim else given}"
                )
            with np.errstate(over="ignore"):
                states[field.name] = given

    def serializer(
        self, dumps: Callable[[Any], bytes], loads: Callable[[bytes], Any]
    ) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
        """Return a serializer that writes states as their bytes, and other objects as another."""
        kind, form = self.type, self._bytes

        def write(value: Any) -> bytes:
            return b"\1" + form.pack(*value) if type(value) is kind else b"\0" + dumps(value)

        def read(data: bytes) -> Any:
            return kind._make(form.unpack(data[1:])) if data[:1] == b"\1" else loads(data[1:])

        return write, read

    def columns(self, states: Sequence[Any]) -> dict[str, Any]:
        """Return the fields of states as columns of Arrow."""
        import pyarrow as pa

        return {
            field.name: pa.array([state[at] for state in states], self.arrow(field))
            for at, field in enumerate(self.fields)
        }

    @staticmethod
    def arrow(field: Field) -> Any:
        """Return the Arrow type of a field."""
        import numpy as np
        import pyarrow as pa

        return pa.from_numpy_dtype(np.dtype(field.code))

    def padded(self) -> Any:
        """Return the type of a state as compiled programs keep it, in whole words.

        Raises:
            ValueError: The state is too large.
        """
        return in_words([(field.name, field.code) for field in self.fields], STATE_WORDS)


def in_words(fields: Sequence[tuple[str, str]], sizes: Sequence[int], noun: str = "a state") -> Any:
    """Return the type of some fields, as many bytes as the least fitting number of words has.

    Raises:
        ValueError: They are too large.
    """
    import numpy as np

    plain = np.dtype(list(fields), align=True)
    words = next((words for words in sizes if 8 * words >= plain.itemsize), None)
    if words is None:
        raise ValueError(
            f"{noun} has {plain.itemsize} bytes, but compiled programs allow at most "
            f"{8 * sizes[-1]}"
        )
    parts = [plain.fields[name] for name, _ in fields]  # type: ignore[index]
    return np.dtype(
        {
            "names": list(plain.names or ()),
            "formats": [kind for kind, *_ in parts],
            "offsets": [offset for _, offset, *_ in parts],
            "itemsize": 8 * words,
        }
    )


def record_of(program: Program | Pregel) -> Record | None:
    """Return the record of the states of a program, if it has one.

    Raises:
        UsageError: `state_type` or `value_type` is not a type of supported fields.
    """
    if isinstance(program, Pregel):
        of_values = program.value_type
        return None if of_values is None else Record(of_values, "value_type", "Value")
    return None if program.state_type is None else Record(program.state_type)


def message_record_of(program: Pregel) -> Record | None:
    """Return the record of the messages of a program, if it has one.

    Raises:
        UsageError: `message_type` is not a type of supported fields.
    """
    kind = program.message_type
    return None if kind is None else Record(kind, "message_type", "Message")


def _field(name: str, kind: Any, attribute: str) -> Field:
    import numpy as np

    code = kind.str.lstrip("<|=")
    if code not in _KINDS:
        names = ", ".join(np.dtype(code).name for code in _KINDS)
        raise UsageError(
            f"the field {name} of {attribute} has the type {kind}; choose one of {names}"
        )
    if kind.kind in "iu":
        bounds = np.iinfo(kind)
        return Field(name, code, _KINDS[code][0], int(bounds.min), int(bounds.max))
    return Field(name, code, _KINDS[code][0], 0, 1)


def _fitting(field: Field) -> Callable[[Any], Any]:
    """Return the function that makes a value fit a field.

    It raises a TypeError for a value of another kind, and an OverflowError for an integer that is
    out of range.
    """
    import numpy as np

    def wrong(value: Any, wanted: str) -> TypeError:
        return TypeError(f"the field {field.name} is {wanted}, not {shortened(value)}")

    def to_float(value: Any) -> float:
        if not isinstance(value, float | int | np.number | np.bool_):
            raise wrong(value, "a number")
        return float(value)

    def to_single(value: Any) -> float:
        return ctypes.c_float(to_float(value)).value

    def to_int(value: Any) -> int:
        if not isinstance(value, int | np.integer | np.bool_):
            raise wrong(value, "an integer")
        if not field.least <= value <= field.greatest:
            raise OverflowError(
                f"the field {field.name} holds {field.least} to {field.greatest}, not {value}"
            )
        return int(value)

    def to_bool(value: Any) -> bool:
        if not isinstance(value, bool | np.bool_):
            raise wrong(value, "true or false")
        return bool(value)

    if field.kind == "float64":
        return to_float if field.code == "f8" else to_single
    return to_bool if field.kind == "bool" else to_int
