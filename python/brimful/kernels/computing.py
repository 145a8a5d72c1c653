"""`compute` of Pregel programs as functions of numbers, made of its source code.

The method acts on its vertex; the functions return what they would do to it: the value, whether a
message is sent along the out-edges, the message, whether the vertex has halted, and for each
aggregator whether there is a contribution, and which. One of them is for superstep 0, where no
message is there, and one for the others. Invariant: they do what the method does, and a method
that uses its vertex in another way is refused with the line and the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from types import FunctionType
from typing import NamedTuple, NoReturn

from brimful.kernels.compute_paths import ComputeSource
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
from brimful.kernels.steps import check_master, has_steps
from brimful.pregel.program import Pregel

#: Variables of the functions; a program hardly has others of these names.
VALUE, HAS_MESSAGE, RECEIVED = "brimful_value", "brimful_has_message", "brimful_received"
_SENDS, _MESSAGE, _HALTED = "brimful_sends", "brimful_message", "brimful_halted"

#: The combiners, by the operator or the function of two messages.
_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "sum", ast.BitOr: "or", ast.BitAnd: "and"}
_FUNCTIONS = ("min", "max")
#: The operators that raise an exception for some numbers.
_FAILS = (ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)

#: How compiled code knows fields and methods of a vertex.
_REMEDIES = {
    "edges": "Loop over it to send a message along each edge",
    "aggregate": "Call it as a statement, with the name of an aggregator in quotes",
    "aggregated": "Call it with the name of an aggregator in quotes",
    "send_to_all": "Call it as a statement, with a message",
    "vote_to_halt": "Call it as a statement",
    "context": "Read an aggregator",
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

    def place(self, line: int | None = None) -> str:
        """Return `compute` with its file and a line of it; None: its first line."""
        return place("compute", self.functions["first"], line)


def computing_of(program: Pregel, slots: Mapping[str, str], *, is_weighted: bool) -> Computing:
    """Return the functions of a program; `slots` are its aggregators and their kinds.

    Raises:
        Unfit: Functions of numbers cannot replace the method.
    """
    _check_class(program)
    method = method_of(program, "compute")
    combiner = _combiner(program)
    sources = [ComputeSource(method, is_first=is_first) for is_first in (True, False)]
    has_degrees = combiner == "sum" and not is_weighted
    first, later = (_Translation(source, slots, has_degrees=has_degrees) for source in sources)
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
        all(source.always_halts for source in sources),
        first.contributes,
        later.read,
        first.message_may_fail or later.message_may_fail,
        first.read.get("aggregated"),
        has_steps(program),
    )


def _check_class(program: Pregel) -> None:
    """Refuse a class whose vertices change the graph, or whose master switches methods.

    Raises:
        Unfit: The class is one of these.
    """
    name = type(program).__name__
    if program.mutates:
        raise Unfit(f"{name} changes the graph", "Leave mutates out")
    check_master(program)


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
        raise Unfit(f"{place('combine', method)} is no known combiner", f"Let it return {ways}")
    return operation


class _Translation(ast.NodeTransformer):
    """The function of `compute` for superstep 0, or for the others."""

    def __init__(
        self, source: ComputeSource, slots: Mapping[str, str], *, has_degrees: bool
    ) -> None:
        """Translate the method; `slots` are the aggregators and their kinds.

        `has_degrees`: compiled code knows the degree of its vertex.

        Raises:
            Unfit: The method cannot be translated.
        """
        self._source, self._slots, self._has_degrees = source, slots, has_degrees
        self._functions = builtins_of(source.method)
        #: The variables of loops over the edges.
        self._of_edges: set[str] = set()
        self.along: set[str] = set()
        #: The fields that are read, and the first line of each.
        self.read: dict[str, int] = {}
        #: The first line that contributes to an aggregator.
        self.contributes: int | None = None
        self.message_may_fail = False
        self._vertex, self._messages, tree = source.vertex, source.messages, source.tree
        zeros: dict[str, bool | int] = {_SENDS: 0, _MESSAGE: 0, _HALTED: False}
        for slot, kind in slots.items():
            zeros |= {_has(slot): False, _given(slot): False if kind == "bool" else 0}
        begun = [_assign(name, ast.Constant(value)) for name, value in zeros.items()]
        tree.body = [*begun, *self._statements(source.body), self._result()]
        if used := sorted(self._of_edges & _names(tree)):
            self._source.refuse(
                tree, f"uses {used[0]} besides its loop over the edges", "Choose another name"
            )
        tree.name = f"compute_{'first' if source.is_first else 'later'}"
        arguments = (source.own, self._vertex, VALUE, HAS_MESSAGE, RECEIVED)
        tree.args = ast.arguments([], [ast.arg(name) for name in arguments], None, [], [], None, [])
        tree.returns = None
        self.function = remade(tree, source.method)

    def _result(self) -> ast.Return:
        names = [VALUE, _SENDS, _MESSAGE, _HALTED]
        names += [name for slot in self._slots for name in (_has(slot), _given(slot))]
        return ast.Return(ast.Tuple([_name(name) for name in names], ast.Load()))

    def _statements(self, statements: Iterable[ast.stmt]) -> list[ast.stmt]:
        translated: list[ast.stmt] = []
        for statement in statements:
            new = self.visit(statement)
            translated += new if isinstance(new, list) else [new]
        return translated

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        """Return the result of the call: value, message, vote and contributions."""
        if node.value is not None and not (
            isinstance(node.value, ast.Constant) and node.value.value is None
        ):
            self._source.refuse(
                node, "returns a value, and compute returns none", "Leave the value out"
            )
        return ast.copy_location(self._result(), node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | list[ast.stmt]:
        """Translate a call of a method of the vertex into assignments."""
        match node.value:
            case ast.Call(func=ast.Attribute() as called, args=arguments, keywords=[]):
                name = self._source.field(called)
            case _:
                return self.generic_visit(node)
        match name, arguments:
            case "vote_to_halt", []:
                return [_assign(_HALTED, ast.Constant(True), node)]
            case "send_to_all", [message]:
                self.along.add("unchanged")
                return self._sent(self.visit(message), node)
            case "aggregate", [ast.Constant(value=slot), value] if slot in self._slots:
                self.contributes = self.contributes or node.lineno
                return self._contributed(str(slot), self.visit(value), node)
        return self.generic_visit(node)

    def _sent(self, message: ast.expr, node: ast.AST) -> list[ast.stmt]:
        return [_assign(_MESSAGE, message, node), _assign(_SENDS, ast.Constant(1), node)]

    def _contributed(self, slot: str, value: ast.expr, node: ast.AST) -> list[ast.stmt]:
        return [_assign(_given(slot), value, node), _assign(_has(slot), ast.Constant(True), node)]

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        """Translate a loop over the edges, over the messages, or another one."""
        if self._source.field(node.iter) == "edges":
            return self._along_edges(node)
        if isinstance(node.iter, ast.Name) and node.iter.id == self._messages:
            if node.orelse:
                self._source.refuse(node, "has an else of a loop over messages", "Leave it out")
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
            ) if self._source.field(called) == "send" and receiver == target:
                pass
            case _:
                self._source.refuse(
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
            self._source.refuse(node, "assigns in a message", "Assign before the loop")
        if target in _names(message):
            self._source.refuse(node, f"reads {target} in a message", "Send the same to all")
        if weight in _names(message) or len(operations) > 1 or "other" in operations:
            self._source.refuse(
                node,
                f"uses {weight} in another way than message + {weight}, message * {weight}, "
                f"min(message, {weight}) or max(message, {weight})",
                "Choose one of them",
            )
        self.along.add(operations.pop() if operations else "unchanged")
        may_fail = _may_fail(message)
        sent = self._sent(self.visit(message), node)
        if not may_fail:
            return sent
        # Without edges nothing is evaluated, such as a division by their number.
        if self._has_degrees:
            self.read.setdefault("degree", node.lineno)
            degree = ast.Attribute(_name(self._vertex), "degree", ast.Load())
            return [ast.copy_location(ast.If(degree, sent, []), node)]
        self.message_may_fail = True
        failed = [_assign(_SENDS, ast.Constant(-1), node)]
        handler = ast.ExceptHandler(_name("Exception"), None, failed)
        return [ast.copy_location(ast.Try(sent, [handler], [], []), node)]

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Translate a field of the vertex."""
        match self._source.field(node):
            case None:
                self.generic_visit(node)
                return node
            case "value":
                return ast.copy_location(ast.Name(VALUE, node.ctx), node)
            case "superstep" if self._source.is_first:
                return ast.copy_location(ast.Constant(0), node)
            case "superstep" | "degree" | "id" as field:
                self.read.setdefault(field, node.lineno)
                return node
            case "send":
                self._source.refuse(
                    node,
                    f"calls {self._vertex}.send outside a loop over the edges",
                    f"Use {self._vertex}.send_to_all, or send along each edge",
                )
            case other:
                self._source.refuse(
                    node,
                    f"uses {self._vertex}.{other} in a way that compiled code does not know",
                    _REMEDIES.get(other, "Leave it out"),
                )

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Refuse the vertex and the messages where they are more than read."""
        if node.id == self._vertex:
            self._source.refuse(node, f"passes {self._vertex} on", "Pass its fields on")
        if node.id == self._messages:
            self._source.refuse(
                node,
                f"uses {self._messages} in a way that compiled code does not know",
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
            ) if self._source.field(called) == "aggregated" and slot in self._slots:
                self.read.setdefault("aggregated", node.lineno)
                values = ast.Attribute(_name(self._source.own), "aggregated", ast.Load())
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
                        self._source.refuse(node, "gives min or max a key", "Leave it out")
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
                # Parts with a fixed truth decide nothing, or the whole would have a fixed truth.
                open_parts = [
                    value for value in test.values if self._source.fixed_truth(value) is None
                ]
                if len(open_parts) == 1:
                    return self._truth(open_parts[0])
                test.values = [self._truth(value) for value in open_parts]
                return test
            case ast.UnaryOp(op=ast.Not()):
                test.operand = self._truth(test.operand)
                return test
        translated: ast.expr = self.visit(test)
        return translated

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
        truth = self._source.fixed_truth(node.test)
        node.test = self._truth(node.test) if truth is None else ast.Constant(truth)
        node.body, node.orelse = self._statements(node.body), self._statements(node.orelse)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """Translate a choice, which the superstep may decide."""
        truth = self._source.fixed_truth(node.test)
        if truth is not None:
            chosen: ast.expr = self.visit(node.body if truth else node.orelse)
            return chosen
        node.test = self._truth(node.test)
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> NoReturn:
        """Refuse a function within the method."""
        self._source.refuse(node, "defines a function", "Define it outside the class")

    def visit_Lambda(self, node: ast.Lambda) -> NoReturn:
        """Refuse a function within the method."""
        self._source.refuse(node, "has a lambda", "Define a function outside the class")


class _Renaming(ast.NodeTransformer):
    """The message in the place of a variable."""

    def __init__(self, name: str) -> None:
        self._variable = name

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace the variable."""
        return ast.copy_location(_name(RECEIVED), node) if node.id == self._variable else node


def _may_fail(message: ast.expr) -> bool:
    """Return whether the evaluation of a message may raise an exception."""
    parts = list(ast.walk(message))
    divisions = [one for one in parts if isinstance(one, ast.BinOp) and isinstance(one.op, _FAILS)]
    is_safe = all(isinstance(one.right, ast.Constant) and one.right.value for one in divisions)
    return not is_safe or any(isinstance(one, ast.Call | ast.Subscript) for one in parts)


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
