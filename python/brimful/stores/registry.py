"""The schemes of store URLs: those of brimful itself, and those of plug-ins.

Invariant: a plug-in is imported only when a URL names its scheme.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any

from brimful.errors import UsageError
from brimful.io.redaction import redacted_word
from brimful.stores.base import Opening, Store
from brimful.wording import counted, did_you_mean, either, shortened

#: The entry-point group of stores.
GROUP = "brimful.stores"

#: Bytes of memory for a partition whose records are only counted or removed.
_CLAIM_BYTES = 1 << 20

_registered: dict[str, type[Store]] = {}


def register(scheme: str, store: type[Store]) -> None:
    """Make a class the store of the URLs that begin with `scheme`, in this process.

    Packages name their class in the entry-point group `brimful.stores` instead.

    Args:
        scheme: Name before the colon of a URL.
        store: A class derived from `Store`.

    Raises:
        UsageError: `store` is not derived from `Store`, or brimful has a store of that name.

    >>> from brimful.stores import register
    >>> register("dict", dict)
    Traceback (most recent call last):
    brimful.errors.UsageError: ...
    """
    if not (isinstance(store, type) and issubclass(store, Store)):
        raise UsageError(f"a store is a class derived from brimful.stores.Store, not {store!r}")
    if scheme in _own():
        raise UsageError(f'brimful has a store "{scheme}"; choose another name')
    _registered[scheme] = store


def forms() -> list[str]:
    """Return the forms of the URLs of all stores; a plug-in not imported yet has its scheme."""
    from brimful import _native

    own = list(_native.stores())
    registered = [store.form for store in _registered.values()]
    installed = {entry.name for entry in metadata.entry_points(group=GROUP)} - _registered.keys()
    return own + registered + [f"{name}:..." for name in sorted(installed)]


def check_url(url: str) -> str:
    """Return a store URL whose scheme is known.

    Raises:
        UsageError: There is no such store; the message lists the stores.
    """
    scheme = url.partition(":")[0]
    if scheme in _own() or scheme in _registered or _entry(scheme) is not None:
        return url
    names = {form.partition(":")[0] for form in forms()}
    raise UsageError(
        f'there is no store "{shortened(redacted_word(url))}"; use {either(forms())}'
        + did_you_mean(scheme, names)
    )


class Opener:
    """Opens the partitions of a store of one run, and removes their records at its end.

    The native module sees the URL without options and secrets.
    """

    def __init__(self, name: str, store: type[Store], url: str) -> None:
        """Prepare to open `url`; nothing is opened yet."""
        self.name, self.form, self.in_folder = name, store.form, store.in_folder
        self.library_bytes = store.library_bytes
        self._store, self._url = store, url
        #: The stores, and whether their records are those of this run.
        self._opened: list[tuple[Store, bool]] = []
        self._stopped = threading.Event()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """The URL to show."""
        return redacted_word(self._url).partition("?")[0]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parts that a worker of a cluster needs to open its own partitions."""
        return Opener, (self.name, self._store, self._url)

    @contextlib.contextmanager
    def claimed(self, partitions: int) -> Iterator[None]:
        """Claim partitions of a database for workers of a cluster, which open them.

        After an error their records are removed, because workers that are killed leave theirs.

        Raises:
            UsageError: A partition has vertices of another run.
        """
        claimed = [] if self.in_folder else range(partitions)
        for partition in claimed:
            with self._alone(partition) as store:
                if left := store.count():
                    raise UsageError(
                        f'the store "{self.url}" has {counted(left, "vertex")} of '
                        "another run; remove it or name another"
                    )
        try:
            yield
        except BaseException:
            for partition in claimed:
                with self._reported(quiet=True), self._alone(partition) as store:
                    store.clear()
            raise

    @contextlib.contextmanager
    def _alone(self, partition: int) -> Iterator[Store]:
        """Open a partition while no worker has it."""
        store = self._store(Opening(self._url, partition, _CLAIM_BYTES))
        try:
            yield store
        finally:
            store.close()

    def open(self, partition: int, memory_bytes: int, folder: str | None) -> Store:
        """Open a partition; the native module calls this on its threads."""
        path = None if folder is None else Path(folder)
        opened = self._store(Opening(self._url, partition, memory_bytes, path, self._stopped))
        # The native module closes a store in a folder itself, before it removes the folder.
        if not self.in_folder:
            with contextlib.ExitStack() as stack:
                stack.callback(opened.close)
                # Vertices of another run, which the native module refuses, are not removed.
                is_own = opened.count() == 0
                stack.pop_all()
            with self._lock:
                self._opened.append((opened, is_own))
        return opened

    def stop(self) -> None:
        """End the waits of the store, because the user canceled the run."""
        self._stopped.set()

    def __enter__(self) -> Opener:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the records of the run, and close.

        An error of the clean-up is raised only after a successful run: it must not hide the first
        error.
        """
        # After an error, do not wait again for a server that may be lost.
        if error is not None:
            self.stop()
        with contextlib.ExitStack() as stack:
            for store, is_own in self._opened:
                stack.callback(self._end, store, is_own=is_own, quiet=error is not None)
        self._opened.clear()

    def _end(self, store: Store, *, is_own: bool, quiet: bool) -> None:
        with self._reported(quiet=quiet):
            try:
                if is_own:
                    store.clear()
            finally:
                store.close()

    @contextlib.contextmanager
    def _reported(self, *, quiet: bool) -> Iterator[None]:
        """Raise an error of the clean-up, or log it if it would hide another error."""
        try:
            yield
        except Exception as error:
            if not quiet:
                raise
            import logging

            logging.getLogger("brimful").warning(
                "the store %s still has vertices of this run: %s", self.url, error
            )


def opener(url: str) -> Opener | None:
    """Return the opener of the partitions of `url`; None for brimful's own stores.

    Raises:
        UsageError: There is no such store, or its entry point does not name a class of stores.
    """
    scheme = check_url(url).partition(":")[0]
    if scheme in _own():
        return None
    store = _registered.get(scheme)
    if store is None:
        entry = _entry(scheme)
        store = entry.load() if entry is not None else None
        if not (isinstance(store, type) and issubclass(store, Store)):
            raise UsageError(
                f'the entry point "{scheme}" of the group {GROUP} names {store!r}, not a class '
                "derived from brimful.stores.Store"
            )
    return Opener(scheme, store, url)


def _entry(scheme: str) -> metadata.EntryPoint | None:
    entries = metadata.entry_points(group=GROUP, name=scheme)
    return next(iter(entries), None)


def _own() -> set[str]:
    from brimful import _native

    return {form.partition(":")[0] for form in _native.stores()}
