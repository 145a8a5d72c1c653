"""Edges of an import that stay with the tasks of a Ray cluster which read them.

A task reads a file, and leaves its edges in Ray's object store. Tasks rank the ids of the files,
one range of ids each; tasks map the edges by these ranks, and pass them on to the tasks that sort.
The importing process takes in ids and counts alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from brimful.cluster.sorting import Sorting
from brimful.cluster.tasks import Share, Tasks, labelled, put, sent_by
from brimful.errors import StoreIoError

#: The labels of the messages of a file, as the native module has them.
_BATCH, _END, _RANGES = 0, 1, 2
#: The label of the counts of mapped edges; other messages have the number of their part.
_COUNTS = -1
#: The most batches that a task maps, and tasks for each that runs at a time, if there are fewer.
_BATCHES_OF_TASK, _TASKS_AT_ONCE = 64, 4


class Keeping:
    """The tasks that keep edges, rank ids and map edges, as the native module takes them."""

    def __init__(self, reading: Tasks, share: Share, at_once: int, sorters: Sorting) -> None:
        """Let tasks read files; other tasks pass the edges on to those of `sorters`."""
        self._reading, self._share, self._at_once = reading, share, at_once
        self._sorters = sorters
        #: The batches of each file, until they are mapped for the last time, and ids by range.
        self._of_file: dict[int, list[Any]] = {}
        self._batches: list[tuple[int, Any]] = []
        self._ids: dict[int, list[Any]] = {}
        self._ranking: list[Tasks] = []
        self._mapping: list[Tasks] = []
        self._refusal: StoreIoError | None = None

    def next(self, seconds: float) -> list[tuple[int, Any]] | None:
        """Return the last message of a file, with its number; None if none came, empty at the end.

        Raises:
            BrimfulError: The error of the first file that has one.
        """
        ended = self._reading.kept(seconds)
        if not ended:
            if ended is not None:
                files = sorted(self._of_file.items())
                self._batches = [(file, batch) for file, batches in files for batch in batches]
                self._of_file.clear()
            return ended
        (file, items) = ended[0]
        for label, reference in items:
            if label >= _RANGES:
                self._ids.setdefault(label - _RANGES, []).append(reference)
        self._of_file[file] = [reference for label, reference in items if label == _BATCH]
        ends = (reference for label, reference in items if label == _END)
        return [(file, self._reading.fetched(file, end)) for end in ends]

    def batches(self) -> int:
        """Return the number of batches."""
        return len(self._batches)

    def batch(self, at: int) -> tuple[int, Any]:
        """Return the number of a file, and a batch of it.

        Raises:
            WorkerLostError: The batch is lost.
        """
        file, reference = self._batches[at]
        return file, self._reading.fetched(file, reference)

    def rank(self, task: bytes, declared: Sequence[int]) -> _Ranks:
        """Begin to rank the ids of each range; those of `declared` have ids apart from edges."""
        ids, self._ids = self._ids, {}
        ranges = sorted({*ids, *declared})
        of_range = [ids.get(number, []) for number in ranges]
        pairs = zip(ranges, of_range, strict=True)
        inputs = [(task, number, references, self._share) for number, references in pairs]
        names = [f"ranks the ids of range {number}" for number in ranges]
        self._ranking.append(Tasks(_ranks, inputs, names, self._at_once, None))
        return _Ranks(self._ranking[-1], ranges, of_range)

    def map(self, task: bytes, slots: memoryview, lines: memoryview, last: bool) -> _Records:
        """Begin to map all batches by a table of ranks; `last`: they are not needed again."""
        try:
            table = [put(part, "ranks of ids") for part in (slots, lines)]
        except StoreIoError as error:
            self._refusal = error
            raise
        most = -(-len(self._batches) // (_TASKS_AT_ONCE * self._at_once))
        each = max(1, min(most, _BATCHES_OF_TASK))
        groups = [self._batches[at : at + each] for at in range(0, len(self._batches), each)]
        if last:
            self._batches = []
        inputs = [(task, *table, group, self._share) for group in groups]
        names = [f"maps part {number} of the edges" for number in range(len(groups))]
        self._mapping.append(Tasks(_records, inputs, names, self._at_once, None))
        return _Records(self._mapping[-1], groups, self._sorters)

    def end(self) -> None:
        """End all tasks at once, and forget the edges."""
        for tasks in (self._reading, *self._ranking, *self._mapping):
            tasks.end()
        for kept in (self._of_file, self._batches, self._ids):
            kept.clear()

    @property
    def failure(self) -> BaseException | None:
        """The error of a task, if there was one."""
        failures = (one.failure for one in (self._reading, *self._ranking, *self._mapping))
        return next((failure[1] for failure in failures if failure is not None), self._refusal)

    def figures(self) -> dict[str, Any]:
        """Return the figures of the tasks that rank and map."""
        kinds = {"ranking": self._ranking, "mapping": self._mapping}
        return {name: _figures(tasks) for name, tasks in kinds.items()}


class _Ranks:
    """The messages of the tasks that rank ids."""

    def __init__(self, tasks: Tasks, ranges: Sequence[int], ids: Sequence[list[Any]]) -> None:
        self._tasks, self._ranges, self._ids = tasks, ranges, ids

    def next(self, seconds: float) -> list[tuple[int, Any]] | None:
        """Return the ranks of a range with its number; None if none came, empty at the end.

        Raises:
            BrimfulError: The error of a task.
        """
        messages = self._tasks.message(seconds)
        if not messages:
            return messages
        ((at, message),) = messages
        # Ray may free the ids.
        self._ids[at].clear()
        return [(self._ranges[at], message)]


class _Records:
    """The counts of the tasks that map edges, whose records go to those that sort."""

    def __init__(self, tasks: Tasks, groups: list[list[Any]], sorters: Sorting) -> None:
        self._tasks, self._groups, self._sorters = tasks, groups, sorters

    def next(self, seconds: float) -> list[tuple[int, Any]] | None:
        """Return the counts of a task with its number; None if none came, empty at the end.

        Raises:
            BrimfulError: The error of a task.
        """
        ended = self._tasks.kept(seconds)
        if not ended:
            return ended
        (number, items) = ended[0]
        # Ray may free batches that are not needed again.
        self._groups[number].clear()
        *records, (_, counts) = items
        for part, reference in records:
            self._sorters.add(part, reference)
        return [(number, self._tasks.fetched(number, counts))]


def _figures(tasks: Sequence[Tasks]) -> dict[str, Any]:
    return {
        "bytes_received": sum(one.bytes_received for one in tasks),
        "wait_seconds": sum(one.wait_seconds for one in tasks),
    }


def _ranks(task: bytes, number: int, ids: list[Any], share: Share) -> Any:
    """Yield the ranks of the ids of a range; after a failure, the error."""
    import ray

    from brimful import _native

    left = iter(ids)

    def next_ids() -> Any | None:
        reference = next(left, None)
        return None if reference is None else ray.get(reference)

    def rank(send: Any) -> None:
        send(_native.rank_range(task, number, next_ids, budget=share.budget_bytes()))

    yield from sent_by(rank)


def _records(
    task: bytes, slots: Any, lines: Any, batches: list[tuple[int, Any]], share: Share
) -> Any:
    """Yield the records of batches by part, and their counts; after a failure, the error last."""
    import ray

    from brimful import _native

    left = iter(batches)

    def next_batch() -> tuple[int, Any] | None:
        for file, reference in left:
            return file, ray.get(reference)
        return None

    def map_all(send: Any) -> None:
        budget = share.budget_bytes()
        send(_COUNTS, _native.map_edges(task, slots, lines, next_batch, send, budget=budget))

    yield from labelled(map_all)
