"""The messages of Arrow IPC files and streams, and the memory that their batches take.

A file is a stream between two magic words, so that one reader serves both (Arrow columnar format,
section "IPC File Format"). Only a file of Polars has its messages at the places that the footer
names. pyarrow is not loaded.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any

from brimful.errors import InputError

_MAGIC = b"ARROW1"
#: The word that begins a message; older writers omit it.
_CONTINUATION = 0xFFFFFFFF
#: The most bytes of metadata; longer metadata is taken as damaged.
_METADATA_BYTES = 64 << 20
#: Batches up to this size are covered by the reserve.
_SMALL_BATCH_BYTES = 4 << 20
_DICTIONARY, _RECORDS = 2, 3


def start_of(path: str, raw: Any) -> int:
    """Return the offset of the first message: after the magic word of a file, 0 in a stream.

    Raises:
        InputError: The file is cut off, or of another format.
    """
    head = raw.read(8)
    if not head.startswith(_MAGIC):
        if len(head) < 8 or struct.unpack("<I", head[:4])[0] != _CONTINUATION:
            raise InputError(f"{path} is not an Arrow IPC file or stream; write it again")
        return 0
    size = _size(raw)
    raw.seek(max(size - len(_MAGIC), 0))
    if raw.read(len(_MAGIC)) != _MAGIC or size < 2 * len(_MAGIC):
        raise InputError(f"{path} is an Arrow IPC file that was cut off; write it again")
    return 8


def has_only_blocks(raw: Any, start: int) -> bool:
    """Return whether no message follows the magic word of a file, so that the footer is needed."""
    raw.seek(start)
    return start > 0 and raw.read(4) != struct.pack("<I", _CONTINUATION)


def _blocks(raw: Any, size: int) -> Iterator[int]:
    """Yield the offsets of dictionaries and record batches in the footer (`format/File.fbs`).

    Raises:
        struct.error, IndexError: The footer is damaged.
    """
    end = size - 4 - len(_MAGIC)
    raw.seek(max(end, 0))
    length = struct.unpack("<i", raw.read(4))[0]
    if not 0 < length <= min(_METADATA_BYTES, end):
        raise IndexError(length)
    raw.seek(end - length)
    footer = raw.read(length)
    root = _u32(footer, 0)
    for field in (2, 3):
        if _at(footer, root, field):
            blocks = _table(footer, root, field)
            for number in range(_u32(footer, blocks)):
                offset: int = struct.unpack_from("<q", footer, blocks + 4 + 24 * number)[0]
                if not 0 < offset < size:
                    raise IndexError(offset)
                yield offset


def _size(raw: Any) -> int:
    raw.seek(0, os.SEEK_END)
    size: int = raw.tell()
    return size


def batch_bytes(path: str) -> int:
    """Return `memory_bytes` of a file on this machine; pyarrow need not be loaded.

    Raises:
        InputError: As `memory_bytes`, or the file is of another format.
    """
    with open(path, "rb") as raw:
        return memory_bytes(path, raw, start_of(path, raw))


def memory_bytes(path: str, raw: Any, position: int) -> int:
    """Return the bytes that the largest batch and all dictionaries take, beyond small ones.

    Raises:
        InputError: A message is damaged, or reaches beyond the end of the file.
    """
    size, largest, dictionaries = _size(raw), 0, 0

    def broken(found: str) -> InputError:
        return InputError(
            f"{path} is cut off or damaged at byte {position:,}: found {found}; write it again"
        )

    blocks: Iterator[int] | None = None
    if has_only_blocks(raw, position):
        try:
            blocks = iter(list(_blocks(raw, size)))
        except (struct.error, IndexError):
            raise broken("neither a message nor a footer") from None
        position = next(blocks, size)
    while position < size:
        raw.seek(position)
        prefix = raw.read(8)
        if len(prefix) < 8:
            raise broken("half the length of a message")
        mark, length = struct.unpack("<Ii", prefix)
        if mark != _CONTINUATION:
            raise broken("no beginning of a message")
        if length == 0:
            break
        if not 0 < length <= min(_METADATA_BYTES, size - position):
            raise broken(f"a message with {length:,} bytes of metadata")
        try:
            kind, body, decoded = _message(raw, raw.read(length), position + 8 + length)
        except (struct.error, IndexError):
            raise broken("metadata that contradicts itself") from None
        position += 8 + length
        if not 0 <= body <= size - position:
            raise broken(f"a message of {body:,} bytes")
        position = position + body if blocks is None else next(blocks, size)
        # Twice: reading may decompress a batch, and may then convert its columns.
        need = 2 * (body + decoded)
        if kind == _DICTIONARY:
            dictionaries += need
        elif kind == _RECORDS:
            largest = max(largest, need)
    need = largest + dictionaries
    return need if need > _SMALL_BATCH_BYTES else 0


def _message(raw: Any, metadata: bytes, body: int) -> tuple[int, int, int]:
    """Return the kind of a message, the bytes of its body, and those that decompressing gives.

    The metadata is a FlatBuffer (`format/Message.fbs`), of which four fields are read.

    Raises:
        struct.error, IndexError: The metadata is damaged.
    """
    message = _u32(metadata, 0)
    kind = _field(metadata, message, 1, "<B")
    length = _field(metadata, message, 3, "<q")
    batch = _table(metadata, message, 2)
    if kind == _DICTIONARY:
        batch = _table(metadata, batch, 1)
    if kind not in (_DICTIONARY, _RECORDS) or not _at(metadata, batch, 3):
        return kind, length, 0
    decoded = 0
    buffers = _table(metadata, batch, 2)
    for number in range(_u32(metadata, buffers)):
        offset, size = struct.unpack_from("<qq", metadata, buffers + 4 + 16 * number)
        if size >= 8:
            # A compressed buffer begins with its own length, -1 where it is not compressed.
            raw.seek(body + offset)
            decoded += max(struct.unpack("<q", raw.read(8))[0], 0)
    return kind, length, decoded


def _u32(data: bytes, at: int) -> int:
    value: int = struct.unpack_from("<I", data, at)[0]
    return value


def _at(data: bytes, table: int, field: int) -> int:
    """Return the position of a field in a FlatBuffer's table; 0 if the field is missing."""
    fields = table - struct.unpack_from("<i", data, table)[0]
    size = struct.unpack_from("<H", data, fields)[0]
    entry = 4 + 2 * field
    if entry >= size:
        return 0
    offset: int = struct.unpack_from("<H", data, fields + entry)[0]
    return table + offset if offset else 0


def _field(data: bytes, table: int, field: int, kind: str) -> int:
    """Return the number in a field; 0 if the field is missing."""
    at = _at(data, table, field)
    value: int = struct.unpack_from(kind, data, at)[0] if at else 0
    return value


def _table(data: bytes, table: int, field: int) -> int:
    """Return the position of the table or vector that a field refers to.

    Raises:
        IndexError: There is no such field.
    """
    at = _at(data, table, field)
    if not at:
        raise IndexError(field)
    return at + _u32(data, at)
