"""Checks of the arguments of Python functions."""

from __future__ import annotations

import math
import operator
import os
import re
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any, SupportsIndex, TypeGuard, cast

from brimful.errors import UsageError
from brimful.wording import did_you_mean, either, literal, printable, shortened

#: The largest number of bytes or of any count.
MOST = 2**63 - 1
#: The longest path that the system takes.
_LONGEST_TEXT = 4096
_INTEGER = re.compile(r"[+-]?[0-9]+")


def is_real(value: object) -> TypeGuard[float]:
    """Return whether `value` is a number within the range of floats."""
    return (
        isinstance(value, Real)
        and not isinstance(value, bool)
        and (not isinstance(value, int) or value.bit_length() < 1000)
    )


def whole_number(text: str) -> int | None:
    """Return the whole number in a text; None if it is not one, or has thousands of digits.

    Unlike `int`, it accepts only the digits 0 to 9, and no underscores.
    """
    digits = text.strip()
    try:
        return int(digits) if _INTEGER.fullmatch(digits) else None
    except ValueError:  # Python's limit of digits.
        return None


def number_of(text: str) -> float:
    """Return the number in a text, or NaN; its digits are as in `whole_number`."""
    try:
        return math.nan if "_" in text or not text.isascii() else float(text)
    except ValueError:
        return math.nan


def rounded(integer: SupportsIndex) -> int | None:
    """Return the float nearest to an integer, as an integer; None if both are equal."""
    value = operator.index(integer)
    nearest = int(float(value))
    return None if nearest == value else nearest


def flag(value: object, name: str) -> bool:
    """Return a truth value, NumPy's too.

    Raises:
        UsageError: `value` is not a truth value.
    """
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise UsageError(f"{name} must be True or False, not {literal(value)}")


def real(value: Any, name: str) -> float | None:
    """Return a finite number, or None.

    Raises:
        UsageError: `value` is neither.
    """
    return None if value is None else number(value, name)


def number(value: Any, name: str) -> float:
    """Return a finite number.

    Raises:
        UsageError: `value` is not one.
    """
    if is_real(value) and math.isfinite(value):
        return float(value)
    raise UsageError(f"{name} must be a number, not {literal(value)}")


def numbers(value: object, name: str) -> list[float]:
    """Return finite numbers: those of a sequence, or of a string such as `0,1,1`.

    Raises:
        UsageError: `value` is neither.
    """
    items: list[object] = []
    try:
        if isinstance(value, str):
            items = [number_of(one) for one in value.split(",")]
        else:
            items = [value] if is_real(value) else list(cast("Iterable[object]", value))
    except (TypeError, ValueError):
        items = [None]
    if all(is_real(one) and math.isfinite(one) for one in items):
        return [float(cast("float", one)) for one in items]
    raise UsageError(f"{name} must be numbers, such as 0,1,1, not {shortened(value)}")


def whole(
    value: Any, name: str, least: int = 0, most: float = MOST, *, floats: bool = False
) -> int:
    """Return a whole number from `least` to `most`; with `floats` it may be one such as 11.5e9.

    Raises:
        UsageError: `value` is another number, or none.
    """
    if floats and is_real(value) and math.isfinite(value) and value == int(value):
        value = int(value)
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise UsageError(f"{name} must be a whole number, not {literal(value)}")
    if number < least:
        raise UsageError(f"{name} must be at least {least:,}, not {shortened(number)}")
    if number > most:
        raise UsageError(f"{name} must be at most {most:,}, not {shortened(number)}")
    return number


def rows_wanted(n: Any, available: int) -> int:
    """Return the number of rows of `top(n)`: no more than are available.

    Raises:
        UsageError: `n` is negative or not a whole number.
    """
    return min(whole(n, "n", most=math.inf, floats=True), available)


def word(value: object, name: str, words: Sequence[str]) -> str:
    """Return one of some words.

    Raises:
        UsageError: `value` is another word, or no word.
    """
    if isinstance(value, str) and value in words:
        return value
    hint = did_you_mean(value, words) if isinstance(value, str) else ""
    raise UsageError(f"{name} must be {either(words)}, not {shortened(value)}{hint}")


def text(value: object, name: str) -> str | None:
    """Return a string, or None.

    Raises:
        UsageError: `value` is neither, or not UTF-8.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        raise UsageError(f"{name} must be a string, not {shortened(value)}")
    if len(value) > _LONGEST_TEXT:
        raise UsageError(
            f"{name} must have at most {_LONGEST_TEXT:,} characters: {shortened(value)}"
        )
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{name} must be UTF-8, and '{printable(value)}' is not") from None
    return value


def path(value: object, name: str) -> str | None:
    """Return a path as a string, or None.

    Raises:
        UsageError: `value` is neither.
    """
    return None if value is None else given_path(value, name)


def given_path(value: object, name: str = "path") -> str:
    """Return a path as a string.

    Raises:
        UsageError: `value` is not a path.
    """
    if isinstance(value, (str, os.PathLike)):
        string = os.fspath(value)
        if isinstance(string, str) and "\0" not in string and string:
            return string
    shown = "an empty text" if value == "" else shortened(value)
    raise UsageError(f"{name} must be a path, not {shown}")


def column_names(names: Any, name: str = "columns") -> list[str] | None:
    """Return names of columns from "age,year" or a sequence; None: none.

    Raises:
        UsageError: An element is not a name, or occurs twice.
    """
    if names is None:
        return None
    listed = names.split(",") if isinstance(names, str) else names
    if not isinstance(listed, (list, tuple)) or not all(isinstance(one, str) for one in listed):
        raise UsageError(f"{name} must be names of columns, not {shortened(names)}")
    cleaned = [one.strip() for one in listed]
    if not cleaned or not all(cleaned) or len(set(cleaned)) < len(cleaned):
        raise UsageError(f"{name} must be names of columns, each once, not {shortened(names)}")
    return cleaned
