"""`brimful plan GRAPH ALGORITHM`: memory, disk and time of a run, before it begins."""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict
from typing import Any

from brimful.catalog import LIST_COMMAND, algorithms
from brimful.cli import options as shared
from brimful.cli.forecasts import number_of_supersteps, outside_memory, whole_mebibytes
from brimful.cli.progress import ProgressLine, format_seconds
from brimful.cli.request import add_request, run_request, sources_of
from brimful.errors import UsageError
from brimful.io.formats import GRAPH_SUFFIX
from brimful.options.runs import (
    MachineOptions,
    OutputOptions,
    PlannedClusterOptions,
    UnbuiltOptions,
)
from brimful.options.table import ResourceOptions
from brimful.sizes import format_bytes
from brimful.wording import counted


def add_to(verbs: shared.Verbs) -> None:
    """Add the verb."""
    parser = shared.add_verb(
        verbs,
        "plan",
        "Forecast the memory, disk and time of a run.",
        act,
        more="With --vertices and --edges the graph need not exist, and its import is forecast "
        "too. Memory and disk follow the plan of the run itself; the time is an estimate.",
        examples=(
            "brimful plan web.brimful pagerank --budget 500M",
            "brimful plan pagerank --vertices 11.5e9 --edges 128e9 --budget 64G",
            "brimful plan web.brimful pagerank --cluster 8 --network 25",
        ),
    )
    parser.add_argument(
        "names",
        metavar="[GRAPH] ALGORITHM",
        nargs="+",
        help="a graph directory or an input file, unless --vertices and --edges are given; and an "
        "algorithm, see brimful algorithms, before or after it",
    )
    unbuilt = parser.add_argument_group("a graph that does not exist yet")
    shared.add_options(unbuilt, UnbuiltOptions)
    machines = parser.add_argument_group("other machines")
    shared.add_options(machines, PlannedClusterOptions)
    shared.add_options(machines, MachineOptions)
    add_request(parser)
    shared.add_options(parser, OutputOptions)
    shared.add_options(parser, ResourceOptions)
    shared.add_reporting(parser)


def act(options: argparse.Namespace) -> None:
    """Forecast, then print the forecast."""
    *graphs, algorithm = options.names
    if len(graphs) > 1:
        raise UsageError(
            f"plan takes one graph and one algorithm, found {len(options.names)} names; see "
            "'brimful plan --help'"
        )
    swapped = graphs and (graphs[0] in algorithms() or _names_graph(algorithm))
    if swapped and algorithm not in algorithms():
        # The arguments came in the order of `brimful run`: the algorithm first.
        graphs, algorithm = [algorithm], graphs[0]
    if not graphs and algorithm not in algorithms() and _names_graph(algorithm):
        raise UsageError(
            f"plan needs an algorithm after the graph {algorithm}; '{LIST_COMMAND}' lists all"
        )
    from brimful.io.output import reserve_of_result
    from brimful.planning import cluster_size_of, forecast, require_sources, sizes_of

    reserve_bytes = reserve_of_result(options.output)
    size = cluster_size_of(shared.chosen(options, PlannedClusterOptions)["cluster"])
    request = run_request(options, algorithm, None if graphs else options.source, cluster_size=size)
    sizes = sizes_of(bool(graphs), shared.chosen(options, UnbuiltOptions))
    machine = shared.chosen(options, MachineOptions)
    with ProgressLine(quiet=options.quiet) as progress:
        given = shared.resources(options, progress)
        graph = None
        if graphs:
            options.graph = graphs[0]
            graph = shared.open_named_graph(options, given, progress)
            request = run_request(options, algorithm, sources_of(options, graph), cluster_size=size)
        leaving = given.leaving(reserve_bytes)
        figures = asdict(forecast(graph, sizes, request, leaving, machine))
        require_sources(graph, request)
    if sizes is None:
        subject = graphs[0]
    else:
        subject = f"{counted(sizes.vertices, 'vertex')} and {counted(sizes.edges, 'edge')}"
    if options.json:
        shared.print_json({"graph": graphs[0] if graphs else None} | figures)
    elif not options.quiet:
        shared.show(summary(subject, figures, is_estimate=options.store is not None))


def summary(subject: str, figures: dict[str, Any], *, is_estimate: bool) -> str:
    """Return the lines that describe a forecast, whose smallest budget may be an estimate."""
    workers = figures["workers"]
    on = "" if workers is None else f", for each of {counted(workers, 'worker')}"
    lines = [f"{figures['algorithm']} of {subject}{on}"]
    lines += _memory_lines(figures, is_estimate=is_estimate)
    if figures["read_once_bytes"] is not None:
        lines.append(
            "  a superstep over all edges reads "
            f"{format_bytes(figures['read_bytes_per_superstep'])} and writes "
            f"{format_bytes(figures['written_bytes_per_superstep'])}; "
            f"{format_bytes(figures['read_once_bytes'])} of edges stay in memory"
        )
    if workers is not None:
        lines.append(
            "  a superstep in which all vertices signal sends "
            f"{format_bytes(figures['sent_bytes_per_superstep'])} and receives "
            f"{format_bytes(figures['received_bytes_per_superstep'])}" + _through(figures)
        )
    return "\n".join(lines + _time_lines(figures))


def _memory_lines(figures: dict[str, Any], *, is_estimate: bool) -> list[str]:
    """Return the lines about the import, the budget, and peak memory and disk."""
    lines = []
    imported = figures["imported"]
    if imported is not None:
        lines.append(
            f"  import: peak memory {format_bytes(imported['peak_memory_bytes'])}, "
            f"{format_bytes(imported['graph_bytes'])} on disk and "
            f"{format_bytes(imported['temporary_bytes'])} while it runs{_time(imported)}"
        )
    least = whole_mebibytes(figures["minimum_budget_bytes"])
    smallest = f"{'by estimate, ' if is_estimate else ''}the smallest that works is {least}"
    budget = format_bytes(figures["budget_bytes"])
    if figures["fits"]:
        lines.append(f"  a budget of {budget} works; {smallest}")
    else:
        lines.append(
            f"  a budget of {budget} is too small; {smallest}; the other figures assume that budget"
        )
    outside = outside_memory(figures)
    if outside:
        lines.append(f"  {outside}")
    lines.append(
        f"  peak memory {format_bytes(figures['peak_memory_bytes'])}, "
        f"{format_bytes(figures['disk_bytes'])} of disk next to the graph"
        + (
            f" ({format_bytes(figures['index_bytes'])} for an index that stays)"
            if figures["index_bytes"]
            else ""
        )
    )
    return lines


def _time_lines(figures: dict[str, Any]) -> list[str]:
    """Return the lines about the time."""
    each = figures["seconds_per_superstep"]
    seconds = "the time cannot be forecast"
    if each is not None:
        whole = format_seconds(figures["seconds"])
        seconds = f"{format_seconds(each)} for one over all edges, {whole} in all"
    lines = [f"  {number_of_supersteps(figures)}: {seconds}"]
    network = figures["network"]
    if each is not None or figures["imported"] is not None:
        lines.append(
            f"  time is an estimate, for memory of {figures['memory_bandwidth']:.3g} GB/s and a "
            f"disk of {figures['disk_bandwidth']:.3g} GB/s"
            + ("" if network is None else f", and a network of {network:.3g} Gbit/s")
        )
    return lines


def _names_graph(word: str) -> bool:
    return word.endswith(GRAPH_SUFFIX) or os.path.exists(word)


def _through(figures: dict[str, Any]) -> str:
    if figures["workers"] == 1:
        return ""
    memory = figures["exchange_memory_bytes"]
    if memory == 0:
        return ", through Ray's store"
    return f", through {format_bytes(memory)} of memory that workers share"


def _time(imported: dict[str, Any]) -> str:
    return f", {format_seconds(imported['seconds'])}"
