"""Options that several verbs share, and their values."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from brimful.cli.arguments import count, integer, real
from brimful.cli.log import add_log
from brimful.cli.progress import ProgressLine, readable
from brimful.errors import BudgetError, InputError, UsageError
from brimful.io.source import open_graph, with_owner
from brimful.memory import ARROW_ADDRESS_BYTES, address_space
from brimful.options.imports import import_options
from brimful.options.table import Option, ResourceOptions, checked, flag_of, options_of, picked
from brimful.resources import Resources
from brimful.sizes import format_bytes
from brimful.wording import escape_controls

if TYPE_CHECKING:
    from brimful import _native

#: Rows or items that are written together.
_WRITTEN_TOGETHER = 1024
#: Address space that threads and the smallest work take besides the program.
_LEAST_ADDRESS_SPACE = 80 << 20
#: Address space that modules take which a command loads later.
_MODULES_BYTES = 48 << 20

#: The type that `add_subparsers` returns, which argparse does not export.
Verbs = Any
#: A parser, or a group of its options.
Parser = argparse.ArgumentParser | argparse._ArgumentGroup


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help whose description is wrapped and whose examples stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("examples:"):
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        # A metavar of several words names all words of its argument.
        if isinstance(action.metavar, str) and " " in action.metavar:
            return action.metavar
        return super()._format_args(action, default_metavar)


def add_verb(
    verbs: Verbs,
    name: str,
    summary: str,
    action: Callable[[argparse.Namespace], int | None],
    *,
    more: str = "",
    examples: Sequence[str] = (),
) -> argparse.ArgumentParser:
    """Add a verb that calls `action` with the parsed options; return its parser.

    `more` follows the summary in the help of the verb. An action may return an exit code.
    """
    parser: argparse.ArgumentParser = verbs.add_parser(
        name,
        help=summary,
        description=f"{summary} {more}".rstrip(),
        epilog="\n  ".join(["examples:", *examples]) if examples else None,
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.set_defaults(action=action)
    return parser


def add_options(parser: Parser, table: type, *names: str) -> None:
    """Add the options of a table, or those with some names."""
    for name, option in options_of(table).items():
        if names and name not in names:
            continue
        about = {"dest": name, "default": option.default, "help": option.command_help}
        if option.opposite is not None:
            other, other_help = option.opposite
            group = parser.add_mutually_exclusive_group()
            group.add_argument(flag_of(name), action="store_const", const=True, **about)
            about["help"] = other_help
            group.add_argument(f"--{other}", action="store_const", const=False, **about)
        elif option.kind is bool:
            parser.add_argument(flag_of(name), action="store_true", **about)
        else:
            about["action"] = "append" if option.repeated else "store"
            metavar, about["type"] = _reader(option)
            about |= {"metavar": option.metavar or metavar, "choices": option.words or None}
            parser.add_argument(*filter(None, [option.short, flag_of(name)]), **about)


def _reader(option: Option) -> tuple[str | None, Callable[[str], Any] | None]:
    """Return metavar and argparse type of an option; both None for a string."""
    if option.kind is int:
        return "N", integer(option.least, option.most)
    if option.kind is float:
        return ("N", count(option.most)) if option.whole else ("X", real(option.least))
    if option.kind == Sequence[float]:
        return "X", real(option.least)
    return None, None


def chosen(options: argparse.Namespace, table: type) -> dict[str, Any]:
    """Return the options of a table as the native module takes them.

    Raises:
        UsageError: A value is unknown.
    """
    return picked(table, checked(table, picked(table, vars(options))))


def add_reporting(parser: argparse.ArgumentParser) -> None:
    """Add --json, --quiet and --log."""
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object as the last line"
    )
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="show neither progress nor summary"
    )
    add_log(parser)


def resources(options: argparse.Namespace, progress: ProgressLine) -> Resources:
    """Return threads, budget and progress of a verb; on the command line the budget is whole.

    Raises:
        BudgetError: A limit of the address space leaves less than the budget.
    """
    given = chosen(options, ResourceOptions)
    budget = within_address_space(given["budget"])
    progress.within(budget)
    return Resources(
        threads=given["threads"],
        budget=budget,
        process_budget=True,
        progress=progress.update,
    )


def within_address_space(budget: int | None) -> int | None:
    """Return a budget that a limit of the address space (`ulimit -v`) allows.

    Beyond the limit an allocation fails, which ends the process, so the limit is checked first.

    Raises:
        BudgetError: The limit leaves less than the budget, or next to nothing.
    """
    space = address_space()
    if space is None:
        return budget
    limit, left = space
    if left < _LEAST_ADDRESS_SPACE or (budget is not None and budget > left):
        wanted = max(budget or 0, _LEAST_ADDRESS_SPACE)
        raise BudgetError(
            f"the address space limit of {format_bytes(limit)} leaves {format_bytes(left)}, but "
            f"the work needs {format_bytes(wanted)}; raise the limit with 'ulimit -v', or lower "
            "--budget",
            wanted,
        )
    if budget is not None:
        return budget
    # Room for pyarrow, which a command may need, if much is left besides.
    besides = left - ARROW_ADDRESS_BYTES - _MODULES_BYTES
    return besides if besides >= left // 3 else left * 3 // 4


def open_named_graph(
    options: argparse.Namespace, given: Resources, progress: ProgressLine
) -> _native.Graph:
    """Open options.graph, importing it first if it is an input file.

    Raises:
        UsageError, InputError: As `open_graph`; the sentence says which options only `import` has.
    """
    try:
        return open_graph(options.graph, import_options(), given, progress.say)
    except (UsageError, InputError) as error:
        owner = f"'brimful import {options.graph} NAME.brimful'"
        raise with_owner(error, options.graph, owner) from None


def print_json(figures: dict[str, Any]) -> None:
    """Print one line of JSON; the items of an iterator are written as they come."""
    separator = "{"
    for name, value in figures.items():
        sys.stdout.write(f"{separator}{json.dumps(name)}: ")
        separator = ", "
        if not isinstance(value, Iterator):
            sys.stdout.write(json.dumps(value))
            continue
        before = "["
        while together := list(islice(value, _WRITTEN_TOGETHER)):
            sys.stdout.write(before + json.dumps(together)[1:-1])
            before = ", "
        sys.stdout.write("[]" if before == "[" else "]")
    print("}", flush=True)


def refuse_repeated_input(paths: list[str]) -> None:
    """Refuse `-` twice: standard input can be read once.

    Raises:
        UsageError: Standard input is named more than once.
    """
    if paths.count("-") > 1:
        raise UsageError("standard input (-) is named more than once; name it once")


def peak_memory(peak_bytes: int | None, budget_bytes: int | None) -> str:
    """Return `peak memory 158M of a budget of 200M`."""
    if peak_bytes is None:
        return "peak memory unknown on this system"
    text = f"peak memory {format_bytes(peak_bytes)}"
    if budget_bytes:
        text += f" of a budget of {format_bytes(budget_bytes)}"
    return text


def show(text: str) -> None:
    """Print a line of a summary on standard output."""
    print(readable(text, sys.stdout), file=sys.stdout, flush=True)


def show_rows(names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table, one row on each line, its columns separated by tabs."""
    lines: Iterable[str] = ("\t".join(map(str, row)) for row in chain([names], rows))
    if sys.stdout.isatty():
        lines = map(escape_controls, lines)
    lines = (line + "\n" for line in lines)
    while together := "".join(islice(lines, _WRITTEN_TOGETHER)):
        sys.stdout.write(together)
    sys.stdout.flush()
