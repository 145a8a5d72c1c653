"""Plug-in stores, and the conformance suite."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import brimful as bf
from brimful import stores
from brimful.conformance import NonconformingError, check_store
from brimful.stores import Opening, Store
from command import BUDGET, USAGE


@pytest.mark.parametrize("url", ["memory", "bytes", "file:PATH", "kv:PATH"])
def test_own_stores_conform(url: str, tmp_path: Path) -> None:
    assert "vertices" in list(check_store(url.replace("PATH", str(tmp_path / "x"))))


class ListStore(Store):
    """A store in a list; `spoiled` breaks one method."""

    form = "list:"
    spoiled = ""

    def __init__(self, opening: Opening) -> None:
        self.records: dict[bytes, bytes] = {}

    def load(self, batch: Any) -> int:
        before = len(self.records)
        for key, record in batch:
            if self.spoiled == "load":
                self.records[key] = record
            self.records.setdefault(key, record)
        return before + len(batch) - len(self.records)

    def get_many(self, keys: Any) -> Any:
        if self.spoiled == "raise":
            raise RuntimeError("the disk is on fire")
        found = [self.records.get(key) for key in keys]
        return found[:-1] if self.spoiled == "get_many" else found

    def put_many(self, keys: Any, records: Any) -> None:
        self.records.update(zip(keys, records, strict=True))

    def remove_many(self, keys: Any) -> None:
        if self.spoiled != "remove":
            for key in keys:
                self.records.pop(key, None)

    def scan(self) -> Any:
        return list(self.records.items())[self.spoiled == "scan" :]

    def count(self) -> int:
        return len(self.records)

    def clear(self) -> None:
        self.records.clear()


@pytest.mark.parametrize("spoiled", ["", "load", "get_many", "remove", "scan", "raise"])
def test_the_suite_finds_what_a_plugin_does_wrong(
    spoiled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ListStore, "spoiled", spoiled)
    stores.register("list", ListStore)
    if not spoiled:
        assert len(list(check_store("list:"))) == 10
        return
    with pytest.raises(RuntimeError if spoiled == "raise" else NonconformingError):
        list(check_store("list:"))


@pytest.mark.parametrize(
    ("spoiled", "text"),
    [("get_many", "get_many of the store list returned"), ("raise", "the disk is on fire")],
)
def test_an_error_of_a_plugin_keeps_its_text(
    spoiled: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ListStore, "spoiled", spoiled)
    stores.register("list", ListStore)
    pair = pa.table({"source": [0], "target": [1]})
    with (
        bf.Graph.from_arrow(pair) as graph,
        pytest.raises(bf.BrimfulError, match=text) as caught,
    ):
        bf.bfs(graph, source=0, store="list:")
    if spoiled == "raise":
        assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_class_that_is_no_store_is_refused() -> None:
    with pytest.raises(bf.UsageError, match="derived from"):
        stores.register("x", dict)  # type: ignore[arg-type]
    with pytest.raises(bf.UsageError, match='has a store "bytes"'):
        stores.register("bytes", ListStore)


def test_the_suite_runs_as_a_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "brimful.conformance"]
    done = subprocess.run([*command, "bytes"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "passed: vertices" in done.stdout
    done = subprocess.run([*command, "nothing:x"], capture_output=True, text=True)
    assert done.returncode == USAGE
    assert 'there is no store "nothing:x"' in done.stderr
    done = subprocess.run([*command, "--budget", "little", "bytes"], capture_output=True, text=True)
    assert done.returncode == USAGE and "little" in done.stderr


def test_the_suite_takes_a_budget_that_a_cache_needs(tmp_path: Path) -> None:
    pytest.importorskip("berkeleydb")
    url = f"berkeleydb:{tmp_path}/v?deferred=1&cache=64M"
    command = [sys.executable, "-m", "brimful.conformance", url]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == BUDGET
    assert "a cache of 67,108,864 bytes exceeds" in done.stderr
    assert "raise the budget, or make the cache smaller" in done.stderr
    done = subprocess.run([*command, "--budget", "256M"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "passed: ids" in done.stdout
