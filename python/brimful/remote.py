"""Inputs in object stores (`s3://bucket/key` and whatever else pyarrow's file systems know).

Tables are opened by pyarrow itself. Everything else is read natively, from pipes that one thread
fills in the order of the inputs. Invariant: a store that fails ends the import before its graph has
a name; an input that was cut short is never mistaken for one that ended.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from brimful.errors import BrimfulError, InputError, StoreIoError, UsageError

if TYPE_CHECKING:
    from types import TracebackType

    from brimful.reporting import Progress

_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_BUFFER_BYTES = 1 << 20
#: Pipes of one import; each takes two of the files a process may have open.
_MOST_INPUTS = 100


def is_remote(path: str | os.PathLike[str]) -> bool:
    """Return whether `path` is a URL."""
    return _URL.match(os.fspath(path)) is not None


@contextlib.contextmanager
def store_errors(url: str) -> Iterator[None]:
    """Turn what pyarrow and the store raise into brimful's errors, naming the URL.

    Raises:
        InputError: there is nothing at the URL.
        UsageError: no file system knows it.
        StoreIoError: the store refused or broke off.
    """
    import pyarrow as pa

    try:
        yield
    except BrimfulError:
        raise
    except FileNotFoundError:
        raise InputError(f"{url} does not exist; check the URL") from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        sentence = " ".join(str(error).split())
        raise UsageError(f"{url} cannot be opened: {sentence}") from None
    except OSError as error:
        sentence = " ".join(str(error).split())
        raise StoreIoError(f"cannot read {url}: {sentence}", error.errno) from None


def open_stream(url: str) -> Any:
    """Return a pyarrow stream of the bytes at `url`, as they are.

    Raises:
        InputError, UsageError, StoreIoError: as `store_errors`.
    """
    with store_errors(url):
        system, path = _resolve(url)
        return system.open_input_stream(path, compression=None, buffer_size=_BUFFER_BYTES)


def open_file(url: str) -> Any:
    """Return a pyarrow file at `url` that can be read anywhere.

    Raises:
        InputError, UsageError, StoreIoError: as `store_errors`.
    """
    with store_errors(url):
        system, path = _resolve(url)
        return system.open_input_file(path)


def check(url: str) -> None:
    """Refuse a URL with nothing, or a directory, behind it.

    Raises:
        InputError, UsageError, StoreIoError: as `store_errors`.
    """
    from pyarrow import fs

    with store_errors(url):
        system, path = _resolve(url)
        kind = system.get_file_info(path).type
    if kind == fs.FileType.NotFound:
        raise InputError(f"{url} does not exist; check the URL")
    if kind == fs.FileType.Directory:
        raise InputError(f"{url} is a directory; name a file in it")


def expand(url: str) -> list[str]:
    """Return the URLs that a pattern in the last part of `url` matches, sorted.

    Raises:
        InputError: none does.
    """
    from pyarrow import fs

    # A question mark may also begin the options of a file system.
    folder, _, pattern = url.rpartition("/")
    if "*" not in pattern and "[" not in pattern:
        return [url]
    pattern, question, options = pattern.partition("?")
    with store_errors(url):
        system, path = _resolve(folder + question + options)
        entries = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
    names = (entry.base_name for entry in entries if entry.type == fs.FileType.File)
    found = sorted(name for name in names if fnmatch.fnmatchcase(name, pattern))
    if not found:
        raise InputError(f"nothing matches {url}; check the pattern")
    return [f"{folder}/{name}{question}{options}" for name in found]


def _resolve(url: str) -> tuple[Any, str]:
    from pyarrow import fs

    system, path = fs.FileSystem.from_uri(url)
    return system, path


class Feed:
    """Pipes for the URLs among some inputs, filled by a thread while a native call reads them.

    A context manager. `paths` are what the native side opens. `progress` must be handed to the
    call: it is how a failing store ends it.
    """

    def __init__(self, inputs: Sequence[str], progress: Progress | None) -> None:
        """Make the pipes.

        Raises:
            UsageError: there are too many URLs.
        """
        urls = [path for path in inputs if is_remote(path)]
        if len(urls) > _MOST_INPUTS:
            raise UsageError(
                f"{len(urls)} inputs are URLs and at most {_MOST_INPUTS} can be read at once; copy "
                "them to this machine, or join them"
            )
        self._progress = progress
        self._failure: BaseException | None = None
        self._done = threading.Event()
        self._readers: list[int] = []
        self._jobs: list[tuple[str, int]] = []
        self._names: dict[str, str] = {}
        self.paths: list[str] = []
        for path in inputs:
            if is_remote(path):
                reader, writer = os.pipe()
                self._readers.append(reader)
                self._jobs.append((path, writer))
                self._names[f"/dev/fd/{reader}"] = path
                path = f"/dev/fd/{reader}"
            self.paths.append(path)
        self._thread = threading.Thread(target=self._fill, name="brimful-feed", daemon=True)

    def progress(self, phase: str, done: int, total: int, seconds: float) -> None:
        """Pass progress on; raise what the store raised, which cancels the native call."""
        if self._failure is not None:
            raise self._failure
        if self._progress is not None:
            self._progress(phase, done, total, seconds)

    def renamed(self, text: str) -> str:
        """Return `text` with the names of pipes replaced by the URLs behind them."""
        return re.sub(r"/dev/fd/\d+", lambda name: self._names.get(name[0], name[0]), text)

    def __enter__(self) -> Feed:
        """Begin to fill the pipes."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the thread; an error of the native side gets the names of the URLs."""
        self._done.set()
        # A thread that waits for room in a pipe is told that nobody reads any more.
        for reader in self._readers:
            os.close(reader)
        self._thread.join()
        if isinstance(error, BrimfulError) and error.args:
            error.args = (self.renamed(str(error.args[0])), *error.args[1:])

    def _fill(self) -> None:
        rest = list(self._jobs)
        try:
            while rest:
                url, writer = rest[0]
                with open_stream(url) as stream, store_errors(url):
                    while block := stream.read(_BUFFER_BYTES):
                        with memoryview(block) as view:
                            sent = 0
                            while sent < len(view):
                                sent += os.write(writer, view[sent:])
                os.close(writer)
                rest.pop(0)
        except BrokenPipeError:
            pass
        except BaseException as failure:  # noqa: BLE001 - raised again by `progress`
            if not (isinstance(failure, BrimfulError) and self._done.is_set()):
                self._failure = failure
            # The pipe stays open until the call has been cancelled: its end would look like the
            # end of the input.
            self._done.wait()
        for _, writer in rest:
            os.close(writer)
