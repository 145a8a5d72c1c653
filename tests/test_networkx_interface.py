"""The registration of the backend: its list of functions, their parameters, imports."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import import_module
from importlib.metadata import entry_points

import networkx as nx
import pytest

from brimful.networkx.info import FUNCTIONS, get_info
from brimful.networkx.interface import BACKEND


def test_the_list_of_functions_is_complete() -> None:
    for module in set(FUNCTIONS.values()):
        names = vars(import_module(f"brimful.networkx.functions.{module}")).items()
        own = {name for name, item in names if hasattr(item, "refusals") and name in vars(nx)}
        listed = {name for name, home in FUNCTIONS.items() if home == module}
        assert listed <= own and own - listed <= FUNCTIONS.keys(), module


def test_functions_have_the_parameters_of_networkx() -> None:
    for name in FUNCTIONS:
        original = nx.utils.backends._registered_algorithms[name].orig_func
        parameters = inspect.signature(original).parameters.values()
        own = inspect.signature(getattr(BACKEND, name)).parameters.values()
        assert [(p.name, p.default, p.kind) for p in own] == [
            (p.name, p.default, p.kind) for p in parameters
        ], name


def test_networkx_finds_the_backend() -> None:
    (backend,) = entry_points(group="networkx.backends", name="brimful")
    (info,) = entry_points(group="networkx.backend_info", name="brimful")
    assert backend.load() is BACKEND and info.load() is get_info
    assert "brimful" in (nx.pagerank.__doc__ or "")
    assert set(nx.config.backends.brimful) == {"budget", "least_edges"}
    with pytest.raises(AttributeError, match="no function 'greedy_color'"):
        BACKEND.greedy_color  # noqa: B018


def test_neither_package_loads_the_other() -> None:
    heavy = "'brimful._native', 'pyarrow', 'brimful.networkx.interface'"
    for code in (
        "import sys, brimful; brimful.Graph; assert 'networkx' not in sys.modules",
        f"import sys, networkx; print([name for name in ({heavy}) if name in sys.modules])",
    ):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert done.stdout in ("", "[]\n")
