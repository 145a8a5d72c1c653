"""The check of serializers: errors that name the type of an object, and losses of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from brimful.wording import shortened


def checked_dumps(name: str, dumps: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """Return `dumps` with errors that name the type of the object."""

    def write(value: Any) -> bytes:
        try:
            data = dumps(value)
        except Exception as error:
            part = _faulty_part(value, lambda one: not _is_written(dumps, one))
            raise TypeError(
                f"the serializer {name} cannot write {type(part).__name__} ({error}); return "
                "another type, or choose another serializer"
            ) from error
        # JSON turns tuples into lists, so results could differ from those of live objects.
        if name == "json" and not _is_kept(json.loads(data), value):
            part = _faulty_part(value, lambda one: not _is_kept(json.loads(dumps(one)), one))
            raise TypeError(
                f"JSON does not keep {shortened(part)}: tuples become lists, and keys of a dict "
                'become strings; return another type, or choose serializer="pickle"'
            )
        return data

    return write


def _is_written(dumps: Callable[[Any], bytes], value: Any) -> bool:
    try:
        dumps(value)
    except Exception:  # noqa: BLE001 - a serializer of the user may raise any.
        return False
    return True


def _is_kept(read: Any, value: Any) -> bool:
    """Return whether a value equals the value read; NaN, unequal to itself, is compared as text."""
    return bool(read == value) or repr(read) == repr(value)


def _faulty_part(value: Any, is_wrong: Callable[[Any], bool], above: tuple[int, ...] = ()) -> Any:
    """Return the innermost part of a wrong value that is wrong by itself, or contains itself.

    The value of a Pregel vertex is in a list that the author of the program does not see.
    """
    parts = value.values() if isinstance(value, dict) else value
    if isinstance(value, (dict, list, tuple)) and id(value) not in above:
        for part in parts:
            if is_wrong(part):
                return _faulty_part(part, is_wrong, (*above, id(value)))
    return value
