"""The identity of a program in Python, so that no checkpoint of another program is used."""

from __future__ import annotations

import hashlib
import inspect
import pickle
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from types import CodeType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any

from brimful.errors import UsageError
from brimful.pregel.aggregators import Aggregator
from brimful.pregel.program import Pregel
from brimful.program import Program

#: Longer values are compared by their digest.
_LONGEST = 40
_DIGITS = 12


def dependencies(program: object, base: type) -> Iterator[tuple[str, str]]:
    """Yield names and values: the code of the methods of its class, and its public attributes.

    Code and attributes of `base` and its own bases do not count. Attributes whose names begin with
    an underscore are assumed to change nothing, and functions outside the class are not compared.

    Raises:
        UsageError: An attribute cannot be pickled, and therefore not compared.
    """
    kinds = [kind for kind in type(program).__mro__ if kind not in base.__mro__]
    members = {name: value for kind in reversed(kinds) for name, value in vars(kind).items()}
    # Methods call overridden ones by `super`.
    code: dict[str, list[FunctionType]] = defaultdict(list)
    for kind in kinds:
        for name, value in vars(kind).items():
            if function := _function(value):
                code[name].append(function)
    texts = sorted((name, *map(_of_function, functions)) for name, functions in code.items())
    yield "code of methods", _digest(repr(texts))
    # The value of a cached property follows from attributes that are compared.
    values = {name: value for name, value in members.items() if not _function(value)} | {
        name: value
        for name, value in vars(program).items()
        if not isinstance(members.get(name), cached_property)
    }
    for name, value in sorted(values.items()):
        if name.startswith("_"):
            continue
        if isinstance(value, MemberDescriptorType):
            value = getattr(program, name, None)
        text = text_of(value, name)
        # The prefix avoids clashes with other compared names, such as `mode`.
        yield f"attribute {name}", text if len(text) <= _LONGEST else _digest(text)


def _function(value: object) -> FunctionType | None:
    """Return the function behind an attribute of a class; None if it has none."""
    if isinstance(value, property):
        value = value.fget
    elif isinstance(value, cached_property):
        value = value.func
    elif isinstance(value, staticmethod | classmethod):
        value = value.__func__
    # Caches and compiled functions, which are no functions themselves, name the one they call.
    value = inspect.unwrap(value, stop=lambda one: isinstance(one, FunctionType))  # type: ignore[arg-type]
    return value if isinstance(value, FunctionType) else None


def _of_function(function: FunctionType, within: tuple[FunctionType, ...] = ()) -> str:
    if function in within:
        # The function refers to itself.
        return function.__qualname__
    cells = inspect.getclosurevars(function).nonlocals.values()
    bound = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), *cells]
    values = [text_of(value, function.__name__, (*within, function)) for value in bound]
    return repr((_of_code(function.__code__), values))


def _of_code(code: CodeType) -> str:
    constants = [
        _of_code(one) if isinstance(one, CodeType) else text_of(one, code.co_name)
        for one in code.co_consts
    ]
    return repr((code.co_code.hex(), code.co_names, constants))


def text_of(value: Any, name: str, within: tuple[FunctionType, ...] = ()) -> str:
    """Return a string that is the same in every process for equal values."""

    def text(one: Any) -> str:
        return text_of(one, name, within)

    if value is None or isinstance(value, int | float | complex | str | bytes):
        return repr(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        fields = zip(value._fields, map(text, value), strict=True)
        return f"{type(value).__name__}[{', '.join(map('='.join, fields))}]"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}[{', '.join(map(text, value))}]"
    if isinstance(value, set | frozenset):
        return f"set[{', '.join(sorted(map(text, value)))}]"
    if isinstance(value, dict):
        items = [f"{text(key)}: {text(one)}" for key, one in value.items()]
        return f"dict[{', '.join(sorted(items))}]"
    if isinstance(value, type | ModuleType):
        return value.__name__
    if function := _function(value):
        return _of_function(function, within)
    if isinstance(value, Aggregator):
        return text(vars(value))
    try:
        return f"{type(value).__qualname__} {_digest(pickle.dumps(value, protocol=5))}"
    except Exception as error:
        raise UsageError(
            f"the attribute '{name}' of the program cannot be compared with that of a checkpoint "
            f"({error}); begin its name with an underscore if states do not depend on it"
        ) from error


def _digest(data: str | bytes) -> str:
    given = data.encode() if isinstance(data, str) else data
    return hashlib.sha256(given).hexdigest()[:_DIGITS]


def identity_of(
    program: Program | Pregel, serializer: str, tolerance: float | None, *, whole: bool
) -> list[tuple[str, str]]:
    """Return names and values of everything besides the graph that states depend on.

    The class is first; unless `whole`, for checkpoints, it is all.
    """
    kind = type(program)
    name = ("program", f"{kind.__module__}.{kind.__qualname__}")
    if not whole:
        return [name]
    own = [name, ("serializer", serializer), ("tolerance", f"{tolerance or 0:g}")]
    if isinstance(program, Pregel):
        return [*own, *dependencies(program, Pregel)]
    return [*own, ("delivery", program.delivery), *dependencies(program, Program)]
