"""SIGKILL at random moments: the next command gives the result of an undisturbed run."""

from __future__ import annotations

from pathlib import Path

import pytest

from command import names_below
from kills import (
    KILLS,
    SCENARIOS,
    Scenario,
    contents,
    kill_after_checkpoint,
    kill_once,
    moments,
    seconds_of_start,
    undisturbed,
)
from nightly import with_nightly


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario", with_nightly(SCENARIOS[::2], SCENARIOS[1::2]), ids=lambda scenario: scenario.name
)
def test_what_a_kill_left_is_finished_by_the_next_command(
    scenario: Scenario, tmp_path: Path
) -> None:
    expected, names, seconds = undisturbed(scenario, tmp_path / "calm")
    assert expected
    start = seconds_of_start()
    killed = 0
    for number, share in enumerate(moments(scenario)):
        folder = tmp_path / str(number)
        folder.mkdir()
        moment = start + share * (seconds - start)
        was_killed = kill_once(scenario, folder, moment)
        killed += was_killed
        if not was_killed:
            # It had ended: the undisturbed one was slow for once.
            seconds = (start + seconds) / 2
        assert contents(folder, scenario.results) == expected, f"killed after {moment} s"
        # A lock, a replaced manifest, the folder of a store and the hidden name of an unfinished
        # output may stay.
        left = {n for n in names_below(folder) - names if ".partial-" not in n}
        allowed = {"lock", "manifest-1", "vertices"}
        assert {name.rpartition("/")[2] for name in left} <= allowed, left
    assert 2 * killed >= KILLS, f"{KILLS - killed} of {KILLS} ended before they were killed"


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario", [s for s in SCENARIOS if s.resumes], ids=lambda scenario: scenario.name
)
def test_a_command_killed_after_a_checkpoint_resumes_from_it(
    scenario: Scenario, tmp_path: Path
) -> None:
    expected, _, _ = undisturbed(scenario, tmp_path / "calm")
    # A short command may end between its checkpoint and its kill.
    for attempt in range(20):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        resumed = kill_after_checkpoint(scenario, folder)
        assert contents(folder, scenario.results) == expected
        if resumed:
            return
    pytest.fail("20 commands ended before they were killed")
