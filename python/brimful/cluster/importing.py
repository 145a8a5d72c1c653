"""Files of edges that the tasks of a Ray cluster read, for an import.

A task reads one file, in a process and a budget of its own: it parses text, or decodes Parquet. The
edges stay with the tasks (see `keeping`), and other tasks sort them (see `sorting`).
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from brimful.cluster.driver import MAX_RESTARTS, ClusterCapacity, connected
from brimful.cluster.exchange import lost
from brimful.cluster.keeping import Keeping
from brimful.cluster.sorting import Sorting
from brimful.cluster.tasks import TaskBudget, Tasks, labelled
from brimful.errors import BrimfulError
from brimful.io.feed import Feed
from brimful.io.redaction import redacted_word
from brimful.io.remote import is_remote
from brimful.memory import budget_bytes
from brimful.tables.parquet import open_parquet

if TYPE_CHECKING:
    from types import TracebackType

    from brimful.options.imports import EdgeColumns
    from brimful.resources import Resources
    from brimful.tables.edge_table import EdgeTable


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
        #: The tasks that read the files and keep their edges, once they are begun.
        self.keeping: Keeping | None = None

    def __enter__(self) -> Self:
        """Connect to the cluster."""
        from brimful import __version__

        address = self._cluster["cluster"]
        with contextlib.ExitStack() as connection:
            connection.enter_context(connected(address))
            capacity = ClusterCapacity.of(address)
            self._connection = connection.pop_all()
        # A task uses one core.
        usual = capacity.workers * (1 if address.startswith("local:") else capacity.cores)
        self._at_once = self._cluster["workers"] or usual
        parts = -(-self._at_once // capacity.nodes) + 1
        self.task_budget = TaskBudget(budget_bytes(self._budget, parts), __version__)
        #: The tasks that sort the edges once they are read.
        self.sorters = Sorting(self.task_budget, self._at_once)
        return self

    def _keep_by(self, work: Callable[..., Iterator[Any]], *, names: bool) -> Keeping:
        """Let tasks read each file by `work`, and keep its edges; `names`: ids are strings."""
        tasks = Tasks(
            work,
            [(path, self._choices, names, self.task_budget) for path in self._paths],
            [f"reads {_redacted_path(path)}" for path in self._paths],
            self._at_once,
        )
        self.keeping = Keeping(tasks, self.task_budget, self._at_once, self.sorters, names=names)
        return self.keeping

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the tasks; raise the error of a task if there was one."""
        leaders = [one for one in (self.keeping, self.sorters) if one is not None]
        for one in leaders:
            one.end()
        failures = [one.failure for one in leaders if one.failure is not None]
        self._connection.close()
        if failures and isinstance(error, BrimfulError):
            raise failures[0] from None

    def importing(self, resources: Resources) -> Resources:
        """Return the resources of the importing process, which may share its machine with tasks."""
        return resources.beside_ray(self.task_budget.budget)

    def figures(self) -> dict[str, Any]:
        """Return the figures of the tasks."""
        return {
            "files_at_once": self._at_once,
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
        self.paths = [_redacted_path(path) for path in paths]
        #: Whether ids are strings, and the tasks, as the native module takes them.
        self.distributed: tuple[bool, Keeping] | None = None

    def __enter__(self) -> Self:
        """Connect to the cluster, and let a task find the type of ids in the first file."""
        super().__enter__()
        import ray

        try:
            look = ray.remote(_has_names).options(num_cpus=1, max_retries=MAX_RESTARTS)
            has_names = ray.get(look.remote(self._paths[0], self._choices, self.task_budget))
            if isinstance(has_names, BaseException):
                raise has_names
        except BaseException as error:
            self._connection.close()
            if isinstance(error, ray.exceptions.RayError):
                raise lost(f"the task that reads {self.paths[0]}", error) from None
            raise
        self.distributed = has_names, self._keep_by(_kept_text, names=has_names)
        return self


class Decoding(Reading):
    """Parquet files that tasks decode."""

    def keep(self, table: EdgeTable) -> tuple[list[str], Keeping]:
        """Let tasks read all files, whose first ones are open as a table, and keep their edges."""
        return self._paths, self._keep_by(_kept_table, names=table.ids == "string")


def _redacted_path(path: str) -> str:
    return redacted_word(path) if is_remote(path) else path


def _has_names(path: str, choices: ReadChoices, budget: TaskBudget) -> bool | BaseException:
    """Return whether the ids of a file are strings, or the error of reading it."""
    from brimful import _native

    try:
        with Feed([path], None) as feed:
            return _native.has_names(
                feed.paths[0],
                format=choices.format,
                columns=choices.columns,
                ids=choices.ids,
                budget=budget.bytes(),
                progress=feed.progress,
            )
    except BrimfulError as error:
        return error


def _kept_text(path: str, choices: ReadChoices, names: bool, budget: TaskBudget) -> Iterator[Any]:
    """Yield the messages of a file of text, then their labels, or the error."""
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
                folder=tempfile.gettempdir(),
                budget=budget.bytes(),
                progress=feed.progress,
            )

    yield from labelled(parse)


def _kept_table(path: str, choices: ReadChoices, names: bool, budget: TaskBudget) -> Iterator[Any]:
    """Yield the messages of a Parquet file, then their labels, or the error."""
    from brimful import _native

    def read(send: Callable[[int, bytes], object]) -> None:
        decided, scan = choices.undirected is not None, choices.scan()
        with open_parquet(path, choices.columns, choices.ids, is_decided=decided) as table:
            if scan["undirected"] is None:
                scan["undirected"] = table.undirected
            _native.read_table(
                table,
                send,
                name=path,
                source=table.source,
                target=table.target,
                weight=table.weight,
                ids="string" if names else "int",
                vertex_rows=table.vertex_rows,
                **scan,
                reserve_bytes=table.reserve_bytes,
                folder=tempfile.gettempdir(),
                budget=budget.bytes(),
            )

    yield from labelled(read)
