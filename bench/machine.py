"""The header of every report: date, machine and versions."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from bench.command import ROOT


def header(folder: Path, size: str, repeat_count: int) -> str:
    """Return the header as Markdown."""
    fields = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": f"{_cpu_model()}, {_cores()} cores, {_memory()} of memory",
        "kernel": f"{platform.system()} {platform.release()}, huge pages {_huge_pages()}",
        "disk": _disk(folder),
        "versions": ", ".join(
            [
                f"{_output(sys.executable, '-m', 'brimful', '--version')} ({_commit()}, native "
                f"module of {_built()})",
                f"python {platform.python_version()}",
                _output("rustc", "--version"),
                *(f"{name} {_version(name)}" for name in ("numpy", "scipy", "pandas", "pyarrow")),
            ]
        ),
        "size": f"{size}; {repeat_count} repeats, the commands of a table in turn",
        "command": " ".join(["python -m bench", *sys.argv[1:]]),
    }
    lines = [f"- {name}: {value}" for name, value in fields.items()]
    return "\n".join(["# brimful benchmarks", "", *lines, "", _LEGEND, ""])


_LEGEND = (
    "Figures are `median (best)` of the repeats. MB and GB are decimal, MiB and GiB binary. A "
    "ratio is ours / reference in seconds, and below 1 is better, unless its column says otherwise."
)


def _cpu_model() -> str:
    for line in _lines("/proc/cpuinfo"):
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory() -> str:
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB"


def _huge_pages() -> str:
    for line in _lines("/sys/kernel/mm/transparent_hugepage/enabled"):
        return line.partition("[")[2].partition("]")[0]
    return "unknown"


def _disk(folder: Path) -> str:
    best = ("", "unknown device", "unknown file system")
    for line in _lines("/proc/mounts"):
        device, mount, kind, *_ = line.split()
        if folder.is_relative_to(mount) and len(mount) >= len(best[0]):
            best = (mount, device, kind)
    state = os.statvfs(folder)
    free = state.f_bavail * state.f_frsize / 2**30
    return f"{folder} on {best[1]} ({best[2]}, {free:.0f} GiB free)"


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    commit = _output("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD")
    changed = _output("git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no")
    return f"commit {commit}{' with changes' if changed else ''}"


def _built() -> str:
    """Return when the module in use was written: it may be older than the sources."""
    program = "import brimful._native as module; print(module.__file__)"
    path = Path(_output(sys.executable, "-c", program))
    if not path.is_file():
        return "unknown date"
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return f"{Path(command[0]).name}: unknown"
    return done.stdout.strip()


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
