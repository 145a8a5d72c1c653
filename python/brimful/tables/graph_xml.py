"""GraphML and GEXF as tables: their edges, the attributes of their nodes and of their edges.

Invariant: memory does not grow with the file. Ids are strings, as in both formats; attributes have
the types that they declare. Messages name the line of an element.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from brimful.errors import InputError, UsageError
from brimful.io.remote import is_remote
from brimful.options.imports import EdgeColumns
from brimful.tables.declared import DeclaredIds
from brimful.tables.edge_table import (
    ARROW_RESERVE_BYTES,
    EdgeTable,
    PickedColumns,
    table_of,
)
from brimful.tables.graph_elements import OWN, Attribute, Element, Head, elements
from brimful.wording import shortened

if TYPE_CHECKING:
    import pyarrow

#: The most rows of a batch, and the most characters of its texts.
_BATCH_ROWS = 8192
_BATCH_CHARACTERS = 4 << 20
#: The most values of a batch.
_BATCH_VALUES = 1 << 18
#: The key of the weights that GEXF has without a declaration.
_WEIGHT = " weight"


class GraphXml:
    """A GraphML or GEXF file, which can be read several times."""

    def __init__(self, path: str) -> None:
        """Read the head of the file, before its nodes and edges.

        In GEXF edges are read until one has a weight, which is 1 by default.

        Raises:
            InputError: The file is neither GraphML nor GEXF, or is broken.
            UsageError: The file is standard input or remote.
            StoreIoError: The file cannot be read.
        """
        if path == "-" or is_remote(path):
            raise UsageError(
                f"GraphML and GEXF are read from files of this machine; copy {path} to one first"
            )
        self.path = path
        self._head = Head()
        with contextlib.closing(elements(path, self._head)) as read_elements:
            for element in read_elements:
                is_node = element.kind == "node"
                attributes = self._head.nodes if is_node else self._head.edges
                for own, type_, default in OWN:
                    if own in element.values:
                        attributes.setdefault(own, Attribute(own.strip(), type_, default))
                # Nodes come before edges, so the first edge completes the list of GraphML.
                if not is_node and (not self._head.is_gexf or _WEIGHT in self._head.edges):
                    break

    @property
    def undirected(self) -> bool:
        """Whether edges have no direction."""
        return self._head.undirected

    def nodes(self) -> pyarrow.RecordBatchReader:
        """Return a reader of the nodes: `id` and their attributes."""
        return self._reader("node", ["id"], self._head.nodes)

    def edges(self, weight: str | None = None) -> pyarrow.RecordBatchReader:
        """Return a reader of the edges: `source`, `target` and their attributes.

        The attribute `weight` is a float of 64 bits if it is one of 32.
        """
        return self._reader("edge", ["source", "target"], self._of_edges(weight))

    def _of_edges(self, weight: str | None) -> dict[str, Attribute]:
        """Return the attributes of edges; the weight is not rounded to 32 bits."""
        return {
            key: replace(one, kind="float64")
            if (one.name, one.kind) == (weight, "float32")
            else one
            for key, one in self._head.edges.items()
        }

    def table(self, wanted: EdgeColumns, ids: str, vertices: int | None = None) -> EdgeTable:
        """Return the edges, and the nodes as rows without a target, as an edge table.

        The ids below `vertices` need no nodes.

        Raises:
            UsageError: Columns are chosen that are not there.
        """
        import pyarrow as pa

        chosen = (wanted.source or "source", wanted.target or "target")
        if chosen != ("source", "target") or wanted.header is not None or wanted.delimiter:
            raise UsageError(
                f"{self.path} has edges of its own, without a choice of columns; leave --source, "
                "--target, --header and --delimiter out"
            )
        names = {one.name: one.kind for one in self._head.edges.values()}
        # As in tables, in any case; `weight` itself comes first.
        known = sorted((name for name in names if name.lower() == "weight"), reverse=True)
        weight = wanted.weight or (known[0] if known else None)
        if weight is not None and names.get(weight, "string") in ("string", "bool"):
            raise UsageError(
                f"{self.path} has no numeric attribute {weight} of edges (found: "
                f"{', '.join(names) or 'none'})"
            )
        fields = [pa.field(end, pa.string()) for end in ("source", "target")]
        if weight is not None:
            # Integers stay such, so that those between two floats are found.
            is_long = names.get(weight) == "int64"
            fields.append(pa.field(weight, pa.int64() if is_long else pa.float64()))
        schema = pa.schema(fields)

        declared = DeclaredIds(
            self.path, "int" if ids == "int" else "string", vertices or 0, self._elements
        )

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in self._reader("node", ["id"], self._head.nodes, only=()):
                declared.add(batch.column(0).to_pylist())
                nulls = [pa.nulls(batch.num_rows, one.type) for one in fields[1:]]
                yield pa.RecordBatch.from_arrays([batch.column(0), *nulls], schema=schema)
            ends = [field.name for field in fields[:2]]
            for batch in self._reader("edge", ends, self._of_edges(weight), only=schema.names):
                yield batch.cast(schema)

        ignored = [name for name in names if name != weight]
        columns = PickedColumns("source", "target", weight, ignored)
        reserve = ARROW_RESERVE_BYTES
        table = table_of(self.path, columns, schema, batches(), ids=ids, reserve_bytes=reserve)
        table.vertex_rows, table.undirected = True, self.undirected
        table.line_of, table.check = self._line_of, declared.check
        return table

    def _reader(
        self,
        kind: str,
        ends: list[str],
        declared: dict[str, Attribute],
        only: Sequence[str] | None = None,
    ) -> pyarrow.RecordBatchReader:
        """Return a reader of elements with their attributes, or with those of some names `only`."""
        import pyarrow as pa

        # Keys after the first edge come too late for the schema.
        known = set(declared)
        attributes = {key: one for key, one in declared.items() if only is None or one.name in only}
        names = [*ends, *(one.name for one in attributes.values())]
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise InputError(f"{self.path} has two attributes {twice[0]} of <{kind}>; rename one")
        types = ["string"] * len(ends) + [one.kind for one in attributes.values()]
        schema = pa.schema(
            [pa.field(name, pa.type_for_alias(one)) for name, one in zip(names, types, strict=True)]
        )
        most_rows = min(_BATCH_ROWS, max(_BATCH_VALUES // len(names), 1))

        def batches() -> Iterator[pa.RecordBatch]:
            columns: list[list[Any]] = [[] for _ in names]
            characters = 0
            for element in self._elements(kind):
                row = self._row(element, attributes, known)
                for column, value in zip(columns, row, strict=True):
                    column.append(value)
                characters += sum(len(value) for value in row if isinstance(value, str))
                if len(columns[0]) == most_rows or characters > _BATCH_CHARACTERS:
                    yield _batch(columns, schema)
                    columns, characters = [[] for _ in names], 0
            if columns[0]:
                yield _batch(columns, schema)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def _row(
        self, element: Element, attributes: dict[str, Attribute], known: set[str]
    ) -> list[Any]:
        """Return the ends of a node or an edge, and the values of its attributes.

        Other attributes than those with `known` keys are refused.
        """
        if unknown := element.values.keys() - known:
            raise self._wrong(
                element,
                f"has an attribute {shortened(min(unknown).strip())} that is not declared, or not "
                f"in the first <{element.kind}>",
            )
        row: list[Any] = list(element.ends)
        for key, attribute in attributes.items():
            try:
                row.append(attribute.value(element.values.get(key)))
            except ValueError as error:
                fault = f"has a wrong {shortened(attribute.name)}: {error}"
                raise self._wrong(element, fault) from None
        return row

    def _wrong(self, element: Element, fault: str) -> InputError:
        return InputError(f"{self.path}:{element.line}: this <{element.kind}> {fault}")

    def _elements(self, kind: str) -> Iterator[Element]:
        """Yield the nodes or the edges."""
        with contextlib.closing(elements(self.path, self._head, [kind])) as read_elements:
            yield from read_elements

    def _line_of(self, row: int) -> int:
        """Return the line of a row of the edge table, counted from 1: nodes come before edges."""
        rows = itertools.chain(self._elements("node"), self._elements("edge"))
        return next(itertools.islice(rows, row - 1, None)).line


def _batch(columns: list[list[Any]], schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    import pyarrow as pa

    arrays = [pa.array(one, of.type) for one, of in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
