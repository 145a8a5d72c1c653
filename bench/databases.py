"""`databases`: the cost of a vertex by serializer, and of records by store or database.

Run as a module it prints the figures of one: `serializers VERTICES`, `native STORE FOLDER COUNT
MEBIBYTES` (the example `records` of brimful-vertices), `store SCHEME FOLDER COUNT` (a store of
`brimful.stores`), `raw SCHEME FOLDER COUNT` (its driver alone, in the same batches), `superstep
GRAPH STORE FOLDER`.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import examples
from bench.command import ROOT, Command, Record
from bench.errors import CommandFailed
from bench.session import Series, Session
from bench.table import MIB, Table, figure, ratio, target

_RECORD = b"r" * 500
_BATCH = 1024
_THREADS = 2
#: Memory of all partitions of a store.
_MEMORY_MIB = 256
_LIMIT_MIB = 200
_LIMITED_MEMORY_MIB = 64
#: The issue's targets: reads and changes a second of `kv`, and ratios.
_READS, _CHANGES = 600_000, 400_000
_EMBEDDED, _SERVER, _SUPERSTEP = 2.0, 1.5, 2.0
#: URLs of servers that are running; without one its rows are gaps.
_SERVERS = {"mongodb": "BENCH_MONGODB", "orientdb": "BENCH_ORIENTDB"}
#: Records of a server, whose batches take milliseconds.
_SERVER_SHARE = 20
_THESIS = (
    "the thesis, tables 4.1 to 4.5 (2011, JVM): a PageRank vertex of 127 edges is 618 bytes live, "
    "687 serialized in memory, 752 in Berkeley DB; load 15.7, 19.1, 22.3 s for a million"
)
_JE = "Berkeley DB JE 18.3 alone, of the thesis: 335,000 reads and 122,000 changes a second"


def tables(session: Session) -> Iterator[Table]:
    """Yield tables of serializers, of records by store, beside raw drivers, and of supersteps."""
    examples.build("brimful-vertices", "records", "serializers")
    yield _serializers(session)
    yield _records(session)
    yield _beside_drivers(session)
    yield _supersteps(session)


def _serializers(session: Session) -> Table:
    vertices = max(session.size.lognormal_vertices // 10, 1000)
    table = Table(
        f"databases: a PageRank vertex by serializer, {vertices:,} log-normal vertices",
        "f64 states, 64-bit ids below a million",
        ("serializer", "bytes", "serialize, ns", "deserialize, ns"),
    )
    [series] = session.measure(Command("bench.databases", ("serializers", str(vertices))))
    names = series.records[0]["serializers"] if series.records else {}
    for name in names:
        table.row(name, *(_cost(series, name, what) for what in ("bytes", "write_ns", "read_ns")))
    table.notes.append(_THESIS)
    table.ran(series)
    return table


def _cost(series: Series, name: str, what: str) -> str:
    return figure(series, lambda record: record["serializers"][name][what], 0)


def _records(session: Session) -> Table:
    count = session.size.lognormal_vertices
    table = Table(
        f"databases: {count:,} records of 500 bytes, {_THREADS} threads, batches of {_BATCH:,}",
        "1,000 records a second, as workers use a store: announced, then one by one",
        (
            *("store", "load", "read", "in order", "change", "in order "),
            *("MiB on disk", "peak, MiB", "target"),
        ),
    )
    folder = session.folder / "records"
    stores = ("bytes", "file", "kv")
    plain = [_native(store, folder, count, _MEMORY_MIB) for store in stores]
    limited = [
        replace(
            _native(store, folder, count, _LIMITED_MEMORY_MIB, drawn=count // 8),
            limit_bytes=_LIMIT_MIB * MIB,
        )
        for store in stores[1:]
    ]
    for command, series in zip(plain + limited, session.measure(*plain, *limited), strict=True):
        name = command.arguments[1]
        goal = "-"
        if name == "kv" and command.limit_bytes is None:
            reads, changes = (_per_second(series, field) for field in ("get_again", "change"))
            goal = ", ".join(
                (
                    target(session.size, reads, _READS, " reads", at_least=True),
                    target(session.size, changes, _CHANGES, " changes", at_least=True),
                )
            )
        table.row(
            name + (f", hard {_LIMIT_MIB} MiB" if command.limit_bytes else ""),
            *(
                _thousands(series, field)
                for field in ("load", "get_again", "get_in_order", "change", "change_in_order")
            ),
            figure(series, lambda record: record["disk_bytes"] / MIB, 0),
            figure(series, lambda record: record["peak_rss_bytes"] / MIB, 0),
            goal,
        )
        table.ran(series)
    table.notes.append(_JE)
    table.notes.append("the second column of each kind is in the order of ids, as in most runs")
    return table


def _native(
    store: str, folder: Path, count: int, mebibytes: int, drawn: int | None = None
) -> Command:
    words = ("native", store, str(folder / store), str(count), str(mebibytes))
    return Command("bench.databases", (*words, str(drawn or count)), fresh=folder / store)


def _beside_drivers(session: Session) -> Table:
    table = Table(
        f"databases: stores beside their drivers, batches of {_BATCH:,}",
        "1,000 records of 500 bytes a second; one thread",
        ("store", "records", "load", "driver", "store / driver", "target", "read", "change"),
    )
    for scheme in ("rocksdb", "berkeleydb", "mongodb", "orientdb"):
        count = session.size.lognormal_vertices
        bound = _EMBEDDED
        if scheme in _SERVERS:
            count, bound = count // _SERVER_SHARE, _SERVER
        folder = session.folder / "stores" / scheme
        words = (scheme, str(folder), str(count))
        ours, raw = session.measure(
            Command("bench.databases", ("store", *words), fresh=folder),
            Command("bench.databases", ("raw", *words), fresh=folder),
        )
        seconds = ours.median("load_seconds"), raw.median("load_seconds")
        slower = seconds[0] / seconds[1] if seconds[0] and seconds[1] else None
        table.row(
            scheme,
            f"{count:,}",
            _thousands(ours, "load"),
            _thousands(raw, "load"),
            ratio(*seconds),
            target(session.size, slower, bound, "x"),
            _thousands(ours, "get"),
            _thousands(ours, "change"),
        )
        table.ran(ours, raw)
    named = " and ".join(_SERVERS.values())
    table.notes.append(
        f"servers are those of {named}, on this machine: mongo-java-server 1.47 in memory, "
        "OrientDB 3.2.49"
    )
    return table


def _supersteps(session: Session) -> Table:
    most = session.size.lognormal_vertices
    table = Table(
        "databases: PageRank on log-normal vertices by store",
        f"f64; {_THREADS} threads; `native`",
        ("store", "vertices", "load s", "superstep s", "/ bytes", "bytes/vertex", "target"),
    )
    embedded = ("bytes", "file", "kv", "rocksdb", "berkeleydb")
    for vertices, stores in ((most, embedded), (most // _SERVER_SHARE, ("bytes", *_SERVERS))):
        graph = session.folder / f"lognormal-databases-{vertices}.brimful"
        session.made(graph, "generate", "lognormal", graph, "--vertices", str(vertices))
        folders = [session.folder / "supersteps" / store for store in stores]
        all_series = session.measure(
            *(
                Command(
                    "bench.databases", ("superstep", str(graph), store, str(folder)), fresh=folder
                )
                for store, folder in zip(stores, folders, strict=True)
            )
        )
        base = all_series[0].median("superstep_median")
        for store, series in zip(stores, all_series, strict=True):
            step = series.median("superstep_median")
            slower = step / base if step and base else None
            goal = target(session.size, slower, _SUPERSTEP, "x") if store == "file" else "-"
            table.row(
                store,
                f"{vertices:,}",
                figure(series, lambda record: record["phases"]["load"]),
                figure(series, "superstep_median"),
                ratio(step, base),
                figure(series, _bytes_per_vertex, 0),
                goal,
            )
            table.ran(series)
    table.notes.append("bytes/vertex: on disk, or in memory for `bytes`; 0: unknown, on a server")
    return table


def _bytes_per_vertex(record: Record) -> float:
    figures = record["store_figures"]
    held: int = figures["memory_bytes" if record["store"] == "bytes" else "disk_bytes"]
    return held / float(record["vertices"])


def _per_second(series: Series, phase: str) -> float | None:
    return series.median(lambda record: _rate(record, phase))


def _rate(record: Record, phase: str) -> float:
    drawn = phase in ("get", "get_again", "change")
    return float(record["drawn" if drawn else "count"] / record[f"{phase}_seconds"])


def _thousands(series: Series, phase: str) -> str:
    return figure(series, lambda record: _rate(record, phase) / 1000, 0, more_is_better=True)


# The commands.


def _batches(keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    for first in range(0, len(keys), _BATCH):
        yield keys[first : first + _BATCH]


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _url(scheme: str, folder: Path) -> str:
    if scheme not in _SERVERS:
        return f"{scheme}:{folder}"
    url = os.environ.get(_SERVERS[scheme])
    if url is None:
        print(json.dumps({"not_measured": f"{_SERVERS[scheme]} names no server"}))
        raise SystemExit(0)
    return url


def store(scheme: str, folder: Path, count: int) -> Record:
    """Return the seconds of a store: load, get and change in batches."""
    from brimful.errors import MissingPackageError
    from brimful.stores.registry import opener

    found = opener(_url(scheme, folder))
    if found is None:
        raise CommandFailed(f"{scheme} is a store of brimful's own")
    keys = [number.to_bytes(8, "big") for number in range(count)]
    drawn = random.Random(1)
    with found:
        try:
            opened = found.open(0, _MEMORY_MIB * MIB // 2, str(folder))
        except MissingPackageError as reason:
            print(json.dumps({"not_measured": str(reason)}))
            raise SystemExit(0) from None
        shuffled = [drawn.choice(keys) for _ in keys]

        def load() -> None:
            for batch in _batches(keys):
                opened.load([(key, _RECORD) for key in batch])
            opened.sync()

        def get() -> None:
            for batch in _batches(shuffled):
                opened.get_many(batch)

        def change() -> None:
            for batch in _batches(shuffled):
                distinct = sorted(set(batch))
                opened.put_many(distinct, [one or b"" for one in opened.get_many(distinct)])

        figures = {
            "count": count,
            "drawn": count,
            "load_seconds": _timed(load),
            "get_seconds": _timed(get),
            "change_seconds": _timed(change),
        }
        opened.clear()
        if found.in_folder:
            opened.close()
    return figures


def raw(scheme: str, folder: Path, count: int) -> Record:
    """Return the seconds that a driver takes to load the same records in the same batches."""
    keys = [number.to_bytes(8, "big") for number in range(count)]
    load = _DRIVERS[scheme](_url(scheme, folder), folder)
    started = time.perf_counter()
    for batch in _batches(keys):
        load(batch)
    load([])
    return {"count": count, "load_seconds": time.perf_counter() - started}


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        print(json.dumps({"not_measured": f"{name} is missing"}))
        raise SystemExit(0) from None


#: Loads a batch; an empty one ends the load.
Load = Callable[[Sequence[bytes]], object]


def _rocksdb(url: str, folder: Path) -> Load:
    rocksdict = _package("rocksdict")
    folder.mkdir(parents=True)
    database = rocksdict.Rdict(str(folder / "raw"), rocksdict.Options(raw_mode=True))

    def load(keys: Sequence[bytes]) -> None:
        batch = rocksdict.WriteBatch(raw_mode=True)
        for key in keys:
            batch.put(key, _RECORD)
        database.write(batch)
        if not keys:
            database.flush()

    return load


def _berkeleydb(url: str, folder: Path) -> Load:
    db: Any = _package("berkeleydb").db
    folder.mkdir(parents=True)
    environment = db.DBEnv()
    environment.set_cachesize(0, _MEMORY_MIB * MIB // 2)
    environment.open(str(folder), db.DB_CREATE | db.DB_INIT_MPOOL | db.DB_PRIVATE)
    tree = db.DB(environment)
    tree.open("raw", dbtype=db.DB_BTREE, flags=db.DB_CREATE)

    def load(keys: Sequence[bytes]) -> None:
        for key in keys:
            tree.put(key, _RECORD)
        if not keys:
            tree.sync()

    return load


def _mongodb(url: str, folder: Path) -> Load:
    pymongo = _package("pymongo")
    address, _, name = url.rpartition("/")
    collection = pymongo.MongoClient(address).get_default_database()[name + "_raw"]
    collection.drop()

    def load(keys: Sequence[bytes]) -> None:
        if keys:
            collection.insert_many([{"_id": key.hex(), "r": _RECORD} for key in keys])
        else:
            collection.drop()

    return load


def _orientdb(url: str, folder: Path) -> Load:
    import base64

    from brimful.stores import Opening
    from brimful.stores.orient import Orient

    server = Orient(Opening(url, 0, 0))
    server.query("DROP CLASS BenchRaw IF EXISTS UNSAFE")
    for statement in (
        "CREATE CLASS BenchRaw",
        "CREATE PROPERTY BenchRaw.k STRING",
        "CREATE INDEX BenchRaw.k UNIQUE",
    ):
        server.query(statement)
    record = base64.b64encode(_RECORD).decode()

    def load(keys: Sequence[bytes]) -> None:
        if keys:
            server.change(
                [
                    {"type": "c", "record": {"@class": "BenchRaw", "k": k.hex(), "r": record}}
                    for k in keys
                ]
            )
        else:
            server.query("DROP CLASS BenchRaw UNSAFE")

    return load


_DRIVERS: dict[str, Callable[[str, Path], Load]] = {
    "rocksdb": _rocksdb,
    "berkeleydb": _berkeleydb,
    "mongodb": _mongodb,
    "orientdb": _orientdb,
}


def _example(name: str, *arguments: object) -> list[Record]:
    program = ROOT / "target" / "release" / "examples" / name
    words = [str(program), *map(str, arguments)]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise CommandFailed(done.stderr[-200:])
    return [json.loads(line) for line in done.stdout.splitlines()]


def native(store: str, folder: Path, count: str, mebibytes: str, drawn: str) -> Record:
    """Return the figures of the example `records`."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    url = store if store == "bytes" else f"{store}:{folder}"
    [figures] = _example("records", url, count, _THREADS, mebibytes, drawn)
    return figures


def superstep(graph: str, store: str, folder: Path) -> Record:
    """Return the figures of three supersteps of PageRank."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    url = store if store == "bytes" else _url(store, folder)
    options = ["--max-supersteps", "3", "--tolerance", "0", "--threads", str(_THREADS)]
    if store != "bytes":
        # Of a million vertices, most are on disk.
        options += ["--budget", "1G"]
    return Command(
        "brimful",
        ("run", "pagerank", graph, "--store", url, *options, "--json", "--quiet"),
    ).run()


def main() -> None:
    """Measure the store that the arguments name, remove its files, and print the figures."""
    what, *rest = sys.argv[1:]
    if what == "serializers":
        found = _example("serializers", rest[0])
        figures: Record = {"serializers": {one.pop("serializer"): one for one in found}}
        print(json.dumps(figures))
        return
    folder = Path(rest[2] if what == "superstep" else rest[1])
    try:
        if what == "native":
            figures = native(rest[0], folder, *rest[2:])
        elif what == "superstep":
            figures = superstep(rest[0], rest[1], folder)
        else:
            figures = {"store": store, "raw": raw}[what](rest[0], folder, int(rest[2]))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
