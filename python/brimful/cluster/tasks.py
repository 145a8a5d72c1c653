"""Tasks of a Ray cluster that work for an import: each yields items, which the import takes in.

Ray places the tasks, keeps them from running too far ahead, and repeats lost ones. Invariant: the
items of a task depend on its input alone, so that a repeated task continues where the lost one
stopped.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from brimful.cluster.driver import MAX_RESTARTS
from brimful.cluster.exchange import lost, placed
from brimful.errors import UsageError
from brimful.memory import budget_bytes

#: The most messages that wait between the native module and Ray.
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


class Tasks:
    """Tasks that do the same work on several inputs, begun in the order of these."""

    def __init__(
        self,
        work: Callable[..., Iterator[Any]],
        inputs: Sequence[tuple[Any, ...]],
        names: Sequence[str],
        at_once: int,
        ahead: int | None,
    ) -> None:
        """Plan tasks that call `work` with the elements of their inputs; `begin` begins them.

        `names` describe the work of each, for messages. At most `at_once` run at a time; each is at
        most `ahead` items before the import (None: any number).
        """
        import ray

        options = {} if ahead is None else {"_generator_backpressure_num_objects": ahead}
        self._task = ray.remote(work).options(
            num_cpus=1, num_returns="streaming", max_retries=MAX_RESTARTS, **options
        )
        self._inputs, self._names, self._at_once = inputs, names, at_once
        self._begun = 0
        #: The running tasks, each with the number of its input.
        self.running: list[tuple[Any, int]] = []
        #: The error of the first input that has one, and its number.
        self.failure: tuple[int, BaseException] | None = None
        self.wait_seconds, self.bytes_received = 0.0, 0

    def begin(self) -> None:
        """Begin as many tasks as may run."""
        while (
            len(self.running) < self._at_once
            and self._begun < len(self._inputs)
            and self.failure is None
        ):
            task = self._task.remote(*self._inputs[self._begun])
            self.running.append((task, self._begun))
            self._begun += 1

    def item(self, task: Any, number: int, seconds: float | None) -> tuple[Any, ...] | None:
        """Return a tuple with the next item of a task, empty at its end; None if no item is ready.

        An error is kept, and ends the tasks of later inputs.
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
            item = lost(f"the task that {self._names[number]}", error)
        finally:
            self.wait_seconds += time.perf_counter() - begin
        if not isinstance(item, BaseException):
            self.bytes_received += item.nbytes
            return (item,)
        if self.failure is None or number < self.failure[0]:
            self.failure = number, item
        for later, at in self.running:
            if at > number:
                ray.cancel(later, force=True)
        self.running = [(other, at) for other, at in self.running if at < number]
        return ()

    def first_item(self, seconds: float | None) -> tuple[Any, ...] | None:
        """Return `item` of the first running task, which is over at its end.

        Raises:
            BrimfulError: The error of an input.
        """
        self.begin()
        item = self.item(*self.running[0], seconds)
        if self.failure is not None:
            raise self.failure[1]
        if item == ():
            self.running.pop(0)
        return item

    def end(self) -> None:
        """End all tasks at once."""
        import ray

        for task, _ in self.running:
            ray.cancel(task, force=True)
        self.running.clear()


def sent_by(work: Callable[[Callable[[bytes], object]], object]) -> Iterator[Any]:
    """Yield the messages that `work` sends; after a failure, the last item is the error."""
    import numpy as np

    messages: queue.Queue[bytes | BaseException | None] = queue.Queue(_QUEUED)

    def send_all() -> None:
        end = None
        try:
            work(messages.put)
        except BaseException as error:  # noqa: BLE001 - it is raised again by the import
            end = task_error(error)
        messages.put(end)

    threading.Thread(target=send_all, name="brimful-task", daemon=True).start()
    while isinstance(message := messages.get(), bytes):
        # Ray lets the reader map an array without a copy.
        yield np.frombuffer(message, dtype=np.uint8)
    if message is not None:
        yield message


def task_error(error: BaseException) -> BaseException:
    """Return an error of this task for the import."""
    return placed(error, f"a task on {os.uname().nodename}")
