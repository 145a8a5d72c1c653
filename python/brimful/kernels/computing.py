"""`compute` of Pregel programs as functions of numbers, made of its source code.

The method acts on its vertex; the functions return what they would do to it: the value, whether a
message is sent along the out-edges, the message, whether the vertex has halted, and for each
aggregator whether there is a contribution, and which. One of them is for superstep 0, where no
message is there, and one for the others. Invariant: they do what the method does, and a method
that uses its vertex in another way is refused with the line and the reason.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import NamedTuple, NoReturn

from brimful.kernels.methods import (
    Unfit,
    builtins_of,
    method_of,
    overrides,
    place,
    remade,
    stripped,
    tree_of,
)
from brimful.pregel.program import Pregel

#: Variables of the functions; a program hardly has others of these names.
VALUE, HAS_MESSAGE, RECEIVED = "brimful_value", "brimful_has_message", "brimful_received"
_SENDS, _MESSAGE, _HALTED = "brimful_sends", "brimful_message", "brimful_halted"

#: The combiners, by the operator or the function of two messages.
_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "sum", ast.BitOr: "or", ast.BitAnd: "and"}
_FUNCTIONS = ("min", "max")

_COMPARISONS: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class Computing(NamedTuple):
    """The functions that a Pregel program consists of."""

    #: `initial_value`, `first` for superstep 0, and `later` for the others.
    functions: dict[str, FunctionType]
    combiner: str
    #: The operation of messages on the weight of their edge.
    along: str
    #: True if each call votes to halt.
    always_halts: bool
    #: True if superstep 0 contributes to aggregators.
    contributes_first: bool
    #: The fields of the vertex that calls after superstep 0 read.
    read_later: frozenset[str]


def computing_of(program: Pregel, slots: Mapping[str, str]) -> Computing:
    """Return the functions of a program; `slots` are its aggregators and their kinds.

    Raises:
        Unfit: The program does what no function of numbers does.
    """
    _check_class(program)
    method = method_of(program, "compute")
    combiner = _combiner(program)
    first, later = (_Translation(method, slots, is_first=is_first) for is_first in (True, False))
    along = first.along | later.along
    if len(along) > 1:
        raise Unfit(
            f"{place('compute', method)} uses the value of an edge in some messages only",
            "Send the same along all edges",
        )
    functions = {
        "initial_value": method_of(program, "initial_value"),
        "first": first.function,
        "later": later.function,
    }
    return Computing(
        functions,
        combiner,
        along.pop() if along else "unchanged",
        first.always_halts and later.always_halts,
        first.contributes,
        frozenset(later.read),
    )


def _check_class(program: Pregel) -> None:
    """Refuse a class with parts that run between supersteps, or change the graph.

    Raises:
        Unfit: It has some.
    """
    name = type(program).__name__
    if program.mutates:
        raise Unfit(f"{name} changes the graph", "Leave mutates out")
    for method in ("master_compute", "worker_context"):
        if overrides(program, method):
            raise Unfit(f"{name}.{method} has no place in compiled code", "Remove it")


def _combiner(program: Pregel) -> str:
    """Return the name of the combiner.

    Raises:
        Unfit: The program combines in another way, or not at all.
    """
    ways = "left + right, left | right, left & right, min(left, right) or max(left, right)"
    if not overrides(program, "combine"):
        raise Unfit(
            f"{type(program).__name__} has no combine(), which a compiled program needs",
            f"Let it return {ways}",
        )
    method = method_of(program, "combine")
    function = tree_of(method)
    names = sorted(argument.arg for argument in function.args.args[1:])
    # The docstring is no part of it.
    *_, last = function.body
    has_one = len(function.body) - (ast.get_docstring(function) is not None) == 1
    found, pair = None, list[ast.expr]()
    match last:
        case ast.Return(value=ast.BinOp(left=left, op=op, right=right)):
            found, pair = _OPERATORS.get(type(op)), [left, right]
        case ast.Return(value=ast.Call(func=ast.Name(id=name), args=[left, right], keywords=[])):
            is_known = name in _FUNCTIONS and name in builtins_of(method)
            found, pair = name if is_known else None, [left, right]
    given = sorted(one.id for one in pair if isinstance(one, ast.Name))
    if found is None or not has_one or given != names or method.__code__.co_freevars:
        raise Unfit(f"{place('combine', method)} is no known combiner", f"Let it return {ways}")
    return found


class _Path(NamedTuple):
    """What a call has done on a path through the method."""

    #: Messages and contributions so far: "message", and the names of aggregators.
    done: frozenset[str] = frozenset()
    is_repeated: bool = False
    is_halted: bool = False

    def also(self, act: str) -> _Path:
        return _Path(self.done | {act}, self.is_repeated or act in self.done, self.is_halted)


class _Translation(ast.NodeTransformer):
    """The function of `compute` for superstep 0, or for the others."""

    def __init__(self, method: FunctionType, slots: Mapping[str, str], *, is_first: bool) -> None:
        """Translate the method.

        Raises:
            Unfit: It cannot be translated.
        """
        self._method, self._slots, self._is_first = method, slots, is_first
        self._functions = builtins_of(method)
        #: The variables of loops over the edges.
        self._of_edges: set[str] = set()
        self.along: set[str] = set()
        self.read: set[str] = set()
        self.contributes = False
        tree = tree_of(method)
        self._self, self._vertex, self._messages = (one.arg for one in tree.args.args)
        body = self._folded(tree.body)
        self._returned: set[_Path] = set()
        self._broken: set[_Path] = set()
        self._continued: set[_Path] = set()
        ends = self._behind(body, {_Path()}) | self._returned
        if any(path.is_repeated for path in ends):
            self._refuse(
                tree,
                "may send, or contribute to an aggregator, several times in one call",
                "Do it once",
            )
        self.always_halts = all(path.is_halted for path in ends)
        zeros: dict[str, bool | int] = {_SENDS: False, _MESSAGE: 0, _HALTED: False}
        for slot, kind in slots.items():
            zeros |= {_has(slot): False, _given(slot): False if kind == "bool" else 0}
        begun = [_assign(name, ast.Constant(value)) for name, value in zeros.items()]
        tree.body = [*begun, *self._statements(body), self._result()]
        if used := sorted(self._of_edges & _names(tree)):
            self._refuse(
                tree, f"uses {used[0]} besides its loop over the edges", "Choose another name"
            )
        tree.name = f"compute_{'first' if is_first else 'later'}"
        arguments = (self._self, self._vertex, VALUE, HAS_MESSAGE, RECEIVED)
        tree.args = ast.arguments([], [ast.arg(name) for name in arguments], None, [], [], None, [])
        tree.returns = None
        self.function = remade(tree, method)

    def _refuse(self, node: ast.AST, reason: str, remedy: str) -> NoReturn:
        code = self._method.__code__
        line = getattr(node, "lineno", code.co_firstlineno)
        raise Unfit(f"compute ({code.co_filename}, line {line}) {reason}", remedy)

    def _result(self) -> ast.Return:
        names = [VALUE, _SENDS, _MESSAGE, _HALTED]
        names += [name for slot in self._slots for name in (_has(slot), _given(slot))]
        return ast.Return(ast.Tuple([_name(name) for name in names], ast.Load()))

    # Superstep 0, whose code the functions for others do not have, and the reverse.

    def _folded(self, statements: Iterable[ast.stmt]) -> list[ast.stmt]:
        """Return statements without those that never run."""
        found: list[ast.stmt] = []
        for statement in statements:
            match statement:
                case ast.If():
                    known = self._known(statement.test)
                    if known is None:
                        statement.body = self._folded(statement.body) or [ast.Pass()]
                        statement.orelse = self._folded(statement.orelse)
                        found.append(statement)
                    else:
                        found += self._folded(statement.body if known else statement.orelse)
                case ast.For() | ast.While():
                    statement.body = self._folded(statement.body) or [ast.Pass()]
                    statement.orelse = self._folded(statement.orelse)
                    found.append(statement)
                case _:
                    found.append(statement)
        return found

    def _known(self, test: ast.expr) -> bool | None:
        """Return the truth of a test that follows from the superstep; None if it does not."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                known = self._known(operand)
                return None if known is None else not known
            case ast.BoolOp(op=op, values=values):
                parts, decisive = [self._known(value) for value in values], isinstance(op, ast.Or)
                if decisive in parts:
                    return decisive
                return None if None in parts else not decisive
            case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=int(bound))]):
                if self._field(left) == "superstep":
                    return self._compared(op, bound)
            case ast.Attribute() if self._field(test) == "superstep":
                return not self._is_first
        return None

    def _compared(self, op: ast.cmpop, bound: int) -> bool | None:
        """Return the truth of a comparison of the superstep; None if it depends on its number."""
        holds = _COMPARISONS.get(type(op))
        if holds is None:
            return None
        # A comparison changes its truth at the bound, or next to it.
        last = max(bound, 1) + 1
        numbers = (0,) if self._is_first else (1, max(bound, 1), last)
        truths = {holds(number, bound) for number in numbers}
        return truths.pop() if len(truths) == 1 else None

    # Paths: how often the method sends and contributes, and whether it halts.

    def _behind(self, statements: Iterable[ast.stmt], paths: set[_Path]) -> set[_Path]:
        """Return the paths behind statements; those that return are added to `_returned`."""
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
                    paths = self._behind(statement.body, paths) | self._behind(
                        statement.orelse, paths
                    )
                case ast.For(iter=ast.Name(id=name)) if name == self._messages:
                    paths = paths.union(*self._in_loop(statement, paths))
                case ast.For() if self._field(statement.iter) == "edges":
                    paths = {path.also("message") for path in paths}
                case ast.For() | ast.While():
                    before: set[_Path] = set()
                    broken: set[_Path] = set()
                    while before != paths:
                        before = paths
                        passed, broken = self._in_loop(statement, paths)
                        paths = paths | passed
                    paths = self._behind(statement.orelse, paths) | broken
                case ast.Expr(value=ast.Call(func=ast.Attribute() as called, args=arguments)):
                    match self._field(called), arguments:
                        case "vote_to_halt", _:
                            paths = {path._replace(is_halted=True) for path in paths}
                        case "send_to_all", _:
                            paths = {path.also("message") for path in paths}
                        case "aggregate", [ast.Constant(value=slot), *_]:
                            paths = {path.also(f"aggregate {slot!s}") for path in paths}
                case ast.Try() | ast.With() | ast.Match():
                    self._refuse(statement, "has try, with or match", "Write it with if")
        return paths

    def _in_loop(
        self, loop: ast.For | ast.While, paths: set[_Path]
    ) -> tuple[set[_Path], set[_Path]]:
        """Return the paths behind one pass of a loop, and those that break out of it."""
        outer = self._broken, self._continued
        self._broken, self._continued = set(), set()
        passed, broken = self._behind(loop.body, paths) | self._continued, self._broken
        self._broken, self._continued = outer
        return passed, broken

    # Translation.

    def _field(self, node: ast.AST) -> str | None:
        """Return the name of a field or method of the vertex; None for something else."""
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == self._vertex:
                return attr
        return None

    def _statements(self, statements: Iterable[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in statements:
            new = self.visit(statement)
            found += new if isinstance(new, list) else [new]
        return found

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        """Return what the method did."""
        if node.value is not None and not (
            isinstance(node.value, ast.Constant) and node.value.value is None
        ):
            self._refuse(node, "returns a value, and compute returns none", "Leave the value out")
        return ast.copy_location(self._result(), node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.stmt]:
        """Note what a call of a method of the vertex does."""
        match node.value:
            case ast.Call(func=ast.Attribute() as called, args=arguments, keywords=[]):
                name = self._field(called)
            case _:
                return self.generic_visit(node)
        match name, arguments:
            case "vote_to_halt", []:
                return [_assign(_HALTED, ast.Constant(True), node)]
            case "send_to_all", [message]:
                self.along.add("unchanged")
                return self._sent(self.visit(message), node)
            case "aggregate", [ast.Constant(value=slot), given] if slot in self._slots:
                self.contributes = True
                return self._contributed(str(slot), self.visit(given), node)
        return self.generic_visit(node)

    def _sent(self, message: ast.expr, node: ast.AST) -> list[ast.stmt]:
        return [_assign(_MESSAGE, message, node), _assign(_SENDS, ast.Constant(True), node)]

    def _contributed(self, slot: str, given: ast.expr, node: ast.AST) -> list[ast.stmt]:
        return [_assign(_given(slot), given, node), _assign(_has(slot), ast.Constant(True), node)]

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        """Translate a loop over the edges, over the messages, or another one."""
        if self._field(node.iter) == "edges":
            return self._along_edges(node)
        if isinstance(node.iter, ast.Name) and node.iter.id == self._messages:
            if node.orelse:
                self._refuse(node, "has an else of a loop over messages", "Leave it out")
            node.iter = ast.Tuple([_name(RECEIVED)], ast.Load())
            node.body = self._statements(node.body)
            return [ast.copy_location(ast.If(_name(HAS_MESSAGE), [node], []), node)]
        return self.generic_visit(node)

    def _along_edges(self, node: ast.For) -> list[ast.stmt]:
        """Translate `for target, value in vertex.edges: vertex.send(target, message)`."""
        match node:
            case ast.For(
                target=ast.Tuple(elts=[ast.Name(id=target), ast.Name(id=weight)]),
                body=[
                    ast.Expr(
                        value=ast.Call(
                            func=ast.Attribute() as called,
                            args=[ast.Name(id=receiver), message],
                            keywords=[],
                        )
                    )
                ],
                orelse=[],
            ) if self._field(called) == "send" and receiver == target:
                pass
            case _:
                self._refuse(
                    node,
                    "does more with its edges than to send a message along each",
                    f"Write: for target, value in {self._vertex}.edges: "
                    f"{self._vertex}.send(target, ...)",
                )
        operations: set[str] = set()
        if weight in _names(message):
            message = stripped(message, weight, operations, self._functions)
        self._of_edges |= {target, weight}
        if any(isinstance(one, ast.NamedExpr) for one in ast.walk(message)):
            self._refuse(node, "assigns in a message", "Assign before the loop")
        if {target, weight} & _names(message) or len(operations) > 1 or "other" in operations:
            self._refuse(
                node,
                f"may use {weight} only as message + {weight}, message * {weight}, "
                f"min(message, {weight}) or max(message, {weight}), and not {target}",
                "Change it",
            )
        self.along.add(operations.pop() if operations else "unchanged")
        reads_degree = any(self._field(one) == "degree" for one in ast.walk(message))
        sent = self._sent(self.visit(message), node)
        if not reads_degree:
            return sent
        # Without edges nothing is evaluated, such as a division by their number.
        degree = ast.Attribute(_name(self._vertex), "degree", ast.Load())
        return [ast.copy_location(ast.If(degree, sent, []), node)]

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Translate a field of the vertex."""
        match self._field(node):
            case None:
                self.generic_visit(node)
                return node
            case "value":
                return ast.copy_location(ast.Name(VALUE, node.ctx), node)
            case "superstep" if self._is_first:
                return ast.copy_location(ast.Constant(0), node)
            case "superstep" | "degree" | "id" as field:
                self.read.add(field)
                return node
            case "send":
                self._refuse(
                    node,
                    f"calls {self._vertex}.send outside a loop over the edges",
                    f"Use {self._vertex}.send_to_all, or send along each edge",
                )
            case other:
                self._refuse(
                    node,
                    f"uses {self._vertex}.{other} in a way that has no place in compiled code",
                    "Change it",
                )

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Refuse the vertex and the messages where they are more than read."""
        if node.id == self._vertex:
            self._refuse(node, f"passes {self._vertex} on", "Pass its fields on")
        if node.id == self._messages:
            self._refuse(
                node,
                f"uses {self._messages} in a way that has no place in compiled code",
                f"Use sum, min, max or len of {self._messages}, or a loop over it",
            )
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Translate functions of the messages, and the values of aggregators."""
        match node:
            case ast.Call(func=ast.Name(id="min" | "max" | "sum" | "len" as name)) if (
                name not in self._functions
            ):
                self.generic_visit(node)
                return node
            case ast.Call(
                func=ast.Attribute() as called, args=[ast.Constant(value=slot)], keywords=[]
            ) if self._field(called) == "aggregated" and slot in self._slots:
                values = ast.Attribute(_name(self._self), "aggregated", ast.Load())
                return ast.copy_location(ast.Attribute(values, str(slot), ast.Load()), node)
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)], keywords=[]) if (
                name == self._messages
            ):
                return ast.copy_location(_count(), node)
            case ast.Call(func=ast.Name(id="sum"), args=[of, *start], keywords=[]) if (
                each := self._each(of)
            ) is not None and len(start) <= 1:
                zero = self.visit(start[0]) if start else ast.Constant(0)
                some = ast.BinOp(zero, ast.Add(), each) if start else each
                return ast.copy_location(ast.IfExp(_name(HAS_MESSAGE), some, zero), node)
            case ast.Call(func=ast.Name(id="min" | "max"), args=[of], keywords=options) if (
                each := self._each(of)
            ) is not None:
                match options:
                    case []:
                        none: ast.expr = _missing()
                    case [ast.keyword(arg="default", value=default)]:
                        none = self.visit(default)
                    case _:
                        self._refuse(node, "gives min or max a key", "Leave it out")
                return ast.copy_location(ast.IfExp(_name(HAS_MESSAGE), each, none), node)
            case (
                ast.Call(
                    func=ast.Name(id="min" | "max"),
                    args=[*others, ast.Starred(value=of)],
                    keywords=[],
                )
                | ast.Call(
                    func=ast.Name(id="min" | "max"),
                    args=[ast.List(elts=[*others, ast.Starred(value=of)])],
                    keywords=[],
                )
            ) if others and (each := self._each(of)) is not None:
                others = [self.visit(one) for one in others]
                some = ast.Call(node.func, [*others, each], [])
                if len(others) > 1:
                    none = ast.Call(node.func, others, [])
                else:
                    # Without messages, min(value) is an error.
                    none = others[0] if isinstance(node.args[0], ast.List) else _missing()
                return ast.copy_location(ast.IfExp(_name(HAS_MESSAGE), some, none), node)
        self.generic_visit(node)
        return node

    def _each(self, node: ast.expr) -> ast.expr | None:
        """Return the value of the only message in a sequence of values of messages.

        None: the node is something else.
        """
        match node:
            case ast.Name(id=name) if name == self._messages:
                return _name(RECEIVED)
            case (
                ast.GeneratorExp(elt=value, generators=[one])
                | ast.ListComp(elt=value, generators=[one])
            ) if isinstance(one.target, ast.Name) and not one.ifs and not one.is_async:
                if isinstance(one.iter, ast.Name) and one.iter.id == self._messages:
                    renamed: ast.expr = _Renaming(one.target.id).visit(self.visit(value))
                    return renamed
        return None

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Translate the first message, which is also the last."""
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=index) if name == self._messages:
                if ast.unparse(index) in ("0", "-1"):
                    choice = ast.IfExp(_name(HAS_MESSAGE), _name(RECEIVED), _missing())
                    return ast.copy_location(choice, node)
        self.generic_visit(node)
        return node

    def _truth(self, test: ast.expr) -> ast.expr:
        """Translate a test, where messages are true if there is one."""
        match test:
            case ast.Name(id=name) if name == self._messages:
                return ast.copy_location(_name(HAS_MESSAGE), test)
            case ast.BoolOp():
                # Parts that are known decide nothing, as the whole would be known.
                open_parts = [value for value in test.values if self._known(value) is None]
                if len(open_parts) == 1:
                    return self._truth(open_parts[0])
                test.values = [self._truth(value) for value in open_parts]
                return test
            case ast.UnaryOp(op=ast.Not()):
                test.operand = self._truth(test.operand)
                return test
        found: ast.expr = self.visit(test)
        return found

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """Translate the test whose truth `not` reverses."""
        return self._truth(node) if isinstance(node.op, ast.Not) else self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.stmt:
        """Translate the test and the branches."""
        node.test = self._truth(node.test)
        node.body, node.orelse = self._statements(node.body), self._statements(node.orelse)
        return node

    def visit_While(self, node: ast.While) -> ast.stmt:
        """Translate the test and the loop."""
        known = self._known(node.test)
        node.test = self._truth(node.test) if known is None else ast.Constant(known)
        node.body, node.orelse = self._statements(node.body), self._statements(node.orelse)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """Translate a choice, which the superstep may decide."""
        known = self._known(node.test)
        if known is not None:
            found: ast.expr = self.visit(node.body if known else node.orelse)
            return found
        node.test = self._truth(node.test)
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> NoReturn:
        """Refuse a function within the method."""
        self._refuse(node, "defines a function", "Define it outside the class")

    def visit_Lambda(self, node: ast.Lambda) -> NoReturn:
        """Refuse a function within the method."""
        self._refuse(node, "has a lambda", "Define a function outside the class")


class _Renaming(ast.NodeTransformer):
    """The message in the place of a variable."""

    def __init__(self, name: str) -> None:
        self._variable = name

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace the variable."""
        return ast.copy_location(_name(RECEIVED), node) if node.id == self._variable else node


def _has(slot: str) -> str:
    return f"brimful_has_{slot}"


def _given(slot: str) -> str:
    return f"brimful_given_{slot}"


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _assign(name: str, value: ast.expr, node: ast.AST | None = None) -> ast.stmt:
    statement = ast.Assign([ast.Name(name, ast.Store())], value)
    return statement if node is None else ast.copy_location(statement, node)


def _count() -> ast.expr:
    """Return the number of messages, 0 or 1."""
    return ast.Call(_name("int"), [_name(HAS_MESSAGE)], [])


def _missing() -> ast.expr:
    """Return an expression that fails, as there is no message."""
    return ast.BinOp(ast.Constant(1), ast.FloorDiv(), _count())
