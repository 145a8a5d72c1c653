"""Entry of the command line: arguments, exit codes, signals.

Importing this module and building the parser loads neither the native module nor pyarrow, so that
`brimful --help` answers at once; each verb imports its modules when it runs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from brimful.cli import streams, tree
from brimful.cli.arguments import one_of
from brimful.cli.log import EventLog
from brimful.cli.progress import readable
from brimful.cli.request import parameter_names, parameters_as_options
from brimful.errors import BrimfulError, StoreIoError, UsageError
from brimful.io.redaction import redacted
from brimful.memory import address_space
from brimful.optional import leave_pandas_out
from brimful.wording import did_you_mean, unknown

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

#: All verbs but `help`, in the order of the help. Each has a module of its own, `import_verb`.
_VERBS = (
    "import",
    "generate",
    "run",
    "plan",
    "algorithms",
    "info",
    "verify",
    "index",
    "columns",
    "derive",
    "export",
    "top",
    "compare",
    "neighbors",
    "path",
    "completion",
)
#: Verbs that are about all verbs.
_ABOUT_ALL = ("completion", "help")
#: Verbs of which `name=value` is an option too.
_WITH_PARAMETERS = ("run", "plan")
_INTERRUPTED = 130

#: Set to see the traceback of an internal error.
DEBUG_VARIABLE = "BRIMFUL_DEBUG"
#: Seconds until a dropped interruption is repeated.
_AGAIN_SECONDS = 0.01


class _Interrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM.

    A subclass, because a bare `KeyboardInterrupt` that leaves an `exec` of text makes Python end
    by SIGINT, whatever the exit code. `dataclasses` and `namedtuple` call `exec` at import.
    """


class _Parser(argparse.ArgumentParser):
    """A parser that raises its errors as one sentence."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see '{self.prog} --help'")

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print the help; unlike argparse, raise if that fails."""
        print(self.format_help(), end="", file=file)


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


def build_parser(verb: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of one verb, or of all.

    The modules of all verbs take some hundredths of a second more to import.
    """
    parser = _Parser(
        prog="brimful",
        description="Graphs larger than memory, in a memory budget that you set.",
        epilog="Exit codes: 0 done, 1 'compare' found differences, or an internal error, 2 usage, "
        "3 bad input or graph, 4 budget too small, 5 corrupt data, 6 input/output, 7 the user's "
        "program failed, 130 interrupted.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "-V", "--version", action=_Version, nargs=0, help="show the version and exit"
    )
    verbs = parser.add_subparsers(metavar="VERB", dest="verb", required=True)
    is_one = verb in _VERBS and verb not in _ABOUT_ALL
    for name in [verb] if is_one else _VERBS:
        import_module(f"brimful.cli.{name}_verb").add_to(verbs)
    if not is_one:
        about = verbs.add_parser(
            "help", help="Show the help of a verb.", description="Show the help of a verb."
        )
        about.add_argument("about", metavar="VERB", nargs="?", choices=list(_VERBS))
    for _, _, action in tree.every_action(parser):
        if action.choices is not None and action.type is None:
            action.type = one_of(list(action.choices))
    # The verb `completion` prints the options of all verbs.
    parser.set_defaults(root=parser)
    return parser


def parse(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """Parse the words of a command line.

    Raises:
        UsageError: The verb has no such option; the message suggests a similar one.
    """
    verbs = tree.verbs(parser)
    if not words:
        parser.print_help()
        raise UsageError("a verb is missing; see 'brimful --help'")
    verb = words[0]
    if not verb.startswith("-") and verb not in verbs:
        raise UsageError(unknown("verb", verb, verbs))
    if verb in _WITH_PARAMETERS:
        words = parameters_as_options(words, tree.option_names(verbs[verb]))
    options, rest = parser.parse_known_args(words)
    if rest:
        name, names = rest[0].partition("=")[0], tree.option_names(verbs[options.verb])
        if "--param" in names:
            names += [f"--{parameter}" for parameter in parameter_names()]
        is_option = name.startswith("-")
        raise UsageError(
            f"brimful {options.verb} has no {'option' if is_option else 'argument'} '{rest[0]}'"
            + (did_you_mean(name, [one for one in names if len(one) > 2]) if is_option else "")
            + f"; see 'brimful {options.verb} --help'"
        )
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code."""
    BrimfulError.names_flags = True
    try:
        return _main(arguments)
    finally:
        BrimfulError.names_flags = False


def _main(arguments: Sequence[str] | None) -> int:
    # Arrow's own allocators keep freed memory; the system's returns it, so the budget holds.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    streams.prepare()
    if arguments is None:
        leave_pandas_out()
    words = list(sys.argv[1:] if arguments is None else arguments)
    log = EventLog()
    code, sentence = 0, None
    try:
        # Within the block: an interruption may come as soon as a handler is there.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _interrupt)
        sys.unraisablehook = _interrupt_again
        parser = build_parser(words[0] if words else None)
        options = parse(parser, words)
        if options.verb == "help":
            (tree.verbs(parser).get(options.about) or parser).print_help()
        else:
            options.words = words
            log.start(getattr(options, "log", None), words, _output_of(options))
            _share_heap_within_limit()
            code = options.action(options) or 0
    except BaseException as error:  # noqa: BLE001 (a panic of the native side is not an Exception)
        code, sentence = _ended_by(error)
    _ignore_signals()
    code, sentence = _flushed(code, sentence)
    if sentence is not None:
        _complain(sentence)
    failure = log.end(code, sentence)
    if failure is not None:
        _complain(failure)
        code = code or StoreIoError.exit_code
    if "brimful.io.remote" in sys.modules and sys.modules["brimful.io.remote"].calls_are_stuck():
        # A normal exit would wait for the thread that is stuck in the library of a store.
        os._exit(code)
    return code


def _ended_by(error: BaseException) -> tuple[int, str | None]:
    """Return the exit code and the sentence of a command that an error ended."""
    match error:
        case BrimfulError():
            return error.exit_code, str(error)
        case KeyboardInterrupt():
            return _INTERRUPTED, "; ".join(["interrupted", *getattr(error, "__notes__", [])])
        case BrokenPipeError():
            # The reader has closed the output: end without a message.
            streams.end_output()
            return 0, None
        case OSError():
            place = f" for {error.filename}" if error.filename else ""
            reason = error.strerror or error
            return 6, f"the system reported an error{place}: {reason}; check the disk and the path"
        case MemoryError():
            return 4, "memory ran out before the budget was used up; give a smaller --budget"
        case SystemExit():
            # Raised by --help and --version.
            return 0, None
        case ImportError():
            return (
                StoreIoError.exit_code,
                f"a part of brimful cannot be loaded: {error}; raise 'ulimit -v', or reinstall",
            )
        case UnicodeEncodeError():
            return UsageError.exit_code, f"'{error.object}' is not UTF-8; give it another name"
    return 1, _internal_error(error)


def _share_heap_within_limit() -> None:
    """Let all threads share one heap if the address space is limited (`ulimit -v`).

    The library that NumPy loads for matrices would set memory aside for a thread on each core.
    """
    if address_space() is not None:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        from brimful import _native

        _native.share_one_heap()


def _output_of(options: argparse.Namespace) -> str | None:
    """Return the file or graph that a command makes, if it makes one."""
    output: str | None = getattr(options, "output", None) or getattr(options, "out", None)
    return output


def _flushed(code: int, sentence: str | None) -> tuple[int, str | None]:
    """Flush standard output; on failure drop the rest and report it."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        streams.end_output()
    except OSError as error:
        streams.end_output()
        if not code:
            code = StoreIoError.exit_code
            is_closed = isinstance(error, StoreIoError)
            reason = f"cannot write to standard output: {error.strerror}"
            sentence = str(error) if is_closed else reason
    return code, sentence


def _complain(sentence: str) -> None:
    """Print one line on standard error, even if it is closed."""
    line = " ".join(redacted(sentence).split())
    with contextlib.suppress(OSError):
        print(f"brimful: {readable(line, sys.stderr)}", file=sys.stderr, flush=True)


def _interrupt(signal_number: int, frame: FrameType | None) -> NoReturn:
    """Stop the work on the first Ctrl-C or SIGTERM; ignore further ones during the clean-up."""
    _ignore_signals()
    raise _Interrupted


def _interrupt_again(dropped: sys.UnraisableHookArgs) -> None:
    """Repeat an interruption that came within a finalizer, where Python drops exceptions."""
    if isinstance(dropped.exc_value, _Interrupted):
        signal.signal(signal.SIGALRM, _interrupt)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
    else:
        sys.__unraisablehook__(dropped)


def _ignore_signals() -> None:
    """Ignore Ctrl-C and SIGTERM from now on."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def _internal_error(error: BaseException) -> str:
    """Return the sentence for an internal error; show the traceback if the variable is set."""
    if os.environ.get(DEBUG_VARIABLE):
        sys.__excepthook__(type(error), error, error.__traceback__)
    return (
        f"internal error ({type(error).__name__}: {error}); please report it with the command and "
        f"the traceback that {DEBUG_VARIABLE}=1 shows"
    )
