"""Options that several verbs share, and their values."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from brimful.cli.arguments import integer
from brimful.cli.log import add_log
from brimful.cli.progress import ProgressLine, readable
from brimful.errors import BudgetError, UsageError
from brimful.ingest import DUPLICATES, MOST_THREADS, SELF_LOOPS, ImportOptions, Resources
from brimful.sizes import format_bytes, parse_budget
from brimful.source import open_graph

if TYPE_CHECKING:
    from brimful import _native

#: What threads and the smallest work take beside the program.
_LEAST_ADDRESS_SPACE = 64 << 20

#: What `add_subparsers` returns.
Verbs = Any


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help whose description is wrapped and whose examples stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("examples:"):
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)


def add_verb(
    verbs: Verbs,
    name: str,
    summary: str,
    action: Callable[[argparse.Namespace], None],
    *,
    examples: Sequence[str] = (),
) -> argparse.ArgumentParser:
    """Add a verb that calls `action` with the parsed options; return its parser."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        name,
        help=summary,
        description=summary,
        epilog="\n  ".join(["examples:", *examples]) if examples else None,
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.set_defaults(action=action)
    return parser


def add_budget(parser: argparse.ArgumentParser) -> None:
    """Add --budget."""
    parser.add_argument(
        "--budget",
        metavar="SIZE",
        default="auto",
        help="memory limit of the whole process: 500M, 1G or auto (the default: three quarters of "
        "the cgroup limit or of available memory)",
    )


def add_policies(parser: argparse.ArgumentParser) -> None:
    """Add --self-loops and --duplicates."""
    parser.add_argument(
        "--self-loops",
        choices=SELF_LOOPS,
        default="keep",
        help="edges from a vertex to itself (default: keep); their vertices stay, and the first "
        "one that is dropped is reported with its line",
    )
    parser.add_argument(
        "--duplicates",
        choices=DUPLICATES,
        default="keep",
        help="edges with the same ends: keep all (the default), drop all but one, sum their "
        "weights (without weights: their number), or keep the one of min weight; the first one "
        "that is left out is reported with its line, which costs 8 bytes an edge of scratch space",
    )


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Add --threads."""
    parser.add_argument(
        "--threads",
        metavar="N",
        type=integer(1, MOST_THREADS),
        help=f"compute threads, at most {MOST_THREADS:,} (default: all cores)",
    )


def add_reporting(parser: argparse.ArgumentParser) -> None:
    """Add --json, --quiet and --log."""
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object as the last line"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress and no summary")
    add_log(parser)


def resources(options: argparse.Namespace, progress: ProgressLine) -> Resources:
    """Return threads, budget and progress of a verb; on the command line the budget is whole.

    Raises:
        BudgetError: A limit of the address space leaves less than the budget.
    """
    return Resources(
        threads=getattr(options, "threads", None),
        budget=within_address_space(parse_budget(getattr(options, "budget", None))),
        process_budget=True,
        progress=progress.update,
    )


def within_address_space(budget: int | None) -> int | None:
    """Return a budget that a limit of the address space (`ulimit -v`) allows.

    Beyond the limit an allocation fails, which ends the process; so it is looked at before.

    Raises:
        BudgetError: The limit leaves less than the budget, or next to nothing.
    """
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return budget
    try:
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:  # no such file on this system
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    left = limit - used
    if left < _LEAST_ADDRESS_SPACE or (budget is not None and budget > left):
        wanted = max(budget or 0, _LEAST_ADDRESS_SPACE)
        raise BudgetError(
            f"the address space limit of {format_bytes(limit)} leaves {format_bytes(left)}, and "
            f"the work needs {format_bytes(wanted)}; raise it with 'ulimit -v', or lower --budget",
            wanted,
        )
    return left * 3 // 4 if budget is None else budget


def open_named_graph(
    options: argparse.Namespace, given: Resources, progress: ProgressLine
) -> _native.Graph:
    """Open options.graph, importing it first if it is an input file.

    Raises:
        UsageError: The file needs options that only `import` has.
    """
    try:
        return open_graph(options.graph, ImportOptions(), given, progress.say)
    except UsageError as error:
        if not os.path.isfile(options.graph):
            raise
        raise UsageError(
            f"{error}; these are options of 'brimful import {options.graph} NAME.brimful'"
        ) from None


def print_json(figures: dict[str, Any]) -> None:
    """Print one line of JSON."""
    print(json.dumps(figures), flush=True)


def refuse_terminal_input(paths: list[str]) -> None:
    """Refuse `-` twice: standard input can be read once.

    Raises:
        UsageError: Standard input is named more than once.
    """
    if paths.count("-") > 1:
        raise UsageError("standard input (-) is named more than once; name it once")


def peak_memory(peak_bytes: int | None, budget_bytes: int | None) -> str:
    """Return `peak memory 158M of a budget of 200M`."""
    from brimful.sizes import format_bytes

    if peak_bytes is None:
        return "peak memory unknown on this system"
    text = f"peak memory {format_bytes(peak_bytes)}"
    if budget_bytes:
        text += f" of a budget of {format_bytes(budget_bytes)}"
    return text


def show(text: str) -> None:
    """Print a line of a summary on standard output."""
    print(readable(text, sys.stdout), file=sys.stdout, flush=True)
