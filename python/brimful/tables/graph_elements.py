"""The nodes, edges and attributes in a GraphML or GEXF file, each with its line.

Invariant: memory does not grow with the file. An element is dropped at its end, and depth, names,
attributes and values have limits.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any, NamedTuple
from xml.parsers import expat

from brimful.errors import BrimfulError, InputError
from brimful.options.checks import number_of, whole_number
from brimful.tables.decompressed import opened
from brimful.wording import shortened

_READ_BYTES = 1 << 16
#: The most bytes between the ends of two tags: a longer value is neither id nor attribute.
_TAG_BYTES = 1 << 20
#: The most elements around an element, itself included; editors need a dozen.
_DEEPEST = 256
#: The most different names of elements and of their attributes.
_MOST_NAMES = 65_536
#: The most attributes that a file declares.
_MOST_ATTRIBUTES = 4096
#: The most values of a node or an edge, and the most characters in them.
_MOST_VALUES = 65_536
_MOST_CHARACTERS = 4 << 20
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
OWN = ((" label", "string", None), (" weight", "float64", "1"))
_OWN_KEYS = [(key.strip(), key) for key, _, _ in OWN]
#: Whether edges have no direction, by the words of both formats.
_UNDIRECTED = {
    "directed": False,
    "true": False,
    "1": False,
    "undirected": True,
    "false": True,
    "0": True,
}
#: The attributes that state the direction of all edges, and of one, by the root element.
_DIRECTIONS = {"graphml": ("edgedefault", "directed"), "gexf": ("defaultedgetype", "type")}
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


#: The value of an attribute that an element has more than once, as dynamic graphs do.
_TWICE = "several values"


class Element(NamedTuple):
    """A node or an edge: the texts of its attributes are by their keys."""

    kind: str
    #: The line of the file on which its tag begins.
    line: int
    #: The id, or source and target.
    ends: list[str]
    values: dict[str, str | None]


@dataclass
class Attribute:
    """An attribute of nodes or edges: its name, its type, its default value."""

    name: str
    kind: str
    default: str | None = None

    def value(self, text: str | None) -> Any:
        """Return the value that a text has in the type of the attribute; None without a value.

        Raises:
            ValueError: The text is not a value of this type; the message names the expected text.
        """
        if text is _TWICE:
            raise ValueError("expected one value, found several")
        if text is None:
            text = self.default
        if text is None or self.kind == "string":
            return text
        expected, read = _READ[self.kind]
        try:
            return read(text.strip())
        except OverflowError:
            expected = f"a number in the range of {self.kind}"
        except (KeyError, ValueError):
            pass
        raise ValueError(f'expected {expected}, found "{shortened(text)}"')


#: Texts of infinite numbers; others that Python reads as such are beyond the range of floats.
_INFINITIES = ("inf", "infinity")


def _boolean(text: str) -> bool:
    return _BOOLEANS[text.lower()]


def _integer(text: str, bits: int) -> int:
    number = whole_number(text)
    if number is None or not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError
    return number


def _float(text: str) -> float:
    number = number_of(text)
    if math.isnan(number) and text.lower() != "nan":
        raise ValueError
    if math.isinf(number) and text.lower().lstrip("+-") not in _INFINITIES:
        raise OverflowError
    return number


def _float32(text: str) -> float:
    number = _float(text)
    # Raises OverflowError for a finite number that would become infinite.
    struct.pack("<f", number)
    return number


#: The expected text of each type, and the function that reads it.
_READ: dict[str, tuple[str, Callable[[str], Any]]] = {
    "bool": ("true or false", _boolean),
    "int32": ("an integer of 32 bits", partial(_integer, bits=32)),
    "int64": ("an integer of 64 bits", partial(_integer, bits=64)),
    "float32": ("a number", _float32),
    "float64": ("a number", _float),
}


@dataclass
class Head:
    """The head of a file, before its nodes and edges; attributes are by their keys."""

    undirected: bool = False
    #: Whether the file is GEXF, whose edges need not declare their weights and labels.
    is_gexf: bool = False
    nodes: dict[str, Attribute] = field(default_factory=dict)
    edges: dict[str, Attribute] = field(default_factory=dict)


def elements(
    path: str, head: Head, kinds: Sequence[str] = ("node", "edge")
) -> Generator[Element, None, None]:
    """Yield the nodes and edges of the file at `path`, or one kind of them, and complete `head`.

    Raises:
        InputError: The file is neither GraphML nor GEXF, is broken, or exceeds a limit.
        StoreIoError: It cannot be read.
    """
    try:
        with opened(path) as file:
            yield from _Parser(path, head, kinds).elements(file)
    except expat.ExpatError as error:
        raise InputError(f"{path} is broken XML: {error}; write it again") from None
    except BrimfulError:
        raise
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is truncated or damaged: {error}") from None
    except (LookupError, ValueError) as error:
        raise InputError(f"{path}: {error}; convert it to UTF-8") from None


class _Parser:
    """Reads one file, once."""

    def __init__(self, path: str, head: Head, kinds: Sequence[str]) -> None:
        self._path, self._head, self._kinds = path, head, kinds
        self._expat = expat.ParserCreate(namespace_separator="}")
        self._expat.buffer_text = True
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.EntityDeclHandler = self._entity
        self._bytes_since_tag = self._depth = 0
        self._has_graph = False
        self._directions = _DIRECTIONS["graphml"]
        #: Tags without the namespace, and the meaning of their starts, by their whole names.
        self._tags: dict[str, tuple[str, Callable[..., None] | None]] = {}
        #: Nodes and edges that ended, and the one that has not.
        self._ended: list[Element] = []
        self._element: Element | None = None
        self._values = self._characters = 0
        #: GEXF: the attributes that are being declared.
        self._declared: dict[str, Attribute] = {}
        self._attribute: Attribute | None = None
        #: The depth of the element whose text is read, its key, and the text.
        self._text_depth = 0
        self._key: str | None = None
        self._text: list[str] = []
        self._has_children = False

    def elements(self, file: IO[bytes]) -> Iterator[Element]:
        """Yield nodes and edges."""
        is_last = False
        while not is_last:
            data = file.read(_READ_BYTES)
            is_last = not data
            self._bytes_since_tag += len(data)
            self._expat.Parse(data, is_last)
            if self._bytes_since_tag > _TAG_BYTES:
                raise self._wrong(
                    f"{_TAG_BYTES >> 20} MiB without the end of a tag; is it GraphML or GEXF?"
                )
            if len(self._expat.intern) > _MOST_NAMES:
                raise self._wrong(
                    f"more than {_MOST_NAMES:,} names of elements; is it GraphML or GEXF?"
                )
            ended, self._ended = self._ended, []
            yield from ended
        if not self._has_graph:
            raise InputError(f"{self._path} has no graph; write it again")

    def _wrong(self, fault: str) -> InputError:
        line = self._expat.CurrentLineNumber if self._element is None else self._element.line
        return InputError(f"{self._path}:{line}: {fault}")

    def _entity(self, name: str, *_: object) -> None:
        # A few bytes of entities expand to more text than memory holds.
        raise self._wrong(f"the file declares the entity {shortened(name)}; remove entities")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._bytes_since_tag = 0
        self._depth += 1
        if self._text_depth:
            # The text of a child is not that of its parent.
            self._expat.CharacterDataHandler, self._has_children = None, True
        known_tag = self._tags.get(name)
        if known_tag is None:
            tag = name.rpartition("}")[2]
            known_tag = self._tags[name] = tag, _STARTS.get(tag)
        tag, start = known_tag
        if self._depth > _DEEPEST:
            raise self._wrong(
                f"its elements are nested more than {_DEEPEST} deep; is it GraphML or GEXF?"
            )
        if self._depth == 1 and tag not in _DIRECTIONS:
            raise InputError(
                f"{self._path} is neither GraphML nor GEXF: it begins with <{tag}>; name its "
                "format with --format"
            )
        if self._depth == 1:
            self._directions, self._head.is_gexf = _DIRECTIONS[tag], tag == "gexf"
        if start is not None:
            start(self, tag, attributes)

    def _end(self, name: str) -> None:
        self._bytes_since_tag = 0
        tag, _ = self._tags[name]
        if self._depth == self._text_depth:
            self._end_text()
        elif self._text_depth and self._depth == self._text_depth + 1:
            self._expat.CharacterDataHandler = self._text.append
        elif self._element is not None and tag == self._element.kind:
            self._ended.append(self._element)
            self._element = None
        elif tag in ("key", "attribute"):
            self._attribute = None
        self._depth -= 1

    def _graph(self, tag: str, attributes: dict[str, str]) -> None:
        if self._has_graph:
            raise self._wrong("there are graphs within a graph, or several; remove one")
        self._has_graph = True
        # By default the edges of GEXF have no direction.
        self._head.undirected = self._is_undirected(
            attributes.get(self._directions[0], "undirected")
        )

    def _is_undirected(self, word: str) -> bool:
        """Return whether a word says that edges have no direction."""
        undirected = _UNDIRECTED.get(word.strip().lower())
        if undirected is None:
            raise self._wrong(
                f'expected directed or undirected edges, found "{shortened(word)}"; write a mutual '
                "edge as two arcs"
            )
        return undirected

    def _hyperedge(self, tag: str, attributes: dict[str, str]) -> None:
        raise self._wrong("the file has hyperedges; a graph needs edges with two ends")

    def _declarations(self, tag: str, attributes: dict[str, str]) -> None:
        """Begin the attributes of GEXF for nodes or for edges."""
        is_of_nodes = attributes.get("class") == "node"
        self._declared = self._head.nodes if is_of_nodes else self._head.edges

    def _declare(self, tag: str, attributes: dict[str, str]) -> None:
        """Record an attribute: a `key` of GraphML or an `attribute` of GEXF."""
        id_ = self._required(tag, attributes, "id")
        name = attributes.get("attr.name") or attributes.get("title") or id_
        type_ = attributes.get("attr.type") or attributes.get("type") or "string"
        self._attribute = Attribute(name, _TYPES.get(type_, "string"))
        if tag == "attribute":
            self._declared[id_] = self._attribute
        else:
            where = attributes.get("for", "all")
            for kind, declared in (("node", self._head.nodes), ("edge", self._head.edges)):
                if where in (kind, "all"):
                    declared[id_] = self._attribute
        if len(self._head.nodes) + len(self._head.edges) > _MOST_ATTRIBUTES:
            raise self._wrong(
                f"the file declares more than {_MOST_ATTRIBUTES:,} attributes; remove some"
            )

    def _default(self, tag: str, attributes: dict[str, str]) -> None:
        if self._attribute is not None:
            self._begin_text(None)

    def _node_or_edge(self, tag: str, attributes: dict[str, str]) -> None:
        if self._element is not None:
            raise self._wrong(f"this <{self._element.kind}> contains a <{tag}>; remove it")
        if tag not in self._kinds:
            return
        if tag == "node":
            ends = [self._required(tag, attributes, "id")]
        else:
            ends = [
                self._required(tag, attributes, "source"),
                self._required(tag, attributes, "target"),
            ]
        own = attributes.get(self._directions[1])
        if tag == "edge" and own is not None and self._is_undirected(own) != self._head.undirected:
            raise self._wrong(
                f"the file has edges of both kinds, such as from {shortened(ends[0])} to "
                f"{shortened(ends[1])}; write arcs, or edges without direction"
            )
        values: dict[str, str | None] = {}
        for attribute, key in _OWN_KEYS:
            if attribute in attributes:
                values[key] = attributes[attribute]
        self._element = Element(tag, self._expat.CurrentLineNumber, ends, values)
        self._values = self._characters = 0

    def _data(self, tag: str, attributes: dict[str, str]) -> None:
        if self._element is not None:
            self._begin_text(self._required(tag, attributes, "key"))

    def _attvalue(self, tag: str, attributes: dict[str, str]) -> None:
        if self._element is not None:
            self._put(self._required(tag, attributes, "for"), attributes.get("value"))

    def _required(self, tag: str, attributes: dict[str, str], name: str) -> str:
        if name not in attributes:
            raise self._wrong(f"this <{tag}> has no {name}; add it")
        return attributes[name]

    def _begin_text(self, key: str | None) -> None:
        """Read the text of this element, which belongs to a key, or is the default value."""
        if self._text_depth:
            return
        self._text_depth, self._key, self._text = self._depth, key, []
        self._has_children = False
        self._expat.CharacterDataHandler = self._text.append

    def _end_text(self) -> None:
        self._expat.CharacterDataHandler = None
        self._text_depth = 0
        whole = "".join(self._text)
        # Space between children, such as those of yEd, is layout.
        text = (whole.strip() or None) if self._has_children else whole
        if self._key is not None:
            self._put(self._key, text)
        elif self._attribute is not None:
            self._attribute.default = text or None

    def _put(self, key: str, text: str | None) -> None:
        """Record the value of an attribute of the current element."""
        assert self._element is not None, "values belong to an element"
        self._values += 1
        self._characters += len(text or "")
        if self._values > _MOST_VALUES or self._characters > _MOST_CHARACTERS:
            raise self._wrong(
                f"this <{self._element.kind}> has more than {_MOST_VALUES:,} values or "
                f"{_MOST_CHARACTERS >> 20} Mi characters of them; remove some"
            )
        self._element.values[key] = _TWICE if key in self._element.values else text


#: The meaning of the start of an element, by its tag.
_STARTS: dict[str, Callable[..., None]] = {
    "graph": _Parser._graph,
    "hyperedge": _Parser._hyperedge,
    "attributes": _Parser._declarations,
    "key": _Parser._declare,
    "attribute": _Parser._declare,
    "default": _Parser._default,
    "node": _Parser._node_or_edge,
    "edge": _Parser._node_or_edge,
    "data": _Parser._data,
    "attvalue": _Parser._attvalue,
}
