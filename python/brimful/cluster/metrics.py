"""Figures of a worker as metrics of Ray, for its dashboard and for Prometheus.

Ray exports metrics where `ray[default]` is installed; elsewhere nothing reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brimful.cluster.exchange import Tally

#: The counters of a worker, by the name of its figure.
_COUNTERS = {
    "exchanges": "Exchanges with the other workers: one in each superstep, and a few more.",
    "bytes_sent": "Bytes of signals and states that the worker sent.",
    "bytes_received": "Bytes that the worker received.",
    "wait_seconds": "Seconds in which the worker waited for others.",
    "bytes_read": "Bytes of the graph that the worker read, counted at the end of its run.",
    "compute_seconds": "Seconds of the run without waiting, counted at the end of the run.",
}


class Metrics:
    """The counters of one worker."""

    def __init__(self, index: int) -> None:
        """Count for the worker with this position."""
        from ray.util.metrics import Counter

        self._tags = {"worker": str(index)}
        self._counters = {
            name: Counter(f"brimful_{name}", description=about, tag_keys=("worker",))
            for name, about in _COUNTERS.items()
        }
        self._counted = dict.fromkeys(_COUNTERS, 0.0)

    def exchanged(self, tally: Tally, exchanges: int) -> None:
        """Count the exchanges so far."""
        self._count({**vars(tally), "exchanges": exchanges})

    def ended(self, figures: Mapping[str, Any]) -> None:
        """Count the figures of a run that has ended."""
        compute = figures["seconds"] - figures["wait_seconds"]
        self._count({**figures, "compute_seconds": compute})

    def _count(self, figures: Mapping[str, Any]) -> None:
        for name in self._counters.keys() & figures.keys():
            more = figures[name] - self._counted[name]
            if more > 0:
                self._counters[name].inc(more, self._tags)
                self._counted[name] += more
