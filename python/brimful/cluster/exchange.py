"""The exchange between the processes of a run: boards of messages, and waits for answers.

A process posts on its own board; the others ask for the board of each. Bytes thus travel once to
each reader, and the reader that waits notices that a process is slow or lost. Large parts are in
Ray's object store, where all readers of a node share one copy. If all processes are on one node,
the parts of supersteps are in memory that the processes share.
"""

from __future__ import annotations

import mmap
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from brimful.errors import BrimfulError, BudgetError, StoreIoError, UsageError, WorkerLostError

#: A part of a message: its bytes, a list of one reference to them, or a `Mapped`.
Part = Any

#: Larger parts go through the object store.
_INLINE_BYTES = 64 << 10


class PeerFailedError(Exception):
    """The run of a peer failed, or the peer was lost; its own error is the reason."""


class ProcessDone(Exception):
    """A worker has finished its part of a run; the native module raises it there."""

    def __init__(self, figures: dict[str, Any]) -> None:
        """Keep the figures of the worker."""
        super().__init__(figures)
        self.figures = figures


def first_line(error: BaseException) -> str:
    """Return the first line of the text of an error, or its class."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def last_line(error: BaseException) -> str:
    """Return the last line of the text of an error, or its class."""
    return (str(error).strip() or type(error).__name__).splitlines()[-1]


def lost(process: str, error: BaseException) -> BrimfulError:
    """Return the error of a process that Ray reports as failed."""
    cause = last_line(error)
    if cause.startswith(("ModuleNotFoundError:", "ImportError:")):
        return UsageError(
            f"{process} cannot load its code: {cause}; install the same version of brimful on all "
            "nodes"
        )
    return WorkerLostError(f"{process} was lost: {first_line(error)}")


def with_place(error: BaseException, place: str) -> BaseException:
    """Return an error of another process; the text of one about its machine begins with the place.

    Other errors, which would be the same on any machine, have the place as a note.
    """
    if type(error) is StoreIoError:
        return StoreIoError(f"{place}: {error}", error.errno)
    if type(error) is BudgetError:
        return BudgetError(f"{place}: {error}", error.needed_bytes)
    error.add_note(f"on {place}")
    return error


def _followed(error: Exception) -> Exception:
    return PeerFailedError(first_line(error))


class Mapped(NamedTuple):
    """A part in memory of a process on this node: the path to map, and the length."""

    path: str
    length: int


class Slots:
    """Memory for the parts of two supersteps, which the processes of this node can map.

    A process writes to a slot again when all others have posted the superstep in between, and so
    have read the slot: a part stays in place as long as it is needed. The memory has no name, and
    ends with its process. The run has reserved it from its budget.
    """

    def __init__(self, max_bytes: int) -> None:
        """Make two slots of at most `max_bytes` each; their pages take memory once written."""
        files = [os.memfd_create("brimful-exchange") for _ in range(2)]
        self.bytes = len(files) * max_bytes
        for file in files:
            os.ftruncate(file, max_bytes)
        self._slots = [(file, mmap.mmap(file, max_bytes)) for file in files]
        self._written = 0

    @staticmethod
    def are_possible() -> bool:
        """Return whether the system has memory that processes can map so."""
        return hasattr(os, "memfd_create")

    def write(self, part: memoryview) -> Mapped:
        """Copy the part of the next superstep; return its place."""
        file, mapped = self._slots[self._written % len(self._slots)]
        self._written += 1
        mapped[: len(part)] = part
        return Mapped(f"/proc/{os.getpid()}/fd/{file}", len(part))


class Views:
    """The slots of other processes, each mapped once."""

    def __init__(self) -> None:
        """Begin without any."""
        self._maps: dict[str, mmap.mmap] = {}

    def read(self, place: Mapped) -> memoryview:
        """Return the part at a place.

        Raises:
            OSError: Its process is lost.
        """
        mapped = self._maps.get(place.path)
        if mapped is None:
            file = os.open(place.path, os.O_RDONLY)
            try:
                mapped = self._maps[place.path] = mmap.mmap(file, 0, prot=mmap.PROT_READ)
            finally:
                os.close(file)
        return memoryview(mapped)[: place.length]


class Board:
    """The messages of this process by number, each kept until all its readers have read it."""

    def __init__(self) -> None:
        """Begin without messages."""
        self._changed = threading.Condition()
        self._posted: dict[int, tuple[tuple[Part, ...], int]] = {}
        self._is_failed = False

    def post(self, number: int, parts: Sequence[memoryview | Mapped], readers: int) -> None:
        """Post a copy of a message for `readers` readers.

        Raises:
            PeerFailedError: The object store of this node is lost.
        """
        import ray

        try:
            packed = tuple(map(_packed, parts))
        except (OSError, ray.exceptions.RayError) as error:
            raise PeerFailedError(first_line(error)) from None
        with self._changed:
            self._posted[number] = packed, readers
            self._changed.notify_all()

    def read(self, number: int, parts: Sequence[int]) -> tuple[Part, ...] | None:
        """Return some parts of a message, by their positions, once it is posted.

        None if this process failed before: Ray would print an exception that nobody reads.
        """
        with self._changed:
            self._changed.wait_for(lambda: number in self._posted or self._is_failed)
            if number not in self._posted:
                return None
            message, readers = self._posted.pop(number)
            if readers > 1:
                self._posted[number] = message, readers - 1
            return tuple(message[part] for part in parts)

    def fail(self) -> None:
        """Tell all readers that no message follows."""
        with self._changed:
            self._is_failed = True
            self._changed.notify_all()


def is_large(part: memoryview) -> bool:
    """Return whether a part is too large to be in the message itself."""
    return len(part) >= _INLINE_BYTES


def _packed(part: memoryview | Mapped) -> Part:
    if isinstance(part, Mapped):
        return part
    if not is_large(part):
        return bytes(part)
    import numpy as np
    import ray

    # Ray lets readers map an array without a copy.
    return [ray.put(np.frombuffer(part, dtype=np.uint8))]


class Tally:
    """The bytes and the waiting time of the exchange of one process."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self.bytes_sent = 0
        self.bytes_received = 0
        self.wait_seconds = 0.0


class Answers:
    """The answers of several processes to one question, as they arrive."""

    def __init__(
        self,
        asked: Sequence[Any | None],
        own: tuple[bytes, ...],
        tally: Tally,
        explain: Callable[[Exception], BaseException] = _followed,
        check: Callable[[], None] = lambda: None,
        views: Views | None = None,
    ) -> None:
        """Await `asked`: for each process a reference to its answer, or None for `own`.

        `explain` returns the error to raise in place of one that a reference holds; `check` raises
        an error if no answer can come any more.
        """
        self._answers: list[list[Part]] = [list(own) for _ in asked]
        # By reference: the index of its process, and the number of the part (None: all parts).
        self._awaited: dict[Any, tuple[int, int | None]] = {
            ref: (index, None) for index, ref in enumerate(asked) if ref is not None
        }
        self._width, self._tally = len(own), tally
        self._explain, self._check = explain, check
        self._views = Views() if views is None else views

    def wait(self, seconds: float) -> list[tuple[Part, ...]] | None:
        """Return the parts of each process, in order; None if some do not arrive in time."""
        import ray

        begin = time.perf_counter()
        while self._awaited:
            left = seconds - (time.perf_counter() - begin)
            ready, _ = ray.wait(list(self._awaited), num_returns=1, timeout=max(0.0, left))
            if not ready:
                self._tally.wait_seconds += time.perf_counter() - begin
                self._check()
                return None
            try:
                answer = ray.get(ready[0])
                if answer is None:
                    raise PeerFailedError("the process failed before it could answer")
                self._take(ready[0], answer)
            except (OSError, ray.exceptions.RayError, PeerFailedError) as error:
                reason = self._explain(error)
                raise reason from reason.__cause__
        self._tally.wait_seconds += time.perf_counter() - begin
        return [tuple(parts) for parts in self._answers]

    def _take(self, ref: Any, value: Any) -> None:
        index, part = self._awaited.pop(ref)
        if part is not None:
            self._answers[index][part] = value
            self._tally.bytes_received += len(value)
            return
        parts = list(value) + [b""] * (self._width - len(value))
        self._answers[index] = parts
        for position, one in enumerate(parts):
            if isinstance(one, Mapped):
                parts[position] = self._views.read(one)
                self._tally.bytes_received += one.length
            elif isinstance(one, list):
                self._awaited[one[0]] = index, position
            else:
                self._tally.bytes_received += len(one)
