"""Messages name options by flags on the command line, and by keywords in Python."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import brimful as bf
from brimful.options.keywords import keywords
from command import USAGE, refuse

#: A flag, which is not a rule of a table and no option of another program.
FLAG = re.compile(r"(?<![\w'-])--[a-z]")


@pytest.mark.parametrize(
    ("flags", "shown"),
    [
        ("leave --max-supersteps out", "leave max_supersteps= out"),
        ("leave such rows out with --on-error skip", 'leave such rows out with on_error="skip"'),
        ("give --header or --no-header", "give header=True or header=False"),
        ("give --directed to keep", "give undirected=False to keep"),
        ("--source COL --target COL [--weight COL]", "source=COL target=COL [weight=COL]"),
        ("give --param length=K, not --tolerance", "give length=K, not tolerance="),
        ("leave out --source or --param variant", "leave out source= or variant="),
        ("`--vertices N` makes a graph", "`vertices=N` makes a graph"),
        ("use 'brimful derive --reverse' instead", "use 'brimful derive --reverse' instead"),
        ("'ray start --head', or --cluster local:N", "'ray start --head', or cluster=\"local:N\""),
        ("a -- b --no-such-option", "a -- b --no-such-option"),
    ],
)
def test_flags_become_keywords(flags: str, shown: str) -> None:
    assert keywords(flags) == shown
    assert str(bf.UsageError(flags)) == shown


def test_every_flag_of_a_native_message_is_a_keyword() -> None:
    crates = Path(__file__).parent.parent / "crates"
    found = set()
    for path in crates.glob("*/src/**/*.rs"):
        text = re.sub(r"^\s*//.*$", "", path.read_text(), flags=re.MULTILINE)
        text = text.partition("#[cfg(test)]")[0]
        found |= set(re.findall(r"(?<![\w'-])--[a-z][a-z-]*", text))
    # The test harness of Rust has these two.
    found -= {"--exact", "--ignored", "--param"}
    assert len(found) > 20
    assert {flag for flag in found if keywords(flag) == flag} == set()


TABLE = pa.table({"source": [0, 1], "target": [1, 0]})


def of_file(name: str, content: str, **options: Any) -> Callable[[Path], object]:
    """Return a call that reads a file."""

    def call(folder: Path) -> object:
        path = folder / name
        path.write_text(content)
        return bf.read(path, **options)

    return call


def of_graph(call: Callable[[bf.Graph, Path], object]) -> Callable[[Path], object]:
    """Return a call on a small graph."""

    def made(folder: Path) -> object:
        with bf.Graph.from_arrow(TABLE, path=folder / "g.brimful") as graph:
            return call(graph, folder)

    return made


def of_parquet(folder: Path) -> object:
    """Read a table whose columns have two types of ids."""
    pq.write_table(pa.table({"source": ["a"], "target": [1]}), folder / "t.parquet")
    return bf.read(folder / "t.parquet")


CASES: dict[str, Callable[[Path], object]] = {
    "columns": of_file("a.csv", "a,b,c\n1,2,3\n"),
    "header": of_file("a.csv", "alice,bob\nbob,cleo\n"),
    "delimiter": of_file("a.txt", "1 2\n", delimiter="."),
    "line": of_file("a.txt", "1 2\n3 x\n"),
    "name": of_file("a.txt", "ann bob\ncleo bob\n", header=False, ids="int"),
    "types": of_parquet,
    "weights": of_file("a.csv", "source,target,weight\n1,2,heavy\n"),
    "directions": of_file("a.csv", "source,target,Type\n1,2,Directed\n1,2,Undirected\n"),
    "nothing": of_file("a.txt", "# nothing\n"),
    "row": lambda folder: bf.Graph.from_arrow(pa.table({"source": [0, None], "target": [1, 1]})),
    "unweighted": of_graph(lambda graph, folder: bf.sssp(graph, source=0, weighted=True)),
    "mode": of_graph(lambda graph, folder: bf.hits(graph, mode="async")),
    "scheduler": of_graph(lambda graph, folder: bf.pagerank(graph, scheduler="latency")),
    "cache": of_graph(lambda graph, folder: bf.pagerank(graph, cache="lru:5")),
    "folder": of_graph(lambda graph, folder: bf.pagerank(graph, checkpoint_dir=folder / "c")),
    "workers": of_graph(lambda graph, folder: bf.pagerank(graph, workers=2)),
    "applies": of_graph(lambda graph, folder: bf.plan(graph, "kcore", source=0)),
    "supersteps": of_graph(
        lambda graph, folder: bf.pagerank(
            graph, store=f"file:{folder / 's'}", mode="async", max_supersteps=2
        )
    ),
    "plan": lambda folder: bf.plan(None, "pagerank"),
    "export": of_graph(lambda graph, folder: graph.export(folder / "e.csv", renumber=True)),
    "exists": of_graph(lambda graph, folder: [graph.export(folder / "e.csv") for _ in range(2)]),
    "format": of_graph(lambda graph, folder: graph.export(folder / "e.unknown")),
}


@pytest.mark.parametrize("name", CASES)
def test_errors_in_python_name_no_flags(tmp_path: Path, name: str) -> None:
    with pytest.raises(bf.BrimfulError, match=r"\w=") as raised:
        CASES[name](tmp_path)
    assert FLAG.search(str(raised.value)) is None, str(raised.value)


def test_the_command_line_names_flags(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("alice,bob\nbob,cleo\n")
    assert "--no-header" in refuse(USAGE, "import", path, tmp_path / "g.brimful", "--quiet")


@pytest.mark.parametrize("run", [bf.pagerank, bf.bfs, bf.similarity, bf.louvain_hierarchy])
@pytest.mark.parametrize("name", ["algorithm", "params", "source_weight", "graph_like"])
def test_a_keyword_that_is_unknown_is_named_with_the_function(
    run: Callable[..., object], name: str
) -> None:
    table = pa.table({"source": [0], "target": [1]})
    with bf.Graph.from_arrow(table) as graph, pytest.raises((TypeError, bf.UsageError)) as refused:
        run(graph, **{name: [1.0]} | ({"source": 0} if run is bf.bfs else {}))
    sentence = str(refused.value)
    assert "multiple values" not in sentence and name in sentence
