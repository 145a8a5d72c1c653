"""Documents of an OrientDB class, read in pages in the order of their record ids.

Fields may follow links: `out.name` of an edge is the name of its source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from brimful.documents.collection import Documents, Updated
from brimful.errors import InputError, UsageError
from brimful.stores.base import Opening
from brimful.stores.orient import Orient

#: The target size of a page in bytes; the previous page gives the number of documents for it.
_PAGE_BYTES = 1 << 20
_LARGEST_PAGE, _PAGE_GROWTH = 4096, 8
_RECORD = re.compile(r"#-?\d+:-?\d+")


class OrientDocuments(Documents):
    """The documents of a class and of its subclasses."""

    key: ClassVar[str] = "@rid"
    texts: tuple[type, ...] = (str,)
    reserve_bytes: ClassVar[int] = 32 << 20

    def __init__(self, opening: Opening) -> None:
        """Connect, and check that the class exists.

        Raises:
            InputError: The database has no such class.
        """
        super().__init__(opening.url)
        self._server = Orient(opening)
        try:
            self._server.check()
            rows = self._server.query(
                "SELECT name FROM (SELECT expand(classes) FROM metadata:schema) WHERE name = :name",
                name=self._server.name,
            )
            if not rows:
                raise InputError(
                    f"the database has no class {self._server.name}; check {self.name}"
                )
        except BaseException:
            self.close()
            raise

    def read(self, fields: Sequence[str]) -> Iterator[tuple[Any, list[Any]]]:
        """Yield every document; see `Documents.read`."""
        names = [f"f{number}" for number in range(len(fields))]
        shown = ", ".join(
            ["@rid AS k"]
            + [f"{_quoted(field)} AS {name}" for field, name in zip(fields, names, strict=True)]
        )
        last, wanted = "#-1:-1", 1
        while True:
            rows = self._server.query(
                f"SELECT {shown} FROM {self._server.name} WHERE @rid > {last} "
                f"ORDER BY @rid LIMIT {wanted}"
            )
            for row in rows:
                yield row["k"], [row.get(name) for name in names]
            if len(rows) < wanted:
                return
            last = _record(rows[-1]["k"])
            each = max(self._server.answer_bytes // len(rows), 1)
            wanted = max(1, min(_PAGE_BYTES // each, _PAGE_GROWTH * wanted, _LARGEST_PAGE))

    def is_empty(self) -> bool:
        """Return whether there are no documents."""
        return not self._server.query(f"SELECT @rid AS k FROM {self._server.name} LIMIT 1")

    def has_field(self, field: str) -> bool:
        """Return whether a document has the field."""
        where = f"{_quoted(field)} IS DEFINED"
        return bool(
            self._server.query(f"SELECT @rid AS k FROM {self._server.name} WHERE {where} LIMIT 1")
        )

    def has_index(self, field: str) -> bool:
        """Return whether the class, or one that it extends, has an index of the field."""
        if field == self.key:
            return True
        classes = self._server.query(
            "SELECT name, superClasses FROM (SELECT expand(classes) FROM metadata:schema)"
        )
        above = {one["name"]: one.get("superClasses") or [] for one in classes}
        own = {self._server.name}
        while more := {name for one in own for name in above.get(one, [])} - own:
            own |= more
        indexes = self._server.query("SELECT expand(indexes) FROM metadata:indexmanager")
        definitions = [one.get("indexDefinition") or {} for one in indexes]
        return any(one.get("className") in own and one.get("field") == field for one in definitions)

    def index_command(self, field: str) -> str:
        """Return a command that creates an index of the field."""
        return f"CREATE INDEX {self._server.name}.{field} NOTUNIQUE"

    def check_field(self, field: str) -> None:
        """Refuse a field that cannot be set; see `Documents.check_field`."""
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", field):
            raise UsageError(
                f'a result cannot be written to the field "{field}"; name a field by letters, '
                "digits and underscores"
            )

    def update(
        self, id_field: str, ids: Sequence[Any], field: str, values: Sequence[Any]
    ) -> Updated:
        """Set a field by ids; see `Documents.update`."""
        name = _quoted(id_field)
        at = {form: index for index, id in enumerate(ids) for form in self.id_forms(id)}
        found: dict[str, int] = {}
        # The server compares no texts with integers.
        for kind in (int, str):
            forms = [form for form in at if isinstance(form, kind)]
            if not forms:
                continue
            rows = self._server.query(
                f"SELECT @rid AS r, {name} AS k FROM {self._server.name} WHERE {name} IN :ids",
                ids=forms,
            )
            if any(isinstance(row["k"], list) for row in rows):
                raise self.several_ids(id_field)
            # An index converts texts and integers, and may ignore the case of letters.
            found |= {
                _record(row["r"]): at[row["k"]]
                for row in rows
                if isinstance(row["k"], (int, float, str)) and row["k"] in at
            }
        statements = [
            f"UPDATE {record} MERGE {json.dumps({field: values[index]})}"
            for record, index in found.items()
        ]
        if statements:
            self._server.execute(statements)
        reached = set(found.values())
        return Updated(len(found), [id for index, id in enumerate(ids) if index not in reached])

    def close(self) -> None:
        """Close the connection."""
        self._server.close()


def _quoted(field: str) -> str:
    """Return a field as an expression of SQL, with its names quoted.

    Raises:
        UsageError: A part of the name is empty or has a back quote.
    """
    parts = field.split(".")
    if any(not part or "`" in part for part in parts):
        raise UsageError(f'"{field}" is not a field name; remove back quotes and empty parts')
    return ".".join(part if part in ("@rid", "@class") else f"`{part}`" for part in parts)


def _record(text: str) -> str:
    """Return a record id, checked because statements contain it unquoted.

    Raises:
        InputError: The server sent something else.
    """
    if not _RECORD.fullmatch(text):
        raise InputError(f"expected a record id such as #12:0 from the server, found {text!r}")
    return text
