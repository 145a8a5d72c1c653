"""Checks that imports between crates point one way, and that each crate keeps its tools.

Run as a script; prints every violation and exits 1 if there is one.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# algos -> execution -> engine -> graph -> store, execution -> vertices -> collections -> store; the
# facade and the binding may see all below them.
MAY_USE = {
    "brimful-store": set(),
    "brimful-collections": {"brimful-store"},
    "brimful-graph": {"brimful-store"},
    "brimful-engine": {"brimful-store", "brimful-graph"},
    "brimful-vertices": {"brimful-store", "brimful-collections"},
    "brimful-execution": {
        "brimful-store",
        "brimful-collections",
        "brimful-graph",
        "brimful-engine",
        "brimful-vertices",
    },
    "brimful-algos": {
        "brimful-store",
        "brimful-graph",
        "brimful-engine",
        "brimful-vertices",
        "brimful-execution",
    },
    "brimful": {
        "brimful-store",
        "brimful-collections",
        "brimful-graph",
        "brimful-engine",
        "brimful-vertices",
        "brimful-execution",
        "brimful-algos",
    },
    "brimful-python": {
        "brimful",
        "brimful-store",
        "brimful-collections",
        "brimful-graph",
        "brimful-engine",
        "brimful-vertices",
        "brimful-execution",
        "brimful-algos",
    },
    "brimful-fuzz": {"brimful-store", "brimful-collections", "brimful-graph"},
}
# Crates that exactly one crate may depend on.
RESERVED = {"pyo3": "brimful-python", "arrow": "brimful-python"}
OPENS_FILES = re.compile(
    r"\b(std::fs|fs::File|File::(open|create|options)|OpenOptions|tempfile::)\b"
)
# Only the store opens files; these may too, for the reason given.
FILE_EXCEPTIONS = {"fuzz/src/graph.rs": "names are imported from text"}
PRINTS = re.compile(r"\be?print(ln)?!\s*\(")


def packages() -> list[dict[str, object]]:
    """Return the workspace's packages as `cargo metadata` describes them."""
    output = subprocess.run(
        ["cargo", "metadata", "--no-deps", "--format-version", "1", "--locked"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return json.loads(output)["packages"]


def dependency_violations(package: dict[str, object]) -> list[str]:
    """Return the dependencies of a package that point the wrong way."""
    name = str(package["name"])
    if name not in MAY_USE:
        return [f"{name}: a new crate; say in {Path(__file__).name} what it may use"]
    found = []
    for dependency in package["dependencies"]:
        if dependency["kind"] == "dev":
            continue
        other = str(dependency["name"])
        if other in MAY_USE and other not in MAY_USE[name]:
            found.append(f"{name} depends on {other}: imports point one way, see MAY_USE")
        for reserved, owner in RESERVED.items():
            if other.split("-")[0] == reserved and name != owner:
                found.append(f"{name} depends on {other}: only {owner} may")
    return found


def is_test_module(path: Path) -> bool:
    """Return whether the module above declares this file for tests only."""
    folder = path.parent
    above = [folder / "mod.rs", folder / "lib.rs", folder.with_suffix(".rs")]
    declared = re.compile(r"^#\[cfg\(test\)\]\nmod tests;", flags=re.M)
    return any(module.is_file() and declared.search(module.read_text()) for module in above)


def source_violations(package: dict[str, object]) -> list[str]:
    """Return the lines of a package's own code that use another crate's tools."""
    name = str(package["name"])
    found = []
    for path in sorted(Path(str(package["manifest_path"])).parent.glob("src/**/*.rs")):
        where = path.relative_to(ROOT).as_posix()
        if path.name == "tests.rs" and is_test_module(path):
            continue
        is_program = path.name == "main.rs" or path.parent.name == "bin"
        # A unit-test module closes its file and may use what it likes.
        product = re.split(r"^#\[cfg\(test\)\]\n(?:pub )?mod \w+ \{", path.read_text(), flags=re.M)[
            0
        ]
        for number, line in enumerate(product.split("\n"), 1):
            code = line.split("//")[0]
            if (
                OPENS_FILES.search(code)
                and name != "brimful-store"
                and where not in FILE_EXCEPTIONS
            ):
                found.append(f"{where}:{number}: only brimful-store opens files: {code.strip()}")
            if PRINTS.search(code) and not is_program:
                found.append(f"{where}:{number}: only the command line prints: {code.strip()}")
    return found


def main() -> int:
    """Print the violations; return the exit code."""
    members = packages()
    missing = set(MAY_USE) - {str(package["name"]) for package in members}
    found = [f"{name}: the crate is gone" for name in sorted(missing)]
    for package in members:
        found += dependency_violations(package) + source_violations(package)
    for violation in found:
        print(violation)
    print(f"layers: {len(members)} crates, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
