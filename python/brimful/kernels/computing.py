"""`compute` of Pregel programs as functions of numbers, made of its source code.

One function is for superstep 0, where no message is there, and one for the others. Invariant: a
program that they cannot replace is refused with the method, the line and the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import FunctionType
from typing import NamedTuple

from brimful.kernels.compute_paths import ComputeSource
from brimful.kernels.methods import (
    NotCompilable,
    builtins_of,
    method_of,
    overrides,
    place,
    remade,
    tree_of,
)
from brimful.kernels.steps import check_master, has_steps
from brimful.kernels.translating import Translation
from brimful.pregel.program import Pregel
from brimful.record import Record, message_record_of, record_of

#: The combiner of structured messages, which calls the method.
CALLED = "combine"

#: The combiners, by the operator or the function of two messages.
_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "sum", ast.BitOr: "or", ast.BitAnd: "and"}
_FUNCTIONS = ("min", "max")


class Computing(NamedTuple):
    """The functions that a Pregel program consists of."""

    #: `initial_value`, `first` for superstep 0, and `later` for the others.
    functions: dict[str, FunctionType]
    combiner: str
    #: The operation of messages on the weight of their edge; of structured messages, one for each
    #: field, with spaces between.
    along: str
    #: True if each call votes to halt.
    always_halts: bool
    #: The line on which superstep 0 contributes to an aggregator; None: it contributes to none.
    contributes_first: int | None
    #: The fields of the vertex that calls after superstep 0 read, and the line of each.
    read_later: Mapping[str, int]
    #: True if a message may raise an exception, and only the engine knows whether it has an edge.
    message_may_fail: bool
    #: The line on which superstep 0 reads an aggregator; None: it reads none.
    reads_first: int | None
    #: True if the program has a master, or a context of the worker.
    has_steps: bool
    #: The fields of values and of messages, if they have some.
    value: Record | None
    message: Record | None

    @property
    def is_full(self) -> bool:
        """True if each vertex is called in each superstep, else those with messages."""
        return self.combiner == "sum" or (self.combiner == CALLED and not self.always_halts)

    @property
    def changes(self) -> list[str]:
        """The operation on the weight for each field of a message."""
        return self.along.split()

    @property
    def sent(self) -> Record | None:
        """The fields of messages before they pass an edge, where no float is rounded yet."""
        if self.message is None:
            return None
        kinds = [
            (field.name, field.code if change == "unchanged" else "f8")
            for field, change in zip(self.message.fields, self.changes, strict=True)
        ]
        return self.message.of_types(kinds)

    def place(self, line: int | None = None) -> str:
        """Return `compute` with its file and a line of it; None: its first line."""
        return place("compute", self.functions["first"], line)


def computing_of(program: Pregel, slots: Mapping[str, str], *, is_weighted: bool) -> Computing:
    """Return the functions of a program; `slots` are its aggregators and their kinds.

    Raises:
        NotCompilable: Functions of numbers cannot replace the method.
    """
    _check_class(program)
    method = method_of(program, "compute")
    value, message = record_of(program), message_record_of(program)
    combiner = _combiner(program) if message is None else CALLED
    combine = {} if message is None else {"combine": _combine(program)}
    sources = [ComputeSource(method, is_first=is_first) for is_first in (True, False)]
    always_halts = all(source.always_halts for source in sources)
    is_full = combiner == "sum" or (combiner == CALLED and not always_halts)
    first, later = (
        Translation(source, slots, (value, message), has_degrees=is_full and not is_weighted)
        for source in sources
    )
    along = first.along | later.along
    if len(along) > 1:
        raise NotCompilable(
            f"{place('compute', method)} uses the value of an edge in some messages only",
            "Send the same along all edges",
        )
    functions = {
        "initial_value": method_of(program, "initial_value"),
        "first": first.function,
        "later": later.function,
        **combine,
    }
    unchanged = " ".join(["unchanged"] * (1 if message is None else len(message.fields)))
    return Computing(
        functions,
        combiner,
        along.pop() if along else unchanged,
        always_halts,
        first.contributes,
        later.read,
        first.message_may_fail or later.message_may_fail,
        first.read.get("aggregated"),
        has_steps(program),
        value,
        message,
    )


def _check_class(program: Pregel) -> None:
    """Refuse a class whose vertices change the graph, or whose master switches methods.

    Raises:
        NotCompilable: The class is one of these.
    """
    name = type(program).__name__
    if program.mutates:
        raise NotCompilable(f"{name} changes the graph", "Leave mutates out")
    check_master(program)


def _combiner(program: Pregel) -> str:
    """Return the name of the combiner.

    Raises:
        NotCompilable: The program combines in another way, or not at all.
    """
    ways = "left + right, left | right, left & right, min(left, right) or max(left, right)"
    if not overrides(program, "combine"):
        raise NotCompilable(
            f"{type(program).__name__} has no combine(), which a compiled program needs",
            f"Let it return {ways}",
        )
    method = method_of(program, "combine")
    function = tree_of(method)
    names = sorted(argument.arg for argument in function.args.args[1:])
    *_, last = function.body
    has_one = len(function.body) - (ast.get_docstring(function) is not None) == 1
    operation, pair = None, list[ast.expr]()
    match last:
        case ast.Return(value=ast.BinOp(left=left, op=op, right=right)):
            operation, pair = _OPERATORS.get(type(op)), [left, right]
        case ast.Return(value=ast.Call(func=ast.Name(id=name), args=[left, right], keywords=[])):
            is_known = name in _FUNCTIONS and name in builtins_of(method)
            operation, pair = name if is_known else None, [left, right]
    operands = sorted(one.id for one in pair if isinstance(one, ast.Name))
    if operation is None or not has_one or operands != names or method.__code__.co_freevars:
        raise NotCompilable(
            f"{place('combine', method)} is not a known combiner", f"Let it return {ways}"
        )
    return operation


def _combine(program: Pregel) -> FunctionType:
    """Return the method that combines structured messages.

    Raises:
        NotCompilable: The program has none, or it reads aggregators.
    """
    if not overrides(program, "combine"):
        raise NotCompilable(
            f"{type(program).__name__} has no combine(), which a compiled program needs",
            "Let it return one message for two",
        )
    method = method_of(program, "combine")
    if "aggregated" in method.__code__.co_names:
        raise NotCompilable(
            f"{place('combine', method)} reads self.aggregated", "Read it in compute"
        )
    known = builtins_of(method) & {*_FUNCTIONS} & {*method.__code__.co_names}
    return remade(_Extremes(known).visit(tree_of(method)), method) if known else method


class _Extremes(ast.NodeTransformer):
    """`min` and `max` of two messages as comparisons, because Numba has them for numbers only."""

    def __init__(self, functions: set[str]) -> None:
        self._functions = functions

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Replace the call if both arguments are variables; as in Python, the first is kept."""
        match node:
            case ast.Call(
                func=ast.Name(id=name), args=[ast.Name() as left, ast.Name() as right], keywords=[]
            ) if name in self._functions:
                compared = ast.Lt() if name == "min" else ast.Gt()
                test = ast.Compare(right, [compared], [left])
                return ast.copy_location(ast.IfExp(test, right, left), node)
        self.generic_visit(node)
        return node
