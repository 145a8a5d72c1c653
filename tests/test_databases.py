"""Vertices in databases: every algorithm gives the answer of the disk path, failures are clear."""

from __future__ import annotations

import contextlib
import logging
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

import brimful as bf
import servers
from brimful import stores
from brimful.conformance import check_store
from brimful.stores import Opening, Store
from brimful.stores.retry import Retries
from command import IO, USAGE, brimful, refuse, smallest, succeed
from disks import small_disk
from nightly import with_nightly
from test_stores import ANY_ORDER, RUNS, arcs, assert_same, compute


@pytest.fixture(scope="module")
def mongo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    with servers.mongo(tmp_path_factory.mktemp("mongo")) as server:
        yield server


@pytest.fixture(scope="module")
def orient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    with servers.orient(tmp_path_factory.mktemp("orient")) as server:
        yield server


def mongo_url(server: servers.Server, options: str = "") -> str:
    return f"mongodb://127.0.0.1:{server.port}/graphs/vertices{options}"


def orient_url(server: servers.Server, options: str = "") -> str:
    password = quote(servers.PASSWORD, safe="")
    return f"orientdb://root:{password}@127.0.0.1:{server.port}/graphs/Vertices{options}"


@pytest.fixture(params=["rocksdb", "berkeleydb", "mongodb", "orientdb"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "mongodb":
        return mongo_url(request.getfixturevalue("mongo"))
    if request.param == "orientdb":
        return orient_url(request.getfixturevalue("orient"))
    pytest.importorskip("rocksdict" if request.param == "rocksdb" else "berkeleydb")
    return f"{request.param}:{tmp_path / 'vertices'}"


@pytest.fixture(scope="module")
def graph() -> Iterator[bf.Graph]:
    with bf.Graph.from_arrow(arcs(), weight="weight", vertices=170) as made:
        yield made


def test_a_database_conforms(url: str) -> None:
    assert list(check_store(url))[-3:] == ["records", "vertices", "ids"]


def test_a_budget_covers_the_library_of_a_database(url: str, tmp_path: Path) -> None:
    path = tmp_path / "g.brimful"
    succeed("generate", "rmat", path, "--scale", 12, "--quiet")
    run = ["run", "pagerank", path, "--store", url, "--max-supersteps", 2, "--threads", 2]
    figures = succeed(*run, "--budget", smallest(*run), "--json", "--quiet").figures
    assert figures["peak_rss_bytes"] <= figures["budget_bytes"]


@pytest.mark.parametrize("options", ["cache=0", "deferred=0&cache=1M", "cache=auto"])
def test_berkeley_db_conforms_with_its_options(options: str, tmp_path: Path) -> None:
    pytest.importorskip("berkeleydb", reason="SKIPPED: berkeleydb is not installed")
    url = f"berkeleydb:{tmp_path / 'x'}?{options}"
    assert list(check_store(url))[-3:] == ["records", "vertices", "ids"]


def test_every_algorithm_gives_the_answer_of_the_disk_path(graph: bf.Graph, url: str) -> None:
    runs = RUNS if url.startswith("rocksdb") else RUNS[::3]
    for algorithm, options in runs:
        expected = compute(graph, algorithm, options)
        found = compute(graph, algorithm, options, store=url)
        bound = 1e-6 if options.get("precision") == "f32" else 1e-9
        assert_same(found, expected, bound=bound)


class Steps(bf.Program):
    """The least number of edges from vertex 0."""

    delivery, combiner = "combined", "min"

    def initial_state(self, vertex: Any) -> Any:
        return 0 if vertex.id == 0 else None

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return None if source.state is None else source.state + 1

    def collect(self, vertex: Any, signals: list[Any]) -> Any:
        return min(signals if vertex.state is None else [vertex.state, *signals])


class Failing(Steps):
    """`Steps` that fails for one vertex, while it is loaded or when it collects."""

    phase = "load"

    def initial_state(self, vertex: Any) -> Any:
        if self.phase == "load" and vertex.id == 39:
            raise ValueError(vertex.id)
        return super().initial_state(vertex)

    def collect(self, vertex: Any, signals: list[Any]) -> Any:
        if self.phase == "collect" and vertex.id == 7:
            raise ValueError(vertex.id)
        return super().collect(vertex, signals)


@pytest.fixture(params=["mongodb", "orientdb"])
def server_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the URL of a collection or class on a server, which is emptied at the end."""
    if request.param == "mongodb":
        url = mongo_url(request.getfixturevalue("mongo"))
    else:
        url = orient_url(request.getfixturevalue("orient"))
    url = url.rpartition("/")[0] + "/Kept"
    yield url
    with opened_partition(url) as store:
        store.clear()


@contextlib.contextmanager
def opened_partition(url: str) -> Iterator[Store]:
    """Open the only partition of a run on a server."""
    opener = stores.registry.opener(url)
    assert opener is not None
    with opener:
        store = opener.open(0, 1 << 20, None)
        yield store


def count(url: str) -> int:
    with opened_partition(url) as store:
        return store.count()


def test_orientdb_removes_the_records_of_a_partition_in_parts(
    orient: servers.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One statement for a million documents took longer than the limit of an answer."""
    monkeypatch.setattr("brimful.stores.orientdb._REMOVED_AT_ONCE", 100)
    with opened_partition(orient_url(orient)) as store:
        for records in (0, 100, 250):
            store.load([(b"%d" % number, b"r") for number in range(records)])
            assert store.count() == records
            store.clear()
            assert store.count() == 0


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """A graph of 41 vertices in a row."""
    path = tmp_path / "chain.brimful"
    table = pa.table({"source": range(40), "target": range(1, 41)})
    bf.Graph.from_arrow(table, path=path).close()
    return path


def test_vertices_stay_on_a_server(server_url: str, chain: Path, tmp_path: Path) -> None:
    url = f"{server_url}?retry_seconds=20&folder={quote(str(tmp_path / 'kept'), safe='')}"
    with pytest.raises(bf.UsageError, match=r"folder= in the URL of .* is for kept vertices"):
        bf.run(chain, Steps(), store=url)
    with pytest.raises(bf.UsageError, match="need a folder for their description"):
        bf.run(chain, Steps(), store=server_url, keep=True)
    states = bf.run(chain, Steps(), store=url, keep=True)
    assert dict(states) == {vertex: vertex for vertex in range(41)}
    with bf.VertexStore.open(url) as kept:
        assert dict(kept) == dict(states)
        assert quote(servers.PASSWORD, safe="") not in repr(kept)
        kept.add_edge(0, 30)
        assert kept.run(Steps(), start="kept")[40] == 11
    with bf.VertexStore.open(url) as kept:
        assert kept[30] == 1
        assert sorted(kept.edges(0)) == [(1, 1.0), (30, 1.0)]
        assert kept.run(Steps())[40] == 11
    # Other runs refuse the vertices, and leave them as they are.
    plain = ["run", "bfs", chain, "--source", 0, "--store", server_url]
    assert "has 41 vertices of another run" in refuse(USAGE, *plain)
    other = f"{server_url}?folder={tmp_path / 'other'}"
    with pytest.raises(bf.UsageError, match="of another run, or of a load that was killed"):
        bf.run(chain, Steps(), store=other, keep=True)
    with bf.VertexStore.open(url) as kept:
        assert kept[40] == 11


def test_a_failed_load_leaves_no_vertices_on_a_server(
    server_url: str, chain: Path, tmp_path: Path
) -> None:
    url = f"{server_url}?folder={tmp_path / 'kept'}"
    program = Failing()
    with pytest.raises(bf.ProgramError, match="39"):
        bf.run(chain, program, store=url, keep=True)
    assert count(server_url) == 0
    # Vertices that were loaded stay when a later superstep fails.
    program.phase = "collect"
    with pytest.raises(bf.ProgramError, match="7"):
        bf.run(chain, program, store=url, keep=True)
    assert count(server_url) == 41
    program.phase = "none"
    assert bf.run(chain, program, store=url, keep=True)[40] == 40


def test_the_vertices_of_an_algorithm_stay_on_a_server(
    server_url: str, chain: Path, tmp_path: Path
) -> None:
    url = f"{server_url}?folder={tmp_path / 'kept'}"
    run = ["run", "bfs", chain, "--source", 0, "--store", url, "--json", "--quiet"]
    assert "is for kept vertices" in refuse(USAGE, *run)
    kept_at = succeed(*run, "--keep").figures["kept"]
    assert kept_at is not None and quote(servers.PASSWORD, safe="") not in kept_at
    with bf.VertexStore.open(url) as kept:
        assert kept[40] == 40


@pytest.mark.parametrize(
    "more", with_nightly([{"cache": "lru:20"}], [{"cache": "score:20"}, {"lists": "disk"}])
)
def test_caches_and_lists_on_disk_change_nothing(
    graph: bf.Graph, url: str, more: dict[str, Any]
) -> None:
    for algorithm, options in ANY_ORDER[1:]:
        expected = dict(compute(graph, algorithm, options))
        assert dict(compute(graph, algorithm, options, store=url, **more)) == expected
        found = compute(graph, algorithm, options, store=url, mode="async", **more)
        assert dict(found) == expected


class Hops(bf.Program):
    """Distance from vertex 0, with states that are Python objects."""

    def initial_state(self, vertex: Any) -> Any:
        return {"hops": 0} if vertex.id == 0 else {"hops": None}

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        hops = source.state["hops"]
        return None if hops is None else hops + 1

    def collect(self, vertex: Any, signals: Any) -> Any:
        least = min(signals)
        held = vertex.state["hops"]
        return vertex.state if held is not None and held <= least else {"hops": least}


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_programs_in_python_run_on_a_database(graph: bf.Graph, url: str, mode: Any) -> None:
    found = bf.run(graph, Hops(), store=url, mode=mode, cache="lru:10")
    expected = bf.bfs(graph, source=0)
    for vertex, state in found.items():
        hops = expected[vertex]
        assert state["hops"] == (None if hops is None or hops < 0 else hops)


class Texts(bf.Program):
    """States of 2 kB."""

    def initial_state(self, vertex: Any) -> Any:
        return f"{vertex.id}:" + "x" * 2000

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return None

    def collect(self, vertex: Any, signals: Any) -> Any:
        return vertex.state


@pytest.mark.parametrize("scheme", ["rocksdb", "berkeleydb"])
def test_states_of_a_program_may_exceed_the_budget(scheme: str, tmp_path: Path) -> None:
    pytest.importorskip("rocksdict" if scheme == "rocksdb" else "berkeleydb")
    # The comma separates no folders.
    path, folder = tmp_path / "a,b" / "g.brimful", tmp_path / "vertices"
    path.parent.mkdir()
    succeed("generate", "rmat", path, "--scale", 14, "--edge-factor", 1, "--quiet")
    with bf.Graph.open(path) as graph:
        states = bf.run(graph, Texts(), store=f"{scheme}:{folder}", budget="30M")
        assert len(states) == 1 << 14
        assert states[5].startswith("5:") and len(states[16_383]) == 2006
        ids = [id for id, _ in states.items()]
        assert ids == sorted(ids) and len(ids) == 1 << 14
        del states
    assert not list(tmp_path.glob("**/.brimful*"))


def test_a_run_leaves_nothing_behind(graph: bf.Graph, url: str, tmp_path: Path) -> None:
    for _ in range(2):
        bf.bfs(graph, source=0, store=url)
    if url.startswith(("rocksdb", "berkeleydb")):
        assert not (tmp_path / "vertices").exists()


#: A run that is killed in its first superstep.
KILLED = """
import os, signal, sys
import pyarrow as pa
import brimful as bf

class Killed(bf.Program):
    def initial_state(self, vertex): return 0
    def signal(self, source, target, weight): return 1
    def collect(self, vertex, signals): return os.kill(os.getpid(), signal.SIGKILL)

bf.run(bf.Graph.from_arrow(pa.table({"source": [1], "target": [2]})), Killed(), store=sys.argv[1])
"""


def test_vertices_of_a_killed_run_are_refused(graph: bf.Graph, mongo: servers.Server) -> None:
    import pymongo

    url = f"mongodb://127.0.0.1:{mongo.port}/graphs/left"
    done = subprocess.run([sys.executable, "-c", KILLED, url], check=False)
    assert done.returncode == -signal.SIGKILL
    with pytest.raises(bf.UsageError, match=f"{url}.* has 2 vertices of another run; remove it"):
        bf.bfs(graph, source=0, store=url)
    with pymongo.MongoClient("127.0.0.1", mongo.port) as client:
        assert client["graphs"]["left"].count_documents({}) == 2
        client["graphs"]["left"].drop()
    assert len(bf.bfs(graph, source=0, store=url)) == graph.vertices


def test_a_server_that_never_answers_is_named(graph: bf.Graph) -> None:
    port = servers.free_port()
    for scheme in ("mongodb", "orientdb"):
        url = f"{scheme}://root:secret@127.0.0.1:{port}/graphs/V?retry_seconds=1"
        if scheme == "mongodb":
            pytest.importorskip("pymongo")
        with pytest.raises(bf.StoreIoError, match="did not answer for 1 s") as caught:
            bf.bfs(graph, source=0, store=url)
        assert f"127.0.0.1:{port}" in str(caught.value)
        assert "secret" not in str(caught.value)


def test_a_wait_that_the_end_of_a_run_cuts_short_says_so() -> None:
    """It claimed that it had waited for 30 s."""
    stopped = threading.Event()
    stopped.set()

    def call() -> None:
        raise ConnectionError("refused")

    with pytest.raises(bf.StoreIoError, match=r"the run was stopped while .*\(refused\)"):
        Retries("host:1", (ConnectionError,), 30.0, stopped)(call)


def test_a_server_that_comes_back_is_waited_for(graph: bf.Graph, tmp_path: Path) -> None:
    with servers.mongo(tmp_path) as server:
        found: dict[str, Any] = {}

        def run() -> None:
            found["result"] = bf.bfs(graph, source=0, store=mongo_url(server))

        server.kill()
        runner = threading.Thread(target=run)
        runner.start()
        time.sleep(1.0)
        server.start()
        runner.join()
        assert dict(found["result"]) == dict(bf.bfs(graph, source=0))


def loses_first_answer(call: Callable[..., Any], error: Exception) -> Callable[..., Any]:
    """Return a call that takes effect, and whose first answer is lost."""
    lost = [error]

    def calls(*arguments: Any, **options: Any) -> Any:
        found = call(*arguments, **options)
        if lost:
            raise lost.pop()
        return found

    return calls


def changes_of_repeated_calls(
    store: Store, lose: Callable[[], None]
) -> tuple[list[int], dict[bytes, bytes]]:
    """Return skipped records of loads, and all records, where each call is repeated."""
    skipped = []
    for batch in ([(b"a", b"1"), (b"b", b"2"), (b"a", b"3")], [(b"b", b"4"), (b"c", b"5")]):
        lose()
        skipped.append(store.load(batch))
    lose()
    store.put_many([b"a", b"d"], [b"6", b"7"])
    skipped.append(store.load([(b"d", b"8"), (b"e", b"9")]))
    return skipped, dict(store.scan())


_REPEATED = ([1, 1, 1], {b"a": b"6", b"b": b"2", b"c": b"5", b"d": b"7", b"e": b"9"})


def test_a_repeated_change_of_mongodb_counts_once(
    mongo: servers.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pymongo.errors import AutoReconnect

    from brimful.stores.mongodb import MongoStore

    store = MongoStore(Opening(mongo_url(mongo), 0, 1 << 20))

    class Loses:
        """A collection whose next change loses its answer."""

        def __init__(self, collection: Any) -> None:
            self._collection = collection
            for name in ("insert_many", "bulk_write"):
                call = getattr(collection, name)
                setattr(self, name, loses_first_answer(call, AutoReconnect("lost")))

        def __getattr__(self, name: str) -> Any:
            return getattr(self._collection, name)

    collection = store._collection
    try:
        found = changes_of_repeated_calls(
            store, lambda: monkeypatch.setattr(store, "_collection", Loses(collection))
        )
    finally:
        store.clear()
        store.close()
    assert found == _REPEATED


def test_a_repeated_change_of_orientdb_counts_once(
    orient: servers.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from brimful.stores import orient as client
    from brimful.stores.orientdb import OrientStore

    store = OrientStore(Opening(orient_url(orient), 0, 1 << 20))
    once = store._server._once

    def lose() -> None:
        loses = loses_first_answer(once, client._Away("lost"))

        def calls(method: str, path: str, data: str | None) -> Any:
            return (loses if path.startswith("/batch") else once)(method, path, data)

        monkeypatch.setattr(store._server, "_once", calls)

    try:
        found = changes_of_repeated_calls(store, lose)
    finally:
        store.clear()
        store.close()
    assert found == _REPEATED


class Fails(bf.Program):
    """Calls a function in the middle of a run."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    def initial_state(self, vertex: Any) -> Any:
        return 0

    def signal(self, source: Any, target: Any, weight: float) -> Any:
        return source.state + 1

    def collect(self, vertex: Any, signals: Any) -> Any:
        if vertex.state == 3:
            self._then()
        return vertex.state + 1


def test_a_server_that_is_lost_in_the_middle_ends_the_run(
    graph: bf.Graph, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with servers.mongo(tmp_path) as server:
        url = mongo_url(server, "?retry_seconds=1")
        program = Fails(server.kill)
        with (
            caplog.at_level(logging.WARNING, "brimful"),
            pytest.raises(bf.StoreIoError, match="did not answer for 1 s"),
        ):
            bf.run(graph, program, store=url, max_supersteps=50)
        assert "still has vertices of this run" in caplog.text


def test_a_wrong_password_and_a_wrong_database_are_named(
    graph: bf.Graph, orient: servers.Server
) -> None:
    place = f"127.0.0.1:{orient.port}"
    with pytest.raises(bf.UsageError, match="refused the user, the password or") as caught:
        bf.bfs(graph, source=0, store=f"orientdb://root:wrong7@{place}/graphs/V")
    assert "wrong7" not in str(caught.value)
    with pytest.raises((bf.UsageError, bf.StoreIoError), match="nowhere"):
        bf.bfs(graph, source=0, store=orient_url(orient).replace("/graphs/", "/nowhere/"))


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("mongodb://127.0.0.1/graphs", "has the form mongodb://HOST/DATABASE/COLLECTION"),
        ("mongodb://127.0.0.1/a/b?retry_seconds=x", "retry_seconds must be a number"),
        ("mongodb://127.0.0.1/a/b?noSuchOption=1", 'has no option "noSuchOption"'),
        ("mongodb://127.0.0.1/a/b$", "not valid: collection names must not contain"),
        ("orientdb://127.0.0.1/graphs", "has the form orientdb://"),
        ("orientdb://127.0.0.1/graphs/a;b", "has the form orientdb://"),
        ("orientdb://127.0.0.1/graphs/V?x=1", 'has no option "x"'),
        ("berkeleydb:/tmp/x?deferred=2", "deferred must be 0 or 1"),
        ("berkeleydb:/tmp/x?cahce=2M", "cahce.; did you mean 'cache'.; known: deferred, cache"),
        ("berkeleydb:/tmp/x?size=2", 'has no option "size"'),
        ("rocksdb:/tmp/x?cache=64M", 'rocksdb has no option "cache"; it has none'),
        ("rocksdb:", "needs a folder; write rocksdb:PATH"),
        ("mongo://127.0.0.1/a/b", 'there is no store "mongo'),
    ],
)
def test_urls_that_say_nothing_are_refused(graph: bf.Graph, url: str, text: str) -> None:
    with pytest.raises(bf.UsageError, match=text):
        bf.bfs(graph, source=0, store=url)


def test_the_command_line_shows_no_password(
    graph: bf.Graph, orient: servers.Server, tmp_path: Path
) -> None:
    edges = tmp_path / "edges.txt"
    edges.write_text("1 2\n2 3\n")
    url, log = orient_url(orient), tmp_path / "log.jsonl"
    done = succeed("run", "bfs", edges, "--source", "1", "--store", url, "--json", "--log", log)
    shown = done.out + done.err + log.read_text()
    assert f"orientdb://***@127.0.0.1:{orient.port}" in shown
    assert quote(servers.PASSWORD, safe="") not in shown
    assert servers.PASSWORD not in shown
    done = brimful("run", "bfs", edges, "--source", "1", "--store", url.replace("root:", "root:x"))
    assert done.code == USAGE
    assert "cret" not in done.out + done.err
    port = servers.free_port()
    url = f"orientdb://root:hidden@127.0.0.1:{port}/graphs/V?retry_seconds=0"
    done = brimful("run", "bfs", edges, "--source", "1", "--store", url)
    assert done.code == IO
    assert "hidden" not in done.out + done.err


def test_rocksdb_may_remove_a_file_while_its_size_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rocksdict")
    from brimful.stores.rocksdb import RocksStore

    class Removed:
        def is_file(self) -> bool:
            return True

        def stat(self) -> None:
            raise FileNotFoundError

    kept = tmp_path / "kept"
    kept.write_bytes(b"12345")
    store = RocksStore(Opening("rocksdb:x", 0, 1 << 20, tmp_path / "x"))
    try:
        monkeypatch.setattr(Path, "rglob", lambda self, pattern: iter([Removed(), kept]))
        assert store.disk_bytes() == 5
    finally:
        monkeypatch.undo()
        store.close()


@pytest.mark.parametrize(
    ("store", "keep"),
    [
        ("rocksdb:PATH", []),
        ("rocksdb:PATH", ["--keep"]),
        ("berkeleydb:PATH?cache=0", []),
        ("berkeleydb:PATH?deferred=0", []),
        ("berkeleydb:PATH", ["--keep"]),
    ],
)
def test_a_full_disk_is_named_once(store: str, keep: list[str], rmat: Path, tmp_path: Path) -> None:
    pytest.importorskip("rocksdict" if store.startswith("rocksdb") else "berkeleydb")
    with small_disk(tmp_path, "512k") as disk:
        url = store.replace("PATH", str(disk / "vertices"))
        sentence = refuse(IO, "run", "degrees", rmat, "--store", url, *keep, "--quiet")
        assert f"the database {disk / 'vertices'}" in sentence
        assert "the disk is full; free some space" in sentence


def test_a_cache_that_holds_all_vertices_needs_no_disk(rmat: Path, tmp_path: Path) -> None:
    pytest.importorskip("berkeleydb")
    with small_disk(tmp_path, "512k") as disk:
        words = ["run", "connected_components", rmat, "--store", f"berkeleydb:{disk}", "--quiet"]
        assert succeed(*words, "--budget", "400M").err == ""
