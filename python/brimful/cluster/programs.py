"""The steps between supersteps of an interpreted program that several processes run together.

All processes merge the aggregates of a superstep in the same way. If the program has a master, the
first worker lets it compute, and all follow its decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from brimful.cluster import pickled


class Steps(Protocol):
    """The steps of a program between supersteps, in one of several processes."""

    @property
    def decides(self) -> bool:
        """True if a master decides for all processes."""

    def contribution(self) -> dict[str, Any]:
        """End a superstep, and return the contributions of this process to aggregates."""

    def merge(self, contributions: Sequence[Mapping[str, Any]]) -> None:
        """Take the contributions of all processes, in order."""

    def decide(self, number: int) -> Any:
        """Return the decision of the master before superstep `number`."""

    def follow(self, number: int, decision: Any) -> bool:
        """Begin superstep `number` by a decision, if there is one; False ends the run."""


class SharedSteps:
    """The steps of this process, as the native module calls them; bytes are for other processes."""

    dumps = staticmethod(pickled.dumps)
    loads = staticmethod(pickled.loads)

    def __init__(self, steps: Steps | None) -> None:
        """Wrap the steps of a program, if it has some."""
        self._steps = steps
        #: True if the first worker decides for all.
        self.decides = steps is not None and steps.decides

    def contribution(self) -> bytes:
        """End a superstep, and return the contributions of this process to aggregates."""
        own = {} if self._steps is None else self._steps.contribution()
        return pickled.dumps(own) if own else b""

    def merge(self, parts: Sequence[bytes]) -> None:
        """Take the contributions of all processes, in order."""
        if self._steps is not None:
            self._steps.merge([pickled.loads(part) for part in parts if part])

    def decide(self, number: int) -> bytes:
        """Return the decision of the master before superstep `number`."""
        assert self._steps is not None, "nothing decides"
        return pickled.dumps(self._steps.decide(number))

    def follow(self, number: int, decision: bytes) -> bool:
        """Begin superstep `number` by a decision, if there is one; False ends the run."""
        if self._steps is None:
            return True
        return self._steps.follow(number, pickled.loads(decision) if decision else None)
