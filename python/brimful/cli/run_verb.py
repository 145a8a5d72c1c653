"""`brimful run ALGORITHM GRAPH`: compute, then write, rank or report the result."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from brimful.catalog import opened
from brimful.cli import options as shared
from brimful.cli.arguments import integer
from brimful.cli.forecasts import SLOW_MACHINE, announced, held, is_small_run
from brimful.cli.progress import ProgressLine, format_seconds, said_to
from brimful.cli.request import add_request, asked, sources_of
from brimful.errors import UsageError
from brimful.io.output import check_output, reserve_of_result, write_result
from brimful.io.redaction import redacted_word
from brimful.options.runs import CheckpointOptions
from brimful.options.table import ResourceOptions
from brimful.tables.edge_table import shrink_arrow_pools

if TYPE_CHECKING:
    from brimful import _native
    from brimful.io.ingest import Resources


NAME = "run"


def add_to(verbs: shared.Verbs) -> None:
    """Add the verb."""
    parser = shared.add_verb(
        verbs,
        NAME,
        "Run an algorithm on a graph.",
        act,
        examples=(
            "brimful run pagerank web.brimful --damping 0.9 --budget 500M --top 10",
            "brimful run sssp roads.brimful --source 17 --weighted -o distances.parquet",
            "brimful run connected_components edges.txt -o components.csv",
        ),
    )
    parser.add_argument("algorithm", metavar="ALGORITHM", help="see brimful algorithms")
    parser.add_argument("graph", metavar="GRAPH", help="a graph directory or an input file")
    add_request(parser)
    shared.add_options(parser, CheckpointOptions)
    parser.add_argument(
        *("-o", "--output"),
        metavar="OUT",
        help="a .parquet, .csv or .arrow file for the result, or a field of the documents in a "
        "database: mongodb://HOST/DATABASE/COLLECTION?field=NAME&id=NAME, or orientdb://...",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace OUT if it exists")
    parser.add_argument("--top", metavar="N", type=integer(1), help="print the N largest values")
    shared.add_options(parser, ResourceOptions)
    shared.add_reporting(parser)


def act(options: argparse.Namespace) -> None:
    """Check the output, run, write, report."""
    from brimful import _native

    # Unknown algorithms are refused before a graph is opened, or imported.
    asked(options, options.algorithm)
    checkpoints = shared.chosen(options, CheckpointOptions)
    saving = checkpoints["checkpoint_every"] is not None or checkpoints["resume"]
    reserve_bytes = 0
    if options.output is not None:
        reserve_bytes = reserve_of_result(options.output)
        check_output(options.output, overwrite=options.overwrite)
    with ProgressLine(quiet=options.quiet) as progress, said_to(progress):
        given = shared.resources(options, progress)
        graph = shared.open_named_graph(options, given, progress)
        request = asked(options, options.algorithm, sources_of(options, graph))
        figures = _forecast(graph, request, given, reserve_bytes, checkpoints=saving)
        small = figures is not None and is_small_run(figures, graph.vertices + graph.arcs)
        if figures is not None and not small:
            progress.announce(announced(figures) + (", beside checkpoints" if saving else ""))
        if figures is not None:
            progress.expect(figures["supersteps"], about=figures["supersteps_guessed"])
        before, written = graph.bytes_on_disk, None
        with opened(request["store"]):
            result = _native.run(
                graph,
                request,
                **checkpoints,
                **vars(given),
                reserve_bytes=reserve_bytes,
            )
        if options.output is not None:
            progress.update(f"write {redacted_word(options.output)}", 0, 0, 0.0)
            if reserve_bytes:
                shrink_arrow_pools()
            written = write_result(result, options.output, overwrite=options.overwrite)
        result.discard_checkpoints()
        stats = result.stats
        stats["peak_rss_bytes"] = _native.peak_rss_bytes()
        stats["output"] = options.output if written is None else written.name
        stats["documents"] = None if written is None else written.figures()
        for sentence in written.warnings() if written is not None else []:
            progress.warn(sentence)
        if stats["forecast"] is not None and not small:
            # An index that was built stays.
            disk = stats["scratch_bytes"] + graph.bytes_on_disk - before
            if stats["store_figures"] is not None:
                disk += stats["store_figures"]["disk_bytes"]
            progress.say(held(stats["forecast"], stats["peak_rss_bytes"], disk))
    if not options.json and not options.quiet:
        shared.show(summary(options.graph, stats))
    if options.top is not None:
        show_top(result, options.top)
    if options.json:
        shared.print_json(stats)


def _forecast(
    graph: _native.Graph,
    request: dict[str, Any],
    given: Resources,
    reserve_bytes: int,
    *,
    checkpoints: bool,
) -> dict[str, Any] | None:
    """Return what the run will take; None where there is no forecast, or it will be refused."""
    from brimful.planning import forecast

    try:
        foreseen = forecast(
            *(graph, None, request, given, SLOW_MACHINE),
            reserve_bytes=reserve_bytes,
            checkpoints=checkpoints,
        )
    except UsageError:
        return None
    return asdict(foreseen) if foreseen.fits else None


def show_top(result: _native.Result, n: int) -> None:
    """Print the `n` largest values, one `vertex<TAB>value` per line."""
    shared.show(f"vertex\t{result.column}")
    for rows in result.top(n):
        for vertex, value in rows:
            shared.show(f"{vertex}\t{value}")


def summary(graph: str, stats: dict[str, Any]) -> str:
    """Return the lines that describe a run."""
    supersteps = stats["supersteps"]
    lines = [
        f"{stats['algorithm']} of {graph}: {stats['vertices']:,} vertices, "
        f"{stats['edges']:,} edges",
        f"  {supersteps} superstep{'' if supersteps == 1 else 's'} in "
        f"{format_seconds(stats['seconds'])}, "
        f"{stats['reason']}",
    ]
    if supersteps:
        lines.append(
            f"  seconds per superstep: {stats['superstep_min']:.3g} min, "
            f"{stats['superstep_median']:.3g} median, {stats['superstep_max']:.3g} max"
        )
    lines.append("  " + shared.peak_memory(stats["peak_rss_bytes"], stats["budget_bytes"]))
    if stats["documents"] is not None:
        found = stats["documents"]
        lines.append(
            f"  result: {stats['output']}, field {found['field']} of {found['updated']:,} documents"
        )
    elif stats["output"] is not None:
        lines.append(f"  result: {stats['output']}")
    return "\n".join(lines)
