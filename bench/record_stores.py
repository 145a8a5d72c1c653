"""One store of records, in a process of its own: `python -m bench.record_stores NAME FOLDER COUNT`.

Loads COUNT records of 500 bytes, gets and updates as many at random, and prints JSON. `native`
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
    """Measure what the arguments say and remove it."""
    name, folder, *rest = sys.argv[1:]
    place = Path(folder)
    place.mkdir(parents=True)
    try:
        figures = native(place, *rest) if name == "native" else measure(name, place, int(rest[0]))
    finally:
        shutil.rmtree(place)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
