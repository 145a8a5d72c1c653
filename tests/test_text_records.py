"""Records of text: quoted, long, compressed, not in UTF-8, none."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command import INPUT, refuse, succeed
from text_imports import asked, imported


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
