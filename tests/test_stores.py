"""Vertices in stores: every numeric algorithm gives the answer of the disk path, on every store."""

from __future__ import annotations

import math
import random
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import brimful as bf
from cgroup import hard_limit
from command import BUDGET, DONE, IO, USAGE, assert_one_sentence, brimful, refuse, succeed
from nightly import with_nightly

STORES = ("memory", "bytes", "file", "kv")
#: Those in a folder.
FOLDERS = ("file", "kv")
#: Every numeric algorithm, with the options that choose another program.
RUNS: list[tuple[str, dict[str, Any]]] = [
    ("pagerank", {}),
    ("pagerank", {"variant": "unnormalized", "weighted": True}),
    ("pagerank", {"source": True, "precision": "f32"}),
    ("pagerank", {"method": "delta", "tolerance": 1e-12}),
    ("hits", {"weighted": True}),
    ("eigenvector", {"weighted": True}),
    ("katz", {"alpha": 0.01}),
    ("connected_components", {}),
    ("scc", {"method": "coloring"}),
    ("kcore", {"method": "rounds"}),
    ("bipartite", {}),
    ("bfs", {"source": True}),
    ("bfs", {"source": True, "values": "parent"}),
    ("sssp", {"source": True}),
    ("sssp", {"source": True, "weighted": True}),
    ("count_paths", {"source": True}),
    ("count_paths", {"source": True, "length": 3}),
    ("degrees", {"direction": "both"}),
    ("degrees", {}),
]
#: Those whose result does not depend on when signals are heard.
ANY_ORDER = [
    ("pagerank", {"method": "delta", "tolerance": 1e-12}),
    ("connected_components", {}),
    ("bfs", {"source": True}),
    ("sssp", {"source": True, "weighted": True}),
]


def arcs() -> pa.Table:
    """Return 600 weighted arcs among 160 vertices, with self-loops, multi-arcs and sinks."""
    drawn = random.Random(7)
    pairs = [(int(160 * drawn.random() ** 2), drawn.randrange(160)) for _ in range(600)]
    weights = [float(drawn.randrange(1, 9)) for _ in pairs]
    sources, targets = zip(*pairs, strict=True)
    return pa.table({"source": sources, "target": targets, "weight": weights})


@pytest.fixture(scope="module", params=["numbers", "strings"])
def graph(request: pytest.FixtureRequest) -> Iterator[bf.Graph]:
    """A directed graph with isolated vertices and integer ids; an undirected one with strings."""
    table = arcs()
    if request.param == "numbers":
        given: dict[str, Any] = {"vertices": 170}
    else:
        for column, name in enumerate(["source", "target"]):
            ids = pa.array([f"v{id:03}" for id in table[name].to_pylist()])
            table = table.set_column(column, name, ids)
        given = {"undirected": True}
    with bf.Graph.from_arrow(table, weight="weight", **given) as made:
        yield made


def compute(graph: bf.Graph, algorithm: str, options: dict[str, Any], **more: Any) -> bf.Result:
    """Run an algorithm, by default in two threads; the source is vertex 3."""
    given = {"threads": 2} | options | more
    if given.pop("source", False):
        given["source"] = "v003" if graph.native.id_type == "string" else 3
    return getattr(bf, algorithm)(graph, budget="128M", **given)


def assert_same(found: bf.Result, wanted: bf.Result, *, bound: float = 1e-9) -> None:
    """Insist on the same values: sums within `bound`, all others exactly."""
    assert found.column == wanted.column
    for got, expected in zip(
        found.to_arrow().to_pylist(), wanted.to_arrow().to_pylist(), strict=True
    ):
        assert got["vertex"] == expected["vertex"]
        value, right = got[found.column], expected[found.column]
        if isinstance(right, float):
            assert math.isclose(value, right, rel_tol=bound, abs_tol=1e-300), (got, expected)
        else:
            assert value == right, (got, expected)


@pytest.mark.parametrize(("algorithm", "options"), RUNS)
def test_every_store_gives_the_answer_of_the_disk_path(
    graph: bf.Graph, tmp_path: Path, algorithm: str, options: dict[str, Any]
) -> None:
    wanted = compute(graph, algorithm, options)
    # Signals of 32 bits are rounded in the order in which they are added.
    bound = 1e-6 if options.get("precision") == "f32" else 1e-9
    for threads, store in enumerate(STORES, 1):
        url = f"{store}:{tmp_path / 'vertices'}" if store in FOLDERS else store
        found = compute(graph, algorithm, options, store=url, threads=threads)
        assert_same(found, wanted, bound=bound)
        stats = found.stats
        assert (stats["store"], stats["lists"], stats["cache"]) == (url, "memory", None)
        assert stats["store_figures"]["disk_bytes" if store in FOLDERS else "memory_bytes"] > 0
        if wanted.stats["variant"] != "union_find":
            for figure in ("supersteps", "reason"):
                assert stats[figure] == wanted.stats[figure]
    assert wanted.stats["store"] is wanted.stats["store_figures"] is wanted.stats["lists"] is None


@pytest.mark.parametrize(("algorithm", "options"), ANY_ORDER)
def test_without_supersteps(
    graph: bf.Graph, tmp_path: Path, algorithm: str, options: dict[str, Any]
) -> None:
    wanted = compute(graph, algorithm, options)
    for store in STORES:
        url = f"{store}:{tmp_path / 'vertices'}" if store in FOLDERS else store
        for threads in (1, 2, 4):
            found = compute(graph, algorithm, options, store=url, mode="async", threads=threads)
            # Increments below the threshold are left unsent, others than with supersteps.
            assert_same(found, wanted, bound=1e-7)
            assert (found.stats["mode"], found.stats["supersteps"]) == ("async", 0)
            assert found.stats["store_figures"]["vertices_signalled"] > 0
    for scheduler in ("latency", "throughput"):
        choice = {"store": "bytes", "mode": "async", "scheduler": scheduler}
        found = compute(graph, algorithm, options, **choice)
        assert_same(found, wanted, bound=1e-7)
        assert found.stats["scheduler"] == scheduler


def test_throughput_signals_once_for_many_signals(graph: bf.Graph) -> None:
    def signalled(scheduler: str) -> int:
        options = {"store": "bytes", "mode": "async", "threads": 1, "tolerance": 1e-9}
        found = bf.pagerank(graph, method="delta", scheduler=scheduler, **options)  # type: ignore[arg-type]
        return int(found.stats["store_figures"]["vertices_signalled"])

    assert signalled("throughput") != signalled("latency")


# A compression wraps any serializer.
SERIALIZERS = ["native", "compact", "generic", "native+lz4", "compact+zstd", "generic+zlib"]


@pytest.mark.parametrize(
    ("algorithm", "options"), [("pagerank", {"weighted": True}), ("scc", {"method": "coloring"})]
)
def test_serializers(graph: bf.Graph, algorithm: str, options: dict[str, Any]) -> None:
    wanted = compute(graph, algorithm, options)
    for chosen in SERIALIZERS:
        found = compute(graph, algorithm, options, store="bytes", serializer=chosen)
        assert_same(found, wanted)
        assert found.stats["serializer"] == chosen


@pytest.mark.parametrize("store", ["memory", "bytes", "file"])
def test_partitioners_find_the_same(graph: bf.Graph, store: str, tmp_path: Path) -> None:
    url = f"file:{tmp_path}/one,{tmp_path}/two" if store == "file" else store
    expected = bf.connected_components(graph).to_arrow()
    for partitioner in ("range", "hash"):
        options: Any = {"store": url, "partitioner": partitioner, "threads": 2}
        found = bf.connected_components(graph, **options)
        assert found.to_arrow().equals(expected)
        assert found.stats["partitioner"] == partitioner


@pytest.mark.parametrize("lists", ["memory", "disk"])
@pytest.mark.parametrize("cache", ["lru:20", "score:20"])
@pytest.mark.parametrize("store", ["bytes", "file"])
def test_caches_and_lists(
    graph: bf.Graph, tmp_path: Path, store: str, cache: str, lists: str
) -> None:
    url = f"file:{tmp_path / 'vertices'}" if store == "file" else store
    for algorithm, options in (("pagerank", {}), ("sssp", {"source": True})):
        wanted = compute(graph, algorithm, options)
        found = compute(graph, algorithm, options, store=url, cache=cache, lists=lists)
        assert_same(found, wanted)
        used = found.stats["cache"]
        assert used["name"] == cache
        assert used["misses"] > 0
        loans = used["hits"] + used["misses"]
        assert used["hit_ratio"] == pytest.approx(used["hits"] / loans)
        assert found.stats["lists"] == lists


@pytest.mark.parametrize("store", FOLDERS)
def test_a_folder_is_made_below_the_working_directory(
    graph: bf.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    monkeypatch.chdir(tmp_path)
    # More workers than a store on disk has partitions.
    bf.degrees(graph, store=f"{store}:here", threads=16, budget="256M")
    # Nobody reads them after the run.
    assert not (tmp_path / "here").exists()
    # What was there before stays, whatever becomes of the run.
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "notes.txt").write_text("mine")
    with pytest.raises(bf.BudgetError):
        bf.degrees(graph, store=f"{store}:here", budget="2M")
    bf.degrees(graph, store=f"{store}:here", budget="256M")
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--store", "byte"], 'there is no store "byte"; use memory, bytes, file:PATH, kv:PATH'),
        (["--store", "mongo:x"], "use memory, bytes, file:PATH, kv:PATH"),
        (["--store", "file:"], "write file:PATH"),
        (["--store", "kv:"], "write kv:PATH"),
        (["--store", "bytes:5"], "takes nothing after its name"),
        (["--store", "memory", "--serializer", "compact"], "keeps live vertices"),
        (
            ["--store", "bytes", "--serializer", "xml"],
            "choose from native, compact, generic, native+lz4",
        ),
        (
            ["--store", "bytes", "--serializer", "compact+rar"],
            "choose from native, compact, generic, native+lz4",
        ),
        (["--store", "bytes", "--cache", "mru:5"], "write lru:N or score:N"),
        (["--store", "bytes", "--cache", "lru:0"], "at least 1"),
        (["--store", "bytes", "--lists", "tape"], "choose from"),
        (["--store", "file:a,b,a"], "names a twice; name a folder once"),
        (["--store", "kv:a?cache=1M"], "has no options"),
        (
            ["--store", "bytes", "--mode", "async", "--param", "method=power"],
            "the method power needs supersteps",
        ),
        (["--cache", "lru:5"], "add --store"),
        (["--lists", "disk"], "add --store"),
        (["--scheduler", "latency"], "add --store"),
        (["--store", "bytes", "--scheduler", "latency"], "add --mode async"),
        (["--store", "bytes", "--mode", "async", "--scheduler", "fifo"], "choose from"),
        (["--serializer", "native"], "add --store"),
        (
            ["--store", "bytes", "--mode", "async", "--max-supersteps", "5"],
            "no supersteps to limit",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(rmat: Path, options: list[str], says: str) -> None:
    assert says in refuse(USAGE, "run", "pagerank", rmat, *options)


def test_what_counts_on_supersteps_is_refused_without_them(rmat: Path) -> None:
    search = ["run", "bfs", rmat, "--source", 0, "--param", "values=parent", "--store", "memory"]
    assert "run it synchronously" in refuse(USAGE, *search, "--mode", "async")


@pytest.mark.parametrize(
    "algorithm", ["label_propagation", "color", "clustering", "triangles", "closeness", "louvain"]
)
def test_programs_of_whole_neighborhoods_take_no_store(rmat: Path, algorithm: str) -> None:
    sentence = refuse(USAGE, "run", algorithm, rmat, "--store", "bytes")
    assert f"--store does not apply to {algorithm}; leave it out" in sentence


def test_algorithms_say_that_they_take_a_store() -> None:
    listed = succeed("algorithms", "--json").figures["algorithms"]
    taking = {each["name"] for each in listed if "store" in each["takes"]}
    # The graph here has cycles: tests/test_differential.py has one without.
    assert taking == {algorithm for algorithm, _ in RUNS} | {"topological_order"}


def test_components_by_union_find_are_not_for_stores(graph: bf.Graph) -> None:
    found = bf.connected_components(graph, store="bytes")
    assert found.stats["variant"] == "propagation"


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_budget_that_is_too_small_leads_to_one_that_works(
    rmat: Path, tmp_path: Path, store: str, threads: int
) -> None:
    url = f"{store}:{tmp_path / 'store'}" if store in FOLDERS else store
    run = ["run", "bfs", rmat, "--source", 0, "--store", url, "--threads", threads, "--quiet"]
    sentence = refuse(BUDGET, *run, "--budget", "1M")
    budget = sentence.rpartition("the smallest that works is ")[2]
    assert succeed(*run, "--budget", budget)
    # Little less names no more.
    less = int(budget.removesuffix("M")) - 2
    outcome = brimful(*run, "--budget", f"{less}M")
    assert outcome.code == DONE or budget in outcome.err


class Least(bf.Program):
    """The least id that reaches a vertex; ids that are not consecutive are in memory."""

    def initial_state(self, vertex: Any) -> Any:
        return vertex.id

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return source.state

    def collect(self, vertex: Any, signals: list[Any]) -> Any:
        return min(vertex.state, *signals)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("vertices", with_nightly([2, 3000], [30_000]))
def test_the_budget_that_a_program_names_works(tmp_path: Path, store: str, vertices: int) -> None:
    url = f"{store}:{tmp_path / 'store'}" if store in FOLDERS else store
    # A hub, and ids with gaps.
    table = pa.table({"source": [0] * (vertices - 1), "target": range(7, 7 * vertices, 7)})
    with bf.Graph.from_arrow(table) as graph:
        budgets = [1]
        while True:
            try:
                states = bf.run(graph, Least(), store=url, budget=budgets[-1])
                break
            except bf.BudgetError as error:
                # The size of records in memory is not known before they are made.
                assert len(budgets) == 1 or (store not in FOLDERS and "by estimate" in str(error))
                budgets.append(error.needed_bytes)
        assert len(budgets) <= (2 if store in FOLDERS else 8)
        assert set(states.values()) == {0}


@pytest.mark.parametrize("store", FOLDERS)
@pytest.mark.parametrize("algorithm", with_nightly(["hits"], ["kcore", "connected_components"]))
def test_a_hub_of_in_edges_counts_in_the_smallest_budget(
    tmp_path: Path, store: str, algorithm: str
) -> None:
    hub = pa.table({"source": range(1, 30_001), "target": [0] * 30_000})
    run = getattr(bf, algorithm)
    with bf.Graph.from_arrow(hub) as other:
        expected = dict(run(other))
    where = f"{store}:{tmp_path / 'store'}"
    with bf.Graph.from_arrow(hub) as graph:
        # The first run builds the index that the algorithm lacks, which takes more than the run.
        for _ in range(2):
            with pytest.raises(bf.BudgetError) as refused:
                run(graph, store=where, budget=1, threads=2)
            found = run(graph, store=where, budget=refused.value.needed_bytes, threads=2)
            assert dict(found) == pytest.approx(expected)


@pytest.mark.nightly
@pytest.mark.parametrize("store", FOLDERS)
def test_a_store_larger_than_its_budget_keeps_it(tmp_path: Path, store: str) -> None:
    """The pages of a mapped file count as memory of the process."""
    graph = tmp_path / "g.brimful"
    succeed("generate", "lognormal", graph, "--vertices", 200_000, "--quiet")
    url = f"{store}:{tmp_path / 'store'}"
    options = "--max-supersteps", 1, "--serializer", "native", "--budget", "200M", "--json"
    with hard_limit(230 << 20) as enter:
        done = succeed("run", "pagerank", graph, "--store", url, *options, before=enter)
    # The records take more than all of the budget.
    assert done.figures["store_figures"]["disk_bytes"] > 200 << 20
    assert done.figures["peak_rss_bytes"] <= 200 << 20


def test_a_disk_that_is_full_ends_the_run(rmat: Path, tmp_path: Path) -> None:
    def enter() -> None:
        # A file that grows beyond the limit fails as one on a full disk does.
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    url = f"kv:{tmp_path / 'store'}"
    words = "run", "pagerank", rmat, "--store", url, "--serializer", "native", "--quiet"
    done = brimful(*words, "--threads", 1, "--budget", "200M", before=enter)
    assert done.code == IO
    assert_one_sentence(done.err)
    assert str(tmp_path / "store") in done.err
    assert not (tmp_path / "store").exists()


def test_without_supersteps_pagerank_runs_by_increments_and_says_so(rmat: Path) -> None:
    options = ["--store", "bytes", "--mode", "async"]
    chosen = succeed("run", "pagerank", rmat, *options)
    assert "PageRank runs by increments (method=delta)" in chosen.err
    asked = succeed("run", "pagerank", rmat, *options, "--param", "method=delta")
    assert "increments" not in asked.err


def test_without_supersteps_pagerank_is_the_same_in_python(
    graph: bf.Graph, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = bf.pagerank(graph, tolerance=1e-12)
    found = bf.pagerank(graph, tolerance=1e-12, mode="async", store="bytes")
    assert "method=delta" in caplog.text
    assert_same(found, wanted, bound=1e-7)
    with pytest.raises(bf.UsageError, match="the method power needs supersteps"):
        bf.pagerank(graph, mode="async", store="bytes", method="power")


@pytest.mark.parametrize("store", ["memory", "bytes", "file:vertices", "kv:vertices"])
def test_a_tiny_run_has_no_forecast(tmp_path: Path, rmat: Path, store: str) -> None:
    tiny = tmp_path / "tiny.brimful"
    succeed("generate", "ring", tiny, "--vertices", 100, "--quiet")
    limit = ("--store", store, "--max-supersteps", 2)
    assert "forecast" not in succeed("run", "pagerank", tiny, *limit, cwd=tmp_path).err
    assert "forecast" in succeed("run", "pagerank", rmat, *limit, cwd=tmp_path).err
