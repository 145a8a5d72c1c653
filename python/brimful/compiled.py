"""Programs compiled by Numba: the methods of a class become one kernel on the disk path.

Invariant: a compiled run calls the methods with the same values as an interpreted one. A program
that this cannot promise is refused before the run, with the method, the line and the reason.
`docs/kernel-abi.md` describes the kernel.
"""

from __future__ import annotations

import ast
import inspect
import math
import struct
import textwrap
from collections import namedtuple
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from brimful.errors import ProgramError, UsageError
from brimful.options.runs import CheckpointOptions, ProgramOptions, StepOptions
from brimful.options.table import WorkOptions, checked, picked

if TYPE_CHECKING:
    from brimful.graph import GraphLike
    from brimful.pregel.program import Pregel
    from brimful.program import Program
    from brimful.result import Result

#: The version of the kernel interface that the template below is written for.
_ABI_VERSION = 1

#: What `signal` may do with the weight of an edge, and the engine's name for it.
_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "plus", ast.Mult: "times"}
_FUNCTIONS = {"min": "least", "max": "greatest"}

#: Fields of the context of a kernel, of a vertex, and their offsets are those of C.
_CONTEXT = """abi_version:u4 size:u4 call:u4 state_words:u4 count:u8 failed:u8 parameters:u8
parameter_count:u8 silence:u8 sources:u8 targets:u8 weights:u8 first_source:u8 first_target:u8
source_signals:u8 sums:u8 vertices:u8 states:u8 signals:u8 vertex_count:u8 superstep:u8 round:u8
aggregate:u8 partial:u8 signal_threshold:f8 collect_threshold:f8 score:f8"""
_VERTEX = "id:u8 degree:u8 strength:f8 external:u8"

#: The kernel. Calls: 0 sets first states, 3 collects; the engine itself combines along edges.
_TEMPLATE = """
def kernel(pointer):
    c = carray(pointer, (1,))[0]
    count = int64(c.count)
    floats = carray(address(c.parameters), ({parameters} + 1,), float64)
    integers = carray(address(c.parameters), ({parameters} + 1,), int64)
    self = Parameters({values})
    vertices = carray(address(c.vertices), (count,), vertex_type)
    states = carray(address(c.states), (count,), state_type)
    signals = carray(address(c.signals), (count,), signal_type)
    partial = carray(address(c.partial), (4,), float64)
    status = 1
    try:
        if c.call == 0:
            for at in range(count):
                c.failed = at
                vertex = vertices[at]
                degree = int64(vertex.degree)
                new = state_type(initial_state(self, First({first})))
                states[at] = new
                partial[0] += 1.0
                signals[at] = signal_of(self, new, degree)
        else:
            sums = carray(address(c.sums), (count,), signal_type)
            bits = carray(address(c.sums), (count,), int64)
            for at in range(count):
                c.failed = at
                vertex = vertices[at]
                degree = int64(vertex.degree)
                old = states[at]
                new = old
                if bits[at] != {nothing}:
                    new = state_type(collect(self, {vertex}, (sums[at],)))
                    states[at] = new
                score = {score}
                c.score += score
                if score > threshold:
                    partial[0] += 1.0
                if {signals}:
                    signals[at] = signal_of(self, new, degree)
                else:
                    signals[at] = silence
        status = 0
    except Exception:
        status = 1
    return status


def signal_of(self, state, degree):
    if {has_no_edges}:
        return silence
    value = signal(self, {source}, 0, 1.0)
    if value is None:
        return silence
    return signal_type(plain(value))
"""


class Kernel(NamedTuple):
    """A compiled program: what the native side takes, and the object that holds the code."""

    description: dict[str, Any]
    code: object


def run(graph: GraphLike, program: Program | Pregel, store: str, options: ProgramOptions) -> Result:
    """Run a program compiled, on the disk path.

    Raises:
        UsageError: The program cannot be compiled, or an option is for stores.
        ProgramError: A method raised an exception.
    """
    from brimful import _native
    from brimful.graph import as_graph
    from brimful.identity import identity_of
    from brimful.io.ingest import Resources
    from brimful.program import Program, thresholds_of
    from brimful.result import Result

    if not isinstance(program, Program):
        raise UsageError(
            f"{type(program).__name__} is a Pregel program, and only programs derived from "
            'brimful.Program can be compiled; pass compile="never"'
        )
    for name, value in {"store": None if store == "memory" else store, **options}.items():
        if name in ("store", "cache", "lists", "scheduler") and value is not None:
            raise UsageError(f"a compiled program runs on shards, not on a store; leave {name} out")
    chosen = checked(ProgramOptions, options, "run", ("serializer", "store"))
    if chosen["mode"] == "async" and program.combiner == "sum":
        raise UsageError('combiner "sum" needs supersteps in a compiled run; leave mode out')
    resources = Resources(**picked(WorkOptions, chosen))
    opened = as_graph(graph, resources)
    saving = chosen["checkpoint_every"] is not None or chosen["resume"]
    thresholds_of(program)
    kernel = compiled(program, weighted=chosen["weighted"])
    try:
        native = _native.run_compiled(
            opened.native,
            kernel.description,
            **picked(StepOptions, chosen),
            **picked(CheckpointOptions, chosen),
            identity=identity_of(program, "compiled", whole=saving),
            reserve_bytes=0,
            **vars(resources.on(opened)),
        )
    except ProgramError as error:
        raise _failed(program, error) from error
    return Result(native)


def compiled(program: Program, *, weighted: bool) -> Kernel:
    """Compile the methods of a program to a kernel.

    Raises:
        UsageError: Numba is not installed, or the program cannot be compiled.
    """
    try:
        import numba
    except ImportError as error:
        raise UsageError(
            'compile="numba" needs Numba; install it with: pip install "brimful[numba]"'
        ) from error
    is_sum = program.combiner == "sum"
    _check_class(program)
    methods = {name: _method(program, name) for name in ("initial_state", "collect")}
    methods["signal"], along = _without_weight(_method(program, "signal"))
    has_score = _overrides(program, "signal_score")
    if has_score:
        methods["signal_score"] = _method(program, "signal_score")
    names = _names(methods.values())
    if weighted and "degree" in names:
        raise UsageError(
            "a compiled program cannot read vertex.degree in a weighted run; leave weighted out, "
            'or pass compile="never"'
        )
    fixed = {
        name: value
        for name in sorted(names)
        if isinstance(value := getattr(program, name, None), int | float)
    }
    types = _Types(numba, methods, tuple(fixed.values()), tuple(fixed), is_sum=is_sum)
    types.settle(str(program.combiner), along)
    shape = {
        "parameters": len(fixed),
        "values": "".join(
            f"{'floats' if isinstance(value, float) else 'integers'}[{at}], "
            for at, value in enumerate(fixed.values(), 1)
        ),
        "first": "None, degree, None"
        if is_sum
        else "integers[0] + int64(vertex.external), None, None",
        "vertex": types.vertex_of("old"),
        "source": types.vertex_of("state"),
        "score": "signal_score(self, Scored(new, degree, old))"
        if has_score
        else "float64(new != old)",
        "signals": "True" if is_sum else "score > threshold",
        # The engine calls for every vertex; signal() is for those with edges. Degrees are known
        # in sums only, where the run is not weighted.
        "has_no_edges": "degree == 0" if is_sum and not weighted else "False",
        "nothing": _bits(types.silence),
    }
    code = types.compile(_TEMPLATE.format(**shape), float(program.signal_threshold))
    description = {
        "name": f"{type(program).__module__}.{type(program).__qualname__}",
        "address": code.address,
        "abi_version": _ABI_VERSION,
        "combiner": program.combiner,
        "float_signals": types.signal == numba.float64,
        "float_states": types.state == numba.float64,
        "along": along,
        "parameters": [_bits(value) & (1 << 64) - 1 for value in fixed.values()],
        "reads_ids": "id" in _names([methods["initial_state"]]),
    }
    return Kernel(description, code)


def _failed(program: Program, error: ProgramError) -> ProgramError:
    """Return the error of a compiled run, with the way to its traceback."""
    return ProgramError(
        f"a method of {type(program).__name__} raised an exception, which compiled code cannot "
        f'show ({error}); pass compile="never" to see its traceback'
    )


def _check_class(program: Program) -> None:
    """Refuse a program whose compiled run would differ from the interpreted one.

    Raises:
        UsageError: The class has no combiner, or one that does not fit its delivery.
    """
    name, combiner = type(program).__name__, program.combiner
    if combiner is None:
        raise UsageError(
            f"{name} has no combiner, which a compiled program needs; set combiner to "
            '"sum", "min", "max" or "or", or pass compile="never"'
        )
    wanted = "latest" if combiner == "sum" else "combined"
    if program.delivery != wanted:
        raise UsageError(
            f'a compiled program with combiner "{combiner}" needs delivery "{wanted}", and {name} '
            f'has "{program.delivery}"; change it, or pass compile="never"'
        )
    unsupported = ["collect_score"] if combiner == "sum" else ["collect_score", "signal_score"]
    for method in unsupported:
        if _overrides(program, method):
            raise UsageError(
                f'{name}.{method} cannot be compiled with combiner "{combiner}"; remove it, or '
                'pass compile="never"'
            )


def _method(program: Program, name: str) -> FunctionType:
    """Return the function behind a method.

    Raises:
        UsageError: It is something else, such as a static method.
    """
    method = getattr(type(program), name)
    if not isinstance(method, FunctionType):
        raise UsageError(
            f"{type(program).__name__}.{name} must be a plain method to be compiled; "
            'write it as one, or pass compile="never"'
        )
    return method


def _overrides(program: Program, method: str) -> bool:
    """Return whether the class of a program defines a method anew."""
    from brimful.program import Program

    return getattr(type(program), method) is not getattr(Program, method)


def _names(methods: Any) -> set[str]:
    """Return the names of attributes and globals that methods read."""
    return {name for method in methods for name in method.__code__.co_names}


def _bits(value: float | int) -> int:
    """Return the bits of a number as a signed integer of 64 bits."""
    if isinstance(value, float):
        return int(struct.unpack("<q", struct.pack("<d", value))[0])
    return int(value)


def _silence(combiner: str, *, is_float: bool) -> float | int:
    """Return the signal that is never combined, which is also the sum of no signals."""
    if combiner in ("sum", "or"):
        return -0.0 if combiner == "sum" else 0
    least, greatest = (-math.inf, math.inf) if is_float else (-(1 << 63), (1 << 63) - 1)
    return greatest if combiner == "min" else least


def _named(name: str, fields: tuple[str, ...]) -> Any:
    """Return a class of named tuples, which Numba knows how to read."""
    return namedtuple(name, fields)


class _Types:
    """The types of states and signals, as Numba infers them from the methods."""

    def __init__(
        self,
        numba: Any,
        methods: dict[str, FunctionType],
        values: tuple[float | int, ...],
        names: tuple[str, ...],
        *,
        is_sum: bool,
    ) -> None:
        self._numba, self._methods, self._is_sum = numba, methods, is_sum
        self._parameters = _named("Parameters", names)
        # Ids are not read in sums, as vertices without edges share one state there.
        first = ("state", "degree", "signalled") if is_sum else ("id", "state", "signalled")
        self._first = _named("Vertex", first)
        later = ("state", "degree") if is_sum else ("state",)
        self._later = _named("Vertex", later)
        self._scored = _named("Vertex", ("state", "degree", "signalled"))
        self._functions = {name: numba.njit(method) for name, method in methods.items()}
        floats = tuple(float(v) if isinstance(v, float) else int(v) for v in values)
        self._self = numba.typeof(self._parameters(*floats))
        self.state: Any = None
        self.signal: Any = None
        self.silence: float | int = 0

    def settle(self, combiner: str, along: str) -> None:
        """Find the types of states and signals.

        Raises:
            UsageError: Numba cannot type a method, or a value is not one number.
        """
        nb, none = self._numba, self._numba.none
        first = (none, nb.int64, none) if self._is_sum else (nb.int64, none, none)
        vertex = self._tuple(self._first, first)
        self.state = self._number("initial_state", vertex)
        for _ in range(2):
            later = (self.state, nb.int64) if self._is_sum else (self.state,)
            vertex = self._tuple(self._later, later)
            self.signal = self._number("signal", vertex, nb.int64, nb.float64)
            if along != "unchanged" or self._is_sum:
                self.signal = nb.float64
            collected = self._number("collect", vertex, nb.types.UniTuple(self.signal, 1))
            if collected == self.state or self.state == nb.float64:
                break
            self.state = collected
        self.silence = _silence(combiner, is_float=self.signal == nb.float64)
        if "signal_score" in self._methods:
            scored = self._tuple(self._scored, (self.state, nb.int64, self.state))
            self._number("signal_score", scored)

    def _tuple(self, kind: Any, fields: tuple[Any, ...]) -> Any:
        """Return the type of a named tuple."""
        return self._numba.types.NamedTuple(fields, kind)

    def _number(self, name: str, *arguments: Any) -> Any:
        """Return int64 or float64, as a method returns integers or floats.

        Raises:
            UsageError: Numba cannot type the method, or it returns something else.
        """
        nb, function = self._numba, self._functions[name]
        try:
            function.compile((self._self, *arguments))
        except nb.core.errors.NumbaError as error:
            raise UsageError(self._refusal(name, error)) from error
        found = function.overloads[(self._self, *arguments)].signature.return_type
        found = getattr(found, "type", found) if isinstance(found, nb.types.Optional) else found
        if isinstance(found, nb.types.Float):
            return nb.float64
        if isinstance(found, nb.types.Integer | nb.types.Boolean):
            return nb.int64
        raise UsageError(
            f"{self._place(name)} returns {found}, and a compiled program has states and signals "
            'of one number each; return a number, or pass compile="never"'
        )

    def _place(self, name: str) -> str:
        """Return a method with its file and line."""
        code = self._methods[name].__code__
        return f"{name} ({code.co_filename}, line {code.co_firstlineno})"

    def _refusal(self, name: str, error: Exception) -> str:
        """Return the message for a method that Numba cannot type."""
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = next(
            (line for line in lines if not line.startswith(("Failed in", "During:", "---"))),
            "no reason given",
        )
        where = getattr(error, "loc", None)
        line = f" at line {where.line}" if where is not None and where.line else ""
        return (
            f"Numba cannot compile {self._place(name)}{line}: {reason}. Change the method, or pass "
            'compile="never".'
        )

    def vertex_of(self, state: str) -> str:
        """Return the code that makes a vertex from its state."""
        return f"Later({state}, degree)" if self._is_sum else f"Later({state})"

    def compile(self, source: str, threshold: float) -> Any:
        """Return the C function of the kernel."""
        import numpy as np
        from numba.core import cgutils

        nb = self._numba

        @nb.extending.intrinsic  # type: ignore[untyped-decorator]
        def address(context: Any, number: Any) -> Any:
            def to_pointer(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
                return builder.inttoptr(arguments[0], cgutils.voidptr_t)

            return nb.types.voidptr(number), to_pointer

        @nb.extending.intrinsic  # type: ignore[untyped-decorator]
        def plain(context: Any, value: Any) -> Any:
            number = value.type if isinstance(value, nb.types.Optional) else value

            def to_number(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
                return target.cast(builder, arguments[0], signature.args[0], number)

            return number(value), to_number

        def record(fields: str) -> Any:
            return np.dtype([tuple(field.split(":")) for field in fields.split()], align=True)

        context = nb.from_dtype(record(_CONTEXT))
        names = {
            **self._functions,
            "Parameters": self._parameters,
            "First": self._first,
            "Later": self._later,
            "Scored": self._scored,
            "address": address,
            "plain": plain,
            "carray": nb.carray,
            "int64": nb.int64,
            "float64": nb.float64,
            "vertex_type": record(_VERTEX),
            "state_type": self.state,
            "signal_type": self.signal,
            "silence": self.silence,
            "threshold": threshold,
        }
        exec(source, names)
        names["signal_of"] = nb.njit(names["signal_of"])
        signature = nb.int32(nb.types.CPointer(context))
        return nb.cfunc(signature)(names["kernel"])


def _without_weight(method: FunctionType) -> tuple[FunctionType, str]:
    """Return `signal` without the weight of the edge, and what it does with the weight.

    The engine computes one value per vertex and passes it along its edges.

    Raises:
        UsageError: The method reads the target, or the weight in another way.
    """
    code = method.__code__
    place = f"signal ({code.co_filename}, line {code.co_firstlineno})"
    target, weight = code.co_varnames[2:4]
    try:
        source = textwrap.dedent(inspect.getsource(method))
    except (OSError, TypeError) as error:
        raise UsageError(
            f"the source code of {place} is not at hand; define the class in a file or a notebook"
        ) from error
    tree = ast.parse(source)
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef), "a method is a function"
    read = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    if target in read:
        raise UsageError(
            f'{place} reads {target}, which a compiled program cannot; pass compile="never"'
        )
    if weight not in read:
        return method, "unchanged"
    operations: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            node.value = _stripped(node.value, weight, operations)
    left = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    if weight in left or len(operations) != 1 or "other" in operations:
        raise UsageError(
            f"{place} may use {weight} only in what it returns, as value + {weight}, value * "
            f"{weight}, min(value, {weight}) or max(value, {weight}), and in the same way each "
            'time; change it, or pass compile="never"'
        )
    if code.co_freevars:
        raise UsageError(
            f"{place} uses {code.co_freevars[0]} of an enclosing function; make it an attribute of "
            'the program, or pass compile="never"'
        )
    function.decorator_list = []
    ast.increment_lineno(tree, code.co_firstlineno - 1)
    ast.fix_missing_locations(tree)
    names: dict[str, Any] = {}
    exec(compile(tree, code.co_filename, "exec"), method.__globals__, names)
    return names[function.name], operations.pop()


def _stripped(value: ast.expr, weight: str, operations: set[str]) -> ast.expr:
    """Return an expression without its last operation, the one with the weight, and note that."""

    def is_weight(node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == weight

    match value:
        case ast.IfExp():
            value.body = _stripped(value.body, weight, operations)
            value.orelse = _stripped(value.orelse, weight, operations)
            return value
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            name, pair = _OPERATORS[type(op)], [left, right]
        case ast.Call(func=ast.Name(id=function), args=[left, right], keywords=[]) if (
            function in _FUNCTIONS
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
