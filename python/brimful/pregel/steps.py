"""The work between the supersteps of a Pregel program: aggregators, master and worker context."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from brimful.errors import ProgramError, UsageError
from brimful.kernels.methods import overrides
from brimful.pregel.aggregators import Aggregated, checked_aggregators
from brimful.pregel.master import Master, WorkerContext
from brimful.pregel.program import Pregel
from brimful.pregel.role import ALONE, Role
from brimful.pregel.vertex import Shared
from brimful.wording import shortened


class PregelSteps:
    """The work between the supersteps of one run of a program, or of a part of the run."""

    def __init__(
        self,
        program: Pregel,
        vertices: int,
        role: Role = ALONE,
        switch: Callable[[Master], None] = lambda master: None,
    ) -> None:
        """Begin a run on so many vertices.

        `switch` is called before each superstep, and follows the choices of the master.

        Raises:
            UsageError: The program has no proper aggregators or context.
        """
        aggregators = checked_aggregators(program.aggregators)
        context = program.worker_context() if role.computes else None
        if context is not None and not isinstance(context, WorkerContext):
            raise UsageError(
                f"worker_context must return a WorkerContext, not {shortened(context)}"
            )
        self.aggregated = Aggregated(aggregators, is_divided=role.is_divided)
        #: The objects that vertices share.
        self.shared = Shared(self.aggregated, bool(program.mutates), context)
        if context is not None:
            context._values = self.aggregated
        combines = overrides(program, "combine")
        self.master = Master(program, vertices, self.aggregated, combines=combines)
        self._program, self._switch = program, switch
        self._is_first, self._is_open = True, False
        #: The method that raised an exception, and the exception.
        self.failed: tuple[str, Exception] | None = None

    @property
    def has_extra_state(self) -> bool:
        """True if a checkpoint holds more than vertices."""
        has_context = self.shared.context is not None
        return bool(self._program.aggregators) or has_context or self.decides

    @property
    def decides(self) -> bool:
        """True if a master decides whether, and how, the next superstep begins."""
        return overrides(self._program, "master_compute")

    def saved(self) -> dict[str, Any]:
        """Return the content of a checkpoint besides the vertices, before a superstep ends."""
        context = self.shared.context
        return {
            "aggregated": self.aggregated.saved(),
            "compute": self.master.compute,
            "combine": self.master.combine,
            "context": {} if context is None else context._saved(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue from a checkpoint, whose superstep has not ended yet."""
        self.aggregated.restore(saved["aggregated"])
        context = self.shared.context
        self.master.compute, self.master.combine = saved["compute"], saved["combine"]
        # The messages on their way have the combiner of the superstep that sent them.
        self._switch(self.master)
        if context is not None:
            vars(context).update(saved["context"])
        self._is_first, self._is_open = False, True

    def next_superstep(self, number: int) -> bool:
        """End the last superstep and begin another; return whether the run goes on.

        Raises:
            ProgramError: A method between supersteps raised an exception.
        """
        is_ready = self._start() if self._is_first else self._end_superstep()
        goes_on = is_ready and self._let_master_compute(number) and self._begin(number)
        # A run that fails keeps its checkpoints; one that is halted does not.
        self.check_failure()
        return goes_on

    def _start(self) -> bool:
        """Act before the first superstep, once; return whether that succeeded."""
        if not self._is_first:
            return True
        self._is_first = False
        context = self.shared.context
        return context is None or self._call_between("pre_application", context)

    def _let_master_compute(self, number: int) -> bool:
        self.master.superstep = self.shared.superstep = number
        return self._call_between("master_compute", self._program, self.master)

    def _begin(self, number: int) -> bool:
        """Begin a superstep as the master decided; return whether the run goes on."""
        context = self.shared.context
        if self.master.is_halted:
            return False
        self._switch(self.master)
        if context is not None:
            context.superstep = number
            if not self._call_between("pre_superstep", context):
                return False
        self._is_open = True
        return True

    def contribution(self) -> dict[str, Any]:
        """End a superstep of one of several processes; return its contribution to aggregators.

        Raises:
            ProgramError: A method between supersteps raised an exception.
        """
        context = self.shared.context
        if context is not None:
            self._call_between("post_superstep", context)
        self.check_failure()
        return self.aggregated.contribution()

    def merge(self, contributions: Sequence[Mapping[str, Any]]) -> None:
        """Show the aggregators of all processes, also to one that contributes nothing."""
        self._is_open = False
        self.aggregated.merge(contributions)
        self.aggregated.end_superstep()

    def decide(self, number: int) -> dict[str, Any]:
        """Let the master compute for all processes; return its decision.

        Raises:
            ProgramError: A method between supersteps raised an exception.
        """
        if self._start():
            self._let_master_compute(number)
        self.check_failure()
        master = self.master
        return {
            "is_halted": master.is_halted,
            "compute": master.compute,
            "combine": master.combine,
            "aggregated": self.aggregated.saved(),
        }

    def follow(self, number: int, decision: Mapping[str, Any] | None) -> bool:
        """Begin a superstep as the master of all processes decided; return whether the run goes on.

        Raises:
            ProgramError: A method between supersteps raised an exception.
        """
        if decision is not None:
            master = self.master
            master.is_halted = decision["is_halted"]
            master.compute, master.combine = decision["compute"], decision["combine"]
            self.aggregated.restore(decision["aggregated"])
        self.master.superstep = self.shared.superstep = number
        goes_on = self._start() and self._begin(number)
        self.check_failure()
        return goes_on

    def end(self) -> None:
        """Act after the last superstep.

        Raises:
            ProgramError: A method between supersteps raised an exception, here or before.
        """
        context = self.shared.context
        if self.failed is None and self._end_superstep() and context is not None:
            self._call_between("post_application", context)
        self.check_failure()

    def values(self) -> dict[str, Any]:
        """Return the values of aggregators after the last superstep."""
        return self.aggregated.values()

    def check_failure(self) -> None:
        """Check that no method between supersteps has failed.

        Raises:
            ProgramError: One raised an exception.
        """
        if self.failed is not None:
            name, error = self.failed
            raised = ProgramError(
                f"{name} failed at superstep {self.shared.superstep}: "
                f"{type(error).__name__}: {error}"
            )
            raised.superstep = self.shared.superstep
            raise raised from error

    def _end_superstep(self) -> bool:
        """End the current superstep, if there is one; return whether that succeeded."""
        if not self._is_open:
            return True
        self._is_open = False
        context = self.shared.context
        went_well = context is None or self._call_between("post_superstep", context)
        self.aggregated.end_superstep()
        return went_well

    def _call_between(self, name: str, owner: object, *arguments: object) -> bool:
        """Call a method between supersteps; return whether it succeeded."""
        try:
            getattr(owner, name)(*arguments)
        except Exception as error:  # noqa: BLE001 - `check_failure` raises it.
            self.failed = (name, error)
            return False
        return True
