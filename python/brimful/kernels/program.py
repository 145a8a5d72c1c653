"""Programs by kernels: their methods are compiled, or called with arrays.

Kernels run on the shards of a graph, and compiled ones also on stores of vertices. Invariant: a run
of a kernel calls the methods with the same values as an interpreted one. A program
that this cannot promise is refused before the run, with the method, the line and the reason.
"""

from __future__ import annotations

import linecache
import logging
import os
import pickle
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from brimful.adapted import tolerance_of
from brimful.catalog import cluster_of, open_store
from brimful.errors import ProgramError
from brimful.identity import identity_of
from brimful.io.source import input_files
from brimful.kernels.fields import message_in_memory
from brimful.kernels.interface import ABI_VERSION
from brimful.kernels.methods import (
    NotCompilable,
)
from brimful.kernels.numbers import Numbers, bits, engine_combiner
from brimful.kernels.parts import Parts, parts_of
from brimful.kernels.slots import Slot
from brimful.kernels.steps import KernelSteps, has_steps
from brimful.options.runs import CheckpointOptions, ProgramStepOptions, StepOptions
from brimful.options.table import picked
from brimful.pregel.program import Pregel
from brimful.program import Program
from brimful.record import Record
from brimful.result import Records, Result, run_divided

if TYPE_CHECKING:
    from brimful import _native
    from brimful.graph import Graph
    from brimful.kernels.arrays import ArrayKernel
    from brimful.kernels.cache import CacheEntry
    from brimful.kernels.machine_code import Compiled
    from brimful.resources import Resources


class KernelWords(NamedTuple):
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
    reading: KernelWords
    #: The names of the numeric attributes that methods read.
    parameters: tuple[str, ...]

    @property
    def record(self) -> Record | None:
        """The fields of states, if they are not one number."""
        return self.reading.record


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
        """Keep the parts of a run; `steps` are its `ProgramStepOptions`.

        `store` is that of `catalog.program_store`.
        """
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
        communicator: dict[str, Any] | None,
        checkpoints: Mapping[str, Any],
        resources: Resources,
    ) -> _native.Result:
        """Run the program, or the part of it that this process makes.

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
                    steps=picked(StepOptions, steps),
                    store=store,
                    checkpoints=checkpoints,
                    identity=identity,
                    resources=resources,
                    communicator=communicator,
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
    resources = Resources.of(chosen).on(graph)
    native = run_divided(
        graph.native,
        work,
        cluster_of(chosen),
        picked(CheckpointOptions, chosen),
        resources,
        store["opener"],
    )
    for name, value in native.stats.get("aggregates", {}).items():
        if value is None:
            raise ProgramError(f"the aggregator {name} has a sum beyond 64-bit integers")
    native.discard_checkpoints()
    # The values of vertices without edges are computed when they are read.
    inputs = input_files(graph.native)
    if kernel.record is None:
        return Result(native, keeps=kernel.code, inputs=inputs)
    return Records(native, kernel.record, keeps=kernel.code, inputs=inputs)


def kernel_of(
    graph: Graph, program: Program | Pregel, chosen: Mapping[str, Any], *, is_compiled: bool
) -> Kernel:
    """Return the kernel of a program for a run on a graph, compiled or of arrays.

    Raises:
        NotCompilable: The program cannot run so.
        UsageError: The run or the program can have no tolerance.
    """
    tolerance = tolerance_of(program, chosen)
    if is_compiled:
        parts = parts_of(graph, program, chosen)
        found = _compiled(program, parts)
    elif isinstance(program, Program):
        parts = parts_of(graph, program, chosen)
        found = _of_arrays(program, parts)
    else:
        raise NotCompilable("a Pregel program cannot be called with arrays", 'Pass compile="numba"')
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
    message = None if sent is None else (message_in_memory(sent), sent)
    reading = KernelWords(numbers, parts.combiner, parts.record, parts.slots, message)
    return Kernel(description, code, reading, tuple(parts.parameters))


def _fields(numbers: Numbers, record: Record | None) -> list[tuple[str, str, int]]:
    """Return name, type and first byte of each field of a state."""
    if record is None:
        return [("state", "f8" if numbers.state == "float64" else "i8", 0)]
    layout = record.padded().fields
    return [(field.name, field.code, layout[field.name][1]) for field in record.fields]


def _of_arrays(program: Program, parts: Parts) -> tuple[Numbers, ArrayKernel, int, int]:
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
        NotCompilable: They are.
    """
    if combiner in ("or", "and") and numbers.signal == "float64":
        noun = "signals" if isinstance(program, Program) else "messages"
        raise NotCompilable(
            f'{type(program).__name__} has the combiner "{combiner}", and its {noun} are floats',
            "Make them integers",
        )


def _compiled(program: Program | Pregel, parts: Parts) -> tuple[Numbers, Any, int, int]:
    """Find a kernel on disk, or compile it; return it with its types.

    The last two numbers are the words of a state, and those of a message with fields.

    Raises:
        NotCompilable: Numba is not installed, or cannot compile a method.
    """
    from brimful.kernels import forked
    from brimful.kernels.cache import cache_entry

    fields = None if parts.record is None else parts.record.fields
    steps = parts.computing is not None and parts.computing.has_steps
    message = None if parts.computing is None else parts.computing.message
    of_messages = None if message is None else message.fields
    entry = cache_entry(
        parts.methods.values(),
        parts.combiner,
        parts.along,
        parts.is_weighted,
        _threshold(program),
        parts.types,
        fields,
        of_messages,
        parts.slots,
        steps,
        parts.change,
    )
    if found := _loaded(entry):
        return found
    if entry is not None and "numba" not in sys.modules and forked.is_possible():
        # Numba takes some 100 MiB, which a process that has imported it never gives back.
        forked.in_child(lambda: _compiled_here(program, parts, entry))
        if found := _loaded(entry):
            return found
    return _compiled_here(program, parts, entry)


def _loaded(entry: CacheEntry | None) -> tuple[Numbers, Any, int, int] | None:
    """Return a kernel of the cache; None if there is none that can be linked."""
    from brimful.kernels import machine_code

    known = None if entry is None else entry.load()
    if known is None:
        return None
    try:
        return known.numbers, machine_code.Loaded(known.code), *known.words
    except RuntimeError:
        return None


def _compiled_here(
    program: Program | Pregel, parts: Parts, entry: CacheEntry | None
) -> tuple[Numbers, Any, int, int]:
    """Compile a kernel in this process, and cache it on disk.

    Raises:
        NotCompilable: Numba is not installed, or cannot compile a method.
    """
    from brimful.kernels import machine_code
    from brimful.kernels.cache import CachedKernel

    try:
        import numba  # noqa: F401
    except ImportError as error:
        raise NotCompilable(
            "Numba is not installed", 'Install it with: pip install "brimful[numba]"'
        ) from error
    numbers, compiled, words = _newly_compiled(program, parts)
    code = compiled.machine_code()
    try:
        loaded = machine_code.Loaded(code)
    except RuntimeError:
        # Only Numba can run code that uses its Python objects, such as `print` of a number.
        return numbers, compiled, *words
    if entry is not None:
        try:
            entry.store(CachedKernel(numbers, words, code))
        except OSError as error:
            # Such as a full disk. Nothing depends on the cache, which only saves time.
            logging.getLogger("brimful").warning("compiled code is not cached: %s", error)
    return numbers, loaded, *words


def _newly_compiled(
    program: Program | Pregel, parts: Parts
) -> tuple[Numbers, Compiled, tuple[int, int]]:
    """Compile a kernel; return it with its types, and the words of a state and a message.

    Raises:
        NotCompilable: Numba cannot compile a method.
    """
    from brimful.kernels import compute_template, frame, template
    from brimful.kernels.inference import ComputeTypes, Methods

    combiner, has_degrees = parts.combiner, parts.has_degrees
    typed: Methods | ComputeTypes
    if parts.computing is None:
        typed = Methods(
            parts.methods,
            parts.parameters,
            parts.record,
            parts.slots,
            along=parts.along,
            combiner=combiner,
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
