"""Repeats calls while a server does not answer, for a limited time."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from brimful.errors import StoreIoError, UsageError
from brimful.stores.base import Opening

T = TypeVar("T")

#: Seconds for which calls to an unresponsive server are repeated.
SECONDS = 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0


class Retries:
    """Repeats calls that fail with some classes of errors, with growing pauses.

    Calls must be idempotent: a failed call may have taken effect.
    """

    def __init__(
        self,
        server: str,
        errors: tuple[type[BaseException], ...],
        seconds: float,
        stopped: threading.Event,
    ) -> None:
        """Take the name of the server for messages, and the errors of a lost connection."""
        self._server, self._errors = server, errors
        self._seconds, self._stopped = seconds, stopped

    def __call__(self, call: Callable[[], T]) -> T:
        """Return the result of `call`.

        Raises:
            StoreIoError: The server did not answer for the stated time, or until the run stopped.
        """
        end, pause = time.monotonic() + self._seconds, _FIRST_PAUSE
        while True:
            try:
                return call()
            except self._errors as error:
                left = end - time.monotonic()
                if self._stopped.wait(max(min(pause, left), 0)):
                    raise StoreIoError(
                        f"the run was stopped while the server {self._server} did not answer "
                        f"({_reason(error)})"
                    ) from error
                if left <= 0:
                    raise StoreIoError(
                        f"the server {self._server} did not answer for {self._seconds:g} s "
                        f"({_reason(error)}); start it and run again, or raise "
                        "retry_seconds= in the URL"
                    ) from error
                pause = min(2 * pause, _LONGEST_PAUSE)


def retry_seconds(opening: Opening) -> float:
    """Return the option `retry_seconds` of a URL.

    Raises:
        UsageError: The option is not a number of seconds.
    """
    text = opening.options.get("retry_seconds", str(SECONDS))
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise UsageError(f'retry_seconds must be a number of seconds, not "{text}"')
    return seconds


def _reason(error: BaseException) -> str:
    """Return the reason, without the settings and the topology that pymongo adds."""
    reason = re.split(r" \(configured timeouts|, Timeout: |\n", str(error))[0]
    return reason[:200] or type(error).__name__
