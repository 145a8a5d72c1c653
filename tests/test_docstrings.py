"""Every public name documents arguments, returns and errors, with an example that runs."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import brimful as bf
from brimful.options import described
from brimful.options.described import parameters_of, sections_of
from brimful.options.imports import IMPORT
from brimful.options.runs import RUN, PlanOptions
from brimful.options.table import texts

#: What raises nothing: it reads no file, and works when closed.
RAISES_NOTHING = {
    "Master.halt",
    "PregelVertex.send_to_all",
    "PregelVertex.vote_to_halt",
    "Graph.close",
    "id_of_name",
}
#: Classes that users make by calling them.
CONSTRUCTED = {
    "Bag",
    "BloomFilter",
    "Box",
    "FrequencyCounter",
    "Lists",
    "Map",
    "MembershipSet",
    "SpillingDict",
}
MODULES = [
    module.name
    for module in pkgutil.walk_packages(bf.__path__, "brimful.")
    if module.name not in ("brimful.__main__", "brimful._native")
]
OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


def classes() -> Iterator[tuple[str, type]]:
    """Yield the exported classes."""
    for name in bf.__all__:
        item = getattr(bf, name)
        if inspect.isclass(item):
            yield name, item


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the exported functions, and the methods and constructors of exported classes."""
    for name in bf.__all__:
        if inspect.isfunction(item := getattr(bf, name)):
            yield name, item
    for name, kind in classes():
        if issubclass(kind, BaseException):
            continue
        for member, value in inspect.getmembers(kind, inspect.isroutine):
            public = not member.startswith("_") or (member == "__init__" and name in CONSTRUCTED)
            if public and inspect.unwrap(value).__module__.startswith("brimful"):
                yield f"{name}.{member}", value


def lacking(name: str, function: Callable[..., Any]) -> list[str]:
    """Return the missing parts of the docstring of a function."""
    text = inspect.getdoc(function) or ""
    _, sections, examples = sections_of(text)
    found = [
        f"{name}: {parameter} is not described"
        for parameter in parameters_of(function)
        if parameter not in dict(sections.get("Args:", []))
    ]
    returned = str(inspect.signature(function).return_annotation)
    if returned not in ("None", "NoReturn") and not sections.keys() & {"Returns:", "Yields:"}:
        found.append(f"{name}: no Returns")
    if "Raises:" not in sections and name not in RAISES_NOTHING:
        found.append(f"{name}: no Raises")
    for kind in dict(sections.get("Raises:", [])):
        known = getattr(bf, kind, None) or getattr(importlib.import_module("builtins"), kind, None)
        if not (isinstance(known, type) and issubclass(known, BaseException)):
            found.append(f"{name}: {kind} is no error")
    if ">>>" not in examples and not name.endswith(".__init__"):
        found.append(f"{name}: no example")
    return found


def test_functions_and_methods_are_described() -> None:
    walked = dict(functions())
    assert {"pagerank", "Graph.neighbors", "Result.to_pandas", "Map.update"} <= walked.keys()
    assert len(walked) > 130
    found = [line for name, function in walked.items() for line in lacking(name, function)]
    assert found == [], "\n".join(found)


def test_classes_and_attributes_are_in_examples() -> None:
    found: list[str] = []
    for name, kind in classes():
        text = inspect.getdoc(kind) or ""
        if ">>>" not in text:
            found.append(f"{name}: no example")
        for member, value in inspect.getmembers(kind, lambda value: isinstance(value, property)):
            if member.startswith("_") or member == "native":
                continue
            if not value.__doc__:
                found.append(f"{name}.{member}: no description")
            if not re.search(rf"(>>>|\.\.\.).*\.{member}\b", f"{text}\n{value.__doc__}"):
                found.append(f"{name}.{member}: in no example")
    assert found == [], "\n".join(found)


def test_a_docstring_that_lacks_something_is_found() -> None:
    def function(one: int, two: int) -> int:
        """Add.

        Args:
            one: A number.

        Raises:
            NoError: Never.
        """
        return one + two

    assert lacking("function", function) == [
        "function: two is not described",
        "function: no Returns",
        "function: NoError is no error",
        "function: no example",
    ]


def test_shared_texts_are_used() -> None:
    """A description that no parameter has, or an error that nothing names, goes."""
    everything = "".join(inspect.getdoc(function) or "" for _, function in functions())
    whole = " ".join(everything.split())
    plans = texts(PlanOptions)
    for table in (RUN, plans, IMPORT, described.EXPORT, described.LOOK_UP, described.COLLECTION):
        for name, text in table.items():
            assert f"{name}: {text}" in whole, (name, text)
    for kind, reason in described.ERRORS.values():
        assert kind in whole and reason in whole, reason


@pytest.mark.parametrize("name", ["brimful", *MODULES])
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    outcome = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)
    assert outcome.failed == 0


def test_no_example_is_left_out() -> None:
    for name in ["brimful", *MODULES]:
        module = importlib.import_module(name)
        assert "+SKIP" not in Path(str(module.__file__)).read_text(), name
