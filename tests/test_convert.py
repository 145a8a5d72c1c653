"""Graphs of other packages come in and go out as they are."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import brimful as bf

FAR = 2**62


def optional(package: str) -> Any:
    """Import a package that has no wheels everywhere, or skip aloud."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError:
        pytest.skip(f"SKIPPED: {package} is not installed")


def edges(graph: bf.Graph) -> Counter[tuple[float, ...]]:
    """The multiset of edges; of a graph without direction with sorted ends."""
    table = graph.to_arrow()
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    if graph.directed:
        return Counter(rows)
    return Counter((*sorted(row[:2]), *row[2:]) for row in rows)


def networkx_edges(graph: nx.Graph) -> Counter[tuple[float, ...]]:
    weighted = any("weight" in data for *_, data in graph.edges(data=True))
    rows = (
        (*((s, t) if graph.is_directed() else sorted((s, t))), *([w] if weighted else []))
        for s, t, w in graph.edges(data="weight", default=1.0)
    )
    return Counter(rows)


def example(kind: type[nx.Graph], *, weighted: bool, low: int = 0) -> nx.Graph:
    """Self-loops, both directions, isolated and far vertices; multi-edges where there can be."""
    graph = kind()
    graph.add_nodes_from([low + 50, FAR])
    for source, target in [(0, 1), (1, 0), (1, 2), (2, 2), (7, low + 3), (0, 1), (2, 2)]:
        data = {"weight": source + target / 4} if weighted else {}
        graph.add_edge(source, target, **data)
    return graph


KINDS = [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]


def test_read_knows_objects_of_other_packages() -> None:
    graph = example(nx.MultiGraph, weighted=True)
    with bf.read(graph) as read, bf.Graph.from_networkx(graph) as made:
        assert edges(read) == edges(made)
        assert {**read.info(), "path": ""} == {**made.info(), "path": ""}
    with bf.read(graph, undirected=False, self_loops="drop") as read:
        assert read.directed and read.info()["self_loops_dropped"] == 2
        assert read.vertices == graph.number_of_nodes()
    matrix = sp.random_array((40, 40), density=0.1, rng=np.random.default_rng(1))
    with bf.read(matrix, vertices=50) as read:
        assert (read.edges, read.vertices) == (matrix.nnz, 50)
    with pytest.raises(bf.UsageError, match="NetworkX"):
        bf.read(object())


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"ids": "string"}, "ids="),
        ({"header": False, "format": "csv"}, "format=, header="),
        ({"source": 1, "on_error": "skip"}, "source=, on_error="),
        ({"edge_columns": ["x"]}, "edge_columns="),
    ],
)
def test_read_refuses_options_of_files_for_objects(options: Any, named: str) -> None:
    for source in (nx.path_graph(3), sp.csr_array([[0, 1], [0, 0]])):
        with pytest.raises(bf.UsageError, match=f"file nor a table; leave {named} out, or make a"):
            bf.read(source, **options)


def test_read_refuses_a_name_of_weights_for_a_matrix() -> None:
    with pytest.raises(bf.UsageError, match="leave weight= out"):
        bf.read(sp.csr_array([[0, 1], [0, 0]]), weight="w")


def test_objects_get_the_indexes_that_are_asked_for() -> None:
    igraph = optional("igraph")
    arc = igraph.Graph([(0, 1)], directed=True)
    for make, given in (
        (bf.Graph.from_networkx, nx.path_graph(3, create_using=nx.DiGraph)),
        (bf.Graph.from_scipy, sp.csr_array([[0, 1], [0, 0]])),
        (bf.Graph.from_igraph, arc),
        (bf.Graph.from_arrow, TABLE),
        (bf.read, arc),
    ):
        with make(given, index="in,reverse") as both, make(given) as one:
            assert both.native.indexes == ["in", "reverse"] and one.native.indexes == ["in"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("low", [0, -100])
def test_networkx_there_and_back(kind: type[nx.Graph], weighted: bool, low: int) -> None:
    before = example(kind, weighted=weighted, low=low)
    with bf.Graph.from_networkx(before) as graph:
        assert graph.directed == before.is_directed() and graph.weighted == weighted
        assert sorted(before.nodes) == graph.vertex_ids().to_pylist()
        assert edges(graph) == networkx_edges(before)
        after = graph.to_networkx()
    assert sorted(after.nodes) == sorted(before.nodes)
    assert networkx_edges(after) == networkx_edges(before)
    assert type(after) is kind
    assert graph.path


def test_networkx_weights() -> None:
    graph = nx.DiGraph()
    graph.add_edge(1, 2, weight=3, cost=0.5)
    graph.add_edge(2, 3, cost=2)
    with bf.Graph.from_networkx(graph) as made:
        assert edges(made) == Counter([(1, 2, 3.0), (2, 3, 1.0)])
    with bf.Graph.from_networkx(graph, weight="cost") as made:
        assert edges(made) == Counter([(1, 2, 0.5), (2, 3, 2.0)])
    for name in (None, "absent"):
        with bf.Graph.from_networkx(graph, weight=name) as made:
            assert not made.weighted and edges(made) == Counter([(1, 2), (2, 3)])


def test_networkx_without_edges(tmp_path: Path) -> None:
    graph = nx.empty_graph(4)
    with bf.Graph.from_networkx(graph, path=tmp_path / "g.brimful") as made:
        assert (made.vertices, made.edges, made.directed) == (4, 0, False)
        assert sorted(made.to_networkx().nodes) == [0, 1, 2, 3]
        assert made.to_scipy()[0].shape == (4, 4)
    assert (tmp_path / "g.brimful").is_dir()
    with pytest.raises(bf.InputError, match="no edge"):
        bf.Graph.from_networkx(nx.Graph())


def test_networkx_ids_of_64_bits() -> None:
    huge = nx.Graph([(2**64 - 1, 2**63), (3, 2**63)])
    huge.add_node(2**64 - 5)
    with bf.Graph.from_networkx(huge) as graph:
        assert graph.vertex_ids().to_pylist() == sorted(huge.nodes)
        assert sorted(graph.to_networkx().edges) == [(3, 2**63), (2**63, 2**64 - 1)]
    ours = nx.Graph([(np.int32(4), np.uint8(7))])
    with bf.Graph.from_networkx(ours) as graph:
        assert graph.neighbors(4) == [7]


def test_other_nodes_are_refused() -> None:
    for graph, sentence in (
        (nx.Graph([("a", b"a")]), r"b'a' \(bytes\) cannot be the id .*; relabel the vertices"),
        (nx.Graph([(True, 2)]), r"True \(bool\)"),
        (nx.Graph([(2**64, 2)]), "must all fit int64 or"),
        (nx.Graph([(2**63, -1)]), "must all fit int64 or"),
        (nx.Graph([(1, 2, {"weight": "heavy"})]), "edge from 1 to 2 of weight 'heavy'"),
        (nx.Graph([(1, 2, {"weight": float("nan")})]), "weight 'nan'"),
    ):
        with pytest.raises(bf.InputError, match=sentence):
            bf.Graph.from_networkx(graph)
    for wrong in (None, [(1, 2)], "edges.txt"):
        with pytest.raises(bf.UsageError, match="expected a NetworkX graph"):
            bf.Graph.from_networkx(wrong)
        with pytest.raises(bf.UsageError, match=r"expected an igraph\.Graph"):
            bf.Graph.from_igraph(wrong)
        with pytest.raises(bf.UsageError, match="expected a sparse matrix"):
            bf.Graph.from_scipy(wrong)


MATRIX = np.array([[0, 2.5, 0, 0], [0, -1, 4, 0], [8, 0, 0, 0], [0, 0, 0, 0]])


@pytest.mark.parametrize("kind", ["coo", "csr", "csc", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("container", [sp.coo_array, sp.coo_matrix])
def test_scipy_there_and_back(container: Any, kind: str) -> None:
    matrix = container(MATRIX).asformat(kind)
    with bf.Graph.from_scipy(matrix) as graph:
        assert (graph.vertices, graph.directed, graph.weighted) == (4, True, True)
        stored = sp.coo_array(matrix)
        wanted = zip(stored.row.tolist(), stored.col.tolist(), stored.data.tolist(), strict=True)
        assert edges(graph) == Counter(wanted)
        after, ids = graph.to_scipy()
    assert isinstance(after, sp.csr_array) and after.dtype == np.float64
    assert ids.tolist() == [0, 1, 2, 3]
    assert (after.toarray() == MATRIX).all()


def test_scipy_undirected() -> None:
    both = MATRIX + MATRIX.T
    with bf.Graph.from_scipy(sp.csr_array(both), undirected=True) as graph:
        assert (graph.edges, graph.arcs, graph.directed) == (4, 7, False)
        after, _ = graph.to_scipy()
        assert (after.toarray() == both).all()
    with pytest.raises(bf.InputError, match="not symmetric"):
        bf.Graph.from_scipy(sp.csr_array(MATRIX), undirected=True)


def test_scipy_types_and_shapes() -> None:
    with bf.Graph.from_scipy(sp.csr_array(MATRIX != 0)) as graph:
        assert not graph.weighted
        counts, _ = graph.to_scipy()
        assert counts.dtype == np.int64 and (counts.toarray() == (MATRIX != 0)).all()
    with bf.Graph.from_scipy(sp.csr_array(MATRIX), weighted=False) as graph:
        assert not graph.weighted and graph.edges == 4
    zero = sp.coo_array((np.array([0, 3]), (np.array([0, 1]), np.array([1, 1]))), shape=(2, 2))
    with bf.Graph.from_scipy(zero) as graph:
        assert edges(graph) == Counter([(0, 1, 0.0), (1, 1, 3.0)])
    twice = sp.coo_array((np.array([1, 2]), (np.array([0, 0]), np.array([1, 1]))), shape=(2, 2))
    with bf.Graph.from_scipy(twice) as graph:
        assert edges(graph) == Counter([(0, 1, 1.0), (0, 1, 2.0)])
        assert graph.to_scipy()[0][0, 1] == 3.0
    with bf.Graph.from_scipy(sp.csr_array((3, 3))) as graph:
        assert (graph.vertices, graph.edges) == (3, 0)
    for wrong, sentence in (
        (sp.csr_array((2, 3)), "2 x 3"),
        (sp.csr_array(MATRIX * 1j), "complex"),
        (sp.csr_array(MATRIX * np.nan), "finite"),
    ):
        with pytest.raises(bf.InputError, match=sentence):
            bf.Graph.from_scipy(wrong)


class Forged:
    """A graph whose manifest, under a correct checksum, names more edges than its files hold."""

    def __init__(self, native: Any) -> None:
        self._native = native
        self.arcs = 2**40

    def __getattr__(self, name: str) -> Any:
        return getattr(self._native, name)


def test_scipy_of_a_forged_manifest_is_an_error() -> None:
    with bf.Graph.from_arrow(pa.table({"source": [0, 1], "target": [1, 2]})) as graph:
        native = graph._native
        graph._native = Forged(native)
        with pytest.raises(bf.CorruptError, match=r"the edges of .* contradict its manifest"):
            graph.to_scipy()
        graph._native = native
        assert graph.to_scipy()[0].sum() == 2


def test_scipy_names_rows_by_their_vertex() -> None:
    table = pa.table({"source": [FAR, -5], "target": [-5, 9], "weight": [1.5, 2.5]})
    with bf.Graph.from_arrow(table, undirected=True) as graph:
        matrix, ids = graph.to_scipy()
    assert ids.tolist() == [-5, 9, FAR]
    assert matrix.toarray().tolist() == [[0, 2.5, 1.5], [2.5, 0, 0], [1.5, 0, 0]]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_igraph_there_and_back(directed: bool, weighted: bool) -> None:
    igraph = optional("igraph")
    before = igraph.Graph(
        n=6, edges=[(0, 1), (1, 0), (2, 2), (0, 1), (4, 2), (2, 2)], directed=directed
    )
    if weighted:
        before.es["weight"] = [0.5, 1.0, -2.0, 0.5, 7.0, 3.0]
    for ids in (None, [10, 20, -30, FAR, 5, 6]):
        if ids is not None:
            before.vs["vertex"] = ids
        names = ids or range(6)
        with bf.Graph.from_igraph(before) as graph:
            assert (graph.directed, graph.weighted) == (directed, weighted)
            assert graph.vertex_ids().to_pylist() == sorted(names)
            after = graph.to_igraph()
            assert after.is_directed() == directed and after.vs["vertex"] == sorted(names)
            with bf.Graph.from_igraph(after) as again:
                assert edges(again) == edges(graph)
                assert again.vertex_ids() == graph.vertex_ids()
            wanted = Counter(
                (
                    *((names[s], names[t]) if directed else sorted((names[s], names[t]))),
                    *([before.es["weight"][at]] if weighted else []),
                )
                for at, (s, t) in enumerate(before.get_edgelist())
            )
            assert edges(graph) == wanted


def test_igraph_ids_are_checked() -> None:
    igraph = optional("igraph")
    graph = igraph.Graph(n=2, edges=[(0, 1)])
    graph.vs["vertex"] = [4, 4]
    with pytest.raises(bf.InputError, match="same 'vertex'"):
        bf.Graph.from_igraph(graph)
    graph.vs["vertex"] = ["a", None]
    with pytest.raises(bf.InputError, match=r"None \(NoneType\)"):
        bf.Graph.from_igraph(graph)
    with bf.Graph.from_igraph(graph, vertex=None) as made:
        assert made.neighbors(0) == [1]


TABLE = pa.table({"source": [1, 1, FAR], "target": [2, 2, -4], "weight": [0.5, 0.25, -1.0]})


def test_tables_there_and_back() -> None:
    for make, give in (
        (bf.Graph.from_arrow, bf.Graph.to_arrow),
        (bf.Graph.from_pandas, bf.Graph.to_pandas),
        (bf.Graph.from_polars, bf.Graph.to_polars),
    ):
        with bf.Graph.from_arrow(TABLE) as graph:
            given = give(graph)
            assert isinstance(given, (pa.Table, pd.DataFrame, pl.DataFrame))
            with make(given) as again:
                assert (
                    edges(again)
                    == edges(graph)
                    == Counter(zip(*TABLE.to_pydict().values(), strict=True))
                )


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_files_and_categories_of_polars(tmp_path: Path, compression: Any) -> None:
    path = tmp_path / "edges.arrow"
    names = pl.DataFrame({"source": ["a", "b", "x" * 99], "target": ["b", "c", "a"]})
    kinds: list[Any] = [pl.String, pl.Categorical, pl.Enum(["a", "b", "c", "x" * 99])]
    for kind in kinds:
        frame = names.cast(kind)
        frame.write_ipc(path, compression=compression)
        for given in (path, frame):
            with bf.read(given) as graph:
                assert sorted(graph) == ["a", "b", "c", "x" * 99] and graph.arcs == 3
    whole = path.read_bytes()
    path.write_bytes(whole[:-40] + b"\xff" * 30 + whole[-10:])
    with pytest.raises(bf.InputError):
        bf.read(path)


def test_a_graph_is_an_arrow_stream() -> None:
    with bf.Graph.from_arrow(TABLE) as graph:
        assert sorted(pl.DataFrame(graph).rows()) == sorted(
            zip(*TABLE.to_pydict().values(), strict=True)
        )
        with bf.read(graph) as copy:
            assert edges(copy) == edges(graph)


def test_duckdb_relations() -> None:
    duckdb = optional("duckdb")
    relation = duckdb.sql(
        "select range as source, range + 1 as target, 0.5 as weight from range(5)"
    )
    with bf.Graph.from_arrow(relation.project("source, target")) as graph:
        assert (graph.vertices, graph.edges) == (6, 5)
    cast = duckdb.sql("select i as source, i + 1 as target, i / 2 as weight from range(5) t(i)")
    with bf.Graph.from_arrow(cast) as graph:
        assert graph.weighted and edges(graph)[4, 5, 2.0] == 1


def test_more_than_a_batch() -> None:
    big = nx.gnm_random_graph(3000, 150_000, seed=1, directed=True)
    with bf.Graph.from_networkx(big) as graph:
        assert edges(graph) == networkx_edges(big)
        matrix, _ = graph.to_scipy()
        with bf.Graph.from_scipy(matrix, weighted=False) as again:
            assert edges(again) == edges(graph)


@pytest.mark.parametrize(
    ("package", "method"),
    [
        ("networkx", "to_networkx"),
        ("scipy", "to_scipy"),
        ("igraph", "to_igraph"),
        ("pandas", "to_pandas"),
        ("polars", "to_polars"),
    ],
)
def test_a_missing_package_is_named(
    package: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)

    class Hidden:
        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            if name.partition(".")[0] == package:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    with bf.Graph.from_arrow(TABLE) as graph:
        monkeypatch.setattr(sys, "meta_path", [Hidden(), *sys.meta_path])
        with pytest.raises(bf.UsageError, match=f"{method} needs {package}.*pip install {package}"):
            getattr(graph, method)()


def test_a_closed_graph_gives_nothing() -> None:
    graph = bf.Graph.from_arrow(TABLE)
    graph.close()
    with pytest.raises(bf.UsageError, match="closed"):
        graph.to_arrow()
