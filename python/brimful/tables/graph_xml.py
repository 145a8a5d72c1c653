"""GraphML and GEXF as tables: their edges, the attributes of their nodes and of their edges.

XML is read element by element, and each is dropped once it is read. Invariant: memory does not grow
with the file. Ids are texts, as both formats have them; attributes have the types they declare.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any
from xml.etree import ElementTree

from brimful.errors import InputError, StoreIoError, UsageError
from brimful.io.remote import is_remote
from brimful.options.imports import EdgeColumns
from brimful.tables.edge_table import (
    ARROW_RESERVE_BYTES,
    EdgeTable,
    PickedColumns,
    table_of,
)

if TYPE_CHECKING:
    import pyarrow

#: The most rows of a batch, and the most characters of its texts.
_BATCH_ROWS = 8192
_BATCH_CHARACTERS = 4 << 20
#: The most bytes between the ends of two tags: a longer value is no id and no attribute.
_TAG_BYTES = 1 << 20
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
#: Arrow's types by the types that attributes declare.
_TYPES = {
    "boolean": "bool",
    "int": "int32",
    "integer": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
}
#: Attributes of GEXF that need no declaration: key, type, default value.
_OWN = ((" label", "string", None), (" weight", "float64", "1"))
#: A node or an edge: kind, id or ends, and the texts of its attributes by their ids.
_Record = tuple[str, list[str], dict[str, str | None]]
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


@dataclass
class _Attribute:
    """An attribute of nodes or edges: its name, its type, its default value."""

    name: str
    kind: str
    default: str | None = None

    def value(self, text: str | None) -> Any:
        """Return the value that a text has in the type of the attribute; None without a value.

        Raises:
            ValueError: It is no such value.
        """
        if text is None:
            text = self.default
        if text is None or self.kind == "string":
            return text
        text = text.strip()
        if self.kind == "bool":
            if text.lower() not in _BOOLEANS:
                raise ValueError(f"{text!r} is neither true nor false")
            return _BOOLEANS[text.lower()]
        return int(text) if self.kind.startswith("int") else float(text)


@dataclass
class _Head:
    """The head of a file, before its nodes and edges."""

    undirected: bool = False
    nodes: dict[str, _Attribute] = field(default_factory=dict)
    edges: dict[str, _Attribute] = field(default_factory=dict)


class GraphXml:
    """A GraphML or GEXF file, which can be read several times."""

    def __init__(self, path: str) -> None:
        """Read the head of the file, before its nodes and edges.

        Raises:
            InputError: The file is neither GraphML nor GEXF, or is broken.
            UsageError: It is standard input or remote.
            StoreIoError: It cannot be read.
        """
        if path == "-" or is_remote(path):
            raise UsageError(
                f"GraphML and GEXF are read from files of this machine; copy {path} to one first"
            )
        self.path = path
        self._head = _Head()
        with contextlib.closing(self._records()) as records:
            for kind, _, values in records:
                attributes = self._head.nodes if kind == "node" else self._head.edges
                for own, type_, default in _OWN:
                    if own in values:
                        attributes.setdefault(own, _Attribute(own.strip(), type_, default))
                # Nodes come before edges, so the first edge completes the list.
                if kind == "edge":
                    break

    @property
    def undirected(self) -> bool:
        """Whether edges have no direction."""
        return self._head.undirected

    def nodes(self) -> pyarrow.RecordBatchReader:
        """Return a reader of the nodes: `id` and their attributes."""
        return self._reader("node", ["id"], self._head.nodes)

    def edges(self) -> pyarrow.RecordBatchReader:
        """Return a reader of the edges: `source`, `target` and their attributes."""
        return self._reader("edge", ["source", "target"], self._head.edges)

    def table(self, wanted: EdgeColumns, ids: str) -> EdgeTable:
        """Return the edges, and the nodes as rows without a target, as an edge table.

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
        weight = wanted.weight or ("weight" if "weight" in names else None)
        if weight is not None and names.get(weight, "string") in ("string", "bool"):
            raise UsageError(
                f"{self.path} has no numbers {weight} of edges (found: "
                f"{', '.join(names) or 'none'})"
            )
        fields = [pa.field(end, pa.string()) for end in ("source", "target")]
        if weight is not None:
            fields.append(pa.field(weight, pa.float64()))
        schema = pa.schema(fields)

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in self.nodes():
                nulls = [pa.nulls(batch.num_rows, one.type) for one in fields[1:]]
                yield pa.RecordBatch.from_arrays([batch.column(0), *nulls], schema=schema)
            for batch in self.edges():
                yield batch.select(schema.names).cast(schema)

        ignored = [name for name in names if name != weight]
        columns = PickedColumns("source", "target", weight, ignored)
        reserve = ARROW_RESERVE_BYTES
        table = table_of(self.path, columns, schema, batches(), ids=ids, reserve_bytes=reserve)
        table.vertex_rows, table.undirected = True, self.undirected
        return table

    def _reader(
        self, kind: str, ends: list[str], attributes: dict[str, _Attribute]
    ) -> pyarrow.RecordBatchReader:
        import pyarrow as pa

        names = [*ends, *(one.name for one in attributes.values())]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise InputError(f"{self.path} has two attributes {twice[0]} of a {kind}; rename one")
        types = ["string"] * len(ends) + [one.kind for one in attributes.values()]
        schema = pa.schema(
            [pa.field(name, pa.type_for_alias(one)) for name, one in zip(names, types, strict=True)]
        )

        def batches() -> Iterator[pa.RecordBatch]:
            columns: list[list[Any]] = [[] for _ in names]
            characters = 0
            for found, row, values in self._records():
                if found != kind:
                    continue
                if unknown := values.keys() - attributes.keys():
                    raise InputError(
                        f"{self.path}: the {kind} {' '.join(row)} has an attribute "
                        f"{min(unknown).strip()} that is not declared, or not in the first {kind}"
                    )
                try:
                    whole = [*row, *(one.value(values.get(id_)) for id_, one in attributes.items())]
                except ValueError as error:
                    raise InputError(f"{self.path}: a {kind} {row} has a value: {error}") from None
                for column, value in zip(columns, whole, strict=True):
                    column.append(value)
                characters += sum(len(value) for value in whole if isinstance(value, str))
                if len(columns[0]) == _BATCH_ROWS or characters > _BATCH_CHARACTERS:
                    yield self._batch(columns, schema)
                    columns, characters = [[] for _ in names], 0
            if columns[0]:
                yield self._batch(columns, schema)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def _batch(self, columns: list[list[Any]], schema: pyarrow.Schema) -> pyarrow.RecordBatch:
        import pyarrow as pa

        try:
            arrays = [pa.array(one, of.type) for one, of in zip(columns, schema, strict=True)]
        except (pa.ArrowException, OverflowError) as error:
            raise InputError(f"{self.path} has a value that is out of range: {error}") from None
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _open(self) -> IO[bytes]:
        import pyarrow as pa

        try:
            for suffix, opener in _OPENERS.items():
                if self.path.lower().endswith(suffix):
                    opened: IO[bytes] = opener(self.path, "rb")
                    return opened
            if self.path.lower().endswith(".zst"):
                stream: IO[bytes] = pa.input_stream(self.path, compression="zstd")
                return stream
            return open(self.path, "rb")
        except OSError as error:
            raise StoreIoError(f"cannot read {self.path}: {error.strerror}", error.errno) from None

    def _records(self) -> Generator[_Record, None, None]:
        """Yield nodes and edges: kind, id or ends, and the texts of attributes by their ids."""
        try:
            with self._open() as file:
                yield from _Parser(self.path, self._head).records(file)
        except ElementTree.ParseError as error:
            raise InputError(f"{self.path} is broken XML: {error}; write it again") from None
        except (EOFError, lzma.LZMAError, gzip.BadGzipFile, UnicodeDecodeError) as error:
            raise InputError(f"{self.path} is truncated or damaged: {error}") from None


class _Bounded:
    """A file of which the parser may read only so much between two tags."""

    def __init__(self, path: str, file: IO[bytes]) -> None:
        self._path, self._file = path, file
        #: Bytes read since the last tag.
        self.read_bytes = 0

    def read(self, size: int = -1) -> bytes:
        """Read the next bytes.

        Raises:
            InputError: There was no tag for too long.
        """
        if self.read_bytes > _TAG_BYTES:
            raise InputError(
                f"{self._path} has {_TAG_BYTES >> 20} MiB without the end of a tag; is it GraphML "
                "or GEXF?"
            )
        data = self._file.read(size)
        self.read_bytes += len(data)
        return data


class _Parser:
    """Reads the events of one file."""

    def __init__(self, path: str, head: _Head) -> None:
        self._path, self._head = path, head
        self._parents: list[Any] = []
        #: GEXF: the attributes that are being declared.
        self._declared: dict[str, _Attribute] = {}

    def records(self, file: IO[bytes]) -> Iterator[_Record]:
        """Yield nodes and edges."""
        bounded = _Bounded(self._path, file)
        for event, element in ElementTree.iterparse(bounded, ("start", "end")):
            bounded.read_bytes = 0
            tag = element.tag.rpartition("}")[2]
            if event == "start":
                self._start(tag, element)
                self._parents.append(element)
                continue
            self._parents.pop()
            if tag in ("node", "edge"):
                yield (tag, self._ends(tag, element), self._values(element))
                # The parent would keep an empty element.
                self._parents[-1].clear()
            elif tag == "key":
                self._key(element)
            elif tag == "attribute":
                self._attribute(element)
        if not self._parents and not self._seen:
            raise InputError(f"{self._path} has no graph; write it again")

    _seen = False

    def _start(self, tag: str, element: Any) -> None:
        if not self._parents and tag not in ("graphml", "gexf"):
            raise InputError(
                f"{self._path} is neither GraphML nor GEXF: it begins with <{tag}>; name its "
                "format with --format"
            )
        if tag == "graph":
            if self._seen:
                raise InputError(
                    f"{self._path} has graphs within a graph, or several; take one out"
                )
            self._seen = True
            # By default the edges of GEXF have no direction.
            kind = element.get("edgedefault") or element.get("defaultedgetype") or "undirected"
            self._head.undirected = kind != "directed"
        elif tag == "attributes":
            kind = element.get("class")
            self._declared = self._head.nodes if kind == "node" else self._head.edges
        elif tag == "nodes" and len(self._parents) > 2:
            raise InputError(f"{self._path} has nodes within nodes; take them out")
        elif tag == "hyperedge":
            raise InputError(f"{self._path} has hyperedges; a graph needs edges with two ends")

    def _key(self, element: Any) -> None:
        """Record an attribute of GraphML."""
        default = next((child.text for child in element if child.tag.endswith("default")), None)
        name = element.get("attr.name") or element.get("id")
        kind = _TYPES.get(element.get("attr.type", "string"), "string")
        attribute = _Attribute(name, kind, default)
        where = element.get("for", "all")
        for found, attributes in (("node", self._head.nodes), ("edge", self._head.edges)):
            if where in (found, "all"):
                attributes[element.get("id")] = attribute

    def _attribute(self, element: Any) -> None:
        """Record an attribute of GEXF."""
        default = next((child.text for child in element if child.tag.endswith("default")), None)
        kind = _TYPES.get(element.get("type", "string"), "string")
        name = element.get("title") or element.get("id")
        self._declared[element.get("id")] = _Attribute(name, kind, default)

    def _ends(self, tag: str, element: Any) -> list[str]:
        names = ["id"] if tag == "node" else ["source", "target"]
        ends = [element.get(name) for name in names]
        if None in ends:
            raise InputError(f"{self._path} has a <{tag}> without {' and '.join(names)}")
        own = element.get("directed") or element.get("type")
        if tag == "edge" and own is not None:
            undirected = own in ("false", "undirected")
            if undirected != self._head.undirected:
                raise InputError(
                    f"{self._path} has edges of both kinds, such as from {ends[0]} to {ends[1]}; "
                    "write arcs, or edges without direction"
                )
        return ends

    def _values(self, element: Any) -> dict[str, str | None]:
        found: dict[str, str | None] = {
            own: element.get(own.strip()) for own, _, _ in _OWN if own.strip() in element.attrib
        }
        for child in element.iter():
            name = child.tag.rpartition("}")[2]
            if name == "data":
                found[child.get("key")] = child.text or ""
            elif name == "attvalue":
                found[child.get("for")] = child.get("value")
        return found
