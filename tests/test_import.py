"""Import: formats, counts, ids, weights, real graphs."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import brimful as bf
from command import INPUT, USAGE, names_below, refuse, succeed, write_edges
from edge_files import compress
from nightly import with_nightly

FIELDS = {
    "vertices",
    "edges",
    "arcs",
    "directed",
    "lines",
    "self_loops",
    "duplicates",
    "rejected",
    "seconds",
    "peak_rss_bytes",
    "bytes_on_disk",
    "bytes_per_edge",
}
EDGES = [(1, 2), (1, 3), (2, 3), (3, 3), (1, 2), (7, 1), (5, 7)]


def edges_of(graph: Path) -> list[tuple[int, ...]]:
    """Return the sorted edges of a graph through its Parquet export."""
    out = graph.with_suffix(".edges.parquet")
    succeed("export", graph, out, "--quiet", "--overwrite")
    table = pq.read_table(out)
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_json_has_every_field_and_counts_what_was_read(tmp_path: Path) -> None:
    source = tmp_path / "edges.txt"
    source.write_text("# a comment\n% another\n\n1\t2\n1,3\n2 3\n3  3\n1 2\n7 1\n5 7\n")
    figures = succeed("import", source, tmp_path / "g.brimful", "--json").figures
    assert figures.keys() >= FIELDS
    expected = {
        "vertices": 5,
        "edges": 7,
        "arcs": 7,
        "directed": True,
        "self_loops": 1,
        "duplicates": 1,
        "rejected": 0,
    }
    assert {key: figures[key] for key in expected} == expected
    assert figures["lines"] in (7, 10)
    assert figures["bytes_on_disk"] == sum(
        path.stat().st_size for path in (tmp_path / "g.brimful").rglob("*") if path.is_file()
    )
    assert edges_of(tmp_path / "g.brimful") == sorted(EDGES)


# Compressions are beneath formats: test_formats.py has all of one format.
@pytest.mark.parametrize(("kind", "suffix"), [("txt", ".gz"), ("csv", ".xz"), ("u32", ".zst")])
def test_every_format_and_compression_gives_the_same_edges(
    tmp_path: Path, kind: str, suffix: str
) -> None:
    content = {
        "txt": "".join(f"{source} {target}\n" for source, target in EDGES).encode(),
        "csv": b"source,target\n" + "".join(f"{s},{t}\n" for s, t in EDGES).encode(),
        "u32": b"".join(struct.pack("<II", source, target) for source, target in EDGES),
    }[kind]
    source = tmp_path / f"edges.{kind}{suffix}"
    source.write_bytes(compress(source.name, content))
    succeed("import", source, tmp_path / "g.brimful", "--quiet")
    assert edges_of(tmp_path / "g.brimful") == sorted(EDGES)


@pytest.mark.parametrize("compression", with_nightly(["", ".gz"], [".xz", ".zst", ".bz2"]))
def test_standard_input(tmp_path: Path, compression: str) -> None:
    content = "".join(f"{source} {target}\n" for source, target in EDGES).encode()
    succeed("import", "-", tmp_path / "g.brimful", "--quiet", stdin=compress(compression, content))
    assert edges_of(tmp_path / "g.brimful") == sorted(EDGES)


def test_csv_from_standard_input(tmp_path: Path) -> None:
    content = b"source,target\n" + "".join(f"{s},{t}\n" for s, t in EDGES).encode()
    succeed("import", "-", tmp_path / "g.brimful", "--format", "csv", "--quiet", stdin=content)
    assert edges_of(tmp_path / "g.brimful") == sorted(EDGES)


def test_several_inputs_are_one_graph(tmp_path: Path) -> None:
    first = write_edges(tmp_path / "a.txt", EDGES[:3])
    second = tmp_path / "b.txt.gz"
    second.write_bytes(gzip.compress("".join(f"{s} {t}\n" for s, t in EDGES[3:]).encode()))
    succeed("import", first, second, tmp_path / "g.brimful", "--quiet")
    assert edges_of(tmp_path / "g.brimful") == sorted(EDGES)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_several_tables_are_one_graph(tmp_path: Path, kind: str) -> None:
    def write(name: str, table: pa.Table) -> Path:
        path = tmp_path / f"{name}.{kind}"
        pq.write_table(table, path) if kind == "parquet" else pacsv.write_csv(table, path)
        return path

    for number, part in enumerate((EDGES[:2], EDGES[2:3], EDGES[3:])):
        sources, targets = zip(*part, strict=True)
        write(f"part-{number}", pa.table({"source": sources, "target": targets}))
    succeed("import", tmp_path / f"part-*.{kind}", tmp_path / "g.brimful", "--quiet")
    assert edges_of(tmp_path / "g.brimful") == sorted(EDGES)
    other = write("z", pa.table({"from": [1], "to": [2]}))
    sentence = refuse(INPUT, "import", tmp_path / f"part-0.{kind}", other, tmp_path / "h.brimful")
    assert str(other) in sentence and "are not those of" in sentence
    broken = write("part-9", pa.table({"source": ["1", "x"], "target": ["2", "3"]}))
    if kind == "csv":
        inputs = [tmp_path / "part-0.csv", tmp_path / "part-1.csv", broken]
        sentence = refuse(INPUT, "import", *inputs, tmp_path / "h.brimful", "--quiet")
        assert "part-9.csv:3:1: expected an integer vertex id" in sentence


def test_no_newline_at_the_end_and_carriage_returns(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"1 2\r\n2 3\r\n3 1")
    succeed("import", tmp_path / "a.txt", tmp_path / "g.brimful", "--quiet")
    assert edges_of(tmp_path / "g.brimful") == [(1, 2), (2, 3), (3, 1)]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.int64(), pa.uint64(), pa.string()])
def test_parquet_ids_of_every_type(tmp_path: Path, kind: pa.DataType) -> None:
    sources, targets = zip(*EDGES, strict=True)
    table = pa.table({"source": sources, "target": targets})
    if pa.types.is_string(kind):
        table = pa.table(
            {name: [str(x) for x in table[name].to_pylist()] for name in table.schema.names}
        )
    else:
        table = table.cast(pa.schema([("source", kind), ("target", kind)]))
    pq.write_table(table, tmp_path / "edges.parquet")
    ids = "int" if pa.types.is_string(kind) else "auto"
    command = ("import", tmp_path / "edges.parquet", tmp_path / "g.brimful", "--ids", ids)
    succeed(*command, "--quiet")
    assert edges_of(tmp_path / "g.brimful") == sorted(EDGES)


def test_named_columns_and_weights(tmp_path: Path) -> None:
    table = pa.table(
        {"w": [0.5, 1.25, 3.0], "to": [2, 3, 1], "noise": ["x", "y", "z"], "from": [1, 2, 3]}
    )
    pq.write_table(table, tmp_path / "edges.parquet")
    pacsv.write_csv(table, tmp_path / "edges.csv")
    for name in ("edges.parquet", "edges.csv"):
        graph = tmp_path / f"{name}.brimful"
        options = ["--source", "from", "--target", "to", "--weight", "w"]
        succeed("import", tmp_path / name, graph, *options, "--quiet")
        assert edges_of(graph) == [(1, 2, 0.5), (2, 3, 1.25), (3, 1, 3.0)]


def test_the_third_column_of_an_edge_list_may_be_the_weight(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1 2 0.5\n2 3 1e-3\n3 1 7\n")
    succeed("import", tmp_path / "a.txt", tmp_path / "g.brimful", "--weight", 3, "--quiet")
    assert edges_of(tmp_path / "g.brimful") == [(1, 2, 0.5), (2, 3, 1e-3), (3, 1, 7.0)]


@pytest.mark.parametrize(
    "ids",
    [
        [0, 1, 2**63 - 1],
        [-(2**63), -1, 2**63 - 1],
        [0, 2**63, 2**64 - 1],
        [10**18, 10**18 + 1, 10**18 + 2],
    ],
)
@pytest.mark.parametrize("kind", ["txt", "csv"])
def test_ids_anywhere_in_64_bits_stay_exact(tmp_path: Path, ids: list[int], kind: str) -> None:
    a, b, c = ids
    edges = [(a, b), (b, c), (c, a), (c, c)]
    source = write_edges(tmp_path / f"edges.{kind}", edges)
    if kind == "csv":
        source.write_text("a,b\n" + "".join(f"{s},{t}\n" for s, t in edges))
    succeed("import", source, tmp_path / "g.brimful", "--quiet")
    assert edges_of(tmp_path / "g.brimful") == sorted(edges)
    out = tmp_path / "components.parquet"
    succeed("run", "connected_components", tmp_path / "g.brimful", "-o", out, "--quiet")
    table = pq.read_table(out)
    assert table["vertex"].to_pylist() == sorted(ids)
    assert table["component"].to_pylist() == [min(ids)] * 3
    assert table.schema.field("vertex").type == (pa.uint64() if max(ids) >= 2**63 else pa.int64())
    assert table.schema.field("component").type == table.schema.field("vertex").type


def test_undirected(tmp_path: Path) -> None:
    source = write_edges(tmp_path / "a.txt", EDGES)
    figures = succeed("import", source, tmp_path / "g.brimful", "--undirected", "--json").figures
    assert (figures["edges"], figures["arcs"], figures["directed"]) == (7, 13, False)
    exported = edges_of(tmp_path / "g.brimful")
    assert sorted((min(edge), max(edge)) for edge in exported) == sorted(
        (min(edge), max(edge)) for edge in EDGES
    )
    with bf.Graph.open(tmp_path / "g.brimful") as graph:
        assert graph.neighbors(3) == [1, 2, 3]
        assert graph.neighbors(1) == [2, 2, 3, 7]


def test_undirected_duplicates_are_unordered(tmp_path: Path) -> None:
    source = write_edges(tmp_path / "a.txt", [(1, 2), (2, 1), (3, 4)])
    directed = succeed("import", source, tmp_path / "d.brimful", "--json").figures
    undirected = succeed("import", source, tmp_path / "u.brimful", "--undirected", "--json").figures
    assert (directed["duplicates"], undirected["duplicates"]) == (0, 1)


def test_declared_vertices_exist(tmp_path: Path) -> None:
    source = write_edges(tmp_path / "a.txt", [(1, 2), (9, 1)])
    figures = succeed("import", source, tmp_path / "g.brimful", "--vertices", 5, "--json").figures
    assert figures["vertices"] == 6
    with bf.Graph.open(tmp_path / "g.brimful") as graph:
        assert [vertex in graph for vertex in (0, 4, 5, 9)] == [True, True, False, True]
        assert graph.neighbors(0) == []


@pytest.mark.parametrize(
    ("name", "vertices", "edges", "self_loops"),
    [
        ("soc-Slashdot0902.txt.gz", 82_168, 948_464, 78_303),
        ("wiki-Vote.txt.gz", 7_115, 103_689, 0),
    ],
)
def test_real_graphs_have_the_counts_of_their_sources(
    data: Path, tmp_path: Path, name: str, vertices: int, edges: int, self_loops: int
) -> None:
    figures = succeed("import", data / name, tmp_path / "g.brimful", "--json").figures
    counted = (figures["vertices"], figures["edges"], figures["arcs"], figures["self_loops"])
    assert counted == (vertices, edges, edges, self_loops)
    assert figures["rejected"] == 0
    checked = succeed("verify", tmp_path / "g.brimful", "--json").figures
    assert checked["arcs"] == edges


def test_the_same_input_gives_the_same_bytes_at_any_thread_count_and_budget(
    data: Path, tmp_path: Path
) -> None:
    contents = []
    for number, options in enumerate(
        (["--threads", 1], ["--threads", 2], ["--threads", 4, "--budget", "150M"])
    ):
        graph = tmp_path / f"{number}.brimful"
        succeed("import", data / "soc-Slashdot0902.txt.gz", graph, *options, "--quiet")
        contents.append(
            {
                name: (graph / name).read_bytes()
                for name in sorted(names_below(graph))
                if (graph / name).is_file()
            }
        )
    assert contents[0] == contents[1] == contents[2]


def test_reverse_index(tmp_path: Path) -> None:
    source = write_edges(tmp_path / "a.txt", EDGES)
    succeed("import", source, tmp_path / "g.brimful", "--index", "in,reverse", "--quiet")
    succeed("import", source, tmp_path / "h.brimful", "--quiet")
    with bf.Graph.open(tmp_path / "g.brimful") as graph:
        assert set(graph.native.indexes) == {"in", "reverse"}
    succeed("index", tmp_path / "h.brimful", "in,reverse", "--quiet")
    with bf.Graph.open(tmp_path / "h.brimful") as graph:
        assert set(graph.native.indexes) == {"in", "reverse"}
    succeed("verify", tmp_path / "h.brimful", "--quiet")


def test_what_import_refuses_as_usage(tmp_path: Path) -> None:
    source = write_edges(tmp_path / "a.txt", EDGES)
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    out = tmp_path / "g.brimful"
    before = names_below(tmp_path)
    assert "there is no index 'out'" in refuse(USAGE, "import", source, out, "--index", "out")
    assert ".brimful" in refuse(USAGE, "import", source, tmp_path / "graph")
    refuse(USAGE, "import", source, out, "--source", "a")
    refuse(USAGE, "import", source, tmp_path / "a.csv", out)
    refuse(USAGE, "import", "-", "-", out)
    refuse(USAGE, "import", source, out, "--vertices", "-1")
    refuse(USAGE, "import", source, out, "--budget", "lots")
    for option in (["--on", "id"], ["--unmatched", "fail"]):
        sentence = refuse(USAGE, "import", source, out, *option)
        assert "--on and --unmatched apply to the table of --vertex-columns" in sentence
    table, given = pa.table({"source": [1], "target": [2]}), {"on": "id", "unmatched": "fail"}
    for name, value in given.items():
        for graph in (source, [source], table):
            with pytest.raises(bf.UsageError, match="apply to the table of vertex_columns="):
                bf.read(graph, **{name: value})  # type: ignore[arg-type]
    assert names_below(tmp_path) == before


def test_a_csv_without_a_header_is_not_silently_short(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2\n2,3\n")
    succeed("import", tmp_path / "a.csv", tmp_path / "g.brimful", "--quiet")
    assert edges_of(tmp_path / "g.brimful") == [(1, 2), (2, 3)]


def test_info_shows_the_graph(tmp_path: Path) -> None:
    source = write_edges(tmp_path / "a.txt", EDGES)
    succeed("import", source, tmp_path / "g.brimful", "--quiet")
    figures = succeed("info", tmp_path / "g.brimful", "--json").figures
    assert (figures["vertices"], figures["edges"], figures["arcs"]) == (5, 7, 7)
    assert figures["order"] in ("degree", "external")
    assert figures["isolated"] == 0
    text = succeed("info", tmp_path / "g.brimful").out
    assert "vertices" in text and "order" in text
