"""Runs the real command line, the way a user does."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forks import Forks, modules_of

#: Exit codes of the command line.
DONE, USAGE, INPUT, BUDGET, CORRUPT, IO, INTERRUPTED = 0, 2, 3, 4, 5, 6, 130

BRIMFUL = [sys.executable, "-m", "brimful"]


@dataclass(frozen=True)
class Outcome:
    """What a finished command left."""

    code: int
    out: str
    err: str

    @property
    def figures(self) -> dict[str, Any]:
        """The JSON object on the last line of standard output."""
        return json.loads(self.out.strip().split("\n")[-1])


def brimful(
    *arguments: object,
    stdin: bytes | None = None,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    before: Callable[[], None] | None = None,
    preload: Path | None = None,
    timeout: float = 600,
) -> Outcome:
    """Run `brimful` with the arguments.

    `before` is called in the child before it starts; `preload` is a library to load first.
    """
    if preload is not None:
        env = (env or {}) | {"LD_PRELOAD": str(preload)}
    elif stdin is None and before is None:
        return _forked([str(argument) for argument in arguments], cwd, env, timeout)
    done = subprocess.run(
        BRIMFUL + [str(argument) for argument in arguments],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        cwd=cwd,
        env=os.environ | (env or {}),
        preexec_fn=before,
        timeout=timeout,
        check=False,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def _forked(
    words: list[str], cwd: Path | None, env: dict[str, str] | None, timeout: float
) -> Outcome:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        output = out.fileno(), err.fileno()
        code = _forks(modules_of(words)).run(words, cwd, os.environ | (env or {}), output, timeout)
        out.seek(0)
        err.seek(0)
        return Outcome(code, out.read().decode(), err.read().decode())


@functools.cache
def _forks(modules: tuple[str, ...]) -> Forks:
    return Forks(modules)


def succeed(*arguments: object, **settings: Any) -> Outcome:
    """Run `brimful` and insist on exit 0."""
    outcome = brimful(*arguments, **settings)
    assert outcome.code == DONE, f"exit {outcome.code}: {outcome.err}{outcome.out}"
    return outcome


def refuse(code: int, *arguments: object, **settings: Any) -> str:
    """Run `brimful --quiet`, insist on exit `code` and one sentence; return the sentence."""
    outcome = brimful(*arguments, **settings)
    assert outcome.code == code, f"exit {outcome.code}: {outcome.err}{outcome.out}"
    assert_one_sentence(outcome.err)
    return outcome.err.strip()


def smallest(*arguments: object) -> str:
    """Return the smallest budget that a command's refusal of one byte names."""
    sentence = refuse(BUDGET, *arguments, "--budget", 1, "--quiet")
    match = re.search(r"smallest that works is (\d+M)", sentence)
    assert match is not None, sentence
    return match[1]


def assert_one_sentence(err: str) -> None:
    """Insist that standard error is one line for people: no traceback, no panic."""
    lines = err.strip().split("\n")
    assert len(lines) == 1, f"more than one line: {err}"
    assert lines[0].startswith("brimful: "), err
    for trace in ("Traceback", "panicked", "RUST_BACKTRACE", "internal error", "Error(", "{"):
        assert trace not in err, err


def write_edges(path: Path, edges: Sequence[tuple[int, int]]) -> Path:
    """Write `source target` lines; return the path."""
    path.write_text("".join(f"{source} {target}\n" for source, target in edges))
    return path


def read_csv(path: Path) -> dict[int, float]:
    """Return a result file as `{vertex: value}`; insists on the header and the order."""
    header, *lines = path.read_text().strip().split("\n")
    assert header.split(",")[0] == "vertex"
    pairs = [line.split(",") for line in lines]
    values = {int(vertex): float(value) for vertex, value in pairs}
    assert list(values) == sorted(values) and len(values) == len(pairs)
    return values


def names_below(folder: Path) -> set[str]:
    """Return every path below a folder, hidden ones too."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
