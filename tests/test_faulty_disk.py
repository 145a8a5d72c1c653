"""Whole commands on a disk that fails: the right answer or one sentence, and then nothing is lost.

`faulty.c` stands between the process and the C library. Each scenario runs once to count its
operations on files; then operations fail, chosen at random of all of them.
"""

from __future__ import annotations

import errno
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from command import DONE, IO, assert_one_sentence, brimful, names_below
from kills import KILLS, SCENARIOS, Scenario, contents, finish, play
from nightly import with_nightly

#: Failures of each scenario: as many as kills, of each class.
CLASSES = {
    "open": [errno.EIO, errno.ENOSPC],
    "read": [errno.EIO, errno.EINTR],
    "write": [errno.EIO, errno.ENOSPC, errno.EINTR],
    "sync": [errno.EIO, errno.ENOSPC],
    "rename": [errno.EIO, errno.ENOSPC],
}
MOVES_HALF = 0
#: "Until the end of the command."
ALWAYS = 1 << 40


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled `faulty.c`."""
    library = tmp_path_factory.mktemp("faulty") / "faulty.so"
    source = Path(__file__).with_name("faulty.c")
    subprocess.run(
        [
            "cc",
            "-shared",
            "-fPIC",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-o",
            library,
            source,
            "-ldl",
        ],
        check=True,
    )
    return library


def environment(folder: Path, more: dict[str, str]) -> dict[str, str]:
    return {"FAULTY_BELOW": str(folder), "TMPDIR": str(folder)} | more


def count(shim: Path, scenario: Scenario, folder: Path) -> dict[str, int]:
    """Run the command undisturbed; return how many operations of each class it does."""
    counts = folder.with_suffix(".counts")
    env = environment(folder, {"FAULTY_COUNTS": str(counts)})
    outcome = brimful(*scenario.command(folder), env=env, preload=shim)
    assert outcome.code == DONE, outcome.err
    lines = counts.read_text().splitlines()
    return {name: int(number) for name, number in (line.split() for line in lines)}


def failures(counts: dict[str, int], name: str) -> list[str]:
    """Return the faults: single operations, all from one on, and transfers cut in half."""
    choose = random.Random(name)
    chosen = [f"{moved} 1 {ALWAYS} {MOVES_HALF}" for moved in ("read", "write")]
    for kind, errors in CLASSES.items():
        for _ in range(max(1, KILLS // 2) if counts[kind] else 0):
            first = choose.randint(1, counts[kind])
            last = choose.choice([first, first, ALWAYS])
            error = choose.choice(errors)
            # A system that interrupts every call for ever is not one.
            chosen.append(f"{kind} {first} {first if error == errno.EINTR else last} {error}")
    return chosen


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario",
    # An import and a run every day; test_kills.py disturbs the others.
    with_nightly(SCENARIOS[1:4:2], SCENARIOS[:4:2] + SCENARIOS[4:]),
    ids=lambda scenario: scenario.name,
)
def test_a_failing_disk_is_said_and_loses_nothing(
    shim: Path, scenario: Scenario, tmp_path: Path
) -> None:
    before, calm = tmp_path / "before", tmp_path / "calm"
    before.mkdir()
    play(scenario, before)
    shutil.copytree(before, calm)
    counts = count(shim, scenario, calm)
    expected, names = contents(calm, scenario.results), names_below(calm)
    assert expected and counts["write"] > 0
    failed = 0
    for number, failure in enumerate(failures(counts, scenario.name)):
        folder = tmp_path / str(number)
        shutil.copytree(before, folder)
        env = environment(folder, {"FAULTY_FAIL": failure})
        outcome = brimful(*scenario.command(folder), env=env, preload=shim, timeout=60)
        if outcome.code == DONE:
            assert contents(folder, scenario.results) == expected, failure
            # A folder that could not be removed is swept by the next run.
            left = {name for name in names_below(folder) - names if "vertices" not in name}
            assert not left, (failure, left)
        else:
            failed += 1
            assert outcome.code == IO, f"{failure}: exit {outcome.code}: {outcome.err}"
            assert_one_sentence(outcome.err)
            assert failure.endswith((str(errno.EIO), str(errno.ENOSPC))), (failure, outcome.err)
        finish(scenario, folder)
        assert contents(folder, scenario.results) == expected, failure
        assert not any("vertices/" in name for name in names_below(folder)), failure
        shutil.rmtree(folder)
    assert failed > 3
