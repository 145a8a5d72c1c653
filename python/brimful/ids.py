"""Ids of vertices: integers of 64 bits, strings, and other Python objects such as tuples.

A graph has another object as a string, its name: `json:` and a JSON text. Names are what files,
Arrow tables and the command line show. Invariant: equal objects have one name.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, SupportsIndex

from brimful.errors import NotFoundError, UsageError
from brimful.packages import pyarrow
from brimful.wording import printable, shortened

#: The id of a vertex.
VertexId = int | str | float | tuple[Any, ...] | frozenset[Any]
#: A vertex id, or several.
Vertices = VertexId | Iterable[VertexId]

_IDS = "64-bit integers, strings, finite floats, and tuples and frozensets of these and None"


def id_name(vertex: Any) -> int | str:
    """Return an id as files and Arrow tables have it.

    Args:
        vertex: Id of a vertex: an integer, a string, a finite float, or a tuple or `frozenset` of
            these, None and others of their kind.

    Returns:
        An integer or a string as it is; `json:` and a JSON text for another object.

    Raises:
        UsageError: The object cannot be an id.

    >>> import brimful as bf
    >>> bf.id_name((0, "a")), bf.id_name(7), bf.id_name("a")
    ('json:[0,"a"]', 7, 'a')
    """
    try:
        return vertex_id(vertex)
    except NotFoundError:
        raise _no_id(vertex) from None


def naming(column: str) -> str:
    """Return how a column of tuples becomes one of vertices, for errors."""
    return f"convert tuples to their names by frame[{column!r}].map(brimful.id_name)"


def id_of_name(name: Any) -> Any:
    """Return the id that files and Arrow tables have as `name`; the inverse of `id_name`.

    Args:
        name: A cell of a column of vertices.

    Returns:
        The object, if `name` is the name of one; else `name` itself.

    >>> import brimful as bf
    >>> bf.id_of_name('json:[0,"a"]'), bf.id_of_name(7), bf.id_of_name("a")
    ((0, 'a'), 7, 'a')
    """
    return _decoded([name])[0] if isinstance(name, str) else name


def text_id(vertex: Any) -> str:
    """Return the string that a vertex is in a graph whose ids are strings.

    Raises:
        UsageError: The object cannot be an id.
    """
    from brimful import _native

    try:
        if isinstance(vertex, str):
            if not vertex.isascii():
                # UTF-8 has no halves of characters.
                vertex.encode()
            return str(vertex)
        return _native.object_name(vertex)
    except (TypeError, UnicodeEncodeError):
        raise _no_id(vertex) from None


def shown_ids(vertices: list[Any], id_type: str) -> list[Any]:
    """Return ids of a graph with this type of ids as the command line shows and takes them."""
    return list(map(text_id, vertices)) if id_type == "string" else vertices


def list_ids(names: list[Any]) -> list[Any]:
    """Return the ids of a list from the native module as Python objects."""
    return _decoded(names) if names and isinstance(names[0], str) else names


def column_ids(column: pyarrow.Array | pyarrow.ChunkedArray) -> list[Any]:
    """Return the ids in a column as Python objects."""
    import pyarrow as pa

    ids: list[Any] = column.to_pylist()
    return _decoded(ids) if pa.types.is_string(column.type) else ids


def row_ids(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row of ids and numbers from the native module with ids as Python objects."""
    return tuple(map(id_of_name, row))


def _decoded(names: list[Any]) -> list[Any]:
    from brimful import _native

    return _native.ids_of_names(names)


def vertex_id(vertex: object) -> int | str:
    """Return a vertex id as an `int` of 64 bits, signed or not, or as a string.

    Another object is returned as its name.

    Raises:
        NotFoundError: No id is of this type, or an integer is wider: no graph has such a vertex.
    """
    if type(vertex) is int:
        number = vertex
    elif isinstance(vertex, str):
        return str(vertex) if vertex.isascii() else _in_utf8(vertex)
    elif isinstance(vertex, SupportsIndex) and not isinstance(vertex, bool):
        number = operator.index(vertex)
    else:
        try:
            return text_id(vertex)
        except UsageError:
            raise _no_such_vertex(vertex) from None
    if not -(2**63) <= number < 2**64:
        raise _no_such_vertex(vertex)
    return number


def own_id(vertex: object, *, texts: bool) -> int | str:
    """Return an id as the columns of a graph have it, whose ids are strings if `texts`.

    Raises:
        NotFoundError: The graph has no ids of this type.
    """
    own = vertex_id(vertex)
    if texts:
        return text_id(own)
    if isinstance(own, str):
        raise NotFoundError(f"there is no vertex {shortened(vertex)}; its id is not an integer")
    return own


def vertex_ids(vertices: object) -> list[int | str]:
    """Return the ids of the sources of a run, as `several_ids` does.

    Raises:
        UsageError: There is none, there are more than `MAX_SOURCES`, or they come with values.
        NotFoundError: One is not an id.
    """
    from brimful._native import MAX_SOURCES

    ids = several_ids(vertices, "source", MAX_SOURCES + 1)
    if not ids:
        raise UsageError("source must have at least one vertex id; it is empty")
    if len(ids) > MAX_SOURCES:
        raise UsageError(f"a run takes at most {MAX_SOURCES} sources; name fewer")
    return ids


def several_ids(vertices: object, name: str, most: int | None = None) -> list[int | str]:
    """Return the ids of one vertex, or of several in a sequence, a set, an array or any iterable.

    `name` is that of the argument. Of more than `most` ids the rest are left out.

    Raises:
        UsageError: They come with values.
        NotFoundError: One is not an id.
    """
    # `tolist` replaces the scalars of NumPy, pyarrow and pandas by plain Python objects.
    plain = vertices.tolist() if hasattr(vertices, "tolist") else vertices
    if isinstance(plain, Mapping):
        raise UsageError(f"{name} must be a vertex id or a sequence of them, not a mapping")
    if isinstance(plain, (str, bytes)) or not isinstance(plain, Iterable):
        return [vertex_id(plain)]
    return [vertex_id(vertex) for vertex in islice(plain, most)]


def _in_utf8(word: str) -> str:
    """Return an id from a word of the command line, if the encoding of the system is another."""
    try:
        word.encode()
    except UnicodeEncodeError:
        try:
            return os.fsencode(word).decode()
        except UnicodeError:
            raise _no_such_vertex(word) from None
    return str(word)


def _no_id(vertex: object) -> UsageError:
    return UsageError(
        f"{printable(shortened(vertex))} ({type(vertex).__name__}) cannot be the id of a vertex; "
        f"ids are {_IDS}"
    )


def _no_such_vertex(vertex: object) -> NotFoundError:
    return NotFoundError(
        f"there is no vertex {printable(shortened(vertex))}; vertex ids are {_IDS}"
    )
