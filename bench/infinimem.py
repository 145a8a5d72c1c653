"""`infinimem`: graph programs on Box and Bag, as tables 1, 3, 4 and 5 of the InfiniMem paper.

Run as a module (`GRAPH PROGRAM in_memory|decoupled|coupled FOLDER BUDGET_BYTES`) it prints the
figures of the example `infinimem` of brimful, whose collections are made in FOLDER.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import examples
from bench.command import ROOT, Command, Record, brimful
from bench.session import Series, Session
from bench.table import MIB, Table, figure, ratio

SOURCES = ROOT / "crates" / "brimful" / "examples" / "infinimem"
#: The programs, and the arguments of `brimful run` for the same result over shards.
PROGRAMS: dict[str, tuple[str, ...]] = {
    "pagerank": (
        *("pagerank", "--param", "variant=unnormalized"),
        *("--tolerance", "0", "--max-supersteps", "10"),
    ),
    "components": ("connected_components", "--param", "method=propagation"),
    "coloring": ("color",),
    "paths": ("count_paths",),
    "sssp": ("sssp", "--weighted"),
}
_FROM_SOURCE = ("paths", "sssp")
_ON_DISK = ("decoupled", "coupled")
#: R-MAT scale and bytes of memory of the collections, with and without targets.
_SIZES = {True: (16, 2 * MIB), False: (14, MIB // 2)}
_EDGE_FACTOR = 4
_SHARDS_BUDGET = "80M"
#: Operations of the example, and their names in the paper.
_OPERATIONS = {
    "vertex_batch_reads": "vertex batches read",
    "edge_batch_reads": "edge batches read",
    "vertex_reads": "single vertices read",
    "vertex_batch_writes": "vertex batches written",
}


def tables(session: Session) -> Iterator[Table]:
    """Yield lines that differ, seconds, operations, and shares of the time."""
    yield _lines()
    examples.build("brimful", "infinimem")
    scale, budget = _SIZES[session.size.has_targets]
    graph = _graph(session, scale)
    measured = {program: _measure(session, graph, program, budget) for program in PROGRAMS}
    title = f"R-MAT-{scale} undirected, {_EDGE_FACTOR} edges an id"
    memory = f"{budget >> 10} KiB for the collections; shards: {_SHARDS_BUDGET} for the process"
    yield _seconds(title, memory, measured)
    yield _operations(title, measured)
    yield _shares(title, measured)


def function(program: str, representation: str) -> list[str]:
    """Return the lines of a program in one representation."""
    text = (SOURCES / f"{program}.rs").read_text()
    begin = text.index(f"pub(crate) fn {representation}(")
    return text[begin : text.index("\n}\n", begin) + 2].splitlines()


def differing(before: list[str], after: list[str]) -> int:
    """Return how many lines are new or other than before."""
    return sum(line.startswith("+ ") for line in difflib.ndiff(before, after))


def _lines() -> Table:
    table = Table(
        "infinimem: lines that differ from the program in memory (Table 1)",
        "-",
        ("program", "lines in memory", *(f"{name}: other lines" for name in _ON_DISK), "paper"),
    )
    for program in PROGRAMS:
        before = function(program, "in_memory")
        others = (differing(before, function(program, name)) for name in _ON_DISK)
        table.row(program, str(len(before)), *map(str, others), "6")
    return table


def _graph(session: Session, scale: int) -> Path:
    path = session.folder / f"infinimem-{scale}.brimful"
    words = ("--scale", str(scale), "--edge-factor", str(_EDGE_FACTOR))
    more = ("--undirected", "--weights", "hash")
    return session.made(path, "generate", "rmat", path, *words, *more)


def _measure(session: Session, graph: Path, program: str, budget: int) -> dict[str, Series]:
    """Return a series for each representation."""

    def command(representation: str) -> Command:
        folder = session.folder / f"infinimem-{program}-{representation}"
        words = (str(graph), program, representation, str(folder), str(budget))
        return Command("bench.infinimem", words, fresh=folder)

    names = ("in_memory", *_ON_DISK)
    measured = dict(zip(names, session.measure(*map(command, names)), strict=True))
    sums = {series.records[0]["sum"] for series in measured.values() if series.records}
    if len(sums) > 1:
        session.failures.append(f"infinimem: the answers of {program} differ: {sorted(sums)}")
    records = measured["in_memory"].records
    source = ("--source", str(records[0]["source"])) if records else ()
    words = (*PROGRAMS[program][1:], *(source if program in _FROM_SOURCE else ()))
    limits = ("--budget", _SHARDS_BUDGET, "--threads", "1")
    shards = brimful("run", PROGRAMS[program][0], graph, *words, *limits)
    return measured | {"shards": session.measure(shards)[0]}


def _seconds(title: str, memory: str, measured: dict[str, dict[str, Series]]) -> Table:
    names = ("in_memory", *_ON_DISK, "shards")
    table = Table(
        f"infinimem: seconds on {title} (Table 3)",
        "float64",
        ("program", *(name.replace("_", " ") for name in names), "coupled / decoupled"),
    )
    for program, of in measured.items():
        medians = (of[name].median("seconds") for name in ("coupled", "decoupled"))
        cells = (figure(of[name], "seconds", 3) for name in names)
        table.row(program, *cells, ratio(*medians))
        table.ran(*of.values())
    table.notes += [
        f"one thread; {memory}; loading is left out; files in the page cache",
        "all have the same answer; shards: `brimful run`",
    ]
    return table


def _operations(title: str, measured: dict[str, dict[str, Series]]) -> Table:
    table = Table(
        f"infinimem: operations on {title} (Table 4)",
        "-",
        (
            *("program", "representation", *_OPERATIONS.values()),
            *("file reads", "MB read", "file writes", "MB written"),
        ),
    )
    _rows(table, measured, _counts)
    table.notes.append(
        "operations are what a program asks of its collections; file reads and writes are what "
        "these then ask of the disk, in pages of 4 KiB and runs of them"
    )
    return table


def _shares(title: str, measured: dict[str, dict[str, Series]]) -> Table:
    table = Table(
        f"infinimem: share of the time in operations on {title} (Table 5)",
        "-",
        ("program", "representation", *_OPERATIONS.values(), "all", "file transfers alone"),
    )
    _rows(table, measured, _percentages)
    table.notes.append(
        "an operation is a look-up in memory, too, and decoding; file transfers of shards run "
        "beside the work, so that nobody need wait for them"
    )
    return table


def _rows(
    table: Table,
    measured: dict[str, dict[str, Series]],
    cells: Callable[[Record], tuple[str, ...]],
) -> None:
    for program, of in measured.items():
        for name in (*_ON_DISK, "shards"):
            records = of[name].records
            none = (of[name].gap or "not measured", *("-" for _ in table.columns[3:]))
            table.row(program, name, *(cells(records[-1]) if records else none))


def _counts(record: Record) -> tuple[str, ...]:
    operations = record.get("operations")
    counts = (f"{operations[kind]['count']:,}" if operations else "-" for kind in _OPERATIONS)
    moved = (
        (f"{record[f'{name}s']:,}", f"{record[f'bytes_{done}'] / 1e6:,.1f}")
        for name, done in (("read", "read"), ("write", "written"))
    )
    return (*counts, *(cell for pair in moved for cell in pair))


def _percentages(record: Record) -> tuple[str, ...]:
    operations = record.get("operations")
    transfers = record["read_seconds"] + record["write_seconds"]
    if operations is None:
        cells = ["-" for _ in (*_OPERATIONS, "all")]
    else:
        seconds = [operations[kind]["seconds"] for kind in _OPERATIONS]
        cells = [f"{part / record['seconds']:.1%}" for part in (*seconds, sum(seconds))]
    return (*cells, f"{transfers / record['seconds']:.1%}")


def main() -> int:
    """Run the example in a folder of its own."""
    folder = Path(sys.argv[4])
    folder.mkdir()
    return examples.run("infinimem", *sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
