"""Imports on a Ray cluster: the bytes of one process, whatever happens to their tasks."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from ray.cluster_utils import Cluster

import brimful as bf
from brimful.cluster import importing, keeping, sorting
from cluster.nodes import kill, meanwhile, processes
from command import DONE, USAGE, brimful
from edge_files import IMPORTS, broken_files, edges, imported, lines, text_files


@pytest.mark.parametrize(
    ("make", "options"),
    # One of each kind of file every day, all of them in a nightly run.
    [
        pytest.param(*one, marks=[] if one in IMPORTS[1::3] else pytest.mark.nightly)
        for one in IMPORTS
    ],
)
def test_an_import_on_a_cluster_makes_the_bytes_of_one_process(
    cluster: Cluster, tmp_path: Path, make: Callable[[Path], list[Path]], options: dict[str, Any]
) -> None:
    (tmp_path / "in").mkdir()
    paths = make(tmp_path / "in")
    alone = imported(paths, tmp_path / "one.brimful", options, None)
    for count in (1, 3):
        out = tmp_path / f"{count}.brimful"
        assert imported(paths, out, options, {"cluster": "auto", "workers": count}) == alone


def test_the_first_error_of_an_import_on_a_cluster_is_that_of_one_process(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    paths, errors = broken_files(tmp_path / "in"), []
    options = {"source": 1, "target": 2, "weight": 3}
    for place in (None, {"cluster": "auto", "workers": 3}):
        with pytest.raises(bf.InputError) as error:
            imported(paths, tmp_path / "g.brimful", options, place)
        errors.append(str(error.value))
    assert errors[0] == errors[1] and "1.csv:3002:" in errors[0]
    # One kind of file refuses the ids of another.
    (tmp_path / "huge.csv").write_text(f"source,target\n{2**63},1\n")
    (tmp_path / "negative.csv").write_text("source,target\n-1,1\n")
    (tmp_path / "weighted.csv").write_text("source,target,weight\n1,1,1\n")
    huge = [tmp_path / "huge.csv", tmp_path / "negative.csv"]
    mixed = [tmp_path / "huge.csv", tmp_path / "weighted.csv"]
    for paths in (huge, mixed, [tmp_path / "empty.csv", *mixed]):
        paths[0].touch()
        for place in (None, {"cluster": "auto", "workers": 3}):
            with pytest.raises(bf.InputError) as error:
                imported(paths, tmp_path / "g.brimful", {}, place)
            errors.append(str(error.value))
        assert errors[-1] == errors[-2]
    assert not (tmp_path / "g.brimful").exists()


@pytest.mark.nightly
@pytest.mark.parametrize(("task", "first"), [(b"_kept_text", 0), (b"_numbered_ids", 10**12)])
def test_a_task_of_an_import_that_is_killed_is_repeated(
    cluster: Cluster, tmp_path: Path, task: bytes, first: int
) -> None:
    paths = []
    for number in range(12):
        paths.append(tmp_path / f"{number:02}.txt")
        pairs = [(first + s, t) for s, t in edges(number, 10_000, 20_000)]
        paths[-1].write_text(lines(pairs) * 3)
    alone = imported(paths, tmp_path / "one.brimful", {}, None)
    killed = threading.Event()

    def kill_one(over: threading.Event) -> None:
        while not killed.is_set() and not over.wait(0.003):
            for one in processes(b"ray::" + task):
                kill(one)
                killed.set()

    with meanwhile(kill_one):
        many = imported(paths, tmp_path / "two.brimful", {}, {"cluster": "auto", "workers": 3})
    assert killed.is_set() and many == alone


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["v", ""])
def test_edges_on_a_node_that_is_removed_are_read_again(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    paths = []
    for number in range(12):
        paths.append(tmp_path / f"{number:02}.txt")
        pairs = [(name + str(s), name + str(t)) for s, t in edges(number, 30_000, 20_000)]
        paths[-1].write_text("source target\n" + lines(pairs))
    alone = imported(paths, tmp_path / "one.brimful", {}, None)
    node = cluster.add_node(num_cpus=3, object_store_memory=100 << 20)
    cluster.wait_for_nodes()
    removed = threading.Event()

    # The process of a task does not find this module, so its code is within a function.
    def slow_records(*arguments: Any) -> Iterator[Any]:
        time.sleep(1)
        yield from keeping._records(*arguments)

    def remove(over: threading.Event) -> None:
        while not processes(b"ray::slow_records"):
            if over.wait(0.05):
                return
        cluster.remove_node(node, allow_graceful=False)
        removed.set()

    monkeypatch.setattr(keeping, "_records", slow_records)
    with meanwhile(remove):
        many = imported(paths, tmp_path / "two.brimful", {}, {"cluster": "auto", "workers": 6})
    assert removed.is_set() and many == alone


def test_an_import_on_a_cluster_has_a_budget_and_reads_files(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    paths = text_files(tmp_path / "in")
    least = 1 << 20
    for _ in range(2):
        # First the import is refused, then perhaps a task.
        with contextlib.suppress(bf.BudgetError):
            bf.read(paths, cluster="auto", budget=least, path=tmp_path / "g.brimful").close()
            break
        with pytest.raises(bf.BudgetError) as error:
            bf.read(paths, cluster="auto", budget=least)
        least = error.value.needed_bytes
    assert (tmp_path / "g.brimful").is_dir()
    with pytest.raises(bf.UsageError, match="cluster= imports files; leave it out"):
        bf.read(pa.table({"source": [1], "target": [2]}), cluster="auto")
    with pytest.raises(bf.UsageError, match="workers= counts the workers of a cluster"):
        bf.read(paths, workers=2)
    (tmp_path / "pairs.u32").write_bytes(b"")
    for words, sentence in (
        (["-"], "a cluster reads files, not standard input"),
        ([tmp_path / "pairs.u32"], "a cluster reads text and Parquet, and the input is u32pairs"),
    ):
        outcome = brimful("import", *words, tmp_path / "h.brimful", "--cluster", "local:2")
        assert outcome.code == USAGE and sentence in outcome.err


@pytest.mark.nightly
def test_the_command_line_imports_on_a_local_cluster(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    paths = text_files(tmp_path / "in")
    here = brimful("import", *paths, tmp_path / "one.brimful", "--json")
    there = brimful("import", *paths, tmp_path / "two.brimful", "--json", "--cluster", "local:2")
    assert (here.code, there.code) == (DONE, DONE), there.err
    one, two = ({f.name: f.read_bytes() for f in p.iterdir()} for p in tmp_path.glob("*.brimful"))
    assert one == two
    assert there.figures["cluster"]["files_at_once"] == 2
    assert there.figures["cluster"]["bytes_received"] > 0


def test_tasks_have_a_budget_that_is_chosen_once(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Items of a task depend on it, and memory is not free to the same extent at a repetition.
    budgets = list[Any]()

    class Recorded(keeping.Tasks):
        def __init__(self, work: Any, inputs: Any, *others: Any) -> None:
            budgets.extend(one[-1] for one in inputs)
            super().__init__(work, inputs, *others)

    for module in (importing, keeping, sorting):
        monkeypatch.setattr(module, "Tasks", Recorded)
    (tmp_path / "wide.txt").write_text(lines([(10**12 + s, t) for s, t in edges(1, 2000)]))
    paths = [tmp_path / "wide.txt"]
    imported(paths, tmp_path / "g.brimful", {}, {"cluster": "auto", "workers": 1})
    assert len(budgets) >= 5 and len(set(budgets)) == 1
    assert budgets[0].budget == budgets[0].bytes() > 1 << 20
