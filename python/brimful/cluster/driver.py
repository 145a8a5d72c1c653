"""The driver: it starts the workers, follows their run, and starts them again after a loss."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from brimful.cluster import imported_ray
from brimful.cluster.exchange import (
    Answers,
    PeerFailedError,
    Tally,
    first_line,
    last_line,
    lost,
    with_place,
)
from brimful.cluster.worker import Worker
from brimful.errors import BrimfulError, MissingPackageError, UsageError, WorkerLostError
from brimful.io.remote_graph import location_of
from brimful.wording import counted

if TYPE_CHECKING:
    from brimful import _native
    from brimful.cluster.worker import Outcome, Work
    from brimful.resources import Resources
    from brimful.stores.registry import Opener

#: The most times that a run starts its workers again after a loss.
MAX_RESTARTS = 3
#: Seconds to wait for workers to start, and for their figures or errors at the end.
_START_SECONDS = 120.0
_LAST_SECONDS = 10.0
#: Seconds to wait before workers are started again, and between looks at nodes while they start.
_PAUSE_SECONDS = 3.0
#: Seconds to wait for a cluster to accept a connection.
_REACH_SECONDS = 5.0
#: The scheme of addresses of the client of Ray, which runs the driver outside a cluster.
_CLIENT = "ray://"
#: CPUs that Ray is told of on one machine, so that any number of local workers may share its cores.
_MOST_LOCAL_CPUS = 4096
#: Threads of an actor besides one for each worker: for `run`, for the driver, for `place`.
_SPARE_THREADS = 4

_log = logging.getLogger("brimful")


def run(
    graph: _native.Graph,
    work: Work[Outcome],
    cluster: Mapping[str, Any],
    checkpoints: Mapping[str, Any],
    resources: Resources,
    opener: Opener | None = None,
) -> Outcome:
    """Divide work on a graph, which all nodes see, among the workers of a cluster.

    `opener` is that of the store of the work, if it is a plug-in.

    Raises:
        MissingPackageError: Ray is not installed.
        UsageError: There is no such cluster, it has no room, or it has another version of brimful.
        WorkerLostError: Workers were lost too often.
    """
    restarts: list[str] = []
    begin = time.perf_counter()
    with connected(cluster["cluster"]):
        while True:
            capacity = ClusterCapacity.of(cluster["cluster"])
            workers = cluster["workers"] or capacity.workers
            threads = resources.threads or max(1, capacity.cores // -(-workers // capacity.nodes))
            again = bool(restarts) and checkpoints["checkpoint_every"] is not None
            saving = {**checkpoints, "resume": checkpoints["resume"] or again}
            claim = nullcontext() if opener is None else opener.claimed(workers * threads)
            try:
                with claim, WorkerGroup(workers, threads) as group:
                    group.start()
                    budget = group.even_budget() if resources.budget is None else resources.budget
                    own = dataclasses.replace(resources.beside_ray(budget), threads=threads)
                    connection = DriverConnection(group, graph, work, saving, own)
                    result = work(graph, connection.communicator, saving, own)
                    started = connection.began - begin
                    figures = connection.figures() | {
                        "start_seconds": started,
                        "restarts": restarts,
                    }
                    result.add_stats({"cluster": figures})
                    return result
            except WorkerLostError as error:
                restarts.append(str(error))
                if len(restarts) > MAX_RESTARTS:
                    raise WorkerLostError(
                        f"{error}; the run was started again {counted(MAX_RESTARTS, 'time')}"
                    ) from None
                _log.warning("%s; the run starts again", error)
            # Ray takes some seconds to notice that a node is lost.
            time.sleep(_PAUSE_SECONDS)


class WorkerGroup:
    """The workers of one attempt."""

    def __init__(self, count: int, threads: int) -> None:
        """Plan `count` workers with `threads` threads each; `start` starts them."""
        self.count, self.threads = count, threads
        self.actors: list[Any] = []
        self.places: list[dict[str, Any]] = []

    def start(self) -> None:
        """Start the workers, and wait until all have answered.

        Raises:
            UsageError: The cluster has no room for them, or has another version of brimful.
            WorkerLostError: One of them did not start, or a node was lost meanwhile.
        """
        import ray

        from brimful import __version__

        if not self._has_room():
            raise self._no_room("")
        actor = ray.remote(Worker).options(
            num_cpus=self.threads,
            max_concurrency=self.count + _SPARE_THREADS,
            scheduling_strategy="SPREAD",
        )
        self.actors = [actor.remote() for _ in range(self.count)]
        places = [one.place.remote() for one in self.actors]
        end = time.monotonic() + _START_SECONDS
        while not self.places:
            try:
                self.places = ray.get(places, timeout=_PAUSE_SECONDS)
            except ray.exceptions.GetTimeoutError:
                if not self._has_room():
                    raise WorkerLostError("a node was lost while workers started") from None
                if time.monotonic() > end:
                    waited = f", or does not start them in {_START_SECONDS:.0f} s"
                    raise self._no_room(waited) from None
            except ray.exceptions.RayError as error:
                raise lost("a worker", error) from None
        for place in self.places:
            if place["version"] != __version__:
                raise UsageError(
                    f"brimful {place['version']} is installed on {place['host']}, and "
                    f"{__version__} here; install the same version on all nodes"
                )

    def even_budget(self) -> int:
        """Return the budget of each process if they share the memory of their machines evenly.

        The driver may be on any of them.
        """
        on_host = Counter(place["host"] for place in self.places)
        return min(
            int(place["memory_bytes"]) // (on_host[place["host"]] + 1) for place in self.places
        )

    def can_share_memory(self) -> bool:
        """Return whether all workers are on one node, whose system has memory to share."""
        return len({place["node"] for place in self.places}) == 1 and all(
            place["has_shared_memory"] for place in self.places
        )

    def _has_room(self) -> bool:
        return sum(cpus // self.threads for cpus in _cpus_of_nodes()) >= self.count

    def _no_room(self, otherwise: str) -> UsageError:
        return UsageError(
            f"the cluster has no room for {counted(self.count, 'worker')} of "
            f"{counted(self.threads, 'CPU')} each{otherwise}; ask for less with --workers or "
            "--threads"
        )

    def __enter__(self) -> WorkerGroup:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End all workers at once."""
        import ray

        for one in self.actors:
            ray.kill(one)


class DriverConnection:
    """The connection of the driver to the workers, as the native module takes it."""

    def __init__(
        self,
        group: WorkerGroup,
        graph: _native.Graph,
        work: Work[Any],
        checkpoints: Mapping[str, Any],
        resources: Resources,
    ) -> None:
        """Connect to workers; their run begins with the first call, once indexes are built."""
        self._group, self._graph, self._work = group, graph, work
        # A worker shows no progress and holds no result.
        self._options = checkpoints, dataclasses.replace(resources, progress=None, reserve_bytes=0)
        self._runs: list[Any] = []
        self._calls = 0
        self._tally, self._begin = Tally(), time.perf_counter()
        #: The time when the first superstep began; until then, the time when the workers began.
        self.began = self._begin
        together = group.can_share_memory()
        self.communicator = {
            "count": len(group.actors),
            "index": None,
            "together": together,
            "connection": self,
        }

    def all_gather(self, facts: memoryview, signals: memoryview) -> Answers:
        """Await the facts of all workers."""
        return self._ask((0,), (b"", b""))

    def scatter(self, facts: memoryview, *parts: memoryview) -> Answers:
        """Await the facts of all workers, and their parts for the driver."""
        return self._ask((0, 1 + self._group.count), (b"", b""))

    def gather(self, records: memoryview) -> Answers:
        """Await the records of all workers."""
        return self._ask((0,), (b"",))

    def _ask(self, parts: tuple[int, ...], nothing: tuple[bytes, ...]) -> Answers:
        actors = self._group.actors
        if not self._runs:
            graph = location_of(self._graph.path), self._graph.fingerprint
            self._runs = [
                actor.run.remote(
                    self._work,
                    graph,
                    index,
                    actors,
                    *self._options,
                    together=self.communicator["together"],
                )
                for index, actor in enumerate(actors)
            ]
        number = self._calls
        if number == 1:
            # The first superstep begins with the second call: the first call needs no edges.
            self.began = time.perf_counter()
        self._calls += 1
        asked = [actor.contribution.remote(number, parts) for actor in actors]
        return Answers(asked, nothing, self._tally, self._reason, self._check)

    def figures(self) -> dict[str, Any]:
        """Return the figures of a finished run, with the place and the figures of each worker."""
        import ray

        try:
            ended = ray.get(self._runs, timeout=_LAST_SECONDS)
        except ray.exceptions.RayError as error:
            reason = self._reason(error)
            raise reason from reason.__cause__
        for _, failure in ended:
            if failure is not None:
                raise self._reason(failure)
        return {
            "workers": [
                {**place, **figures}
                for place, (figures, _) in zip(self._group.places, ended, strict=True)
            ],
            "seconds": time.perf_counter() - self._begin,
            "bytes_received": self._tally.bytes_received,
            "wait_seconds": self._tally.wait_seconds,
        }

    def _check(self) -> None:
        """Raise the error of a worker whose run ended before it could tell the others."""
        import ray

        ended, _ = ray.wait(self._runs, num_returns=len(self._runs), timeout=0)
        for run_of_worker in ended:
            try:
                _, failure = ray.get(run_of_worker)
            except ray.exceptions.RayError as error:
                reason = self._reason(error)
                raise reason from reason.__cause__
            if failure is not None:
                raise self._reason(failure)

    def _reason(self, error: Exception) -> BaseException:
        """Return the error that ended the run of a worker: an earlier one if any, else `error`."""
        import ray

        ready, _ = ray.wait(self._runs, num_returns=len(self._runs), timeout=_LAST_SECONDS)
        losses: list[Exception] = []
        for index in map(self._runs.index, ready):
            try:
                _, failure = ray.get(self._runs[index])
            except (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError) as loss:
                losses.append(self._loss(index, loss))
                continue
            except ray.exceptions.RayError as unfit:
                return UsageError(f"a worker cannot begin the run: {last_line(unfit)}")
            if isinstance(failure, OSError) and not isinstance(failure, BrimfulError):
                # The worker lost its connection to Ray: its node is about to go.
                losses.append(self._loss(index, failure))
            elif isinstance(failure, Exception) and not isinstance(failure, PeerFailedError):
                return with_place(failure, self._name(index))
        return losses[0] if losses else self._loss(None, error)

    def _loss(self, index: int | None, error: Exception) -> BrimfulError:
        return lost("a worker" if index is None else self._name(index), error)

    def _name(self, index: int) -> str:
        return f"worker {index} on {self._group.places[index]['host']}"


class ClusterCapacity(NamedTuple):
    """A cluster: its usual number of workers, its nodes, and the cores of the smallest one."""

    workers: int
    nodes: int
    cores: int

    @classmethod
    def of(cls, address: str) -> ClusterCapacity:
        """Return the cluster as it is now.

        Raises:
            UsageError: The cluster has no node with a CPU.
        """
        name, _, number = address.partition(":")
        if name == "local":
            return cls(int(number), 1, os.cpu_count() or 1)
        able = [cpus for cpus in _cpus_of_nodes() if cpus > 0]
        if not able:
            raise UsageError(
                f"the Ray cluster at {address} has no node with a CPU; start one with "
                "'ray start --num-cpus=N'"
            )
        return cls(len(able), len(able), min(able))


def _cpus_of_nodes() -> list[int]:
    import ray

    nodes = ray.nodes()  # type: ignore[no-untyped-call]
    return [int(node["Resources"].get("CPU", 0)) for node in nodes if node["Alive"]]


def _require_client(address: str) -> None:
    """Refuse an address that needs Ray's client if that is not installed.

    Raises:
        MissingPackageError: The client is not installed.
    """
    if address.startswith(_CLIENT) and importlib.util.find_spec("grpc") is None:
        raise MissingPackageError(
            f"the address {_CLIENT}HOST:PORT needs Ray's client, here and in the cluster; "
            "install it with: pip install 'ray[client]', or start the run on the head node with "
            "the address auto, for example with 'ray job submit'"
        )


def _check_reachable(address: str) -> None:
    """Refuse an address where nothing listens: Ray would try again for minutes.

    Raises:
        OSError: Nothing listens there.
    """
    if address == "auto":
        return
    host, _, port = address.removeprefix(_CLIENT).rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), _REACH_SECONDS):
        pass


def _refuse_another(address: str, connected_to: str) -> None:
    """Refuse an address other than that of the cluster to which this process is connected.

    Raises:
        UsageError: It is another one.
    """
    if ":" not in address or address.startswith(("local:", _CLIENT)):
        return
    (host, _, port), (own_host, _, own_port) = (
        one.rpartition(":") for one in (address, connected_to)
    )
    with contextlib.suppress(OSError):
        host = socket.gethostbyname(host.strip("[]"))
    if port != own_port or not (host == own_host or host.startswith("127.")):
        raise UsageError(
            f"this process is connected to the Ray cluster at {connected_to}, not at {address}; "
            'use cluster="auto", or call ray.shutdown() first'
        )


@contextmanager
def connected(address: str) -> Iterator[None]:
    """Connect to a cluster for the duration of the context.

    Raises:
        MissingPackageError: Ray is not installed.
        UsageError: There is no cluster at the address, or this process is connected to another one.
        WorkerLostError: Ray did not start.
    """
    ray = imported_ray()
    is_own = not ray.is_initialized()
    if not is_own:
        _refuse_another(address, ray.get_runtime_context().gcs_address)
    else:
        # Ray would replace the function `print` of this process, which programs compile.
        os.environ.setdefault("RAY_TQDM_PATCH_PRINT", "0")
    if is_own and address.startswith("local:"):
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            ray.init(
                address="local",
                # Workers share the cores of this machine, whatever their number.
                num_cpus=_MOST_LOCAL_CPUS,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
        except Exception as error:  # Ray raises this class if it does not start in time.
            if type(error) is not Exception:
                raise
            raise WorkerLostError(
                f"Ray did not start on this machine: {first_line(error)}; try again when it has "
                "less work"
            ) from None
    elif is_own:
        _require_client(address)
        try:
            _check_reachable(address)
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, ValueError, RuntimeError) as error:
            raise UsageError(
                f"no connection to a Ray cluster at {address}: {first_line(error)}; start one with "
                "'ray start --head', or use local:N for N workers on this machine"
            ) from None
    try:
        yield
    finally:
        if is_own:
            ray.shutdown()
