"""Packages and modules that annotations name, loaded when an annotation is evaluated.

`typing.get_type_hints` evaluates annotations with the names of their module. Importing pyarrow and
others there would make `import brimful` slow, and fail without packages that are optional.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb as duckdb
    import igraph as igraph
    import matplotlib as matplotlib
    import matplotlib.axes
    import networkx as networkx
    import numpy as numpy
    import numpy.typing
    import pandas as pandas
    import polars as polars
    import pyarrow as pyarrow
    import scipy as scipy
    import scipy.sparse

    from brimful import _native as _native
    from brimful import opening as opening
    from brimful import record as record
    from brimful import reporting as reporting
    from brimful.containers import bags as bags
    from brimful.tables import edge_values as edge_values
else:

    class _Later:
        """A package or module that is imported when one of its names is asked for."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            if attribute.startswith("__"):
                raise AttributeError(attribute)
            module = import_module(self._name)
            if hasattr(module, attribute):
                return getattr(module, attribute)
            return import_module(f"{self._name}.{attribute}")

    duckdb, igraph, matplotlib = _Later("duckdb"), _Later("igraph"), _Later("matplotlib")
    networkx, numpy, pandas = _Later("networkx"), _Later("numpy"), _Later("pandas")
    polars, pyarrow, scipy = _Later("polars"), _Later("pyarrow"), _Later("scipy")
    _native, bags = _Later("brimful._native"), _Later("brimful.containers.bags")
    opening = _Later("brimful.opening")
    record, reporting = _Later("brimful.record"), _Later("brimful.reporting")
    edge_values = _Later("brimful.tables.edge_values")
