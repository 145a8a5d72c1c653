"""The schemes of store URLs: those of brimful itself, and those of plug-ins.

Invariant: a plug-in is imported only when a URL names its scheme.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import unquote

from brimful.errors import UsageError
from brimful.io.redaction import redacted_word
from brimful.optional import admit_pandas
from brimful.stores.base import Opening, Store
from brimful.wording import counted, did_you_mean, either, shortened

#: The entry-point group of stores.
GROUP = "brimful.stores"

#: The option of the URL of a server whose vertices stay.
_FOLDER = "folder="

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
        raise UsageError(f'brimful already has a store "{scheme}"; choose another name')
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
    # The folder of a store, without its scheme.
    hint = f"; did you mean 'file:{url}'?" if os.path.isdir(url) else did_you_mean(scheme, names)
    raise UsageError(
        f'there is no store "{shortened(redacted_word(url))}"; use {either(forms())}{hint}'
    )


class Opener:
    """Opens the partitions of a store of one run, and removes their records at its end.

    The native module sees the URL without options and secrets. For vertices that stay on a server
    it sees the folder that describes them, with an empty folder for each partition that was opened.
    """

    def __init__(
        self, name: str, store: type[Store], url: str, kept_folder: str | None = None
    ) -> None:
        """Prepare to open `url`; nothing is opened yet.

        `kept_folder` describes the vertices of a server that stay.
        """
        self.name, self.form = name, store.form
        self.in_folder = store.in_folder or kept_folder is not None
        self.library_bytes = store.library_bytes
        self._store, self._url, self._kept_folder = store, url, kept_folder
        #: Partitions of a server whose vertices are to stay, and that had none.
        self._new: list[int] = []
        #: The stores, and whether their records are those of this run.
        self._opened: list[tuple[Store, bool]] = []
        self._stopped = threading.Event()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """The URL for the native module and for messages."""
        if self._kept_folder is not None:
            return f"{self.name}:{self._kept_folder}"
        return redacted_word(self._url).partition("?")[0]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the parts that a worker of a cluster needs to open its own partitions."""
        return Opener, (self.name, self._store, self._url, self._kept_folder)

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
        if self._kept_folder is not None and path is not None and not path.exists():
            self._claim(opened, partition, path)
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

    def _claim(self, opened: Store, partition: int, folder: Path) -> None:
        """Make the folder of a new partition of a server whose vertices are to stay.

        Raises:
            UsageError: The partition has vertices already.
        """
        with contextlib.ExitStack() as stack:
            stack.callback(opened.close)
            if left := opened.count():
                raise UsageError(
                    f'the store "{redacted_word(self._url)}" has {counted(left, "vertex")} of '
                    "another run, or of a load that was killed; remove it or name another"
                )
            folder.mkdir(parents=True)
            stack.pop_all()
        with self._lock:
            self._new.append(partition)

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
        if error is not None and self._new:
            with self._reported(quiet=True):
                self._clear_new()
        self._new.clear()

    def _clear_new(self) -> None:
        """Remove vertices that were to stay, if they were not loaded to the end."""
        from brimful import _native

        description = _native.KeptVertexStore.describe(self.url, self)
        if description is None or description["is_loading"]:
            for partition in self._new:
                with self._alone(partition) as store:
                    store.clear()

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


def opener(url: str, *, keeps: bool = False) -> Opener | None:
    """Return the opener of the partitions of `url`; None for brimful's own stores.

    `keeps`: the vertices are to stay, or have stayed.

    Raises:
        UsageError: There is no such store, or its entry point does not name a class of stores; or
            the option `folder` of a server is missing, or has no use.
    """
    scheme = check_url(url).partition(":")[0]
    if scheme in _own():
        return None
    store = _registered.get(scheme)
    if store is None:
        entry = _entry(scheme)
        admit_pandas()
        store = entry.load() if entry is not None else None
        if not (isinstance(store, type) and issubclass(store, Store)):
            raise UsageError(
                f'the entry point "{scheme}" of the group {GROUP} names {store!r}, not a class '
                "derived from brimful.stores.Store"
            )
    own, folder = (url, None) if store.in_folder else _split_folder(url)
    if keeps and folder is None and not store.in_folder:
        raise UsageError(
            f"vertices that stay in {scheme} need a folder for their description; add folder=PATH "
            "to the options of the URL"
        )
    if folder is not None and not keeps:
        raise UsageError(
            f"folder= in the URL of {scheme} is for kept vertices; leave it out, or keep the "
            "vertices"
        )
    return Opener(scheme, store, own, folder)


def without_folder(url: str) -> str:
    """Return the URL of a server without the folder that describes vertices that stay."""
    store = opener(url, keeps=True)
    return url if store is None else _split_folder(url)[0]


def _split_folder(url: str) -> tuple[str, str | None]:
    """Return a URL without its option `folder`, and the value of the option.

    Raises:
        UsageError: The value is empty or names several folders.
    """
    base, mark, query = url.partition("?")
    options = query.split("&") if mark else []
    others = [option for option in options if not option.startswith(_FOLDER)]
    found = [unquote(option.removeprefix(_FOLDER)) for option in options if option not in others]
    if not found:
        return url, None
    if len(found) > 1 or not found[0] or "," in found[0]:
        raise UsageError("folder= in the URL of a store names one folder, without a comma")
    return base + ("?" + "&".join(others) if others else ""), found[0]


def _entry(scheme: str) -> metadata.EntryPoint | None:
    entries = metadata.entry_points(group=GROUP, name=scheme)
    return next(iter(entries), None)


def _own() -> set[str]:
    from brimful import _native

    return {form.partition(":")[0] for form in _native.stores()}
