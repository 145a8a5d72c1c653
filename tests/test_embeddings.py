"""FastRP beside its formula in NumPy and SciPy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

import brimful as bf
from command import USAGE, refuse, succeed

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def mixed(x: int) -> int:
    """Return the output function of SplitMix64 (Steele, Lea, Flood 2014)."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def projection(vertices: int, dimensions: int, seed: int) -> NDArray[np.float64]:
    """Return the random matrix: a stream of numbers for 16 dimensions of a vertex."""

    def stream(seed: int, unit: int) -> int:
        """Return the state of a generator."""
        return (mixed(seed ^ 0x6272696D66756C00) + mixed((unit + GOLDEN) & MASK)) & MASK

    out = np.zeros((vertices, dimensions))
    for vertex in range(vertices):
        for dimension in range(dimensions):
            if dimension % 16 == 0:
                own = mixed((stream(seed, dimension // 16) + GOLDEN) & MASK)
                state = stream(own, vertex)
            state = (state + GOLDEN) & MASK
            face = (mixed(state) * 6) >> 64
            out[vertex, dimension] = {0: 3**0.5, 1: -(3**0.5)}.get(face, 0.0)
    return out


def expected(
    matrix: sp.csr_matrix, weights: list[float], normalization: float, random: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the embeddings of a symmetric matrix of arcs."""
    degrees = np.asarray(matrix.sum(axis=1)).ravel()
    inverse = np.divide(1, degrees, out=np.zeros_like(degrees), where=degrees > 0)
    scaled = np.where(degrees > 0, degrees, 1) / degrees.sum()
    power = np.where(degrees > 0, scaled**normalization, 0)[:, None] * random
    total = np.zeros_like(random)
    for weight in weights:
        power = inverse[:, None] * (matrix @ power)
        total += weight * power
    return total


def arcs(table: pa.Table, vertices: int, *, undirected: bool, weighted: bool) -> sp.csr_matrix:
    """Return A + A^T; an undirected self-loop is one arc."""
    source, target = (table[name].to_numpy() for name in ("source", "target"))
    weight = table["weight"].to_numpy() if weighted else np.ones(len(source))
    one_way = sp.csr_matrix((weight, (source, target)), shape=(vertices, vertices))
    both = one_way + one_way.T
    return both - sp.diags(one_way.diagonal()) if undirected else both


@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("normalization", [0.0, -0.8])
def test_embeddings_are_those_of_the_formula(
    undirected: bool, weighted: bool, normalization: float
) -> None:
    random = np.random.default_rng(7)
    vertices = 60
    ends = random.integers(0, vertices - 5, (300, 2))
    ends[0] = [0, vertices - 6]
    table = pa.table(
        {"source": ends[:, 0], "target": ends[:, 1], "weight": random.uniform(0.1, 50, 300)}
    )
    weights = [0.5, -1.0, 2.0]
    # Ids of vertices without edges lie above and among the others.
    with bf.Graph.from_arrow(
        table, weight="weight", undirected=undirected, vertices=vertices
    ) as graph:
        rows = bf.fastrp(
            graph,
            dimensions=37,
            iteration_weights=weights,
            normalization=normalization,
            seed=5,
            weighted=weighted,
        )
    matrix = arcs(table, vertices, undirected=undirected, weighted=weighted)
    wanted = expected(matrix, weights, normalization, projection(vertices, 37, 5))
    np.testing.assert_allclose(rows.to_numpy("embedding"), wanted, rtol=1e-4, atol=1e-5)
    assert rows.to_numpy("vertex").tolist() == list(range(vertices))
    assert rows.to_arrow().schema.field("embedding").type == pa.list_(pa.float32(), 37)


@pytest.fixture(scope="module")
def rmat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("embeddings") / "rmat.brimful"
    succeed("generate", "rmat", path, "--scale", 13, "--edge-factor", 8, "--quiet")
    return path


def test_the_same_bits_at_any_budget_and_number_of_threads(rmat: Path) -> None:
    whole = bf.fastrp(rmat, dimensions=40, normalization=-0.5)
    with pytest.raises(bf.BudgetError) as caught:
        bf.fastrp(rmat, dimensions=40, normalization=-0.5, threads=1, budget="1M")
    least = caught.value.needed_bytes
    small = bf.fastrp(rmat, dimensions=40, normalization=-0.5, threads=1, budget=least)
    assert small.to_arrow() == whole.to_arrow()
    # Fewer dimensions are the first of more.
    first = bf.fastrp(rmat, dimensions=16, normalization=-0.5).to_numpy("embedding")
    assert (whole.to_numpy("embedding")[:, :16] == first).all()
    other = bf.fastrp(rmat, dimensions=16, normalization=-0.5, seed=1).to_numpy("embedding")
    assert (other != first).any()


def test_ids_that_differ_in_their_first_byte_have_different_rows() -> None:
    high = 1 << 56
    table = pa.table({"source": [0, high, 2 * high], "target": [1, high + 1, 2 * high + 1]})
    with bf.Graph.from_arrow(table, undirected=True) as graph:
        rows = bf.fastrp(graph, dimensions=64, iteration_weights=[0, 1]).to_numpy("embedding")
    assert len({row.tobytes() for row in rows}) == 6


def test_weights_whose_sum_overflows_are_refused() -> None:
    table = pa.table({"source": [0, 0], "target": [1, 2], "weight": [1.5e308, 1.5e308]})
    refused = pytest.raises(bf.InputError, match="leave vertex 0 add up to more than")
    with bf.Graph.from_arrow(table, weight="weight") as graph:
        # Only a normalization needs the sums.
        rows = bf.fastrp(graph, dimensions=4, weighted=True)
        assert np.isfinite(rows.to_numpy("embedding")).all()
        with refused:
            bf.fastrp(graph, dimensions=4, weighted=True, normalization=0.5)


def test_files_of_embeddings(rmat: Path, tmp_path: Path) -> None:
    run = ["run", "fastrp", rmat, "--dimensions", 5, "--iteration-weights", "0,1", "--quiet"]
    rows = bf.fastrp(rmat, dimensions=5, iteration_weights=[0, 1])
    for suffix in ("parquet", "csv"):
        succeed(*run, "-o", tmp_path / f"e.{suffix}")
    table = pq.read_table(tmp_path / "e.parquet")
    assert table.schema.field("embedding").type == pa.list_(pa.float32(), 5)
    assert table["embedding"].to_pylist() == rows.to_arrow()["embedding"].to_pylist()
    header, line = (tmp_path / "e.csv").read_text().splitlines()[:2]
    vertex, numbers = line.split(",")
    assert header == "vertex,embedding"
    assert np.float32(numbers.split()).tolist() == rows.to_numpy("embedding")[0].tolist()
    assert vertex == str(rows.to_numpy("vertex")[0])


def test_near_neighborhoods_have_near_embeddings() -> None:
    # Two cliques that one edge joins.
    ends = [(a + 10 * c, b + 10 * c) for c in (0, 1) for a in range(10) for b in range(a)]
    ends.append((0, 10))
    table = pa.table({"source": [a for a, _ in ends], "target": [b for _, b in ends]})
    with bf.Graph.from_arrow(table, undirected=True) as graph:
        numbers = bf.fastrp(graph, dimensions=256).to_numpy("embedding")
    unit = numbers / np.linalg.norm(numbers, axis=1, keepdims=True)
    near = unit @ unit.T
    assert near[1:10, 1:10].min() > near[1:10, 11:].max() + 0.3


def test_bad_parameters_are_refused(rmat: Path) -> None:
    for wrong, message in (
        ({"dimensions": 0}, "dimensions must be from 1 to 4096, not 0"),
        ({"iteration_weights": []}, "iteration_weights must be 1 to 64 numbers, not 0"),
        ({"iteration_weights": "1,x"}, "iteration_weights must be numbers"),
        ({"iteration_weights": [1, float("nan")]}, "iteration_weights must be numbers"),
        ({"weighted": True}, "no edge weights"),
        ({"dimensions": 2, "normalization": -1e4}, "an embedding exceeds a 32-bit float"),
        ({"dimensions": 2, "iteration_weights": [1e308]}, "an embedding exceeds a 32-bit float"),
    ):
        with pytest.raises(bf.UsageError, match=message):
            bf.fastrp(rmat, **wrong)
    sentence = refuse(USAGE, "run", "fastrp", rmat, "--top", 3, "--quiet")
    assert "have no order" in sentence


def test_the_example_of_node2vec_finds_cliques(tmp_path: Path) -> None:
    pytest.importorskip("gensim", reason="gensim is not installed (requirements/docs.txt)")
    # Two cliques of ten vertices, joined by an edge.
    pairs = [(base + a, base + b) for base in (0, 100) for a in range(10) for b in range(a)]
    ends = dict(zip(("source", "target"), zip(*pairs, (0, 100), strict=True), strict=True))
    graph, out = tmp_path / "g.brimful", tmp_path / "vectors.txt"
    pq.write_table(pa.table(ends), tmp_path / "edges.parquet")
    succeed("import", tmp_path / "edges.parquet", graph, "--undirected", "--quiet")
    example = Path(__file__).resolve().parent.parent / "examples" / "node2vec.py"
    subprocess.run([sys.executable, example, graph, out, "16"], check=True, timeout=120)
    head, *lines = out.read_text().splitlines()
    assert head == "20 16"
    vectors = {int(line.split()[0]): np.array(line.split()[1:], float) for line in lines}
    unit = {vertex: vector / np.linalg.norm(vector) for vertex, vector in vectors.items()}
    within = np.mean([unit[a] @ unit[b] for a, b in pairs])
    across = np.mean([unit[a] @ unit[100 + b] for a in range(10) for b in range(10)])
    assert within > across + 0.1, (within, across)
