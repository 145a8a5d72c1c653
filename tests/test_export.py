"""What is exported is the graph: read back by readers that are not brimful's, and by brimful."""

from __future__ import annotations

import gzip
import lzma
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io

import brimful as bf
from command import USAGE, names_below, refuse, smallest, succeed
from nightly import with_nightly

Edge = tuple[int, int, float]


@dataclass(frozen=True)
class Graph:
    """A small graph; edges of one without direction are sorted pairs. No weights: None."""

    vertices: frozenset[int]
    edges: Counter[tuple[int, int, float | None]]
    directed: bool


def graph(
    vertices: set[int], edges: list[tuple[int, int, float | None]], *, directed: bool
) -> Graph:
    return Graph(
        frozenset(vertices),
        Counter(edge if directed else (*sorted(edge[:2]), edge[2]) for edge in edges),
        directed,
    )


def read_graphalytics(path: Path) -> Graph:
    """A reader of the LDBC's specification, written for this test."""
    properties: dict[str, str] = {}
    for line in path.with_suffix(".properties").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            key, _, value = line.partition("=")
            properties[key.strip().removeprefix(f"graph.{path.stem}.")] = value.strip()
    assert properties["vertex-file"] == path.stem + ".v"
    assert properties["edge-file"] == path.stem + ".e"
    vertices = [int(line) for line in path.with_suffix(".v").read_text().splitlines()]
    weighted = "edge-properties.names" in properties
    edges: list[tuple[int, int, float | None]] = []
    for line in path.with_suffix(".e").read_text().splitlines():
        source, target, *weight = line.split(" ")
        assert len(weight) == weighted
        edges.append((int(source), int(target), float(weight[0]) if weighted else None))
    assert int(properties["meta.vertices"]) == len(vertices) == len(set(vertices))
    assert int(properties["meta.edges"]) == len(edges)
    return graph(set(vertices), edges, directed=properties["directed"] == "true")


def read_metis(path: Path) -> Graph:
    """A reader of the METIS manual's section 4.1.1, written for this test."""
    header, *lines = [line for line in path.read_text().split("\n") if not line.startswith("%")]
    assert lines.pop() == "", "the last line ends"
    numbers = header.split()
    vertices, count, weighted = int(numbers[0]), int(numbers[1]), numbers[2:] == ["001"]
    assert len(lines) == vertices
    entries: Counter[tuple[int, int, float | None]] = Counter()
    for vertex, line in enumerate(lines, 1):
        fields = [int(field) for field in line.split()]
        neighbors = fields[::2] if weighted else fields
        weights = fields[1::2] if weighted else [None] * len(fields)
        assert neighbors == sorted(set(neighbors)) and vertex not in neighbors
        entries.update((vertex, *pair) for pair in zip(neighbors, weights, strict=True))
    assert all(entries[target, source, weight] == 1 for source, target, weight in entries)
    edges = [edge for edge in entries if edge[0] < edge[1]]
    assert len(edges) == count
    return graph(set(range(1, vertices + 1)), edges, directed=False)


def read_mtx(path: Path) -> Graph:
    """SciPy's reader; of a symmetric file it gives both triangles."""
    directed = "symmetric" not in path.read_text().split("\n", 1)[0]
    weighted = "pattern" not in path.read_text().split("\n", 1)[0]
    matrix = scipy.io.mmread(path)
    rows, columns = matrix.shape
    assert rows == columns
    entries = zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.tolist(), strict=True)
    edges = [
        (row + 1, column + 1, float(value) if weighted else None)
        for row, column, value in entries
        if directed or row >= column
    ]
    return graph(set(range(1, rows + 1)), edges, directed=directed)


READERS: dict[str, tuple[str, Callable[[Path], Graph]]] = {
    "graphalytics": ("out.v", read_graphalytics),
    "metis": ("out.graph", read_metis),
    "mtx": ("out.mtx", read_mtx),
}

#: Vertices 6 and 7 have no edge; 7 is declared only.
SIMPLE = [(1, 2, 3.0), (2, 3, 1.0), (5, 4, 100.0), (1, 5, 7.0)]
#: With self-loops, multi-edges, both directions and weights of every kind.
AWKWARD = [
    *SIMPLE,
    (3, 3, 0.1),
    (3, 3, 0.1),
    (2, 1, -2.5e-300),
    (1, 2, 1e300),
    (1, 2, 3.0),
    (4, 4, 1 / 3),
]


def imported(tmp_path: Path, edges: list[Edge], *options: object, weighted: bool = True) -> Path:
    """Import edges among declared vertices through Graph.from_arrow's equal, the command line."""
    text, out = tmp_path / "in.txt", tmp_path / "g.brimful"
    lines = [f"{s} {t} {w!r}" if weighted else f"{s} {t}" for s, t, w in edges]
    text.write_text("\n".join(["u v w" if weighted else "u v", *lines]) + "\n")
    succeed("import", text, out, *options, "--quiet")
    return out


def expected(edges: list[Edge], vertices: set[int], *, directed: bool, weighted: bool) -> Graph:
    kept = [(s, t, w if weighted else None) for s, t, w in edges]
    return graph(vertices, kept, directed=directed)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", ["graphalytics", "mtx"])
def test_any_graph(tmp_path: Path, name: str, directed: bool, weighted: bool) -> None:
    options = [] if directed else ["--undirected"]
    # Ids 0 to 7: only mtx needs other numbers.
    path = imported(tmp_path, AWKWARD, "--vertices", 8, *options, weighted=weighted)
    out, read = tmp_path / READERS[name][0], READERS[name][1]
    figures = succeed(
        *("export", path, out, "--json"), *(["--renumber"] if name == "mtx" else [])
    ).figures
    assert (figures["format"], figures["edges"]) == (name, len(AWKWARD))
    shift = 1 if name == "mtx" else 0
    shifted = [(s + shift, t + shift, w) for s, t, w in AWKWARD]
    vertices = set(range(shift, 8 + shift))
    assert read(out) == expected(shifted, vertices, directed=directed, weighted=weighted)


@pytest.mark.parametrize("weighted", [False, True])
def test_metis(tmp_path: Path, weighted: bool) -> None:
    path = imported(tmp_path, SIMPLE, "--vertices", 8, "--undirected", weighted=weighted)
    succeed("export", path, tmp_path / "out.metis", "--renumber", "--quiet")
    shifted = [(s + 1, t + 1, w) for s, t, w in SIMPLE]
    assert read_metis(tmp_path / "out.metis") == expected(
        shifted, set(range(1, 9)), directed=False, weighted=weighted
    )


@pytest.mark.nightly
def test_metis_sorts_more_than_memory_holds(tmp_path: Path) -> None:
    path, out = tmp_path / "g.brimful", tmp_path / "out.graph"
    shape = ("--vertices", 200_000, "--edges", 1_000_000, "--undirected")
    succeed("generate", "erdos-renyi", path, *shape, "--quiet")
    export = ("export", path, out, "--renumber")
    budget = smallest(*export)
    figures = succeed(*export, "--budget", budget, "--json").figures
    # Both directions as 8 bytes are 16 MB, of which the smallest budget leaves room for a few.
    assert figures["edges"] == 1_000_000
    assert figures["peak_rss_bytes"] <= int(budget.removesuffix("M")) << 20
    assert names_below(tmp_path) >= {"out.graph"}
    found = read_metis(out)
    succeed("export", path, tmp_path / "out.parquet", "--quiet")
    columns = pq.read_table(tmp_path / "out.parquet").to_pydict()
    pairs = zip(columns["source"], columns["target"], strict=True)
    assert found.edges == Counter((*sorted((s + 1, t + 1)), None) for s, t in pairs)


@pytest.mark.parametrize(
    ("reason", "remedy", "edges", "options"),
    [
        ("no direction", "--undirected", SIMPLE, ["--vertices", 6]),
        ("self-loops", "--self-loops drop", [*SIMPLE, (2, 2, 1.0)], ["--undirected"]),
        ("no parallel edges", "--duplicates drop", [*SIMPLE, (2, 1, 1.0)], ["--undirected"]),
        ("whole numbers", "mtx", [*SIMPLE, (2, 5, 0.5)], ["--undirected"]),
        ("whole numbers", "mtx", [*SIMPLE, (2, 5, 1.5)], ["--undirected"]),
        ("are 0 to 5", "--renumber", SIMPLE, ["--undirected", "--vertices", 6]),
        ("with gaps", "graphalytics", [*SIMPLE, (9, 1, 1.0)], ["--undirected"]),
    ],
)
def test_metis_refuses_what_it_cannot_hold(
    tmp_path: Path, reason: str, remedy: str, edges: list[Edge], options: list[object]
) -> None:
    path = imported(tmp_path, edges, *options)
    before = names_below(tmp_path)
    sentence = refuse(USAGE, "export", path, tmp_path / "out.graph", "--quiet")
    assert reason in sentence and remedy in sentence
    assert names_below(tmp_path) == before
    succeed("export", path, tmp_path / "out.v", "--quiet")


def test_metis_takes_what_was_dropped_or_merged(tmp_path: Path) -> None:
    whole = [(s, t, 4.0) for s, t, _ in AWKWARD]
    options = ("--undirected", "--self-loops", "drop", "--duplicates", "min")
    path = imported(tmp_path, whole, *options)
    succeed("export", path, tmp_path / "out.graph", "--quiet")
    pairs = {(*sorted((s, t)), 4.0) for s, t, _ in whole if s != t}
    assert read_metis(tmp_path / "out.graph").edges == Counter(pairs)


def test_mtx_refuses_other_numbers(tmp_path: Path) -> None:
    path = imported(tmp_path, [(-3, 4, 1.0), (9, 9, 1.0)])
    sentence = refuse(USAGE, "export", path, tmp_path / "out.mtx", "--renumber", "--quiet")
    assert "-3 to 9 with gaps" in sentence and "graphalytics" in sentence
    succeed("export", path, tmp_path / "out.properties", "--quiet")
    assert read_graphalytics(tmp_path / "out.v").vertices == {-3, 4, 9}


def test_renumbering_belongs_to_formats_with_numbers(tmp_path: Path) -> None:
    path = imported(tmp_path, SIMPLE)
    sentence = refuse(USAGE, "export", path, tmp_path / "out.csv", "--renumber", "--quiet")
    assert "--renumber" in sentence


@pytest.mark.parametrize("name", ["my graph.v", "a:b=c.v", "#1!\\.v"])
def test_any_name_of_a_graphalytics_file_is_read_back(tmp_path: Path, name: str) -> None:
    edges = pa.table({"source": [1, 2], "target": [2, 4], "weight": [0.5, 2.0]})
    with bf.Graph.from_arrow(edges, weight="weight", undirected=True) as graph:
        graph.export(tmp_path / name)
    with bf.read(tmp_path / name) as found:
        kind = (found.vertices, found.edges, found.directed, found.weighted)
    assert kind == (3, 2, False, True)
    with bf.Graph.from_arrow(edges) as graph, pytest.raises(bf.UsageError, match="a line end"):
        graph.export(tmp_path / "a\nb.v")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("name", "directed"),
    [
        ("graphalytics", False),
        ("graphalytics", True),
        ("metis", False),
        ("mtx", False),
        ("mtx", True),
    ],
)
def test_export_then_import_gives_the_identical_graph(
    tmp_path: Path, name: str, directed: bool, weighted: bool
) -> None:
    # Hubs and vertices without edges; self-loops and multi-edges where the format has them.
    ends = [(1 + i * i * 31 % 97 % 41 * 7, 1 + i * 17 % 300) for i in range(3000)]
    if name == "metis":
        ends = sorted({(min(s, t), max(s, t)) for s, t in ends if s != t})
    edges = [(s, t, 1.0 + (s * t) % 50) for s, t in ends]
    source = tmp_path / "source.e"
    source.write_text("".join(f"{s} {t} {w}\n" if weighted else f"{s} {t}\n" for s, t, w in edges))
    source.with_suffix(".v").write_text("".join(f"{id}\n" for id in range(1, 321)))
    options = [] if directed else ["--undirected"]
    options += ["--weight", "3"] if weighted else []
    first, second, out = tmp_path / "1.brimful", tmp_path / "2.brimful", tmp_path / READERS[name][0]
    figures = succeed("import", source, first, *options, "--json").figures
    assert (figures["vertices"], figures["edges"]) == (320, len(edges))
    succeed("export", first, out, "--quiet")
    again = succeed("import", out, second, "--json").figures
    same = ("vertices", "edges", "arcs", "directed", "weighted", "self_loops", "duplicates")
    assert {key: again[key] for key in same} == {key: figures[key] for key in same}
    assert graph_files(second) == graph_files(first)


def graph_files(path: Path) -> dict[str, bytes]:
    """The files of a graph that its edges and vertices make."""
    named = ("manifest", "current")
    files = [file for file in path.iterdir() if not file.name.startswith(named)]
    return {file.name: file.read_bytes() for file in files}


# Compressors are beneath formats: all of them with one format, and all formats with one of them.
@pytest.mark.parametrize(
    ("name", "suffix"),
    [("e.txt", "gz"), ("e.txt", "xz"), ("e.txt", "zst")]
    + [(name, "gz") for name in ("e.csv", "e.u32", "e.mtx", "e.metis")],
)
def test_compressed_exports(tmp_path: Path, name: str, suffix: str) -> None:
    weighted = name != "e.u32"
    # csv and pairs hold directed graphs alone, METIS others.
    options = ["--undirected"] if name == "e.metis" else []
    path = imported(tmp_path, SIMPLE, *options, weighted=weighted)
    plain, packed = tmp_path / name, tmp_path / f"{name}.{suffix}"
    for out in (plain, packed):
        succeed("export", path, out, "--quiet")
    if suffix == "gz":
        unpacked = gzip.decompress(packed.read_bytes())
    elif suffix == "xz":
        unpacked = lzma.decompress(packed.read_bytes())
    else:
        assert packed.read_bytes()[:4] == b"\x28\xb5\x2f\xfd"
        if name == "e.txt":
            frame = pl.read_csv(packed, comment_prefix="#", has_header=False, separator="\t")
            assert sorted(frame.rows()) == sorted(
                tuple(float(field) for field in line.split("\t"))
                for line in plain.read_text().splitlines()[1:]
            )
        return
    assert unpacked == plain.read_bytes()


@pytest.mark.parametrize("name", ["e.parquet.gz", "e.arrow.zst", "e.v.xz"])
def test_formats_that_are_not_compressed_as_a_whole(tmp_path: Path, name: str) -> None:
    path = imported(tmp_path, SIMPLE)
    assert "leave ." in refuse(USAGE, "export", path, tmp_path / name, "--quiet")


@pytest.mark.parametrize("suffix", with_nightly(["zst"], ["gz", "xz"]))
def test_compressed_edge_lists_come_back(tmp_path: Path, suffix: str) -> None:
    graph_path, again = tmp_path / "g.brimful", tmp_path / "again.brimful"
    succeed("generate", "rmat", graph_path, "--scale", 14, "--weights", "hash", "--quiet")
    big = tmp_path / f"e.txt.{suffix}"
    succeed("export", graph_path, big, "--budget", "120M", "--quiet")
    figures = succeed("import", big, again, "--vertices", 1 << 14, "--json").figures
    assert figures["edges"] == 16 << 14
    for name in ("in.shards", "degrees", "strengths"):
        assert (again / name).read_bytes() == (graph_path / name).read_bytes()


def test_nothing_is_replaced_without_being_told(tmp_path: Path) -> None:
    path = imported(tmp_path, SIMPLE)
    (tmp_path / "out.e").write_text("mine")
    assert "out.e already exists" in refuse(USAGE, "export", path, tmp_path / "out.v", "--quiet")
    assert names_below(tmp_path) & {"out.v", "out.properties"} == set()
    succeed("export", path, tmp_path / "out.v", "--overwrite", "--quiet")
    assert read_graphalytics(tmp_path / "out.v").edges.total() == len(SIMPLE)


def test_a_graph_of_one_vertex(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("1 1\n")
    succeed(
        *("import", tmp_path / "in.txt", tmp_path / "g.brimful", "--undirected", "--quiet"),
        *("--self-loops", "drop"),
    )
    succeed("export", tmp_path / "g.brimful", tmp_path / "out.graph", "--quiet")
    assert (tmp_path / "out.graph").read_text() == "1 0\n\n"


def test_from_python(tmp_path: Path) -> None:
    with bf.Graph.open(imported(tmp_path, SIMPLE, "--undirected")) as opened:
        assert opened.export(tmp_path / "out.graph") == len(SIMPLE)
        assert opened.export(tmp_path / "named", format="mtx") == len(SIMPLE)
        with pytest.raises(bf.UsageError, match="exists"):
            opened.export(tmp_path / "out.graph")
        with pytest.raises(bf.BudgetError):
            opened.export(tmp_path / "out.graph", overwrite=True, budget="1M")
    assert read_metis(tmp_path / "out.graph") == read_mtx(tmp_path / "named")


def test_an_export_leaves_the_threads_of_pyarrow_alone(tmp_path: Path) -> None:
    """They were one afterwards."""
    threads = pa.cpu_count(), pa.io_thread_count()
    pa.set_cpu_count(3)
    pa.set_io_thread_count(5)
    try:
        with bf.Graph.open(imported(tmp_path, SIMPLE)) as opened:
            opened.export(tmp_path / "out.parquet")
        assert (pa.cpu_count(), pa.io_thread_count()) == (3, 5)
    finally:
        pa.set_cpu_count(threads[0])
        pa.set_io_thread_count(threads[1])


def test_an_unknown_suffix_of_an_output_gets_a_suggestion(tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_text("1 2\n")
    with bf.read(tmp_path / "e.txt") as read:
        with pytest.raises(bf.UsageError, match=r"; did you mean '\.csv'\?"):
            read.export(tmp_path / "edges.cvs")
        with pytest.raises(bf.UsageError, match=r"; did you mean '\.parquet'\?"):
            bf.pagerank(read).write(tmp_path / "ranks.parqet")
