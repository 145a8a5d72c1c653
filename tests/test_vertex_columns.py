"""Columns kept with the vertices of a graph: import, later, in results, checked and swept."""

from __future__ import annotations

import datetime
import gc
import json
import logging
import math
import pickle
import re
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brimful as bf
from brimful import _native
from brimful.io.output import write_table
from brimful.tables.spilled import spilled
from command import BUDGET, CORRUPT, INPUT, USAGE, refuse, succeed

EDGES = pa.table({"source": [5, 9, 5], "target": [9, 7, 2]})
PEOPLE = pa.table(
    {
        "id": [9, 2, 40, 7],
        "name": ["zoe", "ann", "none", None],
        "age": pa.array([33, 31, 1, 35], pa.int8()),
    }
)
ROWS = [
    {"vertex": 2, "name": "ann", "age": 31},
    {"vertex": 5, "name": None, "age": None},
    {"vertex": 7, "name": None, "age": 35},
    {"vertex": 9, "name": "zoe", "age": 33},
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "people.brimful"
    bf.Graph.from_arrow(EDGES, path=place, vertex_columns=PEOPLE, on="id").close()
    return place


def files(path: Path) -> list[str]:
    return sorted(one.name for one in path.iterdir() if one.name != "lock")


def written(folder: Path, kind: str) -> Path:
    """Write the people to a file of one kind."""
    path = folder / f"people.{kind}"
    if kind == "parquet":
        pq.write_table(PEOPLE, path)
    elif kind == "arrow":
        with pa.ipc.new_file(path, PEOPLE.schema) as writer:
            writer.write_table(PEOPLE)
    else:
        options = pyarrow.csv.WriteOptions(delimiter="\t" if kind == "tsv" else ",")
        pyarrow.csv.write_csv(PEOPLE, path, options)
    return path


def test_columns_are_in_the_order_of_vertices(path: Path) -> None:
    with bf.Graph.open(path) as graph:
        assert graph.vertex_columns == pa.schema({"name": pa.string(), "age": pa.int8()})
        assert graph.vertex_rows().read_all().to_pylist() == ROWS
        assert graph.vertex_rows("age").schema.names == ["vertex", "age"]
        assert graph.vertex_rows(["age", "name"]).schema.names == ["vertex", "age", "name"]
        graph.verify()


def test_readers_of_columns_keep_a_temporary_graph() -> None:
    edges = pa.table({"source": [5], "target": [9], "year": [2020]})

    def made() -> bf.Graph:
        return bf.Graph.from_arrow(edges, edge_columns="year", vertex_columns=PEOPLE, on="id")

    of_edges, of_vertices = made().edge_rows(), made().vertex_rows()
    gc.collect()
    assert pa.table(of_edges).to_pydict() == edges.to_pydict()
    assert pa.table(of_vertices)["name"].to_pylist() == [None, "zoe"]


def test_a_graph_without_columns_has_vertices_alone() -> None:
    with bf.Graph.from_arrow(EDGES) as graph:
        assert graph.vertex_columns.names == []
        assert graph.vertex_rows().read_all().to_pydict() == {"vertex": [2, 5, 7, 9]}
        assert graph.info()["format"] == 2
        with pytest.raises(bf.UsageError, match="has no column age of vertices"):
            graph.vertex_rows("age")


@pytest.mark.parametrize("kind", ["parquet", "csv", "tsv", "arrow"])
def test_the_command_line_imports_columns_from_files(tmp_path: Path, kind: str) -> None:
    pq.write_table(EDGES, tmp_path / "edges.parquet")
    people = written(tmp_path, kind)
    shown = succeed(
        *("import", tmp_path / "edges.parquet", tmp_path / "g.brimful", "--json"),
        *("--vertex-columns", people, "--on", "id", "--budget", "400M"),
    )
    figures = json.loads(shown.out.splitlines()[-1])
    assert figures["vertex_columns"] == {
        "vertices_without_row": 1,
        "rows_without_vertex": 1,
        "table": str(people),
    }
    assert f"1 row of {people} is left out, because the graph has no such vertex" in shown.err
    with bf.Graph.open(tmp_path / "g.brimful") as graph:
        rows = graph.vertex_rows().read_all().to_pylist()
        assert rows == ROWS or kind in ("csv", "tsv")
        assert [row["age"] for row in rows] == [row["age"] for row in ROWS]
        assert figures["bytes_on_disk"] == graph.info()["bytes_on_disk"]
    assert not [one for one in tmp_path.iterdir() if one.name.startswith(".")]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_is_read_under_its_own_name(tmp_path: Path, kind: str) -> None:
    """`people[1]` is no pattern for `people1`, and `year=1999` of a folder is no column."""
    folder = tmp_path / "year=1999"
    folder.mkdir()
    for name, year in (("people1", 1), ("people[1]", 2)):
        rows = pa.table({"id": [5], "year": [year]})
        if kind == "csv":
            pyarrow.csv.write_csv(rows, folder / f"{name}.csv")
        else:
            pq.write_table(rows, folder / f"{name}.parquet")
    path = folder / f"people[1].{kind}"
    with bf.read(EDGES, vertex_columns=path, on="id") as graph:
        columns = pa.table(graph.vertex_rows()).to_pydict()
    assert columns == {"vertex": [2, 5, 7, 9], "year": [None, 2, None, None]}


def test_text_keeps_its_fields(tmp_path: Path) -> None:
    """Only double quotes enclose a field, `""` is an empty text, and dates are not guessed."""
    path = tmp_path / "people.csv"
    text = "% people\n\nid,name,day,born\n2,'ann',01/02/2020,2020-01-02\n5,\"\",,\n7,,,\n"
    path.write_text(text + '9,"o\'neil, ""z""",13/01/2020,\n')
    with bf.read(EDGES, vertex_columns=path, on="id") as graph:
        columns = pa.table(graph.vertex_rows()).to_pydict()
    assert columns["name"] == ["'ann'", "", None, 'o\'neil, "z"']
    assert columns["day"] == ["01/02/2020", None, None, "13/01/2020"]
    assert columns["born"] == [datetime.date(2020, 1, 2), None, None, None]
    # A title is no comment.
    path.write_text("People\nid,name\n2,ann\n")
    with pytest.raises(bf.UsageError, match=r"has no column id \(found: People\)"):
        bf.read(EDGES, vertex_columns=path, on="id")
    path.write_text("# a comment\n" * 100_000 + "id,name\n2,ann\n")
    with pytest.raises(bf.InputError, match="more than 1 MiB of comments before its header"):
        bf.read(EDGES, vertex_columns=path, on="id")
    path.write_text('id,name\n2,"ann\n5,bob\n7,"cleo"\n9,dora\n')
    with pytest.raises(bf.BrimfulError):
        bf.read(EDGES, vertex_columns=path, on="id")


def test_what_is_no_time_keeps_its_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB reads some words as times, and drops digits beyond microseconds."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    path = tmp_path / "people.csv"
    path.write_text(
        "id,since,until,at,sharp,short\n"
        "2,2020-01-01,infinity,2020-01-02 03:04:05,2020-01-02 03:04:05.1234567,10:00:00.5\n"
        "5,epoch,2020-01-01,2020-01-02 03:04:05+02:00,2020-01-02 03:04:05,11:00:00.123456000\n"
    )
    with bf.read(EDGES, vertex_columns=path, on="id") as graph:
        types = {field.name: str(field.type) for field in graph.vertex_columns}
        rows = pa.table(graph.vertex_rows())[:2].to_pydict()
    assert rows["since"] == ["2020-01-01", "epoch"]
    assert rows["until"] == ["infinity", "2020-01-01"]
    assert rows["sharp"] == ["2020-01-02 03:04:05.1234567", "2020-01-02 03:04:05"]
    assert types["at"] == "timestamp[us, tz=UTC]" and types["short"] == "time64[us]"
    assert [at.hour for at in rows["at"]] == [3, 1]


@pytest.mark.parametrize("first", [math.inf, math.nan, 0.5])
def test_floats_in_text_may_be_infinite(tmp_path: Path, first: float) -> None:
    far = [first, -math.inf, math.nan, math.inf]
    values = pa.table({"vertex": [2, 5, 7, 9], "far": far, "always": [math.inf] * 4})
    with bf.read(EDGES, vertex_columns=values) as graph:
        write_table(graph.vertex_rows, str(tmp_path / "far.csv"), overwrite=False)
    with bf.read(EDGES, vertex_columns=tmp_path / "far.csv") as graph:
        assert str(pa.table(graph.vertex_rows()).to_pydict()) == str(values.to_pydict())
    (tmp_path / "far.csv").write_text("vertex,far,near\n2,0.5,info\n5,inf,a\n9,1e400,b\n")
    with pytest.raises(bf.InputError, match=r":4: expected a float of 64 bits .* found '1e400'"):
        bf.read(EDGES, vertex_columns=tmp_path / "far.csv")


def test_nothing_is_left_of_an_import_whose_columns_fail(tmp_path: Path) -> None:
    twice = pa.table({"vertex": [9, 5, 9], "age": [1, 2, 3]})
    with pytest.raises(bf.InputError, match=r"9 more than once \(rows 1 and 3\)"):
        bf.Graph.from_arrow(EDGES, path=tmp_path / "g.brimful", vertex_columns=twice)
    with pytest.raises(
        bf.InputError, match=r"no vertex for 1 row of the table, such as id 40 \(row 3\)"
    ):
        bf.Graph.from_arrow(
            *(EDGES,),
            path=tmp_path / "g.brimful",
            vertex_columns=PEOPLE,
            on="id",
            unmatched="fail",
        )
    with pytest.raises(bf.NotFoundError, match="no table at"):
        bf.Graph.from_arrow(EDGES, path=tmp_path / "g.brimful", vertex_columns="none.parquet")
    assert list(tmp_path.iterdir()) == []


def test_an_id_that_occurs_twice_is_named_with_its_rows(tmp_path: Path) -> None:
    rows = {"vertex": [5, *range(100_000, 200_000), 5], "age": [1] * 100_002}
    pq.write_table(pa.table(rows), tmp_path / "twice.parquet")
    with bf.Graph.from_arrow(EDGES) as graph:
        with pytest.raises(bf.InputError, match=r"5 more than once \(rows 1 and 100,002\)"):
            graph.add_vertex_columns(tmp_path / "twice.parquet")
        with pytest.raises(bf.InputError, match="5 more than once; join"):
            graph.add_vertex_columns(pa.table(rows).to_reader())
        assert graph.vertex_columns.names == []


def test_columns_are_added_later_beside_others(path: Path, caplog: Any) -> None:
    with bf.Graph.open(path) as graph, bf.Graph.open(path) as other:
        before = graph.info()["bytes_on_disk"]
        more = pa.table({"vertex": [2, 1], "city": ["Rome", "Oslo"]})
        with caplog.at_level(logging.WARNING, logger="brimful"):
            counts = graph.add_vertex_columns(more)
        assert counts == {"vertices_without_row": 3, "rows_without_vertex": 1}
        assert "1 row of the table is left out" in caplog.text
        rows = graph.vertex_rows().read_all().to_pylist()
        assert rows[0] == {**ROWS[0], "city": "Rome"}
        assert [{**row, "city": None} for row in ROWS[1:]] == rows[1:]
        assert graph.info()["bytes_on_disk"] > before
        with pytest.raises(bf.NotFoundError, match="have been replaced; open the graph again"):
            other.vertex_rows("name").read_all()
    assert [name for name in files(path) if "." in name and name[0] == "v"] == [
        "vertices-3.parquet"
    ]


def test_columns_of_the_same_name_are_replaced_only_if_told(path: Path) -> None:
    ages = pa.table({"vertex": [5], "age": [50]})
    with bf.Graph.open(path) as graph:
        for replace in (False, True):
            with pytest.raises(bf.UsageError, match=r"column age .* from Age only in case"):
                graph.add_vertex_columns(ages.rename_columns(["vertex", "Age"]), replace=replace)
        with pytest.raises(bf.UsageError, match="has a column age of vertices"):
            graph.add_vertex_columns(ages)
        graph.add_vertex_columns(ages, replace=True)
        assert graph.vertex_rows("age").read_all()["age"].to_pylist() == [None, 50, None, None]
        assert graph.vertex_columns.field("age").type == pa.int64()


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"vertex": ["5"], "age": [1]}, "the vertices of the graph are integers"),
        ({"vertex": [5]}, "no column besides that of the ids"),
        ({"id": [5], "age": [1]}, "has no column vertex"),
        ({"vertex": [5], "age": [1], "Age": [2]}, "more than one column age, if case is ignored"),
        ({"vertex": [5], "since": [datetime.timedelta(1)]}, "column since of the table has the ty"),
    ],
)
def test_tables_that_do_not_fit_are_refused(table: dict[str, Any], says: str) -> None:
    with bf.Graph.from_arrow(EDGES) as graph:
        with pytest.raises((bf.UsageError, bf.InputError), match=says):
            graph.add_vertex_columns(pa.table(table))
        assert graph.vertex_columns.names == []


def test_types_that_parquet_lacks_are_refused() -> None:
    edges = pa.table({"source": [5], "target": [9]})
    kept = pa.table({"vertex": [5]})
    for column in (pa.array([{}], pa.struct([])), pa.array([None], pa.month_day_nano_interval())):
        with pytest.raises(bf.InputError, match=r"odd has the type .*Parquet file cannot hold"):
            bf.read(edges, vertex_columns=kept.append_column("odd", column))
        with pytest.raises(bf.InputError, match=r"odd has the type .*Parquet file cannot hold"):
            bf.read(edges.append_column("odd", column), edge_columns="odd")


@pytest.mark.parametrize("file", [False, True])
def test_types_stay(tmp_path: Path, file: bool) -> None:
    moment = datetime.datetime(2026, 11, 25, 4, 5, 6, 7)
    columns = {
        "bool": pa.array([True, None]),
        "u64": pa.array([2**64 - 1, 0], pa.uint64()),
        "i16": pa.array([-5, None], pa.int16()),
        "f32": pa.array([0.1, float("nan")], pa.float32()),
        "date": pa.array([moment.date(), None]),
        "seconds": pa.array([moment.replace(microsecond=0), None], pa.timestamp("s")),
        "nanos": pa.array([1_700_000_000_123_456_789, None], pa.timestamp("ns")),
        "zoned": pa.array([moment, None], pa.timestamp("us", "UTC")),
        "decimal": pa.array([Decimal("1.25"), None], pa.decimal128(9, 2)),
        "bytes": pa.array([b"\0\xff", None]),
        "list": pa.array([[1, None], None], pa.list_(pa.int32())),
        "struct": pa.array([{"a": 1, "b": "x"}, None]),
        "text": pa.array(["é", ""], pa.large_string()),
        "category": pa.array(["a", "b"]).dictionary_encode(),
        "millis": pa.array([1_700_000_000_123, None], pa.timestamp("ms", "Asia/Tokyo")),
        "daytime": pa.array([5, None], pa.time32("ms")),
        "clock": pa.array([5, None], pa.time32("s")),
        "vector": pa.array([[1.5, None], None], pa.list_(pa.float32(), 2)),
    }
    table = pa.table({"vertex": [1, 2], **columns})
    if file:
        pq.write_table(table, tmp_path / "table.parquet")
    with bf.Graph.from_arrow(
        pa.table({"source": [1], "target": [2]}), path=tmp_path / "g.brimful"
    ) as graph:
        graph.add_vertex_columns(tmp_path / "table.parquet" if file else table)
    with bf.Graph.open(tmp_path / "g.brimful") as graph:
        table = graph.vertex_rows().read_all()
    for name, column in columns.items():
        kept = pa.string() if name in ("text", "category") else column.type
        assert table[name].type == kept, name
        expected = pa.chunked_array([column]).cast(kept)
        assert str(table[name].to_pylist()) == str(expected.to_pylist()), name


def test_types_that_parquet_itself_lacks_are_those_of_its_writer(tmp_path: Path) -> None:
    seconds, days = pa.array([1, 2], pa.timestamp("s", "UTC")), pa.array([0, 0], pa.date64())
    table = pa.table({"source": [1, 2], "target": [2, 3], "at": seconds, "day": days})
    pq.write_table(table, tmp_path / "edges.parquet")
    with bf.read(tmp_path / "edges.parquet", edge_columns="at") as graph:
        assert graph.edge_columns.field("at").type == seconds.type
    with pytest.raises(bf.InputError, match=r"day of .* has the type date64\[ms\], which a join"):
        bf.read(tmp_path / "edges.parquet", edge_columns="day")


@given(st.data())
def test_any_table_comes_back(data: st.DataObject) -> None:
    ids = data.draw(st.sampled_from([st.integers(-(2**63), 2**63 - 1), st.text(max_size=3)]))
    edges = data.draw(st.lists(st.tuples(ids, ids), min_size=1, max_size=8))
    values = st.one_of(st.none(), st.floats(allow_nan=False), st.integers(0, 9).map(float))
    rows = data.draw(st.dictionaries(ids, st.tuples(values, st.none() | st.text()), max_size=8))
    kind = pa.string() if isinstance(edges[0][0], str) else pa.int64()
    table = pa.table(
        {
            "key": pa.array(list(rows), kind),
            "x": pa.array([x for x, _ in rows.values()], pa.float64()),
            "word": pa.array([word for _, word in rows.values()], pa.string()),
        }
    )
    sources, targets = zip(*edges, strict=True)
    made = pa.table({"source": pa.array(sources, kind), "target": pa.array(targets, kind)})
    with bf.Graph.from_arrow(made, vertex_columns=table, on="key") as graph:
        found = graph.vertex_rows().read_all().to_pylist()
        vertices = list(graph)
    assert found == [
        {
            "vertex": vertex,
            "x": rows.get(vertex, (None, None))[0],
            "word": rows.get(vertex, (None, None))[1],
        }
        for vertex in vertices
    ]


def test_results_take_columns_along(path: Path, tmp_path: Path) -> None:
    with bf.Graph.open(path) as graph:
        degrees = bf.degrees(graph)
        joined = degrees.join(graph, columns="name")
        assert joined.column_names == ["vertex", "degree", "name"]
        assert joined["name"].to_pylist() == [row["name"] for row in ROWS]
        assert degrees.join(graph).column_names == ["vertex", "degree", "name", "age"]
        degrees.write_joined(tmp_path / "out.csv", graph, columns=["age"])
        assert (tmp_path / "out.csv").read_text().split() == [
            *("vertex,degree,age", "2,0,31", "5,2,", "7,0,35", "9,1,33")
        ]
        with (
            bf.Graph.from_arrow(pa.table({"source": [1, 2], "target": [3, 4]})) as other,
            pytest.raises(bf.UsageError, match="the result does not belong to the graph"),
        ):
            bf.degrees(other).join(graph)
        graph.add_vertex_columns(pa.table({"vertex": [2], "degree": [1]}))
        with pytest.raises(bf.UsageError, match=r"both the result and .* have a column degree"):
            degrees.join(graph)


def test_the_command_line_writes_columns_beside_results(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    succeed("run", "degrees", path, "--with", "age,name", "-o", out, "--budget", "300M")
    assert pq.read_table(out).to_pylist()[0] == {"vertex": 2, "degree": 0, "age": 31, "name": "ann"}
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    succeed(
        *("run", "degrees", path, "--with", "name", "-o", out, "--overwrite"),
        *("--join", tmp_path / "people.parquet", "--on", "id", "--quiet"),
    )
    assert pq.read_table(out).column_names == ["vertex", "degree", "name"]
    assert "has no column nam of vertices (found: name, age); did you mean 'name'?" in refuse(
        USAGE, "run", "degrees", path, "--with", "nam", "-o", tmp_path / "new.parquet"
    )
    assert "--with needs an output file" in refuse(USAGE, "run", "degrees", path, "--with", "name")


def test_the_verb_columns_adds_and_lists(path: Path, tmp_path: Path) -> None:
    assert "columns of vertices: name (string), age (int8)" in succeed("columns", path).out
    (tmp_path / "more.csv").write_text("vertex,city\n5,Rome\n")
    shown = succeed("columns", path, tmp_path / "more.csv", "--json", "--budget", "400M")
    figures = json.loads(shown.out.splitlines()[-1])
    assert figures["columns"] == {"name": "string", "age": "int8", "city": "string"}
    assert (figures["vertices_without_row"], figures["rows_without_vertex"]) == (3, 0)
    assert figures["peak_rss_bytes"] <= figures["budget_bytes"]
    assert "has a column city" in refuse(USAGE, "columns", path, tmp_path / "more.csv")
    assert "name one" in refuse(USAGE, "columns", path, "--on", "id")
    (tmp_path / "strange.csv").write_text("vertex,age\n77,1\n")
    refused = ("columns", path, tmp_path / "strange.csv", "--replace", "--unmatched", "fail")
    assert "strange.csv, such as id 77 (row 1 after the header); leave" in refuse(INPUT, *refused)
    (tmp_path / "strange.csv").write_text("vertex,age\n5,1\n7,2\n5,3\n")
    assert "has 5 more than once (rows 1 and 3 after the header)" in refuse(INPUT, *refused)


def test_a_changed_byte_is_noticed(path: Path) -> None:
    (file,) = path.glob("vertices-*.parquet")
    content = file.read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    for at in range(0, len(content), 37):
        changed = bytearray(content)
        changed[at] ^= 0x10
        file.write_bytes(changed)
        assert "vertices-2.parquet" in refuse(CORRUPT, "verify", path) if at % 5 == 0 else True
        if at >= len(content) - footer:
            with pytest.raises(bf.CorruptError, match="the end of the file fails its checksum"):
                bf.Graph.open(path)
            continue
        with bf.Graph.open(path) as graph, pytest.raises(bf.CorruptError):
            graph.verify()
    file.write_bytes(content[:-1])
    with pytest.raises(bf.CorruptError, match=r"expected .* bytes"):
        bf.Graph.open(path)
    file.unlink()
    with pytest.raises(bf.CorruptError, match="the file is missing"):
        bf.Graph.open(path)


def test_damage_is_noticed_while_columns_are_read(path: Path) -> None:
    (file,) = path.glob("vertices-*.parquet")
    changed = bytearray(file.read_bytes())
    changed[40] ^= 1
    file.write_bytes(changed)
    with bf.Graph.open(path) as graph, pytest.raises(bf.CorruptError, match=r"vertices-2\.parquet"):
        graph.vertex_rows().read_all()


def test_what_a_killed_process_left_is_swept(path: Path) -> None:
    left = path / "vertices-9.parquet"
    left.write_bytes(b"half")
    with bf.Graph.open(path) as graph:
        with pytest.raises(bf.UsageError):
            graph.add_vertex_columns(pa.table({"vertex": [2]}))
        assert not left.exists()
    assert files(path).count("manifest-2") == 1


def test_an_index_keeps_the_columns(path: Path) -> None:
    succeed("index", path, "reverse")
    with bf.Graph.open(path) as graph:
        assert graph.vertex_rows().read_all().to_pylist() == ROWS
        assert graph.in_neighbors(9) == [5]
        assert graph.info()["format"] == 3


def test_the_smallest_budget_is_named_and_works(tmp_path: Path, path: Path) -> None:
    count = 200_000
    ids = [(7919 * n) % count for n in range(count)]
    texts = [f"a name of some length {n:>40}" for n in ids]
    pq.write_table(pa.table({"vertex": ids, "text": texts}), tmp_path / "texts.parquet")
    table = pa.table({"source": range(count), "target": ids})
    bf.Graph.from_arrow(table, path=tmp_path / "big.brimful").close()
    words = ("columns", tmp_path / "big.brimful", tmp_path / "texts.parquet")
    said = refuse(BUDGET, *words, "--budget", "150M")
    named = re.search(r"too small for a join; the smallest that works is (\d+)M", said)
    assert named is not None
    for megabytes in (int(named[1]), 400):
        shown = succeed(*words, "--budget", f"{megabytes}M", "--json", "--replace")
        figures = json.loads(shown.out.splitlines()[-1])
        assert figures["peak_rss_bytes"] <= megabytes << 20
    with bf.Graph.open(tmp_path / "big.brimful") as graph:
        for batch in graph.vertex_rows("text"):
            assert batch["text"][0].as_py() == f"a name of some length {batch['vertex'][0]!s:>40}"


def test_a_new_table_needs_an_open_one(path: Path) -> None:
    graph = _native.Graph.open(str(path))
    with _native.NewTable(graph, "vertices") as new:
        new.close()
        with pytest.raises(bf.UsageError, match="start a new one"):
            new.publish(8)
    with pytest.raises(bf.UsageError, match="there is no table"):
        _native.NewTable(graph, "faces")


def test_values_are_looked_up_by_id(path: Path) -> None:
    with bf.Graph.open(path) as graph:
        names = graph.vertex_values("name")
        assert dict(names) == {row["vertex"]: row["name"] for row in ROWS}
        assert 9 in names and 8 not in names and "9" not in names
        with pytest.raises(bf.NotFoundError, match="no vertex 8"):
            names[8]
        with pytest.raises(bf.UsageError, match="no column city"):
            graph.vertex_values("city")
    ids = ["b", "é", "a"]
    with bf.Graph.from_arrow(
        pa.table({"source": ids, "target": ids}),
        vertex_columns=pa.table({"vertex": ids, "n": [1, 2, 3]}),
    ) as graph:
        assert dict(graph.vertex_values("n")) == {"a": 3, "b": 1, "é": 2}
        assert 7 not in graph.vertex_values("n")


def test_values_stay_on_disk() -> None:
    count = 200_000
    ids = pa.array(range(count))
    with bf.Graph.from_arrow(
        pa.table({"source": ids, "target": ids}),
        vertex_columns=pa.table({"vertex": ids, "text": [f"{'x' * 50}{n}" for n in range(count)]}),
    ) as graph:
        del ids
        before = pa.total_allocated_bytes()
        texts = graph.vertex_values("text")
        held = pa.total_allocated_bytes() - before
        again = pickle.loads(pickle.dumps(texts))
    assert held < 1 << 20, "the column takes 11 MB"
    assert len(texts) == len(again) == count
    for vertex in (0, 65_535, 65_536, 131_072, count - 1):
        assert texts[vertex] == again[vertex] == f"{'x' * 50}{vertex}"
    assert -1 not in texts and count not in texts


def test_a_kill_leaves_no_file_of_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file had a name until the end of the call."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    batch = pa.record_batch({"n": [1, 2]})
    found: list[list[Path]] = []

    def batches() -> Iterator[pa.RecordBatch]:
        yield batch
        found.append(list(tmp_path.iterdir()))

    rows = spilled(batch.schema, batches())
    assert found == [[]] and rows.get_batch(0) == batch


def test_programs_see_columns(path: Path) -> None:
    class Oldest(bf.Program):
        delivery, combiner = "combined", "max"

        def __init__(self, ages: Any) -> None:
            self.ages = ages

        def initial_state(self, vertex: Any) -> Any:
            return self.ages[vertex.id] or 0

        def signal(self, source: Any, target: Any, weight: float) -> Any:
            return source.state

        def collect(self, vertex: Any, signals: list[Any]) -> Any:
            return max([vertex.state, *signals])

    with bf.Graph.open(path) as graph:
        ages = graph.vertex_values("age")
        for store in ("memory", "bytes"):
            assert dict(bf.run(graph, Oldest(ages), store=store)) == {2: 31, 5: 0, 7: 35, 9: 33}


def test_an_input_that_changed_does_not_lose_columns(tmp_path: Path) -> None:
    edges = tmp_path / "edges.txt"
    edges.write_text("1 2\n")
    with bf.read(edges) as graph:
        graph.add_vertex_columns(pa.table({"vertex": [1], "age": [3]}))
    with bf.read(edges) as graph:
        assert graph.vertex_columns.names == ["age"]
    lost = r"would lose the columns of .*edges\.txt\.brimful"
    with pytest.raises(bf.InputError, match=rf"\(the import options have changed\) {lost}"):
        bf.read(edges, undirected=True)
    edges.write_text("1 2\n2 3\n")
    with pytest.raises(bf.InputError, match=rf"\(its size has changed\) {lost}"):
        bf.read(edges)


@pytest.mark.parametrize("kind", ["vertex_columns", "edge_columns"])
def test_the_budget_that_an_import_with_columns_names_works(tmp_path: Path, kind: str) -> None:
    edges = pa.table({"source": [1, 2], "target": [2, 1], "since": [2019, 2020]})
    pq.write_table(edges, tmp_path / "edges.parquet")
    years = pa.table({"vertex": [1, 2], "year": [2019, 2020]})
    columns: Any = {"vertex_columns": years, "edge_columns": ["since"]}[kind]
    ends: dict[str, Any] = {"source": "source", "target": "target", kind: columns}
    for inputs in (tmp_path / "edges.parquet", edges):
        with pytest.raises(bf.BudgetError) as refused:
            bf.read(inputs, budget=1, **ends)
        with bf.read(inputs, budget=refused.value.needed_bytes, **ends) as graph:
            assert graph.edges == 2
