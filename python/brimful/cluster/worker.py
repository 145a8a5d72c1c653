"""A worker: an actor that runs the program on its intervals of a graph."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from brimful.cluster.exchange import (
    Answers,
    Board,
    Mapped,
    Part,
    ProcessDone,
    Slots,
    Tally,
    Views,
    is_large,
)
from brimful.cluster.metrics import Metrics
from brimful.errors import InputError, NotFoundError
from brimful.io.remote import is_remote
from brimful.io.remote_graph import open_location

if TYPE_CHECKING:
    from brimful import _native
    from brimful.resources import Resources

    #: The result of a run.
    Outcome = TypeVar("Outcome", _native.Result, _native.States)
    #: A run on a graph, which each process calls with its communicator. Options and resources may
    #: differ between processes. Ray pickles the function.
    Work = Callable[[_native.Graph, dict[str, Any] | None, Mapping[str, Any], Resources], Outcome]


class Connection:
    """The connection of a worker to the others, as the native module takes it."""

    def __init__(self, index: int, peers: Sequence[Any], board: Board) -> None:
        """Connect worker `index`; `peers` are the handles of all workers, its own included."""
        self._index, self._peers, self._board = index, peers, board
        self._calls = 0
        self._slots: Slots | None = None
        self._views = Views()
        self.tally, self.metrics = Tally(), Metrics(index)
        #: Bytes of the shared memory through which signals reach the other workers.
        self.memory_bytes = 0

    def share_memory(self, max_bytes: int) -> None:
        """Send the signals of later supersteps, at most `max_bytes`, through shared memory."""
        self._slots = Slots(max_bytes)
        self.memory_bytes = self._slots.bytes

    def all_gather(self, facts: memoryview, signals: memoryview) -> Answers:
        """Post facts and signals of a superstep, and await those of the others."""
        part: memoryview | Mapped = signals
        if len(self._peers) == 1:
            # No other worker reads the signals.
            part = signals[:0]
        elif self._slots is not None and is_large(signals):
            part = self._slots.write(signals)
        number = self._post((facts, part), readers=len(self._peers))
        self.tally.bytes_sent += (len(self._peers) - 1) * len(signals)
        return self._answers(number, 1, facts)

    def scatter(self, facts: memoryview, *parts: memoryview) -> Answers:
        """Post facts and a part for each worker and the driver; await those of the others."""
        number = self._post((facts, *parts), readers=len(self._peers))
        self.tally.bytes_sent += sum(map(len, parts))
        return self._answers(number, 1 + self._index, facts)

    def _answers(self, number: int, part: int, facts: memoryview) -> Answers:
        """Await the facts of the others, and one of their parts."""
        asked = [
            peer.contribution.remote(number, (0, part)) if index != self._index else None
            for index, peer in enumerate(self._peers)
        ]
        return Answers(asked, (bytes(facts), b""), self.tally, views=self._views)

    def gather(self, records: memoryview) -> Answers:
        """Post records for the driver."""
        self._post((records,), readers=1)
        self.tally.bytes_sent += len(records)
        return Answers((), (b"",), self.tally)

    def _post(self, parts: tuple[memoryview | Mapped, ...], readers: int) -> int:
        number = self._calls
        self._calls += 1
        self.metrics.exchanged(self.tally, self._calls)
        self._board.post(number, parts, readers)
        return number


class Worker:
    """The actor; `contribution` and `place` answer while `run` is at work in another thread."""

    def __init__(self) -> None:
        """Begin without a contribution."""
        self._board = Board()

    def place(self) -> dict[str, Any]:
        """Return the place of this worker, with its usual budget and version of brimful."""
        import ray

        from brimful import __version__, _native

        return {
            "host": platform.node(),
            "node": ray.get_runtime_context().get_node_id(),
            "pid": os.getpid(),
            "memory_bytes": _native.auto_budget_bytes(),
            "version": __version__,
            "has_shared_memory": Slots.are_possible(),
        }

    def contribution(self, number: int, parts: Sequence[int]) -> tuple[Part, ...] | None:
        """Return parts of message `number` of this worker, by position; None if its run failed."""
        return self._board.read(number, parts)

    def run(
        self,
        work: Work[Any],
        graph: tuple[str, str],
        index: int,
        peers: Sequence[Any],
        checkpoints: Mapping[str, Any],
        resources: Resources,
        *,
        together: bool,
    ) -> tuple[dict[str, Any] | None, BaseException | None]:
        """Run the part of this worker on a graph, named by path or URL, and fingerprint.

        `together`: all workers are on one node, and can share memory.

        Returns:
            The figures of this worker, or the error that ended it.
        """
        connection = Connection(index, peers, self._board)
        communicator = {
            "count": len(peers),
            "index": index,
            "together": together,
            "connection": connection,
        }
        begin = time.perf_counter()
        try:
            work(_open_graph(*graph), communicator, checkpoints, resources)
            raise AssertionError("a worker ends with ProcessDone")
        except ProcessDone as done:
            figures = done.figures
        except BaseException as error:  # noqa: BLE001 - it is raised again in the driver
            self._board.fail()
            return None, error
        figures = {
            **figures,
            "budget_bytes": resources.budget,
            "exchange_memory_bytes": connection.memory_bytes,
            **vars(connection.tally),
            "seconds": time.perf_counter() - begin,
        }
        connection.metrics.ended(figures)
        return figures, None


def _open_graph(place: str, fingerprint: str) -> _native.Graph:
    """Open the graph of the driver, by its path, or by its URL through a copy on this node.

    Raises:
        NotFoundError: This node does not see the graph.
        InputError: This node sees another graph.
        CorruptError, StoreIoError, UsageError: As `open_location`.
    """
    if is_remote(place):
        graph = open_location(place)
        if graph.fingerprint != fingerprint:
            raise InputError(f"{place}: the graph has changed since the run began; run again")
        return graph
    remedy = "on a cluster the graph must be in a folder that all nodes share, or at a URL"
    try:
        graph = open_location(place)
    except NotFoundError as error:
        raise NotFoundError(f"{error}; {remedy}") from None
    if graph.fingerprint != fingerprint:
        raise InputError(f"{place} on this node is not the graph of the driver; {remedy}")
    return graph
