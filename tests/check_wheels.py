"""`make wheels`: check the built wheels, and run that of this machine with nothing else installed.

python tests/check_wheels.py FOLDER
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from packaging.utils import parse_wheel_filename

MACHINES = ("x86_64", "aarch64")
MOST_BYTES = 15_000_000
PLATFORM = "manylinux_2_28"


def main(folder: Path) -> None:
    """Check all files that a release has; raise where one is missing or is not as promised."""
    wheels = {machine: _wheel(folder, machine) for machine in MACHINES}
    (source,) = folder.glob("brimful-*.tar.gz")
    for path in (*wheels.values(), source):
        size = path.stat().st_size
        print(f"{path.name}: {size / 1e6:.1f} MB")
        if size >= MOST_BYTES:
            raise SystemExit(f"{path.name} has {size} bytes; at most {MOST_BYTES} are allowed")
    _run(wheels[platform.machine()])


def _wheel(folder: Path, machine: str) -> Path:
    """Return the one wheel for a machine, which every Python from 3.11 on can load."""
    (path,) = folder.glob(f"brimful-*{machine}.whl")
    _, _, _, tags = parse_wheel_filename(path.name)
    tag = f"cp311-abi3-{PLATFORM}_{machine}"
    if tag not in {str(tag) for tag in tags}:
        raise SystemExit(f"{path.name} is not for {tag}")
    return path


def _run(wheel: Path) -> None:
    """Install a wheel in an environment of its own, and rank a small graph there."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder, "bin")
        environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}
        for words in (
            ("pip", "install", "--quiet", str(wheel)),
            ("brimful", "generate", "rmat", "graph.brimful", "--scale", "12", "--quiet"),
            ("brimful", "run", "pagerank", "graph.brimful", "--top", "3", "--quiet"),
        ):
            subprocess.run(
                [programs / words[0], *words[1:]], cwd=folder, env=environment, check=True
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
