"""Runs of programs in Python: `run` chooses how the methods are called."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from brimful.catalog import opened, place
from brimful.containers.bags import serializer_of
from brimful.errors import UsageError
from brimful.identity import identity_of
from brimful.options.described import described
from brimful.options.runs import (
    RUN,
    CheckpointOptions,
    ProgramOptions,
    StepOptions,
    StoreOptions,
    store_url,
)
from brimful.options.table import WorkOptions, checked, picked
from brimful.per_vertex import vertex_id
from brimful.pregel.adapter import PregelAdapter
from brimful.pregel.program import Pregel
from brimful.program import Program, States, combining, thresholds_of
from brimful.reporting import shows_progress
from brimful.tracing import Trace
from brimful.wording import shortened

if TYPE_CHECKING:
    from brimful.containers.bags import Serializer
    from brimful.graph import GraphLike
    from brimful.result import Result

#: Where a run on vertices that are in a store already begins: their first or their last states.
Start = Literal["initial", "kept"]


@overload
def run(
    graph: GraphLike,
    program: Program | Pregel,
    *,
    serializer: Literal["json", "str", "bytes", "pickle"] | Serializer = ...,
    store: str = ...,
    keep: bool = ...,
    compile: Literal["never"] = ...,
    trace: Collection[int | str] = ...,
    **options: Unpack[ProgramOptions],
) -> States: ...
@overload
def run(
    graph: GraphLike,
    program: Program,
    *,
    serializer: Literal["json", "str", "bytes", "pickle"] | Serializer = ...,
    store: str = ...,
    compile: Literal["numba"],
    **options: Unpack[ProgramOptions],
) -> Result: ...
@shows_progress
@described(RUN, "graph", "corrupt", "io")
def run(
    graph: GraphLike,
    program: Program | Pregel,
    *,
    serializer: Literal["json", "str", "bytes", "pickle"] | Serializer = "json",
    store: str = "memory",
    keep: bool = False,
    compile: Literal["numba", "never"] = "never",
    trace: Collection[int | str] = (),
    **options: Unpack[ProgramOptions],
) -> States | Result:
    """Run a program written in Python on the vertices of a graph.

    One thread makes all calls, some million a second: for graphs of some ten million edges.
    `threads` is for the import of `graph`. Ids come back in memory, within `budget`, and so do
    states, except from `file` and `kv`, where they stay in the files of the run. With `compile`
    "numba" the methods run on the disk path instead: on all threads, nearly as fast as the
    algorithms of this package, and in any budget. The result is then a `Result` with the column
    `state`.

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
        mode: "sync" runs in supersteps; "async" has no supersteps, and its checkpoints come by the
            second.
        weighted: `signal` receives the weights of edges, else 1.
        serializer: How states become bytes in a store, and in checkpoints: "json" (refuses tuples,
            and dicts whose keys are not strings), "str", "bytes", "pickle", or an object with
            `dumps` and `loads`. The store "memory" needs none. **Pickle runs code from the bytes it
            reads**: name it only for stores that you trust.
        store: Where vertices lie: "memory" (live objects, never serialized), "bytes" (records in
            memory), "file:PATH" or "kv:PATH" (records in a folder within PATH, which the run
            removes; "file:P1,P2" divides them among two disks).
        keep: The vertices stay in the folder of `store`, "file:PATH" or "kv:PATH", where
            `VertexStore` opens them. If they are there already, nothing is loaded: `initial_state`
            sees the state of the last run as `vertex.state`.
        compile: "never" interprets the methods; "numba" compiles them (`pip install
            "brimful[numba]"`). A compiled program has a `combiner`, states and signals of one
            number each, and a `signal` that uses the weight only as in `value + weight`, `value *
            weight`, `min(value, weight)` or `max(value, weight)`. It uses no store.
        trace: Vertices whose calls are recorded, each with superstep, signals, state and score:
            the table `States.trace`.

    Returns:
        The states, a mapping from vertices.

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
    if not isinstance(program, Program | Pregel):
        raise UsageError(
            "program must be an instance of a class derived from brimful.Program or "
            f"brimful.Pregel, not {shortened(program)}"
        )
    if compile not in ("numba", "never"):
        raise UsageError(f'compile must be "numba" or "never", not {shortened(compile)}')
    followed = [vertex_id(vertex) for vertex in trace]
    if compile == "numba":
        from brimful import compiled

        if followed:
            raise UsageError("a compiled program has no trace; leave trace or compile out")
        if keep:
            raise UsageError("a compiled program has no store to keep; leave keep or compile out")
        return compiled.run(graph, program, store, options)
    start: Start | None = "initial" if keep else None
    return interpreted(graph, program, (serializer, store, start), followed, options)


def interpreted(
    graph: GraphLike,
    program: Program | Pregel,
    where: tuple[str | Serializer, str, Start | None],
    followed: list[int | str],
    options: ProgramOptions,
) -> States:
    """Run a program by calls of its methods; `where` has serializer, store, and start if it stays.

    Raises:
        UsageError, ProgramError, BudgetError: As `run`.
    """
    from brimful import _native
    from brimful.graph import as_graph
    from brimful.io.ingest import Resources

    serializer, store, start = where
    name, dumps, loads = serializer_of(serializer)
    chosen = checked(ProgramOptions, options, "run", ("serializer", "store", "keep"))
    if start is not None:
        _check_kept(program, chosen)
    location = place(store_url(store)) | {"serializer": None}
    resources = Resources(**picked(WorkOptions, chosen))
    known = as_graph(graph, resources)
    if start is not None and known.is_temporary:
        raise UsageError(
            "the directory of the graph is removed with it, and kept vertices need its ids; make "
            "the graph with path= to keep the directory"
        )
    limits = vars(resources.on(known))
    # One thread makes all calls: only one at a time can have the interpreter.
    del limits["threads"]
    saving = chosen["checkpoint_every"] is not None or chosen["resume"]
    identity = identity_of(program, name, whole=saving)
    noted = Trace(followed)
    for vertex in followed:
        # An unknown vertex is an error before the run.
        known.degree(vertex)
    adapter = None
    if isinstance(program, Pregel):
        adapter = PregelAdapter(program, known.vertices)
        adapter.check(chosen["mode"], saving=saving)
        called = noted.follow(adapter)
    else:
        called = noted.follow(program)
        called = called if program.combiner is None else combining(called)
    with opened(location):
        states = _native.run_program(
            known.native,
            called,
            delivery=called.delivery,
            thresholds=thresholds_of(called),
            dumps=checked_dumps(name, dumps),
            loads=loads,
            keeps_numbers=name in ("json", "pickle"),
            next_superstep=adapter.next_superstep if adapter else None,
            creates=adapter is not None and adapter.creates,
            **picked(StepOptions, chosen),
            store=location | picked(StoreOptions, chosen),
            keeping=None if start is None else (name, start == "kept"),
            **picked(CheckpointOptions, chosen),
            identity=identity,
            **limits,
        )
    if adapter:
        adapter.end()
    return States(states, is_pregel=adapter is not None, trace=noted.to_arrow if followed else None)


def _check_kept(program: Program | Pregel, chosen: Mapping[str, Any]) -> None:
    """Refuse a run whose vertices cannot stay.

    Raises:
        UsageError: The program is one of Pregel, or the run makes checkpoints.
    """
    if isinstance(program, Pregel):
        raise UsageError(
            "vertices of Pregel have messages and votes beside their values, and cannot be kept; "
            "leave keep= out, or write the program as a brimful.Program"
        )
    if chosen["checkpoint_every"] is not None or chosen["resume"]:
        raise UsageError("a kept store has no checkpoints; leave out checkpoint_every= and resume=")


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
        # Lists instead of tuples would give other answers than live objects.
        if name == "json" and json.loads(data) != value:
            raise TypeError(
                f"JSON does not keep {shortened(value)}: tuples become lists, and keys of a dict "
                'become strings; return another type, or choose serializer="pickle"'
            )
        return data

    return write
