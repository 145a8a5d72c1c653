"""Connections of DuckDB, whose queries end with Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

#: Signals whose handlers may raise an exception.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
#: Seconds between two interrupts of a query.
_REPEAT_SECONDS = 0.05


class Connection:
    """A connection of DuckDB whose queries signals interrupt.

    A handler that raises an exception during a query would leave DuckDB waiting for its own threads
    for ever. So signals end the query first, and call their handlers afterwards.
    """

    def __init__(self, native: Any, folder: str) -> None:
        """Take a connection of DuckDB, which `close` closes, and its folder of temporary files."""
        self._native = native
        #: The folder of its temporary files, which outlives it.
        self.folder = folder

    def __enter__(self) -> Connection:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._native.close()

    def cursor(self) -> Connection:
        """Return another connection to the same tables."""
        return Connection(self._native.cursor(), self.folder)

    def register(self, name: str, rows: object) -> None:
        """Make a view of rows in memory."""
        self._native.register(name, rows)

    def execute(self, query: str, parameters: Sequence[object] | None = None) -> Any:
        """Run a query; return its result as DuckDB does."""
        with self._interruptible():
            return self._native.execute(query, parameters)

    def reader(self, query: str, batch_rows: int) -> Any:
        """Return a reader of the rows of a query."""
        with self._interruptible():
            return self._native.sql(query).to_arrow_reader(batch_rows)

    @contextlib.contextmanager
    def _interruptible(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            # Handlers run in the main thread only.
            yield
            return
        received: list[tuple[int, FrameType | None]] = []
        ended, repeating = threading.Event(), list[threading.Thread]()

        def repeat() -> None:
            # DuckDB forgets an interrupt that comes before the query begins.
            while not ended.wait(_REPEAT_SECONDS):
                self._native.interrupt()

        def interrupt(number: int, frame: FrameType | None) -> None:
            if not received:
                repeating.append(threading.Thread(target=repeat, daemon=True))
                repeating[0].start()
            received.append((number, frame))
            self._native.interrupt()

        handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
        for one in _SIGNALS:
            handler = signal.getsignal(one)
            if callable(handler):
                handlers[one] = handler
                signal.signal(one, interrupt)
        try:
            yield
        finally:
            ended.set()
            for thread in repeating:
                thread.join()
            for number, handler in handlers.items():
                signal.signal(number, handler)
            for number, frame in received[:1]:
                handlers[number](number, frame)
