"""Quick looks at results: `top` and `compare`, and the same in Python."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import scipy.stats

import brimful as bf
from brimful.cli.compare_verb import DIFFERENT
from brimful.io.output import write_table
from brimful.sizes import parse_budget
from brimful.tables.result_rows import largest, open_table
from cgroup import hard_limit
from command import (
    BUDGET,
    DONE,
    INPUT,
    USAGE,
    brimful,
    refuse,
    succeed,
)
from nightly import rows_with_nightly, with_nightly
from result_files import FORMATS, written


def test_lists_are_equal_or_not_and_have_no_order(tmp_path: Path) -> None:
    edges = pa.table({"source": [1, 2, 3], "target": [2, 3, 4]})
    with bf.Graph.from_arrow(edges) as graph:
        bf.fastrp(graph, dimensions=8).write(tmp_path / "a.parquet")
        bf.fastrp(graph, dimensions=8, seed=7).write(tmp_path / "b.parquet")
    one, other = tmp_path / "a.parquet", tmp_path / "b.parquet"
    assert "lists in the column embedding of" in refuse(USAGE, "top", one)
    assert bf.compare(one, one).differing == 0
    assert bf.compare(one, other).differing > 0


def test_a_tolerance_that_is_no_number_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("vertex,value\n1,0.5\n")
    for wrong in ("x", -1, math.nan):
        with pytest.raises(bf.UsageError, match="tolerance must be "):
            bf.compare(path, path, tolerance=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", FORMATS)
def test_top_prints_what_run_prints(rmat: Path, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"ranks.{suffix}"
    ran = succeed("run", "pagerank", rmat, "--top", 12, "-o", path, "--quiet")
    assert succeed("top", path, "-n", 12).out == ran.out
    figures = succeed("top", path, "--json").figures
    assert figures["column"] == "pagerank"
    assert [f"{vertex}\t{value}" for vertex, value in figures["rows"]] == ran.out.split("\n")[1:11]


def correlated(one: list[Any], other: list[Any]) -> float:
    return float(scipy.stats.spearmanr(one, other).statistic)


def test_a_comparison_agrees_with_numpy_and_scipy(tmp_path: Path) -> None:
    random = np.random.default_rng(26)
    count = 200_000
    ids = np.sort(random.choice(2**40, count, replace=False))
    first = np.round(random.random(count), 3)
    second = np.where(random.random(count) < 0.01, first + 0.5, first * (1 + 1e-12))
    # Each lacks some vertices of the other, also at both ends.
    here, there = ids % 7 != 0, ids % 11 != 0
    here[0], there[-1] = False, False
    one = written(tmp_path / "1.parquet", ids[here], first[here])
    other = written(tmp_path / "2.csv", ids[there], second[there])
    found = bf.compare(one, other, top=5)
    both = here & there
    gaps = np.abs(first - second)[both]
    assert found.vertices == both.sum()
    assert (found.only_first, found.only_second) == ((here & ~there).sum(), (there & ~here).sum())
    assert found.differing == (gaps > 0.4).sum() and found.tolerance == 1e-9
    assert found.largest_difference == gaps.max() and not found.equal
    assert found.rank_correlation == pytest.approx(correlated(first[both], second[both]))
    sizes = [abs(a - b) for _, a, b in found.differences]
    assert sizes == sorted(gaps, reverse=True)[:5]
    known = dict(zip(ids.tolist(), zip(first.tolist(), second.tolist(), strict=True), strict=True))
    assert all(known[vertex] == (a, b) for vertex, a, b in found.differences)
    back = bf.compare(other, one, top=0)
    assert (back.vertices, back.differing, back.differences) == (both.sum(), found.differing, [])


def test_integers_are_compared_exactly_and_floats_within_a_tolerance(tmp_path: Path) -> None:
    one = written(tmp_path / "1.csv", [1, 2, 3], [2**60, 5, 7])
    other = written(tmp_path / "2.parquet", [1, 2, 3], [2**60 + 1, 5, 7])
    found = bf.compare(one, other)
    assert (found.differing, found.tolerance) == (1, 0.0)
    assert found.differences == [(1, 2**60, 2**60 + 1)]
    assert bf.compare(one, other, tolerance=1e-9).equal
    near = pa.table({"vertex": [1], "x": [1.0]}), pa.table({"vertex": [1], "x": [1 + 1e-8]})
    assert not bf.compare(*near).equal and bf.compare(*near, tolerance=1e-7).equal


def test_missing_values_nan_and_infinity() -> None:
    ids = list(range(6))
    nan, inf = float("nan"), float("inf")
    one = pa.table({"vertex": ids, "x": [None, None, nan, inf, inf, 1.0]})
    other = pa.table({"vertex": ids, "x": [None, 1.0, nan, inf, -inf, nan]})
    found = bf.compare(one, other)
    assert found.differing == 3
    assert [vertex for vertex, _, _ in found.differences] == [1, 4, 5]
    assert found.differences[0] == (1, None, 1.0)
    assert bf.compare(one, one).equal and bf.compare(other, other).equal


def test_texts_are_equal_or_not() -> None:
    one = pa.table({"vertex": ["a", "b", "é"], "component": ["a", "a", "é"]})
    other = pa.table({"vertex": ["a", "c", "é"], "component": ["a", "a", "a"]})
    found = bf.compare(one, other)
    assert (found.vertices, found.only_first, found.only_second) == (2, 1, 1)
    assert found.differences == [("é", "é", "a")]
    assert found.largest_difference is None and found.rank_correlation is None


def test_ids_beyond_signed_integers() -> None:
    one = pa.table({"vertex": pa.array([1, 2**63, 2**64 - 1], pa.uint64()), "x": [1, 2, 3]})
    other = pa.table({"vertex": pa.array([1, 2], pa.int64()), "x": [1, 2]})
    found = bf.compare(one, other)
    assert (found.vertices, found.only_first, found.only_second) == (1, 2, 1)


def test_what_cannot_be_compared_is_refused() -> None:
    ids, texts = pa.table({"vertex": [1], "x": [1]}), pa.table({"vertex": ["a"], "x": [1]})
    with pytest.raises(bf.UsageError, match="integers and those of the other are strings"):
        bf.compare(ids, texts)
    with pytest.raises(bf.UsageError, match="one column has numbers"):
        bf.compare(ids, pa.table({"vertex": [1], "x": ["a"]}))
    with pytest.raises(bf.UsageError, match="tolerance must be at least 0"):
        bf.compare(ids, ids, tolerance=-1.0)
    with pytest.raises(bf.UsageError, match="must be a result, a path or a table"):
        bf.compare(ids, 5)
    for wrong in ([2, 1], [1, 1], [1, None]):
        with pytest.raises(bf.InputError, match="each vertex once, in ascending order"):
            bf.compare(pa.table({"vertex": wrong, "x": [1, 2]}), ids)
    with pytest.raises(bf.InputError, match="must begin with the columns vertex"):
        bf.compare(pa.table({"x": [1], "vertex": [1]}), ids)


def test_ranks_that_do_not_fit_the_budget_are_left_out() -> None:
    count = 300_000
    one = pa.table({"vertex": range(count), "x": np.arange(count)})
    assert bf.compare(one, one, budget="100M").rank_correlation == 1.0
    few = bf.compare(one, one, budget="10M")
    assert few.rank_correlation is None and few.equal and few.vertices == count


def test_the_exit_code_says_whether_results_differ(rmat: Path, tmp_path: Path) -> None:
    paths = [tmp_path / "power.parquet", tmp_path / "delta.csv", tmp_path / "loose.arrow"]
    for path, more in zip(paths, ([], ["--method", "delta"], ["--tolerance", 0.1]), strict=True):
        succeed("run", "pagerank", rmat, *more, "-o", path, "--quiet")
    same = brimful("compare", paths[0], paths[0])
    assert same.code == DONE and "are equal" in same.out and "rank correlation 1" in same.out
    differing = brimful("compare", paths[0], paths[2], "-n", 2)
    assert (differing.code, differing.err) == (DIFFERENT, "")
    lines = differing.out.strip().split("\n")
    assert lines[0].endswith("differ") and lines[-3].startswith("vertex\tpagerank (first)\t")
    assert brimful("compare", *paths[:2], "--tolerance", 0.01, "--quiet").code == DONE
    told = brimful("compare", paths[0], paths[2], "--json", "-n", 1)
    figures = told.figures
    assert told.code == DIFFERENT and figures["equal"] is False
    assert figures["columns"] == ["pagerank", "pagerank"] and len(figures["differences"]) == 1
    assert figures["differing"] == bf.compare(paths[0], paths[2]).differing > 0


def test_columns_of_different_names_are_compared_with_a_note(tmp_path: Path) -> None:
    paths = [tmp_path / "ranks.csv", tmp_path / "degrees.csv"]
    for path, column in zip(paths, ("pagerank", "degree"), strict=True):
        path.write_text(f"vertex,{column}\n1,1\n2,3\n")
    note = "note: pagerank of the first is compared with degree of the second"
    assert note in succeed("compare", *paths).out
    assert "note" not in succeed("compare", paths[0], paths[0]).out
    assert succeed("compare", *paths, "--json").figures["columns"] == ["pagerank", "degree"]


def test_top_takes_the_number_of_rows_by_both_names(tmp_path: Path) -> None:
    path = tmp_path / "ranks.csv"
    path.write_text("vertex,rank\n1,5\n2,7\n3,6\n")
    for option in ("-n", "--top"):
        assert succeed("top", path, option, 2).out == "vertex\trank\n2\t7\n3\t6\n"


ROWS = {
    "similarity": ["--k", 2],
    "ktruss": [],
    "bridges": [],
    "random_walks": ["--walks", 1, "--length", 3],
    "eccentricity": ["--source", 0, "--source", 7],
}


@pytest.fixture(scope="module")
def saved_rows(rmat: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of rows of each algorithm in each format."""
    folder = tmp_path_factory.mktemp("rows")
    for algorithm, options in ROWS.items():
        path = folder / f"{algorithm}.parquet"
        succeed("run", algorithm, rmat, *options, "-o", path, "--quiet")
        table = pq.read_table(path)
        with pa.ipc.new_file(path.with_suffix(".arrow"), table.schema) as writer:
            writer.write_table(table)
        pa.csv.write_csv(table, path.with_suffix(".csv"))
    return folder


def tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*table.to_pydict().values(), strict=True))


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("algorithm", with_nightly(list(ROWS)[:3], list(ROWS)[3:]))
def test_rows_are_looked_at(saved_rows: Path, algorithm: str, suffix: str) -> None:
    path = saved_rows / f"{algorithm}.{suffix}"
    rows = tuples(pq.read_table(saved_rows / f"{algorithm}.parquet"))
    found = succeed("top", path, "-n", 5, "--json").figures
    valued = [row for row in rows if row[-1] is not None]
    best = sorted(valued, key=lambda row: row[-1], reverse=True)[:5]
    assert [tuple(row) for row in found["rows"]] == best and found["column"] == found["columns"][-1]
    same = bf.compare(path, saved_rows / f"{algorithm}.parquet")
    assert same.equal and same.vertices == len(rows) and same.differences == []
    with pytest.raises(bf.InputError, match="is not a result: expected the column vertex"):
        bf.SavedResult(path)


def test_a_graph_is_no_result(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("1 2\n")
    graph = tmp_path / "g.brimful"
    succeed("import", tmp_path / "in.txt", graph, "--quiet")
    assert "g.brimful is a graph, not a result" in refuse(INPUT, "top", graph)


def test_rows_are_compared_by_their_keys(saved_rows: Path, tmp_path: Path) -> None:
    """Some rows are left out, one is added, all are in another order, and three values differ."""
    table = pq.read_table(saved_rows / "similarity.parquet")
    drawn = np.random.default_rng(1).permutation(len(table))
    before = tuples(table.take(pa.array(drawn[5:])))
    more = [0.5, 0.25, 1.0, *[0.0] * (len(before) - 3)]
    after = [(*row[:2], row[2] + one) for row, one in zip(before, more, strict=True)]
    columns = zip(*after, (-1, -2, 0.0), strict=True)
    other = pa.table(dict(zip(table.column_names, map(list, columns), strict=True)))
    found = bf.compare(table, other, top=2)
    assert found.keys == ("source", "target") and found.columns == ("score", "score")
    assert (found.vertices, found.only_first, found.only_second) == (len(table) - 5, 5, 1)
    assert (found.differing, found.largest_difference) == (3, 1.0)
    assert found.differences == [(*before[at], after[at][2]) for at in (2, 0)]
    expected = correlated([row[2] for row in before], [row[2] for row in after])
    assert found.rank_correlation == pytest.approx(expected)
    pq.write_table(other, tmp_path / "other.parquet")
    told = brimful("compare", saved_rows / "similarity.csv", tmp_path / "other.parquet", "-n", 1)
    assert told.code == DIFFERENT
    assert "rows in one only: 5 in the first, 1 in the second" in told.out
    assert "\nsource\ttarget\tscore (first)\tscore (second)\n" in told.out


def test_rows_that_cannot_be_compared_are_refused(saved_rows: Path) -> None:
    pairs = pa.table({"source": [1, 1], "target": [2, 2], "score": [0.5, 0.5]})
    with pytest.raises(bf.InputError, match="rows with the same source, target"):
        bf.compare(pairs, pairs)
    with pytest.raises(bf.UsageError, match="compare results of the same algorithm"):
        bf.compare(pairs, saved_rows / "random_walks.parquet")
    texts = pa.table({"source": ["a"], "target": ["b"], "score": [0.5]})
    with pytest.raises(bf.UsageError, match="integers and those of the other are strings"):
        bf.compare(pairs, texts)
    with pytest.raises(bf.BudgetError, match="too small for a join"):
        bf.compare(texts, texts, budget="50M")
    bridges = saved_rows / "bridges.parquet"
    with pytest.raises(bf.UsageError, match="compare results of the same algorithm"):
        bf.compare(pa.table({"vertex": [1], "degree": [2]}), bridges)
    found = bf.compare(bridges, pq.read_table(bridges).slice(1))
    assert (found.columns, found.only_first, found.equal) == (None, 1, False)


@pytest.mark.parametrize(
    ("names", "budget"),
    rows_with_nightly([(["source", "target"], "500M")], [(["vertex"], "300M")]),
)
def test_a_comparison_stays_within_its_budget(
    tmp_path: Path, names: list[str], budget: str
) -> None:
    """The ranks of so many rows fit; a smaller budget is refused."""
    count = 1_000_000 if names == ["vertex"] else 300_000
    random = np.random.default_rng(3)
    values = random.random(count)
    paths = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    for path, more in zip(paths, (0.0, 1e-3), strict=True):
        ids = [np.arange(count)] if len(names) == 1 else [random.permutation(count)] * 2
        table = pa.table([*ids, values + more], names=[*names, "score"])
        pq.write_table(table, path)
    with hard_limit(parse_budget(budget) or 0) as enter:
        told = brimful("compare", *paths, "--budget", budget, "--json", before=enter)
        refused = refuse(BUDGET, "compare", *paths, "--budget", "100M", before=enter)
    figures = told.figures
    assert told.code == DIFFERENT and figures["differing"] > 0.9 * count
    assert figures["rank_correlation"] is not None
    assert figures["peak_rss_bytes"] <= figures["budget_bytes"]
    least = refused.rsplit("smallest that works is ", 1)[1].rstrip(".\n")
    with hard_limit(parse_budget(least) or 0) as enter:
        assert brimful("compare", *paths, "--budget", least, before=enter).code == DIFFERENT


@pytest.fixture(scope="module")
def long_named(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One result of 150,000 ids of 207 bytes in each format."""
    folder = tmp_path_factory.mktemp("long")
    count = 150_000
    names = [f"n{number:06d}".ljust(207, "q") for number in range(count)]
    table = pa.table({"vertex": names, "score": [number * 7919 % 1000 for number in range(count)]})
    paths = [folder / f"r.{suffix}" for suffix in ("csv", "parquet", "arrow")]
    for path in paths:
        write_table(lambda: table, str(path), overwrite=False)
    return paths


@pytest.mark.nightly
@pytest.mark.parametrize("budget", ["16M", "96M", "160M"])
def test_results_of_long_ids_are_read_in_the_budget_that_a_refusal_names(
    long_named: list[Path], budget: str
) -> None:
    csv, parquet, arrow = long_named
    every = ["top", csv, "-n", 150_000]
    commands: list[tuple[list[object], int]] = [
        (["compare", csv, arrow], 0),
        (["top", parquet], 11),
        ([*every, "--json"], 1),
    ]
    if budget != "16M":
        commands += [(["compare", parquet, arrow], 0), (every, 150_001)]
    for words, lines in commands:
        given = budget
        with hard_limit(parse_budget(given) or 0) as enter:
            done = brimful(*words, "--budget", given, "--quiet", before=enter)
        if done.code == BUDGET:
            given = done.err.rsplit("smallest that works is ", 1)[1].rstrip(".\n")
            with hard_limit(parse_budget(given) or 0) as enter:
                done = brimful(*words, "--budget", given, "--quiet", before=enter)
        assert (done.code, len(done.out.splitlines())) == (0, lines), (words, given, done.err)


def test_rows_beyond_the_budget_take_further_passes(tmp_path: Path) -> None:
    values = [(None, math.nan, math.inf, 1.5, number / 3)[number % 5] for number in range(3000)]
    path = tmp_path / "r.parquet"
    table = pa.table({"vertex": list(range(3000)), "score": values})
    pq.write_table(table, path, row_group_size=100)
    rows = [(number, value) for number, value in enumerate(values) if value is not None]
    rows.sort(key=lambda row: (math.isnan(row[1]), 0.0 if math.isnan(row[1]) else -row[1], row[0]))
    for count, room in ((1, 100), (100, 1000), (3000, 1000), (3000, None)):
        found = largest(open_table(str(path)), ["vertex", "score"], count, room)
        assert repr(list(found)) == repr(rows[:count])


@pytest.mark.parametrize("words", [[], ["--json"], ["--in", "--weights"]])
def test_neighbors_with_long_ids_stream_in_the_budget_that_a_refusal_names(
    tmp_path: Path, words: list[str]
) -> None:
    names = [f"n{number:06d}".ljust(207, "q") for number in range(60_000)]
    text, graph = tmp_path / "names.csv", tmp_path / "names.brimful"
    with text.open("w") as file:
        file.write("source,target,weight\n")
        file.writelines(f"{names[0]},{name},0.5\n{name},{names[0]},0.5\n" for name in names[1:])
    succeed("import", text, graph, "--index", "in,reverse", "--quiet")
    command = ["neighbors", graph, names[0], *words, "--quiet"]
    least = refuse(BUDGET, *command, "--budget", "16M").rsplit("that works is ", 1)[1].rstrip(".\n")
    with hard_limit(parse_budget(least) or 0) as enter:
        streamed = succeed(*command, "--budget", least, before=enter).out
    assert streamed == succeed(*command, "--budget", "1G").out
    if not words:
        assert streamed.splitlines()[1:] == names[1:]
