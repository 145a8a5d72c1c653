"""The files of an input: patterns, formats, and checks before the files are read."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Sequence

from brimful.documents import is_database
from brimful.errors import InputError, StoreIoError, UsageError
from brimful.io.formats import GRAPH_SUFFIX, TABLE_FORMATS, input_format
from brimful.io.regular import refuse_special
from brimful.io.remote import check, expand, is_remote
from brimful.options.imports import ImportOptions, columns_of
from brimful.tables.arrow_messages import batch_bytes
from brimful.tables.directions import is_direction
from brimful.tables.parquet_pages import known_page_bytes


def is_pattern(path: str | os.PathLike[str]) -> bool:
    """Return whether `path` is a pattern (`*`, `?`, `[...]`) rather than something that exists."""
    name = os.fspath(path)
    return not is_remote(name) and glob.has_magic(name) and not os.path.lexists(name)


def expand_globs(paths: Sequence[str]) -> list[str]:
    """Return `paths` with patterns (`*`, `?`, `[...]`) replaced by the files they match, sorted.

    A path that exists is not a pattern, whatever characters it has. Beside files a pattern
    leaves out graph directories, such as those of earlier imports of these files.

    Raises:
        InputError: A pattern matches nothing.
    """
    expanded: list[str] = []
    for path in paths:
        if is_remote(path) and not is_database(path):
            expanded.extend(expand(path))
            continue
        if not is_pattern(path):
            expanded.append(path)
            continue
        matches = sorted(glob.glob(path, recursive=True))
        if not matches:
            raise InputError(f"no file matches {path}; check the pattern")
        files = [one for one in matches if not (one.endswith(GRAPH_SUFFIX) and os.path.isdir(one))]
        expanded.extend(files or matches)
    return expanded


def check_input_file(path: str) -> None:
    """Refuse an input that is missing or a directory, before anything is created.

    Raises:
        InputError: The input is missing or a directory.
    """
    if path == "-":
        if sys.stdin is None:
            raise StoreIoError("standard input (-) is closed; pipe edges into it, or name a file")
        return
    if is_database(path):
        return
    if is_remote(path):
        check(path)
        return
    if os.path.isdir(path):
        is_graph = path.rstrip("/" + os.sep).endswith(GRAPH_SUFFIX)
        remedy = (
            "make a graph of a graph with 'brimful derive'" if is_graph else "name a file in it"
        )
        raise InputError(f"{path} is a directory; {remedy}")
    if not os.path.exists(path):
        raise InputError(f"{path or repr(path)} does not exist; check the path")


def shared_format(paths: Sequence[str], options: ImportOptions) -> str:
    """Return the one format of the inputs of a graph.

    Raises:
        UsageError: The inputs have several formats.
        InputError: A table is not a regular file.
    """
    formats = {input_format(path, options["format"]) for path in paths}
    if options["delimiter"] is not None and formats == {"auto"}:
        # A delimiter makes the input CSV: blanks do not separate its columns.
        formats = {"csv"}
    if len(formats) != 1:
        raise UsageError(
            f"the inputs have several formats ({listed_formats(formats)}), and a graph needs one; "
            "import them separately, or name the format with --format"
        )
    format_name = formats.pop()
    if format_name in TABLE_FORMATS:
        for path in paths:
            refuse_special(path, format_name)
    return format_name


def listed_formats(formats: set[str]) -> str:
    """Return the names of formats, as errors list them."""
    shown = {"auto": "edgelist", "gr": "dimacs or pace"}
    return ", ".join(sorted(shown.get(name, name) for name in formats))


def known_bytes(path: str, format_name: str, options: ImportOptions) -> int:
    """Return the part of `EdgeTable.reserve_bytes` that the file itself decides, without pyarrow.

    0 for text.
    """
    from brimful import _native

    if format_name == "arrow":
        return batch_bytes(path)
    if format_name != "parquet":
        return 0
    wanted = columns_of(options)

    def chosen(names: Sequence[str]) -> list[str]:
        places = _native.pick_columns(path, list(names), wanted)
        taken = [names[at] for at in places if at is not None]
        if options["undirected"] is not False:
            taken += [name for name in names if is_direction(name)][:1]
        return taken

    return known_page_bytes(path, chosen)
