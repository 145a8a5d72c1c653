"""`brimful derive GRAPH OUT`: a graph made from a graph."""

from __future__ import annotations

import argparse
from typing import Any

from brimful.cli import options as shared
from brimful.cli.import_verb import NO_INPUT, report
from brimful.cli.progress import ProgressLine, logged_to
from brimful.cli.request import vertex_of
from brimful.errors import UsageError
from brimful.io.formats import require_graph_suffix
from brimful.io.hidden import refuse_existing
from brimful.options.derivations import DeriveVerbOptions
from brimful.options.imports import IndexOptions, PolicyOptions
from brimful.options.table import ResourceOptions


def add_to(verbs: shared.Verbs) -> None:
    """Add the verb."""
    parser = shared.add_verb(
        verbs,
        "derive",
        "Make a graph from another graph: a part of its vertices and edges, reversed, "
        "undirected, or contracted by groups of vertices.",
        act,
        more="Several options apply in the order below. Ids, weights and columns are kept.",
        examples=(
            "brimful derive web.brimful recent.brimful --vertices 'year >= 2020'",
            "brimful derive roads.brimful near.brimful --around 17 --hops 3",
            "brimful derive web.brimful groups.brimful --contract communities.parquet",
        ),
    )
    parser.add_argument("graph", metavar="GRAPH", help="a graph directory or an input file")
    parser.add_argument("out", metavar="OUT.brimful", help="the graph directory to make")
    shared.add_options(parser, DeriveVerbOptions)
    shared.add_options(parser, PolicyOptions)
    shared.add_options(parser, IndexOptions)
    shared.add_options(parser, ResourceOptions)
    shared.add_reporting(parser)


def act(options: argparse.Namespace) -> None:
    """Make the graph, then print its counts."""
    from brimful.graph import Graph
    from brimful.saved import SavedResult
    from brimful.tables.derived import Derivation, derive, derive_options, require_budget
    from brimful.tables.derived_vertices import within

    chosen = shared.chosen(options, DeriveVerbOptions)
    policies = shared.chosen(options, PolicyOptions)
    require_graph_suffix(options.out)
    refuse_existing(options.out)
    if chosen == shared.chosen(argparse.Namespace(), DeriveVerbOptions):
        raise UsageError(
            "no derivation is named; give --vertices, --edges, --around, --reverse, "
            "--undirected or --contract"
        )
    around, hops, contract = (chosen.pop(name) for name in ("around", "hops", "contract"))
    if hops is not None and around is None:
        raise UsageError("--hops counts edges from the vertices of --around; give --around too")
    if contract is not None:
        if policies["duplicates"] != "keep":
            raise UsageError("--contract adds up parallel edges; leave --duplicates out")
        policies["duplicates"] = "sum"
    wanted: dict[str, Any] = {**chosen}
    imported = derive_options(**policies, **shared.chosen(options, IndexOptions))
    with ProgressLine(quiet=options.quiet) as progress, logged_to(progress):
        given = shared.resources(options, progress)
        native = shared.open_named_graph(options, given, progress)
        if contract is not None or around is not None:
            # A result and the neighbors are read before `derive` checks the budget.
            require_budget(imported, given, joins=True, tests=False)
        if contract is not None:
            wanted["contract"] = SavedResult(contract)
        if around is not None:
            starts = [vertex_of(text, native, "--around") for text in around]
            near = Graph(native, budget=given.budget)
            wanted["ids"] = within(near, starts, 1 if hops is None else hops, given)
        figures = derive(
            native,
            options.out,
            Derivation(**wanted),
            imported,
            given,
        )
    report(options, figures | NO_INPUT)
