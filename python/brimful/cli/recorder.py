"""Records the memory of a run over time, for its report.

Invariant: a bounded number of samples is kept, however long the run is.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from brimful.memory import resident_bytes
from brimful.reporting import Reporter

#: The most samples that are kept; beyond them, every other one is dropped.
_MOST_SAMPLES = 1000


class Recorder:
    """Samples the memory of this process whenever progress is reported."""

    def __init__(self) -> None:
        """Begin, with the first sample."""
        self._began = time.monotonic()
        self._every = self._calls = 0
        #: Pairs of seconds since the start and resident bytes.
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

        def report_and_sample(phase: str, done: int, total: int, seconds: float) -> object:
            self._calls += 1
            if self._calls % (self._every + 1) == 0:
                self.sample()
            return report(phase, done, total, seconds)

        return report_and_sample
