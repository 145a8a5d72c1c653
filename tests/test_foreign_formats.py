"""Formats that imports name and do not read, and the conversions that their errors give."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import brimful as bf
from command import INPUT, brimful, refuse
from test_import import edges_of


def zipped(member: str) -> bytes:
    """Return a zip archive with one member."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(member, "x")
    return file.getvalue()


GRAPH = nx.DiGraph([(1, 2, {"weight": 2.0}), (2, 3, {"weight": 0.5})])


def text_of(write: object) -> bytes:
    assert callable(write)
    file = io.BytesIO()
    write(GRAPH, file)
    return file.getvalue()


FOREIGN = {
    "GML": text_of(nx.write_gml),
    "Pajek": text_of(nx.write_pajek),
    "DGS": b'DGS004\n"g" 0 0\nan 1\nan 2\nae 12 1 > 2\n',
    "JSON lines": b'{"source":1,"target":2}\n{"source":2,"target":3}\n',
    "JSON": b'[{"source": 1, "target": 2}]',
    "JSON of Cytoscape": json.dumps(nx.cytoscape_data(GRAPH)).encode(),
    "JSON of nodes and links": json.dumps(nx.node_link_data(GRAPH, edges="links")).encode(),
    "GraphSON": b'{"id":1,"label":"v","outE":{"knows":[{"id":7,"inV":2}]}}\n',
    "NumPy npz": zipped("indices.npy"),
    "an Excel workbook": zipped("[Content_Types].xml"),
    "a Python pickle": pickle.dumps(GRAPH),
    "a NumPy array": b"\x93NUMPY\x01\x00",
    "text in UTF-16": "1 2\n".encode("utf-16"),
    "text in UTF-32": "1 2\n".encode("utf-32"),
    "an lz4 file": b"\x04\x22\x4d\x18\x64\x40",
    "a Harwell-Boeing or Rutherford-Boeing matrix": (
        b"title                                                                   |key\n"
        b"             3             1             1             1\n"
        b"rua                        3             3             3             0\n"
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("suffix", ["txt", "csv", "parquet", "mtx", "gz"])
def test_foreign_formats_are_named(tmp_path: Path, name: str, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(gzip.compress(FOREIGN[name]) if suffix == "gz" else FOREIGN[name])
    with pytest.raises(bf.InputError) as raised:
        bf.read(path, path=tmp_path / "g.brimful")
    assert f"this is {name}, which brimful does not read; " in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["GML", "Pajek", "JSON of nodes and links"])
def test_the_conversion_that_is_named_works(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(FOREIGN[name])
    err = brimful("import", path, tmp_path / "g.brimful", "--quiet").err
    assert 'python -c "' in err
    program = err.split('python -c "')[1].split('"')[0]
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
    with bf.Graph.open(tmp_path / "a.brimful") as graph:
        assert (graph.vertices, graph.edges, graph.weighted) == (3, 2, True)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("suffix", ["txt", "csv"])
def test_the_conversion_of_text_works_and_keeps_the_input(
    tmp_path: Path, encoding: str, suffix: str
) -> None:
    text = "source,target\n1,2\n" if suffix == "csv" else "1 2\n2 3\n"
    path = tmp_path / f"two words.{suffix}"
    path.write_bytes(text.encode(encoding))
    before = path.read_bytes()
    err = refuse(INPUT, "import", path, tmp_path / "g.brimful", "--quiet")
    subprocess.run(["sh", "-c", err.split("UTF-8 with ")[1]], check=True, timeout=120)
    assert path.read_bytes() == before
    (converted,) = [one for one in tmp_path.iterdir() if one != path]
    assert converted.read_bytes().decode().removeprefix("\ufeff") == text


def test_a_name_that_is_code_is_not_in_a_command(tmp_path: Path) -> None:
    for name in ("it's.gml", "$(touch x).gml", 'a".gml', "`touch x`.gml"):
        path = tmp_path / name
        path.write_bytes(FOREIGN["GML"])
        err = refuse(INPUT, "import", path, tmp_path / "g.brimful", "--quiet")
        assert "read_gml('FILE'), path='NAME.brimful'" in err


def test_the_conversion_of_tables_works(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for name in ("JSON lines", "JSON"):
        path.write_bytes(FOREIGN[name])
        err = brimful("import", path, tmp_path / "g.brimful", "--quiet").err
        program = err.split('python -c "')[1].split('"')[0]
        subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
        assert (tmp_path / "a.csv").read_text().startswith("source,target\n1,2\n")
    matrix = tmp_path / "m.npz"
    with matrix.open("wb") as file:
        from scipy import sparse

        sparse.save_npz(file, sparse.csr_array(np.array([[0, 2], [0, 0]])))
    err = brimful("import", matrix, tmp_path / "g.brimful", "--quiet").err
    program = err.split('python -c "')[1].split('"')[0]
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
    assert edges_of(tmp_path / "m.brimful") == [(0, 1, 2.0)]
