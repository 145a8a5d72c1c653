"""Inputs and graphs at `s3://` URLs, against a moto server of our own."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from brimful.io import remote
from command import INPUT, IO, USAGE, brimful, names_below, refuse, succeed
from test_import import EDGES, edges_of

SECRETS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_MAX_ATTEMPTS": "2",
}


class Store:
    """A bucket on the server."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"127.0.0.1:{port}"
        self._put("")

    def url(self, key: str) -> str:
        return f"s3://graphs/{key}?scheme=http&endpoint_override={self.endpoint}"

    def put(self, key: str, content: bytes) -> str:
        self._put("/" + key, content)
        return self.url(key)

    def _put(self, path: str, content: bytes = b"") -> None:
        where = f"http://{self.endpoint}/graphs{path}"
        headers = {"Content-Type": "application/octet-stream"}
        request = urllib.request.Request(where, content, headers, method="PUT")
        with urllib.request.urlopen(request, timeout=30):
            pass


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    pytest.importorskip("moto", reason="SKIPPED: moto is not installed (requirements/dev.txt)")
    log = tmp_path_factory.mktemp("moto") / "log"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with log.open("wb") as out:
        server = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=os.environ | SECRETS,
        )
    try:
        until = time.monotonic() + 60
        while True:
            assert server.poll() is None and time.monotonic() < until, log.read_text()
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        yield Store(port)
    finally:
        server.kill()
        server.wait(10)


def lines(edges: list[tuple[int, int]]) -> bytes:
    return "".join(f"{source} {target}\n" for source, target in edges).encode()


def test_a_text_edge_list(store: Store, tmp_path: Path) -> None:
    url = store.put("edges.txt.gz", gzip.compress(lines(EDGES)))
    figures = succeed("import", url, tmp_path / "g.brimful", "--json", env=SECRETS).figures
    assert figures["edges"] == len(EDGES)
    assert edges_of(tmp_path / "g.brimful") == sorted(EDGES)


def test_a_large_text_within_a_budget(store: Store, tmp_path: Path) -> None:
    content = "".join(f"{n} {n * 7 % 1_000_003}\n" for n in range(1_000_000)).encode()
    url = store.put("large.txt", content)
    options = ["--budget", "200M", "--json"]
    outcome = succeed("import", url, tmp_path / "g.brimful", *options, env=SECRETS)
    assert outcome.figures["edges"] == 1_000_000
    succeed("verify", tmp_path / "g.brimful", "--quiet")


def test_parquet_and_csv(store: Store, tmp_path: Path) -> None:
    sources, targets = zip(*EDGES, strict=True)
    sink = io.BytesIO()
    pq.write_table(pa.table({"source": sources, "target": targets}), sink)
    csv = b"source,target\n" + lines(EDGES).replace(b" ", b",")
    for url in (
        store.put("edges.parquet", sink.getvalue()),
        store.put("edges.csv", csv),
        store.put("edges.csv.gz", gzip.compress(csv)),
    ):
        graph = tmp_path / f"{len(names_below(tmp_path))}.brimful"
        named = ["--format", "parquet" if ".parquet" in url else "csv"]
        succeed("import", url, graph, *named, "--quiet", env=SECRETS)
        assert edges_of(graph) == sorted(EDGES)


def test_several_urls_and_files_are_one_graph(store: Store, tmp_path: Path) -> None:
    store.put("parts/1.txt", lines(EDGES[:2]))
    store.put("parts/2.txt", lines(EDGES[2:4]))
    (tmp_path / "rest.txt").write_bytes(lines(EDGES[4:]))
    graph = tmp_path / "g.brimful"
    inputs = [store.url("parts/*.txt"), tmp_path / "rest.txt"]
    succeed("import", *inputs, graph, "--quiet", env=SECRETS)
    assert edges_of(graph) == sorted(EDGES)


def test_a_format_with_a_header(store: Store, tmp_path: Path) -> None:
    url = store.put("road.gr", b"p tw 4 2\n1 2\n2 3\n")
    figures = succeed("import", url, tmp_path / "g.brimful", "--json", env=SECRETS).figures
    assert (figures["vertices"], figures["directed"]) == (4, False)


def test_errors_name_the_url(store: Store, tmp_path: Path) -> None:
    graph = tmp_path / "g.brimful"
    broken = store.put("broken.txt", b"1 2\nx y\n")
    sentence = refuse(INPUT, "import", broken, graph, "--quiet", env=SECRETS)
    assert f"{broken}:2:1: expected an integer vertex id" in sentence
    gone = refuse(INPUT, "import", store.url("gone.txt"), graph, "--quiet", env=SECRETS)
    assert "gone.txt" in gone and "does not exist" in gone
    refuse(INPUT, "import", store.url("gone*.txt"), graph, "--quiet", env=SECRETS)
    refuse(USAGE, "import", "nosuch://bucket/a.txt", graph, "--quiet", env=SECRETS)
    assert "must be imported first" in refuse(
        USAGE, "run", "pagerank", broken, "--quiet", env=SECRETS
    )
    outcome = brimful(
        "import", broken, graph, "--on-error", "skip", "--json", "--quiet", env=SECRETS
    )
    assert outcome.figures["rejections"][0]["input"] == broken
    assert f"first at {broken}:2" in outcome.err


def test_a_graph_is_copied_once(store: Store, tmp_path: Path) -> None:
    graph = tmp_path / "web.brimful"
    succeed("generate", "rmat", graph, "--scale", "8", "--quiet")
    here = succeed("run", "pagerank", graph, "--top", "3", "--quiet").out
    for file in graph.iterdir():
        store.put(f"one/web.brimful/{file.name}", file.read_bytes())
    words = ["run", "pagerank", store.url("one/web.brimful"), "--top", "3"]
    settings = SECRETS | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    first = succeed(*words, env=settings)
    assert first.out.endswith(here)
    assert "copying s3://graphs/one/web.brimful" in first.err
    again = succeed(*words, env=settings)
    assert again.out.endswith(here)
    assert "copying" not in again.err
    gone = refuse(INPUT, "info", store.url("none.brimful"), env=settings)
    assert "there is no graph at s3://graphs/none.brimful" in gone


def test_a_store_that_is_not_there(tmp_path: Path) -> None:
    url = "s3://graphs/a.txt?scheme=http&endpoint_override=127.0.0.1:1"
    sentence = refuse(IO, "import", url, tmp_path / "g.brimful", "--quiet", env=SECRETS)
    assert url in sentence
    assert names_below(tmp_path) == set()


def test_a_store_that_breaks_off_is_no_end(tmp_path: Path) -> None:
    """A stream that fails half way ends the import, whatever was read before."""
    from brimful.errors import StoreIoError
    from brimful.io import feed, remote
    from brimful.io.ingest import import_paths
    from brimful.options.imports import import_options
    from brimful.resources import Resources

    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            block = super().read(size)
            if not block:
                raise OSError("connection reset")
            return block

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote, "check", lambda url: None)
        patch.setattr("brimful.io.inputs.check", lambda url: None)
        patch.setattr(feed, "open_stream", lambda url, stopped: Broken(lines(EDGES)))
        with pytest.raises(StoreIoError, match="connection reset"):
            import_paths(
                ["s3://graphs/a.txt"], str(tmp_path / "g.brimful"), import_options(), Resources()
            )
    assert names_below(tmp_path) == set()


def test_a_pipe_that_fails_is_not_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error was that the URL cannot be read."""
    from brimful.io import feed

    def fails(descriptor: int, data: memoryview) -> int:
        raise OSError(errno.EIO, "the pipe failed")

    monkeypatch.setattr(feed, "open_stream", lambda url, stopped: io.BytesIO(b"1 2"))
    monkeypatch.setattr(os, "write", fails)
    with (
        pytest.raises(OSError, match="the pipe failed") as failure,
        feed.Feed(["s3://a/b"], None) as pipes,
    ):
        while True:
            pipes.progress("read", 0, 0, 0.0)
    assert "cannot read" not in str(failure.value)


def test_a_pattern_may_have_options_with_slashes(monkeypatch: pytest.MonkeyPatch) -> None:
    options = "?endpoint_override=http://127.0.0.1:9000"
    found = {f"s3://graphs/day{options}": {"part-2.txt": 1, "part-1.txt": 1, "notes.md": 1}}
    monkeypatch.setattr(remote, "files_in", found.get)
    parts = [f"s3://graphs/day/part-{number}.txt{options}" for number in (1, 2)]
    assert remote.expand(f"s3://graphs/day/part-*.txt{options}") == parts
    assert remote.expand(parts[0]) == parts[:1]


def test_a_file_of_a_store_is_closed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"1 2\n")
    file = remote.open_file(f"file://{tmp_path}/a.txt")
    assert file.read() == b"1 2\n"
    inner = file._file
    file.close()
    until = time.monotonic() + 10
    while not inner.closed and time.monotonic() < until:
        time.sleep(0.01)
    assert inner.closed
