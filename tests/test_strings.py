"""Vertices that are strings: import, results, look-ups, exports, errors."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import brimful as bf
from brimful.errors import CorruptError, InputError, NotFoundError, UsageError
from command import CORRUPT, INPUT, USAGE, brimful, refuse, succeed

PEOPLE = [("bob", "ann"), ("ann", "zoë"), ("zoë", "bob"), ("dan", "eve"), ("bob", "ann")]
AWKWARD = [("a,b", 'say "hi"'), ("", " x "), ("# no comment", "1"), ("1", "ü\tö"), ("%", "a,b")]


def table(pairs: list[tuple[str, str]], kind: Any = None) -> pa.Table:
    columns = ([pair[end] for pair in pairs] for end in (0, 1))
    arrays = [pa.array(column, kind) for column in columns]
    return pa.table(arrays, names=["source", "target"])


def edges(graph: bf.Graph) -> list[tuple[str, str]]:
    made = graph.to_arrow()
    return sorted(zip(made["source"].to_pylist(), made["target"].to_pylist(), strict=True))


@pytest.fixture
def people(tmp_path: Path) -> Path:
    text = tmp_path / "people.txt"
    lines = "".join(f"{source} {target}\n" for source, target in PEOPLE)
    text.write_text("source target\n" + lines)
    return text


@pytest.fixture
def graph(people: Path, tmp_path: Path) -> Path:
    succeed("import", people, tmp_path / "people.brimful", "--quiet")
    return tmp_path / "people.brimful"


def test_the_command_line_speaks_names(graph: Path, tmp_path: Path) -> None:
    info = succeed("info", graph, "--json").figures
    assert info["id_type"] == "string" and info["vertices"] == 5
    assert info["names"]["longest_bytes"] == len("zoë".encode())
    assert "id type" in succeed("info", graph).out
    succeed("verify", graph)
    out = tmp_path / "r.csv"
    done = succeed("run", "connected_components", graph, "-o", out, "--top", 2, "--quiet")
    assert done.out.splitlines() == ["vertex\tcomponent", "dan\tdan", "eve\tdan"]
    rows = out.read_text().splitlines()
    assert rows == ["vertex,component", "ann,ann", "bob,ann", "dan,dan", "eve,dan", "zoë,ann"]
    for name in ("r.parquet", "r.arrow"):
        succeed("run", "pagerank", graph, "-o", tmp_path / name, "--quiet")
    ranks = pq.read_table(tmp_path / "r.parquet")
    assert ranks["vertex"].to_pylist() == ["ann", "bob", "dan", "eve", "zoë"]
    assert ranks.schema.field("vertex").type == pa.string()


def test_runs_begin_with_a_name(graph: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.csv"
    succeed("run", "bfs", graph, "--source", "bob", "-o", out, "--quiet")
    rows = out.read_text().splitlines()
    assert rows == ["vertex,distance", "ann,1", "bob,0", "dan,", "eve,", "zoë,2"]
    with bf.Graph.open(graph) as opened:
        parents = bf.bfs(opened, "bob", values="parent").to_arrow()
        assert parents["parent"].to_pylist() == ["bob", "bob", None, None, "ann"]
        assert bf.bfs(opened, "bob", values="parent")["zoë"] == "ann"
    succeed(
        "run",
        "bfs",
        graph,
        "--source",
        "bob",
        "-o",
        tmp_path / "p.csv",
        "--param",
        "values=parent",
        "--quiet",
    )
    assert (tmp_path / "p.csv").read_text().splitlines()[1:4] == ["ann,bob", "bob,bob", "dan,"]
    assert 'no vertex "carl"' in refuse(INPUT, "run", "bfs", graph, "--source", "carl", "--quiet")


def test_python_speaks_names(people: Path) -> None:
    with bf.read(people) as graph:
        assert graph.vertices == 5 and "ann" in graph and "carl" not in graph and 3 not in graph
        assert graph.neighbors("bob") == ["ann", "ann"] and graph.degree("bob") == 2
        assert graph.vertex_ids().to_pylist() == ["ann", "bob", "dan", "eve", "zoë"]
        assert edges(graph) == sorted(PEOPLE)
        result = bf.connected_components(graph)
        assert result["zoë"] == "ann" and result["eve"] == "dan"
        assert result.to_arrow()["component"].to_pylist() == ["ann", "ann", "dan", "dan", "ann"]
        assert result.to_pandas()["vertex"].tolist()[0] == "ann"
        assert result.to_polars()["vertex"].to_list()[-1] == "zoë"
        assert pl.DataFrame(result)["vertex"].dtype == pl.String
        assert {vertex for vertex, _ in bf.pagerank(graph).top(3)} <= {n for p in PEOPLE for n in p}
        with pytest.raises(NotFoundError, match='no vertex "carl"'):
            graph.neighbors("carl")
        with pytest.raises(NotFoundError, match="no vertex 3"):
            result[3]
        matrix, ids = graph.to_scipy()
        assert matrix[list(ids).index("bob"), list(ids).index("ann")] == 2


def test_names_agree_with_the_numbers_they_stand_for(people: Path, tmp_path: Path) -> None:
    names = sorted({name for pair in PEOPLE for name in pair}, key=str.encode)
    numbered = tmp_path / "numbered.txt"
    lines = (f"{names.index(source)} {names.index(target)}\n" for source, target in PEOPLE)
    numbered.write_text("".join(lines))
    with bf.read(people) as strings, bf.read(numbered) as numbers:
        ours, theirs = bf.pagerank(strings).to_arrow(), bf.pagerank(numbers).to_arrow()
        assert ours["pagerank"] == theirs["pagerank"]
        assert ours["vertex"].to_pylist() == [names[at] for at in theirs["vertex"].to_pylist()]


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
    ids=str,
)
def test_columns_of_strings(kind: Any, tmp_path: Path) -> None:
    with bf.Graph.from_arrow(table(AWKWARD, kind)) as graph:
        assert edges(graph) == sorted(AWKWARD)
        assert graph.neighbors("") == [" x "]
    if kind != pa.string_view():
        pq.write_table(table(AWKWARD, kind), tmp_path / "in.parquet")
        with bf.read(tmp_path / "in.parquet") as graph:
            assert edges(graph) == sorted(AWKWARD)


def test_frames_of_other_packages() -> None:
    with bf.Graph.from_pandas(pd.DataFrame(PEOPLE, columns=["source", "target"])) as graph:
        assert edges(graph) == sorted(PEOPLE)
    frame = pl.DataFrame(PEOPLE, schema=["source", "target"], orient="row")
    with bf.read(frame) as graph:
        assert edges(graph) == sorted(PEOPLE)
    duckdb = pytest.importorskip("duckdb")
    with bf.read(
        duckdb.sql("select 'x' || i as source, 'y' as target from range(3) t(i)")
    ) as graph:
        assert edges(graph) == [("x0", "y"), ("x1", "y"), ("x2", "y")]
        result = bf.connected_components(graph).to_arrow()
        counted = duckdb.from_arrow(result).filter("component = 'x0'").count("*")
        assert counted.fetchall() == [(4,)]


def test_networkx_and_igraph_keep_names() -> None:
    source = nx.Graph(PEOPLE)
    source.add_node("alone")
    with bf.Graph.from_networkx(source) as graph:
        assert "alone" in graph and graph.degree("alone") == 0
        back = graph.to_networkx()
        assert nx.utils.graphs_equal(source, back)
        igraph = pytest.importorskip("igraph")
        made = graph.to_igraph()
        assert isinstance(made, igraph.Graph)
        with bf.Graph.from_igraph(made) as again:
            assert nx.utils.graphs_equal(source, again.to_networkx())


def test_ids_says_how_columns_are_read() -> None:
    text = table([("1", "2"), ("10", "2")])
    with bf.Graph.from_arrow(text) as graph:
        assert graph.vertex_ids().to_pylist() == ["1", "10", "2"]
    with bf.Graph.from_arrow(text, ids="int") as graph:
        assert graph.vertex_ids().to_pylist() == [1, 2, 10]
    numbers = pa.table({"source": [1, -10], "target": [2, 2]})
    with bf.Graph.from_arrow(numbers, ids="string") as graph:
        assert graph.vertex_ids().to_pylist() == ["-10", "1", "2"]
    mixed = pa.table({"source": ["a"], "target": [1]})
    with pytest.raises(InputError, match='ids="string" or ids="int"'):
        bf.Graph.from_arrow(mixed)
    with bf.Graph.from_arrow(mixed, ids="string") as graph:
        assert graph.neighbors("a") == ["1"]
    with pytest.raises(InputError, match='row 1, column "source"'):
        bf.Graph.from_arrow(table([("a", "b")]), ids="int")
    with pytest.raises(UsageError, match="ids must be auto, int or string, not number"):
        bf.Graph.from_arrow(text, ids="number")


def test_columns_refuse_what_is_no_name() -> None:
    nulls = pa.table({"source": ["a", None], "target": ["b", "c"]})
    with pytest.raises(InputError, match='row 2, column "source": expected a value'):
        bf.Graph.from_arrow(nulls)
    with bf.Graph.from_arrow(nulls, on_error="skip") as graph:
        assert edges(graph) == [("a", "b")]
    long = table([("a", "b"), ("c", "x" * 65_537)])
    with pytest.raises(InputError, match='row 2, column "target": expected a vertex id of at most'):
        bf.Graph.from_arrow(long)
    longest = [("é" * 32_768, "b")] * 3
    with bf.Graph.from_arrow(table(longest)) as graph:
        assert edges(graph) == longest
    broken = pa.array([b"a", b"\xff"]).view(pa.string())
    with pytest.raises(InputError, match="UTF"):
        bf.Graph.from_arrow(pa.table({"source": broken, "target": ["x", "y"]}))


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_the_last_record_of_a_csv_file_decides_the_type_of_ids(tmp_path: Path, end: str) -> None:
    for name, rows in (("one", "ann,bob"), ("three", "1,2\nann,bob\ncleo,dora")):
        (tmp_path / f"{name}.csv").write_bytes(f"source,target\n{rows}{end}".encode())
        with bf.read(tmp_path / f"{name}.csv", path=tmp_path / f"{name}.brimful") as graph:
            assert graph.edges == rows.count(",") and {"ann", "bob"} <= set(graph), name


def test_csv_keeps_quoted_text_as_it_is(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerows([("source", "target"), *AWKWARD])
    source.write_text(text.getvalue())
    with bf.read(source) as graph:
        assert edges(graph) == sorted(AWKWARD)
    late = tmp_path / "late.csv"
    late.write_text("source,target\n" + "1,2\n" * 70_000 + "3,x\n")
    assert "--ids string" in refuse(INPUT, "import", late, tmp_path / "l.brimful", "--quiet")
    succeed("import", late, tmp_path / "l.brimful", "--ids", "string", "--quiet")
    source.write_bytes(b"source,target\na,b\nc,d\xff\n")
    sentence = refuse(INPUT, "import", source, tmp_path / "b.brimful", "--quiet")
    assert f"{source}:3:3: expected a vertex id in UTF-8" in sentence


@pytest.mark.parametrize("suffix", ["txt", "csv", "parquet", "arrow", "txt.gz", "csv.zst"])
@pytest.mark.parametrize("pairs", [PEOPLE, AWKWARD], ids=["words", "awkward"])
def test_exports_come_back(suffix: str, pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    first, out = tmp_path / "first.brimful", tmp_path / f"out.{suffix}"
    bf.Graph.from_arrow(table(pairs), path=first).close()
    if pairs is AWKWARD and suffix.startswith("txt"):
        assert "export as parquet" in refuse(USAGE, "export", first, out, "--quiet")
        return
    succeed("export", first, out, "--quiet")
    again = tmp_path / "again.brimful"
    if suffix == "arrow":
        bf.read(pa.ipc.open_file(out).read_all(), path=again).close()
    else:
        header = ["--no-header"] if suffix.startswith("txt") else []
        succeed("import", out, again, "--ids", "string", *header, "--quiet")
    for name in ("names", "degrees", "in.shards", "in.blocks"):
        assert (first / name).read_bytes() == (again / name).read_bytes(), name


def test_formats_of_numbers(graph: Path, tmp_path: Path) -> None:
    for name in ("out.u32", "out.mtx", "out.v"):
        assert "strings" in refuse(USAGE, "export", graph, tmp_path / name, "--quiet")
    succeed("export", graph, tmp_path / "out.mtx", "--renumber", "--quiet")
    with bf.read(tmp_path / "out.mtx") as numbered:
        assert (numbered.vertices, numbered.edges) == (5, 5)
    inputs = {"mtx": "", "metis": "", "dimacs": "", "pace": "", "jlg": "", "u32pairs": ""}
    for name in [*inputs, "webgraph", "adjacency", "graphalytics"]:
        (tmp_path / "in.v").write_text("1\n")
        (tmp_path / "in.e").write_text("1 1\n")
        command = ("import", tmp_path / "in.v", tmp_path / "g.brimful", "--format", name)
        sentence = refuse(USAGE, *command, "--ids", "string", "--quiet")
        assert "integers by definition" in sentence, name


def test_options_that_need_numbers_are_refused(people: Path, tmp_path: Path) -> None:
    for option in (("--weights", "hash"), ("--vertices", 9)):
        for ids in ("auto", "string"):
            command = ("import", people, tmp_path / "g.brimful", "--ids", ids, *option, "--quiet")
            assert option[0] in refuse(USAGE, *command)
    sentence = refuse(INPUT, "import", people, tmp_path / "g.brimful", "--ids", "int", "--quiet")
    assert f"{people}:2:1: expected an integer vertex id" in sentence and "--ids string" in sentence


def test_a_flipped_byte_is_found(graph: Path) -> None:
    names = graph / "names"
    damaged = bytearray(names.read_bytes())
    damaged[70] ^= 1
    names.write_bytes(damaged)
    assert "names" in refuse(CORRUPT, "verify", graph, "--quiet")
    with bf.Graph.open(graph) as opened, pytest.raises(CorruptError, match="names"):
        opened.neighbors("bob")


def test_standard_input_and_small_budgets_give_the_same_bytes(tmp_path: Path) -> None:
    rows = (
        f"site-{i % 70_001:09d}.example\tsite-{i * i % 60_013:09d}.example\n"
        for i in range(200_000)
    )
    text = "".join(rows).encode()
    (tmp_path / "in.txt").write_bytes(text)
    seen = None
    for number, (budget, threads, stdin) in enumerate(
        [("500M", 2, False), ("90M", 1, True), ("120M", 4, True)]
    ):
        out = tmp_path / f"{number}.brimful"
        source = "-" if stdin else tmp_path / "in.txt"
        options = ["--no-header", "--budget", budget, "--threads", threads, "--quiet"]
        command = ["import", source, out, *options]
        outcome = brimful(*command, stdin=text if stdin else None)
        assert outcome.code == 0, outcome.err
        files = {path.name: path.read_bytes() for path in out.iterdir() if path.name[0] in "nid"}
        assert seen is None or files == seen
        seen = files
