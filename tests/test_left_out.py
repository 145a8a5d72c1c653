"""`--self-loops` and `--duplicates`: the first edge that is left out is said, with its place."""

from __future__ import annotations

import gzip
import logging
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import brimful as bf
from command import USAGE, refuse, succeed, write_edges
from test_formats import ROOT

DROP = ("--self-loops", "drop", "--duplicates", "drop")
#: Edges by line: the first self-loop is on line 4, the first duplicate on line 5 of 7.
EDGES = [(1, 2), (2, 1), (3, 4), (7, 7), (1, 2), (3, 3), (3, 4)]
TEXT = "".join(f"{source} {target}\n" for source, target in EDGES)


def kinds(figures: dict[str, Any]) -> dict[str, tuple[int, str, int, str]]:
    """Return the edges left out as {reason: (count, name of the input, first line, edge)}."""
    assert sum(kind["count"] for kind in figures["left_out"]) == (
        figures["self_loops_dropped"] + figures["duplicates_dropped"]
    )
    return {
        kind["reason"]: (
            kind["count"],
            Path(kind["input"]).name,
            kind["first_line"],
            kind["found"],
        )
        for kind in figures["left_out"]
    }


def expected(name: str, before: int = 0) -> dict[str, tuple[int, str, int, str]]:
    """Return the expected messages for `EDGES` in a file after `before` other lines."""
    return {
        "self-loop": (2, name, before + 4, "7 7"),
        "duplicate edge": (2, name, before + 5, "1 2"),
    }


def imported(tmp_path: Path, *inputs: object, **settings: Any) -> Iterator[dict[str, Any]]:
    """Yield the figures of imports with 1 and 4 threads, in a small and a large budget."""
    for number, (threads, budget) in enumerate([(1, "200M"), (4, "1G")]):
        out = tmp_path / f"{number}.brimful"
        options = [*DROP, "--threads", threads, "--budget", budget, "--json"]
        yield kinds(succeed("import", *inputs, out, *options, **settings).figures)
        for path in sorted(out.iterdir()):
            path.unlink()
        out.rmdir()


def test_text_and_its_compressions(tmp_path: Path) -> None:
    content = ("# head\n\n" + TEXT).encode()
    (tmp_path / "a.txt").write_bytes(content)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(content))
    for name in ("a.txt", "a.txt.gz"):
        for found in imported(tmp_path, tmp_path / name):
            assert found == expected(name, 2)
    for found in imported(tmp_path, "-", stdin=content):
        assert found == expected("-", 2)


def test_several_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("# one edge\n8 9\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
    (tmp_path / "c.txt").write_text("5 5\n8 9\n")
    for found in imported(tmp_path, *(tmp_path / name for name in ("a.txt", "b.txt.gz", "c.txt"))):
        assert found == {
            "self-loop": (3, "b.txt.gz", 4, "7 7"),
            "duplicate edge": (3, "b.txt.gz", 5, "1 2"),
        }


def test_strings(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("u v\na b\nb b\nc d\na b\n")
    (tmp_path / "a.csv").write_text("source,target\na,b\nb,b\nc,d\na,b\n")
    wanted = {"self-loop": (1, 3, "b b"), "duplicate edge": (1, 5, "a b")}
    for name in ("a.txt", "a.csv"):
        for found in imported(tmp_path, tmp_path / name):
            assert found == {
                reason: (count, name, line, edge) for reason, (count, line, edge) in wanted.items()
            }


def test_tables_say_the_line_or_the_row(tmp_path: Path) -> None:
    table = pa.table({"source": [e[0] for e in EDGES], "target": [e[1] for e in EDGES]})
    (tmp_path / "a.csv").write_text("source,target\n" + TEXT.replace(" ", ","))
    pq.write_table(table, tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        for found in imported(tmp_path, tmp_path / name):
            assert found == expected(name, int(name == "a.csv"))
    (tmp_path / "0.csv").write_text("source,target\n8,9\n9,8\n")
    for found in imported(tmp_path, tmp_path / "0.csv", tmp_path / "a.csv"):
        assert found == expected("a.csv", 1)
    content = (tmp_path / "a.csv").read_bytes()
    options = [*DROP, "--format", "csv", "--json"]
    outcome = succeed("import", "-", tmp_path / "s.brimful", *options, stdin=content)
    assert kinds(outcome.figures) == expected("-", 1)


def test_rejected_rows_are_counted(tmp_path: Path) -> None:
    (tmp_path / "0.csv").write_text("source,target\n8,9\n9,8\n")
    (tmp_path / "a.csv").write_text("source,target\n1,2\nx,1\n,\n3,3\n1,2\n")
    options = [*DROP, "--on-error", "skip", "--json"]
    inputs = [tmp_path / "0.csv", tmp_path / "a.csv"]
    figures = succeed("import", *inputs, tmp_path / "g.brimful", "--ids", "int", *options).figures
    assert kinds(figures) == {
        "self-loop": (1, "a.csv", 5, "3 3"),
        "duplicate edge": (1, "a.csv", 6, "1 2"),
    }
    first = figures["rejections"][0]
    assert (Path(first["input"]).name, first["first_line"]) == ("a.csv", 3)


def test_pairs_say_their_number(tmp_path: Path) -> None:
    content = b"".join(struct.pack("<II", *edge) for edge in EDGES)
    (tmp_path / "a.u32").write_bytes(content)
    (tmp_path / "b.u32.gz").write_bytes(gzip.compress(content))
    for name in ("a.u32", "b.u32.gz"):
        for found in imported(tmp_path, tmp_path / name):
            assert found == expected(name)
    (tmp_path / "0.u32").write_bytes(struct.pack("<II", 8, 9))
    for found in imported(tmp_path, tmp_path / "0.u32", tmp_path / "b.u32.gz"):
        assert found == expected("b.u32.gz")
    for found in imported(tmp_path, "-", "--format", "u32pairs", stdin=content):
        assert found == expected("-")


def test_graphalytics_and_webgraph(tmp_path: Path) -> None:
    (tmp_path / "g.v").write_text("".join(f"{vertex}\n" for vertex in range(1, 10)))
    (tmp_path / "g.e").write_text(TEXT)
    (tmp_path / "g.properties").write_text("graph.g.directed = true\n")
    for found in imported(tmp_path, tmp_path / "g.v"):
        assert found == expected("g.e")
    content = (ROOT / "fuzz" / "corpus" / "webgraph" / "0").read_bytes()
    properties, graph = content.split(b"\n\n", 1)
    (tmp_path / "w.graph").write_bytes(graph)
    (tmp_path / "w.properties").write_bytes(properties)
    succeed("import", tmp_path / "w.graph", tmp_path / "w.brimful", "--quiet")
    succeed("export", tmp_path / "w.brimful", tmp_path / "w.parquet", "--quiet")
    columns = [column.to_pylist() for column in pq.read_table(tmp_path / "w.parquet").columns]
    # The format lists arcs by source, then by target.
    arcs = sorted(zip(*columns, strict=True))
    seen, again = set[frozenset[int]](), list[int]()
    for number, arc in enumerate(arcs, start=1):
        if frozenset(arc) in seen:
            again.append(number)
        seen.add(frozenset(arc))
    for found in imported(tmp_path, tmp_path / "w.graph", "--undirected"):
        loops = [number for number, (source, target) in enumerate(arcs, 1) if source == target]
        if loops:
            assert found["self-loop"][2] == loops[0]
        assert bool(again) == ("duplicate edge" in found)
        if again:
            assert found["duplicate edge"][1:3] == ("w.graph", again[0])


def test_a_summary_and_standard_error_say_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    outcome = succeed("import", tmp_path / "a.txt", tmp_path / "g.brimful", *DROP)
    assert "left out: 2 self-loops, 2 duplicates" in outcome.out
    for options in ([], ["--quiet"]):
        out = tmp_path / f"{len(options)}.brimful"
        err = succeed("import", tmp_path / "a.txt", out, *DROP, *options).err
        assert f"left out: self-loop, 2 times, first at {tmp_path / 'a.txt'}:4: 7 7" in err
        assert f"left out: duplicate edge, 2 times, first at {tmp_path / 'a.txt'}:5: 1 2" in err
    merged = ("--self-loops", "drop", "--duplicates", "sum")
    told = succeed("import", tmp_path / "a.txt", tmp_path / "m.brimful", *merged)
    assert "  left out: 2 self-loops\n  merged: 2 duplicates\n" in told.out
    kept = succeed("import", tmp_path / "a.txt", tmp_path / "k.brimful", "--json")
    assert kept.figures["left_out"] == [] and "left out" not in kept.err


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        ('"n\nl","n\nl"\na,b\n', [r'2: "n\nl" "n\nl"']),
        ("a,b\nb c,b c\na,b\n", ['3: "b c" "b c"', '4: "a" "b"']),
        ('a,"b ""\x85"\na,"b ""\x85"\n', [r'3: "a b \"\x85"']),
    ],
)
def test_strings_are_quoted_in_sentences(tmp_path: Path, rows: str, shown: list[str]) -> None:
    (tmp_path / "a.csv").write_text(f"source,target\n{rows}")
    words = "import", tmp_path / "a.csv", tmp_path / "g.brimful", *DROP, "--quiet"
    lines = succeed(*words).err.splitlines()
    assert [line.partition("a.csv:")[2] for line in lines] == shown


def test_generated_graphs_have_counts_alone(tmp_path: Path) -> None:
    figures = succeed("generate", "rmat", tmp_path / "g.brimful", "--scale", 8, *DROP, "--json")
    assert figures.figures["duplicates_dropped"] > 0 and figures.figures["left_out"] == []


def test_python_says_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    table = pa.table({"source": [e[0] for e in EDGES], "target": [e[1] for e in EDGES]})
    policies: dict[str, Any] = {"self_loops": "drop", "duplicates": "min"}
    for make, name in [
        (lambda: bf.read(tmp_path / "a.txt", **policies), str(tmp_path / "a.txt")),
        (lambda: bf.Graph.from_arrow(table, **policies), "the table"),
    ]:
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="brimful"), make() as graph:
            assert graph.edges == 3
        assert f"left out: self-loop, 2 times, first at {name}:4: 7 7" in caplog.text
        assert f"merged: duplicate edge, 2 times, first at {name}:5: 1 2" in caplog.text


def test_a_run_that_lacks_weights_names_the_columns_that_were_ignored(tmp_path: Path) -> None:
    table, graph = tmp_path / "edges.csv", tmp_path / "graph.brimful"
    table.write_text("source,target,color,when\n1,2,red,5\n2,3,blue,6\n")
    succeed("import", table, graph, "--quiet")
    says = "; the import ignored color, when, and --weight of an import takes one as weights"
    for words in (
        ("run", "sssp", graph, "--source", 1, "--weighted"),
        ("run", "sssp", graph, "--source", 1, "--weighted", "--store", "bytes"),
        ("run", "random_walks", graph, "--weighted"),
        ("plan", graph, "sssp", "--source", 1, "--weighted"),
        ("path", graph, 1, 3, "--weighted"),
        ("run", "sssp", graph, "--source", 1, "--weighted", "--where", "vertex > 0"),
    ):
        sentence = refuse(USAGE, *words, "--quiet")
        assert str(graph) in sentence and sentence.endswith(says)
    with bf.Graph.open(graph) as opened:
        labels = bf.connected_components(opened)
        for use in (
            lambda: opened.neighbors(1, weights=True),
            lambda: opened.neighbors_many([1], weights=True),
            lambda: bf.modularity(labels, weighted=True),
            lambda: bf.conductance(labels, weighted=True),
        ):
            with pytest.raises(bf.UsageError) as caught:
                use()
            assert str(caught.value).endswith(says.replace("--weight", "weight="))
    other = tmp_path / "other.brimful"
    succeed("import", write_edges(tmp_path / "e.txt", [(1, 2)]), other, "--quiet")
    sentence = refuse(USAGE, "run", "sssp", other, "--source", 1, "--weighted")
    assert sentence.endswith("import it with a weight column or run without --weighted")
