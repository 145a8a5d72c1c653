"""One store of records, in a process of its own: `python -m bench.record_stores NAME FOLDER COUNT`.

Loads COUNT records of 500 bytes, gets and updates as many at random, and prints JSON. `spilling`,
`dict` and `rocksdb-one` get one value after the other, `text_search` searches lines. `native`
runs `examples/measure.rs` of the collections instead: FOLDER BUDGET_BYTES MEASURE.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.command import ROOT
from bench.errors import CommandFailed

RECORD_BYTES = 500
_BATCH = 100_000

#: Load, get and update in one place: each takes ids.
Work = Callable[[list[int]], object]
Store = tuple[Work, Work, Work]


def _brimful(folder: Path, record: bytes) -> Store:
    import numpy  # noqa: F401  # not on the clock

    import brimful as bf

    bag = bf.Bag(folder / "bag", budget=os.environ.get("BENCH_BUDGET", "1G"))
    return (
        lambda ids: bag.extend([record] * len(ids)),
        bag.fetch_batch,
        lambda ids: bag.store_batch(ids, [record] * len(ids)),
    )


def _flat(folder: Path, record: bytes) -> Store:
    file = os.open(folder / "flat", os.O_RDWR | os.O_CREAT)

    def write(ids: list[int]) -> None:
        for id in ids:
            os.pwrite(file, record, id * RECORD_BYTES)

    return write, lambda ids: [os.pread(file, RECORD_BYTES, id * RECORD_BYTES) for id in ids], write


def _rocksdb(folder: Path, record: bytes) -> Store:
    try:
        rocksdict: Any = importlib.import_module("rocksdict")
    except ImportError:
        print(json.dumps({"not_measured": "rocksdict is missing; requirements/bench.txt has it"}))
        raise SystemExit(0) from None
    store = rocksdict.Rdict(str(folder / "rocks"), rocksdict.Options(raw_mode=True))

    def write(ids: list[int]) -> None:
        batch = rocksdict.WriteBatch(raw_mode=True)
        for id in ids:
            batch.put(id.to_bytes(8, "big"), record)
        store.write(batch)

    return write, lambda ids: store[[id.to_bytes(8, "big") for id in ids]], write


_STORES = {"brimful": _brimful, "flat": _flat, "rocksdb": _rocksdb}


def measure(name: str, folder: Path, count: int) -> dict[str, float]:
    """Return seconds of each phase."""
    load, get, update = _STORES[name](folder, b"r" * RECORD_BYTES)
    ids = [random.Random(1).randrange(count) for _ in range(count)]
    phases = {"load": (load, list(range(count))), "get": (get, ids), "update": (update, ids)}
    figures: dict[str, float] = {"count": count}
    for phase, (work, wanted) in phases.items():
        started = time.perf_counter()
        for at in range(0, count, _BATCH):
            work(wanted[at : at + _BATCH])
        figures[f"{phase}_seconds"] = time.perf_counter() - started
    return figures


def _one_by_one(name: str, folder: Path, count: int) -> Any:
    if name == "dict":
        return {}
    if name == "rocksdb-one":
        try:
            rocksdict: Any = importlib.import_module("rocksdict")
        except ImportError:
            missing = "rocksdict is missing; requirements/bench.txt has it"
            print(json.dumps({"not_measured": missing}))
            raise SystemExit(0) from None
        return rocksdict.Rdict(str(folder / "rocks"))
    import brimful as bf

    return bf.SpillingDict(count * 3 // 4, serializer="bytes", folder=folder)


def cache(name: str, folder: Path, count: int) -> dict[str, float]:
    """Return seconds of a cache on one access sequence: fill, get live keys, get all keys."""
    store = _one_by_one(name, folder, count)
    rng = random.Random(1)
    figures: dict[str, float] = {"count": count}

    def timed(phase: str, work: Callable[[], object]) -> None:
        started = time.perf_counter()
        work()
        figures[f"{phase}_seconds"] = time.perf_counter() - started

    def fill() -> None:
        for key in range(count):
            # A value of its own each, as an object would be.
            store[key] = key.to_bytes(8, "big") + bytes(RECORD_BYTES - 8)

    def get(keys: list[int]) -> None:
        for key in keys:
            store[key]

    # What came in last is live.
    live = [count // 2 + rng.randrange(count // 2) for _ in range(count)]
    every = [rng.randrange(count) for _ in range(count)]
    timed("load", fill)
    timed("live", lambda: get(live))
    timed("all", lambda: get(every))
    return figures


def text(name: str, folder: Path, count: int) -> dict[str, float]:
    """Return seconds of a program of `examples/` that searches `count` lines."""
    path = folder / "lines.txt"
    rng = random.Random(1)
    words = [f"word{number}" for number in range(1000)]
    block = ["".join(f"{word} " for word in rng.choices(words, k=12)) + "\n" for _ in range(10_000)]
    with path.open("w", encoding="utf-8") as file:
        for _ in range(count // len(block)):
            file.writelines(block)
    program = ROOT / "examples" / f"{name}.py"
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, program, path, "word7 word77"], check=False, capture_output=True, text=True
    )
    seconds = time.perf_counter() - started
    if done.returncode != 0:
        raise CommandFailed(done.stderr[-200:])
    return {"count": count, "search_seconds": seconds}


def native(folder: Path, budget: str, name: str) -> dict[str, float]:
    """Return the figures of the Rust program."""
    program = ROOT / "target" / "release" / "examples" / "measure"
    done = subprocess.run(
        [program, folder, budget, name], check=False, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise CommandFailed(done.stderr[-200:])
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main() -> None:
    """Measure the store that the arguments name, and remove it."""
    name, folder, *rest = sys.argv[1:]
    place = Path(folder)
    place.mkdir(parents=True)
    try:
        if name == "native":
            figures = native(place, *rest)
        elif name.startswith("text"):
            figures = text(name, place, int(rest[0]))
        else:
            work = measure if name in _STORES else cache
            figures = work(name, place, int(rest[0]))
    finally:
        shutil.rmtree(place)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
