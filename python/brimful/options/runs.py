"""The tables of options of runs, of forecasts and of programs in Python."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict

from brimful.errors import UsageError
from brimful.ids import Vertices, vertex_ids
from brimful.options import checks
from brimful.options.clusters import MAX_WORKERS, ClusterOptions
from brimful.options.imports import IndexOptions
from brimful.options.table import Option, ResourceOptions, WorkOptions, texts
from brimful.sizes import checkpoint_interval
from brimful.wording import literal, shortened

#: Synchronous supersteps, or sweeps that receive signals at once.
Mode = Literal["sync", "async"]
#: Bits of a signal in memory.
Precision = Literal["f64", "f32"]
#: The place of lists of waiting vertices and signals.
Lists = Literal["memory", "disk"]
#: How the vertices of a store are divided among partitions.
Partitioner = Literal["range", "hash"]
#: How a store writes records, compressed or not.
Serializer = Literal[
    "native",
    "compact",
    "generic",
    "native+lz4",
    "native+zstd",
    "native+zlib",
    "compact+lz4",
    "compact+zstd",
    "compact+zlib",
    "generic+lz4",
    "generic+zstd",
    "generic+zlib",
]
#: The order in which vertices of a store act in the asynchronous mode.
Scheduler = Literal["latency", "throughput"]

#: The most vertices or edges of a graph in a forecast.
MAX_COUNTED = 2**44


def store_url(url: Any, name: str = "store") -> str | None:
    """Return the URL of a store, or None.

    Raises:
        UsageError: There is no such store; the message lists the stores.
    """
    if checks.text(url, name) is None:
        return None
    from brimful.stores.registry import check_url

    return check_url(str(url))


def source_weights(weights: Any, name: str = "source_weight") -> list[float]:
    """Return the weights of sources, or an empty list.

    Raises:
        UsageError: `weights` is not a sequence of numbers.
    """
    plain = weights.tolist() if hasattr(weights, "tolist") else weights
    if plain is None:
        return []
    if isinstance(plain, (str, bytes)) or not isinstance(plain, Sequence):
        raise UsageError(f"{name} must be a sequence of numbers, not {shortened(plain)}")
    return [checks.number(one, name) for one in plain]


def source_shares(source: Mapping[Any, Any]) -> list[float]:
    """Return the shares of the vertices of a mapping.

    Raises:
        UsageError: A share is negative or not a number; the message names its vertex.
    """
    shares = []
    for vertex, given in source.items():
        name = f"the share of vertex {shortened(vertex)} in source"
        share = checks.number(given, name)
        if share < 0:
            raise UsageError(f"{name} must be at least 0, not {literal(given)}")
        shares.append(share)
    return shares


def check_pairs(pairs: Any, name: str = "pairs") -> Any:
    """Return a table of pairs as it is, or None.

    Raises:
        UsageError: `pairs` is not a path, and has no Arrow stream.
    """
    if pairs is None or isinstance(pairs, (str, os.PathLike)):
        return pairs
    if not hasattr(pairs, "__arrow_c_stream__"):
        raise UsageError(
            f"{name} must be the path of a file or a table with __arrow_c_stream__, not "
            f"{shortened(pairs)}"
        )
    return pairs


class StepOptions(TypedDict, total=False):
    """How signals travel."""

    mode: Annotated[
        Mode,
        Option(
            '"sync" (default) runs in supersteps; "async" receives signals within the same sweep '
            "over the edges.",
            default="sync",
        ),
    ]
    max_supersteps: Annotated[
        int | None,
        Option(
            "Stop after this many supersteps; None: the default limit, if there is one.",
            help="stop after N supersteps (default: the limit of the algorithm, if it has one)",
        ),
    ]
    weighted: Annotated[bool, Option("Use the weights of the edges.", default=False)]


class ConvergenceOptions(TypedDict, total=False):
    """How a run converges."""

    tolerance: Annotated[
        float | None, Option("Stop when the change is at most this; 0: never stop early.")
    ]


class RequestOptions(StepOptions, ConvergenceOptions, total=False):
    """Options that only some algorithms take, besides their own parameters."""

    source: Annotated[
        Vertices | None,
        Option(
            "Id of the source vertex, or a sequence of ids: `bfs` and `sssp` measure from the "
            "nearest, `distances` and `eccentricity` from each. Without weights, order and repeats "
            "do not matter.",
            help="a source vertex; may be given several times. bfs and sssp measure from the "
            "nearest source, distances and eccentricity from each; a personalized rank starts from "
            "all sources",
            metavar="ID",
            repeated=True,
            check=lambda source, name: [] if source is None else vertex_ids(source),
        ),
    ]
    source_weight: Annotated[
        Sequence[float] | None,
        Option(
            "The share of each `source`, in the same order; they need not add up to 1. None: "
            "equal shares.",
            help="the share of a --source in a personalized rank, given once for each, in the "
            "same order; they need not add up to 1 (default: equal shares)",
            repeated=True,
            check=source_weights,
        ),
    ]
    pairs: Annotated[
        object | None,
        Option(
            "The pairs of vertices, in two columns: the path of a .parquet, .csv, .tsv or .arrow "
            "file, or an object with `__arrow_c_stream__`; None: partners of each vertex.",
            help="a .parquet, .csv, .tsv or .arrow file of pairs of vertices, in two columns",
            metavar="FILE",
            check=check_pairs,
        ),
    ]
    precision: Annotated[
        Precision, Option('Width of a signal in memory: "f64" (default) or "f32".', default="f64")
    ]


class PlaceOptions(TypedDict, total=False):
    """The store of the vertices, if they are not in shards, and the form of its records."""

    store: Annotated[
        str | None,
        Option(
            "Keep vertices, with their edges, as records in a store: "
            '"memory" (live objects), "bytes" (records in memory), "file:PATH" or '
            '"kv:PATH" (records in a folder within PATH, which is removed after the run), or the '
            "URL of a database (`brimful.stores`); None: edges stream from shards.",
            help="memory (live objects), bytes (records in memory), file:PATH or kv:PATH "
            "(records in a folder within PATH, removed after the run), or the URL of a database: "
            "rocksdb:PATH, berkeleydb:PATH, mongodb://..., orientdb://...; --mode async has no "
            "supersteps there",
            metavar="URL",
            check=store_url,
        ),
    ]
    serializer: Annotated[
        Serializer | None,
        Option(
            'How a store writes records: "native" (default), "compact" or "generic", each also '
            'with "+lz4", "+zstd" or "+zlib".',
            metavar="NAME",
        ),
    ]


class StoreOptions(TypedDict, total=False):
    """Options of every run on a store, of an algorithm or of a program in Python."""

    cache: Annotated[
        str | None,
        Option(
            'Keep N vertices of a store live: the most recently used ("lru:N"), or the most often '
            'used ("score:N"; a program may define `cache_score`).',
            metavar="lru:N|score:N",
        ),
    ]
    lists: Annotated[
        Lists | None,
        Option(
            'Place of the waiting vertices and signals of a store: "memory" (default; spills to '
            'disk) or "disk".'
        ),
    ]
    scheduler: Annotated[
        Scheduler | None,
        Option(
            'Order of the vertices of a store in `mode` "async": a vertex collects and signals at '
            'once ("latency", default), or all vertices collect, then signal ("throughput").',
            help="order of the vertices of a store in --mode async: a vertex collects and signals "
            "at once (latency, default), or all vertices collect, then signal (throughput)",
        ),
    ]
    partitioner: Annotated[
        Partitioner | None,
        Option(
            "How the vertices of a store are divided among threads and disks: ranges of vertices "
            'with about equally many edges ("range", default), or by a hash ("hash").'
        ),
    ]


class AskedOptions(RequestOptions, PlaceOptions, StoreOptions, total=False):
    """Options that form the request of a run."""


class CheckpointOptions(TypedDict, total=False):
    """Checkpoint and resume options.

    On shards, a resumed run ends with the same bits as one that was never stopped. In `mode`
    "async" a budget that would divide the edges into other blocks is refused. A run that finds no
    checkpoint starts from the beginning and reports this (logger `brimful`;
    `stats["resumed_from"]`). A run that converges removes its checkpoints; a run that ends at a
    limit keeps them (`label_propagation`: 10 supersteps by default). With checkpoints,
    algorithms use a method that has supersteps: `connected_components` and `bipartite`
    "propagation", `scc` "coloring", `kcore` "rounds"; `color` has supersteps, too. On a `store`
    in `mode` "async" there are no supersteps; intervals are in seconds.
    """

    checkpoint_every: Annotated[
        int | str | None,
        Option(
            'Make a checkpoint after every this many supersteps, or, as in "30s", once that much '
            "time has passed since the last checkpoint; None: no checkpoints.",
            help="make a checkpoint after every K supersteps, or every K seconds (30s). A run that "
            "converges removes its checkpoints after it has written its output; a run that ends at "
            "a limit keeps them. connected_components and bipartite then use the method "
            "propagation, scc coloring, kcore rounds, and color has supersteps. --store with "
            "--mode async needs seconds",
            metavar="K",
            check=lambda every, name: checkpoint_interval(every),
        ),
    ]
    checkpoint_dir: Annotated[
        str | os.PathLike[str] | None,
        Option(
            "Folder of the checkpoints; None: `NAME.ALGORITHM.checkpoints` next to the graph.",
            metavar="D",
            check=checks.path,
        ),
    ]
    resume: Annotated[
        bool,
        Option(
            "Continue from the last complete checkpoint, or start from the beginning if there is "
            "none. Graph, algorithm and parameters must be the same; limits, `budget` and "
            "`threads` may differ.",
            help="continue from the last complete checkpoint, or start from the beginning if there "
            "is none. Graph, algorithm and parameters must be the same; limits, --budget and "
            "--threads may differ",
            default=False,
        ),
    ]


class ResumableOptions(WorkOptions, CheckpointOptions, total=False):
    """Options of every algorithm with checkpoints."""


class DividedOptions(ResumableOptions, ClusterOptions, total=False):
    """Options of every algorithm that also runs on a cluster.

    On a `cluster` the result has the same bits as in one process, at any number of workers;
    `stats["cluster"]` describes the work of each. A lost worker is replaced, up to three times, and
    the run continues from its last checkpoint.
    """


class RunOptions(DividedOptions, PlaceOptions, StoreOptions, total=False):
    """Options of every algorithm that also runs on a cluster or a store.

    A store keeps vertices, with their edges, as records; no edges stream from shards. The results
    are the same; sums agree within 1e-9. In `mode` "async" there are no supersteps.
    `stats["store_figures"]` and `stats["cache"]` describe the work of store and cache.
    """


class AlgorithmOptions(DividedOptions, AskedOptions, total=False):
    """Options of all algorithms."""


class ProgramStepOptions(StepOptions, ConvergenceOptions, total=False):
    """Options of a program in Python that its supersteps depend on."""


class ProgramOptions(ProgramStepOptions, StoreOptions, DividedOptions, total=False):
    """Options of a program in Python, besides its store."""


class SizeOptions(TypedDict, total=False):
    """The sizes of a graph that does not exist yet."""

    vertices: Annotated[
        float | None,
        Option(
            "Number of vertices that have edges, for example 11.5e9.", most=MAX_COUNTED, whole=True
        ),
    ]
    edges: Annotated[
        float | None, Option("Number of edges, for example 128e9.", most=MAX_COUNTED, whole=True)
    ]
    undirected: Annotated[bool, Option("Edges of this graph have no direction.", default=False)]
    bytes_per_edge: Annotated[
        float | None,
        Option("Bytes of an edge on disk; None: a typical figure for this size."),
    ]


class UnbuiltOptions(SizeOptions, IndexOptions, total=False):
    """A graph that does not exist yet, with its indexes."""


#: `N` workers of a forecast, each on its own machine, or `local:N`, all on this one.
_PLANNED = re.compile(r"(local:)?([1-9][0-9]*)")


def planned_cluster(cluster: Any, name: str = "cluster") -> dict[str, Any] | None:
    """Return the workers of a cluster to plan for, and whether they share this machine, or None.

    Raises:
        UsageError: `cluster` is neither a number of workers nor local:N.
    """
    if cluster is None:
        return None
    match = _PLANNED.fullmatch(str(cluster))
    if match is None or int(match[2]) > MAX_WORKERS:
        raise UsageError(
            f"{name} must be a number of workers from 1 to {MAX_WORKERS:,}, or local:N, not "
            f"{shortened(cluster)}"
        )
    return {"workers": int(match[2]), "together": match[1] is not None}


class PlannedClusterOptions(TypedDict, total=False):
    """The cluster that a forecast is for."""

    cluster: Annotated[
        int | str | None,
        Option(
            "Forecast a run on a cluster of N workers, each on a machine like this one, or "
            '"local:N" for N workers on this machine. `threads`, `budget` and all figures are '
            "those of one worker, the one with the most work. None: one process.",
            help="forecast a run on a cluster of N workers, each on a machine like this one, or "
            "local:N for N workers on this machine; --threads, --budget and all figures are those "
            "of one worker, the one with the most work",
            metavar="N",
            check=planned_cluster,
        ),
    ]


class MachineOptions(TypedDict, total=False):
    """The machine that a forecast is for."""

    network: Annotated[
        float | None,
        Option(
            "Bandwidth of the network between the machines of a cluster in Gbit/s; None: 10.",
            metavar="Gbit/s",
        ),
    ]
    disk_bandwidth: Annotated[
        float | None,
        Option("Bandwidth of the disk in GB/s; None: measured here.", metavar="GB/s"),
    ]
    memory_bandwidth: Annotated[
        float | None,
        Option("Bandwidth of memory in GB/s; None: measured here.", metavar="GB/s"),
    ]


class OutputOptions(TypedDict, total=False):
    """The output that a forecast is for."""

    output: Annotated[
        str | None,
        Option(
            "The .parquet, .csv or .arrow file that the run would write: the forecast includes the "
            "memory of its writer. Nothing is written. None: no output, or CSV.",
            help="the .parquet, .csv or .arrow file that the run would write: the forecast "
            "includes the memory of its writer; nothing is written",
            metavar="OUT",
            short="-o",
        ),
    ]


class PlanOptions(
    UnbuiltOptions,
    AskedOptions,
    ResourceOptions,
    PlannedClusterOptions,
    MachineOptions,
    OutputOptions,
    total=False,
):
    """Options of a forecast."""


#: Sentences for docstrings.
RUN = {"graph": "A `Graph`, or the path of a graph directory or of an input file."} | texts(
    AlgorithmOptions
)
