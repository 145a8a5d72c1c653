"""How collections show themselves, and the remedies in their refusals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import brimful as bf

POINTS_IN_ANY_ORDER = np.dtype({"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [4, 0]})


def test_a_collection_shows_its_path_and_length(tmp_path: Path) -> None:
    def path(name: str) -> str:
        return str(tmp_path / name)

    counter = bf.FrequencyCounter(path("counter"))
    counter.add_many([3, 3, 5])
    words = bf.Map(path("words"))
    words["one"] = "1"
    members, maybe = bf.MembershipSet(path("members")), bf.BloomFilter(path("maybe"), 10)
    shown_as: list[tuple[Any, str]] = [
        (counter, f"FrequencyCounter({path('counter')!r}): 2 keys"),
        (words, f"Map({path('words')!r}): 1 key"),
        (members, f"MembershipSet({path('members')!r}): 0 keys"),
        (maybe, f"BloomFilter({path('maybe')!r}): 0 keys"),
        (bf.Lists(path("lists"), 3), f"Lists({path('lists')!r}): 3 lists"),
    ]
    for each, shown in shown_as:
        assert repr(each) == shown
        each.close()
        assert repr(each) == shown.partition(": ")[0] + ": closed"


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(bf.StoreIoError, match=f"there is no folder {tmp_path}/no; create it first"):
        bf.Box(tmp_path / "no" / "box", "i8")


@pytest.mark.parametrize("dtype", ["x9", {"rank": "f8"}])
def test_a_dtype_that_numpy_does_not_know_is_refused(tmp_path: Path, dtype: Any) -> None:
    with pytest.raises(bf.UsageError, match="is not a dtype of NumPy"):
        bf.Box(tmp_path / "box", dtype)


def test_a_box_names_the_remedy_for_an_iterator(tmp_path: Path) -> None:
    numbers = (number for number in range(3))
    with bf.Box(tmp_path / "box", "i8") as box:
        with pytest.raises(bf.UsageError, match=r"not generator; numpy.fromiter makes an array"):
            box.extend(numbers)  # type: ignore[arg-type]
        box.extend(np.fromiter(numbers, "i8"))
        assert box[:].tolist() == [0, 1, 2]


def test_a_closed_cache_refuses_keys() -> None:
    cache: bf.SpillingDict[int, str]
    with bf.SpillingDict(limit=2) as cache:
        cache.update(enumerate("abc"))
    for use in (
        lambda: cache[0],
        lambda: cache.get(0),
        lambda: cache.setdefault(0, "a"),
        lambda: cache.update({0: "a"}),
        lambda: cache.pop(0, None),
        cache.clear,
    ):
        with pytest.raises(bf.UsageError, match="the cache is closed; make another one"):
            use()
    assert (len(cache), repr(cache)) == (0, "SpillingDict(limit=2): closed")


def test_a_value_that_cannot_be_spilled_is_named_by_its_key() -> None:
    cache: bf.SpillingDict[str, Any] = bf.SpillingDict(limit=2)
    cache.update({"good": 1, "bad": lambda: 0})
    cache["a"] = 2
    with pytest.raises(
        bf.UsageError, match=r"value of the key bad cannot be spilled: .*pickle"
    ) as error:
        cache["b"] = 3
    assert str(error.value).endswith("; remove it, or assign another value")
    cache["bad"] = 4
    assert dict(cache.items()) == {"good": 1, "bad": 4, "a": 2, "b": 3}
    cache.close()


def test_the_records_of_a_failed_spill_are_used_again() -> None:
    large = b"x" * (3 << 20)
    cache: bf.SpillingDict[int, Any] = bf.SpillingDict(limit=256)
    cache.update({0: large, 1: lambda: 0, **dict.fromkeys(range(2, 256), 0)})
    for _ in range(3):
        with pytest.raises(bf.UsageError, match="the value of the key 1 cannot be spilled"):
            cache[256] = 0
    cache[1] = 1
    assert len(cache) - cache.live == len(cache.bag) == 5
    assert cache[0] == large
    cache.close()


def test_a_record_that_does_not_fit_is_refused_before_others_are_added(tmp_path: Path) -> None:
    numbers = np.zeros(1 << 20, np.int64)
    numbers[-1] = 1 << 40
    with bf.Box(tmp_path / "x", "i4") as box:
        with pytest.raises(bf.UsageError, match="they reach from 0 to 1099511627776"):
            box.extend(numbers)
        assert len(box) == 0
        box.extend(numbers[:-1])
        assert len(box) == len(numbers) - 1


def test_an_error_counts_the_records_that_were_added_before_it(tmp_path: Path) -> None:
    values = ["a"] * 20_000 + [3]
    given: list[tuple[Any, str]] = [
        (values, "16384 of 20001 records were added, the rest were not"),
        (iter(values), "records added before the error: 16384"),
    ]
    for number, (several, note) in enumerate(given, 1):
        with bf.Bag(tmp_path / str(number), serializer="str") as bag:
            with pytest.raises(bf.UsageError, match="cannot write int") as caught:
                bag.extend(several)
            assert caught.value.__notes__ == [note]
            assert len(bag) == 16_384


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda path: bf.SpillingDict(2, folder=-1), "folder must be a path, not -1"),
        (lambda path: bf.SpillingDict(2, folder=b"/tmp"), "folder must be a path, not b'/tmp'"),
        (lambda path: bf.SpillingDict(2, folder=""), "folder must be a path, not an empty text"),
        (lambda path: bf.BloomFilter(path, 10, None), "must be a number, not None"),
        (lambda path: bf.BloomFilter(path, 10, "0.1"), "must be a number, not 0.1"),
        (lambda path: bf.Box(path, "i8")[[[0], [1, 2]]], "ids must be a list of integers"),
        (
            lambda path: bf.Box(path, "i8").__setitem__(([0], 1), 2),
            "ids must be a list of integers",
        ),
        (lambda path: bf.Box(path, POINTS_IN_ANY_ORDER), "in the order of their offsets"),
    ],
)
def test_a_wrong_argument_is_named(
    tmp_path: Path, call: Callable[[Path], object], message: str
) -> None:
    with pytest.raises(bf.UsageError, match=message):
        call(tmp_path / "x")


@pytest.mark.parametrize("text", ["abc", b"abc", bytearray(b"abc"), 3, None, np.array(3)])
def test_a_text_is_no_sequence_of_records(tmp_path: Path, text: Any) -> None:
    with bf.Bag(tmp_path / "bag", serializer="str") as bag, bf.Map(tmp_path / "map") as words:
        bag.extend(["one", "two", "three"])
        calls: list[tuple[str, Callable[[], object]]] = [
            ("records", lambda: bag.extend(text)),
            ("records", lambda: bag.store_batch([0, 1, 2], text)),
            ("records", lambda: bag.append_to_batch([0, 1, 2], text)),
            ("keys", lambda: words.get_many(text)),
            ("pairs", lambda: words.update(text)),
            ("pairs", lambda: words.chain_many(text)),
        ]
        for noun, call in calls:
            with pytest.raises(bf.UsageError, match=f"{noun} must be a sequence such as a list"):
                call()
        assert list(bag) == ["one", "two", "three"]
        for wrong in (["abc"], [3], [("a", "b", "c")]):
            with pytest.raises(bf.UsageError, match="expected a pair of key and value, found"):
                words.update(wrong)  # type: ignore[arg-type]
        assert len(words) == 0
