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
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from brimful.errors import BrimfulError, UsageError
from brimful.identity import text_of
from brimful.kernels.machine_code import MachineCode
from brimful.kernels.numbers import Numbers

#: Modules whose functions Numba implements itself, so that Numba's version identifies them.
_KNOWN_MODULES = ("math", "cmath", "operator", "numpy")
#: The values that Numba functions read when the first kernel with them was compiled: Numba compiles
#: a function once, with the globals of that time.
_COMPILED: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()
#: A file begins with the digest of all that follows: a line of numbers and names, and the code.
_DIGEST_BYTES = hashlib.sha256().digest_size


class CachedKernel(NamedTuple):
    """A compiled kernel: its types, the words of a state and of a message, and its code."""

    numbers: Numbers
    words: tuple[int, int]
    code: MachineCode


class CacheEntry:
    """The file of a kernel in the cache."""

    def __init__(self, folder: Path, key: str) -> None:
        """Take the folder of all kernels, and the text that identifies this one."""
        self._path = folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.kernel"

    def load(self) -> CachedKernel | None:
        """Return the kernel; None if there is none, a damaged one, or that of another user."""
        try:
            with self._path.open("rb") as file:
                is_own = os.fstat(file.fileno()).st_uid == os.geteuid()
                data = file.read()
        except OSError:
            return None
        digest, rest = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        if not is_own or hashlib.sha256(rest).digest() != digest:
            return None
        line, code = rest.split(b"\n", 1)
        numbers, words, helpers = json.loads(line)
        words = tuple(words)
        return CachedKernel(Numbers(*numbers), words, MachineCode(tuple(helpers), code))

    def store(self, kernel: CachedKernel) -> None:
        """Write the kernel.

        Raises:
            StoreIoError: The system refused.
        """
        line = json.dumps((kernel.numbers, kernel.words, kernel.code.helpers))
        rest = line.encode() + b"\n" + kernel.code.data
        _write(self._path, hashlib.sha256(rest).digest() + rest)


def cache_entry(methods: Iterable[FunctionType], *more: object) -> CacheEntry | None:
    """Return the entry of the kernel of some methods; None if it cannot be in the cache.

    `more` names other compiled inputs.
    """
    from brimful.io.cache import cache_directory

    try:
        known: dict[FunctionType, None] = {}
        texts = [text for method in methods for text in _texts(method, known)]
        compiler = _compiler()
        folder = Path(cache_directory()) / "kernels"
        folder.mkdir(exist_ok=True)
    except (BrimfulError, ImportError, OSError):
        # The cache is optional: without one the program is compiled in each run.
        return None
    if not os.access(folder, os.W_OK | os.X_OK):
        return None
    return CacheEntry(folder, repr((compiler, texts, more)))


def _compiler() -> list[object]:
    """Return all that code depends on besides its program: compilers, processor, this package.

    Raises:
        ImportError: Numba is not installed.
    """
    found = find_spec("numba")
    if found is None or found.origin is None:
        raise ImportError("Numba is not installed")
    # Numba is not imported for it; `importlib.metadata`, which has it, too, takes 3 MiB.
    version = Path(found.origin).with_name("_version.py").read_text(encoding="utf-8")
    llvm: Any = import_module("llvmlite.binding")
    versions = [version, *(import_module(name).__version__ for name in ("llvmlite", "numpy"))]
    machine = [llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()]
    options = sorted(one for one in os.environ.items() if one[0].startswith("NUMBA_"))
    own = [path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py"))]
    return [sys.implementation.cache_tag, *versions, *machine, options, own]


def _texts(function: FunctionType, known: dict[FunctionType, None]) -> Iterator[str]:
    """Yield the code of a function, of those that it calls, and the globals that they read.

    Raises:
        UsageError: A global has no text that tells all of it.
    """
    if function in known:
        return
    known[function] = None
    yield text_of(function, function.__name__)
    names = _global_names(function)
    for value in _read(function):
        if hasattr(value, "py_func"):
            _check_compiled(value)
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


def _check_compiled(compiled: Any) -> None:
    """Refuse a function that Numba may have compiled with other globals than those of now.

    Raises:
        UsageError: It is so.
    """
    name = compiled.py_func.__name__
    # The functions themselves, because a name may mean another one by now.
    now = [
        value if hasattr(value, "py_func") else text_of(value, name)
        for value in _read(compiled.py_func)
    ]
    if not compiled.signatures:
        _COMPILED[compiled] = now
    elif _COMPILED.get(compiled) != now:
        raise UsageError(f"{name} was compiled before, maybe with other globals")


def _read(function: FunctionType) -> list[Any]:
    """Return the values that a function reads of enclosing functions and of globals.

    The parts of a tuple, which may be compiled functions, follow all of them.
    """
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    values = [*cells, *(function.__globals__[name] for name in _global_names(function))]
    for value in values:
        if isinstance(value, tuple):
            values += value
    return values


def _global_names(function: FunctionType) -> list[str]:
    return sorted(set(_names(function)) & function.__globals__.keys())


def _names(function: FunctionType) -> Iterator[str]:
    codes: list[Any] = [function.__code__]
    while codes:
        code = codes.pop()
        yield from code.co_names
        codes += [one for one in code.co_consts if isinstance(one, type(code))]


def _write(path: Path, data: bytes) -> None:
    """Write a file, whole or not at all.

    Raises:
        StoreIoError: The system refused.
    """
    from brimful.io.output import new_file

    with new_file(str(path), overwrite=True) as partial:
        Path(partial).write_bytes(data)
