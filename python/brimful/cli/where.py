"""The part of a graph that meets conditions, as a temporary graph: `run --where`."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from brimful.errors import NotFoundError
from brimful.io.formats import GRAPH_SUFFIX
from brimful.wording import counted, shortened

if TYPE_CHECKING:
    from brimful import _native
    from brimful.resources import Resources


class Where:
    """The part of a graph that meets the conditions of a command."""

    def __init__(
        self, graph: _native.Graph, chosen: Mapping[str, Any], *, weighted: bool = False
    ) -> None:
        """Take the graph, checked `WhereOptions`, and whether the command needs weights."""
        self._graph, self._chosen, self._weighted = graph, chosen, weighted
        #: The conditions and the counts of the part; None without a condition.
        self.figures: dict[str, Any] | None = None

    @contextlib.contextmanager
    def part(self, given: Resources) -> Iterator[_native.Graph]:
        """Yield the graph, or the part that meets the conditions, which is removed afterwards.

        Raises:
            NotFoundError: The part lacks a vertex that the caller asked for.
        """
        if not any(self._chosen.values()):
            yield self._graph
            return
        if self._weighted:  # An error names the graph, not the temporary part.
            self._graph.require_weights("import it with a weight column or run without --weighted")
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
        except NotFoundError as error:
            if error.vertex is None or not _native.Lookup(self._graph).contains(error.vertex):
                raise
            raise NotFoundError(
                f"{error} that meets the condition {shortened(self._chosen['where'])}; choose "
                "another vertex, or another --where"
            ) from None
        finally:
            folder.close()

    def sentences(self) -> list[str]:
        """Return the line of a summary about the part."""
        if self.figures is None:
            return []
        where, where_edges = self._chosen["where"], self._chosen["where_edges"]
        conditions = [where] if where else []
        conditions += [f"edges {where_edges}"] if where_edges else []
        return [
            f"where {' and '.join(conditions)}: "
            f"{self.figures['vertices']:,} of {counted(self._graph.vertices, 'vertex')}, "
            f"{self.figures['edges']:,} of {counted(self._graph.edges, 'edge')}"
        ]
