"""Numbers that are not keys, ids, counts or records are refused with a sentence, not changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import brimful as bf

BUDGET = "24M"

#: What is not an integer from 0 to 2**64 - 1, as many keys at once.
NO_KEYS: dict[str, Any] = {
    "negative": [-1],
    "negative among others": np.array([5, -(2**63), 7]),
    "int8": np.array([-3], np.int8),
    "too large": [2**64],
    "very large": [10**5000],
    "mixed": [2**63, -1],
    "float": [1.5],
    "whole float": np.array([2.0]),
    "float16": np.array([2], np.float16),
    "bool": [True],
    "bool among integers": [1, True, 2],
    "NumPy bool among integers": (1, np.True_),
    "bools": np.array([True, False]),
    "complex": np.array([1j]),
    "text": ["one"],
    "bytes": np.array([b"1"]),
    "None": [None],
    "NaN": [float("nan")],
    "dates": np.array(["2020-01-01"], "M8[s]"),
    "spans of time": np.array([5], "m8[s]"),
    "objects": np.array([1, 2], object),
    "bool objects": np.array([True], object),
    "records": np.zeros(1, [("a", "u8")]),
    "ragged": [[1], [2, 3]],
}
#: One of each that is not a single key.
NO_KEY: list[Any] = [-1, 2**64, 10**5000, 1.0, True, np.True_, "one", b"1", None, 1j, [1]]


def keyed(folder: Path) -> dict[str, Any]:
    """Return an open collection of each kind that has keys."""
    return {
        "counter": bf.FrequencyCounter(folder / "counter", budget=BUDGET),
        "set": bf.MembershipSet(folder / "set", budget=BUDGET),
        "filter": bf.BloomFilter(folder / "filter", 100, budget=BUDGET),
    }


def test_a_counter_has_the_keys_that_occurred_and_is_no_sequence(tmp_path: Path) -> None:
    with bf.FrequencyCounter(tmp_path / "x") as counter:
        counter.add_many([3] * 7)
        assert 3 in counter and 7 not in counter
        with pytest.raises(TypeError, match="not iterable"):
            iter(counter)
        with pytest.raises(bf.UsageError):
            assert "3" in counter


@pytest.mark.parametrize("kind", ["counter", "set", "filter"])
def test_what_is_no_key_is_refused_and_nothing_is_added(tmp_path: Path, kind: str) -> None:
    keys = keyed(tmp_path)[kind]
    questions = [keys.count_many] if kind == "counter" else [keys.contains_many]
    for name, bad in NO_KEYS.items():
        for call in (keys.add_many, *questions):
            with pytest.raises(bf.UsageError, match="keys must be"):
                call(bad)
            assert len(keys) == 0, name
    single = [keys.add, keys.__getitem__ if kind == "counter" else keys.__contains__]
    if kind == "set":
        single.append(keys.discard)
    for bad in NO_KEY:
        for call in single:
            with pytest.raises(bf.UsageError, match="a key must be"):
                call(bad)
    assert len(keys) == 0


@pytest.mark.parametrize("dtype", ["i1", "u1", ">i2", "u2", "i4", ">u4", "i8", "u8", ">u8"])
def test_integers_of_every_dtype_are_the_numbers_that_they_are(tmp_path: Path, dtype: str) -> None:
    largest = int(np.iinfo(dtype).max)
    numbers = np.array([0, 1, largest, 1], dtype)[::-1]
    with bf.FrequencyCounter(tmp_path / "counter", budget=BUDGET) as counter:
        counter.add_many(numbers)
        counter.add(numbers[0])
        assert counter.count_many([0, 1, largest]).tolist() == [1, 3, 1]
    with bf.Box(tmp_path / "box", "u8", budget=BUDGET) as box:
        box.extend(numbers)
        assert box[:].tolist() == numbers.tolist()
    assert next(bf.sort([numbers], budget="24M")).tolist() == sorted(numbers.tolist())


def test_the_bounds_of_keys_are_keys(tmp_path: Path) -> None:
    with bf.MembershipSet(tmp_path / "set", budget=BUDGET) as members:
        members.add_many([0, 2**64 - 1])
        members.add_many(range(5, 8))
        members.add_many([])
        members.add_many(np.zeros(0))
        assert 2**64 - 1 in members and len(members) == 5


def test_integers_of_several_types_are_not_rounded(tmp_path: Path) -> None:
    """NumPy makes floats of them."""
    with bf.MembershipSet(tmp_path / "set", budget=BUDGET) as members:
        members.add_many(range(2**63 - 2, 2**63 + 2))
        members.add_many([np.int64(1), np.uint64(2)])
        members.add_many((np.uint64(2**64 - 1), 3))
        wanted = [2**63 - 2, 2**63 - 1, 2**63, 2**63 + 1, 1, 2, 2**64 - 1, 3]
        assert all(number in members for number in wanted) and len(members) == len(wanted)
        for bad in ([1.5, 2**63], [np.float64(1), np.uint64(2)], [[True, 2**63, -1]], [2**63, -1]):
            with pytest.raises(bf.UsageError, match="integers"):
                members.add_many(bad)
    assert np.concatenate(list(bf.sort([[np.uint64(2**64 - 1), 0]]))).tolist() == [0, 2**64 - 1]
    assert np.concatenate(list(bf.sort([[np.uint64(5), np.int64(-1)]]))).tolist() == [-1, 5]
    with bf.Box(tmp_path / "box", "i8", budget=BUDGET) as box:
        box.extend([7, 8, 9])
        assert box[[np.int64(-1), np.uint64(0)]].tolist() == [9, 7]


@pytest.mark.parametrize(
    "call",
    [
        lambda path: bf.Lists(path / "x", 1.5, budget=BUDGET),
        lambda path: bf.Lists(path / "x", True, budget=BUDGET),
        lambda path: bf.Lists(path / "x", 2**70, budget=BUDGET),
        lambda path: bf.Lists(path / "x", 0, budget=BUDGET),
        lambda path: bf.BloomFilter(path / "x", 0, budget=BUDGET),
        lambda path: bf.BloomFilter(path / "x", 10.0, budget=BUDGET),
        lambda path: bf.SpillingDict(0),
        lambda path: bf.SpillingDict(2.5),
        lambda path: bf.FrequencyCounter(path / "x", budget=BUDGET).top(-1),
        lambda path: bf.FrequencyCounter(path / "x", budget=BUDGET).top(1.5),
        lambda path: bf.Lists(path / "x", 3, budget=BUDGET).append_many([0], [-1]),
        lambda path: bf.Lists(path / "x", 3, budget=BUDGET).append_many([0], [2**32]),
        lambda path: bf.Lists(path / "x", 3, budget=BUDGET).append_many([0], [1.0]),
        lambda path: bf.Lists(path / "x", 3, budget=BUDGET).append_many([True], [1]),
        lambda path: bf.Lists(path / "x", 3, budget=BUDGET)[True],
        lambda path: bf.Lists(path / "x", 3, budget=BUDGET).get_many([0.0]),
        lambda path: bf.Bag(path / "x", budget=BUDGET)[True],
        lambda path: bf.Bag(path / "x", budget=BUDGET)[1.0],
        lambda path: bf.Bag(path / "x", budget=BUDGET).fetch_range(-1, 1),
        lambda path: bf.Bag(path / "x", budget=BUDGET).fetch_batch([True]),
        lambda path: bf.Box(path / "x", "i8", budget=BUDGET).resize(1.5),
        lambda path: bf.Box(path / "x", "i8", budget=BUDGET).resize(2**70),
        lambda path: bf.Box(path / "x", "i8", budget=BUDGET).fetch_range(-1, 1),
        lambda path: bf.Box(path / "x", "i8", budget=BUDGET).store_range(-1, [1]),
        lambda path: list(bf.sort([[1, True]], budget="24M")),
        lambda path: list(bf.sort([np.array([1], object)], budget="24M")),
        lambda path: list(bf.sort([[2**64]], budget="24M")),
    ],
)
def test_what_is_no_number_of_things_is_refused(
    tmp_path: Path, call: Callable[[Path], object]
) -> None:
    with pytest.raises(bf.UsageError) as refused:
        call(tmp_path)
    assert re.search("integer|must be (a whole number|at least|at most)", str(refused.value))


@pytest.mark.parametrize("number", [-1, 2**32, np.int64(-(2**62)), np.uint64(2**64 - 1)])
def test_lists_name_the_range_of_their_numbers(tmp_path: Path, number: int) -> None:
    with bf.Lists(tmp_path / "lists", 3, budget=BUDGET) as lists:
        for numbers in (([0, 1], [1, number]), ([1, number], [0, 1])):
            with pytest.raises(bf.UsageError, match=rf"from 0 to 2\*\*32 - 1, not {number}$"):
                lists.append_many(*numbers)
        lists.append_many([], [])
        lists.append_many([0], [2**32 - 1])
        assert lists[0].tolist() == [2**32 - 1]


@pytest.mark.parametrize(
    ("dtype", "bad"),
    [
        ("i8", 1.5),
        ("i8", np.float64(2.7)),
        ("i8", 2**63),
        ("i8", "5"),
        ("i8", None),
        ("u8", -1),
        ("u1", np.int64(300)),
        ("u1", 256),
        ("i4", 1 + 0j),
        ("f8", 1j),
        ("f4", 1e300),
        ("f2", 70_000),
        ("f8", 10**400),
        ("c8", 1e300 + 0j),
        ("c8", complex(float("nan"), 1e300)),
        ("c8", 1e300),
        ("S1", 12345),
        ("U3", b"abcdef"),
        ("U1", 1.5),
        ("V2", np.void(b"abc")),
        ("M8[s]", np.datetime64("2020-01-01T00:00:01.5")),
        ("M8[ns]", np.datetime64("9999-01-01")),
        ("m8[h]", np.timedelta64(90, "m")),
        ([("n", "S2")], (12345,)),
        ([("n", "f2")], (70_000,)),
        ([("t", "M8[s]")], np.array((1,), [("t", "M8[ms]")])[()]),
        ("S3", b"abcd"),
        ("U3", "abcd"),
        ([("n", "i4"), ("s", "S2")], (1.5, b"a")),
        ([("n", "i4"), ("s", "S2")], (1, b"abc")),
        ([("n", "u1"), ("s", "S2")], (300, b"a")),
        ([("n", "i4"), ("s", "S2")], (1,)),
    ],
)
def test_a_record_that_would_be_changed_is_refused(tmp_path: Path, dtype: Any, bad: Any) -> None:
    with bf.Box(tmp_path / "box", dtype, budget=BUDGET) as box:
        box.resize(2)
        for store in (box.append, lambda value: box.__setitem__(0, value)):
            with pytest.raises(bf.UsageError):
                store(bad)
        for many in (box.extend, lambda values: box.store_batch([0], values)):
            with pytest.raises(bf.UsageError):
                many([bad])
        assert box[:].tolist() == np.zeros(2, dtype).tolist()


def test_records_that_lose_nothing_are_stored(tmp_path: Path) -> None:
    with bf.Box(tmp_path / "f", "f4", budget=BUDGET) as box:
        box.extend([1, 2.5, float("inf"), np.float16(3)])
        box.append(True)
        assert box[:].tolist() == [1, 2.5, float("inf"), 3, 1]
    lossless = [
        ("f8", 10**20, 1e20),
        ("f2", 65_504, 65_504.0),
        ("c8", complex(float("inf"), 2), complex(float("inf"), 2)),
        ("c16", 2**64, 2**64 + 0j),
        ("S5", 12345, b"12345"),
        ("U3", b"abc", "abc"),
        ("M8[ms]", np.datetime64("2020-01-01"), np.datetime64("2020-01-01", "ms")),
        ("M8[s]", np.datetime64("2020-01-01T00:00:01.000"), np.datetime64("2020-01-01T00:00:01")),
        ("m8[s]", np.timedelta64(2, "m"), np.timedelta64(120, "s")),
        ("m8[s]", 7, np.timedelta64(7, "s")),
    ]
    for number, (dtype, given, stored) in enumerate(lossless):
        with bf.Box(tmp_path / str(number), dtype, budget=BUDGET) as box:
            box.append(given)
            box.extend([given])
            assert (box[:] == stored).all()
    with bf.Box(tmp_path / "times", "M8[s]", budget=BUDGET) as box:
        box.extend(np.array(["NaT", "2020-01-01"], "M8[ms]"))
        assert np.isnat(box[0]) and box[1] == np.datetime64("2020-01-01")
    kind = np.dtype([("n", "i4"), ("inner", [("x", "f8"), ("y", "f8")]), ("s", "S2")])
    with bf.Box(tmp_path / "r", kind, budget=BUDGET) as box:
        box.append((1, (2.0, 3.0), b"ab"))
        box.extend([(4, (5.0, 6.0), b"c")])
        box.extend(np.array([(7, (8.0, 9.0), b"d")], kind))
        assert box[:].tolist() == [
            (1, (2.0, 3.0), b"ab"),
            (4, (5.0, 6.0), b"c"),
            (7, (8.0, 9.0), b"d"),
        ]


def test_values_that_a_box_cannot_hold_are_not_in_it(tmp_path: Path) -> None:
    """They were cut to its type, or raised an error of NumPy."""
    with bf.Box(tmp_path / "box", "u1") as box:
        box.extend([1, 44])
        assert repr(box).count("2 records") == 1
        assert 1 in box and 1.0 in box and True in box and np.int64(44) in box
        for value in (-1, 300, 1.5, 2**70, float("inf"), "x", None):
            assert value not in box
    with bf.Box(tmp_path / "floats", "f4") as box:
        box.append(0.1)
        assert 0.1 in box and 1.0 not in box and 0.2 not in box and "1 record" in repr(box) + " "
        assert "1 records" not in repr(box)
        box.extend([7, 8])
        for no_record in ([1, 7], [0.1, 7, 8], [], (), [[1], [1, 2]]):
            assert no_record not in box
    with bf.Box(tmp_path / "times", "M8[s]") as box:
        box.append(np.datetime64("2020-01-01T00:00:00"))
        assert np.datetime64("2020-01-01") in box
        assert np.datetime64("2020-01-01T00:00:00.5") not in box


def test_equal_numbers_of_any_type_are_in_a_box(tmp_path: Path) -> None:
    with bf.Box(tmp_path / "floats", "f8") as box:
        box.extend([1e300, 2.0**64, 1])
        for value in (1e300, 2.0**64, 2**64, 1, 1.0, True, np.float32(1), np.int8(1)):
            assert value in box
        assert False not in box and 0 not in box and 2**65 not in box and 10**400 not in box
    with bf.Box(tmp_path / "truths", "?") as box:
        box.append(True)
        for value in (True, 1, 1.0, np.bool_(True), np.int8(1)):
            assert value in box
        for value in (False, 0, 0.0, 2, 0.5, 1e300, "x"):
            assert value not in box
