"""Similarity by common neighbors against NetworkX: of pairs, and of the best partners."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import networkx as nx
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given

import brimful as bf
from brimful.similarities import Measure
from cgroup import hard_limit
from command import BUDGET, INPUT, USAGE, refuse, smallest, succeed
from strategies import Case, cases, graph_of

MIB = 1 << 20
Pair = tuple[Any, Any]


def overlap(graph: nx.Graph, pairs: list[Pair]) -> list[float]:
    least = [min(len(graph[one]), len(graph[other])) for one, other in pairs]
    common = [len(set(nx.common_neighbors(graph, *pair))) for pair in pairs]
    return [both / some if some else 0.0 for both, some in zip(common, least, strict=True)]


def by_networkx(function: Callable[..., Any]) -> Callable[[nx.Graph, list[Pair]], list[float]]:
    return lambda graph, pairs: [score for _, _, score in function(graph, pairs)]


ORACLES: dict[Measure, Callable[[nx.Graph, list[Pair]], list[float]]] = {
    "jaccard": by_networkx(nx.jaccard_coefficient),
    "adamic_adar": by_networkx(nx.adamic_adar_index),
    "common_neighbors": lambda graph, pairs: [
        len(set(nx.common_neighbors(graph, *pair))) for pair in pairs
    ],
    "overlap": overlap,
    "resource_allocation": by_networkx(nx.resource_allocation_index),
}


def simple(case: Case) -> nx.Graph:
    """Return the graph without directions and parallel edges."""
    graph = nx.Graph()
    graph.add_nodes_from(case.vertices)
    graph.add_edges_from(case.edges)
    return graph


def table_of(pairs: list[Pair]) -> pa.Table:
    if pairs and isinstance(pairs[0][0], str):
        kind = pa.string()
    else:
        wide = any(vertex >= 2**63 for pair in pairs for vertex in pair)
        kind = pa.uint64() if wide else pa.int64()
    return pa.table(
        {
            "source": pa.array([one for one, _ in pairs], kind),
            "target": pa.array([other for _, other in pairs], kind),
        }
    )


def test_every_measure_has_an_oracle() -> None:
    assert set(ORACLES) == set(get_args(Measure))


@pytest.mark.parametrize("measure", ORACLES)
@given(case=cases())
def test_pairs_are_those_of_networkx(measure: Measure, case: Case) -> None:
    theirs = simple(case)
    pairs = list(itertools.permutations(case.vertices, 2))[:200]
    expected = ORACLES[measure](theirs, pairs)
    with case.graph() as graph:
        rows = list(bf.similarity(graph, measure=measure, pairs=table_of(pairs)))
    assert [(one, other) for one, other, _ in rows] == pairs
    assert [score for _, _, score in rows] == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.parametrize("measure", ORACLES)
@given(case=cases())
def test_partners_are_the_best_pairs(measure: Measure, case: Case) -> None:
    theirs = simple(case)
    with case.graph() as graph:
        rows = list(bf.similarity(graph, measure=measure, k=3))
    assert [one for one, _, _ in rows] == sorted(one for one, _, _ in rows)
    for vertex in case.vertices:
        others = [(vertex, other) for other in case.vertices if other != vertex]
        scores = dict(zip(others, ORACLES[measure](theirs, others), strict=True))
        own = [(other, score) for one, other, score in rows if one == vertex]
        assert len({other for other, _ in own}) == len(own)
        for other, score in own:
            assert score == pytest.approx(scores[vertex, other], rel=1e-12)
        best = sorted((score for score in scores.values() if score > 0), reverse=True)[:3]
        assert [score for _, score in own] == pytest.approx(best, rel=1e-12)


def test_a_vertex_with_itself() -> None:
    with graph_of([(0, 1), (1, 2), (2, 0), (3, 3), (4, 5)]) as graph:
        pairs = table_of([(0, 0), (4, 4), (3, 3)])
        for measure, expected in [
            ("jaccard", [1.0, 1.0, 0.0]),
            ("resource_allocation", [1.0, 1.0, 0.0]),
            ("adamic_adar", [2 / math.log(2), math.inf, 0.0]),
        ]:
            rows = bf.similarity(graph, pairs=pairs, measure=measure)  # type: ignore[arg-type]
            assert [score for _, _, score in rows] == pytest.approx(expected)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory, data: Path) -> tuple[Path, nx.Graph]:
    path = tmp_path_factory.mktemp("similarity") / "votes.brimful"
    source = data / "wiki-Vote.txt.gz"
    succeed("import", source, path, "--undirected", "--quiet")
    return path, nx.read_edgelist(source, nodetype=int)


@pytest.mark.parametrize("measure", ORACLES)
def test_a_real_graph(real: tuple[Path, nx.Graph], measure: Measure) -> None:
    path, theirs = real
    drawn = random.Random(5)
    nodes = sorted(theirs)
    pairs = [(drawn.choice(nodes), drawn.choice(nodes)) for _ in range(2000)]
    pairs = [pair for pair in pairs if pair[0] != pair[1]]
    rows = bf.similarity(path, measure=measure, pairs=table_of(pairs))
    expected = ORACLES[measure](theirs, pairs)
    assert [score for _, _, score in rows] == pytest.approx(expected, rel=1e-12)


def test_pairs_of_files_and_names(tmp_path: Path) -> None:
    edges = [("ann", "x"), ("bob", "x"), ("bob", "ÿ"), ("ann", "y,z")]
    table = table_of([("bob", "ann"), ("x", "ÿ"), ("ann", "bob")])
    pq.write_table(table, tmp_path / "pairs.parquet")
    pyarrow.csv.write_csv(table, tmp_path / "pairs.csv")
    with pa.ipc.new_file(str(tmp_path / "pairs.arrow"), table.schema) as writer:
        writer.write_table(table)
    with bf.Graph.from_arrow(table_of(edges), path=tmp_path / "g.brimful") as graph:
        expected = [("bob", "ann", 1 / 3), ("x", "ÿ", 0.5), ("ann", "bob", 1 / 3)]
        assert list(bf.similarity(graph, pairs=table)) == expected
    for name in ("pairs.parquet", "pairs.csv", "pairs.arrow"):
        out = tmp_path / "out.csv"
        words = ["--pairs", tmp_path / name, "-o", out, "--overwrite", "--quiet"]
        succeed("run", "similarity", tmp_path / "g.brimful", *words)
        lines = out.read_text().splitlines()
        assert lines[0] == "source,target,score" and lines[2] == "x,ÿ,0.5"
        assert len(lines) == 4


def test_ids_of_text_have_the_type_of_the_graph(tmp_path: Path) -> None:
    """pyarrow would guess it from the first rows: 007 is not the vertex 7, nor are dates ids."""
    names = ["007", "7", "true", "NA", "2020-01-01", "1.0"]
    path = tmp_path / "pairs.csv"
    path.write_text("a,b\n" + "".join(f"{name},x\n" for name in names))
    edges = [(name, str(at)) for at, name in enumerate(names)] + [("x", "0")]
    with bf.Graph.from_arrow(table_of(edges), ids="string") as graph:
        rows = bf.similarity(graph, pairs=path)
        assert list(rows) == [(name, "x", float(name == "007")) for name in names]
    large = 2**63 + 5
    path.write_text(f"a,b\n{large},1\n")
    with bf.Graph.from_arrow(table_of([(large, 0), (1, 0)])) as graph:
        assert list(bf.similarity(graph, pairs=path)) == [(large, 1, 1.0)]
        for text, says, kind in (
            ("1,2\n2,1\n", "the first line of .*pairs.csv is not a header: 1,2", bf.InputError),
            ('a,b\n"1"0,1\n', r"pairs\.csv:2: a field in quotes is not closed", bf.InputError),
            (
                "a,b\n1.0,1\n",
                r"pairs\.csv:2: expected an integer .* a, found '1\.0'",
                bf.InputError,
            ),
            (
                "a,b\n1,2\n\n1,x\n",
                r"pairs\.csv:4: expected an integer .* b, found 'x'",
                bf.InputError,
            ),
            (
                'a,b\n1,"x\ny"\n',
                r"pairs\.csv:2: expected an integer .*found 'x\\ny'",
                bf.InputError,
            ),
            (
                f"a,b\n1,{2**64}\n",
                r"pairs\.csv:2: expected an integer from 0 to 2\^64-1 ",
                bf.InputError,
            ),
            ("a,b\n1,1,1\n", r"pairs\.csv:2: expected 2 fields as in .*found 3;", bf.InputError),
            (
                "a,b\n1,\n",
                r'row 1, column "b": expected a value .*; correct the row$',
                bf.InputError,
            ),
            ("", r"pairs\.csv:1: expected the names of the columns", bf.InputError),
            ("a,b\n,1\n", r'row 1, column "a": .*; correct the row$', bf.InputError),
            ("a,b,c\n1,1,1\n", r"two columns of vertices in .*pairs\.csv, or two", bf.UsageError),
        ):
            path.write_text(text)
            with pytest.raises(kind, match=says):
                bf.similarity(graph, pairs=path)
        words = pa.table({"a": ["1", "x"], "b": ["1", "1"]})
        says = r'row 2, .*: expected an integer, .*, found "x"; correct the row$'
        with pytest.raises(bf.InputError, match=says):
            bf.similarity(graph, pairs=words)


def test_an_error_of_a_stream_of_pairs_is_kept() -> None:
    class Closed:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise bf.UsageError("the table is closed; open it again")

    with (
        bf.Graph.from_arrow(table_of([(0, 1)])) as graph,
        pytest.raises(bf.UsageError, match=r"^the table is closed; open it again$"),
    ):
        bf.similarity(graph, pairs=Closed())  # type: ignore[arg-type]


def test_what_is_refused(tmp_path: Path) -> None:
    graph, pairs = tmp_path / "g.brimful", tmp_path / "pairs.csv"
    succeed("generate", "ring", graph, "--vertices", 9, "--quiet")
    pairs.write_text("source,target\n0,1\n0,99\n")
    run = ["run", "similarity", graph]
    says = f"the graph has no vertex 99 (row 2 after the header of {pairs})"
    assert says in refuse(INPUT, *run, "--pairs", pairs)
    assert "leave out k" in refuse(USAGE, *run, "--pairs", pairs, "--k", 3)
    assert "no table of pairs" in refuse(INPUT, *run, "--pairs", tmp_path / "none.csv")
    sentence = refuse(USAGE, "run", "pagerank", graph, "--pairs", pairs)
    assert "--pairs does not apply to pagerank" in sentence
    assert "k must be at least 1" in refuse(USAGE, *run, "--k", 0)
    for flag, value in [("--join", pairs), ("--report", "r.html"), ("--checkpoint-every", 1)]:
        assert f"leave {flag} out" in refuse(USAGE, *run, flag, value)
    assert "documents" in refuse(USAGE, *run, "-o", "mongodb://h/d/c?field=a&id=b")
    with pytest.raises(bf.UsageError, match="pairs must be"):
        bf.similarity(graph, pairs=[(1, 2)])
    with pytest.raises(bf.UsageError, match="measure must be"):
        bf.similarity(graph, measure="cosine")  # type: ignore[arg-type]


def test_rows_that_cannot_be_read_are_shown_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    with graph_of([(0, 1), (1, 2)]) as graph:
        rows = bf.similarity(graph)

    def fails(native: object) -> None:
        raise bf.StoreIoError("the file is gone")

    monkeypatch.setattr("brimful.rows.stream_batches", fails)
    assert repr(rows) == "<brimful.Rows: the file is gone>"
    assert "the file is gone" in rows._repr_html_()


def test_rows_are_read_in_every_form(tmp_path: Path) -> None:
    with graph_of([(0, 1), (1, 2), (2, 3), (3, 4)]) as graph:
        rows = bf.similarity(graph, k=2)
        assert rows.stats["rows"] == len(rows) == 6 and bool(rows)
        listed = list(rows)
        assert list(zip(*rows.to_arrow().to_pydict().values(), strict=True)) == listed
        assert rows.to_polars().rows() == listed
        assert list(rows.to_pandas().itertuples(index=False, name=None)) == listed
        assert rows.top(2) == sorted(listed, key=lambda row: -row[2])[:2]
        assert rows.top(99) == sorted(listed, key=lambda row: -row[2])
        assert "similarity: 6 rows" in repr(rows) and "<th>score</th>" in rows._repr_html_()
        for suffix in ("parquet", "arrow", "csv"):
            rows.write(tmp_path / f"rows.{suffix}")
            with pytest.raises(bf.UsageError, match="exists"):
                rows.write(tmp_path / f"rows.{suffix}")
        assert pq.read_table(tmp_path / "rows.parquet").equals(rows.to_arrow())
        assert copy.copy(rows) is rows and copy.deepcopy(rows) is rows
        with pytest.raises(bf.UsageError, match="cannot be pickled"):
            pickle.dumps(rows)


@pytest.mark.nightly
def test_pairs_larger_than_memory_stream_under_a_hard_limit(tmp_path: Path) -> None:
    graph, pairs, out = (tmp_path / name for name in ("g.brimful", "pairs.parquet", "out.parquet"))
    succeed("generate", "rmat", graph, "--scale", 16, "--edge-factor", 8, "--quiet")
    drawn = random.Random(7)
    # 5 million rows are 80 MB of ids and 120 MB of rows of the result.
    count = 5_000_000
    some = [int.from_bytes(drawn.randbytes(2), "little") for _ in range(2 * (1 << 16))]
    known = bf.Graph.open(graph)
    vertices = [vertex for vertex in some if vertex in known]
    known.close()
    cycle = pa.array((vertices * (2 * count // len(vertices) + 1))[: 2 * count])
    table = pa.table({"source": cycle[:count], "target": cycle[count:]})
    pq.write_table(table, pairs)
    run = ["run", "similarity", graph, "--pairs", pairs, "-o", out, "--threads", 2]
    named = smallest(*run)
    mib = int(named.removesuffix("M"))
    assert mib < 300
    with hard_limit(mib * MIB) as enter:
        refuse(BUDGET, *run, "--budget", f"{mib - 1}M", "--quiet", before=enter)
    with hard_limit(mib * MIB) as enter:
        done = succeed(*run, "--budget", named, "--json", "--quiet", before=enter)
    assert done.figures["peak_rss_bytes"] <= mib * MIB
    assert done.figures["scratch_bytes"] > 100 * MIB
    found = pq.read_table(out)
    assert found.select(["source", "target"]).cast(table.schema).equals(table)
