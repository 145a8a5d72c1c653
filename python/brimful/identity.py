"""The identity of a program in Python, so that no checkpoint of another program is used."""

from __future__ import annotations

import hashlib
import inspect
import pickle
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from io import BytesIO
from types import BuiltinFunctionType, CodeType, FunctionType, MemberDescriptorType, ModuleType
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
    texts = sorted(
        (name, *(text_of(one, name) for one in functions)) for name, functions in code.items()
    )
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
    # Caches and compiled functions, which are not functions themselves, name the function they
    # call.
    value = inspect.unwrap(value, stop=lambda one: isinstance(one, FunctionType))  # type: ignore[arg-type]
    return value if isinstance(value, FunctionType) else None


def text_of(value: Any, name: str) -> str:
    """Return a string that is the same in every process for equal values.

    Raises:
        UsageError: A part of the value cannot be pickled; `name` is that of the value.
    """
    try:
        return _Texts().of(value)
    except Exception as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise UsageError(
            f"the attribute '{name}' of the program cannot be compared with that of a checkpoint "
            f"({reason}); begin its name with an underscore if states do not depend on it"
        ) from error


class _Texts:
    """Makes the text of a value from those of its parts, which may refer to one another."""

    def __init__(self) -> None:
        # The depths of the values that a text is being made of, by identity.
        self._depths: dict[int, int] = {}
        # Long texts, each with its value, so that no other value gets the same identity.
        self._known: dict[int, tuple[object, str]] = {}

    def of(self, value: Any) -> str:
        if value is None or isinstance(value, int | float | complex | str):
            return repr(value)
        if isinstance(value, type | ModuleType):
            return value.__name__
        identity = id(value)
        if identity in self._depths:
            return f"depth {self._depths[identity]}"
        if identity in self._known:
            return self._known[identity][1]
        self._depths[identity] = len(self._depths)
        text = self._of_parts(value)
        del self._depths[identity]
        if len(text) > _LONGEST:
            # Without this, a value that occurs again and again would be taken apart each time.
            text = f"{type(value).__name__} {_digest(text)}"
            self._known[identity] = value, text
        return text

    def _of_parts(self, value: Any) -> str:
        if isinstance(value, bytes):
            return repr(value) if len(value) <= _LONGEST else hashlib.sha256(value).hexdigest()
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            fields = zip(value._fields, map(self.of, value), strict=True)
            return f"{type(value).__name__}[{', '.join(map('='.join, fields))}]"
        if isinstance(value, list | tuple):
            return f"{type(value).__name__}[{', '.join(map(self.of, value))}]"
        if isinstance(value, set | frozenset):
            return f"set[{', '.join(sorted(map(self.of, value)))}]"
        if isinstance(value, dict):
            items = [f"{self.of(key)}: {self.of(one)}" for key, one in value.items()]
            return f"dict[{', '.join(sorted(items))}]"
        if function := _function(value):
            return self._of_function(function)
        if isinstance(value, Aggregator):
            return self.of(vars(value))
        pickled = BytesIO()
        _Pickler(pickled, value, self).dump(value)
        return f"{type(value).__qualname__} {hashlib.sha256(pickled.getbuffer()).hexdigest()}"

    def _of_function(self, function: FunctionType) -> str:
        cells = inspect.getclosurevars(function).nonlocals.values()
        bound = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), *cells]
        return repr((self._of_code(function.__code__), [self.of(value) for value in bound]))

    def _of_code(self, code: CodeType) -> str:
        constants = [
            self._of_code(one) if isinstance(one, CodeType) else self.of(one)
            for one in code.co_consts
        ]
        return repr((code.co_code.hex(), code.co_names, constants))


class _Pickler(pickle.Pickler):
    """Pickles one object with the texts of its parts: pickled sets are in the order of hashes."""

    def __init__(self, file: BytesIO, whole: object, texts: _Texts) -> None:
        super().__init__(file, protocol=5)
        self._whole, self._texts = whole, texts

    def persistent_id(self, part: object) -> bytes | None:
        # Functions and classes here say how the object is made again; pickle names them.
        if part is self._whole or isinstance(part, type | FunctionType | BuiltinFunctionType):
            return None
        return self._texts.of(part).encode()


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
