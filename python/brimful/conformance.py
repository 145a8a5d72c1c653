"""The conformance suite of stores: `python -m brimful.conformance URL`, or `check_store` in a test.

Each case opens an empty partition and reports the first mistake in a sentence. The cases here
call a plug-in directly; those of the native module call every store as a run does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from tempfile import TemporaryDirectory

from brimful.errors import BrimfulError
from brimful.stores.base import Store
from brimful.stores.registry import check_url, opener
from brimful.wording import cut

#: Memory of a partition, unless a budget is given: then half of it.
_MEMORY = 8 << 20


class NonconformingError(BrimfulError):
    """A store violates its interface."""


def check_store(url: str, budget: int | str | None = None) -> Iterator[str]:
    """Check a store; its records are removed.

    Args:
        url: URL of the store, without vertices in it.
        budget: The memory budget, of which a partition has half; None: automatic, and 8 MiB for a
            partition.

    Yields:
        The name of each case that passed.

    Raises:
        UsageError: There is no such store.
        NonconformingError: A case failed; the message tells the case and the mistake.
        BudgetError: The store needs more memory.
        StoreIoError: The store raised an exception.

    >>> from brimful.conformance import check_store
    >>> list(check_store("bytes"))[0]
    'records'
    """
    from brimful import _native
    from brimful.sizes import parse_budget

    check_url(url)
    plugin, limit = opener(url), parse_budget(budget)
    memory = _MEMORY if limit is None else limit // 2
    if plugin is not None:
        for name, case in _CASES:
            with TemporaryDirectory(prefix=".brimful-run-") as folder, plugin:
                store = plugin.open(0, memory, folder if plugin.in_folder else None)
                case(_Checked(name, store))
                if plugin.in_folder:
                    store.close()
            yield name
    shown = url if plugin is None else plugin.url
    scheme = shown.partition(":")[0]
    # The store `memory` holds live vertices, not records.
    for name in ("records", "vertices", "ids")[scheme == "memory" :]:
        with TemporaryDirectory(prefix=".brimful-run-") as folder:
            if scheme not in ("memory", "bytes") and (plugin is None or plugin.in_folder):
                shown = f"{scheme}:{folder}"
            try:
                if plugin is None:
                    _native.check_store(shown, None, name, limit)
                else:
                    with plugin:
                        _native.check_store(shown, plugin, name, limit)
            except AssertionError as error:
                raise NonconformingError(f"{name}: {error}") from None
        yield name


class _Checked:
    """A store and the name of a case, for messages."""

    def __init__(self, name: str, store: Store) -> None:
        self.name, self.store = name, store

    def expect(self, actual: object, expected: object, subject: str) -> None:
        """Compare the result of a call with the expected one.

        Raises:
            NonconformingError: They differ.
        """
        if actual != expected:
            raise NonconformingError(
                f"{self.name}: {subject}: expected {cut(repr(expected), 100)}, "
                f"found {cut(repr(actual), 100)}"
            )


def _empty(of: _Checked) -> None:
    of.expect(of.store.count(), 0, "count() of an empty partition")
    of.expect(list(of.store.scan()), [], "scan() of an empty partition")
    of.expect(list(of.store.get_many([b"a"])), [None], "get_many() of a missing key")
    of.store.remove_many([b"a"])
    of.store.sync()


def _load(of: _Checked) -> None:
    of.expect(of.store.load([(b"a", b"1"), (b"b", b"2"), (b"a", b"3")]), 1, "load() of 3 pairs")
    of.expect(of.store.load([(b"a", b"4"), (b"c", b"5")]), 1, "load() of a key that exists")
    of.expect(list(of.store.get_many([b"c", b"a", b"x", b"b"])), [b"5", b"1", None, b"2"], "get")
    of.expect(of.store.count(), 3, "count()")


def _bytes(of: _Checked) -> None:
    keys = [b"1", b"\x00", b"", b"\xff\x00'\"\\$.", "\u00e9".encode(), b"1\x00", b"01"]
    records = [bytes([index]) * index for index in range(len(keys))]
    of.store.put_many(keys, records)
    of.expect(list(of.store.get_many(keys)), records, "records of keys of any bytes")
    of.expect(sorted(of.store.scan()), sorted(zip(keys, records, strict=True)), "scan()")


def _replace(of: _Checked) -> None:
    of.store.put_many([b"a", b"b"], [b"1", b"2"])
    of.store.put_many([b"b", b"c"], [b"20" * 500, b""])
    of.expect(list(of.store.get_many([b"a", b"b", b"c"])), [b"1", b"20" * 500, b""], "put_many()")
    of.store.remove_many([b"b", b"none"])
    of.expect(list(of.store.get_many([b"a", b"b"])), [b"1", None], "remove_many()")
    of.expect(of.store.count(), 2, "count() after a removal")


def _scan(of: _Checked) -> None:
    pairs = [(index.to_bytes(3), bytes(index % 40)) for index in range(5000)]
    for start in range(0, len(pairs), 1000):
        of.store.load(pairs[start : start + 1000])
    seen = []
    for key, _ in of.store.scan():
        seen.append(key)
        if len(seen) % 1000 == 0:
            of.store.put_many(seen[-1000:], [b"longer than before" * 5] * 1000)
    of.expect(len(seen), 5000, "records of a scan during which records are replaced")
    of.expect(len(set(seen)), 5000, "different keys of that scan")
    of.expect({record for _, record in of.store.scan()}, {b"longer than before" * 5}, "records")


def _large(of: _Checked) -> None:
    large = bytes(range(256)) * 16_000
    of.store.put_many([b"large"], [large])
    of.expect(list(of.store.get_many([b"large"])), [large], "a record of 4 MB")


def _clear(of: _Checked) -> None:
    of.store.load([(bytes([index]), b"x") for index in range(100)])
    of.store.clear()
    of.expect(of.store.count(), 0, "count() after clear()")
    of.expect(list(of.store.scan()), [], "scan() after clear()")


_CASES: list[tuple[str, Callable[[_Checked], None]]] = [
    ("an empty partition", _empty),
    ("loading", _load),
    ("keys and records of any bytes", _bytes),
    ("replacing and removing", _replace),
    ("a scan while records change", _scan),
    ("a large record", _large),
    ("clearing", _clear),
]


def main(arguments: list[str]) -> int:
    """Check the store of a URL, print the cases, and return the exit code."""
    parser = argparse.ArgumentParser("python -m brimful.conformance", description=main.__doc__)
    parser.add_argument("url", metavar="URL", help="a store without vertices in it")
    parser.add_argument(
        "--budget", metavar="SIZE", help="memory, of which a partition has half: 500M"
    )
    options = parser.parse_args(arguments)
    try:
        for name in check_store(options.url, options.budget):
            print(f"passed: {name}", flush=True)
    except BrimfulError as error:
        print(f"failed: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
