"""Runs the examples of a Markdown document in one folder, in order; needs nothing but Python.

`python` blocks share one namespace, `sh` blocks run in bash with the programs of this interpreter
first on the PATH. A `text` block right after one of them is what it prints, where `...` stands for
anything, and durations and sizes in memory may differ.

Usage: python run_document.py DOCUMENT.md FOLDER [LINE ...]; blocks that begin at LINE do not run.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Languages of blocks that run here; `cargo test --doc` runs those in Rust.
RUNNABLE = ("python", "sh")
#: Figures of a run that another run does not repeat.
_MEASURED = re.compile(
    r"[\d.,]+ ?(ms|s|min|h)\b|[\d.]+[KMG]\b|[\d.]+ (?=min,|median|max)|\([+-]\d+%\)"
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line of its fence from 1."""

    language: str
    text: str
    line: int


def blocks_of(document: str) -> list[Block]:
    """Return the fenced blocks of a Markdown text."""
    found: list[Block] = []
    lines = document.split("\n")
    start = None
    for number, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start = number
        else:
            text = "\n".join(lines[start + 1 : number]) + "\n"
            found.append(Block(lines[start][3:].strip(), text, start + 1))
            start = None
    return found


def expected_after(document: str, block: Block) -> Block | None:
    """Return the `text` block that follows `block` with nothing between but blank lines."""
    lines = document.split("\n")
    following = block.line + block.text.count("\n") + 1
    while following < len(lines) and not lines[following].strip():
        following += 1
    for other in blocks_of(document):
        if other.line == following + 1 and other.language == "text":
            return other
    return None


def same(expected: str, printed: str) -> bool:
    """Return whether `printed` is as expected, figures that are measured aside."""
    checker = doctest.OutputChecker()
    before, after = (_MEASURED.sub("#", text) for text in (expected, printed))
    return checker.check_output(before, after, doctest.ELLIPSIS)


def run(document: Path, folder: Path, left_out: set[int]) -> None:
    """Run the blocks of a document; raise the error of a block, or one for different output."""
    text = document.read_text()
    os.chdir(folder)
    programs = os.path.dirname(sys.executable)
    os.environ["PATH"] = f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    names: dict[str, Any] = {"__name__": "__main__"}
    with _one_ray(text):
        for block in blocks_of(text):
            if block.language not in RUNNABLE or block.line in left_out:
                continue
            printed = _printed(block, names, document)
            expected = expected_after(text, block)
            if expected is not None and not same(expected.text, printed):
                place = f"{document.name}:{block.line}"
                raise SystemExit(f"{place} printed\n{printed}instead of\n{expected.text}")


def _one_ray(text: str) -> contextlib.AbstractContextManager[None]:
    """Return a context with one Ray for all blocks of Python, each of which would start its own."""
    if 'cluster="local:' not in text:
        return contextlib.nullcontext()
    from brimful.cluster.driver import connected

    return connected("local:1")


def _printed(block: Block, names: dict[str, Any], document: Path) -> str:
    """Run a block of a document; return its output."""
    if block.language == "python":
        with contextlib.redirect_stdout(io.StringIO()) as stream:
            exec(compile("\n" * block.line + block.text, str(document), "exec"), names)
        return stream.getvalue()
    command = ["bash", "-euo", "pipefail", "-c", block.text]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        place = f"{document.name}:{block.line}"
        raise SystemExit(f"{place} ended with {done.returncode}: {done.stderr}")
    return done.stdout


if __name__ == "__main__":
    run(Path(sys.argv[1]).resolve(), Path(sys.argv[2]), {int(line) for line in sys.argv[3:]})
