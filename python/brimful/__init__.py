"""Graphs larger than memory, in a memory budget that you set.

>>> import brimful as bf
>>> g = bf.read("edges.txt.gz", budget="500M")  # doctest: +SKIP
>>> bf.pagerank(g).top(10)  # doctest: +SKIP

Importing this package is cheap: the native module, pyarrow and the rest load when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from brimful.errors import (
    BrimfulError,
    BudgetError,
    CorruptError,
    InputError,
    NotFoundError,
    ProgramError,
    StoreIoError,
    UsageError,
)

if TYPE_CHECKING:
    from brimful.algorithms import connected_components, pagerank
    from brimful.graph import Graph, read
    from brimful.result import Result

    __version__: str

__all__ = [
    "BrimfulError",
    "BudgetError",
    "CorruptError",
    "Graph",
    "InputError",
    "NotFoundError",
    "ProgramError",
    "Result",
    "StoreIoError",
    "UsageError",
    "__version__",
    "connected_components",
    "pagerank",
    "read",
]

_HOMES = {
    "Graph": "brimful.graph",
    "Result": "brimful.result",
    "connected_components": "brimful.algorithms",
    "pagerank": "brimful.algorithms",
    "read": "brimful.graph",
}


def __getattr__(name: str) -> object:
    """Load a public name from its module when it is first used (PEP 562)."""
    if name == "__version__":
        from importlib.metadata import version

        return version("brimful")
    if name in _HOMES:
        value: object = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'brimful' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
