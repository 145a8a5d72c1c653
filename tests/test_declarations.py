"""What an exported file declares of its graph: written, read, compared, refused if damaged.

Also where outputs may go, and what of them reaches a terminal.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import pty
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import brimful as bf
from command import BRIMFUL, BUDGET, INPUT, USAGE, names_below, refuse, succeed, write_edges


@pytest.fixture
def undirected(tmp_path: Path) -> Path:
    """Vertices 10, 20, 30, 40, of which 40 has no edge."""
    out = tmp_path / "u.brimful"
    (tmp_path / "in.v").write_text("10\n20\n30\n40\n")
    (tmp_path / "in.e").write_text("10 20 0.5\n20 30 2\n10 20 0.5\n")
    succeed("import", tmp_path / "in.e", out, "--undirected", "--weight", 3, "--quiet")
    return out


def test_an_edge_list_begins_with_its_declaration(undirected: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    figures = succeed("export", undirected, out, "--json").figures
    assert (figures["edges"], figures["lost"]) == (3, [])
    first, *rest = out.read_text().splitlines()
    words = "directed=no weighted=yes ids=int vertices=4 edges=3 isolated=1"
    assert first == "# brimful: " + words
    assert sorted(rest) == ["# vertex 40", "10\t20\t0.5", "10\t20\t0.5", "20\t30\t2"]
    metadata = {}
    for suffix in ("parquet", "arrow"):
        succeed("export", undirected, tmp_path / f"out.{suffix}", "--quiet")
    metadata["parquet"] = pq.read_schema(tmp_path / "out.parquet").metadata
    with pa.ipc.open_file(tmp_path / "out.arrow") as reader:
        metadata["arrow"] = reader.schema.metadata
        assert None in reader.read_all().column("target").to_pylist()
    assert {name: found[b"brimful"].decode() for name, found in metadata.items()} == {
        "parquet": words,
        "arrow": words,
    }


def test_consecutive_ids_are_declared_together(tmp_path: Path) -> None:
    graph = tmp_path / "g.brimful"
    (tmp_path / "in.txt").write_text("0 1\n")
    succeed("import", tmp_path / "in.txt", graph, "--vertices", 5, "--quiet")
    succeed("export", graph, tmp_path / "out.txt", "--quiet")
    text = (tmp_path / "out.txt").read_text()
    assert text.endswith("isolated=3 first=0\n0\t1\n")
    succeed("export", graph, tmp_path / "out.parquet", "--quiet")
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 1
    for name in ("out.txt", "out.parquet"):
        again = succeed("import", tmp_path / name, tmp_path / f"{name}.brimful", "--json").figures
        assert again["vertices"] == 5
    (tmp_path / "out.txt").write_text(text.replace("0\t1", "0\t7"))
    sentence = refuse(INPUT, "import", tmp_path / "out.txt", tmp_path / "x.brimful", "--quiet")
    assert "a vertex id from 0 to 4" in sentence


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("directed=no", "directed=on", r":1:12: .*directed=no"),
        ("weighted=yes", "weighed=yes", r":1:24: .*weighted"),
        ("edges=3", "edges=4", r":1:1: .*4 edges"),
        ("edges=3", "edges=-3", r":1:\d+: .*edges="),
        ("isolated=1", "isolated=2", r":1:1: .*2 vertices without edges"),
        ("isolated=1", "isolated=9", r":1:\d+: .*no more isolated"),
        ("vertices=4", "vertices=5", r":1:1: .*5 vertices"),
        ("isolated=1", "isolated=1 extra", r":1:\d+: .*first="),
        ("ids=int", "ids=ints", r":1:\d+: .*ids="),
        ("# vertex 40", "# vertex 4o", r":5:10: "),
        ("# vertex 40", "# vertex 40 50", r":5:13: "),
        ("20\t30\t2", "", r":1:1: .*3 edges"),
        ("# brimful:", "9\t9\n# brimful:", r":2:1: .*before its first edge"),
        ("# brimful:", "ann\tbob\n# brimful:", r":2:1: .*before its first edge"),
        ("20\t30\t2", "20\t30", r":\d:6: .*weight"),
    ],
)
def test_what_is_damaged_or_contradicts_is_refused(
    undirected: Path, tmp_path: Path, old: str, new: str, said: str
) -> None:
    out = tmp_path / "out.txt"
    succeed("export", undirected, out, "--quiet")
    text = out.read_text()
    assert old in text
    out.write_text(text.replace(old, new))
    sentence = refuse(INPUT, "import", out, tmp_path / "again.brimful", "--quiet")
    assert re.search(said, sentence), sentence
    assert "again.brimful" not in names_below(tmp_path)


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("directed=no", "directed=on"),
        ("edges=3", "edges=4"),
        ("isolated=1", "isolated=2"),
        ("vertices=4", "vertices=5"),
        (" isolated=1", ""),
    ],
)
def test_tables_that_contradict_are_refused(
    undirected: Path, tmp_path: Path, suffix: str, old: str, new: str
) -> None:
    whole, out = tmp_path / "whole.parquet", tmp_path / f"out.{suffix}"
    succeed("export", undirected, whole, "--quiet")
    table = pq.read_table(whole)
    text = table.schema.metadata[b"brimful"].decode()
    table = table.replace_schema_metadata({"brimful": text.replace(old, new)})
    if suffix == "parquet":
        pq.write_table(table, out)
    else:
        with pa.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
    sentence = refuse(INPUT, "import", out, tmp_path / "again.brimful", "--quiet")
    assert "brimful" in sentence or "vertices" in sentence
    with pytest.raises(bf.InputError):
        bf.Graph.from_arrow(table)


def test_flags_win_over_the_declaration(undirected: Path, tmp_path: Path) -> None:
    for name in ("out.txt", "out.parquet", "out.arrow"):
        out = tmp_path / name
        succeed("export", undirected, out, "--quiet")
        directed = succeed(
            "import", out, tmp_path / f"{name}.d.brimful", "--directed", "--json"
        ).figures
        assert (directed["directed"], directed["vertices"], directed["arcs"]) == (True, 4, 3)
        more = succeed(
            "import", out, tmp_path / f"{name}.v.brimful", "--vertices", 10, "--json"
        ).figures
        assert (more["directed"], more["vertices"]) == (False, 14)


@pytest.mark.parametrize("name", ["part.txt", "part.parquet", "part.arrow"])
def test_parts_of_one_graph(tmp_path: Path, name: str) -> None:
    stem, suffix = name.split(".")
    for number, edges in enumerate(["1 5\n", "5 90\n"]):
        source, graph = tmp_path / f"{number}.txt", tmp_path / f"{number}.brimful"
        source.write_text(edges)
        succeed("import", source, graph, "--undirected", "--vertices", 3, "--quiet")
        succeed("export", graph, tmp_path / f"{stem}{number}.{suffix}", "--quiet")
    parts = [tmp_path / f"{stem}{number}.{suffix}" for number in (0, 1)]
    figures = succeed("import", *parts, tmp_path / "both.brimful", "--json").figures
    assert (figures["vertices"], figures["edges"], figures["directed"]) == (5, 2, False)


def exported(tmp_path: Path, name: str, edges: str, *options: object) -> Path:
    source, graph = tmp_path / f"{name}.in.txt", tmp_path / f"{name}.brimful"
    source.write_text(edges)
    succeed("import", source, graph, *options, "--quiet")
    succeed("export", graph, tmp_path / f"{name}.txt", "--quiet")
    return tmp_path / f"{name}.txt"


def test_declared_ids_that_leave_a_gap_are_refused(tmp_path: Path) -> None:
    few = exported(tmp_path, "few", "0 1\n", "--vertices", 4)
    more = exported(tmp_path, "more", "2 5\n", "--vertices", 7)
    assert "first=0" in few.read_text()
    figures = succeed("import", few, more, tmp_path / "both.brimful", "--json").figures
    assert (figures["vertices"], figures["edges"]) == (7, 2)
    far = tmp_path / "far.txt"
    far.write_text(
        few.read_text().replace("first=0", "first=1000").replace("0\t1\n", "1000 1001\n")
    )
    sentence = refuse(INPUT, "import", far, few, tmp_path / "x.brimful", "--quiet")
    assert "it declares ids from 1000 on, and those of the other files end before 4" in sentence


def test_a_plain_list_beside_a_declaration_keeps_its_vertices(tmp_path: Path) -> None:
    declared = exported(tmp_path, "few", "0 1\n", "--vertices", 4)
    plain = write_edges(tmp_path / "plain.txt", [(7, 8)])
    for files in [(declared, plain), (plain, declared)]:
        out = tmp_path / f"{files[0].stem}-first.brimful"
        figures = succeed("import", *files, out, "--json").figures
        assert (figures["vertices"], figures["edges"]) == (6, 2)


def test_declared_names_are_not_read_as_integers(tmp_path: Path) -> None:
    names = exported(tmp_path, "names", "01 1\n007 1\n", "--ids", "string")
    numbers = write_edges(tmp_path / "numbers.txt", [(3, 4)])
    sentence = refuse(INPUT, "import", numbers, names, tmp_path / "x.brimful", "--quiet")
    assert "import it with --ids string" in sentence
    out = tmp_path / "all.brimful"
    figures = succeed("import", numbers, names, out, "--ids", "string", "--json").figures
    assert figures["vertices"] == 5


@pytest.mark.parametrize("name", ["out.csv", "out.u32"])
def test_what_would_be_lost_is_refused_or_said(undirected: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    sentence = refuse(USAGE, "export", undirected, out, "--quiet")
    assert "the direction of the graph" in sentence and "a vertex without edges" in sentence
    assert "parquet" in sentence and "--lossy" in sentence and not out.exists()
    done = succeed("export", undirected, out, "--lossy", "--json")
    lost = ["the direction of the graph (undirected)", "a vertex without edges"]
    assert done.figures["lost"][:2] == lost and done.figures["edges"] == 3
    assert "does not hold" in done.err
    with bf.Graph.open(undirected) as graph, pytest.raises(bf.UsageError, match="lossy"):
        graph.export(out, overwrite=True)
    with bf.Graph.open(undirected) as graph:
        assert graph.export(out, overwrite=True, lossy=True) == 3


def test_names_that_look_like_integers_are_not_lost_in_csv(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("1 02\n02 7\n")
    graph = tmp_path / "g.brimful"
    succeed("import", tmp_path / "in.txt", graph, "--ids", "string", "--quiet")
    sentence = refuse(USAGE, "export", graph, tmp_path / "out.csv", "--quiet")
    assert "look like integers" in sentence
    succeed("export", graph, tmp_path / "out.txt", "--quiet")
    with bf.read([tmp_path / "out.txt"]) as again:
        assert again.vertex_ids().to_pylist() == ["02", "1", "7"]


def test_the_real_graph_with_isolated_vertices(data: Path, tmp_path: Path) -> None:
    source = data / "astro-ph.graph.gz"
    first = succeed("import", source, tmp_path / "g.brimful", "--json").figures
    header = gzip.decompress(source.read_bytes()).split(b"\n", 1)[0].split()
    assert first["vertices"] == int(header[0]) == 16_706
    same = ("vertices", "edges", "arcs", "directed", "weighted", "self_loops", "duplicates")
    for name in ("out.txt", "out.txt.gz", "out.parquet", "out.arrow", "out.mtx", "out.v"):
        succeed("export", tmp_path / "g.brimful", tmp_path / name, "--quiet")
        again = succeed("import", tmp_path / name, tmp_path / f"{name}.brimful", "--json").figures
        assert {key: again[key] for key in same} == {key: first[key] for key in same}, name
    for name in ("out.csv", "out.u32"):
        sentence = refuse(USAGE, "export", tmp_path / "g.brimful", tmp_path / name, "--quiet")
        assert "660 vertices without edges" in sentence


@pytest.mark.parametrize(("stream", "compression"), [(False, None), (True, "lz4"), (False, "zstd")])
def test_arrow_files_and_streams_of_others(
    tmp_path: Path, stream: bool, compression: str | None
) -> None:
    path = tmp_path / ("e.arrows" if stream else "e.arrow")
    table = pa.table(
        {
            "source": pa.array(["a", "b", "a"] * 5000).dictionary_encode(),
            "note": ["x" * 50] * 15000,
            "target": pa.array(["b", "c", "c"] * 5000).dictionary_encode(),
            "weight": pa.array([1, 2, 3] * 5000, pa.int16()),
        }
    )
    options = pa.ipc.IpcWriteOptions(compression=compression)
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with make(str(path), table.schema, options=options) as writer:
        writer.write_table(table, 4000)
    named = ("--source", "source", "--target", "target", "--weight", "weight")
    figures = succeed("import", path, tmp_path / "g.brimful", *named, "--json").figures
    assert (figures["vertices"], figures["edges"], figures["weighted"]) == (3, 15000, True)
    whole = path.read_bytes()
    for length in (0, 4, 8, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        if stream and length == len(whole) - 1:
            continue
        sentence = refuse(INPUT, "import", path, tmp_path / "x.brimful", *named, "--quiet")
        assert str(path) in sentence
    for at in range(0, len(whole), len(whole) // 30 + 1):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        out = tmp_path / f"{at}.brimful"
        with contextlib.suppress(bf.InputError):
            bf.read([path], source="source", target="target", weight="weight", path=out).close()


def test_a_batch_that_does_not_fit_is_refused_before_work(tmp_path: Path) -> None:
    path = tmp_path / "e.arrow"
    table = pa.table({"source": range(8_000_000), "target": range(8_000_000)})
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    sentence = refuse(BUDGET, "import", path, tmp_path / "g.brimful", "--budget", "200M", "--quiet")
    assert "smallest that works" in sentence


def test_outputs_do_not_replace_files_of_graphs(undirected: Path, tmp_path: Path) -> None:
    before = {file.name: file.read_bytes() for file in undirected.iterdir()}
    link = tmp_path / "link"
    link.symlink_to(undirected)
    log = ("--log", undirected / "manifest-1", "--quiet")
    other = write_edges(tmp_path / "other.txt", [(1, 2)])
    for folder in (undirected, link):
        inside = folder / "in.shards"
        for arguments in (
            ("export", undirected, inside, "--format", "edgelist", "--overwrite", "--quiet"),
            ("export", undirected, folder / "new.txt", "--quiet"),
            ("run", "degrees", undirected, "-o", folder / "new.csv", "--quiet"),
            ("info", undirected, "--log", inside),
            ("import", other, folder / "new.brimful", "--quiet"),
            ("generate", "ring", folder / "new.brimful", "--vertices", 3, "--quiet"),
            ("run", "degrees", undirected, *log),
        ):
            assert "inside the graph directory" in refuse(USAGE, *arguments)
    with pytest.raises(bf.UsageError, match="inside the graph directory"):
        bf.read(other, path=undirected / "new.brimful")
    assert {file.name: file.read_bytes() for file in undirected.iterdir()} == before


def test_control_characters_of_ids_reach_no_terminal(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("\x1b[31mred\x9b b\n")
    options = ["--ids", "string", "--no-header", "--quiet"]
    succeed("import", tmp_path / "in.txt", tmp_path / "g.brimful", *options)
    arguments = ("run", "degrees", tmp_path / "g.brimful", "--top", "5", "--quiet")
    assert "\x1b[31mred" in succeed(*arguments).out
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(BRIMFUL[0], [*BRIMFUL, *map(str, arguments)])
    shown = b""
    while True:
        try:
            block = os.read(terminal, 4096)
        except OSError:
            break
        if not block:
            break
        shown += block
    os.waitpid(pid, 0)
    assert rb"\x1b[31mred\x9b" in shown and b"\x1b[31m" not in shown


def test_results_are_written_to_paths(undirected: Path, tmp_path: Path) -> None:
    with bf.Graph.open(undirected) as graph:
        result = bf.degrees(graph)
        for suffix in ("csv", "parquet", "arrow"):
            result.write(tmp_path / f"r.{suffix}")
            assert result.stats["output"] == str(tmp_path / f"r.{suffix}")
            assert (tmp_path / f"r.{suffix}").stat().st_size > 0
    assert pq.read_table(tmp_path / "r.parquet").num_rows == 4


def test_top_beyond_what_is_kept_at_once(tmp_path: Path) -> None:
    graph = tmp_path / "g.brimful"
    succeed("generate", "rmat", graph, "--scale", 18, "--edge-factor", 2, "--quiet")
    with bf.Graph.open(graph) as opened:
        result = bf.degrees(opened)
        rows = dict(zip(*result.to_arrow().to_pydict().values(), strict=True))
        best = sorted(rows.items(), key=lambda row: (-row[1], row[0]))
        for count in (131_071, 131_072, 131_073, 262_144, 10**30):
            assert result.top(count) == best[:count]
