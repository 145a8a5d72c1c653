"""Reports to the caller: progress of long work, and warnings."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

from brimful.errors import UsageError, worded
from brimful.wording import literal

#: Called about ten times a second, on the calling thread, with the phase, the units done, the
#: total of units (0: unknown) and the seconds since the phase began. An exception that it raises
#: stops the work and comes back from the call.
Reporter = Callable[[str, int, int, float], object]

#: The type of `progress=`: a function, or True for a bar on standard error.
Progress = Reporter | bool

_P = ParamSpec("_P")
_T = TypeVar("_T")


def warn(*sentences: str) -> None:
    """Log warnings to the logger `brimful`, for users of the library."""
    import logging

    for sentence in sentences:
        logging.getLogger("brimful").warning(worded(sentence))


def reportable(progress: Any, name: str = "progress") -> Any:
    """Return `progress` if it is a function, a truth value or None.

    Raises:
        UsageError: `progress` is something else.
    """
    if progress is None or isinstance(progress, bool) or callable(progress):
        return progress
    raise UsageError(
        f"{name} must be True, False or a function of phase, done, total and seconds, not "
        + literal(progress)
    )


@contextlib.contextmanager
def reported(progress: Progress | None) -> Iterator[Reporter | None]:
    """Yield the function that reports progress; leaving the context ends its line.

    Raises:
        UsageError: `progress` is neither a function nor a truth value.
    """
    if progress is None or progress is False:
        yield None
    elif progress is True:
        from brimful.cli.progress import ProgressLine

        with ProgressLine(quiet=False, notebook=_in_notebook()) as line:
            yield line.update
    else:
        yield reportable(progress)


def _in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def shows_progress(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Accept True for the keyword `progress`; the function receives a `Reporter` or None."""

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        with reported(kwargs.get("progress")) as report:  # type: ignore[arg-type]
            kwargs["progress"] = report
            return function(*args, **kwargs)

    return call
