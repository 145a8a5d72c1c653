"""Entry of the command line: arguments, exit codes, signals.

Importing this module and building the parser loads neither the native module nor pyarrow, so that
`brimful --help` answers at once; each verb imports what it needs when it runs.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import NoReturn

from brimful.cli import (
    algorithms_verb,
    export_verb,
    generate_verb,
    import_verb,
    index_verb,
    info_verb,
    run_verb,
    verify_verb,
)
from brimful.cli.log import EventLog
from brimful.errors import BrimfulError, UsageError

_VERBS = (
    import_verb,
    generate_verb,
    run_verb,
    algorithms_verb,
    info_verb,
    verify_verb,
    index_verb,
    export_verb,
)
_INTERRUPTED = 130

#: Set to see the traceback of an internal error.
DEBUG_VARIABLE = "BRIMFUL_DEBUG"


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, raised."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see '{self.prog} --help'")


class _Version(argparse.Action):
    """Print the version, looked up only when asked for."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> NoReturn:
        from brimful import __version__

        print(f"brimful {__version__}")
        raise SystemExit(0)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all verbs; cheap."""
    parser = _Parser(
        prog="brimful",
        description="Graphs larger than memory, in a memory budget that you set.",
        epilog="Exit codes: 0 done, 2 usage, 3 bad input or graph, 4 budget too small, "
        "5 corrupt data, 6 input/output, 7 the user's program failed, 130 interrupted.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    verbs = parser.add_subparsers(metavar="VERB", dest="verb", required=True)
    for verb in _VERBS:
        verb.add_to(verbs)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    sys.excepthook = _internal_error
    # Arrow's own allocators keep freed memory; the system's gives it back, so the budget holds.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    log = EventLog()
    code, sentence = 0, None
    try:
        options = build_parser().parse_args(arguments)
        log.start(getattr(options, "log", None), arguments)
        options.action(options)
        sys.stdout.flush()
    except BrimfulError as error:
        code, sentence = error.exit_code, str(error)
    except KeyboardInterrupt as error:
        code = _INTERRUPTED
        sentence = "; ".join(["interrupted", *getattr(error, "__notes__", [])])
    except BrokenPipeError:
        # The reader of our output has gone: nothing is left to say, and nobody to say it to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        place = f" {error.filename}" if error.filename else ""
        code = 6
        sentence = f"the system refused{place}: {error.strerror or error}; check the disk and paths"
    except MemoryError:
        code, sentence = 4, "out of memory although the budget was kept; give a smaller --budget"
    if sentence is not None:
        _complain(sentence)
    log.end(code, sentence)
    return code


def _complain(sentence: str) -> None:
    """Print one line on standard error, even when nobody reads it."""
    line = " ".join(sentence.split())
    try:
        print(f"brimful: {line}", file=sys.stderr, flush=True)
    except OSError:
        return


def _interrupt(signal_number: int, frame: FrameType | None) -> NoReturn:
    """Stop the work once, on Ctrl-C or SIGTERM; while it cleans up, more of them do nothing."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _internal_error(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Say in one sentence that brimful itself is at fault; the exit code is 1."""
    _complain(
        f"internal error ({kind.__name__}: {error}); please report it with the command and what "
        f"{DEBUG_VARIABLE}=1 shows"
    )
    if os.environ.get(DEBUG_VARIABLE):
        sys.__excepthook__(kind, error, traceback)
