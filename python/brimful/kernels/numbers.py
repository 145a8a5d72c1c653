"""The numbers of a program on shards: states, signals and parameters, as 64-bit words."""

from __future__ import annotations

import math
import struct
from collections import namedtuple
from typing import Any, NamedTuple

#: The types of parameters, by their names.
KINDS: dict[str, Any] = {"float64": float, "int64": int, "bool": bool}


def kind_of(value: float | int) -> str:
    """Return the type of a parameter."""
    return next(name for name, kind in reversed(KINDS.items()) if isinstance(value, kind))


class Numbers(NamedTuple):
    """The types of states and signals: "float64" or "int64", or "record" if they have fields."""

    state: str
    signal: str


class ShownFields(NamedTuple):
    """The fields of a vertex that methods see: at first, later, and for `signal_score`."""

    first: Any
    later: Any
    scored: Any


def shown(*, has_ids: bool, has_degrees: bool) -> ShownFields:
    """Return classes of named tuples, which Numba knows how to read."""
    degree = ("degree",) * has_degrees
    first = ("id",) * has_ids + ("state", "signalled", *degree)
    later = ("state", *degree)
    return ShownFields(
        named_tuple_type("Vertex", first),
        named_tuple_type("Vertex", later),
        named_tuple_type("Vertex", (*later, "signalled")),
    )


def named_tuple_type(name: str, fields: tuple[str, ...]) -> Any:
    """Return a class of named tuples."""
    return namedtuple(name, fields)


def bits(value: float | int) -> int:
    """Return the bits of a 64-bit number as a signed integer."""
    if isinstance(value, float):
        return int(struct.unpack("<q", struct.pack("<d", value))[0])
    return int(value)


def engine_combiner(combiner: str) -> str:
    """Return the engine's combiner: "and" is the "or" of complements, which kernels pass to it."""
    return "or" if combiner == "and" else combiner


def silence_of(combiner: str, signal: str) -> float | int:
    """Return the signal of a silent vertex, which is also the result of combining no signals.

    For "and" it is the complement. No message with fields has only zeros.
    """
    if combiner in ("sum", "or", "and", "combine"):
        return -0.0 if combiner == "sum" else 0
    is_float = signal == "float64"
    least, greatest = (-math.inf, math.inf) if is_float else (-(1 << 63), (1 << 63) - 1)
    return greatest if combiner == "min" else least
