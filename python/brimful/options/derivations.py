"""The tables of options for graphs derived from graphs."""

from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

from brimful.errors import UsageError
from brimful.options.imports import IndexOptions, NewPlaceOptions, PolicyOptions
from brimful.options.table import Option, checked, texts


def _condition(condition: Any, name: str) -> Any:
    """Return a condition; an expression of pyarrow is checked once the columns are known."""
    if condition is None or isinstance(condition, str) or hasattr(condition, "is_valid"):
        return condition
    raise UsageError(
        f'{name} must be a condition such as "year >= 2020" or an expression of pyarrow.compute, '
        f"not {type(condition).__name__}"
    )


class ConditionOptions(TypedDict, total=False):
    """Conditions on vertices and edges."""

    vertices: Annotated[
        object | None,
        Option(
            'Keep the vertices that meet a condition on `vertex` and their columns, such as "year '
            ">= 2020 and kind in ('a', 'b')\", or an expression of `pyarrow.compute`, and the "
            "edges between them. None: keep all.",
            help='keep the vertices that meet a condition on their columns, such as "year >= 2020 '
            "and kind == 'a'\", and the edges between them; needs DuckDB (pip install "
            "'brimful[duckdb]')",
            metavar="CONDITION",
            check=_condition,
        ),
    ]
    edges: Annotated[
        object | None,
        Option(
            "Keep the edges that meet a condition on `source`, `target`, `weight` and their "
            "columns; all vertices stay. None: keep all.",
            help="keep the edges that meet a condition on source, target, weight and their "
            'columns, such as "weight > 2"; all vertices stay',
            metavar="CONDITION",
            check=_condition,
        ),
    ]


class DerivedOptions(IndexOptions, NewPlaceOptions, total=False):
    """The place and the resources of a derived graph."""


class MergedOptions(PolicyOptions, DerivedOptions, total=False):
    """Options of derivations that may make edges parallel."""


class DeriveVerbOptions(ConditionOptions, total=False):
    """How a graph is made from a graph, on the command line."""

    around: Annotated[
        Sequence[str] | None,
        Option(
            "Keep the vertices that this one reaches along at most `hops` edges; may be given "
            "several times.",
            metavar="ID",
            repeated=True,
            check=lambda ids, name: ids,
        ),
    ]
    hops: Annotated[
        int | None,
        Option("The maximum distance from `around`, in edges; None: 1.", metavar="N"),
    ]
    reverse: Annotated[bool, Option("Reverse the edges.", default=False)]
    undirected: Annotated[bool, Option("Remove the directions of edges.", default=False)]
    contract: Annotated[
        str | None,
        Option(
            "Merge the vertices that have the same value in a result, or in a table with the "
            "column `vertex` and one other. The weight of a merged edge is the sum of the weights, "
            "or the number of edges if they have none.",
            metavar="RESULT",
        ),
    ]


class WhereOptions(TypedDict, total=False):
    """The part of a graph that a run visits."""

    where: Annotated[
        str | None,
        Option(
            "Run on the vertices that meet a condition, and the edges between them: see `vertices` "
            "of derive.",
            help="run on the vertices that meet a condition on their columns, and the edges "
            "between them, as a temporary graph (see 'brimful derive --vertices')",
            metavar="CONDITION",
        ),
    ]
    where_edges: Annotated[
        str | None,
        Option(
            "Run on the edges that meet a condition: see `edges` of derive.",
            help="run on the edges that meet a condition (see 'brimful derive --edges')",
            metavar="CONDITION",
        ),
    ]


def conditions(**options: object) -> dict[str, Any]:
    """Check conditions, and return them.

    Raises:
        UsageError: A condition is neither a string nor an expression of pyarrow.
    """
    return dict(checked(ConditionOptions, options, "conditions"))


#: Sentences for docstrings.
DERIVED = texts(ConditionOptions) | texts(MergedOptions)
