"""Arguments of Python functions that cannot be meant: a documented error of one sentence."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pytest

import brimful as bf
from brimful.catalog import algorithms
from brimful.options import table
from brimful.options.runs import PlaceOptions
from command import INPUT, USAGE, refuse, write_edges


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    edges = write_edges(tmp_path_factory.mktemp("graph") / "g.txt", [(1, 2), (2, 3), (3, 1)])
    with bf.read(edges) as graph:
        yield graph


class Kept(bf.Program):
    """Keeps the id of each vertex."""

    def initial_state(self, vertex: bf.Vertex) -> Any:
        return vertex.id

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> Any:
        return None

    def collect(self, vertex: bf.Vertex, signals: list[Any]) -> Any:
        return vertex.state


FUNCTIONS: dict[str, Callable[..., Any]] = {name: getattr(bf, name) for name in algorithms()}
WRONG_VALUES: list[Any] = [2**63, 2**64, 10**30, -1, 10**5000, -(10**5000), 1.5, True]
WRONG_VALUES += [float("nan"), float("inf"), "x", "", "\udcff", "a\0b", b"x", [], {}, object()]


def keywords_of(function: Callable[..., Any]) -> list[str]:
    """Return the keywords of an algorithm, those of its `**options` too."""
    parameters = inspect.signature(function).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]


def assert_refused_or_done(call: Callable[[], Any]) -> None:
    """Insist that a call ends, or raises a documented error with a sentence of a few words."""
    try:
        call()
    except (bf.BrimfulError, TypeError, ValueError) as error:
        said = str(error)
        assert said and len(said) < 400 and "\n" not in said, said
        for foreign in ("extract field", "argument '", "cannot be converted", "object cannot"):
            assert foreign not in said, said


@pytest.mark.parametrize("name", FUNCTIONS)
def test_wrong_arguments_of_algorithms(
    name: str, graph: bf.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = FUNCTIONS[name]
    needed = [1] if "source" in algorithms()[name]["takes"] and name != "pagerank" else []
    if name != "topological_order":  # The graph has a cycle.
        function(graph, *needed)
    monkeypatch.chdir(tmp_path)
    for keyword in keywords_of(function):
        for value in WRONG_VALUES:
            if (keyword, value) == ("progress", True):
                continue
            assert_refused_or_done(lambda: function(graph, *needed, **{keyword: value}))  # noqa: B023
    for value in WRONG_VALUES:
        assert_refused_or_done(lambda: function(value, *needed))  # noqa: B023
        if needed:
            assert_refused_or_done(lambda: function(graph, value))  # noqa: B023


@pytest.mark.parametrize("pairs", [[(1, 2), (2, 3)], {"source": [1], "target": [2]}])
def test_pairs_are_not_read_without_a_table(pairs: Any) -> None:
    with pytest.raises(bf.UsageError, match=r"pairs become a table by pandas\.DataFrame\(pairs"):
        bf.read(pairs)


def test_a_lazy_frame_is_not_collected_without_a_word() -> None:
    frame = polars.LazyFrame({"source": [1], "target": [2]})
    for read in (bf.read, bf.Graph.from_arrow):
        with pytest.raises(bf.UsageError, match=r"LazyFrame.*; collect\(\) makes a table of it"):
            read(frame)


@pytest.mark.parametrize(
    "call",
    [
        bf.read,
        bf.Graph.open,
        bf.Graph.from_arrow,
        bf.Graph.export,
        bf.Graph.verify,
        bf.plan,
        bf.run,
    ],
)
def test_wrong_arguments_of_functions_about_graphs(
    call: Callable[..., Any],
    graph: bf.Graph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import pyarrow as pa

    class Same(bf.Program):
        def initial_state(self, vertex: Any) -> Any:
            return 0

        def signal(self, source: Any, target: Any, weight: float) -> Any:
            return None

        def collect(self, vertex: Any, signals: list[Any]) -> Any:
            return 0

    monkeypatch.chdir(tmp_path)
    table = pa.table({"source": [1], "target": [2]})
    usual: dict[Any, list[Any]] = {
        bf.read: [table],
        bf.Graph.open: [graph.path],
        bf.Graph.from_arrow: [table],
        bf.Graph.export: [graph, tmp_path / "out.csv"],
        bf.Graph.verify: [graph],
        bf.plan: [graph, "pagerank"],
        bf.run: [graph, Same()],
    }
    given = usual[call]
    done = call(*given)
    for keyword, parameter in inspect.signature(call).parameters.items():
        if parameter.kind is not parameter.KEYWORD_ONLY:
            continue
        for value in WRONG_VALUES:
            if keyword == "progress" and value is True:
                continue
            assert_refused_or_done(lambda: call(*given, **{keyword: value}))  # noqa: B023
    for place in range(len(given)):
        for value in WRONG_VALUES:
            words = [value if place == at else one for at, one in enumerate(given)]
            if not (place == 0 and call in (bf.Graph.export, bf.Graph.verify)):
                assert_refused_or_done(lambda: call(*words))  # noqa: B023
    del done


def test_one_table_of_parameters() -> None:
    """The command line, which follows the registry, and Python take the same options."""
    shared = {"source", "tolerance", "precision", "weighted", "mode"}
    for name, info in algorithms().items():
        keywords = set(inspect.signature(FUNCTIONS[name]).parameters)
        defaults = inspect.signature(FUNCTIONS[name]).parameters
        for one in info["parameters"]:
            assert one["name"] in keywords, (name, one["name"])
            default = defaults[one["name"]].default
            if one["type"] == "numbers":
                assert list(default) == [float(text) for text in one["default"].split(",")]
                continue
            assert default is None or str(default) == one["default"], (name, one)
            if one["choices"]:
                assert one["default"] in one["choices"]
        takes = {option.replace("-", "_") for option in info["takes"]}
        assert keywords & shared == takes & shared, name
        options = set(keywords_of(FUNCTIONS[name]))
        assert ("store" in options) == ("store" in takes), name
        assert ("checkpoint_every" in options) == ("checkpoint_every" in takes), name


def test_unknown_words_are_corrected(graph: bf.Graph, tmp_path: Path) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: bf.bfs(graph, 1, store="bytes", serializer="nativ"),  # type: ignore[arg-type]
        lambda: bf.run(graph, Kept(), compile="nevr"),  # type: ignore[arg-type,call-overload]
        lambda: bf.run(graph, Kept(), serializer="pickel"),  # type: ignore[arg-type,call-overload]
        lambda: bf.Bag(tmp_path / "bag", serializer="jsno"),  # type: ignore[arg-type]
        lambda: bf.Aggregator("sun", 0),  # type: ignore[arg-type]
        lambda: bf.Box(tmp_path / "box", "i8").process(print, "descendng"),
    ]
    for call, meant in zip(
        calls, ("native", "never", "pickle", "json", "sum", "descending"), strict=True
    ):
        with pytest.raises(bf.UsageError, match=f"did you mean '{meant}'"):
            call()
    with pytest.raises(bf.UsageError, match="there is no aggregator"):
        bf.Aggregator([], 0)  # type: ignore[arg-type]


def test_every_serializer_of_the_table_works(graph: bf.Graph) -> None:
    for name in table.options_of(PlaceOptions)["serializer"].words:
        assert bf.bfs(graph, 1, store="bytes", serializer=name)[3] == 2  # type: ignore[arg-type]


def test_the_words_of_the_table_are_those_that_work(graph: bf.Graph) -> None:
    for name, info in algorithms().items():
        needed = [1] if "source" in info["takes"] and name != "pagerank" else []
        for one in info["parameters"]:
            for word in one["choices"] or ():
                FUNCTIONS[name](graph, *needed, **{one["name"]: word})
            with pytest.raises(bf.UsageError, match=one["name"]):
                FUNCTIONS[name](graph, *needed, **{one["name"]: "no such word"})


def test_an_algorithm_takes_a_path(tmp_path: Path) -> None:
    edges = write_edges(tmp_path / "edges.txt", [(1, 2), (2, 3)])
    assert dict(bf.degrees(str(edges)).top(1)) == {1: 1}
    assert (tmp_path / "edges.txt.brimful").is_dir()
    assert bf.pagerank(tmp_path / "edges.txt.brimful")[3] > 0.3
    with pytest.raises(bf.NotFoundError, match=r"did you mean 'edges.txt"):
        bf.degrees(tmp_path / "edgse.txt")
    with pytest.raises(bf.UsageError, match="found list; make a graph of it with brimful"):
        bf.degrees([(1, 2)])  # type: ignore[arg-type]


def test_progress_is_a_line(graph: bf.Graph, capfd: pytest.CaptureFixture[str]) -> None:
    bf.pagerank(graph, progress=True, tolerance=0, max_supersteps=20_000)
    out, err = capfd.readouterr()
    assert out == "" and err.startswith("brimful: ") and err.endswith("\n")
    bf.pagerank(graph, progress=False)
    graph.verify(progress=True)
    with pytest.raises(bf.UsageError, match="progress must be True, False or a function"):
        bf.pagerank(graph, progress=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("package", "call"),
    [
        ("pandas", lambda graph: bf.degrees(graph).to_pandas()),
        ("polars", lambda graph: bf.degrees(graph).to_polars()),
        ("pandas", lambda graph: graph.to_pandas()),
        ("polars", lambda graph: graph.to_polars()),
        ("networkx", lambda graph: graph.to_networkx()),
        ("igraph", lambda graph: graph.to_igraph()),
        ("scipy", lambda graph: graph.to_scipy()),
    ],
)
def test_a_package_that_is_missing_is_named(
    package: str, call: Any, graph: bf.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:

    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"pip install {package}") as raised:
        call(graph)
    assert isinstance(raised.value, bf.BrimfulError)


class Idle(bf.Program):
    """A program that does nothing."""

    def initial_state(self, vertex: Any) -> Any:
        return None

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return None

    def collect(self, vertex: Any, signals: list[Any]) -> Any:
        return vertex.state


@pytest.mark.parametrize("value", ["no", 1])
def test_truth_values_of_python_functions_are_checked(tmp_path: Path, value: Any) -> None:
    out = tmp_path / "out.csv"
    with bf.read(write_edges(tmp_path / "e.txt", [(1, 2), (2, 1)])) as graph:
        ranks, rows = bf.pagerank(graph), bf.distances(graph, source=1)
        states = bf.run(graph, Idle())
        ranks.write(out)
        calls: dict[str, list[Callable[[], object]]] = {
            "overwrite": [
                lambda: ranks.write(out, overwrite=value),
                lambda: rows.write(out, overwrite=value),
                lambda: states.write(out, overwrite=value),
                lambda: bf.SavedResult(out).write(tmp_path / "copy.csv", overwrite=value),
            ],
            "weights": [
                lambda: graph.neighbors(1, weights=value),
                lambda: graph.in_neighbors(1, weights=value),
                lambda: graph.neighbors_many([1], weights=value),
            ],
            "weighted": [
                lambda: graph.shortest_path(1, 2, weighted=value),
                lambda: graph.shortest_paths(1, 2, k=1, weighted=value),
            ],
            "keep": [lambda: bf.run(graph, Idle(), store=f"file:{tmp_path}/s", keep=value)],
            "persistent": [lambda: bf.Aggregator("sum", 0, persistent=value)],
        }
        for name, several in calls.items():
            for call in several:
                with pytest.raises(bf.UsageError, match=f"{name} must be True or False, not "):
                    call()


def test_arguments_of_sort_are_checked_at_the_call(tmp_path: Path) -> None:
    with pytest.raises(bf.UsageError, match="is not a memory size"):
        bf.sort([[3, 1]], budget="1Q")
    with pytest.raises(bf.UsageError, match="batches must be a sequence such as a list, not 5"):
        bf.sort(5)  # type: ignore[arg-type]


def test_edges_that_are_no_sequence_are_refused(tmp_path: Path) -> None:
    bf.read(write_edges(tmp_path / "e.txt", [(1, 2)]), path=tmp_path / "g.brimful").close()
    with bf.VertexStore.create(f"file:{tmp_path}/s", tmp_path / "g.brimful") as store:
        for edges in (5, "ab"):
            with pytest.raises(bf.UsageError, match=f"edges must be pairs .*, not {edges}"):
                store.add_vertex(9, edges=edges)  # type: ignore[arg-type]
            with pytest.raises(bf.UsageError, match=f"edges must be pairs .*, not {edges}"):
                store.add_edges(1, edges)  # type: ignore[arg-type]


def test_an_empty_path_is_refused(tmp_path: Path) -> None:
    for call in (
        lambda: bf.Bag(""),
        lambda: bf.SavedResult(""),
        lambda: bf.Graph.open(""),
    ):
        with pytest.raises(bf.UsageError, match="must be a path, not an empty text"):
            call()
    edges = write_edges(tmp_path / "e.txt", [(1, 2)])
    assert "'' does not exist" in refuse(INPUT, "import", "", tmp_path / "g.brimful")
    assert "but '' does not end in one of these" in refuse(
        USAGE, "run", "pagerank", edges, "-o", "", "--quiet"
    )


def test_a_text_in_the_place_of_a_number_is_shown_in_quotes() -> None:
    with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as opened:
        graph: Any = opened
        ranks: Any = bf.pagerank(opened)
        calls: list[tuple[Any, str]] = [
            (lambda: bf.pagerank(graph, threads="2"), "threads must be a whole number, not '2'"),
            (lambda: bf.pagerank(graph, damping="0.8"), "damping must be a number, not '0.8'"),
            (lambda: bf.pagerank(graph, tolerance="0"), "tolerance must be a number, not '0'"),
            (lambda: bf.pagerank(graph, weighted="True"), "must be True or False, not 'True'"),
            (lambda: ranks.top("1"), "n must be a whole number, not '1'"),
            (lambda: graph.ego(1, "2"), "hops must be a whole number, not '2'"),
        ]
        for call, says in calls:
            with pytest.raises(bf.UsageError, match=says):
                call()


def test_read_refuses_options_of_an_import_for_a_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "g.brimful"
    bf.read(write_edges(tmp_path / "e.txt", [(1, 2)]), path=path).close()
    defaults: dict[str, Any] = {"self_loops": "keep", "index": ["in"], "ids": "auto"}
    with bf.read(path, budget="200M", undirected=None, **defaults) as graph:
        assert graph.edges == 1
    for options, named in (
        ({"undirected": True}, "undirected="),
        ({"undirected": False, "duplicates": "sum"}, "undirected=, duplicates="),
        ({"weights": "hash", "vertices": 9}, "vertices=, weights="),
        ({"self_loops": "drop", "index": "in,reverse"}, "self_loops=, index="),
    ):
        for place in (path, f"file://{path}"):
            with pytest.raises(bf.UsageError, match=f"leave {named} out, or derive a graph"):
                bf.read(place, **options)
