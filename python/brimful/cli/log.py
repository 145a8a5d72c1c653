"""`--log`: the events of a command, as lines of JSON."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
from collections.abc import Sequence

from brimful.errors import StoreIoError, UsageError
from brimful.io.redaction import redacted, redacted_word
from brimful.wording import printable


def add_log(parser: argparse.ArgumentParser) -> None:
    """Add --log."""
    parser.add_argument(
        "--log",
        metavar="FILE",
        help="append events as lines of JSON: start, plan (not with --store), phases, every "
        "superstep, spills, bytes by kind, end; - is standard error",
    )


def command_of(words: Sequence[str]) -> str:
    """Return a command line quoted for a shell, without secrets."""
    return printable(shlex.join(["brimful", *(redacted_word(word) for word in words)]))


class EventLog:
    """The log of one command; without --log it does nothing."""

    def __init__(self) -> None:
        """Begin without a log."""
        self._open = False
        self._name = ""

    def start(self, path: str | None, words: Sequence[str], output: str | None = None) -> None:
        """Begin to write to `path`, unless it is None, with the words of the command line.

        Raises:
            UsageError: The log is inside a graph directory, is the `output` of the command, or a
                file that is not a log.
            StoreIoError: The log cannot be written.
        """
        if path is None:
            return
        if path == "-" and sys.__stderr__ is None:
            raise StoreIoError("--log -: standard error is closed; name a file")
        from brimful import _native

        if path != "-":
            _refuse_other_files(path, output)
        _native.log_to(None if path == "-" else path)
        self._open = True
        self._name = "the log on standard error" if path == "-" else f"the log {path}"
        _native.log_start(command_of(words))

    def end(self, exit_code: int, error: str | None = None) -> str | None:
        """Write how the command ended; return a sentence if the log is incomplete."""
        if not self._open:
            return None
        from brimful import _native

        failure = _native.log_end(exit_code, None if error is None else printable(redacted(error)))
        if failure is None:
            return None
        return f"cannot write {self._name}: {failure}; the work itself was not affected"


def _refuse_other_files(path: str, output: str | None) -> None:
    """Refuse a file that is not a log."""
    from brimful.io.formats import refuse_in_graph
    from brimful.io.regular import folder_around

    refuse_in_graph(path)
    folder_around(path, "write")
    if output is not None and os.path.realpath(path) == os.path.realpath(output):
        raise UsageError(f"{path} is both the output and the log; name two files")
    # Pipes and devices are not read; opening the log refuses a file that cannot be read.
    if os.path.isfile(path):
        with contextlib.suppress(OSError), open(path, "rb") as file:
            if file.read(1) not in (b"", b"{"):
                raise UsageError(f"{path} is not a log, whose lines are JSON; name another file")
