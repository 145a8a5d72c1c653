"""The Python package: reading, graphs, results, errors."""

from __future__ import annotations

import gc
import itertools
import os
import pickle
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import brimful as bf
from command import names_below, succeed, write_edges
from plain_programs import Ranks

EDGES = [(1, 2), (1, 3), (2, 3), (3, 3), (1, 2), (7, 1)]


@pytest.fixture
def table() -> pa.Table:
    sources, targets = zip(*EDGES, strict=True)
    return pa.table({"source": sources, "target": targets})


def test_a_graph_answers(table: pa.Table) -> None:
    with bf.Graph.from_arrow(table) as graph:
        assert (len(graph), graph.vertices, graph.edges, graph.arcs) == (4, 4, 6, 6)
        assert graph.directed and not graph.weighted
        assert graph.neighbors(1) == [2, 2, 3]
        assert graph.neighbors(3) == [3]
        assert [graph.degree(vertex) for vertex in (1, 2, 3, 7)] == [3, 1, 1, 1]
        assert 7 in graph and np.int32(7) in graph and 4 not in graph
        assert "seven" not in graph and 2**70 not in graph and 7.5 not in graph
        assert "4 vertices" in repr(graph) and "<table>" in graph._repr_html_()
        assert graph.info()["vertices"] == 4
        assert graph.verify()["arcs"] == 6


@pytest.mark.parametrize("vertex", [4, -1, 2**63, 2**64, -(2**70), "seven", None, 1.0])
def test_unknown_vertices(table: pa.Table, vertex: object) -> None:
    with bf.Graph.from_arrow(table) as graph:
        result = bf.pagerank(graph)
        for question in (graph.neighbors, graph.degree, result.__getitem__):
            with pytest.raises(bf.NotFoundError) as refusal:
                question(vertex)  # type: ignore[arg-type]
            assert isinstance(refusal.value, KeyError)
            assert "vertex" in str(refusal.value) and not str(refusal.value).startswith("'")


@pytest.mark.parametrize("path", ["web.brimful", Path("web.brimful")])
def test_a_graph_is_not_made_from_a_path(path: Any) -> None:
    with pytest.raises(bf.UsageError, match=r"open a graph with Graph\.open\('web\.brimful'\)"):
        bf.Graph(path)


def test_temporary_graphs_are_removed(table: pa.Table) -> None:
    graph = bf.Graph.from_arrow(table)
    path = graph.path
    assert os.path.isdir(path)
    graph.close()
    graph.close()
    assert not os.path.exists(os.path.dirname(path))
    with pytest.raises(bf.UsageError, match="closed"):
        graph.neighbors(1)
    assert "closed" in repr(graph)
    forgotten = bf.Graph.from_arrow(table)
    path = forgotten.path
    del forgotten
    gc.collect()
    assert not os.path.exists(os.path.dirname(path))


def test_kept_graphs_are_kept(table: pa.Table, tmp_path: Path) -> None:
    with bf.Graph.from_arrow(table, path=tmp_path / "g.brimful") as graph:
        assert graph.path == str(tmp_path / "g.brimful")
    with bf.Graph.open(tmp_path / "g.brimful") as graph:
        assert graph.edges == 6
    with bf.read(tmp_path / "g.brimful") as graph:
        assert graph.edges == 6
    with pytest.raises(bf.UsageError, match="exists"):
        bf.Graph.from_arrow(table, path=tmp_path / "g.brimful")


def test_a_result_outlives_its_graph(table: pa.Table) -> None:
    with bf.Graph.from_arrow(table) as graph:
        result = bf.pagerank(graph)
    assert len(result.to_arrow()) == 4


def test_anything_arrow(table: pa.Table, tmp_path: Path) -> None:
    pq.write_table(table, tmp_path / "e.parquet")
    sources: list[object] = [
        table,
        pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=2)),
        pl.DataFrame(table),
        pd.DataFrame(EDGES, columns=["a", "b"]),
        table.cast(pa.schema([("source", pa.uint8()), ("target", pa.int16())])),
        pa.table({name: table[name].dictionary_encode() for name in table.schema.names}),
    ]
    for source in sources:
        with bf.read(source) as graph:
            assert (graph.vertices, graph.edges) == (4, 6)
            assert graph.neighbors(1) == [2, 2, 3]
    text = pl.DataFrame(table).with_columns(pl.all().cast(pl.String))
    with bf.read(text, ids="int") as graph:
        assert graph.neighbors(1) == [2, 2, 3]


@pytest.mark.parametrize("kind", ["float16", "float32", "int8", "uint64"])
def test_weights_are_numbers_of_any_type(kind: str, tmp_path: Path) -> None:
    weights = pa.array([1, 3], "float64").cast(kind)
    table = pa.table({"source": [1, 1], "target": [2, 3], "weight": weights})
    pq.write_table(table, tmp_path / "e.parquet")
    for source in (table, table.to_reader(), tmp_path / "e.parquet"):
        with bf.read(source) as graph:
            assert graph.neighbors(1, weights=True) == ([2, 3], [1.0, 3.0])


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([[1, 2, 3]], columns=["source", "target", "target"]),
        pd.DataFrame({"source": [1, "a"], "target": [1, 2]}),
        pl.DataFrame({"source": [1], "target": [2]}, schema_overrides={"source": pl.Int128}),
    ],
)
def test_frames_that_are_no_tables_of_arrow(frame: object) -> None:
    remedy = "give each column a unique name and a single type that Arrow supports"
    with pytest.raises(
        bf.InputError, match=rf"the table cannot be converted to an Arrow table .*; {remedy}"
    ):
        bf.Graph.from_arrow(frame)
    with pytest.raises(
        bf.InputError, match=rf"the first result cannot be converted to an Arrow table .*; {remedy}"
    ):
        bf.compare(frame, frame)


def test_read_takes_paths_and_lists(tmp_path: Path) -> None:
    first, second = write_edges(tmp_path / "a.txt", EDGES[:2]), tmp_path / "b.txt"
    write_edges(second, EDGES[2:])
    with bf.read([str(first), second], budget="200M") as graph:
        assert graph.edges == 6
        assert graph.budget == 200 << 20
        temporary = graph.path
    assert not os.path.exists(temporary)
    with bf.read(first, path=tmp_path / "g.brimful") as graph:
        assert graph.edges == 2
    assert (tmp_path / "g.brimful").is_dir()
    for wrong in ([], [(1, 2)], 5, None):
        with pytest.raises(bf.UsageError):
            bf.read(wrong)
    with pytest.raises(bf.NotFoundError):
        bf.read(tmp_path / "gone.txt")


def test_columns_of_tables() -> None:
    table = pa.table({"w": [1.0, 2.0], "to": [2, 3], "from": [1, 2]})
    with bf.Graph.from_arrow(table, source="from", target="to", weight="w") as graph:
        assert graph.weighted and graph.neighbors(1) == [2]
    for columns in (
        {"source": "gone", "target": "to"},
        {"source": "w", "target": "to"},
        {"source": "from", "target": "to", "weight": "gone"},
    ):
        with pytest.raises(bf.InputError):
            bf.Graph.from_arrow(table, **columns)
    with pytest.raises(bf.UsageError, match="named twice"):
        bf.Graph.from_arrow(table, source="from", target="from")
    with pytest.raises(bf.InputError, match="null"):
        bf.Graph.from_arrow(pa.table({"source": [1, None], "target": [1, 2]}))


def test_a_failing_stream_keeps_its_own_error(tmp_path: Path) -> None:
    def batches():  # type: ignore[no-untyped-def]
        yield pa.record_batch({"source": [1], "target": [2]})
        raise pa.ArrowInvalid("the pipe is broken")

    schema = pa.schema([("source", pa.int64()), ("target", pa.int64())])
    with pytest.raises(bf.InputError, match="the pipe is broken"):
        bf.read(pa.RecordBatchReader.from_batches(schema, batches()), path=tmp_path / "g.brimful")
    assert names_below(tmp_path) == set()


def test_a_result_converts(table: pa.Table, tmp_path: Path) -> None:
    with bf.Graph.from_arrow(table) as graph:
        result = bf.pagerank(graph)
        arrow = result.to_arrow()
        assert arrow.schema.names == ["vertex", "pagerank"]
        assert arrow["vertex"].to_pylist() == [1, 2, 3, 7]
        assert result.to_pandas()["pagerank"].tolist() == arrow["pagerank"].to_pylist()
        assert result.to_polars()["vertex"].to_list() == [1, 2, 3, 7]
        assert pl.DataFrame(result).equals(result.to_polars())
        assert pa.table(result).equals(pa.table(result))
        assert len(result) == 4
        assert result[3] == arrow["pagerank"].to_pylist()[2]
        assert result.top(2)[0] == (3, result[3])
        assert len(result.top(100)) == 4 and result.top(0) == []
        assert result.stats["output"] is None
        for name in ("r.parquet", "r.csv", "r.arrow"):
            result.write(str(tmp_path / name))
            with pytest.raises(bf.UsageError, match="exists"):
                result.write(str(tmp_path / name))
            result.write(str(tmp_path / name), overwrite=True)
        assert result.stats["output"].endswith("r.arrow")
        assert "pagerank" in repr(result) and "<table>" in result._repr_html_()
        assert pq.read_table(tmp_path / "r.parquet").equals(arrow)


def test_top_breaks_ties_by_vertex(table: pa.Table) -> None:
    ring = pa.table({"source": [5, 3, 9], "target": [3, 9, 5]})
    with bf.Graph.from_arrow(ring) as graph:
        assert [vertex for vertex, _ in bf.pagerank(graph).top(3)] == [3, 5, 9]


def test_parameters_are_checked(table: pa.Table) -> None:
    with bf.Graph.from_arrow(table) as graph:
        for options in (
            {"damping": 1.5},
            {"damping": float("nan")},
            {"variant": "other"},
            {"precision": "f16"},
            {"tolerance": -1.0},
            {"threads": 0},
            {"threads": 1025},
            {"threads": 1.5},
            {"max_supersteps": -1},
            {"max_supersteps": 2.5},
            {"max_supersteps": 2**64},
            {"budget": "lots"},
        ):
            with pytest.raises(ValueError) as refusal:
                bf.pagerank(graph, **options)  # type: ignore[arg-type]
            assert isinstance(refusal.value, bf.BrimfulError), options


def test_paths_and_numbers_of_rows_are_checked(table: pa.Table, tmp_path: Path) -> None:
    class Named(bf.Program):
        def initial_state(self, vertex: Any) -> object:
            return (vertex.id,)

        def signal(self, source: Any, target: Any, weight: float) -> object:
            return None

        def collect(self, vertex: Any, signals: Any) -> object:
            return vertex.state

    with bf.Graph.from_arrow(table) as graph:
        degrees, pairs, states = bf.degrees(graph), bf.similarity(graph), bf.run(graph, Named())
        degrees.write(tmp_path / "degrees.csv")
        saved = bf.SavedResult(tmp_path / "degrees.csv")
        rows: Any
        for rows in (degrees, pairs, states, saved):
            for number in (-1, 1.5, None, "2"):
                with pytest.raises(bf.UsageError, match=r"n must be (a whole|at least)"):
                    rows.top(number)
            assert rows.top(0) == [] and len(rows.top(2**62)) == len(rows)
            for path in (b"x.csv", 3, None):
                with pytest.raises(bf.UsageError, match="path must be a path, not"):
                    rows.write(path)
        with pytest.raises(bf.UsageError, match="top must be at least 0, not -1"):
            bf.compare(degrees, degrees, top=-1)
        calls: list[Any] = [bf.Graph.open, bf.SavedResult, graph.export, graph.report().write]
        for call in (*calls, bf.Map, bf.FrequencyCounter):
            with pytest.raises(bf.UsageError, match="path must be a path, not 3"):
                call(3)


def test_a_budget_error_says_what_works(table: pa.Table) -> None:
    with bf.Graph.from_arrow(table) as graph:
        with pytest.raises(bf.BudgetError) as refusal:
            bf.pagerank(graph, budget=1)
        assert isinstance(refusal.value, MemoryError)
        assert bf.pagerank(graph, budget=refusal.value.needed_bytes)[1] > 0


def test_errors_pickle_and_keep_their_figures() -> None:
    budget = pickle.loads(pickle.dumps(bf.BudgetError("too small", 5)))
    assert (str(budget), budget.needed_bytes) == ("too small", 5)
    refused = pickle.loads(pickle.dumps(bf.StoreIoError("cannot write x", 28)))
    assert (str(refused), refused.errno) == ("cannot write x", 28)
    assert isinstance(refused, OSError)
    assert bf.StoreIoError("cannot write x", None).errno is None
    missing = pickle.loads(pickle.dumps(bf.NotFoundError("there is no vertex 5")))
    assert str(missing) == "there is no vertex 5"
    for kind in (bf.InputError, bf.UsageError, bf.CorruptError, bf.ProgramError):
        assert isinstance(pickle.loads(pickle.dumps(kind("a b"))), kind)


@pytest.mark.parametrize("kind", [bf.BudgetError, bf.StoreIoError, bf.ProgramError, bf.UsageError])
def test_errors_of_a_worker_name_the_flags_of_the_command_line(
    kind: type[bf.BrimfulError], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = pickle.dumps(kind("it needs 5M; use --budget 5M"))
    assert str(pickle.loads(data)) == "it needs 5M; use budget=5M"
    monkeypatch.setattr(bf.BrimfulError, "names_flags", True)
    assert str(pickle.loads(data)) == "it needs 5M; use --budget 5M"


def test_other_threads_run_while_a_call_works(tmp_path: Path) -> None:
    numbers = np.arange(4_000_000)
    table = pa.table({"source": numbers % 65_537, "target": numbers * 7919 % 65_537})
    ticks: list[float] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.005)

    with bf.Graph.from_arrow(table) as graph:
        thread = threading.Thread(target=tick)
        thread.start()
        began = time.monotonic()
        bf.pagerank(graph, tolerance=0, max_supersteps=100)
        ended = time.monotonic()
        stop.set()
        thread.join()
    during = [moment for moment in ticks if began <= moment <= ended]
    gaps = [later - earlier for earlier, later in itertools.pairwise(during)]
    assert len(during) > 10 and max(gaps) < (ended - began) / 2


def test_progress_is_reported(table: pa.Table) -> None:
    seen: list[tuple[str, int, int, float]] = []
    numbers = np.arange(4_000_000)
    edges = pa.table({"source": numbers % 65_537, "target": numbers * 7919 % 65_537})
    with bf.Graph.from_arrow(edges, progress=lambda *report: seen.append(report)) as graph:
        assert seen and all(isinstance(phase, str) for phase, *_ in seen)
        seen.clear()
        bf.pagerank(
            graph, tolerance=0, max_supersteps=60, progress=lambda *report: seen.append(report)
        )
        assert seen and all(done >= 0 and total >= 0 and s >= 0 for _, done, total, s in seen)


def test_an_error_in_progress_stops_the_call(tmp_path: Path) -> None:
    def stop(phase: str, done: int, total: int, seconds: float) -> None:
        raise KeyboardInterrupt

    numbers = np.arange(4_000_000)
    edges = pa.table({"source": numbers % 65_537, "target": numbers * 7919 % 65_537})
    with pytest.raises(KeyboardInterrupt):
        bf.Graph.from_arrow(edges, progress=stop, path=tmp_path / "g.brimful")
    assert names_below(tmp_path) == set()


def test_names() -> None:
    assert set(bf.__all__) <= set(dir(bf))
    assert all(getattr(bf, name) is not None for name in bf.__all__)
    with pytest.raises(AttributeError):
        bf.frobnicate  # noqa: B018


def test_an_attribute_that_a_graph_lacks_names_the_function(tmp_path: Path) -> None:
    with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as graph:
        for name, hint in (
            ("pagerank", r"; that is brimful\.pagerank\(graph, \.\.\.\)$"),
            ("run", r"; that is brimful\.run\(graph, \.\.\.\)$"),
            ("neighbours", r"; did you mean 'neighbors'\?$"),
            ("zzz", "no attribute 'zzz'$"),
            ("__len_hint__", "no attribute '__len_hint__'$"),
        ):
            with pytest.raises(AttributeError, match=hint):
                getattr(graph, name)
            assert not hasattr(graph, name)


def test_an_output_that_is_an_input(tmp_path: Path) -> None:
    edges, ages, other = (tmp_path / name for name in ("e.csv", "ages.csv", "other.csv"))
    edges.write_text("source,target\n1,2\n2,3\n")
    ages.write_text("vertex,age\n1,7\n")
    before = edges.read_text(), ages.read_text()
    with bf.read(edges) as graph:
        degrees = bf.degrees(graph)
        states = bf.run(graph, Ranks(), max_supersteps=1)
        for write in (
            lambda: graph.export(edges, overwrite=True),
            lambda: degrees.write(edges, overwrite=True),
            lambda: degrees.write_joined(edges, ages, overwrite=True),
            lambda: degrees.write_joined(ages, ages, overwrite=True),
            lambda: bf.similarity(graph).write(edges, overwrite=True),
            lambda: states.write(edges, overwrite=True),
        ):
            with pytest.raises(bf.UsageError, match="would replace an input; name another"):
                write()
        assert (edges.read_text(), ages.read_text()) == before
        other.write_text("")
        degrees.write(other, overwrite=True)
    # A graph that its user named does not stand for the file.
    succeed("import", edges, tmp_path / "g.brimful", "--quiet")
    with bf.Graph.open(tmp_path / "g.brimful") as graph:
        graph.export(edges, overwrite=True)
