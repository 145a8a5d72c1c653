"""A command that prints one JSON object, run in a process of its own."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.errors import CommandFailed, NotMeasured
from bench.limits import drop_cache, hard_limit

ROOT = Path(__file__).resolve().parent.parent

#: What a command printed, with `wall_seconds` (of the whole process) added.
Record = dict[str, Any]


@dataclass(frozen=True)
class Command:
    """The command to run, and its preconditions.

    `limit_bytes` is a hard limit of the kernel; `cold` is dropped from the page cache before;
    `fresh` is an output that is removed before.
    """

    module: str
    arguments: tuple[str, ...]
    limit_bytes: int | None = None
    cold: tuple[Path, ...] = ()
    fresh: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the line to type, and after it the conditions."""
        settings = [f"{name}={value}" for name, value in self.environment.items()]
        line = shlex.join([*settings, "python", "-m", self.module, *self.arguments])
        conditions = []
        if self.limit_bytes is not None:
            conditions.append(f"hard limit {self.limit_bytes >> 20} MiB")
        if self.cold:
            conditions.append("page cache dropped before")
        return f"`{line}`" + (f" ({', '.join(conditions)})" if conditions else "")

    def run(self) -> Record:
        """Run it and return its record.

        Raises:
            NotMeasured: this machine cannot meet the conditions, or the command said so.
            CommandFailed: it exited with an error, was killed, or printed no JSON object.
        """
        if self.fresh is not None:
            remove(self.fresh)
        for path in self.cold:
            drop_cache(path)
        os.sync()  # what others left to write must not be written on this command's time
        with hard_limit(self.limit_bytes) as enter:
            started = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-m", self.module, *self.arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                env={**os.environ, "PYTHONPATH": _python_path(), **self.environment},
                preexec_fn=enter,
                check=False,
            )
            wall_seconds = time.perf_counter() - started
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or ["(nothing on stderr)"]
            message = "".join(filter(str.isprintable, lines[-1]))[:200]
            raise CommandFailed(f"exit {done.returncode}: {message}")
        try:
            record: Record = json.loads(done.stdout.strip().splitlines()[-1])
        except (IndexError, ValueError):
            raise CommandFailed("its last line of output is not a JSON object") from None
        if "not_measured" in record:
            raise NotMeasured(record["not_measured"])
        return {**record, "wall_seconds": wall_seconds}


def brimful(
    *arguments: str | Path,
    limit_bytes: int | None = None,
    cold: tuple[Path, ...] = (),
    fresh: Path | None = None,
) -> Command:
    """Return the command line of brimful with `--json` (and `--quiet` where it runs long)."""
    words = tuple(str(argument) for argument in arguments)
    return Command("brimful", (*words, "--json", "--quiet"), limit_bytes, cold, fresh)


def reference(
    *arguments: str | Path,
    limit_bytes: int | None = None,
    cold: tuple[Path, ...] = (),
    environment: Mapping[str, str] | None = None,
) -> Command:
    """Return a program of `bench.reference`: one thread unless its arguments say more."""
    words = tuple(str(argument) for argument in arguments)
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **(environment or {})}
    return Command("bench.reference", words, limit_bytes, cold, None, threads)


def remove(path: Path) -> None:
    """Remove a file or a folder that may not be there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _python_path() -> str:
    inherited = os.environ.get("PYTHONPATH")
    return os.pathsep.join([*([inherited] if inherited else []), str(ROOT)])
