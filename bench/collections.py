"""`collections`: Box, Bag and the ready-made collections, beside a flat file and RocksDB."""

from __future__ import annotations

from collections.abc import Iterator

from bench import examples
from bench.command import Command
from bench.session import Series, Session
from bench.table import MIB, Table, figure, target

#: Figures of `examples/measure.rs`: measure, budget in MiB, hard limit in MiB, field, name, target.
_NATIVE = [
    ("bag", 1024, None, "bag_load", "Bag: load 1 M x 500 bytes", 1e6),
    ("bag", 1024, None, "bag_get_batch", "Bag: random get, batched, warm", 1e6),
    ("bag", 1024, None, "bag_update_one", "Bag: random update, one by one", 2e5),
    ("bag", 128, 200, "bag_get_batch", "Bag: random get, batched, hard 200 MiB", 4e4),
    ("bag", 128, 200, "bag_get_one", "Bag: random get, one by one, hard 200 MiB", None),
    ("bag", 128, 200, "bag_update_batch", "Bag: random update, batched, hard 200 MiB", None),
    ("box", 128, 256, "box_fetch_cached", "Box: cached fetch, hard 256 MiB", 1e9 / 300),
    ("box", 128, 256, "box_fetch_batch", "Box: fetch of 1 M ids, batched, hard 256 MiB", None),
    ("box", 128, 256, "box_fetch_one", "Box: the same one by one", None),
    ("box", 128, 256, "box_process_bytes", "Box: process, bytes/s, hard 256 MiB", None),
    ("box", 128, 256, "flat_read_bytes", "flat file: read, bytes/s, hard 256 MiB", None),
    ("counter", 160, 256, "counter_add", "counter of 1 GiB: add 200 M, hard 256 MiB", 2e7),
    ("set", 160, 256, "set_add", "set of 1 GiB: add 84 M, hard 256 MiB", 5e6),
    ("set", 160, 256, "set_contains", "set: contains, batches of 8 M, hard 256 MiB", 5e6),
    ("set", 160, 256, "set_contains_1m", "set: contains, batches of 1 M, hard 256 MiB", None),
    ("bloom", 160, 256, "bloom_add", "Bloom of 613 MiB: add 200 M, hard 256 MiB", 1e7),
    ("bloom", 160, 256, "bloom_contains", "Bloom: contains, batches of 8 M, hard 256 MiB", None),
    ("spill", 1024, None, "spill_plain_get", "plain map: get", None),
    ("spill", 1024, None, "spill_get_live", "spilling map: get of live values", None),
    ("mesh", 700, 1024, "mesh", "mesh: vertices of 7.5 M, hard 1 GiB", 7.5e6 / 40),
]


def tables(session: Session) -> Iterator[Table]:
    """Yield a table of the same work on three stores, and one of Rust figures."""
    yield _stores(session)
    yield _cache(session)
    yield _text(session)
    if session.size.has_targets:
        yield _native(session)


def _command(session: Session, name: str, *rest: str, limit: int | None = None) -> Command:
    folder = session.folder / f"records-{name}-{'-'.join(rest)}"
    limit_bytes = None if limit is None else limit * MIB
    return Command("bench.record_stores", (name, str(folder), *rest), limit_bytes, (), folder)


def _stores(session: Session) -> Table:
    count = 1_000_000 if session.size.has_targets else 10_000
    table = Table(
        f"collections: {count:,} records of 500 bytes from Python, batches of 100,000",
        "bytes",
        ("store", "load, s", "random get, s", "random update, s"),
    )
    names = ("brimful", "flat", "rocksdb")
    for name, series in zip(
        names,
        session.measure(*(_command(session, name, str(count)) for name in names)),
        strict=True,
    ):
        cells = (figure(series, f"{phase}_seconds") for phase in ("load", "get", "update"))
        table.row(name, *cells)
        table.ran(series)
    return table


def _cache(session: Session) -> Table:
    """Return a table of a cache, three quarters of it live, beside the collection it replaces."""
    count = 500_000 if session.size.has_targets else 10_000
    table = Table(
        f"collections: a cache of {count:,} values of 500 bytes, three quarters live",
        "bytes",
        ("store", "fill, s", "gets of live keys, s", "gets of all keys, s"),
    )
    names = ("spilling", "dict", "rocksdb-one")
    measured = session.measure(*(_command(session, name, str(count)) for name in names))
    for name, series in zip(names, measured, strict=True):
        cells = (figure(series, f"{phase}_seconds") for phase in ("load", "live", "all"))
        table.row(name, *cells)
        table.ran(series)
    return table


def _text(session: Session) -> Table:
    """Return a table of the text search of the examples, in a bag and in memory."""
    count = 2_000_000 if session.size.has_targets else 10_000
    table = Table(
        f"collections: text search in {count:,} lines", "bytes", ("program", "load and search, s")
    )
    names = ("text_search", "text_search_in_memory")
    measured = session.measure(*(_command(session, name, str(count)) for name in names))
    for name, series in zip(names, measured, strict=True):
        table.row(name, figure(series, "search_seconds"))
        table.ran(series)
    return table


def _native(session: Session) -> Table:
    table = Table(
        "collections: in Rust, a second", "see the name", ("what", "median (best)", "target")
    )
    # Not within a measure: a compiler needs more memory than their limits.
    examples.build("brimful-collections", "measure")
    measured: dict[tuple[str, int], Series] = {}
    for name, budget, limit, field, label, bound in _NATIVE:
        if (name, budget) not in measured:
            command = _command(session, "native", str(budget * MIB), name, limit=limit)
            measured[name, budget] = session.measure(command)[0]
        series = measured[name, budget]
        value = series.median(f"{field}_per_second")
        goal = "-" if bound is None else target(session.size, value, bound, at_least=True)
        table.row(label, figure(series, f"{field}_per_second", 0, more_is_better=True), goal)
        table.ran(series)
    return table
