"""Records a run for its report: memory over time, and supersteps.

Invariant: the records have a fixed size. Events of supersteps come from the log of the process,
which is the user's if there is one.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from brimful.memory import resident_bytes
from brimful.reporting import Reporter

#: So many samples of the memory are kept at most; beyond them every other one is.
_MOST_SAMPLES = 1000
#: So many supersteps are drawn, as the figures of a run list.
_MOST_SUPERSTEPS = 1000


class Recorder:
    """Samples the memory of this process whenever progress is reported."""

    def __init__(self) -> None:
        """Begin, with the first sample."""
        self._began = time.monotonic()
        self._every = self._calls = 0
        #: Seconds since the start, and bytes.
        self.samples: list[tuple[float, int]] = []
        self.sample()

    def sample(self) -> None:
        """Add a sample."""
        self.samples.append((time.monotonic() - self._began, resident_bytes()))
        if len(self.samples) > _MOST_SAMPLES:
            del self.samples[1::2]
            self._every = 2 * self._every + 1

    def beside(self, report: Callable[..., object]) -> Reporter:
        """Return a function that reports progress and samples."""

        def both(phase: str, done: int, total: int, seconds: float) -> object:
            self._calls += 1
            if self._calls % (self._every + 1) == 0:
                self.sample()
            return report(phase, done, total, seconds)

        return both


@contextlib.contextmanager
def superstep_events(log: str | None) -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """Give a function that returns the events of supersteps so far.

    `log` is the user's log; without one the context makes a temporary one.
    A log on standard error cannot be read back, so there are no events.
    """
    from brimful import _native

    if log == "-":
        yield lambda: []
    elif log is not None:
        start = os.path.getsize(log)
        yield lambda: _events(log, start)
    else:
        folder = _native.TemporaryFolder(tempfile.gettempdir(), ".brimful-log-")
        try:
            own = os.path.join(folder.path, "log")
            _native.log_to(own)
            yield lambda: _events(own, 0)
        finally:
            folder.close()


def _events(path: str, start: int) -> list[dict[str, Any]]:
    """Return the first events of supersteps after `start`."""
    found: list[dict[str, Any]] = []
    with open(path, encoding="utf-8") as file:
        file.seek(start)
        for line in file:
            event = json.loads(line)
            if event.get("message") == "superstep" and len(found) < _MOST_SUPERSTEPS:
                found.append(event)
    return found
