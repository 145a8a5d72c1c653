"""Counters, sets, filters, maps and lists against those of Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import brimful as bf

BUDGET = "64M"


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


def test_a_map_that_changes_size_ends_its_iteration(tmp_path: Path) -> None:
    with bf.Map(tmp_path / "map") as words:
        words.update({"one": "1", "two": "2"})
        for change in (lambda key: words.update({b"q" + key: b"y"}), words.pop):
            for view in (words, words.keys()):
                with pytest.raises(RuntimeError, match="added or removed during iteration"):
                    for key in view:
                        change(key)
        for key in words:
            words[key] = b"same"
        words.update({"three": "3"})
        words.popitem()
        words.clear()
        assert not words
