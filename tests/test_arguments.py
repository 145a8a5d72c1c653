"""Arguments that cannot be meant: one sentence and exit 2, for every option that there is."""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pytest

import brimful as bf
from brimful.catalog import algorithms
from brimful.cli import app, tree
from brimful.cli.options import print_json, show_rows
from brimful.options import table
from brimful.options.runs import PlaceOptions
from command import BUDGET, DONE, INPUT, USAGE, brimful, refuse, succeed, write_edges

#: No option of whole numbers takes these.
#: Python would read these as 10 and as 2.
NO_DIGITS = ["1_0", "２"]  # noqa: RUF001
WRONG_INTEGERS = [str(2**64), "1" + "0" * 30, "-1", "1e3x", "", "1.5", "x", "1" * 5000, "٣x"]
WRONG_INTEGERS += NO_DIGITS
WRONG_NUMBERS = ["", "x", "nan", "inf", "-inf", "1" * 5000, "1e999", *NO_DIGITS]


def options_of(kind: str) -> list[tuple[str, str]]:
    """Return verb and option for every option whose type was made by `arguments.KIND`."""
    found = []
    for verb, _, action in tree.every_action(app.build_parser()):
        if getattr(action.type, "__qualname__", "").startswith(f"{kind}."):
            found += [(verb, action.option_strings[0])]
    return found


def parsed(words: list[str]) -> tuple[int, str]:
    """Return exit code and standard error of a command that is refused before any work."""
    err = io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
        code = app.main(words)
    return code, err.getvalue()


@pytest.fixture
def signals() -> Any:
    """Keep the handlers that a command in this process replaces."""
    import signal

    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def words_of(verb: str) -> list[str]:
    """Return a command without options that the parser takes; nothing is at its paths."""
    names = {
        "import": ["no.txt", "no.brimful"],
        "generate": ["rmat", "no.brimful"],
        "run": ["pagerank", "no.brimful"],
        "plan": ["no.brimful", "pagerank"],
        "index": ["no.brimful", "in"],
        "export": ["no.brimful", "no.csv"],
    }
    return [verb, *names.get(verb, ["no.brimful"])]


def test_no_option_reads_numbers_in_its_own_way() -> None:
    for verb, _, action in tree.every_action(app.build_parser()):
        assert action.type not in (int, float), (verb, action.option_strings)
    counted = options_of("integer")
    assert {("run", "--top"), ("run", "--max-supersteps"), ("generate", "--seed")} <= set(counted)
    assert len(counted) >= 12


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize(("verb", "option"), options_of("integer"))
def test_integers_that_cannot_be_meant(verb: str, option: str) -> None:
    most = 2**64 - 1 if option == "--seed" else 2**63 - 1
    for text in [*WRONG_INTEGERS, str(most + 1), "1e3"]:
        code, err = parsed([*words_of(verb), f"{option}={text}"])
        assert (code, err.count("\n")) == (USAGE, 1), (text, err)
        assert option in err and "whole number from" in err and len(err) < 300, err


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize(("verb", "option"), [*options_of("real"), *options_of("count")])
def test_numbers_that_cannot_be_meant(verb: str, option: str) -> None:
    for text in WRONG_NUMBERS:
        code, err = parsed([*words_of(verb), f"{option}={text}"])
        assert (code, err.count("\n")) == (USAGE, 1), (text, err)
        assert option in err and len(err) < 300, err


@pytest.mark.usefixtures("signals")
def test_budgets_that_cannot_be_meant() -> None:
    for verb in ("import", "generate", "run", "plan", "index", "export"):
        for text in [*WRONG_INTEGERS, str(2**63), "1e3", "-1", "9" * 5000 + "G", "1.5"]:
            if text == "1.5":  # a byte and a half is one
                continue
            code, err = parsed([*words_of(verb), f"--budget={text}"])
            # What is at the paths is looked at first by some verbs, and is not there either way.
            assert code in (USAGE, INPUT) and err.count("\n") == 1 and len(err) < 400, (text, err)
            assert "internal error" not in err


@pytest.mark.parametrize(
    "option",
    ["--checkpoint-every", "--cache", "--source", "--param=length", "--param=damping", "--top"],
)
def test_numbers_within_texts(tmp_path: Path, option: str) -> None:
    graph = write_edges(tmp_path / "g.txt", [(1, 2)])
    algorithm = {"--source": "bfs", "--param=length": "count_paths"}.get(option, "pagerank")
    more = {"--cache": ["--store", "bytes"], "--param=length": ["--source", "1"]}.get(option, [])
    for text in (str(2**64), "1" + "0" * 30, "1" * 5000, "1e999", "-1", *NO_DIGITS):
        value = f"lru:{text}" if option == "--cache" else text
        outcome = brimful("run", algorithm, graph, *more, f"{option}={value}", "--quiet")
        # A vertex of such an id there is not.
        assert outcome.code in ((USAGE, INPUT) if option == "--source" else (USAGE,)), outcome
        assert outcome.err.count("\n") == 1 and len(outcome.err) < 400, outcome.err


def test_parameters_are_options(tmp_path: Path) -> None:
    graph = write_edges(tmp_path / "g.txt", [(1, 2), (2, 3), (1, 3)])
    named = [["--param", "damping=0.5"], ["--damping", "0.5"], ["--damping=0.5"]]
    run = ["run", "pagerank", graph, "--quiet", "--top", 3]
    tops = [succeed(*run, *words).out for words in named]
    assert tops[0] == tops[1] == tops[2] != succeed(*run).out
    front = ["run", "--damping", "0.5", "pagerank", graph, "--quiet", "--top", 3]
    assert succeed(*front).out == tops[0]
    succeed("plan", graph, "pagerank", "--damping", "0.5", "--quiet")
    for words, part in (
        (["--damping", "0.5", "--param", "damping=0.6"], "given twice"),
        (["--damping"], "--damping needs a value"),
        (["--length", "3"], "pagerank has no parameter 'length'"),
        (["--dampin", "0.5"], "did you mean '--damping'"),
        (["--variant", "normalised"], "did you mean 'normalized'"),
    ):
        assert part in refuse(USAGE, "run", "pagerank", graph, "--quiet", *words)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["exprot", "a", "b"], "'export'"),
        (["run", "page_rank", "g.txt"], "'pagerank'"),
        (["run", "pagerank", "g.txt", "--max-superstep", "3"], "'--max-supersteps'"),
        (["run", "pagerank", "g.txt", "--mode", "asinc"], "'async'"),
        (["run", "pagerank", "g.txt", "--param", "dampign=.9"], "'damping'"),
        (["run", "pagerank", "g.txt", "--store", "byte"], "'bytes'"),
        (["run", "bfs", "g.txt", "--store", "bytes", "--serializer", "natve"], "'native'"),
        (["import", "g.txt", "h.brimful", "--format", "edgelst"], "'edgelist'"),
        (["import", "s4://bucket/g.txt", "h.brimful"], "'s3'"),
        (["generate", "rmta", "h.brimful"], "'rmat'"),
        (["index", "g.txt", "revers"], "'reverse'"),
        (["completion", "bsh"], "'bash'"),
        (["algorithms", "hit"], "'hits'"),
        (["help", "improt"], "'import'"),
        (["run", "components", "g.txt"], "'connected_components'"),
        (["run", "clustering_coefficient", "g.txt"], "'clustering'"),
        (["run", "pagerank", "g.txt", "--logfile", "x"], "'--log'"),
    ],
)
def test_unknown_names_are_corrected(tmp_path: Path, words: list[str], meant: str) -> None:
    write_edges(tmp_path / "g.txt", [(1, 2)])
    assert f"did you mean {meant}?" in refuse(USAGE, *words, cwd=tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ["run", "pagerank", "g.txt", "--filter", "x"],
        ["run", "pagerank", "g.txt", "--cores", "2"],
        ["run", "centrality", "g.txt"],
        ["import", "g.txt", "h.brimful", "--force"],
        ["import", "g.txt", "h.brimful", "--limit", "9"],
    ],
)
def test_names_that_differ_much_are_not_suggested(tmp_path: Path, words: list[str]) -> None:
    """`--filter` was taken for `--cluster`, and `centrality` for `eccentricity`."""
    write_edges(tmp_path / "g.txt", [(1, 2)])
    assert "did you mean" not in refuse(USAGE, *words, cwd=tmp_path)


def test_a_graph_of_a_similar_name_is_named(tmp_path: Path) -> None:
    succeed("generate", "ring", tmp_path / "web.brimful", "--vertices", 3, "--quiet")
    said = refuse(INPUT, "info", tmp_path / "wbe.brimful")
    assert "did you mean 'web.brimful'?" in said


def test_help_version_and_nothing(tmp_path: Path) -> None:
    whole = succeed("--help").out
    assert succeed("help").out == whole
    assert succeed("help", "run").out == succeed("run", "--help").out
    assert succeed("-V").out == succeed("--version").out
    nothing = brimful()
    assert (nothing.code, nothing.out) == (USAGE, whole)
    for verb in tree.verbs(app.build_parser()):
        text = succeed(verb, "--help").out
        assert "usage: brimful" in text
        assert verb == "help" or f"\n  brimful {verb}" in text or f"(brimful {verb}" in text, text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_parser(shell: str) -> None:
    script = succeed("completion", shell).out
    names = {"pagerank", "connected_components", "union_find", "graphalytics", "unnormalized"}
    for word in {*tree.verbs(app.build_parser()), *names}:
        assert word in script, word
    assert ("-l max-supersteps" if shell == "fish" else "--max-supersteps") in script


def test_bash_completes(tmp_path: Path) -> None:
    import subprocess

    script = succeed("completion", "bash").out

    def completed(*words: str) -> set[str]:
        quoted = " ".join(f"'{word}'" for word in words)
        code = (
            f"{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _brimful\n"
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return set(done.stdout.split())

    assert completed("brimful", "ex") == {"export"}
    assert completed("brimful", "run", "con") == {"connected_components"}
    assert completed("brimful", "run", "pagerank", "g", "--mo") == {"--mode"}
    assert completed("brimful", "run", "pagerank", "g", "--mode", "") == {"sync", "async"}
    assert completed("brimful", "run", "pagerank", "g", "--damp") == {"--damping"}
    assert completed("brimful", "generate", "gr") == {"grid"}


# The functions of Python.


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
    import sys

    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"pip install {package}") as raised:
        call(graph)
    assert isinstance(raised.value, bf.BrimfulError)


def test_the_parser_of_argparse_can_be_looked_at() -> None:
    """What `tree` relies on in argparse, which does not promise it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--one")
    parser.add_subparsers().add_parser("two").add_argument("three")
    assert "--one" in tree.option_names(parser)
    assert [action.dest for _, _, action in tree.every_action(parser)][-1] == "three"
    assert BUDGET and DONE == 0


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


def test_the_command_line_names_flags_in_checks(tmp_path: Path) -> None:
    edges = write_edges(tmp_path / "e.txt", [(1, 2)])
    for words in (
        ("import", edges, tmp_path / "g.brimful", "--delimiter", "zz"),
        ("import", edges, tmp_path / "g.brimful", "--cluster", "x"),
        ("plan", edges, "pagerank", "--cluster", "x"),
        ("export", edges, tmp_path / "o.parquet", "--columns", ","),
    ):
        assert refuse(USAGE, *words, "--quiet").startswith(f"brimful: {words[-2]} must be ")
    with pytest.raises(bf.UsageError, match=r"^delimiter must be "):
        bf.read(edges, delimiter="zz")


def test_run_takes_graph_and_algorithm_in_either_order(tmp_path: Path) -> None:
    edges = write_edges(tmp_path / "e.txt", [(1, 2)])
    words = ("--top", 2, "--quiet")
    assert succeed("run", edges, "pagerank", *words) == succeed("run", "pagerank", edges, *words)
    assert "there is no algorithm" in refuse(USAGE, "run", edges, "pagerang")


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
    assert "and '' ends in none" in refuse(USAGE, "run", "pagerank", edges, "-o", "", "--quiet")


def test_a_text_in_the_place_of_a_number_is_shown_in_quotes() -> None:
    with bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})) as opened:
        graph: Any = opened
        ranks: Any = bf.pagerank(opened)
        calls: list[tuple[Any, str]] = [
            (lambda: bf.pagerank(graph, threads="2"), "threads must be a whole number, not '2'"),
            (lambda: bf.pagerank(graph, damping="0.8"), "damping must be a number, not '0.8'"),
            (lambda: bf.pagerank(graph, tolerance="0"), "tolerance must be a number, not '0'"),
            (lambda: bf.pagerank(graph, weighted="True"), "must be True or False, not 'True'"),
            (lambda: ranks.top("1"), "n must be a whole number of at least 0, not '1'"),
            (lambda: graph.ego(1, "2"), "hops must be a whole number, not '2'"),
        ]
        for call, says in calls:
            with pytest.raises(bf.UsageError, match=says):
                call()


@pytest.mark.parametrize("as_json", [False, True])
def test_rows_are_written_a_thousand_at_a_time(
    as_json: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Unbuffered output needs a call of the system for each write.
    class Output(io.StringIO):
        writes = 0

        def write(self, text: str) -> int:
            self.writes += 1
            return super().write(text)

    output = Output()
    monkeypatch.setattr(sys, "stdout", output)
    if as_json:
        print_json({"rows": iter(range(5000)), "none": iter([])})
        assert json.loads(output.getvalue()) == {"rows": [*range(5000)], "none": []}
    else:
        show_rows(("one", "other"), zip(range(5000), range(5000), strict=True))
        assert output.getvalue().splitlines()[::5000] == ["one\tother", "4999\t4999"]
    assert output.writes < 15
