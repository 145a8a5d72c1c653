"""Imports of small texts: their figures, and their refusals."""

from __future__ import annotations

from pathlib import Path

from command import USAGE, refuse, succeed


def imported(
    tmp_path: Path, name: str, content: str | bytes, *options: object
) -> dict[str, object]:
    """Import a file of `content`; return the figures."""
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    graph = tmp_path / "g.brimful"
    return succeed("import", path, graph, *options, "--json", "--quiet").figures


def asked(tmp_path: Path, name: str, content: str, *options: object, code: int = USAGE) -> str:
    """Import a file of `content`, insist on a refusal that leaves nothing; return the sentence."""
    (tmp_path / name).write_text(content)
    graph = tmp_path / "g.brimful"
    sentence = refuse(code, "import", tmp_path / name, graph, *options, "--quiet")
    assert name in sentence
    assert not graph.exists()
    return sentence
