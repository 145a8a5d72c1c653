"""Connections of DuckDB, whose queries end with Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from brimful.tables.text_rows import sql_name

if TYPE_CHECKING:
    import pyarrow

#: Signals whose handlers may raise an exception.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
#: Rows that DuckDB processes together.
_VECTOR_ROWS = 2048
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
        #: The bytes of a row of each stream, in the batch with the widest rows that was read.
        self._row_bytes: dict[str, int] = {}

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
        cursor = Connection(self._native.cursor(), self.folder)
        cursor._row_bytes = self._row_bytes
        return cursor

    def register(self, name: str, rows: pyarrow.RecordBatchReader) -> None:
        """Make a view of a stream of rows."""
        import pyarrow as pa

        self._row_bytes[name] = 0
        measured = pa.RecordBatchReader.from_batches(rows.schema, self._measured(name, rows))
        self._native.register(name, measured)

    def _measured(
        self, name: str, rows: pyarrow.RecordBatchReader
    ) -> Iterator[pyarrow.RecordBatch]:
        """Yield the batches of a stream, and note the bytes of its widest rows."""
        for batch in rows:
            row_bytes = batch.nbytes // max(batch.num_rows, 1)
            self._row_bytes[name] = max(self._row_bytes[name], row_bytes)
            yield batch

    def row_bytes(self) -> int:
        """Return the bytes of a row of all views together, where rows are widest.

        Of streams, only batches that were read count; of files, only texts.
        """
        views = self._native.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal")
        files = {str(name) for (name,) in views.fetchall()} - self._row_bytes.keys()
        return sum(self._row_bytes.values()) + sum(map(self._text_bytes, files))

    def _text_bytes(self, view: str) -> int:
        """Return the bytes of the texts in a row of a view, where rows are widest."""
        columns = self._native.execute(f"DESCRIBE {sql_name(view)}").fetchall()
        texts = [name for name, kind, *_ in columns if kind in ("VARCHAR", "BLOB")]
        if not texts:
            return 0
        sizes = " + ".join(f"coalesce(octet_length({sql_name(name)}::BLOB), 0)" for name in texts)
        widest = (
            f"SELECT {sizes} AS bytes FROM {sql_name(view)} ORDER BY bytes DESC "
            f"LIMIT {_VECTOR_ROWS}"
        )
        ((mean,),) = self._native.execute(f"SELECT avg(bytes) FROM ({widest})").fetchall()
        return int(mean or 0)

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
