"""The driver: it starts the workers, observes their run, and starts them again after a loss."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from brimful.cluster.exchange import Answers, PeerFailedError, Tally, first_line
from brimful.cluster.worker import Worker
from brimful.errors import MissingPackageError, UsageError, WorkerLostError

if TYPE_CHECKING:
    from brimful import _native
    from brimful.io.ingest import Resources

#: A run starts its workers again after so many losses.
_MOST_RESTARTS = 3
#: Seconds to wait for workers to start, and for their last words.
_START_SECONDS = 120.0
_LAST_SECONDS = 10.0
#: Threads of an actor beside one for each worker: its run, the observer, a question of its place.
_SPARE_THREADS = 4

_log = logging.getLogger("brimful")


def run(
    graph: _native.Graph,
    request: Mapping[str, Any],
    checkpoints: Mapping[str, Any],
    resources: Resources,
    reserve_bytes: int,
) -> _native.Result:
    """Run a request with a `cluster` on a graph that all its nodes see.

    Raises:
        MissingPackageError: Ray is not installed.
        UsageError: There is no such cluster, it has no room, or it has another version of brimful.
        WorkerLostError: Workers were lost too often.
    """
    with connected(request["cluster"]["cluster"]) as (count, cores):
        wanted = request["cluster"]["workers"] or count
        threads = resources.threads or max(1, cores // wanted)
        restarts: list[str] = []
        while True:
            crew = Crew(wanted, threads, {**checkpoints, "budget": resources.budget})
            if restarts and checkpoints["checkpoint_every"] is not None:
                crew.options["resume"] = True
            try:
                return _observed(crew, graph, request, resources, reserve_bytes, restarts)
            except WorkerLostError as error:
                restarts.append(str(error))
                if len(restarts) > _MOST_RESTARTS:
                    raise WorkerLostError(
                        f"{error}; the run was started again {_MOST_RESTARTS} times"
                    ) from None
                _log.warning("%s; the run starts again", error)
            finally:
                crew.end()


def _observed(
    crew: Crew,
    graph: _native.Graph,
    request: Mapping[str, Any],
    resources: Resources,
    reserve_bytes: int,
    restarts: list[str],
) -> _native.Result:
    """Run a request with a crew, and return what the observer has."""
    from brimful import _native

    crew.start()
    begin = time.perf_counter()
    observer = Observer(crew, graph, request)
    share = {"count": len(crew.actors), "index": None, "connection": observer}
    limits = {**vars(resources), "process_budget": False}
    options = {key: value for key, value in crew.options.items() if key not in limits}
    result = _native.run(
        graph, {**request, "share": share}, **options, **limits, reserve_bytes=reserve_bytes
    )
    figures = {
        "workers": observer.figures(),
        "threads_per_worker": crew.threads,
        "seconds": time.perf_counter() - begin,
        "bytes_received": observer.tally.bytes_received,
        "wait_seconds": observer.tally.wait_seconds,
        "restarts": restarts,
    }
    result.add_stats({"cluster": figures})
    return result


class Crew:
    """The workers of one attempt."""

    def __init__(self, count: int, threads: int, options: Mapping[str, Any]) -> None:
        """Ask for `count` workers with so many threads each, and with these options of a run."""
        self.count, self.threads = count, threads
        self.options = dict(options)
        self.actors: list[Any] = []
        self.places: list[dict[str, Any]] = []

    def start(self) -> None:
        """Start the workers, and wait until they are there.

        Raises:
            UsageError: The cluster has no room for them, or has another version of brimful.
            WorkerLostError: One of them did not start.
        """
        import ray

        from brimful import __version__

        actor = ray.remote(Worker).options(
            num_cpus=self.threads,
            max_concurrency=self.count + _SPARE_THREADS,
            scheduling_strategy="SPREAD",
        )
        self.actors = [actor.remote() for _ in range(self.count)]
        try:
            places = [one.place.remote() for one in self.actors]
            self.places = ray.get(places, timeout=_START_SECONDS)
        except ray.exceptions.GetTimeoutError:
            raise UsageError(
                f"the cluster has no room for {self.count} workers of {self.threads} CPUs each, "
                f"or does not start them in {_START_SECONDS:.0f} s; ask for less with --workers or "
                "--threads (Python: workers=, threads=)"
            ) from None
        except ray.exceptions.RayError as error:
            raise WorkerLostError(f"a worker did not start: {first_line(error)}") from None
        for place in self.places:
            if place["version"] != __version__:
                raise UsageError(
                    f"brimful {place['version']} is installed on {place['host']}, and "
                    f"{__version__} here; install the same version on all nodes"
                )

    def end(self) -> None:
        """End all workers at once."""
        import ray

        for one in self.actors:
            ray.kill(one)


class Observer:
    """The connection of the driver to the workers, as the native module takes it."""

    def __init__(self, crew: Crew, graph: _native.Graph, request: Mapping[str, Any]) -> None:
        """Observe a crew, which begins with the first call: a missing index is built before."""
        self._crew, self._graph, self._request = crew, graph, request
        self._runs: list[Any] = []
        self._calls = 0
        self.tally = Tally()

    def turn(self, facts: bytes, signals: bytes) -> Answers:
        """Await the facts of all workers."""
        return self._ask(1, (b"", b""))

    def gather(self, records: bytes) -> Answers:
        """Await the records of all workers."""
        return self._ask(1, (b"",))

    def _ask(self, parts: int, nothing: tuple[bytes, ...]) -> Answers:
        actors = self._crew.actors
        if not self._runs:
            options = {**self._crew.options, "threads": self._crew.threads}
            graph, request = self._graph, {**self._request, "cluster": None}
            self._runs = [
                actor.run.remote(graph.path, graph.fingerprint, request, index, actors, options)
                for index, actor in enumerate(actors)
            ]
        number = self._calls
        self._calls += 1
        asked = [actor.told.remote(number, parts) for actor in actors]
        return Answers(asked, nothing, self.tally, self._reason)

    def figures(self) -> list[dict[str, Any]]:
        """Return place and figures of each worker, after the run."""
        import ray

        try:
            ended = ray.get(self._runs, timeout=_LAST_SECONDS)
        except ray.exceptions.RayError as error:
            raise self._reason(error) from None
        return [
            {**place, **(figures or {})}
            for place, (figures, _) in zip(self._crew.places, ended, strict=True)
        ]

    def _reason(self, error: Exception) -> Exception:
        """Return the reason why the run of a worker ended: `error`, or one that came before."""
        import ray

        lost: Exception | None = None
        ready, _ = ray.wait(self._runs, num_returns=len(self._runs), timeout=_LAST_SECONDS)
        for index, ended in enumerate(self._runs):
            if ended not in ready:
                continue
            try:
                _, failure = ray.get(ended)
            except ray.exceptions.RayError as error:
                lost = lost or self._loss(index, error)
                continue
            if isinstance(failure, Exception) and not isinstance(failure, PeerFailedError):
                failure.add_note(f"on worker {index}, {self._crew.places[index]['host']}")
                return failure
        return lost or self._loss(None, error)

    def _loss(self, index: int | None, error: Exception) -> WorkerLostError:
        who = "a worker" if index is None else f"worker {index}"
        host = "" if index is None else f" on {self._crew.places[index]['host']}"
        return WorkerLostError(f"{who}{host} was lost: {first_line(error)}")


@contextmanager
def connected(address: str) -> Iterator[tuple[int, int]]:
    """Connect to a cluster; yield its usual number of workers, and its cores.

    Raises:
        MissingPackageError: Ray is not installed.
        UsageError: There is no cluster at the address.
    """
    try:
        import ray
    except ImportError as error:
        raise MissingPackageError(
            "a run on a cluster needs Ray; install it with: pip install 'brimful[ray]'"
        ) from error
    is_own = not ray.is_initialized()
    name, _, number = address.partition(":")
    cores = os.cpu_count() or 1
    if is_own and name == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # Workers share the cores of this machine, but each takes its threads from Ray's count.
        ray.init(
            num_cpus=max(cores, 1024),
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    elif is_own:
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise UsageError(
                f"there is no Ray cluster at {address}: {first_line(error)}; start one with 'ray "
                "start --head', or use local:N for N workers on this machine"
            ) from None
    try:
        if name == "local":
            yield int(number), cores
        else:
            nodes = [node for node in ray.nodes() if node["Alive"]]
            yield len(nodes), int(ray.cluster_resources().get("CPU", cores))
    finally:
        if is_own:
            ray.shutdown()
