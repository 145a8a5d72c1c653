"""Edges of an import that stay with the tasks of a Ray cluster which read them.

A task reads a file, and leaves its edges in Ray's object store. Tasks rank the ids of the files,
one range of ids each; tasks map the edges by these ranks, and pass them on to the tasks that sort.
The importing process takes in ids and counts alone. Of strings it takes in the names that each
file has, and ranks them; tasks then keep the edges by rank, as if they had read integers. Integers
that do not fit in a set are numbered by generations, as strings are, and become internal ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from brimful.cluster.sorting import Sorted, Sorting
from brimful.cluster.tasks import TaskBudget, Tasks, each, labelled, put, sent_by
from brimful.errors import StoreIoError

#: The labels of the messages of a file, as the native module has them; from the last one on, ids by
#: range, or the names and the edges of each generation of names.
_BATCH, _END, _RANGES = 0, 1, 2
#: The label of the counts of mapped edges; other messages have the number of their part.
_COUNTS = -1
#: The most batches that a task maps, and tasks for each that runs at a time, if there are fewer.
_BATCHES_OF_TASK, _TASKS_AT_ONCE = 64, 4


class Keeping:
    """The tasks that keep edges, rank ids and map edges, as the native module takes them."""

    def __init__(
        self, reading: Tasks, budget: TaskBudget, at_once: int, sorters: Sorting, *, names: bool
    ) -> None:
        """Let tasks read files; other tasks pass the edges on to those of `sorters`.

        `names`: ids are strings, whose edges other tasks keep again by rank.
        """
        self._task_budget, self._at_once, self._sorters = budget, at_once, sorters
        #: The tasks that read files, and those that replace the numbers of generations; and the
        #: file of each input of the latest ones.
        self._reading, self._files = [reading], list(range(reading.inputs))
        self._has_names = names
        #: Names and edges of each generation of each file.
        self._generations: dict[tuple[int, int], tuple[list[Any], list[Any]]] = {}
        #: The file and the edges of each generation; and the tasks to come that replace numbers.
        self._edges: list[tuple[int, list[Any]]] = []
        self._numbered: list[tuple[int, tuple[Any, ...]]] = []
        #: The batches of each file, until they are mapped for the last time, and ids by range.
        self._of_file: dict[int, list[Any]] = {}
        self._batches: list[tuple[int, Any]] = []
        self._ids: dict[int, list[Any]] = {}
        self._numbering: list[Tasks] = []
        self._ranking: list[Tasks] = []
        self._mapping: list[Tasks] = []
        self._refusal: StoreIoError | None = None

    def next(self, seconds: float) -> list[tuple[int, Any]] | None:
        """Return the last message of a file, with its number; None if none came, empty at the end.

        Raises:
            BrimfulError: The error of the first file that has one.
        """
        if self._numbered:
            self._files = [file for file, _ in self._numbered]
            inputs = [given for _, given in self._numbered]
            names = [f"replaces the numbers of generation {at}" for at in range(len(inputs))]
            self._reading.append(Tasks(_replaced, inputs, names, self._at_once))
            self._edges, self._numbered, self._has_names = [], [], False
        ended = self._reading[-1].kept(seconds)
        if not ended:
            if ended is not None:
                files = sorted(self._of_file.items())
                self._batches = [(file, batch) for file, batches in files for batch in batches]
                self._of_file.clear()
            return ended
        ((number, items),) = ended
        file = self._files[number]
        ends = [reference for label, reference in items if label == _END]
        for label, reference in items:
            if label == _BATCH:
                self._of_file.setdefault(file, []).append(reference)
            elif label >= _RANGES and self._has_names:
                generation, is_edges = divmod(label - _RANGES, 2)
                kept = self._generations.setdefault((file, generation), ([], []))
                kept[is_edges].append(reference)
            elif label >= _RANGES:
                self._ids.setdefault(label - _RANGES, []).append(reference)
        return [(file, self._reading[-1].fetched(number, end)) for end in ends]

    def names(self) -> _Names:
        """Return the names of all generations, file by file."""
        generations = sorted(self._generations.items())
        self._generations.clear()
        self._edges = [(file, edges) for (file, _), (_, edges) in generations]
        names = [(file, names) for (file, _), (names, _) in generations]
        return _Names(self._reading[0], names)

    def number(self, task: bytes) -> _Numbers:
        """Begin to number the ids of all batches, which are not needed again."""
        inputs = [(task, group, self._task_budget) for group in self._groups()]
        names = [f"numbers the ids of part {number} of the edges" for number in range(len(inputs))]
        self._batches, self._ids = [], {}
        self._numbering.append(Tasks(_numbered_ids, inputs, names, self._at_once))
        return _Numbers(self._numbering[-1], self._edges)

    def replace(self, task: bytes, generation: int, table: memoryview) -> None:
        """Prepare a task that replaces the numbers of a generation by the entries of a table.

        Raises:
            StoreIoError: Ray's object store has no room.
        """
        file, edges = self._edges[generation]
        given = (task, self._put(table, "ids of numbers"), edges, self._task_budget)
        self._numbered.append((file, given))

    def _groups(self) -> list[list[tuple[int, Any]]]:
        """Return the batches in groups, one for each task."""
        most = -(-len(self._batches) // (_TASKS_AT_ONCE * self._at_once))
        each = max(1, min(most, _BATCHES_OF_TASK))
        return [self._batches[at : at + each] for at in range(0, len(self._batches), each)]

    def _put(self, view: memoryview, noun: str) -> Any:
        try:
            return put(view, noun)
        except StoreIoError as error:
            self._refusal = error
            raise

    def batches(self) -> int:
        """Return the number of batches."""
        return len(self._batches)

    def rank(self, task: bytes, declared: Sequence[int]) -> _Ranks:
        """Begin to rank the ids of each range; those of `declared` have ids apart from edges."""
        ids, self._ids = self._ids, {}
        ranges = sorted({*ids, *declared})
        inputs = [(task, number, ids.get(number, []), self._task_budget) for number in ranges]
        names = [f"ranks the ids of range {number}" for number in ranges]
        self._ranking.append(Tasks(_ranks, inputs, names, self._at_once))
        return _Ranks(self._ranking[-1], ranges)

    def map(self, task: bytes, slots: memoryview, lines: memoryview, last: bool) -> _Records:
        """Begin to map all batches by a table of ranks; `last`: they are not needed again."""
        table = [self._put(part, "ranks of ids") for part in (slots, lines)]
        groups = self._groups()
        if last:
            self._batches = []
        inputs = [(task, *table, group, self._task_budget) for group in groups]
        names = [f"maps part {number} of the edges" for number in range(len(groups))]
        self._mapping.append(Tasks(_records, inputs, names, self._at_once))
        return _Records(self._mapping[-1], self._sorters)

    def parts(self) -> int:
        """Return the most parts into which the records of edges are divided."""
        return self._sorters.parts

    def sort(self, task: bytes, parts: int) -> Sorted:
        """Begin to sort the records of each part that were mapped since the last call."""
        return self._sorters.sort(task, parts)

    def end(self) -> None:
        """End all tasks at once, and forget the edges."""
        for tasks in self._all():
            tasks.end()
        self._generations, self._edges, self._numbered = {}, [], []
        self._of_file, self._batches, self._ids = {}, [], {}

    def _all(self) -> list[Tasks]:
        return [*self._reading, *self._numbering, *self._ranking, *self._mapping]

    @property
    def failure(self) -> BaseException | None:
        """The error of a task, if there was one."""
        failures = (one.failure for one in self._all())
        return next((failure[1] for failure in failures if failure is not None), self._refusal)

    def figures(self) -> dict[str, Any]:
        """Return the figures of the tasks."""
        ranking = [*self._reading[1:], *self._numbering, *self._ranking]
        kinds = {"ranking": ranking, "mapping": self._mapping}
        kept = {name: _figures(tasks) for name, tasks in kinds.items()}
        return _figures(self._reading[:1]) | kept


class _Names:
    """The names of all generations."""

    def __init__(self, tasks: Tasks, names: list[tuple[int, list[Any]]]) -> None:
        self._tasks = tasks
        #: The generation, the file and the reference of each piece, the last one first.
        self._left = [
            (generation, file, piece)
            for generation, (file, pieces) in enumerate(names)
            for piece in pieces
        ][::-1]

    def next(self, seconds: float) -> list[tuple[int, Any]]:
        """Return the next piece with the number of its generation; empty at the end.

        Raises:
            BrimfulError: The piece is lost.
        """
        if not self._left:
            return []
        generation, file, piece = self._left.pop()
        return [(generation, self._tasks.fetched(file, piece))]


class _Numbers:
    """The messages of the tasks that number ids, whose edges are kept by generation."""

    def __init__(self, tasks: Tasks, edges: list[tuple[int, list[Any]]]) -> None:
        self._tasks, self._edges = tasks, edges
        #: The generation, the task and the reference of each message that has come.
        self._come: list[tuple[int, int, Any]] = []

    def next(self, seconds: float) -> list[tuple[int, Any]] | None:
        """Return the ids of the next generation with its number.

        None: none came in that time; empty: there are no more.

        Raises:
            BrimfulError: The error of a task.
        """
        if not self._come:
            ended = self._tasks.kept(seconds)
            if not ended:
                return ended
            ((task, items),) = ended
            for label, reference in items:
                # The ids of a generation come before its edges, whose positions are those of all
                # files.
                if (label - _RANGES) % 2 == 0:
                    self._come.append((len(self._edges), task, reference))
                    self._edges.append((0, []))
                else:
                    self._edges[-1][1].append(reference)
        generation, task, reference = self._come.pop(0)
        return [(generation, self._tasks.fetched(task, reference))]


class _Ranks:
    """The messages of the tasks that rank ids."""

    def __init__(self, tasks: Tasks, ranges: Sequence[int]) -> None:
        self._tasks, self._ranges = tasks, ranges

    def next(self, seconds: float) -> list[tuple[int, Any]] | None:
        """Return the ranks of a range with its number; None if none came, empty at the end.

        Raises:
            BrimfulError: The error of a task.
        """
        messages = self._tasks.message(seconds)
        if not messages:
            return messages
        ((at, message),) = messages
        return [(self._ranges[at], message)]


class _Records:
    """The counts of the tasks that map edges, whose records go to those that sort."""

    def __init__(self, tasks: Tasks, sorters: Sorting) -> None:
        self._tasks, self._sorters = tasks, sorters

    def next(self, seconds: float) -> list[tuple[int, Any]] | None:
        """Return the counts of a task with its number; None if none came, empty at the end.

        Raises:
            BrimfulError: The error of a task.
        """
        ended = self._tasks.kept(seconds)
        if not ended:
            return ended
        (number, items) = ended[0]
        *records, (_, counts) = items
        for part, reference in records:
            self._sorters.add(part, reference)
        return [(number, self._tasks.fetched(number, counts))]


def _figures(tasks: Sequence[Tasks]) -> dict[str, Any]:
    return {
        "bytes_received": sum(one.bytes_received for one in tasks),
        "wait_seconds": sum(one.wait_seconds for one in tasks),
    }


def _numbered_ids(task: bytes, batches: list[tuple[int, Any]], budget: TaskBudget) -> Any:
    """Yield the messages of the generations of batches, then their labels, or the error."""
    from brimful import _native

    def number(send: Any) -> None:
        _native.number_ids(task, _each_batch(batches), send, budget=budget.bytes())

    yield from labelled(number)


def _replaced(task: bytes, table: Any, batches: list[Any], budget: TaskBudget) -> Any:
    """Yield the messages of a generation by other ids, then their labels, or the error."""
    from brimful import _native

    def replace(send: Any) -> None:
        _native.replace_numbers(task, table, each(batches), send, budget=budget.bytes())

    yield from labelled(replace)


def _ranks(task: bytes, number: int, ids: list[Any], budget: TaskBudget) -> Any:
    """Yield the ranks of the ids of a range; after a failure, the error."""
    from brimful import _native

    def rank(send: Any) -> None:
        send(_native.rank_range(task, number, each(ids), budget=budget.bytes()))

    yield from sent_by(rank)


def _records(
    task: bytes, slots: Any, lines: Any, batches: list[tuple[int, Any]], budget: TaskBudget
) -> Any:
    """Yield the records of batches by part, and their counts; after a failure, the error last."""
    from brimful import _native

    def map_all(send: Any) -> None:
        memory, left = budget.bytes(), _each_batch(batches)
        send(_COUNTS, _native.map_edges(task, slots, lines, left, send, budget=memory))

    yield from labelled(map_all)


def _each_batch(batches: list[tuple[int, Any]]) -> Callable[[], tuple[int, Any] | None]:
    """Return a function that fetches one batch after the other with its file, then returns None."""
    import ray

    left = iter(batches)

    def fetch() -> tuple[int, Any] | None:
        file, reference = next(left, (0, None))
        return None if reference is None else (file, ray.get(reference))

    return fetch
