"""Parameters of which `make nightly` runs more than `make test`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def with_nightly(some: Sequence[object], more: Sequence[object]) -> list[Any]:
    """Return parameters, of which `more` are of `make nightly`."""
    return [*some, *(pytest.param(one, marks=pytest.mark.nightly) for one in more)]


def rows_with_nightly(
    some: Sequence[tuple[object, ...]], more: Sequence[tuple[object, ...]]
) -> list[Any]:
    """Return parameters of several names, of which `more` are of `make nightly`."""
    return [*some, *(pytest.param(*one, marks=pytest.mark.nightly) for one in more)]
