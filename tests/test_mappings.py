"""Results and states are mappings from vertices to values, whichever computed them."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import brimful as bf


class Degree(bf.Program):
    """The state is the degree, None for one without edges."""

    def initial_state(self, vertex: bf.Vertex) -> Any:
        return vertex.degree or None

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> Any:
        return None

    def collect(self, vertex: bf.Vertex, signals: list[Any]) -> Any:
        return vertex.state


TABLE = pa.table({"source": [5, 5, 5, 7, -3], "target": [7, 9, -3, 9, 5]})
DEGREES = {-3: 1, 5: 3, 7: 1, 9: None}


def states(graph: bf.Graph) -> bf.States:
    return bf.run(graph, Degree())


def distances(graph: bf.Graph) -> bf.Result:
    return bf.bfs(graph, 7)


@pytest.fixture(params=[states, distances])
def values(request: pytest.FixtureRequest) -> Iterator[tuple[Any, dict[int, Any]]]:
    expected = DEGREES if request.param is states else {-3: None, 5: None, 7: 0, 9: 1}
    with bf.Graph.from_arrow(TABLE) as graph:
        yield request.param(graph), expected


def test_they_are_mappings(values: tuple[Any, dict[int, Any]]) -> None:
    found, expected = values
    assert list(found) == [*found] == list(expected)
    assert dict(found) == dict(found.items()) == {**found} == expected
    assert list(found.keys()) == list(expected) and list(found.values()) == [*expected.values()]
    assert list(found.items()) == list(expected.items())
    assert len(found) == len(found.items()) == len(found.keys()) == len(found.values()) == 4
    for vertex, value in expected.items():
        assert vertex in found and np.int32(vertex) in found
        assert found[vertex] == found.get(vertex) == value
        assert (vertex, value) in found.items() and vertex in found.keys()  # noqa: SIM118
        assert value in found.values()
    assert (7, "nothing") not in found.items() and "nothing" not in found.values()
    assert found.keys() & {7, 8} == {7}
    for missing in (8, 2**70, "7", 1.5, None, (1,)):
        assert missing not in found
        assert found.get(missing, "none") == "none" and found.get(missing) is None
        with pytest.raises(KeyError):
            found[missing]


def test_they_have_no_reverse_order(values: tuple[Any, dict[int, Any]]) -> None:
    with pytest.raises(TypeError, match="not reversible"):
        reversed(values[0])


def test_equality_is_identity(values: tuple[Any, dict[int, Any]]) -> None:
    found, expected = values
    assert found == found and found != expected and hash(found) == hash(found)
    assert copy.copy(found) is found and copy.deepcopy(found) is found
    with pytest.raises(bf.UsageError, match=r"to_arrow\(\)"):
        pickle.dumps(found)


def test_data_frames_take_them(values: tuple[Any, dict[int, Any]], tmp_path: Path) -> None:
    found, expected = values
    arrow = found.to_arrow()
    assert arrow.column_names == ["vertex", found.column]
    assert arrow["vertex"].type == pa.int64()
    assert dict(zip(*(c.to_pylist() for c in arrow.columns), strict=True)) == expected
    assert pa.table(found).equals(arrow)
    frame = pl.DataFrame(found)
    assert frame.equals(found.to_polars()) and frame.columns == arrow.column_names
    rows = pd.DataFrame(found)
    assert rows.shape == (4, 2) and rows[0].tolist() == list(expected)
    assert [value for value in rows[1] if value == value] == [*expected.values()]
    assert found.to_pandas()["vertex"].tolist() == list(expected)
    assert pd.Series(dict(found)).index.tolist() == list(expected)
    for name in ("v.parquet", "v.csv", "v.arrow"):
        found.write(str(tmp_path / name))
        with pytest.raises(bf.UsageError, match="exists"):
            found.write(str(tmp_path / name))
        found.write(str(tmp_path / name), overwrite=True)
    with pytest.raises(bf.UsageError):
        found.write(str(tmp_path / "v.unknown"))
    assert pq.read_table(tmp_path / "v.parquet").equals(arrow)
    assert pc.read_csv(tmp_path / "v.csv").to_pydict() == arrow.to_pydict()
    assert pa.ipc.open_file(tmp_path / "v.arrow").read_all().equals(arrow)


def test_they_show_their_shape_and_first_rows(values: tuple[Any, dict[int, Any]]) -> None:
    found, _ = values
    shown = repr(found)
    assert "4 vertices" in shown and "-3" in shown and found.column in shown
    assert "<td>-3</td>" in found._repr_html_() and "..." not in shown
    with bf.Graph.from_arrow(pa.table({"source": range(50), "target": [0] * 50})) as graph:
        shown = repr(bf.pagerank(graph))
        assert "50 vertices" in shown and shown.endswith("...") and len(shown.splitlines()) == 8


def test_control_characters_of_ids_are_shown_as_escapes() -> None:
    red = "\x1b[31mred"
    table = pa.table({"source": [red, "b\x07"], "target": ["a", "a"]})
    with bf.Graph.from_arrow(table) as graph:
        for found in (bf.degrees(graph), bf.hits(graph), bf.similarity(graph)):
            for shown in (repr(found), found._repr_html_()):
                assert "\x1b" not in shown and "\x07" not in shown
            assert r"\x1b[31mred" in repr(found) and r"\x1b[31mred" in found._repr_html_()


def test_the_largest_come_first(values: tuple[Any, dict[int, Any]]) -> None:
    found, expected = values
    known = [(vertex, value) for vertex, value in expected.items() if value is not None]
    ranked = sorted(known, key=lambda pair: -pair[1])
    assert found.top() == ranked and found.top(1) == ranked[:1] and found.top(0) == []


class Words(bf.Program):
    """States of a type that the test chooses."""

    def __init__(self, states: dict[int, Any]) -> None:
        self.states = states

    def initial_state(self, vertex: bf.Vertex) -> Any:
        return self.states[vertex.id]

    def signal(self, source: bf.Vertex, target: Any, weight: float) -> Any:
        return None

    def collect(self, vertex: bf.Vertex, signals: list[Any]) -> Any:
        return vertex.state


def test_states_of_any_type(tmp_path: Path) -> None:
    with bf.Graph.from_arrow(pa.table({"source": [1, 2], "target": [2, 3]})) as graph:
        lists = bf.run(graph, Words({1: [1, 2], 2: [], 3: [5]}))
        assert lists.to_arrow()["state"].to_pylist() == [[1, 2], [], [5]]
        assert lists.top(1, key=len) == [(1, [1, 2])]
        assert lists.top(1) == [(3, [5])]
        lists.write(str(tmp_path / "lists.parquet"))
        assert pq.read_table(tmp_path / "lists.parquet")["state"].to_pylist() == [[1, 2], [], [5]]
        with pytest.raises(bf.UsageError, match="csv cannot hold"):
            lists.write(str(tmp_path / "lists.csv"))
        assert not (tmp_path / "lists.csv").exists()
        mixed = bf.run(graph, Words({1: "a", 2: 5, 3: {}}))
        assert dict(mixed) == {1: "a", 2: 5, 3: {}}
        with pytest.raises(bf.UsageError, match=r"items\(\)"):
            mixed.to_arrow()
        with pytest.raises(bf.UsageError, match="key="):
            mixed.top()
        empty = bf.run(graph, Words({1: None, 2: None, 3: None}))
        assert empty.to_arrow()["state"].to_pylist() == [None] * 3 and empty.top() == []


def test_strings_as_vertices() -> None:
    with bf.Graph.from_arrow(pa.table({"source": ["a", "b"], "target": ["b", "ä"]})) as graph:
        found, ended = bf.bfs(graph, "a"), states(graph)
        assert dict(found) == {"a": 0, "b": 1, "ä": 2} and "b" in found and 0 not in found
        assert dict(ended) == {"a": 1, "b": 1, "ä": None} and "b" in ended and 0 not in ended
        assert ended.to_arrow()["vertex"].to_pylist() == ["a", "b", "ä"]
        assert list(graph) == ["a", "b", "ä"]


def test_a_loop_over_rows_is_streamed() -> None:
    count = 400_000
    ring = pa.table({"source": np.arange(count), "target": (np.arange(count) + 1) % count})
    with bf.Graph.from_arrow(ring) as graph:
        result = bf.degrees(graph)
        tracemalloc.start()
        try:
            assert sum(value for _, value in result.items()) == sum(result.values()) == count
            assert sum(1 for _ in result) == sum(1 for _ in graph) == count
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    # All at once would take some 30 MB of integers and lists.
    assert peak < 12 << 20
