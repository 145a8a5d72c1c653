"""SIGKILL at random moments: the next command gives what an undisturbed run gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from command import names_below
from kills import SCENARIOS, Scenario, contents, kill_once, moments, undisturbed


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_what_a_kill_left_is_finished_by_the_next_command(
    scenario: Scenario, tmp_path: Path
) -> None:
    calm = tmp_path / "calm"
    calm.mkdir()
    expected, names, seconds = undisturbed(scenario, calm)
    assert expected
    killed = 0
    for number, share in enumerate(moments(scenario)):
        folder = tmp_path / str(number)
        folder.mkdir()
        moment = share * seconds
        if kill_once(scenario, folder, moment):
            killed += 1
        else:
            # It had ended: the undisturbed one was slow for once.
            seconds /= 2
        assert contents(folder, scenario.results) == expected, f"killed after {moment} s"
        # A lock, a replaced manifest, the folder of a store and the hidden name of an unfinished
        # output may stay.
        left = {n for n in names_below(folder) - names if ".partial-" not in n}
        allowed = {"lock", "manifest-1", "vertices"}
        assert {name.rpartition("/")[2] for name in left} <= allowed, left
    assert killed > 0, "every command ended before it was killed"
