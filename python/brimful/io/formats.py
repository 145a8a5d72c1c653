"""Decides the format of a file by its name, or by its content if the name is ambiguous.

Readers detect compression by content, so its suffix is only stripped here.
"""

from __future__ import annotations

import contextlib
import os
from typing import Literal, get_args

from brimful.documents import is_database
from brimful.errors import UsageError
from brimful.io.remote import refuse_remote_output
from brimful.wording import did_you_mean, shortened, unknown

#: Formats that `import` reads.
InputFormat = Literal[
    "edgelist",
    "csv",
    "tsv",
    "parquet",
    "arrow",
    "graphml",
    "gexf",
    "mtx",
    "metis",
    "dimacs",
    "pace",
    "graphalytics",
    "adjacency",
    "adjacency-ids",
    "jlg",
    "u32pairs",
    "webgraph",
]
#: Formats whose rows are read through pyarrow; `documents` are those of a database.
TABLE_FORMATS = ("parquet", "arrow", "graphml", "gexf", "documents")
#: Formats of text whose columns the user may choose; `auto` may turn out to be one.
COLUMN_FORMATS = ("auto", "edgelist", "csv", "tsv", "graphalytics")
#: Formats that tasks of a cluster do not read; most need several files, or no parsing.
UNDIVIDED_FORMATS = (
    "arrow",
    "graphml",
    "gexf",
    "documents",
    "graphalytics",
    "u32pairs",
    "webgraph",
)
#: Formats that `export` writes.
ExportFormat = Literal[
    "edgelist", "u32pairs", "csv", "parquet", "arrow", "mtx", "metis", "graphalytics"
]
#: Formats that a result is written in.
ResultFormat = Literal["parquet", "csv", "arrow"]

#: The suffix of a graph directory.
GRAPH_SUFFIX = ".brimful"
#: The first bytes of every file of a graph.
_MAGIC = b"BRIMFUL\n"

#: Suffixes of compressed inputs; outputs have all but the last.
COMPRESSIONS = (".gz", ".xz", ".zst", ".bz2")
_WRITTEN_COMPRESSIONS = COMPRESSIONS[:-1]
#: The format by suffix. Three suffixes are ambiguous: `.gr` is DIMACS or PACE, `.graph` METIS or
#: WebGraph, `.e` Graphalytics or an edge list. The header or the files next to it decide.
_INPUT_SUFFIXES: dict[str, str] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".graphml": "graphml",
    ".gexf": "gexf",
    ".u32": "u32pairs",
    ".bin": "u32pairs",
    ".u32pairs": "u32pairs",
    ".mtx": "mtx",
    ".metis": "metis",
    ".graph": "metis",
    ".chaco": "metis",
    ".gr": "gr",
    ".dimacs": "dimacs",
    ".graph-txt": "adjacency",
    ".adj": "adjacency",
    ".adjacency": "adjacency",
    ".adjlist": "adjacency-ids",
    ".jlg": "jlg",
    ".v": "graphalytics",
}
_EXPORT_SUFFIXES: dict[str, ExportFormat] = {
    ".txt": "edgelist",
    ".tsv": "edgelist",
    ".el": "edgelist",
    ".e": "edgelist",
    ".edges": "edgelist",
    ".edgelist": "edgelist",
    ".csv": "csv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".u32": "u32pairs",
    ".bin": "u32pairs",
    ".u32pairs": "u32pairs",
    ".mtx": "mtx",
    ".metis": "metis",
    ".graph": "metis",
    ".v": "graphalytics",
    ".properties": "graphalytics",
}
#: Suffixes of result files.
RESULT_SUFFIXES: dict[str, ResultFormat] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".arrow": "arrow",
}


def input_format(path: str, named: str | None = None) -> str:
    """Return the format of an input: the one `named`, else by its name, else by its content.

    That is an `InputFormat`, `documents` for a database, or one of two that the reader settles by
    the first lines: `gr` (DIMACS or PACE) and `auto` (MatrixMarket, `.gr` and jlg are known by
    them; else an edge list).

    Raises:
        UsageError: `named` is not a format that can be read, or documents have it.
    """
    if is_database(path):
        if named is not None:
            raise UsageError(
                f"--format applies to files, and {path} holds documents; leave --format out"
            )
        return "documents"
    if named is not None:
        if named in get_args(InputFormat):
            return named
        raise UsageError(unknown("format", shortened(named), get_args(InputFormat)))
    stem, suffix = split_suffix(path)
    if suffix == ".properties":
        return "webgraph" if _is_webgraph(path) else "graphalytics"
    if suffix == ".graph" and _is_webgraph(stem + ".properties"):
        return "webgraph"
    if suffix == ".e" and any(os.path.exists(stem + ".v" + end) for end in ("", *COMPRESSIONS)):
        return "graphalytics"
    if suffix in _INPUT_SUFFIXES:
        return _INPUT_SUFFIXES[suffix]
    if _starts_with(path, b"PAR1"):
        return "parquet"
    return "arrow" if _starts_with(path, b"ARROW1") else "auto"


def split_suffix(path: str) -> tuple[str, str]:
    """Return a path without its suffix and that suffix in small letters, compression left out."""
    if "://" in path:
        path = path.partition("?")[0]
    stem, suffix = os.path.splitext(path)
    if suffix.lower() in COMPRESSIONS:
        stem, suffix = os.path.splitext(stem)
    return stem, suffix.lower()


def companions(path: str, format_name: str) -> list[str]:
    """Return the files next to `path` that belong to the same graph and exist."""
    if format_name not in ("graphalytics", "webgraph"):
        return []
    stem, _ = split_suffix(path)
    names = (stem + part + end for part in (".v", ".e", ".graph") for end in ("", *COMPRESSIONS))
    present = [name for name in (stem + ".properties", *names) if os.path.isfile(name)]
    return [name for name in present if os.path.abspath(name) != os.path.abspath(path)]


def _is_webgraph(properties: str) -> bool:
    with contextlib.suppress(OSError), open(properties, "rb") as file:
        return b"BVGraph" in file.read(1 << 16)
    return False


def _starts_with(path: str, magic: bytes) -> bool:
    """Return whether a regular file begins with `magic`; streams are not touched."""
    if not os.path.isfile(path):
        return False
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read(len(magic)) == magic
    return False


def export_format(path: str, named: str | None = None) -> ExportFormat:
    """Return the format to export in: the one `named`, else by the suffix of `path`.

    Raises:
        UsageError: The suffix or the name is unknown, or the path is `-`.
    """
    refuse_standard_output(path)
    if named is not None:
        for choice in get_args(ExportFormat):
            if named == choice:
                result: ExportFormat = choice
                return result
        raise UsageError(unknown("format", shortened(named), get_args(ExportFormat)))
    stem, suffix = os.path.splitext(path.lower())
    if suffix in _WRITTEN_COMPRESSIONS:
        suffix = os.path.splitext(stem)[1]
    if suffix not in _EXPORT_SUFFIXES:
        raise UsageError(
            f"the format of {path} is unknown; end the name in one of "
            f"{', '.join(_EXPORT_SUFFIXES)}, or name a format with --format"
            f"{did_you_mean(suffix, _EXPORT_SUFFIXES)}"
        )
    return _EXPORT_SUFFIXES[suffix]


def export_compression(path: str, format_name: ExportFormat) -> str | None:
    """Return `gz`, `xz` or `zst` if the name of an export asks for it.

    Raises:
        UsageError: The format is not compressed as a whole.
    """
    suffix = os.path.splitext(path.lower())[1]
    if suffix not in _WRITTEN_COMPRESSIONS:
        return None
    if format_name in ("parquet", "arrow", "graphalytics"):
        raise UsageError(
            f"{format_name} files are not compressed as a whole; leave {suffix} out of {path}"
        )
    return suffix[1:]


def graphalytics_files(path: str) -> tuple[str, str, str]:
    """Return the `.v`, `.e` and `.properties` files of `path`: one of them, or their stem."""
    stem, suffix = os.path.splitext(path)
    if suffix not in (".v", ".e", ".properties"):
        stem = path
    return stem + ".v", stem + ".e", stem + ".properties"


def output_files(path: str, format_name: ExportFormat) -> tuple[str, ...]:
    """Return the files that an export to `path` writes."""
    return graphalytics_files(path) if format_name == "graphalytics" else (path,)


def result_format(path: str) -> ResultFormat:
    """Return the format of a result file by its suffix.

    Raises:
        UsageError: The suffix is not .parquet, .csv or .arrow.
    """
    suffix = os.path.splitext(path.lower())[1]
    if suffix not in RESULT_SUFFIXES:
        raise UsageError(
            "a result is written as .parquet, .csv or .arrow, but "
            f"{path or repr(path)} does not end in one of these"
            f"{did_you_mean(suffix, RESULT_SUFFIXES)}"
        )
    return RESULT_SUFFIXES[suffix]


def refuse_standard_output(path: str) -> None:
    """Refuse `-` as an output: it is standard input of an import, and a file would be a surprise.

    Raises:
        UsageError: The path is `-`.
    """
    if path == "-":
        raise UsageError(
            "results and graphs are not written to standard output; name a file instead of -"
        )


def require_graph_suffix(path: str) -> None:
    """Refuse a name for a new graph that does not end in `.brimful`, or is inside another graph.

    Raises:
        UsageError: The path has another suffix, is a URL, or is inside a graph.
    """
    refuse_remote_output(path)
    if not path.rstrip("/" + os.sep).endswith(GRAPH_SUFFIX):
        raise UsageError(f"the name of a graph must end in {GRAPH_SUFFIX}, and '{path}' does not")
    refuse_in_graph(path)


def refuse_in_graph(path: str) -> None:
    """Refuse an output inside a graph directory, whose files it could replace or change.

    Raises:
        UsageError: The path is inside a graph.
    """
    folder = os.path.dirname(os.path.realpath(path))
    if _is_graph(folder):
        raise UsageError(f"{path} is inside the graph directory {folder}; name a place elsewhere")


def refuse_folder_in_graph(path: str) -> None:
    """Refuse a folder of a collection or of vertices that is a graph directory, or inside one.

    Raises:
        UsageError: The folder is one of these.
    """
    if _is_graph(os.path.realpath(path)):
        raise UsageError(f"{path} is a graph directory; name a place elsewhere")
    refuse_in_graph(path)


def _is_graph(folder: str) -> bool:
    """Return whether a folder has the pointer of a graph to its manifest."""
    pointer = os.path.join(folder, "current")
    # Opening a pipe would wait for its writer.
    if os.path.isfile(pointer):
        with contextlib.suppress(OSError), open(pointer, "rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    return False
