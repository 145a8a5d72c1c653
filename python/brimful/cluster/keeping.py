"""Edges of an import that stay with the tasks of a Ray cluster which read them.

A task reads a file, and leaves its edges in Ray's object store. Tasks rank the ids of the files,
one range of ids each; tasks map the edges by these ranks, and pass them on to the tasks that sort.
The importing process takes in ids and counts alone. Of strings it takes in the names that each
file has, and ranks them; tasks then keep the edges by rank, as if they had read integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from brimful.cluster.sorting import Sorting
from brimful.cluster.tasks import Share, Tasks, each, labelled, put, sent_by
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
        self, reading: Tasks, share: Share, at_once: int, sorters: Sorting, *, names: bool
    ) -> None:
        """Let tasks read files; other tasks pass the edges on to those of `sorters`.

        `names`: ids are strings, whose edges other tasks keep again by rank.
        """
        self._share, self._at_once, self._sorters = share, at_once, sorters
        #: The tasks that read files, and those that replace numbers by ranks, if ids are strings;
        #: and the file of each input of the latest ones.
        self._reading, self._files = [reading], list(range(reading.inputs))
        self._has_names = names
        #: Names and edges of each generation of each file.
        self._generations: dict[tuple[int, int], tuple[list[Any], list[Any]]] = {}
        #: The file and the edges of each generation; and the tasks to come that rank them.
        self._edges: list[tuple[int, list[Any]]] = []
        self._unranked: list[tuple[int, tuple[Any, ...]]] = []
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
        if self._unranked:
            self._files = [file for file, _ in self._unranked]
            inputs = [given for _, given in self._unranked]
            names = [f"ranks the names of file {file}" for file in self._files]
            self._reading.append(Tasks(_ranked_names, inputs, names, self._at_once))
            self._edges, self._unranked, self._has_names = [], [], False
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

    def rank_names(self, task: bytes, generation: int, table: memoryview) -> None:
        """Prepare tasks that replace the numbers of a generation by the ranks of a table.

        Raises:
            StoreIoError: Ray's object store has no room.
        """
        file, edges = self._edges[generation]
        given = (task, self._put(table, "ranks of names"), edges, self._share)
        self._unranked.append((file, given))

    def _put(self, view: memoryview, noun: str) -> Any:
        try:
            return put(view, noun)
        except StoreIoError as error:
            self._refusal = error
            raise

    def batches(self) -> int:
        """Return the number of batches."""
        return len(self._batches)

    def batch(self, at: int) -> tuple[int, Any]:
        """Return the number of a file, and a batch of it.

        Raises:
            WorkerLostError: The batch is lost.
        """
        file, reference = self._batches[at]
        return file, self._reading[0].fetched(file, reference)

    def rank(self, task: bytes, declared: Sequence[int]) -> _Ranks:
        """Begin to rank the ids of each range; those of `declared` have ids apart from edges."""
        ids, self._ids = self._ids, {}
        ranges = sorted({*ids, *declared})
        inputs = [(task, number, ids.get(number, []), self._share) for number in ranges]
        names = [f"ranks the ids of range {number}" for number in ranges]
        self._ranking.append(Tasks(_ranks, inputs, names, self._at_once))
        return _Ranks(self._ranking[-1], ranges)

    def map(self, task: bytes, slots: memoryview, lines: memoryview, last: bool) -> _Records:
        """Begin to map all batches by a table of ranks; `last`: they are not needed again."""
        table = [self._put(part, "ranks of ids") for part in (slots, lines)]
        most = -(-len(self._batches) // (_TASKS_AT_ONCE * self._at_once))
        each = max(1, min(most, _BATCHES_OF_TASK))
        groups = [self._batches[at : at + each] for at in range(0, len(self._batches), each)]
        if last:
            self._batches = []
        inputs = [(task, *table, group, self._share) for group in groups]
        names = [f"maps part {number} of the edges" for number in range(len(groups))]
        self._mapping.append(Tasks(_records, inputs, names, self._at_once))
        return _Records(self._mapping[-1], self._sorters)

    def end(self) -> None:
        """End all tasks at once, and forget the edges."""
        for tasks in self._all():
            tasks.end()
        self._generations, self._edges, self._unranked = {}, [], []
        self._of_file, self._batches, self._ids = {}, [], {}

    def _all(self) -> list[Tasks]:
        return [*self._reading, *self._ranking, *self._mapping]

    @property
    def failure(self) -> BaseException | None:
        """The error of a task, if there was one."""
        failures = (one.failure for one in self._all())
        return next((failure[1] for failure in failures if failure is not None), self._refusal)

    def figures(self) -> dict[str, Any]:
        """Return the figures of the tasks."""
        ranking = [*self._reading[1:], *self._ranking]
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


def _ranked_names(task: bytes, table: Any, batches: list[Any], share: Share) -> Any:
    """Yield the messages of a generation by rank, then their labels, or the error."""
    from brimful import _native

    def rank(send: Any) -> None:
        _native.rank_names(task, table, each(batches), send, budget=share.budget_bytes())

    yield from labelled(rank)


def _ranks(task: bytes, number: int, ids: list[Any], share: Share) -> Any:
    """Yield the ranks of the ids of a range; after a failure, the error."""
    from brimful import _native

    def rank(send: Any) -> None:
        send(_native.rank_range(task, number, each(ids), budget=share.budget_bytes()))

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
