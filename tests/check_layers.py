"""Checks that imports point one way, between crates, their modules and the Python modules.

Each crate also keeps its tools.

Run as a script; prints every violation and exits 1 if there is one.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
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
# Modules that only group others: the rooms of a crate. Imports between rooms may go both ways.
ROOMS = {
    "brimful-graph": {"input", "ids", "order", "read", "build"},
    "brimful-engine": {"plan", "vertex", "traverse", "result"},
}
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
    above = [folder / "lib.rs", folder.with_suffix(".rs")]
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


def without_tests(text: str) -> str:
    """Return Rust code without comments and without its unit tests."""
    code = re.sub(r"//[^\n]*", "", text)
    return re.split(r"^#\[cfg\(test\)\]\n(?:pub )?mod \w+ \{", code, flags=re.M)[0]


def items(tree: str, prefix: list[str]) -> Iterator[list[str]]:
    """Yield the path of every item of a `use` tree."""
    tree = tree.strip()
    nested = re.fullmatch(r"([\w:]*?)(?:::)?\{(.*)\}", tree, flags=re.S)
    if not nested:
        yield [*prefix, *(part.split(" as ")[0].strip() for part in tree.split("::"))]
        return
    base = [*prefix, *(part for part in nested[1].split("::") if part)]
    depth, start = 0, 0
    for at, character in enumerate(nested[2] + ","):
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            if part := nested[2][start:at].strip():
                yield from items(part, base)
            start = at + 1


def paths_in(code: str) -> Iterator[list[str]]:
    """Yield the paths into the same crate that Rust code names."""
    for use in re.finditer(r"\buse ((?:crate|super|self)::[^;]*);", code):
        yield from items(re.sub(r"\s+", " ", use[1]), [])
    for path in re.finditer(r"\b(?:crate|super)(?:::\w+)+", re.sub(r"\buse [^;]*;", "", code)):
        yield path[0].split("::")


def modules_of(source: Path) -> dict[tuple[str, ...], str]:
    """Return the code of each module of a crate, by its path."""
    modules = {}
    for path in sorted(source.rglob("*.rs")):
        parts = path.relative_to(source).with_suffix("").parts
        if parts[-1] != "tests" and parts[0] != "bin":
            modules[() if parts == ("lib",) else parts] = without_tests(path.read_text())
    return modules


def reexports(modules: dict[tuple[str, ...], str]) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return the module that defines each item that another module re-exports."""
    found = {}
    for module, code in modules.items():
        for use in re.finditer(r"pub(?:\([^)]*\))? use ([\w:]+)::(\{[^}]*\}|\w+);", code):
            base = use[1].split("::")
            path = tuple(base[1:]) if base[0] == "crate" else (*module, *base)
            if path in modules:
                found.update({(*module, name): path for name in re.findall(r"\w+", use[2])})
    return found


def imports_of(source: Path, rooms: set[str]) -> dict[str, set[str]]:
    """Return the modules that each module of a crate imports; submodules belong to theirs."""
    modules = modules_of(source)
    elsewhere = reexports(modules)

    def unit(module: tuple[str, ...]) -> str:
        return "::".join(module[:2] if module[0] in rooms else module[:1])

    found: dict[str, set[str]] = {}
    for module, code in modules.items():
        for path in paths_in(code):
            target = () if path[0] == "crate" else module
            for part in path:
                if part == "super":
                    target = target[:-1]
                elif (*target, part) in modules:
                    target = (*target, part)
                elif (*target, part) in elsewhere:
                    target = elsewhere[*target, part]
                    break
                elif part not in {"crate", "self"}:
                    break
            if module and target and unit(module) != unit(target) and unit(target) not in rooms:
                found.setdefault(unit(module), set()).add(unit(target))
    return found


def cycle_violations(package: dict[str, object]) -> list[str]:
    """Return the cycles of imports between the modules of a package."""
    name = str(package["name"])
    source = Path(str(package["manifest_path"])).parent / "src"
    imports = imports_of(source, ROOMS.get(name, set()))
    try:
        list(TopologicalSorter(imports).static_order())
    except CycleError as error:
        return [f"{name}: modules import each other: {' <- '.join(error.args[1])}"]
    return []


def python_imports(tree: ast.AST, modules: set[str]) -> Iterator[str]:
    """Yield the modules of the package that a Python module imports when it runs."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules else node.module
        yield from python_imports(node, modules)


def python_violations() -> list[str]:
    """Return a cycle of imports between the modules of the Python package, if there is one.

    The package itself imports nothing before a name is asked for.
    """
    root = ROOT / "python"
    paths = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(root.rglob("*.py"))
    }
    imports = {
        module: set(python_imports(ast.parse(path.read_text()), set(paths))) - {module, "brimful"}
        for module, path in paths.items()
    }
    try:
        list(TopologicalSorter(imports).static_order())
    except CycleError as error:
        return [f"brimful in Python: modules import each other: {' <- '.join(error.args[1])}"]
    return []


def main() -> int:
    """Print the violations; return the exit code."""
    members = packages()
    missing = set(MAY_USE) - {str(package["name"]) for package in members}
    found = [f"{name}: the crate is gone" for name in sorted(missing)]
    for package in members:
        found += dependency_violations(package) + source_violations(package)
        found += cycle_violations(package)
    found += python_violations()
    for violation in found:
        print(violation)
    print(f"layers: {len(members)} crates, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
