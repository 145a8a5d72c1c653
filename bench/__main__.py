"""`python -m bench`: run benchmarks and print their tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import (
    algorithms,
    by_hand,
    checkpoints,
    cluster,
    collections,
    compiled,
    curve,
    databases,
    forecasts,
    giraph,
    importing,
    infinimem,
    layout,
    lognormal,
    lookups,
    memory,
    messages,
    networkx,
    pagerank,
    programs,
    stores,
    strings,
    text,
    triangles,
)
from bench.command import ROOT
from bench.errors import CommandFailed, NotMeasured
from bench.machine import header
from bench.session import SIZES, Session
from bench.table import Table

#: Each yields its tables as it has them; its module describes the measurement.
BENCHMARKS: dict[str, Callable[[Session], Iterator[Table]]] = {
    "memory": memory.tables,
    "import": importing.tables,
    "layout": layout.tables,
    "infinimem": infinimem.tables,
    "pagerank": pagerank.tables,
    "by_hand": by_hand.tables,
    "algorithms": algorithms.tables,
    "checkpoints": checkpoints.tables,
    "cluster": cluster.tables,
    "text": text.tables,
    "triangles": triangles.tables,
    "strings": strings.tables,
    "lognormal": lognormal.tables,
    "lookups": lookups.tables,
    "networkx": networkx.tables,
    "collections": collections.tables,
    "stores": stores.tables,
    "databases": databases.tables,
    "programs": programs.tables,
    "messages": messages.tables,
    "compiled": compiled.tables,
    "giraph": giraph.tables,
    "forecasts": forecasts.tables,
    "curve": curve.tables,
}
#: What runs only when it is named.
_BY_NAME_ONLY = {"curve"}


def main() -> int:
    """Run the named benchmarks; return 1 if a command failed, 130 if interrupted."""
    parser = _parser()
    options = parser.parse_args()
    for name in options.names:
        if name not in BENCHMARKS:
            parser.error(f"no benchmark is called '{name}'; there are {', '.join(BENCHMARKS)}")
    names = options.names or [name for name in BENCHMARKS if name not in _BY_NAME_ONLY]
    folder: Path = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    session = Session(folder, SIZES[options.size], options.repeat, options.scale)
    print(header(folder, options.size, options.repeat), flush=True)
    try:
        for name in names:
            try:
                for table in BENCHMARKS[name](session):
                    print(table.markdown(), flush=True)
            except (CommandFailed, NotMeasured) as reason:
                session.failures.append(f"{name}: its input could not be made: {reason}")
                print(f"## {name}\n\nFAILED: {reason}\n", flush=True)
    except KeyboardInterrupt:
        return 130
    finally:
        session.close()
    for failure in session.failures:
        print(f"bench: {failure}", file=sys.stderr)
    return 1 if session.failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"{', '.join(BENCHMARKS)}; default: all but {', '.join(_BY_NAME_ONLY)}",
    )
    parser.add_argument(
        "--size", choices=SIZES, default="full", help="small: a smoke test of seconds"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=ROOT / "target" / "bench",
        help="where inputs are made and kept: about 10 GB, on the disk to be measured "
        "(default: target/bench)",
    )
    parser.add_argument(
        "--scale",
        type=_positive,
        metavar="N",
        help="scale of the RMAT graph of cluster (default: 22, small: 14)",
    )
    parser.add_argument("--repeat", type=_positive, default=3, metavar="N", help="default: 3")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of 1 or more")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
