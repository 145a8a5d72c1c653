"""Weights, self-loops and duplicates: an import keeps, makes, merges and counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import brimful as bf
from command import USAGE, refuse, succeed

#: Two self-loops on 5, of which one is a duplicate; 1 -> 2 three times; 2 -> 1 once.
LINES = ["1 2 4", "1 2 0.5", "5 5 7", "2 1 -3", "1 2 4", "5 5 1", "9 1 2"]


def hashed(one: int, other: int) -> int:
    """The weight of `--weights hash`, from its definition."""
    mask = 2**64 - 1
    low, high = sorted((one & mask, other & mask))
    z = ((low * 0x9E3779B97F4A7C15 & mask) ^ high) + 0x9E3779B97F4A7C15 & mask
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
    return 1 + (z ^ z >> 31) % 100


def imported(
    tmp_path: Path, lines: Iterable[str], *options: str
) -> tuple[dict[str, object], Counter[tuple[float, ...]]]:
    """Import lines and export them again; return the figures and the multiset of edges."""
    text, graph, out = tmp_path / "e.txt", tmp_path / "g.brimful", tmp_path / "e.parquet"
    lines = list(lines)
    weighted = len(lines[0].split()) == 3
    text.write_text("".join(line + "\n" for line in ["u v w" if weighted else "u v", *lines]))
    figures = succeed("import", text, graph, *options, "--json").figures
    succeed("verify", graph, "--quiet")
    succeed("export", graph, out, "--quiet")
    columns = [column.to_pylist() for column in pq.read_table(out).columns]
    return figures, Counter(zip(*columns, strict=True))


def counts(figures: dict[str, object]) -> list[object]:
    """Return edges, self-loops and duplicates seen, then those dropped."""
    names = ("edges", "self_loops", "duplicates", "self_loops_dropped", "duplicates_dropped")
    return [figures[name] for name in names]


def test_everything_is_kept_by_default(tmp_path: Path) -> None:
    figures, edges = imported(tmp_path, LINES)
    assert counts(figures) == [7, 2, 3, 0, 0]
    assert edges.total() == 7 and edges[1, 2, 4.0] == 2


@pytest.mark.parametrize(
    ("choice", "kept"),
    [
        ("drop", [(1, 2, 4), (5, 5, 7), (2, 1, -3), (9, 1, 2)]),
        ("min", [(1, 2, 0.5), (5, 5, 1), (2, 1, -3), (9, 1, 2)]),
        ("sum", [(1, 2, 8.5), (5, 5, 8), (2, 1, -3), (9, 1, 2)]),
    ],
)
def test_duplicates(tmp_path: Path, choice: str, kept: list[tuple[float, ...]]) -> None:
    figures, edges = imported(tmp_path, LINES, "--duplicates", choice, "--index", "in,reverse")
    assert counts(figures) == [4, 2, 3, 0, 3]
    # The header is a line, too.
    assert (figures["arcs"], figures["lines"]) == (4, 8)
    assert edges == Counter(kept)


def test_duplicates_of_undirected_edges_have_no_order(tmp_path: Path) -> None:
    figures, edges = imported(tmp_path, LINES, "--undirected", "--duplicates", "sum")
    assert counts(figures) == [3, 2, 4, 0, 4] and figures["arcs"] == 5
    assert {(*sorted(ends), weight) for *ends, weight in edges} == {
        (1, 2, 5.5),
        (5, 5, 8),
        (1, 9, 2),
    }


def test_the_sum_of_edges_without_weights_is_their_number(tmp_path: Path) -> None:
    lines = [" ".join(line.split()[:2]) for line in LINES]
    figures, edges = imported(tmp_path, lines, "--duplicates", "sum")
    assert figures["weighted"] is True
    assert edges == Counter([(1, 2, 3.0), (5, 5, 2.0), (2, 1, 1.0), (9, 1, 1.0)])


def test_dropped_self_loops_leave_their_vertices(tmp_path: Path) -> None:
    figures, edges = imported(tmp_path, LINES, "--self-loops", "drop")
    assert counts(figures) == [5, 2, 3, 2, 0] and figures["vertices"] == 4
    assert all(source != target for source, target, _ in edges)
    shown = succeed("import", tmp_path / "e.txt", tmp_path / "h.brimful", "--self-loops", "drop")
    assert "left out: 2 self-loops" in shown.out


def test_sparse_ids_are_merged_too(tmp_path: Path) -> None:
    lines = [f"{2**60} {-5}", f"{2**60} {-5}", "-5 -5", f"{-5} {2**60}"]
    options = ("--undirected", "--duplicates", "drop", "--self-loops", "drop")
    figures, edges = imported(tmp_path, lines, *options)
    assert counts(figures) == [1, 1, 2, 1, 2] and edges.total() == 1


def test_sums_beyond_floating_point_are_refused(tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_text("u v w\n1 2 1e308\n1 2 1e308\n")
    arguments = (tmp_path / "e.txt", tmp_path / "g.brimful", "--duplicates", "sum")
    says = f"{arguments[0]}: the weights of parallel edges"
    assert says in refuse(3, "import", *arguments)
    assert not (tmp_path / "g.brimful").exists()


def test_hashed_weights_are_the_formula(tmp_path: Path) -> None:
    lines = ["0 1", "41 42", "42 41", f"-7 {2**62}", "3 3"]
    figures, edges = imported(tmp_path, lines, "--weights", "hash")
    assert figures["weighted"] is True
    assert (hashed(0, 1), hashed(41, 42)) == (66, 35)
    for source, target, weight in edges:
        assert weight == hashed(int(source), int(target))
    info = succeed("info", tmp_path / "g.brimful", "--json").figures
    assert info["weight_min"] == min(weight for *_, weight in edges)
    assert info["weight_max"] == max(weight for *_, weight in edges)


@pytest.mark.parametrize("direction", [[], ["--undirected"]])
def test_hashed_weights_replace_those_of_the_input(tmp_path: Path, direction: list[str]) -> None:
    _, edges = imported(tmp_path, LINES, "--weights", "hash", *direction)
    assert edges.total() == 7
    assert all(weight == hashed(int(s), int(t)) for s, t, weight in edges)


def test_generated_graphs_can_have_hashed_weights(tmp_path: Path) -> None:
    graph, out = tmp_path / "g.brimful", tmp_path / "e.parquet"
    figures = succeed(
        *("generate", "rmat", graph, "--scale", 8, "--weights", "hash", "--json"),
        *("--index", "in,reverse"),
    ).figures
    assert figures["weighted"] is True
    succeed("export", graph, out, "--quiet")
    for row in pq.read_table(out).to_pylist():
        assert row["weight"] == hashed(row["source"], row["target"])


def test_hashed_weights_take_a_byte(tmp_path: Path) -> None:
    sizes = []
    for weights in ("none", "hash"):
        graph = tmp_path / f"{weights}.brimful"
        arguments = ("generate", "rmat", graph, "--scale", 14, "--weights", weights, "--json")
        sizes.append(succeed(*arguments).figures["bytes_on_disk"])
    # And 8 bytes a vertex for the sums of weights.
    assert sizes[1] - sizes[0] < (16 << 14) * 1.01 + (8 << 14) + 20_000


@pytest.mark.parametrize("weight", ["nan", "inf", "-inf", "NaN"])
def test_weights_that_are_no_finite_numbers_are_named_with_their_line(
    tmp_path: Path, weight: str
) -> None:
    (tmp_path / "e.txt").write_text(f"u v w\n1 2 0.5\n2 3 {weight}\n")
    sentence = refuse(3, "import", tmp_path / "e.txt", tmp_path / "g.brimful", "--quiet")
    assert "e.txt:3:5" in sentence and f'"{weight}"' in sentence
    table = pa.table({"source": [1, 2], "target": [2, 3], "weight": [0.5, float(weight)]})
    with pytest.raises(bf.InputError, match=r"row 2, column .weight."):
        bf.Graph.from_arrow(table)


def test_the_range_of_weights_is_known_before_a_run(tmp_path: Path) -> None:
    table = pa.table({"source": [1, 2, 1], "target": [2, 3, 2], "weight": [0.5, -2.0, 8.0]})
    with bf.Graph.from_arrow(table) as graph:
        assert (graph.info()["weight_min"], graph.info()["weight_max"]) == (-2.0, 8.0)
    with bf.Graph.from_arrow(table, duplicates="min") as graph:
        assert (graph.info()["weight_min"], graph.info()["weight_max"]) == (-2.0, 0.5)
    with bf.Graph.from_arrow(table.select(["source", "target"])) as graph:
        assert graph.info()["weight_min"] is None


def test_names_are_checked(tmp_path: Path) -> None:
    table = pa.table({"source": [1], "target": [2]})
    for name, wrong, known in (
        ("weights", "x", "input or hash"),
        ("self_loops", "sum", "keep or drop"),
        ("duplicates", "max", "keep, drop, sum or min"),
    ):
        with pytest.raises(bf.UsageError, match=f"{name} must be {known}, not {wrong}"):
            bf.Graph.from_arrow(table, **{name: wrong})  # type: ignore[arg-type]
    (tmp_path / "e.txt").write_text("1 2\n")
    arguments = (tmp_path / "e.txt", tmp_path / "g.brimful")
    assert "drop" in refuse(USAGE, "import", *arguments, "--duplicates", "max")
