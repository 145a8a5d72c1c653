"""Programs by kernels: their methods are compiled, or called with arrays.

Kernels run on the shards of a graph, and compiled ones also on stores of vertices. Invariant: a run
of a kernel calls the methods with the same values as an interpreted one. A program
that this cannot promise is refused before the run, with the method, the line and the reason.
"""

from __future__ import annotations

import inspect
import linecache
import logging
import os
import pickle
import re
import sys
from collections.abc import Iterable, Mapping
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from brimful.catalog import cluster_of, opened
from brimful.errors import ProgramError
from brimful.identity import identity_of
from brimful.kernels.interface import ABI_VERSION, CONTEXT, VERTEX
from brimful.kernels.methods import (
    Unfit,
    check_class,
    check_record,
    method_of,
    names_of,
    overrides,
    without_weight,
)
from brimful.kernels.numbers import Numbers, bits
from brimful.kernels.slots import Slot, slots_of
from brimful.options.runs import CheckpointOptions, StepOptions
from brimful.options.table import WorkOptions, picked
from brimful.program import Program, thresholds_of
from brimful.record import Record, record_of
from brimful.result import Records, Result, run_divided

if TYPE_CHECKING:
    from brimful import _native
    from brimful.graph import Graph
    from brimful.kernels.arrays import ArrayKernel
    from brimful.kernels.kept import Kept
    from brimful.pregel.program import Pregel


class Kernel(NamedTuple):
    """A kernel: its description for the native side, the object with the code, and the states."""

    description: dict[str, Any]
    code: Any
    record: Record | None


class _Parts(NamedTuple):
    """The parts of a program that its kernel consists of."""

    methods: dict[str, FunctionType]
    #: The operation of `signal` on the weight.
    along: str
    #: The numeric attributes that methods read.
    parameters: dict[str, float | int]
    least_id: int
    is_weighted: bool
    #: The fields of states, if they are not one number, and the aggregators.
    record: Record | None
    slots: tuple[Slot, ...]


class KernelRun:
    """The run of a program by its kernel.

    A worker of a cluster, which gets it without the kernel, makes the kernel anew.
    """

    def __init__(
        self,
        program: Program,
        steps: Mapping[str, Any],
        identity: list[tuple[str, str]],
        store: Mapping[str, Any],
        kernel: Kernel | None,
        *,
        is_compiled: bool,
    ) -> None:
        """Keep the parts of a run; `steps` are its `StepOptions`, `store` is of `stored`."""
        self._parts = program, dict(steps), identity, dict(store)
        self._kernel, self._is_compiled = kernel, is_compiled

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the code of the program, which nodes need not have installed, not the kernel."""
        from brimful.cluster.pickled import pickled_program

        program, *others = self._parts
        pickled = pickled_program(program)
        file = type(program).signal.__code__.co_filename
        source = file, linecache.getlines(file)
        return _unpickled, (pickled, *others, self._is_compiled, source)

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
        try:
            with opened(store):
                return _native.run_kernel(
                    graph,
                    kernel.description,
                    **steps,
                    store=store,
                    **checkpoints,
                    identity=identity,
                    **limits,
                    share=share,
                )
        except ProgramError as error:
            name, raised = type(program).__name__, getattr(kernel.code, "raised", None)
            if raised is None:
                # The number of the vertex is internal, and may be the id of another one.
                call = re.search(r"called for .+?(?= at |;)", str(error))
                raise ProgramError(
                    f"a method of {name} raised an exception, which compiled code cannot show "
                    f"({call[0] if call else error}); "
                    'pass compile="never" to see its traceback and its vertex'
                ) from error
            if not isinstance(raised, Exception):
                raise raised from error
            raise ProgramError(
                f"a method of {name} raised {type(raised).__name__}: {raised}"
            ) from raised


def _unpickled(
    pickled: bytes,
    steps: Mapping[str, Any],
    identity: list[tuple[str, str]],
    store: Mapping[str, Any],
    is_compiled: bool,
    source: tuple[str, list[str]],
) -> KernelRun:
    file, lines = source
    if not os.path.exists(file):
        linecache.cache[file] = sum(map(len, lines)), None, lines, file
    program: Program
    (program,) = pickle.loads(pickled)
    # Numba looks up the module of a method by its name.
    module = type(program).__module__
    sys.modules.setdefault(module, ModuleType(module))
    return KernelRun(program, steps, identity, store, None, is_compiled=is_compiled)


def run(
    graph: Graph,
    program: Program,
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
    from brimful.io.ingest import Resources

    saving = chosen["checkpoint_every"] is not None or chosen["resume"]
    identity = identity_of(program, "a kernel", whole=saving)
    steps = picked(StepOptions, chosen)
    work = KernelRun(program, steps, identity, store, kernel, is_compiled=is_compiled)
    resources = Resources(**picked(WorkOptions, chosen)).on(graph)
    native = run_divided(
        graph.native,
        work,
        cluster_of(chosen),
        picked(CheckpointOptions, chosen),
        {**vars(resources), "reserve_bytes": 0},
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
    """
    parts = _parts_of(graph, program, chosen)
    assert isinstance(program, Program), "others have no parts"
    numbers, code = (_compiled if is_compiled else _of_arrays)(program, parts)
    description = {
        "name": f"{type(program).__module__}.{type(program).__qualname__}",
        "of_arrays": not is_compiled,
        "address": code.address,
        "abi_version": ABI_VERSION,
        "combiner": program.combiner,
        "float_signals": numbers.signal == "float64",
        "words": 1 if parts.record is None else parts.record.padded().itemsize // 8,
        "fields": _fields(numbers, parts.record),
        "aggregators": [slot.described() for slot in parts.slots],
        "along": parts.along,
        "parameters": [bits(value) & (1 << 64) - 1 for value in parts.parameters.values()],
        "least_id": parts.least_id,
    }
    return Kernel(description, code, parts.record)


def _fields(numbers: Numbers, record: Record | None) -> list[tuple[str, str, int]]:
    """Return name, type and first byte of each field of a state."""
    if record is None:
        return [("state", "f8" if numbers.state == "float64" else "i8", 0)]
    layout = record.padded().fields
    return [(field.name, field.code, layout[field.name][1]) for field in record.fields]


def _parts_of(graph: Graph, program: Program | Pregel, chosen: Mapping[str, Any]) -> _Parts:
    """Return the parts of a program for a run.

    Raises:
        Unfit: The program cannot run on shards.
    """
    if not isinstance(program, Program):
        raise Unfit(
            f"{type(program).__name__} is a Pregel program, which sends messages to any vertex",
            "Derive it from brimful.Program",
        )
    check_class(program)
    thresholds_of(program)
    if chosen["mode"] == "async" and program.combiner == "sum":
        raise Unfit('combiner "sum" needs supersteps on shards', "Leave mode out")
    methods = {name: method_of(program, name) for name in ("initial_state", "collect")}
    methods["signal"], along = without_weight(method_of(program, "signal"))
    if overrides(program, "signal_score"):
        methods["signal_score"] = method_of(program, "signal_score")
    slots = slots_of(program, chosen["mode"])
    if slots:
        methods["aggregate"] = method_of(program, "aggregate")
    record = record_of(program)
    if record is not None:
        check_record(record)
    names = names_of(methods.values())
    if chosen["weighted"] and "degree" in names:
        raise Unfit(
            "a program on shards cannot read vertex.degree in a weighted run", "Leave weighted out"
        )
    parameters = {
        name: value
        for name in sorted(names)
        if isinstance(value := getattr(program, name, None), int | float)
    }
    least_id = _least_id(graph) if "id" in names_of([methods["initial_state"]]) else 0
    return _Parts(methods, along, parameters, least_id, chosen["weighted"], record, slots)


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


def _of_arrays(program: Program, parts: _Parts) -> tuple[Numbers, ArrayKernel]:
    from brimful.kernels.arrays import ArrayKernel

    kernel = ArrayKernel(
        program,
        parts.methods,
        parts.along,
        parts.least_id,
        (parts.record, parts.slots),
        is_weighted=parts.is_weighted,
    )
    return kernel.numbers, kernel


def _compiled(program: Program, parts: _Parts) -> tuple[Numbers, Any]:
    """Compile a kernel, or find it on disk.

    Raises:
        Unfit: Numba is not installed, or cannot compile a method.
    """
    try:
        import numba  # noqa: F401
    except ImportError as error:
        raise Unfit(
            "Numba is not installed", 'Install it with: pip install "brimful[numba]"'
        ) from error
    from brimful.kernels import template
    from brimful.kernels.inference import Methods
    from brimful.kernels.kept import kept

    combiner, threshold = str(program.combiner), float(program.signal_threshold)
    methods, along, is_weighted = parts.methods, parts.along, parts.is_weighted
    # The types of parameters are compiled into the code; their values are passed to it.
    types = {name: isinstance(value, float) for name, value in parts.parameters.items()}
    functions: Iterable[FunctionType] = methods.values()
    interface = (ABI_VERSION, CONTEXT, VERTEX)
    fields = None if parts.record is None else parts.record.fields
    own = (combiner, along, is_weighted, threshold, types, fields, parts.slots)
    called = Methods(methods, parts.parameters, parts.record, parts.slots, is_sum=combiner == "sum")
    place = kept(functions, *interface, inspect.getsource(template), *own)
    known = None if place is None else place.numbers()
    numbers = called.numbers(along) if known is None else known
    has_score = "signal_score" in methods
    source = template.source_of(
        types,
        numbers,
        parts.record,
        parts.slots,
        combiner=combiner,
        has_score=has_score,
        is_weighted=is_weighted,
    )

    def build(place: Kept | None) -> Any:
        how: Any = {"combiner": combiner, "threshold": threshold}
        return template.compile_kernel(source, called, numbers, place, **how)

    if place is None:
        return numbers, build(None)
    try:
        code = build(place)
        if known is None:
            place.keep(numbers)
    except OSError as error:
        # Such as a full disk. Nothing depends on the cache, which only saves time.
        logging.getLogger("brimful").warning("compiled code is not kept: %s", error)
        code = build(None)
    return numbers, code
