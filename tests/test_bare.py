"""Examples where only the wheel and the packages that it declares are installed."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from email.parser import HeaderParser
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from test_documents import README, run_document

COLLECTIONS = README.parent / "docs" / "guide" / "collections.md"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel in the folder BRIMFUL_WHEEL, or made here.

    The compiled module is that of `maturin develop`: cargo finds it up to date.
    """
    if made_before := os.environ.get("BRIMFUL_WHEEL"):
        (given,) = Path(made_before).glob("brimful-*.whl")
        return given
    out = tmp_path_factory.mktemp("wheel")
    maturin = Path(sys.prefix) / "bin" / "maturin"
    own = {"VIRTUAL_ENV": sys.prefix, "PYO3_PYTHON": sys.executable}
    subprocess.run(
        [maturin, "build", "--release", "--locked", "--interpreter", sys.executable, "--out", out],
        cwd=README.parent,
        env=os.environ | own,
        capture_output=True,
        check=True,
    )
    (made,) = out.glob("brimful-*.whl")
    return made


def requirements(declared: list[str]) -> set[str]:
    """Return the distributions of requirements, and those that they require in turn."""
    found: set[str] = set()
    waiting = [Requirement(one) for one in declared]
    while waiting:
        requirement = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        name = canonicalize_name(requirement.name)
        assert metadata.version(name) in requirement.specifier, requirement
        if name not in found:
            found.add(name)
            waiting += map(Requirement, metadata.requires(name) or [])
    return found


def declared_by(wheel: Path) -> list[str]:
    """Return the requirements in the metadata of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(archive.read(name).decode()).get_all("Requires-Dist") or []


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment: the wheel, and links to the packages it declares."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True, with_pip=False)
    python = folder / "bin" / "python"
    install = ["install", "--quiet", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), *install],
        capture_output=True,
        check=True,
    )
    (site,) = folder.glob("lib/python*/site-packages")
    for name in requirements(declared_by(wheel)):
        for file in metadata.files(name) or []:
            if ".." not in file.parts:
                place = site / file
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(file.locate())
    return python


@pytest.mark.slow
@pytest.mark.parametrize("document", [README, COLLECTIONS], ids=lambda path: path.name)
def test_the_examples_run(document: Path, bare: Path, tmp_path: Path) -> None:
    run_document(document, tmp_path, bare, "-I")


@pytest.mark.slow
def test_every_module_can_be_imported(bare: Path) -> None:
    """Packages that only an extra brings are imported by the functions that need them.

    NetworkX itself imports the modules of its backend.
    """
    python = README.parent / "python"
    paths = set(python.glob("brimful/**/[a-z]*.py")) - set(python.glob("brimful/networkx/**/*.py"))
    files = sorted(path.relative_to(python) for path in paths)
    modules = [".".join(file.with_suffix("").parts) for file in files]
    code = "\n".join(f"import {module}" for module in modules)
    done = subprocess.run([bare, "-I", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(modules) > 50
