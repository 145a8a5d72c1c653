"""Inputs in object stores (`s3://bucket/key` and other file systems that pyarrow knows).

Tables are opened by pyarrow itself. Everything else is read natively, from the pipes of `feed`.
Invariant: no call waits for a store without a limit, and every wait ends when it is stopped.
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import io
import math
import os
import queue
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from brimful.errors import (
    BrimfulError,
    InputError,
    MissingPackageError,
    StoreIoError,
    UsageError,
)
from brimful.io.redaction import redacted_about
from brimful.wording import did_you_mean

if TYPE_CHECKING:
    from pyarrow.fs import S3FileSystem

_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://", re.IGNORECASE)
#: Bytes that are read at once.
BUFFER_BYTES = 1 << 20
#: Schemes that pyarrow opens, `hf` and `fsspec+...` through the package fsspec.
_SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs", "file", "hf")

#: Seconds that a store may take for one answer, unless the variable gives another number.
ANSWER_SECONDS = 60.0
TIMEOUT_VARIABLE = "BRIMFUL_REMOTE_TIMEOUT"
#: The most times that a request to S3 is sent.
_S3_ATTEMPTS = 3
#: Seconds between two checks for Ctrl-C during a wait.
_TICK_SECONDS = 0.1


def is_remote(path: str | os.PathLike[str]) -> bool:
    """Return whether `path` is a URL."""
    return _URL.match(os.fspath(path)) is not None


def refuse_remote_output(path: str) -> None:
    """Refuse a URL as an output.

    Raises:
        UsageError: The output is a URL.
    """
    if is_remote(path):
        raise UsageError(f"{path} is a URL; write to this machine, then copy the file there")


@contextlib.contextmanager
def store_errors(url: str) -> Iterator[None]:
    """Turn errors of pyarrow and the store into brimful's, naming the URL.

    Raises:
        InputError: There is nothing at the URL.
        UsageError: No file system knows it.
        StoreIoError: The store refused, broke off or did not answer in time.
    """
    import pyarrow as pa

    try:
        yield
    except BrimfulError:
        raise
    except FileNotFoundError:
        raise InputError(f"{url} does not exist; check the URL") from None
    except ImportError as error:
        name = error.name or "fsspec"
        raise MissingPackageError(
            f"{url} needs the package {name}, which is not installed; install it with "
            f"'pip install {name}', or download the file and give its path"
        ) from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise UsageError(f"{url} cannot be opened: {_sentence(url, error)}") from None
    except OSError as error:
        raise StoreIoError(f"cannot read {url}: {_sentence(url, error)}", error.errno) from None
    except Exception as error:  # noqa: BLE001 - SDKs of stores raise classes of their own
        raise StoreIoError(f"cannot read {url}: {_sentence(url, error)}") from None


def _sentence(url: str, error: Exception) -> str:
    return redacted_about(url, " ".join(str(error).split()))


def open_stream(url: str, stopped: threading.Event | None = None) -> RemoteFile:
    """Return a stream of the bytes at `url`; `stopped` ends all waits.

    Raises:
        InputError, UsageError, StoreIoError: As `store_errors`.
    """

    def work() -> Any:
        system, path = _resolve(url)
        return system.open_input_stream(path, compression=None, buffer_size=BUFFER_BYTES)

    return RemoteFile(url, work, stopped)


def open_file(url: str, stopped: threading.Event | None = None) -> RemoteFile:
    """Return a seekable file at `url`; `stopped` ends all waits.

    Raises:
        InputError, UsageError, StoreIoError: As `store_errors`.
    """

    def work() -> Any:
        system, path = _resolve(url)
        return system.open_input_file(path)

    return RemoteFile(url, work, stopped)


def answer_seconds() -> float:
    """Return the seconds that a store may take for one answer.

    Raises:
        UsageError: The variable holds no such number.
    """
    text = os.environ.get(TIMEOUT_VARIABLE)
    if text is None:
        return ANSWER_SECONDS
    with contextlib.suppress(ValueError):
        if math.isfinite(seconds := float(text)) and seconds > 0:
            return seconds
    raise UsageError(f"{TIMEOUT_VARIABLE} must be a number of seconds above 0, not '{text}'")


class _Caller:
    """A thread that calls one store, so that a wait for the store can be stopped.

    The libraries of stores block without a limit, and ignore signals. A call that takes too long is
    abandoned: its thread stays in it and is `stuck`.
    """

    #: The callers with an abandoned call.
    stuck: ClassVar[set[_Caller]] = set()

    def __init__(self, url: str, stopped: threading.Event | None = None) -> None:
        """Make the thread when it is first needed; `stopped` ends a wait."""
        self._url = url
        self._timeout = answer_seconds()
        self._work: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._stopped = stopped or threading.Event()
        # The answer to an abandoned call may still arrive; it does not belong to the next call.
        self._given_up = False

    def call(self, work: Callable[[], Any]) -> Any:
        """Return the result of `work`, called on the thread.

        Raises:
            StoreIoError: The call took too long, or `stop` was called.
            InputError, UsageError, StoreIoError: As `store_errors`.
        """
        if self._given_up:
            raise StoreIoError(f"reading {self._url} was abandoned", errno.ECANCELED)
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="brimful-store", daemon=True)
            self._thread.start()
        self._work.put(work)
        try:
            done, answer = self._wait()
        except BaseException:
            self._given_up = True
            _Caller.stuck.add(self)
            raise
        if done:
            return answer
        with store_errors(self._url):
            raise answer

    def _wait(self) -> tuple[bool, Any]:
        """Return the answer of the thread: whether the call succeeded, and its value or error."""
        until = time.monotonic() + self._timeout
        while not self._stopped.is_set():
            left = until - time.monotonic()
            if left <= 0:
                raise StoreIoError(
                    f"cannot read {self._url}: no answer in {self._timeout:g} s; check the "
                    f"network, or wait longer with {TIMEOUT_VARIABLE}=SECONDS",
                    errno.ETIMEDOUT,
                )
            with contextlib.suppress(queue.Empty):
                return self._answers.get(timeout=min(left, _TICK_SECONDS))
        raise StoreIoError(f"reading {self._url} was stopped", errno.ECANCELED)

    def stop(self) -> None:
        """End a wait in another thread."""
        self._stopped.set()

    def is_waited_for(self) -> bool:
        """Return whether the thread is still in the abandoned call."""
        return self._answers.empty()

    def close(self, file: Any = None) -> None:
        """Let the thread end once it has closed a file; a stuck one is abandoned."""
        if file is not None and not self._given_up:
            self._work.put(file.close)
        self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                answer = (True, work())
            except BaseException as error:  # noqa: BLE001 - raised again by `call`
                answer = (False, error)
            self._answers.put(answer)


def calls_are_stuck() -> bool:
    """Return whether an abandoned call still holds its thread, so that the process cannot end."""
    return any(caller.is_waited_for() for caller in _Caller.stuck)


def _ask(url: str, work: Callable[[], Any]) -> Any:
    """Return the result of one call of a store; raises as `_Caller.call`."""
    caller = _Caller(url)
    try:
        return caller.call(work)
    finally:
        caller.close()


class RemoteFile(io.RawIOBase):
    """A file in a store; every call that asks the store can be stopped and has a limit."""

    def __init__(
        self, url: str, work: Callable[[], Any], stopped: threading.Event | None = None
    ) -> None:
        """Open the file that `work` returns; raises the errors of `_Caller.call`."""
        super().__init__()
        self._caller = _Caller(url, stopped)
        self._file: Any = None
        try:
            self._file = self._caller.call(work)
        except BaseException:
            self.close()
            raise

    def stop(self) -> None:
        """End a read in another thread."""
        self._caller.stop()

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return whether the file can be read at any position."""
        return bool(self._file.seekable())

    def tell(self) -> int:
        """Return the position of the next byte."""
        return int(self._caller.call(self._file.tell))

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go to a position; return it."""
        return int(self._caller.call(lambda: self._file.seek(offset, whence)))

    def read(self, size: int = -1, /) -> bytes:
        """Return up to `size` bytes; none at the end."""
        block: bytes = self._caller.call(lambda: self._file.read(None if size < 0 else size))
        return block

    def readinto(self, buffer: Any, /) -> int:
        """Read into a buffer; return the number of bytes."""
        block = self.read(len(buffer))
        buffer[: len(block)] = block
        return len(block)

    def close(self) -> None:
        """Close the file; a thread that is stuck in it is left alone."""
        super().close()
        self._caller.close(self._file)


def check(url: str) -> None:
    """Refuse a URL at which there is a directory, or nothing.

    Raises:
        InputError, UsageError, StoreIoError: As `store_errors`.
    """

    def work() -> Any:
        system, path = _resolve(url)
        return system.get_file_info(path).type

    from pyarrow import fs

    kind = _ask(url, work)
    if kind == fs.FileType.NotFound:
        raise InputError(f"{url} does not exist; check the URL")
    if kind == fs.FileType.Directory:
        raise InputError(f"{url} is a directory; name a file in it")


def expand(url: str) -> list[str]:
    """Return the URLs that a pattern in the last part of the path of `url` matches, sorted.

    Raises:
        InputError: None does.
        UsageError, StoreIoError: As `store_errors`.
    """
    # A question mark is not a pattern: it begins the options of a file system.
    base, question, options = url.partition("?")
    folder, _, pattern = base.rpartition("/")
    if "*" not in pattern and "[" not in pattern:
        return [url]
    names = files_in(folder + question + options)
    matches = sorted(name for name in names if fnmatch.fnmatchcase(name, pattern))
    if not matches:
        raise InputError(f"nothing matches {url}; check the pattern")
    return [f"{folder}/{name}{question}{options}" for name in matches]


def files_in(url: str) -> dict[str, int]:
    """Return the bytes of each file in the folder at `url`, by name; none if there is no folder.

    Raises:
        UsageError, StoreIoError: As `store_errors`.
    """
    from pyarrow import fs

    def work() -> Any:
        system, path = _resolve(url)
        return system.get_file_info(fs.FileSelector(path, allow_not_found=True))

    entries = _ask(url, work)
    return {entry.base_name: entry.size for entry in entries if entry.type == fs.FileType.File}


def check_scheme(url: str) -> None:
    """Refuse a URL of a kind that no file system knows, without asking one.

    Raises:
        UsageError: The scheme is unknown; the message lists the known ones.
    """
    match = _URL.match(url)
    scheme = match["scheme"].lower() if match else ""
    if scheme in _SCHEMES or scheme.startswith("fsspec+"):
        return
    if scheme in ("http", "https", "ftp"):
        raise UsageError(
            f"{url} cannot be opened: brimful does not read {scheme} URLs; download the file and "
            "give its path, or pipe it in: 'curl URL | brimful import - NAME.brimful'"
        )
    raise UsageError(
        f"{url} cannot be opened: brimful does not read {scheme}:// URLs"
        f"{did_you_mean(scheme, _SCHEMES)}; known: {', '.join(_SCHEMES)}"
    )


def _resolve(url: str) -> tuple[Any, str]:
    from pyarrow import fs

    check_scheme(url)
    if url.lower().startswith(("gs://", "gcs://")) and "retry_limit_seconds=" not in url:
        # By default pyarrow's client of Google Cloud retries for a quarter of an hour.
        url += f"{'&' if '?' in url else '?'}retry_limit_seconds={math.ceil(answer_seconds())}"
    with _without_missing_command(url):
        system, path = fs.FileSystem.from_uri(url)
    if isinstance(system, fs.S3FileSystem):
        system = _limited(system)
    return system, path


@contextlib.contextmanager
def _without_missing_command(url: str) -> Iterator[None]:
    """Keep the SDK of Azure from calling the command `az` if it is not installed.

    The shell would complain on standard error.
    """
    name = "AZURE_TOKEN_CREDENTIALS"
    is_azure = url.lower().startswith(("abfs://", "abfss://"))
    if not is_azure or name in os.environ or shutil.which("az") is not None:
        yield
        return
    os.environ[name] = "prod"
    try:
        yield
    finally:
        os.environ.pop(name, None)


def _limited(system: S3FileSystem) -> S3FileSystem:
    """Return the file system with requests that end within the time of one answer.

    By default the SDK of S3 repeats a request for 100 s. Python cannot end before the request does,
    even after `_Caller` has abandoned the call. URLs cannot hold these limits, so the options are
    taken from the pickled form.
    """
    from pyarrow import fs

    _, (options, *_) = system.__reduce__()
    seconds = answer_seconds() / _S3_ATTEMPTS
    limits = {
        "connect_timeout": seconds,
        "request_timeout": seconds,
        "retry_strategy": fs.AwsStandardS3RetryStrategy(max_attempts=_S3_ATTEMPTS),
    }
    return fs.S3FileSystem(**(options | limits))
