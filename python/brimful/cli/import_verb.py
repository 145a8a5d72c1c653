"""`brimful import INPUT... OUT.brimful`: text, binary and tables into a graph directory."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from typing import Any, get_args

from brimful.cli import options as shared
from brimful.cli.arguments import integer
from brimful.cli.forecasts import announced, held, is_small_import
from brimful.cli.progress import ProgressLine, format_seconds
from brimful.errors import UsageError
from brimful.formats import InputFormat, require_graph_suffix
from brimful.ingest import (
    IDS,
    WEIGHTS,
    ImportOptions,
    Resources,
    check_input_file,
    columns_sentence,
    expand_globs,
    import_paths,
    left_out_sentences,
    parse_indexes,
    require_budget,
    shared_format,
)
from brimful.sizes import format_bytes
from brimful.source import fingerprint
from brimful.tables import EdgeColumns


def add_to(verbs: shared.Verbs) -> None:
    """Add the verb."""
    parser = shared.add_verb(
        verbs,
        "import",
        "Make a graph from files of edges.",
        act,
        examples=(
            "brimful import edges.txt.gz web.brimful --budget 500M",
            "brimful import follows.csv web.brimful --source follower --target followee",
            "zcat edges.gz | brimful import - web.brimful",
        ),
    )
    parser.add_argument(
        "inputs",
        metavar="INPUT",
        nargs="+",
        help="files, patterns or URLs, also .gz .xz .zst .bz2; - is standard input",
    )
    parser.add_argument("out", metavar="OUT.brimful", help="the graph directory to make")
    parser.add_argument(
        "--format",
        choices=get_args(InputFormat),
        help="default: by the name of the input, then by its content",
    )
    parser.add_argument(
        "--source",
        metavar="COL",
        help="column of source ids: its name, or its number from 1 (edgelist, csv, tsv, parquet); "
        "default: the columns that are beyond doubt",
    )
    parser.add_argument("--target", metavar="COL", help="column of target ids")
    parser.add_argument("--weight", metavar="COL", help="column of weights")
    parser.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="the first line of text names the columns, or does not",
    )
    parser.add_argument(
        "--delimiter",
        metavar="C",
        help="separator of csv columns: a character, or tab (default: the one of , ; tab and | "
        "that splits the first records evenly)",
    )
    parser.add_argument(
        "--ignore-extra",
        action="store_true",
        help="take the first two columns where nothing else decides, and ignore the others",
    )
    direction = parser.add_mutually_exclusive_group()
    direction.add_argument("--undirected", action="store_true", help="edges have no direction")
    direction.add_argument("--directed", action="store_true", help="edges are arcs")
    parser.add_argument(
        "--ids",
        choices=IDS,
        default="auto",
        help="string: take ids as they are (edgelist, adjacency-ids, csv, parquet); auto, the "
        "default: the first 65,536 lines, or the type of the columns, decide",
    )
    parser.add_argument("--vertices", metavar="N", type=integer(0), help="declare the ids 0..N-1")
    parser.add_argument(
        "--on-error",
        choices=["fail", "skip"],
        default="fail",
        help="skip: leave out lines that are no edges, count and report them (default: fail)",
    )
    parser.add_argument(
        "--weights",
        choices=WEIGHTS,
        default="input",
        help="input: those it has (the default); hash: whole numbers from 1 to 100 made of the ids",
    )
    shared.add_policies(parser)
    parser.add_argument(
        "--index", metavar="NAMES", default="in", help="in or in,reverse (default: in)"
    )
    shared.add_threads(parser)
    shared.add_budget(parser)
    shared.add_reporting(parser)


def act(options: argparse.Namespace) -> None:
    """Import, then print the counts."""
    from brimful import _native

    require_graph_suffix(options.out)
    import_options = ImportOptions(
        format=options.format,
        columns=EdgeColumns(
            options.source,
            options.target,
            options.weight,
            options.header,
            options.delimiter,
            options.ignore_extra,
        ),
        undirected=True if options.undirected else False if options.directed else None,
        vertices=options.vertices,
        on_error=options.on_error,
        index=parse_indexes(options.index),
        weights=options.weights,
        self_loops=options.self_loops,
        duplicates=options.duplicates,
        ids=options.ids,
    )
    inputs = expand_globs(options.inputs)
    shared.refuse_terminal_input(inputs)
    for path in inputs:
        check_input_file(path)
    refuse_existing(options.out)
    origin = None
    if len(inputs) == 1 and inputs[0] != "-" and os.path.isfile(inputs[0]):
        origin = json.dumps(fingerprint(inputs[0], import_options) | {"automatic": False})
    with ProgressLine(quiet=options.quiet) as progress:
        given = shared.resources(options, progress)
        require_budget(shared_format(inputs, import_options), import_options, given)
        budget_bytes = given.budget or _native.auto_budget_bytes()
        foreseen = forecast_of(inputs, import_options, given)
        small = foreseen is not None and is_small_import(foreseen, budget_bytes)
        if not small:
            progress.announce(
                announced(foreseen)
                if foreseen
                else "no forecast: the input does not tell its size before it is read"
            )
        if foreseen:
            require_disk(options.out, foreseen)
        figures = import_paths(inputs, options.out, import_options, given, origin=origin)
        figures["forecast"] = foreseen
        if foreseen and not small:
            disk = figures["scratch_bytes"] + figures["bytes_on_disk"]
            progress.say(held(foreseen, figures["peak_rss_bytes"], disk))
        for sentence in left_out_sentences(figures):
            progress.warn(sentence)
    report(options, figures)


def forecast_of(
    inputs: list[str], options: ImportOptions, given: Resources
) -> dict[str, Any] | None:
    """Return what the import will take; None where the input does not tell before it is read."""
    from brimful.planning import forecast_import
    from brimful.sampling import sizes_of_inputs

    found = sizes_of_inputs(inputs, options)
    if found is None:
        return None
    return asdict(forecast_import(found, given))


def require_disk(out: str, foreseen: dict[str, Any]) -> None:
    """Refuse an import that the disk surely cannot hold.

    Raises:
        StoreIoError: Half of the temporary files foreseen are more than is free.
    """
    from brimful import _native

    _native.require_disk(
        out, temporary_bytes=foreseen["temporary_bytes"], graph_bytes=foreseen["graph_bytes"]
    )


def refuse_existing(out: str) -> None:
    """Refuse to overwrite a file or folder.

    Raises:
        UsageError: It exists.
    """
    if os.path.lexists(out):
        raise UsageError(f"{out} already exists; remove it or choose another name")


def report(options: argparse.Namespace, figures: dict[str, object]) -> None:
    """Print the counts of a new graph as a summary or as JSON."""
    if options.json:
        shared.print_json(figures)
    elif not options.quiet:
        shared.show(summary(options.out, figures))


def summary(out: str, figures: dict[str, object]) -> str:
    """Return the lines that describe a new graph."""

    def count(key: str) -> int:
        value = figures.get(key)
        return value if isinstance(value, int) else 0

    def real(key: str) -> float:
        value = figures.get(key)
        return float(value) if isinstance(value, (int, float)) else 0.0

    direction = "directed" if figures.get("directed") else "undirected"
    lines = [
        f"{out}: {count('vertices'):,} vertices, {count('edges'):,} edges, {direction}",
    ]
    kept = [
        f"{count(key):,} {name}"
        for key, name in (
            ("lines", "lines read"),
            ("self_loops", "self-loops"),
            ("duplicates", "duplicates"),
            ("rejected", "rejected"),
        )
        if figures.get(key) is not None
    ]
    if kept:
        lines.append("  " + ", ".join(kept))
    columns = figures.get("columns")
    sentence = columns_sentence(columns if isinstance(columns, dict) else None)
    if sentence is not None:
        lines.append("  " + sentence)
    dropped = [
        f"{count(key):,} {name}"
        for key, name in (
            ("self_loops_dropped", "self-loops"),
            ("duplicates_dropped", "duplicates"),
        )
        if count(key)
    ]
    if dropped:
        lines.append("  left out: " + ", ".join(dropped))
    peak = figures.get("peak_rss_bytes")
    budget = figures.get("budget_bytes")
    lines.append(
        f"  {format_seconds(real('seconds'))}, {format_bytes(count('bytes_on_disk'))} on disk, "
        f"{real('bytes_per_edge'):.2f} bytes per edge, "
        + shared.peak_memory(
            peak if isinstance(peak, int) else None, budget if isinstance(budget, int) else None
        )
    )
    return "\n".join(lines)
