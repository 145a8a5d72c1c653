"""A client of OrientDB's REST interface, on the standard library.

Requests are repeated while the server is away, or while two of them change the same page of an
index. Invariant: a repeated change does nothing more, or raises `DuplicateError`.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, unquote

from brimful.errors import StoreIoError, UsageError
from brimful.stores.base import Opening, split_url
from brimful.stores.retry import Retries, retry_seconds

FORM = "orientdb://USER:PASSWORD@HOST:PORT/DATABASE/CLASS"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TIMEOUT = 30.0


class _Away(Exception):
    """The server closed a connection, or two requests conflicted."""


class DuplicateError(StoreIoError):
    """A new document has a key that a unique index has already."""


class Orient:
    """A connection to a database."""

    def __init__(self, opening: Opening) -> None:
        """Take the address and the class from the URL.

        Raises:
            UsageError: The URL has another form.
        """
        parts = split_url(opening.url)
        database, _, name = parts.path.lstrip("/").partition("/")
        if not (parts.hostname and database and _NAME.fullmatch(name)):
            raise UsageError(f"an orientdb URL has the form {FORM}")
        opening.known_options("retry_seconds")
        try:
            port = parts.port or 2480
        except ValueError as error:
            raise UsageError(f"the port of an orientdb URL is not valid: {error}") from error
        self.name, self._database = name, unquote(database)
        #: Bytes of the last answer.
        self.answer_bytes = 0
        self.server = f"{parts.hostname}:{port}"
        secret = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        self._headers = {
            "Authorization": "Basic " + base64.b64encode(secret.encode()).decode(),
            "Content-Type": "application/json",
        }
        self._http = http.client.HTTPConnection(parts.hostname, port, timeout=_TIMEOUT)
        self._retries = Retries(
            self.server,
            (_Away,),
            retry_seconds(opening),
            opening.stopped,
        )

    def check(self) -> None:
        """Check server, user and database.

        Raises:
            UsageError: The server refused the user, or has no such database.
        """
        try:
            self._request("GET", "database", None)
        except BaseException:
            self.close()
            raise

    def query(self, sql: str, **parameters: Any) -> list[dict[str, Any]]:
        """Return the rows of a query."""
        body = {"command": sql, "parameters": parameters}
        rows: list[dict[str, Any]] = self._request("POST", "command", body, "/sql/-1")["result"]
        return rows

    def execute(self, statements: Sequence[str]) -> None:
        """Execute statements in one transaction."""
        self.change([{"type": "script", "language": "sql", "script": list(statements)}])

    def change(self, operations: Sequence[dict[str, Any]]) -> None:
        """Execute operations of the batch interface in one transaction.

        Raises:
            DuplicateError: A unique index has the key of a new document; nothing has changed.
        """
        self._request("POST", "batch", {"transaction": True, "operations": list(operations)})

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def _request(self, method: str, verb: str, body: Any, rest: str = "") -> Any:
        path = f"/{verb}/{quote(self._database)}{rest}"
        data = None if body is None else json.dumps(body)
        return self._retries(lambda: self._once(method, path, data))

    def _once(self, method: str, path: str, data: str | None) -> Any:
        try:
            self._http.request(method, path, data, self._headers)
            response = self._http.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._http.close()
            raise _Away(str(error) or type(error).__name__) from error
        self.answer_bytes = len(text)
        if response.status < 300:
            return json.loads(text) if text else None
        reason = _reason(text)
        if response.status == 401:
            raise UsageError(
                f"the server {self.server} refused the user, the password or the database "
                f'"{self._database}": {reason}; correct the URL'
            )
        if response.status == 409 or "ConcurrentModification" in reason:
            raise _Away(reason)
        if "ORecordDuplicatedException" in reason:
            raise DuplicateError(f"the server {self.server} failed: {reason}")
        raise StoreIoError(f"the server {self.server} failed: {reason}")


def _reason(text: bytes) -> str:
    try:
        errors = json.loads(text)["errors"]
        return str(errors[0]["content"]).splitlines()[0].strip()[:300]
    except (ValueError, KeyError, IndexError):
        return text.decode(errors="replace")[:300].strip() or "no reason given"
