"""Saved results: their values, their types, and files that are no results."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import brimful as bf
from brimful.tables import csv_file
from command import (
    INPUT,
    USAGE,
    names_below,
    refuse,
    succeed,
    write_edges,
)
from result_files import FORMATS, written


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_saved_result_is_the_result(rmat: Path, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"levels.{suffix}"
    with bf.Graph.open(rmat) as graph:
        result = bf.bfs(graph, 0)
        result.write(path)
    saved = bf.SavedResult(path)
    assert (saved.column, len(saved)) == ("distance", len(result))
    assert dict(saved) == dict(result) and saved[0] == 0
    # Of a CSV file alone nothing is known of nulls.
    expected = result.to_arrow()
    assert saved.to_arrow().cast(expected.schema).equals(expected)
    assert pa.table(saved).cast(expected.schema).equals(expected)
    for n in (0, 1, 7, 20_000, 2**70):
        assert saved.top(n) == result.top(n)
    with pytest.raises(bf.NotFoundError, match=r"has no vertex -1"):
        saved[-1]
    assert "nobody" not in saved and -1 not in saved and saved.get(2**64 - 1) is None
    copy = tmp_path / "copy.parquet"
    saved.write(copy)
    assert bf.SavedResult(copy).to_arrow().cast(expected.schema).equals(expected)


def test_a_dict_of_a_saved_result_reads_its_values_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = range(200_000)
    saved = bf.SavedResult(written(tmp_path / "many.csv", ids, ids))
    scans, scan = [], bf.SavedResult._scan

    def counted(self: bf.SavedResult, **given: Any) -> Any:
        scans.append(given)
        return scan(self, **given)

    monkeypatch.setattr(bf.SavedResult, "_scan", counted)
    assert dict(saved) == dict(zip(ids, ids, strict=True))
    # One for the keys, and one for the values.
    assert scans == [{}, {}]


@pytest.mark.parametrize(
    "ids",
    [
        ["1", "10", "2"],
        ["1", "2"],
        ["007", "8"],
        ["+1", "2"],
        [*(str(n) for n in range(100_000)), "x"],
        ["", "NA", "null"],
    ],
)
def test_strings_that_look_like_numbers_stay_strings(tmp_path: Path, ids: list[str]) -> None:
    ordered = sorted(ids)
    with bf.Graph.from_arrow(pa.table({"source": ordered, "target": ordered}), ids="string") as g:
        bf.degrees(g).write(tmp_path / "r.csv")
    assert list(bf.SavedResult(tmp_path / "r.csv")) == ordered


def test_digits_in_quotes_are_texts(tmp_path: Path) -> None:
    """Results of a graph whose string ids are digits did not fit their graph."""
    edges = pa.table({"source": ["1", "2"], "target": ["2", "1"]})
    with bf.Graph.from_arrow(edges, ids="string") as graph:
        bf.connected_components(graph).write(tmp_path / "r.csv")
        assert (tmp_path / "r.csv").read_text() == 'vertex,component\n"1","1"\n"2","1"\n'
        saved = bf.SavedResult(tmp_path / "r.csv")
        assert dict(saved) == {"1": "1", "2": "1"}
        with graph.contract(saved) as small:
            assert list(small) == ["1"]
    (tmp_path / "plain.csv").write_bytes(b"vertex,component\r\n1,1\r\n2,1")
    assert dict(bf.SavedResult(tmp_path / "plain.csv")) == {1: 1, 2: 1}
    (tmp_path / "one.csv").write_bytes(b'vertex,component\n"1",1')
    assert dict(bf.SavedResult(tmp_path / "one.csv")) == {"1": 1}


def test_line_ends_within_ids_are_no_ends_of_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_file, "_BLOCK_BYTES", 64)
    ids = sorted(f'{n}\n"quoted",\n' for n in range(50))
    with bf.Graph.from_arrow(pa.table({"source": ids, "target": ids})) as graph:
        bf.degrees(graph).write(tmp_path / "r.csv")
    assert dict(bf.SavedResult(tmp_path / "r.csv")) == dict.fromkeys(ids, 1)
    long = "x" * 200
    written(tmp_path / "long.csv", [long], [1])
    with pytest.raises(bf.InputError, match="a record of more than 64 bytes"):
        len(bf.SavedResult(tmp_path / "long.csv"))


def test_names_of_columns_are_quoted_where_they_must_be(tmp_path: Path) -> None:
    """They were written as they are."""
    names = ["a,b", 'the "c"', "two\nlines", "a\rb", "plain"]
    with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        table = pa.table({"id": [1, 2]} | {name: [number, 7] for number, name in enumerate(names)})
        bf.degrees(graph).write_joined(tmp_path / "r.csv", table, on="id")
    assert (tmp_path / "r.csv").read_bytes().startswith(b'vertex,degree,"a,b","the ""c""",')
    saved = bf.SavedResult(tmp_path / "r.csv")
    saved.write(tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "r.csv").read_bytes()
    expected = {"vertex": [1, 2], "degree": [1, 0]}
    expected |= {name: [number, 7] for number, name in enumerate(names)}
    assert saved.to_arrow().to_pydict() == expected
    assert pd.read_csv(tmp_path / "r.csv").to_dict("list") == expected


def test_line_ends_of_the_first_macs_end_a_header(tmp_path: Path) -> None:
    """The file was one header, and its result empty."""
    (tmp_path / "r.csv").write_bytes(b"vertex,degree\r1,5\r2,6\r")
    assert dict(bf.SavedResult(tmp_path / "r.csv")) == {1: 5, 2: 6}


@pytest.mark.parametrize(
    ("ids", "values"),
    [
        ([-5, 3, 2**62], [1, None, 2**62 + 1]),
        ([3, 2**64 - 1], [1.5, None]),
        ([1, 2, 3], [1, 2, 2.5]),
        ([1, 2], ["a", "b"]),
        ([1, 2, 3], ["007", "7", "-07"]),
        ([1, 2, 3], [0.25, 0, -0.5]),
        ([1, 2, 3], [0.25, math.inf, -math.inf]),
    ],
)
def test_types_of_a_csv_file_are_those_of_all_rows(
    tmp_path: Path, ids: list[int], values: list[Any]
) -> None:
    path = tmp_path / "r.csv"
    path.write_text(
        "vertex,value\n"
        + "".join(
            f"{one},{'' if other is None else other}\n"
            for one, other in zip(ids, values, strict=True)
        )
    )
    assert dict(bf.SavedResult(path)) == dict(zip(ids, values, strict=True))


def test_numbers_beyond_floats_are_refused(tmp_path: Path) -> None:
    """They were infinite."""
    path = tmp_path / "r.csv"
    path.write_text("vertex,value\n1,inf\n2,-3e400\n")
    with pytest.raises(
        bf.InputError, match=r"r\.csv has -3e400 in the column value of vertex 2, a"
    ):
        bf.SavedResult(path)


def test_a_folder_of_files_is_one_result(tmp_path: Path) -> None:
    folder = tmp_path / "ranks"
    folder.mkdir()
    written(folder / "part-1.parquet", [3, 4], [1, 9])
    written(folder / "part-0.parquet", [1, 2], [5, None])
    (folder / "_SUCCESS").touch()
    saved = bf.SavedResult(folder)
    assert dict(saved) == {1: 5, 2: None, 3: 1, 4: 9} and saved.top(2) == [(4, 9), (1, 5)]
    written(folder / "part-2.csv", [5], [1])
    assert "expected files that all end in one of" in refuse(INPUT, "top", folder)


def test_broken_quotes_of_a_result_are_refused(tmp_path: Path) -> None:
    """Each was read as another text: pyarrow joins what follows a quote to the field."""
    path, fine = tmp_path / "r.csv", tmp_path / "fine.csv"
    fine.write_text('vertex,value\na,1\nb"c"",2\n"d,\n""e""",3\n', newline="")
    assert dict(bf.SavedResult(fine)) == {"a": 1, 'b"c""': 2, 'd,\n"e"': 3}
    filler = '"a,\n""b",0\n' * 100_000
    for text, line in (
        ('vertex,value\n"a"b,0.5\nc,1\n', 2),
        ('vertex,value\na,0.5\nb,"1"5\n', 3),
        ('vertex,value\na,0.5\n"b,1\nc,2\n', 3),
        ('vertex,value\n"a,0.5\nb,"1"\n', 2),
        ('vertex,"val"ue\na,0.5\n', 1),
        ('"vertex,value\na,0.5\n', 1),
        (f'vertex,value\n{filler}"a"b,2\n', 200_002),
    ):
        path.write_text(text, newline="")
        with pytest.raises(bf.InputError, match=rf"r\.csv:{line}: a field in quotes"):
            dict(bf.SavedResult(path))
    for verb in (("top", path), ("compare", path, fine)):
        assert "r.csv:200002: a field in quotes is not closed" in refuse(INPUT, *verb)


def test_a_result_that_cannot_be_read_is_shown_as_such(tmp_path: Path) -> None:
    """Debuggers and notebooks call `repr` at any time, and show what it raises as a traceback."""
    path = tmp_path / "r.csv"
    path.write_text("vertex,value\n1,2\n")
    saved = bf.SavedResult(path)
    path.unlink()
    assert repr(saved) == f"<brimful.SavedResult: {path} does not exist; check the path>"
    assert saved._repr_html_().startswith("<p>&lt;brimful.SavedResult: ")
    with pytest.raises(bf.InputError, match="does not exist"):
        dict(saved)


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["x", "y", "x"]).dictionary_encode(),
        pa.array(["x", "y", "x"], pa.string_view()),
        pa.array([1, 2, 1], pa.float16()),
    ],
)
def test_values_of_any_layout_are_ranked(tmp_path: Path, values: pa.Array) -> None:
    path = tmp_path / "r.parquet"
    names = pa.array(["a", "b", "c"], pa.string_view())
    pq.write_table(pa.table({"vertex": names, "value": values}), path)
    shown = succeed("top", path, "--quiet").out.split()
    assert shown[2::2] == ["b", "a", "c"]
    assert bf.SavedResult(path).top(1) == [("b", values[1].as_py())]


def test_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    table = pa.table([[1], [2], [3]], ["vertex", "value", "value"])
    pq.write_table(table, tmp_path / "r.parquet")
    (tmp_path / "r.csv").write_text("vertex,value,value\n1,2,3\n")
    for suffix in ("parquet", "csv"):
        said = refuse(INPUT, "top", tmp_path / f"r.{suffix}")
        assert said.endswith(f"r.{suffix} has more than one column value; rename one")


@pytest.mark.parametrize("suffix", ["parquet", "csv", "arrow"])
@pytest.mark.parametrize("algorithm", ["pagerank", "connected_components", "random_walks"])
def test_a_result_is_not_taken_for_a_graph(tmp_path: Path, algorithm: str, suffix: str) -> None:
    edges, out = write_edges(tmp_path / "e.txt", [(1, 2), (2, 3)]), tmp_path / f"out.{suffix}"
    succeed("run", algorithm, edges, "-o", out, "--quiet")
    before = names_below(tmp_path)
    for verb in (("info",), ("run", "pagerank"), ("plan", "pagerank")):
        sentence = refuse(INPUT, *verb, out)
        assert "is a result with the columns " in sentence and "'brimful top'" in sentence
    with pytest.raises(bf.InputError, match="is a result with the columns "):
        bf.read(out)
    assert names_below(tmp_path) == before
    # The user says that they are edges.
    columns = {"connected_components": ("vertex", "component"), "random_walks": ("walk", "vertex")}
    if algorithm in columns:
        source, target = columns[algorithm]
        with bf.read(out, source=source, target=target) as graph:
            assert graph.edges > 0


@pytest.mark.parametrize("ids", [[2, 1, 3], [1, 1, 2], [9, 10, 1]])
def test_vertices_in_no_order_are_what_they_look_like(tmp_path: Path, ids: list[int]) -> None:
    """Such as a result that was sorted by value; only ids that ascend as texts are texts."""
    path, whole = tmp_path / "sorted.csv", tmp_path / "whole.csv"
    path.write_text("vertex,value\n" + "".join(f"{one},0.5\n" for one in ids))
    whole.write_text("vertex,value\n1,0.5\n2,0.5\n3,0.5\n9,0.5\n10,0.5\n")
    assert dict(bf.SavedResult(path)) == dict.fromkeys(ids, 0.5)
    assert bf.SavedResult(path)[ids[0]] == 0.5
    with pytest.raises(bf.InputError, match="must have each vertex once, in ascending order"):
        bf.compare(path, whole)
    path.write_text("vertex,value\n1,0.5\n10,0.5\n9,0.5\n")
    assert dict(bf.SavedResult(path)) == dict.fromkeys(["1", "10", "9"], 0.5)


def test_what_is_no_result_is_refused(tmp_path: Path) -> None:
    assert "there is no result at" in refuse(INPUT, "top", tmp_path / "missing.csv")
    assert "e.txt does not end in one of these" in refuse(
        USAGE, "top", write_edges(tmp_path / "e.txt", [])
    )
    (tmp_path / "other.csv").write_text("id,value\n1,2\n")
    assert "expected the column vertex" in refuse(INPUT, "top", tmp_path / "other.csv")
    (tmp_path / "cut.parquet").write_bytes(b"PAR1")
    assert "cut.parquet" in refuse(INPUT, "top", tmp_path / "cut.parquet")
    (tmp_path / "ragged.csv").write_text("vertex,value\n1,2\n3\n")
    sentence = refuse(INPUT, "top", tmp_path / "ragged.csv")
    assert "ragged.csv:3: expected 2 fields as in the header, found 1" in sentence
    (tmp_path / "bytes.csv").write_bytes(b"vertex,value\n1,\xff\n")
    sentence = refuse(INPUT, "top", tmp_path / "bytes.csv")
    assert "bytes.csv:2: expected text in UTF-8 in the column value, found '\\udcff'" in sentence
    (tmp_path / "empty.csv").write_text("")
    assert "empty.csv:1: expected the names" in refuse(INPUT, "top", tmp_path / "empty.csv")
