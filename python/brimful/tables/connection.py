"""Connections of DuckDB: their memory, their errors, and queries that end with Ctrl-C.

DuckDB has a memory limit, and spills to a folder that is removed with the connection.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import tempfile
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from brimful.errors import BudgetError, InputError, StoreIoError
from brimful.memory import too_small
from brimful.optional import require
from brimful.tables.edge_table import ARROW_RESERVE_BYTES
from brimful.tables.text_rows import sql_name

if TYPE_CHECKING:
    import pyarrow

    from brimful.resources import Resources

#: Signals whose handlers may raise an exception.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
#: Rows that DuckDB processes together.
_VECTOR_ROWS = 2048
#: Seconds between two interrupts of a query.
_REPEAT_SECONDS = 0.05
#: Bytes that DuckDB takes once loaded, besides the memory that it manages.
LOADED_BYTES = 56 << 20
#: Bytes that pyarrow and DuckDB take once loaded.
PACKAGES_BYTES = ARROW_RESERVE_BYTES + LOADED_BYTES
#: The share of the remaining memory that DuckDB manages; decoded pages and moving rows are extra.
_MANAGED = 0.75
#: The least memory in which DuckDB joins and sorts.
MIN_JOIN_BYTES = 96 << 20
#: Bytes that a thread of DuckDB holds while it joins and sorts.
_THREAD_BYTES = 64 << 20
#: Bytes in which DuckDB joins long rows, and rows for which it takes more: an upper bound of the
#: measured ones, for rows of 1,000 to 32,000 bytes.
_LONG_ROWS_BYTES, _LONG_ROWS = 384 << 20, 32 << 10
#: Bytes that the allocators keep of the memory that a run has freed.
_RETAINED_BYTES = 16 << 20
#: Bytes beside the process for a join of the least memory, before pyarrow and DuckDB are loaded.
JOIN_BYTES = PACKAGES_BYTES + int(MIN_JOIN_BYTES / _MANAGED)
#: Bytes that a run leaves free for a join after it, and an import for a join beside it.
JOIN_RESERVE_BYTES = JOIN_BYTES + _RETAINED_BYTES
#: The beginning of DuckDB's advice, which is about options of its own.
_ADVICE = re.compile(r" (?:The search space used|Po(?:ssible|tential) [FfSs]|LINE 1:)")


class DuckDbConnection:
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

    def __enter__(self) -> DuckDbConnection:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._native.close()

    def cursor(self) -> DuckDbConnection:
        """Return another connection to the same tables."""
        cursor = DuckDbConnection(self._native.cursor(), self.folder)
        cursor._row_bytes = self._row_bytes
        return cursor

    def register(
        self, name: str, rows: pyarrow.RecordBatchReader, columns: Collection[str] | None = None
    ) -> None:
        """Make a view of the columns of a stream that have some names; None: of all.

        Raises:
            InputError: One of them has a type that DuckDB does not know.
        """
        import duckdb
        import pyarrow as pa

        self._row_bytes[name] = 0
        fields = list(enumerate(rows.schema))
        places = [at for at, field in fields if columns is None or field.name in columns]
        schema = pa.schema([rows.schema.field(at) for at in places])
        batches = self._measured(name, (batch.select(places) for batch in rows))
        try:
            self._native.register(name, pa.RecordBatchReader.from_batches(schema, batches))
        except duckdb.NotImplementedException:
            for field in schema:
                self._refuse_unknown(field)
            raise

    def _refuse_unknown(self, field: pyarrow.Field) -> None:
        """Refuse a column of a type that DuckDB does not know."""
        import duckdb
        import pyarrow as pa

        try:
            self._native.from_arrow(pa.RecordBatchReader.from_batches(pa.schema([field]), []))
        except duckdb.NotImplementedException:
            raise InputError(
                f"the column {field.name} has the type {field.type}, which DuckDB does not know; "
                "convert it, or leave it out"
            ) from None

    def _measured(
        self, name: str, rows: Iterable[pyarrow.RecordBatch]
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


@contextlib.contextmanager
def connected(memory: int, resources: Resources | None) -> Iterator[DuckDbConnection]:
    """Yield a connection of DuckDB with a memory limit, which spills to its own folder.

    Without `resources` it has one thread, and errors name no budget.

    Raises:
        MissingPackageError: DuckDB is not installed.
        BudgetError: DuckDB needs more memory. It does not say how much, so the error names an
            estimate.
    """
    from brimful import _native

    duckdb = require("duckdb", "a join")
    with contextlib.ExitStack() as stack:
        folder = _native.TemporaryFolder(tempfile.gettempdir(), ".brimful-join-")
        stack.callback(folder.close)
        most = max(memory // _THREAD_BYTES, 1)
        threads = 1 if resources is None else resources.threads
        settings = {
            "memory_limit": f"{memory}B",
            "temp_directory": folder.path,
            "threads": str(min(threads or os.cpu_count() or 1, most)),
            # Insertion order is not needed: the query sorts the outcome.
            "preserve_insertion_order": "false",
        }
        opened = DuckDbConnection(duckdb.connect(config=settings), folder.path)
        connection = stack.enter_context(opened)
        # DuckDB would print a progress bar on standard output.
        connection.execute("SET enable_progress_bar = false")
        # Times without a zone beside others with one do not depend on the machine. DuckDB without
        # time zones knows UTC alone, and not this setting.
        with contextlib.suppress(duckdb.Error):
            connection.execute("SET TimeZone = 'UTC'")
        try:
            yield connection
        except BudgetError as error:
            if resources is None or error.needed_bytes:
                raise
            wanted, budget = _LONG_ROWS_BYTES, resources.budget_bytes()
            # Without the length of rows, the estimate may be too small.
            with contextlib.suppress(duckdb.Error):
                wanted += _LONG_ROWS * connection.row_bytes()
            named = max(2 * budget, budget + int((wanted - memory) / _MANAGED))
            named = -(-named >> 20) << 20
            sentence = str(error).partition("; ")[0]
            raise BudgetError(
                f"{sentence}; by estimate, the smallest that works is {named >> 20}M", named
            ) from None


@contextlib.contextmanager
def rows_of(
    connection: DuckDbConnection, query: str, name: str, batch_rows: int
) -> Iterator[pyarrow.RecordBatchReader]:
    """Yield a reader of the rows of a query on a connection, about the table `name`.

    The rows end with the context: a relation or a reader that outlives the connection would be
    reported as leaked.

    Raises:
        InputError, BudgetError, StoreIoError: As `join_errors`.
    """
    with join_errors(name):
        reader = connection.reader(query, batch_rows)
    with reader:
        yield reader


@contextlib.contextmanager
def join_errors(name: str) -> Iterator[None]:
    """Turn the errors of DuckDB and of Arrow into brimful's, about the table `name`.

    Raises:
        KeyboardInterrupt: A signal interrupted a query, and its handler raised nothing.
    """
    import duckdb
    import pyarrow as pa

    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except (duckdb.Error, pa.ArrowException) as error:
        sentence = _ADVICE.split(" ".join(str(error).split()))[0]
        if "No space left" in sentence:
            raise StoreIoError(f"a join needs more disk than is free: {sentence}") from None
        if isinstance(error, duckdb.OutOfMemoryException) or "Out of Memory" in sentence:
            raise BudgetError(
                f"the memory budget is too small to join {name}; give a larger one"
            ) from None
        raise InputError(f"{name} cannot be joined: {sentence}") from None


def join_memory(resources: Resources, share: float = 1.0, *, beside_bytes: int = 0) -> int:
    """Return the memory limit of DuckDB, which has a `share` of the free part of the budget.

    `beside_bytes` of that part are left free.

    Raises:
        BudgetError: The free part is too small.
    """
    resources = resources.beside(LOADED_BYTES)
    limit, taken = resources.budget_bytes(), resources.taken_bytes(LOADED_BYTES)
    taken += beside_bytes
    memory = int((limit - taken) * share * _MANAGED)
    if memory < MIN_JOIN_BYTES:
        raise too_small(resources, taken + int(MIN_JOIN_BYTES / (share * _MANAGED)), "for a join")
    return memory


def bytes_of_joins(count: int) -> int:
    """Return the bytes beside the process for joins of the least memory, one after another.

    pyarrow and DuckDB are not loaded yet. Each join leaves memory with the process.
    """
    return JOIN_BYTES + (count - 1) * LOADED_BYTES
