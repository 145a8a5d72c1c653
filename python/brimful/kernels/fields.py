"""Records in compiled code: code that makes, loads and stores their fields, and their sizes.

Invariant: a field has the same value as in an interpreted run. Integers beyond its range are
errors, and floats are rounded to its type.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from brimful.kernels.methods import NotCompilable
from brimful.record import STATE_WORDS, Field, Record, in_words

#: Numba's names of the types of fields.
NUMBA = {"int64": "int64", "float64": "float64", "bool": "boolean"}
#: The field of a message that tells it from no message, and that of a state that has halted. The
#: names of other fields do not begin so.
PRESENT, HALTED = "_present", "_halted"
#: Numbers of words of a message, for which the engine has code.
_MESSAGE_WORDS = (2, 3, 8)


def made_of(record: Record) -> str:
    """Return the expressions that make the fields of a record from `value`."""
    return ", ".join(_field_made(field, f"value[{at}]") for at, field in enumerate(record.fields))


def _field_made(field: Field, value: str) -> str:
    number = f"{NUMBA[field.kind]}({value})"
    if field.code == "f4":
        return f"float64(float32({value}))"
    if field.kind == "int64" and field.code != "i8":
        return f"fitting({number}, {field.least}, {field.greatest})"
    return number


def loaded(record: Record, kept: str) -> str:
    """Return the expressions that load the fields of a record from memory."""
    return ", ".join(f'{NUMBA[field.kind]}({kept}["{field.name}"])' for field in record.fields)


def stored(record: Record, value: str) -> list[str]:
    """Return the statements that store the fields of a value in `record`."""
    return [f'record["{field.name}"] = {value}[{at}]' for at, field in enumerate(record.fields)]


def fitting(value: Any, least: Any, greatest: Any) -> Any:
    """Return an integer that fits a field."""
    if value < least or value > greatest:
        raise OverflowError
    return value


def kinds_of(record: Record) -> list[tuple[str, str]]:
    """Return the names and types of fields."""
    return [(field.name, field.code) for field in record.fields]


def message_in_memory(sent: Record) -> Any:
    """Return the type of a message in memory: its fields, and whether it is there.

    Raises:
        ValueError: It is too large.
    """
    return in_words([*kinds_of(sent), (PRESENT, "b1")], _MESSAGE_WORDS, "a message")


def types_of(state: list[tuple[str, str]], sent: Record | None) -> tuple[Any, Any | None]:
    """Return the types of states and messages in memory; without fields, messages have none.

    Raises:
        NotCompilable: They are too large.
    """
    try:
        message = None if sent is None else message_in_memory(sent)
        return in_words(state, STATE_WORDS), message
    except ValueError as error:
        raise NotCompilable(str(error), "Leave fields out") from error


def tuple_of(record: Record) -> Any:
    """Return Numba's type of a record, as methods see it."""
    types: Any = import_module("numba").types
    kinds = tuple(getattr(types, NUMBA[field.kind]) for field in record.fields)
    return types.BaseTuple.from_types(kinds, record.type)
