"""Graph directories that earlier versions wrote: `tests/fixtures/format-N.brimful`.

Format 1 was written by the last revision that wrote it, formats 2 and 3 by later ones, from the
same six edges. They are never written again.
"""

from pathlib import Path

import pytest

import brimful as bf
from command import succeed

FIXTURES = Path(__file__).parent / "fixtures"
EDGES = {
    (-7, 3): 0.5,
    (3, -7): 0.25,
    (3, 40): 2.0,
    (40, 3): 1.5,
    (9000000000, -7): 1.0,
    (3, 9000000000): 0.125,
}
# Checkpoints and kept stores name a graph by its fingerprint, which no release may change.
FINGERPRINT = "bb7c705158e9bd9d"


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_graph_of_an_earlier_format_is_read(version: int, tmp_path: Path) -> None:
    path = FIXTURES / f"format-{version}.brimful"
    assert succeed("info", path, "--json").figures["format"] == version
    succeed("verify", path)
    rows = [f"{source},{target},{weight}" for (source, target), weight in EDGES.items()]
    table = tmp_path / "edges.csv"
    table.write_text("\n".join(["source,target,weight", *rows]))
    expected = dict(bf.pagerank(str(table), weighted=True))
    with bf.Graph.open(path) as graph:
        found = {
            (source, target): weight
            for source in {one for one, _ in EDGES}
            for target, weight in zip(*graph.neighbors(source, weights=True), strict=True)
        }
        assert found == EDGES
        assert dict(bf.pagerank(graph, weighted=True)) == expected
        assert graph._native is not None
        assert graph._native.fingerprint == FINGERPRINT
