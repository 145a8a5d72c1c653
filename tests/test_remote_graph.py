"""Graph directories at URLs, used through a copy (`file://`; test_object_store.py has S3)."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import brimful as bf
from brimful.cluster.worker import _open_graph
from brimful.io import remote_graph
from command import CORRUPT, USAGE, brimful, refuse, succeed

EDGES = pa.table({"source": [0, 1, 2, 2, 7], "target": [1, 2, 0, 3, 0]})


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the copies."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "brimful"


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    place = tmp_path / "there" / "web.brimful"
    place.parent.mkdir()
    bf.Graph.from_arrow(EDGES, path=place).close()
    return place


@pytest.fixture
def url(graph: Path) -> str:
    return f"file://{graph}"


def test_python_opens_a_url(url: str, cache: Path) -> None:
    with bf.Graph.open(url) as opened, bf.read(url) as read:
        assert opened.path == read.path
        assert Path(opened.path).is_relative_to(cache)
        assert opened.to_arrow().sort_by("source").num_rows == 5
    assert dict(bf.bfs(url, 0)) == {0: 0, 1: 1, 2: 2, 3: 3, 7: None}


def test_a_second_run_reads_one_file(graph: Path, url: str, cache: Path) -> None:
    first = dict(bf.pagerank(url))
    for file in graph.iterdir():
        if file.name != "current":
            file.unlink()
    assert dict(bf.pagerank(url)) == first


def test_an_index_of_the_copy_does_not_make_it_old(url: str, cache: Path) -> None:
    bf.hits(url)
    changed = {path: path.stat().st_mtime_ns for path in cache.rglob("*.shards")}
    assert {path.name for path in changed} == {"in.shards", "reverse.shards"}
    bf.hits(url)
    assert changed == {path: path.stat().st_mtime_ns for path in cache.rglob("*.shards")}


def test_a_new_graph_at_the_url_replaces_the_copy(graph: Path, url: str, cache: Path) -> None:
    with bf.Graph.open(url) as old:
        shutil.rmtree(graph)
        bf.Graph.from_arrow(EDGES.slice(0, 2), path=graph).close()
        with bf.Graph.open(url) as new:
            assert (old.edges, new.edges, old.path) == (5, 2, new.path)
    assert len(list(cache.glob("web-*"))) == 2  # the copy and its lock


def test_a_damaged_graph_is_not_kept(graph: Path, url: str, cache: Path) -> None:
    shards = graph / "in.shards"
    shards.write_bytes(shards.read_bytes()[:-8])
    said = refuse(CORRUPT, "info", url, "--quiet")
    assert f"{url}/in.shards is corrupt at byte" in said
    assert list(cache.rglob("*.shards")) == []
    assert list(cache.glob(".brimful-copy-*")) == []


def test_a_damaged_copy_gives_no_answer(url: str, cache: Path) -> None:
    bf.Graph.open(url).close()
    (shards,) = cache.rglob("in.shards")
    content = bytearray(shards.read_bytes())
    content[64] ^= 1
    shards.write_bytes(content)
    with pytest.raises(bf.CorruptError, match=r"in\.shards"):
        bf.degrees(url, direction="in").to_arrow()
        bf.pagerank(url)


def test_a_graph_that_changes_meanwhile_is_refused(
    graph: Path, url: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch = remote_graph._fetch

    def slow(*given: object) -> None:
        shutil.rmtree(graph)
        bf.Graph.from_arrow(EDGES.slice(0, 2), path=graph).close()
        monkeypatch.setattr(remote_graph, "_fetch", fetch)
        fetch(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(remote_graph, "_fetch", slow)
    with pytest.raises(bf.StoreIoError, match="changed while it was copied; try again"):
        bf.Graph.open(url)
    with bf.Graph.open(url) as opened:
        assert opened.edges == 2


def test_parts_of_files_make_the_whole(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "large.brimful"
    succeed("generate", "rmat", place, "--scale", "10", "--quiet")
    monkeypatch.setattr(remote_graph, "_PART_BYTES", 1000)
    monkeypatch.setattr(remote_graph, "_BLOCK_BYTES", 333)
    seen: list[tuple[int, int]] = []

    def progress(phase: str, done: int, total: int, _seconds: float) -> None:
        if phase == "copy":
            seen.append((done, total))

    assert dict(bf.pagerank(f"file://{place}", progress=progress)) == dict(bf.pagerank(place))
    assert seen[-1][0] == seen[-1][1] > 10_000
    (copy,) = cache.glob("large-*/large.brimful")
    for file in place.iterdir():
        if file.name != "lock":
            assert (copy / file.name).read_bytes() == file.read_bytes()


def test_an_interruption_leaves_no_copy(url: str, cache: Path) -> None:
    class Stop(Exception):
        pass

    def progress(phase: str, *_: object) -> None:
        raise Stop if phase == "copy" else AssertionError(phase)

    with pytest.raises(Stop):
        bf.pagerank(url, progress=progress)
    assert list(cache.rglob("*.shards")) == []


def test_what_is_no_graph_is_refused(tmp_path: Path, graph: Path, url: str, cache: Path) -> None:
    with pytest.raises(bf.NotFoundError, match=r"there is no graph at file://.*none\.brimful"):
        bf.Graph.open(f"file://{tmp_path}/none.brimful")
    assert "name that ends in .brimful" in refuse(USAGE, "info", f"file://{tmp_path}/x.txt")
    assert "does not read http URLs" in refuse(USAGE, "info", "http://127.0.0.1/web.brimful")
    table = pa.table({"id": [0], "age": [3]})
    with bf.Graph.open(url) as opened, pytest.raises(bf.UsageError, match="through a local copy"):
        opened.add_vertex_columns(table, on="id")
    assert not any("vertices" in file.name for file in graph.iterdir())
    assert not cache.joinpath("none").exists()


def test_two_commands_copy_a_graph_once(url: str, cache: Path) -> None:
    words = [sys.executable, "-m", "brimful", "run", "pagerank", url, "--top", "3"]
    both = [
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    (one, said), (other, said_too) = (process.communicate(timeout=60) for process in both)
    tops = [text.partition("vertex\t")[2] for text in (one, other)]
    assert tops[0] == tops[1] != ""
    assert (said + said_too).count("copying file://") == 1
    assert brimful("info", url).code == 0
    assert len(list(cache.rglob("in.shards"))) == 1


def test_another_machine_unpickles_from_the_url(tmp_path: Path, cache: Path) -> None:
    place = tmp_path / "there.brimful"
    people = pa.table({"vertex": [0, 7], "age": [3, 4]})
    edges = EDGES.append_column("year", pa.array(range(5)))
    bf.Graph.from_arrow(edges, path=place, vertex_columns=people, edge_columns="year").close()
    with bf.Graph.open(f"file://{place}") as opened:
        data = pickle.dumps((opened, opened.vertex_values("age"), opened.edge_values("year")))
    shutil.rmtree(cache)
    graph, ages, years = pickle.loads(data)
    assert (graph.edges, ages[7], years[7, 0]) == (5, 4, 4)
    assert Path(graph.path).is_relative_to(cache)


def test_a_worker_of_a_cluster_opens_its_own_copy(url: str, cache: Path) -> None:
    with bf.Graph.open(url) as opened:
        fingerprint = opened.native.fingerprint
        assert remote_graph.location_of(opened.path) == url
    shutil.rmtree(cache)
    assert _open_graph(url, fingerprint).path == opened.path
    assert len(list(cache.rglob("in.shards"))) == 1
    with pytest.raises(bf.InputError, match="has changed since the run began"):
        _open_graph(url, "0" * 16)


@pytest.mark.nightly
def test_a_run_on_a_cluster_needs_the_url_alone(url: str, cache: Path) -> None:
    pytest.importorskip("ray", reason="SKIPPED: Ray is not installed (requirements/dev.txt)")
    here = dict(bf.hits(url))
    assert dict(bf.hits(url, cluster="local:2")) == here
