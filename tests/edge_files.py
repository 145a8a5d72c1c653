"""Files of edges that imports on a cluster read, and the options of the imports."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import brimful as bf
from brimful.io.ingest import import_paths
from brimful.options.imports import import_options
from brimful.resources import Resources


def edges(seed: int, count: int, largest: int = 3000) -> list[tuple[int, int]]:
    """Random edges with hubs, self-loops and duplicates."""
    lottery = random.Random(seed)
    some = [int(largest * lottery.random() ** 3) for _ in range(2 * count)]
    return list(zip(some[::2], some[1::2], strict=True))


def lines(pairs: list[tuple[Any, Any]], separator: str = " ", weighted: bool = False) -> str:
    texts = (
        (str(s), str(t)) + ((str((int(i) * 7) % 11 / 4),) if weighted else ())
        for i, (s, t) in enumerate(pairs)
    )
    return "".join(separator.join(words) + "\n" for words in texts)


def compress(name: str, content: bytes) -> bytes:
    """Return a content as the suffix of a name says."""
    if name.endswith(".gz"):
        return gzip.compress(content)
    if name.endswith(".xz"):
        return lzma.compress(content)
    if name.endswith(".bz2"):
        return bz2.compress(content)
    if name.endswith(".zst"):
        return pa.compress(content, codec="zstd", asbytes=True)
    return content


def text_files(folder: Path) -> list[Path]:
    """An edge list in four files: one of several messages, a compressed one, an empty one."""
    first = "# a comment\n" + lines(edges(1, 70_000))
    (folder / "1.txt").write_text(first)
    (folder / "2.txt.gz").write_bytes(gzip.compress(lines(edges(2, 2000, 70_000)).encode()))
    (folder / "3.txt").write_text("# nothing\n")
    (folder / "4.txt").write_text(lines([*edges(4, 10), (20_000_000, 5), (7, 7), (7, 7)]))
    return sorted(folder.iterdir())


def signed_files(folder: Path) -> list[Path]:
    """The same with a negative id, so that tasks number the ids by generations."""
    (folder / "5.txt").write_text("-3 5\n")
    return text_files(folder)


def named_files(folder: Path) -> list[Path]:
    for number in range(3):
        pairs = [(f"née{s}", f"v{t}") for s, t in edges(number, 3000, 500)]
        (folder / f"{number}.txt").write_text(lines(pairs, "\t"))
    return sorted(folder.iterdir())


def csv_files(folder: Path) -> list[Path]:
    for number in range(3):
        pairs = [(s + 10**12, t) for s, t in edges(number, 3000, 200)]
        rows = lines(pairs, ",", weighted=True)
        (folder / f"{number}.csv").write_text('payer,payee,"amount"\n' + rows)
    return sorted(folder.iterdir())


def broken_files(folder: Path) -> list[Path]:
    paths = csv_files(folder)
    for path in paths[:0:-1]:
        path.write_text(path.read_text() + f"1,{path.stem},2.5,9\nx,2,1\n")
    return paths


def parquet_files(folder: Path, names: bool = False) -> list[Path]:
    for number in range(3):
        pairs = edges(number, 2000 if names else 70_000, 400)
        ends = [
            [f"v{one}" for one in end] if names else list(end) for end in zip(*pairs, strict=True)
        ]
        weights = [(at * 7) % 11 / 4 for at in range(len(pairs))]
        table = pa.table({"source": ends[0], "target": ends[1], "weight": weights})
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=30_000)
    return sorted(folder.iterdir())


def exported_files(folder: Path) -> list[Path]:
    """A graph with vertices without edges, as an export declares them."""
    pairs = edges(5, 200, 90)
    said = "# brimful: directed=yes weighted=no ids=int vertices=110 edges=200 isolated="
    with bf.read(pa.table({"source": [p[0] for p in pairs], "target": [p[1] for p in pairs]})) as g:
        isolated = [f"# vertex {1000 + at}" for at in range(110 - g.vertices)]
    header = said + f"{len(isolated)}\n" + "\n".join(isolated) + "\n"
    (folder / "whole.txt").write_text(header + lines(pairs))
    return [folder / "whole.txt"]


def undirected_files(folder: Path) -> list[Path]:
    """Two files whose headers say that edges have no direction."""
    for number in range(2):
        pairs = [(s + 1, t + 1) for s, t in edges(number, 5000, 2000)]
        header = f"2000,{len(pairs)},u,half\n"
        (folder / f"{number}.jlg").write_text(header + lines(pairs, ","))
    return sorted(folder.iterdir())


def imported(
    paths: list[Path], out: Path, options: dict[str, Any], cluster: dict[str, Any] | None
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The files of a graph, and what an import tells of its input."""
    wanted = import_options(**options)
    figures = import_paths([*map(str, paths)], str(out), wanted, Resources(), cluster=cluster)
    told = ("vertices", "edges", "lines", "rejections", "left_out", "columns", "duplicates")
    files = {str(one.relative_to(out)): one.read_bytes() for one in out.rglob("*") if one.is_file()}
    return files, {name: figures[name] for name in told}


#: Functions that write files of edges into a folder, and options of their import.
IMPORTS: list[tuple[Callable[[Path], list[Path]], dict[str, Any]]] = [
    (signed_files, {"duplicates": "sum", "index": "in,reverse"}),
    (text_files, {"duplicates": "drop", "self_loops": "drop", "undirected": True}),
    (text_files, {"weights": "hash", "index": "in,reverse", "vertices": 90_000}),
    (text_files, {"ids": "string", "duplicates": "sum"}),
    (named_files, {"header": False}),
    (named_files, {"header": False, "duplicates": "drop", "self_loops": "drop"}),
    (csv_files, {"source": "payer", "target": "payee", "weight": "amount", "duplicates": "sum"}),
    (csv_files, {"source": 2, "target": 1, "ignore_extra": True, "duplicates": "min"}),
    (broken_files, {"source": 1, "target": 2, "weight": 3, "on_error": "skip"}),
    (parquet_files, {"weight": "weight"}),
    (parquet_files, {"weight": "weight", "duplicates": "min", "self_loops": "drop"}),
    (partial(parquet_files, names=True), {"weight": "weight", "duplicates": "sum"}),
    (exported_files, {}),
    (undirected_files, {}),
    (undirected_files, {"undirected": False}),
    (partial(parquet_files, names=True), {"duplicates": "drop", "self_loops": "drop"}),
    (text_files, {"duplicates": "min", "index": "in,reverse", "vertices": 90_000}),
]
