"""Stores that do not answer: a limit, Ctrl-C and SIGTERM end every wait, wherever it is."""

from __future__ import annotations

import contextlib
import http.server
import importlib.util
import io
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import brimful as bf
from command import BRIMFUL, INTERRUPTED, IO, USAGE, assert_one_sentence, brimful, refuse
from test_interrupt import PATIENCE_SECONDS

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


class Stalling(http.server.BaseHTTPRequestHandler):
    """A store that says how long an object is, sends so much of it, and then nothing more."""

    content = b""
    sent_bytes = 0
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()

    def do_GET(self) -> None:
        first, last = 0, len(self.content) - 1
        if wanted := self.headers.get("Range"):
            left, _, right = wanted.removeprefix("bytes=").partition("-")
            first, last = int(left), min(int(right or last), last)
        part = self.content[first : last + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(self.content)}")
        self.end_headers()
        self.wfile.write(part[: max(0, self.sent_bytes - first)])
        self.wfile.flush()
        if self.sent_bytes - first < len(part):
            time.sleep(60)


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that takes connections and says nothing."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(20)
        yield f"127.0.0.1:{server.getsockname()[1]}"


@contextlib.contextmanager
def stalling(kind: str) -> Iterator[str]:
    """The address of a store whose object of this kind ends half way, without an error."""
    content = contents(kind)
    # A table is opened from its end, which does not come.
    sent = len(content) // 2 if kind == "txt" else 0
    handler = type("Handler", (Stalling,), {"content": content, "sent_bytes": sent})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        # Those that stall are not waited for.
        server.block_on_close = False
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def contents(kind: str) -> bytes:
    if kind == "txt":
        return b"".join(b"%d %d\n" % (n, n + 1) for n in range(1_000_000))
    numbers = list(range(1_000_000))
    sink = io.BytesIO()
    table = pa.table({"source": numbers, "target": numbers[::-1]})
    pq.write_table(table, sink, row_group_size=50_000)
    return sink.getvalue()


@pytest.mark.parametrize("scheme", ["s3", "gs", "gs://anonymous@"])
def test_a_silent_store_is_given_up(silent: str, tmp_path: Path, scheme: str) -> None:
    start = scheme if "@" in scheme else scheme + "://"
    url = f"{start}bucket/x.txt?scheme=http&endpoint_override={silent}"
    env = CREDENTIALS | {"BRIMFUL_REMOTE_TIMEOUT": "2"}
    began = time.monotonic()
    sentence = refuse(IO, "import", url, tmp_path / "g.brimful", env=env)
    assert "no answer in 2 s" in sentence and url in sentence
    assert time.monotonic() - began < 2 + 2 * PATIENCE_SECONDS
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        ("silent", signal.SIGINT),
        ("silent", signal.SIGTERM),
        ("txt", signal.SIGINT),
        ("parquet", signal.SIGINT),
    ],
)
def test_a_wait_for_a_store_is_interrupted(
    silent: str, tmp_path: Path, kind: str, number: signal.Signals
) -> None:
    with contextlib.ExitStack() as servers:
        place = silent if kind == "silent" else servers.enter_context(stalling(kind))
        name = "x.txt" if kind == "silent" else f"x.{kind}"
        interrupt_import(place, name, tmp_path, number)


def interrupt_import(place: str, name: str, tmp_path: Path, number: signal.Signals) -> None:
    """Import from a store that sends nothing, and insist that a signal ends the import at once."""
    url = f"s3://bucket/{name}?scheme=http&endpoint_override={place}"
    process = subprocess.Popen(
        [*BRIMFUL, "import", url, str(tmp_path / "g.brimful"), "--quiet"],
        env=CREDENTIALS | {"PATH": "/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(3)
    assert process.poll() is None
    process.send_signal(number)
    sent_at = time.monotonic()
    _, err = process.communicate(timeout=60)
    assert time.monotonic() - sent_at < PATIENCE_SECONDS
    assert process.returncode == INTERRUPTED, err
    assert_one_sentence(err)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["txt", "parquet"])
def test_a_store_that_falls_silent_is_no_end(tmp_path: Path, kind: str) -> None:
    env = CREDENTIALS | {"BRIMFUL_REMOTE_TIMEOUT": "2"}
    with stalling(kind) as place:
        url = f"s3://bucket/x.{kind}?scheme=http&endpoint_override={place}"
        sentence = refuse(IO, "import", url, tmp_path / "g.brimful", "--quiet", env=env)
    assert "no answer in 2 s" in sentence
    assert list(tmp_path.iterdir()) == []


def test_python_ends_too(silent: str, tmp_path: Path) -> None:
    url = f"s3://bucket/x.txt?scheme=http&endpoint_override={silent}"
    code = (
        "import brimful as bf, time\n"
        "began = time.monotonic()\n"
        f"try: bf.read({url!r})\n"
        "except bf.StoreIoError as error: print(error.errno, time.monotonic() - began)\n"
    )
    # The process ends soon after: the library of S3 has no call of its own left to repeat.
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=CREDENTIALS | {"PATH": "/usr/bin:/bin", "BRIMFUL_REMOTE_TIMEOUT": "1"},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    errno, seconds = done.stdout.split()
    assert (int(errno), float(seconds) < 1 + PATIENCE_SECONDS) == (110, True)


@pytest.mark.parametrize("text", ["0", "-1", "soon", "inf", ""])
def test_a_limit_that_is_none(tmp_path: Path, text: str) -> None:
    env = CREDENTIALS | {"BRIMFUL_REMOTE_TIMEOUT": text}
    said = refuse(USAGE, "import", "s3://bucket/x.txt", tmp_path / "g.brimful", env=env)
    assert "BRIMFUL_REMOTE_TIMEOUT" in said
    # Without a URL there is no request.
    (tmp_path / "e.txt").write_text("1 2\n")
    assert brimful("import", tmp_path / "e.txt", tmp_path / "e.brimful", env=env).code == 0


def test_a_url_that_needs_a_package_says_how_to_install_it(tmp_path: Path) -> None:
    if importlib.util.find_spec("fsspec") is not None:
        pytest.skip("SKIPPED: fsspec is installed")
    with pytest.raises(bf.MissingPackageError, match="pip install fsspec"):
        bf.read("hf://datasets/someone/something/edges.parquet", path=tmp_path / "g.brimful")
    assert not (tmp_path / "g.brimful").exists()


def test_a_store_of_azure_without_credentials_is_refused_in_one_sentence(tmp_path: Path) -> None:
    url = "abfs://folder@account.dfs.core.windows.net/edges.csv"
    (tmp_path / "bin").mkdir()
    settings = {
        # No command `az`, and no answer to a request for a token.
        "PATH": str(tmp_path / "bin"),
        "no_proxy": "",
        "http_proxy": "http://127.0.0.1:9",
        "https_proxy": "http://127.0.0.1:9",
        "BRIMFUL_REMOTE_TIMEOUT": "20",
    }
    sentence = refuse(IO, "import", url, tmp_path / "g.brimful", "--quiet", env=settings)
    assert sentence.startswith(f"brimful: cannot read {url}: ")
