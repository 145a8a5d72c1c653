"""The figures of a worker as counters of Ray."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

pytest.importorskip("ray", reason="SKIPPED: Ray is not installed (requirements/dev.txt)")

import ray.util.metrics

from brimful.cluster.exchange import Tally
from brimful.cluster.metrics import Metrics


def test_counters_have_the_figures_of_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: Counter[tuple[str, str]] = Counter()

    class Recorded:
        def __init__(self, name: str, **_: Any) -> None:
            self.name = name

        def inc(self, more: float, tags: dict[str, str]) -> None:
            assert more > 0
            counted[self.name, tags["worker"]] += more  # type: ignore[assignment]

    monkeypatch.setattr(ray.util.metrics, "Counter", Recorded)
    metrics, tally = Metrics(3), Tally()
    metrics.exchanged(tally, 1)
    assert counted == {("brimful_exchanges", "3"): 1}
    tally.bytes_sent, tally.bytes_received, tally.wait_seconds = 5, 7, 0.25
    metrics.exchanged(tally, 2)
    tally.bytes_sent = 6
    metrics.exchanged(tally, 3)
    metrics.ended({**vars(tally), "seconds": 1.0, "bytes_read": 8, "peak_rss_bytes": 9})
    assert {name: value for (name, _), value in counted.items()} == {
        "brimful_exchanges": 3,
        "brimful_bytes_sent": 6,
        "brimful_bytes_received": 7,
        "brimful_wait_seconds": 0.25,
        "brimful_bytes_read": 8,
        "brimful_compute_seconds": 0.75,
    }
