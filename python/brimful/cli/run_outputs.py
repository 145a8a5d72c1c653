"""The outputs of `brimful run`: a file or documents, a kept store, a report and a summary."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from brimful.cli import options as shared
from brimful.cli.log import command_of
from brimful.cli.progress import ProgressLine, format_seconds
from brimful.io.output import reserve_of_result, write_result
from brimful.io.redaction import redacted_word
from brimful.options.checks import column_names
from brimful.options.runs import ProgramOptions
from brimful.options.table import checked
from brimful.result import Result
from brimful.tables.edge_table import ARROW_RESERVE_BYTES, shrink_arrow_pools
from brimful.wording import counted

if TYPE_CHECKING:
    from brimful import _native
    from brimful.cli.recorder import Recorder
    from brimful.cli.where import Where
    from brimful.documents.results import Written
    from brimful.resources import Resources
    from brimful.tables.joining import Columns, JoinTally


class Outputs:
    """The outputs that the options of a run name."""

    def __init__(
        self,
        options: argparse.Namespace,
        kept: str | None,
        join: Columns | None,
        recorder: Recorder | None,
    ) -> None:
        """Take the options, the URL at which vertices stay, a table to join, and a recorder.

        The recorder is that of a report; each of the last three is None without such an output.
        """
        self._options, self._kept, self._join, self._recorder = options, kept, join, recorder
        #: The changes of documents, if the result is in a database, and of a join.
        self._written: Written | None = None
        self._tally: JoinTally | None = None
        #: Bytes of the budget that stay free for writing the result and a report.
        self.reserve_bytes = 0

    def reserve(self, graph: _native.Graph) -> None:
        """Compute `reserve_bytes`, before the run."""
        if self._join is not None:
            from brimful.tables.connection import JOIN_RESERVE_BYTES

            reserve_bytes = JOIN_RESERVE_BYTES
        elif self._options.columns is not None:
            from brimful.tables.columns import rows_bytes

            names = column_names(self._options.columns, "--with")
            reserve_bytes = ARROW_RESERVE_BYTES + rows_bytes(graph, names)
        else:
            reserve_bytes = reserve_of_result(self._options.output)
        if self._recorder is not None:
            from brimful.report.html import REPORT_RESERVE_BYTES

            reserve_bytes += REPORT_RESERVE_BYTES
        self.reserve_bytes = reserve_bytes

    def check_columns(self, graph: _native.Graph) -> None:
        """Check the columns to write with the result, of a table or of the graph.

        Raises:
            UsageError: The result cannot have the columns.
        """
        if self._join is None and self._options.columns is not None:
            from brimful.tables.columns import GraphColumns

            self._join = GraphColumns(graph, column_names(self._options.columns, "--with"))
        if self._join is not None:
            self._join.check(None, texts=graph.id_type == "string")

    def write(
        self,
        result: _native.Result | _native.Rows,
        graph: _native.Graph,
        given: Resources,
        progress: ProgressLine,
    ) -> None:
        """Write the result, remove the checkpoints of the run, and keep its vertices."""
        from brimful import _native

        output, overwrite = self._options.output, self._options.overwrite
        if output is not None:
            progress.update(f"write {redacted_word(output)}", 0, 0, 0.0)
            if self.reserve_bytes:
                shrink_arrow_pools()
            if self._join is None:
                self._written = write_result(result, output, overwrite=overwrite)
            else:
                from brimful.tables.joining import write_joined

                self._tally = write_joined(result, output, self._join, given, overwrite=overwrite)
        if isinstance(result, _native.Result):
            result.discard_checkpoints()
            if self._kept is not None:
                _keep(self._kept, self._options, Result(result), graph, given)
        for sentence in self._warnings():
            progress.warn(sentence)

    def _warnings(self) -> list[str]:
        warnings: list[str] = []
        if self._join is not None and self._tally is not None:
            warnings += self._tally.sentences(self._join.name)
        return warnings if self._written is None else warnings + self._written.warnings()

    def figures(self, result: _native.Result | _native.Rows, where: Where) -> dict[str, Any]:
        """Return the figures of a run and of its outputs."""
        from brimful import _native

        written, tally = self._written, self._tally
        return result.stats | {
            "peak_rss_bytes": _native.peak_rss_bytes(),
            "output": self._options.output if written is None else written.name,
            "documents": None if written is None else written.figures(),
            "kept": None if self._kept is None else redacted_word(self._kept),
            "where": where.figures,
            "join": None if tally is None else asdict(tally),
            "report": self._options.report,
        }

    def report(
        self,
        result: _native.Result | _native.Rows,
        stats: dict[str, Any],
        graph: _native.Graph,
        around: list[int | str],
        progress: ProgressLine,
    ) -> None:
        """Write the report, if there is one."""
        from brimful import _native

        if self._recorder is None or not isinstance(result, _native.Result):
            return
        from brimful.graph import Graph
        from brimful.report import html as report_html

        progress.update(f"write {redacted_word(self._options.report)}", 0, 0, 0.0)
        self._recorder.sample()
        recorded = report_html.Recorded(command_of(self._options.words), self._recorder.samples)
        report = report_html.of_result(
            Result(result), stats=stats, recorded=recorded, graph=Graph(graph), around=around
        )
        report.write(self._options.report, overwrite=self._options.overwrite)

    def show(
        self, result: _native.Result | _native.Rows, stats: dict[str, Any], where: Where
    ) -> None:
        """Print the figures of the run, the fate of its result, and its largest values."""
        options = self._options
        if not options.json and not options.quiet:
            shared.show(summary(options.graph, stats))
            for sentence in where.sentences():
                shared.show(f"  {sentence}")
            uses = stats["output"], stats["kept"], options.top, options.report
            if all(use is None for use in uses):
                shared.show("  the result was not written; give -o FILE, or --top N to print it")
        if options.top is not None:
            _show_top(result, options.top)
        if options.json:
            shared.print_json(stats)


def _keep(
    url: str, options: argparse.Namespace, result: Result, graph: _native.Graph, given: Resources
) -> None:
    """Leave the vertices with their values in the folder of the store."""
    from brimful.graph import Graph
    from brimful.vertex_store import keep

    chosen = checked(ProgramOptions, {"weighted": options.weighted})
    keep(Graph(graph), url, result, "json", {**chosen, **vars(given)})


def _show_top(result: _native.Result | _native.Rows, count: int) -> None:
    """Print the rows of the largest values."""
    from brimful import _native

    if isinstance(result, _native.Rows):
        columns: list[str] | tuple[str, str] = result.columns
    else:
        columns = "vertex", result.column
    shared.show_rows(columns, (row for rows in result.top(count) for row in rows))


def summary(graph: str, stats: dict[str, Any]) -> str:
    """Return the lines that describe a run."""
    supersteps = stats["supersteps"]
    has_none = stats["mode"] == "async" and stats["store"] is not None
    steps = "without supersteps" if has_none else counted(supersteps, "superstep")
    rows = f", {counted(stats['rows'], 'row')}" if "rows" in stats else ""
    lines = [
        f"{stats['algorithm']} of {graph}: {counted(stats['vertices'], 'vertex')}, "
        f"{counted(stats['edges'], 'edge')}{rows}",
        f"  {steps} in {format_seconds(stats['seconds'])}, {stats['reason']}",
    ]
    if supersteps:
        lines.append(
            f"  seconds per superstep: {stats['superstep_min']:.3g} min, "
            f"{stats['superstep_median']:.3g} median, {stats['superstep_max']:.3g} max"
        )
    if stats["largest_frontier"] is not None:
        lines.append(
            f"  largest frontier: {counted(stats['largest_frontier'], 'vertex')}; "
            f"{counted(stats['edge_visits'], 'edge')} visited"
        )
    lines.append("  " + shared.peak_memory(stats["peak_rss_bytes"], stats["budget_bytes"]))
    if stats["documents"] is not None:
        documents = stats["documents"]
        lines.append(
            f"  result: {stats['output']}, field {documents['field']} of "
            + counted(documents["updated"], "document")
        )
    elif stats["output"] is not None:
        lines.append(f"  result: {stats['output']}")
    if stats["kept"] is not None:
        lines.append(f"  vertices: {stats['kept']}")
    if stats["report"] is not None:
        lines.append(f"  report: {stats['report']}")
    return "\n".join(lines)
