"""Files of edges that the tasks of a Ray cluster read, for an import.

A task reads one file, in a process and a budget of its own: it parses text, or decodes Parquet. The
importing process takes the edges in and makes the graph. Ray places the tasks, keeps them from
running too far ahead, and repeats lost ones. Invariant: the items of a task depend on its file and
the options alone, so that a repeated task continues where the lost one stopped.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from brimful.cluster.driver import MAX_RESTARTS, Place, connected
from brimful.cluster.exchange import first_line
from brimful.errors import BrimfulError, BudgetError, UsageError, WorkerLostError
from brimful.io.redaction import redacted_word
from brimful.io.remote import Feed, is_remote
from brimful.memory import budget_beside_ray, budget_bytes
from brimful.sizes import format_bytes
from brimful.tables.edge_table import EdgeTable, guarded
from brimful.tables.parquet import open_parquet

if TYPE_CHECKING:
    from types import TracebackType

    from brimful.options.imports import EdgeColumns

#: The most items that a task may be ahead of the import: messages of text, which are taken in any
#: order of files, and batches of tables, which are taken file by file.
_MESSAGES_AHEAD, _BATCHES_AHEAD = 8, 256
#: The most messages that wait between the parser of a task and Ray.
_QUEUED = 2


@dataclass(frozen=True)
class Share:
    """The budget of a task: bytes, or one of `parts` equal parts of its machine's usual budget."""

    budget: int | None
    parts: int
    version: str

    def budget_bytes(self) -> int:
        """Return the budget on this machine, in bytes.

        Raises:
            UsageError: Another version of brimful is installed here.
        """
        from brimful import __version__

        if self.version != __version__:
            raise UsageError(
                f"brimful {__version__} is installed on {os.uname().nodename}, and {self.version} "
                "where the import runs; install the same version on all nodes"
            )
        return budget_bytes(self.budget, self.parts)


@dataclass(frozen=True)
class TextChoices:
    """How a task parses text."""

    format: str
    columns: EdgeColumns
    ids: str
    directed: bool
    on_error: str
    positions: bool


class Reading:
    """The tasks that read the files of an import, each in its turn.

    A context manager: leaving it ends the tasks, and raises the error of a file in place of the
    consumer's version.
    """

    def __init__(
        self, paths: Sequence[str], cluster: Mapping[str, Any], budget: int | None
    ) -> None:
        """Read files on a cluster, each task within a budget in bytes (None: the usual one)."""
        self._paths, self._cluster, self._budget = list(paths), cluster, budget
        self._connection = contextlib.ExitStack()
        self._at_once = 1
        self._begun = 0
        #: The running tasks, each with the number of its file.
        self._running: list[tuple[Any, int]] = []
        self._failure: tuple[int, BaseException] | None = None
        self._task: Any = None
        self._given: tuple[Any, ...] = ()
        self._wait_seconds, self._bytes = 0.0, 0

    def __enter__(self) -> Self:
        """Connect to the cluster."""
        from brimful import __version__

        address = self._cluster["cluster"]
        with contextlib.ExitStack() as connection:
            connection.enter_context(connected(address))
            place = Place.of(address)
            self._connection = connection.pop_all()
        # A task uses one core.
        usual = place.workers * (1 if address.startswith("local:") else place.cores)
        self._at_once = self._cluster["workers"] or usual
        self.share = Share(self._budget, -(-self._at_once // place.nodes) + 1, __version__)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the tasks; raise the error of a file if there was one."""
        import ray

        for task, _ in self._running:
            ray.cancel(task, force=True)
        self._running.clear()
        self._connection.close()
        if isinstance(error, BrimfulError) and self._failure is not None:
            raise self._failure[1] from None

    def limits(self) -> dict[str, Any]:
        """Return the limits of the importing process, which may share its machine with tasks."""
        return budget_beside_ray(self.share.budget_bytes())

    def figures(self) -> dict[str, Any]:
        """Return the figures of the reading."""
        return {
            "files_at_once": self._at_once,
            "bytes_received": self._bytes,
            "wait_seconds": self._wait_seconds,
        }

    def _read_by(self, task: Any, ahead: int, *given: Any) -> None:
        """Read each file by `task`, which yields its items, at most `ahead` before the import."""
        import ray

        self._task = ray.remote(task).options(
            num_cpus=1,
            num_returns="streaming",
            max_retries=MAX_RESTARTS,
            _generator_backpressure_num_objects=ahead,
        )
        self._given = given

    def _begin(self) -> None:
        """Begin as many tasks as may run, in the order of the files."""
        while (
            len(self._running) < self._at_once
            and self._begun < len(self._paths)
            and self._failure is None
        ):
            task = self._task.remote(self._paths[self._begun], *self._given, self.share)
            self._running.append((task, self._begun))
            self._begun += 1

    def _item(self, task: Any, number: int, seconds: float | None) -> tuple[Any, ...] | None:
        """Return a tuple with the next item of a task, empty at its end; None if no item is ready.

        An error is kept, and ends the tasks of later files.
        """
        import ray

        begin = time.perf_counter()
        try:
            ready, _ = ray.wait([task], num_returns=1, timeout=seconds)
            if not ready:
                return None
            item = ray.get(next(task))
        except StopIteration:
            return ()
        except ray.exceptions.RayError as error:
            item = WorkerLostError(
                f"the task that reads {_shown(self._paths[number])} was lost: {first_line(error)}"
            )
        finally:
            self._wait_seconds += time.perf_counter() - begin
        if not isinstance(item, BaseException):
            self._bytes += item.nbytes
            return (item,)
        if self._failure is None or number < self._failure[0]:
            self._failure = number, item
        for later, at in self._running:
            if at > number:
                ray.cancel(later, force=True)
        self._running = [(other, at) for other, at in self._running if at < number]
        return ()


class Parsing(Reading):
    """Files of text that tasks parse; the native module takes messages in any order of files."""

    def __init__(
        self,
        paths: Sequence[str],
        choices: TextChoices,
        cluster: Mapping[str, Any],
        budget: int | None,
    ) -> None:
        """Parse files on a cluster."""
        super().__init__(paths, cluster, budget)
        self._choices = choices
        #: The file names for messages to the user, and whether ids are strings.
        self.paths = [_shown(path) for path in paths]
        self.names = False

    def __enter__(self) -> Self:
        """Connect to the cluster, and let a task find the type of ids in the first file."""
        super().__enter__()
        import ray

        try:
            look = ray.remote(_has_names).options(num_cpus=1, max_retries=MAX_RESTARTS)
            found = ray.get(look.remote(self._paths[0], self._choices, self.share))
            if isinstance(found, BaseException):
                raise found
        except BaseException as error:
            self.__exit__(type(error), error, None)
            if isinstance(error, ray.exceptions.RayError):
                raise WorkerLostError(f"a task was lost: {first_line(error)}") from None
            raise
        self.names = found
        self._read_by(_messages, _MESSAGES_AHEAD, self._choices, found)
        return self

    def next(self, seconds: float) -> list[tuple[int, Any]] | None:
        """Return the next message with the number of its file; None if none came, empty at the end.

        Raises:
            BrimfulError: The error of the first file that has one.
        """
        import ray

        while True:
            self._begin()
            if not self._running:
                if self._failure is not None:
                    raise self._failure[1]
                return []
            begin = time.perf_counter()
            ready, _ = ray.wait([task for task, _ in self._running], num_returns=1, timeout=seconds)
            self._wait_seconds += time.perf_counter() - begin
            if not ready:
                return None
            place = next(at for at, (task, _) in enumerate(self._running) if task is ready[0])
            task, number = self._running.pop(place)
            for item in self._item(task, number, None) or ():
                # The task goes to the end of the list, so that others are served first.
                self._running.append((task, number))
                return [(number, item)]


class Decoding(Reading):
    """Parquet files that tasks decode, taken in one after the other."""

    def __init__(
        self,
        paths: Sequence[str],
        columns: EdgeColumns,
        ids: str,
        directed: bool,
        cluster: Mapping[str, Any],
        budget: int | None,
    ) -> None:
        """Decode files on a cluster; `directed`: every edge keeps its written direction."""
        super().__init__(paths, cluster, budget)
        self._choices = columns, ids, directed

    def __enter__(self) -> Self:
        """Connect to the cluster."""
        super().__enter__()
        self._read_by(_batches, _BATCHES_AHEAD, *self._choices)
        return self

    def take_over(self, table: EdgeTable) -> EdgeTable:
        """Let tasks read the rows of an open file; files must be passed in their order."""
        schema = table.reader.schema
        table.reader = guarded(table, schema, self._rows(table))
        return table

    def _rows(self, table: EdgeTable) -> Iterator[Any]:
        self._begin()
        task, number = self._running[0]
        while not table.stopped.is_set():
            found = self._item(task, number, 0.1)
            if self._failure is not None:
                raise self._failure[1]
            if found is None:
                continue
            if not found:
                self._running.pop(0)
                return
            yield found[0]


def _shown(path: str) -> str:
    return redacted_word(path) if is_remote(path) else path


def _has_names(path: str, choices: TextChoices, share: Share) -> bool | BaseException:
    """Return whether the ids of a file are strings, or the error of reading it."""
    from brimful import _native

    try:
        with Feed([path], None) as feed:
            return _native.has_names(
                feed.paths[0],
                format=choices.format,
                columns=choices.columns,
                ids=choices.ids,
                budget=share.budget_bytes(),
                progress=feed.progress,
            )
    except BrimfulError as error:
        return error


def _messages(path: str, choices: TextChoices, names: bool, share: Share) -> Iterator[Any]:
    """Yield the messages of a file; after a failure, the last item is the error."""
    import numpy as np

    from brimful import _native

    messages: queue.Queue[bytes | BaseException | None] = queue.Queue(_QUEUED)

    def parse() -> None:
        end = None
        try:
            with Feed([path], None) as feed:
                _native.parse_text(
                    feed.paths[0],
                    messages.put,
                    format=choices.format,
                    columns=choices.columns,
                    names=names,
                    directed=choices.directed,
                    on_error=choices.on_error,
                    positions=choices.positions,
                    budget=share.budget_bytes(),
                    progress=feed.progress,
                )
        except BaseException as error:  # noqa: BLE001 - it is raised again by the import
            end = error
        messages.put(end)

    threading.Thread(target=parse, name="brimful-parser", daemon=True).start()
    while isinstance(message := messages.get(), bytes):
        # Ray lets the reader map an array without a copy.
        yield np.frombuffer(message, dtype=np.uint8)
    if message is not None:
        yield message


def _batches(
    path: str, columns: EdgeColumns, ids: str, directed: bool, share: Share
) -> Iterator[Any]:
    """Yield the batches of a Parquet file; after a failure, the last item is the error."""
    try:
        budget = share.budget_bytes()
        with open_parquet(path, columns, ids, directed=directed) as table:
            if table.reserve_bytes > budget:
                needed = -(-table.reserve_bytes >> 20) << 20
                raise BudgetError(
                    f"a budget of {format_bytes(budget)} is too small to decode the pages of "
                    f"{_shown(path)}; the smallest that works is {format_bytes(needed)}",
                    needed,
                )
            for batch in table.reader:  # noqa: UP028 - Ray sends values, which a reader cannot take
                yield batch
    except Exception as error:  # noqa: BLE001 - it is raised again by the import
        yield error
