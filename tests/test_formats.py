"""Every input format through the command line: real graphs, directions, names, companions."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pytest

import brimful as bf
from command import INPUT, USAGE, names_below, refuse, succeed
from conftest import ROOT
from test_import import compress, edges_of

MTX = "%%MatrixMarket matrix coordinate pattern "

#: The edges 1-2, 1-3, 2-3 of four vertices in every format: a name, the text, and the graph.
TEXTS = {
    "a.mtx": (MTX + "general\n4 4 3\n1 2\n1 3\n2 3\n", True),
    "s.mtx": (MTX + "symmetric\n4 4 3\n2 1\n3 1\n3 2\n", False),
    "a.metis": ("4 3\n2 3\n1 3\n1 2\n\n", False),
    "a.graph": ("% x\n4 3 0\n2 3\n1 3\n1 2\n\n", False),
    "d.gr": ("c x\np sp 4 3\na 1 2 1\na 1 3 1\na 2 3 1\n", True),
    "p.gr": ("p tw 4 3\n1 2\n1 3\n2 3\n", False),
    "u.jlg": ("4,3,u,x\n1,2\n1,3\n2,3\n", False),
    "d.jlg": ("4,3,d,x\n1,2\n1,3\n2,3\n", True),
    "a.adjlist": ("1 2 3\n2 3\n4\n", True),
}


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_bytes(compress(name, text.encode()))
    return folder / name


def unordered(edges: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    return sorted((min(edge[:2]), max(edge[:2])) for edge in edges)


@pytest.mark.parametrize(
    ("name", "suffix"),
    [(name, "") for name in sorted(TEXTS)]
    + [("a.mtx", suffix) for suffix in (".gz", ".xz", ".zst", ".bz2")],
)
def test_every_format_by_name_and_compression(tmp_path: Path, name: str, suffix: str) -> None:
    text, directed = TEXTS[name]
    source = write(tmp_path, name + suffix, text)
    figures = succeed("import", source, tmp_path / "g.brimful", "--json").figures
    assert (figures["vertices"], figures["edges"], figures["directed"]) == (4, 3, directed)
    assert figures["arcs"] == (3 if directed else 6)
    assert unordered(edges_of(tmp_path / "g.brimful")) == [(1, 2), (1, 3), (2, 3)]
    with bf.Graph.open(tmp_path / "g.brimful") as graph:
        assert 4 in graph and graph.neighbors(4) == []


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_direction_overrides_the_format(tmp_path: Path, name: str) -> None:
    source = write(tmp_path, name, TEXTS[name][0])
    arcs = {}
    for option in ("--directed", "--undirected"):
        graph = tmp_path / f"{option[2:]}.brimful"
        figures = succeed("import", source, graph, option, "--json").figures
        assert figures["directed"] == (option == "--directed")
        arcs[option] = figures["arcs"]
    # METIS lists every edge at both ends: as arcs these are two.
    metis = name in ("a.metis", "a.graph")
    assert arcs == {"--directed": 6 if metis else 3, "--undirected": 6}


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("a.mtx", "auto"),
        ("d.gr", "auto"),
        ("p.gr", "auto"),
        ("u.jlg", "auto"),
        ("a.metis", "metis"),
    ],
)
def test_standard_input_by_content_or_by_format(tmp_path: Path, name: str, named: str) -> None:
    content = gzip.compress(TEXTS[name][0].encode())
    options = [] if named == "auto" else ["--format", named]
    figures = succeed(
        "import", "-", tmp_path / "g.brimful", *options, "--json", stdin=content
    ).figures
    assert (figures["vertices"], figures["edges"]) == (4, 3)


def test_content_decides_where_the_name_does_not(tmp_path: Path) -> None:
    for number, name in enumerate(["a.mtx", "d.gr", "p.gr", "u.jlg"]):
        source = write(tmp_path, f"{number}.txt", TEXTS[name][0])
        figures = succeed("import", source, tmp_path / f"{number}.brimful", "--json").figures
        assert (figures["vertices"], figures["directed"]) == (4, TEXTS[name][1])
    parquet = tmp_path / "edges.dat"
    with bf.Graph.open(tmp_path / "0.brimful") as graph:
        succeed("export", graph.path, parquet, "--format", "parquet", "--quiet")
    figures = succeed("import", parquet, tmp_path / "p.brimful", "--json").figures
    assert figures["edges"] == 3


def test_format_forces(tmp_path: Path) -> None:
    source = write(tmp_path, "p.gr", TEXTS["p.gr"][0])
    sentence = refuse(
        INPUT, "import", source, tmp_path / "g.brimful", "--format", "dimacs", "--quiet"
    )
    assert "p.gr:1:3: expected `sp`" in sentence and "--format pace" in sentence
    sentence = refuse(
        USAGE, "import", source, tmp_path / "g.brimful", "--format", "edgelist", "--quiet"
    )
    assert "p.gr: " in sentence and "p, tw" in sentence


@pytest.mark.parametrize(
    ("name", "vertices", "edges", "directed", "self_loops"),
    [
        ("cnr-2000.graph-txt.gz", 325_557, 3_216_152, True, 87_442),
        ("email-enron.jlg", 36_692, 183_831, False, 0),
        ("astro-ph.graph.gz", 16_706, 121_251, False, 0),
        ("NE.gr.xz", 1_524_453, 1_934_010, False, 0),
        ("NY.gr.xz", 264_346, 365_050, False, 0),
        ("graphalytics-example/example-directed.e", 10, 17, True, 0),
        ("graphalytics-example/example-undirected.v", 9, 12, False, 0),
        ("graphalytics-example/example-undirected.properties", 9, 12, False, 0),
    ],
)
def test_real_graphs_have_the_counts_of_their_sources(
    data: Path,
    tmp_path: Path,
    name: str,
    vertices: int,
    edges: int,
    directed: bool,
    self_loops: int,
) -> None:
    figures = succeed("import", data / name, tmp_path / "g.brimful", "--json").figures
    assert (figures["vertices"], figures["edges"]) == (vertices, edges)
    assert (figures["directed"], figures["self_loops"]) == (directed, self_loops)
    assert figures["arcs"] == (edges if directed else 2 * edges - self_loops)
    assert figures["rejected"] == 0
    checked = succeed("verify", tmp_path / "g.brimful", "--json").figures
    assert checked["arcs"] == figures["arcs"]


def test_graphalytics_edges_weights_and_adjacency_agree(data: Path, tmp_path: Path) -> None:
    folder = data / "graphalytics-example"
    succeed("import", folder / "example-directed.e", tmp_path / "e.brimful", "--quiet")
    lines = (folder / "example-directed.e").read_text().split("\n")
    expected = sorted((int(s), int(t), float(w)) for s, t, w in map(str.split, filter(None, lines)))
    assert edges_of(tmp_path / "e.brimful") == expected
    source = folder / "example-directed-input"
    succeed("import", source, tmp_path / "i.brimful", "--format", "adjacency-ids", "--quiet")
    assert edges_of(tmp_path / "i.brimful") == [edge[:2] for edge in expected]


@pytest.mark.parametrize(
    ("text", "options", "place"),
    [
        ("1,2,3,7\n2,,,9\n", ["--source", 1, "--target", 2, "--weight", 4], "2:5"),
        ("1\t2\t3\n2\t\t9\n", ["--source", 1, "--target", 3], "2:4"),
        ("1\t2\t3\n\t2\t9\n", ["--source", 1, "--target", 2], "2:2"),
        ("1,2\n1, ,3\n", [], "2:5"),
        ("1,2\n\n ,2 3\n", [], "3:3"),
        ("a,b\nb,,c\n", ["--ids", "string", "--no-header"], "2:4"),
        ("a,b\n,b,c\n", ["--ids", "string", "--no-header"], "2:2"),
        (",source,target,label\n0,1,2,7\n", ["--source", "source", "--target", "target"], "1:2"),
    ],
)
def test_an_empty_column_moves_no_word(
    tmp_path: Path, text: str, options: list[object], place: str
) -> None:
    source = write(tmp_path, "e.txt", text)
    sentence = refuse(INPUT, "import", source, tmp_path / "g.brimful", *options, "--quiet")
    assert f"e.txt:{place}: expected" in sentence and "--format csv" in sentence


def test_empty_columns_at_the_end_are_ignored(tmp_path: Path) -> None:
    source = write(tmp_path, "e.txt", "1,2,,\r\n  2 , 3,\r\n,,,\r\n3\t\t1\r\n4 5")
    succeed("import", source, tmp_path / "g.brimful", "--quiet")
    assert edges_of(tmp_path / "g.brimful") == [(1, 2), (2, 3), (3, 1), (4, 5)]


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("e.txt", "1 2\r3 4\r", "1:4"),
        ("e.txt", "# a\r1 2\r3 4\n", "1:4"),
        ("e.txt", "1 2\n3 4\n# a\r5 6\n7 8\n", "3:4"),
        ("e.adj", "1 2 3\r2 3\n", "1:6"),
    ],
)
def test_line_ends_of_a_carriage_return_alone_are_refused(
    tmp_path: Path, name: str, text: str, place: str
) -> None:
    source = write(tmp_path, name, text)
    format = "adjacency-ids" if name == "e.adj" else "edgelist"
    options = ["--format", format, "--on-error", "skip", "--quiet"]
    sentence = refuse(INPUT, "import", source, tmp_path / "g.brimful", *options)
    assert f"{name}:{place}: expected a line end of LF or CRLF" in sentence


@pytest.mark.parametrize(
    ("file", "text", "found"),
    [
        ("g.v", "1\n2\n", "expected 3 vertices, as the properties say, found 2"),
        ("g.e", "1 2\n", "expected 2 edges, as the properties say, found 1"),
        ("g.e", "", "expected 2 edges, as the properties say, found 0"),
        ("g.v", "1\r2\r3\r", "expected a line end of LF or CRLF"),
    ],
)
def test_files_of_graphalytics_have_the_counts_of_the_properties(
    tmp_path: Path, file: str, text: str, found: str
) -> None:
    write(tmp_path, "g.v", "1\n2\n3\n")
    write(tmp_path, "g.e", "1 2\n2 3\n")
    write(tmp_path, "g.properties", "graph.g.meta.vertices 3\ngraph.g.meta.\\\n   edges: 2\n")
    succeed("import", tmp_path / "g.e", tmp_path / "g.brimful", "--quiet")
    write(tmp_path, file, text)
    sentence = refuse(INPUT, "import", tmp_path / "g.e", tmp_path / "h.brimful", "--quiet")
    assert file in sentence and found in sentence


def graphalytics(folder: Path, properties: str | None) -> None:
    # Vertex 2**63 + 5 has no edge; ids are sparse, so that none of them fits a bitmap.
    (folder / "g.v").write_text(f"{2**63 + 5}\n10\n20\n30\n77\n{2**63}\n")
    (folder / "g.e").write_text(f"10 20 1.5\n20 30 2.5\n10 {2**63} 3.5\n")
    if properties is not None:
        (folder / "g.properties").write_text(properties)


@pytest.mark.parametrize("budget", ["auto", "120M"])
def test_graphalytics_vertices_of_any_64_bits(tmp_path: Path, budget: str) -> None:
    graphalytics(tmp_path, None)
    options = ["--budget", budget, "--weight", 3, "--json"]
    figures = succeed("import", tmp_path / "g.e", tmp_path / "g.brimful", *options).figures
    assert (figures["vertices"], figures["edges"], figures["directed"]) == (6, 3, True)
    with bf.Graph.open(tmp_path / "g.brimful") as graph:
        ids = [2**63 + 5, 10, 20, 30, 77, 2**63]
        assert all(vertex in graph for vertex in ids) and 11 not in graph
        assert graph.degree(2**63 + 5) == 0 and graph.neighbors(10) == [20, 2**63]
    assert edges_of(tmp_path / "g.brimful")[0] == (10, 20, 1.5)


def test_graphalytics_properties(tmp_path: Path) -> None:
    graphalytics(tmp_path, "graph.g.directed = false\ngraph.g.edge-properties.names = weight\n")
    figures = succeed("import", tmp_path / "g.v", tmp_path / "u.brimful", "--json").figures
    assert (figures["directed"], figures["weighted"]) == (False, True)
    figures = succeed(
        "import", tmp_path / "g.e", tmp_path / "g.v", tmp_path / "d.brimful", "--directed", "--json"
    ).figures
    assert (figures["directed"], figures["edges"]) == (True, 3)
    (tmp_path / "g.properties").write_text("graph.g.directed = false\n")
    sentence = refuse(INPUT, "import", tmp_path / "g.e", tmp_path / "x.brimful", "--quiet")
    assert "g.e:1:7: expected the end of the line" in sentence
    (tmp_path / "g.v").unlink()
    sentence = refuse(
        INPUT, "import", tmp_path / "g.e", tmp_path / "x.brimful", "--format", "graphalytics"
    )
    assert "needs" in sentence and "g.v next to it" in sentence


def test_an_edge_file_alone_is_an_edge_list(tmp_path: Path) -> None:
    (tmp_path / "g.e").write_text("1 2\n2 3\n")
    assert (
        succeed("import", tmp_path / "g.e", tmp_path / "g.brimful", "--json").figures["edges"] == 2
    )


def test_a_changed_companion_imports_again(tmp_path: Path) -> None:
    graphalytics(tmp_path, "graph.g.directed = true\ngraph.g.edge-properties.names = weight\n")
    assert succeed("info", tmp_path / "g.e", "--json").figures["vertices"] == 6
    (tmp_path / "g.v").write_text(f"1\n2\n3\n10\n20\n30\n{2**63}\n")
    outcome = succeed("info", tmp_path / "g.e", "--json")
    assert outcome.figures["vertices"] == 7 and "belongs to it" in outcome.err


def test_webgraph(tmp_path: Path) -> None:
    for number in range(3):
        content = (ROOT / "fuzz" / "corpus" / "webgraph" / str(number)).read_bytes()
        properties, graph = content.split(b"\n\n", 1)
        (tmp_path / f"{number}.graph").write_bytes(graph)
        (tmp_path / f"{number}.properties").write_bytes(properties)
        out = tmp_path / f"{number}.brimful"
        figures = succeed("import", tmp_path / f"{number}.graph", out, "--json").figures
        assert figures["vertices"] == 40
        assert f"arcs={figures['edges']}" in properties.decode()
        by_properties = tmp_path / f"{number}p.brimful"
        succeed("import", tmp_path / f"{number}.properties", by_properties, "--quiet")
        assert edges_of(by_properties) == edges_of(out)
    (tmp_path / "0.graph").write_bytes(graph[:5])
    sentence = refuse(INPUT, "import", tmp_path / "0.graph", tmp_path / "x.brimful", "--quiet")
    assert "0.graph: at bit" in sentence and "in the list of vertex" in sentence
    refuse(USAGE, "import", tmp_path / "1.graph", tmp_path / "2.graph", tmp_path / "x.brimful")
    refuse(USAGE, "import", "-", tmp_path / "x.brimful", "--format", "webgraph", stdin=b"x")


def test_patterns_are_expanded_in_order(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"part-{number:02}.txt").write_text(f"{number} {number + 1}\n")
    (tmp_path / "odd[1].txt").write_text("100 101\n")
    figures = succeed("import", tmp_path / "part-*.txt", tmp_path / "g.brimful", "--json").figures
    assert (figures["edges"], figures["vertices"]) == (12, 13)
    with bf.read(tmp_path / "part-0?.txt") as graph:
        assert graph.edges == 10
    # An earlier import has left a graph directory beside the file.
    bf.read(tmp_path / "part-00.txt").close()
    with bf.read(tmp_path / "part-00.tx*") as graph:
        assert graph.edges == 1
    # A name that exists is a name, whatever its characters.
    succeed("import", tmp_path / "odd[1].txt", tmp_path / "o.brimful", "--quiet")
    before = names_below(tmp_path)
    assert "no file matches" in refuse(INPUT, "import", tmp_path / "x*.txt", tmp_path / "x.brimful")
    assert "directory" in refuse(INPUT, "import", tmp_path / "?.brimful", tmp_path / "x.brimful")
    assert names_below(tmp_path) == before


def test_files_of_one_graph_agree(tmp_path: Path) -> None:
    general = write(tmp_path, "a.mtx", TEXTS["a.mtx"][0])
    symmetric = write(tmp_path, "s.mtx", TEXTS["s.mtx"][0])
    larger = write(tmp_path, "l.mtx", MTX + "general\n9 9 1\n9 1\n")
    sentence = refuse(INPUT, "import", general, symmetric, tmp_path / "g.brimful", "--quiet")
    assert "s.mtx: its edges are undirected and those of" in sentence
    figures = succeed("import", general, larger, tmp_path / "g.brimful", "--json").figures
    assert (figures["vertices"], figures["edges"]) == (9, 4)


def test_vertices_add_to_a_header(tmp_path: Path) -> None:
    source = write(tmp_path, "a.mtx", TEXTS["a.mtx"][0])
    for option, expected in ((0, 4), (3, 5), (10, 10)):
        graph = tmp_path / f"{option}.brimful"
        figures = succeed("import", source, graph, "--vertices", option, "--json").figures
        assert figures["vertices"] == expected


def test_more_vertices_than_the_disk_holds_are_refused(tmp_path: Path) -> None:
    source = write(tmp_path, "a.gr", f"p tw {10**18} 1\n1 2\n")
    sentence = refuse(INPUT, "import", source, tmp_path / "g.brimful", "--quiet")
    assert f"{source}: {10**18} vertices are declared" in sentence
    edges = write(tmp_path, "a.txt", "1 2\n")
    refuse(INPUT, "import", edges, tmp_path / "g.brimful", "--vertices", 10**18, "--quiet")
    assert names_below(tmp_path) == {"a.gr", "a.txt"}


def test_a_graph_of_vertices_alone(tmp_path: Path) -> None:
    source = write(tmp_path, "a.mtx", MTX + "general\n3 3 0\n")
    figures = succeed("import", source, tmp_path / "g.brimful", "--json").figures
    assert (figures["vertices"], figures["edges"]) == (3, 0)
    succeed("run", "pagerank", tmp_path / "g.brimful", "--quiet")


def test_a_hub_longer_than_many_chunks(tmp_path: Path) -> None:
    n = 600_000
    hub = " ".join(str(target) for target in range(1, n))
    source = write(tmp_path, "a.graph-txt", f"{n}\n{hub}\n" + "0\n" * (n - 1))
    assert source.stat().st_size > 5 << 20
    figures = succeed("import", source, tmp_path / "g.brimful", "--json").figures
    assert (figures["vertices"], figures["edges"]) == (n, 2 * (n - 1))
    broken = source.read_text().replace(" 599999\n", " 599999 x\n", 1)
    source.write_text(broken)
    sentence = refuse(INPUT, "import", source, tmp_path / "x.brimful", "--quiet")
    assert f"a.graph-txt:2:{len(hub) + 2}: expected an integer vertex id" in sentence


def test_truncated_bzip2(tmp_path: Path) -> None:
    whole = bz2.compress("".join(f"{n} {n * n}\n" for n in range(100_000)).encode())
    (tmp_path / "a.txt.bz2").write_bytes(whole[: len(whole) // 2])
    sentence = refuse(INPUT, "import", tmp_path / "a.txt.bz2", tmp_path / "g.brimful", "--quiet")
    assert "a.txt.bz2" in sentence


LINE = "correct the line, or leave such lines out with --on-error skip"
WEIGHTED = "graph.g.edge-properties.names = weight\n"


@pytest.mark.parametrize(
    ("vertices", "edges", "properties", "message"),
    [
        ("1\nx\n", "1 2\n", "", 'g.v:2:1: expected an integer vertex id, found "x"; ' + LINE),
        (
            "1\n18446744073709551616\n",
            "1 2\n",
            "",
            'g.v:2:1: expected a vertex id between -2^63 and 2^64-1, found "18446744073709551616"; '
            + LINE,
        ),
        (
            "1\n",
            "1\n",
            "",
            "g.e:1:2: expected two vertex ids on a line, found the end of the line; " + LINE,
        ),
        (
            "1\n2\n",
            "1 2\n1 2 0.5\n",
            "",
            "g.e:2:5: expected the end of the line after source and target, as in the lines "
            'before, found "0.5"; ' + LINE,
        ),
        (
            "1\n",
            "1 2\n",
            WEIGHTED,
            "g.e:1:4: expected a finite number as weight, as in the first line, found the end of "
            "the line; " + LINE,
        ),
        (
            "1\n",
            "1 2 3 4\n",
            WEIGHTED,
            'g.e:1:7: expected the end of the line after source, target and weight, found "4"; '
            + LINE,
        ),
        (
            "1\n",
            "1 2\n",
            "# x\ngraph.g.directed = yes\n",
            'g.properties:2:1: expected `true` or `false` as `directed`, found "yes"; correct the '
            "properties",
        ),
    ],
)
def test_broken_graphalytics_files(
    tmp_path: Path, vertices: str, edges: str, properties: str, message: str
) -> None:
    (tmp_path / "g.v").write_text(vertices)
    (tmp_path / "g.e").write_text(edges)
    (tmp_path / "g.properties").write_text(properties)
    sentence = refuse(INPUT, "import", tmp_path / "g.e", tmp_path / "g.brimful", "--quiet")
    assert sentence == f"brimful: {tmp_path}/{message}"


@pytest.mark.parametrize("length", [1, 4, 7, 9, 15, 1023])
def test_broken_pairs(tmp_path: Path, length: int) -> None:
    (tmp_path / "a.u32").write_bytes(bytes(length))
    for name, content in (("a.u32", bytes(length)), ("a.u32.gz", gzip.compress(bytes(length)))):
        (tmp_path / name).write_bytes(content)
        sentence = refuse(INPUT, "import", tmp_path / name, tmp_path / "g.brimful", "--quiet")
        assert sentence == (
            f"brimful: {tmp_path}/{name}: a length of {length} byte{'s' * (length > 1)} is not a "
            "whole number of 8-byte pairs; the file was cut or is of another format"
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("source,target\n1,b\n", '2:3: expected ID, found "b"'),
        ("source,target\n1,2\n,2\n", "3:1: expected ID, found an empty field"),
        ("source,target\n1,2.5\n", '2:3: expected ID, found "2.5"'),
        (
            "source,target\n18446744073709551616,2\n",
            '2:1: expected a vertex id between -2^63 and 2^64-1, found "18446744073709551616"',
        ),
        (
            "source,target,weight\n1,2,1\n1,2,inf\n",
            '3:5: expected a finite number as weight, found "inf"',
        ),
        (
            "source,target,weight\n1,2,nan\n",
            '2:5: expected a finite number as weight, found "nan"',
        ),
        (
            "source,target,weight\n1,2\n",
            '2:1: expected 3 columns, as the first line has, found "1,2"',
        ),
    ],
)
def test_broken_csv_rows(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    sentence = refuse(INPUT, "import", tmp_path / "a.csv", tmp_path / "g.brimful", "--quiet")
    hint = "text is taken as it is with --ids string"
    message = message.replace("ID", f"an integer vertex id ({hint})")
    assert sentence == f"brimful: {tmp_path}/a.csv:{message}; {LINE}"
