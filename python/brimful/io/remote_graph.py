"""Graph directories in object stores: copied to this machine, and used from there.

A copy stays in a folder of the user's cache directory, next to the file `current` of its graph at
the time of the copy. It is used again as long as that file is the same in the store. Invariant: a
folder has its name only when all files of the graph are complete. Opening a graph compares the
seals of its files, and every read compares checksums.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from brimful.errors import CorruptError, InputError, NotFoundError, StoreIoError
from brimful.io.cache import Notify, cache_directory, locked
from brimful.io.formats import GRAPH_SUFFIX
from brimful.io.redaction import redacted_word
from brimful.io.regular import sync_folder, writing_to
from brimful.io.remote import files_in, is_remote, open_file, open_stream
from brimful.reporting import warn
from brimful.sizes import format_bytes

if TYPE_CHECKING:
    from brimful import _native
    from brimful.reporting import Progress

#: The file of a graph directory that names its current manifest, by number and checksum.
_CURRENT = "current"
#: The file that a process locks to change a graph; a copy has its own.
_LOCK = "lock"
#: Parts of files that are copied at the same time, and the bytes of a part and of a request.
_STREAMS = 4
_PART_BYTES = 64 << 20
_BLOCK_BYTES = 2 << 20
_CHANGED = "changed while it was copied; try again"
#: Seconds between two reports of progress.
_TICK_SECONDS = 0.1

#: The URLs of the copies that this process uses, by path.
_urls: dict[str, str] = {}


def is_remote_graph(path: str | os.PathLike[str]) -> bool:
    """Return whether `path` is the URL of a graph directory, such as `s3://bucket/web.brimful`."""
    return is_remote(path) and _split(os.fspath(path))[0].endswith(GRAPH_SUFFIX)


def url_of(path: str) -> str | None:
    """Return the URL of the graph whose copy is at `path`; None if the path is not that of one."""
    return _urls.get(path)


def location_of(path: str) -> str:
    """Return where other processes and machines can open a graph: the URL of a copy, or a path.

    A relative path becomes absolute, so the working directory must be that of the opening.
    """
    return url_of(path) or os.path.abspath(path)


def open_location(location: str) -> _native.Graph:
    """Open a graph directory at a path, or at a URL through its copy.

    Raises:
        NotFoundError: There is no graph.
        InputError: The graph was written by a newer version.
        CorruptError, StoreIoError, UsageError: As `local_copy`.
    """
    from brimful import _native

    path = local_copy(location, None, warn) if is_remote_graph(location) else location
    return _native.Graph.open(path)


def local_copy(url: str, progress: Progress | None, notify: Notify) -> str:
    """Return the path of a copy of the graph directory at `url`, which is made if there is none.

    Raises:
        NotFoundError: There is no graph at the URL.
        CorruptError: A file of the graph is damaged.
        InputError, UsageError, StoreIoError: As `brimful.io.remote`; or the graph changed while it
            was copied; or the copy cannot be written.
    """
    folder, options = _split(url)
    shown = redacted_word(url)
    try:
        with open_stream(f"{folder}/{_CURRENT}{options}") as stream:
            current = stream.read()
    except InputError:
        raise NotFoundError(f"there is no graph at {shown}; check the URL") from None
    name = folder.rpartition("/")[2]
    key = hashlib.blake2b(url.encode(), digest_size=8).hexdigest()
    place = os.path.join(cache_directory(), f"{name.removesuffix(GRAPH_SUFFIX)}-{key}")
    copy = os.path.join(place, name)
    with writing_to(f"{place}.{_LOCK}"), open(f"{place}.{_LOCK}", "ab"):
        pass
    with locked(f"{place}.{_LOCK}", f"waiting for another process that copies {shown}", notify):
        if _current_of(place) != current:
            _copy(url, place, current, progress, notify)
    _urls[copy] = url
    return copy


def _split(url: str) -> tuple[str, str]:
    """Return the folder of a URL, without a slash at its end, and the options from `?` on."""
    folder, question, options = url.partition("?")
    return folder.rstrip("/"), question + options


def _current_of(place: str) -> bytes | None:
    """Return the file `current` from which a copy was made; None without a copy."""
    try:
        with open(os.path.join(place, _CURRENT), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreIoError(f"cannot read {place}: {error.strerror}", error.errno) from None


def _copy(url: str, place: str, current: bytes, progress: Progress | None, notify: Notify) -> None:
    """Make or replace the copy in the folder `place`."""
    from brimful import _native

    folder, options = _split(url)
    sizes = files_in(url)
    sizes = {name: size for name, size in sizes.items() if name != _LOCK and name[0] != "."}
    bytes_text = format_bytes(sum(sizes.values()))
    notify(f"copying {redacted_word(url)} ({bytes_text}) to {place}")
    hidden = _native.TemporaryFolder(os.path.dirname(place), ".brimful-copy-")
    try:
        made = os.path.join(hidden.path, "made")
        graph = os.path.join(made, folder.rpartition("/")[2])
        with writing_to(graph):
            os.makedirs(graph)
        urls = {name: f"{folder}/{name}{options}" for name in sizes}
        _fetch(urls, sizes, graph, progress)
        if _current_of(graph) != current:
            raise StoreIoError(f"{url} {_CHANGED}")
        try:
            # Compares the seals of all files.
            _native.Graph.open(graph)
        except CorruptError as error:
            error.args = (str(error.args[0]).replace(graph, folder), *error.args[1:])
            raise
        with writing_to(place):
            with open(os.path.join(made, _CURRENT), "wb") as file:
                file.write(current)
            sync_folder(made)
            sync_folder(graph)
            if os.path.lexists(place):
                os.rename(place, os.path.join(hidden.path, "replaced"))
            os.rename(made, place)
            sync_folder(os.path.dirname(place))
    finally:
        hidden.close()


def _fetch(
    urls: Mapping[str, str], sizes: Mapping[str, int], graph: str, progress: Progress | None
) -> None:
    """Copy files into the folder `graph`, several parts at a time."""
    from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

    total, begin = sum(sizes.values()), time.monotonic()
    done: list[int] = []
    stopped = threading.Event()

    def part(name: str, start: int) -> None:
        path = os.path.join(graph, name)
        end = min(start + _PART_BYTES, sizes[name])
        with (
            open_file(urls[name], stopped) as source,
            writing_to(path),
            open(path, "r+b") as target,
        ):
            source.seek(start)
            target.seek(start)
            while start < end:
                block = source.read(min(_BLOCK_BYTES, end - start))
                if not block:
                    raise StoreIoError(f"{urls[name]} {_CHANGED}")
                target.write(block)
                start += len(block)
                done.append(len(block))
            target.flush()
            os.fsync(target.fileno())

    for name in sizes:
        with writing_to(graph), open(os.path.join(graph, name), "xb"):
            pass
    with ThreadPoolExecutor(_STREAMS, "brimful-copy") as pool:
        parts = {
            pool.submit(part, name, start)
            for name, size in sizes.items()
            for start in range(0, size, _PART_BYTES)
        }
        try:
            while parts:
                ended, parts = wait(parts, _TICK_SECONDS, FIRST_EXCEPTION)
                for one in ended:
                    one.result()
                if callable(progress):
                    progress("copy", sum(done), total, time.monotonic() - begin)
        except BaseException:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
