"""Integer weights between two floats: refused in every input, as no float of 64 bits holds them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import brimful as bf
from command import INPUT, refuse, succeed
from test_import import edges_of

#: 2^53 + 1, and the float nearest to it.
ROUNDED, NEAREST = 2**53 + 1, 2**53

TEXTS = {
    "a.csv": "source,target,weight\n1,2,{}\n2,1,{}\n",
    "quoted.csv": 'source,target,weight\n1,2,"{}"\n2,1,"{}"\n',
    "a.mtx": "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 {}\n2 1 {}\n",
    "a.gr": "p sp 2 2\na 1 2 {}\na 2 1 {}\n",
}


@pytest.mark.parametrize(("name", "ids"), [(name, "int") for name in TEXTS] + [("a.csv", "string")])
def test_a_text(tmp_path: Path, name: str, ids: str) -> None:
    path, graph = tmp_path / name, tmp_path / "g.brimful"
    path.write_text(TEXTS[name].format(3, ROUNDED))
    command = ["import", path, graph, "--quiet", "--ids", ids]
    sentence = refuse(INPUT, *command)
    line = TEXTS[name].count("\n")
    for words in (f"{name}:{line}:", str(ROUNDED), f"to which {NEAREST} is nearest", "skip"):
        assert words in sentence
    if name.endswith(".csv"):
        figures = succeed(*command, "--on-error", "skip", "--json").figures
        assert (figures["edges"], figures["rejected"]) == (1, 1)
        assert figures["rejections"][0]["reason"] == "integer weight between two floats"
    # A fraction is rounded, and floats beyond are exact.
    path.write_text(TEXTS[name].format(f"{ROUNDED}.0", 2**60))
    again = tmp_path / "again.brimful"
    succeed("import", path, again, "--quiet")
    assert [weight for _, _, weight in edges_of(again)] == [NEAREST, 2**60]


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64()])
@pytest.mark.parametrize("ids", [[1, 2], ["a", "b"]])
def test_a_column(tmp_path: Path, kind: pa.DataType, ids: list[object]) -> None:
    table = pa.table({"source": ids, "target": ids, "weight": pa.array([3, ROUNDED], kind)})
    path, graph = tmp_path / "a.parquet", tmp_path / "g.brimful"
    pq.write_table(table, path)
    sentence = refuse(INPUT, "import", path, graph, "--quiet")
    for words in ("row 2", str(ROUNDED), f"to which {NEAREST} is nearest", "skip"):
        assert words in sentence
    with pytest.raises(bf.InputError, match=f"{NEAREST} is nearest"):
        bf.Graph.from_arrow(table)
    with bf.Graph.from_arrow(table, on_error="skip") as made:
        assert made.edges == 1
    floats = table.set_column(2, "weight", pa.array([3, ROUNDED], kind).cast("float64", safe=False))
    with bf.Graph.from_arrow(floats) as made:
        assert sorted(made.to_arrow()["weight"].to_pylist()) == [3, NEAREST]
    exact = table.set_column(2, "weight", pa.array([2**62, None], kind).fill_null(NEAREST))
    with bf.Graph.from_arrow(exact) as made:
        assert sorted(made.to_arrow()["weight"].to_pylist()) == [NEAREST, 2**62]


def test_objects_of_other_packages() -> None:
    network = nx.DiGraph()
    network.add_edge(1, 2, weight=ROUNDED)
    matrix = sp.coo_array(([ROUNDED], ([0], [1])), shape=(2, 2))
    numbers = nx.DiGraph()
    numbers.add_edge(1, 2, weight=np.uint64(2**64 - 1))
    imports: list[tuple[Callable[[], object], int]] = [
        (lambda: bf.Graph.from_networkx(network), NEAREST),
        (lambda: bf.Graph.from_networkx(numbers), 2**64),
        (lambda: bf.Graph.from_scipy(matrix), NEAREST),
    ]
    for call, nearest in imports:
        with pytest.raises(bf.InputError, match=f"the nearest float of 64 bits is {nearest}"):
            call()


def test_a_graph_of_xml(tmp_path: Path) -> None:
    for kind, refused in (("long", True), ("double", False)):
        path = tmp_path / f"{kind}.graphml"
        path.write_text(
            '<graphml><key id="w" for="edge" attr.name="weight" attr.type="'
            f'{kind}"/><graph edgedefault="directed"><node id="a"/><node id="b"/>'
            f'<edge source="a" target="b"><data key="w">{ROUNDED}</data></edge></graph></graphml>'
        )
        graph = tmp_path / f"{kind}.brimful"
        if refused:
            assert f"{NEAREST} is nearest" in refuse(INPUT, "import", path, graph, "--quiet")
        else:
            succeed("import", path, graph, "--quiet")


def test_edges_of_a_store(tmp_path: Path) -> None:
    with (
        bf.Graph.from_arrow(
            pa.table({"source": [0], "target": [1]}), path=tmp_path / "g.brimful"
        ) as graph,
        bf.VertexStore.create(f"file:{tmp_path / 'kept'}", graph) as store,
        pytest.raises(bf.UsageError, match=f"the nearest to {ROUNDED} is {NEAREST}"),
    ):
        store.add_edge(0, 1, ROUNDED)


@pytest.mark.parametrize("name", ["e.txt", "e.csv", "e.parquet"])
def test_floats_that_an_export_writes_are_read_again(tmp_path: Path, name: str) -> None:
    weights = [1e22, 1e23, float(2**64), 1.2345678901234567e20, 2e38, 1.5e300]
    ends = list(range(len(weights)))
    graph, again = tmp_path / "g.brimful", tmp_path / "again.brimful"
    table = pa.table({"source": ends, "target": [*ends[1:], 0], "weight": weights})
    pq.write_table(table, tmp_path / "w.parquet")
    succeed("import", tmp_path / "w.parquet", graph, "--quiet")
    succeed("export", graph, tmp_path / name, "--quiet")
    succeed("import", tmp_path / name, again, "--quiet")
    assert [weight for _, _, weight in edges_of(again)] == weights
