"""`brimful import INPUT... OUT.brimful`: text, binary and tables into a graph directory."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from typing import Any

from brimful.building import build, column_sentences
from brimful.catalog import cluster_of
from brimful.cli import options as shared
from brimful.cli.forecasts import announced, is_small_import, measured_and_forecast
from brimful.cli.progress import ProgressLine, format_seconds
from brimful.io.formats import TABLE_FORMATS, require_graph_suffix
from brimful.io.hidden import refuse_existing
from brimful.io.ingest import import_paths, require_budget
from brimful.io.inputs import check_input_file, expand_globs, shared_format
from brimful.io.source import fingerprint
from brimful.io.summary import columns_sentence, fate, left_out_sentences
from brimful.options.clusters import ImportClusterOptions
from brimful.options.imports import (
    EdgeColumnOptions,
    ImportOptions,
    VertexColumnOptions,
    import_options,
    vertex_column_options,
)
from brimful.options.table import ResourceOptions
from brimful.resources import Resources
from brimful.sizes import format_bytes
from brimful.wording import counted


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
            "brimful import follows.csv web.brimful --vertex-columns people.parquet --on id",
            "zcat edges.gz | brimful import - web.brimful",
        ),
    )
    parser.add_argument(
        "inputs",
        metavar="INPUT",
        nargs="+",
        help="files, patterns or URLs, possibly compressed (.gz, .xz, .zst, .bz2); documents of a "
        "database (mongodb://..., orientdb://...); - is standard input",
    )
    parser.add_argument("out", metavar="OUT.brimful", help="the graph directory to make")
    shared.add_options(parser, ImportOptions)
    shared.add_options(parser, VertexColumnOptions)
    shared.add_options(parser, EdgeColumnOptions)
    shared.add_options(parser, ResourceOptions)
    shared.add_options(parser.add_argument_group("cluster"), ImportClusterOptions)
    shared.add_reporting(parser)


def act(options: argparse.Namespace) -> None:
    """Import, then print the counts."""
    require_graph_suffix(options.out)
    wanted = import_options(**shared.chosen(options, ImportOptions))
    columns = {
        **vertex_column_options(shared.chosen(options, VertexColumnOptions)),
        **shared.chosen(options, EdgeColumnOptions),
    }
    cluster = cluster_of(shared.chosen(options, ImportClusterOptions))
    inputs = expand_globs(options.inputs)
    shared.refuse_repeated_input(inputs)
    for path in inputs:
        check_input_file(path)
    refuse_existing(options.out)
    origin = None
    if len(inputs) == 1 and inputs[0] != "-" and os.path.isfile(inputs[0]):
        origin = json.dumps(fingerprint(inputs[0], wanted) | {"automatic": False})
    with ProgressLine(quiet=options.quiet) as progress:
        given = shared.resources(options, progress)
        joins = sum(columns[name] is not None for name in ("vertex_columns", "edge_columns"))
        format_name = shared_format(inputs, wanted)
        require_budget(inputs, format_name, wanted, given, joins=joins)
        if format_name in TABLE_FORMATS:
            given.shrink_arrow_pools()
        foreseen = forecast_of(inputs, wanted, given)
        small = foreseen is not None and is_small_import(foreseen, given.budget_bytes())
        if not small:
            progress.announce(
                announced(foreseen)
                if foreseen
                else "no forecast: the size of the graph is not known before its input is read"
            )
        if foreseen:
            require_disk(options.out, foreseen)
        figures = build(
            options.out,
            lambda place: import_paths(
                inputs, place, wanted, given, origin=origin, cluster=cluster
            ),
            {**wanted, **columns},
            given,
            inputs,
        )
        figures["forecast"] = foreseen
        if foreseen and not small:
            disk = figures["scratch_bytes"] + figures["bytes_on_disk"]
            progress.say(measured_and_forecast(foreseen, figures["peak_rss_bytes"], disk))
        for sentence in [*left_out_sentences(figures), *column_sentences(figures)]:
            progress.warn(sentence)
    report(options, figures)


def forecast_of(
    inputs: list[str], options: ImportOptions, resources: Resources
) -> dict[str, Any] | None:
    """Return the forecast of the import; None if the size of the graph is unknown."""
    from brimful.io.sampling import sizes_of_inputs
    from brimful.planning import forecast_import

    sizes = sizes_of_inputs(inputs, options)
    if sizes is None:
        return None
    return asdict(forecast_import(sizes, resources))


def require_disk(out: str, foreseen: dict[str, Any]) -> None:
    """Refuse an import that certainly exceeds the disk.

    Raises:
        StoreIoError: Half of the forecast temporary files exceed the free space.
    """
    from brimful import _native

    _native.require_disk(
        out, temporary_bytes=foreseen["temporary_bytes"], graph_bytes=foreseen["graph_bytes"]
    )


def report(options: argparse.Namespace, figures: dict[str, object]) -> None:
    """Print the counts of a new graph as a summary or as JSON."""
    if options.json:
        shared.print_json(figures)
    elif not options.quiet:
        shared.show(summary(options.out, figures))


#: The figures about the lines of an input, of a graph that was made without one.
NO_INPUT = {"lines": None, "rejected": None, "columns": None}


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
        f"{out}: {counted(count('vertices'), 'vertex')}, "
        f"{counted(count('edges'), 'edge')}, {direction}",
    ]
    kept = [
        text
        for key, text in (
            ("lines", f"{counted(count('lines'), 'line')} read"),
            ("self_loops", counted(count("self_loops"), "self-loop")),
            ("duplicates", counted(count("duplicates"), "duplicate")),
            ("rejected", f"{count('rejected'):,} rejected"),
        )
        if figures.get(key) is not None
    ]
    if kept:
        lines.append("  " + ", ".join(kept))
    columns = figures.get("columns")
    sentence = columns_sentence(columns if isinstance(columns, dict) else None)
    if sentence is not None:
        lines.append("  " + sentence)
    fates: dict[str, list[str]] = {}
    for key, noun in (("self_loops_dropped", "self-loop"), ("duplicates_dropped", "duplicate")):
        if count(key):
            fates.setdefault(fate(noun, figures), []).append(counted(count(key), noun))
    lines += [f"  {reason}: {', '.join(texts)}" for reason, texts in fates.items()]
    peak = figures.get("peak_rss_bytes")
    budget = figures.get("budget_bytes")
    lines.append(
        f"  {format_seconds(real('seconds'))}, {format_bytes(count('bytes_on_disk'))} on disk, "
        + (f"{real('bytes_per_edge'):.2f} bytes per edge, " if count("arcs") else "")
        + shared.peak_memory(
            peak if isinstance(peak, int) else None, budget if isinstance(budget, int) else None
        )
    )
    return "\n".join(lines)
