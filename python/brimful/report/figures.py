"""Draws figures by matplotlib, on axes of the user or as SVG with the colors of the report.

Invariant: nothing here keeps state between figures; `pyplot` is loaded only for axes that a user
wants in a notebook.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from brimful.errors import MissingPackageError
from brimful.optional import require
from brimful.report.facts import Distribution
from brimful.wording import escape_controls

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Colors that matplotlib draws with; in the SVG, variables of the report replace them.
_INK, _FAINT, _FIRST, _SECOND = "#010203", "#040506", "#070809", "#0a0b0c"
_VARIABLES = {
    _INK: "var(--ink)",
    _FAINT: "var(--faint)",
    _FIRST: "var(--first)",
    _SECOND: "var(--second)",
}
_STYLE = {
    "axes.edgecolor": _FAINT,
    "axes.labelcolor": _INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": _INK,
    "font.size": 10,
    "legend.frameon": False,
    "legend.labelcolor": _INK,
    "svg.fonttype": "none",
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
}
_PURPOSE = "a figure"
#: The axis of counts is logarithmic if the largest exceeds this many times the median.
_STEEP = 20
#: The most characters of a name that is drawn at a vertex.
_NAME_CHARACTERS = 16


def axes(ax: Axes | None) -> Axes:
    """Return the axes to draw on: those given, or new ones of `pyplot`.

    Raises:
        MissingPackageError: Matplotlib is not installed.
    """
    if ax is not None:
        return ax
    _, made = require("matplotlib.pyplot", _PURPOSE).subplots()
    new: Axes = made
    return new


def svg(name: str, draw: Callable[[Axes, Sequence[str]], object], *, small: bool = False) -> str:
    """Return the output of `draw` as an inline SVG; `name` is its text for screen readers.

    Raises:
        MissingPackageError: Matplotlib is not installed.
    """
    figures, matplotlib = require("matplotlib.figure", _PURPOSE), require("matplotlib", _PURPOSE)
    with matplotlib.rc_context(_STYLE | {"svg.hashsalt": name}):
        figure = figures.Figure(figsize=(3.2, 1.8) if small else (4.8, 2.9), layout="constrained")
        draw(figure.subplots(), (_FIRST, _SECOND))
        out = io.StringIO()
        with warnings.catch_warnings():
            # The browser draws the text, in fonts of its own.
            warnings.filterwarnings("ignore", "Glyph .* missing")
            figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    text = re.sub(r"<metadata>.*?</metadata>", "", out.getvalue(), flags=re.S)
    text = text[text.index("<svg") :]
    # Several figures of a report must not share names.
    prefix = re.sub(r"\W+", "-", name.lower())
    text = re.sub(r'id="([^"]+)"', rf'id="{prefix}-\1"', text)
    text = re.sub(r'(url\(#|href="#)', rf"\1{prefix}-", text)
    for color, variable in _VARIABLES.items():
        text = text.replace(color, variable)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    # A plain string would be a pattern, in which a backslash of the name has a meaning.
    return re.sub(r' width="[^"]*"', lambda _: f' role="img" aria-label="{name}"', text, count=1)


def small(name: str, draw: Callable[[Axes, Sequence[str]], object]) -> str:
    """Return a small figure for a notebook, in the colors of its text; nothing without matplotlib.

    Notebooks show objects automatically, so a missing package is not an error there.
    """
    try:
        drawn = svg(name, draw, small=True)
    except MissingPackageError:
        return ""
    colors = "--ink: currentColor; --faint: gray; --first: #1f6f8b; --second: #c8553d"
    return f'<div style="max-width: 20rem; {colors}">{drawn}</div>'


def plot_distribution(
    ax: Axes, distribution: Distribution, label: str, colors: Sequence[str] = ("C0", "C1")
) -> Axes:
    """Draw the number of vertices with each value."""
    if distribution.single:
        if len(distribution.edges) > 1:
            width = 0.9 * min(
                b - a for a, b in zip(distribution.edges, distribution.edges[1:], strict=False)
            )
        else:
            width = 0.9
        ax.bar(distribution.edges, distribution.counts, width=width, color=colors[0])
    else:
        ax.stairs(distribution.counts, distribution.edges, fill=True, color=colors[0])
    if distribution.logarithmic:
        ax.set_xscale("log")
    # On a linear axis most bars would be invisible.
    if max(distribution.counts) > _STEEP * max(
        sorted(distribution.counts)[len(distribution.counts) // 2], 1
    ):
        ax.set_yscale("log")
    ax.set_xlabel(label)
    ax.set_ylabel("vertices")
    return ax


def plot_counts(
    ax: Axes,
    counts: Mapping[str, Mapping[int, int]],
    label: str,
    unit: str,
    colors: Sequence[str] = ("C0", "C1"),
) -> Axes:
    """Draw the count of each size on logarithmic axes; sizes of 0 are in the title."""
    for (name, one), color in zip(counts.items(), colors, strict=False):
        sizes = [size for size in one if size > 0]
        ax.plot(
            sizes,
            [one[size] for size in sizes],
            "o",
            markersize=3,
            color=color,
            label=name.replace("_", " "),
        )
        if one.get(0):
            ax.plot([], [], " ", label=f"{one[0]:,} of {label} 0")
    # Matplotlib draws no logarithmic axis without a value.
    if any(size > 0 for one in counts.values() for size in one):
        ax.set_xscale("log")
        ax.set_yscale("log")
    ax.set_xlabel(label)
    ax.set_ylabel(unit)
    if len(counts) > 1 or any(one.get(0) for one in counts.values()):
        ax.legend()
    return ax


def plot_series(
    ax: Axes,
    series: Mapping[str, Sequence[float]],
    label: str,
    unit: str,
    colors: Sequence[str] = ("C0", "C1"),
) -> Axes:
    """Draw a figure of each superstep, from 1."""
    for (name, values), color in zip(series.items(), colors, strict=False):
        steps = range(1, len(values) + 1)
        marker = "o" if len(values) < 40 else ""
        ax.plot(steps, values, marker=marker, markersize=3, color=color, label=name)
    ax.set_ylim(bottom=0)
    ax.set_xlabel(label)
    ax.set_ylabel(unit)
    if len(series) > 1:
        ax.legend()
    return ax


def plot_memory(
    ax: Axes,
    samples: Sequence[tuple[float, int]],
    budget: int | None,
    peak: int | None,
    colors: Sequence[str] = ("C0", "C1"),
) -> Axes:
    """Draw the memory of the process over time, below its budget."""
    seconds, sizes = [one for one, _ in samples], [size / 2**20 for _, size in samples]
    ax.fill_between(seconds, sizes, color=colors[0], alpha=0.25, linewidth=0)
    ax.plot(seconds, sizes, color=colors[0], marker="o" if len(sizes) < 3 else "", markersize=3)
    if budget:
        ax.axhline(budget / 2**20, color=colors[1], label="budget")
    if peak:
        ax.axhline(peak / 2**20, color=colors[0], linestyle=":", label="peak")
    ax.set_ylim(bottom=0)
    ax.set_xlabel("seconds")
    ax.set_ylabel("MiB")
    ax.legend()
    return ax


def plot_bars(
    ax: Axes,
    values: Mapping[str, float],
    label: str,
    colors: Sequence[str] = ("C0", "C1"),
) -> Axes:
    """Draw a bar for each name, the first on top."""
    names = list(values)[::-1]
    ax.barh(names, [values[name] for name in names], color=colors[0])
    ax.set_xlabel(label)
    return ax


def plot_neighborhood(
    ax: Axes,
    vertex: int | str,
    ring: Sequence[int | str],
    links: Sequence[tuple[Any, Any]],
    colors: Sequence[str] = ("C0", "C1"),
) -> Axes:
    """Draw a vertex, some of its neighbors around it, and the edges among them."""
    places: dict[Any, tuple[float, float]] = {vertex: (0.0, 0.0)}
    for at, one in enumerate(ring):
        angle = 2 * math.pi * at / len(ring)
        places[one] = (math.cos(angle), math.sin(angle))
    # One path for all edges: thousands of paths would make the report large.
    lines = [(places[one], places[other], (math.nan, math.nan)) for one, other in links]
    xs = [x for line in lines for x, _ in line]
    ys = [y for line in lines for _, y in line]
    ax.plot(xs, ys, color=colors[0], linewidth=0.5, alpha=0.35, zorder=1)
    for one, (x, y) in places.items():
        is_center = one == vertex
        ax.scatter([x], [y], s=50 if is_center else 22, color=colors[is_center], zorder=2)
        name = escape_controls(str(one))
        name = name if len(name) <= _NAME_CHARACTERS else name[: _NAME_CHARACTERS - 3] + "..."
        # A plain `$` would begin a formula.
        ax.annotate(
            name.replace("$", r"\$"),
            (x, y) if is_center else (1.12 * x, 1.12 * y),
            ha="center",
            va="bottom" if is_center else "center",
            fontsize=7,
        )
    ax.set_aspect("equal")
    ax.margins(0.15)
    ax.set_axis_off()
    return ax
