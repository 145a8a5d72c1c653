"""One run of the benchmarks: sizes, the graphs they share, repeats and failures."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.command import Command, Record, brimful, remove
from bench.errors import CommandFailed, NotMeasured

#: Edges per vertex id of the RMAT graphs.
EDGE_FACTOR = 16
_BYTES_PER_PAIR = 8


@dataclass(frozen=True)
class Size:
    """How large the inputs are, and whether the targets of the issue apply."""

    name: str
    large_scale: int
    medium_scale: int
    small_scale: int
    lognormal_vertices: int
    buffer_bytes: int
    curve: tuple[str, ...]
    has_targets: bool


SIZES = {
    "full": Size(
        name="full",
        large_scale=24,
        medium_scale=22,
        small_scale=20,
        lognormal_vertices=1_000_000,
        buffer_bytes=1 << 30,
        curve=("2G", "1G", "700M", "500M", "400M", "300M", "250M", "200M"),
        has_targets=True,
    ),
    "small": Size(
        name="small",
        large_scale=16,
        medium_scale=14,
        small_scale=12,
        lognormal_vertices=10_000,
        buffer_bytes=1 << 26,
        curve=("200M", "100M"),
        has_targets=False,
    ),
}


@dataclass
class Series:
    """The records of one command's repeats, or the reason why there are none."""

    command: Command
    records: list[Record] = field(default_factory=list)
    gap: str | None = None
    failed: bool = False

    def values(self, read: str | Callable[[Record], Any]) -> list[float]:
        """Return a field of every record, or the result of a function on it; empty with a gap."""
        if self.gap is not None:
            return []
        if isinstance(read, str):
            return [record[read] for record in self.records]
        return [read(record) for record in self.records]

    def median(self, read: str | Callable[[Record], Any]) -> float | None:
        """Return the median of a field, or None with a gap."""
        values = self.values(read)
        return statistics.median(values) if values else None


@dataclass
class Session:
    """What every benchmark is given."""

    folder: Path
    size: Size
    repeat_count: int
    scale: int | None = None
    failures: list[str] = field(default_factory=list)
    _made: set[Path] = field(default_factory=set)
    _outputs: set[Path] = field(default_factory=set)

    def measure(self, *commands: Command) -> list[Series]:
        """Run the commands in turn, `repeat_count` rounds, so that noise meets all alike.

        A command that fails once is not tried again, and its figure is the reason. What the last
        round left stays until `close`.
        """
        all_series = [Series(command) for command in commands]
        for _ in range(self.repeat_count):
            for series in all_series:
                if series.gap is None:
                    self._once(series)
        return all_series

    def _once(self, series: Series) -> None:
        _say(str(series.command))
        if series.command.fresh is not None:
            self._outputs.add(series.command.fresh)
        try:
            series.records.append(series.command.run())
        except NotMeasured as reason:
            series.gap = f"not measured: {reason}"
        except CommandFailed as reason:
            series.gap = f"FAILED: {reason}"
            series.failed = True
            self.failures.append(f"{series.command}: {reason}")
            _say(series.gap)

    def rmat(self, scale: int) -> Path:
        """Return the RMAT graph of a scale, made once in each run by the build under test."""
        path = self.folder / f"rmat-{scale}.brimful"
        if path not in self._made:
            options = ("--scale", str(scale), "--edge-factor", str(EDGE_FACTOR))
            self._prepare(brimful("generate", "rmat", path, *options, fresh=path))
            self._made.add(path)
        return path

    def imported(self, scale: int) -> Path:
        """Return the graph of `pairs`, imported: ids without an edge are not vertices."""
        path = self.folder / f"rmat-{scale}-pairs.brimful"
        if path not in self._made:
            pairs = self.pairs(scale)
            options = ("--format", "u32pairs", "--index", "in")
            self._prepare(brimful("import", pairs, path, *options, fresh=path))
            self._made.add(path)
        return path

    def made(self, path: Path, *arguments: str | Path) -> Path:
        """Return the graph `path`, made once in each run by these arguments."""
        if path not in self._made:
            self._prepare(brimful(*arguments, fresh=path))
            self._made.add(path)
        return path

    def pairs(self, scale: int) -> Path:
        """Return the RMAT graph as `u32pairs`; kept between runs and reused at the right size."""
        path = self.folder / f"rmat-{scale}.u32pairs"
        if not path.is_file() or path.stat().st_size != rmat_edges(scale) * _BYTES_PER_PAIR:
            self._export(scale, path, "u32pairs")
        return path

    def text(self, scale: int) -> Path:
        """Return the RMAT graph as an edge list; kept between runs."""
        path = self.folder / f"rmat-{scale}.edgelist"
        if not path.is_file():
            self._export(scale, path, "edgelist")
        return path

    def close(self) -> None:
        """Remove the graphs; the input files stay for the next run."""
        for path in self._outputs:
            remove(path)

    def _export(self, scale: int, path: Path, name: str) -> None:
        part = path.with_suffix(".part")
        # An input of edges alone: vertices without one are left out.
        options = ("--format", name, "--lossy")
        self._prepare(brimful("export", self.rmat(scale), part, *options, fresh=part))
        part.replace(path)

    def _prepare(self, command: Command) -> None:
        _say(f"preparing: {command}")
        if command.fresh is not None:
            self._outputs.add(command.fresh)
        command.run()


def rmat_edges(scale: int) -> int:
    """Return the number of edges of an RMAT graph."""
    return EDGE_FACTOR << scale


def _say(line: str) -> None:
    print(f"# {line}", file=sys.stderr, flush=True)
