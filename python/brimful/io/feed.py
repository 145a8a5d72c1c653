"""Inputs in object stores as pipes, which one thread fills in the order of the inputs.

The native side reads the pipes while it imports. Invariants: a store that fails ends the import
before its graph has a name; an input that was cut short is never mistaken for one that ended.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Sequence
from io import RawIOBase
from typing import TYPE_CHECKING

from brimful.errors import BrimfulError, UsageError
from brimful.io.redaction import redacted_word
from brimful.io.remote import BUFFER_BYTES, is_remote, open_stream, store_errors

if TYPE_CHECKING:
    from types import TracebackType

    from brimful.reporting import Progress

#: The most pipes of one import; each takes two of the files that a process may have open.
_MOST_INPUTS = 100


class Feed:
    """Pipes for the URLs among some inputs, filled by a thread while a native call reads them.

    A context manager. The native side opens `paths`. The call must get `progress`, through which a
    failing store ends the call.
    """

    def __init__(self, inputs: Sequence[str], progress: Progress | None) -> None:
        """Make the pipes.

        Raises:
            UsageError: There are too many URLs.
        """
        urls = [path for path in inputs if is_remote(path)]
        if len(urls) > _MOST_INPUTS:
            raise UsageError(
                f"at most {_MOST_INPUTS} URLs can be read at once, not {len(urls)}; copy the files "
                "to this machine, or concatenate them"
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
                self._names[f"/dev/fd/{reader}"] = redacted_word(path)
                path = f"/dev/fd/{reader}"
            self.paths.append(path)
        self._thread = threading.Thread(target=self._fill, name="brimful-feed", daemon=True)

    def progress(self, phase: str, done: int, total: int, seconds: float) -> None:
        """Pass progress on; raise the error of the store, if any, which cancels the native call."""
        if self._failure is not None:
            raise self._failure
        if callable(self._progress):
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
        # Closing the reader ends the wait of a thread for room in a pipe.
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
                with open_stream(url, self._done) as stream:
                    while block := _read(url, stream):
                        with memoryview(block) as view:
                            sent = 0
                            while sent < len(view):
                                sent += os.write(writer, view[sent:])
                os.close(writer)
                rest.pop(0)
        except BrokenPipeError:
            pass  # The native side has ended, or failed with an error of its own.
        except BaseException as failure:  # noqa: BLE001 - raised again by `progress`
            if not (isinstance(failure, BrimfulError) and self._done.is_set()):
                self._failure = failure
            # The pipe stays open until the call has been canceled: its end would look like the
            # end of the input.
            self._done.wait()
        for _, writer in rest:
            os.close(writer)


def _read(url: str, stream: RawIOBase) -> bytes:
    with store_errors(url):
        return stream.read(BUFFER_BYTES) or b""
