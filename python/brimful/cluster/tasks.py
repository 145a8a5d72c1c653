"""Tasks of a Ray cluster that work for an import: each yields items, which the import takes in.

Ray places the tasks, keeps their items until they are taken in, and repeats lost tasks. Invariant:
the items of a task depend on its input alone, so that a repeated task continues where the lost one
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
from brimful.cluster.exchange import first_line, lost, with_place
from brimful.errors import StoreIoError, UsageError

#: The most messages that wait between the native module and Ray.
_QUEUED = 2


@dataclass(frozen=True)
class TaskBudget:
    """The budget of a task in bytes, and the version of brimful that chose it.

    The importing process chooses it once: items of a task, such as generations of ids, depend on
    the budget, and a task that is repeated later or elsewhere must yield the same items.
    """

    budget: int
    version: str

    def bytes(self) -> int:
        """Return the budget, in bytes.

        Raises:
            UsageError: Another version of brimful is installed here.
        """
        from brimful import __version__

        if self.version != __version__:
            raise UsageError(
                f"brimful {__version__} is installed on {os.uname().nodename}, and {self.version} "
                "where the import runs; install the same version on all nodes"
            )
        return self.budget


class Tasks:
    """Tasks that do the same work on several inputs, begun in the order of these."""

    def __init__(
        self,
        work: Callable[..., Iterator[Any]],
        inputs: Sequence[tuple[Any, ...]],
        names: Sequence[str],
        at_once: int,
    ) -> None:
        """Plan tasks that call `work` with the elements of their inputs; `begin` begins them.

        `names` describe the work of each, for messages. At most `at_once` run at a time.
        """
        import ray

        self._task = ray.remote(work).options(
            num_cpus=1, num_returns="streaming", max_retries=MAX_RESTARTS
        )
        self._inputs, self._names, self._at_once = list(inputs), names, at_once
        self._begun = 0
        #: The running tasks, each with the number of its input.
        self.running: list[tuple[Any, int]] = []
        #: The error of the first input that has one, and its number.
        self.failure: tuple[int, BaseException] | None = None
        #: References to the items of each running task that keeps them.
        self._references: dict[int, list[Any]] = {}
        self.wait_seconds, self.bytes_received = 0.0, 0

    @property
    def inputs(self) -> int:
        """The number of inputs."""
        return len(self._inputs)

    def begin(self) -> None:
        """Begin as many tasks as may run."""
        while (
            len(self.running) < self._at_once
            and self._begun < len(self._inputs)
            and self.failure is None
        ):
            task = self._task.remote(*self._inputs[self._begun])
            self.running.append((task, self._begun))
            # Ray keeps the objects in it for as long as it needs them.
            self._inputs[self._begun] = ()
            self._begun += 1

    def message(self, seconds: float, *, in_order: bool = False) -> list[tuple[int, Any]] | None:
        """Return the next item with the number of its input; None if none came, empty at the end.

        Items come in any order of inputs, or in theirs.

        Raises:
            BrimfulError: The error of the first input that has one.
        """
        while self._are_running():
            found = self._reference(seconds, in_order=in_order)
            if found is None:
                return None
            for item in self._value(*found):
                return [(found[0], item)]
        return []

    def kept(self, seconds: float) -> list[tuple[int, list[tuple[int, Any]]]] | None:
        """Return the number of an input whose task has ended, and references to its items.

        The last item of a task has the labels of the others, which come with them. None: no task
        has ended in that time; empty: all have.

        Raises:
            BrimfulError: The error of the first input that has one.
        """
        deadline = time.monotonic() + seconds
        while self._are_running():
            found = self._reference(max(0.0, deadline - time.monotonic()), in_order=False)
            if found is None:
                return None
            number, reference = found
            if reference is not None:
                self._references.setdefault(number, []).append(reference)
                continue
            *references, last = self._references.pop(number)
            for labels in self._value(number, last):
                return [(number, list(zip(labels.tolist(), references, strict=True)))]
        return []

    def fetched(self, number: int, reference: Any) -> Any:
        """Return a kept item of an input.

        Raises:
            BrimfulError: It is lost.
        """
        for item in self._value(number, reference):
            return item
        assert self.failure is not None
        raise self.failure[1]

    def _are_running(self) -> bool:
        """Begin as many tasks as may run, and return whether any runs.

        Raises:
            BrimfulError: No task runs, and an input has an error.
        """
        self.begin()
        if not self.running and self.failure is not None:
            raise self.failure[1]
        return bool(self.running)

    def _reference(self, seconds: float, *, in_order: bool) -> tuple[int, Any] | None:
        """Return the number of an input and a reference to an item of its task, None at its end.

        None: no item is ready.
        """
        import ray

        candidates = self.running[:1] if in_order else self.running
        begin = time.perf_counter()
        ready, _ = ray.wait([task for task, _ in candidates], num_returns=1, timeout=seconds)
        self.wait_seconds += time.perf_counter() - begin
        if not ready:
            return None
        place = next(at for at, (task, _) in enumerate(candidates) if task is ready[0])
        task, number = self.running.pop(place)
        try:
            reference = next(task)
        except StopIteration:
            return number, None
        # In any order, the task goes to the end of the list, so that others are served first.
        self.running.insert(0 if in_order else len(self.running), (task, number))
        return number, reference

    def _value(self, number: int, reference: Any) -> tuple[Any, ...]:
        """Return a tuple with an item of an input, empty at the end of its task and after an error.

        An error is kept, and ends the tasks of later inputs.
        """
        import ray

        if reference is None:
            return ()
        begin = time.perf_counter()
        try:
            item = ray.get(reference)
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

    def end(self) -> None:
        """End all tasks at once."""
        import ray

        for task, _ in self.running:
            ray.cancel(task, force=True)
        self.running.clear()


def put(view: memoryview, noun: str) -> Any:
    """Return a reference to a copy of bytes in Ray's object store; `noun` names them.

    Raises:
        StoreIoError: The store has no room.
    """
    import numpy as np
    import ray

    try:
        return ray.put(np.frombuffer(view, dtype=np.uint8))
    except (OSError, ray.exceptions.RayError) as error:
        raise StoreIoError(
            f"Ray's object store has no room for the {noun}: {first_line(error)}; give the store "
            "more memory, or more disk space for spilled objects"
        ) from None


def each(references: list[Any]) -> Callable[[], Any | None]:
    """Return a function that fetches one object after the other, then returns None."""
    import ray

    left = iter(references)

    def fetch() -> Any | None:
        reference = next(left, None)
        return None if reference is None else ray.get(reference)

    return fetch


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


def labelled(work: Callable[[Callable[[int, bytes], None]], object]) -> Iterator[Any]:
    """Yield the messages that `work` sends, then their labels; after a failure, the error last."""
    import numpy as np

    labels: list[int] = []

    def send_all(send: Callable[[bytes], object]) -> None:
        def send_one(label: int, message: bytes) -> None:
            labels.append(label)
            send(message)

        work(send_one)

    for item in sent_by(send_all):
        yield item
        if isinstance(item, BaseException):
            return
    yield np.array(labels, dtype=np.int64)


def task_error(error: BaseException) -> BaseException:
    """Return an error of this task for the import."""
    return with_place(error, f"a task on {os.uname().nodename}")
