"""The run of a program by calls of its methods, or the share of a process in it."""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from brimful.adapted import Totals, adapted, totals_of
from brimful.catalog import opened
from brimful.cluster.exchange import ShareDone
from brimful.errors import UsageError
from brimful.options.runs import StepOptions
from brimful.options.table import picked
from brimful.pregel.adapter import PregelAdapter
from brimful.pregel.part import OBSERVER, Part
from brimful.pregel.program import Pregel
from brimful.program import Program, thresholds_of
from brimful.record import record_of
from brimful.tracing import Trace
from brimful.wording import shortened

if TYPE_CHECKING:
    from brimful import _native
    from brimful.record import Record

#: Name of a serializer, and its two functions.
Serializing = tuple[str, Callable[[Any], bytes], Callable[[bytes], Any]]


class _Adapters(NamedTuple):
    """A program as one run calls it."""

    called: Program
    record: Record | None
    steps: PregelAdapter | Totals | None


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
        """Keep the parts of a run; `steps` are its `StepOptions`, `store` is of `stored`."""
        self._program, self._serializing = program, serializing
        self._steps, self._store = picked(StepOptions, steps), dict(store)
        self._identity, self._start, self._trace = identity, start, trace or Trace(())
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
        self._adapters(0, OBSERVER)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parts that a worker needs."""
        return _unpickled, (self._pickled, self._steps, self._identity)

    def _adapters(self, vertices: int, part: Part) -> _Adapters:
        """Wrap the program for a part of a run on `vertices` vertices.

        Raises:
            UsageError: The program cannot run in this mode.
        """
        mode = self._steps["mode"]
        if isinstance(self._program, Pregel):
            adapter = PregelAdapter(self._program, vertices, part, mode=mode)
            return _Adapters(self._trace.follow(adapter), None, adapter)
        record = record_of(self._program)
        own, totals = totals_of(self._program, mode, part)
        return _Adapters(adapted(self._trace.follow(own), record, totals), record, totals)

    def __call__(
        self,
        graph: _native.Graph,
        share: dict[str, Any] | None,
        checkpoints: Mapping[str, Any],
        limits: Mapping[str, Any],
    ) -> _native.States:
        """Run the program, or a share of it.

        Raises:
            UsageError, ProgramError, BudgetError: As `brimful.run`.
        """
        from brimful import _native

        called, record, steps = self._adapters(graph.vertices, Part.of(share))
        self.record = record
        adapter = steps if isinstance(steps, PregelAdapter) else None
        name, dumps, loads = self._serializing
        written = checked_dumps(name, dumps)
        of_states = (written, loads) if record is None else record.serializer(written, loads)
        saving = checkpoints["checkpoint_every"] is not None or checkpoints["resume"]
        try:
            with opened(self._store):
                states = _native.run_program(
                    graph,
                    called,
                    delivery=called.delivery,
                    thresholds=thresholds_of(called),
                    dumps=of_states[0],
                    loads=of_states[1],
                    keeps_numbers=name in ("json", "pickle"),
                    next_superstep=steps.next_superstep if steps else None,
                    extra_state=_extra_state(steps, written, loads) if saving and steps else None,
                    addresses=adapter is not None,
                    creates=adapter is not None and adapter.creates,
                    **self._steps,
                    store=self._store,
                    keeping=None if self._start is None else (name, self._start == "kept"),
                    **checkpoints,
                    identity=self._identity,
                    share=None if share is None else (share, _shared(steps)),
                    # One thread makes all calls, because only one at a time can hold the
                    # interpreter.
                    **{key: limits[key] for key in ("budget", "process_budget", "progress")},
                )
        except ShareDone:
            self._end(steps)
            raise
        self._end(steps)
        return states

    def _end(self, steps: PregelAdapter | Totals | None) -> None:
        if steps is not None:
            steps.end()
            self.aggregates = steps.values() or None


def _shared(steps: PregelAdapter | Totals | None) -> object:
    from brimful.cluster.programs import SharedSteps

    return SharedSteps(steps)


def _unpickled(
    pickled: bytes,
    steps: Mapping[str, Any],
    identity: list[tuple[str, str]],
) -> InterpretedRun:
    program, serializing, store = pickle.loads(pickled)
    return InterpretedRun(program, serializing, steps, store, identity)


def _extra_state(
    steps: PregelAdapter | Totals, dumps: Callable[[Any], bytes], loads: Callable[[bytes], Any]
) -> tuple[Callable[[], str], Callable[[str], None]] | None:
    """Return the calls by which checkpoints save and restore the data apart from the vertices.

    Raises:
        UsageError: The serializer cannot write it.
    """
    if isinstance(steps, PregelAdapter) and not steps.has_extra_state:
        return None

    def save() -> str:
        return base64.b64encode(dumps(steps.saved())).decode()

    def restore(text: str) -> None:
        steps.restore(loads(base64.b64decode(text)))

    try:
        save()
    except TypeError as error:
        raise UsageError(
            f"aggregators and worker context cannot be in a checkpoint: {error}"
        ) from error
    return save, restore


def checked_dumps(name: str, dumps: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """Return `dumps` with errors that name the type of the object."""

    def write(value: Any) -> bytes:
        try:
            data = dumps(value)
        except Exception as error:
            part = _part(value, lambda one: not _is_written(dumps, one))
            raise TypeError(
                f"the serializer {name} cannot write {type(part).__name__} ({error}); return "
                "another type, or choose another serializer"
            ) from error
        # JSON turns tuples into lists, so results could differ from those of live objects.
        if name == "json" and not _is_kept(json.loads(data), value):
            part = _part(value, lambda one: not _is_kept(json.loads(dumps(one)), one))
            raise TypeError(
                f"JSON does not keep {shortened(part)}: tuples become lists, and keys of a dict "
                'become strings; return another type, or choose serializer="pickle"'
            )
        return data

    return write


def _is_written(dumps: Callable[[Any], bytes], value: Any) -> bool:
    try:
        dumps(value)
    except Exception:  # noqa: BLE001 - a serializer of the user may raise any.
        return False
    return True


def _is_kept(read: Any, value: Any) -> bool:
    """Return whether a value equals the value read; NaN, unequal to itself, is compared as text."""
    return bool(read == value) or repr(read) == repr(value)


def _part(value: Any, is_wrong: Callable[[Any], bool]) -> Any:
    """Return the innermost part of a wrong value that is itself wrong.

    The value of a Pregel vertex is in a list that the author of the program does not see.
    """
    parts = value.values() if isinstance(value, dict) else value
    if isinstance(value, (dict, list, tuple)):
        for part in parts:
            if is_wrong(part):
                return _part(part, is_wrong)
    return value
