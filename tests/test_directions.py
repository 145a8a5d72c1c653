"""Directions in columns: the column Type of Gephi, in text and in tables."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import brimful as bf
from command import INPUT, USAGE, refuse, succeed
from test_import import edges_of
from text_imports import asked, imported


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
        (mixed, ["--undirected"], False),
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
    for option, directed in (("--directed", True), ("--undirected", False)):
        graph = tmp_path / f"{option}.brimful"
        options = (option, "--json", "--quiet")
        assert succeed("import", one, other, graph, *options).figures["directed"] == directed
    write_types(other, ["Undirected"] * 3)
    figures = succeed("import", one, other, tmp_path / "g.brimful", "--json", "--quiet").figures
    assert not figures["directed"]


def test_an_option_decides_the_direction_of_files_that_state_different_ones(tmp_path: Path) -> None:
    """Every combination was refused, and the remedy was to import the files separately."""
    (tmp_path / "plain.txt").write_text("1 2\n")
    with bf.Graph.from_arrow(pa.table({"source": [1], "target": [3]}), undirected=True) as graph:
        graph.export(tmp_path / "declared.txt")
    header = "%%MatrixMarket matrix coordinate pattern {}\n3 3 1\n"
    for number, (kind, entry) in enumerate((("general", "1 2"), ("symmetric", "3 1"))):
        (tmp_path / f"{number}.mtx").write_text(header.format(kind) + entry + "\n")
    for names, second in ((["plain.txt", "declared.txt"], (1, 3)), (["0.mtx", "1.mtx"], (3, 1))):
        files = [tmp_path / name for name in names]
        sentence = refuse(INPUT, "import", *files, tmp_path / "g.brimful", "--quiet")
        assert "give --directed or --undirected for all files" in sentence
        for option, edges in (
            ("--directed", {(1, 2), second}),
            ("--undirected", {(1, 2), (2, 1), (1, 3), (3, 1)}),
        ):
            succeed("import", *files, tmp_path / "g.brimful", option, "--quiet")
            with bf.Graph.open(tmp_path / "g.brimful") as graph:
                found = {(one, other) for one in graph for other in graph.neighbors(one)}
            assert found == edges
            shutil.rmtree(tmp_path / "g.brimful")


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_directions_in_columns_of_every_kind_of_text(kind: pa.DataType) -> None:
    ends = {"source": [0, 1], "target": [1, 2]}
    for kinds, directed in ((["Undirected"] * 2, False), (["Undirected", None], True)):
        table = pa.table(ends | {"type": pa.array(kinds, kind)})
        with bf.Graph.from_arrow(table) as made:
            assert made.directed == directed
    with pytest.raises(bf.UsageError, match="Directed and Undirected"):
        bf.Graph.from_arrow(pa.table(ends | {"type": pa.array(["Undirected", "Directed"], kind)}))
