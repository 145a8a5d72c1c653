"""Files of edges that the tasks of a Ray cluster read, for an import.

A task reads one file, in a process and a budget of its own: it parses text, or decodes Parquet.
Edges with integer ids stay with the tasks (see `keeping`). The importing process takes in edges
with strings as ids, ranks them, and lets other tasks sort the edges.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from brimful.cluster.driver import MAX_RESTARTS, Place, connected
from brimful.cluster.exchange import lost
from brimful.cluster.keeping import Keeping
from brimful.cluster.sorting import Sorting
from brimful.cluster.tasks import Share, Tasks, labelled, sent_by, task_error
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

#: The most items that a task may be ahead of an import that takes edges in: messages of text, which
#: are taken in any order of files, and batches of tables, which are taken file by file.
_MESSAGES_AHEAD, _BATCHES_AHEAD = 8, 256


@dataclass(frozen=True)
class ReadChoices:
    """The options with which a task reads a file."""

    format: str
    columns: EdgeColumns
    ids: str
    undirected: bool | None
    on_error: str
    self_loops: str
    duplicates: str

    def scan(self) -> dict[str, Any]:
        """Return the options of the native module."""
        names = ("undirected", "on_error", "self_loops", "duplicates")
        return {name: getattr(self, name) for name in names}


class Reading:
    """The tasks that read the files of an import, and those that sort its edges.

    A context manager: leaving it ends the tasks, and raises the error of a task in place of the
    consumer's version.
    """

    def __init__(
        self,
        paths: Sequence[str],
        choices: ReadChoices,
        cluster: Mapping[str, Any],
        budget: int | None,
    ) -> None:
        """Read files on a cluster, each task within a budget in bytes (None: the usual one)."""
        self._paths, self._choices = list(paths), choices
        self._cluster, self._budget = cluster, budget
        self._connection = contextlib.ExitStack()
        self._at_once = 1
        self._tasks: Tasks | None = None
        #: The tasks that keep edges, if ids are integers.
        self.keeping: Keeping | None = None

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

    def _read_by(
        self, work: Callable[..., Iterator[Any]], ahead: int | None, *arguments: Any
    ) -> Tasks:
        """Let tasks read each file by `work`, at most `ahead` items before the import."""
        self._tasks = Tasks(
            work,
            [(path, *arguments, self.share) for path in self._paths],
            [f"reads {_shown(path)}" for path in self._paths],
            self._at_once,
            ahead,
        )
        return self._tasks

    def _keep_by(self, work: Callable[..., Iterator[Any]], *arguments: Any) -> Keeping:
        """Let tasks read each file by `work`, and keep its edges."""
        tasks = self._read_by(work, None, *arguments)
        self.keeping = Keeping(tasks, self.share, self._at_once, self.sorters)
        return self.keeping

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the tasks; raise the error of a task if there was one."""
        failures = []
        if self._tasks is not None:
            self._tasks.end()
            failures += [failure[1] for failure in (self._tasks.failure,) if failure is not None]
        if self.keeping is not None:
            self.keeping.end()
            failures += [failure for failure in (self.keeping.failure,) if failure is not None]
        self.sorters.end()
        failures += [failure for failure in (self.sorters.failure,) if failure is not None]
        self._connection.close()
        if failures and isinstance(error, BrimfulError):
            raise failures[0] from None

    def limits(self) -> dict[str, Any]:
        """Return the limits of the importing process, which may share its machine with tasks."""
        return budget_beside_ray(self.share.budget_bytes())

    def figures(self) -> dict[str, Any]:
        """Return the figures of the tasks."""
        return {
            "files_at_once": self._at_once,
            "bytes_received": 0 if self._tasks is None else self._tasks.bytes_received,
            "wait_seconds": 0.0 if self._tasks is None else self._tasks.wait_seconds,
            **({} if self.keeping is None else self.keeping.figures()),
            "sorting": self.sorters.figures(),
        }


class Parsing(Reading):
    """Files of text that tasks parse, in any order."""

    def __init__(
        self,
        paths: Sequence[str],
        choices: ReadChoices,
        cluster: Mapping[str, Any],
        budget: int | None,
    ) -> None:
        """Parse files on a cluster."""
        super().__init__(paths, choices, cluster, budget)
        #: The file names for messages to the user.
        self.paths = [_shown(path) for path in paths]

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
        if has_names:
            self._read_by(_messages, _MESSAGES_AHEAD, self._choices)
        else:
            self._keep_by(_kept_text, self._choices)
        return self

    def source(self) -> tuple[bool, object]:
        """Return whether ids are strings, and the edges, as the native module takes them."""
        return self.keeping is None, self.keeping or self

    def next(self, seconds: float) -> list[tuple[int, Any]] | None:
        """Return the next message with the number of its file; None if none came, empty at the end.

        Raises:
            BrimfulError: The error of the first file that has one.
        """
        assert self._tasks is not None
        return self._tasks.message(seconds)


class Decoding(Reading):
    """Parquet files that tasks decode."""

    #: The number of files whose rows were begun, and a batch of a later file, with its number.
    _begun = 0
    _ahead: tuple[int, Any] | None = None

    def take_over(self, table: EdgeTable) -> EdgeTable:
        """Let tasks read the rows of an open file; files must be passed in their order."""
        if table.ids == "string":
            schema = table.reader.schema
            table.reader = guarded(table, schema, self._rows(table))
        return table

    def keep(self, table: EdgeTable) -> tuple[list[str], Keeping] | None:
        """Let tasks read all files and keep their edges; None if ids are strings."""
        if table.ids == "string":
            return None
        return self._paths, self._keep_by(_kept_table, self._choices)

    def _rows(self, table: EdgeTable) -> Iterator[Any]:
        """Yield the rows of the next file, which are those of a table."""
        tasks = self._tasks or self._read_by(_batches, _BATCHES_AHEAD, self._choices)
        self._begun += 1
        while not table.stopped.is_set():
            if self._ahead is None:
                messages = tasks.message(0.1, in_order=True)
                if messages is None:
                    continue
                if not messages:
                    return
                self._ahead = messages[0]
            number, batch = self._ahead
            if number >= self._begun:
                return
            self._ahead = None
            yield batch


def _shown(path: str) -> str:
    return redacted_word(path) if is_remote(path) else path


def _has_names(path: str, choices: ReadChoices, share: Share) -> bool | BaseException:
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


def _messages(path: str, choices: ReadChoices, share: Share) -> Iterator[Any]:
    """Yield the messages of a file with strings; after a failure, the last item is the error."""
    parse = _parsing(path, choices, share, names=True)
    yield from sent_by(lambda send: parse(lambda _, message: send(message)))


def _kept_text(path: str, choices: ReadChoices, share: Share) -> Iterator[Any]:
    """Yield the messages of a file with integers, then their labels, or the error."""
    yield from labelled(_parsing(path, choices, share, names=False))


def _parsing(
    path: str, choices: ReadChoices, share: Share, *, names: bool
) -> Callable[[Callable[[int, bytes], object]], None]:
    """Return a function that parses a file and sends its messages."""
    from brimful import _native

    def parse(send: Callable[[int, bytes], object]) -> None:
        with Feed([path], None) as feed:
            _native.parse_text(
                feed.paths[0],
                send,
                format=choices.format,
                columns=choices.columns,
                names=names,
                **choices.scan(),
                budget=share.budget_bytes(),
                progress=feed.progress,
            )

    return parse


def _kept_table(path: str, choices: ReadChoices, share: Share) -> Iterator[Any]:
    """Yield the messages of a Parquet file with integers, then their labels, or the error."""
    from brimful import _native

    def read(send: Callable[[int, bytes], object]) -> None:
        directed = choices.undirected is False
        with open_parquet(path, choices.columns, choices.ids, directed=directed) as table:
            scan = choices.scan()
            if scan["undirected"] is None:
                scan["undirected"] = table.undirected
            _native.read_table(
                table,
                send,
                name=path,
                source=table.source,
                target=table.target,
                weight=table.weight,
                vertex_rows=table.vertex_rows,
                **scan,
                reserve_bytes=table.reserve_bytes,
                budget=share.budget_bytes(),
            )

    yield from labelled(read)


def _batches(path: str, choices: ReadChoices, share: Share) -> Iterator[Any]:
    """Yield the batches of a Parquet file; after a failure, the last item is the error."""
    try:
        budget, directed = share.budget_bytes(), choices.undirected is False
        with open_parquet(path, choices.columns, choices.ids, directed=directed) as table:
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
