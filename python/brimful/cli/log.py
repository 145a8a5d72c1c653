"""`--log`: what a command does, as lines of JSON."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence


def add_log(parser: argparse.ArgumentParser) -> None:
    """Add --log."""
    parser.add_argument(
        "--log",
        metavar="FILE",
        help="append events as lines of JSON: start, plan (but with --store), phases, every "
        "superstep, spills, bytes by what they are, end; - is standard error",
    )


class EventLog:
    """The log of one command; does nothing where none is asked for."""

    def __init__(self) -> None:
        """Begin without a log."""
        self._open = False

    def start(self, path: str | None, arguments: Sequence[str] | None) -> None:
        """Begin to write to `path`, if it is one, with the command line.

        Raises:
            UsageError: it is inside a graph directory.
            StoreIoError: it cannot be written.
        """
        if path is None:
            return
        from brimful import _native
        from brimful.temporary import refuse_in_graph

        if path != "-":
            refuse_in_graph(path)
        _native.log_to(None if path == "-" else path)
        self._open = True
        words = sys.argv[1:] if arguments is None else arguments
        _native.log_start(shlex.join(["brimful", *words]))

    def end(self, exit_code: int, error: str | None = None) -> None:
        """Write how the command ended."""
        if self._open:
            from brimful import _native

            _native.log_end(exit_code, error)
