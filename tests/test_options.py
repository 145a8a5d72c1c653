"""An option costs one entry of a table; flags, help, signatures, checks and requests follow."""

from __future__ import annotations

import argparse
import inspect
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, Unpack

import pytest

import brimful as bf
from brimful import catalog
from brimful.cli import app, tree
from brimful.cli.options import add_options, chosen
from brimful.options.derivations import DeriveVerbOptions
from brimful.options.described import described, sections_of
from brimful.options.exports import ExportOptions
from brimful.options.imports import ImportOptions, ReadOptions, import_options
from brimful.options.runs import (
    AlgorithmOptions,
    AskedOptions,
    CheckpointOptions,
    PlanOptions,
    StoreOptions,
)
from brimful.options.table import Option, checked, flag_of, options_of, picked

GUIDE = Path(__file__).parents[1] / "docs" / "guide"


class MadeOptions(StoreOptions, total=False):
    """The options of stores, and one more."""

    evict_from: Annotated[
        Literal["front", "back"] | None,
        Option('Where a `cache` evicts: "front", or "back"; None: anywhere.'),
    ]


class OtherOptions(TypedDict, total=False):
    """An option of each kind."""

    limit: Annotated[int | None, Option("A limit.", metavar="N", least=1, most=9)]
    size: Annotated[float | None, Option("A size.", whole=True, most=10**12)]
    share: Annotated[float, Option("A share.", default=0.5)]
    fast: Annotated[bool, Option("Be fast.", default=False)]
    sure: Annotated[bool | None, Option("Whether it is sure.", opposite=("unsure", "it is not"))]
    names: Annotated[
        list[str] | None, Option("Names.", repeated=True, check=lambda names, _: names)
    ]


@described({}, "usage")
def made(graph: object, **options: Unpack[MadeOptions]) -> dict[str, Any]:
    """Return the request of an algorithm.

    Returns:
        The request.
    """
    values = checked(MadeOptions, options, "made")
    return catalog.algorithm_request("pagerank", {}, {**checked(AskedOptions, {}), **values})


def namespace(table: type, *words: str) -> argparse.Namespace:
    """Return the options that are given as words of a command line."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_options(parser, table)
    return parser.parse_args(words)


def test_a_new_option_is_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    given = namespace(MadeOptions, "--evict-from", "back")
    assert chosen(given, MadeOptions) == {
        "cache": None,
        "lists": None,
        "scheduler": None,
        "partitioner": None,
        "evict_from": "back",
    }
    parser = argparse.ArgumentParser()
    add_options(parser, MadeOptions)
    shown = " ".join(parser.format_help().split())
    assert "--evict-from {front,back}" in shown
    assert "where a --cache evicts: front, or back (default: anywhere)" in shown

    _, sections, _ = sections_of(inspect.getdoc(made) or "")
    described_as = dict(sections["Args:"])
    assert described_as["evict_from"] == options_of(MadeOptions)["evict_from"].text
    parameters = inspect.signature(made).parameters
    assert list(parameters) == ["graph", "cache", "lists", "scheduler", "partitioner", "evict_from"]
    assert parameters["evict_from"].default is None

    monkeypatch.setattr(catalog, "StoreOptions", MadeOptions)
    assert made(None, evict_from="back", cache="lru:3")["store"] == {
        "url": None,
        "opener": None,
        "serializer": None,
        "cache": "lru:3",
        "lists": None,
        "scheduler": None,
        "partitioner": None,
        "evict_from": "back",
    }
    with pytest.raises(bf.UsageError, match=r"evict_from must be front or back.*mean 'back'"):
        made(None, evict_from="bakc")  # type: ignore[typeddict-item]
    with pytest.raises(TypeError, match=r"made\(\) got an unexpected.*did you mean 'evict_from'"):
        made(None, evict_form="back")  # type: ignore[call-arg]


def test_types_say_how_options_are_read() -> None:
    none = {"limit": None, "size": None, "share": 0.5, "fast": False, "sure": None, "names": None}
    assert chosen(namespace(OtherOptions), OtherOptions) == none
    words = ["--limit=3", "--size=1e9", "--share=2", "--fast", "--unsure", "--names=a", "--names=b"]
    assert chosen(namespace(OtherOptions, *words), OtherOptions) == {
        "limit": 3,
        "size": 10**9,
        "share": 2.0,
        "fast": True,
        "sure": False,
        "names": ["a", "b"],
    }
    for name, wrong in (("limit", 10), ("size", 0.5), ("share", "x"), ("fast", 1), ("sure", "x")):
        with pytest.raises(bf.UsageError, match=f"{name} must be"):
            checked(OtherOptions, {name: wrong})


def test_an_option_without_a_check_is_found() -> None:
    class Unchecked(TypedDict, total=False):
        several: Annotated[int | str, Option("Several types.", default=1)]

    with pytest.raises(TypeError, match=r"several .* needs a check"):
        checked(Unchecked, {})


@pytest.mark.parametrize("table", [AlgorithmOptions, PlanOptions, ReadOptions, ExportOptions])
def test_every_option_is_sound_and_in_the_guide(table: type) -> None:
    guide = "".join(path.read_text() for path in sorted(GUIDE.glob("*.md")))
    for name, option in options_of(table).items():
        default = checked(table, {})[name]  # type: ignore[index]
        assert option.checked_value(option.default) == default
        assert option.text.endswith(".") and not option.command_help.endswith("."), name
        assert f"{flag_of(name)}" in guide or f"{name}=" in guide, name


def test_help_writes_only_options_as_flags() -> None:
    helps = {name: one.command_help for name, one in options_of(DeriveVerbOptions).items()}
    assert "the column vertex and one other" in helps["contract"] and "--around" in helps["hops"]
    assert "define cache_score" in options_of(AskedOptions)["cache"].command_help


def test_the_usage_of_a_plan_names_graph_and_algorithm_once() -> None:
    usage = " ".join(tree.verbs(app.build_parser())["plan"].format_usage().split())
    assert usage.endswith("[GRAPH] ALGORITHM") and usage.count("ALGORITHM") == 1


def test_the_verbs_have_the_options_of_their_tables() -> None:
    verbs = tree.verbs(app.build_parser())
    for verb, tables in (
        ("run", [AskedOptions, CheckpointOptions]),
        ("plan", [PlanOptions]),
        ("import", [ImportOptions]),
        ("export", [ExportOptions]),
    ):
        flags = set(tree.option_names(verbs[verb]))
        assert {flag_of(name) for table in tables for name in options_of(table)} <= flags


def test_what_identifies_an_import_is_all_of_its_options() -> None:
    assert import_options().keys() == options_of(ImportOptions).keys()
    assert picked(ImportOptions, import_options(duplicates="sum"))["duplicates"] == "sum"
