"""The paths through `compute` of a Pregel program, and the actions that each allows.

A method is looked at twice: for superstep 0, and for the others. Invariant: statements and tests
that the superstep decides are gone, and a method that may act twice in one call is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from types import FunctionType
from typing import NamedTuple, NoReturn

from brimful.comparisons import COMPARISONS
from brimful.kernels.methods import NotCompilable, place, tree_of

#: Expressions that can neither fail nor assign, if their parts cannot.
_PLAIN = (ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp)


class _Path(NamedTuple):
    """The actions of a call on a path through the method."""

    #: Messages and contributions so far: "message", and the names of aggregators.
    done: frozenset[str] = frozenset()
    is_repeated: bool = False
    is_halted: bool = False

    def also(self, act: str) -> _Path:
        return _Path(self.done | {act}, self.is_repeated or act in self.done, self.is_halted)


class ComputeSource:
    """The syntax tree of `compute`, for superstep 0 or for the others."""

    def __init__(self, method: FunctionType, *, is_first: bool) -> None:
        """Take the method; `is_first`: for superstep 0.

        Raises:
            NotCompilable: The method has no source code, or may send or contribute twice in a call.
        """
        self.method, self.is_first = method, is_first
        self.tree = tree_of(method)
        self.own, self.vertex, self.messages = (one.arg for one in self.tree.args.args)
        #: The statements that run.
        self.body = self._folded(self.tree.body)
        self._returned: set[_Path] = set()
        self._broken: set[_Path] = set()
        self._continued: set[_Path] = set()
        ends = self._after(self.body, {_Path()}) | self._returned
        if any(path.is_repeated for path in ends):
            self.refuse(
                self.tree,
                "may send, or contribute to an aggregator, several times in one call",
                "Do it once",
            )
        #: True if each call votes to halt.
        self.always_halts = all(path.is_halted for path in ends)

    def refuse(self, node: ast.AST, reason: str, remedy: str) -> NoReturn:
        """Refuse the method for a node of its tree.

        Raises:
            NotCompilable: In any case.
        """
        where = place("compute", self.method, getattr(node, "lineno", None))
        raise NotCompilable(f"{where} {reason}", remedy)

    def field(self, node: ast.AST) -> str | None:
        """Return the name of a field or method of the vertex; None for something else."""
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == self.vertex:
                return attr
        return None

    # Superstep 0, whose code the functions for others do not have, and the reverse.

    def _folded(self, statements: Iterable[ast.stmt]) -> list[ast.stmt]:
        """Return statements without those that never run."""
        kept: list[ast.stmt] = []
        for statement in statements:
            match statement:
                case ast.If():
                    truth = self.fixed_truth(statement.test)
                    if truth is None:
                        statement.body = self._folded(statement.body) or [ast.Pass()]
                        statement.orelse = self._folded(statement.orelse)
                        kept.append(statement)
                    else:
                        kept += self._folded(statement.body if truth else statement.orelse)
                case ast.For() | ast.While():
                    statement.body = self._folded(statement.body) or [ast.Pass()]
                    statement.orelse = self._folded(statement.orelse)
                    kept.append(statement)
                case _:
                    kept.append(statement)
        return kept

    def fixed_truth(self, test: ast.expr) -> bool | None:
        """Return the truth of a test that follows from the superstep; None if it does not."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                truth = self.fixed_truth(operand)
                return None if truth is None else not truth
            case ast.BoolOp(op=op, values=values):
                parts = [self.fixed_truth(value) for value in values]
                decisive = isinstance(op, ast.Or)
                if decisive in parts:
                    before = zip(values, parts[: parts.index(decisive)], strict=False)
                    is_all = all(part is not None or self._is_plain(one) for one, part in before)
                    return decisive if is_all else None
                return None if None in parts else not decisive
            case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=int(bound))]):
                if self.field(left) == "superstep":
                    return self._compared(op, bound)
            case ast.Attribute() if self.field(test) == "superstep":
                return not self.is_first
        return None

    def _is_plain(self, test: ast.expr) -> bool:
        """Return whether the evaluation of a test can neither fail nor assign."""
        for node in ast.walk(test):
            match node:
                case ast.Call(func=func) if self.field(func) == "aggregated":
                    pass
                case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult()):
                    pass
                case ast.expr() if not isinstance(node, _PLAIN):
                    return False
        return True

    def _compared(self, op: ast.cmpop, bound: int) -> bool | None:
        """Return the truth of a comparison of the superstep; None if it depends on its number."""
        holds = COMPARISONS.get(type(op))
        if holds is None:
            return None
        # A comparison changes its truth at the bound, or next to it.
        last = max(bound, 1) + 1
        numbers = (0,) if self.is_first else (1, max(bound, 1), last)
        truths = {holds(number, bound) for number in numbers}
        return truths.pop() if len(truths) == 1 else None

    # Paths: how often the method sends and contributes, and whether it halts.

    def _after(self, statements: Iterable[ast.stmt], paths: set[_Path]) -> set[_Path]:
        """Return the paths after statements; those that return are added to `_returned`."""
        for statement in statements:
            match statement:
                case ast.Return():
                    self._returned |= paths
                    paths = set()
                case ast.Break():
                    self._broken |= paths
                    paths = set()
                case ast.Continue():
                    self._continued |= paths
                    paths = set()
                case ast.Raise():
                    paths = set()
                case ast.If():
                    paths = self._after(statement.body, paths) | self._after(
                        statement.orelse, paths
                    )
                case ast.For(iter=ast.Name(id=name)) if name == self.messages:
                    paths = paths.union(*self._in_loop(statement, paths))
                case ast.For() if self.field(statement.iter) == "edges":
                    paths = {path.also("message") for path in paths}
                case ast.For() | ast.While():
                    before: set[_Path] = set()
                    broken: set[_Path] = set()
                    while before != paths:
                        before = paths
                        passed, broken = self._in_loop(statement, paths)
                        paths = paths | passed
                    paths = self._after(statement.orelse, paths) | broken
                case ast.Expr(value=ast.Call(func=ast.Attribute() as called, args=arguments)):
                    match self.field(called), arguments:
                        case "vote_to_halt", _:
                            paths = {path._replace(is_halted=True) for path in paths}
                        case "send_to_all", _:
                            paths = {path.also("message") for path in paths}
                        case "aggregate", [ast.Constant(value=slot), *_]:
                            paths = {path.also(f"aggregate {slot!s}") for path in paths}
                case ast.Try() | ast.With() | ast.Match():
                    self.refuse(statement, "has try, with or match", "Write it with if")
        return paths

    def _in_loop(
        self, loop: ast.For | ast.While, paths: set[_Path]
    ) -> tuple[set[_Path], set[_Path]]:
        """Return the paths after one pass of a loop, and those that break out of it."""
        outer = self._broken, self._continued
        self._broken, self._continued = set(), set()
        passed, broken = self._after(loop.body, paths) | self._continued, self._broken
        self._broken, self._continued = outer
        return passed, broken
