"""The exported names; `make lint` checks the calls in `typed` with mypy."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest

import brimful as bf


def test_the_typed_program_uses_every_exported_name() -> None:
    text = (Path(__file__).parent / "typed" / "every_name.py").read_text()
    assert {name for name in bf.__all__ if not re.search(rf"bf\.{name}\b", text)} == set()


def annotated() -> Iterator[tuple[str, object]]:
    """Yield all public functions, classes and methods with their names."""
    for name in bf.__all__:
        value = getattr(bf, name)
        if callable(value):
            yield name, value
        for method, member in inspect.getmembers(value) if inspect.isclass(value) else ():
            function = member.fget if isinstance(member, property) else member
            if not method.startswith("_") and inspect.isroutine(function):
                yield f"{name}.{method}", function


@pytest.mark.parametrize("name", [name for name, _ in annotated()])
def test_annotations_have_types(name: str) -> None:
    hints = typing.get_type_hints(dict(annotated())[name])
    assert all(not isinstance(hint, str) for hint in hints.values())


def test_annotations_do_not_load_the_packages_that_they_name() -> None:
    code = (
        "import sys, brimful as bf; bf.Graph, bf.Result, bf.run; "
        "print([name for name in ('pyarrow', 'pandas', 'duckdb', 'matplotlib') "
        "if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
