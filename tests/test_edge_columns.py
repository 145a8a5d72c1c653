"""Columns kept with the edges of a graph: import, conditions, graphs from graphs."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brimful as bf
from brimful.tables import columns, edge_columns
from command import INPUT, USAGE, refuse, succeed
from edge_files import compress

TRADES = pa.table(
    {
        "source": [7, 2, 7, 2, 5],
        "target": [2, 7, 2, 5, 5],
        "weight": [1.5, 2.5, 0.5, 4.5, 5.5],
        "year": pa.array([2020, 2021, 2022, None, 2024], pa.int16()),
        "kind": ["b", "a", "a", "c", None],
        "note": ["n1", "n2", "n3", "n4", "n5"],
    }
)


def sorted_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return the rows of a table, sorted by their first three columns."""
    found = zip(*table.to_pydict().values(), strict=True)
    return sorted(found, key=lambda row: row[:3])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "trades.brimful"
    bf.Graph.from_arrow(TRADES, path=place, edge_columns="year,kind").close()
    return place


def test_info_lists_the_kept_columns(path: Path, tmp_path: Path) -> None:
    """Their sizes are those of the pages in the files, of structures too."""
    places = pa.table(
        {"vertex": [7, 2], "place": [{"city": "Rome", "zip": 1}, None], "a b": ["x", "y"]}
    )
    page = tmp_path / "page.html"
    with bf.Graph.open(path) as graph:
        graph.add_vertex_columns(places)
        info = graph.info()
        page.write_text(graph.report().html)
    kept = {"vertices": info["vertex_columns"], "edges": info["edge_columns"]}
    types = {about: [(one["name"], one["type"]) for one in found] for about, found in kept.items()}
    assert types == {
        "vertices": [("place", "struct<city: string, zip: int64>"), ("a b", "string")],
        "edges": [("year", "int16"), ("kind", "string")],
    }
    for about, ends in (("vertices", 0), ("edges", 3)):
        (file,) = path.glob(f"{about}-*.parquet")
        group = pq.read_metadata(file).row_group(0)
        pages = [group.column(at).total_compressed_size for at in range(ends, group.num_columns)]
        assert sum(one["bytes"] for one in kept[about]) == sum(pages)
        assert min(one["bytes"] for one in kept[about]) > 0
    assert succeed("info", path, "--json").figures == info
    shown = succeed("info", path).out
    year, place = kept["edges"][0]["bytes"], kept["vertices"][0]["bytes"]
    assert f"    year               int16, {year} bytes\n" in shown
    assert f"    place              struct<city: string, zip: int64>, {place} bytes\n" in shown
    cells = page.read_text()
    assert f"<td>year</td><td>edges</td><td>int16</td><td>{year} bytes</td>" in cells
    assert "<td>place</td><td>vertices</td><td>struct&lt;city: string, zip: int64&gt;</td>" in cells
    bf.Graph.from_arrow(TRADES, path=tmp_path / "plain.brimful").close()
    shown = succeed("info", tmp_path / "plain.brimful").out
    assert "vertex columns       none" in shown and "edge columns         none" in shown


def test_columns_of_edges_are_kept_by_source_and_target(path: Path) -> None:
    with bf.Graph.open(path) as graph:
        assert graph.edge_columns == pa.schema({"year": pa.int16(), "kind": pa.string()})
        whole = graph.edge_rows().read_all()
        expected = TRADES.select(["source", "target", "weight", "year", "kind"])
        rows = list(zip(*whole.to_pydict().values(), strict=True))
        assert rows == sorted_rows(expected)
        assert graph.edge_rows("kind").schema.names == ["source", "target", "weight", "kind"]
        with pytest.raises(bf.UsageError, match="has no column note of edges"):
            graph.edge_rows("note")
        graph.verify()
    (file,) = path.glob("edges-*.parquet")
    content = bytearray(file.read_bytes())
    content[60] ^= 1
    file.write_bytes(content)
    with bf.Graph.open(path) as graph, pytest.raises(bf.CorruptError, match="edges-2"):
        graph.edge_rows().read_all()


def test_a_graph_without_columns_has_its_edges() -> None:
    with bf.Graph.from_arrow(TRADES, source="source", target="target") as graph:
        assert graph.edge_columns.names == []
        assert sorted_rows(graph.edge_rows().read_all()) == sorted_rows(
            TRADES.select(["source", "target", "weight"])
        )


@pytest.mark.parametrize("kind", ["parquet", "csv", "tsv", "arrow"])
def test_the_command_line_keeps_columns_of_files(tmp_path: Path, kind: str) -> None:
    parts = [TRADES.slice(0, 2), TRADES.slice(2)]
    for at, part in enumerate(parts):
        place = tmp_path / f"part-{at}.{kind}"
        if kind == "parquet":
            pq.write_table(part, place)
        elif kind == "arrow":
            with pa.ipc.new_file(place, part.schema) as writer:
                writer.write_table(part)
        else:
            options = pyarrow.csv.WriteOptions(delimiter="\t" if kind == "tsv" else ",")
            pyarrow.csv.write_csv(part, place, options)
    shown = succeed(
        *("import", tmp_path / f"part-0.{kind}", tmp_path / f"part-1.{kind}"),
        *(tmp_path / "g.brimful", "--edge-columns", "year,kind", "--budget", "400M"),
        *("--weight", "weight"),
    )
    assert "kept with edges year, kind; ignored note" in shown.out
    with bf.Graph.open(tmp_path / "g.brimful") as graph:
        names = ["source", "target", "weight", "year"]
        assert sorted_rows(graph.edge_rows("year").read_all()) == sorted_rows(TRADES.select(names))
        assert graph.edge_rows().read_all().num_rows == 5
    assert "columns of vertices: none" in succeed("columns", tmp_path / "g.brimful").out
    assert "columns of edges: year" in succeed("columns", tmp_path / "g.brimful").out


def test_strings_that_look_like_numbers_stay_strings(tmp_path: Path) -> None:
    (tmp_path / "trades.csv").write_text("a,b,year\n007,x,1\n7,x,2\n")
    with bf.read(
        tmp_path / "trades.csv", source="a", target="b", edge_columns="year", ids="string"
    ) as graph:
        assert graph.edge_rows().read_all().to_pydict() == {
            "source": ["007", "7"],
            "target": ["x", "x"],
            "year": [1, 2],
        }


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"edge_columns": "yaer"}, "has no column yaer .*did you mean 'year'"),
        ({"edge_columns": "year", "duplicates": "drop"}, "merged have no columns"),
        (
            {"edge_columns": "year", "weights": "hash"},
            'weights="hash" and edge_columns= cannot be combined',
        ),
        ({"edge_columns": "weight"}, "cannot be named weight"),
        ({"edge_columns": "year,year"}, "each once"),
        ({"edge_columns": ""}, "each once"),
    ],
)
def test_what_cannot_be_kept_is_refused(tmp_path: Path, options: dict[str, Any], says: str) -> None:
    with pytest.raises(bf.UsageError, match=says):
        bf.Graph.from_arrow(TRADES, path=tmp_path / "g.brimful", **options)
    assert not list(tmp_path.iterdir())


def test_inputs_that_cannot_be_read_again_are_refused(tmp_path: Path) -> None:
    with pytest.raises(bf.UsageError, match="read twice"):
        bf.Graph.from_arrow(TRADES.to_reader(), edge_columns="year")
    (tmp_path / "e.txt").write_text("1 2\n")
    refused = ("import", tmp_path / "e.txt", tmp_path / "g.brimful", "--edge-columns", "x")
    assert str(tmp_path / "e.txt") + " is not such a file" in refuse(USAGE, *refused)
    (tmp_path / "e.csv").write_text("source,target,x\n1,2,1\n3,4.0,2\n")
    refused = ("import", tmp_path / "e.csv", tmp_path / "g.brimful", "--edge-columns", "x")
    said = refuse(INPUT, *refused, "--on-error", "skip", "--quiet")
    assert "gives 2 edges with columns, and the graph has 1" in said
    assert not (tmp_path / "g.brimful").exists()


def test_lines_that_are_left_out_have_no_columns(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text("source,target,weight,x\n1,2,1,5\n3,four,2,6\n5,6,w,7\n7,8,3e400,8\n")
    with bf.read([path], edge_columns="x", on_error="skip") as graph:
        assert pa.table(graph.edge_rows())["x"].to_pylist() == [5]


def test_columns_of_several_files_go_by_their_names(tmp_path: Path) -> None:
    """Files have one delimiter; a column that is not taken may be in some of them."""
    texts = ("source,target,year\n1,2,7\n", "more,target, year,source\n0,3,8.5,2\n")
    paths = [tmp_path / f"{number}.csv" for number in range(2)]
    for order in (0, 1), (1, 0):
        for place, text in zip(paths, order, strict=True):
            place.write_text(texts[text])
        with bf.read(paths, edge_columns="year") as graph:
            assert pa.table(graph.edge_rows()).to_pydict() == {
                **{"source": [1, 2], "target": [2, 3], "year": [7.0, 8.5]}
            }
    paths[1].write_text("# \nsource;target;year\n1;2;7\n")
    paths[0].write_text("# \nsource,target,year\n1,2,7\n")
    with pytest.raises(
        bf.InputError, match=r"1\.csv:2: expected the delimiter , .* as in .*0\.csv, found 'source;"
    ):
        bf.read(paths, edge_columns="year")


def test_text_that_cannot_be_kept_is_refused_with_its_line(tmp_path: Path) -> None:
    """The import itself left such lines out."""
    path = tmp_path / "e.csv"
    for rows, says in (
        ("1,2,3e400\n", r":2: expected a float of 64 bits in the column year, found '3e400'"),
        (f"1,2,{10**40}\n", ":2: expected an integer of 128 bits in the column year"),
        ('1,2,"a"b\n', ":2: a field in quotes is not closed, or text follows its end"),
        ('1,2,"a\nb"\n2,3\n', ":4: expected 3 fields as in the header, found 2"),
    ):
        path.write_text(f"source,target,year\n{rows}3,4,5\n")
        with pytest.raises(bf.InputError, match=says):
            bf.read([path], edge_columns="year", on_error="skip")


def test_columns_of_one_name_in_tables_are_refused(tmp_path: Path) -> None:
    """A column that is not taken may be there twice; a stream of Arrow is read as a file."""
    table = pa.table([[1], [2], [3], [4], [5]], ["source", "target", "n", "n", "m"])
    parquet, arrow = tmp_path / "e.parquet", tmp_path / "e.arrow"
    pq.write_table(table, parquet)
    with pa.ipc.new_stream(arrow, table.schema) as stream:
        stream.write_table(table)
    for path in parquet, arrow:
        with bf.read([path], edge_columns="m") as graph:
            assert pa.table(graph.edge_rows())["m"].to_pylist() == [5]
        with pytest.raises(
            bf.UsageError, match=rf"{path.name} has more than one column n, .*\(4\)"
        ):
            bf.read([path], edge_columns="n")


def test_the_second_pass_reads_text_as_the_import_did(tmp_path: Path) -> None:
    """Other quotes than those of RFC 4180 belong to the ids, and so do comments after the header.

    A name is no pattern: `e1.csv` is another file.
    """
    text = "# a, b\n\nsource,target,day\n'a',#b,01/02/2020\n#b,'a',\"\"\n'c',\"d,\ne\",\n"
    path = tmp_path / "e[1].csv"
    path.write_text(text)
    (tmp_path / "e1.csv").write_text(text.replace("2020", "1999"))
    with bf.read([path], edge_columns="day", source="source", target="target") as graph:
        kept = pa.table(graph.edge_rows()).to_pydict().values()
        ends = graph.to_arrow().to_pydict().values()
    rows = sorted(zip(*kept, strict=True))
    assert rows == [("#b", "'a'", ""), ("'a'", "#b", "01/02/2020"), ("'c'", "d,\ne", None)]
    assert [row[:2] for row in rows] == sorted(zip(*ends, strict=True))


def test_other_edges_in_the_second_pass_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their number is the same, so that only their ends or weights show it."""
    path, again = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text("source,target,weight,year\n1,2,0.5,2020\n2,3,1,2021\n")
    for text in ("source,target,weight,year\n1,2,0.5,2020\n2,4,1,2021\n", "{}"):
        again.write_text(text.format("source,target,weight,year\n1,2,0.25,2020\n2,3,1,2021\n"))
        rows = edge_columns.TextRows
        with monkeypatch.context() as patch:
            patch.setattr(
                edge_columns,
                "TextRows",
                lambda connection, _, *more: rows(connection, [str(again)], *more),  # noqa: B023
            )
            with pytest.raises(bf.InputError, match="gives other ids or weights"):
                bf.read([path], edge_columns="year")


def test_lines_may_end_in_several_ways(tmp_path: Path) -> None:
    """Line ends within quotes are part of a value; an inner quote opens no field."""
    path = tmp_path / "e.csv"
    path.write_bytes(
        b'source,target,name,n\r\n1,2,"a\r\nb",5\n2,3,"c\nd""\r\n",6\r\n3,4,5",7\r\n4,5,"x",8\r5,6,,9'
    )
    with bf.read([path], edge_columns="name,n") as graph:
        kept = pa.table(graph.edge_rows()).to_pydict()
        with bf.read([path]) as imported:
            assert imported.edges == graph.edges == 5
    assert kept["name"] == ["a\r\nb", 'c\nd"\r\n', '5"', "x", None]
    assert kept["n"] == [5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("content", "suffix"),
    [
        *((".gz", ".gz"), (".bz2", ".bz2"), (".xz", ".xz"), (".zst", ".zst")),
        *(("", ".gz"), ("", ".xz"), (".gz", ""), (".zst", ".gz")),
    ],
)
def test_compressed_text_has_columns(tmp_path: Path, content: str, suffix: str) -> None:
    """The content shows the compression, whatever the name says."""
    path = tmp_path / f"e.csv{suffix}"
    for end in ("\n", "\r\n"):
        text = f"source,target,n{end}1,2,3{end}2,3,4{end}"
        path.write_bytes(compress(content, text.encode()))
        with bf.read([path], edge_columns="n") as graph:
            assert pa.table(graph.edge_rows())["n"].to_pylist() == [3, 4]


def test_a_line_end_between_blocks_is_one(tmp_path: Path) -> None:
    """Files are read in blocks of 1 MiB, which end before, within and after a CRLF."""
    path, row, last = tmp_path / "e.csv", b"1,2,3\r\n", b"2,3,4\n"
    for more in range(5):
        head = b"source,target," + b"n" * (more + 1) + b"\n"
        path.write_bytes(head + row * ((1 << 20) // len(row) + 1) + last)
        with bf.read([path], edge_columns="n" * (more + 1)) as graph:
            assert graph.edges == path.read_bytes().count(b"\n") - 1


def test_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    """DuckDB renames the second of them; a column that is not taken may be there twice."""
    path = tmp_path / "e.csv"
    path.write_text("source,target,a,b,B,a\n1,2,3,4,5,6\n")
    for name, says in (
        ("a", r"e\.csv has more than one column a, if .*: a \(3\), a \(6\); rename all but one"),
        ("B", r"more than one column b, if case is ignored: b \(4\), B \(5\)"),
        ("a_1", "has no column a_1 .found: source, target, a, b.; did you mean"),
    ):
        with pytest.raises(bf.UsageError, match=says):
            bf.read([path], edge_columns=name)
    path.write_text('source, target, "b c" ,d ,d_1,, \n1,2,3,4,5,6,7\n')
    with bf.read([path], edge_columns="b c,d,d_1", source=1, target=2) as graph:
        kept = pa.table(graph.edge_rows()).to_pydict()
        assert (kept["b c"], kept["d"], kept["d_1"]) == ([3], [4], [5])
    path.write_text("source,target,a,b,a\n1,2,3,4,6\n")
    with bf.read([path], edge_columns="b") as graph:
        assert pa.table(graph.edge_rows())["b"].to_pylist() == [4]
    table = pa.table([[1], [2], [3], [4]], ["source", "target", "a", "a"])
    with pytest.raises(bf.UsageError, match="the table has more than one column a, if case is"):
        bf.Graph.from_arrow(table, edge_columns="a")


def test_weights_of_any_type_go_with_columns(tmp_path: Path) -> None:
    """Rows that an import leaves out have no columns; integers become floats as in the graph."""
    path = tmp_path / "a.parquet"
    pq.write_table(TRADES.set_column(2, "weight", pa.array([1, 2, None, 4, 5], pa.int32())), path)
    with bf.read([path], edge_columns="year", on_error="skip") as graph:
        rows = sorted_rows(pa.table(graph.edge_rows()))
    assert rows == [(2, 5, 4.0, None), (2, 7, 2.0, 2021), (5, 5, 5.0, 2024), (7, 2, 1.0, 2020)]


def test_every_file_has_the_columns(tmp_path: Path) -> None:
    """A later file without one would get nulls."""
    pq.write_table(TRADES, tmp_path / "1.parquet")
    pq.write_table(TRADES.drop_columns(["kind"]), tmp_path / "2.parquet")
    paths = sorted(tmp_path.iterdir())
    with bf.read(paths, edge_columns="year") as graph:
        assert graph.edges == 10
    with pytest.raises(bf.UsageError, match=r"2\.parquet has no column kind, which .*1\.parquet"):
        bf.read(paths, edge_columns="kind")
    with pytest.raises(bf.UsageError, match="cannot be named Source"):
        bf.read(paths, edge_columns="Source")
    for number, start in enumerate(("", "# a comment\n")):
        (tmp_path / f"{number}.csv").write_text(f"{start}source,target,year\n1,2,2020\n")
    with pytest.raises(bf.UsageError, match="different numbers of lines before the header"):
        bf.read(sorted(tmp_path.glob("*.csv")), edge_columns="year")


def test_loops_that_are_dropped_take_their_columns_with_them() -> None:
    with bf.Graph.from_arrow(TRADES, edge_columns="note", self_loops="drop") as graph:
        assert graph.edges == 4
        assert graph.edge_rows("note").read_all()["note"].to_pylist() == ["n4", "n2", "n3", "n1"]


@pytest.mark.parametrize("undirected", [False, True])
def test_graphs_from_graphs_keep_columns_of_edges(undirected: bool) -> None:
    with bf.Graph.from_arrow(TRADES, edge_columns="year,kind", undirected=undirected) as graph:
        with graph.filter(edges="year >= 2021 and kind == 'a'") as part:
            assert sorted(part.edge_rows().read_all()["year"].to_pylist()) == [2021, 2022]
            assert part.edges == 2 and part.directed != undirected
            with part.reverse() as turned:
                found = [tuple(row.values()) for row in turned.edge_rows().read_all().to_pylist()]
                ends = (2, 7) if undirected else (7, 2)
                assert found == [(2, 7, 0.5, 2022, "a"), (*ends, 2.5, 2021, "a")]
                turned.verify()
        with graph.filter(vertices="vertex != 7") as part:
            assert part.edge_rows().read_all()["kind"].to_pylist() == ["c", None]
        with graph.undirected(self_loops="drop") as plain:
            assert sorted(plain.edge_rows("year").read_all()["weight"].to_pylist()) == [
                *(0.5, 1.5, 2.5, 4.5)
            ]
            assert plain.edges == 4
        with graph.undirected(duplicates="sum") as merged:
            assert merged.edge_columns.names == []
        with graph.contract(pa.table({"vertex": [2, 5, 7], "part": [0, 0, 1]})) as small:
            assert small.edge_columns.names == []
        with pytest.raises(bf.UsageError, match="no column note"):
            graph.filter(edges="note == 'n1'")


@given(st.data())
def test_filters_by_columns_of_edges_are_those_of_pandas(data: st.DataObject) -> None:
    ids = st.integers(-4, 4)
    values = st.none() | st.integers(-5, 5)
    edges = pd.DataFrame(
        data.draw(st.lists(st.tuples(ids, ids, values), min_size=1, max_size=20)),
        columns=["source", "target", "amount"],
    ).astype({"amount": "Int64"})
    least, kept = data.draw(st.integers(-6, 6)), data.draw(st.integers(-4, 4))
    table = pa.Table.from_pandas(edges, preserve_index=False)
    present = set(edges["source"]) | set(edges["target"])
    with bf.Graph.from_arrow(table, source=1, target=2, edge_columns="amount") as graph:
        assert sorted_rows(graph.edge_rows().read_all().select([0, 1])) == sorted(
            edges[["source", "target"]].itertuples(index=False, name=None)
        )
        if not any(one >= kept for one in present):
            return
        left = edges[
            (edges["amount"] >= least).fillna(False)
            & (edges["source"] >= kept)
            & (edges["target"] >= kept)
        ]
        condition = dict(edges=f"amount >= {least}", vertices=f"vertex >= {kept}")
        with graph.filter(**condition) as part:
            assert part.edges == len(left)
            assert sorted_rows(part.edge_rows().read_all()) == sorted(
                left.itertuples(index=False, name=None)
            )


def test_a_run_on_edges_by_their_columns(path: Path) -> None:
    shown = succeed("run", "degrees", path, "--where-edges", "year > 2020", "--top", 1).out
    assert "where edges year > 2020: 3 of 3 vertices, 3 of 5 edges" in shown


@given(st.data())
def test_exports_are_imported_with_the_same_columns(data: st.DataObject) -> None:
    ids = st.text(max_size=2)
    years = st.none() | st.integers(2018, 2022)
    rows = data.draw(st.lists(st.tuples(ids, ids, years), min_size=1, max_size=6))
    alone = data.draw(st.lists(ids, max_size=3))
    suffix = data.draw(st.sampled_from([".parquet", ".arrow"]))
    sources, targets, values = zip(*rows, strict=True)
    table = pa.table(
        {
            "source": pa.array(sources, pa.string()),
            "target": pa.array(targets, pa.string()),
            "year": pa.array(values, pa.int16()),
        }
    )
    names = sorted({*sources, *targets})
    people = pa.table({"vertex": pa.array(names), "age": pa.array(range(len(names)), pa.int8())})
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with bf.Graph.from_arrow(table, edge_columns="year", vertex_columns=people) as whole:
            # A part has vertices without edges.
            graph = whole.filter(edges=f"not source in {tuple(alone)!r}" if alone else "1 == 1")
        with graph:
            graph.export(place / f"edges{suffix}", columns="year")
            pq.write_table(graph.vertex_rows().read_all(), place / "people.parquet")
            with bf.read(
                place / f"edges{suffix}",
                edge_columns="year",
                vertex_columns=place / "people.parquet",
            ) as again:
                assert list(again) == list(graph)
                assert again.edge_rows().read_all() == graph.edge_rows().read_all()
                assert again.vertex_rows().read_all() == graph.vertex_rows().read_all()


def test_columns_are_exported_to_files_that_hold_them(path: Path, tmp_path: Path) -> None:
    succeed("export", path, tmp_path / "out.parquet", "--columns", "year", "--quiet")
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.column_names == ["source", "target", "weight", "year"]
    said = refuse(USAGE, "export", path, tmp_path / "out.txt", "--columns", "year")
    assert "apply to parquet and arrow only" in said or "applies to parquet and arrow" in said
    assert "no column note" in refuse(
        *(USAGE, "export", path, tmp_path / "no.parquet", "--columns", "note")
    )
    with bf.Graph.open(path) as graph:
        graph.add_vertex_columns(pa.table({"vertex": [2], "name": ["ann"]}))
    succeed("columns", path, "-o", tmp_path / "people.csv", "--quiet")
    assert (tmp_path / "people.csv").read_text().split() == ["vertex,name", '2,"ann"', "5,", "7,"]
    assert "already exists" in refuse(USAGE, "columns", path, "-o", tmp_path / "people.csv")


class Sums(bf.Program):
    """The sum of a column over the edges to a vertex, and their number."""

    def __init__(self, values: Any, *, is_weighted: bool) -> None:
        self.values, self.is_weighted = values, is_weighted

    def initial_state(self, vertex: Any) -> Any:
        return [0, 0]

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        edge = (source.id, target, weight) if self.is_weighted else (source.id, target)
        return self.values[edge]

    def collect(self, vertex: Any, signals: list[Any]) -> Any:
        return [vertex.state[0] + sum(signals), vertex.state[1] + len(signals)]


@pytest.mark.parametrize("store", ["memory", "bytes", "file:PATH", "kv:PATH"])
@pytest.mark.parametrize("directed", [True, False])
def test_programs_see_columns_of_edges(tmp_path: Path, store: str, directed: bool) -> None:
    rng = np.random.default_rng(4)
    pairs = [(one // 40, one % 40) for one in rng.permutation(1600)[:700].tolist()]
    if not directed:
        pairs = [(a, b) for a, b in pairs if a <= b]
    # Every pair has two edges, whose weights differ.
    names = [[f"v{end:02}" for end in ends] for ends in zip(*pairs, strict=True)]
    table = pa.table(
        {
            "source": names[0] * 2,
            "target": names[1] * 2,
            "weight": [0.5] * len(pairs) + [2.0] * len(pairs),
            "amount": rng.integers(0, 1 << 40, 2 * len(pairs)),
        }
    )
    path = tmp_path / "g.brimful"
    options: dict[str, Any] = {"edge_columns": "amount", "undirected": not directed}
    with bf.Graph.from_arrow(table, path=path, **options) as graph:
        values = graph.edge_values("amount")
        assert len(values) == graph.edges
        url = store.replace("PATH", str(tmp_path / "vertices"))
        program = Sums(pickle.loads(pickle.dumps(values)), is_weighted=True)
        found = bf.run(graph, program, weighted=True, store=url, max_supersteps=1)
        expected = {vertex: [0, 0] for vertex in graph}
        for source, target, _, amount in zip(*table.to_pydict().values(), strict=True):
            ends = {target} if directed else {source, target}
            for end in ends:
                expected[end] = [expected[end][0] + amount, expected[end][1] + 1]
        assert dict(found) == expected


def test_values_of_edges_are_looked_up_by_ends(tmp_path: Path) -> None:
    rows = {"source": [1, 1, 2, 3, 3], "target": [2, 2, 1, 3, 4], "year": [7, 8, 9, None, 6]}
    with bf.Graph.from_arrow(pa.table(rows), edge_columns="year") as graph:
        years = graph.edge_values("year")
        assert [years[2, 1], years[3, 3], years[3, np.int64(4)]] == [9, None, 6]
        assert (years.all(1, 2), years.all(4, 3), years.all("1", 2)) == ([7, 8], [], [])
        with pytest.raises(bf.NotFoundError, match="no edge from 4 to 3"):
            years[4, 3]
        with pytest.raises(bf.UsageError, match=r"2 edges from 1 to 2, .*call all\(1, 2\)"):
            years[1, 2]
        for wrong in ("12", (1,), (1, 2, 1.0, 7)):
            with pytest.raises(bf.UsageError, match="an edge is a tuple of source and target"):
                years[wrong]  # type: ignore[index]
        with pytest.raises(bf.UsageError, match="no column month"):
            graph.edge_values("month")
        with pytest.raises(bf.ProgramError, match="2 edges from 1 to 2"):
            bf.run(graph, Sums(years, is_weighted=False))
    with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        for name, reason in (("year", "has no column year of edges"), ("weight", "is not kept")):
            with pytest.raises(bf.UsageError, match=reason):
                graph.edge_values(name)


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize(
    ("first", "later", "row", "found"),
    [
        (pa.array([1, 2], pa.int32()), pa.array([3, 2**40]), 2, f"{2**40} of the type int64"),
        (pa.array([1, 2]), pa.array(["3", "x"]), 2, "x of the type string"),
        (pa.array([[1], [2]]), pa.array([None, 7]), 1, "None of the type int64"),
        (pa.nulls(2), pa.array([1.5, 2.5]), 1, "1.5 of the type double"),
    ],
)
def test_a_value_of_another_type_in_a_later_file_is_named(
    tmp_path: Path, suffix: str, first: pa.Array, later: pa.Array, row: int, found: str
) -> None:
    paths = [tmp_path / f"{name}.{suffix}" for name in ("first", "later")]
    for path, values in zip(paths, (first, later), strict=True):
        table = pa.table({"source": [1, 2], "target": [2, 3], "c": values})
        if suffix == "parquet":
            pq.write_table(table, path)
        else:
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)
    says = (
        f"^{paths[1]}: row {row}, column c: expected a value of the type .* as in {paths[0]}, "
        f"found {found}; convert the column"
    )
    with pytest.raises(bf.InputError, match=says):
        bf.read(paths, edge_columns="c")


@pytest.mark.parametrize("batches", [[], [{"kind": []}], [{"kind": []}, {"kind": ["a"] * 20}]])
def test_groups_without_rows_are_read(batches: list[dict[str, list[str]]], tmp_path: Path) -> None:
    schema, path = pa.schema([("kind", pa.string())]), tmp_path / "table.parquet"
    with pq.ParquetWriter(path, schema, write_page_checksum=True) as writer:
        for batch in batches:
            writer.write_table(pa.table(batch, schema))
    with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:

        class Native:
            path = graph.path

            def table_path(self, table: str) -> str:
                return str(path)

        read = columns.column_batches(Native(), ["kind"])  # type: ignore[arg-type]
        assert sum(batch.num_rows for batch in read) == sum(len(one["kind"]) for one in batches)
