"""Reads structs in Thrift's compact protocol, which the headers and footers of Parquet are.

A struct becomes a dictionary by field number; its values are numbers, truth values, bytes, lists
and structs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

#: Types of the protocol.
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_NUMBERS = (4, 5, 6)
#: The most structs, lists and maps within each other; Parquet's have five.
_DEEPEST = 16
_NUMBER_BITS = 64
_FLOAT = struct.Struct("<d")


class NoThriftError(Exception):
    """The bytes are not of Thrift's compact protocol."""


class ThriftReader:
    """Reads structs from bytes, from front to back.

    Attributes:
        at: The position after the last struct.
    """

    def __init__(self, data: bytes) -> None:
        """Begin at the first byte."""
        self._data = data
        self.at = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Return the struct that begins here.

        Raises:
            IndexError: It reaches beyond the end of the bytes.
            NoThriftError: The bytes are none.
        """
        fields: dict[int, Any] = {}
        for field, kind in self._fields():
            # A field's truth value is its type.
            fields[field] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)
        return fields

    def items(self, field: int, *inner: int) -> Iterator[Any]:
        """Yield the items of a list in the struct that begins here, and keep none.

        With `inner` they are structs, and the items of their own lists are yielded, and so on.

        Raises:
            IndexError: The struct reaches beyond the end of the bytes.
            NoThriftError: The bytes are none.
        """
        for found, kind in self._fields():
            if found == field and kind == _LIST:
                of, count = self._list_head()
                for _ in range(count):
                    if inner and of == _STRUCT:
                        yield from self.items(*inner)
                    else:
                        yield self._value(of, 1)
            elif kind not in (_TRUE, _FALSE):
                self._value(kind, 0)

    def _fields(self) -> Iterator[tuple[int, int]]:
        """Yield number and type of each field of a struct; the caller reads the value."""
        last = 0
        while head := self._byte():
            last = last + (head >> 4) if head >> 4 else self._number()
            yield last, head & 15

    def _list_head(self) -> tuple[int, int]:
        """Read the type and the number of the items of a list."""
        head = self._byte()
        return head & 15, self._varint() if head >> 4 == 15 else head >> 4

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _DEEPEST:
            raise NoThriftError("values within each other")
        if kind in _NUMBERS:
            return self._number()
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_LIST, _SET):
            of, count = self._list_head()
            return [self._value(of, depth + 1) for _ in range(count)]
        if kind == _MAP:
            count = self._varint()
            kinds = self._byte() if count else 0
            pair = (kinds >> 4, kinds & 15)
            return [self._value(one, depth + 1) for _ in range(count) for one in pair]
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._byte()
        if kind == _DOUBLE:
            return _FLOAT.unpack(self._bytes(_FLOAT.size))[0]
        raise NoThriftError(f"type {kind}")

    def _bytes(self, length: int) -> bytes:
        taken = self._data[self.at : self.at + length]
        if len(taken) < length:
            raise IndexError(length)
        self.at += length
        return taken

    def _byte(self) -> int:
        byte = self._data[self.at]
        self.at += 1
        return byte

    def _varint(self) -> int:
        value = 0
        for shift in range(0, _NUMBER_BITS, 7):
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise NoThriftError("a number of more than 64 bits")

    def _number(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
