"""Conditions on columns, such as "year >= 2020 and kind in ('a', 'b')", as expressions of Arrow.

The syntax is that of Python, whose parser reads it; no code is run. Invariant: only the nodes
below become expressions, and a condition is checked on an empty batch before it sees rows.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from brimful.comparisons import COMPARISONS
from brimful.errors import InputError, UsageError
from brimful.tables.joining import plain_type
from brimful.wording import did_you_mean, shortened

if TYPE_CHECKING:
    import pyarrow

#: The length of the longest condition, more than anyone writes by hand.
_MOST_CHARACTERS = 10_000
#: The most digits of a decimal number of Arrow.
_MOST_DIGITS = 76
_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_GRAMMAR = (
    "a condition compares columns (== != < <= > >=), tests them (in (1, 2), is None, is not None), "
    "computes (+ - * /) and joins tests (and, or, not)"
)


class Condition:
    """A condition on rows with some columns."""

    def __init__(
        self,
        text: str | Any,
        schema: pyarrow.Schema,
        place_hint: Callable[[str], str] = lambda column: "",
    ) -> None:
        """Take a string, or an expression of `pyarrow.compute`, about columns of `schema`.

        `place_hint` returns the end of a sentence about a column that is elsewhere.

        Raises:
            UsageError: The string is not a condition, names an unknown column, or compares
                incompatible types.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        self.text = str(text)
        #: The names of the columns that the condition needs.
        self.columns = set(schema.names)
        if isinstance(text, str):
            reader = _Reader(text, schema, place_hint)
            self.expression, self.columns = _parsed(text, reader), reader.columns
        elif isinstance(text, pc.Expression):
            self.expression = text
        else:
            raise UsageError(
                "a condition must be a string or an expression of pyarrow.compute, not "
                f"{type(text).__name__}"
            )
        try:
            schema.empty_table().filter(self.expression)
        except (pa.ArrowException, TypeError) as error:
            reason = " ".join(str(error).split())
            raise UsageError(
                f"the condition {shortened(self.text)} does not fit the columns "
                f"{', '.join(f'{field.name} ({field.type})' for field in schema)}: {reason}"
            ) from None

    def rows(self, batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        """Return the rows of a batch that meet the condition; a null meets none.

        Raises:
            InputError: A value cannot be computed, such as a sum that is too large.
        """
        import pyarrow as pa

        try:
            rows = pa.Table.from_batches([batch]).filter(self.expression).combine_chunks()
        except pa.ArrowException as error:
            reason = " ".join(str(error).split())
            raise InputError(f"the condition {shortened(self.text)} fails: {reason}") from None
        batches = rows.to_batches()
        return batches[0] if batches else batch.slice(0, 0)


def _parsed(text: str, reader: _Reader) -> Any:
    try:
        if len(text) > _MOST_CHARACTERS:
            raise UsageError(f"the condition is longer than {_MOST_CHARACTERS:,} characters")
        tree = ast.parse(text.strip(), mode="eval")
        return reader.read(tree.body)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(
            f"{shortened(text)!r} is not a condition such as \"year >= 2020 and kind == 'a'\": "
            f"{_GRAMMAR}"
        ) from None


def _is_float(node: ast.expr) -> bool:
    """Return whether a node is a literal with a decimal point."""
    literal = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(literal, ast.Constant) and isinstance(literal.value, float)


def _may_have(kind: pyarrow.DataType | None, value: Any) -> bool:
    """Return whether a column may have a value; False for a number beyond an exact type."""
    import pyarrow as pa

    if kind is None or not (pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        return True
    if isinstance(value, float) and pa.types.is_integer(kind):
        if not value.is_integer():
            return False
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return True
    try:
        pa.scalar(value, kind)
    except (pa.ArrowInvalid, OverflowError):
        return False
    return True


def _literal(node: ast.expr) -> bool | int | float | str | None:
    """Return the value of a literal; None for any other node."""
    match node:
        case ast.Constant(bool() | int() | float() | str() as value):
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
            return -number
    return None


class _Values(NamedTuple):
    """The values of a column that compare with each other, in the words of errors.

    Attributes:
        are: What a value is.
        literal: The literals that they are compared with.
        example: One of these.
        types: The types of these.
    """

    are: str
    literal: str
    example: bool | int | str
    types: tuple[type, ...]


def _values(kind: pyarrow.DataType) -> _Values | None:
    """Return the values of a type; None for a type whose comparisons Arrow alone knows."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if plain_type(kind) == pa.string():
        return _Values("text", "a text", "7", (str,))
    if pa.types.is_boolean(kind):
        return _Values("a truth value", "True or False", True, (bool,))
    if pa.types.is_decimal(kind):
        return _Values("a number", "a number", 7, (int, float, str))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _Values("a number", "a number", 7, (int, float))
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        is_zoned = pa.types.is_timestamp(kind) and kind.tz is not None
        example = "2026-01-31 00:00Z" if is_zoned else "2026-01-31"
        return _Values("a date or a time", "a text", example, (str,))
    return None


class _Reader:
    """Turns the nodes of a syntax tree into expressions."""

    def __init__(self, text: str, schema: pyarrow.Schema, place_hint: Callable[[str], str]) -> None:
        self._text, self._schema, self._place_hint = text, schema, place_hint
        #: The names of columns found so far.
        self.columns: set[str] = set()

    def read(self, node: ast.expr, kind: Any = None) -> Any:
        """Return the expression of a node; a literal compared with `kind` is converted for it."""
        import pyarrow.compute as pc

        match node:
            case ast.BoolOp(op, values):
                join = operator.and_ if isinstance(op, ast.And) else operator.or_
                return reduce(join, (self.read(value) for value in values))
            case ast.UnaryOp(ast.Not(), operand):
                return ~self.read(operand)
            case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
                return pc.scalar(self._number(-number, kind))
            case ast.BinOp(left, op, right) if type(op) in _OPERATIONS:
                ends = self.read(left), self.read(right)
                if isinstance(op, ast.Div) or _is_float(left) or _is_float(right):
                    # Arrow would drop the remainder of an integer division, and compute with the
                    # smallest type that holds a literal.
                    ends = ends[0].cast("float64"), ends[1].cast("float64")
                elif self._is_whole(node):
                    ends = ends[0].cast("int64"), ends[1].cast("int64")
                return _OPERATIONS[type(op)](*ends)
            case ast.Compare(left, ops, comparators):
                pairs = zip([left, *comparators], ops, comparators, strict=False)
                return reduce(operator.and_, (self._compare(*pair) for pair in pairs))
            case ast.Constant(bool() | int() | float() as value):
                return pc.scalar(self._number(value, kind))
            case ast.Constant(str() as value):
                return pc.scalar(self._text_of(value, kind))
            case ast.Name() | ast.Call():
                return pc.field(self._column(node))
        raise self._unknown(node)

    def _compare(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        if isinstance(op, (ast.Is, ast.IsNot)):
            if not (isinstance(right, ast.Constant) and right.value is None):
                raise self._unknown(right)
            value = self.read(left)
            return value.is_null() if isinstance(op, ast.Is) else value.is_valid()
        if isinstance(op, (ast.In, ast.NotIn)):
            if not isinstance(right, (ast.Tuple, ast.List, ast.Set)):
                raise self._unknown(right)
            for one in right.elts:
                self._refuse_other_values(left, one)
            kind = self._type(left)
            # A number that the column cannot have equals none of its values.
            listed = [one for one in self._listed(right.elts, kind) if _may_have(kind, one)]
            of_floats = pa.types.is_floating(kind) if kind else float in map(type, listed)
            if of_floats and 0.0 in listed:
                # Arrow looks for the bits of a number, and those of both zeros differ.
                listed += [0.0, -0.0]
            try:
                values = pa.array(listed, kind)
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                raise UsageError(
                    f"the list in the condition {shortened(self._text)} does not fit the type "
                    f"{kind} of the column: {error}"
                ) from None
            value = self.read(left)
            # A null meets neither `in` nor `not in`.
            contained = pc.if_else(
                value.is_valid(), value.isin(values), pa.scalar(None, pa.bool_())
            )
            return contained if isinstance(op, ast.In) else ~contained
        if type(op) not in COMPARISONS:
            raise self._unknown(left)
        self._refuse_other_values(left, right)
        self._refuse_other_values(right, left)
        kinds = self._type(right), self._type(left)
        return COMPARISONS[type(op)](self.read(left, kinds[0]), self.read(right, kinds[1]))

    def _refuse_other_values(self, column: ast.expr, other: ast.expr) -> None:
        """Refuse to compare a column with a literal, or a column, of values that it cannot have."""
        values = self._values(column)
        if values is None:
            return
        name, literal, others = ast.unparse(column), _literal(other), self._values(other)
        if literal is not None and type(literal) not in values.types:
            example = str(literal) if values.are == "text" else values.example
            raise UsageError(
                f"{name} is {values.are}; compare it with {values.literal}, as in "
                f"{name} == {example!r}"
            )
        if others is not None and others.are != values.are:
            raise UsageError(
                f"{name} is {values.are}, and {ast.unparse(other)} is {others.are}; compare "
                "columns of one kind"
            )

    def _values(self, node: ast.expr) -> _Values | None:
        """Return the values of a column; None for any other node."""
        is_column = isinstance(node, (ast.Name, ast.Call))
        return _values(self._schema.field(self._column(node)).type) if is_column else None

    def _listed(self, nodes: list[ast.expr], kind: Any) -> Iterator[Any]:
        """Yield the values of a list that is compared with a column of the type `kind`."""
        for node in nodes:
            match node:
                case ast.Constant(str() as value):
                    literal = self._text_of(value, kind)
                    yield literal.as_py() if hasattr(literal, "as_py") else literal
                case ast.Constant(bool() | int() | float() as number):
                    yield number
                case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
                    yield -number
                case _:
                    raise self._unknown(node)

    def _number(self, number: float, kind: Any) -> Any:
        """Return a number that compares with a column of the type `kind` exactly.

        Integers of Arrow have 64 bits, and signed ones compare neither with large unsigned ones nor
        with decimal numbers of few digits. Arrow refuses integers that a float would round. A
        number of the type float32 may differ from the float64 with the same digits.
        """
        import pyarrow as pa

        of_integers = kind is not None and pa.types.is_integer(kind)
        if of_integers and isinstance(number, float) and math.isfinite(number):
            if not number.is_integer():
                # All numbers between two integers compare with integers alike.
                return pa.scalar(math.floor(number) + Decimal("0.5"))
            number = int(number)
        is_integer = isinstance(number, int) and not isinstance(number, bool)
        is_decimal = kind == pa.uint64() or (kind is not None and pa.types.is_decimal(kind))
        if is_integer and (is_decimal or not -(1 << 63) <= number < 1 << 63):
            try:
                return pa.scalar(Decimal(number))
            except pa.ArrowInvalid:
                raise UsageError(
                    f"{shortened(number)} in the condition {shortened(self._text)} has more than "
                    f"{_MOST_DIGITS} digits"
                ) from None
        if isinstance(number, float) and kind == pa.float32():
            return pa.scalar(number, kind)
        return number

    def _text_of(self, value: str, kind: Any) -> Any:
        """Return a text; one that is compared with a time or a decimal number is one."""
        import pyarrow as pa

        if kind is None or not (pa.types.is_temporal(kind) or pa.types.is_decimal(kind)):
            return value
        try:
            return pa.scalar(value).cast(kind)
        except pa.ArrowException:
            raise UsageError(
                f"{value!r} in the condition {shortened(self._text)} is not of type {kind}"
            ) from None

    def _type(self, node: ast.expr) -> Any:
        """Return the type of a column or of an operation on integers; None for anything else.

        That of categories is the type of their values.
        """
        import pyarrow as pa

        if isinstance(node, (ast.Name, ast.Call)):
            kind = self._schema.field(self._column(node)).type
            return kind.value_type if pa.types.is_dictionary(kind) else kind
        return pa.int64() if isinstance(node, ast.BinOp) and self._is_whole(node) else None

    def _is_whole(self, node: ast.expr) -> bool:
        """Return whether the values of a node are integers that a signed one of 64 bits holds.

        Those of an operation may be beyond 64 bits, which is an error where it is computed.
        """
        import pyarrow as pa

        match node:
            case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult(), right):
                return self._is_whole(left) and self._is_whole(right)
            case ast.UnaryOp(ast.USub(), ast.Constant(int() as number)):
                return -number >= -(1 << 63)
            case ast.Constant(int() as number):
                return not isinstance(number, bool) and number < 1 << 63
            case ast.Name() | ast.Call():
                kind = self._type(node)
                return bool(pa.types.is_integer(kind)) and kind != pa.uint64()
        return False

    def _column(self, node: ast.expr) -> str:
        match node:
            case ast.Name(name):
                column = name
            case ast.Call(ast.Name("column"), [ast.Constant(str() as name)], []):
                column = name
            case _:
                raise self._unknown(node)
        if column not in self._schema.names:
            raise UsageError(
                f"there is no column {column} (found: {', '.join(self._schema.names)})"
                + (self._place_hint(column) or did_you_mean(column, self._schema.names))
            )
        self.columns.add(column)
        return column

    def _unknown(self, node: ast.expr) -> UsageError:
        part = ast.get_source_segment(self._text.strip(), node) or type(node).__name__
        return UsageError(
            f"{shortened(part)!r} cannot be in the condition {shortened(self._text)}: {_GRAMMAR}"
        )
