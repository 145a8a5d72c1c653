"""Checks that the vertices of a graph are the nodes that its file declares, each of them once.

A node may be declared after its edges, so the check needs the complete graph. Ids are in buckets,
each with a sum of hashes, to which nodes add and from which vertices subtract. Invariant: memory
does not grow with the file; only the ids of a few buckets that differ are held, to find the line.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NoReturn

from brimful.errors import InputError
from brimful.io.output import native_batches
from brimful.wording import shortened

if TYPE_CHECKING:
    from brimful import _native
    from brimful.tables.graph_elements import Element

_BUCKETS = 1 << 14
#: The most buckets whose ids are held.
_HELD_BUCKETS = 4
_INTEGER = re.compile(r"(-?)0*([0-9]{1,20})")
#: The longest string id in bytes.
_LONGEST_ID = 65_536


class DeclaredIds:
    """The ids of the nodes of a file, compared with the vertices of its graph."""

    def __init__(
        self, path: str, ids: str, vertices: int, elements: Callable[[str], Iterator[Element]]
    ) -> None:
        """Take the type of ids, and the number of ids from 0 on that exist without a node."""
        self._path, self._is_string, self._vertices = path, ids == "string", vertices
        self._elements = elements
        self._sums = [0] * _BUCKETS

    def add(self, ids: Iterable[str]) -> None:
        """Add the ids of nodes."""
        self._sum(map(self._id, ids), 1)

    def check(self, graph: _native.Graph) -> None:
        """Refuse a graph whose vertices are not the nodes that were added.

        Raises:
            InputError: An edge names a vertex that no node declares, or a node is there twice.
        """
        import pyarrow as pa

        vertices = pa.RecordBatchReader.from_stream(graph.vertex_stream())
        for batch in native_batches(vertices):
            ids = batch.column(0).cast(pa.string()).to_pylist()
            self._sum(ids if self._is_string else map(self._id, ids), -1)
        differing = (at for at, total in enumerate(self._sums) if total)
        held = set(itertools.islice(differing, _HELD_BUCKETS))
        if held:
            self._refuse(held)

    def _sum(self, ids: Iterable[str | None], sign: int) -> None:
        for id_ in ids:
            if id_ is not None:
                number = hash(id_)
                self._sums[number % _BUCKETS] += sign * number

    def _id(self, text: str) -> str | None:
        """Return an id as the graph has it; None if the text is not an id, or needs no node."""
        if self._is_string:
            return text if len(text.encode()) <= _LONGEST_ID else None
        match = _INTEGER.fullmatch(text.strip())
        number = int(match[1] + match[2]) if match else 1 << 64
        if not -(1 << 63) <= number < 1 << 64 or 0 <= number < self._vertices:
            return None
        return str(number)

    def _refuse(self, numbers: set[int]) -> NoReturn:
        """Name the first node or edge that is wrong among the ids of some buckets."""
        seen: set[str] = set()
        for kind in ("node", "edge"):
            for element in self._elements(kind):
                for text in element.ends:
                    id_ = self._id(text)
                    if id_ is None or hash(id_) % _BUCKETS not in numbers:
                        continue
                    place, shown = f"{self._path}:{element.line}", shortened(id_)
                    if kind == "edge" and id_ not in seen:
                        raise InputError(
                            f'{place}: expected a vertex that a <node> declares, found "{shown}"; '
                            "add the node or remove the edge"
                        )
                    if kind == "node" and id_ in seen:
                        raise InputError(
                            f'{place}: expected each <node> once, found "{shown}" again; remove one'
                        )
                    if kind == "node":
                        seen.add(id_)
        raise InputError(f"{self._path} was changed while it was read; import it again")
