"""Sentences about an import: the columns that it read, and the lines and edges left out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from brimful.io.formats import GRAPH_SUFFIX
from brimful.wording import counted, quoted

#: The most ignored columns that a summary names.
_SHOWN_COLUMNS = 8
_INTEGER = re.compile("-?[0-9]+")


def fate(reason: str, figures: Mapping[str, Any]) -> str:
    """Return the fate of edges in an import: `merged` into parallel ones, or `left out`."""
    merges = figures.get("duplicates_policy") in ("sum", "min")
    return "merged" if merges and reason.startswith("duplicate") else "left out"


def left_out_sentences(figures: dict[str, Any]) -> list[str]:
    """Return a sentence for every reason why an import left out or merged lines or edges.

    The reasons are lines that are not edges, and policies that left out or merged edges.
    """
    shown = [(kind, kind["found"]) for kind in figures["rejections"]]
    shown += [(kind, _shown_edge(kind)) for kind in figures["left_out"]]
    return [
        f"{fate(kind['reason'], figures)}: {kind['reason']}, {counted(kind['count'], 'time')}, "
        f"first{_first_place(kind)}: {found}"
        for kind, found in shown
    ]


def _shown_edge(kind: dict[str, Any]) -> str:
    """Return the ends of an edge; ids that are strings are in quotes, as in a rejected line.

    The ends of a duplicate are in the same quotes if they have spaces, which also separate them.
    """
    edge: str = kind["found"]
    if kind["reason"] == "self-loop":
        ends = [edge[: len(edge) // 2]] * 2
    else:
        ends = edge.split(" ") if edge.count(" ") == 1 else [edge]
    return " ".join(one if _INTEGER.fullmatch(one) else quoted(one) for one in ends)


def _first_place(kind: dict[str, Any]) -> str:
    # The edges of a graph have no lines.
    is_graph = kind["input"].endswith(GRAPH_SUFFIX)
    return "" if is_graph else f" at {kind['input']}:{kind['first_line']}"


def columns_sentence(columns: dict[str, Any] | None) -> str | None:
    """Return the line of a summary about the columns read; None if the format defines them."""
    if columns is None:
        return None
    parts = [f"source {columns['source']}", f"target {columns['target']}"]
    if columns["weight"] is not None:
        parts.append(f"weight {columns['weight']}")
    if "edge_columns" in columns:
        parts.append("kept with edges " + ", ".join(columns["edge_columns"]))
    if columns["ignored"]:
        parts.append("ignored " + _ignored(columns["ignored"]))
    if columns["header"] is not None:
        parts.append("a header" if columns["header"] else "no header")
    if columns["delimiter"] is not None:
        parts.append(
            f"delimiter {'tab' if columns['delimiter'] == chr(9) else columns['delimiter']}"
        )
    return "columns: " + "; ".join(parts)


def ignored_sentences(columns: dict[str, Any] | None, options: Mapping[str, Any]) -> list[str]:
    """Return the sentence about columns that an import ignored, and that no option is about."""
    ignored = columns["ignored"] if columns is not None else []
    if not ignored or options["weight"] is not None or options["ignore_extra"]:
        return []
    return [f"columns ignored: {_ignored(ignored)}; --weight of an import takes one as weights"]


def _ignored(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN_COLUMNS:,} more" if len(names) > _SHOWN_COLUMNS else ""
    return ", ".join(names[:_SHOWN_COLUMNS]) + more


def all_left_out(figures: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the kinds of lines that are not edges, then the kinds of edges left out or merged."""
    return [*figures["rejections"], *figures["left_out"]]
