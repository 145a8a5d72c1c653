"""Programs without a compiler: methods called with arrays give the same answers."""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import brimful as bf
from nightly import rows_with_nightly, with_nightly


class Ranks(bf.Program):
    """PageRank, unnormalized, written for numbers and arrays alike."""

    delivery, combiner, signal_threshold = "latest", "sum", 1e-9

    def __init__(self, damping: float = 0.85) -> None:
        self.damping = damping

    def initial_state(self, vertex: Any) -> Any:
        return 1 - self.damping

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return source.state / source.degree

    def collect(self, vertex: Any, signals: Any) -> Any:
        return 1 - self.damping + self.damping * signals[0]

    def signal_score(self, vertex: Any) -> Any:
        return np.abs(vertex.state - (0.0 if vertex.signalled is None else vertex.signalled))


class Distances(bf.Program):
    """Lengths of shortest paths from a vertex."""

    delivery, combiner = "combined", "min"

    def __init__(self, source: int) -> None:
        self.source = source

    def initial_state(self, vertex: Any) -> Any:
        return np.where(vertex.id == self.source, 0.0, np.inf)[()]

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return source.state + weight

    def collect(self, vertex: Any, signals: Any) -> Any:
        return np.minimum(vertex.state, signals[0])


class Least(bf.Program):
    """The least id from which a vertex can be reached."""

    delivery, combiner = "combined", "min"

    def initial_state(self, vertex: Any) -> Any:
        return vertex.id

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return source.state

    def collect(self, vertex: Any, signals: Any) -> Any:
        return np.minimum(vertex.state, signals[0])


class Nearest(Least):
    """The least sum of an id and the weights from there; states begin as integers."""

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return source.state + weight


class Reached(bf.Program):
    """The first vertices from which a vertex can be reached, as bits."""

    delivery, combiner = "combined", "or"

    def initial_state(self, vertex: Any) -> Any:
        return np.where((vertex.id >= 0) & (vertex.id < 60), 1 << (vertex.id & 63), 0)[()]

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return source.state

    def collect(self, vertex: Any, signals: Any) -> Any:
        return vertex.state | signals[0]


#: Programs, and whether they read weights.
PROGRAMS: list[tuple[bf.Program, bool]] = [
    (Ranks(), False),
    (Nearest(), True),
]
OTHERS: list[tuple[bf.Program, bool]] = [
    (Distances(7), False),
    (Distances(7), True),
    (Least(), False),
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> bf.Graph:
    """Return 3,000 vertices, more than a batch, some of them isolated, with parallel edges."""
    random = np.random.default_rng(3)
    source, target = random.integers(-9, 2990, 9000), random.integers(-9, 2990, 9000)
    table = pa.table(
        {"source": source, "target": target, "weight": random.integers(1, 9, 9000) / 4}
    )
    path = str(tmp_path_factory.mktemp("arrays") / "g.brimful")
    return bf.Graph.from_arrow(table, weight="weight", path=path)


@pytest.mark.parametrize(
    ("program", "weighted"),
    rows_with_nightly(PROGRAMS, OTHERS),
    ids=lambda it: type(it).__name__,
)
def test_arrays_compiled_code_and_calls_give_one_answer(
    graph: bf.Graph, program: bf.Program, weighted: bool
) -> None:
    arrays = bf.run(graph, program, on="shards", compile="numpy", weighted=weighted)
    compiled = bf.run(graph, program, on="shards", weighted=weighted)
    interpreted = bf.run(graph, program, on="store", weighted=weighted)
    assert arrays.stats["variant"] == "arrays"
    assert arrays.to_arrow().equals(compiled.to_arrow())
    if isinstance(program, Ranks):
        assert list(arrays.values()) == pytest.approx(list(interpreted.values()), abs=1e-7)
    else:
        assert dict(arrays) == dict(interpreted)


@pytest.mark.parametrize(
    "options",
    with_nightly(
        [
            {"store": "bytes", "threads": 1},
            {"store": "file", "cache": "lru:500"},
            {"store": "kv", "partitioner": "hash"},
        ],
        [{"store": "memory"}, {"store": "rocksdb"}],
    ),
    ids=lambda options: options["store"],
)
def test_arrays_on_a_store_give_the_answer_of_shards(
    graph: bf.Graph, tmp_path: Path, options: dict[str, Any]
) -> None:
    where = options["store"]
    if where not in ("memory", "bytes"):
        where = f"{where}:{tmp_path}"
    chosen = options | {"store": where, "compile": "numpy"}
    for program, weighted in PROGRAMS:
        found = bf.run(graph, program, weighted=weighted, **chosen)
        assert found.stats["variant"] == "arrays"
        shards = bf.run(graph, program, compile="numpy", weighted=weighted)
        assert found.stats["supersteps"] == shards.stats["supersteps"]
        if isinstance(program, Ranks):
            assert list(found.values()) == pytest.approx(list(shards.values()), abs=1e-12)
        else:
            assert found.to_arrow().equals(shards.to_arrow())


def test_vertices_of_a_store_come_in_batches(graph: bf.Graph) -> None:
    class Counts(Least):
        batches: ClassVar[list[int]] = []

        def collect(self, vertex: Any, signals: Any) -> Any:
            self.batches.append(len(vertex.state))
            return np.minimum(vertex.state, signals[0])

    found = bf.run(graph, Counts(), store="bytes", compile="numpy", threads=1, max_supersteps=1)
    # The first call is that with no vertices, which finds the types.
    assert Counts.batches[0] == 0
    collected = found.stats["store_figures"]["vertices_collected"]
    assert sum(Counts.batches) == collected > 2 * 1024
    assert set(Counts.batches[1:-1]) == {1024}


def test_arrays_on_a_store_need_supersteps(graph: bf.Graph) -> None:
    with pytest.raises(bf.UsageError, match="arrays of vertices on a store need supersteps"):
        bf.run(graph, Least(), store="memory", compile="numpy", mode="async")


def test_bits_travel(graph: bf.Graph) -> None:
    found = bf.run(graph, Reached(), on="shards", compile="numpy")
    assert dict(found) == dict(bf.run(graph, Reached()))


def test_arrays_need_no_numba(graph: bf.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "numba", None)
    found = bf.run(graph, Least(), on="shards", compile="numpy")
    assert found.stats["variant"] == "arrays"


def test_results_are_the_same_bits_at_any_number_of_threads(divided: Path) -> None:
    options: dict[str, Any] = {"on": "shards", "compile": "numpy", "max_supersteps": 9}
    with bf.Graph.open(divided) as graph:
        one = bf.run(graph, Ranks(), threads=1, budget="2G", **options)
        for threads in (2, 3):
            other = bf.run(graph, Ranks(), threads=threads, budget="64M", **options)
            assert one.to_arrow().equals(other.to_arrow())


def test_a_run_goes_on_from_its_checkpoint(graph: bf.Graph, tmp_path: Path) -> None:
    options: dict[str, Any] = {"on": "shards", "compile": "numpy"}
    saved = {"checkpoint_every": 2, "checkpoint_dir": str(tmp_path / "c"), **options}
    bf.run(graph, Ranks(), max_supersteps=6, **saved)
    resumed = bf.run(graph, Ranks(), max_supersteps=20, resume=True, **saved)
    assert resumed.stats["resumed_from"] == 6
    whole = bf.run(graph, Ranks(), max_supersteps=20, **options)
    assert resumed.to_arrow().equals(whole.to_arrow())


@pytest.mark.parametrize("options", [{"on": "shards"}, {"store": "bytes"}])
def test_an_exception_names_method_superstep_and_block(
    graph: bf.Graph, options: dict[str, Any]
) -> None:
    class Begins(Least):
        def initial_state(self, vertex: Any) -> Any:
            return vertex.id // (vertex.id - 7)

    class Mismatched(Least):
        def collect(self, vertex: Any, signals: Any) -> Any:
            return vertex.state[len(vertex.state) - 1 :: -1][: len(signals[0]) // 2]

    class Divides(Ranks):
        def collect(self, vertex: Any, signals: Any) -> Any:
            return 1 / (signals[0] - signals[0])

    class Stops(Least):
        def signal(self, source: Any, target: Any, weight: float) -> Any:
            if source.state.min(initial=0) < -8:
                raise RuntimeError
            return source.state

    begins = Begins()
    for program, method, when, kind in (
        (begins, "initial_state", None, FloatingPointError),
        (Mismatched(), "collect", 0, ValueError),
        (Divides(), "collect", 0, FloatingPointError),
        (Stops(), "signal", 0, RuntimeError),
    ):
        superstep = "" if when is None else f" at superstep {when}"
        place = rf"^{method} failed{superstep} for a block of [0-9,]+ vertices from \S+ to \S+: "
        with pytest.raises(bf.ProgramError, match=place + kind.__name__) as raised:
            bf.run(graph, program, compile="numpy", threads=1, **options)
        assert raised.value.superstep == when
        first, last = (int(one) for one in re.findall("from (.+) to (.+?):", str(raised.value))[0])
        assert -9 <= first < last < 2990
        assert first < 7 < last or program is not begins
        cause = raised.value.__cause__
        assert isinstance(cause, kind)
        assert "test_array_kernels.py" in "".join(traceback.format_tb(cause.__traceback__)) or (
            kind is ValueError
        )


def test_an_exception_for_one_vertex_names_it() -> None:
    class Fails(Least):
        def initial_state(self, vertex: Any) -> Any:
            return 3.0

        def collect(self, vertex: Any, signals: Any) -> Any:
            if len(vertex.state):
                raise ValueError("no state")
            return vertex.state

    table = pa.table({"source": ["a"], "target": ["a"]})
    expected = "collect failed at superstep 0 at vertex a: ValueError: no state"
    with (
        bf.Graph.from_arrow(table) as graph,
        pytest.raises(bf.ProgramError, match=expected) as raised,
    ):
        bf.run(graph, Fails(), on="shards", compile="numpy")
    assert raised.value.vertex == "a"
    assert raised.value.state.tolist() == [3.0]


def test_what_takes_no_arrays_is_refused_with_the_method(graph: bf.Graph) -> None:
    class Branches(Least):
        def collect(self, vertex: Any, signals: Any) -> Any:
            return vertex.state if vertex.state < signals[0] else signals[0]

    class Scores(Ranks):
        def signal_score(self, vertex: Any) -> Any:
            return abs(vertex.state - (vertex.signalled or 0.0))

    class Words(Least):
        def initial_state(self, vertex: Any) -> Any:
            return "far"

    class Plain(Least):
        combiner = None  # type: ignore[assignment]

    for program, match in (
        (Branches(), r"collect \(.*test_array_kernels.py, line \d+\) does not take arrays: Value"),
        (
            Scores(),
            r"signal_score \(.*, line \d+\) does not take arrays: Value.*functions of NumPy",
        ),
        (Words(), "returns values of the type <U3 in place of numbers"),
    ):
        with pytest.raises(bf.UsageError, match=match) as refused:
            bf.run(graph, program, on="shards", compile="numpy")
        assert str(refused.value).endswith('or pass on="store" with compile="never".')
    with pytest.raises(bf.UsageError, match=r"Plain has .* no combine\(\)"):
        bf.run(graph, Plain(), on="shards", compile="numpy")
