"""Which format a file has, decided by its name.

Compression is decided by content where the file is read, so its suffix is only stripped here.
"""

from __future__ import annotations

import os
from typing import Literal, get_args

from brimful.errors import UsageError

#: Formats that `import` reads.
InputFormat = Literal["edgelist", "u32pairs", "csv", "parquet"]
#: Formats that `export` writes.
ExportFormat = Literal[
    "edgelist", "u32pairs", "csv", "parquet", "arrow", "mtx", "metis", "graphalytics"
]
#: Formats that a result is written in.
ResultFormat = Literal["parquet", "csv", "arrow"]

#: The suffix of a graph directory.
GRAPH_SUFFIX = ".brimful"

_COMPRESSIONS = (".gz", ".xz", ".zst")
_INPUT_SUFFIXES: dict[str, InputFormat] = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".u32": "u32pairs",
    ".bin": "u32pairs",
    ".u32pairs": "u32pairs",
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
_RESULT_SUFFIXES: dict[str, ResultFormat] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".arrow": "arrow",
}


def input_format(path: str, named: str | None = None) -> InputFormat:
    """Return the format of an input: the one `named`, else by its suffix, else `edgelist`.

    Raises:
        UsageError: `named` is not a format that can be read.
    """
    if named is not None:
        for known in get_args(InputFormat):
            if named == known:
                result: InputFormat = known
                return result
        raise UsageError(f"'{named}' is not a format; known: {', '.join(get_args(InputFormat))}")
    stem, suffix = os.path.splitext(path.lower())
    if suffix in _COMPRESSIONS:
        suffix = os.path.splitext(stem)[1]
    return _INPUT_SUFFIXES.get(suffix, "edgelist")


def export_format(path: str, named: str | None = None) -> ExportFormat:
    """Return the format to export in: the one `named`, else by the suffix of `path`.

    Raises:
        UsageError: the suffix or the name is unknown.
    """
    if named is not None:
        for known in get_args(ExportFormat):
            if named == known:
                result: ExportFormat = known
                return result
        raise UsageError(f"'{named}' is not a format; known: {', '.join(get_args(ExportFormat))}")
    stem, suffix = os.path.splitext(path.lower())
    if suffix in _COMPRESSIONS:
        suffix = os.path.splitext(stem)[1]
    if suffix not in _EXPORT_SUFFIXES:
        raise UsageError(
            f"the name {path} does not say a format; end it in one of "
            f"{', '.join(_EXPORT_SUFFIXES)}, or name one with --format"
        )
    return _EXPORT_SUFFIXES[suffix]


def export_compression(path: str, format_name: ExportFormat) -> str | None:
    """Return `gz`, `xz` or `zst` if the name of an export asks for it.

    Raises:
        UsageError: the format is not compressed as a whole.
    """
    suffix = os.path.splitext(path.lower())[1]
    if suffix not in _COMPRESSIONS:
        return None
    if format_name in ("parquet", "arrow", "graphalytics"):
        raise UsageError(
            f"{format_name} is not compressed as a whole, and {path} ends in {suffix}; leave it out"
        )
    return suffix[1:]


def graphalytics_files(path: str) -> tuple[str, str, str]:
    """Return the `.v`, `.e` and `.properties` files of `path`: one of them, or their stem."""
    stem, suffix = os.path.splitext(path)
    if suffix not in (".v", ".e", ".properties"):
        stem = path
    return stem + ".v", stem + ".e", stem + ".properties"


def result_format(path: str) -> ResultFormat:
    """Return the format of a result file by its suffix.

    Raises:
        UsageError: the suffix is not .parquet, .csv or .arrow.
    """
    suffix = os.path.splitext(path.lower())[1]
    if suffix not in _RESULT_SUFFIXES:
        raise UsageError(
            f"a result is written as .parquet, .csv or .arrow, and {path} ends in none of them"
        )
    return _RESULT_SUFFIXES[suffix]


def require_graph_suffix(path: str) -> None:
    """Refuse a name for a new graph that does not end in `.brimful`.

    Raises:
        UsageError: it does not.
    """
    if not path.rstrip("/" + os.sep).endswith(GRAPH_SUFFIX):
        raise UsageError(f"the name of a graph ends in {GRAPH_SUFFIX}, and {path} does not")
