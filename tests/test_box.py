"""`Box` against arrays."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import brimful as bf

BUDGET = "64M"
POINT = np.dtype([("x", "f8"), ("n", "i4"), ("name", "S5")])


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
    "order", [[3, 1, 3], [9, -1], np.array([2, 2]), [range(4, 8), range(5)], [range(3)] * 2]
)
@pytest.mark.parametrize("kind", ["box", "bag"])
def test_an_order_has_a_record_once(tmp_path: Path, kind: str, order: object) -> None:
    """A batch that was read ahead undid the change of the one before it."""
    collection: bf.Box | bf.Bag = bf.Box(tmp_path / "x", "i8")
    if kind == "bag":
        collection = bf.Bag(tmp_path / "y", serializer="json")
    with collection:
        collection.extend(range(10))
        with pytest.raises(bf.UsageError, match="more than once"):
            collection.process(lambda *_: None, order)  # type: ignore[arg-type]
        collection.process(lambda *_: None, [range(5, 8), range(5), range(6, 6)])
        collection.process(lambda *_: None, np.array([-1, 3, 0]))


@pytest.mark.parametrize(
    ("order", "id"),
    [
        (range(5, 20), 10),
        (range(12, 20), 12),
        (range(-3, 2), -3),
        (range(2**62), 10),
        (range(2**70, 2**70 + 1), 2**70),
        ([range(3), range(9, 11)], 10),
        ([range(3, 5), range(-1, 1)], -1),
        ([3, 20], 20),
    ],
)
@pytest.mark.parametrize("kind", ["box", "bag"])
def test_an_order_has_only_records(tmp_path: Path, kind: str, order: object, id: int) -> None:
    """A range beyond the records of a Bag never ended."""
    collection: bf.Box | bf.Bag = bf.Box(tmp_path / "x", "i8")
    if kind == "bag":
        collection = bf.Bag(tmp_path / "y", serializer="json")
    with collection:
        collection.extend(range(10))
        with pytest.raises(bf.RecordIdError, match=f"no record {id}; "):
            collection.process(lambda *_: None, order)  # type: ignore[arg-type]
        collection.process(lambda *_: None, [range(5, 10), range(0), range(20, 20)])


def test_a_record_that_is_an_array_must_be_a_field(tmp_path: Path) -> None:
    with pytest.raises(bf.UsageError, match="a field") as refusal:
        bf.Box(tmp_path / "box", "(2,)i8")
    assert "[('values', '<i8', (2,))]" in str(refusal.value)
    with bf.Box(tmp_path / "box", [("values", "<i8", (2,))]) as box:
        box.extend([([1, 2],), ([3, 4],)])
        assert box[:]["values"].tolist() == [[1, 2], [3, 4]]


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


def test_a_box_that_was_resized_far_opens_again(tmp_path: Path) -> None:
    with bf.Box(tmp_path / "x", "f8", budget="64M") as box:
        box.resize(10)
        box[3] = 1.5
        box.sync()
        box.resize(10_000_000)
        box[-1] = 2.5
        with pytest.raises(bf.BudgetError, match=r"the smallest that works is [0-9]{4}M"):
            box.resize(10**12)
            box[-1] = 3.5
        box.resize(10_000_000)
    with bf.Box(tmp_path / "x", "f8", budget="64M") as box:
        assert (box[3], box[500], box[-1]) == (1.5, 0, 2.5)
        box.verify()
