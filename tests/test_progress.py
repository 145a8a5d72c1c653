"""Progress: a bar on a terminal and in a notebook, lines elsewhere."""

from __future__ import annotations

import io
import os
import re
import sys
import threading
import types
from typing import Any

import pytest

from brimful.cli.progress import ProgressLine, format_seconds, stage_of


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def drawn(self) -> list[str]:
        """Return the successive drawings, without blanks at the end."""
        return [line.rstrip() for line in self.getvalue().split("\r") if line.strip()]


def ticking(monkeypatch: pytest.MonkeyPatch, start: float = 0.0) -> list[float]:
    """Return the time of the clock, which a test sets."""
    now = [start]
    monkeypatch.setattr("brimful.cli.progress.time.monotonic", lambda: now[0])
    return now


def test_a_terminal_has_one_line_that_is_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    now = ticking(monkeypatch)
    terminal = Terminal()
    with ProgressLine(quiet=False, stream=terminal) as progress:
        progress.within(200 << 20)
        progress.update("sort", 25, 100, 2.0)
        now[0] = 1.0
        progress.update("write shards", 5_000_000, 10_000_000, 10.0)
        # Too soon to be drawn.
        now[0] = 1.05
        progress.update("write shards", 9_000_000, 10_000_000, 10.0)
        now[0] = 2.0
        progress.update("write out.csv", 0, 0, 0.0)
    first, second, third = terminal.drawn()
    assert re.fullmatch(r"sort  25 %\|\S+ *\| 6 s left, 12.5/s, memory [\d.]+[MG] of 200M", first)
    assert re.fullmatch(
        r"write shards  50 %\|.+\| 10 s left, 500k/s, memory .+[MG] of 200M", second
    )
    assert re.fullmatch(r"write out.csv memory .+[MG] of 200M", third)
    assert terminal.getvalue().endswith(" \r") and "\n" not in terminal.getvalue()


def test_a_terminal_without_a_width_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    times = ticking(monkeypatch)
    reader, writer = os.openpty()
    assert os.get_terminal_size(writer).columns == 0
    with open(writer, "w") as terminal, ProgressLine(quiet=False, stream=terminal) as progress:
        times[0] += 1
        progress.update("sort", 410, 1000, 1.0)
        drawn = os.read(reader, 10_000).decode()
    os.close(reader)
    assert "sort" in drawn and "41 %" in drawn


def test_a_sentence_has_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    now = ticking(monkeypatch)
    terminal = Terminal()
    with ProgressLine(quiet=False, stream=terminal) as progress:
        progress.announce("a forecast")
        progress.update("sort", 25, 100, 2.0)
        progress.warn("a \x1bwarning")
        now[0] = 1.0
        progress.update("sort\x07", 26, 100, 2.0)
    lines = terminal.getvalue().split("\n")
    assert lines[0] == "brimful: a forecast"
    assert lines[1].endswith(" \rbrimful: a \\x1bwarning")
    assert "sort\\x07  26 %" in lines[2]


def test_no_thread_and_no_process_is_started_for_a_bar() -> None:
    before = threading.active_count()
    with ProgressLine(quiet=False, stream=Terminal()) as progress:
        progress.update("sort", 25, 100, 2.0)
        assert threading.active_count() == before


def test_a_stream_that_refuses_silences_the_bar() -> None:
    class Refusing(Terminal):
        def write(self, text: str) -> int:
            raise OSError("no space left")

    with ProgressLine(quiet=False, stream=Refusing()) as progress:
        progress.update("sort", 25, 100, 2.0)
        progress.update("sort", 26, 100, 2.0)
        progress.warn("a warning")


def test_a_notebook_has_a_widget(monkeypatch: pytest.MonkeyPatch) -> None:
    import tqdm.auto

    from brimful.reporting import reported

    made: list[dict[str, Any]] = []

    class Widget(tqdm.std.tqdm):  # type: ignore[misc]
        def __init__(self, **options: Any) -> None:
            made.append(options)
            super().__init__(**options)

    class ZMQInteractiveShell:
        pass

    notebook = types.SimpleNamespace(get_ipython=ZMQInteractiveShell)
    monkeypatch.setitem(sys.modules, "IPython", notebook)  # type: ignore[arg-type]
    monkeypatch.setattr(tqdm.auto, "tqdm", Widget)
    with reported(True) as report:
        assert report is not None
        report("sort", 25, 100, 2.0)
    assert len(made) == 1 and made[0]["total"] > 0


def test_elsewhere_lines_come_when_the_phase_changes_or_after_two_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = ticking(monkeypatch)
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
    now = ticking(monkeypatch, 100.0)
    terminal = Terminal()
    progress = ProgressLine(quiet=False, stream=terminal)
    progress.expect(30, about=about)

    def shown(number: int, done: int, at: float) -> str:
        now[0] = at
        progress.update(f"superstep {number}", done, 100, 0.1)
        return re.sub(r"\|.*\|", "|", terminal.drawn()[-1]).partition(", memory")[0]

    assert shown(1, 0, 100.0).startswith(f"superstep 1 {of}   0 %| memory ")
    # Three supersteps in six seconds: 27 are left.
    assert shown(4, 0, 106.0) == f"superstep 4 {of}  10 %| 54 s left"
    assert shown(30, 50, 159.0) == f"superstep 30 {of}  98 %| 1 s left, 500 edges/s"
    # More than expected: nothing is known of the end.
    assert shown(31, 50, 161.0) == "superstep 31 500 edges/s"


def test_a_resumed_run_counts_from_where_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    now = ticking(monkeypatch)
    terminal = Terminal()
    progress = ProgressLine(quiet=False, stream=terminal)
    progress.expect(30, about=False)
    progress.update("superstep 21", 0, 100, 0.1)
    now[0] = 10.0
    progress.update("superstep 26", 0, 100, 0.1)
    assert re.search(r"superstep 26 of 30  83 %\|.*\| 10 s left, memory", terminal.drawn()[-1])


def test_supersteps_that_begin_again_at_1_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    ticking(monkeypatch)
    stream = io.StringIO()
    progress = ProgressLine(quiet=False, stream=stream)
    progress.expect(8, about=False)
    for number in (1, 2, 3, 1, 2, 1):
        progress.update("write", 0, 0, 0.0)
        progress.update(f"superstep {number}", 0, 100, 0.1)
    shown = re.findall(r"superstep (\d) of 8: (\d+) %", stream.getvalue())
    assert shown == [("1", "0"), ("2", "12"), ("3", "25"), ("4", "38"), ("5", "50"), ("6", "62")]


def test_quiet_says_nothing() -> None:
    stream = io.StringIO()
    with ProgressLine(quiet=True, stream=stream) as progress:
        progress.update("sort", 1, 2, 3.0)
        progress.say("something")
    assert stream.getvalue() == ""


def test_what_is_not_known_is_not_said() -> None:
    assert str(stage_of("parse", 0, 0, 0.0)) == "parse"
    assert str(stage_of("parse", 5000, 0, 12.0)) == "parse: 5,000, 12 s"
    assert str(stage_of("sort", 0, 10, 5.0)) == "sort: 0 %"
    assert str(stage_of("sort", 20, 10, 5.0)) == "sort: 100 %, 0 s left"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.345, "0.34 s"), (12.4, "12 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")],
)
def test_seconds(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text
