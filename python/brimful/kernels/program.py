"""Programs by kernels: their methods are compiled, or called with arrays.

Kernels run on the shards of a graph, and compiled ones also on stores of vertices. Invariant: a run
of a kernel calls the methods with the same values as an interpreted one. A program
that this cannot promise is refused before the run, with the method, the line and the reason.
"""

from __future__ import annotations

import contextlib
import linecache
import logging
import os
import pickle
import sys
from collections.abc import Mapping
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from brimful.adapted import aggregators_of, tolerance_of
from brimful.catalog import cluster_of, open_store
from brimful.errors import ProgramError
from brimful.identity import identity_of
from brimful.kernels.computing import Computing, computing_of
from brimful.kernels.fields import in_memory
from brimful.kernels.interface import ABI_VERSION
from brimful.kernels.methods import (
    Unfit,
    check_class,
    check_record,
    method_of,
    names_of,
    overrides,
    place,
    without_weight,
)
from brimful.kernels.numbers import Numbers, bits, engine_combiner, kind_of
from brimful.kernels.slots import Slot, change_slot, slots_of
from brimful.kernels.steps import KernelSteps, has_steps
from brimful.options.runs import CheckpointOptions, ProgramStepOptions, StepOptions
from brimful.options.table import WorkOptions, picked
from brimful.pregel.aggregators import checked_aggregators
from brimful.pregel.program import Pregel
from brimful.program import Program, thresholds_of
from brimful.record import Record, record_of
from brimful.result import Records, Result, run_divided

if TYPE_CHECKING:
    from brimful import _native
    from brimful.graph import Graph
    from brimful.kernels.arrays import ArrayKernel
    from brimful.kernels.machine_code import Compiled


class Reading(NamedTuple):
    """How the words of a kernel are read."""

    numbers: Numbers
    combiner: str
    #: The fields of states, if they are not one number, and the aggregators.
    record: Record | None
    slots: tuple[Slot, ...]
    #: The type of a message in memory, and its fields, if it has some.
    message: tuple[Any, Record] | None = None


class Kernel(NamedTuple):
    """A kernel: its description for the native side, the object with the code, and its words."""

    description: dict[str, Any]
    code: Any
    reading: Reading
    #: The names of the numeric attributes that methods read.
    parameters: tuple[str, ...]

    @property
    def record(self) -> Record | None:
        """The fields of states, if they are not one number."""
        return self.reading.record


class _Parts(NamedTuple):
    """The parts of a program that its kernel consists of."""

    combiner: str
    methods: dict[str, FunctionType]
    #: The operation of `signal` on the weight.
    along: str
    #: The numeric attributes that methods read.
    parameters: dict[str, float | int]
    least_id: int
    is_weighted: bool
    #: True if compiled code knows the degrees of vertices.
    has_degrees: bool
    #: The fields of states, if they are not one number, and the aggregators.
    record: Record | None
    slots: tuple[Slot, ...]
    #: The functions of a Pregel program.
    computing: Computing | None = None
    #: The largest change of a state, if the run has a tolerance.
    change: Slot | None = None

    @property
    def types(self) -> dict[str, str]:
        """The types of parameters, which are compiled into the code; their values are not."""
        return {name: kind_of(value) for name, value in self.parameters.items()}


class KernelRun:
    """The run of a program by its kernel.

    A worker of a cluster, which gets it without the kernel, makes the kernel anew.
    """

    def __init__(
        self,
        program: Program | Pregel,
        steps: Mapping[str, Any],
        identity: list[tuple[str, str]],
        store: Mapping[str, Any],
        kernel: Kernel | None,
        *,
        is_compiled: bool,
    ) -> None:
        """Keep the parts of a run; `steps` are its `ProgramStepOptions`, `store` of `stored`."""
        self._parts = program, dict(steps), identity, dict(store)
        self._kernel, self._is_compiled = kernel, is_compiled

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the code of the program, which nodes need not have installed, not the kernel."""
        from brimful.cluster.pickled import pickled_program

        program, steps, identity, store = self._parts
        pickled = pickled_program(program, store)
        method = type(program).signal if isinstance(program, Program) else type(program).compute
        file = method.__code__.co_filename
        source = file, linecache.getlines(file)
        return _unpickled, (pickled, steps, identity, self._is_compiled, source)

    def __call__(
        self,
        graph: _native.Graph,
        share: dict[str, Any] | None,
        checkpoints: Mapping[str, Any],
        limits: Mapping[str, Any],
    ) -> _native.Result:
        """Run the program, or a share of it.

        Raises:
            ProgramError: A method raised an exception.
        """
        from brimful import _native
        from brimful.graph import Graph

        program, steps, identity, store = self._parts
        kernel = self._kernel or kernel_of(
            Graph(graph), program, steps, is_compiled=self._is_compiled
        )
        slots = kernel.reading.slots
        between = None
        if isinstance(program, Pregel) and has_steps(program):
            between = KernelSteps(program, graph.vertices, slots, kernel.parameters)
        try:
            with open_store(store):
                return _native.run_kernel(
                    graph,
                    {**kernel.description, "steps": between},
                    **picked(StepOptions, steps),
                    store=store,
                    **checkpoints,
                    identity=identity,
                    **limits,
                    share=share,
                )
        except ProgramError as error:
            failure = getattr(kernel.code, "failure", None)
            if isinstance(error.vertex, str) and graph.id_type != "string":
                error.vertex = int(error.vertex)
            if failure is None and error.received is not None:
                from brimful.kernels.replay import replayed

                # It has a cause of its own.
                raise replayed(  # noqa: B904
                    program, kernel.reading, error.vertex, error.received
                )
            if failure is None and error.call is not None and kernel.reading.message is not None:
                raise ProgramError(
                    f"combine of {type(program).__name__} raised an exception in compiled code, or "
                    'returned a number that its field cannot hold; compile="never" shows it',
                    error.vertex,
                ) from error
            if failure is None:
                raise
            if not isinstance(failure.error, Exception):
                raise failure.error from error
            # It has a cause of its own.
            raise failure.shown(graph)  # noqa: B904


def _unpickled(
    pickled: bytes,
    steps: Mapping[str, Any],
    identity: list[tuple[str, str]],
    is_compiled: bool,
    source: tuple[str, list[str]],
) -> KernelRun:
    file, lines = source
    if not os.path.exists(file):
        linecache.cache[file] = sum(map(len, lines)), None, lines, file
    program, store = pickle.loads(pickled)
    # Numba looks up the module of a method by its name.
    module = type(program).__module__
    sys.modules.setdefault(module, ModuleType(module))
    return KernelRun(program, steps, identity, store, None, is_compiled=is_compiled)


def run(
    graph: Graph,
    program: Program | Pregel,
    kernel: Kernel,
    store: Mapping[str, Any],
    chosen: Mapping[str, Any],
    *,
    is_compiled: bool,
) -> Result:
    """Run a program by its kernel, in this process or on a cluster.

    Raises:
        ProgramError: A method raised an exception.
    """
    from brimful.resources import Resources

    saving = chosen["checkpoint_every"] is not None or chosen["resume"]
    identity = identity_of(program, "a kernel", chosen["tolerance"], whole=saving)
    steps = picked(ProgramStepOptions, chosen)
    work = KernelRun(program, steps, identity, store, kernel, is_compiled=is_compiled)
    resources = Resources(**picked(WorkOptions, chosen)).on(graph)
    native = run_divided(
        graph.native,
        work,
        cluster_of(chosen),
        picked(CheckpointOptions, chosen),
        {**vars(resources), "reserve_bytes": 0},
        store["opener"],
    )
    for name, value in native.stats.get("aggregates", {}).items():
        if value is None:
            raise ProgramError(f"the sum {name} of aggregates exceeds the integers of 64 bits")
    # The values of vertices without edges are computed when they are read.
    if kernel.record is None:
        return Result(native, keeps=kernel.code)
    return Records(native, kernel.record, keeps=kernel.code)


def kernel_of(
    graph: Graph, program: Program | Pregel, chosen: Mapping[str, Any], *, is_compiled: bool
) -> Kernel:
    """Return the kernel of a program for a run on a graph, compiled or of arrays.

    Raises:
        Unfit: The program cannot run so.
        UsageError: The run or the program can have no tolerance.
    """
    tolerance = tolerance_of(program, chosen)
    if isinstance(program, Program):
        parts = _parts_of(graph, program, chosen)
        found = _compiled(program, parts) if is_compiled else _of_arrays(program, parts)
    elif is_compiled:
        parts = _parts_of_pregel(graph, program, chosen)
        found = _compiled(program, parts)
    else:
        raise Unfit("a Pregel program has no form with arrays", "Compile it")
    numbers, code, words, message_words = found
    description = {
        "name": f"{type(program).__module__}.{type(program).__qualname__}",
        "of_arrays": not is_compiled,
        "address": code.address,
        "abi_version": ABI_VERSION,
        "combiner": engine_combiner(parts.combiner),
        "float_signals": numbers.signal == "float64",
        "words": words,
        "message_words": message_words,
        "is_full": parts.computing is not None and parts.computing.is_full,
        "fields": _fields(numbers, parts.record),
        "aggregators": [slot.described() for slot in parts.slots],
        # The kernel passes signals with fields along edges.
        "along": None if message_words else parts.along,
        "degrees": parts.has_degrees,
        "tolerance": None if parts.change is None else (parts.change.place, tolerance),
        "parameters": [bits(value) & (1 << 64) - 1 for value in parts.parameters.values()],
        "least_id": parts.least_id,
        "begins_with_superstep": parts.computing is not None,
    }
    sent = None if parts.computing is None else parts.computing.sent
    message = None if sent is None else (in_memory(sent, message_words), sent)
    reading = Reading(numbers, parts.combiner, parts.record, parts.slots, message)
    return Kernel(description, code, reading, tuple(parts.parameters))


def _fields(numbers: Numbers, record: Record | None) -> list[tuple[str, str, int]]:
    """Return name, type and first byte of each field of a state."""
    if record is None:
        return [("state", "f8" if numbers.state == "float64" else "i8", 0)]
    layout = record.padded().fields
    return [(field.name, field.code, layout[field.name][1]) for field in record.fields]


def _parts_of(graph: Graph, program: Program, chosen: Mapping[str, Any]) -> _Parts:
    """Return the parts of a program that signals and collects.

    Raises:
        Unfit: The program cannot run on shards.
    """
    check_class(program)
    thresholds_of(program)
    if chosen["mode"] == "async" and program.combiner == "sum":
        raise Unfit('combiner "sum" needs supersteps on shards', "Leave mode out")
    methods = {name: method_of(program, name) for name in ("initial_state", "collect")}
    methods["signal"], along = without_weight(method_of(program, "signal"))
    if overrides(program, "signal_score"):
        methods["signal_score"] = method_of(program, "signal_score")
    slots = slots_of(aggregators_of(program, chosen["mode"]))
    if slots:
        methods["aggregate"] = method_of(program, "aggregate")
    record = record_of(program)
    if record is not None:
        check_record(record)
    least_id = _least_id(graph) if "id" in names_of([methods["initial_state"]]) else 0
    parameters = _parameters(program, methods, chosen)
    return _Parts(
        str(program.combiner),
        methods,
        along,
        parameters,
        least_id,
        chosen["weighted"],
        _has_degrees(program.combiner == "sum", methods, chosen),
        record,
        slots,
        change=None if tolerance_of(program, chosen) is None else change_slot(slots),
    )


def _parts_of_pregel(graph: Graph, program: Pregel, chosen: Mapping[str, Any]) -> _Parts:
    """Return the parts of a Pregel program.

    Raises:
        Unfit: The program cannot run on shards.
    """
    aggregators = checked_aggregators(program.aggregators)
    slots = slots_of(aggregators, is_whole=has_steps(program))
    kinds = {slot.name: slot.kind for slot in slots}
    computing = computing_of(program, kinds, is_weighted=chosen["weighted"])
    name, is_full = type(program).__name__, computing.is_full
    if chosen["max_supersteps"] == 0:
        raise Unfit(
            "max_supersteps=0 leaves superstep 0 out, which compiled code always computes",
            "Allow one superstep",
        )
    if computing.has_steps and cluster_of(chosen) is not None:
        raise Unfit(
            f"{name} has master_compute or worker_context, and compiled code has them in one "
            "process",
            "Leave cluster out",
        )
    if chosen["mode"] == "async":
        if is_full or computing.message is not None or slots or computing.has_steps:
            reason = "messages that are added"
            if computing.message is not None:
                reason = "messages with fields"
            if slots or computing.has_steps:
                reason = "aggregators, master_compute and worker_context"
            raise Unfit(f"{reason} need supersteps", "Leave mode out")
        if line := computing.read_later.get("superstep"):
            raise Unfit(
                f"{computing.place(line)} reads the superstep, and compiled code does not count "
                "calls of a vertex",
                "Compare it with 0 only, or leave mode out",
            )
    readers = _readers(computing, "id")
    if is_full and readers:
        which = "adds messages"
        if computing.message is not None:
            which = "has messages with fields and does not vote to halt in each call"
        raise Unfit(
            f"{readers[0]} reads vertex.id in a program that {which}, where vertices without edges "
            "share one value",
            "Leave vertex.id out",
        )
    if line := computing.read_later.get("id"):
        raise Unfit(
            f"{computing.place(line)} reads vertex.id after superstep 0", "Keep it in the value"
        )
    if not is_full:
        why = f'which a compiled program with the combiner "{computing.combiner}" cannot'
        if computing.message is not None:
            why = "which a compiled program that votes to halt in each call cannot"
        if not computing.always_halts:
            raise Unfit(
                f"{computing.place()} does not vote to halt in each call, which a compiled program "
                f'with the combiner "{computing.combiner}" must',
                "Vote to halt in each call",
            )
        if line := computing.contributes_first:
            raise Unfit(
                f"{computing.place(line)} contributes to aggregators in superstep 0, {why}",
                "Contribute later",
            )
        if computing.has_steps and (line := computing.reads_first):
            raise Unfit(
                f"{computing.place(line)} reads aggregators in superstep 0, {why} if it has a "
                "master or a worker context",
                "Read them later",
            )
    return _Parts(
        computing.combiner,
        computing.functions,
        computing.along,
        _parameters(program, computing.functions, chosen),
        _least_id(graph) if readers else 0,
        chosen["weighted"],
        _has_degrees(computing.is_full, computing.functions, chosen),
        computing.value,
        slots,
        computing,
    )


def _readers(computing: Computing, field: str) -> list[str]:
    """Return the methods that read a field of their vertex, with their lines."""
    return [
        _place(name, method)
        for name, method in computing.functions.items()
        if field in names_of([method])
    ]


def _place(name: str, method: FunctionType) -> str:
    """Return the method behind a function of a program, with its file and line."""
    return place("compute" if name in ("first", "later") else name, method)


def _has_degrees(
    is_full: bool, methods: Mapping[str, FunctionType], chosen: Mapping[str, Any]
) -> bool:
    """Return whether a kernel knows degrees: to read them, or to leave out signals of vertices.

    `is_full`: each vertex acts in each superstep.
    """
    is_read = is_full or "degree" in names_of(methods.values())
    return is_read and not chosen["weighted"]


def _parameters(
    program: Program | Pregel, methods: Mapping[str, FunctionType], chosen: Mapping[str, Any]
) -> dict[str, float | int]:
    """Return the numeric attributes that methods read.

    Raises:
        Unfit: They read degrees, which are not known.
    """
    names = names_of(methods.values())
    for name, method in methods.items():
        where = _place(name, method)
        if chosen["weighted"] and "degree" in names_of([method]):
            raise Unfit(
                f"{where} reads vertex.degree, which a program on shards cannot in a weighted run",
                "Leave weighted out",
            )
        if "getattr" in names_of([method]):
            raise Unfit(
                f"{where} calls getattr, and compiled code knows attributes by name",
                "Name the attribute",
            )
    found = {
        name: value
        for name in sorted(names)
        if isinstance(value := getattr(program, name, None), int | float)
    }
    for name, value in found.items():
        if name.startswith("_"):
            raise Unfit(
                f"{type(program).__name__} reads self.{name}, which compiled code cannot name",
                "Choose a name without an underscore before it",
            )
        if isinstance(value, int) and value >> 63 not in (0, -1):
            raise Unfit(
                f"{type(program).__name__}.{name} exceeds the integers of 64 bits",
                "Make it a float",
            )
    return found


def _least_id(graph: Graph) -> int:
    """Return the least id of a graph, from which kernels count.

    Raises:
        Unfit: Ids are strings, or beyond 64 bits with a sign.
    """
    if graph.vertices == 0:
        return 0
    bounds = graph.native.signed_ids()
    if bounds is None:
        ids = "strings" if graph.native.id_type == "string" else "above 2^63"
        raise Unfit(
            f"a program on shards cannot read vertex.id here, because ids are {ids}",
            "Import the graph with integer ids below 2^63",
        )
    return bounds[0]


def _of_arrays(program: Program, parts: _Parts) -> tuple[Numbers, ArrayKernel, int, int]:
    from brimful.kernels.arrays import ArrayKernel

    kernel = ArrayKernel(
        program,
        parts.methods,
        parts.along,
        parts.least_id,
        (parts.record, parts.slots),
        parts.change,
        has_degrees=parts.has_degrees,
    )
    _check_signals(program, parts.combiner, kernel.numbers)
    words = 1 if parts.record is None else parts.record.padded().itemsize // 8
    return kernel.numbers, kernel, words, 0


def _check_signals(program: Program | Pregel, combiner: str, numbers: Numbers) -> None:
    """Refuse bits that are floats.

    Raises:
        Unfit: They are.
    """
    if combiner in ("or", "and") and numbers.signal == "float64":
        noun = "signals" if isinstance(program, Program) else "messages"
        raise Unfit(
            f'{type(program).__name__} has the combiner "{combiner}", and its {noun} are floats',
            "Make them integers",
        )


def _compiled(program: Program | Pregel, parts: _Parts) -> tuple[Numbers, Any, int, int]:
    """Compile a kernel, or find it on disk; return it with its types.

    The numbers behind it are the words of a state, and those of a message with fields.

    Raises:
        Unfit: Numba is not installed, or cannot compile a method.
    """
    from brimful.kernels import machine_code
    from brimful.kernels.kept import KeptKernel, kept

    fields = None if parts.record is None else parts.record.fields
    steps = parts.computing is not None and parts.computing.has_steps
    message = None if parts.computing is None else parts.computing.message
    of_messages = None if message is None else message.fields
    place = kept(
        parts.methods.values(),
        *(parts.combiner, parts.along, parts.is_weighted, _threshold(program), parts.types),
        *(fields, of_messages, parts.slots, steps, parts.change),
    )
    known = None if place is None else place.found()
    if known is not None:
        # Code that cannot be linked is compiled again.
        with contextlib.suppress(RuntimeError):
            return known.numbers, machine_code.Loaded(known.code), *known.words
    try:
        import numba  # noqa: F401
    except ImportError as error:
        raise Unfit(
            "Numba is not installed", 'Install it with: pip install "brimful[numba]"'
        ) from error
    numbers, compiled, words = _newly_compiled(program, parts)
    code = compiled.machine_code()
    try:
        loaded = machine_code.Loaded(code)
    except RuntimeError:
        # Only Numba can run code that uses its Python objects, such as `print` of a number.
        return numbers, compiled, *words
    if place is not None:
        try:
            place.keep(KeptKernel(numbers, words, code))
        except OSError as error:
            # Such as a full disk. Nothing depends on the cache, which only saves time.
            logging.getLogger("brimful").warning("compiled code is not kept: %s", error)
    return numbers, loaded, *words


def _newly_compiled(
    program: Program | Pregel, parts: _Parts
) -> tuple[Numbers, Compiled, tuple[int, int]]:
    """Compile a kernel; return it with its types, and the words of a state and a message.

    Raises:
        Unfit: Numba cannot compile a method.
    """
    from brimful.kernels import compute_template, frame, template
    from brimful.kernels.inference import ComputeTypes, Methods

    combiner, has_degrees = parts.combiner, parts.has_degrees
    typed: Methods | ComputeTypes
    if parts.computing is None:
        typed = Methods(
            *(parts.methods, parts.parameters, parts.record, parts.slots, parts.along, combiner),
            has_degrees=has_degrees,
        )
    else:
        typed = ComputeTypes(
            parts.computing, parts.parameters, parts.slots, has_degrees=has_degrees
        )
    numbers = typed.numbers()
    _check_signals(program, combiner, numbers)
    if isinstance(typed, Methods):
        threshold = _threshold(program)
        body = template.body_of(typed, numbers, parts.change, threshold=threshold)
    else:
        body = compute_template.body_of(typed, numbers)
    source = frame.source_of(parts.types, parts.slots, combiner, body)
    compiled = frame.compile_kernel(source, body, typed, numbers, combiner)
    return numbers, compiled, (body.words, body.signal_words)


def _threshold(program: Program | Pregel) -> float:
    return float(program.signal_threshold) if isinstance(program, Program) else 0.0
