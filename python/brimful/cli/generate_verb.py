"""`brimful generate KIND OUT.brimful`: graphs of known models, reproducible by their seed."""

from __future__ import annotations

import argparse

from brimful.cli import options as shared
from brimful.cli.arguments import integer, real
from brimful.cli.import_verb import NO_INPUT, report
from brimful.cli.progress import ProgressLine
from brimful.errors import UsageError
from brimful.io.formats import require_graph_suffix
from brimful.io.hidden import refuse_existing
from brimful.options.imports import EdgeOptions, IndexOptions, PolicyOptions, import_options
from brimful.options.table import ResourceOptions, picked

#: Parameters of each kind with their defaults; None: required.
_KINDS: dict[str, dict[str, int | float | None]] = {
    "rmat": {"scale": 20, "edge_factor": 16},
    "lognormal": {"vertices": None, "mu": 4.0, "sigma": 1.3},
    "chain": {"vertices": None},
    "ring": {"vertices": None},
    "star": {"vertices": None},
    "grid": {"rows": None, "columns": None, "torus": 0},
    "mesh": {"vertices": None},
    "watts-strogatz": {"vertices": None, "neighbors": None, "probability": None},
    # Exactly one of `edges` and `probability` must be given.
    "erdos-renyi": {"vertices": None, "edges": None, "probability": None},
}
_PARAMETERS = sorted({name for defaults in _KINDS.values() for name in defaults})


def add_to(verbs: shared.Verbs) -> None:
    """Add the verb."""
    parser = shared.add_verb(
        verbs,
        "generate",
        "Generate a graph of a known model.",
        act,
        examples=(
            "brimful generate rmat big.brimful --scale 22 --edge-factor 16",
            "brimful generate grid roads.brimful --rows 1000 --columns 1000",
        ),
    )
    parser.add_argument(
        "kind",
        metavar="KIND",
        choices=sorted(_KINDS),
        help="rmat (--scale --edge-factor), lognormal (--vertices --mu --sigma), chain, ring or "
        "star (--vertices), grid (--rows --columns --torus), mesh (--vertices), watts-strogatz "
        "(--vertices --neighbors --probability), erdos-renyi (--vertices, and --edges or "
        "--probability); grid, mesh and watts-strogatz are undirected",
    )
    parser.add_argument("out", metavar="OUT.brimful", help="the graph directory to make")
    count = integer(1)
    parser.add_argument("--scale", metavar="N", type=count, help="rmat: 2^N ids (default 20)")
    parser.add_argument(
        "--edge-factor", metavar="N", type=count, help="rmat: edges per id (default 16)"
    )
    parser.add_argument("--vertices", metavar="N", type=count, help="number of vertices")
    parser.add_argument(
        "--edges",
        metavar="M",
        type=integer(0),
        help="erdos-renyi: exactly M distinct edges",
    )
    parser.add_argument(
        "--probability",
        metavar="P",
        type=real(0, 1),
        help="erdos-renyi: probability of each pair; watts-strogatz: of rewiring an edge",
    )
    parser.add_argument(
        "--neighbors",
        metavar="K",
        type=count,
        help="watts-strogatz: neighbors on the ring, an even number",
    )
    parser.add_argument(
        "--mu",
        metavar="X",
        type=real(),
        help="lognormal: mean of the logarithms of out-degrees (default 4)",
    )
    parser.add_argument(
        "--sigma",
        metavar="X",
        type=real(0),
        help="lognormal: standard deviation of these logarithms (default 1.3)",
    )
    parser.add_argument("--rows", metavar="N", type=count, help="grid: rows")
    parser.add_argument("--columns", metavar="N", type=count, help="grid: columns")
    parser.add_argument(
        "--torus", action="store_const", const=1, help="grid: join opposite borders"
    )
    parser.add_argument(
        "--seed",
        metavar="N",
        type=integer(0, 2**64 - 1),
        default=0,
        help="seed of the random numbers (default 0)",
    )
    parser.add_argument(
        "--weights",
        choices=("none", "hash"),
        default="none",
        help="hash: whole numbers from 1 to 100 that depend on the two ids (default: none)",
    )
    shared.add_options(parser, PolicyOptions)
    parser.add_argument("--undirected", action="store_true", help="edges have no direction")
    shared.add_options(parser, IndexOptions)
    shared.add_options(parser, ResourceOptions)
    shared.add_reporting(parser)


def act(options: argparse.Namespace) -> None:
    """Generate, then print the counts."""
    require_graph_suffix(options.out)
    params = _params(options)
    edges = import_options(
        undirected=options.undirected,
        weights="hash" if options.weights == "hash" else "input",
        **shared.chosen(options, IndexOptions),
        **picked(PolicyOptions, vars(options)),
    )
    refuse_existing(options.out)
    from brimful import _native

    with ProgressLine(quiet=options.quiet) as progress:
        given = shared.resources(options, progress)
        figures = _native.generate(
            options.kind,
            options.out,
            params,
            seed=options.seed,
            edges=picked(EdgeOptions, edges),
            resources=given,
        )
    report(options, figures | NO_INPUT)


def _params(options: argparse.Namespace) -> dict[str, int | float]:
    """Return the parameters of the kind.

    Raises:
        UsageError: A parameter is missing, or applies to another kind.
    """
    defaults = dict(_KINDS[options.kind])
    if options.kind == "erdos-renyi":
        if (options.edges is None) == (options.probability is None):
            raise UsageError(
                "erdos-renyi needs either --edges M or --probability P; give one of them"
            )
        del defaults["probability" if options.probability is None else "edges"]
    params: dict[str, int | float] = {}
    for name in _PARAMETERS:
        given: int | float | None = getattr(options, name)
        flag = "--" + name.replace("_", "-")
        if name not in defaults:
            if given is not None:
                raise UsageError(f"{flag} does not apply to {options.kind}; leave it out")
            continue
        value = defaults[name] if given is None else given
        if value is None:
            raise UsageError(f"{options.kind} needs {flag}; give it")
        params[name] = value
    return params
