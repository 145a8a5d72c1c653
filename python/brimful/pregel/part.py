"""The part of a process in a run of a program: the whole run, or a share of it on a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Part:
    """The part of this process in a run."""

    #: Whether several processes make the run.
    is_divided: bool = False
    #: Whether vertices are computed here: the driver of a cluster computes none.
    computes: bool = True

    @classmethod
    def of(cls, share: Mapping[str, Any] | None) -> Part:
        """Return the part of a process with a share; None: it makes the whole run."""
        return ALONE if share is None else cls(True, share["index"] is not None)


#: The whole run.
ALONE = Part()
#: The driver of a run on a cluster.
OBSERVER = Part(True, False)
