"""The parts of a program that its kernel consists of."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from brimful.adapted import aggregators_of, tolerance_of
from brimful.catalog import cluster_of
from brimful.kernels.computing import Computing, computing_of
from brimful.kernels.methods import (
    NotCompilable,
    check_class,
    check_record,
    method_of,
    names_of,
    overrides,
    place,
    without_weight,
)
from brimful.kernels.numbers import kind_of
from brimful.kernels.slots import Slot, change_slot, slots_of
from brimful.kernels.steps import has_steps
from brimful.pregel.aggregators import checked_aggregators
from brimful.pregel.program import Pregel
from brimful.program import Program, thresholds_of
from brimful.record import Record, record_of

if TYPE_CHECKING:
    from brimful.graph import Graph


class Parts(NamedTuple):
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


def parts_of(graph: Graph, program: Program | Pregel, chosen: Mapping[str, Any]) -> Parts:
    """Return the parts of a program.

    Raises:
        NotCompilable: The program cannot run on shards.
    """
    if isinstance(program, Program):
        return _signal_parts(graph, program, chosen)
    return _pregel_parts(graph, program, chosen)


def _signal_parts(graph: Graph, program: Program, chosen: Mapping[str, Any]) -> Parts:
    """Return the parts of a program that signals and collects.

    Raises:
        NotCompilable: The program cannot run on shards.
    """
    check_class(program)
    thresholds_of(program)
    if chosen["mode"] == "async" and program.combiner == "sum":
        raise NotCompilable(
            'a compiled program with combiner "sum" needs supersteps', "Leave mode out"
        )
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
    return Parts(
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


def _pregel_parts(graph: Graph, program: Pregel, chosen: Mapping[str, Any]) -> Parts:
    """Return the parts of a Pregel program.

    Raises:
        NotCompilable: The program cannot run on shards.
    """
    aggregators = checked_aggregators(program.aggregators)
    slots = slots_of(aggregators, is_whole=has_steps(program))
    kinds = {slot.name: slot.kind for slot in slots}
    computing = computing_of(program, kinds, is_weighted=chosen["weighted"])
    _check_run(program, computing, slots, chosen)
    readers = _readers(computing, "id")
    _check_ids(computing, readers)
    if not computing.is_full:
        _check_first_superstep(computing)
    return Parts(
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


def _check_run(
    program: Pregel, computing: Computing, slots: tuple[Slot, ...], chosen: Mapping[str, Any]
) -> None:
    """Refuse options of a run that the compiled program does not have.

    Raises:
        NotCompilable: The program cannot run so.
    """
    if chosen["max_supersteps"] == 0:
        raise NotCompilable(
            "max_supersteps=0 skips superstep 0, which compiled code always computes",
            "Allow at least one superstep",
        )
    if computing.has_steps and cluster_of(chosen) is not None:
        raise NotCompilable(
            f"{type(program).__name__} has master_compute or worker_context, which compiled code "
            "calls in one process only",
            "Leave cluster out",
        )
    if chosen["mode"] != "async":
        return
    if slots or computing.has_steps:
        raise NotCompilable(
            "aggregators, master_compute and worker_context need supersteps", "Leave mode out"
        )
    if computing.message is not None:
        raise NotCompilable("messages with fields need supersteps", "Leave mode out")
    if computing.is_full:
        raise NotCompilable(
            "a program whose combine adds messages needs supersteps", "Leave mode out"
        )
    if line := computing.read_later.get("superstep"):
        raise NotCompilable(
            f"{computing.place(line)} reads the superstep, and compiled code does not count calls "
            "of a vertex",
            "Compare it with 0 only, or leave mode out",
        )


def _check_ids(computing: Computing, readers: list[str]) -> None:
    """Refuse methods that read ids which the kernel does not know; `readers` read ids.

    Raises:
        NotCompilable: A method reads an id where there is none.
    """
    if computing.is_full and readers:
        which = "adds messages"
        if computing.message is not None:
            which = "has messages with fields and does not vote to halt in each call"
        raise NotCompilable(
            f"{readers[0]} reads vertex.id in a program that {which}, where vertices without edges "
            "share one value",
            "Leave vertex.id out",
        )
    if line := computing.read_later.get("id"):
        raise NotCompilable(
            f"{computing.place(line)} reads vertex.id after superstep 0", "Keep it in the value"
        )


def _check_first_superstep(computing: Computing) -> None:
    """Refuse a program that calls vertices without messages, unless all are called.

    Raises:
        NotCompilable: A vertex without messages may act, or act on aggregators in superstep 0.
    """
    why = f'which a compiled program with the combiner "{computing.combiner}" cannot'
    if computing.message is not None:
        why = "which a compiled program that votes to halt in each call cannot"
    if not computing.always_halts:
        raise NotCompilable(
            f"{computing.place()} does not vote to halt in each call, which a compiled program "
            f'with the combiner "{computing.combiner}" must',
            "Vote to halt in each call",
        )
    if line := computing.contributes_first:
        raise NotCompilable(
            f"{computing.place(line)} contributes to aggregators in superstep 0, {why}",
            "Contribute later",
        )
    if computing.has_steps and (line := computing.reads_first):
        raise NotCompilable(
            f"{computing.place(line)} reads aggregators in superstep 0, {why} if it has a "
            "master or a worker context",
            "Read them later",
        )


def _readers(computing: Computing, field: str) -> list[str]:
    """Return the methods that read a field of their vertex, with their lines."""
    return [
        _method_place(name, method)
        for name, method in computing.functions.items()
        if field in names_of([method])
    ]


def _method_place(name: str, method: FunctionType) -> str:
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
    """Return the numeric attributes that methods read, as numbers of Python.

    Raises:
        NotCompilable: They read degrees, which are not known.
    """
    names = names_of(methods.values())
    for name, method in methods.items():
        where = _method_place(name, method)
        if chosen["weighted"] and "degree" in names_of([method]):
            raise NotCompilable(
                f"{where} reads vertex.degree, which compiled code does not have in weighted runs",
                "Leave weighted out",
            )
        if "getattr" in names_of([method]):
            raise NotCompilable(
                f"{where} calls getattr, which compiled code does not support",
                "Access the attribute by its name",
            )
    # In other types of NumPy, interpreted code computes with fewer bits than compiled code.
    kinds = int | float | np.int64 | np.bool_
    found = {
        name: value.item() if isinstance(value, np.generic) else value
        for name in sorted(names)
        if isinstance(value := getattr(program, name, None), kinds)
    }
    for name, value in found.items():
        if name.startswith("_"):
            raise NotCompilable(
                f"{type(program).__name__} reads self.{name}, which compiled code cannot access",
                "Choose a name without a leading underscore",
            )
        if isinstance(value, int) and value >> 63 not in (0, -1):
            raise NotCompilable(
                f"{type(program).__name__}.{name} does not fit in a 64-bit integer",
                "Make it a float",
            )
    return found


def _least_id(graph: Graph) -> int:
    """Return the least id of a graph, from which kernels count.

    Raises:
        NotCompilable: Ids are strings, or beyond 64 bits with a sign.
    """
    if graph.vertices == 0:
        return 0
    bounds = graph.native.signed_ids()
    if bounds is None:
        ids = "strings" if graph.native.id_type == "string" else "above 2^63"
        raise NotCompilable(
            f"a program on shards cannot read vertex.id here, because ids are {ids}",
            "Import the graph with integer ids below 2^63",
        )
    return bounds[0]
