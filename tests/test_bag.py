"""`Bag` against dicts, and its serializers."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import brimful as bf

BUDGET = "64M"


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


class Texts:
    """A serializer that forgets to encode."""

    def dumps(self, value: object) -> str:
        return str(value)

    def loads(self, data: bytes) -> object:
        return int(data)


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


@pytest.mark.parametrize(
    ("serializer", "value", "says"),
    [
        ("bytes", 3, "the serializer bytes cannot write int: it writes only bytes; open the bag"),
        ("str", b"a", "the serializer str cannot write bytes: it writes only text; open the bag"),
        (Texts(), 3, "the serializer Texts cannot write int: its dumps returned str, not bytes;"),
    ],
)
def test_what_is_not_bytes_is_refused(
    tmp_path: Path, serializer: Any, value: object, says: str
) -> None:
    bag = bf.Bag(tmp_path / "b", serializer=serializer, budget=BUDGET)
    with bag, pytest.raises(bf.UsageError, match=says):
        bag.append(value)


def test_an_iteration_leaves_out_records_that_another_thread_removes(tmp_path: Path) -> None:
    with bf.Bag(tmp_path / "bag", budget="1M") as bag:
        bag.extend([bytes(30_000)] * 40)
        over = threading.Event()

        def change() -> None:
            while not over.is_set():
                for id in range(40):
                    del bag[id]
                    bag[id] = bytes(30_000)

        changing = threading.Thread(target=change)
        changing.start()
        try:
            for _ in range(60):
                assert len(list(bag)) <= 40
        finally:
            over.set()
            changing.join()
