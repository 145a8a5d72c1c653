"""The command line starts light: heavy modules load only in the verb that needs them."""

import os
import signal
import subprocess
import sys
import time

import pytest

from command import BRIMFUL, DONE, INPUT, USAGE, brimful, refuse, succeed

HEAVY = ("pyarrow", "numpy", "pandas", "polars", "brimful._native")


def loaded_after(code: str) -> set[str]:
    """Return which heavy modules a fresh interpreter has after running `code`."""
    report = f"{code}\nimport sys\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", report], capture_output=True, text=True, check=True
    )
    return set(eval(done.stdout.strip().split("\n")[-1]))


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_after("import brimful; brimful.BudgetError; dir(brimful)") == set()


def test_building_the_parser_loads_nothing_heavy() -> None:
    assert loaded_after("import brimful.cli.app as app; app.build_parser()") == set()


@pytest.mark.parametrize(
    "verb", ["", "import", "generate", "run", "plan", "info", "verify", "index", "export"]
)
def test_help_loads_nothing_heavy(verb: str) -> None:
    arguments = [verb, "--help"] if verb else ["--help"]
    code = (
        "import contextlib, io, brimful.cli\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        f"    brimful.cli.main({arguments!r})"
    )
    assert loaded_after(code) == set()


def test_a_run_without_a_table_loads_neither_numpy_nor_pyarrow(rmat: os.PathLike[str]) -> None:
    code = (
        "import brimful.cli\n"
        f"code = brimful.cli.main(['run', 'pagerank', {os.fspath(rmat)!r}, '--quiet'])\n"
        "assert code == 0"
    )
    assert loaded_after(code) == {"brimful._native"}


def test_version() -> None:
    outcome = succeed("--version")
    assert outcome.out.startswith("brimful 0.")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["frobnicate"],
        ["run"],
        ["run", "pagerank"],
        ["run", "pagerank", "g.brimful", "--precision", "f16"],
        ["run", "pagerank", "g.brimful", "--mode", "parallel"],
        ["run", "pagerank", "g.brimful", "--threads", "0"],
        ["run", "pagerank", "g.brimful", "--threads", "1025"],
        ["run", "pagerank", "g.brimful", "--max-supersteps", "none"],
        ["import", "a.txt"],
        ["import", "a.txt", "b.brimful", "--directed", "--undirected"],
        ["import", "a.txt", "b.brimful", "--frobnicate"],
        ["generate", "mesh", "m.brimful"],
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_2(arguments: list[str]) -> None:
    refuse(USAGE, *arguments)


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error(closed: str) -> None:
    shell = f"{sys.executable} -m brimful algorithms {closed}"
    done = subprocess.run(shell, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (DONE, "")
    wrong = f"{sys.executable} -m brimful info missing.brimful {closed}"
    assert subprocess.run(wrong, shell=True, capture_output=True, check=False).returncode == INPUT


def test_ctrl_c_while_the_program_starts_leaves_no_traceback() -> None:
    for milliseconds in range(10, 200, 10):
        with subprocess.Popen(
            [*BRIMFUL, "algorithms"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as process:
            time.sleep(milliseconds / 1000)
            process.send_signal(signal.SIGINT)
            assert process.stderr is not None
            said = process.stderr.read()
        # Before our first line the interpreter answers, in its own way.
        assert "Traceback" not in said or "brimful/cli" not in said, (milliseconds, said)


def test_a_reader_that_leaves_early_is_no_error() -> None:
    shell = f"{sys.executable} -m brimful generate --help | head -c 1"
    done = subprocess.run(shell, shell=True, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert brimful("--help").code == DONE
