"""The role of a process in a run of a program: alone, a worker of a cluster, or the driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Role:
    """The role of this process in a run."""

    #: Whether several processes make the run.
    is_divided: bool = False
    #: Whether vertices are computed here: the driver of a cluster computes none.
    computes: bool = True

    @classmethod
    def of(cls, communicator: Mapping[str, Any] | None) -> Role:
        """Return the role of a process with a communicator; None: it makes the whole run."""
        return ALONE if communicator is None else cls(True, communicator["index"] is not None)


#: The whole run.
ALONE = Role()
#: The driver of a run on a cluster.
DRIVER = Role(True, False)
