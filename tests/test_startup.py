"""The command line starts light: heavy modules load only in the verb that needs them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from command import BRIMFUL, BUDGET, DONE, INPUT, INTERRUPTED, IO, USAGE, brimful, refuse, succeed

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


def test_a_command_that_makes_arrays_leaves_pandas_out(
    rmat: os.PathLike[str], tmp_path: Path
) -> None:
    words = ["brimful", "derive", os.fspath(rmat), str(tmp_path / "out.brimful")]
    words += ["--edges", "source > 7", "--quiet"]
    code = f"import sys, brimful.cli\nsys.argv = {words!r}\nassert brimful.cli.main() == 0"
    assert loaded_after(code) == {"pyarrow", "numpy", "brimful._native"}


def test_a_plug_in_may_import_pandas() -> None:
    code = (
        "from brimful.optional import leave_pandas_out\n"
        "from brimful.stores.registry import opener\n"
        "leave_pandas_out()\n"
        "try:\n    import pandas\nexcept ImportError:\n    opener('rocksdb:')\n"
        "    import pandas"
    )
    assert "pandas" in loaded_after(code)


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


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_a_closed_standard_output_is_an_error_and_other_closed_streams_are_none(
    closed: str,
) -> None:
    is_lost = ">&-" in closed.split()
    sentence = b"brimful: standard output is closed; send it to a file or to /dev/null\n"
    for command in ("brimful algorithms", "brimful --version"):
        done = in_shell(f"{command} {closed}")
        assert done.returncode == (IO if is_lost else DONE), done
        assert done.stderr == (sentence if closed == ">&-" else b"")
    # A command without output needs none.
    assert in_shell(f"brimful info missing.brimful {closed}").returncode == INPUT


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


@pytest.mark.parametrize("started", ["module", "script"])
def test_ctrl_c_while_our_own_modules_load_leaves_no_traceback(
    started: str, tmp_path: Path
) -> None:
    """The first one after the package is `brimful.cli`; a hook interrupts when its file opens."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "def interrupt(event, arguments):\n"
        "    if event == 'open' and '/brimful/cli/' in str(arguments[0]):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.addaudithook(interrupt)\n"
    )
    script = tmp_path / "brimful"
    script.write_text("from brimful.cli import main\nmain()\n")
    words = ["-m", "brimful"] if started == "module" else [str(script)]
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, *words, "algorithms"],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


def test_ctrl_c_within_a_finalizer_is_not_lost() -> None:
    script = """
import os, signal, time
from brimful.cli import app

class Dies:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)

def build_parser(verb):
    Dies()
    time.sleep(60)

app.build_parser = build_parser
raise SystemExit(app.main(["algorithms"]))
"""
    words = [sys.executable, "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (INTERRUPTED, "brimful: interrupted\n")


def test_a_reader_that_leaves_early_is_no_error() -> None:
    shell = f"{sys.executable} -m brimful generate --help | head -c 1"
    done = subprocess.run(shell, shell=True, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert brimful("--help").code == DONE


def in_shell(command: str, **settings: Any) -> subprocess.CompletedProcess[bytes]:
    """Run `brimful` in a shell, for its redirections."""
    line = command.replace("brimful", f"{sys.executable} -m brimful", 1)
    return subprocess.run(line, shell=True, capture_output=True, check=False, **settings)


def test_a_closed_standard_input_is_no_edge_list(tmp_path: Path) -> None:
    for more in ("", "--format csv", "--format u32pairs"):
        done = in_shell(f"brimful import - g.brimful {more} <&-", cwd=tmp_path)
        assert done.returncode == IO and b"standard input (-) is closed" in done.stderr, done
        assert done.stderr.count(b"\n") == 1 and list(tmp_path.iterdir()) == []


def test_a_full_standard_error_does_not_end_the_work(rmat: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.csv"
    done = in_shell(f"brimful run pagerank {rmat} -o {out} --top 1 2>/dev/full")
    assert done.returncode == DONE and out.read_text().startswith("vertex,pagerank\n")
    assert done.stdout.count(b"\n") == 8
    # Nor if the log goes there, too: then the exit code reports the failure.
    out.unlink()
    done = in_shell(f"brimful run pagerank {rmat} -o {out} --log - 2>/dev/full")
    assert done.returncode == IO and out.exists()
    # Nobody can read a log on a closed standard error, so the work does not begin.
    out.unlink()
    done = in_shell(f"brimful run pagerank {rmat} -o {out} --log - 2>&-")
    assert done.returncode == IO and not out.exists()


def test_a_log_on_a_full_disk_is_said(rmat: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.csv"
    done = in_shell(f"brimful run pagerank {rmat} -o {out} --quiet --log /dev/full")
    assert done.returncode == IO and out.exists()
    assert done.stderr.startswith(b"brimful: cannot write the log /dev/full: No space left")
    assert done.stderr.count(b"\n") == 1
    # What failed for another reason says that.
    assert in_shell("brimful info missing --log /dev/full").returncode == INPUT


def test_a_full_standard_output_is_said(rmat: Path) -> None:
    for command in (f"run pagerank {rmat} --quiet --json", "algorithms", "--help", "-V"):
        done = in_shell(f"brimful {command} >/dev/full")
        assert (done.returncode, done.stderr.count(b"\n")) == (IO, 1), done
        assert b"standard output" in done.stderr or b"No space" in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_name_can_be_printed(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "e.txt").write_text("é ś\né b\n")
    succeed("import", tmp_path / "e.txt", tmp_path / "e.brimful", "--no-header", "--quiet")
    done = in_shell(
        "brimful run degrees e.brimful --top 1 --json",
        cwd=tmp_path,
        env=os.environ | {"PYTHONIOENCODING": encoding},
    )
    assert done.returncode == DONE, done.stderr
    shown = {"ascii": rb"\xe9", "latin-1": b"\xe9", "utf-8": "é".encode()}[encoding]
    assert b"\n" + shown + b"\t2\n" in done.stdout


@pytest.mark.parametrize(
    ("coded", "env"),
    [
        (b"\xff\xe9", {"LC_ALL": "C.UTF-8"}),
        ("é".encode(), {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    ],
)
def test_names_of_files_may_be_any_bytes(tmp_path: Path, coded: bytes, env: dict[str, str]) -> None:
    name = os.fsdecode(coded)
    (tmp_path / f"{name}.txt").write_text("1 2\n2 3\n")
    (tmp_path / "named.txt").write_text("source target\nü é\né a\n", encoding="utf-8")
    for words in (
        ["plan", "degrees", f"{name}.txt"],
        ["run", "bfs", "named.txt", "--source", "ü"],
        ["import", f"{name}.txt", f"{name}.brimful"],
        ["info", f"{name}.brimful"],
        ["verify", f"{name}.brimful"],
        ["run", "degrees", f"{name}.txt", "-o", f"{name}.csv", "--log", f"{name}.log"],
        ["run", "degrees", f"{name}.brimful", "-o", f"{name}.parquet", "--json"],
        ["run", "degrees", f"{name}.brimful", "-o", f"{name}.arrow"],
        ["export", f"{name}.brimful", f"{name}2.csv"],
        ["export", f"{name}.brimful", f"{name}2.parquet"],
        ["import", f"{name}2.parquet", f"{name}2.brimful"],
        ["export", f"{name}.brimful", f"{name}3.arrow"],
        ["import", f"{name}3.arrow", f"{name}3.brimful"],
    ):
        done = subprocess.run(
            [*BRIMFUL, *words], cwd=tmp_path, env=os.environ | env, capture_output=True, check=False
        )
        assert done.returncode == DONE, (words, done.stderr)
    for words, code in (
        (["info", f"{name}x"], INPUT),
        (["run", "degrees", f"{name}.brimful", "--store", f"file:{name}"], USAGE),
        (["run", "bfs", f"{name}.brimful", "--source", name], USAGE),
        (["run", name, f"{name}.brimful"], USAGE),
        (["run", "degrees", f"{name}.brimful", "--param", f"direction={name}"], USAGE),
        (["run", "degrees", f"{name}.brimful", "--cache", name, "--store", "bytes"], USAGE),
    ):
        done = subprocess.run(
            [*BRIMFUL, *words], cwd=tmp_path, env=os.environ | env, capture_output=True, check=False
        )
        assert (done.returncode, done.stderr.count(b"\n")) == (code, 1), (words, done.stderr)
        assert b"internal error" not in done.stderr


def test_too_little_address_space_for_pyarrow_is_one_sentence(rmat: Path, tmp_path: Path) -> None:
    edges, graph = tmp_path / "edges.parquet", tmp_path / "edges.brimful"
    succeed("export", rmat, edges, "--quiet")
    ages = tmp_path / "ages.csv"
    ages.write_text("vertex,age\n0,41\n")
    succeed("import", edges, graph, "--vertex-columns", ages, "--quiet")
    for words in (f"import {edges} {tmp_path}/new.brimful", f"info {graph}", f"columns {graph}"):
        done = in_shell(f"ulimit -v {300 << 10}; exec brimful {words} --budget 160M --quiet")
        assert done.returncode == IO and b"pyarrow takes 288M" in done.stderr, done.stderr
        assert done.stderr.count(b"\n") == 1, done.stderr


def test_pyarrow_and_the_budget_fit_a_limit_of_the_address_space_or_are_refused(
    rmat: Path, tmp_path: Path
) -> None:
    edges = tmp_path / "edges.parquet"
    succeed("export", rmat, edges, "--quiet")
    for megabytes in (400, 550, 700, 900):
        for budget in ("", "--budget 155M", "--budget 400M"):
            words = f"import {edges} {tmp_path}/{megabytes}{budget[-4:]}.brimful {budget} --quiet"
            done = in_shell(f"ulimit -v {megabytes * 1000}; exec brimful {words}")
            assert done.returncode in (DONE, BUDGET, IO), done.stderr
            assert done.stderr.count(b"\n") == (done.returncode != DONE), done.stderr
            assert done.returncode == DONE or megabytes < (850 if "400" in budget else 710)


def test_a_run_fits_a_limit_of_the_address_space_or_is_refused(
    rmat20: Path, tmp_path: Path
) -> None:
    """Neither the heaps of threads nor pyarrow take the address space that the work needs."""
    for megabytes in (150, 250, 350, 400):
        for form in ("csv", "parquet"):
            words = f"run pagerank {rmat20} -o {tmp_path}/{megabytes}.{form} --threads 4 --quiet"
            done = in_shell(f"ulimit -v {megabytes * 1000}; exec brimful {words}")
            assert done.returncode in (DONE, BUDGET, IO), done.stderr
            assert done.stderr.count(b"\n") == (done.returncode != DONE), done.stderr
            assert done.returncode == DONE or megabytes < (400 if form == "parquet" else 250)


def test_rocksdb_fits_a_limit_of_the_address_space_or_is_refused(
    rmat: Path, tmp_path: Path
) -> None:
    pytest.importorskip("rocksdict", reason="SKIPPED: rocksdict is not installed")
    for megabytes in (140, 180, 220, 400):
        words = f"run pagerank {rmat} --store rocksdb:{tmp_path}/{megabytes} --quiet"
        done = in_shell(f"ulimit -v {megabytes * 1000}; exec brimful {words}")
        assert done.returncode in (DONE, BUDGET, IO), done.stderr
        assert done.stderr.count(b"\n") == (done.returncode != DONE), done.stderr
        assert done.returncode == DONE or megabytes < 400


@pytest.mark.parametrize("megabytes", [20, 30, 40, 50, 60, 80, 120, 200])
def test_little_address_space_is_one_sentence(rmat: Path, megabytes: int) -> None:
    """Below the memory of the interpreter itself, the interpreter reports the failure."""
    for words in (f"run pagerank {rmat} --threads 4 --quiet", "algorithms"):
        done = in_shell(f"ulimit -v {megabytes * 1024}; exec brimful {words}")
        if b"brimful" in done.stderr:
            assert done.returncode in (2, 3, 4, 6), done.stderr
            assert done.stderr.count(b"\n") == 1 and b"internal" not in done.stderr, done.stderr
        else:
            assert done.returncode == DONE or megabytes < 60, done
