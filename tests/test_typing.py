"""What a type checker says of calls: options are words of a few."""

from __future__ import annotations

from pathlib import Path

import pytest

RIGHT = """
import brimful as bf

def right(graph: bf.Graph) -> None:
    bf.pagerank(graph, variant="unnormalized", mode="async", precision="f32", layout="coupled")
    bf.hits(graph, values="hub")
    bf.degrees(graph, direction="both")
    bf.bfs(graph, 1, values="parent", store="bytes", lists="disk")
    ids: list[int] = graph.neighbors(1)
    ids, weights = graph.neighbors(1, weights=True)
    graph.neighbors_many(ids, direction="in")
    total: float = sum(weights)
    for vertex, value in bf.pagerank(graph).items():
        print(vertex, value, total)
"""
WRONG = (
    'bf.pagerank(graph, variant="normalised")',
    'bf.pagerank(graph, mode="asynchronous")',
    'bf.pagerank(graph, precision="f16")',
    'bf.pagerank(graph, layout="tiles")',
    'bf.pagerank(graph, method="powers")',
    'bf.pagerank(graph, lists="ram")',
    'bf.hits(graph, values="hubs")',
    'bf.degrees(graph, direction="outward")',
    'bf.bfs(graph, 1, values="parents")',
    'graph.neighbors_many([1], direction="both")',
    'bf.read("x", duplicates="merge")',
    'bf.read("x", on_error="ignore")',
    'bf.read("x", format="edge-list")',
    "x: list[int] = graph.neighbors(1, weights=True)",
)


@pytest.mark.slow
def test_options_are_literals(tmp_path: Path) -> None:
    from mypy import api

    root = Path(__file__).parents[1]
    for name, text in (
        ("right.py", RIGHT),
        ("wrong.py", f"import brimful as bf\ngraph: bf.Graph\n{chr(10).join(WRONG)}\n"),
    ):
        (tmp_path / name).write_text(text)
    options = [
        "--config-file",
        str(root / "pyproject.toml"),
        "--cache-dir",
        str(tmp_path / "cache"),
    ]
    out, err, code = api.run([*options, str(tmp_path / "right.py")])
    assert code == 0, out + err
    out, err, code = api.run([*options, str(tmp_path / "wrong.py")])
    refused = {int(line.split(":")[1]) - 3 for line in out.splitlines() if "error:" in line}
    assert refused == set(range(len(WRONG))), out + err
