"""`--on-error skip`: lines that are not edges are left out, counted by reason and reported."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import brimful as bf
from brimful.wording import counted
from command import INPUT, USAGE, brimful, refuse, succeed
from test_import import edges_of


def skipped(tmp_path: Path, name: str, content: str, *options: object) -> dict[str, object]:
    """Import with --on-error skip; return figures with the rejections as {reason: ...}."""
    (tmp_path / name).write_text(content)
    graph = tmp_path / "g.brimful"
    assert name in refuse(INPUT, "import", tmp_path / name, graph, *options, "--quiet")
    outcome = succeed(
        "import", tmp_path / name, graph, *options, "--on-error", "skip", "--json", "--quiet"
    )
    figures = outcome.figures
    kinds = {kind["reason"]: kind for kind in figures["rejections"]}
    assert sum(kind["count"] for kind in kinds.values()) == figures["rejected"]
    for kind in kinds.values():
        assert kind["input"].endswith(name)
        assert f"{kind['reason']}, {counted(kind['count'], 'time')}, first at" in outcome.err
        assert f"{name}:{kind['first_line']}: {kind['found']}" in outcome.err
    assert succeed("info", graph, "--json").figures["rejected"] == figures["rejected"]
    return figures | {"kinds": {r: (k["count"], k["first_line"]) for r, k in kinds.items()}}


def test_lines_that_are_no_edges(tmp_path: Path) -> None:
    text = "# head\n1 2\n3\nx y\n2 3\n4\n18446744073709551616 1\n1 2 3\n3 1\n"
    figures = skipped(tmp_path, "a.txt", text)
    assert figures["kinds"] == {
        "missing id": (2, 3),
        "not an integer id": (1, 4),
        "id beyond 64 bits": (1, 7),
        "text after the edge": (1, 8),
    }
    assert (figures["edges"], figures["rejected"]) == (3, 5)
    assert edges_of(tmp_path / "g.brimful") == [(1, 2), (2, 3), (3, 1)]


def test_weights(tmp_path: Path) -> None:
    figures = skipped(tmp_path, "a.txt", "1 2 0.5\n2 3 nan\n3 1\n3 2 inf\n1 3 7\n", "--weight", 3)
    assert figures["kinds"] == {"not a finite weight": (3, 2)}
    assert edges_of(tmp_path / "g.brimful") == [(1, 2, 0.5), (1, 3, 7.0)]


def test_a_header_counts_what_was_rejected(tmp_path: Path) -> None:
    text = "c road\np sp 3 4\na 1 2 5\na 1 9 5\nb 1 2 5\na 3 1 2.5\n"
    figures = skipped(tmp_path, "a.gr", text)
    assert figures["kinds"] == {
        "id outside the header's range": (1, 4),
        "unknown kind of line": (1, 5),
    }
    assert (figures["vertices"], figures["edges"]) == (3, 2)


def test_entries_of_lists(tmp_path: Path) -> None:
    figures = skipped(tmp_path, "a.graph-txt", "3\n1 x 2\n\n0 7 1\n5\n")
    assert figures["kinds"] == {
        "not an integer id": (1, 2),
        "id outside the header's range": (1, 4),
        "list after the last vertex": (1, 5),
    }
    assert edges_of(tmp_path / "g.brimful") == [(0, 1), (0, 2), (2, 0), (2, 1)]


def test_a_list_whose_vertex_is_none_is_left_out_whole(tmp_path: Path) -> None:
    figures = skipped(tmp_path, "a.adjlist", "1 2 3\nx 4 5\n2 3\n7\n")
    assert figures["kinds"] == {"not an integer id": (1, 2)}
    assert (figures["vertices"], figures["edges"]) == (4, 3)


def test_the_first_line_is_the_first_at_any_thread_count(tmp_path: Path) -> None:
    good = "".join(f"{number} {number + 1}\n" for number in range(400_000))
    (tmp_path / "a.txt").write_text(good + "x y\n" + good + "z\n" + good + "x y\n")
    for threads in (1, 2, 4):
        graph = tmp_path / f"{threads}.brimful"
        options = ["--on-error", "skip", "--threads", threads, "--json"]
        figures = succeed("import", tmp_path / "a.txt", graph, *options).figures
        kinds = {kind["reason"]: kind for kind in figures["rejections"]}
        assert kinds["not an integer id"]["count"] == 3
        assert kinds["not an integer id"]["first_line"] == 400_001
        assert kinds["not an integer id"]["found"] == '"x"'


def test_csv_rows(tmp_path: Path) -> None:
    text = "source,target,weight\n1,2,0.5\n1\n2,x,1\n2,3,heavy\n3,,1\n1,2,3,4\n3,1,2\n"
    figures = skipped(tmp_path, "a.csv", text)
    assert figures["kinds"]["wrong number of columns"] == (2, 3)
    assert figures["kinds"]["not an integer id"][0] == 2
    assert figures["kinds"]["not a finite weight"][0] == 1
    assert edges_of(tmp_path / "g.brimful") == [(1, 2, 0.5), (3, 1, 2.0)]


def test_parquet_rows(tmp_path: Path) -> None:
    table = pa.table(
        {
            "source": [1, None, 2, 3],
            "target": [2, 1, None, 1],
            "weight": [1.0, 1.0, 1.0, float("nan")],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    options = [tmp_path / "a.parquet", tmp_path / "g.brimful", "--on-error", "skip", "--json"]
    figures = succeed("import", *options).figures
    kinds = {kind["reason"]: kind for kind in figures["rejections"]}
    assert (kinds["no value"]["count"], kinds["no value"]["first_line"]) == (2, 2)
    assert kinds["not a finite weight"]["first_line"] == 4
    assert edges_of(tmp_path / "g.brimful") == [(1, 2, 1.0)]


def test_python_says_what_was_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.txt").write_text("1 2\nx\n2 3\n")
    with (
        caplog.at_level(logging.WARNING, logger="brimful"),
        bf.read(tmp_path / "a.txt", on_error="skip") as graph,
    ):
        assert graph.edges == 2
    assert "left out: not an integer id, 1 time, first at" in caplog.text
    with pytest.raises(bf.InputError, match='on_error="skip"'):
        bf.read([tmp_path / "a.txt"])
    with pytest.raises(bf.UsageError, match="on_error must be fail or skip, not ignore"):
        bf.read([tmp_path / "a.txt"], on_error="ignore")


def test_headers_and_compression_are_never_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.mtx").write_text("%%MatrixMarket matrix array real general\n2 2\n")
    (tmp_path / "b.txt.gz").write_bytes(b"\x1f\x8b\x08\0broken")
    for name in ("a.mtx", "b.txt.gz"):
        refuse(
            INPUT,
            "import",
            tmp_path / name,
            tmp_path / "g.brimful",
            "--quiet",
            "--on-error",
            "skip",
        )
    assert brimful("import", "a", "g.brimful", "--on-error", "maybe").code == USAGE
