"""Results with the columns of a table: `--join`, `Result.join`, DuckDB."""

from __future__ import annotations

import datetime
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import brimful as bf
from brimful.sizes import parse_budget
from command import BUDGET, INPUT, USAGE, brimful, names_below, refuse, smallest, succeed

NAMES = {"id": [4, 1, 9, 2], "name": ["dora", "ann", "zoe", None], "age": [30, 31, 32, 33]}
JOINED = [
    {"vertex": 1, "degree": 1, "name": "ann", "age": 31},
    {"vertex": 2, "degree": 1, "name": None, "age": 33},
    {"vertex": 3, "degree": 0, "name": None, "age": None},
    {"vertex": 4, "degree": 1, "name": "dora", "age": 30},
]


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    path = tmp_path / "edges.txt"
    path.write_text("1 2\n2 3\n4 4\n")
    return path


@pytest.fixture
def degrees(edges: Path) -> bf.Result:
    with bf.read(edges) as graph:
        return bf.degrees(graph)


def table_in(folder: Path, kind: str) -> Path:
    """Write the names to a file of one kind."""
    path, table = folder / f"it's {kind}.{kind}", pa.table(NAMES)
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    else:
        options = pyarrow.csv.WriteOptions(delimiter="\t" if kind == "tsv" else ",")
        pyarrow.csv.write_csv(table, path, options)
    return path


@pytest.mark.parametrize("kind", ["parquet", "csv", "tsv", "arrow"])
def test_files_are_joined(degrees: bf.Result, tmp_path: Path, kind: str) -> None:
    assert degrees.join(table_in(tmp_path, kind), on="id").to_pylist() == JOINED


@pytest.mark.parametrize(
    "make", [pa.table, pl.DataFrame, pd.DataFrame, lambda names: pa.table(names).to_reader()]
)
def test_tables_are_joined(degrees: bf.Result, make: Any) -> None:
    made = make(NAMES)
    joined = degrees.join(made, on="id").to_pylist()
    # pandas makes floats of integers with nulls, and keeps integers without.
    assert joined == JOINED


def test_relations_of_duckdb_and_other_results_are_joined(degrees: bf.Result, edges: Path) -> None:
    names = pa.table(NAMES)
    with duckdb.connect() as connection:
        connection.register("names", names)
        relation = connection.sql("SELECT id, name FROM names WHERE age > 30")
        assert degrees.join(relation, on="id").column("name").to_pylist()[:2] == ["ann", None]
        del relation
    with bf.read(edges) as graph:
        both = bf.pagerank(graph).join(degrees)
    assert both.column_names == ["vertex", "pagerank", "degree"]


def test_rows_without_a_vertex_are_counted(
    degrees: bf.Result, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="brimful"):
        degrees.join(pa.table(NAMES), on="id")
        degrees.join(pa.table({"id": [1, None], "x": [1, 2]}), on="id")
        degrees.join(pa.table({"id": [1], "x": [1]}), on="id")
    assert [record.getMessage() for record in caplog.records] == [
        "1 row of the table is left out, because the result has no such vertex"
    ] * 2


def test_strings_are_joined_by_their_bytes(tmp_path: Path) -> None:
    ids = ["007", "7", "Z", "a", "é"]
    with bf.Graph.from_arrow(pa.table({"source": ids, "target": ids}), ids="string") as graph:
        degrees = bf.degrees(graph)
    (tmp_path / "names.csv").write_text("id,n\n7,1\né,2\n007,3\nZ,4\n")
    joined = degrees.join(tmp_path / "names.csv", on="id")
    assert joined.column("vertex").to_pylist() == ids
    assert joined.column("n").to_pylist() == [3, 1, 4, None, 2]


@pytest.mark.parametrize("ids", [["1", "2"], ["1", "01"], ["2020-01-02", "2020-01-03"]])
def test_strings_may_look_like_other_values(tmp_path: Path, ids: list[str]) -> None:
    path = tmp_path / "names.csv"
    path.write_text(f'id,name\n"{ids[0]}",ann\n{ids[1]},bob\n')
    edges = pa.table({"source": ids, "target": ids[::-1]})
    with bf.Graph.from_arrow(edges, vertex_columns=path, on="id") as graph:
        named = {row["vertex"]: row["name"] for row in graph.vertex_rows().read_all().to_pylist()}
        assert named == dict(zip(ids, ["ann", "bob"], strict=True))
        with pytest.raises(bf.UsageError, match=r"has no column di .*did you mean 'id'"):
            bf.degrees(graph).join(path, on="di")
        path.write_text(f"id,name\n{ids[0]},ann\n{ids[0]},bob\n")
        with pytest.raises(bf.InputError, match=r"more than once \(rows 1 and 2 "):
            bf.degrees(graph).join(path, on="id")


def test_many_rows_keep_their_order_within_the_budget(tmp_path: Path) -> None:
    count = 300_000
    with bf.Graph.from_arrow(
        pa.table({"source": range(count), "target": range(1, count + 1)})
    ) as graph:
        degrees = bf.degrees(graph)
    order = [7919 * n % count for n in range(count)]
    table = pa.table({"vertex": order, "text": [f"name of vertex {n:>20}" for n in order]})
    joined = degrees.join(table, budget="128M")
    assert joined.column("vertex").to_pylist() == list(range(count + 1))
    assert joined.column("text")[5].as_py() == f"name of vertex {5:>20}"
    assert joined.column("text")[count].as_py() is None


def test_a_join_of_long_rows_estimates_a_budget_that_works(tmp_path: Path) -> None:
    ids = [f"{at:>012000}" for at in range(8000)]
    with bf.Graph.from_arrow(
        pa.table({"source": ids, "target": ids[1:] + ids[:1]}), ids="string"
    ) as graph:
        degrees = bf.degrees(graph)
    pq.write_table(pa.table({"vertex": ids[::-1]}), tmp_path / "ids.parquet")
    refusals = list[str]()
    budget = "160M"
    while True:
        try:
            joined = degrees.join(tmp_path / "ids.parquet", on="vertex", budget=budget)
            break
        except bf.BudgetError as error:
            refusals.append(str(error))
            budget = f"{error.needed_bytes >> 20}M"
    assert joined.column("vertex").to_pylist() == ids
    assert sum("by estimate" in text for text in refusals) == 1, refusals


def test_what_cannot_be_joined_is_refused(degrees: bf.Result, tmp_path: Path) -> None:
    def refused(table: Any, message: str, kind: type[Exception] = bf.UsageError) -> None:
        with pytest.raises(kind, match=message):
            degrees.join(table, on="id")

    refused(pa.table({"vertex": [1]}), "the table has no column id .found: vertex.; name .* on=")
    refused(pa.table({"idd": [1]}), "no column id .found: idd.; did you mean 'idd'.; name")
    refused(pa.table({"id": ["1"]}), "result are integers, and the column id .* has strings")
    refused(pa.table({"id": [1.0]}), "has floats")
    refused(pa.table({"id": [[1]]}), "has lists or tuples; convert the column")
    refused(pa.table({"id": pa.array([1], pa.duration("s"))}), "type INTERVAL; convert the column")
    refused(pa.table({"id": [1], "Degree": [1]}), "both the result and the table have a column")
    refused(pa.table({"id": [1], "vertex": [1]}), "both the result and the table have a column")
    refused(5, "must be a path or have __arrow_c_stream__, not int")
    refused(tmp_path / "missing.csv", "there is no table at", bf.NotFoundError)
    refused(pa.table({"id": [2, 1, 2]}), "has 2 more than once", bf.InputError)
    table = pa.table({"id": [1]})
    with pytest.raises(bf.BudgetError, match=r"too small for a join; .* works is \d+M") as small:
        degrees.join(table, on="id", budget="1M")
    degrees.join(table, on="id", budget=small.value.needed_bytes)
    (tmp_path / "x.txt").touch()
    refused(tmp_path / "x.txt", "ends in none of them")
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    refused(tmp_path / "x.parquet", "cannot be joined", bf.InputError)


@pytest.mark.parametrize(
    ("text", "says", "kind"),
    [
        (
            "id,a\n1,5\nx,6\n",
            r"\.csv:3: expected an integer .* id, found 'x'",
            bf.InputError,
        ),
        (
            "id,a\n1.0,5\n",
            r"\.csv:2: expected an integer .* id, found '1\.0'",
            bf.InputError,
        ),
        ("id,a\n,5\n", "the column id of .* has no vertex ids", bf.UsageError),
        ("id,a\n", "the column id of .* has no vertex ids", bf.UsageError),
        ("", r"\.csv:1: expected the names of the columns", bf.InputError),
        ("id,a\n1,\udcff\n", r"\.csv:2: expected text in UTF-8 in the column a", bf.InputError),
    ],
)
def test_wrong_ids_in_text_are_named_by_line(
    degrees: bf.Result, tmp_path: Path, text: str, says: str, kind: type[Exception]
) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(kind, match=says):
        degrees.join(path, on="id")


def test_text_that_differs_from_its_header_is_refused(degrees: bf.Result, tmp_path: Path) -> None:
    """Without `--delimiter`: DuckDB would take one that splits no line, and find no column."""
    path = tmp_path / "names.csv"
    for text, says, kind in (
        ('id,name,n\n1,"a,3\n2,b,4\n', r"names\.csv:2: a field in quotes", bf.InputError),
        ('id,name,n\n1,a,3\n2,"b"c,4\n', r"names\.csv:3: a field in quotes", bf.InputError),
        ("id,name,n\r\n1,a,3,4\n", r"names\.csv:2: expected 3 fields .* found 4", bf.InputError),
        ("id,name,n\n1,a,0.5\n2,b,-1e999\n", r":3: .*column n, found '-1e999'", bf.InputError),
        (
            "id,n,N\n1,2,3\n",
            r"more than one column n, if case is ignored: n \(2\), N \(3\)",
            bf.UsageError,
        ),
        (
            "id,n,n\n1,2,3\n",
            r"more than one column n, if case is ignored: n \(2\), n \(3\)",
            bf.UsageError,
        ),
    ):
        path.write_text(text, newline="")
        with pytest.raises(kind, match=says):
            degrees.join(path, on="id")
    path.write_text("id,name\r\n4,dora\n1,ann\r\n", newline="")
    assert degrees.join(path, on="id")["name"].to_pylist() == ["ann", None, None, "dora"]


def test_only_the_columns_taken_need_types_and_names_of_sql(
    degrees: bf.Result, edges: Path, tmp_path: Path
) -> None:
    halves = pa.array([0.5, 1.5, 2.5, 3.5], pa.float16())
    table = pa.table({**NAMES, "emb": halves, "x": halves, "X": halves})
    path = tmp_path / "names.arrow"
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    unknown = "the column emb has the type halffloat, which DuckDB does not know; convert it, or le"
    for one in (table, path):
        joined = degrees.join(one, on="id", columns="name,age")
        assert joined.to_pylist() == JOINED
        with pytest.raises(bf.InputError, match=unknown):
            degrees.join(one, on="id", columns="emb")
        with pytest.raises(bf.UsageError, match="more than one column x"):
            degrees.join(one, on="id")
    arcs = table.select(["id", "age", "emb"])
    kept: dict[str, Any] = {"source": "id", "target": "age"}
    with bf.Graph.from_arrow(arcs, **kept, edge_columns="age") as graph:
        assert graph.edge_columns.names == ["age"]
    with pytest.raises(bf.InputError, match=unknown):
        bf.Graph.from_arrow(arcs, **kept, edge_columns="emb")
    words = "run", "degrees", edges, "--join", path, "--on", "id", "-o", tmp_path / "joined.csv"
    succeed(*words, "--with", "name")


def test_an_id_that_comes_again_in_another_batch_is_found(tmp_path: Path) -> None:
    """The outcome has more rows than a batch, and the second of two equal ids begins one."""
    count = 70_000
    ids = pa.table({"source": range(count), "target": range(count)})
    with bf.Graph.from_arrow(ids) as graph:
        degrees = bf.degrees(graph)
    for twice in (0, 2047, 8190, 8191, 8192, 65_535, count - 1):
        table = pa.table({"vertex": [*range(count), twice]})
        with pytest.raises(bf.InputError, match=f"has {twice} more than once"):
            degrees.join(table)


def test_a_relation_is_a_view_of_the_result(degrees: bf.Result) -> None:
    with duckdb.connect() as connection:
        relation = degrees.to_duckdb(connection)
        for _ in range(2):
            assert relation.aggregate("sum(degree), count(*)").fetchall() == [(3, 4)]
        del relation
    assert degrees.to_duckdb().filter("degree = 0").fetchall() == [(3, 0)]


@pytest.mark.parametrize("suffix", ["parquet", "csv", "arrow"])
def test_the_command_line_joins(edges: Path, tmp_path: Path, suffix: str) -> None:
    out, table = tmp_path / f"out.{suffix}", table_in(tmp_path, "csv")
    done = succeed(
        *("run", "degrees", edges, "-o", out, "--join", table, "--on", "id", "--json", "--quiet")
    )
    assert done.figures["join"] == {"vertices_without_row": 1, "rows_without_vertex": 1}
    # A row was left out, which is said though nothing else is; DuckDB says nothing of its own.
    sentence = f"1 row of {table} is left out, because the result has no such vertex"
    assert done.err == f"brimful: {sentence}\n"
    saved = bf.SavedResult(out)
    assert saved.to_arrow().to_pylist() == JOINED and saved.column == "degree"
    assert "vertices_without_row" not in json.dumps(
        succeed("run", "degrees", edges, "--json", "--quiet").figures
    )


def test_the_command_line_refuses_before_the_run(edges: Path, tmp_path: Path) -> None:
    table, out = table_in(tmp_path, "csv"), tmp_path / "out.csv"
    run = ("run", "pagerank", edges, "--quiet")
    assert "--join needs an output file" in refuse(USAGE, *run, "--join", table)
    assert "give --join TABLE" in refuse(USAGE, *run, "--on", "id", "-o", out)
    assert "--join needs an output file" in refuse(
        USAGE, *run, "--join", table, "-o", "mongodb://h/d/c?field=x&id=y"
    )
    assert "has no column vertex" in refuse(USAGE, *run, "--join", table, "-o", out)
    odd = tmp_path / os.fsdecode(b"odd\xff.csv")
    odd.write_text("id\n1\n")
    assert "must be UTF-8" in refuse(USAGE, *run, "--join", odd, "--on", "id", "-o", out)
    missing = refuse(INPUT, *run, "--join", tmp_path / "no.csv", "-o", out)
    assert "there is no table" in missing
    table.write_text("id,pagerank\n1,2\n")
    twice = brimful(*run, "--join", table, "--on", "id", "-o", out)
    assert twice.code == USAGE and "both the result and" in twice.err
    table.write_text("id\n1\n1\n")
    for name in ("out.csv", "out.parquet", "out.arrow"):
        twice = brimful(*run, "--join", table, "--on", "id", "-o", tmp_path / name)
        assert twice.code == INPUT and "has 1 more than once" in twice.err, name
        assert "Traceback" not in twice.err and name not in names_below(tmp_path)
    refuse(BUDGET, *run, "--join", table, "--on", "id", "-o", out, "--budget", "100M")
    assert "out.csv" not in names_below(tmp_path)


def test_text_is_joined_in_the_least_memory(tmp_path: Path) -> None:
    ids = np.arange(2_000_000)
    people = tmp_path / "people.csv"
    pyarrow.csv.write_csv(pa.table({"vertex": ids, "score": ids / 7}), people)
    ring = pa.table({"source": ids, "target": np.roll(ids, 1)})
    with bf.Graph.from_arrow(ring) as graph:
        # Three quarters of it are the 96 MiB of the smallest join.
        bf.degrees(graph).write_joined(tmp_path / "o.parquet", people, budget="128M")
    assert pq.read_metadata(tmp_path / "o.parquet").num_rows == len(ids)


@pytest.mark.slow
def test_a_join_stays_within_the_budget(tmp_path: Path) -> None:
    """The smallest budget that a refusal names works, for a table far larger than that."""
    graph, names, out = (tmp_path / name for name in ("g.brimful", "names.parquet", "o.parquet"))
    succeed("generate", "rmat", graph, "--scale", 19, "--edge-factor", 4, "--quiet")
    count = 1 << 19
    order = [7919 * n % count for n in range(count)]
    table = pa.table({"id": order, "text": [f"{n:>400}" for n in order]})
    pq.write_table(table, names, row_group_size=1 << 16)
    assert table.nbytes > 200 << 20
    run = ("run", "degrees", graph, "-o", out, "--join", names, "--on", "id")
    budget = smallest(*run)
    code = (
        "import sys, brimful.cli, brimful._native\n"
        f"sys.argv[1:] = {[*map(str, run), '--budget', budget, '--quiet']!r}\n"
        "assert brimful.cli.main() == 0\n"
        "print(brimful._native.peak_rss_bytes())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # Nothing else is printed, though the query takes long.
    assert int(done.stdout) < (parse_budget(budget) or 0)
    saved = pq.ParquetFile(out)
    assert saved.metadata.num_rows >= count and saved.schema_arrow.names[-1] == "text"


@pytest.mark.parametrize(
    "condition",
    [
        "label == 'a'",
        "label in ('a', 'c')",
        "label not in ('b',)",
        "day == '2026-01-01'",
        "day in ('2026-01-01',)",
        "number in (7, 8.5)",
        "number + 1 == 8",
        "number / 2 == 3.5",
    ],
)
def test_categories_are_compared_as_their_values(edges: Path, condition: str) -> None:
    day = datetime.date(2026, 1, 1)
    columns = {"label": ["a", "b"], "day": [day, None], "number": [7, 6]}
    encoded = {name: pa.array(column).dictionary_encode() for name, column in columns.items()}
    table = pa.table({"vertex": [4, 1], **encoded})
    with bf.read(edges) as graph, graph.filter(table=table, vertices=condition) as part:
        assert list(part) == [4]
