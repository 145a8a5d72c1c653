"""Forecasts of the memory, disk and time of a run, before it begins."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from brimful.catalog import algorithm_request
from brimful.errors import UsageError
from brimful.memory import budget_bytes
from brimful.options.described import described
from brimful.options.runs import (
    RUN,
    MachineOptions,
    PlannedClusterOptions,
    PlanOptions,
    UnbuiltOptions,
)
from brimful.options.table import checked, picked, texts
from brimful.packages import _native, opening
from brimful.resources import Resources

if TYPE_CHECKING:
    from brimful.io.sampling import Found


#: Bandwidth of a network in Gbit/s where none is given.
_USUAL_NETWORK = 10.0


@dataclass(frozen=True)
class ImportForecast:
    """The memory, disk and time of an import.

    Attributes:
        minimum_budget_bytes: The smallest budget that suffices.
        peak_memory_bytes: Peak memory of the whole process.
        temporary_bytes: The most disk next to the graph.
        graph_bytes: Size of the graph on disk.
        disk_bytes: Sum of the two.
        seconds: An estimate; None: unknown.
    """

    minimum_budget_bytes: int
    peak_memory_bytes: int
    temporary_bytes: int
    graph_bytes: int
    disk_bytes: int
    seconds: float | None


@dataclass(frozen=True)
class Forecast:
    """The memory, disk and time of a run; on a cluster, those of the worker with the most work.

    Attributes:
        algorithm: Name of the algorithm.
        fits: Whether `budget_bytes` suffices. If not, the other figures are those of the smallest
            budget.
        minimum_budget_bytes: The smallest budget that suffices.
        in_memory_budget_bytes: A budget that keeps the data of all vertices in memory, as far as a
            run ever does, and on graphs that take many supersteps also the unpacked edges. With a
            smaller budget a run is slower.
        budget_bytes: The budget asked for.
        threads: Number of threads.
        peak_memory_bytes: Peak memory of the whole process; brimful's own in a worker of a cluster.
        disk_bytes: The most disk next to the existing graph: scratch, or an index that is built
            first with its temporary files.
        scratch_bytes: Scratch, with the vertices of a store on disk.
        index_bytes: The index that is built and stays.
        read_once_bytes: Bytes that the first superstep reads and keeps in memory; None on a store.
        read_bytes_per_superstep: Bytes that a superstep over all edges reads; None on a store.
        written_bytes_per_superstep: Bytes that a superstep over all edges writes; None on a store.
        supersteps: Number of supersteps.
        supersteps_guessed: Whether that number is a guess.
        passes: How often the run passes over all edges.
        workers: Workers of a cluster; None: one process.
        sent_bytes_per_superstep: The most bytes of signals that a worker sends in a superstep in
            which all vertices signal, to all others together; None for one process.
        received_bytes_per_superstep: The most that a worker receives; None likewise.
        exchange_memory_bytes: Memory of a worker, within its budget, through which workers of one
            machine exchange signals; 0: they go through Ray's object store; None likewise.
        start_seconds: Seconds until the first superstep on a cluster, by rough estimate; None for
            one process.
        seconds_per_superstep: An estimate; None if the time is unknown.
        seconds: An estimate, with those of the start; None if the time is unknown.
        memory_bandwidth: In GB/s, given or measured, less if the threads work more slowly than
            memory delivers; None: not used.
        disk_bandwidth: In GB/s, given or measured; None: not used.
        network: In Gbit/s, between the machines of a cluster; None: there is only one machine.
        imported: Forecast of the import; None for a graph that exists.

    >>> import brimful as bf
    >>> foreseen = bf.plan(None, "bfs", vertices=1e6, edges=1e7, budget="1G")
    >>> foreseen.fits, foreseen.algorithm, foreseen.minimum_budget_bytes < foreseen.budget_bytes
    (True, 'bfs', True)
    >>> divided = bf.plan(None, "bfs", vertices=1e6, edges=1e7, cluster=4, network=25)
    >>> divided.workers, divided.received_bytes_per_superstep <= 8e6
    (4, True)
    """

    algorithm: str
    fits: bool
    minimum_budget_bytes: int
    in_memory_budget_bytes: int
    budget_bytes: int
    threads: int
    peak_memory_bytes: int
    disk_bytes: int
    scratch_bytes: int
    index_bytes: int
    read_once_bytes: int | None
    read_bytes_per_superstep: int | None
    written_bytes_per_superstep: int | None
    supersteps: int
    supersteps_guessed: bool
    passes: float
    workers: int | None
    sent_bytes_per_superstep: int | None
    received_bytes_per_superstep: int | None
    exchange_memory_bytes: int | None
    start_seconds: float | None
    seconds_per_superstep: float | None
    seconds: float | None
    memory_bandwidth: float | None
    disk_bandwidth: float | None
    network: float | None
    imported: ImportForecast | None


@dataclass(frozen=True)
class Sizes:
    """A graph that does not exist yet: vertices with edges, edges, and other known properties."""

    vertices: int
    edges: int
    undirected: bool = False
    reverse: bool = False
    bytes_per_edge: float | None = None
    spooled: bool = True
    hashes_weights: bool = False
    self_loops: str = "keep"
    duplicates: str = "keep"

    def native(self) -> dict[str, Any]:
        """Return the sizes as the native module takes them."""
        return dict(vars(self))


@described(RUN | texts(PlannedClusterOptions), "graph", "corrupt", "io")
def plan(
    graph: opening.GraphLike | None,
    algorithm: str,
    *,
    params: Mapping[str, object] | None = None,
    **options: Unpack[PlanOptions],
) -> Forecast:
    """Forecast a run of `algorithm` on `graph`, or on a graph that does not exist yet.

    Memory and disk are those of the plan that the run itself follows; the time is an estimate.
    For a run on a `store`, memory, disk and the smallest budget are estimates, and there is no
    estimate of the time.

    Args:
        graph: A `Graph`, or the path of a graph directory or of an input file; None: a graph of
            `vertices` and `edges` that does not exist yet, whose import is forecast too
            (`Forecast.imported`).
        algorithm: Name of the algorithm.
        params: The algorithm's own parameters by name.
        source: Id of the vertex to begin with, or several in a sequence: vertices of the graph, if
            there is one. Not needed: the forecast does not depend on it.

    Returns:
        The forecast.

    Raises:
        UsageError: The algorithm is unknown, both or neither of a graph and its sizes are given, or
            a number is out of range.
        NotFoundError: The graph has no vertex `source`, or lacks one of several.

    >>> import brimful as bf
    >>> web = bf.plan(None, "pagerank", vertices=11.5e9, edges=128e9, budget="64G",
    ...               disk_bandwidth=3, memory_bandwidth=30)
    >>> web.fits, web.supersteps_guessed
    (True, True)
    """
    from brimful.io.output import reserve_of_result
    from brimful.opening import as_graph

    chosen: dict[str, Any] = {**checked(PlanOptions, options, "plan", ("params",))}
    size = cluster_size_of(chosen.pop("cluster"))
    request = algorithm_request(algorithm, {} if params is None else params, chosen, size)
    resources = Resources.of(chosen)
    resources = resources.leaving(reserve_of_result(chosen.pop("output")))
    native = None
    if graph is not None:
        opened = as_graph(graph, resources)
        native, resources = opened.native, resources.on(opened)
    sizes = sizes_of(native is not None, picked(UnbuiltOptions, chosen))
    machine = picked(MachineOptions, chosen)
    foreseen = forecast(native, sizes, request, resources, machine)
    require_sources(native, request)
    return foreseen


def cluster_size_of(cluster: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the workers of a cluster as the native module takes them."""
    if cluster is None:
        return None
    cores = os.cpu_count() or 1
    return {"workers": cluster["workers"], "cores": cores if cluster["together"] else None}


def sizes_of(has_graph: bool, unbuilt: Mapping[str, Any]) -> Sizes | None:
    """Return the sizes that `UnbuiltOptions` gives; None if there is a graph.

    Raises:
        UsageError: Both a graph and sizes are given, or neither.
    """
    if has_graph:
        if unbuilt != checked(UnbuiltOptions, {}):
            raise UsageError(
                "--vertices, --edges, --undirected, --index and --bytes-per-edge do not apply to a "
                "graph that exists; leave them out"
            )
        return None
    if unbuilt["vertices"] is None or unbuilt["edges"] is None:
        raise UsageError(
            "a plan needs a graph, or its numbers of vertices and edges; name GRAPH, or give "
            "--vertices and --edges"
        )
    sizes = dict(unbuilt)
    return Sizes(reverse="reverse" in sizes.pop("index"), **sizes)


def require_sources(graph: _native.Graph | None, request: Mapping[str, Any]) -> None:
    """Refuse a request whose sources are not vertices of the graph, if there is one.

    Raises:
        NotFoundError: The graph lacks one of them.
    """
    from brimful import _native

    if graph is None or not request["source"]:
        return
    lookup = _native.Lookup(graph)
    for source in request["source"]:
        # Raises if the source is not a vertex.
        lookup.degree(source, "out")


def forecast(
    graph: _native.Graph | None,
    sizes: Sizes | None,
    request: dict[str, Any],
    resources: Resources,
    machine: Mapping[str, float | None],
    *,
    checkpoints: bool = False,
) -> Forecast:
    """Return the forecast of a request, for a machine of `MachineOptions`.

    Raises:
        UsageError: As `plan`.
    """
    from brimful import _native

    size = request["cluster_size"]
    if size is not None:
        resources = _of_worker(resources, size)
    together = 1 if size is None or size["cores"] is None else size["workers"]
    cores, network = os.cpu_count() or 1, machine.get("network")
    if size is None and network is not None:
        raise UsageError("--network is for a forecast of a cluster; add --cluster, or leave it out")
    bandwidths = {
        name.removesuffix("_bandwidth"): bandwidth for name, bandwidth in machine.items()
    } | {
        "network": _USUAL_NETWORK if network is None else network,
        "threads": min(cores, together * resources.threads) if resources.threads else cores,
    }
    figures = _native.plan(
        graph,
        None if sizes is None else sizes.native(),
        request,
        machine=bandwidths | {"folder": os.getcwd() if graph is None else graph.path},
        resources=resources,
        checkpoints=checkpoints,
    )
    imported = figures.pop("import")
    has_network = size is not None and size["cores"] is None and figures["seconds"] is not None
    return Forecast(
        algorithm=request["algorithm"],
        network=bandwidths["network"] if has_network else None,
        imported=None if imported is None else ImportForecast(**imported),
        **figures,
    )


def _of_worker(resources: Resources, size: Mapping[str, Any]) -> Resources:
    """Return the resources of a worker; those not given are the ones that a run would choose."""
    workers_here = 1 if size["cores"] is None else size["workers"]
    threads = resources.threads
    if threads is None:
        threads = max(1, (os.cpu_count() or 1) // workers_here)
    # The calling process takes the budget of one more worker, and may be on any machine.
    budget = budget_bytes(resources.budget, workers_here + 1)
    return dataclasses.replace(resources.beside_ray(budget), threads=threads)


def forecast_import(sizes: Found, resources: Resources) -> ImportForecast:
    """Return the forecast of an import, without time."""
    from brimful import _native

    figures = _native.plan_import(
        sizes.sizes.native(),
        weighted=sizes.weighted,
        resources=resources.leaving(sizes.reserve_bytes),
    )
    return ImportForecast(seconds=None, **figures)
