"""Traces of programs: a table of the method calls for chosen vertices."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from brimful.ids import id_of_name, shown_ids
from brimful.pregel.adapter import PregelAdapter
from brimful.program import Program, Vertex
from brimful.wording import cut

if TYPE_CHECKING:
    import pyarrow

#: The most characters of an object in a trace.
_LONGEST = 200


class Trace:
    """The calls of a program's methods for some vertices, in order."""

    def __init__(self, vertices: Collection[int | str] = (), id_type: str = "int64") -> None:
        """Begin an empty trace of vertices of a graph with this type of ids."""
        self._id_type = id_type
        self._vertices = frozenset(map(id_of_name, vertices))
        self._rows: list[dict[str, Any]] = []

    def follow(self, program: Program) -> Program:
        """Return the program with methods that note their calls; it shares its attributes.

        Without vertices it is the program itself. A Pregel program has no calls of `signal`; its
        calls of `compute` show the messages that it sends.
        """
        if not self._vertices:
            return program
        kind = type(program)
        notes: dict[str, Any] = {
            name: self._noting(name, getattr(kind, name))
            for name in ("initial_state", "signal", "collect", "signal_score", "collect_score")
            # The native side does not call the default scores.
            if not name.endswith("score") or getattr(kind, name) is not getattr(Program, name)
        }
        followed: Program = object.__new__(type(kind.__name__, (kind,), notes))
        followed.__dict__ = program.__dict__
        return followed

    def to_arrow(self) -> pyarrow.Table:
        """Return the table; objects are shown as `repr` shows them."""
        import pyarrow as pa

        columns = {
            name: pa.array([row.get(name) for row in self._rows], kind)
            for name, kind in {
                "superstep": pa.int64(),
                "call": pa.string(),
                "received": pa.list_(pa.string()),
                "before": pa.string(),
                "after": pa.string(),
                "sent": pa.list_(pa.string()),
                "score": pa.float64(),
            }.items()
        }
        vertices = shown_ids([row["vertex"] for row in self._rows], self._id_type)
        ids = pa.array(vertices, pa.type_for_alias(self._id_type))
        return pa.table(columns).add_column(1, "vertex", ids)

    def _noting(self, name: str, method: Any) -> Any:
        def noted(program: Program, vertex: Vertex, *arguments: Any) -> Any:
            result = method(program, vertex, *arguments)
            if vertex.id in self._vertices:
                is_pregel = isinstance(program, PregelAdapter)
                row = {"superstep": vertex.superstep, "vertex": vertex.id, "call": name}
                self._rows.append(row | _figures(name, vertex, arguments, result, is_pregel))
            return result

        return noted


def _figures(
    name: str, vertex: Vertex, arguments: tuple[Any, ...], result: Any, is_pregel: bool
) -> dict[str, Any]:
    def state(one: Any) -> str:
        return _shown(one[0] if is_pregel and one is not None else one)

    if name.endswith("score"):
        return {"before": state(vertex.state), "score": float(result)}
    if name == "initial_state":
        return {"after": state(result)}
    if name == "signal":
        sent = [] if result is None else [f"{arguments[0]!r}: {_shown(result)}"]
        return {"before": state(vertex.state), "sent": sent}
    received = [_shown(signal) for signal in arguments[0]]
    figures = {"received": received, "before": state(vertex.state), "after": state(result)}
    if is_pregel and result is not None:
        targets, messages = result[2][::2], result[2][1::2]
        figures["sent"] = [
            f"{'all' if target is None else repr(target)}: {_shown(message)}"
            for target, message in zip(targets, messages, strict=True)
        ]
    return figures


def _shown(value: object) -> str:
    return cut(repr(value), _LONGEST)
