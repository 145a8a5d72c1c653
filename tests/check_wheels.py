"""`make wheels`: check the built wheels, and run them with nothing else installed.

python tests/check_wheels.py FOLDER

The wheel for aarch64 runs under qemu-user where `BRIMFUL_AARCH64` names the root folder of an arm64
system with Python 3.11, and gives the same bytes as that of this machine.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

from packaging.utils import parse_wheel_filename

MACHINES = ("x86_64", "aarch64")
MAX_BYTES = 15_000_000
PLATFORM = "manylinux_2_28"
QEMU = "qemu-aarch64"
RANKS = "ranks.csv"


def main(folder: Path) -> None:
    """Check all files that a release has; raise where one is missing or is not as promised."""
    wheels = {machine: _wheel(folder, machine) for machine in MACHINES}
    (source,) = folder.glob("brimful-*.tar.gz")
    for path in (*wheels.values(), source):
        size = path.stat().st_size
        print(f"{path.name}: {size / 1e6:.1f} MB")
        if size >= MAX_BYTES:
            raise SystemExit(f"{path.name} has {size} bytes; at most {MAX_BYTES} are allowed")
    with tempfile.TemporaryDirectory() as native, tempfile.TemporaryDirectory() as emulated:
        _run(wheels[platform.machine()], Path(native))
        root = os.environ.get("BRIMFUL_AARCH64")
        if root is None or shutil.which(QEMU) is None:
            print(f"aarch64: SKIPPED, it needs {QEMU}, and BRIMFUL_AARCH64, an arm64 root folder")
            return
        _emulate(wheels["aarch64"], Path(root), Path(emulated))
        if Path(native, RANKS).read_bytes() != Path(emulated, RANKS).read_bytes():
            raise SystemExit("the wheels give different results")


def _wheel(folder: Path, machine: str) -> Path:
    """Return the one wheel for a machine, which every Python from 3.11 on can load."""
    (path,) = folder.glob(f"brimful-*{machine}.whl")
    _, _, _, tags = parse_wheel_filename(path.name)
    tag = f"cp311-abi3-{PLATFORM}_{machine}"
    if tag not in {str(tag) for tag in tags}:
        raise SystemExit(f"{path.name} is not for {tag}")
    return path


def _run(wheel: Path, folder: Path) -> None:
    """Install a wheel in an environment of its own, and rank a small graph there."""
    venv.create(folder, with_pip=True)
    programs = folder / "bin"
    subprocess.run([programs / "pip", "install", "--quiet", wheel], check=True)
    environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}
    _rank([programs / "brimful"], folder, environment)


def _emulate(wheel: Path, root: Path, folder: Path) -> None:
    """Rank the same graph with the wheel for aarch64, by an interpreter below `root`."""
    packages = folder / "packages"
    wanted = ["--platform", f"{PLATFORM}_aarch64", "--python-version", "3.11"]
    install = ["install", "--quiet", "--target", packages, "--only-binary=:all:", *wanted, wheel]
    subprocess.run([sys.executable, "-m", "pip", *install], check=True)
    python = [QEMU, "-L", root, root / "usr" / "bin" / "python3.11"]
    own = {"PYTHONHOME": str(root / "usr"), "PYTHONPATH": str(packages)}
    _rank([*python, "-m", "brimful"], folder, os.environ | own)


def _rank(brimful: Sequence[str | Path], folder: Path, environment: Mapping[str, str]) -> None:
    """Generate and rank a small graph in a folder."""
    for words in (
        ("generate", "rmat", "graph.brimful", "--scale", "12", "--quiet"),
        ("run", "pagerank", "graph.brimful", "--top", "3", "-o", RANKS, "--quiet"),
    ):
        subprocess.run([*brimful, *words], cwd=folder, env=environment, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
