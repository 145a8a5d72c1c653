"""States of several numbers: the same records interpreted, compiled and in arrays."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest

import brimful as bf
from nightly import rows_with_nightly


class Ranks(bf.Program):
    """PageRank, unnormalized; how often a vertex collected, and its greatest rank so far."""

    delivery, combiner, signal_threshold = "latest", "sum", 1e-10
    state_type = np.dtype([("rank", "f8"), ("seen", "u4"), ("greatest", "f4")])

    def initial_state(self, vertex: Any) -> Any:
        return 0.15, 0, 0.15

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return source.state.rank / source.degree

    def collect(self, vertex: Any, signals: Any) -> Any:
        rank = 0.15 + 0.85 * signals[0]
        return rank, vertex.state.seen + 1, np.maximum(rank, vertex.state.greatest)

    def signal_score(self, vertex: Any) -> Any:
        before = vertex.signalled.rank if vertex.signalled else 0.0
        return abs(vertex.state.rank - before)


class RanksOfArrays(Ranks):
    """The same, where fields are arrays."""

    def signal_score(self, vertex: Any) -> Any:
        return np.abs(vertex.state.rank - vertex.signalled.rank)


class Hops(bf.Program):
    """Least length of a path from a vertex, and whether and how often it became shorter."""

    delivery, combiner = "combined", "min"
    state_type = np.dtype([("near", "?"), ("length", "f8"), ("times", "u1"), ("last", "i2")])

    def __init__(self, source: int) -> None:
        self.source = source

    def initial_state(self, vertex: Any) -> Any:
        is_source = vertex.id == self.source
        return is_source, np.where(is_source, 0.0, np.inf)[()], 0, -1

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return source.state.length + weight

    def collect(self, vertex: Any, signals: Any) -> Any:
        old = vertex.state
        is_less = signals[0] < old.length
        return (
            old.near | (signals[0] <= 2.0),
            np.minimum(old.length, signals[0]),
            old.times + 1 * is_less,
            np.where(is_less, old.times, old.last)[()],
        )


class Wide(bf.Program):
    """Eight floats: functions of the greatest id that reaches a vertex."""

    delivery, combiner = "combined", "max"
    state_type = np.dtype([(f"power{at}", "f8") for at in range(8)])

    def initial_state(self, vertex: Any) -> Any:
        x = vertex.id * 0.5
        return x, x * x, x * x * x, x + 1, x + 2, x + 3, x + 4, x + 5

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return source.state.power0

    def collect(self, vertex: Any, signals: Any) -> Any:
        x = np.maximum(vertex.state.power0, signals[0])
        return x, x * x, x * x * x, x + 1, x + 2, x + 3, x + 4, x + 5


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> bf.Graph:
    """Return 600 vertices, some of them isolated, with self-loops and parallel edges."""
    random = np.random.default_rng(5)
    source, target = random.integers(0, 500, 1500), random.integers(0, 500, 1500)
    path = tmp_path_factory.mktemp("records") / "edges.csv"
    weights = random.integers(1, 9, 1500) / 4
    rows = zip(source.tolist(), target.tolist(), weights.tolist(), strict=True)
    path.write_text("source,target,weight\n" + "".join(f"{s},{t},{w}\n" for s, t, w in rows))
    return bf.read(str(path), vertices=600)


@pytest.mark.parametrize(
    ("program", "weighted"),
    rows_with_nightly([(Hops(7), True), (Wide(), False)], [(Hops(7), False)]),
    ids=["weighted", "wide", "hops"],
)
def test_the_same_class_gives_the_same_records_in_all_ways(
    graph: bf.Graph, program: bf.Program, weighted: bool
) -> None:
    stores = [{"on": "store"}, {"on": "store", "store": "bytes"}]
    shards: list[dict[str, Any]] = [{"on": "shards"}, {"on": "shards", "compile": "never"}]
    shards.append({"store": "bytes", "compile": "numpy"})
    whole = [bf.run(graph, program, weighted=weighted, **way) for way in (*stores, *shards)]
    variants = [one.stats["variant"] for one in whole]
    assert variants == ["interpreted", "interpreted", "compiled", "arrays", "arrays"]
    interpreted, _, compiled, _, _ = (one.to_arrow() for one in whole)
    assert interpreted.column_names == ["vertex", *program.state_type.names]  # type: ignore[union-attr]
    assert interpreted.schema.types == compiled.schema.types
    for one in whole[1:]:
        assert one.to_arrow().to_pydict() == interpreted.to_pydict()
        assert dict(one) == dict(whole[0])
    assert whole[2].top(3) == whole[0].top(3)
    assert whole[2][7] == whole[0][7] and type(whole[2][7]).__name__ == "State"


def test_lengths_are_those_of_networkx(graph: bf.Graph) -> None:
    edges = graph.to_arrow().to_pydict()
    multi: nx.MultiDiGraph = nx.MultiDiGraph()
    multi.add_weighted_edges_from(
        zip(edges["source"], edges["target"], edges["weight"], strict=True)
    )
    found = bf.run(graph, Hops(7), on="shards", weighted=True)
    lengths = {v: state.length for v, state in found.items() if not math.isinf(state.length)}
    assert lengths == pytest.approx(nx.single_source_dijkstra_path_length(multi, 7))
    near = {v for v, state in found.items() if state.near}
    assert near - {7} == {v for v, length in lengths.items() if length <= 2.0} - {7}


def test_sums_agree_and_every_collect_counts(graph: bf.Graph) -> None:
    compiled = bf.run(graph, Ranks(), on="shards", max_supersteps=12)
    arrays = bf.run(graph, RanksOfArrays(), on="shards", compile="never", max_supersteps=12)
    assert compiled.to_arrow().equals(arrays.to_arrow())
    interpreted = bf.run(graph, Ranks(), on="store", max_supersteps=12)
    for vertex, state in interpreted.items():
        assert compiled[vertex].rank == pytest.approx(state.rank, abs=1e-9)
        assert compiled[vertex].greatest == pytest.approx(state.greatest, rel=1e-6)
    assert {state.seen for state in compiled.values()} == {0, 12}
    ranks = bf.pagerank(graph, variant="unnormalized", tolerance=0, max_supersteps=12)
    assert [state.rank for state in compiled.values()] != []
    assert compiled[7].rank == pytest.approx(ranks[7], rel=1e-9)


@pytest.mark.parametrize("program", [Ranks(), Wide()], ids=["dense", "sparse"])
def test_records_are_the_same_bits_at_any_number_of_threads_and_budget(
    divided: Path, program: bf.Program
) -> None:
    options: dict[str, Any] = {"on": "shards", "max_supersteps": 9}
    with bf.Graph.open(divided) as graph:
        one = bf.run(graph, program, threads=1, budget="2G", **options)
        for threads in (2, 3):
            other = bf.run(graph, program, threads=threads, budget="128M", **options)
            assert one.to_arrow().equals(other.to_arrow())


@pytest.mark.parametrize(
    "way", [{"on": "shards"}, {"on": "store"}, {"on": "store", "store": "bytes"}]
)
def test_a_run_of_records_resumes(
    graph: bf.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: dict[str, Any]
) -> None:
    saved: dict[str, Any] = {
        "checkpoint_every": 1,
        "checkpoint_dir": str(tmp_path / "saved"),
        **way,
    }
    bf.run(graph, Ranks(), max_supersteps=4, **saved)
    resumed = bf.run(graph, Ranks(), max_supersteps=8, resume=True, **saved)
    assert resumed.stats["resumed_from"] == 4
    whole = bf.run(graph, Ranks(), max_supersteps=8, **way)
    assert resumed.to_arrow().equals(whole.to_arrow())

    monkeypatch.setattr(
        Ranks, "state_type", np.dtype([*Ranks.state_type.descr[:2], ("greatest", "f8")])
    )
    with pytest.raises(bf.BrimfulError, match="attribute state_type was"):
        bf.run(graph, Ranks(), max_supersteps=8, resume=True, **saved)


def test_files_have_a_column_for_each_field(graph: bf.Graph, tmp_path: Path) -> None:
    import pyarrow.csv
    import pyarrow.parquet

    found = bf.run(graph, Hops(7), on="shards")
    found.write(tmp_path / "hops.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "hops.parquet").equals(found.to_arrow())
    found.write(tmp_path / "hops.csv")
    table = pyarrow.csv.read_csv(tmp_path / "hops.csv")
    assert table.column_names == ["vertex", "near", "length", "times", "last"]
    assert table["times"].to_pylist() == found.to_arrow()["times"].to_pylist()
    assert found.top(1, field="times")[0][1].times == max(s.times for s in found.values())
    with pytest.raises(bf.UsageError, match="field must be near, length, times or last, not depth"):
        found.top(1, field="depth")


def refused(graph: bf.Graph, program: bf.Program, match: str, **options: Any) -> None:
    """Check that a program is refused before the run."""
    with pytest.raises(bf.UsageError, match=match):
        bf.run(graph, program, **{"on": "shards", **options})


def test_states_that_do_not_fit_their_fields_are_refused(graph: bf.Graph) -> None:
    class Floats(Hops):
        state_type = np.dtype([("near", "?"), ("length", "i8"), ("times", "u1"), ("last", "i2")])

    class Short(Hops):
        def collect(self, vertex: Any, signals: Any) -> Any:
            return vertex.state.near, signals[0]

    class Number(Hops):
        def initial_state(self, vertex: Any) -> Any:
            return 1.0

    class Plain(Hops):
        state_type = np.dtype("f8")

    class Mapped(Hops):
        state_type: Any = {"length": "f8"}  # noqa: RUF012

    class Unsigned(Hops):
        state_type = np.dtype([("id", "u8")])

    class Named(Hops):
        state_type = np.dtype([("vertex", "f8")])

    class Large(Hops):
        state_type = np.dtype([(f"x{at}", "f8") for at in range(9)])

    place = r"\(.*test_records.py, line \d+\)"
    refused(graph, Floats(1), rf"initial_state {place} returns float64 for length, .* int64")
    refused(graph, Short(1), rf"collect {place} returns .* in place of 4 values \(near, length")
    refused(graph, Number(1), rf"initial_state {place} returns float64 in place of 4 values")
    refused(graph, Floats(1), "the field length is int64, not float64", compile="never")
    refused(graph, Short(1), "not a tuple of near, length, times, last", compile="never")
    refused(graph, Large(1), "a state has 72 bytes, but compiled programs allow at most 64")
    for way in ("shards", "store"):
        refused(graph, Plain(1), "state_type must be a structured type of NumPy", on=way)
        refused(graph, Mapped(1), "state_type must be a structured type of NumPy: ", on=way)
        refused(graph, Unsigned(1), "the field id of state_type has the type uint64", on=way)
        refused(graph, Named(1), "a field vertex, the name of the id column of the result", on=way)
    for program in (Floats(1), Short(1), Number(1)):
        with pytest.raises(bf.ProgramError):
            bf.run(graph, program, on="store")
    refused(graph, Hops(1), "cannot be kept", on="store", store="file:/tmp/none", keep=True)


def test_an_integer_beyond_its_field_is_an_error_everywhere(tmp_path: Path) -> None:
    class Counts(bf.Program):
        delivery, combiner = "combined", "max"
        state_type = np.dtype([("count", "u1")])

        def initial_state(self, vertex: Any) -> Any:
            return (vertex.id,)

        def signal(self, source: Any, target: Any, weight: float) -> Any:
            return source.state.count

        def collect(self, vertex: Any, signals: Any) -> Any:
            return (signals[0] + 100,)

    table = pa.table({"source": [100, 1], "target": [1, 2]})
    with bf.Graph.from_arrow(table, path=str(tmp_path / "g.brimful")) as small:
        for way in ({"on": "store"}, {"on": "shards", "compile": "never"}, {"on": "shards"}):
            with pytest.raises(bf.ProgramError, match="the field count holds 0 to 255, not 300"):
                bf.run(small, Counts(), **way)  # type: ignore[call-overload]
        assert dict(bf.run(small, Counts(), on="shards", max_supersteps=1)) == dict(
            bf.run(small, Counts(), on="store", max_supersteps=1)
        )


@pytest.mark.parametrize("way", [{"store": "memory"}, {"store": "bytes"}, {"compile": "numba"}])
def test_fields_that_stay_nan_are_no_change(way: dict[str, Any]) -> None:
    class Unknown(bf.Program):
        delivery, combiner = "combined", "max"
        state_type = np.dtype([("length", "f8"), ("calls", "i8")])
        aggregators: ClassVar = {"changes": bf.Aggregator("sum", 0, persistent=True)}

        def initial_state(self, vertex: Any) -> Any:
            return math.nan, 0

        def signal(self, source: Any, target: Any, weight: float) -> Any:
            return 1.0

        def collect(self, vertex: Any, signals: Any) -> Any:
            return vertex.state.length * signals[0], 0

        def aggregate(self, vertex: Any, new: Any) -> Any:
            return 1

    class Scored(Unknown):
        def signal_score(self, vertex: Any) -> Any:
            return super().signal_score(vertex)

    programs = [Unknown()] if "compile" in way else [Unknown(), Scored()]
    with bf.Graph.from_arrow(pa.table({"source": [1, 2], "target": [2, 1]})) as graph:
        for program in programs:
            found = bf.run(graph, program, max_supersteps=3, **way)
            assert found.stats["aggregates"] == {"changes": 0}
            assert found.stats["supersteps"] == 1
