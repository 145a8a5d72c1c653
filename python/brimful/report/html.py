"""Reports: of a run, and of a graph, as HTML.

Invariant: a report needs no network, and the report states the reason for each missing figure,
unless there is nothing to draw.
"""

from __future__ import annotations

import html
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from brimful.errors import UsageError
from brimful.io.output import check_output, new_file
from brimful.optional import require, require_installed
from brimful.options.checks import given_path
from brimful.options.described import EXPORT, described
from brimful.report import facts, figures
from brimful.report.neighborhood import neighborhood
from brimful.sizes import format_bytes
from brimful.tables.edge_table import ARROW_RESERVE_BYTES
from brimful.wording import counted, escape_controls

if TYPE_CHECKING:
    from brimful.graph import Graph
    from brimful.per_vertex import PerVertex

#: Bytes that pyarrow, matplotlib and Jinja take besides brimful's own memory.
REPORT_RESERVE_BYTES = ARROW_RESERVE_BYTES + (40 << 20)
#: Directions of bytes in a superstep.
_DIRECTIONS = ("read", "written")
#: Number of neighborhoods that are drawn if none are named.
_DRAWN = 2
#: Figures of a run in the table of a report, by the fields of its figures.
_FIGURES = {
    "algorithm": "algorithm",
    "variant": "variant",
    "mode": "mode",
    "vertices": "vertices",
    "edges": "edges",
    "supersteps": "supersteps",
    "reason": "end",
    "seconds": "seconds",
    "index_seconds": "seconds for the index",
    "threads": "threads",
    "signals": "signals",
    "edge_visits": "edge visits",
    "largest_frontier": "largest frontier",
    "bytes_read": "bytes read",
    "bytes_written": "bytes written",
    "peak_rss_bytes": "peak memory",
    "budget_bytes": "budget",
    "output": "result",
}


@dataclass(frozen=True)
class Figure:
    """A figure of a report."""

    title: str
    svg: str
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table of a report."""

    title: str
    rows: Sequence[tuple[str, ...]]
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recorded:
    """The records of a run.

    Attributes:
        command: The command that runs it again.
        memory: Seconds since the start, and the memory of the process in bytes.
    """

    command: str | None = None
    memory: list[tuple[float, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    """A file of HTML that describes a graph or a run; a notebook shows it.

    Attributes:
        title: Title of the report.
        html: The text, complete without network.

    >>> import brimful as bf, pyarrow as pa
    >>> with bf.Graph.from_arrow(pa.table({"source": [0], "target": [1]})) as graph:
    ...     report = graph.report()
    >>> report.title[:8], report.html[:15]
    ('graph.br', '<!DOCTYPE html>')
    """

    title: str
    html: str = field(repr=False)

    @described(EXPORT, "io")
    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the report to a file, whole or not at all.

        Raises:
            UsageError: The file exists and `overwrite` is false, or its name does not end in .html.

        >>> import brimful as bf, os, pyarrow as pa, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "report.html")
        >>> with bf.Graph.from_arrow(pa.table({"source": [0], "target": [1]})) as graph:
        ...     graph.report().write(path)
        >>> os.path.getsize(path) > 10_000
        True
        """
        name = given_path(path)
        check_report(name, overwrite=overwrite)
        with (
            new_file(name, overwrite=overwrite) as partial,
            open(partial, "w", encoding="utf-8") as file,
        ):
            file.write(self.html)

    def _repr_html_(self) -> str:
        """Return the report in a frame of its own, for notebooks."""
        return (
            '<iframe style="width: 100%; height: 40rem; border: 0" srcdoc="'
            f'{html.escape(self.html)}"></iframe>'
        )


def check_report(path: str, *, overwrite: bool) -> None:
    """Refuse a file of a report before the work that it describes.

    Raises:
        MissingPackageError: Matplotlib or Jinja is not installed.
        UsageError: The name is not that of HTML, or as `check_output`.
        StoreIoError: As `check_output`.
    """
    check_packages()
    if not path.lower().endswith((".html", ".htm")):
        raise UsageError(f"a report is an HTML file, but {path} does not end in .html; rename it")
    check_output(path, overwrite=overwrite)


def check_packages() -> None:
    """Refuse a report before the work that it describes.

    Raises:
        MissingPackageError: Matplotlib or Jinja is not installed.
    """
    for package in ("matplotlib", "jinja2"):
        require_installed(package, "a report")


def of_graph(
    graph: Graph, census: facts.Census, around: Sequence[int | str], command: str | None = None
) -> Report:
    """Return the report of a graph: its figures, distributions, and chosen neighborhoods."""
    info = graph.info()
    rows = [
        (name.replace("_", " "), _shown_value(name, value))
        for name, value in info.items()
        if value is None or isinstance(value, (bool, int, float, str))
    ]
    drawn = [
        _figure(
            "Degree distribution",
            lambda ax, colors: figures.plot_counts(
                ax, census.degrees, "degree", "vertices", colors
            ),
        )
    ]
    sizes = census.components
    if sizes is None:
        rows.append(("components", "more than the budget can count"))
    else:
        rows.append(("components", f"{sum(sizes.values()):,}"))
        rows.append(("largest component", f"{max(sizes, default=0):,}"))
        drawn.append(
            _figure(
                "Component sizes",
                lambda ax, colors: figures.plot_counts(
                    ax, {"components": sizes}, "vertices of a component", "components", colors
                ),
            )
        )
    kept = [
        (one["name"], about, one["type"], format_bytes(one["bytes"]))
        for about, key in (("vertices", "vertex_columns"), ("edges", "edge_columns"))
        for one in info[key]
    ]
    columns = Table("Columns", kept, ("name", "of", "type", "size"))
    tables = [Table("The graph", rows), columns, _top_table("out-degree", census.top)]
    drawn += _neighborhoods(graph, around or [vertex for vertex, _ in census.top[:_DRAWN]])
    return _page(os.path.basename(graph.path.rstrip("/")), tables, drawn, command)


def of_result(
    result: PerVertex[Any],
    *,
    stats: Mapping[str, Any] | None = None,
    recorded: Recorded | None = None,
    graph: Graph | None = None,
    around: Sequence[int | str] = (),
) -> Report:
    """Return the report of a result: figures of the run, its values, and chosen neighborhoods."""
    check_packages()
    record = recorded or Recorded()
    figures_of_run = result.stats if stats is None else stats
    rows = [
        (name, _shown_value(key, figures_of_run[key]))
        for key, name in _FIGURES.items()
        if figures_of_run.get(key) is not None
    ]
    top = result.top(facts.TOP_ROWS)
    tables = [Table("The run", rows), _top_table(result.column, top)]
    drawn = _run_figures(figures_of_run, record)
    values = facts.distribution(result)
    if values is not None:
        drawn.append(
            _figure(
                f"Distribution of {result.column}",
                lambda ax, colors: figures.plot_distribution(ax, values, result.column, colors),
                f"{counted(values.without, 'vertex')} without a value." if values.without else "",
            )
        )
    if graph is not None:
        drawn += _neighborhoods(graph, around or [vertex for vertex, _ in top[:_DRAWN]])
    title = (
        f"{figures_of_run.get('algorithm') or result.column} of {counted(len(result), 'vertex')}"
    )
    return _page(title, tables, drawn, record.command)


def _run_figures(stats: Mapping[str, Any], record: Recorded) -> list[Figure]:
    """Return the figures of the run itself."""
    drawn = []
    if record.memory:
        drawn.append(
            _figure(
                "Memory of the process",
                lambda ax, colors: figures.plot_memory(
                    ax,
                    record.memory,
                    stats.get("budget_bytes"),
                    stats.get("peak_rss_bytes"),
                    colors,
                ),
            )
        )
    drawn += _superstep_figures(stats)
    phases = {name: seconds for name, seconds in (stats.get("phases") or {}).items() if seconds > 0}
    if stats.get("index_seconds"):
        phases["index"] = stats["index_seconds"]
    if phases:
        drawn.append(
            _figure(
                "Where the time went",
                lambda ax, colors: figures.plot_bars(ax, phases, "seconds", colors),
            )
        )
    return drawn


def _superstep_figures(stats: Mapping[str, Any]) -> list[Figure]:
    """Return the figures of the supersteps that the figures of a run list."""

    def listed(name: str) -> list[float]:
        return [math.nan if one is None else one for one in stats[f"superstep_{name}"]]

    if not stats.get("superstep_seconds"):
        return []
    count = stats["supersteps"]
    seconds = listed("seconds")
    note = f"The first {len(seconds):,} of {count:,} supersteps." if count > len(seconds) else ""
    mebibytes = {name: [one / 2**20 for one in listed(f"bytes_{name}")] for name in _DIRECTIONS}
    drawn = [_series("Seconds per superstep", {"seconds": seconds}, "seconds", note)]
    if not any(all(map(math.isnan, one)) for one in mebibytes.values()):
        drawn.append(_series("Bytes per superstep", mebibytes, "MiB", note))
    frontier = listed("frontier")
    if not all(map(math.isnan, frontier)):
        drawn.append(_series("Frontier per superstep", {"frontier": frontier}, "vertices", note))
    return [
        *drawn,
        _series(
            "Edges per superstep",
            {name: listed(name) for name in ("edges", "signals")},
            "number",
            f"A superstep visits the edges of its frontier, or all edges. {note}".strip(),
        ),
    ]


def _neighborhoods(graph: Graph, around: Iterable[int | str]) -> list[Figure]:
    drawn = []
    for vertex in around:
        center, ring, links, note = neighborhood(graph, vertex)
        drawn.append(
            _figure(
                f"Neighborhood of {center}",
                lambda ax, colors, center=center, ring=ring, links=links: figures.plot_neighborhood(
                    ax, center, ring, links, colors
                ),
                note,
            )
        )
    return drawn


def _figure(title: str, draw: Any, note: str = "") -> Figure:
    return Figure(title, figures.svg(html.escape(title, quote=True), draw), note)


def _series(title: str, series: Mapping[str, Sequence[float]], unit: str, note: str = "") -> Figure:
    return _figure(
        title,
        lambda ax, colors: figures.plot_series(ax, series, "superstep", unit, colors),
        note,
    )


def _top_table(column: str, top: Iterable[tuple[Any, Any]]) -> Table:
    rows = [
        (str(vertex), f"{value:,.6g}" if isinstance(value, float) else str(value))
        for vertex, value in top
    ]
    return Table("Top vertices", rows, ("vertex", column))


def _shown_value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and "bytes" in name.split("_"):
        return format_bytes(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else "none" if value is None else str(value)


def _page(
    title: str, tables: Sequence[Table], drawn: Sequence[Figure], command: str | None
) -> Report:
    from brimful import __version__

    jinja = require("jinja2", "a report")
    environment = jinja.Environment(
        loader=jinja.PackageLoader("brimful.report", ""), autoescape=True, trim_blocks=True
    )
    text = environment.get_template("report.html.jinja").render(
        title=title,
        command=command,
        tables=[table for table in tables if table.rows],
        figures=drawn,
        version=__version__,
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )
    # Names of vertices may have any characters.
    return Report(title, escape_controls(text))
