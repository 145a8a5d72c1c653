"""A server that speaks as much of MongoDB's protocol as a login needs, and refuses every login.

mongo-java-server knows no users.
"""

from __future__ import annotations

import contextlib
import socketserver
import struct
import threading
from collections.abc import Iterator
from typing import Any

#: The header of a message: length, request, response to, operation; and `OP_MSG`.
_HEADER = struct.Struct("<iiii")
_OP_MSG = 2013


class _Session(socketserver.StreamRequestHandler):
    """One connection."""

    def handle(self) -> None:
        """Answer commands until the client leaves."""
        import bson

        while header := self.rfile.read(_HEADER.size):
            length, request, _, operation = _HEADER.unpack(header)
            body = self.rfile.read(length - _HEADER.size)
            # The older message of the first greeting: flags, name, two numbers, a document.
            start = 5 if operation == _OP_MSG else body.index(b"\0", 4) + 9
            answer = bson.encode(self._answer(bson.decode(body[start:])))
            if operation == _OP_MSG:
                code, prefix = _OP_MSG, struct.pack("<IB", 0, 0)
            else:
                code, prefix = 1, struct.pack("<iqii", 8, 0, 0, 1)
            total = _HEADER.size + len(prefix) + len(answer)
            self.wfile.write(_HEADER.pack(total, 0, request, code) + prefix + answer)

    def _answer(self, command: dict[str, Any]) -> dict[str, Any]:
        if next(iter(command)).lower() in ("hello", "ismaster", "ping", "endsessions"):
            return {
                "ok": 1.0,
                "isWritablePrimary": True,
                "ismaster": True,
                "helloOk": True,
                "minWireVersion": 0,
                "maxWireVersion": 21,
                "maxBsonObjectSize": 16 << 20,
                "maxMessageSizeBytes": 48_000_000,
                "maxWriteBatchSize": 100_000,
            }
        return {
            "ok": 0.0,
            "code": 18,
            "codeName": "AuthenticationFailed",
            "errmsg": "Authentication failed.",
        }


@contextlib.contextmanager
def refusing() -> Iterator[int]:
    """Yield the port of a server that refuses every login."""

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), _Session) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
