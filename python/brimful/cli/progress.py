"""Progress on standard error: one rewritten line on a terminal, plain lines elsewhere.

Plain lines come when the kind of phase changes and at most every two seconds within it.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
import time
from collections.abc import Iterator
from types import TracebackType
from typing import TextIO

_PLAIN_SECONDS = 2.0
_REDRAW_SECONDS = 0.1
#: Before so many seconds of a run nothing is said about its end.
_ESTIMATE_SECONDS = 0.5
_ERASE_LINE = "\r\x1b[K"


class _Run:
    """The supersteps of a run: how many are expected, and how long those seen so far took."""

    def __init__(self, expected: int = 0, about: bool = True) -> None:
        self._expected = expected
        self._about = "about " if about else ""
        #: The first superstep seen, and when.
        self._first: tuple[float, float] | None = None

    def describe(self, phase: str, done: int, total: int, now: float) -> str | None:
        """Return `superstep 3 of about 30: 41 s left`; None for a phase that is no superstep."""
        matched = re.fullmatch(r"superstep ([\d,]+)", phase)
        if matched is None:
            return None
        number = int(matched[1].replace(",", ""))
        share = min(done / total, 1.0) if total > 0 else 0.0
        if self._first is None:
            self._first = (number - 1 + share, now)
        if number > self._expected:
            return f"superstep {number:,}"
        text = f"superstep {number:,} of {self._about}{self._expected:,}"
        first, begin = self._first
        passed = number - 1 + share - first
        if passed > 0 and now - begin > _ESTIMATE_SECONDS:
            left = (now - begin) * (self._expected - first - passed) / passed
            text += f": {format_seconds(left)} left"
        return text


class ProgressLine:
    """Shows how far the work is. A context manager: leaving it wipes the line."""

    def __init__(self, *, quiet: bool, stream: TextIO | None = None) -> None:
        """Show on `stream` (default: standard error), or nothing at all when `quiet`."""
        self._stream = sys.stderr if stream is None else stream
        self._quiet = quiet
        self._terminal = not quiet and self._stream.isatty()
        self._shown_at = -_PLAIN_SECONDS
        self._shown_kind = ""
        self._drawn = False
        self._announced: str | None = None
        self._run = _Run()

    def announce(self, sentence: str) -> None:
        """Say `sentence` with the first progress: a refused command is not announced."""
        self._announced = sentence

    def expect(self, supersteps: int, *, about: bool) -> None:
        """Take the number of supersteps that a run is expected to have."""
        self._run = _Run(supersteps, about)

    def update(self, phase: str, done: int, total: int, seconds: float) -> None:
        """Take what the native side reports about ten times a second."""
        if self._quiet or not phase:
            return
        self._say_announced()
        now = time.monotonic()
        text = self._run.describe(phase, done, total, now)
        if text is None:
            text = describe(phase, done, total, seconds)
        if self._terminal:
            if now - self._shown_at >= _REDRAW_SECONDS:
                width = shutil.get_terminal_size().columns - 1
                self._write(_ERASE_LINE + readable(text, self._stream)[:width])
                self._shown_at, self._drawn = now, True
            return
        # "superstep 3" and "superstep 4" are one kind: fast supersteps must not flood a log.
        kind = re.sub(r"[\d/,]+", "", phase)
        if kind != self._shown_kind or now - self._shown_at >= _PLAIN_SECONDS:
            self._write(f"brimful: {text}\n")
            self._shown_at, self._shown_kind = now, kind

    def say(self, sentence: str) -> None:
        """Show one sentence that stays."""
        if not self._quiet:
            self._say_announced()
            self.warn(sentence)

    def _say_announced(self) -> None:
        sentence, self._announced = self._announced, None
        if sentence is not None:
            self.warn(sentence)

    def warn(self, sentence: str) -> None:
        """Show one sentence that stays, though progress be silenced: something was left out."""
        self.clear()
        self._write(f"brimful: {readable(sentence, self._stream)}\n")

    def clear(self) -> None:
        """Wipe the line of a terminal."""
        if self._drawn:
            self._write(_ERASE_LINE)
            self._drawn = False

    def __enter__(self) -> ProgressLine:
        """Return self."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wipe the line."""
        self.clear()

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            # The work and its result matter more than who hears of its progress.
            self._quiet, self._drawn = True, False


def readable(text: str, stream: TextIO) -> str:
    """Return `text` for `stream`: on a terminal its control characters are written as escapes.

    Ids and manifests come from others, and a terminal obeys what they hold.
    """
    if text.isprintable() or not stream.isatty():
        return text
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else _escape(letter) for letter in text
    )


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode()


@contextlib.contextmanager
def said_to(progress: ProgressLine) -> Iterator[None]:
    """Show what the library tells its users through logging, as long as the context lasts."""
    import logging

    class Shown(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            progress.warn(record.getMessage())

    logger, handler = logging.getLogger("brimful"), Shown()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def describe(phase: str, done: int, total: int, seconds: float) -> str:
    """Return `superstep 3: 41 %, 12 s left`; without a total only the known part."""
    if total > 0:
        share = min(done / total, 1.0)
        text = f"{phase}: {100 * share:.0f} %"
        if share > 0 and seconds > 0.5:
            text += f", {format_seconds(seconds * (1 - share) / share)} left"
        return text
    if done > 0:
        return f"{phase}: {done:,}, {format_seconds(seconds)}"
    return phase


def format_seconds(seconds: float) -> str:
    """Return `0.35 s`, `12 s`, `3 min 20 s` or `2 h 5 min`."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
