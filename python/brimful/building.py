"""Builds a new graph with its columns; the graph appears complete or not at all.

Invariant: an import and its columns are made in a hidden folder next to the output, which the next
import removes if this process is killed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from brimful.io.hidden import whole_graph
from brimful.memory import require_all
from brimful.options.imports import (
    EdgeOptions,
    PolicyOptions,
    import_options,
    vertex_column_options,
)
from brimful.options.table import picked

if TYPE_CHECKING:
    from brimful.resources import Resources


def build(
    out: str,
    work: Callable[[str], dict[str, Any]],
    chosen: Mapping[str, Any],
    resources: Resources,
    inputs: object = None,
) -> dict[str, Any]:
    """Make a graph by `work`, which takes its path, and give its vertices and edges columns.

    `chosen` has checked `VertexColumnOptions`, and `EdgeColumnOptions` where there may be some:
    of `inputs`, the paths or the table that `work` reads. Returns the figures of the import, in
    which `vertex_columns` are those of the join: None without columns.

    Raises:
        UsageError, InputError, BudgetError, StoreIoError: As the import, `add_vertex_columns` and
            `add_edge_columns`; then nothing is left at `out`.
    """
    wanted = vertex_column_options(chosen)
    table, names = wanted["vertex_columns"], chosen.get("edge_columns")
    if table is None and names is None:
        return {**work(out), "vertex_columns": None}
    from brimful import _native
    from brimful.tables.columns import add_vertex_columns
    from brimful.tables.connection import PACKAGES_BYTES, join_memory
    from brimful.tables.edge_columns import add_edge_columns, check_edge_columns
    from brimful.tables.joining import Join, table_name

    # Tables that cannot be joined, and budgets, are refused before the edges are read.
    if not resources.process_budget:
        # Measured before pyarrow is loaded, so that the joins have the budget that is checked.
        resources = resources.beside(PACKAGES_BYTES)
        # On the command line `io.ingest.require_budget` also counts the packages.
        policies = import_options(**picked(PolicyOptions, chosen))
        require_all(
            lambda: _native.require_import_budget(
                "parquet", [], edges=picked(EdgeOptions, policies), resources=resources
            ),
            lambda: join_memory(resources),
        )
    if table is not None:
        Join(table, wanted["on"])
    if names is not None:
        check_edge_columns(inputs, names, chosen)
    begin = time.monotonic()
    with whole_graph(out) as place:
        figures = work(place) | {"vertex_columns": None}
        graph = _native.Graph.open(place)
        if names is not None:
            add_edge_columns(graph, inputs, names, figures["columns"], chosen, resources)
            ignored = figures["columns"]["ignored"]
            figures["columns"]["ignored"] = [name for name in ignored if name not in names]
            figures["columns"]["edge_columns"] = names
        if table is not None:
            given = {"unmatched": wanted["unmatched"]}
            tally = add_vertex_columns(graph, table, wanted["on"], resources, **given)
            figures["vertex_columns"] = asdict(tally) | {"table": table_name(table)}
        figures["bytes_on_disk"] = _native.Graph.open(place).bytes_on_disk
    figures["seconds"] = time.monotonic() - begin
    figures["peak_rss_bytes"] = _native.peak_rss_bytes()
    return figures


def column_sentences(figures: Mapping[str, Any]) -> list[str]:
    """Return the sentence about rows of a table of columns that were left out."""
    from brimful.tables.joining import JoinTally

    tally = figures["vertex_columns"]
    if tally is None:
        return []
    counts = {name: count for name, count in tally.items() if name != "table"}
    return JoinTally(**counts).sentences(tally["table"], "the graph")
