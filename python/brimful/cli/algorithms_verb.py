"""`brimful algorithms`: the algorithms with their options and parameters."""

from __future__ import annotations

import argparse
from typing import Any

from brimful.cli import options as shared
from brimful.errors import UsageError
from brimful.wording import unknown


def add_to(verbs: shared.Verbs) -> None:
    """Add the verb."""
    parser = shared.add_verb(
        verbs,
        "algorithms",
        "List the algorithms by family, their options and parameters.",
        act,
        examples=(
            "brimful algorithms",
            "brimful algorithms pagerank",
        ),
    )
    parser.add_argument(
        "name", metavar="ALGORITHM", nargs="?", help="show this one only (default: all)"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object as the last line"
    )


def act(options: argparse.Namespace) -> None:
    """Print each algorithm: its result, its value column, its options and parameters."""
    from brimful.catalog import LIST_COMMAND
    from brimful.catalog import algorithms as known

    algorithms = list(known().values())
    if options.name is not None:
        if options.name not in known():
            raise UsageError(unknown("algorithm", options.name, known(), LIST_COMMAND))
        algorithms = [known()[options.name]]
    if options.json:
        shared.print_json({"algorithms": algorithms})
        return
    family = None
    for algorithm in algorithms:
        if algorithm["family"] != family:
            family = algorithm["family"]
            shared.show(f"# {family}")
        shared.show(f"{algorithm['name']}\n  {algorithm['computes']}")
        shared.show(
            f"  columns {', '.join(algorithm['columns'])}"
            if algorithm["rows"]
            else f"  column {algorithm['column']}"
        )
        if algorithm["takes"]:
            shared.show("  options: " + ", ".join(f"--{option}" for option in algorithm["takes"]))
        for parameter in algorithm["parameters"]:
            shared.show(
                f"  --{parameter['name'].replace('_', '-')} {_values(parameter)}: "
                f"{parameter['meaning']} (default: {parameter['default']})"
            )


def _values(parameter: dict[str, Any]) -> str:
    """Return the values of a parameter as help shows them."""
    if parameter["choices"]:
        return "|".join(parameter["choices"])
    return {"count": "N", "number": "X", "numbers": "X,X,..."}[parameter["type"]]
