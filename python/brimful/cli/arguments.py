"""Types of command-line arguments: bounds, and a sentence for values outside them."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence

from brimful.options.checks import MOST, number_of, whole_number
from brimful.wording import did_you_mean, shortened


def integer(least: int, most: int = MOST) -> Callable[[str], int]:
    """Return an argparse type: a whole number from `least` to `most`."""

    def parse(text: str) -> int:
        number = whole_number(text)
        if number is not None and least <= number <= most:
            return number
        raise argparse.ArgumentTypeError(
            f"expected a whole number from {least:,} to {most:,}, found '{shortened(text)}'"
        )

    return parse


def real(least: float = -math.inf, most: float = math.inf) -> Callable[[str], float]:
    """Return an argparse type: a finite number from `least` to `most`."""
    bounds = (f" from {least:g}" if least > -math.inf else "") + (
        f" to {most:g}" if most < math.inf else ""
    )

    def parse(text: str) -> float:
        number = number_of(text)
        if math.isfinite(number) and least <= number <= most:
            return number
        raise argparse.ArgumentTypeError(f"expected a number{bounds}, found '{shortened(text)}'")

    return parse


def count(most: int) -> Callable[[str], int]:
    """Return an argparse type: a whole number from 0 to `most`, which may be written as 11.5e9."""

    def parse(text: str) -> int:
        number = number_of(text)
        if math.isfinite(number) and 0 <= number <= most and number == int(number):
            return int(number)
        raise argparse.ArgumentTypeError(
            f"expected a whole number from 0 to {most:,}, such as 11.5e9, found '{shortened(text)}'"
        )

    return parse


def one_of(words: Sequence[str]) -> Callable[[str], str]:
    """Return an argparse type: one of some words."""

    def parse(text: str) -> str:
        if text in words:
            return text
        raise argparse.ArgumentTypeError(
            f"'{shortened(text)}' is unknown; choose from {', '.join(words)}"
            + did_you_mean(text, words)
        )

    return parse
