"""Real servers for tests: mongo-java-server and OrientDB, on loopback and free ports.

Maven fetches them once into the folder `.servers` of the checkout. Where Java or Maven is absent,
or the download fails, the tests that need them are skipped and say why.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "servers"
JARS = Path(__file__).parent.parent / ".servers"
PASSWORD = "se%cret/pass"
_START_SECONDS = 60
#: A server of a few minutes compiles little, and shares two cores with the tests.
_SHORT_LIFE = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


@functools.cache
def _java() -> str:
    """Return the program java, with the jars fetched; skip the test if that is impossible."""
    for program in ("java", "javac", "mvn"):
        if shutil.which(program) is None:
            pytest.skip(f"the servers of the databases need {program}, which is not installed")
    if not (JARS / ".fetched").exists():
        JARS.mkdir(exist_ok=True)
        fetched = subprocess.run(
            [
                *("mvn", "-q", "-B", "-f", str(HERE / "pom.xml")),
                *("dependency:copy-dependencies", f"-DoutputDirectory={JARS}"),
            ],
            capture_output=True,
            text=True,
            timeout=600,
        )
        if fetched.returncode != 0:
            pytest.skip(f"Maven cannot fetch the servers: {fetched.stdout.strip()[:300]}")
        (JARS / ".fetched").touch()
    return "java"


def free_port() -> int:
    """Return a port of 127.0.0.1 that is free now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


class Server:
    """A server process that tests may kill and start again."""

    def __init__(self, command: list[str], port: int, folder: Path, env: dict[str, str]) -> None:
        """Start the server."""
        self.port, self._command, self._env = port, command, {**os.environ, **env}
        self._log = folder / "server.log"
        self.start()

    def start(self) -> None:
        """Start the process and wait until it accepts connections."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self._env
            )
        end = time.monotonic() + _START_SECONDS
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            if self._process.poll() is not None or time.monotonic() > end:
                self.kill()
                raise RuntimeError(f"the server did not start: {self._log.read_text()[-2000:]}")
            time.sleep(0.1)

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def mongo(folder: Path) -> Iterator[Server]:
    """A MongoDB server with an empty memory."""
    java, port = _java(), free_port()
    command = [java, *_SHORT_LIFE, "-cp", f"{JARS}/*", str(HERE / "Mongo.java"), str(port)]
    server = Server(command, port, folder, {})
    try:
        yield server
    finally:
        server.kill()


@contextlib.contextmanager
def orient(folder: Path) -> Iterator[Server]:
    """An OrientDB server with the database `graphs` and the user root."""
    java, port = _java(), free_port()
    config = (HERE / "orientdb.xml").read_text()
    config = config.replace("PORT", str(port)).replace("FOLDER", str(folder / "databases"))
    (folder / "config.xml").write_text(config.replace("PASSWORD", PASSWORD))
    (folder / "databases").mkdir()
    command = [
        java,
        *_SHORT_LIFE,
        "-Dstorage.diskCache.bufferSize=128",
        f"-DORIENTDB_HOME={folder}",
        f"-Dorientdb.config.file={folder / 'config.xml'}",
        "-cp",
        f"{JARS}/*",
        "com.orientechnologies.orient.server.OServerMain",
    ]
    server = Server(command, port, folder, {"ORIENTDB_HOME": str(folder)})
    try:
        _create(port)
        yield server
    finally:
        server.kill()


def _create(port: int) -> None:
    secret = base64.b64encode(f"root:{PASSWORD}".encode()).decode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/database/graphs/plocal",
        method="POST",
        headers={"Authorization": f"Basic {secret}"},
    )
    end = time.monotonic() + _START_SECONDS
    while True:
        try:
            urllib.request.urlopen(request, timeout=30).close()
            return
        except (urllib.error.URLError, ConnectionError):
            # The port is open before the server is ready.
            if time.monotonic() > end:
                raise
            time.sleep(0.3)
