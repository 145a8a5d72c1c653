"""Columns of inputs: chosen, doubtful and shown columns, and foreign formats."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import brimful as bf
from command import INPUT, USAGE, brimful, refuse, succeed
from test_import import edges_of


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


def test_the_column_type_of_gephi_decides_the_direction(tmp_path: Path) -> None:
    head, edge = "Source,Target,Type,Weight\n", "1,2,{},2.5\n"
    undirected = head + edge.format("Undirected") * 2
    mixed = undirected + edge.format("Directed")
    other = mixed.replace("Directed", "FRIEND").replace("Undirected", "ENEMY")
    sentence = asked(tmp_path, "a.csv", mixed)
    assert "its column Type has Directed and Undirected edges" in sentence
    for content, options, directed in (
        (undirected, [], False),
        (undirected, ["--directed"], True),
        (mixed, ["--directed"], True),
        (head + edge.format("directed"), [], True),
        (other, [], True),
    ):
        assert imported(tmp_path, "a.csv", content, *options)["directed"] == directed
        assert set(edges_of(tmp_path / "g.brimful")) == {(1, 2, 2.5)}
        shutil.rmtree(tmp_path / "g.brimful")


@pytest.mark.parametrize("kind", ["Directed", "Undirected"])
def test_a_late_edge_of_the_other_direction_is_invalid(tmp_path: Path, kind: str) -> None:
    rows = "".join(f"{row},{row + 1},{kind}\n" for row in range(70))
    other = {"Directed": "Undirected", "Undirected": "Directed"}[kind]
    late = f"Source,Target,Type\n{rows}100,200,{other}\n"
    sentence = asked(tmp_path, "late.csv", late, code=INPUT)
    assert f"late.csv:72:9: expected {kind}, as in the first records" in sentence
    figures = imported(tmp_path, "late.csv", late, "--on-error", "skip")
    assert (figures["edges"], figures["rejected"]) == (70, 1)
    assert figures["directed"] == (kind == "Directed")


def write_types(path: Path, kinds: Sequence[str | None], *, dictionary: bool = False) -> pa.Table:
    """Write a table of edges with the column `Type` in the format that the suffix names."""
    rows = len(kinds)
    table = pa.table(
        {
            "Source": list(range(rows)),
            "Target": list(range(1, rows + 1)),
            "Type": pa.array(kinds, pa.string()),
        }
    )
    if dictionary:
        table = table.set_column(2, "Type", table["Type"].dictionary_encode())
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=40)
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
            out.write_table(table, max_chunksize=40)
    return table


@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_the_column_type_of_tables_decides_the_direction(
    tmp_path: Path, suffix: str, dictionary: bool
) -> None:
    path, graph = tmp_path / f"t{suffix}", tmp_path / "g.brimful"
    for kinds, options, directed in (
        (["Undirected"] * 100, [], False),
        ([" undirected"] * 100, [], False),
        (["Undirected"] * 100, ["--directed"], True),
        (["Directed"] * 100, [], True),
        (["Directed"] * 100, ["--undirected"], False),
        (["Directed", "Undirected"], ["--directed"], True),
        (["FRIEND", "Undirected"], [], True),
        ([None, "Undirected"], [], True),
        (["Undirected"] * 70 + ["Directed"], ["--directed"], True),
    ):
        table = write_types(path, kinds, dictionary=dictionary)
        figures = succeed("import", path, graph, *options, "--json", "--quiet").figures
        assert (figures["directed"], figures["edges"]) == (directed, len(kinds)), kinds
        assert figures["columns"]["ignored"] == ["Type"]
        shutil.rmtree(graph)
        undirected = {"--directed": False, "--undirected": True}.get(*options or [""])
        with bf.Graph.from_arrow(table, undirected=undirected) as made:
            assert made.directed == directed
    for kinds, code, words in (
        (["Directed", "Undirected"], USAGE, "its column Type has Directed and Undirected edges"),
        (
            ["Undirected"] * 70 + ["Directed"] * 2,
            INPUT,
            f"row 71 of {path}: expected Undirected in its column Type",
        ),
        (["Directed"] * 64 + [None], INPUT, "found nothing"),
    ):
        table = write_types(path, kinds, dictionary=dictionary)
        assert words in refuse(code, "import", path, graph, "--quiet")
        with pytest.raises(bf.BrimfulError, match="column Type"):
            bf.Graph.from_arrow(table)
    assert not graph.exists()


def test_tables_of_one_graph_have_one_direction(tmp_path: Path) -> None:
    one, other = tmp_path / "1.parquet", tmp_path / "2.parquet"
    write_types(one, ["Undirected"] * 3)
    write_types(other, ["Directed"] * 3)
    sentence = refuse(INPUT, "import", one, other, tmp_path / "g.brimful", "--quiet")
    assert f"{other}: its edges are directed and those of {one} are undirected" in sentence
    write_types(other, ["Undirected"] * 3)
    figures = succeed("import", one, other, tmp_path / "g.brimful", "--json", "--quiet").figures
    assert not figures["directed"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_directions_in_columns_of_every_kind_of_text(kind: pa.DataType) -> None:
    ends = {"source": [0, 1], "target": [1, 2]}
    for kinds, directed in ((["Undirected"] * 2, False), (["Undirected", None], True)):
        table = pa.table(ends | {"type": pa.array(kinds, kind)})
        with bf.Graph.from_arrow(table) as made:
            assert made.directed == directed
    with pytest.raises(bf.UsageError, match="Directed and Undirected"):
        bf.Graph.from_arrow(pa.table(ends | {"type": pa.array(["Undirected", "Directed"], kind)}))


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


def test_quoted_line_ends_are_no_edges(tmp_path: Path) -> None:
    row = 'NUMBER,NEXT,"hello\n7777777,8888888,world ""x"""\n'
    rows = "".join(row.replace("NUMBER", str(n)).replace("NEXT", str(n + 1)) for n in range(60_000))
    figures = imported(tmp_path, "a.csv", "source,target,comment\n" + rows)
    assert (figures["edges"], figures["vertices"]) == (60_000, 60_001)
    # Every second field of a record ends in another line.
    rows = "".join(f'"a\n{n}","b\n{n}"\r\n' for n in range(100_000))
    (tmp_path / "b.csv").write_text("source,target\n" + rows, newline="")
    graph = tmp_path / "b.brimful"
    figures = succeed("import", tmp_path / "b.csv", graph, "--json", "--quiet").figures
    assert (figures["edges"], figures["vertices"]) == (100_000, 200_000)


def test_the_line_of_a_record_is_that_of_the_file(tmp_path: Path) -> None:
    text = 'source,target,comment\n1,2,"a\n\nb"\n3,x,\n'
    assert "a.csv:5:3: expected an integer vertex id" in asked(tmp_path, "a.csv", text, code=INPUT)
    text = 'source,target,comment\n1,2,"a\n\nb"\n3,4,"open\n5,6,\n'
    sentence = asked(tmp_path, "a.csv", text, code=INPUT)
    assert "a.csv:5:1: expected a quote that closes the field" in sentence
    (tmp_path / "0.csv").write_text("source,target\n1,2\n")
    (tmp_path / "1.csv").write_text("source,target\n1,2\n\n2,3\nx,1\n")
    inputs = [tmp_path / "0.csv", tmp_path / "1.csv"]
    assert "1.csv:5:1:" in refuse(INPUT, "import", *inputs, tmp_path / "g.brimful", "--quiet")
    for number, ids in enumerate((["1"], ["1", "x"])):
        table = pa.table({"source": ids, "target": ids})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    inputs = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    sentence = refuse(INPUT, "import", *inputs, tmp_path / "g.brimful", "--ids", "int", "--quiet")
    assert "1.parquet: row 2, column" in sentence and "0.parquet" not in sentence


def test_text_that_is_no_utf_8(tmp_path: Path) -> None:
    for name, separator in (("a.csv", b","), ("a.txt", b" ")):
        lines = [b"source%btarget", b"ann%bbob", b"carol%bd\xff"]
        (tmp_path / name).write_bytes(b"\n".join(line % separator for line in lines))
        sentence = refuse(INPUT, "import", tmp_path / name, tmp_path / "g.brimful", "--quiet")
        assert f"{name}:3:7: expected a vertex id in UTF-8" in sentence
    # What is not read may be anything.
    imported(tmp_path, "b.csv", b"source,target,x\n1,2,\xff\n")


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_compressed_and_streamed(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    content = "source,target\n" + "".join(f"{n},{n * 7}\n" for n in range(200_000))
    packed = pack(content.encode())
    graph = tmp_path / "g.brimful"
    figures = succeed("import", "-", graph, "--format", "csv", "--json", stdin=packed).figures
    assert (figures["edges"], figures["lines"]) == (200_000, 200_001)


def test_long_records_and_wide_ones(tmp_path: Path) -> None:
    long = "x" * (2 << 20)
    assert ":1:" in asked(tmp_path, "a.csv", long, code=INPUT)
    assert ":3:" in asked(tmp_path, "a.csv", f"source,target\n1,2\n3,{long}\n4,5\n", code=INPUT)
    assert ":3:" in asked(tmp_path, "a.csv", f'source,target\n1,2\n3,"{long}"\n', code=INPUT)
    names = ",".join(["source", "target", *(f"c{n}" for n in range(998))])
    row = ",".join(str(n) for n in range(1000))
    figures = imported(tmp_path, "w.csv", f"{names}\n{row}\n{row}\n")
    assert figures["edges"] == 2
    graph = tmp_path / "g.brimful"
    assert len(succeed("info", graph, "--json").figures["columns"]["ignored"]) == 998
    name = "n" * 10_000
    rows = "".join(f"{name}{n},{name}{n + 1}\n" for n in range(500))
    text = "source,target\n" + rows
    (tmp_path / "n.csv").write_text(text)
    arguments = ["import", tmp_path / "n.csv", tmp_path / "n.brimful", "--json", "--quiet"]
    assert succeed(*arguments).figures["vertices"] == 501
    shutil.rmtree(graph)
    too_long = "n" * 65_537
    text = f"source,target\na,b\nc,{too_long}\n"
    assert "at most 65536 bytes" in asked(tmp_path, "l.csv", text, "--ids", "string", code=INPUT)


def zipped(member: str) -> bytes:
    """Return a zip archive with one member."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(member, "x")
    return file.getvalue()


GRAPH = nx.DiGraph([(1, 2, {"weight": 2.0}), (2, 3, {"weight": 0.5})])


def text_of(write: object) -> bytes:
    assert callable(write)
    file = io.BytesIO()
    write(GRAPH, file)
    return file.getvalue()


FOREIGN = {
    "GML": text_of(nx.write_gml),
    "Pajek": text_of(nx.write_pajek),
    "DGS": b'DGS004\n"g" 0 0\nan 1\nan 2\nae 12 1 > 2\n',
    "JSON lines": b'{"source":1,"target":2}\n{"source":2,"target":3}\n',
    "JSON": b'[{"source": 1, "target": 2}]',
    "JSON of Cytoscape": json.dumps(nx.cytoscape_data(GRAPH)).encode(),
    "JSON of nodes and links": json.dumps(nx.node_link_data(GRAPH, edges="links")).encode(),
    "GraphSON": b'{"id":1,"label":"v","outE":{"knows":[{"id":7,"inV":2}]}}\n',
    "NumPy npz": zipped("indices.npy"),
    "an Excel workbook": zipped("[Content_Types].xml"),
    "a Python pickle": pickle.dumps(GRAPH),
    "a NumPy array": b"\x93NUMPY\x01\x00",
    "text in UTF-16": "1 2\n".encode("utf-16"),
    "text in UTF-32": "1 2\n".encode("utf-32"),
    "an lz4 file": b"\x04\x22\x4d\x18\x64\x40",
    "a Harwell-Boeing or Rutherford-Boeing matrix": (
        b"title                                                                   |key\n"
        b"             3             1             1             1\n"
        b"rua                        3             3             3             0\n"
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("suffix", ["txt", "csv", "parquet", "mtx", "gz"])
def test_foreign_formats_are_named(tmp_path: Path, name: str, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(gzip.compress(FOREIGN[name]) if suffix == "gz" else FOREIGN[name])
    with pytest.raises(bf.InputError) as raised:
        bf.read(path, path=tmp_path / "g.brimful")
    assert f"this is {name}, which brimful does not read; " in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["GML", "Pajek", "JSON of nodes and links"])
def test_the_conversion_that_is_named_works(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(FOREIGN[name])
    err = brimful("import", path, tmp_path / "g.brimful", "--quiet").err
    assert 'python -c "' in err
    program = err.split('python -c "')[1].split('"')[0]
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
    with bf.Graph.open(tmp_path / "a.brimful") as graph:
        assert (graph.vertices, graph.edges, graph.weighted) == (3, 2, True)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("suffix", ["txt", "csv"])
def test_the_conversion_of_text_works_and_keeps_the_input(
    tmp_path: Path, encoding: str, suffix: str
) -> None:
    text = "source,target\n1,2\n" if suffix == "csv" else "1 2\n2 3\n"
    path = tmp_path / f"two words.{suffix}"
    path.write_bytes(text.encode(encoding))
    before = path.read_bytes()
    err = refuse(INPUT, "import", path, tmp_path / "g.brimful", "--quiet")
    subprocess.run(["sh", "-c", err.split("UTF-8 with ")[1]], check=True, timeout=120)
    assert path.read_bytes() == before
    (converted,) = [one for one in tmp_path.iterdir() if one != path]
    assert converted.read_bytes().decode().removeprefix("\ufeff") == text


def test_a_name_that_is_code_is_not_in_a_command(tmp_path: Path) -> None:
    for name in ("it's.gml", "$(touch x).gml", 'a".gml', "`touch x`.gml"):
        path = tmp_path / name
        path.write_bytes(FOREIGN["GML"])
        err = refuse(INPUT, "import", path, tmp_path / "g.brimful", "--quiet")
        assert "read_gml('FILE'), path='NAME.brimful'" in err


def test_the_conversion_of_tables_works(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for name in ("JSON lines", "JSON"):
        path.write_bytes(FOREIGN[name])
        err = brimful("import", path, tmp_path / "g.brimful", "--quiet").err
        program = err.split('python -c "')[1].split('"')[0]
        subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
        assert (tmp_path / "a.csv").read_text().startswith("source,target\n1,2\n")
    matrix = tmp_path / "m.npz"
    with matrix.open("wb") as file:
        from scipy import sparse

        sparse.save_npz(file, sparse.csr_array(np.array([[0, 2], [0, 0]])))
    err = brimful("import", matrix, tmp_path / "g.brimful", "--quiet").err
    program = err.split('python -c "')[1].split('"')[0]
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
    assert edges_of(tmp_path / "m.brimful") == [(0, 1, 2.0)]


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


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize("name", ["e.csv", "e.tsv"])
def test_a_header_alone_has_no_edge(tmp_path: Path, name: str, end: str) -> None:
    path, graph = tmp_path / name, tmp_path / "g.brimful"
    delimiter = "\t" if name.endswith(".tsv") else ","
    path.write_bytes(f"source{delimiter}target{end}".encode())
    sentence = refuse(INPUT, "import", path, graph, "--quiet")
    assert "it contains no edges; `--vertices N` makes a graph without edges" in sentence
    figures = succeed("import", path, graph, "--vertices", 3, "--json", "--quiet").figures
    assert (figures["edges"], figures["vertices"]) == (0, 3)
