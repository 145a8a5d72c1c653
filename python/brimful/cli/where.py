"""The part of a graph that meets conditions, as a temporary graph: `run --where`."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from brimful.io.formats import GRAPH_SUFFIX
from brimful.options.table import Option

if TYPE_CHECKING:
    from brimful import _native
    from brimful.io.ingest import Resources


class WhereOptions(TypedDict, total=False):
    """The part of a graph that a run is on."""

    where: Annotated[
        str | None,
        Option(
            "Run on the vertices that meet a condition, and the edges between them: see `vertices` "
            "of derive.",
            help="run on the vertices that meet a condition on their columns, and the edges "
            "between them, as 'brimful derive --vertices': a temporary graph",
            metavar="CONDITION",
        ),
    ]
    where_edges: Annotated[
        str | None,
        Option(
            "Run on the edges that meet a condition: see `edges` of derive.",
            help="run on the edges that meet a condition, as 'brimful derive --edges'",
            metavar="CONDITION",
        ),
    ]


class Where:
    """The part of a graph that meets the conditions of a command."""

    def __init__(self, graph: _native.Graph, chosen: Mapping[str, Any]) -> None:
        """Take the graph and checked `WhereOptions`."""
        self._graph, self._chosen = graph, chosen
        #: Conditions and counts; None without a condition.
        self.figures: dict[str, Any] | None = None

    @contextlib.contextmanager
    def part(self, given: Resources) -> Iterator[_native.Graph]:
        """Give the graph, or the part of it that meets the conditions, which then goes."""
        if not any(self._chosen.values()):
            yield self._graph
            return
        from brimful import _native
        from brimful.options.derivations import DerivedOptions
        from brimful.options.table import checked
        from brimful.tables.derived import Derivation, derive, derive_options

        folder = _native.TemporaryFolder(tempfile.gettempdir(), ".brimful-where-")
        try:
            place = os.path.join(folder.path, "part" + GRAPH_SUFFIX)
            wanted = Derivation(vertices=self._chosen["where"], edges=self._chosen["where_edges"])
            index = checked(DerivedOptions, {})["index"]
            derive(self._graph, place, wanted, derive_options(index=index), given)
            part = _native.Graph.open(place)
            self.figures = {**self._chosen, "vertices": part.vertices, "edges": part.edges}
            yield part
        finally:
            folder.close()

    def sentences(self) -> list[str]:
        """Return what the part is, for a summary."""
        if self.figures is None:
            return []
        conditions = [self._chosen[name] for name in ("where", "where_edges")]
        return [
            f"where {' and edges '.join(text for text in conditions if text)}: "
            f"{self.figures['vertices']:,} of {self._graph.vertices:,} vertices, "
            f"{self.figures['edges']:,} of {self._graph.edges:,} edges"
        ]
