"""Runs of programs in Python: interpreted, compiled, or with arrays."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from brimful.adapted import Totals, adapted, totals_of
from brimful.catalog import cluster_of, opened, stored
from brimful.containers.bags import serializer_of
from brimful.errors import UsageError
from brimful.identity import identity_of
from brimful.kernels import program as kernels
from brimful.kernels.methods import Unfit
from brimful.options.described import described
from brimful.options.runs import (
    RUN,
    CheckpointOptions,
    ProgramOptions,
    StepOptions,
    StoreOptions,
)
from brimful.options.table import WorkOptions, checked, picked
from brimful.per_vertex import vertex_id
from brimful.pregel.adapter import PregelAdapter
from brimful.pregel.program import Pregel
from brimful.program import Program, States, thresholds_of
from brimful.record import record_of
from brimful.reporting import shows_progress
from brimful.tracing import Trace
from brimful.wording import shortened

if TYPE_CHECKING:
    from brimful.containers.bags import Serializer
    from brimful.graph import Graph
    from brimful.opening import GraphLike
    from brimful.result import Result

#: Initial states of a run on a kept store: computed anew, or those of the last run.
Start = Literal["initial", "kept"]
#: Serializer and store of an interpreted program, and its start if the store keeps the vertices.
Where = tuple["str | Serializer", str, "Start | None"]


@overload
def run(
    graph: GraphLike,
    program: Program | Pregel,
    *,
    serializer: Literal["json", "str", "bytes", "pickle"] | Serializer = ...,
    store: str | None = ...,
    keep: bool = ...,
    on: Literal["store"] | None = ...,
    compile: Literal["never"] | None = ...,
    trace: Collection[int | str] = ...,
    **options: Unpack[ProgramOptions],
) -> States: ...
@overload
def run(
    graph: GraphLike,
    program: Program,
    *,
    store: str | None = ...,
    on: Literal["shards", "store"] | None = ...,
    compile: Literal["numba"],
    **options: Unpack[ProgramOptions],
) -> Result: ...
@overload
def run(
    graph: GraphLike,
    program: Program,
    *,
    on: Literal["shards"],
    compile: Literal["auto", "numba", "never"] | None = ...,
    **options: Unpack[ProgramOptions],
) -> Result: ...
@overload
def run(
    graph: GraphLike,
    program: Program | Pregel,
    *,
    serializer: Literal["json", "str", "bytes", "pickle"] | Serializer = ...,
    store: str | None = ...,
    on: Literal["store"] | None = ...,
    compile: Literal["auto"],
    trace: Collection[int | str] = ...,
    **options: Unpack[ProgramOptions],
) -> States | Result: ...
@shows_progress
@described(RUN, "graph", "corrupt", "io")
def run(
    graph: GraphLike,
    program: Program | Pregel,
    *,
    serializer: Literal["json", "str", "bytes", "pickle"] | Serializer = "json",
    store: str | None = None,
    keep: bool = False,
    on: Literal["shards", "store"] | None = None,
    compile: Literal["auto", "numba", "never"] | None = None,
    trace: Collection[int | str] = (),
    **options: Unpack[ProgramOptions],
) -> States | Result:
    """Run a program written in Python on the vertices of a graph.

    One thread makes all calls, about a million a second, which suits graphs of about ten million
    edges. `threads` is for the import of `graph`. The result keeps ids in memory, within `budget`,
    and also states, except those of `file` and `kv`, which stay in the files of the run. On the
    shards of the graph, methods are compiled, or called with arrays of NumPy: nearly as fast as the
    algorithms of this package, and in any budget. The result is then a `Result` with the column
    `state`, or `Records` with one for each field. `stats["variant"]` is "compiled", "arrays" or
    "interpreted", and `stats["why"]` the reason for interpretation.

    Objects of the program are a part of `budget`: the run measures the memory of the process while
    it creates them. A `BudgetError` in the middle of a run names the stores that need less.

    Checkpoints hold whole vertices. A resumed run must have the same graph, class, `serializer`,
    `weighted` and `mode`, the same code of the methods of the class, and the same values of all
    attributes of class and instance except those whose names begin with an underscore: states may
    not depend on these. Functions outside the class are not compared.

    Args:
        program: An instance of a class derived from `Program` or `Pregel`.
        max_supersteps: Stop after this many supersteps; None: 10,000, with a warning. `mode`
            "async" has none.
        mode: "sync" runs in supersteps; "async" has no supersteps, and intervals of its checkpoints
            are in seconds.
        weighted: `signal` receives the weights of edges, else 1.
        serializer: How states become bytes in a store, and in checkpoints: "json" (refuses tuples,
            and dicts whose keys are not strings), "str", "bytes", "pickle", or an object with
            `dumps` and `loads`. The store "memory" needs none. **Pickle runs code from the bytes it
            reads**: name it only for stores that you trust.
        store: The place of the vertices of an interpreted or compiled program: "memory" (default;
            live objects, never serialized), "bytes" (records in memory), "file:PATH" or "kv:PATH"
            (records in a folder within PATH, which the run removes; "file:P1,P2" divides them among
            two disks), or the URL of a database.
        keep: The vertices stay in the folder of `store`, "file:PATH" or "kv:PATH", where
            `VertexStore` opens them. If they are there already, nothing is loaded: `initial_state`
            sees the state of the last run as `vertex.state`.
        on: "shards" streams the edges of the graph directory, "store" loads vertices with their
            edges into `store`; None: the other options decide. A program on shards, or compiled,
            has a `combiner`, signals of one number each, states of one number or with the fields of
            `state_type`, and a `signal` that uses the weight only as in `value + weight`, `value *
            weight`, `min(value, weight)` or `max(value, weight)`.
        compile: "numba" compiles the methods, or raises an error with the reason (`pip install
            "brimful[numba]"`). "auto" compiles them if possible, and if no option needs calls.
            "never" compiles nothing: on "shards", fields of vertices and signals are then arrays of
            many vertices. None: "numba" on "shards", else "never".
        trace: Vertices whose calls are recorded, each with superstep, signals, state and score:
            the table `States.trace`.

    Returns:
        The states, a mapping from vertices: `States`, or the `Result` of a compiled program.

    Raises:
        ProgramError: A method raised an exception (`__cause__`), or the serializer cannot write an
            object; `vertex` is the vertex.
        UsageError: The store, cache or serializer is unknown; `weighted`, and the graph has no
            weights; or the program cannot be compiled.
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
    from brimful.io.ingest import Resources
    from brimful.opening import as_graph

    if not isinstance(program, Program | Pregel):
        raise UsageError(
            "program must be an instance of a class derived from brimful.Program or "
            f"brimful.Pregel, not {shortened(program)}"
        )
    _check_choice("on", on, ("shards", "store"))
    _check_choice("compile", compile, ("auto", "numba", "never"))
    followed = [vertex_id(vertex) for vertex in trace]
    chosen = checked(ProgramOptions, options, "run", ("serializer", "store", "keep"))
    calls = {
        "serializer": serializer != "json",
        "keep": keep,
        "trace": bool(followed),
    }
    stores = {"store": store, **picked(StoreOptions, chosen)}
    resources = Resources(**picked(WorkOptions, chosen))
    known = as_graph(graph, resources)
    for_stores = [f"{name}=" for name, value in stores.items() if value is not None]
    for_stores += ['on="store"'] * (on == "store")
    for_calls = [f"{name}=" for name, is_given in calls.items() if is_given]
    why = _interpreted(on, compile, for_stores, for_calls)
    if why is None:
        kernel = _kernel(known, program, chosen, on=on, compile=compile)
        if isinstance(kernel, str):
            why = kernel
        else:
            assert isinstance(program, Program), "others have no kernel"
            if for_stores and cluster_of(chosen) is not None:
                raise UsageError(
                    f"a program on a cluster runs on shards; leave {for_stores[0]} or cluster= out"
                )
            location = stored(store or ("memory" if for_stores else None), chosen)
            is_compiled = compile != "never"
            return kernels.run(known, program, kernel, location, chosen, is_compiled=is_compiled)
    if cluster_of(chosen) is not None:
        raise UsageError(
            f'a program on a cluster runs on shards, and {why}; pass on="shards" without a store, '
            "or leave cluster= out"
        )
    where: Where = (serializer, store or "memory", "initial" if keep else None)
    return interpreted(known, program, where, followed, chosen, why)


def interpreted(
    known: Graph,
    program: Program | Pregel,
    where: Where,
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
    from brimful import _native
    from brimful.io.ingest import Resources

    serializer, store, start = where
    name, dumps, loads = serializer_of(serializer)
    if start is not None:
        _check_kept(known, program, chosen)
    location = stored(store, chosen)
    process_budget = chosen.get("process_budget", False)
    resources = Resources(**picked(WorkOptions, chosen), process_budget=process_budget)
    limits = vars(resources.on(known))
    # One thread makes all calls, because only one at a time can hold the interpreter.
    del limits["threads"]
    saving = chosen["checkpoint_every"] is not None or chosen["resume"]
    identity = identity_of(program, name, whole=saving)
    noted = Trace(followed)
    for vertex in followed:
        # Raises before the run if the graph lacks the vertex.
        known.degree(vertex)
    adapter = totals = record = None
    if isinstance(program, Pregel):
        adapter = PregelAdapter(program, known.vertices)
        adapter.check(chosen["mode"])
        called = noted.follow(adapter)
    else:
        record = record_of(program)
        own, totals = totals_of(program, chosen["mode"])
        called = adapted(noted.follow(own), record, totals)
    written = checked_dumps(name, dumps)
    of_states = (written, loads) if record is None else record.serializer(written, loads)
    steps = adapter or totals
    extra_state = _extra_state(steps, written, loads) if saving and steps else None
    with opened(location):
        states = _native.run_program(
            known.native,
            called,
            delivery=called.delivery,
            thresholds=thresholds_of(called),
            dumps=of_states[0],
            loads=of_states[1],
            keeps_numbers=name in ("json", "pickle"),
            next_superstep=steps.next_superstep if steps else None,
            extra_state=extra_state,
            addresses=adapter is not None,
            creates=adapter is not None and adapter.creates,
            **picked(StepOptions, chosen),
            store=location,
            keeping=None if start is None else (name, start == "kept"),
            **picked(CheckpointOptions, chosen),
            identity=identity,
            **limits,
        )
    if steps:
        steps.end()
    return States(
        states,
        why,
        is_pregel=adapter is not None,
        trace=noted.to_arrow if followed else None,
        record=record,
        aggregates=None if totals is None else totals.values(),
    )


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a value that is neither None nor one of some words.

    Raises:
        UsageError: It is something else.
    """
    if value is not None and value not in choices:
        known = " or ".join(f'"{choice}"' for choice in choices)
        raise UsageError(f"{name} must be {known}, not {shortened(value)}")


def _interpreted(
    on: str | None, compile: str | None, for_stores: list[str], for_calls: list[str]
) -> str | None:
    """Return why the options require interpretation; None if a kernel may run the program.

    `for_stores` are options that need a store, `for_calls` those that need calls of the methods.

    Raises:
        UsageError: Two options contradict each other.
    """
    if on == "shards" and for_stores:
        raise UsageError(f"shards are no store; leave {for_stores[0]} out")
    if compile == "numba" or on == "shards":
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
    graph: Graph,
    program: Program | Pregel,
    chosen: Mapping[str, Any],
    *,
    on: str | None,
    compile: str | None,
) -> kernels.Kernel | str:
    """Return the kernel of a program, or why it has none and is interpreted.

    Raises:
        UsageError: The program has no kernel, and the run asks for one.
    """
    is_compiled = compile != "never"
    try:
        return kernels.kernel_of(graph, program, chosen, is_compiled=is_compiled)
    except Unfit as unfit:
        if compile == "auto" and on is None:
            return unfit.reason
        instead = 'compile="never"' if on != "shards" else 'on="store"'
        if on == "shards" and compile == "numba":
            instead += ' with compile="never"'
        raise UsageError(f"{unfit.reason}. {unfit.remedy}, or pass {instead}.") from unfit


def _extra_state(
    steps: PregelAdapter | Totals, dumps: Callable[[Any], bytes], loads: Callable[[bytes], Any]
) -> tuple[Callable[[], str], Callable[[str], None]] | None:
    """Return the calls by which checkpoints save and restore the data apart from the vertices.

    Raises:
        UsageError: The serializer cannot write it.
    """
    if isinstance(steps, PregelAdapter) and not steps.has_extra_state:
        return None

    def save() -> str:
        return base64.b64encode(dumps(steps.saved())).decode()

    def restore(text: str) -> None:
        steps.restore(loads(base64.b64decode(text)))

    try:
        save()
    except TypeError as error:
        raise UsageError(
            f"aggregators and worker context cannot be in a checkpoint: {error}"
        ) from error
    return save, restore


def _check_kept(graph: Graph, program: Program | Pregel, chosen: Mapping[str, Any]) -> None:
    """Refuse a run whose vertices cannot be kept.

    Raises:
        UsageError: The program is one of Pregel, the run makes checkpoints, or the graph is
            temporary.
    """
    if isinstance(program, Pregel):
        raise UsageError(
            "vertices of Pregel have messages and votes besides their values, and cannot be kept; "
            "leave keep= out, or write the program as a brimful.Program"
        )
    if program.state_type is not None or program.aggregators:
        raise UsageError(
            "vertices whose states are records, or with aggregators, cannot be kept; leave out "
            "keep=, or state_type and aggregators of the program"
        )
    if chosen["checkpoint_every"] is not None or chosen["resume"]:
        raise UsageError("a kept store has no checkpoints; leave out checkpoint_every= and resume=")
    if chosen["partitioner"] == "hash":
        raise UsageError("a kept store divides its vertices by ranges; leave partitioner= out")
    if graph.is_temporary:
        raise UsageError(
            "the directory of the graph is removed with it, and kept vertices need its ids; make "
            "the graph with path= to keep the directory"
        )


def checked_dumps(name: str, dumps: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """Return `dumps` with errors that name the type of the object."""

    def write(value: Any) -> bytes:
        try:
            data = dumps(value)
        except Exception as error:
            raise TypeError(
                f"the serializer {name} cannot write {type(value).__name__} ({error}); return "
                "another type, or choose another serializer"
            ) from error
        # JSON turns tuples into lists, so results could differ from those of live objects.
        if name == "json" and json.loads(data) != value:
            raise TypeError(
                f"JSON does not keep {shortened(value)}: tuples become lists, and keys of a dict "
                'become strings; return another type, or choose serializer="pickle"'
            )
        return data

    return write
