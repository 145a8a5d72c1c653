"""The methods of a program that runs on shards, and the checks of them."""

from __future__ import annotations

import ast
import copy
import dis
import inspect
from collections.abc import Iterable
from types import CodeType, FunctionType
from typing import Any

from brimful.pregel.program import Pregel
from brimful.program import Program, combiner_of
from brimful.record import Record

#: The operations of `signal` on the weight of an edge, and the engine's names for them.
_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "plus", ast.Mult: "times"}
_FUNCTIONS = {"min": "least", "max": "greatest"}


class NotCompilable(Exception):
    """A program cannot run on shards, or not in this way: the reason, and the remedy."""

    def __init__(self, reason: str, remedy: str) -> None:
        """Take the reason and the remedy, without a full stop."""
        super().__init__(reason)
        self.reason, self.remedy = reason, remedy


def place(name: str, method: FunctionType, line: int | None = None) -> str:
    """Return a method with its file and a line; None: its first line."""
    code = method.__code__
    return f"{name} ({code.co_filename}, line {line or code.co_firstlineno})"


def check_class(program: Program) -> None:
    """Refuse a program whose run on shards would differ from that on a store.

    Raises:
        NotCompilable: The class has no combiner, or one that does not fit its delivery.
        UsageError: No combiner has that name.
    """
    name, combiner = type(program).__name__, program.combiner
    if program.mutates:
        raise NotCompilable(f"{name} changes the graph", "Leave mutates out")
    if combiner is None:
        raise NotCompilable(
            f"{name} has no combiner, which a program on shards needs",
            'Set combiner to "sum", "min", "max", "or" or "and"',
        )
    combiner_of(program)
    wanted = "latest" if combiner == "sum" else "combined"
    if program.delivery != wanted:
        raise NotCompilable(
            f'a program on shards with combiner "{combiner}" needs delivery "{wanted}", and {name} '
            f'has "{program.delivery}"',
            f'Set delivery to "{wanted}"',
        )
    unsupported = ["collect_score"] if combiner == "sum" else ["collect_score", "signal_score"]
    for method in unsupported:
        if overrides(program, method):
            raise NotCompilable(
                f'a program on shards with combiner "{combiner}" does not call {name}.{method}',
                "Remove it",
            )


def check_record(record: Record) -> None:
    """Refuse states that shards cannot hold.

    Raises:
        NotCompilable: A state is too large.
    """
    try:
        record.padded()
    except ValueError as error:
        raise NotCompilable(str(error), "Leave fields out") from error


def method_of(program: Program | Pregel, name: str) -> FunctionType:
    """Return the function behind a method.

    Raises:
        NotCompilable: The method is something else, such as a static method, or has other
            parameters.
    """
    base = Program if isinstance(program, Program) else Pregel
    if name in getattr(program, "__dict__", {}):
        raise NotCompilable(
            f"{type(program).__name__}.{name} is an attribute of the instance",
            "Define the method in the class",
        )
    method = getattr(type(program), name)
    kinds = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    if (
        not isinstance(method, FunctionType)
        or method.__name__ == "<lambda>"
        or method.__code__.co_flags & kinds
    ):
        shown = place(name, method) if isinstance(method, FunctionType) else name
        raise NotCompilable(
            f"{shown} of {type(program).__name__} is not a plain method",
            "Define it with def, and without a decorator, yield or async",
        )
    own, wanted = (
        [(one.kind, one.default is one.empty) for one in inspect.signature(of).parameters.values()]
        for of in (method, getattr(base, name))
    )
    if own != wanted:
        names = ", ".join(inspect.signature(getattr(base, name)).parameters)
        raise NotCompilable(
            f"{place(name, method)} does not take ({names})", "Give it these parameters"
        )
    return method


def overrides(program: Program | Pregel, method: str) -> bool:
    """Return whether the class of a program overrides a method."""
    base = Program if isinstance(program, Program) else Pregel
    return getattr(type(program), method) is not getattr(base, method)


def names_of(methods: Iterable[FunctionType]) -> set[str]:
    """Return the names of attributes and globals that methods read."""
    return {name for method in methods for name in method.__code__.co_names}


def without_weight(method: FunctionType) -> tuple[FunctionType, str]:
    """Return `signal` without the weight of the edge, and the operation on the weight.

    The engine computes one value per vertex and passes it along its edges.

    Raises:
        NotCompilable: The method reads the target, or the weight in another way.
    """
    where = place("signal", method)
    target, weight = method.__code__.co_varnames[2:4]
    function = tree_of(method)
    read = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    if target in read:
        raise NotCompilable(
            f"{where} reads {target}, which compiled code does not have", "Leave it out"
        )
    if weight not in read:
        return method, "unchanged"
    operations: set[str] = set()
    functions = builtins_of(method)
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            node.value = stripped(node.value, weight, operations, functions)
    left = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    if weight in left or len(operations) != 1 or "other" in operations:
        raise NotCompilable(
            f"{where} may use {weight} only in what it returns, alone or as value + {weight}, "
            f"value * {weight}, min(value, {weight}) or max(value, {weight}), always in the same "
            "way",
            f"Use {weight} in one of these ways",
        )
    return remade(function, method), operations.pop()


def tree_of(method: FunctionType) -> ast.FunctionDef:
    """Return the syntax tree of a method, with the lines of its file.

    Raises:
        NotCompilable: Its source code is not available.
    """
    where = place(method.__name__, method)
    if hasattr(method, "__wrapped__"):
        raise NotCompilable(f"{where} has a decorator", "Remove it")
    try:
        source = inspect.getsource(method)
    except (OSError, TypeError) as error:
        raise NotCompilable(
            f"the source code of {where} is not available",
            "Define the class in a file or a notebook",
        ) from error
    # A comment or a text may begin left of the method, so its lines are not moved.
    is_indented = source[:1].isspace()
    try:
        tree = ast.parse("if 1:\n" * is_indented + source)
    except SyntaxError:
        tree = ast.Module([ast.Pass()], [])
    function = tree.body[0].body[0] if isinstance(tree.body[0], ast.If) else tree.body[0]
    if not isinstance(function, ast.FunctionDef) or not _is_source(function, method):
        if found := _private(tree):
            raise NotCompilable(
                f"{where} uses {found}, which Python renames in a class",
                "Choose a name without two leading underscores",
            )
        raise NotCompilable(
            f"the code of {where} differs from its source file, which may have changed",
            "Import the class again",
        )
    ast.increment_lineno(function, method.__code__.co_firstlineno - 1 - is_indented)
    return function


def _private(tree: ast.AST) -> str | None:
    """Return a name that Python renames in the methods of a class; None: there is none."""
    for node in ast.walk(tree):
        name = getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "arg", "")
        if isinstance(name, str) and name.startswith("__") and not name.endswith("__"):
            return name
    return None


def _is_source(function: ast.FunctionDef, method: FunctionType) -> bool:
    """Return whether a method was compiled from a syntax tree.

    Code with variables of an enclosing function cannot be compared, and cannot be made again; test
    frameworks rewrite assertions.
    """
    if method.__code__.co_freevars or any(isinstance(n, ast.Assert) for n in ast.walk(function)):
        return True
    plain = copy.deepcopy(function)
    plain.decorator_list = []
    module = ast.Module([plain], [])
    code = compile(module, method.__code__.co_filename, "exec", dont_inherit=True)
    [own] = [one for one in code.co_consts if isinstance(one, CodeType)][:1]
    return _code(own) == _code(method.__code__)


#: Instructions that depend on imports of the module: calls of functions of an imported module, and
#: of methods, are compiled in different ways.
_OF_CALLS = ("PUSH_NULL", "PRECALL", "CALL")


def _code(code: CodeType) -> list[Any]:
    """Return the instructions of a code, as far as they do not depend on its module."""
    instructions: list[Any] = []
    for one in dis.get_instructions(code):
        name = one.opname.replace("LOAD_METHOD", "LOAD_ATTR")
        if isinstance(one.argval, CodeType):
            instructions.append((name, _code(one.argval)))
        elif one.opcode in dis.hasjrel or one.opcode in dis.hasjabs:
            # The distance of a jump depends on the instructions between.
            instructions.append(name)
        elif name not in _OF_CALLS:
            instructions.append((name, repr(one.argval)))
    return instructions


def builtins_of(method: FunctionType) -> set[str]:
    """Return the names of functions of Python that mean these in a method."""
    own = {*method.__code__.co_varnames, *method.__code__.co_freevars, *method.__globals__}
    return {name for name in ("min", "max", "sum", "len") if name not in own}


def remade(function: ast.FunctionDef, method: FunctionType) -> FunctionType:
    """Return the function of a syntax tree that was made of a method's.

    Raises:
        NotCompilable: The method uses variables of an enclosing function.
    """
    if method.__code__.co_freevars:
        raise NotCompilable(
            f"{place(method.__name__, method)} uses {method.__code__.co_freevars[0]} of an "
            "enclosing function",
            "Make it an attribute of the program",
        )
    function.decorator_list = []
    module = ast.fix_missing_locations(ast.Module([function], []))
    names: dict[str, Any] = {}
    exec(compile(module, method.__code__.co_filename, "exec"), method.__globals__, names)
    made: FunctionType = names[function.name]
    return made


def stripped(value: ast.expr, weight: str, operations: set[str], functions: set[str]) -> ast.expr:
    """Return an expression without its operation on the weight, and add that to `operations`.

    `functions` are names that mean those of Python.
    """

    def is_weight(node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == weight

    match value:
        case ast.Name() if is_weight(value):
            operations.add("plus")
            # 0.0 and a weight of -0.0 would be 0.0.
            return ast.copy_location(ast.Constant(-0.0), value)
        case ast.IfExp():
            value.body = stripped(value.body, weight, operations, functions)
            value.orelse = stripped(value.orelse, weight, operations, functions)
            return value
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            name, pair = _OPERATORS[type(op)], [left, right]
        # If one of two numbers is NaN, their order decides which Python returns.
        case ast.Call(func=ast.Name(id=function), args=[left, right], keywords=[]) if (
            function in _FUNCTIONS and function in functions and not is_weight(left)
        ):
            name, pair = _FUNCTIONS[function], [left, right]
        case _:
            if not (isinstance(value, ast.Constant) and value.value is None):
                operations.add("other")
            return value
    others = [node for node in pair if not is_weight(node)]
    if len(others) != 1:
        operations.add("other")
        return value
    operations.add(name)
    return others[0]
