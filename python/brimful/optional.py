"""Packages that brimful uses if they are installed, and does not require."""

from __future__ import annotations

import contextlib
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from brimful.errors import MissingPackageError


def require(package: str, purpose: str) -> Any:
    """Import a package that `purpose` needs and brimful does not.

    Raises:
        MissingPackageError: The package is not installed.
    """
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        top = package.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != top:
            raise
        raise _missing(top, purpose) from None


def require_installed(package: str, purpose: str) -> None:
    """Refuse work that needs a package; unlike `require`, leave the package unloaded.

    A package takes tens of MB, which the budget is checked for after this.

    Raises:
        MissingPackageError: The package is not installed.
    """
    if find_spec(package) is None:
        raise _missing(package, purpose)


def _missing(package: str, purpose: str) -> MissingPackageError:
    return MissingPackageError(
        f"{purpose} needs {package}, which is not installed; install it with "
        f"'pip install {package}'"
    )


def load_pandas() -> None:
    """Load pandas, if it is installed, before pyarrow does so with the first array or scalar.

    pyarrow drops an interruption of the import, and the work would go on.
    """
    with contextlib.suppress(ImportError):
        import pandas  # noqa: F401


class _NoPandas:
    """An importer that does not find pandas."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("the command line leaves pandas out", name=name)


def leave_pandas_out() -> None:
    """Let imports of pandas fail as if it were not installed; for a process of the command line.

    pyarrow would load it with the first array or scalar: a quarter of a second, and 35 MB.
    """
    sys.meta_path.insert(0, _NoPandas)


def admit_pandas() -> None:
    """End the effect of `leave_pandas_out`, before code of others is loaded."""
    with contextlib.suppress(ValueError):
        sys.meta_path.remove(_NoPandas)
