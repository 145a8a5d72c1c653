"""Columns of inputs: chosen, doubtful and shown columns, and foreign formats."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import brimful as bf
from command import INPUT, USAGE, refuse, succeed
from test_import import edges_of
from text_imports import asked, imported


def columns(source: str, target: str, weight: str | None = None, **others: object) -> object:
    """Return the lines about columns."""
    return {
        "source": source,
        "target": target,
        "weight": weight,
        "ignored": [],
        "header": True,
        "delimiter": None,
    } | others


@pytest.mark.parametrize(
    ("name", "content", "edges", "shown"),
    [
        (
            "a.csv",
            "id,src,dst,w\n9,1,2,.5\n8,2,3,4\n",
            [(1, 2, 0.5), (2, 3, 4.0)],
            columns("src", "dst", "w", ignored=["id"], delimiter=","),
        ),
        (
            "gephi.csv",
            "Source,Target,Type,Id,Label,Weight\n1,2,Directed,0,,2.5\n2,1,Directed,1,x,1\n",
            [(1, 2, 2.5), (2, 1, 1.0)],
            columns("Source", "Target", "Weight", ignored=["Type", "Id", "Label"], delimiter=","),
        ),
        ("a.csv", "1,2\n3,4\n", [(1, 2), (3, 4)], columns("1", "2", header=False, delimiter=",")),
        ("a.csv", "a,b\n3,4\n", [(3, 4)], columns("a", "b", delimiter=",")),
        ("a.csv", "to;from\n3;4\n", [(4, 3)], columns("from", "to", delimiter=";")),
        ("a.csv", "a,b,weight\n3,4,5\n", [(3, 4, 5.0)], columns("a", "b", "weight", delimiter=",")),
        (
            "a.tsv",
            "follower\tfollowee\nann\tbob\n",
            [("ann", "bob")],
            columns("follower", "followee", delimiter="\t"),
        ),
        ("a.tsv", "1\t2\n", [(1, 2)], columns("1", "2", header=False, delimiter="\t")),
        ("a.txt", "# x\nu v\na b\n", [("a", "b")], columns("u", "v")),
        ("a.txt", "one two\n1 2\n", [(1, 2)], columns("one", "two")),
        (
            "a.csv",
            '"source"|"target"\r\n"1"|"2"\r\n\r\n3|4',
            [(1, 2), (3, 4)],
            columns("source", "target", delimiter="|"),
        ),
        (
            "a.csv",
            "\ufeff# made today\n% so\nsource,target\n1,2\n",
            [(1, 2)],
            columns("source", "target", delimiter=","),
        ),
        ("a.txt", "\ufeff1 2\n", [(1, 2)], columns("1", "2", header=False)),
    ],
)
def test_what_is_beyond_doubt(
    tmp_path: Path, name: str, content: str, edges: list[tuple[object, ...]], shown: object
) -> None:
    assert imported(tmp_path, name, content)["columns"] == shown
    assert edges_of(tmp_path / "g.brimful") == edges
    assert succeed("info", tmp_path / "g.brimful", "--json").figures["columns"] == shown


def test_the_first_line_of_a_konect_file_is_read(tmp_path: Path) -> None:
    edges = tmp_path / "out.small"
    for number, (kind, options, directed) in enumerate(
        [
            ("sym", (), False),
            ("sym", ("--directed",), True),
            ("asym", (), True),
            ("asym", ("--undirected",), False),
        ]
    ):
        edges.write_text(f"% {kind} unweighted\n% 2 3 3\n1 2\n2 3\n")
        out = tmp_path / f"{number}.brimful"
        figures = succeed("import", edges, out, *options, "--json").figures
        assert (figures["directed"], figures["edges"]) == (directed, 2)
    edges.write_text("% bip weighted\n1 1 5\n1 2 5\n")
    sentence = refuse(INPUT, "import", edges, tmp_path / "bip.brimful")
    assert f"{edges}:1" in sentence and "make the ids of the columns different" in sentence
    # Other comments say nothing.
    edges.write_text("% bip and other words\n% sym\n1 2\n")
    assert succeed("import", edges, tmp_path / "c.brimful", "--json").figures["directed"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "alice,bob\n7,8\ncarol,dave\neve,fay\n", ["alice, bob", "--no-header"]),
        ("a.txt", "alice bob\n7 8\ncarol dave\neve fay\n", ["alice, bob", "--no-header"]),
        ("a.csv", "alice,bob\nbob,carol\n", ["alice, bob", "--header", "--no-header"]),
        ("a.txt", "alice bob\nbob carol\n", ["alice, bob", "--header", "--no-header"]),
        ("a.csv", "id,a,b\n1,2,3\n", ["id, a, b", "--source COL --target COL", "--ignore-extra"]),
        ("a.csv", "source,target,from,to\n1,2,3,4\n", ["more than one pair"]),
        ("a.csv", "source,target,w,weight\n1,2,3,4\n", ["--weight COL", "w, weight"]),
        ("soc.txt", "# FromNodeId ToNodeId Time\n1 2 77\n2 3 78\n", ["1, 2, 77", "--weight COL"]),
        ("out.konect", "% asym\n1 2 1 1082008561\n", ["1, 2, 1, 1082008561", "--ignore-extra"]),
        ("a.csv", "1;2,3\n4;5,6\n", ["--delimiter"]),
    ],
)
def test_what_is_not_is_asked(tmp_path: Path, name: str, content: str, words: list[str]) -> None:
    sentence = asked(tmp_path, name, content)
    for word in words:
        assert word in sentence, sentence


@pytest.mark.parametrize(
    ("content", "options", "edges"),
    [
        ("1 2 3\n4 5 6\n", ["--weight", 3], [(1, 2, 3.0), (4, 5, 6.0)]),
        ("1 2 3\n4 5 6\n", ["--ignore-extra"], [(1, 2), (4, 5)]),
        ("1 2 3 9\n4 5\n", ["--ignore-extra"], [(1, 2), (4, 5)]),
        ("1 2 3 9\n4 5 6 9\n", ["--weight", 3, "--ignore-extra"], [(1, 2, 3.0), (4, 5, 6.0)]),
        ("1 2 3\n4 5 6\n", ["--source", 3, "--target", 1], [(3, 1), (6, 4)]),
        ("a b c\nd e f\n", ["--source", 3, "--target", 1, "--no-header"], [("c", "a"), ("f", "d")]),
        ("a b c\nd e f\n", ["--source", "c", "--target", "a"], [("f", "d")]),
        ("a b\nd e\n", ["--no-header"], [("a", "b"), ("d", "e")]),
        ("a b\nd e\n", ["--header"], [("d", "e")]),
        ("u v\nd e\n", ["--no-header"], [("d", "e"), ("u", "v")]),
    ],
)
@pytest.mark.parametrize("kind", ["txt", "csv", "tsv"])
def test_what_the_user_says(
    tmp_path: Path, kind: str, content: str, options: list[object], edges: list[object]
) -> None:
    if kind != "txt":
        if "4 5\n" in content:
            return
        content = content.replace(" ", "," if kind == "csv" else "\t")
    imported(tmp_path, f"a.{kind}", content, *options)
    assert edges_of(tmp_path / "g.brimful") == edges


def test_what_the_user_says_and_is_not_there(tmp_path: Path) -> None:
    content = "a,b,c\n1,2,3\n"
    for options in (["--source", "x", "--target", "b"], ["--weight", 4]):
        assert "no column" in asked(tmp_path, "a.csv", content, *options, code=INPUT)
    asked(tmp_path, "a.csv", content, "--source", "a", "--target", "a")
    content = "source,target,weight\n1,2,3\n"
    for name in ("a.csv", "a.txt"):
        sentence = asked(
            tmp_path,
            name,
            content.replace(",", "," if "csv" in name else " "),
            "--weight",
            "wieght",
            code=INPUT,
        )
        assert "no column 'wieght'" in sentence and "source, target, weight" in sentence
        assert sentence.endswith("did you mean 'weight'?")
    table = pa.table({"follower": [1], "followee": [2], "strength": [2.0]})
    pq.write_table(table, tmp_path / "a.parquet")
    arguments = ["import", tmp_path / "a.parquet", tmp_path / "g.brimful", "--quiet"]
    sentence = refuse(INPUT, *arguments, "--source", "folower", "--target", "followee")
    assert sentence.endswith("did you mean 'follower'?")
    assert "did you mean" not in refuse(INPUT, *arguments, "--weight", "quite another")
    with pytest.raises(bf.InputError, match="did you mean 'follower'"):
        bf.Graph.from_arrow(table, source="folower", target="followee")
    arguments = ["import", tmp_path / "a.csv", tmp_path / "g.brimful", "--quiet"]
    assert "not 'long'" in refuse(USAGE, *arguments, "--delimiter", "long")
    arguments += ["--format", "mtx", "--weight", 3]
    assert "the input is mtx" in refuse(USAGE, *arguments)
    asked(tmp_path, "a.txt", "1 2\n", "--format", "edgelist", "--delimiter", ",")
    assert "one, two" in asked(tmp_path, "a.txt", "one two three\n1 2 3\n")


def test_an_option_of_columns_makes_a_kept_graph_anew(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1 2 3\n4 5 6\n")
    with bf.read(tmp_path / "a.txt", weight=3) as graph:
        assert (graph.weighted, graph.info()["columns"]) == (
            True,
            columns("1", "2", "3", header=False),
        )
    with bf.read(tmp_path / "a.txt", ignore_extra=True) as graph:
        assert not graph.weighted
    with bf.read(tmp_path / "a.txt", source="3", target=1) as graph:
        assert sorted(graph.to_arrow().to_pydict()["source"]) == [3, 6]


def test_tables_of_python(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [9], "SRC": [1], "Dst": [2], "Weight": [0.5]})
    shown = columns("SRC", "Dst", "Weight", ignored=["a"], header=None)
    frame.write_parquet(tmp_path / "a.parquet")
    for made in (bf.read(frame), bf.Graph.from_arrow(frame), bf.read(tmp_path / "a.parquet")):
        with made as graph:
            assert graph.info()["columns"] == shown
            assert graph.to_arrow().to_pydict() == {"source": [1], "target": [2], "weight": [0.5]}
    vague = pl.DataFrame({"a": [9], "b": [1], "c": [2]})
    for call in (bf.read, bf.Graph.from_arrow):
        with pytest.raises(bf.UsageError, match="a, b, c"):
            call(vague)
    with bf.Graph.from_arrow(vague, source="b", target=3) as graph:
        assert graph.info()["columns"] == columns("b", "c", ignored=["a"], header=None)
    with pytest.raises(bf.UsageError, match="apply to text"):
        bf.read(frame, header=True)


def test_a_run_on_a_file_in_doubt_points_to_import(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1 2 3\n")
    sentence = refuse(USAGE, "run", "pagerank", tmp_path / "a.txt", "--quiet")
    assert "1, 2, 3" in sentence and "options of 'brimful import" in sentence


def test_the_summary_shows_the_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id;src;dst;w\n9;1;2;.5\n")
    out = succeed("import", tmp_path / "a.csv", tmp_path / "g.brimful").out
    line = "columns: source src; target dst; weight w; ignored id; a header; delimiter ;"
    assert line in out
    told = succeed("info", tmp_path / "g.brimful").out
    # Sizes below 1 KiB are not given twice.
    assert "delimiter" in told and "bytes)" not in told


def test_edges_to_undeclared_vertices_of_graphalytics(tmp_path: Path) -> None:
    for far in (0, 2**40):
        # Far ids are too sparse for a bitmap; there the line is not known.
        (tmp_path / "g.v").write_text("".join(f"{n + far * n}\n" for n in (1, 2, 3)))
        edges = [(1, 2), (2, 3), (3, 1)]
        text = "".join(f"{s + far * s} {t + far * t}\n" for s, t in edges)
        (tmp_path / "g.e").write_text(text + f"1 {9 + far * 9}\n" if not far else text + "7 7\n")
        graph = tmp_path / "g.brimful"
        sentence = refuse(INPUT, "import", tmp_path / "g.e", graph, "--quiet")
        if far:
            assert "the vertex 7, which the .v file does not have" in sentence
            continue
        assert 'g.e:4:3: expected a vertex that the .v file has, found "9"' in sentence
        skip = ["--on-error", "skip", "--json", "--quiet"]
        figures = succeed("import", tmp_path / "g.e", graph, *skip).figures
        assert (figures["vertices"], figures["edges"], figures["rejected"]) == (3, 3, 1)
        assert figures["rejections"][0]["reason"] == "vertex that is not declared"
        assert figures["rejections"][0]["first_line"] == 4
        shutil.rmtree(graph)


def test_weights_of_graphalytics_without_properties_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "g.v").write_text("1\n2\n")
    (tmp_path / "g.e").write_text("1 2 7\n")
    graph = tmp_path / "g.brimful"
    assert "--weight COL" in refuse(USAGE, "import", tmp_path / "g.e", graph, "--quiet")
    succeed("import", tmp_path / "g.e", graph, "--weight", 3, "--quiet")
    assert edges_of(graph) == [(1, 2, 7.0)]
    (tmp_path / "g.properties").write_text("graph.g.edge-properties.names = weight\n")
    options = ["--weight", 3, "--quiet"]
    assert "properties" in refuse(
        USAGE, "import", tmp_path / "g.e", tmp_path / "h.brimful", *options
    )


@pytest.mark.parametrize("count", [2, 4])
def test_directed_metis_lists_are_arcs(tmp_path: Path, count: int) -> None:
    (tmp_path / "a.metis").write_text(f"3 {count}\n2 3\n3\n1\n")
    graph = tmp_path / "g.brimful"
    figures = succeed("import", tmp_path / "a.metis", graph, "--directed", "--json").figures
    assert (figures["edges"], figures["directed"]) == (4, True)
    assert edges_of(graph) == [(1, 2), (1, 3), (2, 3), (3, 1)]
    (tmp_path / "b.metis").write_text("3 3\n2 3\n3\n1\n")
    arguments = ["import", tmp_path / "b.metis", tmp_path / "h.brimful", "--directed", "--quiet"]
    assert "3 or 6 arcs" in refuse(INPUT, *arguments)
