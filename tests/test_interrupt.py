"""Ctrl-C and SIGTERM: exit 130 within a second or so, and nothing half-made stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command import BRIMFUL, INTERRUPTED, assert_one_sentence, names_below, succeed
from nightly import with_nightly

#: What the product promises is one second; a loaded machine gets some more.
PATIENCE_SECONDS = 5.0


def interrupt(
    arguments: list[object], number: signal.Signals, after: float
) -> tuple[int, str, float]:
    """Start a command, signal it a while after it can handle signals.

    Returns:
        The exit code, standard error, and the seconds until the command stopped.
    """
    process = subprocess.Popen(
        BRIMFUL + [str(argument) for argument in arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None and not _handles_sigterm(process.pid):
        time.sleep(0.01)
    time.sleep(after)
    assert process.poll() is None, f"finished before the signal: {process.communicate()}"
    process.send_signal(number)
    sent = time.monotonic()
    _, err = process.communicate(timeout=60)
    return process.returncode, err, time.monotonic() - sent


def _handles_sigterm(pid: int) -> bool:
    """Return whether the command line has its handler of SIGTERM, which Python itself has not."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


@pytest.fixture(scope="module")
def long_text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An edge list of about 300 MB: at least a second of work."""
    path = tmp_path_factory.mktemp("long") / "edges.txt"
    block = "".join(f"{n * 7919 % 1000003}\t{n * 104729 % 1000003}\n" for n in range(1_000_000))
    with path.open("w") as file:
        for _ in range(22):
            file.write(block)
    return path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after", [0.4, 0.7])
def test_an_interrupted_import_leaves_nothing(
    long_text: Path, tmp_path: Path, number: signal.Signals, after: float
) -> None:
    arguments = ["import", long_text, tmp_path / "g.brimful", "--quiet", "--threads", 1]
    code, err, seconds = interrupt(arguments, number, after)
    assert code == INTERRUPTED
    assert_one_sentence(err)
    assert err.strip() == "brimful: interrupted"
    assert seconds < PATIENCE_SECONDS
    assert names_below(tmp_path) == set()


def test_an_interrupted_import_of_a_table_leaves_nothing(long_text: Path, tmp_path: Path) -> None:
    csv = tmp_path / "edges.csv"
    with csv.open("wb") as file, long_text.open("rb") as lines:
        file.write(b"source,target\n")
        while block := lines.read(1 << 24):
            file.write(block.replace(b"\t", b","))
    arguments = ["import", csv, tmp_path / "g.brimful", "--quiet", "--threads", 1]
    code, err, seconds = interrupt(arguments, signal.SIGINT, 1.0)
    assert (code, err.strip()) == (INTERRUPTED, "brimful: interrupted")
    assert seconds < PATIENCE_SECONDS
    assert names_below(tmp_path) == {"edges.csv"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_pipe_that_nobody_writes_is_waited_for(tmp_path: Path, number: signal.Signals) -> None:
    pipe, out = tmp_path / "edges.txt", tmp_path / "g.brimful"
    os.mkfifo(pipe)
    code, err, seconds = interrupt(["import", pipe, out, "--quiet"], number, 1.0)
    assert (code, err.strip()) == (INTERRUPTED, "brimful: interrupted")
    assert seconds < PATIENCE_SECONDS
    writer = subprocess.Popen(["sh", "-c", 'sleep 1; printf "1 2\\n2 3\\n" > "$0"', pipe])
    assert succeed("import", pipe, out, "--json", "--quiet").figures["edges"] == 2
    assert writer.wait(60) == 0


def test_an_interrupted_generate_leaves_nothing(tmp_path: Path) -> None:
    options = ["--scale", 24, "--edge-factor", 16, "--quiet", "--threads", 1]
    arguments = ["generate", "rmat", tmp_path / "g.brimful", *options]
    code, err, seconds = interrupt(arguments, signal.SIGINT, 1.0)
    assert (code, err.strip()) == (INTERRUPTED, "brimful: interrupted")
    assert seconds < PATIENCE_SECONDS
    assert names_below(tmp_path) == set()


def test_an_interrupted_run_leaves_the_graph_usable(tmp_path: Path) -> None:
    graph = tmp_path / "g.brimful"
    succeed("generate", "rmat", graph, "--scale", 18, "--quiet")
    before = names_below(tmp_path)
    options = ["--tolerance", 0, "--max-supersteps", 1_000_000, "--quiet", "-o", tmp_path / "r.csv"]
    code, err, seconds = interrupt(["run", "pagerank", graph, *options], signal.SIGINT, 1.5)
    assert (code, err.strip()) == (INTERRUPTED, "brimful: interrupted")
    assert seconds < PATIENCE_SECONDS
    assert names_below(tmp_path) == before
    succeed("verify", graph, "--quiet")


def test_what_a_killed_import_left_is_swept_by_the_next(long_text: Path, tmp_path: Path) -> None:
    arguments = ["import", long_text, tmp_path / "g.brimful", "--quiet", "--threads", 1]
    code, _, _ = interrupt(arguments, signal.SIGKILL, 0.6)
    assert code == -signal.SIGKILL
    assert not (tmp_path / "g.brimful").exists()
    (tmp_path / "small.txt").write_text("1 2\n")
    succeed("import", tmp_path / "small.txt", tmp_path / "g.brimful", "--quiet")
    left = {name for name in names_below(tmp_path) if not name.startswith("g.brimful")}
    assert left == {"small.txt"}


_COLLECTION = """
import os, signal, sys, threading, time
import numpy as np
import brimful as bf

path, call = sys.argv[1:]
counter = bf.FrequencyCounter(path, budget="128M")
counter.add_many(np.arange(1000))
counter.sync()
keys = np.random.default_rng(1).integers(0, 2**63, 1 << 23)
for _ in range(5):
    counter.add_many(keys)
    keys += 1
more = np.arange(1 << 27)
added = 0


def add_many():
    global added
    before = counter.native.taken
    try:
        counter.add_many(more)
    except KeyboardInterrupt as error:
        added = int(error.__notes__[0].split()[0])
        assert added == counter.native.taken - before and added % (1 << 18) == 0
        raise


calls = {
    "add_many": add_many,
    "sync": counter.sync,
    "count": lambda: counter[7],
    "count_many": lambda: counter.count_many(keys),
    "top": lambda: counter.top(3),
}
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
started = time.monotonic()
try:
    calls[call]()
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - started - 0.3)
# What was stopped may be done again, and nothing is counted twice or lost.
asked = keys[:100_000] - 1
if added < len(more):
    assert counter.count_many(more[[added - 1, added]]).tolist() == [added > 0, 0] or added <= 1000
total = len(counter) - max(0, added - 1000)
print("total", int(counter.count_many(asked).min()), total)
counter.close()
"""


@pytest.mark.nightly
@pytest.mark.parametrize("call", ["count_many", "add_many", "sync", "count", "top"])
def test_an_interrupted_call_of_a_collection_can_be_repeated(tmp_path: Path, call: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _COLLECTION, tmp_path / "counter", call],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    stopped, total = (line.split() for line in done.stdout.splitlines())
    assert stopped[0] == "interrupted"
    assert float(stopped[1]) < PATIENCE_SECONDS
    # Five times 2^23 random numbers, each array one more than the last: nearly all are different.
    assert total[1] == "1"
    assert 5 * 2**23 + 1000 - 100 <= int(total[2]) <= 5 * 2**23 + 1000


_RECORDS = """
import os, signal, sys, threading, time
import numpy as np
import brimful as bf

path, call = sys.argv[1:]
rng = np.random.default_rng(1)
box = bf.Box(path + "/box", dtype=np.uint64, budget="128M")
box.extend(np.arange(1 << 20, dtype=np.uint64))
bag = bf.Bag(path + "/bag", budget="128M")
bag.extend([bytes(20)] * 100_000)
many = rng.integers(0, 1 << 20, 1 << 25)
some = many[: 1 << 23] % 100_000
calls = {
    "box fetch": lambda: box.fetch_batch(many),
    "box store": lambda: box.store_batch(many, many.astype(np.uint64)),
    "bag fetch": lambda: bag.fetch_batch(some),
    "bag iterate": lambda: [list(bag) for _ in range(100)],
    "sort": lambda: [bf.sort([many] * 20, budget="64M").__next__() for _ in range(10)],
}
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
started = time.monotonic()
try:
    calls[call]()
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - started - 0.2)
# Work after a stopped run succeeds.
assert box[5:7].shape == (2,) and len(bag[5]) == 20
box.close()
bag.close()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "call", with_nightly(["box store", "bag fetch", "sort"], ["box fetch", "bag iterate"])
)
def test_long_calls_on_records_are_interrupted(tmp_path: Path, call: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _RECORDS, tmp_path, call],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    what, seconds = done.stdout.split()
    assert what == "interrupted"
    assert float(seconds) < PATIENCE_SECONDS


def test_an_interruption_while_pandas_loads_is_heard(tmp_path: Path) -> None:
    result = tmp_path / "degrees.parquet"
    succeed("generate", "chain", tmp_path / "g.brimful", "--vertices", 9, "--quiet")
    succeed("run", "degrees", tmp_path / "g.brimful", "-o", result, "--quiet")
    # Only the first import is interrupted.
    (tmp_path / "pandas.py").write_text(
        "import os, signal, time\n"
        "os.rename(__file__, __file__ + '.once')\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "time.sleep(0.1)\n"
    )
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", f"import brimful as bf\nbf.compare(*{2 * (str(result),)!r})"],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGINT, done.stderr
    assert done.stderr.strip().endswith("KeyboardInterrupt")


#: A query of DuckDB on two threads, and a signal during it; the argument is `execute` or `reader`.
_QUERY = """
import signal, sys, time
import duckdb
from brimful.tables.connection import DuckDbConnection
from brimful.tables.joining import join_errors

class Interrupted(KeyboardInterrupt):
    pass

def interrupt(number, frame):
    raise Interrupted

signal.signal(signal.SIGALRM, interrupt)
rows = "range(20000) a, range(20000) b order by x"
query = f"select (a.range * 7919 + b.range) % 1000003 as x from {rows}"
with DuckDbConnection(duckdb.connect(config={"threads": 2}), ".") as connection:
    for _ in range(3):
        start = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            with join_errors("rows"):
                if sys.argv[1] == "execute":
                    connection.execute(f"create or replace table rows as {query}")
                else:
                    connection.reader(query, 1000)
        except Interrupted:
            print(time.monotonic() - start - 0.2)
    assert connection.execute("select 1").fetchall() == [(1,)]
assert signal.getsignal(signal.SIGALRM) is interrupt
"""


@pytest.mark.parametrize("call", ["execute", "reader"])
def test_a_query_of_duckdb_is_interrupted(call: str) -> None:
    """DuckDB would wait for its threads for ever if the handler raised during the query."""
    done = subprocess.run(
        [sys.executable, "-c", _QUERY, call],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == 3
    assert all(float(seconds) < PATIENCE_SECONDS for seconds in done.stdout.split())


_EARLY = """
import signal, time
from brimful.tables.connection import DuckDbConnection

class Native:
    interrupts = 0

    def interrupt(self):
        self.interrupts += 1

    def execute(self, query, parameters):
        signal.raise_signal(signal.SIGINT)
        end = time.monotonic() + 30
        while self.interrupts < 3 and time.monotonic() < end:
            time.sleep(0.01)

native = Native()
try:
    DuckDbConnection(native, ".").execute("select 1")
except KeyboardInterrupt:
    print(native.interrupts)
"""


def test_an_interrupt_before_a_query_begins_is_repeated() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _EARLY], capture_output=True, text=True, timeout=60, check=False
    )
    assert int(done.stdout) >= 3, done.stderr
