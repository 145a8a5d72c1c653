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
from types import FrameType
from typing import NoReturn, TextIO

from brimful.cli import (
    algorithms_verb,
    export_verb,
    generate_verb,
    import_verb,
    index_verb,
    info_verb,
    plan_verb,
    run_verb,
    verify_verb,
)
from brimful.cli.log import EventLog
from brimful.cli.progress import readable
from brimful.errors import BrimfulError, UsageError

_VERBS = (
    import_verb,
    generate_verb,
    run_verb,
    plan_verb,
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
    # Arrow's own allocators keep freed memory; the system's gives it back, so the budget holds.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    # A stream that was closed by whoever started this is read by nobody.
    sys.stdout = sys.stdout or _nobody()
    sys.stderr = sys.stderr or _nobody()
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
    except SystemExit:
        # --help and --version.
        raise
    except BaseException as error:  # noqa: BLE001 (a panic of the native side is no Exception)
        code, sentence = 1, _internal_error(error)
    _ignore_signals()
    if sentence is not None:
        _complain(sentence)
    log.end(code, sentence)
    return code


def _nobody() -> TextIO:
    """Return a stream that nobody reads, open until the process ends."""
    return os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def _complain(sentence: str) -> None:
    """Print one line on standard error, even when nobody reads it."""
    line = " ".join(sentence.split())
    try:
        print(f"brimful: {readable(line, sys.stderr)}", file=sys.stderr, flush=True)
    except OSError:
        return


def _interrupt(signal_number: int, frame: FrameType | None) -> NoReturn:
    """Stop the work once, on Ctrl-C or SIGTERM; while it cleans up, more of them do nothing."""
    _ignore_signals()
    raise KeyboardInterrupt


def _ignore_signals() -> None:
    """Let Ctrl-C and SIGTERM do nothing from now on."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _internal_error(error: BaseException) -> str:
    """Return the sentence that brimful itself is at fault; show the traceback if asked for."""
    if os.environ.get(DEBUG_VARIABLE):
        sys.__excepthook__(type(error), error, error.__traceback__)
    return (
        f"internal error ({type(error).__name__}: {error}); please report it with the command and "
        f"what {DEBUG_VARIABLE}=1 shows"
    )
