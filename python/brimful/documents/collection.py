"""The interface of a collection of documents.

Invariant: documents are read in the order of their keys, each once. Calls are idempotent, so that
they can be repeated after a lost connection.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, Self

from brimful.errors import InputError
from brimful.io.redaction import redacted_word
from brimful.options.checks import whole_number


@dataclass(frozen=True)
class Updated:
    """The number of updated documents, and the ids without a document."""

    documents: int
    missing: list[Any]


class Documents(abc.ABC):
    """The documents of a collection or class."""

    #: The field that identifies a document.
    key: ClassVar[str]
    #: The types of values that are string ids; `str` converts them to ids.
    texts: tuple[type, ...]
    #: The most bytes that reading takes, unless single documents are large.
    reserve_bytes: ClassVar[int]

    def __init__(self, url: str) -> None:
        """Keep the name: the URL without user, password and options."""
        self.name = redacted_word(url).partition("?")[0].replace("***@", "")

    @abc.abstractmethod
    def read(self, fields: Sequence[str]) -> Iterator[tuple[Any, list[Any]]]:
        """Yield the key of every document with the values of `fields`; None for a missing one.

        The name of a field within another has dots: `to.id`. Within an array it names a list.

        Raises:
            InputError: There is no such collection, or it changed while it was read.
            UsageError, StoreIoError: The server refused, or did not answer.
        """

    @abc.abstractmethod
    def is_empty(self) -> bool:
        """Return whether there are no documents."""

    @abc.abstractmethod
    def has_field(self, field: str) -> bool:
        """Return whether a document has the field."""

    @abc.abstractmethod
    def has_index(self, field: str) -> bool:
        """Return whether an index finds documents by this field."""

    @abc.abstractmethod
    def index_command(self, field: str) -> str:
        """Return a command that creates an index of the field."""

    @abc.abstractmethod
    def check_field(self, field: str) -> None:
        """Refuse a field that cannot be set.

        Raises:
            UsageError: The database has no such fields, or does not let them change.
        """

    @abc.abstractmethod
    def update(
        self, id_field: str, ids: Sequence[Any], field: str, values: Sequence[Any]
    ) -> Updated:
        """Set `field` to a value in every document whose `id_field` is an id of `ids`.

        Raises:
            InputError: A value of `id_field` is an array.
            UsageError, StoreIoError: The server refused, or did not answer.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def id_forms(self, id: Any) -> list[Any]:
        """Return the values of a field that imports read as this id."""
        if isinstance(id, int):
            return [id, str(id)]
        number = whole_number(id)
        is_one = number is not None and str(number) == id and -(2**63) <= number < 2**63
        return [id, number] if is_one else [id]

    def several_ids(self, id_field: str) -> InputError:
        """Return the error about a document whose `id_field` is an array."""
        return InputError(
            f'the field "{id_field}" of a document in {self.name} holds several ids; name a '
            "field with one id in the option id of the URL"
        )

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the connection."""
        self.close()
