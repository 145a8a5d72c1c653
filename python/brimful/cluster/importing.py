"""Files of edges that the tasks of a Ray cluster read, for an import.

A task reads one file, in a process and a budget of its own: it parses text, or decodes Parquet. The
importing process takes the edges in, ranks their ids, and lets other tasks sort them.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from brimful.cluster.driver import MAX_RESTARTS, Place, connected
from brimful.cluster.exchange import lost
from brimful.cluster.sorting import Sorting
from brimful.cluster.tasks import Share, Tasks, sent_by, task_error
from brimful.errors import BrimfulError, BudgetError
from brimful.io.redaction import redacted_word
from brimful.io.remote import Feed, is_remote
from brimful.memory import budget_beside_ray
from brimful.sizes import format_bytes
from brimful.tables.edge_table import EdgeTable, guarded
from brimful.tables.parquet import open_parquet

if TYPE_CHECKING:
    from types import TracebackType

    from brimful.options.imports import EdgeColumns

#: The most items that a task may be ahead of the import: messages of text, which are taken in any
#: order of files, and batches of tables, which are taken file by file.
_MESSAGES_AHEAD, _BATCHES_AHEAD = 8, 256


@dataclass(frozen=True)
class TextChoices:
    """The options with which a task parses text."""

    format: str
    columns: EdgeColumns
    ids: str
    directed: bool
    on_error: str
    positions: bool


class Reading:
    """The tasks that read the files of an import, and those that sort its edges.

    A context manager: leaving it ends the tasks, and raises the error of a task in place of the
    consumer's version.
    """

    def __init__(
        self, paths: Sequence[str], cluster: Mapping[str, Any], budget: int | None
    ) -> None:
        """Read files on a cluster, each task within a budget in bytes (None: the usual one)."""
        self._paths, self._cluster, self._budget = list(paths), cluster, budget
        self._connection = contextlib.ExitStack()
        self._at_once = 1

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
        #: The tasks that sort the edges once they are read.
        self.sorters = Sorting(self.share, self._at_once)
        return self

    def _read_by(self, work: Callable[..., Iterator[Any]], ahead: int, *arguments: Any) -> None:
        """Let tasks read each file by `work`, at most `ahead` items before the import."""
        self._tasks = Tasks(
            work,
            [(path, *arguments, self.share) for path in self._paths],
            [f"reads {_shown(path)}" for path in self._paths],
            self._at_once,
            ahead,
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the tasks; raise the error of a task if there was one."""
        self._tasks.end()
        self.sorters.end()
        self._connection.close()
        if not isinstance(error, BrimfulError):
            return
        if self._tasks.failure is not None:
            raise self._tasks.failure[1] from None
        if self.sorters.failure is not None:
            raise self.sorters.failure from None

    def limits(self) -> dict[str, Any]:
        """Return the limits of the importing process, which may share its machine with tasks."""
        return budget_beside_ray(self.share.budget_bytes())

    def figures(self) -> dict[str, Any]:
        """Return the figures of the tasks."""
        return {
            "files_at_once": self._at_once,
            "bytes_received": self._tasks.bytes_received,
            "wait_seconds": self._tasks.wait_seconds,
            "sorting": self.sorters.figures(),
        }


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
            has_names = ray.get(look.remote(self._paths[0], self._choices, self.share))
            if isinstance(has_names, BaseException):
                raise has_names
        except BaseException as error:
            self._connection.close()
            if isinstance(error, ray.exceptions.RayError):
                raise lost(f"the task that reads {self.paths[0]}", error) from None
            raise
        self.names = has_names
        self._read_by(_messages, _MESSAGES_AHEAD, self._choices, has_names)
        return self

    def next(self, seconds: float) -> list[tuple[int, Any]] | None:
        """Return the next message with the number of its file; None if none came, empty at the end.

        Raises:
            BrimfulError: The error of the first file that has one.
        """
        import ray

        tasks = self._tasks
        while True:
            tasks.begin()
            if not tasks.running:
                if tasks.failure is not None:
                    raise tasks.failure[1]
                return []
            begin = time.perf_counter()
            ready, _ = ray.wait([task for task, _ in tasks.running], num_returns=1, timeout=seconds)
            tasks.wait_seconds += time.perf_counter() - begin
            if not ready:
                return None
            place = next(at for at, (task, _) in enumerate(tasks.running) if task is ready[0])
            task, number = tasks.running.pop(place)
            for item in tasks.item(task, number, None) or ():
                # The task goes to the end of the list, so that others are served first.
                tasks.running.append((task, number))
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
        while not table.stopped.is_set():
            item = self._tasks.first_item(0.1)
            if item == ():
                return
            if item is not None:
                yield item[0]


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
    from brimful import _native

    def parse(send: Callable[[bytes], object]) -> None:
        with Feed([path], None) as feed:
            _native.parse_text(
                feed.paths[0],
                send,
                format=choices.format,
                columns=choices.columns,
                names=names,
                directed=choices.directed,
                on_error=choices.on_error,
                positions=choices.positions,
                budget=share.budget_bytes(),
                progress=feed.progress,
            )

    yield from sent_by(parse)


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
        yield task_error(error)
