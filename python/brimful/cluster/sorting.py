"""Edges of an import that the tasks of a Ray cluster sort into shards.

Tasks that map edges leave the records of each part in Ray's object store. A task sorts a part
within a budget of its own, and yields its shards, which the importing process writes in the order
of the parts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from brimful.cluster.tasks import TaskBudget, Tasks, each, sent_by

#: Parts for each task that runs at a time, so that unequal parts keep all tasks at work.
_PARTS_OF_TASK = 4


class Sorting:
    """The tasks that sort edges, as the native module takes them."""

    def __init__(self, budget: TaskBudget, at_once: int) -> None:
        """Sort on a cluster, in at most `at_once` tasks at a time, each with a share of memory."""
        self._task_budget, self._at_once = budget, at_once
        #: The most parts into which edges are divided.
        self.parts = _PARTS_OF_TASK * at_once
        #: References to the records of each part.
        self._records: dict[int, list[Any]] = {}
        self._indexes: list[Sorted] = []

    def add(self, part: int, reference: Any) -> None:
        """Keep a reference to records of a part."""
        self._records.setdefault(part, []).append(reference)

    def sort(self, task: bytes, parts: int) -> Sorted:
        """Begin to sort the records that were added since the last call."""
        added, self._records = self._records, {}
        records = [added.get(part, []) for part in range(parts)]
        self._indexes.append(Sorted(records, task, self._task_budget, self._at_once))
        return self._indexes[-1]

    def end(self) -> None:
        """End all tasks at once, and forget the records."""
        self._records.clear()
        for index in self._indexes:
            index.tasks.end()

    @property
    def failure(self) -> BaseException | None:
        """The error that ended the sorting, if there was one."""
        failures = (index.tasks.failure for index in self._indexes)
        return next((failure[1] for failure in failures if failure is not None), None)

    def figures(self) -> dict[str, Any]:
        """Return the figures of the tasks."""
        tasks = [index.tasks for index in self._indexes]
        return {
            "bytes_received": sum(one.bytes_received for one in tasks),
            "wait_seconds": sum(one.wait_seconds for one in tasks),
        }


class Sorted:
    """The messages of the tasks that sort the parts of one index."""

    def __init__(
        self, records: list[list[Any]], task: bytes, budget: TaskBudget, at_once: int
    ) -> None:
        """Begin the first tasks."""
        inputs = [(task, of_part, budget) for of_part in records]
        names = [f"sorts part {part} of the edges" for part in range(len(records))]
        # Shards are so much smaller than the records that the object store has room for all.
        self.tasks = Tasks(_segments, inputs, names, at_once)
        self.tasks.begin()

    def next(self, seconds: float) -> list[tuple[int, Any]] | None:
        """Return the next message with the number of its part; None if none came, empty at the end.

        Raises:
            BrimfulError: The error of a task.
        """
        return self.tasks.message(seconds, in_order=True)


def _segments(task: bytes, records: list[Any], budget: TaskBudget) -> Iterator[Any]:
    """Yield the messages of a part; after a failure, the last item is the error."""
    from brimful import _native

    def sort(send: Callable[[bytes], object]) -> None:
        folder, memory = tempfile.gettempdir(), budget.bytes()
        _native.sort_part(task, each(records), send, folder=folder, budget=memory)

    yield from sent_by(sort)
