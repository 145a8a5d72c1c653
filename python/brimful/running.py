"""Runs of programs in Python: interpreted, compiled, or with arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, NamedTuple, Unpack, overload

import brimful
from brimful.catalog import cluster_of, program_store
from brimful.containers.bags import serializer_of
from brimful.errors import UsageError
from brimful.identity import identity_of
from brimful.ids import VertexId, vertex_id
from brimful.interpreted import InterpretedRun
from brimful.io.source import input_files
from brimful.kernels import program as kernels
from brimful.kernels.methods import NotCompilable
from brimful.options.checks import flag, word
from brimful.options.described import described
from brimful.options.runs import (
    RUN,
    CheckpointOptions,
    ProgramOptions,
    StoreOptions,
)
from brimful.options.table import checked, picked
from brimful.packages import bags, opening
from brimful.pregel.program import Pregel
from brimful.program import Program
from brimful.program_checks import check_program
from brimful.reporting import shows_progress
from brimful.result import run_divided
from brimful.states import States
from brimful.tracing import Trace
from brimful.wording import shortened

#: Initial states of a run on a kept store: computed again, or those of the last run.
Start = Literal["initial", "kept"]
#: Serializers that write no lists.
_TEXT_ONLY = ("str", "bytes")


class Storage(NamedTuple):
    """The records of the vertices of an interpreted program.

    Attributes:
        serializer: Serializer of the records.
        store: Kind or URL of the store.
        start: Initial states, if the store keeps the vertices; None: it does not.
    """

    serializer: str | bags.Serializer
    store: str
    start: Start | None


@overload
def run(
    graph: opening.GraphLike,
    program: Program | Pregel,
    *,
    serializer: Literal["json", "str", "bytes", "pickle"] | bags.Serializer = ...,
    store: str | None = ...,
    keep: bool = ...,
    on: Literal["store"] | None = ...,
    compile: Literal["never"] | None = ...,
    trace: Collection[VertexId] = ...,
    **options: Unpack[ProgramOptions],
) -> States: ...
@overload
def run(
    graph: opening.GraphLike,
    program: Program | Pregel,
    *,
    store: str | None = ...,
    on: Literal["shards", "store"] | None = ...,
    compile: Literal["numba", "numpy"],
    **options: Unpack[ProgramOptions],
) -> brimful.Result: ...
@overload
def run(
    graph: opening.GraphLike,
    program: Program | Pregel,
    *,
    on: Literal["shards"],
    compile: Literal["auto", "numba", "numpy", "never"] | None = ...,
    **options: Unpack[ProgramOptions],
) -> brimful.Result: ...
@overload
def run(
    graph: opening.GraphLike,
    program: Program | Pregel,
    *,
    serializer: Literal["json", "str", "bytes", "pickle"] | bags.Serializer = ...,
    store: str | None = ...,
    on: Literal["store"] | None = ...,
    compile: Literal["auto"],
    trace: Collection[VertexId] = ...,
    **options: Unpack[ProgramOptions],
) -> States | brimful.Result: ...
@shows_progress
@described(RUN, "graph", "corrupt", "io")
def run(
    graph: opening.GraphLike,
    program: Program | Pregel,
    *,
    serializer: Literal["json", "str", "bytes", "pickle"] | bags.Serializer = "json",
    store: str | None = None,
    keep: bool = False,
    on: Literal["shards", "store"] | None = None,
    compile: Literal["auto", "numba", "numpy", "never"] | None = None,
    trace: Collection[VertexId] = (),
    **options: Unpack[ProgramOptions],
) -> States | brimful.Result:
    """Run a program written in Python on the vertices of a graph.

    One thread makes all calls, about a million a second, which suits graphs of about ten million
    edges. `threads` is for the import of `graph`. The result keeps ids in memory, within `budget`,
    and also states, except those of `file` and `kv`, which stay in the files of the run. On the
    shards of the graph, methods are compiled, or called with arrays of NumPy: nearly as fast as the
    algorithms of this package, and within any budget. The result is then a `Result` with the column
    `state`, or `Records` with one for each field. `stats["variant"]` is "compiled", "arrays" or
    "interpreted", and `stats["why"]` the reason for interpretation.

    Objects of the program are a part of `budget`: the run measures the memory of the process while
    it creates them. A `BudgetError` in the middle of a run names the stores that need less.

    On a `cluster` each worker makes the calls for its part of the vertices; a program on shards is
    compiled there. On stores `mode="async"`, `keep`, `trace`, `partitioner="hash"` and checkpoints
    do not apply, and the states of all vertices are then in this process, within `budget`.
    Interpreted programs need objects that can be pickled. Sums of floats that `combine` or an
    aggregator makes may differ from those of one process in their last digits; all else is equal.

    Checkpoints hold whole vertices. A resumed run must have the same graph, class, `serializer`,
    `weighted`, `tolerance` and `mode`, the same code of the methods of the class, and the same
    values of all attributes of class and instance except those whose names begin with an
    underscore: states may not depend on these. Functions outside the class are not compared.

    Args:
        program: An instance of a class derived from `Program` or `Pregel`.
        max_supersteps: Stop after this many supersteps; None: 10,000, with a warning. `mode`
            "async" has none.
        tolerance: Stop, with `stats["reason"]` "converged within the tolerance", after a superstep
            in which no state changed by more than this; for states of `state_type`, no field of
            one. States must be numbers. None or 0: never stop early. `mode` "async" and `Pregel`
            have none.
        mode: "sync" runs in supersteps; "async" has no supersteps, and intervals of its checkpoints
            are in seconds.
        weighted: `signal` receives the weights of edges, else 1.
        serializer: How states become bytes in a store, and in checkpoints: "json" (plain objects:
            None, numbers, strings, lists, tuples, frozensets, and dicts of strings), "str",
            "bytes", "pickle", or an object with `dumps` and `loads`. The store "memory" needs none.
            **Pickle runs code from the bytes it reads**: name it only for stores that you trust.
        store: The place of the vertices of a program that is not on shards: "memory" (default; live
            objects, never serialized), "bytes" (records in memory), "file:PATH" or "kv:PATH"
            (records in a folder within PATH, which the run removes; "file:P1,P2" divides them among
            two disks), or the URL of a database.
        keep: The vertices stay in `store`, where `VertexStore` opens them: in the folder of
            "file:PATH" or "kv:PATH", or on a server whose URL has the option `folder=PATH`. If they
            are there already, nothing is loaded: `initial_state`, or `initial_value` of `Pregel`,
            sees the state of the last run as `vertex.state`.
        on: "shards" streams the edges of the graph directory, "store" loads vertices with their
            edges into `store`; None: the other options decide. A program on shards, or compiled,
            has a `combiner`, signals of one number each, states of one number or with the fields of
            `state_type`, and a `signal` that uses the weight only alone or as in `value + weight`,
            `value * weight`, `min(value, weight)` or `max(value, weight)`. A compiled Pregel
            program has a `combine` like `left + right`, or any `combine` of messages with the
            fields of `message_type`, and sends one message along all edges.
        compile: "numba" compiles the methods, or raises an error with the reason (`pip install
            "brimful[numba]"`). "auto" compiles them if possible, and if no option needs calls.
            "numpy" calls the methods with arrays: fields of vertices and signals are those of up to
            1,024 vertices. "never" compiles nothing, and is "numpy" on "shards". None: "numba" on
            "shards", else "never".
        trace: Vertices whose calls are recorded, each with superstep, signals, state and score:
            the table `States.trace`.

    Returns:
        The states, a mapping from vertices: `States`, or the `Result` of a compiled program.

    Raises:
        ProgramError: A method raised an exception (`__cause__`), or the serializer cannot write an
            object; `vertex` is the vertex.
        UsageError: The store, cache or serializer is unknown; `weighted`, and the graph has no
            weights; the program cannot be compiled; or an option is not for a cluster.
        BudgetError: The budget is too small; the message names one that works.

    >>> import brimful as bf, pyarrow as pa
    >>> class Longest(bf.Program):
    ...     def initial_state(self, vertex):
    ...         return [vertex.id]
    ...     def signal(self, source, target, weight):
    ...         return source.state if target not in source.state else None
    ...     def collect(self, vertex, signals):
    ...         path = max(signals, key=len)
    ...         return [*path, vertex.id] if len(path) >= len(vertex.state) else vertex.state
    >>> with bf.Graph.from_arrow(pa.table({"source": [1, 2], "target": [2, 3]})) as graph:
    ...     states = bf.run(graph, Longest(), store="bytes", trace=[1])
    >>> states[3], states.trace["call"].to_pylist()
    ([1, 2, 3], ['initial_state', 'signal'])
    """
    from brimful.opening import as_graph
    from brimful.resources import Resources

    check_program(program)
    _check_choice("on", on, ("shards", "store"))
    _check_choice("compile", compile, ("auto", "numba", "numpy", "never"))
    if isinstance(trace, str | bytes) or not isinstance(trace, Iterable):
        raise UsageError(f"trace must be a sequence of ids, not {shortened(trace)}")
    followed = [vertex_id(vertex) for vertex in trace]
    chosen = checked(ProgramOptions, options, "run", ("serializer", "store", "keep"))
    calls = {
        "serializer": serializer != "json",
        "keep": flag(keep, "keep"),
        "trace": bool(followed),
    }
    stores = {"store": store, **picked(StoreOptions, chosen)}
    resources = Resources.of(chosen)
    opened = as_graph(graph, resources)
    for_stores = [f"{name}=" for name, value in stores.items() if value is not None]
    for_stores += ['on="store"'] * (on == "store")
    for_calls = [f"{name}=" for name, is_given in calls.items() if is_given]
    why = _interpreted(on, compile, for_stores, for_calls)
    if why is None:
        kernel = _kernel(opened, program, chosen, on=on, compile=compile)
        if isinstance(kernel, str):
            why = kernel
        else:
            if for_stores and cluster_of(chosen) is not None:
                _check_cluster(None, (), chosen)
            location = program_store(store or ("memory" if for_stores else None), chosen)
            is_compiled = compile not in ("numpy", "never")
            if for_stores and not is_compiled and chosen["mode"] == "async":
                raise UsageError(
                    'arrays of vertices on a store need supersteps; leave mode="async" or '
                    'compile="numpy" out'
                )
            return kernels.run(opened, program, kernel, location, chosen, is_compiled=is_compiled)
    storage = Storage(serializer, store or "memory", "initial" if keep else None)
    return interpreted(opened, program, storage, followed, chosen, why)


def interpreted(
    graph: brimful.Graph,
    program: Program | Pregel,
    storage: Storage,
    followed: list[int | str],
    chosen: Mapping[str, Any],
    why: str,
) -> States:
    """Run a program by calls of its methods, with options that were checked.

    `followed` are the vertices of a trace, and `why` says why the program is interpreted. With
    `process_budget` among the options the budget covers the whole process.

    Raises:
        UsageError, ProgramError, BudgetError: As `run`.
    """
    from brimful.resources import Resources

    serializer, store, start = storage
    serializing = serializer_of(serializer)
    # The states of the engine are then those of Pregel, which begin with the value.
    is_pregel = isinstance(program, Pregel) or program.mutates
    if is_pregel and serializing[0] in _TEXT_ONLY:
        noun = "Pregel vertex" if isinstance(program, Pregel) else "vertex of a changing graph"
        raise UsageError(
            f'serializer="{serializing[0]}" writes one text or bytes object, and the record of a '
            f'{noun} has more than its value; use "json" or "pickle"'
        )
    if start is not None:
        _check_kept(graph, program, store, chosen)
    location = program_store(store, chosen, keeps=start is not None)
    cluster = cluster_of(chosen)
    if cluster is not None:
        _check_cluster(start, followed, chosen)
    process_budget = chosen.get("process_budget", False)
    resources = dataclasses.replace(Resources.of(chosen), process_budget=process_budget)
    saving = chosen["checkpoint_every"] is not None or chosen["resume"]
    identity = identity_of(program, serializing[0], chosen["tolerance"], whole=saving)
    trace = Trace(followed, graph.native.id_type)
    for vertex in followed:
        # Raises before the run if the graph lacks the vertex.
        graph.degree(vertex)
    work = InterpretedRun(
        program, serializing, chosen, location, identity, start=start, trace=trace
    )
    resources = resources.on(graph)
    if cluster is not None:
        work.pickle()
        # One thread of a worker makes all calls.
        resources = dataclasses.replace(resources, threads=1)
    checkpoints = picked(CheckpointOptions, chosen)
    opener = location["opener"]
    states = run_divided(graph.native, work, cluster, checkpoints, resources, opener)
    return States(
        states,
        why,
        is_pregel=is_pregel and start is None,
        # A program only signals in the first superstep of Pregel, and only collects in the last.
        has_one_more=is_pregel and isinstance(program, Program),
        trace=trace.to_arrow if followed else None,
        record=work.record,
        aggregates=work.aggregates,
        inputs=input_files(graph.native),
    )


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a value that is neither None nor one of some words.

    Raises:
        UsageError: The value is something else.
    """
    if value is not None:
        word(value, name, choices)


def _interpreted(
    on: str | None, compile: str | None, for_stores: list[str], for_calls: list[str]
) -> str | None:
    """Return the reason for interpretation in the options; None if a kernel may run the program.

    `for_stores` are options that need a store, `for_calls` those that need calls of the methods.

    Raises:
        UsageError: Two options contradict each other.
    """
    if on == "shards" and for_stores:
        raise UsageError(f'{for_stores[0]} needs a store; leave it or on="shards" out')
    if compile in ("numba", "numpy") or on == "shards":
        if for_calls:
            raise UsageError(
                f'{for_calls[0]} is for interpreted programs; leave it out, or pass on="store" '
                "without compile="
            )
        return None
    if compile == "auto":
        return f"the run has {' and '.join(for_calls)}" if for_calls else None
    given = for_stores + for_calls
    return f"the run has {' and '.join(given)}" if given else 'the run has no compile="auto"'


def _kernel(
    graph: brimful.Graph,
    program: Program | Pregel,
    chosen: Mapping[str, Any],
    *,
    on: str | None,
    compile: str | None,
) -> kernels.Kernel | str:
    """Return the kernel of a program, or the reason why it is interpreted.

    Raises:
        UsageError: The program has no kernel, and the run asks for one.
    """
    is_compiled = compile not in ("numpy", "never")
    try:
        return kernels.kernel_of(graph, program, chosen, is_compiled=is_compiled)
    except NotCompilable as error:
        if compile == "auto" and on != "shards":
            return error.reason
        instead = 'compile="never"' if on != "shards" else 'on="store"'
        if on == "shards" and compile in ("numba", "numpy"):
            instead += ' with compile="never"'
        text = f"{error.reason}. {error.remedy}, or pass {instead}."
        # Tracebacks show the error of Numba or of a method, if there is one.
        raise UsageError(text) from error.__cause__


def _check_cluster(
    start: str | None,
    followed: Collection[int | str],
    chosen: Mapping[str, Any],
) -> None:
    """Refuse options that a program on stores does not take on a cluster.

    Raises:
        UsageError: Such an option is given.
    """
    if chosen["mode"] == "async":
        raise UsageError(
            'a program on stores needs supersteps on a cluster; leave mode="async" or cluster= out'
        )
    if start is not None:
        raise UsageError("the workers of a cluster keep no vertices; leave keep= or cluster= out")
    if followed:
        raise UsageError("a run on a cluster has no trace; leave trace= or cluster= out")
    if chosen["checkpoint_every"] is not None or chosen["resume"]:
        raise UsageError(
            "a program on stores has no checkpoints on a cluster, and begins again after a loss; "
            "leave checkpoint_every= and resume=, or cluster=, out"
        )
    if chosen["partitioner"] == "hash":
        raise UsageError(
            "a cluster divides the vertices among its workers by ranges; leave partitioner= or "
            "cluster= out"
        )


def _check_kept(
    graph: brimful.Graph, program: Program | Pregel, store: str, chosen: Mapping[str, Any]
) -> None:
    """Refuse a run whose vertices cannot be kept.

    Raises:
        UsageError: States of the program are records, the run makes checkpoints, the graph is
            temporary, or the store is in a graph.
    """
    from brimful.stores.kept import check_outside

    if isinstance(program, Pregel) and program.value_type is not None:
        raise UsageError(
            "vertices whose values are records cannot be kept in a store; leave value_type of the "
            "program, or keep=, out"
        )
    if isinstance(program, Program) and (program.state_type is not None or program.aggregators):
        raise UsageError(
            "vertices whose states are records, or with aggregators, cannot be kept in a store; "
            "leave state_type and aggregators of the program, or keep=, out"
        )
    if isinstance(program, Program) and program.mutates:
        raise UsageError(
            f"{type(program).__name__} has mutates, and vertices that it changes are not kept; "
            "write it as a bf.Pregel, or leave keep= out"
        )
    if chosen["checkpoint_every"] is not None or chosen["resume"]:
        raise UsageError("a kept store has no checkpoints; leave out checkpoint_every= and resume=")
    if chosen["partitioner"] == "hash":
        raise UsageError("a kept store divides its vertices by ranges; leave partitioner= out")
    if graph.is_temporary:
        raise UsageError(
            "kept vertices need the ids in the directory of the graph, which is temporary; make "
            "the graph with path= to keep the directory"
        )
    check_outside(store)
