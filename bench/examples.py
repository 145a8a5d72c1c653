"""The Rust examples that measure parts which the command line does not show."""

from __future__ import annotations

import subprocess

from bench.command import ROOT


def build(crate: str, *names: str) -> None:
    """Build examples of a crate, as released."""
    words = [word for name in names for word in ("--example", name)]
    subprocess.run(
        ["cargo", "build", "--release", "--quiet", "-p", crate, *words], cwd=ROOT, check=True
    )


def run(name: str, *arguments: object) -> int:
    """Run an example that was built; return its exit code."""
    program = ROOT / "target" / "release" / "examples" / name
    return subprocess.run([program, *map(str, arguments)], check=False).returncode
