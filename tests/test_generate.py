"""Generators make the shapes they promise."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from command import USAGE, refuse, succeed


def generated(
    tmp_path: Path, *arguments: object
) -> tuple[dict[str, object], list[tuple[int, int]]]:
    """Generate and export; return the figures and the sorted edges."""
    graph, out = tmp_path / "g.brimful", tmp_path / "e.parquet"
    kind, *options = arguments
    figures = succeed("generate", kind, graph, *options, "--json").figures
    succeed("export", graph, out, "--quiet")
    table = pq.read_table(out)
    edges = sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return figures, edges


def test_a_generated_graph_has_no_lines(tmp_path: Path) -> None:
    said = succeed("generate", "ring", tmp_path / "a.brimful", "--vertices", 9).out
    assert "\n  0 self-loops, 0 duplicates\n" in said
    figures, _ = generated(tmp_path, "ring", "--vertices", 9)
    assert figures["lines"] is figures["rejected"] is None
    derived = succeed("derive", tmp_path / "a.brimful", tmp_path / "b.brimful", "--reverse").out
    assert "read" not in derived and "rejected" not in derived


def test_ring_chain_and_star(tmp_path: Path) -> None:
    for kind, expected in (
        ("ring", [(i, (i + 1) % 7) for i in range(7)]),
        ("chain", [(i, i + 1) for i in range(6)]),
    ):
        folder = tmp_path / kind
        folder.mkdir()
        figures, edges = generated(folder, kind, "--vertices", 7)
        assert (figures["vertices"], edges) == (7, sorted(expected))
    figures, edges = generated(tmp_path, "star", "--vertices", 7)
    assert figures["vertices"] == 7
    assert {frozenset(edge) for edge in edges} == {frozenset((0, leaf)) for leaf in range(1, 7)}


@pytest.mark.parametrize(("torus", "edges"), [([], 3 * 3 + 2 * 4), (["--torus"], 24)])
def test_grid(tmp_path: Path, torus: list[str], edges: int) -> None:
    figures, found = generated(tmp_path, "grid", "--rows", 3, "--columns", 4, *torus)
    assert (figures["vertices"], figures["edges"], figures["directed"]) == (12, edges, False)
    assert len(found) == edges


def test_rmat_has_hubs_and_the_edges_asked_for(tmp_path: Path) -> None:
    figures, edges = generated(tmp_path, "rmat", "--scale", 12, "--edge-factor", 8)
    assert figures["edges"] == 8 << 12 == len(edges)
    assert figures["vertices"] == 1 << 12
    degrees: dict[int, int] = {}
    for source, target in edges:
        assert 0 <= source < 1 << 12 and 0 <= target < 1 << 12
        degrees[source] = degrees.get(source, 0) + 1
    assert max(degrees.values()) > 20 * 8


def test_lognormal_degrees_are_those_of_the_code_not_of_the_print(tmp_path: Path) -> None:
    figures, edges = generated(tmp_path, "lognormal", "--vertices", 20000)
    mean = len(edges) / 20000
    assert figures["vertices"] == 20000
    assert mean == pytest.approx(math.exp(4 + 1.3**2 / 2), rel=0.1)
    assert all(source != target for source, target in edges)
    assert figures["duplicates"] == 0 and len(set(edges)) == len(edges)


def test_lognormal_degrees_end_at_all_others(tmp_path: Path) -> None:
    _, edges = generated(tmp_path, "lognormal", "--vertices", 30, "--mu", 6, "--sigma", 2)
    assert max(sum(source == vertex for source, _ in edges) for vertex in range(30)) == 29


def test_undirected(tmp_path: Path) -> None:
    figures, _ = generated(tmp_path, "ring", "--vertices", 9, "--undirected")
    assert (figures["edges"], figures["arcs"], figures["directed"]) == (9, 18, False)


def test_export_keeps_arrow_small(tmp_path: Path) -> None:
    graph, out = tmp_path / "g.brimful", tmp_path / "e.parquet"
    succeed("generate", "rmat", graph, "--scale", 16, "--quiet")
    succeed("export", graph, out, "--quiet")
    metadata = pq.ParquetFile(out).metadata
    assert metadata.num_rows == 16 << 16
    assert all(
        metadata.row_group(group).num_rows <= 1 << 18 for group in range(metadata.num_row_groups)
    )
    assert pc.max(pq.read_table(out)["source"]).as_py() < 1 << 16


def test_a_mesh_joins_each_vertex_to_fewer_than_80_earlier_ones(tmp_path: Path) -> None:
    figures, edges = generated(tmp_path, "mesh", "--vertices", 3000)
    assert (figures["vertices"], figures["directed"]) == (3000, False)
    assert figures["arcs"] == 2 * len(edges) == 2 * figures["edges"]
    assert figures["self_loops"] == figures["duplicates"] == 0
    joined = [0] * 3000
    for one, other in edges:
        joined[max(one, other)] += 1
    assert max(joined) == 79
    assert len(edges) == pytest.approx(3000 * 39.5, rel=0.05)


@pytest.mark.nightly
def test_the_infinimem_mesh_is_generated_in_bounded_memory(tmp_path: Path) -> None:
    figures = succeed(
        *("generate", "mesh", tmp_path / "g.brimful", "--vertices", 7_500_000, "--budget", "300M"),
        "--json",
        timeout=1800,
    ).figures
    assert figures["edges"] == pytest.approx(7_500_000 * 39.5, rel=1e-3)
    assert figures["arcs"] == 2 * figures["edges"]
    assert figures["peak_rss_bytes"] <= 300 << 20


def test_small_worlds(tmp_path: Path) -> None:
    shape = ("--vertices", 1000, "--neighbors", 6, "--probability")
    figures, edges = generated(tmp_path, "watts-strogatz", *shape, 0)
    assert (figures["directed"], len(edges), figures["duplicates"]) == (False, 3000, 0)
    assert {(other - one) % 1000 for one, other in edges} == {1, 2, 3, 997, 998, 999}
    (tmp_path / "rewired").mkdir()
    figures, edges = generated(tmp_path / "rewired", "watts-strogatz", *shape, 0.2)
    moved = sum((other - one) % 1000 not in {1, 2, 3, 997, 998, 999} for one, other in edges)
    assert moved == pytest.approx(600, rel=0.2) and len(edges) == 3000


@pytest.mark.parametrize("direction", [[], ["--undirected"]])
def test_random_graphs(tmp_path: Path, direction: list[str]) -> None:
    for amount in (["--edges", 5000], ["--probability", 0.5]):
        folder = tmp_path / amount[0].strip("-")  # type: ignore[union-attr]
        folder.mkdir()
        figures, edges = generated(folder, "erdos-renyi", "--vertices", 200, *amount, *direction)
        assert (figures["vertices"], figures["directed"]) == (200, not direction)
        assert figures["self_loops"] == figures["duplicates"] == 0
        pairs = 200 * 199 // (2 if direction else 1)
        if amount[0] == "--edges":
            assert len(edges) == 5000
        else:
            assert len(edges) == pytest.approx(pairs / 2, rel=0.05)


def test_impossible_parameters_are_refused(tmp_path: Path) -> None:
    for sentence, *arguments in (
        ("one of them", "erdos-renyi", "--vertices", 9),
        ("one of them", "erdos-renyi", "--vertices", 9, "--edges", 3, "--probability", 0.1),
        ("36 edges", "erdos-renyi", "--vertices", 9, "--edges", 37, "--undirected"),
        ("from 0 to 1", "erdos-renyi", "--vertices", 9, "--probability", 1.5),
        ("even", "watts-strogatz", "--vertices", 9, "--neighbors", 3, "--probability", 0),
        ("--neighbors", "watts-strogatz", "--vertices", 9, "--probability", 0),
        ("does not apply to mesh", "mesh", "--vertices", 9, "--edges", 3),
    ):
        kind, *options = arguments
        assert sentence in refuse(USAGE, "generate", kind, tmp_path / "g.brimful", *options)
