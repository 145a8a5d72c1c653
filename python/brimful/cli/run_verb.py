"""`brimful run ALGORITHM GRAPH`: compute, then write, rank or report the result."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from brimful.catalog import algorithms
from brimful.cli import options as shared
from brimful.cli.arguments import integer
from brimful.cli.forecasts import SLOW_MACHINE, announced, is_small_run, measured_and_forecast
from brimful.cli.progress import ProgressLine, logged_to
from brimful.cli.request import (
    add_around,
    add_request,
    around_of,
    refuse_around,
    run_request,
    sources_of,
)
from brimful.cli.run_outputs import Outputs
from brimful.cli.where import Where
from brimful.documents import is_database
from brimful.errors import UsageError
from brimful.io.formats import refuse_standard_output
from brimful.io.output import check_output, refuse_input, reserve_of_result
from brimful.options.checks import column_names
from brimful.options.clusters import ClusterOptions
from brimful.options.derivations import WhereOptions
from brimful.options.runs import CheckpointOptions
from brimful.options.table import ResourceOptions
from brimful.result import run_native
from brimful.rows import computed_rows, refuse_documents
from brimful.tables.edge_table import (
    require_arrow_address_space,
)

if TYPE_CHECKING:
    from brimful import _native
    from brimful.cli.recorder import Recorder
    from brimful.resources import Resources
    from brimful.tables.joining import Join


def add_to(verbs: shared.Verbs) -> None:
    """Add the verb."""
    parser = shared.add_verb(
        verbs,
        "run",
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
    shared.add_options(parser, WhereOptions)
    shared.add_options(parser, CheckpointOptions)
    clusters = parser.add_argument_group("clusters", "Divide the run among several processes.")
    shared.add_options(clusters, ClusterOptions)
    parser.add_argument(
        *("-o", "--output"),
        metavar="OUT",
        help="a .parquet, .csv or .arrow file for the result, or a field of the documents in a "
        "database: mongodb://HOST/DATABASE/COLLECTION?field=NAME&id=NAME, or orientdb://...",
    )
    parser.add_argument(
        "--join",
        metavar="TABLE",
        help="write the columns of a .parquet, .csv, .tsv or .arrow file with the result; needs "
        "DuckDB (pip install 'brimful[duckdb]')",
    )
    parser.add_argument(
        "--on",
        metavar="COL",
        help="the column of TABLE that holds vertex ids, each once (default: vertex)",
    )
    parser.add_argument(
        "--with",
        dest="columns",
        metavar="COLUMNS",
        help="write these columns with the result, such as age,name: columns of the --join table, "
        "or of the vertices of the graph (see brimful columns)",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace OUT, a field of documents or the report, if it exists",
    )
    parser.add_argument(
        "--report",
        metavar="FILE",
        help="write a report with figures of the run and of the result; needs matplotlib and Jinja "
        "(pip install 'brimful[report]')",
    )
    add_around(parser)
    parser.add_argument(
        "--keep",
        action="store_true",
        help="keep the vertices with their edges and values in --store (file:PATH, kv:PATH, or a "
        "server with the option folder=PATH), which brimful.VertexStore opens in Python; the store "
        "needs the graph directory",
    )
    parser.add_argument("--top", metavar="N", type=integer(1), help="print the N largest values")
    shared.add_options(parser, ResourceOptions)
    shared.add_reporting(parser)


def act(options: argparse.Namespace) -> None:
    """Check the outputs, run, write, report."""
    if options.algorithm not in algorithms() and options.graph in algorithms():
        # The arguments came in the order of `brimful plan`: the graph first.
        options.algorithm, options.graph = options.graph, options.algorithm
    kept = _kept_url(options)
    # Refuses an unknown algorithm before a graph is opened or imported.
    cluster = shared.chosen(options, ClusterOptions)
    run_request(options, options.algorithm, cluster=cluster)
    if algorithms()[options.algorithm]["rows"]:
        _refuse_for_rows(options)
    if options.source_weight and options.source is None:
        raise UsageError(
            "--source-weight needs the vertices of --source; give them, or leave --source-weight "
            "out"
        )
    join = _join(options)
    if options.output is not None:
        refuse_standard_output(options.output)
    # Called for its error only: refuses an unknown suffix before the run.
    reserve_of_result(options.output)
    if options.output is not None:
        refuse_input([options.output], options.graph, options.join, options.pairs)
        check_output(options.output, overwrite=options.overwrite)
    if options.report is None:
        refuse_around(options, "--report")
        _run(options, Outputs(options, kept, join, None), None)
        return
    from brimful.cli.recorder import Recorder
    from brimful.report.html import check_report

    check_report(options.report, overwrite=options.overwrite)
    recorder = Recorder()
    _run(options, Outputs(options, kept, join, recorder), recorder)


def _run(options: argparse.Namespace, outputs: Outputs, recorder: Recorder | None) -> None:
    """Run the algorithm, then write and show its result."""
    checkpoints = shared.chosen(options, CheckpointOptions)
    saving = checkpoints["checkpoint_every"] is not None or checkpoints["resume"]
    if saving:
        _refuse_part(options)
    with (
        contextlib.ExitStack() as stack,
        ProgressLine(quiet=options.quiet) as progress,
        logged_to(progress),
    ):
        given = shared.resources(options, progress)
        if recorder is not None:
            given = replace(given, progress=recorder.beside(progress.update))
        graph = shared.open_named_graph(options, given, progress)
        where = Where(
            graph, shared.chosen(options, WhereOptions), weighted=options.weighted is True
        )
        graph = stack.enter_context(where.part(given))
        outputs.reserve(graph)
        cluster = shared.chosen(options, ClusterOptions)
        request = run_request(
            options, options.algorithm, sources_of(options, graph), cluster=cluster
        )
        figures, leaving = None, given.leaving(outputs.reserve_bytes)
        if request["cluster"] is None:
            figures = _forecast(graph, request, leaving, checkpoints=saving)
        # The run refuses a budget that is too small; pyarrow and DuckDB may not fit it.
        if figures is not None or request["cluster"] is not None:
            outputs.check_columns(graph)
        if outputs.reserve_bytes:
            # Before the work, whose result could not be written.
            require_arrow_address_space()
        small = figures is not None and is_small_run(figures, graph.vertices + graph.arcs)
        if figures is not None:
            if not small:
                progress.announce(announced(figures) + (", besides checkpoints" if saving else ""))
            progress.expect(figures["supersteps"], about=figures["supersteps_guessed"])
        around = around_of(options, graph)
        before = graph.bytes_on_disk
        result = _computed(graph, request, checkpoints, leaving)
        outputs.write(result, graph, given, progress)
        stats = outputs.figures(result, where)
        if stats["forecast"] is not None and not small:
            progress.say(_measured(stats, graph.bytes_on_disk - before))
        outputs.report(result, stats, graph, around, progress)
    outputs.show(result, stats, where)


def _computed(
    graph: _native.Graph,
    request: dict[str, Any],
    checkpoints: Mapping[str, Any],
    resources: Resources,
) -> _native.Result | _native.Rows:
    """Return the result of the algorithm; checkpoints stay until it is written."""
    if algorithms()[request["algorithm"]]["rows"]:
        return computed_rows(graph, request, resources)
    return run_native(graph, request, checkpoints, resources)


def _refuse_part(options: argparse.Namespace) -> None:
    """Refuse a part of a graph in a run with checkpoints."""
    if options.where or options.where_edges:
        raise UsageError(
            "--where and --where-edges make a temporary graph, on which a run has no checkpoints; "
            "make the graph with 'brimful derive', and run on that"
        )


def _measured(stats: dict[str, Any], index_bytes: int) -> str:
    """Return the sentence that compares a run with its forecast.

    `index_bytes` are those of an index that the run built, and that the graph keeps.
    """
    disk = stats["scratch_bytes"] + index_bytes
    if stats["store_figures"] is not None:
        disk += stats["store_figures"]["disk_bytes"]
    return measured_and_forecast(stats["forecast"], stats["peak_rss_bytes"], disk)


def _refuse_for_rows(options: argparse.Namespace) -> None:
    """Refuse options that apply to a value for each vertex.

    Raises:
        UsageError: Such an option is given.
    """
    given = {
        "--join": options.join,
        "--with": options.columns,
        "--report": options.report,
        "--store": options.store,
        "--checkpoint-every": options.checkpoint_every,
        "--resume": options.resume or None,
    }
    for flag, value in given.items():
        if value is not None:
            raise UsageError(
                f"{options.algorithm} returns a table of rows, but {flag} needs one value for each "
                f"vertex; leave {flag} out"
            )
    if options.output is not None:
        refuse_documents(options.output)


def _kept_url(options: argparse.Namespace) -> str | None:
    """Return the URL at which the vertices stay; the run itself has records of its own.

    Raises:
        UsageError: There is no store in a folder, the folder is in use, or the graph is temporary.
    """
    if not options.keep:
        return None
    from brimful.stores.kept import check_new
    from brimful.stores.registry import without_folder

    kept: str | None = options.store
    if kept is None:
        raise UsageError("--keep needs a store that can keep vertices; give --store file:PATH")
    if options.where or options.where_edges:
        raise UsageError(
            "--keep needs a permanent graph, but --where and --where-edges make a temporary one; "
            "make the graph with 'brimful derive', and run on that"
        )
    check_new(kept)
    options.store = without_folder(kept)
    return kept


def _join(options: argparse.Namespace) -> Join | None:
    """Return the table to join, if there is one.

    Raises:
        UsageError: There is no file to write it to, or --on without --join.
    """
    joins = options.join is not None or options.columns is not None
    if joins and (options.output is None or is_database(options.output)):
        flag = "--join" if options.join is not None else "--with"
        raise UsageError(f"{flag} needs an output file; name one with -o OUT.parquet")
    if options.join is None:
        if options.on is not None:
            raise UsageError("--on names a column of the table of --join; give --join TABLE")
        return None
    from brimful.tables.joining import Join

    names = column_names(options.columns, "--with")
    return Join(options.join, options.on or "vertex", names)


def _forecast(
    graph: _native.Graph,
    request: dict[str, Any],
    resources: Resources,
    *,
    checkpoints: bool,
) -> dict[str, Any] | None:
    """Return the forecast of the run; None if there is none, or if the run will be refused."""
    from brimful.planning import forecast

    try:
        foreseen = forecast(graph, None, request, resources, SLOW_MACHINE, checkpoints=checkpoints)
    except UsageError:
        return None
    return asdict(foreseen) if foreseen.fits else None
