"""Compiled kernels on disk, in the user's cache directory.

Invariant: a kernel is found again only if everything that Numba compiled into it is the same. A
method that reads a value without a faithful text is compiled again in each run.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from brimful.errors import BrimfulError, UsageError
from brimful.identity import text_of
from brimful.io.output import new_file
from brimful.kernels.numbers import Numbers

#: Modules whose functions Numba implements itself, so that Numba's version identifies them.
_KNOWN_MODULES = ("math", "cmath", "operator", "numpy")


class Kept:
    """A kernel on disk: its source, which Numba keeps compiled next to it, and its numbers."""

    def __init__(self, folder: Path, key: str) -> None:
        """Take the folder of all kernels, and the text that identifies this one."""
        digest = hashlib.sha256(key.encode()).hexdigest()[:32]
        self._source, self._numbers = folder / f"{digest}.py", folder / f"{digest}.json"

    def numbers(self) -> Numbers | None:
        """Return the types of the kernel; None if it is not kept."""
        try:
            found = json.loads(self._numbers.read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        return Numbers(*found)

    def keep(self, numbers: Numbers) -> None:
        """Keep the types of the kernel."""
        _write(self._numbers, json.dumps(numbers))

    def source_file(self, source: str) -> str:
        """Return the file of the source code, written when missing."""
        if not self._source.exists():
            _write(self._source, source)
        return str(self._source)


def kept(methods: Iterable[FunctionType], *more: object) -> Kept | None:
    """Return the place of the kernel of some methods; None if no place can keep it.

    `more` names other compiled inputs.
    """
    import numba

    from brimful.io.cache import cache_directory

    try:
        known: dict[FunctionType, None] = {}
        texts = [text for method in methods for text in _texts(method, known)]
        folder = Path(cache_directory()) / "kernels"
        folder.mkdir(exist_ok=True)
    except (BrimfulError, OSError):
        # The cache is optional: without one the program is compiled in each run.
        return None
    if not os.access(folder, os.W_OK | os.X_OK):
        return None
    return Kept(folder, repr((numba.__version__, texts, more)))


def _texts(function: FunctionType, known: dict[FunctionType, None]) -> Iterator[str]:
    """Yield the code of a function, of those that it calls, and the globals that they read.

    Raises:
        UsageError: A global has no text that tells all of it, or the function's module cannot be
            imported.
    """
    if function in known:
        return
    known[function] = None
    # Numba imports this module when it loads the kernel.
    module = function.__module__
    if getattr(sys.modules.get(module), "__dict__", None) is not function.__globals__:
        raise UsageError(f"{module} is not the name of the module of {function.__name__}")
    yield module
    yield text_of(function, function.__name__)
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    names = sorted(set(_names(function)) & function.__globals__.keys())
    for value in [*cells, *(function.__globals__[name] for name in names)]:
        if hasattr(value, "py_func"):
            # Options of compiled functions, such as `error_model`.
            yield repr(sorted(value.targetoptions.items()))
            value = value.py_func
        if isinstance(value, FunctionType):
            yield from _texts(value, known)
        elif isinstance(value, type | ModuleType):
            home = value.__name__ if isinstance(value, ModuleType) else value.__module__
            if home.partition(".")[0] not in (*_KNOWN_MODULES, "builtins"):
                raise UsageError(f"the code of {value.__name__} is not looked at")
            yield value.__name__
        else:
            yield text_of(value, function.__name__)
    yield repr(names)


def _names(function: FunctionType) -> Iterator[str]:
    codes: list[Any] = [function.__code__]
    while codes:
        code = codes.pop()
        yield from code.co_names
        codes += [one for one in code.co_consts if isinstance(one, type(code))]


def _write(path: Path, text: str) -> None:
    """Write a file, whole or not at all.

    Raises:
        StoreIoError: The system refused.
    """
    with new_file(str(path), overwrite=True) as partial:
        Path(partial).write_text(text, encoding="utf-8")
