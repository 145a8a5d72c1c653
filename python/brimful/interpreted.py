"""The run of a program by calls of its methods, or the part of it that one process makes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from brimful.adapted import Totals, adapted, tolerance_of, totals_of
from brimful.catalog import open_store
from brimful.cluster.exchange import ProcessDone
from brimful.errors import ProgramError
from brimful.extra_state import extra_state
from brimful.failed_calls import in_own_words
from brimful.options.runs import ProgramStepOptions, StepOptions
from brimful.options.table import picked
from brimful.pregel.adapter import PregelAdapter
from brimful.pregel.program import Pregel
from brimful.pregel.role import DRIVER, Role
from brimful.pregel.signalling import pregel_of
from brimful.pregel.steps import PregelSteps
from brimful.program import Program, thresholds_of
from brimful.record import record_of
from brimful.serializing import checked_dumps
from brimful.tracing import Trace

if TYPE_CHECKING:
    from brimful import _native
    from brimful.record import Record
    from brimful.resources import Resources

#: Name of a serializer, and its two functions.
Serializing = tuple[str, Callable[[Any], bytes], Callable[[bytes], Any]]


class _Adapters(NamedTuple):
    """A program as one run calls it."""

    called: Program
    record: Record | None
    steps: PregelSteps | Totals | None


class InterpretedRun:
    """The run of a program by calls of its methods.

    A worker of a cluster gets the program and its options.
    """

    def __init__(
        self,
        program: Program | Pregel,
        serializing: Serializing,
        steps: Mapping[str, Any],
        store: Mapping[str, Any],
        identity: list[tuple[str, str]],
        *,
        start: str | None = None,
        trace: Trace | None = None,
    ) -> None:
        """Keep the parts of a run; `steps` are its `ProgramStepOptions`.

        `store` is that of `catalog.program_store`.

        Raises:
            UsageError: The run or the program can have no tolerance.
        """
        self._program, self._serializing = program, serializing
        self._steps, self._store = picked(ProgramStepOptions, steps), dict(store)
        self._tolerance = tolerance_of(program, steps)
        self._identity, self._start, self._trace = identity, start, trace or Trace()
        #: The fields of states, if they are records.
        self.record: Record | None = None
        #: The aggregates of the last superstep, once the run has ended.
        self.aggregates: dict[str, Any] | None = None

    def pickle(self) -> None:
        """Prepare to be sent to the workers of a cluster.

        Raises:
            UsageError: The program cannot be sent, or runs on no cluster.
        """
        from brimful.cluster.pickled import pickled_program

        self._pickled = pickled_program(self._program, self._serializing, self._store)
        # Refuses the program before workers start.
        self._adapters(0, DRIVER)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parts that a worker needs."""
        return _unpickled, (self._pickled, self._steps, self._identity)

    def _adapters(self, vertices: int, role: Role) -> _Adapters:
        """Wrap the program for a part of a run on `vertices` vertices.

        Raises:
            UsageError: The program cannot run in this mode.
        """
        mode = self._steps["mode"]
        pregel = pregel_of(self._program, mode)
        if pregel is not None:
            keeps = self._start is not None
            adapter = PregelAdapter(pregel, vertices, role, mode=mode, keeps=keeps)
            return _Adapters(self._trace.follow(adapter), None, adapter.steps)
        assert isinstance(self._program, Program)
        record = record_of(self._program)
        own, totals = totals_of(self._program, mode, self._tolerance, role)
        return _Adapters(adapted(self._trace.follow(own), record, totals), record, totals)

    def __call__(
        self,
        graph: _native.Graph,
        communicator: dict[str, Any] | None,
        checkpoints: Mapping[str, Any],
        resources: Resources,
    ) -> _native.States:
        """Run the program, or the part of it that this process makes.

        Raises:
            UsageError, ProgramError, BudgetError: As `brimful.run`.
        """
        from brimful import _native

        called, record, steps = self._adapters(graph.vertices, Role.of(communicator))
        is_pregel = isinstance(called, PregelAdapter)
        self.record = called.record if isinstance(called, PregelAdapter) else record
        name, dumps, loads = self._serializing
        written = checked_dumps(name, dumps)
        of_states = (written, loads) if record is None else record.serializer(written, loads)
        saving = checkpoints["checkpoint_every"] is not None or checkpoints["resume"]
        try:
            with open_store(self._store):
                states = _native.run_program(
                    graph,
                    {
                        "methods": called,
                        "delivery": called.delivery,
                        "thresholds": thresholds_of(called),
                        "dumps": of_states[0],
                        "loads": of_states[1],
                        "serializer": name,
                        "next_superstep": steps.next_superstep if steps else None,
                        "end": steps.end if steps and communicator is None else None,
                        "extra_state": extra_state(steps, written, loads)
                        if saving and steps
                        else None,
                        "addresses": is_pregel,
                        # Messages create the vertices that they do not find.
                        "creates": is_pregel and bool(self._program.mutates),
                    },
                    steps=picked(StepOptions, self._steps)
                    | {"max_supersteps": self._max_supersteps()},
                    store=self._store,
                    keeping=None if self._start is None else (name, self._start == "kept"),
                    checkpoints=checkpoints,
                    identity=self._identity,
                    communicator=None if communicator is None else (communicator, _shared(steps)),
                    resources=resources,
                )
            if steps is not None and communicator is not None:
                steps.end()
        except ProcessDone:
            if steps is not None:
                steps.end()
            raise
        except ProgramError as error:
            raise in_own_words(error, self._program, called) from error.__cause__
        if steps is not None:
            self.aggregates = steps.values() or None
        return states

    def _max_supersteps(self) -> int | None:
        most: int | None = self._steps["max_supersteps"]
        # A program that signals in one superstep of Pregel collects in the next.
        has_one_more = isinstance(self._program, Program) and self._program.mutates
        return most + 1 if most and has_one_more else most


def _shared(steps: PregelSteps | Totals | None) -> object:
    from brimful.cluster.programs import SharedSteps

    return SharedSteps(steps)


def _unpickled(
    pickled: bytes,
    steps: Mapping[str, Any],
    identity: list[tuple[str, str]],
) -> InterpretedRun:
    program, serializing, store = pickle.loads(pickled)
    return InterpretedRun(program, serializing, steps, store, identity)
