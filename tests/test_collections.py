"""`Box`, `Bag` and the ready-made collections, against arrays, dicts and sets."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import brimful as bf
from test_startup import loaded_after

BUDGET = "64M"
POINT = np.dtype([("x", "f8"), ("n", "i4"), ("name", "S5")])


def test_numpy_loads_only_with_a_collection() -> None:
    assert loaded_after("import brimful; brimful.RecordIdError") == set()
    assert "pyarrow" not in loaded_after("import brimful; brimful.Box")


# ---- Box ----


def test_a_box_is_like_an_array(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    model = np.zeros(0, POINT)
    for _ in range(3):
        with bf.Box(tmp_path / "box", POINT, budget=BUDGET) as box:
            assert len(box) == len(model)
            more = np.zeros(20_000, POINT)
            more["x"], more["n"] = random.random(len(more)), np.arange(len(more))
            assert box.extend(more) == len(model)
            model = np.concatenate([model, more])
            ids = random.integers(-len(model), len(model), 5000)
            assert (box[ids] == model[ids]).all() and (box[ids.tolist()] == model[ids]).all()
            box[ids] = model[ids[::-1]]
            model[ids] = model[ids[::-1]]
            box[100:200], model[100:200] = model[:100], model[:100].copy()
            box[5:50:7] = model[3]
            model[5:50:7] = model[3]
            mask = model["n"] % 3 == 0
            box[mask], model[mask] = model[0], model[0]
            assert (box[:] == model).all() and (box[10:9000:13] == model[10:9000:13]).all()
            assert box[-1] == model[-1] and box[np.int32(7)] == model[7]
            assert model[77] in box and np.array((9.0, 9, b"?"), POINT) not in box
            assert (1, 2) not in box and "text" not in box
            assert all(a == b for a, b in zip(box, model, strict=True))
            box[3] = (2.5, 9, b"five5")
            model[3] = (2.5, 9, b"five5")


@pytest.mark.parametrize("order", [None, "descending", range(5, 70_000), [range(9), range(50, 60)]])
def test_process_changes_what_the_update_changes(tmp_path: Path, order: object) -> None:
    model = np.arange(100_000, dtype="i8")
    with bf.Box(tmp_path / "box", "i8", budget="4M") as box:
        box.extend(model)
        seen = []

        def update(batch: np.ndarray) -> None:
            assert batch.flags.writeable and len(batch) < len(model)
            seen.append(batch.copy())
            batch[batch % 2 == 0] *= -1

        box.process(update, order)
        ids = (
            model
            if order in (None, "descending")
            else np.concatenate(
                [
                    np.arange(part.start, part.stop)
                    for part in ([order] if isinstance(order, range) else order)
                ]
            )
        )
        assert np.array_equal(np.sort(np.concatenate(seen)), np.sort(ids))
        if order == "descending":
            assert seen[0][-1] == model[-1]
        even = ids[ids % 2 == 0]
        model[even] *= -1
        assert (box[:] == model).all()


def test_process_takes_ids_and_passes_errors_on(tmp_path: Path) -> None:
    with bf.Box(tmp_path / "box", "u4", budget=BUDGET) as box:
        box.extend(range(10))
        box.process(lambda batch: batch.__iadd__(100), [7, 2])
        assert box[:].tolist() == [0, 1, 102, 3, 4, 5, 6, 107, 8, 9]
        with pytest.raises(ZeroDivisionError):
            box.process(lambda batch: 1 / 0)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda box: box[3], bf.RecordIdError),
        (lambda box: box[-4], IndexError),
        (lambda box: box[[0, 9]], KeyError),
        (lambda box: box.fetch_range(1, 2**60), bf.RecordIdError),
        (lambda box: box.store_range(2, [1, 2]), bf.RecordIdError),
        (lambda box: box.__setitem__(0, "text"), bf.UsageError),
        (lambda box: box.__setitem__(slice(0, 2), [1, 2, 3]), bf.UsageError),
        (lambda box: box.extend([1.5]), bf.UsageError),
        (lambda box: box.extend([[1], [2]]), bf.UsageError),
        (lambda box: box["a"], bf.UsageError),
        (lambda box: box[[0.5]], bf.UsageError),
        (lambda box: box.process(print, "sideways"), bf.UsageError),
        (lambda box: box.resize(-1), bf.UsageError),
    ],
)
def test_a_box_refuses(tmp_path: Path, call: object, error: type[Exception]) -> None:
    with bf.Box(tmp_path / "box", "i8", budget=BUDGET) as box:
        box.extend([1, 2, 3])
        with pytest.raises(error) as refusal:
            call(box)  # type: ignore[operator]
        assert isinstance(refusal.value, bf.BrimfulError)
        assert box[:].tolist() == [1, 2, 3]


def test_a_record_wider_than_declared_and_dtypes_without_size(tmp_path: Path) -> None:
    with bf.Box(tmp_path / "box", "S3", budget=BUDGET) as box:
        box.append(b"abc")
        with pytest.raises(bf.UsageError, match="wider"):
            box.append(b"abcd")
        with pytest.raises(bf.UsageError, match="wider"):
            box.extend([b"a", b"abcd"])
        assert len(box) == 1
    for dtype in ("O", "S0", [("a", "O")]):
        with pytest.raises(bf.UsageError, match="no fixed size"):
            bf.Box(tmp_path / "other", dtype)


# ---- all collections ----


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


# ---- Bag ----


@settings(suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_bag_agrees_with_a_dict(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("bag") / "bag"
    model: dict[int, str] = {}
    length = 0
    bag = bf.Bag(path, serializer="str", budget="2M")
    text = st.one_of(st.text(max_size=40), st.integers(0, 30_000).map("é".__mul__))
    for _ in range(data.draw(st.integers(1, 15))):
        match data.draw(
            st.sampled_from(["extend", "store", "append_to", "remove", "reopen", "process"])
        ):
            case "extend":
                values = data.draw(st.lists(text, max_size=30))
                assert bag.extend(values) == length
                model.update(enumerate(values, length))
                length += len(values)
            case "store" if length:
                ids = data.draw(st.lists(st.integers(0, length - 1), max_size=20))
                values = [data.draw(text) for _ in ids]
                bag.store_batch(ids, values)
                model.update(zip(ids, values, strict=True))
            case "append_to" if model:
                ids = data.draw(st.lists(st.sampled_from(sorted(model)), max_size=20))
                bag.append_to_batch(ids, ["+"] * len(ids))
                for id in ids:
                    model[id] += "+"
            case "remove" if model:
                id = data.draw(st.sampled_from(sorted(model)))
                del bag[id], model[id]
            case "process":
                bag.process(lambda id, value: value[:5] if id % 2 else None)
                model = {id: value[:5] if id % 2 else value for id, value in model.items()}
            case "reopen":
                bag.close()
                bag = bf.Bag(path, serializer="str", budget="2M")
    assert (len(bag), bag.count, dict(bag.items())) == (length, len(model), model)
    ids = sorted(model)
    assert bag[ids] == [model[id] for id in ids]
    assert bag[:] == [model.get(id) for id in range(length)]
    assert all((id in bag) == (id in model) for id in range(-1, length + 1))
    bag.close()


def test_serializers(tmp_path: Path) -> None:
    class Reversed:
        """A serializer of one's own."""

        __name__ = "reversed"

        @staticmethod
        def dumps(value: str) -> bytes:
            return value[::-1].encode()

        @staticmethod
        def loads(data: bytes) -> str:
            return data.decode()[::-1]

    values = {"json": [1, {"a": None}], "pickle": [{1, 2}, 3j], Reversed(): ["abc", ""]}
    for number, (serializer, objects) in enumerate(values.items()):
        for _ in range(2):
            with bf.Bag(tmp_path / str(number), serializer=serializer, budget=BUDGET) as bag:
                bag.extend(objects)
                assert bag[0] == objects[0] and bag[-1] == objects[1]
                with pytest.raises(bf.UsageError):
                    bag.append_to(0, objects[0])
    with pytest.raises(bf.UsageError, match="no serializer"):
        bf.Bag(tmp_path / "no", serializer="yaml")
    with pytest.raises(bf.UsageError, match="dumps"):
        bf.Bag(tmp_path / "no", serializer=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda bag: bag[2], bf.RecordIdError),
        (lambda bag: bag[[0, 5]], IndexError),
        (lambda bag: bag[1], bf.RecordIdError),
        (lambda bag: bag.remove(1), KeyError),
        (lambda bag: bag.append("text"), bf.UsageError),
        (lambda bag: bag.extend([b"x", 5]), bf.UsageError),
        (lambda bag: bag.store_batch([0], []), bf.UsageError),
        (lambda bag: bag.append_to(9, b""), bf.RecordIdError),
    ],
)
def test_a_bag_refuses(tmp_path: Path, call: object, error: type[Exception]) -> None:
    with bf.Bag(tmp_path / "bag", budget=BUDGET) as bag:
        bag.extend([b"a", b"b"])
        del bag[1]
        with pytest.raises(error):
            call(bag)  # type: ignore[operator]
        assert list(bag) == [b"a"]


# ---- ready-made ----


def test_a_value_that_a_serializer_cannot_write_is_refused(tmp_path: Path) -> None:
    with bf.Bag(tmp_path / "b", serializer="json", budget=BUDGET) as bag:
        bag.append(1)
        for call in (
            lambda: bag.append({2}),
            lambda: bag.extend([{2}]),
            lambda: bag.store(0, {2}),
            lambda: bag.store_batch([0], [{2}]),
        ):
            with pytest.raises(bf.UsageError, match="the serializer json cannot write set: "):
                call()
        assert list(bag) == [1]


def test_counter_set_and_filter(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    keys = random.integers(0, 2**64 - 1, 50_000, np.uint64)
    some = np.concatenate([keys, keys[:20_000]])
    with bf.FrequencyCounter(tmp_path / "counter", budget=BUDGET) as counter:
        counter.add_many(some)
        counter.add(2**64 - 1)
        assert counter.count_many(keys[:3]).tolist() == [2, 2, 2]
        assert counter[int(keys[-1])] == 1 and counter[2**64 - 1] == 1 and counter[12345] == 0
        assert len(counter) == 50_001
    with bf.MembershipSet(tmp_path / "set", budget=BUDGET) as members:
        members.add_many(some)
        assert members.contains_many(keys).all() and not members.contains_many(keys + 1).any()
        assert members.discard(int(keys[0])) and not members.discard(int(keys[0]))
        assert int(keys[0]) not in members and len(members) == 49_999
    with bf.BloomFilter(tmp_path / "bloom", 50_000, 0.01, budget=BUDGET) as maybe:
        maybe.add_many(keys)
        assert maybe.contains_many(keys).all() and maybe.contains_many(keys + 1).mean() < 0.013
        assert len(maybe) == 50_000 and maybe.bytes < 50_000 * 2
    with pytest.raises(bf.UsageError):
        bf.BloomFilter(tmp_path / "y", 0)


def test_map_and_lists(tmp_path: Path) -> None:
    with bf.Map(tmp_path / "map", budget=BUDGET) as words:
        for number in range(3000):
            words[f"key {number}"] = str(number)
            words.chain(f"key {number % 100}", b"more")
        del words["key 50"]
        assert "key 50" not in words and words.get("key 50") is None
        with pytest.raises(bf.NotFoundError):
            words["key 50"]
        with pytest.raises(bf.UsageError):
            words[5] = b""  # type: ignore[index]
        assert words.get_all("key 7") == [b"7"] + [b"more"] * 30 and len(words) == 2999
    with bf.Lists(tmp_path / "lists", 10, budget=BUDGET) as lists:
        lists.append_many(np.arange(1000) % 10, np.arange(1000))
        assert (lists[3] == np.arange(3, 1000, 10)).all()
        counts, items = lists.get_many([9, 0])
        assert counts.tolist() == [100, 100] and items[100] == 0
        for targets, values in [([10], [1]), ([0, 1], [1]), ([0], [2**32]), ([0], [-1])]:
            with pytest.raises((bf.UsageError, bf.RecordIdError)):
                lists.append_many(targets, values)
        for beyond in ([0, 10, 9], [2**63], [-11]):
            with pytest.raises(bf.RecordIdError):
                lists.get_many(beyond)


def test_a_spilling_dict_is_a_dict(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    cache = bf.SpillingDict(limit=50, folder=tmp_path)
    model: dict[int, object] = {}
    for _ in range(5000):
        key = int(random.integers(300))
        if random.random() < 0.3:
            cache[key] = model[key] = {"value": random.random()}
        elif random.random() < 0.1:
            assert cache.pop(key, None) == model.pop(key, None)
        else:
            assert cache.get(key) == model.get(key)
        assert len(cache) == len(model) and cache.live <= 50
    assert dict(cache.items()) == model and set(cache) == set(model) and cache == model
    with pytest.raises(KeyError):
        cache[1000]
    assert list(tmp_path.iterdir())
    cache.close()
    assert not list(tmp_path.iterdir())


def test_threads_share_a_box(tmp_path: Path) -> None:
    with bf.Box(tmp_path / "box", "i8", budget="4M") as box:
        box.resize(40_000)

        def add(thread: int) -> None:
            ids = np.arange(thread, 40_000, 4)
            for _ in range(10):
                box[ids] = box[ids] + 1

        threads = [threading.Thread(target=add, args=(thread,)) for thread in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (box[:] == 10).all()


def test_many_keys_of_a_map_at_once(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    numbers = [str(n) for n in rng.integers(0, 5000, 20_000)]
    with bf.Map(tmp_path / "map", budget="64M") as words:
        words.update((number, f"{at}") for at, number in enumerate(numbers))
        model = {number: f"{at}".encode() for at, number in enumerate(numbers)}
        assert len(words) == len(model)
        asked = [str(n) for n in range(6000)]
        assert words.get_many(asked) == [model.get(number) for number in asked]
        words.chain_many([("a", "1"), ("b", "2"), ("a", "3")])
        assert (words.get_all("a"), words.get_all("b")) == ([b"1", b"3"], [b"2"])
        words.update({"a": "4"})
        assert words.get_all("a") == [b"4"]
        with pytest.raises(bf.UsageError, match="bytes or text"):
            words.get_many([1])  # type: ignore[list-item]


@pytest.mark.parametrize("name", ["FrequencyCounter", "MembershipSet"])
def test_text_is_no_key_of_a_counter_or_set(tmp_path: Path, name: str) -> None:
    with getattr(bf, name)(tmp_path / "x", budget="64M") as keys:
        for call in (lambda: keys.add_many(["one"]), lambda: keys.add("one")):
            with pytest.raises(bf.UsageError, match="use a Map for text and bytes"):
                call()


def test_questions_about_more_keys_than_memory_sorts(tmp_path: Path) -> None:
    keys = np.random.default_rng(4).integers(0, 3_000_000, 3_000_000).astype(np.uint64)
    # Half of the questions are one and the same key.
    keys[::2] = 7
    with bf.MembershipSet(tmp_path / "set", budget="24M") as members:
        members.add_many(np.arange(0, 3_000_000, 3))
        members.add_many(np.array([2**64 - 1, 2**40], np.uint64))
        assert np.array_equal(members.contains_many(keys), keys % 3 == 0)
        asked = np.array([2**40, 2**40 + 1, 2**64 - 1], np.uint64)
        assert members.contains_many(asked).tolist() == [True, False, True]
    with bf.FrequencyCounter(tmp_path / "counter", budget="24M") as counter:
        counter.add_many(keys)
        assert np.array_equal(
            counter.count_many(keys), np.bincount(keys.astype(np.int64))[keys.astype(np.int64)]
        )


@pytest.mark.parametrize("dtype", ["uint64", "int64", "int16", "uint8"])
def test_sorting_more_than_memory(tmp_path: Path, dtype: str) -> None:
    bounds = np.iinfo(dtype)
    rng = np.random.default_rng(5)
    batches = [
        rng.integers(bounds.min, bounds.max, 1_500_000, dtype, endpoint=True) for _ in range(4)
    ]
    found = list(bf.sort(batches, budget="24M", folder=tmp_path))
    assert all(batch.dtype == dtype for batch in found)
    assert np.array_equal(np.concatenate(found), np.sort(np.concatenate(batches)))
    assert list(tmp_path.iterdir()) == []


def test_sorting_refuses(tmp_path: Path) -> None:
    assert list(bf.sort([], budget="64M")) == []
    with pytest.raises(bf.UsageError, match="not float64"):
        list(bf.sort([[0.5]], budget="64M"))
    with pytest.raises(bf.UsageError, match="dtype uint8 of the first"):
        list(bf.sort([np.zeros(3, np.uint8), np.zeros(3, np.int8)], budget="64M"))
    with pytest.raises(bf.BudgetError):
        list(bf.sort([[1]], budget="4K"))
    with pytest.raises(bf.StoreIoError):
        list(bf.sort([np.arange(10)], budget="64M", folder=tmp_path / "missing"))
    # A sort whose generator is not exhausted ends with the generator.
    begun = bf.sort([np.arange(3_000_000)], budget="24M")
    assert len(next(begun)) > 0
    begun.close()


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


def test_a_map_that_changes_size_ends_its_iteration(tmp_path: Path) -> None:
    with bf.Map(tmp_path / "map") as words:
        words.update({"one": "1", "two": "2"})
        for change in (lambda key: words.update({b"q" + key: b"y"}), words.pop):
            for view in (words, words.keys()):
                with pytest.raises(RuntimeError, match="changed size during iteration"):
                    for key in view:
                        change(key)
        for key in words:
            words[key] = b"same"
        words.update({"three": "3"})
        words.popitem()
        words.clear()
        assert not words
