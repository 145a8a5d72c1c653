"""The translation of `compute` into a function of numbers, for superstep 0 or for the others.

The method acts on its vertex; the function returns what it would do to it: the value, whether a
message is sent along the out-edges, the message, whether the vertex has halted, and for each
aggregator whether there is a contribution, and which. Values and messages with fields are named
tuples, which functions of the names below make. Invariant: the function does what the method does,
and a method that uses its vertex in another way is refused with the line and the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import NoReturn

from brimful.kernels.compute_paths import ComputeSource
from brimful.kernels.methods import builtins_of, remade, stripped
from brimful.record import Record
from brimful.wording import did_you_mean

#: Variables of the functions; a program hardly has others of these names.
VALUE, HAS_MESSAGE, RECEIVED = "brimful_value", "brimful_has_message", "brimful_received"
_SENDS, _MESSAGE, _HALTED = "brimful_sends", "brimful_message", "brimful_halted"
#: Functions that make a value and a message of a tuple and the line of the method, and one that
#: returns the received message if there is one.
MADE_VALUE, MADE_MESSAGE = "brimful_made_value", "brimful_made_message"
CHECKED_RECEIVED = "brimful_checked_received"

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


class Translation(ast.NodeTransformer):
    """The function of `compute` for superstep 0, or for the others."""

    def __init__(
        self,
        source: ComputeSource,
        slots: Mapping[str, str],
        records: tuple[Record | None, Record | None],
        *,
        has_degrees: bool,
    ) -> None:
        """Translate the method; `slots` are the aggregators and their kinds.

        `records` are those of values and of messages. `has_degrees`: compiled code knows the degree
        of its vertex.

        Raises:
            NotCompilable: The method cannot be translated.
        """
        self._source, self._slots, self._has_degrees = source, slots, has_degrees
        self._value_record, self._record = records
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
        if self._record is not None:
            none = [0.0 if field.kind == "float64" else False for field in self._record.fields]
            begun.append(_assign(_MESSAGE, self._with_fields(_tuple(map(ast.Constant, none)), 0)))
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
                node, "returns a value, which a run does not use", "Leave the value out"
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
                self.along.add(self._unchanged())
                return self._sent(self.visit(message), node)
            case "aggregate", [ast.Constant(value=slot), value] if slot in self._slots:
                self.contributes = self.contributes or node.lineno
                return self._contributed(str(slot), self.visit(value), node)
            case "aggregate", [ast.Constant(value=str(slot)), _]:
                self._refuse_aggregator(node, slot)
        return self.generic_visit(node)

    def _refuse_aggregator(self, node: ast.AST, name: str) -> NoReturn:
        known = did_you_mean(name, self._slots)
        self._source.refuse(
            node,
            f"uses the aggregator '{name}', which the program lacks{known}",
            "Name it in `aggregators`",
        )

    def _unchanged(self) -> str:
        return " ".join(["unchanged"] * (1 if self._record is None else len(self._record.fields)))

    def _with_fields(self, message: ast.expr, line: int) -> ast.expr:
        """Return a message with its fields, if messages have some."""
        if self._record is None:
            return message
        return ast.Call(_name(MADE_MESSAGE), [message, ast.Constant(line)], [])

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        """Translate an assignment, where a tuple becomes a value with fields."""
        is_value = any(self._source.field(target) == "value" for target in node.targets)
        self.generic_visit(node)
        if is_value and self._value_record is not None:
            node.value = ast.Call(_name(MADE_VALUE), [node.value, ast.Constant(node.lineno)], [])
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """Translate an assignment with an operation, which values with fields do not have."""
        if self._value_record is not None and self._source.field(node.target) == "value":
            self._source.refuse(
                node,
                f"changes {self._vertex}.value by an operator, and the value has fields",
                "Assign a tuple of all fields",
            )
        return self.generic_visit(node)

    def _sent(self, message: ast.expr, node: ast.stmt) -> list[ast.stmt]:
        message = self._with_fields(message, node.lineno)
        return [_assign(_MESSAGE, message, node), _assign(_SENDS, ast.Constant(1), node)]

    def _contributed(self, slot: str, value: ast.expr, node: ast.AST) -> list[ast.stmt]:
        return [_assign(_given(slot), value, node), _assign(_has(slot), ast.Constant(True), node)]

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        """Translate a loop over the edges, over the messages, or another one."""
        if self._source.field(node.iter) == "edges":
            return self._along_edges(node)
        if isinstance(node.iter, ast.Name) and node.iter.id == self._messages:
            if node.orelse:
                self._source.refuse(node, "has an else after a loop over messages", "Leave it out")
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
                    "does more with its edges than send a message along each",
                    f"Write: for target, value in {self._vertex}.edges: "
                    f"{self._vertex}.send(target, ...)",
                )
        message, operations = self._without_weight(message, weight)
        self._of_edges |= {target, weight}
        if any(isinstance(one, ast.NamedExpr) for one in ast.walk(message)):
            self._source.refuse(node, "assigns in a message", "Assign before the loop")
        if target in _names(message):
            self._source.refuse(node, f"reads {target} in a message", "Send the same to all")
        if weight in _names(message) or operations is None:
            self._source.refuse(
                node,
                f"uses {weight} in another way than alone, message + {weight}, message * "
                f"{weight}, min(message, {weight}) or max(message, {weight})",
                "Choose one of them" + " for a field of the tuple" * (self._record is not None),
            )
        self.along.add(operations)
        # The fields of a message may not hold its values.
        may_fail = self._record is not None or _may_fail(message)
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

    def _without_weight(self, message: ast.expr, weight: str) -> tuple[ast.expr, str | None]:
        """Return a message without the weight, and its operations; None: they are not known."""
        if weight not in _names(message):
            return message, self._unchanged()
        if self._record is None:
            return self._stripped(message, weight)
        if not isinstance(message, ast.Tuple) or len(message.elts) != len(self._record.fields):
            return message, None
        found = []
        for at, field in enumerate(self._record.fields):
            one = message.elts[at]
            if weight not in _names(one):
                found.append("unchanged")
                continue
            message.elts[at], operation = self._stripped(one, weight)
            if operation is None:
                return message, None
            if field.kind != "float64":
                self._source.refuse(
                    one,
                    f"computes the field {field.name} with {weight}, which is a float, and the "
                    f"field has the type {field.kind}",
                    "Give the field the type f8",
                )
            found.append(operation)
        return message, " ".join(found)

    def _stripped(self, value: ast.expr, weight: str) -> tuple[ast.expr, str | None]:
        operations: set[str] = set()
        value = stripped(value, weight, operations, self._functions)
        is_known = len(operations) == 1 and "other" not in operations
        return value, operations.pop() if is_known else None

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
            case ast.Call(
                func=ast.Attribute() as called, args=[ast.Constant(value=str(slot))], keywords=[]
            ) if self._source.field(called) == "aggregated":
                self._refuse_aggregator(node, slot)
            case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)], keywords=[]) if (
                name == self._messages
            ):
                return ast.copy_location(_count(), node)
            case ast.Call(func=ast.Name(id="sum"), args=[of, *start], keywords=[]) if (
                each := self._each(of)
            ) is not None and len(start) <= 1:
                zero = self.visit(start[0]) if start else ast.Constant(0)
                some: ast.expr = ast.BinOp(zero, ast.Add(), each)
                return ast.copy_location(ast.IfExp(_name(HAS_MESSAGE), some, zero), node)
            case ast.Call(func=ast.Name(id="min" | "max"), args=[of], keywords=options) if (
                each := self._each(of)
            ) is not None:
                match options:
                    case [] if self._record is not None and _is_received(each):
                        return ast.copy_location(_checked_received(), node)
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
                    if self._record is not None:
                        return ast.copy_location(_checked_received(), node)
                    choice = ast.IfExp(_name(HAS_MESSAGE), _name(RECEIVED), _missing())
                    return ast.copy_location(choice, node)
        self.generic_visit(node)
        return node

    def _truth(self, test: ast.expr) -> ast.expr:
        """Translate a test, where messages are true if there is one."""
        truth = self._source.fixed_truth(test)
        if truth is not None:
            return ast.copy_location(ast.Constant(truth), test)
        if any(isinstance(one, ast.NamedExpr) for one in ast.walk(test)):
            self._source.refuse(
                test, "assigns in a test, which Numba does not know", "Assign before the test"
            )
        match test:
            case ast.Name(id=name) if name == self._messages:
                return ast.copy_location(_name(HAS_MESSAGE), test)
            case ast.BoolOp():
                # A part with a fixed truth decides nothing, or decides after parts that may fail.
                decisive = isinstance(test.op, ast.Or)
                parts = [
                    self._truth(value)
                    for value in test.values
                    if self._source.fixed_truth(value) in (None, decisive)
                ]
                test.values = parts
                return parts[0] if len(parts) == 1 else test
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


def _tuple(values: Iterable[ast.expr]) -> ast.Tuple:
    return ast.Tuple(list(values), ast.Load())


def _is_received(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == RECEIVED


def _checked_received() -> ast.expr:
    """Return an expression of the received message that fails if there is none."""
    return ast.Call(_name(CHECKED_RECEIVED), [_name(RECEIVED), _name(HAS_MESSAGE)], [])


def _missing() -> ast.expr:
    """Return an expression that fails because there is no message."""
    return ast.BinOp(ast.Constant(1), ast.FloorDiv(), _count())
