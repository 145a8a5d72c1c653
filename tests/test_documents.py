"""Every example of README and the guides runs, or this file says why it does not."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from run_document import RUNNABLE, Block, blocks_of, expected_after

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
README = ROOT / "README.md"
GUIDES = [*sorted((ROOT / "docs" / "guide").glob("*.md")), ROOT / "docs" / "scale.md"]
#: README is short enough to be read.
MAX_LINES = 120
#: How blocks begin that do not run, and why.
NOT_RUN = {
    "brimful import mongodb://": "needs a server; test_documents_in_databases.py does the same",
    "brimful run pagerank web.brimful --cluster auto": "needs machines; see tests/cluster",
    "brimful import part-*.txt.gz web": "needs machines; see tests/cluster",
    "make demo ": "builds the package, and runs this test",
    "pip install ": "needs the network; test_bare.py installs a wheel",
    "[project.entry-points": "a part of a package, not a program",
    "# a graph larger than the memory budget": "printed by `make demo`, which takes minutes",
}


def is_left_out(block: Block) -> bool:
    """Return whether `NOT_RUN` says why a block does not run."""
    return block.text.startswith(tuple(NOT_RUN))


def run_document(document: Path, folder: Path, *python: Path | str) -> None:
    """Run the examples of a document; fail with the message of the first failure."""
    left_out = [str(one.line) for one in blocks_of(document.read_text()) if is_left_out(one)]
    done = subprocess.run(
        [*python, TESTS / "run_document.py", document, folder, *left_out],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def unexplained(document: str) -> list[str]:
    """Return the blocks that neither run, nor are output of another, nor are in `NOT_RUN`."""
    blocks = blocks_of(document)
    outputs = [expected_after(document, block) for block in blocks if block.language in RUNNABLE]
    return [
        f"line {block.line}: {block.language or 'a block without a language'}"
        for block in blocks
        # `crates/brimful` has the documents as documentation, so that cargo tests Rust.
        if block.language not in (*RUNNABLE, "rust")
        and block not in outputs
        and not is_left_out(block)
    ]


@pytest.mark.parametrize("document", [README, *GUIDES], ids=lambda path: path.name)
def test_every_block_runs_or_says_why_not(document: Path) -> None:
    text = document.read_text()
    assert unexplained(text) == []
    assert text.count("\n```") % 2 == 0
    if "```rust" in text:
        name = document.relative_to(ROOT).as_posix()
        assert f'"../../../{name}"' in (ROOT / "crates/brimful/src/lib.rs").read_text()


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_the_examples_of_a_guide_run(guide: Path, tmp_path: Path) -> None:
    run_document(guide, tmp_path, sys.executable)


def test_reasons_are_of_blocks_that_there_are() -> None:
    blocks = [block for path in (README, *GUIDES) for block in blocks_of(path.read_text())]
    for start in NOT_RUN:
        assert any(block.text.startswith(start) for block in blocks), start


def test_a_block_that_prints_otherwise_fails(tmp_path: Path) -> None:
    document = tmp_path / "document.md"
    for printed, code in (("3\n", 0), ("4\n", 1), ("...\n", 0)):
        document.write_text(f"```python\nprint(1 + 2)\n```\n\n```text\n{printed}```\n")
        done = subprocess.run(
            [sys.executable, TESTS / "run_document.py", document, tmp_path],
            capture_output=True,
            check=False,
        )
        assert (done.returncode != 0) == bool(code), printed


def test_links_lead_somewhere() -> None:
    for document in (README, ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md"), *GUIDES):
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text()):
            if "://" not in link:
                assert (document.parent / link).exists(), f"{document.name}: {link}"


def test_the_readme_is_short() -> None:
    lines = README.read_text().split("\n")
    assert len(lines) - 1 <= MAX_LINES
    assert max(map(len, lines)) <= 100
