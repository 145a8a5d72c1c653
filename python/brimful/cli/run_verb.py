"""`brimful run ALGORITHM GRAPH`: compute, then write, rank or report the result."""

from __future__ import annotations

import argparse
import contextlib
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from brimful.catalog import algorithms
from brimful.cli import options as shared
from brimful.cli.arguments import integer
from brimful.cli.forecasts import SLOW_MACHINE, announced, is_small_run, measured_and_forecast
from brimful.cli.log import command_of
from brimful.cli.progress import ProgressLine, format_seconds, logged_to
from brimful.cli.request import (
    add_around,
    add_request,
    around_of,
    refuse_around,
    run_request,
    sources_of,
)
from brimful.cli.where import Where
from brimful.documents import is_database
from brimful.errors import UsageError
from brimful.io.formats import refuse_standard_output
from brimful.io.output import check_output, refuse_input, reserve_of_result, write_result
from brimful.io.redaction import redacted_word
from brimful.options.checks import column_names
from brimful.options.clusters import ClusterOptions
from brimful.options.derivations import WhereOptions
from brimful.options.runs import CheckpointOptions, ProgramOptions
from brimful.options.table import ResourceOptions, checked
from brimful.result import Result, run_native
from brimful.rows import computed_rows, refuse_documents
from brimful.tables.edge_table import (
    ARROW_RESERVE_BYTES,
    require_arrow_address_space,
    shrink_arrow_pools,
)
from brimful.wording import counted

if TYPE_CHECKING:
    from brimful import _native
    from brimful.cli.recorder import Recorder
    from brimful.documents.results import Written
    from brimful.resources import Resources
    from brimful.tables.joining import Columns, Join, JoinTally


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
    parser.add_argument("--overwrite", action="store_true", help="replace OUT if it exists")
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
        _run(options, kept, join, None)
        return
    from brimful.cli.recorder import Recorder
    from brimful.report.html import check_report

    check_report(options.report, overwrite=options.overwrite)
    _run(options, kept, join, Recorder())


def _run(
    options: argparse.Namespace,
    kept: str | None,
    join: Columns | None,
    recorder: Recorder | None,
) -> None:
    """Run the algorithm; `kept` is the URL at which its vertices stay afterwards."""
    from brimful import _native

    checkpoints = shared.chosen(options, CheckpointOptions)
    saving = checkpoints["checkpoint_every"] is not None or checkpoints["resume"]
    if saving:
        _refuse_part(options)
    joins = join is not None or options.columns is not None
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
        reserve_bytes = _reserve_bytes(options, graph, join, recorder)
        cluster = shared.chosen(options, ClusterOptions)
        request = run_request(
            options, options.algorithm, sources_of(options, graph), cluster=cluster
        )
        figures, leaving = None, given.leaving(reserve_bytes)
        if request["cluster"] is None:
            figures = _forecast(graph, request, leaving, checkpoints=saving)
        # The run refuses a budget that is too small; pyarrow and DuckDB may not fit it.
        if joins and (figures is not None or request["cluster"] is not None):
            join = _checked_columns(options, join, graph)
        if reserve_bytes:
            # Before the work, whose result could not be written.
            require_arrow_address_space()
        small = figures is not None and is_small_run(figures, graph.vertices + graph.arcs)
        if figures is not None:
            if not small:
                progress.announce(announced(figures) + (", besides checkpoints" if saving else ""))
            progress.expect(figures["supersteps"], about=figures["supersteps_guessed"])
        around = around_of(options, graph)
        before = graph.bytes_on_disk
        result: _native.Result | _native.Rows
        if algorithms()[options.algorithm]["rows"]:
            result = computed_rows(graph, request, leaving)
        else:
            result = run_native(graph, request, checkpoints, leaving)
        written = tally = None
        if options.output is not None:
            progress.update(f"write {redacted_word(options.output)}", 0, 0, 0.0)
            if reserve_bytes:
                shrink_arrow_pools()
            written, tally = _write(options, result, join, given)
        if isinstance(result, _native.Result):
            result.discard_checkpoints()
            if kept is not None:
                _keep(kept, options, Result(result), graph, given)
        stats = _figures(options, result, where, kept, written, tally)
        warnings = [] if join is None or tally is None else tally.sentences(join.name)
        warnings += [] if written is None else written.warnings()
        for sentence in warnings:
            progress.warn(sentence)
        if stats["forecast"] is not None and not small:
            progress.say(_measured(stats, graph.bytes_on_disk - before))
        if recorder is not None and isinstance(result, _native.Result):
            progress.update(f"write {redacted_word(options.report)}", 0, 0, 0.0)
            _report(options, Result(result), stats, graph, around, recorder)
    if not options.json and not options.quiet:
        _show_summary(options, stats, where)
    if options.top is not None:
        _show_top(result, options.top)
    if options.json:
        shared.print_json(stats)


def _refuse_part(options: argparse.Namespace) -> None:
    """Refuse a part of a graph in a run with checkpoints."""
    if options.where or options.where_edges:
        raise UsageError(
            "--where and --where-edges make a temporary graph, on which a run has no checkpoints; "
            "make the graph with 'brimful derive', and run on that"
        )


def _checked_columns(
    options: argparse.Namespace, join: Columns | None, graph: _native.Graph
) -> Columns:
    """Return the columns to write with the result, of a table or of the graph.

    Raises:
        UsageError: The result cannot have the columns.
    """
    if join is None:
        from brimful.tables.columns import GraphColumns

        join = GraphColumns(graph, column_names(options.columns, "--with"))
    join.check(None, texts=graph.id_type == "string")
    return join


def _write(
    options: argparse.Namespace,
    result: _native.Result | _native.Rows,
    join: Columns | None,
    given: Resources,
) -> tuple[Written | None, JoinTally | None]:
    """Write the result; return the changes of documents, if it is in a database, and of a join."""
    if join is None:
        return write_result(result, options.output, overwrite=options.overwrite), None
    from brimful.tables.joining import write_joined

    return None, write_joined(result, options.output, join, given, overwrite=options.overwrite)


def _figures(
    options: argparse.Namespace,
    result: _native.Result | _native.Rows,
    where: Where,
    kept: str | None,
    written: Written | None,
    tally: JoinTally | None,
) -> dict[str, Any]:
    """Return the figures of a run and of its outputs."""
    from brimful import _native

    return result.stats | {
        "peak_rss_bytes": _native.peak_rss_bytes(),
        "output": options.output if written is None else written.name,
        "documents": None if written is None else written.figures(),
        "kept": None if kept is None else redacted_word(kept),
        "where": where.figures,
        "join": None if tally is None else asdict(tally),
        "report": options.report,
    }


def _measured(stats: dict[str, Any], index_bytes: int) -> str:
    """Return the sentence that compares a run with its forecast.

    `index_bytes` are those of an index that the run built, and that the graph keeps.
    """
    disk = stats["scratch_bytes"] + index_bytes
    if stats["store_figures"] is not None:
        disk += stats["store_figures"]["disk_bytes"]
    return measured_and_forecast(stats["forecast"], stats["peak_rss_bytes"], disk)


def _reserve_bytes(
    options: argparse.Namespace,
    graph: _native.Graph,
    join: Columns | None,
    recorder: Recorder | None,
) -> int:
    """Return the bytes of the budget that stay free for writing the result and a report."""
    if join is not None:
        from brimful.tables.connection import JOIN_RESERVE_BYTES

        reserve_bytes = JOIN_RESERVE_BYTES
    elif options.columns is not None:
        from brimful.tables.columns import rows_bytes

        names = column_names(options.columns, "--with")
        reserve_bytes = ARROW_RESERVE_BYTES + rows_bytes(graph, names)
    else:
        reserve_bytes = reserve_of_result(options.output)
    if recorder is not None:
        from brimful.report.html import REPORT_RESERVE_BYTES

        reserve_bytes += REPORT_RESERVE_BYTES
    return reserve_bytes


def _show_summary(options: argparse.Namespace, stats: dict[str, Any], where: Where) -> None:
    """Print the figures of the run, and the fate of its result."""
    shared.show(summary(options.graph, stats))
    for sentence in where.sentences():
        shared.show(f"  {sentence}")
    uses = stats["output"], stats["kept"], options.top, options.report
    if all(use is None for use in uses):
        shared.show("  the result was not written; give -o FILE, or --top N to print it")


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


def _keep(
    url: str, options: argparse.Namespace, result: Result, graph: _native.Graph, given: Resources
) -> None:
    """Leave the vertices with their values in the folder of the store."""
    from brimful.graph import Graph
    from brimful.vertex_store import keep

    chosen = checked(ProgramOptions, {"weighted": options.weighted})
    keep(Graph(graph), url, result, "json", {**chosen, **vars(given)})


def _show_top(result: _native.Result | _native.Rows, count: int) -> None:
    """Print the rows of the largest values."""
    from brimful import _native

    if isinstance(result, _native.Rows):
        columns: list[str] | tuple[str, str] = result.columns
    else:
        columns = "vertex", result.column
    shared.show_rows(columns, (row for rows in result.top(count) for row in rows))


def _report(
    options: argparse.Namespace,
    result: Result,
    stats: dict[str, Any],
    graph: _native.Graph,
    around: list[int | str],
    recorder: Recorder,
) -> None:
    """Write the report of a run."""
    from brimful.graph import Graph
    from brimful.report import html as report_html

    recorder.sample()
    recorded = report_html.Recorded(command_of(options.words), recorder.samples)
    report = report_html.of_result(
        result, stats=stats, recorded=recorded, graph=Graph(graph), around=around
    )
    report.write(options.report, overwrite=options.overwrite)


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


def summary(graph: str, stats: dict[str, Any]) -> str:
    """Return the lines that describe a run."""
    supersteps = stats["supersteps"]
    has_none = stats["mode"] == "async" and stats["store"] is not None
    steps = "without supersteps" if has_none else counted(supersteps, "superstep")
    rows = f", {counted(stats['rows'], 'row')}" if "rows" in stats else ""
    lines = [
        f"{stats['algorithm']} of {graph}: {counted(stats['vertices'], 'vertex')}, "
        f"{counted(stats['edges'], 'edge')}{rows}",
        f"  {steps} in {format_seconds(stats['seconds'])}, {stats['reason']}",
    ]
    if supersteps:
        lines.append(
            f"  seconds per superstep: {stats['superstep_min']:.3g} min, "
            f"{stats['superstep_median']:.3g} median, {stats['superstep_max']:.3g} max"
        )
    if stats["largest_frontier"] is not None:
        lines.append(
            f"  largest frontier: {counted(stats['largest_frontier'], 'vertex')}; "
            f"{counted(stats['edge_visits'], 'edge')} visited"
        )
    lines.append("  " + shared.peak_memory(stats["peak_rss_bytes"], stats["budget_bytes"]))
    if stats["documents"] is not None:
        documents = stats["documents"]
        lines.append(
            f"  result: {stats['output']}, field {documents['field']} of "
            + counted(documents["updated"], "document")
        )
    elif stats["output"] is not None:
        lines.append(f"  result: {stats['output']}")
    if stats["kept"] is not None:
        lines.append(f"  vertices: {stats['kept']}")
    if stats["report"] is not None:
        lines.append(f"  report: {stats['report']}")
    return "\n".join(lines)
