"""Commands disturbed, started again, and compared with an undisturbed run.

A scenario is a row: what is there before, the command that is killed or whose disk fails, what the
next user does, and what must then be the same. `BRIMFUL_KILLS=all` in the environment disturbs it
hundreds of times.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from command import BRIMFUL, names_below, succeed

#: Kills of each scenario, and in a nightly run.
KILLS = 100 if os.environ.get("BRIMFUL_KILLS") == "all" else 4

Words = list[object]


@dataclass(frozen=True)
class Scenario:
    """Something that may be disturbed."""

    name: str
    #: Commands that come before, in a folder.
    before: Callable[[Path], list[Words]]
    #: The command that is disturbed.
    command: Callable[[Path], Words]
    #: What the next user does; the same command again unless said otherwise.
    again: Callable[[Path], list[Words]]
    #: Files and folders that must be as in an undisturbed run.
    results: tuple[str, ...]
    #: What the next user does goes on from where the command was.
    resumes: bool = False


GRAPH = "g.brimful"
_MADE: Words = ["rmat", "--scale", 15, "--edge-factor", 8, "--seed", 3, "--weights", "hash"]
#: From its vertex of most edges eleven supersteps reach most others.
_SHORTEST: Words = ["sssp", "--weighted", "--source", 14678]


def _generate(folder: Path) -> Words:
    return ["generate", _MADE[0], folder / GRAPH, *_MADE[1:], "--quiet"]


def _text(folder: Path) -> list[Words]:
    edges = ["export", folder / "made.brimful", folder / "edges.txt", "--quiet"]
    return [["generate", _MADE[0], folder / "made.brimful", *_MADE[1:], "--quiet"], edges]


def _import(folder: Path) -> Words:
    return ["import", folder / "edges.txt", folder / GRAPH, "--index", "in,reverse", "--quiet"]


def _index(folder: Path) -> Words:
    return ["index", folder / GRAPH, "reverse", "--quiet"]


def _run(algorithm: str, *options: object) -> Callable[[Path], Words]:
    """Return the command; `FOLDER` in an option is where the graph is."""

    def words(folder: Path) -> Words:
        out = folder / "result.csv"
        chosen = [str(option).replace("FOLDER", str(folder)) for option in options]
        return ["run", algorithm, folder / GRAPH, *chosen, "-o", out, "--overwrite", "--quiet"]

    return words


def _of_new_graph(command: Callable[[Path], Words]) -> Callable[[Path], list[Words]]:
    """Return the command again, unless the graph is there already."""
    return lambda folder: [] if (folder / GRAPH).exists() else [command(folder)]


def _row(name: str, command: Callable[[Path], Words], *results: str) -> Scenario:
    return Scenario(name, lambda f: [_generate(f)], command, lambda f: [command(f)], results)


def _with_checkpoints(name: str, every: object, algorithm: str, *options: object) -> Scenario:
    """Return a run that makes checkpoints, from which the next user goes on."""
    run = _run(algorithm, *options, "--checkpoint-every", every)
    again = _run(algorithm, *options, "--resume", "--json")
    results = ("result.csv",)
    return Scenario(name, lambda f: [_generate(f)], run, lambda f: [again(f)], results, True)


SCENARIOS = [
    Scenario("generate", lambda _: [], _generate, _of_new_graph(_generate), (GRAPH,)),
    Scenario("import", _text, _import, _of_new_graph(_import), (GRAPH,)),
    _row("index", _index, GRAPH),
    _row("pagerank", _run("pagerank", "--tolerance", 0, "--max-supersteps", 30), "result.csv"),
    _row("label propagation", _run("label_propagation", "--max-supersteps", 5), "result.csv"),
    _with_checkpoints("checkpoints", 1, "pagerank", "--tolerance", 1e-9, "--max-supersteps", 400),
    _with_checkpoints("checkpoints, asynchronous", 1, *_SHORTEST, "--mode", "async"),
    _with_checkpoints("checkpoints in a store", 1, *_SHORTEST, "--store", "bytes"),
    _with_checkpoints(
        "checkpoints of a store on disk",
        *(3, *_SHORTEST, "--store", "file:FOLDER/vertices", "--lists", "disk"),
    ),
    _with_checkpoints(
        "checkpoints without supersteps",
        *("0.01s", *_SHORTEST, "--store", "memory", "--mode", "async"),
    ),
    _row("export", lambda f: ["export", f / GRAPH, f / "e.txt", "--overwrite", "--quiet"], "e.txt"),
]


def contents(folder: Path, results: tuple[str, ...]) -> dict[str, bytes]:
    """Return the bytes of results, but for a lock, and for the manifest, which names the input."""
    found = {}
    for name in results:
        path = folder / name
        for file in [path] if path.is_file() else sorted(path.iterdir()):
            if file.name not in ("lock", "current") and not file.name.startswith("manifest-"):
                found[f"{name}/{file.name}"] = file.read_bytes()
    return found


def play(scenario: Scenario, folder: Path) -> None:
    """Make the files that exist before."""
    for words in scenario.before(folder):
        succeed(*words)


def undisturbed(scenario: Scenario, folder: Path) -> tuple[dict[str, bytes], set[str], float]:
    """Return the results, the names of all that is left, and the seconds of the command."""
    folder.mkdir()
    play(scenario, folder)
    seconds = _seconds(*scenario.command(folder))
    return contents(folder, scenario.results), names_below(folder), seconds


def kill_once(scenario: Scenario, folder: Path, seconds: float) -> bool:
    """Kill the command after so many seconds; return whether it still ran.

    Then do what the next user does.
    """
    play(scenario, folder)
    process = _start(scenario, folder)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    killed = _kill(process)
    finish(scenario, folder)
    return killed


def kill_after_checkpoint(scenario: Scenario, folder: Path) -> bool:
    """Kill the command once it has made a checkpoint; return whether the next user resumes."""
    play(scenario, folder)
    before = names_below(folder)
    process = _start(scenario, folder)
    while process.poll() is None and not _checkpoints(folder, before):
        time.sleep(0.0005)
    _kill(process)
    return finish(scenario, folder)


def _checkpoints(folder: Path, before: set[str]) -> bool:
    return any(name.endswith("/current") for name in names_below(folder) - before)


def _start(scenario: Scenario, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        BRIMFUL + [str(word) for word in scenario.command(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _kill(process: subprocess.Popen[bytes]) -> bool:
    """Kill a process; return whether it still ran."""
    process.kill()
    return process.wait(60) == -signal.SIGKILL


def finish(scenario: Scenario, folder: Path) -> bool:
    """Repeat the command as the next user does; return whether it continued the killed one."""
    if (folder / GRAPH).exists():
        succeed("verify", folder / GRAPH, "--quiet")
    outcomes = [succeed(*words) for words in scenario.again(folder)]
    return scenario.resumes and outcomes[-1].figures["resumed_from"] is not None


@functools.cache
def seconds_of_start() -> float:
    """Return how long the interpreter takes to begin, on a good day."""
    return min(_seconds("algorithms") for _ in range(3))


def _seconds(*words: object) -> float:
    begin = time.monotonic()
    succeed(*words)
    return time.monotonic() - begin


def moments(scenario: Scenario) -> list[float]:
    """Return when to kill, as shares of the time that follows the start: one of every part."""
    chosen = random.Random(scenario.name)
    return [(part + chosen.random()) / KILLS for part in range(KILLS)]
