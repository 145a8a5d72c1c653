"""Each extra of the package alone: installed from a wheel in an environment of its own, and used.

python tests/check_extras.py WHEEL [EXTRA...]

Part of `make nightly`; needs a package index. An extra without a probe here fails.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
import zipfile
from email.parser import HeaderParser
from pathlib import Path

GRAPH = """
import brimful as bf, pyarrow as pa
graph = bf.Graph.from_arrow(pa.table({"source": [0, 1, 2], "target": [1, 2, 0]}))
ranks = bf.pagerank(graph)
class Program(bf.Program):
    delivery, combiner = "latest", "sum"
    def initial_state(self, vertex):
        return 1.0
    def signal(self, source, target, weight):
        return source.state
    def collect(self, vertex, signals):
        return vertex.state
"""
UNREACHED = """
try:
    bf.run(graph, Program(), store="{}", max_supersteps=2)
except bf.StoreIoError:
    raise SystemExit(0)
raise SystemExit("a server that is not there was found")
"""
STORED = 'assert len(bf.run(graph, Program(), store="{}:states", max_supersteps=2)) == 3'
#: A program that uses the feature of each extra; it fails without the packages of the extra.
PROBES = {
    "duckdb": 'assert len(ranks.join(pa.table({"id": [0], "name": ["a"]}), on="id")) == 3',
    "igraph": "assert graph.to_igraph().vcount() == 3",
    "networkx": "import networkx as nx; assert len(nx.pagerank(graph)) == 3",
    "numba": 'assert len(bf.run(graph, Program(), compile="numba", max_supersteps=2)) == 3',
    "pandas": "assert len(ranks.to_pandas()) == 3",
    "polars": "assert len(ranks.to_polars()) == 3",
    "ray": 'assert dict(bf.pagerank(graph, cluster="local:1")) == dict(ranks)',
    "report": "assert '<svg' in ranks.report().html",
    "scipy": "assert graph.to_scipy()[0].nnz == 3",
    # No server is there: the drivers are, and cannot connect.
    "mongodb": UNREACHED.format(
        "mongodb://127.0.0.1:9/x/y?serverSelectionTimeoutMS=200&retry_seconds=1"
    ),
    "orientdb": UNREACHED.format("orientdb://u:p@127.0.0.1:9/x/y?retry_seconds=1"),
    "rocksdb": STORED.format("rocksdb"),
    "berkeleydb": STORED.format("berkeleydb"),
}
#: All of them, but for what is built from source.
ALL, BUILT = "all", "berkeleydb"


def main(wheel: Path, wanted: list[str]) -> None:
    """Check extras; raise where one cannot be installed or does not work."""
    extras = declared_by(wheel)
    if lacking := extras - {*PROBES, ALL}:
        raise SystemExit(f"no probe for {', '.join(sorted(lacking))}; add it to PROBES")
    for extra in wanted or sorted(extras):
        probes = [extra] if extra != ALL else [name for name in PROBES if name != BUILT]
        with tempfile.TemporaryDirectory() as folder:
            if not environment(wheel, extra, Path(folder)) and extra == BUILT:
                print(f"{extra}: SKIPPED, it cannot be built (apt install libdb-dev)", flush=True)
                continue
            for name in probes:
                probe(name, Path(folder))
        print(f"{extra}: works", flush=True)


def declared_by(wheel: Path) -> set[str]:
    """Return the extras in the metadata of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = HeaderParser().parsestr(archive.read(name).decode())
    return set(metadata.get_all("Provides-Extra") or [])


def environment(wheel: Path, extra: str, folder: Path) -> bool:
    """Make an environment with the wheel and an extra; return whether it can be installed."""
    venv.create(folder, with_pip=True)
    install = ["install", "--quiet", "--disable-pip-version-check", f"{wheel}[{extra}]"]
    done = subprocess.run([folder / "bin" / "pip", *install], check=extra != BUILT)
    return done.returncode == 0


def probe(extra: str, folder: Path) -> None:
    """Run the program of an extra in an environment."""
    # A file: programs are compiled from their source.
    code = folder / "probe.py"
    code.write_text(f"{GRAPH}\n{PROBES[extra]}\n")
    subprocess.run([folder / "bin" / "python", "-I", code], cwd=folder, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
