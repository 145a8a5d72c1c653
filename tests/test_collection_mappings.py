"""`SpillingDict` and `Map` against a dict: every method that a dict has."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import random
import signal
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import brimful as bf

KEYS = st.integers(0, 30)
VALUES = st.text(max_size=3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), KEYS, VALUES),
        st.tuples(st.sampled_from(["get", "del", "pop", "in"]), KEYS),
        st.tuples(st.just("setdefault"), KEYS, VALUES),
        st.tuples(st.sampled_from(["update", "|=", "|", "r|"]), st.dictionaries(KEYS, VALUES)),
        st.tuples(st.sampled_from(["popitem", "clear", "copy", "copy.copy", "==", "iterate"])),
    ),
    max_size=40,
)


def outcome(call: Any) -> Any:
    """Return the result of a call, or the kind of error that it raised."""
    try:
        return call()
    except KeyError:
        return KeyError


@settings(suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_a_spilling_dict_does_what_a_dict_does(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, ...]]
) -> None:
    folder = tmp_path_factory.mktemp("caches")
    cache: Any = bf.SpillingDict(limit=4, serializer="str", folder=folder, budget="2M")
    model: dict[int, str] = {}
    for name, *rest in steps:
        match name, rest:
            case "set", (key, value):
                cache[key] = model[key] = value
            case "get", (key,):
                assert outcome(lambda: cache[key]) == outcome(lambda: model[key])  # noqa: B023
                assert cache.get(key, "?") == model.get(key, "?")
            case "del", (key,):
                assert outcome(lambda: cache.__delitem__(key)) == outcome(  # noqa: B023
                    lambda: model.__delitem__(key)  # noqa: B023
                )
            case "pop", (key,):
                assert cache.pop(key, None) == model.pop(key, None)
            case "in", (key,):
                assert (key in cache) == (key in model)
            case "setdefault", (key, value):
                assert cache.setdefault(key, value) == model.setdefault(key, value)
            case "update", (other,):
                cache.update(other)
                model.update(other)
            case "|=", (other,):
                cache |= other
                model |= other
            case "|", (other,):
                assert dict((cache | other).items()) == model | other
            case "r|", (other,):
                assert dict((other | cache).items()) == other | model
            case "popitem", _:
                popped = outcome(cache.popitem)
                if popped is KeyError:
                    assert not model
                else:
                    assert model.pop(popped[0]) == popped[1]
            case "clear", _:
                cache.clear()
                model.clear()
            case "copy" | "copy.copy", _:
                other = cache.copy() if name == "copy" else copy.copy(cache)
                other["one more"] = "x"
                del other
                gc.collect()
            case "==", _:
                assert cache == model and not (cache != model)  # noqa: SIM202
                assert model == cache and not (model != cache)  # noqa: SIM202
                assert cache != {**model, -1: "x"}
            case "iterate", _:
                assert sorted(cache) == sorted(cache.keys()) == sorted(model)
                assert list(reversed(cache)) == list(cache)[::-1]
                assert sorted(cache.values()) == sorted(model.values())
        assert len(cache) == len(model) and cache.live <= 4
    assert dict(cache) == dict(cache.items()) == {**cache} == model
    cache.close()


def test_a_copy_of_a_spilling_dict_has_its_own_folder(tmp_path: Path) -> None:
    cache = bf.SpillingDict(limit=4, folder=tmp_path)
    cache |= {number: str(number) for number in range(20)}
    assert len(cache) == 20 and len(list(tmp_path.iterdir())) == 1
    for make in (copy.copy, bf.SpillingDict.copy):
        other = make(cache)
        assert len(list(tmp_path.iterdir())) == 2 and other == cache
        other[3] = "changed"
        assert cache[3] == "3"
        del other
        gc.collect()
        assert len(list(tmp_path.iterdir())) == 1
    assert dict(cache.items()) == {number: str(number) for number in range(20)}
    for refused in (copy.deepcopy, pickle.dumps, bf.SpillingDict.fromkeys):
        with pytest.raises(bf.UsageError, match="SpillingDict"):
            refused(cache)
    assert "20 keys, 4 of them live" in repr(cache)


def test_a_value_that_cannot_be_written_leaves_the_cache_whole(tmp_path: Path) -> None:
    cache: Any = bf.SpillingDict(limit=3, serializer="str", folder=tmp_path)
    cache.update({0: "a", 1: "b", 2: "c"})
    cache[3] = "d"
    assert cache[0] == "a"
    cache[1] = 5
    for key in range(4, 9):
        with pytest.raises(bf.UsageError, match="text"):
            for _ in range(4):
                cache[key] = "e"
                key += 10
    values = dict(cache.items())
    assert len(values) == len(cache) and values[1] == 5 and values[0] == "a"


def test_a_forked_child_leaves_the_cache_of_its_parent(tmp_path: Path) -> None:
    cache: Any = bf.SpillingDict(limit=2, folder=tmp_path)
    cache.update({number: number for number in range(9)})
    child = os.fork()
    if child == 0:
        cache.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert dict(cache.items()) == {number: number for number in range(9)}


@settings(suppress_health_check=list(HealthCheck))
@given(st.integers(1, 4), st.lists(KEYS, min_size=31, max_size=31), st.integers(0, 9))
def test_reads_during_an_iteration_move_no_key_of_it(
    tmp_path_factory: pytest.TempPathFactory, limit: int, read: list[int], count: int
) -> None:
    folder = tmp_path_factory.mktemp("caches")
    cache: Any = bf.SpillingDict(limit=limit, serializer="json", folder=folder, budget="2M")
    cache.update({key: 0 for key in range(count)})
    for key in cache:
        cache[key] += 1
        cache.get(read[key])
    assert dict(cache.items()) == dict.fromkeys(range(count), 1)
    for key, value in cache.items():
        cache[key] += value
        cache.get(read[key])
    assert dict(cache.items()) == dict.fromkeys(range(count), 2)
    assert [(value, cache.get(read[0]))[0] for value in cache.values()] == [2] * count
    cache.close()


@pytest.mark.parametrize("view", [iter, bf.SpillingDict.items, bf.SpillingDict.values])
def test_an_added_or_removed_key_ends_an_iteration(tmp_path: Path, view: Any) -> None:
    changes: list[Any] = [
        lambda cache, step: cache.__setitem__(f"new {step}", 0),
        lambda cache, step: cache.popitem(),
        lambda cache, step: (cache.pop(5), cache.__setitem__("new", 0)),
        lambda cache, step: cache.clear(),
    ]
    for change in changes:
        cache: Any = bf.SpillingDict(limit=2, folder=tmp_path)
        cache.update({key: key for key in range(6)})
        with pytest.raises(RuntimeError, match="during iteration"):
            for step, _ in enumerate(view(cache)):
                assert step < 6
                change(cache, step)
        cache.close()


def test_threads_share_a_spilling_dict(tmp_path: Path) -> None:
    cache: Any = bf.SpillingDict(limit=8, serializer="json", folder=tmp_path)
    own, rounds = 40, 30
    cache.update({("shared", number): number for number in range(own)})

    def work(thread: int) -> list[int]:
        for step in range(rounds):
            for number in range(own):
                cache[thread, number] = step
                assert cache["shared", (7 * number + thread) % own] == (7 * number + thread) % own
                assert (thread, number) in cache and cache.get((thread, number)) == step
            assert cache.pop((thread, step)) == step and (thread, step) not in cache
            assert cache.setdefault((thread, step), step) == step
        return [cache[thread, number] for number in range(own)]

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(work, range(4))) == [[rounds - 1] * own] * 4
    assert len(cache) == len(set(cache)) == 5 * own and cache.live <= 8
    with ThreadPoolExecutor(4) as threads:
        popped = list(threads.map(lambda _: cache.popitem(), range(len(cache))))
    assert len(dict(popped)) == len(popped) and len(cache) == 0
    cache.close()


def test_an_interrupt_leaves_each_key_in_one_part(tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    cache: Any = bf.SpillingDict(limit=16_384, serializer="json", folder=tmp_path, budget="2M")
    cache.update({key: key for key in range(20_000)})
    before = signal.signal(signal.SIGALRM, interrupt)
    choice = random.Random(1)
    try:
        for _ in range(150):
            with suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, choice.uniform(0.00005, 0.001))
                for _ in range(100_000):
                    cache[len(cache)] = len(cache)
                    cache[choice.randrange(20_000)]
            assert len(cache) == len(set(cache)) >= 20_000
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert all(key == value for key, value in cache.items())
    cache.close()


TEXTS = st.text("abc", max_size=2)


@settings(suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["set", "chain", "setdefault"]), TEXTS, TEXTS),
            st.tuples(st.sampled_from(["get", "del", "pop", "in"]), TEXTS),
            st.tuples(st.just("update"), st.dictionaries(TEXTS, TEXTS)),
            st.tuples(st.sampled_from(["popitem", "clear", "==", "reopen"])),
        ),
        max_size=40,
    )
)
def test_a_map_does_what_a_dict_does(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, ...]]
) -> None:
    path = tmp_path_factory.mktemp("maps") / "map"
    words: Any = bf.Map(path, budget="16M")
    model: dict[bytes, bytes] = {}
    for name, *rest in steps:
        key = rest[0].encode() if rest and isinstance(rest[0], str) else b""
        value = rest[1].encode() if len(rest) > 1 else b""
        match name:
            case "set":
                words[rest[0]] = rest[1]
                model[key] = value
            case "chain":
                words.chain(rest[0], rest[1])
                model.setdefault(key, value)
            case "setdefault":
                assert words.setdefault(key, value) == model.setdefault(key, value)
            case "get":
                assert outcome(lambda: words[key]) == outcome(lambda: model[key])  # noqa: B023
            case "del":
                assert outcome(lambda: words.__delitem__(key)) == outcome(  # noqa: B023
                    lambda: model.__delitem__(key)  # noqa: B023
                )
            case "pop":
                assert words.pop(key, None) == model.pop(key, None)
            case "in":
                assert (key in words) == (key in model) == (key in set(words))
            case "update":
                words.update(rest[0])
                model.update((key.encode(), value.encode()) for key, value in rest[0].items())
            case "popitem":
                popped = outcome(words.popitem)
                if popped is KeyError:
                    assert not model
                else:
                    assert model.pop(popped[0]) == popped[1]
            case "clear":
                words.clear()
                model.clear()
            case "==":
                assert words == model and words != {**model, b"z": b""}
            case "reopen":
                words.close()
                words = bf.Map(path, budget="16M")
        assert len(words) == len(model)
    assert dict(words) == dict(words.items()) == model
    assert sorted(words) == sorted(words.keys()) == sorted(model)
    assert sorted(words.values()) == sorted(model.values())
    words.close()


def test_a_map_of_many_keys_is_emptied_in_little_time(tmp_path: Path) -> None:
    with bf.Map(tmp_path / "map", budget="16M") as words:
        words.update({str(number): b"v" for number in range(30_000)}, one_more="w")
        assert len(words) == 30_001 and words["one_more"] == b"w"
        assert {words.popitem()[0] for _ in range(30_001)} == {
            b"one_more",
            *(str(number).encode() for number in range(30_000)),
        }
        with pytest.raises(KeyError):
            words.popitem()


def test_threads_empty_a_map(tmp_path: Path) -> None:
    with bf.Map(tmp_path / "map", budget="16M") as words:
        pairs = {str(number).encode(): b"v" for number in range(4000)}
        words.update(pairs)
        with ThreadPoolExecutor(4) as threads:
            removed = threads.map(lambda key: words.pop(key, None), list(pairs)[::8])
            popped = list(threads.map(lambda _: words.popitem(), range(3500)))
            others = [value for value in removed if value is not None]
            popped += [words.popitem() for _ in range(len(words))]
        assert len(dict(popped)) == len(popped) == 4000 - len(others)
        assert dict(popped).items() <= pairs.items() and len(words) == 0


def test_a_replaced_key_ends_an_iteration_over_a_map(tmp_path: Path) -> None:
    """The loop over it never ended: the map kept its size."""
    changes: list[Any] = [
        lambda words, key: (words.pop(key), words.chain(b"z" + key, b"1")),
        lambda words, key: (words.popitem(), words.update({b"z" + key: b"1"})),
        lambda words, key: (words.clear(), words.update({b"x": b"1", b"y": b"2", b"z": b"3"})),
        lambda words, key: words.chain_many([(b"z" + key, b"1")]),
    ]
    with bf.Map(tmp_path / "map", budget="16M") as words:
        for change in changes:
            words.clear()
            words.update({"a": "1", "b": "2", "c": "3"})
            with pytest.raises(RuntimeError, match="during iteration"):
                for step, key in enumerate(words):
                    assert step < 3
                    change(words, key)


def test_a_map_has_keys_in_the_order_of_their_assignments(tmp_path: Path) -> None:
    with bf.Map(tmp_path / "map", budget="16M") as words:
        for key in ("c", "a", "b"):
            words[key] = key
        assert list(words) == [b"c", b"a", b"b"]
        words.update({str(number): "v" for number in range(9)})
        assert list(words)[:3] == [b"c", b"a", b"b"] and len(set(words)) == 12


def test_keys_with_equal_hashes_are_all_compared(tmp_path: Path) -> None:
    same = bytes.fromhex("b8fe6c3923a44bbe")
    keys = [same + struct.pack("<Q", number) + b"z" * 16 for number in range(6)]
    model = dict.fromkeys(keys, b"v")
    with bf.Map(tmp_path / "map") as words, bf.Map(tmp_path / "other") as other:
        words.update(model)
        other.update(model)
        assert dict(words) == model and len(words) == 1
        assert words == model and model == words and words == other
        for different in ({}, dict.fromkeys(keys[:5], b"v"), {**model, b"z": b"v"}):
            assert words != different and different != words
        del other[keys[3]]
        assert words != other and other != words
        assert {words.popitem()[0] for _ in keys} == set(keys) and not words
