"""`brimful algorithms`: what there is to run."""

from __future__ import annotations

import argparse

from brimful.cli import options as shared


def add_to(verbs: shared.Verbs) -> None:
    """Add the verb."""
    parser = shared.add_verb(verbs, "algorithms", "List the algorithms and what they take.", act)
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object as the last line"
    )


def act(options: argparse.Namespace) -> None:
    """Print each algorithm: what it computes, its value column, options and parameters."""
    from brimful import _native

    algorithms = _native.algorithms()
    if options.json:
        shared.print_json({"algorithms": algorithms})
        return
    for algorithm in algorithms:
        shared.show(f"{algorithm['name']}\n  {algorithm['computes']}")
        shared.show(f"  column {algorithm['column']}")
        if algorithm["takes"]:
            shared.show("  takes " + ", ".join(f"--{option}" for option in algorithm["takes"]))
        for parameter in algorithm["parameters"]:
            shared.show(
                f"  --param {parameter['name']}={parameter['default']}: {parameter['meaning']}"
            )
