"""Progress on standard error: a bar of tqdm on a terminal or in a notebook, plain lines elsewhere.

The bar shows the whole run if the number of supersteps is known, else a phase. Plain lines
come when the kind of phase changes and at most every two seconds within it.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, TextIO, TypeVar

from brimful.memory import resident_bytes
from brimful.sizes import format_bytes
from brimful.wording import escape_controls

if TYPE_CHECKING:
    from tqdm import tqdm

_T = TypeVar("_T")

_PLAIN_SECONDS = 2.0
_REDRAW_SECONDS = 0.1
#: Seconds of a phase or a run before its remaining time is shown.
_ESTIMATE_SECONDS = 0.5
#: Units of a complete bar.
_WHOLE = 10_000
#: The width of a bar on a terminal that has none, as in a container without a window.
_COLUMNS = 80


def _columns(stream: TextIO) -> int:
    """Return the width of the terminal of a stream; 0 if it has none."""
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 0


@dataclass(frozen=True)
class Stage:
    """The progress of the work at one moment.

    Attributes:
        name: The phase, or the superstep of those expected.
        share: The share of the phase, or of all supersteps, that is done; None: unknown.
        left: How long the rest will take; None: unknown.
        done: The progress in words, if the share is unknown.
    """

    name: str
    share: float | None = None
    left: str | None = None
    done: str = ""

    def __str__(self) -> str:
        """Return `sort: 41 %, 12 s left`, or only the known part."""
        parts = [] if self.share is None else [f"{100 * self.share:.0f} %"]
        parts += [f"{self.left} left"] if self.left else []
        parts += [self.done] if self.done else []
        return f"{self.name}: {', '.join(parts)}" if parts else self.name


class _Run:
    """The supersteps of a run: the expected number, and the seconds of those so far.

    Some algorithms restart the count of supersteps at 1; this class continues the count.
    """

    def __init__(self, expected: int = 0, about: bool = True) -> None:
        self._expected = expected
        self._about = "about " if about else ""
        #: The first superstep seen, and its time.
        self._first: tuple[float, float] | None = None
        #: The number of the superstep that was reported last, and the supersteps before its 1.
        self._last = 0
        self._before = 0

    def stage(self, phase: str, done: int, total: int, now: float) -> Stage | None:
        """Return the stage of the whole run; None for a phase that is not a superstep."""
        matched = re.fullmatch(r"superstep ([\d,]+)", phase)
        if matched is None:
            return None
        counted = int(matched[1].replace(",", ""))
        if counted < self._last:
            self._before += self._last
        self._last = counted
        number = self._before + counted
        within = min(done / total, 1.0) if total > 0 else 0.0
        passed = number - 1 + within
        if self._first is None:
            self._first = (passed, now)
        if not 1 <= number <= self._expected:
            return Stage(f"superstep {number:,}")
        first, begin = self._first
        left = None
        if passed > first and now - begin > _ESTIMATE_SECONDS:
            left = format_seconds((now - begin) * (self._expected - passed) / (passed - first))
        name = f"superstep {number:,} of {self._about}{self._expected:,}"
        return Stage(name, passed / self._expected, left)


class ProgressLine:
    """Shows the progress of the work. A context manager: leaving it wipes the bar."""

    def __init__(
        self, *, quiet: bool, stream: TextIO | None = None, notebook: bool = False
    ) -> None:
        """Show on `stream` (default: standard error), or nothing at all when `quiet`.

        With `notebook` the bar is a widget of Jupyter.
        """
        self._stream = sys.stderr if stream is None else stream
        self._quiet = quiet
        self._notebook = notebook
        self._draws = not quiet and (notebook or self._stream.isatty())
        self._shown_at = -_PLAIN_SECONDS
        self._shown_kind = ""
        self._bar: tqdm[NoReturn] | None = None
        self._announced: str | None = None
        self._run = _Run()
        self._budget: int | None = None

    def announce(self, sentence: str) -> None:
        """Show `sentence` with the first progress, so that a refused command announces nothing."""
        self._announced = sentence

    def expect(self, supersteps: int, *, about: bool) -> None:
        """Set the number of supersteps that the run is expected to have."""
        self._run = _Run(supersteps, about)

    def within(self, budget: int | None) -> None:
        """Set the budget of the process, which is shown beside its memory."""
        self._budget = budget

    def update(self, phase: str, done: int, total: int, seconds: float) -> None:
        """Take a report of the native side, about ten times a second."""
        if self._quiet or not phase:
            return
        self._say_announced()
        now = time.monotonic()
        stage = self._run.stage(phase, done, total, now)
        if stage is None:
            stage = stage_of(phase, done, total, seconds)
        if self._draws:
            if now - self._shown_at >= _REDRAW_SECONDS:
                self._draw(stage, [*_rate(phase, done, total, seconds), self._memory()])
                self._shown_at = now
            return
        # "superstep 3" and "superstep 4" are one kind: fast supersteps must not flood a log.
        kind = re.sub(r"[\d/,]+", "", phase)
        if kind != self._shown_kind or now - self._shown_at >= _PLAIN_SECONDS:
            self._write(f"brimful: {stage}\n")
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
        """Show one sentence that stays, even if progress is silenced."""
        self.clear()
        self._write(f"brimful: {readable(sentence, self._stream)}\n")

    def clear(self) -> None:
        """Wipe the bar."""
        bar, self._bar = self._bar, None
        if bar is not None:
            self._guarded(bar.close)

    def __enter__(self) -> ProgressLine:
        """Return self."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wipe the bar."""
        self.clear()

    def _draw(self, stage: Stage, more: list[str]) -> None:
        has_share = stage.share is not None
        name, done = readable(stage.name, self._stream), round((stage.share or 0.0) * _WHOLE)
        # A postfix of tqdm would begin with a comma.
        form = "{desc} {percentage:3.0f} %|{bar}| " if has_share else "{desc} "
        form += ", ".join([*([f"{stage.left} left"] if stage.left else []), *more])
        bar = self._bar
        if bar is not None and (bar.total is not None) != has_share:
            self.clear()
            bar = None
        if bar is None:
            self._bar = self._guarded(lambda: self._new_bar(name, done, form, has_share=has_share))
            return
        bar.n, bar.bar_format = done, form
        bar.set_description_str(name, refresh=False)
        self._guarded(bar.refresh)

    def _new_bar(self, name: str, done: int, form: str, *, has_share: bool) -> tqdm[NoReturn]:
        """Draw a bar."""
        if self._notebook:
            from tqdm.auto import tqdm as kind
        else:
            from tqdm.std import tqdm as kind
        # No thread that watches for slow bars, and no locks between processes.
        kind.monitor_interval = 0
        kind.set_lock(threading.RLock())
        has_width = self._notebook or _columns(self._stream) > 0
        return kind(
            total=_WHOLE if has_share else None,
            initial=done,
            desc=name,
            bar_format=form,
            file=self._stream,
            leave=False,
            ncols=None if has_width else _COLUMNS,
            dynamic_ncols=has_width,
        )

    def _memory(self) -> str:
        text = f"memory {format_bytes(resident_bytes())}"
        return f"{text} of {format_bytes(self._budget)}" if self._budget else text

    def _write(self, text: str) -> None:
        def write() -> None:
            self._stream.write(text)
            self._stream.flush()

        self._guarded(write)

    def _guarded(self, write: Callable[[], _T]) -> _T | None:
        """Call a function that writes; after an error of the stream, be quiet."""
        try:
            return write()
        except OSError:
            # A failing progress display must not end the work.
            self._quiet, self._bar = True, None
            return None


def readable(text: str, stream: TextIO) -> str:
    """Return `text` for `stream`: on a terminal its control characters are written as escapes.

    Ids and manifests may hold control characters, which a terminal would obey.
    """
    return escape_controls(text) if stream.isatty() else text


@contextlib.contextmanager
def logged_to(progress: ProgressLine) -> Iterator[None]:
    """Show the library's log messages while the context lasts."""
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


def stage_of(phase: str, done: int, total: int, seconds: float) -> Stage:
    """Return the stage of a phase; without a total, its progress in words."""
    if total > 0:
        share = min(done / total, 1.0)
        knows = share > 0 and seconds > _ESTIMATE_SECONDS
        return Stage(phase, share, format_seconds(seconds * (1 - share) / share) if knows else None)
    return Stage(phase, done=f"{done:,}, {format_seconds(seconds)}" if done > 0 else "")


def _rate(phase: str, done: int, total: int, seconds: float) -> list[str]:
    """Return a rate such as `1.2G edges/s`; nothing before the first progress."""
    if done <= 0 or seconds <= 0:
        return []
    from tqdm.std import tqdm

    unit = " edges" if phase.startswith("superstep ") else ""
    return [f"{tqdm.format_sizeof(done / seconds)}{unit}/s"]


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
