"""All collections alike: misuse, other kinds, other processes, damage, places."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import brimful as bf
from test_box import POINT
from test_startup import loaded_after

BUDGET = "64M"


def test_numpy_loads_only_with_a_collection() -> None:
    assert loaded_after("import brimful; brimful.RecordIdError") == set()
    assert "pyarrow" not in loaded_after("import brimful; brimful.Box")


#: The words for each collection, in the order of `kinds`, where another one is opened.
BAG = "a bag, a map or lists"
HELD = ["a box", BAG, "a frequency counter", "a membership set", "a Bloom filter", BAG, BAG]


def kinds(folder: Path) -> list[object]:
    """Return ways to open each collection."""
    return [
        lambda name="box": bf.Box(folder / name, "i8", budget=BUDGET),
        lambda name="bag": bf.Bag(folder / name, budget=BUDGET),
        lambda name="counter": bf.FrequencyCounter(folder / name, budget=BUDGET),
        lambda name="set": bf.MembershipSet(folder / name, budget=BUDGET),
        lambda name="bloom": bf.BloomFilter(folder / name, 1000, budget=BUDGET),
        lambda name="map": bf.Map(folder / name, budget=BUDGET),
        lambda name="lists": bf.Lists(folder / name, 10, budget=BUDGET),
    ]


@pytest.mark.parametrize("kind", range(7))
def test_every_collection_refuses_misuse(tmp_path: Path, kind: int) -> None:
    make = kinds(tmp_path)[kind]
    collection = make()  # type: ignore[operator]
    with pytest.raises(bf.StoreIoError, match="this process has it open already"):
        make()  # type: ignore[operator]
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(bf.UsageError, match="cannot be copied or pickled"):
            duplicate(collection)
    collection.close()
    collection.close()
    assert collection.closed
    for use in (len, lambda it: it.sync()):
        with pytest.raises(bf.UsageError, match="closed"):
            use(collection)
    make().close()  # type: ignore[operator]
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(bf.StoreIoError, match="it is a file"):
        make("file")  # type: ignore[operator]
    with pytest.raises(bf.StoreIoError):
        make("no/such/folder")  # type: ignore[operator]
    pages = next(path for path in tmp_path.rglob("pages"))
    whole = pages.read_bytes()
    pages.write_bytes(whole[:1000])
    with pytest.raises(bf.CorruptError, match="cut"):
        make()  # type: ignore[operator]
    pages.write_bytes(bytes([whole[0] ^ 1]) + whole[1:4096] + bytes(len(whole) - 4096))
    with pytest.raises(bf.CorruptError, match="not a brimful collection"):
        make()  # type: ignore[operator]


@pytest.mark.parametrize("kind", range(7))
def test_a_collection_that_is_opened_as_another_is_named(tmp_path: Path, kind: int) -> None:
    made = kinds(tmp_path)[kind](name="one")  # type: ignore[operator]
    made.close()
    for other, make in enumerate(kinds(tmp_path)):
        if other == kind:
            continue
        with pytest.raises(bf.InputError) as caught:
            make(name="one")  # type: ignore[operator]
        # A bag, a map and lists have pages of one kind, whose records differ.
        same_pages = {kind, other} <= {1, 5, 6}
        holds = "records" if same_pages else HELD[kind]
        assert f"holds {holds}" in str(caught.value)
        assert "; open it as its own kind, or use another path" in str(caught.value)
    kinds(tmp_path)[kind](name="one").close()  # type: ignore[operator]


def test_reopening_as_something_else(tmp_path: Path) -> None:
    bf.Box(tmp_path / "c", "i8", budget=BUDGET).close()
    for wrong in ("u8", "f4", POINT):
        with pytest.raises(bf.InputError, match="cannot be opened as"):
            bf.Box(tmp_path / "c", wrong, budget=BUDGET)
    bf.Bag(tmp_path / "b", serializer="json", budget=BUDGET).close()
    with pytest.raises(bf.InputError, match="json"):
        bf.Bag(tmp_path / "b", serializer="pickle", budget=BUDGET)
    with pytest.raises(bf.BudgetError):
        bf.Box(tmp_path / "c", "i8", budget="10K")


class Hostile:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return pytest.fail, ("a bag ran code that nobody asked for",)


def test_pickles_are_loaded_only_where_pickle_is_named(tmp_path: Path) -> None:
    with bf.Bag(tmp_path / "b", serializer="pickle", budget=BUDGET) as bag:
        bag.extend([Hostile()])
    for other in ("bytes", "str", "json"):
        with pytest.raises(bf.InputError, match="pickle"):
            bf.Bag(tmp_path / "b", serializer=other, budget=BUDGET)
    with (
        bf.Bag(tmp_path / "b", serializer="pickle", budget=BUDGET) as bag,
        pytest.raises(pytest.fail.Exception),
    ):
        bag[0]


def test_two_processes_cannot_change_one_collection(tmp_path: Path) -> None:
    code = (
        "import sys, brimful as bf\n"
        f"box = bf.Box({os.fspath(tmp_path / 'box')!r}, 'i8', budget='64M')\n"
        "print('open', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None and other.stdout.readline() == "open\n"
    with pytest.raises(bf.StoreIoError, match="another process"):
        bf.Box(tmp_path / "box", "i8", budget=BUDGET)
    other.communicate("")
    bf.Box(tmp_path / "box", "i8", budget=BUDGET).close()


def test_a_killed_process_leaves_what_it_synced(tmp_path: Path) -> None:
    code = (
        "import os, signal, brimful as bf\n"
        f"bag = bf.Bag({os.fspath(tmp_path / 'bag')!r}, budget='2M')\n"
        "bag.extend([b'old' * 100] * 20000); bag.sync()\n"
        "bag.store_batch(range(20000), [b'new' * 200] * 20000)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    with bf.Bag(tmp_path / "bag", budget=BUDGET) as bag:
        assert len(bag) == 20_000 and set(bag) == {b"old" * 100}


def test_an_exception_in_the_block_drops_what_was_not_synced(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), bf.Box(tmp_path / "box", "i8", budget=BUDGET) as box:
        box.extend([1])
        box.sync()
        box.extend([2])
        1 / 0  # noqa: B018
    with bf.Box(tmp_path / "box", "i8", budget=BUDGET) as box:
        assert box[:].tolist() == [1]


def test_a_corrupt_collection_is_not_told_to_import_a_graph(tmp_path: Path) -> None:
    with bf.MembershipSet(tmp_path / "set", budget="64M") as members:
        members.add_many(np.arange(100_000))
    pages = tmp_path / "set" / "pages"
    raw = bytearray(pages.read_bytes())
    raw[16384 * 3 :: 16384] = bytes(byte ^ 1 for byte in raw[16384 * 3 :: 16384])
    pages.write_bytes(raw)
    with (
        pytest.raises(bf.CorruptError, match="restore the collection from a copy or fill it again"),
        bf.MembershipSet(tmp_path / "set", budget="64M") as members,
    ):
        members.contains_many(np.arange(100_000))


@pytest.mark.parametrize("kind", ["box", "bag", "counter", "set", "filter", "map", "lists"])
def test_verify_finds_a_damaged_page(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind

    def collection() -> Any:
        return {
            "box": lambda: bf.Box(path, np.int64, budget="64M"),
            "bag": lambda: bf.Bag(path, budget="64M"),
            "counter": lambda: bf.FrequencyCounter(path, budget="64M"),
            "set": lambda: bf.MembershipSet(path, budget="64M"),
            "filter": lambda: bf.BloomFilter(path, keys=1000, budget="64M"),
            "map": lambda: bf.Map(path, budget="64M"),
            "lists": lambda: bf.Lists(path, 100, budget="64M"),
        }[kind]()

    with collection() as filled:
        if kind == "bag":
            filled.extend([b"record"] * 100)
        elif kind == "map":
            filled[b"key"] = b"value"
        elif kind == "lists":
            filled.append_many([1, 2, 3], [4, 5, 6])
        elif kind == "box":
            filled.extend(np.arange(100))
        else:
            filled.add_many(np.arange(100))
    with collection() as sound:
        assert sound.verify() >= 2 * 16384 - 8192
    file = path / "pages"
    damaged = bytearray(file.read_bytes())
    # The first page stands behind the roots.
    damaged[16384 + 3] ^= 1
    file.write_bytes(damaged)
    with pytest.raises(bf.CorruptError, match="pages is corrupt at byte"):
        collection().verify()


def test_collections_and_stores_stay_out_of_graphs(tmp_path: Path) -> None:
    path = tmp_path / "g.brimful"
    edges = pa.table({"source": [0, 1], "target": [1, 0]})
    with bf.Graph.from_arrow(edges, path=path) as graph:
        names = sorted(os.listdir(path))
        for place, sentence in ((path, "is a graph directory"), (path / "x", "inside the graph")):
            for make in (bf.Map, bf.Bag, lambda at: bf.Box(at, "u4"), lambda at: bf.Lists(at, 2)):
                with pytest.raises(bf.UsageError, match=sentence):
                    make(place)
            with pytest.raises(bf.UsageError, match=sentence):
                bf.VertexStore.create(f"file:{place}", graph)
        assert sorted(os.listdir(path)) == names
        with bf.VertexStore.create(f"file:{tmp_path / 'v'}", graph):
            pass
        with pytest.raises(bf.UsageError, match="there is a store at"):
            bf.VertexStore.create(f"file:{tmp_path / 'v'}", graph)
