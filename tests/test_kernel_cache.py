"""Compiled code is kept on disk until anything in it changes, and loaded without Numba."""

from __future__ import annotations

import errno
import json
import math
import os
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import brimful as bf
from brimful.kernels import forked, frame
from brimful.kernels.cache import CachedKernel, CacheEntry, _texts
from brimful.kernels.machine_code import MachineCode
from brimful.kernels.numbers import Numbers
from compiled_programs import Distances, random_graph
from nightly import with_nightly

#: A tuple that a method reads, and a function that one in it calls.
SHIFTS: Any = None
SHIFT: Any = None


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> bf.Graph:
    return random_graph(tmp_path_factory.mktemp("kept"))


#: The beginning of a program; the value of its last method follows.
LEAST = """class Least(bf.Program):
    delivery, combiner = "combined", "min"
    def initial_state(self, vertex):
        return vertex.id + SHIFT
    def signal(self, source, target, weight):
        return source.state
    def collect(self, vertex, signals):
"""

#: A program whose helper and constant are those of the environment.
KEPT = """
import json, os
import brimful as bf
import numba
from numba.core import event

SHIFT = int(os.environ["SHIFT"])

@numba.njit
def helped(state):
    return {helped}

{least}        return helped(min(vertex.state, signals[0]))

with event.install_recorder("numba:compile") as compiled:
    found = bf.run({graph!r}, Least(), compile="numba", max_supersteps=1)
print(json.dumps([len(compiled.buffer), sorted(found.values())[:3]]))
"""


@pytest.mark.parametrize(
    "change", with_nightly([(0, "state + 5", [-7, -4, -4])], [(5, "state", [-4, -4, -4])])
)
def test_compiled_code_is_kept_until_anything_in_it_changes(
    graph: bf.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: tuple[Any, ...]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    program = tmp_path / "least.py"

    def ran(shift: int, helped: str = "state") -> tuple[bool, list[int]]:
        program.write_text(KEPT.format(least=LEAST, helped=helped, graph=graph.path))
        monkeypatch.setenv("SHIFT", str(shift))
        done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
        compilations, least = json.loads(done.stdout)
        return compilations > 0, least

    assert ran(0) == (True, [-9, -9, -9])
    assert ran(0) == (False, [-9, -9, -9])
    shift, helped, least = change
    assert ran(shift, helped) == (True, least)


#: A program whose helper Numba compiles before the global that it reads changes.
CHANGED = """
import json, os
import brimful as bf
import numba

SHIFT = 0
BONUS = int(os.environ["BONUS"])

@numba.njit
def helped(state):
    return state - BONUS

{least}        return helped(min(vertex.state, signals[0]))

def ran():
    states = bf.run({graph!r}, Least(), compile="numba", max_supersteps=1)
    return min(states.values())

found = [ran()]
BONUS = 4
print(json.dumps([*found, ran()]))
"""


def test_globals_that_change_after_the_compilation_are_not_mixed_up(
    graph: bf.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    program = tmp_path / "least.py"
    program.write_text(CHANGED.format(least=LEAST, graph=graph.path))

    def ran(bonus: int) -> list[int]:
        monkeypatch.setenv("BONUS", str(bonus))
        done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
        found: list[int] = json.loads(done.stdout)
        return found

    # Numba does not compile the helper again, as for other callers.
    assert ran(1) == [-10, -10]
    assert ran(4) == [-13, -13]


#: A program that does not import Numba; its constant and its threads are those of the environment.
PLAIN = """
import json, os, sys, threading
import brimful as bf

SHIFT = int(os.environ["SHIFT"])
for _ in range(int(os.environ["THREADS"])):
    threading.Thread(target=threading.Event().wait, daemon=True).start()

{least}        return min(vertex.state, signals[0])

found = bf.run({graph!r}, Least(), compile="numba", max_supersteps=1)
print(json.dumps(["numba" in sys.modules, sorted(found.values())[:3]]))
"""


def test_no_process_holds_numba_but_one_with_threads_that_compiles(
    graph: bf.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def ran(module: str, shift: int = 0, threads: int = 0) -> tuple[bool, list[int], int]:
        (tmp_path / module).write_text(PLAIN.format(least=LEAST, graph=graph.path))
        monkeypatch.setenv("SHIFT", str(shift))
        monkeypatch.setenv("THREADS", str(threads))
        done = subprocess.run(
            [sys.executable, module], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        has_numba, least = json.loads(done.stdout)
        return has_numba, least, len(kernel_files())

    assert ran("first.py", threads=1) == (True, [-9, -9, -9], 1)
    assert ran("first.py", threads=1) == (False, [-9, -9, -9], 1)
    assert ran("second.py") == (False, [-9, -9, -9], 1)
    assert ran("second.py", shift=5) == (False, [-4, -4, -4], 2)


def test_work_in_a_forked_process_may_fail_or_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    children = []
    fork = os.fork

    def noted() -> int:
        children.append(fork())
        return children[-1]

    monkeypatch.setattr(os, "fork", noted)
    forked.in_child(lambda: (tmp_path / "made").touch())
    assert (tmp_path / "made").exists()
    forked.in_child(lambda: 1 // 0)
    monkeypatch.setattr(forked, "_MOST_SECONDS", 0.1)
    forked.in_child(lambda: time.sleep(600))
    assert len(children) == 3
    for child in children:
        with pytest.raises(ChildProcessError):
            os.waitpid(child, os.WNOHANG)
    assert capfd.readouterr() == ("", "")


def kernel_files() -> list[Path]:
    return list(Path(os.environ["XDG_CACHE_HOME"], "brimful", "kernels").iterdir())


@pytest.fixture
def compilations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list to which each compilation adds; no code is kept at first.

    A process that has imported Numba compiles in itself.
    """
    pytest.importorskip("numba")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found: list[str] = []
    compile_kernel = frame.compile_kernel

    def noted(source: str, *others: Any) -> Any:
        found.append(source)
        return compile_kernel(source, *others)

    monkeypatch.setattr(frame, "compile_kernel", noted)
    return found


def test_damaged_and_foreign_code_is_compiled_again(
    graph: bf.Graph, compilations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def values() -> dict[Any, Any]:
        return dict(bf.run(graph, Distances(7), compile="numba"))

    known = values()
    [file] = kernel_files()
    whole = file.read_bytes()
    file.write_bytes(whole[:-9] + b"." + whole[-8:])
    assert values() == known and len(compilations) == 2
    assert values() == known and len(compilations) == 2
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    assert values() == known and len(compilations) == 3


def test_each_byte_of_cached_code_is_checked(tmp_path: Path) -> None:
    entry = CacheEntry(tmp_path, "key")
    kernel = CachedKernel(Numbers("float64", "int64"), (1, 0), MachineCode(("a", "b"), b"co\nde"))
    assert entry.load() is None
    entry.store(kernel)
    assert entry.load() == kernel
    [file] = tmp_path.iterdir()
    whole = file.read_bytes()
    for at in range(len(whole)):
        for data in (whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]):
            file.write_bytes(data)
            assert entry.load() is None


def test_code_that_cannot_be_linked_is_compiled_again(
    graph: bf.Graph, compilations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = dict(bf.run(graph, Distances(7), compile="numba"))
    found = CacheEntry.load
    unlinked: list[dict[str, Any]] = [
        {"helpers": ("no_function_of_numba",)},
        {"data": b"no object file"},
    ]
    for number, parts in enumerate(unlinked):

        def changed(entry: CacheEntry, parts: dict[str, Any] = parts) -> CachedKernel | None:
            kernel = found(entry)
            assert kernel is not None
            return kernel._replace(code=kernel.code._replace(**parts))

        monkeypatch.setattr(CacheEntry, "load", changed)
        assert dict(bf.run(graph, Distances(7), compile="numba")) == known
        assert len(compilations) == number + 2


def test_arrays_in_methods_are_cached_and_calls_of_python_are_not(
    graph: bf.Graph, compilations: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    class Allocates(Distances):
        def collect(self, vertex: Any, signals: Any) -> Any:
            both = np.empty(2)
            both[0], both[1] = vertex.state, signals[0]
            return both.min()

    class Prints(Distances):
        def collect(self, vertex: Any, signals: Any) -> Any:
            if signals[0] == 1:
                print("a length of", signals[0])
            return min(vertex.state, signals[0])

    known = dict(bf.run(graph, Distances(7), compile="never"))
    for program, most in ((Allocates(7), 1), (Prints(7), 2)):
        compilations.clear()
        for _ in range(2):
            assert dict(bf.run(graph, program, compile="numba")) == known
        assert len(compilations) == most
        assert len(kernel_files()) == 1
    neighbors = sum(length == 1 for length in known.values())
    assert capfd.readouterr().out == 2 * neighbors * "a length of 1.0\n"


def test_named_tuples_are_compared_with_their_fields(
    graph: bf.Graph, compilations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Shifted(Distances):
        def collect(self, vertex: Any, signals: Any) -> Any:
            return SHIFTS.few

    for fields in ("few many", "many few"):
        shifts = namedtuple("Shifts", fields)(1, 2)
        monkeypatch.setattr(sys.modules[__name__], "SHIFTS", shifts)
        found = bf.run(graph, Shifted(7), compile="numba", max_supersteps=2)
        assert {*found.values()} - {0.0, math.inf} == {shifts.few}
    assert len(compilations) == 2


def test_compiled_functions_in_a_tuple_are_compared_with_what_they_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numba = pytest.importorskip("numba")
    module = sys.modules[__name__]

    def texts(shift: Any) -> list[str]:
        monkeypatch.setattr(module, "SHIFT", numba.njit(shift))
        monkeypatch.setattr(module, "SHIFTS", (numba.njit(lambda state: SHIFT(state)),))
        return [*_texts(lambda state: SHIFTS[0](state), {})]

    first = texts(lambda state: state + 1)
    assert texts(lambda state: state + 1) == first
    assert texts(lambda state: state + 2) != first


def test_a_cache_that_cannot_be_written_stops_nothing(
    graph: bf.Graph, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: Any
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("brimful.kernels.cache._write", full)
    found = bf.run(graph, Distances(7), on="shards")
    assert dict(found) == dict(bf.run(graph, Distances(7)))
    assert "compiled code is not cached: [Errno 28] No space left on device" in caplog.text
