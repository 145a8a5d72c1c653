"""The exported names; `make lint` checks the calls in `typed` with mypy."""

from __future__ import annotations

import re
from pathlib import Path

import brimful as bf


def test_the_typed_program_uses_every_exported_name() -> None:
    text = (Path(__file__).parent / "typed" / "every_name.py").read_text()
    assert {name for name in bf.__all__ if not re.search(rf"bf\.{name}\b", text)} == set()
