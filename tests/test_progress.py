"""The progress line, on a terminal and elsewhere."""

from __future__ import annotations

import io

import pytest

from brimful.cli.progress import ProgressLine, describe, format_seconds


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_one_line_that_is_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr("brimful.cli.progress.time.monotonic", lambda: float(next(clock)))
    terminal = Terminal()
    with ProgressLine(quiet=False, stream=terminal) as progress:
        progress.update("sort", 25, 100, 2.0)
        progress.update("write shards", 50, 100, 10.0)
    text = terminal.getvalue()
    assert "\n" not in text
    assert "sort: 25 %, 6 s left" in text
    assert text.endswith("\r\x1b[K")


def test_elsewhere_lines_come_when_the_phase_changes_or_after_two_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr("brimful.cli.progress.time.monotonic", lambda: now[0])
    stream = io.StringIO()
    progress = ProgressLine(quiet=False, stream=stream)
    for step in range(100):
        now[0] = step * 0.1
        progress.update(f"superstep {step}", step, 100, 1.0)
    progress.update("write out.csv", 0, 0, 0.0)
    lines = stream.getvalue().strip().split("\n")
    assert len(lines) == 6
    assert all(line.startswith("brimful: ") for line in lines)
    assert lines[-1] == "brimful: write out.csv"


@pytest.mark.parametrize(("about", "of"), [(True, "of about 30"), (False, "of 30")])
def test_a_run_says_how_many_supersteps_are_expected_and_the_time_left(
    monkeypatch: pytest.MonkeyPatch, about: bool, of: str
) -> None:
    now = [100.0]
    monkeypatch.setattr("brimful.cli.progress.time.monotonic", lambda: now[0])
    terminal = Terminal()
    progress = ProgressLine(quiet=False, stream=terminal)
    progress.expect(30, about=about)

    def shown(number: int, done: int, at: float) -> str:
        now[0] = at
        progress.update(f"superstep {number}", done, 100, 0.1)
        return terminal.getvalue().rsplit("\x1b[K", 1)[1]

    assert shown(1, 0, 100.0) == f"superstep 1 {of}"
    # Three supersteps in six seconds: 27 are left.
    assert shown(4, 0, 106.0) == f"superstep 4 {of}: 54 s left"
    assert shown(30, 50, 159.0) == f"superstep 30 {of}: 1 s left"
    # More than expected: nothing is known of the end.
    assert shown(31, 50, 161.0) == "superstep 31"


def test_a_resumed_run_counts_from_where_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("brimful.cli.progress.time.monotonic", lambda: now[0])
    terminal = Terminal()
    progress = ProgressLine(quiet=False, stream=terminal)
    progress.expect(30, about=False)
    progress.update("superstep 21", 0, 100, 0.1)
    now[0] = 10.0
    progress.update("superstep 26", 0, 100, 0.1)
    assert terminal.getvalue().endswith("superstep 26 of 30: 10 s left")


def test_quiet_says_nothing() -> None:
    stream = io.StringIO()
    with ProgressLine(quiet=True, stream=stream) as progress:
        progress.update("sort", 1, 2, 3.0)
        progress.say("something")
    assert stream.getvalue() == ""


def test_what_is_not_known_is_not_said() -> None:
    assert describe("parse", 0, 0, 0.0) == "parse"
    assert describe("parse", 5000, 0, 12.0) == "parse: 5,000, 12 s"
    assert describe("sort", 0, 10, 5.0) == "sort: 0 %"
    assert describe("sort", 20, 10, 5.0) == "sort: 100 %, 0 s left"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.345, "0.34 s"), (12.4, "12 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")],
)
def test_seconds(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text
