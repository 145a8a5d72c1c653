"""Stores of vertices that are opened or run in a wrong way, or whose process was killed."""

import math
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import brimful as bf
from command import USAGE, refuse, succeed
from kept_vertices import EDGES, Before, Hops, graph_at, url
from nightly import with_nightly

__all__ = ["url"]  # The fixture.


def test_edges_and_states_that_are_none_are_named(url: str, tmp_path: Path) -> None:
    with bf.VertexStore.create(url, graph_at(tmp_path)) as store:
        for edge in ((1, math.nan), (1, "heavy"), (1,), 1):
            with pytest.raises(bf.UsageError, match=r"weight of an edge|an edge is a pair"):
                store.add_edges(0, [edge])  # type: ignore[list-item]
        store[0] = [math.nan, "stays"]
        assert repr(store[0]) == "[nan, 'stays']"
        store.remove_vertex(1)
        with pytest.raises(bf.NotFoundError):
            store.remove_edges(1, 2)
    assert repr(store).endswith("(closed)>")
    assert "(closed)" in store._repr_html_()


def test_a_store_whose_load_failed_is_made_again(url: str, tmp_path: Path) -> None:
    graph = graph_at(tmp_path)
    with pytest.raises(bf.BrimfulError, match="3"):
        bf.VertexStore.create(url, graph, states=dict.fromkeys([0, 1, 2, 4], 7))
    with pytest.raises(bf.UsageError, match="did not finish; make the store again"):
        bf.VertexStore.open(url)
    with bf.VertexStore.create(url, graph, states=dict.fromkeys(range(5), 7)) as store:
        assert dict(store) == dict.fromkeys(range(5), 7)


def test_mistakes_are_named(tmp_path: Path) -> None:
    graph, url = graph_at(tmp_path), f"file:{tmp_path}/vertices"
    with pytest.raises(bf.NotFoundError, match="no store of vertices"):
        bf.VertexStore.open(url)
    for option in ({"max_supersteps": 1}, {"partitioner": "hash"}, {"mode": "async"}):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            bf.VertexStore.create(url, graph, **option)  # type: ignore[arg-type]
    with pytest.raises(bf.UsageError, match="cannot be kept"):
        bf.run(graph, Hops(), store="bytes", keep=True)
    with pytest.raises(bf.UsageError, match="path="), bf.read(pa.table(EDGES)) as temporary:
        bf.run(temporary, Hops(), store=url, keep=True)
    with pytest.raises(bf.UsageError, match="no checkpoints"):
        bf.run(graph, Hops(), store=url, keep=True, checkpoint_every=1)
    with pytest.raises(bf.UsageError, match="by ranges"):
        bf.run(graph, Hops(), store=url, keep=True, partitioner="hash")
    with bf.VertexStore.create(url, graph) as store:
        with pytest.raises(bf.UsageError, match='type int64, and "one" has another'):
            store.add_vertex("one")
        with pytest.raises(bf.UsageError, match=f"did you mean '{url}'"):
            bf.VertexStore.open(url.removeprefix("file:"))
        with pytest.raises(bf.UsageError, match="there is a store"):
            bf.VertexStore.create(url, graph)
        with pytest.raises(bf.UsageError, match="start must be initial or kept, not again"):
            store.run(Hops(), start="again")  # type: ignore[arg-type]
    with pytest.raises(bf.UsageError, match="closed"):
        store[1]
    with pytest.raises(bf.UsageError, match="serializer json, and the run has pickle"):
        bf.run(graph, Hops(), store=url, keep=True, serializer="pickle")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(bf.UsageError, match=r"other files, such as mine\.txt"):
        bf.VertexStore.create(f"file:{tmp_path}/full", graph)
    assert (tmp_path / "full" / "mine.txt").read_text() == "mine"
    shutil.rmtree(graph)
    with pytest.raises(bf.NotFoundError):
        bf.VertexStore.open(url)


def test_a_store_of_another_graph_is_refused(tmp_path: Path) -> None:
    graph, url = graph_at(tmp_path), f"file:{tmp_path}/vertices"
    bf.VertexStore.create(url, graph).close()
    shutil.rmtree(graph)
    graph_at(tmp_path, {"source": [1], "target": [2]})
    with pytest.raises(bf.UsageError, match="an earlier state"):
        bf.VertexStore.open(url)


def test_a_serializer_that_runs_code_must_be_named(tmp_path: Path) -> None:
    graph, url = graph_at(tmp_path), f"file:{tmp_path}/vertices"
    with bf.VertexStore.create(url, graph, serializer="pickle") as store:
        store[1] = (1, 2)
    with pytest.raises(bf.UsageError, match="serializer pickle; name it"):
        bf.VertexStore.open(url)
    with bf.VertexStore.open(url, serializer="pickle") as store:
        assert store[1] == (1, 2)


def test_a_program_cannot_read_the_store_that_it_runs_on(tmp_path: Path) -> None:
    graph = graph_at(tmp_path)

    class Reads(Before):
        def initial_state(self, vertex: bf.Vertex) -> Any:
            return store[vertex.id]

    with bf.VertexStore.create(f"file:{tmp_path}/vertices", graph) as store:
        with pytest.raises(bf.ProgramError) as raised:
            store.run(Reads())
        assert "a run uses the vertices" in str(raised.value.__cause__)
        with pytest.raises(bf.UsageError, match="did not finish"):
            store[1]
        # A run that begins anew mends it.
        assert store.run(Hops())[3] == 3


@pytest.mark.parametrize("moment", with_nightly(["load", "change"], ["first run", "run"]))
def test_a_kill_is_noticed(moment: str, url: str, tmp_path: Path) -> None:
    graph = graph_at(tmp_path)
    script = """
        import os, signal, sys
        import brimful as bf
        from kept_vertices import Hops
        graph, url, moment = sys.argv[1:]
        class Dies(Hops):
            def initial_state(self, vertex):
                if moment == "load":
                    os.kill(os.getpid(), signal.SIGKILL)
                return super().initial_state(vertex)
            def collect(self, vertex, signals):
                return os.kill(os.getpid(), signal.SIGKILL)
        if moment in ("load", "first run"):
            bf.run(graph, Dies(), store=url, keep=True)
        store = bf.VertexStore.create(url, graph)
        if moment == "run":
            store.run(Dies())
        store[1] = 5
        os.kill(os.getpid(), signal.SIGKILL)
    """
    paths = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    killed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), graph, url, moment],
        cwd=Path(__file__).parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    if moment != "load":
        with pytest.raises(bf.UsageError, match=r"did not finish|may be damaged"):
            dict(bf.VertexStore.open(url))
    if moment != "load" and not url.startswith("file"):
        # No database synced its files, so that they may be incomplete.
        with pytest.raises(bf.UsageError, match="may be damaged; remove the folder"):
            bf.run(graph, Hops(), store=url, keep=True)
        return
    expected = {0: 0, 1: 1, 2: 2, 3: 3, 4: 1}
    if moment != "load":
        with bf.VertexStore.open(url) as store:
            assert dict(store.run(Hops())) == expected
    assert dict(bf.run(graph, Hops(), store=url, keep=True)) == expected


def test_vertices_that_cannot_stay_are_refused_before_the_run(tmp_path: Path) -> None:
    graph, url = graph_at(tmp_path), f"file:{tmp_path}/kept"
    run = ("run", "pagerank", graph, "--keep", "--quiet")
    assert "give --store file:PATH" in refuse(USAGE, *run)
    assert "cannot be kept" in refuse(USAGE, *run, "--store", "bytes")
    where = ("--where", "vertex > 1")
    assert "brimful derive" in refuse(USAGE, *run, "--store", url, *where)
    assert not (tmp_path / "kept").exists()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "letter.txt").touch()
    assert "such as letter.txt" in refuse(USAGE, *run, "--store", url)
    (tmp_path / "kept" / "letter.txt").unlink()
    succeed(*run, "--store", url)
    assert "there is a store at" in refuse(USAGE, *run, "--store", url)


def test_a_store_is_opened_by_its_own_scheme(tmp_path: Path) -> None:
    graph, place = graph_at(tmp_path), f"{tmp_path}/vertices"
    expected = dict(bf.run(graph, Hops(), store=f"file:{place}", keep=True))
    for again in (
        lambda: bf.VertexStore.open(f"kv:{place}"),
        lambda: bf.run(graph, Hops(), store=f"kv:{place}", keep=True),
    ):
        with pytest.raises(bf.UsageError, match="have store file, and the run has kv"):
            again()
    with bf.VertexStore.open(f"file:{place}") as store:
        assert dict(store) == expected
        with pytest.raises(bf.UsageError, match="have store file, and the run has kv"):
            bf.run(graph, Hops(), store=f"kv:{place}", keep=True)
        assert dict(store) == expected


def test_a_graph_is_no_place_for_vertices(tmp_path: Path) -> None:
    graph = graph_at(tmp_path)
    before = sorted(os.listdir(graph))
    with pytest.raises(bf.UsageError, match="is a graph directory"):
        bf.run(graph, Hops(), store=f"file:{graph}", keep=True)
    with pytest.raises(bf.UsageError, match="inside the graph directory"):
        bf.run(graph, Hops(), store=f"file:{graph}/vertices", keep=True)
    with pytest.raises(bf.UsageError, match="is a graph directory"):
        bf.VertexStore.open(f"file:{graph}")
    assert sorted(os.listdir(graph)) == before
