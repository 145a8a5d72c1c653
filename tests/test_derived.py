"""Graphs made from graphs: filtered (beside pandas), reversed, contracted; `run --where`."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brimful as bf
from brimful.tables.expressions import Condition
from command import INPUT, USAGE, refuse, succeed

EDGES = pa.table(
    {
        "source": ["a", "b", "c", "a", "e"],
        "target": ["b", "c", "a", "c", "e"],
        "weight": [1.0, 2.0, 3.0, 4.0, 5.0],
    }
)
PAGES = pa.table(
    {
        "vertex": ["a", "b", "c", "e"],
        "year": [2019, 2020, None, 2021],
        "kind": ["x", "y", "x", None],
    }
)


def rows(graph: bf.Graph) -> list[tuple[Any, ...]]:
    """Return the edges of a graph, sorted."""
    return sorted(zip(*graph.to_arrow().to_pydict().values(), strict=True))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "pages.brimful"
    bf.Graph.from_arrow(EDGES, path=place, vertex_columns=PAGES).close()
    return place


@pytest.mark.parametrize(
    ("condition", "vertices"),
    [
        ("year >= 2020", ["b", "e"]),
        ("2019 < year < 2021", ["b"]),
        ("year is None or kind == 'y'", ["b", "c"]),
        ("kind in ('x', 'z') and not year == 2020", ["a"]),
        ("kind not in ['x']", ["b"]),
        ("not kind in ['x']", ["b"]),
        ("not (year > 2019)", ["a"]),
        ("kind is not None", ["a", "b", "c"]),
        ("(year - 2000) * 2 / 4 == 9.5", ["a"]),
        ("vertex != 'a' and -1 < year", ["b", "e"]),
        ("column('year') == 2021", ["e"]),
        (pc.field("year") >= 2020, ["b", "e"]),
    ],
)
def test_vertices_that_meet_a_condition_stay(
    path: Path, condition: Any, vertices: list[str]
) -> None:
    with bf.Graph.open(path) as graph, graph.filter(vertices=condition) as part:
        assert list(part) == vertices
        kept = [edge for edge in rows(graph) if edge[0] in vertices and edge[1] in vertices]
        assert rows(part) == kept
        wanted = [row for row in PAGES.to_pylist() if row["vertex"] in vertices]
        assert part.vertex_rows().read_all().to_pylist() == wanted
        assert part.directed and part.weighted
        part.verify()


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("yaer > 3", r"no column yaer \(found: vertex, year, kind\); did you mean 'year'"),
        ("year = 3", "is not a condition"),
        ("year > 3 AND kind == 'x'", "is not a condition"),
        ("year", "does not fit the columns"),
        ("kind > 3", "kind is text; compare it with a text, as in kind == '3'"),
        ("__import__('os').system('true')", "cannot be in the condition"),
        ("[year for year in (1, 2)]", "cannot be in the condition"),
        ("year == (lambda: 3)()", "cannot be in the condition"),
        ("year in kind", "cannot be in the condition"),
        ("year is 3", "cannot be in the condition"),
        ("year in (1, 'x')", "year is a number; compare it with a number, as in year == 7"),
        ("year in (1, year)", "'year' cannot be in the condition"),
        (f"year > 1{'0' * 76}", "in the condition .* has more than 76 digits"),
        ("year.real == 1", "cannot be in the condition"),
        ("(" * 300 + "year" + ")" * 300, "is not a condition"),
        ("not " * 3000 + "year", "longer than|is not a condition"),
        ("", "is not a condition"),
        ("year > \0", "is not a condition"),
        (3, "must be a condition"),
        (["year > 3"], "must be a condition"),
    ],
)
def test_what_is_no_condition_is_refused(path: Path, condition: Any, says: str) -> None:
    with bf.Graph.open(path) as graph, pytest.raises(bf.UsageError, match=says):
        graph.filter(vertices=condition)


def test_vertices_of_a_table_stay(path: Path) -> None:
    ages = pa.table({"age": [7, None, 9, 8], "vertex": ["e", "a", "b", "nobody"]})
    with bf.Graph.open(path) as graph:
        for condition, wanted in ((None, ["a", "b", "e"]), ("age < 9", ["e"])):
            with graph.filter(table=ages, vertices=condition) as part:
                assert list(part) == wanted
                kept = [edge for edge in rows(graph) if {*edge[:2]} <= {*wanted}]
                assert rows(part) == kept
        degrees = bf.degrees(graph)
        with graph.filter(table=degrees, vertices="degree > 1", edges="weight > 2") as part:
            assert list(part) == [vertex for vertex, degree in degrees.items() if degree > 1]
        for wrong, says in (
            ({"table": [1]}, "table must be a result"),
            ({"table": pa.table({"id": [1]})}, "found the columns id"),
            ({"table": ages, "vertices": "year > 3"}, "no column year"),
            ({"table": pa.table({"vertex": [1]})}, "not vertices"),
        ):
            with pytest.raises(bf.UsageError, match=says):
                graph.filter(**wrong)
        with pytest.raises(bf.InputError, match=r"no vertex of .* is left"):
            graph.filter(table=ages, vertices="age > 100")


@pytest.mark.parametrize(
    ("condition", "rows_left"),
    [
        ("signed > -9223372036854775809", [0, 1, 2]),
        ("signed < 18446744073709551616", [0, 1, 2]),
        ("99999999999999999999 <= wide", [2]),
        ("unsigned > 1", [1, 2]),
        ("-1 < unsigned < 18446744073709551615", [0, 1]),
        ("unsigned == 9223372036854775813", [1]),
        ("unsigned in (9223372036854775813, 4)", [1]),
        ("signed in (1.0, 3)", [0]),
        ("narrow == 0.1 and narrow in (0.1,)", [0]),
        ("narrow > 0.1", [1, 2]),
        ("zero in (0, 7)", [0, 1]),
        ("zero in (-0.0,) and zero not in (5,)", [0, 1]),
        ("zero not in (0.0,)", [2]),
        ("zero * 2 in (0.0,)", [0, 1]),
        ("signed in (0, 1)", [0]),
        ("signed in (1.5, 1)", [0]),
        ("signed in (1.5, 1e300)", []),
        ("signed not in (18446744073709551615, 1)", [1, 2]),
        ("unsigned not in (1, -1)", [1, 2]),
        ("small in (300,)", []),
        ("small not in (300,)", [0, 1, 2]),
        ("small + 1 in (-200, 300, 101, 9223372036854775808)", [0]),
        ("price in (1, 99999999999)", [0]),
        ("price not in (99999999999,)", [0, 1]),
        ("signed + 0 in (0, 1, 9223372036854775807)", [0, 2]),
        ("signed >= 1.6e9", [2]),
        ("signed < 9223372036854775808.0", [0, 1, 2]),
        ("-5.5 < signed <= 1.5", [0, 1]),
        ("signed == 1.5 or signed == 1.0", [0]),
        ("unsigned > 9223372036854775808.0", [1, 2]),
        ("1.5 < unsigned != 1.25", [1, 2]),
        ("stamp * 1.5 > 2.5e9 and stamp + -0.5 < 1.8e9", [1]),
        ("row > 0.5 and row != 1e60", [1, 2]),
        ("price > 1 and price != 3", [1]),
        ("price >= 1.0 and price < 99999999999", [0, 1]),
        ("small + 100 > 150 and 2 * small * 3 <= 600", [0]),
        ("300 - small * small < -15827", [2]),
        ("small + -200 in (-100, 300)", [0]),
        ("small * 100000 == small * 10 * 10000", [0, 1, 2]),
        ("small + row > 101.5", [2]),
        ("small * 72057594037927937 > 7205759403792793699", [0, 2]),
        ("small + 1.5 == 101.5 or small + 0.5 == 127.5", [0, 2]),
    ],
)
def test_numbers_are_compared_exactly(condition: str, rows_left: list[int]) -> None:
    table = pa.table(
        {
            "signed": pa.array([1, -5, 2**63 - 1]),
            "unsigned": pa.array([1, 2**63 + 5, 2**64 - 1], pa.uint64()),
            "wide": [1.0, 2.0, 1e30],
            "narrow": pa.array([0.1, 2.0, 1e30], pa.float32()),
            "price": pa.array([Decimal("1.00"), Decimal("1.10"), None], pa.decimal128(10, 2)),
            "zero": [0.0, -0.0, 1.0],
            "stamp": [0, 1_700_000_000, 1_800_000_001],
            "row": [0, 1, 2],
            "small": pa.array([100, -100, 127], pa.int8()),
        }
    )
    rows = Condition(condition, table.schema).rows(table.to_batches()[0])
    assert rows["row"].to_pylist() == rows_left
    with pytest.raises(bf.InputError, match="fails: overflow"):
        Condition("signed + small > 0", table.schema).rows(table.to_batches()[0])


def test_texts_are_compared_with_times_and_decimal_numbers() -> None:
    schema = pa.schema(
        {"day": pa.date32(), "at": pa.timestamp("us"), "cost": pa.decimal128(9, 2), "a b": "bool"}
    )
    batch = pa.RecordBatch.from_pylist(
        [{"day": pd.Timestamp("2026-01-02").date(), "at": pd.Timestamp("2026-01-02T03:04:05")}],
        schema=schema,
    )
    assert Condition("day >= '2026-01-02' and at < '2026-01-03'", schema).rows(batch).num_rows == 1
    assert Condition("day in ('2026-01-03',) or cost > '1.5'", schema).rows(batch).num_rows == 0
    assert Condition("column('a b') or day == '2026-01-02'", schema).rows(batch).num_rows == 1
    with pytest.raises(bf.UsageError, match=r"'soon' in the condition .* is not of type date32"):
        Condition("day > 'soon'", schema)


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("zip == 7", "zip is text; compare it with a text, as in zip == '7'"),
        ("-7.5 < zip", "zip is text; compare it with a text, as in zip == '-7.5'"),
        ("label in ('a', 7)", "label is text; compare it with a text, as in label == '7'"),
        ("age >= '7'", "age is a number; compare it with a number, as in age == 7"),
        ("cost == True", "cost is a number; compare it with a number, as in cost == 7"),
        ("column('is new') == 1", "a truth value; compare it with True or False, as in column"),
        ("day > 2020", "day is a date or a time; compare it with a text, as in day == '2026-01-"),
        ("at in (7,)", "compare it with a text, as in at == '2026-01-31 00:00Z'"),
        ("age == 7 and age < zip", "age is a number, and zip is text; compare columns of one kind"),
    ],
)
def test_values_of_another_kind_are_refused_with_the_remedy(condition: str, says: str) -> None:
    kinds = {
        "zip": pa.string(),
        "label": pa.dictionary(pa.int8(), pa.large_string()),
        "age": pa.int8(),
        "cost": pa.decimal128(9, 2),
        "is new": pa.bool_(),
        "day": pa.date32(),
        "at": pa.timestamp("us", "Europe/Berlin"),
    }
    with pytest.raises(bf.UsageError) as caught:
        Condition(condition, pa.schema(kinds))
    assert says in str(caught.value)
    if "as in" in says:
        Condition(str(caught.value).partition("as in ")[2], pa.schema(kinds))


def test_edges_that_meet_a_condition_stay_with_all_vertices(path: Path) -> None:
    with bf.Graph.open(path) as graph:
        with graph.filter(edges="weight > 2 and source != target") as part:
            assert list(part) == list(graph)
            assert rows(part) == [("a", "c", 4.0), ("c", "a", 3.0)]
            assert part.vertex_columns == graph.vertex_columns
        with graph.filter(edges="weight > 9") as none:
            assert (none.vertices, none.edges) == (4, 0)
        with pytest.raises(bf.InputError, match=r"no vertex of .* is left"):
            graph.filter(vertices="year > 3000")


@given(st.data())
def test_filters_are_those_of_pandas(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 12))
    ids = st.integers(-count, count)
    edges = pd.DataFrame(
        data.draw(st.lists(st.tuples(ids, ids, st.integers(-3, 3)), min_size=1, max_size=30)),
        columns=["source", "target", "weight"],
    )
    years = data.draw(
        st.dictionaries(ids, st.none() | st.integers(2018, 2022), min_size=1, max_size=12)
    )
    table = pa.table(
        {
            "vertex": pa.array(list(years), pa.int64()),
            "year": pa.array(list(years.values()), pa.int64()),
        }
    )
    undirected, least = data.draw(st.booleans()), data.draw(st.integers(2017, 2022))
    lightest = data.draw(st.integers(-3, 3))
    source = pa.Table.from_pandas(edges, preserve_index=False)
    with bf.Graph.from_arrow(source, vertex_columns=table, undirected=undirected) as graph:
        present = sorted(set(edges["source"]) | set(edges["target"]))
        kept = [one for one in present if (years.get(one) or -math.inf) >= least]
        condition = dict(vertices=f"year >= {least}", edges=f"weight >= {lightest}")
        if not kept:
            with pytest.raises(bf.InputError):
                graph.filter(**condition)
            return
        left = edges[
            edges["source"].isin(kept) & edges["target"].isin(kept) & (edges["weight"] >= lightest)
        ]
        with graph.filter(**condition) as part:
            assert list(part) == kept
            assert part.directed != undirected
            assert part.edges == len(left)
            ends = [tuple(sorted(edge[:2])) if undirected else edge[:2] for edge in rows(part)]
            wanted = left[["source", "target"]].itertuples(index=False, name=None)
            assert sorted(ends) == sorted(
                tuple(sorted(edge)) if undirected else edge for edge in wanted
            )
            assert part.vertex_rows("year").read_all()["year"].to_pylist() == [
                years[one] for one in kept
            ]


def test_subgraphs_are_those_of_networkx(path: Path) -> None:
    with bf.Graph.open(path) as graph:
        plain = graph.to_networkx()
        for ids in (["a", "c", "nobody"], pa.array(["c", "a"]), pd.Series(["e"])):
            with graph.subgraph(ids) as part:
                wanted = plain.subgraph(pd.Series(ids))
                assert list(part) == sorted(wanted)
                assert rows(part) == sorted(wanted.edges(data="weight"))
        for vertex, hops in (("a", 0), ("b", 1), ("b", 2), ("e", 5)):
            with graph.ego(vertex, hops) as near:
                assert list(near) == sorted(nx.ego_graph(plain, vertex, hops, distance=None))
        with pytest.raises(bf.NotFoundError):
            graph.ego("z")
        with pytest.raises(bf.UsageError, match="hops must be"):
            graph.ego("a", -1)
        with pytest.raises(
            bf.InputError, match="check the conditions, and that the ids are strings"
        ):
            graph.subgraph([1, 2])
        with pytest.raises(bf.UsageError, match="the ids are not vertices of type string"):
            graph.filter(table=pa.table({"vertex": [1, 2]}))
        with pytest.raises(bf.InputError, match=r"no vertex of .* is left"):
            graph.subgraph([])


def test_edges_are_turned_round_and_lose_their_direction(path: Path, tmp_path: Path) -> None:
    with bf.Graph.open(path) as graph:
        with graph.reverse(path=tmp_path / "turned.brimful") as turned:
            assert rows(turned) == sorted((b, a, w) for a, b, w in rows(graph))
            assert turned.vertex_rows().read_all() == graph.vertex_rows().read_all()
        with graph.undirected() as plain:
            assert (plain.directed, plain.edges) == (False, 5)
            assert plain.neighbors("a") == ["b", "c", "c"]
        with graph.undirected(duplicates="sum", self_loops="drop") as plain:
            assert plain.neighbors("a", weights=True) == (["b", "c"], [1.0, 7.0])
            assert plain.neighbors("e") == []
        with pytest.raises(bf.UsageError, match="already exists"):
            graph.reverse(path=tmp_path / "turned.brimful")


def test_ids_keep_their_type() -> None:
    for kind in (pa.int32(), pa.uint32(), pa.uint64(), pa.int64(), pa.string()):
        ends = pa.array([1, 3]).cast(kind)
        with bf.Graph.from_arrow(pa.table({"source": ends, "target": ends[::-1]})) as graph:
            for part in (graph.reverse(), graph.filter(vertices="vertex == vertex")):
                assert part.info()["id_type"] == graph.info()["id_type"], kind
                assert rows(part) == rows(graph)
                part.close()


def test_labels_of_a_csv_file_stay_apart(tmp_path: Path) -> None:
    """007 and 7 are two vertices, and so they are as labels."""
    table = pa.table({"source": ["007", "7"], "target": ["x", "y"]})
    with bf.Graph.from_arrow(table) as graph:
        bf.connected_components(graph).write(tmp_path / "r.csv")
        with graph.contract(bf.SavedResult(tmp_path / "r.csv")) as small:
            assert list(small) == ["007", "7"]


def test_groups_become_vertices(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with bf.Graph.open(path) as graph:
        with graph.contract(bf.connected_components(graph)) as small:
            assert rows(small) == [("a", "a", 10.0), ("e", "e", 5.0)]
        with graph.contract(bf.connected_components(graph), self_loops="drop") as small:
            assert (list(small), small.edges) == (["a", "e"], 0)
        groups = pa.table({"vertex": ["a", "b", "c"], "group": [1, 1, 2]})
        caplog.clear()
        with graph.contract(groups) as small:
            assert rows(small) == [(1, 1, 1.0), (1, 2, 6.0), (2, 1, 3.0)]
        assert "merged: duplicate edge, 1 time, first: " in caplog.text
        lost = "left out: 1 vertex without a label, and 1 edge from or to them"
        assert caplog.text.count("left out") == 1 and lost in caplog.text
        twice = pa.table({"vertex": ["a", "a"], "group": [1, 2]})
        with pytest.raises(bf.InputError, match="have vertex a more than once"):
            graph.contract(twice)
        with pytest.raises(bf.UsageError, match="vertices are integers or strings"):
            graph.contract(bf.pagerank(graph))
        with pytest.raises(bf.UsageError, match="found the columns x"):
            graph.contract(pa.table({"x": [1]}))
    with (
        bf.Graph.from_arrow(pa.table({"source": [1, 2, 3], "target": [2, 3, 1]})) as plain,
        plain.contract(pa.table({"vertex": [1, 2, 3], "group": ["x", "x", "y"]})) as small,
    ):
        assert rows(small) == [("x", "x", 1.0), ("x", "y", 1.0), ("y", "x", 1.0)]


def test_the_command_line_derives(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "part.brimful"
    words = ("derive", path, out, "--vertices", "year is not None", "--edges", "weight < 5")
    figures = succeed(*words, "--reverse", "--json", "--budget", "400M").figures
    assert (figures["vertices"], figures["edges"]) == (3, 1)
    assert figures["peak_rss_bytes"] <= 400 << 20
    with bf.Graph.open(out) as part:
        assert rows(part) == [("b", "a", 1.0)]
        assert part.vertex_columns.names == ["year", "kind"]
    assert "already exists" in refuse(USAGE, *words)
    near = tmp_path / "near.brimful"
    shown = succeed("derive", path, near, "--around", "b", "--hops", 1).out
    assert "near.brimful: 2 vertices, 1 edge, directed" in shown
    groups = tmp_path / "groups.brimful"
    pq.write_table(
        pa.table({"vertex": ["a", "b", "c"], "group": [1, 1, 2]}), tmp_path / "groups.parquet"
    )
    told = succeed("derive", path, groups, "--contract", tmp_path / "groups.parquet")
    assert "  merged: 1 duplicate\n" in told.out and "left out" not in told.out
    assert "left out: 1 vertex without a label, and 1 edge from or to them" in told.err
    with bf.Graph.open(groups) as small:
        assert rows(small) == [(1, 1, 1.0), (1, 2, 6.0), (2, 1, 3.0)]
    new = tmp_path / "new.brimful"
    assert "no derivation is named" in refuse(USAGE, "derive", path, new)
    assert "give --around too" in refuse(USAGE, "derive", path, new, "--hops", 2)
    assert "leave --duplicates out" in refuse(
        *(USAGE, "derive", path, new, "--contract", "x.parquet", "--duplicates", "drop")
    )
    assert f"no vertex of {path} is left" in refuse(
        INPUT, "derive", path, new, "--vertices", "year > 3000"
    )
    assert not new.exists()
    assert not [one for one in tmp_path.iterdir() if one.name.startswith(".")]


def test_a_run_is_on_the_part_that_meets_conditions(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "degrees.csv"
    words = ("run", "degrees", path, "--where", "kind == 'x'", "--where-edges", "weight > 3")
    shown = succeed(*words, "-o", out, "--with", "year").out
    assert "where kind == 'x' and edges weight > 3: 2 of 4 vertices, 1 of 5 edges" in shown
    assert out.read_text().split() == ["vertex,degree,year", '"a",1,2019', '"c",0,']
    figures = json.loads(succeed(*words, "--json").out.splitlines()[-1])
    assert figures["where"] == {
        "where": "kind == 'x'",
        "where_edges": "weight > 3",
        "vertices": 2,
        "edges": 1,
    }
    assert "has no checkpoints" in refuse(USAGE, *words, "--checkpoint-every", 1)
    assert "no column knd" in refuse(USAGE, "run", "degrees", path, "--where", "knd == 1")


def test_the_smallest_budget_of_a_filter_works(tmp_path: Path) -> None:
    count = 300_000
    ids = pa.array(range(count))
    far = pa.array([(7919 * n) % count for n in range(count)])
    columns = pa.table({"vertex": ids, "half": pa.array([n % 2 for n in range(count)])})
    place = tmp_path / "big.brimful"
    table = pa.table({"source": ids, "target": far})
    bf.Graph.from_arrow(table, path=place, vertex_columns=columns).close()
    words = ("derive", place, tmp_path / "half.brimful", "--vertices", "half == 0")
    refused = refuse(4, *words, "--budget", "100M")
    least = refused.split("smallest that works is ")[1].split(";")[0]
    figures = succeed(*words, "--budget", least, "--json").figures
    assert figures["vertices"] == count // 2
    assert figures["edges"] == sum(n % 2 == 0 and end.as_py() % 2 == 0 for n, end in enumerate(far))
    assert figures["peak_rss_bytes"] <= int(least[:-1]) << 20


@pytest.mark.parametrize(
    ("ids", "vertices"),
    [
        ("int", ["1", "2"]),
        ("string", [1, 2]),
        *((ids, [2.0**53, 2.0]) for ids in ("int", "string")),
        *((ids, [True, False]) for ids in ("int", "string")),
        *((ids, [b"1", b"2"]) for ids in ("int", "string")),
    ],
)
def test_ids_of_a_table_are_of_the_type_of_the_graph(ids: Any, vertices: list[Any]) -> None:
    edges = pa.table({"source": [1, 2, 2**53 + 1], "target": [2, 1, 2**53]})
    table = pa.table({"vertex": vertices, "part": [0, 1]})
    with bf.Graph.from_arrow(edges, ids=ids) as graph:
        with pytest.raises(bf.UsageError, match="the vertices of the labels have the type"):
            graph.contract(table)
        with pytest.raises(bf.UsageError, match="the ids are not vertices of type"):
            graph.filter(table=table)


def test_labels_that_are_no_table_of_arrow_are_refused() -> None:
    frame = pd.DataFrame({"vertex": [(0, "a")], "part": [1]})
    with (
        bf.Graph.from_arrow(pa.table({"source": [0], "target": [1]})) as graph,
        pytest.raises(bf.InputError, match="the labels cannot be converted to an Arrow"),
    ):
        graph.contract(frame)


def test_a_neighborhood_keeps_the_budget_of_the_graph() -> None:
    spokes = np.arange(1, 2_200_001)
    star = pa.table({"source": np.zeros_like(spokes), "target": spokes})
    refusal = pytest.raises(bf.BudgetError, match="for the edges of the neighborhood")
    with bf.Graph.from_arrow(star) as graph, refusal:
        graph.ego(0, budget="150M")


def test_a_column_that_is_elsewhere_is_named(tmp_path: Path) -> None:
    table = tmp_path / "edges.csv"
    table.write_text("source,target,weight,color\n1,2,3,red\n2,3,4,blue\n")
    graph, kept = tmp_path / "graph.brimful", tmp_path / "kept.brimful"
    succeed("import", table, graph, "--quiet")
    succeed("import", table, kept, "--edge-columns", "color", "--quiet")
    out = tmp_path / "out.brimful"

    def refused(*condition: str, of: Path = graph) -> str:
        return refuse(USAGE, "derive", of, out, *condition)

    ignored = "; the import ignored it, and --edge-columns of an import keeps it"
    assert ignored in refused("--edges", "color == 'red'")
    assert ignored in refused("--vertices", "color == 'red'")
    assert "; it is a column of edges" in refused("--vertices", "weight > 2")
    assert "; it is a column of edges" in refused("--vertices", "color == 'red'", of=kept)
    assert ignored in refuse(USAGE, "export", graph, tmp_path / "out.parquet", "--columns", "color")
    with bf.Graph.open(graph) as opened:
        with pytest.raises(bf.UsageError, match="ignored it, and edge_columns= of an import keeps"):
            opened.edge_values("color")
        with pytest.raises(bf.UsageError, match="ignored it, and edge_columns= of an import keeps"):
            opened.vertex_values("color")


def test_the_smallest_budget_of_a_part_in_python_works() -> None:
    table = pa.table({"source": [0, 1, 2], "target": [1, 2, 3]})
    with bf.Graph.from_arrow(table) as graph:
        for budget in ("1M", "51M", "100M", "110M"):
            with pytest.raises(bf.BudgetError, match="too small to derive a graph") as caught:
                graph.subgraph([0, 1], budget=budget)
        with graph.subgraph([0, 1], budget=caught.value.needed_bytes) as part:
            assert part.edges == 1
        with pytest.raises(bf.BudgetError) as caught:
            graph.ego(0, budget=1)
        with graph.ego(0, budget=caught.value.needed_bytes) as part:
            assert part.edges == 1


def test_a_join_that_outgrows_its_memory_names_a_larger_budget() -> None:
    """DuckDB takes many times the bytes of long strings."""
    names = [f"{number:05}{'x' * 2_000}" for number in range(20_000)]
    with bf.Graph.from_arrow(pa.table({"source": names, "target": names[::-1]})) as graph:
        budget = 1
        for _ in range(6):
            try:
                with graph.subgraph(names[:10_000], budget=budget) as part:
                    assert part.edges == 0
                return
            except bf.BudgetError as error:
                assert f"the smallest that works is {error.needed_bytes >> 20}M" in str(error)
                assert error.needed_bytes > budget
                budget = error.needed_bytes
    pytest.fail(f"a budget of {budget} bytes is too small")


def test_parts_keep_the_types_of_columns_of_edges() -> None:
    columns = {
        "at": pa.array([0, 1], pa.timestamp("ms", "Europe/Rome")),
        "time": pa.array([1, 2], pa.time32("s")),
        "pair": pa.array([[1, 2], [3, 4]], pa.list_(pa.int8(), 2)),
    }
    table = pa.table({"source": [1, 2], "target": [2, 3], **columns})
    with bf.Graph.from_arrow(table, edge_columns=list(columns)) as graph:
        for part in (graph.filter(vertices="vertex > 0"), graph.subgraph([1, 2]), graph.ego(1)):
            with part:
                assert part.edge_columns == graph.edge_columns
                rows = part.edge_rows(list(columns)).read_all().select(list(columns))
                assert rows.to_pylist() == table.select(list(columns)).to_pylist()[: part.edges]


@pytest.mark.parametrize("ids", [[5, 2, 1], ["é", "b", "B"]])
def test_the_source_of_an_undirected_edge_is_its_smaller_end(ids: list[Any]) -> None:
    high, middle, low = ids
    table = {"source": [high, low, middle], "target": [middle, high, low], "year": [1, 2, 3]}
    edges = [(low, middle), (low, high), (middle, high)]

    def ends(graph: bf.Graph) -> list[tuple[Any, Any]]:
        found = graph.edge_rows().read_all()
        return sorted(zip(*(found[end].to_pylist() for end in ("source", "target")), strict=True))

    kept = bf.Graph.from_arrow(pa.table(table), edge_columns=["year"], undirected=True)
    plain = bf.Graph.from_arrow(pa.table(table), ignore_extra=True, undirected=True)
    directed = bf.Graph.from_arrow(pa.table(table), edge_columns=["year"])
    with kept, plain, directed, directed.undirected() as derived:
        for graph in (kept, plain, derived, kept.reverse()):
            assert ends(graph) == sorted(edges)
            with graph.filter(edges=f"source == {low!r}") as part:
                assert ends(part) == sorted(edges[:2])


def test_a_vertex_that_a_part_lacks_is_named_with_the_condition(path: Path) -> None:
    where = ("--where", "year < 2020")
    lacks = "that meets the condition year < 2020; choose another vertex, or another --where"
    bfs = ("run", "bfs", path, *where, "--quiet", "--source")
    assert f'the graph has no vertex "e" {lacks}' in refuse(INPUT, *bfs, "e")
    assert refuse(INPUT, *bfs, "zoe").endswith('the graph has no vertex "zoe"')
    pairs = path.parent / "pairs.csv"
    pairs.write_text("source,target\na,e\n")
    refused = refuse(INPUT, "run", "similarity", path, *where, "--quiet", "--pairs", pairs)
    assert f"(row 1 after the header of {pairs}) {lacks}" in refused
